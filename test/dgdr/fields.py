#!/usr/bin/python3
"""Every field of a DynamoGraphDeploymentRequest's spec has an effect (test/lib/fields.py), on the engine that is named.

    test/dgdr/fields.py [cluster]

All requests go through the same scenario, side by side: the pod runs and reports; it is evicted; the next attempt
reports; time passes; it succeeds with an output; the deployment becomes ready.
"""

import copy
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import fields
import yaml
from dgdr_crowd import CHILDREN, Crowd
from dgdr_play import DGDRS, GROUP, PATIENCE, SPEC, World, ok
from fields import Hint
from sonde_test import ROOT, diag, main, wait

CRD = os.path.join(ROOT, "deploy/crds/dynamographdeploymentrequests.yaml")
BASE = {**SPEC, "autoApply": True}
A_TOLERATION = {"profilingConfig": {"tolerations": [{"key": "a", "effect": "NoExecute"}]}}
HINTS = {
    "timeout": Hint("1s"),
    "retries": Hint(0),
    "priorityClassName": Hint("system-cluster-critical"),  # every cluster has it
    "profilingConfig.configMapRef.name": Hint("base"),
    "profilingConfig.configMapRef.key": Hint("other.yaml", {"profilingConfig": {"configMapRef": {"name": "base"}}}),
    "profilingConfig.outputPVC": Hint("results"),
    "profilingConfig.resources.requests": Hint({"cpu": "2"}),
    "profilingConfig.resources.limits": Hint({"memory": "2Gi"}),
    "profilingConfig.tolerations[].key": Hint(beside=A_TOLERATION),
    "profilingConfig.tolerations[].operator": Hint("Exists", A_TOLERATION),
    "profilingConfig.tolerations[].value": Hint(beside=A_TOLERATION),
    "profilingConfig.tolerations[].effect": Hint("NoSchedule", A_TOLERATION),
    "profilingConfig.tolerations[].tolerationSeconds": Hint(beside=A_TOLERATION),
}
ENDS_WITH_TIME = ("timeout",)  # these are waited for

OUTPUT = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: %s
spec:
  services:
    Frontend: {replicas: 1, extraPodSpec: {mainContainer: {image: "registry.example/frontend:1"}}}
    VllmDecodeWorker: {replicas: 2, extraPodSpec: {mainContainer: {image: "registry.example/worker:1"}}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: %s-planner-data
data:
  source: %s
"""

# What is different by nature, and what is a hash of the spec as a whole.
MASKED_KEYS = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "sonde.dev/plan", "specHash",
               "eta", "estimatedCompletion", "overallPercentage", "percent", "generation"}
MASKED_TEXTS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
)


class Stage(Crowd):
    """All requests of a play, one step after the other."""

    def __init__(self, ns):
        super().__init__(world, ns)
        self.snapshots = {}

    # --- steps

    def begin(self, specs):
        self.create(specs)
        for name, spec in specs.items():
            stored = self.now[DGDRS][name]["spec"]
            assert fields.contains(stored, spec), f"sent {spec}, stored {stored}"

    def reach(self, what, is_true):
        """Waits for all, and keeps what can be seen then."""
        began = time.monotonic()
        self.until(what, is_true)
        self.snapshots[what] = {name: copy.deepcopy(self.status(name)) for name in self.plays}
        diag(f"{what}: {time.monotonic() - began:.1f} s")

    def reports(self, phase, step):
        def act(play):
            play.pod_runs()
            play.report({"phase": phase, "message": f"step {step}", "progress": {"currentStep": step, "totalSteps": 9}})
        self.each(act)
        self.reach(f"{phase} {step}", lambda n: self.status(n).get("profilingProgress", {}).get("currentStep") == step)

    def time_passes(self):
        """Only as much as is needed: what ends with time has ended."""
        due = [n for n, p in self.plays.items() if any(key in p.get()["spec"] for key in ENDS_WITH_TIME)]
        self.wait(lambda: all(map(self.rests, due)), PATIENCE, f"{due} to end with time")

    def succeeds(self, play):
        def text(source):
            return OUTPUT % (source, play.name, source)
        play.output(text("mocker"), "mocker_config_with_planner.yaml")
        play.succeed(text("real"))

    def deploys(self, play):
        if "deployment" in self.status(play.name):
            play.deployment_state("successful")

    # --- afterwards

    def trace(self, name):
        play = self.plays[name]
        children = {}
        for kind in CHILDREN:
            for what, item in self.seen[kind]:
                if what == "ADDED" and self.is_of(play, item):
                    item = {k: v for k, v in item.items() if k != "status"}
                    children[f"{kind}/{item['metadata']['name']}"] = item
        events = sorted({f"{e['type']} {e['reason']} {e['note']}" for _, e in self.seen["events"]
                         if e["regarding"].get("uid") == play.uid})
        trace = {"children": children, "events": events, "status": {k: s[name] for k, s in self.snapshots.items()}}
        hashes = {s[name].get("run", {}).get("specHash") for s in self.snapshots.values()} - {None}
        texts = [(h, "<hash>") for h in hashes] + [(fr"{name}(-\d)?-[a-z0-9]{{5}}\b", "<pod>"), (name, "<name>")]
        return fields.stripped(trace, (MASKED_KEYS, [*texts, *MASKED_TEXTS]))

    def is_of(self, play, item):
        owned = any(o["uid"] == play.uid for o in item["metadata"].get("ownerReferences", []))
        return owned or item["metadata"].get("labels", {}).get("sonde.dev/request") == play.uid


def prepare(ns):
    """What the hints name."""
    documents = {key: f"apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nspec: {{services: {{{key[:5]}: {{}}}}}}\n"
                 for key in ("disagg.yaml", "other.yaml")}
    ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "base"}, "data": documents}))
    ok(world.api.post(f"/api/v1/namespaces/{ns}/persistentvolumeclaims", {
        "metadata": {"name": "results"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}))


def play(specs):
    with world.server.namespace("fields") as ns:
        prepare(ns)
        with world.operator(ns), Stage(ns) as stage:
            stage.begin(specs)
            stage.reach("a pod", lambda n: stage.has_pod(n, 1))
            stage.reports("PrefillSweep", 1)
            stage.each(lambda play: play.evict())
            stage.reach("another pod", lambda n: stage.has_pod(n, 2))
            stage.reports("DecodeSweep", 2)
            stage.time_passes()
            stage.each(stage.succeeds)
            stage.reach("the output", lambda n: stage.status(n)["state"] == "Ready" or stage.status(n).get("deployment"))
            stage.each(stage.deploys)
            stage.reach("the deployment", lambda n: stage.status(n)["state"] == "Ready")
            return {name: stage.trace(name) for name in specs}


def all_fields():
    return list(fields.fields_of(fields.spec_schema(CRD)))


def no_field_is_missed():
    """The fields that the server publishes are those of the schema"""
    ours = [f.path for f in all_fields()]
    theirs = wait(lambda: fields.published(world.api, "DynamoGraphDeploymentRequest", "spec"), PATIENCE, "the schema")
    diag(f"{len(ours)} fields")
    assert sorted(ours) == sorted(theirs), set(ours) ^ set(theirs)


def every_field_has_an_effect():
    """Every field of the spec has an effect on a child object, on an output, or is refused"""
    made = fields.effects(all_fields(), BASE, HINTS, play)
    without = [path for path, found in made.items() if not found]
    assert not without, f"without any effect: {without}"


def a_field_without_an_effect_is_found():
    """Fields that a schema has and that no controller reads are reported, and no other"""
    with open(CRD, encoding="utf-8") as f:
        crd = yaml.safe_load(f)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schema["properties"]["nonsense"] = {"type": "string"}
    schema["properties"]["nonsenses"] = {"type": "array", "items": {"type": "object", "properties": {"much": {"type": "integer"}}}}
    for of in "profilingConfig", "deploymentOverrides":
        schema["properties"][of]["properties"]["nonsense"] = {"type": "object", "additionalProperties": {"type": "string"}}
    apply(yaml.safe_dump(crd))
    tried = [f for f in fields.fields_of(schema) if "nonsense" in f.path or f.path in ("model", "useMocker")]
    made = fields.effects(tried, BASE, {}, play)
    assert sorted(path for path, found in made.items() if not found) == \
        ["deploymentOverrides.nonsense", "nonsense", "nonsenses[].much", "profilingConfig.nonsense"], made


def apply(crd):
    """In place of the one that there is; the server may take a moment."""
    path = os.path.join(world.folder, "crd.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(crd)
    world.server.apply_crds(path)
    path = f"{GROUP}/namespaces/default/{DGDRS}?dryRun=All"
    body = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "try"},
            "spec": {**BASE, "nonsense": "kept"}}
    wait(lambda: "nonsense" in ok(world.api.post(path, body))["spec"], PATIENCE, "the schema")


if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        # A shared control plane keeps the kinds that it has.
        main(no_field_is_missed, every_field_has_an_effect,
             *([a_field_without_an_effect_is_found] if world.which == "engine" else []))
