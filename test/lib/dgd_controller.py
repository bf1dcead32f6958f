"""A controller that turns DynamoGraphDeployments into simulated engines, in the place of Dynamo's operator.

    with DgdController(world, ns, image="sonde-pod", faults={"TP=4": "crash", "TP=8": "image"}) as controller:
        ...

Each temporary deployment becomes one pod that runs `sonde-pod sim` with the GPUs and the mapping that the arguments of its
worker say, behind a Service of the name that Dynamo gives it; where there are none (the embedded engine), the deployment has its
address in an annotation. When the pod runs, the deployment is successful. Faults are by mapping: "crash" ends the engine whenever
it starts, "image" is an image that cannot be had, "never" leaves the deployment pending. A deployment that is not temporary is successful
at once.
"""

import contextlib
import json
import shlex
import socket
import threading
import time
import traceback

from dgdr_play import DGDS, GROUP, ok
from sonde_test import diag

POD_LABEL = "nvidia.com/dynamo-graph-deployment-name"
TEMPORARY = "sonde.dev/temporary"
URL = "sonde.dev/url"
PORT = 8000
NO_IMAGE = "localhost/there-is-none:1"

# TP=1 and TP=2 work, TP=4 ends whenever it starts, TP=8 has an image that cannot be had.
FAULTS = {"TP=4": "crash", "TP=8": "image"}

# Quick, so that a whole sweep takes seconds; more GPUs are faster, at a price.
MODEL = {
    "backend": "vllm",
    "prefill": {"baseMs": 2, "perTokenUs": 20},
    "decode": {"baseMs": 1, "perRequestUs": 20, "perKvTokenNs": 2},
    "scaling": {"TP": {"prefill": 0.9, "decode": 0.8}},
    "kvTokensPerGpu": 3000,
}


def quick_sweep(gpus=8, **more):
    """The spec of a request whose sweep takes seconds on MODEL."""
    return {"model": "m", "backend": "vllm", **more, "profilingConfig": {"config": {
        "sla": {"isl": 200, "osl": 10, "ttft": 100, "itl": 20},
        "hardware": {"minNumGpusPerEngine": 1, "maxNumGpusPerEngine": gpus, "numGpusPerNode": gpus},
        "engine": {"maxContextLength": 1200},
        "sweep": {"prefillInterpolationGranularity": 3, "decodeInterpolationGranularity": 2, "decodeInterpolationOsl": 10},
        "deployment": {"deploymentTimeout": 60}}}}


def flat(value, path=""):
    """Leaves of a document with their paths: decode.baseMs."""
    if not isinstance(value, dict):
        return [(path, value)]
    return [leaf for key, child in value.items() for leaf in flat(child, f"{path}.{key}" if path else key)]


def worker_of(dgd):
    """(name, words of the command line) of the one service that is no frontend."""
    workers = {name: service for name, service in dgd["spec"]["services"].items()
               if service.get("componentType", "").lower() not in ("frontend", "planner") and name != "Frontend"}
    assert len(workers) == 1, f"a candidate has one worker, not {sorted(workers)}"
    name, service = next(iter(workers.items()))
    container = service["extraPodSpec"]["mainContainer"]
    words = [w for part in container.get("command", []) + container.get("args", []) for w in shlex.split(part)]
    return name, service, words


def option(words, *names, otherwise=None):
    for at, word in enumerate(words):
        for name in names:
            if word == name:
                return words[at + 1]
            if word.startswith(name + "="):
                return word[len(name) + 1:]
    return otherwise


def mapping_of(words):
    """(mapping, GPUs), as vLLM would understand its arguments."""
    tp = int(option(words, "--tensor-parallel-size", "-tp", otherwise="1"))
    dp = int(option(words, "--data-parallel-size", "-dp", otherwise="1"))
    if "--enable-expert-parallel" not in words:
        return "TP", tp * dp
    return ("DEP", dp) if dp > 1 else ("TEP", tp)


class DgdController(threading.Thread):
    """See above. `problems` has what the controller could not understand; leaving the block fails on any."""

    def __init__(self, world, ns, image, local, faults=None, model=None, every=0.1):
        super().__init__(daemon=True)
        self.world, self.ns, self.image, self.local = world, ns, image, local
        self.faults, self.every = faults or {}, every
        self.model = {key: {**value, **(model or {}).get(key, {})} if isinstance(value, dict) else value for key, value in MODEL.items()}
        self.problems, self.made = [], {}
        self._over = threading.Event()
        self._ports = {}

    # --- objects

    @property
    def api(self):
        return self.world.api

    def _pods(self):
        items = ok(self.api.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector={POD_LABEL}"))["items"]
        return {p["metadata"]["labels"][POD_LABEL]: p for p in items}

    def _path(self, dgd):
        return f"{GROUP}/namespaces/{self.ns}/{DGDS}/{dgd['metadata']['name']}"

    def _port(self, name):
        """A free one of this machine's, for an engine that runs on it."""
        if name not in self._ports:
            with socket.socket() as s:
                s.bind(("127.0.0.1", 0))
                self._ports[name] = s.getsockname()[1]
        return self._ports[name]

    def _label(self, dgd):
        """The mapping that the arguments say; it must be the one that the profiler meant."""
        _, service, words = worker_of(dgd)
        mapping, gpus = mapping_of(words)
        meant = dgd["metadata"]["annotations"]["sonde.dev/candidate"]
        if meant.split()[1] != f"{mapping}={gpus}" or service["resources"]["limits"]["gpu"] != str(gpus):
            self.problems.append(f"{meant}: {words}, {service.get('resources')}")
        return meant.split()[0], mapping, gpus

    def _command(self, dgd, fault):
        role, mapping, gpus = self._label(dgd)
        listen = f"127.0.0.1:{self._port(dgd['metadata']['name'])}" if self.local else f"0.0.0.0:{PORT}"
        words = ["/sonde-pod", "sim", "--listen", listen, "--gpus", str(gpus), "--mapping", mapping]
        settings = flat({**self.model, "model": "m", "prefixCache": role == "decode"})
        if fault == "crash":
            settings.append(("faults.failStart", "CUDA out of memory"))
        return words + [w for path, value in settings for w in ("--set", f"{path}={json.dumps(value)}")]

    # --- one deployment

    def _make_service(self, dgd, owner):
        name = dgd["metadata"]["name"]
        service = {"metadata": {"name": f"{name}-frontend", "ownerReferences": [owner]},
                   "spec": {"selector": {POD_LABEL: name}, "ports": [{"port": PORT}]}}
        status, body = self.api.post(f"/api/v1/namespaces/{self.ns}/services", service)
        assert status in (201, 403, 409), body

    def _make_pod(self, dgd, fault):
        meta = dgd["metadata"]
        name, _, __ = worker_of(dgd)
        absent = fault == "image" and self.local  # the embedded node pulls nothing: its status is made up
        image = NO_IMAGE if fault == "image" else self.image
        owner = {"apiVersion": dgd["apiVersion"], "kind": dgd["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True,
                 "blockOwnerDeletion": True}
        pod = {"metadata": {"name": f"{meta['name']}-worker-0", "ownerReferences": [owner],
                            "labels": {POD_LABEL: meta["name"], "nvidia.com/dynamo-component": name,
                                       "nvidia.com/dynamo-component-type": "worker"}},
               "spec": {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                        **({"nodeName": "nowhere"} if absent else {}),
                        "containers": [{"name": "main", "image": image, "imagePullPolicy": "IfNotPresent",
                                        "command": self._command(dgd, fault)}]}}
        if not self.local:
            self._make_service(dgd, owner)
        status, made = self.api.post(f"/api/v1/namespaces/{self.ns}/pods", pod)
        if status in (403, 409):  # a pod of that name still goes, or the namespace does
            return
        assert status == 201, made
        self.made[meta["uid"]] = meta["name"]
        if absent:
            waiting = {"waiting": {"reason": "ErrImagePull", "message": f"{NO_IMAGE}: not found"}}
            self.api.patch(f"/api/v1/namespaces/{self.ns}/pods/{pod['metadata']['name']}/status", {"status": {
                "phase": "Pending", "containerStatuses": [{"name": "main", "image": NO_IMAGE, "imageID": "", "ready": False,
                                                           "restartCount": 0, "state": waiting}]}})

    def _succeed(self, dgd, url=None):
        if url:
            status, body = self.api.patch(self._path(dgd), {"metadata": {"annotations": {URL: url}}})
            assert status in (200, 404), body
        ready = {"type": "Ready", "status": "True", "reason": "all_resources_are_ready", "message": "all are ready"}
        status, body = self.api.patch(self._path(dgd) + "/status", {"status": {"state": "successful", "conditions": [ready]}})
        assert status in (200, 404), body

    @staticmethod
    def _runs(pod):
        states = pod.get("status", {}).get("containerStatuses", [{}])
        return "running" in states[0].get("state", {})

    def _remove(self, pod):
        """At once: kubelet 1.20 takes a minute for one whose container does not run."""
        self.api.delete(f"/api/v1/namespaces/{self.ns}/pods/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})

    def _settle(self, dgd, pod):
        if dgd["metadata"].get("labels", {}).get(TEMPORARY) != "true":
            if dgd.get("status", {}).get("state") != "successful":
                self._succeed(dgd)
            return
        if pod and pod["metadata"]["ownerReferences"][0]["uid"] != dgd["metadata"]["uid"]:
            self._remove(pod)  # of one that had its name before
            return
        if "deletionTimestamp" in dgd["metadata"]:
            if pod:
                self._remove(pod)
            return
        fault = self.faults.get(dgd["metadata"]["annotations"]["sonde.dev/candidate"].split()[1])
        if not pod:
            if dgd["metadata"]["uid"] not in self.made:
                self._make_pod(dgd, fault)
        elif not fault and self._runs(pod) and dgd.get("status", {}).get("state") != "successful":
            self._succeed(dgd, f"http://127.0.0.1:{self._port(dgd['metadata']['name'])}" if self.local else None)

    # --- all of them

    def _turn(self):
        dgds = ok(self.api.get(f"{GROUP}/namespaces/{self.ns}/{DGDS}"))["items"]
        pods = self._pods()
        for dgd in dgds:
            self._settle(dgd, pods.get(dgd["metadata"]["name"]))
        there = {d["metadata"]["name"] for d in dgds}
        for name, pod in pods.items():
            if name not in there:
                self._remove(pod)

    def run(self):
        while not self._over.wait(self.every):
            try:
                self._turn()
            except (AssertionError, KeyError, ValueError):
                if not self._over.is_set():
                    self.problems.append(traceback.format_exc())
            except OSError as e:
                diag(f"the deployments' controller: {e}")
                time.sleep(0.5)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, *_):
        self._over.set()
        self.join(30)
        if not kind:
            assert not self.problems, self.problems[:3]


class Deployments(threading.Thread):
    """What a watch shows of the namespace's deployments: which were created, and which are gone."""

    def __init__(self, world, ns):
        super().__init__(daemon=True)
        self.path = f"{GROUP}/namespaces/{ns}/{DGDS}"
        self._server = world.server
        self.version = ok(world.api.get(self.path))["metadata"]["resourceVersion"]
        self.created, self.deleted, self.candidates = [], [], {}
        self.start()

    def run(self):
        while True:  # a server may end a watch at any time: it goes on where it was
            with contextlib.suppress(OSError, ValueError, AssertionError):
                for event in self._server.api(timeout=600).watch(f"{self.path}?watch=1&resourceVersion={self.version}"):
                    if event["type"] == "ERROR":
                        self._list()
                        break
                    self._take(event["type"], event["object"]["metadata"])
            time.sleep(0.2)

    def _list(self):
        """The version was too old: what happened meanwhile is the difference."""
        listed = ok(self._server.api().get(self.path))
        there = {item["metadata"]["uid"]: item["metadata"] for item in listed["items"]}
        for uid, meta in there.items():
            if uid not in self.created:
                self._take("ADDED", meta)
        self.deleted += [uid for uid in self.created if uid not in there and uid not in self.deleted]
        self.version = listed["metadata"]["resourceVersion"]

    def _take(self, kind, meta):
        self.version = meta["resourceVersion"]
        if meta.get("labels", {}).get(TEMPORARY) != "true":
            return
        if kind == "ADDED":
            self.candidates[meta["uid"]] = meta["annotations"]["sonde.dev/candidate"]
            self.created.append(meta["uid"])
        elif kind == "DELETED":
            self.deleted.append(meta["uid"])

    def left(self):
        return {self.candidates[uid] for uid in set(self.created) - set(self.deleted)}

    def balanced(self):
        """Each that was created was deleted, and none twice."""
        return self.created and sorted(self.created) == sorted(self.deleted) and len(set(self.created)) == len(self.created)
