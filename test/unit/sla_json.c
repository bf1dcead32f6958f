/* `sla plan` and `sla pick`: JSON in, JSON out. */
#include "unit/sla_rig.h"

typedef struct json *(*answer_fn)(struct arena *a, const struct json *in, struct err *err);

static struct json *answer(answer_fn fn, struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        struct json *out = fn(a, given(a, text), &err);

        if (!out)
                fail_msg("%s: %s", text, err.text);
        return out;
}

static void assert_json(struct arena *a, const struct json *j, const char *expected)
{
        if (!json_equal(j, given(a, expected)))
                fail_msg("%s\nis not\n%s", json_print(a, j), expected);
}

/* ---- plan */

static void test_a_plan(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *out = answer(sla_plan_json, &a, "{engine: {maxContextLength: 8192}}");

        assert_json(
                &a, out,
                "{context: 8192, gpus: {min: 1, max: 4, perNode: 8},"
                " candidates: [{label: TP=1, mapping: TP, gpus: 1, attnDp: 1},"
                " {label: TP=2, mapping: TP, gpus: 2, attnDp: 1},"
                " {label: TP=4, mapping: TP, gpus: 4, attnDp: 1}],"
                " prefillIsls: [100, 573, 1046, 1519, 1992, 2465, 2938, 3411, 3884, 4357, 4830, 5303, 5776,"
                " 6249, 6722, 7195, 7668], decodeIsls: [100, 1382, 2664, 3946, 5228, 6510],"
                " steps: {Initializing: 1, PrefillSweep: 3, DecodeSweep: 18, ConfigSelection: 1,"
                " PrefillInterpolation: 17, DecodeInterpolation: 36, PlannerGeneration: 1},"
                " deployments: 8, points: 74}");
}

static void test_a_plan_with_the_kv_size(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *out = answer(
                sla_plan_json, &a,
                "{config: {engine: {maxContextLength: 8192, isMoeModel: true}, hardware:"
                " {minNumGpusPerEngine: 8, maxNumGpusPerEngine: 8}, planner: {maxGpuBudget: 16}},"
                " shape: {numKvHeads: 4}, kvTokens: {DEP=8: 100000}}");

        /* 4 heads are not for 8 ranks. 100000 / 3500 are 28: 3 for each of 8. */
        assert_json(
                &a, json_at(out, "candidates"),
                "[{label: DEP=8, mapping: DEP, gpus: 8, attnDp: 8, kvTokens: 100000, maxConcurrency: 28,"
                " concurrencies: [8, 16, 24], interpolation: ["
                "{isl: 100, concurrencies: [8, 32, 64, 96, 128, 160]}, {isl: 1382, concurrencies: [8, 16, 24,"
                " 32, 40, 48]}, {isl: 2664, concurrencies: [8, 16, 24]}, {isl: 3946, concurrencies: [8, 16]},"
                " {isl: 5228, concurrencies: [8, 16]}, {isl: 6510, concurrencies: [8]}]}]");
        assert_json(&a, json_at(out, "points"), "41"); /* 1 + 3 + 17 + 20 */
        assert_json(&a, json_at(out, "deployments"), "4");
        /* Steps do not depend on it. */
        assert_json(&a, json_path(out, "steps.DecodeSweep"), "6");

        out = answer(sla_plan_json, &a,
                     "{config: {engine: {maxContextLength: 8192}, hardware: {maxNumGpusPerEngine: 1}}, "
                     "kvTokens: 0}");
        assert_json(&a, json_at(out, "candidates"),
                    "[{label: TP=1, mapping: TP, gpus: 1, attnDp: 1, kvTokens: 0, maxConcurrency: 0,"
                    " concurrencies: [], interpolation: []}]");
        assert_json(&a, json_at(out, "points"), "18");
        /* TP=2 may have as many points as there can be: 2 + (0 + 6) + 17 + 6 * 6. */
        out = answer(sla_plan_json, &a,
                     "{config: {engine: {maxContextLength: 8192}, hardware: {maxNumGpusPerEngine: 2}}, "
                     "kvTokens: {TP=1: 0}}");
        assert_json(&a, json_at(out, "points"), "61");
}

/* ---- pick */

static void test_choices(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *out = answer(
                sla_pick_json, &a,
                "{targets: {ttft: 200, itl: 5}, isl: 3000, osl: 500,"
                " prefill: [{label: TP=1, ttft: 310}, {label: TP=2, ttft: 200}, {gpus: 4, ttft: 120},"
                " {num_gpus: 8, mapping: DEP, ttft: 480, thpt_per_gpu: 6250}],"
                " decode: [{label: TP=1, itl: 9, throughput: 900, concurrency: 30, kvTokens: 100000},"
                " {label: TP=2, itl: 8, throughput: 100, concurrency: 1}]}");

        assert_json(&a, json_at(out, "prefill"),
                    "{index: 1, label: TP=2, feasible: true, best: 120, ttft: 200, throughput: 7500}");
        assert_json(
                &a, json_at(out, "decode"),
                "{index: 1, label: TP=2, feasible: false, best: 8, itl: 8, throughput: 100, concurrency: 1}");
        assert_json(&a, json_at(out, "pareto"), "{prefill: [2, 1, 0], decode: [1, 0]}");
        assert_near(strtod(json_print(&a, json_at(out, "cost")), NULL), sla_cost(3000, 7500, 500, 100));
        assert_null(json_at(out, "replicas"));
}

static const char CURVES[] =
        "prefillCurve: {prefill_isl: [100, 573, 1046, 1519, 1992], prefill_ttft: [12.5, 31.0, 55.25, 80.0, "
        "121.5],"
        " prefill_thpt_per_gpu: [8000, 9000, 9500, 9400, 9300]},"
        "decodeSurface: {x_kv_usage: [0, 1, 0, 1], y_context_length: [1000, 1000, 2000, 2000],"
        " z_itl: [5, 25, 5, 15], z_thpt_per_gpu: [0, 1000, 0, 800], max_kv_tokens: 100000}";

static void test_values_between(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *out = answer(sla_pick_json, &a,
                                  arena_printf(&a,
                                               "{%s, at: [{isl: 336.5}, {kvUsage: 0.5, context: 1000},"
                                               " {itl: 15, context: 500}, {itl: 1, context: 4000}]}",
                                               CURVES));

        assert_near(strtod(json_print(&a, json_path(out, "at[0].ttft")), NULL), 20.367187499999996);
        assert_json(&a, json_path(out, "at[1].itl"), "15");
        /* Half of 1000 x 25 under way, 15 ms each. */
        assert_near(strtod(json_print(&a, json_path(out, "at[1].throughput")), NULL), 12500 / 15.0);
        assert_json(&a, json_path(out, "at[2].kvUsage"), "0.5");
        assert_json(&a, json_path(out, "at[2].feasible"), "true");
        assert_json(&a, json_at(json_index(json_at(out, "at"), 3), "feasible"), "false");
        assert_json(&a, json_path(out, "at[3].kvUsage"), "0");
        assert_null(json_at(out, "simulated"));
        out = answer(sla_pick_json, &a, arena_printf(&a, "{%s, at: [{isl: 300}], simulated: true}", CURVES));
        assert_json(&a, json_at(out, "simulated"), "true");
        out = answer(sla_pick_json, &a,
                     "{prefillCurve: {prefill_isl: [1], prefill_ttft: [1], prefill_thpt_per_gpu: [1],"
                     " simulated: true}, at: [{isl: 300}]}");
        assert_json(&a, json_at(out, "simulated"), "true");
}

static void test_replicas(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *out;

        /* By the curves: 10 requests a second of 1519 tokens by 9400. */
        out = answer(sla_pick_json, &a,
                     arena_printf(&a,
                                  "{%s, targets: {itl: 15}, demand: {requestRate: 10, isl: 1519, osl: 962,"
                                  " prefillGpus: 1, decodeGpus: 2, maxGpuBudget: 100}}",
                                  CURVES));
        /* Context 1519 + 481 = 2000: all of it meets 15 ms, 800 tokens a second a GPU. 9620 / 800 / 2 = 6.01. */
        assert_json(&a, json_at(out, "replicas"),
                    "{prefill: 2, decode: 7, gpus: 16, capped: false, prefillThroughput: 9400,"
                    " decodeThroughput: 800}");
        /* By the rows that were chosen: 2 and 2 are 12 GPUs; upstream takes 1 and 2, which are 10 of 8. */
        out = answer(sla_pick_json, &a,
                     "{targets: {ttft: 200, itl: 20}, isl: 3000, osl: 500,"
                     " prefill: [{label: TP=2, ttft: 150}], decode: [{label: TP=4, itl: 9, throughput: 900}],"
                     " demand: {requests: 1800}}");
        assert_json(&a, json_at(out, "replicas"),
                    "{prefill: 2, decode: 1, gpus: 8, capped: true, prefillThroughput: 10000,"
                    " decodeThroughput: 900}");
}

/* ---- what is wrong */

static void test_refusals(void **state)
{
        static const struct {
                answer_fn fn;
                const char *text, *why;
        } cases[] = {
                {sla_plan_json, "[]", "the configuration must be an object, not []"},
                {sla_plan_json, "{config: 5}", "the configuration must be an object, not 5"},
                {sla_plan_json, "{config: {engine: {maxContextLength: 8192}}, kvTokens: many}",
                 "kvTokens must be a number, or an object with one a label"},
                {sla_plan_json, "{config: {engine: {maxContextLength: 8192}}, kvTokens: {TP=2: -1}}",
                 "kvTokens of TP=2 must be a whole number of 0 or more"},
                {sla_plan_json, "{config: {engine: {maxContextLength: 8192}}, kvTokens: {TP=3: 1}}",
                 "kvTokens: TP=3 is no candidate, the first is TP=1"},
                {sla_plan_json, "{config: {engine: {maxContextLength: 8192}}, shape: 5}",
                 "modelShape: must be an object, not 5"},
                {sla_pick_json, "[]", "pick needs an object, not array"},
                {sla_pick_json, "{}", "pick needs rows of prefill or decode, places (at), or a demand"},
                {sla_pick_json, "{prefill: [{label: TP=1, ttft: 3, throughput: 1}]}",
                 "targets needs ttft, a number of milliseconds"},
                {sla_pick_json, "{targets: {itl: 3}, decode: [{label: TP=1, itl: 3}]}",
                 "decode[0] needs throughput, a number"},
                {sla_pick_json, "{targets: {itl: 3}, decode: [7]}",
                 "decode[0] needs a label such as TP=4, or gpus and a mapping of TP, TEP or DEP"},
                {sla_pick_json, "{targets: {itl: 3}, decode: [{label: PP=4}]}",
                 "decode[0]: label must be a mapping such as TP=4"},
                {sla_pick_json, "{targets: {itl: 3}, decode: [{gpus: 1.5}]}",
                 "decode[0]: gpus must be a whole number of at most 65536"},
                {sla_pick_json, "{targets: {itl: -3}}", "targets: itl must be a number above 0"},
                {sla_pick_json, "{prefill: 3}", "pick: prefill must be a list"},
                {sla_pick_json, "{prefillCurve: {prefill_isl: [1, 2], prefill_ttft: [1]}}",
                 "prefillCurve: prefill_ttft has 1 numbers, and the list before it 2"},
                {sla_pick_json, "{prefillCurve: {prefill_isl: [1, x]}}",
                 "prefillCurve: prefill_isl[1] is no number"},
                {sla_pick_json,
                 "{prefillCurve: {prefill_isl: [2, 1], prefill_ttft: [1, 2], prefill_thpt_per_gpu: [1, 2]}}",
                 "prefillCurve: point 1 of the curve is not right of the one before it"},
                {sla_pick_json, "{decodeSurface: {}}", "decodeSurface needs x_kv_usage, a list of numbers"},
                {sla_pick_json, "{at: [{isl: 5}]}", "at[0] needs prefillCurve"},
                {sla_pick_json, "{at: [{kvUsage: 5}]}", "at[0] needs decodeSurface"},
                {sla_pick_json, "{at: [{isl: 5, itl: 3}]}", "at[0] needs one of isl, kvUsage and itl"},
                {sla_pick_json, "{at: [3]}", "at[0] needs one of isl, kvUsage and itl"},
                {sla_pick_json, "{demand: {}}", "demand needs requests, a number"},
                {sla_pick_json, "{isl: 1, osl: 1, demand: {requests: 1, prefillGpus: 1, decodeGpus: 1}}",
                 "demand needs prefillCurve or rows of prefill"},
                {sla_pick_json,
                 "{targets: {ttft: 200, itl: 20}, isl: 3000, osl: 500, prefill: [{label: TP=8, ttft: 150}],"
                 " decode: [{label: TP=4, itl: 9, throughput: 900}], demand: {requests: 1800}}",
                 "demand: 1 engine of 8 GPUs for prefill and 1 of 4 for decode need 12 GPUs, and the budget "
                 "has 8"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_null(cases[i].fn(&a, given(&a, cases[i].text), &err));
                assert_string_equal(err.text, cases[i].why);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plan),   cmocka_unit_test(test_a_plan_with_the_kv_size),
        cmocka_unit_test(test_choices),  cmocka_unit_test(test_values_between),
        cmocka_unit_test(test_replicas), cmocka_unit_test(test_refusals),
};
UNIT_MAIN(tests)
