#!/usr/bin/python3
"""python/sonde_status.py: writes what the designs' classes write, call by call, and never stops a profiler."""

import ast
import contextlib
import fcntl
import inspect
import itertools
import json
import logging
import os
import pickle
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from datetime import timedelta
from enum import Enum

sys.path[:0] = [os.path.join(os.path.dirname(__file__), *there) for there in (("..", "lib"), ("..", "..", "python"))]
sys.dont_write_bytecode = True
import sonde_status as ours  # noqa: E402  pylint: disable=wrong-import-position
from designs import Frozen, Full, Short  # noqa: E402  pylint: disable=wrong-import-position
from sonde_test import QUICK, ROOT, main, program  # noqa: E402  pylint: disable=wrong-import-position

FILE = "profiling_status.json"
SOURCE = os.path.join(ROOT, "python", "sonde_status.py")
REAL = ours.datetime


def text(folder):
    with open(os.path.join(folder, FILE), encoding="utf-8") as f:
        return f.read()


def status(folder):
    return json.loads(text(folder))


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="sonde-reporter-") as path:
        yield path


@contextlib.contextmanager
def frozen():
    """The time stands still for ours as it does for the designs'."""
    ours.datetime = Frozen
    try:
        yield
    finally:
        ours.datetime = REAL


@contextlib.contextmanager
def complaints():
    """What is logged meanwhile."""
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("sonde_status")
    logger.addHandler(handler)
    propagate, logger.propagate = logger.propagate, False
    try:
        yield records
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate


def read_by_c(*texts):
    """What the C reader takes from each of TEXTS: an object, or the reason of a refusal."""
    lines = "\n".join(json.dumps(json.loads(t)) if isinstance(t, str) else json.dumps(t) for t in texts) + "\n"
    done = subprocess.run([program("test/status-read")], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(texts), (len(answers), len(texts))
    return [a if a.startswith("refused: ") else json.loads(a) for a in answers]


# --- the designs -------------------------------------------------------------------

MESSAGES = ["Loading configuration", "", "ü → 漢字 \U0001F600", 'quotes " and \\ and\nlines\t', "x" * 1024, "\x7f\x1b"]
SUB_PHASES = [None, "", "Deploying", "Benchmarking batch size 256", "ß" * 128]
STEPS = [(1, 3), (2, 3), (1, 8), (1, 16), (3, 16), (5, 12), (0, 0), (5, 0), (0, 7), (7, 7), (9, 4), (1, 2000), (49, 1024)]
DETAILS = [None, {}, {"batch": 496}, {"error": "no GPU", "nested": {"list": [1, 2.5, None, True]}, "ü": "漢"}]


def full_calls():
    """Every call of the full design's reporter: (name of the method, arguments for a design, keyword or not)."""
    for name in Full.ProfilingPhase.__members__:
        for message in MESSAGES:
            yield "update", lambda d, n=name, m=message: ((d.ProfilingPhase[n], m), {})
    for step, of in STEPS:
        for sub in SUB_PHASES:
            yield "update", lambda d, s=step, o=of, u=sub: (
                (d.ProfilingPhase.DECODE_SWEEP, "m"), {"progress": d.ProfilingProgress(s, o, u)})
    yield "update", lambda d: ((d.ProfilingPhase.DECODE_SWEEP, "m", d.ProfilingProgress(1, 2), d.GpuConfig(4, "TP=4")), {})
    yield "update", lambda d: ((d.ProfilingPhase.PREFILL_SWEEP, "m"), {"gpu_config": d.GpuConfig(0, "")})
    yield "update", lambda d: ((), {"phase": d.ProfilingPhase.FAILED, "message": "by hand", "progress": None,
                                    "gpu_config": d.GpuConfig(parallel_mapping="DP=2", current_gpus=2)})
    yield "complete", lambda d: ((), {})
    yield "complete", lambda d: (("all is well",), {})
    yield "complete", lambda d: ((), {"message": "all is well"})
    for error in "no GPU", "", "x" * 500, "é" * 250, "quote \" and\nline":
        yield "fail", lambda d, e=error: ((e,), {})
    yield "fail", lambda d: ((ValueError("not a string"),), {})


def without(document, names):
    return json.dumps({k: v for k, v in document.items() if k not in names}, indent=2)


def every_call_of_the_full_design_writes_the_same_bytes():
    with frozen(), folder() as theirs_in, folder() as ours_in, complaints() as said:
        reporters = Full.ProfilingStatusReporter(theirs_in), ours.ProfilingStatusReporter(ours_in)
        assert reporters[0].started_at == reporters[1].started_at
        count = 0
        for count, (method, arguments) in enumerate(full_calls(), 1):
            Frozen.at += timedelta(microseconds=random.Random(count).choice([1, 999_999, 877_544]))
            for design, reporter in zip((Full, ours), reporters):
                args, kwargs = arguments(design)
                getattr(reporter, method)(*args, **kwargs)
            mine = status(ours_in)
            assert mine["sequence"] == count, mine
            assert ("error" in mine) == (method == "fail"), mine
            assert without(mine, ("sequence", "error")) == text(theirs_in), (method, mine, text(theirs_in))
            assert without(mine, ()) == text(ours_in), text(ours_in)
            assert reporters[1]._current_phase.phase_id == reporters[0]._current_phase.phase_id
        assert count > 120 and not said, (count, said)


def every_call_of_the_short_design_writes_its_members():
    """every call of the short design writes its members and values, with the full design's time and numbers"""
    additive = ("phaseNumber", "totalPhases", "startedAt", "sequence", "timestamp")
    with frozen(), folder() as theirs_in, folder() as ours_in, complaints() as said:
        theirs, mine = Short.ProfilingStatusReporter(theirs_in), ours.ProfilingStatusReporter(ours_in)
        names = itertools.cycle(Short.ProfilingPhase.__members__)
        steps = [(None, None), (1, None), (None, 2)] + [s for s in STEPS if s[1]]
        for (step, of), details, by_name in itertools.product(steps, DETAILS, (True, False)):
            name = next(names)
            Frozen.at += timedelta(microseconds=876_543)
            for reporter, phases in (theirs, Short.ProfilingPhase), (mine, ours.ProfilingPhase):
                if by_name:
                    reporter.update(phases[name], "m", current_step=step, total_steps=of, details=details)
                else:
                    reporter.update(phases[name], "m", step, of, details)
            expected, got = status(theirs_in), status(ours_in)
            assert without(got, additive) == without(expected, additive), (got, expected)
            assert without(got, ()) == text(ours_in), text(ours_in)
            assert REAL.fromisoformat(got["timestamp"]) == REAL.fromisoformat(
                expected["timestamp"].replace("Z", "+00:00")), (got, expected)
        assert not said, said
        # where the short design divides by zero
        mine.update(ours.ProfilingPhase.PREFILL_SWEEP, "m", current_step=0, total_steps=0)
        assert status(ours_in)["progress"] == {"currentStep": 0, "totalSteps": 0, "percentage": 0.0}


def the_names_and_arguments_are_the_design_s():
    def arguments(function):
        return [(p.name, p.default) for p in inspect.signature(function).parameters.values()]

    for name in "ProfilingProgress", "GpuConfig":
        assert arguments(getattr(Full, name)) == arguments(getattr(ours, name)), name
    theirs, mine = Full.ProfilingStatusReporter, ours.ProfilingStatusReporter
    for name in "__init__", "update", "complete", "fail":
        expected, got = arguments(getattr(theirs, name)), arguments(getattr(mine, name))
        assert got[:len(expected)] == expected, (name, got)
        assert all(default is None for _, default in got[len(expected):]), (name, got)
    assert {p for p, _ in arguments(Short.ProfilingStatusReporter.update)} <= {p for p, _ in arguments(mine.update)}
    assert mine.TOTAL_PHASES == 7
    made = mine("/nowhere", enabled=False)
    for name in vars(theirs("/nowhere", enabled=False)):
        assert hasattr(made, name), name
    assert (made.output_dir, made.status_file) == ("/nowhere", "/nowhere/" + FILE)
    assert (made.enabled, made._current_phase) == (False, None)
    assert ours.ProfilingProgress(1, 2) == ours.ProfilingProgress(1, 2, None)
    assert repr(ours.GpuConfig(4, "TP=4")) == "GpuConfig(current_gpus=4, parallel_mapping='TP=4')"


def phases_are_the_members_of_both_designs():
    assert list(ours.ProfilingPhase.__members__) == list(Full.ProfilingPhase.__members__)
    for name, phase in ours.ProfilingPhase.__members__.items():
        full, short = Full.ProfilingPhase[name], Short.ProfilingPhase[name]
        assert (phase.phase_id, phase.phase_number) == full.value
        assert phase.value == short.value == phase.phase_id
        assert ours.ProfilingPhase(short.value) is phase and ours.ProfilingPhase(full.value) is phase
        assert pickle.loads(pickle.dumps(phase)) is phase
        assert phase.name == name and json.dumps(phase.value) == f'"{phase.phase_id}"'
    for wrong in "Nix", ("Failed", 8), None, 3:
        with contextlib.suppress(ValueError):
            raise AssertionError(ours.ProfilingPhase(wrong))


def switched_off_it_does_nothing():
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there, enabled=False)
        reporter.update(ours.ProfilingPhase.DECODE_SWEEP, "m")
        reporter.update(None, object(), details={1: object()})
        reporter.complete()
        reporter.fail("x")
        assert os.listdir(there) == [] and not said


# --- what is ours ------------------------------------------------------------------


class Own(Enum):
    WARM_UP = "Warmup"


def phases_may_be_strings_and_other_classes():
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there)
        for phase, expected in (("PrefillSweep", ("PrefillSweep", 2, 7)), ("Warmup", ("Warmup", None, None)),
                                (Own.WARM_UP, ("Warmup", None, None)), (Short.ProfilingPhase.FAILED, ("Failed", 9, 7)),
                                (Full.ProfilingPhase.COMPLETE, ("Complete", 8, 7))):
            reporter.update(phase, "m")
            got = status(there)
            assert (got["phase"], got.get("phaseNumber"), got.get("totalPhases")) == expected, got
        assert not said


def a_plan_is_written_and_numbers_the_phases():
    plan = [{"phase": "Warmup", "weight": 60}, {"phase": "Measure", "steps": 20, "weight": 600.5, "note": "?"}, "Tidy",
            ours.ProfilingPhase.PLANNER_GENERATION, "Complete"]
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there, plan=plan)
        for phase, number in ("Measure", 2), (ours.ProfilingPhase.PLANNER_GENERATION, 4), ("Other", None), \
                (ours.ProfilingPhase.COMPLETE, 5), ("Failed", 6):
            reporter.update(phase, "m")
            got = status(there)
            assert (got.get("phaseNumber"), got["totalPhases"]) == (number, 4), got
            assert got["plan"] == [{"phase": "Warmup", "weight": 60}, {"phase": "Measure", "steps": 20, "weight": 600.5},
                                   {"phase": "Tidy"}, {"phase": "PlannerGeneration"}], got
        assert not said


def a_plan_that_readers_would_refuse_is_left_out():
    for plan in ([{}], [3], ["A", "A"], [""], ["x" * 64], ["a\nb"], [{"phase": "A", "weight": 0}], 7, [{"phase": "A", "steps": -1}],
                 [{"phase": "A", "weight": float("nan")}], [{"phase": "A", "steps": "3"}], [f"P{i}" for i in range(33)]):
        with folder() as there, complaints() as said:
            reporter = ours.ProfilingStatusReporter(there, plan=plan)
            reporter.update("PrefillSweep", "m")
            assert len(said) == 1 and "the plan is left out" in said[0].getMessage(), (plan, said)
            assert "plan" not in status(there) and status(there)["phaseNumber"] == 2
    with folder() as there, complaints() as said:
        ours.ProfilingStatusReporter(there, plan=[f"P{i}" for i in range(32)]).update("P31", "m")
        assert status(there)["phaseNumber"] == 32 and not said


def writers_go_on_where_others_stopped():
    with folder() as there, complaints() as said:
        report(there, "--phase", "Warmup", "--message", "m", "--plan", '["Warmup", {"phase": "Measure", "weight": 2}]')
        ours.ProfilingStatusReporter(there).update("Measure", "m", best="TP=4  ITL 11.8 ms" + "x" * 256)
        got = status(there)
        assert len(got["bestSoFar"]) == 256, got
        assert (got["sequence"], got["phaseNumber"], got["totalPhases"]) == (2, 2, 2), got
        report(there, "--phase", "Measure", "--message", "m", "--best", "TP=4")
        assert status(there)["bestSoFar"] == "TP=4"
        report(there, "--complete")
        got = status(there)
        assert (got["sequence"], got["phaseNumber"], len(got["plan"])) == (4, 3, 2) and "bestSoFar" not in got, got
        ours.ProfilingStatusReporter(there).update("PrefillSweep", "another run")
        got = status(there)
        assert got["sequence"] == 5 and "plan" not in got, got
        for broken in "", "{", "[]", '{"sequence": true}', '{"sequence": -1}', '{"sequence": "7"}', "[" * 60000, "x" * 100000:
            with open(os.path.join(there, FILE), "w", encoding="utf-8") as f:
                f.write(broken)
            ours.ProfilingStatusReporter(there).update("X", "m")
            assert status(there)["sequence"] == 1, broken
        reporter = ours.ProfilingStatusReporter(there)
        reporter.update("X", "m")
        os.unlink(os.path.join(there, FILE))
        reporter.update("X", "m")
        assert status(there)["sequence"] == 3, "one that lives on knows its own"
        assert not said


def texts_are_cut_as_in_c():
    with folder() as there:
        reporter = ours.ProfilingStatusReporter(there)
        for character in "x", "é", "€", "\U0001F600":
            long = character * 2000
            reporter.update("X", long, ours.ProfilingProgress(1, 2, long), ours.GpuConfig(1, long))
            [read], mine = read_by_c(text(there)), status(there)
            assert read["message"] == mine["message"] and len(mine["message"].encode()) in range(1021, 1025)
            assert read["progress"] == mine["progress"] and read["gpuConfig"] == mine["gpuConfig"]
            reporter.fail(long)
            mine = status(there)
            report(there, "--fail", long)
            assert status(there)["error"] == mine["error"] and len(mine["error"].encode()) in range(497, 501)
            assert status(there)["message"] == mine["message"] == "Profiling failed: " + mine["error"]
        reporter.update("X", "half \udc80 a character")
        [read] = read_by_c(text(there))
        assert read["message"] == "half ? a character", read


# --- nothing stops the profiler ------------------------------------------------------


class Vain:
    def __str__(self):
        raise RuntimeError("no")


def circle():
    loop = {}
    loop["self"] = loop
    return loop


def nested(levels):
    value = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def what_cannot_be_said_is_left_out_and_the_rest_written():
    bad = [{"details": d} for d in ({"x": object()}, {"x": float("nan")}, circle(), {(1, 2): 3}, nested(16), nested(5000),
                                    {"x": "\udc80"}, {"x": "y" * 70000}, {"x": [1] * 40000}, {"x": Vain()}, {"x": 10**5000})]
    bad += [{"progress": ours.ProfilingProgress(*steps)} for steps in ((-1, 5), (1, -5), (10**10, 5), (0.5, 5), (None, 5),
                                                                        ("1", 5), (float("nan"), 5), (1, float("inf")))]
    bad += [{"progress": {}}, {"progress": object()}, {"current_step": -1, "total_steps": 5},
            {"gpu_config": ours.GpuConfig(-1, "TP=1")}, {"gpu_config": ours.GpuConfig(None, "TP=1")}, {"gpu_config": "TP=1"},
            {"gpu_config": ours.GpuConfig(1, Vain())}]
    for arguments in bad:
        with folder() as there, complaints() as said:
            reporter = ours.ProfilingStatusReporter(there)
            for _ in range(3):
                reporter.update(ours.ProfilingPhase.DECODE_SWEEP, "m", **arguments)
            [read] = read_by_c(text(there))
            assert isinstance(read, dict) and read["sequence"] == 3, (arguments, read)
            assert not set(read) & {"details", "progress", "gpuConfig"}, read
            assert len(said) == 1 and "left out" in said[0].getMessage(), said
    with folder() as there, complaints() as said:
        ours.ProfilingStatusReporter(there).update("X", "m", details=nested(15))
        assert isinstance(read_by_c(text(there))[0], dict) and not said


def numbers_of_other_libraries_are_numbers():
    class Int64:  # as numpy's
        def __init__(self, value):
            self.value = value

        def __index__(self):
            return self.value

        def __truediv__(self, other):
            return self.value / other.value

        def __eq__(self, other):
            return self.value == other

    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there)
        reporter.update("X", "m", ours.ProfilingProgress(Int64(1), Int64(3)), ours.GpuConfig(Int64(4), "TP=4"))
        assert status(there)["progress"] == {"currentStep": 1, "totalSteps": 3, "percentage": 33.3}
        assert status(there)["gpuConfig"]["currentGpus"] == 4
        reporter.update("X", "m", ours.ProfilingProgress(True, 3.0))
        assert text(there).count('"currentStep": 1,') == 1 and not said


def no_call_raises():
    wrong = [lambda r: r.update(None, "m"), lambda r: r.update(3, "m"), lambda r: r.update("", "m"), lambda r: r.update("x" * 64, "m"),
             lambda r: r.update("a\x1bb", "m"), lambda r: r.update("a\udc80", "m"), lambda r: r.update("X", Vain()),
             lambda r: r.complete(Vain())]
    for call in wrong:
        with folder() as there, complaints() as said:
            reporter = ours.ProfilingStatusReporter(there)
            call(reporter)
            call(reporter)
            assert os.listdir(there) == [] and len(said) == 1, (os.listdir(there), said)
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there)
        reporter.fail(Vain())
        assert status(there)["error"] == "Vain" and len(said) == 1
    with folder() as there, complaints() as said:
        before = os.getcwd()
        os.chdir(there)
        try:
            with open(".tmp", "w", encoding="utf-8") as somebodys:
                somebodys.write("kept")
            reporter = ours.ProfilingStatusReporter(None)
            reporter.update("X", "m")
            reporter.fail("e")
            assert len(said) == 1 and os.listdir(there) == [".tmp"] and os.path.getsize(".tmp") == 4, os.listdir(there)
        finally:
            os.chdir(before)


def a_directory_that_has_gone_is_logged_once():
    with folder() as parent, complaints() as said:
        there = os.path.join(parent, "data")
        reporter = ours.ProfilingStatusReporter(there)
        for _ in range(5):
            reporter.update("X", "m")
        assert len(said) == 1 and there in said[0].getMessage(), said
        os.mkdir(there)
        reporter.update("X", "m")
        assert status(there)["phase"] == "X"
        shutil.rmtree(there)
        with open(there, "w", encoding="utf-8"):
            reporter.update("X", "m")
        assert len(said) == 1


def a_full_disk_leaves_the_last_state():
    with folder() as there:
        pid = os.fork()
        if pid == 0:
            try:
                with complaints() as said:
                    reporter = ours.ProfilingStatusReporter(there)
                    reporter.update("PrefillSweep", "m")
                    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                    resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
                    reporter.update("DecodeSweep", "m")
                    reporter.update("DecodeSweep", "m")
                    os._exit(0 if len(said) == 1 else 3)
            finally:
                os._exit(4)
        assert os.waitpid(pid, 0)[1] == 0
        assert status(there)["phase"] == "PrefillSweep" and os.listdir(there) == [FILE]


def things_in_the_way_are_put_aside():
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there)
        for name in FILE, FILE + ".tmp":
            os.mkfifo(os.path.join(there, name))
            reporter.update("X", "m")
            assert os.listdir(there) == [FILE]
            os.unlink(os.path.join(there, FILE))
            os.symlink("nowhere", os.path.join(there, name))
            reporter.update("X", "m")
            assert os.listdir(there) == [FILE] and not os.path.islink(os.path.join(there, FILE))
        assert not said
        os.unlink(os.path.join(there, FILE))
        os.mkdir(os.path.join(there, FILE))
        reporter.update("X", "m")
        assert len(said) == 1 and os.listdir(there) == [FILE]


def a_writer_that_stands_still_stops_nobody():
    with folder() as there, complaints() as said:
        reporter = ours.ProfilingStatusReporter(there)
        fd = os.open(there, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        reporter._complained = True  # so that it waits for 50 ms and not for 2 s
        reporter.update("X", "m")
        assert os.listdir(there) == []
        fcntl.flock(fd, fcntl.LOCK_UN)
        reporter.update("X", "m")
        assert os.listdir(there) == [FILE] and not said
        os.close(fd)


@contextlib.contextmanager
def patient():
    """A writer that stands still with the lock is waited for: who gives up after 2 s, as it should, would be missing in the count."""
    kept, ours.LOCK_SECONDS = ours.LOCK_SECONDS, 600
    try:
        yield
    finally:
        ours.LOCK_SECONDS = kept


def report_in_the_end(there, *arguments):
    """As report(), and once more where another writer did not let go for 2 s."""
    for _ in range(100):
        done = subprocess.run([program("sonde-pod"), "report", "--dir", there, *arguments], check=True, stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        if not done.stderr:
            return
        assert "does not let go" in done.stderr, done


def threads_and_programs_take_turns():
    with folder() as there, complaints() as said, patient():
        reporters = [ours.ProfilingStatusReporter(there) for _ in range(3)]

        def many(reporter, number):
            for i in range(20):
                reporter.update(f"Phase{number}", "x" * (i * 40), current_step=i, total_steps=20)

        threads = [threading.Thread(target=many, args=(r, i)) for i, r in enumerate(reporters)]
        threads.append(threading.Thread(target=lambda: [report_in_the_end(there, "--phase", "C", "--message", "m") for _ in range(20)]))
        for thread in threads:
            thread.start()
        seen = 0
        while any(thread.is_alive() for thread in threads):
            with contextlib.suppress(FileNotFoundError):
                got = status(there)
                assert got["sequence"] >= seen, (got, seen)
                seen = got["sequence"]
        assert status(there)["sequence"] == 80 and os.listdir(there) == [FILE] and not said


# --- C and Python agree --------------------------------------------------------------


def report(there, *arguments):
    subprocess.run([program("sonde-pod"), "report", "--dir", there, *arguments], check=True, stdin=subprocess.DEVNULL)


def percentages_are_python_s():
    """percentages are Python's: all steps of up to 250 (60 in the short form), and a sample up to 10^9"""
    draw = random.Random(4)
    pairs = [(i, n) for n in range(1, 61 if QUICK else 251) for i in range(n + 1)]
    for most in 10**4, 10**6, 10**9:
        pairs += [(draw.randint(0, n), n) for n in (draw.randint(1, most) for _ in range(1000 if QUICK else 10000))]
    answers = read_by_c(*({"phase": "X", "progress": {"currentStep": i, "totalSteps": n}} for i, n in pairs))
    wrong = [(pair, a["progress"]["percentage"]) for pair, a in zip(pairs, answers)
             if a["progress"]["percentage"] != ours.ProfilingProgress(*pair).percentage]
    assert not wrong, wrong[:5]


def what_python_writes_is_what_c_reads():
    with frozen(), folder() as there:
        Frozen.at = REAL(2026, 1, 24, 2, 8, 42, 123456)
        reporter = ours.ProfilingStatusReporter(there, plan=["Warmup", {"phase": "Measure", "steps": 3, "weight": 2}])
        reporter.update("Measure", "Batch 16", ours.ProfilingProgress(2, 3, "Deploying"), ours.GpuConfig(4, "TP=4"), {"batch": 16})
        [read] = read_by_c(text(there))
        expected = status(there)
        expected["plan"][0]["weight"] = 2  # the mean of the others
        for name in "timestamp", "startedAt":
            expected[name] = "2026-01-24T02:08:42.123456Z"
        assert json.dumps(read) == json.dumps(expected), (read, expected)


# --- the table of phases, the file -----------------------------------------------------


def table(*arguments):
    done = subprocess.run([os.path.join(ROOT, "scripts", "phases"), *arguments], stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout


def the_tables_of_phases_are_up_to_date():
    """the tables of phases are as src/run/phases.def has them (scripts/phases writes them)"""
    assert table("--check") == (0, ""), table("--check")


def a_table_that_is_behind_is_found_and_written():
    with folder() as copy:
        for path in "src/run/phases.def", "python/sonde_status.py":
            os.makedirs(os.path.join(copy, os.path.dirname(path)), exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), os.path.join(copy, path))
        crd = os.path.join(copy, "deploy", "crds", "x.yaml")
        os.makedirs(os.path.dirname(crd))
        with open(crd, "w", encoding="utf-8") as f:
            f.write("phase:\n  type: string\n  enum:\n    # phases: begin\n    - Old\n    # phases: end\nmore: 1\n")
        assert table("--check", "--root", copy) == (1, "deploy/crds/x.yaml: behind src/run/phases.def; run scripts/phases\n")
        source = os.path.join(copy, "src/run/phases.def")
        with open(source, encoding="utf-8") as f:
            old = f.read()
        with open(source, "w", encoding="utf-8") as f:
            f.write(old.replace("PHASE_END(FAILED", "PHASE_END(LATER").replace('"Failed"', '"Later"'))
        assert table("--check", "--root", copy)[0] == 1 and table("--root", copy)[0] == 0
        assert table("--check", "--root", copy) == (0, "")
        with open(crd, encoding="utf-8") as f:
            lines = f.read().splitlines()
        assert lines[3:6] == ["    # phases: begin", "    - Initializing", "    - PrefillSweep"], lines
        assert lines[-3:] == ["    - Later", "    # phases: end", "more: 1"], lines
        with open(os.path.join(copy, "python/sonde_status.py"), encoding="utf-8") as f:
            assert 'LATER = ("Later", 9)' in f.read()


def blocks(language):
    """The code blocks of the page for authors of profilers."""
    with open(os.path.join(ROOT, "docs", "status-file.md"), encoding="utf-8") as f:
        return re.findall(rf"^```{language}\n(.*?)^```", f.read(), re.M | re.S)


def the_examples_of_the_page_work():
    """the examples of docs/status-file.md work"""
    [in_python], [in_bash], (example, plan) = blocks("python"), blocks("bash"), blocks("json")
    with folder() as there, complaints() as said:
        env = {**os.environ, "SONDE_RUN_DIR": there}
        subprocess.run([sys.executable, "-c", in_python], check=True, env={**env, "PYTHONPATH": os.path.dirname(SOURCE)})
        got = status(there)
        assert (got["phase"], got["sequence"]) == ("Complete", 5), got
        subprocess.run(["bash", "-c", in_bash.replace("/sonde/sonde-pod", program("sonde-pod"))], check=True, env=env)
        got = status(there)
        assert (got["phase"], got["phaseNumber"], got["sequence"]) == ("Complete", 3, 10), got
        ours.ProfilingStatusReporter(there, plan=json.loads(plan)).update("Tidy", "m")
        assert status(there)["phaseNumber"] == 3 and not said
    [read] = read_by_c(example)
    assert {**read, "timestamp": 0, "startedAt": 0} == {**json.loads(example), "timestamp": 0, "startedAt": 0}, read


def the_page_has_the_table_of_phases():
    """docs/status-file.md has the table of phases"""
    with open(os.path.join(ROOT, "docs", "status-file.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| (\d) \| `(\w+)` \|", f.read(), re.M)
    assert rows == [(str(p.phase_number), p.phase_id) for p in ours.ProfilingPhase], rows


def it_is_one_file_for_python_3_8():
    """it is one file for Python 3.8 that imports the standard library alone"""
    with open(SOURCE, encoding="utf-8") as f:
        tree = ast.parse(f.read(), feature_version=(3, 8))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported <= set(sys.stdlib_module_names), imported


main(every_call_of_the_full_design_writes_the_same_bytes, every_call_of_the_short_design_writes_its_members,
     the_names_and_arguments_are_the_design_s, phases_are_the_members_of_both_designs, switched_off_it_does_nothing,
     phases_may_be_strings_and_other_classes, a_plan_is_written_and_numbers_the_phases,
     a_plan_that_readers_would_refuse_is_left_out, writers_go_on_where_others_stopped, texts_are_cut_as_in_c,
     what_cannot_be_said_is_left_out_and_the_rest_written, numbers_of_other_libraries_are_numbers, no_call_raises,
     a_directory_that_has_gone_is_logged_once, a_full_disk_leaves_the_last_state, things_in_the_way_are_put_aside,
     a_writer_that_stands_still_stops_nobody, threads_and_programs_take_turns, percentages_are_python_s,
     what_python_writes_is_what_c_reads, the_tables_of_phases_are_up_to_date, a_table_that_is_behind_is_found_and_written,
     the_examples_of_the_page_work, the_page_has_the_table_of_phases, it_is_one_file_for_python_3_8)
