#!/usr/bin/python3
"""500 DynamoGraphDeploymentRequests in flight at once on a real control plane, five progress updates each.

    bench/dgdr.py [N]         (500)

What the operator wrote is counted by a watch, by itself and by the API server's audit log; it fails where these differ, where
a progress update is not exactly one status write, and where a write failed or changed nothing. Times are printed only.
"""

import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from dgdr_many import PLANNED, many
from dgdr_play import DGDRS, World
from sonde_test import ControlPlane, wait

N = int(sys.argv[1]) if len(sys.argv) > 1 else 500
UPDATES, PATIENCE = 5, 900
WRITES = ("create", "update", "patch", "delete")


def row(what, value):
    print(f"  {what:52} {value}", flush=True)


def audited(plane, ns):
    """The operator's writes in the namespace: {(verb, resource, code): how many}, and its status writes by request."""
    writes, statuses = collections.Counter(), collections.Counter()
    for e in plane.audit():
        ref = e.get("objectRef", {})
        if ref.get("namespace") != ns or e["verb"] not in WRITES or not e.get("userAgent", "").startswith("sonde/"):
            continue
        resource = "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
        writes[e["verb"], resource, e["responseStatus"]["code"]] += 1
        if resource == DGDRS + "/status":
            statuses[ref["name"]] += 1
    return writes, statuses


def check_audit(plane, ns, crowd):
    wait(lambda: sum(audited(plane, ns)[0].values()) >= crowd.sent(), 60, "the audit log is written")
    writes, statuses = audited(plane, ns)
    for (verb, resource, code), count in sorted(writes.items()):
        row(f"audit log: {verb} {resource}", f"{count} answered {code}")
    failed = {key: n for key, n in writes.items() if key[2] >= 300}
    row("failed writes", sum(failed.values()))
    assert sum(writes.values()) == crowd.sent(), (writes, crowd.sent())
    assert statuses == crowd.status_writes(), "status writes that changed nothing: " + str(
        {n: (c, crowd.status_writes()[n]) for n, c in statuses.items() if c != crowd.status_writes()[n]})
    for kind, each in PLANNED.items():
        made = sum(n for (verb, resource, _), n in writes.items() if (verb, resource) == ("create", kind))
        assert made == N * each, f"{made} creates of {kind}, not {N * each}"
    assert not failed, failed


with ControlPlane(KCLUSTER_AUDIT="1") as cluster, World("cluster", cluster) as world, cluster.namespace("many") as namespace:
    check_audit(cluster, namespace, many(world, namespace, N, UPDATES, PATIENCE, row))
