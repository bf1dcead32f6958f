#!/usr/bin/python3
"""What goes wrong around a CUDAExperiment, beside the same experiment without a fault. A test plays kubelet, relay and profiler.

    faults.py [NAME...]            on the embedded engine
    faults.py cluster [NAME...]    on a real control plane

The scenario: profiling reports, succeeds with a summary, the execution Job's pod succeeds. What must be true after a fault that
must leave no trace is in test/lib/fault_stage.py.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cuda_trace
from cuda_play import EXPERIMENTS, GROUP, PATIENCE, PROFILES, World, condition, ok
from cuda_site import TYPES, stalled
from fault_stage import Plan, side_by_side
from sonde_test import diag, main, wait

BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}


def reports(play):
    play.pod_runs()
    play.report({"phase": "Collecting", "message": "m", "progress": {"currentStep": 1, "totalSteps": 2}})
    play.wait(lambda s: s.get("progress", {}).get("currentStep") == 1, "the first launch")


def is_profiled(play):
    play.succeed()
    wait(play.execution, PATIENCE, "the execution Job")


def executes(play):
    play.execution_runs()
    play.wait(lambda s: s.get("phase") == "Executing", "Executing")
    play.executes()
    play.phase("Succeeded")


def drive(play):
    for step in reports, is_profiled, executes:
        step(play)


def masked(trace):
    return cuda_trace.masked(trace, "a")


def tidy(kind, item):
    """What is not true is there only if it was seen to be true."""
    if kind == EXPERIMENTS:
        item["status"]["conditions"] = sorted((c for c in item["status"]["conditions"] if c["status"] == "True" or
                                               not c["type"].startswith("Profiling")), key=lambda c: c["type"])


# --- the operator ----------------------------------------------------------------------------------------------------------


def killed_at_every_write():
    """The operator is killed before every write, and its answer to each is lost in turn: the same end, nothing twice"""
    plan.killed_at_every_write(reference)


# --- pods and Jobs -----------------------------------------------------------------------------------------------------------


def a_profiling_pod_that_goes():
    """Evicted or deleted: another attempt, in a Job of its own; when no retries are left it fails, and says so"""
    def evicted(_):
        with plan.stage() as s:
            reports(s.play)
            s.play.evict()
            s.play.wait(lambda t: t.get("run", {}).get("attempt") == 2, "attempt 2")
            drive(s.play)
            assert {"a-execution", "a-profiling-2"} <= {j["metadata"]["name"] for j in s.play.jobs()}, s.play.jobs()
            s.never_both()
            s.relisted()
            s.goes()

    def deleted(_):
        with plan.stage() as s:
            reports(s.play)
            pod = s.play.pod()["metadata"]["name"]
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/pods/{pod}", {"gracePeriodSeconds": 0}))
            s.play.wait(lambda t: t.get("run", {}).get("attempt", 0) >= 2, "another attempt")
            drive(s.play)
            s.never_both()
            s.goes()

    def for_good(_):
        with plan.stage(retries=0) as s:
            reports(s.play)
            s.play.evict()
            status = s.play.phase("Failed")
            assert stalled(status)[0] == "Evicted" and not s.play.execution(), status
            assert condition(status, "Failed")["reason"] == "ProfilingJobFailed", status
            s.relisted()
            s.goes()
    side_by_side([evicted, deleted, for_good], lambda f: f(None))


def jobs_that_somebody_deletes():
    """The profiling Job or the execution Job is taken away in mid-run: that is told, and none is made in its place unasked"""
    def profiling(_):
        with plan.stage() as s:
            reports(s.play)
            ok(world.api.delete(f"/apis/batch/v1/namespaces/{s.ns}/jobs/a-profiling", BACKGROUND))
            status = s.play.phase("Failed")
            assert stalled(status)[0] == "JobDeleted" and not s.play.execution(), status
            s.goes()

    def execution(_):
        with plan.stage() as s:
            reports(s.play)
            is_profiled(s.play)
            s.play.execution_runs()
            s.play.wait(lambda t: condition(t, "ExecutionJobCreated").get("status") == "True", "the Job to be seen")
            ok(world.api.delete(f"/apis/batch/v1/namespaces/{s.ns}/jobs/a-execution", BACKGROUND))
            status = s.play.phase("Failed")
            assert stalled(status)[0], status
            s.relisted()
            s.goes()
    side_by_side([profiling, execution], lambda f: f(None))


# --- what the profiler leaves ---------------------------------------------------------------------------------------------------

SUMMARIES = {
    "nothing": (None, "ProfileSummaryMissing"),
    "an empty text": ("", "ProfileSummaryMissing"),
    "no JSON": ("{", "InvalidProfileSummary"),
    "no object": ("[]", "InvalidProfileSummary"),
    "another bound": ('{"boundType": "io-bound", "metrics": {}}', "InvalidProfileSummary"),
    "no bound": ('{"metrics": {}}', "InvalidProfileSummary"),
    "an odd metric": ('{"boundType": "mixed", "metrics": {"a": [1]}}', "InvalidProfileSummary"),
}


def summaries_that_cannot_be_read():
    """A summary that is missing or invalid is a failure with upstream's reason; numbers and no metrics are as upstream has them"""
    def bad(what):
        text, reason = SUMMARIES[what]
        with plan.stage() as s:
            reports(s.play)
            if text is None:
                s.play.output = lambda *_: None
            s.play.succeed(text)
            status = s.play.phase("Failed")
            found = condition(status, "Failed")
            assert (found["status"], found["reason"]) == ("True", reason) and "a-profile-summary" in found["message"], found
            assert "summary.json" in found["message"] and not s.play.profile() and not s.play.execution(), found
            s.relisted()
            s.goes()

    def good(_):
        with plan.stage() as s:
            reports(s.play)
            s.play.succeed('{"boundType": "mixed", "metrics": {"a": 12.5, "b": "x", "c": 3}}')
            profile = wait(lambda: (s.play.profile() or {}).get("status", {}).get("boundType") and s.play.profile(), PATIENCE, "the profile")
            assert profile["status"]["metrics"] == {"a": "12.5", "b": "x", "c": "3"}, profile
        with plan.stage() as s:
            reports(s.play)
            s.play.succeed('{"boundType": "memory-bound"}')
            profile = wait(lambda: (s.play.profile() or {}).get("status", {}).get("boundType") and s.play.profile(), PATIENCE, "the profile")
            assert profile["status"].get("metrics", {}) == {}, profile
    side_by_side([*SUMMARIES, good], lambda v: v(None) if callable(v) else bad(v))


# --- strangers -----------------------------------------------------------------------------------------------------------------

LABELS = {"app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "cuda", "gpu.scheduler.io/experiment": "a"}
JOB = {"spec": {"parallelism": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}


def names_that_strangers_have():
    """A stranger's ConfigMap is in the way: NameConflict until it goes, and it is never touched; Jobs get another name instead"""
    def config_map(name):
        def before(s):
            s.made_by_stranger = ok(world.api.post(f"/api/v1/namespaces/{s.ns}/configmaps", {"metadata": {"name": name, "labels": LABELS}}))
        with plan.stage(before=before) as s:
            s.play.wait(lambda t: condition(t, "Stalled").get("reason") == "NameConflict", "NameConflict")
            assert s.play.object(f"configmaps/{name}") == s.made_by_stranger
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/configmaps/{name}"))
            drive(s.play)
            s.never_both()
            s.goes()

    def job(name):
        def before(s):
            ok(world.api.post(f"/apis/batch/v1/namespaces/{s.ns}/jobs", {"metadata": {"name": name}, **JOB}))
        with plan.stage(before=before) as s:
            if "execution" in name:
                reports(s.play)
                s.play.succeed()
            else:
                s.play.job()
            own = wait(lambda: [j["metadata"]["name"] for j in s.play.jobs() if j["metadata"]["name"].startswith(name + "-")], PATIENCE,
                       "a Job of another name")
            s.play.wait(lambda t: t.get("executionJobName" if "execution" in name else "run"), f"a word of {own}")
            assert not s.play.object(f"jobs/{name}")["metadata"].get("ownerReferences")
    side_by_side([(config_map, "a-profile-status"), (config_map, "a-profile-summary"), (job, "a-profiling"), (job, "a-execution")],
                 lambda v: v[0](v[1]))


def profiles_of_others():
    """A user's profile is honoured however little it says; one that is deleted later changes nothing that runs"""
    def before(s):
        world.create_profile(s.ns, "a-profile")
    with plan.stage(before=before) as s:
        wait(s.play.execution, PATIENCE, "the execution Job")
        status = s.play.wait(lambda t: t.get("profileName") == "a-profile", "the profile's name")
        assert status["boundType"] == "unknown" and not s.play.object("jobs/a-profiling"), status
        ok(world.api.delete(f"{GROUP}/namespaces/{s.ns}/{PROFILES}/a-profile"))
        s.play.executes()
        s.play.phase("Succeeded")
        assert [j["metadata"]["name"] for j in s.play.jobs()] == ["a-execution"]


TESTS = [killed_at_every_write, a_profiling_pod_that_goes, jobs_that_somebody_deletes, summaries_that_cannot_be_read,
         names_that_strangers_have, profiles_of_others]

if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "cluster"]
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        plan = Plan(world, TYPES, drive, masked, tidy)
        reference = plan.reference()
        diag(f"{reference.writes} writes; {reference.counts}")
        main(*[t for t in TESTS if not names or t.__name__ in names])
