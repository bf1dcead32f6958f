"""sonde_test - what the tests written in Python share; the standard library is enough.

A test file is a few functions and one call:

    #!/usr/bin/python3
    import os, sys
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
    from sonde_test import ControlPlane, main, wait

    def a_config_map_is_kept():
        with cluster.namespace("keep") as ns:
            status, made = cluster.api().post(f"/api/v1/namespaces/{ns}/configmaps", {"metadata": {"name": "a"}})
            assert status == 201, made

    with ControlPlane.of("shared") as cluster:
        main(a_config_map_is_kept)

Each function is one TAP point, named by the first line of its docstring or by its own name; it fails by raising
(a plain assert will do); what it needs and does not find it names, with how to get it. List the file in test/tests.list.
"""

import base64
import contextlib
import http.client
import json
import os
import re
import secrets
import select
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse

import seed_rows
from planes import PLANES, kubernetes, obstacle

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("SONDE_BUILD", os.path.join(ROOT, "build"))  # where the programs under test are
RIG = os.path.join(ROOT, "test", "cluster", "cluster")
EXTENT = os.environ.get("SONDE_EXTENT") or "usual"  # how much to try: quick, usual or long
SOAK, QUICK = EXTENT == "long", EXTENT == "quick"

# --- TAP ---------------------------------------------------------------------


def diag(text):
    """Prints TEXT as TAP comments: shown when the test fails, kept in its log."""
    for line in str(text).splitlines() or [""]:
        print("# " + line, flush=True)


def _title(test):
    doc = (test.__doc__ or "").strip().splitlines()
    return (doc[0] if doc else test.__name__.replace("_", " ")).replace("#", "")


def main(*tests):
    """Runs TESTS in order as TAP and exits: 1 when one failed. SystemExit passes `with` blocks, so they clean up.

    The rows of test/seeds/rows.md that name a test that passed are printed after it."""
    proven = seed_rows.proven_by(os.path.relpath(os.path.realpath(sys.argv[0]), ROOT), sys.argv[1:], seed_rows.read())
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, test in enumerate(tests, 1):
        began = time.monotonic()
        try:
            test()
            print(f"ok {number} - {_title(test)}", flush=True)
            if test.__name__ in proven:
                diag("proves " + " ".join(proven[test.__name__]))
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {_title(test)}", flush=True)
            diag(traceback.format_exc())
        took = time.monotonic() - began
        if took > 1:
            diag(f"{took:.1f} s")
    sys.exit(1 if failed else 0)


class Begun(threading.Thread):
    """A test that runs in a thread of its own from now on; main() takes it in the place of the test, and waits for it.

        main(*[Begun(test, cluster) for test in (one, another)])
    """

    def __init__(self, test, *arguments):
        super().__init__(daemon=True)
        self.__doc__, self.__name__ = test.__doc__, test.__name__
        self._test, self._arguments, self._failed = test, arguments, None
        self.start()

    def run(self):
        began = time.monotonic()
        try:
            self._test(*self._arguments)
        except Exception as e:  # pylint: disable=broad-except
            self._failed = e
        diag(f"{self.__name__}: {'failed' if self._failed else 'done'} after {time.monotonic() - began:.0f} s")

    def __call__(self):
        self.join()
        if self._failed:
            raise self._failed


def wait(condition, seconds=120, what=None, every=None):
    """Calls CONDITION until it returns something true, and returns that. AssertionError after SECONDS.

    An AssertionError inside CONDITION counts as "not yet", its text is shown when time is up. Without EVERY it is called the less often
    the longer it takes: a test that asks all the time takes the processor from what it waits for."""
    began = time.monotonic()
    while True:
        last = None
        try:
            value = condition()
            if value:
                return value
            last = value
        except AssertionError as e:
            last = e
        waited = time.monotonic() - began
        if waited >= seconds:
            raise AssertionError(f"after {seconds} s still not: {what or _title(condition)} (last: {last!r})")
        time.sleep(every or min(0.05 + waited / 20, 0.5))


# A timeout of test/run or ctrl-C ends the test through its `with` blocks.
def _on_term(number, _frame):
    sys.exit(128 + number)


if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGHUP, _on_term)

# --- programs ----------------------------------------------------------------


def program(name):
    """The path of a built program ("sonde", "test/json-check"); fails clearly when it is not built."""
    path = os.path.join(BUILD, name)
    assert os.access(path, os.X_OK), f"{path} is not built"
    return path


class Process:
    """A program running beside the test, in its own process group; leaving the `with` block ends it.

        with Process(program("sonde"), "operator", env={"KUBECONFIG": cluster.kubeconfig}) as p:
            p.expect(r"synced in (\\d+) ms", 20)
    """

    def __init__(self, *argv, env=None, cwd=None, stdin=subprocess.DEVNULL):
        self.lines = []  # all output so far, standard error included
        self._changed = threading.Condition()
        self._ended = False
        self.popen = subprocess.Popen(argv, cwd=cwd, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env={**os.environ, **(env or {})}, start_new_session=True)
        self.pid = self.popen.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for raw in self.popen.stdout:
            with self._changed:
                self.lines.append(raw.decode("utf-8", "replace").rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def expect(self, pattern, seconds=120, start=0):
        """Waits for a line (from number START on) that PATTERN matches; returns the match."""
        deadline = time.monotonic() + seconds
        at = start
        with self._changed:
            while True:
                while at < len(self.lines):
                    match = re.search(pattern, self.lines[at])
                    if match:
                        return match
                    at += 1
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "the program ended" if self._ended else f"{seconds} s passed"
                    tail = "\n".join(self.lines[-20:])
                    raise AssertionError(f"no line like {pattern!r}: {why}; its last lines:\n{tail}")
                self._changed.wait(left)

    def signal(self, number):
        """Sends a signal to the program alone, not to its children."""
        self.popen.send_signal(number)

    def wait(self, seconds=120):
        """Waits for the program's end, and until its output has been read; returns its exit code (negative: the signal that ended it)."""
        try:
            code = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.popen.args[0]} still runs after {seconds} s") from None
        self._read_out()
        return code

    def _read_out(self):
        """Waits for the reader; where something that it started keeps its output open, for as long as there is something to read."""
        deadline = time.monotonic() + 60
        self._reader.join(5)
        while self._reader.is_alive() and time.monotonic() < deadline and select.select([self.popen.stdout], [], [], 0)[0]:
            self._reader.join(0.1)

    def stop(self, seconds=30):
        """SIGTERM, then SIGKILL to the whole group after SECONDS; returns the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGCONT)
            os.killpg(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.popen.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self.popen.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# --- the control plane ---------------------------------------------------------

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
IDLE = 50  # seconds for which a connection is kept; the engine keeps one for 120


class Api:
    """A plain client of the API: one connection, one request at a time, no retries. Not for two threads.

    get/post/put/patch/delete return (HTTP status, decoded body)."""

    def __init__(self, host, port, context, token=None, timeout=60):
        self._make = lambda: http.client.HTTPSConnection(host, port, context=context, timeout=timeout)
        self._connection, self._used = self._make(), time.monotonic()
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = "Bearer " + token

    def _send(self, connection, method, path, body, content_type, accept=None):
        headers = {**self._headers, **({"Accept": accept} if accept else {})}
        if body is not None:
            headers["Content-Type"] = content_type
            body = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def request(self, method, path, body=None, content_type="application/json", accept=None):
        if time.monotonic() - self._used > IDLE:
            self._connection.close()  # the server may be about to, and only a GET may be sent again
        try:
            try:
                response = self._send(self._connection, method, path, body, content_type, accept)
            except http.client.RemoteDisconnected:  # a server may close a connection that was idle for long
                if method != "GET":
                    raise
                self._connection.close()
                response = self._send(self._connection, method, path, body, content_type, accept)
            data = response.read()
            self._used = time.monotonic()
        except Exception:
            self._connection.close()  # the next request starts with a new connection
            raise
        try:
            return response.status, json.loads(data) if data else None
        except ValueError:
            return response.status, data.decode("utf-8", "replace")

    def get(self, path):
        return self.request("GET", path)

    def table(self, path, wide=False):
        """The rows of what kubectl get prints of PATH, as dictionaries by column."""
        status, body = self.request("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
        assert status == 200 and body["kind"] == "Table", (status, body)
        shown = [(i, c["name"]) for i, c in enumerate(body["columnDefinitions"]) if wide or c.get("priority", 0) == 0]
        return [{name: row["cells"][i] for i, name in shown} for row in body.get("rows") or []]

    def names(self, path, selector=""):
        """The names of the objects of a list that the label SELECTOR picks."""
        status, body = self.get(path + (f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""))
        assert status == 200, (path, body)
        return [item["metadata"]["name"] for item in body["items"]]

    def job_log(self, ns, job, container=None):
        """What a Job's first pod printed, in its first container unless one is named."""
        status, pods = self.get(f"/api/v1/namespaces/{ns}/pods?labelSelector=job-name%3D{job}")
        assert status == 200 and pods["items"], (job, pods)
        pod = pods["items"][0]
        container = container or pod["spec"]["containers"][0]["name"]
        status, text = self.get(f"/api/v1/namespaces/{ns}/pods/{pod['metadata']['name']}/log?container={container}")
        assert status == 200, (job, text)
        return text or ""

    def post(self, path, body):
        return self.request("POST", path, body)

    def put(self, path, body):
        return self.request("PUT", path, body)

    def patch(self, path, body, content_type=MERGE_PATCH):
        return self.request("PATCH", path, body, content_type)

    def delete(self, path, body=None):
        return self.request("DELETE", path, body)

    def watch(self, path):
        """Yields the events of a watch, on a connection of its own, until the server ends it."""
        connection = self._make()
        try:
            response = self._send(connection, "GET", path, None, None)
            assert response.status == 200, (response.status, response.read())
            for line in response:
                yield json.loads(line)
        finally:
            connection.close()

    def close(self):
        self._connection.close()


def write_kubeconfig(path, address, authority, token, ns=None):
    """A kubeconfig with a bearer token at PATH. AUTHORITY: the server's, as text."""
    context = {"cluster": "c", "user": "u", **({"namespace": ns} if ns else {})}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "x",
                   "contexts": [{"name": "x", "context": context}],
                   "clusters": [{"name": "c", "cluster": {
                       "server": f"https://{address[0]}:{address[1]}",
                       "certificate-authority-data": base64.b64encode(authority.encode()).decode()}}],
                   "users": [{"name": "u", "user": {"token": token}}]}, f)


def kubectl_path():
    """kubectl 1.20 of the rig: what it prints is compared, so no other version will do."""
    assert not obstacle(), obstacle()
    return kubernetes("kubectl")


class Server:
    """What the two engines have in common: `kubeconfig`, `api()` and what is built on them."""

    @property
    def address(self):
        """(host, port) of the API server."""
        with open(self.kubeconfig, encoding="utf-8") as f:
            match = re.search(r"server: https://([\d.]+):(\d+)", f.read())
        return match[1], int(match[2])

    def kubectl(self, *args, stdin=None, check=True):
        """Runs kubectl; returns its standard output. STDIN is text for `-f -`. For errors: check=False."""
        done = subprocess.run([kubectl_path(), "--kubeconfig", self.kubeconfig, *map(str, args)], input=stdin or "",
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def apply_crds(self, *paths):
        """Applies CustomResourceDefinitions, a file each, and waits until they are served."""
        api = self.api()
        for path in paths:
            with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                text = f.read()
            name = re.search(r"^metadata:\n(?:  .*\n)*?  name: (\S+)", text, re.M)[1]
            where = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
            status, body = api.patch(f"{where}?fieldManager=test&force=true", text, APPLY_PATCH)
            assert status in (200, 201), (path, body)
            wait(lambda w=where: any(c["type"] == "Established" and c["status"] == "True"
                                     for c in api.get(w)[1].get("status", {}).get("conditions") or []), what=f"{name} to be served")

    def show(self, ns, *lists):
        """Prints the conditions of the objects in LISTS and what the pods of NS printed last, for a test that failed."""
        api = self.api()
        with contextlib.suppress(Exception):
            for path in lists:
                for item in api.get(path)[1]["items"]:
                    for c in item.get("status", {}).get("conditions", []):
                        diag(f"{item['metadata']['name']}: {c['type']}={c['status']} {c['reason']}: {c['message']}")
            for pod in api.get(f"/api/v1/namespaces/{ns}/pods")[1]["items"]:
                name = pod["metadata"]["name"]
                for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
                    diag(f"--- {name} {container['name']}")
                    diag(api.get(f"/api/v1/namespaces/{ns}/pods/{name}/log?container={container['name']}&tailLines=15")[1])

    @contextlib.contextmanager
    def namespace(self, prefix="t"):
        """A namespace of a new name, deleted (without waiting) at the end."""
        name = f"{prefix}-{secrets.token_hex(4)}"
        status, body = self.api().post("/api/v1/namespaces", {"metadata": {"name": name}})
        assert status == 201, body
        try:
            yield name
        finally:
            with contextlib.suppress(OSError):
                self.api().delete(f"/api/v1/namespaces/{name}")


def engine_client(kubeconfig, timeout=60, with_token=True):
    """A function that makes clients of the embedded engine that wrote KUBECONFIG."""
    with open(kubeconfig, encoding="utf-8") as f:
        text = f.read()
    host, port = re.search(r"server: https://([\d.]+):(\d+)", text).groups()
    authority = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", text)[1]).decode()
    context = ssl.create_default_context(cadata=authority)
    token = re.search(r"token: (\S+)", text)[1] if with_token else None
    return lambda timeout=timeout: Api(host, int(port), context, token, timeout)


class Engine(Server):
    """The embedded engine of a test, `sonde up` in a directory of its own. ARGUMENTS: "--no-node", "--no-fsync", ..."""

    def __init__(self, *arguments):
        self._arguments = arguments

    def __enter__(self):
        self._dir = tempfile.mkdtemp(prefix="sonde-engine-")
        self.home = os.path.join(self._dir, "home")
        self.process = Process(program("sonde"), "up", "--dir", self.home, *self._arguments)
        try:
            self.process.expect("engine ready in", 60)
        except BaseException:
            self.__exit__()
            raise
        self.kubeconfig = os.path.join(self.home, "kubeconfig")
        self.api = engine_client(self.kubeconfig)
        return self

    def __exit__(self, *_):
        self.process.stop(60)
        shutil.rmtree(self._dir, ignore_errors=True)


class ControlPlane(Server):
    """etcd, API server, controller manager and scheduler of a test, started by test/cluster/cluster.

    With RUN None the control plane gets a run directory of its own and ends with the `with` block. ENV sets the rig's
    KCLUSTER_* variables, for example KCLUSTER_AUDIT="1". `of("shared")` is one of those that test/run keeps for its
    entries (test/lib/planes.py); a test that is started by hand gets one of its own like it.
    """

    def __init__(self, run=None, arguments=("--control-plane-only",), **env):
        self._own = run is None
        self.run = run
        self._arguments = arguments
        self._env = {**os.environ, **env}
        if not self._own:
            self._env.pop("SONDE_TEST_ID", None)  # what a test restarts is not the test's, and stays
        self._audited, self._audited_to, self._auditing = [], 0, threading.Lock()

    @classmethod
    def of(cls, name):
        arguments, env = PLANES[name]
        return cls(os.environ.get(f"SONDE_PLANE_{name.upper()}"), arguments, **env)

    def rig(self, *args, check=True):
        """Runs `cluster ARGS...`; returns its standard output."""
        done = subprocess.run([RIG, *map(str, args)], env={**self._env, "KCLUSTER_RUN": self.run}, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"cluster {' '.join(map(str, args))}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def __enter__(self):
        if self._own:
            why = obstacle(self._arguments)
            if why:
                print(f"1..1\nnot ok 1 - {why}", flush=True)
                sys.exit(1)
            self._dir = tempfile.mkdtemp(prefix="sonde-cluster-")
            self.run = os.path.join(self._dir, "run")
            try:
                self.rig("up", *self._arguments)
            except BaseException:
                self.__exit__()
                raise
        else:
            self._audited_to = self._audit_end()
        self.kubeconfig = os.path.join(self.run, "admin.kubeconfig")
        return self

    def _audit_end(self):
        """Where the last whole line of the audit log ends: what is before is not this test's."""
        with open(self.file("log", "audit.log"), "rb") as f:
            end = f.seek(0, os.SEEK_END)
            start = f.seek(max(0, end - (1 << 20)))
            return start + f.read(end - start).rfind(b"\n") + 1

    def __exit__(self, *_):
        if self._own:
            self.rig("down", check=False)
            shutil.rmtree(self._dir, ignore_errors=True)

    def file(self, *path):
        """A path in the run directory: file("log", "audit.log"), file("pki", "ca.crt")."""
        return os.path.join(self.run, *path)

    def audit(self):
        """The events of the audit log since the `with` block began; a line that is just being written is left out."""
        with self._auditing, open(self.file("log", "audit.log"), "rb") as f:
            f.seek(self._audited_to)
            for line in f:
                if line.endswith(b"\n"):
                    self._audited.append(json.loads(line))
                    self._audited_to += len(line)
            return list(self._audited)

    @property
    def authority(self):
        """The certificate that the API server's is signed with."""
        with open(self.file("pki", "ca.crt"), encoding="utf-8") as f:
            return f.read()

    def api(self, token=None, timeout=60):
        """A new client: as the administrator, or with a bearer token."""
        context = ssl.create_default_context(cafile=self.file("pki", "ca.crt"))
        if not token:
            context.load_cert_chain(self.file("pki", "admin.crt"), self.file("pki", "admin.key"))
        return Api(*self.address, context, token, timeout)
