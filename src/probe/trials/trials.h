/*
 * trials.h - commands measured side by side for a person: run in blocks, then told as a table, JSON, CSV or Markdown.
 *
 * A block runs each command once, in an order drawn from the seed; blocks of warm-up come first and count for nothing. A
 * command that cannot be started ends the trials; one that fails three times in a row is not run any more. What failed
 * is kept, and counts for nothing but that it failed.
 */
#pragma once

#include "probe/measure/measure.h"
#include "stats/stats.h"

enum { TRIALS_COMMANDS_MAX = 64, TRIALS_RUNS_MAX = 100000 };

struct trials_config {
        char *const **commands; /* each an argv */
        size_t n;
        unsigned runs, warmup;
        char *const *prepare; /* run before each run, unmeasured; NULL: nothing */
        const char *input;    /* file for their standard input; NULL: /dev/null */
        bool show_output;     /* theirs goes to ours */
        bool counters;
        bool ignore_failure; /* an exit status that is not 0 counts as well */
        usec_t timeout;      /* of a run; 0: none */
        uint64_t seed;
        /* Before each run; BLOCK counts from 1, warm-up included. May be NULL. */
        void (*progress)(void *arg, unsigned block, unsigned blocks, const char *name);
        void *arg;
};

struct trials_run {
        unsigned block; /* from 0, warm-up not counted */
        struct measure_sample sample;
};

struct trials_side {
        const char *name; /* the command as one line; no two are the same */
        VEC(struct trials_run) runs;
        size_t valid, failures_in_a_row;
        const struct measure_sample *failed; /* the first that did; NULL: none */
        struct stats_description time;       /* of the valid ones; n 0: none */
        double *times;                       /* of these, in order */
        double user, sys;                    /* means: the kernel may count in steps; NAN: not known */
        double memory;                       /* the median; NAN: not known */
};

struct trials {
        const struct trials_config *config;
        struct arena arena;
        struct trials_side *sides;
        bool interrupted;
        struct stats_comparison comparison; /* n 0: there is one command */
        VEC(const char *) warnings;
};

/*
 * Runs all of it, on a loop of its own. SIGINT or SIGTERM ends the command that runs, and what there is so far is the
 * outcome (`interrupted`); a second one is not waited for. Below 0: nothing could be measured at all, and why.
 */
int trials_run(struct trials *t, const struct trials_config *config, struct err *err) _must_check_;
void trials_done(struct trials *t);
bool trials_any_failed(const struct trials *t);

/* What came out, into OUT. */
void trials_text(const struct trials *t, struct buf *out);
void trials_markdown(const struct trials *t, struct buf *out);
void trials_csv(const struct trials *t, struct buf *out);
void trials_json(const struct trials *t, struct buf *out);

DEFINE_CLEANUP_STRUCT(struct trials, trials_done)
