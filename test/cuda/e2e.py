#!/usr/bin/python3
"""CUDAExperiments from one end to the other: `sonde operator`, pods that really run, and the real runner around a stand-in for ncu.

    e2e.py [NAME...]            on the embedded engine
    e2e.py cluster [NAME...]    on a real node, which needs root
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import ncu_samples
import yaml
from cuda_play import EXPERIMENTS, GROUP, PROFILES, condition, ok
from cuda_site import Scene, Site, stalled
from sonde_test import ROOT, diag, main, wait

PATIENCE = 400  # a kubelet of 1.20 under load takes minutes
SEED = os.path.join(ROOT, "examples/seeds/kratos-workloadprofile.yaml")


def seed_status():
    with open(SEED, encoding="utf-8") as f:
        return yaml.safe_load(f)["status"]


def example():
    """examples/cudaexperiment.yaml; on the embedded engine the program is elsewhere."""
    with open(os.path.join(ROOT, "examples/cudaexperiment.yaml"), encoding="utf-8") as f:
        experiment = yaml.safe_load(f)
    experiment["spec"]["command"] = [site.sample]
    return experiment


def message_of(status, kind):
    found = condition(status, kind)
    return found.get("status"), found.get("reason"), found.get("message")


def slow(seconds=1, name="two-kernels"):
    """Launches that take their time, so that what happens meanwhile can be seen."""
    return {"TRY_PACE": seconds, "TRY_RECORDING": site.recording(name)}


# --- the seed's flow ---------------------------------------------------------------------------------------------------------


def without_profiling():
    """profilingEnabled false: <experiment>-execution runs at once, and ExecutionJobCreated says so"""
    with site.scene() as scene:
        play = scene.create("a", site.spec("/bin/echo", "hello", arguments=["there"], profilingEnabled=False, replicas=2, gpuRequired=2))
        status = play.phase("Succeeded", PATIENCE)
        assert scene.jobs_made("a") == ["a-execution"] and not play.profile(), scene.jobs_made("a")
        assert message_of(status, "ExecutionJobCreated") == ("True", "JobCreated", 'Execution Job "a-execution" exists'), status
        assert status["executionJobName"] == "a-execution" and "boundType" not in status, status
        assert {c["type"] for c in status["conditions"]}.isdisjoint({"ProfilingPending", "ProfilingRunning", "ProfilingCompleted"}), status
        execution = status["execution"]
        assert execution["succeeded"] == 2 and not execution.get("failed"), status
        assert execution["startTime"] <= execution["completionTime"], status
        assert condition(status, "Ready")["status"] == "True" and condition(status, "Stalled").get("status") != "True", status
        job = play.execution()["spec"]
        assert job["parallelism"] == job["completions"] == 2 and job["backoffLimit"] == 0, job
        pod = job["template"]["spec"]
        assert pod["restartPolicy"] == "Never" and pod["runtimeClassName"] == "nvidia", pod
        (container,) = pod["containers"]
        assert container["name"] == "execution" and container["resources"]["limits"]["nvidia.com/gpu"] == "2", container
        assert container["command"] == ["/bin/echo", "hello"] and container["args"] == ["there"], container
        labels = {"app.kubernetes.io/name": "kratos", "app.kubernetes.io/managed-by": "kratos-controller", "gpu.scheduler.io/experiment": "a"}
        for meta in play.execution()["metadata"], job["template"]["metadata"]:
            assert {**meta["labels"], **labels} == meta["labels"], meta
        assert "hello there" in scene.world.api.job_log(scene.ns, "a-execution")


def the_seeds_flow():
    """The seed's sample: profiled, its example status exactly, then executed at once"""
    with site.scene() as scene:
        experiment = example()
        experiment["spec"]["env"] = [{"name": "TRY_PACE", "value": "3"}]  # so that it can be seen to run
        experiments = f"{GROUP}/namespaces/{scene.ns}/{EXPERIMENTS}"
        ok(scene.world.api.post(experiments, experiment))
        play = scene.world.play(scene.ns, "vectoradd")
        status = play.phase("Succeeded", 2 * PATIENCE)
        seen = scene.statuses("vectoradd")
        phases = scene.phases("vectoradd")
        assert phases == [p for p in ("Pending", "Profiling", "Executing", "Succeeded") if p in phases] and "Executing" in phases, phases
        assert scene.jobs_made("vectoradd") == ["vectoradd-profiling", "vectoradd-execution"], scene.jobs_made("vectoradd")
        scene.never_both("vectoradd")
        name = 'Profiling Job "vectoradd-profiling"'
        told = {(c["type"], c["reason"], c["message"]) for s in seen for c in s.get("conditions", []) if c["status"] == "True"}
        for row in (("ProfilingPending", "WaitingForProfile", f'{name} exists and is waiting for WorkloadProfile "vectoradd-profile"'),
                    ("ProfilingRunning", "ProfilingJobRunning", f"{name} is still running"),
                    ("ProfilingCompleted", "ProfilingJobCompleted", f"{name} completed"),
                    ("ExecutionJobCreated", "JobCreated", 'Execution Job "vectoradd-execution" exists')):
            assert row in told, (row, told)
        for kind in "ProfilingPending", "ProfilingRunning", "Failed":  # cleared when they stop being true
            assert condition(status, kind).get("status") != "True", status
        wanted = seed_status()
        profile = play.profile()
        assert profile["status"]["boundType"] == wanted["boundType"] == status["boundType"] == "unknown", profile
        assert {**profile["status"]["metrics"], **wanted["metrics"]} == profile["status"]["metrics"], profile["status"]
        assert all(isinstance(v, str) for v in profile["status"]["metrics"].values()), profile["status"]
        assert profile["spec"]["sourceCudaExperiment"] == "vectoradd" and profile["spec"]["command"] == [site.sample], profile["spec"]
        assert profile["status"]["replay"] is True and profile["status"]["metrics"]["replay"] == "true", profile["status"]
        assert profile["metadata"]["ownerReferences"][0]["uid"] == play.uid, profile["metadata"]
        kept = ok(scene.world.api.get(f"/api/v1/namespaces/{scene.ns}/configmaps/vectoradd-profile-summary"))
        summary = json.loads(kept["data"]["summary.json"])
        assert summary["boundType"] == "unknown" and summary["metrics"] == profile["status"]["metrics"], summary
        assert kept["metadata"]["ownerReferences"][0]["uid"] == play.uid, kept["metadata"]
        log = scene.world.api.job_log(scene.ns, "vectoradd-profiling")
        assert "==PROF== Profiling" in log and "==REPLAY==" in log and "Linux" in log, log
        experiment = play.get()
        assert experiment["status"]["profileName"] == "vectoradd-profile", experiment["status"]
        assert "validation.gpu.scheduler.io/reconcile-at" not in experiment["metadata"].get("annotations", {})
        ok(scene.world.api.patch(play.path, {"metadata": {"annotations": {"validation.gpu.scheduler.io/reconcile-at": "manual"}}}))
        time.sleep(1)
        assert play.status() == status and scene.jobs_made("vectoradd")[2:] == [], "the annotation does no harm"


def real_runs_come_out_as_they_are_described():
    """What real runs have printed, where it is there, through all of it: the profile has the values that are known of them"""
    if not ncu_samples.are_there():
        diag(f"{ncu_samples.SAMPLES} is not there")
        return
    with site.scene() as scene:
        plays = {name: scene.create(f"real-{i}", site.spec("/bin/true", env={"TRY_RECORDING": site.sample_of_real_run(name)}))
                 for i, name in enumerate(ncu_samples.EXPECTED)}
        for name, play in plays.items():
            status, profile = play.phase("Succeeded", 2 * PATIENCE), play.profile()["status"]
            metrics = profile["metrics"]
            got = metrics["launches"], profile["details"]["kernels"], metrics["durationNs"], *(metrics.get(k) for k in ncu_samples.KEYS)
            assert ncu_samples.same(got, ncu_samples.EXPECTED[name]), (name, got)
            bound = "memory-bound" if "-t4-" in name else "unknown"
            assert profile["boundType"] == status["boundType"] == bound and profile["replay"] is True, (name, profile)


def progress_is_live():
    """While it profiles the object says which launch of how many, the kernel, and how much is done"""
    with site.scene() as scene:
        name = "b"
        play = scene.create(name, site.spec("/bin/sleep", "60", env={**slow(0), "TRY_HOLD": 3}))
        status = play.wait(lambda s: s.get("progress", {}).get("phase") == "Collecting" and s["progress"].get("currentStep", 0) >= 2,
                           "the second launch", PATIENCE)
        assert status["phase"] == "Profiling" and status["progress"]["totalSteps"] >= 2, status
        assert status["progress"]["job"] == f"{name}-profiling" and status["progress"]["attempt"] == 1, status
        (row,) = scene.world.api.table(play.path)
        assert row["Phase"] == "Profiling", row
        wait(lambda: any(s.get("progress", {}).get("percent") for s in scene.statuses(name)), PATIENCE, "a percentage")
        percents = [s["progress"]["percent"] for s in scene.statuses(name) if "percent" in s.get("progress", {})]
        assert percents == sorted(percents), percents
        assert all(condition(s, "Reporting").get("status") != "False" for s in scene.statuses(name))


def the_profiling_pod():
    """stage-workload in the workload's image, profiling-runner in the tool's, with GPU and SYS_ADMIN; all arguments reach the program"""
    with site.scene() as scene:
        play = scene.create("c", site.spec("/bin/sh", "-c", 'echo "got $0 $1 $GREETING"', arguments=["one", "two words"], replicas=3,
                                           numberOfGPUs=2, env={"GREETING": "hello"}, profiling={"launchCount": 2}))
        play.wait(lambda s: s.get("boundType"), "the profile", PATIENCE)
        job = play.object("jobs/c-profiling")["spec"]
        assert job.get("parallelism", 1) == job.get("completions", 1) == 1 and job["backoffLimit"] == 0, job
        pod = job["template"]["spec"]
        assert [c["name"] for c in pod["initContainers"]] == ["stage", "stage-workload"], pod["initContainers"]
        assert [c["name"] for c in pod["containers"]] == ["profiling-runner", "relay"], pod["containers"]
        stage, runner = pod["initContainers"][1], pod["containers"][0]
        assert stage["image"] == play.get()["spec"]["image"], stage
        assert runner["image"] == "kratos-nsight-compute-poc:latest" and runner["imagePullPolicy"] == "IfNotPresent", runner
        assert runner["resources"]["limits"]["nvidia.com/gpu"] == "2" and "SYS_ADMIN" in runner["securityContext"]["capabilities"]["add"], runner
        assert "nvidia.com/gpu" not in stage.get("resources", {}).get("limits", {}), stage
        shared = {m["name"] for m in stage["volumeMounts"] if m["mountPath"] == "/shared"}
        assert shared == {m["name"] for m in runner["volumeMounts"] if m["mountPath"] == "/shared"} and \
            "emptyDir" in next(v for v in pod["volumes"] if v["name"] in shared), pod["volumes"]
        assert pod["runtimeClassName"] == "nvidia" and pod["restartPolicy"] == "Never", pod
        play.wait(lambda s: s.get("executionJobName"), "the end of the pod", PATIENCE)  # until then the kubelet may not know of its log
        log = scene.world.api.job_log(scene.ns, "c-profiling")
        assert "got one two words hello" in log, log
        assert all(words in log for words in ("--target-processes all", "--set basic", "--launch-count 2", "/shared/workload")), log


def the_image_of_the_runner():
    """KRATOS_NSIGHT_COMPUTE_IMAGE on the operator is the tool's image"""
    with site.server.namespace("cuda") as ns:
        scene = Scene(site, ns)
        with scene.operator(env={"KRATOS_NSIGHT_COMPUTE_IMAGE": "registry.example/ncu:2"}):
            play = scene.create("d", site.spec("/bin/true"))
            pod = wait(lambda: play.object("jobs/d-profiling"), PATIENCE, "the Job")["spec"]["template"]["spec"]
            assert pod["containers"][0]["image"] == "registry.example/ncu:2", pod["containers"][0]


# --- how it ends -------------------------------------------------------------------------------------------------------------


def an_execution_that_fails():
    """A failed execution is told with how many pods failed, and why"""
    with site.scene() as scene:
        play = scene.create("e", site.spec("/bin/sh", "-c", "echo no luck; exit 3", profilingEnabled=False))
        status = play.phase("Failed", PATIENCE)
        assert status["execution"]["failed"] == 1 and not status["execution"].get("succeeded"), status
        assert "3" in status["execution"]["message"] and "e-execution" in status["execution"]["message"], status
        reason, sentence = stalled(status)
        assert reason and "kubectl logs" in sentence, (reason, sentence)
        assert condition(status, "Failed")["status"] == "True" and condition(status, "Ready")["status"] == "False", status


def commands_that_cannot_be_staged():
    """No command, one that is not there, one that is no program: each has its own reason, and nothing is executed"""
    cases = {"f1": (["/no/such/program"], "CommandNotFound"), "f2": (["/etc/passwd" if not site.real else "/data"], "CommandNotExecutable")}
    if not site.real:  # the rig's server takes an empty text for null, and refuses it by itself
        cases["f3"] = ([""], "CommandEmpty")
    with site.scene() as scene:
        for name, (command, _) in cases.items():
            spec = site.spec("x")
            scene.create(name, {**spec, "command": command})
        for name, (_, wanted) in cases.items():
            play = scene.world.play(scene.ns, name)
            status = play.phase("Failed", PATIENCE)
            reason, sentence = stalled(status)
            assert reason == wanted, (name, reason, sentence)
            diag(f"{reason}: {sentence}")
            assert not play.execution() and not play.profile()


# What the stand-in is told to do: (the reason, what a person is told to do about it).
FAILURES = {
    "no-gpu": ("NoGPU", "nvidia.com/gpu"),
    "permission": ("CounterPermission", "NVreg_RestrictProfilingToAdminUsers=0"),
    "in-use": ("CountersInUse", "dcgmi profile --pause"),
    "driver": ("DriverMismatch", "nvidia-smi"),
    "stub": ("DriverMismatch", "stub libcuda.so"),
    "mig": ("MIGClockControl", "--clock-control none"),
    "nothing": ("NothingProfiled", "kernelName"),
    "not-loaded": ("ProgramNotLoaded", "spec.profiling.files"),
    "no-numbers": ("NoNumbers", "the set basic"),
    "lock": ("ToolFailed", "==ERROR=="),
}


def each_failure_of_the_tool():
    """Every way in which ncu fails has its own reason and remedy on the object, and nothing is executed"""
    with site.scene() as scene:
        plays = {how: scene.create(f"x-{how}", site.spec("/bin/true", env={"TRY_FAIL": how})) for how in FAILURES}
        plays["program"] = scene.create("x-program", site.spec("/bin/false", profiling={"kernelName": "never-reached"}))
        half = scene.create("x-half", site.spec("/bin/true", env={"TRY_FAIL": "half", "TRY_RECORDING": site.recording("two-kernels")}))
        told = set()
        for how, play in plays.items():
            wanted, remedy = FAILURES.get(how, ("ProgramFailed", "the pod's log"))
            status = play.phase("Failed", PATIENCE)
            reason, sentence = stalled(status)
            assert reason == wanted and remedy in sentence and len(sentence) <= 600, (how, reason, sentence)
            assert condition(status, "Failed")["reason"] == "ProfilingJobFailed" and status["run"]["reason"] == wanted, (how, status)
            assert not play.execution() and not play.profile(), how
            wait(lambda p=play, r=wanted: p.events(r), PATIENCE, f"the event {wanted}")
            told.add((reason, sentence))
        assert len(told) == len(plays), "each sentence has its own evidence"
        half.phase("Succeeded", PATIENCE)  # what was measured before it failed is taken, and marked
        profile = half.profile()["status"]
        assert profile["metrics"]["partial"] == "true" and profile["metrics"]["launches"] == "3", profile


def a_failed_profiling_is_made_anew():
    """After a failure the spec is mended: profiling is done anew, as <experiment>-profiling-2, and execution follows"""
    with site.scene() as scene:
        play = scene.create("g", site.spec("/bin/true", env={"TRY_FAIL": "permission"}))
        status = play.phase("Failed", PATIENCE)
        assert stalled(status)[0] == "CounterPermission", status
        assert condition(status, "Failed")["reason"] == "ProfilingJobFailed", status
        assert condition(status, "Failed")["message"].startswith('Profiling Job "g-profiling" failed: '), status
        assert not play.profile() and not play.execution()
        play.edit(env=None)
        status = play.phase("Succeeded", 2 * PATIENCE)
        assert scene.jobs_made("g") == ["g-profiling", "g-profiling-2", "g-execution"], scene.jobs_made("g")
        scene.never_both("g")
        assert condition(status, "Failed")["status"] == "False" and stalled(status) == (None, None), status
        assert play.profile()["status"]["boundType"] == "unknown"


# --- profiles that are there already ---------------------------------------------------------------------------------------------


def a_profile_of_the_users():
    """A WorkloadProfile that a person made is honoured, and not written; nothing is profiled"""
    with site.scene() as scene:
        made = scene.world.create_profile(scene.ns, "h-profile", "compute-bound")
        play = scene.create("h", site.spec("/bin/true"))
        status = play.phase("Succeeded", PATIENCE)
        assert scene.jobs_made("h") == ["h-execution"], scene.jobs_made("h")
        assert status["profileName"] == "h-profile" and status["boundType"] == "compute-bound", status
        assert play.profile() == made, "it was touched"
        play.delete()
        wait(lambda: not play.execution(), PATIENCE, "the Job to go")
        assert play.profile() == made, "it is not ours to delete"


def a_profile_of_another_experiments():
    """With reuse the profile of an identical workload serves; without it, or with another workload, it does not"""
    with site.scene() as scene:
        first = scene.create("i1", site.spec("/bin/echo", "a"))
        first.phase("Succeeded", 2 * PATIENCE)
        again = scene.create("i2", site.spec("/bin/echo", "a"), profiling={"reuse": True})
        other = scene.create("i3", site.spec("/bin/echo", "b"), profiling={"reuse": True})
        status = again.phase("Succeeded", PATIENCE)
        assert scene.jobs_made("i2") == ["i2-execution"] and status["profileName"] == "i1-profile", (scene.jobs_made("i2"), status)
        assert status["boundType"] == first.status()["boundType"] and not again.profile(), status
        status = other.phase("Succeeded", 2 * PATIENCE)
        assert scene.jobs_made("i3") == ["i3-profiling", "i3-execution"] and status["profileName"] == "i3-profile", status


# --- what people do meanwhile -------------------------------------------------------------------------------------------------


def an_edit_after_the_execution_began():
    """A change of the spec is refused by event once the execution Job exists, and changes nothing"""
    with site.scene() as scene:
        play = scene.create("j", site.spec("/bin/sleep", "12", profilingEnabled=False))  # time enough to change it meanwhile
        wait(play.execution, PATIENCE, "the Job")
        play.wait(lambda s: s.get("phase") == "Executing", "Executing", PATIENCE)
        play.edit(arguments=["more"])
        status = play.wait(lambda s: condition(s, "SpecAccepted").get("status") == "False", "the refusal", PATIENCE)
        assert status["observedGeneration"] < play.get()["metadata"]["generation"], status
        wait(lambda: scene.events("SpecChangeRejected"), PATIENCE, "the event")
        assert "args" not in play.execution()["spec"]["template"]["spec"]["containers"][0]
        status = play.phase("Succeeded", PATIENCE)
        assert len(scene.events("SpecChangeRejected")) == 1 and scene.jobs_made("j") == ["j-execution"]


def a_deleted_experiment_leaves_nothing():
    """Deleted after its end and in mid-profiling: Jobs, pods, ConfigMaps, profile, account, Role and binding go with it"""
    with site.scene() as scene:
        done = scene.create("m", site.spec("/bin/true"))
        busy = scene.create("n", site.spec("/bin/sleep", "60", env=slow(20)))
        busy.wait(lambda s: s.get("progress", {}).get("phase") == "Collecting", "Collecting", PATIENCE)
        done.phase("Succeeded", 2 * PATIENCE)
        assert {"configmaps/m-profile-summary", f"{PROFILES}/m-profile", "jobs/m-execution"} <= set(scene.left("m")), scene.left("m")
        for play in done, busy:
            play.delete()
        for play in done, busy:
            wait(lambda p=play: not scene.left(p.name), PATIENCE, f"nothing to be left of {play.name}")
        kept = ok(scene.world.api.get(f"{GROUP}/namespaces/{scene.ns}/{EXPERIMENTS}"))["items"]
        assert not kept, kept


TESTS = [without_profiling, the_seeds_flow, real_runs_come_out_as_they_are_described, progress_is_live, the_profiling_pod,
         the_image_of_the_runner, an_execution_that_fails, commands_that_cannot_be_staged, each_failure_of_the_tool,
         a_failed_profiling_is_made_anew, a_profile_of_the_users, a_profile_of_another_experiments, an_edit_after_the_execution_began,
         a_deleted_experiment_leaves_nothing]


def root_is_needed():
    """A node can only be started by root"""
    diag("not root: no node can be started, so no profiler runs in a pod")


words = sys.argv[1:]
real = words[:1] == ["cluster"]
names = words[1:] if real else words
if real and os.getuid() != 0:
    main(root_is_needed)
with Site(real) as site:
    main(*[t for t in TESTS if not names or t.__name__ in names])
