/*
 * phases.h - one run as a tree of its phases, for a terminal: what is done and how long it took, what is being done, what is to come.
 *
 *     dgdr/llama-70b · vllm · started 14:02                             ETA 15:12 (15:08-15:21)
 *     overall  ██████████████████▍·····························  37 %
 *
 *      ✓ Initializing           4s
 *      ✓ PrefillSweep       8/8  11m20s
 *      ▸ DecodeSweep       5/12  ████████▎···········  14m so far, ~20m left
 *          TP=2 on 4 GPUs · Benchmarking · batch size 256
 *      · ConfigSelection
 *     14:37  CandidateSkipped: ...
 *
 * A pure function of the object, what its run reports, the time and the width. The object tells where the run is; how long each
 * phase took is in the run's status ConfigMap alone, which goes when the run ends: where nobody has seen it, durations are left
 * out. What is not known is never drawn as 0.
 */
#pragma once

#include "cli/show.h"
#include "kinds/kinds.h"
#include "kinds/summary.h"

struct phases_event {
        usec_t when; /* wall time */
        bool warning;
        const char *reason, *message;
};

struct phases {
        const struct kind *kind;
        const struct json *object;
        const char *label;                 /* "dgdr/llama-70b" */
        const struct json *status_map;     /* the run's status ConfigMap as it was last seen; NULL: never */
        const struct phases_event *events; /* oldest first */
        size_t n_events;
        usec_t now;           /* wall time */
        struct screen screen; /* its width, and whether there are colours */
};

/* Whole lines, of at most the screen's width. */
void phases_draw(const struct phases *t, struct arena *a, struct buf *out);
/* The tree alone; nothing where the run has no phases. */
void phases_draw_tree(const struct phases *t, struct arena *a, struct buf *out);
