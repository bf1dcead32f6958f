/*
 * tests.h - two samples laid side by side: test, effect size, shift, corrections.
 *
 * Values must be usable (describe.h), and there must be some on both sides; else every answer is NAN.
 */
#pragma once

#include "base/base.h"

struct stats_u {
        double u; /* pairs in which A is above B, ties count one half */
        double p; /* two-sided */
        bool exact;
};

/* Mann-Whitney. Exact, given the ties that there are, for N * M <= 400; else the normal approximation with correction
 * for ties and continuity. All equal: p = 1. */
struct stats_u stats_u_test(const double *a, size_t n, const double *b, size_t m);
/* The smallest p that N against M values can give: 0.029 for 4 and 4. */
double stats_u_least_p(size_t n, size_t m);

/* Holm's correction, in place, of N out of a family of OF (at least N) whose others are taken to be larger. */
void stats_holm(double *p, size_t n, size_t of);

/* Cliff's delta, -1 ... 1: how much more often A is above B than below. */
double stats_cliff(const double *a, size_t n, const double *b, size_t m);
const char *stats_cliff_word(double delta); /* "negligible", "small", "medium", "large" */

/* Hodges and Lehmann: the median of all differences a - b. Of more than 1 000 a side, of their thousand quantiles. */
double stats_shift(const double *a, size_t n, const double *b, size_t m);

/* The error of a ratio of means as hyperfine tells it: "1.23 ± 0.05 times". */
double stats_ratio_error(double mean_a, double sd_a, double mean_b, double sd_b);
