#!/usr/bin/python3
"""Checks test/seeds/rows.md, the table of what the seeds ask for and what proves it, and the files in examples/seeds/.

Every check takes the rows and the project's folder and returns what is wrong, so that the last tests here can show, on a
table made to be wrong, that each of them finds what it is for. What the tests really prove is checked by test/seeds/check.
"""

import ast
import functools
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "runner")]
import seed_rows  # noqa: E402  pylint: disable=wrong-import-position
from catalog import read_list  # noqa: E402  pylint: disable=wrong-import-position
from seed_rows import COLUMNS, ITEM, OPEN, TIERS  # noqa: E402  pylint: disable=wrong-import-position
from sonde_test import ROOT, diag, main, program  # noqa: E402  pylint: disable=wrong-import-position

EXAMPLES = "examples/seeds"
TABLES = "FSDKX"  # in this order
SPAN = re.compile(r"`([^`]+)`")


def examples(row):
    """The files of examples/seeds that ROW names."""
    return [s for s in SPAN.findall(row.ask) if s.startswith(EXAMPLES + "/")]


def shape_faults(rows, _root):
    for row in rows:
        if len(row.cells) != COLUMNS:
            yield f"{row}: {len(row.cells)} cells, not {COLUMNS}"
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


def only_items(text):
    """TEXT is a list of tests, each with its note, and nothing else."""
    return bool(text) and not ITEM.sub("", text).replace(", ", "")


def proof_faults(rows, _root):
    for row in rows:
        if row.kind == "left out":
            wrong = None if row.proof[len("left out:"):].strip() else "left out without a reason"
        elif row.kind == "open":
            found = OPEN.fullmatch(row.proof)
            wrong = None if found and (found[3] is None or only_items(found[3])) else "not `open: issue N, why; so far tests`"
        else:
            wrong = None if only_items(row.proof) else f"{row.proof!r} is not a list of tests"
        if wrong:
            yield f"{row}: {wrong}"


@functools.lru_cache(None)
def _text(path):
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as f:
        return f.read()


@functools.lru_cache(None)
def _python_tests(path):
    """The functions that a Python program may give to main(): those it or a module next to it defines and uses as values."""
    found, text = set(), _text(path)
    modules = re.findall(r"^(?:import|from) (\w+)", text, re.M)
    for name in [os.path.basename(path)] + [m + ".py" for m in modules]:
        text = _text(os.path.join(os.path.dirname(path), name))
        if not text:
            continue
        tree = ast.parse(text)
        called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        values = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in called}
        takes_all = "globals()" in _text(path)  # it chooses them by their names
        found |= {n.name for n in tree.body if isinstance(n, ast.FunctionDef) and (takes_all or n.name in values)}
    return found


def has_test(root, path, name):
    """Whether the program at PATH runs a test of that name."""
    full = os.path.join(root, path)
    if path == "test/docs/commands.py" and name.endswith(".md"):
        return _text(os.path.join(root, name)) is not None
    if path.endswith(".py"):
        return name in _python_tests(full)
    if path.endswith(".c"):
        table = re.search(r"struct CMUnitTest tests\[\] = \{(.*?)\n\};", _text(full), re.S)
        return bool(table and re.search(rf"\(\s*{re.escape(name)}\b", table[1]))
    return f'test("{name}"' in _text(full)


def test_faults(rows, root):
    for row in rows:
        for path, name in row.tests():
            if _text(os.path.join(root, path)) is None:
                yield f"{row}: there is no file {path}"
            elif row.kind == "bench" or path.startswith("bench/"):
                if row.kind != "bench" or not path.startswith("bench/"):
                    yield f"{row}: a bench proves rows of tier bench, and those only"
            elif not has_test(root, path, name):
                yield f"{row}: {path} runs no test {name}"


def _tiers_of(root):
    """Program: the tiers that run it."""
    tiers = {}
    for entry in read_list(os.path.join(root, "test", "tests.list")):
        for word in entry.argv:
            tiers.setdefault(word, set()).add("test" if entry.tier == "quick" else entry.tier)
    return tiers


def tier_faults(rows, root):
    """A row's tiers are such that run its tests, each of them in one at least."""
    known = _tiers_of(root)
    for row in rows:
        if row.kind != "test":
            if row.kind != "bench" and row.tier != "-":
                yield f"{row}: a row that is {row.kind} has tier -"
            continue
        ran = [{"test"} if path.startswith("test/unit/") else known.get(path, set()) for path, _ in row.tests()]
        for tier in row.tiers:
            if tier not in TIERS or not any(tier in tiers for tiers in ran):
                yield f"{row}: none of its tests is in tier {tier!r}"
        for (path, _), tiers in zip(row.tests(), ran):
            if not tiers & set(row.tiers):
                yield f"{row}: {path} is in tier {' or '.join(sorted(tiers)) or 'none'}"


def reference_faults(rows, _root):
    """A row id in the text of a row must be a row."""
    known = {row.id for row in rows}
    for row in rows:
        for cell in row.cells[1:]:
            for ref in re.findall(rf"\b[{TABLES}]-\d{{3}}\b", cell):
                if ref not in known:
                    yield f"{row}: refers to {ref}, which is not there"


def example_faults(rows, root):
    named = {name for row in rows for name in examples(row)}
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
    """A row that names an example names fields of it, `a.b[0].c: value` (the path may begin below the top), or a value."""
    fields = {}
    for row in rows:
        files = examples(row)
        if not files:
            continue
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
        for name in examples(row):
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
    found = list(faults(seed_rows.read(), ROOT))
    for fault in found:
        diag(fault)
    assert not found, f"{len(found)} found, listed above"


# --- the tests -----------------------------------------------------------------------------------------------------


def rows_are_well_formed():
    rows = seed_rows.read()
    kinds = [row.kind for row in rows]
    diag(f"{len(rows)} rows: " + ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))
    check(shape_faults)


def ids_are_unique_and_in_order():
    check(id_faults)


def every_row_has_a_proof():
    check(proof_faults)


def every_test_named_is_run_by_its_program():
    check(test_faults)


def every_row_names_the_tiers_of_its_tests():
    check(tier_faults)


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


# A table with one fault in each row, and the words with which the check must report it.
A = "test | `test/a.py::present` |"
EXAMPLE = "`examples/seeds/a.yaml`"
WRONG = [
    (shape_faults, "| F-001 | s | a |", "3 cells"),
    (shape_faults, f"| F-1 | s | a | {A}", "the id is not"),
    (shape_faults, f"| F-001 |  | a | {A}", "is empty"),
    (id_faults, f"| F-001 | s | a | {A}\n| F-001 | s | a | {A}", "also on line 1"),
    (id_faults, f"| F-001 | s | a | {A}\n| F-003 | s | a | {A}", "expected F-002"),
    (id_faults, f"| F-002 | s | a | {A}", "expected F-001"),
    (id_faults, f"| S-001 | s | a | {A}\n| F-001 | s | a | {A}", "comes after"),
    (proof_faults, "| F-001 | s | a | test |  |", "is not a list of tests"),
    (proof_faults, "| F-001 | s | a | test | soon |", "is not a list of tests"),
    (proof_faults, "| F-001 | s | a | test | `test/a.py` |", "is not a list of tests"),
    (proof_faults, "| F-001 | s | a | test | `test/a.py::present` (nearly) |", "is not a list of tests"),
    (proof_faults, "| F-001 | s | a | test | `test/a.py::present`, later |", "is not a list of tests"),
    (proof_faults, "| F-001 | s | a | - | left out: |", "without a reason"),
    (proof_faults, "| F-001 | s | a | - | open: later |", "not `open: issue N"),
    (proof_faults, "| F-001 | s | a | - | open: issue 3, why; so far nothing |", "not `open: issue N"),
    (test_faults, "| F-001 | s | a | test | `test/unit/nothing.c::x` |", "no file"),
    (test_faults, "| F-001 | s | a | test | `test/a.py::gone` |", "runs no test gone"),
    (test_faults, "| F-001 | s | a | test | `test/a.py::pres` |", "runs no test pres"),
    (test_faults, "| F-001 | s | a | test | `test/a.py::helper` |", "runs no test helper"),
    (test_faults, "| F-001 | s | a | test | `test/unit/a.c::one` |", "runs no test one"),
    (test_faults, "| F-001 | s | a | test | `test/a.mjs::a title` |", "runs no test a title"),
    (test_faults, "| F-001 | s | a | test | `bench/a.py::x` |", "a bench proves"),
    (test_faults, "| F-001 | s | a | bench | `test/a.py::present` |", "a bench proves"),
    (test_faults, "| F-001 | s | a | - | open: issue 3, why; so far `test/a.py::gone` |", "runs no test gone"),
    (tier_faults, "| F-001 | s | a | cluster | `test/a.py::present` |", "none of its tests is in tier 'cluster'"),
    (tier_faults, "| F-001 | s | a | test, soak | `test/unit/a.c::two` |", "none of its tests is in tier 'soak'"),
    (tier_faults, "| F-001 | s | a | test | `test/a.py::present`, `test/b.py::present` |", "test/b.py is in tier cluster"),
    (tier_faults, "| F-001 | s | a | test | `test/c.py::present` |", "test/c.py is in tier none"),
    (tier_faults, "| F-001 | s | a | test | left out: why |", "has tier -"),
    (reference_faults, f"| F-001 | s | see S-009 | {A}", "S-009"),
    (example_faults, f"| F-001 | s | `examples/seeds/b.yaml` | {A}", "b.yaml is named by a row and not there"),
    (example_faults, f"| F-001 | s | a | {A}", "a.yaml is named by no row"),
    (said_faults, f"| F-001 | s | {EXAMPLE}: `spec.n: 2` | {A}", "not say spec.n: 2"),
    (said_faults, f"| F-001 | s | {EXAMPLE}: `n: 1`, `m` | {A}", "does not say m"),
    (said_faults, f"| F-001 | s | {EXAMPLE}: `args.n: 1` | {A}", "not say args.n: 1"),
    (said_faults, f"| F-001 | s | {EXAMPLE}: `args[1]: --x` | {A}", "not say args[1]"),
    (said_faults, f"| F-001 | s | {EXAMPLE} | {A}", "names no field"),
    (unsaid_faults, f"| F-001 | s | {EXAMPLE}: `n: 1` | {A}", "args[0]: --x is in no row"),
    (file_faults, "", "not exactly one ^kind"),
]
RIGHT = (f"| id | section | ask | tier | proof |\n|---|---|---|---|---|\n"
         f"| F-001 | s | {EXAMPLE}: `spec.n: 1`, a \\| b | {A}\n"
         f'| F-002 | s | {EXAMPLE}: `args[0]: "--x"`, `--x` | test, cluster | `test/a.py::present`, `test/b.py::present` (stand-in: b) |\n'
         f"| S-001 | F-001 | a | - | left out: no need, and why |\n| D-001 | s | a | test | `test/unit/a.c::two` |\n"
         f"| D-002 | s | a | bench | `bench/a.py::x` |\n| D-003 | s | a | - | open: issue 3, why; so far `test/a.py::present` |\n"
         f"| K-001 | s | a | test | `test/a.mjs::one, two` |\n| X-001 | s | a | soak | `test/a.py::present` (whole: why) |\n")
FILES = {
    "test/a.py": "def present():\n    helper()\n\n\ndef helper():\n    pass\n\n\nmain(present)\n",
    "test/b.py": "import a\nmain(a.present, *TESTS)\n",
    "test/c.py": "def present():\n    pass\n\n\nmain(present)\n",
    "test/a.mjs": 'test("one, two", () => {});\n',
    "test/unit/a.c": "static void one(void **state)\nstatic const struct CMUnitTest tests[] = {\n        T(two),\n};\n",
    "bench/a.py": "",
    "test/tests.list": "a quick 1 test/a.py\na-long soak 1 test/a.py long\nb cluster 1 test/b.py\nm test 1 test/a.mjs\n",
    EXAMPLES + "/a.yaml": '# a\napiVersion: v1\nmetadata:\n  name: a\nspec:\n  n: 1\n  args:\n    - "--x"\n',
}


def write_files(root, files):
    for name, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="utf-8") as f:
            f.write(text)


def each_check_finds_what_it_is_for():
    with tempfile.TemporaryDirectory() as root:
        write_files(root, FILES)
        for faults, page, words in WRONG:
            found = list(faults(seed_rows.parse(page), root))
            assert any(words in fault for fault in found), f"{faults.__name__} on {page!r}: {found}"
        for faults in {faults for faults, _, _ in WRONG} - {file_faults, unsaid_faults}:
            found = list(faults(seed_rows.parse(RIGHT), root))
            assert not found, f"{faults.__name__} on a good table: {found}"


def a_test_proves_the_rows_that_name_it():
    rows = seed_rows.parse(RIGHT)
    found = seed_rows.proven_by("test/a.py", [], rows), seed_rows.proven_by("test/a.py", ["whole"], rows)
    assert found == ({"present": ["F-001", "F-002"]}, {"present": ["F-001", "F-002", "X-001"]}), f"{found}; an open row is not proven"


PROVEN = "a\ttitle\tF-001\na\ttitle\tF-002\nasan:a\tanother\tD-001\nm\tanother\tK-001\n"  # by tier test


def checked(open_rows, *tiers, **proofs):
    """Exit code and output of test/seeds/check with RIGHT as its table; PROOFS: by tier, what its run has proven."""
    with tempfile.TemporaryDirectory() as root:
        write_files(root, {"rows.md": RIGHT, "open-rows": f"{open_rows}\n", "tests.list": FILES["test/tests.list"], "logs/README": "",
                           **{f"logs/{tier}/proofs": text for tier, text in proofs.items()}})
        options = [f"--{name}={root}/{file}" for name, file in (("rows", "rows.md"), ("open-rows",) * 2, ("list", "tests.list"), ("logs",) * 2)]
        done = subprocess.run([os.path.join(HERE, "check"), *options, *tiers], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def a_row_that_no_test_proved_is_found():
    code, out = checked(1, "test", test=PROVEN)
    assert code == 0 and "4 of 4 rows proven" in out and "bench    D-002" in out and "1 rows open" in out, out
    code, out = checked(1, "test", test=PROVEN.replace("D-001", "F-001"))
    assert code == 1 and re.findall(r"^unproven (\S+)", out, re.M) == ["D-001"], out


def each_tier_of_a_row_proves_it():
    code, out = checked(1, "test", "cluster", test=PROVEN, cluster="")
    assert code == 1 and re.findall(r"^unproven ([^:]*)", out, re.M) == ["F-002 in tier cluster"], out
    code, out = checked(1, "soak", soak=PROVEN + "b\ttitle\tF-002\na-long\ttitle\tX-001\n")
    assert code == 0 and "6 of 6 rows proven" in out, f"soak runs all tiers: {out}"
    code, out = checked(1, "soak", soak=PROVEN + "a\ttitle\tF-002\na\ttitle\tX-001\n")
    assert re.findall(r"^unproven ([^:]*)", out, re.M) == ["F-002 in tier cluster", "X-001 in tier soak"], f"by an entry of another tier: {out}"
    code, out = checked(1, "test", test=PROVEN + "gone\ttitle\tF-001\n")
    assert code == 1 and "there is no entry gone" in out, out


def a_tier_that_did_not_run_is_not_checked_and_not_taken_for_one_that_did():
    code, out = checked(1, "test", test=PROVEN, cluster="")
    assert code == 0 and "cluster" not in out, out
    code, out = checked(1, "cluster", test=PROVEN)
    assert code == 1 and "cluster/proofs is missing" in out, out
    code, out = checked(1)
    assert code == 0 and "no tier ran" in out, out
    code, out = checked(1, "quick", quick=PROVEN)
    assert code == 2, out


def the_number_of_open_rows_is_kept():
    code, out = checked(0, "test", test=PROVEN)
    assert code == 1 and "1 open rows, more than the 0" in out, out
    code, out = checked(2, "test", test=PROVEN)
    assert code == 1 and "write 1 into that file" in out, out
    done = subprocess.run([os.path.join(HERE, "check")], stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    diag(done.stdout)
    assert done.returncode == 0


if __name__ == "__main__":
    main(rows_are_well_formed, ids_are_unique_and_in_order, every_row_has_a_proof, every_test_named_is_run_by_its_program,
         every_row_names_the_tiers_of_its_tests, every_row_referred_to_exists, examples_and_rows_name_each_other,
         examples_say_what_the_rows_say, every_field_of_an_example_has_a_row, examples_are_well_formed, each_check_finds_what_it_is_for,
         a_test_proves_the_rows_that_name_it, a_row_that_no_test_proved_is_found, each_tier_of_a_row_proves_it,
         a_tier_that_did_not_run_is_not_checked_and_not_taken_for_one_that_did, the_number_of_open_rows_is_kept)
