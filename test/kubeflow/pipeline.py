#!/usr/bin/python3
"""The seed's pipeline: its three steps as they stand there, and python/component.yaml with examples/kubeflow/pipeline.py for KFP v2.

Runs are real, on the embedded engine. The SDK of Kubeflow Pipelines is a stand-in (test/kubeflow/standin) with the real one's interface.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.path.insert(0, os.path.join(HERE, "standin"))
import kfp
from algorithm_site import Site
from kfp import dsl
from kfp.launcher import launch
from mlflow_server import Mlflow
from sonde_test import ROOT, SOAK, diag, main, program, wait

PATIENCE = 400
SAVED = "/tmp/profiling_results.json"
COMPONENT = os.path.join(ROOT, "python", "component.yaml")
PIPELINE = os.path.join(ROOT, "examples", "kubeflow", "pipeline.py")

# The three argument lists of the seed, word by word. test/kubeflow/component.py checks the request that the first one makes;
# the run here has a smaller data set unless it is the long form.
SMALLER = {"50000": "2000"}
STEPS = (
    ["--action", "profile", "--name", "feature-selection-profiling", "--algorithm-name", "feature_selection", "--algorithm-type", "ml",
     "--input-size", "50000", "--framework", "dask", "--task", "feature_selection", "--dataset-size", "50000", "--n-features", "200",
     "--n-select", "50"],
    ["--action", "wait", "--name", "feature-selection-profiling", "--resource-type", "AlgorithmProfiling", "--wait-timeout", "3600"],
    ["--action", "get-results", "--name", "feature-selection-profiling", "--resource-type", "AlgorithmProfiling", "--output-file",
     "/tmp/profiling_results.json"],
)


def step(*arguments):
    """Exit status, standard output, standard error of a step's container."""
    done = subprocess.run([program("sonde"), "component", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE, check=False, env={**os.environ, "KUBECONFIG": site.server.kubeconfig})
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def the_file_of_the_seed():
    """Its path is the seed's, one for the whole machine: whoever has the name has the file, and what was there before is put back."""
    mutex = socket.socket(socket.AF_UNIX)

    def is_ours():
        with contextlib.suppress(OSError):
            mutex.bind("\0sonde-test-profiling-results")
            return True
        return False

    wait(is_ours, PATIENCE, "another test to be done with the file")
    before = SAVED + ".before"
    if os.path.lexists(SAVED):
        os.rename(SAVED, before)
    try:
        yield SAVED
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SAVED)
        if os.path.lexists(before):
            os.rename(before, SAVED)
        mutex.close()


# --- the seed --------------------------------------------------------------------------------------------------------------------


def the_seed_s_steps_in_order():
    """The seed's three steps with exactly its arguments, in order: dask selects 50 of 200 features, the file is there"""
    profile, wait_for, get_results = STEPS if SOAK else [[SMALLER.get(word, word) for word in words] for words in STEPS]
    with the_file_of_the_seed() as file, site.scene("default") as scene:
        code, out, err = step(*profile)
        assert (code, out, err) == (0, "Created AlgorithmProfiling: feature-selection-profiling\n", ""), (code, out, err)
        code, out, err = step(*wait_for)
        diag(err)
        assert (code, out) == (0, "AlgorithmProfiling feature-selection-profiling completed with status: Completed\n"), (code, out, err)
        assert "ap/feature-selection-profiling  " in err, err
        code, out, err = step(*get_results)
        assert (code, out, err) == (0, "Results saved to /tmp/profiling_results.json\n", ""), (code, out, err)
        with open(file, encoding="utf-8") as f:
            results = json.load(f)
        ml = results["mlResults"]
        assert ml["framework"] == "dask" and len(ml["selectedFeatures"]) == 50 and 0.5 < ml["accuracy"] <= 1, ml
        assert results["executionTime"] > 0 and results["iterations"] == 1, results
        scene.world.play(scene.ns, "feature-selection-profiling").delete()


def a_failed_and_a_cancelled_run():
    """wait on a run that really fails exits 1 with the reason; on one that is cancelled too"""
    with site.scene("default") as scene:
        for name, command in ("fails", ["/bin/false"]), ("sleeps", ["/bin/sleep", "300"]):
            code, _, err = step("--action", "profile", "--name", name, "--algorithm-name", name, "--algorithm-type", "custom",
                                "--input-size", "1", "--image", "any", "--command", *command)
            assert code == 0, err
        code, out, err = step("--action", "wait", "--name", "fails", "--resource-type", "AlgorithmProfiling")
        assert (code, out) == (1, "AlgorithmProfiling fails completed with status: Failed\n"), (code, out, err)
        assert "AlgorithmProfiling fails failed: " in err, err
        play = scene.world.play(scene.ns, "sleeps")
        play.phase("Running", PATIENCE)
        play.edit(cancel=True)
        code, out, err = step("--action", "wait", "--name", "sleeps", "--resource-type", "AlgorithmProfiling")
        assert (code, out) == (1, "AlgorithmProfiling sleeps completed with status: Cancelled\n"), (code, out, err)
        code, out, err = step("--action", "get-results", "--name", "sleeps", "--resource-type", "AlgorithmProfiling")
        assert (code, out) == (1, "") and "has no results: it is Cancelled" in err, (code, out, err)
        for name in "fails", "sleeps":
            scene.world.play(scene.ns, name).delete()


# --- for KFP v2 ------------------------------------------------------------------------------------------------------------------


def load_pipeline():
    with open(PIPELINE, encoding="utf-8") as f:
        names = {"__file__": PIPELINE, "__name__": "pipeline"}
        source = compile(f.read(), PIPELINE, "exec")
    exec(source, names)  # pylint: disable=exec-used
    return names


def the_component_is_what_kfp_takes():
    """component.yaml: known members, types, defaults and placeholders; every input is an option of the program, and the other way round"""
    sonde = kfp.components.load_component_from_file(COMPONENT)
    assert sonde.name == "sonde" and sonde.container["image"] == "dprofiler/kubeflow-component:latest"
    assert sonde.outputs == {"results": "system.Artifact", "metrics": "system.Metrics"}
    assert [n for n, i in sonde.inputs.items() if not i.optional] == ["action", "name"]
    help_text = subprocess.run([program("sonde"), "component", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    options = {line.split()[0] for line in help_text.split("Options:\n")[1].splitlines() if line.strip().startswith("--")}
    used = {w for w in sonde.words if w.startswith("--")}
    assert options - used == {"--command", "--args", "--algorithms-file", "--kubeconfig", "--context"} and used < options, options ^ used
    values = [w for w in sonde.words if w.startswith("{{$.inputs")]
    assert len(values) == len(set(values)) == len(sonde.inputs), "every input is passed, once"
    for name, spec in sonde.inputs.items():
        option = {"command": "--command-json", "args": "--args-json"}.get(name, "--" + name.replace("_", "-"))
        at = sonde.words.index(f"{{{{$.inputs.parameters['{name}']}}}}")
        assert sonde.words[at - 1] == option, (name, sonde.words[at - 1])
    for text, wrong in (("extra: 1", "unknown members"), ("inputs: [{name: a, type: Strin}]", "would silently be")):
        try:
            kfp.components.load_component_from_text(f"name: x\n{text}\nimplementation: {{container: {{image: i, command: [c]}}}}")
        except TypeError as e:
            assert wrong in str(e), e
        else:
            raise AssertionError(f"{text} was taken")


def the_pipeline_is_the_seed_s():
    """examples/kubeflow/pipeline.py: preprocess, profile, wait, get results, train, with the seed's arguments"""
    pipeline = load_pipeline()["ml_pipeline_with_profiling"]
    assert (pipeline.name, pipeline.description) == ("ML Pipeline with Profiling", "ML pipeline that includes algorithm profiling")
    order = pipeline.order()
    assert [t.display_name or t.component.name for t in order] == [
        "preprocess", "profile-feature-selection", "wait-for-profiling", "get-profiling-results", "train-model"], order
    for task, words in zip(order[1:4], STEPS):
        given = {n: v for n, v in task.arguments.items() if n != "namespace"}
        asked = {w[2:].replace("-", "_"): words[i + 1] for i, w in enumerate(words) if w.startswith("--")}
        given["name"] = pipeline.inputs[given["name"].name]
        assert {n: str(v) for n, v in given.items()} == asked, (given, asked)
        assert not task.caching, "what the step does is outside of the pipeline"
    assert order[4].arguments["profiling_results"] is order[3].outputs["results"]
    with tempfile.TemporaryDirectory(prefix="sonde-pipeline-") as folder:
        package = os.path.join(folder, "pipeline.yaml")
        subprocess.run([sys.executable, PIPELINE, package], check=True, env={**os.environ, "PYTHONPATH": os.path.join(HERE, "standin")})
        with open(package, encoding="utf-8") as f:
            assert len(json.load(f)) == 5


def make_pipeline():
    """The same steps as the example's, of a command that any machine has."""
    sonde = kfp.components.load_component_from_file(COMPONENT)

    @dsl.pipeline(name="small")
    def small(name: str = "small"):
        profile = sonde(action="profile", name=name, algorithm_name="echo", algorithm_type="custom", input_size=10, iterations=3,
                        image="any", command=["/bin/sh", "-c"], args=['echo "rows=$SONDE_INPUT_SIZE"; test "$0" = --name', "--name"])
        waits = sonde(action="wait", name=name, resource_type="AlgorithmProfiling").after(profile)
        sonde(action="get-results", name=name, resource_type="AlgorithmProfiling").after(waits)

    return small


def into_mlflow(results):
    """What a run really left, in MLflow: its figures, and its samples one by one."""
    with Mlflow() as server:
        done = subprocess.run([program("sonde"), "results", "ap/small", "-n", "default", "--to-mlflow", server.url], text=True, check=False,
                              capture_output=True, timeout=PATIENCE, env={**os.environ, "KUBECONFIG": site.server.kubeconfig})
        assert done.returncode == 0 and not done.stderr, done
        run = server.only_run()
        values = {(m["key"], m["step"]): m["value"] for m in run["metrics"]}
        assert values["executionTime", 0] == results["executionTime"], values
        assert sorted(values["samples/echo/executionTime", i] for i in (1, 2, 3))[1] == results["executionTime"], values
        assert run["info"]["status"] == "FINISHED" and run["info"]["start_time"] <= run["info"]["end_time"], run["info"]
        assert any(p.endswith("samples.csv") for p in server.artifacts), server.artifacts


def the_component_runs_as_the_launcher_runs_it():
    """component.yaml's command with its placeholders replaced: the request, its end, the results artifact, the metrics and what KFP shows"""
    pipeline, env = make_pipeline(), {"KUBECONFIG": site.server.kubeconfig}
    with site.scene("default") as scene, tempfile.TemporaryDirectory(prefix="sonde-launcher-") as folder:
        outputs = {}
        for task in pipeline.order():
            code, out, outputs = launch(task, pipeline.inputs, folder, {"sonde": program("sonde")}, env, PATIENCE)
            assert code == 0, (task.arguments, out)
        path, _ = outputs["results"]
        with open(path, encoding="utf-8") as f:
            results = json.load(f)
        assert results["iterations"] == 3 and results["metrics"]["rows"] == 10, results
        path, metadata = outputs["metrics"]
        with open(path, encoding="utf-8") as f:
            assert json.load(f) == metadata, metadata
        assert metadata["executionTime"] == results["executionTime"] and metadata["metrics.rows"] == 10, metadata
        assert all(isinstance(v, (int, float)) for v in metadata.values()), metadata
        train = load_pipeline()["train_model"]
        assert train.alone(dsl.Artifact(outputs["results"][0])) == "", "no model: no features"
        into_mlflow(results)
        scene.world.play(scene.ns, "small").delete()


def what_the_training_step_reads():
    """The training step takes the selected features out of the results artifact"""
    with tempfile.TemporaryDirectory(prefix="sonde-train-") as folder:
        path = os.path.join(folder, "results")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"mlResults": {"selectedFeatures": ["f3", "f7"]}}, f)
        names = load_pipeline()
        assert names["train_model"].alone(dsl.Artifact(path)) == "f3, f7"
        assert names["preprocess"].alone(50000) == 50000


with Site(real=False) as site:
    main(the_component_is_what_kfp_takes, the_pipeline_is_the_seed_s, what_the_training_step_reads,
         the_component_runs_as_the_launcher_runs_it, a_failed_and_a_cancelled_run, the_seed_s_steps_in_order)
