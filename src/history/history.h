/*
 * history - finished runs, kept.
 *
 * A row is a run of any kind: an upsert keyed by (request UID, attempt), committed before the status says that the run
 * ended, with how long each of its phases and their steps took, what was measured and on what. From the rows of one shape
 * come priors: what the next run of that shape will probably cost. A shape is a short text that a kind derives from what
 * makes runs comparable (model, backend, hardware, steps), never a name. From the measures of one series comes its trend:
 * the same algorithm at the same size on the same machine, run after run.
 *
 * SQLite in one file (WAL, synchronous=FULL), or PostgreSQL. A database blocks, so it is used on the loop's worker thread
 * alone, but for history_open(). What was asked for is kept in memory (256 shapes, 128 series; those asked for last) for ten
 * minutes, and forgotten when a row of it comes. A PostgreSQL server that is gone is looked for again with backoff (1 s to
 * 60 s); meanwhile rows are refused and nothing is known. No statement takes longer than 15 s and no connection longer than
 * 5 s, as the loop's name look-ups wait for the same thread.
 *
 * Old runs go by age and by count, old samples before them: a few at a time, on the worker.
 *
 * What it must not do: be needed to decide correctly (it gives priors and trends, and an empty history is an ordinary
 * state); run SQL on the loop's thread; keep or log what is secret (environment values, tokens, its own password).
 */
#pragma once

#include "net/net.h"
#include "run/track.h"

struct history;

/* What one run measured of one algorithm at one size. Seconds, bytes, cores; NAN: not known. */
struct history_measure {
        const char *series; /* "": comparable with nothing */
        const char *algorithm;
        int64_t size;
        size_t n;               /* valid samples */
        double time, low, high; /* median and its interval */
        double memory, cpu, cost;
};

struct history_phase {
        const char *name;
        double seconds;        /* of all visits */
        uint64_t total, steps; /* announced, seen to end */
};

struct history_row {
        const char *uid; /* of the request */
        uint64_t attempt;
        const char *kind, *ns, *name;
        const char *shape;   /* "": comparable with nothing */
        const char *outcome; /* "Succeeded", "Failed" */
        usec_t started, finished;
        const struct track *track; /* NULL: nothing is known */
        /* NULL: not known */
        const char *labels;    /* of the request, as JSON: {"team": "a"} */
        const char *machine;   /* as JSON */
        const char *image;     /* of the workload */
        const char *spec_hash; /* of what was asked for */
        const char *samples;   /* as JSON; kept gzipped, and not at all above 4 MiB */
        const struct history_measure *measures;
        size_t n_measures;
        /* What is read of the track, of one that is asked for by its uid; not written. */
        const struct history_phase *phases;
        size_t n_phases;
};

struct series_point {
        const char *uid, *name;
        uint64_t attempt;
        usec_t finished;
        double value, low, high; /* the median time and its interval; low and high may be NAN */
};

enum { SERIES_MAX = 200 };

/* The last 200 runs with a time, oldest first. */
struct series {
        const struct series_point *points;
        size_t n;
};

struct history_config {
        const char *
                place; /* a path (made if missing; ":memory:" for tests), or postgres://USER@HOST:PORT/DATABASE */
        const char *
                password_file; /* PostgreSQL: read at each connection; NULL: the URL, $PGPASSWORD, ~/.pgpass */
        bool reading; /* nothing is made, brought up to date or thrown away: for who only looks inside */
        bool patient; /* with `reading`: what an operator has still to make or bring up to date is waited for */
        usec_t max_age, samples_max_age; /* 0: for ever */
        unsigned max_runs;               /* 0: any number */
};

/*
 * What is wrong with the place is told at once, but for a PostgreSQL server that does not answer: that is logged, and it is
 * looked for again. With `reading` that too is an error, unless it is `patient`.
 */
struct history *history_open(struct loop *loop, const struct history_config *config, const struct log *log,
                             struct err *err) _must_check_;
/* Does not wait: what the worker has is still written, what it has not is not. Callbacks do not come any more; this may be
 * called in one. */
void history_free(struct history *h);

/*
 * Copies ROW; DONE from the loop when it is committed (ERR NULL) or could not be; with E_REFUSED and E_TOO_LARGE it never will
 * be. A uid, shape or series of more than 1000 bytes is kept, and found, by its beginning and its hash.
 */
void history_record(struct history *h, const struct history_row *row,
                    void (*done)(void *arg, const struct err *err), void *arg);
/*
 * Priors of a shape from its last 20 runs that succeeded at the first attempt (a later one may have gone on from a
 * checkpoint). Above 0: *RET is there now (borrowed until the next call or turn of the loop; n == 0: nothing is known). 0:
 * DONE comes from the loop, once for every such call, then ask again. A history that cannot be read knows nothing; it is
 * read again after a minute.
 */
int history_priors(struct history *h, const char *shape, void (*done)(void *arg), void *arg,
                   const struct priors **ret) _must_check_;
/* The same of a series. */
int history_series(struct history *h, const char *series, void (*done)(void *arg), void *arg,
                   const struct series **ret) _must_check_;

/* NULL, 0: all. */
struct history_filter {
        const char *uid, *kind, *ns, *name, *series;
        const char *const *labels; /* "key=value"; all of them */
        size_t n_labels;           /* at most 16 */
        unsigned limit;            /* 0: 100; at most 10000 */
        bool samples;              /* with them; only together with a uid */
};

/*
 * Rows that FILTER (copied) lets through, the newest first, with their measures and without track (but its phases, with a uid);
 * in DONE, from the loop, and borrowed for that call. With a series, of the measures only that one's.
 */
void history_list(struct history *h, const struct history_filter *filter,
                  void (*done)(void *arg, const struct history_row *rows, size_t n, const struct err *err),
                  void *arg);
/* How the last use of it went: 1 well, 0 not, -1: it was not used yet. */
int history_works(const struct history *h);
/* {kind, namespace, name, uid, attempt, outcome, ...}; see docs/history.md. */
struct json *history_row_json(const struct history_row *row, struct arena *a);
/* Takes the callbacks of ARG back; its rows are written all the same. */
void history_cancel(struct history *h, void *arg);

DEFINE_CLEANUP_PTR(struct history *, history_free)
