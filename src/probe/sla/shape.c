/*
 * What the model is, and which mappings onto GPUs it allows.
 */
#include <math.h>

#include "probe/sla/shape.h"

enum {
        DEFAULT_MAX_GPUS = 4,
        DEFAULT_PER_NODE = 8,
        MOE_SPREAD = 8, /* a mixture of experts may take this many times the GPUs it needs */
};
#define WEIGHTS_SHARE 0.9 /* of the memory of a GPU; the rest is the engine's */

/* ---- a Hugging Face config.json */

static const char *const MOE_ARCHITECTURES[] = {"DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM",
                                                "Qwen3MoeForCausalLM"};
#define TP_TOO "Qwen3MoeForCausalLM"

/* The first of KEYS that is a whole number above 0, in CONFIG or in the text part of a model of many media. */
static uint64_t first_number(const struct json *config, const char *const *keys)
{
        const struct json *parts[] = {config, json_at(config, "text_config")};
        uint64_t value;

        for (size_t part = 0; part < ARRAY_LEN(parts); part++)
                for (const char *const *key = keys; *key; key++)
                        if (json_to_u64(json_at(parts[part], *key), &value) && value)
                                return value;
        return 0;
}

/* weight_block_size is [rows, columns] of a block: what a rank gets must be whole blocks, so the larger one counts. */
static uint64_t quant_block(const struct json *config)
{
        const struct json *size = json_at(json_at(config, "quantization_config"), "weight_block_size");
        uint64_t largest = 0, value;

        if (json_to_u64(size, &value))
                return value;
        json_foreach (side, size)
                if (json_to_u64(side, &value))
                        largest = MAX(largest, value);
        return largest;
}

bool shape_is_moe(const char *architecture)
{
        for (size_t i = 0; i < ARRAY_LEN(MOE_ARCHITECTURES); i++)
                if (streq(architecture, MOE_ARCHITECTURES[i]))
                        return true;
        return false;
}

void sla_shape_read(const struct json *config, struct arena *a, struct sla_shape *ret)
{
        static const char *const kv_heads[] = {"num_key_value_heads", "num_attention_heads", "n_head", NULL};
        static const char *const experts[] = {"n_routed_experts", "num_local_experts", "num_experts", NULL};
        static const char *const intermediate[] = {"intermediate_size", "n_inner", "ffn_dim", NULL};
        static const char *const context[] = {"max_position_embeddings", "n_positions",
                                              "max_sequence_length",     "seq_length",
                                              "model_max_length",        NULL};
        const char *architecture = json_cstr(json_first(json_at(config, "architectures")));
        uint64_t block = quant_block(config);

        *ret = (struct sla_shape){
                .architecture = arena_strdup(a, architecture),
                .moe = shape_is_moe(architecture),
                .kv_heads = first_number(config, kv_heads),
                .experts = first_number(config, experts),
                .intermediate = first_number(config, intermediate),
                .quant_block = block ? block : quant_block(json_at(config, "text_config")),
                .max_context = first_number(config, context),
        };
}

/* ---- GPUs */

void sla_gpu_range(const struct sla_shape *s, double vram_mib, unsigned per_node, unsigned *min,
                   unsigned *max)
{
        bool known = s->weight_mib > 0 && vram_mib > 0;
        unsigned node = per_node ? per_node : known ? DEFAULT_PER_NODE : DEFAULT_MAX_GPUS;

        *min = known ? (unsigned)MIN(ceil(s->weight_mib / WEIGHTS_SHARE / vram_mib), (double)SLA_GPUS_MAX)
                     : 1;
        *max = s->moe && (known || per_node) ? MAX(MOE_SPREAD * *min, node) : node;
}

static bool divides(uint64_t parts, uint64_t whole)
{
        return parts <= 1 || whole == 0 || whole % parts == 0;
}

static bool allows(const struct sla_shape *s, enum sim_mapping mapping, unsigned gpus)
{
        uint64_t tp = mapping == SIM_DEP ? 1 : gpus, ep = mapping == SIM_TP ? 1 : gpus;

        if (!divides(tp, s->kv_heads) || !divides(ep, s->experts) || !divides(tp, s->intermediate))
                return false;
        return tp <= 1 || !s->quant_block || !s->intermediate || s->intermediate / tp % s->quant_block == 0;
}

size_t sla_candidates(const struct sla_shape *s, unsigned min, unsigned max,
                      struct sla_candidate out[SLA_CANDIDATES_MAX])
{
        static const enum sim_mapping dense[] = {SIM_TP}, moe[] = {SIM_TEP, SIM_DEP, SIM_TP};
        const enum sim_mapping *mappings = s->moe ? moe : dense;
        size_t n = 0, each = !s->moe ? 1 : streq(s->architecture, TP_TOO) ? 3 : 2;

        for (uint64_t gpus = 1; gpus <= MIN(max, (unsigned)SLA_GPUS_MAX); gpus *= 2)
                for (size_t i = 0; i < each && gpus >= min; i++) {
                        if (!allows(s, mappings[i], (unsigned)gpus) || n == SLA_CANDIDATES_MAX)
                                continue;
                        sla_candidate_init(&out[n++], mappings[i], (unsigned)gpus);
                }
        return n;
}

void sla_candidate_init(struct sla_candidate *c, enum sim_mapping mapping, unsigned gpus)
{
        *c = (struct sla_candidate){
                .gpus = gpus,
                .attn_dp = mapping == SIM_DEP ? gpus : 1,
                .mapping = mapping,
        };
        snprintf(c->label, sizeof(c->label), "%s=%u", sim_mappings[mapping], gpus);
}

bool sla_candidate_parse(struct str label, struct sla_candidate *ret)
{
        struct str name = str_split(&label, '=');
        uint64_t gpus;

        if (!label.p || !str_to_u64(label, &gpus) || gpus < 1 || gpus > SLA_GPUS_MAX)
                return false;
        for (int i = 0; i < SIM_MAPPINGS_; i++)
                if (str_eq(name, str_of(sim_mappings[i]))) {
                        sla_candidate_init(ret, (enum sim_mapping)i, (unsigned)gpus);
                        return true;
                }
        return false;
}
