#!/usr/bin/python3
"""The fields of AlgorithmProfiling and AlgorithmComparison: what the server takes, adds, drops and refuses, what kubectl shows of
them, and that every field of a spec has an effect (test/lib/fields.py), on the engine that is named.

    test/algorithm/fields.py [cluster]

All requests go through the same scenario, side by side: the pod runs and reports; it is evicted; the next attempt reports; time
passes; it succeeds with a result.
"""

import copy
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import dgdr_crowd
import fields
import yaml
from algorithm_play import (COMPARISONS, FINAL, GROUP, KINDS, PATIENCE, PLAYS, PROFILINGS, SPECS, World, condition, measured, ok,
                            result)
from fields import Hint
from sonde_test import ROOT, diag, main, wait

CRDS = {plural: os.path.join(ROOT, "deploy/crds", plural + ".yaml") for plural in (PROFILINGS, COMPARISONS)}
CHILDREN = tuple(k for k in dgdr_crowd.CHILDREN if "dynamo" not in k)
TYPES = {k: v for k, v in dgdr_crowd.TYPES.items() if "dynamo" not in k}
KEYS = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "sonde.dev/plan", "eta", "estimatedCompletion",
        "generation", "specHash", "percent", "nextScheduleTime", "lastScheduleTime"}
TEXTS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
)


FORBIDDEN = ("hostPath", "secret", "projected", "downwardAPI", "nfs", "csi", "ephemeral")


def custom(where, **more):
    """An algorithm of type custom, with this in its customConfig."""
    config = {"image": "i", "command": ["c"], **more}
    if where == "ap":
        return {"algorithmType": "custom", "customConfig": config}
    return {"algorithms": [{"name": "a", "type": "custom", "customConfig": config}]}


def ml(where, **more):
    if where == "ap":
        return {"algorithmType": "ml", "mlConfig": more}
    return {"algorithms": [{"name": "a", "type": "ml", "mlConfig": more}]}


def volume(where, **more):
    return custom(where, volumes=[{"name": "v", "mountPath": "/v", **(more or {"emptyDir": {}})}])


def config_map(where):
    return volume(where, configMap={"name": "c", "items": [{"key": "k", "path": "p"}]})


def hints(where):
    at = "" if where == "ap" else "algorithms[]."
    of = {  # of one algorithm
        "parameters": Hint({"input": "sorted"}),
        "resources.requests": Hint({"cpu": "2"}),
        "resources.limits": Hint({"memory": "2Gi"}),
        "mlConfig.framework": Hint("dask", ml(where, framework="sklearn")),
        "mlConfig.task": Hint("distributed_training", ml(where)),
        "mlConfig.algorithm": Hint("svm", ml(where)),
        "mlConfig.datasetSize": Hint(7, ml(where)),
        "mlConfig.nFeatures": Hint(7, ml(where)),
        "mlConfig.nSelect": Hint(7, ml(where, task="feature_selection")),
        "customConfig.image": Hint(beside=custom(where)),
        "customConfig.command": Hint(["d"], custom(where)),
        "customConfig.args": Hint(["d"], custom(where)),
        "customConfig.env[].name": Hint(beside=custom(where, env=[{"name": "A"}])),
        "customConfig.env[].value": Hint(beside=custom(where, env=[{"name": "A"}])),
        "customConfig.env[].valueFrom": Hint({"a": "b"}, custom(where, env=[{"name": "A"}])),
        "customConfig.volumes[].name": Hint(beside=volume(where)),
        "customConfig.volumes[].mountPath": Hint("/changed", volume(where)),
        "customConfig.volumes[].subPath": Hint(beside=volume(where)),
        "customConfig.volumes[].readOnly": Hint(True, volume(where)),
        "customConfig.volumes[].persistentVolumeClaim.claimName": Hint(beside=volume(where, persistentVolumeClaim={"claimName": "c"})),
        "customConfig.volumes[].persistentVolumeClaim.readOnly": Hint(True, volume(where, persistentVolumeClaim={"claimName": "c"})),
        "customConfig.volumes[].configMap.name": Hint(beside=volume(where, configMap={"name": "c"})),
        "customConfig.volumes[].configMap.items[].key": Hint(beside=config_map(where)),
        "customConfig.volumes[].configMap.items[].path": Hint(beside=config_map(where)),
        "customConfig.volumes[].configMap.items[].mode": Hint(beside=config_map(where)),
        "customConfig.volumes[].configMap.defaultMode": Hint(256, volume(where, configMap={"name": "c"})),
        "customConfig.volumes[].configMap.optional": Hint(True, volume(where, configMap={"name": "c"})),
        "customConfig.volumes[].emptyDir.medium": Hint("Memory", volume(where)),
        "customConfig.volumes[].emptyDir.sizeLimit": Hint("1Gi", volume(where)),
        **{f"customConfig.volumes[].{source}": Hint({"a": "b"}, volume(where)) for source in FORBIDDEN},
    }
    both = {
        "inputSizes": Hint([2000]),
        "iterations": Hint(6),
        "warmup": Hint(3),
        "timeout": Hint("1s"),
        "runTimeout": Hint("7s"),
        "queueName": Hint("changed"),
        "price.perCpuHour": Hint(2),
        "price.perGiBHour": Hint(2),
        "price.perRun": Hint(2),
        "price.currency": Hint("EUR"),
        "ttlSecondsAfterFinished": Hint(0),
        "schedule.cron": Hint("never", {"schedule": {"cron": "0 5 1 1 *"}}),
        "schedule.timeZone": Hint("Nowhere/AtAll", {"schedule": {"cron": "0 5 1 1 *"}}),
        "schedule.concurrencyPolicy": Hint("Replace", {"schedule": {"cron": "0 5 1 1 *"}}),
        "schedule.historyLimit": Hint(1, {"schedule": {"cron": "0 5 1 1 *"}}),
        "schedule.suspend": Hint(True, {"schedule": {"cron": "0 5 1 1 *"}}),
        "retries": Hint(0),
        "priorityClassName": Hint("system-cluster-critical"),  # every cluster has it
    }
    own = {"algorithmName": Hint("merge_sort")} if where == "ap" else {
        "algorithms[].name": Hint("bubble_sort"),
        "algorithms[].type": Hint("ml"),
        "algorithms[].framework": Hint("dask", {"algorithms": [{"name": "a", "type": "ml"}]}),
        "baseline": Hint("merge_sort"),
        "minEffect": Hint(0.1),
        "accuracyTolerance": Hint(0.1),
        "resources.requests": Hint({"cpu": "2"}),
        "resources.limits": Hint({"memory": "2Gi"}),
    }
    return {**{at + path: hint for path, hint in of.items()}, **both, **own}


# What is not played here: priority counts where runs are limited, and a schedule's policy when something is due.
ELSEWHERE = {"priority", "schedule.concurrencyPolicy", "schedule.historyLimit"}


def alone(status):
    """What it says of itself: the history has the others as well."""
    status = copy.deepcopy({k: v for k, v in status.items() if k != "trend"})
    if "conditions" in status:
        status["conditions"] = [c for c in status["conditions"] if c["type"] != "PerformanceDegraded"]
    return status


class Stage(dgdr_crowd.Crowd):
    """All requests of a play, one step after the other."""

    def __init__(self, world, ns):
        plural, play = KINDS[world.kind][1], PLAYS[world.kind]
        self.requests = plural
        self.types = {plural: GROUP, **TYPES}
        self.actor = type("Actor", (dgdr_crowd.Actor, play), {})
        super().__init__(world, ns)
        self.snapshots = {}

    def status(self, name):
        return self.now[self.requests].get(name, {}).get("status", {"gone": True})

    def rests(self, name):
        status = self.status(name)
        return "gone" in status or status.get("phase") in FINAL or condition(status, "Suspended").get("status") == "True" or \
            "schedule" in self.now[self.requests][name]["spec"]

    def begin(self, specs):
        self.create(specs)
        for name, spec in specs.items():
            stored = self.now[self.requests].get(name, {}).get("spec", spec)
            assert fields.contains(stored, spec), f"sent {spec}, stored {stored}"

    def reach(self, what, is_true):
        """Waits for all, and keeps what can be seen then."""
        began = time.monotonic()
        self.until(what, is_true)
        self.snapshots[what] = {name: alone(self.status(name)) for name in self.plays}
        diag(f"{what}: {time.monotonic() - began:.1f} s")

    def reports(self, step):
        def act(play):
            play.pod_runs()
            play.report({"phase": "Measuring", "message": f"step {step}", "progress": {"currentStep": step, "totalSteps": 9}})
        self.each(act)
        self.reach(f"step {step}", lambda n: self.status(n).get("progress", {}).get("currentStep") == step)

    def time_passes(self):
        """Only as much as is needed: what ends with time has ended."""
        due = [n for n in self.plays if self.now[self.requests].get(n, {}).get("spec", {}).get("timeout") == "1s"]
        self.wait(lambda: all(map(self.rests, due)), PATIENCE, f"{due} to end with time")

    def succeeds(self, play):
        names = [a["name"] for a in play.get()["spec"].get("algorithms", [])] or [play.get()["spec"]["algorithmName"]]
        pods = play.get()["spec"]["pods"]
        left = {"morePods": 1} if pods > 1 and play.status()["run"]["attempt"] == 2 else {}
        play.succeed(json.dumps(left or result(*(measured(n) for n in names))))

    def trace(self, name):
        play = self.plays[name]
        children = {}
        for kind in CHILDREN:
            for what, item in self.seen[kind]:
                if what == "ADDED" and any(o["uid"] == play.uid for o in item["metadata"].get("ownerReferences", [])):
                    item = {k: v for k, v in item.items() if k != "status"}
                    children[f"{kind}/{item['metadata']['name']}"] = item
        events = sorted({f"{e['type']} {e['reason']} {e['note']}" for _, e in self.seen["events"]
                         if e["regarding"].get("uid") == play.uid})
        trace = {"children": children, "events": events, "status": {k: s[name] for k, s in self.snapshots.items()}}
        hashes = {s[name].get("run", {}).get("specHash") for s in self.snapshots.values()} - {None}
        own = [(fr"\bdprofiler-{name}(-\d+)?-[a-z0-9]{{5}}\b", "<pod>"), (fr"\b{name}\b", "<name>")]
        return fields.stripped(trace, (KEYS, [*((h, "<hash>") for h in hashes), *own, *TEXTS]))


def play(world, specs):
    with world.server.namespace("fields") as ns, world.operator(ns), Stage(world, ns) as stage:
        stage.begin(specs)
        stage.reach("a pod", lambda n: stage.has_pod(n, 1))
        stage.reports(1)
        stage.each(lambda p: p.evict())
        stage.reach("another pod", lambda n: stage.has_pod(n, 2))
        stage.reports(2)
        stage.time_passes()
        stage.each(stage.succeeds)
        stage.reach("the end", lambda n: stage.has_pod(n, 3))
        return {name: stage.trace(name) for name in specs}


def effects(kind):
    plural = KINDS[kind][1]
    every = list(fields.fields_of(fields.spec_schema(CRDS[plural])))
    there = World(world.which, world.server, kind)
    with there:
        made = fields.effects(every, SPECS[kind], hints(kind), lambda specs: play(there, specs))
    without = [path for path, found in made.items() if not found and path not in ELSEWHERE]
    assert not without, f"without any effect: {without}"


def every_field_of_a_profiling_has_an_effect():
    """Every field of a profiling's spec has an effect on a child object, on the status, or is refused"""
    effects("ap")


def every_field_of_a_comparison_has_an_effect():
    """The same of a comparison's"""
    effects("ac")


# --- what the server does ------------------------------------------------------------------------------------------------


def send(plural, spec, status=None, name="try"):
    """(code, body) of a POST that leaves nothing."""
    kind = next(k for k, p in KINDS.values() if p == plural)
    body = {"apiVersion": "dprofiler.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return world.api.post(f"{GROUP}/namespaces/default/{plural}?dryRun=All", {**body, **({"status": status} if status else {})})


def no_field_is_missed():
    """The fields that the server publishes, in spec and status, are those of the schemas"""
    for plural, path in CRDS.items():
        with open(path, encoding="utf-8") as f:
            crd = yaml.safe_load(f)["spec"]
        schema = crd["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for part in "spec", "status":
            ours = [f.path for f in fields.fields_of(schema[part])]
            theirs = wait(lambda k=crd["names"]["kind"], p=part: fields.published(world.api, k, p), PATIENCE, "the schema")
            diag(f"{plural}.{part}: {len(ours)} fields")
            assert sorted(ours) == sorted(theirs), set(ours) ^ set(theirs)


def defaults_are_upstreams():
    """What is not said is as upstream has it; what is ours is there only where it says nothing else"""
    own = {"suspend": False, "cancel": False, "retries": 3, "pods": 1, "priority": 5}
    spec = {"algorithmName": "quick_sort", "inputSize": 1}
    assert ok(send(PROFILINGS, spec))["spec"] == {**spec, "algorithmType": "sorting", "iterations": 1, "timeout": "1h", **own}
    spec = {"algorithms": [{"name": "quick_sort"}], "inputSize": 1}
    assert ok(send(COMPARISONS, spec))["spec"] == {**spec, "algorithms": [{"name": "quick_sort", "type": "sorting"}],
                                                   "iterations": 1, "timeout": "2h", "parallel": False, **own}
    spec = ok(send(PROFILINGS, {"algorithmName": "m", "algorithmType": "ml", "inputSize": 1, "mlConfig": {}}))["spec"]
    assert spec["mlConfig"] == {"nSelect": 20}, spec


def nothing_is_dropped_that_users_send():
    """Parameters, metrics, bestParams and nSelect are kept whole; what there is not is pruned"""
    free = {"a": {"b": [1, {"c": None}]}, "x": "y"}
    spec = ok(send(PROFILINGS, {"algorithmName": "m", "inputSize": 1, "parameters": free, "x": 1, "mlConfig": {"nSelect": 7, "x": 1}}))["spec"]
    assert spec["parameters"] == free and "x" not in spec and spec["mlConfig"] == {"nSelect": 7}, spec
    spec = ok(send(COMPARISONS, {"algorithms": [{"name": "a", "parameters": free}], "inputSize": 1}))["spec"]
    assert spec["algorithms"][0]["parameters"] == free, spec
    host = {"name": "v", "mountPath": "/v", "hostPath": {"path": "/"}}
    spec = ok(send(PROFILINGS, {"algorithmName": "m", "inputSize": 1, "customConfig": {"volumes": [host]}}))["spec"]
    assert spec["customConfig"]["volumes"] == [host], "it is for the operator to refuse by name"
    secret = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    spec = ok(send(PROFILINGS, {"algorithmName": "m", "inputSize": 1, "customConfig": {"env": [secret]}}))["spec"]
    assert spec["customConfig"]["env"] == [secret], "the same"
    with world.server.namespace("fields") as ns:
        made = world.create(ns, "p")
        results = {"metrics": {"m": {"n": [1]}}, "mlResults": {"bestParams": {"max_depth": {"x": 1}}}, "n": 1}
        status = ok(world.api.patch(made.path + "/status", {"status": {"x": 1, "results": {**results, "x": 1}}}))["status"]
        assert status == {"results": results}, status


def base(**more):
    return {"algorithmName": "quick_sort", "inputSize": 1, **more}


def two(**more):
    return {"algorithms": [{"name": "quick_sort"}], "inputSize": 1, **more}


REFUSED = [  # where it is, what is wrong
    (PROFILINGS, {"inputSize": 1}, "spec.algorithmName"),
    (PROFILINGS, {"algorithmName": "a"}, "spec.inputSize"),
    (PROFILINGS, base(inputSize=0), "spec.inputSize"),
    (PROFILINGS, base(algorithmType="gpu"), "spec.algorithmType"),
    (PROFILINGS, base(iterations=0), "spec.iterations"),
    (PROFILINGS, base(priority=11), "spec.priority"),
    (PROFILINGS, base(priority=-1), "spec.priority"),
    (PROFILINGS, base(pods=0), "spec.pods"),
    (PROFILINGS, base(mlConfig={"framework": "caffe"}), "spec.mlConfig.framework"),
    (PROFILINGS, base(mlConfig={"task": "x"}), "spec.mlConfig.task"),
    (PROFILINGS, base(mlConfig={"algorithm": "x"}), "spec.mlConfig.algorithm"),
    (PROFILINGS, base(mlConfig={"nSelect": 0}), "spec.mlConfig.nSelect"),
    (PROFILINGS, base(customConfig={"command": "sh"}), "spec.customConfig.command"),
    (PROFILINGS, base(customConfig={"env": [{"value": "v"}]}), "spec.customConfig.env.name"),
    (PROFILINGS, base(resources={"limits": {"cpu": "much"}}), "spec.resources.limits.cpu"),
    (PROFILINGS, base(schedule={}), "spec.schedule.cron"),
    (PROFILINGS, base(price={"perRun": -1}), "spec.price.perRun"),
    (COMPARISONS, {"inputSize": 1}, "spec.algorithms"),
    (COMPARISONS, {"algorithms": [{}], "inputSize": 1}, "spec.algorithms.name"),
    (COMPARISONS, two(algorithms=[{"name": "a", "type": "x"}]), "spec.algorithms.type"),
    (COMPARISONS, two(algorithms=[{"name": "a", "framework": "x"}]), "spec.algorithms.framework"),
    (COMPARISONS, two(parallel="yes"), "spec.parallel"),
    (COMPARISONS, two(minEffect=2), "spec.minEffect"),
]


def what_cannot_be_is_refused():
    """422 with the place of each fault, the same on both engines"""
    for plural, spec, field in REFUSED:
        code, body = send(plural, spec)
        assert code == 422, (spec, code, body)
        found = {f for c in body["details"]["causes"] for f in (c["field"], re.sub(r"\[\d+\]", "", c["field"]))}  # 1.20 tells no index
        assert field in found, (spec, field, found)
    with world.server.namespace("fields") as ns:
        made = world.create(ns, "a")
        for status in {"phase": "Done"}, {"results": {"executionTime": "1"}}, {"conditions": [{"type": "Ready", "status": "yes"}]}:
            code, body = world.api.patch(made.path + "/status", {"status": status})
            assert code == 422, (status, code, body)


def the_columns():
    """Tables have upstream's columns and ours, filled from the status"""
    with world.server.namespace("fields") as ns:
        made = world.create(ns, "quick", SPECS["ap"])
        ok(world.api.patch(made.path + "/status", {"status": {"phase": "Running", "progress": {"percent": 41.5, "eta": "15:12Z"}}}))
        made = world.create(ns, "both", kind="ac")
        ok(world.api.patch(made.path + "/status", {"status": {"phase": "Completed", "comparison": {"summary": "quick_sort wins"}}}))
        (row,) = world.api.table(f"{GROUP}/namespaces/{ns}/{PROFILINGS}")
        assert list(row) == ["Name", "Algorithm", "Type", "Size", "Status", "Age", "Progress", "ETA"], row
        assert {**row, "Age": None} == {"Name": "quick", "Algorithm": "quick_sort", "Type": "sorting", "Size": 1000, "Status": "Running",
                                        "Age": None, "Progress": 41.5, "ETA": "15:12Z"}, row
        (row,) = world.api.table(f"{GROUP}/namespaces/{ns}/{COMPARISONS}", wide=True)
        assert list(row)[:4] == ["Name", "Algorithms", "Size", "Status"], row
        assert row["Name"] == "both" and "quick_sort" in row["Algorithms"] and "quick_sort wins" in row.values(), row


if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        main(no_field_is_missed, defaults_are_upstreams, nothing_is_dropped_that_users_send, what_cannot_be_is_refused, the_columns,
             every_field_of_a_profiling_has_an_effect, every_field_of_a_comparison_has_an_effect)
