/*
 * What bounds a program. The numbers of the Speed-of-Light rule are those of the tool's own rule file, the same since 2019.
 */
#include "probe/ncu/ncu.h"

#include <math.h>

static const double BALANCED = 10, LATENCY = 60, NO_BOUND = 80, WAVES = 1;
static const double UPSTREAM = 70, UPSTREAM_STALL = 30;

static bool has_all(uint32_t has, uint32_t metrics)
{
        return (has & metrics) == metrics;
}

/* As a summary tells it: 70.1 is 10 more than 60.1, which it is not in binary. */
static double as_told(double value)
{
        return nearbyint(value * 1e6) / 1e6;
}

static struct ncu_bound by_speed_of_light(uint32_t has, const double value[NCU_METRICS])
{
        double sm = as_told(value[NCU_SM]), mem = as_told(value[NCU_MEM]);
        bool compute = sm > mem;

        if (!has_all(has, 1u << NCU_SM | 1u << NCU_MEM))
                return (struct ncu_bound){"unknown", NULL};
        if (sm >= NO_BOUND || mem >= NO_BOUND) {
                const char *unit = compute ? "saturated-compute" : "saturated-memory";

                if (sm >= NO_BOUND && mem >= NO_BOUND)
                        return (struct ncu_bound){"mixed", unit};
                return (struct ncu_bound){compute ? "compute-bound" : "memory-bound", unit};
        }
        if (sm < LATENCY && mem < LATENCY) {
                bool small = has_all(has, 1u << NCU_WAVES) && value[NCU_WAVES] < WAVES;

                return (struct ncu_bound){"unknown", small ? "small-grid" : "latency"};
        }
        if (as_told(fabs(sm - mem)) < BALANCED)
                return (struct ncu_bound){"mixed", "balanced"};
        return compute ? (struct ncu_bound){"compute-bound", "compute"}
                       : (struct ncu_bound){"memory-bound", "memory"};
}

static bool reaches(uint32_t has, const double value[NCU_METRICS], enum ncu_metric m, double bar)
{
        return has_all(has, 1u << m) && as_told(value[m]) >= bar;
}

static struct ncu_bound by_upstream(uint32_t has, const double value[NCU_METRICS])
{
        bool compute = reaches(has, value, NCU_SM, UPSTREAM);
        bool memory = reaches(has, value, NCU_DRAM, UPSTREAM) || reaches(has, value, NCU_L2, UPSTREAM) ||
                      reaches(has, value, NCU_STALL, UPSTREAM_STALL);

        if (memory)
                return (struct ncu_bound){compute ? "mixed" : "memory-bound", NULL};
        return (struct ncu_bound){compute ? "compute-bound" : "unknown", NULL};
}

struct ncu_bound ncu_classify(enum ncu_rule rule, uint32_t has, const double value[NCU_METRICS])
{
        return rule == NCU_RULE_UPSTREAM ? by_upstream(has, value) : by_speed_of_light(has, value);
}
