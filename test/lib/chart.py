"""chart - the Helm chart deploy/chart/sonde, rendered (test/tools/helm-render). scripts/manifests uses it, too."""

import fcntl
import os
import subprocess

from sonde_test import ROOT

CHART = os.path.join(ROOT, "deploy", "chart", "sonde")
TOOL = os.path.join(ROOT, "test", "tools", "helm-render")
BINARY = os.path.join(ROOT, "build", "helm-render")
# Debian's Go libraries are no modules: they are found by their place.
GO = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "", "CGO_ENABLED": "0"}
GO["PATH"] += ":/usr/lib/go/bin"
SERVED = ["policy/v1"]  # what the files in the repository are made for; 1.20 has policy/v1beta1 in its place


class Refused(Exception):
    """What the renderer said about the values."""


def renderer():
    """The renderer, built if it is not the newest; its own cache makes that quick. Another test may be running the one that is there."""
    os.makedirs(os.path.dirname(BINARY), exist_ok=True)
    with open(BINARY + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = BINARY + ".new"
        done = subprocess.run(["go", "build", "-o", new, "."], env=GO, cwd=TOOL, check=False, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise AssertionError(f"the chart's renderer cannot be built (scripts/deps cluster installs what it needs):\n{done.stderr}")
        os.replace(new, BINARY)
    return BINARY


_built = []


def render(namespace="sonde-system", values=(), only=(), served=None):
    """The text of the chart's objects. VALUES: ["replicas=2", ...]; ONLY: names of templates."""
    if not _built:
        _built.append(renderer())
    words = [BINARY, "--namespace", namespace]
    for value in values:
        words += ["--set", value]
    for name in only:
        words += ["--show-only", f"templates/{name}.yaml"]
    for version in SERVED if served is None else served:
        words += ["--api-versions", version]
    done = subprocess.run([*words, CHART], check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Refused(done.stderr)
    return done.stdout
