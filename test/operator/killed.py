#!/usr/bin/python3
"""The example controller killed at every API write it makes, and restarted: the same end, nothing twice."""
import collections
import concurrent.futures
import contextlib
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from sonde_test import Engine, Process, diag, main, program, wait
from watched import Watched

REQUESTS = 3
EVENTS = "/apis/events.k8s.io/v1"


def maps(ns):
    return f"/api/v1/namespaces/{ns}/configmaps"


def prepare(ns):
    api = cluster.api()
    for i in range(REQUESTS):
        status, body = api.post(maps(ns), {"metadata": {"name": f"r{i}", "labels": {"example.sonde.dev/request": "yes"}},
                                           "data": {"value": str(i)}})
        assert status == 201, body


def operator(ns, *options, kubeconfig=None):
    return Process(program("test/example-operator"), "--kubeconfig", kubeconfig or cluster.kubeconfig,
                   "--namespace", ns, *options)


def run_to_the_end(ns):
    """Returns how many writes it needed."""
    with operator(ns, "--exit-when-idle") as p:
        writes = int(p.expect(r"idle after (\d+) writes", 120)[1])
        assert p.wait(120) == 0, p.lines
    return writes


def end_state(ns):
    """Everything in the namespace, without what differs from run to run."""
    state = {}
    for item in cluster.api().get(maps(ns))[1]["items"]:
        meta = item["metadata"]
        status = json.loads(meta.get("annotations", {}).get("sonde.dev/status", "null"))
        for condition in (status or {}).get("conditions", []):
            condition.pop("lastTransitionTime")
        state[meta["name"]] = {"data": item.get("data"), "status": status, "labels": meta.get("labels"),
                               "plan": meta.get("annotations", {}).get("sonde.dev/plan"),
                               "owners": [o["name"] for o in meta.get("ownerReferences", [])]}
    return state


def events(ns):
    items = cluster.api().get(f"{EVENTS}/namespaces/{ns}/events")[1]["items"]
    return [e["regarding"]["name"] for e in items]


def changes(seen):
    """How often each object was created, changed and deleted: what took effect, whoever still got its answer."""
    seen.catch_up("configmaps")
    return collections.Counter((change, item["metadata"]["name"]) for change, item in seen.seen["configmaps"])


@contextlib.contextmanager
def requests(prefix):
    """A namespace with the requests in it, and a watch of all that happens to them."""
    with cluster.namespace(prefix) as ns, Watched(cluster, ns, {"configmaps": "/api/v1"}) as seen:
        prepare(ns)
        yield ns, seen


def reference():
    with requests("ref") as (ns, seen):
        writes = run_to_the_end(ns)
        again = run_to_the_end(ns)
        assert again == 0, f"{again} writes with nothing to do"
        return writes, end_state(ns), changes(seen)


def check(ns, seen, what):
    _, state, expected = REFERENCE
    run_to_the_end(ns)
    assert run_to_the_end(ns) == 0, f"{what}: writes with nothing to do"
    assert end_state(ns) == state, f"{what}: {end_state(ns)} is not {state}"
    assert changes(seen) == expected, f"{what}: {changes(seen)} is not {expected}"
    # An event may be lost with its process, but is never there twice.
    names = events(ns)
    assert len(names) == len(set(names)), f"{what}: {names}"


def at_every_write(case):
    """CASE(ns, k) for every write k there is, each in a namespace of its own."""
    def one(k):
        with requests("killed") as (ns, seen):
            case(ns, k)
            check(ns, seen, f"write {k}")
    with concurrent.futures.ThreadPoolExecutor(5) as pool:  # they wait most of the time
        list(pool.map(one, range(1, REFERENCE[0] + 1)))


def killed_before_every_write():
    """Killed before write k leaves, for every k"""
    def case(ns, k):
        with operator(ns, "--kill-at", str(k)) as p:
            assert p.wait(120) == -signal.SIGKILL, p.lines
    at_every_write(case)
    diag(f"{REFERENCE[0]} writes")


def killed_after_every_commit():
    """Killed after write k took effect and before its answer came, for every k"""
    def case(ns, k):
        with FaultProxy(cluster, script=f"match WRITE * nth={k} -> delay-answer ms=20000\n") as proxy, \
                operator(ns, kubeconfig=proxy.kubeconfig) as p:
            # The proxy logs a write when the API server has answered it.
            wait(lambda: sum(e["class"] == "write" and e["status"] >= 200 for e in proxy.log()) >= k, 120, f"write {k} took effect")
            p.signal(signal.SIGKILL)
            p.wait(120)
    at_every_write(case)


def answers_lost():
    """The answer to write k is lost and the process lives on, for every k"""
    def case(ns, k):
        with FaultProxy(cluster, script=f"match WRITE * nth={k} -> lose\n") as proxy, \
                operator(ns, "--exit-when-idle", kubeconfig=proxy.kubeconfig) as p:
            assert p.wait(120) == 0, p.lines
    at_every_write(case)


with Engine("--no-node", "--no-fsync") as cluster:
    REFERENCE = reference()
    main(killed_before_every_write, killed_after_every_commit, answers_lost)
