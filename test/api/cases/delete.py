"""delete: preconditions, grace, finalizers, collections, owners, namespaces."""

from suite.case import (configmap, custom, delete, get, group, job, lease, patch, pod, post, put, quoted, secret)

case = group("delete")
A = post("configmaps", configmap("a", {"k": "v"}))


def options(**more):
    return {"kind": "DeleteOptions", "apiVersion": "v1", **more}


case("a ConfigMap", A, delete("configmaps/a"), get("configmaps/a"))
case("what is not there", delete("configmaps/none"))
case("with a right uid", A, lambda t: t.delete("configmaps/a", options(preconditions={
    "uid": t.quietly("GET", "configmaps/a")[1]["metadata"]["uid"]})))
case("with a wrong uid", A, delete("configmaps/a", options(preconditions={"uid": "11111111-1111-4111-8111-111111111111"})))
case("with a right version", A, lambda t: t.delete("configmaps/a", options(preconditions={"resourceVersion": t.version("configmaps/a")})))
case("with an old version", A, delete("configmaps/a", options(preconditions={"resourceVersion": "1"})))
case("a body of another kind", A, delete("configmaps/a", {"kind": "Pod", "apiVersion": "v1"}))
case("a body without kind", A, delete("configmaps/a", {"gracePeriodSeconds": 0}))
case("a propagation that does not exist", A, delete("configmaps/a?propagationPolicy=Some"))
case("propagation and orphanDependents at once", A, delete("configmaps/a?propagationPolicy=Orphan&orphanDependents=true"))
case("grace below 0", A, delete("configmaps/a?gracePeriodSeconds=-1"))
case("grace that is no number", A, delete("configmaps/a?gracePeriodSeconds=x"))
case("a pod that is nowhere goes at once", post("pods", pod("a")), delete("pods/a"), get("pods/a"))
case("a pod on a node waits for it", post("pods", pod("a", {"nodeName": "$NODE"})), delete("pods/a"), get("pods/a"), delete(
    "pods/a?gracePeriodSeconds=5"), delete("pods/a?gracePeriodSeconds=0"), get("pods/a"))
case("a pod on a node with a grace of its own", post("pods", pod("a", {"nodeName": "$NODE", "terminationGracePeriodSeconds": 7})),
     delete("pods/a"), delete("pods/a", options(gracePeriodSeconds=0)))
case("a finished pod goes at once", post("pods", pod("a", {"nodeName": "$NODE"})), patch("pods/a/status", {"status": {"phase": "Succeeded"}}),
     delete("pods/a"), get("pods/a"))
case("a Lease", post("leases", lease("a")), delete("leases/a"))
case("a Secret", post("secrets", secret("a")), delete("secrets/a"))
case("a custom resource", post("plains", custom("plains", "a", spec={"value": "1"})), delete("plains/a"), get("plains/a"))
case("broken JSON", A, delete("configmaps/a", "{"))
case("a name can be used again and gets another uid", A, delete("configmaps/a"), A, get("configmaps/a"))

fin = group("finalizers")
F = post("configmaps", configmap("a", {"k": "v"}, finalizers=["x/one", "x/two"]))
FREE = patch("configmaps/a", {"metadata": {"finalizers": None}})

fin("a delete marks and waits", F, delete("configmaps/a"), get("configmaps/a"), FREE, get("configmaps/a"))
fin("one is removed, then the other", F, delete("configmaps/a"), patch("configmaps/a", {"metadata": {"finalizers": ["x/two"]}}),
    patch("configmaps/a", {"metadata": {"finalizers": []}}), get("configmaps/a"))
fin("a second delete changes nothing", F, delete("configmaps/a"), delete("configmaps/a"), FREE)
fin("none can be added to what is being deleted", F, delete("configmaps/a"), patch("configmaps/a", {"metadata": {"finalizers": [
    "x/one", "x/two", "x/three"]}}), FREE)
fin("other changes are still possible", F, delete("configmaps/a"), patch("configmaps/a", {"data": {"k": "2"}}), FREE)
fin("the name is taken until it is gone", F, delete("configmaps/a"), post("configmaps", configmap("a")), FREE)
fin("a name that is not valid", post("configmaps", configmap("a", finalizers=["no slash"])))
fin("a name without a domain", post("configmaps", configmap("a", finalizers=["plain"])), FREE)
fin("an update removes the last one", F, delete("configmaps/a"), lambda t: (
    o := t.quietly("GET", "configmaps/a")[1], o["metadata"].pop("finalizers"), t.put("configmaps/a", o)), get("configmaps/a"))
fin("a custom resource", post("plains", custom("plains", "a", meta={"finalizers": ["x/one"]})), delete("plains/a"), get("plains/a"),
    patch("plains/a", {"metadata": {"finalizers": None}}), get("plains/a"))
fin("a pod with one is marked too", post("pods", pod("a", finalizers=["x/one"])), delete("pods/a"), get("pods/a"), patch(
    "pods/a", {"metadata": {"finalizers": None}}), get("pods/a"))
fin("events of a watch", lambda t: (version := t.version("leases"), w := t.watch(f"leases?resourceVersion={version}"),
                                    t.quietly("POST", "leases", lease("a", finalizers=["x/one"])), t.quietly("DELETE", "leases/a"),
                                    t.quietly("PATCH", "leases/a", {"metadata": {"finalizers": None}}, "application/merge-patch+json"),
                                    w.events(3)))

many = group("deletecollection")
THREE = [post("leases", lease(n, labels={"l": v})) for n, v in (("a", "1"), ("b", "2"), ("c", "1"))]

many("all", *THREE, delete("leases"), get("leases"))
many("by label", *THREE, delete("leases?labelSelector=l%3D1"), get("leases"))
many("by field", *THREE, delete("leases?fieldSelector=metadata.name%3Db"), get("leases"))
many("none", delete("leases"))
many("a bad selector", delete("leases?labelSelector=%3D%3D"))
many("with finalizers", post("leases", lease("a", finalizers=["x/y"])), post("leases", lease("b")), delete("leases"), get("leases"), patch(
    "leases/a", {"metadata": {"finalizers": None}}))
many("custom resources", post("plains", custom("plains", "a")), post("plains", custom("plains", "b")), delete("plains"), get("plains"))
many("services cannot be deleted together", delete("services"))
many("with preconditions", *THREE, delete("leases", options(preconditions={"uid": "11111111-1111-4111-8111-111111111111"})))

gc = group("owner-gc")


def owned(t, name, owner, plural="configmaps", block=None, controller=None):
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    if block is not None:
        reference["blockOwnerDeletion"] = block
    if controller is not None:
        reference["controller"] = controller
    return t.post(plural, {"metadata": {"name": name, "ownerReferences": [reference]}})


def owner_deleted(query, then):
    def run(t):
        owner = t.post("configmaps", configmap("o"))
        owned(t, "child", owner, block=True)
        t.until(lambda: t.quietly("GET", "configmaps/child?resourceVersion=0")[0] == 200, "seen")
        t.delete("configmaps/o" + query)
        then(t)
    return run


gc("background", owner_deleted("?propagationPolicy=Background", lambda t: (t.gone("configmaps/o"), t.gone("configmaps/child"))), own=True)
gc("foreground", owner_deleted("?propagationPolicy=Foreground", lambda t: (t.gone("configmaps/o"), t.gone("configmaps/child"))), own=True)
gc("orphan", owner_deleted("?propagationPolicy=Orphan", lambda t: (t.gone("configmaps/o"), t.wait(
    "configmaps/child", lambda s, o: s == 200 and not o["metadata"].get("ownerReferences"), "let go", only=lambda v: (
        v["metadata"].pop("managedFields", None), v)[1]))), own=True)
gc("the old way to orphan", owner_deleted("?orphanDependents=true", lambda t: (t.gone("configmaps/o"), t.wait(
    "configmaps/child", lambda s, o: s == 200 and not o["metadata"].get("ownerReferences"), "let go", only=lambda v: v["kind"]))), own=True)
gc("an owner that never was", lambda t: (owned(t, "child", {"metadata": {"name": "x", "uid": "11111111-1111-4111-8111-111111111111"}}),
                                         t.gone("configmaps/child")), own=True)
gc("two owners, one goes", lambda t: (
    a := t.post("configmaps", configmap("oa")), b := t.post("configmaps", configmap("ob")),
    t.post("configmaps", configmap("child", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": x["metadata"]["name"],
                                                              "uid": x["metadata"]["uid"]} for x in (a, b)])),
    t.delete("configmaps/oa"), t.wait("configmaps/child", lambda s, o: s == 200 and len(o["metadata"]["ownerReferences"]) == 1,
                                      "one reference", only=lambda v: v["metadata"]["ownerReferences"]),
    t.delete("configmaps/ob"), t.gone("configmaps/child")), own=True)
gc("grandchildren go too", lambda t: (
    a := t.post("configmaps", configmap("o")), b := owned(t, "child", a), owned(t, "grandchild", b, "configmaps"),
    t.delete("configmaps/o"), t.gone("configmaps/child"), t.gone("configmaps/grandchild")), own=True)
gc("two controllers", post("configmaps", configmap("a", ownerReferences=[
    {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": "11111111-1111-4111-8111-11111111111" + n, "controller": True} for n in "12"])))
gc("a reference without uid", post("configmaps", configmap("a", ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "n"}])))
gc("a reference without anything", post("configmaps", configmap("a", ownerReferences=[{}])))
gc("an Event cannot own", post("configmaps", configmap("a", ownerReferences=[
    {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "11111111-1111-4111-8111-111111111111"}])))
gc("foreground marks the owner", lambda t: (
    o := t.post("configmaps", configmap("o", finalizers=["x/y"])), t.delete("configmaps/o?propagationPolicy=Foreground"),
    t.wait("configmaps/o", lambda s, v: v["metadata"]["finalizers"] == ["x/y"], "collected", only=lambda v: v["metadata"]["finalizers"]),
    t.patch("configmaps/o", {"metadata": {"finalizers": None}}, only=lambda v: v["kind"])), own=True)
gc("a Job's pods are orphaned by default when it is deleted", post("jobs", job("j"), only=lambda v: v["kind"]), lambda t: (
    t.until(lambda: t.quietly("GET", "pods")[1]["items"], "a pod"), t.delete("jobs/j", only=lambda v: v["metadata"].get("finalizers")), t.gone("jobs/j"),
    t.wait("pods", lambda s, o: s == 200 and not o["items"][0]["metadata"].get("ownerReferences"), "let go",
           only=lambda v: [i["metadata"].get("ownerReferences") for i in v["items"]])), own=True)
gc("a Job's pods go with it in the background", post("jobs", job("j"), only=lambda v: v["kind"]), lambda t: (
    t.until(lambda: t.quietly("GET", "pods")[1]["items"], "a pod"), t.delete("jobs/j?propagationPolicy=Background", only=lambda v: v["kind"]),
    t.gone("jobs/j"), t.wait("pods", lambda s, o: not o["items"], "no pods")), own=True)

ns = group("namespaces")


def bare(value):
    """A namespace without what its controllers write about it, and when."""
    value.get("metadata", {}).pop("managedFields", None)
    value.get("metadata", {}).pop("resourceVersion", None)
    return value


def made(t, name="$NS-x"):
    return t.post("namespaces", {"metadata": {"name": t.fill(name)}})


def ended(t, name="$NS-x"):
    t.quietly("DELETE", f"namespaces/{name}")


ns("made and listed", made, lambda t: t.get("namespaces?fieldSelector=" + quoted(t.fill("metadata.name=$NS-x")), only=lambda v: [
    bare(i) for i in v["items"]]), ended)
ns("deleted with its content", lambda t: (made(t, "$NS-d"), t.post("/api/v1/namespaces/$NS-d/configmaps", configmap("a")),
                                          t.delete("namespaces/$NS-d", only=bare), t.gone("namespaces/$NS-d"),
                                          t.get("/api/v1/namespaces/$NS-d/configmaps/a")), own=True)
ns("nothing is made in one that is being deleted", lambda t: (
    made(t, "$NS-t"), t.post("/api/v1/namespaces/$NS-t/configmaps", configmap("a", finalizers=["x/y"])),
    t.delete("namespaces/$NS-t", only=bare), t.post("/api/v1/namespaces/$NS-t/configmaps", configmap("b")),
    t.get("namespaces/$NS-t", only=lambda v: (v["status"]["phase"], v["spec"])),
    t.quietly("PATCH", "/api/v1/namespaces/$NS-t/configmaps/a", {"metadata": {"finalizers": None}}, "application/merge-patch+json"),
    t.gone("namespaces/$NS-t")), own=True)
ns("a name that is not valid", post("namespaces", {"metadata": {"name": "Not_valid"}}))
ns("a name that is too long", post("namespaces", {"metadata": {"name": "a" * 64}}))
ns("a name that is taken", post("namespaces", {"metadata": {"name": "default"}}))
ns("default cannot be deleted", delete("namespaces/default?dryRun=All"))
ns("kube-system cannot be deleted", delete("namespaces/kube-system?dryRun=All"))
ns("labels can be patched", lambda t: (made(t, "$NS-l"), t.patch("namespaces/$NS-l", {"metadata": {"labels": {"a": "b"}}}, only=bare), ended(t, "$NS-l")))
ns("no collection is deleted", delete("namespaces"))
ns("a namespace that is not there", get("namespaces/$NS-none"))
