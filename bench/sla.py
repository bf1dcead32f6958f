#!/usr/bin/python3
"""How near the SLA profiler's measurements in real time come to the models of the simulated engines that it measures.

    bench/sla.py [N]    N random models (3), some 8 s each

Each model is profiled against real processes, and its choice and the points of its curves are compared with the model's own, by the
formulas of test/lib/sla_runs.py. Bars: the choice is the model's own, and the median of measured / expected over the points of the
curves is within 10 % of 1. Models are drawn so that an error below 12 % cannot change the choice.
"""

import os
import random
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
import sla_runs

SEED = 20261116
MARGIN, BAR = 0.12, 0.1


def random_model(rng):
    kv = rng.randint(800, 1500)
    return {"prefill": {"baseMs": rng.uniform(1, 4), "perTokenUs": rng.uniform(50, 300), "perToken2Ns": 0},
            "decode": {"baseMs": rng.uniform(6, 10), "perRequestUs": rng.uniform(100, 750), "perKvTokenNs": rng.uniform(5, 200)},
            "scaling": {"TP": {"prefill": rng.uniform(0.6, 0.98), "decode": rng.uniform(0.5, 0.95)}}, "kvTokensPerGpu": kv,
            "weightsKvTokens": rng.choice([0, rng.randint(0, kv // 2)])}


def random_config(rng):
    return {"deployment": {"model": "sim/random", "namespace": "default"}, "engine": {"backend": "vllm", "maxContextLength": 1000},
            "hardware": {"minNumGpusPerEngine": rng.choice([1, 1, 2]), "maxNumGpusPerEngine": 4, "numGpusPerNode": 8},
            "sla": {"isl": rng.randint(100, 300), "osl": rng.randint(6, 12), "ttft": 1, "itl": 1},
            "sweep": {"prefillInterpolationGranularity": 4, "decodeInterpolationGranularity": 3, "decodeInterpolationOsl": 8},
            "planner": {"requestRate": 1, "maxGpuBudget": 64}}


def clear(rows, target):
    """Whether an error of MARGIN cannot change which row is picked."""
    if any(abs(r[1] - target) < MARGIN * target for r in rows):
        return False
    best, feasible = sla_runs.pick(rows, target)
    others = [r for r in rows if r is not best]
    return all((r[1] > target or r[2] < best[2] * (1 - MARGIN)) if feasible else r[1] > best[1] * (1 + MARGIN) for r in others)


def draw(rng):
    while True:
        model, config = random_model(rng), random_config(rng)
        optimum, sla = sla_runs.Optimum(config, model), config["sla"]
        if not optimum.prefill_rows or not optimum.decode_rows:
            continue
        for name, rows in ("ttft", optimum.prefill_rows), ("itl", optimum.decode_rows):
            latencies = sorted(r[1] for r in rows)
            sla[name] = rng.uniform(latencies[0], latencies[-1] * 1.1)
        if clear(optimum.prefill_rows, sla["ttft"]) and clear(optimum.decode_rows, sla["itl"]):
            optimum = sla_runs.Optimum(config, model)
            if len(optimum.surface) >= 6:
                return model, config, optimum


def measure(number):
    """Prints a line; whether both bars were met."""
    model, config, optimum = draw(random.Random(f"{SEED}-{number}"))
    search = "adaptive" if number % 3 == 2 else "grid"
    with tempfile.TemporaryDirectory(prefix="sonde-bench-sla-") as directory:
        _, result = sla_runs.run(directory, config, model, "--search", search)
    same = (result["prefill"]["label"], result["decode"]["label"], result["decode"]["concurrency"]) == (
        optimum.prefill[0].label, optimum.decode[0].label, optimum.decode[3])
    ratios = []
    if same:  # else the curves are another engine's
        ratios = [seen / expected[1] for seen, expected in zip(result["prefillCurve"]["prefill_ttft"], optimum.curve)]
        ratios += [seen / expected[2] for seen, expected in zip(result["decodeCurve"]["z_itl"], optimum.surface)]
    median = statistics.median(ratios) if ratios else float("nan")
    met = same and abs(median - 1) <= BAR
    spread = f", {min(ratios):.3f} to {max(ratios):.3f} over {len(ratios)} points" if ratios else ""
    print(f"{'PASS' if met else 'FAIL'}  model {number} ({search}): {'the same' if same else 'another'} choice; measured / expected "
          f"{median:.3f} (bar {1 - BAR:.1f} to {1 + BAR:.1f}){spread}", flush=True)
    return met


missed = [n for n in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3) if not measure(n)]
sys.exit(f"missed: {missed}" if missed else 0)
