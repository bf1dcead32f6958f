"""The images that are shipped, as archives: made by scripts/images, but for sonde-ml, which is kept while nothing of it changes.

Making sonde-ml downloads and unpacks 160 packages of Debian's, and takes minutes. It is kept in the rig's cache under a name made
of all that goes into it: the scripts, the adapters, our version, and those of the packages that would be installed now.
"""

import functools
import glob
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys

from sonde_test import ROOT, diag, kubectl_path

SCRIPT = os.path.join(ROOT, "scripts", "images")
ML = "sonde-ml"
NAMES = ("sonde", "sonde-pod", "kubeflow-component", ML)


def _script():
    """scripts/images as a module."""
    sys.path.insert(0, os.path.dirname(SCRIPT))
    loader = importlib.machinery.SourceFileLoader("images", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("images", loader))
    loader.exec_module(module)
    return module


def _inputs():
    """A hash of what sonde-ml is made of."""
    images, h = _script(), hashlib.sha256()
    adapters = sorted(glob.glob(os.path.join(ROOT, "python/frameworks/*.py")))
    for path in [SCRIPT, os.path.join(ROOT, "scripts/oci.py"), os.path.join(ROOT, "python/sonde_ml.py"), *adapters]:
        with open(path, "rb") as f:
            h.update(path[len(ROOT):].encode() + f.read())
    h.update(repr([images.version(), sorted(images.closure(images.ML).items())]).encode())
    return h.hexdigest()[:16]


def _make(folder, *names):
    done = subprocess.run([SCRIPT, *names, "--out", folder], check=True, stdout=subprocess.PIPE, text=True)
    diag(done.stdout)


@functools.lru_cache
def kept():
    """The path of sonde-ml in the cache, made now if it is not there; what is in it is beside it, as .spdx.json."""
    cache = os.path.join(os.path.dirname(os.path.dirname(kubectl_path())), "images")
    path = os.path.join(cache, f"{ML}-{_inputs()}.tar")
    if not os.path.exists(path):
        making = f"{path}.{os.getpid()}"
        _make(making, ML)
        for old in glob.glob(os.path.join(cache, f"{ML}-*.tar")) + glob.glob(os.path.join(cache, f"{ML}-*.json")):
            os.unlink(old)
        for made, place in (f"{ML}.spdx.json", path.removesuffix(".tar") + ".spdx.json"), (f"{ML}.tar", path):
            os.rename(os.path.join(making, made), place)
        os.rmdir(making)
    return path


def made(server):
    """The folder of all but sonde-ml, made once for each control plane with a node."""
    folder = server.file("images")
    if not os.path.exists(folder):
        _make(folder + ".new", *[name for name in NAMES if name != ML])
        os.rename(folder + ".new", folder)
    return folder


def archive_of(server, name):
    return kept() if name == ML else os.path.join(made(server), f"{name}.tar")


def archives(server):
    """{name: archive}"""
    return {name: archive_of(server, name) for name in NAMES}


def reference(name):
    """What an image is called: as scripts/images names it."""
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        return f"localhost/{name}:" + re.search(r"version: '([^']+)'", f.read())[1]
