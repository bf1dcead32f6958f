#include "stats/scaling.h"

#include <math.h>

#include "stats/describe.h"
#include "stats/internal.h"
#include "stats/random.h"
#include "stats/summary.h"

enum { RESAMPLES = 2000, SIZES_LEAST = 4, SAMPLES_LEAST = 5, VERDICT_MAX = 128 };
static const double TOLERANCE = 0.05; /* of an exponent, for it to be called by a growth's name */

/* One size's, with all that was measured at it. */
struct level {
        double size, *values;
        size_t n;
};

struct fit {
        struct level *levels;
        size_t n;
        double *x, *y; /* logarithms of sizes and of medians */
};

static int by_size(const void *a, const void *b)
{
        double x = ((const struct stats_size *)a)->size, y = ((const struct stats_size *)b)->size;

        return (x > y) - (x < y);
}

/* The slope of a line through N points, at least two of which differ in x; RET_ERROR, if not NULL, of the slope. */
static double slope(const double *x, const double *y, size_t n, double *ret_error)
{
        double mx = 0, my = 0, xx = 0, xy = 0, off = 0, found;

        for (size_t i = 0; i < n; i++) {
                mx += x[i] / (double)n;
                my += y[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
                xx += (x[i] - mx) * (x[i] - mx);
                xy += (x[i] - mx) * (y[i] - my);
        }
        found = xy / xx;
        for (size_t i = 0; i < n; i++) {
                double e = y[i] - my - found * (x[i] - mx);

                off += e * e;
        }
        if (ret_error)
                *ret_error = n > 2 ? sqrt(off / (double)(n - 2) / xx) : NAN;
        return found;
}

/* One level for each size that has values; those of the same size are put together. */
static bool gather(struct arena *arena, const struct stats_size *sizes, size_t n, struct fit *f)
{
        struct stats_size *sorted;

        if (n < 2)
                return false;
        sorted = arena_memdup(arena, sizes, n * sizeof(*sorted));
        f->levels = arena_new_array(arena, struct level, n);
        qsort(sorted, n, sizeof(*sorted), by_size);
        for (size_t i = 0, end; i < n; i = end) {
                struct level *l = &f->levels[f->n];
                size_t all = 0;

                for (end = i; end < n && sorted[end].size <= sorted[i].size; end++)
                        all += sorted[end].n;
                *l = (struct level){sorted[i].size, arena_new_array(arena, double, MAX(all, (size_t)1)), 0};
                for (size_t k = i; k < end; k++)
                        for (size_t v = 0; v < sorted[k].n; v++)
                                l->values[l->n++] = sorted[k].values[v];
                if (!stats_positive(&l->size, 1) || !stats_positive(l->values, l->n))
                        return false;
                stats_sort(l->values, l->n);
                f->n += l->n > 0;
        }
        return f->n >= 2;
}

/* Widens the interval by what other drawings of the samples would have given. */
static void resample(const struct fit *f, const char *seed, struct stats_scaling *s)
{
        double slopes[RESAMPLES];
        _cleanup_(free_ptr) double *y = xcalloc(f->n, sizeof(*y)), *drawn = NULL;
        size_t most = 0, least = SIZE_MAX;
        struct rng rng;

        for (size_t i = 0; i < f->n; i++) {
                most = MAX(most, f->levels[i].n);
                least = MIN(least, f->levels[i].n);
        }
        if (least < 2) /* drawn from one, all are that one: that is not certainty */
                return;
        drawn = xcalloc(most, sizeof(*drawn));
        stats_seed(&rng, seed, 0);
        for (size_t r = 0; r < RESAMPLES; r++) {
                for (size_t i = 0; i < f->n; i++) {
                        const struct level *l = &f->levels[i];

                        for (size_t k = 0; k < l->n; k++)
                                drawn[k] = l->values[stats_pick(&rng, l->n)];
                        y[i] = log(stats_median(drawn, l->n));
                }
                slopes[r] = slope(f->x, y, f->n, NULL);
        }
        s->low = stats_nearest_rank(slopes, RESAMPLES, 2.5);
        s->high = stats_nearest_rank(slopes, RESAMPLES, 97.5);
}

struct growth {
        const char *name;
        double power, log_power;
};

static const struct growth growths[] = {
        {"constant", 0, 0},  {"log n", 0, 1},           {"sqrt n", 0.5, 0},
        {"n", 1, 0},         {"n log n", 1, 1},         {"n^1.5", 1.5, 0},
        {"n\302\262", 2, 0}, {"n\302\262 log n", 2, 1}, {"n\302\263", 3, 0},
};

/* The exponent that a growth would show over these sizes; NAN when it has none there. */
static double seen_as(const struct growth *g, const struct fit *f)
{
        _cleanup_(free_ptr) double *y = xcalloc(f->n, sizeof(*y));

        if (g->log_power > 0 && f->levels[0].size < 2)
                return NAN;
        for (size_t i = 0; i < f->n; i++)
                y[i] = g->power * f->x[i] + (g->log_power > 0 ? g->log_power * log(f->x[i]) : 0);
        return slope(f->x, y, f->n, NULL);
}

static const char *name_growth(struct arena *arena, const struct fit *f, const struct stats_scaling *s)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(VERDICT_MAX);
        size_t named = 0;

        for (size_t i = 0; i < ARRAY_LEN(growths); i++) {
                double e = seen_as(&growths[i], f);

                if (e >= s->low - TOLERANCE && e <= s->high + TOLERANCE)
                        buf_printf(&text, "%s%s", named++ ? " or " : "about ", growths[i].name);
        }
        if (!named)
                return arena_printf(arena, "about n^%.2f", s->exponent);
        return arena_strndup(arena, text.p, text.n);
}

bool stats_scaling(struct arena *arena, const struct stats_size *sizes, size_t n, const char *seed,
                   struct stats_scaling *ret)
{
        struct fit f = {0};
        double error;

        *ret = (struct stats_scaling){.exponent = NAN, .low = NAN, .high = NAN};
        if (!gather(arena, sizes, n, &f))
                return false;
        f.x = arena_new_array(arena, double, f.n);
        f.y = arena_new_array(arena, double, f.n);
        ret->sizes = f.n;
        ret->rough = f.n < SIZES_LEAST;
        for (size_t i = 0; i < f.n; i++) {
                f.x[i] = log(f.levels[i].size);
                f.y[i] = log(stats_percentile(f.levels[i].values, f.levels[i].n, 50));
                ret->rough = ret->rough || f.levels[i].n < SAMPLES_LEAST;
        }
        ret->exponent = slope(f.x, f.y, f.n, &error);
        resample(&f, seed, ret);
        if (f.n >= SIZES_LEAST) {
                double off = error * dist_t_limit(0.05, (double)(f.n - 2));

                ret->low = MIN(ret->low, ret->exponent - off);
                ret->high = MAX(ret->high, ret->exponent + off);
        }
        ret->verdict = name_growth(arena, &f, ret);
        return true;
}
