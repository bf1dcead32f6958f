/*
 * manage_internal.h - what the files of the manager share.
 *
 *   manage.c    hears of changes, keeps what is to be looked at, uses the API
 *   collect.c   owners and dependents
 *   spaces.c    namespaces: their content goes with them, their default account comes with them
 *   jobs.c      carries out what job_decide() decides, and the time to live of finished Jobs
 */
#pragma once

#include "local/manage.h"

struct manager {
        struct loop *loop;
        struct api *api;
        struct store *store;
        const struct log *log;
        struct store_listener listener;
        struct defer work; /* what changed is looked at after the turn in which it did */
        struct map items;  /* uid -> struct item: every object, and owners that somebody names */
        struct list dirty; /* items to look at */
        struct timer more; /* and some are left for the next turn */
        struct list later; /* items whose owner has never been here: it may be on its way */
        struct timer patience;
        const char *namespaces, *jobs, *pods, *accounts; /* types, interned */
};

/* There is one for every object, so it has apart what only some need. */
struct item {
        struct list node; /* of manager.dirty, or alone */
        struct manager *m;
        struct object *version; /* counted: the newest that was heard of; NULL: only named as an owner */
        struct item_kin *kin;   /* NULL: it neither has owners nor dependents */
        struct item_job *job;   /* NULL: nothing is waited for */
        char uid[];
};

struct item_kin {
        VEC(struct item *) dependents;
        VEC(struct item *) owners;
        usec_t owned_since;
        bool was_here; /* it was there and has gone; who depended on it is left */
};

struct item_job {
        struct item *item;
        struct timer again;
        uint64_t waits_for; /* revision of the last pod that was made for it */
};

struct item *item_get(struct manager *m, const char *uid); /* made when it is not there */
/* Whom it belongs to and who belongs to it; empty lists for those who have neither. */
const struct item_kin *item_kin(const struct item *it);
void item_touch(struct item *it); /* looks at it soon */
void item_wait(struct item *it);  /* looks at it in a second */

/* The newest version of an item, parsed; NULL when it has gone meanwhile. */
struct json *item_object(const struct item *it, struct arena *a);
/* A call of the manager on an item; fill in verb and body. */
struct call item_call(const struct item *it, const char *manager, struct arena *a);

void collect(struct item *it, const struct json *object, struct arena *a);
void collect_gone(struct item *it); /* what depended on it must be looked at */
void space_changed(struct manager *m, const struct json *ns, struct arena *a);
void space_lost(struct manager *m, const char *ns); /* something in it has gone */
void job_changed(struct item *it, const struct json *job, struct arena *a);
