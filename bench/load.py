#!/usr/bin/python3
"""The load generator's own error, beside an asyncio/aiohttp client that does the same job.

    bench/load.py [100] [1000] [highest] [chunks] [truth]       (all of them)

100, 1000  requests a second of short streams, by one trace for both: how late each request went out (start - due), and how
           far from its true first byte its first chunk was recorded (either way). True is the kernel's stamp when the
           server's packet went to the device, which on loopback is when it came to the client (bench/load-server.c says
           why). Beside it, without a bar, the server's clock before its write(), which has the server's own way through the
           kernel in it. Where the kernel has no such stamps, this is said, and the bar is on the latter. Where the server
           itself was held up in that write() nobody knows, and the sample is left out for both; how many is said.
           The server is the same for both, and they take turns
highest    the same at the highest rate that each reaches: doubled from 1000 until one of a hundred is 50 ms late
chunks     streamed chunks a second of one core: from a server that always has more than the client takes, and, without a bar,
           when each of 64 streams has a chunk every 5 ms, so that the kernel's part of a chunk is most of it
truth      mean TTFT and ITL against the simulated engine at concurrency 1, 32, 256 and 1000: the median of three runs

Server and clients run before all else on the machine where that is allowed (SCHED_FIFO), the clients one after the other.
Exits with 1 when Sonde misses what is expected of it.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import ROOT, program, wait

PEER = os.path.join(ROOT, "bench", "peers", "aiohttp_load.py")
FIRST_US, GAP_US, CHUNKS = 5000, 1000, 8  # of a short stream
SECONDS, ROUNDS, WARMUP, KEY = 4, 3, 50, 1000  # KEY: the first request's name
HELD_UP = 100_000  # ns in a write()
STAMPED = 0.99  # of the answers have the kernel's stamp, or it has none to give
LATE, DEVICE, WRITE = "send - scheduled", "first byte at the device", "first byte before write()"
MEDIAN, STAMP, THROUGHPUT = 8, 20, 10  # times better than the peer, at least
RATES = (2000, 4000, 8000, 16000, 32000)
KEPT_UP = 0.05  # s: a client that is later than this (p99) has not kept up
STREAMS = 64
TRUTH_SHARE, TRUTH_MS = 0.01, 0.3
MODEL = {"model": "sim/m", "prefill": {"baseMs": 1, "perTokenUs": 1}, "kvTokensPerGpu": 10000000, "prefixCache": False,
         "decode": {"baseMs": 2, "perRequestUs": 20, "perKvTokenNs": 0}}
ISL, OSL = 64, 40

rows, missed = [], []


def row(what, ours, other="", ratio="", asked="", met=True):
    rows.append((what, ours, other, ratio, asked))
    print(f"  {what}: {ours}{' beside ' + other if other else ''}{': ' + ratio if ratio else ''}  {'' if met else 'MISSED'}", flush=True)
    if not met:
        missed.append(f"{what}: {ratio or ours}, {asked} is expected")


def go_first():
    """Where that is allowed."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def percentile(values, percent):
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


# --- the server, and the two clients ------------------------------------------------------------------------------------


class Server:
    def __init__(self, folder, first, gap, chunks, at_once=1):
        self.times = os.path.join(folder, "times")
        self._argv = [program("bench/load-server"), str(first), str(gap), str(chunks), self.times, str(at_once)]

    def __enter__(self):
        self._process = subprocess.Popen(self._argv, stdout=subprocess.PIPE, text=True, preexec_fn=go_first)
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def true_first_bytes(self):
        """By request, where it is known, for each of the truths there are; ends the server."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0
        with open(self.times, encoding="utf-8") as f:
            moments = [tuple(map(int, line.split())) for line in f]
        known = [m for m in moments if m[2] - m[1] < HELD_UP]
        true = {WRITE: {key: before for key, before, _, _ in known}}
        if sum(m[3] > 0 for m in known) >= STAMPED * len(known):
            true[DEVICE] = {key: device for key, _, _, device in known if device}
        return true

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()


def write_trace(folder, n, rate):
    path = os.path.join(folder, "trace.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"timestamp": i * 1e3 / rate, "input_length": 50, "output_length": KEY + i}) + "\n" for i in range(n))
    return path


def sonde(url, trace, folder, concurrency=0):
    """Records as the peer writes them (due, start, first: ns of the wall clock), and the CPU time used."""
    out = os.path.join(folder, "sonde")
    argv = [program("sonde-pod"), "load", url, "--model", "m", "--input-file", trace, "--artifact-dir", out, "-o", "json", "-q",
            "--warmup-request-count", str(WARMUP)]
    if concurrency:
        argv += ["--concurrency", str(concurrency)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=go_first)
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    records = []
    with open(os.path.join(out, "profile_export.jsonl"), encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r["error"]:
                continue
            start = r["metadata"]["request_start_ns"]
            records.append({"key": KEY + r["metadata"]["session_num"], "late": r["sonde"]["lateness_us"],
                            "first": start + round(r["metrics"]["time_to_first_token"]["value"] * 1e6)})
    summary = json.loads(done.stdout)["sonde"]
    return records, summary["client_cpu_seconds"], summary["chunks"]


def aiohttp(url, trace, folder, concurrency=0):
    out = os.path.join(folder, "peer.jsonl")
    subprocess.run([sys.executable, PEER, url, trace, out, str(concurrency), str(WARMUP)], check=True, preexec_fn=go_first)
    records, cpu, chunks = [], 0, 0
    with open(out, encoding="utf-8") as f:
        for i, line in enumerate(f):
            r = json.loads(line)
            if "cpu_seconds" in r:
                cpu = r["cpu_seconds"]
            elif r["chunks"] and "error" not in r:
                chunks += len(r["chunks"])
                records.append({"key": KEY + i, "late": (r["start"] - r.get("due", r["start"])) / 1e3, "first": r["chunks"][0]})
    return records, cpu, chunks


def one_rate(client, folder, rate, seconds=SECONDS):
    """Lateness, and the error of the first chunk's stamp by each truth, in us; and whether it kept up."""
    n = rate * seconds
    with Server(folder, FIRST_US, GAP_US, CHUNKS) as server:
        records, _, _ = client(server.url, write_trace(folder, n, rate), folder)
        truths = server.true_first_bytes()
    values = {LATE: [r["late"] for r in records]}
    for truth_of, true in truths.items():
        values[truth_of] = [abs(r["first"] - true[r["key"]]) / 1e3 for r in records if r["key"] in true]
    return values, len(records) == n and percentile(values[LATE], 99) < KEPT_UP * 1e6


# --- parts ----------------------------------------------------------------------------------------------------------------


def show_errors(what, ours, theirs):
    """Each is a name and the values of one_rate()."""
    barred = DEVICE if DEVICE in ours[1] and DEVICE in theirs[1] else WRITE
    if barred == WRITE:
        print("  the kernel does not stamp what the server sends: a first byte's time is that before write()", flush=True)
    left_out = [len(values[LATE]) - len(values[barred]) for _, values in (ours, theirs)]
    print(f"  {what}: {left_out[0]} of {len(ours[1][LATE])} samples left out, beside {left_out[1]} of {len(theirs[1][LATE])}", flush=True)
    wanted = [(LATE, 50, MEDIAN), (LATE, 99, 1)]
    for name in dict.fromkeys((barred, WRITE)):
        wanted += [(name, 50, 0), (name, 99, STAMP if name == barred else 0)]
    for name, percent, least in wanted:
        a, b = (percentile(values[name], percent) for _, values in (ours, theirs))
        ratio = b / a if a > 0 else float("inf")
        row(f"{what}: {'' if name == LATE else 'recorded - '}{name}, {'median' if percent == 50 else f'p{percent}'}",
            f"{a:.1f} us{ours[0]}", f"{b:.1f} us{theirs[0]}", f"{ratio:.1f} times less", f"at least {least}" if least else "",
            not least or ratio >= least)


def at_rate(folder, rate):
    ours, theirs = {}, {}
    for _ in range(ROUNDS):
        for client, all_of_it in (sonde, ours), (aiohttp, theirs):
            for name, values in one_rate(client, folder, rate)[0].items():
                all_of_it.setdefault(name, []).extend(values)
    show_errors(f"{rate}/s", ("", ours), ("", theirs))


def highest(folder):
    best = {}
    for client in sonde, aiohttp:
        for rate in (1000, *RATES):
            values, kept_up = one_rate(client, folder, rate, 3)
            if not kept_up:
                break
            best[client] = f" ({rate}/s)", values
    if len(best) == 2:
        show_errors("highest", best[sonde], best[aiohttp])
    else:
        told = ["1000/s and more" if c in best else "not even 1000/s" for c in (sonde, aiohttp)]
        row("highest", *told, asked="at least 1000/s", met=sonde in best)


def chunks_per_core(client, folder, gap, chunks_each, at_once, requests):
    with Server(folder, 1000, gap, chunks_each, at_once) as server:
        _, cpu, n = client(server.url, write_trace(folder, requests, 1e6), folder, STREAMS)
    assert n == requests * chunks_each, n
    return n / cpu


def chunks(folder):
    for what, least, *shape in (("all that a core takes", THROUGHPUT, 0, 4000, 64, 2 * STREAMS), ("one every 5 ms", 0, 5000, 400, 1, STREAMS)):
        ours, theirs = (chunks_per_core(client, folder, *shape) for client in (sonde, aiohttp))
        row(f"chunks a second of one core, {what}", f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.1f} times more",
            f"at least {least}" if least else "", not least or ours / theirs >= least)


def truth(folder):
    pod, model, port = program("sonde-pod"), os.path.join(folder, "model.json"), os.path.join(folder, "port")
    with open(model, "w", encoding="utf-8") as f:
        json.dump(MODEL, f)
    sim = subprocess.Popen([pod, "sim", model, "--listen", "127.0.0.1:0", "--port-file", port], stderr=subprocess.DEVNULL,
                           preexec_fn=go_first)
    try:
        wait(lambda: os.path.exists(port), 20, "a port")
        with open(port, encoding="utf-8") as f:
            url = f"http://127.0.0.1:{int(f.read())}"
        for concurrency in 1, 32, 256, 1000:
            n, lengths = max(3 * concurrency, 60), ["--isl", str(ISL), "--osl", str(OSL)]
            true = json.loads(subprocess.run([pod, "sim", model, "--truth", "--concurrency", str(concurrency), "--requests", str(n),
                                              "--warmup", str(concurrency), *lengths], capture_output=True, check=True).stdout)
            runs = [json.loads(subprocess.run([pod, "load", url, "--model", "sim/m", "--concurrency", str(concurrency), "-o", "json", "-q",
                                               "--request-count", str(n), "--warmup-request-count", str(concurrency), *lengths],
                                              capture_output=True, check=False, preexec_fn=go_first).stdout) for _ in range(ROUNDS)]
            for tag in "time_to_first_token", "inter_token_latency":
                a, b = percentile([run[tag]["avg"] for run in runs], 50), true[tag]["avg"]
                may = max(TRUTH_SHARE * b, TRUTH_MS)
                row(f"concurrency {concurrency}: mean {tag.replace('_', ' ')}", f"{a:.3f} ms", f"{b:.3f} ms (truth)",
                    f"off by {abs(a - b):.3f} ms", f"at most {may:.3f}", abs(a - b) <= may)
    finally:
        sim.terminate()
        sim.wait()


PARTS = {"100": lambda f: at_rate(f, 100), "1000": lambda f: at_rate(f, 1000), "highest": highest, "chunks": chunks, "truth": truth}


def measure(part):
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        print(f"{part}:", flush=True)
        PARTS[part](folder)


def main():
    for part in sys.argv[1:] or PARTS:
        measure(part)
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    for r in (("", "Sonde", "beside", "ratio", "expected"), *rows):
        print(f"{r[0]:54} {r[1]!s:>22} {r[2]!s:>28} {r[3]:>20}   {r[4]}".rstrip())
    for line in missed:
        print(f"MISSED {line}")
    sys.exit(1 if missed else 0)


main()
