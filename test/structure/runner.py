#!/usr/bin/python3
"""The test runner itself: what it counts, what it refuses, and that it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import tempfile

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
    "flaky": "echo 1..1; cd $SONDE_BUILD; mkdir second && echo not ok 1 - a || echo ok 1 - a",
    "fault": "echo 1..1; cd $SONDE_BUILD; mkdir second && echo not ok 1 - a || echo ok 1 - a",
    "proof": "echo 1..1; echo 'ok 1 - a'; echo '# proves F-001 D-002'",
    "slow": "echo 1..1; echo ok 1; sleep 3271",
    "leak": "echo 1..1; echo ok 1; setsid sleep 3272 & until [ $(cat /proc/$!/comm) = sleep ]; do sleep 0.02; done",
    "form": "echo 1..1; echo ok 1; echo \"the form is '$SONDE_EXTENT'\"; exit 1",
    "tidy": "echo 1..1; touch $TMPDIR/x; echo ok 1",
    "patient": "cd $SONDE_BUILD; echo 1..1; mkdir one; until [ -e beside ]; do sleep 0.02; done; rmdir one; echo ok 1",
    "next": "cd $SONDE_BUILD; echo 1..1; mkdir one && echo ok 1; rmdir one",
    "beside": "touch $SONDE_BUILD/beside; echo 1..1; echo ok 1",
}
MARKS = {"patient": ",waits", "next": ",waits", "fault": ",once"}


def run(*names, tier="soak", more=(), ci=False):
    """Runs the named programs; returns (exit code, output lines)."""
    with tempfile.TemporaryDirectory() as tmp:
        environment = {**os.environ, "SONDE_BUILD": tmp, "TMPDIR": tmp, "CI": "true" if ci else ""}
        done = subprocess.run([*command(tmp, names), "--tier", tier, *more], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        assert [n for n in os.listdir(tmp) if n.startswith("sonde-test")] == [], os.listdir(tmp)
    return done.returncode, done.stdout.splitlines()


def command(tmp, names):
    table = os.path.join(tmp, "list")
    with open(table, "w", encoding="utf-8") as f:
        for name in names:
            script = os.path.join(tmp, name + ".sh")
            with open(script, "w", encoding="utf-8") as s:
                s.write(PROGRAMS[name] + "\n")
            f.write(f"{name} quick{MARKS.get(name, '')} 20 sh {script}\n")
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


def expect(names, code, last, *texts, more=(), ci=False):
    got, lines = run(*names, more=more, ci=ci)
    everything = "\n".join(lines)
    assert (got, lines[-1]) == (code, last), everything
    for text in texts:
        assert re.search(text, everything), f"no {text!r} in:\n{everything}"


def the_tier_sets_how_much_is_tried():
    for tier, form in ("quick", "quick"), ("test", "usual"), ("soak", "long"):
        _, lines = run("form", tier=tier)
        assert f"       | the form is '{form}'" in lines, (tier, lines)


def counts_points():
    expect(["good", "tidy"], 0, "3 passed, 0 failed, 0 skipped")


def one_that_waits_has_others_next_to_it_but_none_of_its_kind():
    expect(["patient", "next", "beside"], 0, "3 passed, 0 failed, 0 skipped", more=["--jobs", "1"])


def a_failed_point_fails_the_run_and_shows_its_output():
    expect(["good", "bad"], 1, "3 passed, 1 failed, 0 skipped", r"\| not ok 2 - b", "failed   bad")


def a_crash_is_a_failure_although_its_points_passed():
    expect(["crash"], 1, "1 passed, 1 failed, 0 skipped", "ended by SIGSEGV")


def no_plan_is_a_failure():
    expect(["silent"], 1, "0 passed, 1 failed, 0 skipped", "no TAP plan")


def a_point_too_few_is_a_failure():
    expect(["short"], 1, "1 passed, 1 failed, 0 skipped", "3 points planned, 1 seen")


def a_bad_exit_code_is_a_failure():
    expect(["exit"], 1, "1 passed, 1 failed, 0 skipped", "exit code 3 although no point failed")


def an_empty_plan_is_a_failure():
    expect(["empty"], 1, "0 passed, 1 failed, 0 skipped")


def a_skipped_point_is_a_failure():
    expect(["good", "skip"], 1, "2 passed, 1 failed, 0 skipped", "suite: skipped: ../no-such-data is absent")


def in_ci_a_failed_entry_runs_again_and_is_reported_as_flaky():
    expect(["good", "flaky"], 0, "3 passed, 0 failed, 0 skipped", "flaky    flaky: failed, and passed when it ran alone", ci=True)


def elsewhere_it_has_failed():
    expect(["flaky"], 1, "0 passed, 1 failed, 0 skipped")


def a_test_of_faults_never_runs_again():
    expect(["fault"], 1, "0 passed, 1 failed, 0 skipped", ci=True)


def more_than_two_failed_entries_do_not_run_again():
    expect(["flaky", "bad", "exit"], 1, "2 passed, 3 failed, 0 skipped", ci=True)


def what_an_entry_proves_is_written_down():
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([*command(tmp, ["proof"]), "--tier", "soak"], env={**os.environ, "SONDE_BUILD": tmp}, check=True,
                       stdout=subprocess.DEVNULL)
        with open(os.path.join(tmp, "test-logs", "soak", "proofs"), encoding="utf-8") as f:
            assert f.read() == "proof\ta\tF-001\nproof\ta\tD-002\n"


def the_slowest_are_listed_and_all_times_are_kept():
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run([*command(tmp, ["good", "tidy"]), "--tier", "soak"], env={**os.environ, "SONDE_BUILD": tmp}, check=True,
                              stdout=subprocess.PIPE, text=True)
        assert "the 2 slowest of 2" in done.stdout, done.stdout
        with open(os.path.join(tmp, "test-logs", "times"), encoding="utf-8") as f:
            assert [line.split("\t")[0] for line in f] == ["good", "tidy"]


def the_time_limit_ends_the_whole_group():
    code, lines = run("slow", more=("--limit", "5"))
    are_gone(3271)
    assert code == 1 and any("not done after 5 s" in line for line in lines), lines


def what_a_test_leaves_behind_is_ended_and_reported():
    expect(["leak"], 1, "1 passed, 1 failed, 0 skipped", "left behind: sleep 3272")
    are_gone(3272)


def an_interrupt_ends_everything_and_still_prints_the_counts():
    with tempfile.TemporaryDirectory() as tmp:
        with Process(*command(tmp, ["good", "slow"]), env={"SONDE_BUILD": tmp, "TMPDIR": tmp}) as p:
            p.expect("ok .* good", 60)
            wait(lambda: processes(3271), 60)
            p.signal(signal.SIGINT)
            assert p.wait(60) == 130
            assert p.lines[-1] == "2 passed, 0 failed, 0 skipped", p.lines
        are_gone(3271)
        assert [n for n in os.listdir(tmp) if n.startswith("sonde-test")] == []


main(counts_points, the_tier_sets_how_much_is_tried, one_that_waits_has_others_next_to_it_but_none_of_its_kind,
     a_failed_point_fails_the_run_and_shows_its_output,
     a_crash_is_a_failure_although_its_points_passed, no_plan_is_a_failure, a_point_too_few_is_a_failure,
     a_bad_exit_code_is_a_failure, an_empty_plan_is_a_failure, a_skipped_point_is_a_failure,
     in_ci_a_failed_entry_runs_again_and_is_reported_as_flaky, elsewhere_it_has_failed, a_test_of_faults_never_runs_again,
     more_than_two_failed_entries_do_not_run_again, what_an_entry_proves_is_written_down, the_slowest_are_listed_and_all_times_are_kept,
     the_time_limit_ends_the_whole_group, what_a_test_leaves_behind_is_ended_and_reported,
     an_interrupt_ends_everything_and_still_prints_the_counts)
