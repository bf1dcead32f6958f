#!/usr/bin/python3
"""Runs are limited: requests begin in their turn, whatever happens to the operator. The long form is bench/admission.py.

    test/protocol/admission.py [cluster]
"""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from admission_play import GROUP, Queue, World, check_order, sorted_by_turn
from dgdr_play import PATIENCE, condition, ok
from sonde_test import main

LIMIT, COUNT = 3, 40


def edit(ns, name, **spec):
    return ok(world.api.patch(f"{GROUP}/namespaces/{ns}/testruns/{name}", {"spec": spec}))


def place(q, name):
    return (q.places.get(name) or {}).get("position")


def until(q, what, is_true):
    q.wait(is_true, PATIENCE, lambda: f"{what}; begun: {q.begun}, places: {q.places}")


def killed_again_and_again():
    """The operator is killed while it works: never more than may run, each in its turn, and none twice"""
    with world.server.namespace("turns") as ns:
        made = [world.create(ns, f"r{i:02d}", priority=i * 7 % 11) for i in range(COUNT)]
        arguments = ("--max-concurrent-runs", str(LIMIT))
        with Queue(world, ns) as q, world.operator(ns, *arguments) as operator:
            until(q, "some run", lambda: len(q.under_way) == LIMIT)
            q.go()
            for at in range(5, COUNT, 10):
                until(q, f"{at} are over", lambda at=at: len(q.over) >= at)
                operator.kill()
                time.sleep(0.1)
                operator.start(*arguments)
            until(q, "all are over", lambda: len(q.over) == COUNT)
            check_order(q.begun, sorted_by_turn(made), LIMIT)
            assert q.most == LIMIT and len(set(q.begun)) == COUNT, (q.most, q.begun)
            assert not any(q.places.values()), q.places


def people_change_their_minds():
    """Another priority is another place; what is suspended waits for its turn again, what is cancelled or deleted leaves"""
    with world.server.namespace("turns") as ns, world.operator(ns, "--max-concurrent-runs", "1"), Queue(world, ns) as q:
        world.create(ns, "0runs")
        until(q, "it runs", lambda: q.under_way)
        for name in ("a", "b", "c", "d"):
            world.create(ns, name, priority=5)
        until(q, "places", lambda: [place(q, n) for n in "abcd"] == ["1", "2", "3", "4"])
        status = q.now["testruns"]["a"]["status"]
        assert status["phase"] == "Pending" and status["queue"]["reason"] == "1 of 1 runs are under way (testrun/0runs)", status
        assert condition(status, "Progressing")["reason"] == "Queued", status
        edit(ns, "d", priority=6)
        until(q, "d is the first", lambda: [place(q, n) for n in "dabc"] == ["1", "2", "3", "4"])
        edit(ns, "a", cancel=True)
        ok(world.api.delete(f"{GROUP}/namespaces/{ns}/testruns/b"))
        until(q, "two wait", lambda: [place(q, n) for n in "dac"] == ["1", None, "2"])
        edit(ns, "0runs", suspend=True)
        until(q, "d begins", lambda: "d" in q.under_way)
        edit(ns, "0runs", suspend=False)  # it is the older one
        until(q, "it waits again", lambda: [place(q, n) for n in ("0runs", "c")] == ["1", "2"])
        q.go()
        until(q, "all are over", lambda: {"0runs", "c", "d"} <= set(q.over))
        assert q.begun == ["0runs", "d", "c"], q.begun
        assert q.now["testruns"]["0runs"]["status"]["run"]["attempt"] == 2


def a_namespace_of_its_own():
    """At most so many of a namespace: others go on beside it"""
    with world.server.namespace("one") as one, world.server.namespace("two") as two:
        arguments = ("--max-concurrent-runs-per-namespace", "1")
        with world.operator(None, *arguments), Queue(world, one) as p, Queue(world, two) as q:
            for ns in (one, two):
                for name in ("a", "b"):
                    world.create(ns, name)
            for here, ns in ((p, one), (q, two)):
                until(here, "one runs, one waits", lambda h=here: len(h.under_way) == 1 and place(h, "b") == "1")
                assert here.places["b"]["reason"] == f"namespace {ns} has 1 of 1 runs under way (testrun/a)", here.places
            p.go()
            until(p, "its own are over", lambda: len(p.over) == 2)
            assert place(q, "b") == "1" and p.most == q.most == 1, (q.places, p.most, q.most)


if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        main(killed_again_and_again, people_change_their_minds, a_namespace_of_its_own)
