#!/usr/bin/python3
"""Compares test/data/fields/ with what a live API server does; with --record, writes down what it does.

Each scenario below is one object and a list of writes to it. A recording holds, for each write, the object before it, the
object as the server's field manager saw it (or the applied configuration), and the object after it with its
managedFields, or the error. The unit test `local_fields` replays the same recordings without a server.
"""

import copy
import json
import os
import re
import secrets
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from kinds import KINDS, STRATEGIC_PATCH, takes_pods
from sonde_test import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, ROOT, ControlPlane, main, wait

DATA = os.path.join(ROOT, "test", "data", "fields")
RECORD = "--record" in sys.argv
CONTROLLERS = "kube-controller-manager"
GROUP = "fields.test"  # in the recordings; at the server it has another name in each run
SERVED = f"g{secrets.token_hex(4)}.fields.test"
CONTENT = {"merge": MERGE_PATCH, "json": JSON_PATCH, "strategic": STRATEGIC_PATCH, "apply": APPLY_PATCH}


def string(**more):
    return {"type": "string", **more}


def items(*keys, **properties):
    return {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys),
            "items": {"type": "object", "required": [k for k in keys if "default" not in properties[k]],
                      "properties": properties}}


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
SPEC = {
    "n": {"type": "integer"}, "f": {"type": "number"}, "s": string(), "b": {"type": "boolean"},
    "nullable": string(nullable=True), "defaulted": string(default="d"),
    "date": string(format="date-time"),
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": string()},
    "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
    "ports": items("name", "port", name=string(), port={"type": "integer", "default": 80}, v=string()),
    "named": items("name", name=string(), v=string(), w=string(),
                   inner=items("z", "a", z=string(), a=string(), v=string())),
    "atomic": {"type": "array", "items": string()},
    "told": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {"a": string()}}},
    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string()},
    "wholeStruct": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": string(), "b": string()}},
    "strings": {"type": "object", "additionalProperties": string()},
    "maps": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": string(), "b": string()}}},
    "bare": {"type": "object"},
    "open": OPEN,
    "half": {**OPEN, "properties": {"k": string(), "in": {"type": "object", "properties": {"x": string()}}, "open": OPEN}},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "embedded": {**OPEN, "x-kubernetes-embedded-resource": True},
    "deep": {"type": "object", "properties": {"er": {"type": "object", "properties": {"a": string(), "b": string()}}}},
}


def schema(spec):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}, "status": OPEN}}


SCHEMAS = {
    "Typed": schema(SPEC),
    "Deduced": schema({**SPEC, "intOrString": {"x-kubernetes-int-or-string": True}}),
}

# ---- steps: (what, manager, body, options)


def step(do, manager, body, **options):
    return {"do": do, "manager": manager, "body": body, **options}


def create(manager, **content):
    return step("create", manager, content)


def merge(manager, **content):
    return step("merge", manager, content)


def apply(manager, force=False, **content):
    return step("apply", manager, content, force=force)


def status(manager, **content):
    return step("merge", manager, content, sub=True)


def spec(manager, force=False, **content):
    return apply(manager, force, spec=content)


# Whoever has an owner that does not exist is deleted: this one does, with its own uid.
OWNER_UID = "5f0d46e4-0a5b-4d0e-9a4e-000000000001"
OWNER = {"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": OWNER_UID}
CONTAINER = {"name": "a", "image": "i"}
POD = {"schedulerName": "none", "automountServiceAccountToken": False}


def pod(*containers, **more):
    return {**POD, "containers": list(containers), **more}


SCENARIOS = {
    "configmap-writes": ("ConfigMap", [
        create("one", data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}}),
        merge("two", data={"a": "3"}),
        merge("two", data={"c": "4"}),
        merge("two", data={"c": "4"}),
        merge("one", data={"a": "3"}),
        merge("one", data={"b": None}),
        step("json", "three", [{"op": "add", "path": "/data/d", "value": "5"}, {"op": "remove", "path": "/data/a"}]),
        step("strategic", "three", {"metadata": {"finalizers": ["test/x"], "annotations": {"n": "v"}}}),
        step("strategic", "four", {"metadata": {"finalizers": ["test/y"]}}),
        merge("four", metadata={"ownerReferences": [
            OWNER]}),
        merge("one", data=None),
        merge("one", binaryData={"bin": "AAEC"}),
        merge("one", metadata={"labels": None}),
        merge("", immutable=False),
        merge("one", metadata={"finalizers": None}),
    ]),
    "configmap-put": ("ConfigMap", [
        create("one", data={"a": "1", "b": "2"}),
        step("put", "two", {"data": {"a": "1", "b": "3"}}),
        step("put", "two", {"data": {"a": "1", "b": "3"}}),
        step("put", "one", {"data": {"b": "3"}, "metadata": {"labels": {"k": "v"}}}),
        step("put", "one", {}),
    ]),
    "configmap-apply": ("ConfigMap", [
        apply("one", data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}}),
        apply("one", data={"a": "1", "b": "2"}, metadata={"labels": {"x": "y"}}),
        apply("one", data={"a": "1", "b": "3"}),
        apply("two", data={"a": "1", "c": "4"}),
        apply("two", data={"a": "2"}),
        apply("two", True, data={"a": "2"}),
        apply("one", data={"b": "3"}),
        merge("three", data={"b": "4"}),
        apply("one", data={"b": "3"}),
        apply("one", data={"b": "3", "a": "5", "c": "6"}),
        apply("one", True, data={"b": "3", "a": "5", "c": "6"}),
        apply("two", metadata={"annotations": {"n": "v"}}),
        apply("one"),
        apply("one", data={"a": "1"}),
        apply("two"),
    ]),
    "configmap-shared": ("ConfigMap", [
        apply("one", data={"a": "1", "b": "2"}),
        apply("two", data={"a": "1", "b": "2"}),
        apply("one", data={"b": "2"}),
        apply("two", data={"b": "2"}),
        merge("three", data={"a": "new"}),
        merge("one", data={"b": "changed"}),
        apply("two", data={"b": "2"}),
        apply("four", data={"a": "x", "b": "y"}),
    ]),
    "configmap-created-then-applied": ("ConfigMap", [
        create("one", data={"a": "1", "b": "2"}),
        apply("one", data={"a": "1"}),
        apply("two", data={"a": "2"}),
        apply("one", data={"a": "2"}),
        apply("one", True, data={"a": "2"}),
        apply("one", data={"b": "2"}),
        merge("one", data={"c": "3"}),
    ]),
    "configmap-reset": ("ConfigMap", [
        create("one", data={"a": "1", "b": "2"}),
        merge("two", metadata={"managedFields": []}),
        merge("two", data={"a": "2"}),
        apply("three", data={"c": "3"}),
        apply("three", data={"a": "3"}),
        step("put", "two", {"metadata": {"managedFields": [{}]}, "data": {"z": "1"}}),
        apply("three", data={"z": "1"}),
        merge("two", metadata={"managedFields": [
            {"manager": "made-up", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {"f:z": {}}}}]}),
        apply("three", data={"z": "2"}),
        merge("two", metadata={"managedFields": [
            {"manager": "broken", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2",
             "fieldsV1": {"f:data": {}}}]}),
        merge("two", metadata={"managedFields": [
            {"manager": "gone", "operation": "Update", "apiVersion": "v1beta7", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:data": {"f:z": {}}}}]}),
        merge("two", data={"y": "1"}),
    ]),
    "configmap-sent-on-create": ("ConfigMap", [
        create("one", data={"a": "1"}, metadata={"managedFields": [
            {"manager": "sent", "operation": "Update", "apiVersion": "v1", "time": "2019-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:zz": {}}}}]}),
        merge("two", data={"b": "1"}),
    ]),
    "configmap-many": ("ConfigMap", [create("m0", data={"k0": "v"})] +
                       [merge(f"m{i}", data={f"k{i}": "v"}) for i in range(1, 14)] +
                       [apply("m2", data={"k2": "v"}), merge("m0", data={"k0": "w"}), merge("m20", data={"k20": "w"})]),
    "configmap-kubectl": ("ConfigMap", [
        create("kubectl-client-side-apply", data={"a": "1", "b": "2"}, metadata={"annotations": {
            "kubectl.kubernetes.io/last-applied-configuration":
                '{"apiVersion":"v1","data":{"a":"1","b":"2"},"kind":"ConfigMap","metadata":{"annotations":{},"name":"x"}}\n'}}),
        apply("other", data={"a": "2"}),
        apply("kubectl", data={"a": "<3>"}),
        merge("third", data={"b": "9"}),
        apply("kubectl", data={"a": "<3>", "b": "8"}),
        apply("kubectl", data={"a": "<3>"}, metadata={"annotations": {"x": "y"}}),
    ]),
    "configmap-errors": ("ConfigMap", [
        apply("one", data={"a": 1}),
        apply("one", data=5),
        apply("one", data=["x"]),
        apply("one", datum={"a": "1"}),
        apply("one", data={"a": True}),
        apply("one", immutable="x"),
        apply("one", data={"a": "1"}),
        apply("one", apiVersion="v2", data={"a": "1"}),
        step("apply", "one", {"apiVersion": None, "data": {}}),
        step("apply", "one", {"kind": None, "data": {}}),
        step("apply", "one", {"kind": "Nothing", "data": {}}),
        apply("one", metadata={"managedFields": []}),
        apply("one", metadata={"managedFields": None}, data={"b": None}),
        apply("one", data=None),
        apply("one", metadata={"finalizers": ["a/b", "a/b"]}),
        apply("one", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "o"}]}),
        apply("one", metadata={"labels": {"a": {"b": "c"}}}),
    ]),
    "configmap-metadata": ("ConfigMap", [
        apply("one", metadata={"finalizers": ["test/b", "test/a"], "labels": {"l": "1", "m": "2"}}),
        apply("two", metadata={"finalizers": ["test/c"], "labels": {"l": "2"}}),
        apply("two", metadata={"finalizers": ["test/c"], "labels": {"n": "2"}}),
        apply("one", metadata={"finalizers": ["test/a"], "labels": {"m": "2"}, "ownerReferences": [
            OWNER]}),
        apply("two", metadata={"ownerReferences": [
            {**OWNER, "controller": True}]}),
        merge("three", metadata={"finalizers": ["test/d"]}),
        merge("three", metadata={"finalizers": None, "ownerReferences": None, "labels": None}),
    ]),
    "custom-apply": ("Typed", [
        spec("one", n=1, f=1.5, s="x", b=True, set=["a", "b<c"], numbers=[10, 9, 2],
             ports=[{"name": "q", "v": "1"}, {"name": "p", "port": 443}, {"name": "p", "port": 80, "v": "z"}],
             named=[{"name": "a", "v": "1"}, {"name": "b", "inner": [{"z": "1", "a": "2", "v": "3"}]}], atomic=["x"],
             told=[{"a": "1"}], whole={"a": "b"}, wholeStruct={"a": "1"}, strings={"a": "b"},
             maps={"k": {"a": "1"}, "l": {}}),
        spec("two", named=[{"name": "a", "w": "2"}], set=["c"], strings={"c": "d"}, maps={"k": {"b": "2"}}),
        spec("two", named=[{"name": "a", "v": "2"}], n=2, atomic=["y"], whole={"b": "c"}, wholeStruct={"b": "1"},
             ports=[{"name": "q", "v": "2"}], maps={"k": {"a": "3"}}),
        spec("two", True, named=[{"name": "a", "v": "2"}], n=2, atomic=["y"], whole={"b": "c"}, set=["c"],
             strings={"c": "d"}),
        spec("one", n=2, set=["a"], named=[{"name": "b", "inner": [{"z": "1", "a": "2"}]}], strings={"a": "b"}),
        merge("three", spec={"strings": {"z": "1"}, "named": [{"name": "b", "v": "n"}, {"name": "new"}]}),
        spec("one", named=[{"name": "b", "v": "m"}], set=["a"], strings={"a": "b"}),
        spec("one", True, named=[{"name": "b", "v": "m"}], set=["a"], strings={"a": "b"}),
        merge("three", spec={"n": None, "set": ["z"], "strings": None}),
        merge("four", spec={"whole": {"q": "r"}, "told": [{"a": "2"}, {"a": "3"}]}),
    ]),
    "custom-nested": ("Typed", [
        spec("one", deep={"er": {"a": "1", "b": "2"}}, named=[{"name": "x", "v": "1", "w": "2"}, {"name": "y"}]),
        spec("two", deep={"er": {"b": "2"}}, named=[{"name": "x", "w": "2"}]),
        spec("one", deep={"er": {"a": "1"}}, named=[{"name": "y"}]),
        spec("two", deep={"er": {"b": "3"}}, named=[{"name": "x", "w": "3"}]),
        merge("three", spec={"deep": {"er": {"a": "5"}}}),
        spec("one", deep={"er": {"a": "1"}}, named=[{"name": "y"}]),
        spec("two", named=[{"name": "x"}], n=1),
    ]),
    "custom-open": ("Typed", [
        spec("one", open={"a": {"b": {"c": 1}}, "l": [1, {"x": 2}], "s": "t"}, any={"a": {"b": 1}}, bare={"k": {"l": 1}},
             half={"k": "v", "u": {"w": {"z": [1]}, "e": {}}, "in": {"x": "1", "y": {"q": 1}}, "open": {"a": {"b": 1}}},
             embedded={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q", "labels": {"a": "b"}}, "spec": {"x": {"y": 1}}}),
        spec("two", open={"a": {"b": {"c": 1}}}, half={"u": {"w": {"z": [1]}}}),
        spec("two", open={"a": {"b": {"c": 2}}}, half={"u": {"w": {"y": 1}}}, any=5),
        spec("two", True, open={"a": 5}, half={"u": {"w": "scalar"}}, any=[1]),
        merge("three", spec={"half": {"u": "scalar"}}),
        merge("three", spec={"half": {"u": {"again": {"a": "map"}}}}),
        merge("three", spec={"half": {"u": ["now", "a", "list"]}, "any": None}),
        merge("four", spec={"half": {"u": None, "k": "w"}}),
    ]),
    "custom-writes": ("Typed", [
        create("one", spec={"n": 1, "named": [{"name": "b"}, {"name": "a", "v": "1"}], "set": ["x", "y"], "strings": {}}),
        merge("two", spec={"named": [{"name": "a", "v": "2"}, {"name": "c"}], "set": ["y", "z"]}),
        status("ctl", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
        status("ctl", status={"phase": "Done", "more": {"a": {"b": 1}}}),
        status("ctl", metadata={"managedFields": []}, status={"phase": "Again"}),
        step("apply", "applier", {"status": {"phase": "Applied", "x": 1}}, sub=True),
        step("apply", "applier", {"status": {"phase": "Applied", "x": 1}}, sub=True, force=True),
        merge("two", spec={"strings": {"a": "b"}, "n": 2}),
        merge("three", spec={"strings": {"c": "d"}}),
        merge("three", spec={"strings": {"a": None}}),
        merge("two", spec={"n": 2.0}),
        merge("two", spec={"f": 1}),
        merge("three", spec={"f": 1.0}),
        merge("one", metadata={"managedFields": [{}]}),
        merge("one", spec={"n": 3}),
        spec("late", n=3),
        merge("one", spec=None),
    ]),
    "custom-granular": ("Typed", [
        create("one", spec={"strings": {}, "named": [{"name": "a"}]}),
        merge("two", spec={"strings": {"a": "1", "b": "2"}, "named": [{"name": "a", "v": "1"}]}),
        merge("three", spec={"n": 1}),
        merge("one", spec={"named": [{"name": "a", "v": "1", "inner": [{"z": "1", "a": "1"}]}]}),
        merge("four", metadata={"labels": {}}),
        merge("five", metadata={"labels": {"a": "b"}}),
        merge("six", spec={"n": 2}),
        merge("four", metadata={"managedFields": [
            {"manager": "was-atomic", "operation": "Apply", "apiVersion": GROUP + "/v1", "time": "2019-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:strings": {}, "f:named": {}}}},
            {"manager": "was-granular", "operation": "Apply", "apiVersion": GROUP + "/v1", "time": "2019-01-01T00:00:00Z",
             "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:whole": {"f:a": {}}, "f:atomic": {"i:0": {}}}}}]}),
        merge("four", spec={"n": 5}),
    ]),
    "custom-nulls": ("Typed", [
        spec("one", nullable="x", n=1, strings={"a": "b"}, named=[{"name": "a"}], set=["a"], deep={"er": {"a": "1"}}),
        spec("two", nullable=None),
        spec("two", True, nullable=None),
        spec("one", n=1, strings={"a": "b"}, named=[{"name": "a"}], set=["a"], deep={"er": {"a": "1"}}),
        spec("three", strings={}, named=[], set=[], deep={}),
        spec("four", strings={}, atomic=[], whole={}, deep={"er": {}}),
    ]),
    "custom-errors": ("Typed", [
        spec("one", named=[{"name": "a"}, {"name": "b"}, {"name": "a"}]),
        spec("one", set=["a", "a"]),
        spec("one", numbers=[1, 2, 1]),
        spec("one", ports=[{"name": "a"}, {"name": "a", "port": 80}]),
        spec("one", named=[{"v": "a"}]),
        spec("one", named=["v"]),
        spec("one", named=[None]),
        spec("one", set=[None]),
        spec("one", set=[{"a": 1}]),
        spec("one", set=[["a"]]),
        spec("one", nope=1),
        spec("one", n="x"),
        spec("one", s=1),
        spec("one", s={"a": [1, "x", None, True, 1.5]}),
        spec("one", b=1),
        spec("one", b="x y"),
        spec("one", strings=5),
        spec("one", strings="text"),
        spec("one", set=5),
        spec("one", set={"a": [1, None]}),
        spec("one", named=[{"name": "a", "v": 1}]),
        spec("one", atomic=["a", 1]),
        spec("one", named=[{"name": "a", "inner": [{"z": "1"}]}]),
        apply("one", spec=5),
    ]),
    "custom-deduced": ("Deduced", [
        spec("one", intOrString=5, set=["a"], named=[{"name": "a"}], whole={"a": "b"}, strings={"a": "b"}, any={"a": {"b": 1}},
             deep={"er": {"a": "1"}}),
        spec("two", whole={"c": "d"}, strings={"c": "d"}, deep={"er": {"b": "1"}}),
        spec("two", set=["b"], named=[{"name": "b"}], intOrString="x"),
        spec("two", True, set=["b"], strings={"a": "c"}, any={"a": "scalar"}),
        step("apply", "three", {"metadata": {"finalizers": ["test/a"], "labels": {"a": "b"}}}),
        step("apply", "four", {"metadata": {"finalizers": ["test/b"], "labels": {"c": "d"}}}),
        spec("one", strings={"a": "b"}),
        merge("five", spec={"strings": {"a": "n"}, "any": {"a": {"was": "scalar"}}}),
        merge("five", metadata={"finalizers": None}),
        spec("six", strings=None, any=None),
    ]),
    "pod": ("Pod", [
        create("one", spec=pod({**CONTAINER, "env": [{"name": "E", "value": "1"}], "ports": [
            {"containerPort": 8080}, {"containerPort": 80, "name": "http"}, {"containerPort": 80, "protocol": "UDP"}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}}}, {"name": "b", "image": "j"},
            volumes=[{"name": "v", "emptyDir": {}}], tolerations=[{"key": "k", "operator": "Exists"}]),
            metadata={"labels": {"l": "m"}}),
        step("strategic", "two", {"spec": {"containers": [{"name": "a", "image": "i2"}]}}),
        status("kubelet", status={"conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1",
                                  "podIPs": [{"ip": "10.0.0.1"}], "phase": "Running"}),
        apply("three", spec={"containers": [{"name": "a", "image": "i3"}, {"name": "b", "image": "j"}]}),
        apply("three", True, spec={"containers": [{"name": "a", "image": "i3"}, {"name": "b", "image": "j"}]}),
        apply("four", spec={"containers": [{"name": "a", "image": "i4"}, {"name": "b", "image": "k"}]}),
        apply("four", spec={"containers": [{"name": "a", "image": "i3", "ports": [{"containerPort": 8080}]}]}),
        apply("four", spec={"containers": [{"name": "a", "image": "i3", "env": [{"name": "E"}, {"name": "E"}]}]}),
        apply("four", metadata={"labels": {"l": "n"}}, spec={"containers": [{"name": "a", "image": "i5"}]}),
        apply("five", metadata={"annotations": {"n": "v"}}),
        step("strategic", "kubelet", {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "r"}]}}, sub=True),
    ]),
    "pod-doubled": ("Pod", [
        create("one", spec=pod({**CONTAINER, "env": [{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]})),
        merge("two", metadata={"labels": {"a": "b"}}),
    ]),
    "service": ("Service", [
        create("one", spec={"selector": {"a": "b"}, "ports": [{"port": 80}, {"port": 443, "name": "s", "protocol": "TCP"}][:1]}),
        step("strategic", "two", {"spec": {"ports": [{"port": 80, "name": "x"}, {"port": 443, "name": "s"}]}}),
        apply("three", spec={"ports": [{"port": 80, "name": "x"}]}),
        apply("three", spec={"ports": [{"port": 80, "protocol": "TCP", "name": "y"}], "selector": {"a": "c"}}),
        apply("three", True, spec={"ports": [{"port": 80, "protocol": "TCP", "name": "y"}], "selector": {"a": "c"}}),
        apply("three", spec={"selector": {"a": "c"}}),
        merge("four", spec={"externalIPs": ["192.0.2.1"], "type": "ClusterIP", "sessionAffinity": "ClientIP"}),
    ]),
    "job": ("Job", [
        create("one", spec={"parallelism": 0, "template": {"metadata": {"labels": {"l": "m"}}, "spec": pod(
            {**CONTAINER, "volumeMounts": [{"name": "v", "mountPath": "/v"}], "command": ["x"]}, restartPolicy="Never",
            volumes=[{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "m"}}])}}),
        merge("two", spec={"activeDeadlineSeconds": 100}),
        apply("three", spec={"activeDeadlineSeconds": 200}),
        apply("three", True, spec={"activeDeadlineSeconds": 200}),
        merge("two", metadata={"labels": {"k": "v"}}),
        apply("three", spec={"backoffLimit": 6}),
    ]),
    "others-secret": ("Secret", [
        create("one", data={"a": "MQ=="}, type="Opaque"),
        merge("two", stringData={"b": "text"}),
        apply("three", stringData={"c": "text"}),
        apply("three", data={"c": "MQ=="}),
    ]),
    "others-account": ("ServiceAccount", [
        create("one", secrets=[{"name": "a"}], imagePullSecrets=[{"name": "p"}]),
        apply("two", secrets=[{"name": "b"}], imagePullSecrets=[{"name": "p"}]),
        merge("three", automountServiceAccountToken=False),
    ]),
    "others-quota": ("ResourceQuota", [
        create("one", spec={"hard": {"pods": "5"}}),
        merge("two", spec={"hard": {"cpu": "1000m"}}),
        apply("three", spec={"hard": {"cpu": "1"}}),
        status("ctl", status={"hard": {"pods": "5"}, "used": {"pods": "0"}}),
    ]),
    "others-event": ("Event", [
        create("one", reason="r", message="m", type="Normal", count=1, firstTimestamp="2020-01-01T00:00:00Z",
               source={"component": "c"}),
        merge("one", count=2, lastTimestamp="2020-01-02T00:00:00Z"),
    ]),
    "others-lease": ("Lease", [
        create("one", spec={"holderIdentity": "a", "leaseDurationSeconds": 10, "acquireTime": "2020-01-01T00:00:00.000000Z"}),
        merge("one", spec={"holderIdentity": "b", "renewTime": "2020-01-01T00:00:01.000000Z"}),
        apply("two", spec={"holderIdentity": "c"}),
    ]),
    "others-role": ("Role", [
        create("one", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
        apply("two", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]),
        apply("two", True, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]),
    ]),
    "others-binding": ("RoleBinding", [
        create("one", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
               subjects=[{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]),
        merge("two", subjects=None),
    ]),
}

# ---- running them

EPOCH = "2020-01-01T00:00:%02dZ"


class Run:
    """One scenario on its way through the server."""

    def __init__(self, plane, namespace, name):
        self.api = plane.api()
        self.name = name
        self.kind, self.steps = SCENARIOS[name]
        self.times, self.done = {}, []
        self.object = None
        if self.kind in SCHEMAS:
            base, self.version, plural, self.type = f"/apis/{SERVED}/v1", f"{GROUP}/v1", self.kind.lower() + "s", None
        else:
            base, self.version, plural, self.type = KINDS[self.kind]
        self.path = f"{base}/namespaces/{namespace}/{plural}"
        self.namespace = namespace
        self.owner = self.api.get("/api/v1/namespaces/default")[1]["metadata"]["uid"]

    def body(self, wanted):
        body = {"apiVersion": self.version, "kind": self.kind, **copy.deepcopy(wanted["body"])}
        body["metadata"] = {"name": self.name, **body.get("metadata", {})}
        if self.kind == "Event":
            body["involvedObject"] = {"kind": "Pod", "name": "x", "namespace": self.namespace}
        return {k: v for k, v in body.items() if not (k in ("apiVersion", "kind") and v is None)}

    def send(self, wanted):
        do, options = wanted["do"], f"?fieldManager={wanted['manager']}" if wanted["manager"] else ""
        one = f"{self.path}/{self.name}" + ("/status" if wanted.get("sub") else "")
        if do == "create":
            return self.api.post(self.path + options, self.owned(self.body(wanted)))
        if do == "put":
            return self.api.put(one + options, self.owned(self.body(wanted)))
        if do == "apply":
            options += "&force=true" if wanted.get("force") else ""
            return self.api.patch(one + options, self.owned(self.body(wanted)), APPLY_PATCH)
        return self.api.patch(one + options, self.owned(wanted["body"]), CONTENT[do])

    def owned(self, body):
        return json.dumps(body).replace(OWNER_UID, self.owner).replace(f'"{GROUP}/v1"', f'"{SERVED}/v1"')

    def seen(self, wanted, after):
        """What the field manager saw: the object after the write, without what the server decided later."""
        new = copy.deepcopy(after)
        new["metadata"].pop("managedFields", None)
        sent = wanted["body"].get("metadata", {}).get("managedFields") if isinstance(wanted["body"], dict) else None
        if sent is not None:
            new["metadata"]["managedFields"] = sent
        if wanted["do"] == "create":
            LATER.get(self.kind, lambda new: None)(new)
        return new

    def clean(self, value):
        """Without what differs from run to run; times become those of the steps."""
        value = copy.deepcopy(value)
        meta = value["metadata"]
        for name in ("resourceVersion", "selfLink"):
            meta.pop(name, None)
        if "uid" in meta:
            meta["uid"] = "u"
        if meta.get("creationTimestamp"):
            meta["creationTimestamp"] = EPOCH % 0
        for entry in meta.get("managedFields", []):
            if entry.get("time", "").startswith("20") and not entry["time"].startswith("2019"):
                entry["time"] = EPOCH % self.times.setdefault(entry["time"], len(self.done))
        text = json.dumps(value).replace(self.namespace, "n").replace(self.owner, OWNER_UID).replace(SERVED, GROUP)
        text = re.sub(r"-token-[a-z0-9]{5}\b", "-token-abcde", text)  # of ServiceAccounts
        text = re.sub(r"\b10\.96\.\d+\.\d+", "10.96.0.100", text)  # of Services
        for uid in getattr(self, "uids", ()):
            text = text.replace(uid, "u")
        return json.loads(text)

    def step(self):
        wanted = self.steps[len(self.done)]
        code, live = self.api.get(f"{self.path}/{self.name}")
        live = live if code == 200 else None
        code, answer = self.send(wanted)
        if live:
            self.uids = {live["metadata"]["uid"]}
        elif code < 300:
            self.uids = {answer["metadata"]["uid"]}
        result = {"name": f"{len(self.done)} {wanted['do']} by {wanted['manager'] or 'nobody'}", "do": wanted["do"],
                  "manager": wanted["manager"]}
        for flag in ("force", "sub"):
            if wanted.get(flag):
                result[flag] = True
        if live:
            result["live"] = self.clean(live)
        if wanted["do"] == "apply":
            result["body"] = json.loads(json.dumps(self.body(wanted)).replace(self.namespace, "n"))
        elif code >= 300:
            raise AssertionError(f"{self.name}: {result['name']}: {code} {answer}")
        if code >= 300 and code != 422:
            result.update(code=code, message=answer["message"].replace(SERVED, GROUP))
        elif code < 300:
            result["object"] = self.clean(answer)
            if wanted["do"] == "apply":
                # Built-in types make something of nulls.
                result["whole"] = self.kind in SCHEMAS or (self.kind == "ConfigMap" and "null" not in json.dumps(wanted["body"]))

            else:
                result["seen"] = self.clean(self.seen(wanted, answer))
        # A custom resource that its schema refuses has passed the field manager; what that made of it is not told.
        self.done.append(None if code == 422 else result)

    def recording(self):
        data = {"apiVersion": self.version, "kind": self.kind}
        if self.kind in SCHEMAS:
            data["schema"] = SCHEMAS[self.kind]
        else:
            data["type"] = self.type
        data["steps"] = self.done
        return data


def later_pod(new):
    new["status"] = {}
    for name in ("serviceAccount", "serviceAccountName", "priority", "preemptionPolicy"):
        new["spec"].pop(name, None)
    kept = [t for t in new["spec"].pop("tolerations", []) if not t["key"].startswith("node.kubernetes.io/")]
    if kept:
        new["spec"]["tolerations"] = kept


def later_job(new):
    new["spec"].pop("selector")
    for labels in (new["metadata"]["labels"], new["spec"]["template"]["metadata"]["labels"]):
        labels.pop("controller-uid", None)
        labels.pop("job-name", None)


def later_service(new):
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        new["spec"].pop(name, None)


LATER = {"Pod": later_pod, "Job": later_job, "Service": later_service}


def definition(kind):
    plural = kind.lower() + "s"
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{SERVED}"},
            "spec": {"group": SERVED, "scope": "Namespaced", "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                                   "schema": {"openAPIV3Schema": SCHEMAS[kind]}}]}}


def write(name, data):
    steps = ",\n".join("    " + json.dumps(s, ensure_ascii=False) for s in data["steps"])
    head = json.dumps({k: v for k, v in data.items() if k != "steps"}, ensure_ascii=False)[1:-1]
    with open(os.path.join(DATA, name + ".json"), "w", encoding="utf-8") as f:
        f.write(f'{{{head},\n  "steps": [\n{steps}\n  ]\n}}\n')


def run_all(plane, namespace):
    runs = [Run(plane, namespace, name) for name in SCENARIOS]
    # One step of each at a time, and a second between them: managedFields have times in seconds.
    while any(len(r.done) < len(r.steps) for r in runs):
        for run in runs:
            if len(run.done) < len(run.steps):
                run.step()
        time.sleep(1.1)
    return runs


def settled(object):
    """The server's own controllers write when they get to it: where one did, its place among the managers means nothing, nor do times."""
    managers = object.get("metadata", {}).get("managedFields", [])
    if any(m["manager"] == CONTROLLERS for m in managers):
        for m in managers:
            m.pop("time", None)
        managers.sort(key=lambda m: m["manager"] == CONTROLLERS)
    return object


def comparable(step):
    if not step:
        return step
    step = copy.deepcopy(step)
    for object in (step.get("live"), step.get("object")):
        settled(object or {})
    return json.dumps(step, sort_keys=True)


def test_server_does_as_recorded():
    """the server does what is recorded in test/data/fields"""
    with ControlPlane.of("shared") as plane, plane.namespace("fields") as namespace:
        api = plane.api()
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for kind in SCHEMAS:
            code, body = api.post(crds, definition(kind))
            assert code == 201, body
        try:
            for kind in SCHEMAS:
                wait(lambda kind=kind: api.get(f"/apis/{SERVED}/v1/{kind.lower()}s")[0] == 200, what="the new kinds to be served")
            takes_pods(api, namespace)
            runs = run_all(plane, namespace)
        finally:
            for name in SCENARIOS:
                run = Run(plane, namespace, name)
                run.api.patch(f"{run.path}/{name}", {"metadata": {"finalizers": None}})
            for kind in SCHEMAS:
                api.delete(f"{crds}/{kind.lower()}s.{SERVED}")
    for run in runs:
        if RECORD:
            write(run.name, run.recording())
            continue
        with open(os.path.join(DATA, run.name + ".json"), encoding="utf-8") as f:
            recorded = json.load(f)["steps"]
        for mine, theirs in zip(run.done, recorded):
            assert comparable(mine) == comparable(theirs), (run.name, mine, theirs)
    if RECORD:
        with open(os.path.join(DATA, "LIST"), "w", encoding="utf-8") as f:
            f.write("".join(f"{name}\n" for name in SCENARIOS))


if __name__ == "__main__":
    main(test_server_does_as_recorded)
