#!/usr/bin/python3
"""2 000 requests in a queue of which four may run at once, on the embedded engine; pods are played, and end at once.

    bench/admission.py [N]         (2000)

Fails where more run than may, where one begins out of its turn, where the operator's memory grows while the queue is worked
off, and where a request is written more often than its way through the queue has steps. Times are printed only.
"""

import os
import random
import re
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from admission_play import Queue, World, check_order, sorted_by_turn
from dgdr_many import cpu_seconds, memory

N = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
LIMIT, LATE, PATIENCE = 4, 20, 1800
STEPS = 14  # 1000+, 100+, 10+, 10 to 1, begun: what a request is told on its way


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


def main():
    with World("engine") as world, world.server.namespace("queue") as ns:
        health = "127.0.0.1:18089"
        with world.operator(ns, "--max-concurrent-runs", str(LIMIT), "--health", health, "--log-level", "warn") as operator:
            pid = operator.process.pid
            with Queue(world, ns, deletes=True) as q:
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
                row("operator CPU for working it off", f"{cpu_seconds(pid) - cpu:.1f} s")
                row("decisions", f"{decisions:.0f}")
                row("time of a decision with its writes, p50 / p99", f"{metrics.quantile(0.5):.1f} / {metrics.quantile(0.99):.1f} ms")
                row("writes for a request's place, in all / at most", f"{sum(q.queue_writes.values())} / {max(q.queue_writes.values())}")
                assert q.most == LIMIT, q.most
                assert max(at) - min(at) + 1 <= LATE + LIMIT, at
                assert max(sizes) <= sizes[0] * 1.1 + 2, sizes
                assert sum(q.queue_writes.values()) <= (N + LATE) * STEPS + LATE * 30, sum(q.queue_writes.values())
                assert metrics.value("sonde_admission_waiting") == 0 and metrics.value("sonde_admission_held") == 0


main()
