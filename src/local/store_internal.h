/*
 * store_internal.h - the parts of the store.
 *
 *   store.c          life, staging, group commit, listeners
 *   store_read.c     look-ups, lists (also at an older revision), replay
 *   store_history.c  the last changes, by revision
 *   store_object.c   versions of objects; where their labels are
 *   store_file.c     the SQLite file and the lock of its directory
 */
#pragma once

#include <pthread.h>

#include "base/tree.h"
#include "local/store.h"

/* ---- store_object.c */

/* A version with one reference; TYPE is interned, all else is copied. */
struct object *object_new(uint64_t rev, const char *type, struct str ns, struct str name, struct str text);
/* "ns/name", or "name" without a namespace: what lists are ordered by. */
struct str object_key(const struct object *o);

/* The same key from its parts, while KEY lives. */
struct key {
        char small[320];
        char *large; /* instead, when it is longer */
};
struct str key_join(struct key *key, struct str ns, struct str name);
static inline void key_done(struct key *key)
{
        free(key->large);
}
DEFINE_CLEANUP_STRUCT(struct key, key_done)

/* ---- store_file.c: used by one thread at a time */

struct store_file;

struct store_row {
        uint64_t rev;
        struct str type, ns, name, text;
        bool is_delete;
};

struct store_file *store_file_open(const char *path, bool durable, struct err *err) _must_check_;
void store_file_close(struct store_file *f);
/* All rows in the order of revisions. RET_OLDEST: rows at or before it may be missing; 0: none is. */
int store_file_load(struct store_file *f, void (*fn)(void *arg, const struct store_row *row), void *arg,
                    uint64_t *ret_oldest, struct err *err) _must_check_;
/* A transaction. After an error nothing of it was done, and it is over. */
int store_file_begin(struct store_file *f, struct err *err) _must_check_;
int store_file_put(struct store_file *f, const struct store_row *row, struct err *err) _must_check_;
int store_file_drop(struct store_file *f, uint64_t rev, struct err *err) _must_check_;
int store_file_set_oldest(struct store_file *f, uint64_t rev, struct err *err) _must_check_;
int store_file_commit(struct store_file *f, struct err *err) _must_check_;

DEFINE_CLEANUP_PTR(struct store_file *, store_file_close)

/* ---- store_history.c: changes (oldest, newest], without a gap */

/* A change as it is kept, once for every object at least: its revision is that of `after`. */
struct past_change {
        struct object *before, *after;
        uint64_t at : 63;
        bool is_delete : 1;
};

struct history {
        struct past_change *ring;
        size_t cap;              /* 0 or a power of two; a change lies at its revision modulo this */
        uint64_t oldest, newest; /* oldest: the last revision that has left */
        size_t keep, most;       /* entries */
        usec_t window;
        VEC(struct object *) dropped; /* left with the history, and perhaps still borrowed */
        size_t ripe;                  /* of them nobody borrows the first so many any more */
        VEC(uint64_t) rows;           /* of the file that nobody needs any more */
        size_t rows_at;               /* those before it have been handed out */
};

/* Nothing has happened yet after revision REV. */
void history_init(struct history *h, const struct store_config *config, uint64_t rev);
void history_done(struct history *h);
static inline size_t history_len(const struct history *h)
{
        return (size_t)(h->newest - h->oldest);
}
struct change history_at(const struct history *h, uint64_t rev);
/* Adds the change of revision newest + 1; its references become the history's. */
void history_push(struct history *h, const struct change *c);
/* Drops what is too much or too old at NOW, or with UP_TO what is not after that revision. */
void history_trim(struct history *h, usec_t now);
void history_drop(struct history *h, uint64_t up_to);
/* The turn of the loop is over: what was borrowed in it is not any more. */
void history_turn(struct history *h);
/* The time at which time alone makes history_trim() drop something; USEC_MAX: never. */
usec_t history_next(const struct history *h);
static inline size_t history_rows(const struct history *h)
{
        return h->rows.n - h->rows_at;
}
/* Moves at most MAX rows that may be deleted to OUT; how many. */
size_t history_take_rows(struct history *h, uint64_t *out, size_t max);

/* ---- the store */

/* One key of a type: there while it has a durable version or staged writes. */
struct slot {
        struct tree_node node;
        struct object *durable; /* what readers see; counted */
        struct object *newest;  /* what writers see; counted; NULL: deleted or never there */
        uint32_t staged;        /* writes that are not durable yet */
        char key[];             /* from the struct's last bytes on: there is a slot for every object */
};

struct ns_count {
        size_t n;
        char name[];
};

struct kind {
        struct tree slots;
        size_t count; /* of durable objects */
        struct map by_ns;
        char name[];
};

/* A write on its way, or (without `change.after`) somebody who waits for those before him. */
struct staged {
        struct list node;
        struct change change;
        struct kind *kind;
        struct slot *slot;
        void (*done)(void *arg);
        void *arg;
};

enum commit_state {
        COMMIT_IDLE,
        COMMIT_QUEUED, /* the worker has not begun */
        COMMIT_RUNNING,
        COMMIT_TAKEN, /* store_close() did not wait for the worker to begin */
        COMMIT_DONE,
};

enum { DROP_BATCH = 512 };

/* What the worker has: a group of writes, or rows to be deleted. Outlives the store when it is queued. */
struct commit {
        struct work work;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        enum commit_state state; /* under the lock */
        struct store *store;     /* NULL: closed. The loop's */
        struct store_file *file;
        struct list group; /* of struct staged */
        uint64_t drop[DROP_BATCH];
        size_t n_drop;
        uint64_t oldest; /* when rows are dropped */
        int result;
        struct err err;
};

struct store {
        struct loop *loop;
        struct store_file *file;
        struct map kinds;
        struct history history; /* its newest is the newest durable revision */
        uint64_t last;          /* newest revision that was given out */
        struct list staged;     /* of struct staged: the next group */
        struct commit *commit;
        bool committing, failed, compact_now;
        struct defer turn_end;
        struct timer trim;
        struct list listeners;
        void (*on_failure)(void *arg, const struct err *err);
        void *arg;
};

struct kind *store_kind(const struct store *s, const char *type); /* NULL: never heard of */
