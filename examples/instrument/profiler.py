#!/usr/bin/python3
"""A profiler in Python that says where it is. Yours has its own measure(); sonde_status.py is copied beside it."""

import os
import time

from sonde_status import GpuConfig, ProfilingPhase, ProfilingProgress, ProfilingStatusReporter

RUN = os.environ["SONDE_RUN_DIR"]
DEPLOYMENT = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: from-python}
spec: {services: {Frontend: {replicas: 1}, Worker: {replicas: 1, resources: {limits: {gpu: "%d"}}}}}
"""


def measure(gpus):
    time.sleep(0.5)
    return 100 / gpus  # milliseconds


def profile(status):
    status.update(ProfilingPhase.INITIALIZING, "Reading the configuration")
    sizes, found = [1, 2, 4], {}
    for step, gpus in enumerate(sizes, 1):
        status.update(ProfilingPhase.PREFILL_SWEEP, f"Measuring with {gpus} GPUs",
                      progress=ProfilingProgress(step, len(sizes), sub_phase="Benchmarking"), gpu_config=GpuConfig(gpus, f"TP={gpus}"))
        found[gpus] = measure(gpus)
    status.update(ProfilingPhase.PLANNER_GENERATION, "Writing the deployment")
    with open(os.path.join(RUN, "config_with_planner.yaml"), "w", encoding="utf-8") as f:
        f.write(DEPLOYMENT % min(found, key=found.get))


reporter = ProfilingStatusReporter(RUN)
try:
    profile(reporter)
    reporter.complete()
except Exception as e:
    reporter.fail(str(e))
    raise
