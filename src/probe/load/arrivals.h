/*
 * arrivals.h - when requests are due: an open loop's schedule, and those of a trace.
 *
 * Times are nanoseconds from the begin, computed ahead of the run, so that what goes on in it cannot move them. A gap of
 * `gamma` has the shape SMOOTHNESS (1: as poisson; more: smoother; less: burstier) and the mean of the rate.
 */
#pragma once

#include "base/base.h"

enum arrival_pattern {
        ARRIVE_CONSTANT,
        ARRIVE_POISSON,
        ARRIVE_GAMMA,
        ARRIVE_BURST /* all at once: --concurrency caps */
};

struct arrivals {
        enum arrival_pattern pattern;
        double rate;       /* a second */
        double smoothness; /* of gamma; 0: 1 */
        struct rng rng;
        double at;  /* ns */
        uint64_t n; /* how many were given */
};

extern const char *const arrival_patterns[]; /* names by enum arrival_pattern, as AIPerf has them */
int arrival_pattern_of(const char *name, enum arrival_pattern *ret, struct err *err) _must_check_;
void arrivals_init(struct arrivals *a, enum arrival_pattern pattern, double rate, double smoothness,
                   uint64_t seed);
/* The first is at 0 with `constant` and `burst`, else one gap later. UINT64_MAX: never, as the rate is 0. */
uint64_t arrivals_next(struct arrivals *a);
