/*
 * replay.h - recorded runs, replayed through src/run/track.h, and how good the ETA was.
 *
 * A file is one run as JSON lines: a head {"run", "set", "origin", "shape", "plan"}, then {"t", "status"} with T in seconds
 * after the run began; the last status is Complete and its time the true end.
 */
#pragma once

#include "run/track.h"

enum { REPLAY_GRID = 200 }; /* moments at even distances over a run, beside its events */

/* Progress shares are of the true duration: from 20 % on counts. */
#define REPLAY_FROM 0.2

struct replay_event {
        usec_t at; /* wall */
        struct run_status status;
        const struct run_plan *plan;
};

struct replay_run {
        struct arena arena;
        const char *name, *set, *shape;
        usec_t begin, end;
        VEC(struct replay_event) events;
};

struct replay_result {
        unsigned events, points; /* points: events and grid from 20 % on */
        unsigned known;          /* points with an ETA */
        double covered; /* share of the points whose range holds the true end; those without an ETA count as missed if
                             they are more than half, else they do not count */
        double width;     /* median of (high - low) / true time left, over those with an ETA */
        double error;     /* mean distance of the percentage from the true share of time, percentage points */
        double first_eta; /* seconds until the first ETA; below 0: there was none */
        bool monotone, complete; /* the percentage never went down; was 100 at the end and not before */
        bool narrow;             /* at every event high - low <= 2 (mid - now) */
        bool ordered;            /* at every event now <= low <= mid <= high */
        struct track track;      /* at the end */
};

int replay_load(const char *path, struct replay_run *ret, struct err *err) _must_check_;
void replay_done(struct replay_run *run);
void replay_measure(const struct replay_run *run, const struct priors *priors, struct replay_result *ret);

DEFINE_CLEANUP_STRUCT(struct replay_run, replay_done)

/* Runs in the order given; each has the ones before it of its shape as its history. What is no .jsonl is passed over. */
struct replay_row {
        const char *name, *set;
        unsigned history; /* runs */
        struct replay_result result;
};
struct replay_table {
        struct arena arena;
        VEC(struct replay_row) rows;
};
int replay_all(const char *const *paths, size_t n, struct replay_table *ret, struct err *err) _must_check_;
void replay_table_done(struct replay_table *t);
/* The mean over the runs of a set (NULL: all) of what each has covered; *RET_RUNS how many they are. */
double replay_covered(const struct replay_table *t, const char *set, unsigned *ret_runs);
/* One line a run and one a set, each handed to LINE. */
void replay_print(const struct replay_table *t, void (*line)(void *arg, const char *text), void *arg);

DEFINE_CLEANUP_STRUCT(struct replay_table, replay_table_done)
