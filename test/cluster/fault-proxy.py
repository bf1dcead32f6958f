#!/usr/bin/python3
"""The fault proxy: nothing changes without a fault, and each fault does what its name says."""
import contextlib
import http.client
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from fault_proxy import FaultProxy
from sonde_test import ControlPlane, Process, kubectl_path, main, wait

BROKEN = (http.client.HTTPException, OSError)  # what a client sees of a connection that was closed on it


def maps(ns, name=None):
    return f"/api/v1/namespaces/{ns}/configmaps" + (f"/{name}" if name else "")


def body(name, value="1"):
    return {"metadata": {"name": name}, "data": {"v": value}}


def make(api, ns, *names, value="1"):
    for name in names:
        status, answer = api.post(maps(ns), body(name, value))
        assert status == 201, answer


def exists(ns, name):
    return cluster.api().get(maps(ns, name))[0] == 200


def names(answer):
    return sorted(i["metadata"]["name"] for i in answer["items"])


def broken(call):
    """CALL must fail because the connection broke."""
    try:
        result = call()
    except BROKEN:
        return
    raise AssertionError(f"answered: {result}")


class Raw:
    """One request through the proxy whose answer is read byte by byte as it came."""

    def __init__(self, proxy, path):
        self._connection = http.client.HTTPSConnection(*proxy.address, context=proxy.context, timeout=120)
        self._connection.connect()
        self._socket = self._connection.sock
        self._connection.request("GET", path, headers={"Accept": "application/json"})
        self.response = self._connection.getresponse()

    def patience(self, seconds):
        """How long the next bytes are waited for."""
        self._socket.settimeout(seconds)

    def lines(self, limit=1000):
        """The lines until the end or the LIMIT; the last one may lack its end."""
        for _ in range(limit):
            try:
                line = self.response.readline()
            except BROKEN:
                return
            if not line:
                return
            yield line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()


def watch_path(ns, seconds=60, version=None):
    version = version or cluster.api().get(maps(ns) + "?limit=1")[1]["metadata"]["resourceVersion"]
    return f"{maps(ns)}?watch=1&resourceVersion={version}&timeoutSeconds={seconds}"


def watched(proxy, ns, events, limit=1000):
    """The lines of a watch through the proxy that sees EVENTS ConfigMaps made: m0, m1, ..."""
    path = watch_path(ns)
    make(cluster.api(), ns, *[f"m{i}" for i in range(events)])
    with Raw(proxy, path) as raw:
        assert raw.response.status == 200
        return list(raw.lines(limit))


def event_names(lines):
    return [json.loads(line)["object"]["metadata"]["name"] for line in lines if line.endswith(b"\n")
            and b'"ERROR"' not in line and b"kube-root-ca" not in line]


@contextlib.contextmanager
def faults(rules):
    """A namespace and a proxy with RULES, in which NS stands for the namespace."""
    with cluster.namespace("p") as ns, FaultProxy(cluster, script=rules.replace("NS", ns)) as proxy:
        # Nobody else's writes in the watches.
        wait(lambda: exists(ns, "kube-root-ca.crt"), 120)
        yield ns, proxy


# --- without faults --------------------------------------------------------------


def kubectl_works():
    """kubectl applies, gets, lists, patches, watches and deletes through it as without it"""
    with faults("") as (ns, proxy):
        def kubectl(*args, **more):
            return cluster.kubectl("--kubeconfig", proxy.kubeconfig, "-n", ns, *args, **more)

        manifest = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"v": "1"}})
        assert "created" in kubectl("apply", "-f", "-", stdin=manifest)
        assert "configured" in kubectl("apply", "-f", "-", stdin=manifest.replace('"1"', '"2"'))
        assert kubectl("get", "configmap", "a", "-o", "jsonpath={.data.v}") == "2"
        assert "serverside-applied" in kubectl("apply", "--server-side", "--field-manager=me", "--force-conflicts", "-f",
                                               "-", stdin=manifest)
        assert "patched" in kubectl("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"w":"3"}}')
        direct = cluster.kubectl("-n", ns, "get", "configmaps", "-o", "json")
        assert kubectl("get", "configmaps", "-o", "json") == direct
        managers = {m["manager"] for m in json.loads(direct)["items"][0]["metadata"]["managedFields"]}
        managers |= {m["manager"] for m in json.loads(direct)["items"][-1]["metadata"]["managedFields"]}
        assert not any("proxy" in m for m in managers), managers
        with Process(kubectl_path(), "--kubeconfig", proxy.kubeconfig, "-n", ns, "get", "configmaps", "--watch-only", "-o", "name",
                     "-v=6") as watcher:
            watcher.expect(r"watch=true.* 200 OK", 60)
            make(cluster.api(), ns, "b")
            watcher.expect("^configmap/b$", 60)
        assert "deleted" in kubectl("delete", "configmap", "a")
        wait(lambda: kubectl("api-resources") == cluster.kubectl("api-resources"), 60, "the same resources")  # others make CRDs
        assert proxy.stats()["total"] == 0, proxy.stats()
        written = [(w["method"], w["status"]) for w in proxy.logged(event="write")]
        assert ("POST", 201) in written and ("DELETE", 200) in written and ("PATCH", 200) in written, written


def large_lists_pass():
    """Lists of megabytes, pages and many requests at once are the same through it"""
    with faults("") as (ns, proxy):
        api = cluster.api()
        for i in range(20):
            make(api, ns, f"big{i}", value="x" * 200_000)
        assert proxy.api().get(maps(ns))[1]["items"] == api.get(maps(ns))[1]["items"]
        status, page = proxy.api().get(maps(ns) + "?limit=3")
        assert status == 200 and len(page["items"]) == 3 and page["metadata"]["continue"]
        errors = []

        def reader():
            try:
                mine = proxy.api()
                for _ in range(20):
                    assert mine.get(maps(ns, "big1"))[0] == 200
            except Exception as e:  # pylint: disable=broad-except
                errors.append(e)

        threads = [threading.Thread(target=reader) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors, errors


def identity_is_forwarded():
    """Without credentials the request is the kubeconfig's user's, with a token it is the token's and only that"""
    with faults("") as (ns, proxy):
        cluster.kubectl("create", "serviceaccount", "weak", "-n", ns)
        token = cluster.rig("token", ns, "weak", 600).strip()
        assert proxy.api().get(maps(ns))[0] == 200
        status, answer = proxy.api(token=token).get(maps(ns))
        assert status == 403 and f"system:serviceaccount:{ns}:weak" in answer["message"], answer
        status, answer = proxy.api(token="nonsense").get(maps(ns))
        assert status == 401, answer
        with open(proxy.log_file, encoding="utf-8") as f:
            assert token not in f.read()


def errors_pass():
    """What the API server refuses comes through as it is"""
    with faults("") as (ns, proxy):
        make(proxy.api(), ns, "a")
        status, answer = proxy.api().post(maps(ns), body("a"))
        assert (status, answer["reason"]) == (409, "AlreadyExists"), answer
        status, answer = proxy.api().get(maps(ns, "none"))
        assert (status, answer["reason"]) == (404, "NotFound"), answer
        nonsense = maps(ns) + "?watch=1&resourceVersion=nonsense"
        assert proxy.api().get(nonsense) == cluster.api().get(nonsense)


# --- requests --------------------------------------------------------------------


def there_meanwhile(fault, seconds):
    """Whether what is posted is there while FAULT holds it up for SECONDS; None: these were over before that was known."""
    with faults(f"match POST * nth=1 -> {fault} ms={seconds * 1000}\n") as (ns, proxy):
        ended = []

        def post():
            make(proxy.api(timeout=seconds + 60), ns, "a")
            ended.append(time.monotonic())
        began = time.monotonic()
        poster = threading.Thread(target=post)
        poster.start()
        wait(lambda: proxy.count(fault) == 1, 60, f"{fault} to begin")
        there, known = exists(ns, "a"), time.monotonic()
        poster.join()
        assert ended and ended[0] - began >= seconds, (began, ended)
        assert exists(ns, "a") and proxy.count(fault) == 1, proxy.stats()
        return there if known - began < seconds else None


def delays():
    """delay waits before forwarding, delay-answer after"""
    for fault, there in ("delay", False), ("delay-answer", True):
        said = (there_meanwhile(fault, seconds) for seconds in (3, 12, 48))
        assert next(answer for answer in said if answer is not None) == there, fault
    with faults("match WATCH * -> delay-answer ms=700\n") as (ns, proxy):
        began = time.monotonic()
        assert event_names(watched(proxy, ns, 2, 2)) == ["m0", "m1"]
        assert time.monotonic() - began >= 0.7 and proxy.count("delay-answer") == 1, proxy.stats()


def drop_and_lose():
    """drop closes without forwarding, lose after it"""
    with faults("match POST * nth=1 -> drop\nmatch POST * nth=2 -> lose\nmatch WATCH * -> lose\n") as (ns, proxy):
        api = proxy.api()
        broken(lambda: api.post(maps(ns), body("dropped")))
        broken(lambda: api.post(maps(ns), body("lost")))
        wait(lambda: exists(ns, "lost"), 60)
        assert not exists(ns, "dropped")
        broken(lambda: Raw(proxy, watch_path(ns)))
        assert [w["status"] for w in proxy.logged(event="write")] == [201]
        assert [f["fault"] for f in proxy.logged(event="fault")] == ["drop", "lose", "lose"]


def answers():
    """answer says what it was told: code, Status, HTML or nothing, Retry-After; nothing is forwarded"""
    cases = [(409, "", "Conflict"), (409, "reason=AlreadyExists", "AlreadyExists"), (410, "", "Expired"),
             (429, "retry-after=2", "TooManyRequests"), (429, "", "TooManyRequests"), (500, "body=html", None),
             (502, "body=html", None), (503, "body=empty", None), (504, "", "Timeout"), (401, "", "Unauthorized")]
    rules = "".join(f"match POST */configmaps nth={n} -> answer {code} {more}\n"
                    for n, (code, more, _) in enumerate(cases, 1))
    with faults(rules) as (ns, proxy):
        for code, more, reason in cases:
            connection = http.client.HTTPSConnection(*proxy.address, context=proxy.context, timeout=60)
            connection.request("POST", maps(ns), json.dumps(body("a")), {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
            assert response.status == code, (response.status, code)
            assert response.headers.get("Retry-After") == ("2" if "retry" in more else None)
            if reason:
                status = json.loads(text)
                assert (status["kind"], status["code"], status["reason"]) == ("Status", code, reason), status
            elif "html" in more:
                assert text.startswith(b"<html>") and "html" in response.headers["Content-Type"]
            else:
                assert text == b""
            connection.close()
        assert not exists(ns, "a")
        make(proxy.api(), ns, "a")
        assert proxy.count("answer") == len(cases) and proxy.count("answer-409") == 2


def silence():
    """silent neither forwards nor answers, and the connection stays open"""
    with faults("match POST * nth=1 -> silent\nmatch POST * nth=2 -> silent ms=500\n"
                "match WATCH * -> silent lines=1\n") as (ns, proxy):
        connection = http.client.HTTPSConnection(*proxy.address, context=proxy.context, timeout=60)
        connection.connect()
        connection.sock.settimeout(1)  # for the answer alone: the request must have come
        began = time.monotonic()
        try:
            connection.request("POST", maps(ns), json.dumps(body("a")), {"Content-Type": "application/json"})
            connection.getresponse()
            raise AssertionError("answered")
        except (TimeoutError, socket.timeout):
            assert time.monotonic() - began >= 1
        wait(lambda: proxy.count("silent") == 1, 60, "the first request to be met with silence")
        connection.close()
        broken(lambda: proxy.api().post(maps(ns), body("a")))
        assert not exists(ns, "a")
        path = watch_path(ns, 2)
        make(cluster.api(), ns, "m0", "m1")
        with Raw(proxy, path) as raw:
            lines = raw.lines()
            assert event_names([next(lines)]) == ["m0"]
            raw.patience(3)
            began = time.monotonic()
            assert not list(lines)  # ends by our own timeout, though the server has ended the watch
            assert time.monotonic() - began > 2.5
        assert proxy.count("silent") == 3


# --- answers and watches -----------------------------------------------------------


def cuts():
    """cut breaks an answer off: at a byte, between two lines, in the middle of a line, by time"""
    with faults(f"match GET {maps('NS', 'a')} -> cut bytes=20\nmatch LIST * -> cut bytes=100000000\n"
                "match WATCH * nth=1 -> cut lines=2\nmatch WATCH * nth=2 -> cut lines=1 bytes=30\n"
                "match POST * -> cut bytes=5\n") as (ns, proxy):
        broken(lambda: make(proxy.api(), ns, "a"))
        assert exists(ns, "a")
        try:
            proxy.api().get(maps(ns, "a"))
            raise AssertionError("complete")
        except http.client.IncompleteRead as e:
            assert len(e.partial) == 20, e.partial
        broken(lambda: proxy.api().get(maps(ns)))
        lines = watched(proxy, ns, 4)
        assert event_names(lines) == ["m0", "m1"] and len(lines) == 2, lines
        version = cluster.api().get(maps(ns, "m0"))[1]["metadata"]["resourceVersion"]
        with Raw(proxy, watch_path(ns, version=version)) as raw:
            data = b""
            try:
                while True:
                    piece = raw.response.read1(65536)
                    data += piece
                    if not piece:
                        break
            except BROKEN:
                pass
        first, rest = data.split(b"\n", 1)
        assert json.loads(first)["object"]["metadata"]["name"] == "m1"
        assert len(rest) == 30 and rest.startswith(b'{"type":"ADDED"'), rest
        got, made = [], ["m1", "m2", "m3"]
        for ms in 500, 2000, 8000, 32000:  # more, where the server needs all of that before it sends them
            proxy.script(f"match WATCH * -> cut ms={ms}\n")
            began = time.monotonic()
            with Raw(proxy, watch_path(ns, 600, version)) as raw:
                got = event_names(raw.lines())
            assert ms / 1000 < time.monotonic() - began < 300 and got == made[:len(got)], got
            if len(got) == len(made):
                break
        assert got == made, got


def expired():
    """expired ends a watch with an ERROR 410 under HTTP 200, at once or after some lines"""
    with faults("match WATCH * nth=1 -> expired\nmatch WATCH * nth=2 -> expired lines=1\n") as (ns, proxy):
        lines = watched(proxy, ns, 2)
        assert len(lines) == 1, lines
        error = json.loads(lines[0])
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired"), error
        version = cluster.api().get(maps(ns, "m0"))[1]["metadata"]["resourceVersion"]
        with Raw(proxy, watch_path(ns, version=version)) as raw:
            lines = [json.loads(line)["type"] for line in raw.lines()]
        assert lines == ["ADDED", "ERROR"], lines


def stalls():
    """stall holds a watch back for a time and loses nothing"""
    with faults("match WATCH * -> stall lines=1 ms=1500\n") as (ns, proxy):
        path = watch_path(ns)
        make(cluster.api(), ns, "m0", "m1", "m2")
        began = time.monotonic()  # not when the first line is read, which may be long after it came
        with Raw(proxy, path) as raw:
            lines = raw.lines(3)
            got = [next(lines), next(lines)]
            assert time.monotonic() - began >= 1.5, "not held back"
            got += list(lines)
        assert event_names(got) == ["m0", "m1", "m2"], got


def repetitions():
    """duplicate and replay send a line again"""
    with faults("match WATCH * nth=1 -> duplicate lines=2\nmatch WATCH * nth=2 -> replay lines=3\n") as (ns, proxy):
        path = watch_path(ns)
        make(cluster.api(), ns, "m0", "m1", "m2", "m3")
        with Raw(proxy, path) as raw:
            assert event_names(raw.lines(5)) == ["m0", "m1", "m1", "m2", "m3"]
        with Raw(proxy, path) as raw:
            got = event_names(raw.lines(5))
        assert got[:3] == ["m0", "m1", "m2"] and got[3] in ("m0", "m1") and got[4:] == ["m3"], got


def stale_reads():
    """stale answers an earlier state where resourceVersion=0 allows it, and nowhere else"""
    with faults("match GET * -> stale\n") as (ns, proxy):
        api = proxy.api()
        make(cluster.api(), ns, "a")
        wait(lambda: "a" in names(cluster.api().get(maps(ns) + "?resourceVersion=0")[1]))
        first = api.get(maps(ns) + "?resourceVersion=0")[1]
        make(cluster.api(), ns, "b")
        wait(lambda: "b" in names(cluster.api().get(maps(ns) + "?resourceVersion=0")[1]))
        assert api.get(maps(ns) + "?resourceVersion=0")[1] == first
        assert "b" in names(api.get(maps(ns))[1])
        assert proxy.count("stale") == 1, proxy.stats()


def chunks():
    """bytes, merge, crlf and vary change how it comes, not what"""
    with faults("".join(f"match WATCH * nth={n} -> {f}\n" for n, f in enumerate(["bytes", "merge", "crlf", "vary"], 1))
                + "match GET * every=2 -> bytes\nmatch GET * -> vary seed=1\n") as (ns, proxy):
        version = cluster.api().get(maps(ns))[1]["metadata"]["resourceVersion"]
        make(cluster.api(), ns, "m0", "m1", "m2")
        direct = None
        for fault in ("none", "bytes", "merge", "crlf", "vary"):
            where = cluster_as_proxy if fault == "none" else proxy
            with Raw(where, watch_path(ns, version=version)) as raw:
                lines = list(raw.lines(3))
            if fault == "crlf":
                assert all(line.endswith(b"\r\n") for line in lines), lines
                lines = [line.replace(b"\r\n", b"\n") for line in lines]
            direct = direct or lines
            assert lines == direct and len(lines) == 3, (fault, lines)
        expected = cluster.api().get(maps(ns))[1]["items"]
        for _ in range(2):
            assert proxy.api().get(maps(ns))[1]["items"] == expected
        with Raw(proxy, maps(ns, "m0")) as raw:
            assert any(name != name.title() for name, _ in raw.response.getheaders()), raw.response.getheaders()
            assert raw.response.getheader("content-type") == "application/json"
        for fault in ("bytes", "merge", "crlf", "vary"):
            assert proxy.count(fault) >= 1, (fault, proxy.stats())


# --- who decides ---------------------------------------------------------------------


def control():
    """Faults can be switched off and on and their script replaced; the counts tell"""
    with faults("match POST * -> drop\n") as (ns, proxy):
        broken(lambda: make(proxy.api(), ns, "a"))
        proxy.off()
        make(proxy.api(), ns, "a")
        proxy.on()
        broken(lambda: make(proxy.api(), ns, "b"))
        proxy.script("match POST * nth=2 -> answer 503\n")
        make(proxy.api(), ns, "b")
        assert proxy.api().post(maps(ns), body("c"))[0] == 503
        make(proxy.api(), ns, "c")
        stats = proxy.stats()
        assert stats["faults"]["drop"] == 2 and stats["faults"]["answer-503"] == 1 and stats["total"] == 3, stats
        status, answer = proxy.api().request("POST", "/__faults/script", "match nonsense", "text/plain")
        assert status == 400 and "line 1" in answer, answer
        assert proxy.api().get("/__faults/none")[0] == 404


def seeds():
    """The same seed does the same to the same requests, another seed something else"""
    def run(seed):
        with cluster.namespace("p") as ns, FaultProxy(cluster, seed=seed, intensity=40) as proxy:
            for i in range(60):
                api = proxy.api()  # one that gave up before its request had come would shift all others
                with contextlib.suppress(*BROKEN):
                    api.get(maps(ns) + "?limit=1") if i % 3 else api.post(maps(ns), body(f"m{i}"))
                api.close()
            lines = [(e["n"], e["fault"], e["method"]) for e in proxy.logged(event="fault")]
            proxy.off()
            assert proxy.api().get(maps(ns))[0] == 200
            return lines

    first, again, other = run(7), run(7), run(8)
    assert first == again, (first, again)
    assert first != other
    assert 10 <= len(first) <= 40, first


def until():
    """--until ends the faults by time"""
    with cluster.namespace("p") as ns, FaultProxy(cluster, seed=1, intensity=100, until=1) as proxy:
        wait(lambda: not proxy.stats()["enabled"], 60)
        for _ in range(20):
            assert proxy.api().get(maps(ns))[0] == 200


class Direct:
    """The control plane itself, for Raw."""

    def __init__(self):
        import ssl  # pylint: disable=import-outside-toplevel
        self.address = cluster.address
        self.context = ssl.create_default_context(cafile=cluster.file("pki", "ca.crt"))
        self.context.load_cert_chain(cluster.file("pki", "admin.crt"), cluster.file("pki", "admin.key"))


with ControlPlane.of("shared") as cluster:
    cluster_as_proxy = Direct()
    main(kubectl_works, large_lists_pass, identity_is_forwarded, errors_pass, delays, drop_and_lose, answers, silence, cuts,
         expired, stalls, repetitions, stale_reads, chunks, control, seeds, until)
