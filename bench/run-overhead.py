#!/usr/bin/python3
"""What `sonde-pod run` costs beside the workload: CPU for its output, start and end, memory, wake-ups at rest.

The peer is the workload alone, with the same reader behind it. Passing output on is one read and one write more for what
took one of each before, so the bar is the CPU that writer and reader take together, half as much again.

    bench/run-overhead.py [MEGABYTES]         (1000)
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import program

POD = program("sonde-pod")
MEGABYTES = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
STARTS = 100
READER = "import os\nwhile os.read(0, 65536): pass"
BAR = 1.5
MEMORY_BAR = 1024  # kB
missed = []


def cpu_of_ended(pid):
    """(own, reaped children's) seconds of a child that has ended and is not reaped yet."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rpartition(") ")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return (int(fields[11]) + int(fields[12])) / tick, (int(fields[13]) + int(fields[14])) / tick


def through_pipe(command):
    """Runs COMMAND into a reader that throws all away: (seconds, CPU of COMMAND itself, of its children, of the reader)."""
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as writer, \
            subprocess.Popen([sys.executable, "-S", "-c", READER], stdin=writer.stdout) as reader:
        writer.stdout.close()
        own, below = cpu_of_ended(writer.pid)
        rest, _ = cpu_of_ended(reader.pid)
        return time.monotonic() - began, own, below, rest


def output(ctl, title, block, count):
    dd = ["dd", "if=/dev/zero", f"bs={block}", f"count={count}"]
    bare = min((through_pipe(dd) for _ in range(3)), key=lambda x: x[1] + x[3])
    ours = min((through_pipe([POD, "run", "--ctl", ctl, "--", *dd]) for _ in range(3)), key=lambda x: x[1])
    peer = bare[1] + bare[3]
    ratio = ours[1] / max(peer, 0.01)
    print(f"{title}: {bare[0]:.2f} s alone, {ours[0]:.2f} s under run; CPU of writer and reader {peer:.2f} s, of run "
          f"{ours[1]:.2f} s: {ratio:.2f} (at most {BAR})", flush=True)
    if ratio > BAR:
        missed.append(title)


def starts(ctl):
    def one(command):
        began = time.monotonic()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        return (time.monotonic() - began) * 1000
    pairs = [(one(["true"]), one([POD, "run", "--ctl", ctl, "--", "true"])) for _ in range(STARTS)]
    print(f"start and end: median {statistics.median(p[0] for p in pairs):.2f} ms alone, "
          f"{statistics.median(p[1] for p in pairs):.2f} ms under run ({STARTS} of each, in turns)", flush=True)


def at_rest(ctl):
    def switches():
        with open(f"/proc/{run.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])
    with subprocess.Popen([POD, "run", "--ctl", ctl, "--", "sh", "-c", "echo ready; exec sleep 1000"],
                          stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        time.sleep(0.5)
        before = switches()
        time.sleep(5)
        woken = switches() - before
        with open(f"/proc/{run.pid}/smaps_rollup", encoding="ascii") as f:
            kib = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+): +(\d+) kB", f.read(), re.M)}
        run.kill()
    print(f"at rest: woken {woken} times in 5 s (at most 0), anonymous memory {kib['Anonymous']} kB (at most {MEMORY_BAR}), "
          f"resident {kib['Rss']} kB with its program's pages", flush=True)
    if woken or kib["Anonymous"] > MEMORY_BAR:
        missed.append("at rest")


with tempfile.TemporaryDirectory() as root:
    control = os.path.join(root, "ctl")
    os.mkdir(control)
    os.mkfifo(os.path.join(control, "alive"))
    output(control, f"{MEGABYTES} MB in blocks of 64 KiB", 65536, MEGABYTES * 1000000 // 65536)
    output(control, f"{MEGABYTES * 1000} lines of 80 bytes, one at a time", 80, MEGABYTES * 1000)
    starts(control)
    at_rest(control)
if missed:
    sys.exit("missed: " + ", ".join(missed))
