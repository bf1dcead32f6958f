"""DynamoGraphDeploymentRequests on either engine, without a node: a test plays the kubelet and the relay.

    with World("engine") as world, world.server.namespace("t") as ns:
        with world.operator() as operator:
            play = world.create(ns, "a")
            play.pod_runs()
            play.report({"phase": "PrefillSweep", "message": "m"})
            play.wait(lambda s: s.get("profilingPhase") == "PrefillSweep")
"""

import contextlib
import copy
import json
import os
import re
import shutil
import signal
import tempfile
import threading
import time

from sonde_test import ControlPlane, Engine, Process, diag, program, wait

PATIENCE = 120
GROUP = "/apis/nvidia.com/v1alpha1"
DGDRS, DGDS = "dynamographdeploymentrequests", "dynamographdeployments"
FINAL = ("Failed", "DeploymentDeleted")
JSON_PATCH = "application/json-patch+json"

SPEC = {
    "model": "Qwen/Qwen3-0.6B",
    "backend": "vllm",
    "profilingConfig": {
        "profilerImage": "registry.example/profiler:1",
        "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}},
    },
}

OUTPUT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: %(name)s-planner-data
data:
  prefill_raw_data.json: "{}"
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: vllm-disagg
spec:
  services:
    Frontend: {replicas: 1}
    VllmDecodeWorker: {replicas: 2}
"""


def ok(answer, *codes):
    status, body = answer
    assert status in (codes or (200, 201, 202)), (status, body)
    return body


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def condition(status, kind):
    return next((c for c in status.get("conditions", []) if c["type"] == kind), {})


class World:
    """One of the two engines ("engine": embedded, "cluster": a real control plane), with the CRDs."""

    kind = "dgdr"  # as run-operator calls it
    crds = ("deploy/crds/dynamographdeploymentrequests.yaml", "test/kinds/dgd-crd.yaml")
    served = (f"{GROUP}/{DGDRS}", f"{GROUP}/{DGDS}")

    def __init__(self, which, server=None):
        self.which = which
        self.server = server or (ControlPlane.of("shared") if which == "cluster" else Engine("--no-node", "--no-fsync"))
        self._given = server is not None
        self._local = threading.local()

    @property
    def api(self):
        """A client of the thread's own."""
        if not hasattr(self._local, "api"):
            self._local.api = self.server.api()
        return self._local.api

    def __enter__(self):
        if not self._given:
            self.server.__enter__()
        self.folder = tempfile.mkdtemp(prefix=f"sonde-{self.kind}-")
        self.server.apply_crds(*self.crds)
        for path in self.served:
            wait(lambda p=path: self.api.get(p)[0] == 200, PATIENCE, f"{path} to be served")
        return self

    def __exit__(self, *what):
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self._given:
            self.server.__exit__(*what)

    def kubectl(self, *words, **more):
        """With a discovery cache of its own, from when the CRDs were there."""
        return self.server.kubectl("--cache-dir", os.path.join(self.folder, "cache"), *words, **more)

    def operator(self, ns, *arguments, **more):
        return Operator(self, ns, *arguments, **more)

    def create(self, ns, name, spec=None, **more):
        body = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": name},
                "spec": {**copy.deepcopy(spec or SPEC), **more}}
        made = ok(self.api.post(f"{GROUP}/namespaces/{ns}/{DGDRS}", body))
        return Play(self, ns, name, made["metadata"]["uid"])

    def play(self, ns, name):
        """Of one that somebody else made."""
        made = ok(self.api.get(f"{GROUP}/namespaces/{ns}/{DGDRS}/{name}"))
        return Play(self, ns, name, made["metadata"]["uid"])


class Operator:
    """The controller as a process that can be killed and started again; its history stays."""

    def __init__(self, world, ns, *arguments, kubeconfig=None, synced=True):
        self.world, self.ns = world, ns
        self.kubeconfig = kubeconfig or world.server.kubeconfig
        self.history = os.path.join(world.folder, f"history-{time.monotonic_ns()}.db")
        self.process = None
        self.start(*arguments, synced=synced)

    def start(self, *arguments, synced=True):
        self.process = Process(program("test/run-operator"), "--kind", self.world.kind, "--kubeconfig", self.kubeconfig,
                               *(("--namespace", self.ns) if self.ns else ()), "--history", self.history,
                               "--log-level", "info", *arguments)
        if synced and "--kill-at" not in arguments:
            self.process.expect("^synced", PATIENCE)

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def sent(self):
        """How many writes it has sent, once it is idle."""
        said = [re.match(r"idle after (\d+) writes", line) for line in list(self.process.lines)]
        return max((int(m[1]) for m in said if m), default=0)

    def rounds(self):
        """How often it has gone to sleep so far; None: it does not run."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as f:
                found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)
        except OSError:
            return None
        return int(found[1]) if found else None

    def rests(self, quiet, count):
        """QUIET() waits until nothing happens; that says something if the operator, which looks around all the time, did not
        stand still meanwhile. COUNT(): how much has been seen."""
        since = [None, None]  # what had been seen by whom, and after how many rounds

        def is_resting():
            here = count(), self.process.pid
            if since[0] != here:
                since[:] = here, self.rounds()
            quiet()
            now = self.rounds()
            return (count(), self.process.pid) == here and (None in (since[1], now) or now >= since[1] + 10)
        wait(is_resting, 2 * PATIENCE, "an operator that runs and does nothing")

    @contextlib.contextmanager
    def kept_alive(self, kill=lambda: False, again=None):
        """Starts the operator again when it dies by itself, or when KILL says that it is to die; with AGAIN (arguments) as
        often as it does, else once. Yields the numbers of its deaths."""
        over = threading.Event()
        failed, deaths = [], []

        def keep_once():
            while self.process.popen.poll() is None and not kill() and not over.wait(0.02):
                pass
            if not over.is_set():
                self.kill()
                deaths.append(len(deaths))
                self.start(*(again or ()), synced=False)

        def keep():
            try:
                keep_once()
                while again is not None and not over.is_set():
                    keep_once()
            except Exception as e:  # pylint: disable=broad-except
                failed.append(e)
        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield deaths
        finally:
            over.set()
            keeper.join()
        assert not failed, failed

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.process.stop(PATIENCE)
        if kind not in (None, SystemExit):
            diag("the operator:\n" + "\n".join(self.process.lines[-40:]))
        else:
            assert code == 0, (code, self.process.lines[-40:])


class Play:
    """One request, and what happens to its Job."""

    requests = (GROUP, DGDRS)
    container = "profiler"  # of the workload
    maps = {"status": "dgdr-status-{}", "data": "dgdr-output-{}"}
    groups = {"jobs": "/apis/batch/v1", "roles": "/apis/rbac.authorization.k8s.io/v1",
              "rolebindings": "/apis/rbac.authorization.k8s.io/v1", DGDS: GROUP}

    def __init__(self, world, ns, name, uid):
        self.world, self.ns, self.name, self.uid = world, ns, name, uid
        self.sequence = 0

    @property
    def api(self):
        return self.world.api

    # --- the request

    @property
    def path(self):
        group, plural = self.requests
        return f"{group}/namespaces/{self.ns}/{plural}/{self.name}"

    def get(self):
        return ok(self.api.get(self.path))

    def status(self):
        return self.get().get("status", {})

    def edit(self, **spec):
        """Merges into the spec."""
        return ok(self.api.patch(self.path, {"spec": spec}))

    def delete(self):
        ok(self.api.delete(self.path))

    def wait(self, is_true, what="", seconds=PATIENCE):
        """The status, once IS_TRUE of it."""
        last = {}

        def look():
            last.clear()
            last.update(self.status())
            return is_true(last)
        try:
            wait(look, seconds, what or "the status")
        except AssertionError as e:
            raise AssertionError(f"{self.name}: {e}; last: {json.dumps(last, indent=1)}") from None
        return last

    def state(self, state):
        return self.wait(lambda s: s.get("state") == state, f"state {state}")

    def events(self, reason=None):
        items = ok(self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.ns}/events"))["items"]
        return [e for e in items if e["regarding"].get("uid") == self.uid and reason in (None, e["reason"])]

    # --- its objects

    def object(self, path):
        """An object of the namespace, or None: object("configmaps/x"), object("jobs/x")."""
        prefix = self.groups.get(path.split("/")[0], "/api/v1")
        status, body = self.api.get(f"{prefix}/namespaces/{self.ns}/{path}")
        assert status in (200, 404), (status, body)
        return body if status == 200 else None

    def jobs(self):
        items = ok(self.api.get(f"/apis/batch/v1/namespaces/{self.ns}/jobs"))["items"]
        return [j for j in items if any(o["uid"] == self.uid for o in j["metadata"].get("ownerReferences", []))]

    def job(self):
        """The present attempt's."""
        name = wait(lambda: self.status().get("run", {}).get("job"), PATIENCE, "a Job's name")
        return wait(lambda: self.object(f"jobs/{name}"), PATIENCE, f"job {name}")

    def pod(self):
        uid = self.job()["metadata"]["uid"]

        def newest():
            items = ok(self.api.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector=controller-uid%3D{uid}"))["items"]
            items = [p for p in items if "deletionTimestamp" not in p["metadata"]]
            return max(items, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]), default=None)
        return wait(newest, PATIENCE, "a pod")

    # --- the kubelet

    def pod_status(self, pod=None, **status):
        pod = pod or self.pod()
        ok(self.api.patch(f"/api/v1/namespaces/{self.ns}/pods/{pod['metadata']['name']}/status", {"status": status}))
        return pod

    def _containers(self, profiler, relay):
        return [{"name": name, "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
                for name, state in ((self.container, profiler), ("relay", relay))]

    def pod_runs(self):
        running = {"running": {"startedAt": now()}}
        return self.pod_status(phase="Running", startTime=now(), containerStatuses=self._containers(running, running))

    def pod_ends(self, code=0, relay=0, reason="", message=None, **status):
        def ended(exit_code, why):
            return {"terminated": {"exitCode": exit_code, "reason": why or ("Error" if exit_code else "Completed"),
                                   "startedAt": now(), "finishedAt": now(), **({"message": message} if message else {})}}
        phase = "Failed" if code or relay else "Succeeded"
        return self.pod_status(phase=phase, containerStatuses=self._containers(ended(code, reason), ended(relay, "")), **status)

    def evict(self):
        return self.pod_status(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")

    # --- the relay

    def claim(self, attempt=None, state="Running", **data):
        """What the relay writes; names that are no identifiers go by {"status.json": …}."""
        self.sequence += 1
        number = attempt or self.status()["run"]["attempt"]
        values = {"attempt": str(number), "podUID": self.pod()["metadata"]["uid"], "sequence": str(self.sequence), "state": state}
        return self.map("status", {**values, **data})

    def map(self, which, data):
        return ok(self.api.patch(f"/api/v1/namespaces/{self.ns}/configmaps/{self.maps[which].format(self.name)}", {"data": data}))

    def report(self, status, **more):
        """A state: a dict, or the text of the file."""
        text = status if isinstance(status, str) else json.dumps({"timestamp": now(), **status})
        self.claim(**{"status.json": text}, **more)
        return self.sequence

    def output(self, text=None, key="config_with_planner.yaml"):
        self.map("data", {key: text if text is not None else OUTPUT % {"name": self.name}})

    def succeed(self, text=None, status=None, silent=False):
        """All that a good end brings, in the order in which it comes. SILENT: by a profiler that writes no status file."""
        ended = {"exit.json": json.dumps({"code": 0, "startedAt": now(), "finishedAt": now()})}
        self.output(text)
        if silent:
            self.claim(state="Succeeded", **ended)
        else:
            self.report(status or {"phase": "Complete", "message": "Profiling completed successfully"}, state="Succeeded", **ended)
        self.pod_ends(0)

    def fail(self, code=3, tail="out of luck"):
        self.claim(state="Failed", **{"exit.json": json.dumps({"code": code, "tail": tail, "startedAt": now(), "finishedAt": now()})})
        self.pod_ends(code)

    # --- the deployment

    def deployment_state(self, state):
        name = self.status()["generatedDeployment"]["metadata"]["name"]
        wait(lambda: self.object(f"{DGDS}/{name}"), PATIENCE, f"dgd {name}")
        ok(self.api.patch(f"{GROUP}/namespaces/{self.ns}/{DGDS}/{name}/status", {"status": {"state": state}}))


@contextlib.contextmanager
def request(world, name="a", spec=None, arguments=(), **more):
    """A namespace with an operator and one request in it."""
    with world.server.namespace("dgdr") as ns, world.operator(ns, *arguments) as operator:
        yield world.create(ns, name, spec, **more), operator
