/*
 * pool.h - records of one size, each kept once and known by its number.
 *
 * Records are compared as bytes: they have no padding, and what is not used of them is 0.
 */
#pragma once

#include "base/base.h"

struct pool {
        size_t size; /* of a record; a multiple of 8 */
        unsigned char *records;
        size_t n, cap;
        uint32_t *slots; /* number + 1; 0: free */
        size_t n_slots;  /* a power of two */
};

void pool_init(struct pool *p, size_t size);
void pool_done(struct pool *p);
/* The number of RECORD; *RET_NEW (may be NULL): it was not there before. */
uint32_t pool_intern(struct pool *p, const void *record, bool *ret_new);

/* Valid until the next record is added. */
static inline const void *pool_at(const struct pool *p, uint32_t i)
{
        return p->records + (size_t)i * p->size;
}
