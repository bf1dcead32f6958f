/*
 * Sorting that divides: quick_sort and merge_sort, in one thread or several.
 */
#include <pthread.h>
#include <sched.h>

#include "probe/algorithm/internal.h"

enum { FEW = 16, PARALLEL_LEAST = 4096 /* below that a thread costs more than it saves */ };

/* A part that is sorted on its own. */
struct part {
        int32_t *v, *spare;
        size_t n;
        enum algorithm_pivot pivot;
        struct rng rng;
        unsigned threads; /* it may use, its own included */
        void (*sort)(struct part *p);
};

static unsigned processors(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void *part_main(void *arg)
{
        struct part *p = arg;

        p->sort(p);
        return NULL;
}

/* Both parts: at the same time where there are threads for it, and one can be had. */
static void sort_both(struct part *x, struct part *y)
{
        unsigned threads = x->threads;
        pthread_t thread;

        x->threads = threads / 2;
        y->threads = threads - threads / 2;
        if (threads < 2 || x->n + y->n < PARALLEL_LEAST || pthread_create(&thread, NULL, part_main, x) != 0) {
                x->threads = y->threads = 1;
                x->sort(x);
                y->sort(y);
                return;
        }
        y->sort(y);
        pthread_join(thread, NULL);
}

/* ---- quick_sort */

static int32_t median_of(int32_t x, int32_t y, int32_t z)
{
        int32_t low = MIN(x, y), high = MAX(x, y);

        return z < low ? low : z > high ? high : z;
}

static int32_t pivot_of(struct part *p)
{
        switch (p->pivot) {
        case PIVOT_FIRST:
                return p->v[0];
        case PIVOT_LAST:
                return p->v[p->n - 1];
        case PIVOT_MIDDLE:
                return p->v[(p->n - 1) / 2];
        case PIVOT_RANDOM:
                return p->v[rng_below(&p->rng, p->n)];
        default:
                return median_of(p->v[0], p->v[p->n / 2], p->v[p->n - 1]);
        }
}

/*
 * Hoare's: equal values go to both sides, so that few different ones do not make it slow. How many are in the first part: at
 * least one and not all, whichever value is the pivot.
 */
static size_t divide(int32_t *v, size_t n, int32_t pivot)
{
        size_t i = 0, j = n - 1;

        for (;;) {
                while (v[i] < pivot)
                        i++;
                while (v[j] > pivot)
                        j--;
                if (i >= j)
                        break;
                swap_values(&v[i++], &v[j--]);
        }
        /* Where the pivot is the least and stands first, it alone is the first part. */
        return MAX(i, (size_t)1);
}

/* Recurses into the smaller part alone: no input makes the stack deeper than the size has bits. */
static void quick_part(struct part *p)
{
        while (p->n > FEW) {
                size_t first = divide(p->v, p->n, pivot_of(p));
                struct part low = *p, high = *p;

                low.n = first;
                high.v += first;
                high.n -= first;
                if (p->threads > 1 && p->n >= PARALLEL_LEAST) {
                        sort_both(&low, &high);
                        return;
                }
                quick_part(low.n < high.n ? &low : &high);
                *p = low.n < high.n ? high : low;
        }
        insert_sorted(p->v, p->n);
}

/* ---- merge_sort */

static void merge(const struct part *p, size_t half)
{
        size_t left = 0, right = half;

        /* Only what is before the first half's end needs room elsewhere. */
        memcpy(p->spare, p->v, half * sizeof(*p->v));
        for (size_t at = 0; left < half; at++)
                p->v[at] = right < p->n && p->v[right] < p->spare[left] ? p->v[right++] : p->spare[left++];
}

static void merge_part(struct part *p)
{
        size_t half = p->n / 2;
        struct part low = *p, high = *p;

        if (p->n <= FEW) {
                insert_sorted(p->v, p->n);
                return;
        }
        low.n = half;
        high.v += half;
        high.spare += half;
        high.n -= half;
        sort_both(&low, &high);
        merge(p, half);
}

static void sort_parts(const struct sort *s, void (*sort)(struct part *p))
{
        struct part p = {
                .v = s->values,
                .spare = s->spare,
                .n = s->n,
                .pivot = s->o->pivot,
                .threads = s->o->parallel ? MIN(processors(), 64U) : 1,
                .sort = sort,
        };

        rng_seed(&p.rng, s->o->seed);
        sort(&p);
}

void sort_quick(const struct sort *s)
{
        sort_parts(s, quick_part);
}

void sort_merge(const struct sort *s)
{
        sort_parts(s, merge_part);
}
