#!/usr/bin/python3
"""`sonde-pod ncu` around a real program, with the stand-in for Nsight Compute: test/tools/ncu-replay plays recordings.

Each test has a run directory of its own. Where one waits for another it waits for an event; time limits only keep a broken
program from hanging the test.
"""

import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import ncu_samples
from sonde_test import QUICK, ROOT, Process, diag, main, program, wait

POD = program("sonde-pod")
REPLAY = os.path.join(ROOT, "test", "tools", "ncu-replay")
RECORDINGS = os.path.join(ROOT, "test", "data", "ncu", "recordings")
HANG = 120  # seconds: longer than anything takes
MARK = "SONDE_NCU_COLLECT_TEST"  # in the environment of all that a run starts


class Run:
    """A run directory, and the environment of the stand-in."""

    def __init__(self, recording="two-kernels", **env):
        self.recording = recording if "/" in recording else os.path.join(RECORDINGS, recording)
        self.more = env

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="sonde-ncu-", dir="/tmp" if os.geteuid() == 0 else None)
        self.env = {"SONDE_NCU": REPLAY, "SONDE_NCU_RECORDING": self.recording, MARK: self.dir, **self.more}
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def command(self, *argv, options=()):
        return [POD, "ncu", "--dir", os.path.join(self.dir, "run"), *options, "--", *argv]

    def run(self, *argv, options=()):
        return subprocess.run(self.command(*argv, options=options), env={**os.environ, **self.env}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)

    def start(self, *argv, options=()):
        return Process(*self.command(*argv, options=options), env=self.env)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def fifo(self, name):
        os.mkfifo(self.path(name))
        return os.open(self.path(name), os.O_RDWR)

    def read(self, name):
        with open(self.path("run", name), encoding="utf-8") as f:
            return json.load(f)

    def status(self):
        try:
            return self.read("profiling_status.json")
        except FileNotFoundError:
            return {}

    def left(self):
        """The processes of this run that still are."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:
                if f"{MARK}={self.dir}".encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        return found

    def none_is_left(self):
        """All of them were killed; on a busy machine one may take a while to end of it."""
        wait(lambda: self.left() == [], HANG, "no processes are left")


def failed(run, reason, words, done):
    """The run failed with this reason, and told it everywhere."""
    status = run.status()
    assert done.returncode == 1, (done.returncode, done.stdout, done.stderr)
    assert status["phase"] == "Failed" and status.get("reason") == reason, status
    assert words in status["error"] and len(status["error"].encode()) <= 500, status["error"]
    assert f"reason={reason}" in done.stderr, done.stderr
    for name in ("result.json", "summary.json"):
        assert not os.path.exists(run.path("run", name)), name


# --- what comes out ----------------------------------------------------------------


def a_run_leaves_summary_result_and_artifacts():
    with Run() as run:
        done = run.run("/bin/sh", "-c", 'echo "arguments: $1 $2"', "sh", "a b", "--flag")
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0] == "==REPLAY== recording two-kernels; nothing was measured", lines[0]
        assert any("arguments: a b --flag" in line for line in lines), lines
        summary, result, status = run.read("summary.json"), run.read("result.json"), run.read("profiling_status.json")
        assert summary["boundType"] == result["boundType"] == "compute-bound", summary
        assert result["launches"] == 6 and result["kernels"] == 2 and result["durationNs"] == 3674080, result
        assert result["dominantKernel"].startswith("gemm_tiled("), result
        assert result["replay"] is True and summary["metrics"]["replay"] == "true", "it does not say that it is a replay"
        assert result["tool"] == "2025.3.1.0" and result["layout"] == "wide" and "partial" not in result, result
        assert result["warnings"] == [
            "Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent."]
        assert all(isinstance(v, str) for v in summary["metrics"].values()), summary
        assert status["phase"] == "Complete" and "6 launches of 2 kernels" in status["message"], status
        assert [p["phase"] for p in status["plan"]] == ["Collecting", "Importing"], status
        with open(run.path("run", "artifacts", "report.csv"), encoding="utf-8", newline="") as f:
            assert len(list(csv.reader(f))) == 8
        assert sorted(os.listdir(run.path("run", "artifacts"))) == ["report.csv", "report.ncu-rep"]
        assert sorted(os.listdir(run.path("run"))) == ["artifacts", "profiling_status.json", "result.json", "summary.json"]


def the_example_of_kratos_comes_out_as_it_was_published():
    with Run("vectoradd") as run:
        done = run.run("/bin/true")
        assert done.returncode == 0, done.stderr
        summary = run.read("summary.json")
        published = {"achievedOccupancy": "78.21", "l2Throughput": "30.22", "smThroughput": "12.56"}
        assert summary["boundType"] == "unknown", summary
        assert {k: summary["metrics"].get(k) for k in published} == published, summary


def the_samples_of_real_runs_come_out_as_they_are_described():
    """the samples of real runs come out as they are described, where they are there"""
    if not ncu_samples.are_there():
        diag(f"{ncu_samples.SAMPLES} is not there")
        return
    for name, expected in ncu_samples.EXPECTED.items():
        with Run(os.path.join(ncu_samples.SAMPLES, name)) as run:
            done = run.run("/bin/true")
            assert done.returncode == 0, (name, done.stdout, done.stderr)
            result = run.read("result.json")
            got = (result["launches"], result["kernels"], result["durationNs"],
                   *(result["metrics"].get(k) for k in ncu_samples.KEYS))
            assert ncu_samples.same(got, expected), (name, got, expected)


def the_tool_is_asked_for_what_was_asked_for():
    with Run() as run:
        spy = run.path("spy")
        with open(spy, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\nprintf "%s\\n" "$LC_ALL|$*" >>{run.path("calls")}\nexec {REPLAY} "$@"\n')
        os.chmod(spy, 0o755)
        done = run.run("/bin/echo", "x", options=("--ncu", spy, "--set", "full", "--launch-count", "3", "--launch-skip", "1",
                                                  "--kernel-name", "regex:gemm", "--clock-control", "base",
                                                  "--cache-control", "none", "--name", "first"))
        assert done.returncode == 0, done.stderr
        report = run.path("run", "artifacts", "first")
        with open(run.path("calls"), encoding="utf-8") as f:
            calls = [line.split("|", 1)[1] for line in f.read().splitlines()]
        assert calls[0] == "--version", calls
        assert calls[1].startswith("--config-file off --target-processes all --set full --launch-count 3 "), calls
        for part in ("--launch-skip 1", "--kernel-name regex:gemm", "--clock-control base", "--cache-control none",
                     f"--force-overwrite --export {report}"):
            assert part in calls[1], (part, calls[1])
        assert calls[1].endswith("/bin/echo x"), calls
        assert calls[2] == f"--import {report}.ncu-rep --page raw --csv --print-units base", calls
        with open(run.path("calls"), encoding="utf-8") as f:
            assert f.read().splitlines()[2].startswith("C|"), "the import's locale"
        assert run.read("result.json")["launches"] == 2


# --- while it goes -------------------------------------------------------------------


def progress_is_in_the_status_file_while_it_goes():
    with Run() as run:
        step, end = run.fifo("step"), run.fifo("end")
        run.env["SONDE_NCU_STEP"] = run.path("step")
        with run.start("/bin/sh", "-c", f"read x <{run.path('end')}", options=("--launch-count", "5")) as process:
            wait(lambda: run.status().get("phase") == "Collecting" and "no kernel" in run.status()["message"], HANG)
            for i, kernel in enumerate(("fill_kernel", "gemm_tiled", "fill_kernel"), 1):
                os.write(step, b"x")
                status = wait(lambda n=i: (s := run.status())["progress"]["currentStep"] == n and "passes" in s["message"] and s,
                              HANG)
                assert status["progress"]["totalSteps"] == 5, status
                assert status["message"] == f"Profiled {kernel}: launch {i} of at most 5, 8 passes", status
                assert status["progress"]["subPhase"] == kernel, status
            os.write(step, b"xx")
            wait(lambda: "runs to its end" in run.status()["message"], HANG)
            os.write(end, b"\n")
            assert process.wait(HANG) == 0, process.lines
        os.close(step)
        os.close(end)
        assert run.status()["phase"] == "Complete"


def a_slow_reader_makes_the_program_wait_and_loses_nothing():
    with Run() as run:
        argv = run.command("/usr/bin/python3", "-c", "import sys\nfor i in range(20000): print('line', i, '.' * 80)")
        with subprocess.Popen(argv, env={**os.environ, **run.env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            wait(lambda: run.status().get("phase") == "Collecting", HANG)  # and nobody has read yet
            out, _ = p.communicate(timeout=HANG)
        assert p.returncode == 0
        lines = out.decode().splitlines()
        assert sum("line " in line for line in lines) == 20000 and "line 19999 " in out.decode()
        assert run.read("result.json")["launches"] == 6


# --- failures ------------------------------------------------------------------------


def each_failure_of_the_tool_has_its_reason_and_its_remedy():
    for mode, reason, words in (("permission", "CounterPermission", "spec.profiling.permission"),
                                ("in-use", "CountersInUse", "dcgmi profile --pause"),
                                ("driver", "DriverMismatch", "LibraryNotLoaded"),
                                ("stub", "DriverMismatch", "stub libcuda"),
                                ("mig", "MIGClockControl", "--clock-control none"),
                                ("no-gpu", "NoGPU", "nvidia.com/gpu"),
                                ("not-loaded", "ProgramNotLoaded", "libcublas.so.12"),
                                ("lock", "ToolFailed", "nsight-compute-lock"),
                                ("nothing", "NothingProfiled", "launches kernels"),
                                ("no-numbers", "NoNumbers", "throughput")):
        with Run(SONDE_NCU_FAIL=mode) as run:
            os.mkdir(run.path("run"))
            for name in ("result.json", "summary.json"):  # an earlier run's
                with open(run.path("run", name), "w", encoding="utf-8") as f:
                    f.write("{}")
            failed(run, reason, words, run.run("/bin/true"))


def a_failure_half_way_is_a_partial_success():
    with Run(SONDE_NCU_FAIL="half") as run:
        done = run.run("/bin/sleep", "1000")
        assert done.returncode == 0, done.stderr
        result, summary = run.read("result.json"), run.read("summary.json")
        assert result["partial"] is True and summary["metrics"]["partial"] == "true", result
        assert result["launches"] == 3 and "Failed to profile" in result["warnings"][0], result
        assert run.status()["phase"] == "Complete" and "half-way" in run.status()["message"], run.status()


def a_program_that_fails_after_its_kernels_is_a_partial_success():
    with Run() as run:
        done = run.run("/bin/sh", "-c", "exit 3")
        assert done.returncode == 0, done.stderr
        result = run.read("result.json")
        assert result["partial"] is True and "error code (3)" in result["warnings"][0], result


def a_program_that_fails_without_one_is_a_failure():
    with Run() as run:
        done = run.run("/bin/sh", "-c", "echo cannot go on; exit 3", options=("--kernel-name", "none"))
        failed(run, "ProgramFailed", "error code (3)", done)
        assert "cannot go on" in done.stdout


def a_filter_that_leaves_nothing_says_what_there_was():
    with Run() as run:
        failed(run, "NothingProfiled", "gemm_tiled", run.run("/bin/true", options=("--kernel-name", "none")))


def a_missing_tool_and_a_missing_program_are_told():
    with Run(SONDE_NCU="no-such-ncu") as run:
        failed(run, "ToolNotFound", "no-such-ncu", run.run("/bin/true"))
    with Run() as run:
        failed(run, "ProgramNotLoaded", "does not exist", run.run("/no/such/program"))


def a_report_that_cannot_be_imported_is_told():
    with Run() as run:
        broken = run.path("broken")
        with open(broken, "w", encoding="utf-8") as f:
            f.write(f'#!/bin/sh\ncase $1 in --import) echo "==ERROR== Failed to load the report"; exit 1;; esac\n'
                    f'exec {REPLAY} "$@"\n')
        os.chmod(broken, 0o755)
        failed(run, "ToolFailed", "Failed to load the report", run.run("/bin/true", options=("--ncu", broken)))


# --- the end, from outside -------------------------------------------------------------

# A program with a child in its group, and one in a session of its own whose parent is gone.
TREE = "sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait"


def ended_by(number, script):
    with Run() as run:
        step = run.fifo("step")
        run.env["SONDE_NCU_STEP"] = run.path("step")
        with run.start("/bin/sh", "-c", script) as process:
            process.expect("ready", HANG)
            wait(lambda: len(run.left()) >= 4, HANG, "the tree")
            process.signal(number)
            assert process.wait(HANG) == 130, process.lines
            run.none_is_left()
        os.close(step)
        assert run.status()["phase"] == "Collecting", "it was told to end: that is no failure"
        assert not os.path.exists(run.path("run", "result.json"))


def sigterm_ends_the_whole_tree():
    ended_by(signal.SIGTERM, TREE)


def ctrl_c_ends_the_whole_tree():
    ended_by(signal.SIGINT, TREE)


def what_does_not_listen_is_killed():
    """what does not listen is killed ten seconds later"""
    with Run() as run:
        deaf = run.path("deaf")
        with open(deaf, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n[ \"$1\" = --version ] && exit\ntrap '' TERM INT\nsetsid sleep 1000 &\necho ready\n"
                    "while :; do sleep 1; done\n")
        os.chmod(deaf, 0o755)
        with run.start("/bin/true", options=("--ncu", deaf)) as process:
            process.expect("ready", HANG)
            process.signal(signal.SIGTERM)
            assert process.wait(HANG) == 130, process.lines
            run.none_is_left()


def what_a_program_leaves_behind_does_not_hold_up_the_run():
    with Run() as run:
        done = run.run("/bin/sh", "-c", "(setsid sleep 1000 &); sleep 1000 & exit 0")
        assert done.returncode == 0, done.stderr
        run.none_is_left()


def nobody_who_reads_does_not_hold_up_the_end():
    with Run() as run:
        argv = run.command("/usr/bin/yes")
        with subprocess.Popen(argv, env={**os.environ, **run.env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            wait(lambda: run.status().get("phase") == "Collecting", HANG)
            p.terminate()
            assert p.wait(HANG) == 130
        run.none_is_left()


# --- staged programs -------------------------------------------------------------------

LIBRARY = "int answer(void); int answer(void) { return 42; }\n"
PROGRAM = ('#include <stdio.h>\n#include <stdlib.h>\nint answer(void);\nint main(int c, char **v) { FILE *f = c > 2 ? fopen(v[2], '
           '"r") : 0; printf("answer %d %s %s\\n", answer(), c > 1 ? v[1] : "-", f ? "file" : "no file"); return 0; }\n')


class Image:
    """A folder that has a program, its library and nothing else; built with the compiler of this machine."""

    def __enter__(self):
        self.root = tempfile.mkdtemp(prefix="sonde-image-", dir="/tmp" if os.geteuid() == 0 else None)
        os.chmod(self.root, 0o755)
        os.makedirs(self.path("app", "lib"))
        os.mkdir(self.path("shared"))
        os.chmod(self.path("shared"), 0o777)
        for name, text in (("library.c", LIBRARY), ("program.c", PROGRAM), ("app/data", "data")):
            with open(self.path(name), "w", encoding="utf-8") as f:
                f.write(text)
        self.cc("-shared", "-fPIC", "-Wl,-soname,libanswer.so.1", "-o", "app/lib/libanswer.so.1", "library.c")
        self.cc("-o", "app/prog", "program.c", "app/lib/libanswer.so.1", "-Wl,-rpath,$ORIGIN/lib")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)

    def path(self, *names):
        return os.path.join(self.root, *names)

    def cc(self, *args):
        subprocess.run(["cc", *args], cwd=self.root, check=True, timeout=HANG)

    def stage(self, *args, **how):
        return subprocess.run([POD, "stage-workload", "--to", self.path("shared"), "--termination-log", self.path("message"),
                               *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False, **how)


def a_staged_program_runs_with_its_library_and_its_file():
    with Image() as image, Run() as run:
        staged = image.stage("--file", image.path("app", "data"), "--", image.path("app", "prog"), umask=0o077)
        assert staged.returncode == 0, staged.stderr
        for name in ("lib", "root"):
            assert os.stat(image.path("shared", name)).st_mode & 0o777 == 0o755, "another user cannot get there"
        os.rename(image.path("app"), image.path("gone"))
        os.mkdir(image.path("app"))  # the tool's image has a folder of that name, and nothing in it
        done = run.run("argument", image.path("app", "data"), options=("--shared", image.path("shared")))
        assert done.returncode == 0, (done.stdout, done.stderr)
        assert "answer 42 argument file" in done.stdout, done.stdout


def a_refusal_to_stage_is_one_line_and_the_termination_message():
    with Image() as image:
        for command, reason in (([""], "CommandEmpty"), ([], "CommandEmpty"), (["/no/such"], "CommandNotFound"),
                                ([image.path("app")], "CommandNotExecutable"),
                                ([image.path("program.c")], "CommandNotExecutable")):
            done = image.stage("--", *command)
            assert done.returncode == 1 and done.stderr.startswith(reason + ": ") and done.stderr.count("\n") == 1, done
            with open(image.path("message"), encoding="utf-8") as f:
                assert f.read() == done.stderr
        done = image.stage("--file", "/no/such", "--", image.path("app", "prog"))
        assert done.returncode == 1 and done.stderr.startswith("FileNotFound: "), done
        assert image.stage("--", "a", "b").returncode == 2


def staging_works_in_an_image_without_anything():
    """staging works in an image without anything, as any user, and what is staged has all that it needs"""
    with Image() as image:
        def inside():
            os.chroot(image.root)
            os.chdir("/")
            os.setgroups([])
            os.setgid(1000)
            os.setuid(1000)
        # The image has its own C library, where its loader looks.
        for name in ("ld-linux-x86-64.so.2", "libc.so.6"):
            source = os.path.realpath(os.path.join("/lib64", name) if "ld-" in name else "/lib/x86_64-linux-gnu/" + name)
            os.makedirs(image.path("lib64"), exist_ok=True)
            shutil.copy(source, image.path("lib64", name))
        shutil.copy(POD, image.path("sonde-pod"))
        done = subprocess.run(["/sonde-pod", "stage-workload", "--file", "/app/data", "--", "/app/prog"], preexec_fn=inside,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)
        assert done.returncode == 0, done
        with open(image.path("shared", "workload.json"), encoding="utf-8") as f:
            told = json.load(f)
        assert told["missing"] == [] and set(told["needed"]) == {"ld-linux-x86-64.so.2", "libanswer.so.1", "libc.so.6"}, told
        shutil.rmtree(image.path("lib64"))
        shutil.rmtree(image.path("app"))
        done = subprocess.run(["/shared/libc/ld-linux-x86-64.so.2", "--library-path", "/shared/lib:/shared/libc",
                               "/shared/workload", "x", "/shared/root/app/data"], preexec_fn=inside,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)
        assert done.stdout == "answer 42 x file\n", done


tests = [a_run_leaves_summary_result_and_artifacts, the_example_of_kratos_comes_out_as_it_was_published,
         the_samples_of_real_runs_come_out_as_they_are_described, the_tool_is_asked_for_what_was_asked_for,
         progress_is_in_the_status_file_while_it_goes, a_slow_reader_makes_the_program_wait_and_loses_nothing,
         each_failure_of_the_tool_has_its_reason_and_its_remedy, a_failure_half_way_is_a_partial_success,
         a_program_that_fails_after_its_kernels_is_a_partial_success, a_program_that_fails_without_one_is_a_failure,
         a_filter_that_leaves_nothing_says_what_there_was, a_missing_tool_and_a_missing_program_are_told,
         a_report_that_cannot_be_imported_is_told, sigterm_ends_the_whole_tree, ctrl_c_ends_the_whole_tree,
         what_a_program_leaves_behind_does_not_hold_up_the_run, nobody_who_reads_does_not_hold_up_the_end,
         a_staged_program_runs_with_its_library_and_its_file, a_refusal_to_stage_is_one_line_and_the_termination_message]
with open(POD, "rb") as binary:
    SANITIZED = b"__asan_init" in binary.read()  # and then not linked statically
if os.geteuid() == 0 and os.path.exists("/lib64/ld-linux-x86-64.so.2") and not SANITIZED:
    tests.append(staging_works_in_an_image_without_anything)
if not QUICK:
    tests.append(what_does_not_listen_is_killed)
main(*tests)
