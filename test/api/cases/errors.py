"""errors of the protocol, validation of built-in types."""

from suite.case import (configmap, custom, definition, get, group, job, lease, meta, pod, post, quota, secret, service, step)

case = group("errors")

case("a path that is nothing", lambda t: t.note(str(t.send("GET", "/nonsense")[0])))
case("a group that is not there", get("/apis/no.such.group/v1/things"))
case("a version that is not there", get("/apis/batch/v9/namespaces/$NS/jobs"))
case("a resource that is not there", get("/api/v1/namespaces/$NS/nothings"))
case("a resource of a group that is not there", get("/apis/batch/v1/namespaces/$NS/nothings/x"))
case("a subresource that is not there", post("configmaps", configmap("a")), get("configmaps/a/status"))
case("a custom resource that is not there", get("/apis/$GROUP/v1/namespaces/$NS/nothings"))
case("a version of a custom resource that is not there", get("/apis/$GROUP/v9/namespaces/$NS/plains"))
case("a namespaced resource without its namespace", post("/api/v1/configmaps", configmap("a")))
case("a cluster's resource in a namespace", get("/api/v1/namespaces/$NS/nodes"))
case("POST to an object", post("configmaps/a", configmap("a")))
case("PUT to a collection", step("PUT", "configmaps", configmap("a")))
case("PATCH of a collection", step("PATCH", "configmaps", {}, "application/merge-patch+json"))
case("OPTIONS", step("OPTIONS", "configmaps"))
case("broken JSON", post("configmaps", "{\"a\":"))
case("no JSON at all", post("configmaps", "hello"))
case("an empty body", post("configmaps", ""))
case("a JSON list", post("configmaps", "[]"))
case("JSON null", post("configmaps", "null"))
case("a number where text belongs", post("configmaps", {"metadata": {"name": 5}}))
case("text where a map belongs", post("configmaps", {"metadata": {"name": "a"}, "data": "x"}))
case("text where a number belongs", post("jobs", job("a", {"parallelism": "two"})))
case("a fraction where an integer belongs", post("jobs", job("a", {"parallelism": 1.5})))
case("a number that is too large", post("jobs", job("a", {"parallelism": 1 << 40})))
case("YAML is read", step("POST", "configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: y\ndata:\n  a: b\n", "application/yaml"))
case("a content type that is not known", step("POST", "configmaps", "x", "text/plain"))
case("a content type that is nonsense", step("POST", "configmaps", "x", "nonsense"))
case("no content type", step("POST", "configmaps", configmap("a"), ""))
case("a content type with a charset", step("POST", "configmaps", configmap("a"), "application/json; charset=utf-8"))
case("a patch type that is not known", post("configmaps", configmap("a")), step("PATCH", "configmaps/a", "{}", "application/what"))
case("an Accept that cannot be served", get("configmaps", accept="text/html"))
case("an Accept of anything", get("leases", accept="*/*"))
case("an Accept with weights", get("leases", accept="text/html;q=0.9,application/json;q=0.8"))
case("a body that is too large", lambda t: t.step("POST", "configmaps", {"metadata": {"name": "a"}, "data": {"x": "y" * (3 << 20)}}))
case("a ConfigMap of more than 1 MiB", lambda t: t.step("POST", "configmaps", configmap("a", {"x": "y" * ((1 << 20) + 1)})))
case("a Secret of more than 1 MiB", lambda t: t.step("POST", "secrets", {**secret("a"), "stringData": {"x": "y" * ((1 << 20) + 1)}}))
case("a query parameter nobody knows is ignored", get("leases?nonsense=1"))
case("a bad boolean", lambda t: t.watch("leases?watch=maybe&timeoutSeconds=1&resourceVersion=" + t.version("leases")).end())
case("a bad query of a create", post("configmaps?dryRun=x", configmap("a")))
case("the version", lambda t: t.get("/version", only=lambda v: sorted(v)))
case("health", lambda t: [t.get(f"/{p}") for p in ("healthz", "readyz", "livez")])
case("a token that is wrong", lambda t: t.stranger("GET", "/api/v1/namespaces", {"Authorization": "Bearer wrong"}))

valid = group("validation")


def bad(title, plural, body):
    valid(title, post(plural, body))


for name in ("A", "a_b", "-a", "a-", "a..b", "a/b", "a%b", ".", "..", "x" * 254, "ä", "a b"):
    bad(f"a ConfigMap named '{name[:20]}'", "configmaps", configmap(name))
bad("a Service's name is a label", "services", service("1.a"))
bad("a label's key", "configmaps", configmap("a", labels={"a/b/c": "x"}))
bad("a label's prefix", "configmaps", configmap("a", labels={"Bad_/b": "x"}))
bad("a label's value", "configmaps", configmap("a", labels={"b": "x y"}))
bad("a label's value that is too long", "configmaps", configmap("a", labels={"b": "x" * 64}))
bad("an annotation's key", "configmaps", configmap("a", annotations={"a b": "x"}))
bad("annotations that are too large", "configmaps", configmap("a", annotations={"a": "x" * (256 << 10)}))
bad("a ConfigMap's key", "configmaps", configmap("a", {"a b": "1"}))
bad("a ConfigMap's key that is a path", "configmaps", configmap("a", {"..": "1"}))
bad("a ConfigMap's key in data and binaryData", "configmaps", {**configmap("a", {"k": "1"}), "binaryData": {"k": "AA=="}})
bad("binaryData that is not base64", "configmaps", {**configmap("a"), "binaryData": {"k": "?"}})
bad("a Secret's data that is not base64", "secrets", secret("a", {"k": "?"}))
bad("a Secret for docker without its key", "secrets", {**secret("a", {}), "type": "kubernetes.io/dockerconfigjson"})
bad("a Secret for TLS without its keys", "secrets", {**secret("a", {}), "type": "kubernetes.io/tls"})
bad("a Secret for a service account without one", "secrets", {**secret("a", {}), "type": "kubernetes.io/service-account-token"})


def spec(title, more):
    bad("a pod with " + title, "pods", pod("a", more))


def container(title, **more):
    spec("a container " + title, {"containers": [{"name": "m", "image": "x", **more}]})


spec("no containers", {"containers": []})
spec("two containers of one name", {"containers": [{"name": "m", "image": "x"}, {"name": "m", "image": "x"}]})
spec("a restart policy that does not exist", {"restartPolicy": "Sometimes"})
spec("a DNS policy that does not exist", {"dnsPolicy": "Own"})
spec("a node name that is not one", {"nodeName": "A B"})
spec("a deadline below 1", {"activeDeadlineSeconds": 0})
spec("a grace below 0", {"terminationGracePeriodSeconds": -1})
spec("a volume of two kinds", {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]})
spec("a volume of no kind is an emptyDir", {"volumes": [{"name": "v"}]})
spec("two volumes of one name", {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]})
spec("a volume's name", {"volumes": [{"name": "V_", "emptyDir": {}}]})
spec("a configMap volume without a name", {"volumes": [{"name": "v", "configMap": {}}]})
spec("a service account that is not there", {"serviceAccountName": "nobody"})
spec("a toleration's operator", {"tolerations": [{"key": "a", "operator": "Is"}]})
spec("a node selector's value", {"nodeSelector": {"a": "b c"}})
container("without a name", name="")
container("of a bad name", name="A")
container("without an image", image="")
container("with a port out of range", ports=[{"containerPort": 70000}])
container("with a protocol", ports=[{"containerPort": 1, "protocol": "X"}])
container("with two ports of one name", ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}])
container("with an env of no name", env=[{"name": "", "value": "x"}])
container("with an env of a bad name", env=[{"name": "a=b", "value": "x"}])
container("with an env of value and source", env=[{"name": "a", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
container("with an env of a bad field", env=[{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}])
container("with an env of two sources", env=[{"name": "a", "valueFrom": {
    "fieldRef": {"fieldPath": "metadata.name"}, "configMapKeyRef": {"name": "a", "key": "b"}}}])
container("with a mount of no volume", volumeMounts=[{"name": "v", "mountPath": "/v"}])
container("with a mount without a path", volumeMounts=[{"name": "v", "mountPath": ""}])
container("with requests over limits", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})
container("with a quantity that is none", resources={"limits": {"cpu": "many"}})
container("with a quantity below 0", resources={"limits": {"cpu": "-1"}})
container("with an extended resource in requests only", resources={"requests": {"nvidia.com/gpu": "1"}})
container("with a part of an extended resource", resources={"limits": {"nvidia.com/gpu": "500m"}})
container("with a resource nobody knows", resources={"limits": {"bread": "1"}})
container("with a pull policy", imagePullPolicy="Maybe")
container("with a termination message policy", terminationMessagePolicy="Some")
container("with quantities written in other ways", resources={"limits": {"cpu": "1000m", "memory": "1048576Ki"},
                                                            "requests": {"cpu": 0.5, "memory": "1e3"}})
bad("a Job with restartPolicy Always", "jobs", job("a", None, {"restartPolicy": "Always"}))
bad("a Job without a restartPolicy", "jobs", job("a", None, {"restartPolicy": None}))
bad("a Job with parallelism below 0", "jobs", job("a", {"parallelism": -1}))
bad("a Job with completions below 0", "jobs", job("a", {"completions": -1}))
bad("a Job with backoffLimit below 0", "jobs", job("a", {"backoffLimit": -1}))
bad("a Job with a deadline below 0", "jobs", job("a", {"activeDeadlineSeconds": -1}))
bad("a Job with a ttl below 0", "jobs", job("a", {"ttlSecondsAfterFinished": -1}))
bad("a Job with a selector of its own", "jobs", job("a", {"selector": {"matchLabels": {"a": "b"}}}))
bad("a Job without a template", "jobs", {**meta("a"), "spec": {}})
bad("a Job without a spec", "jobs", meta("a"))
bad("a Job with a name over 63 characters", "jobs", job("j" * 70, {"parallelism": 0}))
bad("a Service without ports", "services", service("a", {"selector": {"a": "b"}}))
bad("a Service's port out of range", "services", service("a", {"ports": [{"port": 0}]}))
bad("a Service of a type that does not exist", "services", service("a", {"type": "X", "ports": [{"port": 1}]}))
bad("a quota that is no quantity", "resourcequotas", quota("a", {"pods": "x"}))
bad("a quota of a resource that does not exist", "resourcequotas", quota("a", {"bread": "1"}))
bad("a quota of a part of a pod", "resourcequotas", quota("a", {"pods": "500m"}))
bad("a Lease's duration of 0", "leases", lease("a", {"leaseDurationSeconds": 0}))
bad("a Lease's transitions below 0", "leases", lease("a", {"leaseTransitions": -1}))
bad("a Lease's time", "leases", lease("a", {"renewTime": "yesterday"}))
bad("an Event in another namespace", "events", {**meta("e"), "involvedObject": {"namespace": "other"}})
bad("an Event about nothing", "events", meta("e"))
bad("a Role's rule without verbs", "roles", {**meta("a"), "rules": [{"apiGroups": [""], "resources": ["pods"]}]})
bad("a Role's rule with a URL", "roles", {**meta("a"), "rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]})
bad("a RoleBinding without a role", "rolebindings", meta("a"))
bad("a RoleBinding to a kind that does not exist", "rolebindings", {**meta("a"), "roleRef": {
    "apiGroup": "rbac.authorization.k8s.io", "kind": "Thing", "name": "x"}})
bad("a RoleBinding's subject without a namespace", "rolebindings", {**meta("a"), "roleRef": {
    "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}, "subjects": [{"kind": "ServiceAccount", "name": "x"}]})


def left_out(title, path, body, field, words):
    """What a real server takes and the engine refuses: its table of omissions promises a clear error."""
    def run(t):
        engine = "+sonde" in t.quietly("GET", "/version")[1]["gitVersion"]
        status, answer = t.quietly("POST", path + "?dryRun=All", body)
        causes = [(c["field"], c["message"]) for c in (answer.get("details") or {}).get("causes") or []]
        assert status == (422 if engine else 201), answer
        assert not engine or causes == [(field, "Forbidden: " + words)], causes

    case(title, run)


left_out("a quota with scopes (left out)", "resourcequotas", {**meta("a"), "spec": {"hard": {"pods": "1"}, "scopes": ["Terminating"]}}, "spec.scopes",
         "scopes are not supported by the embedded engine")
left_out("a quota with a scope selector (left out)", "resourcequotas", {**meta("a"), "spec": {"hard": {"pods": "1"}, "scopeSelector": {
    "matchExpressions": [{"scopeName": "BestEffort", "operator": "Exists"}]}}}, "spec.scopeSelector", "scopes are not supported by the embedded engine")
left_out("a conversion webhook (left out)", "customresourcedefinitions", (lambda d: {**d, "spec": {**d["spec"], "conversion": {
    "strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://localhost/convert"}, "conversionReviewVersions": ["v1"]}}}})(definition("hooks")),
         "spec.conversion.strategy", "webhooks are not supported by the embedded engine")
