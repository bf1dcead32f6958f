#!/usr/bin/python3
"""The commands for people without a cluster: wrong usage, no connection, files that are wrong, completion in three shells."""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, main, program

ONE = ("describe", "explain", "logs", "rerun")
SOME = ("wait", "cancel", "suspend", "resume")
NOWHERE = """\
apiVersion: v1
kind: Config
current-context: prod
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: prod, context: {cluster: c, user: u, namespace: team-a}}]
users: [{name: u, user: {}}]
"""


def sonde(*words, stdin="", **env):
    """Exit status, standard output, standard error."""
    done = subprocess.run([program("sonde"), *words], input=stdin, capture_output=True, text=True, timeout=180, check=False,
                          env={**clean, "KUBECONFIG": kubeconfig, **env})
    return done.returncode, done.stdout, done.stderr


def wrong_usage_is_said_in_one_line():
    """A missing, empty or double name, a kind that is none, an option or format that is none: exit status 2, one sentence"""
    for verb in (*ONE, *SOME):
        assert sonde(verb) == (2, "", f"sonde: {verb} needs the name of a run: KIND/NAME or NAME; see 'sonde help {verb}'\n"), verb
        assert sonde(verb, "ap") == (2, "", f"sonde: {verb} needs the name of a run, and 'ap' is a kind; 'sonde get ap' lists its runs\n")
        assert sonde(verb, "") == (2, "", f"sonde: {verb}: an empty name names nothing\n"), verb
    for verb in ("get", *ONE, *SOME):
        assert sonde(verb, "pods/a") == (2, "", "sonde: 'pods' is no kind of ours; they are dgdr, cudaexp, ap, ac, wprof\n"), verb
        assert sonde(verb, "ap", "ac/a") == (2, "", "sonde: 'ap ac/a' names a kind twice; KIND/NAME or KIND NAME is wanted\n"), verb
        assert sonde(verb, "ap/") == (2, "", "sonde: 'ap/' names no run; KIND/NAME is wanted\n"), verb
        assert sonde(verb, "--frob") == (2, "", "sonde: unknown option --frob; see --help\n"), verb
        assert sonde(verb, "ap/a", "-n") == (2, "", "sonde: --namespace needs a value: --namespace NS\n"), verb
        status, out, err = sonde(verb, "--help")
        assert (status, err) == (0, "") and re.search(r"^Examples?:\n  sonde ", out, re.M), (verb, out)
    for verb in ONE:
        assert sonde(verb, "ap", "a", "b") == (2, "", f"sonde: {verb} takes one run, and 2 are named; see 'sonde help {verb}'\n"), verb
    assert sonde("get", "-o", "xml") == (2, "", "sonde: -o: 'xml' is not a format; table, wide, json, yaml or name is wanted\n")
    assert sonde("apply") == (2, "", "sonde: apply needs -f FILE; see 'sonde help apply'\n")


def no_cluster_is_said_with_its_context():
    """Nobody answers, no such context, no kubeconfig: where, and what to look at"""
    said = ("sonde: cannot reach the cluster at http://127.0.0.1:9 (connection refused); is the context right? current: prod "
            "(kubectl config get-contexts)\n")
    for words in ("get",), ("get", "ap/a"), ("explain", "a"), ("watch",), ("watch", "ap"), ("watch", "ap/a"), ("wait", "ap/a"), (
            "cancel", "ap/a"), (
            "apply", "-f", os.path.join(ROOT, "examples", "algorithmprofiling.yaml")):
        assert sonde(*words) == (1, "", said), (words, sonde(*words))
    assert sonde("get", "--context", "nix") == (1, "", f"sonde: kubeconfig {kubeconfig}:5:11: there is no context 'nix'\n"), sonde(
        "get", "--context", "nix")
    assert sonde("get", "--context", "prod,,") == (1, "", "sonde: --context: 'prod,,' has an empty name in it\n")
    status, out, err = sonde("get", KUBECONFIG="")
    assert (status, out) == (1, "") and "pass --kubeconfig" in err and err.count("\n") == 1, err


BAD = """\
apiVersion: dprofiler.io/v1alpha1
kind: AlgorithmProfiling
metadata:
  name: bad
spec:
  algorithmName: quick_sort
  algorithmType: sortin
  inputsize: 100
  iterations: "many"
  resources:
    limit:
      cpu: 1
  frobnicate: 7
---
apiVersion: dprofiler.io/v1
kind: AlgorithmProfiling
metadata:
  name: bad2
---
apiVersion: dprofiler.io/v1alpha1
kind: AlgorithmComparision
metadata:
  name: bad3
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: not-ours
data: {any: thing}
"""

WRONG = """\
sonde: -:8:14: spec.inputsize: unknown field; did you mean 'inputSize'?
sonde: -:12:7: spec.resources.limit: unknown field; did you mean 'limits'?
sonde: -:13:15: spec.frobnicate: unknown field, which AlgorithmProfiling does not have
sonde: -:7:18: spec.algorithmType: "sortin" is not one of sorting, ml, custom
sonde: -:9:15: spec.iterations: must be of type integer, not string
sonde: -:6:3: spec.inputSize: Required value
sonde: -:15:13: apiVersion: AlgorithmProfiling has no version 'v1'; it is dprofiler.io/v1alpha1
sonde: -:21:7: kind: there is no 'AlgorithmComparision' in dprofiler.io; did you mean 'AlgorithmComparison'?
"""


def what_is_wrong_in_a_file_has_its_place():
    """`validate`: values, unknown fields and versions against the definitions, with line, column and what was meant"""
    assert sonde("validate", "-", stdin=BAD) == (1, "4 resources in 1 file, 8 problems\n", WRONG), sonde("validate", "-", stdin=BAD)
    for name in "algorithmcomparison", "algorithmprofiling", "cudaexperiment", "dgdr":
        path = os.path.join(ROOT, "examples", f"{name}.yaml")
        assert sonde("validate", path) == (0, "1 resource in 1 file, 0 problems\n", ""), sonde("validate", path)
    status, _, err = sonde("apply", "-f", "-", stdin=BAD)
    assert status == 1 and err == WRONG + "sonde: apply: 8 problems, and nothing was sent\n", err


# --- completion ----------------------------------------------------------------


def offered(*words):
    status, out, _ = sonde("__complete", *words)
    assert status == 0, words
    return [line.split("\t")[0] for line in out.splitlines()]


def what_may_follow_is_offered():
    """Commands, their options and the words that an option takes, as the programs' own tables have them"""
    listed = [line.split()[0] for line in sonde("help")[1].split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    assert sorted(offered("")) == sorted(listed) and offered("exp") == ["explain"], offered("")
    assert sorted(offered("help", "")) == sorted(listed)
    for name in set(listed) - {"help", "version"}:
        options = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", sonde("help", name)[1], re.M)
        assert sorted(offered(name, "--")) == sorted({*options, "--help"}), (name, offered(name, "--"), options)
    assert offered("get", "-o", "") == ["table", "wide", "json", "yaml", "name"]
    assert offered("get", "-o", "y") == ["yaml"]
    assert offered("completion", "") == ["bash", "zsh", "fish"]
    assert offered("apply", "-f", "") == offered("validate", "") == [":files"]
    assert offered("frobnicate", "") == [] and offered("explain", "") == []


def shells_complete():
    """bash, zsh and fish take their scripts and complete with them"""
    path = {**clean, "KUBECONFIG": kubeconfig, "PATH": f"{os.path.dirname(program('sonde'))}:{os.environ['PATH']}"}
    bash = ("source <(sonde completion bash); COMP_WORDS=(sonde get --o); COMP_CWORD=2; _sonde_complete; echo ${COMPREPLY[@]}; "
            "COMP_WORDS=(sonde des); COMP_CWORD=1; _sonde_complete; echo ${COMPREPLY[@]}")
    done = subprocess.run(["bash", "--norc", "-c", bash], env=path, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout == "--output\ndescribe\n", done
    zsh = ("autoload -U compinit; compinit -D -u; source <(sonde completion zsh); _describe() { print -l -- ${(P)2}; }; "
           "words=(sonde completion ''); CURRENT=3; _sonde; words=(sonde expl); CURRENT=2; _sonde; print ${_comps[sonde]}")
    done = subprocess.run(["zsh", "-f", "-c", zsh], env=path, capture_output=True, text=True, timeout=180, check=False)
    assert done.stdout.splitlines()[:3] == ["bash:", "zsh:", "fish:"] and "explain:say why" in done.stdout, done
    assert done.stdout.splitlines()[-1] == "_sonde", done
    fish = "sonde completion fish | source; complete -C 'sonde completion '; complete -C 'sonde get --out'"
    done = subprocess.run(["fish", "--no-config", "-c", fish], env=path, capture_output=True, text=True, timeout=180, check=False)
    words = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert sorted(words[:3]) == ["bash", "fish", "zsh"] and words[3:] == ["--output"], done
    assert sonde("completion", "tcsh") == (2, "", "sonde: completion needs the name of a shell: bash, zsh or fish\n")


with tempfile.TemporaryDirectory(prefix="sonde-cli-") as folder:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "SONDE"))}
    clean.update(HOME=folder, XDG_CONFIG_HOME=folder, XDG_DATA_HOME=folder, XDG_CACHE_HOME=folder)
    kubeconfig = os.path.join(folder, "config")
    with open(kubeconfig, "w", encoding="utf-8") as config:
        config.write(NOWHERE)
    main(wrong_usage_is_said_in_one_line, no_cluster_is_said_with_its_context, what_is_wrong_in_a_file_has_its_place,
         what_may_follow_is_offered, shells_complete)
