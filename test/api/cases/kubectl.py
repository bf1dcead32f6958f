"""kubectl's command lines: exit codes and what is printed."""

import json
import re

from suite import omissions
from suite.case import (configmap, custom, group, job, lease, meta, pod, secret)
from suite.fixtures import OURS

plain = group("kubectl")


def case(title, *steps, **more):
    return plain(title, *steps, kubectl=True, **more)


def run(line, **more):
    return lambda t: t.kubectl(line, **more)


def yaml(*objects):
    return "\n---\n".join(json.dumps(o) for o in objects)


def given(*objects):
    """Makes objects without recording it."""
    plurals = {"ConfigMap": "configmaps", "Secret": "secrets", "Pod": "pods", "Job": "jobs", "Widget": "widgets", "Lease": "leases"}

    def make(t):
        for one in objects:
            status, answer = t.quietly("POST", plurals[one["kind"]], one)
            assert status == 201, answer
    return make


CM = configmap("a", {"k": "v"}, labels={"app": "x"})
W = custom("widgets", "w", spec={"size": 3})
POD = pod("p", {"nodeName": "$NODE"})
RUNNING = {"status": {"phase": "Running", "hostIP": "10.0.0.1", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}], "startTime": "2020-01-01T00:00:00Z",
                      "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [
                          {"name": "main", "ready": True, "restartCount": 0, "image": "app:1", "imageID": "i", "containerID": "c://1",
                           "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}}}]}}

case("apply", run("apply -f -", stdin=yaml(CM)), run("get cm a -o json"))
case("apply twice with a change", run("apply -f -", stdin=yaml(CM)), run("apply -f -", stdin=yaml(configmap("a", {"k": "w"}))),
     run("apply -f -", stdin=yaml(configmap("a", {"k": "w"}))), run("get cm a -o json"))
case("apply of several", run("apply -f -", stdin=yaml(CM, secret("s", {"x": "eA=="}), W)))
case("apply with an error of the server", run("apply -f -", stdin=yaml(configmap("a", {"bad key": "v"}))))
case("apply with a field that does not exist", run("apply -f -", stdin=yaml({**CM, "dta": {"x": "y"}})))
case("apply with a value of a wrong type", run("apply -f -", stdin=yaml({**CM, "data": {"x": 5}})))
case("apply of a kind that does not exist", run("apply -f -", stdin=yaml({**CM, "kind": "Thing"})))
case("apply of a custom resource that is not valid", run("apply -f -", stdin=yaml(custom("widgets", "w", spec={"size": 1000}))))
case("apply of a custom resource with an unknown field", run("apply -f -", stdin=yaml(custom("widgets", "w", spec={"size": 1, "sise": 2}))))
case("apply of a custom resource, twice", run("apply -f -", stdin=yaml(W)), run("apply -f -", stdin=yaml(custom("widgets", "w", spec={
    "size": 4, "tags": ["x"]}))), run("get widget w -o json"))
case("apply of a pod with a change", run("apply -f -", stdin=yaml(pod("p"))), run("apply -f -", stdin=yaml(pod("p", {
    "containers": [{"name": "main", "image": "app:2"}]}))), run("get pod p -o jsonpath={.spec.containers[*].image}"))
case("apply --dry-run=server", run("apply --dry-run=server -f -", stdin=yaml(CM)), run("get cm a"))
case("apply --dry-run=client", run("apply --dry-run=client -o name -f -", stdin=yaml(CM)), run("get cm a"))
case("apply --server-side", run("apply --server-side -f -", stdin=yaml(CM)), run("get cm a -o json"))
case("apply --server-side with a conflict", run("apply --server-side --field-manager=one -f -", stdin=yaml(CM)), run(
    "apply --server-side --field-manager=two -f -", stdin=yaml(configmap("a", {"k": "w"}))), run(
        "apply --server-side --field-manager=two --force-conflicts -f -", stdin=yaml(configmap("a", {"k": "w"}))), run("get cm a -o json"))
case("apply --prune", run("apply -l app=x --prune --prune-whitelist=core/v1/ConfigMap -f -", stdin=yaml(CM, configmap("b", {}, labels={"app": "x"}))), run(
    "apply -l app=x --prune --prune-whitelist=core/v1/ConfigMap -f -", stdin=yaml(CM)))
case("diff", run("apply -f -", stdin=yaml(CM)), lambda t: t.kubectl("diff -f -", stdin=yaml(configmap("a", {"k": "w"}, labels={"app": "x"})), only=lambda text: re.sub(
    r"(?m)^(diff|---|\+\+\+) .*$", r"\1", text)))
case("create -f", run("create -f -", stdin=yaml(CM)), run("create -f -", stdin=yaml(CM)))
case("create configmap", run("create configmap c --from-literal=a=b --from-literal=c=d"), run("get cm c -o json"))
case("create secret", run("create secret generic s --from-literal=a=b"), run("get secret s -o json"))
case("create job", run("create job j --image=app:1 -- do it"), lambda t: t.kubectl("get job j -o json", only=lambda v: json.dumps(
    json.loads(v)["spec"]["template"]["spec"])), own=True)
case("create namespace", run("create namespace $NS-k"), run("delete namespace $NS-k --wait=false"))
case("create role and rolebinding", run("create role r --verb=get,list --resource=pods,jobs.batch"), run(
    "create rolebinding b --role=r --serviceaccount=$NS:default"), run("get role,rolebinding -o wide"))
case("create quota", run("create quota q --hard=pods=1,services=2"), own=True)
case("create serviceaccount", run("create serviceaccount s"))
case("replace", given(CM), run("replace -f -", stdin=yaml(configmap("a", {"z": "1"}))), run("get cm a -o jsonpath={.data}"))
case("replace of what is not there", run("replace -f -", stdin=yaml(CM)))
case("replace --force", given(CM), run("replace --force -f -", stdin=yaml(configmap("a", {"z": "1"}))))
case("run", run("run p --image=app:1 --restart=Never --overrides={\"spec\":{\"schedulerName\":\"by-hand\"}}" .replace('"', '\\"')), run("get pod p -o name"))

ONES = given(CM, configmap("b", {"x": "1", "y": "2"}, labels={"app": "y"}), secret("s", {"x": "eA=="}), POD, W)
NO_ROOT = " --field-selector=metadata.name!=kube-root-ca.crt"


def printed(line, *before):
    case(line, *(before or (ONES,)), run(line))


for line in ("get cm" + NO_ROOT, "get cm a b", "get cm a -o wide", "get cm a -o yaml", "get cm a -o json", "get cm a -o name",
             "get cm -o jsonpath={.items[*].metadata.labels.app}", "get cm a -o jsonpath={.data.k}", "get cm a -o go-template={{.data.k}}",
             "get cm a b -o custom-columns=NAME:.metadata.name,APP:.metadata.labels.app,NONE:.x.y", "get cm -l app=x", "get cm -l 'app in (x,y)' --show-labels",
             "get cm -L app -l app", "get cm --no-headers -l app", "get cm -l app --sort-by=.metadata.name", "get cm,widget -l app", "get cm/a pod/p",
             "get cm none", "get cm none --ignore-not-found", "get cm -l app=none", "get nothings", "get pods", "get pods -o wide",
             "get pod p -o jsonpath={.status.phase}", "get widgets", "get wd -o wide", "get widget w -o yaml", "get widgets.$GROUP", "get widgets.v1.$GROUP",
             "get secret s -o json", "get cm a -o jsonpath-as-json={.data}", "get --raw /api/v1/namespaces/$NS/configmaps/a",
             "get cm -o name" + NO_ROOT, "get cm --chunk-size=1 -o name -l app", "get pods --field-selector=spec.nodeName=$NODE",
             "get pods --field-selector=spec.nodeName=other", "get pods --field-selector=nonsense=1", "get cm -l 'a b'", "get cm a --output-watch-events -o name"):
    printed(line)
case("get all", given(POD, W, job("j", {"parallelism": 0})), lambda t: t.kubectl("get all -l none=none"), lambda t: t.kubectl("get pods,jobs,widgets"), own=True)
case("get jobs", given(job("j", {"parallelism": 0, "completions": 2})), run("get jobs"), run("get job j -o wide", only=lambda s: s.replace("controller-uid", "")))
case("get namespace", lambda t: t.kubectl("get ns $NS"), lambda t: t.kubectl("get namespace $NS -o jsonpath={.status.phase}"))
case("get events", lambda t: (t.quietly("POST", "events", {**meta("e"), "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$NS"}, "type": "Warning",
                                                          "reason": "Because", "message": "it is so", "source": {"component": "c"}, "count": 2,
                                                          "lastTimestamp": "2020-01-01T00:00:00Z", "firstTimestamp": "2020-01-01T00:00:00Z"}),
                              t.kubectl("get events")))
case("get leases", given(lease("l", {"holderIdentity": "me"})), run("get leases"))
case("get roles", lambda t: t.quietly("POST", "roles", {**meta("r"), "rules": []}), run("get roles", only=lambda s: re.sub(r"\S+Z", "TIME", s)))
case("get -w", given(CM), lambda t: (w := t.kubectl_start("get cm a -w"), w.lines(2), t.quietly("PATCH", "configmaps/a", {"data": {"n": "1"}},
                                                                                                "application/merge-patch+json"),
                                     w.lines(1), t.quietly("DELETE", "configmaps/a"), w.lines(1)))
case("get -w --output-watch-events", given(W), lambda t: (
    w := t.kubectl_start("get widgets -w --output-watch-events"), w.lines(2), t.quietly("DELETE", "widgets/w"), w.lines(1),
    t.quietly("POST", "widgets", W), w.lines(1)))
case("describe configmap", ONES, run("describe cm a"))
case("describe secret", ONES, run("describe secret s"))
case("describe pod", given(POD), lambda t: t.quietly("PATCH", "pods/p/status", RUNNING, "application/merge-patch+json"), lambda t: t.kubectl(
    "describe pod p", only=lambda s: re.sub(r"(?ms)^ +Mounts:.*?(?=^ +\S+:|^\S)|^Volumes:.*?(?=^\S)", "", re.sub(r" +", " ", s))))
case("describe job", given(job("j", {"parallelism": 0})), run("describe job j"))
case("describe a custom resource", ONES, run("describe widget w"))
case("describe namespace", lambda t: t.kubectl("describe namespace $NS", only=lambda s: s.replace("\nNo LimitRange resource.\n", "")))
case("describe quota", run("create quota q --hard=pods=1"), lambda t: t.until(
    lambda: t.quietly("GET", "resourcequotas/q")[1].get("status", {}).get("used"), "counted"), run("describe quota q"), own=True)
case("describe what is not there", run("describe cm none"))
PUBLISHING = 180  # seconds, with every definition that there is: the real server merges all of them again for each that changes


def published(t):
    """The schemas of the test's kind and of our own are there for kubectl; asked once a side, for it is a large document."""
    def all_of_them():
        names = t.quietly("GET", "/openapi/v2")[1]["definitions"]
        return any("Widget" in n and t.side.token in n for n in names) and all(
            any(n.endswith(".v1alpha1." + crd.kind) for n in names) for crd in OURS)

    with t.side.lock:
        if not t.side.fixtures.get("published"):
            t.until(all_of_them, "published", PUBLISHING)
            t.side.fixtures["published"] = True


for line in ("explain widgets", "explain widgets.spec", "explain widgets.spec.parts", "explain widgets.status --recursive", "explain widget.spec.none"):
    case(line, published, run(line))
NESTED = {"dynamographdeploymentrequests": "spec.profilingConfig.configMapRef", "cudaexperiments": "spec.volumes.configMap.items",
          "workloadprofiles": "status.placement.nodes.breakdown", "algorithmprofilings": "status.results.sizes.error",
          "algorithmcomparisons": "status.comparison.pairs"}
for plural in sorted(crd.plural for crd in OURS):
    for line in (f"explain {plural}", f"explain {plural}.{NESTED[plural]}"):
        case(line, published, run(line))
case("explain dynamographdeploymentrequests --recursive", published, run("explain dynamographdeploymentrequests --recursive"))


def fields(text):
    """The fields and their types; a built-in type's descriptions are the real server's own."""
    return "\n".join(re.findall(r"(?m)^(?:KIND|VERSION|RESOURCE|FIELD).*|^ +\w+\t<.*$", text))


for line in ("explain configmap", "explain pod.spec.containers", "explain job.spec", "explain secret", "explain lease.spec", "explain pod --recursive",
             "explain job.spec.template.spec.volumes.configMap"):
    case(line, run(line, only=fields))
case("wait for a condition", given(POD), lambda t: t.quietly("PATCH", "pods/p/status", RUNNING, "application/merge-patch+json"),
     run("wait --for=condition=Ready pod/p --timeout=60s"))
case("wait for a condition that comes later", given(W), lambda t: (
    w := t.kubectl_start("wait --for=condition=Ready widget/w --timeout=120s"), t.quietly("PATCH", "widgets/w/status", {"status": {"conditions": [
        {"type": "Ready", "status": "True"}]}}, "application/merge-patch+json"), w.end()))
case("wait in vain", given(W), run("wait --for=condition=Ready widget/w --timeout=1s"))
case("wait for a deletion", given(CM), lambda t: (w := t.kubectl_start("wait --for=delete cm/a --timeout=120s"),
                                                  t.quietly("DELETE", "configmaps/a"), w.end()))
case("label", given(CM), run("label cm a new=1"), run("label cm a new=2"), run("label cm a new=2 --overwrite"), run("label cm a new-"), run("get cm a --show-labels"))
case("label many", ONES, run("label cm -l app=y hot=1"), run("label cm a b 'bad=x y'"))
case("annotate", given(CM), run("annotate cm a note=hello"), run("annotate cm a note=again"), run("annotate cm a note-"), run(
    "get cm a -o jsonpath={.metadata.annotations}"))
case("patch: strategic", given(POD), run(["patch", "pod", "p", "-p", '{"spec":{"containers":[{"name":"main","image":"app:9"}]}}']), run(
    "get pod p -o jsonpath={.spec.containers[0].image}"))
case("patch: merge", given(W), run(["patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":7}}']), run("get widget w -o jsonpath={.spec.size}"))
case("patch: JSON", given(CM), run(["patch", "cm", "a", "--type=json", "-p", '[{"op":"replace","path":"/data/k","value":"z"}]']), run("get cm a -o jsonpath={.data.k}"))
case("patch without a change", given(CM), run(["patch", "cm", "a", "-p", '{"data":{"k":"v"}}']))
case("patch: strategic on a custom resource", given(W), run(["patch", "widget", "w", "-p", '{"spec":{"size":7}}']))
case("patch that is refused", given(W), run(["patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":"x"}}']))
case("edit", given(CM), run("edit cm a", env={"KUBE_EDITOR": "sed -i s/'k: v'/'k: edited'/"}), run("get cm a -o jsonpath={.data.k}"))
case("edit without a change", given(CM), run("edit cm a", env={"KUBE_EDITOR": "true"}))
case("edit of a custom resource", given(W), run("edit widget w", env={"KUBE_EDITOR": "sed -i s/'size: 3'/'size: 8'/"}), run("get widget w -o jsonpath={.spec.size}"))
case("a status replaced with --raw", given(W), lambda t: (o := t.quietly("GET", "widgets/w")[1], o.update(status={"phase": "Raw"}), t.kubectl(
    "replace --raw /apis/$GROUP/v1/namespaces/$NS/widgets/w/status -f -", stdin=json.dumps(o)), t.kubectl("get widgets")))


def cascade(how, then):
    def whole(t):
        owner = t.quietly("POST", "configmaps", configmap("o"))[1]
        t.quietly("POST", "configmaps", configmap("child", ownerReferences=[{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}]))
        t.kubectl(f"delete cm o --cascade={how}")
        then(t)
    case(f"delete --cascade={how}", whole, own=True)


cascade("background", lambda t: t.gone("configmaps/child"))
cascade("foreground", lambda t: t.gone("configmaps/child"))
cascade("orphan", lambda t: t.kubectl("get cm child -o jsonpath={.metadata.name}:{.metadata.ownerReferences}"))
case("delete", given(CM), run("delete cm a"), run("delete cm a"), run("delete cm a --ignore-not-found"))
case("delete -l", ONES, run("delete cm -l app=x"), run("get cm -l app -o name"))
case("delete --all", given(W, custom("widgets", "v", spec={"size": 1})), run("delete widgets --all"), run("get widgets"))
case("delete -f", given(CM), run("delete -f -", stdin=yaml(CM)))
case("delete pod --force", given(pod("p")), run("delete pod p --force --grace-period=0"))
case("delete --dry-run=server", given(CM), run("delete cm a --dry-run=server"), run("get cm a -o name"))
case("delete without waiting, with a finalizer", given(configmap("a", finalizers=["x/y"])), run("delete cm a --wait=false"), run(
    ["patch", "cm", "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}']))
case("delete of a kind that does not exist", run("delete nothing x"))
case("auth can-i", run("auth can-i create pods"), run("auth can-i '*' '*'"), run("auth can-i get /healthz"))
case("auth can-i of what is not there", run("auth can-i fly birds"))


def known(t, text):
    """The rows of the resources that both sides serve; definitions of another run may be there, too."""
    names = {n for of in omissions.SERVED.values() for n in of} | {"widgets", "plains", "frees"}
    rows = [re.sub(r" +", " ", row) for row in text.splitlines() if t.api_group in row or "conformance.test" not in row]
    return "\n".join(sorted(r for r in rows if r.split(" ")[0].split(".")[0] in names and (
        "/v1 " in r or r.split(" ")[1:2] == ["v1"] or " v1 " in r) and "events.k8s.io" not in r and "beta" not in r))


case("api-resources", lambda t: t.kubectl("api-resources --cached=false", only=lambda s: known(t, s)))
case("api-resources -o wide", lambda t: t.kubectl("api-resources -o wide", only=lambda s: known(t, s)))
case("api-resources of a group", lambda t: t.kubectl("api-resources --api-group=$GROUP", only=lambda s: known(t, s)))
case("api-versions", lambda t: t.kubectl("api-versions", only=lambda s: "\n".join(v for v in s.split() if v in omissions.SERVED)))
case("cluster-info", lambda t: t.kubectl("cluster-info", only=lambda s: re.sub(r"\x1b\[[\d;]*m", "", s).splitlines()[0].replace("master", "control plane")))
case("version", lambda t: t.kubectl("version --short", only=lambda s: s.replace("+sonde", "")))
case("completion of names", given(CM), run("__complete get cm a"))
case("completion of kinds", run("__complete get widg"))
case("completion of namespaces", lambda t: t.kubectl("__complete get pods -n $NS"))
case("proxy of a raw path that is not there", run("get --raw /api/v1/nothings"))
