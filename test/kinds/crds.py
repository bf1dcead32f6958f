#!/usr/bin/python3
"""The CRDs of deploy/crds on a real API server, as kubectl 1.20 sends them with its validation on, and the seeds' own requests."""

import glob
import json
import os
import re
import sys

import yaml

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, ControlPlane, main, wait
from tidy import tidied

DGDRS = "/apis/nvidia.com/v1alpha1/namespaces/{}/dynamographdeploymentrequests"
CUDA = "/apis/gpu.scheduler.io/v1alpha1/namespaces/{}/{}"
CRDS = sorted(glob.glob(os.path.join(ROOT, "deploy", "crds", "*.yaml")))
SEEDS = sorted(glob.glob(os.path.join(ROOT, "examples", "seeds", "dgdr-*.yaml")))
# What the seeds print above the values, in their order.
HEADERS = [(["-o", "wide"], ["NAME", "MODEL", "BACKEND", "STATE", "PHASE", "PROGRESS", "AGE"]),
           ([], ["NAME", "MODEL", "BACKEND", "STATE", "PHASE", "DGD-STATE", "AGE"])]


def name_of(path):
    with open(path, encoding="utf-8") as f:
        return yaml.safe_load(f)["metadata"]["name"]


def kubectl_takes_them_with_validation_on():
    for path in CRDS:
        plane.kubectl("apply", "--validate=true", "-f", path)
    for name in map(name_of, CRDS):
        group = name.partition(".")[2]
        wait(lambda g=group: plane.api().get(f"/apis/{g}/v1alpha1")[0] == 200, 120, f"{name} to be served")
        # What is not structural is accepted, and said here.
        crd = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))
        assert not [c for c in crd["status"].get("conditions", []) if c["type"] == "NonStructuralSchema"], crd["status"]


def nothing_in_them_is_lost():
    """what the server has of a CRD is what the file says"""
    for path in CRDS:
        sent = json.loads(plane.kubectl("apply", "--dry-run=client", "-o", "json", "-f", path))
        stored = json.loads(plane.kubectl("get", "crd", name_of(path), "-o", "json"))
        assert stored["spec"]["versions"] == sent["spec"]["versions"], path
        assert stored["spec"]["names"] == sent["spec"]["names"], path


def kubectl_explains_every_level():
    def explained():
        for path in ("dynamographdeploymentrequests.spec", "dynamographdeploymentrequests.spec.profilingConfig.configMapRef",
                     "dynamographdeploymentrequests.status.profilingProgress.gpuConfig", "dynamographdeploymentrequests.status.run",
                     "cudaexperiments.spec.profiling", "cudaexperiments.spec.volumes.configMap.items", "cudaexperiments.status.execution",
                     "workloadprofiles.spec", "workloadprofiles.status.placement.nodes.breakdown"):
            assert "<empty>" not in plane.kubectl("explain", path, check=True), path
        return True

    wait(explained, 120, "the schema to be published")


def seed(path):
    return json.loads(plane.kubectl("apply", "--dry-run=client", "-o", "json", "-f", path))


def with_status(ns, wanted):
    """The request as the server has it after its status was written as the operator does."""
    path = DGDRS.format(ns)
    name = wanted["metadata"]["name"]
    status, stored = plane.api().post(path, {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"],
                                             "metadata": {"name": name}, "spec": wanted["spec"]})
    assert status == 201 and "status" not in stored, stored
    status, stored = plane.api().patch(f"{path}/{name}/status", {"status": wanted["status"]})
    assert status == 200, stored
    return stored


def the_seeds_own_requests_are_taken_and_kept_whole():
    for path in SEEDS:
        with plane.namespace("crds") as ns:
            wanted = seed(path)
            stored = with_status(ns, wanted)
            assert stored["status"] == wanted["status"], (path, stored["status"])
            for field, value in wanted["spec"].items():
                assert stored["spec"][field] == value, (path, field)
            assert stored["spec"]["retries"] == 3 and stored["spec"]["autoApply"] is False, stored["spec"]


def the_seeds_columns_are_there_in_their_order():
    with plane.namespace("crds") as ns:
        with_status(ns, seed(os.path.join(ROOT, "examples/seeds/dgdr-full-after.yaml")))
        for options, wanted in HEADERS:
            lines = plane.kubectl("get", "dgdr", "-n", ns, *options).splitlines()
            headers = re.split(r"\s{2,}", lines[0])
            assert [h for h in headers if h in wanted] == wanted, lines
            assert "Qwen/Qwen3-0.6B" in lines[1] and "DecodeInterpolation" in lines[1], lines
        assert plane.kubectl("get", "sonde", "-n", ns, "-o", "name").strip().endswith("/my-deployment")


def kratos_own_objects_are_taken_and_kept_whole():
    """the seed's experiment with upstream's defaults, and its profile with the status of a real run"""
    with plane.namespace("crds") as ns:
        wanted = seed(os.path.join(ROOT, "examples/cudaexperiment.yaml"))
        status, stored = plane.api().post(CUDA.format(ns, "cudaexperiments"), {**wanted, "metadata": {"name": "vectoradd"}})
        assert status == 201 and {**stored["spec"], **wanted["spec"]} == stored["spec"], stored
        status, bare = plane.api().post(CUDA.format(ns, "cudaexperiments"), {
            "apiVersion": "gpu.scheduler.io/v1alpha1", "kind": "CUDAExperiment", "metadata": {"name": "bare"}, "spec": {"image": "i"}})
        assert status == 201 and bare["spec"] == {
            "image": "i", "runtimeClassName": "nvidia", "replicas": 1, "gpuRequired": 1, "profilingEnabled": False,
            "suspend": False, "cancel": False, "retries": 3}, bare
        wanted = seed(os.path.join(ROOT, "examples/seeds/kratos-workloadprofile.yaml"))
        path = CUDA.format(ns, "workloadprofiles")
        status, stored = plane.api().post(path, {**wanted, "metadata": {"name": "vectoradd-profile"}})
        assert status == 201 and "status" not in stored, stored
        status, stored = plane.api().patch(f"{path}/vectoradd-profile/status", {"status": wanted["status"]})
        assert status == 200 and stored["status"] == wanted["status"], stored


def what_cannot_be_is_refused_at_once():
    with plane.namespace("crds") as ns:
        body = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "x"},
                "spec": {"model": "", "backend": "auto", "retries": 11, "timeout": "soon",
                         "profilingConfig": {"config": "text", "resources": {"limits": {"cpu": "much"}}}}}
        status, answer = plane.api().post(DGDRS.format(ns), body)
        fields = {c["field"] for c in answer["details"]["causes"]}
        assert status == 422 and fields == {
            "spec.model", "spec.backend", "spec.retries", "spec.timeout", "spec.profilingConfig.config",
            "spec.profilingConfig.resources.limits.cpu"}, answer


if __name__ == "__main__":
    with ControlPlane.of("fragile") as plane, tidied(plane):
        main(kubectl_takes_them_with_validation_on, nothing_in_them_is_lost, kubectl_explains_every_level,
             the_seeds_own_requests_are_taken_and_kept_whole, the_seeds_columns_are_there_in_their_order,
             kratos_own_objects_are_taken_and_kept_whole, what_cannot_be_is_refused_at_once)
