/*
 * compare_internal.h - what the two halves of a comparison share: numbers (compare.c) and words (compare_words.c).
 */
#pragma once

#include "stats/compare.h"

enum { WIDE = 5 }; /* an interval that reaches this many times min_effect away from 1 leaves room for much */

/* What is known of one side alone. */
struct one {
        bool fit; /* has values, all of them positive */
        double *units;
        size_t n;
        double median; /* of the units */
        double sigma;  /* of the units' logarithms */
        double floor;  /* of the logarithm of a ratio; NAN: too few */
        double *resampled;
};

struct judging {
        struct arena *arena;
        struct stats_compare c; /* with its defaults */
        struct one *ones;
        size_t family; /* pairs, those that are not shown too */
        bool clear;    /* the best is, by its values alone */
        const struct stats_comparison *result;
};

const char *compare_why_not(const struct judging *j, const struct stats_pair *p);
const char *compare_why_too_few(const struct judging *j, const struct stats_pair *p);
const char *compare_why_differs(const struct judging *j, const struct stats_pair *p);
/* KNOWN: that there is a difference; it is only smaller than what counts. */
const char *compare_why_noise(const struct judging *j, const struct stats_pair *p, bool known);
const char *compare_why_same(const struct judging *j, const struct stats_pair *p, bool known);
const char *compare_summary(const struct judging *j);
