"""CUDAExperiments on either engine, without a node: a test plays kubelet, relay and profiler.

    with World("engine") as world, world.server.namespace("t") as ns, world.operator(ns):
        play = world.create(ns, "a", profilingEnabled=True)
        play.profiles()
        play.executes()
        play.phase("Succeeded")
"""

import copy
import json

import dgdr_play
from dgdr_play import PATIENCE, condition, now, ok  # noqa: F401, for those who import from here
from sonde_test import wait

GROUP = "/apis/gpu.scheduler.io/v1alpha1"
EXPERIMENTS, PROFILES = "cudaexperiments", "workloadprofiles"
FINAL = ("Succeeded", "Failed")

# Volcano's, as far as it matters here.
PODGROUPS = "/apis/scheduling.volcano.sh/v1beta1"
PODGROUP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "podgroups.scheduling.volcano.sh"},
    "spec": {"group": "scheduling.volcano.sh", "scope": "Namespaced", "names": {"plural": "podgroups", "kind": "PodGroup"},
             "versions": [{"name": "v1beta1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {
                 "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}

# The seed's own experiment, and what its real run measured.
SPEC = {
    "image": "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
    "command": ["/cuda-samples/vectorAdd"],
    "runtimeClassName": "nvidia",
    "gpuRequired": 1,
    "replicas": 1,
    "profilingEnabled": True,
}
SUMMARY = {"boundType": "unknown", "metrics": {"achievedOccupancy": "78.21", "l2Throughput": "30.22", "smThroughput": "12.56"}}


def summary(bound, **metrics):
    return {"boundType": bound, "metrics": {"smThroughput": "50", **metrics}}


class World(dgdr_play.World):
    kind = "cuda"
    crds = ("deploy/crds/cudaexperiments.yaml", "deploy/crds/workloadprofiles.yaml")
    served = (f"{GROUP}/{EXPERIMENTS}", f"{GROUP}/{PROFILES}")

    def __enter__(self):
        super().__enter__()
        self.runtime_class("nvidia")
        return self

    def runtime_class(self, name):
        """A real server refuses pods of one that it does not have; the embedded engine has none of them, and does not ask."""
        code, body = self.api.post("/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": name}, "handler": "nvidia"})
        assert code in (201, 404, 409), body

    def create(self, ns, name, spec=None, **more):
        body = {"apiVersion": "gpu.scheduler.io/v1alpha1", "kind": "CUDAExperiment", "metadata": {"name": name},
                "spec": {**copy.deepcopy(spec or SPEC), **more}}
        made = ok(self.api.post(f"{GROUP}/namespaces/{ns}/{EXPERIMENTS}", body))
        return Play(self, ns, name, made["metadata"]["uid"])

    def play(self, ns, name):
        """Of one that somebody else made."""
        made = ok(self.api.get(f"{GROUP}/namespaces/{ns}/{EXPERIMENTS}/{name}"))
        return Play(self, ns, name, made["metadata"]["uid"])

    def create_profile(self, ns, name, bound=None, **spec):
        """One that a person makes."""
        body = {"apiVersion": "gpu.scheduler.io/v1alpha1", "kind": "WorkloadProfile", "metadata": {"name": name}, "spec": spec}
        made = ok(self.api.post(f"{GROUP}/namespaces/{ns}/{PROFILES}", body))
        if bound:
            made = ok(self.api.patch(f"{GROUP}/namespaces/{ns}/{PROFILES}/{name}/status", {"status": {"boundType": bound}}))
        return made


class Play(dgdr_play.Play):
    requests = (GROUP, EXPERIMENTS)
    container = "profiling-runner"
    maps = {"status": "{}-profile-status", "data": "{}-profile-summary"}
    groups = {**dgdr_play.Play.groups, PROFILES: GROUP}

    def phase(self, phase, seconds=PATIENCE):
        return self.wait(lambda s: s.get("phase") == phase, f"phase {phase}", seconds)

    def profile(self):
        """The experiment's own WorkloadProfile, or None."""
        return self.object(f"{PROFILES}/{self.name}-profile")

    def execution(self):
        """The execution Job, or None."""
        return self.object(f"jobs/{self.name}-execution")

    # --- profiling

    def output(self, text=None, key="summary.json"):
        self.map("data", {key: text if text is not None else json.dumps(SUMMARY)})

    def profiles(self, measured=None):
        """A whole run of the profiler; MEASURED is its summary, or the text in its place."""
        self.pod_runs()
        self.report({"phase": "Collecting", "message": "m", "progress": {"currentStep": 1, "totalSteps": 20}})
        self.succeed(measured if measured is None or isinstance(measured, str) else json.dumps(measured))

    # --- execution

    def execution_pods(self):
        job = wait(self.execution, PATIENCE, "the execution Job")
        n = job["spec"]["parallelism"]

        def pods():
            uid = job["metadata"]["uid"]
            items = ok(self.api.get(f"/api/v1/namespaces/{self.ns}/pods?labelSelector=controller-uid%3D{uid}"))["items"]
            return len(items) >= n and items
        return wait(pods, PATIENCE, "the execution Job's pods")

    def execution_runs(self):
        for pod in self.execution_pods():
            self.pod_status(pod, phase="Running", startTime=now(), containerStatuses=[
                {"name": "execution", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
                 "state": {"running": {"startedAt": now()}}}])

    def executes(self, code=0, message=None):
        """All of its pods, to the end."""
        for pod in self.execution_pods():
            self.pod_status(pod, phase="Failed" if code else "Succeeded", startTime=now(), containerStatuses=[
                {"name": "execution", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
                 "state": {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": now(),
                                          "finishedAt": now(), **({"message": message} if message else {})}}}])
