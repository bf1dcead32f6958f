/*
 * track.h - how a run came to where it is, how far that is, and when it will end. Pure functions of events.
 *
 * A track is what remains of all the events of an attempt: for each phase when it began and ended, how many steps it had
 * and how long they took. The relay keeps one (it sees every change of the file, also those that the token bucket swallows)
 * and sends it along; the operator reads it and computes progress and ETA from it, the plan, and the history. A recorded
 * run can be replayed through the same functions.
 *
 * Percentage: phases weigh what they are expected to cost: by the history of the same shape, else by the plan, else by the
 * design's typical durations. Inside a phase by steps, where they are known: step i of n means that i - 1 are done. It never
 * goes down within an attempt, reaches 100 with Complete and not before.
 *
 * ETA: what is left of the present phase from its own pace (steps seen in this run), blended with what the history says of
 * it while few have been seen; then the phases to come, from the history of the same shape scaled by how this run compares
 * with it so far, else by the plan's weights at this run's pace, else from the typical durations. Each part has an
 * uncertainty; low and high are meant to hold the true end at least 4 times of 5. Nothing known: no ETA, rather than a wrong
 * one. The range is never wider than twice the remaining time.
 *
 * Not moving: no event for far longer than this run's own steps (or, before there are any, the prior's) take.
 */
#pragma once

#include "run/status.h"

enum { TRACK_STEPS_MAX = 16 }; /* durations kept a phase: the last ones, and sums over all */

struct track_phase {
        char name[RUN_PHASE_NAME_MAX + 1];
        usec_t began, ended; /* wall; ended 0: not yet */
        uint32_t total;      /* steps announced; 0: none */
        uint32_t done;       /* steps seen to end */
        double sum, sum_sq;  /* of their durations, seconds */
        uint32_t n_last;
        float last[TRACK_STEPS_MAX]; /* the latest durations, oldest first */
        usec_t step_began;           /* of the step under way */
        uint32_t step;               /* its number */
};

struct track {
        usec_t started; /* of this attempt */
        usec_t moved;   /* the last event that was news */
        uint32_t n;
        struct track_phase phases[RUN_PHASES_MAX];
        double percent; /* the highest so far */
};

/* An event: this status was seen at NOW. True: it was news (phase, step, sub-phase, message or end changed). */
bool track_event(struct track *t, const struct run_status *s, usec_t now);
/* Compact JSON, at most 3 KiB for 9 phases; and back. */
struct json *track_json(struct arena *a, const struct track *t);
int track_parse(const struct json *j, struct track *ret, struct err *err) _must_check_;

/* What the history knows of one phase of the same shape (see history.h). */
struct prior_phase {
        char name[RUN_PHASE_NAME_MAX + 1];
        unsigned runs;    /* how many it comes from */
        double mean, sd;  /* seconds of the whole phase */
        double steps;     /* mean number of steps */
        double step_mean; /* seconds a step; 0: no steps */
};
struct priors {
        unsigned n;
        struct prior_phase phases[RUN_PHASES_MAX];
};

struct eta {
        bool known;
        const char *basis;     /* "pace", "history", "typical": what most of it comes from */
        usec_t low, mid, high; /* wall time of the end */
};

struct progress {
        double percent; /* of the whole run, 0 ... 100, one decimal */
        struct eta eta;
        bool moving;
        usec_t not_moving_at; /* when to look again: then it counts as not moving unless something happened */
};

/* PRIORS may be NULL. NOW only decides `moving`: percentage and ETA change with events alone. */
void track_progress(const struct track *t, const struct run_plan *plan, const struct priors *priors,
                    usec_t now, struct progress *ret);
