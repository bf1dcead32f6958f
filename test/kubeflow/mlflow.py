#!/usr/bin/python3
"""`sonde results --to-mlflow` against a server that is as strict as MLflow's. The runs are written by the test, on the embedded engine.

    mlflow.py             on the embedded engine
    mlflow.py cluster     on a real control plane
"""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from algorithm_play import COMPARISONS, GROUP, PROFILINGS, World, measured, now, ok, result
from mlflow_server import Mlflow
from sonde_test import Process, main, program

BEGAN = 1_700_000_000  # when the first sample was taken
ROWS = 400


def environment(**more):
    return {**os.environ, "KUBECONFIG": world.server.kubeconfig, **more}


def log(run, url, *arguments, **more):
    """Exit status, standard output, standard error."""
    done = subprocess.run([program("sonde"), "results", run, "-n", ns, "--to-mlflow", url, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False, env=environment(**more))
    return done.returncode, done.stdout, done.stderr


def samples(rows=ROWS, sizes=(1000,)):
    """As a run leaves them: one before the first that counts, and one that failed."""
    columns = ["algorithm", "size", "pod", "iteration", "failure", "started", "time", "memory", "cpuPercent"]
    table = [["quick_sort", size, 1, i, "exit 1" if i == 3 else None, BEGAN + i, 0.5 + i / 1000, 2_000_000, 99.5]
             for size in sizes for i in range(-1, rows + 1)]
    return {"version": 1, "columns": columns, "rows": table}


def finished(name, phase="Completed", kind="ap", taken=None, spec=None, **status):
    """A run that has ended, with what it left in its ConfigMap."""
    play = world.create(ns, name, spec, kind=kind)
    good = phase == "Completed"
    conditions = [{"type": t, "status": "True" if (t == "Ready") == good else "False", "reason": phase, "lastTransitionTime": now(),
                   "message": "1.5 s (1.4-1.6 s)" if good else "it was too slow"} for t in ("Ready", "Stalled")]
    results = {"executionTime": 1.5, "memoryUsage": 2.0, "cpuUsage": 99.0, "iterations": 5, "n": 5, "ciLow": 1.4, "ciHigh": 1.6}
    ok(world.api.patch(f"{GROUP}/namespaces/{ns}/{PROFILINGS if kind == 'ap' else COMPARISONS}/{name}/status", {"status": {
        "phase": phase, "observedGeneration": 1, "conditions": conditions, "run": {"attempt": 1},
        "progress": {"startedAt": "2023-11-14T22:13:20Z"}, **({"results": results} if kind == "ap" and good else {}), **status}}))
    data = {"result.json": json.dumps(result(measured("quick_sort"))), "samples.json": json.dumps(taken or samples())}
    suffix = "run-results" if kind == "ap" else "comparison-run-results"
    ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": f"{name}-{suffix}"}, "data": data if good else {}}))
    return play


# --- what is logged ----------------------------------------------------------------------------------------------------------------


def all_of_a_run():
    """Params, tags, metrics with their intervals, every sample with its time and step, artifacts; FINISHED, in an experiment that is made"""
    with Mlflow() as server:
        code, out, err = log("ap/whole", server.url, "--experiment", "nightly sorts", "--run-name", "first")
        assert (code, err) == (0, ""), (code, out, err)
        run = server.only_run()
        assert out.splitlines()[0].startswith(f"Logged as run {run['info']['run_id']} of MLflow's experiment nightly sorts: "), out
        assert out.splitlines()[1] == f"{server.url}/#/experiments/1/runs/{run['info']['run_id']}", out
        info = run["info"]
        assert (info["status"], info["run_name"], info["experiment_id"]) == ("FINISHED", "first", server.experiments["nightly sorts"]), info
        assert info["start_time"] == BEGAN * 1000 and info["end_time"] > info["start_time"], info
        assert run["params"]["algorithmName"] == "quick_sort" and run["params"]["inputSize"] == "1000", run["params"]
        tags = run["tags"]
        assert tags["sonde.kind"] == "AlgorithmProfiling" and tags["sonde.namespace"] == ns and tags["mlflow.source.name"] == "sonde", tags
        metrics = {}
        for m in run["metrics"]:
            metrics.setdefault(m["key"], []).append(m)
        assert [m["value"] for m in metrics["executionTime"]] == [1.5], metrics["executionTime"]
        assert (metrics["executionTime_low"][0]["value"], metrics["executionTime_high"][0]["value"]) == (1.4, 1.6), metrics
        times = metrics["samples/quick_sort/executionTime"]
        assert len(times) == ROWS and [m["step"] for m in times] == list(range(1, ROWS + 1)), "the one before and the failed one do not count"
        assert times[0] == {"key": times[0]["key"], "value": 0.5, "timestamp": BEGAN * 1000, "step": 1}, times[0]
        assert metrics["samples/quick_sort/memoryUsage"][0]["value"] == 2.0, "in MB, as the result"
        assert sum(len(m) for m in metrics.values()) > 1000 and server.asked.count("runs/log-batch") >= 3, server.asked
        root = f"{info['experiment_id']}/{info['run_id']}/artifacts/"
        assert {p.removeprefix(root) for p in server.artifacts} >= {"results.json", "results.html", "samples.csv", "result.json"}, server.artifacts
        assert json.loads(server.artifacts[root + "result.json"])["algorithms"][0]["name"] == "quick_sort"
        assert server.asked[-1] == "runs/update", server.asked


def more_than_one_request_takes():
    """100 params and 1000 metrics a request at most; long values are cut; an experiment that is there is used"""
    spec = {"algorithms": [{"name": f"mine-{i}", "type": "custom", "customConfig": {"image": "i", "command": ["x" * 900]}} for i in range(40)],
            "inputSize": 10}
    finished("many", kind="ac", spec=spec, taken=samples(700, (10, 20)),
             results=[{"algorithmName": f"mine-{i}", "executionTime": i + 0.5} for i in range(40)])
    with Mlflow() as server:
        for _ in range(2):
            code, out, err = log("ac/many", server.url)
            assert (code, err) == (0, ""), (code, out, err)
        assert list(server.experiments) == ["Default", "sonde"] and server.asked.count("experiments/create") == 1, server.experiments
        assert len(server.runs) == 2, "one run each time"
        run = next(iter(server.runs.values()))
        assert run["info"]["run_name"] == "ac/many" and len(run["params"]) > 100, run["params"]
        assert max(map(len, run["params"].values())) == 500, "cut"
        keys = {m["key"] for m in run["metrics"]}
        assert {"samples/quick_sort/10/executionTime", "samples/quick_sort/20/executionTime", "mine-7/executionTime"} <= keys, keys
        assert len(run["metrics"]) > 4000, len(run["metrics"])


def a_run_that_failed_is_logged_as_failed():
    """A run that failed is FAILED there, one that was cancelled KILLED, each with its reason"""
    for phase, status in ("Failed", "FAILED"), ("Cancelled", "KILLED"):
        finished(phase.lower(), phase)
        with Mlflow() as server:
            code, _, err = log(f"ap/{phase.lower()}", server.url)
            assert (code, err) == (0, ""), (code, err)
            run = server.only_run()
            assert run["info"]["status"] == status and run["tags"]["mlflow.note.content"] == "it was too slow", run


def artifacts_elsewhere():
    """Where MLflow keeps artifacts in an object store, the rest is logged, and what was not uploaded is named"""
    with Mlflow(served=False) as server:
        code, out, err = log("ap/whole", server.url)
        assert code == 0 and "0 artifacts" in out, (code, out, err)
        assert "not uploaded: results.json, results.html" in err and "s3://bucket/" in err and err.count("\n") == 1, err
        assert server.only_run()["info"]["status"] == "FINISHED" and not server.artifacts


# --- what goes wrong -----------------------------------------------------------------------------------------------------------------


def nothing_is_left_running():
    """Whatever fails after the run was made, it is ended as FAILED, and the sentence says what was refused"""
    for what, after in ("runs/log-batch", 0), ("runs/log-batch", 2), ("runs/update", 0):
        with Mlflow(fail={what: after}) as server:
            code, out, err = log("ap/whole", server.url)
            assert (code, out) == (1, "") and err.count("\n") == 1, (code, out, err)
            assert f"refuses {what}: 500 INTERNAL_ERROR: the database is away" in err, err
            left = what == "runs/update"
            assert server.only_run()["info"]["status"] == ("RUNNING" if left else "FAILED"), server.only_run()
            assert ("is left as RUNNING, because" if left else "was ended as FAILED") in err, err
    for what in "experiments/get-by-name", "experiments/create", "runs/create":
        with Mlflow(fail={what: 0}) as server:
            code, out, err = log("ap/whole", server.url)
            assert (code, out) == (1, "") and f"refuses {what}: 500" in err and not server.runs, (code, out, err)


def interrupted():
    """Ctrl-C in the middle ends the run as KILLED"""
    with Mlflow(hold="runs/log-batch") as server:
        with Process(program("sonde"), "results", "ap/whole", "-n", ns, "--to-mlflow", server.url, env=environment()) as p:
            assert server.held.wait(60)
            p.signal(signal.SIGINT)
            assert p.wait(60) == 130, p.lines
        assert "interrupted; the run" in p.lines[-1] and "was ended as KILLED" in p.lines[-1], p.lines
        assert server.only_run()["info"]["status"] == "KILLED", server.only_run()


def who_may_log():
    """--token-file is the bearer token; without it, or with another, one sentence says so, and the token is nowhere"""
    file = os.path.join(world.folder, "token")
    with Mlflow(token="s3cret-word") as server:
        for text, good in (None, False), ("wrong-word", False), ("s3cret-word\n", True):
            if text:
                with open(file, "w", encoding="utf-8") as f:
                    f.write(text)
            code, out, err = log("ap/whole", server.url, *(["--token-file", file] if text else []))
            assert code == (0 if good else 1), (text, out, err)
            assert good or "does not let us in (401" in err and "see --token-file" in err, err
            assert "-word" not in out + err
    code, out, err = log("ap/whole", "http://127.0.0.1:1", "--token-file", "/nowhere")
    assert (code, out) == (1, "") and "/nowhere" in err, (code, out, err)


def over_tls():
    """https is verified against the system's authorities"""
    cert, key = (os.path.join(world.folder, n) for n in ("cert.pem", "key.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=mlflow", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, capture_output=True)
    with Mlflow(tls=(cert, key)) as server:
        code, _, err = log("ap/whole", server.url)
        assert code == 1 and "certificate" in err and not server.runs, (code, err)
        code, _, err = log("ap/whole", server.url, SSL_CERT_FILE=cert)
        assert (code, err) == (0, "") and server.only_run()["info"]["status"] == "FINISHED", (code, err)


def what_is_no_mlflow():
    """Nobody there, something else there, a wrong URL, a run that has not ended, options without --to-mlflow: one sentence each"""
    for url, words in (("http://127.0.0.1:1", "refused"), ("ftp://x", "--to-mlflow"), ("nonsense", "--to-mlflow")):
        code, out, err = log("ap/whole", url)
        assert (code, out) == (1, "") and words in err and err.count("\n") == 1, (url, code, out, err)
    with Mlflow() as server:
        code, out, err = log("ap/whole", server.url + "/elsewhere")
        assert (code, out) == (1, "") and err.count("\n") == 1 and not server.runs, (code, out, err)
        world.create(ns, "young")
        code, out, err = log("ap/young", server.url)
        assert (code, out) == (1, "") and "ap/young has not ended: only a finished run is logged" in err and not server.runs, err
    done = subprocess.run([program("sonde"), "results", "ap/whole", "-n", ns, "--experiment", "x"], capture_output=True, text=True, timeout=60,
                          check=False, env=environment())
    assert done.returncode == 2 and "--experiment is for MLflow; --to-mlflow URL is missing" in done.stderr, done


which = "cluster" if "cluster" in sys.argv[1:] else "engine"
with World(which) as world, world.server.namespace("mlflow") as ns:
    finished("whole")
    main(all_of_a_run, more_than_one_request_takes, a_run_that_failed_is_logged_as_failed, artifacts_elsewhere, nothing_is_left_running,
         interrupted, who_may_log, over_tls, what_is_no_mlflow)
