"""A place where AlgorithmProfilings and AlgorithmComparisons really run: the embedded engine, or a real node.

    with Site(real=False) as site, site.scene() as scene:
        play = scene.create("a", {"algorithmName": "quick_sort", "inputSize": 1000})
        play.phase("Completed")

On the embedded engine programs are this machine's, and so is Python with its frameworks. On a real node an image has a few
programs, and Python with sklearn and dask.
"""

import contextlib
import os
import subprocess
import tempfile

from algorithm_play import COMPARISONS, GROUP, PROFILINGS, World
from roots import add_packages, add_program, add_python
from sonde_test import ROOT, ControlPlane, Engine, Process, diag, program
from watched import Watched

IMAGE = "docker.io/library/algorithm-site:1"
POD_IMAGE = "localhost/sonde-pod:1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TYPES = {PROFILINGS: GROUP, COMPARISONS: GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1",
         "serviceaccounts": "/api/v1", "roles": RBAC, "rolebindings": RBAC, "events": "/apis/events.k8s.io/v1"}
MODULES = ("sklearn.ensemble", "sklearn.feature_selection", "sklearn.model_selection", "dask.array", "dask.distributed")
CPUS = "64"  # that the node says it has: the seeds' requests are for a larger machine
PROGRAMS = ("/bin/echo", "/bin/sh", "/bin/sleep", "/bin/false", "/bin/true")


class Site:
    def __init__(self, real):
        self.real = real
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-algorithm-", dir="/tmp"))
            os.chmod(self.folder, 0o755)
            self.server = self._stack.enter_context(
                ControlPlane.of("node") if self.real else Engine("--no-fsync", "--no-operator", "--cpus", CPUS))
            if self.real:
                self._lay_out()
            self.world = self._stack.enter_context(World("cluster" if self.real else "engine", self.server))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def _lay_out(self):
        root = os.path.join(self.folder, "root")
        for path in PROGRAMS:
            add_program(root, path)
        add_python(root)
        add_packages(root, *MODULES)
        subprocess.run(["chmod", "-R", "a+rX", root], check=True)
        self.server.rig("image", IMAGE, root)
        archive = os.path.join(self.folder, "sonde-pod.tar")
        subprocess.run([os.path.join(ROOT, "scripts", "image"), program("sonde-pod"), archive, "--name", POD_IMAGE], check=True,
                       stdout=subprocess.DEVNULL)
        self.server.rig("load", archive)

    @contextlib.contextmanager
    def scene(self, ns=None):
        """NS: of this name."""
        with contextlib.ExitStack() as stack:
            ns = self._named(ns) if ns else stack.enter_context(self.server.namespace("algorithm"))
            scene = Scene(self, ns)
            try:
                with scene.operator() as scene.process, Watched(self.server, ns, TYPES) as scene.seen:
                    yield scene
            except BaseException:
                scene.show()
                raise

    def _named(self, ns):
        code, body = self.server.api().post("/api/v1/namespaces", {"metadata": {"name": ns}})
        assert code in (201, 409), body
        return ns


class Scene:
    """A namespace with an operator, and watches of all that happens in it."""

    seen = process = None

    def __init__(self, site, ns):
        self.site, self.world, self.ns = site, site.world, ns

    def operator(self, *arguments):
        """The program that is shipped."""
        own = ["--pod-image", POD_IMAGE, "--ml-image", IMAGE] if self.site.real else []
        return Process(program("sonde"), "operator", "--kubeconfig", self.site.server.kubeconfig, "--namespace", self.ns,
                       "--health-probe-bind-address", "0", "--log-format", "logfmt", "--history",
                       os.path.join(self.site.folder, f"history-{self.ns}.db"), "--profiler-env", "SONDE_PYTHON=/usr/bin/python3",
                       *own, *arguments)

    def create(self, name, spec, **more):
        return self.world.create(self.ns, name, spec, **more)

    def statuses(self, plural, name):
        """All that a request has had, in order."""
        return [item.get("status", {}) for what, item in self.seen.versions(plural, name) if what != "DELETED"]

    def made(self, kind):
        """The names of all objects of a kind that there ever were, in order."""
        self.seen.catch_up(kind)
        with self.seen.changed:
            return [i["metadata"]["name"] for what, i in self.seen.seen[kind] if what == "ADDED"]

    def show(self):
        self.site.server.show(self.ns, *(f"{GROUP}/namespaces/{self.ns}/{plural}" for plural in (PROFILINGS, COMPARISONS)))
        diag("the operator:\n" + "\n".join(self.process.lines[-20:]))
