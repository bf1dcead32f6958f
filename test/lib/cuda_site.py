"""A place where CUDAExperiments really run: the embedded engine, or a real node, with the stand-in for ncu in the place of the tool.

    with Site(real=False) as site, site.scene() as scene:
        play = scene.create("a", site.spec("/bin/echo", "hello"))
        play.phase("Succeeded")

On the embedded engine programs are this machine's. On a real node the workload's image and the tool's are made here, under
the names that the seed has for them.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile

import ncu_samples
from cuda_play import EXPERIMENTS, GROUP, PROFILES, World, condition, ok
from roots import add_program, add_python
from sonde_test import ROOT, ControlPlane, Engine, Process, program, wait
from watched import Watched

SAMPLE_PROGRAM = "/cuda-samples/vectorAdd"
SAMPLE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0"
RUNNER = "docker.io/library/kratos-nsight-compute-poc:latest"
POD_IMAGE = "localhost/sonde-pod:1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TYPES = {EXPERIMENTS: GROUP, PROFILES: GROUP, "jobs": "/apis/batch/v1", "pods": "/api/v1", "configmaps": "/api/v1",
         "serviceaccounts": "/api/v1", "roles": RBAC, "rolebindings": RBAC, "events": "/apis/events.k8s.io/v1"}
SERVERS_OWN = ("default", "kube-root-ca.crt")
# A spec's environment may not have names that begin with SONDE_, so the stand-in is told by others.
NCU = """\
#!/usr/bin/python3
import os, sys
os.environ.update({"SONDE_NCU_" + name[4:]: value for name, value in os.environ.items() if name.startswith("TRY_")})
if "--export" in sys.argv:
    print("ncu", *sys.argv[1:], flush=True)
os.execv("%s", ["ncu", *sys.argv[1:]])
"""
PROGRAMS = ("/bin/echo", "/bin/sh", "/bin/sleep", "/bin/false", "/bin/true")


def write_ncu(path, replay):
    with open(path, "w", encoding="utf-8") as f:
        f.write(NCU % replay)
    os.chmod(path, 0o755)


def make_images(server, folder):
    """The workload's image and the tool's, on a real node; FOLDER is for their files."""
    root = os.path.join(folder, "workload")
    for path in PROGRAMS:
        add_program(root, path)
    add_program(root, "/bin/uname", SAMPLE_PROGRAM)
    with open(os.path.join(root, "data"), "w", encoding="utf-8") as f:
        f.write("not a program\n")
    server.rig("image", SAMPLE, root)
    root = os.path.join(folder, "runner")
    add_python(root)
    tools = os.path.join(root, "opt/ncu/tools")
    os.makedirs(tools)
    shutil.copy(os.path.join(ROOT, "test/tools/ncu-replay"), tools)
    shutil.copytree(os.path.join(ROOT, "test/data/ncu/recordings"), os.path.join(root, "opt/ncu/data/ncu/recordings"))
    if ncu_samples.are_there():
        shutil.copytree(ncu_samples.SAMPLES, os.path.join(root, "opt/ncu/samples"))
    write_ncu(os.path.join(root, "usr/bin/ncu"), "/opt/ncu/tools/ncu-replay")
    subprocess.run(["chmod", "-R", "a+rX", root], check=True)
    server.rig("image", RUNNER, root)


class Site:
    def __init__(self, real):
        self.real = real
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with self._stack:
            self.folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-cuda-", dir="/tmp"))
            os.chmod(self.folder, 0o755)
            self.server = self._stack.enter_context(
                ControlPlane.of("node") if self.real
                else Engine("--no-fsync", "--no-operator", "--gpus", "16"))
            self._lay_out_real() if self.real else self._lay_out_local()
            self.world = self._stack.enter_context(World("cluster" if self.real else "engine", self.server))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *what):
        return self._stack.__exit__(*what)

    def _lay_out_local(self):
        """The seed's program, under a name of this machine's."""
        self.sample = os.path.join(self.folder, "cuda-samples/vectorAdd")
        os.makedirs(os.path.dirname(self.sample))
        shutil.copy("/bin/uname", self.sample)
        write_ncu(os.path.join(self.folder, "ncu"), os.path.join(ROOT, "test/tools/ncu-replay"))

    def _lay_out_real(self):
        self.sample = SAMPLE_PROGRAM
        make_images(self.server, self.folder)
        archive = os.path.join(self.folder, "sonde-pod.tar")
        subprocess.run([os.path.join(ROOT, "scripts", "image"), program("sonde-pod"), archive, "--name", POD_IMAGE], check=True,
                       stdout=subprocess.DEVNULL)
        self.server.rig("load", archive)

    def recording(self, name):
        """Where the stand-in finds it."""
        return os.path.join("/opt/ncu/data" if self.real else os.path.join(ROOT, "test/data"), "ncu/recordings", name)

    def sample_of_real_run(self, name):
        return os.path.join("/opt/ncu/samples" if self.real else ncu_samples.SAMPLES, name)

    def spec(self, *command, env=None, **more):
        """ENV: {"TRY_FAIL": "permission"}, what the stand-in is told."""
        spec = {"image": SAMPLE, "command": list(command) or [self.sample], "profilingEnabled": True, **more}
        if env:
            spec["env"] = [{"name": name, "value": str(value)} for name, value in env.items()]
        return spec

    @contextlib.contextmanager
    def scene(self):
        with self.server.namespace("cuda") as ns:
            scene = Scene(self, ns)
            try:
                with scene.operator(), Watched(self.server, ns, TYPES) as scene.seen:
                    yield scene
            except BaseException:
                scene.show()
                raise


class Scene:
    """A namespace with an operator, and watches of all that happens in it."""

    seen = None

    def __init__(self, site, ns):
        self.site, self.world, self.ns = site, site.world, ns

    def operator(self, *arguments, env=None):
        """The program that is shipped."""
        own = ["--pod-image", POD_IMAGE] if self.site.real else \
            ["--profiler-env", "SONDE_NCU=" + os.path.join(self.site.folder, "ncu")]
        return Process(program("sonde"), "operator", "--kubeconfig", self.site.server.kubeconfig, "--namespace", self.ns,
                       "--health-probe-bind-address", "0", "--log-format", "logfmt", *own, *arguments, env=env)

    def create(self, name, spec, **more):
        return self.world.create(self.ns, name, spec, **more)

    def statuses(self, name):
        """All that an experiment has had, in order."""
        return [item.get("status", {}) for what, item in self.seen.versions(EXPERIMENTS, name) if what != "DELETED"]

    def phases(self, name):
        return [p for p in dict.fromkeys(s.get("phase", "") for s in self.statuses(name)) if p]

    def jobs_made(self, name):
        """The names of all Jobs of an experiment that there ever were, in order."""
        self.seen.catch_up("jobs")
        with self.seen.changed:
            made = [i for what, i in self.seen.seen["jobs"] if what == "ADDED"]
        return [j["metadata"]["name"] for j in made if j["metadata"]["labels"].get("gpu.scheduler.io/experiment") == name]

    def never_both(self, name):
        """Profiling and execution Jobs were never active together, and no Job was made twice."""
        live = {}
        made = self.jobs_made(name)
        assert len(made) == len(set(made)), made
        with self.seen.changed:
            jobs = [(what, i) for what, i in self.seen.seen["jobs"] if i["metadata"]["name"] in made]
        for what, job in jobs:
            ended = any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in job["status"].get("conditions") or [])
            live[job["metadata"]["name"]] = what != "DELETED" and not ended
            assert sum(live.values()) <= 1, live

    def events(self, reason):
        self.seen.catch_up("events")
        with self.seen.changed:
            return [e for e in self.seen.now["events"].values() if e["reason"] == reason]

    def left(self, name):
        """All that is there of an experiment: by its labels, its owner or its name."""
        found = []
        for kind, prefix in TYPES.items():
            for item in ok(self.world.api.get(f"{prefix}/namespaces/{self.ns}/{kind}"))["items"] if kind != "events" else []:
                meta = item["metadata"]
                if meta["name"] not in SERVERS_OWN and (
                        meta["name"] == name or meta["name"].startswith(name + "-") or
                        name in (meta.get("labels") or {}).values() or
                        any(o["name"] == name for o in meta.get("ownerReferences", []))):
                    found.append(f"{kind}/{meta['name']}")
        return found

    def goes(self, play, seconds):
        """It is deleted, and leaves nothing."""
        play.delete()
        wait(lambda: not self.left(play.name), seconds, "nothing to be left")

    def show(self):
        self.site.server.show(self.ns, f"{GROUP}/namespaces/{self.ns}/{EXPERIMENTS}")


def stalled(status):
    """(reason, message) of what a person must mend."""
    found = condition(status, "Stalled")
    return (found["reason"], found["message"]) if found.get("status") == "True" else (None, None)
