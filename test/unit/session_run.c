/* Sessions with made-up measurements: the order of runs, going on after every point, failures, pods, signals. */
#include "unit/session_rig.h"

#define TWO                                                                                           \
        "{\"seed\": 7, \"uid\": \"u\", \"iterations\": 3, \"warmup\": 1, \"sizes\": [10, 20], "       \
        "\"algorithms\": ["                                                                           \
        "{\"name\": \"a\", \"command\": [\"ok\", \"500\"]}, {\"name\": \"b\", \"command\": [\"ok\", " \
        "\"900\"]}]}"
#define ONE_FAILS                                                                                         \
        "{\"iterations\": 9, \"warmup\": 0, \"algorithms\": [{\"name\": \"good\", \"command\": [\"ok\", " \
        "\"500\"]}, "                                                                                     \
        "{\"name\": \"bad\", \"command\": [\"fails\", \"500\"]}]}"

enum { TWO_ENTRIES = 4, TWO_BLOCKS = 4, TWO_RUNS = TWO_ENTRIES * TWO_BLOCKS };

static void test_a_block_runs_every_entry_once_with_one_seed(void **state)
{
        struct rig rig;
        char orders[TWO_BLOCKS][512] = {{0}};

        rig_init(&rig);
        assert_int_equal(rig_run(&rig, TWO), 0);
        assert_int_equal(rig.runs.n, TWO_RUNS);
        assert_int_equal(rig.most, 1);
        for (size_t i = 0; i < rig.runs.n; i++) {
                const struct rig_run *run = &rig.runs.v[i],
                                     *first = &rig.runs.v[i / TWO_ENTRIES * TWO_ENTRIES];
                char *order = orders[i / TWO_ENTRIES];

                assert_int_equal(run->seed, first->seed);
                assert_in_range(run->seed, 0, INT32_MAX);
                assert_int_equal(run->iteration, i < TWO_ENTRIES ? -1 : (int)(i / TWO_ENTRIES) - 1);
                for (const struct rig_run *other = first; other < run; other++)
                        assert_false(streq(other->command, run->command) && other->size == run->size);
                snprintf(order + strlen(order), sizeof(orders[0]) - strlen(order), "%s/%d ", run->command,
                         (int)run->size);
        }
        /* Four shuffles of four that are all the same would be one chance in 13 824. */
        assert_true(!streq(orders[0], orders[1]) || !streq(orders[1], orders[2]) ||
                    !streq(orders[2], orders[3]));
        assert_int_not_equal(rig.runs.v[0].seed, rig.runs.v[TWO_ENTRIES].seed);
        rig_done_all(&rig);
}

static void test_the_same_plan_runs_in_the_same_order(void **state)
{
        struct rig x, y;

        rig_init(&x);
        rig_init(&y);
        assert_int_equal(rig_run(&x, TWO), 0);
        assert_int_equal(rig_run(&y, TWO), 0);
        assert_int_equal(x.runs.n, y.runs.n);
        for (size_t i = 0; i < x.runs.n; i++)
                assert_memory_equal(&x.runs.v[i], &y.runs.v[i], sizeof(x.runs.v[i]));
        rig_done_all(&x);
        rig_done_all(&y);
}

static void test_the_files_of_a_session(void **state)
{
        struct rig rig;
        struct json *status, *samples, *result;

        rig_init(&rig);
        assert_int_equal(rig_run(&rig, TWO), 0);
        status = rig_file(&rig, RUN_STATUS_FILE);
        samples = rig_file(&rig, SESSION_SAMPLES_FILE);
        result = rig_file(&rig, RUN_RESULT_FILE);
        assert_string_equal(json_str(status, "phase"), "Complete");
        assert_string_equal(json_str(status, "message"), "12 valid runs, 0 failed");
        assert_int_equal(json_len(json_at(status, "plan")), 4);
        assert_int_equal(json_len(json_at(samples, "rows")), TWO_RUNS);
        assert_int_equal(json_int(samples, "dropped", -1), 0);
        assert_int_equal(json_len(json_index(json_at(samples, "rows"), 0)),
                         json_len(json_at(samples, "columns")));
        assert_int_equal(json_len(json_at(result, "algorithms")), TWO_ENTRIES);
        assert_int_equal(json_int(json_index(json_at(result, "algorithms"), 1), "size", 0), 20);
        assert_int_equal(json_int(json_index(json_at(result, "algorithms"), 1), "n", 0), 3);
        assert_null(rig_file(&rig, RUN_CHECKPOINT_FILE));
        rig_done_all(&rig);
}

/* The process is killed in the midst of every single run; what was measured before is not measured again. */
static void test_it_goes_on_wherever_it_was_killed(void **state)
{
        struct rig whole;

        rig_init(&whole);
        assert_int_equal(rig_run(&whole, TWO), 0);
        for (size_t at = 1; at <= TWO_RUNS; at++) {
                struct rig rig;

                rig_init(&rig);
                rig.kill_at = at;
                assert_int_equal(rig_run(&rig, TWO), RIG_KILLED);
                assert_null(rig_file(&rig, RUN_RESULT_FILE));
                rig.kill_at = 0;
                assert_int_equal(rig_run(&rig, TWO), 0);
                /* The one that was killed runs again, and those behind it. */
                assert_int_equal(rig.runs.n, TWO_RUNS - at + 1);
                for (size_t i = 0; i < rig.runs.n; i++)
                        assert_memory_equal(&rig.runs.v[i], &whole.runs.v[at - 1 + i], sizeof(rig.runs.v[i]));
                assert_int_equal(json_len(json_at(rig_file(&rig, SESSION_SAMPLES_FILE), "rows")), TWO_RUNS);
                assert_int_equal(
                        json_int(json_index(json_at(rig_file(&rig, RUN_RESULT_FILE), "algorithms"), 0), "n",
                                 0),
                        3);
                rig_done_all(&rig);
        }
        rig_done_all(&whole);
}

static void test_a_checkpoint_of_another_plan_is_not_used(void **state)
{
        struct rig rig;

        rig_init(&rig);
        rig.kill_at = 5;
        assert_int_equal(rig_run(&rig, TWO), RIG_KILLED);
        rig.kill_at = 0;
        assert_int_equal(rig_run(&rig, ONE_FAILS), 0);
        assert_int_equal(rig.runs.n, 12);
        rig_done_all(&rig);
}

static void test_told_to_end_it_keeps_what_it_has(void **state)
{
        struct rig rig;

        rig_init(&rig);
        rig.signal_at = 6;
        assert_int_equal(rig_run(&rig, TWO), 143);
        assert_int_equal(rig.runs.n, 6);
        assert_int_equal(json_len(json_at(rig_file(&rig, RUN_CHECKPOINT_FILE), "rows")), 5);
        rig.signal_at = 0;
        assert_int_equal(rig_run(&rig, TWO), 0);
        assert_int_equal(rig.runs.n, TWO_RUNS - 5);
        rig_done_all(&rig);
}

static void test_three_failures_in_a_row_are_enough(void **state)
{
        struct rig rig;
        const struct json *good, *bad;

        rig_init(&rig);
        assert_int_equal(rig_run(&rig, ONE_FAILS), 0);
        assert_int_equal(rig.runs.n, 9 + 3);
        good = json_index(json_at(rig_file(&rig, RUN_RESULT_FILE), "algorithms"), 0);
        bad = json_index(json_at(rig_file(&rig, RUN_RESULT_FILE), "algorithms"), 1);
        assert_int_equal(json_int(good, "n", 0), 9);
        assert_null(json_at(good, "error"));
        assert_int_equal(json_int(bad, "n", -1), 0);
        assert_int_equal(json_int(bad, "invalid", 0), 3);
        assert_int_equal(json_int(json_at(bad, "invalidReasons"), "exit 3", 0), 3);
        assert_string_equal(json_str(json_at(bad, "error"), "reason"), "ExitCode");
        assert_null(json_at(bad, "executionTime"));
        rig_done_all(&rig);
}

static void test_one_that_fails_now_and_then_goes_on(void **state)
{
        struct rig rig;
        const struct json *entry;

        rig_init(&rig);
        assert_int_equal(
                rig_run(&rig,
                        "{\"iterations\": 8, \"warmup\": 0, \"algorithms\": [{\"name\": \"w\", \"command\": "
                        "[\"wobbles\", \"500\"]}]}"),
                0);
        entry = json_index(json_at(rig_file(&rig, RUN_RESULT_FILE), "algorithms"), 0);
        assert_int_equal(rig.runs.n, 8);
        assert_int_equal(json_int(entry, "n", 0), 4);
        assert_int_equal(json_int(entry, "invalid", 0), 4);
        assert_null(json_at(entry, "error"));
        rig_done_all(&rig);
}

static void test_nothing_valid_is_a_failure_with_its_reason(void **state)
{
        struct rig rig;
        const struct json *status;

        rig_init(&rig);
        assert_int_equal(
                rig_run(&rig,
                        "{\"iterations\": 5, \"algorithms\": [{\"name\": \"m\", \"command\": [\"missing\", "
                        "\"1\"]}]}"),
                1);
        status = rig_file(&rig, RUN_STATUS_FILE);
        assert_int_equal(rig.runs.n, 3);
        assert_string_equal(json_str(status, "phase"), "Failed");
        assert_string_equal(json_str(status, "reason"), "NotStarted");
        assert_string_equal(json_str(status, "error"), "there is no program 'missing'");
        assert_non_null(rig_file(&rig, RUN_RESULT_FILE));
        assert_null(rig_file(&rig, RUN_CHECKPOINT_FILE));
        rig_done_all(&rig);
        /* Of several it says whose reason that is. */
        rig_init(&rig);
        assert_int_equal(
                rig_run(&rig,
                        "{\"warmup\": 0, \"parallel\": true, \"algorithms\": [{\"name\": \"m\", \"command\": "
                        "[\"missing\", \"1\"]}, {\"name\": \"n\", \"command\": [\"missing\", \"1\"]}]}"),
                1);
        assert_non_null(strstr(json_str(rig_file(&rig, RUN_STATUS_FILE), "error"),
                               ": there is no program 'missing'"));
        rig_done_all(&rig);
}

static void test_in_parallel_a_block_is_under_way_together(void **state)
{
        struct rig rig;
        const struct json *result;

        rig_init(&rig);
        assert_int_equal(
                rig_run(&rig,
                        "{\"iterations\": 6, \"parallel\": true, \"algorithms\": [{\"name\": \"a\", "
                        "\"command\": [\"ok\", \"500\"]}, {\"name\": \"b\", \"command\": [\"ok\", \"900\"]}, "
                        "{\"name\": \"c\", \"command\": [\"ok\", \"100\"]}]}"),
                0);
        result = rig_file(&rig, RUN_RESULT_FILE);
        assert_int_equal(rig.most, 3);
        assert_int_equal(rig.runs.n, 21);
        assert_true(json_bool(result, "contended", false));
        assert_string_equal(
                json_str(json_index(json_at(json_at(result, "comparison"), "pairs"), 0), "verdict"),
                "not comparable");
        rig_done_all(&rig);
}

/* Each pod is a session of its own that finds the checkpoint of those before it. */
static void test_pods_measure_one_after_the_other(void **state)
{
        static const char plan[] =
                "{\"iterations\": 2, \"pods\": 3, \"algorithms\": [{\"name\": \"a\", \"command\": "
                "[\"ok\", \"500\"]}, {\"name\": \"b\", \"command\": [\"ok\", \"900\"]}]}";
        struct rig rig;
        const struct json *result;

        rig_init(&rig);
        for (int left = 2; left >= 1; left--) {
                assert_int_equal(rig_run(&rig, plan), 0);
                assert_int_equal(rig.runs.n, 6);
                assert_int_equal(json_int(rig_file(&rig, RUN_RESULT_FILE), "morePods", 0), left);
                assert_string_equal(json_str(rig_file(&rig, RUN_STATUS_FILE), "phase"), "Complete");
        }
        assert_int_equal(rig_run(&rig, plan), 0);
        result = rig_file(&rig, RUN_RESULT_FILE);
        assert_null(json_at(result, "morePods"));
        assert_string_equal(json_str(result, "unit"), "pod");
        assert_int_equal(json_int(result, "pods", 0), 3);
        assert_int_equal(json_int(json_index(json_at(result, "algorithms"), 0), "n", 0), 6);
        assert_int_equal(json_len(json_at(rig_file(&rig, SESSION_SAMPLES_FILE), "rows")), 18);
        rig_done_all(&rig);
}

static bool has_warning(const struct json *result, const char *part)
{
        const struct json *list = json_at(result, "warnings");

        json_foreach (w, list)
                if (strstr(json_cstr(w), part))
                        return true;
        return false;
}

/* That the second pod goes on after the first is how it is meant; that a third one ends what it began is not. */
static void test_a_pod_that_is_gone_on_with_in_another_is_told(void **state)
{
        static const char plan[] = "{\"iterations\": 3, \"pods\": 2, \"algorithms\": [{\"name\": \"a\", "
                                   "\"command\": [\"ok\", \"500\"]}]}";

        for (size_t kill_at = 0; kill_at <= 2; kill_at++) { /* not at all; in its first run; in its second */
                struct rig rig;

                rig_init(&rig);
                assert_int_equal(rig_run(&rig, plan), 0);
                rig.kill_at = kill_at;
                if (kill_at)
                        assert_int_equal(rig_run(&rig, plan), RIG_KILLED);
                rig.kill_at = 0;
                assert_int_equal(rig_run(&rig, plan), 0);
                assert_int_equal(has_warning(rig_file(&rig, RUN_RESULT_FILE), "continued 1 time from"),
                                 kill_at == 2);
                rig_done_all(&rig);
        }
}

static void test_a_plan_that_is_wrong_is_refused(void **state)
{
        struct rig rig;

        rig_init(&rig);
        assert_int_equal(rig_run(&rig, "{\"algorithms\": []}"), 2);
        assert_string_equal(json_str(rig_file(&rig, RUN_STATUS_FILE), "reason"), "InvalidPlan");
        assert_string_equal(json_str(rig_file(&rig, RUN_STATUS_FILE), "error"),
                            "the plan: algorithms is not a list, or it is empty");
        rig_done_all(&rig);
}

/* Nobody comes for group 1: its entries fail, the others do not. */
static void test_a_worker_that_does_not_come(void **state)
{
        static const char plan[] = "{\"iterations\": 4, \"warmup\": 0, \"algorithms\": [{\"name\": \"a\", "
                                   "\"command\": [\"ok\", \"500\"]}, "
                                   "{\"name\": \"b\", \"command\": [\"ok\", \"9\"], \"group\": 1, \"image\": "
                                   "\"registry/b:1\"}]}";
        struct clock clock = {.manual = true, .boot = USEC_PER_SEC, .wall = USEC_PER_SEC * 1700000000};
        struct rig rig;
        const struct session_measure measure = {.make = rig_make,
                                                .start = rig_start,
                                                .stop = rig_stop,
                                                .usage = rig_usage,
                                                .free = rig_free,
                                                .ctx = &rig};
        const struct json *error;

        rig_init(&rig);
        assert_int_equal(
                session_run(&(struct session_config){
                        .plan = plan, .dir = rig.dir, .ctl = rig.dir, .measure = &measure, .clock = &clock}),
                0);
        assert_int_equal(rig.runs.n, 4);
        assert_true(clock.boot >= 10 * 60 * USEC_PER_SEC);
        error = json_at(json_index(json_at(rig_file(&rig, RUN_RESULT_FILE), "algorithms"), 1), "error");
        assert_string_equal(json_str(error, "reason"), "ContainerNotStarted");
        assert_string_equal(json_str(error, "message"),
                            "its container did not start, or is gone: image registry/b:1");
        rig_done_all(&rig);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_runs_every_entry_once_with_one_seed),
        cmocka_unit_test(test_the_same_plan_runs_in_the_same_order),
        cmocka_unit_test(test_the_files_of_a_session),
        cmocka_unit_test(test_it_goes_on_wherever_it_was_killed),
        cmocka_unit_test(test_a_checkpoint_of_another_plan_is_not_used),
        cmocka_unit_test(test_told_to_end_it_keeps_what_it_has),
        cmocka_unit_test(test_three_failures_in_a_row_are_enough),
        cmocka_unit_test(test_one_that_fails_now_and_then_goes_on),
        cmocka_unit_test(test_nothing_valid_is_a_failure_with_its_reason),
        cmocka_unit_test(test_in_parallel_a_block_is_under_way_together),
        cmocka_unit_test(test_pods_measure_one_after_the_other),
        cmocka_unit_test(test_a_pod_that_is_gone_on_with_in_another_is_told),
        cmocka_unit_test(test_a_plan_that_is_wrong_is_refused),
        cmocka_unit_test(test_a_worker_that_does_not_come),
};
UNIT_MAIN(tests)
