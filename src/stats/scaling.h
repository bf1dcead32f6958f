/*
 * scaling.h - how time grows with the size of the input: the exponent of a power law, with its interval.
 *
 * A line through the logarithms of each size's median. The interval is the wider of two: from resampling the samples of
 * each size (noise) and, with 4 sizes or more, from how far the medians are off the line (a curve that is no power law).
 */
#pragma once

#include "base/base.h"

struct stats_size {
        double size;          /* above 0 */
        const double *values; /* positive, too */
        size_t n;
};

struct stats_scaling {
        size_t sizes;               /* different ones that had values */
        double exponent, low, high; /* 95 % */
        bool rough; /* fewer than 4 sizes or, somewhere, than 5 samples: the interval is too narrow */
        const char
                *verdict; /* which growths the interval allows over these sizes: "n log n", "n or n log n" */
};

/* False: fewer than two different sizes have values, or something is not positive. SEED as stats_seed(). */
bool stats_scaling(struct arena *arena, const struct stats_size *sizes, size_t n, const char *seed,
                   struct stats_scaling *ret) _must_check_;
