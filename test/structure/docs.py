#!/usr/bin/python3
"""The documents: every `make` command, link and file of the repository that they name is there."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, main


def documents():
    done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", "*.md"], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    for file in sorted(set(done.stdout.splitlines())):
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            yield file, f.read()


def code_spans(text):
    """What stands in code blocks and between backquotes."""
    blocks = re.findall(r"^```.*?^```|^(?: {4}|\t).*$", text, re.M | re.S)
    return blocks + re.findall(r"`([^`\n]+)`", text)


def targets():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as f:
        return set(re.findall(r"^([a-z][a-z-]*):", f.read(), re.M))


def every_make_command_is_a_target():
    bad = [f"{file}: make {name}" for file, text in documents() if file != "test/seeds/rows.md" for span in code_spans(text)
           for name in re.findall(r"\bmake ([a-z][a-z-]*)\b(?!=)", span) if name not in targets()]
    assert not bad, bad


def every_link_leads_somewhere():
    bad = []
    for file, text in documents():
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"https?:|mailto:|#", link):
                path = os.path.join(ROOT, os.path.dirname(file), link.split("#")[0])
                if not os.path.exists(path):
                    bad.append(f"{file}: {link}")
    assert not bad, bad


def every_file_named_is_there():
    """every file or folder of the repository that stands between backquotes is there"""
    bad = []
    for file, text in documents():
        for span in re.findall(r"`([^`\n]+)`", text):
            for path in re.findall(r"^(?:src|test|bench|scripts|docs|examples|deploy|python|web|\.ci)/[\w./-]*(?=$| )", span):
                if not os.path.exists(os.path.join(ROOT, path)):
                    bad.append(f"{file}: {path}")
    assert not bad, bad


def every_target_is_in_the_help():
    done = subprocess.run(["make", "help"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    listed = set(re.findall(r"^  make ([a-z-]+)", done.stdout, re.M))
    assert listed == targets(), listed ^ targets()


def the_readme_names_the_two_commands():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        spans = " ".join(code_spans(f.read()))
    assert "make run" in spans and "make test" in spans


main(every_make_command_is_a_target, every_link_leads_somewhere, every_file_named_is_there,
     every_target_is_in_the_help, the_readme_names_the_two_commands)
