/*
 * How vLLM, SGLang and TensorRT-LLM are told what they are, as Dynamo's workers take it.
 */
#include "probe/sla/deployment.h"

static const char *number(struct sla_args *args, uint64_t n)
{
        return arena_printf(args->arena, "%llu", (unsigned long long)n);
}

/* ---- vLLM: the size of expert parallelism is tp * dp */

static const char *const VLLM_MODEL[] = {"--model", NULL};
static const char *const SERVED[] = {"--served-model-name", NULL};
static const char *const VLLM_TP[] = {"--tensor-parallel-size", "-tp", "--tp", NULL};
static const char *const VLLM_DP[] = {"--data-parallel-size", "-dp", "--dp", NULL};
static const char *const VLLM_EP[] = {"--enable-expert-parallel", NULL};
static const char *const VLLM_ROLE[] = {"--is-prefill-worker", "--is-decode-worker", NULL};
static const char *const VLLM_CACHE[] = {"--enable-prefix-caching", NULL};
static const char *const VLLM_NO_CACHE[] = {"--no-enable-prefix-caching", NULL};
static const char *const VLLM_SEQS[] = {"--max-num-seqs", NULL};
static const char *const VLLM_TOKENS[] = {"--max-num-batched-tokens", NULL};

static void vllm_map(struct sla_args *args, const struct sla_candidate *c)
{
        sla_args_set(args, VLLM_TP, number(args, c->mapping == SIM_DEP ? 1 : c->gpus));
        if (c->mapping == SIM_TP) {
                sla_args_drop(args, VLLM_DP, true);
                sla_args_drop(args, VLLM_EP, false);
                return;
        }
        sla_args_set(args, VLLM_DP, number(args, c->mapping == SIM_DEP ? c->gpus : 1));
        sla_args_turn_on(args, VLLM_EP);
}

static void vllm_aggregate(struct sla_args *args, const struct sla_candidate *c, enum sla_role role)
{
        (void)c;
        sla_args_drop(args, VLLM_ROLE, false);
        sla_args_drop(args, role == SLA_PREFILL ? VLLM_CACHE : VLLM_NO_CACHE, false);
        sla_args_turn_on(args, role == SLA_PREFILL ? VLLM_NO_CACHE : VLLM_CACHE);
}

/* Its limit of tokens is one GPU's, which sets memory aside for them. */
static void vllm_limit(struct sla_args *args, unsigned ranks, unsigned batch, uint64_t tokens)
{
        sla_args_set(args, VLLM_SEQS, number(args, batch));
        sla_args_set(args, VLLM_TOKENS, number(args, tokens / MAX(ranks, 1u)));
}

/* ---- SGLang */

static const char *const MODEL_PATH[] = {"--model-path", "--model", NULL};
static const char *const SGLANG_TP[] = {"--tp", "--tp-size", "--tensor-parallel-size", NULL};
static const char *const SGLANG_DP[] = {"--dp", "--dp-size", "--data-parallel-size", NULL};
static const char *const SGLANG_EP[] = {"--ep-size", "--ep", "--expert-parallel-size", NULL};
static const char *const SGLANG_DP_ATTENTION[] = {"--enable-dp-attention", NULL};
static const char *const SGLANG_DISAGGREGATION[] = {"--disaggregation-mode",
                                                    "--disaggregation-transfer-backend",
                                                    "--disaggregation-bootstrap-port", NULL};
static const char *const SGLANG_NO_CACHE[] = {"--disable-radix-cache", NULL};
static const char *const SGLANG_BALANCE[] = {"--load-balance-method", NULL};
static const char *const SGLANG_REQUESTS[] = {"--max-running-requests", NULL};
static const char *const SGLANG_CHUNK[] = {"--chunked-prefill-size", NULL};

static void sglang_map(struct sla_args *args, const struct sla_candidate *c)
{
        sla_args_set(args, SGLANG_TP, number(args, c->gpus));
        if (c->mapping == SIM_TP)
                sla_args_drop(args, SGLANG_EP, true);
        else
                sla_args_set(args, SGLANG_EP, number(args, c->gpus));
        if (c->mapping == SIM_DEP) {
                sla_args_set(args, SGLANG_DP, number(args, c->gpus));
                sla_args_turn_on(args, SGLANG_DP_ATTENTION);
        } else {
                sla_args_drop(args, SGLANG_DP, true);
                sla_args_drop(args, SGLANG_DP_ATTENTION, false);
        }
}

/* In turn over the ranks, so that a prompt that comes again finds its cache and costs no prefill. */
static void sglang_aggregate(struct sla_args *args, const struct sla_candidate *c, enum sla_role role)
{
        sla_args_drop(args, SGLANG_DISAGGREGATION, true);
        if (role == SLA_PREFILL) {
                sla_args_turn_on(args, SGLANG_NO_CACHE);
                return;
        }
        sla_args_drop(args, SGLANG_NO_CACHE, false);
        if (c->mapping != SIM_TP)
                sla_args_set(args, SGLANG_BALANCE, "round_robin");
}

static void sglang_limit(struct sla_args *args, unsigned ranks, unsigned batch, uint64_t tokens)
{
        (void)ranks;
        sla_args_set(args, SGLANG_REQUESTS, number(args, batch));
        sla_args_set(args, SGLANG_CHUNK, number(args, tokens));
}

/* ---- TensorRT-LLM: a document among the arguments */

static const char *const TRTLLM_MODE[] = {"--disaggregation-mode", "--disaggregation-strategy", NULL};
static const char *const TRTLLM_OVERRIDE[] = {"--override-engine-args", NULL};

/* What is there already stays; what is no document goes. */
static struct json *overrides(struct sla_args *args)
{
        const char *text = sla_args_get(args, TRTLLM_OVERRIDE);
        struct json *j = text ? json_parse(args->arena, str_of(text), NULL, NULL) : NULL;

        return json_is(j, JSON_OBJECT) ? j : json_object(args->arena);
}

static void trtllm_map(struct sla_args *args, const struct sla_candidate *c)
{
        struct arena *a = args->arena;
        struct json *o = overrides(args);

        json_set(a, o, "tensor_parallel_size", json_u64(a, c->gpus));
        if (c->mapping != SIM_TP) {
                json_set(a, o, "moe_expert_parallel_size", json_u64(a, c->gpus));
                json_set(a, o, "moe_tensor_parallel_size", json_u64(a, 1));
                json_set(a, o, "enable_attention_dp", json_truth(a, c->mapping == SIM_DEP));
        } else { /* the base may be of another mapping */
                json_remove(o, "moe_expert_parallel_size");
                json_remove(o, "moe_tensor_parallel_size");
                json_remove(o, "enable_attention_dp");
        }
        sla_args_set(args, TRTLLM_OVERRIDE, json_print(a, o));
}

/* The engine files of a disaggregated deployment turn the overlap scheduler off for prefill. */
static void trtllm_aggregate(struct sla_args *args, const struct sla_candidate *c, enum sla_role role)
{
        struct arena *a = args->arena;
        struct json *o = overrides(args), *kv = json_at(o, "kv_cache_config");

        (void)c;
        sla_args_drop(args, TRTLLM_MODE, true);
        if (!json_is(kv, JSON_OBJECT))
                kv = json_set(a, o, "kv_cache_config", json_object(a));
        json_set(a, kv, "enable_block_reuse", json_truth(a, role == SLA_DECODE));
        if (role == SLA_PREFILL)
                json_set(a, o, "disable_overlap_scheduler", json_truth(a, false));
        json_set(a, o, "cache_transceiver_config", json_null(a));
        sla_args_set(args, TRTLLM_OVERRIDE, json_print(a, o));
}

static void trtllm_limit(struct sla_args *args, unsigned ranks, unsigned batch, uint64_t tokens)
{
        struct arena *a = args->arena;
        struct json *o = overrides(args);

        (void)ranks;
        json_set(a, o, "max_batch_size", json_u64(a, batch));
        json_set(a, o, "max_num_tokens", json_u64(a, tokens));
        sla_args_set(args, TRTLLM_OVERRIDE, json_print(a, o));
}

/* ---- all of them */

#define SGLANG_ARGS(role)                                                        \
        "--page-size 16 --tp 1 --trust-remote-code --skip-tokenizer-init "       \
        "--disaggregation-mode " role " --disaggregation-transfer-backend nixl " \
        "--disaggregation-bootstrap-port 12345 --host 0.0.0.0"
#define TRTLLM_ARGS(role)                                                                    \
        "--extra-engine-args ./examples/backends/trtllm/engine_configs/qwen3/" role ".yaml " \
        "--disaggregation-mode " role

static const struct sla_backend BACKENDS[] = {
        {.name = "vllm",
         .image = "vllm-runtime",
         .module = "dynamo.vllm",
         .directory = "/workspace/examples/backends/vllm",
         .workers = {"VllmPrefillWorker", "VllmDecodeWorker"},
         .model = VLLM_MODEL,
         .served = SERVED,
         .base_args = {"--is-prefill-worker", ""},
         .map = vllm_map,
         .aggregate = vllm_aggregate,
         .limit = vllm_limit},
        {.name = "sglang",
         .image = "sglang-runtime",
         .module = "dynamo.sglang",
         .directory = "/workspace/examples/backends/sglang",
         .workers = {"prefill", "decode"},
         .model = MODEL_PATH,
         .served = SERVED,
         .base_args = {SGLANG_ARGS("prefill"), SGLANG_ARGS("decode")},
         .map = sglang_map,
         .aggregate = sglang_aggregate,
         .limit = sglang_limit},
        {.name = "trtllm",
         .image = "tensorrtllm-runtime",
         .module = "dynamo.trtllm",
         .directory = "/workspace/",
         .workers = {"TRTLLMPrefillWorker", "TRTLLMDecodeWorker"},
         .model = MODEL_PATH,
         .served = SERVED,
         .base_args = {TRTLLM_ARGS("prefill"), TRTLLM_ARGS("decode")},
         .map = trtllm_map,
         .aggregate = trtllm_aggregate,
         .limit = trtllm_limit},
};

const struct sla_backend *sla_backend_find(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(BACKENDS); i++)
                if (streq(BACKENDS[i].name, name))
                        return &BACKENDS[i];
        return NULL;
}
