#include "unit/parse.h"

#include "kinds/summary.h"

#include <math.h>

static struct summary of(struct arena *a, const char *word, const char *object)
{
        const struct kind *kind = kinds_named(str_of(word));
        struct summary s;

        assert_non_null(kind);
        summarize(kind, parse(a, object), a, &s);
        return s;
}

/* ---- which kind is meant */

static void test_words(void **state)
{
        static const struct {
                const char *word, *kind;
        } cases[] = {
                {"dgdr", "DynamoGraphDeploymentRequest"},
                {"CUDA", "CUDAExperiment"},
                {"cudaexp", "CUDAExperiment"},
                {"algorithmprofilings", "AlgorithmProfiling"},
                {"prof", "AlgorithmProfiling"},
                {"algorithmcomparisons.dprofiler.io", "AlgorithmComparison"},
                {"wprof", "WorkloadProfile"},
                {"AlgorithmComparison", "AlgorithmComparison"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(kinds_named(str_of(cases[i].word))->type->kind, cases[i].kind);
        assert_null(kinds_named(STR("job")));
        assert_null(kinds_named(STR("")));
        assert_null(kinds_named(STR("algorithmcomparisons.other.io")));
}

/* ---- how it stands */

static void test_new(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s = of(&a, "dgdr",
                              "{\"metadata\": {\"name\": \"x\", \"namespace\": \"n\", \"uid\": \"u\", "
                              "\"creationTimestamp\": \"2026-07-01T00:00:00Z\"}, \"spec\": {}}");

        assert_int_equal(s.life, SUMMARY_PENDING);
        assert_string_equal(s.phase, "Pending");
        assert_string_equal(s.state, "");
        assert_true(isnan(s.percent));
        assert_null(s.reason);
        assert_int_equal(s.steps, 0);
        assert_true(s.created > 0);
}

static void test_running(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s = of(
                &a, "dgdr",
                "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"state\": \"Profiling\", \"run\": "
                "{\"attempt\": 2}, "
                "\"profilingProgress\": {\"phase\": \"DecodeSweep\", \"phaseNumber\": 3, \"totalPhases\": "
                "7}, "
                "\"progress\": {\"percent\": 41.5, \"phase\": \"X\", \"currentStep\": 5, \"totalSteps\": 12, "
                "\"message\": \"m\", \"startedAt\": \"2026-07-01T00:00:00Z\", "
                "\"estimatedCompletion\": {\"low\": \"2026-07-01T01:00:00Z\", \"mid\": "
                "\"2026-07-01T02:00:00Z\", "
                "\"high\": \"2026-07-01T03:00:00Z\"}}, "
                "\"conditions\": [{\"type\": \"Progressing\", \"status\": \"True\", \"reason\": "
                "\"Running\"}]}}");

        assert_int_equal(s.life, SUMMARY_RUNNING);
        assert_string_equal(s.phase, "DecodeSweep");
        assert_int_equal(s.phase_number, 3);
        assert_int_equal(s.steps, 12);
        assert_int_equal(s.attempt, 2);
        assert_true(s.percent == 41.5);
        assert_true(s.eta_low < s.eta_mid && s.eta_mid < s.eta_high);
        assert_null(s.reason);
        assert_string_equal(
                json_print(&a, summary_json(&s, &a)),
                "{\"kind\":\"DynamoGraphDeploymentRequest\",\"resource\":\"dgdr\",\"namespace\":\"\","
                "\"name\":\"x\",\"uid\":\"\",\"life\":\"running\",\"state\":\"Profiling\","
                "\"phase\":\"DecodeSweep\",\"phaseNumber\":3,\"totalPhases\":7,\"currentStep\":5,"
                "\"totalSteps\":12,\"percent\":41.5,\"message\":\"m\",\"attempt\":2,"
                "\"startedAt\":\"2026-07-01T00:00:00Z\",\"eta\":{\"low\":\"2026-07-01T01:00:00Z\","
                "\"mid\":\"2026-07-01T02:00:00Z\",\"high\":\"2026-07-01T03:00:00Z\"}}");
}

static void test_lives(void **state)
{
        static const struct {
                const char *status;
                enum summary_life life;
                const char *phase, *reason, *sentence;
        } cases[] = {
                {"{\"phase\": \"Pending\", \"queue\": {\"position\": \"2\", \"reason\": \"one is ahead\"}, "
                 "\"run\": {}}",
                 SUMMARY_PENDING, "Pending", "Queued", "one is ahead"},
                {"{\"phase\": \"Pending\", \"run\": {}, \"conditions\": [{\"type\": \"Progressing\", "
                 "\"status\": "
                 "\"False\", \"reason\": \"Unschedulable\", \"message\": \"no node\"}]}",
                 SUMMARY_PENDING, "Pending", "Unschedulable", "no node"},
                {"{\"phase\": \"Profiling\", \"run\": {}, \"conditions\": [{\"type\": \"Progressing\", "
                 "\"status\": \"False\", \"reason\": \"ImagePullFailed\", \"message\": \"no image\"}]}",
                 SUMMARY_PENDING, "Profiling", "ImagePullFailed", "no image"},
                {"{\"phase\": \"Running\", \"run\": {}, \"conditions\": [{\"type\": \"Progressing\", "
                 "\"status\": "
                 "\"False\", \"reason\": \"NotMoving\", \"message\": \"for 9m\"}]}",
                 SUMMARY_RUNNING, "Running", "NotMoving", "for 9m"},
                {"{\"phase\": \"Running\", \"run\": {}, \"conditions\": [{\"type\": \"Stalled\", \"status\": "
                 "\"True\", \"reason\": \"Forbidden\", \"message\": \"grant it\"}]}",
                 SUMMARY_RUNNING, "Running", "Forbidden", "grant it"},
                {"{\"phase\": \"Failed\", \"conditions\": [{\"type\": \"Stalled\", \"status\": \"True\", "
                 "\"reason\": \"Invalid\", \"message\": \"spec.x\", \"lastTransitionTime\": "
                 "\"2026-07-01T00:00:00Z\"}]}",
                 SUMMARY_FAILED, "Failed", "Invalid", "spec.x"},
                {"{\"phase\": \"Cancelled\", \"conditions\": [{\"type\": \"Stalled\", \"status\": \"True\", "
                 "\"reason\": \"Cancelled\", \"message\": \"by spec.cancel\", \"lastTransitionTime\": "
                 "\"2026-07-01T00:00:00Z\"}]}",
                 SUMMARY_CANCELLED, "Cancelled", "Cancelled", "by spec.cancel"},
                {"{\"phase\": \"Completed\", \"progress\": {\"percent\": 97}, \"conditions\": [{\"type\": "
                 "\"Ready\", "
                 "\"status\": \"True\", \"reason\": \"Succeeded\", \"message\": \"b is faster\", "
                 "\"lastTransitionTime\": \"2026-07-01T00:00:00Z\"}]}",
                 SUMMARY_SUCCEEDED, "Completed", NULL, "b is faster"},
                {"{\"phase\": \"Pending\", \"conditions\": [{\"type\": \"Suspended\", \"status\": \"True\", "
                 "\"reason\": \"Suspended\", \"message\": \"by spec.suspend\"}]}",
                 SUMMARY_SUSPENDED, "Suspended", "Suspended", "by spec.suspend"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct summary s = of(&a, "ac",
                                      arena_printf(&a, "{\"metadata\": {\"name\": \"x\"}, \"status\": %s}",
                                                   cases[i].status));

                assert_int_equal(s.life, cases[i].life);
                assert_string_equal(s.phase, cases[i].phase);
                if (!streq(s.reason, cases[i].reason) || !streq(s.sentence, cases[i].sentence))
                        fail_msg("%zu: %s: %s", i, s.reason, s.sentence);
                assert_int_equal(s.ended != 0, summary_over(&s));
                assert_true(s.life != SUMMARY_SUCCEEDED || s.percent == 100);
        }
}

static void test_templates_and_results(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s = of(
                &a, "ap", "{\"metadata\": {\"name\": \"x\"}, \"spec\": {\"schedule\": {}}, \"status\": {}}");

        assert_int_equal(s.life, SUMMARY_SCHEDULED);
        assert_string_equal(s.phase, "Scheduled");
        s = of(&a, "wprof",
               "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"replay\": true, "
               "\"boundType\": \"memory-bound\"}}");
        assert_int_equal(s.life, SUMMARY_SUCCEEDED);
        assert_string_equal(s.phase, "Result");
        assert_string_equal(s.sentence, "memory-bound");
        assert_true(s.not_measured);
}

/* ---- figures */

static void test_figures_of_a_comparison(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s = of(
                &a, "ac",
                "{\"metadata\": {\"name\": \"x\"}, \"status\": {\"phase\": \"Completed\", "
                "\"results\": [{\"memoryUsage\": 5, \"executionTime\": 1}, {\"error\": \"no\"}, "
                "{\"memoryUsage\": 9, \"executionTime\": 2}, {\"memoryUsage\": 7}], "
                "\"conditions\": [{\"type\": \"Ready\", \"status\": \"True\"}]}}");

        assert_true(s.memory_mb == 9);
        assert_true(isnan(s.seconds) && isnan(s.cpu_percent));
        assert_int_equal(s.trend, SUMMARY_TREND_UNKNOWN);
}

static void test_a_trend_is_told_of_the_template(void **state)
{
        static const char text[] =
                "{\"metadata\": {\"name\": \"x\"%s}, \"status\": {\"conditions\": [{\"type\": "
                "\"PerformanceDegraded\", \"status\": \"%s\"}]}}";
        static const struct {
                const char *meta, *status;
                enum summary_trend trend;
        } cases[] = {
                {"", "True", SUMMARY_DEGRADED},
                {"", "False", SUMMARY_STEADY},
                {"", "Unknown", SUMMARY_TREND_UNKNOWN},
                {", \"ownerReferences\": [{\"kind\": \"AlgorithmProfiling\", \"controller\": true}]", "True",
                 SUMMARY_TREND_UNKNOWN},
                {", \"ownerReferences\": [{\"kind\": \"Workflow\", \"controller\": true}]", "True",
                 SUMMARY_DEGRADED},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;

                assert_int_equal(of(&a, "ap", arena_printf(&a, text, cases[i].meta, cases[i].status)).trend,
                                 cases[i].trend);
        }
}

/* ---- where it is in the queue */

enum { QUEUED = 12 };

static void queue_up(struct arena *a, struct summary v[QUEUED], const char *reason)
{
        for (int i = 0; i < QUEUED; i++)
                v[i] = of(a, i % 2 ? "ap" : "ac",
                          arena_printf(a,
                                       "{\"metadata\": {\"name\": \"r%02d\", \"namespace\": \"%s\", "
                                       "\"creationTimestamp\": \"2026-07-01T00:%02d:00Z\"}, \"spec\": {%s}, "
                                       "\"status\": {\"queue\": {\"position\": \"%s\", \"reason\": \"%s\"}}}",
                                       i, i < 3 ? "other" : "n", i, i == 11 ? "\"priority\": 6" : "",
                                       i < 9 ? "3" : "10+", reason));
}

/* The last one is more urgent by ten minutes, and eleven minutes younger than the first. */
static void test_place(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct summary *all[QUEUED];
        struct summary v[QUEUED];
        const char *ns;

        for (size_t i = 0; i < QUEUED; i++)
                all[i] = &v[i];
        queue_up(&a, v, "at most 4 runs may be under way at once, and others are before it");
        assert_int_equal(summary_place(&v[0], all, QUEUED), 0); /* it says so itself */
        assert_true(summary_place_is_rough(&v[10], &ns));
        assert_null(ns);
        assert_int_equal(summary_place(&v[11], all, QUEUED), 2); /* as old as r01, but first by namespace */
        assert_int_equal(summary_place(&v[9], all, QUEUED), 11);
        assert_int_equal(summary_place(&v[10], all, QUEUED), 12);
        queue_up(&a, v, "at most 2 runs of a namespace may be under way at once, and others are before it");
        assert_true(summary_place_is_rough(&v[10], &ns));
        assert_string_equal(ns, "n");
        assert_int_equal(summary_place(&v[10], all, QUEUED), 9);
        v[4].queue = NULL; /* it has begun */
        assert_int_equal(summary_place(&v[10], all, QUEUED), 8);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_new),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_templates_and_results),
        cmocka_unit_test(test_figures_of_a_comparison),
        cmocka_unit_test(test_a_trend_is_told_of_the_template),
        cmocka_unit_test(test_place),
};

UNIT_MAIN(tests)
