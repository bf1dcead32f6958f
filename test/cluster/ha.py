#!/usr/bin/python3
"""High availability: two `sonde operator --leader-elect` on a real control plane, and the leader is killed, frozen or cut off.

Requests of every kind are made before, during and after, their pods report and end meanwhile. In every case: the other one takes
over, not before the lease of 15 s has run out; no write of the old one takes effect after that; every Job is made once, none is
deleted, all requests end at their first attempt, and the history has each of them once. The seconds of a takeover are printed.

Each operator has an account of its own, so that the API server's audit log tells their writes apart. The cases run side by side,
each in a namespace of its own.
"""

import contextlib
import datetime
import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import every_kind
import leaders
from dgdr_play import ok
from every_kind import JOBS, KINDS, PATIENCE, TYPES, EveryKind, ends, is_over, reports, shows
from fault_proxy import FaultProxy
from postgres_server import Postgres
from sonde_test import Begun, ControlPlane, Process, diag, main, program, wait, write_kubeconfig
from watched import Watched

LEASE = 15  # seconds, the default
LOST = 1  # exit status of an operator that lost its lease
HELD = 30  # seconds that the proxy holds a write back; it is stopped before that, until the other leads


def by(who):
    return lambda event: event["user"]["username"] == f"system:serviceaccount:{ACCOUNTS}:{who}"


def seconds(stamp):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


@contextlib.contextmanager
def accounts():
    """The namespace of the two accounts. They may do everything: deploy/rbac.py checks what they need."""
    bindings = f"{every_kind.RBAC}/clusterrolebindings"
    with cluster.namespace("operators") as ns:
        for who in "ab":
            ok(cluster.api().post(f"/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": who}}))
        ok(cluster.api().post(bindings, {
            "metadata": {"name": ns}, "subjects": [{"kind": "ServiceAccount", "name": who, "namespace": ns} for who in "ab"],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}))
        try:
            yield ns
        finally:
            cluster.api().delete(f"{bindings}/{ns}")


class Pair:
    """A namespace with two operators, of which `a` leads (through a proxy if there is one), and watches of all that is in it."""

    def __init__(self, proxied=False):
        self._stack = contextlib.ExitStack()
        self._proxied = proxied
        self.proxy = None
        self.plays = []

    def __enter__(self):
        with self._stack as stack:
            self.folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-ha-"))
            self.ns = stack.enter_context(cluster.namespace("ha"))
            self.schema = self.ns.replace("-", "_")
            self.url = postgres.url(self.schema)
            self.seen = stack.enter_context(Watched(cluster, self.ns, TYPES))
            if self._proxied:
                self.proxy = stack.enter_context(FaultProxy(cluster, script=""))
            self.a = stack.enter_context(self._operator("a", self.proxy or cluster))
            self.a.expect("Became the leader", PATIENCE)
            self.b = stack.enter_context(self._operator("b", cluster))
            self.b.expect("Saw a leader", PATIENCE)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *what):
        if what[0] not in (None, SystemExit):
            for who in "ab":
                diag(f"{who}:\n" + "\n".join(getattr(self, who).lines[-30:]))
        return self._stack.__exit__(*what)

    def _operator(self, who, server):
        kubeconfig = os.path.join(self.folder, who)
        write_kubeconfig(kubeconfig, server.address, server.authority, cluster.rig("token", ACCOUNTS, who).strip())
        return Process(program("sonde"), "operator", "--kubeconfig", kubeconfig, "--namespace", self.ns, "--leader-elect",
                       "--leader-elect-namespace", self.ns, "--history", self.url, "--history-password-file", postgres.password_file,
                       "--health-probe-bind-address", "0", "--log-format", "logfmt")

    # --- requests

    def create(self, name):
        """One of every kind."""
        made = [kinds.create(self.ns, kind, f"{name}-{kind}") for kind in KINDS]
        self.plays += made
        return made

    def end(self, plays):
        for play in plays:
            ends(play)
        for play in plays:
            is_over(play)

    # --- what is looked at

    def taken_over(self, fault):
        """Waits for b; when that was, by the API server's clock. FAULT: when it began."""
        self.b.expect("Became the leader", PATIENCE)
        taken = wait(lambda: leaders.held(cluster, self.ns, by("b")), PATIENCE, "the audit log")[0]
        renewed = leaders.held(cluster, self.ns, by("a"))[-1]
        unrenewed = seconds(taken) - seconds(renewed)
        diag(f"taken over {seconds(taken) - fault:.1f} s after the fault, {unrenewed:.1f} s after the last renewal")
        assert unrenewed >= LEASE, unrenewed
        return taken

    def objects(self):
        """All that is there but for leases, as it is now, by kind and name."""
        return {(kind, item["metadata"]["name"]): item for kind, prefix in TYPES.items()
                for item in ok(cluster.api().get(f"{prefix}/namespaces/{self.ns}/{kind}"))["items"]}

    def unchanged(self, there, since):
        """All is as it was THERE, but for what others than a have written SINCE: on a busy machine they may have been late."""
        now = self.objects()
        others = {(e["objectRef"]["resource"], e["objectRef"].get("name")) for e in cluster.audit()
                  if e.get("objectRef", {}).get("namespace") == self.ns and e["verb"] in leaders.WRITES and not by("a")(e)
                  and e["requestReceivedTimestamp"] > since}
        changed = {key for key in there.keys() | now.keys() if there.get(key) != now.get(key) and key not in others}
        created = {(kind, name) for kind, name in changed - there.keys() if (kind, None) in others}  # the log does not name these
        assert not changed - created, changed - created
        return True

    def late(self, since):
        return leaders.writes(cluster, self.ns, by("a"), since)

    def check(self, taken):
        """After all of it: nothing late took effect, nothing was made twice, and all are recorded."""
        self.seen.quiet(1)
        assert all(w[3] >= 400 for w in self.late(taken)), self.late(taken)

        def added():
            return [item["metadata"]["name"] for what, item in self.seen.seen["jobs"] if what == "ADDED"]
        expected = sum(JOBS[play.world.kind] for play in self.plays)
        self.seen.wait(lambda: len(added()) >= expected, PATIENCE, "the Jobs")
        jobs, names = [what for what, _ in self.seen.seen["jobs"]], added()
        assert len(names) == len(set(names)) == expected, (names, expected)
        assert "DELETED" not in jobs, [item["metadata"]["name"] for what, item in self.seen.seen["jobs"] if what == "DELETED"]

        def made():
            return [(w[3], who) for who in "ab" for w in leaders.writes(cluster, self.ns, by(who)) if w[1:3] == ("create", "jobs")]
        wait(lambda: sum(code == 201 for code, _ in made()) >= expected, 60, "the audit log")
        created = [who for code, who in made() if code == 201]
        diag(f"{len(self.plays)} requests, {expected} Jobs: {created.count('a')} made by a, {created.count('b')} by b; "
             f"late writes of a: {[w[1:] for w in self.late(taken)]}")
        assert len(created) == expected, made()
        for play in self.plays:
            assert play.status()["run"]["attempt"] == 1, play.status()["run"]
        rows = postgres.sql(f"SELECT uid || '/' || attempt || '/' || outcome FROM {self.schema}.run", database="sonde")
        assert sorted(rows) == sorted(f"{play.uid}/1/Succeeded" for play in self.plays), rows


def carried_over(pair, strike, heal):
    """The leader is struck in the midst of everything; STRIKE and HEAL do that and undo it."""
    before = pair.create("before")
    for play in before:
        play.pod_runs()
        reports(play, 1)
    for play in before:
        shows(play, 1)
    last = pair.create("last")  # it may be in any state when the leader is struck
    fault = time.time()
    strike()
    during = pair.create("during")
    for play in before:
        reports(play, 2)
    over = [before[0], before[2]]  # nobody looks on when these end
    for play in over:
        ends(play)
    taken = pair.taken_over(fault)
    for play in over:
        is_over(play)
    for play in before:
        if play not in over:
            shows(play, 2)
    pair.end([play for play in before if play not in over])
    for play in last + during:
        play.pod_runs()
    pair.end(last + during)
    since = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    pair.seen.quiet(1)
    there = pair.objects()
    heal()
    pair.seen.quiet(1)
    wait(lambda: pair.unchanged(there, since), 20, "as it was when the old leader came back")
    after = pair.create("after")
    for play in after:
        play.pod_runs()
    pair.end(after)
    pair.check(taken)


def killed():
    """The leader is killed: the other takes over, nothing is lost and nothing made twice"""
    with Pair() as pair:
        def strike():
            pair.a.signal(signal.SIGKILL)
            assert pair.a.wait() == -signal.SIGKILL
        carried_over(pair, strike, lambda: None)


def frozen():
    """The leader is stopped past its lease and goes on: it writes nothing more, and ends"""
    with Pair() as pair:
        def heal():
            pair.a.signal(signal.SIGCONT)
            assert pair.a.wait(PATIENCE) == LOST, pair.a.lines[-10:]
        carried_over(pair, lambda: pair.a.signal(signal.SIGSTOP), heal)
        assert any("Lost the lease" in line for line in pair.a.lines), pair.a.lines[-10:]


def cut_off():
    """The leader is cut off from the API server: it ends by itself before the other begins, and nothing comes late"""
    with Pair(proxied=True) as pair:
        def strike():
            pair.proxy.signal(signal.SIGSTOP)  # not a byte goes either way, and no connection ends

        def heal():
            assert pair.a.wait(PATIENCE) == LOST, pair.a.lines[-10:]
            pair.proxy.signal(signal.SIGCONT)
            wait(lambda: pair.proxy.stats()["enabled"] is not None, PATIENCE, "the proxy")
        carried_over(pair, strike, heal)


def writes_that_come_late():
    """Writes of the old leader are under way for longer than its lease, and it is frozen: each of them is refused when it comes"""
    late = ["match POST *jobs* always", "match PATCH *profilings/late-ap/status* always", "match PATCH *comparisons/late-ac/status* always"]
    with Pair(proxied=True) as pair:
        pair.proxy.script("".join(f"{rule} -> delay ms={HELD * 1000}\n" for rule in late))
        made = pair.create("late")
        wait(lambda: pair.proxy.count("delay") >= len(KINDS), PATIENCE, "the writes")
        fault = time.time()
        pair.proxy.signal(signal.SIGSTOP)
        pair.a.signal(signal.SIGSTOP)
        taken = pair.taken_over(fault)
        for play in made:
            play.pod_runs()
        assert not pair.late(taken), pair.late(taken)  # they are still to come
        pair.proxy.signal(signal.SIGCONT)
        wait(lambda: len(pair.late(taken)) >= len(KINDS), HELD + PATIENCE, "the late writes")
        assert {w[3] for w in pair.late(taken)} == {409}, pair.late(taken)
        pair.a.signal(signal.SIGCONT)
        assert pair.a.wait(PATIENCE) == LOST, pair.a.lines[-10:]
        pair.end(made)
        pair.check(taken)


with ControlPlane.of("shared") as cluster, EveryKind(cluster) as kinds, Postgres() as postgres, accounts() as ACCOUNTS:
    main(*[Begun(test) for test in (killed, frozen, cut_off, writes_that_come_late)])
