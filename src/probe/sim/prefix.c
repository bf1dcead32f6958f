#include "probe/sim/prefix.h"

static uint64_t key_of(uint64_t prompt)
{
        return prompt ? prompt : 1; /* 0 marks a free slot */
}

/* Hashes of prompts may be numbers that a test counts: spread them. */
static size_t home_of(const struct prefix_cache *c, uint64_t key)
{
        return (size_t)((key * 0x9e3779b97f4a7c15u) >> 20) & (c->cap - 1);
}

/* Where KEY is, or the free slot where it would be. */
static size_t find(const struct prefix_cache *c, uint64_t key)
{
        size_t i = home_of(c, key);

        while (c->slots[i] && c->slots[i] != key)
                i = (i + 1) & (c->cap - 1);
        return i;
}

void prefix_done(struct prefix_cache *c)
{
        free(c->slots);
        free(c->order);
        *c = (struct prefix_cache){0};
}

bool prefix_has(const struct prefix_cache *c, uint64_t prompt)
{
        return c->cap && c->slots[find(c, key_of(prompt))];
}

/* Moves those behind the gap back that could not be found over it any more. */
static void take_out(struct prefix_cache *c, uint64_t key)
{
        size_t gap = find(c, key);

        c->slots[gap] = 0;
        for (size_t i = (gap + 1) & (c->cap - 1); c->slots[i]; i = (i + 1) & (c->cap - 1)) {
                size_t home = home_of(c, c->slots[i]);

                if (((i - home) & (c->cap - 1)) < ((i - gap) & (c->cap - 1)))
                        continue;
                c->slots[gap] = c->slots[i];
                c->slots[i] = 0;
                gap = i;
        }
}

static void grow(struct prefix_cache *c)
{
        if (c->n == c->order_cap) {
                c->order_cap = c->order_cap ? c->order_cap * 2 : 64;
                c->order = xrealloc(c->order, c->order_cap * sizeof(*c->order));
        }
        if (2 * (c->n + 1) <= c->cap)
                return;
        free(c->slots);
        c->cap = c->cap ? c->cap * 2 : 128;
        c->slots = xcalloc(c->cap, sizeof(*c->slots));
        for (size_t i = 0; i < c->n; i++)
                c->slots[find(c, c->order[i])] = c->order[i];
}

void prefix_add(struct prefix_cache *c, uint64_t prompt)
{
        uint64_t key = key_of(prompt);

        if (prefix_has(c, prompt))
                return;
        if (c->n < PREFIX_MAX) {
                grow(c);
                c->order[c->n++] = key;
        } else {
                take_out(c, c->order[c->oldest]);
                c->order[c->oldest] = key;
                c->oldest = (c->oldest + 1) % PREFIX_MAX;
        }
        c->slots[find(c, key)] = key;
}
