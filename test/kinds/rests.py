#!/usr/bin/python3
"""A run that is over: its pods and ConfigMaps are remembered no more, and nothing is written for that, whatever changes later."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import ok
from every_kind import KINDS, EveryKind, ends, is_over, reports
from sonde_test import Engine, main
from watched import Watched

TYPES = {"jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1"}


def touch(play, path, value):
    """Changes something that means nothing; the object as it is then."""
    return ok(play.api.patch(path, {"metadata": {"annotations": {"touched": value}}}))


def looked_at(ns, kind, name):
    """Another request has got its Job: what was changed before that has been decided on."""
    other = kinds.create(ns, kind, name)
    other.job()


def rests(kind):
    def test():
        with engine.namespace("rest") as ns, Watched(engine, ns, TYPES) as seen, kinds.worlds[kind].operator(ns):
            play = kinds.create(ns, kind, "r")
            play.pod_runs()
            reports(play, 1)
            ends(play)
            is_over(play)
            seen.quiet(1)
            paths = [f"{prefix}/namespaces/{ns}/{what}/{name}" for what, prefix in TYPES.items() for name in seen.now[what]
                     if name != "kube-root-ca.crt"]
            looked_at(ns, kind, "other-0")  # what was late for that quiet is not any more
            paths = [path for path in paths if play.api.get(path)[0] == 200]
            assert len(paths) >= 3, paths
            status, last = play.status(), {}
            for value in "1", "2":  # when the second comes the first one's look is over
                for path in [play.path, *paths]:
                    last[path] = touch(play, path, value)
                looked_at(ns, kind, f"other-{value}")
            for path, item in last.items():
                assert ok(play.api.get(path)) == item, (path, item)
            assert play.status() == status, (play.status(), status)
    test.__doc__ = f"{kind}: after the end nothing is written, whatever changes about the request, its Jobs, pods and ConfigMaps"
    return test


with Engine("--no-node", "--no-fsync") as engine, EveryKind(engine, "engine") as kinds:
    main(*[rests(kind) for kind in KINDS])
