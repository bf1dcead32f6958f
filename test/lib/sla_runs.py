"""Runs of `sonde-pod sla` for tests, and an independent reading of the simulated engine's formulas (src/probe/sim/sim.h)."""

import json
import os
import subprocess

from sonde_test import program

GRANULARITY_PREFILL = 16
GRANULARITY_DECODE = 6
DECODE_OSL = 500

# --- runs ----------------------------------------------------------------------


def write(directory, config, model):
    """Both files of a run in DIRECTORY (made); returns their paths."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for name, content in (("config.json", config), ("model.json", model)):
        paths.append(os.path.join(directory, name))
        with open(paths[-1], "w", encoding="utf-8") as f:
            json.dump(content, f)
    return paths


def command(directory, config, model, *options):
    """The words of a run on the target sim whose output is DIRECTORY/out."""
    config_file, model_file = write(directory, config, model)
    return [program("sonde-pod"), "sla", "--profile-config", config_file, "--sim-model", model_file, "--output-dir",
            os.path.join(directory, "out"), *options]


def run(directory, config, model, *options, check=True, seconds=120):
    """Runs to the end; returns (CompletedProcess, result.json or None)."""
    done = subprocess.run(command(directory, config, model, *options), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=seconds, check=False)
    if check:
        assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done, result_of(directory)


def result_of(directory):
    try:
        with open(os.path.join(directory, "out", "result.json"), encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


# --- the model's own numbers -----------------------------------------------------


class Candidate:
    def __init__(self, mapping, gpus):
        self.mapping, self.gpus = mapping, gpus
        self.label = f"{mapping}={gpus}"
        self.dp = gpus if mapping == "DEP" else 1


def candidates(config):
    """Powers of two and their mappings, in upstream's order."""
    hardware = config["hardware"]
    moe = config.get("modelShape", {}).get("architecture") == "Qwen3MoeForCausalLM"
    found, n = [], 1
    while n <= hardware["maxNumGpusPerEngine"]:
        if n >= hardware["minNumGpusPerEngine"]:
            found += [Candidate(mapping, n) for mapping in (("TEP", "DEP", "TP") if moe else ("TP",))]
        n *= 2
    return found


def request_grid(dp, most, granularity):
    c = min(most, 2000) // dp
    if c < granularity:
        return [dp * (i + 1) for i in range(c)]
    if granularity == 1:
        return [dp]
    return [dp + i * (c - 1) // (granularity - 1) * dp for i in range(granularity)]


class Engine:
    """What a perfect client measures of one candidate."""

    def __init__(self, model, candidate):
        self.m, self.c = model, candidate
        prefill, decode = (model["scaling"][candidate.mapping][role] for role in ("prefill", "decode"))
        self.prefill_speedup, self.decode_speedup = candidate.gpus ** prefill, candidate.gpus ** decode
        rank = model["kvTokensPerGpu"] * (1 if candidate.dp > 1 else candidate.gpus) - model["weightsKvTokens"]
        self.kv = max(rank, 0) * candidate.dp

    def ttft(self, isl):
        p = self.m["prefill"]
        return p["baseMs"] + (isl * p["perTokenUs"] / 1e3 + isl * isl * p["perToken2Ns"] / 1e6) / self.prefill_speedup

    def prefill_throughput(self, isl):
        return isl / self.ttft(isl) / self.c.gpus * 1000 * self.c.dp

    def decode(self, isl, osl, concurrency):
        """(ITL in ms, tokens/s/GPU) of one burst with all prompts in the prefix cache: first all prefills of a rank, one after
        the other, then steps of all of its requests."""
        d, base = self.m["decode"], self.m["prefill"]["baseMs"]
        n = concurrency / self.c.dp
        steps, kv = osl - 1, 0
        kv = n * (isl * steps + steps * (steps + 1) / 2)
        time = steps * d["baseMs"] + (steps * n * d["perRequestUs"] / 1e3 + kv * d["perKvTokenNs"] / 1e6) / self.decode_speedup
        itl = (base * (n - 1) / 2 + time) / steps
        return itl, concurrency * osl / (n * base + time) * 1000 / self.c.gpus

    def grid(self, isl, osl, granularity):
        return request_grid(self.c.dp, self.kv // (isl + osl), granularity)


def prefill_isls(context, granularity):
    most = context - 512
    return list(range(100, most, max((most - 100) // granularity, 1)))


def decode_isls(context, granularity):
    return list(range(100, context - 500, max((context - 500) // granularity, 1)))


def pick(rows, target):
    """rows: (candidate, latency, throughput, concurrency). The first maximum within the target, else the least latency."""
    within = [r for r in rows if r[1] <= target]
    return (max(within, key=lambda r: r[2]), True) if within else (min(rows, key=lambda r: r[1]), False)


class Optimum:
    """All that a profiler must find of MODEL under CONFIG."""

    def __init__(self, config, model):
        sla, sweep = config["sla"], config.get("sweep", {})
        isl, osl = sla["isl"], sla["osl"]
        granularity = sweep.get("decodeInterpolationGranularity", GRANULARITY_DECODE)
        all_candidates = candidates(config)
        engines = {c.label: Engine(model, c) for c in all_candidates}
        usable = [c for c in all_candidates if engines[c.label].kv >= 1]
        self.prefill_rows = [(c, engines[c.label].ttft(isl), engines[c.label].prefill_throughput(isl), 0) for c in usable]
        self.decode_rows = [(c, *engines[c.label].decode(isl, osl, n), n)
                            for c in usable for n in engines[c.label].grid(isl, osl, granularity)]
        if not self.prefill_rows or not self.decode_rows:
            return
        self.prefill, self.prefill_feasible = pick(self.prefill_rows, sla["ttft"])
        self.decode, self.decode_feasible = pick(self.decode_rows, sla["itl"])
        self.prefill_engine, self.decode_engine = engines[self.prefill[0].label], engines[self.decode[0].label]
        context = config["engine"]["maxContextLength"]
        self.curve = [(x, self.prefill_engine.ttft(x), self.prefill_engine.prefill_throughput(x))
                      for x in prefill_isls(context, sweep.get("prefillInterpolationGranularity", GRANULARITY_PREFILL))]
        out = sweep.get("decodeInterpolationOsl", DECODE_OSL)
        self.surface = []
        for x in decode_isls(context, granularity):
            grid = self.decode_engine.grid(x, out, granularity)
            if not grid:
                break
            self.surface += [((x + out / 2) * n / self.decode_engine.kv, x + out / 2, *self.decode_engine.decode(x, out, n))
                             for n in grid]
        self.points = len(self.prefill_rows) + len(self.decode_rows) + len(self.curve) + len(self.surface)
        self._out = out

    def engines_needed(self, rate, isl, osl, itl):
        """How many engines of each carry RATE requests a second, as real numbers, by the model's formulas alone."""
        prefill = rate * isl / self.prefill_engine.prefill_throughput(isl) / self.prefill[0].gpus
        at = isl + osl / 2 - self._out / 2  # the length whose mean context is that of the request
        best = self.decode_engine.decode(at, self._out, self.decode_engine.c.dp)[1]
        low, high = self.decode_engine.c.dp, min(self.decode_engine.kv / (at + self._out), 2000)
        for _ in range(60):
            middle = (low + high) / 2
            latency, throughput = self.decode_engine.decode(at, self._out, middle)
            if latency <= itl:
                low, best = middle, max(best, throughput)
            else:
                high = middle
        return prefill, rate * osl / best / self.decode[0].gpus
