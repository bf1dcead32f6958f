"""N requests in flight at once, R progress updates each, and all that the operator wrote for them.

Nobody but the operator writes a request here, so that a watch tells every write of a status that changed something; what
it sent in all is its own count. Both must agree: a server does not tell a write that changes nothing.
"""

import collections
import re
import time

from dgdr_crowd import Crowd
from dgdr_play import DGDRS, SPEC, condition
from sonde_test import wait

PLANNED = {"jobs": 1, "configmaps": 2, "serviceaccounts": 1, "roles": 1, "rolebindings": 1}
STEPS = 1000


def memory(pid):
    """VmRSS and VmHWM in MiB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        kib = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    return int(kib["VmRSS"]) / 1024, int(kib["VmHWM"]) / 1024


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as f:
        return int(f.read().split()[0]) / 1e9


class Many(Crowd):
    def __init__(self, world, ns, operator, count, patience):
        super().__init__(world, ns)
        self.operator, self.patience = operator, patience
        self.specs = {f"many-{i:04d}": SPEC for i in range(count)}
        self.took = {}  # seconds by step

    # --- what the operator did

    def sent(self):
        """How many writes it has sent, once it is idle."""
        said = [int(m[1]) for m in (re.match(r"idle after (\d+) writes", line) for line in list(self.operator.process.lines)) if m]
        return said[-1] if said else 0

    def status_writes(self):
        """By request; a write that changed nothing but the version is one too many."""
        counts, last = collections.Counter(), {}
        for what, item in list(self.seen[DGDRS]):
            name, status = item["metadata"]["name"], item.get("status")
            if what == "MODIFIED":
                assert status != last[name], f"{name} was written, and its status is as it was: {status}"
                counts[name] += 1
            last[name] = status
        return counts

    def creates(self):
        """Objects made, by kind; each request has exactly what is planned."""
        totals = {}
        for kind, planned in PLANNED.items():
            owned = self.owned(kind)
            wrong = {n: owned[p.uid] for n, p in self.plays.items() if owned[p.uid] != planned}
            assert not wrong, f"{kind}, not {planned} each: {wrong}"
            totals[kind] = planned * len(self.plays)
        return totals

    def events(self):
        """How often an event about a request was written."""
        uids = {p.uid for p in self.plays.values()}
        return sum(e["regarding"].get("uid") in uids for what, e in self.seen["events"] if what != "DELETED")

    def seen_writes(self):
        return sum(self.status_writes().values()) + sum(self.creates().values()) + self.events()

    # --- steps

    def timed(self, what, act, is_true):
        """Acts on all, and waits for what follows from it."""
        began = time.monotonic()
        act()
        self.wait(lambda: all(map(is_true, self.specs)), self.patience,
                  lambda: f"{what}: {[(n, self.status(n)) for n in self.specs if not is_true(n)][:2]}")
        self.took[what] = time.monotonic() - began
        self.quiet(1, self.patience)

    def begin(self):
        self.timed("a pod", lambda: self.create(self.specs), lambda n: self.has_pod(n, 1))
        self.timed("runs", lambda: self.each(lambda play: play.pod_runs()),
                   lambda n: condition(self.status(n), "Progressing").get("reason") == "Running")

    def update(self, number):
        """One progress update each, and exactly one write for it."""
        def act(play):
            play.report({"phase": "DecodeSweep", "message": f"update {number}",
                         "progress": {"currentStep": number, "totalSteps": STEPS}})
        before = self.status_writes()
        self.timed(f"update {number}", lambda: self.each(act),
                   lambda n: self.status(n).get("profilingProgress", {}).get("currentStep") == number)
        after = self.status_writes()
        wrong = {n: after[n] - before[n] for n in self.specs if after[n] - before[n] != 1}
        assert not wrong, f"update {number}: not one status write each: {wrong}"

    def check(self):
        """Every write that was sent changed something, and nothing was made twice."""
        wait(lambda: self.sent() >= self.seen_writes(), self.patience, "the operator to be idle")
        assert self.seen_writes() == self.sent(), \
            f"seen: {sum(self.status_writes().values())} status writes, {self.creates()}, {self.events()} events; sent: {self.sent()}"


def many(world, ns, count, updates, patience, say):
    """Plays COUNT requests; SAY(what, value) is told what was measured. What it returns is still watched."""
    with world.operator(ns) as operator:
        pid = operator.process.pid
        idle = memory(pid)
        with Many(world, ns, operator, count, patience) as crowd:
            crowd.begin()
            started = collections.Counter(crowd.status_writes().values())
            cpu = cpu_seconds(pid)
            for number in range(1, updates + 1):
                crowd.update(number)
            crowd.check()
            rss, peak = memory(pid)
            say("operator RSS, nothing to do", f"{idle[0]:.1f} MiB")
            say(f"operator RSS with {count} in flight", f"{rss:.1f} MiB (peak {peak:.1f})")
            say("operator CPU until all ran", f"{cpu:.2f} s")
            say(f"operator CPU for {count * updates} progress updates", f"{cpu_seconds(pid) - cpu:.2f} s")
            say("seconds, by step", ", ".join(f"{what} {seconds:.1f}" for what, seconds in crowd.took.items()))
            say("status writes of a request until it ran", ", ".join(f"{n}: {c} requests" for n, c in sorted(started.items())))
            say("status writes for a progress update", "1 each")
            say("creates", ", ".join(f"{n} {kind}" for kind, n in crowd.creates().items()))
            say("events", crowd.events())
            say("writes sent / seen as a change", f"{crowd.sent()} / {crowd.seen_writes()}")
            return crowd
