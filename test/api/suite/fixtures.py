"""fixtures - the CustomResourceDefinitions that cases of several groups use; made once a run."""

import concurrent.futures
import contextlib
import glob
import json
import os
import re
import time

from sonde_test import ROOT

from .case import T, definition

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

WIDGET = {
    "type": "object",
    "description": "A Widget is made for tests.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "description": "What is wanted.",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How big it is."},
                "color": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
                "name": {"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]+$"},
                "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
                "step": {"type": "number", "multipleOf": 0.5},
                "when": {"type": "string", "format": "date-time"},
                "flag": {"type": "boolean"},
                "note": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["id"],
                    "items": {
                        "type": "object",
                        "required": ["id"],
                        "properties": {"id": {"type": "string"}, "count": {"type": "integer", "default": 1},
                                       "unit": {"type": "string"}},
                    },
                },
                "limits": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                         "properties": {"known": {"type": "integer"}}},
                "choice": {
                    "type": "object",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
                },
                "nested": {
                    "type": "object",
                    "default": {},
                    "properties": {"depth": {"type": "integer", "default": 3},
                                   "label": {"type": "string"}},
                },
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": {"type": "string"},
                "ready": {"type": "integer"},
                "since": {"type": "string", "format": "date-time"},
                "conditions": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["type"],
                    "items": {
                        "type": "object",
                        "required": ["type", "status"],
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"},
                                       "reason": {"type": "string"}, "message": {"type": "string"}},
                    },
                },
            },
        },
    },
}

WIDGET_VERSION = {
    "subresources": {"status": {}},
    "additionalPrinterColumns": [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "How big it is."},
        {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Since", "type": "date", "jsonPath": ".status.since", "priority": 1},
        {"name": "Ratio", "type": "number", "jsonPath": ".spec.ratio", "priority": 1, "format": "double"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ],
}

# plural -> its definition. widgets: everything on; plains: no status, no columns; frees: no schema to speak of
CUSTOM = {
    "widgets": definition("widgets", WIDGET, {"shortNames": ["wd"], "singular": "widget", "categories": ["all"]},
                          WIDGET_VERSION),
    "plains": definition("plains", {"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"value": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}}}}}),
    "frees": definition("frees"),
}


class Shipped:
    """The definition of one of our own kinds, as it is shipped."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.group, self.plural, self.kind = (re.search(rf"(?m)^  +{key}: *(\S+)$", self.text)[1] for key in ("group", "plural", "kind"))


# They stay: a cluster that tests share has them for all.
OURS = [Shipped(path) for path in sorted(glob.glob(os.path.join(ROOT, "deploy", "crds", "*.yaml")))]


class Fixtures:
    """Makes CUSTOM and OURS on both sides before the cases run, and removes all definitions of this run after them."""

    def __init__(self, suite):
        self._suite = suite

    def _sides(self):
        return (self._suite.left, self._suite.right)

    def _make(self, side):
        t = T(side, "none", self._suite)
        for plural, crd in CUSTOM.items():
            side.call("POST", PATH, t.fill(json.dumps(crd)))
        for crd in OURS:
            side.call("POST", PATH, crd.text.encode(), "application/yaml")
        for plural in CUSTOM:
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and side.call("GET", t.fill(f"/apis/$GROUP/v1/{plural}"))[0] != 200:
                time.sleep(0.05)

        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not self._discovered(side, t):
            time.sleep(0.05)

    @staticmethod
    def _discovered(side, t):
        """kubectl remembers what it finds for minutes."""
        wanted = [(t.fill("/apis/$GROUP/v1"), plural) for plural in CUSTOM]
        wanted += [(f"/apis/{crd.group}/v1alpha1", crd.plural) for crd in OURS]
        found = {path: side.call("GET", path)[1] or {} for path in {path for path, _ in wanted}}
        return all(plural in [r["name"] for r in found[path].get("resources") or []] for path, plural in wanted)

    def make(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(self._make, self._sides()))

    def remove(self):
        """Removes them, and waits until discovery has forgotten them: the next run's kubectl would find them."""
        for side in self._sides():
            with contextlib.suppress(Exception):
                for item in side.call("GET", PATH)[1]["items"]:
                    if side.token in item["spec"]["group"]:
                        side.call("DELETE", f"{PATH}/{item['metadata']['name']}")
                group = T(side, "none", self._suite).api_group
                deadline = time.monotonic() + 120
                while time.monotonic() < deadline and group in json.dumps(side.call("GET", "/apis")[1]):
                    time.sleep(0.1)
