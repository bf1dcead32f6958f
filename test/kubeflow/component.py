#!/usr/bin/python3
"""`sonde component` against the API: what each action makes, waits for and hands on. No operator runs: the test writes the statuses.

    component.py             on the embedded engine
    component.py cluster     on a real control plane
"""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from algorithm_play import COMPARISONS, GROUP, PROFILINGS, World, now, ok
from sonde_test import Process, main, program

RESULTS = {"cpuUsage": 99, "executionTime": 1.5, "iterations": 1, "memoryUsage": 12,
           "mlResults": {"accuracy": 0.9, "framework": "dask", "selectedFeatures": ["f1", "f2"]}}
TERMINAL = ("Completed", "Failed", "Cancelled")


def component(*arguments, kubeconfig=None, stdin=None):
    """Exit status, standard output, standard error."""
    done = subprocess.run([program("sonde"), "component", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False, env={**os.environ, "KUBECONFIG": kubeconfig or world.server.kubeconfig})
    return done.returncode, done.stdout, done.stderr


def waiting(*arguments):
    return Process(program("sonde"), "component", "--action", "wait", "--namespace", ns, *arguments,
                   env={"KUBECONFIG": world.server.kubeconfig})


def path(name, plural=PROFILINGS):
    return f"{GROUP}/namespaces/{ns}/{plural}/{name}"


def get(name, plural=PROFILINGS):
    return ok(world.api.get(path(name, plural)))


def profile(name, *arguments):
    code, out, err = component("--action", "profile", "--name", name, "--namespace", ns, "--algorithm-name", "quick_sort",
                               "--input-size", "1000", *arguments)
    assert (code, out) == (0, f"Created AlgorithmProfiling: {name}\n"), (code, out, err)
    return get(name)


def report(name, phase, plural=PROFILINGS, **more):
    """Writes what an operator would."""
    true = {"Completed": "Ready", "Failed": "Stalled", "Cancelled": "Stalled", "Running": "Progressing"}.get(phase)
    reason = more.pop("reason", phase)
    conditions = [{"type": kind, "status": "True" if kind == true else "False", "reason": reason,
                   "message": "the process was killed (signal 9)", "lastTransitionTime": now()} for kind in ("Ready", "Stalled", "Progressing")]
    status = {"phase": phase, "observedGeneration": 1, "conditions": conditions, **more}
    ok(world.api.patch(f"{path(name, plural)}/status", {"status": status}))


# --- what is made --------------------------------------------------------------------------------------------------------------


def the_seed_s_profiling():
    """profile with the seed's arguments: its spec, its labels, and what it says"""
    code, out, err = component(
        "--action", "profile", "--name", "feature-selection-profiling", "--namespace", ns, "--algorithm-name", "feature_selection",
        "--algorithm-type", "ml", "--input-size", "50000", "--framework", "dask", "--task", "feature_selection", "--dataset-size",
        "50000", "--n-features", "200", "--n-select", "50")
    assert (code, out, err) == (0, "Created AlgorithmProfiling: feature-selection-profiling\n", ""), (code, out, err)
    made = get("feature-selection-profiling")
    assert made["metadata"]["labels"] == {"app": "dprofiler", "type": "ml", "kubeflow-component": "true"}, made["metadata"]
    spec = made["spec"]
    assert spec["mlConfig"] == {"framework": "dask", "task": "feature_selection", "datasetSize": 50000, "nFeatures": 200, "nSelect": 50}
    assert {k: spec[k] for k in ("algorithmName", "algorithmType", "inputSize", "iterations", "priority", "timeout")} == {
        "algorithmName": "feature_selection", "algorithmType": "ml", "inputSize": 50000, "iterations": 1, "priority": 5, "timeout": "1h"}


def flags_that_are_not_set_are_left_out():
    """Of ml flags that are not set the server's defaults count; nothing is null, and the API server takes it"""
    made = profile("unset", "--algorithm-type", "ml", "--framework", "", "--n-features", "0")
    assert made["spec"]["mlConfig"] == {"nSelect": 20}, made["spec"]
    assert "mlConfig" not in profile("sorting")["spec"]


def words_that_begin_with_dashes():
    """--command and --args take words that begin with --, also such as are options of ours"""
    made = profile("dashes", "--algorithm-type", "custom", "--image", "i", "--command", "python", "/app/train.py", "--args", "--config",
                   "/app/config.yaml", "-n", "5", "--help", "--iterations", "3")
    assert made["spec"]["customConfig"] == {"image": "i", "command": ["python", "/app/train.py"],
                                            "args": ["--config", "/app/config.yaml", "-n", "5", "--help"]}, made["spec"]
    assert made["spec"]["iterations"] == 3, made["spec"]
    made = profile("ours", "--algorithm-type", "custom", "--image", "i", "--args=--name", "--args=x", "--command", "p", "--", "--image", "j")
    assert made["spec"]["customConfig"] == {"image": "i", "command": ["p", "--image", "j"], "args": ["--name", "x"]}, made["spec"]


def a_comparison():
    """compare makes an AlgorithmComparison of a file's algorithms, parallel and with --timeout"""
    file = os.path.join(world.folder, "algorithms.json")
    algorithms = [{"name": "quick_sort", "parameters": {"pivot_strategy": "median"}}, {"name": "m", "type": "ml", "framework": "sklearn"}]
    with open(file, "w", encoding="utf-8") as f:
        json.dump(algorithms, f)
    code, out, err = component("--action", "compare", "--name", "c", "--namespace", ns, "--algorithms-file", file, "--input-size", "100",
                               "--iterations", "7")
    assert (code, out, err) == (0, "Created AlgorithmComparison: c\n", ""), (code, out, err)
    made = get("c", COMPARISONS)
    assert made["metadata"]["labels"] == {"app": "dprofiler", "type": "comparison", "kubeflow-component": "true"}, made["metadata"]
    spec = made["spec"]
    assert (spec["inputSize"], spec["iterations"], spec["parallel"], spec["timeout"]) == (100, 7, True, "1h"), spec
    assert spec["algorithms"] == [{**algorithms[0], "type": "sorting"}, algorithms[1]], spec


def what_cannot_be_made_is_said():
    """Wrong usage is 2, a refusal of the server is 1, both in one sentence"""
    made = ("--action", "profile", "--name", "x", "--namespace", ns)
    for arguments, words in (
            ((), "--action is needed: profile, compare, wait or get-results"),
            (("--action", "run", "--name", "x"), "--action: 'run' is not one of profile, compare, wait or get-results"),
            (("--action", "wait"), "--name is needed"),
            (("--action", "wait", "--name", "A_b"), "--name: 'A_b' is not a name in Kubernetes"),
            (("--action", "wait", "--name", "a"), "--resource-type is needed: AlgorithmProfiling or AlgorithmComparison"),
            (("--action", "wait", "--name", "a", "--resource-type", "ap"), "--resource-type: 'ap' is not one of"),
            (made, "--action profile needs --algorithm-name"),
            ((*made, "--algorithm-name", "a", "--algorithm-type", "deep"), "--algorithm-type: 'deep' is not one of sorting, ml or custom"),
            ((*made, "--algorithm-name", "a", "--input-size", "many"), "--input-size: 'many' is not a whole number"),
            (("--action", "compare", "--name", "x", "--algorithms", "{", "--input-size", "1"), "--algorithms: "),
            ((*made, "stray"), "component takes no arguments, and 'stray' is one")):
        code, out, err = component(*arguments)
        assert (code, out) == (2, "") and err.count("\n") == 1 and words in err, (arguments, code, out, err)
    code, out, err = component(*made, "--algorithm-name", "a", "--input-size", "1", "--algorithm-type", "ml", "--framework", "tensorflow")
    assert (code, out) == (1, "") and "spec.mlConfig.framework" in err and "tensorflow" in err, (code, out, err)
    profile("twice")
    code, out, err = component(*made[:2], "--name", "twice", "--namespace", ns, "--algorithm-name", "a", "--input-size", "1")
    assert (code, out) == (1, "") and f"AlgorithmProfiling twice is already there in namespace {ns}" in err, (code, out, err)
    code, out, err = component("--action", "compare", "--name", "x", "--algorithms-file", "/nowhere", "--input-size", "1")
    assert (code, out) == (1, "") and "/nowhere" in err, (code, out, err)
    code, out, err = component(*made, "--algorithm-name", "a", "--input-size", "1", "--framework", "dask", "--namespace", "does-not-exist")
    assert code == 1 and "--framework is not used with --algorithm-type sorting" in err and "does-not-exist" in err, (code, err)


# --- waiting ---------------------------------------------------------------------------------------------------------------------


def it_waits_for_the_end():
    """wait tells how far it is, and exits 0 when it has completed"""
    profile("w")
    with waiting("--name", "w", "--resource-type", "AlgorithmProfiling") as p:
        p.expect(r"^ap/w  Pending", 60)
        report("w", "Running", run={"attempt": 1}, progress={"percent": 41, "phase": "Measuring", "currentStep": 5, "totalSteps": 12, "message": "quick_sort"})
        p.expect(r"^ap/w  Running  Measuring  41 %  5/12  quick_sort$", 60)
        report("w", "Completed", results=RESULTS)
        assert p.wait(60) == 0, p.lines
        assert p.lines[-1] == "AlgorithmProfiling w completed with status: Completed", p.lines
    code, out, err = component("--action", "wait", "--namespace", ns, "--name", "w", "--resource-type", "AlgorithmProfiling")
    assert (code, out, err) == (0, "AlgorithmProfiling w completed with status: Completed\n", ""), (code, out, err)


def it_fails_when_the_run_has_not_succeeded():
    """wait exits 1 of a run that failed or was cancelled, and says why"""
    for phase, words in ("Failed", "failed: OOMKilled: the process was killed"), ("Cancelled", "was cancelled: "):
        name = phase.lower()
        profile(name)
        with waiting("--name", name, "--resource-type", "AlgorithmProfiling") as p:
            p.expect("^ap/", 60)
            report(name, phase, reason="OOMKilled" if phase == "Failed" else phase)
            assert p.wait(60) == 1, p.lines
            assert f"AlgorithmProfiling {name} completed with status: {phase}" in p.lines, p.lines
            assert any(words in line for line in p.lines), p.lines


def time_over_deleted_interrupted():
    """wait exits 124 when time is over, 1 when the request goes, 130 when it is interrupted; of none there is 1 at once"""
    profile("long")
    code, out, err = component("--action", "wait", "--namespace", ns, "--name", "long", "--resource-type", "AlgorithmProfiling",
                               "--wait-timeout", "1")
    assert (code, out) == (124, "") and "has not ended within 1 s" in err, (code, out, err)
    with waiting("--name", "long", "--resource-type", "AlgorithmProfiling") as p:
        p.expect("^ap/long", 60)
        p.signal(signal.SIGINT)
        assert p.wait(60) == 130, p.lines
    with waiting("--name", "long", "--resource-type", "AlgorithmProfiling", "--wait-timeout", "600") as p:
        p.expect("^ap/long", 60)
        ok(world.api.delete(path("long")))
        assert p.wait(60) == 1 and "was deleted before it had ended" in p.lines[-1], p.lines
    code, out, err = component("--action", "wait", "--namespace", ns, "--name", "long", "--resource-type", "AlgorithmProfiling")
    assert (code, out) == (1, "") and "long" in err and err.count("\n") == 1, (code, out, err)


# --- what came out ---------------------------------------------------------------------------------------------------------------


def get_results(name, *arguments, kind="AlgorithmProfiling"):
    return component("--action", "get-results", "--namespace", ns, "--name", name, "--resource-type", kind, *arguments)


def results_are_printed_or_written():
    """get-results prints status.results, or writes it with its directory, and the outputs of a pipeline"""
    profile("r")
    report("r", "Completed", results=RESULTS)
    code, out, err = get_results("r")
    assert (code, out, err) == (0, json.dumps(RESULTS, indent=2) + "\n", ""), (code, out, err)
    folder = os.path.join(world.folder, "a", "b")
    paths = {k: os.path.join(folder, k, "out.json") for k in ("file", "results", "metrics", "executor")}
    executor = {"inputs": {}, "outputs": {"outputFile": paths["executor"], "artifacts": {
        "results": {"artifacts": [{"name": "results", "type": {"schemaTitle": "system.Artifact"}, "uri": "minio://p/results"}]},
        "metrics": {"artifacts": [{"name": "metrics", "type": {"schemaTitle": "system.Metrics"}, "uri": "minio://p/metrics"}]}}}}
    code, out, err = get_results("r", "--output-file", paths["file"], "--results-path", paths["results"], "--metrics-path",
                                 paths["metrics"], "--executor-input", json.dumps(executor))
    assert (code, out, err) == (0, f"Results saved to {paths['file']}\n", ""), (code, out, err)
    read = {}
    for k, p in paths.items():
        with open(p, encoding="utf-8") as f:
            read[k] = json.load(f)
        assert os.listdir(os.path.dirname(p)) == ["out.json"], "nothing else is left there"
    metrics = {"executionTime": 1.5, "memoryUsage": 12, "cpuUsage": 99, "iterations": 1, "mlResults.accuracy": 0.9}
    assert read["file"] == read["results"] == RESULTS and read["metrics"] == metrics, read
    assert read["executor"] == {"artifacts": {"metrics": {"artifacts": [
        {"name": "metrics", "uri": "minio://p/metrics", "metadata": metrics}]}}}, read


def results_of_a_comparison():
    """The results of a comparison are its list, the metrics have each algorithm's name"""
    code, _, err = component("--action", "compare", "--name", "rc", "--namespace", ns, "--algorithms",
                             '[{"name": "quick_sort"}, {"name": "merge_sort"}]', "--input-size", "10")
    assert code == 0, err
    entries = [{"algorithmName": n, "executionTime": t} for n, t in (("quick_sort", 1.0), ("merge_sort", 2.5))]
    report("rc", "Completed", plural=COMPARISONS, results=entries)
    metrics = os.path.join(world.folder, "metrics.json")
    code, out, err = get_results("rc", "--metrics-path", metrics, kind="AlgorithmComparison")
    assert (code, json.loads(out), err) == (0, entries, ""), (code, out, err)
    with open(metrics, encoding="utf-8") as f:
        assert json.load(f) == {"quick_sort.executionTime": 1, "merge_sort.executionTime": 2.5}


def no_results_is_no_success():
    """get-results before the end, or of a run that failed, exits 1 with a sentence and leaves no file"""
    profile("early")
    file = os.path.join(world.folder, "early.json")
    code, out, err = get_results("early", "--output-file", file)
    assert (code, out) == (1, "") and "AlgorithmProfiling early has no results: it is Pending; wait for it" in err, (code, out, err)
    report("early", "Failed")
    code, out, err = get_results("early", "--output-file", file)
    assert (code, out) == (1, "") and "it is Failed: the process was killed" in err and not os.path.exists(file), (code, out, err)
    profile("nowhere")
    report("nowhere", "Completed", results=RESULTS)
    code, out, err = get_results("nowhere", "--output-file", "/proc/none/x.json")
    assert (code, out) == (1, "") and "/proc/none" in err and err.count("\n") == 1, (code, out, err)


# --- who asks --------------------------------------------------------------------------------------------------------------------


def as_other_commands_do():
    """--kubeconfig and --context mean what they mean elsewhere; a cluster that is not there is one sentence"""
    there = ("--action", "wait", "--name", "x", "--resource-type", "AlgorithmProfiling", "--kubeconfig")
    code, out, err = component(*there, "/nowhere")
    assert (code, out) == (1, "") and "/nowhere" in err, (code, out, err)
    code, out, err = component(*there, world.server.kubeconfig, "--context", "none")
    assert (code, out) == (1, "") and "none" in err and err.count("\n") == 1, (code, out, err)


which = "cluster" if "cluster" in sys.argv[1:] else "engine"
with World(which) as world, world.server.namespace("component") as ns:
    main(the_seed_s_profiling, flags_that_are_not_set_are_left_out, words_that_begin_with_dashes, a_comparison,
         what_cannot_be_made_is_said, it_waits_for_the_end, it_fails_when_the_run_has_not_succeeded, time_over_deleted_interrupted,
         results_are_printed_or_written, results_of_a_comparison, no_results_is_no_success, as_other_commands_do)
