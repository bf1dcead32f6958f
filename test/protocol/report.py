#!/usr/bin/python3
"""sonde-pod report: the status file from a shell script, which it never ends."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import main, program

FILE = "profiling_status.json"
POD = program("sonde-pod")


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory(prefix="sonde-report-") as path:
        yield path


def run(*arguments, env=None, **more):
    """Exit status, standard output, standard error."""
    done = subprocess.run([POD, "report", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                          check=False, env={**os.environ, **(env or {})}, **more)
    return done.returncode, done.stdout, done.stderr


def status(there):
    with open(os.path.join(there, FILE), encoding="utf-8") as f:
        return json.load(f)


def said(there, *arguments):
    """The status after a report that worked."""
    assert run("--dir", there, *arguments) == (0, "", ""), arguments
    return status(there)


def everything_can_be_said():
    with folder() as there:
        got = said(there, "--phase", "DecodeSweep", "--message", "Profiling decode", "--step", "5", "--of", "12",
                   "--sub-phase", "Benchmarking", "--gpus", "4", "--mapping", "TP=2/DP=2")
        now = datetime.now(timezone.utc)
        for name in "timestamp", "startedAt":
            written = datetime.fromisoformat(got.pop(name).replace("Z", "+00:00"))
            assert now - timedelta(minutes=1) < written <= now, written
        assert json.dumps(got) == json.dumps({
            "phase": "DecodeSweep", "phaseNumber": 3, "totalPhases": 7, "message": "Profiling decode",
            "progress": {"currentStep": 5, "totalSteps": 12, "percentage": 41.7, "subPhase": "Benchmarking"},
            "gpuConfig": {"currentGpus": 4, "parallelMapping": "TP=2/DP=2"}, "sequence": 1}), got


def parts_can_be_left_out():
    with folder() as there:
        got = said(there, "--phase", "Mine", "--message", "")
        assert set(got) == {"phase", "message", "timestamp", "startedAt", "sequence"} and got["message"] == "", got
        assert said(there, "--phase", "X", "--message", "m", "--sub-phase", "s")["progress"] == {"subPhase": "s"}
        assert said(there, "--phase", "X", "--message", "m", "--gpus", "2")["gpuConfig"] == {"currentGpus": 2}
        assert said(there, "--phase", "X", "--message", "m", "--mapping", "TP=1")["gpuConfig"] == {"parallelMapping": "TP=1"}
        assert said(there, "--phase", "X", "--message", "m", "--step", "3", "--of", "0")["progress"]["percentage"] == 0


def a_run_ends_well_or_badly():
    with folder() as there:
        got = said(there, "--complete")
        assert (got["phase"], got["phaseNumber"], got["message"]) == ("Complete", 8, "Profiling completed successfully"), got
        assert said(there, "--complete", "--message", "12 configurations")["message"] == "12 configurations"
        got = said(there, "--fail", "no GPU")
        assert (got["phase"], got["phaseNumber"]) == ("Failed", 9), got
        assert (got["message"], got["error"]) == ("Profiling failed: no GPU", "no GPU"), got
        assert len(said(there, "--fail", "é" * 1000)["error"].encode()) == 500


def a_plan_is_said_once():
    plan = '[{"phase": "Warmup", "weight": 60}, {"phase": "Measure", "steps": 12, "weight": 600}]'
    with folder() as there:
        first = said(there, "--phase", "Warmup", "--message", "m", "--plan", plan)
        assert first["plan"] == json.loads(plan) and (first["phaseNumber"], first["totalPhases"]) == (1, 2), first
        then = said(there, "--phase", "Measure", "--message", "m", "--step", "1", "--of", "12")
        assert then["plan"] == json.loads(plan) and then["phaseNumber"] == 2, then
        assert then["startedAt"] == first["startedAt"] and then["sequence"] == 2, then
        end = said(there, "--complete")
        assert end["startedAt"] == first["startedAt"] and end["phaseNumber"] == 3, end
        new = said(there, "--phase", "PrefillSweep", "--message", "another run")
        assert new["startedAt"] > first["startedAt"] and new["sequence"] == 4 and "plan" not in new, new


def the_directory_comes_from_the_environment():
    with folder() as there:
        assert run("--complete", env={"SONDE_RUN_DIR": there}) == (0, "", "")
        assert status(there)["phase"] == "Complete"
    code, _, err = run("--complete", env={"SONDE_RUN_DIR": ""}) if not os.path.isdir("/data") else (0, "", "/sonde/run")
    assert code == 0 and "/sonde/run" in err, err


def wrong_usage_is_one_sentence_and_two():
    wrong = [
        [], ["--phase", "X"], ["--message", "m"], ["--complete", "--fail", "x"], ["--phase", "X", "--message", "m", "--complete"],
        ["--fail", "x", "--message", "m"], ["--complete", "--step", "1", "--of", "2"], ["--fail", "x", "--gpus", "1"],
        ["--phase", "X", "--message", "m", "--step", "1"], ["--phase", "X", "--message", "m", "--of", "1"],
        ["--phase", "X", "--message", "m", "--step", "-1", "--of", "2"], ["--phase", "X", "--message", "m", "--step", "a", "--of", "2"],
        ["--phase", "X", "--message", "m", "--step", "1", "--of", "1000000001"], ["--phase", "X", "--message", "m", "--gpus", "1e9"],
        ["--phase", "", "--message", "m"], ["--phase", "x" * 64, "--message", "m"], ["--phase", "a\nb", "--message", "m"],
        ["--phase", b"\xff", "--message", "m"], ["--phase", "X", "--message", "m", "more"], ["--phase", "X", "--message"],
        ["--phase", "X", "--message", "m", "--plan", "["], ["--phase", "X", "--message", "m", "--plan", '["A", "A"]'],
        ["--phase", "X", "--message", "m", "--plan", '[{"phase": "A", "weight": -1}]'], ["--nix"],
    ]
    with folder() as there:
        for arguments in wrong:
            code, out, err = run("--dir", there, *arguments)
            assert (code, out) == (2, ""), (arguments, code, out, err)
            assert err.startswith("sonde-pod: ") and err.count("\n") == 1 and err.endswith("\n"), (arguments, err)
        assert os.listdir(there) == []


def the_help_has_examples_that_work():
    code, out, err = run("--help")
    assert (code, err) == (0, "") and "Exit status: 0" in out and "set -e" in out, out
    examples = out.split("\n\n")[2].replace("\\\n", " ").replace("sonde-pod ", '"$POD" ')
    assert examples.count("$POD") == 5, examples
    with folder() as there:
        subprocess.run(["bash", "-euc", examples + "\nfalse || true\n"], check=True, env={"POD": POD, "SONDE_RUN_DIR": there})
        got = status(there)
        assert (got["phase"], got["sequence"]) == ("Complete", 4), got


def what_cannot_be_written_ends_no_script():
    """what cannot be written is one line, and a script under 'set -e' goes on"""
    script = 'set -e\n"$POD" report --dir "$DIR" --phase DecodeSweep --message m\necho went on\n'
    with folder() as there:
        missing = os.path.join(there, "missing")
        done = subprocess.run(["bash", "-c", script], env={"POD": POD, "DIR": missing}, capture_output=True, text=True, check=True)
        assert done.stdout == "went on\n", done
        assert done.stderr == f"sonde-pod: cannot report to {missing}: cannot open it: No such file or directory\n", done
        said(there, "--phase", "PrefillSweep", "--message", "before")
        done = subprocess.run(["bash", "-c", "trap '' XFSZ\nulimit -f 0\n" + script], env={"POD": POD, "DIR": there},
                              capture_output=True, text=True, check=True)
        assert done.stdout == "went on\n" and done.stderr.count("\n") == 1, done
        assert "File too large" in done.stderr and status(there)["phase"] == "PrefillSweep", done
        assert os.listdir(there) == [FILE]


def killed_reports_leave_whole_states():
    """reports killed at any moment leave whole states and no litter"""
    with folder() as there:
        last = 0
        for i in range(40):
            reporter = subprocess.Popen([POD, "report", "--dir", there, "--phase", "X", "--message", "x" * 1000])
            if i % 2:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    reporter.wait(i * 0.0004)
                reporter.send_signal(signal.SIGKILL)
            reporter.wait()
            with contextlib.suppress(FileNotFoundError):
                got = status(there)
                assert got["message"] == "x" * 1000 and got["sequence"] in (last, last + 1), (got, last)
                last = got["sequence"]
            assert set(os.listdir(there)) <= {FILE, FILE + ".tmp"}
        assert said(there, "--complete")["sequence"] == last + 1 >= 21
        assert os.listdir(there) == [FILE]


main(everything_can_be_said, parts_can_be_left_out, a_run_ends_well_or_badly, a_plan_is_said_once,
     the_directory_comes_from_the_environment, wrong_usage_is_one_sentence_and_two, the_help_has_examples_that_work,
     what_cannot_be_written_ends_no_script, killed_reports_leave_whole_states)
