"""The scenario of the fault cases, the stage on which it is played, and the run without faults that others are compared with."""

import concurrent.futures
import contextlib
import copy
import functools
import threading
import time
import traceback

from dgdr_play import DGDS, PATIENCE, SPEC, condition, ok
from dgdr_record import KINDS, difference
from fault_proxy import FaultProxy
from sonde_test import diag, wait

AT_ONCE = 6  # stages that are busy
REST = 1.0  # how long nothing happens, where nothing must
BACKGROUND = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
REASONS = ["Initialized", "ProfilingJobCreated", "SpecGenerated", "DeploymentCreated", "DeploymentReady"]


class Scene:
    """Where the cases run; the program fills it in."""
    world = recorder = reference = None


scene = Scene()

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


def succeeds_later(play):
    play.wait(lambda s: s.get("deployment", {}).get("created"), "a deployment")
    is_deployed(play)


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
    first = ok(scene.world.api.post(f"/api/v1/namespaces/{ns}/configmaps", made[0][1]))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "stranger", "uid": first["metadata"]["uid"], "controller": True}
    found = [("configmaps", first)]
    for kind, body in (
            ("configmaps", {"metadata": {"name": "dgdr-status-stranger", "labels": labels, "ownerReferences": [owner]}}),
            ("serviceaccounts", {"metadata": {"name": "profile-stranger", "labels": labels}}),
            (DGDS, {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": {}},
                    "metadata": {"name": "stranger-dgd", "labels": {**labels, "sonde.dev/request": first["metadata"]["uid"]}}})):
        found.append((kind, ok(scene.world.api.post(f"{KINDS[kind]}/namespaces/{ns}/{kind}", body))))
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
            self.ns = self._stack.enter_context(scene.world.server.namespace("fault"))
            self.record = scene.recorder.of(self.ns)
            self.strangers = strangers(self.ns)
            if self._script is not None or self._seed is not None:
                self.proxy = self._stack.enter_context(FaultProxy(scene.world.server, self._script, self._seed))
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
        self.operator = self._stack.enter_context(scene.world.operator(self.ns, *arguments, kubeconfig=kubeconfig, **more))

    def request(self, name="a"):
        return scene.world.create(self.ns, name, SPEC, **self.spec)

    def path(self, kind, name=""):
        return f"{KINDS[kind]}/namespaces/{self.ns}/{kind}" + (f"/{name}" if name else "")

    def kept_alive(self, kill=lambda: False, again=None):
        return self.operator.kept_alive(kill, again)

    def idle(self):
        """Waits until the operator has looked at everything, which takes a new one its time."""
        wait(lambda: any(line.startswith("idle after") for line in self.operator.process.lines), PATIENCE, "an idle operator")

    def rest(self):
        """Waits until nothing happens any more."""
        quiet = functools.partial(self.record.quiet, scene.world.api, REST)
        if self.operator:
            self.operator.rests(quiet, lambda: len(self.record.seen))
        else:
            quiet()

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
        self.idle()
        self.rest()
        before = self.record.listed(scene.world.api)
        if self.proxy:
            self.proxy.off()
        self.relist()
        assert self.record.listed(scene.world.api) == before, (before, self.record.tail())
        self.record.check_jobs(play.uid)
        self.record.check_status(play.uid)
        self.record.check_unchanged(self.strangers)

    def same_end(self, play=None, mask=lambda state: state, rename=None, extra=None, but=()):
        """I1 and I2. EXTRA: counts that the fault adds by itself; BUT: some that depend on how fast the server is."""
        play = play or self.play
        differs = difference(mask(copy.deepcopy(scene.reference.state)), mask(self.record.end_state(play.uid, rename)))
        assert not differs, "\n".join(differs)
        counts = dict(scene.reference.counts)
        for key, n in (extra or {}).items():
            counts[key] = counts.get(key, 0) + n
        counts = {key: n for key, n in counts.items() if key not in but}
        found = {key: n for key, n in self.record.counts(play.uid, rename).items() if key not in but}
        assert found == counts, "\n".join(difference(counts, found))

    def told(self, reasons=(), play=None):
        """The events are the reference's and REASONS; "some": some of the reference's; "any": other ones as well."""
        if reasons == "some":  # an event may be lost with its process, but is never there twice
            told = self.reasons(play)
            assert len(told) == len(set(told)) and set(told) <= set(REASONS), told
        elif reasons != "any":
            wait(lambda: self.reasons(play) == sorted(REASONS + list(reasons)), PATIENCE, lambda_text(lambda: f"the events, not {self.reasons(play)}"))

    def goes(self, play=None, but=()):
        """I5: the request is deleted, and all that it owned goes."""
        play = play or self.play
        play.delete()
        kept = STRANGERS + ("a-dgd", "b-dgd") + tuple(but)
        wait(lambda: not {name for _, name in self.record.listed(scene.world.api)} - set(kept), PATIENCE,
             lambda_text(lambda: f"nothing to be left, but {sorted(self.record.listed(scene.world.api))}"))
        self.record.quiet(scene.world.api, 0.3)
        self.record.check_unchanged(self.strangers)

    def finish(self, play=None, reasons=(), **more):
        self.told(reasons, play)  # first: what is still to be told goes with the process
        self.converged(play)
        self.same_end(play, **more)
        self.goes(play)

    def touch(self, key="touched"):
        """Changes something that means nothing."""
        ok(scene.world.api.patch(self.play.path, {"metadata": {"annotations": {key: str(time.monotonic())}}}))

    def stalls(self, reason, play=None, about=""):
        """The request says REASON (of ABOUT: the same may have been said of others), in one event, and then nothing more is written."""
        play = play or self.play

        def told():
            return [e for e in play.events(reason) if about in e["note"]]
        status = play.wait(lambda s: condition(s, "Stalled").get("reason") == reason and about in condition(s, "Stalled")["message"], reason)
        assert condition(status, "Stalled")["status"] == "True" and condition(status, "Ready")["status"] == "False", status
        wait(lambda: len(told()) == 1, PATIENCE, f"an event {reason}")
        self.rest()
        assert len(told()) == 1, told()
        return condition(play.status(), "Stalled")["message"]

    @staticmethod
    def goes_on(play):
        """What stood in the way is gone. It is looked for again after as long as it has been there, but for a minute at most."""
        play.wait(lambda s: condition(s, "Stalled").get("status") != "True", "another try", 2 * PATIENCE)

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
            s.rest()
            s.told()
            state, counts = s.record.end_state(s.play.uid), s.record.counts(s.play.uid)
            seen = s.record.writes(s.play.uid)
            writes = seen + len(REASONS)
            wait(lambda: [line for line in s.operator.process.lines if line.startswith("idle")][-1] == f"idle after {writes} writes", 60,
                 lambda_text(lambda: f"{seen} writes and {len(REASONS)} events: {s.operator.process.lines[-3:]}"))
            s.converged()
            s.goes()
            return state, counts, writes


def each_write():
    """All of them; on a real control plane, which takes longer for everything, every fourth."""
    return range(1, scene.reference.writes + 1, 4 if scene.world.which == "cluster" else 1)


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
