/*
 * store.h - objects and their revisions: one SQLite file, group commit, history for watches.
 *
 * Every write gets the next revision of one counter; an object's resourceVersion is the revision of its last write.
 * The file is a log: one row a write (revision, type, namespace, name, text; a deletion is a row too). Memory holds
 * the newest version of every object in key order, and the last writes (the history) for watches, for lists that go
 * on at an older revision, and for nothing else. Rows that were superseded and have left the history are deleted now
 * and then, in a commit of their own. What is in the history is in the file too, so a watch may resume after a restart.
 *
 * A write is staged at once and durable later: what is staged during a turn of the loop, and while the commit before
 * it is under way, is committed together on the worker thread (WAL, synchronous=FULL). Until then only writers see it
 * (store_newest), so that a chain of writes can be staged, while readers (store_get, store_list, watches) see what is
 * durable. `done` callbacks come in the order of staging, after listeners heard of the writes. A commit that fails
 * (disk full, I/O error) ends the engine: on_failure is called once, nothing staged is ever acknowledged.
 *
 * Text is what clients are served, byte for byte, resourceVersion included: the writer asks store_next_rev() first.
 */
#pragma once

#include "net/loop.h"

struct store;

/* One version of one object. Never changed; counted, so that a history entry, a list and a watch may share it. */
struct object {
        unsigned refs;
        uint64_t rev;
        const char *type; /* "pods", "jobs.batch": interned, compare pointers (store_type) */
        const char *ns;   /* "" for cluster-scoped */
        const char *name;
        struct str text; /* compact JSON, NUL-terminated */
};

struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is harmless */
/* The value of metadata.labels in the text of an object; empty when there is none. Reads no further than it needs. */
struct str object_find_labels(struct str text);

struct store_config {
        const char *path; /* the file; its directory exists and is locked by the store */
        bool durable;     /* false: no fsync */
        size_t history;   /* writes kept for watches; 0: 10 000 */
        usec_t window;    /* and for at least this long, up to ten times as many; 0: 5 minutes */
        void (*on_failure)(void *arg, const struct err *err);
        void *arg;
};

/* E_CONFIG: another engine has the directory (its pid is named), or the file is of a newer version. */
struct store *store_open(struct loop *loop, const struct store_config *config, struct err *err) _must_check_;
/* Commits what is staged first, in the calling thread if need be. Calls no `done` and no listener any more (a writer that
 * wants to hear waits with store_after() before); on_failure if that commit fails. Not from inside a callback. */
void store_close(struct store *s);

/* The interned name of a type. */
const char *store_type(struct store *s, const char *type);

/* The newest durable revision: resourceVersion of lists. 1 of an empty store, as etcd has it. */
uint64_t store_rev(const struct store *s);
uint64_t store_oldest(const struct store *s);   /* the oldest revision that a watch may resume after */
uint64_t store_next_rev(const struct store *s); /* that the next staged write will get */

/* Borrowed until the loop's next turn; NULL: not there. */
struct object *store_get(const struct store *s, const char *type, const char *ns, const char *name);
struct object *store_newest(const struct store *s, const char *type, const char *ns, const char *name);

/*
 * Objects of TYPE in the order of "namespace/name", from the first key after START (NULL: from the beginning), in
 * namespace NS (NULL, "": all), as they were at revision REV (0: now). FN returns false to stop. E_EXPIRED: REV has left
 * the history; E_INVALID: it is in the future. Staging inside FN is allowed and not seen by the iteration. What FN gets
 * is borrowed as from store_get().
 */
struct store_range {
        const char *type;
        const char *ns;
        const char *start; /* "ns/name", or "name" for cluster-scoped types */
        uint64_t rev;
        bool newest; /* instead: what writers see, staged writes included; REV is 0 */
};
int store_list(struct store *s, const struct store_range *range, bool (*fn)(void *arg, struct object *o),
               void *arg, struct err *err) _must_check_;
size_t store_count(const struct store *s, const char *type, const char *ns); /* durable; NS as above */

/* ---- writes */

struct store_write {
        const char *type;
        const char *ns, *name;
        struct str
                text; /* of the new version; of a deleted object: its last state with the deletion's revision */
        bool is_delete;
};
/* Stages the write; returns its revision. DONE may be NULL. After a failure it does nothing. */
uint64_t store_stage(struct store *s, const struct store_write *w, void (*done)(void *arg), void *arg);
/* DONE as soon as everything staged so far is durable (at once if it is). For answers to writes that changed nothing. */
void store_after(struct store *s, void (*done)(void *arg), void *arg);

/*
 * ---- changes, in the order of revisions, after they are durable. While a listener or a `done` hears of revision R,
 * store_rev() is R and readers see exactly that state: who replays up to store_rev() and begins to listen, there or
 * anywhere else, misses nothing and hears nothing twice.
 */

struct change {
        uint64_t rev;
        struct object *before; /* NULL: created */
        struct object *after;  /* of a deletion: its last state; never NULL */
        bool is_delete;
        usec_t at; /* loop time */
};
struct store_listener {
        struct list node;
        void (*fn)(struct store_listener *l, const struct change *c);
};
void store_listen(struct store *s, struct store_listener *l);
void store_unlisten(struct store_listener *l); /* also inside its own fn */
/* Changes after revision REV that are still in the history. E_EXPIRED: some of them have left it. */
int store_replay(struct store *s, uint64_t rev, void (*fn)(void *arg, const struct change *c), void *arg,
                 struct err *err) _must_check_;
/* Drops the history up to REV, as etcd's compaction does. For tests. */
void store_compact(struct store *s, uint64_t rev);

DEFINE_CLEANUP_PTR(struct store *, store_close)
