#!/usr/bin/python3
"""The commands for people, on objects of all kinds whose statuses are prepared.

    commands.py [NAME...]            on the embedded engine
    commands.py cluster [NAME...]    on a real control plane, with the same expectations
"""

import itertools
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cli_play import HOUR, KINDS, PATIENCE, REQUESTS, Said, World, at, condition, ended, running, status_of, waiting
from dgdr_play import ok
from sonde_test import ROOT, Process, kubectl_path, main, program

COUNTERS = ("Nsight Compute may not read GPU performance counters on node gpu-7 (ERR_NVGPUCTRPERM); set "
            "spec.profiling.permission: sysAdmin, or load the driver with NVreg_RestrictProfilingToAdminUsers=0")


def populate(ns):
    """One of everything that can be seen in a list."""
    world.make(ns, "dgdr", "llama", labels={"team": "a"}, status={
        **running("dgdr", "Profiling"), "profilingProgress": {"phase": "DecodeSweep", "phaseNumber": 3, "totalPhases": 7}})
    world.make(ns, "dgdr", "qwen", labels={"team": "a"}, status=waiting(
        "dgdr", "Queued", "the run waits for its turn: 1 is ahead", queue={"position": "2", "reason": "1 is ahead"}))
    world.make(ns, "cudaexp", "vectoradd", status=ended("cudaexp", "Failed", False, "ProfilerPermission", COUNTERS))
    stuck = running("ap", percent=31, updatedAt=at(-12.5 * HOUR), message="block 3/10")
    stuck["conditions"] = [condition("Progressing", "False", "NotMoving", "nothing has changed for long")]
    world.make(ns, "ap", "nightly", status=stuck)
    world.make(ns, "ap", "new")
    world.make(ns, "ap", "held", spec={"suspend": True}, status=status_of(
        "ap", "Pending", condition("Suspended", "True", "Suspended", "spec.suspend is true; set it to false to go on"),
        run={"attempt": 1}))
    world.make(ns, "ap", "weekly", spec={"schedule": {"cron": "0 3 * * 1"}})
    world.make(ns, "ac", "sorts", status=ended("ac", "Completed", True, "Succeeded", "merge_sort is the fastest: 3.1x"))
    world.make(ns, "ac", "stopped", spec={"cancel": True},
               status=ended("ac", "Cancelled", False, "Cancelled", "spec.cancel is true, and that is not taken back"))
    world.make(ns, "wprof", "vectoradd-profile", status={"boundType": "memory-bound"})


TABLE = [
    ["KIND", "NAME", "PHASE", "STEP", "%", "ETA", "AGE", "REASON"],
    ["dgdr", "llama", "DecodeSweep", "5/12", "41", "22h (18-31h)", "AGE", "Benchmarking batch size 256"],
    ["dgdr", "qwen", "Pending", "-", "-", "-", "AGE", "queue position 2: 1 is ahead"],
    ["cudaexp", "vectoradd", "Failed", "-", "-", "-", "AGE", "ProfilerPermission: " + COUNTERS],
    ["ap", "held", "Suspended", "-", "-", "-", "AGE", "Suspended: spec.suspend is true; set it to false to go on"],
    ["ap", "new", "Pending", "-", "-", "-", "AGE"],
    ["ap", "nightly", "DecodeSweep", "5/12", "31", "22h (not moving for 12h)", "AGE", "NotMoving: nothing has changed for long"],
    ["ap", "weekly", "Scheduled", "-", "-", "-", "AGE"],
    ["ac", "sorts", "Completed", "-", "100", "-", "AGE", "merge_sort is the fastest: 3.1x"],
    ["ac", "stopped", "Cancelled", "-", "-", "-", "AGE", "Cancelled: spec.cancel is true, and that is not taken back"],
    ["wprof", "vectoradd-profile", "Result", "-", "100", "-", "AGE", "memory-bound"],
]

# --- looking -----------------------------------------------------------------


def all_kinds_are_in_one_table():
    """`get`: all kinds in one table; by kind, by name, by label, of all namespaces, and in every format"""
    with world.server.namespace("cli-get") as ns:
        world.sonde("get", "-n", ns).expect(0, "", re.compile(f"there are no runs in namespace {ns}; 'sonde get -A' looks in all"))
        populate(ns)
        assert world.sonde("get", "-n", ns).expect(0).table() == TABLE, world.sonde("get", "-n", ns).out
        assert world.sonde("get", "ap", "-n", ns).expect(0).table() == [r for r in TABLE if r[0] in ("KIND", "ap")]
        assert world.sonde("get", "ac/sorts", "new", "-n", ns).expect(0).table() == [TABLE[0], TABLE[5], TABLE[8]]
        assert world.sonde("get", "-l", "team=a", "-n", ns).expect(0).table() == TABLE[:3]
        every = world.sonde("get", "-A").expect(0).table()
        assert every[0] == ["NAMESPACE", *TABLE[0]] and [r[1:] for r in every if r[0] == ns] == TABLE[1:], every
        wide = world.sonde("get", "-o", "wide", "-n", ns).expect(0).table()
        assert wide[0][-4:] == ["ATTEMPT", "STARTED", "ENDED", "REASON"] and wide[1][7] == "2", wide
        names = world.sonde("get", "-o", "name", "-n", ns).expect(0).out.split()
        assert names == [f"{row[0]}/{row[1]}" for row in TABLE[1:]], names
        one = json.loads(world.sonde("get", "ac/sorts", "-o", "json", "-n", ns).expect(0).out)
        assert one["kind"] == "AlgorithmComparison" and "managedFields" not in one["metadata"], one
        some = json.loads(world.sonde("get", "ap", "-o", "json", "-n", ns).expect(0).out)
        assert some["kind"] == "List" and len(some["items"]) == 4, some
        text = world.sonde("get", "ac/sorts", "-o", "yaml", "-n", ns).expect(0).out
        assert "kind: AlgorithmComparison\n" in text and "\nstatus:\n" in text, text


ANSWERS = {
    "dgdr/llama": ["dgdr/llama runs in DecodeSweep (3 of 7), 41 %; left: 22h (18-31h).",
                   "  evidence  Benchmarking batch size 256",
                   "  fix       nothing: it is all right",
                   "  then      sonde watch dgdr/llama"],
    "dgdr/qwen": ["dgdr/qwen waits at position 2 of the queue, AGE after it was created.",
                  "  cause     1 is ahead",
                  "  fix       it begins by itself when its turn comes; a higher spec.priority (0 to 10) is sooner",
                  "  then      sonde wait dgdr/qwen --for running"],
    "cuda/vectoradd": ["cudaexp/vectoradd failed, 12h ago.",
                       "  cause     Nsight Compute may not read GPU performance counters on node gpu-7 (ERR_NVGPUCTRPERM)",
                       "  fix       set spec.profiling.permission: sysAdmin, or load the driver with "
                       "NVreg_RestrictProfilingToAdminUsers=0",
                       "  then      sonde rerun cudaexp/vectoradd"],
    "nightly": ["ap/nightly does not move in DecodeSweep (3 of 7), 31 %.",
                "  cause     nothing has changed for long",
                "  fix       see what it does now; if it hangs, suspend and resume it: what was measured is kept",
                "  then      sonde logs --tail 20 ap/nightly"],
    "new": ["ap/new was created AGE ago, and nobody has taken it up yet.",
            "  cause     no operator has written its status",
            "  fix       see that the operator runs ('sonde operator', or 'sonde up' on one machine) and looks at this namespace"],
    "held": ["ap/held is suspended.",
             "  cause     spec.suspend is true",
             "  fix       set it to false to go on",
             "  then      sonde resume ap/held"],
    "weekly": ["ap/weekly is a schedule (0 3 * * 1 UTC), and all right.",
               "  then      sonde rerun ap/weekly runs it once now"],
    "sorts": ["ac/sorts succeeded, 12h ago.",
              "  evidence  merge_sort is the fastest: 3.1x",
              "  then      sonde results ac/sorts"],
    "stopped": ["ac/stopped was cancelled, 12h ago.",
                "  cause     spec.cancel is true, and that is not taken back",
                "  fix       nothing: that is what was asked for",
                "  then      sonde rerun ac/stopped"],
    "vectoradd-profile": ["wprof/vectoradd-profile is a result: nothing runs for it.",
                          "  evidence  memory-bound",
                          "  then      sonde results wprof/vectoradd-profile"],
}


def every_state_is_explained():
    """`explain`: cause, evidence, fix and what then, for every state that a run can be in"""
    with world.server.namespace("cli-explain") as ns:
        populate(ns)
        for name, wanted in ANSWERS.items():
            said = re.sub(r"\b\d+[sm] (ago|after)", r"AGE \1", world.sonde("explain", name, "-n", ns).expect(0).out).splitlines()
            assert said == wanted, (name, said, wanted)


def what_is_around_a_run_is_evidence():
    """`explain` and `describe` tell of pods and events of the run, its Job and its pods"""
    with world.server.namespace("cli-evidence") as ns:
        made = world.make(ns, "ap", "a", status=waiting("ap", "ImagePullFailed", "the image cannot be had: no such thing"))
        pod = ok(world.api.post(f"/api/v1/namespaces/{ns}/pods", {
            "metadata": {"name": "a-pod", "labels": {"job-name": "profile-x"}},
            "spec": {"containers": [{"name": "algorithm", "image": "nowhere/none:1"}], "nodeSelector": {"no": "node"},
                     "automountServiceAccountToken": False}}))  # 1.20 refuses a pod before its account has a token
        ok(world.api.patch(f"/api/v1/namespaces/{ns}/pods/a-pod/status", {"status": {"containerStatuses": [{
            "name": "algorithm", "image": "nowhere/none:1", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling"}}}]}}))
        for about, kind, reason, text in ((made, "AlgorithmProfiling", "PodStuck", "its pod is stuck\x1b[31m"),
                                          (pod, "Pod", "Failed", "Error: ImagePullBackOff")):
            ok(world.api.post(f"/api/v1/namespaces/{ns}/events", {
                "metadata": {"name": f"{kind.lower()}.1"}, "reason": reason, "message": text, "type": "Warning",
                "firstTimestamp": at(-60), "lastTimestamp": at(-60), "count": 3, "source": {"component": "test"},
                "involvedObject": {"kind": kind, "name": about["metadata"]["name"], "namespace": ns, "uid": about["metadata"]["uid"],
                                   "apiVersion": about.get("apiVersion", "v1")}}))
        said = world.sonde("explain", "ap/a", "-n", ns).expect(0).out
        assert "  cause     the image cannot be had: no such thing\n" in said, said
        assert "  evidence  pod a-pod: container algorithm waits: ImagePullBackOff: Back-off pulling\n" in said, said
        assert re.search(r"event PodStuck of ap/a, \d+[ms] ago: its pod is stuck\?\[31m\n", said), said
        assert re.search(r"event Failed of pod/a-pod, \d+[ms] ago: Error: ImagePullBackOff\n", said), said
        assert "  fix       check the image's name and that the nodes may pull it\n" in said, said
        told = world.sonde("describe", "ap/a", "-n", ns).expect(0).out
        for part in ("ap/a  AlgorithmProfiling in namespace " + ns, "\nSpec\n  algorithmName: quick_sort\n", "\nConditions\n", "\nPods\n",
                     "\nEvents\n", "ImagePullFailed", "a-pod", "(x3)"):
            assert part in told, (part, told)
        assert "\x1b" not in told + said, told


def what_is_not_reached_is_not_shown():
    """99.6 % is 99 % everywhere, of a run that goes on"""
    with world.server.namespace("cli-percent") as ns:
        world.make(ns, "ap", "a", status=running("ap", percent=99.6))
        assert world.sonde("get", "ap/a", "-n", ns).expect(0).table()[1][4] == "99"
        for verb in "describe", "explain":
            said = world.sonde(verb, "ap/a", "-n", ns).expect(0).out
            assert ", 99 %" in said and "100 %" not in said, (verb, said)
        for verb in "watch", "wait":
            assert "  99 %  " in goes_on(ns, verb, "ap/a"), verb


def phases_have_their_durations():
    """`describe` tells phase by phase how long each took, from what the relay has noted, and what is to come"""
    with world.server.namespace("cli-phases") as ns:
        made = world.make(ns, "dgdr", "a", status=running("dgdr", "Profiling"))
        track = {"started": int(1000 * (time.time() - 900)), "moved": 899000, "phases": [
            {"name": "Initializing", "began": 0, "ended": 4000},
            {"name": "PrefillSweep", "began": 4000, "ended": 684000, "total": 8, "done": 8, "sum": 680.0},
            {"name": "DecodeSweep", "began": 684000, "total": 12, "done": 4, "sum": 100.0, "step": 5}]}
        ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {
            "metadata": {"name": "dgdr-status-a", "labels": {"sonde.dev/controller": "dgdr"}, "ownerReferences": [{
                "apiVersion": made["apiVersion"], "kind": made["kind"], "name": "a", "uid": made["metadata"]["uid"], "controller": True}]},
            "data": {"attempt": "2", "track.json": json.dumps(track)}}))
        told = world.sonde("describe", "dgdr/a", "-n", ns).expect(0).out
        assert re.search(r"\nPhases\n ✓ Initializing +4s\n ✓ PrefillSweep +8/8  11m20s\n ▸ DecodeSweep +5/12  [█▎·]+  \S+ so far, ~\S+ left\n",
                         told), told
        assert "\n · ConfigSelection\n" in told, told


# --- changing ----------------------------------------------------------------


def runs_are_cancelled_suspended_and_resumed():
    """`cancel`, `suspend` and `resume` set what the spec says, once, and say what was so before"""
    with world.server.namespace("cli-steer") as ns:
        for kind in REQUESTS:
            world.make(ns, kind, "a", status=running(kind))
            label = f"{kind}/a"
            world.sonde("resume", label, "-n", ns).expect(0, f"{label} is not suspended\n")
            world.sonde("suspend", kind, "a", "-n", ns).expect(0, f"{label} is being suspended\n")
            assert world.get(ns, kind, "a")["spec"]["suspend"] is True
            world.sonde("suspend", label, "-n", ns).expect(0, f"{label} was suspended before\n")
            world.sonde("resume", label, "-n", ns).expect(0, f"{label} goes on\n")
            assert world.get(ns, kind, "a")["spec"]["suspend"] is False
            world.sonde("cancel", label, "-n", ns).expect(0, f"{label} is being cancelled\n")
            assert world.get(ns, kind, "a")["spec"]["cancel"] is True
            world.sonde("cancel", label, "-n", ns).expect(0, f"{label} was cancelled before\n")
            world.make(ns, kind, "over", status=ended(kind, "Failed", False, "WorkloadFailed", "it exited with status 1; see its log"))
            for verb in "cancel", "suspend", "resume":
                world.sonde(verb, f"{kind}/over", "-n", ns).expect(
                    1, "", f"sonde: {verb}: {kind}/over has ended (Failed); 'sonde rerun {kind}/over' makes another one\n")
        world.make(ns, "ap", "weekly", spec={"schedule": {"cron": "0 3 * * 1", "suspend": True}})
        world.sonde("resume", "weekly", "-n", ns).expect(0, "ap/weekly goes on\n")
        assert world.get(ns, "ap", "weekly")["spec"]["schedule"]["suspend"] is False
        both = world.sonde("cancel", "ap/nix", "dgdr/a", "-n", ns)
        both.expect(1, "dgdr/a was cancelled before\n", re.compile(r"there is no ap 'nix'"))


def a_request_is_made_once_more():
    """`rerun`: the same spec under another name, without what was decided about the first"""
    with world.server.namespace("cli-rerun") as ns:
        world.make(ns, "ap", "a", spec={"cancel": True, "priority": 7}, labels={"team": "x"}, annotations={"note": "n"},
                   status=ended("ap", "Cancelled", False, "Cancelled", "c"))
        world.sonde("rerun", "ap/a", "-n", ns).expect(0, "ap/a-rerun-1 created from ap/a\n")
        made = world.get(ns, "ap", "a-rerun-1")
        assert made["spec"].get("cancel", False) is False and made["spec"]["priority"] == 7, made
        assert made["metadata"]["labels"] == {"team": "x"} and "status" not in made, made
        assert made["metadata"]["annotations"] == {"note": "n", "sonde.dev/rerun-of": "a"}, made
        world.sonde("rerun", "a", "-n", ns).expect(0, "ap/a-rerun-2 created from ap/a\n")
        world.sonde("rerun", "a-rerun-2", "-n", ns).expect(0, "ap/a-rerun-3 created from ap/a-rerun-2, which has not ended yet\n")
        world.sonde("rerun", "ap/a", "--name", "b", "-n", ns).expect(0, "ap/b created from ap/a\n")
        world.sonde("rerun", "ap/a", "--name", "b", "-n", ns).expect(1, "", re.compile(r'rerun: .*"b" already exists'))
        world.sonde("rerun", "ap/a", "--name", "B!", "-n", ns).expect(2, "", re.compile(r"--name: 'B!' must be lower case"))
        world.make(ns, "ap", "weekly", spec={"schedule": {"cron": "0 3 * * 1"}})
        world.sonde("rerun", "weekly", "-n", ns).expect(0, "ap/weekly-rerun-1 created from ap/weekly, to run once now\n")
        assert "schedule" not in world.get(ns, "ap", "weekly-rerun-1")["spec"]


def files_are_checked_and_applied():
    """`apply`: what is wrong is said with its place and nothing is sent; the rest is created, then changed"""
    with world.server.namespace("cli-apply") as ns:
        good = os.path.join(ROOT, "examples", "algorithmprofiling.yaml")
        world.sonde("apply", "--dry-run", "-f", good, "-n", ns).expect(0, f"{ns}/algorithmprofiling/quick-sort created (dry run)\n")
        world.sonde("get", "-n", ns).expect(0, "", re.compile("there are no runs"))
        world.sonde("apply", "-f", good, "-n", ns).expect(0, f"{ns}/algorithmprofiling/quick-sort created\n")
        world.sonde("apply", "-f", good, "-n", ns).expect(0, f"{ns}/algorithmprofiling/quick-sort applied\n")
        with open(good, encoding="utf-8") as f:
            text = f.read()
        bad = text.replace("name: quick-sort", "name: other") + "---\n" + text.replace("iterations:", "iteratons:")
        world.sonde("apply", "-f", "-", "-n", ns, stdin=bad).expect(
            1, "", re.compile(r"\Asonde: -:\d+:\d+: spec.iteratons: unknown field; did you mean 'iterations'\?\n"
                              r"sonde: apply: 1 problem, and nothing was sent\n\Z"))
        assert world.api.get(world.path(ns, "ap", "other"))[0] == 404
        nowhere = text.replace("kind:", "kind:", 1).replace("name: quick-sort", "name: x\n  namespace: there-is-none")
        world.sonde("apply", "-f", "-", stdin=nowhere).expect(1, "", re.compile(r'sonde: -:\d+:\d+: namespaces "there-is-none" not found'))


# --- waiting -----------------------------------------------------------------


def the_end_is_waited_for():
    """`wait`: lines while it goes on, by a watch; 0 succeeded, 1 failed, cancelled or deleted, 124 out of time"""
    with world.server.namespace("cli-wait") as ns:
        for name in "good", "bad", "gone", "slow":
            world.make(ns, "ap", name)
        with Process(program("sonde"), "wait", "ap/good", "-n", ns, env=world.env()) as p:
            p.expect(r"^ap/good$|^ap/good  ", PATIENCE)
            world.tell(ns, "ap", "good", running("ap"))
            p.expect(r"^ap/good  Running  DecodeSweep 3/7  41 %  5/12  Benchmarking batch size 256  ETA \d\d:\d\d:\d\dZ$", PATIENCE)
            world.tell(ns, "ap", "good", ended("ap", "Completed", True, "Succeeded", "412 ms"))
            p.expect(r"^ap/good succeeded: 412 ms$", PATIENCE)
            assert p.wait(PATIENCE) == 0, p.lines
        with Process(program("sonde"), "wait", "-q", "good", "bad", "-n", ns, env=world.env()) as p:
            p.expect(r"^ap/good succeeded", PATIENCE)
            world.tell(ns, "ap", "bad", ended("ap", "Failed", False, "OutOfMemory", "it was killed"))
            p.expect(r"^sonde: ap/bad failed: OutOfMemory: it was killed$", PATIENCE)
            assert p.wait(PATIENCE) == 1 and len(p.lines) == 2, p.lines
        with Process(program("sonde"), "wait", "ap/gone", "-n", ns, env=world.env()) as p:
            p.expect(r"^ap/gone", PATIENCE)
            ok(world.api.delete(world.path(ns, "ap", "gone")))
            p.expect(r"^sonde: ap/gone was deleted$", PATIENCE)
            assert p.wait(PATIENCE) == 1, p.lines
        world.sonde("wait", "ap/slow", "--timeout", "1s", "-n", ns).expect(
            124, None, "sonde: ap/slow: not ended within 1s; it goes on\n")
        with Process(program("sonde"), "wait", "-q", "slow", "--for", "running", "-n", ns, env=world.env()) as p:
            world.tell(ns, "ap", "slow", running("ap"))
            assert p.wait(PATIENCE) == 0 and p.lines == ["ap/slow is running"], p.lines
        world.sonde("wait", "-q", "slow", "--for", "condition=Progressing", "-n", ns).expect(0, "ap/slow is as asked for\n")
        world.sonde("wait", "-q", "slow", "--for", "frob", "-n", ns).expect(2, "", re.compile("--for: 'frob' is nothing to wait for"))


# --- every kind, every verb --------------------------------------------------

NONSENSE = r"\(null\)|\bnan\b|\binf\b|Segmentation| -1\b"
# Exit status of each verb, of a run that nobody has taken up, one that runs, one that failed, one that succeeded, and of a result.
# "..": it goes on until it is interrupted.
STATES = ("none", "runs", "failed", "good", "result")
CODES = {
    "get": (0, 0, 0, 0, 0),
    "describe": (0, 0, 0, 0, 0),
    "explain": (0, 0, 0, 0, 0),
    "results": (0, 0, 0, 0, 0),
    "compare": (1, 1, 0, 0, 0),
    "watch": ("..", "..", 1, 0, 0),
    "wait": ("..", "..", 1, 0, 0),
    "logs": (1, 1, 1, 1, 1),  # there are no pods
    "suspend": (0, 0, 1, 1, 1),
    "resume": (0, 0, 1, 1, 1),
    "cancel": (0, 0, 1, 1, 1),
    "rerun": (0, 0, 0, 0, 1),
}


def states_of(kind):
    if kind not in REQUESTS:
        return {"result": {"boundType": "mixed"}}
    return {"none": None, "runs": running(kind), "failed": ended(kind, "Failed", False, "WorkloadFailed", "it failed; see its log"),
            "good": ended(kind, "Completed", True, "Succeeded", "fine")}


def goes_on(ns, verb, label):
    """It does not end by itself; what it says until then, and after ctrl-C."""
    with Process(program("sonde"), verb, label, "-n", ns, env=world.env()) as p:
        p.expect(f"^{label}", PATIENCE)
        p.signal(signal.SIGINT)
        assert p.wait(PATIENCE) in (130, -signal.SIGINT), (verb, label, p.lines)
        assert verb == "wait" or p.lines[-1] == f"{label} goes on; 'sonde wait {label}' waits for its end", p.lines
        return "\n".join(p.lines)


def every_verb_is_for_every_kind():
    """Every verb says something sensible of every kind in every state, with the exit status of that state; a result is refused in one sentence"""
    with world.server.namespace("cli-verbs") as ns:
        for kind in KINDS:
            for state, status in states_of(kind).items():
                world.make(ns, kind, state, status=status)
            world.make(ns, kind, "peer", status=list(states_of(kind).values())[-1])
            for (verb, codes), state in itertools.product(CODES.items(), states_of(kind)):
                label, wanted = f"{kind}/{state}", codes[STATES.index(state)]
                if wanted == "..":
                    text = goes_on(ns, verb, label)
                    assert not re.search(NONSENSE, text), (verb, label, text)
                    continue
                said = world.sonde(verb, label, *([f"{kind}/peer"] if verb == "compare" else []), "-n", ns)
                where = (verb, kind, state, said.code, said.out, said.err)
                assert said.code == wanted, (wanted, where)
                assert not re.search(NONSENSE, said.out + said.err), where
                assert said.code != 0 or (said.out and not said.err), where
                # The end of a run that failed is what `watch` shows, and no mistake.
                assert said.code == 0 or verb == "watch" or (said.err.startswith("sonde: ") and said.err.count("\n") == 1), where
                if state == "result" and wanted:
                    assert said.err == (f"sonde: {verb}: wprof/result is a result, and nothing runs for it; it came from "
                                        "cudaexp/vectoradd\n"), where


def a_name_is_found_among_all_kinds():
    """A name alone is looked for among all kinds; one that several have is refused with the candidates"""
    with world.server.namespace("cli-names") as ns:
        world.make(ns, "ap", "same")
        world.make(ns, "ac", "same")
        world.make(ns, "dgdr", "own", status=running("dgdr", "Profiling"))
        said = "sonde: 'same' is the name of several runs; say which: ap/same or ac/same\n"
        for verb in "describe", "explain", "wait", "logs", "suspend", "cancel", "rerun":
            world.sonde(verb, "same", "-n", ns).expect(1, "", said)
        assert len(world.sonde("get", "same", "-n", ns).expect(0).table()) == 3
        for words in ("own",), ("dgdr/own",), ("dgdr", "own"), ("DynamoGraphDeploymentRequest/own",), (
                "dynamographdeploymentrequests.nvidia.com", "own"):
            assert world.sonde("explain", *words, "-n", ns).expect(0).out.startswith("dgdr/own runs"), words
        for name, kind in ("nix", "run"), ("ap/nix", "ap"):
            world.sonde("explain", name, "-n", ns).expect(1, "", f"sonde: there is no {kind} 'nix' in namespace {ns}; 'sonde get -A' lists all\n")
        world.sonde("get", "nix", "own", "-n", ns).expect(1, re.compile("own"), re.compile("there is no run 'nix' in namespace"))


# --- where it goes -----------------------------------------------------------


def on_a_terminal(*words, columns=None, **env):
    """What a command writes to a terminal of its own."""
    master, slave = pty.openpty()
    if columns:
        subprocess.run(["stty", "cols", str(columns)], stdin=slave, check=True)
    done = subprocess.Popen([program("sonde"), *words], stdin=slave, stdout=slave, stderr=slave,
                            env={**world.env(), "TERM": "xterm-256color", **env})
    os.close(slave)
    text = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        text += chunk
    os.close(master)
    assert done.wait(PATIENCE) == 0, text
    return text.decode()


def colours_are_for_terminals():
    """Colours on a terminal alone, and never with NO_COLOR; a line is not longer than the window, and whole in a pipe"""
    with world.server.namespace("cli-colours") as ns:
        populate(ns)
        seen = on_a_terminal("get", "-n", ns, columns=100)
        assert "\x1b[31mFailed\x1b[0m" in seen and "\x1b[32mCompleted\x1b[0m" in seen, seen
        plain = re.sub(r"\x1b\[\d*m", "", seen).splitlines()
        assert max(map(len, plain)) <= 100 and any(line.endswith("…") for line in plain), plain
        assert len(plain) == len(TABLE), plain
        for env in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
            assert "\x1b" not in on_a_terminal("get", "-n", ns, **env), env
            assert "\x1b" not in on_a_terminal("explain", "cuda/vectoradd", "-n", ns, **env), env
        assert "\x1b" in on_a_terminal("explain", "cuda/vectoradd", "-n", ns, NO_COLOR="")
        assert COUNTERS in world.sonde("get", "-n", ns).expect(0).out
        full = subprocess.run([program("sonde"), "get", "-n", ns], env=world.env(), stdout=open("/dev/full", "w", encoding="utf-8"),
                              stderr=subprocess.PIPE, text=True, check=False)
        assert full.returncode == 1 and full.stderr == "sonde: cannot write to standard output\n", full


def kubectl_finds_it():
    """`kubectl sonde ...`: the same, with what a person typed in what it says"""
    link = os.path.join(world.folder, "kubectl-sonde")
    os.symlink(program("sonde"), link)
    with world.server.namespace("cli-kubectl") as ns:
        world.make(ns, "ac", "sorts", status=ended("ac", "Completed", True, "Succeeded", "fine"))
        env = world.env(PATH=f"{world.folder}:{os.environ['PATH']}")
        done = subprocess.run([kubectl_path(), "sonde", "get", "-n", ns], env=env, capture_output=True, text=True, check=False)
        assert Said(done).expect(0).table() == world.sonde("get", "-n", ns).table(), done
        done = subprocess.run([kubectl_path(), "sonde", "explain", "ac/sorts", "-n", ns], env=env, capture_output=True, text=True, check=False)
        assert done.stdout.endswith("  then      kubectl sonde results ac/sorts\n"), done
        done = subprocess.run([kubectl_path(), "sonde", "explain", "nix", "-n", ns], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and done.stderr.startswith("kubectl sonde: there is no run 'nix'"), done


TESTS = [all_kinds_are_in_one_table, every_state_is_explained, what_is_around_a_run_is_evidence, what_is_not_reached_is_not_shown,
         phases_have_their_durations,
         runs_are_cancelled_suspended_and_resumed, a_request_is_made_once_more, files_are_checked_and_applied, the_end_is_waited_for,
         every_verb_is_for_every_kind, a_name_is_found_among_all_kinds, colours_are_for_terminals]
WITH_KUBECTL = [kubectl_finds_it]

words_given = sys.argv[1:]
which = "cluster" if words_given[:1] == ["cluster"] else "engine"
chosen = words_given[1:] if which == "cluster" else words_given
with World(which) as world:
    main(*[t for t in TESTS + WITH_KUBECTL if t.__name__ in chosen] if chosen else TESTS)
