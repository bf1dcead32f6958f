#!/usr/bin/python3
"""`sonde operator` with an account of its own on a real control plane: a grant that is missing, and a namespace that goes."""

import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from accounts import granted_yet, kubeconfig_of
from sonde_test import ControlPlane, Process, diag, main, program, wait

PATIENCE = 120
GROUP = "/apis/nvidia.com/v1alpha1"
DGDRS = "dynamographdeploymentrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SPEC = {"model": "m", "backend": "vllm", "profilingConfig": {
    "profilerImage": "registry.example/profiler:1", "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}}}}
GROUPS = ["", "nvidia.com", "rbac.authorization.k8s.io", "events.k8s.io"]


def ok(answer):
    status, body = answer
    assert status in (200, 201), (status, body)
    return body


def rules(groups):
    """May look at everything, and write what is in GROUPS."""
    return [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]


@contextlib.contextmanager
def account(ns):
    """A kubeconfig of a service account in NS with the role "operator" there: all but Jobs may be written."""
    api = cluster.api()
    ok(api.post(f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "operator"}}))
    ok(api.post(f"{RBAC}/namespaces/{ns}/roles", {"metadata": {"name": "operator"}, "rules": rules(GROUPS)}))
    ok(api.post(f"{RBAC}/namespaces/{ns}/rolebindings", {
        "metadata": {"name": "operator"}, "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": ns}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"}}))
    granted_yet(cluster, ns, "operator", "list", "batch", "jobs", ns)
    with kubeconfig_of(cluster, ns, "operator") as path:
        yield path


@contextlib.contextmanager
def operator(kubeconfig, ns):
    with Process(program("sonde"), "operator", "--kubeconfig", kubeconfig, "--namespace", ns, "--log-format", "logfmt",
                 "--health-probe-bind-address", "0") as process:
        process.expect("Started", PATIENCE)
        yield process
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-10:]


def create(ns, name):
    ok(cluster.api().post(f"{GROUP}/namespaces/{ns}/{DGDRS}", {
        "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": name}, "spec": SPEC}))


def stalled(ns, name):
    status = cluster.api().get(f"{GROUP}/namespaces/{ns}/{DGDRS}/{name}")[1].get("status", {})
    return next((c for c in status.get("conditions", []) if c["type"] == "Stalled" and c["status"] == "True"), None)


def a_missing_grant_is_told_and_then_enough():
    """F10: what may not be created is told with what to grant, and made when it is granted"""
    with cluster.namespace("grants") as ns, account(ns) as kubeconfig, operator(kubeconfig, ns):
        create(ns, "r")
        told = wait(lambda: stalled(ns, "r"), PATIENCE, "the request to be stalled")
        assert told["reason"] == "Forbidden" and 'cannot create resource "jobs"' in told["message"], told
        assert "grant the operator's account the verb 'create' on 'jobs' of API group 'batch'" in told["message"], told
        ok(cluster.api().patch(f"{RBAC}/namespaces/{ns}/roles/operator", {"rules": rules(GROUPS + ["batch"])}))
        wait(lambda: cluster.api().get(f"/apis/batch/v1/namespaces/{ns}/jobs/profile-r")[0] == 200, PATIENCE, "the Job")
        wait(lambda: not stalled(ns, "r"), PATIENCE, "the condition to be taken back")


def a_kind_that_may_not_be_read_is_said():
    """F10: without list and watch of a kind nothing can be done, and the log says what to grant"""
    unread = [{"apiGroups": GROUPS, "resources": ["*"], "verbs": ["*"]}]
    with cluster.namespace("grants") as ns, account(ns) as kubeconfig:
        ok(cluster.api().patch(f"{RBAC}/namespaces/{ns}/roles/operator", {"rules": unread}))
        granted_yet(cluster, ns, "operator", "list", "batch", "jobs", ns, yes=False)
        with operator(kubeconfig, ns) as process:
            process.expect(r'level=error msg="May not read a kind.*resource=jobs group=batch', PATIENCE)
            create(ns, "r")
            ok(cluster.api().patch(f"{RBAC}/namespaces/{ns}/roles/operator", {"rules": rules(GROUPS + ["batch"])}))
            wait(lambda: cluster.api().get(f"/apis/batch/v1/namespaces/{ns}/jobs/profile-r")[0] == 200, PATIENCE, "the Job")


def a_delete_that_is_forbidden_hides_no_outcome():
    """F10: a request that has ended says how, whatever cannot be taken away; that is an event, and goes when it is granted"""
    api = cluster.api()
    with cluster.namespace("grants") as ns, account(ns) as kubeconfig, operator(kubeconfig, ns):
        role, job = f"{RBAC}/namespaces/{ns}/roles/operator", f"/apis/batch/v1/namespaces/{ns}/jobs/profile-r"
        ok(api.patch(role, {"rules": rules(GROUPS) + [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
                                                      {"apiGroups": ["batch"], "resources": ["jobs/finalizers"], "verbs": ["*"]}]}))
        create(ns, "r")
        wait(lambda: api.get(job)[0] == 200, PATIENCE, "the Job")
        ok(api.patch(f"{GROUP}/namespaces/{ns}/{DGDRS}/r", {"spec": {"cancel": True}}))
        events = f"/apis/events.k8s.io/v1/namespaces/{ns}/events"
        wait(lambda: any(e["reason"] == "CleanupForbidden" for e in api.get(events)[1]["items"]), PATIENCE, "the event")
        wait(lambda: (stalled(ns, "r") or {}).get("reason") == "Cancelled", PATIENCE, "the outcome")
        ok(api.patch(role, {"rules": rules(GROUPS + ["batch"])}))
        wait(lambda: api.get(job)[0] == 404 or "deletionTimestamp" in api.get(job)[1]["metadata"], PATIENCE, "the Job to go")
        assert stalled(ns, "r")["reason"] == "Cancelled", stalled(ns, "r")


def a_namespace_goes_without_a_word():
    """F12: while its namespace is deleted nothing is made for a request, and nothing is logged about it"""
    with cluster.namespace("grants") as home, cluster.namespace("goes") as ns, account(home) as kubeconfig:
        api = cluster.api()
        # Of the cluster: a role in the namespace goes with it, and what comes then is a true lack of grants.
        ok(api.post(f"{RBAC}/clusterroles", {"metadata": {"name": ns}, "rules": rules(GROUPS + ["batch"])}))
        subject = [{"kind": "ServiceAccount", "name": "operator", "namespace": home}]
        ok(api.post(f"{RBAC}/clusterrolebindings", {
            "metadata": {"name": ns}, "subjects": subject,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ns}}))
        try:
            with operator(kubeconfig, ns) as process:
                create(ns, "r")
                wait(lambda: api.get(f"/apis/batch/v1/namespaces/{ns}/jobs/profile-r")[0] == 200, PATIENCE, "the Job")
                process.expect("Carried out the first decision", PATIENCE)  # which is more than the Job
                begin = len(process.lines)
                api.delete(f"/api/v1/namespaces/{ns}")
                wait(lambda: api.get(f"/api/v1/namespaces/{ns}")[0] == 404, PATIENCE, "the namespace to be gone")
                diag("\n".join(process.lines[begin:]))
                said = [line for line in process.lines[begin:] if ns in line or "level=info" not in line]  # others' kinds come and go
                assert said == [], said
        finally:
            api.delete(f"{RBAC}/clusterrolebindings/{ns}")
            api.delete(f"{RBAC}/clusterroles/{ns}")


with ControlPlane.of("shared") as cluster:
    cluster.apply_crds("deploy/crds/dynamographdeploymentrequests.yaml", "test/kinds/dgd-crd.yaml")
    wait(lambda: cluster.api().get(f"{GROUP}/{DGDRS}")[0] == 200, PATIENCE, "the kind to be served")
    main(a_missing_grant_is_told_and_then_enough, a_kind_that_may_not_be_read_is_said,
         a_delete_that_is_forbidden_hides_no_outcome, a_namespace_goes_without_a_word)
