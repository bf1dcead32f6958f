#!/usr/bin/python3
"""The pods that the operator makes, of every kind: Pod Security "restricted", but for those that cannot be, which say why."""

import copy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import algorithm_play
import cuda_play
import dgdr_play
from restricted import violations
from sonde_test import ROOT, Engine, Process, main, program, wait

GOOD = {"containers": [{"name": "c", "securityContext": {
    "allowPrivilegeEscalation": False, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}}]}


def the_checker_finds_what_is_forbidden():
    """Each rule of the standard, broken once, is found, and only that"""
    def broken(change):
        pod = copy.deepcopy(GOOD)
        change(pod, pod["containers"][0]["securityContext"])
        return violations(pod)
    assert violations(GOOD) == []
    for change, told in (
            (lambda p, c: p.update(hostNetwork=True), "hostNetwork is true"),
            (lambda p, c: p.update(hostPID=True), "hostPID is true"),
            (lambda p, c: p.update(hostIPC=True), "hostIPC is true"),
            (lambda p, c: p.update(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "volume v is hostPath"),
            (lambda p, c: p.update(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}), "sysctl kernel.msgmax"),
            (lambda p, c: c.update(privileged=True), "c: privileged is true"),
            (lambda p, c: c.pop("allowPrivilegeEscalation"), "c: allowPrivilegeEscalation is not false"),
            (lambda p, c: c.update(procMount="Unmasked"), "c: procMount is Unmasked"),
            (lambda p, c: c.update(seccompProfile={"type": "Unconfined"}), "c: seccompProfile.type is not RuntimeDefault"),
            (lambda p, c: c.update(seLinuxOptions={"type": "spc_t"}), "c: seLinuxOptions.type"),
            (lambda p, c: p.update(securityContext={"seLinuxOptions": {"user": "u"}}), "seLinuxOptions.user"),
            (lambda p, c: c.update(seLinuxOptions={"role": "r"}), "c: seLinuxOptions.role"),
            (lambda p, c: p.update(securityContext={"windowsOptions": {"hostProcess": True}}), "hostProcess is true"),
            (lambda p, c: c.update(windowsOptions={"hostProcess": True}), "c: hostProcess is true"),
            (lambda p, c: p.update(securityContext={"appArmorProfile": {"type": "Unconfined"}}), "appArmorProfile.type is not RuntimeDefault"),
            (lambda p, c: c.update(appArmorProfile={"type": "Unconfined"}), "c: appArmorProfile.type is not RuntimeDefault"),
            (lambda p, c: p["containers"][0].update(ports=[{"containerPort": 1, "hostPort": 1}]), "c: hostPort"),
            (lambda p, c: c.pop("runAsNonRoot"), "c: runAsNonRoot is not true"),
            (lambda p, c: c.update(runAsUser=0), "c: runAsUser is 0"),
            (lambda p, c: c.update(capabilities={"drop": ["NET_RAW"]}), "c: capabilities.drop is not ALL"),
            (lambda p, c: c["capabilities"].update(add=["SYS_ADMIN"]), "c: capabilities.add is SYS_ADMIN")):
        assert broken(change) == [told], (told, broken(change))
    note = "container.apparmor.security.beta.kubernetes.io/c"
    assert violations(GOOD, {note: "unconfined"}) == ["c: AppArmor is unconfined"] and violations(GOOD, {note: "runtime/default"}) == []
    assert violations({"initContainers": [{"name": "i"}], **GOOD}), "init containers count as well"


def operator():
    return Process(program("sonde"), "operator", "--kubeconfig", server.kubeconfig, "--health-probe-bind-address", "0")


def broken_by(play):
    """What the pod of a run breaks."""
    template = play.job()["spec"]["template"]
    return violations(template["spec"], template["metadata"].get("annotations"))


def says(path, *words):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        text = " ".join(f.read().split())
    assert all(word in text for word in words), (path, words)


def every_kind_is_restricted():
    """With the users that requests have when they say nothing: DGDR (with and without a token), profiling of every type, comparison"""
    ml = {"algorithmName": "m", "algorithmType": "ml", "inputSize": 100, "mlConfig": {"framework": "sklearn", "task": "distributed_training"}}
    custom = {"algorithmName": "m", "algorithmType": "custom", "inputSize": 1, "customConfig": {"image": "i", "command": ["a"]}}
    with server.namespace("pods") as ns, operator():
        access = {"profilingConfig": {**dgdr_play.SPEC["profilingConfig"], "apiAccess": True}}
        own = {"profilingConfig": {k: v for k, v in dgdr_play.SPEC["profilingConfig"].items() if k != "profilerImage"}}
        plays = [dgdrs.create(ns, "plain"), dgdrs.create(ns, "access", **access), dgdrs.create(ns, "own", **own),
                 profilings.create(ns, "sorting"), profilings.create(ns, "ml", ml), profilings.create(ns, "custom", custom),
                 comparisons.create(ns, "comparison"), comparisons.create(ns, "parallel", parallel=True)]
        for play in plays:
            assert broken_by(play) == [], (play.name, broken_by(play))


def a_gpu_runner_that_may_not_be_root():
    """With `permission: none` the GPU runner is restricted as well"""
    with server.namespace("pods") as ns, operator():
        assert broken_by(cudas.create(ns, "none", profiling={"permission": "none"})) == []


def the_gpu_runner_says_why():
    """The GPU runner is root with SYS_ADMIN, because the driver shows its counters to nobody else: nothing else of its pod is, and it is said"""
    with server.namespace("pods") as ns, operator():
        found = broken_by(cudas.create(ns, "runner"))
    assert {v.split(":")[0] for v in found} == {"stage-workload", "profiling-runner"}, found
    assert "profiling-runner: capabilities.add is SYS_ADMIN" in found and "stage-workload: runAsUser is 0" in found, found
    says("docs/cuda.md", "lets only administrators read the GPU's counters", "the runner is root")
    says("docs/security.md", "Two are not restricted", "a driver with its default settings shows its counters to administrators")
    says("deploy/crds/cudaexperiments.yaml", "its container has the capability SYS_ADMIN, without which")


def the_execution_is_the_users_own():
    """The execution Job is the user's image as it is, with the user that it has: nothing is added that would widen what it may"""
    with server.namespace("pods") as ns, operator():
        play = cudas.create(ns, "execution", profilingEnabled=False)
        spec = wait(play.execution, 120, "the execution Job")["spec"]["template"]["spec"]
    allowed = {"allowPrivilegeEscalation is not false", "seccompProfile.type is not RuntimeDefault", "runAsNonRoot is not true",
               "capabilities.drop is not ALL"}
    assert set(violations(spec)) == {f"execution: {what}" for what in allowed}, violations(spec)
    assert "serviceAccountName" not in spec or spec["serviceAccountName"] == "default", spec
    says("docs/security.md", "Two are not restricted", "The execution Job of a CUDAExperiment", "images for GPUs are made for root")


if __name__ == "__main__":
    with Engine("--no-node", "--no-fsync") as server, dgdr_play.World("engine", server) as dgdrs, \
            cuda_play.World("engine", server) as cudas, algorithm_play.World("engine", server) as profilings, \
            algorithm_play.World("engine", server, kind="ac") as comparisons:
        main(the_checker_finds_what_is_forbidden, every_kind_is_restricted, a_gpu_runner_that_may_not_be_root, the_gpu_runner_says_why,
             the_execution_is_the_users_own)
