#include "local/store_internal.h"

enum { HISTORY_KEEP = 10000, HISTORY_MOST = 10, RING_FIRST = 64 };

void history_init(struct history *h, const struct store_config *config, uint64_t rev)
{
        size_t keep = config->history ? config->history : HISTORY_KEEP;

        *h = (struct history){
                .oldest = rev,
                .newest = rev,
                .keep = keep,
                .most = keep > SIZE_MAX / HISTORY_MOST ? SIZE_MAX : keep * HISTORY_MOST,
                .window = config->window ? config->window : 300 * USEC_PER_SEC,
        };
}

void history_done(struct history *h)
{
        history_drop(h, h->newest);
        vec_foreach (o, &h->dropped)
                object_unref(*o);
        vec_done(&h->dropped);
        vec_done(&h->rows);
        free(h->ring);
        h->ring = NULL;
        h->cap = 0;
}

static struct past_change *place(const struct history *h, uint64_t rev)
{
        return &h->ring[rev & (h->cap - 1)];
}

struct change history_at(const struct history *h, uint64_t rev)
{
        const struct past_change *c = place(h, rev);

        return (struct change){
                .rev = rev, .before = c->before, .after = c->after, .is_delete = c->is_delete, .at = c->at};
}

static void grow(struct history *h)
{
        struct history old = *h;

        h->cap = old.cap ? old.cap * 2 : RING_FIRST;
        h->ring = xcalloc(h->cap, sizeof(*h->ring));
        for (uint64_t rev = old.oldest + 1; rev <= old.newest; rev++)
                *place(h, rev) = *place(&old, rev);
        free(old.ring);
}

void history_push(struct history *h, const struct change *c)
{
        if (history_len(h) == h->cap)
                grow(h);
        h->newest = c->rev;
        *place(h, c->rev) = (struct past_change){.before = c->before,
                                                 .after = c->after,
                                                 .at = c->at & (UINT64_MAX >> 1),
                                                 .is_delete = c->is_delete};
}

/* What is in nobody's hands after this: the version before it, and a deletion itself. */
static void drop_oldest(struct history *h)
{
        struct past_change *c = place(h, ++h->oldest);

        if (c->before) {
                *vec_push(&h->rows) = c->before->rev;
                *vec_push(&h->dropped) = c->before;
        }
        if (c->is_delete)
                *vec_push(&h->rows) = h->oldest;
        *vec_push(&h->dropped) = c->after;
        *c = (struct past_change){0};
}

/* References are given back a turn later than the history is trimmed, for what is borrowed. */
static void release_ripe(struct history *h)
{
        if (!h->ripe)
                return;
        for (size_t i = 0; i < h->ripe; i++)
                object_unref(h->dropped.v[i]);
        h->dropped.n -= h->ripe;
        memmove(h->dropped.v, h->dropped.v + h->ripe, h->dropped.n * sizeof(*h->dropped.v));
        h->ripe = 0;
}

void history_turn(struct history *h)
{
        h->ripe = h->dropped.n;
}

void history_trim(struct history *h, usec_t now)
{
        release_ripe(h);
        while (history_len(h) > h->keep &&
               (history_len(h) > h->most || usec_add(place(h, h->oldest + 1)->at, h->window) <= now))
                drop_oldest(h);
}

void history_drop(struct history *h, uint64_t up_to)
{
        release_ripe(h);
        while (h->oldest < MIN(up_to, h->newest))
                drop_oldest(h);
}

usec_t history_next(const struct history *h)
{
        if (history_len(h) <= h->keep)
                return USEC_MAX;
        return usec_add(place(h, h->oldest + 1)->at, h->window);
}

size_t history_take_rows(struct history *h, uint64_t *out, size_t max)
{
        size_t n = MIN(history_rows(h), max);

        if (n == 0)
                return 0;
        memcpy(out, h->rows.v + h->rows_at, n * sizeof(*out));
        h->rows_at += n;
        if (h->rows_at > h->rows.n / 2) {
                h->rows.n -= h->rows_at;
                memmove(h->rows.v, h->rows.v + h->rows_at, h->rows.n * sizeof(*out));
                h->rows_at = 0;
        }
        return n;
}
