#!/usr/bin/python3
"""The reflector and its cache through seeded fault schedules: after each, cache and server agree exactly.

A schedule: a proxy with the seed's faults between the mirror and the API server, while writers change objects directly;
then the faults end, and everything must agree, with no object ever having gone back in version. 24 schedules, a thousand
in the long form (SONDE_EXTENT=long). SONDE_SEED=N runs that one alone, SONDE_SCHEDULES=N that many. With the argument
`cluster` the API server is Kubernetes's, otherwise the embedded engine.
"""
import concurrent.futures
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from mirror import Mirror
from sonde_test import SOAK, ControlPlane, Engine, diag, main

SCHEDULES = int(os.environ.get("SONDE_SCHEDULES") or (1000 if SOAK else 24))
SEEDS = [int(os.environ["SONDE_SEED"])] if os.environ.get("SONDE_SEED") else list(range(1, SCHEDULES + 1))
PARALLEL = 6
WRITES = 150


def write(api, path, rng):
    """One random change to one of a few objects, so that names are made, deleted and made again."""
    name = f"m{rng.randrange(12)}"
    roll = rng.random()
    if roll < 0.4:
        api.post(path, {"metadata": {"name": name}, "data": {"v": str(rng.random())}})
    elif roll < 0.8:
        api.patch(f"{path}/{name}", {"data": {"v": str(rng.random())}})
    else:
        api.delete(f"{path}/{name}")


def writer(seed, path):
    api = cluster.api()
    rng = random.Random(seed)
    for _ in range(WRITES):
        write(api, path, rng)
        time.sleep(rng.random() * 0.05)
    api.close()


def schedule(seed):
    """Returns (faults made, what went wrong or None)."""
    rng = random.Random(seed)
    with cluster.namespace("chaos") as ns:
        path = f"/api/v1/namespaces/{ns}/configmaps"
        with FaultProxy(cluster, seed=seed, intensity=rng.choice([60, 80, 95])) as proxy, \
                Mirror(proxy.kubeconfig, ns, "--watchdog", "2s", "--page", "3") as mirror:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                list(pool.map(lambda i: writer(seed * 10 + i, path), range(2)))
            proxy.off()
            faults = proxy.faults()
            try:
                mirror.agrees_with(cluster.api())
                assert mirror.popen.poll() is None, "the mirror ended"
            except AssertionError as e:
                return faults, str(e)
            return faults, None


def all_schedules():
    """Cache and server agree after every schedule"""
    total, failed, began = {}, [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for seed, (faults, wrong) in zip(SEEDS, pool.map(schedule, SEEDS)):
            for name, n in faults.items():
                total[name] = total.get(name, 0) + n
            if seed % 50 == 0:
                diag(f"{seed} of {len(SEEDS)} after {time.monotonic() - began:.0f} s")
            if wrong:
                failed.append(seed)
                diag(f"SONDE_SEED={seed} test/kube/chaos.py: {wrong}")
    diag(f"{len(SEEDS)} schedules in {time.monotonic() - began:.0f} s; faults: "
         + ", ".join(f"{n} {name}" for name, n in sorted(total.items()) if n))
    assert not failed, f"seeds {failed}"


with (ControlPlane.of("shared") if "cluster" in sys.argv[1:] else Engine("--no-node", "--no-fsync")) as cluster:
    main(all_schedules)
