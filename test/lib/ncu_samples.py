"""Outputs of real runs of Nsight Compute (../shared/ncu-samples beside the repository), where they are, and what they say."""

import os

from sonde_test import ROOT

SAMPLES = os.path.join(ROOT, "..", "shared", "ncu-samples")
KEYS = ("smThroughput", "memThroughput", "dramThroughput", "l2Throughput", "achievedOccupancy")
# What their README says: launches, kernels, duration in ns, and percentages (None: absent).
EXPECTED = {
    "sassscope-basic-raw-2025.3-sm86.csv": (1, 1, 4800, 0.00, 0.90, 0.19, 0.90, 2.08),
    "sassscope-basic-details-2025.3-sm86.csv": (1, 1, 4800, 0.00, 0.90, 0.19, 0.90, 2.08),
    "nsightful-t4-details-rules-2024.csv": (1, 1, 21058944, 1.30, 61.84, 61.84, 8.38, 96.26),
    "xplacer-v100-2020-details-13launches-preamble.log": (13, 2, 71968, 0.65, 2.48, 2.48, 1.05, 19.97),
    "olajide-sm120-saxpy-cmdline-metrics.csv": (1, 1, 292928, 22.30, None, None, None, 83.82),
}


def are_there():
    return os.path.isdir(SAMPLES)


def same(got, expected):
    """Numbers to two decimals, and what is absent in both."""
    return all(have is want is None or (have is not None and want is not None and abs(float(have) - want) <= 0.00501)
               for have, want in zip(got, expected))
