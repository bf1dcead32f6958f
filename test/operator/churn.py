#!/usr/bin/python3
"""The example operator under churn and faults: it converges, and holds no more memory or descriptors than before.

Requests are made, changed and deleted 1200 times (50 000 in the long form) while a fault proxy stands between the
operator and the API server. Then the faults end: every request must have its copy and its status, and no more is
written. With the argument `cluster` the API server is Kubernetes's, otherwise the embedded engine.
"""
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from sonde_test import SOAK, ControlPlane, Engine, Process, diag, main, program, wait

CHANGES = 50000 if SOAK else 1200
NAMES = 40
CONNECTIONS = 16


def maps(ns):
    return f"/api/v1/namespaces/{ns}/configmaps"


def change_something(api, ns, rng):
    name = f"r{rng.randrange(NAMES)}"
    roll = rng.random()
    if roll < 0.5:
        api.post(maps(ns), {"metadata": {"name": name, "labels": {"example.sonde.dev/request": "yes"}},
                            "data": {"v": str(rng.random())}})
    elif roll < 0.8:
        api.patch(f"{maps(ns)}/{name}", {"data": {"v": str(rng.random())}})
    elif roll < 0.9:
        api.delete(f"{maps(ns)}/{name}")
    else:
        api.delete(f"{maps(ns)}/{name}-copy")  # somebody deletes what is ours


def unsettled(api, ns):
    """Requests without an up-to-date copy and status."""
    items = {i["metadata"]["name"]: i for i in api.get(maps(ns))[1]["items"]}
    wrong = []
    for name, item in items.items():
        if "example.sonde.dev/request" not in item["metadata"].get("labels", {}):
            continue
        copy = items.get(f"{name}-copy")
        status = item["metadata"].get("annotations", {}).get("sonde.dev/status", "")
        if not copy or copy.get("data") != item.get("data") or '"status":"True"' not in status or \
                copy["metadata"]["ownerReferences"][0]["uid"] != item["metadata"]["uid"]:
            wrong.append(name)
    return wrong


def resources(pid):
    """(RSS in KiB, open descriptors)."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        rss = int(re.search(r"^Rss: +(\d+)", f.read(), re.M)[1])
    return rss, len(os.listdir(f"/proc/{pid}/fd"))


def churn(ns, changes, seed):
    api = cluster.api()
    rng = random.Random(seed)
    for _ in range(changes):
        change_something(api, ns, rng)
        time.sleep(0.01)
    api.close()


def churns():
    """Requests come, change and go under faults; it converges and does not grow"""
    with cluster.namespace("churn") as ns, FaultProxy(cluster, seed=1, intensity=10) as proxy, \
            Process(program("test/example-operator"), "--kubeconfig", proxy.kubeconfig, "--namespace", ns, "--connections", str(CONNECTIONS),
                    env={"ASAN_OPTIONS": "quarantine_size_mb=1"}) as p:  # freed memory held back looks like growth
        p.expect("^synced", 120)
        at_first = resources(p.pid)
        churn(ns, CHANGES // 3, 1)  # warm: buffers and tables have their size then
        before = resources(p.pid)
        churn(ns, CHANGES * 2 // 3, 2)
        proxy.off()
        api = cluster.api()
        wait(lambda: not unsettled(api, ns), 120, lambda: f"settled, but for {unsettled(api, ns)}")
        wait(lambda: p.lines[-1].startswith("idle") or any("idle after" in line for line in p.lines[-3:]), 120, "idle")
        after = resources(p.pid)
        diag(f"{CHANGES} changes, {sum(proxy.faults().values())} faults; at first {at_first}, warm {before}, after {after} (KiB, descriptors)")
        assert after[1] <= at_first[1] + CONNECTIONS, (at_first, after)  # those that it may keep open
        assert after[0] <= before[0] * 1.15 + 1024, (before, after)


with (ControlPlane.of("shared") if "cluster" in sys.argv[1:] else Engine("--no-node", "--no-fsync")) as cluster:
    main(churns)
