#include "stats/describe.h"

#include <float.h>
#include <math.h>

#include "stats/internal.h"
#include "stats/summary.h"

enum {
        ORDER_LEAST = 6,       /* samples for two order statistics to hold the median at 95 % */
        ROUGH_LEAST = 3,       /* below, a bootstrap says nothing that min and max do not */
        FIRST_LEAST = 4,       /* samples for a first one to be odd */
        ROUGH_RESAMPLES = 3125 /* 5 to the 5th: all there are */
};
static const double MAD_LIMIT = 14.826, LARGEST = 1e100, SMALLEST = 1e-100, CONFIDENCE = 0.95;

const char *const stats_interval_methods[STATS_INTERVAL_METHODS_] = {
        [STATS_TOO_FEW] = "n too small",
        [STATS_ROUGH] = "rough",
        [STATS_ORDER] = "order statistics",
};

bool stats_usable(const double *values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!(fabs(values[i]) < LARGEST))
                        return false;
        return true;
}

bool stats_positive(const double *values, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (!(values[i] > SMALLEST))
                        return false;
        return stats_usable(values, n);
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

void stats_sort(double *values, size_t n)
{
        if (n)
                qsort(values, n, sizeof(*values), by_value);
}

double stats_median(double *values, size_t n)
{
        if (!n)
                return NAN;
        stats_sort(values, n);
        return stats_percentile(values, n, 50);
}

double stats_select(double *values, size_t n, size_t k)
{
        size_t low = 0, high = n - 1;

        while (low < high) {
                double pivot = values[low + (high - low) / 2];
                size_t i = low, j = high;

                for (;;) {
                        while (values[i] < pivot)
                                i++;
                        while (values[j] > pivot)
                                j--;
                        if (i >= j)
                                break;
                        double other = values[i];

                        values[i++] = values[j];
                        values[j--] = other;
                }
                /* What is at or before j is not above the pivot, what is behind it not below. */
                if (k <= j)
                        high = j;
                else
                        low = j + 1;
        }
        return values[k];
}

double stats_nearest_rank(double *values, size_t n, double percent)
{
        size_t k = (size_t)(percent / 100 * (double)n);

        return n ? stats_select(values, n, MIN(k, n - 1)) : NAN;
}

/* P(X <= k) of a binomial of N tosses. */
static double tosses_below(size_t n, size_t k)
{
        double term = (double)n * -M_LN2, sum = 0;

        for (size_t i = 0; i <= k; i++) {
                sum += exp(term);
                term += log((double)(n - i) / (double)(i + 1));
        }
        return sum;
}

/* The innermost pair of order statistics that holds the median with 95 % or more. */
static struct stats_interval order_interval(const double *sorted, size_t n)
{
        /* The wanted one is near n/2 - 0.98 sqrt(n); looking begins a little outside. */
        double guess = (double)n / 2 - 1.2 * sqrt((double)n) - 1;
        size_t k = guess > 0 ? (size_t)guess : 0;
        double level = 1 - 2 * tosses_below(n, k);

        for (;;) {
                double next = 1 - 2 * tosses_below(n, k + 1);

                if (next < CONFIDENCE || 2 * (k + 1) >= n)
                        break;
                k++;
                level = next;
        }
        return (struct stats_interval){sorted[k], sorted[n - 1 - k], level, STATS_ORDER};
}

/* The median of N (at most 5) places drawn; DIGITS in base N say which. */
static double drawn_median(const double *sorted, size_t n, size_t digits)
{
        double drawn[ORDER_LEAST];

        for (size_t i = 0; i < n; i++, digits /= n)
                drawn[i] = sorted[digits % n];
        return stats_median(drawn, n);
}

/* All drawings there are, instead of some: no seed is needed. */
static struct stats_interval rough_interval(const double *sorted, size_t n)
{
        double medians[ROUGH_RESAMPLES];
        size_t all = 1;

        for (size_t i = 0; i < n; i++)
                all *= n;
        for (size_t i = 0; i < all; i++)
                medians[i] = drawn_median(sorted, n, i);
        stats_sort(medians, all);
        return (struct stats_interval){stats_percentile(medians, all, 2.5),
                                       stats_percentile(medians, all, 97.5), NAN, STATS_ROUGH};
}

static struct stats_interval median_interval(const double *sorted, size_t n)
{
        if (n >= ORDER_LEAST)
                return order_interval(sorted, n);
        if (n >= ROUGH_LEAST)
                return rough_interval(sorted, n);
        return (struct stats_interval){NAN, NAN, NAN, STATS_TOO_FEW};
}

static double mad_of(const double *values, size_t n, double median)
{
        _cleanup_(free_ptr) double *off = xcalloc(MAX(n, (size_t)1), sizeof(*off));

        for (size_t i = 0; i < n; i++)
                off[i] = fabs(values[i] - median);
        return stats_median(off, n);
}

/* As hyperfine does: with no spread at all, whatever differs is out. */
static bool beyond_mad(double distance, double mad)
{
        return distance > MAD_LIMIT * MAX(mad, DBL_EPSILON);
}

static void count_outliers(const double *sorted, struct stats_description *d)
{
        double q1 = stats_percentile(sorted, d->n, 25), q3 = stats_percentile(sorted, d->n, 75);

        for (size_t i = 0; i < d->n; i++) {
                double out = MAX(q1 - sorted[i], sorted[i] - q3);

                if (out > 3 * (q3 - q1))
                        d->outliers.severe++;
                else if (out > 1.5 * (q3 - q1))
                        d->outliers.mild++;
                if (beyond_mad(fabs(sorted[i] - d->median), d->mad))
                        d->outliers.mad++;
        }
}

/* A first run that is slow tells of caches and pages; hyperfine warns of the same. */
static void judge_first(const double *values, struct stats_description *d)
{
        size_t others = d->n - 1;
        _cleanup_(free_ptr) double *rest = NULL;
        double median, mad;

        d->first_ratio = NAN;
        if (d->n < FIRST_LEAST)
                return;
        rest = xmemdup(values + 1, others * sizeof(*rest));
        median = stats_median(rest, others);
        mad = mad_of(rest, others, median);
        if (median > SMALLEST)
                d->first_ratio = values[0] / median;
        /* Equal others must not make a first run slow by its last digit. */
        d->slow_first = beyond_mad(values[0] - median, mad) && values[0] - median > 0.01 * fabs(median);
}

static void judge_trend(const double *values, struct stats_description *d)
{
        _cleanup_(free_ptr) double *order = xcalloc(d->n, sizeof(*order));

        for (size_t i = 0; i < d->n; i++)
                order[i] = (double)i;
        stats_spearman(order, values, d->n, &d->trend, &d->trend_p);
}

bool stats_describe(const double *values, size_t n, struct stats_description *ret)
{
        _cleanup_(free_ptr) double *sorted = NULL;
        double squares = 0;

        *ret = (struct stats_description){.n = n};
        if (!n || !stats_usable(values, n))
                return false;
        sorted = xmemdup(values, n * sizeof(*sorted));
        ret->median = stats_median(sorted, n);
        ret->min = sorted[0];
        ret->max = sorted[n - 1];
        ret->p5 = stats_percentile(sorted, n, 5);
        ret->p95 = stats_percentile(sorted, n, 95);
        for (size_t i = 0; i < n; i++)
                ret->mean += sorted[i] / (double)n;
        ret->mean = MIN(MAX(ret->mean, ret->min), ret->max); /* not off by a last digit */
        for (size_t i = 0; i < n; i++)
                squares += (sorted[i] - ret->mean) * (sorted[i] - ret->mean);
        ret->sd = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
        ret->cv = fabs(ret->mean) > SMALLEST ? ret->sd / fabs(ret->mean) : NAN;
        ret->mad = mad_of(sorted, n, ret->median);
        ret->median_ci = median_interval(sorted, n);
        count_outliers(sorted, ret);
        judge_first(values, ret);
        judge_trend(values, ret);
        return true;
}

static double bin_width(const double *sorted, size_t n)
{
        return 2 * (stats_percentile(sorted, n, 75) - stats_percentile(sorted, n, 25)) / cbrt((double)n);
}

size_t stats_histogram_bins(const double *values, size_t n, size_t most)
{
        _cleanup_(free_ptr) double *sorted = NULL;
        double width, bins;

        if (n < 2 || !stats_usable(values, n) || most < 2)
                return 1;
        sorted = xmemdup(values, n * sizeof(*sorted));
        stats_sort(sorted, n);
        width = bin_width(sorted, n);
        if (sorted[0] == sorted[n - 1])
                return 1;
        bins = width > 0 ? ceil((sorted[n - 1] - sorted[0]) / width) : sqrt((double)n);
        return bins < (double)most ? MAX((size_t)bins, (size_t)2) : most;
}

void stats_histogram(const double *values, size_t n, double low, double high, size_t *ret_counts, size_t bins)
{
        memset(ret_counts, 0, bins * sizeof(*ret_counts));
        for (size_t i = 0; i < n; i++) {
                double at = high > low ? (values[i] - low) / (high - low) * (double)bins : 0;

                /* Written so that what is not a number ends in the first. */
                ret_counts[at >= (double)bins ? bins - 1 : at > 0 ? (size_t)at : 0]++;
        }
}
