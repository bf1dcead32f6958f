"""A request's run with a fault, beside the same run without one, on either engine. A test plays kubelet, relay and workload.

    plan = Plan(world, types, drive, masked, tidy)
    reference = plan.reference()
    with plan.stage(script="match WRITE * nth=3 -> lose\\n") as s:
        plan.drive(s.play)
        s.finish(reference)

After a fault that must leave no trace: the end state is that of the run without it, every object was made as often as there, Jobs
were never active together, a restarted operator finds nothing to write, and deleting the request leaves nothing.
"""

import concurrent.futures
import contextlib
import copy
import json
import time
import traceback

from dgdr_play import PATIENCE, ok
from dgdr_record import difference, unsettled
from fault_proxy import FaultProxy
from sonde_test import diag, wait
from watched import Watched

AT_ONCE = 6
REST = 0.7  # how long nothing happens, where nothing must
SERVERS_OWN = ("default", "kube-root-ca.crt")


def is_servers(name):
    return name in SERVERS_OWN or name.startswith("default-token")


class Plan:
    """TYPES: of the objects, by their plural, with where they are. DRIVE(play): all that happens. MASKED(trace): without what differs
    from run to run. TIDY(kind, item): the same of one object, in place."""

    def __init__(self, world, types, drive, masked, tidy=lambda kind, item: None, **spec):
        self.world, self.types, self.drive, self.masked, self.tidy, self.spec = world, types, drive, masked, tidy, spec

    def stage(self, **more):
        return Stage(self, **more)

    def reference(self):
        """The run without a fault, twice: what differs between two such runs is not compared."""
        first, second = self._run(), self._run()
        differs = difference(first.end, second.end) + difference(first.counts, second.counts)
        assert not differs, "\n".join(differs)
        first.writes = max(first.writes, second.writes)
        return first

    def _run(self):
        with self.stage() as s:
            self.drive(s.play)
            s.quiet()
            s.writes = int(s.operator.process.expect(r"^idle after (\d+) writes", 60, len(s.operator.process.lines) - 1)[1])
            s.end, s.counts = s.state(), s.made()
            s.relisted()
            s.never_both()
            s.goes()
            return s

    def each_write(self, reference):
        """All of them; on a real control plane, which takes longer for everything, every fourth."""
        return range(1, reference.writes + 1, 4 if self.world.which == "cluster" else 1)

    def killed_at_every_write(self, reference):
        """The operator is killed before every write, and its answer to each is lost in turn."""
        killed = []

        def before(k):
            with self.stage(arguments=("--kill-at", str(k))) as s:
                with s.operator.kept_alive() as deaths:
                    self.drive(s.play)
                    s.idle()  # before nobody looks after it any more
                    s.quiet()
                assert deaths or s.operator.sent() < k, f"{s.operator.sent()} writes, and not killed at {k}"
                killed.append(len(deaths))
                s.finish(reference)

        def lost(k):
            with self.stage(script=f"match WRITE * nth={k} -> lose\n") as s:
                self.drive(s.play)
                s.finish(reference)
        writes = self.each_write(reference)
        side_by_side([(f, k) for k in writes for f in (before, lost)], lambda v: v[0](v[1]))
        diag(f"{reference.writes} writes, {sum(killed)} times killed")
        assert sum(killed) >= len(writes) / 2, killed  # fewer writes are needed where several things happen at once


class Stage:
    """A namespace with an operator (behind a proxy with SCRIPT), watches and a request."""

    def __init__(self, plan, arguments=(), script=None, before=None, **spec):
        self.plan, self.world = plan, plan.world
        self._arguments, self._script, self._before = arguments, script, before
        self._spec = {**plan.spec, **spec}
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            world = self.world
            self.ns = self._stack.enter_context(world.server.namespace("fault"))
            self.seen = self._stack.enter_context(Watched(world.server, self.ns, self.plan.types))
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

    def kinds(self):
        return [kind for kind in self.plan.types if kind != "events"]

    def there(self):
        """All that there is, but for events and what the server makes, by kind and name."""
        with self.seen.changed:
            return {(kind, name): item for kind in self.kinds() for name, item in self.seen.now[kind].items() if not is_servers(name)}

    def caught_up(self):
        listed = {}
        for kind in self.kinds():
            for item in ok(self.world.api.get(f"{self.plan.types[kind]}/namespaces/{self.ns}/{kind}"))["items"]:
                if not is_servers(item["metadata"]["name"]):
                    listed[kind, item["metadata"]["name"]] = item["metadata"]["resourceVersion"]
        return listed == {key: item["metadata"]["resourceVersion"] for key, item in self.there().items()}

    def quiet(self):
        """Waits until the server's controllers are done, nothing happens for REST seconds and all that there is has been seen."""
        def is_quiet():
            self.seen.quiet(REST)
            left = unsettled(self.there(), self.world.which == "cluster")
            assert not left, left
            return self.caught_up()
        self.operator.rests(lambda: wait(is_quiet, 2 * PATIENCE, "rest"), lambda: sum(map(len, self.seen.seen.values())))

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
            self.plan.tidy(kind, item)
            found[f"{kind}/{name}"] = item
        return self.plan.masked(json.loads(json.dumps(found).replace(self.ns, "<ns>")))

    def made(self):
        """How often each object was created and deleted."""
        counts = {}
        for kind in self.kinds():
            for what, item in self.seen.seen[kind]:
                name = item["metadata"]["name"]
                if what != "MODIFIED" and not is_servers(name):
                    key = self.plan.masked(f"{what} {kind}/{name}")
                    counts[key] = counts.get(key, 0) + 1
        return counts

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

    def gone(self):
        wait(lambda: not [n for _, n in self.there() if not n.startswith("stranger")], PATIENCE, "nothing to be left")

    def goes(self):
        self.play.delete()
        self.gone()

    def finish(self, reference):
        self.relisted()
        self.never_both()
        differs = difference(reference.end, self.state()) + difference(reference.counts, self.made())
        assert not differs, "\n".join(differs)
        self.goes()


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
