"""AlgorithmProfilings and AlgorithmComparisons on either engine, without a node: a test plays kubelet, relay and probe.

    with World("engine") as world, world.server.namespace("t") as ns, world.operator(ns):
        play = world.create(ns, "a")
        play.measures()
        play.phase("Completed")

    with World("engine", kind="ac") as world: ...       the same of comparisons
"""

import copy
import json

import dgdr_play
from dgdr_play import PATIENCE, condition, now, ok  # noqa: F401, for those who import from here

GROUP = "/apis/dprofiler.io/v1alpha1"
PROFILINGS, COMPARISONS = "algorithmprofilings", "algorithmcomparisons"
FINAL = ("Completed", "Failed", "Cancelled")

SPECS = {
    "ap": {"algorithmName": "quick_sort", "inputSize": 1000, "iterations": 5},
    "ac": {"algorithms": [{"name": "quick_sort"}, {"name": "merge_sort"}], "inputSize": 1000, "iterations": 5},
}
KINDS = {"ap": ("AlgorithmProfiling", PROFILINGS), "ac": ("AlgorithmComparison", COMPARISONS)}


def measured(name, size=1000, **more):
    figures = {"median": 1.5, "ciLow": 1.4, "ciHigh": 1.6}
    return {"name": name, "type": "sorting", "size": size, "n": 5, "invalid": 0, "executionTime": 1.5, "memoryUsage": 2.0,
            "cpuUsage": 99.0, "iterations": 5, "statistics": {"time": figures}, **more}


def result(*entries, **more):
    return {"version": 1, "unit": "process in one pod", "contended": False, "pods": 1, "machine": {"cpu": "x"}, "warnings": [],
            "algorithms": list(entries) or [measured("quick_sort")], **more}


class World(dgdr_play.World):
    crds = ("deploy/crds/algorithmprofilings.yaml", "deploy/crds/algorithmcomparisons.yaml")
    served = (f"{GROUP}/{PROFILINGS}", f"{GROUP}/{COMPARISONS}")

    def __init__(self, which, server=None, kind="ap"):
        super().__init__(which, server)
        self.kind = kind

    def create(self, ns, name, spec=None, kind=None, labels=None, **more):
        kind = kind or self.kind
        name_of_kind, plural = KINDS[kind]
        body = {"apiVersion": "dprofiler.io/v1alpha1", "kind": name_of_kind, "metadata": {"name": name, "labels": labels or {}},
                "spec": {**copy.deepcopy(spec or SPECS[kind]), **more}}
        made = ok(self.api.post(f"{GROUP}/namespaces/{ns}/{plural}", body))
        return PLAYS[kind](self, ns, name, made["metadata"]["uid"])

    def play(self, ns, name, kind=None):
        """Of one that somebody else made."""
        kind = kind or self.kind
        made = ok(self.api.get(f"{GROUP}/namespaces/{ns}/{KINDS[kind][1]}/{name}"))
        return PLAYS[kind](self, ns, name, made["metadata"]["uid"])


class Play(dgdr_play.Play):
    requests = (GROUP, PROFILINGS)
    container = "algorithm"
    maps = {"status": "{}-run-status", "data": "{}-run-results"}

    def phase(self, phase, seconds=PATIENCE):
        """Fails at once when it ends otherwise."""
        status = self.wait(lambda s: s.get("phase") in (phase, *FINAL), f"phase {phase}", seconds)
        assert status["phase"] == phase, json.dumps(status, indent=1)
        return status

    def output(self, text=None, key="result.json"):
        self.map("data", {key: text if text is not None else json.dumps(result())})

    def measures(self, text=None):
        """A whole run of the probe; TEXT is its result."""
        self.pod_runs()
        self.report({"phase": "Measuring", "message": "m", "progress": {"currentStep": 1, "totalSteps": 5}})
        self.succeed(text)


class ComparisonPlay(Play):
    requests = (GROUP, COMPARISONS)
    maps = {"status": "{}-comparison-run-status", "data": "{}-comparison-run-results"}


PLAYS = {"ap": Play, "ac": ComparisonPlay}
