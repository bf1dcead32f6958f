#!/usr/bin/python3
"""Faults that concern a controller, by their numbers in the catalogue, each beside the same scenario without the fault.

    faults.py [NAME...]            on the embedded engine
    faults.py cluster [NAME...]    on a real control plane

The scenario: a request is made, its pod runs, reports three states, succeeds with an output, the deployment is made and
becomes successful. Afterwards, in every case:

    I1  the end state is that of the run without faults (without uids, times, versions and what comes from them)
    I2  every object was created and deleted as often as there; never two live Jobs, none made twice
    I3  a restarted operator, which lists all anew, finds nothing to write
    I4  what belongs to strangers is untouched, though it has our labels
    I5  deleting the request leaves nothing but the deployment, which outlives it by design
    I6  every status on the way was true: see check_status() in dgdr_record.py

All cases run side by side, each in a namespace of its own with an operator of its own.
"""

import concurrent.futures
import contextlib
import functools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import DGDRS, DGDS, GROUP, PATIENCE, SPEC, World, condition, now, ok
from dgdr_record import KINDS, Recorder, difference, of_one_attempt
from fault_proxy import FaultProxy
from sonde_test import ControlPlane, Engine, diag, main, wait

AT_ONCE = 6  # stages that are busy
REST = 1.0  # how long nothing happens, where nothing must
BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
REASONS = ["Initialized", "ProfilingJobCreated", "SpecGenerated", "DeploymentCreated", "DeploymentReady"]


# --- the scenario --------------------------------------------------------------------------------------------------------


def gets_a_job(play):
    play.job()
    play.wait(lambda s: s.get("state") == "Profiling", "Profiling")


def runs(play):
    play.pod_runs()
    play.wait(lambda s: condition(s, "Progressing").get("reason") in ("Running", "Profiling"), "a running pod")


def reports(phase, step):
    def report(play):
        play.report({"phase": phase, "message": f"in {phase}", "progress": {"currentStep": step, "totalSteps": 4}})
        play.wait(lambda s: s.get("profilingPhase") == phase, phase)
    report.__name__ = f"reports_{phase}"
    return report


def succeeds(play):
    play.succeed()
    play.wait(lambda s: s.get("deployment", {}).get("created"), "a deployment")


def is_deployed(play):
    play.deployment_state("successful")
    play.wait(lambda s: s.get("state") == "Ready" and condition(s, "Ready").get("status") == "True", "Ready")


STEPS = (gets_a_job, runs, reports("Initializing", 1), reports("PrefillSweep", 2), reports("DecodeInterpolation", 3), succeeds,
         is_deployed)


def drive(play, start=0, stop=len(STEPS)):
    for step in STEPS[start:stop]:
        step(play)


# --- the stage -----------------------------------------------------------------------------------------------------------

busy = threading.Semaphore(AT_ONCE)


def strangers(ns):
    """Things with our labels that are not ours: without an owner, with another one, of another request."""
    labels = {"app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "dgdr"}
    made = [("configmaps", {"metadata": {"name": "stranger", "labels": labels}})]
    first = ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", made[0][1]))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stranger", "uid": first["metadata"]["uid"], "controller": True}
    found = [("configmaps", first)]
    for kind, body in (
            ("configmaps", {"metadata": {"name": "dgdr-status-stranger", "labels": labels, "ownerReferences": [owner]}}),
            ("serviceaccounts", {"metadata": {"name": "profile-stranger", "labels": labels}}),
            (DGDS, {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}},
                    "metadata": {"name": "stranger-dgd", "labels": {**labels, "sonde.dev/request": first["metadata"]["uid"]}}})):
        found.append((kind, ok(world.api.post(f"{KINDS[kind]}/namespaces/{ns}/{kind}", body))))
    return found


STRANGERS = ("stranger", "dgdr-status-stranger", "profile-stranger", "stranger-dgd")


class Stage:
    """A namespace with strangers in it, an operator (behind a proxy, with SCRIPT or SEED) and a request; I1 to I6 in finish()."""

    def __init__(self, script=None, arguments=(), seed=None, patient=False, operator=True, before=None, **spec):
        self._before = before  # called before the operator starts and the request is made
        self._stack = contextlib.ExitStack()
        self._script, self._seed, self._arguments = script, seed, arguments
        self._patient, self._operator = patient, operator
        self.spec = {"autoApply": True, **spec}
        self.proxy = self.operator = self.play = None

    def __enter__(self):
        with self._stack:
            if not self._patient:  # one that mostly waits takes nobody's place
                self._stack.enter_context(busy)
            self.ns = self._stack.enter_context(world.server.namespace("fault"))
            self.record = recorder.of(self.ns)
            self.strangers = strangers(self.ns)
            if self._script is not None or self._seed is not None:
                self.proxy = self._stack.enter_context(FaultProxy(world.server, self._script, self._seed))
            if self._before:
                self._before(self)
            if self._operator:
                self.start(*self._arguments)
            self.play = self.request()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def start(self, *arguments, **more):
        kubeconfig = self.proxy.kubeconfig if self.proxy else None
        self.operator = self._stack.enter_context(world.operator(self.ns, *arguments, kubeconfig=kubeconfig, **more))

    def request(self, name="a"):
        return world.create(self.ns, name, SPEC, **self.spec)

    def path(self, kind, name=""):
        return f"{KINDS[kind]}/namespaces/{self.ns}/{kind}" + (f"/{name}" if name else "")

    @contextlib.contextmanager
    def kept_alive(self, kill=lambda: False):
        """Starts the operator again when it dies by itself, or when KILL says that it is to die."""
        over = threading.Event()
        failed = []

        def keep():
            try:
                while self.operator.process.popen.poll() is None and not kill() and not over.wait(0.02):
                    pass
                if not over.is_set():
                    self.operator.kill()
                    self.operator.start()
            except Exception as e:  # pylint: disable=broad-except
                failed.append(e)
        keeper = threading.Thread(target=keep)
        keeper.start()
        try:
            yield
        finally:
            over.set()
            keeper.join()
        assert not failed, failed

    def relist(self):
        """I3: an operator that knows nothing looks at everything, and has nothing to write."""
        self.operator.process.stop(PATIENCE)
        self.operator.start()
        self.operator.process.expect(r"^idle after", PATIENCE)
        time.sleep(REST / 2)
        writes = [line for line in self.operator.process.lines if line.startswith("idle")]
        assert writes == ["idle after 0 writes"], (writes, self.record.tail())

    def reasons(self, play=None):
        return sorted(e["reason"] for e in (play or self.play).events())

    def converged(self, play=None):
        """I2 (Jobs), I3, I4, I6."""
        play = play or self.play
        self.record.quiet(world.api, REST)
        before = self.record.listed(world.api)
        if self.proxy:
            self.proxy.off()
        self.relist()
        assert self.record.listed(world.api) == before, (before, self.record.tail())
        self.record.check_jobs(play.uid)
        self.record.check_status(play.uid)
        self.record.check_unchanged(self.strangers)

    def same_end(self, play=None, mask=lambda state: state, rename=None, extra=None, reasons=()):
        """I1 and I2. EXTRA: counts that the fault adds by itself; REASONS: events beside the reference's, or "some"."""
        play = play or self.play
        differs = difference(mask(REFERENCE.state), mask(self.record.end_state(play.uid, rename)))
        assert not differs, "\n".join(differs)
        counts = dict(REFERENCE.counts)
        for key, n in (extra or {}).items():
            counts[key] = counts.get(key, 0) + n
        found = self.record.counts(play.uid, rename)
        assert found == counts, "\n".join(difference(counts, found))
        if reasons == "some":  # an event may be lost with its process, but is never there twice
            told = self.reasons(play)
            assert len(told) == len(set(told)) and set(told) <= set(REASONS), told
        elif reasons != "any":
            wait(lambda: self.reasons(play) == sorted(REASONS + list(reasons)), 10, lambda_text(lambda: self.reasons(play)))

    def goes(self, play=None, but=()):
        """I5: the request is deleted, and all that it owned goes."""
        play = play or self.play
        play.delete()
        kept = STRANGERS + ("a-dgd", "b-dgd") + tuple(but)
        wait(lambda: not {name for _, name in self.record.listed(world.api)} - set(kept), PATIENCE,
             lambda_text(lambda: f"nothing to be left, but {sorted(self.record.listed(world.api))}"))
        self.record.quiet(world.api, 0.3)
        self.record.check_unchanged(self.strangers)

    def finish(self, **more):
        self.converged()
        self.same_end(**more)
        self.goes()

    def touch(self, key="touched"):
        """Changes something that means nothing."""
        ok(world.api.patch(self.play.path, {"metadata": {"annotations": {key: str(time.monotonic())}}}))

    def stalls(self, reason, play=None):
        """The request says REASON, in one event, and then nothing more is written."""
        play = play or self.play
        status = play.wait(lambda s: condition(s, "Stalled").get("reason") == reason, reason)
        assert condition(status, "Stalled")["status"] == "True" and condition(status, "Ready")["status"] == "False", status
        wait(lambda: len(play.events(reason)) == 1, 10, f"an event {reason}")
        self.record.quiet(world.api, REST)
        assert len(play.events(reason)) == 1, play.events(reason)
        return condition(play.status(), "Stalled")["message"]

    def neighbour(self, **spec):
        """Another request goes its way, from beginning to end."""
        self.spec.update(spec)
        other = self.request("b")
        drive(other, stop=len(STEPS) if self.spec["autoApply"] else 5)
        if not self.spec["autoApply"]:
            other.succeed()
            other.state("Ready")
        other.delete()
        wait(lambda: not any(i["metadata"]["name"].endswith("-b") for i in self.record.now().values()), PATIENCE, "the other is gone")


class lambda_text:  # pylint: disable=invalid-name
    """A text that is made when it is printed."""

    def __init__(self, make):
        self._make = make

    def __str__(self):
        return self._make()


class Reference:
    """The scenario without a fault, twice: what differs between two such runs is not compared."""

    def __init__(self):
        self.state, self.counts, writes = self._run()
        state, counts, more = self._run()
        assert (state, counts) == (self.state, self.counts), "\n".join(
            difference(self.state, state) + difference(self.counts, counts))
        self.writes = max(writes, more)  # two things that happen at once may be told at once

    @staticmethod
    def _run():
        with Stage() as s:
            drive(s.play)
            s.record.quiet(world.api, REST)
            writes = int(s.operator.process.expect(r"^idle after (\d+) writes", 10, len(s.operator.process.lines) - 1)[1])
            state, counts = s.record.end_state(s.play.uid), s.record.counts(s.play.uid)
            assert s.reasons() == sorted(REASONS), s.reasons()
            seen = s.record.writes(s.play.uid)
            assert writes == seen + len(REASONS), f"{writes} writes, of which {seen} and {len(REASONS)} events are to be seen"
            s.converged()
            s.goes()
            return state, counts, writes


def side_by_side(variants, run):
    """RUN(variant) for all of them; all failures are told."""
    failed = []

    def one(variant):
        try:
            run(variant)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(f"{variant}: {e!r}")
            diag(f"{variant}: {e}")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, variants))
    assert not failed, "; ".join(failed)


# --- F1, F2: writes that are not known to have happened ----------------------------------------------------------------------


def f01_killed_at_every_write():
    """F1: the operator is killed before every write, and after each took effect: the same end, nothing twice"""
    killed = []

    def run(stage, kill=lambda: False):
        first = stage.operator.process
        with stage.kept_alive(kill):
            drive(stage.play)
            stage.record.quiet(world.api, 0.3)
        killed.append(first is not stage.operator.process)
        stage.finish(reasons="some")

    def before(k):
        with Stage(arguments=("--kill-at", str(k))) as s:
            run(s)

    def after(k):
        with Stage(script=f"match WRITE * nth={k} -> delay-answer ms=60000\n") as s:
            # The proxy logs a write when the server has answered it.
            run(s, lambda: s.proxy.count("delay-answer") and sum(e["class"] == "write" and e["status"] >= 200 for e in s.proxy.log()) >= k)

    side_by_side([(f, k) for k in range(1, REFERENCE.writes + 1) for f in (before, after)], lambda v: v[0](v[1]))
    diag(f"{REFERENCE.writes} writes, {sum(killed)} times killed")
    assert sum(killed) >= 2 * REFERENCE.writes - 4, killed  # a write less is needed where two things happen at once


def f02_answers_lost():
    """F2: the answer to every write is lost in turn: what was made is known as ours, and not made again"""
    def lost(k):
        with Stage(script=f"match WRITE * nth={k} -> lose\n") as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.count("lose") <= 1, s.proxy.faults()
    side_by_side(range(1, REFERENCE.writes + 1), lost)


# --- F3: strangers ---------------------------------------------------------------------------------------------------------

TAKEN = {  # names that a stranger may have
    "dgdr-status-a": ("configmaps", {}), "dgdr-output-a": ("configmaps", {}), "serviceaccount": ("serviceaccounts", {}),
    "role": ("roles", {"rules": []}),
    "rolebinding": ("rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"}}),
    "a-dgd": (DGDS, {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}}}),
    "a-planner-data": ("configmaps", {}),
    "job": ("jobs", {"spec": {"parallelism": 0, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}),
}


def f03_names_taken():
    """F3: a stranger has the name of each object in turn: NameConflict, told once, the stranger untouched, until it goes"""
    def taken(what):
        kind, body = TAKEN[what]
        name = what if "-" in what else "profile-a"
        made = []

        def before(stage):
            body_ = {**body, "metadata": {"name": name, "labels": {"sonde.dev/controller": "dgdr"}}}
            made.append(ok(world.api.post(stage.path(kind), body_)))

        def untouched(stage):
            found = stage.record.now()[kind, name]
            assert found["metadata"]["uid"] == made[0]["metadata"]["uid"], found
            assert kind == "jobs" or found["metadata"]["resourceVersion"] == made[0]["metadata"]["resourceVersion"], found
            assert found.get("spec", {}).get("parallelism", 0) == 0 and "ownerReferences" not in found["metadata"], found

        def go_away(stage):
            stage.stalls("NameConflict")
            untouched(stage)
            ok(world.api.delete(stage.path(kind, name), BACKGROUND))
        with Stage(before=before) as s:
            if kind == "jobs":  # another name is taken instead
                drive(s.play)
                s.converged()
                untouched(s)
                s.same_end(rename=(r"profile-a-[0-9a-z]{8}\b", "profile-a"), mask=without_job_names)
                s.goes(but=("profile-a",))
            elif what == "a-planner-data":  # the profiler's own wish, which is refused
                drive(s.play)
                s.converged()
                untouched(s)
                assert len(s.play.events("DocumentRefused")) == 1, s.reasons()
                s.goes(but=(name,))
            elif kind == DGDS:
                drive(s.play, stop=5)
                s.play.succeed()
                go_away(s)
                succeeds_later(s.play)
                s.finish(reasons=["NameConflict"])
            else:
                go_away(s)
                drive(s.play)
                s.finish(reasons=["NameConflict"])
    side_by_side(TAKEN, taken)


def without_job_names(state):
    """The access objects have the wanted name, whatever the Job's."""
    return state


def succeeds_later(play):
    play.wait(lambda s: s.get("deployment", {}).get("created"), "a deployment")
    is_deployed(play)


# --- F4 to F10: what the server may say --------------------------------------------------------------------------------------


def f04_conflicts():
    """F4: 409 Conflict once, at every second status write, and for ever: tried again with backoff, others unaffected"""
    def some(when):
        with Stage(script=f"match PATCH *deploymentrequests/a/status* {when} -> answer 409\n") as s:
            drive(s.play)
            s.finish()
            assert s.proxy.count("answer-409") > 0, s.proxy.faults()

    def for_ever(_):
        with Stage(script="match PATCH *deploymentrequests/a/status* always -> answer 409\n") as s:
            s.neighbour()
            tries = s.proxy.count("answer-409")
            assert 2 <= tries <= 30, tries
            assert "status" not in s.play.get(), s.play.get()
            s.proxy.off()
            drive(s.play)
            s.finish()
    side_by_side([(some, "nth=1"), (some, "nth=4"), (some, "every=2"), (for_ever, "")], lambda v: v[0](v[1]))


def f05_other_managers():
    """F5: another manager has fields in status and children: ours are taken back, its own stay, and nobody fights"""
    with Stage() as s:
        drive(s.play, stop=3)
        body = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "a"}}
        mine = {"type": "example.com/Approved", "status": "True", "reason": "Asked", "message": "m", "lastTransitionTime": now()}
        path = f"{s.play.path}/status?fieldManager=other&force=true"
        apply = "application/apply-patch+yaml"
        ok(world.api.patch(path, {**body, "status": {"state": "Pending", "profilingPhase": "Complete", "conditions": [mine]}}, apply))
        s.play.wait(lambda st: st["state"] == "Profiling" and st["profilingPhase"] == "Initializing", "what is ours")
        ok(world.api.patch(s.path("configmaps", "dgdr-output-a"), {"metadata": {"labels": {"theirs": "stays"}}}))
        drive(s.play, start=3)
        s.record.quiet(world.api, REST)
        s.relist()
        assert condition(s.play.status(), "example.com/Approved") == mine, s.play.status()
        assert s.play.object("configmaps/dgdr-output-a")["metadata"]["labels"]["theirs"] == "stays"
        ok(world.api.patch(path, {**body, "status": {"conditions": [{**mine, "status": "False"}]}}, apply))
        s.record.quiet(world.api, REST)
        assert condition(s.play.status(), "example.com/Approved")["status"] == "False", s.play.status()
        s.record.check_jobs(s.play.uid)
        s.goes()


def f06_too_many_requests():
    """F6: 429 with and without Retry-After, of 1 s and 32 s: waited for as asked, while the lease is renewed"""
    def some(script):
        with Stage(script=script, patient=True) as s:
            drive(s.play)
            s.finish()
            assert s.proxy.count("answer-429") > 0, s.proxy.faults()

    def long(_):
        with Stage(script="match POST *jobs* nth=1 -> answer 429 retry-after=32\n", patient=True,
                   arguments=("--lease", "dgdr", "--lease-duration", "6s")) as s:
            wait(lambda: s.proxy.count("answer-429"), PATIENCE, "a refusal")
            began = time.monotonic()
            lease = f"/apis/coordination.k8s.io/v1/namespaces/{s.ns}/leases/dgdr"
            before = ok(world.api.get(lease))["spec"]["renewTime"]
            s.play.job()
            waited = time.monotonic() - began
            assert waited > 30, f"after {waited} s"
            after = ok(world.api.get(lease))["spec"]
            assert after["renewTime"] > before and after["leaseTransitions"] <= 1, (before, after)
            assert not any(line == "lost" for line in s.operator.process.lines)
            drive(s.play)
            s.record.quiet(world.api, REST)
            s.same_end()
            s.goes()
    side_by_side([(long, ""), (some, "match WRITE *namespaces/* every=5 -> answer 429 retry-after=1\n"),
                  (some, "match WRITE *namespaces/* every=2 -> answer 429\n"),
                  (some, "match GET *namespaces/* every=2 -> answer 429\n")], lambda v: v[0](v[1]))


def f07_server_errors():
    """F7: 500, 502, 503, 504 once, ten times and for ever, with HTML or no body: tried again with backoff"""
    def some(script):
        with Stage(script=script, patient=True) as s:
            drive(s.play)
            s.finish()
            assert s.proxy.stats()["total"] > 0

    def for_ever(what):
        with Stage(script=f"match WRITE * always -> answer {what}\n", patient=True) as s:
            time.sleep(4)
            tries = s.proxy.stats()["total"]
            assert 2 <= tries <= 60, tries
            s.proxy.off()
            drive(s.play)
            s.finish()
    ten = "".join(f"match POST *configmaps* nth={i} -> answer 500\n" for i in range(1, 11))
    side_by_side([(some, "match WRITE * every=5 -> answer 500\n"), (some, "match WRITE * every=5 -> answer 502 body=html\n"),
                  (some, "match WRITE * every=5 -> answer 503 body=empty\n"), (some, "match WRITE * every=5 -> answer 504\n"),
                  (some, "match * *namespaces/* every=7 -> answer 502 body=html\n"), (some, ten),
                  (for_ever, "500"), (for_ever, "503 body=html")], lambda v: v[0](v[1]))


def f08_refused_for_good():
    """F8: 413, 422 and etcd's 500 \"request is too large\": told on the request, not tried again until something changes"""
    def refused(variant):
        answer, reason, path = variant
        with Stage(script=f"match POST *{path}* always -> answer {answer}\n") as s:
            s.stalls(reason)
            tries = s.proxy.stats()["total"]
            time.sleep(2)
            assert tries <= 2 and s.proxy.stats()["total"] == tries, s.proxy.stats()  # to tell it is a change, too
            s.proxy.off()
            s.touch()
            drive(s.play)
            s.finish(reasons=[reason], mask=untouched)

    def status_refused(variant):
        answer, k = variant
        with Stage(script=f"match PATCH *deploymentrequests/a/status* nth={k} -> answer {answer}\n") as s:
            drive(s.play)
            s.finish(reasons="any")
    side_by_side([(refused, ("413", "TooLarge", "jobs")), (refused, ("422", "Refused", "jobs")),
                  (refused, ("500 body=too-large", "TooLarge", "configmaps")),
                  (status_refused, ("422", 2)), (status_refused, ("413", 4))], lambda v: v[0](v[1]))


def untouched(state):
    """Without the annotations of touch()."""
    for (kind, _), item in state.items():
        if kind == DGDRS:
            item["metadata"].pop("annotations", None)
    return state


def f09_unauthorized():
    """F9: 401 once: tried again; from the beginning and for ever: not ready, with backoff, until it is let in"""
    def once(k):
        with Stage(script=f"match WRITE * nth={k} -> answer 401\n") as s:
            drive(s.play)
            s.finish()

    def for_ever(_):
        with Stage(script="match * * always -> answer 401\n", operator=False, patient=True) as s:
            s.start(synced=False)
            time.sleep(4)
            tries = s.proxy.stats()["total"]
            assert 1 <= tries <= 80, tries
            assert "synced" not in s.operator.process.lines and s.operator.process.popen.poll() is None
            s.proxy.off()
            s.operator.process.expect("^synced", PATIENCE)
            drive(s.play)
            s.finish()
    side_by_side([(once, 1), (once, 5), (for_ever, "")], lambda v: v[0](v[1]))


def f10_forbidden():
    """F10: 403 on one kind alone: told with the server's sentence, others go on, and it recovers when it is granted"""
    def forbidden(variant):
        method, path, steps = variant
        with Stage(script=f"match {method} *{path}* always -> answer 403\n") as s:
            drive(s.play, stop=steps)
            if steps:
                s.play.succeed()
            message = s.stalls("Forbidden")
            assert "answered by the fault proxy" in message, message
            if steps:
                s.neighbour(autoApply=False)
            s.proxy.off()
            if steps:
                succeeds_later(s.play)
            else:
                drive(s.play)
            s.finish(reasons=["Forbidden"])
    side_by_side([("POST", "roles?", 0), ("POST", "jobs?", 0), ("POST", "dynamographdeployments?", 5)], forbidden)


def f12_namespace_terminating():
    """F12: the namespace is being deleted: nothing is made there any more, nothing holds it up, and it goes"""
    def ends(point):
        hold = {"metadata": {"name": "hold", "finalizers": ["example.com/hold"]}}
        with Stage(before=lambda stage: ok(world.api.post(stage.path("configmaps"), hold))) as s:
            drive(s.play, stop=point)
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}"))
            wait(lambda: set(s.record.now()) <= {("configmaps", "hold")}, PATIENCE, lambda_text(lambda: sorted(s.record.now())))
            s.record.quiet(world.api, REST)
            n = len(s.record.seen)
            s.operator.process.stop(PATIENCE)
            s.operator.start()
            time.sleep(REST)
            assert len(s.record.seen) == n, s.record.tail()
            s.record.check_jobs(s.play.uid)
            s.record.check_status(s.play.uid)
            assert s.record.of("configmaps", "") == []
            ok(world.api.patch(s.path("configmaps", "hold"), {"metadata": {"finalizers": None}}))
            wait(lambda: world.api.get(f"/api/v1/namespaces/{s.ns}")[0] == 404, PATIENCE, "the namespace to go")
    side_by_side([0, 1, 3, 7], ends)


# --- all of them -----------------------------------------------------------------------------------------------------------

TESTS = [value for name, value in sorted(globals().items()) if name[:1] == "f" and name[1:3].isdigit()]


def later(test, pool):
    """TEST, begun now and told when its turn comes."""
    future = pool.submit(test)

    @functools.wraps(test)
    def told():
        future.result()
    return told


if __name__ == "__main__":
    WHICH = "cluster" if "cluster" in sys.argv[1:] else "engine"
    NAMES = [name for name in sys.argv[1:] if name != "cluster"]
    with World(WHICH) as world, Recorder(world.server) as recorder:
        REFERENCE = Reference()
        diag(f"{REFERENCE.writes} writes; {REFERENCE.counts}")
        with concurrent.futures.ThreadPoolExecutor(len(TESTS)) as workers:
            main(*[later(t, workers) for t in TESTS if not NAMES or any(t.__name__.startswith(n) for n in NAMES)])
