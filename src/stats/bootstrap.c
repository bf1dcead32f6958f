#include "stats/internal.h"

#include <math.h>

/* A block of a pod, whatever ran in it. */
struct block {
        uint32_t pod, block;
};

/* The samples of one side: for each block the ranks of its own, ranks[from[block]] ... ranks[from[block + 1] - 1]. */
struct side {
        double *sorted;
        uint32_t *ranks, *counts;
        size_t *from;
        size_t n;
};

struct bootstrap {
        VEC(struct block) blocks; /* sorted: those of a pod are together */
        VEC(size_t) pods;         /* where each begins, and at last the number of blocks */
        struct side *sides;
        size_t n;
        size_t *drawn, n_drawn;
};

static int by_pod_and_block(const void *a, const void *b)
{
        const struct block *x = a, *y = b;

        if (x->pod != y->pod)
                return x->pod < y->pod ? -1 : 1;
        return x->block < y->block ? -1 : x->block > y->block;
}

/* The largest pod, drawn every time. */
static size_t most_drawn(const struct bootstrap *b)
{
        size_t most = 0;

        for (size_t i = 0; i + 1 < b->pods.n; i++)
                most = MAX(most, b->pods.v[i + 1] - b->pods.v[i]);
        return most * (b->pods.n - 1);
}

static void find_blocks(struct bootstrap *b, const struct stats_side *const *sides)
{
        size_t kept = 0;

        for (size_t i = 0; i < b->n; i++)
                for (size_t j = 0; j < sides[i]->n; j++)
                        *vec_push(&b->blocks) = (struct block){sides[i]->samples[j].pod,
                                                               sides[i]->samples[j].block};
        if (b->blocks.n)
                qsort(b->blocks.v, b->blocks.n, sizeof(*b->blocks.v), by_pod_and_block);
        for (size_t i = 0; i < b->blocks.n; i++)
                if (!kept || by_pod_and_block(&b->blocks.v[kept - 1], &b->blocks.v[i]) != 0)
                        b->blocks.v[kept++] = b->blocks.v[i];
        b->blocks.n = kept;
        for (size_t i = 0; i < kept; i++)
                if (!i || b->blocks.v[i].pod != b->blocks.v[i - 1].pod)
                        *vec_push(&b->pods) = i;
        *vec_push(&b->pods) = kept;
        b->drawn = xcalloc(most_drawn(b), sizeof(*b->drawn));
}

struct placed {
        double value;
        size_t block; /* index */
};

static int by_value(const void *a, const void *b)
{
        const struct placed *x = a, *y = b;

        return x->value < y->value ? -1 : x->value > y->value;
}

static void take_side(struct side *s, const struct stats_side *side, const struct bootstrap *b)
{
        _cleanup_(free_ptr) struct placed *placed = xcalloc(side->n, sizeof(*placed));
        _cleanup_(free_ptr) size_t *next = xcalloc(b->blocks.n, sizeof(*next));

        *s = (struct side){xcalloc(side->n, sizeof(*s->sorted)), xcalloc(side->n, sizeof(*s->ranks)),
                           xcalloc(side->n, sizeof(*s->counts)), xcalloc(b->blocks.n + 1, sizeof(*s->from)),
                           side->n};
        for (size_t i = 0; i < side->n; i++) {
                struct block key = {side->samples[i].pod, side->samples[i].block};
                const struct block *found = bsearch(&key, b->blocks.v, b->blocks.n, sizeof(key),
                                                    by_pod_and_block);

                placed[i] = (struct placed){side->samples[i].value, (size_t)(found - b->blocks.v)};
                s->from[placed[i].block + 1]++;
        }
        for (size_t i = 0; i < b->blocks.n; i++) {
                next[i] = s->from[i];
                s->from[i + 1] += s->from[i];
        }
        qsort(placed, side->n, sizeof(*placed), by_value);
        for (size_t i = 0; i < side->n; i++) {
                s->sorted[i] = placed[i].value;
                s->ranks[next[placed[i].block]++] = (uint32_t)i;
        }
}

static void bootstrap_done(struct bootstrap *b)
{
        for (size_t i = 0; i < b->n; i++) {
                free(b->sides[i].sorted);
                free(b->sides[i].ranks);
                free(b->sides[i].counts);
                free(b->sides[i].from);
        }
        free(b->sides);
        vec_done(&b->blocks);
        vec_done(&b->pods);
        free(b->drawn);
}
DEFINE_CLEANUP_STRUCT(struct bootstrap, bootstrap_done)

/* As many pods as there are, and of each as many blocks as it has. */
static void draw(struct bootstrap *b, struct rng *rng)
{
        size_t pods = b->pods.n - 1;

        b->n_drawn = 0;
        for (size_t i = 0; i < pods; i++) {
                size_t pod = pods > 1 ? stats_pick(rng, pods) : 0;
                size_t from = b->pods.v[pod], blocks = b->pods.v[pod + 1] - from;

                for (size_t j = 0; j < blocks; j++)
                        b->drawn[b->n_drawn++] = from + stats_pick(rng, blocks);
        }
}

/* The values in the middle are found by counting from the smallest: nothing is sorted. */
static double median_of_drawn(struct side *s, const size_t *drawn, size_t n)
{
        size_t total = 0, seen = 0, i = 0;
        double low;

        memset(s->counts, 0, s->n * sizeof(*s->counts));
        for (size_t j = 0; j < n; j++)
                for (size_t k = s->from[drawn[j]]; k < s->from[drawn[j] + 1]; k++, total++)
                        s->counts[s->ranks[k]]++;
        if (!total)
                return NAN;
        while ((seen += s->counts[i]) <= (total - 1) / 2)
                i++;
        low = s->sorted[i];
        while (seen <= total / 2)
                seen += s->counts[++i];
        return (low + s->sorted[i]) / 2;
}

void bootstrap_medians(const struct stats_side *const *sides, size_t n, struct rng *rng, size_t resamples,
                       double *ret)
{
        _cleanup_(bootstrap_done) struct bootstrap b = {.n = n, .sides = xcalloc(n, sizeof(*b.sides))};

        find_blocks(&b, sides);
        for (size_t i = 0; i < n; i++)
                take_side(&b.sides[i], sides[i], &b);
        for (size_t i = 0; i < resamples; i++) {
                draw(&b, rng);
                for (size_t j = 0; j < n; j++)
                        ret[j * resamples + i] = median_of_drawn(&b.sides[j], b.drawn, b.n_drawn);
        }
}
