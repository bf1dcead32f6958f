"""What tests of the metrics share: requests of every kind, operators beside the embedded engine, and a real Prometheus.

    with MetricsSite() as site:
        site.scrape()["dprofiler_job_status"].samples

A scrape is read by a parser of its own, which is strict: what it does not know fails.
"""

import contextlib
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
import urllib.request

import yaml

from sonde_test import ROOT, Engine, Process, program, wait

PATIENCE = 180
PORTS_TRIED = 5
KINDS = {"AlgorithmProfiling": ("dprofiler.io/v1alpha1", "algorithmprofilings"),
         "AlgorithmComparison": ("dprofiler.io/v1alpha1", "algorithmcomparisons"),
         "CUDAExperiment": ("gpu.scheduler.io/v1alpha1", "cudaexperiments"),
         "DynamoGraphDeploymentRequest": ("nvidia.com/v1alpha1", "dynamographdeploymentrequests")}
NS = "default"
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+0-9.eE]+|[+-]Inf|NaN)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
SLOW = {"algorithmName": "sleeper", "algorithmType": "custom", "inputSize": 1, "iterations": 3, "warmup": 0,
        "customConfig": {"image": "any", "command": ["/bin/sleep", "0.05"]}}


def load(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return list(yaml.safe_load_all(f))


class Family:
    def __init__(self, kind):
        self.type, self.samples, self.labels = kind, {}, set()

    def find(self, **labels):
        """The values of the samples that have these labels."""
        return [value for have, value in self.samples.items() if set(labels.items()) <= set(have)]


def read_text(text):
    families = {}
    for line in text.splitlines():
        head = re.fullmatch(r"# (HELP|TYPE) (\S+) (.+)", line)
        if head:
            if head[1] == "TYPE":
                assert head[2] not in families, f"{head[2]} twice"
                families[head[2]] = Family(head[3])
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        name = sample[1] if sample[1] in families else re.sub(r"_(bucket|sum|count)$", "", sample[1])
        family, labels = families[name], LABEL.findall(sample[2] or "")
        assert LABEL.sub("", sample[2] or "") == "", line
        key = (("__name__", sample[1]), *labels)
        assert key not in family.samples, f"twice: {line}"
        family.samples[key] = float(sample[3])
        family.labels |= {name for name, _ in labels} - {"le"}
    return families


class Operator:
    """The program that is shipped, beside the engine."""

    def __init__(self, site, *arguments):
        self.api = "--listen" in arguments
        self.process = Process(program("sonde"), "operator", "--kubeconfig", site.engine.kubeconfig,
                               "--health-probe-bind-address", "127.0.0.1:0", "--history", site.history, *arguments)

    def __enter__(self):
        if self.api:
            self.api_port = int(self.process.expect(r'"Serving the API and the page".*"port":(\d+)', PATIENCE)[1])
        self.port = int(self.process.expect(r'"Started".*"port":(\d+)', PATIENCE)[1])
        return self

    def __exit__(self, *_):
        self.process.signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.process.stop()

    def text(self, port=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{port or self.port}/metrics", timeout=PATIENCE) as answer:
            return answer.read().decode()

    def text_api(self):
        return self.text(self.api_port)

    def scrape(self):
        return read_text(self.text())

    def scrape_api(self):
        return read_text(self.text_api())


class Prometheus:
    """Debian's, on loopback, with the guide's prometheus.yml in which only the address is another one."""

    def __init__(self, folder, target, rules):
        text = load("examples", "seeds", "dprofiler-metrics-config.yaml")[0]["data"]["prometheus.yml"]
        assert text.count("dprofiler-api-service:8000") == 1, text
        config, rule_file = os.path.join(folder, "prometheus.yml"), os.path.join(folder, "rules.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(text.replace("dprofiler-api-service:8000", target) + f"rule_files: ['{rule_file}']\n")
        with open(rule_file, "w", encoding="utf-8") as f:
            json.dump(rules, f)
        for _ in range(PORTS_TRIED):
            self.port = self.free_port()
            self.process = Process("prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn")
            if self._listens():
                return
        raise AssertionError("\n".join(self.process.lines))

    @staticmethod
    def free_port():
        """One that was free a moment ago: it cannot be told to take any, nor be asked which one it took."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            return free.getsockname()[1]

    def _listens(self):
        """Waits until it does; False: somebody else has taken the port meanwhile, and it has ended."""
        def settled():
            return self.process.popen.poll() is not None or self.get("/api/v1/status/buildinfo")

        wait(settled, PATIENCE, "Prometheus to listen")
        if self.process.popen.poll() is None:
            return True
        self.process.wait()  # and until what it said has been read
        assert any("address already in use" in line for line in self.process.lines), self.process.lines
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()

    def get(self, path):
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
                return json.load(answer)["data"]
        return None

    def firing(self, alert, **labels):
        """The alerts of that name that fire, with these labels."""
        alerts = (self.get("/api/v1/alerts") or {}).get("alerts", [])
        return [a for a in alerts if a["state"] == "firing" and a["labels"]["alertname"] == alert
                and set(labels.items()) <= set(a["labels"].items())]


class MetricsSite:
    def __init__(self):
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-metrics-", dir="/tmp"))
            os.chmod(self.folder, 0o755)  # a run may look into it
            self.history, self.release = os.path.join(self.folder, "history.db"), os.path.join(self.folder, "release")
            self.engine = self._stack.enter_context(Engine("--no-fsync", "--no-operator", "--cpus", "64", "--gpus", "1"))
            self.api = self.engine.api()
            for kind in KINDS:
                wait(lambda kind=kind: self.api.get(self.path(kind))[0] == 200, PATIENCE, f"{kind} to be served")
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def enter(self, other):
        return self._stack.enter_context(other)

    def path(self, kind, name=None):
        version, plural = KINDS[kind]
        return f"/apis/{version}/namespaces/{NS}/{plural}" + (f"/{name}" if name else "")

    def create(self, kind, name, spec):
        code, body = self.api.post(self.path(kind), {"apiVersion": KINDS[kind][0], "kind": kind, "metadata": {"name": name},
                                                     "spec": spec})
        assert code == 201, body

    def status(self, kind, name):
        return self.api.get(self.path(kind, name))[1].get("status", {})

    def phase(self, kind, name, phase):
        return wait(lambda: self.status(kind, name).get("phase") == phase, PATIENCE, f"{name} to be {phase}", 0.2)

    def delete(self, kind, name):
        code, body = self.api.delete(self.path(kind, name))
        assert code == 200, body

    # --- what there is to see

    def make_history(self):
        """Runs of one algorithm that were fast, and then some that were not: all but the first one are copies of it."""
        with Operator(self):
            self.create("AlgorithmProfiling", "slow-0", SLOW)
            self.phase("AlgorithmProfiling", "slow-0", "Completed")
        self.delete("AlgorithmProfiling", "slow-0")
        times = [0.010, 0.0101, 0.0102, 0.0099, 0.0098, 0.01, 0.0103] * 3 + [0.052, 0.053, 0.0525, 0.051, 0.0535, 0.0522]
        with contextlib.closing(sqlite3.connect(self.history)) as db, db:
            for table in "run", "measure":
                columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                row = dict(zip(columns, db.execute(f"SELECT * FROM {table} LIMIT 1").fetchone()))
                for i, seconds in enumerate(times):
                    row.update(uid=f"copy-{i}", finished=int((time.time() - 3600 + 60 * i) * 1e6))
                    if table == "run":
                        row.update(name=f"copy-{i}", started=row["finished"] - 1000000)
                    else:
                        row.update(seconds=seconds, low=seconds, high=seconds)
                    db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", list(row.values()))
            db.execute("DELETE FROM measure WHERE uid NOT LIKE 'copy-%'")

    def create_all(self):
        """One of each kind at least; one that holds memory until it is released, one that fails, one that has become slower."""
        hold = "import os,sys,time\nb=b'x'*(300<<20)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.05)"
        custom = {"algorithmType": "custom", "inputSize": 1, "iterations": 1, "warmup": 0}
        self.create("AlgorithmProfiling", "hog", {"algorithmName": "hog", **custom, "customConfig": {
            "image": "any", "command": ["/usr/bin/python3", "-c", hold, self.release]}})
        self.create("AlgorithmProfiling", "broken", {"algorithmName": "broken", **custom, "customConfig": {
            "image": "any", "command": ["/bin/false"]}})
        self.create("AlgorithmProfiling", "slow-1", SLOW)
        self.create("AlgorithmComparison", "sorts", {"algorithms": [{"name": "quick_sort"}, {"name": "merge_sort"}],
                                                     "inputSize": 1000, "iterations": 2})
        for file, kind in ("cudaexperiment.yaml", "CUDAExperiment"), ("dgdr.yaml", "DynamoGraphDeploymentRequest"):
            example = load("examples", file)[0]
            self.create(kind, example["metadata"]["name"], example["spec"])


def promtool(*arguments, stdin=""):
    """Exit status and all that was said."""
    done = subprocess.run(["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr
