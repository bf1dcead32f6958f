/*
 * Records kept once.
 */
#include "model/pool.h"

enum { SLOTS_FIRST = 1 << 10, RECORDS_FIRST = 256 };

void pool_init(struct pool *p, size_t size)
{
        *p = (struct pool){.size = (size + 7) & ~(size_t)7, .cap = RECORDS_FIRST, .n_slots = SLOTS_FIRST};
        p->records = xmalloc(p->cap * p->size);
        p->slots = xcalloc(p->n_slots, sizeof(*p->slots));
}

void pool_done(struct pool *p)
{
        free(p->records);
        free(p->slots);
        *p = (struct pool){0};
}

/* The finisher of MurmurHash3 over each word: quick, and good enough where nobody wishes us ill. */
static uint64_t hash_of(const struct pool *p, const void *record)
{
        uint64_t hash = p->size, word;

        for (size_t i = 0; i < p->size; i += 8) {
                memcpy(&word, (const unsigned char *)record + i, 8);
                hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
                hash ^= hash >> 32;
        }
        hash *= 0xc4ceb9fe1a85ec53ULL;
        return hash ^ hash >> 29;
}

static uint32_t *slot_of(const struct pool *p, const void *record)
{
        size_t i = hash_of(p, record) & (p->n_slots - 1);

        while (p->slots[i] && memcmp(pool_at(p, p->slots[i] - 1), record, p->size) != 0)
                i = (i + 1) & (p->n_slots - 1);
        return &p->slots[i];
}

static void grow_slots(struct pool *p)
{
        free(p->slots);
        p->n_slots *= 2;
        p->slots = xcalloc(p->n_slots, sizeof(*p->slots));
        for (uint32_t i = 0; i < p->n; i++)
                *slot_of(p, pool_at(p, i)) = i + 1;
}

uint32_t pool_intern(struct pool *p, const void *record, bool *ret_new)
{
        uint32_t *slot = slot_of(p, record);

        if (ret_new)
                *ret_new = !*slot;
        if (*slot)
                return *slot - 1;
        if (p->n == p->cap) {
                p->cap *= 2;
                p->records = xrealloc(p->records, p->cap * p->size);
        }
        memcpy(p->records + p->n * p->size, record, p->size);
        *slot = (uint32_t)++p->n;
        if (2 * p->n > p->n_slots)
                grow_slots(p);
        return (uint32_t)p->n - 1;
}
