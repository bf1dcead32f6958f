"""execute - runs entries side by side, and ends whatever they leave behind.

An entry runs in a session of its own with a temporary directory of its own (TMPDIR). A process or a control plane that it
leaves behind is ended and counts as a failure.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from catalog import BUILD, ROOT
from control_planes import CONCURRENT, Plane, rig
from tap import Outcome

GRACE = 15  # seconds between SIGTERM and SIGKILL: a test may have a control plane to stop
MARK = "SONDE_TEST_ID"  # in the environment of everything that an entry starts
SHOWN = 300  # lines of output of an entry that failed


def find_marked(test_id):
    """The processes that carry TEST_ID in their environment, as [(pid, command)]."""
    wanted = f"{MARK}={test_id}".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if wanted not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                command = f.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue
        if command and int(pid) != os.getpid():
            found.append((int(pid), command))
    return found


def kill_marked(test_id):
    """Kills what an entry left running; returns the commands."""
    left = find_marked(test_id)
    for pid, _ in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return [command for _, command in left]


def sweep(directory):
    """Stops the control planes in DIRECTORY and removes it. Returns how many there were."""
    runs = [path for path, _, files in os.walk(directory) if ".kcluster" in files]
    for run in runs:
        rig(run, "down")
    shutil.rmtree(directory, ignore_errors=True)
    return len(runs)


def sweep_stale():
    """Removes what runs that were killed outright left in the temporary directory."""
    for name in os.listdir(tempfile.gettempdir()):
        match = re.fullmatch(r"sonde-test-(\d+)", name)
        path = os.path.join(tempfile.gettempdir(), name)
        if match and not os.path.exists(f"/proc/{match[1]}") and os.stat(path).st_uid == os.getuid():
            sweep(path)


def default_signals():
    """A shell's background jobs ignore signals, and so does what nohup starts; a test that sends one must not inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Running:
    """A program that has been started for an entry."""

    def __init__(self, entry, directory, logs, environment):
        self.entry = entry
        self.began = time.monotonic()
        self.id = f"{os.getpid()}-{id(self):x}"
        self.tmp = tempfile.mkdtemp(dir=directory, prefix="t")
        os.chmod(self.tmp, 0o711)  # pods run as another user
        self.log = os.path.join(logs, entry.name.replace(":", "-").replace("/", "-") + ".log")
        self.killed = None  # when its time was up
        with open(self.log, "wb") as log:
            self.popen = subprocess.Popen(entry.argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=default_signals,
                                          env={**environment, MARK: self.id, "TMPDIR": self.tmp})

    def signal(self, number):
        try:
            os.killpg(self.popen.pid, number)
        except ProcessLookupError:
            pass

    def poll(self):
        """None while it runs; otherwise (exit code, CPU seconds). Ends it when its time is up."""
        now = time.monotonic()
        if self.killed is None and now > self.began + self.entry.limit:
            self.killed = now
            self.signal(signal.SIGTERM)
        elif self.killed is not None and now > self.killed + GRACE:
            self.signal(signal.SIGKILL)
        pid, status, usage = os.wait4(self.popen.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return self.popen.returncode, usage.ru_utime + usage.ru_stime

    def conclude(self, code, cpu):
        """What its run showed, once it has ended."""
        outcome = Outcome()
        outcome.seconds, outcome.cpu = time.monotonic() - self.began, cpu
        planes = sweep(self.tmp)
        left = kill_marked(self.id)
        with open(self.log, encoding="utf-8", errors="replace") as f:
            outcome.read(f.read())
        if self.killed is not None:
            outcome.complain(f"not done after {self.entry.limit} s")
        elif code < 0:
            outcome.complain(f"ended by {signal.Signals(-code).name}")
        elif code != 0 and outcome.failed == 0:
            outcome.complain(f"exit code {code} although no point failed")
        if left or planes:
            outcome.complain("left behind: " + (", ".join(c[:60] for c in left[:5]) or "a control plane"))
        return outcome

    def stop(self):
        """Ends it, whatever it does."""
        self.signal(signal.SIGTERM)
        try:
            self.popen.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.popen.wait()
        sweep(self.tmp)
        kill_marked(self.id)


class Runner:
    """Runs ENTRIES. INTERRUPTS: the signals that came, appended by their handler; a handler that raised would, while a
    program is started, leave that program behind."""

    def __init__(self, entries, jobs, directory, logs, extent, interrupts):
        self.interrupts = interrupts
        self.waiting, self.running = list(entries), []
        self.outcomes = {}  # entry: what its last run showed
        self.total = len(entries)
        self.jobs, self.directory, self.logs = jobs, directory, logs
        self.tty = sys.stdout.isatty()
        self.last_progress = time.monotonic()
        self.planes = {name: Plane(name, directory, logs) for name in {e.plane for e in entries if e.plane}}
        self.environment = {
            **os.environ, "SONDE_BUILD": BUILD, "SONDE_EXTENT": extent,
            "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
            "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
            "PATH": "/usr/bin:" + os.environ.get("PATH", "")}

    def may_start(self, entry):
        """An entry that mostly waits has a slot of its own, so that the processors are not idle meanwhile."""
        running = [r.entry for r in self.running]
        if "alone" in entry.marks:
            return not running
        if any("alone" in e.marks for e in running):
            return False
        waits = "waits" in entry.marks
        if len([e for e in running if ("waits" in e.marks) == waits]) >= (1 if waits else self.jobs):
            return False
        if not entry.plane:
            return True
        if entry.plane not in CONCURRENT and any(e.plane == entry.plane for e in running):
            return False
        return self.planes[entry.plane].ready() is not None

    def environment_of(self, entry):
        environment = dict(self.environment)
        if "asan" in entry.marks:
            environment["SONDE_BUILD"] = os.path.join(BUILD, "asan")
        if entry.plane:
            environment.update(self.planes[entry.plane].environment())
        return environment

    def start(self, entry):
        why = entry.missing
        if entry.plane and not self.planes[entry.plane].ready():
            plane = self.planes[entry.plane]
            why = plane.obstacle or f"the control plane did not start, see {os.path.relpath(plane.output, ROOT)}"
        if not why:
            try:
                self.running.append(Running(entry, self.directory, self.logs, self.environment_of(entry)))
                return
            except OSError as e:
                why = str(e)
        outcome = Outcome()
        outcome.complain(why)
        self.finish(entry, outcome, None)

    def poll(self):
        for running in list(self.running):
            ended = running.poll()
            if ended:
                self.running.remove(running)
                self.finish(running.entry, running.conclude(*ended), running.log)

    def finish(self, entry, outcome, log):
        self.outcomes[entry] = outcome
        counts = f"{outcome.passed} passed" + (f", {outcome.failed} failed" if outcome.failed else "")
        self.print(f"{'FAILED' if outcome.failed else 'ok':6} {outcome.seconds:6.1f} s {outcome.cpu:6.1f} s CPU  "
                   f"{entry.name:28} {counts}")
        if outcome.failed:
            show_output(log)
            for title, *_ in outcome.failures:
                print(f"       {entry.name}: {title}", flush=True)
        if entry.plane and not any(e.plane == entry.plane for e in self.waiting + [r.entry for r in self.running]):
            self.planes[entry.plane].stop()

    def print(self, line):
        print(("\r\033[K" if self.tty else "") + line, flush=True)
        self.last_progress = time.monotonic()

    def progress(self):
        """What runs now: redrawn every half second on a terminal, a line every half minute elsewhere."""
        now = time.monotonic()
        if now - self.last_progress < (0.5 if self.tty else 30):
            return
        self.last_progress = now
        what = ", ".join(f"{r.entry.name} {now - r.began:.0f} s" for r in self.running) or "waiting for a control plane"
        line = f"[{len(self.outcomes)}/{self.total}] {what}"
        if self.tty:
            print("\r\033[K" + line[:shutil.get_terminal_size().columns - 1], end="", flush=True)
        else:
            print(line, flush=True)

    def run(self):
        while not self.interrupts and (self.waiting or self.running):
            self.poll()
            ready = next((e for e in self.waiting if self.may_start(e)), None)
            if ready:
                self.waiting.remove(ready)
                self.start(ready)
                continue
            self.progress()
            time.sleep(0.02)

    def run_again(self, entry):
        """Runs a failed ENTRY once more, with nothing next to it. One that passes now is flaky."""
        self.print(f"again  {entry.name}, alone")
        first = self.outcomes[entry]
        if entry.plane and self.planes[entry.plane].stopped:
            self.planes[entry.plane] = Plane(entry.plane, self.directory, self.logs)
        self.waiting, self.total = [entry], 1
        self.run()
        again = self.outcomes[entry]
        if again.failed:
            self.outcomes[entry] = first
        again.flaky = not again.failed

    def stop(self):
        for running in self.running:
            running.stop()
        for plane in self.planes.values():
            plane.stop()


def show_output(log):
    """The end of what a failed entry printed, without the points that passed."""
    if not log:
        return
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = [line for line in f.read().splitlines() if not re.match(r"ok \d+ - [^#]*$", line)]
    if len(lines) > SHOWN:
        print(f"       | ... {len(lines) - SHOWN} lines before, in {os.path.relpath(log, ROOT)}")
    print("\n".join("       | " + line for line in lines[-SHOWN:]))
