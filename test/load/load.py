#!/usr/bin/python3
"""The load generator against a simulated engine and a hostile server: counts, faults, schedules, files, exits.

Nothing here depends on how fast the machine is. Whether a busy client makes a run invalid is decided by figures in
test/unit/load_valid.c; how exact the times are is measured by bench/load.py.
"""

import asyncio
import contextlib
import csv
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import Process, main, program, wait

POD = program("sonde-pod")
MODEL = {"model": "sim/m", "prefill": {"baseMs": 1, "perTokenUs": 1}, "kvTokensPerGpu": 10000000, "prefixCache": False,
         "decode": {"baseMs": 2, "perRequestUs": 20, "perKvTokenNs": 0}}
ISL, OSL = 64, 40
OK, FAILED, INVALID = 0, 1, 3  # exit statuses


def load(url, *arguments, code=OK):
    """The summary (-o json) and standard error of a run that must exit with CODE.

    A run with numbers is valid or not by what the machine let the client do: with CODE OK either will do, but exit status, JSON and
    standard error must agree."""
    done = subprocess.run([POD, "load", url, "--model", "sim/m", "-o", "json", *map(str, arguments)], text=True, timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    found = json.loads(done.stdout) if done.stdout else None
    reason = found and found["sonde"].get("invalid")
    if done.returncode in (OK, INVALID):
        assert (done.returncode == INVALID) == bool(reason), (done.returncode, found["sonde"], done.stderr)
        assert code in (OK, done.returncode), (done.returncode, done.stdout, done.stderr)
    else:
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    said = [line for line in done.stderr.splitlines() if line.startswith("sonde-pod: invalid: ")]
    assert said == ([f"sonde-pod: invalid: {reason}"] if reason else []), (reason, done.stderr)
    return found, done.stderr


def records(folder):
    with open(os.path.join(folder, "profile_export.jsonl"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


@contextlib.contextmanager
def sim(**model):
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        file, port_file = os.path.join(folder, "model.json"), os.path.join(folder, "port")
        with open(file, "w", encoding="utf-8") as f:
            json.dump({**MODEL, **model}, f)
        with Process(POD, "sim", file, "--listen", "127.0.0.1:0", "--port-file", port_file) as process:
            wait(lambda: os.path.exists(port_file), 60, "a port")
            with open(port_file, encoding="utf-8") as f:
                yield f"127.0.0.1:{int(f.read())}", file, process


def truth(file, concurrency, requests, warmup):
    done = subprocess.run([POD, "sim", file, "--truth", "--concurrency", str(concurrency), "--requests", str(requests),
                           "--warmup", str(warmup), "--isl", str(ISL), "--osl", str(OSL)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


# --- what is measured ---------------------------------------------------------------------------------------------------


def a_run_is_counted_and_its_times_agree():
    """all requests are counted with their lengths, the parts of a request add up, and no time is below the model's"""
    with sim() as (address, file, _), tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        for concurrency, requests in (1, 5), (64, 128):
            expected = truth(file, concurrency, requests, concurrency)
            found, _ = load(f"http://{address}", "--concurrency", concurrency, "--request-count", requests, "--warmup-request-count",
                            concurrency, "--isl", ISL, "--osl", OSL, "--artifact-dir", folder)
            assert found["request_count"]["avg"] == requests and not found.get("error_request_count"), found
            for tag, length in ("input_sequence_length", ISL), ("output_sequence_length", OSL):
                assert found[tag]["min"] == found[tag]["max"] == expected[tag]["avg"] == length, (tag, found[tag])
            for tag in "time_to_first_token", "inter_token_latency", "request_latency":
                steps = [found[tag][k] for k in ("min", "p50", "p90", "p99", "max")]
                assert steps == sorted(steps) and found[tag]["min"] <= found[tag]["avg"] <= found[tag]["max"], found[tag]
                assert found[tag]["count"] == requests, found[tag]
            for r in records(folder):
                first, gap, whole = (r["metrics"][t]["value"] for t in ("time_to_first_token", "inter_token_latency", "request_latency"))
                assert abs(first + (OSL - 1) * gap - whole) < 1e-3, r
            if concurrency == 1:  # each alone in the engine: no answer can be earlier than the model has it
                for tag in "time_to_first_token", "request_latency":
                    assert found[tag]["min"] >= expected[tag]["min"], (tag, found[tag], expected[tag])


def answers_may_come_whole():
    """answers that come whole have a latency and no first token"""
    with sim() as (address, _, _):
        for kind in "chat", "completions":
            found, _ = load(f"http://{address}", "--no-streaming", "--endpoint-type", kind, "--osl", 5, "--request-count", 4)
            assert found["request_count"]["avg"] == 4 and found["output_sequence_length"]["avg"] == 5, found
            assert found["request_latency"]["count"] == 4 and "time_to_first_token" not in found, found
            found, _ = load(f"http://{address}", "--endpoint-type", kind, "--osl", 4, "--request-count", 4)
            assert found["time_to_first_token"]["count"] == 4, found


# --- a server that misbehaves: by a request's max_tokens it knows how -------------------------------------------------

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = SSE + b"Transfer-Encoding: chunked\r\n\r\n"


def event(text, **more):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}, **more}]}, ensure_ascii=False).encode() + b"\n\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


DONE = b"data: [DONE]\n\n"
GOOD = [event("one"), event(" two"), event(" three"), event(" four", finish_reason="stop"), DONE]
LAST = b"0\r\n\r\n"


async def good(writer):
    writer.write(CHUNKED)
    for e in GOOD:
        await asyncio.sleep(0.01)
        writer.write(chunk(e))
    writer.write(LAST)


async def closes_mid_stream(writer):
    writer.write(CHUNKED + chunk(GOOD[0]) + chunk(GOOD[1]))
    return True


async def ends_without_done(writer):
    writer.write(CHUNKED + chunk(GOOD[0]) + LAST)


async def closes_a_stream_without_length(writer):
    writer.write(SSE + b"Connection: close\r\n\r\n" + GOOD[0])
    return True


async def resets(writer):
    writer.write(CHUNKED + chunk(GOOD[0]))
    await writer.drain()
    await asyncio.sleep(0.02)
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    return True


async def splits_a_character(writer):
    whole = event("\u00e9\U0001f600")  # how many tokens that is nobody knows
    cut = whole.index("\U0001f600".encode()) + 2
    writer.write(CHUNKED + chunk(whole[:cut]))
    await writer.drain()
    await asyncio.sleep(0.02)
    writer.write(chunk(whole[cut:]) + b"".join(map(chunk, GOOD[1:])) + LAST)


async def sends_half_a_character(writer):
    writer.write(CHUNKED + chunk(b'data: {"choices":[{"index":0,"delta":{"content":"\xc3"}}]}\n\n') + b"".join(map(chunk, GOOD)) + LAST)


async def single_bytes(writer):
    data = CHUNKED + b"".join(chunk(bytes([b])) for e in GOOD for b in e) + LAST
    for i in range(0, len(data), 7):
        writer.write(data[i:i + 7])
        if i % 70 == 0:
            await writer.drain()
            await asyncio.sleep(0)


def refuses(status, text):
    async def answer(writer):
        body = json.dumps({"error": {"message": text}}).encode()
        writer.write(b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    return answer


async def hangs_at_once(_):
    await asyncio.sleep(600)


async def hangs_mid_stream(writer):
    writer.write(CHUNKED + chunk(GOOD[0]))
    await asyncio.sleep(600)


async def endless_header(writer):
    writer.write(b"HTTP/1.1 200 OK\r\n")
    with contextlib.suppress(ConnectionError):
        for i in range(100000):
            writer.write(b"X-%d: %s\r\n" % (i, b"x" * 500))
            await writer.drain()
    return True


async def too_long_a_length(writer):
    body = b"".join(GOOD)
    writer.write(SSE + b"Content-Length: %d\r\n\r\n%s" % (len(body) + 100, body))
    return True


async def too_short_a_length(writer):
    body = b"".join(GOOD)
    writer.write(SSE + b"Content-Length: %d\r\n\r\n%s" % (len(body) - 20, body))


async def no_http(writer):
    writer.write(b"hello, who is there?\r\n\r\n")
    return True


async def no_json(writer):
    writer.write(CHUNKED + chunk(b"data: {nonsense\n\n") + LAST)


async def an_error_in_the_stream(writer):
    writer.write(CHUNKED + chunk(GOOD[0]) + chunk(b'data: {"error": {"message": "out of memory"}}\n\n') + LAST)


async def not_streamed(writer):
    body = json.dumps({"choices": [{"message": {"content": "whole"}}]}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def nothing_in_it(writer):
    writer.write(CHUNKED + chunk(DONE) + LAST)


async def too_large_an_event(writer):
    writer.write(CHUNKED)
    with contextlib.suppress(ConnectionError):
        for _ in range(64):
            writer.write(chunk(b"data: " + b"x" * 65536))
            await writer.drain()
    return True


async def closes_when_it_is_asked_again(writer):
    """Answers well once; as a server that closes idle connections just when the next request comes."""
    await good(writer)
    writer.asked_before = True


async def keeps_the_end_to_itself(writer):
    """All events, and then neither the end of HTTP nor of the connection."""
    for e in GOOD:
        writer.write((CHUNKED if e is GOOD[0] else b"") + chunk(e))
        await asyncio.sleep(0.01)
    await asyncio.sleep(600)


async def repeats_what_it_got(writer):
    key = re.search(r"authorization: (.*)\r", writer.head, re.I)
    text = json.dumps({"error": {"message": f"no access with {key[1] if key else 'nothing'}"}}).encode()
    writer.write(b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


async def closes_without_a_word(_):
    return True


async def all_at_once(writer):
    await asyncio.sleep(0.03)
    writer.write(CHUNKED + b"".join(chunk(e) for e in GOOD[:3] * 3 + GOOD[3:]) + LAST)


async def never_says_the_same(writer):
    await refuses(503, f"try again at {time.monotonic_ns()}")(writer)


# What the server does, what becomes of the request (None: it succeeds), and a word of the message.
FAULTS = [
    (good, None, None), (closes_mid_stream, "ConnectionLost", "within the body"), (ends_without_done, "StreamCut", "DONE"),
    (closes_a_stream_without_length, "StreamCut", "DONE"), (resets, "ConnectionLost", "broke|closed"),
    (splits_a_character, None, None), (sends_half_a_character, "MalformedStream", "UTF-8"), (single_bytes, None, None),
    (refuses(429, "slow down"), "HTTP 429", "slow down"), (refuses(500, "it broke"), "HTTP 500", "it broke"),
    (refuses(404, "no such model"), "HTTP 404", "no such model"), (hangs_at_once, "Timeout", ""), (hangs_mid_stream, "Timeout", ""),
    (endless_header, "TooLarge", "head"), (too_long_a_length, "ConnectionLost", "within the body"),
    (too_short_a_length, "StreamCut|MalformedStream|ProtocolError", ""), (no_http, "ProtocolError", "HTTP"),
    (no_json, "MalformedStream", "event"), (an_error_in_the_stream, "ServerError", "out of memory"),
    (not_streamed, "NotStreamed", "--no-streaming"), (nothing_in_it, "EmptyAnswer", "content"),
    (too_large_an_event, "TooLarge", "event"), (closes_when_it_is_asked_again, None, None),
    (keeps_the_end_to_itself, None, None), (repeats_what_it_got, "HTTP 401", "no access"),
    (closes_without_a_word, "ConnectionLost", "closed"),
]
OTHERS = [all_at_once, never_says_the_same]  # by the numbers after those


def number_of(answer):
    """The max_tokens by which the server gives ANSWER."""
    return ([f[0] for f in FAULTS] + OTHERS).index(answer) + 1


class Hostile:
    """Serves FAULTS[max_tokens - 1] in a thread; `asked` has the heads and bodies of all requests."""

    def __init__(self, tls=None):
        self.asked = []
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    async def _serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(re.search(r"content-length: (\d+)", head, re.I)[1])
                body = json.loads(await reader.readexactly(length))
                if getattr(writer, "asked_before", False):
                    break
                self.asked.append((head, body))
                writer.head = head
                answer = ([f[0] for f in FAULTS] + OTHERS)[body.get("max_tokens", 1) - 1]
                if await answer(writer):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512, ssl=self._tls))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()

    def __enter__(self):
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def url(self):
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"


def write_trace(folder, lines):
    path = os.path.join(folder, "trace.jsonl")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    return path


def check_record(fault, record):
    name, wanted, word = fault[0].__name__, fault[1], fault[2]
    if wanted is None:
        assert record["error"] is None, (name, record)
        assert record["metrics"]["output_sequence_length"]["value"] == 4 or name == "splits_a_character", (name, record)
    else:
        assert re.fullmatch(wanted, record["error"]["type"]) and re.search(word, record["error"]["message"]), (name, record)


def every_fault_ends_its_request_alone():
    """every fault ends its request with an error of its own, and the others are as they were"""
    faults = [f for f in FAULTS if f[1] != "Timeout"]
    kinds = [k for fault in faults[1:] for k in (faults[0], fault)] + faults[:1] * 10
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder, Hostile() as server:
        trace = write_trace(folder, [{"input_length": 10, "output_length": number_of(k[0])} for k in kinds])
        found, _ = load(server.url, "--input-file", trace, "--concurrency", 8, "--artifact-dir", folder)
        seen = records(folder)
    assert [r["metadata"]["session_num"] for r in seen] == list(range(len(kinds))), seen
    for fault, record in zip(kinds, seen):
        check_record(fault, record)
    for record in (r for k, r in zip(kinds, seen) if k is faults[0]):
        assert record["metrics"]["time_to_first_token"]["value"] >= 9, record
        if "inter_chunk_latency" in record["metrics"]:
            assert len(record["metrics"]["inter_chunk_latency"]["value"]) == 3, record
    missing = sum(not r["error"] and "inter_chunk_latency" not in r["metrics"] for r in seen)  # chunks that were read at once
    assert missing == found["sonde"]["requests_without_icl"], (missing, found["sonde"])
    succeeded = sum(k[1] is None for k in kinds)
    assert found["request_count"]["avg"] == succeeded and found["error_request_count"]["avg"] == len(kinds) - succeeded, found
    assert sum(e["count"] for e in found["error_summary"]) == len(kinds) - succeeded, found["error_summary"]


def a_server_that_hangs_meets_the_timeout():
    """a request that is not answered, or not to its end, ends by the timeout"""
    kinds = [f for f in FAULTS if f[1] == "Timeout"]
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder, Hostile() as server:
        trace = write_trace(folder, [{"input_length": 10, "output_length": number_of(k[0])} for k in kinds])
        load(server.url, "--input-file", trace, "--concurrency", len(kinds), "--request-timeout-seconds", 0.5, "--artifact-dir", folder,
             code=FAILED)
        seen = records(folder)
    assert len(seen) == len(kinds) == 2, seen
    for fault, record in zip(kinds, seen):
        check_record(fault, record)


def a_closed_connection_is_not_a_failure():
    """a request that meets a connection that the server has just closed goes out once more"""
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder, Hostile() as server:
        trace = write_trace(folder, [{"input_length": 3, "output_length": number_of(closes_when_it_is_asked_again)}] * 6)
        found, _ = load(server.url, "--input-file", trace)
        assert found["request_count"]["avg"] == 6 and len(server.asked) == 6, (found, len(server.asked))


def kinds_of_failures_outlive_their_texts():
    """after more different sentences than are kept a new kind of failure has its name"""
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder, Hostile() as server:
        last = [f[1] for f in FAULTS].index("HTTP 404") + 1
        lengths = [number_of(never_says_the_same)] * 300 + [last]
        trace = write_trace(folder, [{"input_length": 3, "output_length": n} for n in lengths])
        load(server.url, "--input-file", trace, "--workers-max", 1, "--artifact-dir", folder, code=FAILED)
        errors = [r["error"] for r in records(folder)]
        assert [e["type"] for e in errors] == ["HTTP 503"] * 300 + ["HTTP 404"], errors
        assert len({e["message"] for e in errors}) == 256 + 2, errors  # the texts that are kept, and the two kinds


def a_server_that_closes_is_not_hammered():
    """a server that takes connections and closes them is asked ever less often"""
    with Hostile() as server:
        load(server.url, "--request-count", 3, "--isl", 3, "--osl", number_of(closes_without_a_word), code=FAILED)
        assert len(server.asked) == 3, server.asked  # it goes on
        load(server.url, "--benchmark-duration", 1, "--isl", 3, "--osl", number_of(closes_without_a_word), code=FAILED)
        assert len(server.asked) < 3 + 30, len(server.asked)


def chunks_that_come_at_once_are_counted():
    """chunks that a server sends at once have no times between them, and are counted"""
    with Hostile() as server:
        found, said = load(server.url, "--request-count", 8, "--isl", 3, "--osl", number_of(all_at_once))
        ours = found["sonde"]
        assert ours["shared_first_reads"] == 1 and ours["requests_without_icl"] == 8, (found, said)
        assert "inter_chunk_latency" not in found, found


def the_url_may_have_a_version():
    """a URL that ends in /v1, --url and --endpoint ask for what is meant"""
    with Hostile() as server:
        for arguments, path in (([server.url + "/v1"], "/v1/chat/completions"), (["--url", server.url], "/v1/chat/completions"),
                                ([server.url, "--endpoint", "/my/chat"], "/my/chat")):
            done = subprocess.run([POD, "load", *arguments, "--model", "m", "--request-count", "1", "--ui", "none", "--record-processors", "2"],
                                  capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode in (OK, INVALID) and server.asked[-1][0].startswith(f"POST {path} "), (arguments, done, server.asked[-1])


# --- schedules ----------------------------------------------------------------------------------------------------------


def an_open_loop_keeps_its_schedule():
    """an open loop sends by the clock, and says how late it was"""
    with sim() as (address, _, _), tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        for pattern in "constant", "poisson", "gamma":
            found, _ = load(f"http://{address}", "--request-rate", 100, "--arrival-pattern", pattern, "--request-count", 60,
                            "--isl", 10, "--osl", 3, "--artifact-dir", folder, "--random-seed", 7)
            assert found["request_count"]["avg"] == 60, found
            starts = [r["metadata"]["request_start_ns"] / 1e9 - r["sonde"]["lateness_us"] / 1e6 for r in records(folder)]
            gaps = [b - a for a, b in zip(starts, starts[1:])]  # of the schedule, whatever the machine did
            if pattern == "constant":
                assert all(abs(g - 0.01) < 1e-4 for g in gaps), gaps
            else:
                assert 0.3 < sum(gaps) < 1.5 and max(gaps) > 0.015, gaps


def what_was_due_and_not_sent_is_counted():
    """an open loop with a cap says how many requests found no place under it"""
    with sim(decode={"baseMs": 20}) as (address, _, _):
        arguments = ("--request-rate", 50, "--arrival-pattern", "constant", "--concurrency", 1, "--benchmark-duration", 1, "--isl", 10, "--osl", 10)
        found, _ = load(f"http://{address}", *arguments)
        assert found["sonde"]["unsent_request_count"] > 10, found
        assert found["request_count"]["avg"] + found["sonde"]["unsent_request_count"] == 50, found
        assert found["sonde"]["simulated"] is True, found["sonde"]
        done = subprocess.run([POD, "load", f"http://{address}", "--model", "sim/m", *map(str, arguments)], capture_output=True, text=True,
                              timeout=60, check=False)
        assert "unsent: " in done.stdout and "SIMULATED" in done.stdout, done


def a_duration_ends_the_run():
    """a duration ends the sending, the grace period what is under way"""
    with Hostile() as server:  # the warm-up hangs as well
        for warmup in 0, 3:
            found, _ = load(server.url, "--benchmark-duration", 0.5, "--benchmark-grace-period", 0, "--concurrency", 4, "--isl", 3,
                            "--warmup-request-count", warmup, "--osl", number_of(hangs_at_once), code=FAILED)
            assert found["sonde"]["cancelled_request_count"] == 4, found
    with sim(decode={"baseMs": 20}) as (address, _, _), tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        found, _ = load(f"http://{address}", "--benchmark-duration", "300ms", "--concurrency", 2, "--isl", 10, "--osl", 10,
                        "--artifact-dir", folder)  # the grace period is long enough for all
        seen = records(folder)
        assert found["request_count"]["avg"] == len(seen) >= 2 and found["sonde"]["cancelled_request_count"] == 0, found


def a_trace_is_replayed():
    """a trace is replayed in its own time, with its own prompts"""
    lines = [{"timestamp": 5000, "input_length": 30, "output_length": 1, "hash_ids": [7]},
             {"timestamp": 5100, "text_input": "what is this", "output_length": 1},
             {"timestamp": 5250, "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "why?"}], "output_length": 1},
             {"timestamp": 5300, "input_length": 20, "output_length": 1, "hash_ids": [7]}]
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder, Hostile() as server:
        load(server.url, "--input-file", write_trace(folder, lines), "--artifact-dir", folder)
        bodies = sorted((body for _, body in server.asked), key=lambda b: len(b["messages"][-1]["content"]))  # late ones go out together
        assert bodies[0]["messages"] == lines[2]["messages"], bodies[0]
        assert bodies[1]["messages"] == [{"role": "user", "content": "what is this"}], bodies[1]
        last, first = (bodies[i]["messages"][0]["content"].split() for i in (2, 3))
        assert len(first) == 30 and len(last) == 20 and first[:20] == last, (first, last)
        due = [r["metadata"]["request_start_ns"] / 1e6 - r["sonde"]["lateness_us"] / 1e3 for r in records(folder)]
        assert all(abs(d - due[0] - at) < 0.1 for d, at in zip(due, (0, 100, 250, 300))), due
        for bad, word in (({"input_length": 0}, "input_length"), ({"nothing": 1}, "input_length"), ([], "object"),
                          ({"input_length": 5, "delay": 3}, "delay"), ({"timestamp": -1, "input_length": 5}, "timestamp")):
            _, said = load(server.url, "--input-file", write_trace(folder, [{"input_length": 3}, bad]), code=FAILED)
            assert "line 2" in said and word in said, said


# --- files ----------------------------------------------------------------------------------------------------------------


def the_files_say_the_same():
    """the files in the artifact directory read back as what was measured"""
    with sim() as (address, _, _), tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        found, _ = load(f"http://{address}", "--concurrency", 4, "--request-count", 20, "--warmup-request-count", 4, "--osl", 6,
                        "--isl", 12, "--goodput", "time_to_first_token:60000 request_latency:60000", "--artifact-dir", folder,
                        "--extra-inputs", "ignore_eos:true", "--extra-inputs", "user:someone", "--num-dataset-entries", 5)
        with open(os.path.join(folder, "profile_export_aiperf.json"), encoding="utf-8") as f:
            assert json.load(f) == found
        seen = records(folder)
        assert len(seen) == 20 and {r["metadata"]["benchmark_phase"] for r in seen} == {"profiling"}, seen
        for tag in "time_to_first_token", "inter_token_latency", "request_latency":
            values = [r["metrics"][tag]["value"] for r in seen]
            assert abs(sum(values) / 20 - found[tag]["avg"]) < 1e-6 and max(values) == found[tag]["max"], tag
        assert found["good_request_count"]["avg"] == 20, found
        with open(os.path.join(folder, "profile_export_aiperf.csv"), encoding="utf-8") as f:
            rows = list(csv.reader(f))
        ttft = next(r for r in rows if r and r[0].startswith("Time to First Token"))
        assert abs(float(ttft[1]) - found["time_to_first_token"]["avg"]) < 0.01, ttft
        with open(os.path.join(folder, "inputs.json"), encoding="utf-8") as f:
            inputs = json.load(f)["data"]
        assert len(inputs) == 5, len(inputs)
        payload = inputs[0]["payloads"][0]
        assert payload["ignore_eos"] is True and payload["user"] == "someone" and payload["max_tokens"] == 6, payload
        assert len(payload["messages"][0]["content"].split()) == 12, payload


def keys_are_sent_and_never_shown():
    """headers and key come from files and are in no output, also with TLS"""
    with tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        paths = {name: os.path.join(folder, name) for name in ("key", "headers", "cert.pem", "key.pem")}
        with open(paths["key"], "w", encoding="utf-8") as f:
            f.write("sk-very-secret\n")
        with open(paths["headers"], "w", encoding="utf-8") as f:
            f.write("X-Tenant: blue\n\nX-Other-Secret: hush-hush\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=load", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", paths["key.pem"],
                        "-out", paths["cert.pem"]], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(paths["cert.pem"], paths["key.pem"])
        with Hostile(tls=context) as server:
            secrets = ("--api-key-file", paths["key"], "--header-file", paths["headers"], "--request-count", 12, "--concurrency", 3)
            found, said = load(server.url, *secrets, "--ca-file", paths["cert.pem"], "--workers-max", 3,
                               "--artifact-dir", os.path.join(folder, "out"))
            assert found["request_count"]["avg"] == 12 and not found["sonde"]["kernel_stamps"], found
            for head, _ in server.asked:
                assert "Authorization: Bearer sk-very-secret\r\n" in head and "X-Tenant: blue\r\n" in head, head
            texts = [json.dumps(found), said]
            for name in os.listdir(os.path.join(folder, "out")):
                with open(os.path.join(folder, "out", name), encoding="utf-8") as f:
                    texts.append(f.read())
            assert not any("very-secret" in t or "hush-hush" in t for t in texts)
            found, said = load(server.url, *secrets, "--ca-file", paths["cert.pem"], "--osl", number_of(repeats_what_it_got), code=FAILED)
            assert "no access with ***" in json.dumps(found) and "very-secret" not in json.dumps(found) + said, (found, said)
            _, said = load(server.url, *secrets, code=FAILED)
            assert "certificate" in said, said
            _, said = load(server.url, *secrets, "--insecure-skip-tls-verify")
            assert "not verified" in said, said


# --- exits ----------------------------------------------------------------------------------------------------------------


def wrong_usage_is_said():
    """what makes no sense is one sentence and exit 2"""
    url = "http://127.0.0.1:9"
    for arguments in ([], [url], [url, "--model", "m", "x"], *([url, "--model", "m", *more] for more in (
            ["--request-rate", "fast"], ["--arrival-pattern", "weekly", "--request-rate", "1"], ["--arrival-pattern", "gamma"],
            ["--goodput", "speed:9"], ["--extra-inputs", "x"], ["--endpoint-type", "images"], ["--streaming", "--no-streaming"],
            ["--request-count", "0"], ["-o", "xml"], ["--api-key-file", "/nowhere"], ["--benchmark-duration", "soon"],
            ["--benchmark-duration", "0"], ["--concurrency", "0"], ["--isl", "0"], ["--endpoint", "chat"], ["--url", url]))):
        done = subprocess.run([POD, "load", *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and done.stderr.startswith("sonde-pod: ") and done.stderr.count("\n") == 1, (arguments, done)


def no_success_is_exit_1():
    """nobody listening and nothing but failures are exit 1"""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    _, said = load(f"http://127.0.0.1:{port}", code=FAILED)
    assert "refused" in said, said
    with Hostile() as server, tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        trace = write_trace(folder, [{"input_length": 3, "output_length": [f[1] for f in FAULTS].index("HTTP 500") + 1}] * 4)
        found, said = load(server.url, "--input-file", trace, code=FAILED)
        assert "no request succeeded" in said and found["error_request_count"]["avg"] == 4, (found, said)
        before = len(server.asked)
        _, said = load(server.url, "--artifact-dir", os.path.join(trace, "out"), code=FAILED)
        assert "trace.jsonl" in said and len(server.asked) == before, said  # noticed before anything is sent


def a_client_that_was_late_is_exit_3():
    """a rate that no client reaches: exit status, JSON, files and table say that the run is invalid"""
    burst = ("--request-rate", 1000000, "--arrival-pattern", "constant", "--request-count", 1000, "--workers-max", 1, "--isl", 10, "--osl", 2)
    model = {"prefill": {"baseMs": 0, "perTokenUs": 0}, "decode": {"baseMs": 0}}
    with sim(**model) as (address, _, _), tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        found, _ = load(f"http://{address}", *burst, "--artifact-dir", folder, code=INVALID)
        assert found["request_count"]["avg"] == 1000 and "the client was the bottleneck" in found["sonde"]["invalid"], found["sonde"]
        assert all(r["sonde"]["invalid"] is True for r in records(folder))
        with open(os.path.join(folder, "profile_export_aiperf.json"), encoding="utf-8") as f:
            assert json.load(f) == found
        done = subprocess.run([POD, "load", f"http://{address}", "--model", "sim/m", *map(str, burst)], capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == INVALID and "\nINVALID: the client was the bottleneck" in done.stdout, done


def an_interrupted_run_keeps_what_there_is():
    """ctrl-C prints what there is and exits with 130"""
    with Hostile() as server, tempfile.TemporaryDirectory(prefix="sonde-load-") as folder:
        with Process(POD, "load", server.url, "--model", "m", "--concurrency", "4", "--benchmark-duration", "600",
                     "--isl", "10", "--osl", str(number_of(good)), "--artifact-dir", folder) as p:
            wait(lambda: len(server.asked) > 8, 60, "some answers that it has")
            p.signal(signal.SIGINT)
            assert p.wait(60) == 130, p.lines
            assert any("Time to first token" in line for line in p.lines), p.lines
        with open(os.path.join(folder, "profile_export_aiperf.json"), encoding="utf-8") as f:
            found = json.load(f)
        assert found["was_cancelled"] and found["request_count"]["avg"] > 0, found


def progress_is_lines_without_a_terminal():
    """without a terminal progress is a line every few seconds"""
    with sim(decode={"baseMs": 20}) as (address, _, _):
        with Process(POD, "load", f"http://{address}", "--model", "sim/m", "--benchmark-duration", "600", "--isl", "10", "--osl", "5") as p:
            p.expect(r"^load: \d+ requests, \d+ %, \d+\.\d/s, \d under way, 0 failed", 60)
            p.signal(signal.SIGINT)
            assert p.wait(60) == 130, p.lines


main(a_run_is_counted_and_its_times_agree, answers_may_come_whole, every_fault_ends_its_request_alone,
     a_server_that_hangs_meets_the_timeout, a_closed_connection_is_not_a_failure, kinds_of_failures_outlive_their_texts,
     a_server_that_closes_is_not_hammered, chunks_that_come_at_once_are_counted, the_url_may_have_a_version,
     an_open_loop_keeps_its_schedule, what_was_due_and_not_sent_is_counted, a_duration_ends_the_run,
     a_trace_is_replayed, the_files_say_the_same,
     keys_are_sent_and_never_shown, wrong_usage_is_said, no_success_is_exit_1, a_client_that_was_late_is_exit_3,
     an_interrupted_run_keeps_what_there_is, progress_is_lines_without_a_terminal)
