/*
 * summary.h - what many numbers have in common: mean, spread, order statistics.
 *
 * As AIPerf and numpy say them, so that figures can be laid side by side: the standard deviation is the population's
 * (divided by n), a percentile is interpolated linearly between its neighbours. No numbers give no summary, never 0.
 */
#pragma once

#include "base/base.h"

/* The percentiles that are always told; stats_percents[] has their numbers. */
enum {
        STATS_P1,
        STATS_P5,
        STATS_P10,
        STATS_P25,
        STATS_P50,
        STATS_P75,
        STATS_P90,
        STATS_P95,
        STATS_P99,
        STATS_PERCENTS_
};
extern const unsigned stats_percents[STATS_PERCENTS_];

struct stats_summary {
        size_t n;
        double sum, avg, min, max, std;
        double p[STATS_PERCENTS_];
};

/* Sorts VALUES in place. False: there are none. */
bool stats_summarize(double *values, size_t n, struct stats_summary *ret) _must_check_;
/* PERCENT (0 ... 100) of what is sorted; N is above 0. */
double stats_percentile(const double *sorted, size_t n, double percent);
