#!/usr/bin/python3
"""The SLA profiler finds what each of many random models has as its own optimum, worked out here from the model's formulas."""

import json
import math
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import sla_runs
from sonde_test import SOAK, diag, main

SEED = int(os.environ.get("SONDE_SEED", "20261116"))
MODELS = 34
HALF_OF = 27  # of 30
TRIES = 10  # every other one meets such a moment where the machine is busy all the time


def folder():
    """A directory of a run: in memory where there is room for it, because a truth's run is all fsync."""
    return tempfile.TemporaryDirectory(prefix="sonde-sla-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def close(seen, true, share=1e-6):
    return abs(seen - true) <= share * abs(true)


# --- random models -----------------------------------------------------------------


def scaling(rng):
    return {"TP": {"prefill": rng.uniform(0.6, 0.98), "decode": rng.uniform(0.5, 0.95)},
            "TEP": {"prefill": rng.uniform(0.6, 0.95), "decode": rng.uniform(0.5, 0.95)},
            "DEP": {"prefill": rng.uniform(-0.3, 0.0), "decode": rng.uniform(-0.3, 0.0)}}


def random_model(rng, quick):
    kv = rng.randint(800, 1500) if quick else rng.randint(40000, 400000)
    slow = 5 if quick else 1  # so that a few milliseconds of a busy machine do not matter
    return {"prefill": {"baseMs": rng.uniform(1, 4 if quick else 10), "perTokenUs": slow * rng.uniform(10, 60),
                        "perToken2Ns": rng.choice([0, rng.uniform(0, 3)])},
            "decode": {"baseMs": rng.uniform(6, 10) if quick else rng.uniform(3, 12),
                       "perRequestUs": slow * rng.uniform(20, 150), "perKvTokenNs": slow * rng.uniform(1, 40)},
            "scaling": scaling(rng), "kvTokensPerGpu": kv,
            "weightsKvTokens": rng.choice([0, rng.randint(0, kv // 2)])}


def random_config(rng, quick):
    config = {"deployment": {"model": "sim/random", "namespace": "default"},
              "engine": {"backend": rng.choice(["vllm", "sglang", "trtllm"]),
                         "maxContextLength": 1000 if quick else rng.randint(3000, 12000)},
              "hardware": {"minNumGpusPerEngine": rng.choice([1, 1, 2]), "maxNumGpusPerEngine": 4 if quick else rng.choice([4, 8]),
                           "numGpusPerNode": 8},
              "sla": {"isl": rng.randint(100, 300) if quick else rng.randint(200, 2000),
                      "osl": rng.randint(6, 12) if quick else rng.randint(50, 400), "ttft": 1, "itl": 1},
              "planner": {"requestRate": 1, "maxGpuBudget": 64}}
    if quick:
        config["sweep"] = {"prefillInterpolationGranularity": 4, "decodeInterpolationGranularity": 3,
                           "decodeInterpolationOsl": 8}
    elif rng.random() < 0.35:
        config["modelShape"] = {"architecture": "Qwen3MoeForCausalLM"}
    return config


def between(rng, rows):
    """A target between the rows' latencies; now and then one that nothing meets."""
    latencies = sorted(r[1] for r in rows)
    if rng.random() < 0.1:
        return latencies[0] * rng.uniform(0.5, 0.9)
    return rng.uniform(latencies[0], latencies[-1] * 1.1)


def clear(rows, target, margin):
    """Nothing is so near to the target, and no second so near to the best, that what is measured could decide otherwise."""
    if any(abs(r[1] - target) < margin * target for r in rows):
        return False
    best, feasible = sla_runs.pick(rows, target)
    others = [r for r in rows if (r[0].label, r[3]) != (best[0].label, best[3])]
    if feasible:
        return all(r[1] > target or r[2] < best[2] * (1 - margin) for r in others)
    return all(r[1] > best[1] * (1 + margin) for r in others)


def far_from_whole(value):
    return 0.25 <= value - math.floor(value) <= 0.75 and value < 4


def draw(rng, quick):
    """A model, a configuration, and what must be found; those that are too close to call are drawn again."""
    margin = 0.12 if quick else 1e-4
    while True:
        model, config = random_model(rng, quick), random_config(rng, quick)
        optimum = sla_runs.Optimum(config, model)
        if not optimum.prefill_rows or not optimum.decode_rows:
            continue
        sla = config["sla"]
        sla["ttft"], sla["itl"] = between(rng, optimum.prefill_rows), between(rng, optimum.decode_rows)
        if not clear(optimum.prefill_rows, sla["ttft"], margin) or not clear(optimum.decode_rows, sla["itl"], margin):
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


def drawn(number, quick=False):
    return draw(random.Random(f"{SEED}-{number}-{quick}"), quick)


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


def every_model_s_optimum_is_found():
    """34 random models: rows, choice, curves and replica counts are the model's own"""
    for number in range(MODELS):
        model, config, optimum, replicas = drawn(number)
        with folder() as directory:
            _, result = sla_runs.run(directory, config, model, "--truth", "--log-level", "warn")
            try:
                check_rows(result, optimum, 1e-6)
                check_choice(result, optimum)
                check_curves(directory, optimum, 1e-6)
                check_replicas(result, replicas)
                assert result["points"]["measured"] == optimum.points
                assert result["deployments"]["made"] == 2 * len(sla_runs.candidates(config)) + 2 or any(
                    sla_runs.Engine(model, c).kv < 1 for c in sla_runs.candidates(config))
            except AssertionError:
                diag(f"model {number} of seed {SEED}: {json.dumps(model)} {json.dumps(config)}")
                raise


def adaptive_finds_the_same_with_half_the_points():
    """--search adaptive: the same choice with at most half the points in at least 27 of 30 models"""
    good, shares, deployments, wrong = 0, [], [], []
    for number in range(MODELS):
        model, config, optimum, replicas = drawn(number)
        with folder() as directory:
            _, result = sla_runs.run(directory, config, model, "--truth", "--search", "adaptive", "--log-level", "warn")
            share = result["points"]["measured"] / optimum.points
            same = same_choice(result, optimum)
            check_curves(directory, optimum, 0.03)
            same_replicas = [result["replicas"]["prefill"], result["replicas"]["decode"]] == replicas
        shares.append(share)
        deployments.append(result["deployments"]["made"] / (result["deployments"]["made"] + result["deployments"]["saved"]))
        if not same or not same_replicas:
            wrong.append(number)
        good += same and share <= 0.5
    diag(f"{good} of {MODELS}; points: {100 * sum(shares) / MODELS:.0f} % on average, {100 * max(shares):.0f} % at most; "
         f"deployments: {100 * sum(deployments) / MODELS:.0f} %; not the same: {wrong}")
    assert good * 30 >= HALF_OF * MODELS


def errors_of_curves(directory, optimum):
    """How far each point of the curves is from the model's own."""
    prefill, decode = raw(directory, "prefill"), raw(directory, "decode")
    pairs = list(zip(prefill["prefill_ttft"], (p[1] for p in optimum.curve))) + list(
        zip(decode["z_itl"], (p[2] for p in optimum.surface)))
    assert len(pairs) == len(optimum.curve) + len(optimum.surface)
    return sorted(abs(seen - true) / true for seen, true in pairs)


def measured_in_real_time(number):
    """Whether the choice was the model's own and the curves are near; a single request that meets a busy moment of the machine may decide otherwise."""
    model, config, optimum, replicas = drawn(number, quick=True)
    search = "adaptive" if number % 3 == 2 else "grid"
    with folder() as directory:
        done, result = sla_runs.run(directory, config, model, "--search", search)
        if not same_choice(result, optimum):
            diag(f"model {number} of seed {SEED}: {json.dumps(model)} {json.dumps(config)}\n{done.stderr[-3000:]}")
            return False
        errors = errors_of_curves(directory, optimum)
    diag(f"{search}: {result['points']['measured']} points, off by {100 * errors[len(errors) // 2]:.1f} % (median) and "
         f"{100 * errors[-1]:.1f} % at most; replicas {result['replicas']}, by the model {replicas}")
    return errors[len(errors) // 2] < 0.1


def real_engines_measure_the_same():
    """Simulated engines in real time: the choice is the model's own, the curves are near"""
    for number in range(30 if SOAK else 3):
        assert any(measured_in_real_time(number) for _ in range(TRIES)), f"model {number}: another choice or other curves, {TRIES} times"


if __name__ == "__main__":
    main(every_model_s_optimum_is_found, adaptive_finds_the_same_with_half_the_points, real_engines_measure_the_same)
