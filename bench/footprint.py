#!/usr/bin/python3
"""What the operator needs: memory at idle and with N finished runs in the cluster, time to its first decision, size of its image.

    bench/footprint.py [N]         (10000)

The operator runs as in a Deployment: all kinds, leader election, the API and the page, a history. Idle memory and time are
measured on a real control plane. For finished runs the server is the embedded engine, which takes them ten times as fast and has the
same answers: one run of every kind is played to its end (profiling and comparison with results that were really measured); what it
leaves, request, Jobs, pods, ConfigMaps, WorkloadProfile, is then made N times, a quarter of each kind. Fails where a figure is
missed.
"""

import concurrent.futures
import contextlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from algorithm_play import World
from copies import copy_of, make, no_pods
from dgdr_play import ok
from every_kind import KINDS, PATIENCE, EveryKind, ends, is_over, reports
from sonde_test import ROOT, ControlPlane, Engine, Process, program, wait

N = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
NS, LEASES = "default", "kube-system"
CLIENTS = 8
STARTS = 5
EXAMPLES = {"ap": ("algorithmprofiling", "quick-sort", "quick-sort-run-results"),
            "ac": ("algorithmcomparison", "sorting", "sorting-comparison-run-results")}
missed = []


def row(what, value, unit, asked=None):
    told = f"{value:.1f} {unit}" if isinstance(value, float) else f"{value} {unit}"
    print(f"  {what:58} {told:16} {f'asked: at most {asked} {unit}' if asked else ''}", flush=True)
    if asked and value > asked:
        missed.append(what)


def memory(pid):
    """RSS, its anonymous part, and the highest RSS so far, in MiB."""
    kib = {}
    for name in ("smaps_rollup", "status"):
        with open(f"/proc/{pid}/{name}", encoding="utf-8") as f:
            kib.update((m[1], int(m[2])) for m in re.finditer(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    return kib["Rss"] / 1024, kib["Anonymous"] / 1024, kib["VmHWM"] / 1024


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as f:
        return int(f.read().split()[0]) / 1e9


# --- the operator ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def operator(cluster, folder):
    began = time.time()
    with Process(program("sonde"), "operator", "--kubeconfig", cluster.kubeconfig, "--leader-elect", "--leader-elect-namespace", LEASES,
                 "--listen", "127.0.0.1:0", "--history", os.path.join(folder, "history.db"),
                 "--health-probe-bind-address", "127.0.0.1:0") as process:
        process.began = began
        process.port = int(process.expect(r'"Started".*"port":(\d+)', PATIENCE)[1])
        process.expect("Became the leader", PATIENCE)
        yield process
        process.signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0, process.lines[-10:]


def metrics(process):
    with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/metrics", timeout=60) as answer:
        return answer.read().decode()


def decided(process):
    """How many decisions were carried out."""
    return sum(float(m[1]) for m in re.finditer(r'^controller_runtime_reconcile_total{.*result="(?:success|requeue_after)"} (\S+)',
                                                metrics(process), re.M))


def waiting(process):
    return sum(float(m[1]) for m in re.finditer(r"^workqueue_depth{.*} (\S+)", metrics(process), re.M))


def ready(process):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"http://127.0.0.1:{process.port}/readyz", timeout=60) as answer:
            return answer.status == 200
    return False


def steady(process):
    """The most that it needs in a minute, after a minute: what is free is given back that often. As memory() says."""
    time.sleep(60)
    return max((memory(process.pid), time.sleep(1))[0] for _ in range(60))


def first_write(cluster, name):
    """When the operator first wrote about a request, by the API server's clock."""
    for e in cluster.audit():
        if e["verb"] == "patch" and e["objectRef"].get("name") == name and e.get("userAgent", "").startswith("sonde/"):
            return time.mktime(time.strptime(e["requestReceivedTimestamp"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone + \
                float(e["requestReceivedTimestamp"][19:-1])
    return None


def start_times(cluster, kinds, folder):
    """From the start of the program to what it writes first about a request that waits for it, in ms."""
    took = []
    for i in range(STARTS):
        play = kinds.create(NS, "ap", f"waits-{i}")
        with operator(cluster, folder) as process:
            took.append(1000 * (wait(lambda p=play: first_write(cluster, p.name), PATIENCE, "the first write") - process.began))
        play.delete()
    return sorted(took)[STARTS // 2]


# --- finished runs -----------------------------------------------------------------------------------------------------------


def measured_results():
    """What the examples of profilings and comparisons really measure here, as their pods leave it."""
    found = {}
    with Engine() as engine, World("engine", engine):
        for kind, (file, name, data) in EXAMPLES.items():
            done = subprocess.run([program("sonde"), "apply", "--kubeconfig", engine.kubeconfig, "-f", f"{ROOT}/examples/{file}.yaml"],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            path = f"/apis/dprofiler.io/v1alpha1/namespaces/default/{file}s/{name}"
            wait(lambda p=path: ok(engine.api().get(p)).get("status", {}).get("phase") == "Completed", 2 * PATIENCE, name)
            found[kind] = ok(engine.api().get(f"/api/v1/namespaces/default/configmaps/{data}"))["data"]["result.json"]
    return found


def play_one(kinds, kind, results):
    play = kinds.create(NS, kind, f"first-{kind}")
    play.pod_runs()
    reports(play, 1)
    if kind in results:
        play.succeed(results[kind])
    else:
        ends(play)
    is_over(play)
    return play


def varied(copy, number):
    """The same with other figures: no two runs measure the same."""
    digits = random.Random(number)
    text = re.sub(r"(?<=\d\.)\d{2,}", lambda m: str(digits.randrange(10 ** (len(m[0]) - 1), 10 ** len(m[0]))), json.dumps(copy))
    return json.loads(text)


def make_all(cluster, copies):
    numbers = itertools.count()

    def some(_):
        api = cluster.api()
        while (number := next(numbers)) < N:
            make(api, NS, varied(copies[number % len(copies)], number), f"run-{number:05d}")
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(some, range(CLIENTS)))


# --- all of it ---------------------------------------------------------------------------------------------------------------


def image_sizes(folder):
    subprocess.run([os.path.join(ROOT, "scripts/images"), "sonde", "sonde-pod", "--out", folder], check=True, stdout=subprocess.DEVNULL)
    for name, asked in (("sonde", 40), ("sonde-pod", 8)):
        row(f"image {name}", os.path.getsize(os.path.join(folder, name + ".tar")) / 2**20, "MiB", asked)


def empty(cluster, kinds, folder):
    with operator(cluster, folder) as process:
        wait(lambda: ready(process), PATIENCE, "it to be ready")
        rss, anonymous, _ = steady(process)
        row("idle, RSS", rss, "MiB", 10)
        row("idle, anonymous", anonymous, "MiB", 3)
    row("start to the first write for a request, median of 5", start_times(cluster, kinds, folder), "ms", 300)


def crowded(engine, kinds, folder):
    with operator(engine, folder):
        plays = [play_one(kinds, kind, measured_results()) for kind in KINDS]
    copies = [no_pods(copy_of(engine, play)) for play in plays]
    began = time.monotonic()
    make_all(engine, copies)
    print(f"  {N} finished runs, {N // len(KINDS)} of each kind, of {', '.join(str(len(c['objects'])) for c in copies)} objects, "
          f"made in {time.monotonic() - began:.0f} s", flush=True)
    with operator(engine, folder) as process:
        wait(lambda: decided(process) >= N and not waiting(process), 300, "all to be looked at", every=1)
        row("until all are looked at", time.time() - process.began, "s")
        rss, anonymous, peak = steady(process)
        row(f"{N} finished runs, RSS", rss, "MiB", 32)
        row(f"{N} finished runs, anonymous", anonymous, "MiB")
        row(f"{N} finished runs, highest RSS", peak, "MiB")
        row(f"{N} finished runs, CPU", cpu_seconds(process.pid), "s")
        objects = re.findall(r'^sonde_cache_(objects|bytes){.*resource="(\w+)"} (\S+)', metrics(process), re.M)
        print("  in the caches: " + ", ".join(f"{what} of {resource} {float(n):.0f}" for what, resource, n in objects if float(n)))
        writes = re.findall(r'^rest_client_requests_total{.*method="(?:PATCH|POST|DELETE)".*} (\S+)', metrics(process), re.M)
        assert not sum(map(float, writes)), f"{writes} writes, with nothing to do"


with tempfile.TemporaryDirectory(prefix="sonde-bench-") as place:
    with ControlPlane(KCLUSTER_AUDIT="1") as plane, EveryKind(plane) as every:
        empty(plane, every, place)
    with Engine("--no-node", "--no-fsync") as server, EveryKind(server, "engine") as every:
        crowded(server, every, place)
    image_sizes(place)
assert not missed, f"missed: {', '.join(missed)}"
