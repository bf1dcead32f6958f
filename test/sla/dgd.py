#!/usr/bin/python3
"""Sonde's own profiler on temporary DynamoGraphDeployments, which a controller of the test turns into simulated engines.

    dgd.py [NAME...]            on the embedded engine
    dgd.py cluster [NAME...]    on a real node, which needs root
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgd_controller import FAULTS, DgdController, Deployments, quick_sweep as spec
from dgdr_play import DGDRS, DGDS, GROUP, World, condition, ok
from sonde_test import ROOT, ControlPlane, Engine, diag, main, program, wait

PATIENCE = 240  # a kubelet takes its time over pods that are going: up to two minutes were seen
PHASES = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
          "PlannerGeneration", "Complete"]
SLOW = {"prefill": {"baseMs": 5000}}  # the first sweep is not over before somebody has seen it, or told its pod to go


class Scene:
    """A namespace with an operator, the deployments' controller and a watch of the deployments."""

    def __init__(self, faults=None, model=None):
        self._faults, self._model = faults, model
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.ns = self._stack.enter_context(server.namespace("sla"))
            self._stack.enter_context(world.operator(self.ns, "--pod-image", pod_image))
            self.seen = Deployments(world, self.ns)
            self._stack.enter_context(DgdController(world, self.ns, pod_image, not real, self._faults, self._model))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, kind, *rest):
        if kind:
            server.show(self.ns, f"{GROUP}/namespaces/{self.ns}/{DGDRS}")
        return self._stack.__exit__(kind, *rest)

    def create(self, name, body):
        return world.create(self.ns, name, body)

    def balanced(self):
        wait(self.seen.balanced, PATIENCE, "all temporary deployments to be gone")
        diag(f"{len(self.seen.created)} deployments created and deleted")

    def profiles(self, play, phase="DecodeSweep"):
        """Waits until PHASE, with a deployment that is there."""
        play.wait(lambda s: s.get("profilingPhase") == phase, phase, PATIENCE)
        wait(self.seen.left, PATIENCE, "a temporary deployment")


def measured(play):
    """What the checkpoint in the data ConfigMap has; None: nothing yet."""
    kept = play.object(f"configmaps/dgdr-output-{play.name}") or {}
    return kept.get("data", {}).get("checkpoint.json") or kept.get("binaryData", {}).get("checkpoint.json.gz")


def profiler_pids(ns):
    """Processes `sonde-pod sla` of the namespace's pods, on this machine."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[1:2] == [b"sla"] and f'"namespace":"{ns}"'.encode() in b"".join(words):
                found.append(int(pid))
    return found


def send(ns, number):
    for pid in wait(lambda: profiler_pids(ns), 60, "the profiler's process"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


# --- the tests -------------------------------------------------------------------------------------------------------------


def a_request_passes_all_phases():
    """All seven phases on temporary deployments, while one candidate crash-loops and one cannot be pulled; then it is deployed"""
    with Scene(FAULTS) as scene:
        play = scene.create("a", spec(autoApply=True))
        status = play.wait(lambda s: s.get("state") in ("Ready", "Failed"), "the end", PATIENCE)
        assert status["state"] == "Ready", status
        assert status["deployment"] == {"name": "a-dgd", "namespace": scene.ns, "state": "successful", "created": True}, status
        assert status["profilingProgress"]["phase"] == "Complete", status
        scene.balanced()
        tried = set(scene.seen.candidates.values())
        assert {f"prefill TP={n}" for n in (1, 2, 4, 8)} <= tried, tried
        log = world.api.job_log(scene.ns, "profile-a", "profiler")
        assert "CrashLoopBackOff" in log and "CUDA out of memory" in log, log[-3000:]
        assert "ErrImagePull" in log or "ImagePullBackOff" in log, log[-3000:]
        kept = play.object("configmaps/dgdr-output-a")["data"]
        assert "kind: DynamoGraphDeployment" in kept["config_with_planner.yaml"], kept.keys()
        left = [d["metadata"]["name"] for d in ok(world.api.get(f"/apis/nvidia.com/v1alpha1/namespaces/{scene.ns}/{DGDS}"))["items"]]
        assert left == ["a-dgd"], left


def a_killed_profiler_leaves_nothing():
    """SIGKILL of the profiler in mid-run ends the request, and what it had deployed is taken away"""
    with Scene(model=SLOW) as scene:
        play = scene.create("b", spec(gpus=2))
        scene.profiles(play, "PrefillSweep")
        send(scene.ns, signal.SIGKILL)
        play.wait(lambda s: s.get("state") == "Failed", "Failed", PATIENCE)
        scene.balanced()


def an_evicted_pod_goes_on_from_the_checkpoint():
    """A pod is evicted, and its profiler can do nothing any more: the next attempt finds nothing left, and measures nothing twice"""
    with Scene(model={"decode": {"baseMs": 10}}) as scene:
        play = scene.create("c", spec(gpus=2))
        scene.profiles(play)
        wait(lambda: measured(play), PATIENCE, "a checkpoint")
        pod = play.pod()["metadata"]["name"]
        send(scene.ns, signal.SIGSTOP)
        before = len(scene.seen.created)
        path = f"/api/v1/namespaces/{scene.ns}/pods/{pod}"
        ok(world.api.delete(path, {"gracePeriodSeconds": 1}))
        with contextlib.suppress(AssertionError):
            wait(lambda: not play.object(f"pods/{pod}"), 5, "the pod to go")
        world.api.delete(path, {"gracePeriodSeconds": 0})  # as after a node that is lost
        status = play.wait(lambda s: s.get("run", {}).get("attempt") == 2 or s.get("state") == "Failed", "attempt 2", PATIENCE)
        assert status["state"] != "Failed", status
        status = play.wait(lambda s: s.get("state") in ("Ready", "Failed"), "the end", PATIENCE)
        assert status["state"] == "Ready", status
        scene.balanced()
        again = [scene.seen.candidates[uid] for uid in scene.seen.created[before:]]
        assert sum(c.startswith("prefill") for c in again) == 1, again  # that sweep was over: for the curve alone


def a_deleted_request_takes_all_along():
    """Deletion of the request in mid-run: all temporary deployments go with it"""
    with Scene(model=SLOW) as scene:
        play = scene.create("d", spec(gpus=2))
        scene.profiles(play, "PrefillSweep")
        pod = play.pod()["metadata"]["name"]
        play.delete()
        wait(lambda: not play.jobs() and not play.object(f"pods/{pod}"), PATIENCE, "the profiler to go")
        scene.balanced()  # also one that was made meanwhile
        assert not ok(world.api.get(f"/apis/nvidia.com/v1alpha1/namespaces/{scene.ns}/{DGDS}"))["items"]


def suspended_and_cancelled():
    """suspend and cancel leave no deployment behind"""
    with Scene(model=SLOW) as scene:
        play = scene.create("e", spec(gpus=2))
        scene.profiles(play, "PrefillSweep")
        play.edit(suspend=True)
        play.wait(lambda s: condition(s, "Suspended").get("status") == "True", "suspension", PATIENCE)
        wait(lambda: not scene.seen.left() and not play.jobs(), PATIENCE, "all to be gone")
        play.edit(suspend=False)
        wait(scene.seen.left, PATIENCE, "a temporary deployment")
        play.edit(cancel=True)
        status = play.wait(lambda s: s.get("state") == "Failed", "the end", PATIENCE)
        assert condition(status, "Ready")["reason"] == "Cancelled", status
        scene.balanced()


TESTS = [a_request_passes_all_phases, a_killed_profiler_leaves_nothing, an_evicted_pod_goes_on_from_the_checkpoint,
         a_deleted_request_takes_all_along, suspended_and_cancelled]

words = sys.argv[1:]
real = words[:1] == ["cluster"]
names = words[1:] if real else words
pod_image = "localhost/sonde-pod:1" if real else "sonde-pod"


def root_is_needed():
    """A node can only be started by root"""
    diag("not root: no node can be started, so no profiler runs in a pod")


if real and os.getuid() != 0:
    main(root_is_needed)
with ControlPlane.of("node") if real else Engine("--no-fsync", "--no-operator") as server:
    if real:
        with tempfile.TemporaryDirectory(prefix="sonde-sla-") as folder:
            archive = os.path.join(folder, "sonde-pod.tar")
            subprocess.run([os.path.join(ROOT, "scripts", "image"), program("sonde-pod"), archive, "--name", pod_image], check=True,
                           stdout=subprocess.DEVNULL)
            server.rig("load", archive)
    with World("cluster" if real else "engine", server) as world:
        main(*[t for t in TESTS if not names or t.__name__ in names])
