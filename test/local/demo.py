#!/usr/bin/python3
"""What `make run` shows once it has built: scripts/demo, as a person sees it."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, diag, main


def it_carries_out_two_requests_and_leaves_nothing():
    with tempfile.TemporaryDirectory(prefix="sonde-demo-") as folder:
        done = subprocess.run([os.path.join(ROOT, "scripts", "demo")], env={**os.environ, "TMPDIR": folder}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        diag(done.stdout)
        assert done.returncode == 0 and os.listdir(folder) == [], (done.returncode, os.listdir(folder))
    for line in "engine ready in", "dynamographdeploymentrequest/simulated-qwen3 created", "algorithmcomparison/sorting created", "To go on":
        assert line in done.stdout, line
    assert re.search(r"^dgdr/simulated-qwen3 +.*Ready", done.stdout, re.M), "the first has not ended well"
    assert re.search(r"^ac/sorting +.*Completed", done.stdout, re.M), "the second has not ended well"


def make_run_is_that():
    """`make run` installs what is missing, builds, and runs it"""
    done = subprocess.run(["make", "--dry-run", "run"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split("\n")[:3] == ["scripts/deps build", "scripts/build programs", "scripts/demo"], done.stdout


main(it_carries_out_two_requests_and_leaves_nothing, make_run_is_that)
