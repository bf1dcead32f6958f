/*
 * versus.h - runs that were made by themselves, side by side.
 *
 * A comparison runs its algorithms in interleaved blocks; here the runs are finished, each at its time and on its machine, and
 * only their samples are laid side by side. The statistics are the same (docs/statistics.md), but what changed between the
 * runs beside the programs cannot be told from the programs: that is always said in `notes`, with what is known to differ.
 * Algorithms of one comparison were interleaved, and are compared so.
 *
 * Where there are no samples (other kinds, samples that were not kept) figures are told beside each other, without a test.
 *
 *   {"tested": bool, "interleaved": bool, "baseline": name of the first,
 *    "runs": [{"name", "kind", "namespace", "run", "algorithm", "size", "n", "invalid", "time": {…}, "memory": {…} (as statistics of a
 *              result), "accuracy", "unit", "machine", "endedAt", "origin": "simulated"}],
 *    "pairs": [as of a result's comparison], "noiseFloor", "fastest": {"name", "clear"}, "summary",
 *    "figures": [{"key", "title", "unit", "values": [{"value", "low", "high"} or null for each run], "ratios": [to the first, or null]}],
 *    "notes": [sentence]}
 *
 * What is not known is left out.
 */
#pragma once

#include "kinds/figures.h"

enum { VERSUS_MIN = 2, VERSUS_MAX = 16 };

struct versus_side {
        const char *name; /* as a person calls it: "ac/sorts#quick_sort"; no two are the same */
        struct run_docs docs;
        const char *algorithm; /* of a comparison: which one; NULL: the only one */
        int64_t size;          /* which input size; 0: the request's own */
};

/*
 * What follows KIND/NAME: "#ALGORITHM" and "@SIZE", both may be missing. TEXT without them goes to *RET_RUN, in the arena;
 * *RET_ALGORITHM NULL, *RET_SIZE 0: not said. E_INVALID: the size is none.
 */
int versus_parse(struct arena *a, const char *text, const char **ret_run, const char **ret_algorithm,
                 int64_t *ret_size, struct err *err) _must_check_;
/* The first is what the others are set against. E_INVALID, with the side's name: which algorithm is meant, or that there is no such one. */
struct json *versus(struct arena *a, const struct versus_side *sides, size_t n, struct err *err) _must_check_;
