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
