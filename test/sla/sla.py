#!/usr/bin/python3
"""sonde-pod sla from one end to the other, against simulated engines and other servers of this machine: what is told, what a
restart does, what a candidate that fails costs, how it ends.

No figure is compared with a model here: a choice must be the one that a run's own figures call for. Models are compared in virtual time
by test/sla/models.py, and in real time by bench/sla.py.
"""

import contextlib
import copy
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import sla_runs
from sonde_test import Process, diag, main, program, wait

POD = program("sonde-pod")
SEED = int(os.environ.get("SONDE_SEED", "61"))
STATUS = "profiling_status.json"
PHASES = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
          "PlannerGeneration", "Complete"]

# A run takes a few seconds in real time: short answers, few points. Any machine meets the targets.
CONFIG = {"deployment": {"model": "sim/small", "namespace": "default", "deploymentTimeout": 120},
          "engine": {"backend": "vllm", "maxContextLength": 1000},
          "hardware": {"minNumGpusPerEngine": 1, "maxNumGpusPerEngine": 4, "numGpusPerNode": 8},
          "sla": {"isl": 100, "osl": 8, "ttft": 100000, "itl": 100000},
          "sweep": {"prefillInterpolationGranularity": 4, "decodeInterpolationGranularity": 3, "decodeInterpolationOsl": 8},
          "planner": {"requestRate": 4, "maxGpuBudget": 16}}
MODEL = {"prefill": {"baseMs": 1, "perTokenUs": 50, "perToken2Ns": 0}, "decode": {"baseMs": 1, "perRequestUs": 100, "perKvTokenNs": 10},
         "scaling": {"TP": {"prefill": 0.9, "decode": 0.6}}, "kvTokensPerGpu": 800}
MESSAGES = {"Initializing": "Loading configuration and validating inputs", "PrefillSweep": "Profiling prefill across 3 GPU configurations",
            "DecodeSweep": "Profiling decode across 3 GPU configurations",
            "ConfigSelection": "Analyzing results and selecting optimal configurations",
            "PrefillInterpolation": r"Building TTFT curve for \d GPU config",
            "DecodeInterpolation": r"Building throughput curves for \d GPU config",
            "PlannerGeneration": "Running SLA planner and generating deployment config"}


@contextlib.contextmanager
def folder(memory=False):
    place = "/dev/shm" if memory and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sonde-sla-", dir=place) as path:
        yield path


def changed(base, **sections):
    """A copy of BASE with members of its sections changed."""
    result = copy.deepcopy(base)
    for section, members in sections.items():
        if isinstance(members, dict):
            result.setdefault(section, {}).update(members)
        else:
            result[section] = members
    return result


def status_of(directory):
    try:
        with open(os.path.join(directory, "out", STATUS), encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


class Watcher(threading.Thread):
    """Every state of the status file that a reader sees; fewer than there were, but in order."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.states, self.over = directory, [], False

    def run(self):
        while not self.over:
            self.look()
            time.sleep(0.005)
        self.look()

    def look(self):
        state = status_of(self.directory)
        if state and (not self.states or state["sequence"] != self.states[-1]["sequence"]):
            self.states.append(state)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join(10)


def servers_below(directory):
    """Processes of simulated engines that were started for a run in DIRECTORY."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if b"sim" in words and any(w.startswith(directory.encode()) for w in words):
                found.append(int(pid))
    return found


def chosen(result, role):
    """What the figures of the sweep call for."""
    latency = "ttft" if role == "prefill" else "itl"
    rows = [(r["label"], r[latency], r["throughputPerGpu"]) for r in result["sweep"][role]]
    return sla_runs.pick(rows, CONFIG["sla"][latency])[0][0]


def check_choice(result):
    for role in ("prefill", "decode"):
        assert result[role]["label"] == chosen(result, role), (result[role], result["sweep"])


def check_states(states):
    """Phases in order, sequence growing; within a phase totalSteps is fixed and neither step nor percentage falls."""
    at, steps = 0, {}
    for before, now in zip(states, states[1:]):
        assert now["sequence"] > before["sequence"]
    for state in states:
        number = PHASES.index(state["phase"])
        assert number >= at, (state["phase"], "after", PHASES[at])
        at = number
        assert state["phaseNumber"] == number + 1 and state["totalPhases"] == 7
        progress = state.get("progress")
        assert bool(progress) == (state["phase"].endswith("Sweep") or state["phase"].endswith("Interpolation")), state
        if not progress:
            continue
        total, step, percentage = steps.setdefault(state["phase"], (progress["totalSteps"], 0, 0))
        assert progress["totalSteps"] == total and progress["currentStep"] >= step and progress["percentage"] >= percentage, (
            state, steps)
        steps[state["phase"]] = total, progress["currentStep"], progress["percentage"]
    return steps


def check_message(state):
    """The design's words for what is done now."""
    gpus, text, phase = state.get("gpuConfig"), state["message"], state["phase"]
    if phase == "Complete":
        assert text == "Profiling completed successfully", state
    elif phase == "PrefillSweep" and gpus:
        assert text == f"Profiling prefill with {gpus['currentGpus']} GPUs ({gpus['parallelMapping']})", state
    elif phase == "DecodeSweep" and gpus:
        assert text == f"Profiling decode with {gpus['currentGpus']} GPUs, {gpus['parallelMapping']}", state
    else:
        assert re.fullmatch(MESSAGES[phase], text), state
        assert not phase.endswith("Sweep") or state["progress"]["currentStep"] == 0, state
    if gpus:
        assert re.fullmatch(r"TP=\d", gpus["parallelMapping"]), state
        assert not phase.endswith("Interpolation") or f" {gpus['currentGpus']} GPU" in text, state
    sub_phase = state.get("progress", {}).get("subPhase")
    if sub_phase:
        assert sub_phase.split(" ")[0] in ("Deploying", "Benchmarking", "Cleanup"), state


# --- a whole run -------------------------------------------------------------------


def check_best(states):
    """The best so far is told in the sweeps alone, and is one of what was measured."""
    for state in (s for s in states if "bestSoFar" in s):
        name = {"PrefillSweep": "TTFT", "DecodeSweep": "ITL"}[state["phase"]]
        assert re.fullmatch(rf"TP=[124]  {name} \d+\.\d ms  \d+ tok/s/GPU", state["bestSoFar"]), state


def check_log(log, result):
    """The log has every phase with its message, in order, and every point."""
    phases = re.findall(r'msg=Phase phase=(\w+) message="([^"]*)"', log)
    assert [p for p, _ in phases] == list(MESSAGES), phases
    for phase, message in phases:
        assert re.fullmatch(MESSAGES[phase], message), (phase, message)
    points = [p[0] for p in measured(log)]
    assert [points.count(p) for p in ("PrefillSweep", "DecodeSweep", "PrefillInterpolation", "DecodeInterpolation")] == [
        3, 9, len(sla_runs.prefill_isls(1000, 4)), len(result["decodeCurve"]["z_itl"])], points
    assert len(points) == result["points"]["measured"], result["points"]


def a_run_is_followed_from_one_end_to_the_other():
    """All phases against simulated engines: states in order, the design's messages, steps that never grow, all files"""
    with folder() as directory:
        with Watcher(directory) as watcher:
            done, result = sla_runs.run(directory, CONFIG, MODEL)
        states = watcher.states
        for phase, (total, _, _) in check_states(states).items():
            assert total == {"PrefillSweep": 3, "DecodeSweep": 3 * 3, "PrefillInterpolation": len(sla_runs.prefill_isls(1000, 4)),
                             "DecodeInterpolation": len(result["decodeCurve"]["z_itl"])}[phase], (phase, total)
        for state in states:
            check_message(state)
        check_best(states)
        check_log(done.stderr, result)
        assert states[-1]["phase"] == "Complete", states[-1]
        plan = {p["phase"]: p for p in states[-1]["plan"]}
        assert list(plan) == PHASES[:-1] and plan["DecodeSweep"]["weight"] > plan["PrefillSweep"]["weight"]
        check_choice(result)
        assert result["feasible"] is True and result["simulated"] is True, result
        names = os.listdir(os.path.join(directory, "out"))
        for name in ("config_with_planner.yaml", "disagg_config.yaml", "report.html", "result.json", "checkpoint.json",
                     "prefill_performance.svg", "prefill_2gpus_tp2", "selected_decode_interpolation"):
            assert name in names, (name, names)
        point = os.path.join(directory, "out", "prefill_2gpus_tp2", "aiperf_isl100", "profile_export_aiperf.json")
        with open(point, encoding="utf-8") as f:
            assert json.load(f)["time_to_first_token"]["avg"] > MODEL["prefill"]["baseMs"]
        assert servers_below(directory) == []
        diag(f"{len(states)} states seen of {states[-1]['sequence']}")


# --- restarts ------------------------------------------------------------------------


def measured(log):
    """Each point that was measured, as often as it was."""
    return re.findall(r'msg=Measured phase=(\w+) candidate="([^"]+)" isl=(\d+) concurrency=(\d+)', log)


def outputs(directory):
    """What a run leaves, but for its status, logs and what was exchanged with servers."""
    found = {}
    out = os.path.join(directory, "out")
    for at, _, names in os.walk(out):
        for name in names:
            if name not in (STATUS, "server.log", "sim.json", "profile_export_aiperf.json"):
                path = os.path.join(at, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, out)] = f.read()
    return found


def killed_after(lines, command):
    """The log of COMMAND, killed when LINES of it were read; it cannot be more than a few lines further."""
    ours, theirs = socket.socketpair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as little as there is: a line more waits until one was read
    with ours, theirs, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs) as child:
        theirs.close()
        with ours.makefile(encoding="utf-8") as log:
            read = [line for _, line in zip(range(lines), log)]
            child.kill()
            return "".join(read) + log.read()


def killed_often(directory, kills, rng, *options):
    """A run that is killed KILLS times, each time some lines of its log further, and then left alone; returns all logs."""
    command = sla_runs.command(directory, CONFIG, MODEL, *options)
    logs = [killed_after(rng.randint(1, 7), command) for _ in range(kills)]
    done, result = sla_runs.run(directory, CONFIG, MODEL, *options)
    points = [point for log in (*logs, done.stderr) for point in measured(log)]
    assert len(points) == len(set(points)), "a point was measured twice"
    diag(f"{kills} kills after {[len(measured(log)) for log in logs]} points; {len(measured(done.stderr))} were left")
    return result


def a_killed_truth_gives_the_same_bytes():
    """SIGKILL in virtual time: every file is byte for byte that of an undisturbed run"""
    with folder(memory=True) as calm, folder(memory=True) as directory:
        sla_runs.run(calm, CONFIG, MODEL, "--truth")
        killed_often(directory, 8, random.Random(SEED), "--truth")
        expected, got = outputs(calm), outputs(directory)
        assert got.keys() == expected.keys(), got.keys() ^ expected.keys()
        for name, content in expected.items():
            assert got[name] == content, name


def a_killed_run_goes_on_where_it_was():
    """SIGKILL in real time: no point is measured twice, no server stays, the choice is what the figures call for"""
    with folder() as directory:
        result = killed_often(directory, 8, random.Random(SEED + 1))
        assert wait(lambda: not servers_below(directory), 60, "no server is left")
    check_choice(result)
    assert len(result["sweep"]["prefill"]) == 3 and len(result["sweep"]["decode"]) == 3 * 3, result["sweep"]
    assert result["prefillCurve"]["prefill_isl"] == sla_runs.prefill_isls(1000, 4), result["prefillCurve"]


# --- candidates that fail --------------------------------------------------------------


def one_that_does_not_start_is_left_out():
    """A candidate that fails to start costs that candidate only, and its last words are told"""
    model = changed(MODEL, faults={"failLabels": ["TP=2"], "failStart": "CUDA out of memory"})
    with folder() as directory:
        _, result = sla_runs.run(directory, CONFIG, model)
        check_choice(result)
        assert "TP=2" not in {r["label"] for role in ("prefill", "decode") for r in result["sweep"][role]}, result["sweep"]
        notes = "\n".join(result["notes"])
        assert re.search(r"prefill: TP=2 was skipped: the server exited with status \d+: .*CUDA out of memory", notes), notes
        assert re.search(r"decode: TP=2 was skipped: .*CUDA out of memory", notes), notes
        assert servers_below(directory) == []


def all_that_crash_fail_the_run():
    """Engines that crash under load: the run fails with upstream's words and the first reason, and nothing is left"""
    with folder() as directory:
        done, result = sla_runs.run(directory, CONFIG, changed(MODEL, faults={"crashAfterRequests": 2}), check=False)
        assert done.returncode == 1 and result is None
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("sonde-pod: sla: Profiler failed: no prefill results produced: TP=1: the server "), last
        status = status_of(directory)
        assert status["phase"] == "Failed" and status["error"].startswith("Profiler failed: no prefill results"), status
        assert servers_below(directory) == []


def one_that_crashes_later_keeps_what_was_measured():
    """Engines that crash in the decode sweep: the points before count, the notes say how far they go"""
    with folder() as directory:
        _, result = sla_runs.run(directory, CONFIG, changed(MODEL, faults={"crashAfterRequests": 12}))
        notes = "\n".join(result["notes"])
        assert re.search(r"decode: TP=1 is measured only as far as \d points: the server ", notes), notes
        assert result["sweep"]["decode"], result["sweep"]


def one_that_hangs_ends_by_the_timeout():
    """Engines that stop answering: each request ends by its timeout, the run fails and says so"""
    config = changed(CONFIG, hardware={"maxNumGpusPerEngine": 1})
    with folder() as directory:
        done, _ = sla_runs.run(directory, config, changed(MODEL, faults={"hangAfterRequests": 2}), "--request-timeout", "1s",
                               check=False)
        assert done.returncode == 1 and "no prefill results produced: TP=1: all 1 requests failed" in done.stderr, done.stderr
        assert servers_below(directory) == []


# --- other targets -----------------------------------------------------------------------


def a_server_that_is_there_is_measured():
    """The target endpoint: one candidate, nothing started, nothing taken down"""
    with folder() as directory:
        config_file, model_file = sla_runs.write(directory, CONFIG, changed(MODEL, model="sim/small"))
        port_file = os.path.join(directory, "port")
        with Process(POD, "sim", "--listen", "127.0.0.1:0", "--port-file", port_file, model_file) as server:
            server.expect("Listening", 60)
            with open(port_file, encoding="ascii") as f:
                url = f"http://127.0.0.1:{int(f.read())}"
            done = subprocess.run([POD, "sla", "--profile-config", config_file, "--url", url, "--kv-tokens", "800", "--output-dir",
                                   os.path.join(directory, "out")], capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, done.stderr
            assert server.popen.poll() is None
        result = sla_runs.result_of(directory)
        assert result["target"] == "endpoint" and not result.get("simulated") and len(result["sweep"]["prefill"]) == 1
        done = subprocess.run([POD, "sla", "--profile-config", config_file, "--url", url], capture_output=True, text=True,
                              timeout=120, check=False, cwd=directory)
        assert done.returncode == 2 and "needs --kv-tokens" in done.stderr, done.stderr


def a_command_is_started_for_each_candidate():
    """The target process: a command's words are filled in, each candidate is a process of its own, gone at the end"""
    with folder() as directory:
        config_file, model_file = sla_runs.write(directory, CONFIG, changed(MODEL, model="sim/small"))
        done = subprocess.run([POD, "sla", "--profile-config", config_file, "--output-dir", os.path.join(directory, "out"), "--",
                               POD, "sim", "--listen", "127.0.0.1:{port}", "--gpus", "{gpus}", "--mapping", "TP", model_file],
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        result = sla_runs.result_of(directory)
        assert result["target"] == "process", result
        check_choice(result)
        assert [r["kvTokens"] for r in result["sweep"]["decode"]][::3] == [800, 1600, 3200]
        assert servers_below(directory) == []


def a_command_that_is_not_there_is_told():
    """The target process: a program that does not exist, and a command without a port"""
    with folder() as directory:
        config_file, _ = sla_runs.write(directory, CONFIG, MODEL)
        base = [POD, "sla", "--profile-config", config_file, "--output-dir", os.path.join(directory, "out"), "--"]
        done = subprocess.run([*base, "no-such-engine", "{port}"], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1 and "'no-such-engine' is not found in PATH" in done.stderr, done.stderr
        done = subprocess.run([*base, "true"], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2 and "has no {port}" in done.stderr, done.stderr


# --- the rest ----------------------------------------------------------------------------


def a_dry_run_only_writes():
    """--dry-run: every configuration is written, nothing is deployed, TP on the fewest GPUs is selected"""
    with folder() as directory:
        config_file, _ = sla_runs.write(directory, changed(CONFIG, hardware={"minNumGpusPerEngine": 2}), MODEL)
        done = subprocess.run([POD, "sla", "--profile-config", "@" + config_file, "--dry-run", "--output-dir",
                               os.path.join(directory, "out")], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        result = sla_runs.result_of(directory)
        assert result["prefill"]["label"] == result["decode"]["label"] == "TP=2"
        assert "ttft" not in result["prefill"] and result["points"]["measured"] == 0, result["prefill"]
        names = os.listdir(os.path.join(directory, "out"))
        assert {"prefill_2gpus_tp2", "decode_4gpus_tp4", "config_with_planner.yaml"} <= set(names), names
        assert "checkpoint.json" not in names
        assert status_of(directory)["message"].startswith("Dry run completed: nothing was deployed")


def it_ends_when_told(number, status):
    with folder() as directory:
        slow = changed(MODEL, kvTokensPerGpu=5000, decode={"baseMs": 30})  # a measurement takes 12 s, the sweep minutes
        with Process(*sla_runs.command(directory, changed(CONFIG, sla={"osl": 400}), slow)) as p:
            p.expect("phase=DecodeSweep", 60)
            wait(lambda: "Benchmarking" in json.dumps(status_of(directory)["progress"]), 60, "a measurement")
            p.signal(number)
            assert p.wait(60) == status
        assert servers_below(directory) == []
        assert status_of(directory)["phase"] == "DecodeSweep"
        with open(os.path.join(directory, "out", "checkpoint.json"), encoding="utf-8") as f:
            assert len(json.load(f)["points"]) == 3


def it_ends_by_sigterm():
    """SIGTERM in the middle of a measurement: 143, no server left, the checkpoint is kept"""
    it_ends_when_told(signal.SIGTERM, 143)


def it_ends_by_sigint():
    """SIGINT: the same with 130"""
    it_ends_when_told(signal.SIGINT, 130)


def wrong_usage_is_one_clear_sentence():
    """What is wrong with configuration and options is told in one line, exit status 2, and on the status file"""
    cases = [
        (["--profile-config", "{"], "--profile-config"),
        (["--profile-config", "/no/such/file"], "/no/such/file"),
        (["--profile-config", json.dumps(changed(CONFIG, sla={"isl": 0}))], "isl"),
        (["--profile-config", json.dumps(CONFIG), "--target", "cloud"], "--target is dgd, endpoint, process or sim"),
        (["--profile-config", json.dumps(CONFIG), "--target", "sim"], "needs --sim-model"),
        (["--profile-config", json.dumps(CONFIG), "--url", "http://127.0.0.1:1", "--kv-tokens", "x"], "--kv-tokens"),
        (["--profile-config", json.dumps(CONFIG), "--search", "best"], "--search is grid or adaptive"),
        (["--profile-config", json.dumps(CONFIG), "--truth"], "--truth goes with --target sim"),
    ]
    for options, expected in cases:
        with folder(memory=True) as directory:
            done = subprocess.run([POD, "sla", *options], capture_output=True, text=True, timeout=120, check=False,
                                  env={**os.environ, "SONDE_RUN_DIR": directory})
            lines = done.stderr.strip().splitlines()
            assert done.returncode in (1, 2) and len(lines) == 1 and expected in lines[0], (options, done.returncode, done.stderr)
            with open(os.path.join(directory, STATUS), encoding="utf-8") as f:
                assert json.load(f)["phase"] == "Failed"


def adaptive_says_what_it_saved():
    """--search adaptive: notes and result say how many points and deployments were saved, raw data which are estimates"""
    config = changed(CONFIG, sweep={"prefillInterpolationGranularity": 16, "decodeInterpolationGranularity": 6})
    with folder(memory=True) as directory:
        _, result = sla_runs.run(directory, config, MODEL, "--truth", "--search", "adaptive")
        points, deployments = result["points"], result["deployments"]
        assert points["saved"] > points["measured"] and deployments["saved"] > 0, (points, deployments)
        assert result["notes"][-1] == (f"adaptive search: {points['measured']} points measured and {points['saved']} saved, "
                                       f"{deployments['made']} deployments and {deployments['saved']} saved")
        assert result["prefillCurve"]["estimated"] and 0 not in result["prefillCurve"]["estimated"]


if __name__ == "__main__":
    main(a_run_is_followed_from_one_end_to_the_other, a_killed_truth_gives_the_same_bytes, a_killed_run_goes_on_where_it_was,
         one_that_does_not_start_is_left_out, all_that_crash_fail_the_run, one_that_crashes_later_keeps_what_was_measured,
         one_that_hangs_ends_by_the_timeout, a_server_that_is_there_is_measured, a_command_is_started_for_each_candidate,
         a_command_that_is_not_there_is_told, a_dry_run_only_writes, it_ends_by_sigterm, it_ends_by_sigint,
         wrong_usage_is_one_clear_sentence, adaptive_says_what_it_saved)
