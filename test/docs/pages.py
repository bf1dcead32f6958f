#!/usr/bin/python3
"""The documents against the source: every field, every reason, every command and option that they name."""

import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import doc_pages  # noqa: E402  pylint: disable=wrong-import-position
from sonde_test import ROOT, diag, main, program  # noqa: E402

PAGE = "docs/troubleshooting.md"
WORD = r"[A-Z][a-z]+[A-Za-z]*|[A-Z]{2,}[a-z][A-Za-z]*"
# Where reasons of conditions and events are written, and texts there that look like one and are something else.
SOURCES = ("src/kinds/**/*.c", "src/operator/**/*.c", "src/probe/session/*.c", "src/probe/measure/measure.c", "src/probe/measure/metrics.c",
           "src/probe/ncu/failure.c", "src/probe/ncu/workload.c", "src/probe/ncu/collect.c", "python/sonde_ml.py", "python/frameworks/common.py",
           "python/frameworks/tasks.py")
NOT_REASONS = set("""
    AlgorithmComparison AlgorithmProfiling CUDAExperiment ConfigMap DynamoGraphDeployment DynamoGraphDeploymentRequest PodGroup WorkloadProfile
    ExecutionJobCreated PerformanceDegraded ProfilingPending ProfilingPhase Progressing Ready Reporting SpecAccepted Stalled Validation
    False True Unknown Failed Pending Complete Deploying Result
    Initializing PrefillSweep DecodeSweep ConfigSelection PrefillInterpolation DecodeInterpolation PlannerGeneration
    Analysing Collecting Importing Measuring Preparing WarmUp
    ContainerCannotRun ContainerCreating CreateContainerConfigError CreateContainerError DisruptionTarget ErrImageNeverPull ErrImagePull
    FailedCreate FailureTarget ImageInspectError ImagePullBackOff InvalidImageName PodInitializing PodScheduled PodSecurity
    RegistryUnavailable RunContainerError StartError
    Apply Background Equal Exists Forbid Foreground Frontend IfNotPresent LibraryNotLoaded Never NoExecute NoSchedule None NotIn Planner
    PreferNoSchedule Replace Update
    """.split())
KUBELETS = {"Evicted", "Preempting"}  # it names others as well


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def reasons_in_source():
    found = {}
    for pattern in SOURCES:
        files = glob.glob(os.path.join(ROOT, pattern), recursive=True)
        assert files, f"{pattern} is nothing any more"
        for path in files:
            for word in re.findall(rf'"({WORD})"', re.sub(r"(?m)^\s*(?:\* |/\*|#include).*$", "", read(path))):
                found.setdefault(word, os.path.relpath(path, ROOT))
    return {word: path for word, path in found.items() if len(word) > 3 and word not in NOT_REASONS}


def every_reason_is_in_the_troubleshooting():
    told = set(re.findall(rf"`({WORD})`", read(PAGE)))
    written = reasons_in_source()
    diag(f"{len(written)} reasons in the source")
    bad = [f"{word} of {path} is not there" for word, path in sorted(written.items()) if word not in told]
    firsts = {word for line in read(PAGE).splitlines() if line.startswith("| `") for word in re.findall(rf"`({WORD})`", line.split("|")[1])}
    bad += [f"{word} is nowhere in the source" for word in sorted(firsts - set(written) - KUBELETS)]
    assert not bad, bad


def the_fields_page_is_what_the_crds_say():
    done = subprocess.run([os.path.join(ROOT, "scripts", "fields"), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def helps():
    """{(program, command): its help}"""
    found = {}
    for name in "sonde", "sonde-pod":
        listed = subprocess.run([program(name), "help"], capture_output=True, text=True, check=True).stdout
        for command in re.findall(r"^  (\S+)", listed.split("Commands:\n")[1], re.M):
            found[name, command] = subprocess.run([program(name), "help", command], capture_output=True, text=True, check=True).stdout
    return found


def commands_in_sentences_exist():
    """of commands between backquotes: command and options exist"""
    known, bad, seen = helps(), [], 0
    for file, text in doc_pages.pages():
        for span in re.findall(r"`((?:build/)?(?:sonde|sonde-pod) [a-z][^`\n]*)`", text):
            name, command = re.match(r"(?:build/)?(\S+) (\S+)", span).groups()
            seen += 1
            if command == "help":
                continue
            if (name, command) not in known:
                bad.append(f"{file}: `{span}`: {name} has no command {command}")
                continue
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", span.partition(" -- ")[0]):
                if option not in known[name, command] and option != "--help":
                    bad.append(f"{file}: `{span}`: {name} {command} has no option {option}")
    diag(f"{seen} commands")
    assert not bad, bad


main(every_reason_is_in_the_troubleshooting, the_fields_page_is_what_the_crds_say, commands_in_sentences_exist)
