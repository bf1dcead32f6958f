#!/usr/bin/python3
"""Compares test/data/schema/ with what a live API server answers; with --record, writes its answers down.

Each file there holds a schema and cases. A case has a value and, as recorded from a server, either the causes it was
refused for or what the server stored in its place. The unit test `schema` replays the same files without a server.
"""

import glob
import json
import os
import re
import secrets
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, ControlPlane, main, wait

FILES = sorted(glob.glob(os.path.join(ROOT, "test", "data", "schema", "*.json")))
GROUP = f"g{secrets.token_hex(4)}.wording.test"
RECORD = "--record" in sys.argv


def definition(name, schema):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": f"{name}s", "singular": name, "kind": name.capitalize()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def answer(api, name, value):
    """What the server makes of VALUE: {"causes": [...]} or {"stored": {...}}."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": name.capitalize(), **value}
    body["metadata"] = {"name": "x"}
    status, reply = api.post(f"/apis/{GROUP}/v1/{name}s?dryRun=All", body)
    if status == 201:
        return {"stored": {k: v for k, v in reply.items() if k not in ("apiVersion", "kind", "metadata")}}
    assert status == 422, (status, reply)
    causes = [{k: c[k] for k in ("field", "reason", "message")} for c in reply["details"]["causes"]]
    return {"causes": sorted(causes, key=lambda c: (c["field"], c["message"]))}


def comparable(result):
    """Servers before 1.24 leave the index out of most paths."""
    if "stored" in result:
        return result["stored"]
    strip = lambda text: re.sub(r"\[\d+\]", "", text)
    return sorted({(strip(c["field"]), c["reason"], strip(c["message"])) for c in result["causes"]})


def check(path, api):
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    name = "k" + re.sub(r"\W", "", os.path.basename(path)[:-5])
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    status, crd = api.post(crds, definition(name, data["schema"]))
    assert status == 201, crd
    try:
        wait(lambda: api.get(f"/apis/{GROUP}/v1/{name}s")[0] == 200, 120, "the new kind to be served")
        for case in data["cases"]:
            got = answer(api, name, case["value"])
            if RECORD:
                case.pop("causes", None)
                case.pop("stored", None)
                case.update(got)
                continue
            assert comparable(got) == comparable(case), (case["value"], got)
    finally:
        api.delete(f"{crds}/{name}s.{GROUP}")
    if RECORD:
        write(path, data)


def write(path, data):
    """One line for each case: the files are read by people too."""
    lines = ",\n".join("    " + json.dumps(case, ensure_ascii=False) for case in data["cases"])
    schema = json.dumps(data["schema"], ensure_ascii=False, indent=2).replace("\n", "\n  ")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'{{\n  "schema": {schema},\n  "cases": [\n{lines}\n  ]\n}}\n')


def test_of(path, cluster):
    def test():
        check(path, cluster.api())

    test.__doc__ = f"the server's answers to {os.path.basename(path)} are the recorded ones"
    return test


if __name__ == "__main__":
    with ControlPlane.of("shared") as plane:
        main(*[test_of(path, plane) for path in FILES])
