#include <math.h>

#include "stats/describe.h"
#include "stats/internal.h"
#include "stats/summary.h"
#include "stats/tests.h"

enum {
        EXACT_PAIRS = 400,
        SHIFT_MOST = 1000, /* values a side of which all differences are taken */
        SPEARMAN_LEAST = 4,
        SPEARMAN_EXACT = 7 /* pairs: 5 040 orders */
};

struct ranked {
        double value;
        size_t at;
};

static int by_value(const void *a, const void *b)
{
        double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;

        return (x > y) - (x < y);
}

/* RET_TIES: the sum of t^3 - t over groups of t equal values. */
static void rank_all(const double *values, size_t n, double *ret_ranks, double *ret_ties)
{
        _cleanup_(free_ptr) struct ranked *sorted = xcalloc(MAX(n, (size_t)1), sizeof(*sorted));

        for (size_t i = 0; i < n; i++)
                sorted[i] = (struct ranked){values[i], i};
        if (n)
                qsort(sorted, n, sizeof(*sorted), by_value);
        *ret_ties = 0;
        for (size_t i = 0, end; i < n; i = end) {
                double t;

                for (end = i + 1; end < n && sorted[end].value <= sorted[i].value;)
                        end++;
                t = (double)(end - i);
                *ret_ties += t * t * t - t;
                for (size_t j = i; j < end; j++)
                        ret_ranks[sorted[j].at] = ((double)(i + end) + 1) / 2;
        }
}

void stats_ranks(const double *values, size_t n, double *ret_ranks)
{
        double ties;

        rank_all(values, n, ret_ranks, &ties);
}

static double correlation(const double *x, const double *y, size_t n)
{
        double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;

        for (size_t i = 0; i < n; i++) {
                mx += x[i] / (double)n;
                my += y[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
                xx += (x[i] - mx) * (x[i] - mx);
                yy += (y[i] - my) * (y[i] - my);
                xy += (x[i] - mx) * (y[i] - my);
        }
        return xx > 0 && yy > 0 ? MAX(-1.0, MIN(1.0, xy / sqrt(xx * yy))) : NAN;
}

struct orders {
        const double *x;
        double *y;
        size_t n;
        double least; /* of the products' distance from what is expected */
        double mean;
        size_t seen, as_far;
};

/* All orders of y from AT on. */
static void try_orders(struct orders *o, size_t at, double sum)
{
        if (at == o->n) {
                o->seen++;
                o->as_far += fabs(sum - o->mean) >= o->least - 1e-9;
                return;
        }
        for (size_t i = at; i < o->n; i++) {
                double y = o->y[i];

                o->y[i] = o->y[at];
                o->y[at] = y;
                try_orders(o, at + 1, sum + o->x[at] * y);
                o->y[at] = o->y[i];
                o->y[i] = y;
        }
}

static double exact_spearman(const double *x, double *y, size_t n)
{
        struct orders o = {.x = x, .y = y, .n = n};
        double middle = ((double)n + 1) / 2, sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += x[i] * y[i];
        o.mean = (double)n * middle * middle;
        o.least = fabs(sum - o.mean);
        try_orders(&o, 0, 0);
        return (double)o.as_far / (double)o.seen;
}

void stats_spearman(const double *x, const double *y, size_t n, double *ret_rho, double *ret_p)
{
        _cleanup_(free_ptr) double *ranks = NULL;
        double rho;

        *ret_rho = *ret_p = NAN;
        if (n < SPEARMAN_LEAST || !stats_usable(x, n) || !stats_usable(y, n))
                return;
        ranks = xcalloc(2 * n, sizeof(*ranks));
        stats_ranks(x, n, ranks);
        stats_ranks(y, n, ranks + n);
        rho = correlation(ranks, ranks + n, n);
        if (isnan(rho))
                return;
        *ret_rho = rho;
        if (n <= SPEARMAN_EXACT)
                *ret_p = exact_spearman(ranks, ranks + n, n);
        else
                *ret_p = dist_t_two_sided(rho * sqrt((double)(n - 2) / MAX(1 - rho * rho, 1e-300)),
                                          (double)(n - 2));
}

/* The two-sided p of SUM, of the doubled ranks of N out of ALL: by how many ways each sum comes about. */
static double exact_p(const size_t *doubled, size_t all, size_t n, size_t sum)
{
        size_t most = 0, width, from;
        _cleanup_(free_ptr) double *ways = NULL;
        double below = 0, above = 0, total = 0;

        for (size_t i = all - n; i < all; i++)
                most += doubled[i];
        width = most + 1;
        ways = xcalloc((n + 1) * width, sizeof(*ways));
        ways[0] = 1;
        for (size_t i = 0; i < all; i++)
                for (size_t k = MIN(i + 1, n); k > 0; k--) {
                        const double *less = ways + (k - 1) * width;
                        double *more = ways + k * width;

                        for (size_t s = doubled[i]; s < width; s++)
                                more[s] += less[s - doubled[i]];
                }
        from = n * width;
        for (size_t s = 0; s < width; s++) {
                total += ways[from + s];
                below += s <= sum ? ways[from + s] : 0;
                above += s >= sum ? ways[from + s] : 0;
        }
        return MIN(1.0, 2 * MIN(below, above) / total);
}

static int by_size(const void *a, const void *b)
{
        size_t x = *(const size_t *)a, y = *(const size_t *)b;

        return (x > y) - (x < y);
}

/* RANKS has first those of N, then of M. */
static double exact_u(const double *ranks, size_t n, size_t m)
{
        size_t all = n + m, few = MIN(n, m), from = n <= m ? 0 : n, sum = 0;
        _cleanup_(free_ptr) size_t *doubled = xcalloc(all, sizeof(*doubled));

        for (size_t i = 0; i < all; i++)
                doubled[i] = (size_t)(2 * ranks[i] + 0.5);
        for (size_t i = from; i < from + few; i++)
                sum += doubled[i];
        qsort(doubled, all, sizeof(*doubled), by_size);
        return exact_p(doubled, all, few, sum);
}

static double normal_u(double u, double n, double m, double ties)
{
        double all = n + m, off = fabs(u - n * m / 2) - 0.5;
        double variance = n * m / 12 * (all + 1 - ties / (all * (all - 1)));

        if (!(variance > 0) || off <= 0)
                return 1;
        return MIN(1.0, 2 * dist_normal_above(off / sqrt(variance)));
}

static bool comparable(const double *a, size_t n, const double *b, size_t m)
{
        return n && m && stats_usable(a, n) && stats_usable(b, m);
}

struct stats_u stats_u_test(const double *a, size_t n, const double *b, size_t m)
{
        _cleanup_(free_ptr) double *values = NULL;
        struct stats_u ret = {NAN, NAN, false};
        double *ranks, ties, sum = 0;

        if (!comparable(a, n, b, m))
                return ret;
        values = xcalloc(2 * (n + m), sizeof(*values));
        ranks = values + n + m;
        memcpy(values, a, n * sizeof(*a));
        memcpy(values + n, b, m * sizeof(*b));
        rank_all(values, n + m, ranks, &ties);
        for (size_t i = 0; i < n; i++)
                sum += ranks[i];
        ret.u = sum - (double)n * ((double)n + 1) / 2;
        ret.exact = n <= EXACT_PAIRS && m <= EXACT_PAIRS && n * m <= EXACT_PAIRS;
        ret.p = ret.exact ? exact_u(ranks, n, m) : normal_u(ret.u, (double)n, (double)m, ties);
        return ret;
}

double stats_u_least_p(size_t n, size_t m)
{
        double x = (double)n, y = (double)m;

        return n && m ? MIN(1.0, 2 * exp(lgamma(x + 1) + lgamma(y + 1) - lgamma(x + y + 1))) : 1;
}

struct placed {
        double p;
        size_t at;
};

static int by_p(const void *a, const void *b)
{
        const struct placed *x = a, *y = b;

        return x->p < y->p ? -1 : x->p > y->p;
}

void stats_holm(double *p, size_t n, size_t of)
{
        _cleanup_(free_ptr) struct placed *sorted = xcalloc(MAX(n, (size_t)1), sizeof(*sorted));
        double least = 0;

        for (size_t i = 0; i < n; i++)
                sorted[i] = (struct placed){p[i], i};
        if (n)
                qsort(sorted, n, sizeof(*sorted), by_p);
        for (size_t i = 0; i < n; i++) {
                least = MIN(1.0, MAX(least, sorted[i].p * (double)(MAX(of, n) - i)));
                p[sorted[i].at] = least;
        }
}

double stats_cliff(const double *a, size_t n, const double *b, size_t m)
{
        _cleanup_(free_ptr) double *values = NULL;
        double sum = 0;

        if (!comparable(a, n, b, m))
                return NAN;
        values = xcalloc(2 * (n + m), sizeof(*values));
        memcpy(values, a, n * sizeof(*a));
        memcpy(values + n, b, m * sizeof(*b));
        stats_ranks(values, n + m, values + n + m);
        for (size_t i = 0; i < n; i++)
                sum += values[n + m + i];
        return 2 * (sum - (double)n * ((double)n + 1) / 2) / ((double)n * (double)m) - 1;
}

const char *stats_cliff_word(double delta)
{
        double size = fabs(delta);

        return size < 0.147 ? "negligible" : size < 0.33 ? "small" : size < 0.474 ? "medium" : "large";
}

/* VALUES, or their quantiles when there are too many. */
static double *some_of(const double *values, size_t n, size_t *ret_n)
{
        double *v = xmemdup(values, n * sizeof(*v));

        *ret_n = MIN(n, (size_t)SHIFT_MOST);
        if (n <= SHIFT_MOST)
                return v;
        stats_sort(v, n);
        /* The i-th is taken from at or behind i: what is still needed is not overwritten. */
        for (size_t i = 0; i < SHIFT_MOST; i++)
                v[i] = v[(size_t)(((double)i + 0.5) * (double)n / SHIFT_MOST)];
        return v;
}

double stats_shift(const double *a, size_t n, const double *b, size_t m)
{
        _cleanup_(free_ptr) double *x = NULL, *y = NULL, *off = NULL;
        size_t all;
        double upper, lower;

        if (!comparable(a, n, b, m))
                return NAN;
        x = some_of(a, n, &n);
        y = some_of(b, m, &m);
        all = n * m;
        off = xcalloc(all, sizeof(*off));
        for (size_t i = 0; i < all; i++)
                off[i] = x[i / m] - y[i % m];
        upper = stats_select(off, all, all / 2);
        if (all % 2)
                return upper;
        lower = off[0];
        for (size_t i = 1; i < all / 2; i++)
                lower = MAX(lower, off[i]);
        return (lower + upper) / 2;
}

double stats_ratio_error(double mean_a, double sd_a, double mean_b, double sd_b)
{
        return fabs(mean_a / mean_b) * hypot(sd_a / mean_a, sd_b / mean_b);
}
