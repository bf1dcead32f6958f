/*
 * history_file.h - the SQLite file of a history. Blocks: used on the worker's thread, by one thread at a time.
 *
 *   run    one row a run and attempt: who it was, its shape, how it ended, when (microseconds since 1970)
 *   phase  one row a phase of it: how long it took, how many steps, their sum, and their durations as JSON (a number is one
 *          step, [n, seconds] are n together; see track.h)
 */
#pragma once

#include "history/history.h"

struct history_file;

/* A row that is to be written; strings are the row's own. */
struct history_pending {
        struct list node;
        char *uid, *kind, *ns, *name, *shape, *outcome;
        uint64_t attempt;
        usec_t started, finished;
        struct track *track; /* NULL: nothing is known */
        void (*done)(void *arg, const struct err *err);
        void *arg;
};

struct history_file *history_file_open(const char *path, struct err *err) _must_check_;
void history_file_close(struct history_file *f);
/* All rows of the list (struct history_pending) in one transaction; after an error none of them is there. */
int history_file_write(struct history_file *f, const struct list *rows, struct err *err) _must_check_;
int history_file_priors(struct history_file *f, const char *shape, struct priors *ret, struct err *err)
        _must_check_;

DEFINE_CLEANUP_PTR(struct history_file *, history_file_close)
