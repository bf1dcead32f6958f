#include "base/base.h"

static bool before(const struct heap_slot *a, const struct heap_slot *b)
{
        return a->order != b->order ? a->order < b->order : a->node->sequence < b->node->sequence;
}

static void place(struct heap *h, struct heap_slot slot, size_t i)
{
        h->slots[i] = slot;
        slot.node->at = i + 1;
}

static void sift(struct heap *h, struct heap_node *node, size_t i)
{
        struct heap_slot slot = {node->order, node};

        while (i && before(&slot, &h->slots[(i - 1) / 2])) {
                place(h, h->slots[(i - 1) / 2], i);
                i = (i - 1) / 2;
        }
        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= h->n)
                        break;
                if (child + 1 < h->n && before(&h->slots[child + 1], &h->slots[child]))
                        child++;
                if (!before(&h->slots[child], &slot))
                        break;
                place(h, h->slots[child], i);
                i = child;
        }
        place(h, slot, i);
}

void heap_done(struct heap *h)
{
        for (size_t i = 0; i < h->n; i++)
                h->slots[i].node->at = 0;
        free(h->slots);
        *h = (struct heap)HEAP_INIT;
}

void heap_put(struct heap *h, struct heap_node *node, uint64_t order)
{
        size_t i;

        node->order = order;
        node->sequence = h->sequence++;
        if (node->at) {
                i = node->at - 1;
        } else {
                if (h->n == h->cap) {
                        h->cap = h->cap ? h->cap * 2 : 16;
                        h->slots = xrealloc(h->slots, h->cap * sizeof(*h->slots));
                }
                i = h->n++;
        }
        sift(h, node, i);
}

void heap_remove(struct heap *h, struct heap_node *node)
{
        size_t i = node->at - 1;
        struct heap_node *last;

        if (!node->at)
                return;
        node->at = 0;
        last = h->slots[--h->n].node;
        if (last != node)
                sift(h, last, i);
}
