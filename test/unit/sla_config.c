/* The profiler's configuration. */
#include "unit/sla_rig.h"

#include "unit/dir.h"

static struct sla_config config(struct arena *a, const char *text)
{
        struct sla_config c;
        struct err err = ERR_INIT;

        if (sla_config_parse(a, given(a, text), &c, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return c;
}

static const char *refusal(struct arena *a, const char *text)
{
        struct sla_config c;
        struct err err = ERR_INIT;

        assert_int_equal(sla_config_parse(a, given(a, text), &c, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        return arena_strdup(a, err.text);
}

static void test_defaults_are_upstream_s(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config c = config(&a, "{engine: {maxContextLength: 8192}}");

        assert_null(c.model);
        assert_null(c.base_config);
        assert_null(c.output_dir);
        assert_null(c.planner);
        assert_string_equal(c.backend, "vllm");
        assert_string_equal(c.ns, "dynamo-sla-profiler");
        assert_int_equal(c.isl, 3000);
        assert_int_equal(c.osl, 500);
        assert_near(c.ttft, 50);
        assert_near(c.itl, 10);
        assert_int_equal(c.min_gpus, 1);
        assert_int_equal(c.max_gpus, 4);
        assert_int_equal(c.gpus_per_node, 8);
        assert_int_equal(c.prefill_granularity, 16);
        assert_int_equal(c.decode_granularity, 6);
        assert_int_equal(c.decode_osl, 500);
        assert_int_equal(c.context, 8192);
        assert_int_equal(c.budget, 8);
        assert_int_equal(c.min_endpoint, 1);
        assert_near(c.interval, 180);
        assert_near(c.request_rate, 0);
        assert_int_equal(c.deploy_timeout, 1800 * USEC_PER_SEC);
        assert_false(c.adaptive || c.dry_run || c.use_mocker || c.shape.moe);
}

static void assert_all_read(const struct sla_config *c)
{
        assert_string_equal(c->output_dir, "/out");
        assert_true(c->use_mocker);
        assert_string_equal(c->ns, "x");
        assert_string_equal(c->model, "Qwen/Qwen3-0.6B");
        assert_int_equal(c->deploy_timeout, 90500 * USEC_PER_MS);
        assert_string_equal(c->backend, "sglang");
        assert_string_equal(c->base_config, "/config/disagg.yaml");
        assert_int_equal(c->context, 4096);
        assert_true(c->shape.moe);
        assert_int_equal(c->min_gpus, 2);
        assert_int_equal(c->max_gpus, 16);
        assert_int_equal(c->gpus_per_node, 4);
        assert_int_equal(c->isl, 1000);
        assert_int_equal(c->osl, 100);
        assert_near(c->ttft, 200.5);
        assert_near(c->itl, 20);
        assert_int_equal(c->prefill_granularity, 8);
        assert_int_equal(c->decode_granularity, 4);
        assert_int_equal(c->decode_osl, 100);
        assert_true(c->dry_run);
        assert_true(c->adaptive);
        assert_int_equal(c->budget, 64);
        assert_int_equal(c->min_endpoint, 2);
        assert_near(c->interval, 60);
        assert_near(c->request_rate, 2.5);
        assert_int_equal(json_len(c->planner), 5);
        assert_string_equal(c->shape.architecture, "MyMoe");
        assert_int_equal(c->shape.kv_heads, 16);
        assert_int_equal(c->shape.experts, 64);
        assert_int_equal(c->shape.intermediate, 16384);
        assert_int_equal(c->shape.quant_block, 128);
        assert_int_equal(c->shape.max_context, 40960);
        assert_near(c->shape.weight_mib, 60000);
}

static void test_both_spellings(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config camel = config(
                &a,
                "{outputDir: /out, useMocker: true, deployment: {namespace: x, model: Qwen/Qwen3-0.6B,"
                " deploymentTimeout: 90.5}, engine: {backend: sglang, config: /config/disagg.yaml,"
                " maxContextLength: 4096, isMoeModel: true}, hardware: {minNumGpusPerEngine: 2,"
                " maxNumGpusPerEngine: 16, numGpusPerNode: 4, gpuVramMib: 81920, totalGpus: 128},"
                " sla: {isl: 1000, osl: 100, ttft: 200.5, itl: 20},"
                " sweep: {prefillInterpolationGranularity: 8, decodeInterpolationGranularity: 4,"
                " decodeInterpolationOsl: 100, dryRun: true, search: adaptive},"
                " planner: {maxGpuBudget: 64, minEndpoint: 2, adjustmentInterval: 60, requestRate: 2.5, "
                "more: 1},"
                " modelShape: {architecture: MyMoe, numKvHeads: 16, numExperts: 64, intermediateSize: 16384,"
                " quantBlock: 128, maxContext: 40960, weightMib: 60000}}");
        struct sla_config snake = config(
                &a, "{output_dir: /out, use_mocker: true, deployment: {namespace: x, model: Qwen/Qwen3-0.6B,"
                    " deployment_timeout: 90.5}, engine: {backend: sglang, config: /config/disagg.yaml,"
                    " max_context_length: 4096, is_moe_model: true}, hardware: {min_num_gpus_per_engine: 2,"
                    " max_num_gpus_per_engine: 16, num_gpus_per_node: 4, vram_mb: 81920, total_gpus: 128},"
                    " sla: {isl: 1000, osl: 100, ttft: 200.5, itl: 20},"
                    " sweep: {prefill_interpolation_granularity: 8, decode_interpolation_granularity: 4,"
                    " decode_interpolation_osl: 100, dry_run: true, search: adaptive},"
                    " planner: {planner_max_gpu_budget: 64, planner_min_endpoint: 2,"
                    " planner_adjustment_interval: 60, request_rate: 2.5, more: 1},"
                    " model_shape: {architecture: MyMoe, num_kv_heads: 16, num_experts: 64,"
                    " intermediate_size: 16384, quant_block: 128, max_context: 40960, weight_mib: 60000}}");

        assert_all_read(&camel);
        assert_all_read(&snake);
}

static void test_a_setting_and_how_it_is_spelled(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *c = given(&a, "{model_shape: {numKvHeads: 4, max_context: null}, output_dir: x}");
        const char *path;

        assert_non_null(sla_setting(&a, c, "modelShape", "numKvHeads", &path));
        assert_string_equal(path, "model_shape.numKvHeads");
        assert_null(sla_setting(&a, c, "modelShape", "maxContext", &path));
        assert_string_equal(path, "model_shape.max_context");
        assert_non_null(sla_setting(&a, c, NULL, "outputDir", &path));
        assert_string_equal(path, "output_dir");
        assert_null(sla_setting(&a, c, "sla", "ttft", &path));
        assert_string_equal(path, "sla.ttft");
}

static void test_gpus_and_context_are_found_out(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config c = config(&a, "{engine: {maxContextLength: 0}, modelShape: {maxContext: 16384,"
                                         " weightMib: 140000}, hardware: {gpuVramMib: 81920,"
                                         " minNumGpusPerEngine: 0, maxNumGpusPerEngine: 0, totalGpus: 6}}");

        assert_int_equal(c.context, 16384);
        assert_int_equal(c.min_gpus, 2);
        assert_int_equal(c.max_gpus, 6);
        assert_int_equal(c.budget, 6);
        c = config(&a, "{engine: {maxContextLength: 8192}, hardware: {minNumGpusPerEngine: 8}}");
        assert_int_equal(c.min_gpus, 8);
        assert_int_equal(c.max_gpus, 8);
}

static void test_a_model_in_a_directory(void **state)
{
        static const struct {
                const char *name, *text;
        } files[] = {
                {"config.json", "{\"architectures\": [\"Qwen3MoeForCausalLM\"], \"num_key_value_heads\": 4,"
                                " \"num_experts\": 128, \"max_position_embeddings\": 40960}"},
                {"model-00001-of-00002.safetensors", "weights"},
                {"model-00002-of-00002.safetensors", "weights"},
                {"pytorch_model.bin", "not counted beside the others"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        char dir[UNIT_DIR_LEN];
        struct sla_config c;

        unit_dir(dir);
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                assert_int_equal(file_replace(arena_join(&a, dir, "/", files[i].name), str_of(files[i].text),
                                              0644, &err),
                                 0);
        c = config(&a, arena_printf(&a, "{deployment: {model: %s}, modelShape: {numKvHeads: 8}}", dir));
        assert_string_equal(c.shape.architecture, "Qwen3MoeForCausalLM");
        assert_true(c.shape.moe);
        assert_int_equal(c.shape.kv_heads, 8); /* what is said wins */
        assert_int_equal(c.shape.experts, 128);
        assert_int_equal(c.context, 40960);
        assert_near(c.shape.weight_mib, 14.0 / (1 << 20));

        assert_int_equal(file_replace(arena_join(&a, dir, "/", "config.json"),
                                      STR("{\"max_position_embeddings\": 1000000000000000}"), 0644, &err),
                         0);
        assert_string_equal(refusal(&a, arena_printf(&a, "{deployment: {model: %s}}", dir)),
                            "engine.maxContextLength: is missing, and the 1000000000000000 tokens of the "
                            "model's config.json are more than 100000000");
        c = config(&a, arena_printf(&a, "{deployment: {model: %s}, engine: {maxContextLength: 8192}}", dir));
        assert_int_equal(c.context, 8192);
        assert_int_equal(file_replace(arena_join(&a, dir, "/", "config.json"), STR("{"), 0644, &err), 0);
        assert_non_null(strstr(refusal(&a, arena_printf(&a, "{deployment: {model: %s}}", dir)),
                               "/config.json cannot be read"));
}

static void test_a_run_needs_a_model(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config c = config(&a, "{engine: {maxContextLength: 8192}}");
        struct err err = ERR_INIT;

        assert_int_equal(sla_config_check(&c, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, "deployment.model: is missing"));
        c = config(&a, "{engine: {maxContextLength: 8192}, deployment: {model: m}}");
        assert_int_equal(sla_config_check(&c, &err), 0);
}

static void test_a_budget_and_a_cache_that_were_not_said(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_config c = config(&a, "{engine: {maxContextLength: 8192}, deployment: {dgdImage: '',"
                                         " modelCache: {pvcName: ''}}}");

        assert_false(c.budget_said);
        assert_int_equal(c.budget, 8);
        assert_null(c.image);
        assert_null(c.cache_claim);
        c = config(&a,
                   "{engine: {maxContextLength: 8192}, planner: {maxGpuBudget: 8}, deployment: {dgd_image:"
                   " i, model_cache: {pvc_name: models, pvcPath: m/1}}}");
        assert_true(c.budget_said);
        assert_string_equal(c.image, "i");
        assert_string_equal(c.cache_claim, "models");
        assert_string_equal(c.cache_path, "m/1");
        assert_string_equal(c.cache_mount, "/opt/model-cache");
}

static void test_every_mistake_is_told(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(refusal(&a,
                                    "{sla: {isl: 0, osl: -5, ttft: fast}, sweep: {search: best, dry_run: 1},"
                                    " engine: {backend: tgi, max_context_length: 8192}}"),
                            "sla.isl: must be a whole number above 0, not 0; "
                            "sla.osl: must be a whole number above 0, not -5; "
                            "sla.ttft: must be a number above 0, not \"fast\"; "
                            "sweep.dry_run: must be true or false, not 1; "
                            "engine.backend: must be vllm, sglang or trtllm, not \"tgi\"; "
                            "sweep.search: must be grid or adaptive, not \"best\"");
}

static const struct {
        const char *text, *why;
} MISTAKES[] = {
        {"[]", "the configuration must be an object, not []"},
        {"{}", "engine.maxContextLength: is missing, and no config.json of the model is here to say it"},
        {"{engine: {maxContextLength: 612}, sla: {isl: 10, osl: 10}}",
         "engine.maxContextLength: max_context_length 100 is too small to profile prefill"},
        {"{engine: {maxContextLength: 3000}}",
         "sla.isl: with sla.osl is 3500 tokens, and the context has 3000"},
        {"{engine: {maxContextLength: 2000}, sla: {isl: 0}}",
         "sla.isl: must be a whole number above 0, not 0"},
        {"{engine: {maxContextLength: 8192}, sla: 7}", "sla: must be an object, not 7"},
        {"{engine: {maxContextLength: -1}}",
         "engine.maxContextLength: must be a whole number of 0 or more, not -1"},
        {"{engine: {maxContextLength: 8192}, sla: {osl: 1}}", "sla.osl: must be at least 2, not 1"},
        {"{engine: {maxContextLength: 8192}, sweep: {decode_interpolation_osl: 1}}",
         "sweep.decode_interpolation_osl: must be at least 2, not 1"},
        {"{engine: {maxContextLength: 8192}, deployment: {dgdImage: 5}}",
         "deployment.dgdImage: must be a text, not 5"},
        {"{engine: {maxContextLength: 8192}, deployment: {model_cache: {pvc_name: 5, mountPath: x}}}",
         "deployment.model_cache.pvc_name: must be a text, not 5; "
         "deployment.model_cache.mountPath: must begin with /, not \"x\""},
        {"{engine: {maxContextLength: 8192}, deployment: {modelCache: models}}",
         "deployment.modelCache: must be an object, not \"models\""},
        {"{engine: {maxContextLength: 8192}, hardware: {minNumGpusPerEngine: 4, maxNumGpusPerEngine: "
         "8, totalGpus: 4}}",
         "planner.maxGpuBudget: is 4, and the smallest engines for prefill and decode, 1 of each, "
         "need 8 GPUs"},
        {"{engine: {maxContextLength: 8192}, sla: {isl: 1.5}}",
         "sla.isl: must be a whole number above 0, not 1.5"},
        {"{engine: {maxContextLength: 8192}, hardware: {minNumGpusPerEngine: 8, maxNumGpusPerEngine: "
         "4}}",
         "hardware: an engine needs 8 GPUs and may have 4"},
        {"{engine: {maxContextLength: 8192}, hardware: {minNumGpusPerEngine: 5, maxNumGpusPerEngine: "
         "7}}",
         "hardware: no power of two from 5 to 7 GPUs fits the model's shape"},
        {"{engine: {maxContextLength: 8192}, hardware: {gpu_vram_mib: 80000}, modelShape:"
         " {weightMib: 1000000}}",
         "hardware: an engine needs 14 GPUs and may have 8"},
        {"{engine: {maxContextLength: 8192}, hardware: {minNumGpusPerEngine: 2}, planner: "
         "{maxGpuBudget: 3}}",
         "planner.maxGpuBudget: is 3, and the smallest engines for prefill and decode, 1 of each, "
         "need 4 "
         "GPUs"},
        {"{engine: {maxContextLength: 8192}, sweep: {useAiConfigurator: true}}",
         "sweep.useAiConfigurator: is not for this profiler, which measures and does not estimate, "
         "leave "
         "it out"},
        {"{engine: {maxContextLength: 8192}, sweep: {decodeInterpolationGranularity: 1000}}",
         "sweep.decodeInterpolationGranularity: must be at most 64, not 1000"},
        {"{engine: {maxContextLength: 8192}, deployment: {model: ''}}",
         "deployment.model: must be a text, not \"\""},
        {"{engine: {maxContextLength: 8192}, deployment: {model: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "
         "12,"
         " 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26]}}",
         "deployment.model: must be a text, not "
         "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23..."},
};

static void test_mistakes(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(MISTAKES); i++)
                assert_string_equal(refusal(&a, MISTAKES[i].text), MISTAKES[i].why);
}

static void test_more_mistakes_than_fit(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *why = refusal(
                &a,
                "{sla: {isl: '0123456789012345678901234567890123456789', osl:"
                " '0123456789012345678901234567890123456789', ttft: "
                "'0123456789012345678901234567890123456789',"
                " itl: '0123456789012345678901234567890123456789'}, sweep: {prefillInterpolationGranularity:"
                " '0123456789012345678901234567890123456789', decodeInterpolationGranularity:"
                " '0123456789012345678901234567890123456789', decodeInterpolationOsl:"
                " '0123456789012345678901234567890123456789', dryRun: "
                "'0123456789012345678901234567890123456'},"
                " hardware: {minNumGpusPerEngine: '0123456789012345678901234567890123456789', totalGpus:"
                " '0123456789012345678901234567890123456789'}}");

        assert_true(strlen(why) < ERR_TEXT_MAX - 1);
        assert_true(str_has_suffix(str_of(why), STR("; and more")));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_upstream_s),
        cmocka_unit_test(test_both_spellings),
        cmocka_unit_test(test_a_setting_and_how_it_is_spelled),
        cmocka_unit_test(test_gpus_and_context_are_found_out),
        cmocka_unit_test(test_a_model_in_a_directory),
        cmocka_unit_test(test_a_run_needs_a_model),
        cmocka_unit_test(test_a_budget_and_a_cache_that_were_not_said),
        cmocka_unit_test(test_every_mistake_is_told),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_more_mistakes_than_fit),
};
UNIT_MAIN(tests)
