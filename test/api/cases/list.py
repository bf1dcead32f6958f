"""list: selectors, pages, versions; Table and metadata-only answers."""

from suite.case import (PARTIAL, PARTIAL_LIST, TABLE, configmap, custom, get, group, job, lease, meta, pod, post, quota, quoted, secret)

select = group("list-select")

ITEMS = [("a", {"app": "x", "tier": "1"}), ("b", {"app": "y"}), ("c", {"app": "x", "tier": "2"}), ("d", {})]
FOUR = [post("configmaps", configmap(name, {"n": name}, labels=labels)) for name, labels in ITEMS]


def names(answer):
    """Which objects, in which order: all that a selection decides."""
    if "items" not in answer:
        return answer
    return {"kind": answer["kind"], "apiVersion": answer["apiVersion"], "names": [i["metadata"]["name"] for i in answer["items"]
                                                                                 if i["metadata"]["name"] != "kube-root-ca.crt"]}


def four(t):
    for name, labels in ITEMS:
        t.quietly("POST", "configmaps", configmap(name, {"n": name}, labels=labels))


def labels(selector):
    return four, get(f"configmaps?labelSelector={quoted(selector)}", only=names)


def fields(selector, plural="configmaps"):
    return four, get(f"{plural}?fieldSelector={quoted(selector)}", only=names)


select("no objects", get("leases"))
select("a list of objects, in the order of their names", *FOUR, get("configmaps"))
for selector in ("app=x", "app==x", "app!=x", "app in (x,y)", "app notin (x)", "app", "!app", "app=x,tier=2", "app in (x),!tier",
                 "tier>1", "tier<2", "app=", "  app = x ", "app in (x, y),tier"):
    select(f"label selector '{selector}'", *labels(selector))
for selector in ("app=x y", "=x", "app in x", "app in ()", "a b", "app=x,", "UPPER/lower=x", "-a=b", "app=-x", "tier>x", "app)"):
    select(f"bad label selector '{selector}'", *labels(selector))
for selector in ("metadata.name=a", "metadata.name!=a", "metadata.namespace=$NS", "metadata.name=a,metadata.namespace!=$NS",
                 "metadata.name==b", "metadata.name=none"):
    select(f"field selector '{selector}'", four, lambda t, s=selector: t.get(
        f"configmaps?fieldSelector={quoted(t.fill(s))}", only=names))
for selector in ("data.n=a", "metadata.uid=x", "nonsense", "metadata.labels.app=x"):
    select(f"field selector '{selector}' is not there", *fields(selector))


def two_pods(t):
    t.quietly("POST", "pods", pod("p", {"nodeName": "$NODE", "restartPolicy": "Never"}))
    t.quietly("POST", "pods", pod("q"))


for selector in ("spec.nodeName=$NODE", "spec.nodeName=", "status.phase=Pending", "status.phase!=Pending", "spec.restartPolicy=Never",
                 "spec.schedulerName=by-hand", "spec.serviceAccountName=default", "status.podIP=", "spec.x=1"):
    select(f"pods by '{selector}'", two_pods, get(f"pods?fieldSelector={quoted(selector)}", only=names))
select("Jobs by status.successful", post("jobs", job("j")), get("jobs?fieldSelector=status.successful%3D0", only=names))
select("Secrets by type", post("secrets", {**secret("s"), "type": "a/b"}), get("secrets?fieldSelector=type%3Da/b", only=names))
select("namespaces by status.phase", lambda t: t.get("namespaces?fieldSelector=" + quoted(t.fill(
    "metadata.name=$NS,status.phase=Active")), only=names))
select("custom resources by name", post("plains", custom("plains", "a")), post("plains", custom("plains", "b")),
       get("plains?fieldSelector=metadata.name%3Db", only=names))
select("custom resources by another field", get("plains?fieldSelector=spec.value%3Db"))
select("over all namespaces", four, lambda t: t.get("/api/v1/configmaps?fieldSelector=" + quoted(t.fill("metadata.namespace=$NS")),
                                                     only=names))
select("in a namespace that is not there", get("/api/v1/namespaces/$NS-none/configmaps"))

page = group("list-page")


def pages(t, limit, path="configmaps?fieldSelector=metadata.name%21%3Dkube-root-ca.crt", **more):
    """Reads page by page; each is recorded."""
    four(t)
    token = ""
    for _ in range(9):
        answer = t.get(f"{path}&limit={limit}" + (f"&continue={quoted(token)}" if token else ""), **more)
        token = answer.get("metadata", {}).get("continue")
        if not token:
            break


page("one at a time", lambda t: pages(t, 1, "leases?x=y", only=None), post("leases", lease("a")), post("leases", lease("b")),
     post("leases", lease("c")), lambda t: pages(t, 1, "leases?x=y"))
page("two at a time", post("leases", lease("a")), post("leases", lease("b")), post("leases", lease("c")),
     lambda t: pages(t, 2, "leases?x=y"))
page("a limit that is what is there", post("leases", lease("a")), post("leases", lease("b")), lambda t: pages(t, 2, "leases?x=y"))
page("with a label selector nothing is said of what remains", lambda t: pages(t, 1, "configmaps?labelSelector=app%3Dx"))
page("as a table", post("leases", lease("a")), post("leases", lease("b")), lambda t: pages(t, 1, "leases?x=y", accept=TABLE))
page("a limit of 0 is none", post("leases", lease("a")), get("leases?limit=0"))
page("a limit below 0", post("leases", lease("a")), get("leases?limit=-1"))
page("a limit that is no number", get("leases?limit=x"))
page("a continue that is nonsense", get("leases?limit=1&continue=nonsense"))
page("a continue with a version", post("leases", lease("a")), post("leases", lease("b")), lambda t: t.get(
    "leases?limit=1&resourceVersion=5&continue=" + quoted(t.quietly("GET", "leases?limit=1")[1]["metadata"]["continue"])))
page("the pages are of one version", post("leases", lease("a")), post("leases", lease("b")), lambda t: (
    token := t.quietly("GET", "leases?limit=1")[1]["metadata"]["continue"], t.quietly("POST", "leases", lease("bb")),
    t.quietly("DELETE", "leases/b"), t.get("leases?limit=5&continue=" + quoted(token))))
page("resourceVersionMatch without a version", get("leases?resourceVersionMatch=Exact"))
page("resourceVersionMatch=Exact of 0", get("leases?resourceVersionMatch=Exact&resourceVersion=0"))
page("resourceVersionMatch that does not exist", get("leases?resourceVersionMatch=Best&resourceVersion=1"))
page("resourceVersionMatch=NotOlderThan", post("leases", lease("a")), lambda t: t.get(
    "leases?resourceVersionMatch=NotOlderThan&resourceVersion=" + t.version("leases/a")))
page("resourceVersionMatch=Exact shows what was then", post("leases", lease("a")), lambda t: (
    version := t.version("leases/a"), t.quietly("DELETE", "leases/a"),
    t.get("leases?resourceVersionMatch=Exact&limit=5&resourceVersion=" + version)))
page("a version that is no number", get("leases?resourceVersion=abc"))
page("a version of the future", get("leases?resourceVersion=99999999999"))

table = group("table")

table("ConfigMaps", post("configmaps", configmap("a", {"x": "1", "y": "2"})), get("configmaps", accept=TABLE))
table("one ConfigMap", post("configmaps", configmap("a")), get("configmaps/a", accept=TABLE))
table("Secrets", post("secrets", secret("a", {"x": "eA=="})), get("secrets/a", accept=TABLE))
table("pods", post("pods", pod("a")), get("pods/a", accept=TABLE))
table("a pod that runs", post("pods", pod("a", {"nodeName": "$NODE"})), lambda t: t.patch("pods/a/status", {"status": {
    "phase": "Running", "podIP": "10.0.0.9", "podIPs": [{"ip": "10.0.0.9"}], "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "main", "ready": True, "restartCount": 2, "image": "app:1", "imageID": "", "state": {
        "running": {"startedAt": "2020-01-01T00:00:00Z"}}}]}}), get("pods/a", accept=TABLE))
for title, state in (("waits", {"waiting": {"reason": "CrashLoopBackOff"}}), ("ended", {"terminated": {"exitCode": 3}}),
                     ("ended with a reason", {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
                     ("was ended by a signal", {"terminated": {"exitCode": 0, "signal": 9}})):
    table(f"a pod whose container {title}", post("pods", pod("a", {"nodeName": "$NODE"})), lambda t, s=state: t.quietly(
        "PATCH", "pods/a/status", {"status": {"phase": "Failed", "containerStatuses": [
            {"name": "main", "ready": False, "restartCount": 1, "image": "app:1", "imageID": "", "state": s}]}},
        "application/merge-patch+json"), get("pods/a", accept=TABLE, only=lambda v: [r["cells"][:4] for r in v["rows"]]))
table("a pod in its init containers", post("pods", pod("a", {"nodeName": "$NODE", "initContainers": [
    {"name": "i", "image": "x"}, {"name": "k", "image": "x"}]})), lambda t: t.quietly("PATCH", "pods/a/status", {"status": {
        "phase": "Pending", "initContainerStatuses": [
            {"name": "i", "ready": True, "restartCount": 0, "image": "x", "imageID": "", "state": {"terminated": {"exitCode": 0}}},
            {"name": "k", "ready": False, "restartCount": 0, "image": "x", "imageID": "", "state": {"running": {}}}]}},
        "application/merge-patch+json"), get("pods/a", accept=TABLE, only=lambda v: [r["cells"][:4] for r in v["rows"]]))
table("Jobs", post("jobs", job("a", {"completions": 3}), only=lambda v: v["kind"]), get("jobs/a", accept=TABLE, only=lambda v: (
    v["columnDefinitions"], [[c for n, c in enumerate(r["cells"]) if n not in (2, 3)] for r in v["rows"]])), own=True)
table("leases", post("leases", lease("a", {"holderIdentity": "me"})), get("leases", accept=TABLE))
table("ResourceQuotas", post("resourcequotas", quota("a", {"configmaps": "9", "pods": "3"})), lambda t: t.until(
    lambda: t.quietly("GET", "resourcequotas/a")[1].get("status", {}).get("used"), "counted"), get(
    "resourcequotas/a", accept=TABLE, only=lambda v: (v["columnDefinitions"], v["rows"][0]["cells"][:1])))
table("Roles", post("roles", {**meta("a"), "rules": []}), get("roles/a", accept=TABLE, only=lambda v: (
    v["columnDefinitions"], v["rows"][0]["cells"][:1])))
table("RoleBindings", post("rolebindings", {**meta("a"), "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
                                                                      "name": "r"},
                                            "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "$NS"}]}),
      get("rolebindings/a", accept=TABLE))
table("ServiceAccounts", get("serviceaccounts/default", accept=TABLE, only=lambda v: (v["columnDefinitions"], v["rows"][0]["cells"][0])))
table("Services", post("services", {**meta("a"), "spec": {"clusterIP": "None", "ports": [{"port": 80, "name": "h"}]}}),
      get("services/a", accept=TABLE))
table("namespaces", lambda t: t.get("namespaces/$NS", accept=TABLE, only=lambda v: {
    "columns": v["columnDefinitions"], "cells": v["rows"][0]["cells"]}))
table("events", post("events", {**meta("e"), "involvedObject": {"kind": "Pod", "name": "p", "namespace": "$NS"}, "reason": "R",
                                "message": "m", "type": "Warning", "count": 3, "source": {"component": "c", "host": "h"},
                                "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z"}),
      get("events/e", accept=TABLE, only=lambda v: (v["columnDefinitions"], [c for n, c in enumerate(v["rows"][0]["cells"])
                                                                               if n not in (0, 6)])))
table("an empty list", get("leases", accept=TABLE))
table("whole objects in it", post("leases", lease("a")), get("leases?includeObject=Object", accept=TABLE))
table("no objects in it", post("leases", lease("a")), get("leases?includeObject=None", accept=TABLE))
table("includeObject that does not exist", get("leases?includeObject=Some", accept=TABLE))
table("of a version that is not served", get("leases", accept="application/json;as=Table;v=v9;g=meta.k8s.io"))
table("v1beta1 of it", post("leases", lease("a")), get("leases", accept="application/json;as=Table;v=v1beta1;g=meta.k8s.io"))
table("a status is no table", get("configmaps/none", accept=TABLE))
table("the answer to a create", post("configmaps", configmap("a"), accept=TABLE))

partial = group("metadata-only")

partial("one object", post("configmaps", configmap("a", {"x": "y"}, labels={"l": "1"})), get("configmaps/a", accept=PARTIAL))
partial("a list", post("leases", lease("a")), post("leases", lease("b")), get("leases", accept=PARTIAL_LIST))
partial("a list as if it were one", get("leases", accept=PARTIAL))
partial("one as if it were a list", post("configmaps", configmap("a")), get("configmaps/a", accept=PARTIAL_LIST))
partial("a custom resource", post("plains", custom("plains", "a", spec={"value": "x"})), get("plains/a", accept=PARTIAL))
partial("a watch", lambda t: (version := t.version("leases"), w := t.watch(f"leases?resourceVersion={version}", accept=PARTIAL),
                              t.quietly("POST", "leases", lease("a")), w.events(1)))
partial("the answer to a patch", post("configmaps", configmap("a")), lambda t: t.patch("configmaps/a", {"data": {"k": "v"}},
                                                                                       accept=PARTIAL))
