"""What could be seen of an experiment, without what is different by nature: to compare one run with another."""

import fields

KEYS = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "sonde.dev/plan", "eta", "estimatedCompletion",
        "generation"}
HASHES = {"specHash", "workloadHash", "gpu.scheduler.io/workload"}  # of the spec as a whole
TEXTS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
)


def masked(trace, name, keys=(), texts=()):
    """TRACE of the experiment NAME: dicts, lists, texts."""
    own = [(fr"\b{name}(-profiling|-execution)(-\d+)?-[a-z0-9]{{5}}\b", "<pod>"), (fr"\b{name}\b", "<name>")]
    return fields.stripped(trace, (KEYS | set(keys), [*texts, *own, *TEXTS]))
