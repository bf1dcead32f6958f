#!/usr/bin/python3
"""AlgorithmProfilings and AlgorithmComparisons from one end to the other: `sonde operator`, pods that really run, the real probe.

    e2e.py [whole] [NAME...]            on the embedded engine
    e2e.py cluster [whole] [NAME...]    on a real node, which needs root

The seeds' comparisons train 100 trees on 100000 rows, which takes more than a minute each time: without `whole` their inputSize,
and the profiling's datasetSize, are smaller here, and nothing else.
"""

import base64
import datetime
import gzip
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import yaml
from algorithm_play import GROUP, PROFILINGS, condition, ok
from algorithm_site import IMAGE, Site
from sonde_test import ROOT, diag, main, wait

PATIENCE = 200
SEEDS = os.path.join(ROOT, "examples/seeds")
SMALL = 2000
TRAINING = """\
import json, os, time
assert os.environ["MODEL_VERSION"] == "2.1.0", os.environ
time.sleep(0.1)
print("rows=%s" % os.environ["SONDE_INPUT_SIZE"])
with open(os.environ["SONDE_METRICS_FILE"], "w") as f:
    json.dump({"loss": 0.25}, f)
"""


def stalled(status):
    found = condition(status, "Stalled")
    return (found["reason"], found["message"]) if found.get("status") == "True" else (None, None)


def seed(name):
    """A seed's resource, as it is; in the short form with smaller inputs and no more than two iterations."""
    with open(os.path.join(SEEDS, f"dprofiler-{name}.yaml"), encoding="utf-8") as f:
        request = yaml.safe_load(f)
    spec = request["spec"]
    if not whole and "algorithms" in spec:
        spec["inputSize"] = SMALL
        spec["iterations"] = min(spec["iterations"], 2)
    if not whole and "mlConfig" in spec:
        spec["mlConfig"]["datasetSize"] = SMALL
    return request


def start(scene, request):
    kind = "ac" if request["kind"] == "AlgorithmComparison" else "ap"
    return scene.create(request["metadata"]["name"], request["spec"], kind=kind, labels=request["metadata"].get("labels"))


def patience():
    return 3600 if whole else PATIENCE


def samples(play, status):
    """What status.samplesRef leads to."""
    ref = status["samplesRef"]
    found = play.object(f"configmaps/{ref['configMap']}")
    if ref["key"].endswith(".gz"):
        return json.loads(gzip.decompress(base64.b64decode(found["binaryData"][ref["key"]])))
    return json.loads(found["data"][ref["key"]])


# --- what is built in ------------------------------------------------------------------------------------------------------


def a_sorting_algorithm():
    """quick_sort over three sizes: figures, samples, the exponent; the Job is dprofiler-NAME, with the request's labels"""
    with site.scene() as scene:
        play = scene.create("quick", {"algorithmName": "quick_sort", "inputSize": 40000, "inputSizes": [80000, 160000], "iterations": 8,
                                      "parameters": {"pivot_strategy": "median"}}, labels={"team": "a"})
        status = play.phase("Completed", PATIENCE)
        results = status["results"]
        assert results["executionTime"] > 0 and results["memoryUsage"] > 0 and results["n"] == 8, results
        assert [s["inputSize"] for s in results["sizes"]] == [40000, 80000, 160000], results
        assert status["jobId"] == "dprofiler-quick" and status["startTime"] <= status["completionTime"], status
        (scaling,) = status["scaling"]
        assert scaling["ciLow"] <= scaling["exponent"] <= scaling["ciHigh"], scaling
        assert status["statistics"]["unit"] == "process in one pod" and status["statistics"]["machine"]["cpu"], status["statistics"]
        assert len(samples(play, status)["rows"]) == 27, "three sizes, 8 runs and one before"
        for path in f"/apis/batch/v1/namespaces/{scene.ns}/jobs", f"/api/v1/namespaces/{scene.ns}/pods":
            assert len(scene.world.api.names(path, "team=a,app=dprofiler")) == 1
        assert condition(status, "Ready")["status"] == "True", status
        percents = [s["progress"]["percent"] for s in scene.statuses(PROFILINGS, "quick") if "percent" in s.get("progress", {})]
        assert percents == sorted(percents) and percents[-1] == 100, percents


def an_unknown_name():
    """An unknown algorithm, parameter, and a custom one without a command are refused before a Job exists"""
    with site.scene() as scene:
        cases = {"a": ({"algorithmName": "bogo_sort", "inputSize": 1}, "bogo_sort"),
                 "b": ({"algorithmName": "quick_sort", "inputSize": 1, "parameters": {"pivot": 1}}, "pivot"),
                 "c": ({"algorithmName": "c", "algorithmType": "custom", "inputSize": 1, "customConfig": {"image": "i"}},
                       "the image's entrypoint cannot be seen; set customConfig.command")}
        for name, (spec, words) in cases.items():
            status = scene.create(name, spec).phase("Failed", PATIENCE)
            reason, sentence = stalled(status)
            assert reason == "Invalid" and words in sentence, (reason, sentence)
        assert not scene.made("jobs")


def algorithms_against_each_other():
    """A comparison in two images: bubble_sort is slower than quick_sort, and says so; one that fails does not discard the others"""
    with site.scene() as scene:
        play = scene.create("three", {
            "algorithms": [{"name": "quick_sort"}, {"name": "bubble_sort"},
                           {"name": "mine", "type": "custom", "customConfig": {"image": IMAGE, "command": ["/bin/true"]}},
                           {"name": "broken", "type": "custom", "customConfig": {"image": IMAGE, "command": ["/bin/sh", "-c", "exit 3"]}}],
            "inputSize": 3000, "iterations": 10, "baseline": "quick_sort"}, kind="ac")
        status = play.phase("Completed", PATIENCE)
        by_name = {r["algorithmName"]: r for r in status["results"]}
        assert list(by_name) == ["quick_sort", "bubble_sort", "mine", "broken"], status["results"]
        assert by_name["bubble_sort"]["verdict"] == "slower" and by_name["bubble_sort"]["ratio"] > 2, by_name
        assert by_name["mine"]["executionTime"] > 0 and "error" not in by_name["mine"], by_name
        assert "3" in by_name["broken"]["error"]["message"] and "executionTime" not in by_name["broken"], by_name
        assert status["comparison"]["baseline"] == "quick_sort" and status["comparison"]["summary"], status["comparison"]
        pod = play.object("jobs/dprofiler-three")["spec"]["template"]["spec"]
        assert [c["name"] for c in pod["containers"]] == ["coordinator", "group-1", "relay"], pod["containers"]
        diag(status["comparison"]["summary"])


def one_run_says_nothing():
    """iterations 1 is always inconclusive, with how many more runs are needed"""
    with site.scene() as scene:
        play = scene.create("once", {"algorithms": [{"name": "quick_sort"}, {"name": "bubble_sort"}], "inputSize": 2000}, kind="ac")
        status = play.phase("Completed", PATIENCE)
        pairs = [p for p in status["comparison"]["pairs"] if p["of"] == "time"]
        assert pairs and all(p["verdict"] == "inconclusive" and p["needed"] > 1 for p in pairs), pairs


def one_pod_after_another():
    """pods: 2 makes two Jobs, one after the other, and a pod is what is counted"""
    with site.scene() as scene:
        play = scene.create("pods", {"algorithmName": "merge_sort", "inputSize": 2000, "iterations": 3, "pods": 2})
        status = play.phase("Completed", PATIENCE)
        assert scene.made("jobs") == ["dprofiler-pods", "dprofiler-pods-2"], scene.made("jobs")
        told, nodes = status["pods"], ok(scene.world.api.get("/api/v1/nodes"))["items"]
        assert status["statistics"]["unit"] == "pod" and told == {"done": 2, "total": 2, "attempt": 2, "node": told["node"]}, status
        assert told["node"] in [node["metadata"]["name"] for node in nodes] and status["statistics"]["machine"]["node"] == told["node"], status
        assert status["run"]["retries"] == 0, status["run"]


# --- what people do ----------------------------------------------------------------------------------------------------------


def cancelled_and_timed_out():
    """cancel ends as Cancelled, timeout as Failed with DeadlineExceeded; what is used right now is told meanwhile"""
    slow = {"algorithmName": "slow", "algorithmType": "custom", "inputSize": 1,
            "customConfig": {"image": IMAGE, "command": ["/bin/sleep", "300"]}}
    with site.scene() as scene:
        play, other = scene.create("cancel", slow), scene.create("late", {**slow, "timeout": "5s"})
        status = play.wait(lambda s: "memoryMb" in s.get("progress", {}).get("usage", {}), "usage", PATIENCE)
        assert status["phase"] == "Running" and status["progress"]["totalIterations"] == 1, status
        play.edit(cancel=True)
        status = play.phase("Cancelled", PATIENCE)
        assert stalled(status)[0] == "Cancelled", status
        status = other.phase("Failed", PATIENCE)
        assert stalled(status)[0] == "DeadlineExceeded", status
        # A kubelet of 1.20 on a busy machine has taken minutes to let go of pods whose containers had ended.
        wait(lambda: not play.jobs() and not other.jobs(), (3 if site.real else 1) * PATIENCE, "the Jobs to go")


def it_goes_after_its_time():
    """ttlSecondsAfterFinished deletes the request, with all that belongs to it"""
    with site.scene() as scene:
        play = scene.create("ttl", {"algorithmName": "quick_sort", "inputSize": 100, "ttlSecondsAfterFinished": 2})
        wait(lambda: scene.world.api.get(play.path)[0] == 404, PATIENCE, "the request to go")
        assert "Completed" in [s.get("phase") for s in scene.statuses(PROFILINGS, "ttl")]
        wait(lambda: not play.jobs() and not play.object("configmaps/ttl-run-results"), PATIENCE, "nothing to be left")


def again_and_again():
    """A schedule makes requests: of years in which nobody looked the last one alone; it runs, and all go with the template"""
    with site.scene() as scene:
        template = scene.create("yearly", {"algorithmName": "quick_sort", "inputSize": 100, "schedule": {"cron": "0 0 1 1 *"}},
                                labels={"team": "a"})
        status = template.wait(lambda s: "nextScheduleTime" in s, "the next one")
        assert "lastScheduleTime" not in status and status["phase"] == "Pending", status
        ok(scene.world.api.patch(f"{template.path}/status", {"status": {"schedule": {"since": "2020-06-01T00:00:00Z"}}}))
        status = template.wait(lambda s: "lastRun" in s, "one that has ended", PATIENCE)
        due = datetime.datetime.fromisoformat(status["lastScheduleTime"].replace("Z", "+00:00"))
        assert (due.month, due.day, due.hour) == (1, 1, 0) and due.year > 2025, status
        assert status["lastRun"]["name"] == f"yearly-{int(due.timestamp()) // 60}", status
        assert status["lastRun"]["phase"] == "Completed" and status["active"] == [], status
        profilings = f"{GROUP}/namespaces/{scene.ns}/{PROFILINGS}"
        names = scene.world.api.names(profilings, "team=a")
        assert len(names) == 2, names
        template.delete()
        wait(lambda: not scene.world.api.names(profilings), PATIENCE, "all to go")


# --- the seeds ---------------------------------------------------------------------------------------------------------------


def custom_seed():
    """The seed's custom request: any image and command, with env and args; its figures and its own metrics"""
    request = seed("production-model-profiling")
    config = request["spec"]["customConfig"]
    if site.real:
        config.update(image=IMAGE, command=["/usr/bin/python3", "-c", TRAINING])
    else:  # commands run from the machine's files
        path = os.path.join(site.folder, "train_model.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(TRAINING)
        config.update(command=["/usr/bin/python3", path])
    with site.scene() as scene:
        play = start(scene, request)
        status = play.phase("Completed", patience())
        results = status["results"]
        assert results["executionTime"] > 0.1 and results["memoryUsage"] > 1 and results["cpuUsage"] > 0, results
        assert results["metrics"] == {"rows": 500000, "loss": 0.25}, results
        found = scene.world.api.names(f"{GROUP}/namespaces/{scene.ns}/{PROFILINGS}", "environment=production")
        assert found == ["production-model-profiling"], found


def comparison_seed():
    """The seed's comparison completes: sklearn and dask with an accuracy, spark failed as FrameworkUnavailable; contended, as parallel says"""
    with site.scene() as scene:
        play = start(scene, seed("model-training-comparison"))
        status = play.phase("Completed", patience())
        by_name = {r["algorithmName"]: r for r in status["results"]}
        assert list(by_name) == ["sklearn_training", "dask_training", "spark_training"], by_name
        assert by_name["spark_training"]["error"]["reason"] == "FrameworkUnavailable", by_name["spark_training"]
        for name in "sklearn_training", "dask_training":
            assert by_name[name]["n"] == play.get()["spec"]["iterations"] and 0.6 < by_name[name]["accuracy"] <= 1, by_name[name]
            assert by_name[name]["mlResults"]["parameters"]["n_estimators"] == 100, by_name[name]["mlResults"]
        assert status["statistics"]["contended"] is True, status["statistics"]


def ab_seed():
    """The seed's A/B test completes, one after the other, with both models read back as they were asked for"""
    with site.scene() as scene:
        play = start(scene, seed("ab-testing-comparison"))
        status = play.phase("Completed", patience())
        asked = [r["mlResults"]["parameters"] for r in status["results"]]
        assert [(p["n_estimators"], p["max_depth"]) for p in asked] == [(100, 10), (200, 15)], asked
        assert status["statistics"]["contended"] is False, status["statistics"]
        assert len(scene.world.api.names(f"/api/v1/namespaces/{scene.ns}/pods", "experiment-id=exp-456")) == 1


def ray_seed():
    """The seed's ray request fails with FrameworkUnavailable and its remedy, and completes once it is set to sklearn"""
    with site.scene() as scene:
        play = start(scene, seed("team-a-model-profiling"))
        status = play.phase("Failed", patience())
        reason, sentence = stalled(status)
        assert reason == "FrameworkUnavailable" and "ray" in sentence, (reason, sentence)
        diag(sentence)
        play.edit(mlConfig={"framework": "sklearn"})
        play.wait(lambda s: s.get("phase") != "Failed", "another attempt", PATIENCE)
        status = play.phase("Completed", patience())
        assert status["jobId"] == "dprofiler-team-a-model-profiling-2", status
        assert 0.6 < status["results"]["mlResults"]["accuracy"] <= 1, status["results"]


def a_restart_runs_nothing_again():
    """The operator is killed and started again: what has ended stays as it is, what runs goes on, nothing is made twice"""
    with site.scene() as scene:
        done = scene.create("done", {"algorithmName": "quick_sort", "inputSize": 1000})
        failed = scene.create("failed", {"algorithmName": "x", "algorithmType": "custom", "inputSize": 1,
                                         "customConfig": {"image": IMAGE, "command": ["/bin/false"]}})
        done.phase("Completed", PATIENCE)
        failed.phase("Failed", PATIENCE)
        busy = scene.create("busy", {"algorithmName": "x", "algorithmType": "custom", "inputSize": 1, "iterations": 3,
                                     "customConfig": {"image": IMAGE, "command": ["/bin/sleep", "2"]}})
        busy.wait(lambda s: s.get("phase") == "Running", "Running", PATIENCE)
        before = [p.get() for p in (done, failed)]
        scene.process.signal(signal.SIGKILL)
        scene.process.stop(60)
        with scene.operator() as scene.process:
            busy.phase("Completed", PATIENCE)
            assert [p.get() for p in (done, failed)] == before
            assert sorted(scene.made("jobs")) == ["dprofiler-busy", "dprofiler-done", "dprofiler-failed"], scene.made("jobs")


TESTS = [a_sorting_algorithm, an_unknown_name, algorithms_against_each_other, one_run_says_nothing, one_pod_after_another,
         cancelled_and_timed_out, it_goes_after_its_time, again_and_again, custom_seed, comparison_seed, ab_seed, ray_seed, a_restart_runs_nothing_again]


def root_is_needed():
    """A node can only be started by root"""
    diag("not root: no node can be started, so nothing runs in a pod")


words = sys.argv[1:]
real = words[:1] == ["cluster"]
words = words[1:] if real else words
whole = words[:1] == ["whole"]
names = words[1:] if whole else words
if real and os.getuid() != 0:
    main(root_is_needed)
with Site(real) as site:
    main(*[t for t in TESTS if not names or t.__name__ in names])
