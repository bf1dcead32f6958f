#include "tools/simulate/simulate.h"

#include <math.h>

const char *const simulate_noises[SIMULATE_NOISES_] = {
        [SIMULATE_NORMAL] = "normal",     [SIMULATE_LOG_NORMAL] = "log-normal",
        [SIMULATE_OUTLIERS] = "outliers", [SIMULATE_DRIFT] = "drift of blocks",
        [SIMULATE_TIES] = "ties",         [SIMULATE_PODS] = "pods",
};

static double one_run(const struct simulate_plan *p, struct rng *rng)
{
        double e = stats_normal(rng);

        if (p->noise == SIMULATE_LOG_NORMAL)
                return 1 + p->sigma * (exp(0.8 * e) - 1);
        if (p->noise == SIMULATE_OUTLIERS && stats_uniform(rng) < 0.05)
                return 1 + stats_uniform(rng);
        return exp(p->sigma * e);
}

static void make(const struct simulate_plan *p, struct rng *rng, struct stats_sample *samples)
{
        double drift = 0, bias[8] = {0};
        size_t n = p->pods * p->blocks;

        for (size_t i = 0; i < n; i++) {
                uint32_t pod = (uint32_t)(i / p->blocks), block = (uint32_t)(i % p->blocks);

                /* As strong as was seen in practice: five times what one run scatters. */
                drift = 0.9 * drift + 5 * sqrt(1 - 0.81) * p->sigma * stats_normal(rng);
                for (size_t s = 0; s < p->sides && !block; s++)
                        bias[s] = p->noise == SIMULATE_PODS ? 2 * p->sigma * stats_normal(rng) : 0;
                for (size_t s = 0; s < p->sides; s++) {
                        double v = (s ? 1 : p->ratio) * one_run(p, rng) * exp(bias[s]);

                        if (p->noise == SIMULATE_DRIFT)
                                v *= exp(drift);
                        if (p->noise == SIMULATE_TIES)
                                v = MAX(1.0, round(v / p->sigma)) * p->sigma;
                        samples[s * n + i] = (struct stats_sample){v, pod, block};
                }
        }
}

void simulate_compare(const struct simulate_plan *plan, uint64_t seed, struct arena *arena,
                      struct stats_comparison *ret)
{
        static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
        size_t n = plan->pods * plan->blocks;
        struct stats_side *sides = arena_new_array(arena, struct stats_side, plan->sides);
        struct stats_sample *samples = arena_new_array(arena, struct stats_sample, plan->sides * n);
        struct stats_compare c = {.sides = sides, .n_sides = plan->sides, .baseline = plan->sides - 1};
        struct rng rng;

        stats_seed(&rng, "simulate", seed);
        make(plan, &rng, samples);
        for (size_t i = 0; i < plan->sides; i++)
                sides[i] = (struct stats_side){
                        .name = names[i], .samples = samples + i * n, .n = n, .accuracy = NAN};
        c.seed = arena_printf(arena, "%llu", (unsigned long long)seed);
        stats_compare(arena, &c, ret);
}

struct simulate_plan simulate_equal(uint64_t seed)
{
        static const double sigmas[] = {0.01, 0.03, 0.1};
        struct simulate_plan p = {
                .noise = (enum simulate_noise)(seed % SIMULATE_NOISES_), .pods = 1, .ratio = 1};
        struct rng rng;

        stats_seed(&rng, "equal", seed);
        p.sigma = sigmas[rng_below(&rng, ARRAY_LEN(sigmas))];
        p.sides = 2 + rng_below(&rng, 4);
        p.blocks = 4 + rng_below(&rng, 27);
        if (p.noise == SIMULATE_PODS) {
                p.pods = 4 + rng_below(&rng, 7);
                p.blocks = 4 + rng_below(&rng, 7);
        }
        return p;
}

bool simulate_is_false(const struct stats_comparison *k)
{
        for (size_t i = 0; i < k->n; i++)
                if (k->pairs[i].verdict == STATS_LESS || k->pairs[i].verdict == STATS_MORE)
                        return true;
        return false;
}

double simulate_point(struct rng *rng, double level, double sigma)
{
        double v = level * exp(sigma * stats_normal(rng));

        return stats_uniform(rng) < 0.05 ? v * (1.2 + 0.8 * stats_uniform(rng)) : v;
}

/* P(X <= found) of N tries with probability P each. */
static double at_most(size_t found, size_t n, double p)
{
        double sum = 0, term = (double)n * log1p(-p);

        for (size_t i = 0; i <= found && i < n; i++) {
                sum += exp(term);
                term += log((double)(n - i) / (double)(i + 1)) + log(p) - log1p(-p);
        }
        return sum;
}

double simulate_upper(size_t found, size_t n, double level)
{
        double low = 0, high = 1;

        if (found >= n)
                return 1;
        for (int i = 0; i < 60; i++) {
                double mid = (low + high) / 2;

                if (at_most(found, n, mid) > 1 - level)
                        low = mid;
                else
                        high = mid;
        }
        return high;
}
