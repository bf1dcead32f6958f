"""A real cluster with its node, the shipped images on it, and Sonde installed in it as its users do.

    with Site() as site:
        play = site.algorithms.create(site.namespace("team-a"), "sort", {"algorithmName": "quick_sort", "inputSize": 1000})
        play.phase("Completed", PATIENCE)

The cluster is the plane `node`, and is left as it was found.
"""

import contextlib
import datetime
import json
import os
import subprocess
import tempfile
import threading
import time

import algorithm_play
import chart
import cuda_play
import dgdr_play
import yaml
from cuda_site import make_images
from dgdr_play import ok
from e2e_images import archives
from installed import HOME
from sonde_test import ControlPlane, diag, kubectl_path, program, wait
from tidy import tidied

PATIENCE = 300
BUSYBOX = "localhost/busybox:1"  # is on every node of the rig, and knows nothing of us


class Site:
    def __init__(self):
        self._stack = contextlib.ExitStack()
        self.archives = {}
        self.kept = []  # paths of the operators' logs
        self._over = threading.Event()

    def __enter__(self):
        with self._stack:
            self.folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-e2e-", dir="/tmp"))
            os.chmod(self.folder, 0o755)
            self.server = self._stack.enter_context(ControlPlane.of("node"))
            self._stack.enter_context(tidied(self.server))
            self._images()
            self.manifests = manifests()
            self._before()
            self._worlds()
            follower = threading.Thread(target=self._follow)
            follower.start()
            self._stack.callback(lambda: (self._over.set(), follower.join()))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    # --- made before anything runs

    def _images(self):
        began = time.monotonic()
        self.archives = archives(self.server)
        made = time.monotonic()
        self.server.rig("load", *self.archives.values())
        make_images(self.server, self.folder)
        diag(f"images made in {made - began:.0f} s, loaded in {time.monotonic() - made:.0f} s")

    def apply(self, documents):
        """As JSON, which says of no name that it is a number or a truth."""
        self.server.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    def _before(self):
        """All but the operator itself; and a volume, which the rig has no provisioner for."""
        self.namespace(HOME)
        self.volume("history", claim="sonde-history")
        crds = [d for d in self.manifests if d["kind"] == "CustomResourceDefinition"]
        self.apply(crds)
        self.server.kubectl("wait", "--for=condition=Established", "--timeout=60s", *[f"crd/{d['metadata']['name']}" for d in crds])
        self.apply([d for d in self.manifests if d not in crds and d["kind"] != "Deployment"])

    def volume(self, name, claim=None):
        """A PersistentVolume that is a folder of this machine's; for a CLAIM of the operator's, if it is not to be anybody's."""
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        meant = {"claimRef": {"namespace": HOME, "name": claim}} if claim else {}
        self.apply([{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": folder}, **meant}}])

    def _worlds(self):
        """Clients of each kind. The definitions are there; what is Dynamo's own is not."""
        self.dgdrs, self.algorithms, self.cuda = (m.World("cluster", self.server) for m in (dgdr_play, algorithm_play, cuda_play))
        self.algorithms.crds = self.cuda.crds = ()
        self.dgdrs.crds = ("test/kinds/dgd-crd.yaml",)
        for world in self.dgdrs, self.algorithms, self.cuda:
            self._stack.enter_context(world)
        self.api = self.server.api()

    # --- what a scenario needs

    def namespace(self, name):
        """It stays until all scenarios have ended."""
        ok(self.server.api().post("/api/v1/namespaces", {"metadata": {"name": name}}), 201, 409)
        return name

    def label_node(self, **labels):
        """Of the GPU: product="Tesla-T4". They go with the site."""
        node, names = "/api/v1/nodes/node-1", [f"nvidia.com/gpu.{name.replace('_', '.')}" for name in labels]
        ok(self.server.api().patch(node, {"metadata": {"labels": dict(zip(names, labels.values()))}}))
        self._stack.callback(lambda: self.server.api().patch(node, {"metadata": {"labels": dict.fromkeys(names)}}))

    def kubectl(self, *words, **more):
        return self.algorithms.kubectl(*words, **more)

    def sonde(self, *words, check=True):
        """Standard output of a command of ours, as a person on this machine."""
        done = subprocess.run([program("sonde"), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={**os.environ, "KUBECONFIG": self.server.kubeconfig}, timeout=PATIENCE)
        assert not check or done.returncode == 0, (words, done.returncode, done.stderr)
        return done.stdout

    @staticmethod
    def run_namespace(**values):
        """What the chart makes for a namespace of runs."""
        return list(filter(None, yaml.safe_load_all(chart.render(values=[f"runNamespaces={json.dumps([values])}"], only=["runs"]))))

    def keep(self, context):
        """Enters a context that ends with the site."""
        return self._stack.enter_context(context)

    # --- the operator

    def install(self):
        """The Deployment, last of all."""
        self.apply([d for d in self.manifests if d["kind"] == "Deployment"])

    def pod(self):
        """The one operator that runs; None: none does."""
        items = ok(self.server.api().get(f"/api/v1/namespaces/{HOME}/pods"))["items"]
        runs = [p for p in items if "deletionTimestamp" not in p["metadata"] and p["status"].get("phase") == "Running"]
        return runs[0] if len(runs) == 1 else None

    def restart(self, *how):
        """Deletes the operator's pod; returns the one that comes after it."""
        old = wait(self.pod, PATIENCE, "the operator")["metadata"]
        self.kubectl("-n", HOME, "delete", "pod", old["name"], *how)

        def another():
            pod = self.pod()
            return pod and pod["metadata"]["uid"] != old["uid"] and pod
        return wait(another, PATIENCE, "the next operator")

    def stop(self):
        """The operator goes, and none comes after it: whoever watches everything would carry out what is another's."""
        self.kubectl("-n", HOME, "scale", "deployment", "sonde-operator", "--replicas=0")
        wait(lambda: not ok(self.server.api().get(f"/api/v1/namespaces/{HOME}/pods"))["items"], PATIENCE, "the operator to be gone")

    def _follow(self):
        """Keeps the log of every operator's pod: it goes with the pod, and operators are killed here."""
        followed = {}
        while not self._over.wait(0.5):
            with contextlib.suppress(OSError, AssertionError):
                items = ok(self.server.api().get(f"/api/v1/namespaces/{HOME}/pods"))["items"]
                for meta in (p["metadata"] for p in items if p["status"].get("phase") == "Running"):
                    if meta["uid"] not in followed:
                        path = os.path.join(self.folder, f"operator-{meta['uid']}.log")
                        with open(path, "wb") as out:
                            followed[meta["uid"]] = subprocess.Popen(
                                [kubectl_path(), "--kubeconfig", self.server.kubeconfig, "-n", HOME, "logs", "-f", meta["name"]],
                                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
                        self.kept.append(path)
        for process in followed.values():
            process.terminate()
            process.wait()

    def logs(self):
        """What every operator that has run has logged, as objects; a line that is just being written is left out."""
        entries = []
        for path in list(self.kept):
            with open(path, encoding="utf-8") as f:
                entries += [json.loads(line) for line in f if line.startswith("{") and line.endswith("\n")]
        return entries

    def log(self):
        """What the operator that runs now has logged, as objects."""
        text = self.kubectl("-n", HOME, "logs", wait(self.pod, PATIENCE, "the operator")["metadata"]["name"], check=False)
        return [json.loads(line) for line in text.splitlines()]


def manifests():
    """All that the chart makes with its own values, for the server's version."""
    return list(filter(None, yaml.safe_load_all(chart.render(HOME, served=[]))))


def moment(text):
    """A time of a log, in seconds."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
