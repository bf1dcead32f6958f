/*
 * sum_internal.h - between what adds launches up and what tells about them.
 */
#pragma once

#include "probe/ncu/ncu.h"

/* Launches together: all of them, or those of one kernel. */
struct ncu_total {
        const char *kernel; /* NULL: all */
        uint64_t launches;
        uint64_t n[NCU_METRICS]; /* launches that have it */
        double sum[NCU_METRICS];
        double weighted[NCU_METRICS], weight[NCU_METRICS];
        double min[NCU_METRICS], max[NCU_METRICS];
        double longest; /* launch that has waves; below 0: none */
        double waves;   /* its own */
};

struct ncu_sum {
        struct ncu_total all;
        VEC(struct ncu_total *) kernels; /* with "(others)" where there are any */
        struct map by_name;
        struct ncu_total *others;
        bool unweighted;
        char device[128], cc[16];
        bool devices, ccs; /* there are several: none is told */
};

/* All that is known of T, as ncu_classify() takes it. */
uint32_t ncu_total_values(const struct ncu_sum *s, const struct ncu_total *t, double ret[NCU_METRICS]);
/* What T has of all time, or of all launches where time does not weigh: 0 to 1. */
double ncu_total_share(const struct ncu_sum *s, const struct ncu_total *t);
