#!/usr/bin/python3
"""The controller runtime with the example controller: what it creates, repairs, leaves alone and reports."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Engine, Process, main, program, wait

PATIENCE = 120
REQUEST = {"example.sonde.dev/request": "yes"}


def path(ns, name=""):
    return f"/api/v1/namespaces/{ns}/configmaps" + (f"/{name}" if name else "")


def make(ns, name, data, labels=None, **meta):
    status, body = cluster.api().post(path(ns), {"metadata": {"name": name, "labels": labels or {}, **meta}, "data": data})
    assert status == 201, body
    return body


def get(ns, name):
    status, body = cluster.api().get(path(ns, name))
    return body if status == 200 else None


def status_of(ns, name):
    return json.loads(get(ns, name)["metadata"].get("annotations", {}).get("sonde.dev/status", "{}"))


def condition(ns, name, kind):
    return next((c for c in status_of(ns, name).get("conditions", []) if c["type"] == kind), {})


def copied(ns, name):
    """The copy, once it is there and says what the request says."""
    copy = get(ns, name + "-copy")
    ok = copy and copy.get("data") == get(ns, name).get("data") and condition(ns, name, "Ready").get("status") == "True"
    return copy if ok else None


def operator(ns):
    return Process(program("test/example-operator"), "--kubeconfig", cluster.kubeconfig, "--namespace", ns)


def quiet(p, after):
    """Waits until it is idle, after a line with that text; returns how many writes it had made."""
    p.expect(after, PATIENCE)
    start = max(i for i, line in enumerate(p.lines) if after in line) + 1
    return int(p.expect(r"idle after (\d+) writes", PATIENCE, start=start).group(1))


def creates_and_reports():
    """A request gets its child, owned and labelled, its status and one event"""
    with cluster.namespace("rt") as ns, operator(ns) as p:
        request = make(ns, "r", {"a": "1"}, REQUEST)
        copy = wait(lambda: copied(ns, "r"), PATIENCE, "copied")
        owner = copy["metadata"]["ownerReferences"][0]
        assert owner["uid"] == request["metadata"]["uid"] and owner["controller"] and owner["blockOwnerDeletion"], owner
        assert copy["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "sonde", copy
        p.expect("idle after 3 writes", PATIENCE)  # create, status, event
        events = cluster.api().get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")[1]["items"]
        assert [e["reason"] for e in events] == ["Copied"], events


def follows_the_plan():
    """Changed, added and removed fields of the plan reach the child; nothing else is touched"""
    with cluster.namespace("rt") as ns, operator(ns):
        make(ns, "r", {"a": "1", "b": "2"}, REQUEST)
        wait(lambda: copied(ns, "r"), PATIENCE, "copied")
        cluster.api().patch(path(ns, "r-copy"), {"metadata": {"labels": {"theirs": "stays"}}})
        cluster.api().patch(path(ns, "r"), {"data": {"a": "changed", "b": None, "c": "3"}})
        copy = wait(lambda: copied(ns, "r"), PATIENCE, "copied again")
        assert copy["data"] == {"a": "changed", "c": "3"}, copy
        assert copy["metadata"]["labels"]["theirs"] == "stays", copy
        cluster.api().patch(path(ns, "r"), {"data": {"c": None}})
        copy = wait(lambda: copied(ns, "r"), PATIENCE, "copied a third time")
        assert copy["data"] == {"a": "changed"}, copy


def repairs():
    """A child that is edited, deleted or loses its label is put right"""
    with cluster.namespace("rt") as ns, operator(ns):
        make(ns, "r", {"a": "1"}, REQUEST)
        first = wait(lambda: copied(ns, "r"), PATIENCE, "copied")
        cluster.api().patch(path(ns, "r-copy"), {"data": {"a": "spoiled"}})
        wait(lambda: copied(ns, "r"), PATIENCE, "repaired")
        cluster.api().delete(path(ns, "r-copy"))
        second = wait(lambda: copied(ns, "r"), PATIENCE, "made again")
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
        cluster.api().patch(path(ns, "r-copy"), {"metadata": {"labels": {"sonde.dev/controller": None}}})
        wait(lambda: get(ns, "r-copy")["metadata"]["labels"].get("sonde.dev/controller") == "example", PATIENCE, "labelled")


def leaves_strangers_alone():
    """A stranger's object of the child's name is never touched: NameConflict, until it goes away"""
    with cluster.namespace("rt") as ns, operator(ns):
        stranger = make(ns, "r-copy", {"mine": "yes"})
        make(ns, "r", {"a": "1"}, REQUEST)
        wait(lambda: condition(ns, "r", "Stalled").get("reason") == "NameConflict", PATIENCE, "the conflict is told")
        assert condition(ns, "r", "Ready")["status"] == "False"
        assert get(ns, "r-copy") == stranger
        events = cluster.api().get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")[1]["items"]
        wait(lambda: [e["reason"] for e in cluster.api().get(f"/apis/events.k8s.io/v1/namespaces/{ns}/events")[1]["items"]]
             == ["NameConflict"], PATIENCE, events)
        cluster.api().delete(path(ns, "r-copy"))
        wait(lambda: copied(ns, "r"), PATIENCE, "copied after all")
        assert not condition(ns, "r", "Stalled")


def reports_refusals():
    """What the server refuses for good is told on the request and not tried again and again"""
    with cluster.namespace("rt") as ns, operator(ns) as p:
        make(ns, "r", {"a": "1"}, REQUEST)
        wait(lambda: copied(ns, "r"), PATIENCE, "copied")
        status, body = cluster.api().patch(path(ns, "r-copy"), {"immutable": True})
        assert status == 200, body
        cluster.api().patch(path(ns, "r"), {"data": {"a": "2"}})
        wait(lambda: condition(ns, "r", "Stalled").get("reason") == "Refused", PATIENCE, "the refusal is told")
        before = quiet(p, "A request cannot be carried out")
        assert "immutable" in condition(ns, "r", "Stalled")["message"]
        make(ns, "other", {"a": "1"}, REQUEST)
        wait(lambda: copied(ns, "other"), PATIENCE, "others go on")
        p.expect(f"idle after {before + 3} writes", PATIENCE)
        cluster.api().delete(path(ns, "r-copy"))
        wait(lambda: copied(ns, "r"), PATIENCE, "it recovers")


def recreated_request():
    """A request deleted and made again under the same name gets a child of its own"""
    with cluster.namespace("rt") as ns, operator(ns):
        make(ns, "r", {"a": "1"}, REQUEST)
        first = wait(lambda: copied(ns, "r"), PATIENCE, "copied")
        cluster.api().delete(path(ns, "r"), {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
        request = make(ns, "r", {"a": "2"}, REQUEST)
        second = wait(lambda: copied(ns, "r"), PATIENCE, "copied for the new one")
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert second["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]


with Engine("--no-node", "--no-fsync") as cluster:
    main(creates_and_reports, follows_the_plan, repairs, leaves_strangers_alone, reports_refusals, recreated_request)
