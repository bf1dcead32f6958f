#!/usr/bin/python3
"""Checks docs/seeds.md, the table of what the seeds ask for and what proves it, and the files in examples/seeds/.

A row is `| id | section | ask | proof |`. A proof is a list of tests (`path` or `path::name`), or `left out: reason`
alone. Every check takes the rows and the project's folder and returns what is wrong, so that the
last test here can show, on a page made to be wrong, that each of them finds what it is for.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, diag, main, program  # noqa: E402  pylint: disable=wrong-import-position

PAGE = os.path.join(ROOT, "docs", "seeds.md")
EXAMPLES = "examples/seeds"
TABLES = "FSDKX"  # in this order
SAYS = "examples_say_what_the_rows_say"
SPAN = re.compile(r"`([^`]+)`")


class Row:
    def __init__(self, line, cells):
        self.line = line
        self.cells = [c.replace("\\|", "|").strip() for c in cells]
        self.id, self.section, self.ask, self.proof = (self.cells + [""] * 4)[:4]

    def __str__(self):
        return f"line {self.line}, {self.id or 'no id'}"

    def proofs(self):
        """The proof column cut into its parts; the reason of a row left out may hold commas."""
        if self.proof.startswith("left out:"):
            return [self.proof]
        return [p.strip() for p in self.proof.split(",")] if self.proof else []

    def tests(self):
        """(path, name or None) of the tests named."""
        for proof in self.proofs():
            if proof.startswith("`") and proof.endswith("`"):
                path, _, name = proof[1:-1].partition("::")
                yield path, name or None

    def examples(self):
        return [s for s in SPAN.findall(self.ask) if s.startswith(EXAMPLES + "/")]


def read_rows(text):
    """All rows of all tables but their head and rule."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            continue
        cells = re.split(r"(?<!\\)\|", line.strip())[1:-1]
        if cells and (cells[0].strip() == "id" or set(cells[0].strip()) <= {"-"} and cells[0].strip()):
            continue
        rows.append(Row(number, cells))
    return rows


def shape_faults(rows, _root):
    for row in rows:
        if len(row.cells) != 4:
            yield f"{row}: {len(row.cells)} cells, not 4"
        elif not re.fullmatch(rf"[{TABLES}]-\d{{3}}", row.id):
            yield f"{row}: the id is not a letter of {TABLES} and three digits"
        elif not row.section or not row.ask:
            yield f"{row}: section or ask is empty"
    for letter in TABLES:
        if not any(row.id.startswith(letter + "-") for row in rows):
            yield f"no row of table {letter}"


def id_faults(rows, _root):
    seen, last = {}, {}
    at = 0
    for row in rows:
        letter, _, number = row.id.partition("-")
        if row.id in seen:
            yield f"{row}: also on line {seen[row.id]}"
            continue
        seen[row.id] = row.line
        if letter not in TABLES or not number.isdigit():
            continue  # shape_faults says so
        if TABLES.index(letter) < at:
            yield f"{row}: table {letter} comes after {TABLES[at]}"
        at = max(at, TABLES.index(letter))
        if int(number) != last.get(letter, 0) + 1:
            yield f"{row}: expected {letter}-{last.get(letter, 0) + 1:03d}"
        last[letter] = int(number)


def proof_faults(rows, _root):
    for row in rows:
        if not row.proofs():
            yield f"{row}: no proof"
        for proof in row.proofs():
            if proof.startswith("left out:"):
                if not proof[len("left out:"):].strip():
                    yield f"{row}: left out without a reason"
            elif not re.fullmatch(r"`(test|bench)/[^`\s]+`", proof):
                yield f"{row}: {proof!r} is not a test or `left out: reason`"


def test_faults(rows, root):
    texts = {}
    for row in rows:
        for path, name in row.tests():
            if path not in texts:
                full = os.path.join(root, path)
                texts[path] = open(full, encoding="utf-8").read() if os.path.isfile(full) else None
            if texts[path] is None:
                yield f"{row}: there is no file {path}"
            elif name and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", texts[path]):
                yield f"{row}: {path} has no {name}"


def reference_faults(rows, _root):
    """A row id in the text of a row must be a row."""
    known = {row.id for row in rows}
    for row in rows:
        for cell in row.cells[1:]:
            for ref in re.findall(rf"\b[{TABLES}]-\d{{3}}\b", cell):
                if ref not in known:
                    yield f"{row}: refers to {ref}, which is not there"


def example_faults(rows, root):
    named = {name for row in rows for name in row.examples()}
    folder = os.path.join(root, EXAMPLES)
    there = {f"{EXAMPLES}/{name}" for name in (os.listdir(folder) if os.path.isdir(folder) else [])}
    for name in sorted(named - there):
        yield f"{name} is named by a row and not there"
    for name in sorted(there - named):
        yield f"{name} is named by no row"


def _plain(text):
    return text.strip().strip("\"'")


def _json_fields(value, path=""):
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, child in items:
            yield from _json_fields(child, f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}")
    else:
        yield path, str(value)


def _yaml_fields(text):
    """The (path, value) pairs of the block style that the examples keep to: lists indented, one item or key a line.

    A block scalar (`|`) is read as if it were part of the document, so that a file inside a ConfigMap has paths too.
    """
    parents, count = [(-1, "")], {}  # (indent, path) of the open maps and lists; items seen in each list
    for line in text.splitlines():
        line = re.sub(r"(^|\s)#\s.*$", "", line)
        rest = line.strip()
        indent = len(line) - len(line.lstrip())
        if not rest:
            continue
        while parents[-1][0] >= indent:
            parents.pop()
        if rest.startswith("- "):
            above = parents[-1][1]
            count[above] = count.get(above, -1) + 1
            parents.append((indent, f"{above}[{count[above]}]"))
            indent, rest = indent + 2, rest[2:]
        path = parents[-1][1]
        key = re.fullmatch(r"([\w.-]+):(?: (.*))?", rest)
        if not key:
            yield path, _plain(rest)
            continue
        yield f"{path}.{key[1]}", _plain(key[2] or "")
        if key[2] in (None, "|"):
            parents.append((indent, f"{path}.{key[1]}"))


def _fields(path):
    text = open(path, encoding="utf-8").read()
    return list(_json_fields(json.loads(text)) if path.endswith(".json") else _yaml_fields(text))


def said_faults(rows, root):
    """A row proven by its example names fields, `a.b[0].c: value` (the path may begin below the top), or a value."""
    fields = {}
    for row in rows:
        if SAYS not in row.proof:
            continue
        files = row.examples()
        if len(files) != 1:
            yield f"{row}: names {len(files)} examples, not 1"
            continue
        full = os.path.join(root, files[0])
        if not os.path.isfile(full):
            continue  # example_faults says so
        if full not in fields:
            fields[full] = _fields(full)
        spans = [s for s in SPAN.findall(row.ask) if s != files[0]]
        if not any(": " in s for s in spans):
            yield f"{row}: names no field"
        for span in spans:
            path, colon, value = span.partition(": ")
            found = any(p.endswith("." + path) and v == _plain(value) for p, v in fields[full]) if colon else \
                any(v == _plain(span) for _, v in fields[full])
            if not found:
                yield f"{row}: {files[0]} does not say {span}"


def unsaid_faults(rows, root):
    """Every value in an example is in some row, so that no field of a seed's example goes without a proof."""
    said = {}
    for row in rows:
        for name in row.examples():
            said.setdefault(name, []).extend(span.partition(": ") for span in SPAN.findall(row.ask))
    for name in sorted(said):
        full = os.path.join(root, name)
        for path, value in _fields(full) if os.path.isfile(full) else []:
            if value in ("", "|", "{}"):
                continue  # a map, a file inside, nothing
            if not any(path.endswith("." + key) and value == _plain(text) for key, _, text in said[name]):
                yield f"{name}: {path[1:]}: {value} is in no row"


def file_faults(_rows, root):
    """Each example is a resource on its own, and one that `sonde validate` has nothing against."""
    folder = os.path.join(root, EXAMPLES)
    sonde = program("sonde")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        text = open(path, encoding="utf-8").read()
        if name.endswith(".json"):
            try:
                json.loads(text)
            except ValueError as e:
                yield f"{name}: {e}"
            continue
        if not name.endswith(".yaml"):
            yield f"{name}: neither .yaml nor .json"
            continue
        if not re.match(r"# \S.*\n[^#]", text):
            yield f"{name}: the first line, and only that one, is a comment that names the seed's section"
        if "\t" in text:
            yield f"{name}: has a tab"
        if re.search(r"^---", text, re.M):
            yield f"{name}: more than one document"
        for pattern in (r"^apiVersion: \S+$", r"^kind: \S+$", r"^metadata:\n  name: \S+$"):
            if len(re.findall(pattern, text, re.M)) != 1:
                yield f"{name}: not exactly one {pattern}"
        done = subprocess.run([sonde, "validate", path], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            yield f"{name}: {done.stderr.strip() or 'refused'}"


def check(faults):
    """Runs one check on the project; every fault is a line of the report."""
    found = list(faults(read_rows(open(PAGE, encoding="utf-8").read()), ROOT))
    for fault in found:
        diag(fault)
    assert not found, f"{len(found)} found, listed above"


# --- the tests -----------------------------------------------------------------------------------------------------


def rows_are_well_formed():
    rows = read_rows(open(PAGE, encoding="utf-8").read())
    parts = {}
    for row in rows:
        kinds = {"left out" if p.startswith("left out") else "test" for p in row.proofs()}
        parts[" and ".join(sorted(kinds))] = parts.get(" and ".join(sorted(kinds)), 0) + 1
    diag(f"{len(rows)} rows: " + ", ".join(f"{n} {what}" for what, n in sorted(parts.items())))
    check(shape_faults)


def ids_are_unique_and_in_order():
    check(id_faults)


def every_row_has_a_proof():
    check(proof_faults)


def every_test_named_exists():
    check(test_faults)


def every_row_referred_to_exists():
    check(reference_faults)


def examples_and_rows_name_each_other():
    check(example_faults)


def examples_say_what_the_rows_say():
    check(said_faults)


def every_field_of_an_example_has_a_row():
    check(unsaid_faults)


def examples_are_well_formed():
    check(file_faults)


# A page with one fault in each row, and the words with which the check must report it.
WRONG = [
    (shape_faults, "| F-001 | s | a |", "3 cells"),
    (shape_faults, "| F-1 | s | a | `test/a.py` |", "the id is not"),
    (shape_faults, "| F-001 |  | a | `test/a.py` |", "is empty"),
    (id_faults, "| F-001 | s | a | `test/a.py` |\n| F-001 | s | a | `test/a.py` |", "also on line 1"),
    (id_faults, "| F-001 | s | a | `test/a.py` |\n| F-003 | s | a | `test/a.py` |", "expected F-002"),
    (id_faults, "| F-002 | s | a | `test/a.py` |", "expected F-001"),
    (id_faults, "| S-001 | s | a | `test/a.py` |\n| F-001 | s | a | `test/a.py` |", "comes after"),
    (proof_faults, "| F-001 | s | a |  |", "no proof"),
    (proof_faults, "| F-001 | s | a | soon |", "is not a test"),
    (proof_faults, "| F-001 | s | a | issue 10 |", "is not a test"),
    (proof_faults, "| F-001 | s | a | left out: |", "without a reason"),
    (proof_faults, "| F-001 | s | a | `test/a.py`, later |", "is not a test"),
    (test_faults, "| F-001 | s | a | `test/unit/nothing.c` |", "no file"),
    (test_faults, "| F-001 | s | a | `test/a.py::gone` |", "has no gone"),
    (test_faults, "| F-001 | s | a | `test/a.py::pres` |", "has no pres"),
    (reference_faults, "| F-001 | s | see S-009 | `test/a.py` |", "S-009"),
    (example_faults, "| F-001 | s | `examples/seeds/b.yaml` | `test/a.py` |", "b.yaml is named by a row and not there"),
    (example_faults, "| F-001 | s | a | `test/a.py` |", "a.yaml is named by no row"),
    (said_faults, f"| F-001 | s | `examples/seeds/a.yaml`: `spec.n: 2` | `test/a.py::{SAYS}` |", "not say spec.n: 2"),
    (said_faults, f"| F-001 | s | `examples/seeds/a.yaml`: `n: 1`, `m` | `test/a.py::{SAYS}` |", "does not say m"),
    (said_faults, f"| F-001 | s | `examples/seeds/a.yaml`: `args.n: 1` | `test/a.py::{SAYS}` |", "not say args.n: 1"),
    (said_faults, f"| F-001 | s | `examples/seeds/a.yaml`: `args[1]: --x` | `test/a.py::{SAYS}` |", "not say args[1]"),
    (said_faults, f"| F-001 | s | `examples/seeds/a.yaml` | `test/a.py::{SAYS}` |", "names no field"),
    (unsaid_faults, "| F-001 | s | `examples/seeds/a.yaml`: `n: 1` | `test/a.py` |", "args[0]: --x is in no row"),
    (file_faults, "", "not exactly one ^kind"),
]
RIGHT = (f"| id | section | ask | proof |\n|---|---|---|---|\n"
         f"| F-001 | s | `examples/seeds/a.yaml`: `spec.n: 1`, a \\| b | `test/a.py::{SAYS}` |\n"
         f'| F-002 | s | `examples/seeds/a.yaml`: `args[0]: "--x"`, `--x` | `test/a.py::{SAYS}` |\n'
         f"| S-001 | F-001 | a | left out: no need, and why |\n| D-001 | s | a | `test/a.py` |\n"
         f"| K-001 | s | a | `test/a.py` |\n| X-001 | s | a | `test/a.py::present` |\n")


def each_check_finds_what_it_is_for():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, EXAMPLES))
        os.makedirs(os.path.join(root, "test"))
        with open(os.path.join(root, "test", "a.py"), "w", encoding="utf-8") as f:
            f.write(f"def present():\n    {SAYS}()\n")
        with open(os.path.join(root, EXAMPLES, "a.yaml"), "w", encoding="utf-8") as f:
            f.write('# a\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  n: 1\n  args:\n    - "--x"\n')
        for faults, page, words in WRONG:
            found = list(faults(read_rows(page), root))
            assert any(words in fault for fault in found), f"{faults.__name__} on {page!r}: {found}"
        for faults in {faults for faults, _, _ in WRONG} - {file_faults, unsaid_faults}:
            found = list(faults(read_rows(RIGHT), root))
            assert not found, f"{faults.__name__} on a good page: {found}"


if __name__ == "__main__":
    main(rows_are_well_formed, ids_are_unique_and_in_order, every_row_has_a_proof, every_test_named_exists,
         every_row_referred_to_exists, examples_and_rows_name_each_other, examples_say_what_the_rows_say,
         every_field_of_an_example_has_a_row, examples_are_well_formed, each_check_finds_what_it_is_for)
