"""tidy - a control plane that many tests use one after the other is left as it was found.

    with ControlPlane.of("fragile") as cluster, tidied(cluster):
"""

import contextlib

from sonde_test import wait

# Cluster-scoped kinds, in the order in which they are deleted: definitions last, because what is in a namespace needs them.
KINDS = {"nodes": "/api/v1", "namespaces": "/api/v1", "persistentvolumes": "/api/v1",
         "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1", "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
         "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1"}
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
PATIENCE = 180


def _names(api, kind):
    status, body = api.get(f"{KINDS[kind]}/{kind}")
    assert status == 200, body
    return {item["metadata"]["name"] for item in body["items"]}


def _delete_pods(api, namespaces):
    """Without a grace period: a plane without a node has no kubelet that would confirm the end of a pod."""
    for pod in api.get("/api/v1/pods")[1]["items"]:
        meta = pod["metadata"]
        if meta["namespace"] in namespaces:
            api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", AT_ONCE)


@contextlib.contextmanager
def tidied(cluster):
    """Deletes, at the end, the cluster-scoped objects made since the beginning, and waits until they are gone."""
    before = {kind: _names(cluster.api(), kind) for kind in KINDS}
    try:
        yield
    finally:
        api = cluster.api()

        def new(kind):
            return _names(api, kind) - before[kind]
        for kind in KINDS:
            for name in new(kind):
                api.delete(f"{KINDS[kind]}/{kind}/{name}")
            if kind == "namespaces":
                wait(lambda: _delete_pods(api, new("namespaces")) or not new("namespaces"), PATIENCE, "the namespaces to be gone")
        wait(lambda: not any(new(kind) for kind in KINDS), PATIENCE, "all that the test made to be gone")
