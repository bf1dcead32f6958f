#!/usr/bin/python3
"""What goes wrong around a CUDAExperiment, beside the same experiment without a fault. A test plays kubelet, relay and profiler.

    faults.py [NAME...]            on the embedded engine
    faults.py cluster [NAME...]    on a real control plane

The scenario: profiling reports, succeeds with a summary, the execution Job's pod succeeds. After a fault that must leave no trace:
the end state is that of the run without it, every object was made as often as there, profiling and execution Jobs were
never active together, a restarted operator finds nothing to write, and deleting the experiment leaves nothing.
"""

import concurrent.futures
import contextlib
import copy
import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cuda_trace
from cuda_play import EXPERIMENTS, GROUP, PATIENCE, PROFILES, World, condition, ok
from cuda_site import SERVERS_OWN, TYPES, stalled
from dgdr_record import difference, unsettled
from fault_proxy import FaultProxy
from sonde_test import diag, main, wait
from watched import Watched

AT_ONCE = 6
REST = 0.7  # how long nothing happens, where nothing must
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


class Stage:
    """A namespace with an operator (behind a proxy with SCRIPT), watches and an experiment."""

    def __init__(self, arguments=(), script=None, before=None, **spec):
        self._arguments, self._script, self._before, self._spec = arguments, script, before, spec
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.ns = self._stack.enter_context(world.server.namespace("fault"))
            self.seen = self._stack.enter_context(Watched(world.server, self.ns, TYPES))
            self.proxy = self._stack.enter_context(FaultProxy(world.server, self._script)) if self._script is not None else None
            if self._before:
                self._before(self)
            self.operator = self._stack.enter_context(
                world.operator(self.ns, *self._arguments, kubeconfig=self.proxy.kubeconfig if self.proxy else None))
            self.play = world.create(self.ns, "a", **self._spec)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def there(self):
        """All that there is, but for events and what the server makes, by kind and name."""
        with self.seen.changed:
            return {(kind, name): item for kind in TYPES if kind != "events" for name, item in self.seen.now[kind].items()
                    if name not in SERVERS_OWN and not name.startswith("default-token")}

    def caught_up(self):
        listed = {}
        for kind, prefix in TYPES.items():
            for item in ok(world.api.get(f"{prefix}/namespaces/{self.ns}/{kind}"))["items"] if kind != "events" else ():
                listed[kind, item["metadata"]["name"]] = item["metadata"]["resourceVersion"]
        there = {key: item["metadata"]["resourceVersion"] for key, item in self.there().items()}
        return {key: version for key, version in listed.items() if key[1] not in SERVERS_OWN} == there

    def quiet(self):
        """Waits until the server's controllers are done, nothing happens for REST seconds and all that there is has been seen."""
        def is_quiet():
            self.seen.quiet(REST)
            left = unsettled(self.there(), world.which == "cluster")
            assert not left, left
            return self.caught_up()
        wait(is_quiet, 2 * PATIENCE, "rest")

    def idle(self):
        """Waits until the operator has looked at everything, which takes a new one its time."""
        wait(lambda: any(line.startswith("idle after") for line in self.operator.process.lines), PATIENCE, "an idle operator")

    def state(self):
        """What is there, without what differs from run to run."""
        found = {}
        for (kind, name), item in self.there().items():
            item = copy.deepcopy(item)
            item["metadata"].pop("generateName", None)
            if kind == "pods":
                item = {"metadata": {"name": name}, "status": {"phase": item["status"].get("phase")}}
            if kind == EXPERIMENTS:  # what is not true is there only if it was seen to be true
                item["status"]["conditions"] = sorted((c for c in item["status"]["conditions"] if c["status"] == "True" or
                                                       not c["type"].startswith("Profiling")), key=lambda c: c["type"])
            found[f"{kind}/{name}"] = item
        return cuda_trace.masked(json.loads(json.dumps(found).replace(self.ns, "<ns>")), "a")

    def made(self):
        """How often each object was created and deleted."""
        counts = {}
        for kind in TYPES:
            for what, item in self.seen.seen[kind] if kind != "events" else ():
                if what != "MODIFIED" and item["metadata"]["name"] not in SERVERS_OWN:
                    key = cuda_trace.masked(f"{what} {kind}/{item['metadata']['name']}", "a")
                    counts[key] = counts.get(key, 0) + 1
        return {k: n for k, n in counts.items() if "default-token" not in k}

    def never_both(self):
        live = {}
        for what, job in self.seen.seen["jobs"]:
            ended = any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in job["status"].get("conditions") or [])
            live[job["metadata"]["uid"]] = what != "DELETED" and not ended
            assert sum(live.values()) <= 1, f"two live Jobs: {[j['metadata']['name'] for _, j in self.seen.seen['jobs']]}"

    def relisted(self):
        """An operator that knows nothing looks at everything, and has nothing to write."""
        self.idle()
        self.quiet()
        if self.proxy:
            self.proxy.off()
        self.operator.process.stop(PATIENCE)
        self.operator.start()
        self.operator.process.expect(r"^idle after", PATIENCE)
        time.sleep(REST / 2)
        idle = [line for line in self.operator.process.lines if line.startswith("idle")]
        assert idle == ["idle after 0 writes"], idle

    def goes(self):
        self.play.delete()
        wait(lambda: not [n for k in TYPES if k != "events" for n in self.seen.now[k]
                          if n not in SERVERS_OWN and not n.startswith(("default-token", "stranger"))], PATIENCE, "nothing to be left")

    def finish(self):
        self.relisted()
        self.never_both()
        differs = difference(reference.state, self.state()) + difference(reference.made, self.made())
        assert not differs, "\n".join(differs)
        self.goes()


class Reference:
    """The scenario without a fault, twice: what differs between two such runs is not compared."""

    def __init__(self):
        self.state, self.made, writes = self._run()
        state, made, more = self._run()
        differs = difference(self.state, state) + difference(self.made, made)
        assert not differs, "\n".join(differs)
        self.writes = max(writes, more)

    @staticmethod
    def _run():
        with Stage() as s:
            drive(s.play)
            s.quiet()
            writes = int(s.operator.process.expect(r"^idle after (\d+) writes", 10, len(s.operator.process.lines) - 1)[1])
            state, made = s.state(), s.made()
            s.relisted()
            s.never_both()
            s.goes()
            return state, made, writes


def side_by_side(variants, run):
    """RUN(variant) for all of them; all failures are told."""
    failed = []

    def one(variant):
        try:
            run(variant)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(f"{variant}: {e!r}")
            diag(f"{variant}: {traceback.format_exc()}")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, variants))
    assert not failed, "; ".join(failed)


def each_write():
    """All of them; on a real control plane, which takes longer for everything, every fourth."""
    return range(1, reference.writes + 1, 4 if world.which == "cluster" else 1)


# --- the operator ----------------------------------------------------------------------------------------------------------


def killed_at_every_write():
    """The operator is killed before every write, and its answer to each is lost in turn: the same end, nothing twice"""
    killed = []

    def before(k):
        with Stage(arguments=("--kill-at", str(k))) as s:
            with s.operator.kept_alive() as deaths:
                drive(s.play)
                s.idle()  # before nobody looks after it any more
                s.quiet()
            killed.append(len(deaths))
            s.finish()

    def lost(k):
        with Stage(script=f"match WRITE * nth={k} -> lose\n") as s:
            drive(s.play)
            s.finish()
    side_by_side([(f, k) for k in each_write() for f in (before, lost)], lambda v: v[0](v[1]))
    diag(f"{reference.writes} writes, {sum(killed)} times killed")
    assert sum(killed) >= len(each_write()) - 2, killed  # a write less is needed where two things happen at once


# --- pods and Jobs -----------------------------------------------------------------------------------------------------------


def a_profiling_pod_that_goes():
    """Evicted or deleted: another attempt, in a Job of its own; when no retries are left it fails, and says so"""
    def evicted(_):
        with Stage() as s:
            reports(s.play)
            s.play.evict()
            s.play.wait(lambda t: t.get("run", {}).get("attempt") == 2, "attempt 2")
            drive(s.play)
            assert {"a-execution", "a-profiling-2"} <= {j["metadata"]["name"] for j in s.play.jobs()}, s.play.jobs()
            s.never_both()
            s.relisted()
            s.goes()

    def deleted(_):
        with Stage() as s:
            reports(s.play)
            pod = s.play.pod()["metadata"]["name"]
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/pods/{pod}", {"gracePeriodSeconds": 0}))
            s.play.wait(lambda t: t.get("run", {}).get("attempt", 0) >= 2, "another attempt")
            drive(s.play)
            s.never_both()
            s.goes()

    def for_good(_):
        with Stage(retries=0) as s:
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
        with Stage() as s:
            reports(s.play)
            ok(world.api.delete(f"/apis/batch/v1/namespaces/{s.ns}/jobs/a-profiling", BACKGROUND))
            status = s.play.phase("Failed")
            assert stalled(status)[0] == "JobDeleted" and not s.play.execution(), status
            s.goes()

    def execution(_):
        with Stage() as s:
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
        with Stage() as s:
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
        with Stage() as s:
            reports(s.play)
            s.play.succeed('{"boundType": "mixed", "metrics": {"a": 12.5, "b": "x", "c": 3}}')
            profile = wait(lambda: (s.play.profile() or {}).get("status", {}).get("boundType") and s.play.profile(), PATIENCE, "the profile")
            assert profile["status"]["metrics"] == {"a": "12.5", "b": "x", "c": "3"}, profile
        with Stage() as s:
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
        with Stage(before=before) as s:
            s.play.wait(lambda t: condition(t, "Stalled").get("reason") == "NameConflict", "NameConflict")
            assert s.play.object(f"configmaps/{name}") == s.made_by_stranger
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/configmaps/{name}"))
            drive(s.play)
            s.never_both()
            s.goes()

    def job(name):
        def before(s):
            ok(world.api.post(f"/apis/batch/v1/namespaces/{s.ns}/jobs", {"metadata": {"name": name}, **JOB}))
        with Stage(before=before) as s:
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
    with Stage(before=before) as s:
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
        reference = Reference()
        diag(f"{reference.writes} writes; {reference.made}")
        main(*[t for t in TESTS if not names or t.__name__ in names])
