/* What a model is, and which mappings it allows. */
#include "unit/sla_rig.h"

/* The labels of all candidates, in their order, with blanks between. */
static const char *labels(struct arena *a, const struct sla_shape *s, unsigned min, unsigned max)
{
        struct sla_candidate c[SLA_CANDIDATES_MAX];
        size_t n = sla_candidates(s, min, max, c);
        const char *text = "";

        for (size_t i = 0; i < n; i++) {
                assert_int_equal(c[i].attn_dp, c[i].mapping == SIM_DEP ? c[i].gpus : 1);
                text = arena_join(a, text, *text ? " " : "", c[i].label);
        }
        return text;
}

static void test_gpus_are_powers_of_two(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct sla_shape dense = {0};

        assert_string_equal(labels(&a, &dense, 3, 8), "TP=4 TP=8");
        assert_string_equal(labels(&a, &dense, 1, 4), "TP=1 TP=2 TP=4");
        assert_string_equal(labels(&a, &dense, 0, 1), "TP=1");
        assert_string_equal(labels(&a, &dense, 5, 7), "");
        assert_string_equal(labels(&a, &dense, 8, 4), "");
}

static void test_experts_are_spread_in_upstream_s_order(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct sla_shape deepseek = {.architecture = "DeepseekV3ForCausalLM", .moe = true};
        const struct sla_shape qwen = {.architecture = "Qwen3MoeForCausalLM", .moe = true};

        assert_string_equal(labels(&a, &deepseek, 8, 16), "TEP=8 DEP=8 TEP=16 DEP=16");
        assert_string_equal(labels(&a, &qwen, 2, 4), "TEP=2 DEP=2 TP=2 TEP=4 DEP=4 TP=4");
}

static void test_what_does_not_divide_is_dropped(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct {
                struct sla_shape shape;
                const char *left;
        } cases[] = {
                {{.kv_heads = 4}, "TP=1 TP=2 TP=4"},
                {{.intermediate = 11008 / 4 + 2}, "TP=1 TP=2"},
                /* 1536 / 4 is three blocks of 128, 1536 / 8 is one and a half; one GPU need not be whole blocks. */
                {{.intermediate = 1536, .quant_block = 128}, "TP=1 TP=2 TP=4"},
                {{.intermediate = 100, .quant_block = 128}, "TP=1"},
                {{.quant_block = 128}, "TP=1 TP=2 TP=4 TP=8"},
                {{.kv_heads = 3, .intermediate = 1 << 14}, "TP=1"},
                /* DEP has whole attention on each rank, TP whole experts. */
                {{.architecture = "Qwen3MoeForCausalLM", .moe = true, .kv_heads = 4, .experts = 128},
                 "TEP=1 DEP=1 TP=1 TEP=2 DEP=2 TP=2 TEP=4 DEP=4 TP=4 DEP=8"},
                {{.architecture = "Qwen3MoeForCausalLM", .moe = true, .kv_heads = 8, .experts = 6},
                 "TEP=1 DEP=1 TP=1 TEP=2 DEP=2 TP=2 TP=4 TP=8"},
                {{.moe = true, .experts = 1, .kv_heads = 1}, "TEP=1 DEP=1"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(labels(&a, &cases[i].shape, 1, 8), cases[i].left);
}

static void test_how_many_gpus(void **state)
{
        static const struct {
                double weights, vram;
                unsigned per_node;
                bool moe;
                unsigned min, max;
        } cases[] = {
                {140000, 81920, 8, false, 2, 8},
                {16000, 81920, 8, false, 1, 8},
                {640000, 81920, 8, true, 9, 72},
                {700000, 143771, 8, true, 6, 48},
                {73728, 81920, 8, false, 1, 8},
                {73729, 81920, 8, false, 2, 8},
                {0, 0, 0, false, 1, 4},
                {0, 0, 0, true, 1, 4},
                {0, 0, 4, false, 1, 4},
                {0, 81920, 0, false, 1, 4},
                {16000, 81920, 0, false, 1, 8},
                {0, 0, 4, true, 1, 8},
                {1e15, 1, 8, false, SLA_GPUS_MAX, 8},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct sla_shape s = {.weight_mib = cases[i].weights, .moe = cases[i].moe};
                unsigned min, max;

                sla_gpu_range(&s, cases[i].vram, cases[i].per_node, &min, &max);
                assert_int_equal(min, cases[i].min);
                assert_int_equal(max, cases[i].max);
        }
}

static void test_a_model_says_what_it_is(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_shape s;

        sla_shape_read(given(&a, "{'architectures': ['DeepseekV3ForCausalLM'], 'num_key_value_heads': 128,"
                                 " 'n_routed_experts': 256, 'intermediate_size': 18432,"
                                 " 'max_position_embeddings': 163840,"
                                 " 'quantization_config': {'weight_block_size': [64, 128]}}"),
                       &a, &s);
        assert_string_equal(s.architecture, "DeepseekV3ForCausalLM");
        assert_true(s.moe);
        assert_int_equal(s.kv_heads, 128);
        assert_int_equal(s.experts, 256);
        assert_int_equal(s.intermediate, 18432);
        assert_int_equal(s.quant_block, 128);
        assert_int_equal(s.max_context, 163840);
}

static void test_the_text_part_of_a_model_of_many_media(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_shape s;

        sla_shape_read(given(&a, "{'architectures': ['Llama4ForConditionalGeneration'], 'text_config':"
                                 " {'num_attention_heads': 40, 'num_key_value_heads': 8,"
                                 " 'intermediate_size': 8192, 'num_local_experts': 16,"
                                 " 'max_position_embeddings': 10485760}}"),
                       &a, &s);
        assert_false(s.moe);
        assert_int_equal(s.kv_heads, 8);
        assert_int_equal(s.experts, 16);
        assert_int_equal(s.max_context, 10485760);
}

static void test_a_model_that_says_nothing_useful(void **state)
{
        static const char *const texts[] = {
                "{}",
                "[]",
                "null",
                "{'architectures': 'x', 'num_key_value_heads': -1, 'text_config': 7, 'intermediate_size': "
                "1.5,"
                " 'quantization_config': {'weight_block_size': {'a': 'b'}}}",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_shape s;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                sla_shape_read(given(&a, texts[i]), &a, &s);
                assert_null(s.architecture);
                assert_false(s.moe);
                assert_int_equal(s.kv_heads + s.experts + s.intermediate + s.quant_block + s.max_context, 0);
        }
}

static void test_labels_are_read_back(void **state)
{
        static const char *const bad[] = {"",     "TP",    "TP=",  "=4",         "TP=0",
                                          "tp=4", "TP=4x", "XP=4", "TP=99999999"};
        struct sla_candidate c;

        assert_true(sla_candidate_parse(STR("DEP=8"), &c));
        assert_int_equal(c.gpus, 8);
        assert_int_equal(c.attn_dp, 8);
        assert_int_equal(c.mapping, SIM_DEP);
        assert_string_equal(c.label, "DEP=8");
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                assert_false(sla_candidate_parse(str_of(bad[i]), &c));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpus_are_powers_of_two),
        cmocka_unit_test(test_experts_are_spread_in_upstream_s_order),
        cmocka_unit_test(test_what_does_not_divide_is_dropped),
        cmocka_unit_test(test_how_many_gpus),
        cmocka_unit_test(test_a_model_says_what_it_is),
        cmocka_unit_test(test_the_text_part_of_a_model_of_many_media),
        cmocka_unit_test(test_a_model_that_says_nothing_useful),
        cmocka_unit_test(test_labels_are_read_back),
};
UNIT_MAIN(tests)
