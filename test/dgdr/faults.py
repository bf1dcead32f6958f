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
import copy
import functools
import os
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import DGDRS, DGDS, GROUP, PATIENCE, SPEC, World, condition, now, ok
from dgdr_record import KINDS, Recorder, difference, of_one_attempt
from fault_proxy import FaultProxy
from sonde_test import ROOT, ControlPlane, Engine, diag, main, wait

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
patient = threading.Semaphore(2 * AT_ONCE)  # of those that mostly wait


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
            self._stack.enter_context(patient if self._patient else busy)
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
    def kept_alive(self, kill=lambda: False, again=None):
        """Starts the operator again when it dies by itself, or when KILL says that it is to die; with AGAIN (arguments) as
        often as it does, else once. Yields the numbers of its deaths."""
        over = threading.Event()
        failed, deaths = [], []

        def keep_once():
            while self.operator.process.popen.poll() is None and not kill() and not over.wait(0.02):
                pass
            if not over.is_set():
                self.operator.kill()
                deaths.append(len(deaths))
                self.operator.start(*(again or ()), synced=False)

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

    def same_end(self, play=None, mask=lambda state: state, rename=None, extra=None, but=()):
        """I1 and I2. EXTRA: counts that the fault adds by itself; BUT: some that depend on how fast the server is."""
        play = play or self.play
        differs = difference(mask(copy.deepcopy(REFERENCE.state)), mask(self.record.end_state(play.uid, rename)))
        assert not differs, "\n".join(differs)
        counts = dict(REFERENCE.counts)
        for key, n in (extra or {}).items():
            counts[key] = counts.get(key, 0) + n
        found = {key: n for key, n in self.record.counts(play.uid, rename).items() if key not in but}
        assert found == counts, "\n".join(difference(counts, found))

    def told(self, reasons=(), play=None):
        """The events are the reference's and REASONS; "some": some of the reference's; "any": other ones as well."""
        if reasons == "some":  # an event may be lost with its process, but is never there twice
            told = self.reasons(play)
            assert len(told) == len(set(told)) and set(told) <= set(REASONS), told
        elif reasons != "any":
            wait(lambda: self.reasons(play) == sorted(REASONS + list(reasons)), 30, lambda_text(lambda: f"the events, not {self.reasons(play)}"))

    def goes(self, play=None, but=()):
        """I5: the request is deleted, and all that it owned goes."""
        play = play or self.play
        play.delete()
        kept = STRANGERS + ("a-dgd", "b-dgd") + tuple(but)
        wait(lambda: not {name for _, name in self.record.listed(world.api)} - set(kept), PATIENCE,
             lambda_text(lambda: f"nothing to be left, but {sorted(self.record.listed(world.api))}"))
        self.record.quiet(world.api, 0.3)
        self.record.check_unchanged(self.strangers)

    def finish(self, play=None, reasons=(), **more):
        self.told(reasons, play)  # first: what is still to be told goes with the process
        self.converged(play)
        self.same_end(play, **more)
        self.goes(play)

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


def each_write():
    """All of them; on a real control plane, which takes longer for everything, every fourth."""
    return range(1, REFERENCE.writes + 1, 4 if WHICH == "cluster" else 1)


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


# --- F1, F2: writes that are not known to have happened ----------------------------------------------------------------------


def f01_killed_at_every_write():
    """F1: the operator is killed before every write, and after each took effect: the same end, nothing twice"""
    killed = []

    def run(stage, kill=lambda: False, again=None):
        with stage.kept_alive(kill, again) as deaths:
            drive(stage.play)
            stage.record.quiet(world.api, 0.3)
        killed.append(len(deaths))
        stage.finish(reasons="some")

    def before(k):
        with Stage(arguments=("--kill-at", str(k))) as s:
            run(s)

    def after(k):
        with Stage(script=f"match WRITE * nth={k} -> delay-answer ms=60000\n") as s:
            # The proxy logs a write when the server has answered it.
            run(s, lambda: s.proxy.count("delay-answer") and sum(e["class"] == "write" and e["status"] >= 200 for e in s.proxy.log()) >= k)

    def before_each(_):  # every life makes four writes at most, which is what the longest way to a Job needs
        with Stage(arguments=("--kill-at", "5")) as s:
            run(s, again=("--kill-at", "5"))

    def after_each(_):
        with Stage(script="match WRITE * every=5 -> delay-answer ms=60000\n") as s:
            taken = [0]

            def kill():
                n = sum(e["fault"] == "delay-answer" and e["status"] >= 200 for e in s.proxy.log())
                more, taken[0] = n > taken[0], n
                return more
            run(s, kill, again=())

    side_by_side([(before_each, ""), (after_each, "")] + [(f, k) for k in each_write() for f in (before, after)], lambda v: v[0](v[1]))
    diag(f"{REFERENCE.writes} writes, {sum(killed)} times killed")
    assert sum(killed) >= 2 * len(each_write()) + 2, killed  # a write less is needed where two things happen at once


def f02_answers_lost():
    """F2: the answer to every write is lost in turn: what was made is known as ours, and not made again"""
    def lost(k):
        with Stage(script=f"match WRITE * nth={k} -> lose\n") as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.count("lose") <= 1, s.proxy.faults()
    side_by_side(each_write(), lost)


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

        def go_away(stage):
            stage.stalls("NameConflict")
            stage.record.check_unchanged([(kind, made[0])])
            ok(world.api.delete(stage.path(kind, name), BACKGROUND))
        with Stage(before=before) as s:
            if kind == "jobs":  # another name is taken instead
                drive(s.play)
                s.converged()
                s.record.check_unchanged([(kind, made[0])])
                s.same_end(rename=(r"profile-a-[0-9a-z]{8}\b", "profile-a"))
                s.goes(but=("profile-a",))
            elif what == "a-planner-data":  # the profiler's own wish, which is refused
                drive(s.play)
                s.converged()
                s.record.check_unchanged([(kind, made[0])])
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
                   arguments=("--lease", "dgdr", "--lease-duration", "15s")) as s:
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
            s.told()
            s.same_end()
            s.goes()
    side_by_side([(long, ""), (some, "match WRITE *namespaces/* every=5 -> answer 429 retry-after=1\n"),
                  (some, "match WRITE *namespaces/* every=5 -> answer 429\n"),
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

    def document_refused(answer):
        with Stage(script="") as s:
            drive(s.play, stop=5)
            s.proxy.script(f"match POST *configmaps* always -> answer {answer}\n")
            s.play.succeed()
            s.stalls("Refused" if answer == "422" else "TooLarge")
            assert s.play.status()["state"] == "Profiling", s.play.status()
            s.proxy.off()
            s.touch()
            succeeds_later(s.play)
            s.finish(reasons="any", mask=untouched)

    def deployment_refused(answer):
        with Stage(script=f"match POST *dynamographdeployments* always -> answer {answer}\n") as s:
            drive(s.play, stop=5)
            s.play.succeed()
            status = s.play.state("Failed")
            assert condition(status, "DeploymentReady")["reason"] == "DeploymentRejected", status
            assert s.proxy.stats()["total"] <= 2, s.proxy.stats()
            s.converged()
            s.goes()

    def status_refused(variant):
        answer, k = variant
        with Stage(script=f"match PATCH *deploymentrequests/a/status* nth={k} -> answer {answer}\n") as s:
            drive(s.play)
            s.finish(reasons="any")
    side_by_side([(refused, ("413", "TooLarge", "jobs")), (refused, ("422", "Refused", "jobs")),
                  (refused, ("500 body=too-large", "TooLarge", "configmaps")),
                  (document_refused, "422"), (document_refused, "413"), (deployment_refused, "422"), (deployment_refused, "413")]
                 + [(status_refused, ("422" if k % 2 else "413", k)) for k in range(1, 14, 4 if WHICH == "cluster" else 1)], lambda v: v[0](v[1]))


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
        path, steps = variant
        with Stage(script="") as s:
            drive(s.play, stop=steps)
            s.proxy.script(f"match POST *{path}* always -> answer 403\n")
            if steps:
                s.play.succeed()
            message = s.stalls("Forbidden")
            assert "answered by the fault proxy" in message, message
            if steps and "deployments" in path:
                s.neighbour(autoApply=False)
            s.proxy.off()
            if steps:
                succeeds_later(s.play)
            else:
                drive(s.play)
            s.finish(reasons=["Forbidden"])
    side_by_side([("roles?", 0), ("jobs?", 0), ("configmaps?", 5), ("dynamographdeployments?", 5)], forbidden)


def f12_namespace_terminating():
    """F12: the namespace is being deleted: nothing is made there any more, nothing holds it up, and it goes"""
    def ends(point):
        hold = {"metadata": {"name": "hold", "finalizers": ["example.com/hold"]}}
        with Stage(before=lambda stage: ok(world.api.post(stage.path("configmaps"), hold))) as s:
            drive(s.play, stop=point)
            ok(world.api.delete(f"/api/v1/namespaces/{s.ns}"))
            wait(lambda: set(s.record.now()) <= {("configmaps", "hold")}, PATIENCE, lambda_text(lambda: f"all to go, not {sorted(s.record.now())}"))
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


# --- F11: kinds that come and go -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def own_server():
    """A server whose CRDs may be taken away."""
    with (ControlPlane() if WHICH == "cluster" else Engine("--no-node", "--no-fsync")) as server:
        yield server


def ready_once(play):
    drive(play)
    assert len(play.jobs()) == 1, play.jobs()
    meta = play.object(f"{DGDS}/a-dgd")["metadata"]
    assert meta["labels"]["sonde.dev/request"] == play.uid, meta
    ok(play.api.delete(f"{GROUP}/namespaces/{play.ns}/{DGDS}/a-dgd"))
    play.state("DeploymentDeleted")


def f11_kinds_not_installed():
    """F11: CRDs missing at the start, removed and installed again while it runs: it waits, lives on, and goes on"""
    crds = {DGDRS: "deploy/crds/dynamographdeploymentrequests.yaml", DGDS: "test/kinds/dgd-crd.yaml"}

    def remove(which, plural):
        which.server.kubectl("delete", "crd", f"{plural}.nvidia.com")
        wait(lambda: which.api.get(f"{GROUP}/{plural}")[0] == 404, PATIENCE, f"{plural} to be gone")

    def install(which, plural):
        which.server.kubectl("apply", "-f", os.path.join(ROOT, crds[plural]))
        wait(lambda: which.api.get(f"{GROUP}/{plural}")[0] == 200, PATIENCE, f"{plural} to be served")

    def recreated(which, ns):
        def made():
            try:
                return which.create(ns, "a", SPEC, autoApply=True)
            except AssertionError:  # the kind is served a moment before it takes objects
                return None
        return wait(made, PATIENCE, "a request")

    with own_server() as server, World(WHICH, server) as own, server.namespace("kinds") as ns:
        remove(own, DGDRS)
        with own.operator(ns, synced=False) as operator:
            time.sleep(3)
            assert operator.process.popen.poll() is None, operator.process.lines
            assert not any("error" in line and "level=error" in line for line in operator.process.lines[5:]), operator.process.lines
            install(own, DGDRS)
            ready_once(recreated(own, ns))
            play = recreated_after_delete(own, ns, recreated)
            remove(own, DGDS)
            drive(play, stop=5)
            play.succeed()
            play.wait(lambda s: condition(s, "Stalled").get("reason") == "KindNotInstalled", "KindNotInstalled")
            install(own, DGDS)
            succeeds_later(play)
            remove(own, DGDRS)
            wait(lambda: not own.api.get(f"/apis/batch/v1/namespaces/{ns}/jobs")[1]["items"] or WHICH == "cluster", PATIENCE, "the Job to go")
            own.api.delete(f"{GROUP}/namespaces/{ns}/{DGDS}/a-dgd")
            install(own, DGDRS)
            ready_once(recreated(own, ns))
            assert operator.process.popen.poll() is None, operator.process.lines


def recreated_after_delete(own, ns, recreated):
    ok(own.api.delete(f"{GROUP}/namespaces/{ns}/{DGDRS}/a"))
    return recreated(own, ns)


# --- F22 to F24: what the watches show -------------------------------------------------------------------------------------------

WATCHES = (
    "match WATCH * always -> duplicate lines=1", "match WATCH * always -> duplicate lines=3", "match WATCH * always -> replay lines=4",
    "\n".join(f"match WATCH * nth={i} -> cut ms=300" for i in range(1, 11)), "\n".join(f"match WATCH * nth={i} -> cut lines=1" for i in range(1, 11)), "match WATCH * every=2 -> expired lines=2",
    "match WATCH * always -> merge", "match WATCH * always -> stall ms=1200 lines=2", "match WATCH *pods* always -> stall ms=1500 lines=1",
    "match WATCH *jobs* always -> stall ms=1500 lines=1", "match WATCH *configmaps* always -> stall ms=1500 lines=2",
    "match WATCH *deploymentrequests* always -> stall ms=1500 lines=3", "match WATCH *jobs* always -> silent lines=1 ms=2000",
    "match LIST * always -> stale",
)


def f22_watches_disturbed():
    """F22: events twice, late, out of order across kinds, in lumps or not at all, and seeded mixtures: the same end"""
    def disturbed(what):
        script, seed = (what + "\n", None) if isinstance(what, str) else (None, what)
        with Stage(script=script, seed=seed, patient=True) as s:
            drive(s.play)
            s.finish(reasons="some" if seed else ())
    side_by_side(WATCHES + (1, 2, 3), disturbed)


def f23_own_writes_late():
    """F23: own writes come to the cache late, of each kind: nothing is written twice for that"""
    def late(variant):
        kind, lines = variant
        with Stage(script=f"match WATCH *{kind}* always -> stall ms=2000 lines={lines}\n", patient=True) as s:
            drive(s.play)
            s.record.quiet(world.api, REST)
            s.told()
            s.same_end()
            log = [e for e in s.proxy.log() if e["event"] == "write"]
            assert all(e["status"] < 300 for e in log), [e for e in log if e["status"] >= 300]
            seen = s.record.writes(s.play.uid)
            assert len(log) == seen + len(REASONS), f"{len(log)} writes, of which {seen} and {len(REASONS)} events are to be seen"
            s.converged()
            s.goes()
    side_by_side([("deploymentrequests", 1), ("deploymentrequests", 2), ("deploymentrequests", 4), ("jobs", 1), ("configmaps", 1),
                  ("configmaps", 2), ("dynamographdeployments", 1)], late)


def f24_deletions_missed():
    """F24: DELETED is missed and seen only as absence in a list: of ConfigMap, Job, deployment and request"""
    def missed(variant):
        kind, name, steps, then = variant
        with Stage(script=f"match WATCH */{kind}?* always -> cut ms=1500\n") as s:
            drive(s.play, stop=steps)
            s.proxy.script(f"match WATCH */{kind}?* always -> answer 503\nmatch LIST */{kind}?* always -> answer 503\n")
            faults = s.proxy.count("answer-503")
            wait(lambda: s.proxy.count("answer-503") > faults, PATIENCE, "the operator to be blind")
            ok(world.api.delete(s.path(kind, name), BACKGROUND))
            wait(lambda: (kind, name) not in s.record.now(), PATIENCE, "it to be gone")
            time.sleep(0.3)
            s.proxy.script(f"match WATCH */{kind}?* nth=1 -> expired\n")
            then(s)

    def made_again(s):
        wait(lambda: s.play.object("configmaps/dgdr-status-a"), PATIENCE, "another ConfigMap")
        drive(s.play, start=3)
        extra = {("create", "configmaps", "dgdr-status-a"): 1, ("delete", "configmaps", "dgdr-status-a"): 1}
        s.finish(extra=extra)

    def ends(state, reason):
        def check(s):
            status = s.play.state(state)
            assert condition(status, "Ready")["reason"] == reason, status
            s.converged()
            s.goes()
        return check

    def nothing_left(s):
        wait(lambda: {name for _, name in s.record.listed(world.api)} == set(STRANGERS), PATIENCE, "nothing to be left")
        s.record.quiet(world.api, REST)
        s.record.check_jobs(s.play.uid)
        s.record.check_unchanged(s.strangers)
    side_by_side([("configmaps", "dgdr-status-a", 3, made_again), ("jobs", "profile-a", 3, ends("Failed", "JobDeleted")),
                  (DGDS, "a-dgd", 7, ends("DeploymentDeleted", "DeploymentDeleted")), (DGDRS, "a", 3, nothing_left)], missed)


# --- F25, F27: the same name again -------------------------------------------------------------------------------------------------

HASHED = (r"profile-a-[0-9a-z]{8}\b", "profile-a")


def drive_after_another(s, play):
    """Where the one before has left its deployment, which outlives it, that must go first."""
    old = s.play.object(f"{DGDS}/a-dgd")
    drive(play, stop=5)
    play.succeed()
    if old:
        s.stalls("NameConflict", play)
        assert s.play.object(f"{DGDS}/a-dgd")["metadata"]["uid"] == old["metadata"]["uid"]
        ok(world.api.delete(s.path(DGDS, "a-dgd")))
    succeeds_later(play)


def not_of(play, record):
    """Nothing of another request has ever become PLAY's."""
    for _, _, item in record.seen:
        owners = {o["uid"] for o in item["metadata"].get("ownerReferences", [])}
        assert play.uid not in owners or len(owners) == 1, item


def f25_recreated():
    """F25: deleted and created again under the same name, at every point: the new one is new, and adopts nothing"""
    def recreated(point):
        with Stage() as s:
            drive(s.play, stop=point)
            s.play.delete()
            play = s.request()
            assert play.uid != s.play.uid
            drive_after_another(s, play)
            s.finish(play, rename=HASHED, reasons="any")
            not_of(play, s.record)
    side_by_side(range(len(STEPS) + 1), recreated)


def f27_job_names():
    """F27: a Job's name is never used twice within a request; beside an old Job that lingers another name is taken"""
    def attempts(_):
        with Stage() as s:
            drive(s.play, stop=2)
            s.play.edit(suspend=True)
            s.play.wait(lambda st: condition(st, "Suspended").get("status") == "True" and st["state"] == "Pending", "a rest")
            wait(lambda: not s.play.jobs(), PATIENCE, "the Job to go")
            s.play.edit(suspend=False)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            drive(s.play, stop=2)
            s.play.evict()
            s.play.wait(lambda st: st["run"]["attempt"] == 3, "attempt 3")
            drive(s.play)
            s.converged()
            names = [name for what, kind, name in s.record.counts(s.play.uid) if what == "create" and kind == "jobs"]
            assert names == ["profile-a", "profile-a-2", "profile-a-3"], names
            s.goes()

    def lingering(_):
        with Stage() as s:
            drive(s.play, stop=2)
            job = s.path("jobs", "profile-a")
            ok(world.api.patch(job, {"metadata": {"finalizers": ["example.com/hold"]}}))
            s.play.delete()
            play = s.request()
            drive_after_another(s, play)
            old = ok(world.api.get(job))
            assert old["metadata"]["ownerReferences"][0]["uid"] == s.play.uid, old
            ok(world.api.patch(job, {"metadata": {"finalizers": None}}))
            s.finish(play, rename=HASHED, reasons="any")
            not_of(play, s.record)
    side_by_side([attempts, lingering], lambda f: f(None))


# --- F26: the Job --------------------------------------------------------------------------------------------------------------------


def attempts_more(n, alive=True):
    """What N attempts more leave. ALIVE: their Jobs had to be deleted, with their pods."""
    extra = {("create", "jobs", "profile-a"): n, ("create", "pods", "profile-a-"): n}
    return {**extra, ("delete", "jobs", "profile-a"): n, ("delete", "pods", "profile-a-"): n} if alive and n else extra


NUMBERED = (r"profile-a-[2-9]\b", "profile-a")


def job_deleted(s):
    """deleted by somebody while it runs"""
    drive(s.play, stop=3)
    ok(world.api.delete(s.path("jobs", "profile-a"), BACKGROUND))
    fails(s, "JobDeleted")


def job_expired(s):
    """deleted by its TTL after the end"""
    drive(s.play)
    ok(world.api.delete(s.path("jobs", "profile-a"), BACKGROUND))
    wait(lambda: not s.play.jobs(), PATIENCE, "the Job to go")
    s.converged()
    assert s.play.status()["state"] == "Ready"
    s.goes()


def job_suspended(s):
    """its own suspend set by somebody: not relied upon"""
    drive(s.play, stop=3)
    ok(world.api.patch(s.path("jobs", "profile-a"), {"spec": {"suspend": True}}))
    drive(s.play, start=3)

    def mask(state):
        state["jobs", "profile-a"]["spec"].pop("suspend", None)
        return state
    s.finish(mask=mask)


def job_completes_unseen(s):
    """complete before anybody looks again"""
    drive(s.play, stop=5)
    s.operator.kill()
    s.play.succeed()
    wait(lambda: any(c["type"] == "Complete" for c in s.play.jobs()[0]["status"].get("conditions", [])), PATIENCE, "complete")
    s.operator.start()
    succeeds_later(s.play)
    s.finish(reasons="some")


def job_fails(s):
    """its pod fails, and it may not make another"""
    drive(s.play, stop=3)
    s.play.fail()
    status = fails(s, "WorkloadFailed")
    assert status["profilingPhase"] == "Failed" and status["profilingProgress"]["failedPhase"] == "Initializing", status


def job_too_late(s):
    """spec.timeout passes"""
    s.play.edit(timeout="3s")
    drive(s.play, stop=2)
    fails(s, "DeadlineExceeded")
    assert not s.play.jobs() or WHICH == "cluster", s.play.jobs()


def pod_evicted(s):
    """evicted: another attempt"""
    drive(s.play, stop=3)
    s.play.evict()
    s.play.wait(lambda st: st["run"]["attempt"] == 2, "another attempt")
    s.play.sequence = 0
    drive(s.play)

    def mask(state):
        return {key: item for key, item in of_one_attempt(state).items() if key[0] not in ("jobs", "pods")}
    # The first Job is deleted, with its pod, if the server has not seen yet that it has failed.
    s.finish(mask=mask, rename=NUMBERED, extra=attempts_more(1, alive=False), reasons=["Retrying"],
             but=(("delete", "jobs", "profile-a"), ("delete", "pods", "profile-a-")))


def image_missing(s):
    """the image cannot be pulled, and then can"""
    gets_a_job(s.play)
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
    there = s.play._containers(waiting, waiting)  # pylint: disable=protected-access

    def tell():  # until a scheduler, which finds no node, does not say otherwise any more
        if condition(s.play.pod()["status"], "PodScheduled").get("status") != "True":
            s.play.pod_status(phase="Pending", conditions=[{"type": "PodScheduled", "status": "True"}], containerStatuses=there)
        told = s.play.status()
        return told if condition(told, "Progressing").get("reason") == "ImagePullFailed" else None
    status = wait(tell, PATIENCE, "ImagePullFailed", every=0.3)
    assert "Back-off pulling image" in condition(status, "Progressing")["message"], status
    drive(s.play)
    s.finish()


def job_controller_late(s):
    """no pod for a while"""
    status = s.play.wait(lambda st: condition(st, "Progressing").get("reason") == "PodNotCreated", "PodNotCreated")
    assert "quota" in condition(status, "Progressing")["message"], status
    ok(world.api.delete(f"/api/v1/namespaces/{s.ns}/resourcequotas/none"))
    drive(s.play)
    s.finish()


def no_pods(stage):
    ok(world.api.post(f"/api/v1/namespaces/{stage.ns}/resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}))
    if WHICH == "cluster":  # it counts from when its controller has seen it
        wait(lambda: ok(world.api.get(f"/api/v1/namespaces/{stage.ns}/resourcequotas/none")).get("status", {}).get("hard"), PATIENCE, "a quota")


def fails(s, reason):
    status = s.play.state("Failed")
    assert condition(status, "Stalled")["reason"] == reason, status
    assert status["run"]["outcome"] == "Failed" and status["run"]["reason"] == reason, status
    s.converged()
    s.goes()
    return status


JOBS = (job_deleted, job_expired, job_suspended, job_completes_unseen, job_fails, job_too_late, pod_evicted, image_missing)


def f26_jobs():
    """F26: what becomes of a Job: deleted, expired, suspended, complete unseen, failed, too late, evicted, without image or pod"""
    def fate(case):
        late = case is job_controller_late
        with Stage(before=no_pods if late else None, patient=late) as s:
            case(s)
    side_by_side(JOBS + (job_controller_late,), fate)


# --- F28, F29: what people do to our objects --------------------------------------------------------------------------------------------


def f28_config_maps_changed():
    """F28: a ConfigMap of ours is edited, deleted, loses labels or owner, is made immutable: repaired or told, never lost"""
    status, output = "dgdr-status-a", "dgdr-output-a"

    def change(s, name, patch):
        ok(world.api.patch(s.path("configmaps", name), patch))

    def edited(s):
        change(s, status, {"data": {"status.json": "{broken", "attempt": "many"}})
        s.play.wait(lambda st: condition(st, "Reporting").get("status") == "False", "Reporting=False")
        drive(s.play, start=3)
        s.finish(reasons="any")

    def deleted(name):
        def run(s):
            before = s.play.object(f"configmaps/{name}")["metadata"]["uid"]
            ok(world.api.delete(s.path("configmaps", name)))
            wait(lambda: (s.play.object(f"configmaps/{name}") or {"metadata": {"uid": before}})["metadata"]["uid"] != before,
                 PATIENCE, "another one")
            drive(s.play, start=3)
            s.finish(extra={("create", "configmaps", name): 1, ("delete", "configmaps", name): 1}, reasons="any")
        return run

    def unlabelled(name):
        def run(s):
            change(s, name, {"metadata": {"labels": None}})
            wait(lambda: s.play.object(f"configmaps/{name}")["metadata"].get("labels", {}).get("sonde.dev/controller"), PATIENCE, "labels")
            drive(s.play, start=3)
            s.finish(reasons="any")
        return run

    def disowned(name):
        def run(s):
            owners = s.play.object(f"configmaps/{name}")["metadata"]["ownerReferences"]
            change(s, name, {"metadata": {"ownerReferences": None}})
            s.stalls("NameConflict")
            change(s, name, {"metadata": {"ownerReferences": owners}})
            drive(s.play, start=3)
            s.finish(reasons=["NameConflict"])
        return run

    def immutable(s):
        change(s, status, {"immutable": True})
        code, _ = world.api.patch(s.path("configmaps", status), {"data": {"sequence": "99"}})
        assert code == 422, code  # the relay cannot tell any more
        s.play.output()
        s.play.pod_ends(0)
        status_ = s.play.wait(lambda st: st.get("deployment", {}).get("created"), "a deployment")
        assert condition(status_, "Reporting")["status"] == "False", status_
        is_deployed(s.play)
        s.converged()
        s.goes()

    def after_the_end(s):
        drive(s.play, start=3)
        change(s, output, {"metadata": {"labels": None}})
        s.record.quiet(world.api, REST)
        ok(world.api.delete(s.path("configmaps", output)))
        s.converged()
        assert s.play.status()["state"] == "Ready"
        s.goes()

    def run(case):
        with Stage() as s:
            drive(s.play, stop=3)
            case[1](s)
    side_by_side([("edited", edited), ("status deleted", deleted(status)), ("output deleted", deleted(output)),
                  ("status unlabelled", unlabelled(status)), ("output unlabelled", unlabelled(output)),
                  ("status disowned", disowned(status)), ("output disowned", disowned(output)), ("immutable", immutable),
                  ("after the end", after_the_end)], run)


def f29_deleted_by_force():
    """F29: the request is deleted while nobody looks, by force, or held by a finalizer that is taken away by hand: all goes"""
    def unseen(point):
        with Stage() as s:
            drive(s.play, stop=point)
            s.operator.kill()
            ok(world.api.delete(f"{s.play.path}?gracePeriodSeconds=0"))
            s.operator.start()
            gone(s)

    def gone(s):
        wait(lambda: {name for _, name in s.record.listed(world.api)} <= set(STRANGERS + ("a-dgd",)), PATIENCE, "nothing to be left")
        s.record.quiet(world.api, REST)
        s.record.check_jobs(s.play.uid)
        s.record.check_status(s.play.uid)
        s.record.check_unchanged(s.strangers)

    def held(point):
        with Stage() as s:
            drive(s.play, stop=point)
            ok(world.api.patch(s.play.path, {"metadata": {"finalizers": ["example.com/hold"]}}))
            s.play.delete()
            s.record.quiet(world.api, REST)
            n = len(s.record.seen)
            s.operator.process.stop(PATIENCE)
            s.operator.start()
            time.sleep(REST)
            assert len(s.record.seen) == n, s.record.tail()
            ok(world.api.patch(s.play.path, {"metadata": {"finalizers": None}}))
            gone(s)
    side_by_side([(f, point) for f in (unseen, held) for point in (1, 3, 7)], lambda v: v[0](v[1]))


# --- F43 to F45 --------------------------------------------------------------------------------------------------------------------------


def f43_objects_mutated():
    """F43: others add labels, annotations, data and a sidecar to our objects at once: no fight, and the same end"""
    with Stage() as s:
        mutated, over = {}, threading.Event()

        def mutate():
            at = 0
            while not over.is_set():
                for kind, what, item in s.record.seen[at:]:
                    at += 1
                    meta = item["metadata"]
                    if what == "DELETED" or meta["name"] in STRANGERS or "injected" in meta.get("labels", {}):
                        continue
                    patch = {"metadata": {"labels": {"injected": "yes"}, "annotations": {"injected": "yes"}}}
                    if kind == "configmaps":
                        patch["data"] = {"injected": "yes"}
                    if world.api.patch(s.path(kind, meta["name"]), patch)[0] == 200:
                        mutated[meta["uid"]] = mutated.get(meta["uid"], 0) + 1
                time.sleep(0.01)
        mutator = threading.Thread(target=mutate)
        mutator.start()
        two = s.play._containers  # pylint: disable=protected-access
        sidecar = {"name": "sidecar", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "state": {"running": {"startedAt": now()}}}
        s.play._containers = lambda *states: two(*states) + [sidecar]  # pylint: disable=protected-access
        try:
            drive(s.play)
            s.record.quiet(world.api, REST)
        finally:
            over.set()
            mutator.join()
        assert len(mutated) >= 8, mutated  # twice: another event was on its way already

        def mask(state):
            for item in state.values():
                for where in "labels", "annotations":
                    item["metadata"].get(where, {}).pop("injected", None)
                    if not item["metadata"].get(where, True):
                        del item["metadata"][where]
                item.get("data", {}).pop("injected", None)
            return state
        s.finish(mask=mask)


def f44_slow_admission():
    """F44: a write takes 12 s, before or after it takes effect: waited for, and done once"""
    def slow(rule):
        with Stage(script=f"match {rule}\n", patient=True) as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.stats()["total"] == 1, s.proxy.stats()
            again = [e for e in s.proxy.log() if e["event"] == "write" and e["status"] == 409]
            assert not again, again
    side_by_side(["POST *jobs* nth=1 -> delay ms=12000", "POST *jobs* nth=1 -> delay-answer ms=12000",
                  "PATCH *requests/a/status* nth=3 -> delay ms=12000", "POST *dynamographdeployments* nth=1 -> delay-answer ms=12000"], slow)


def f45_rolled_back():
    """F45: a change that cannot be satisfied, then taken back: the new generation counts, and the run ends as if nothing was"""
    nowhere = {"profilingConfig": {**SPEC["profilingConfig"], "nodeSelector": {"example.com/none": "such"}}}
    back = {"profilingConfig": {"nodeSelector": None}}

    def stuck(_):
        with Stage() as s:
            gets_a_job(s.play)
            s.play.edit(**nowhere)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            gets_a_job(s.play)
            assert s.play.job()["spec"]["template"]["spec"]["nodeSelector"] == {"example.com/none": "such"}
            s.play.edit(**back)
            s.play.wait(lambda st: st["run"]["attempt"] == 3, "attempt 3")
            drive(s.play)
            s.finish(mask=of_one_attempt, rename=NUMBERED, extra=attempts_more(2), reasons="any")

    def at_once(_):
        with Stage() as s:
            gets_a_job(s.play)
            s.play.edit(**nowhere)
            s.play.edit(**back)
            s.record.quiet(world.api, REST)
            attempts = s.play.status()["run"]["attempt"]
            drive(s.play)
            s.finish(mask=of_one_attempt, rename=NUMBERED, extra=attempts_more(attempts - 1), reasons="any")

    def from_the_start(_):
        with Stage(**nowhere) as s:
            gets_a_job(s.play)
            s.play.edit(**back)
            s.play.wait(lambda st: st["run"]["attempt"] == 2, "attempt 2")
            drive(s.play)
            s.finish(mask=of_one_attempt, rename=NUMBERED, extra=attempts_more(1), reasons="any")

    def invalid(_):
        with Stage() as s:
            drive(s.play, stop=3)
            s.play.edit(profilingConfig={"config": {"sla": {"isl": 0}}})
            status = s.play.wait(lambda st: condition(st, "SpecAccepted").get("status") == "False", "a refusal")
            assert status["observedGeneration"] == 1 and status["state"] == "Profiling", status
            s.play.edit(profilingConfig={"config": {"sla": {"isl": 3000}}})
            s.play.wait(lambda st: condition(st, "SpecAccepted").get("status") == "True" and st["observedGeneration"] == 3, "acceptance")
            drive(s.play, start=3)
            s.finish(mask=of_one_attempt, reasons=["SpecChangeRejected"])
    side_by_side([stuck, at_once, from_the_start, invalid], lambda f: f(None))


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
