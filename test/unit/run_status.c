/*
 * Phases, plans and the reader of the status file: both designs' formats, and everything that somebody else's program
 * may put in its place.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/status.h"
#include "unit/dir.h"

#define NOW ((usec_t)1769263722 * USEC_PER_SEC) /* 2026-01-24T14:08:42Z */

static struct arena arena;

static int each_setup(void **state)
{
        arena_reset(&arena, SIZE_MAX);
        return 0;
}

static int all_done(void **state)
{
        arena_done(&arena);
        return 0;
}

static struct run_status accepted(const char *text)
{
        struct run_status s;
        struct err err = ERR_INIT;

        if (run_status_parse(&arena, str_of(text), NOW, &s, &err) < 0)
                fail_msg("refused: %s: %s", err.text, text);
        return s;
}

static void refused(struct str text, const char *why)
{
        struct run_status s;
        struct err err = ERR_INIT;

        if (run_status_parse(&arena, text, NOW, &s, &err) == 0)
                fail_msg("accepted, though: %s", why);
        if (!strstr(err.text, why))
                fail_msg("'%s' does not say '%s'", err.text, why);
}

static const char *written(const struct run_status *s)
{
        return json_print(&arena, run_status_json(&arena, s));
}

static usec_t at(const char *text)
{
        usec_t t;

        assert_true(time_parse(str_of(text), &t));
        return t;
}

/* ---- phases and plans */

static void the_design_has_nine_phases(void **state)
{
        static const char *const names[] = {
                "Initializing",
                "PrefillSweep",
                "DecodeSweep",
                "ConfigSelection",
                "PrefillInterpolation",
                "DecodeInterpolation",
                "PlannerGeneration",
                "Complete",
                "Failed",
        };

        /* minutes; the design's "<1 min" has no lower end */
        static const double typical[][2] = {{0, 1}, {5, 15}, {15, 30}, {0, 1}, {5, 10}, {15, 30}, {0, 1}};

        assert_int_equal(RUN_PLAN_DGDR.n, 7);
        assert_true(RUN_PLAN_DGDR.weighted);
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                assert_int_equal(run_phase_number(&RUN_PLAN_DGDR, names[i]), i + 1);
                assert_int_equal(run_phase_terminal(names[i]), i >= 7);
        }
        for (size_t i = 0; i < RUN_PLAN_DGDR.n; i++) {
                assert_string_equal(RUN_PLAN_DGDR.phases[i].name, names[i]);
                assert_true(RUN_PLAN_DGDR.phases[i].weight > 0);
                assert_true(RUN_PLAN_DGDR.phases[i].typical_low < RUN_PLAN_DGDR.phases[i].typical_high);
                assert_true(RUN_PLAN_DGDR.phases[i].typical_high == 60 * typical[i][1]);
                assert_true(typical[i][0] == 0 || RUN_PLAN_DGDR.phases[i].typical_low == 60 * typical[i][0]);
        }
        assert_int_equal(run_phase_number(&RUN_PLAN_DGDR, "prefillsweep"), 0);
        assert_int_equal(run_phase_number(&RUN_PLAN_DGDR, ""), 0);
}

static int parse_plan(const char *text, struct run_plan *ret, struct err *err)
{
        return run_plan_parse(json_parse(&arena, str_of(text), NULL, err), ret, err);
}

static void a_plan_is_declared(void **state)
{
        struct run_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(
                parse_plan("[{\"phase\":\"Warmup\",\"steps\":3,\"weight\":10},{\"phase\":\"Measure\","
                           "\"steps\":20,\"weight\":90.5}]",
                           &plan, &err),
                0);
        assert_int_equal(plan.n, 2);
        assert_true(plan.weighted);
        assert_int_equal(plan.phases[0].steps, 3);
        assert_true(plan.phases[1].weight == 90.5);
        assert_int_equal(run_phase_number(&plan, "Measure"), 2);
        assert_int_equal(run_phase_number(&plan, "Complete"), 3);
        assert_int_equal(run_phase_number(&plan, "Failed"), 4);
        assert_int_equal(run_phase_number(&plan, "PrefillSweep"), 0);
        assert_string_equal(
                json_print(&arena, run_plan_json(&arena, &plan)),
                "[{\"phase\":\"Warmup\",\"steps\":3,\"weight\":10},{\"phase\":\"Measure\",\"steps\":20,"
                "\"weight\":90.5}]");
}

static void a_plan_may_say_less(void **state)
{
        struct run_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(
                parse_plan("[\"A\",{\"phase\":\"B\",\"steps\":null},\"Complete\",{\"phase\":\"Failed\"}]",
                           &plan, &err),
                0);
        assert_int_equal(plan.n, 2);
        assert_false(plan.weighted);
        assert_true(plan.phases[0].weight == plan.phases[1].weight);
        assert_string_equal(json_print(&arena, run_plan_json(&arena, &plan)),
                            "[{\"phase\":\"A\"},{\"phase\":\"B\"}]");
        assert_int_equal(parse_plan("[{\"phase\":\"A\",\"weight\":10},\"B\",{\"phase\":\"C\",\"weight\":30}]",
                                    &plan, &err),
                         0);
        assert_true(plan.weighted && plan.phases[1].weight == 20);
        assert_int_equal(parse_plan("[]", &plan, &err), 0);
        assert_int_equal(plan.n, 0);
}

static void a_wrong_plan_is_refused(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                {"{}", "plan is not an array"},
                {"[1]", "the name of plan[0] is not a string"},
                {"[{}]", "the name of plan[0] is not a string"},
                {"[\"\"]", "the name of plan[0] is empty"},
                {"[\"A\", \"a\\nb\"]", "the name of plan[1] has a control character"},
                {"[\"a\\u0000b\"]", "the name of plan[0] has a control character"},
                {"[\"a\\u0085b\"]", "the name of plan[0] has a control character"},
                {"[\"A\",\"B\",\"A\"]", "plan has phase 'A' twice"},
                {"[{\"phase\":\"A\",\"steps\":-1}]", "plan[0].steps"},
                {"[{\"phase\":\"A\",\"steps\":1.5}]", "plan[0].steps"},
                {"[{\"phase\":\"A\",\"steps\":1000000001}]", "plan[0].steps"},
                {"[{\"phase\":\"A\",\"steps\":\"3\"}]", "plan[0].steps"},
                {"[{\"phase\":\"A\",\"weight\":0}]", "plan[0].weight"},
                {"[{\"phase\":\"A\",\"weight\":-1}]", "plan[0].weight"},
                {"[{\"phase\":\"A\",\"weight\":1e400}]", "plan[0].weight"},
                {"[{\"phase\":\"A\",\"weight\":\"1\"}]", "plan[0].weight"},
        };
        struct run_plan plan;
        _cleanup_(buf_done) struct buf many = BUF_INIT(4096);

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_int_equal(parse_plan(cases[i].text, &plan, &err), -1);
                if (!strstr(err.text, cases[i].why))
                        fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
        }
        for (int n = 32; n <= 33; n++) {
                struct err err = ERR_INIT;

                buf_clear(&many);
                for (int i = 0; i < n; i++)
                        buf_printf(&many, "%s\"P%d\"", i ? "," : "[", i);
                buf_addc(&many, ']');
                assert_int_equal(parse_plan(buf_cstr(&many), &plan, &err), n == 32 ? 0 : -1);
        }
}

/* ---- both designs */

static void the_full_design_is_read(void **state)
{
        struct run_status s = accepted(
                "{\"phase\": \"DecodeSweep\", \"phaseNumber\": 3, \"totalPhases\": 7,"
                " \"message\": \"Profiling decode with 4 GPUs, TP=2/DP=2\", \"timestamp\": "
                "\"2026-01-23T14:30:00Z\","
                " \"progress\": {\"currentStep\": 5, \"totalSteps\": 12, \"percentage\": 41.7,"
                " \"subPhase\": \"Benchmarking batch size 256\"}, \"startedAt\": \"2026-01-23T14:00:00Z\","
                " \"gpuConfig\": {\"currentGpus\": 4, \"parallelMapping\": \"TP=2/DP=2\"}}");

        assert_string_equal(s.phase, "DecodeSweep");
        assert_int_equal(s.phase_number, 3);
        assert_int_equal(s.total_phases, 7);
        assert_string_equal(s.message, "Profiling decode with 4 GPUs, TP=2/DP=2");
        assert_int_equal(s.timestamp, at("2026-01-23T14:30:00Z"));
        assert_int_equal(s.started_at, at("2026-01-23T14:00:00Z"));
        assert_true(s.has_progress);
        assert_int_equal(s.current_step, 5);
        assert_int_equal(s.total_steps, 12);
        assert_string_equal(s.sub_phase, "Benchmarking batch size 256");
        assert_true(s.has_gpu_config);
        assert_int_equal(s.current_gpus, 4);
        assert_string_equal(s.parallel_mapping, "TP=2/DP=2");
        assert_null(s.error);
        assert_null(s.others);
        assert_ptr_equal(run_status_plan(&arena, &s), &RUN_PLAN_DGDR);
        assert_string_equal(
                written(&s),
                "{\"phase\":\"DecodeSweep\",\"phaseNumber\":3,\"totalPhases\":7,"
                "\"message\":\"Profiling decode with 4 GPUs, TP=2/DP=2\","
                "\"timestamp\":\"2026-01-23T14:30:00.000000Z\",\"startedAt\":\"2026-01-23T14:00:00.000000Z\","
                "\"progress\":{\"currentStep\":5,\"totalSteps\":12,\"percentage\":41.7,"
                "\"subPhase\":\"Benchmarking batch size 256\"},"
                "\"gpuConfig\":{\"currentGpus\":4,\"parallelMapping\":\"TP=2/DP=2\"}}");
}

static void the_short_design_is_read(void **state)
{
        struct run_status s = accepted(
                "{\"phase\": \"DecodeInterpolation\","
                " \"message\": \"Profiling decode with batch size 496 (4/6)\","
                " \"timestamp\": \"2026-01-24T02:08:42Z\", \"progress\": {\"currentStep\": 4,"
                " \"totalSteps\": 6, \"gpuConfig\": \"1 GPU, TP=1\"}}");

        assert_string_equal(s.phase, "DecodeInterpolation");
        assert_int_equal(s.phase_number, 6);
        assert_int_equal(s.total_phases, 7);
        assert_string_equal(s.message, "Profiling decode with batch size 496 (4/6)");
        assert_int_equal(s.timestamp, at("2026-01-24T02:08:42Z"));
        assert_int_equal(s.current_step, 4);
        assert_int_equal(s.total_steps, 6);
        assert_int_equal(s.started_at, 0);
        assert_true(s.has_gpu_config);
        assert_int_equal(s.current_gpus, 1);
        assert_string_equal(s.parallel_mapping, "TP=1");
        assert_non_null(strstr(written(&s), "\"percentage\":66.7"));
        assert_non_null(
                strstr(written(&s), "\"gpuConfig\":{\"currentGpus\":1,\"parallelMapping\":\"TP=1\"}"));
        s = accepted("{\"phase\": \"PrefillSweep\", \"message\": \"m\", \"progress\": {}}");
        assert_false(s.has_progress);
        assert_int_equal(s.current_step, -1);
}

static void gpu_configs_are_read_in_both_places_and_forms(void **state)
{
        static const struct {
                const char *value;
                int64_t gpus;
                const char *mapping;
        } cases[] = {
                {"\"1 GPU, TP=1\"", 1, "TP=1"},
                {"\"4 GPUs, TP=2/DP=2\"", 4, "TP=2/DP=2"},
                {"\" 8  gpus ,  TP=8, EP=2 \"", 8, "TP=8, EP=2"},
                {"\"2 GPUs\"", 2, ""},
                {"\"16\"", 16, ""},
                {"\"TP=4\"", -1, "TP=4"},
                {"\"TP=4, DP=2\"", -1, "TP=4, DP=2"},
                {"\"8 H100, TP=8\"", -1, "8 H100, TP=8"},
                {"\"-1 GPU, TP=1\"", -1, "-1 GPU, TP=1"},
                {"{\"currentGpus\": 3}", 3, ""},
                {"{\"parallelMapping\": \"DP=3\", \"currentGpus\": null}", -1, "DP=3"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                for (int place = 0; place < 2; place++) {
                        struct run_status s = accepted(
                                arena_printf(&arena,
                                             place ? "{\"phase\":\"X\",\"progress\":{\"gpuConfig\":%s}}"
                                                   : "{\"phase\":\"X\",\"gpuConfig\":%s}",
                                             cases[i].value));

                        assert_true(s.has_gpu_config);
                        assert_int_equal(s.current_gpus, cases[i].gpus);
                        assert_string_equal(s.parallel_mapping, cases[i].mapping);
                }
        assert_false(accepted("{\"phase\":\"X\",\"gpuConfig\":\"\"}").has_gpu_config);
        assert_false(accepted("{\"phase\":\"X\",\"gpuConfig\":null}").has_gpu_config);
        refused(STR("{\"phase\":\"X\",\"gpuConfig\":\"9999999999 GPUs\"}"),
                "gpuConfig has more than 10^9 GPUs");
}

static void a_failure_tells_its_error(void **state)
{
        static const struct {
                const char *members, *error;
        } cases[] = {
                {"\"message\":\"Profiling failed: no GPU\"", "no GPU"},
                {"\"message\":\"it broke\"", "it broke"},
                {"\"message\":\"m\",\"error\":\"E\",\"details\":{\"error\":\"D\"}", "E"},
                {"\"message\":\"m\",\"error\":{\"code\":3}", "{\"code\":3}"},
                {"\"message\":\"m\",\"error\":null,\"details\":{\"error\":\"D\"}", "D"},
                {"\"message\":\"m\",\"details\":{\"message\":\"D\"}", "D"},
                {"\"message\":\"m\",\"details\":{\"reason\":\"D\",\"x\":1}", "D"},
                {"\"message\":\"m\",\"details\":{\"x\":1}", "m"},
                {"\"message\":\"m\",\"details\":\"D\"", "D"},
                {"\"message\":\"m\",\"error\":\"\",\"details\":{\"error\":\"\"}", "m"},
                {"\"x\":1", ""},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct run_status s = accepted(
                        arena_printf(&arena, "{\"phase\":\"Failed\",%s}", cases[i].members));

                assert_int_equal(s.phase_number, 9);
                assert_string_equal(s.error, cases[i].error);
        }
        /* of another phase it is a member that nobody knows */
        assert_null(accepted("{\"phase\":\"PrefillSweep\",\"error\":\"E\"}").error);
        assert_string_equal(
                json_str(accepted("{\"phase\":\"PrefillSweep\",\"error\":\"E\"}").others, "error"), "E");
}

static void a_plan_numbers_the_phases(void **state)
{
        struct run_status s = accepted(
                "{\"phase\":\"Measure\",\"phaseNumber\":7,\"totalPhases\":9,"
                "\"plan\":[{\"phase\":\"Warmup\"},{\"phase\":\"Measure\",\"steps\":3}],"
                "\"sequence\":12,\"overallPercentage\":33.3}");

        assert_int_equal(s.phase_number, 2);
        assert_int_equal(s.total_phases, 2);
        assert_int_equal(s.sequence, 12);
        assert_true(s.overall == 33.3);
        assert_ptr_equal(run_status_plan(&arena, &s), s.plan);
        assert_string_equal(written(&s),
                            "{\"phase\":\"Measure\",\"phaseNumber\":2,\"totalPhases\":2,\"message\":\"\","
                            "\"sequence\":12,\"plan\":[{\"phase\":\"Warmup\"},{\"phase\":\"Measure\","
                            "\"steps\":3}],\"overallPercentage\":33.3}");
        s = accepted("{\"phase\":\"Failed\",\"message\":\"m\",\"plan\":[\"A\",\"B\",\"C\"]}");
        assert_int_equal(s.phase_number, 5);
        /* a number that the file itself says counts where no plan says another */
        s = accepted("{\"phase\":\"PrefillSweep\",\"phaseNumber\":1,\"totalPhases\":6}");
        assert_int_equal(s.phase_number, 1);
        assert_int_equal(s.total_phases, 6);
        s = accepted("{\"phase\":\"PrefillSweep\",\"phaseNumber\":0,\"totalPhases\":0}");
        assert_int_equal(s.phase_number, 2);
        assert_int_equal(s.total_phases, 7);
        s = accepted("{\"phase\":\"X\",\"plan\":[\"A\"]}");
        assert_int_equal(s.phase_number, 0);
        assert_int_equal(s.total_phases, 1);
        assert_null(accepted("{\"phase\":\"X\",\"plan\":[]}").plan);
}

static void a_phase_from_the_future_is_taken(void **state)
{
        struct run_status s = accepted("{\"phase\":\"QuantumSweep\",\"message\":\"m\"}");
        const struct run_plan *plan = run_status_plan(&arena, &s);

        assert_string_equal(s.phase, "QuantumSweep");
        assert_int_equal(s.phase_number, 0);
        assert_int_equal(s.total_phases, 0);
        assert_int_equal(plan->n, 1);
        assert_string_equal(plan->phases[0].name, "QuantumSweep");
        assert_true(plan->phases[0].weight > 0);
        assert_string_equal(written(&s), "{\"phase\":\"QuantumSweep\",\"message\":\"m\"}");
}

static void unknown_members_pass(void **state)
{
        struct run_status s = accepted(
                "{\"zeta\":{\"a\":[1,2.50]},\"phase\":\"X\",\"details\":{\"batch\":16},"
                "\"message\":null,\"alpha\":1e400}");

        assert_string_equal(json_print(&arena, s.details), "{\"batch\":16}");
        assert_string_equal(written(&s), "{\"phase\":\"X\",\"message\":\"\",\"details\":{\"batch\":16},"
                                         "\"zeta\":{\"a\":[1,2.50]},\"alpha\":1e400}");
}

static char *repeated(const char *what, size_t times)
{
        size_t n = strlen(what);
        char *out = arena_alloc(&arena, n * times + 1);

        for (size_t i = 0; i < times; i++)
                memcpy(out + i * n, what, n);
        out[n * times] = '\0';
        return out;
}

static void too_many_unknown_members_are_left_out(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_STATUS_FILE_MAX);
        struct run_status s;

        for (int n = 64; n <= 65; n++) {
                buf_clear(&text);
                buf_adds(&text, "{\"phase\":\"X\"");
                for (int i = 0; i < n; i++)
                        buf_printf(&text, ",\"m%d\":%d", i, i);
                buf_addc(&text, '}');
                s = accepted(buf_cstr(&text));
                assert_int_equal(json_len(s.others), n == 64 ? 64 : 0);
        }
        s = accepted(arena_printf(&arena, "{\"phase\":\"X\",\"big\":\"%s\",\"details\":{\"d\":\"%s\"}}",
                                  repeated("x", 9000), repeated("y", 4000)));
        assert_null(s.others);
        assert_non_null(s.details);
        s = accepted(
                arena_printf(&arena, "{\"phase\":\"X\",\"details\":{\"d\":\"%s\"}}", repeated("y", 4097)));
        assert_null(s.details);
        assert_null(accepted("{\"phase\":\"X\",\"details\":[1]}").details);
}

static void the_largest_status_fits_the_config_map(void **state)
{
        _cleanup_(buf_done) struct buf plan = BUF_INIT(RUN_STATUS_FILE_MAX);
        const char *quotes = repeated("\\\"", 60);
        struct run_status s;

        for (int i = 0; i < RUN_PHASES_MAX; i++)
                buf_printf(&plan,
                           "%s{\"phase\":\"%s%d\",\"steps\":1000000000,\"weight\":%d.12345678901234567}",
                           i ? "," : "[", quotes, i, 100000000 + i);
        s = accepted(arena_printf(
                &arena,
                "{\"phase\":\"Failed\",\"message\":\"%s\",\"plan\":%s],\"error\":\"%s\",\"details\":{\"d\":"
                "\"%s\"},"
                "\"progress\":{\"currentStep\":1000000000,\"totalSteps\":1000000000,\"subPhase\":\"%s\"},"
                "\"gpuConfig\":{\"currentGpus\":1000000000,\"parallelMapping\":\"%s\"},\"bestSoFar\":\"%s\","
                "\"sequence\":9007199254740992}",
                repeated("\\\"", 3000), buf_cstr(&plan), repeated("\\n", 3000), repeated("x", 4000),
                repeated("\\t", 3000), repeated("\\\\", 3000), repeated("\\\"", 3000)));
        assert_in_range(strlen(written(&s)), 8000, RUN_STATUS_TEXT_MAX);
        assert_int_equal(s.plan->n, RUN_PHASES_MAX);
        assert_int_equal(strlen(s.message), RUN_MESSAGE_MAX);
        assert_int_equal(strlen(s.sub_phase), RUN_SUB_PHASE_MAX);
        assert_int_equal(strlen(s.parallel_mapping), RUN_MAPPING_MAX);
        assert_int_equal(strlen(s.best), RUN_BEST_MAX);
        assert_int_equal(strlen(s.error), RUN_ERROR_MAX);
}

static void texts_are_cut_between_characters(void **state)
{
        /* 3 bytes each: 341 of them are 1023 bytes, 85 are 255, 166 are 498 */
        const char *euros = repeated("\xE2\x82\xAC", 2000);
        struct run_status s = accepted(arena_printf(&arena,
                                                    "{\"phase\":\"Failed\",\"message\":\"%s\",\"error\":\"%"
                                                    "s\",\"progress\":{\"subPhase\":\"%s\"},"
                                                    "\"gpuConfig\":{\"parallelMapping\":\"%s\"}}",
                                                    euros, euros, euros, euros));

        assert_int_equal(strlen(s.message), 1023);
        assert_int_equal(strlen(s.error), 498);
        assert_int_equal(strlen(s.sub_phase), 255);
        assert_int_equal(strlen(s.parallel_mapping), 255);
        assert_true(utf8_valid(s.message, strlen(s.message)));
        assert_false(s.has_progress);
}

static void control_characters_do_not_reach_a_terminal(void **state)
{
        struct run_status s = accepted(
                "{\"phase\":\"X\",\"message\":\"a\\u001b[2Jb\\u0000c\\u007fd\\u0085e\\n\\tf\\r\"}");

        assert_string_equal(s.message, "a [2Jb c d  e\n\tf ");
}

/* ---- times */

static void times_are_read_as_both_designs_write_them(void **state)
{
        static const struct {
                const char *text, *means;
        } cases[] = {
                {"2026-01-24T02:08:42Z", "2026-01-24T02:08:42Z"},
                {"2026-01-24T02:08:42.123456+00:00", "2026-01-24T02:08:42.123456Z"},
                {"2026-01-24T02:08:42.123456", "2026-01-24T02:08:42.123456Z"},
                {"2026-01-24T02:08:42.123456Z", "2026-01-24T02:08:42.123456Z"},
                {"2026-01-24T04:08:42+02:00", "2026-01-24T02:08:42Z"},
                {"2026-01-24T14:13:42Z", "2026-01-24T14:13:42Z"}, /* five minutes ahead */
                {"2026-01-24T14:13:42.000001Z", NULL},            /* and a little more */
                {"2999-01-01T00:00:00Z", NULL},
                {"2026-02-30T00:00:00Z", NULL},
                {"0000-00-00T00:00:00Z", NULL},
                {"yesterday", NULL},
                {"", NULL},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct run_status s = accepted(
                        arena_printf(&arena, "{\"phase\":\"X\",\"timestamp\":\"%s\",\"startedAt\":\"%s\"}",
                                     cases[i].text, cases[i].text));

                assert_int_equal(s.timestamp, cases[i].means ? at(cases[i].means) : 0);
                assert_int_equal(s.started_at, s.timestamp);
        }
        assert_int_equal(accepted("{\"phase\":\"X\",\"timestamp\":1769220522}").timestamp, 0);
        assert_int_equal(accepted("{\"phase\":\"X\",\"timestamp\":{}}").timestamp, 0);
}

/* ---- garbage */

static const struct {
        const char *text, *why;
} garbage[] = {
        {"", "it is empty"},
        {"  \n", "invalid JSON at 2:1: "},
        {"null", "it is not an object but null"},
        {"[]", "it is not an object but array"},
        {"\"phase\"", "it is not an object but string"},
        {"{\"phase\":\"X\"", "invalid JSON at 1:"},
        {"{\"phase\":\"X\"} {}", "invalid JSON at 1:"},
        {"{}", "there is no phase"},
        {"{\"phase\":null}", "there is no phase"},
        {"{\"phase\":3}", "phase is not a string"},
        {"{\"phase\":\"\"}", "phase is empty"},
        {"{\"phase\":\"a\\nb\"}", "phase has a control character"},
        {"{\"phase\":\"a\\u0000\"}", "phase has a control character"},
        {"{\"phase\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
         "phase is longer than 63 bytes"},
        {"{\"phase\":\"X\",\"message\":3}", "message is not a string but number"},
        {"{\"phase\":\"X\",\"message\":[]}", "message is not a string but array"},
        {"{\"phase\":\"X\",\"phaseNumber\":-1}", "phaseNumber is not a whole number"},
        {"{\"phase\":\"X\",\"phaseNumber\":\"3\"}", "phaseNumber is not a whole number"},
        {"{\"phase\":\"X\",\"totalPhases\":1e10}", "totalPhases is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":[]}", "progress is not an object but array"},
        {"{\"phase\":\"X\",\"progress\":{\"currentStep\":-1}}", "progress.currentStep is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":{\"currentStep\":1.5}}",
         "progress.currentStep is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":{\"totalSteps\":1000000001}}",
         "progress.totalSteps is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":{\"totalSteps\":1e400}}",
         "progress.totalSteps is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":{\"totalSteps\":99999999999999999999999}}", "progress.totalSteps"},
        {"{\"phase\":\"X\",\"progress\":{\"totalSteps\":true}}", "progress.totalSteps is not a whole number"},
        {"{\"phase\":\"X\",\"progress\":{\"subPhase\":1}}", "progress.subPhase is not a string but number"},
        {"{\"phase\":\"X\",\"bestSoFar\":{}}", "bestSoFar is not a string but object"},
        {"{\"phase\":\"X\",\"gpuConfig\":4}", "gpuConfig is not an object but number"},
        {"{\"phase\":\"X\",\"gpuConfig\":{\"currentGpus\":-4}}",
         "gpuConfig.currentGpus is not a whole number"},
        {"{\"phase\":\"X\",\"gpuConfig\":{\"parallelMapping\":4}}",
         "gpuConfig.parallelMapping is not a string"},
        {"{\"phase\":\"X\",\"progress\":{\"gpuConfig\":{\"currentGpus\":0.5}}}",
         "progress.gpuConfig.currentGpus"},
        {"{\"phase\":\"X\",\"sequence\":-1}", "sequence is not a whole number"},
        {"{\"phase\":\"X\",\"sequence\":9007199254740993}", "sequence is not a whole number"},
        {"{\"phase\":\"X\",\"overallPercentage\":100.1}", "overallPercentage is not a number from 0 to 100"},
        {"{\"phase\":\"X\",\"overallPercentage\":-0.1}", "overallPercentage is not a number from 0 to 100"},
        {"{\"phase\":\"X\",\"overallPercentage\":NaN}", "invalid JSON at 1:"},
        {"{\"phase\":\"X\",\"plan\":{}}", "plan is not an array"},
        {"{\"phase\":\"X\",\"plan\":[\"A\",\"A\"]}", "plan has phase 'A' twice"},
        {"{\"phase\":\"X\",\"message\":\"\xC3\x28\"}", "UTF-8"},
        {"{\"phase\":\"X\",\"message\":\"\\ud800\"}", "invalid JSON at 1:"},
        {"{\"phase\":\"\xED\xA0\x80\"}", "UTF-8"},
};

static void garbage_is_refused_with_a_reason(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(garbage); i++)
                refused(str_of(garbage[i].text), garbage[i].why);
        refused(STR("{\"phase\":\"X\",\"message\":\"a\0b\"}"), "invalid JSON at 1:");
        refused(STR("\0"), "invalid JSON at 1:");
        refused(str_n("{\"phase\":\"X\"}\0", 14), "invalid JSON at 1:");
}

static void depth_and_size_are_bounded(void **state)
{
        const char *deep = arena_printf(&arena, "{\"phase\":\"X\",\"x\":%s%s}", repeated("[", 15),
                                        repeated("]", 15));

        accepted(deep);
        refused(str_of(arena_printf(&arena, "{\"phase\":\"X\",\"x\":%s%s}", repeated("[", 16),
                                    repeated("]", 16))),
                "deep");
        refused(str_n(repeated("[", 60000), 60000), "deep");
        refused(str_of(arena_printf(&arena, "{\"phase\":\"X\",\"x\":\"%s\"}",
                                    repeated("x", RUN_STATUS_FILE_MAX))),
                "65536");
        refused(str_n(repeated("x", 10 << 20), 10 << 20), "65536");
}

static void steps_are_cut_and_zero_is_not_divided_by(void **state)
{
        struct run_status s = accepted("{\"phase\":\"X\",\"progress\":{\"currentStep\":7,\"totalSteps\":5}}");

        assert_int_equal(s.current_step, 5);
        assert_non_null(strstr(written(&s), "\"percentage\":100.0"));
        s = accepted("{\"phase\":\"X\",\"progress\":{\"currentStep\":7,\"totalSteps\":0}}");
        assert_int_equal(s.current_step, 7);
        assert_non_null(strstr(written(&s), "{\"currentStep\":7,\"totalSteps\":0,\"percentage\":0.0}"));
        s = accepted("{\"phase\":\"X\",\"progress\":{\"currentStep\":7}}");
        assert_true(s.has_progress);
        assert_int_equal(s.total_steps, 0);
        s = accepted("{\"phase\":\"X\",\"progress\":{\"totalSteps\":1e3}}");
        assert_int_equal(s.total_steps, 1000);
        assert_int_equal(s.current_step, 0);
}

/* ---- percentage */

/* X (0 ... 100) rounded to one decimal, half to even, from its exact binary value. */
static double rounded(double x)
{
        uint64_t bits, mantissa, scaled, half;
        int down;

        memcpy(&bits, &x, sizeof(bits));
        if (!bits)
                return 0;
        mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
        down = 1075 - (int)(bits >> 52); /* x = mantissa / 2^down */
        assert_in_range(down, 40, 59);
        scaled = mantissa * 10;
        half = (uint64_t)1 << (down - 1);
        bits = scaled >> down;
        scaled &= half * 2 - 1;
        bits += scaled > half || (scaled == half && (bits & 1));
        return (double)bits / 10;
}

static void percentages_are_rounded_as_python_does(void **state)
{
        const int64_t most = unit_extent(500, 2000, 2000);

        for (int64_t n = 1; n <= most; n++)
                for (int64_t i = 0; i <= n; i++)
                        if (run_percentage(i, n) != rounded((double)i / (double)n * 100))
                                fail_msg("%d of %d: %.17g", (int)i, (int)n, run_percentage(i, n));
        assert_true(run_percentage(1, 2000) == 0.1); /* 0.05 is a little more than that in binary */
        assert_true(run_percentage(1, 8) == 12.5);
        assert_true(run_percentage(1, 16) == 6.2); /* 6.25: half to even */
        assert_true(run_percentage(3, 16) == 18.8);
        assert_true(run_percentage(3, 0) == 0);
        assert_true(run_percentage(3, -1) == 0);
        assert_true(run_percentage(-3, 5) == 0);
        assert_true(run_percentage(999999999, 1000000000) == 100.0);
}

/* ---- in place of the file */

static int open_dir(char dir[UNIT_DIR_LEN])
{
        int fd;

        unit_dir(dir);
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        return fd;
}

static void put(int dir, const char *name, struct str text)
{
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        assert_true(fd >= 0);
        assert_int_equal(fd_write_all(fd, text, NULL), 0);
        close(fd);
}

static void reads(int dir, int expected, const char *why)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1);
        struct err err = ERR_INIT;

        assert_int_equal(run_file_read(dir, RUN_STATUS_FILE, RUN_STATUS_FILE_MAX, &out, &err), expected);
        if (expected < 0 && !strstr(err.text, why))
                fail_msg("'%s' does not say '%s'", err.text, why);
        if (expected == 0)
                assert_str(buf_str(&out), why);
}

static void a_file_is_read(void **state)
{
        char dir[UNIT_DIR_LEN];
        _cleanup_(fd_close) int fd = open_dir(dir);
        char *full = repeated("x", RUN_STATUS_FILE_MAX + 1);

        reads(fd, 1, NULL);
        put(fd, RUN_STATUS_FILE, STR("{}"));
        reads(fd, 0, "{}");
        put(fd, RUN_STATUS_FILE, STR(""));
        reads(fd, 0, "");
        put(fd, RUN_STATUS_FILE, str_of(full));
        reads(fd, -1, "larger than 65536 bytes");
        full[RUN_STATUS_FILE_MAX] = '\0';
        put(fd, RUN_STATUS_FILE, str_of(full));
        reads(fd, 0, full);
        put(fd, RUN_STATUS_FILE, str_n(repeated("x", 10 << 20), 10 << 20));
        reads(fd, -1, "larger than 65536 bytes");
}

static void what_is_no_file_is_refused_without_waiting(void **state)
{
        char dir[UNIT_DIR_LEN];
        _cleanup_(fd_close) int fd = open_dir(dir);

        assert_int_equal(mkdirat(fd, RUN_STATUS_FILE, 0755), 0);
        reads(fd, -1, "is a directory, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, AT_REMOVEDIR), 0);

        put(fd, "elsewhere", STR("{\"phase\":\"X\"}"));
        assert_int_equal(symlinkat("elsewhere", fd, RUN_STATUS_FILE), 0);
        reads(fd, -1, "is a symbolic link, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, 0), 0);
        assert_int_equal(symlinkat("/dev/zero", fd, RUN_STATUS_FILE), 0);
        reads(fd, -1, "is a symbolic link, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, 0), 0);
        assert_int_equal(symlinkat("nowhere", fd, RUN_STATUS_FILE), 0);
        reads(fd, -1, "is a symbolic link, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, 0), 0);

        assert_int_equal(mkfifoat(fd, RUN_STATUS_FILE, 0644), 0);
        reads(fd, -1, "is a FIFO, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, 0), 0);

        assert_int_equal(mknodat(fd, RUN_STATUS_FILE, S_IFSOCK | 0644, 0), 0);
        reads(fd, -1, "is a socket, not a regular file");
        assert_int_equal(unlinkat(fd, RUN_STATUS_FILE, 0), 0);

        assert_int_equal(rmdir(dir), -1);
        assert_int_equal(unlinkat(fd, "elsewhere", 0), 0);
        assert_int_equal(rmdir(dir), 0);
        reads(fd, 1, NULL);
}

#define TEST(f) cmocka_unit_test_setup(f, each_setup)
static const struct CMUnitTest tests[] = {
        TEST(the_design_has_nine_phases),
        TEST(a_plan_is_declared),
        TEST(a_plan_may_say_less),
        TEST(a_wrong_plan_is_refused),
        TEST(the_full_design_is_read),
        TEST(the_short_design_is_read),
        TEST(gpu_configs_are_read_in_both_places_and_forms),
        TEST(a_failure_tells_its_error),
        TEST(a_plan_numbers_the_phases),
        TEST(a_phase_from_the_future_is_taken),
        TEST(unknown_members_pass),
        TEST(too_many_unknown_members_are_left_out),
        TEST(the_largest_status_fits_the_config_map),
        TEST(texts_are_cut_between_characters),
        TEST(control_characters_do_not_reach_a_terminal),
        TEST(times_are_read_as_both_designs_write_them),
        TEST(garbage_is_refused_with_a_reason),
        TEST(depth_and_size_are_bounded),
        TEST(steps_are_cut_and_zero_is_not_divided_by),
        TEST(percentages_are_rounded_as_python_does),
        TEST(a_file_is_read),
        TEST(what_is_no_file_is_refused_without_waiting),
};

UNIT_MAIN_TEARDOWN(tests, all_done)
