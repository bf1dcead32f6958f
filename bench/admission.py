#!/usr/bin/python3
"""2 000 requests in a queue of which four may run at once, on the embedded engine; pods are played, and end at once.

    bench/admission.py [N [KIND]]      2000; testrun, ap: one of them alone

First with the kind that tests have, of which there is nothing but a run, then with AlgorithmProfilings, which leave a result that is
read, told and kept in the history.

Each run tells how far it is before it ends, so that those who wait are told when they will begin. What is over stays, as
it does for whoever wants to see it. Fails where more run than may, where one begins out of its turn, where the operator's
memory grows by more than what it keeps of a request that is over, and where a request is written more often than its way through
the queue has steps. Times are printed only.
"""

import json
import os
import random
import re
import socket
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from admission_play import Profilings, Queue, World, check_order, sorted_by_turn
from dgdr_many import cpu_seconds, memory
from dgdr_play import now

N = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
WORLDS = [world for world in (World, Profilings) if world.kind in (sys.argv[2:] or (World.kind, Profilings.kind))]
LIMIT, LATE, PATIENCE = 4, 20, 1800
STEPS = 14  # 1000+, 100+, 10+, 10 to 1, begun: what a request is told on its way
STARTS = LIMIT  # and when it will begin, in each of the last places
OVER, SLACK = 8, 1024  # KiB that the operator may keep of a request that is over; what memory varies by anyway


def row(what, value):
    print(f"  {what:52} {value}", flush=True)


class Metrics:
    def __init__(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            self.text = answer.read().decode()

    def value(self, name):
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.text, re.M)[1])

    def quantile(self, q, family="controller_runtime_reconcile_time_seconds"):
        """In ms, straight through the bucket."""
        buckets = [(float(le), float(n)) for le, n in re.findall(rf'^{family}_bucket{{[^}}]*le="([^"]+)"}} (\S+)$', self.text, re.M)]
        total, below, start = buckets[-1][1], 0.0, 0.0
        for le, n in buckets:
            if n >= q * total:
                return 1000 * (start + (le - start) * (q * total - below) / max(n - below, 1))
            below, start = n, le
        return float("inf")


def start(world, ns):
    """The operator with its metrics at a free port; one that is taken meanwhile is not free."""
    for last in False, False, True:
        with socket.create_server(("127.0.0.1", 0)) as s:
            health = "127.0.0.1:{}".format(s.getsockname()[1])
        try:
            return world.operator(ns, "--max-concurrent-runs", str(LIMIT), "--health", health, "--log-level", "warn"), health
        except AssertionError:
            if last:
                raise


class Telling(Queue):
    """Whose pods tell where they are, and end when it is their turn again: so those who wait are told when they begin."""

    def __init__(self, world, ns):
        super().__init__(world, ns)
        self.end, self.players.end = self.players.end, self.tell
        self.starts = set()  # who was told when it will begin

    def tell(self, pod, then=True):
        run = self.players.world.of_job(pod["metadata"]["labels"]["job-name"])[0]
        status = {"timestamp": now(), "phase": "Work", "message": "m", "progress": {"currentStep": 5, "totalSteps": 9}}
        track = {"started": int(1000 * (time.time() - 40)), "moved": 40000, "phases": [
            {"name": "Work", "began": 1, "total": 9, "done": 4, "sum": 40, "longest": 10, "step": 5, "stepBegan": 40000, "blocks": [[4, 40]]}]}
        self.players._patch(f"configmaps/{run}-run-status", {"data": {  # pylint: disable=protected-access
            "attempt": "1", "podUID": pod["metadata"]["uid"], "sequence": "0", "state": "Running",
            "status.json": json.dumps(status), "track.json": json.dumps(track)}})
        if then:
            self.players.todo.put((self.end, pod))

    def _look(self, name, status):
        super()._look(name, status)
        if status.get("queue", {}).get("expectedStart"):
            self.starts.add(name)


def fill(world, q, ns):
    """LIMIT that run, and N behind them."""
    for i in range(LIMIT):
        world.create(ns, f"first-{i}")
    q.wait(lambda: len(q.under_way) == LIMIT, 60, "the first ones to run")
    random.seed(8)
    made = [world.create(ns, f"r{i:05d}", priority=random.randrange(11)) for i in range(N)]
    q.wait(lambda: all(q.places.get(i["metadata"]["name"]) for i in made), PATIENCE, "all have a place")
    return made


def check_places(q, expected):
    for i, name in enumerate(expected):
        wanted = str(i + 1) if i < 10 else "10+" if i < 100 else "100+" if i < 1000 else "1000+"
        assert q.places[name]["position"] == wanted, (i, name, q.places[name])


def drain(world, q, ns, pid, expected):
    """Works it off; in the middle some come that are more urgent than all. What began, as it should have; memory."""
    for pod in list(q.held_back.values()):
        q.tell(pod, then=False)
    q.wait(lambda: set(expected[:LIMIT]) <= q.starts, 60, lambda: f"the next ones to be told when they begin, not {q.starts}")
    q.quiet(1)
    sizes = [memory(pid)[0]]
    q.go()
    q.wait(lambda: len(q.over) >= LIMIT + N // 2, PATIENCE, lambda: f"half to be over, not {len(q.over)}")
    sizes.append(memory(pid)[0])
    late = [world.create(ns, f"late-{i:02d}", priority=10) for i in range(LATE)]
    q.wait(lambda: len(q.over) == LIMIT + N + LATE, PATIENCE, lambda: f"all to be over, not {len(q.over)}")
    q.quiet(1)
    sizes.append(memory(pid)[0])
    names = {i["metadata"]["name"] for i in late}
    begun = q.begun[LIMIT:]
    moved = check_order([n for n in begun if n not in names], expected, LIMIT)
    at = [i for i, n in enumerate(begun) if n in names]
    return moved, at, sizes


def work_off(kind):
    with kind("engine") as world, world.server.namespace("queue") as ns:
        print(f"{world.named}s", flush=True)
        operator, health = start(world, ns)
        with operator:
            pid = operator.process.pid
            with Telling(world, ns) as q:
                began, idle = time.monotonic(), memory(pid)[0]
                made = fill(world, q, ns)
                filled = time.monotonic() - began
                q.quiet(1)
                expected = sorted_by_turn(made)
                check_places(q, expected)
                row("waiting / held, by the metrics", "{:.0f} / {:.0f}".format(
                    *(Metrics(health).value(f"sonde_admission_{what}") for what in ("waiting", "held"))))
                cpu, began = cpu_seconds(pid), time.monotonic()
                moved, at, sizes = drain(world, q, ns, pid, expected)
                took = time.monotonic() - began
                metrics = Metrics(health)
                decisions = sum(float(n) for n in re.findall(r"^controller_runtime_reconcile_total{.*} (\S+)$", metrics.text, re.M))
                row(f"requests, of which {LIMIT} may run at once", f"{N}, and {LATE} urgent ones in the middle")
                row("most that ran at once", q.most)
                row("begun out of turn by less than the limit", moved)
                row("urgent ones began after, at most", f"{max(at) - min(at) + 1} begun since the first of them")
                row("seconds to fill the queue / to work it off", f"{filled:.1f} / {took:.1f}")
                row("operator RSS: idle; queue full, half, empty", f"{idle:.1f}; " + ", ".join(f"{s:.1f}" for s in sizes) + " MiB")
                grown, ended = 1024 * (sizes[2] - sizes[1]), N - N // 2 + LATE
                row("that is, in the second half for each that was over", f"{grown / ended:.1f} KiB")
                row("operator CPU for working it off", f"{cpu_seconds(pid) - cpu:.1f} s")
                row("decisions", f"{decisions:.0f}")
                row("time of a decision with its writes, p50 / p99", f"{metrics.quantile(0.5):.1f} / {metrics.quantile(0.99):.1f} ms")
                row("writes for a request's place, in all / at most", f"{sum(q.queue_writes.values())} / {max(q.queue_writes.values())}")
                row("requests that were told when they will begin", len(q.starts))
                assert q.most == LIMIT, q.most
                assert max(at) - min(at) + 1 <= LATE + LIMIT, at
                assert grown <= OVER * ended + SLACK, (grown, sizes)
                assert sum(q.queue_writes.values()) <= (N + LATE) * (STEPS + STARTS) + LATE * 30, sum(q.queue_writes.values())
                assert metrics.value("sonde_admission_waiting") == 0 and metrics.value("sonde_admission_held") == 0


for each in WORLDS:
    work_off(each)
