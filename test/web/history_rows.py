#!/usr/bin/python3
"""Puts finished runs into a history that is there: history_rows.py FILE NAMESPACE ALGORITHM [SECONDS...], the oldest first.

They are a minute apart, the last of them ends now; each has one measure, in the series NAMESPACE/ALGORITHM.
"""

import contextlib
import sqlite3
import sys
import time


def level(seconds, runs):
    """RUNS values that scatter by a per cent around SECONDS, always the same ones."""
    return [seconds * (1 + (i * 7 % 11 - 5) / 500) for i in range(runs)]


def add(path, ns, algorithm, values, ended=None):
    """ENDED: when the last one did, in seconds since 1970."""
    last = time.time() if ended is None else ended
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db, db:
        for i, seconds in enumerate(values):
            key = {"uid": f"{ns}-{algorithm}-{i}", "attempt": 1}
            end = int((last - 60 * (len(values) - 1 - i)) * 1e6)
            rows = {"run": {**key, "kind": "AlgorithmProfiling", "ns": ns, "name": f"{algorithm}-{i}", "shape": "", "outcome": "Succeeded",
                            "started": end - 1000000, "finished": end},
                    "measure": {**key, "place": 0, "series": f"{ns}/{algorithm}", "algorithm": algorithm, "size": 1, "n": 10,
                                "seconds": seconds, "low": seconds, "high": seconds, "finished": end}}
            for table, row in rows.items():
                db.execute(f"INSERT INTO {table} ({','.join(row)}) VALUES ({','.join('?' * len(row))})", list(row.values()))


if __name__ == "__main__":
    add(sys.argv[1], sys.argv[2], sys.argv[3], list(map(float, sys.argv[4:])))
