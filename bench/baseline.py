#!/usr/bin/python3
"""The example controller on a real control plane: N requests, each one create and one status write.

Prints what was measured beside the figures of controller-runtime and kopf for the same work (their columns are
constants: one run each on a machine like ours), and fails where the work itself is wrong: a write too many or too few.

    bench/baseline.py [N]         (10000)
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import ROOT, ControlPlane, Process, program

N = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
NS = "baseline"
SAMPLES = f"/apis/example.sonde.dev/v1/namespaces/{NS}/samples"
MAPS = f"/api/v1/namespaces/{NS}/configmaps"
AGENT = "sonde/"
rows = []


def row(what, ours, controller_runtime="", kopf="", asked=""):
    rows.append((what, ours, controller_runtime, kopf, asked))
    print(f"  {what}: {ours}", flush=True)


def memory(pid):
    """(RSS, anonymous) in MiB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as f:
        text = f.read()
    kib = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+): +(\d+) kB", text, re.M)}
    return kib["Rss"] / 1024, kib["Anonymous"] / 1024


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def operator(cluster):
    return Process(program("test/example-operator"), "--kubeconfig", cluster.kubeconfig, "--namespace", NS, "--samples")


def create_requests(cluster):
    """About 1.3 kB each, as the baselines had."""
    padding = {f"key-{i:02d}": "x" * 40 for i in range(11)}

    def some(first):
        api = cluster.api()
        for i in range(first, N, 4):
            status, body = api.post(SAMPLES, {
                "apiVersion": "example.sonde.dev/v1", "kind": "Sample",
                "metadata": {"name": f"sample-{i:05d}", "labels": {"app.kubernetes.io/part-of": "baseline"}},
                "spec": {"data": padding}})
            assert status == 201, body

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))


def audited(cluster):
    """Counts of the operator's requests by verb and resource, from the API server's audit log."""
    counts = {}
    for e in cluster.audit():
        if not e.get("userAgent", "").startswith(AGENT) or e["stage"] != "ResponseComplete":
            continue
        ref = e.get("objectRef", {})
        resource = ref.get("resource", "") + ("/" + ref["subresource"] if "subresource" in ref else "")
        key = (e["verb"], resource, e["responseStatus"]["code"])
        counts[key] = counts.get(key, 0) + 1
    return counts


def curl_lists(cluster):
    """Seconds that curl needs for the two lists a restart begins with, one after the other."""
    host, port = cluster.address
    began = time.monotonic()
    for path in (SAMPLES, MAPS + "?labelSelector=sonde.dev%2Fcontroller%3Dexample"):
        glue = "&" if "?" in path else "?"
        subprocess.run(["curl", "-sSf", "-A", "bench", "-o", "/dev/null", "--cacert", cluster.file("pki", "ca.crt"),
                        "--cert", cluster.file("pki", "admin.crt"), "--key", cluster.file("pki", "admin.key"),
                        f"https://{host}:{port}{path}{glue}resourceVersion=0"], check=True)
    return time.monotonic() - began


def until_idle(process, seconds):
    began = time.monotonic()
    match = process.expect(r"idle after (\d+) writes", seconds)
    return time.monotonic() - began, int(match[1])


def restart(cluster):
    """Seconds until all are reconciled, without a write; CPU-seconds and MiB."""
    with operator(cluster) as p:
        seconds, writes = until_idle(p, 120)
        assert writes == 0, writes
        return seconds, cpu_seconds(p.pid), memory(p.pid)[0]


def run(cluster):
    with open(os.path.join(ROOT, "test/tools/example/crd.yaml"), encoding="utf-8") as f:
        cluster.kubectl("apply", "-f", "-", stdin=f.read())
    cluster.kubectl("wait", "--for=condition=Established", "crd/samples.example.sonde.dev")
    cluster.kubectl("create", "namespace", NS)
    row("binary", f"{os.path.getsize(program('sonde')) / 1e6:.1f} MB (with symbols)", "33 MB stripped",
        "needs Python, about 288 MB")

    with operator(cluster) as p:
        until_idle(p, 30)
        time.sleep(1)
        rss, anon = memory(p.pid)
        row("idle RSS, 2 watches", f"{rss:.1f} MiB ({anon:.1f} anonymous)", "31.5 MB (7.4 anonymous)", "49 MB",
            "at most 10 MiB, 3 anonymous")

    print(f"  creating {N} requests", flush=True)
    create_requests(cluster)
    sample = cluster.api().get(f"{SAMPLES}/sample-00000")[1]
    row("one request on the wire", f"{len(json.dumps(sample, separators=(',', ':')))} bytes", "about 1.3 kB")
    with operator(cluster) as p:
        seconds, writes = until_idle(p, 600)
        cpu = cpu_seconds(p.pid)
        rss, anon = memory(p.pid)
    time.sleep(2)  # the audit log is written after the answer
    counts = audited(cluster)
    creates = sum(n for (verb, what, _), n in counts.items() if verb == "create" and what == "configmaps")
    patches = sum(n for (verb, what, _), n in counts.items() if verb == "patch" and what == "samples/status")
    refused = {k: n for k, n in counts.items() if k[2] >= 400 and k[2] != 422}
    row(f"{N} requests, one create and one status write each",
        f"{seconds:.1f} s, {cpu:.2f} CPU-s, {rss:.1f} MiB", "93-112 s, 20-25 CPU-s, 136 MB",
        "2 000: 22.5 s, 10.2 CPU-s, 247 MB", "at most 2 CPU-s for 10 000")
    row("creates / status writes", f"{creates} / {patches} (the operator counted {writes})", "10 000 / 14 934-15 989", "",
        f"exactly {N} / {N}")
    row("RSS with all in cache", f"{rss:.1f} MiB ({anon:.1f} anonymous) for {2 * N} objects", "136 MB", "",
        "at most 32 MiB for 20 000")

    # Each the better one of two, in turns: the server's own work after so many writes is nobody's.
    curls, restarts = [], []
    for _ in range(2):
        curls.append(curl_lists(cluster))
        restarts.append(restart(cluster))
    curl, (seconds, cpu, rss) = min(curls), min(restarts)
    row("restart until all are reconciled", f"{seconds:.2f} s, {cpu:.2f} CPU-s, {rss:.1f} MiB",
        "4.5 s, 2.5 CPU-s, 138 MB")
    row("restart against curl's same two lists", f"{seconds / curl:.2f} times {curl:.2f} s", "", "", "at most 1.3")

    print(f"\n{'':48} {'Sonde':42} {'controller-runtime':32} {'kopf':34} asked")
    for r in rows:
        print(f"{r[0]:48} {r[1]:42} {r[2]:32} {r[3]:34} {r[4]}")
    assert (creates, patches, writes) == (N, N, 2 * N), (creates, patches, writes, counts)
    assert not refused, refused


with ControlPlane(KCLUSTER_AUDIT="1") as plane:
    run(plane)
