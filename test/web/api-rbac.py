#!/usr/bin/python3
"""The REST API on a real control plane, with its RBAC: each caller sees what the API server lets him see, and nothing else."""

import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, ControlPlane, Process, main, program, wait
from web_client import Web

PATIENCE = 90
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
    return ok(api.post(f"/api/v1/namespaces/{ns}/serviceaccounts/caller/token", {
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


with ControlPlane.shared() as cluster, cluster.namespace("web-a") as a, cluster.namespace("web-b") as b:
    for crd in CRDS:
        cluster.kubectl("apply", "-f", os.path.join(ROOT, "deploy", "crds", crd + ".yaml"))
    token_a, token_b = caller(a), caller(b)
    ok(cluster.api().post(f"/api/v1/namespaces/{a}/serviceaccounts", {"metadata": {"name": "admin"}}))
    everything = ok(cluster.api().post(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": a}, "subjects": [{"kind": "ServiceAccount", "name": "admin", "namespace": a}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}))
    try:
        with serving() as (process, address):
            of_a, of_b = Web(address, token_a), Web(address, token_b)
            admin = Web(address, ok(cluster.api().post(f"/api/v1/namespaces/{a}/serviceaccounts/admin/token", {
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}))["status"]["token"])
            wait(lambda: Web(address).get("/ready")[0] == 200, PATIENCE)
            main(a_caller_sees_his_own_namespace_alone, a_foreign_namespace_is_forbidden, a_wrong_token_is_401,
                 the_stream_has_his_own_alone, a_grant_that_is_taken_back_ends)
    finally:
        cluster.api().delete(f"{RBAC}/clusterrolebindings/{a}")
