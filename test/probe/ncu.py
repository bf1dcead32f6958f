#!/usr/bin/python3
"""sonde-pod ncu --import: what Nsight Compute wrote, in every layout, into numbers; one sentence for what cannot be used.

Our own files always; those of real runs (../shared/ncu-samples beside the repository) where they are, against the table in
their README.
"""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from sonde_test import ROOT, diag, main, program

POD = program("sonde-pod")
OURS = os.path.join(ROOT, "test", "data", "ncu")
REAL = os.path.join(ROOT, "..", "shared", "ncu-samples")
KEYS = {"sm": "smThroughput", "mem": "memThroughput", "dram": "dramThroughput", "l2": "l2Throughput",
        "occupancy": "achievedOccupancy"}
# name: layout, launches, kernels, ns, boundType, bottleneck, and metrics to two decimals
EXPECTED = {
    "wide.csv": ("wide", 3, 2, 3000000, "memory-bound", "saturated-memory",
                 {"smThroughput": 23.84, "memThroughput": 80.8, "dramThroughput": 79.8, "l2Throughput": 44.56,
                  "l1Throughput": 29.8, "achievedOccupancy": 82.32, "theoreticalOccupancy": 90, "wavesPerSM": 9.48}),
    "long-2020.log": ("long", 2, 2, 10000, "unknown", "small-grid",
                      {"smThroughput": 0.7, "memThroughput": 2.6, "dramThroughput": 2.6, "l2Throughput": 1.06,
                       "l1Throughput": 13, "achievedOccupancy": 21, "theoreticalOccupancy": 100, "wavesPerSM": 0.03}),
    "long-2025-nvtx-crlf.csv": ("long", 2, 1, 4000, "compute-bound", "saturated-compute",
                                {"smThroughput": 87, "memThroughput": 63, "dramThroughput": 20, "l2Throughput": 30,
                                 "l1Throughput": 70, "theoreticalOccupancy": 33.33}),
    "long-german.csv": ("long", 1, 1, 117344, "memory-bound", "memory",
                        {"smThroughput": 12.5, "memThroughput": 65.77, "dramThroughput": 65.77, "wavesPerSM": 2048}),
    "window-export.csv": ("transposed", 2, 2, 750000, "memory-bound", "saturated-memory",
                          {"smThroughput": 28.33, "memThroughput": 84.67, "dramThroughput": 84.6, "l2Throughput": 78.67,
                           "achievedOccupancy": 23.84, "wavesPerSM": 62.06}),
    "raw.txt": ("text", 1, 1, 1520000, "memory-bound", "saturated-memory",
                {"smThroughput": 5.34, "memThroughput": 91.91, "dramThroughput": 91.91, "l2Throughput": 18.06,
                 "achievedOccupancy": 84.1, "wavesPerSM": 24}),
    "details-2020.txt": ("text", 1, 1, 121630, "mixed", "balanced",
                         {"smThroughput": 54.05, "memThroughput": 60.03, "dramThroughput": 43.34, "l2Throughput": 36.73,
                          "l1Throughput": 61.33, "achievedOccupancy": 87.88}),
}
REFUSED = {
    "refused-two-readings.csv": "line 2: Duration: '1.234' us can be read in two ways; print the report again with LC_ALL=C",
    "refused-header-alone.csv": "there is a header of Nsight Compute in line 2, but no launch after it",
}


def ncu(*args, data=b"", **env):
    return subprocess.run([POD, "ncu", *args], input=data, capture_output=True, timeout=120, check=False, env={**os.environ, **env})


def summary(path, *args, **env):
    done = ncu("--import", path, "-o", "json", *args, **env)
    assert done.returncode == 0 and not done.stderr, (path, done)
    return json.loads(done.stdout)


def refused(*args, data=b"", code=1):
    """The sentence, without the program's name."""
    done = ncu(*args, data=data)
    assert done.returncode == code and not done.stdout, done
    said = done.stderr.decode()
    assert said.count("\n") == 1 and said.startswith("sonde-pod: ncu"), said
    return said[len("sonde-pod: "):-1]


def ours(name):
    return os.path.join(OURS, name)


def every_layout_gives_its_numbers():
    for name, (layout, launches, kernels, ns, bound, bottleneck, metrics) in EXPECTED.items():
        got = summary(ours(name))
        seen = (got["layout"], got["launches"], got["kernels"], got["durationNs"], got["boundType"], got["bottleneck"])
        assert seen == (layout, launches, kernels, ns, bound, bottleneck), (name, seen)
        assert {k: round(v, 2) for k, v in got["metrics"].items()} == metrics, (name, got["metrics"])
        assert len(got["byKernel"]) == kernels and sum(k["launches"] for k in got["byKernel"]) == launches, (name, got)


def every_file_of_ours_is_expected():
    files = {f for f in os.listdir(OURS) if os.path.isfile(ours(f))}
    assert files == set(EXPECTED) | set(REFUSED), files


def what_is_known_beside_the_numbers_is_told():
    got = summary(ours("wide.csv"))
    assert (got["device"], got["computeCapability"], got["passes"]) == ("NVIDIA A100-SXM4-40GB", "8.0", 27), got
    assert got["dominantKernel"] == "triad(double *, const double *, double)", got
    assert [(k["kernel"].split("(")[0], k["boundType"], k["share"]) for k in got["byKernel"]] == [
        ("triad", "memory-bound", 0.8), ("check<double, 128>", "compute-bound", 0.2)], got["byKernel"]
    assert "unweighted" not in got and "partial" not in got and "warnings" not in got, got


def standard_input_is_a_file_too():
    with open(ours("wide.csv"), "rb") as f:
        done = ncu("--import", "-", "-o", "json", data=f.read())
    assert done.returncode == 0 and json.loads(done.stdout) == summary(ours("wide.csv")), done


def upstream_s_rule_can_be_chosen():
    assert summary(ours("wide.csv"), "--rule", "upstream")["boundType"] == "memory-bound"
    got = summary(ours("long-german.csv"), "--rule", "upstream")
    assert (got["boundType"], got["rule"]) == ("unknown", "upstream") and "bottleneck" not in got, got
    assert summary(ours("long-german.csv"), "--rule", "sol")["boundType"] == "memory-bound"
    assert summary(ours("long-german.csv"), SONDE_NCU_RULE="upstream")["rule"] == "upstream"
    assert summary(ours("long-german.csv"), "--rule", "sol", SONDE_NCU_RULE="upstream")["rule"] == "sol"
    assert summary(ours("long-german.csv"), SONDE_NCU_RULE="")["rule"] == "sol"
    done = ncu("--import", ours("long-german.csv"), SONDE_NCU_RULE="best")
    assert done.returncode == 2 and done.stderr == b"sonde-pod: ncu: SONDE_NCU_RULE is sol or upstream, not 'best'\n", done


def people_get_a_short_table():
    done = ncu("--import", ours("wide.csv"))
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and not done.stderr, done
    assert lines[0] == "3 launches of 2 kernels · 3 ms · NVIDIA A100-SXM4-40GB · compute capability 8.0 · wide layout", lines
    assert lines[1] == "memory-bound: memory is at 80 % of its peak or more (compute 23.84 %, memory 80.80 %)", lines
    assert "Achieved occupancy             82.32 %" in lines, lines
    assert lines[-2].split(maxsplit=4) == ["80.0", "%", "memory-bound", "2", "triad(double *, const double *, double)"], lines
    assert max(map(len, lines[3:])) <= 80, lines


def what_cannot_be_used_is_one_sentence():
    for name, sentence in REFUSED.items():
        assert refused("--import", ours(name)) == f"ncu: {ours(name)}: {sentence}"
    assert refused("--import", "-").startswith("ncu: standard input: nothing of Nsight Compute is in it: ")
    assert refused("--import", "-", data=b"NVR\0\n").startswith("ncu: standard input: this is a binary report; ")
    assert refused("--import", "/nonexistent") == "ncu: cannot open /nonexistent: No such file or directory"
    assert refused("--import", OURS) == f"ncu: cannot read {OURS}: Is a directory"


def wrong_usage_is_told():
    for args in ((), ("--rule", "best", "--import", "-"), ("--import", "-", "-o", "yaml"), ("--import", "-", "program"),
                 ("-o", "json", "--", "program"), ("--import", "-", "--", "program"), ("--import", "-", "--set", "full"),
                 ("--import", "-", "--launch-count", "3"), ("--import", "-", "--dir", "/tmp")):
        assert refused(*args, code=2)


def real_rows():
    """The rows of the table of expected values, by the names of its columns."""
    with open(os.path.join(REAL, "README.md"), encoding="utf-8") as f:
        table = [line for line in f.read().split("Expected", 1)[1].splitlines() if line.startswith("|")]
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return [dict(zip(names, row)) for row in rows]


def real_files(row):
    """"sassscope-basic-raw / -details" is two files; "olajide saxpy" is the one with both words."""
    first, *more = row["file"].split(" / ")
    names = [first] + [first[:first.rindex("-")] + m for m in more]
    for name, layout in zip(names, row["layout"].split(" / ")):
        found = [f for f in glob.glob(os.path.join(REAL, "*")) if f.endswith((".csv", ".log"))
                 and all(word in os.path.basename(f) for word in name.split())]
        assert len(found) == 1, (name, found)
        yield found[0], layout


def nanoseconds(text):
    number, unit = re.fullmatch(r"([\d.]+) (ns|us|ms)", text).groups()
    return round(float(number) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit], 3)


def real_files_give_the_values_of_their_table():
    if not os.path.isdir(REAL):
        diag(f"{REAL} is not there: only our own files were read")
        return
    for row in real_rows():
        for path, layout in real_files(row):
            got = summary(path)
            expected = (layout, int(row["launches"]), int(row["kernels"]), nanoseconds(row["total duration"]))
            assert (got["layout"], got["launches"], got["kernels"], got["durationNs"]) == expected, (path, got)
            for column, key in KEYS.items():
                value = f"{got['metrics'][key]:.2f}" if key in got["metrics"] else "-"
                assert value == row[column], (path, column, value, row[column])


def every_real_file_of_another_kind_is_refused_in_words():
    if not os.path.isdir(REAL):
        diag(f"{REAL} is not there")
        return
    for path in glob.glob(os.path.join(REAL, "*progress.log")) + glob.glob(os.path.join(REAL, "*console*.txt")):
        assert "nothing of Nsight Compute is in it" in refused("--import", path), path
    for path in glob.glob(os.path.join(REAL, "*.ncu-rep")):
        assert "this is a binary report" in refused("--import", path), path


main(every_layout_gives_its_numbers, every_file_of_ours_is_expected, what_is_known_beside_the_numbers_is_told,
     standard_input_is_a_file_too, upstream_s_rule_can_be_chosen, people_get_a_short_table,
     what_cannot_be_used_is_one_sentence, wrong_usage_is_told, real_files_give_the_values_of_their_table,
     every_real_file_of_another_kind_is_refused_in_words)
