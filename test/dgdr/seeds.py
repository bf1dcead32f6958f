#!/usr/bin/python3
"""What the two designs say that users see, from kubectl, with the designs' own values; and their compatibility tables.

    seeds.py [cluster]      on the embedded engine, or on a real control plane
"""

import json
import os
import re
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from dgdr_play import World, condition, request
from sonde_test import ROOT, main

FULL = {  # the full design's "After", as its profiler writes it
    "phase": "DecodeInterpolation", "phaseNumber": 6, "totalPhases": 7, "message": "Profiling decode with batch size 496",
    "timestamp": "2026-01-23T14:14:42Z", "startedAt": "2026-01-23T13:00:00Z",
    "progress": {"currentStep": 4, "totalSteps": 6, "percentage": 66.7, "subPhase": "Running AIPerf benchmark"},
    "gpuConfig": {"currentGpus": 2, "parallelMapping": "TP=2/DP=1"},
}
SHORT = {  # the short design's "Result"
    "phase": "DecodeInterpolation", "message": "Profiling decode with batch size 496", "timestamp": "2026-01-24T02:08:42Z",
    "progress": {"currentStep": 4, "totalSteps": 6, "percentage": 66.7},
}


def seed(name):
    with open(os.path.join(ROOT, "examples/seeds", name), encoding="utf-8") as f:
        return yaml.load(f, yaml.BaseLoader)  # JSON is YAML; all scalars as they are written


def same(actual, wanted, path=""):
    """ACTUAL has all that WANTED has, as it is written there; lists of conditions by their type."""
    if isinstance(wanted, dict):
        for key, value in wanted.items():
            assert key in actual, f"{path}.{key} is missing: {actual}"
            same(actual[key], value, f"{path}.{key}")
    elif isinstance(wanted, list):
        for value in wanted:
            same(next((a for a in actual if a["type"] == value["type"]), {}), value, f"{path}[{value['type']}]")
    else:
        text = actual if isinstance(actual, str) else json.dumps(actual)
        assert text == wanted, f"{path} is {text!r}, not {wanted!r}"


def table(text):
    """A table of kubectl's with one row, by header."""
    header, row = text.splitlines()
    columns = [(m.group(), m.start()) for m in re.finditer(r"\S+", header)]
    ends = [start for _, start in columns[1:]] + [None]
    return {name: row[start:end].strip() for (name, start), end in zip(columns, ends)}


def has_columns(cells, **wanted):
    """The WANTED headers are there in that order (others may stand between them), with these cells (None: any)."""
    names = [name.replace("_", "-") for name in wanted]
    assert [c for c in cells if c in names] == names, (list(cells), names)
    for name, value in zip(names, wanted.values()):
        assert value is None or cells[name] == value, (name, cells)


def kubectl(play, *words):
    return world.kubectl("-n", play.ns, *words)


def described(text, key):
    """The value of `Key:` in what describe prints, wherever it stands first."""
    return re.search(rf"^\s*{re.escape(key)}:\s*(.*?)\s*$", text, re.M)[1]


# --- what users see ------------------------------------------------------------------------------------------------------


def the_full_design():
    """Full design: get, get -o wide, describe and -o jsonpath print what it says, with its own values"""
    with request(world, "my-deployment") as (play, _):
        play.pod_runs()
        play.report(FULL)
        status = play.wait(lambda s: "profilingProgress" in s)
        same(status, seed("dgdr-full-after.yaml")["status"])
        has_columns(table(kubectl(play, "get", "dgdr", "my-deployment")), NAME="my-deployment", MODEL="Qwen/Qwen3-0.6B",
                    BACKEND="vllm", STATE="Profiling", PHASE="DecodeInterpolation", AGE=None)
        wide = kubectl(play, "get", "dgdr", "my-deployment", "-o", "wide")
        has_columns(table(wide), NAME="my-deployment", MODEL="Qwen/Qwen3-0.6B", BACKEND="vllm", STATE="Profiling",
                    PHASE="DecodeInterpolation", PROGRESS="Profiling decode with batch size 496", AGE=None)
        text = kubectl(play, "describe", "dgdr", "my-deployment")
        for key, value in {"State": "Profiling", "Phase Number": "6", "Total Phases": "7", "Current Step": "4",
                           "Total Steps": "6", "Percentage": "66.7", "Sub Phase": "Running AIPerf benchmark",
                           "Last Updated": "2026-01-23T14:14:42Z", "Current Gpus": "2",
                           "Parallel Mapping": "TP=2/DP=1"}.items():
            assert described(text, key) == value, (key, text)
        assert "[Phase 6/7: DecodeInterpolation] Profiling decode with batch size 496 (4/6, 66.7%)" in text, text
        same(json.loads(kubectl(play, "get", "dgdr", "my-deployment", "-o", "jsonpath={.status.profilingProgress}")),
             seed("dgdr-full-jsonpath.json"))


def the_short_design():
    """Short design: get and -o yaml print what it says; where the two differ the full one's words are used"""
    with request(world, "sla-online") as (play, _):
        play.pod_runs()
        play.report(SHORT)
        status = play.wait(lambda s: "profilingProgress" in s)
        wanted = seed("dgdr-short-sla-online.yaml")["status"]
        wanted["conditions"][0]["message"] = wanted["conditions"][0]["message"].replace("[", "[Phase 6/7: ")
        same(status, wanted)
        wanted = seed("dgdr-short-new-status.yaml")["status"]
        wanted["conditions"] = [c for c in wanted["conditions"] if c["type"] == "ProfilingPhase"]
        same(status, wanted)
        has_columns(table(kubectl(play, "get", "dgdr", "sla-online")), NAME="sla-online", MODEL="Qwen/Qwen3-0.6B",
                    BACKEND="vllm", STATE="Profiling", PHASE="DecodeInterpolation", DGD_STATE="", AGE=None)
        text = kubectl(play, "get", "dgdr", "sla-online", "-o", "yaml")
        same(yaml.load(text, yaml.BaseLoader)["status"], {**wanted, "conditions": []})


def the_files_of_the_designs():
    """Both designs' example files are shown: steps, sub-phase and GPUs of the one, the text \"1 GPU, TP=1\" of the other"""
    with request(world, "files") as (play, _):
        play.pod_runs()
        play.report(json.dumps(json.load(open(os.path.join(ROOT, "examples/seeds/dgdr-full-profiling_status.json"), encoding="utf-8"))))
        status = play.wait(lambda s: s.get("profilingPhase") == "DecodeSweep")
        same(status["profilingProgress"], {"phaseNumber": "3", "currentStep": "5", "totalSteps": "12", "percentage": "41.7",
                                           "subPhase": "Benchmarking batch size 256",
                                           "gpuConfig": {"currentGpus": "4", "parallelMapping": "TP=2/DP=2"}})
        play.report(json.dumps(json.load(open(os.path.join(ROOT, "examples/seeds/dgdr-short-profiling_status.json"), encoding="utf-8"))))
        status = play.wait(lambda s: s.get("profilingPhase") == "DecodeInterpolation")
        same(status["profilingProgress"], {"phaseNumber": "6", "percentage": "66.7",
                                           "gpuConfig": {"currentGpus": "1", "parallelMapping": "TP=1"}})
        assert condition(status, "Profiling")["message"] == (
            "[Phase 6/7: DecodeInterpolation] Profiling decode with batch size 496 (4/6, 66.7%)"), status
        assert condition(status, "ProfilingPhase")["message"] == "Profiling decode with batch size 496 (4/6)", status


# --- compatibility -------------------------------------------------------------------------------------------------------


def an_old_profiler():
    """A profiler that writes no status file: \"Before\" as the design prints it, and nothing is made up"""
    with request(world, "my-deployment") as (play, _):
        play.pod_runs()
        play.claim()
        status = play.wait(lambda s: condition(s, "Progressing").get("reason") == "Running")
        same(status, seed("dgdr-full-before.yaml")["status"])
        assert "profilingProgress" not in status and "profilingPhase" not in status, status
        has_columns(table(kubectl(play, "get", "dgdr", "my-deployment")), NAME="my-deployment", MODEL="Qwen/Qwen3-0.6B",
                    BACKEND="vllm", STATE="Profiling", AGE=None)
        text = kubectl(play, "describe", "dgdr", "my-deployment")
        assert "Profiling is in progress" in text, text
        play.output()
        play.claim(state="Succeeded", **{"exit.json": '{"code": 0}'})
        play.pod_ends(0)
        status = play.state("Ready")
        assert "profilingProgress" not in status, status


def an_old_controller():
    """A new profiler under an old controller: the file is in the ConfigMap, and nobody minds"""
    with request(world, "old") as (play, operator):
        play.pod_runs()
        play.claim()
        play.wait(lambda s: condition(s, "Progressing").get("reason") == "Running")
        operator.kill()
        before = play.get()
        play.report(FULL)
        assert play.get() == before
        assert json.loads(play.object("configmaps/dgdr-status-old")["data"]["status.json"]) == FULL
        operator.start()
        play.wait(lambda s: s.get("profilingPhase") == "DecodeInterpolation")


def an_old_object():
    """An object from before profilingProgress: it stays as it is, is read by all, and is not run again"""
    with world.server.namespace("dgdr") as ns:
        play = world.create(ns, "old")
        path = f"{play.path}/status"
        status = {"state": "Ready", "profilingResults": "configmap/dgdr-output-old",
                  "conditions": [{"type": "Profiling", "status": "True", "reason": "ProfilingCompleted", "message": "m",
                                  "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        code, body = world.api.patch(path, {"status": status})
        assert code == 200, body
        with world.operator(ns) as operator:
            operator.process.expect("^idle", 30)
            assert not play.jobs(), play.jobs()
            assert play.status()["state"] == "Ready" and "profilingProgress" not in play.status(), play.status()
            has_columns(table(kubectl(play, "get", "dgdr", "old")), NAME="old", STATE="Ready", PHASE="", AGE=None)


TESTS = [the_full_design, the_short_design, the_files_of_the_designs, an_old_profiler, an_old_controller, an_old_object]

if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        main(*TESTS)
