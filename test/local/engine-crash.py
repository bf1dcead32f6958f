#!/usr/bin/python3
"""`sonde up` under `kill -9`: what was acknowledged is there, watches go on where they were, Jobs run as often as they should.

Eight writers create, change and delete ConfigMaps of their own, each with a model of what must be there; another one
creates Jobs whose containers write a line when they begin and one when they end; watches listen. The engine is killed
at 20 random moments (200 in the long form), some of them during its start, and started again in the same directory.
A write whose answer was lost may be there or not, but nothing in between, and it stays as it was found.
"""

import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import SOAK, Process, diag, engine_client, main, program, wait

KILLS = 200 if SOAK else 20
SEED = int(os.environ.get("SONDE_SEED") or random.randrange(1 << 30))
WRITERS, OBJECTS = 8, 5
HISTORY = 60  # writes that a watch may surely resume over; short, so that some are answered with 410
PATIENCE = 120
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"
MARKED = "3"  # the writer whose label the markers have too
LOST = (OSError, http.client.HTTPException)  # the engine has gone before its answer was heard whole

rng = random.Random(SEED)


def version(thing):
    return int(thing["metadata"]["resourceVersion"])


def digest(thing):
    return zlib.crc32(json.dumps(thing, sort_keys=True).encode())


class Engine:
    """The engine in its directory, started as often as needed."""

    def __init__(self, home):
        self.home, self.program = home, program("sonde")
        self.process = None
        self.starts = []  # milliseconds by its own clock
        self._make = None

    def begin(self):
        self.process = Process(self.program, "up", "--dir", self.home, "--watch-history", str(HISTORY))

    def ready(self):
        self.starts.append(int(self.process.expect(r"engine ready in (\d+) ms", PATIENCE)[1]))
        self._make = engine_client(os.path.join(self.home, "kubeconfig"), PATIENCE)

    def api(self):
        return self._make()

    def kill(self):
        self.process.signal(signal.SIGKILL)
        code = self.process.wait(PATIENCE)
        assert code == -signal.SIGKILL, (code, self.process.lines)
        wrong = [line for line in self.process.lines if "ERROR" in line or "runtime error" in line]
        assert not wrong, self.process.lines


class Revisions:
    """What is known of each revision. No revision is given twice, and none is below what was known before."""

    def __init__(self):
        self._lock = threading.Lock()
        self.known = {}  # revision: (event, name, digest)
        self.floor = 0  # everything new is above

    def note(self, rev, event, thing):
        what = event, thing["metadata"]["name"], digest(thing)
        with self._lock:
            before = self.known.setdefault(rev, what)
            assert before == what, f"revision {rev} is {before} and {what}"

    def new(self, rev, event, thing):
        assert rev > self.floor, f"a new write got revision {rev}, but {self.floor} was known"
        self.note(rev, event, thing)

    def newest(self):
        with self._lock:
            return max(self.known, default=0)


class Gate:
    """Lets everybody work while an engine is up, and tells when all have seen it go."""

    def __init__(self):
        self._changed = threading.Condition()
        self.round, self._inside, self._over = 0, 0, False
        self.acknowledged = 0

    def enter(self, last):
        """Waits for a round after LAST and returns it; None: there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self.round > last)
            if self._over:
                return None
            self._inside += 1
            return self.round

    def leave(self):
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def acknowledge(self):
        with self._changed:
            self.acknowledged += 1
            self._changed.notify_all()

    def open(self):
        with self._changed:
            self.round += 1
            self._changed.notify_all()

    def end(self):
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def heard(self, more):
        """Waits for MORE acknowledgements."""
        with self._changed:
            goal = self.acknowledged + more
            assert self._changed.wait_for(lambda: self.acknowledged >= goal, PATIENCE), "nothing is acknowledged any more"

    def empty(self):
        with self._changed:
            assert self._changed.wait_for(lambda: not self._inside, PATIENCE), "a request hangs though the engine is dead"


class Worker(threading.Thread):
    """Does its work in every round until the engine dies."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world = world
        self.error = None

    def run(self):
        last = 0
        while True:
            last = self.world.gate.enter(last)
            if last is None:
                return
            try:
                self.work(self.world.engine.api())
            except LOST:
                pass
            except Exception as e:  # pylint: disable=broad-except
                self.failed(e)
            self.world.gate.leave()

    def failed(self, error):
        self.error = self.error or error

    def work(self, api):
        raise NotImplementedError


# --- writers -----------------------------------------------------------------


class Writer(Worker):
    """Changes its own ConfigMaps; `there` is what must be found, `did` what watches must have heard of each."""

    def __init__(self, world, number):
        super().__init__(world)
        self.number, self.random = str(number), random.Random(f"{SEED}/{number}")
        self.there = {}  # name: the object as last answered or found
        self.did = {}  # name: [(event, revision or None)]
        self.pending = None  # (event, name, data) not answered yet
        self.writes = self.lost = self.kept = self.last = 0

    def names(self):
        return [f"w{self.number}-{i}" for i in range(OBJECTS)]

    def data(self):
        n = str(self.writes)
        return {"head": n, "fill": "x" * self.random.randrange(3000), "tail": n}

    def work(self, api):
        while not self.error:
            self.write(api, self.random.choice(self.names()))
            self.world.gate.acknowledge()

    def write(self, api, name):
        old, dice, data = self.there.get(name), self.random.random(), self.data()
        path = f"{MAPS}/{name}"
        if not old:
            self.pending = "ADDED", name, data
            thing = {"metadata": {"name": name, "labels": {"writer": self.number}}, "data": data}
            self.answered(api.post(MAPS, thing), 201)
        elif dice < 0.25:
            self.pending = "DELETED", name, None
            self.answered(api.delete(path), 200)
        elif dice < 0.6:
            self.pending = "MODIFIED", name, data
            self.answered(api.put(path, {**old, "data": data}), 200)
        else:
            self.pending = "MODIFIED", name, data
            self.answered(api.patch(path, {"data": data}), 200)

    def answered(self, answer, expected):
        status, body = answer
        assert status == expected, (self.pending, answer)
        event, name, data = self.pending
        assert event == "DELETED" or body["data"] == data, (self.pending, body)
        self.happened(event, name, body)

    def happened(self, event, name, body):
        """The pending write is known to have been done; BODY is what it made (of a deletion: anything)."""
        self.pending = None
        self.writes += 1
        if event == "DELETED":
            del self.there[name]
            self.did[name].append((event, None))
            return
        rev = version(body)
        assert rev > self.last, f"{name} got revision {rev} after {self.last}"
        self.last = rev
        self.world.revisions.new(rev, event, body)
        self.there[name] = body
        self.did.setdefault(name, []).append((event, rev))

    def settle(self, found):
        """Compares with what a restarted engine has, and finds out what became of the write without an answer."""
        for name in self.names():
            known, got = self.there.get(name), found.pop(name, None)
            if known == got:
                continue
            assert self.pending and self.pending[1] == name, f"{name}: acknowledged {known}, found {got}"
            event, _, data = self.pending
            assert (event == "DELETED") == (got is None), f"{self.pending} left {got}"
            if got:
                assert got["data"] == data, f"half of {self.pending}: {got}"
                assert got["metadata"]["labels"] == {"writer": self.number}, got
            if event == "MODIFIED":
                same = "uid", "creationTimestamp", "name"
                assert all(got["metadata"][k] == known["metadata"][k] for k in same), (known, got)
            self.kept += 1
            self.happened(event, name, got)
        self.lost += bool(self.pending)
        self.writes += bool(self.pending)  # so that no two writes look the same
        self.pending = None


# --- Jobs --------------------------------------------------------------------


class Planner(Worker):
    """Creates Jobs; `jobs` has the expected number of runs and the last condition of each that must be there."""

    KINDS = [  # script after the first line, the Job's spec, runs, condition
        ("true", {}, 1, "Complete"),
        ("sleep 0.4", {}, 1, "Complete"),
        ("sleep 0.1", {"completions": 3, "parallelism": 2}, 3, "Complete"),
        ("echo end >> {file}; exit 3", {"backoffLimit": 0}, 1, "Failed"),
    ]

    def __init__(self, world, folder):
        super().__init__(world)
        self.folder, self.random = folder, random.Random(f"{SEED}/jobs")
        self.jobs, self.never = {}, []
        self.pending, self.made = None, 0

    def file(self, name):
        return os.path.join(self.folder, name)

    def work(self, api):
        for _ in range(self.random.choice((1, 1, 2))):
            self.create(api)

    def create(self, api):
        script, spec, runs, condition = self.KINDS[self.made % len(self.KINDS)]
        name = f"job-{self.made}"
        file = self.file(name)
        self.made += 1
        self.pending = name, runs, condition
        command = f"echo begin >> {file}; {script.format(file=file)}; echo end >> {file}"
        status, job = api.post(JOBS, {"metadata": {"name": name}, "spec": {**spec, "template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "main", "image": "any", "command": ["sh", "-c", command]}]}}}})
        assert status == 201, (status, job)
        self.world.revisions.new(version(job), "ADDED", job)
        self.jobs[name] = runs, condition
        self.pending = None

    def settle(self, found):
        """Of a Job without an answer: whether it is there."""
        if self.pending:
            name, *expected = self.pending
            if name in found:
                self.jobs[name] = tuple(expected)
            else:
                self.never.append(name)
            self.pending = None
        assert sorted(found) == sorted(self.jobs), f"Jobs {sorted(found)}, acknowledged {sorted(self.jobs)}"

    def lines(self, name):
        if not os.path.exists(self.file(name)):
            return []
        with open(self.file(name), encoding="utf-8") as f:
            return f.read().split()

    def finished(self, api):
        """Whether every Job has ended; AssertionError when one ran once more than it should."""
        jobs = {job["metadata"]["name"]: job["status"] for job in api.get(JOBS)[1]["items"]}
        open_jobs = [name for name in self.jobs if not any(
            c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in jobs[name].get("conditions") or [])]
        assert not open_jobs, [(name, jobs[name], self.lines(name)) for name in open_jobs[:3]]
        return jobs

    def check(self, api):
        jobs = wait(lambda: self.finished(api), PATIENCE, "the end of all Jobs")
        pods = {}
        for pod in api.get(PODS)[1]["items"]:
            pods.setdefault(pod["metadata"]["labels"]["job-name"], []).append(pod)
        wrong = []
        for name, (runs, condition) in self.jobs.items():
            status, lines, own = jobs[name], self.lines(name), pods.pop(name, [])
            count = "succeeded" if condition == "Complete" else "failed"
            right = (status["conditions"][-1]["type"] == condition and status.get(count) == runs and len(own) == runs
                     and not status.get("active") and not status.get("failed" if count == "succeeded" else "succeeded")
                     and sorted(lines) == ["begin"] * runs + ["end"] * runs)
            if not right:
                wrong.append(f"{name}, to run {runs} times and be {condition}: {lines}, {status}, pods " +
                             json.dumps([pod["status"] for pod in own]))
        assert not wrong, "\n".join(wrong)
        assert not pods, f"pods of Jobs that are not there: {pods}"
        assert not any(self.lines(name) for name in self.never), "a Job that is not there ran"


# --- watches -----------------------------------------------------------------


class Expired(Exception):
    pass


def events(api, version_, query=""):
    """The events after a version, whole ones only, until the connection ends."""
    try:
        for event in api.watch(f"{MAPS}?watch=1&resourceVersion={version_}{query}"):
            if event["type"] == "ERROR":
                assert event["object"]["code"] == 410, event
                raise Expired(event["object"]["message"])
            yield event
    except ValueError:
        return  # half a line


class Watcher(Worker):
    """Listens, and goes on after the last version it heard of."""

    def __init__(self, world, query):
        super().__init__(world)
        self.query = query
        self.version = None
        self.heard = []  # (revision, event, name)
        self._changed = threading.Condition()

    def work(self, api):
        if self.version is None:
            self.version = version(api.get(MAPS)[1])
        try:
            for event in events(api, self.version, self.query):
                self.hear(event["type"], event["object"])
        except Expired as e:  # it was never far behind
            raise AssertionError(f"a watch at {self.version} got 410: {e}") from None

    def hear(self, event, thing):
        rev = version(thing)
        assert rev > self.version, f"revision {rev} came after {self.version}"
        if event != "BOOKMARK":
            self.world.revisions.note(rev, event, thing)
            with self._changed:
                self.heard.append((rev, event, thing["metadata"]["name"]))
                self.version = rev
                self._changed.notify_all()
        self.version = rev

    def failed(self, error):
        with self._changed:
            super().failed(error)
            self._changed.notify_all()

    def reach(self, rev):
        with self._changed:
            reached = self._changed.wait_for(lambda: self.version and self.version >= rev or self.error, PATIENCE)
            assert reached, f"a watch is at {self.version}, not at {rev}"


# --- the run -----------------------------------------------------------------


class World:
    def __init__(self, folder):
        self.engine = Engine(os.path.join(folder, "home"))
        self.gate, self.revisions = Gate(), Revisions()
        self.watch_gate = Gate()  # watches go on before the writers do
        self.writers = [Writer(self, i) for i in range(WRITERS)]
        os.mkdir(os.path.join(folder, "jobs"))
        self.planner = Planner(self, os.path.join(folder, "jobs"))
        watching = _Watching(self)
        self.watchers = [Watcher(watching, q) for q in ("", "&allowWatchBookmarks=true", f"&labelSelector=writer%3D{MARKED}")]
        self.markers = {}
        self.replayed = self.expired = self.early = 0
        for worker in self.workers():
            worker.start()

    def workers(self):
        return [*self.writers, self.planner, *self.watchers]

    def check_errors(self):
        for worker in self.workers():
            if worker.error:
                raise worker.error

    def settle(self, api):
        """What the engine has after a start against all that is known."""
        status, found = api.get(MAPS)
        assert status == 200, found
        rev = version(found)
        assert rev >= self.revisions.newest(), f"revision {self.revisions.newest()} was told, the engine is at {rev}"
        things = {t["metadata"]["name"]: {"kind": "ConfigMap", "apiVersion": "v1", **t} for t in found["items"]}
        for writer in self.writers:
            writer.settle(things)
        for name, marker in self.markers.items():
            assert things.pop(name, None) == marker, name
        others = [name for name in things if name != "kube-root-ca.crt"]
        assert not others, f"nobody created {others}"
        self.planner.settle([job["metadata"]["name"] for job in api.get(JOBS)[1]["items"]])
        self.revisions.floor = rev

    def mark(self, api):
        """A last event for watches to wait for: while no writer writes, they have then heard all there is."""
        name = f"marker-{len(self.markers)}"
        status, made = api.post(MAPS, {"metadata": {"name": name, "labels": {"writer": MARKED}}, "data": {"fill": "y" * 100}})
        assert status == 201, made
        self.revisions.new(version(made), "ADDED", made)
        self.markers[name] = made
        return version(made)

    def compare_watches(self):
        """Every watch heard the same; what it heard of each object is what its writer did."""
        whole = self.watchers[0].heard
        assert self.watchers[1].heard == whole
        assert self.watchers[2].heard == [e for e in whole if e[2].startswith((f"w{MARKED}-", "marker"))]
        by_name = {}
        for rev, event, name in whole:
            by_name.setdefault(name, []).append((event, rev))
        for writer in self.writers:
            for name, did in writer.did.items():
                heard = by_name.get(name, [])
                assert [e for e, _ in heard] == [e for e, _ in did], f"{name}: heard {heard}, done {did}"
                assert all(r is None or r == h for (_, h), (_, r) in zip(heard, did)), f"{name}: heard {heard}, done {did}"

    def replay(self, api, newest):
        """A watch from some older version hears what the others heard then, or 410."""
        whole = self.watchers[0].heard
        start = rng.choice(whole)[0] if rng.random() < 0.5 else rng.choice(whole[-HISTORY:])[0]
        expected = [e for e in whole if e[0] > start]
        heard = []
        try:
            if expected:
                for event in events(api, start):
                    heard.append((version(event["object"]), event["type"], event["object"]["metadata"]["name"]))
                    self.revisions.note(heard[-1][0], event["type"], event["object"])
                    if heard[-1][0] >= newest:
                        break
                self.replayed += 1
            assert heard == expected, f"from {start}: heard {heard}, expected {expected}"
        except Expired as e:
            assert newest - start > HISTORY, f"{start} of {newest}: {e}"
            self.expired += 1

    def start(self):
        """Starts the engine and checks it; writers wait."""
        self.engine.begin()
        self.engine.ready()
        api = self.engine.api()
        self.settle(api)
        self.watch_gate.open()
        again = bool(self.markers)
        if not again:  # all of them listen from the beginning
            wait(lambda: all(w.version for w in self.watchers), PATIENCE, "watches")
        newest = self.mark(api)
        for watcher in self.watchers:  # who has the version and no watch yet may come too late for it
            watcher.reach(newest)
        self.check_errors()
        if again:
            self.compare_watches()
            self.replay(api, newest)

    def run_and_kill(self):
        """Kills the engine at some moment: of its start, or of the work that follows."""
        if self.engine.starts and rng.random() < 0.2:
            self.early += 1
            self.engine.begin()
            time.sleep(rng.uniform(0, 1.5 * max(self.engine.starts) / 1000))
        else:
            self.start()
            self.gate.open()
            if rng.random() < 0.5:
                self.gate.heard(rng.randrange(1, 100))
            time.sleep(rng.choice((rng.uniform(0, 0.02), rng.uniform(0, 0.4))))
        self.engine.kill()
        self.gate.empty()
        self.watch_gate.empty()
        self.check_errors()


class _Watching:
    """The world as watches see it: they have a gate of their own."""

    def __init__(self, world):
        self.engine, self.revisions, self.gate = world.engine, world.revisions, world.watch_gate


def alive(words):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if words.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def report(world):
    writers = world.writers
    diag(f"{KILLS} kills, {world.early} of them during a start; starts took {min(world.engine.starts)} to "
         f"{max(world.engine.starts)} ms; newest revision {world.revisions.newest()}")
    diag(f"{world.gate.acknowledged} writes acknowledged; of those without an answer {sum(w.kept for w in writers)} were done, "
         f"{sum(w.lost for w in writers)} not; {len(world.watchers[0].heard)} events, {world.replayed} watches resumed at an "
         f"older version, {world.expired} got 410")
    diag(f"{len(world.planner.jobs)} Jobs, {sum(runs for runs, _ in world.planner.jobs.values())} runs; "
         f"{len(world.planner.never)} Jobs without an answer are not there")


def an_engine_that_is_killed_forgets_nothing_and_repeats_nothing():
    diag(f"SONDE_SEED={SEED}")
    with tempfile.TemporaryDirectory(prefix="sonde-crash-") as folder:
        world = World(folder)
        try:
            for _ in range(KILLS):
                world.run_and_kill()
            world.start()
            world.planner.check(world.engine.api())
            report(world)
            assert world.gate.acknowledged > 2 * KILLS, "hardly anything was written"
            world.engine.process.signal(signal.SIGTERM)
            assert world.engine.process.wait(PATIENCE) == 0, world.engine.process.lines
        except BaseException:
            if world.engine.process:
                diag("\n".join(world.engine.process.lines[-30:]))
            raise
        finally:
            if world.engine.process:
                world.engine.process.stop()
            world.gate.end()
            world.watch_gate.end()
        wait(lambda: not alive(folder), PATIENCE, "the end of everything that was started")


main(an_engine_that_is_killed_forgets_nothing_and_repeats_nothing)
