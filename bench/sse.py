#!/usr/bin/python3
"""1 000 live streams on loopback: what they cost the server, and how soon a change has reached all of them.

The bar is 250 ms in every round, the worst one included. A round before them warms up and is not counted: with it the server
asks for the first time what the caller may see. One round comes after so long a silence that the server has to ask again. All
streams have one token, as the embedded engine knows no other.
"""

import os
import selectors
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import Engine, wait

CLIENTS = int(os.environ.get("SSE_CLIENTS", "1000"))
BAR = 0.250
ROUNDS = 15
SILENCE = 11  # what a caller may see is remembered for 10 s
AP = "/apis/dprofiler.io/v1alpha1/namespaces/default/algorithmprofilings"


def rss(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmRSS"))


def connect(address, token):
    """A stream whose first event has come."""
    s = socket.create_connection(address)
    s.sendall(f"GET /api/v1/runs/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    data = b""
    while b"event: sync" not in data or not data.endswith(b"\n\n\r\n"):
        more = s.recv(65536)
        assert more, data
        data += more
    s.setblocking(False)
    return s


def reached(streams, mark):
    """When MARK has come to each of STREAMS: (the first, the last)."""
    waiting, tails, times = set(streams), {s: b"" for s in streams}, []
    with selectors.DefaultSelector() as select:
        for s in streams:
            select.register(s, selectors.EVENT_READ)
        until = time.monotonic() + 60
        while waiting and time.monotonic() < until:
            for key, _ in select.select(1):
                data = key.fileobj.recv(65536)
                now = time.monotonic()
                assert data, "a stream was ended"
                tails[key.fileobj] = (tails[key.fileobj] + data)[-8192:]
                if mark in tails[key.fileobj] and key.fileobj in waiting:
                    waiting.discard(key.fileobj)
                    times.append(now)
    assert not waiting, f"{len(waiting)} have not heard of it"
    return min(times), max(times)


def change(api, streams, name):
    """How long it takes from a write's beginning until all STREAMS have it."""
    began = time.monotonic()
    status, _ = api.post(AP, {"apiVersion": "dprofiler.io/v1alpha1", "kind": "AlgorithmProfiling", "metadata": {"name": name},
                              "spec": {"algorithmName": "quick_sort", "inputSize": 10, "suspend": True}})
    assert status == 201
    _, last = reached(streams, b'"name":"%s"' % name.encode())
    wait(lambda: api.get(f"{AP}/{name}")[1].get("status"), 60)
    return last - began


def main():
    with Engine("--no-fsync", "--page-listen", "127.0.0.1:0") as engine:
        page = engine.process.expect(r"page: http://([\d.]+):(\d+)/#t=(\S+)", 60)
        address, token, pid = (page[1], int(page[2])), page[3], engine.process.popen.pid
        api = engine.api()
        before = rss(pid)
        streams = [connect(address, token) for _ in range(CLIENTS)]
        after = rss(pid)
        warm_up, *took = [change(api, streams, f"change-{i}") for i in range(1 + ROUNDS)]
        time.sleep(SILENCE)
        asked = change(api, streams, "after-silence")
        end, took = rss(pid), sorted(took)
        print(f"{CLIENTS} streams: server {before:.1f} MiB before, {after:.1f} MiB with them, {end:.1f} MiB after {2 + ROUNDS} changes "
              f"({(end - before) * 1024 / CLIENTS:.1f} KiB a stream)")
        print(f"from the write's beginning until all have it, {ROUNDS} rounds: median {took[len(took) // 2] * 1000:.0f} ms, worst "
              f"{took[-1] * 1000:.0f} ms; after {SILENCE} s of silence {asked * 1000:.0f} ms; the bar is {BAR * 1000:.0f} ms for each "
              f"(warm-up, not counted: {warm_up * 1000:.0f} ms)")
        for s in streams:
            s.close()
        if max(took[-1], asked) > BAR:
            sys.exit("bench-sse: the worst round is too slow")


main()
