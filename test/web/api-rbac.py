#!/usr/bin/python3
"""The REST API on a real control plane, with its RBAC: each caller sees what the API server lets him see, and nothing else."""

import contextlib
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from accounts import granted_yet
from sonde_test import ControlPlane, Process, main, program, wait
from web_client import Web

PATIENCE = 180
GROUP = "/apis/dprofiler.io/v1alpha1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CRDS = ("algorithmprofilings", "algorithmcomparisons", "cudaexperiments", "workloadprofiles", "dynamographdeploymentrequests")


def ok(answer):
    status, body = answer
    assert status in (200, 201), (status, body)
    return body


def caller(ns):
    """The token of a service account of NS that may do everything with profilings there, and see nothing else."""
    api = cluster.api()
    ok(api.post(f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "caller"}}))
    ok(api.post(f"{RBAC}/namespaces/{ns}/roles", {"metadata": {"name": "caller"}, "rules": [
        {"apiGroups": ["dprofiler.io"], "resources": ["algorithmprofilings"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["events", "configmaps", "pods", "pods/log"], "verbs": ["get", "list"]}]}))
    ok(api.post(f"{RBAC}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "caller"}, "subjects": [{"kind": "ServiceAccount", "name": "caller", "namespace": ns}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "caller"}}))
    granted_yet(cluster, ns, "caller", "list", "dprofiler.io", "algorithmprofilings", ns)
    return ok(api.post(f"/api/v1/namespaces/{ns}/serviceaccounts/caller/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))["status"]["token"]


def wide_caller(name):
    """The token of a service account that a ClusterRoleBinding of NAME lets do everything."""
    api = cluster.api()
    ok(api.post(f"/api/v1/namespaces/{a}/serviceaccounts", {"metadata": {"name": name}}))
    ok(api.post(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": name}, "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": a}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}))
    granted_yet(cluster, a, name, "list", "dprofiler.io", "algorithmprofilings")
    return ok(api.post(f"/api/v1/namespaces/{a}/serviceaccounts/{name}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))["status"]["token"]


def create(ns, name):
    return ok(cluster.api().post(f"{GROUP}/namespaces/{ns}/algorithmprofilings", {
        "apiVersion": "dprofiler.io/v1alpha1", "kind": "AlgorithmProfiling", "metadata": {"name": name},
        "spec": {"algorithmName": "quick_sort", "inputSize": 10, "suspend": True}}))


@contextlib.contextmanager
def serving():
    with Process(program("sonde"), "operator", "--kubeconfig", cluster.kubeconfig, "--health-probe-bind-address", "0",
                 "--api-only", "--listen", "127.0.0.1:0") as process:
        port = int(process.expect(r'"Serving the API and the page".*"port":(\d+)', PATIENCE)[1])
        yield process, ("127.0.0.1", port)
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-10:]


def names(web, query=""):
    status, body = web.get("/api/v1/runs" + query)
    assert status == 200, body
    return {(run["namespace"], run["name"]) for run in body["items"] if run["namespace"] in (a, b)}


def a_caller_sees_his_own_namespace_alone():
    create(a, "mine")
    create(b, "yours")
    wait(lambda: names(of_a) == {(a, "mine")}, PATIENCE, "a sees his own")
    wait(lambda: names(of_b) == {(b, "yours")}, PATIENCE, "b sees his own")
    assert names(of_a, "?namespace=" + a) == {(a, "mine")}
    assert [j["name"] for j in of_a.get("/api/v1/jobs")[1]["jobs"]] == ["mine"]


def a_foreign_namespace_is_forbidden():
    """403, for what is cached and for what is read or written as the caller"""
    for method, path, body in (("GET", f"/api/v1/runs?namespace={b}", None), ("GET", f"/api/v1/runs/stream?namespace={b}", None),
                               ("GET", f"/api/v1/jobs?namespace={b}", None), ("GET", f"/api/v1/queue?namespace={b}", None),
                               ("GET", f"/api/v1/runs/ap/{b}/yours", None), ("GET", f"/api/v1/runs/ap/{b}/yours/data", None),
                               ("POST", f"/api/v1/runs/ap/{b}/yours/cancel", None), ("GET", f"/api/v1/jobs/{b}.yours", None),
                               ("DELETE", f"/api/v1/jobs/{b}.yours", None), ("GET", "/api/v1/workers", None),
                               ("POST", f"/api/v1/runs/ap/{b}/yours/rerun", None),
                               ("GET", f"/api/v1/compare?run=ap/{a}/mine&run=ap/{b}/yours", None),
                               ("POST", f"/api/v1/jobs?namespace={b}", {"algorithm_name": "quick_sort", "input_size": 1}),
                               ("POST", f"/api/v1/compare?namespace={a}", {"algorithms": ["quick_sort"], "input_size": 1})):
        status, answer = of_a(method, path, body)
        assert status == 403 and answer["detail"], (method, path, status, answer)
    assert of_a.get(f"/api/v1/runs/ap/{a}/mine")[0] == 200
    assert of_a.get(f"/api/v1/queue?namespace={a}")[1].get("quotas") is None, "quotas that may not be seen are left out"
    made = of_a.post(f"/api/v1/jobs?namespace={a}", {"algorithm_name": "quick_sort", "input_size": 1})
    assert made[0] == 200, made


def a_wrong_token_is_401():
    for bad in "x", token_a[:-4] + "AAAA", "eyJhbGciOiJub25lIn0.e30.":
        for path in "/api/v1/runs", f"/api/v1/runs/ap/{a}/mine", "/api/v1/runs/stream":
            status, body = Web(address, bad).get(path)
            assert status == 401 and "detail" in body, (path, status, body)
    assert token_a not in "\n".join(process.lines)


def a_wrong_token_is_asked_for_once():
    """for 10 s; and what is asked for callers is counted"""
    def refused():
        time.sleep(1.1)  # the text is up to a second old
        found = re.findall(r'^rest_client_requests_total\{.*code="401".*\} (\d+)$', Web(address).get("/metrics")[1], re.M)
        return sum(map(int, found))
    before, began = refused(), time.monotonic()
    bad = Web(address, "of-nobody")
    for i in range(40):
        assert bad.get(f"/api/v1/runs?namespace=n{i}")[0] == 401
    after = refused()
    passed = (time.monotonic() - began) // 10  # how often 10 s may have passed meanwhile
    assert before < after <= before + (4 + passed) * len(CRDS), (before, after, passed)


def quotas_are_told():
    """as the API server keeps them, to those who may list them"""
    ok(cluster.api().post(f"/api/v1/namespaces/{a}/resourcequotas", {"metadata": {"name": "few"}, "spec": {
        "hard": {"pods": "5", "configmaps": "1k"}}}))
    maps = lambda: str(len(ok(cluster.api().get(f"/api/v1/namespaces/{a}/configmaps"))["items"]))
    quotas = lambda: admin.get(f"/api/v1/queue?namespace={a}")[1]["quotas"]
    wait(lambda: quotas() == [{"namespace": a, "name": "few", "hard": {"pods": "5", "configmaps": "1k"},
                               "used": {"pods": "0", "configmaps": maps()}}], PATIENCE, "the quota, with what is used of it")
    assert admin.get(f"/api/v1/queue?namespace={b}")[1]["quotas"] == []
    assert "quotas" not in of_a.get(f"/api/v1/queue?namespace={a}")[1]


def the_stream_has_his_own_alone():
    """a change that the caller may not see is never sent"""
    with of_a.stream() as mine, of_b.stream() as yours:
        for stream, ns in (mine, a), (yours, b):
            event, data = stream.next()
            assert event == "sync" and {run["namespace"] for run in data["items"]} <= {ns}, data
        for i in range(3):
            create(b, f"secret-{i}")
            create(a, f"seen-{i}")
            mine.until(lambda event, data, i=i: event == "run" and data["name"] == f"seen-{i}", PATIENCE)
            yours.until(lambda event, data, i=i: event == "run" and data["name"] == f"secret-{i}", PATIENCE)
        cluster.api().delete(f"{GROUP}/namespaces/{b}/algorithmprofilings/secret-0")
        yours.until(lambda event, data: event == "gone" and data["name"] == "secret-0", PATIENCE)
        create(a, "last")
        _, seen = mine.until(lambda event, data: event == "run" and data["name"] == "last", PATIENCE)
        assert {data["namespace"] for _, data in seen} <= {a}, seen


def a_grant_that_is_taken_back_ends():
    """what was allowed is asked for again after 10 s: the list and the stream say no more"""
    with of_b.stream("?namespace=" + b) as stream:
        assert stream.next()[0] == "sync"
        cluster.api().delete(f"{RBAC}/namespaces/{b}/rolebindings/caller")
        wait(lambda: of_b.get("/api/v1/runs?namespace=" + b)[0] == 403, PATIENCE, "it is forbidden", every=1)
        create(b, "unseen")
        wait(lambda: ("unseen" in [run["name"] for run in admin.get("/api/v1/runs?namespace=" + b)[1]["items"]]), PATIENCE)
        create(a, "later")
        wait(lambda: (a, "later") in names(of_a), PATIENCE)
        assert not [e for e in list(stream.events.queue) if e[0] == "run"], "it was sent all the same"


def a_token_that_ends_ends_the_stream():
    """without any change that would have to be told"""
    leaver = Web(address, wide_caller(a + "-leaver"))
    cluster.api().delete(f"{RBAC}/clusterrolebindings/{a}-leaver")
    with leaver.stream("") as stream:
        assert stream.status == 200, stream.status
        cluster.api().delete(f"/api/v1/namespaces/{a}/serviceaccounts/{a}-leaver")
        stream.until(lambda event, data: event == "end", PATIENCE)


def a_grant_of_everything_that_is_taken_back_ends():
    """also for those who ask for one namespace, again and again, beside a stream"""
    wide = Web(address, wide_caller(a + "-wide"))
    try:
        assert wide.get("/api/v1/runs")[0] == 200
        with wide.stream("?namespace=" + b) as stream:
            assert stream.next()[0] == "sync"
            assert wide.get("/api/v1/runs?namespace=" + b)[0] == 200
            cluster.api().delete(f"{RBAC}/clusterrolebindings/{a}-wide")
            wait(lambda: wide.get("/api/v1/runs?namespace=" + b)[0] == 403, PATIENCE, "it is forbidden", every=1)
            assert names(wide) == set()
            create(b, "not-for-wide")
            wait(lambda: (b, "not-for-wide") in names(admin), PATIENCE)
            create(a, "behind-it")
            wait(lambda: (a, "behind-it") in names(of_a), PATIENCE)
            assert not [e for e in list(stream.events.queue) if e[0] == "run"], "it was sent all the same"
    finally:
        cluster.api().delete(f"{RBAC}/clusterrolebindings/{a}-wide")


with ControlPlane.of("shared") as cluster, cluster.namespace("web-a") as a, cluster.namespace("web-b") as b:
    for crd in CRDS:
        cluster.apply_crds(f"deploy/crds/{crd}.yaml")
    token_a, token_b = caller(a), caller(b)
    try:
        token_admin = wide_caller(a)
        with serving() as (process, address):
            of_a, of_b, admin = Web(address, token_a), Web(address, token_b), Web(address, token_admin)
            wait(lambda: Web(address).get("/ready")[0] == 200, PATIENCE)
            main(a_caller_sees_his_own_namespace_alone, a_foreign_namespace_is_forbidden, a_wrong_token_is_401,
                 a_wrong_token_is_asked_for_once, quotas_are_told, the_stream_has_his_own_alone,
                 a_token_that_ends_ends_the_stream, a_grant_of_everything_that_is_taken_back_ends, a_grant_that_is_taken_back_ends)
    finally:
        cluster.api().delete(f"{RBAC}/clusterrolebindings/{a}")
