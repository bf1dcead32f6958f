/*
 * compare.h - several algorithms compared: pairs, intervals, verdicts.
 *
 * Each is set against the baseline, and the best one against all others. A pair is told by
 *
 *   the ratio of medians, A over B, with the 95 % percentile interval of a seeded bootstrap. What is drawn is a whole
 *     block (everything that ran in it, of all algorithms): a machine that is slow for a while is slow for all
 *   Mann-Whitney's p, corrected by Holm over all pairs of the comparison, those that are not shown too: the best one
 *     is only known from the data
 *   Cliff's delta, the shift of Hodges and Lehmann, the noise floor
 *
 * What repeats is the unit: a run while there is one pod; with several the pod, whose value is the median of its runs, and
 * all that is said above is of these values: runs in one pod say nothing of the next one.
 *
 * The verdict:
 *
 *   not comparable  one has no valid runs, or is said to be unfit, or their accuracies differ beyond the tolerance
 *   inconclusive    so few that no p could be below alpha; or they seem to differ by what counts, and it cannot be told
 *                   from noise; or the interval is so wide that much could hide in it. `needed` says how many in all
 *                   would likely decide
 *   faster, slower  corrected p below alpha, and the interval without 1, and the difference at least what counts
 *   no difference   else
 *
 * The best is no winner while another is more accurate: that is a trade-off. It is more accurate when it is so by more than
 * the tolerance or, where none is said, when the 95 % interval of the difference of their accuracies lies above 0. That is
 * made of the intervals of both, as Zou and Donner do: difference - sqrt((a - a's low)^2 + (b's high - b)^2).
 *
 * What counts is min_effect or, if that is more, the noise floor: by how much the medians of two halves of one and the
 * same algorithm's runs differ, in 95 % of all halvings, scaled from halves to all runs (an A/A test of what is there).
 */
#pragma once

#include "base/base.h"
#include "stats/describe.h"

enum stats_measure { STATS_TIME, STATS_MEMORY, STATS_MEASURES_ };

enum stats_verdict {
        STATS_LESS, /* A is faster, or smaller, than B */
        STATS_MORE, /* slower, or larger */
        STATS_SAME, /* no detectable difference */
        STATS_INCONCLUSIVE,
        STATS_NOT_COMPARABLE,
        STATS_VERDICTS_
};
/* "faster", "slower", "no detectable difference", "inconclusive", "not comparable"; of memory "smaller", "larger". */
const char *stats_verdict_word(enum stats_verdict verdict, enum stats_measure measure);

struct stats_sample {
        double value; /* positive (describe.h), else its side is not comparable */
        uint32_t pod, block;
};

struct stats_side {
        const char *name;
        const struct stats_sample *samples; /* the valid ones, in any order */
        size_t n;
        const char *
                unfit; /* why it must not be compared: the end of a sentence, "it ran beside others"; NULL: it may */
        double accuracy;                   /* median; NAN: none */
        struct stats_interval accuracy_ci; /* of it; STATS_TOO_FEW: none, every difference is one */
};

struct stats_compare {
        enum stats_measure measure;
        const struct stats_side *sides;
        size_t n_sides;
        size_t baseline;           /* of sides */
        double alpha, min_effect;  /* 0: 0.05, 0.02 */
        double accuracy_tolerance; /* beyond it two are not comparable; 0 or NAN: not said, all are */
        bool by_pod;               /* the pod is the unit, even if only one has values; several always are */
        bool separate;             /* blocks mean nothing: each side was measured by itself */
        const char *seed;          /* a text, such as the request's UID */
        unsigned resamples;        /* 0: 10 000 */
};

struct stats_pair {
        size_t a, b;          /* of sides: A against B */
        size_t n_a, n_b;      /* units: runs or pods */
        double ratio;         /* of medians, A over B; this and the others are NAN when a side has nothing */
        double low, high;     /* of the ratio, 95 % */
        double p, p_adjusted; /* p_adjusted is NAN when it is not comparable */
        double effect;        /* Cliff's delta; its word is stats_cliff_word() */
        double shift;         /* A - B, in the unit of the values */
        double floor;         /* noise floor of this pair, as a fraction; NAN: too few */
        enum stats_verdict verdict;
        size_t needed;   /* units in all for each side; 0: not told. Only when it is inconclusive */
        const char *why; /* one sentence */
};

struct stats_comparison {
        bool by_pod; /* the unit is the pod */
        size_t pods;
        double noise_floor;       /* the largest of the pairs'; NAN: none */
        struct stats_pair *pairs; /* first those against the baseline, in order, then those of the best */
        size_t n;
        size_t best;          /* the lowest median of all that may be compared; SIZE_MAX: none */
        size_t more_accurate; /* the most accurate of those that are more accurate than the best; SIZE_MAX: none */
        /* The best is STATS_LESS than every other that may be compared, and there is one; and none is more accurate. */
        bool best_is_clear;
        const char *summary; /* one sentence */
};

/* One for each pod that there is, in their order: the median of its values, as block 0. Of usable values (describe.h). */
struct stats_sample *stats_pod_medians(struct arena *arena, const struct stats_sample *samples, size_t n,
                                       size_t *ret_n);

/* What is in RET is ARENA's. Always an answer: what cannot be compared says so. */
void stats_compare(struct arena *arena, const struct stats_compare *c, struct stats_comparison *ret);

/*
 * How many units a side will decide, with a chance of about 80 %, on a difference of RATIO (A over B) when values
 * scatter by SIGMA (of logarithms) and PAIRS are compared; at least as many as a p below ALPHA needs. At most 10 000,
 * which means "that many or more".
 */
size_t stats_needed(double ratio, double sigma, double alpha, size_t pairs);
enum { STATS_NEEDED_MAX = 10000 };
