#!/usr/bin/python3
"""DynamoGraphDeploymentRequests from one end to the other: a Python profiler in a pod, and what users see meanwhile.

    e2e.py [NAME...]            on the embedded engine
    e2e.py cluster [NAME...]    on a real node, which needs root
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import DGDRS, DGDS, GROUP, World, condition, ok
from roots import add_python
from sonde_test import ROOT, ControlPlane, Engine, diag, main, program, wait

PATIENCE = 400  # a kubelet of 1.20 under load takes minutes
PHASES = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
          "PlannerGeneration", "Complete"]


class States(threading.Thread):
    """Every status of the namespace's requests, in order, as a watch shows them."""

    def __init__(self, ns):
        super().__init__(daemon=True)
        self.path = f"{GROUP}/namespaces/{ns}/{DGDRS}"
        self.version = ok(world.api.get(self.path))["metadata"]["resourceVersion"]
        self._of = {}
        self.start()

    def run(self):
        with contextlib.suppress(OSError, ValueError):
            for event in server.api(timeout=4 * PATIENCE).watch(f"{self.path}?watch=1&resourceVersion={self.version}"):
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._of.setdefault(event["object"]["metadata"]["name"], []).append(event["object"].get("status", {}))

    def of(self, name):
        """Those of one that is Ready: whoever asks the server knows that before it has come here."""
        wait(lambda: any(s.get("state") == "Ready" for s in self._of.get(name, [])), 120, f"the watch to show {name} Ready")
        return self._of[name]


def spec(image_command=True, **sweep):
    config = {"profilerImage": image, "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}, "sweep": sweep}}
    if not real:  # containers run from this machine's files
        config["command"] = [sys.executable, os.path.join(profiler, "benchmarks/profiler/profile_sla.py")]
    return {"model": "Qwen/Qwen3-0.6B", "backend": "vllm", "profilingConfig": config}


@contextlib.contextmanager
def scene():
    with server.namespace("dgdr") as ns, world.operator(ns, "--pod-image", pod_image) as operator:
        yield ns, operator, States(ns)


# --- the tests -------------------------------------------------------------------------------------------------------------


def a_profiling_run_is_followed():
    """A Python profiler with sonde_status.py: all phases, steps and GPUs in order, then the generated deployment"""
    with scene() as (ns, _, states):
        short = {"Initializing", "ConfigSelection", "PlannerGeneration"}  # may be over before the next state leaves the pod
        for name, pause in ("a", 0.1), ("b", 0.6), ("c", 3):  # longer where a whole phase passed while something stood still
            play = world.create(ns, name, spec(pause=pause))
            status = play.wait(lambda s: s.get("state") == "Ready", "Ready", PATIENCE)
            seen = states.of(name)
            phases = [s["profilingPhase"] for s in seen if "profilingPhase" in s]
            assert phases == [s["profilingProgress"]["phase"] for s in seen if "profilingProgress" in s], "one of both fields is behind"
            told = list(dict.fromkeys(phases))
            if set(PHASES) - set(told) <= short:
                break
        assert told == [p for p in PHASES if p in told] and set(PHASES) - set(told) <= short, told
        steps = {(s["profilingProgress"].get("currentStep"), s["profilingProgress"].get("gpuConfig", {}).get("parallelMapping"))
                 for s in seen if s.get("profilingPhase") == "DecodeSweep"}
        assert (1, "TP=1") in steps or (2, "TP=2") in steps, steps
        parts = {s["profilingProgress"].get("subPhase") for s in seen if s.get("profilingPhase", "").endswith("Sweep")}
        assert parts & {"Deploying", "Benchmarking", "Cleanup"}, parts
        percents = [s["profilingProgress"].get("overallPercentage") for s in seen if "profilingProgress" in s]
        percents = [p for p in percents if p is not None]
        assert percents == sorted(percents) and percents[-1] == 100, percents
        assert all(condition(s, "Progressing").get("reason") != "NotMoving" for s in seen)
        assert all(condition(s, "Reporting").get("status") != "False" for s in seen), "a torn file was read"
        ends = [s["progress"]["estimatedCompletion"] for s in seen if "estimatedCompletion" in s.get("progress", {})]
        assert ends and all(e["low"] <= e["mid"] <= e["high"] for e in ends), ends
        assert any("estimatedCompletion" in s.get("profilingProgress", {}) for s in seen)
        assert status["profilingProgress"]["phase"] == "Complete" and status["profilingProgress"]["phaseNumber"] == 8, status
        assert status["profilingResults"] == f"configmap/dgdr-output-{name}", status
        assert status["generatedDeployment"]["metadata"]["name"] == f"{name}-dgd", status
        assert condition(status, "SpecGenerated")["status"] == "True" and condition(status, "Ready")["status"] == "True", status
        wait(lambda: not play.object(f"configmaps/dgdr-status-{name}"), 120, "the status ConfigMap to go")
        assert "config_with_planner.yaml" in play.object(f"configmaps/dgdr-output-{name}")["data"]
        extra = play.object(f"configmaps/{name}-planner-data")
        assert extra["metadata"]["ownerReferences"][0]["uid"] == play.uid, extra
        for kind in "serviceaccounts", "roles", "rolebindings":
            wait(lambda k=kind: not play.object(f"{k}/profile-{name}"), 120, f"{kind} to go")
        assert not play.object(f"{DGDS}/{name}-dgd"), "autoApply is off"


def a_profiler_that_knows_nothing_of_us():
    """A profiler that writes no status file shows the old generic message, and its output is taken all the same"""
    with scene() as (ns, _, states):
        play = world.create(ns, "b", spec(silent=True))
        play.wait(lambda s: s.get("state") == "Ready", "Ready", PATIENCE)
        messages = {condition(s, "Profiling").get("message") for s in states.of("b")}
        assert "Profiling is in progress" in messages, messages
        assert not any("profilingProgress" in s for s in states.of("b"))


def the_controller_is_killed_in_mid_run():
    """Status updates go on after the controller was killed and started again; nothing runs twice"""
    with scene() as (ns, operator, states):
        play = world.create(ns, "c", spec(pause=1))
        play.wait(lambda s: s.get("profilingPhase") in PHASES[1:3], "a sweep", PATIENCE)
        operator.kill()
        operator.start("--pod-image", pod_image)
        status = play.wait(lambda s: s.get("state") == "Ready", "Ready", PATIENCE)
        later = list(dict.fromkeys(s.get("profilingPhase") for s in states.of("c")))
        assert "DecodeSweep" in later and later[-1] == "Complete", later
        assert status["run"]["attempt"] == 1 and len(play.jobs()) == 1, status


def a_failure_says_why_and_where():
    """A profiler's own failure ends the request: phase Failed, where it was, and its last words; it is not run again"""
    with scene() as (ns, _, __):
        play = world.create(ns, "d", spec(dieAt="DecodeSweep"))
        status = play.wait(lambda s: s.get("state") == "Failed", "Failed", PATIENCE)
        progress = status["profilingProgress"]
        assert progress["phase"] == status["profilingPhase"] == "Failed" and progress["phaseNumber"] == 9, status
        assert progress["failedPhase"] == "PrefillSweep" and progress["currentStep"] == 2, status
        message = condition(status, "Profiling")["message"]
        assert "exited with status 3" in message and "no GPU answers" in message and "kubectl logs" in message, message
        assert condition(status, "Stalled")["status"] == "True" and len(play.jobs()) == 1, status
        wait(lambda: not play.object("configmaps/dgdr-status-d"), 120, "the status ConfigMap to go")
        assert "no GPU answers" in world.api.job_log(ns, "profile-d", "profiler"), "the log stays"


def deployed_and_deleted():
    """autoApply makes the deployment; ready when it is; one that is deleted is never made again"""
    with scene() as (ns, operator, _):
        play = world.create(ns, "g", {**spec(pause=0.01), "autoApply": True})
        play.wait(lambda s: s.get("deployment", {}).get("created"), "the deployment", PATIENCE)
        assert play.status()["state"] == "Deploying"
        play.deployment_state("successful")
        status = play.wait(lambda s: s.get("state") == "Ready", "Ready")
        assert status["deployment"] == {"name": "g-dgd", "namespace": ns, "state": "successful", "created": True}, status
        play.deployment_state("pending")
        play.wait(lambda s: s.get("state") == "Deploying", "Deploying again")
        ok(world.api.delete(f"{GROUP}/namespaces/{ns}/{DGDS}/g-dgd"))
        play.wait(lambda s: s.get("state") == "DeploymentDeleted", "DeploymentDeleted")
        operator.kill()
        operator.start("--pod-image", pod_image)
        operator.process.expect("^idle", 120)
        assert not play.object(f"{DGDS}/g-dgd") and play.status()["state"] == "DeploymentDeleted"
        assert [e["reason"] for e in play.events() if e["reason"].startswith("Deployment")].count("DeploymentDeleted") == 1


def side_by_side():
    """Ten requests in one namespace: no state of one is ever seen on another"""
    with scene() as (ns, _, states):
        names = [f"r{i}" for i in range(10)]
        plays = [world.create(ns, name, spec(steps=1)) for name in names]
        for play in plays:
            status = play.wait(lambda s: s.get("state") == "Ready", "Ready", 3 * PATIENCE)
            assert status["generatedDeployment"]["metadata"]["name"] == f"{play.name}-dgd"
        for name in names:
            jobs = {s["run"]["job"] for s in states.of(name) if "run" in s}
            assert jobs == {f"profile-{name}"}, jobs
            told = [PHASES.index(s["profilingPhase"]) for s in states.of(name) if "profilingPhase" in s]
            assert told and told == sorted(told), told


def the_profilers_permissions():
    """With apiAccess the profiler may deploy in its own namespace, and without it has no token at all"""
    with scene() as (ns, _, __):
        for name, access in ("h", False), ("i", True):
            play = world.create(ns, name, {**spec(pause=1.5), "profilingConfig": {**spec(pause=1.5)["profilingConfig"], "apiAccess": access}})
            role = wait(lambda p=play: p.object(f"roles/profile-{p.name}"), PATIENCE, "the Role")
            rules = {(r["resources"][0], tuple(r.get("resourceNames", []))): r["verbs"] for r in role["rules"]}
            own = {("configmaps", (f"dgdr-status-{name}", f"dgdr-output-{name}")): ["get", "patch"]}
            more = {("dynamographdeployments", ()): ["get", "list", "watch", "create", "delete"],
                    ("pods", ()): ["get", "list", "watch"], ("pods/log", ()): ["get"]}
            assert rules == {**own, **(more if access else {})}, rules
            profiler_mounts = [m["mountPath"] for m in play.pod()["spec"]["containers"][0]["volumeMounts"]]
            assert ("/var/run/secrets/kubernetes.io/serviceaccount" in profiler_mounts) == access, profiler_mounts


TESTS = [a_profiling_run_is_followed, a_profiler_that_knows_nothing_of_us, the_controller_is_killed_in_mid_run,
         a_failure_says_why_and_where, deployed_and_deleted,
         side_by_side, the_profilers_permissions]

# --- where -----------------------------------------------------------------------------------------------------------------


def lay_out_profiler(folder):
    """The profiler with Sonde's reporter in the place of the design's own."""
    shutil.copytree(os.path.join(ROOT, "test/dgdr/profiler"), folder, ignore=shutil.ignore_patterns("__pycache__"))
    utils = os.path.join(folder, "benchmarks/profiler/utils")
    os.makedirs(utils, exist_ok=True)
    shutil.copy(os.path.join(ROOT, "python/sonde_status.py"), os.path.join(utils, "status_reporter.py"))
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)


def python_image(root):
    """A root directory with Python and the profiler in it, where upstream's image has it."""
    add_python(root, "/usr/bin/python")
    lay_out_profiler(os.path.join(root, "workspace"))


def the_profilers_image_is_made():
    """A root directory with Python and the profiler, where upstream's image has them"""
    root = os.path.join(folder, "root")
    python_image(root)
    assert os.path.isfile(os.path.join(root, "workspace/benchmarks/profiler/utils/status_reporter.py"))
    assert os.access(os.path.join(root, "usr/bin/python"), os.X_OK)


words = sys.argv[1:]
real = words[:1] == ["cluster"]
names = words[1:] if real else words
image, pod_image = ("localhost/profiler:1", "localhost/sonde-pod:1") if real else ("any", "sonde-pod")
with tempfile.TemporaryDirectory(prefix="sonde-dgdr-e2e-", dir="/tmp") as folder:
    os.chmod(folder, 0o755)
    if real and os.getuid() != 0:
        diag("not root: no node can be started, so no profiler runs in a pod")
        main(the_profilers_image_is_made)
    profiler = os.path.join(folder, "workspace")
    lay_out_profiler(profiler)
    with ControlPlane.of("node") if real else Engine("--no-fsync", "--no-operator") as server:
        if real:
            archive = os.path.join(folder, "sonde-pod.tar")
            subprocess.run([os.path.join(ROOT, "scripts", "image"), program("sonde-pod"), archive, "--name", pod_image], check=True,
                           stdout=subprocess.DEVNULL)
            server.rig("load", archive)
            python_image(os.path.join(folder, "root"))
            server.rig("image", image, os.path.join(folder, "root"))
        with World("cluster" if real else "engine", server) as world:
            main(*[t for t in TESTS if not names or t.__name__ in names])
