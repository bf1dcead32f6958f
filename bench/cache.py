#!/usr/bin/python3
"""What the cache costs: N Jobs of 2 kB (managedFields counted) on a real API server.

Prints the growth of the mirror's RSS by them, and the time from its start to a complete cache beside kubectl's to get
and print the same list, both the best of three.

    bench/cache.py [N]        (10000)
"""
import concurrent.futures
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from mirror import Mirror
from sonde_test import ControlPlane

N = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
NS = "cache"
JOBS = f"/apis/batch/v1/namespaces/{NS}/jobs"
MIB_ASKED = 25


def job(i):
    return {"metadata": {"name": f"job-{i:05d}", "labels": {"app.kubernetes.io/managed-by": "sonde"}},
            "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "localhost/none:1", "command": ["/bin/true", "--number", str(i)],
                 "env": [{"name": f"SETTING_{k}", "value": "x" * 30} for k in range(4)],
                 "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}}


def create(cluster):
    def some(first):
        api = cluster.api()
        for i in range(first, N, 4):
            status, body = api.post(JOBS, job(i))
            assert status == 201, body

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def rss_mib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Rss:")) / 1024


def mirror_run(cluster, ns):
    """(seconds from start to a complete cache, RSS in MiB)."""
    began = time.monotonic()
    with Mirror(cluster.kubeconfig, ns, kind="jobs") as mirror:
        mirror.expect("Cache is complete", 120)
        seconds = time.monotonic() - began
        assert mirror.stats()["count"] == (N if ns == NS else 0), mirror.stats()
        return seconds, rss_mib(mirror.pid)


def kubectl_run(cluster):
    began = time.monotonic()
    cluster.kubectl("get", "jobs", "-n", NS)
    return time.monotonic() - began


def run(cluster):
    cluster.rig("stop", "controller-manager")  # no pods for them
    cluster.kubectl("create", "namespace", NS)
    cluster.kubectl("create", "namespace", "empty")
    print(f"creating {N} Jobs", flush=True)
    create(cluster)
    sample = cluster.api().get(f"{JOBS}/job-00000")[1]
    size = len(json.dumps(sample, separators=(",", ":")))
    empty = min(mirror_run(cluster, "empty")[1] for _ in range(2))
    runs = [mirror_run(cluster, NS) for _ in range(3)]
    kubectl = min(kubectl_run(cluster) for _ in range(3))
    seconds, rss = min(r[0] for r in runs), min(r[1] for r in runs)
    grown = rss - empty
    print(f"one Job on the wire              {size} bytes")
    print(f"RSS, empty cache                 {empty:.1f} MiB")
    print(f"RSS growth by {N} Jobs        {grown:.1f} MiB (asked: at most {MIB_ASKED} for 10 000)")
    print(f"start to complete cache          {seconds:.2f} s")
    print(f"kubectl get, same list           {kubectl:.2f} s: {kubectl / seconds:.1f} times as long (asked: at least 1)")
    assert grown <= MIB_ASKED * N / 10000 and seconds <= kubectl


with ControlPlane() as plane:
    run(plane)
