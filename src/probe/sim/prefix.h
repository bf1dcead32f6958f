/*
 * prefix.h - the prompts that a simulated engine has seen: a set of hashes of bounded size, the oldest out first.
 */
#pragma once

#include "base/base.h"

enum { PREFIX_MAX = 100000 };

struct prefix_cache {
        uint64_t *slots; /* open addressing; 0: free */
        size_t cap;      /* 0 or a power of two, at most half full */
        uint64_t *order; /* a ring of PREFIX_MAX once it is full; until then as they came */
        size_t n, order_cap, oldest;
};

void prefix_done(struct prefix_cache *c);
bool prefix_has(const struct prefix_cache *c, uint64_t prompt);
void prefix_add(struct prefix_cache *c, uint64_t prompt); /* harmless when it is there */
