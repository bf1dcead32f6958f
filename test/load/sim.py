#!/usr/bin/python3
"""The simulated engine as a server: what clients read of it, thousands at once, its faults, and what it says to bad models."""

import contextlib
import http.client
import json
import os
import resource
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, Process, diag, main, program, wait

POD = program("sonde-pod")
MODEL = "sim/llama"
PROMPT = "one two three four five"


@contextlib.contextmanager
def engine(*arguments, **settings):
    """A server with SETTINGS ("decode_baseMs" is decode.baseMs); its `port` is known and it listens."""
    with tempfile.TemporaryDirectory(prefix="sonde-sim-") as folder:
        port_file = os.path.join(folder, "port")
        sets = [x for key, value in settings.items() for x in ("--set", f"{key.replace('_', '.')}={json.dumps(value)}")]
        with Process(POD, "sim", *arguments, "--listen", "127.0.0.1:0", "--port-file", port_file, *sets) as process:
            process.expect("msg=Listening", 60)
            with open(port_file, encoding="ascii") as f:
                process.port = int(f.read())
            yield process


def body(**members):
    return {"model": MODEL, "prompt": PROMPT, "max_tokens": 5, **members}


def ask(port, path="/v1/completions", content=None, method=None, timeout=60):
    """(status, body as text) of one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        text = content if isinstance(content, (str, bytes)) or content is None else json.dumps(content)
        connection.request(method or ("GET" if content is None else "POST"), path, text)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def begin(port, **members):
    """A socket on which the head of a stream has been read: the engine has the request."""
    content = json.dumps(body(stream=True, **members))
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode())
    head = s.recv(17)
    assert head == b"HTTP/1.1 200 OK\r\n", head
    return s


def read_on(s):
    """What else comes until the server ends it in an orderly way; OSError: it does not."""
    got = b""
    while data := s.recv(1 << 16):
        got += data
    return got


def events(text):
    """The JSON of each event; the last must be [DONE]."""
    lines = [line[6:] for line in text.split("\n\n") if line]
    assert lines[-1] == "[DONE]", lines[-1]
    return [json.loads(line) for line in lines[:-1]]


def sim(*arguments):
    """Exit status, standard output, standard error of a `sim` that ends by itself."""
    done = subprocess.run([POD, "sim", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


# --- answers -------------------------------------------------------------------


def curl_reads_a_stream():
    with engine() as server:
        done = subprocess.run(["curl", "-sN", "-i", f"http://127.0.0.1:{server.port}/v1/chat/completions", "-d", json.dumps(
            {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 3, "stream": True,
             "stream_options": {"include_usage": True}})], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
        head, text = done.stdout.replace("\r\n", "\n").split("\n\n", 1)
        assert head.startswith("HTTP/1.1 200") and "Content-Type: text/event-stream" in head, head
        got = events(text)
        assert [e["choices"][0]["delta"] for e in got[:3]] == [
            {"role": "assistant", "content": "sim"}, {"content": " sim"}, {"content": " sim"}], got
        assert [e["choices"][0]["finish_reason"] for e in got[:3]] == [None, None, "length"], got
        assert got[3]["usage"] == {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}, got[3]
        assert got[3]["choices"] == [] and len(got) == 4 and len({e["id"] for e in got}) == 1, got


def both_endpoints_answer_streamed_and_whole():
    with engine() as server:
        status, text = ask(server.port, content=body(stream=True))
        assert status == 200 and [e["choices"][0]["text"] for e in events(text)] == ["sim"] + [" sim"] * 4, text
        status, text = ask(server.port, content=body())
        whole = json.loads(text)
        assert status == 200 and whole["object"] == "text_completion", text
        assert whole["choices"][0]["text"] == "sim sim sim sim sim" and whole["usage"]["completion_tokens"] == 5, text
        status, text = ask(server.port, "/v1/chat/completions", {"model": MODEL, "max_tokens": 1, "messages": [
            {"role": "system", "content": "be brief"}, {"role": "user", "content": [{"type": "text", "text": " a b"}]}]})
        whole = json.loads(text)
        assert status == 200 and whole["choices"][0]["message"] == {"role": "assistant", "content": "sim"}, text
        assert whole["usage"]["prompt_tokens"] == 4, text
        status, text = ask(server.port, "/v1/chat/completions", {"model": MODEL, "max_tokens": 1, "stream": True,
                                                                 "messages": [{"role": "user", "content": "x"}]})
        assert status == 200 and len(events(text)) == 1, text
        assert events(text)[0]["choices"][0]["finish_reason"] == "length", text


def one_connection_serves_many_requests():
    with engine(decode_baseMs=1, prefill_baseMs=1) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        for i in range(20):
            connection.request("POST", "/v1/completions", json.dumps(body(stream=i % 2 == 0)))
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read(), i
        connection.close()


def https_is_spoken_with_a_certificate():
    with tempfile.TemporaryDirectory(prefix="sonde-sim-") as folder:
        key, cert = os.path.join(folder, "key"), os.path.join(folder, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=sim", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        with engine("--tls-cert", cert, "--tls-key", key) as server:
            context = ssl.create_default_context(cafile=cert)
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
            connection.request("POST", "/v1/completions", json.dumps(body(stream=True)))
            assert len(events(connection.getresponse().read().decode())) == 5
            connection.close()


def models_and_health_answer():
    with engine(kvTokensPerGpu=12345) as server:
        status, text = ask(server.port, "/v1/models")
        entry = json.loads(text)["data"][0]
        assert status == 200 and entry["id"] == MODEL and entry["max_model_len"] == 12345, text
        assert ask(server.port, "/health")[0] == 200


def wrong_requests_are_refused_with_a_sentence():
    cases = [
        (404, "/v1/completions", body(model="gpt"), "the model 'gpt' does not exist; this is 'sim/llama'"),
        (400, "/v1/completions", body(max_tokens=99996), "5 tokens of prompt and 99996 to make need more than the KV cache's 100000"),
        (400, "/v1/completions", "{", None),
        (400, "/v1/chat/completions", {"model": MODEL}, None),
        (404, "/v2/completions", body(), None),
    ]
    with engine() as server:
        for status, path, content, says in cases:
            got, text = ask(server.port, path, content)
            message = json.loads(text)["error"]["message"]
            assert got == status and (says is None or message == says), (path, got, message)
        assert ask(server.port, "/v1/completions", method="GET")[0] == 405
        assert ask(server.port, content=body())[0] == 200


def stamps_tell_when_a_chunk_was_written():
    with engine("--stamp") as server:
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        stamps = [e["sonde_ns"] for e in events(ask(server.port, content=body(stream=True))[1])]
        assert before < stamps[0] and stamps == sorted(stamps) and len(stamps) == 5, stamps
        assert stamps[-1] < time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    with engine() as server:
        assert "sonde_ns" not in ask(server.port, content=body(stream=True))[1]


def tokens_come_when_the_model_says():
    """tokens come when the model says, and never earlier"""
    with engine(prefill_baseMs=20, prefill_perTokenUs=4000, decode_baseMs=30, decode_perRequestUs=0, decode_perKvTokenNs=0) as server:
        began = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps(body(stream=True)))
        answer, times = connection.getresponse(), []
        for line in answer:
            if line.startswith(b"data: {"):
                times.append(time.monotonic() - began)
        connection.close()
        for i, at in enumerate(times):
            assert at >= 0.0399 + 0.030 * i, (i, times)
        diag(f"lateness in ms: {[round(1000 * (at - 0.04 - 0.03 * i), 2) for i, at in enumerate(times)]}")


def the_kv_cache_is_told_in_the_backends_words():
    """the log tells the KV cache's size as the backend does, and readers get it back exactly"""
    for kv in (100000, 99999, 54321, 7, 1):
        with engine(kvTokensPerGpu=kv) as server:
            told = server.expect(r"Maximum concurrency for (\d+) tokens per request: (\d+\.\d\d)x")
            assert int(int(told[1]) * float(told[2])) == kv, told[0]
    with engine("--mapping", "DEP", "--gpus", "4", backend="sglang", weightsKvTokens=1000) as server:
        assert server.expect(r"#tokens: (\d+)")[1] == "99000"
    with engine("--gpus", "4", backend="trtllm", weightsKvTokens=1000) as server:
        assert server.expect(r"paged KV cache \((\d+)\)")[1] == "399000"


# --- many ----------------------------------------------------------------------


def stream_many(port, count, tokens):
    """COUNT streams at once, each read to its end; returns how many chunks each had."""
    content = json.dumps(body(stream=True, max_tokens=tokens)).encode()
    request = b"POST /v1/completions HTTP/1.1\r\nHost: sim\r\nContent-Length: %d\r\n\r\n" % len(content) + content
    selector = selectors.DefaultSelector()
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port), timeout=60)
        s.sendall(request)
        s.setblocking(False)
        selector.register(s, selectors.EVENT_READ, [b"", 0])
    chunks, deadline = [], time.monotonic() + 120
    while selector.get_map():
        assert time.monotonic() < deadline, f"{len(selector.get_map())} streams have not ended"
        for key, _ in selector.select(1):
            data = key.fileobj.recv(1 << 16)
            rest, n = key.data
            assert data, "the server closed a stream"
            rest += data
            key.data[0] = rest[-64:]
            # what is counted must not be counted again with the next piece
            key.data[1] = n + rest.count(b'"finish_reason"') - key.data[0].count(b'"finish_reason"')
            if b"[DONE]" in rest:
                chunks.append(key.data[1] + key.data[0].count(b'"finish_reason"'))
                selector.unregister(key.fileobj)
                key.fileobj.close()
    return chunks


def two_thousand_streams_run_at_once():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 4096, f"the limit on open files is {hard}; raise it with 'ulimit -Hn 4096'"
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    with engine(kvTokensPerGpu=1000000, prefill_baseMs=0.1, prefill_perTokenUs=0, decode_baseMs=50, decode_perRequestUs=0,
                decode_perKvTokenNs=0) as server:
        began = time.monotonic()
        assert stream_many(server.port, 2000, 10) == [10] * 2000
        assert time.monotonic() - began > 0.2 + 9 * 0.05  # no engine is faster than its model
        assert ask(server.port, content=body())[0] == 200


def clients_that_go_leave_room_for_others():
    with engine(kvTokensPerGpu=1000, decode_baseMs=100) as server:
        for _ in range(20):  # each would hold the whole cache for 100 s
            begin(server.port, max_tokens=995).close()
        assert ask(server.port, content=body(max_tokens=5))[0] == 200


# --- faults ----------------------------------------------------------------------


def errors_come_at_their_rate():
    with engine(faults_errorRate=0.5, faults_errorStatus=429, prefill_baseMs=0, decode_baseMs=0) as server:
        got = [ask(server.port, content=body()) for _ in range(100)]
        errors = [text for status, text in got if status == 429]
        assert 25 <= len(errors) <= 75 and {s for s, _ in got} == {200, 429}, [s for s, _ in got]
        assert json.loads(errors[0])["error"]["message"] == "an error that the model asked for"


def cut_connections_break_in_the_middle():
    with engine(faults_cutRate=1, decode_baseMs=5) as server:
        s, got = begin(server.port, max_tokens=10), b""
        try:
            while data := s.recv(1 << 16):
                got += data
            raise AssertionError("the stream ended in an orderly way")
        except ConnectionResetError:
            assert b"[DONE]" not in got, got
        s.close()
        try:
            ask(server.port, content=body())
            raise AssertionError("a whole answer came")
        except (http.client.HTTPException, ConnectionError):
            pass


def a_crash_ends_the_process_as_a_signal_does():
    with engine(faults_crashAfterRequests=2) as server:
        assert [ask(server.port, content=body())[0] for _ in range(2)] == [200, 200]
        try:
            ask(server.port, content=body())
            raise AssertionError("a crashed server answered")
        except (http.client.HTTPException, OSError):
            pass
        assert server.wait(60) in (-signal.SIGSEGV, 139)


def a_hang_stops_all_tokens_but_not_the_health():
    with engine(faults_hangAfterRequests=1, decode_baseMs=50) as server:
        running, hanging = begin(server.port, max_tokens=1000), begin(server.port)
        server.expect("Hanging from now on")
        for s in running, hanging:
            s.settimeout(0.3)  # several steps
            try:
                read_on(s)
                raise AssertionError("the server ended a stream")
            except TimeoutError:
                s.close()
        assert ask(server.port, "/health")[0] == 200
        assert server.stop() == 0


def a_slow_start_is_503_until_it_is_over():
    with engine(faults_startDelayMs=3600000) as server:  # an hour
        for path, content in (("/health", None), ("/v1/models", None), ("/v1/completions", body())):
            assert ask(server.port, path, content)[0] == 503, path
    with engine(faults_startDelayMs=200) as server:
        server.expect("Simulated engine is ready")
        wait(lambda: ask(server.port, "/health")[0] == 200, 60)
        assert ask(server.port, content=body())[0] == 200


def a_model_that_does_not_start_says_its_last_words():
    status, out, err = sim("--listen", "127.0.0.1:0", "--set", "faults.failStart=no kernel image is available", "--set",
                           "faults.startDelayMs=100")
    assert (status, out) == (1, "") and "no kernel image is available" in err.splitlines(), err
    status, _, err = sim("--listen", "127.0.0.1:0", "--gpus", "4", "--set", "faults.failLabels=[TP=4]")
    assert status == 1 and "CUDA out of memory" in err.splitlines(), err
    with engine("--gpus", "2", faults_failLabels=["TP=4"]) as server:
        assert ask(server.port, "/health")[0] == 200
    status, _, err = sim("--listen", "127.0.0.1:0", "--set", "weightsKvTokens=100000")
    assert (status, err) == (1, "sonde-pod: sim: sim/llama does not fit into the memory of 1 GPUs as TP\n"), err


def sigterm_ends_it_at_once():
    """SIGTERM ends it at once, SIGINT as an interruption"""
    for number, code in (signal.SIGTERM, 0), (signal.SIGINT, 130):
        with engine(decode_baseMs=50) as server:
            s = begin(server.port, max_tokens=10000)
            server.signal(number)
            assert server.wait(60) == code  # the stream would take minutes
            with contextlib.suppress(ConnectionResetError):
                assert b"[DONE]" not in read_on(s)
            s.close()


# --- the command -------------------------------------------------------------------


def bad_models_are_refused_in_one_sentence():
    cases = {
        "gpus: [1": None,
        "gpus: many": "{}:1:7: gpus must be a whole number from 1 to 1024, not \"many\"",
        "model: m\ndecode:\n  baseMs: -1\n": "{}:3:11: decode.baseMs must be a number from 0 to 3600000, not -1",
        "decode: {baseUs: 1}": "{}:1:18: unknown member decode.baseUs; known here: baseMs, perRequestUs, perKvTokenNs",
        "- a\n": "{}: a model must be a mapping with members such as gpus: 2",
    }
    with tempfile.TemporaryDirectory(prefix="sonde-sim-") as folder:
        path = os.path.join(folder, "model.yaml")
        for text, says in cases.items():
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            status, out, err = sim(path)
            assert (status, out, err.count("\n")) == (1, "", 1) and err.startswith(f"sonde-pod: {path}"), err
            assert says is None or err == f"sonde-pod: {says.format(path)}\n", err
    for words, says in {
            ("/nowhere/model.yaml",): "/nowhere/model.yaml",
            ("--set", "decode.baseMs"): "--set: 'decode.baseMs' is not path=value, as in decode.baseMs=8",
            ("--set", "decode.baseMs=x"): "model: decode.baseMs must be a number from 0 to 3600000, not \"x\"",
            ("--mapping", "PP"): "model: mapping must be TP, TEP or DEP, not \"PP\"",
            ("--gpus", "0"): "model: gpus must be a whole number from 1 to 1024, not 0",
            ("--listen", "nowhere"): "cannot listen on 'nowhere'",
            ("--tls-cert", "/nowhere/cert", "--tls-key", "/nowhere/key"): "/nowhere/cert",
    }.items():
        status, out, err = sim(*words)
        wanted = 2 if words[0] in ("--set", "--mapping", "--gpus") else 1
        assert (status, out, err.count("\n")) == (wanted, "", 1) and says in err, (words, err)
    for words in ("a.yaml", "b.yaml"), ("--truth",), ("--tls-cert", "x"), ("--concurrency", "-1"):
        status, out, err = sim(*words)
        assert (status, out, err.count("\n")) == (2, "", 1), (words, err)


def the_truth_is_told_as_the_load_generator_tells():
    example = os.path.join(ROOT, "examples", "sim.yaml")
    status, out, err = sim(example, "--truth", "--concurrency", "1", "--requests", "10", "--isl", "100", "--osl", "11", "--gpus",
                           "1", "--set", "decode.perKvTokenNs=0")
    truth = json.loads(out)
    assert (status, err) == (0, "") and truth["sonde"]["simulated"] is True, err
    assert truth["time_to_first_token"]["avg"] == 4 and truth["time_to_first_token"]["unit"] == "ms", truth
    assert abs(truth["inter_token_latency"]["avg"] - 4.05) < 1e-9, truth["inter_token_latency"]
    assert truth["request_count"]["avg"] == 10, truth
    again = json.loads(sim(example, "--truth", "--requests", "10", "--isl", "100", "--osl", "2", "--again")[1])
    assert again["time_to_first_token"]["max"] == 2, again["time_to_first_token"]
    status, out, err = sim("--truth", "--requests", "1", "--isl", "100000", "--osl", "1")
    assert (status, out) == (1, "") and "need more than the KV cache's 100000" in err, err


main(curl_reads_a_stream, both_endpoints_answer_streamed_and_whole, one_connection_serves_many_requests,
     https_is_spoken_with_a_certificate, models_and_health_answer, wrong_requests_are_refused_with_a_sentence, stamps_tell_when_a_chunk_was_written,
     tokens_come_when_the_model_says, the_kv_cache_is_told_in_the_backends_words, two_thousand_streams_run_at_once,
     clients_that_go_leave_room_for_others, errors_come_at_their_rate, cut_connections_break_in_the_middle,
     a_crash_ends_the_process_as_a_signal_does, a_hang_stops_all_tokens_but_not_the_health,
     a_slow_start_is_503_until_it_is_over, a_model_that_does_not_start_says_its_last_words, sigterm_ends_it_at_once,
     bad_models_are_refused_in_one_sentence, the_truth_is_told_as_the_load_generator_tells)
