#!/usr/bin/python3
"""Where execution Jobs want to run: four labelled nodes, a busy one, an unknown one, what is demanded, Volcano and Kueue.

    placement.py [cluster]    on the embedded engine, or on a real control plane of its own: nodes belong to no namespace
"""

import contextlib
import http.server
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cuda_play import PATIENCE, PODGROUPS, PODGROUP_CRD, World, condition, now, ok, summary
from sonde_test import ControlPlane, diag, main, wait

MIB = 1024
# product label, SMs, GB/s, MiB as GPU feature discovery tells it, compute capability
NODES = {
    "l40s": ("NVIDIA-L40S", 142, 864, 46068, 89),
    "a100": ("NVIDIA-A100-SXM4-80GB", 108, 2039, 81920, 80),
    "rtx": ("NVIDIA-GeForce-RTX-3090", 82, 936, 24576, 86),
    "t4": ("Tesla-T4", 40, 320, 15360, 75),
}
WEIGHTS = {"compute-bound": (40, 10, 15, 35), "memory-bound": (10, 45, 30, 15), "mixed": (25, 25, 25, 25), "unknown": (25, 25, 25, 25)}
REFERENCES = (132, 4800, 141 * MIB, 90)


def score(name, bound):
    """As upstream has it, with its parts."""
    parts = [min(value * 1000 // reference, 1000) * weight // 100
             for value, reference, weight in zip(NODES[name][1:], REFERENCES, WEIGHTS[bound])]
    return sum(parts), dict(zip(("sm", "bandwidth", "vram", "compute"), parts))


def ranked(bound, names=tuple(NODES)):
    """[(score, name)], best first."""
    return sorted(((score(name, bound)[0], name) for name in names), key=lambda x: (-x[0], x[1]))


def make_node(name, product, memory, compute, count=8):
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": str(memory),
              "nvidia.com/gpu.compute.major": str(compute // 10), "nvidia.com/gpu.compute.minor": str(compute % 10),
              "nvidia.com/gpu.count": str(count)}
    ok(world.api.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}))
    # It has no room for pods: nobody would run what a scheduler bound to it.
    ok(world.api.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": {"nvidia.com/gpu": str(count)},
                                                                   "capacity": {"nvidia.com/gpu": str(count)}}}))


def affinity_of(play):
    return job_of(play)["spec"]["template"]["spec"].get("affinity", {}).get("nodeAffinity", {})


def job_of(play):
    return wait(play.execution, PATIENCE, "the execution Job")


def preferences(play):
    """{product or host: weight}."""
    terms = affinity_of(play).get("preferredDuringSchedulingIgnoredDuringExecution", [])
    return {e["values"][0]: t["weight"] for t in terms for e in t["preference"]["matchExpressions"] if e["operator"] == "In"}


def wanted(bound, names=tuple(NODES), busy=()):
    order = [(s // 2 if n in busy else s, n) for s, n in ranked(bound, names)]
    best = max(order)[0]
    return {NODES[n][0]: min(max((s * 100 + best // 2) // best, 1), 100) for s, n in order}


@contextlib.contextmanager
def scene():
    with world.server.namespace("place") as ns, world.operator(ns):
        yield ns


def each_bound_type_prefers_its_own():
    """Four nodes: preferred node affinity by score for each boundType, the hint on the profile, the reason in an event"""
    with scene() as ns:
        plays = {bound: world.create(ns, f"a-{bound}") for bound in WEIGHTS}
        for bound, play in plays.items():
            play.profiles(summary(bound))
        for bound, play in plays.items():
            assert preferences(play) == wanted(bound), (bound, preferences(play), wanted(bound))
            assert "requiredDuringSchedulingIgnoredDuringExecution" not in affinity_of(play), affinity_of(play)
            hint = wait(lambda p=play: (p.profile() or {}).get("status", {}).get("placement"), PATIENCE, "the hint")
            assert hint["boundType"] == bound, hint
            assert [(n["score"], n["name"]) for n in hint["nodes"]] == ranked(bound), hint
            assert hint["nodes"][0]["breakdown"] == score(hint["nodes"][0]["name"], bound)[1], hint
            best = NODES[ranked(bound)[0][1]][0]
            assert best in hint["reason"], hint
            notes = [e["note"] for e in wait(lambda p=play: [e for e in p.events() if best in e["note"]], PATIENCE, "the event")]
            diag(f"{bound}: {notes[0]}")
        assert preferences(plays["compute-bound"])["NVIDIA-L40S"] == 100 and \
            preferences(plays["memory-bound"])["NVIDIA-A100-SXM4-80GB"] == 100, "the best one depends on what bounds the program"


def what_is_not_profiled_is_placed_as_well():
    """Without a profile all four parts count the same; mode none prefers nothing"""
    with scene() as ns:
        assert preferences(world.create(ns, "b", profilingEnabled=False)) == wanted("unknown")
        none = world.create(ns, "c", profilingEnabled=False, placement={"mode": "none"})
        assert affinity_of(none) == {}, affinity_of(none)


def what_is_demanded_is_required():
    """minimumComputeCapability and minimumMemory become required node affinity, in every mode, also for profiling"""
    with scene() as ns:
        least = {"minimumComputeCapability": "8.0", "minimumMemory": "40Gi"}
        terms = [{"matchExpressions": [{"key": "nvidia.com/gpu.compute.major", "operator": "Gt", "values": ["7"]},
                                       {"key": "nvidia.com/gpu.memory", "operator": "Gt", "values": ["40959"]}]}]
        play = world.create(ns, "d", **least)
        pod = play.job()["spec"]["template"]["spec"]
        assert pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == terms, pod
        play.profiles(summary("memory-bound"))
        assert affinity_of(play)["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == terms, affinity_of(play)
        assert preferences(play) == wanted("memory-bound", ("l40s", "a100")), preferences(play)
        play = world.create(ns, "e", profilingEnabled=False, placement={"mode": "none"}, minimumComputeCapability="8.6")
        (more, same) = affinity_of(play)["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert more["matchExpressions"][0] == {"key": "nvidia.com/gpu.compute.major", "operator": "Gt", "values": ["8"]}, more
        assert [e["values"] for e in same["matchExpressions"]] == [["8"], ["5"]], same
        play = world.create(ns, "f", profilingEnabled=False, minimumMemory="much")
        status = play.phase("Failed")
        assert "spec.minimumMemory" in condition(status, "Stalled")["message"] and not play.execution(), status


def too_many_gpus_for_a_node():
    """Nodes that have fewer GPUs than a pod takes are not preferred"""
    with scene() as ns:
        play = world.create(ns, "g", profilingEnabled=False, gpuRequired=16)
        assert preferences(play) == {}, preferences(play)


def an_unknown_product_is_said_to_be_unknown():
    """A product that is in no table has no score: the hint and the event say so, and it is left to the scheduler"""
    make_node("mystery", "NVIDIA-Mystery-9000", 81920, 90)
    try:
        with scene() as ns:
            play = world.create(ns, "h")
            play.profiles(summary("compute-bound"))
            assert preferences(play) == wanted("compute-bound"), preferences(play)
            hint = wait(lambda: (play.profile() or {}).get("status", {}).get("placement"), PATIENCE, "the hint")
            assert hint["unknownProducts"] == ["NVIDIA-Mystery-9000"] and "mystery" not in [n["name"] for n in hint["nodes"]], hint
            wait(lambda: [e for e in play.events() if "NVIDIA-Mystery-9000" in e["note"] and "unknown" in e["note"]], PATIENCE, "the event")
    finally:
        ok(world.api.delete("/api/v1/nodes/mystery"))


# --- telemetry -----------------------------------------------------------------------------------------------------------


class Exporter(http.server.BaseHTTPRequestHandler):
    """What dcgm-exporter tells of a node whose GPUs are busy all the time."""

    asked = 0

    def do_GET(self):
        Exporter.asked += 1
        text = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n" + "".join(
            f'DCGM_FI_DEV_GPU_UTIL{{gpu="{i}",modelName="NVIDIA A100-SXM4-80GB"}} 100\n' for i in range(8))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def exporter(ns, node):
    """A Pod of dcgm-exporter on that node, whose address is ours."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ok(world.api.post(f"/api/v1/namespaces/{ns}/pods", {
            "metadata": {"name": "dcgm", "labels": {"app": "nvidia-dcgm-exporter"}},
            "spec": {"nodeName": node, "automountServiceAccountToken": False, "containers": [{"name": "exporter", "image": "i", "ports": [
                {"name": "metrics", "containerPort": server.server_port}]}]}}))
        ok(world.api.patch(f"/api/v1/namespaces/{ns}/pods/dcgm/status", {"status": {
            "phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now()}]}}))
        try:
            yield
        finally:
            server.shutdown()


def a_busy_node_counts_half():
    """dcgm-exporter says that the best node is busy: its score is halved, and the hint says how busy it is"""
    with scene() as ns, exporter(ns, "a100"):  # an operator of one namespace looks for it there alone
        for name in "i1", "i2", "i3", "i4", "i5":  # an exporter that stands still for 3 s is not waited for
            play = world.create(ns, name)
            play.profiles(summary("memory-bound"))
            hint = wait(lambda p=play: (p.profile() or {}).get("status", {}).get("placement"), PATIENCE, "the hint")
            if any("busy" in node for node in hint["nodes"]):
                break
        assert preferences(play) == wanted("memory-bound", busy=("a100",)), (preferences(play), wanted("memory-bound", busy=("a100",)))
        assert Exporter.asked >= 1
        busy = next(n for n in hint["nodes"] if n["name"] == "a100")
        assert busy["busy"] == 100 and busy["score"] == score("a100", "memory-bound")[0] // 2, hint
        assert all("busy" not in n for n in hint["nodes"] if n["name"] != "a100"), hint
        diag(hint["reason"])


# --- schedulers ----------------------------------------------------------------------------------------------------------


def volcano():
    """Volcano: schedulerName, the queue, and a PodGroup for all replicas; without its CRD that is told, and mended by it"""
    with scene() as ns:
        play = world.create(ns, "j", profilingEnabled=False, replicas=3, gpuRequired=2, placement={"mode": "volcano", "queue": "team-a"})
        play.wait(lambda s: condition(s, "Stalled").get("reason") == "KindNotInstalled", "KindNotInstalled")
        assert not play.execution(), "a Job without its PodGroup would wait for ever"
        ok(world.api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", PODGROUP_CRD), 201, 409)
        path = f"{PODGROUPS}/namespaces/{ns}/podgroups/j-execution"
        wait(lambda: world.api.get(path)[0] == 200, PATIENCE, "the PodGroup")
        group = ok(world.api.get(path))
        assert group["spec"]["minMember"] == 3 and group["spec"]["queue"] == "team-a", group
        assert group["spec"]["minResources"] == {"nvidia.com/gpu": "6"}, group
        assert group["metadata"]["ownerReferences"][0]["uid"] == play.uid, group["metadata"]
        template = job_of(play)["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano", template
        assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "j-execution", template["metadata"]
        assert template["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] == "team-a", template["metadata"]
        assert preferences(play) == wanted("unknown"), preferences(play)
        play.executes()
        play.phase("Succeeded")
        play.delete()
        wait(lambda: world.api.get(path)[0] == 404, PATIENCE, "the PodGroup to go")


def kueue():
    """Kueue: the queue's label on the Job; without a queue it is refused"""
    with scene() as ns:
        play = world.create(ns, "k", profilingEnabled=False, placement={"mode": "kueue", "queue": "team-a"})
        job = job_of(play)
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a", job["metadata"]
        assert job["spec"]["template"]["spec"].get("schedulerName", "default-scheduler") == "default-scheduler", job
        play = world.create(ns, "l", profilingEnabled=False, placement={"mode": "kueue"})
        assert "spec.placement.queue" in condition(play.phase("Failed"), "Stalled")["message"]


if __name__ == "__main__":
    real = "cluster" in sys.argv[1:]
    with (ControlPlane() if real else contextlib.nullcontext()) as plane, World("cluster" if real else "engine", plane) as world:
        for node_name, (label, _, _, mib, capability) in NODES.items():
            make_node(node_name, label, mib, capability)
        main(each_bound_type_prefers_its_own, what_is_not_profiled_is_placed_as_well, what_is_demanded_is_required, too_many_gpus_for_a_node,
             an_unknown_product_is_said_to_be_unknown, a_busy_node_counts_half, volcano, kueue)
