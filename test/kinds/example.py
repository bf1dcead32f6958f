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
from sonde_test import ROOT, IdleShare, Process, diag, engine_client, main, program, wait

DGDRS = "/apis/nvidia.com/v1alpha1/namespaces/default/dynamographdeploymentrequests"
NAME = "simulated-qwen3"
PHASES = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation", "DecodeInterpolation",
          "PlannerGeneration", "Complete"]


SHORT = {"Initializing", "ConfigSelection", "PlannerGeneration"}  # may be over before the next state leaves the pod


def slower(text, times):
    """The example with engines that are slower, and are allowed to be."""
    text = re.sub(r"\b(ttft|itl|baseMs|perTokenUs|perRequestUs|perKvTokenNs): (\d+)", lambda m: f"{m[1]}: {int(m[2]) * times}", text)
    return re.sub(r"requestRate: (\d+)", lambda m: f"requestRate: {int(m[1]) / times}", text)


class Run:
    """`sonde up -f examples/dgdr.yaml`, every state of the request on the way, and what is there at the end. TIMES: slower than it is."""

    def __init__(self, times=1):
        self.states = []
        path = os.path.join(ROOT, "examples", "dgdr.yaml")
        with tempfile.TemporaryDirectory(prefix="sonde-example-") as folder:
            home = os.path.join(folder, "home")
            if times > 1:
                with open(path, encoding="utf-8") as f, open(os.path.join(folder, "slower.yaml"), "w", encoding="utf-8") as g:
                    g.write(slower(f.read(), times))
                path = g.name
            began, idle = time.monotonic(), IdleShare()
            with Process(program("sonde"), "up", "--dir", home, "-f", path) as up:
                up.expect("engine ready in", 120)
                api = engine_client(os.path.join(home, "kubeconfig"))
                wait(lambda: api().get(f"{DGDRS}/{NAME}")[0] == 200, 120, "the request to be there")
                threading.Thread(target=self._follow, args=(api(),), daemon=True).start()
                wait(lambda: self.states and self.states[-1].get("state") in ("Ready", "Failed"), 500, "the end")
                self.seconds, self.idle = time.monotonic() - began, idle.seen()
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

    def shows_all(self):
        """Whether none of what takes a moment alone was over before it could be seen, because somebody was held up for longer."""
        phases = {p["phase"] for p in self.progress()}
        return set(PHASES) - phases <= SHORT and {step[0] for step in self.prefill_steps()} == {1, 2}


def it_is_ready_within_a_minute():
    diag(f"{run.seconds:.1f} s, {len(run.states)} states, the machine was {run.idle:.0%} idle")
    assert run.status["state"] == "Ready", run.status
    assert run.seconds < 60 or run.idle < 0.2  # others had the processors


def all_seven_phases_are_shown_in_order():
    seen = [p["phase"] for p in shown.progress()]
    order = [phase for i, phase in enumerate(seen) if i == 0 or seen[i - 1] != phase]
    assert order == [phase for phase in PHASES if phase in order], order
    assert set(PHASES) - set(order) <= SHORT, order


def steps_sub_phases_and_gpus_are_shown():
    steps = shown.prefill_steps()
    for gpus in 1, 2:
        assert (gpus, 2, gpus, f"TP={gpus}") in steps, steps
    parts = {p["subPhase"].split()[0] for p in shown.progress() if "subPhase" in p}  # "Benchmarking batch size 36"
    assert {"Deploying", "Benchmarking"} <= parts <= {"Deploying", "Benchmarking", "Cleanup"}, parts
    message = next(c["message"] for s in shown.states for c in s.get("conditions", [])
                   if c["type"] == "Profiling" and "PrefillSweep" in c["message"] and "(1/2" in c["message"])
    assert message == "[Phase 2/7: PrefillSweep] Profiling prefill with 1 GPUs (TP=1) (1/2, 50.0%)", message


def the_whole_s_percentage_only_grows_and_its_end_is_foreseen():
    percents = [p["overallPercentage"] for p in shown.progress() if "overallPercentage" in p]
    assert percents == sorted(percents) and percents[-1] == 100 and len(set(percents)) > 10, percents
    assert any("eta" in s.get("progress", {}) for s in shown.states)


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
    run = shown = Run()
    for times_slower in 3, 9:
        if not shown.shows_all():
            shown = Run(times_slower)
    main(it_is_ready_within_a_minute, all_seven_phases_are_shown_in_order, steps_sub_phases_and_gpus_are_shown,
         the_whole_s_percentage_only_grows_and_its_end_is_foreseen, what_comes_out_says_that_it_is_simulated,
         the_output_stays)
