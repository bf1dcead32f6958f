"""catalog - the tests there are, and which of them a tier runs.

An entry is one program that prints TAP: a line of test/tests.list, a unit test (test/unit/*.c) or a fuzzer whose corpus
is replayed (test/fuzz/*.c).
"""

import fnmatch
import os
import re
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("SONDE_BUILD", os.path.join(ROOT, "build"))
LIST = os.path.join(ROOT, "test", "tests.list")

# Tier: the tiers of the entries that it runs. "plain" are the unit tests without sanitizers, which take half the time.
TIERS = {
    "quick": ("quick", "plain"),
    "test": ("quick", "test"),
    "cluster": ("cluster",),
    "peers": ("peers",),
    "soak": ("quick", "plain", "test", "cluster", "peers", "soak"),
}
EXTENT = {"quick": "quick", "soak": "long"}  # how much a test tries (SONDE_EXTENT); the other tiers: "usual"
MARKS = {"alone", "asan", "once", "waits"}
PLANES = ("shared", "fragile", "node")
UNIT_BUDGET = 10
FUZZ_BUDGET = 5
FUZZ_SECONDS = 600  # a fuzzer in `make soak`


class Entry:
    """One program. BUDGET: seconds on a quiet machine with two cores. MARKS and PLANE: see test/tests.list."""

    def __init__(self, name, tier, budget, argv, marks=(), plane=None):
        self.name, self.tier, self.budget, self.argv = name, tier, budget, argv
        self.marks, self.plane = set(marks), plane
        self.limit = max(300, 15 * budget)  # seconds that only a hang takes, however busy the machine is
        self.missing = None  # why it cannot run

    def __str__(self):
        marks = ",".join(sorted(self.marks) + ([f"plane={self.plane}"] if self.plane else []))
        return f"{self.name:28} {self.tier:8} {self.budget:5} s  {marks or '-':22} {' '.join(self.argv)}"


def parse_line(line, where, soak):
    """An entry from a line of test/tests.list; None for a comment."""
    words = line.split("#")[0].split()
    if not words:
        return None
    if len(words) < 4:
        sys.exit(f"{where}: expected name, tier, budget and command")
    name, tier, budget, *argv = words
    tier, *marks = tier.split(",")
    planes = [m[len("plane="):] for m in marks if m.startswith("plane=")]
    marks = [m for m in marks if not m.startswith("plane=")]
    if tier not in TIERS or set(marks) - MARKS or set(planes) - set(PLANES) or len(planes) > 1:
        sys.exit(f"{where}: unknown tier, mark or plane in '{words[1]}'")
    usual, _, long = budget.partition("/")
    return Entry(name, tier, int(long if long and soak else usual), argv, marks, planes[0] if planes else None)


def read_list(path, soak=False):
    with open(path, encoding="utf-8") as f:
        entries = (parse_line(line, f"{path}:{number}", soak) for number, line in enumerate(f, 1))
        return [e for e in entries if e]


def programs(directory, pattern):
    """The names of the C files in DIRECTORY whose text matches PATTERN."""
    path = os.path.join(ROOT, directory)
    names = []
    for file in sorted(os.listdir(path)):
        if file.endswith(".c"):
            with open(os.path.join(path, file), encoding="utf-8") as f:
                if re.search(pattern, f.read()):
                    names.append(file[:-2])
    return names


def built(name, tier, budget, binary, *arguments):
    entry = Entry(name, tier, budget, [binary, *arguments])
    if not os.access(binary, os.X_OK):
        entry.missing = f"{os.path.relpath(binary, ROOT)} is not built"
    return entry


def unit_tests():
    for name in programs("test/unit", r"\bUNIT_MAIN|\bint main\("):
        yield built("asan:" + name, "test", UNIT_BUDGET, os.path.join(BUILD, "asan", "test", "unit-" + name))
        yield built("unit:" + name, "plain", UNIT_BUDGET, os.path.join(BUILD, "test", "unit-" + name))


def fuzzers(soak):
    for name in programs("test/fuzz", r"\bint LLVMFuzzerTestOneInput\("):
        if soak:
            entry = built("fuzz:" + name, "soak", FUZZ_SECONDS, os.path.join(BUILD, "fuzz", "test", "fuzz", name))
            entry.argv = [os.path.join(ROOT, "scripts", "fuzz"), str(FUZZ_SECONDS), name]
            yield entry
        yield built("corpus:" + name, "test", FUZZ_BUDGET, os.path.join(BUILD, "asan", "test", "fuzz", "replay-" + name),
                    os.path.join("test", "fuzz", "corpus", name))


def everything(soak=False):
    return read_list(LIST, soak) + list(unit_tests()) + list(fuzzers(soak))


def select(entries, tier, patterns):
    """The entries of TIER, or those that PATTERNS name whatever their tier; the longest first, so that none is left over."""
    if patterns:
        chosen = [e for e in entries if any(fnmatch.fnmatch(e.name, p) for p in patterns)]
    else:
        chosen = [e for e in entries if e.tier in TIERS[tier]]
    return sorted(chosen, key=lambda e: -e.budget)
