#!/usr/bin/python3
"""The source text: banned functions, sizes, formatting, and words that must not be left in."""

import functools
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import QUICK, ROOT, main

FILE_LINES = 900
FUNCTION_LINES = 60
# Functions that are longer, with their length today: an entry may shrink and must go when it is no longer needed.
LONG_FUNCTIONS = {
}


def tracked(*patterns):
    """The repository's files, those not yet added included."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    return sorted(f for f in set(done.stdout.splitlines()) if os.path.isfile(os.path.join(ROOT, f)))


def changed(*patterns):
    """Those of them that are not as in the last commit."""
    done = subprocess.run(["git", "diff", "--name-only", "HEAD", "--", *patterns], cwd=ROOT, stdout=subprocess.PIPE,
                          text=True, check=True)
    new = subprocess.run(["git", "ls-files", "-o", "--exclude-standard", "--", *patterns], cwd=ROOT,
                         stdout=subprocess.PIPE, text=True, check=True)
    return sorted(set(tracked(*patterns)) & set(done.stdout.splitlines() + new.stdout.splitlines()))


@functools.cache
def read(file):
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        return f.read()


def text_files():
    """(name, text) of all files that are text; test data may hold anything and is left out."""
    for file in tracked():
        if re.search(r"(^|/)(corpus|data|fixtures)/", file):
            continue
        try:
            yield file, read(file)
        except UnicodeDecodeError:
            continue


@functools.cache
def code(text):
    """TEXT with comments, strings and characters blanked, lines kept."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def nothing_wrong(complaints):
    assert not complaints, "\n" + "\n".join(complaints)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def banned_names():
    return re.findall(r"^#undef (\w+)", read("src/base/banned.h"), re.M)


def no_banned_function_is_called():
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(banned_names() + ["alloca", "sscanf", "scanf", "longjmp"]) + r")\s*\(")
    bad = []
    for file in tracked("*.c", "*.h"):
        if file != "src/base/banned.h":
            text = code(read(file))
            bad += [f"{file}:{line_of(text, m.start())}: {m[1]}" for m in pattern.finditer(text)]
    nothing_wrong(bad)


def contributing_says_what_to_use_instead_of_each_banned_function():
    table = read("CONTRIBUTING.md")
    nothing_wrong([f"CONTRIBUTING.md has no `{name}`" for name in banned_names() if f"`{name}`" not in table])


def no_file_is_longer_than_its_subject():
    bad = []
    for file in tracked("*.c", "*.h", "*.py"):
        lines = read(file).count("\n")
        if lines > FILE_LINES:
            bad.append(f"{file}: {lines} lines, {FILE_LINES} are the limit: split it by subject")
    nothing_wrong(bad)


def functions(text):
    """(name, first line, length of the body) of every function; the formatter puts its braces in the first column."""
    for m in re.finditer(r"^([^\s#{}/][^;{}]*)\n\{\n(.*?)^\}$", text, re.M | re.S):
        names = re.findall(r"(\w+)\s*\(", m[1])
        yield (names[0] if names else "?"), line_of(text, m.start()), m[2].count("\n")


def functions_fit_on_a_screen():
    bad, seen = [], set()
    for file in tracked("*.c"):
        for name, line, length in functions(code(read(file))):
            key = f"{file}:{name}"
            limit = LONG_FUNCTIONS.get(key, FUNCTION_LINES)
            if length > FUNCTION_LINES:
                seen.add(key)
            if length > limit:
                bad.append(f"{file}:{line}: {name} has {length} lines, {limit} are the limit")
    nothing_wrong(bad + [f"{key} is short now: remove it from LONG_FUNCTIONS" for key in LONG_FUNCTIONS if key not in seen])


def nothing_is_left_for_later():
    words = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"]) + r")\b")
    nothing_wrong([f"{file}:{line_of(text, m.start())}: {m[1]}" for file, text in text_files() for m in words.finditer(text)])


def nothing_names_somebody_s_machine():
    places = [r"/home/\w", r"/Users/\w", r"(?<!\w)/root/"]
    if ROOT.count("/") >= 2:
        places.append(re.escape(ROOT) + r"\b")
    pattern = re.compile("|".join(places))
    nothing_wrong([f"{file}:{line_of(text, m.start())}: {m[0]}" for file, text in text_files()
                   if file != "test/structure/source.py" for m in pattern.finditer(text)])


def text_is_clean():
    """text has no tabs where spaces belong, no trailing blanks, and ends with a newline"""
    bad = []
    for file, text in text_files():
        if file.endswith((".c", ".h", ".py", ".md", ".build", ".yaml", ".sh")):
            if text and not text.endswith("\n"):
                bad.append(f"{file}: no newline at its end")
            for m in re.finditer(r"[ \t]+$|\t", text, re.M):
                bad.append(f"{file}:{line_of(text, m.start())}: a tab or a trailing blank")
    nothing_wrong(bad)


def c_files_are_formatted():
    """C files are as clang-format leaves them (scripts/lint --fix does it); in the short form those of no commit yet"""
    files = changed("*.c", "*.h") if QUICK else tracked("*.c", "*.h")
    if not files:
        return
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *files], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    nothing_wrong(sorted(set(re.findall(r"^([\w/.-]+\.[ch]):", done.stdout, re.M))))
    assert done.returncode == 0, done.stdout


main(no_banned_function_is_called, contributing_says_what_to_use_instead_of_each_banned_function,
     no_file_is_longer_than_its_subject, functions_fit_on_a_screen, nothing_is_left_for_later,
     nothing_names_somebody_s_machine, text_is_clean, c_files_are_formatted)
