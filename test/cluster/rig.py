#!/usr/bin/python3
"""The rig itself: what test/cluster/cluster can do to a running control plane, each as the tests rely on it."""

import http.client
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ControlPlane, main, wait

def create(name):
    status, body = cluster.api().post(MAPS, {"metadata": {"name": name}})
    assert status == 201, body
    return int(body["metadata"]["resourceVersion"])


def names():
    status, body = cluster.api().get(MAPS)
    assert status == 200, body
    return {item["metadata"]["name"] for item in body["items"]}


def arguments(component):
    with open(cluster.file("pid", component), encoding="utf-8") as f:
        pid = f.read().split()[0]
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
        return f.read().split("\0")


def the_api_server_restarts_with_other_arguments():
    create("before")
    cluster.rig("restart", "apiserver", "--watch-cache=false")
    assert "--watch-cache=false" in arguments("apiserver")
    assert "before" in names()
    cluster.rig("restart", "--kill", "apiserver")
    assert "--watch-cache=false" not in arguments("apiserver")
    assert "before" in names()


def a_stopped_api_server_answers_nobody_until_it_is_started():
    cluster.rig("stop", "apiserver")
    try:
        cluster.api(timeout=2).get(MAPS)
        raise AssertionError("it answered")
    except (OSError, http.client.HTTPException):
        pass
    cluster.rig("start", "apiserver")
    assert "before" in names()


def etcd_keeps_what_it_had_over_a_kill():
    cluster.rig("stop", "--kill", "etcd")
    cluster.rig("start", "etcd")
    wait(lambda: cluster.api().get("/readyz")[0] == 200, 120, "the API server is ready again")
    assert "before" in names()


def a_restored_snapshot_takes_versions_back():
    snapshot = cluster.file("etcd.snapshot")
    create("saved")
    cluster.rig("etcd-snapshot", snapshot)
    lost = [create(f"lost-{i}") for i in range(300)]
    cluster.rig("etcd-restore", snapshot)
    assert {"before", "saved"} <= names() and not any(n.startswith("lost") for n in names()), names()
    assert create("after") < lost[-1], "versions did not go back"
    wait(lambda: "controller-manager: running" in cluster.rig("status"), 60)


def a_compaction_expires_a_page():
    for i in range(3):
        create(f"page-{i}")
    status, page = cluster.api().get(MAPS + "?limit=1")
    assert status == 200, page
    create("page-later")
    assert int(cluster.rig("compact")) > int(page["metadata"]["resourceVersion"])
    status, body = cluster.api().get(f"{MAPS}?limit=1&continue={page['metadata']['continue']}")
    assert (status, body["reason"]) == (410, "Expired"), body


def a_service_account_s_token_opens_the_door():
    token = cluster.rig("token", NS, "default").strip()
    assert cluster.api(token).get(f"/api/v1/namespaces/{NS}/pods")[0] == 403
    cluster.kubectl("create", "rolebinding", "view", "-n", NS, "--clusterrole=view", f"--serviceaccount={NS}:default")
    wait(lambda: cluster.api(token).get(f"/api/v1/namespaces/{NS}/pods")[0] == 200, 60)


def a_short_token_expires():
    path = f"/api/v1/namespaces/{NS}/pods"
    for seconds in 10, 20, 40, 80:  # longer, where that was over before the first request
        began = time.monotonic()
        token = cluster.rig("token", NS, "default", seconds).strip()
        if cluster.api(token).get(path)[0] == 200:
            break
        assert time.monotonic() - began > seconds - 1, "expired too early"
    wait(lambda: cluster.api(token).get(path)[0] == 401, seconds + 60, "the token has expired", every=0.5)
    assert time.monotonic() - began > seconds - 1, "expired too early"


def every_write_is_in_the_audit_log():
    """every write is in the audit log (KCLUSTER_AUDIT)"""
    create("audited")

    def seen():
        return [e for e in cluster.audit() if e["verb"] == "create" and e["objectRef"].get("resource") == "configmaps"
                and e["objectRef"]["namespace"] == NS and e["responseStatus"]["code"] == 201]

    wait(lambda: len(seen()) >= 7, 60)


def a_manager_stops_and_starts_by_itself_alone():
    cluster.rig("stop", "--kill", "scheduler")
    assert "scheduler: running" not in cluster.rig("status", check=False)
    cluster.rig("start", "scheduler")
    assert "scheduler: running" in cluster.rig("status")


with ControlPlane.of("fragile") as cluster, cluster.namespace("rig") as NS:
    MAPS = f"/api/v1/namespaces/{NS}/configmaps"
    main(the_api_server_restarts_with_other_arguments, a_stopped_api_server_answers_nobody_until_it_is_started,
         etcd_keeps_what_it_had_over_a_kill, a_restored_snapshot_takes_versions_back, a_compaction_expires_a_page,
         a_service_account_s_token_opens_the_door, a_short_token_expires, every_write_is_in_the_audit_log,
         a_manager_stops_and_starts_by_itself_alone)
