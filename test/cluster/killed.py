#!/usr/bin/python3
"""The example controller killed at every API write it makes, and restarted: the same end, nothing twice."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from sonde_test import ControlPlane, Process, diag, main, program, wait

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
        if meta["name"] == "kube-root-ca.crt":
            continue
        status = json.loads(meta.get("annotations", {}).get("sonde.dev/status", "null"))
        for condition in (status or {}).get("conditions", []):
            condition.pop("lastTransitionTime")
        state[meta["name"]] = {"data": item.get("data"), "status": status, "labels": meta.get("labels"),
                               "plan": meta.get("annotations", {}).get("sonde.dev/plan"),
                               "owners": [o["name"] for o in meta.get("ownerReferences", [])]}
    return state


def events(ns):
    items = cluster.api().get(f"{EVENTS}/namespaces/{ns}/events")[1]["items"]
    return sorted((e["regarding"]["name"], e["reason"], e.get("series") is None) for e in items)


def audited(ns, failed=False):
    """For each object of the namespace, how often the operator created it and wrote its status with success; or how
    often the log says 500, which it also does of a write that was carried out when its client was killed meanwhile."""
    counts = {}
    for e in cluster.audit():
        ref, code = e.get("objectRef", {}), e.get("responseStatus", {}).get("code", 0)
        if ref.get("namespace") != ns or not e.get("userAgent", "").startswith("sonde/") or \
                not (code == 500 if failed else code < 300):
            continue
        if e["verb"] in ("create", "patch", "update", "delete") and ref["resource"] == "configmaps":
            # The audit log's Metadata level does not name what a POST creates; count those together.
            key = (e["verb"], ref.get("name", ""))
            counts[key] = counts.get(key, 0) + 1
    return counts


def agrees(ns, audit):
    sure, perhaps = audited(ns), audited(ns, failed=True)
    return set(sure) <= set(audit) and \
        all(sure.get(key, 0) <= n <= sure.get(key, 0) + perhaps.get(key, 0) for key, n in audit.items())


def reference():
    with cluster.namespace("ref") as ns:
        prepare(ns)
        writes = run_to_the_end(ns)
        again = run_to_the_end(ns)
        assert again == 0, f"{again} writes with nothing to do"
        wait(lambda: sum(audited(ns).values()) >= 2 * REQUESTS, 60, "the audit log is written")
        return writes, end_state(ns), audited(ns), events(ns)


def check(ns, what):
    writes, state, audit, _ = REFERENCE
    run_to_the_end(ns)
    assert run_to_the_end(ns) == 0, f"{what}: writes with nothing to do"
    assert end_state(ns) == state, f"{what}: {end_state(ns)} is not {state}"
    # The audit log is written after the answer; more than was asked for would stay, too.
    wait(lambda: agrees(ns, audit), 60, f"{what}: the audit log says {audit}")
    # An event may be lost with its process, but is never there twice.
    names = [e[0] for e in events(ns)]
    assert len(names) == len(set(names)), f"{what}: {names}"


def killed_before_every_write():
    """Killed before write k leaves, for every k"""
    for k in range(1, REFERENCE[0] + 1):
        with cluster.namespace("kill") as ns:
            prepare(ns)
            with operator(ns, "--kill-at", str(k)) as p:
                assert p.wait(120) == -signal.SIGKILL, p.lines
            check(ns, f"before write {k}")
    diag(f"{REFERENCE[0]} writes")


def killed_after_every_commit():
    """Killed after write k took effect and before its answer came, for every k"""
    for k in range(1, REFERENCE[0] + 1):
        with cluster.namespace("kill") as ns:
            prepare(ns)
            with FaultProxy(cluster, script=f"match WRITE * nth={k} -> delay-answer ms=20000\n") as proxy, \
                    operator(ns, kubeconfig=proxy.kubeconfig) as p:
                # The proxy logs a write when the API server has answered it.
                wait(lambda: sum(e["class"] == "write" and e["status"] >= 200 for e in proxy.log()) >= k, 120,
                     f"write {k} took effect")
                p.signal(signal.SIGKILL)
                p.wait(120)
            check(ns, f"after write {k}")


def answers_lost():
    """The answer to write k is lost and the process lives on, for every k"""
    for k in range(1, REFERENCE[0] + 1):
        with cluster.namespace("lose") as ns:
            prepare(ns)
            with FaultProxy(cluster, script=f"match WRITE * nth={k} -> lose\n") as proxy, \
                    operator(ns, "--exit-when-idle", kubeconfig=proxy.kubeconfig) as p:
                assert p.wait(120) == 0, p.lines
            check(ns, f"answer {k} lost")


with ControlPlane(KCLUSTER_AUDIT="1") as cluster:
    REFERENCE = reference()
    main(killed_before_every_write, killed_after_every_commit, answers_lost)
