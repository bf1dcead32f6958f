"""create, generated names, get."""

from suite.case import (configmap, delete, get, group, job, lease, meta, pod, post, secret, service, step)

case = group("create")

case("a ConfigMap with data", post("configmaps", configmap("a", {"k": "v", "empty": ""})))
case("a ConfigMap without apiVersion and kind", post("configmaps", meta("a")))
case("a ConfigMap with labels, annotations and binary data",
     post("configmaps", {**configmap("a", {"k": "v"}, labels={"x": "y"}, annotations={"n": "1"}), "binaryData": {"b": "AAEC"}}))
case("an immutable ConfigMap", post("configmaps", {**configmap("a", {}), "immutable": True}))
case("a name that is taken", post("configmaps", configmap("a")), post("configmaps", configmap("a")))
case("fields that no ConfigMap has are dropped",
     post("configmaps", {**configmap("a"), "spec": {"x": 1}, "nothing": None}), get("configmaps/a"))
case("what the server sets is not taken from the client",
     post("configmaps", {**configmap("a", uid="11111111-1111-4111-8111-111111111111", generation=7,
                                     creationTimestamp="2001-01-01T00:00:00Z", selfLink="/x",
                                     deletionTimestamp="2001-01-01T00:00:00Z")}))
case("resourceVersion must not be set", post("configmaps", configmap("a", resourceVersion="5")))
case("the namespace of the body may be the path's", post("configmaps", configmap("a", namespace="$NS")))
case("the namespace of the body must not be another", post("configmaps", configmap("a", namespace="elsewhere")))
case("a kind that is not the path's", post("configmaps", {**configmap("a"), "kind": "Secret"}))
case("an apiVersion that is not the path's", post("configmaps", {**configmap("a"), "apiVersion": "apps/v1"}))
case("no name at all", post("configmaps", {"metadata": {}}))
case("no metadata at all", post("configmaps", {"data": {"a": "b"}}))
case("an empty object", post("configmaps", {}))
case("a namespace that is not there", post("/api/v1/namespaces/$NS-none/configmaps", configmap("a")))
case("a Secret's stringData goes into its data",
     post("secrets", {**secret("a", {"x": "eA=="}), "stringData": {"y": "y", "x": "z"}}), get("secrets/a"))
case("a Secret of a type", post("secrets", {**secret("a", {}), "type": "example.com/own"}))
case("a pod gets its defaults", post("pods", pod("a")), get("pods/a"))
case("a pod with init containers, probes, volumes and resources gets its defaults", post("pods", pod("a", {
    "initContainers": [{"name": "init", "image": "busybox"}],
    "containers": [
        {"name": "one", "image": "app", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1", "memory": "64Mi"}},
         "readinessProbe": {"httpGet": {"port": 80}}, "env": [{"name": "A", "value": "b"}, {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
        {"name": "two", "image": "app@sha256:" + "a" * 64, "volumeMounts": [{"name": "e", "mountPath": "/e"}]}],
    "volumes": [{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}},
                {"name": "s", "secret": {"secretName": "s"}}, {"name": "h", "hostPath": {"path": "/x"}}],
})))
case("a pod's image with tag latest is pulled always", post("pods", pod("a", {"containers": [{"name": "m", "image": "x:latest"}]})))
case("a Job gets its defaults", post("jobs", job("a")))
case("a Job with everything set", post("jobs", job("a", {
    "parallelism": 2, "completions": 3, "backoffLimit": 1, "activeDeadlineSeconds": 100, "ttlSecondsAfterFinished": 60},
    {"restartPolicy": "OnFailure"}, labels={"l": "1"})))
case("a Service is stored and gets an address", lambda t: t.post("services", service("a"), only=lambda v: {
    **v, "spec": {k: ("ADDRESS" if k in ("clusterIP", "clusterIPs") else x) for k, x in v.get("spec", {}).items()}}))
case("a headless Service", post("services", service("a", {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 1}]})))
case("a ServiceAccount", post("serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", **meta("a")}),
     lambda t: t.get("serviceaccounts/a", only=lambda v: {**v, "metadata": {"name": v["metadata"]["name"]}}))
case("the default ServiceAccount is there", lambda t: t.get("serviceaccounts/default", only=lambda v: (
    v["metadata"].pop("managedFields", None), v)[1]))
case("a Lease", post("leases", lease("a", {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                                            "acquireTime": "2020-01-01T00:00:00.000000Z",
                                            "renewTime": "2020-01-01T00:00:01.123456Z"})))
case("two of a name in two kinds", post("configmaps", configmap("a")), post("secrets", secret("a")))

generate = group("generate-name")

generate("a name is made from a prefix", post("configmaps", {"metadata": {"generateName": "abc-"}}))
generate("a name wins over a prefix", post("configmaps", {"metadata": {"generateName": "abc-", "name": "x"}}))
generate("a long prefix is cut", lambda t: t.post("configmaps", {"metadata": {"generateName": "a" * 100}}, only=lambda v: len(
    v["metadata"]["name"])))
generate("a prefix that cannot begin a name", lambda t: (t.mask.generated("A_"), t.post(
    "configmaps", {"metadata": {"generateName": "A_"}})))
generate("a prefix of a pod", post("pods", {**pod("x"), "metadata": {"generateName": "p-"}}))
generate("a dry run makes a name too", post("configmaps?dryRun=All", {"metadata": {"generateName": "abc-"}}))
generate("a prefix with PATCH apply is not used",
         step("PATCH", "configmaps/x?fieldManager=one", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "q-"}},
              "application/apply-patch+yaml"))

read = group("get")

read("an object that is not there", get("configmaps/none"))
read("in a namespace that is not there", get("/api/v1/namespaces/$NS-none/configmaps/x"))
read("a namespace", lambda t: t.get("namespaces/$NS", only=lambda v: (v["metadata"].pop("managedFields", None), v)[1]))
read("a resourceVersion of 0 is answered", post("configmaps", configmap("a")), lambda t: t.until(
    lambda: t.quietly("GET", "configmaps/a?resourceVersion=0")[0] == 200, "in the cache"), get("configmaps/a?resourceVersion=0"))
read("a version of the object", post("configmaps", configmap("a")), lambda t: t.step(
    "GET", "configmaps/a?resourceVersion=" + t.version("configmaps/a"), only=lambda v: v))
read("a version that is no number", post("configmaps", configmap("a")), get("configmaps/a?resourceVersion=abc"))
read("pretty text", post("configmaps", configmap("a")), lambda t: t.note(
    str(t.send("GET", "configmaps/a?pretty=true")[2].decode().count("\n") > 3)))
read("text for curl is pretty", post("configmaps", configmap("a")), lambda t: t.note(
    str(t.send("GET", "configmaps/a", headers={"User-Agent": "curl/7.88"})[2].decode().count("\n") > 3)))
read("text for a program has no line breaks but the last", post("configmaps", configmap("a")), lambda t: t.note(
    str(t.send("GET", "configmaps/a")[2].decode().count("\n"))))
read("HEAD is not a verb of objects", post("configmaps", configmap("a")), step("HEAD", "configmaps/a"))
read("a name with an escaped slash", get("configmaps/a%2Fb"))
read("a name with uppercase letters", get("configmaps/ABC"))
read("a deleted object", post("configmaps", configmap("a")), delete("configmaps/a"), get("configmaps/a"))
