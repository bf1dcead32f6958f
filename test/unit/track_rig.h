/*
 * track_rig.h - runs told in seconds after their begin.
 */
#pragma once

#include "run/track.h"
#include "unit/unit.h"

static const usec_t T0 = 1767225600 * USEC_PER_SEC;

/* STEP -1: the status has no progress. True: it was news. */
static inline bool say(struct track *t, double at, const char *phase, int64_t step, int64_t total)
{
        struct run_status status = {.phase = phase,
                                    .message = "",
                                    .has_progress = step >= 0,
                                    .current_step = step,
                                    .total_steps = total,
                                    .overall = -1};

        return track_event(t, &status, T0 + (usec_t)(at * 1e6));
}
