/*
 * track.h - how a run came to where it is, how far that is, and when it will end. Pure functions of events.
 *
 * A track is what remains of all the events of an attempt: for each phase when it began and ended, how many steps it had
 * and how long they took. The relay keeps one (it sees every change of the file, also those that the token bucket swallows)
 * and sends it along; the operator reads it and computes progress and ETA from it, the plan, and the history. A recorded
 * run can be replayed through the same functions.
 *
 * Steps: "step i of n" is said when step i begins, as the full design does; it ends when the next one is said or the phase
 * ends. Some writers say it when step i has ended; they are known by staying at step 0 as long as a step takes, or by
 * leaving the phase at once after the last step, and are read so from then on. A number that leaps from i to j counts as
 * j - i steps that took the time together (skipped, or swallowed). One that goes back counts as one step. Those before the
 * first that was seen are somebody else's: a checkpoint's. Times never go back, whatever the clock does.
 *
 * Percentage: phases weigh what they are expected to cost: by the history of the same shape, else by the plan, else by the
 * design's typical durations. Inside a phase by steps, where they are known: step i of n means that i - 1 are done. It never
 * goes down within an attempt as long as plan and priors stay the same (who publishes it keeps the highest), reaches 100
 * with Complete and not before.
 *
 * ETA: what is left of the present phase from its own pace (steps seen in this run), blended with what the history says of
 * it while few have been seen; then the phases to come, from the history of the same shape scaled by how this run compares
 * with it so far, else by the plan's weights at this run's pace, else from the typical durations. Each part has an
 * uncertainty; low and high are meant to hold the true end at least 4 times of 5. Nothing known: no ETA, rather than a wrong
 * one. At the moment of the event the range is never wider than twice the remaining time. eta.c says how.
 *
 * Not moving: no event for far longer than this run's own steps (or, before there are any, the prior's) take:
 *
 *   the present phase has had steps            5 times its longest step, 3 times the prior's step
 *   it has not, and the history knows it       3 times what it took there
 *   it has not, and it has a typical duration  twice the upper end of that
 *   nothing is known                           30 minutes
 *
 * and never less than 5 minutes.
 */
#pragma once

#include "run/status.h"

enum { TRACK_BLOCKS_MAX = 16 };

/* Consecutive steps, and how long they took together. */
struct track_block {
        uint32_t steps;
        float seconds;
};

struct track_phase {
        char name[RUN_PHASE_NAME_MAX + 1];
        usec_t began, ended; /* wall, of the latest visit; ended 0: it is under way */
        double before;       /* seconds of earlier visits, when a run goes back to a phase */
        uint32_t total;      /* steps announced; 0: none */
        uint32_t done;       /* steps seen to end */
        double sum;          /* of their durations, seconds */
        float longest;       /* of them */
        float share;         /* the furthest it was while under way, 0 ... 1 */
        uint32_t n_blocks;
        struct track_block
                blocks[TRACK_BLOCKS_MAX]; /* all of them, oldest first; neighbours merge when it is full */
        uint32_t step;                    /* the number of the one under way */
        usec_t step_began;                /* 0: none was said */
        float at_zero;                    /* seconds at step 0, until it is known what they were; 0: none */
};

struct track {
        usec_t started; /* of this attempt */
        usec_t moved;   /* the last event that was news */
        usec_t ended;   /* Complete or Failed came; 0: neither. What comes later is not looked at */
        bool complete;
        bool says_ends; /* the writer says a step when it has ended */
        uint32_t said;  /* a hash of the last status's news */
        double percent; /* the highest overallPercentage that the profiler has said itself */
        uint32_t n;
        struct track_phase
                phases[RUN_PHASES_MAX]; /* in the order of their begin; of more than fit the oldest go */
};

/* An event: this status was seen at NOW. True: it was news (phase, step, sub-phase, message or end changed). */
bool track_event(struct track *t, const struct run_status *s, usec_t now);
/* The phase under way; NULL: none. */
const struct track_phase *track_present(const struct track *t);
const struct track_phase *track_find(const struct track *t, const char *name); /* NULL: it was not seen */
double track_phase_seconds(const struct track_phase *p, usec_t now);           /* spent in it up to NOW */
/*
 * Compact JSON: at most 3 KiB for 9 phases of the design, 8 KiB in any case (blocks of ended phases are left out when there
 * are more than 9); and back. Times are in milliseconds, those after the first relative to it. Unknown members pass, all
 * else must be as track_json() writes it.
 */
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

/* One more run had this phase, for SECONDS, with STEPS that took STEP_SECONDS together. */
void priors_add(struct priors *p, const char *phase, double seconds, double steps, double step_seconds);
void priors_add_track(struct priors *p, const struct track *t);

struct eta {
        bool known;
        const char *basis;     /* "pace", "history", "typical": what most of it comes from; NULL: not known */
        usec_t low, mid, high; /* wall time of the end */
};

struct progress {
        double percent; /* of the whole run, 0 ... 100, one decimal */
        struct eta eta; /* not known any more once the run has ended */
        bool moving;    /* true for one that has ended, too */
        /* When to look again: then it counts as not moving unless something happened. 0: never, it has ended. */
        usec_t not_moving_at;
};

/* PRIORS may be NULL. NOW only decides `moving`: percentage and ETA change with events alone. */
void track_progress(const struct track *t, const struct run_plan *plan, const struct priors *priors,
                    usec_t now, struct progress *ret);
