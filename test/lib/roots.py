"""Root directories for images that tests make: programs of this machine with the libraries that they need."""

import os
import shutil
import subprocess


def add_program(root, program, path=None):
    """PROGRAM under PATH (its own), and what the loader finds for it."""
    to = root + (path or program)
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy(os.path.realpath(program), to)
    libraries = subprocess.run(["ldd", os.path.realpath(program)], check=True, capture_output=True, text=True).stdout
    for word in libraries.split():
        if word.startswith("/"):
            os.makedirs(root + os.path.dirname(word), exist_ok=True)
            shutil.copy(word, root + word)


def add_python(root, path="/usr/bin/python3"):
    """Python with the most of its standard library."""
    version = os.path.basename(os.path.realpath("/usr/bin/python3"))
    add_program(root, "/usr/bin/python3", path)
    shutil.copytree(f"/usr/lib/{version}", os.path.join(root, "usr/lib", version), symlinks=True,
                    ignore=shutil.ignore_patterns("test", "__pycache__", "idlelib", "tkinter", "lib2to3", "dist-packages", "config-*"))


PACKAGES = "/usr/lib/python3/dist-packages"
FIND = """
import importlib, os, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for module in list(sys.modules.values()):
    path = getattr(module, "__file__", None) or ""
    if path.startswith("%s/"):
        print(path[len("%s/"):].split("/")[0])
""" % (PACKAGES, PACKAGES)


def add_packages(root, *modules):
    """What Debian's Python has of these modules and of what they import, with the shared libraries that it needs."""
    found = subprocess.run(["/usr/bin/python3", "-c", FIND, *modules], check=True, capture_output=True, text=True).stdout.split()
    metadata = [name for name in os.listdir(PACKAGES) if name.endswith((".dist-info", ".egg-info"))]
    for name in sorted({*found, *metadata}):
        to = root + os.path.join(PACKAGES, name)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.isdir(os.path.join(PACKAGES, name)):
            shutil.copytree(os.path.join(PACKAGES, name), to, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        else:
            shutil.copy(os.path.join(PACKAGES, name), to)
    objects = [os.path.join(folder, f) for folder, _, files in os.walk(root + "/usr/lib") for f in files if f.endswith(".so")]
    words = subprocess.run(["ldd", *objects], check=False, capture_output=True, text=True).stdout.split()
    for library in {w for w in words if w.startswith(("/lib", "/usr/lib")) and not w.endswith(":")}:
        if not os.path.exists(root + library):
            os.makedirs(root + os.path.dirname(library), exist_ok=True)
            shutil.copy(library, root + library)
