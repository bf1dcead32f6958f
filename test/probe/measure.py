#!/usr/bin/python3
"""`sonde-pod probe`, as a person uses it: commands that are known, and what is printed of them.

Each command runs once, and nothing depends on how fast the machine is. What a verdict follows from is tested with samples
(test/unit/trials.c, test/unit/stats_compare.c), what is seen of a process tree in test/unit/measure.c; how exact it is, bench/probe.py measures.
"""
import csv
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Process, main, program, wait

POD, WORKLOAD = program("sonde-pod"), program("test/workload")
MIB = 1 << 20
HANG = 120  # seconds: longer than anything takes


def probe(*arguments, env=None):
    return subprocess.run([POD, "probe", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=HANG, env={**os.environ, **(env or {})})


def measured(*arguments, n=1, options=(), code=0):
    """The samples of one command."""
    done = probe("-n", n, "-w", 0, "-o", "json", *options, "--", WORKLOAD, *arguments)
    assert done.returncode == code, done
    return json.loads(done.stdout)["results"][0]["samples"]


def exit_codes_are_kept_and_told():
    assert measured("exit", 0)[0]["exitCode"] == 0
    sample = measured("exit", 3, code=1)[0]
    assert sample["exitCode"] == 3 and sample["error"] == {"reason": "ExitCode", "message": "exit status 3"}
    assert measured("exit", 3, options=["-i"])[0]["exitCode"] == 3  # wanted so: it counts
    sample = measured("signal", 9, code=1)[0]
    assert sample["signal"] == 9 and "exitCode" not in sample and sample["error"]["reason"] == "Signal", sample
    done = probe("-n", 20, "--", WORKLOAD, "exit", 3)
    assert done.returncode == 1 and "runs failed (exit status 3) and are not counted; it was not run again" in done.stdout
    assert "failed" in done.stdout.splitlines()[1]


def one_failure_does_not_discard_the_others():
    done = probe("-n", 3, "-o", "json", "--", WORKLOAD, "exit", 0, ":::", WORKLOAD, "exit", 1)
    ok, bad = json.loads(done.stdout)["results"]
    assert done.returncode == 1 and (ok["n"], ok["invalid"]) == (3, 0) and bad["n"] == 0 and "median" not in bad


def what_cannot_be_run_is_one_sentence():
    done = probe("--", "no-such-program-here")
    assert done.returncode == 1 and re.fullmatch(r"sonde-pod: probe: 'no-such-program-here' is not found in PATH .*\n",
                                                 done.stderr), done.stderr
    for arguments in ([], ["--", ":::", "true"], ["-n", "0", "--", "true"], ["-o", "xml", "--", "true"], ["--bogus"],
                      ["--prepare", "'open", "--", "true"]):
        done = probe(*arguments)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, (arguments, done)


def a_timeout_ends_the_whole_tree():
    sample = measured("tree", 2, 1, 60000, options=["--timeout", "30ms"], code=1)[0]
    assert sample["timedOut"] and sample["error"]["message"] == "it did not end within 0.03 s", sample


def the_tree_is_measured_as_one():
    alone = measured("memory", 16, 0)[0]["peakRss"]
    assert alone >= 16 * MIB, alone
    sample = measured("tree", 4, 16, 300)[0]
    assert 1 <= sample["processes"] <= 5, sample
    assert 16 * MIB <= sample["peakRss"] <= 5 * alone, sample  # of one that nobody looked at the kernel knows the largest process
    sample = measured("orphan", 20)[0]
    assert sample["orphans"] == 1 and sample["user"] + sample["sys"] >= 0.019, sample


def what_is_left_over_is_ended():
    sample = measured("left", 60000)[0]
    assert sample["leftOver"] == 1 and sample["note"] == "1 process left over, and ended" and sample["exitCode"] == 0


def output_goes_where_it_is_asked_to():
    assert "hello\n" not in probe("-n", 1, "-w", 0, "--", WORKLOAD, "say", "hello").stdout
    done = probe("-n", 2, "-w", 1, "--show-output", "--", WORKLOAD, "say", "hello")
    assert done.stdout.count("hello\n") == 3


def prepare_runs_before_each_run():
    with tempfile.TemporaryDirectory() as dir_:
        count = os.path.join(dir_, "count")
        done = probe("-n", 2, "-w", 1, "--prepare", f"sh -c 'echo x >> {count}'", "--", WORKLOAD, "exit", "0")
        with open(count, encoding="ascii") as f:
            assert done.returncode == 0 and f.read() == "x\n" * 3
    done = probe("--prepare", "false", "--", WORKLOAD, "exit", "0")
    assert done.returncode == 1 and "--prepare failed: exit status 1" in done.stderr


def two_commands_are_compared_in_every_format():
    with tempfile.TemporaryDirectory() as dir_:
        file = os.path.join(dir_, "out.json")
        done = probe("-n", 8, "--seed", 5, "--export-json", file, "--", WORKLOAD, "sleep", 2, ":::", WORKLOAD, "sleep", 25)
        with open(file, encoding="utf-8") as f:
            told = json.load(f)
    pair, lines = told["comparison"]["pairs"][0], done.stdout.splitlines()
    assert pair["verdict"] in ("slower", "faster", "no detectable difference", "inconclusive"), pair
    assert lines[0].split()[0] == "command" and lines[0].endswith("vs first"), lines[0]
    assert pair["verdict"] in lines[2] and lines[3].startswith("8 interleaved runs each after 1 warm-up"), lines
    assert sum("│" in line for line in lines) == 2, done.stdout
    for side, least in zip(told["results"], (0.002, 0.025)):
        assert len(side["times"]) == side["n"] == 8 and side["min"] == min(side["times"]) >= least, side
        assert side["min"] <= side["medianInterval"]["low"] <= side["median"] <= side["medianInterval"]["high"] <= max(side["times"]), side
    assert told["seed"] == 5 and told["machine"]["cpus"] >= 1, told
    rows = list(csv.DictReader(io.StringIO(probe("-n", 3, "-o", "csv", "--", WORKLOAD, "exit", 0).stdout)))
    assert len(rows) == 1 and float(rows[0]["median"]) > 0 and rows[0]["n"] == "3"
    table = probe("-n", 3, "-o", "md", "--", WORKLOAD, "exit", 0).stdout.splitlines()
    assert len(table) == 3 and table[0].startswith("| command") and table[1].startswith("|:---|"), table


def gpus_come_from_nvidia_smi():
    with tempfile.TemporaryDirectory() as dir_:
        asked = os.path.join(dir_, "asked")
        with open(os.path.join(dir_, "nvidia-smi"), "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\necho '50, 2048, 100.5'\necho '70, 1024, [N/A]'\necho $$ >{asked}.new; mv {asked}.new {asked}\n")
        os.chmod(f.name, 0o755)
        # It stays until the probe has waited for the end of nvidia-smi, and so has its answer.
        done = probe("-n", 1, "-w", 0, "-o", "json", "--", "sh", "-c",
                     f"until test -e {asked}; do sleep 0.05; done; while test -e /proc/$(cat {asked}); do sleep 0.05; done",
                     env={"PATH": f"{dir_}:{os.environ['PATH']}"})
    gpu = json.loads(done.stdout)["results"][0]["samples"][0]["gpu"]
    assert gpu.pop("looks") >= 1, gpu
    assert gpu == {"gpus": 2, "utilization": 60, "memoryPeak": 3072 * MIB, "power": 100.5}, gpu


def a_small_command_has_a_peak_of_its_own_beside_a_large_one():
    done = probe("-n", 6, "-w", 0, "-o", "json", "--", WORKLOAD, "sleep", 100, ":::", WORKLOAD, "memory", 64, 0)
    small, large = json.loads(done.stdout)["results"]
    assert len(large["memory_usage_byte"]) == 6 and large["peakRss"] >= 64 * MIB, large
    assert all(peak < 32 * MIB for peak in small["memory_usage_byte"]), small  # one that ended before it was seen may have none


def who_reads_the_terminal_is_not_stopped_for_ever():
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(POD, [POD, "probe", "-n", "1", "-w", "0", "--", "sh", "-c", "read x </dev/tty; stty -echo </dev/tty; exit 0"])
    told = b""
    try:
        while select.select([terminal], [], [], HANG)[0]:
            piece = os.read(terminal, 4096)
            if not piece:
                break
            told += piece
    except OSError:
        pass  # it has ended
    else:
        os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 1), told
    assert b"1 run" in told, told


def those_that_go_on_forking_are_ended():
    script = "trap '' TERM; n() { sleep 0.01; n & }; n; n; n; sleep 60"
    done = probe("-n", 1, "-w", 0, "-o", "json", "--timeout", "200ms", "--", "sh", "-c", script)
    sample = json.loads(done.stdout)["results"][0]["samples"][0]
    assert sample["timedOut"] and sample.get("note") != "some of its processes cannot be killed", sample


def ctrl_c_ends_the_tree_and_prints_what_there_is():
    with Process(POD, "probe", "-n", "50", "-w", "0", "--", WORKLOAD, "tree", "2", "1", "10000") as p:
        wait(lambda: subprocess.run(["pgrep", "-P", str(p.pid)], stdout=subprocess.DEVNULL, check=False).returncode == 0, HANG)
        keeper = int(subprocess.run(["pgrep", "-P", str(p.pid)], stdout=subprocess.PIPE, check=True).stdout.split()[0])
        wait(lambda: subprocess.run(["pgrep", "-P", str(keeper)], stdout=subprocess.DEVNULL, check=False).returncode == 0, HANG)
        p.signal(signal.SIGINT)
        assert p.wait(HANG) == 130
        assert not os.path.exists(f"/proc/{keeper}"), "the keeper is left"
        assert "interrupted, 50 were asked for" in "\n".join(p.lines), p.lines


assert shutil.which("pgrep"), "pgrep is missing: apt-get install procps"
main(exit_codes_are_kept_and_told, one_failure_does_not_discard_the_others, what_cannot_be_run_is_one_sentence,
     a_timeout_ends_the_whole_tree, the_tree_is_measured_as_one, what_is_left_over_is_ended, output_goes_where_it_is_asked_to,
     prepare_runs_before_each_run, two_commands_are_compared_in_every_format, gpus_come_from_nvidia_smi,
     a_small_command_has_a_peak_of_its_own_beside_a_large_one, who_reads_the_terminal_is_not_stopped_for_ever,
     those_that_go_on_forking_are_ended, ctrl_c_ends_the_tree_and_prints_what_there_is)
