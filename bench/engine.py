#!/usr/bin/python3
"""The embedded engine beside etcd and kube-apiserver: the same disk, the same load, both waiting for the disk.

The peer is etcd and kube-apiserver alone, with the arguments that test/cluster gives them and nothing else of a
cluster: no controller manager, no scheduler. Each measurement is taken on one side, then on the other, so that
whatever else the machine does meets both. Loads come from build/bench/api-load, whose own share of a CPU is shown when
it could have held the server up. Exits with 1 when the engine misses what is expected of it.

    bench/engine.py [N]       (10000 ConfigMaps of 1 kB, managedFields counted)
"""
import contextlib
import http.client
import json
import os
import re
import shutil
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import ControlPlane, program

N = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
ROUNDS = 3
ALONE = max(N // 20, 10)  # creates of one writer in a round; the rest of the N come from 16
GETS, LISTS, WATCHERS, WATCHED = max(N // 2, 10), 10, 100, max(N // 50, 5)
PATIENCE = 120
LOADED = 0.9  # of a CPU: the load is the bottleneck from about here
START, MEMORY, WRITES = 20, 20, 2  # times better than the peer

unverified = ssl.create_default_context()
unverified.check_hostname = False
unverified.verify_mode = ssl.CERT_NONE


def answers(address):
    """Whether the API server at ADDRESS says that it is ready; not whether it is the right one, as its CA is new."""
    connection = http.client.HTTPSConnection(*address, context=unverified, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def until(condition, process):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None, f"{process.args[0]} ended with {process.returncode}"
        assert time.monotonic() < deadline, f"{process.args[0]} is not ready after {PATIENCE} s"
        time.sleep(0.001)


class Side:
    """One of the two: its processes are in `running`, what it keeps is in `data`."""

    def __init__(self, name, data, log):
        self.name, self.data, self.log, self.running = name, data, log, []

    def spawn(self, argv):
        with open(self.log, "ab") as log:
            self.running.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return self.running[-1]

    def start(self):
        """Starts it on what it has kept; milliseconds until it was ready."""
        began = time.monotonic()
        self.launch()
        return (time.monotonic() - began) * 1000

    def start_afresh(self):
        shutil.rmtree(self.data, ignore_errors=True)
        return self.start()

    def stop(self):
        while self.running:
            process = self.running.pop()
            process.terminate()
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()

    def memory(self):
        """Resident memory of all its processes, in MiB."""
        kib = 0
        for process in self.running:
            with open(f"/proc/{process.pid}/smaps_rollup", encoding="utf-8") as f:
                kib += next(int(line.split()[1]) for line in f if line.startswith("Rss:"))
        return kib / 1024

    def load(self, *arguments):
        done = subprocess.run([program("bench/api-load"), self.kubeconfig, *map(str, arguments)], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, f"{self.name}: {done.stderr}\n{self.tail()}"
        result = json.loads(done.stdout)
        if result["cpu"] > LOADED:
            print(f"  {self.name}, {arguments[0]}: the load took {result['cpu']:.0%} of a CPU itself", flush=True)
        return result

    def tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-10:])


class Engine(Side):
    def __init__(self, folder):
        super().__init__("Sonde", os.path.join(folder, "engine"), os.path.join(folder, "engine.log"))
        self.kubeconfig = os.path.join(self.data, "kubeconfig")

    def ready(self):
        """By the address that it has written down, which is a port of its own choice."""
        with contextlib.suppress(FileNotFoundError), open(self.kubeconfig, encoding="utf-8") as f:
            found = re.search(r"server: https://([\d.]+):(\d+)", f.read())
            return found and answers((found[1], int(found[2])))
        return False

    def launch(self):
        until(self.ready, self.spawn([program("sonde"), "up", "--no-node", "--dir", self.data]))


class Peer(Side):
    """Takes a control plane's etcd and API server over: the same arguments, nobody beside them."""

    def __init__(self, folder, plane):
        super().__init__("etcd + kube-apiserver", plane.file("etcd"), os.path.join(folder, "peer.log"))
        self.kubeconfig, self.address = plane.kubeconfig, plane.address
        self.etcd, self.apiserver = (self.arguments(plane, name) for name in ("etcd", "apiserver"))
        loose = [a for a in self.etcd if "unsafe-no-fsync" in a]
        assert not loose, f"etcd does not wait for the disk: {loose}"
        urls = self.etcd[self.etcd.index("--listen-client-urls") + 1]
        self.health = urls.split(",")[0] + "/health"
        plane.rig("stop", "scheduler", "controller-manager", "apiserver", "etcd")

    @staticmethod
    def arguments(plane, name):
        with open(plane.file("pid", name), encoding="utf-8") as f:
            pid = f.read().split()[0]
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            return f.read().split("\0")[:-1]

    def healthy(self):
        with contextlib.suppress(OSError), urllib.request.urlopen(self.health, timeout=10) as answer:
            return answer.status == 200
        return False

    def launch(self):
        until(self.healthy, self.spawn(self.etcd))
        until(lambda: answers(self.address), self.spawn(self.apiserver))


def disk_flushes(folder):
    """Times that the disk of FOLDER was told to write its cache, by anybody; None where that is not counted."""
    device = os.stat(folder).st_dev
    with open("/proc/diskstats", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if (int(fields[0]), int(fields[1])) == (os.major(device), os.minor(device)) and len(fields) > 18:
                return int(fields[18]) or None
    return None


# --- the table -----------------------------------------------------------------

rows, missed = [], []


def figure(value, unit):
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def row(what, unit, engine, peer, better, bar=None):
    """One line; BETTER says which is the better of two figures, max or min; BAR: how many times, at least."""
    ratio = engine / peer if better is max else peer / engine
    if bar and ratio < bar:
        missed.append(f"{what}: {ratio:.1f} times, {bar} are expected")
    rows.append((what, figure(engine, unit), figure(peer, unit), f"{ratio:.1f}", f"at least {bar}" if bar else ""))
    print(f"  {what}: {rows[-1][1]} beside {rows[-1][2]}", flush=True)


def show():
    heads = ("", "Sonde", "etcd + kube-apiserver", "times better", "expected")
    print()
    for r in (heads, *rows):
        print(f"{r[0]:44} {r[1]:>16} {r[2]:>22} {r[3]:>13}   {r[4]}".rstrip())


# --- what is measured ------------------------------------------------------------


def both(sides, measure):
    return [measure(side) for side in sides]


def median_of_rounds(sides, measure):
    """MEASURE(side, round) on one and the other by turns; the middle one of each side."""
    figures = [[measure(side, i) for side in sides] for i in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*figures)]


def fresh_start(side, _round):
    side.stop()
    return side.start_afresh()


def start_again(side, _round):
    side.stop()
    return side.start()


def make_namespaces(sides, plane):
    for side in sides:
        for name in ("bench", "fan"):
            plane.kubectl("--kubeconfig", side.kubeconfig, "create", "namespace", name)


def creates(sides, folder, writers, count):
    """Creates a second; COUNT in each round."""
    def one(side, i):
        before = disk_flushes(folder)
        result = side.load("create", "bench", f"w{writers}-{i}", count(i), writers)
        after = disk_flushes(folder)
        if writers == 1 and before is not None:
            assert after - before >= result["count"], \
                f"{side.name}: {result['count']} creates, {after - before} flushes of the disk: it does not wait for it"
        return result["count"] / result["seconds"]

    row(f"durable creates, {writers} writer{'s' if writers > 1 else ''}", "/s", *median_of_rounds(sides, one), max, WRITES)


def latencies(sides, what, scale, unit, *load):
    results = both(sides, lambda side: side.load(*load))
    for key, name in ("median", "median"), ("p99", "p99"):
        row(f"{what}, {name}", unit, *(r[key] / scale for r in results), min)


def measure(sides, plane, folder):
    row("first start to ready", "ms", *median_of_rounds(sides, fresh_start), min, START)
    time.sleep(2)
    row("resident memory after the start", "MiB", *both(sides, Side.memory), min, MEMORY)
    make_namespaces(sides, plane)
    creates(sides, folder, 1, lambda i: ALONE)
    rest = N - ROUNDS * ALONE
    creates(sides, folder, 16, lambda i: rest * (i + 1) // ROUNDS - rest * i // ROUNDS)
    row(f"resident memory with {N} ConfigMaps", "MiB", *both(sides, Side.memory), min, MEMORY)
    latencies(sides, "get", 1, "us", "get", "bench", "w1-0", ALONE, GETS)
    latencies(sides, f"list of {N}", 1000, "ms", "list", "bench", N, LISTS)
    latencies(sides, f"event at the last of {WATCHERS} watchers", 1000, "ms", "watch", "fan", "e", WATCHERS, WATCHED)
    row("resident memory after all of this", "MiB", *both(sides, Side.memory), min)
    row(f"start with {N} ConfigMaps", "ms", *median_of_rounds(sides, start_again), min, START)
    time.sleep(2)
    row("resident memory after that start", "MiB", *both(sides, Side.memory), min)


def load_average():
    return "load average {:.1f} on {} CPUs".format(os.getloadavg()[0], os.cpu_count())


def main():
    folder = tempfile.mkdtemp(prefix="engine-", dir="/var/tmp")  # /tmp may be in memory
    tempfile.tempdir = folder  # the control plane's, too
    try:
        print(f"starting a control plane for its arguments; {load_average()}", flush=True)
        with ControlPlane() as plane:
            sides = [Engine(folder), Peer(folder, plane)]
            assert os.stat(folder).st_dev == os.stat(plane.run).st_dev
            try:
                measure(sides, plane, folder)
            finally:
                both(sides, Side.stop)
                counted = disk_flushes(folder) is not None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show()
    flushes = "its flushes were counted" if counted else "its flushes are not counted here"
    print(f"\nBoth wait for the disk: {flushes}. {load_average()} at the end")
    for line in missed:
        print("missed: " + line)
    sys.exit(1 if missed else 0)


main()
