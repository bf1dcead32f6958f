/*
 * describe.h - the samples of one algorithm: where they lie, how far that can be trusted, what is odd about them.
 *
 * Nothing is removed: outliers are counted, a slow first run and a trend are told. What a number of samples cannot
 * give is NAN, never 0: the deviation of one, the trend of three. docs/statistics.md has every formula.
 *
 * A value is usable when it is finite and its size is below 1e100: sums and squares of such stay finite.
 */
#pragma once

#include "base/base.h"

enum stats_interval_method {
        STATS_TOO_FEW, /* no interval: low, high and level are NAN */
        STATS_ROUGH,   /* bootstrap of fewer than 6: its level is not known, and below 95 % */
        STATS_ORDER,   /* two order statistics: free of any assumption on the distribution */
        STATS_INTERVAL_METHODS_
};
/* "n too small", "rough", "order statistics". */
extern const char *const stats_interval_methods[STATS_INTERVAL_METHODS_];

struct stats_interval {
        double low, high;
        double level; /* reached: 0.969 for 6 samples */
        enum stats_interval_method method;
};

struct stats_description {
        size_t n;
        double median, mean, min, max, p5, p95;
        double sd;  /* divided by n - 1, as hyperfine does */
        double mad; /* median distance from the median, not scaled */
        double cv;  /* sd over mean */
        struct stats_interval median_ci;
        struct {
                size_t mild,
                        severe; /* beyond 1.5 and 3 quartile distances (type 7); severe ones are not mild */
                size_t mad;     /* further than 14.826 MAD, hyperfine's limit */
        } outliers;
        bool slow_first;       /* the first run is out of the others' range, upwards: a cold cache? */
        double first_ratio;    /* the first over the median of the others */
        double trend, trend_p; /* Spearman's rho of value against order */
};

/* VALUES are in the order in which they were measured. False: there are none, or one is not usable. */
bool stats_describe(const double *values, size_t n, struct stats_description *ret) _must_check_;

bool stats_usable(const double *values, size_t n);
/* Usable, and above 1e-100: what has a ratio and a logarithm. */
bool stats_positive(const double *values, size_t n);

/* Sorts in place; NAN when there are none. */
double stats_median(double *values, size_t n);
void stats_sort(double *values, size_t n);

/* Ranks x in 1 ... n, ties in the middle. */
void stats_ranks(const double *values, size_t n, double *ret_ranks);
/* Spearman's rho of X against Y and its two-sided p: exact up to 7 pairs, by Student's t above. Both NAN below 4
 * pairs and when one of them never changes. */
void stats_spearman(const double *x, const double *y, size_t n, double *ret_rho, double *ret_p);

/* How often values fall into each of BINS (above 0) equal parts of [LOW, HIGH]; those outside go to the ends. */
void stats_histogram(const double *values, size_t n, double low, double high, size_t *ret_counts,
                     size_t bins);
/* How many parts show N values well (Freedman and Diaconis), at most MOST. */
size_t stats_histogram_bins(const double *values, size_t n, size_t most);
