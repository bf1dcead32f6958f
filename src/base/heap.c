#include "base/base.h"

static bool before(const struct heap_node *a, const struct heap_node *b)
{
        return a->order != b->order ? a->order < b->order : a->sequence < b->sequence;
}

static void place(struct heap *h, struct heap_node *node, size_t i)
{
        h->nodes[i] = node;
        node->at = i + 1;
}

static void sift(struct heap *h, struct heap_node *node, size_t i)
{
        while (i && before(node, h->nodes[(i - 1) / 2])) {
                place(h, h->nodes[(i - 1) / 2], i);
                i = (i - 1) / 2;
        }
        for (;;) {
                size_t child = 2 * i + 1;

                if (child >= h->n)
                        break;
                if (child + 1 < h->n && before(h->nodes[child + 1], h->nodes[child]))
                        child++;
                if (!before(h->nodes[child], node))
                        break;
                place(h, h->nodes[child], i);
                i = child;
        }
        place(h, node, i);
}

void heap_done(struct heap *h)
{
        for (size_t i = 0; i < h->n; i++)
                h->nodes[i]->at = 0;
        free(h->nodes);
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
                        h->nodes = xrealloc(h->nodes, h->cap * sizeof(*h->nodes));
                }
                i = h->n++;
                h->nodes[i] = node;
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
        last = h->nodes[--h->n];
        if (last != node)
                sift(h, last, i);
}
