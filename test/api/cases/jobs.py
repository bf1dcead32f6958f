"""Jobs and their controller with pods played by hand; quotas, events, leases, roles, reviews, discovery."""

import itertools
import time

from suite import omissions
from suite.case import (MERGE, STRATEGIC, delete, get, group, job, lease, meta, patch, pod, post, quota, quoted, service)

jobs = group("jobs")


def bare(value):
    """Without what tells how often and when the controller has written."""
    for item in value.get("items", [value]):
        for key in ("managedFields", "resourceVersion"):
            item.get("metadata", {}).pop(key, None)
    return value


def pods(t, count=None, seconds=180, selector="job-name=j"):
    """The Job's pods that are not ended, when there are COUNT of them."""
    def live():
        items = t.quietly("GET", f"pods?labelSelector={quoted(selector)}")[1]["items"]
        return [i for i in items if i["status"]["phase"] in ("Pending", "Running") and not i["metadata"].get("deletionTimestamp")]
    t.until(lambda: len(live()) == count if count is not None else live(), f"{count} pods", seconds)
    return live()


def played(t, one, phase, code=0):
    t.quietly("PATCH", f"pods/{one['metadata']['name']}/status", {"status": {"phase": phase, "containerStatuses": [
        {"name": "main", "image": "app:1", "imageID": "", "ready": False, "restartCount": 0, "state": {
            "terminated" if phase in ("Succeeded", "Failed") else "running": {"exitCode": code} if phase in ("Succeeded", "Failed") else {}}}]}}, MERGE)


def seen(t, condition, what, seconds=180):
    return t.wait("jobs/j", lambda s, o: s == 200 and condition(o.get("status", {})), what, seconds, only=bare)


def finished(kind):
    return lambda status: any(c["type"] == kind for c in status.get("conditions") or [])


def reasons(t, count, last=""):
    """What the events about the Job say, when the one of reason LAST is there; how often a controller tries again is its own affair."""
    path = "events?fieldSelector=" + quoted("involvedObject.kind=Job,involvedObject.name=j")

    def there():
        items = t.quietly("GET", path)[1]["items"]
        return len(items) >= count and (not last or last in [e["reason"] for e in items])
    t.until(there, f"{count} events, {last}")
    t.get(path, only=lambda v: sorted({(e["type"], e["reason"], t.mask.text(e["message"]), e["source"]["component"], e.get("reportingComponent"),
                                        e["involvedObject"]["kind"], e["involvedObject"]["apiVersion"]) for e in v["items"]}))


def controlled(title, spec=None, template=None):
    def add(run):
        def whole(t):
            t.mask.generated("j-")
            t.post("jobs", job("j", spec, template), only=bare)
            run(t)
        jobs(title, whole, own=True)
        return run
    return add


@controlled("one pod is made, and is the template's")
def _(t):
    one = pods(t, 1)[0]
    t.get(f"pods/{one['metadata']['name']}", only=bare)
    seen(t, lambda s: s.get("active") == 1, "active")
    reasons(t, 1)


@controlled("it completes")
def _(t):
    played(t, pods(t, 1)[0], "Running")
    played(t, pods(t, 1)[0], "Succeeded")
    seen(t, finished("Complete"), "complete")
    reasons(t, 2)


@controlled("it fails at once with backoffLimit 0", {"backoffLimit": 0})
def _(t):
    played(t, pods(t, 1)[0], "Failed", 3)
    seen(t, finished("Failed"), "failed")
    reasons(t, 2)


@controlled("two at a time, three in all", {"parallelism": 2, "completions": 3})
def _(t):
    first = pods(t, 2)
    seen(t, lambda s: s.get("active") == 2, "two active")
    played(t, first[0], "Succeeded")
    seen(t, lambda s: s.get("succeeded") == 1 and s.get("active") == 2, "one done, two active")
    for one in pods(t, 2):
        played(t, one, "Succeeded")
    seen(t, finished("Complete"), "complete")


@controlled("a work queue: no completions, all pods must end", {"parallelism": 2, "completions": None})
def _(t):
    for one in pods(t, 2):
        played(t, one, "Succeeded")
    seen(t, finished("Complete"), "complete")


@controlled("a deleted pod is replaced")
def _(t):
    one = pods(t, 1)[0]["metadata"]["name"]
    t.quietly("DELETE", f"pods/{one}")
    t.until(lambda: any(p["metadata"]["name"] != one for p in pods(t)), "another pod")
    seen(t, lambda s: s.get("active") == 1 and not s.get("failed"), "active")


@controlled("it is over when its time is over", {"activeDeadlineSeconds": 20})  # enough for its pod to be made and seen
def _(t):
    pods(t, 1)
    changes = itertools.count()

    def over():
        """1.20 forgets the deadline of a Job whose start it could not write at the first attempt, until the Job changes."""
        time.sleep(1)
        t.quietly("PATCH", "jobs/j", {"metadata": {"annotations": {"change": str(next(changes))}}}, MERGE)
        return finished("Failed")(t.quietly("GET", "jobs/j")[1].get("status", {}))
    t.until(over, "over")
    # Whether the pod that is deleted counts as failed depends on which write of the real controller comes first.
    t.wait("jobs/j", lambda s, o: s == 200 and finished("Failed")(o.get("status", {})), "failed", only=lambda o: {
        k: v for k, v in o["status"].items() if k != "failed"})
    pods(t, 0)
    reasons(t, 2, "DeadlineExceeded")


@controlled("more pods when parallelism grows, fewer when it shrinks", {"parallelism": 1, "completions": 5})
def _(t):
    pods(t, 1)
    t.patch("jobs/j", {"spec": {"parallelism": 3}}, only=lambda v: v["spec"]["parallelism"])
    pods(t, 3)
    seen(t, lambda s: s.get("active") == 3, "three")
    t.patch("jobs/j", {"spec": {"parallelism": 0}}, only=lambda v: v["spec"]["parallelism"])
    pods(t, 0)
    seen(t, lambda s: not s.get("active"), "none")


@controlled("it goes when its time to live is over", {"ttlSecondsAfterFinished": 1})
def _(t):
    played(t, pods(t, 1)[0], "Succeeded")
    t.gone("jobs/j")


@controlled("its owner reference controls and blocks")
def _(t):
    pods(t, 1)
    t.get("pods?labelSelector=job-name%3Dj", only=lambda v: [p["metadata"]["ownerReferences"] for p in v["items"]])


@controlled("a pod of somebody else with its labels is not taken", {"parallelism": 1})
def _(t):
    one = pods(t, 1)[0]
    t.quietly("POST", "pods", pod("stranger", labels={"job-name": "j"}))
    t.get("pods/stranger", only=lambda v: v["metadata"].get("ownerReferences"))
    seen(t, lambda s: s.get("active") == 1, "active")
    t.note(str(one["metadata"]["labels"].keys() == {"controller-uid", "job-name"}))


@controlled("deleted in the foreground")
def _(t):
    pods(t, 1)
    t.delete("jobs/j?propagationPolicy=Foreground", only=lambda v: (v["metadata"].get("finalizers"), v["kind"]))
    t.gone("jobs/j")
    pods(t, 0)


J = post("jobs", job("j", {"parallelism": 0}), only=bare)
for title, body in (("completions", {"spec": {"completions": 5}}), ("selector", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
                    ("template", {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}})):
    jobs(f"{title} cannot change", J, patch("jobs/j", body))
for title, body in (("parallelism", {"spec": {"parallelism": 0}}), ("backoffLimit", {"spec": {"backoffLimit": 9}}),
                    ("activeDeadlineSeconds", {"spec": {"activeDeadlineSeconds": 9}}), ("ttl", {"spec": {"ttlSecondsAfterFinished": 9}})):
    jobs(f"{title} can change", J, lambda t, b=body: t.patch("jobs/j", b, only=bare))
jobs("a status through its path", J, lambda t: t.patch("jobs/j/status", {"status": {"succeeded": 3}}, only=lambda v: v.get("status")))
jobs("a status through the object", J, lambda t: t.patch("jobs/j", {"status": {"succeeded": 3}}, only=lambda v: v.get("status")))
jobs("suspend is not known", post("jobs", job("j", {"suspend": True, "parallelism": 0}), only=bare))
jobs("a selector of its own, by hand", post("jobs", job("j", {"parallelism": 0, "manualSelector": True, "selector": {"matchLabels": {"a": "b"}},
                                                               "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                                                                   "restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}}}), only=bare))

quotas = group("quota")


CANARY = "count/leases.coordination.k8s.io"  # none may be made: a dry run tells when admission knows the quota


def counted(t, name="q"):
    t.until(lambda: t.quietly("GET", f"resourcequotas/{name}")[1].get("status", {}).get("used"), "counted")
    t.until(lambda: t.quietly("POST", "leases?dryRun=All", lease("x"))[0] == 403, "known to admission")


def hard(**limits):
    """A quota, when it is counted."""
    return lambda t: (t.post("resourcequotas", quota("q", {CANARY: "0", **{k.replace("__", "/").replace("_", "."): v for k, v in limits.items()}}), only=bare), counted(t))


def used(t):
    t.get("resourcequotas/q", only=lambda v: v.get("status"))


quotas("a count is enforced", hard(services="1"), post("services", service("a", {"clusterIP": "None", "ports": [{"port": 1}]})),
       post("services", service("b", {"clusterIP": "None", "ports": [{"port": 1}]})), used, own=True)
quotas("a deletion gives it back", hard(pods="1"), post("pods", pod("a")), delete("pods/a"), lambda t: (
    t.until(lambda: t.quietly("POST", "pods", pod("b"))[0] == 201, "given back"), used(t)), own=True)
LIMITS = {"containers": [{"name": "m", "image": "x", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}}]}
quotas("requests are enforced", hard(requests_cpu="700m"), post("pods", pod("a", LIMITS)), post("pods", pod("b", LIMITS)), used, own=True)
quotas("limits are enforced", hard(limits_cpu="1"), post("pods", pod("a", LIMITS)), post("pods", pod("b", LIMITS)), used, own=True)
quotas("a pod must say what it needs", hard(requests_cpu="1", limits_memory="1Gi"), post("pods", pod("a")), own=True)
quotas("GPUs", lambda t: (t.post("resourcequotas", quota("q", {CANARY: "0", "requests.nvidia.com/gpu": "1"}), only=bare), counted(t)),
       post("pods", pod("a", {"containers": [{"name": "m", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]})),
       post("pods", pod("b", {"containers": [{"name": "m", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]})), used, own=True)
quotas("counts of any kind", lambda t: (t.post("resourcequotas", quota("q", {CANARY: "0", "count/jobs.batch": "1"}), only=bare), counted(t)),
       post("jobs", job("a", {"parallelism": 0}), only=bare), post("jobs", job("b", {"parallelism": 0}), only=bare), used, own=True)
quotas("a dry run is refused too", hard(pods="0"), post("pods?dryRun=All", pod("a")), own=True)
quotas("a Job whose pod is refused", hard(pods="0"), post("jobs", job("j"), only=bare), lambda t: (
    t.mask.generated("j-"), reasons(t, 1), t.get("jobs/j", only=lambda v: v.get("status"))), own=True)
quotas("raised, it lets more in", hard(pods="0"), post("pods", pod("a")), lambda t: t.patch(
    "resourcequotas/q", {"spec": {"hard": {"pods": "1"}}}, only=lambda v: v["spec"]), lambda t: t.until(
        lambda: t.quietly("GET", "resourcequotas/q")[1]["status"]["hard"]["pods"] == "1", "raised"), lambda t: t.until(
            lambda: t.quietly("POST", "pods", pod("a"))[0] in (201, 409), "let in"), used, own=True)

events = group("events")
EVENT = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "$NS", "uid": "u"}, "reason": "R", "message": "m", "type": "Normal",
         "source": {"component": "c"}, "firstTimestamp": "2020-01-01T00:00:00Z", "lastTimestamp": "2020-01-01T00:00:00Z", "count": 1}
E = post("events", {**meta("e"), **EVENT})
events("made and read", E, get("events/e"))
events("counted up", E, lambda t: t.patch("events/e", {"count": 2, "lastTimestamp": "2020-01-01T00:01:00Z"}, STRATEGIC))
for selector in ("involvedObject.name=p", "involvedObject.kind=Pod,reason=R", "type=Warning", "involvedObject.uid=u", "source=c", "message=m"):
    events(f"selected by {selector}", E, get(f"events?fieldSelector={quoted(selector)}", only=lambda v: [
        i["metadata"]["name"] for i in v["items"]] if "items" in v else v))
events("the newer form", post("events", {**meta("e"), **EVENT, "eventTime": "2020-01-01T00:00:00.000000Z", "action": "A",
                                          "reportingComponent": "x.com/c", "reportingInstance": "i"}))
events("the newer form needs its fields", post("events", {**meta("e"), **EVENT, "eventTime": "2020-01-01T00:00:00.000000Z"}))

leases = group("leases")
L = post("leases", lease("l", {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}))
leases("times are kept to the microsecond", post("leases", lease("l", {"renewTime": "2020-01-01T00:00:00.123456Z", "acquireTime": "2020-01-01T01:00:00.5+01:00"})))
leases("renewed with the version that was read", L, lambda t: (
    o := t.quietly("GET", "leases/l")[1], o["spec"].update(renewTime="2020-01-01T00:00:02.000000Z"), t.put("leases/l", o)))
leases("taken by two, one is refused", L, lambda t: (
    o := t.quietly("GET", "leases/l")[1], o["spec"].update(holderIdentity="b"), t.put("leases/l", o),
    o["spec"].update(holderIdentity="c"), t.put("leases/l", o)))
leases("let go", L, patch("leases/l", {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}))

rbac = group("rbac-stored")
RULES = [{"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["get", "list"]}, {"apiGroups": ["batch"], "resources": ["jobs"],
                                                                                          "resourceNames": ["a"], "verbs": ["*"]}]
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
rbac("a Role", post("roles", {**meta("r"), "rules": RULES}), get("roles/r"))
rbac("a Role's name may have a colon", post("roles", {**meta("a:b"), "rules": []}), get("roles/a:b"))
rbac("a Role's name must not have a slash", post("roles", {**meta("a/b"), "rules": []}))
rbac("a RoleBinding", post("rolebindings", {**meta("b"), "roleRef": REF, "subjects": [
    {"kind": "ServiceAccount", "name": "s", "namespace": "$NS"}, {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}]}))
rbac("a RoleBinding's role cannot change", post("rolebindings", {**meta("b"), "roleRef": REF}), patch("rolebindings/b", {"roleRef": {"name": "x"}}))
rbac("a RoleBinding's subjects can", post("rolebindings", {**meta("b"), "roleRef": REF}), patch("rolebindings/b", {"subjects": [
    {"kind": "User", "name": "u"}]}))
rbac("a ClusterRole", post("clusterroles", {**meta("$NS-c"), "rules": [*RULES, {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]}),
     get("clusterroles/$NS-c"), delete("clusterroles/$NS-c"))
rbac("a ClusterRoleBinding", post("clusterrolebindings", {**meta("$NS-c"), "roleRef": {**REF, "kind": "ClusterRole"}, "subjects": [
    {"kind": "ServiceAccount", "name": "s", "namespace": "$NS"}]}), delete("clusterrolebindings/$NS-c"))
rbac("a Role is updated by a strategic patch", post("roles", {**meta("r"), "rules": RULES}), lambda t: t.patch("roles/r", {"rules": [
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}, STRATEGIC))

review = group("review")


def asked(title, attributes, plural="selfsubjectaccessreviews"):
    review(title, lambda t: t.post(plural, {"spec": attributes}, only=lambda v: v if v["kind"] == "Status" else {
        **v, "status": {k: x for k, x in v["status"].items() if k != "reason"}}))


asked("the administrator may", {"resourceAttributes": {"namespace": "$NS", "verb": "delete", "resource": "pods"}})
asked("also what is not there", {"resourceAttributes": {"verb": "fly", "group": "x.y", "resource": "birds"}})
asked("paths that are no resources", {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}})
asked("nothing asked", {})
asked("both asked", {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/", "verb": "get"}})
review("only create is a verb", get("selfsubjectaccessreviews"))

found = group("discovery")
found("versions of the core group", lambda t: t.get("/api", only=lambda v: {**v, "serverAddressByClientCIDRs": [
    {"clientCIDR": c["clientCIDR"]} for c in v["serverAddressByClientCIDRs"]]}))
found("groups", get("/apis", only=omissions.served_groups))
for path in sorted(omissions.SERVED):
    found(f"resources of {path}", get(f"/api/{path}" if path == "v1" else f"/apis/{path}", only=omissions.served_resources))
found("the group of this run's kinds", get("/apis/$GROUP"))
found("this run's kinds", lambda t: t.get("/apis/$GROUP/v1", only=lambda v: {**v, "resources": sorted(
    [{k: x for k, x in r.items() if k != "storageVersionHash" or not t.suite.apart} for r in v["resources"] if r["name"].split("/")[0] in ("widgets", "plains", "frees")], key=lambda r: r["name"])}))
found("a group", lambda t: t.get("/apis/batch", only=lambda v: {**v, "versions": v["versions"][:1]}))
found("a group that is not there", get("/apis/no.such.group"))
found("a version that is not there", get("/apis/batch/v7"))
found("with a slash at the end", lambda t: [t.get(p, only=lambda v: v.get("kind")) for p in ("/apis/", "/api/", "/api/v1/")])

openapi = group("openapi")


def model(name, *keys):
    """The properties and types of a definition, without descriptions."""
    def pick(value):
        if isinstance(value, dict):
            return {k: pick(v) for k, v in value.items() if k != "description" or not isinstance(v, str)}
        return [pick(v) for v in value] if isinstance(value, list) else value

    def only(value):
        found_model = value.get("definitions", {}).get(name, "not there")
        return pick(found_model)
    return lambda t: t.get("/openapi/v2", only=only)


for name in ("core.v1.ConfigMap", "core.v1.Secret", "core.v1.Pod", "core.v1.PodSpec", "core.v1.Container", "batch.v1.Job", "batch.v1.JobSpec",
             "batch.v1.JobStatus", "core.v1.Event", "core.v1.ResourceQuotaSpec", "coordination.v1.LeaseSpec", "core.v1.Namespace"):
    openapi(f"the model of {name}", model("io.k8s.api." + name))
openapi("the model of ObjectMeta", model("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))
openapi("a custom resource, with descriptions", lambda t: (
    t.until(lambda: any("Widget" in k and t.side.token in k for k in t.quietly("GET", "/openapi/v2")[1]["definitions"]), "published"),
    t.get("/openapi/v2", only=lambda v: {k: x for k, x in v["definitions"].items() if k == "test.conformance.g" + t.side.token + ".v1.Widget"})))
