"""A profiler that is started as upstream's is and takes no time. What it does is told by its configuration:

    sweep.steps     steps of each phase that has any
    sweep.pause     seconds between two of them
    sweep.silent    write no status file at all, as upstream's does
    sweep.dieAt     exit with status 3 in this phase, the first time
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "utils"))
from status_reporter import GpuConfig, ProfilingPhase, ProfilingProgress, ProfilingStatusReporter

OUTPUT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}-planner-data
data:
  prefill_raw_data.json: '{{"prefill_isl": [100]}}'
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: {backend}-disagg
spec:
  services:
    Frontend: {{replicas: 1}}
    Planner: {{replicas: 1}}
    VllmDecodeWorker: {{replicas: 2, resources: {{limits: {{gpu: "1"}}}}}}
"""


class Checkpoint:
    """What need not be measured again."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "checkpoint.json")
        self.done = []
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as f:
                self.done = json.load(f)["done"]
            print("goes on after", ", ".join(self.done), flush=True)

    def add(self, phase):
        self.done.append(phase)
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump({"done": self.done}, f)
        os.rename(self.path + ".new", self.path)


def sweep(status, phase, steps, pause):
    for i in range(1, steps + 1):
        for part in "Deploying", "Benchmarking", "Cleanup":
            status.update(phase, f"Profiling with {i} GPUs (TP={i})", ProfilingProgress(i, steps, part), GpuConfig(i, f"TP={i}"))
            time.sleep(pause)


def wait_for_relay():
    """What is told before the relay listens is overtaken, and this profiler takes no time."""
    for _ in range(1200):
        if not os.path.isdir("/sonde/ctl") or os.path.exists("/sonde/ctl/claim"):
            return
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--profile-config", type=json.loads, required=True)
    parser.add_argument("--enable-gpu-discovery", action="store_true")
    args = parser.parse_args()
    config = args.profile_config
    options, folder = config.get("sweep", {}), config["output_dir"]
    pause = options.get("pause", 0.1)
    assert config["deployment"]["model"] and config["deployment"]["namespace"] == os.environ["DGDR_NAMESPACE"], config
    wait_for_relay()
    status = ProfilingStatusReporter(folder, enabled=not options.get("silent"))
    checkpoint = Checkpoint(folder)
    P = ProfilingPhase
    for phase in P.INITIALIZING, P.PREFILL_SWEEP, P.DECODE_SWEEP, P.CONFIG_SELECTION, P.PREFILL_INTERPOLATION, \
            P.DECODE_INTERPOLATION, P.PLANNER_GENERATION:
        if phase.phase_id in checkpoint.done:
            continue
        if phase.phase_id == options.get("dieAt"):
            print("no GPU answers", flush=True)
            sys.exit(3)
        if phase.phase_number in (2, 3, 5, 6):
            sweep(status, phase, options.get("steps", 2), pause)
        else:
            status.update(phase, f"{phase.phase_id} takes no time")
            time.sleep(pause)
        checkpoint.add(phase.phase_id)
    with open(os.path.join(folder, "config_with_planner.yaml"), "w", encoding="utf-8") as f:
        f.write(OUTPUT.format(name=os.environ["DGDR_NAME"], backend=config["engine"]["backend"]))
    status.complete()


main()
