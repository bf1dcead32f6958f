"""All that happens to the objects of a request's namespace, and whether that was as it must be.

    with Recorder(world.server) as recorder:
        record = recorder.of(ns)
        ...
        record.quiet(world.api, 1)
        record.check_status(play.uid)           # I6
        record.check_jobs(play.uid)             # I2: one live Job
        record.counts(play.uid)                 # I2: {("create", "configmaps", "dgdr-output-a"): 1, ...}
        record.end_state(play.uid)              # I1: what is there, without what differs from run to run

One watch for each kind serves all namespaces.
"""

import contextlib
import copy
import json
import re
import threading
import time

from dgdr_play import DGDRS, DGDS, GROUP
from sonde_test import ControlPlane

KINDS = {DGDRS: GROUP, DGDS: GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1",
         "serviceaccounts": "/api/v1", "roles": "/apis/rbac.authorization.k8s.io/v1",
         "rolebindings": "/apis/rbac.authorization.k8s.io/v1"}
SERVERS_OWN = (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt"))
NEXT = {  # of state
    "": ("Pending", "Failed"),
    "Pending": ("Profiling", "Failed"),
    "Profiling": ("Pending", "Ready", "Deploying", "Failed"),
    "Deploying": ("Ready", "Failed", "DeploymentDeleted"),
    "Ready": ("Deploying", "DeploymentDeleted"),
    "Failed": (), "DeploymentDeleted": (),
}
NOT_BOTH = (("Ready", "Stalled"), ("Ready", "Progressing"), ("Stalled", "Progressing"))


class Recorder:
    """Follows all kinds, in all namespaces."""

    def __init__(self, server):
        self._server = server
        self.real = isinstance(server, ControlPlane)
        self._records = {}
        self._changed = threading.Condition()
        self._broken = None
        self._over = False

    def __enter__(self):
        for kind, prefix in KINDS.items():
            api = self._server.api()
            status, listed = api.get(f"{prefix}/{kind}?limit=1")
            assert status == 200, listed
            version = self._server.api().get(f"{prefix}/{kind}")[1]["metadata"]["resourceVersion"]
            threading.Thread(target=self._follow, args=(api, kind, f"{prefix}/{kind}", version), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._over = True

    def of(self, ns):
        with self._changed:
            return self._records.setdefault(ns, Record(self, ns))

    def check(self):
        assert not self._broken, self._broken

    def _follow(self, api, kind, path, version):
        try:
            while not self._over:
                with contextlib.suppress(TimeoutError):  # nothing came for long: go on from there
                    for event in api.watch(f"{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}"):
                        assert event["type"] != "ERROR", event
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._take(kind, event["type"], event["object"])
        except Exception as e:  # pylint: disable=broad-except
            self._broken = f"the watch of {kind} ended: {e!r}"

    def _take(self, kind, what, item):
        with self._changed:
            record = self._records.get(item["metadata"]["namespace"])
            if record:
                record.take(kind, what, item)


def masked_name(kind, item):
    """Of a pod: what it was generated from."""
    return item["metadata"].get("generateName", item["metadata"]["name"]) if kind == "pods" else item["metadata"]["name"]


class Record:
    """One namespace."""

    def __init__(self, recorder, ns):
        self._recorder, self.ns = recorder, ns
        self.seen = []  # (kind, ADDED | MODIFIED | DELETED, object)
        self.last = time.monotonic()

    def take(self, kind, what, item):
        if (kind, item["metadata"]["name"]) not in SERVERS_OWN:
            item["metadata"].pop("managedFields", None)
            self.seen.append((kind, what, item))
            self.last = time.monotonic()

    def now(self):
        """What is there, by kind and name."""
        there = {}
        for kind, what, item in list(self.seen):
            key = (kind, item["metadata"]["name"])
            if what == "DELETED":
                there.pop(key, None)
            else:
                there[key] = item
        return there

    def listed(self, api):
        """The same, as the server says: versions only."""
        there = {}
        for kind, prefix in KINDS.items():
            status, body = api.get(f"{prefix}/namespaces/{self.ns}/{kind}")
            assert status == 200, body
            there.update({(kind, i["metadata"]["name"]): i["metadata"]["resourceVersion"] for i in body["items"]})
        return {key: version for key, version in there.items() if key not in SERVERS_OWN}

    def caught_up(self, api):
        self._recorder.check()
        return self.listed(api) == {key: item["metadata"]["resourceVersion"] for key, item in self.now().items()}

    def unsettled(self):
        return unsettled(self.now(), self._recorder.real)

    def quiet(self, api, rest, seconds=120):
        """Waits until the server's controllers are done, nothing happens for REST seconds and all that there is has been seen."""
        deadline = time.monotonic() + seconds
        while True:
            left = self.last + rest - time.monotonic()
            if left <= 0 and not self.unsettled() and self.caught_up(api):
                return
            assert time.monotonic() < deadline, f"{self.ns}: still not quiet: {self.unsettled()} {self.tail()}"
            time.sleep(max(left, 0.05))

    def tail(self, n=12):
        return [(what, kind, item["metadata"]["name"], item["metadata"]["resourceVersion"]) for kind, what, item in self.seen[-n:]]

    def of(self, kind, uid):
        return [(what, item) for k, what, item in list(self.seen) if k == kind and item["metadata"]["uid"] == uid]

    # --- I1

    def belongs(self, uid):
        """The uids of all that is or was a request's: it, what it owns or marks, and what that owns."""
        ours = {uid}
        for _ in "Job", "pod":
            for _, _, item in list(self.seen):
                meta = item["metadata"]
                if meta.get("labels", {}).get("sonde.dev/request") in ours or \
                        any(o["uid"] in ours for o in meta.get("ownerReferences", [])):
                    ours.add(meta["uid"])
        return ours

    def end_state(self, uid, rename=None):
        """What belongs to a request. RENAME: (pattern, replacement) for names that the fault changes."""
        ours = self.belongs(uid)
        return {renamed((kind, masked_name(kind, item)), rename): renamed(masked(kind, item), rename)
                for (kind, _), item in self.now().items() if item["metadata"]["uid"] in ours}

    # --- I2

    def counts(self, uid, rename=None):
        """How often each object of a request was created and deleted."""
        count, ours = {}, self.belongs(uid)
        for kind, what, item in list(self.seen):
            if what != "MODIFIED" and item["metadata"]["uid"] in ours:
                key = renamed(("create" if what == "ADDED" else "delete", kind, masked_name(kind, item)), rename)
                count[key] = count.get(key, 0) + 1
        return count

    def writes(self, uid):
        """How many writes of an operator are to be seen: status, creates and deletes of what it makes."""
        n = 0
        for kind, what, item in list(self.seen):
            meta = item["metadata"]
            if kind == DGDRS and meta["uid"] == uid:
                n += what == "MODIFIED"
            elif kind != "pods" and (any(o["uid"] == uid for o in meta.get("ownerReferences", [])) or
                                     meta.get("labels", {}).get("sonde.dev/request") == uid):
                n += what != "MODIFIED"
        return n

    def check_jobs(self, uid):
        """Never two live Jobs of a request, no name used twice, and none of an attempt twice."""
        live, names, attempts = {}, set(), set()
        for kind, what, item in list(self.seen):
            meta = item["metadata"]
            if kind != "jobs" or not any(o["uid"] == uid for o in meta.get("ownerReferences", [])):
                continue
            if what == "ADDED":
                attempt = meta["labels"]["sonde.dev/attempt"]
                assert meta["name"] not in names, f"a Job {meta['name']} was made twice"
                assert attempt not in attempts, f"two Jobs of attempt {attempt}"
                names.add(meta["name"])
                attempts.add(attempt)
            ended = any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
                        for c in item.get("status", {}).get("conditions") or [])
            live[meta["uid"]] = what != "DELETED" and not ended
            assert sum(live.values()) <= 1, f"two live Jobs: {names}"

    # --- I6

    def check_status(self, uid):
        """Every status that the request has had, and what became of it from one to the next."""
        before = {}
        for what, item in self.of(DGDRS, uid):
            if what == "DELETED":
                continue
            status = item.get("status", {})
            check_one_status(item, status)
            if before:
                check_turn(before, item)
            before = item

    def check_unchanged(self, strangers):
        """I4: each of these (as they were made) is there as it was."""
        now = self.now()
        for kind, item in strangers:
            found = now.get((kind, item["metadata"]["name"]))
            assert found, f"the stranger's {kind}/{item['metadata']['name']} is gone"
            assert untouched(kind, item, found), f"a stranger was touched: {found}"


# --- what the server does by itself


def unsettled(there, real):
    """What the server's own controllers have still to do about THERE ({(kind, name): object}): however slow they are, what they
    do is not to be taken for the operator's doing, nor left out of an end state. REAL: they are Kubernetes's (1.20)."""
    uids = {item["metadata"]["uid"] for item in there.values()}
    left = []
    for (kind, name), item in there.items():
        meta, owners = item["metadata"], item["metadata"].get("ownerReferences")
        if "deletionTimestamp" in meta:  # unless somebody holds it
            undone = "is to go" if set(meta.get("finalizers", [])) <= {"foregroundDeletion", "orphan"} else None
        elif owners and not any(o["uid"] in uids for o in owners):
            undone = "is to go with its owner"
        elif kind == "jobs":
            undone = job_undone(item, [pod for (k, _), pod in there.items() if k == "pods" and owned_by(pod, meta["uid"])])
        elif kind == "pods":
            undone = "is to be scheduled" if real and is_live(item) and "PodScheduled" not in conditions(item["status"]) else None
        else:
            undone = "is to get a token" if real and kind == "serviceaccounts" and not item.get("secrets") else None
        if undone:
            left.append(f"{kind}/{name} {undone}")
    return left


def owned_by(item, uid):
    return any(o["uid"] == uid for o in item["metadata"].get("ownerReferences", []))


def is_live(pod):
    return pod["status"].get("phase") not in ("Succeeded", "Failed")


def job_undone(job, pods):
    """What is to come of a Job; one that may fail more than once is not asked."""
    spec, status = job["spec"], job.get("status", {})
    if spec.get("suspend") or spec.get("backoffLimit") or any(
            c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in status.get("conditions") or []):
        return None
    live = sum(map(is_live, pods))
    good = sum(pod["status"].get("phase") == "Succeeded" for pod in pods)
    wanted = spec.get("parallelism", 1)
    if live + good < len(pods) or (good and good >= spec.get("completions", 1)):
        return "is to end"
    if live + good < wanted:
        return "is to make its pods"
    return None if (status.get("active") or 0, status.get("succeeded") or 0) == (live, good) else "is to count its pods"


def untouched(kind, item, found):
    """FOUND is ITEM as it was. A Job and a ServiceAccount are changed by controllers of the server, but not by us."""
    if kind in ("jobs", "serviceaccounts"):
        was, is_ = item["metadata"], found["metadata"]
        return all(was.get(key) == is_.get(key) for key in ("uid", "labels", "annotations", "ownerReferences", "generation"))
    return found["metadata"]["uid"] == item["metadata"]["uid"] and \
        found["metadata"]["resourceVersion"] == item["metadata"]["resourceVersion"]


def conditions(status):
    return {c["type"]: c for c in status.get("conditions", [])}


def check_one_status(item, status):
    generation = item["metadata"]["generation"]
    assert status.get("observedGeneration", 0) <= generation, item
    of = conditions(status)
    assert len(of) == len(status.get("conditions", [])), f"a condition twice: {status}"
    for kind, condition in of.items():
        assert condition.get("observedGeneration", 0) <= generation, condition
        assert condition["reason"] and condition["lastTransitionTime"], (kind, condition)
    for one, other in NOT_BOTH:
        assert not (of.get(one, {}).get("status") == "True" and of.get(other, {}).get("status") == "True"), (one, other, status)
    state = status.get("state", "")
    if of.get("Ready", {}).get("status") == "True":
        assert state == "Ready", status
    if state in ("Failed", "DeploymentDeleted"):
        assert of["Stalled"]["status"] == "True", status


def check_turn(before, item):
    old, new = before.get("status", {}), item.get("status", {})
    same = {**item, "metadata": {**item["metadata"], "resourceVersion": ""}} == \
        {**before, "metadata": {**before["metadata"], "resourceVersion": ""}}
    assert not same, f"a write without a change: {item}"
    assert new.get("observedGeneration", 0) >= old.get("observedGeneration", 0), (old, new)
    was, is_ = old.get("state", ""), new.get("state", "")
    assert was == is_ or is_ in NEXT[was], f"{was} became {is_}: {new}"
    if was in ("Failed", "DeploymentDeleted"):
        assert old == new, f"a final status was changed: {old} {new}"
    if old.get("run", {}).get("outcome"):
        assert new["run"] == old["run"], (old, new)
    assert new.get("run", {}).get("attempt", 0) >= old.get("run", {}).get("attempt", 0), (old, new)
    past = conditions(old)
    for kind, condition in conditions(new).items():
        if kind in past and past[kind]["lastTransitionTime"] != condition["lastTransitionTime"]:
            assert past[kind]["status"] != condition["status"], f"lastTransitionTime without a transition: {condition}"


# --- masks

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
POD = re.compile(r"\b(profile-[a-z0-9]+(?:-\d+)?)-[a-z0-9]{5}\b")
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink", "namespace", "generateName")


def masked(kind, item):
    """Without what differs from run to run: uids, times, versions, the namespace, generated names, and what comes from those."""
    item = copy.deepcopy(item)
    meta = item["metadata"]
    ns = meta["namespace"]
    for key in VOLATILE:
        meta.pop(key, None)
    meta.get("annotations", {}).pop("sonde.dev/plan", None)
    if kind == "pods":
        item["status"] = {"phase": item.get("status", {}).get("phase")}
        meta["name"] = "pod"
    if kind == DGDRS:
        for key in "eta", "estimatedCompletion":
            item.get("status", {}).get("progress", {}).pop(key, None)
            item.get("status", {}).get("profilingProgress", {}).pop(key, None)
            item.get("status", {}).pop(key, None)
        item.get("status", {}).get("conditions", []).sort(key=lambda c: c["type"])
    text = json.dumps(item).replace(ns, "NS")
    return json.loads(POD.sub(r"\1-POD", TIME.sub("T", UID.sub("U", text))))


def renamed(value, rename):
    """VALUE (a tuple of names, or an object) with the names that the reference has."""
    if not rename:
        return value
    if isinstance(value, tuple):
        return tuple(re.sub(*rename, name) for name in value)
    return json.loads(POD.sub(r"\1-POD", re.sub(*rename, json.dumps(value))))


def of_one_attempt(state):
    """An end state without what tells of the attempts before: numbers, names, and the conditions that only they leave."""
    state = copy.deepcopy(state)
    for (kind, _), item in state.items():
        item["metadata"].get("labels", {}).pop("sonde.dev/attempt", None)
        item.get("data", {}).pop("specHash", None)  # the relay's, once there is a checkpoint
        if kind in ("jobs", "pods"):
            spec = item["spec"]["template"]["spec"] if kind == "jobs" else item["spec"]
            for container in spec["containers"]:
                container["env"] = [e for e in container.get("env", []) if e["name"] != "SONDE_ATTEMPT"]
        if kind != DGDRS:
            continue
        status = item["status"]
        for key in "attempt", "retries", "job":
            status["run"].pop(key, None)
            status.get("progress", {}).pop(key, None)
        status.pop("observedGeneration", None)
        status["conditions"] = [{**c, "observedGeneration": 0} for c in status["conditions"]
                                if c["type"] not in ("Suspended", "SpecAccepted")]
    return state


def difference(wanted, found, path=""):
    """Where two values differ, as lines."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [line for key in {**wanted, **found} for line in difference(wanted.get(key), found.get(key), f"{path}/{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [line for i, (a, b) in enumerate(zip(wanted, found)) for line in difference(a, b, f"{path}/{i}")]
    return [] if wanted == found else [f"{path}: {json.dumps(wanted)} became {json.dumps(found)}"]
