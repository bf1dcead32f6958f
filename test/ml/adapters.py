#!/usr/bin/python3
"""scikit-learn and Dask for real: all tasks, algorithms and methods, every parameter, what is refused, and `sonde-pod ml`."""

import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import ml_runs
from ml_runs import check, common, is_deterministic, pod, reach_the_model, refused, requests, run, tasks
from sonde_test import ROOT, Process, diag, main, program

FEW = 120  # rows, where a model need not learn much
FOREST = [{"n_estimators": 7, "max_depth": 3, "criterion": "entropy", "min_samples_split": 5, "min_samples_leaf": 3,
           "max_features": "log2", "max_leaf_nodes": 9, "min_impurity_decrease": 0.001, "max_samples": 0.5,
           "ccp_alpha": 0.001, "n_jobs": 2},
          {"n_estimators": 6, "bootstrap": False, "max_features": None}, {"n_estimators": 8, "max_features": 0.5, "n_jobs": -1}]
LOGISTIC = [{"C": 0.5, "penalty": "l1", "solver": "liblinear", "max_iter": 77, "tol": 0.001, "fit_intercept": False},
            {"penalty": "elasticnet", "l1_ratio": 0.3, "solver": "saga", "n_jobs": 2}, {"penalty": None}]
VECTORS = [{"C": 0.5, "max_iter": 3000, "tol": 0.001, "loss": "hinge", "fit_intercept": False},
           {"kernel": "poly", "degree": 2, "coef0": 1.5, "gamma": 0.05}, {"kernel": "rbf", "gamma": "auto", "max_iter": 500}]
NETWORK = [{"hidden_layer_sizes": [7, 5], "activation": "tanh", "solver": "sgd", "alpha": 0.01, "batch_size": 50,
            "learning_rate": "adaptive", "learning_rate_init": 0.05, "max_iter": 60, "tol": 0.001, "momentum": 0.8},
           {"hidden_layer_sizes": 9, "early_stopping": True, "max_iter": 50}]
SAMPLES = {"random_forest": FOREST, "logistic_regression": LOGISTIC, "svm": VECTORS, "neural_network": NETWORK}


def sklearn_does_every_task_with_every_algorithm():
    for request in requests("sklearn"):
        check(request, run("sklearn", **request))


def dask_does_every_task_and_every_algorithm():
    """dask does every task with a forest, and trains every algorithm: the algorithms are scikit-learn's"""
    for request in requests("dask"):
        if request["algorithm"] == "random_forest" or request["task"] in ("train", "distributed_training"):
            check(request, run("dask", **request))


def the_same_seed_gives_the_same_model_and_another_another():
    is_deterministic("sklearn", rows=FEW)
    small = {"n_estimators": 5}
    for request in ({"task": "train", "parameters": small}, {"task": "distributed_training", "parameters": small},
                    {"task": "hyperparameter_tuning", "parameters": {**small, "max_depth": [2, 4]}}):
        one, two = (ml_runs.timeless(run("dask", rows=FEW, **request)) for _ in range(2))
        assert one == two, request


def every_parameter_of_sklearn_reaches_the_model():
    reach_the_model("sklearn", SAMPLES)


def every_parameter_of_dask_reaches_the_model():
    reach_the_model("dask", SAMPLES)


def parameters_reach_the_parts_of_distributed_training_and_the_selection():
    for framework in ("sklearn", "dask"):
        ml = run(framework, task="distributed_training", parameters={"n_estimators": 7, "max_depth": 4, "n_partitions": 3})["ml"]
        assert [ml["parameters"][n] for n in ("n_estimators", "max_depth", "n_partitions")] == [7, 4, 3], ml
        ml = run(framework, task="distributed_training", algorithm="svm", parameters={"C": 0.25, "n_partitions": 2})["ml"]
        assert ml["parameters"]["C"] == 0.25, ml
        ml = run(framework, task="feature_selection", parameters={"method": "wrapper", "n_select": 3, "step": 5, "max_depth": 4})["ml"]
        assert [ml["parameters"][n] for n in ("method", "n_select", "step", "max_depth")] == ["wrapper", 3, 5, 4], ml
        ml = run(framework, task="feature_selection", nSelect=2, parameters={"score_func": "mutual_info_classif"})["ml"]
        assert set(ml["selectedFeatures"]) == ml_runs.informative(), ml
        assert ml["parameters"]["score_func"] == "mutual_info_classif"
    assert run("dask", parameters={"n_workers": 3, "n_estimators": 5})["ml"]["parameters"]["n_workers"] == 3


def dask_counts_all_workers_where_its_summary_names_five():
    import distributed  # pylint: disable=import-outside-toplevel
    whole = distributed.Client.scheduler_info

    def newer(self, **more):
        info = whole(self, **more)
        return {**info, "workers": dict(list(info["workers"].items())[:5])}

    distributed.Client.scheduler_info = newer
    try:
        found = run("dask", algorithm="logistic_regression", parameters={"n_workers": 7})
    finally:
        distributed.Client.scheduler_info = whole
    assert found["ml"]["parameters"]["n_workers"] == 7, found


def a_parameter_that_is_lost_on_the_way_is_an_error():
    adapter = common.framework("sklearn")
    job = common.Job({"parameters": {"n_estimators": 5}, "datasetSize": 100}, {})
    job.adapter = adapter
    adapter.fit = lambda algorithm, parameters, data, seed: type(adapter).fit(adapter, algorithm, {}, data, seed)
    try:
        tasks.run(job)
    except common.Refused as e:
        assert e.reason == "ParameterLost" and "n_estimators" in str(e), e
        return
    raise AssertionError("nobody noticed")


def tuning_tries_what_it_is_told_and_holds_the_rest():
    ml = run("sklearn", task="hyperparameter_tuning",
             parameters={"n_estimators": [5, 10], "max_depth": [2, None], "criterion": "entropy", "cv": 2})["ml"]
    assert [t["params"] for t in ml["trials"]] == [{"criterion": "entropy", "n_estimators": n, "max_depth": d}
                                                   for n in (5, 10) for d in (2, None)], ml["trials"]
    assert ml["parameters"]["criterion"] == "entropy" and ml["parameters"]["cv"] == 2
    ml = run("sklearn", task="hyperparameter_tuning", parameters={"n_estimators": 5})["ml"]  # the usual others are tried
    assert {t["params"]["n_estimators"] for t in ml["trials"]} == {5}
    assert [t["params"]["max_depth"] for t in ml["trials"]] == [5, 10, None]
    ml = run("sklearn", task="hyperparameter_tuning", algorithm="neural_network",
             parameters={"hidden_layer_sizes": [[4], [5, 3]], "max_iter": 30})["ml"]
    assert [t["params"]["hidden_layer_sizes"] for t in ml["trials"]] == [[4], [5, 3]]


def rows_and_features_are_those_asked_for_or_those_of_the_task():
    for task, rows, features in ((None, 10000, 20), ("train", 10000, 20), ("feature_selection", 10000, 100),
                                 ("hyperparameter_tuning", 5000, 50), ("distributed_training", 100000, 100)):
        job = common.Job({"task": task}, {})
        assert (job.rows, job.features, job.algorithm, job.adapter.NAME) == (rows, features, "random_forest", "sklearn"), task
        assert common.Job({"task": task}, {"SONDE_INPUT_SIZE": "77"}).rows == 77
        assert common.Job({"task": task, "datasetSize": 88, "nFeatures": 30}, {"SONDE_INPUT_SIZE": "77"}).rows == 88
    assert common.Job({"task": "feature_selection"}, {}).settings == {"method": "filter", "n_select": 20, "step": None}
    assert common.Job({"task": "feature_selection", "nSelect": 5}, {}).settings["n_select"] == 5
    assert common.Job({"task": "feature_selection", "nSelect": 5, "parameters": {"n_select": 6}}, {}).settings["n_select"] == 6
    job = common.Job({"parameters": {"method": "embedded", "n_select": 7}}, {})  # these say the task
    assert (job.task, job.settings["method"]) == ("feature_selection", "embedded")
    assert common.Job({"parameters": {"algorithm": "svm"}}, {}).algorithm == "svm"


def the_data_is_what_it_has_always_been():
    data = common.make_data(2 ** 40 + 7, 100, 12)
    assert data.informative == [8, 10] and round(float(data.x[3, 4]), 6) == 0.513606, (data.informative, data.x[3, 4])
    assert int(data.y.sum()) == 50 and data.y[:12].tolist() == [1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 0], data.y[:12]
    for count in (2, 5):
        pairs = list(common.Folds(data, count))
        assert sum(len(held.y) for _, held in pairs) == 100
        assert all(set(part.y) == {0, 1} for pair in pairs for part in pair)
    data = common.make_data(3, 1000, 7)  # more rows than are moved at a time
    expected = next(iter(common.Folds(data, 5)))
    for one, two in zip(expected, common.hold_out(data, 5)):
        assert one.x.tobytes() == two.x.tobytes() and one.x.shape == two.x.shape and one.y.tolist() == two.y.tolist()
        assert two.x.flags.c_contiguous and two.x.flags.owndata and one.names == two.names


def peak(request):
    """The most bytes that a process of its own had while it did REQUEST. (ru_maxrss would count what this one had.)"""
    code = ("import json, sys\nsys.path[:0] = sys.argv[1:3]\nimport ml_runs\n"
            "ml_runs.tasks.run(ml_runs.common.Job(json.loads(sys.argv[3]), {}))\n"
            "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
    done = subprocess.run([sys.executable, "-c", code, os.path.join(ROOT, "test", "lib"), os.path.join(ROOT, "python"),
                           json.dumps(request)], check=True, text=True, stdout=subprocess.PIPE)
    return int(done.stdout) * 1024


def the_data_is_in_memory_once_and_while_tuning_twice():
    """the data is in memory once, and twice while folds are made of it: the rest is the framework's"""
    features, small, large = 100, 200, 40000
    for task, more, times in (("train", {}, 1.6), ("hyperparameter_tuning", {"C": [0.1, 1.0], "cv": 6}, 2.6)):
        request = {"task": task, "algorithm": "logistic_regression", "nFeatures": features, "parameters": {"max_iter": 2, **more}}
        taken = peak({**request, "datasetSize": large}) - peak({**request, "datasetSize": small})
        diag(f"{task}: {taken / (large * features * 8):.2f} times the data")
        assert taken < times * large * features * 8, (task, taken)


def what_is_wrong_is_refused_by_name_before_any_data_is_made():
    for request, reason, words in (
            ({"framework": "keras"}, "InvalidParameter", "no framework 'keras'; there are dask, pytorch, ray, sklearn, spark, xgboost"),
            ({"task": "sorting"}, "InvalidParameter", "no task 'sorting'; there are train, feature_selection"),
            ({"algorithm": "svc"}, "InvalidParameter", "no algorithm 'svc'; there are random_forest, logistic_regression"),
            ({"size": 3}, "InvalidParameter", "no member 'size'"),
            ({"parameters": {"numTrees": 3}}, "InvalidParameter", "no parameter 'numTrees'; sklearn calls it n_estimators; there are"),
            ({"framework": "dask", "parameters": {"numTrees": 3}}, "InvalidParameter", "dask calls it n_estimators"),
            ({"framework": "spark", "parameters": {"n_estimators": 3}}, "InvalidParameter", "spark calls it numTrees"),
            ({"framework": "spark", "parameters": {"max_depth": 3}}, "InvalidParameter", "spark calls it maxDepth"),
            ({"framework": "xgboost", "parameters": {"n_estimators": 3}}, "InvalidParameter", "calls it num_parallel_tree"),
            ({"parameters": {"max_dept": 3}}, "InvalidParameter", "did you mean max_depth?"),
            ({"parameters": {"random_state": 3}}, "InvalidParameter", "the seed is spec.seed"),
            ({"parameters": {"C": 1.0}}, "InvalidParameter", "random_forest (train) has no parameter 'C'"),
            ({"task": "train", "parameters": {"n_select": 3}}, "InvalidParameter", "no parameter 'n_select'"),
            ({"parameters": {"n_estimators": 0}}, "InvalidParameter", "n_estimators is 0: it must be a whole number from 1"),
            ({"parameters": {"n_estimators": "100"}}, "InvalidParameter", 'n_estimators is "100"'),
            ({"parameters": {"n_estimators": True}}, "InvalidParameter", "n_estimators is true"),
            ({"parameters": {"n_estimators": [1, 2]}}, "InvalidParameter", "n_estimators is [1, 2]"),
            ({"parameters": {"method": "magic"}}, "InvalidParameter", "one of filter, wrapper, embedded"),
            ({"parameters": {"algorithm": "svm"}, "algorithm": "random_forest"}, "InvalidParameter", "say one"),
            ({"task": "feature_selection", "nFeatures": 10, "nSelect": 11}, "InvalidParameter", "n_select is 11, and there are 10"),
            ({"datasetSize": 49}, "InvalidParameter", "at least 50 are needed"),
            ({"datasetSize": -1}, "InvalidParameter", "datasetSize is -1"),
            ({"parameters": [1]}, "InvalidParameter", "not an object"),
            ({"task": "hyperparameter_tuning", "parameters": {"n_estimators": list(range(1, 202))}}, "InvalidParameter", "201 combinations"),
            ({"task": "hyperparameter_tuning", "parameters": {"n_estimators": [5, 0]}}, "InvalidParameter", "n_estimators is 0"),
            ({"algorithm": "svm", "parameters": {"gamma": 0.1}}, "InvalidParameter", "gamma, degree and coef0 go with kernel"),
            ({"framework": "xgboost", "algorithm": "neural_network"}, "Unsupported", "random_forest, logistic_regression, svm"),
            ({"framework": "pytorch", "task": "distributed_training", "algorithm": "svm"}, "Unsupported", "it has train, feature_selection"),
            ({"framework": "spark"}, "FrameworkUnavailable", "--ml-image"),
            ({"framework": "ray"}, "FrameworkUnavailable", "the packages ray"),
            ({"framework": "xgboost"}, "FrameworkUnavailable", "the package xgboost"),
            ({"framework": "pytorch", "algorithm": "svm"}, "FrameworkUnavailable", "the packages torch")):
        got = refused(without=("pyspark", "ray", "torch", "xgboost"), **request)
        assert got[0] == reason and words in got[1], (request, got)


def what_only_the_framework_can_refuse_is_refused_with_its_words():
    for framework in ("sklearn", "dask"):
        for more, reason, words in (
                ({"algorithm": "logistic_regression", "parameters": {"penalty": "l1", "solver": "lbfgs"}}, "InvalidParameter", "lbfgs"),
                ({"task": "feature_selection", "nSelect": 4, "algorithm": "svm", "parameters": {"method": "wrapper", "kernel": "rbf"}},
                 "Unsupported", "use the method filter")):
            try:
                run(framework, **more)
                raise AssertionError(more)
            except common.Refused as e:
                assert e.reason == reason and words in str(e), e


def what_is_no_number_is_left_out():
    assert tasks.finite({"a": math.nan, "b": [{"c": math.inf, "d": 1.5}], "e": None}) == {"b": [{"d": 1.5}], "e": None}


def long_lists_are_cut_and_counted():
    ml = run("sklearn", nFeatures=500, algorithm="logistic_regression", task="feature_selection", nSelect=300)["ml"]
    assert len(ml["selectedFeatures"]) == 200 and ml["selectedFeaturesTotal"] == 300
    assert len(ml["featureImportances"]) == 200 and ml["featureImportancesTotal"] == 300


def sonde_pod_runs_the_entries_of_the_seed():
    for framework, parameters in (("sklearn", {"algorithm": "random_forest", "n_estimators": 100}),
                                  ("dask", {"algorithm": "random_forest", "n_estimators": 100, "max_depth": 10})):
        status, metrics, said = pod({"framework": framework, "parameters": parameters}, SONDE_INPUT_SIZE="1000")
        assert status == 0, said
        ml = metrics["ml"]
        assert all(ml["parameters"][k] == v for k, v in parameters.items() if k != "algorithm"), ml
        assert metrics["datasetSize"] == 1000 and 0.7 < ml["accuracy"] < 1
        assert set(metrics["region"]) == {"wall", "user", "sys"}
    status, metrics, _ = pod({"framework": "spark", "parameters": {"algorithm": "random_forest", "numTrees": 100}})
    assert (status, metrics["error"]["reason"]) == (69, "FrameworkUnavailable") and "pyspark" in metrics["error"]["message"]
    status, metrics, said = pod({"framework": "spark", "parameters": {"n_estimators": 100}})
    assert (status, metrics["error"]["reason"]) == (2, "InvalidParameter") and "numTrees" in said


def the_region_leaves_the_data_and_the_scoring_out():
    seen, made = [], {name: getattr(common.Region, name) for name in ("__enter__", "__exit__")}
    adapter = common.framework("sklearn")
    job = common.Job({"datasetSize": 100}, {})
    job.adapter = adapter

    def noted(name, function):
        return lambda *arguments: (seen.append(name), function(*arguments))[1]

    try:
        common.Region.__enter__, common.Region.__exit__ = (noted(n[2:-2], f) for n, f in made.items())
        tasks.make_data = noted("data", common.make_data)
        adapter.fit, adapter.accuracy = noted("fit", adapter.fit), noted("accuracy", adapter.accuracy)
        tasks.run(job)
    finally:
        common.Region.__enter__, common.Region.__exit__ = made.values()
        tasks.make_data = common.make_data
    assert seen == ["data", "enter", "fit", "exit", "accuracy"], seen


def dask_uses_a_cluster_that_is_there():
    code = ("import distributed, time\nif __name__ == '__main__':\n"
            "    c = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)\n"
            "    print('at', c.scheduler_address, flush=True)\n    time.sleep(3600)\n")
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "cluster.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(code)
        with Process(sys.executable, path, cwd=directory) as cluster:
            address = cluster.expect(r"^at (\S+)", 120)[1]
            small = {"framework": "dask", "datasetSize": 300, "nFeatures": 20, "parameters": {"n_estimators": 8}}
            status, metrics, said = pod({**small, "task": "distributed_training"}, DASK_SCHEDULER_ADDRESS=address)
            assert status == 0, said
            assert set(metrics["region"]) == {"wall"}, metrics["region"]  # the CPU is spent elsewhere
            assert metrics["ml"]["parameters"]["scheduler_address"] == address
            here = run("dask", seed=5, rows=300, parameters={"n_estimators": 8})["ml"]
            status, metrics, said = pod({**small, "parameters": {"n_estimators": 8, "scheduler_address": address}})
            assert status == 0 and metrics["ml"]["accuracy"] == here["accuracy"], (said, metrics)


def sonde_pod_says_what_is_missing():
    status, metrics, said = pod({}, SONDE_PYTHON="/nowhere/python3")
    assert status == 69 and metrics["error"]["reason"] == "FrameworkUnavailable" and "--ml-image" in metrics["error"]["message"]
    assert said.startswith("sonde-pod: ml: there is no Python in this image") and said.count("\n") == 1, said
    for text in ("", "{", "[]", "null", '{"parameters": {"C": NaN}}', "[" * 100000, '{"a": "\\ud800"}', "{}" * 2):
        status, metrics, said = pod(text)
        assert (status, metrics["error"]["reason"]) == (2, "InvalidParameter"), (text[:20], status, said)
        assert said.startswith("sonde-pod: ml: ") and said.count("\n") == 1, said
    for env in ({"SONDE_INPUT_SIZE": "many"}, {"SONDE_INPUT_SIZE": "10"}, {"SONDE_SEED": "-1"}, {"SONDE_SEED": str(2 ** 64)}):
        assert pod({}, **env)[0] == 2, env


def the_list_names_everything_there_is():
    done = subprocess.run([program("sonde-pod"), "ml", "--list"], check=True, text=True, capture_output=True, env={"PATH": "/"})
    assert done.stderr == ""
    for name in common.frameworks():
        adapter = common.framework(name)
        part = done.stdout.split(f"\n\n{name} needs ")[1].split("\n\n")[0]
        for word in {*adapter.TASKS, *adapter.ALGORITHMS, *adapter.OPTIONS, *(p for a in adapter.ALGORITHMS.values() for p in a)}:
            assert word in part, (name, word)
    for arguments in ((), ("{}", "{}"), ("--list", "{}"), ("--frob",)):
        done = subprocess.run([program("sonde-pod"), "ml", *arguments], check=False, text=True, capture_output=True)
        assert (done.returncode, done.stdout) == (2, ""), done


def without_a_file_the_result_is_printed():
    done = subprocess.run([program("sonde-pod"), "ml", '{"datasetSize": 200}'], check=True, text=True, capture_output=True,
                          env={**os.environ, "SONDE_PYTHON": sys.executable, "SONDE_METRICS_FILE": ""})
    assert json.loads(done.stdout)["ml"]["accuracy"] > 0.5


main(sklearn_does_every_task_with_every_algorithm, dask_does_every_task_and_every_algorithm,
     the_same_seed_gives_the_same_model_and_another_another, every_parameter_of_sklearn_reaches_the_model,
     every_parameter_of_dask_reaches_the_model, parameters_reach_the_parts_of_distributed_training_and_the_selection,
     dask_counts_all_workers_where_its_summary_names_five, a_parameter_that_is_lost_on_the_way_is_an_error,
     tuning_tries_what_it_is_told_and_holds_the_rest,
     rows_and_features_are_those_asked_for_or_those_of_the_task, the_data_is_what_it_has_always_been,
     the_data_is_in_memory_once_and_while_tuning_twice,
     what_is_wrong_is_refused_by_name_before_any_data_is_made, what_only_the_framework_can_refuse_is_refused_with_its_words,
     what_is_no_number_is_left_out, long_lists_are_cut_and_counted, sonde_pod_runs_the_entries_of_the_seed,
     the_region_leaves_the_data_and_the_scoring_out, dask_uses_a_cluster_that_is_there, sonde_pod_says_what_is_missing,
     the_list_names_everything_there_is, without_a_file_the_result_is_printed)
