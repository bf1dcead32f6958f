/*
 * reflector.h - keeps a cache equal to the server.
 *
 *   start ──> watchlist ──(refused, failed)──> list, page by page ──> watch ──> (end) watch again at the last version
 *                                                ^                      │
 *                                                └── 410, version went back, any failure that lasts ──┘
 *
 * - The first list may come from the server's cache (resourceVersion 0); a later one is not older than what was seen;
 *   after 410 or "too large" it is a consistent read.
 * - The last version moves with every event and bookmark after it was stored; an event that is not newer than that is
 *   a repetition and dropped, so the cache never goes back.
 * - A watch that ends is resumed at once, but one that lived under a second without an event counts as a failure;
 *   failures back off from 100 ms to 30 s, doubled, with jitter. 429 waits as told. There is no busy loop.
 * - Dead peers: TCP keepalive (http_client) and, above it, the watchdog: when a watch has said nothing for 100 s, or
 *   was connected again after a failure, it is begun again where it was (what was missed comes now, or 410 does) and
 *   one consistent `limit=1` list asks for the server's version: lower than ours (etcd was restored), and everything is
 *   listed anew.
 * - An object that is beyond what can be read (nested too deeply) is logged, counted and left out, not waited for.
 * - 404 (the CRD is not there) and 403 wait with backoff like any failure, and are told through reflector_error(). Where
 *   the kind is optional, a 404 means that there is nothing: the cache is complete, and empty, until the kind comes.
 */
#pragma once

#include "kube/cache.h"
#include "kube/client.h"

struct reflector;

struct reflector_config {
        struct kube *kube;
        struct cache *cache;
        const char *ns;             /* NULL: all namespaces */
        const char *label_selector; /* copied; may be NULL */
        const char *field_selector;
        unsigned page;           /* objects a page; 0: 500 */
        usec_t watchdog;         /* 0: 100 s */
        bool no_watch_list;      /* start with a plain list */
        bool optional;           /* the server may not have the kind */
        bool held;               /* asks for nothing before reflector_begin() */
        struct metrics *metrics; /* may be NULL */
        /* The cache is complete for the first time, or again after a new list or the kind's end. May be NULL. Neither of the two may free
         * the reflector. */
        void (*on_synced)(void *arg, bool first);
        /* The last version moved. May be NULL. */
        void (*on_version)(void *arg);
        void *arg;
};

struct reflector *reflector_new(const struct reflector_config *config);
void reflector_free(struct reflector *r);
void reflector_begin(struct reflector *r); /* one that is held; nothing of one that has begun */

bool reflector_synced(const struct reflector *r);
const char *reflector_version(const struct reflector *r); /* last resourceVersion seen, "" at first */
/* How many times a history was left behind (etcd restored): versions before and after are not comparable. */
uint64_t reflector_epoch(const struct reflector *r);
/* An optional kind that the server does not have now. */
bool reflector_absent(const struct reflector *r);
/* Somebody has seen the server: what waits for a backoff is tried at once. */
void reflector_hurry(struct reflector *r);
/* Time since the server last said anything (event, bookmark, list). */
usec_t reflector_age(const struct reflector *r);
/* Why it is not up to date now; NULL: it is. */
const struct err *reflector_error(const struct reflector *r);

DEFINE_CLEANUP_PTR(struct reflector *, reflector_free)
