"""affected - which entries a change can affect.

A unit test or a corpus is affected by its own source and by every layer that it links; meson knows these. For the other
entries, PATHS maps what changed to names. A path that no row covers affects everything.
"""

import fnmatch
import json
import os
import subprocess
import sys

from catalog import BUILD, ROOT

# Path prefix: entries by name besides the unit tests. The first row that matches counts; "*" is everything.
PATHS = (
    ("docs/", ("docs*", "cli")),
    ("README.md", ("docs*",)),
    ("CONTRIBUTING.md", ("docs*",)),
    ("ARCHITECTURE.md", ("docs*",)),
    ("web/", ("page*", "web-*")),
    ("src/web/", ("page*", "web-*", "up")),
    ("src/cli/", ("cli*", "docs*", "up", "demo", "kubeflow*", "mlflow*", "programs")),
    ("src/kinds/dgdr/", ("dgdr-*", "model-dgdr", "sla-dgd", "example-*", "crds")),
    ("src/kinds/cuda/", ("cuda-*", "model-cuda", "crds")),
    ("src/kinds/algorithm/", ("algorithm-*", "model-algorithm", "crds")),
    ("src/history/", ("postgres", "web-history", "operator", "e2e")),
    ("src/probe/load/", ("load", "sla*")),
    ("src/probe/sla/", ("sla*", "dgdr-*")),
    ("src/probe/sim/", ("sim", "load", "sla*")),
    ("src/probe/ncu/", ("ncu*", "cuda-*")),
    ("src/probe/", ("measure", "probe-*", "algorithm-*", "ml*")),
    ("src/stats/", ("measure", "probe-*", "algorithm-*")),
    ("python/", ("reporter", "ml*", "frameworks", "kubeflow*")),
    ("examples/", ("docs*", "demo", "seeds*", "crds", "example-*")),
    ("deploy/", ("deploy-*", "crds", "installed")),
    ("k8s/", ("deploy-*",)),
    ("bench/", ("source",)),
    ("test/unit/", ()),
    ("test/fuzz/", ()),
    ("test/model/", ("model-*",)),
    ("test/seeds/", ("seeds",)),
)
ALWAYS = ("layers", "seeds", "source")


def changed_files(revision):
    """What differs between REVISION and the working tree, new files included."""
    def git(*args):
        done = subprocess.run(["git", *args], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"test/run: git {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout.splitlines()
    return git("diff", "--name-only", revision) + git("ls-files", "--others", "--exclude-standard")


def names_for(path):
    """Patterns of the entries that PATH affects; None: everything."""
    if path.startswith("test/") and path.count("/") == 2 and path.endswith((".py", ".mjs", ".sh")):
        return (path,)  # a test program itself: entries whose command names it
    for prefix, patterns in PATHS:
        if path.startswith(prefix):
            return patterns
    return None


def linked(files):
    """The names of unit tests and corpora that FILES are compiled into, as the asan build has recorded it."""
    directory = os.path.join(BUILD, "asan")
    done = subprocess.run(["meson", "introspect", "--targets", directory], stdout=subprocess.PIPE, check=False, text=True)
    if done.returncode:
        sys.exit("test/run: --since needs build/asan: run scripts/build asan")
    deps = subprocess.run(["ninja", "-C", directory, "-t", "deps"], stdout=subprocess.PIPE, check=True, text=True).stdout
    objects = {block.split(":", 1)[0] for block in deps.split("\n\n")
               if any(os.path.normpath(os.path.join(directory, line.strip())) in files for line in block.splitlines()[1:])}
    folders = {os.path.dirname(o) for o in objects}
    found = set()
    for target in json.loads(done.stdout):
        output = os.path.relpath(target["filename"][0], directory)
        name = os.path.basename(output)
        inputs = subprocess.run(["ninja", "-C", directory, "-t", "inputs", output], stdout=subprocess.PIPE, check=False,
                                text=True).stdout.split() if name.startswith(("unit-", "replay-")) else ()
        if any(os.path.dirname(i) in folders and i in objects for i in inputs):
            kind, _, subject = name.partition("-")
            found |= {f"asan:{subject}", f"unit:{subject}"} if kind == "unit" else {f"corpus:{subject}"}
    return found


def only(entries, revision):
    """Those of ENTRIES that the changes since REVISION can affect."""
    files = changed_files(revision)
    if not files:
        return []
    patterns = [names_for(path) for path in files]
    if None in patterns:
        return entries
    wanted = set(ALWAYS).union(*patterns)
    if any(path.endswith((".c", ".h")) for path in files):
        wanted |= linked({os.path.join(ROOT, path) for path in files})
    return [e for e in entries if any(fnmatch.fnmatch(e.name, p) or p in e.argv for p in wanted)]
