#!/usr/bin/python3
"""The test runner itself: what it counts, what it refuses, and that it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, Process, main, wait

RUNNER = os.path.join(ROOT, "test", "run")

PROGRAMS = {
    "good": "echo 1..2; echo ok 1 - a; echo ok 2 - b",
    "bad": "echo 1..2; echo ok 1; echo not ok 2 - b; exit 1",
    "crash": "echo 1..1; echo ok 1; kill -SEGV $$",
    "silent": "exit 0",
    "short": "echo 1..3; echo ok 1",
    "exit": "echo 1..1; echo ok 1; exit 3",
    "empty": "echo 1..0",
    "skip": "echo 1..1; echo 'ok 1 - suite # SKIP ../no-such-data is absent'",
    "lazy": "echo 1..1; echo 'ok 1 - later # SKIP not written yet'",
    "slow": "echo 1..1; echo ok 1; sleep 3271",
    "leak": "echo 1..1; echo ok 1; setsid sleep 3272 & until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.02; done",
    "form": "echo 1..1; echo ok 1; echo \"the form is '$SONDE_QUICK'\"; exit 1",
    "tidy": "echo 1..1; touch $TMPDIR/x; echo ok 1",
    "patient": "cd $SONDE_BUILD; echo 1..1; mkdir one; until [ -e beside ]; do sleep 0.02; done; rmdir one; echo ok 1",
    "next": "cd $SONDE_BUILD; echo 1..1; mkdir one && echo ok 1; rmdir one",
    "beside": "touch $SONDE_BUILD/beside; echo 1..1; echo ok 1",
}
MARKS = {"patient": ",waits", "next": ",waits"}


def run(*names, level="cluster", more=(), seconds=120):
    """Runs the named programs; returns (exit code, output lines)."""
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run([*command(tmp, names, seconds), "--level", level, *more], env={**os.environ, "SONDE_BUILD": tmp, "TMPDIR": tmp},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert [n for n in os.listdir(tmp) if n.startswith("sonde-test")] == [], os.listdir(tmp)
    return done.returncode, done.stdout.splitlines()


def command(tmp, names, seconds):
    table = os.path.join(tmp, "list")
    with open(table, "w", encoding="utf-8") as f:
        for name in names:
            script = os.path.join(tmp, name + ".sh")
            with open(script, "w", encoding="utf-8") as s:
                s.write(PROGRAMS[name] + "\n")
            f.write(f"{name} quick{MARKS.get(name, '')} {seconds} sh {script}\n")
    return [RUNNER, "--from", table]


def processes(seconds):
    """The pids of `sleep SECONDS`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if f.read() == f"sleep\0{seconds}\0".encode():
                    found.append(pid)
        except OSError:
            pass
    return found


def are_gone(seconds):
    """A process that is killed is there until it has run for the last time."""
    wait(lambda: not processes(seconds), 60, f"no sleep {seconds}")


def expect(names, code, last, *texts, more=()):
    got, lines = run(*names, more=more)
    everything = "\n".join(lines)
    assert (got, lines[-1]) == (code, last), everything
    for text in texts:
        assert re.search(text, everything), f"no {text!r} in:\n{everything}"


def short_forms_are_asked_for_at_level_quick_alone():
    for level, form in ("quick", "1"), ("cluster", ""), ("soak", ""):
        _, lines = run("form", level=level)
        assert f"       | the form is '{form}'" in lines, (level, lines)


def counts_points():
    expect(["good", "tidy"], 0, "3 passed, 0 failed")


def one_that_waits_has_others_beside_it_but_none_of_its_kind():
    expect(["patient", "next", "beside"], 0, "3 passed, 0 failed", more=["--jobs", "1"])


def a_failed_point_fails_the_run_and_shows_its_output():
    expect(["good", "bad"], 1, "3 passed, 1 failed", r"\| not ok 2 - b", "failed   bad")


def a_crash_is_a_failure_although_its_points_passed():
    expect(["crash"], 1, "1 passed, 1 failed", "ended by SIGSEGV")


def no_plan_is_a_failure():
    expect(["silent"], 1, "0 passed, 1 failed", "no TAP plan")


def a_point_too_few_is_a_failure():
    expect(["short"], 1, "1 passed, 1 failed", "3 points planned, 1 seen")


def a_bad_exit_code_is_a_failure():
    expect(["exit"], 1, "1 passed, 1 failed", "exit code 3 although no point failed")


def an_empty_plan_is_a_failure():
    expect(["empty"], 1, "0 passed, 1 failed")


def a_skip_for_absent_data_is_counted_apart():
    expect(["good", "skip"], 0, "2 passed, 0 failed, 1 skipped", "skipped  skip: suite: ../no-such-data")


def a_skip_for_any_other_reason_is_a_failure():
    expect(["good", "lazy"], 1, "2 passed, 1 failed", "not for a path that does not exist")


def the_time_limit_ends_the_whole_group():
    for seconds in 1, 4, 16, 64:  # more, where it had not come to its point before
        code, lines = run("slow", seconds=seconds)
        are_gone(3271)
        assert code == 1 and any(f"not done after {seconds} s" in line for line in lines), lines
        if lines[-1] == "1 passed, 1 failed":
            return
    raise AssertionError(lines)


def what_a_test_leaves_behind_is_ended_and_reported():
    expect(["leak"], 1, "1 passed, 1 failed", "left behind: sleep 3272")
    are_gone(3272)


def an_interrupt_ends_everything_and_still_prints_the_counts():
    with tempfile.TemporaryDirectory() as tmp:
        with Process(*command(tmp, ["good", "slow"], 60), env={"SONDE_BUILD": tmp, "TMPDIR": tmp}) as p:
            p.expect("ok .* good", 60)
            wait(lambda: processes(3271), 60)
            began = time.monotonic()
            p.signal(signal.SIGINT)
            assert p.wait(60) == 130
            assert time.monotonic() - began < 15  # not the grace period
            assert p.lines[-1] == "2 passed, 0 failed", p.lines
        are_gone(3271)
        assert [n for n in os.listdir(tmp) if n.startswith("sonde-test")] == []


main(counts_points, short_forms_are_asked_for_at_level_quick_alone, one_that_waits_has_others_beside_it_but_none_of_its_kind,
     a_failed_point_fails_the_run_and_shows_its_output,
     a_crash_is_a_failure_although_its_points_passed, no_plan_is_a_failure, a_point_too_few_is_a_failure,
     a_bad_exit_code_is_a_failure, an_empty_plan_is_a_failure, a_skip_for_absent_data_is_counted_apart, a_skip_for_any_other_reason_is_a_failure,
     the_time_limit_ends_the_whole_group, what_a_test_leaves_behind_is_ended_and_reported,
     an_interrupt_ends_everything_and_still_prints_the_counts)
