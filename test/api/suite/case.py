"""case - the vocabulary of a case: requests, watches and kubectl, each recorded as it is answered.

A case is a function that gets a T, or a list of steps:

    case("a ConfigMap is made and read", post("configmaps", configmap("a")), get("configmaps/a"))

    @case("an update with an old version is refused")
    def _(t):
        old = t.post("configmaps", configmap("a"))
        ...

It runs once on each side, with the same names. Paths are short: "configmaps/a" is in the case's namespace, a path
that begins with a slash is taken as it is. "$NS" and "$GROUP" in paths and bodies stand for the namespace and for an
API group of this run and side, "$NODE" for a node that there is not. A namespace belongs to all cases of a group (a file's name), one after the other, and
is swept after each; `own=True` asks for a new one, where controllers come later or finalizers stay.
"""

import json
import re
import secrets
import shlex
import ssl
import threading
import time
import urllib.parse

from . import omissions
from .mask import Mask

GROUPS = {}  # name of the file -> its cases

PREFIXES = {
    "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}
CLUSTER = {
    "namespaces": "/api/v1",
    "nodes": "/api/v1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "selfsubjectaccessreviews": "/apis/authorization.k8s.io/v1",
    "selfsubjectrulesreviews": "/apis/authorization.k8s.io/v1",
    "subjectaccessreviews": "/apis/authorization.k8s.io/v1",
}
JSON, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
SWEPT = ["jobs", "pods", "configmaps", "secrets", "services", "leases", "roles", "rolebindings", "resourcequotas",
         "serviceaccounts", "events"]
NOT_SWEPT = {"configmaps": "metadata.name!=kube-root-ca.crt", "secrets": "type!=kubernetes.io/service-account-token",
             "serviceaccounts": "metadata.name!=default"}


class Case:
    def __init__(self, group, title, run, own, kubectl):
        self.group, self.title, self.run, self.own, self.kubectl = group, title, run, own, kubectl


def group(name):
    """The registering function of a file of cases: case = group("create")."""
    GROUPS[name] = []

    def case(title, *steps, own=False, kubectl=False):
        assert all(c.title != title for c in GROUPS[name]), f"{name}: '{title}' is there twice"

        def add(run):
            GROUPS[name].append(Case(name, title, run, own, kubectl))
            return run

        if not steps:
            return add

        def run(t):
            for step in steps:
                step(t)

        return add(run)

    return case


class T:
    """One run of a case on one side."""

    def __init__(self, side, ns, suite):
        self.side, self.ns, self.suite = side, ns, suite
        self.recording = []
        self.touched = set()
        self._watches = []
        self.api_group = f"g{side.token}.conformance.test"
        self.node = f"node-{side.token}-{secrets.token_hex(3)}"  # of no Node: pods on one are collected once it is known as lost
        self.mask = Mask({ns: "$NS", self.node: "$NODE", side.token: "$TOKEN", self.api_group: "$GROUP", side.server: "https://SERVER",
                          f"{side.host}:{side.port}": "SERVER"})

    # --- what is recorded ---

    def note(self, text):
        self.recording.append(text)

    def fill(self, text):
        for name, value in (("$NS", self.ns), ("$GROUP", self.api_group), ("$TOKEN", self.side.token), ("$NODE", self.node),
                            ("%24NODE", self.node)):
            text = text.replace(name, value)
        return text

    def path(self, path):
        """The whole path of a short one."""
        if path.startswith("/"):
            return self.fill(path)
        plural = re.match(r"[a-z]+", path)[0]
        if plural in CLUSTER:
            return self.fill(f"{CLUSTER[plural]}/{path}")
        if plural in self.suite.custom:
            self.touched.add(plural)
            return self.fill(f"/apis/$GROUP/v1/namespaces/$NS/{path}")
        self.touched.add(plural)
        return self.fill(f"{PREFIXES.get(plural, '/api/v1')}/namespaces/$NS/{path}")

    def send(self, method, path, body=None, content_type=None, accept=None, headers=None):
        """(status, content type, bytes) of a request."""
        if body is not None and not isinstance(body, bytes):
            body = self.fill(body if isinstance(body, str) else json.dumps(body)).encode()
        headers = dict(headers or {})
        if body is not None and content_type != "":
            headers["Content-Type"] = content_type or "application/json"
        headers["Accept"] = accept or "application/json"
        return self.side.request(method, self.path(path), body, headers)

    def shown(self, path):
        """A path as it is recorded: its versions and continue tokens are this side's own."""
        path = re.sub(r"((?:resourceVersion|resourceVersion%3D)=)\d{2,}", r"\1rv", self.path(path))
        return self.mask.text(re.sub(r"(continue=)[\w%-]{20,}", r"\1CONTINUE", path))

    def quietly(self, method, path, body=None, content_type=None):
        """(status, decoded body), not recorded."""
        status, _, data = self.send(method, path, body, content_type)
        try:
            return status, json.loads(data)
        except ValueError:
            return status, None

    def step(self, method, path, body=None, content_type=None, accept=None, headers=None, only=None):
        """Records the answer and returns it decoded (as it came); ONLY is a function that picks what is compared."""
        status, kind, data = self.send(method, path, body, content_type, accept, headers)
        self.note(f"> {method} {self.shown(path)}")
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        self.note(f"< {status} {kind}")
        if answer is None:
            self.note(self.mask.text(data.decode("utf-8", "replace")) or "(nothing)")
        else:
            self.record(only(json.loads(data)) if only else json.loads(data))
        return answer

    def stranger(self, method, path, headers):
        """Records the answer to somebody whom the server does not know."""
        status, kind, data = self.side.as_stranger(method, path, headers)
        self.note(f"< {status} {kind}")
        self.record(json.loads(data))

    def record(self, value):
        value = self.mask.value(omissions.take_out(json.loads(json.dumps(value))))
        self.note(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False))

    def get(self, path, **more):
        return self.step("GET", path, **more)

    def post(self, path, body, **more):
        return self.step("POST", path, body, **more)

    def put(self, path, body, **more):
        return self.step("PUT", path, body, **more)

    def patch(self, path, body, content_type=MERGE, **more):
        return self.step("PATCH", path, body, content_type, **more)

    def apply(self, path, body, manager="one", force=False, query=""):
        force = "&force=true" if force else ""
        return self.step("PATCH", f"{path}?fieldManager={manager}{force}{query}", body, APPLY)

    def delete(self, path, body=None, **more):
        return self.step("DELETE", path, body, **more)

    def wait(self, path, condition, what, seconds=180, only=None):
        """Reads PATH until CONDITION(status, body) holds, then records what was read last."""
        deadline = time.monotonic() + seconds
        while True:
            status, answer = self.quietly("GET", path)
            if condition(status, answer):
                break
            if time.monotonic() > deadline:
                self.note(f"! after {seconds} s still not: {what}")
                break
            time.sleep(0.03)
        return self.get(path, only=only)

    def until(self, condition, what, seconds=180):
        """Waits for CONDITION(), without recording anything but that it did not come."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                self.note(f"! after {seconds} s still not: {what}")
                return
            time.sleep(0.03)

    def gone(self, path, seconds=180):
        """Waits until PATH is 404, and records that answer."""
        return self.wait(path, lambda status, _: status == 404, f"{path} gone", seconds)

    def version(self, path):
        """The resourceVersion of an object or a list, now."""
        return self.quietly("GET", path)[1]["metadata"]["resourceVersion"]

    # --- watches ---

    def watch(self, path, bookmarks=False, accept=None):
        return Watch(self, path, bookmarks, accept)

    # --- kubectl ---

    def kubectl(self, line, stdin=None, env=None, only=None):
        """Runs a command line, records exit code and output, returns standard output. ONLY picks from its text."""
        argv = self._argv(line)
        code, out, err = self.side.kubectl(argv, self.fill(stdin) if stdin else None, env)
        self.note(f"> kubectl {self.mask.text(line if isinstance(line, str) else shlex.join(line))}")
        self.note(f"< exit {code}")
        self.print(only(out) if only else out)
        if err:
            self.note("(standard error)")
            self.print(err)
        self.kubectl_was_used()
        return out

    def print(self, text):
        if text.startswith("{"):
            try:
                text = json.dumps(omissions.take_out(json.loads(text)))
            except ValueError:
                pass
        self.note(self.mask.printed(omissions.take_out(text)))

    def _argv(self, line):
        argv = shlex.split(self.fill(line)) if isinstance(line, str) else [self.fill(a) for a in line]
        return argv if "-n" in argv or "-A" in argv else ["-n", self.ns, *argv]

    def kubectl_start(self, line, watching=True):
        """A command that goes on, when it watches: .lines(N) waits for N lines of it, .end() for its end."""
        return Running(self, line, watching)

    def kubectl_was_used(self):
        """It may have made anything."""
        self.touched.update(SWEPT, self.suite.custom)

    def finish(self):
        for watch in self._watches:
            watch.close()


class Running:
    """kubectl with its log of requests on, which is read to know when it watches and is not recorded."""

    LOG = re.compile(r"[IWE]\d{4} [\d:.]+ ")

    def __init__(self, t, line, watching):
        self._t, self._lines, self._ended = t, [], False
        self._watching = False
        self._changed = threading.Condition()
        self._popen = t.side.kubectl_start([*t._argv(line), "-v=6"])
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        t.note(f"> kubectl {line} &")
        t.kubectl_was_used()
        t._watches.append(self)
        if watching:
            self._until(lambda: self._watching, 120)

    def _read(self):
        for line in self._popen.stdout:
            with self._changed:
                if self.LOG.match(line):
                    self._watching = self._watching or "watch=true" in line
                else:
                    self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _until(self, condition, seconds):
        with self._changed:
            return self._changed.wait_for(lambda: condition() or self._ended, seconds) and condition()

    def lines(self, count, seconds=120):
        """Waits for COUNT lines and records them."""
        self._until(lambda: len(self._lines) >= count, seconds)
        for _ in range(count):
            self._t.note("| " + self._t.mask.printed(self._lines.pop(0)) if self._lines else "! nothing came")

    def end(self, seconds=180):
        """Waits until the command ends by itself; records what is left of its output, and its exit code."""
        if not self._until(lambda: self._ended, seconds):
            self._t.note("! it did not end")
            return
        self._t.print("\n".join(self._lines))
        self._t.note(f"< exit {self._popen.wait()}")

    def close(self):
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()


class Watch:
    """A watch on a connection of its own; its events are recorded when they are asked for."""

    def __init__(self, t, path, bookmarks, accept):
        self._t, self._bookmarks = t, bookmarks
        path += "" if "watch=" in path else ("&" if "?" in path else "?") + "watch=1"
        self._connection = t.side.connect(timeout=120)
        self._response = t.side.send(self._connection, "GET", t.path(path), None, {"Accept": accept or "application/json"})
        t.note(f"> GET {t.shown(path)}")
        t.note(f"< {self._response.status} {self._response.headers.get('Content-Type')}")
        if self._response.status != 200:
            t.note(t.mask.text(self._response.read().decode("utf-8", "replace")))
        t._watches.append(self)

    def _next(self):
        while True:
            try:
                line = self._response.readline()
            except (TimeoutError, ssl.SSLError, OSError):
                return "! nothing came"
            if not line:
                return "~ (the end)"
            event = json.loads(line)
            if event["type"] == "BOOKMARK":
                if not self._bookmarks:
                    continue
                event["object"]["metadata"]["resourceVersion"] = ""
                return event
            if not omissions.is_machinery_event(event):
                return event

    def events(self, count):
        """Waits for COUNT events and records them; returns the last."""
        event = None
        for _ in range(count):
            event = self._next()
            if isinstance(event, str):
                self._t.note(event)
                return None
            self._t.note(f"~ {event['type']}")
            self._t.record(json.loads(json.dumps(event["object"])))
        return event

    def end(self):
        """Records the events that are left until the server ends the watch; bookmarks in a row count as one."""
        last = None
        while True:
            event = self._next()
            if isinstance(event, str):
                self._t.note(event)
                return
            if event["type"] == "BOOKMARK" == last:
                continue
            last = event["type"]
            self._t.note(f"~ {event['type']}")
            self._t.record(event["object"])

    def close(self):
        self._connection.close()


# --- steps of declarative cases ----------------------------------------------


def _step(name):
    return lambda *args, **more: lambda t: getattr(t, name)(*args, **more)


get, post, put, patch, apply, delete, kubectl, gone, step = map(
    _step, "get post put patch apply delete kubectl gone step".split())


def quoted(text):
    return urllib.parse.quote(text, safe="")


# --- objects -----------------------------------------------------------------


def meta(name, **more):
    return {"metadata": {"name": name, **more}}


def configmap(name, data=None, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", **meta(name, **more), **({"data": data} if data is not None else {})}


def secret(name, data=None, **more):
    return {"apiVersion": "v1", "kind": "Secret", **meta(name, **more), **({"data": data} if data is not None else {})}


def pod(name, spec=None, **more):
    """A pod that no scheduler takes."""
    return {"apiVersion": "v1", "kind": "Pod", **meta(name, **more),
            "spec": {"schedulerName": "by-hand", "containers": [{"name": "main", "image": "app:1"}], **(spec or {})}}


def job(name, spec=None, template=None, **more):
    """A Job whose pods no scheduler takes."""
    return {"apiVersion": "batch/v1", "kind": "Job", **meta(name, **more),
            "spec": {"template": {"spec": {"schedulerName": "by-hand", "restartPolicy": "Never",
                                           "containers": [{"name": "main", "image": "app:1"}], **(template or {})}},
                     **(spec or {})}}


def service(name, spec=None, **more):
    return {"apiVersion": "v1", "kind": "Service", **meta(name, **more), "spec": spec or {"ports": [{"port": 80}]}}


def quota(name, hard, **more):
    return {"apiVersion": "v1", "kind": "ResourceQuota", **meta(name, **more), "spec": {"hard": hard}}


def lease(name, spec=None, **more):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **meta(name, **more), "spec": spec or {}}


def definition(plural, schema=None, names=None, version=None, versions=None, scope="Namespaced", **more):
    """A CustomResourceDefinition in the group of this run."""
    kind = plural[:-1].capitalize()
    one = {"name": "v1", "served": True, "storage": True,
           "schema": {"openAPIV3Schema": schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
           **(version or {})}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            **meta(f"{plural}.$GROUP", **more),
            "spec": {"group": "$GROUP", "scope": scope, "names": {"plural": plural, "kind": kind, **(names or {})},
                     "versions": versions or [one]}}


def custom(plural, name, **fields):
    more = fields.pop("meta", {})
    return {"apiVersion": "$GROUP/v1", "kind": plural[:-1].capitalize(), **meta(name, **more), **fields}
