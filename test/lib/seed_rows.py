"""seed_rows - reads test/seeds/rows.md, the table of what the seeds ask for and which tests prove it.

A row is `| id | section | ask | tier | proof |`. test/seeds/table.py checks the table, test/seeds/check what the tiers that
ran have proven, and main() of sonde_test prints the rows that a test proves.
"""

import os
import re

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
ROWS = os.path.join(ROOT, "test", "seeds", "rows.md")
TIERS = ("test", "cluster", "peers", "soak")
COLUMNS = 5
NOTES = ("stand-in", "simulated", "measured", "whole")
ITEM = re.compile(r"`([^`:\s]+)::([^`]+)`(?: \(((?:" + "|".join(NOTES) + r"): [^()`]+)\))?")
OPEN = re.compile(r"open: issue (\d+), ([^;]+)(?:; so far (.+))?")


class Row:
    def __init__(self, line, cells):
        self.line = line
        self.cells = [c.replace("\\|", "|").strip() for c in cells]
        self.id, self.section, self.ask, self.tier, self.proof = (self.cells + [""] * COLUMNS)[:COLUMNS]

    def __str__(self):
        return f"line {self.line}, {self.id or 'no id'}"

    @property
    def kind(self):
        """How the row stands: "open", "left out", "bench" or "test"."""
        for kind in "open", "left out":
            if self.proof.startswith(kind + ":"):
                return kind
        return "bench" if self.tier == "bench" else "test"

    @property
    def tiers(self):
        """The tiers in which a test must prove the row."""
        return [t.strip() for t in self.tier.split(",")] if self.kind == "test" else []

    def tests(self):
        """(path, name) of the tests and benches named; of an open row those that prove a part of it."""
        return [(path, name) for path, name, _ in ITEM.findall(self.proof)] if self.kind != "left out" else []


def parse(text):
    """All rows of all tables but their head and rule."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
        if cells and (cells[0].strip() == "id" or set(cells[0].strip()) == {"-"}):
            continue
        rows.append(Row(number, cells))
    return rows


def read(path=ROWS):
    with open(path, encoding="utf-8") as f:
        return parse(f.read())


def proven_by(program, arguments, rows):
    """Name of a test of PROGRAM (its path in the repository): the ids of the rows that it proves when run with ARGUMENTS.

    A row with the note `whole` is proven by the long form only, which has that word as an argument."""
    proven = {}
    for row in rows:
        if row.kind == "test":
            for path, name, note in ITEM.findall(row.proof):
                if path == program and ("whole" in arguments or not note.startswith("whole:")):
                    proven.setdefault(name, []).append(row.id)
    return proven
