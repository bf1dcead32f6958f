#!/usr/bin/python3
"""The conformance suite: each case runs on two API servers, and what they answer must be equal.

    conformance.py                               a real control plane and the embedded engine
    conformance.py --only watch                  one group; --only 'patch*/*list*' a pattern of group/title
    conformance.py --left A --right B            two kubeconfigs; the same one twice shows what the masks must hide
    conformance.py --record --only create        print the left side's recordings
    conformance.py --node                        the cases that need a node, which all others must not have
    conformance.py --list | --omissions          the cases' titles; what the engine leaves out, as a table

Without --left the control plane is the one that test/run keeps, or one of its own; without
--right the engine is started from build/ without a node.
"""

import argparse
import concurrent.futures
import contextlib
import difflib
import fnmatch
import glob
import importlib.util
import os
import secrets
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
sys.dont_write_bytecode = True
from sonde_test import ROOT, ControlPlane, Process, diag, program
from suite import omissions
from suite.case import GROUPS, MERGE, NOT_SWEPT, T, pod
from suite.fixtures import CUSTOM, Fixtures
from suite.side import Side

DIFF_LINES = 60
NEED_NODE = {"logs"}
PROMISED, PROMISED_KUBECTL = 250, 40  # cases, and those among them that are kubectl's command lines


class Suite:
    def __init__(self, left, right, record):
        self.left, self.right, self.record = left, right, record
        self.apart = left.token != right.token  # one server twice: names differ, and what is made from them
        self.custom = CUSTOM
        self._numbers = iter(range(1, 1 << 20))
        self._lock = threading.Lock()
        self._namespaces = []

    def namespace(self, name):
        """Makes a namespace on both sides; returns the two names."""
        with self._lock:
            number = next(self._numbers)
        names = [f"{name[:20]}-{number}-{side.token}" for side in (self.left, self.right)]
        for side, ns in zip((self.left, self.right), names):
            self._namespaces.append((side, ns))
            side.call("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        return names

    def ready(self, names):
        """Waits until the namespaces take pods: the real one needs a service account with its token first."""
        for side, ns in zip((self.left, self.right), names):
            deadline = time.monotonic() + 120
            while side.call("POST", f"/api/v1/namespaces/{ns}/pods?dryRun=All", pod("x"))[0] != 201:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.03)

    def sweep(self, t):
        for plural in sorted(t.touched):
            if "/" in plural:
                continue
            query = "?gracePeriodSeconds=0&propagationPolicy=Background"
            if plural in NOT_SWEPT:
                query += "&fieldSelector=" + NOT_SWEPT[plural].replace("!=", "%21%3D")
            path = t.path(plural)
            _, deleted = t.side.call("DELETE", path + query)
            for item in (deleted or {}).get("items") or []:
                if item["metadata"].get("finalizers"):
                    t.side.call("PATCH", f"{path}/{item['metadata']['name']}", {"metadata": {"finalizers": None}}, MERGE)

    def run_on(self, case, side, ns):
        t = T(side, ns, self)
        try:
            case.run(t)
        except Exception:  # pylint: disable=broad-except
            t.note("! " + t.mask.text(traceback.format_exc().strip().splitlines()[-1]))
            if self.record:
                traceback.print_exc()
        with contextlib.suppress(Exception):
            t.finish()
            if not case.own:
                self.sweep(t)
        return "\n".join(t.recording).splitlines()

    def run_case(self, case, names, pool):
        """The recordings of both sides."""
        futures = [pool.submit(self.run_on, case, side, ns) for side, ns in zip((self.left, self.right), names)]
        return [f.result() for f in futures]

    def clean_up(self):
        for side, ns in self._namespaces:
            with contextlib.suppress(Exception):
                side.call("DELETE", f"/api/v1/namespaces/{ns}")


def omissions_are_told():
    """ARCHITECTURE.md lists all that is taken out of the comparison."""
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as f:
        assert omissions.table() in f.read(), "ARCHITECTURE.md has another table than conformance.py --omissions"


def as_many_as_promised():
    cases = [c for name, of in GROUPS.items() if name not in NEED_NODE for c in of]
    lines = sum(c.kubectl for c in cases)
    assert len(cases) >= PROMISED and lines >= PROMISED_KUBECTL, (
        f"{len(cases)} cases, {lines} of them kubectl's: at least {PROMISED} and {PROMISED_KUBECTL} are promised")


def load():
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.py"))):
        spec = importlib.util.spec_from_file_location("cases_" + os.path.basename(path)[:-3], path)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def chosen(only):
    """The groups and those of their cases that the patterns name."""
    def wanted(case):
        return not only or any(fnmatch.fnmatch(case.group, p) or fnmatch.fnmatch(f"{case.group}/{case.title}", p)
                               for p in only)

    return {name: [c for c in cases if wanted(c)] for name, cases in GROUPS.items() if any(map(wanted, cases))}


class Report:
    """TAP, in the order in which cases end."""

    def __init__(self, count, record, differences):
        self._lock = threading.Lock()
        self.count, self.failed, self._record, self._differences = 0, 0, record, differences
        print(f"1..{count}", flush=True)

    def add(self, case, left, right, seconds):
        with self._lock:
            self.count += 1
            same = left == right and not any(line.startswith("! ") for line in left)
            self.failed += not same
            title = f"{case.group}: {case.title}".replace("#", "")
            print(f"{'ok' if same else 'not ok'} {self.count} - {title}", flush=True)
            if seconds > 5:
                diag(f"{seconds:.1f} s")
            if self._record:
                print("\n".join(left), flush=True)
            if same:
                return
            lines = list(difflib.unified_diff(left, right, "left", "right", n=2, lineterm=""))
            if left == right:
                lines = [line for line in left if line.startswith("! ")]
            for line in lines[:self._differences]:
                diag(line)
            if len(lines) > self._differences:
                diag(f"... {len(lines) - self._differences} more lines")


def run_all(suite, groups, report, workers):
    """Cases with a namespace of their own run beside all others; the rest of a group one after the other."""
    def run(cases, names, pool):
        suite.ready(names)
        for case in cases:
            began = time.monotonic()
            left, right = suite.run_case(case, names, pool)
            report.add(case, left, right, time.monotonic() - began)

    lanes = [[c] for cases in groups.values() for c in cases if c.own]
    lanes += sorted(filter(None, ([c for c in cases if not c.own] for cases in groups.values())),
                    key=lambda cases: -sum(1 + 4 * c.kubectl for c in cases))
    with concurrent.futures.ThreadPoolExecutor(2 * workers) as pool, \
            concurrent.futures.ThreadPoolExecutor(workers) as runners:
        names = list(pool.map(suite.namespace, [lane[0].group for lane in lanes]))
        for future in [runners.submit(run, lane, pair, pool) for lane, pair in zip(lanes, names)]:
            future.result()


@contextlib.contextmanager
def engine(directory, node):
    """The kubeconfig of an embedded engine, which ends with the block; pods are played by hand unless NODE."""
    home = os.path.join(directory, "engine")
    with Process(program("sonde"), "up", "--dir", home, "--listen", "127.0.0.1:0", *([] if node else ["--no-node"])) as process:
        process.expect(r"kubeconfig")
        yield os.path.join(home, "kubeconfig")


def arguments():
    parser = argparse.ArgumentParser(description="compares two API servers, case by case")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--left", metavar="KUBECONFIG")
    parser.add_argument("--right", metavar="KUBECONFIG")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--omissions", action="store_true")
    parser.add_argument("--node", action="store_true", help="run the cases that need one, on servers that have one")
    parser.add_argument("--diff-lines", type=int, default=DIFF_LINES)
    parser.add_argument("--workers", type=int, default=6)
    return parser.parse_args()


def main():
    args = arguments()
    load()
    groups = {name: cases for name, cases in chosen(args.only).items() if (name in NEED_NODE) == args.node}
    if args.omissions:
        print(omissions.table())
        return 0
    omissions_are_told()
    as_many_as_promised()
    if args.list:
        for name, cases in groups.items():
            print("\n".join(f"{name}/{c.title}" for c in cases))
        return 0
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="sonde-conformance-"))
        plane = ControlPlane.of("node") if args.node else ControlPlane.of("shared")
        left = args.left or stack.enter_context(plane).kubeconfig
        right = args.right or stack.enter_context(engine(directory, args.node))
        token = secrets.token_hex(3)
        other = secrets.token_hex(3) if os.path.realpath(left) == os.path.realpath(right) else token
        suite = Suite(Side("left", left, directory, token), Side("right", right, directory, other), args.record)
        report = Report(sum(map(len, groups.values())), args.record, args.diff_lines)
        began = time.monotonic()
        fixtures = Fixtures(suite)
        try:
            fixtures.make()
            run_all(suite, groups, report, args.workers)
        finally:
            fixtures.remove()
            suite.clean_up()
        diag(f"{report.count - report.failed} of {report.count} cases equal, {time.monotonic() - began:.0f} s")
        return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
