/*
 * sla_results.h - results as a run leaves them, from a small model of an engine.
 */
#pragma once

#include "unit/unit.h"

#include "probe/sla/sla.h"

enum { EXAMPLE_ISLS = 17, EXAMPLE_CONTEXTS = 6, EXAMPLE_BATCHES = 6 };

struct example {
        struct arena arena;
        struct sla_config config;
        struct sla_row prefill[3], decode[12];
        double isl[EXAMPLE_ISLS], ttft[EXAMPLE_ISLS], throughput[EXAMPLE_ISLS];
        struct sla_sample surface[EXAMPLE_CONTEXTS * EXAMPLE_BATCHES];
        const char *notes[1];
        struct sla_results r;
};

static inline struct sla_candidate example_candidate(unsigned gpus, enum sim_mapping mapping)
{
        struct sla_candidate c = {.gpus = gpus, .attn_dp = mapping == SIM_DEP ? gpus : 1, .mapping = mapping};

        snprintf(c.label, sizeof(c.label), "%s=%u", sim_mappings[mapping], gpus);
        return c;
}

/* GPU counts are powers of two: their 0.9th power without libm's last digit in the files. */
static inline double example_speedup(unsigned gpus)
{
        return gpus == 1 ? 1 : gpus == 2 ? 1.85 : 3.4;
}

static inline void example_sweeps(struct example *e)
{
        static const uint64_t batches[] = {1, 24, 64, 128};
        size_t n = 0;

        for (unsigned i = 0; i < 3; i++) {
                unsigned gpus = 1u << i;
                double ttft = 4 + 3000 * 0.025 / example_speedup(gpus);

                e->prefill[i] = (struct sla_row){.candidate = example_candidate(gpus, SIM_TP),
                                                 .latency = ttft,
                                                 .throughput = 3000 / ttft / gpus * 1000};
                for (size_t k = 0; k < ARRAY_LEN(batches); k++) {
                        double b = (double)batches[k],
                               itl = 3 + (0.05 * b + 0.02 * b) / example_speedup(gpus);

                        e->decode[n++] = (struct sla_row){.candidate = example_candidate(gpus, SIM_TP),
                                                          .latency = itl,
                                                          .throughput = 1000 * b / itl / gpus,
                                                          .concurrency = batches[k],
                                                          .kv_tokens = 450000ull * gpus};
                }
        }
}

static inline void example_curves(struct example *e)
{
        for (size_t i = 0; i < EXAMPLE_ISLS; i++) {
                double isl = 100 + 470 * (double)i;

                e->isl[i] = isl;
                e->ttft[i] = 4 + isl * 0.0135 + isl * isl * 2e-7;
                e->throughput[i] = isl / e->ttft[i] * 1000 / 2;
        }
        for (size_t i = 0; i < EXAMPLE_CONTEXTS; i++)
                for (size_t k = 0; k < EXAMPLE_BATCHES; k++) {
                        double context = 350 + 1280 * (double)i, most = 450000 / context;
                        double b = 1 + (most - 1) * (double)k / (EXAMPLE_BATCHES - 1);
                        double itl = 3 + 0.05 * b + context * b * 0.00002;

                        e->surface[i * EXAMPLE_BATCHES + k] = (struct sla_sample){
                                context * b / 450000, context, itl, 1000 * b / itl};
                }
}

static inline void example_init(struct example *e)
{
        memset(e, 0, sizeof(*e));
        example_sweeps(e);
        example_curves(e);
        e->config = (struct sla_config){.model = "Qwen/Qwen3-0.6B",
                                        .backend = "vllm",
                                        .isl = 3000,
                                        .osl = 500,
                                        .ttft = 50,
                                        .itl = 10,
                                        .min_gpus = 1,
                                        .max_gpus = 4,
                                        .gpus_per_node = 8,
                                        .request_rate = 12,
                                        .budget = 8};
        e->notes[0] = "candidate TP=8 was left out: <pod> in CrashLoopBackOff & gone";
        e->r = (struct sla_results){.config = &e->config,
                                    .target = "sim",
                                    .simulated = true,
                                    .prefill = e->prefill,
                                    .n_prefill = ARRAY_LEN(e->prefill),
                                    .decode = e->decode,
                                    .n_decode = ARRAY_LEN(e->decode),
                                    .prefill_isl = e->isl,
                                    .prefill_ttft = e->ttft,
                                    .prefill_throughput = e->throughput,
                                    .n_curve = EXAMPLE_ISLS,
                                    .surface = e->surface,
                                    .n_surface = ARRAY_LEN(e->surface),
                                    .max_kv_tokens = 450000,
                                    .has_replicas = true,
                                    .replicas = {.prefill = 2, .decode = 3, .gpus = 7},
                                    .notes = e->notes,
                                    .n_notes = 1,
                                    .points_measured = 68,
                                    .deployments = 8};
        assert_true(sla_pick(e->prefill, e->r.n_prefill, e->config.ttft, &e->r.chosen_prefill));
        assert_true(sla_pick(e->decode, e->r.n_decode, e->config.itl, &e->r.chosen_decode));
}

static inline void example_done(struct example *e)
{
        arena_done(&e->arena);
}
DEFINE_CLEANUP_STRUCT(struct example, example_done)
