#!/usr/bin/python3
"""The machine-learning frameworks are the files of python/frameworks/; these are the other places that name them all.

The adapter is one file. What users may ask for is said literally where it is read by others (the CRDs, the REST API,
the Kubeflow component, the pages), and the build takes no file that it was not told: this is what keeps them equal."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, main

FOLDER = "python/frameworks"
SHARED = {"__init__", "common", "tasks"}  # files of the folder that are no framework
ENUM = r"^ *framework:\n *type: string\n *enum: \[([^\]]*)\]"
# File, what stands around the names, how many times.
PLACES = (
    ("src/probe/ml/meson.build", r"input: files\((.*?)\)", 1),
    ("deploy/crds/algorithmprofilings.yaml", ENUM, 1),
    ("deploy/crds/algorithmcomparisons.yaml", ENUM, 2),
    ("src/web/endpoints.c", r"frameworks\[\] = \{(.*?), NULL\}", 1),
    ("python/component.yaml", r"name: framework,.*?description: \"ml: (.*?)\.\"", 1),
    ("docs/ml.md", r"^\| `framework` \| (.*?) \|$", 1),
    ("docs/algorithms.md", r"see \[ml\.md\]\(ml\.md\): (.*?)\.", 1),
)
NO_NAMES = {"default", "or", "py", "python", "frameworks", "sonde_ml"} | SHARED  # words that stand among them


def files():
    return {name[:-3] for name in os.listdir(os.path.join(ROOT, FOLDER)) if name.endswith(".py")} - SHARED


def wrong(names, path, pattern, times):
    """What is to be done in the file PATH, so that it names NAMES and no other, everywhere it should."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = f.read()
    found = list(re.finditer(pattern, text, re.M | re.S))
    if len(found) != times:
        return [f"{path}: the frameworks are named in {len(found)} places, and not in {times}: mend {__file__}"]
    said = []
    for place in found:
        line, there = text.count("\n", 0, place.start(1)) + 1, set(re.findall(r"\w+", place[1])) - NO_NAMES
        said += [f"{path}:{line}: add {name}, which is {FOLDER}/{name}.py" for name in sorted(names - there)]
        said += [f"{path}:{line}: remove {name}: there is no {FOLDER}/{name}.py" for name in sorted(there - names)]
    return said


def every_place_names_the_frameworks_that_there_are():
    said = [line for place in PLACES for line in wrong(files(), *place)]
    assert not said, "\n" + "\n".join(said) + "\nthen: scripts/manifests, scripts/fields"


def a_place_that_lacks_one_or_has_one_too_many_is_told():
    for path, pattern, times in PLACES:
        more = wrong(files() | {"keras"}, path, pattern, times)
        assert len(more) == times and all(f"{path}:" in m and "add keras" in m for m in more), more
        less = wrong(files() - {"spark"}, path, pattern, times)
        assert len(less) == times and all(f"{path}:" in m and "remove spark" in m for m in less), less


main(every_place_names_the_frameworks_that_there_are, a_place_that_lacks_one_or_has_one_too_many_is_told)
