"""ml_runs - machine-learning tasks, run inside the test (for many) or by sonde-pod (as it is in a pod)."""

import json
import os
import subprocess
import sys
import tempfile
import warnings

from sonde_test import ROOT, program

sys.dont_write_bytecode = True
# Small models, and other tests beside them: more threads would only wait for each other.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
sys.path.insert(0, os.path.join(ROOT, "python"))
from frameworks import common, tasks  # pylint: disable=wrong-import-position,unused-import

warnings.simplefilter("ignore")
SEED, ROWS, FEATURES = 11, 600, 20
ALGORITHMS = ("random_forest", "logistic_regression", "svm", "neural_network")
METHODS = ("filter", "wrapper", "embedded")
# So that each takes a moment: of the frameworks' own parameters, where they have them.
QUICK = {"n_estimators": 20, "numTrees": 20, "num_parallel_tree": 20}
QUICK_NETWORK = {"max_iter": 60, "learning_rate_init": 0.01, "maxIter": 30, "epochs": 20}


def run(framework, seed=SEED, rows=ROWS, **request):
    """What goes into the metrics file; common.Refused when it is refused."""
    request = {"framework": framework, "datasetSize": rows, "nFeatures": FEATURES, **request}
    result = tasks.run(common.Job(request, {"SONDE_SEED": str(seed)}))
    json.dumps(result, allow_nan=False)
    return result


def refused(without=(), **request):
    """(reason, message) of a request that must not be done, found out before any data is made. WITHOUT: modules that this machine
    may have, and must not for this."""
    made, loaded = common.make_data, {name: sys.modules.get(name) for name in without}
    tasks.make_data = None
    sys.modules.update(dict.fromkeys(without))  # importing one of them fails
    try:
        tasks.run(common.Job(request, {}))
    except common.Refused as e:
        return e.reason, str(e)
    finally:
        tasks.make_data = made
        for name, module in loaded.items():
            del sys.modules[name]
            if module:
                sys.modules[name] = module
    raise AssertionError(f"{request} was not refused")


def pod(request, **env):
    """(exit status, metrics, standard error) of `sonde-pod ml`. METRICS is None where no file was written."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "metrics.json")
        text = request if isinstance(request, str) else json.dumps(request)
        done = subprocess.run([program("sonde-pod"), "ml", text], check=False, text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300, cwd=directory,
                              env={**os.environ, "SONDE_PYTHON": sys.executable, "SONDE_METRICS_FILE": path, "SONDE_SEED": "5", **env})
        left = sorted(os.listdir(directory))
        assert left in ([], ["metrics.json"]), left
        if not left:
            return done.returncode, None, done.stderr
        assert os.path.getsize(path) <= 256 * 1024
        with open(path, encoding="utf-8") as f:
            return done.returncode, json.load(f), done.stderr


def requests(framework):
    """Every task, algorithm and method that FRAMEWORK has, small."""
    adapter = common.framework(framework)
    for algorithm, known in adapter.ALGORITHMS.items():
        quick = QUICK_NETWORK if algorithm == "neural_network" else QUICK
        small = {name: value for name, value in quick.items() if name in known}
        for task in adapter.TASKS:
            if task != "feature_selection":
                yield {"task": task, "algorithm": algorithm, "parameters": small}
                continue
            for method in METHODS:
                yield {"task": task, "algorithm": algorithm, "nSelect": 4, "parameters": {"method": method, "step": 8, **small}}


def check(request, result):
    """A whole result, with a model that has learnt something and does not know everything."""
    ml = result["ml"]
    assert ml["task"] == request["task"] and ml["algorithm"] == request["algorithm"], ml
    assert 0.65 < ml["accuracy"] < 1, (request, ml["accuracy"])  # both labels are as frequent
    assert ml["trainingLoss"] > 0 and ml["lossFunction"] in ("log", "hinge"), ml
    assert result["region"]["wall"] > 0 and set(result["region"]) <= {"wall", "user", "sys"}
    assert result["datasetSize"] == ROWS and result["nFeatures"] == FEATURES
    assert ("featureImportances" in ml) == (request["algorithm"] != "neural_network"), (request, list(ml))
    assert ("selectedFeatures" in ml) == (request["task"] == "feature_selection")
    assert ("bestParams" in ml) == ("trials" in ml) == (request["task"] == "hyperparameter_tuning")
    assert ml["parameters"]
    if "selectedFeatures" in ml:
        assert len(ml["selectedFeatures"]) == request["nSelect"]
        assert informative() <= set(ml["selectedFeatures"]), (request, ml["selectedFeatures"], informative())
        assert set(ml.get("featureImportances", ml["selectedFeatures"])) == set(ml["selectedFeatures"])
    if "trials" in ml:
        check_trials(ml)


def check_trials(ml):
    assert len(ml["trials"]) > 1
    best = max(ml["trials"], key=lambda trial: trial["score"])
    assert best["params"] == ml["bestParams"], ml
    for trial in ml["trials"]:
        assert set(trial) == {"params", "score", "seconds"} and 0.4 < trial["score"] < 1 and trial["seconds"] > 0, trial
    for name, value in ml["bestParams"].items():
        assert ml["parameters"][name] == value, (name, ml["parameters"])


def informative():
    data = common.make_data(SEED, ROWS, FEATURES)
    return {data.names[i] for i in data.informative}


def timeless(value):
    """VALUE without what is different each time."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("region", "seconds")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def is_deterministic(framework, **more):
    for request in requests(framework):
        one, two = (timeless(run(framework, **request, **more)) for _ in range(2))
        assert one == two, (request, one, two)
        if request["task"] == "train":
            assert timeless(run(framework, seed=12, **request, **more)) != one, request


def reach_the_model(framework, samples):
    """SAMPLES: algorithm -> [parameters that go together]; all there are, none as it is by itself."""
    adapter = common.framework(framework)
    for algorithm, several in samples.items():
        named = {name for parameters in several for name in parameters}
        assert named == set(adapter.ALGORITHMS[algorithm]), named ^ set(adapter.ALGORITHMS[algorithm])
        otherwise = run(framework, algorithm=algorithm)["ml"]["parameters"]
        for parameters in several:
            found = run(framework, algorithm=algorithm, parameters=dict(parameters))["ml"]["parameters"]
            for name, value in parameters.items():
                same = abs(found[name] - value) < 1e-6 if isinstance(value, float) else found[name] == value
                assert same, (algorithm, name, value, found[name])
                assert otherwise.get(name) != value, f"{algorithm}: {name} is {value} by itself: the test says nothing"
