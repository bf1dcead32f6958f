#!/usr/bin/python3
"""examples/dgdr.yaml as a person runs it: one command, half a minute, Sonde's own profiler, and what comes out says that it is simulated."""

import contextlib
import json
import os
import re
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, Process, diag, engine_client, main, program, wait

DGDRS = "/apis/nvidia.com/v1alpha1/namespaces/default/dynamographdeploymentrequests"
NAME = "simulated-qwen3"
PHASES = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
          "PlannerGeneration", "Complete"]


class Run:
    """`sonde up -f examples/dgdr.yaml`, every state of the request on the way, and what is there at the end."""

    def __init__(self):
        self.states = []
        path = os.path.join(ROOT, "examples", "dgdr.yaml")
        with tempfile.TemporaryDirectory(prefix="sonde-example-") as folder:
            home = os.path.join(folder, "home")
            began = time.monotonic()
            with Process(program("sonde"), "up", "--dir", home, "-f", path) as up:
                up.expect("engine ready in", 120)
                api = engine_client(os.path.join(home, "kubeconfig"))
                wait(lambda: api().get(f"{DGDRS}/{NAME}")[0] == 200, 120, "the request to be there")
                threading.Thread(target=self._follow, args=(api(),), daemon=True).start()
                wait(lambda: self.states and self.states[-1].get("state") in ("Ready", "Failed"), 500, "the end")
                diag(f"{time.monotonic() - began:.1f} s, {len(self.states)} states")
                log = api().job_log("default", f"profile-{NAME}", "profiler")
                self.logged = re.findall(r" msg=Phase phase=(\w+)", log)
                path = "/api/v1/namespaces/default/configmaps"
                wait(lambda: api().get(f"{path}/dgdr-status-{NAME}")[0] == 404, 120, "the status ConfigMap to go")
                self.maps = {m["metadata"]["name"]: m for m in api().get(path)[1]["items"]}
            self.lines = up.lines
        self.status = self.states[-1]

    def _follow(self, api):
        with contextlib.suppress(OSError, ValueError):
            for event in api.watch(f"{DGDRS}?watch=1&resourceVersion=0"):
                self.states.append(event["object"].get("status", {}))

    def progress(self):
        return [s["profilingProgress"] for s in self.states if "profilingProgress" in s]

    def prefill_steps(self):
        return [(p["currentStep"], p["totalSteps"], p["gpuConfig"]["currentGpus"], p["gpuConfig"]["parallelMapping"])
                for p in self.progress() if p["phase"] == "PrefillSweep" and "gpuConfig" in p]


def it_is_ready_at_the_end():
    assert run.status["state"] == "Ready", run.status


def all_seven_phases_are_shown_in_order():
    """The profiler goes through all seven phases, and no state shows them in another order"""
    assert run.logged == PHASES[:7], run.logged
    seen = [p["phase"] for p in run.progress()]
    order = [phase for i, phase in enumerate(seen) if i == 0 or seen[i - 1] != phase]
    assert order == [phase for phase in PHASES if phase in order] and len(order) > 1, order  # a short one may be over too soon


def steps_sub_phases_and_gpus_are_shown():
    steps = set(run.prefill_steps())
    assert steps and steps <= {(gpus, 2, gpus, f"TP={gpus}") for gpus in (1, 2)}, steps
    parts = {p["subPhase"].split()[0] for p in run.progress() if "subPhase" in p}  # "Benchmarking batch size 36"
    assert parts and parts <= {"Deploying", "Benchmarking", "Cleanup"}, parts
    messages = {c["message"] for s in run.states for c in s.get("conditions", []) if "TP=" in c["message"] and "PrefillSweep" in c["message"]}
    allowed = {f"[Phase 2/7: PrefillSweep] Profiling prefill with {n} GPUs (TP={n}) ({n}/2, {50 * n:.1f}%)" for n in (1, 2)}
    assert messages and messages <= allowed, messages


def the_whole_s_percentage_only_grows_and_its_end_is_foreseen():
    percents = [p["overallPercentage"] for p in run.progress() if "overallPercentage" in p]
    assert percents == sorted(percents) and percents[-1] == 100 and len(set(percents)) > 1, percents
    assert any("eta" in s.get("progress", {}) for s in run.states)


def what_comes_out_says_that_it_is_simulated():
    made = run.status["generatedDeployment"]
    assert made["metadata"]["annotations"]["simulated"] == "true", made
    assert made["metadata"]["name"] == f"{NAME}-dgd" and made["metadata"]["labels"]["example"] == "simulated", made
    data = run.maps[f"planner-profile-data-{NAME}"]
    assert data["metadata"]["annotations"]["simulated"] == "true", data
    assert all(json.loads(text)["simulated"] is True for text in data["data"].values()), data


def the_output_stays():
    assert run.status["profilingResults"] == f"configmap/dgdr-output-{NAME}"
    assert "config_with_planner.yaml" in run.maps[f"dgdr-output-{NAME}"]["data"], run.maps.keys()


if __name__ == "__main__":
    run = Run()
    main(it_is_ready_at_the_end, all_seven_phases_are_shown_in_order, steps_sub_phases_and_gpus_are_shown,
         the_whole_s_percentage_only_grows_and_its_end_is_foreseen, what_comes_out_says_that_it_is_simulated,
         the_output_stays)
