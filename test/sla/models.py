#!/usr/bin/python3
"""The SLA profiler finds what each of many random models has as its own optimum, worked out here from the model's formulas.

All of it is in virtual time: a seed has one outcome. How near measurements in real time come is bench/sla.py's matter.
"""

import json
import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import sla_runs
from sonde_test import diag, main

SEED = int(os.environ.get("SONDE_SEED", "20261116"))
MODELS = 30
MARGIN = 1e-4


def folder():
    """A directory of a run: in memory where there is room for it, because a run in virtual time is all fsync."""
    return tempfile.TemporaryDirectory(prefix="sonde-sla-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def close(seen, true, share=1e-6):
    return abs(seen - true) <= share * abs(true)


# --- random models -----------------------------------------------------------------


def scaling(rng):
    return {"TP": {"prefill": rng.uniform(0.6, 0.98), "decode": rng.uniform(0.5, 0.95)},
            "TEP": {"prefill": rng.uniform(0.6, 0.95), "decode": rng.uniform(0.5, 0.95)},
            "DEP": {"prefill": rng.uniform(-0.3, 0.0), "decode": rng.uniform(-0.3, 0.0)}}


def random_model(rng):
    kv = rng.randint(40000, 400000)
    return {"prefill": {"baseMs": rng.uniform(1, 10), "perTokenUs": rng.uniform(10, 60), "perToken2Ns": rng.choice([0, rng.uniform(0, 3)])},
            "decode": {"baseMs": rng.uniform(3, 12), "perRequestUs": rng.uniform(20, 150), "perKvTokenNs": rng.uniform(1, 40)},
            "scaling": scaling(rng), "kvTokensPerGpu": kv, "weightsKvTokens": rng.choice([0, rng.randint(0, kv // 2)])}


def random_config(rng):
    config = {"deployment": {"model": "sim/random", "namespace": "default"},
              "engine": {"backend": rng.choice(["vllm", "sglang", "trtllm"]), "maxContextLength": rng.randint(3000, 12000)},
              "hardware": {"minNumGpusPerEngine": rng.choice([1, 1, 2]), "maxNumGpusPerEngine": rng.choice([4, 8]), "numGpusPerNode": 8},
              "sla": {"isl": rng.randint(200, 2000), "osl": rng.randint(50, 400), "ttft": 1, "itl": 1},
              "planner": {"requestRate": 1, "maxGpuBudget": 64}}
    if rng.random() < 0.35:
        config["modelShape"] = {"architecture": "Qwen3MoeForCausalLM"}
    return config


def between(rng, rows):
    """A target between the rows' latencies; now and then one that nothing meets."""
    latencies = sorted(r[1] for r in rows)
    if rng.random() < 0.1:
        return latencies[0] * rng.uniform(0.5, 0.9)
    return rng.uniform(latencies[0], latencies[-1] * 1.1)


def clear(rows, target):
    """Nothing is so near to the target, and no second so near to the best, that rounding could decide otherwise."""
    if any(abs(r[1] - target) < MARGIN * target for r in rows):
        return False
    best, feasible = sla_runs.pick(rows, target)
    others = [r for r in rows if (r[0].label, r[3]) != (best[0].label, best[3])]
    if feasible:
        return all(r[1] > target or r[2] < best[2] * (1 - MARGIN) for r in others)
    return all(r[1] > best[1] * (1 + MARGIN) for r in others)


def far_from_whole(value):
    return 0.25 <= value - math.floor(value) <= 0.75 and value < 4


def draw(rng):
    """A model, a configuration, and what must be found; those that are too close to call are drawn again."""
    while True:
        model, config = random_model(rng), random_config(rng)
        optimum = sla_runs.Optimum(config, model)
        if not optimum.prefill_rows or not optimum.decode_rows:
            continue
        sla = config["sla"]
        sla["ttft"], sla["itl"] = between(rng, optimum.prefill_rows), between(rng, optimum.decode_rows)
        if not clear(optimum.prefill_rows, sla["ttft"]) or not clear(optimum.decode_rows, sla["itl"]):
            continue
        optimum = sla_runs.Optimum(config, model)
        if len(optimum.surface) < 6:
            continue
        for _ in range(200):
            rate = rng.uniform(0.1, 200)
            needed = optimum.engines_needed(rate, sla["isl"], sla["osl"], sla["itl"])
            if all(map(far_from_whole, needed)):
                config["planner"]["requestRate"] = rate
                return model, config, optimum, [math.ceil(n) for n in needed]


def drawn(number):
    return draw(random.Random(f"{SEED}-{number}"))


# --- what is checked -----------------------------------------------------------------


def raw(directory, role):
    with open(os.path.join(directory, "out", f"selected_{role}_interpolation", "raw_data.json"), encoding="utf-8") as f:
        return json.load(f)


def same_choice(result, optimum):
    prefill, decode = result["prefill"], result["decode"]
    return (prefill["label"], prefill["feasible"], decode["label"], decode["concurrency"], decode["feasible"]) == (
        optimum.prefill[0].label, optimum.prefill_feasible, optimum.decode[0].label, optimum.decode[3], optimum.decode_feasible)


def check_choice(result, optimum):
    assert same_choice(result, optimum), (result["prefill"], result["decode"], optimum.prefill[0].label, optimum.prefill[1:],
                                          optimum.decode[0].label, optimum.decode[1:])


def check_rows(result, optimum, share):
    for seen, true in ((result["sweep"]["prefill"], optimum.prefill_rows), (result["sweep"]["decode"], optimum.decode_rows)):
        assert [(r["label"], r.get("concurrency", 0) if true is optimum.decode_rows else 0) for r in seen] == [
            (r[0].label, r[3]) for r in true]
        for s, t in zip(seen, true):
            latency = s.get("ttft", s.get("itl"))
            assert close(latency, t[1], share) and close(s["throughputPerGpu"], t[2], share), (s, t[1:])


def check_curves(directory, optimum, share):
    prefill, decode = raw(directory, "prefill"), raw(directory, "decode")
    assert prefill["prefill_isl"] == [p[0] for p in optimum.curve]
    for i, (_, ttft, throughput) in enumerate(optimum.curve):
        assert close(prefill["prefill_ttft"][i], ttft, share), (i, prefill["prefill_ttft"][i], ttft)
        assert close(prefill["prefill_thpt_per_gpu"][i], throughput, share)
    assert len(decode["z_itl"]) == len(optimum.surface)
    for i, (usage, context, itl, throughput) in enumerate(optimum.surface):
        assert close(decode["x_kv_usage"][i], usage, share) and decode["y_context_length"][i] == context
        assert close(decode["z_itl"][i], itl, share), (i, decode["z_itl"][i], itl)
        assert close(decode["z_thpt_per_gpu"][i], throughput, share), (i, decode["z_thpt_per_gpu"][i], throughput)


def check_replicas(result, replicas):
    assert [result["replicas"]["prefill"], result["replicas"]["decode"]] == replicas, (result["replicas"], replicas)


# --- tests ---------------------------------------------------------------------------


def check_whole(directory, model, config, result, optimum, replicas):
    check_rows(result, optimum, 1e-6)
    check_choice(result, optimum)
    check_curves(directory, optimum, 1e-6)
    check_replicas(result, replicas)
    assert result["points"]["measured"] == optimum.points
    assert result["deployments"]["made"] == 2 * len(sla_runs.candidates(config)) + 2 or any(
        sla_runs.Engine(model, c).kv < 1 for c in sla_runs.candidates(config))


def check_adaptive(directory, result, optimum, replicas):
    """The same choice, curves that are near, and at most half of the points."""
    check_choice(result, optimum)
    check_curves(directory, optimum, 0.03)
    check_replicas(result, replicas)
    assert result["points"]["measured"] <= optimum.points / 2, result["points"]


def named(number, model, config, check, *arguments):
    """Runs CHECK, and says which model it was where it fails."""
    try:
        check(*arguments)
    except AssertionError:
        diag(f"model {number} of seed {SEED}: {json.dumps(model)} {json.dumps(config)}")
        raise


def every_model_s_optimum_is_found():
    """30 random models: rows, choice, curves and replica counts are the model's own"""
    for number in range(MODELS):
        model, config, optimum, replicas = drawn(number)
        with folder() as directory:
            _, result = sla_runs.run(directory, config, model, "--truth", "--log-level", "warn")
            named(number, model, config, check_whole, directory, model, config, result, optimum, replicas)


def adaptive_finds_the_same_with_half_the_points():
    """--search adaptive: the same choice with at most half the points"""
    points, deployments = [], []
    for number in range(MODELS):
        model, config, optimum, replicas = drawn(number)
        with folder() as directory:
            _, result = sla_runs.run(directory, config, model, "--truth", "--search", "adaptive", "--log-level", "warn")
            named(number, model, config, check_adaptive, directory, result, optimum, replicas)
        points.append(result["points"]["measured"] / optimum.points)
        deployments.append(result["deployments"]["made"] / (result["deployments"]["made"] + result["deployments"]["saved"]))
    diag(f"points: {sum(points) / MODELS:.0%} on average, {max(points):.0%} at most; deployments: {sum(deployments) / MODELS:.0%}")


if __name__ == "__main__":
    main(every_model_s_optimum_is_found, adaptive_finds_the_same_with_half_the_points)
