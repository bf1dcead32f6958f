#!/usr/bin/python3
"""How the time of the built-in algorithms grows with size: the exponents that a session reports, beside those that theory gives.

    bench/scaling.py            some half a minute; means something on a quiet machine alone
    bench/scaling.py --short    a few seconds: shows that it works

The exponent is the slope of a line through the logarithms of each size's median. n log n has no exponent: over these sizes
it looks like one a little above 1, which is told beside it. PASS: the 95 % interval holds what theory gives.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "test", "lib"))
from sonde_test import program

SHORT = "--short" in sys.argv[1:]
POD = program("sonde-pod")
ITERATIONS = 5 if SHORT else 40
# Long enough for the clock, small enough for the caches: what does not fit grows by more than it counts.
SQUARE = [1000, 2000, 4000, 8000] if SHORT else [1000, 2000, 4000, 8000, 16000]
LINE = [20000, 40000, 80000, 160000] if SHORT else [10000, 20000, 40000, 80000, 160000]
# name, sizes, growth, whether it has a bar: the others branch by what they find, or leave the first cache
WANTED = [("bubble_sort", SQUARE, lambda n: n * n, True), ("merge_sort", LINE, lambda n: n * math.log(n), True),
          ("insertion_sort", SQUARE, lambda n: n * n, False), ("selection_sort", SQUARE, lambda n: n * n, False),
          ("quick_sort", LINE, lambda n: n * math.log(n), False), ("heap_sort", LINE, lambda n: n * math.log(n), False),
          ("radix_sort", LINE, lambda n: n, False), ("std", LINE, lambda n: n * math.log(n), False)]


def slope(sizes, growth):
    x, y = [math.log(n) for n in sizes], [math.log(growth(n)) for n in sizes]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def measure(names, sizes):
    """What one session over all of them reports, by name."""
    plan = {"seed": 8, "uid": "scaling", "iterations": ITERATIONS, "warmup": 2, "sizes": sizes,
            "algorithms": [{"name": n, "type": "sorting", "command": [POD, "algorithm", n]} for n in names]}
    with tempfile.TemporaryDirectory(prefix="sonde-bench-scaling-") as place:
        subprocess.run([POD, "probe", "--plan", json.dumps(plan), "--dir", place, "--ctl", place], check=True)
        with open(os.path.join(place, "result.json"), encoding="utf-8") as f:
            result = json.load(f)
    for warning in result["warnings"]:
        print(f"      {warning}")
    return {s["algorithm"]: s for s in result["scaling"]}


def main():
    missed = []
    for sizes in (SQUARE, LINE):
        some = [w for w in WANTED if w[1] is sizes]
        print(f"sizes {sizes[0]} to {sizes[-1]}, {ITERATIONS} runs each", flush=True)
        found = measure([w[0] for w in some], sizes)
        for name, _, growth, bar in some:
            s, theory = found[name], slope(sizes, growth)
            holds = s["ciLow"] <= theory <= s["ciHigh"]
            word = ("PASS" if holds else "FAIL") if bar else "    "
            print(f"{word}  {name:<16} exponent {s['exponent']:.3f}  (95 % {s['ciLow']:.3f} to {s['ciHigh']:.3f})  theory {theory:.3f}  "
                  f"{s['verdict']}", flush=True)
            if bar and not holds:
                missed.append(name)
    # A short one shows that it works, and proves nothing.
    sys.exit(f"outside its interval: {', '.join(missed)}" if missed and not SHORT else 0)


main()
