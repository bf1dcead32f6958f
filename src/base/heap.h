/*
 * heap.h - intrusive binary heap, smallest first (timers, delayed keys).
 *
 * The element embeds a struct heap_node; among equal orders the one added first comes first, so that everything
 * that uses a heap is deterministic.
 */
#pragma once

#include "base/mem.h"

struct heap_node {
        uint64_t order; /* e.g. a time; changed only through heap_put() */
        uint64_t sequence;
        size_t at; /* position + 1; 0: on no heap */
};

/* The order is here as well: what is compared lies together, and the elements may be anywhere. */
struct heap_slot {
        uint64_t order;
        struct heap_node *node;
};

struct heap {
        struct heap_slot *slots;
        size_t n, cap;
        uint64_t sequence;
};

#define HEAP_INIT \
        {         \
                0 \
        }

void heap_done(struct heap *h); /* forgets the elements, which are not ours */
/* Adds NODE at ORDER, or moves it there. */
void heap_put(struct heap *h, struct heap_node *node, uint64_t order);
void heap_remove(struct heap *h, struct heap_node *node); /* harmless when it is on no heap */

static inline struct heap_node *heap_first(const struct heap *h)
{
        return h->n ? h->slots[0].node : NULL;
}
