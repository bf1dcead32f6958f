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
from dgdr_play import PATIENCE, World, condition, request
from sonde_test import ROOT, main, wait

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
    assert re.fullmatch(r"\d+[smh](\d+[sm])?", cells["AGE"]), cells
    for name, value in zip(names, wanted.values()):
        assert value is None or cells[name] == value, (name, cells)


def kubectl(play, *words):
    return world.kubectl("-n", play.ns, *words)


def block(text, key):
    """What describe prints below `Key:`, by key; of nested blocks the last value of a key."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip() == f"{key}:")
    indent = len(lines[start]) - len(lines[start].lstrip())
    found = {}
    for line in lines[start + 1:]:
        if len(line) - len(line.lstrip()) <= indent:
            break
        name, _, value = line.strip().partition(":")
        found[name] = value.strip()
    return found


def described(text, kind):
    """The condition KIND as describe prints it: Type comes last of its members."""
    members = {}
    for line in text.splitlines():
        name, _, value = line.strip().partition(":")
        members[name] = value.strip()
        if (name, members[name]) == ("Type", kind):
            return members
    raise AssertionError(f"no condition {kind}: {text}")


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
        assert block(text, "Status")["State"] == "Profiling", text
        same(block(text, "Profiling Progress"), {
            "Phase": "DecodeInterpolation", "Phase Number": "6", "Total Phases": "7", "Message": FULL["message"], "Current Step": "4",
            "Total Steps": "6", "Percentage": "66.7", "Sub Phase": "Running AIPerf benchmark", "Started At": "2026-01-23T13:00:00Z",
            "Last Updated": "2026-01-23T14:14:42Z", "Current Gpus": "2", "Parallel Mapping": "TP=2/DP=1"})
        same(described(text, "Profiling"), {
            "Status": "False", "Reason": "ProfilingRunning",
            "Message": "[Phase 6/7: DecodeInterpolation] Profiling decode with batch size 496 (4/6, 66.7%)"})
        same(json.loads(kubectl(play, "get", "dgdr", "my-deployment", "-o", "jsonpath={.status.profilingProgress}")),
             seed("dgdr-full-jsonpath.json"))
        shown = "Profiling decode (batch 496, 4/6 complete)"  # what the design's wide table has instead
        play.report({**FULL, "message": shown})
        play.wait(lambda s: s["profilingProgress"]["message"] == shown)
        assert table(kubectl(play, "get", "dgdr", "my-deployment", "-o", "wide"))["PROGRESS"] == shown


def the_short_design():
    """Short design: get and -o yaml print what it says; where the two differ the full one's words are used"""
    with request(world, "sla-online") as (play, _):
        play.pod_runs()
        play.report(SHORT)
        status = play.wait(lambda s: "profilingProgress" in s)
        result = seed("dgdr-short-sla-online.yaml")["status"]
        result["conditions"][0]["message"] = result["conditions"][0]["message"].replace("[", "[Phase 6/7: ")
        same(status, result)
        wanted = seed("dgdr-short-new-status.yaml")["status"]
        for kind, reason in ("Profiling", "ProfilingRunning"), ("ProfilingPhase", "DecodeInterpolation"):
            assert condition(status, kind)["reason"] == reason, status
        wanted["conditions"] = [c for c in wanted["conditions"] if c["type"] == "ProfilingPhase"]
        same(status, wanted)
        has_columns(table(kubectl(play, "get", "dgdr", "sla-online")), NAME="sla-online", MODEL="Qwen/Qwen3-0.6B",
                    BACKEND="vllm", STATE="Profiling", PHASE="DecodeInterpolation", DGD_STATE="", AGE=None)
        text = kubectl(play, "get", "dgdr", "sla-online", "-o", "yaml")
        same(yaml.load(text, yaml.BaseLoader)["status"], result)


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


# --- what the controller does ------------------------------------------------------------------------------------------


def the_job_and_its_maps():
    """The Job has a profiler and a sidecar, the run's files are in /data, and its ConfigMaps have the designs' names"""
    with request(world, "names") as (play, _):
        job = play.job()
        assert job["metadata"]["name"] == "profile-names", job["metadata"]
        pod = play.pod()["spec"]
        assert [c["name"] for c in pod["containers"]] == ["profiler", "relay"], pod["containers"]
        for container in pod["containers"]:
            assert any(m["mountPath"] == "/data" for m in container["volumeMounts"]), container
        env = {e["name"]: e.get("value") for e in pod["containers"][0]["env"]}
        assert env["SONDE_RUN_DIR"] == "/data" and env["DGDR_NAME"] == "names", env
        for name in "dgdr-status-names", "dgdr-output-names":
            owner = play.object(f"configmaps/{name}")["metadata"]["ownerReferences"][0]
            assert owner["uid"] == play.uid and owner["kind"] == "DynamoGraphDeploymentRequest", owner


def what_cannot_be_read():
    """No status yet, a ConfigMap of a stranger, malformed JSON, an unknown phase: told once, never fatal, the last state stays"""
    with request(world, "odd") as (play, _):
        play.pod_runs()
        before = play.wait(lambda s: condition(s, "Progressing").get("reason") == "Running")
        assert "profilingProgress" not in before and condition(before, "Profiling")["message"] == "Profiling is in progress", before
        stranger = {"metadata": {"name": "dgdr-status-stranger", "labels": {
            "app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "dgdr", "sonde.dev/request": play.uid}},
            "data": {"attempt": "1", "sequence": "9", "state": "Running", "status.json": json.dumps(SHORT)}}
        code, body = world.api.post(f"/api/v1/namespaces/{play.ns}/configmaps", stranger)
        assert code == 201, body
        play.report(FULL)
        good = play.wait(lambda s: "profilingProgress" in s)
        same(good, seed("dgdr-full-after.yaml")["status"])
        for text, reason in ('{"phase": ', "Malformed"), ({"phase": "SweepingPrefill", "message": "m"}, "UnknownPhase"):
            play.report(text)
            status = play.wait(lambda s, r=reason: condition(s, "Reporting").get("reason") == r)
            assert condition(status, "Reporting")["status"] == "False", status
            assert status["profilingProgress"] == good["profilingProgress"] and status["state"] == "Profiling", status
        play.report({"phase": "PlannerGeneration", "message": "m"})
        play.wait(lambda s: s["profilingPhase"] == "PlannerGeneration" and condition(s, "Reporting")["status"] == "True")
        wait(lambda: play.events("Malformed"), PATIENCE, "the event")
        assert len(play.events("Malformed")) == 1, play.events()
        play.succeed()
        play.state("Ready")
        wait(lambda: not play.object("configmaps/dgdr-status-odd"), PATIENCE, "the status ConfigMap to go")


def the_last_word_is_not_lost():
    """Progress and end that nobody looked at in between: the progress is taken over before the Job's end, and then the map goes"""
    with request(world, "late") as (play, operator):
        play.pod_runs()
        play.report({"phase": "PrefillSweep", "message": "m", "progress": {"currentStep": 1, "totalSteps": 2}})
        play.wait(lambda s: s.get("profilingPhase") == "PrefillSweep")
        operator.kill()
        play.report(FULL)
        play.fail(3, "no GPU answers")
        operator.start()
        status = play.state("Failed")
        same(status["profilingProgress"], {"phase": "Failed", "phaseNumber": "9", "failedPhase": "DecodeInterpolation",
                                           "currentStep": "4", "totalSteps": "6", "gpuConfig": {"currentGpus": "2"}})
        assert "no GPU answers" in condition(status, "Profiling")["message"], status
        wait(lambda: not play.object("configmaps/dgdr-status-late"), PATIENCE, "the status ConfigMap to go")


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
        assert block(text, "Status")["State"] == "Profiling", text
        same(described(text, "Profiling"), {"Status": "False", "Reason": "ProfilingRunning", "Message": "Profiling is in progress"})
        play.succeed(silent=True)
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
            operator.process.expect("^idle", PATIENCE)
            assert not play.jobs(), play.jobs()
            assert play.status()["state"] == "Ready" and "profilingProgress" not in play.status(), play.status()
            has_columns(table(kubectl(play, "get", "dgdr", "old")), NAME="old", STATE="Ready", PHASE="", AGE=None)


TESTS = [the_full_design, the_short_design, the_files_of_the_designs, the_job_and_its_maps, what_cannot_be_read,
         the_last_word_is_not_lost, an_old_profiler, an_old_controller, an_old_object]

if __name__ == "__main__":
    with World("cluster" if "cluster" in sys.argv[1:] else "engine") as world:
        main(*TESTS)
