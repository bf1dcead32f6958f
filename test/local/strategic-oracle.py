#!/usr/bin/python3
"""Compares test/data/strategic/ with what a live API server does; with --record, writes down what it does.

Each case is a patch of a new object. The unit test `local_strategic` replays the recordings without a server.
"""

import copy
import http.client
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from kinds import KINDS, STRATEGIC_PATCH, takes_pods
from sonde_test import ROOT, ControlPlane, main

DATA = os.path.join(ROOT, "test", "data", "strategic", "cases.json")
RECORD = "--record" in sys.argv

FINALIZERS = {"metadata": {"finalizers": ["t/a", "t/b", "t/c"], "labels": {"x": "1", "y": "2"}}, "data": {"a": "1", "b": "2"}}
SPEC = {
    "containers": [
        {"name": "a", "image": "1", "env": [{"name": "E", "value": "e"}, {"name": "F", "value": "f"}],
         "ports": [{"containerPort": 80}, {"containerPort": 443, "name": "s"}], "args": ["x", "y"],
         "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]},
        {"name": "b", "image": "2"},
        {"name": "c", "image": "3"},
    ],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "m"}}],
    "tolerations": [{"key": "k", "operator": "Exists"}], "imagePullSecrets": [{"name": "p"}], "nodeSelector": {"n": "1"},
    "restartPolicy": "Never",
}
ACCOUNT = {"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "p"}]}
SERVICE = {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80, "name": "x"}, {"port": 443, "name": "y"}]}}
ROLE = {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}



def container(name, image):
    """With all that the server would add: what is recorded is the patch, not the defaults."""
    return {"name": name, "image": image, "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File"}


def port(number, **more):
    return {"port": number, "protocol": "TCP", "targetPort": number, **more}


D, N, I = container("d", "4"), container("n", "5"), container("i", "0")
HOST = {"path": "/x", "type": ""}

CASES = [
    ("ConfigMap", FINALIZERS, [
        {"data": {"a": "9", "c": "3"}}, {"data": {"a": None}}, {"data": None}, {"data": {"zz": None}},
        {"data": {"$patch": "replace", "z": "1"}}, {"data": {"$patch": "delete"}}, {"data": {"$patch": "merge", "a": "2"}},
        {"data": {"$patch": "other"}}, {"data": {"$patch": 5}},
        {"metadata": {"finalizers": ["t/d"]}}, {"metadata": {"finalizers": ["t/d", "t/b"]}},
        {"metadata": {"finalizers": ["t/d", "t/a", "t/d", "t/b"]}}, {"metadata": {"finalizers": ["t/c", "t/a"]}},
        {"metadata": {"finalizers": []}}, {"metadata": {"finalizers": None}}, {"metadata": {"finalizers": "t/x"}},
        {"metadata": {"finalizers": [1]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["t/a"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["t/a", "t/c", "t/z"], "finalizers": ["t/n"]}},
        {"metadata": {"$deleteFromPrimitiveList": ["t/a"]}},
        {"metadata": {"$setElementOrder/finalizers": ["t/c", "t/a", "t/b"]}},
        {"metadata": {"$setElementOrder/finalizers": ["t/b", "t/a"]}},
        {"metadata": {"$setElementOrder/finalizers": ["t/n", "t/a"], "finalizers": ["t/n"]}},
        {"metadata": {"$setElementOrder/finalizers": ["t/a"], "finalizers": ["t/n"]}},
        {"metadata": {"$setElementOrder/finalizers": "x"}}, {"metadata": {"$setElementOrder": ["t/a"]}},
        {"metadata": {"$setElementOrder/finalizers": ["t/b"], "$deleteFromPrimitiveList/finalizers": ["t/a", "t/c"]}},
        {"metadata": {"labels": {"$retainKeys": ["x"], "x": "3"}}}, {"metadata": {"labels": {"$retainKeys": ["x"], "z": "3"}}},
        {"metadata": {"labels": {"$retainKeys": "x"}}}, {"metadata": {"labels": {"$retainKeys": []}}},
        {"metadata": {"labels": {"y": None, "n": "4"}}},
        {"data": {"a": {"b": "c"}}}, {"data": ["x"]}, {"nothing": None}, {"$patch": "replace"},
    ]),
    ("PodTemplate", {"template": {"metadata": {"labels": {"l": "1"}}, "spec": SPEC}}, [{"template": {"spec": p}} for p in [
        {"containers": [{"name": "b", "image": "9"}]},
        {"containers": [D]},
        {"containers": [D, {"name": "a", "image": "7"}]},
        {"containers": [{"name": "c", "image": "4"}, {"name": "a", "image": "7"}]},
        {"containers": [{"image": "9"}]}, {"containers": ["a"]}, {"containers": [["a"]]},  # [None] makes the server panic
        {"containers": [{"name": "b", "$patch": "delete"}]},
        {"containers": [{"name": "b", "$patch": "delete"}, {"name": "c", "$patch": "delete"}, N]},
        {"containers": [{"$patch": "delete"}]}, {"containers": [{"name": "zz", "$patch": "delete"}]},
        {"containers": [{"$patch": "replace"}, N]},
        {"containers": [{"$patch": "merge"}]}, {"containers": [{"$patch": "x", "name": "a"}]},
        {"containers": [{"name": "a", "env": [{"name": "F", "value": "ff"}, {"name": "G", "value": "g"}]}]},
        {"containers": [{"name": "a", "env": [{"name": "E", "$patch": "delete"}]}]},
        {"containers": [{"name": "a", "env": None, "args": None}]},
        {"containers": [{"name": "a", "args": ["z"]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 443, "name": "t"}, {"containerPort": 8080, "protocol": "TCP"}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "$patch": "delete"}]}]},
        {"containers": [{"name": "a", "volumeMounts": [{"mountPath": "/v", "$patch": "delete"}, {"mountPath": "/x", "name": "v"}]}]},
        {"containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]},
        {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
        {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]},
        {"$setElementOrder/containers": [{"name": "n"}, {"name": "a"}], "containers": [N]},
        {"$setElementOrder/containers": [{"name": "a"}], "containers": [N]},
        {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
         "containers": [{"name": "a", "image": "5"}, {"name": "b", "$patch": "delete"}]},
        {"$setElementOrder/containers": [{"image": "c"}]}, {"$setElementOrder/containers": ["c"]},
        {"$setElementOrder/initContainers": [{"name": "i"}], "initContainers": [I]},
        {"$setElementOrder/initContainers": [{"name": "i"}]}, {"$setElementOrder/nothing": []},
        {"$setElementOrder/tolerations": [{"key": "k"}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": HOST}]},
        {"volumes": [{"name": "v", "hostPath": HOST, "emptyDir": None}]},
        {"volumes": [{"name": "w", "configMap": {"items": [{"key": "k", "path": "p"}]}}]},
        {"volumes": [{"name": "u", "emptyDir": {}}, {"name": "v", "$patch": "delete"}]},
        {"tolerations": [{"key": "z", "operator": "Exists"}]}, {"imagePullSecrets": [{"name": "q"}]},
        {"nodeSelector": {"m": "2"}}, {"nodeSelector": {"$patch": "replace", "m": "2"}}, {"nodeSelector": {"n": None}},
        {"securityContext": {"runAsUser": 5}}, {"restartPolicy": "OnFailure"},
        {"terminationGracePeriodSeconds": 5}, {"hostAliases": [{"ip": "127.0.0.1", "hostnames": ["a"]}]},
    ]]),
    ("Job", {"spec": {"parallelism": 0, "template": {"spec": SPEC}}}, [
        {"spec": {"activeDeadlineSeconds": 9}}, {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
        {"spec": {"parallelism": None}},
    ]),
    ("Service", SERVICE, [
        {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, {"spec": {"ports": [port(81, name="z")]}},
        {"spec": {"ports": [{"port": 443, "$patch": "delete"}]}}, {"spec": {"selector": {"c": "d"}}},
        {"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 80}]}}, {"spec": {"externalIPs": ["192.0.2.7"]}},
        {"spec": {"ports": [{"$patch": "replace"}, port(99)]}},
    ]),
    ("ServiceAccount", ACCOUNT, [
        {"secrets": [{"name": "c"}]}, {"secrets": [{"name": "a", "$patch": "delete"}]}, {"imagePullSecrets": [{"name": "q"}]},
        {"imagePullSecrets": None}, {"automountServiceAccountToken": False},
    ]),
    ("Role", ROLE, [
        {"rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"]}]}, {"rules": None},
        {"rules": [{"$patch": "delete", "verbs": ["get"]}]},
    ]),
]


def clean(value, namespace):
    value = copy.deepcopy(value)
    uid = value["metadata"]["uid"]
    for name in ("clusterIP", "clusterIPs"):
        value.get("spec", {}).pop(name, None)
    for name in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "namespace"):
        value["metadata"].pop(name, None)
    if "secrets" in value:  # the token controller's may come before the patch, or after it
        value["secrets"] = [s for s in value["secrets"] if not s["name"].startswith(value["metadata"]["name"] + "-token-")]
    return json.loads(json.dumps(value).replace(namespace, "n").replace(uid, "u"))


def record(api, namespace, kind, content, patch, number):
    base, version, plural, name_of_type = KINDS[kind]
    path, name = f"{base}/namespaces/{namespace}/{plural}", f"x{number}"
    body = {"apiVersion": version, "kind": kind, **copy.deepcopy(content)}
    body["metadata"] = {**body.get("metadata", {}), "name": name}
    code, before = api.post(path, body)
    assert code == 201, before
    if number == 0:
        before = api.get(f"{path}/{name}")[1]
    try:
        code, after = api.patch(f"{path}/{name}", patch, STRATEGIC_PATCH)
    except http.client.RemoteDisconnected:  # the server's handler has panicked
        code, after = 0, None
    result = {"name": f"{number} {kind} {json.dumps(patch)}", "type": name_of_type, "before": clean(before, namespace),
              "patch": patch}
    if code == 200:
        result["after"] = clean(after, namespace)
    elif after:
        result.update(code=code, message=after["message"])
        if "is invalid: " in after["message"] or "undeterminable" in after["message"]:
            result["later"] = True  # the patch was applied
    api.patch(f"{path}/{name}", {"metadata": {"finalizers": None}})
    api.delete(f"{path}/{name}")
    return result


def test_server_patches_as_recorded():
    """the server patches as recorded in test/data/strategic"""
    cases = []
    with ControlPlane.of("shared") as plane, plane.namespace("strategic") as namespace:
        api = plane.api()
        takes_pods(api, namespace)
        for kind, content, patches in CASES:
            for patch in patches:
                cases.append(record(api, namespace, kind, content, patch, len(cases)))
    if RECORD:
        with open(DATA, "w", encoding="utf-8") as f:
            f.write('{\n  "cases": [\n' + ",\n".join("    " + json.dumps(c, ensure_ascii=False) for c in cases) + "\n  ]\n}\n")
        return
    with open(DATA, encoding="utf-8") as f:
        for mine, recorded in zip(cases, json.load(f)["cases"], strict=True):
            assert mine == recorded, (mine, recorded)


if __name__ == "__main__":
    main(test_server_patches_as_recorded)
