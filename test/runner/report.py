"""report - the end of the output, and the files that a run leaves in its log folder.

  counts   the last line
  proofs   which rows of test/seeds the run proved: ENTRY TAB POINT TAB ROW
  times    one folder up, of the last run of every entry: ENTRY TAB SECONDS TAB CPU SECONDS TAB BUDGET
"""

import os

from catalog import ROOT

SLOWEST = 20
REPEATED = 24  # failed points, and lines below each


def write_proofs(outcomes, path):
    with open(path, "w", encoding="utf-8") as f:
        for entry, outcome in outcomes.items():
            if not outcome.failed:
                f.writelines(f"{entry.name}\t{title}\t{row}\n" for title, row in outcome.proofs)


def write_times(outcomes, path):
    times = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            times = dict(line.rstrip("\n").split("\t", 1) for line in f if "\t" in line)
    times.update((e.name, f"{o.seconds:.1f}\t{o.cpu:.1f}\t{e.budget}") for e, o in outcomes.items())
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(f"{name}\t{rest}\n" for name, rest in sorted(times.items()))


def print_slowest(outcomes):
    slowest = sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:SLOWEST]
    print(f"the {len(slowest)} slowest of {len(outcomes)}:      seconds     CPU  budget")
    for entry, outcome in slowest:
        over = "  over its budget" if outcome.seconds > entry.budget else ""
        print(f"  {entry.name:28} {outcome.seconds:7.1f} {outcome.cpu:7.1f} {entry.budget:7}{over}")


def print_failures(outcomes, logs):
    failed = [(e, o) for e, o in outcomes.items() if o.failed]
    for entry, outcome in failed:
        for title, *comments in outcome.failures[:REPEATED]:
            print("\n".join([f"failed   {entry.name}: {title}"] + ["         " + line[:400] for line in comments[:REPEATED]]))
    if failed:
        print("failed   " + ", ".join(e.name for e, _ in failed) + f"   (logs in {os.path.relpath(logs, ROOT)}/)")


def report(outcomes, logs, seconds):
    """Prints the summary of a run, writes its files; returns the exit code."""
    print_slowest(outcomes)
    print(f"{len(outcomes)} entries in {seconds:.0f} s, {sum(o.cpu for o in outcomes.values()):.0f} s CPU without control planes")
    print_failures(outcomes, logs)
    write_proofs(outcomes, os.path.join(logs, "proofs"))
    write_times(outcomes, os.path.join(os.path.dirname(logs), "times"))
    flaky = [e.name for e, o in outcomes.items() if o.flaky]
    with open(os.path.join(logs, "flaky"), "w", encoding="utf-8") as f:
        f.writelines(name + "\n" for name in flaky)
    for name in flaky:
        print(f"flaky    {name}: failed, and passed when it ran alone")
    passed, failed = sum(o.passed for o in outcomes.values()), sum(o.failed for o in outcomes.values())
    counts = f"{passed} passed, {failed} failed, 0 skipped"
    with open(os.path.join(logs, "counts"), "w", encoding="utf-8") as f:
        f.write(counts + "\n")
    print(counts, flush=True)
    return 1 if failed or not passed else 0
