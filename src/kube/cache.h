/*
 * cache.h - packed objects with indexes.
 *
 * One cache holds the objects of one type (and one selector). An entry is one block of memory: its names, uid and
 * resource version, and the object, packed (json/pack.h), without managedFields and the last-applied annotation (and
 * whatever else the cache's projection leaves out). Whoever wants to look inside unpacks it into an arena of his own.
 * What has ended is squeezed (squeeze.h), which loses nothing.
 * Entries are found by namespace and name, by uid, by the uid of their controlling owner, and by further declared indexes.
 *
 * A listener hears of every change after it was made; what was there before is still readable during the call.
 */
#pragma once

#include "kube/type.h"

struct cache;

struct cache_entry {
        const char *ns, *name, *uid, *rv; /* never NULL; ns is "" for cluster-scoped objects */
        const char *owner;                /* uid of the controlling owner (or see owner_label), "" if none */
        bool deleting;                    /* has a deletionTimestamp */
};

struct cache_index {
        const char *path; /* dotted path of a string in the object */
};

struct cache_config {
        const struct kube_type *type;
        const struct cache_index *indexes; /* beside uid and owner; at most 4 */
        size_t n_indexes;
        const char
                *owner_label; /* this label has the owner's uid, instead of ownerReferences; NULL: none has */
        /* May drop what need not be kept (e.g. of terminal objects); not metadata's names, uid, version, owners. */
        void (*project)(struct json *object, struct arena *a);
        /* It has ended: there may be many of those, and nobody looks at them often. Kept in fewer bytes; may be NULL. */
        bool (*ended)(const struct json *object);
        struct metrics *metrics; /* may be NULL */
};

enum cache_change { CACHE_ADDED, CACHE_UPDATED, CACHE_REMOVED };
/* BEFORE is NULL for ADDED, AFTER for REMOVED. INITIAL: part of a (re)list, not a fresh change. */
typedef void (*cache_listener)(void *arg, enum cache_change change, const struct cache_entry *before,
                               const struct cache_entry *after, bool initial);

struct cache *cache_new(const struct cache_config *config);
void cache_free(struct cache *c);
void cache_listen(struct cache *c, cache_listener fn, void *arg);
void cache_unlisten(struct cache *c, cache_listener fn, void *arg); /* not in a listener */
const struct kube_type *cache_type(const struct cache *c);

const struct cache_entry *cache_get(const struct cache *c, const char *ns, const char *name);
const struct cache_entry *cache_get_uid(const struct cache *c, const char *uid);
size_t cache_count(const struct cache *c);
size_t cache_bytes(const struct cache *c); /* of entries, for the metric */

/* Entries whose owner (or index I) is VALUE, in no particular order: for (e = first; e; e = next). NULL: the end. */
const struct cache_entry *cache_first_owned(const struct cache *c, const char *owner_uid);
const struct cache_entry *cache_next_owned(const struct cache *c, const struct cache_entry *e);
const struct cache_entry *cache_first_indexed(const struct cache *c, size_t index, const char *value);
const struct cache_entry *cache_next_indexed(const struct cache *c, size_t index,
                                             const struct cache_entry *e);
/* Forgets this version of an entry without a word to the listeners; it comes back with its next change, or the next list. */
void cache_forget(struct cache *c, const char *ns, const char *name, const char *rv);
/* All entries; *I starts at 0. Nothing may change meanwhile. */
const struct cache_entry *cache_next(const struct cache *c, size_t *i);

/* The object, with apiVersion and kind. Its member names are the cache's, which must live as long as it does. */
struct json *cache_parse(const struct cache *c, const struct cache_entry *e, struct arena *a);

/* ---- the reflector's side */

/* Takes in an object (changed: managedFields go). E_INVALID: no name, uid or resourceVersion in it. */
int cache_put(struct cache *c, struct json *object, struct arena *a, bool initial, struct err *err)
        _must_check_;
void cache_remove(struct cache *c, const char *ns, const char *name);
/* A list begins: everything not put until cache_end_replace() is removed then. May be begun again. */
void cache_begin_replace(struct cache *c);
void cache_end_replace(struct cache *c);

DEFINE_CLEANUP_PTR(struct cache *, cache_free)
