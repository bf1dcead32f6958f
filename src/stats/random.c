#include "stats/random.h"

#include <math.h>

uint64_t stats_seed_of(const char *text, uint64_t number)
{
        uint64_t hash = 0xCBF29CE484222325; /* FNV-1a */

        for (const char *p = text ? text : ""; *p; p++)
                hash = (hash ^ (unsigned char)*p) * 0x100000001B3;
        return hash ^ number * 0x9E3779B97F4A7C15;
}

void stats_seed(struct rng *r, const char *text, uint64_t number)
{
        rng_seed(r, stats_seed_of(text, number));
}

void stats_shuffle(struct rng *r, size_t *order, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                size_t at = rng_below(r, i + 1);

                order[i] = order[at];
                order[at] = i;
        }
}

double stats_uniform(struct rng *r)
{
        return (double)((rng_next(r) >> 11) + 1) * 0x1p-53;
}

double stats_normal(struct rng *r)
{
        double radius = sqrt(-2 * log(stats_uniform(r)));

        return radius * cos(2 * M_PI * stats_uniform(r));
}
