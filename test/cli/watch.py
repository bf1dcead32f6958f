#!/usr/bin/python3
"""`sonde watch` in a real terminal and into a pipe.

    watch.py [NAME...]            on the embedded engine; also a run from its begin to its end
    watch.py cluster [NAME...]    on a real control plane
"""

import contextlib
import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cli_play import HOUR, PATIENCE, Wire, World, at, ended, running, waiting
from dgdr_play import ok
from fault_proxy import FaultProxy
from sonde_test import ROOT, Engine, Process, kubectl_path, main, program, wait
from terminal import Terminal

FRAME = re.compile(r"^ ▸ ", re.M)


def watch(ns, *words, columns=80, rows=30):
    return Terminal([program("sonde"), "watch", "-n", ns, *words], columns, rows, world.env())


def widths(screen):
    return max(map(len, screen.splitlines()))


def llama(ns, attempt=2):
    """A request in its third phase, with what its relay has told."""
    world.make(ns, "dgdr", "llama", status=running("dgdr", "Profiling"))
    track = {"started": int(1000 * (time.time() - 900)), "moved": 899000, "phases": [
        {"name": "Initializing", "began": 0, "ended": 4000},
        {"name": "PrefillSweep", "began": 4000, "ended": 684000, "total": 8, "done": 8, "sum": 680.0},
        {"name": "DecodeSweep", "began": 684000, "total": 12, "done": 4, "sum": 100.0, "step": 5}]}
    status = {"phase": "DecodeSweep", "message": "m", "progress": {"currentStep": 5, "totalSteps": 12}}
    ok(world.api.post(f"/api/v1/namespaces/{ns}/configmaps", {
        "metadata": {"name": "dgdr-status-llama"},
        "data": {"attempt": str(attempt), "track.json": json.dumps(track), "status.json": json.dumps(status)}}))


def a_tree_is_redrawn_in_place():
    """80 columns, 200, 40: phases with their durations, one frame, and the terminal as it was afterwards"""
    with world.server.namespace("watch") as ns:
        llama(ns)
        with watch(ns, "dgdr/llama") as t:
            seen = t.shows(r"▸ DecodeSweep +5/12  ████████▎·{11}  \S+ so far, ~\S+ left$")
            assert re.search(r"^overall  █+▌?·+ +41 %$", seen, re.M), seen
            assert re.search(r"^ ✓ Initializing +4s\n ✓ PrefillSweep +8/8  11m20s\n", seen, re.M), seen
            assert "     Benchmarking batch size 256\n     best so far: TP=4  ITL 11.8 ms\n · ConfigSelection\n" in seen, seen
            assert "in 22h (18-31h)" in seen and seen.startswith("before\n"), seen
            assert not t.cursor_is_shown()
            for columns in 200, 40, 120, 80:
                t.resize(columns, 30)
                seen = t.shows(r"^ ▸ DecodeSweep.{%d,}$" % (30 if columns >= 80 else 10))
                wait(lambda n=columns: widths(t.screen()) < n, PATIENCE, f"lines of less than {columns} columns")
                wait(lambda: len(FRAME.findall(t.screen())) == 1, PATIENCE, "one picture")
            world.tell(ns, "dgdr", "llama", running("dgdr", "Profiling", currentStep=9, percent=63, message="another batch"))
            seen = t.shows(r"▸ DecodeSweep +9/12")
            assert "another batch" in seen and "63 %" in seen and "batch size 256" not in seen, seen
            world.tell(ns, "dgdr", "llama", ended("dgdr", "Completed", True, "SpecGenerated", "the spec is there"))
            assert t.code() == 0
            seen = t.screen()
            assert re.search(r"^ ✓ PrefillSweep +8/8  11m20s$", seen, re.M), seen  # what was seen of it stays
            assert "next: sonde results dgdr/llama" in seen and t.cursor_is_shown(), seen


def leaving_is_not_ending():
    """q and ctrl-C leave, the run goes on, and the terminal has its cursor again"""
    with world.server.namespace("watch") as ns:
        world.make(ns, "ap", "a", status=running("ap", phase="Measuring", phaseNumber=3, totalPhases=4))
        for key, code in ("q", 0), ("C-c", 130):
            with watch(ns, "ap/a") as t:
                t.shows(r"▸ Measuring +5/12")
                t.keys(key)
                assert t.code() == code, t.screen()
                assert "ap/a goes on; 'sonde wait ap/a' waits for its end" in t.screen() and t.cursor_is_shown(), t.screen()


def failures_are_told():
    """A failure is exit status 1, with its reason over as many lines as it needs"""
    with world.server.namespace("watch") as ns:
        why = "the profiler was killed, because it needed more memory than its limit of 64Mi; raise spec.resources.limits.memory"
        world.make(ns, "ap", "a", status=running("ap", phase="Measuring", phaseNumber=3, totalPhases=4))
        world.make(ns, "ac", "b", status=waiting("ac", "Queued", "2 are ahead", queue={"position": "3", "reason": "2 are ahead"}))
        with watch(ns, "ap/a", "ac/b", columns=60, rows=40) as t:
            t.shows(r"▸ Measuring")
            t.shows("queue position 3: 2 are ahead")
            world.tell(ns, "ap", "a", ended("ap", "Failed", False, "OutOfMemory", why))
            t.shows("OutOfMemory")
            ok(world.api.delete(world.path(ns, "ac", "b")))
            assert t.code() == 1
            seen = t.screen()
            assert why in re.sub(r"\s+", " ", seen) and "next: sonde explain ap/a" in seen and "it was deleted" in seen, seen


def without_a_name_it_is_the_table():
    """The table of `get`, live: what comes, comes"""
    with world.server.namespace("watch") as ns, watch(ns, columns=100) as t:
        t.shows("there are no runs yet")
        world.make(ns, "ac", "sorts", status=running("ac"))
        seen = t.shows(r"^ac +sorts +DecodeSweep +5/12 +41 ")
        assert re.search(r"^KIND +NAME +PHASE", seen, re.M) and "no runs yet" not in seen, seen
        world.make(ns, "ap", "late")
        t.shows(r"^ap +late +Pending")
        world.tell(ns, "ac", "sorts", ended("ac", "Completed", True, "Succeeded", "merge_sort is the fastest"))
        t.shows(r"^ac +sorts +Completed +\S+ +100 .*merge_sort is the fastest$")
        t.keys("q")
        assert t.code() == 0 and "the runs go on" in t.screen(), t.screen()


def piped_it_is_one_line_a_change():
    """Into a file: a line a change, nothing that steers a terminal, and the outcome as exit status"""
    with world.server.namespace("watch") as ns:
        world.make(ns, "ap", "a", status=running("ap", phase="Measuring", phaseNumber=3, totalPhases=4, message="block 5"))
        world.make(ns, "ap", "b", status=ended("ap", "Failed", False, "OutOfMemory", "too large"))
        with Process(program("sonde"), "watch", "ap/a", "-n", ns, env=world.env()) as p:
            p.expect(r"ap/a  Running  Measuring 3/4  41 %  5/12  block 5  ETA \d\d:\d\d:\d\dZ$", PATIENCE)
            world.tell(ns, "ap", "a", running("ap", phase="Measuring", phaseNumber=3, totalPhases=4, currentStep=6, message="block 6"))
            p.expect(r"  6/12  block 6", PATIENCE)
            world.tell(ns, "ap", "a", ended("ap", "Completed", True, "Succeeded", "41 ms"))
            p.expect("ap/a succeeded: 41 ms$", PATIENCE)
            assert p.wait(PATIENCE) == 0
            assert not any("\x1b" in line for line in p.lines), p.lines
        said = world.sonde("watch", "ap/a", "ap/b", "-n", ns)
        said.expect(1, re.compile("ap/b failed: OutOfMemory: too large\n"))
        with Process(program("sonde"), "watch", "-n", ns, env=world.env()) as p:
            p.expect(r"ap/b  Failed", PATIENCE)
            ok(world.api.delete(world.path(ns, "ap", "b")))
            p.expect(r"^ap/b was deleted$", PATIENCE)
            p.signal(signal.SIGTERM)
            assert p.wait(PATIENCE) == 143
        world.sonde("watch", "ap/none", "-n", ns).expect(1, "", re.compile("there is no ap 'none'"))
        for words, kind in (("ap", "dgdr"), "ap"), (("ap/a", "dgdr"), "run"):  # a kind behind something is a name
            world.sonde("watch", *words, "-n", ns).expect(
                1, "", f"sonde: there is no {kind} 'dgdr' in namespace {ns}; of kinds, one alone is shown ('sonde get dgdr') or all\n")


# --- what stands in the way ----------------------------------------------------

EACH = {"wait": ("wait", "ap/a"), "one": ("watch", "ap/a"), "table": ("watch",), "component": (
    "component", "--action", "wait", "--name", "a", "--resource-type", "AlgorithmProfiling")}


def what_does_not_pass_ends_it():
    """`wait` and `watch` end with one sentence where a watch is refused, and where the selector is wrong, as `get` does"""
    with world.server.namespace("watch") as ns, FaultProxy(world.server, script="") as proxy:
        world.make(ns, "ap", "a", status=running("ap"))
        for code in 401, 403:
            proxy.script(f"match WATCH * always -> answer {code}\n")
            for words in EACH.values():
                said = world.sonde(*words, "--namespace", ns, KUBECONFIG=proxy.kubeconfig)
                last = [line for line in said.err.splitlines() if line.startswith("sonde: ")]
                assert said.code == 1 and len(last) == 1, (code, words, said.code, said.out, said.err)
                assert code == 403 or "does not take the credentials" in last[0], last
        proxy.script("match LIST * always -> answer 403\n")
        refused = world.sonde("watch", "-n", ns, KUBECONFIG=proxy.kubeconfig)
        refused.expect(1, "", world.sonde("get", "-n", ns, KUBECONFIG=proxy.kubeconfig).err)
        world.sonde("watch", "-n", ns, "-l", "a in").expect(1, "", world.sonde("get", "-n", ns, "-l", "a in").expect(1, "", None).err)


def a_cluster_that_is_lost_is_waited_for():
    """It is said once that the cluster does not answer, and once that it does again; then all goes on"""
    lost, back = r"the cluster at \S+ does not answer \(.+\); it is asked again until it does$", r"the cluster at \S+ answers again$"
    with world.server.namespace("watch") as ns, Wire(world.server.kubeconfig, world.folder) as wire, contextlib.ExitStack() as stack:
        world.make(ns, "ap", "a", status=running("ap"))
        env = world.env(KUBECONFIG=wire.kubeconfig)
        each = {name: stack.enter_context(Process(program("sonde"), *words, "--namespace", ns, env=env)) for name, words in EACH.items()}
        picture = stack.enter_context(Terminal([program("sonde"), "watch", "-n", ns], 160, 20, env))
        for p in each.values():
            p.expect(r"^ap/a  Running", PATIENCE)
        picture.shows(r"^ap +a ")
        wire.cut()
        for p in each.values():
            p.expect(lost, PATIENCE)
        assert re.search(r"^ap +a ", picture.shows(lost), re.M)
        wire.mend()
        for p in each.values():
            p.expect(back, PATIENCE)
        wait(lambda: "does not answer" not in picture.screen(), PATIENCE, "the picture without it")
        world.tell(ns, "ap", "a", ended("ap", "Completed", True, "Succeeded", "41 ms"))
        each["table"].expect(r"^ap/a  Completed", PATIENCE)
        for name, p in each.items():
            assert name == "table" or p.wait(PATIENCE) == 0, p.lines
            assert sum(bool(re.search(f"{lost}|{back}", line)) for line in p.lines) == 2, p.lines


def the_start_of_what_is_queued_is_told():
    """When a queued run begins: in the tree, in `explain` and in `describe`"""
    with world.server.namespace("watch") as ns:
        queue = {"position": "2", "reason": "1 is ahead", "expectedStart": at(22.5 * HOUR)}
        world.make(ns, "ap", "a", status=waiting("ap", "Queued", "1 is ahead", queue=queue))
        with watch(ns, "ap/a") as t:
            t.shows(r" starts ~22h$")
        world.sonde("explain", "ap/a", "-n", ns).expect(
            0, re.compile(r"\Aap/a waits at position 2 of the queue, \d+[sm] after it was created; it starts ~22h\.$", re.M))
        world.sonde("describe", "ap/a", "-n", ns).expect(0, re.compile(r"^  begins +starts ~22h$", re.M))


def kubectl_watches_too():
    """`kubectl sonde watch`: the same picture and keys, and what a person types next"""
    os.symlink(program("sonde"), os.path.join(world.folder, "kubectl-sonde"))
    env = world.env(PATH=f"{world.folder}:{os.environ['PATH']}")
    with world.server.namespace("watch") as ns:
        world.make(ns, "ap", "a", status=running("ap", phase="Measuring", phaseNumber=3, totalPhases=4))
        with Terminal([kubectl_path(), "sonde", "watch", "ap/a", "-n", ns], 80, 30, env) as t:
            t.shows(r"▸ Measuring +5/12")
            t.keys("q")
            assert t.code() == 0, t.screen()
            assert "'kubectl sonde wait ap/a' waits for its end" in t.screen() and t.cursor_is_shown(), t.screen()


def a_real_run_is_watched_to_its_end():
    """A comparison that really runs: phases come, get their durations, and the result is told"""
    with Engine("--no-fsync") as engine:
        env = {**world.env(), "KUBECONFIG": engine.kubeconfig}
        with open(os.path.join(ROOT, "examples", "algorithmcomparison.yaml"), encoding="utf-8") as f:
            text = f.read()
        wait(lambda: world.sonde("apply", "-f", "-", stdin=text, KUBECONFIG=engine.kubeconfig).code == 0, PATIENCE, "the kind to be served")
        with Terminal([program("sonde"), "watch", "ac/sorting"], 100, 30, env) as t:
            t.shows(r"^ ▸ (WarmUp|Measuring) +\d+/\d+  [█▏▎▍▌▋▊▉]*·* ", steady=False)
            assert t.code(180) == 0, t.screen()
            assert re.search(r"^ ✓ Measuring +60/60  \S+s$", t.screen(), re.M) and "100 %" in t.screen(), t.screen()


TESTS = [a_tree_is_redrawn_in_place, leaving_is_not_ending, failures_are_told, without_a_name_it_is_the_table,
         piped_it_is_one_line_a_change, what_does_not_pass_ends_it, a_cluster_that_is_lost_is_waited_for,
         the_start_of_what_is_queued_is_told]
WITH_KUBECTL = [kubectl_watches_too]

given = sys.argv[1:]
which = "cluster" if given[:1] == ["cluster"] else "engine"
chosen = given[1:] if which == "cluster" else given
if which == "engine":
    TESTS.append(a_real_run_is_watched_to_its_end)
with World(which) as world:
    main(*[t for t in TESTS + WITH_KUBECTL if t.__name__ in chosen] if chosen else TESTS)
