#!/usr/bin/python3
"""The node: pods as processes, on an ordinary API server of which it is an ordinary client."""

import json
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ControlPlane, Process, Skip, diag, main, program

PATIENCE = 60


class Node:
    """One node of its own name, which no scheduler uses."""

    def __init__(self):
        self.name = "node-" + secrets.token_hex(4)
        self.dir = tempfile.mkdtemp(prefix="sonde-node-")
        os.chmod(self.dir, 0o755)
        self.process = None

    def __enter__(self):
        # Made beforehand, so that nobody else's pods ever come here.
        status, body = api.post("/api/v1/nodes", {"metadata": {"name": self.name}, "spec": {"unschedulable": True}})
        assert status == 201, body
        self.start()
        return self

    def start(self):
        self.process = Process(program("test/node-main"), "--kubeconfig", cluster.kubeconfig, "--name", self.name, "--dir",
                               self.dir, "--pod-image", "sonde-pod:test", "--pod-program", "/bin/cat", "--log-level", "info")
        self.process.expect("^ready", PATIENCE)

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def __exit__(self, kind, *_):
        self.process.stop(PATIENCE)
        if kind:
            diag("\n".join(self.process.lines[-40:]))
            for root, _, files in os.walk(os.path.join(self.dir, "pods")):
                for file in files:
                    if file in ("state.json", "supervisor.log"):
                        diag(file + ": " + open(os.path.join(root, file), encoding="utf-8", errors="replace").read())
        api.delete(f"/api/v1/nodes/{self.name}")
        shutil.rmtree(self.dir, ignore_errors=True)

    def pod_dir(self, pod):
        return os.path.join(self.dir, "pods", pod["metadata"]["uid"])

    def log(self, pod, container="main", restart=0):
        """The texts of a container's log, in order."""
        with open(os.path.join(self.pod_dir(pod), "log", container, f"{restart}.log"), encoding="utf-8") as f:
            lines = [re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) ([FP]) (.*)", l.rstrip("\n"))
                     for l in f]
        assert all(lines), "a line is not in the CRI's format"
        return [l[4] for l in lines]


def wait(what, check, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)


def container(script=None, name="main", **more):
    c = {"name": name, "image": "anything"}
    if script is not None:
        c["command"] = ["/bin/sh", "-c", script]
    return {**c, **more}


def run(node, ns, *containers, inits=(), policy="Never", name="p", **spec):
    body = {"metadata": {"name": name, "labels": {"who": "me"}},
            "spec": {"nodeName": node.name, "restartPolicy": policy, "automountServiceAccountToken": False,
                     "terminationGracePeriodSeconds": 1, "containers": list(containers), "initContainers": list(inits),
                     **spec}}
    status, pod = api.post(f"/api/v1/namespaces/{ns}/pods", body)
    assert status == 201, pod
    return pod


def get(ns, name="p"):
    status, pod = api.get(f"/api/v1/namespaces/{ns}/pods/{name}")
    return pod if status == 200 else None


def phase(ns, *phases, name="p", seconds=PATIENCE):
    def there():
        pod = get(ns, name)
        return pod if pod and pod.get("status", {}).get("phase") in phases else None
    return wait(f"phase {phases}", there, seconds)


def ended(pod, i=0, kind="containerStatuses"):
    return pod["status"][kind][i]["state"]["terminated"]


def namespace():
    """A namespace in which pods can be made: its service account is there."""
    made = cluster.namespace("node")
    ns = made.__enter__()
    wait("service account", lambda: api.get(f"/api/v1/namespaces/{ns}/serviceaccounts/default")[0] == 200)
    return made, ns


def in_namespace(test):
    def wrapped():
        made, ns = namespace()
        try:
            with Node() as node:
                test(node, ns)
        finally:
            made.__exit__(None, None, None)
    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


def alive(marker):
    """Processes whose command line has MARKER."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read().replace(b"\0", b" "):
                    found.append(int(pid))
        except OSError:
            pass
    return found


# --- the tests ---------------------------------------------------------------


@in_namespace
def a_pod_runs_and_its_status_is_a_kubelets(node, ns):
    run(node, ns, container("echo hello; echo oops >&2; exit 0"))
    pod = phase(ns, "Succeeded")
    status = pod["status"]["containerStatuses"][0]
    assert sorted(node.log(pod)) == ["hello", "oops"], node.log(pod)
    done = status["state"]["terminated"]
    assert done["exitCode"] == 0 and done["reason"] == "Completed" and done["startedAt"] and done["finishedAt"], done
    assert status["restartCount"] == 0 and status["ready"] is False and status["started"] is False, status
    conditions = {c["type"]: (c["status"], c.get("reason")) for c in pod["status"]["conditions"]}
    assert conditions == {"Initialized": ("True", "PodCompleted"), "Ready": ("False", "PodCompleted"),
                          "ContainersReady": ("False", "PodCompleted"), "PodScheduled": ("True", None)}, conditions
    ready = {c["type"]: c["status"] for c in api.get(f"/api/v1/nodes/{node.name}")[1]["status"]["conditions"]}
    assert ready["Ready"] == "True", ready
    status, lease = api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}")
    assert status == 200 and lease["spec"]["renewTime"], lease


if __name__ == "__main__":
    with ControlPlane.shared() as cluster:
        api = cluster.api()
        tests = [f for f in list(globals().values()) if callable(f) and getattr(f, "__name__", "").count("_") > 2]
        only = sys.argv[1:]
        main(*[t for t in tests if not only or t.__name__ in only])
