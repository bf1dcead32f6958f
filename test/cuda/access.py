#!/usr/bin/python3
"""What a profiling pod may do with its own token, on a real control plane: its experiment's two ConfigMaps, and nothing else."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cuda_play import EXPERIMENTS, GROUP, PATIENCE, PROFILES, World, ok
from sonde_test import diag, main, wait

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def as_pod(play):
    """A client with the token that the kubelet would give to the experiment's pod."""
    pod = play.pod()
    account = pod["spec"]["serviceAccountName"]
    made = ok(world.api.post(f"/api/v1/namespaces/{play.ns}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600, "boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}}))
    return world.server.api(token=made["status"]["token"])


def maps(play):
    return [f"/api/v1/namespaces/{play.ns}/configmaps/{name.format(play.name)}" for name in play.maps.values()]


def its_own_two_config_maps():
    """It may get and patch the status and the summary of its own experiment, and nothing more of those"""
    api = as_pod(mine)
    for path in maps(mine):
        there = wait(lambda p=path: world.api.get(p)[0] == 200 and ok(world.api.get(p)), PATIENCE, path)
        assert ok(api.get(path))["metadata"]["uid"] == there["metadata"]["uid"]
        assert ok(api.patch(path, {"data": {"tried": "1"}}))["data"]["tried"] == "1"
        ok(api.patch(path, {"data": {"tried": None}}))
        for method, body in ("PUT", there), ("DELETE", None):
            code, answer = api.request(method, path, body)
            assert code == 403, (method, path, code, answer)


def nobody_elses():
    """It may not see or touch another experiment's ConfigMaps, in its own namespace or in another, nor any other one"""
    api = as_pod(mine)
    ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "someones"}, "data": {"a": "b"}}))
    others = maps(theirs) + maps(far) + [f"/api/v1/namespaces/{ns}/configmaps/someones"]
    for path in others:
        before = wait(lambda p=path: world.api.get(p)[0] == 200 and ok(world.api.get(p)), PATIENCE, path)
        for method, body, kind in ("GET", None, None), ("PATCH", {"data": {"summary.json": "{}"}}, "application/merge-patch+json"), \
                ("PATCH", [{"op": "add", "path": "/data", "value": {}}], "application/json-patch+json"), \
                ("PATCH", {**before, "metadata": {"name": before["metadata"]["name"]}}, "application/apply-patch+yaml"), \
                ("PUT", before, "application/json"), ("DELETE", None, None):
            query = "?fieldManager=x&force=true" if kind and "apply" in kind else ""
            code, answer = api.request(method, path + query, body, kind)
            assert code == 403, (method, path, code, answer)
        assert ok(world.api.get(path)) == before, path


def nothing_else():
    """It may not create ConfigMaps, nor list or watch them, nor do anything with any other kind"""
    api = as_pod(mine)
    here = f"/api/v1/namespaces/{ns}"
    config_map = {"metadata": {"name": "made"}, "data": {}}
    tries = [("POST", f"{here}/configmaps", config_map), ("GET", f"{here}/configmaps", None), ("GET", "/api/v1/configmaps", None),
             ("GET", f"{here}/configmaps?watch=1", None), ("DELETE", f"{here}/configmaps", None),
             ("GET", f"{here}/configmaps?fieldSelector=metadata.name%3D{theirs.name}-profile-summary", None),
             ("POST", f"{here}/serviceaccounts/default/token", {"spec": {}}),
             ("GET", f"{GROUP}/namespaces/{ns}/{EXPERIMENTS}/{mine.name}", None),
             ("PATCH", f"{GROUP}/namespaces/{ns}/{EXPERIMENTS}/{mine.name}/status", {"status": {"phase": "Succeeded"}}),
             ("POST", f"{GROUP}/namespaces/{ns}/{PROFILES}", {"metadata": {"name": "made"}, "spec": {}}),
             ("GET", f"{RBAC}/namespaces/{ns}/roles", None), ("POST", f"{RBAC}/namespaces/{ns}/roles", {"metadata": {"name": "made"}}),
             ("GET", f"/apis/batch/v1/namespaces/{ns}/jobs", None), ("GET", "/api/v1/nodes", None)]
    tries += [(verb, f"{here}/{plural}", body) for plural in ("secrets", "pods", "events")
              for verb, body in (("GET", None), ("POST", {"metadata": {"name": "made"}}))]
    for method, path, body in tries:
        code, answer = api.request(method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json")
        assert code == 403, (method, path, code, answer)
    diag(f"{len(tries)} tries")


def other_pods_of_the_namespace():
    """Any other pod, the execution's among them, which has the namespace's default account, may not even see one of them"""
    made = ok(world.api.post(f"/api/v1/namespaces/{ns}/serviceaccounts/default/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}))
    api = world.server.api(token=made["status"]["token"])
    for path in maps(mine) + maps(theirs) + maps(far):
        before = ok(world.api.get(path))
        for method, body, kind in ("GET", None, None), ("PATCH", {"data": {"summary.json": "{}"}}, "application/merge-patch+json"), \
                ("PUT", before, "application/json"), ("DELETE", None, None):
            code, answer = api.request(method, path, body, kind)
            assert code == 403, (method, path, code, answer)
    assert api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "made"}})[0] == 403


def the_token_is_the_relays():
    """The token is mounted in the relay alone: neither the workload's image nor the profiler's ever sees it"""
    pod = mine.pod()["spec"]
    assert pod["automountServiceAccountToken"] is False, pod
    tokens = {v["name"] for v in pod["volumes"] if any("serviceAccountToken" in s for s in v.get("projected", {}).get("sources", []))}
    assert len(tokens) == 1, pod["volumes"]
    seen = {c["name"] for c in pod["initContainers"] + pod["containers"] if tokens & {m["name"] for m in c.get("volumeMounts", [])}}
    assert {"profiling-runner", "stage-workload"}.isdisjoint(seen) and "relay" in seen, seen


def it_ends_with_the_run():
    """When profiling has ended, account, Role and binding are gone, and the token opens nothing any more"""
    api = as_pod(mine)
    account = mine.pod()["spec"]["serviceAccountName"]
    mine.profiles()
    mine.wait(lambda s: s.get("boundType") == "unknown", "the profile")
    for kind in "serviceaccounts", "roles", "rolebindings":
        wait(lambda k=kind: not mine.object(f"{k}/{account}"), PATIENCE, f"{kind}/{account} to go")
    (status, summary) = maps(mine)
    wait(lambda: api.get(summary)[0] in (401, 403), PATIENCE, "the token to be worthless")
    assert api.patch(summary, {"data": {"summary.json": "{}"}})[0] in (401, 403)
    assert ok(world.api.get(summary))["data"]["summary.json"], status


if __name__ == "__main__":
    with World("cluster") as world, world.server.namespace("access") as ns, world.server.namespace("access") as elsewhere, \
            world.operator(ns), world.operator(elsewhere):
        mine, theirs, far = world.create(ns, "mine"), world.create(ns, "theirs"), world.create(elsewhere, "mine")
        main(its_own_two_config_maps, nobody_elses, nothing_else, other_pods_of_the_namespace, the_token_is_the_relays,
             it_ends_with_the_run)
