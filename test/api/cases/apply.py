"""server-side apply, dry runs."""

from suite.case import (APPLY, apply, configmap, custom, delete, get, group, job, lease, patch, pod, post, put, secret, service, step)

case = group("apply")


def cm(data=None, **more):
    return configmap("a", data, **more)


case("makes an object", apply("configmaps/a", cm({"x": "1"})))
case("as YAML", apply("configmaps/a", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: '1'\n"))
case("the same again changes nothing", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "1"})))
case("a field that is left out is removed", apply("configmaps/a", cm({"x": "1", "y": "2"})), apply("configmaps/a", cm({"x": "1"})))
case("another manager's field is a conflict", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "2"}), "two"))
case("force takes it", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "2"}), "two", True))
case("the same value is shared", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "1"}), "two"))
case("a shared field stays when one leaves it out", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "1"}), "two"),
     apply("configmaps/a", cm({}), "one"))
case("two conflicts", apply("configmaps/a", cm({"x": "1", "y": "1"})), apply("configmaps/a", cm({"x": "2", "y": "2"}), "two"))
case("conflicts with two managers", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"y": "1"}), "two"),
     apply("configmaps/a", cm({"x": "2", "y": "2"}), "three"))
case("a conflict with an update", post("configmaps", cm({"x": "1"})), apply("configmaps/a", cm({"x": "2"})))
case("an update takes a field from an applier", apply("configmaps/a", cm({"x": "1"})), patch("configmaps/a", {"data": {"x": "2"}}),
     apply("configmaps/a", cm({"x": "1"})))
case("no field manager", step("PATCH", "configmaps/a", cm({}), APPLY))
case("force with another patch", post("configmaps", cm()), patch("configmaps/a?force=true", {"data": {}}))
case("a body with managedFields", apply("configmaps/a", cm({}, managedFields=[{"manager": "x", "operation": "Apply"}])))
case("a body without kind", apply("configmaps/a", {"apiVersion": "v1", "metadata": {"name": "a"}}))
case("a body of another kind", apply("configmaps/a", {**secret("a")}))
case("another name", apply("configmaps/a", configmap("b", {})))
case("no name", apply("configmaps/a", {"apiVersion": "v1", "kind": "ConfigMap"}))
case("an uid on a name that is free", apply("configmaps/a", cm({}, uid="11111111-1111-4111-8111-111111111111")))
case("a wrong uid", post("configmaps", cm()), apply("configmaps/a", cm({}, uid="11111111-1111-4111-8111-111111111111")))
case("an old version", post("configmaps", cm()), apply("configmaps/a", cm({"x": "1"}, resourceVersion="1")))
case("a field that is not in the schema", apply("configmaps/a", {**cm({}), "spec": {"x": 1}}))
case("a value of a wrong type", apply("configmaps/a", cm({"x": {"y": 1}})))
case("broken YAML", apply("configmaps/a", "a: [b"))
case("labels and annotations", apply("configmaps/a", cm({}, labels={"l": "1"}, annotations={"n": "1"})), apply(
    "configmaps/a", cm({}, labels={"m": "1"})))
case("two appliers own two labels", apply("configmaps/a", cm(labels={"l": "1"})), apply("configmaps/a", cm(labels={"m": "1"}), "two"),
     apply("configmaps/a", cm(), "one"))
case("finalizers and owners are sets by key", apply("configmaps/a", cm(finalizers=["x/a"])), apply(
    "configmaps/a", cm(finalizers=["x/b"], ownerReferences=[{"apiVersion": "no.where/v1", "kind": "Nobody", "name": "n",
                                                              "uid": "11111111-1111-4111-8111-111111111111"}]), "two"),
     patch("configmaps/a", {"metadata": {"finalizers": None}}))
case("a pod's containers are found by name", apply("pods/a", pod("a")), apply("pods/a", {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "app:2"}]}}, "two"))
case("a pod's ports and env", apply("pods/a", pod("a", {"containers": [{"name": "main", "image": "x", "env": [
    {"name": "A", "value": "1"}, {"name": "B", "value": "2"}], "ports": [{"containerPort": 80}]}]})))
case("a duplicate key in a list", apply("pods/a", pod("a", {"containers": [
    {"name": "m", "image": "x", "env": [{"name": "A"}, {"name": "A"}]}]})))
case("a Service's ports", apply("services/a", service("a", {"clusterIP": "None", "ports": [{"port": 80, "name": "x"}]})), apply(
    "services/a", service("a", {"ports": [{"port": 81, "name": "y"}]}), "two"))
case("a Job", apply("jobs/a", job("a", {"parallelism": 0})))
case("a Lease by two", apply("leases/a", lease("a", {"holderIdentity": "x"})), apply("leases/a", lease("a", {"leaseDurationSeconds": 5}), "two"))
case("a Secret", apply("secrets/a", secret("a", {"x": "eA=="})))
case("a status of a pod", post("pods", pod("a")), apply("pods/a/status", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                                                                          "status": {"conditions": [{"type": "A", "status": "True"}]}}))
case("a custom resource: maps, sets and atomic lists", apply("widgets/a", custom("widgets", "a", spec={
    "size": 3, "tags": ["x"], "parts": [{"id": "p"}], "limits": {"l": 1}})), apply("widgets/a", custom("widgets", "a", spec={
        "tags": ["y"], "parts": [{"id": "q", "count": 4}], "limits": {"m": 2}}), "two"))
case("a custom resource: an element is removed", apply("widgets/a", custom("widgets", "a", spec={
    "size": 3, "parts": [{"id": "p"}, {"id": "q"}]})), apply("widgets/a", custom("widgets", "a", spec={"size": 3, "parts": [{"id": "q"}]})))
case("a custom resource: a conflict in a list's element", apply("widgets/a", custom("widgets", "a", spec={
    "size": 3, "parts": [{"id": "p", "count": 1}]})), apply("widgets/a", custom("widgets", "a", spec={
        "parts": [{"id": "p", "count": 2}]}), "two"))
case("a custom resource: an atomic list is one field", apply("plains/a", custom("plains", "a", spec={"list": ["x"]})), apply(
    "plains/a", custom("plains", "a", spec={"list": ["y"]}), "two"))
case("a custom resource: its status", apply("widgets/a", custom("widgets", "a", spec={"size": 3})), apply(
    "widgets/a/status", custom("widgets", "a", status={"phase": "P", "conditions": [{"type": "Ready", "status": "True"}]}), "ctl"))
case("a custom resource without a schema", apply("frees/a", custom("frees", "a", spec={"x": {"y": [1, 2]}})), apply(
    "frees/a", custom("frees", "a", spec={"x": {"z": 1}}), "two"))
case("a custom resource that is not valid", apply("widgets/a", custom("widgets", "a", spec={"size": 300})))
case("managedFields of updates: create, update, patch", post("configmaps", cm({"x": "1"})), put("configmaps/a?fieldManager=two", cm(
    {"x": "1", "y": "2"})), patch("configmaps/a?fieldManager=three", {"data": {"z": "3"}}))
case("managedFields of a status", post("pods", pod("a")), patch("pods/a/status?fieldManager=kubelet", {"status": {"phase": "Running"}}))
case("managedFields can be cleared", post("configmaps", cm({"x": "1"})), patch("configmaps/a", {"metadata": {"managedFields": [{}]}}),
     patch("configmaps/a", {"data": {"y": "1"}}))
case("a field manager that is too long", post("configmaps?fieldManager=" + "x" * 129, cm()))
case("a field manager that cannot be printed", post("configmaps?fieldManager=%01", cm()))

dry = group("dry-run")

dry("create stores nothing", post("configmaps?dryRun=All", cm({"x": "1"})), get("configmaps/a"))
dry("create is checked", post("configmaps?dryRun=All", configmap("A", {})))
dry("update", post("configmaps", cm({"x": "1"})), put("configmaps/a?dryRun=All", cm({"x": "2"})), get("configmaps/a"))
dry("patch", post("configmaps", cm({"x": "1"})), patch("configmaps/a?dryRun=All", {"data": {"y": "2"}}), get("configmaps/a"))
dry("apply", apply("configmaps/a", cm({"x": "1"}), query="&dryRun=All"), get("configmaps/a"))
dry("apply finds conflicts", apply("configmaps/a", cm({"x": "1"})), apply("configmaps/a", cm({"x": "2"}), "two", query="&dryRun=All"))
dry("delete", post("configmaps", cm()), delete("configmaps/a?dryRun=All"), get("configmaps/a"))
dry("deletecollection", post("leases", lease("a")), delete("leases?dryRun=All"), get("leases/a"))
dry("in the body of a delete", post("configmaps", cm()), delete("configmaps/a", {
    "kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}), get("configmaps/a"))
dry("a value that does not exist", post("configmaps?dryRun=Some", cm()))
dry("of a pod", post("pods?dryRun=All", pod("a")))
dry("of a custom resource", post("widgets?dryRun=All", custom("widgets", "a", spec={"size": 1})))
