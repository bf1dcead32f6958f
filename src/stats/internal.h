/*
 * internal.h - what the files of this layer share: distributions, selection, the bootstrap of medians.
 */
#pragma once

#include "stats/compare.h"

/* Of the standard normal distribution: P(Z > z), and the z that P (0 < P < 1) is below. */
double dist_normal_above(double z);
double dist_normal_quantile(double p);
/* Of Student's with DF (above 0) degrees of freedom: P(|T| > |t|), and the t for which that is P (0 < P < 1). */
double dist_t_two_sided(double t, double df);
double dist_t_limit(double p, double df);

/* The value that has K others before it once VALUES are sorted; they are left in another order. K is below N. */
double stats_select(double *values, size_t n, size_t k);
/* The PERCENT (0 ... 100) of VALUES by nearest rank, which are left in another order. NAN: there are none. */
double stats_nearest_rank(double *values, size_t n, double percent);

/* 0 ... LIMIT-1, which is below 2^32. Faster than rng_below(), and as good. */
static inline size_t stats_pick(struct rng *r, size_t limit)
{
        return (size_t)(((rng_next(r) >> 32) * (uint64_t)limit) >> 32);
}

/*
 * The medians of RESAMPLES drawings of N sides' blocks: ret[side * resamples + i], NAN where nothing of the side was
 * drawn. All sides share the blocks drawn; with several pods, pods are drawn first. Every side has samples.
 */
void bootstrap_medians(const struct stats_side *const *sides, size_t n, struct rng *rng, size_t resamples,
                       double *ret);
