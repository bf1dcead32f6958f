#!/usr/bin/python3
"""The REST API on the embedded engine: every path of its description once well and once badly, dProfiler's answers, the live
stream, who is refused, the API alone, TLS."""

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Engine, Process, main, program, wait
from web_client import Web

PATIENCE = 240
AP = "/apis/dprofiler.io/v1alpha1/namespaces/default/algorithmprofilings"
BAD_TOKEN = "no-token-of-anybody"


def ended(path):
    return wait(lambda: (lambda job: job if job["status"] in ("completed", "failed") else None)(web.get(path)[1]), PATIENCE,
                f"{path} has ended")


def job(**more):
    status, made = web.post("/api/v1/jobs", {"algorithm_name": "quick_sort", "input_size": 1000, **more})
    assert status == 200, made
    return made


def run_of(made):
    return f"/api/v1/runs/ap/{made['namespace']}/{made['name']}"


def create(name, **spec):
    status, made = engine.api().post(AP, {"apiVersion": "dprofiler.io/v1alpha1", "kind": "AlgorithmProfiling",
                                          "metadata": {"name": name, "labels": {"team": "a"}},
                                          "spec": {"algorithmName": "quick_sort", "inputSize": 1000, **spec}})
    assert status == 201, made
    return made


@contextlib.contextmanager
def held(name, **spec):
    """A run that goes on until the function is called that comes with it: what lasts a moment may be overtaken unseen."""
    with tempfile.TemporaryDirectory(prefix="sonde-web-", dir="/tmp") as place:
        os.chmod(place, 0o755)  # a run may look into it
        path = os.path.join(place, "go")
        made = create(name, algorithmName="held", algorithmType="custom", inputSize=1, warmup=0, customConfig={
            "image": "any", "command": ["/bin/sh", "-c", f"while [ ! -e {path} ]; do sleep 0.1; done"]}, **spec)
        yield made, lambda: open(path, "w", encoding="utf-8").close()


# ---- the description, and every path in it

def conforms(value, schema, document, where="answer"):
    """VALUE is as SCHEMA, of DOCUMENT, says."""
    names = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list,
             "null": type(None)}
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].split("/")[-1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    assert not kinds or any(isinstance(value, names[k]) and (k == "boolean" or not isinstance(value, bool)) for k in kinds), \
        f"{where}: {value!r} is not {kinds}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, f"{where} has no {name}: {value}"
        if schema.get("properties"):
            for name, member in value.items():
                assert name in schema["properties"], f"{where}.{name} is not described"
                conforms(member, schema["properties"][name], document, f"{where}.{name}")
    if isinstance(value, list):
        for one in value:
            conforms(one, schema.get("items", {}), document, where + "[]")


def calls():
    """For each path: how it is called well, and badly: (method, path, body), the status and what the answer must name."""
    made = job(iterations=3)
    other = job(iterations=3)
    for one in made, other:
        assert ended("/api/v1/jobs/" + one["job_id"])["status"] == "completed"
    run, gone = run_of(made), "/api/v1/runs/ap/default/nobody"
    create("waits", suspend=True)
    create("ends", suspend=True)
    node = web.get("/api/v1/workers")[1][0]["worker_id"]
    (row,) = web.get("/api/v1/history?name=" + made["name"])[1]["items"]
    series = urllib.parse.quote(row["measures"][0]["series"])
    model = {"dataset_size": 100, "n_features": 10}
    one = "/{resource}/{namespace}/{name}"
    versus = f"/api/v1/compare?run=ap/default/{made['name']}&run=ap/default/{other['name']}"
    return {
        ("get", "/health"): (("GET", "/health"), ("PUT", "/health", None, 405, "Method")),
        ("get", "/ready"): (("GET", "/ready"), ("DELETE", "/ready", None, 405, "Method")),
        ("get", "/metrics"): (("GET", "/metrics"), ("POST", "/metrics", None, 405, "Method")),
        ("get", "/api/v1/openapi.json"): (("GET", "/api/v1/openapi.json"), ("POST", "/api/v1/openapi.json", None, 405, "")),
        ("get", "/api/v1/session"): (("GET", "/api/v1/session"), ("PUT", "/api/v1/session", None, 405, "")),
        ("post", "/api/v1/session"): (("POST", "/api/v1/session", {"token": token}),
                                      ("POST", "/api/v1/session", {"tokens": 1}, 422, "token")),
        ("delete", "/api/v1/session"): (("DELETE", "/api/v1/session"), ("PATCH", "/api/v1/session", None, 405, "")),
        ("get", "/api/v1/runs"): (("GET", "/api/v1/runs?namespace=default&kind=ap&labelSelector=app%3Ddprofiler&life=succeeded"),
                                  ("GET", "/api/v1/runs?life=dead", None, 422, "life")),
        ("get", "/api/v1/runs/stream"): (None, ("GET", "/api/v1/runs/stream?kind=x", None, 422, "kind")),
        ("get", "/api/v1/runs" + one): (("GET", run), ("GET", "/api/v1/runs/job/default/x", None, 404, "job")),
        ("get", "/api/v1/runs" + one + "/events"): (("GET", run + "/events"), ("GET", gone + "/events", None, 404, "nobody")),
        ("get", "/api/v1/runs" + one + "/log"): (("GET", run + "/log?tailLines=5"),
                                                 ("GET", run + "/log?tailLines=0", None, 422, "tailLines")),
        ("get", "/api/v1/runs" + one + "/data"): (("GET", run + "/data"), ("GET", gone + "/data", None, 404, "nobody")),
        ("post", "/api/v1/runs" + one + "/cancel"): (("POST", "/api/v1/runs/ap/default/ends/cancel"),
                                                     ("POST", run + "/cancel", None, 409, "ended")),
        ("post", "/api/v1/runs" + one + "/suspend"): (("POST", "/api/v1/runs/ap/default/waits/suspend"),
                                                      ("POST", gone + "/suspend", None, 404, "nobody")),
        ("post", "/api/v1/runs" + one + "/resume"): (("POST", "/api/v1/runs/ap/default/waits/resume"),
                                                     ("POST", gone + "/resume", None, 404, "nobody")),
        ("post", "/api/v1/runs" + one + "/rerun"): (("POST", run + "/rerun"), ("POST", gone + "/rerun", None, 404, "nobody")),
        ("get", "/api/v1/history"): (("GET", "/api/v1/history?kind=ap&namespace=default&limit=5"),
                                     ("GET", "/api/v1/history?limit=0", None, 422, "limit")),
        ("get", "/api/v1/history/trend"): (("GET", "/api/v1/history/trend?series=" + series),
                                           ("GET", "/api/v1/history/trend", None, 422, "series")),
        ("get", "/api/v1/queue"): (("GET", "/api/v1/queue"), ("POST", "/api/v1/queue", None, 405, "")),
        ("get", "/api/v1/compare"): (("GET", versus), ("GET", "/api/v1/compare?run=ap/default/x", None, 422, "run")),
        ("post", "/api/v1/jobs"): (("POST", "/api/v1/jobs", {"algorithm_name": "merge_sort", "input_size": 10, "parameters": None,
                                                            "priority": 0}),
                                   ("POST", "/api/v1/jobs", {"algorithm_name": "merge_sort", "input_size": 0}, 422, "input_size")),
        ("get", "/api/v1/jobs"): (("GET", "/api/v1/jobs?page=1&per_page=2&status=completed&algorithm_name=quick_sort"),
                                  ("GET", "/api/v1/jobs?per_page=101", None, 422, "per_page")),
        ("get", "/api/v1/jobs/{job_id}"): (("GET", "/api/v1/jobs/" + made["job_id"]),
                                           ("GET", "/api/v1/jobs/default.nobody", None, 404, "Job not found")),
        ("get", "/api/v1/jobs/{job_id}/results"): (("GET", f"/api/v1/jobs/{made['job_id']}/results"),
                                                   ("GET", "/api/v1/jobs/default.nobody/results", None, 404, "Job not found")),
        ("delete", "/api/v1/jobs/{job_id}"): (("DELETE", "/api/v1/jobs/default.ends"),
                                              ("DELETE", "/api/v1/jobs/default.nobody", None, 404, "Job not found")),
        ("get", "/api/v1/workers"): (("GET", "/api/v1/workers"), ("POST", "/api/v1/workers", None, 405, "")),
        ("get", "/api/v1/workers/{worker_id}"): (("GET", "/api/v1/workers/" + node),
                                                 ("GET", "/api/v1/workers/nobody", None, 404, "Worker not found")),
        ("get", "/api/v1/metrics"): (("GET", "/api/v1/metrics?limit=1"),
                                     ("GET", "/api/v1/metrics?limit=1001", None, 422, "limit")),
        ("post", "/api/v1/compare"): (("POST", "/api/v1/compare", {"algorithms": ["quick_sort", "merge_sort"], "input_size": 100,
                                                                  "parameters_list": None, "iterations": 1}),
                                      ("POST", "/api/v1/compare", {"algorithms": ["bogo_sort"], "input_size": 100}, 422,
                                       "algorithms")),
        ("get", "/api/v1/algorithms"): (("GET", "/api/v1/algorithms"), ("DELETE", "/api/v1/algorithms", None, 405, "")),
        ("post", "/api/v1/ml/feature-selection"): (("POST", "/api/v1/ml/feature-selection?wait=0", model),
                                                   ("POST", "/api/v1/ml/feature-selection", {"method": "magic"}, 422, "method")),
        ("post", "/api/v1/ml/hyperparameter-tuning"): (("POST", "/api/v1/ml/hyperparameter-tuning?wait=0", model),
                                                       ("POST", "/api/v1/ml/hyperparameter-tuning", {"framework": "tf"}, 422,
                                                        "framework")),
        ("post", "/api/v1/ml/distributed-training"): (("POST", "/api/v1/ml/distributed-training?wait=0", model),
                                                      ("POST", "/api/v1/ml/distributed-training", {"iterations": 0}, 422,
                                                       "iterations")),
        ("post", "/api/v1/ml/compare-frameworks"): (("POST", "/api/v1/ml/compare-frameworks?wait=0", model),
                                                    ("POST", "/api/v1/ml/compare-frameworks", {"dataset_size": "x"}, 422,
                                                     "dataset_size")),
        ("get", "/api/v1/ml/summary"): (("GET", "/api/v1/ml/summary"), ("POST", "/api/v1/ml/summary", None, 405, "")),
        ("get", "/api/v1/ml/frameworks/available"): (("GET", "/api/v1/ml/frameworks/available"),
                                                     ("PUT", "/api/v1/ml/frameworks/available", None, 405, "")),
        ("get", "/api/v1/ml/algorithms/supported"): (("GET", "/api/v1/ml/algorithms/supported"),
                                                     ("PUT", "/api/v1/ml/algorithms/supported", None, 405, "")),
        ("post", "/api/v1/ml/cleanup"): (("POST", "/api/v1/ml/cleanup"), ("GET", "/api/v1/ml/cleanup", None, 405, "")),
    }


def every_path_is_called_once_well_and_once_badly():
    document = web.get("/api/v1/openapi.json")[1]
    assert document["openapi"] == "3.1.0"
    described = {(method, path) for path, methods in document["paths"].items() for method in methods}
    table = calls()
    assert set(table) == described, set(table) ^ described
    for (method, path), (well, badly) in table.items():
        responses = document["paths"][path][method]["responses"]
        success = next(code for code in responses if code.startswith("2"))
        if well:
            status, body = web(*well)
            assert str(status) == success, (well, status, body)
            content = responses[success].get("content", {})
            if "application/json" in content:
                conforms(body, content["application/json"]["schema"], document, f"{method} {path}")
        *call, want, name = badly
        status, body = web(*call)
        assert status == want, (badly, status, body)
        if want == 422:
            (complaint,) = body["detail"]
            assert set(complaint) == {"loc", "msg", "type"} and complaint["loc"][1] == name, body
            assert complaint["loc"][0] == ("body" if call[2] is not None else "query"), body
        else:
            assert name in body["detail"], (badly, body)


def all_paths_but_the_open_ones_want_a_token():
    document = web.get("/api/v1/openapi.json")[1]
    for path, methods in document["paths"].items():
        place = re.sub(r"\{(\w+)\}", lambda m: "ap" if m[1] == "resource" else "x", path)
        for method, operation in methods.items():
            status, body = nobody(method.upper(), place, {"token": BAD_TOKEN} if method == "post" else None)
            if operation.get("security") == []:
                assert status == (401 if method == "post" else 204 if method == "delete" else 200), (method, path, status)
            else:
                assert (status, body) == (401, {"detail": "Not authenticated"}), (method, path, status, body)


# ---- dProfiler

def a_job_is_an_algorithmprofiling():
    """dProfiler's job: made, listed, measured, deleted; each answer as upstream's, and the object is the custom resource"""
    made = job(parameters={"pivot_strategy": "random"}, priority=7, iterations=3)
    spec = engine.api().get(f"{AP}/{made['name']}")[1]["spec"]
    assert (spec["algorithmName"], spec["inputSize"], spec["priority"]) == ("quick_sort", 1000, 7), spec
    assert spec["parameters"] == {"pivot_strategy": "random"} and made["parameters"] == spec["parameters"], spec
    assert (made["status"], made["started_at"], made["error_message"]) == ("pending", None, None), made
    done = ended("/api/v1/jobs/" + made["job_id"])
    assert done["status"] == "completed" and done["started_at"] and done["completed_at"], done
    assert web.get("/api/v1/jobs/" + made["name"])[1] == web.get("/api/v1/jobs/" + made["job_id"])[1]
    (result,) = web.get(f"/api/v1/jobs/{made['job_id']}/results")[1]
    assert result["job_id"] == made["id"] and result["iterations"] == 3 and result["execution_time"] > 0, result
    page = web.get("/api/v1/jobs?per_page=1")[1]
    assert page["total_pages"] == page["total"] and len(page["jobs"]) == 1, page
    listed = web.get("/api/v1/jobs?per_page=100&algorithm_name=quick_sort&status=completed")[1]["jobs"]
    assert made["job_id"] in [one["job_id"] for one in listed], listed
    assert [one["created_at"] for one in listed] == sorted((one["created_at"] for one in listed), reverse=True), listed
    assert web("DELETE", "/api/v1/jobs/" + made["job_id"]) == (200, {"message": "Job deleted successfully"})
    wait(lambda: engine.api().get(f"{AP}/{made['name']}")[0] == 404, PATIENCE, "it is gone")


def an_unknown_algorithm_is_refused_by_name():
    status, body = web.post("/api/v1/jobs", {"algorithm_name": "bogo_sort", "input_size": 5})
    assert status == 422 and "bogo_sort" in body["detail"][0]["msg"] and "quick_sort" in body["detail"][0]["msg"], body
    status, body = web.post("/api/v1/jobs", {"algorithm_name": "quick_sort", "input_size": 5, "parameters": {"pivot": 1}})
    assert status == 422 and body["detail"][0]["loc"] == ["body", "parameters"], body
    status, body = web.post("/api/v1/jobs", "{")
    assert status == 422 and body["detail"][0]["loc"] == ["body"], body
    status, body = web.post("/api/v1/jobs?namespace=nowhere", {"algorithm_name": "quick_sort", "input_size": 5})
    assert status == 404 and "nowhere" in body["detail"], body


def a_comparison_runs():
    """dProfiler's comparison is an AlgorithmComparison, and runs"""
    status, made = web.post("/api/v1/compare", {"algorithms": ["quick_sort", "merge_sort"], "input_size": 500, "iterations": 2})
    assert (status, made["status"]) == (200, "pending"), made
    path = "/api/v1/runs/ac/" + made["comparison_id"].replace(".", "/", 1)
    run = wait(lambda: (lambda r: r if r["life"] in ("succeeded", "failed") else None)(web.get(path)[1]["run"]), PATIENCE)
    assert run["life"] == "succeeded", run
    results = web.get(path)[1]["object"]["status"]["results"]
    assert [r["algorithmName"] for r in results] == ["quick_sort", "merge_sort"], results


def a_model_that_takes_long_is_told_as_it_stands():
    """without its end within `wait` the answer has a status and an id, and nothing that was made up"""
    status, made = web.post("/api/v1/ml/feature-selection?wait=0", {"dataset_size": 100, "n_features": 5, "n_select": 2})
    assert status == 200 and made["status"] in ("pending", "running"), made
    assert made["algorithm_name"] == "filter_feature_selection" and made["execution_time"] is None, made
    spec = engine.api().get(f"{AP}/{made['job_id'].split('.', 1)[1]}")[1]["spec"]
    assert spec["mlConfig"] == {"framework": "sklearn", "task": "feature_selection", "datasetSize": 100, "nFeatures": 5,
                                "nSelect": 2} and spec["parameters"] == {"method": "filter"}, spec


def models_are_told_when_they_are_done():
    """each of the four, with what came out of it"""
    def done(path, **more):
        status, told = web.post(f"/api/v1/ml/{path}?wait=600", {"dataset_size": 200, "n_features": 6, **more})
        assert status == 200 and told["status"] == "completed" and "error_message" not in told, told
        return told
    told = done("feature-selection", n_select=2)
    assert told["selected_features_count"] == 2 and told["execution_time"] > 0 and told["memory_usage"] > 0, told
    told = done("hyperparameter-tuning", framework="sklearn", algorithm="logistic_regression")
    assert 0 <= told["accuracy"] <= 1 and told["best_params"], told
    told = done("distributed-training", framework="sklearn", algorithm="logistic_regression")
    assert 0 <= told["accuracy"] <= 1 and told["execution_time"] > 0, told
    told = done("compare-frameworks", algorithm="feature_selection")
    (row,) = [r for r in told["results"] if r["framework"] == "sklearn"]
    assert row["execution_time"] > 0 and row["selected_features_count"] and "error_message" not in row, told
    for row in told["results"]:
        assert row["execution_time"] or row["error_message"], row


# ---- runs

def a_run_is_told_with_all_that_it_has_left():
    with held("whole", iterations=3) as (thing, let_go):
        made = {"namespace": "default", "name": "whole", "uid": thing["metadata"]["uid"]}
        wait(lambda: web.get(run_of(made))[1]["run"].get("phase") == "Measuring", PATIENCE, "its phase")
        let_go()
        wait(lambda: web.get(run_of(made))[1]["run"]["life"] in ("succeeded", "failed"), PATIENCE, "its end")
    told = web.get(run_of(made))[1]
    assert told["run"]["life"] == "succeeded" and told["run"]["percent"] == 100, told["run"]
    assert told["object"]["metadata"]["uid"] == told["run"]["uid"] == made["uid"]
    assert web.get(run_of(made).replace("/ap/", "/algorithmprofilings/"))[1] == told
    reasons = wait(lambda: (lambda r: r if "Succeeded" in r else None)(
        [e["reason"] for e in web.get(run_of(made) + "/events")[1]["items"]]), PATIENCE, "the events")
    assert "Accepted" in reasons, reasons
    files = web.get(run_of(made) + "/data")[1]["files"]
    assert files["result.json"]["algorithms"] and files["samples.json"], list(files)
    phases = {phase["name"]: phase for phase in web.get(run_of(made) + "/data")[1]["track"]["phases"]}
    assert phases["Measuring"]["totalSteps"] == 3 and phases["Measuring"]["seconds"] > 0, phases
    (row,) = web.get("/api/v1/history?uid=" + made["uid"])[1]["items"]
    assert row["outcome"] == "Succeeded" and row["samples"], row
    again = web.post(run_of(made) + "/rerun")
    assert again[0] == 201 and again[1]["name"] == made["name"] + "-rerun-1", again
    assert web.post(run_of(made) + "/rerun")[1]["name"] == made["name"] + "-rerun-2"


def a_run_is_suspended_resumed_and_cancelled():
    create("steered", suspend=True)
    path = "/api/v1/runs/ap/default/steered"
    wait(lambda: web.get(path)[1]["run"]["life"] == "suspended", PATIENCE)
    waiting = web.get("/api/v1/runs?life=suspended&labelSelector=team%3Da")[1]["items"]
    assert "steered" in [run["name"] for run in waiting], waiting
    assert web.post(path + "/suspend")[0] == 200
    assert web.post(path + "/cancel")[0] == 200
    assert engine.api().get(f"{AP}/steered")[1]["spec"]["cancel"] is True
    wait(lambda: web.get(path)[1]["run"]["life"] == "cancelled", PATIENCE)
    status, body = web.post(path + "/resume")
    assert status == 409 and "ended" in body["detail"], body
    assert engine.api().get(f"{AP}/steered")[1]["spec"]["suspend"] is True


def changes_are_streamed():
    """sync, then every change once, then the end; a filter lets through what it says"""
    with web.stream("?kind=ap") as all_runs, web.stream("?labelSelector=team%3Db") as others, \
            web.stream("?life=succeeded&kind=ap") as good:
        for stream in all_runs, others, good:
            assert stream.status == 200
            event, data = stream.next()
            assert event == "sync" and isinstance(data["items"], list), (event, data)
        mine = lambda event, data: data["name"] == "streamed"
        with held("streamed", iterations=2) as (made, let_go):
            running, seen = all_runs.until(lambda event, data: mine(event, data) and data.get("life") == "running", PATIENCE)
            let_go()
            last, more = all_runs.until(lambda event, data: mine(event, data) and data.get("life") == "succeeded", PATIENCE)
        rows = [data for event, data in [*seen, ("run", running), *more] if mine(event, data)]
        assert rows[0]["life"] == "pending" and {"running"} <= {row["life"] for row in rows}, rows
        assert all(a != b for a, b in zip(rows, rows[1:] + [last])), "a row that has not changed was sent again"
        percents = [row["percent"] for row in rows if "percent" in row]
        assert percents == sorted(percents), percents
        found, _ = good.until(lambda event, data: event == "run" and mine(event, data), PATIENCE)
        assert found == last
        assert engine.api().delete(f"{AP}/streamed")[0] == 200
        gone, _ = all_runs.until(lambda event, data: event == "gone", PATIENCE)
        assert gone == {"uid": made["metadata"]["uid"], "resource": "ap", "namespace": "default", "name": "streamed"}, gone
        assert not [e for e in list(others.events.queue) if e[0] == "run"], "a run that its filter does not let through"


def what_waits_is_told_in_order():
    """the queue has exact places, priorities and limits, and says when the first one begins, which the others do not know"""
    with Engine("--no-fsync", "--page-listen", "127.0.0.1:0", "--max-concurrent-runs", "1") as other:
        page = other.process.expect(r"page: http://([\d.]+):(\d+)/#t=(\S+)", PATIENCE)
        here = Web((page[1], int(page[2])), page[3])
        for i in range(4):
            if i == 1:
                wait(lambda: here.get("/api/v1/runs/ap/default/q0")[1]["run"]["life"] == "running", PATIENCE, "the first runs")
            body = {"metadata": {"name": f"q{i}"}, "apiVersion": "dprofiler.io/v1alpha1", "kind": "AlgorithmProfiling",
                    "spec": {"algorithmName": "sleeper", "algorithmType": "custom", "inputSize": 1, "priority": 5 + (i == 3),
                             "iterations": 600, "warmup": 0, "customConfig": {"image": "x", "command": ["sleep", "0.5"]}}}
            assert other.api().post(AP, body)[0] == 201

        def queued():  # the places of those behind a new one are written after its own
            told = here.get("/api/v1/queue?namespace=default")[1]
            assert [item["position"] for item in told["items"]] == [1, 2, 3], told
            assert [(item["name"], item["priority"]) for item in told["items"]] == [("q3", 6), ("q1", 5), ("q2", 5)], told
            return told
        told = wait(queued, PATIENCE, "three in their order")
        assert told["limits"] == {"maxConcurrentRuns": 1, "maxConcurrentRunsPerNamespace": None}, told
        assert re.fullmatch(r"1 of 1 runs are under way \(ap/q\d\)", told["items"][0]["reason"]), told
        first = f"{told['items'][0]['resource']}/{told['items'][0]['name']}"

        def told_alike():  # the estimate may be written anew between two of these
            name = told["items"][0]["name"]
            status = other.api().get(f"{AP}/{name}")[1]["status"].get("queue", {}).get("expectedStart")
            items = here.get("/api/v1/queue?namespace=default")[1]["items"]
            run = next(r for r in here.get("/api/v1/runs")[1]["items"] if r["name"] == name)
            return status and items[0].get("expectedStart") and not items[1].get("expectedStart") and run.get("expectedStart") == status
        wait(told_alike, PATIENCE, "the first to be told when it begins, and it alone")
        said = subprocess.run([program("sonde"), "get", first, "--kubeconfig", other.kubeconfig], capture_output=True, text=True,
                              check=True, timeout=PATIENCE).stdout
        assert re.search(r"starts ~\d+[ms] ", said), said


# ---- who is refused

def tokens_are_checked():
    for bad in Web(address, BAD_TOKEN), Web(address, "x" * 8000):
        for path in "/api/v1/runs", "/api/v1/runs/ap/default/x", "/api/v1/jobs", "/api/v1/history", "/api/v1/workers":
            status, body = bad.get(path)
            assert status == 401 and "detail" in body, (path, status, body)
        assert bad.stream().status == 401
        assert bad.get("/api/v1/session") == (200, {"authenticated": False})
    assert nobody.post("/api/v1/session", {"token": BAD_TOKEN})[0] == 401
    assert BAD_TOKEN not in "\n".join(engine.process.lines)
    assert token not in "\n".join(line for line in engine.process.lines if "page:" not in line)


def a_token_is_exchanged_for_a_cookie():
    status, headers, _ = nobody.ask("POST", "/api/v1/session", {"token": token})
    cookie = headers["Set-Cookie"]
    name = f"sonde_token_{address[1]}"
    assert status == 204 and cookie == f"{name}={token}; HttpOnly; SameSite=Strict; Path=/", cookie
    with_cookie = {"Cookie": "a=b; " + cookie.split(";")[0]}
    assert nobody.get("/api/v1/session", headers=with_cookie) == (200, {"authenticated": True})
    assert nobody.get("/api/v1/runs", headers=with_cookie)[0] == 200
    for other in "x" + name, "sonde_token", name + "0":
        assert nobody.get("/api/v1/runs", headers={"Cookie": f"{other}={token}"})[0] == 401, other
    assert web.get("/api/v1/openapi.json")[1]["components"]["securitySchemes"]["cookie"]["name"] == name
    status, headers, _ = nobody.ask("DELETE", "/api/v1/session")
    assert status == 204 and headers["Set-Cookie"].startswith(name + "=;") and "Max-Age=0" in headers["Set-Cookie"], headers
    for host, wanted in ("localhost", "sonde_token"), ("[::1]", "sonde_token"), ("[::1]:80", "sonde_token_80"), \
            ("localhost:x", "sonde_token"), ("localhost:70000", "sonde_token"), ("sonde.example.com:443", "sonde_token_443"):
        cookie = nobody.ask("POST", "/api/v1/session", {"token": token}, headers={"Host": host})[1]["Set-Cookie"]
        assert cookie.startswith(wanted + "="), (host, cookie)


def two_on_one_machine_have_a_session_each():
    """a browser keeps one jar for all ports of a host"""
    with Engine("--no-fsync", "--page-listen", "127.0.0.1:0") as other:
        page = other.process.expect(r"page: http://([\d.]+):(\d+)/#t=(\S+)", PATIENCE)
        second, jar = Web((page[1], int(page[2]))), {}
        for one, secret in (nobody, token), (second, page[3]):
            name, value = one.ask("POST", "/api/v1/session", {"token": secret})[1]["Set-Cookie"].split(";")[0].split("=", 1)
            jar[name] = value
        for one in nobody, second:
            cookie = "; ".join("=".join(pair) for pair in jar.items())
            assert one.get("/api/v1/session", headers={"Cookie": cookie}) == (200, {"authenticated": True})


def other_sites_are_refused():
    here = "%s:%d" % address
    for origin in "http://evil.example", "null", "http://evil.example:%d" % address[1], "file://":
        status, body = web.get("/api/v1/runs", headers={"Origin": origin})
        assert status == 403 and "other sites" in body["detail"], (origin, status)
        assert web.get("/metrics", headers={"Origin": origin})[0] == 403
    assert web.get("/api/v1/runs", headers={"Origin": "http://" + here})[0] == 200
    assert web.get("/api/v1/runs", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert web.get("/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200, "a link from elsewhere leads to the page"
    for host in "evil.example", "evil.example:80", "127.0.0.1.evil.example", "sonde.svc", "", "[", "localhost.evil.example":
        status, _ = web.get("/api/v1/runs", headers={"Host": host})
        assert status in (400, 421), (host, status)
        assert nobody.get("/", headers={"Host": host})[0] in (400, 421)
    for host in "localhost", "localhost:1", "127.0.0.1", "[::1]:80", "sonde.example.com", "a.sonde.example.org":
        assert web.get("/api/v1/runs", headers={"Host": host})[0] == 200, host
    assert web.get("/api/v1/runs", headers={"Host": "sonde.example.org"})[0] == 421


def a_namespace_has_a_name_that_one_can_have():
    for path in "runs", "runs/stream", "history", "queue", "jobs", "ml/summary":
        for wrong in "A", "a.b", "a/b", "-a", "x" * 64, "%20":
            status, body = web.get(f"/api/v1/{path}?namespace={wrong}")
            assert status == 422 and body["detail"][0]["loc"] == ["query", "namespace"], (path, wrong, status, body)
    assert web.post("/api/v1/jobs?namespace=A", {"algorithm_name": "quick_sort", "input_size": 5})[0] == 422


def the_history_is_told_as_it_works():
    assert web.get("/health")[1]["database"]["connected"] is True, "runs have been kept in it"
    with Engine("--no-fsync", "--page-listen", "127.0.0.1:0") as other:
        page = other.process.expect(r"page: http://([\d.]+):(\d+)/#t=(\S+)", PATIENCE)
        assert Web((page[1], int(page[2]))).get("/health")[1]["database"]["connected"] is None, "it was not used yet"


def many_connections_are_allowed():
    """by as many descriptors as the process may have"""
    soft, hard = next(line.split()[3:5] for line in open(f"/proc/{engine.process.popen.pid}/limits", encoding="utf-8")
                      if line.startswith("Max open files"))
    assert soft == hard or int(soft) >= 8192, (soft, hard)


def what_is_too_much_is_refused():
    assert web.post("/api/v1/jobs", "x" * (1 << 20) + "x")[0] == 413
    assert web.post("/api/v1/jobs", {"algorithm_name": "x" * 100000, "input_size": 1})[0] == 422
    assert web.get("/api/v1/runs/ap/default/" + "x" * 40000)[0] in (414, 431)
    assert web.get("/api/v1/runs/ap/..%2f..%2f/x")[0] in (400, 404)
    assert web.get("/api/v1/runs/ap/default/%00")[0] == 404
    assert web.get("/api/v1/runs?labelSelector=a%3D%3D%3D")[0] == 422


def the_page_is_served():
    status, headers, body = nobody.ask("GET", "/", headers={"Accept-Encoding": "gzip"})
    assert status == 200 and headers["Content-Type"].startswith("text/html") and body, headers
    assert headers["Content-Security-Policy"].startswith("default-src 'self'"), headers
    assert (headers["X-Content-Type-Options"], headers["Referrer-Policy"]) == ("nosniff", "no-referrer"), headers
    assert nobody.ask("GET", "/", headers={"If-None-Match": headers["ETag"]})[0] == 304
    status, headers, plain = nobody.ask("GET", "/runs/ap/default/x")
    assert status == 200 and plain.lower().startswith(b"<!doctype html"), plain[:60]
    assert nobody.ask("GET", "/nothing.js")[0] == 404 and nobody.ask("POST", "/")[0] == 405


# ---- the operator

@contextlib.contextmanager
def operator(*arguments, lines=None):
    with Process(program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "0",
                 *arguments) as process:
        port = int(process.expect(r'"Serving the API and the page".*"port":(\d+)', PATIENCE)[1])
        if lines is not None:
            lines += process.lines
        yield port
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-10:]


def the_api_alone_serves_the_same():
    """--api-only: caches of its own, the same answers, and nothing is carried out"""
    with operator("--api-only", "--listen", "127.0.0.1:0") as port:
        alone = Web(("127.0.0.1", port), token)
        wait(lambda: alone.get("/ready")[0] == 200, PATIENCE)
        key = lambda run: run["uid"]
        wait(lambda: sorted(alone.get("/api/v1/runs")[1]["items"], key=key) == sorted(web.get("/api/v1/runs")[1]["items"], key=key),
             PATIENCE, "both say the same")
        assert alone.get("/api/v1/history")[0] == 404 and alone.get("/health")[1]["database"]["connected"] is False
        assert "limits" not in alone.get("/api/v1/queue")[1], "what is not known is not there"
        assert Web(("127.0.0.1", port), BAD_TOKEN).get("/api/v1/runs")[0] == 401
        with alone.stream("?kind=ap") as stream:
            assert stream.next()[0] == "sync"
            create("for-both", suspend=True)
            stream.until(lambda event, data: event == "run" and data["name"] == "for-both", PATIENCE)


def plain_beside_tls(port):
    """A probe and a scraper that know nothing of TLS are answered; whatever has to do with a token is not."""
    clear = Web(("127.0.0.1", port), token)
    assert clear.get("/metrics", headers={"Host": "dprofiler-api-service:8000"})[0] == 200
    assert clear.get("/health")[0] == 200 and clear.get("/ready")[0] in (200, 503)
    assert clear.get("/metrics", headers={"Host": "elsewhere.example"})[0] == 421
    for method, path in (("GET", "/"), ("GET", "/api/v1/runs"), ("GET", "/api/v1/openapi.json"), ("HEAD", "/"),
                         ("POST", "/metrics"), ("GET", "/metrics/"), ("GET", "/nothing")):
        status, headers, text = clear.ask(method, path)
        assert status == 426 and "TLS/1.2" in headers["Upgrade"], (method, path, status, headers)
        assert method == "HEAD" or json.loads(text) == {"detail": "this port speaks TLS; use https"}, text
    status, headers, _ = clear.ask("POST", "/api/v1/session", {"token": token})
    assert status == 426 and "Set-Cookie" not in headers, headers


def a_certificate_is_made_where_none_is_given():
    lines = []
    names = ("sonde.example.com", "dprofiler-api-service.dprofiler-system.svc", socket.gethostname(), "localhost")
    with operator("--api-only", "--listen", "0.0.0.0:0", *(f"--allowed-host={name}" for name in names[:2]), lines=lines) as port:
        pem = ssl.get_server_certificate(("127.0.0.1", port))
        digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest().upper()
        told = [line for line in lines if "Made a certificate" in line]
        assert len(told) == 1 and ":".join(digest[i:i + 2] for i in range(0, 64, 2)) in told[0], told
        context = ssl.create_default_context(cadata=pem)
        for name in names:
            with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw, server_hostname=name) as safe:
                assert safe.version() in ("TLSv1.2", "TLSv1.3")
        assert Web(("localhost", port), token, context).get("/api/v1/session") == (200, {"authenticated": True})
        plain_beside_tls(port)


def tls_unless_loopback():
    def refused(*arguments):
        done = subprocess.run([program("sonde"), "operator", "--kubeconfig", engine.kubeconfig, "--health-probe-bind-address", "0",
                               "--api-only", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stderr
    code, err = refused("--listen", "0.0.0.0:0", "--allowed-host", "a,b")
    assert code == 1 and "--listen: 'a,b' is no name of a host" in err, err
    code, err = refused("--listen", "0.0.0.0:0", "--tls-cert", "x")
    assert code == 1 and "give both files" in err, err
    assert refused()[0] == 2
    with tempfile.TemporaryDirectory() as place:
        cert, key = os.path.join(place, "c.pem"), os.path.join(place, "k.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                       check=True, capture_output=True)
        with operator("--api-only", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key) as port:
            safe = Web(("localhost", port), token, ssl.create_default_context(cafile=cert))
            assert safe.get("/api/v1/session") == (200, {"authenticated": True})
            for scheme, status in ("https", 200), ("http", 403):
                assert safe.get("/api/v1/runs", headers={"Origin": f"{scheme}://localhost:{port}"})[0] == status, scheme
            assert "; Secure" in safe.ask("POST", "/api/v1/session", {"token": token})[1]["Set-Cookie"]
            assert safe.get("/health", headers={"Host": "dprofiler-api-service.dprofiler-system.svc:8000"})[0] == 200
            plain_beside_tls(port)
    with operator("--api-only", "--listen", "0.0.0.0:0", "--plain-http") as port:
        assert Web(("127.0.0.1", port), token).get("/metrics", headers={"Host": "dprofiler-api-service:8000"})[0] == 200


with Engine("--no-fsync", "--page-listen", "127.0.0.1:0", "--allowed-host", "sonde.example.com", "--allowed-host",
            "*.sonde.example.org") as engine:
    found = engine.process.expect(r"page: http://([\d.]+):(\d+)/#t=(\S+)", PATIENCE)
    address, token = (found[1], int(found[2])), found[3]
    web, nobody = Web(address, token), Web(address)
    main(every_path_is_called_once_well_and_once_badly, all_paths_but_the_open_ones_want_a_token, a_job_is_an_algorithmprofiling,
         an_unknown_algorithm_is_refused_by_name, a_comparison_runs, a_model_that_takes_long_is_told_as_it_stands,
         models_are_told_when_they_are_done, a_namespace_has_a_name_that_one_can_have, many_connections_are_allowed,
         the_history_is_told_as_it_works,
         a_run_is_told_with_all_that_it_has_left, a_run_is_suspended_resumed_and_cancelled, changes_are_streamed,
         what_waits_is_told_in_order, tokens_are_checked, a_token_is_exchanged_for_a_cookie,
         two_on_one_machine_have_a_session_each, other_sites_are_refused,
         what_is_too_much_is_refused, the_page_is_served, the_api_alone_serves_the_same, tls_unless_loopback,
         a_certificate_is_made_where_none_is_given)
