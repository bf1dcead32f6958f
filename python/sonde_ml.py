"""sonde_ml - runs one machine-learning task: sonde_ml.py JSON. It is the __main__ of what `sonde-pod ml` runs; docs/ml.md.

What comes out goes to SONDE_METRICS_FILE, or to standard output where there is none.
"""

import json
import os
import sys
import traceback


def write(result):
    text = json.dumps(result, allow_nan=False)
    path = os.environ.get("SONDE_METRICS_FILE")
    if not path:
        print(text)
        return
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text + "\n")
    os.replace(path + ".new", path)


def fail(reason, message, status):
    """Why, for programs and for people; the exit status."""
    print("sonde-pod: ml: " + message, file=sys.stderr)
    if os.environ.get("SONDE_METRICS_FILE"):
        write({"error": {"reason": reason, "message": message[:1000]}})
    return status


def no_constant(name):
    raise ValueError(name + " is not JSON")


def main(argv):
    if sys.version_info < (3, 9):
        return fail("FrameworkUnavailable", f"Python {sys.version.split()[0]} is too old: 3.9 or newer is needed; name an "
                                            "image that has it with the operator's --ml-image", 69)
    from frameworks import common, tasks  # pylint: disable=import-outside-toplevel
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, str(common.cpus()))  # they count the machine's CPUs, of which we may have a few
    try:
        if len(argv) != 2:
            raise common.Refused("InvalidParameter", "one argument is needed, the request as JSON", 2)
        try:
            request = json.loads(argv[1], parse_constant=no_constant)
        except (ValueError, RecursionError) as e:
            raise common.invalid(f"the request is not JSON: {e}") from e
        write(tasks.run(common.Job(request)))
        return 0
    except common.Refused as e:
        return fail(e.reason, str(e), e.status)
    except Exception as e:  # pylint: disable=broad-except
        if not isinstance(e, MemoryError):
            traceback.print_exc()
            return fail("FrameworkFailed", f"{type(e).__name__}: {e}", 1)
        return fail("OutOfMemory", "there is not enough memory for this data: lower datasetSize or nFeatures, or raise the "
                                   "memory limit", 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
