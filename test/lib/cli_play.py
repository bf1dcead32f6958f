"""The command line against either engine: objects of all kinds with statuses that nobody else writes, and what is said of them.

    with World("engine") as world, world.server.namespace("cli") as ns:
        world.make(ns, "ap", "a", status=running("Running"))
        world.sonde("get", "-n", ns).table() == [["KIND", ...], ["ap", "a", ...]]
"""

import copy
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from dgdr_play import ok
from sonde_test import ROOT, ControlPlane, Engine, program, wait

PATIENCE = 180
KINDS = {  # label: group and version, plural, kind, a small spec
    "dgdr": ("nvidia.com/v1alpha1", "dynamographdeploymentrequests", "DynamoGraphDeploymentRequest",
             {"model": "Qwen/Qwen3-0.6B", "backend": "vllm",
              "profilingConfig": {"profilerImage": "registry.example/profiler:1",
                                  "config": {"sla": {"isl": 3000, "osl": 500, "ttft": 50, "itl": 10}}}}),
    "cudaexp": ("gpu.scheduler.io/v1alpha1", "cudaexperiments", "CUDAExperiment",
                {"image": "registry.example/vectoradd:1", "command": ["/vectorAdd"]}),
    "ap": ("dprofiler.io/v1alpha1", "algorithmprofilings", "AlgorithmProfiling",
           {"algorithmName": "quick_sort", "inputSize": 1000, "iterations": 5}),
    "ac": ("dprofiler.io/v1alpha1", "algorithmcomparisons", "AlgorithmComparison",
           {"algorithms": [{"name": "quick_sort"}, {"name": "merge_sort"}], "inputSize": 1000, "iterations": 5}),
    "wprof": ("gpu.scheduler.io/v1alpha1", "workloadprofiles", "WorkloadProfile",
              {"workloadImage": "registry.example/vectoradd:1", "sourceCudaExperiment": "vectoradd"}),
}
REQUESTS = ("dgdr", "cudaexp", "ap", "ac")
STATE = {"dgdr": "state"}  # the others say "phase"
WORDS = {"dgdr": {"Running": "Profiling", "Completed": "Ready", "Cancelled": "Failed"},
         "cudaexp": {"Running": "Profiling", "Completed": "Succeeded", "Cancelled": "Failed"}}  # their own words for it
HOUR = 3600


def at(seconds):
    """A time so far from now, as Kubernetes writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def condition(kind, status, reason, message="", ago=12.5 * HOUR):
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(-ago),
            "observedGeneration": 1}


def status_of(kind, state, *conditions, **more):
    return {STATE.get(kind, "phase"): WORDS.get(kind, {}).get(state, state), "observedGeneration": 1, "conditions": list(conditions), **more}


def running(kind, state="Running", **progress):
    """Half way: about 22 hours are left, which is what is said for the next half hour."""
    told = {"percent": 41.2, "phase": "DecodeSweep", "phaseNumber": 3, "totalPhases": 7, "currentStep": 5, "totalSteps": 12,
            "message": "Benchmarking batch size 256", "bestSoFar": "TP=4  ITL 11.8 ms", "startedAt": at(-14.5 * HOUR), "updatedAt": at(-5),
            "estimatedCompletion": {"low": at(18.5 * HOUR), "mid": at(22.5 * HOUR), "high": at(31.5 * HOUR)}, **progress}
    return status_of(kind, state, condition("Progressing", "True", "Running", "the workload runs"),
                     run={"attempt": 2, "job": "profile-x-2", "retries": 1, "specHash": "h"}, progress=told)


def ended(kind, state, good, reason, message):
    last = condition("Ready", "True", reason, message) if good else condition("Stalled", "True", reason, message)
    return status_of(kind, state, last, run={"attempt": 1, "job": "profile-x", "retries": 0, "specHash": "h",
                                             "outcome": "Succeeded" if good else "Failed"})


def waiting(kind, reason, message, state="Pending", **more):
    return status_of(kind, state, condition("Progressing", "False", reason, message),
                     run={"attempt": 1, "job": "profile-x", "retries": 0, "specHash": "h"}, **more)


class Said:
    """What a command said, and how it ended."""

    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    def table(self):
        """The cells of the lines; those of the column AGE are not compared."""
        rows = [re.split(r"\s{2,}", line.strip()) for line in self.out.splitlines()]
        if rows and "AGE" in rows[0]:
            place = rows[0].index("AGE")
            for row in rows[1:]:
                assert re.fullmatch(r"\d+[smhd](\d+m)?", row[place]), row
                row[place] = "AGE"
        return rows

    def expect(self, code, out=None, err=""):
        """Exit status and output; patterns where they are compiled, whole texts otherwise. Returns itself."""
        for wanted, said in ((out, self.out), (err, self.err)):
            if isinstance(wanted, re.Pattern):
                assert wanted.search(said), (wanted.pattern, said, self.err)
            elif wanted is not None:
                assert said == wanted, (said, wanted, self.err)
        assert self.code == code, (self.code, self.out, self.err)
        return self


class Wire:
    """What lies between a command and its cluster, and can be cut.

        with Wire(world.server.kubeconfig, world.folder) as wire:
            ... programs use wire.kubeconfig ...
            wire.cut()
            wire.mend()
    """

    def __init__(self, kubeconfig, folder):
        with open(kubeconfig, encoding="utf-8") as f:
            text = f.read()
        host, port = re.search(r"server: https?://([\d.]+):(\d+)", text).groups()
        self._upstream, self._whole, self._ends = (host, int(port)), True, []
        self._lock, self._listener = threading.Lock(), socket.create_server(("127.0.0.1", 0))
        self.kubeconfig = os.path.join(folder, "wire.yaml")
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(text.replace(f"{host}:{port}", f"127.0.0.1:{self._listener.getsockname()[1]}"))

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            with self._lock:
                if not self._whole:
                    near.close()
                    continue
                far = socket.create_connection(self._upstream)
                self._ends += [near, far]
            for a, b in (near, far), (far, near):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    @staticmethod
    def _pump(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        """Every connection breaks off, and so does every new one."""
        with self._lock:
            self._whole = False
            for end in self._ends:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()
            self._ends = []

    def mend(self):
        with self._lock:
            self._whole = True


class World:
    """One of the two engines, with the definitions of all kinds and nobody who carries out anything."""

    def __init__(self, which, server=None):
        self.which = which
        self.server = server or (ControlPlane.of("shared") if which == "cluster" else Engine("--no-node", "--no-fsync"))
        self._given = server is not None

    def __enter__(self):
        if not self._given:
            self.server.__enter__()
        self.folder = tempfile.mkdtemp(prefix="sonde-cli-")
        self.api = self.server.api()
        crds = os.path.join(ROOT, "deploy", "crds")
        self.sonde("apply", "-f", *(os.path.join(crds, f"{plural}.yaml") for _, plural, _, _ in KINDS.values())).expect(0)
        for group, plural, _, _ in KINDS.values():
            wait(lambda g=group, p=plural: self.api.get(f"/apis/{g}/{p}")[0] == 200, PATIENCE, f"{plural} to be served")
        return self

    def __exit__(self, *what):
        shutil.rmtree(self.folder, ignore_errors=True)
        if not self._given:
            self.server.__exit__(*what)

    def env(self, **more):
        return {**os.environ, "KUBECONFIG": self.server.kubeconfig, "HOME": self.folder, "TZ": "UTC", **more}

    def sonde(self, *words, stdin="", path=None, **env):
        done = subprocess.run([path or program("sonde"), *words], input=stdin, env=self.env(**env), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        return Said(done)

    def path(self, ns, kind, name=""):
        group, plural, _, _ = KINDS[kind]
        return f"/apis/{group}/namespaces/{ns}/{plural}" + (f"/{name}" if name else "")

    def make(self, ns, kind, name, spec=None, status=None, **metadata):
        group, _, name_of_kind, small = KINDS[kind]
        made = ok(self.api.post(self.path(ns, kind), {"apiVersion": group, "kind": name_of_kind,
                                                      "metadata": {"name": name, **metadata},
                                                      "spec": {**copy.deepcopy(small), **(spec or {})}}))
        if status:
            self.tell(ns, kind, name, status)
        return made

    def tell(self, ns, kind, name, status):
        """Writes the status, as the operator would."""
        return ok(self.api.patch(self.path(ns, kind, name) + "/status", {"status": status}))

    def get(self, ns, kind, name):
        return ok(self.api.get(self.path(ns, kind, name)))
