"""A tracking server of MLflow, as far as `sonde results --to-mlflow` talks to one, and as strict: unknown members, names, lengths and
numbers of things that MLflow refuses are refused here too, with its status and its error_code.

    with Mlflow() as server:
        ... --to-mlflow server.url ...
        run = server.only_run()
"""

import contextlib
import http.server
import json
import posixpath
import re
import secrets
import ssl
import threading
import urllib.parse

NAME = re.compile(r"^[/\w.\- ]*$")
STATUSES = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")

# Members of each request: their types, and whether they must be there.
REQUESTS = {
    "experiments/create": {"name": (str, True), "artifact_location": (str, False), "tags": (list, False)},
    "runs/create": {"experiment_id": (str, True), "user_id": (str, False), "run_name": (str, False), "start_time": (int, False),
                    "tags": (list, False)},
    "runs/update": {"run_id": (str, True), "status": (str, False), "end_time": (int, False), "run_name": (str, False)},
    "runs/log-batch": {"run_id": (str, True), "metrics": (list, False), "params": (list, False), "tags": (list, False)},
}
METRIC = {"key": (str, True), "value": ((int, float), True), "timestamp": (int, True), "step": (int, False)}
PAIR = {"key": (str, True), "value": (str, False)}


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code = status, code


def invalid(message):
    return Refused(400, "INVALID_PARAMETER_VALUE", message)


def check(body, members, what):
    if not isinstance(body, dict):
        raise invalid(f"{what} is no object")
    for name, value in body.items():
        if name not in members:
            raise invalid(f"{what} has no field named '{name}'")
        if not isinstance(value, members[name][0]) or isinstance(value, bool):
            raise invalid(f"{what}.{name} has a wrong type: {value!r}")
    for name, (_, needed) in members.items():
        if needed and body.get(name) in (None, ""):
            raise invalid(f"Missing value for required parameter '{name}'")


def check_name(name):
    if not NAME.match(name) or len(name) > 250:
        raise invalid(f"Invalid name: '{name}'")
    normal = posixpath.normpath(name)
    if normal != name or normal == "." or normal.startswith("..") or normal.startswith("/"):
        raise invalid(f"Invalid name: '{name}' would resolve to '{normal}'")


def check_list(entries, members, what, most):
    if len(entries) > most:
        raise invalid(f"A batch logging request can contain at most {most} {what}. Got {len(entries)} {what}.")
    for entry in entries:
        check(entry, members, what)
        check_name(entry["key"])


class Mlflow:
    """SERVED: artifacts go through this server; else they are in an object store. FAIL: what is answered with a 500, by name, once it
    has been asked so many times. HOLD: what is never answered. TOKEN: whoever has none is refused."""

    def __init__(self, served=True, fail=None, hold=None, token=None, tls=None):
        self.served, self.fail, self.hold, self.token, self.tls = served, fail or {}, hold, token, tls
        self.experiments, self.runs, self.artifacts, self.asked = {"Default": "0"}, {}, {}, []
        self.held, self.release, self.lock = threading.Event(), threading.Event(), threading.Lock()

    def __enter__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                try:
                    status, answer = 200, outer.answer(self.command, self.path, self.headers, body)
                except Refused as e:
                    status, answer = e.status, {"error_code": e.code, "message": str(e)}
                text = json.dumps(answer).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)

            do_GET = do_POST = do_PUT = handle_one

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self.tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"{'https' if self.tls else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def only_run(self):
        assert len(self.runs) == 1, self.runs
        return next(iter(self.runs.values()))

    # --- requests

    def answer(self, method, path, headers, body):
        if self.token and headers.get("Authorization") != f"Bearer {self.token}":
            raise Refused(401, "UNAUTHENTICATED", "You are not authenticated.")
        url = urllib.parse.urlsplit(path)
        what = url.path.removeprefix("/api/2.0/mlflow/")
        with self.lock:
            self.asked.append(what)
            count = self.asked.count(what)
        if what == self.hold:
            self.held.set()
            self.release.wait()
        if what in self.fail and count > self.fail[what]:
            raise Refused(500, "INTERNAL_ERROR", "the database is away")
        if url.path.startswith("/api/2.0/mlflow-artifacts/artifacts/"):
            return self.put(method, urllib.parse.unquote(url.path.split("/artifacts/", 1)[1]), body)
        with self.lock:
            return self.call(method, what, dict(urllib.parse.parse_qsl(url.query)), headers, body)

    def call(self, method, what, query, headers, body):
        if (method, what) == ("GET", "experiments/get-by-name"):
            check(query, {"experiment_name": (str, True)}, what)
            if query["experiment_name"] not in self.experiments:
                raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Could not find experiment with name '{query['experiment_name']}'")
            return {"experiment": {"experiment_id": self.experiments[query["experiment_name"]], "name": query["experiment_name"],
                                   "lifecycle_stage": "active"}}
        if method != "POST" or what not in REQUESTS:
            raise Refused(404, "ENDPOINT_NOT_FOUND", f"{method} {what}")
        if headers.get("Content-Type") != "application/json":
            raise Refused(400, "INVALID_PARAMETER_VALUE", "Bad Request. Content-Type must be application/json.")
        if what == "runs/log-batch" and len(body) > 1_000_000:
            raise invalid("Batched logging API requests must be at most 1000000 bytes")
        request = json.loads(body)
        check(request, REQUESTS[what], what)
        return getattr(self, what.replace("/", "_").replace("-", "_"))(request)

    def experiments_create(self, request):
        if request["name"] in self.experiments:
            raise Refused(400, "RESOURCE_ALREADY_EXISTS", f"Experiment '{request['name']}' already exists.")
        self.experiments[request["name"]] = str(len(self.experiments))
        return {"experiment_id": self.experiments[request["name"]]}

    def runs_create(self, request):
        if request["experiment_id"] not in self.experiments.values():
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"No Experiment with id={request['experiment_id']} exists")
        check_list(request.get("tags", []), PAIR, "tags", 100)
        run_id = secrets.token_hex(16)
        root = "mlflow-artifacts:" if self.served else "s3://bucket"
        info = {"run_id": run_id, "run_uuid": run_id, "run_name": request.get("run_name"), "experiment_id": request["experiment_id"],
                "status": "RUNNING", "start_time": request.get("start_time"), "lifecycle_stage": "active",
                "artifact_uri": f"{root}/{request['experiment_id']}/{run_id}/artifacts"}
        self.runs[run_id] = {"info": info, "params": {}, "metrics": [], "tags": {t["key"]: t["value"] for t in request.get("tags", [])}}
        return {"run": {"info": info, "data": {}}}

    def run_of(self, request):
        if request["run_id"] not in self.runs:
            raise Refused(404, "RESOURCE_DOES_NOT_EXIST", f"Run with id={request['run_id']} not found")
        return self.runs[request["run_id"]]

    def runs_log_batch(self, request):
        run = self.run_of(request)
        metrics, params, tags = (request.get(k, []) for k in ("metrics", "params", "tags"))
        check_list(metrics, METRIC, "metrics", 1000)
        check_list(params, PAIR, "params", 100)
        check_list(tags, PAIR, "tags", 100)
        if len(metrics) + len(params) + len(tags) > 1000:
            raise invalid("A batch logging request can contain at most 1000 metrics, params, and tags.")
        for metric in metrics:
            if metric["timestamp"] < 0:
                raise invalid(f"Got invalid timestamp {metric['timestamp']}")
        for param in params:
            if len(param["value"]) > 500:
                raise invalid(f"Param value '{param['value']}' had length {len(param['value'])}, which exceeded length limit of 500")
            if run["params"].get(param["key"], param["value"]) != param["value"]:
                raise invalid(f"Changing param values is not allowed. Param with key='{param['key']}' was already logged")
            run["params"][param["key"]] = param["value"]
        run["metrics"] += metrics
        run["tags"].update({t["key"]: t["value"] for t in tags})
        return {}

    def runs_update(self, request):
        run = self.run_of(request)
        if request.get("status", "RUNNING") not in STATUSES:
            raise invalid(f"Invalid status {request['status']}")
        for name in "status", "end_time", "run_name":
            if name in request:
                run["info"][name] = request[name]
        return {"run_info": run["info"]}

    def put(self, method, path, body):
        if method != "PUT" or not self.served:
            raise Refused(404, "ENDPOINT_NOT_FOUND", method)
        if posixpath.normpath(path) != path or path.startswith(("/", "..")):
            raise invalid(f"Invalid path: {path}")
        self.artifacts[path] = body
        return {}
