#!/usr/bin/python3
"""Several clusters in one table, and one run from a file to its results with nothing but our own commands."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cli_play import KINDS, PATIENCE, World, ended
from sonde_test import ROOT, Engine, Process, main, program, wait

LOUD = """\
apiVersion: dprofiler.io/v1alpha1
kind: AlgorithmProfiling
metadata:
  name: loud
  labels: {team: a}
spec:
  algorithmName: loud
  algorithmType: custom
  inputSize: 1
  iterations: 3
  customConfig:
    image: any
    command: [sh, -c, "echo the workload speaks"]
"""

BROKEN = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeploymentRequest
metadata:
  name: broken
spec:
  model: m
  backend: vllm
  profilingConfig:
    profilerImage: any
    command: [sh, -c, "echo the profiler speaks; echo and gives up; exit 3"]
    config: {sla: {isl: 1, osl: 1, ttft: 1, itl: 1}}
"""


def named(server, name):
    """The kubeconfig of an engine, with names of its own in it."""
    with open(server.kubeconfig, encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"\bsonde\b", name, text)
    path = os.path.join(world.folder, f"{name}.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def several_clusters_are_in_one_table():
    """`get --context A,B`: a column CLUSTER; one that does not answer does not hide the others"""
    world.make("default", "ac", "here", status=ended("ac", "Completed", True, "Succeeded", "fine"))
    paths = [named(world.server, "one"), named(other, "two")]
    with open(paths[1], encoding="utf-8") as f:
        dead = re.sub(r"server: \S+", "server: https://127.0.0.1:9", f.read()).replace("two", "dead")
    paths.append(os.path.join(world.folder, "dead.yaml"))
    with open(paths[2], "w", encoding="utf-8") as f:
        f.write(dead)
    both = {"KUBECONFIG": ":".join(paths)}
    world.sonde("apply", "--context", "two", "-f", "-", stdin=LOUD.replace("loud", "there").replace("iterations: 3", "suspend: true"),
                **both).expect(0)
    seen = world.sonde("get", "--context", "one,two", **both).expect(0).table()
    assert seen[0] == ["CLUSTER", "KIND", "NAME", "PHASE", "STEP", "%", "ETA", "AGE", "REASON"], seen
    assert ["one", "ac", "here", "Completed"] in [row[:4] for row in seen] and ["two", "ap", "there"] in [row[:3] for row in seen], seen
    part = world.sonde("get", "ac", "--context", "one,dead", **both)
    part.expect(1, re.compile(r"^one +ac +here", re.M), re.compile(r"cannot reach the cluster at https://127.0.0.1:9 .*current: dead"))
    with Process(program("sonde"), "watch", "--context", "one,dead", env=world.env(**both)) as p:
        p.expect(r"cannot reach the cluster at https://127.0.0.1:9 .*current: dead", PATIENCE)
        p.expect(r"^ac/here  Completed", PATIENCE)
        p.signal(signal.SIGINT)
        assert p.wait(PATIENCE) == 130, p.lines
    alone = world.sonde("get", "ac", "--context", "one", **both).expect(0).table()
    assert alone[0][0] == "KIND", alone
    world.sonde("explain", "here", "--context", "one,two", **both).expect(1, "", re.compile("there is no context 'one,two'"))


def a_run_from_a_file_to_its_log():
    """apply, wait, get, logs, explain, describe and rerun of one run that is really carried out"""
    env = {"KUBECONFIG": other.kubeconfig}
    held = LOUD.replace("iterations: 3", "iterations: 3\n  suspend: true")  # it must not be over before anybody waits for it
    world.sonde("apply", "-f", "-", stdin=held, **env).expect(0, "algorithmprofiling/loud created\n")
    with Process(program("sonde"), "wait", "ap/loud", env=world.env(**env)) as p:
        p.expect("^ap/loud", PATIENCE)
        world.sonde("resume", "ap/loud", **env).expect(0, "ap/loud goes on\n")
        assert p.wait(PATIENCE) == 0, p.lines
        assert p.lines[-1].startswith("ap/loud succeeded: ") and len(p.lines) > 1, p.lines
    assert world.sonde("get", "loud", **env).expect(0).table()[1][:5] == ["ap", "loud", "Completed", "-", "100"]
    stage = world.sonde("logs", "loud", "-c", "stage", **env).expect(0, None)
    world.sonde("logs", "loud", "--tail", "0", **env).expect(0, "")
    world.sonde("logs", "-f", "loud", **env).expect(0, None)
    world.sonde("logs", "loud", "-c", "nix", **env).expect(1, "", re.compile("nix"))
    assert stage.err == ""
    told = world.sonde("describe", "loud", **env).expect(0).out
    for part in "\nPods\n", "\nEvents\n", "Succeeded", "team: a", "in full: sonde results ap/loud":
        assert part in told, (part, told)
    world.sonde("explain", "loud", **env).expect(0, re.compile(r"\Aap/loud succeeded, \d+[sm] ago"))
    world.sonde("rerun", "loud", **env).expect(0, "ap/loud-rerun-1 created from ap/loud\n")
    world.sonde("wait", "-q", "loud-rerun-1", **env).expect(0, re.compile("ap/loud-rerun-1 succeeded"))


def a_run_that_fails():
    """A profiler that gives up: its words in the log, its end as exit status 1, the cause in `explain`, and nothing to cancel any more"""
    env = {"KUBECONFIG": other.kubeconfig}
    world.sonde("apply", "-f", "-", stdin=BROKEN, **env).expect(0)
    world.sonde("wait", "-q", "dgdr/broken", **env).expect(1, "", re.compile(r"\Asonde: dgdr/broken failed: WorkloadFailed: .*status 3"))
    world.sonde("logs", "broken", **env).expect(0, "the profiler speaks\nand gives up\n")
    world.sonde("logs", "broken", "--tail", "1", **env).expect(0, "and gives up\n")
    world.sonde("logs", "broken", "--previous", **env).expect(1, "", re.compile("previous terminated container"))
    said = world.sonde("explain", "broken", **env).expect(0).out
    assert re.search(r"\Adgdr/broken failed.*\n  cause     .*status 3.*and gives up.*\n  evidence  pod profile-broken-\S+ on \S+: container "
                     r"\S+ exited with status 3 ", said), said
    assert said.endswith("  then      sonde rerun dgdr/broken\n"), said
    world.sonde("cancel", "broken", **env).expect(1, "", re.compile("has ended"))


def it_is_found_where_sonde_up_left_it():
    """Without any kubeconfig, the engine that `sonde up` has started under ~/.sonde is the cluster; and its runs are completed"""
    os.symlink(other.home, os.path.join(world.folder, ".sonde"))
    assert ["ap", "loud"] in [row[:2] for row in world.sonde("get", KUBECONFIG="").expect(0).table()]
    names = [line.split("\t")[0] for line in world.sonde("__complete", "explain", "", KUBECONFIG="").expect(0).out.splitlines()]
    assert "ap/loud" in names, names
    world.sonde("__complete", "explain", "-n", "kube-system", "", KUBECONFIG="").expect(0, "", None)


def a_cluster_without_our_kinds_says_what_is_next():
    with Engine("--no-node", "--no-fsync") as bare:
        env = {"KUBECONFIG": bare.kubeconfig}
        text = re.compile(r"none of our kinds is installed in the cluster at \S+; next: sonde manifests \| kubectl apply -f -\n\Z")
        for words in ("get",), ("watch",), ("watch", "ap"), ("explain", "a"):
            world.sonde(*words, **env).expect(1, "", text)
        world.sonde("explain", "ap/a", **env).expect(1, "", re.compile("does not have the kind AlgorithmProfiling; next: sonde manifests"))
        path = os.path.join(ROOT, "examples", "algorithmprofiling.yaml")
        world.sonde("apply", "-f", path, **env).expect(1, "", re.compile(r"algorithmprofiling.yaml:\d+:\d+: no kind .*next: sonde manifests"))


with World("engine") as world, Engine("--no-fsync") as other:
    for group, plural, _, _ in KINDS.values():  # it defines our kinds after it is ready
        wait(lambda g=group, p=plural: other.api().get(f"/apis/{g}/{p}")[0] == 200, PATIENCE, f"{plural} to be served")
    main(several_clusters_are_in_one_table, a_run_from_a_file_to_its_log, a_run_that_fails, it_is_found_where_sonde_up_left_it,
         a_cluster_without_our_kinds_says_what_is_next)
