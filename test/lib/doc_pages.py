"""The documents as programs: what a page has its reader type, and what it says is printed then.

A block of a page (indented by four, or fenced) is one of commands when it is fenced as `bash` or when its first word is a
program of PROGRAMS. In it

    $ sonde get        is a command, and the lines up to the next `$` are what it prints
    sonde get          in a block without any `$` is a command of which only the exit status counts

and a block fenced as `bash` is one script. What is printed is compared line by line. Blanks may be more or fewer; times, dates,
numbers with a unit or a point, ports and bars may be others; `...` stands for anything in a line, alone in a line for any lines. A command
of which a line `sonde: ...` is shown has to fail, every other has to succeed.

Comments that a reader does not see say the rest. Before a block:

    <!-- not run: needs a GPU, see test/cuda/e2e.py -->     nobody runs it: one of REASONS, and a test that does the same: what telling()
                                                            finds in each command is in its source
    <!-- given: a finished comparison -->                   what must be there first, see GIVEN of test/docs/commands.py
    <!-- in a terminal -->                                  run in one of 100 columns, until the screen is as shown
    <!-- may differ: a busy machine decides nothing -->     of what is shown only the first line is compared

and once, below the title: `<!-- on: engine -->` (when nothing is said), `cluster` (a real control plane), `replay` (an engine with a GPU that
plays a recording) or `nothing` (the page starts what it needs).
"""

import itertools
import os
import re
import subprocess

from sonde_test import ROOT

PROGRAMS = {"sonde", "sonde-pod", "kubectl", "make", "curl", "docker", "kind", "minikube", "helm", "git", "ncu", "cluster", "sqlite3", "psql",
            "pg_dump", "promtool", "python3", "bash", "cc", "cp", "mkdir", "cat", "export", "source", "eval", "openssl", "apt-get", "sudo",
            "test/run", "test/cluster/cluster", "scripts/fields"}
REASONS = {"needs a GPU", "needs Docker", "needs a registry", "runs in a pod", "needs PostgreSQL", "needs Kubeflow", "needs MLflow",
           "needs an inference server", "needs a cluster of your own", "builds the project", "runs the tests", "takes hours",
           "installs packages", "prints what a cluster of yours has", "needs Helm", "needs a later Kubernetes"}
# Helm is in no registry of Debian's, the control plane of tests is 1.20, and a test that runs the tests would be among those.
NEEDS_WHAT_TESTS_CANNOT_HAVE = {"needs Docker", "needs a registry", "needs Helm", "needs a later Kubernetes", "runs the tests"}
BEFORE_ALL_TESTS = "builds the project"
OURS = {"sonde", "sonde-pod"}
HAVE_COMMANDS = {*OURS, "kubectl", "cluster"}  # their first words say what they do; of others the name does
OF_ANY_CONTROL_PLANE = {"up", "down"}  # of `cluster`
ARE_TOLD_BY_NOTHING = {"git", "make", "cp", "mkdir", "cat", "export", "source", "eval"}
COMMENT = re.compile(r"<!-- (not run|given|on|may differ): (.+?) -->|<!-- (in a terminal) -->")
NUMBER = r"\d+(?:\.\d+)?"
HOLES = re.compile(r"\.\.\.|…"                                            # anything
                   r"|127\.0\.0\.1:\d+"                                   # a port
                   r"|\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d(?::\d\d)?Z?"     # times
                   rf"|(?:{NUMBER}(?:h|m|d|s))+\b"                        # 14h, 11m20s
                   rf"|{NUMBER}(?= (?:%|ns|us|ms|s|min|h|MB|MiB|kB|KiB|GiB|B/s|tok/s)(?!\w))|\d+\.\d+(?:e-?\d+)?"
                   r"|[█▉▊▋▌▍▎▏·]{2,}"                                    # bars
                   r"|\s+")
TIME = r"(?:\d{4}-\d\d-\d\dT[\d:.]+Z|\d\d:\d\d(?::\d\d)?Z?)"
SPAN = rf"(?:{NUMBER}(?:h|m|d|s))+"


class Block:
    """LINES of a page at line AT; COMMENTS are those before it, by name."""

    def __init__(self, at, lines, language, comments):
        self.at, self.lines, self.language, self.comments = at, lines, language, comments

    @property
    def program(self):
        """The first word that is a program's name, without its folder."""
        words = [w for w in re.sub(r"^\$ ", "", self.lines[0]).split() if not re.match(r"\w+=", w)]
        return re.sub(r"^build/", "", words[0]) if words else ""

    @property
    def is_commands(self):
        if self.language:
            return self.language == "bash"
        return self.lines[0].startswith("$ ") or self.program in PROGRAMS

    def commands(self):
        """[(command, lines shown or None)]"""
        if self.language:
            return [("\n".join(["set -e", *self.lines]), None)]
        shown = any(line.startswith("$ ") for line in self.lines)
        if shown and not self.lines[0].startswith("$ "):
            raise ValueError(f"line {self.at}: a block in which a line begins with `$` begins with such a line; put a text between two blocks")
        found = []
        for line in self.lines:
            last = found[-1] if found else None
            if last and last[0].endswith("\\"):
                last[0] = last[0][:-1] + line.strip()
            elif not shown or line.startswith("$ "):
                if line.strip():
                    found.append([line[2:] if shown else line, [] if shown else None])
            else:
                last[1].append(line)
        for command in found:
            while command[1] and not command[1][-1]:
                command[1].pop()
        return [(command, lines or None) for command, lines in found]


def _gather(lines, at, is_in, strip):
    """The block that begins at line AT; returns it and the line after it."""
    end = at
    while end < len(lines) and is_in(end):
        end += 1
    block = [line[strip:] for line in lines[at:end]]
    while block and not block[-1].strip():
        block.pop()
    return block, end


def blocks(text):
    """The blocks of a page in their order; ValueError for a comment that belongs to none."""
    lines, at, comments, page = text.splitlines(), 0, {}, {}
    while at < len(lines):
        line = lines[at]
        comment = COMMENT.fullmatch(line)
        if comment:
            name, value = comment[1] or comment[3], comment[2] or "100"
            (page if name == "on" else comments)[name] = value
            at += 1
        elif line.startswith("```"):
            block, end = _gather(lines, at + 1, lambda n: not lines[n].startswith("```"), 0)
            yield Block(at + 2, block, line[3:].strip() or "text", {**page, **comments})
            comments, at = {}, end + 1
        elif line.startswith("    ") and (at == 0 or not lines[at - 1].strip() or COMMENT.fullmatch(lines[at - 1])):
            block, end = _gather(lines, at, lambda n: lines[n].startswith("    ") or not lines[n].strip(), 4)
            yield Block(at + 1, block, None, {**page, **comments})
            comments, at = {}, end
        elif line.startswith("<!--"):
            raise ValueError(f"line {at + 1}: {line!r} is no comment that doc_pages knows")
        elif line.strip() and comments:
            raise ValueError(f"line {at + 1}: the comment {comments} stands before no block")
        else:
            at += 1


def _line_pattern(line):
    made, at = "", 0
    for hole in HOLES.finditer(line):
        made += re.escape(line[at:hole.start()])
        at = hole.end()
        text = hole[0]
        if text in ("...", "…"):
            made += ".*"
        elif text.isspace():
            made += r"[ \t]+" if hole.start() else r"[ \t]*"
        elif text.startswith("127."):
            made += r"127\.0\.0\.1:\d+"
        elif ":" in text:
            made += TIME
        elif text[-1] in "hmds":
            made += SPAN
        elif text[0] in "█▉▊▋▌▍▎▏·":
            made += "[█▉▊▋▌▍▎▏·]+"
        else:
            made += rf"{NUMBER}(?:e-?\d+)?"
    return made + re.escape(line[at:]) + r"[ \t]*"


def pattern(shown, whole=True):
    """What the lines SHOWN stand for, as a pattern of the text that is printed. Without WHOLE more may follow."""
    made = ""
    for line in shown:
        made += r"(?:.*\n)*?" if line.strip() in ("...", "…") else _line_pattern(line) + r"\n"
    return re.compile(made + (r"\s*\Z" if whole else ""))


def fails(shown):
    """Whether a command that prints this has failed."""
    return any(line.startswith("sonde: ") for line in shown or [])


def telling(command):
    """The words of a command that nobody writes who does not run it: programs, their commands, options of ours, what curl asks for."""
    found = []
    for part in re.split(r"[|;&()\n]+", re.sub(r"'[^']*'|(?<!\S)#.*", "", command)):
        words = [w for w in part.replace('"', " ").split() if not re.match(r"\w+=", w)]
        name = os.path.basename(words[0]) if words else ""
        if name not in PROGRAMS - ARE_TOLD_BY_NOTHING:
            continue
        words = words[1:words.index("--") if "--" in words else None]
        bare = list(itertools.takewhile(re.compile(r"[a-z]+(-[a-z]+)*").fullmatch, words))[:2]
        if name == "cluster":
            bare = [w for w in bare if w not in OF_ANY_CONTROL_PLANE]
        asked = [re.sub(r"^https?://[^/]*", "", w) for w in words if name == "curl" and re.match("https?://", w)]
        found += asked or (bare if name in HAVE_COMMANDS else [name])
        found += [w.partition("=")[0] for w in words if name in OURS and w.startswith("--")]
    return found


def _is_in(word, source):
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", source)


def refusal(comment, commands=()):
    """What is wrong with a `not run` of COMMANDS, or None."""
    reason, _, named = comment.partition(", see ")
    source = ""
    if reason not in REASONS:
        return f"{reason!r} is none of the reasons in test/lib/doc_pages.py"
    if not named:
        return None if reason in NEEDS_WHAT_TESTS_CANNOT_HAVE else f"{reason!r} names no test that does it instead"
    for test in named.split(" and "):
        if test not in tests():
            return f"{test} is in no line of test/tests.list, so nobody runs it"
        with open(os.path.join(ROOT, test), encoding="utf-8") as f:
            source += f.read()
    missing = [] if reason in NEEDS_WHAT_TESTS_CANNOT_HAVE | {BEFORE_ALL_TESTS} else \
        [(word, command) for command in commands for word in telling(command) if not _is_in(word, source)]
    return f"{named} has no {missing[0][0]!r}, so it does not run `{missing[0][1]}`" if missing else None


def tests():
    """The programs that test/run runs."""
    with open(os.path.join(ROOT, "test/tests.list"), encoding="utf-8") as f:
        return {line.split()[3] for line in f if line.strip() and not line.startswith("#")}


def pages():
    """(file, text) of every document of the repository but test/seeds/rows.md, which is a table of the tests."""
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", "*.md"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    for file in sorted(set(done.stdout.splitlines()) - {"test/seeds/rows.md"}):
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            yield file, f.read()
