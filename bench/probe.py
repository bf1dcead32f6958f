#!/usr/bin/python3
"""How right `sonde probe` is, and what it costs: beside hyperfine, perf stat and GNU time, each run once in every round.

    bench/probe.py            all of it, some 25 minutes on a quiet machine
    bench/probe.py --short    the same in half a minute: shows that it works, proves nothing
    bench/probe.py PART...    some of it: CPU-bound, forking, memory-bound, 1ms, trees, overhead, slow-down

A round runs a program once under each tool, in random order; under GNU time, which is not exact, in every tenth. What is compared is the
median over rounds of the ratio within a round, which the drift of a machine does not touch, with its 95 % interval; there are as many rounds as
it takes to know it to half a percent, within five minutes a program. A bar is met when that median lies in it; one that the interval is wider
than by half to each side is missed, because the machine cannot tell. GNU time tells time cut to 10 ms: that is added to what medians may differ
by (twice for the sum of two), and at 1 ms it tells nothing. The kernel counts pages in batches: 256 KiB are added to what peaks may differ by.

perf's times are its own, but it has three events with what it runs for them, which makes switches and forks slower: with -a a CPU has them.
hyperfine gives what it runs a variable of random length, up to a page, in its environment, which a fork has to copy: the others get the same.

The forking program is judged twice: as it comes, and with its tool on one CPU. On several CPUs its first 50 ms are up to a fifth quicker or
slower, by where the kernel puts the children, which hangs on what the CPUs did right before: the tool itself, and us, who started it. Without a
pause before the tool it is quicker below hyperfine and perf, with one of 0.1 s below the probe; behind some 300 children all are equal. So it has
350 children first, and tells what those took, which is taken off what each tool tells.
"""
import json
import math
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import program

SHORT = "--short" in sys.argv[1:]
PARTS = [a for a in sys.argv[1:] if a != "--short"]
POD, WORKLOAD = program("sonde-pod"), program("test/workload")
ROUNDS = 5 if SHORT else 51
SHORT_ROUNDS = 20 if SHORT else 400  # of the program of 1 ms
PAIRS = 20 if SHORT else 500
RUNS = 50 if SHORT else 500  # at once, for the overhead a run
OVERHEAD_ROUNDS = 3 if SHORT else 41
SECONDS = 5 if SHORT else 300  # for the rounds of one program, at most
FINE = 0.005  # half of the interval that is fine enough
WALL, CPU, RSS, SLOWER = 0.01, 0.02, 0.01, 0.01  # the bars
STEP = 0.01  # s, of GNU time
BATCH = 256 << 10
SETTLED = 350  # children of the forking program that do not count
MIB = 1 << 20
ONE_CPU = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
missed, pinned = [], []
scratch = tempfile.mkdtemp(prefix="sonde-bench-probe-")
draw = random.Random(8)


def verdict(ok, what, text):
    print(f"{'PASS' if ok else 'FAIL'}  {what:<28} {text}", flush=True)
    if not ok:
        missed.append(what)


def run(*argv, **more):
    padded = {**os.environ, "HYPERFINE_RANDOMIZED_ENVIRONMENT_OFFSET": "X" * draw.randrange(4096)}
    return subprocess.run([*pinned, *map(str, argv)], check=True, env=padded, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **more)


# --- the tools: each runs a command once and tells (wall, user + sys, peak of memory); None: it does not tell


def sonde(command):
    s = json.loads(run(POD, "probe", "-n", 1, "-w", 0, "-q", "-o", "json", "--", *command).stdout)["results"][0]["samples"][0]
    return s["wall"], s["user"] + s["sys"], s.get("peakRss")


def hyperfine(command):
    file = os.path.join(scratch, "hyperfine.json")
    run("hyperfine", "-N", "-r", 1, "-w", 0, "--style", "none", "--export-json", file, " ".join(map(str, command)))
    with open(file, encoding="utf-8") as f:
        r = json.load(f)["results"][0]
    return r["times"][0], r["user"] + r["system"], None


def perf(command):
    lines = run("perf", "stat", "-a", "-x,", "-e", "duration_time,user_time,system_time", "--", *command).stderr
    ns = {m[2]: int(m[1]) for m in re.finditer(r"^(\d+),ns,(\w+),", lines, re.M)}
    return ns["duration_time"] / 1e9, (ns.get("user_time", 0) + ns.get("system_time", 0)) / 1e9, None  # what is 0 is not told


def gnu_time(command):
    last = run("/usr/bin/time", "-f", "%e %U %S %M", *command).stderr.splitlines()[-1].split()
    return float(last[0]), float(last[1]) + float(last[2]), int(last[3]) * 1024


PEERS = ("hyperfine", "perf")  # those that tell time exactly
TOOLS = {"sonde": sonde, "hyperfine": hyperfine, "perf": perf, "time": gnu_time}


def rounds(command, n, uncounted=None):
    """{tool: [(wall, cpu, memory)...]}, less the wall and cpu that the program wrote to the file UNCOUNTED."""
    told = {tool: [] for tool in TOOLS}
    for i in range(n):
        tools = [tool for tool in sorted(TOOLS) if tool != "time" or i % 10 == 0]
        for tool in draw.sample(tools, len(tools)):
            wall, cpu, memory = TOOLS[tool](command)
            if uncounted:
                with open(uncounted, encoding="utf-8") as f:
                    before = [float(word) for word in f.read().split()]
                wall, cpu = wall - before[0], cpu - before[1]
            told[tool].append((wall, cpu, memory))
    return told


def interval(ours, theirs):
    """Median of ours / theirs - 1, pair by pair, and its 95 % interval from the order of the pairs."""
    ratios = sorted(a / b - 1 for a, b in zip(ours, theirs))
    n, reach = len(ratios), 0.98 * math.sqrt(len(ratios))
    return statistics.median(ratios), ratios[max(0, math.floor(n / 2 - reach))], ratios[min(n - 1, math.ceil(n / 2 + reach) - 1)]


def column(told, tool, which):
    return [t[which] for t in told[tool]]


def enough_rounds(command, uncounted=None):
    """As rounds(), until the ratios of wall times are known well enough."""
    until = time.monotonic() + SECONDS
    told = rounds(command, ROUNDS, uncounted)
    while time.monotonic() < until:
        spans = [interval(column(told, "sonde", 0), column(told, peer, 0)) for peer in PEERS]
        if all(high - low <= 2 * FINE for _, low, high in spans):
            break
        for tool, more in rounds(command, 10, uncounted).items():
            told[tool] += more
    return told


def median(told, tool, column):
    values = [t[column] for t in told[tool] if t[column] is not None]
    return statistics.median(values) if values else None


def step(tool, column):
    return STEP * (column + 1) if tool == "time" and column < 2 else BATCH if column == 2 else 0


def within(name, what, told, which, bar, unit, scale):
    """Ours against a peer that tells only steps, by medians."""
    ours, theirs = median(told, "sonde", which), median(told, "time", which)
    off = ours - theirs
    verdict(abs(off) <= bar * theirs + step("time", which), f"{what}, {name}",
            f"{ours * scale:9.2f} {unit}   time      {theirs * scale:9.2f} {unit}   {off / theirs * 100 if theirs else 0:+6.2f} % "
            f"(within {bar * 100:g} % and {step('time', which) * scale:g} {unit})")


def agrees(name, what, told, which, bar):
    """Ours beside the peers that tell it exactly: see above."""
    spans = {peer: interval(column(told, "sonde", which), column(told, peer, which)) for peer in PEERS}
    text = f"{median(told, 'sonde', which) * 1e3:9.2f} ms   " + ", ".join(
        f"{peer} {median(told, peer, which) * 1e3:.2f} ms: {s[0] * 100:+.2f} % ({s[1] * 100:+.2f} to {s[2] * 100:+.2f})" for peer, s in spans.items())
    ok = all(abs(s[0]) <= bar for s in spans.values())
    fine = all(s[2] - s[1] <= 3 * bar for s in spans.values())
    verdict(ok and fine, f"{what}, {name}", f"{text}   (within {bar * 100:g} %; {len(told['sonde'])} rounds)" + ("" if fine else " too noisy to tell"))


# --- what is measured


def took(command):
    began = time.monotonic()
    run(*command)
    return time.monotonic() - began


def calibrated(what, seconds, first):
    """`workload WHAT N`, with N so that it takes about so long."""
    n = first
    for _ in range(6):
        t = min(took([WORKLOAD, what, n]) for _ in range(3)) - EMPTY
        n = max(1, int(n * min(20, max(0.05, seconds / max(t, 1e-5)))))
    return [WORKLOAD, what, n]


def accuracy(name, command, single=True, uncounted=None):
    """SINGLE: it is one process."""
    told = enough_rounds(command, uncounted)
    agrees(name, "wall", told, 0, WALL)
    within(name, "wall", told, 0, WALL, "ms", 1e3)
    agrees(name, "user + sys", told, 1, CPU)
    within(name, "user + sys", told, 1, CPU, "ms", 1e3)
    if single:
        within(name, "peak RSS", told, 2, RSS, "MiB", 1 / MIB)


def forking():
    file = os.path.join(scratch, "settled")
    command = [*calibrated("fork", 0.12, 200), SETTLED, file]
    accuracy("forking", command, single=False, uncounted=file)
    pinned.extend(ONE_CPU)
    accuracy("forking on one CPU", command, single=False, uncounted=file)
    pinned.clear()


def one_millisecond():
    told = rounds(calibrated("work", 0.0005, 100_000), SHORT_ROUNDS)
    ours = median(told, "sonde", 0)
    peers = {p: [t[0] for t in told[p]] for p in ("hyperfine", "perf")}
    low = min(statistics.quantiles(v, n=20)[0] for v in peers.values())
    high = max(statistics.quantiles(v, n=20)[-1] for v in peers.values())
    medians = ", ".join(f"{p} {statistics.median(v) * 1e3:.3f}" for p, v in peers.items())
    verdict(low <= ours <= high, "wall, 1 ms", f"{ours * 1e3:.3f} ms   {medians} ms (within their 5 to 95 %: "
                                               f"{low * 1e3:.3f} to {high * 1e3:.3f}; GNU time tells none)")


def trees():
    for what, n, mb, expected in (("tree", 8, 32, 8 * 32), ("tree", 3, 100, 300), ("shared", 8, 128, 128)):
        peaks = [sonde([WORKLOAD, what, n, mb, 150])[2] for _ in range(3 if SHORT else 11)]
        most, least = max(peaks), min(peaks)
        ok = expected * MIB <= least and most <= (expected * 1.02 + 2 + n / 2) * MIB
        text = f"{n} processes with {mb} MiB" if what == "tree" else f"{n} processes that read one {mb} MiB"
        verdict(ok, f"peak RSS, {what}", f"{least / MIB:.1f} to {most / MIB:.1f} MiB for {text}")


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def overhead():
    """What a tool adds to a run: the time it tells for a program that does nothing. And what each run takes in all."""
    told, each, cpu = ({"sonde": [], "hyperfine": []} for _ in range(3))
    file = os.path.join(scratch, "overhead.json")
    for _ in range(OVERHEAD_ROUNDS):
        for tool in draw.sample(sorted(told), 2):
            began, used = time.monotonic(), cpu_of_children()
            if tool == "sonde":
                run(POD, "probe", "-n", RUNS, "-w", 0, "-q", "--export-json", file, "--", WORKLOAD, "exit", 0)
            else:
                run("hyperfine", "-N", "-r", RUNS, "-w", 0, "--style", "none", "--export-json", file, f"{WORKLOAD} exit 0")
            each[tool].append((time.monotonic() - began) / RUNS)
            cpu[tool].append((cpu_of_children() - used) / RUNS)
            with open(file, encoding="utf-8") as f:
                times = json.load(f)["results"][0]["times"]
            told[tool].append(statistics.median(times))
    ours, theirs = (statistics.median(told[tool]) * 1e6 for tool in ("sonde", "hyperfine"))
    _, low, high = interval(told["sonde"], told["hyperfine"])
    verdict(ours <= theirs, "overhead a run", f"{ours:.0f} us for a program that does nothing   hyperfine {theirs:.0f} us "
                                              f"({low * 100:+.1f} to {high * 100:+.1f} %)")
    ours, theirs = (statistics.median(each[tool]) * 1e6 for tool in ("sonde", "hyperfine"))
    _, low, high = interval(each["sonde"], each["hyperfine"])
    verdict(ours <= theirs, "a run in all", f"{ours:.0f} us from one run to the next   hyperfine {theirs:.0f} us ({low * 100:+.1f} to {high * 100:+.1f} %) "
                                            f"(the whole of {RUNS} runs, with the start of the tool)")
    ours, theirs = (statistics.median(cpu[tool]) * 1e6 for tool in ("sonde", "hyperfine"))
    print(f"      of it on a CPU               {ours:.0f} us   hyperfine {theirs:.0f} us (no bar: it adds to no figure)", flush=True)


def upper_bound(values):
    """Of the median, 95 %, by order statistics alone."""
    values = sorted(values)
    n, sum_, k = len(values), 0.0, 0
    while k < n:  # P(at most k values lie below the median)
        sum_ += math.comb(n, k) * 0.5 ** n
        if sum_ >= 0.95:
            break
        k += 1
    return values[min(k + 1, n - 1)]


def slow_down(what, *options):
    """The program times itself: alone, and under the probe."""
    command = calibrated("timed", 0.2, 10_000_000)
    alone = lambda: int(run(*command).stdout)
    probed = lambda: int(run(POD, "probe", "-n", 1, "-w", 0, "-q", "-o", "csv", "--show-output", *options, "--", *command)
                         .stdout.splitlines()[0])
    ratios = []
    for _ in range(PAIRS):
        pair = {}
        for which in draw.sample(["alone", "probed"], 2):
            pair[which] = {"alone": alone, "probed": probed}[which]()
        ratios.append(pair["probed"] / pair["alone"] - 1)
    bound = upper_bound(ratios)
    verdict(bound < SLOWER, what, f"median {statistics.median(ratios) * 100:+.3f} %, upper 95 % bound {bound * 100:+.3f} % "
                                  f"(below {SLOWER * 100:g} %; {PAIRS} pairs of 200 ms)")


def both_slow_downs():
    slow_down("slow-down")
    slow_down("slow-down, with counters", "--counters")  # as in a pod, where the kernel allows them


BENCHES = {"CPU-bound": lambda: accuracy("CPU-bound", calibrated("work", 0.15, 10_000_000)), "forking": forking,
           "memory-bound": lambda: accuracy("memory-bound", [WORKLOAD, "memory", 256, 50]), "1ms": one_millisecond, "trees": trees,
           "overhead": overhead, "slow-down": both_slow_downs}
unknown = [part for part in PARTS if part not in BENCHES]
if unknown:
    sys.exit(f"bench/probe.py: there is no part {unknown[0]!r}; there are {', '.join(BENCHES)}")
EMPTY = min(took([WORKLOAD, "exit", 0]) for _ in range(20))
print(f"{ROUNDS} rounds, {SHORT_ROUNDS} at 1 ms; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}"
      f"{'; the short form proves nothing' if SHORT else ''}", flush=True)
for part in PARTS or BENCHES:
    BENCHES[part]()
if missed:
    print("missed: " + "; ".join(missed))
    sys.exit(1)
