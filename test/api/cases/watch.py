"""watches: what they send, selectors, where they begin, and when they end."""

from suite.case import (MERGE, TABLE, configmap, custom, get, group, job, lease, pod, post, quoted)

case = group("watch")


def from_now(t, path="leases", **more):
    """A watch of what comes from now on."""
    mark = "&" if "?" in path else "?"
    return t.watch(f"{path}{mark}resourceVersion={t.version(path)}", **more)


def change(t, name, body, plural="leases"):
    t.quietly("PATCH", f"{plural}/{name}", body, MERGE)


def make(t, name, plural="leases", **more):
    t.quietly("POST", plural, {"metadata": {"name": name, **more}, **({"spec": {}} if plural == "leases" else {})})


def remove(t, name, plural="leases"):
    t.quietly("DELETE", f"{plural}/{name}")


case("added, modified, deleted", lambda t: (
    w := from_now(t), make(t, "a"), change(t, "a", {"spec": {"holderIdentity": "x"}}), remove(t, "a"), w.events(3)))
case("a write without a change sends nothing", lambda t: (
    w := from_now(t), make(t, "a"), change(t, "a", {}), change(t, "a", {"metadata": {"labels": {"x": "y"}}}), w.events(2)))
case("what is there comes first without a version", lambda t: (make(t, "a"), t.until(
    lambda: len(t.quietly("GET", "leases?resourceVersion=0")[1]["items"]) == 1, "in the cache"), w := t.watch("leases"), w.events(1),
    remove(t, "a"), w.events(1)))
case("what is there comes first with version 0", lambda t: (make(t, "a"), t.until(
    lambda: len(t.quietly("GET", "leases?resourceVersion=0")[1]["items"]) == 1, "in the cache"),
    w := t.watch("leases?resourceVersion=0"), w.events(1), make(t, "b"), w.events(1)))
case("from an object's version", lambda t: (make(t, "a"), v := t.version("leases/a"), make(t, "b"), remove(t, "a"),
                                            w := t.watch(f"leases?resourceVersion={v}"), w.events(2)))
case("one object by its path is not possible, by field it is", lambda t: (make(t, "a"), t.get("leases/a?watch=1&timeoutSeconds=1")))
case("it ends when its time is over", lambda t: t.watch("leases?timeoutSeconds=1&resourceVersion=" + t.version("leases")).end())
case("a time that is no number", get("leases?watch=1&timeoutSeconds=x"))
case("watch=true and watch=1 and watch=yes", lambda t: [t.watch(
    f"leases?watch={x}&timeoutSeconds=1&resourceVersion=" + t.version("leases")).end() for x in ("true", "1")],
     lambda t: t.get("leases?watch=false"))
case("a version that is no number", get("leases?watch=1&resourceVersion=abc"))
case("resourceVersionMatch is not for watches", get("leases?watch=1&resourceVersion=1&resourceVersionMatch=Exact"))
case("as a table", lambda t: (w := from_now(t, accept=TABLE), make(t, "a"), make(t, "b"), w.events(2)))
case("over all namespaces", lambda t: (
    w := from_now(t, t.fill("/apis/coordination.k8s.io/v1/leases?labelSelector=only%3D$NS")), make(t, "a", labels={"only": t.ns}),
    remove(t, "a"), w.events(2)))
case("pods: a graceful deletion", lambda t: (
    w := from_now(t, "pods"), t.quietly("POST", "pods", pod("a", {"nodeName": "$NODE"})), t.quietly("DELETE", "pods/a"),
    t.quietly("DELETE", "pods/a?gracePeriodSeconds=0"), w.events(3)))
case("pods: a status", lambda t: (
    w := from_now(t, "pods"), t.quietly("POST", "pods", pod("a")), change(t, "a/status", {"status": {"phase": "Running"}}, "pods"), w.events(2)))
case("custom resources", lambda t: (
    w := from_now(t, "plains"), t.quietly("POST", "plains", custom("plains", "a", spec={"value": "1"})),
    change(t, "a", {"spec": {"value": "2"}}, "plains"), remove(t, "a", "plains"), w.events(3)))
case("the last state of what is deleted, with the version of its deletion", lambda t: (
    make(t, "a"), v := t.version("leases/a"), w := from_now(t), remove(t, "a"), e := w.events(1),
    t.note(str(int(e["object"]["metadata"]["resourceVersion"]) > int(v)))))
case("a deleted collection", lambda t: (
    make(t, "a"), make(t, "b"), make(t, "c"), w := from_now(t), t.quietly("DELETE", "leases"),
    t.note("\n".join(sorted(f"{e['type']} {e['object']['metadata']['name']}" for e in (w._next() for _ in range(3)) if not isinstance(e, str))))))
case("versions grow", lambda t: (
    w := from_now(t), [make(t, n) for n in "abcd"], v := [int(w._next()["object"]["metadata"]["resourceVersion"]) for _ in range(4)],
    t.note(str(v == sorted(set(v))))))
case("the old path of watches", lambda t: t.watch(t.fill(
    "/apis/coordination.k8s.io/v1/watch/namespaces/$NS/leases?timeoutSeconds=1&resourceVersion=" + t.version("leases"))).end())
case("two watches see the same", lambda t: (a := from_now(t), b := from_now(t), make(t, "a"), remove(t, "a"), a.events(2), b.events(2)))
# Kubernetes sends one only if there was a change of the kind meanwhile, here one that the watch does not ask for.
case("a bookmark before the end", lambda t: (
    w := from_now(t, "leases?allowWatchBookmarks=true&timeoutSeconds=30&fieldSelector=" + quoted("metadata.name=nobody"), bookmarks=True),
    make(t, "somebody"), w.end()), own=True)  # beside all others, for it takes long

select = group("watch-select")


def selected(title, selector, *changes, field=False):
    def run(t):
        w = from_now(t, f"leases?{'fieldSelector' if field else 'labelSelector'}={quoted(selector)}")
        for do in changes:
            do(t)
        make(t, "end", labels={"l": "1"})
        for _ in range(9):
            event = w.events(1)
            if not event or event["object"]["metadata"]["name"] == "end":
                break
    select(title, run)


def labelled(name, value):
    return lambda t: change(t, name, {"metadata": {"labels": {"l": value}}})


selected("what does not match is not seen", "l=1", lambda t: make(t, "a", labels={"l": "2"}), lambda t: remove(t, "a"))
selected("what begins to match is added", "l=1", lambda t: make(t, "a"), labelled("a", "1"))
selected("what no longer matches is deleted, with its new state", "l=1", lambda t: make(t, "a", labels={"l": "1"}), labelled("a", "2"))
selected("out and in again", "l=1", lambda t: make(t, "a", labels={"l": "1"}), labelled("a", "2"), labelled("a", "1"))
selected("a change of what matches", "l=1", lambda t: make(t, "a", labels={"l": "1"}), lambda t: change(
    t, "a", {"spec": {"holderIdentity": "h"}}), lambda t: remove(t, "a"))
selected("a deletion of what no longer matched", "l=1", lambda t: make(t, "a", labels={"l": "1"}), labelled("a", "2"), lambda t: remove(t, "a"))
selected("a negative selector", "l!=2", lambda t: make(t, "a", labels={"l": "2"}), labelled("a", None))
select("one object by its name", lambda t: (
    w := from_now(t, "leases?fieldSelector=metadata.name%3Db"), make(t, "a"), make(t, "b"), remove(t, "a"), remove(t, "b"), w.events(2)))
select("pods by phase", lambda t: (
    w := from_now(t, "pods?fieldSelector=status.phase%3DRunning"), t.quietly("POST", "pods", pod("a")),
    change(t, "a/status", {"status": {"phase": "Running"}}, "pods"), change(t, "a/status", {"status": {"phase": "Failed"}}, "pods"),
    w.events(2)))
select("pods by node", lambda t: (
    w := from_now(t, "pods?fieldSelector=spec.nodeName%3D$NODE"), t.quietly("POST", "pods", pod("z")),
    t.quietly("POST", "pods", pod("a", {"nodeName": "$NODE"})), w.events(1)))
select("a bad selector", get("leases?watch=1&labelSelector=%3D%3D"))
select("a field that cannot be selected", get("leases?watch=1&fieldSelector=spec.x%3D1"))

resume = group("watch-resume-410")
resume("a version that is long gone, of custom resources", lambda t: (w := t.watch("plains?resourceVersion=1"), w.end()))
resume("a version that is long gone, of custom resources, as a table", lambda t: (
    w := t.watch("plains?resourceVersion=1", accept=TABLE), w.end()))
resume("it goes on after the last event seen", lambda t: (
    w := from_now(t), make(t, "a"), e := w.events(1), w.close(), make(t, "b"), remove(t, "a"),
    again := t.watch("leases?resourceVersion=" + e["object"]["metadata"]["resourceVersion"]), again.events(2)))
resume("it goes on after a deletion", lambda t: (
    make(t, "a"), w := from_now(t), remove(t, "a"), e := w.events(1), make(t, "b"),
    again := t.watch("leases?resourceVersion=" + e["object"]["metadata"]["resourceVersion"]), again.events(1)))
