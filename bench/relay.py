#!/usr/bin/python3
"""A state's way from a profiler's rename() to a watch on its request, and what it costs; beside the seed's own sidecar.

    bench/relay.py [latency] [peer] [rest] [growth]       (all of them)

latency   50 runs that report once a second, on the real control plane and on the embedded engine, beside the same two API
          writes, bare, one after the other, plus a watch's delivery, measured by the same program at the same time
peer      one relay beside one sidecar as the full status design has it (bench/peers/sidecar.sh)
rest      a relay that has nothing to do: memory, wake-ups
growth    what an hour of a run writes, and how much etcd grows by it

Exits with 1 when Sonde misses what is expected of it.
"""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", *there) for there in (("test", "lib"), ("python",))]
from sonde_status import ProfilingProgress, ProfilingStatusReporter
from sonde_test import ROOT, ControlPlane, Engine, Process, kubectl_path, program, wait

RUNS, SECONDS = 50, 60
NS = "bench"
FLOOR_NS = NS + "-floor"
PATIENCE = 120
MEDIAN, P99 = 1.5, 4  # times the floor, at most
CPU, MEMORY, LATENCY = 100, 15, 50  # times less than the peer, at least
REPORTS, REPORT_CPU = 500, 2.0  # ms of the profiler's own: at one a second less than 0.2 % of a core
REST_ANONYMOUS, REST_SECONDS = 2.0, 65  # MiB
HOUR_CHANGES, HOUR_HEARTBEATS, HOUR_GROWTH = 180, 120, 2e6  # a state every 20 s, and a heartbeat every 30 s all the same
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
TESTRUNS = f"/apis/test.sonde.dev/v1alpha1/namespaces/{NS}/testruns"

rows, missed = [], []


def row(what, ours, other, ratio, asked, met=True):
    rows.append((what, ours, other, ratio, asked))
    print(f"  {what}: {ours} beside {other}: {ratio}  {'' if met else 'MISSED'}", flush=True)
    if not met:
        missed.append(f"{what}: {ratio}, {asked} is expected")


# --- a run without a node: its pod is played by hand, its relay is real ---------------------------------------------


def made(answer):
    status, body = answer
    assert status in (200, 201), body
    return body


def set_up(server):
    server.kubectl("apply", "-f", os.path.join(ROOT, "test/kinds/crd.yaml"))
    server.kubectl("wait", "--for=condition=Established", "crd/testruns.test.sonde.dev", "--timeout=60s")
    api = server.api()
    for ns in NS, FLOOR_NS:
        made(api.post("/api/v1/namespaces", {"metadata": {"name": ns}}))
    for i in range(4):  # as the operator makes a run's, in a namespace that it does not look at
        run = create_run(api, f"floor-{i}", FLOOR_NS)
        owner = {"apiVersion": run["apiVersion"], "kind": run["kind"], "name": run["metadata"]["name"],
                 "uid": run["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}
        made(api.post(MAPS.replace(NS, FLOOR_NS), {
            "metadata": {"name": f"floor-{i}", "labels": {"app.kubernetes.io/managed-by": "sonde", "sonde.dev/controller": "testrun"},
                         "annotations": {"sonde.dev/plan": "0123456789abcdef"}, "ownerReferences": [owner]},
            "data": {"attempt": "1", "podUID": "floor-pod", "sequence": "0", "state": "Running"}}))


def operator(server, folder):
    return Process(program("test/run-operator"), "--kubeconfig", server.kubeconfig, "--namespace", NS,
                   "--pod-image", "sonde-pod", "--history", os.path.join(folder, "history.db"))


def create_run(api, name, ns=NS):
    return made(api.post(TESTRUNS.replace(NS, ns), {
        "apiVersion": "test.sonde.dev/v1alpha1", "kind": "TestRun", "metadata": {"name": name},
        "spec": {"image": "sonde-pod", "command": ["sleep", "3600"]}}))


def owned(api, path, uid):
    return [o for o in made(api.get(path))["items"]
            if any(r["uid"] == uid for r in o["metadata"].get("ownerReferences", []))]


def pod_of(api, name):
    """The pod of the run's Job, made to look as if its containers ran; and the name of its status ConfigMap."""
    uid = made(api.get(f"{TESTRUNS}/{name}"))["metadata"]["uid"]
    jobs = wait(lambda: owned(api, f"/apis/batch/v1/namespaces/{NS}/jobs", uid), PATIENCE, f"a Job of {name}")
    pods = wait(lambda: owned(api, f"/api/v1/namespaces/{NS}/pods", jobs[0]["metadata"]["uid"]), PATIENCE, f"a pod of {name}")
    pod, now = pods[0], time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    running = [{"name": c["name"], "image": c["image"], "imageID": "", "ready": True, "started": True, "restartCount": 0,
                "state": {"running": {"startedAt": now}}} for c in pod["spec"]["containers"]]
    made(api.patch(f"/api/v1/namespaces/{NS}/pods/{pod['metadata']['name']}/status",
                   {"status": {"phase": "Running", "startTime": now, "containerStatuses": running}}))
    maps = [m for m in owned(api, MAPS, uid) if "sequence" in m["data"]]
    assert len(maps) == 1, [m["metadata"]["name"] for m in maps]
    return pod["metadata"]["uid"], maps[0]["metadata"]["name"]


@contextlib.contextmanager
def relay(server, folder, status_map, pod_uid, number=0):
    """The relay of one run, as it runs in a pod, on the directory FOLDER/NUMBER."""
    directory, ctl = (os.path.join(folder, *p) for p in ((str(number),), ("ctl", str(number))))
    pod = program("sonde-pod")
    subprocess.run([pod, "stage", "--dir", directory, "--ctl", ctl, "--target", os.path.join(folder, "sonde-pod")], check=True)
    with Process(pod, "relay", "--kubeconfig", server.kubeconfig, "--namespace", NS, "--status-map", status_map,
                 "--dir", directory, "--ctl", ctl, "--pod-uid", pod_uid) as process:
        process.directory = directory
        try:
            yield process
        finally:
            process.signal(signal.SIGKILL)  # it would wait for its workload, and there is none


def report(directory, number, steps=1000):
    """What a profiler writes; returns the time of the rename."""
    temporary = os.path.join(directory, ".writing")
    with open(temporary, "w", encoding="utf-8") as f:
        json.dump({"phase": "DecodeSweep", "phaseNumber": 3, "totalPhases": 7, "message": f"state {number}",
                   "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "sequence": number,
                   "progress": {"currentStep": number, "totalSteps": steps, "percentage": round(number / steps * 100, 1),
                                "subPhase": "Benchmarking batch size 256"},
                   "gpuConfig": {"currentGpus": 4, "parallelMapping": "TP=2/DP=2"}}, f)
        f.flush()
        os.fsync(f.fileno())
    now = time.monotonic()
    os.rename(temporary, os.path.join(directory, "profiling_status.json"))
    return now


# --- latency ------------------------------------------------------------------------------------------------------


def latency(server, name, folder):
    set_up(server)
    api = server.api()
    with contextlib.ExitStack() as stack:
        stack.enter_context(operator(server, folder))
        for i in range(RUNS):
            create_run(api, f"run-{i}")
        for i in range(RUNS):
            uid, status_map = pod_of(api, f"run-{i}")
            stack.enter_context(relay(server, folder, status_map, uid, i))
        wait(lambda: all(m["data"]["state"] == "Running" or m["data"]["podUID"] for m in made(api.get(MAPS))["items"]
                         if "podUID" in m["data"]), PATIENCE, "all relays have begun")
        print(f"  {RUNS} runs on {name}, {SECONDS} s", flush=True)
        done = subprocess.run([program("bench/relay-load"), server.kubeconfig, NS, folder, str(RUNS), str(SECONDS)],
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
    run, status_map, floor = map(json.loads, done.stdout.splitlines())
    assert run["count"] >= 2000 and floor["count"] >= 2000, done.stdout
    for key, most in ("median", MEDIAN), ("p99", P99):
        ratio = run[key] / floor[key]
        row(f"{name}: rename to watch, {key} of {run['count']}", f"{run[key] / 1000:.2f} ms",
            f"{floor[key] / 1000:.2f} ms (floor, {floor['count']})", f"{ratio:.2f} times", f"at most {most}", ratio <= most)
    row(f"{name}: of that, rename to ConfigMap", f"{status_map['median'] / 1000:.2f} ms", f"{status_map['p99'] / 1000:.2f} ms p99", "", "")
    row(f"{name}: longest", f"{run['max'] / 1000:.1f} ms", f"{floor['max'] / 1000:.1f} ms (floor)", "", "")
    row(f"{name}: states that a later one overtook", run["skipped"], "", "", "")


# --- beside the sidecar -------------------------------------------------------------------------------------------


class Arrivals(threading.Thread):
    """When each numbered state was first there in a watch of one ConfigMap."""

    def __init__(self, api, name):
        super().__init__(daemon=True)
        self.path, self.api, self.at = f"{MAPS}?watch=true&fieldSelector=metadata.name%3D{name}", api, {}
        self.start()

    def run(self):
        with contextlib.suppress(OSError, AssertionError):
            for event in self.api.watch(self.path):
                match = re.search(r"state (\d+)", event["object"].get("data", {}).get("status.json", ""))
                if match:
                    self.at.setdefault(int(match[1]), time.monotonic())


def longest(arrivals, reported):
    """The longest way of a state, or of a later one in its place."""
    def arrived(number):
        return min((at for n, at in list(arrivals.at.items()) if n >= number), default=None)
    wait(lambda: arrived(max(reported)), PATIENCE, "the last state")
    return max(arrived(n) - at for n, at in reported.items())


def stat(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(") ")[2].split()


def tree(pid):
    """PID and what descends from it."""
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        with contextlib.suppress(OSError), open(f"/proc/{found[-1]}/task/{found[-1]}/children", encoding="utf-8") as f:
            todo += map(int, f.read().split())
    return found


def memory(pid, field="Rss"):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(field + ":")) / 1024
    return 0


def cpu_of_relay(pid):
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as f:
        return int(f.read().split()[0]) / 1e6  # ms


def cpu_of_tree(pid):
    return sum(map(int, stat(pid)[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")  # with children that have ended


class Peak(threading.Thread):
    """The most memory that a process and its descendants had together."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.mib, self.over = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.005):
            self.mib = max(self.mib, sum(map(memory, tree(self.pid))))


def reports(directory, count, pause):
    """COUNT states, PAUSE() s after each; the time of each."""
    reported = {}
    for number in range(1, count + 1):
        reported[number] = report(directory, number)
        time.sleep(pause())
    return reported


def of_peer(server, folder):
    directory = os.path.join(folder, "peer")
    os.makedirs(directory)
    arrivals = Arrivals(server.api(), "peer-status")
    environment = {"KUBECONFIG": server.kubeconfig, "PATH": os.path.dirname(kubectl_path()) + ":" + os.environ["PATH"]}
    with Process(os.path.join(ROOT, "bench", "peers", "sidecar.sh"), os.path.join(directory, "profiling_status.json"),
                 "peer-status", NS, env=environment) as sidecar:
        peak = Peak(sidecar.pid)
        chance = random.Random(1)
        reported = reports(directory, 6, lambda: chance.uniform(10.5, 14))
        slowest = longest(arrivals, reported)
        peak.over.set()
        return {"cpu": cpu_of_tree(sidecar.pid) / len(reported), "memory": peak.mib, "latency": slowest * 1000}


def of_relay(server, folder):
    status_map = "own-status"
    made(server.api().post(MAPS, {"metadata": {"name": status_map}, "data": {
        "attempt": "1", "podUID": "", "sequence": "0", "state": "Pending"}}))
    arrivals = Arrivals(server.api(), status_map)
    with relay(server, folder, status_map, "peer-pod", "own") as process:
        report(process.directory, 1)
        wait(lambda: 1 in arrivals.at, PATIENCE, "the first state")
        before = cpu_of_relay(process.pid)
        reported = {}
        for number in range(2, 62):
            reported[number] = report(process.directory, number)
            time.sleep(1)
        slowest = longest(arrivals, reported)
        return {"cpu": (cpu_of_relay(process.pid) - before) / len(reported), "memory": memory(process.pid),
                "latency": slowest * 1000}


def of_writer(folder):
    """What reporting costs the profiler itself."""
    reporter = ProfilingStatusReporter(folder)
    cpu, began = time.process_time(), time.monotonic()
    for number in range(1, REPORTS + 1):
        reporter.update("DecodeSweep", f"state {number}", ProfilingProgress(number, REPORTS))
    cpu = (time.process_time() - cpu) * 1000 / REPORTS
    elapsed = (time.monotonic() - began) * 1000 / REPORTS
    with open(reporter.status_file, encoding="utf-8") as f:
        assert json.load(f)["sequence"] == REPORTS
    row("a report by a profiler in Python: its CPU", f"{cpu:.2f} ms", f"{elapsed:.2f} ms until it is on the disk", "",
        f"under {REPORT_CPU:.0f}", cpu < REPORT_CPU)


def peer(server, folder):
    results = {}

    def measure(name, fn):
        results[name] = fn(server, folder)

    threads = [threading.Thread(target=measure, args=pair) for pair in (("peer", of_peer), ("relay", of_relay))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ours, theirs = results["relay"], results["peer"]
    for key, what, unit, least in (("cpu", "CPU for an update", "ms", CPU), ("memory", "resident memory at its peak", "MiB", MEMORY),
                                   ("latency", "longest rename to ConfigMap", "ms", LATENCY)):
        ratio = theirs[key] / ours[key]
        row(what, f"{ours[key]:.2f} {unit}", f"{theirs[key]:.1f} {unit} (sidecar)", f"{ratio:.0f} times less",
            f"at least {least}", ratio >= least)
    of_writer(tempfile.mkdtemp(dir=folder))


# --- at rest ------------------------------------------------------------------------------------------------------


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M)[1])


def rest(server, folder):
    status_map = "rest-status"
    made(server.api().post(MAPS, {"metadata": {"name": status_map}, "data": {
        "attempt": "1", "podUID": "", "sequence": "0", "state": "Pending"}}))
    with relay(server, folder, status_map, "rest-pod", "rest") as process:
        report(process.directory, 1)
        wait(lambda: made(server.api().get(f"{MAPS}/{status_map}"))["data"]["sequence"] != "0", PATIENCE, "the first state")
        time.sleep(2)
        before, cpu = switches(process.pid), cpu_of_relay(process.pid)
        time.sleep(REST_SECONDS)
        woken, used = switches(process.pid) - before, cpu_of_relay(process.pid) - cpu
        anonymous = memory(process.pid, "Anonymous")
        row("a relay at rest: anonymous memory", f"{anonymous:.2f} MiB", f"{memory(process.pid):.1f} MiB resident", "",
            f"under {REST_ANONYMOUS}", anonymous < REST_ANONYMOUS)
        # a look around every 10 s; a heartbeat every 30 s: the timer, and the answer
        most = REST_SECONDS // 10 + 1 + 2 * (REST_SECONDS // 30 + 1)
        row(f"a relay at rest: wake-ups in {REST_SECONDS} s", woken, f"{used:.2f} ms of CPU", "", f"at most {most}", woken <= most)


# --- growth -------------------------------------------------------------------------------------------------------


def etcd_size(plane):
    with open(plane.file("pid", "etcd"), encoding="utf-8") as f:
        pid = f.read().split()[0]
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
        arguments = f.read().split("\0")
    url = arguments[arguments.index("--listen-client-urls") + 1].split(",")[0]
    with urllib.request.urlopen(url + "/metrics", timeout=10) as answer:
        return float(re.search(rb"^etcd_mvcc_db_total_size_in_use_in_bytes (\S+)", answer.read(), re.M)[1])


def writes_of(api, path, version):
    """How often objects of PATH were written since VERSION."""
    count = 0
    for event in api.watch(f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=2"):
        count += event["type"] == "MODIFIED"
    return count


def growth(server, folder):
    """An hour's states in a minute: as many writes, as large; heartbeats beside them, as the relay writes them."""
    api = server.api()
    with operator(server, folder):
        create_run(api, "hour")
        uid, status_map = pod_of(api, "hour")
        with relay(server, folder, status_map, uid, "hour") as process:
            report(process.directory, 1, HOUR_CHANGES)
            wait(lambda: "progress" in made(api.get(f"{TESTRUNS}/hour")).get("status", {}), PATIENCE, "the first state")
            time.sleep(2)
            versions = {path: made(api.get(path))["metadata"]["resourceVersion"] for path in (MAPS, TESTRUNS)}
            before = etcd_size(server)
            for number in range(2, HOUR_CHANGES + 2):
                report(process.directory, number, HOUR_CHANGES + 1)
                time.sleep(0.25)
            time.sleep(2)
            after = etcd_size(server)
            maps, owners = (writes_of(api, path, versions[path]) for path in (MAPS, TESTRUNS))
            for _ in range(HOUR_HEARTBEATS):
                made(api.patch(f"{MAPS}/{status_map}", {"data": {"heartbeat": "2026-01-01T00:00:00Z" if _ % 2 else "2026-01-01T00:00:01Z"}}))
            beats = etcd_size(server) - after
    grown = after - before + beats
    row(f"an hour of a run: writes for {HOUR_CHANGES} states", f"{maps} ConfigMap, {owners} request",
        f"at most {HOUR_HEARTBEATS} heartbeats", "", "")
    row("an hour of a run: etcd grows by", f"{grown / 1e6:.2f} MB",
        f"{(after - before) / HOUR_CHANGES:.0f} B a state, {beats / HOUR_HEARTBEATS:.0f} B a heartbeat", "",
        f"at most {HOUR_GROWTH / 1e6:.0f} MB", grown <= HOUR_GROWTH)


# --- the front ----------------------------------------------------------------------------------------------------


def show():
    print()
    for r in (("", "Sonde", "beside", "ratio", "expected"), *rows):
        print(f"{r[0]:58} {r[1]!s:>24} {r[2]!s:>34} {r[3]:>16}   {r[4]}".rstrip())


def load_average():
    return "load average {:.1f} on {} CPUs".format(os.getloadavg()[0], os.cpu_count())


def on_kubernetes(folder, parts):
    with ControlPlane() as plane:
        if "latency" in parts:
            latency(plane, "Kubernetes", os.path.join(folder, "kubernetes"))
        else:
            set_up(plane)
        for part in peer, rest, growth:
            if part.__name__ in parts:
                print(f"  {part.__name__}", flush=True)
                part(plane, os.path.join(folder, part.__name__))


def main():
    parts = sys.argv[1:] or ["latency", "peer", "rest", "growth"]
    unknown = set(parts) - {"latency", "peer", "rest", "growth"}
    assert not unknown, f"there is no part {unknown}; see the head of this file"
    folder = tempfile.mkdtemp(prefix="relay-", dir="/var/tmp")  # /tmp may be in memory
    tempfile.tempdir = folder  # the engines' too
    for name in "kubernetes", "embedded", "peer", "rest", "growth":
        os.makedirs(os.path.join(folder, name))
    print(load_average(), flush=True)
    try:
        on_kubernetes(folder, parts)
        if "latency" in parts:
            with Engine("--no-node") as engine:
                latency(engine, "embedded engine", os.path.join(folder, "embedded"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show()
    print(f"\n{load_average()} at the end")
    for line in missed:
        print("missed: " + line)
    sys.exit(1 if missed else 0)


main()
