#!/usr/bin/python3
"""sonde-pod sla from one end to the other, against simulated engines and other servers of this machine: what is told, what a
restart does, what a candidate that fails costs, how it ends."""

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

# Seconds in real time: short answers, few points; what is chosen does not hang on a few milliseconds of a busy machine.
CONFIG = {"deployment": {"model": "sim/small", "namespace": "default", "deploymentTimeout": 120},
          "engine": {"backend": "vllm", "maxContextLength": 1000},
          "hardware": {"minNumGpusPerEngine": 1, "maxNumGpusPerEngine": 4, "numGpusPerNode": 8},
          "sla": {"isl": 100, "osl": 8, "ttft": 90, "itl": 17.5},
          "sweep": {"prefillInterpolationGranularity": 4, "decodeInterpolationGranularity": 3, "decodeInterpolationOsl": 8},
          "planner": {"requestRate": 4, "maxGpuBudget": 16}}
MODEL = {"prefill": {"baseMs": 2, "perTokenUs": 1200}, "decode": {"baseMs": 6, "perRequestUs": 2000, "perKvTokenNs": 10},
         "scaling": {"TP": {"prefill": 0.9, "decode": 0.6}}, "kvTokensPerGpu": 800}


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
            time.sleep(0.001)
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
    """What the figures of the sweep call for, however they came out on a busy machine."""
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


def check_messages(states):
    sub_phases = {}
    for state in states:
        gpus = state.get("gpuConfig")
        text = state["message"]
        if state["phase"].endswith("Sweep") and not gpus:
            role = state["phase"].removesuffix("Sweep").lower()
            assert text == f"Profiling {role} across 3 GPU configurations" and state["progress"]["currentStep"] == 0, state
        elif state["phase"] == "PrefillSweep":
            assert text == f"Profiling prefill with {gpus['currentGpus']} GPUs ({gpus['parallelMapping']})", state
        elif state["phase"] == "DecodeSweep":
            assert text == f"Profiling decode with {gpus['currentGpus']} GPUs, {gpus['parallelMapping']}", state
        elif state["phase"] == "PrefillInterpolation":
            assert text == f"Building TTFT curve for {gpus['currentGpus']} GPU config", state
        elif state["phase"] == "DecodeInterpolation":
            assert text == f"Building throughput curves for {gpus['currentGpus']} GPU config", state
        elif state["phase"] == "PlannerGeneration":
            assert text == "Running SLA planner and generating deployment config", state
        elif state["phase"] == "Initializing":
            assert text == "Loading configuration and validating inputs", state
        elif state["phase"] == "ConfigSelection":
            assert text == "Analyzing results and selecting optimal configurations", state
        if gpus:
            assert re.fullmatch(r"TP=\d", gpus["parallelMapping"]), state
        sub_phase = state.get("progress", {}).get("subPhase")
        if sub_phase:
            sub_phases.setdefault(state["phase"], set()).add(sub_phase.split(" ")[0])
    for phase in ("PrefillSweep", "DecodeSweep"):
        assert sub_phases[phase] <= {"Deploying", "Benchmarking", "Cleanup"} and "Benchmarking" in sub_phases[phase], sub_phases
    return sub_phases


# --- a whole run -------------------------------------------------------------------


def check_best(states, result):
    """The best so far is told in both sweeps, once there is one, and in no other phase."""
    told = {s["phase"]: s["bestSoFar"] for s in states if "bestSoFar" in s}
    assert set(told) == {"PrefillSweep", "DecodeSweep"}, told
    assert re.fullmatch(rf"{chosen(result, 'prefill')}  TTFT \d+\.\d ms  \d+ tok/s/GPU", told["PrefillSweep"]), told
    assert re.fullmatch(rf"{chosen(result, 'decode')}  ITL \d+\.\d ms  \d+ tok/s/GPU", told["DecodeSweep"]), told


def followed(states):
    """Whether the watcher did not stand still while something of what is looked for was there."""
    last = {s["phase"]: s["progress"] for s in states if "progress" in s}
    parts = {p["subPhase"].split(" ")[0] for p in (s.get("progress", {}) for s in states) if p.get("subPhase")}
    return len(last) == 4 and all(p["currentStep"] == p["totalSteps"] for p in last.values()) and {"Deploying", "Cleanup"} <= parts and \
        all(any(s["phase"] == phase and s["progress"].get("subPhase", "").startswith("Benchmarking") for s in states)
            for phase in ("PrefillSweep", "DecodeSweep"))


def a_run_is_followed_from_one_end_to_the_other():
    """All phases against simulated engines: states in order, the design's messages, steps that never grow, all files"""
    with folder() as first, folder() as second, folder() as third, folder() as last:
        for directory in first, second, third, last:
            with Watcher(directory) as watcher:
                done, result = sla_runs.run(directory, CONFIG, MODEL)
            states = watcher.states
            if followed(states):
                break
        steps = check_states(states)
        sub_phases = check_messages(states)
        assert [s["phase"] for s in states if s["phase"] != "Initializing"][-1] == "Complete"
        assert steps["PrefillSweep"][0] == 3 and steps["DecodeSweep"][0] == 3 * 3, steps
        assert steps["PrefillInterpolation"][0] == len(sla_runs.prefill_isls(1000, 4)), steps
        assert steps["DecodeInterpolation"][0] == len(result["decodeCurve"]["z_itl"]), steps
        assert all(step == total for total, step, _ in steps.values()), steps
        assert states[-1]["message"] == "Profiling completed successfully", states[-1]
        seen = {s["phase"] for s in states}
        assert {"PrefillSweep", "DecodeSweep", "PrefillInterpolation", "DecodeInterpolation"} <= seen, seen
        assert {"Deploying", "Cleanup"} <= set.union(*sub_phases.values()), sub_phases
        check_best(states, result)
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
            assert json.load(f)["time_to_first_token"]["avg"] > 2
        assert servers_below(directory) == []
        diag(f"{len(states)} states seen of {states[-1]['sequence']}; {done.stderr.count('msg=Measured')} points")


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


def text_of(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def killed_often(directory, config, model, options, longest, rng, kills):
    """Kills a run after random times until it was killed KILLS times and then lets it finish; returns all logs."""
    logs = []
    while True:
        with open(os.path.join(directory, "log"), "w+", encoding="utf-8") as log:
            child = subprocess.Popen(sla_runs.command(directory, config, model, *options), stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log)
            try:
                code = child.wait(rng.uniform(0, longest) if kills > 0 else 120)
                logs.append(text_of(log.name))
                assert code == 0, logs[-1]
                return logs, kills
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
                logs.append(text_of(log.name))
                kills -= 1


def a_killed_truth_gives_the_same_bytes():
    """SIGKILL at 20 random moments of runs in virtual time: every file is byte for byte that of an undisturbed run"""
    rng = random.Random(SEED)
    config = changed(CONFIG, sweep={"decodeInterpolationGranularity": 6, "prefillInterpolationGranularity": 16})
    with folder() as calm:
        began = time.monotonic()
        done, _ = sla_runs.run(calm, config, MODEL, "--truth")
        took = time.monotonic() - began
        expected = outputs(calm)
        points = sorted(measured(done.stderr))
        assert len(points) == len(set(points))
    kills, rounds = 20, 0
    while kills > 0:
        rounds += 1
        assert rounds < 60, "runs end before they can be killed"
        with folder() as directory:
            before = kills
            logs, kills = killed_often(directory, config, MODEL, ["--truth"], took / 2, rng, kills)
            took *= 1 if kills < before else 0.7  # the undisturbed one was held up
            seen = [point for log in logs for point in measured(log)]
            assert len(seen) == len(set(seen)), "a point was measured twice"
            got = outputs(directory)
            assert got.keys() == expected.keys(), got.keys() ^ expected.keys()
            for name, content in expected.items():
                if name == "checkpoint.json":
                    assert json.loads(got[name])["points"] == json.loads(content)["points"]
                assert got[name] == content, name
    diag(f"20 kills in {rounds} runs of {took:.2f} s")


def was_late(result, true):
    """Whether something took longer than its engine does, by a tenth: then another choice may be right."""
    pairs = [(r[key], t[key]) for role, key in (("prefill", "ttft"), ("decode", "itl"))
             for r, t in zip(result["sweep"][role], true["sweep"][role])]
    for curve, key in ("prefillCurve", "prefill_ttft"), ("decodeCurve", "z_itl"):
        pairs += zip(result[curve][key], true[curve][key])
    return any(seen > 1.1 * model for seen, model in pairs)


def check_same(result, true):
    """All but the times, which no two runs in real time have in common, and what comes from times that a busy machine made."""
    check_choice(result)
    if was_late(result, true):
        diag(f"late: {result['prefill']['label']} and {result['decode']['label']}")
        return
    for role in ("prefill", "decode"):
        assert result[role]["label"] == true[role]["label"], (result[role], true[role])
    for member in ("points", "deployments", "replicas", "notes"):
        assert result.get(member) == true.get(member), (member, result["notes"], true["notes"])
    assert result["prefillCurve"]["prefill_isl"] == true["prefillCurve"]["prefill_isl"]
    assert result["decodeCurve"]["x_kv_usage"] == true["decodeCurve"]["x_kv_usage"]


def a_killed_run_goes_on_where_it_was():
    """SIGKILL at 20 random moments of a run in real time: no point is measured twice, no server stays, the choice is the same"""
    rng = random.Random(SEED + 1)
    with folder() as calm:
        _, true = sla_runs.run(calm, CONFIG, MODEL, "--truth")
    kills, rounds = 20, 0
    while kills > 0:
        rounds += 1
        with folder() as directory:
            logs, kills = killed_often(directory, CONFIG, MODEL, [], 0.8, rng, kills)
            result = sla_runs.result_of(directory)
            seen = [point for log in logs for point in measured(log)]
            assert len(seen) == len(set(seen)), "a point was measured twice"
            assert wait(lambda: not servers_below(directory), 60, "no server is left")
        check_same(result, true)
    diag(f"20 kills in {rounds} runs")


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
        began = time.monotonic()
        done, _ = sla_runs.run(directory, config, changed(MODEL, faults={"hangAfterRequests": 2}), "--request-timeout", "1s",
                               check=False)
        assert done.returncode == 1 and "no prefill results produced: TP=1: all 1 requests failed" in done.stderr, done.stderr
        assert time.monotonic() - began < 100
        assert servers_below(directory) == []


# --- other targets -----------------------------------------------------------------------


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def a_server_that_is_there_is_measured():
    """The target endpoint: one candidate, nothing started, nothing taken down"""
    with folder() as directory:
        config_file, model_file = sla_runs.write(directory, CONFIG, changed(MODEL, model="sim/small"))
        url = f"http://127.0.0.1:{free_port()}"
        with Process(POD, "sim", "--listen", url.removeprefix("http://"), model_file) as server:
            server.expect("Listening", 60)
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
        config = changed(CONFIG, sla={"osl": 400})
        with Process(*sla_runs.command(directory, config, changed(MODEL, kvTokensPerGpu=5000))) as p:
            p.expect("phase=DecodeSweep", 60)
            wait(lambda: servers_below(directory), 60, "a server is up")
            time.sleep(0.3)
            began = time.monotonic()
            p.signal(number)
            assert p.wait(60) == status
            took = time.monotonic() - began
        assert took < 30, f"it took {took:.1f} s to stop"  # the sweep takes longer
        assert servers_below(directory) == []
        assert status_of(directory)["phase"] == "DecodeSweep"
        with open(os.path.join(directory, "out", "checkpoint.json"), encoding="utf-8") as f:
            assert len(json.load(f)["points"]) >= 3


def it_ends_by_sigterm():
    """SIGTERM in the middle of a measurement: quick, 143, no server left, the checkpoint is kept"""
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
