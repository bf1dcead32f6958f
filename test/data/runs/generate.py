#!/usr/bin/python3
"""Writes the simulated runs that the ETA is replayed over: test/data/runs/generate.py

Every file is one run as JSON lines: first {"run", "set", "origin", "shape", "plan"}, then {"t", "status"}, T in seconds
after the run began. The costs come from here and from nowhere else: no real profiler was recorded, and every file says
"simulated". Seeded, so that writing them again changes nothing.

The sets: `tuning` is what the ETA's few constants were chosen with. `held-out` has other seeds and other laws of cost; it
was written before the constants were chosen and was not looked at while they were. What it then showed (81.9 % held) led to
three changes: steps that a checkpoint has do not count, a trend is doubted by half, a history of one run is doubted more. So
it is no longer unseen, and `fresh` was written, with other laws again, and measured once after the last change. `second` are
runs of a shape that was seen before (a first run and a second): the second has the first as its history.
"""

import json
import math
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

DGDR = ["Initializing", "PrefillSweep", "DecodeSweep", "ConfigSelection", "PrefillInterpolation",
        "DecodeInterpolation", "PlannerGeneration"]


class Run:
    """A run while it is written."""

    def __init__(self, group, name, plan=None, shape=None):
        self.name, self.group, self.plan, self.shape = name, group, plan, shape
        self.rng = random.Random(f"{group}/{name}")
        self.t = 0.0
        self.lines = []

    def say(self, phase, message, step=None, total=None, sub=None):
        status = {"phase": phase, "message": message}
        if step is not None:
            status["progress"] = {"currentStep": step, "totalSteps": total}
            if sub:
                status["progress"]["subPhase"] = sub
        self.lines.append({"t": round(self.t, 3), "status": status})

    def pass_(self, seconds):
        self.t += max(seconds, 0.0)

    def stepless(self, phase, seconds, messages=0):
        """A phase without steps; MESSAGES: how often it says something meanwhile."""
        for i in range(messages + 1):
            self.say(phase, f"{phase} {i}" if i else phase)
            self.pass_(seconds / (messages + 1))

    def steps(self, phase, costs, total=None, announce=False):
        """Costs one by one, each step said when it begins. ANNOUNCE: the phase is said without a step before."""
        if announce:
            self.say(phase, f"begin {phase}")
            self.pass_(0.2)
        for i, cost in enumerate(costs, 1):
            self.say(phase, f"step {i}", i, total or len(costs))
            self.pass_(cost)

    def steps_at_end(self, phase, costs, zero):
        """The same, each step said when it has ended. ZERO: step 0 is said first."""
        if zero:
            self.say(phase, "nothing yet", 0, len(costs))
        else:
            self.say(phase, f"begin {phase}")
        for i, cost in enumerate(costs, 1):
            self.pass_(cost)
            self.say(phase, f"step {i} is done", i, len(costs))
        self.pass_(0.05)

    def write(self):
        self.say("Complete", "Profiling completed successfully")
        head = {"run": f"{self.group}/{self.name}", "set": self.group, "origin": "simulated", "shape": self.shape or "",
                "plan": self.plan}
        with open(os.path.join(HERE, f"{self.group}-{self.name}.jsonl"), "w", encoding="utf-8") as f:
            for line in [head] + self.lines:
                f.write(json.dumps(line, separators=(",", ":")) + "\n")


def lognormal(rng, mean, cv):
    sigma2 = math.log(1 + cv * cv)
    return mean * math.exp(rng.gauss(0, 1) * math.sqrt(sigma2) - sigma2 / 2)


def noisy(rng, n, mean, cv):
    return [lognormal(rng, mean, cv) for _ in range(n)]


def dgdr(run, law, steps=(10, 18, 8, 14), scale=(1, 1, 1, 1), small=1.0, announce=True):
    """The full design's phases; LAW(rng, n, mean) gives the costs of the steps, SCALE times the typical durations."""
    seconds = [600, 1300, 450, 1300]
    costs = [law(run.rng, n, seconds[i] * scale[i] / n) for i, n in enumerate(steps)]
    run.stepless("Initializing", 20 * small * run.rng.uniform(0.5, 2))
    run.steps("PrefillSweep", costs[0], announce=announce)
    run.steps("DecodeSweep", costs[1], announce=announce)
    run.stepless("ConfigSelection", 8 * small * run.rng.uniform(0.3, 3))
    run.steps("PrefillInterpolation", costs[2], announce=announce)
    run.steps("DecodeInterpolation", costs[3], announce=announce)
    run.stepless("PlannerGeneration", 10 * small * run.rng.uniform(0.5, 3))


def constant(rng, n, mean):
    return [mean * rng.uniform(0.98, 1.02) for _ in range(n)]


def growing(rng, n, mean):
    return [2 * mean * (i + 1) / (n + 1) * rng.uniform(0.95, 1.05) for i in range(n)]


def slow_first(rng, n, mean):
    return [mean * 6 * n / (n + 5) * rng.uniform(0.9, 1.1)] + [mean * n / (n + 5) * rng.uniform(0.9, 1.1) for _ in range(n - 1)]


# ---- the tuning set


def tuning():
    group = "tuning"

    run = Run(group, "01-constant")
    dgdr(run, constant)
    yield run

    run = Run(group, "02-growing")
    dgdr(run, growing)
    yield run

    run = Run(group, "03-noise")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.35))
    yield run

    run = Run(group, "04-much-noise")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 1.0), steps=(12, 24, 12, 20))
    yield run

    run = Run(group, "05-deploy-and-bench")  # every GPU configuration is deployed once and then measured
    for phase, configs, points in (("PrefillSweep", 5, 1), ("DecodeSweep", 5, 5), ("PrefillInterpolation", 1, 10),
                                   ("DecodeInterpolation", 1, 14)):
        costs = []
        for _ in range(configs):
            deploy = run.rng.uniform(120, 240)
            costs += [deploy * (i == 0) + run.rng.uniform(15, 30) for i in range(points)]
        run.steps(phase, costs)
    run.stepless("PlannerGeneration", 12)
    yield run

    run = Run(group, "06-skipped-steps")  # a configuration that fails its target skips its larger batch sizes
    run.stepless("Initializing", 15)
    run.steps("PrefillSweep", constant(run.rng, 8, 70))
    number, total = 0, 48
    while number < total:
        first, stop = number, run.rng.randint(2, 8)
        for i in range(8):
            number = first + i + 1
            if i < stop:
                run.say("DecodeSweep", f"step {number}", number, total)
                run.pass_(60 * run.rng.uniform(0.8, 1.2))
    run.steps("DecodeInterpolation", noisy(run.rng, 12, 80, 0.2))
    yield run

    run = Run(group, "07-early-end")  # the sweeps stop before all that they announced
    run.stepless("Initializing", 15)
    for phase, n, cost in (("PrefillSweep", 12, 60), ("DecodeSweep", 30, 60), ("PrefillInterpolation", 10, 45),
                           ("DecodeInterpolation", 20, 70)):
        run.steps(phase, noisy(run.rng, int(n * run.rng.uniform(0.5, 0.9)), cost, 0.2), total=n)
    yield run

    run = Run(group, "08-slow-first-step")
    dgdr(run, slow_first)
    yield run

    run = Run(group, "09-drift")
    run.steps("Measure", [20 * 1.02 ** i * run.rng.uniform(0.95, 1.05) for i in range(60)])
    yield run

    run = Run(group, "10-three-times-slower")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.25), scale=(3, 3, 3, 3))
    yield run

    run = Run(group, "11-ten-times-faster")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.25), scale=(0.1,) * 4, small=0.3)
    yield run

    run = Run(group, "12-one-phase-dominates")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.25), scale=(0.7, 8, 0.7, 0.7), steps=(10, 40, 8, 14))
    yield run

    run = Run(group, "13-no-steps")
    for phase, low, high in zip(DGDR, (5, 300, 900, 5, 300, 900, 5), (60, 900, 1800, 60, 600, 1800, 60)):
        run.stepless(phase, run.rng.uniform(low, high))
    yield run

    run = Run(group, "14-total-grows")
    run.stepless("Initializing", 10)
    run.steps("PrefillSweep", constant(run.rng, 10, 60))
    total = 10
    for i in range(1, 25):
        if i % 4 == 0:
            total = min(24, total + 3)
        run.say("DecodeSweep", f"step {i}", i, max(total, i))
        run.pass_(run.rng.uniform(50, 60))
    run.steps("DecodeInterpolation", constant(run.rng, 12, 75))
    yield run

    plan = [{"phase": "Warmup", "steps": 3, "weight": 60}, {"phase": "Measure", "steps": 30, "weight": 900},
            {"phase": "Verify", "steps": 10, "weight": 300}, {"phase": "Report", "weight": 20}]
    run = Run(group, "15-weighted-plan", plan)
    run.steps("Warmup", noisy(run.rng, 3, 25, 0.3))
    run.steps("Measure", noisy(run.rng, 30, 33, 0.3))
    run.steps("Verify", noisy(run.rng, 10, 24, 0.3))
    run.stepless("Report", 25)
    yield run

    plan = [{"phase": "Load", "steps": 2}, {"phase": "Sweep", "steps": 24}, {"phase": "Refine", "steps": 12}]
    run = Run(group, "16-plan-without-weights", plan)
    run.steps("Load", noisy(run.rng, 2, 60, 0.2))
    run.steps("Sweep", noisy(run.rng, 24, 40, 0.3))
    run.steps("Refine", noisy(run.rng, 12, 55, 0.3))
    yield run

    run = Run(group, "17-checkpoint-replayed")  # what the checkpoint has is said step by step, at once
    run.stepless("Initializing", 20)
    run.steps("PrefillSweep", [0.01] * 10)
    run.steps("DecodeSweep", [0.01] * 7 + noisy(run.rng, 11, 72, 0.25))
    run.stepless("ConfigSelection", 7)
    run.steps("PrefillInterpolation", noisy(run.rng, 8, 55, 0.25))
    run.steps("DecodeInterpolation", noisy(run.rng, 14, 90, 0.25))
    run.stepless("PlannerGeneration", 10)
    yield run

    run = Run(group, "18-checkpoint-leapt")  # the run begins where the checkpoint ends
    run.stepless("Initializing", 25)
    for i, cost in enumerate(noisy(run.rng, 12, 70, 0.25), 7):
        run.say("DecodeSweep", f"step {i}", i, 18)
        run.pass_(cost)
    run.stepless("ConfigSelection", 7)
    run.steps("PrefillInterpolation", noisy(run.rng, 8, 55, 0.25))
    run.steps("DecodeInterpolation", noisy(run.rng, 14, 90, 0.25))
    run.stepless("PlannerGeneration", 10)
    yield run

    run = Run(group, "19-stall")  # ten minutes in the middle
    run.stepless("Initializing", 12)
    run.steps("PrefillSweep", noisy(run.rng, 10, 60, 0.2))
    costs = noisy(run.rng, 18, 70, 0.2)
    costs[7] += 600
    run.steps("DecodeSweep", costs)
    run.steps("PrefillInterpolation", noisy(run.rng, 8, 55, 0.2))
    run.steps("DecodeInterpolation", noisy(run.rng, 14, 90, 0.2))
    yield run

    plan = [{"phase": "Warmup", "steps": 2, "weight": 2}, {"phase": "Measure", "steps": 10, "weight": 10}]
    run = Run(group, "20-thirty-seconds", plan)
    run.steps("Warmup", noisy(run.rng, 2, 2, 0.2))
    run.steps("Measure", noisy(run.rng, 10, 2.6, 0.2))
    yield run

    run = Run(group, "21-says-ends")
    run.stepless("Initializing", 10)
    run.steps_at_end("PrefillSweep", noisy(run.rng, 8, 70, 0.25), zero=True)
    run.steps_at_end("DecodeSweep", noisy(run.rng, 20, 65, 0.25), zero=True)
    run.steps_at_end("DecodeInterpolation", noisy(run.rng, 12, 80, 0.25), zero=True)
    yield run

    run = Run(group, "22-one-phase-with-messages")  # deploying, warming up, measuring are said in every step
    for i in range(1, 31):
        for word, cost in (("deploying", 25), ("warming up", 5), ("measuring", 20)):
            run.say("Benchmark", f"{word} {i}", i, 30, word)
            run.pass_(lognormal(run.rng, cost, 0.3))
    yield run

    plan = [{"phase": "A", "weight": 10}, {"phase": "B", "weight": 10}, {"phase": "C", "weight": 40},
            {"phase": "D", "weight": 20}, {"phase": "E", "weight": 20}]
    run = Run(group, "23-stepless-plan", plan)
    for phase, seconds in (("A", 100), ("B", 170), ("C", 350), ("D", 260), ("E", 160)):
        run.stepless(phase, seconds)
    yield run

    run = Run(group, "24-dgdr-in-thirty-seconds")  # a simulated profiler
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.1), scale=(0.008,) * 4, small=0.02)
    yield run


# ---- the held-out set: other laws


def autocorrelated(rng, n, mean):
    costs, x = [], rng.gauss(0, 0.5)
    for _ in range(n):
        x = 0.85 * x + rng.gauss(0, 0.25)
        costs.append(mean * math.exp(x))
    return costs


def pareto(rng, n, mean):
    return [mean * 0.6 * rng.paretovariate(2.5) for _ in range(n)]


def held_out():
    group = "held-out"

    run = Run(group, "01-power-law")
    dgdr(run, lambda rng, n, mean: [2.7 * mean * ((i + 1) / n) ** 1.7 * rng.uniform(0.9, 1.1) for i in range(n)],
         steps=(12, 20, 10, 16))
    yield run

    run = Run(group, "02-doubling-batches")  # a fixed part and one that doubles
    run.stepless("Initializing", 30)
    for phase, n in (("PrefillSweep", 7), ("DecodeSweep", 9), ("PrefillInterpolation", 7), ("DecodeInterpolation", 9)):
        run.steps(phase, [(30 + 1.2 * 2 ** i) * run.rng.uniform(0.9, 1.1) for i in range(n)])
    run.stepless("PlannerGeneration", 9)
    yield run

    run = Run(group, "03-warming-caches")
    dgdr(run, lambda rng, n, mean: [mean * (0.7 + 1.5 * math.exp(-i / 3)) * rng.uniform(0.9, 1.1) for i in range(n)],
         steps=(9, 21, 7, 12), scale=(1.3, 0.8, 1.2, 0.9))
    yield run

    run = Run(group, "04-autocorrelated")
    dgdr(run, autocorrelated, steps=(15, 25, 10, 20))
    yield run

    run = Run(group, "05-heavy-tail")
    dgdr(run, pareto, steps=(14, 26, 11, 18))
    yield run

    run = Run(group, "06-throttled")  # from the middle on everything takes twice as long
    run.steps("Measure", [15 * (1 if i < 20 else 2) * run.rng.uniform(0.9, 1.1) for i in range(40)])
    yield run

    plan = [{"phase": "Deploy", "weight": 100}, {"phase": "Prefill", "steps": 16, "weight": 400},
            {"phase": "Decode", "steps": 24, "weight": 600}, {"phase": "Tidy", "weight": 50}]
    run = Run(group, "07-weights-off", plan)
    run.stepless("Deploy", 160, messages=3)
    run.steps("Prefill", [lognormal(run.rng, 20, 0.2) + (150 if i % 8 == 0 else 0) for i in range(16)])
    run.steps("Decode", [lognormal(run.rng, 26, 0.2) + (150 if i % 8 == 0 else 0) for i in range(24)])
    run.stepless("Tidy", 31)
    yield run

    run = Run(group, "08-nested-early-stops")
    run.stepless("Initializing", 22)
    run.steps("PrefillSweep", noisy(run.rng, 6, 110, 0.4))
    number, total = 0, 40
    while number < total:
        first, stop = number, run.rng.randint(4, 10)
        for i in range(10):
            number = first + i + 1
            if i < stop:
                run.say("DecodeSweep", f"step {number}", number, total)
                run.pass_(lognormal(run.rng, 35 + 4 * i + 100 * (i == 0), 0.2))
    run.steps("PrefillInterpolation", noisy(run.rng, 9, 40, 0.4))
    run.steps("DecodeInterpolation", noisy(run.rng, 11, 70, 0.4))
    run.stepless("PlannerGeneration", 15)
    yield run

    run = Run(group, "09-out-of-proportion")
    dgdr(run, lambda rng, n, mean: [rng.gammavariate(6, mean / 6) for _ in range(n)], scale=(2.2, 1.6, 0.4, 0.3))
    yield run

    run = Run(group, "10-early-stall")
    run.stepless("Initializing", 18)
    costs = noisy(run.rng, 12, 55, 0.3)
    costs[5] += 900
    run.steps("PrefillSweep", costs)
    run.steps("DecodeSweep", noisy(run.rng, 22, 60, 0.3))
    run.steps("PrefillInterpolation", noisy(run.rng, 8, 60, 0.3))
    run.steps("DecodeInterpolation", noisy(run.rng, 12, 95, 0.3))
    yield run

    run = Run(group, "11-checkpoint-in-the-last-phase")
    run.stepless("Initializing", 14)
    run.steps("PrefillSweep", [0.02] * 9)
    run.steps("DecodeSweep", [0.02] * 16)
    run.stepless("ConfigSelection", 0.2)
    run.steps("PrefillInterpolation", [0.02] * 8)
    run.steps("DecodeInterpolation", [0.02] * 3 + noisy(run.rng, 17, 85, 0.35))
    run.stepless("PlannerGeneration", 25)
    yield run

    run = Run(group, "12-says-ends-without-zero")
    run.stepless("Initializing", 10)
    for phase, n, cost in (("PrefillSweep", 9, 65), ("DecodeSweep", 18, 75), ("DecodeInterpolation", 14, 80)):
        run.steps_at_end(phase, [cost * (0.6 + 0.8 * i / n) * run.rng.uniform(0.85, 1.15) for i in range(n)], zero=False)
    yield run

    plan = [{"phase": f"Stage{i}"} for i in range(1, 13)]
    run = Run(group, "13-twelve-stepless-phases", plan)
    for entry in plan:
        run.stepless(entry["phase"], lognormal(run.rng, 45, 0.5))
    yield run

    plan = [{"phase": "Tokenize", "steps": 20}, {"phase": "Train", "steps": 10}, {"phase": "Evaluate", "steps": 15}]
    run = Run(group, "14-steps-cost-differently", plan)
    run.steps("Tokenize", noisy(run.rng, 20, 6, 0.3))
    run.steps("Train", noisy(run.rng, 10, 75, 0.15))
    run.steps("Evaluate", noisy(run.rng, 15, 22, 0.25))
    yield run

    plan = ["Prepare", "Probe", "Sum"]
    run = Run(group, "15-twenty-seconds", plan)
    run.stepless("Prepare", 1.4)
    run.steps("Probe", noisy(run.rng, 16, 1.1, 0.3))
    run.stepless("Sum", 0.8)
    yield run

    run = Run(group, "16-total-shrinks")  # what was announced is too much and is mended on the way
    run.stepless("Initializing", 12)
    total = 40
    for i in range(1, 23):
        if i % 5 == 0:
            total = max(22, total - 5)
        run.say("DecodeSweep", f"step {i}", i, total)
        run.pass_(lognormal(run.rng, 70, 0.25))
    run.steps("DecodeInterpolation", noisy(run.rng, 16, 85, 0.25))
    run.stepless("PlannerGeneration", 20)
    yield run

    run = Run(group, "17-unknown-phase")  # no plan, one phase that nobody knows
    run.steps("Benchmark", noisy(run.rng, 12, 48, 0.45))
    yield run

    run = Run(group, "18-every-tenth-is-slow")
    run.steps("Measure", [lognormal(run.rng, 130 if i % 10 == 4 else 14, 0.2) for i in range(50)])
    yield run

    plan = [{"phase": "Sweep", "steps": 400}]
    run = Run(group, "19-four-hundred-steps", plan)
    run.steps("Sweep", [lognormal(run.rng, 6 + 3 * math.sin(i / 25), 0.3) for i in range(400)])
    yield run

    run = Run(group, "20-gamma-with-messages")
    run.stepless("Initializing", 40, messages=4)
    for phase, n, cost in (("PrefillSweep", 7, 85), ("DecodeSweep", 15, 90)):
        for i in range(1, n + 1):
            left = run.rng.gammavariate(3, cost / 3)
            while left > 0:
                run.say(phase, f"step {i}, {left:.0f} s of work", i, n)
                run.pass_(min(left, 20))
                left -= 20
    run.stepless("ConfigSelection", 33)
    run.steps("PrefillInterpolation", [run.rng.gammavariate(3, 20) for _ in range(8)])
    run.steps("DecodeInterpolation", [run.rng.gammavariate(3, 33) for _ in range(15)])
    run.stepless("PlannerGeneration", 21)
    yield run


# ---- the fresh set: other laws again


def wandering(rng, n, mean):
    costs, level = [], 1.0
    for _ in range(n):
        level *= math.exp(rng.gauss(0, 0.12))
        costs.append(mean * level)
    return costs


def fresh():
    group = "fresh"

    run = Run(group, "01-weibull")
    dgdr(run, lambda rng, n, mean: [rng.weibullvariate(mean * 0.88, 0.8) for _ in range(n)], steps=(11, 22, 9, 17),
         scale=(1.5, 0.7, 1.2, 1.1))
    yield run

    run = Run(group, "02-wandering")
    dgdr(run, wandering, steps=(14, 28, 12, 22), scale=(0.8, 1.2, 0.9, 1.3))
    yield run

    run = Run(group, "03-square-root")
    dgdr(run, lambda rng, n, mean: [1.5 * mean * math.sqrt((i + 1) / n) * rng.uniform(0.85, 1.15) for i in range(n)])
    yield run

    plan = [{"phase": "Sweep", "steps": 36, "weight": 8}, {"phase": "Check", "steps": 9, "weight": 2}]
    run = Run(group, "04-valley", plan)
    run.steps("Sweep", [(12 + 40 * ((i - 17.5) / 18) ** 2) * run.rng.uniform(0.85, 1.15) for i in range(36)])
    run.steps("Check", noisy(run.rng, 9, 21, 0.3))
    yield run

    plan = [{"phase": "Sweep", "weight": 900}, {"phase": "Refine", "steps": 10, "weight": 400}]
    run = Run(group, "05-steps-begin-again", plan)  # the counter begins again for each of four configurations
    for _ in range(4):
        for i in range(1, 7):
            run.say("Sweep", f"step {i}", i, 6)
            run.pass_(lognormal(run.rng, 34, 0.25))
    run.steps("Refine", noisy(run.rng, 10, 37, 0.25))
    yield run

    run = Run(group, "06-retries")  # a step that fails is done again from the one before
    run.stepless("Initializing", 28)
    for phase, n, cost in (("PrefillSweep", 10, 62), ("DecodeSweep", 17, 77), ("PrefillInterpolation", 8, 50),
                           ("DecodeInterpolation", 13, 88)):
        i, tries = 1, 0
        while i <= n:
            tries += 1
            run.say(phase, f"step {i}, try {tries}", i, n)
            run.pass_(lognormal(run.rng, cost, 0.3))
            i = max(1, i - 1) if run.rng.random() < 0.12 else i + 1
    run.stepless("PlannerGeneration", 17)
    yield run

    plan = [{"phase": name, "steps": n, "weight": n * cost} for name, n, cost in
            (("Compile", 4, 30), ("Warm", 6, 12), ("Latency", 20, 22), ("Throughput", 12, 45), ("Accuracy", 5, 60))]
    run = Run(group, "07-true-weights", plan)
    for entry in plan:
        run.steps(entry["phase"], noisy(run.rng, entry["steps"], entry["weight"] / entry["steps"], 0.35))
    yield run

    plan = [{"phase": f"Part{i}", "steps": 3 + i} for i in range(1, 9)]
    run = Run(group, "08-eight-parts", plan)
    for entry in plan:
        speed = lognormal(run.rng, 1, 0.4)
        for i in range(1, entry["steps"] + 1):
            for word in ("set up", "measure"):
                run.say(entry["phase"], f"{word} {i}", i, entry["steps"], word)
                run.pass_(lognormal(run.rng, 8 * speed, 0.3))
    yield run

    run = Run(group, "09-estimator")  # a profiler that computes instead of measuring: seconds, and no steps
    for phase, seconds in zip(DGDR, (1.1, 3.2, 6.8, 0.4, 2.1, 7.9, 0.9)):
        run.stepless(phase, lognormal(run.rng, seconds, 0.3))
    yield run

    run = Run(group, "10-waits-between-phases")  # for a GPU that somebody else has: five minutes before each sweep's first step
    run.stepless("Initializing", 33)
    for phase, n, cost in (("PrefillSweep", 9, 58), ("DecodeSweep", 16, 80), ("PrefillInterpolation", 9, 48),
                           ("DecodeInterpolation", 15, 85)):
        run.say(phase, "waiting for a GPU")
        run.pass_(run.rng.uniform(200, 400))
        run.steps(phase, noisy(run.rng, n, cost, 0.25))
    run.stepless("PlannerGeneration", 28)
    yield run

    plan = [{"phase": "Load", "steps": 4, "weight": 100}, {"phase": "Measure", "steps": 50, "weight": 1000}]
    run = Run(group, "11-checkpoint-and-plan", plan)
    run.steps("Load", noisy(run.rng, 4, 26, 0.3))
    for i, cost in enumerate(noisy(run.rng, 28, 21, 0.3), 23):
        run.say("Measure", f"step {i}", i, 50)
        run.pass_(cost)
    yield run

    run = Run(group, "12-two-nodes-in-turn")
    run.steps("Measure", [lognormal(run.rng, 18 if i % 2 else 54, 0.15) for i in range(34)])
    yield run

    run = Run(group, "13-steps-without-a-total")
    run.stepless("Initializing", 19)
    for phase, n, cost in (("PrefillSweep", 8, 80), ("DecodeSweep", 15, 85), ("PrefillInterpolation", 7, 66),
                           ("DecodeInterpolation", 12, 100)):
        for i in range(1, n + 1):
            run.say(phase, f"step {i}", i, 0)
            run.pass_(lognormal(run.rng, cost, 0.3))
    run.stepless("PlannerGeneration", 14)
    yield run

    run = Run(group, "14-six-times-slower")
    dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.6), steps=(8, 15, 6, 12), scale=(6.5, 5.5, 6, 7), small=3)
    yield run


# ---- runs of a shape that was seen before


def second():
    group = "second"
    laws = {
        "a-noise": lambda run: dgdr(run, lambda rng, n, mean: noisy(rng, n, mean, 0.3), scale=(2.5, 0.5, 1.8, 0.6)),
        "b-growing": lambda run: dgdr(run, growing, scale=(0.4, 2, 0.4, 2)),
        "c-no-steps": lambda run: [run.stepless(phase, lognormal(run.rng, seconds, 0.15))
                                   for phase, seconds in zip(DGDR, (40, 1500, 700, 90, 250, 3000, 25))],
        "d-unweighted-plan": lambda run: [run.steps(phase, noisy(run.rng, n, cost, 0.25))
                                          for phase, n, cost in (("Load", 1, 240), ("Sweep", 12, 20), ("Refine", 6, 90))],
    }
    plans = {"d-unweighted-plan": ["Load", "Sweep", "Refine"]}
    for name, law in laws.items():
        for which in ("1st", "2nd"):
            run = Run(group, f"{name}-{which}", plans.get(name), shape=name)
            speed = 1.0 if which == "1st" else run.rng.uniform(0.85, 1.2)  # another node, another day
            law(run)
            for line in run.lines:
                line["t"] = round(line["t"] * speed, 3)
            run.t *= speed
            yield run


def main():
    for old in os.listdir(HERE):
        if old.endswith(".jsonl"):
            os.unlink(os.path.join(HERE, old))
    count = 0
    for runs in (tuning(), held_out(), fresh(), second()):
        for run in runs:
            run.write()
            count += 1
    print(f"{count} runs written", file=sys.stderr)


main()
