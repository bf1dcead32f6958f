/* A simulated engine's model file: defaults, units, what is refused and how that is said; the times that follow from it. */
#include "unit/unit.h"

#include "probe/sim/sim.h"

struct world {
        struct arena arena;
        struct sim_model model;
        struct err err;
};

static int setup(void **state)
{
        *state = xcalloc(1, sizeof(struct world));
        return 0;
}

static int teardown(void **state)
{
        struct world *w = *state;

        arena_done(&w->arena);
        free(w);
        return 0;
}

static struct sim_model *parse(struct world *w, const char *text)
{
        if (sim_model_parse(&w->arena, str_of(text), "m.yaml", &w->model, &w->err) < 0)
                fail_msg("%s", w->err.text);
        return &w->model;
}

static void refuse(struct world *w, const char *text, const char *says)
{
        assert_int_equal(sim_model_parse(&w->arena, str_of(text), "m.yaml", &w->model, &w->err), -1);
        assert_string_equal(w->err.text, says);
        assert_int_equal(w->err.code, E_CONFIG);
}

static void test_an_empty_file_is_all_defaults(void **state)
{
        const struct sim_model *m = parse(*state, "");

        assert_string_equal(m->name, "sim/llama");
        assert_string_equal(m->backend, "vllm");
        assert_int_equal(m->gpus, 1);
        assert_int_equal(m->mapping, SIM_TP);
        assert_int_equal(sim_rank_kv(m), 100000);
        assert_true(m->prefix_cache);
        assert_int_equal(m->seed, 1);
        assert_null(m->faults.fail_start);
        assert_int_equal(m->faults.error_status, 500);
        /* 2 ms + 100 * 20 us; 4 ms + 3 * 50 us + 1000 * 10 ns */
        assert_int_equal(sim_prefill_time(m, 100, false), 4000000);
        assert_int_equal(sim_prefill_time(m, 100, true), 2000000);
        assert_int_equal(sim_step_time(m, 3, 1000), 4160000);
}

static void test_every_member_in_its_unit(void **state)
{
        const struct sim_model *m = parse(
                *state, "model: a/b\nbackend: sglang\ngpus: 4\nmapping: TEP\n"
                        "prefill: {baseMs: 1.5, perTokenUs: 0.25, perToken2Ns: 0.5}\n"
                        "decode: {baseMs: 3, perRequestUs: 10, perKvTokenNs: 2}\n"
                        "scaling: {TEP: {prefill: 0.5, decode: 1}}\n"
                        "kvTokensPerGpu: 1000\nweightsKvTokens: 500\nmaxBatch: 8\nprefixCache: false\n"
                        "jitter: 0.1\nseed: 7\n"
                        "faults: {startDelayMs: 1500, failStart: boom, crashAfterRequests: 5,\n"
                        "  hangAfterRequests: 6, errorRate: 0.25, errorStatus: 429, cutRate: 0.5}\n");

        assert_string_equal(m->name, "a/b");
        assert_int_equal(m->mapping, SIM_TEP);
        assert_int_equal(m->max_batch, 8);
        assert_false(m->prefix_cache);
        assert_int_equal(m->seed, 7);
        assert_int_equal(sim_ranks(m), 1);
        assert_int_equal(sim_rank_kv(m), 3500);
        /* 4 GPUs: prefill twice as fast, decode four times; 1.5 ms + (1000 * 250 + 1000000 * 0.5) / 2 */
        assert_int_equal(sim_prefill_time(m, 1000, false), 1500000 + 375000);
        assert_int_equal(sim_step_time(m, 4, 2000), 3000000 + 44000 / 4);
        assert_int_equal(m->faults.start_delay, 1500 * USEC_PER_MS);
        assert_string_equal(m->faults.fail_start, "boom");
        assert_int_equal(m->faults.crash_after, 5);
        assert_int_equal(m->faults.hang_after, 6);
        assert_true(m->faults.error_rate == 0.25 && m->faults.cut_rate == 0.5 && m->jitter == 0.1);
        assert_int_equal(m->faults.error_status, 429);
}

static void test_dep_has_a_rank_a_gpu_each_with_weights_of_its_own(void **state)
{
        const struct sim_model *m = parse(
                *state, "{gpus: 8, mapping: DEP, kvTokensPerGpu: 1000, weightsKvTokens: 400,\n"
                        " scaling: {DEP: {prefill: 0, decode: -1}}}");

        assert_int_equal(sim_ranks(m), 8);
        assert_int_equal(sim_rank_kv(m), 600);
        assert_int_equal(sim_prefill_time(m, 100, false), 4000000);
        assert_int_equal(sim_step_time(m, 1, 0), 4000000 + 8 * 50000);
}

static void test_weights_that_do_not_fit_leave_no_kv(void **state)
{
        assert_int_equal(sim_rank_kv(parse(*state, "{gpus: 2, kvTokensPerGpu: 10, weightsKvTokens: 20}")), 0);
        assert_int_equal(sim_rank_kv(parse(*state, "{gpus: 2, kvTokensPerGpu: 10, weightsKvTokens: 19}")), 1);
}

static void test_what_does_not_fit_is_said_with_line_and_remedy(void **state)
{
        refuse(*state, "model: m\nprefill:\n  baseMs: fast\n",
               "m.yaml:3:11: prefill.baseMs must be a number from 0 to 3600000, not \"fast\"");
        refuse(*state, "decode: {baseMs: -1}",
               "m.yaml:1:18: decode.baseMs must be a number from 0 to 3600000, not -1");
        refuse(*state, "gpus: 1.5", "m.yaml:1:7: gpus must be a whole number from 1 to 1024, not 1.5");
        refuse(*state, "gpus: 0", "m.yaml:1:7: gpus must be a whole number from 1 to 1024, not 0");
        refuse(*state, "mapping: PP", "m.yaml:1:10: mapping must be TP, TEP or DEP, not \"PP\"");
        refuse(*state, "backend: tgi", "m.yaml:1:10: backend must be vllm, sglang or trtllm, not \"tgi\"");
        refuse(*state, "prefixCache: 1", "m.yaml:1:14: prefixCache must be true or false, not 1");
        refuse(*state, "model: ''", "m.yaml:1:8: model must be a name, not \"\"");
        refuse(*state, "prefill: 3",
               "m.yaml:1:10: prefill must be a mapping of baseMs, perTokenUs, perToken2Ns, not 3");
        refuse(*state, "scaling: {TP: [1]}",
               "m.yaml:1:15: scaling.TP must be a mapping of prefill, decode, not a list");
        refuse(*state, "faults: {errorStatus: 200}",
               "m.yaml:1:23: faults.errorStatus must be a whole number from 400 to 599, not 200");
        refuse(*state, "faults: {failLabels: [TP4]}",
               "m.yaml:1:23: faults.failLabels must be labels of a mapping and its GPUs such as TP=4, not "
               "\"TP4\"");
        refuse(*state, "faults: {failLabels: TP=4}",
               "m.yaml:1:22: faults.failLabels must be a list such as [TP=4, DEP=8], not \"TP=4\"");
        refuse(*state, "- 1\n", "m.yaml: a model must be a mapping with members such as gpus: 2");
        refuse(*state, "{}\n---\n{}\n", "m.yaml: holds 2 documents, a model is one");
}

static void test_unknown_members_are_refused_with_those_that_there_are(void **state)
{
        refuse(*state, "prefill: {baseUs: 3}",
               "m.yaml:1:19: unknown member prefill.baseUs; known here: baseMs, perTokenUs, perToken2Ns");
        refuse(*state, "scaling: {PP: {}}",
               "m.yaml:1:15: unknown member scaling.PP; known here: TP, TEP, DEP");
        refuse(*state, "gpu: 3",
               "m.yaml:1:6: unknown member gpu; known here: model, backend, gpus, mapping, prefill, decode, "
               "scaling, kvTokensPerGpu, weightsKvTokens, maxBatch, prefixCache, jitter, seed, faults");
        refuse(*state, "prefill.baseMs: 3",
               "m.yaml:1:17: unknown member prefill.baseMs; known here: model, backend, gpus, mapping, "
               "prefill, decode, scaling, kvTokensPerGpu, weightsKvTokens, maxBatch, prefixCache, jitter, "
               "seed, faults");
}

static void test_broken_yaml_is_an_error_of_the_file(void **state)
{
        struct world *w = *state;

        assert_int_equal(sim_model_parse(&w->arena, STR("a: [1"), "m.yaml", &w->model, &w->err), -1);
        assert_true(str_has_prefix(str_of(w->err.text), STR("m.yaml: ")));
}

static void test_what_is_written_reads_back_the_same(void **state)
{
        struct world *w = *state;
        struct arena *a = &w->arena;
        struct sim_model again;
        struct json *doc;

        parse(w, "{model: x, backend: trtllm, gpus: 16, mapping: DEP, prefill: {baseMs: 0.7, perTokenUs: "
                 "13.3},\n"
                 " scaling: {TP: {decode: 0.33}}, jitter: 0.01, seed: 99, maxBatch: 3, prefixCache: false,\n"
                 " faults: {failStart: 'no luck', failLabels: [TP=4, DEP=16], cutRate: 0.125, startDelayMs: "
                 "2}}");
        doc = sim_model_json(a, &w->model);
        assert_int_equal(sim_model_read(a, doc, "json", &again, &w->err), 0);
        assert_true(json_equal(doc, sim_model_json(a, &again)));
        assert_int_equal(sim_prefill_time(&again, 12345, false), sim_prefill_time(&w->model, 12345, false));
        assert_string_equal(sim_fail_words(&again), "no luck");
        assert_int_equal(again.gpus, 16);
}

static void test_labels_say_which_candidate_does_not_start(void **state)
{
        struct sim_model *m = parse(*state, "faults: {failLabels: [TP=4, DEP=8]}");

        assert_null(sim_fail_words(m));
        m->gpus = 4;
        assert_string_equal(sim_fail_words(m), "CUDA out of memory");
        m->mapping = SIM_DEP;
        assert_null(sim_fail_words(m));
        m->gpus = 8;
        assert_non_null(sim_fail_words(m));
        assert_string_equal(sim_fail_words(parse(*state, "faults: {failStart: x}")), "x");
        assert_null(sim_fail_words(parse(*state, "faults: {failStart: ''}")));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
        TEST(test_an_empty_file_is_all_defaults),
        TEST(test_every_member_in_its_unit),
        TEST(test_dep_has_a_rank_a_gpu_each_with_weights_of_its_own),
        TEST(test_weights_that_do_not_fit_leave_no_kv),
        TEST(test_what_does_not_fit_is_said_with_line_and_remedy),
        TEST(test_unknown_members_are_refused_with_those_that_there_are),
        TEST(test_broken_yaml_is_an_error_of_the_file),
        TEST(test_what_is_written_reads_back_the_same),
        TEST(test_labels_say_which_candidate_does_not_start),
};

UNIT_MAIN(tests)
