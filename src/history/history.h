/*
 * history - finished runs, kept.
 *
 * A row is a run of any kind: an upsert keyed by (request UID, attempt), committed before the status says that the run
 * ended, with how long each of its phases and their steps took. From the rows of one shape come priors: what the next run
 * of that shape will probably cost. A shape is a short text that a kind derives from what makes runs comparable (model,
 * backend, hardware, steps), never a name.
 *
 * SQLite in one file (WAL, synchronous=FULL); a database blocks, so it is used on the loop's worker thread alone. Priors
 * that were asked for are kept in memory (the 256 shapes asked for last), and forgotten when a row of their shape comes.
 *
 * What it must not do: be needed to decide correctly (it gives priors, and an empty history is an ordinary state); run SQL
 * on the loop's thread; keep what is secret (environment values, tokens).
 */
#pragma once

#include "net/net.h"
#include "run/track.h"

struct history;

struct history_row {
        const char *uid; /* of the request */
        uint64_t attempt;
        const char *kind, *ns, *name;
        const char *shape;   /* "": comparable with nothing */
        const char *outcome; /* "Succeeded", "Failed" */
        usec_t started, finished;
        const struct track *track; /* NULL: nothing is known */
};

/* PATH is made if missing; ":memory:" for tests. */
struct history *history_open(struct loop *loop, const char *path, const struct log *log, struct err *err)
        _must_check_;
/* Does not wait: what the worker has is still written, what it has not is not. Callbacks do not come any more; this may be
 * called in one. */
void history_free(struct history *h);

/* Copies ROW; DONE from the loop when it is committed (ERR NULL) or could not be. */
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
/* Takes the callbacks of ARG back; its rows are written all the same. */
void history_cancel(struct history *h, void *arg);

DEFINE_CLEANUP_PTR(struct history *, history_free)
