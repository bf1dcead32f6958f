#!/usr/bin/python3
"""A watch that begins with what is there (sendInitialEvents) on the embedded engine.

Kubernetes has it since 1.27, the control plane of the conformance suite is 1.20: so what is asked for here is what the
validation and the watch cache of those servers say, not what an answer beside it says.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Engine, main

MAPS = "/api/v1/namespaces/default/configmaps"
INITIAL = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
MARKED = "&allowWatchBookmarks=true"
NEEDS = ("FieldValueForbidden", "resourceVersionMatch",
         "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")


def make(name):
    status, made = client.post(MAPS, {"metadata": {"name": name, "labels": {"only": "these"}}})
    assert status == 201, made
    return made


def remove(*names):
    for name in names:
        assert client.delete(f"{MAPS}/{name}")[0] == 200


def watch(query, path=MAPS):
    return client.watch(f"{path}?watch=1&labelSelector=only%3Dthese{query}")


def short(event):
    return event["type"], event["object"]["metadata"].get("name")


def what_is_there_then_a_bookmark_then_what_comes():
    b, a = make("b"), make("a")
    events = watch(INITIAL + MARKED)
    assert [next(events) for _ in range(2)] == [{"type": "ADDED", "object": o} for o in (a, b)]  # by name
    mark = next(events)
    assert mark["type"] == "BOOKMARK" and mark["object"]["kind"] == "ConfigMap" and mark["object"]["apiVersion"] == "v1", mark
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}, mark
    assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(a["metadata"]["resourceVersion"]), mark
    make("c")
    assert short(next(events)) == ("ADDED", "c")
    remove("a", "b", "c")
    assert [short(next(events)) for _ in range(3)] == [("DELETED", n) for n in "abc"]
    events.close()
    # From the bookmark on nothing is missing.
    since = watch("&resourceVersion=" + mark["object"]["metadata"]["resourceVersion"])
    assert [short(next(since)) for _ in range(2)] == [("ADDED", "c"), ("DELETED", "a")]
    since.close()


def nothing_is_there():
    events = watch(INITIAL + MARKED)
    assert next(events)["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    events.close()


def a_version_is_the_oldest_that_will_do():
    old = make("a")["metadata"]["resourceVersion"]
    make("b")
    events = watch(f"{INITIAL}{MARKED}&resourceVersion={old}")
    assert [short(next(events)) for _ in range(2)] == [("ADDED", "a"), ("ADDED", "b")]
    assert next(events)["type"] == "BOOKMARK"
    events.close()
    status, answer = client.get(f"{MAPS}?watch=1{INITIAL}{MARKED}&resourceVersion=99999999")
    assert status == 504 and answer["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge", answer
    remove("a", "b")


def who_asks_for_no_bookmarks_gets_none():
    make("a")
    events = watch(INITIAL)
    assert short(next(events)) == ("ADDED", "a")
    make("b")
    assert short(next(events)) == ("ADDED", "b")
    events.close()
    remove("a", "b")


def false_means_from_now_on():
    make("a")
    for version in "", "&resourceVersion=0":
        events = watch(INITIAL.replace("true", "false") + MARKED + version + "&timeoutSeconds=1")
        assert [e["type"] for e in events] == ["BOOKMARK"]  # that of the end
    remove("a")


def refused(query):
    status, answer = client.get(f"{MAPS}?{query}")
    assert status == 422 and answer["reason"] == "Invalid" and answer["details"]["kind"] == "ListOptions", (query, answer)
    return [(c["reason"], c["field"], c["message"]) for c in answer["details"]["causes"]]


def it_must_say_how_its_version_is_meant():
    for value in "true", "false":
        assert refused(f"watch=1&sendInitialEvents={value}") == [NEEDS]
        assert refused(f"watch=1&sendInitialEvents={value}&resourceVersionMatch=Exact&resourceVersion=1") == [
            NEEDS, ("FieldValueNotSupported", "resourceVersionMatch", 'Unsupported value: "Exact": supported values: "NotOlderThan"')]
    assert refused("watch=1&continue=x" + INITIAL) == [
        ("FieldValueForbidden", "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden when continue is provided")]


def a_list_has_none():
    for query in "sendInitialEvents=true", "sendInitialEvents=false", INITIAL[1:] + "&resourceVersion=1":
        assert refused(query) == [("FieldValueForbidden", "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")]


if __name__ == "__main__":
    with Engine("--no-node", "--no-fsync") as engine:
        client = engine.api()
        main(what_is_there_then_a_bookmark_then_what_comes, nothing_is_there, a_version_is_the_oldest_that_will_do,
             who_asks_for_no_bookmarks_gets_none, false_means_from_now_on, it_must_say_how_its_version_is_meant, a_list_has_none)
