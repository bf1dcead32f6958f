#!/usr/bin/python3
"""The history in the REST API, on a real control plane: how far back a caller sees, and where a series has changed."""

import contextlib
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from accounts import granted_yet
from history_rows import add, level
from sonde_test import ControlPlane, Engine, Process, main, program, wait
from web_client import Web

PATIENCE = 180
RBAC = "/apis/rbac.authorization.k8s.io/v1"
FAST, SLOW = 0.010, 0.052


def ok(answer):
    status, body = answer
    assert status in (200, 201), (status, body)
    return body


def caller():
    """The token of one who may list profilings in A, and nothing else."""
    api = cluster.api()
    ok(api.post(f"/api/v1/namespaces/{a}/serviceaccounts", {"metadata": {"name": "caller"}}))
    ok(api.post(f"{RBAC}/namespaces/{a}/roles", {"metadata": {"name": "caller"}, "rules": [
        {"apiGroups": ["dprofiler.io"], "resources": ["algorithmprofilings"], "verbs": ["list"]}]}))
    ok(api.post(f"{RBAC}/namespaces/{a}/rolebindings", {
        "metadata": {"name": "caller"}, "subjects": [{"kind": "ServiceAccount", "name": "caller", "namespace": a}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "caller"}}))
    granted_yet(cluster, a, "caller", "list", "dprofiler.io", "algorithmprofilings", a)
    return ok(api.post(f"/api/v1/namespaces/{a}/serviceaccounts/caller/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))["status"]["token"]


@contextlib.contextmanager
def serving():
    with Process(program("sonde"), "operator", "--kubeconfig", cluster.kubeconfig, "--health-probe-bind-address", "0",
                 "--api-only", "--listen", "127.0.0.1:0", "--history", history) as process:
        port = int(process.expect(r'"Serving the API and the page".*"port":(\d+)', PATIENCE)[1])
        yield "127.0.0.1", port
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-10:]


def items(query):
    return [(row["namespace"], row["name"]) for row in ok(web.get("/api/v1/history" + query))["items"]]


def a_caller_s_runs_are_found_behind_those_of_others():
    """not only among the newest ten times as many"""
    add(history, a, "mine", [1, 1, 1], time.time() - 86400)
    add(history, b, "yours", [1] * 230)
    mine = [(a, f"mine-{i}") for i in (2, 1, 0)]
    assert items("?limit=2") == mine[:2]
    assert items("?limit=3") == mine
    assert items("") == mine and items("?namespace=" + a) == mine
    assert items("?name=yours-3") == []
    assert web.get("/api/v1/history?namespace=" + b)[0] == 403


def changes(name, *levels):
    """What is told of a series with LEVELS (seconds, runs): (degraded, index, goodFrom, before and after in ms)."""
    add(history, a, name, [value for one in levels for value in level(*one)])
    trend = ok(web.get(f"/api/v1/history/trend?series={a}/{name}"))
    assert len(trend["points"]) == sum(runs for _, runs in levels), trend["points"]
    for change in trend["changes"]:
        assert abs(change["ratio"] - change["after"] / change["before"]) < 1e-9, change
        assert change["low"] < change["ratio"] < change["high"], change
        assert (change["low"] > 1) if change["degraded"] else (change["high"] < 1), change
    return [(c["degraded"], c["index"], c["goodFrom"], round(c["before"] * 1000), round(c["after"] * 1000)) for c in trend["changes"]]


def a_trend_has_its_changes():
    """for the worse and for the better, all of them"""
    assert changes("same", (FAST, 40)) == []
    assert changes("short", (FAST, 5)) == []
    assert changes("worse", (FAST, 21), (SLOW, 6)) == [(True, 21, 0, 10, 52)]
    assert changes("better", (SLOW, 21), (FAST, 6)) == [(False, 21, 0, 52, 10)]
    assert changes("back", (FAST, 20), (SLOW, 20), (FAST, 20)) == [(True, 20, 0, 10, 52), (False, 40, 20, 52, 10)]
    assert changes("stairs", (FAST, 20), (0.020, 20), (0.030, 20)) == [(True, 20, 0, 10, 20), (True, 40, 20, 20, 30)]
    assert changes("many", (FAST, 30), (0.020, 30), (0.005, 30), (0.008, 30), (0.007, 30)) == [
        (True, 30, 0, 10, 20), (False, 60, 30, 20, 5), (True, 90, 60, 5, 8), (False, 120, 90, 8, 7)]


def what_came_and_went_is_no_change():
    """a level of fewer than ten runs that is over"""
    assert changes("bump", (FAST, 20), (SLOW, 6), (FAST, 20)) == []
    assert changes("dip", (SLOW, 20), (FAST, 6), (SLOW, 20)) == []


with ControlPlane.of("shared") as cluster, cluster.namespace("history-a") as a, cluster.namespace("history-b") as b, \
        Engine("--no-fsync", "--page-listen", "127.0.0.1:0") as keeper:  # who only serves the API makes no history
    keeper.process.expect("page: http", PATIENCE)
    history = os.path.join(keeper.home, "history.db")
    for crd in "algorithmprofilings", "algorithmcomparisons", "cudaexperiments", "workloadprofiles", "dynamographdeploymentrequests":
        cluster.apply_crds(f"deploy/crds/{crd}.yaml")
    with serving() as address:
        web = Web(address, caller())
        wait(lambda: Web(address).get("/ready")[0] == 200, PATIENCE)
        main(a_caller_s_runs_are_found_behind_those_of_others, a_trend_has_its_changes, what_came_and_went_is_no_change)
