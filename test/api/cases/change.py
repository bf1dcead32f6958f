"""update and the kinds of patch."""

from suite.case import (JSON, MERGE, STRATEGIC, configmap, custom, get, group, job, patch, pod, post, put, secret, service, step)

update = group("update")

MADE = post("configmaps", configmap("a", {"k": "v"}, labels={"l": "1"}))

update("the whole object", MADE, put("configmaps/a", configmap("a", {"k": "w"})), get("configmaps/a"))
update("nothing changed keeps the version", MADE, lambda t: t.put("configmaps/a", t.quietly("GET", "configmaps/a")[1]))
update("the same without metadata of the server", MADE, put("configmaps/a", configmap("a", {"k": "v"}, labels={"l": "1"})))
update("an old version is refused", MADE, lambda t: (
    old := t.quietly("GET", "configmaps/a")[1], t.patch("configmaps/a", {"data": {"k": "2"}}), t.put("configmaps/a", old)))
update("a version from nowhere is refused", MADE, put("configmaps/a", configmap("a", resourceVersion="1")))
update("a version that is no number", MADE, put("configmaps/a", configmap("a", resourceVersion="abc")))
update("a uid of another object", MADE, put("configmaps/a", configmap("a", uid="11111111-1111-4111-8111-111111111111")))
update("a name that is not the path's", MADE, put("configmaps/a", configmap("b")))
update("no name", MADE, put("configmaps/a", {"data": {}}))
update("another namespace", MADE, put("configmaps/a", configmap("a", namespace="elsewhere")))
update("an object that is not there", put("configmaps/none", configmap("none")))
update("a Lease that is not there is made", put("leases/new", {"metadata": {"name": "new"}, "spec": {}}))
update("creationTimestamp cannot be changed", MADE, put("configmaps/a", configmap("a", creationTimestamp="2001-01-01T00:00:00Z")))
update("an immutable ConfigMap", post("configmaps", {**configmap("a", {"k": "v"}), "immutable": True}),
       put("configmaps/a", {**configmap("a", {"k": "w"}), "immutable": True}), put("configmaps/a", configmap("a", {"k": "v"})))
update("a Secret's type cannot change", post("secrets", {**secret("a"), "type": "a/b"}), put("secrets/a", {**secret("a"), "type": "c/d"}))
update("a pod's spec cannot change but for its image", post("pods", pod("a")), lambda t: (
    p := t.quietly("GET", "pods/a")[1], p["spec"]["containers"][0].update(image="app:2"), q := t.put("pods/a", p),
    q["spec"].update(restartPolicy="Never"), t.put("pods/a", q)))
update("a pod's status does not change with it", post("pods", pod("a")), lambda t: (
    p := t.quietly("GET", "pods/a")[1], p["status"].update(phase="Running"), t.put("pods/a", p)))
update("a pod's status alone", post("pods", pod("a")), lambda t: (
    p := t.quietly("GET", "pods/a")[1], p["status"].update(phase="Running"), p["metadata"].update(labels={"x": "y"}),
    t.put("pods/a/status", p)))
update("a Job's generation is not counted", post("jobs", job("a", {"parallelism": 0})), lambda t: (
    t.patch("jobs/a", {"spec": {"backoffLimit": 2}}, only=lambda v: (v["metadata"].get("generation"), v["spec"]["backoffLimit"]))))
update("a custom resource needs a version", post("plains", custom("plains", "a", spec={"value": "x"})),
       put("plains/a", custom("plains", "a", spec={"value": "y"})))
update("a custom resource's generation counts", post("plains", custom("plains", "a", spec={"value": "x"})), lambda t: (
    o := t.quietly("GET", "plains/a")[1], o["spec"].update(value="y"), p := t.put("plains/a", o),
    p["metadata"].update(labels={"a": "b"}), t.put("plains/a", p)))
update("a label's name that is not valid", MADE, put("configmaps/a", configmap("a", labels={"-x": "y"})))
update("a label's value that is not valid", MADE, put("configmaps/a", configmap("a", labels={"ok": "not ok"})))
update("field manager in the query", MADE, put("configmaps/a?fieldManager=somebody", configmap("a", {"k": "2"})))

jsonpatch = group("patch-json")


def ops(title, *operations, base=MADE):
    jsonpatch(title, base, patch("configmaps/a", list(operations), JSON), get("configmaps/a"))


ops("replace", {"op": "replace", "path": "/data/k", "value": "w"})
ops("add", {"op": "add", "path": "/data/x", "value": "w"})
ops("remove", {"op": "remove", "path": "/data/k"})
ops("move", {"op": "move", "from": "/data/k", "path": "/data/z"})
ops("copy", {"op": "copy", "from": "/data/k", "path": "/data/z"})
ops("test that holds", {"op": "test", "path": "/data/k", "value": "v"}, {"op": "replace", "path": "/data/k", "value": "w"})
ops("test that does not hold", {"op": "test", "path": "/data/k", "value": "x"}, {"op": "replace", "path": "/data/k", "value": "w"})
ops("remove of what is not there", {"op": "remove", "path": "/data/none"})
ops("replace of what is not there", {"op": "replace", "path": "/data/none", "value": "1"})
ops("add below what is not there", {"op": "add", "path": "/binaryData/x", "value": "AA=="})
ops("an escaped path", {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "1"}},
    {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "2"})
ops("an operation that does not exist", {"op": "merge", "path": "/data", "value": {}})
ops("a path without a slash", {"op": "add", "path": "data", "value": {}})
ops("nothing", base=MADE)
ops("what makes it invalid", {"op": "add", "path": "/data/bad key", "value": "1"})
ops("a value of another type", {"op": "replace", "path": "/data/k", "value": 5})
ops("the name", {"op": "replace", "path": "/metadata/name", "value": "b"})
ops("an old version", {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"})
jsonpatch("no list", MADE, patch("configmaps/a", {"data": {}}, JSON))
jsonpatch("an object that is not there", patch("configmaps/none", [{"op": "add", "path": "/data", "value": {}}], JSON))
jsonpatch("elements of a list", post("pods", pod("a", {"tolerations": [{"key": "a"}, {"key": "b"}]})), patch(
    "pods/a", [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "c"}},
               {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}], JSON))
jsonpatch("a custom resource", post("plains", custom("plains", "a", spec={"list": ["a", "c"]})), patch(
    "plains/a", [{"op": "add", "path": "/spec/list/1", "value": "b"}, {"op": "remove", "path": "/spec/list/0"}], JSON))

merge = group("patch-merge")

merge("data is merged and null removes", post("configmaps", configmap("a", {"x": "1", "y": "2"})),
      patch("configmaps/a", {"data": {"x": None, "z": "3"}}, MERGE))
merge("a list is replaced", post("plains", custom("plains", "a", spec={"list": ["a", "b"]})),
      patch("plains/a", {"spec": {"list": ["c"]}}, MERGE))
merge("nothing", MADE, patch("configmaps/a", {}, MERGE))
merge("no object", MADE, patch("configmaps/a", [], MERGE))
merge("null", MADE, patch("configmaps/a", "null", MERGE))
merge("all data", MADE, patch("configmaps/a", {"data": None}, MERGE))
merge("the version it expects", MADE, lambda t: t.patch("configmaps/a", {"metadata": {"resourceVersion": t.version("configmaps/a")},
                                                                          "data": {"k": "2"}}))
merge("another version", MADE, patch("configmaps/a", {"metadata": {"resourceVersion": "1"}, "data": {"k": "2"}}, MERGE))
merge("another uid", MADE, patch("configmaps/a", {"metadata": {"uid": "11111111-1111-4111-8111-111111111111"}}, MERGE))
merge("another name", MADE, patch("configmaps/a", {"metadata": {"name": "b"}}, MERGE))
merge("another kind", MADE, patch("configmaps/a", {"kind": "Secret"}, MERGE))
merge("unknown fields", MADE, patch("configmaps/a", {"spec": {"a": 1}}, MERGE))
merge("labels and annotations", MADE, patch("configmaps/a", {"metadata": {"labels": {"l": None, "m": "2"}, "annotations": {"n": "3"}}}, MERGE))
merge("a value of a wrong type", MADE, patch("configmaps/a", {"data": {"k": {"deep": 1}}}, MERGE))
merge("a pod's containers are replaced", post("pods", pod("a")), patch("pods/a", {"spec": {"containers": [
    {"name": "other", "image": "x"}]}}, MERGE))
merge("an object that is not there", patch("configmaps/none", {"data": {}}, MERGE))
merge("broken JSON", MADE, patch("configmaps/a", "{\"data\":", MERGE))
merge("twice the same keeps the version", MADE, patch("configmaps/a", {"data": {"k": "2"}}, MERGE), patch(
    "configmaps/a", {"data": {"k": "2"}}, MERGE))
merge("a custom resource", post("plains", custom("plains", "a", spec={"value": "x", "list": ["a"]})), patch(
    "plains/a", {"spec": {"value": None}}, MERGE))
merge("a content type that is no patch", MADE, step("PATCH", "configmaps/a", {"data": {}}, "application/json"))

strategic = group("patch-strategic")


def on_pod(title, body, spec=None, **more):
    strategic(title, post("pods", pod("a", spec, **more)), patch("pods/a", body, STRATEGIC))


strategic("data is merged", MADE, patch("configmaps/a", {"data": {"x": "1"}}, STRATEGIC))
strategic("null removes", MADE, patch("configmaps/a", {"data": {"k": None}}, STRATEGIC))
strategic("$patch: replace of a map", MADE, patch("configmaps/a", {"data": {"$patch": "replace", "z": "1"}}, STRATEGIC))
strategic("$patch: delete of a map", MADE, patch("configmaps/a", {"data": {"$patch": "delete"}}, STRATEGIC))
strategic("$retainKeys", MADE, patch("configmaps/a", {"data": {"$retainKeys": ["k"], "k": "2"}}, STRATEGIC))
on_pod("a container is found by its name", {"spec": {"containers": [{"name": "main", "image": "app:2"}]}})
on_pod("a toleration is added: that list has no key", {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}},
       {"tolerations": [{"key": "a", "operator": "Exists"}]})
on_pod("finalizers are merged as a set", {"metadata": {"finalizers": ["x/b"]}}, finalizers=["x/a"])
on_pod("$deleteFromPrimitiveList", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a"]}}, finalizers=["x/a", "x/b"])
on_pod("$setElementOrder", {"metadata": {"$setElementOrder/finalizers": ["x/b", "x/a"], "finalizers": ["x/b"]}}, finalizers=["x/a"])
on_pod("an element without its key", {"spec": {"containers": [{"image": "x"}]}})
on_pod("a patch that is not valid", {"spec": {"containers": [{"name": "main", "image": ""}]}})
on_pod("$patch of an unknown kind", {"spec": {"$patch": "nonsense"}})
on_pod("owner references are found by uid", {"metadata": {"ownerReferences": [
    {"uid": "11111111-1111-4111-8111-111111111111", "controller": True}]}}, ownerReferences=[
        {"apiVersion": "no.where/v1", "kind": "Nobody", "name": "n", "uid": "11111111-1111-4111-8111-111111111111"}])
strategic("status conditions are found by type", post("pods", pod("a")), patch("pods/a/status", {"status": {"conditions": [
    {"type": "A", "status": "True"}]}}, STRATEGIC), patch("pods/a/status", {"status": {"conditions": [
        {"type": "B", "status": "True"}, {"type": "A", "status": "False"}]}}, STRATEGIC))
strategic("$patch: delete of an element", post("pods", pod("a")), patch("pods/a/status", {"status": {"conditions": [
    {"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}, STRATEGIC), patch("pods/a/status", {"status": {"conditions": [
        {"type": "A", "$patch": "delete"}]}}, STRATEGIC))
strategic("$setElementOrder of elements with keys", post("pods", pod("a")), patch("pods/a/status", {"status": {"conditions": [
    {"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}, STRATEGIC), patch("pods/a/status", {"status": {
        "$setElementOrder/conditions": [{"type": "B"}, {"type": "C"}, {"type": "A"}],
        "conditions": [{"type": "C", "status": "True"}]}}, STRATEGIC))
strategic("a Service's ports are found by port", post("services", service("a", {"clusterIP": "None", "ports": [
    {"port": 80, "name": "x"}, {"port": 81, "name": "y"}]})), patch("services/a", {"spec": {"ports": [
        {"port": 81, "name": "z"}, {"port": 82, "name": "w"}]}}, STRATEGIC))
strategic("custom resources do not take it", post("plains", custom("plains", "a")), patch("plains/a", {"spec": {}}, STRATEGIC))
strategic("no object", MADE, patch("configmaps/a", [], STRATEGIC))
strategic("broken JSON", MADE, patch("configmaps/a", "{", STRATEGIC))
strategic("an object that is not there", patch("configmaps/none", {"data": {}}, STRATEGIC))
strategic("Secret's stringData", post("secrets", secret("a", {"x": "eA=="})), patch("secrets/a", {"stringData": {"y": "z"}}, STRATEGIC))
