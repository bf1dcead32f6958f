/*
 * simulate.h - samples and series of which the truth is known: for the tests and the bench of the statistics.
 */
#pragma once

#include "stats/stats.h"

enum simulate_noise {
        SIMULATE_NORMAL,
        SIMULATE_LOG_NORMAL, /* long to the right */
        SIMULATE_OUTLIERS,   /* one run in 20 takes up to twice as long */
        SIMULATE_DRIFT,      /* the machine gets slower and faster: the same for all in a block */
        SIMULATE_TIES,       /* a coarse clock */
        SIMULATE_PODS,       /* each pod is better for one algorithm than for another, by chance */
        SIMULATE_NOISES_
};
extern const char *const simulate_noises[SIMULATE_NOISES_];

struct simulate_plan {
        enum simulate_noise noise;
        double sigma;
        size_t sides, blocks, pods;
        double ratio; /* of the first side's time over the others' */
};

/* The verdicts on one drawing of PLAN; what is in RET is ARENA's. */
void simulate_compare(const struct simulate_plan *plan, uint64_t seed, struct arena *arena,
                      struct stats_comparison *ret);
/* The SEED-th A/A comparison: 2 to 5 algorithms that are the same, 4 to 30 blocks, every noise. */
struct simulate_plan simulate_equal(uint64_t seed);
/* Whether any of its pairs is said to differ. */
bool simulate_is_false(const struct stats_comparison *k);

/* One run's median: LEVEL with noise SIGMA; one in 20 is an outlier of 1.2 to 2 times as much. */
double simulate_point(struct rng *rng, double level, double sigma);

/* The upper bound, at LEVEL (0.99), of the rate of what was seen FOUND times out of N: Clopper and Pearson's. */
double simulate_upper(size_t found, size_t n, double level);
