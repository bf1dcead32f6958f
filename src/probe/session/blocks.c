/*
 * The order of the runs, and their seeds: the same for the same plan, so that a session that goes on finds its place.
 */
#include "probe/session/internal.h"

/* Three numbers, well mixed (splitmix64). */
static uint64_t mix(uint64_t x, uint64_t y, uint64_t z)
{
        uint64_t h = x;

        for (int i = 0; i < 3; i++) {
                h += UINT64_C(0x9E3779B97F4A7C15) * ((i == 0 ? y : z) + 1);
                h = (h ^ (h >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
                h = (h ^ (h >> 27)) * UINT64_C(0x94D049BB133111EB);
                h ^= h >> 31;
        }
        return h;
}

void block_order(const struct session_plan *plan, unsigned pod, unsigned block, size_t *order)
{
        struct rng rng;

        rng_seed(&rng, mix(plan->seed, pod, block));
        stats_shuffle(&rng, order, plan_entries(plan));
}

uint64_t block_seed(const struct session_plan *plan, unsigned block)
{
        return mix(plan->seed, UINT32_MAX, block) >> 33;
}
