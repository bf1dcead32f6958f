/*
 * map.h - hash table from strings to pointers.
 *
 * Keys are borrowed: they must live as long as their entry (usually inside the value). Hashing is keyed with a seed
 * drawn once per process, so names chosen by strangers cannot make it slow. Open addressing, linear probing, at
 * most 3/4 full, 24 bytes a slot; grows and shrinks by itself. Order is arbitrary.
 */
#pragma once

#include "base/str.h"

struct map_slot {
        const char *key; /* NULL: free */
        void *value;
        uint32_t len, hash;
};

struct map {
        struct map_slot *slots;
        size_t n, cap; /* cap: 0 or a power of two */
};

#define MAP_INIT  \
        {         \
                0 \
        }

void map_done(struct map *m);
void *map_get(const struct map *m, struct str key);
/* Sets KEY to VALUE (not NULL); returns what it replaced, or NULL. The new key pointer is kept in any case. */
void *map_put(struct map *m, struct str key, void *value);
void *map_remove(struct map *m, struct str key); /* what was there, or NULL */

/* Iteration: for (size_t i = 0; map_next(m, &i, &v);). Nothing may be added or removed meanwhile. */
bool map_next(const struct map *m, size_t *i, void **ret_value);
#define map_foreach(i, m, v) for (size_t i = 0; map_next((m), &i, (void **)&(v));)

uint64_t str_hash(struct str s); /* SipHash-1-3 with the process's seed */

DEFINE_CLEANUP_STRUCT(struct map, map_done)
