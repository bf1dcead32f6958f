#include "probe/load/arrivals.h"

#include <math.h>

#include "stats/random.h"

#define NS_PER_SEC 1e9

const char *const arrival_patterns[] = {
        [ARRIVE_CONSTANT] = "constant",
        [ARRIVE_POISSON] = "poisson",
        [ARRIVE_GAMMA] = "gamma",
        [ARRIVE_BURST] = "concurrency_burst",
};

int arrival_pattern_of(const char *name, enum arrival_pattern *ret, struct err *err)
{
        if (streq(name, "burst"))
                name = arrival_patterns[ARRIVE_BURST];
        for (size_t i = 0; i < ARRAY_LEN(arrival_patterns); i++)
                if (streq(name, arrival_patterns[i])) {
                        *ret = (enum arrival_pattern)i;
                        return 0;
                }
        return err_set(err, E_CONFIG,
                       "'%s' is not a pattern of arrivals: constant, poisson, gamma or concurrency_burst",
                       name ? name : "");
}

void arrivals_init(struct arrivals *a, enum arrival_pattern pattern, double rate, double smoothness,
                   uint64_t seed)
{
        *a = (struct arrivals){
                .pattern = pattern, .rate = rate, .smoothness = smoothness > 0 ? smoothness : 1};
        rng_seed(&a->rng, seed);
}

static double exponential(struct rng *r)
{
        return -log(stats_uniform(r));
}

/* Of SHAPE and scale 1, by Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
static double gamma_variate(struct rng *r, double shape)
{
        double d, c, x, v, boost = 1;

        if (shape < 1) {
                boost = pow(stats_uniform(r), 1 / shape);
                shape += 1;
        }
        d = shape - 1.0 / 3;
        c = 1 / sqrt(9 * d);
        for (;;) {
                x = stats_normal(r);
                v = 1 + c * x;
                if (v <= 0)
                        continue;
                v = v * v * v;
                if (log(stats_uniform(r)) < x * x / 2 + d - d * v + d * log(v))
                        return d * v * boost;
        }
}

/* In means. */
static double gap(struct arrivals *a)
{
        return a->pattern == ARRIVE_GAMMA ? gamma_variate(&a->rng, a->smoothness) / a->smoothness
                                          : exponential(&a->rng);
}

/* Never: a rate of nothing. */
static uint64_t whole(long double ns)
{
        return ns >= 0 && ns < 0x1p63L ? (uint64_t)(ns + 0.5L) : UINT64_MAX;
}

uint64_t arrivals_next(struct arrivals *a)
{
        uint64_t n = a->n++;

        switch (a->pattern) {
        case ARRIVE_BURST:
                return 0;
        case ARRIVE_CONSTANT: /* each from its number: a sum of gaps would drift */
                return n ? whole((long double)n * (long double)NS_PER_SEC / (long double)a->rate) : 0;
        case ARRIVE_POISSON:
        case ARRIVE_GAMMA:
                a->at += gap(a) * NS_PER_SEC / a->rate;
                return whole(a->at);
        }
        return UINT64_MAX;
}
