"""Requests of every kind side by side on one control plane, without a node: a test plays kubelet, relay and profiler.

    with EveryKind(cluster) as kinds, cluster.namespace("t") as ns:
        play = kinds.create(ns, "ap", "a")
        play.pod_runs()
        reports(play, 1)
        ends(play)
        is_over(play)
"""

import contextlib
import json

import algorithm_play
import cuda_play
import dgdr_play

PATIENCE = dgdr_play.PATIENCE
KINDS = "dgdr", "cuda", "ap", "ac"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TYPES = {dgdr_play.DGDRS: dgdr_play.GROUP, cuda_play.EXPERIMENTS: cuda_play.GROUP, cuda_play.PROFILES: cuda_play.GROUP,
         algorithm_play.PROFILINGS: algorithm_play.GROUP, algorithm_play.COMPARISONS: algorithm_play.GROUP,
         "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1", "serviceaccounts": "/api/v1",
         "roles": RBAC, "rolebindings": RBAC, "events": "/apis/events.k8s.io/v1"}
JOBS = {"dgdr": 1, "cuda": 2, "ap": 1, "ac": 1}  # of one run: an experiment is profiled and then executed
_PHASES = {"dgdr": "PrefillSweep", "cuda": "Collecting", "ap": "Measuring", "ac": "Measuring"}
_COMPARED = algorithm_play.result(algorithm_play.measured("quick_sort"), algorithm_play.measured("merge_sort"))
STEPS = 20


class EveryKind:
    """The worlds of all kinds on SERVER, which is there already; WHICH: "cluster" or "engine"."""

    def __init__(self, server, which="cluster"):
        self._stack = contextlib.ExitStack()
        self.worlds = {"dgdr": dgdr_play.World(which, server), "cuda": cuda_play.World(which, server),
                       "ap": algorithm_play.World(which, server), "ac": algorithm_play.World(which, server, "ac")}

    def __enter__(self):
        with self._stack:
            for world in self.worlds.values():
                self._stack.enter_context(world)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def create(self, ns, kind, name, **more):
        return self.worlds[kind].create(ns, name, **more)


def reports(play, step):
    play.report({"phase": _PHASES[play.world.kind], "message": f"step {step}", "progress": {"currentStep": step, "totalSteps": STEPS}})


def step_of(status):
    return status.get("progress", {}).get("currentStep")


def shows(play, step):
    return play.wait(lambda s: step_of(s) == step, f"step {step}")


def ends(play, silent=False):
    """The profiler succeeds with a result. SILENT: and has never written a status file."""
    play.succeed(json.dumps(_COMPARED) if play.world.kind == "ac" else None, silent=silent)


def is_over(play):
    """Waits for the end that follows from it; an experiment is executed first."""
    kind = play.world.kind
    if kind == "dgdr":
        return play.state("Ready")
    if kind == "cuda":
        play.executes()
        return play.phase("Succeeded")
    return play.phase("Completed")
