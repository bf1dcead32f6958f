#!/usr/bin/python3
"""Compares test/data/strategy/ with what a live API server does; with --record, writes down what it does.

Each case is an object that is created in a dry run. The unit test `local_strategy` replays the recordings without a
server.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from kinds import takes_pods
from sonde_test import ROOT, ControlPlane, main

DATA = os.path.join(ROOT, "test", "data", "strategy")
RECORD = "--record" in sys.argv
CLUSTER_SCOPED = {"namespaces", "nodes", "clusterroles", "clusterrolebindings", "customresourcedefinitions"}
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def ask(api, namespace, case):
    base = f"/apis/{case['group']}/v1" if case["group"] else "/api/v1"
    where = "" if case["plural"] in CLUSTER_SCOPED else f"/namespaces/{namespace}"
    body = json.loads(json.dumps(case["in"]).replace('"NS"', f'"{namespace}"'))
    code, answer = api.post(f"{base}{where}/{case['plural']}?dryRun=All", body)
    answer = json.loads(UID.sub("UID", json.dumps(answer)).replace(namespace, "NS"))
    now = {key: case[key] for key in ("name", "group", "plural", "in")}
    if code == 422:
        now["causes"] = answer["details"]["causes"]
    else:
        assert code == 201, (case["name"], answer)
        metadata = answer.pop("metadata")
        if case["plural"] == "jobs":
            now["labels"] = metadata.get("labels")
        now["out"] = {key: value for key, value in answer.items() if key not in ("kind", "apiVersion")}
    return now


def in_order(case):
    """The server's maps have no order, and so have its causes."""
    return {**case, "causes": sorted(case.get("causes", []), key=json.dumps)}


def test_server_answers_as_recorded():
    """the server answers as recorded in test/data/strategy"""
    with ControlPlane.of("shared") as plane, plane.namespace("strategy") as namespace:
        api = plane.api()
        takes_pods(api, namespace)
        for name in sorted(os.listdir(DATA)):
            path = os.path.join(DATA, name)
            with open(path, encoding="utf-8") as f:
                cases = json.load(f)
            now = [ask(api, namespace, case) for case in cases]
            if RECORD:
                with open(path, "w", encoding="utf-8") as f:
                    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in now) + "\n]\n")
                continue
            for mine, recorded in zip(now, cases, strict=True):
                assert in_order(mine) == in_order(recorded), (mine, recorded)


if __name__ == "__main__":
    main(test_server_answers_as_recorded)
