#!/usr/bin/python3
"""Leader election: a holder that was stopped past its lease does no harm when it goes on.

Two operators compete for one Lease; the API server's audit log tells whose writes took effect, and when.
"""
import concurrent.futures
import contextlib
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import leaders
from sonde_test import Begun, ControlPlane, Process, diag, main, program, wait

DURATION = 15  # a holder that is held up for less than two thirds of that keeps it
PATIENCE = 90
REQUESTS = 2
LOST = 3  # exit status of an operator that lost its lease


def samples(ns):
    return f"/apis/example.sonde.dev/v1/namespaces/{ns}/samples"


def request(ns, name):
    status, body = cluster.api().post(samples(ns), {
        "apiVersion": "example.sonde.dev/v1", "kind": "Sample", "metadata": {"name": name},
        "spec": {"data": {"value": name}}})
    assert status == 201, body


def operator(ns, identity, *options):
    return Process(program("test/example-operator"), "--kubeconfig", cluster.kubeconfig, "--namespace", ns, "--samples",
                   "--lease", "example", "--lease-duration", f"{DURATION}s", "--identity", identity, *options)


def done(ns, *names):
    """All of these have their copy and their status."""
    items = {i["metadata"]["name"]: i for i in cluster.api().get(samples(ns))[1]["items"]}
    return all("copy" in items[n].get("status", {}) for n in names)


def taken_over_at(ns, identity):
    """When the Lease was taken by this operator, by the API server's clock."""
    lease = cluster.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/example")[1]
    assert lease["spec"]["holderIdentity"] == identity, lease
    return lease["spec"]["acquireTime"]


def objects(ns):
    return [cluster.api().get(path)[1]["items"] for path in (samples(ns), f"/api/v1/namespaces/{ns}/configmaps")]


def late(ns, since):
    """The writes of a after b took over. Without events: one tells what a did before, and has no version to be refused by."""
    written = leaders.writes(cluster, ns, lambda event: event.get("userAgent", "").endswith(" example/a"), since)
    return [write for write in written if write[2] != "events"]


def stopped_past_its_lease():
    """SIGSTOP past the lease, SIGCONT: the old holder writes nothing and ends"""
    with cluster.namespace("lead") as ns, operator(ns, "a") as a:
        a.expect("^leading", PATIENCE)
        request(ns, "first")
        wait(lambda: done(ns, "first"), PATIENCE, "a works")
        with operator(ns, "b") as b:
            b.expect("^synced", PATIENCE)
            a.signal(signal.SIGSTOP)
            request(ns, "second")
            b.expect("^leading", PATIENCE)
            wait(lambda: done(ns, "second"), PATIENCE, "b works")
            since = taken_over_at(ns, "b")
            request(ns, "third")
            a.signal(signal.SIGCONT)
            assert a.wait(PATIENCE) == LOST, a.lines
            wait(lambda: done(ns, "third"), PATIENCE, "b works on")
            assert late(ns, since) == [], late(ns, since)


def stopped_at(k):
    """Stopped before write K is sent; how many late writes were refused."""
    with cluster.namespace("lead") as ns, operator(ns, "a", "--stop-at", str(k)) as a:
        a.expect("^leading", PATIENCE)
        names = [f"r{i}" for i in range(REQUESTS)]
        for name in names:
            request(ns, name)
        a.expect("^stopping", PATIENCE)
        with operator(ns, "b") as b:
            b.expect("^leading", PATIENCE)
            wait(lambda: done(ns, *names), PATIENCE, "b works")
            wait(lambda: len(objects(ns)[1]) == REQUESTS + 1, PATIENCE, "the copies, and the map that every namespace gets")
            since = taken_over_at(ns, "b")
            before = objects(ns)
            a.signal(signal.SIGCONT)
            assert a.wait(PATIENCE) == LOST, a.lines
            with contextlib.suppress(AssertionError):  # the audit log is written after the answer
                wait(lambda: late(ns, since), 5)
            after = late(ns, since)
            # 409, or 500 when the operator ended before the API server had refused it.
            assert all(w[3] >= 400 for w in after), f"write {k}: {after}"
            assert objects(ns) == before, f"write {k} took effect"
            return len(after)


def stopped_between_check_and_send():
    """Stopped between the check of the lease and write k, for every k: the late write is refused"""
    stops = range(1, 2 * REQUESTS + 1)
    with concurrent.futures.ThreadPoolExecutor(len(stops)) as pool:  # each waits for a lease to run out
        refused = sum(pool.map(stopped_at, stops))
    diag(f"{len(stops)} stops, {refused} late writes refused")
    assert refused > 0


def handed_over():
    """SIGTERM releases the Lease: the other takes over without waiting for it to run out"""
    with cluster.namespace("lead") as ns, operator(ns, "a") as a:
        a.expect("^leading", PATIENCE)
        with operator(ns, "b") as b:
            b.expect("^synced", PATIENCE)
            a.signal(signal.SIGTERM)
            assert a.wait(PATIENCE) == 0, a.lines
            lease = cluster.api().get(f"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/example")[1]["spec"]
            assert lease.get("holderIdentity", "") in ("", "b"), lease
            b.expect("^leading", PATIENCE)
            request(ns, "r")
            wait(lambda: done(ns, "r"), PATIENCE, "b works")


with ControlPlane.of("shared") as cluster:
    cluster.apply_crds("test/tools/example/crd.yaml")
    main(*[Begun(test) for test in (stopped_past_its_lease, stopped_between_check_and_send, handed_over)])  # leases run out meanwhile
