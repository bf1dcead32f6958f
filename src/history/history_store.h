/*
 * history_store.h - the tables of a history, in whatever database. Blocks: used on the worker's thread, by one thread at a time.
 *
 *   run      one row a run and attempt: who it was, its shape, how it ended, when (microseconds since 1970), labels, machine
 *            and image
 *   phase    one row a phase of it: how long it took, how many steps, their sum, and their durations as JSON (a number is one
 *            step, [n, seconds] are n together; see track.h)
 *   measure  one row an algorithm and size of it: the median and its interval, memory, CPU, cost
 *   label    one row a label of it, to be found by
 *   samples  all that was measured, gzipped JSON; goes earlier than the rest
 *
 * What belongs to a run goes with it. The schema has a version; an older one is brought up to date, step by step, each in a
 * transaction.
 */
#pragma once

#include "history/history.h"

struct history_store;

enum { HISTORY_INDEXED_MAX = 1000 }; /* bytes of a text that rows are found by */

/* A row that is to be written, with all that it points to. */
struct history_pending {
        struct list node;
        struct arena arena;
        struct history_row row;
        void (*done)(void *arg, const struct err *err);
        void *arg;
        bool written;   /* after history_store_write() */
        struct err err; /* why it is not; E_REFUSED or E_TOO_LARGE: it never will be */
};

/* NOW (here and below) is a time of CLOCK_BOOTTIME, for the pauses between attempts to connect. */
struct history_store *history_store_open(const struct history_config *config, usec_t now, struct err *err)
        _must_check_;
void history_store_close(struct history_store *s);
const char *history_store_name(const struct history_store *s); /* without secrets */
/* Why there is no connection; NULL: there is one. Only of a server. */
const char *history_store_absent(const struct history_store *s);

/*
 * All rows of the list (struct history_pending) in one transaction, and where that fails by what is in them, each in one of its
 * own: a row that the database does not take is no other's harm. Each then says how it went. An error: the database does not
 * work now, and who is not written is not there, unless the connection broke in the very last moment.
 */
int history_store_write(struct history_store *s, usec_t now, const struct list *rows, struct err *err)
        _must_check_;
int history_store_priors(struct history_store *s, usec_t now, const char *shape, struct priors *ret,
                         struct err *err) _must_check_;
int history_store_series(struct history_store *s, usec_t now, const char *series, struct arena *a,
                         struct series *ret, struct err *err) _must_check_;
int history_store_list(struct history_store *s, usec_t now, const struct history_filter *filter,
                       struct arena *a, const struct history_row **ret, size_t *ret_n, struct err *err)
        _must_check_;
/* Throws away at most a few hundred of what is too old or too much by WALL (wall time). *MORE: there is more. */
int history_store_prune(struct history_store *s, usec_t now, usec_t wall, bool *ret_more, struct err *err)
        _must_check_;

DEFINE_CLEANUP_PTR(struct history_store *, history_store_close)
