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
import signal
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

    def __init__(self, script=None, arguments=(), seed=None, patient=False, operator=True, **spec):
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
            if self._operator:
                self.start(*self._arguments)
            self.play = self.request()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def start(self, *arguments):
        kubeconfig = self.proxy.kubeconfig if self.proxy else None
        self.operator = self._stack.enter_context(world.operator(self.ns, *arguments, kubeconfig=kubeconfig))

    def request(self, name="a"):
        return world.create(self.ns, name, SPEC, **self.spec)

    def path(self, kind, name=""):
        return f"{KINDS[kind]}/namespaces/{self.ns}/{kind}" + (f"/{name}" if name else "")

    def restarts(self):
        """Waits for the operator's death and starts it again, as often as it dies."""
        code = self.operator.process.wait(PATIENCE)
        assert code == -signal.SIGKILL, (code, self.operator.process.lines[-20:])
        self.operator.start()

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

    def same_end(self, prepare=lambda state: state, but=(), extra=None, reasons=None):
        """I1 and I2. EXTRA: counts that the fault adds by itself; REASONS: other events than the reference's."""
        wanted, found = prepare(REFERENCE.state), prepare(self.record.end_state(STRANGERS + tuple(but)))
        differs = difference(wanted, found)
        assert not differs, "\n".join(differs)
        counts = dict(REFERENCE.counts)
        for key, n in (extra or {}).items():
            counts[key] = counts.get(key, 0) + n
        found = self.record.counts(STRANGERS + tuple(but))
        assert found == counts, "\n".join(difference(counts, found))
        told = self.reasons()
        if reasons == "some":  # an event may be lost with its process, but is never there twice
            assert len(told) == len(set(told)) and set(told) <= set(REASONS), told
        else:
            wait(lambda: self.reasons() == sorted(REASONS + list(reasons or ())), 10, f"the events, not {told}")

    def goes(self, play=None, but=()):
        """I5: the request is deleted, and all that it owned goes."""
        play = play or self.play
        play.delete()
        kept = STRANGERS + ("a-dgd",) + tuple(but)
        wait(lambda: not {name for _, name in self.record.listed(world.api)} - set(kept), PATIENCE,
             lambda_text(lambda: f"nothing to be left, but {sorted(self.record.listed(world.api))}"))
        self.record.quiet(world.api, 0.3)
        self.record.check_unchanged(self.strangers)

    def finish(self, **more):
        self.converged()
        self.same_end(**more)
        self.goes()


class lambda_text:  # pylint: disable=invalid-name
    """A text that is made when it is printed."""

    def __init__(self, make):
        self._make = make

    def __str__(self):
        return self._make()


class Reference:
    """The scenario without a fault, twice: what differs between two such runs is not compared."""

    def __init__(self):
        self.state, self.counts, self.writes = self._run()
        again = self._run()
        assert again == (self.state, self.counts, self.writes), "\n".join(
            difference([str(k) for k in self.state.values()], [str(k) for k in again[0].values()]) + difference(self.counts, again[1]))

    @staticmethod
    def _run():
        with Stage() as s:
            drive(s.play)
            s.record.quiet(world.api, REST)
            writes = int(s.operator.process.expect(r"^idle after (\d+) writes", 10, len(s.operator.process.lines) - 1)[1])
            state, counts = s.record.end_state(STRANGERS), s.record.counts(STRANGERS)
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
    def before(k):
        with Stage(arguments=("--kill-at", str(k))) as s:
            keeper = threading.Thread(target=s.restarts)
            keeper.start()
            drive(s.play)
            keeper.join()
            s.finish(reasons="some")

    def after(k):
        with Stage(script=f"match WRITE * nth={k} -> delay-answer ms=60000\n") as s:
            def kill():
                # The proxy logs a write when the server has answered it.
                wait(lambda: sum(e["class"] == "write" and e["status"] >= 200 for e in s.proxy.log()) >= k, PATIENCE, f"write {k}")
                s.operator.kill()
                s.operator.start()
            keeper = threading.Thread(target=kill)
            keeper.start()
            drive(s.play)
            keeper.join()
            s.finish(reasons="some")

    side_by_side([(f, k) for k in range(1, REFERENCE.writes + 1) for f in (before, after)], lambda v: v[0](v[1]))
    diag(f"{REFERENCE.writes} writes")


def f02_answers_lost():
    """F2: the answer to every write is lost in turn: what was made is known as ours, and not made again"""
    def lost(k):
        with Stage(script=f"match WRITE * nth={k} -> lose\n") as s:
            drive(s.play)
            s.finish(reasons="some")
            assert s.proxy.count("lose") == 1, s.proxy.faults()
    side_by_side(range(1, REFERENCE.writes + 1), lost)


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
