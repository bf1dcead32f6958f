#!/usr/bin/python3
"""The fields of CUDAExperiment and WorkloadProfile: what the server takes, adds, drops and refuses, what kubectl shows of
them, and that every field of an experiment's spec has an effect (test/lib/fields.py), on the engine that is named.

    test/cuda/fields.py [cluster]

All experiments go through the same scenario, side by side: the profiling pod runs and reports; it is evicted; the next attempt
reports; time passes; it succeeds with a summary; the execution Job's pods succeed.
"""

import copy
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cuda_trace
import dgdr_crowd
import fields
import yaml
from cuda_play import EXPERIMENTS, FINAL, GROUP, PATIENCE, PROFILES, SPEC, SUMMARY, Play, World, condition, ok
from fields import Hint
from sonde_test import ROOT, diag, main, wait

CRDS = {plural: os.path.join(ROOT, "deploy/crds", plural + ".yaml") for plural in (EXPERIMENTS, PROFILES)}
CHILDREN = *(k for k in dgdr_crowd.CHILDREN if k in dgdr_crowd.TYPES and "dynamo" not in k), PROFILES
A_VARIABLE = {"env": [{"name": "A"}]}


def source(kind, **more):
    """A variable whose value comes from somewhere."""
    return {"env": [{"name": "A", "valueFrom": {kind: more}}]}


def volume(**more):
    return {"volumes": [{"name": "v", "mountPath": "/v", **(more or {"emptyDir": {}})}]}


HINTS = {
    "runtimeClassName": Hint("changed"),
    "numberOfGPUs": Hint(2),
    "minimumComputeCapability": Hint("8.0"),
    "minimumMemory": Hint("40Gi"),
    "numberOfNodes": Hint(2),
    "env[].value": Hint(beside=A_VARIABLE),
    "env[].valueFrom.configMapKeyRef.name": Hint(beside=source("configMapKeyRef", name="c", key="k")),
    "env[].valueFrom.configMapKeyRef.key": Hint(beside=source("configMapKeyRef", name="c", key="k")),
    "env[].valueFrom.configMapKeyRef.optional": Hint(beside=source("configMapKeyRef", name="c", key="k")),
    "env[].valueFrom.secretKeyRef.name": Hint(beside=source("secretKeyRef", name="c", key="k")),
    "env[].valueFrom.secretKeyRef.key": Hint(beside=source("secretKeyRef", name="c", key="k")),
    "env[].valueFrom.secretKeyRef.optional": Hint(beside=source("secretKeyRef", name="c", key="k")),
    "env[].valueFrom.fieldRef.apiVersion": Hint("v2", source("fieldRef", fieldPath="metadata.name")),
    "env[].valueFrom.fieldRef.fieldPath": Hint("metadata.uid", source("fieldRef", fieldPath="metadata.name")),
    "env[].valueFrom.resourceFieldRef.containerName": Hint(beside=source("resourceFieldRef", resource="limits.cpu")),
    "env[].valueFrom.resourceFieldRef.resource": Hint("limits.memory", source("resourceFieldRef", resource="limits.cpu")),
    "env[].valueFrom.resourceFieldRef.divisor": Hint("1m", source("resourceFieldRef", resource="limits.cpu")),
    "volumes[].name": Hint(beside=volume()),
    "volumes[].mountPath": Hint("/changed", volume()),
    "volumes[].subPath": Hint(beside=volume()),
    "volumes[].readOnly": Hint(True, volume()),
    "volumes[].persistentVolumeClaim.claimName": Hint(beside=volume(persistentVolumeClaim={"claimName": "c"})),
    "volumes[].persistentVolumeClaim.readOnly": Hint(True, volume(persistentVolumeClaim={"claimName": "c"})),
    "volumes[].configMap.name": Hint(beside=volume(configMap={"name": "c"})),
    "volumes[].configMap.items[].key": Hint(beside=volume(configMap={"name": "c", "items": [{"key": "k", "path": "p"}]})),
    "volumes[].configMap.items[].path": Hint(beside=volume(configMap={"name": "c", "items": [{"key": "k", "path": "p"}]})),
    "volumes[].configMap.items[].mode": Hint(beside=volume(configMap={"name": "c", "items": [{"key": "k", "path": "p"}]})),
    "volumes[].configMap.defaultMode": Hint(256, volume(configMap={"name": "c"})),
    "volumes[].configMap.optional": Hint(True, volume(configMap={"name": "c"})),
    "volumes[].emptyDir.medium": Hint("Memory", volume()),
    "volumes[].emptyDir.sizeLimit": Hint("1Gi", volume()),
    "resources.requests": Hint({"cpu": "2"}),
    "resources.limits": Hint({"memory": "2Gi"}),
    "profiling.timeout": Hint("1s"),
    "profiling.launchCount": Hint(1),
    "profiling.files": Hint(["/changed"]),
    "placement.mode": Hint("kueue", {"placement": {"queue": "q"}}),
    "placement.queue": Hint(beside={"placement": {"mode": "kueue", "queue": "q"}}),
    "retries": Hint(0),
    "priorityClassName": Hint("system-cluster-critical"),  # every cluster has it
}



class Actor(dgdr_crowd.Actor, Play):
    pass


class Stage(dgdr_crowd.Crowd):
    """All experiments of a play, one step after the other."""

    requests, actor = EXPERIMENTS, Actor
    types = {EXPERIMENTS: GROUP, PROFILES: GROUP, **{k: v for k, v in dgdr_crowd.TYPES.items() if "dynamo" not in k}}

    def __init__(self, ns):
        super().__init__(world, ns)
        self.snapshots = {}

    def rests(self, name):
        status = self.status(name)
        return status.get("phase") in (*FINAL, "Suspended") or \
            condition(status, "Stalled").get("status") == "True"  # it cannot be run

    def executing(self, name):
        return f"{name}-execution" in self.now["jobs"]

    def begin(self, specs):
        self.create(specs)
        for name, spec in specs.items():
            stored = self.now[EXPERIMENTS][name]["spec"]
            assert fields.contains(stored, spec), f"sent {spec}, stored {stored}"

    def reach(self, what, is_true):
        """Waits for all, and keeps what can be seen then."""
        began = time.monotonic()
        self.until(what, is_true)
        self.snapshots[what] = {name: copy.deepcopy(self.status(name)) for name in self.plays}
        diag(f"{what}: {time.monotonic() - began:.1f} s")

    def profiles(self, play):
        """Whether it is profiled at all: a field may say that it is not."""
        return not self.executing(play.name)

    def reports(self, step):
        def act(play):
            if self.profiles(play):
                play.pod_runs()
                play.report({"phase": "Collecting", "message": f"step {step}", "progress": {"currentStep": step, "totalSteps": 9}})
        self.each(act)
        self.reach(f"step {step}", lambda n: self.executing(n) or self.status(n).get("progress", {}).get("currentStep") == step)

    def time_passes(self):
        """Only as much as is needed: what ends with time has ended."""
        due = [n for n, p in self.plays.items() if "timeout" in p.get()["spec"].get("profiling", {})]
        self.wait(lambda: all(map(self.rests, due)), PATIENCE, f"{due} to end with time")

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
        hashes = {s[name].get(of, {}).get("specHash") for s in self.snapshots.values() for of in ("run", "execution")} - {None}
        return cuda_trace.masked(trace, name, cuda_trace.HASHES | {"percent"}, [(h, "<hash>") for h in hashes])


def donor(ns):
    """An experiment like the base that has a profile already."""
    play = world.create(ns, "donor", SPEC)
    play.profiles()
    play.wait(lambda s: s.get("boundType"), "the donor's profile")


def play(specs):
    with world.server.namespace("fields") as ns, world.operator(ns), Stage(ns) as stage:
        donor(ns)
        stage.begin(specs)
        stage.reach("a pod", lambda n: stage.executing(n) or stage.has_pod(n, 1))
        stage.reports(1)
        stage.each(lambda play: stage.profiles(play) and play.evict())
        stage.reach("another pod", lambda n: stage.executing(n) or stage.has_pod(n, 2))
        stage.reports(2)
        stage.time_passes()
        stage.each(lambda play: stage.profiles(play) and play.succeed())
        stage.reach("the execution", lambda n: stage.executing(n))
        stage.each(lambda play: play.executes())
        stage.reach("the end", lambda n: False)
        return {name: stage.trace(name) for name in specs}


def all_fields():
    return list(fields.fields_of(fields.spec_schema(CRDS[EXPERIMENTS])))


def every_field_has_an_effect():
    """Every field of an experiment's spec has an effect on a child object, on the status, or is refused"""
    made = fields.effects(all_fields(), SPEC, HINTS, play)
    without = [path for path, found in made.items() if not found]
    assert not without, f"without any effect: {without}"


# --- what the server does ------------------------------------------------------------------------------------------------


def send(plural, spec, status=None, name="try"):
    """(code, body) of a POST that leaves nothing."""
    kind = {EXPERIMENTS: "CUDAExperiment", PROFILES: "WorkloadProfile"}[plural]
    body = {"apiVersion": "gpu.scheduler.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
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
    """What is not said is as upstream has it; what is ours is there only inside what is said"""
    own = {"suspend": False, "cancel": False, "retries": 3}
    upstream = {"runtimeClassName": "nvidia", "replicas": 1, "gpuRequired": 1, "profilingEnabled": False}
    assert ok(send(EXPERIMENTS, {"image": "i"}))["spec"] == {"image": "i", **upstream, **own}
    spec = ok(send(EXPERIMENTS, {"image": "i", "profiling": {}, "placement": {}}))["spec"]
    assert spec["profiling"] == {"set": "basic", "launchCount": 20, "launchSkip": 0, "reuse": False, "permission": "sysAdmin"}, spec
    assert spec["placement"] == {"mode": "affinity"}, spec
    assert ok(send(PROFILES, {}))["spec"] == {}


def what_is_not_known_is_dropped():
    """Fields that there are not are pruned at every level, and kept below details alone"""
    spec = ok(send(EXPERIMENTS, {"image": "i", "x": 1, "profiling": {"x": 1}, "env": [{"name": "A", "x": 1}], "volumes": [
        {"name": "v", "mountPath": "/v", "emptyDir": {}, "hostPath": {"path": "/"}}]}))["spec"]
    assert "x" not in spec and "x" not in spec["profiling"], spec
    assert spec["env"] == [{"name": "A"}] and spec["volumes"] == [{"name": "v", "mountPath": "/v", "emptyDir": {}}], spec
    with world.server.namespace("fields") as ns:
        world.create_profile(ns, "p")
        path = f"{GROUP}/namespaces/{ns}/{PROFILES}/p/status"
        status = ok(world.api.patch(path, {"status": {"x": 1, "details": {"x": {"y": [1]}}, "placement": {"x": 1, "reason": "r"}}}))["status"]
        assert status == {"details": {"x": {"y": [1]}}, "placement": {"reason": "r"}}, status


def put(**more):
    return {"image": "i", **more}


REFUSED = [  # where it is, what is wrong
    (EXPERIMENTS, {}, "spec.image"),
    (EXPERIMENTS, put(image=""), "spec.image"),
    (EXPERIMENTS, put(command="sh"), "spec.command"),
    (EXPERIMENTS, put(arguments=[1]), "spec.arguments"),
    (EXPERIMENTS, put(runtimeClassName=""), "spec.runtimeClassName"),
    (EXPERIMENTS, put(replicas=0), "spec.replicas"),
    (EXPERIMENTS, put(gpuRequired=0), "spec.gpuRequired"),
    (EXPERIMENTS, put(numberOfGPUs="1"), "spec.numberOfGPUs"),
    (EXPERIMENTS, put(retries=11), "spec.retries"),
    (EXPERIMENTS, put(runAsUser=-1), "spec.runAsUser"),
    (EXPERIMENTS, put(env=[{"value": "v"}]), "spec.env.name"),
    (EXPERIMENTS, put(env=[{"name": "a=b"}]), "spec.env.name"),
    (EXPERIMENTS, put(volumes=[{"name": "v", "mountPath": "/v"}]), "<nil>"),
    (EXPERIMENTS, put(volumes=[{"name": "v", "mountPath": "/v", "hostPath": {"path": "/"}}]), "<nil>"),
    (EXPERIMENTS, put(volumes=[{"name": "v", "mountPath": "/v", "emptyDir": {}, "configMap": {"name": "c"}}]), "<nil>"),
    (EXPERIMENTS, put(volumes=[{"name": "v", "mountPath": "v", "emptyDir": {}}]), "spec.volumes.mountPath"),
    (EXPERIMENTS, put(volumes=2 * [{"name": "v", "mountPath": "/v", "emptyDir": {}}]), "spec.volumes[1]"),
    (EXPERIMENTS, put(resources={"limits": {"cpu": "much"}}), "spec.resources.limits.cpu"),
    (EXPERIMENTS, put(profiling={"launchCount": 0}), "spec.profiling.launchCount"),
    (EXPERIMENTS, put(profiling={"set": "--x"}), "spec.profiling.set"),
    (EXPERIMENTS, put(profiling={"timeout": "soon"}), "spec.profiling.timeout"),
    (EXPERIMENTS, put(profiling={"permission": "root"}), "spec.profiling.permission"),
    (EXPERIMENTS, put(placement={"mode": "best"}), "spec.placement.mode"),
    (EXPERIMENTS, put(placement={"queue": "A b"}), "spec.placement.queue"),
    (PROFILES, {"command": "c"}, "spec.command"),
    (PROFILES, {"workloadImage": 1}, "spec.workloadImage"),
]


def what_cannot_be_is_refused():
    """422 with the place of each fault, the same on both engines"""
    for plural, spec, field in REFUSED:
        code, body = send(plural, spec)
        assert code == 422, (spec, code, body)
        found = {f for c in body["details"]["causes"] for f in (c["field"], re.sub(r"\[\d+\]", "", c["field"]))}  # 1.20 tells no index
        assert field in found, (spec, field, found)
    for plural, status in (EXPERIMENTS, {"phase": "Done"}), (EXPERIMENTS, {"boundType": "io-bound"}), \
            (PROFILES, {"boundType": "io-bound"}), (PROFILES, {"metrics": {"a": 1}}):
        with world.server.namespace("fields") as ns:
            if plural == PROFILES:
                world.create_profile(ns, "a")
            else:
                world.create(ns, "a", {"image": "i"})
            code, body = world.api.patch(f"{GROUP}/namespaces/{ns}/{plural}/a/status", {"status": status})
            assert code == 422, (status, code, body)


def the_columns():
    """Tables have the columns, filled from the status"""
    with world.server.namespace("fields") as ns:
        play_ = world.create(ns, "vectoradd")
        ok(world.api.patch(play_.path + "/status", {"status": {"phase": "Profiling", "boundType": "unknown", "progress": {"percent": 41.5}}}))
        world.create_profile(ns, "vectoradd-profile", "unknown", sourceCudaExperiment="vectoradd")
        ok(world.api.patch(f"{GROUP}/namespaces/{ns}/{PROFILES}/vectoradd-profile/status", {"status": SUMMARY}))
        (row,) = world.api.table(f"{GROUP}/namespaces/{ns}/{EXPERIMENTS}")
        assert {**row, "Age": None} == {"Name": "vectoradd", "Phase": "Profiling", "Bound": "unknown", "%": 41.5, "Age": None}, row
        (row,) = world.api.table(f"{GROUP}/namespaces/{ns}/{PROFILES}")
        assert {**row, "Age": None} == {"Name": "vectoradd-profile", "Bound": "unknown", "Source": "vectoradd", "Age": None}, row


if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        world.runtime_class("changed")
        main(no_field_is_missed, defaults_are_upstreams, what_is_not_known_is_dropped, what_cannot_be_is_refused, the_columns,
             every_field_has_an_effect)
