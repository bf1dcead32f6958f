/* The plan of a session: what it says, what is refused and why; $(NAME) as the kubelet does it. */
#include "unit/parse.h"

#include "probe/session/internal.h"

#define ONE "\"algorithms\": [{\"name\": \"a\", \"command\": [\"x\"]}]"

static struct session_plan read_plan(struct arena *a, const char *text)
{
        struct session_plan plan;
        struct err err = ERR_INIT;

        if (session_plan_parse(a, str_of(text), &plan, &err) < 0)
                fail_msg("%s", err.text);
        return plan;
}

static void test_what_is_not_said(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct session_plan p = read_plan(&a, "{" ONE "}");

        assert_int_equal(p.iterations, 1);
        assert_int_equal(p.warmup, 1);
        assert_int_equal(p.pods, 1);
        assert_int_equal(p.n_sizes, 1);
        assert_int_equal(p.sizes[0], 0);
        assert_int_equal(p.groups, 1);
        assert_false(p.parallel || p.priced || p.has_baseline);
        assert_true(p.alpha == 0.05 && p.min_effect == 0.02 && isnan(p.accuracy_tolerance));
        assert_string_equal(p.algorithms[0].type, "custom");
        assert_true(isnan(p.algorithms[0].requests.cpu));
}

static void test_what_is_said(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct session_plan p = read_plan(
                &a,
                "{\"seed\": 18446744073709551615, \"uid\": \"u-1\", \"iterations\": 20, \"warmup\": 0, "
                "\"sizes\": [5, 6], "
                "\"parallel\": true, \"pods\": 2, \"baseline\": \"b\", \"minEffect\": 0.1, \"alpha\": 0.01, "
                "\"runTimeout\": 1.5, \"accuracyTolerance\": 0.02, \"price\": {\"perCpuHour\": 0.05, "
                "\"currency\": "
                "\"EUR\"}, \"requests\": {\"cpu\": 2, \"memory\": 1000}, \"algorithms\": [{\"name\": \"a\", "
                "\"type\": "
                "\"ml\", \"framework\": \"dask\", \"command\": [\"x\", \"y\"], \"env\": [{\"name\": \"N\", "
                "\"value\": "
                "\"v\"}, {\"name\": \"E\"}], \"group\": 2}, {\"name\": \"b\", \"command\": [\"z\"], "
                "\"requests\": "
                "{\"cpu\": 1}}]}");

        assert_true(p.seed == UINT64_MAX);
        assert_int_equal(p.baseline, 1);
        assert_int_equal(p.run_timeout, 1500000);
        assert_int_equal(p.groups, 3);
        assert_true(p.priced && isnan(p.price.per_run) && p.price.per_cpu_hour == 0.05);
        assert_string_equal(p.algorithms[0].command[1], "y");
        assert_null(p.algorithms[0].command[2]);
        assert_string_equal(p.algorithms[0].env[1].value, "");
        assert_true(p.algorithms[0].requests.cpu == 2 && p.algorithms[0].requests.memory == 1000);
        assert_true(p.algorithms[1].requests.cpu == 1 && isnan(p.algorithms[1].requests.memory));
}

static void test_those_of_one_name_are_told_apart(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct session_plan p = read_plan(
                &a, "{\"algorithms\": [{\"name\": \"f\", \"framework\": \"sklearn\", \"command\": [\"x\"]}, "
                    "{\"name\": "
                    "\"f\", \"framework\": \"dask\", \"command\": [\"x\"]}, {\"name\": \"g\", \"command\": "
                    "[\"x\"]}, "
                    "{\"name\": \"g\", \"command\": [\"y\"]}, {\"name\": \"h\", \"command\": [\"y\"]}]}");

        assert_string_equal(p.algorithms[0].label, "f (sklearn)");
        assert_string_equal(p.algorithms[1].label, "f (dask)");
        assert_string_equal(p.algorithms[2].label, "g #3");
        assert_string_equal(p.algorithms[3].label, "g #4");
        assert_string_equal(p.algorithms[4].label, "h");
}

static void test_what_is_refused(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                {"[]", "the plan: it is not an object"},
                {"{}", "the plan: algorithms is not a list, or it is empty"},
                {"{\"iterations\": 0, " ONE "}",
                 "the plan: iterations is not a whole number from 1 to 10000"},
                {"{\"warmup\": -1, " ONE "}", "the plan: warmup is not a whole number from 0 to 10000"},
                {"{\"seed\": 1.5, " ONE "}", "the plan: seed is not a whole number"},
                {"{\"sizes\": [0], " ONE "}", "the plan: sizes[0] is not a whole number above 0"},
                {"{\"sizes\": [3, 3], " ONE "}", "the plan: the size 3 is there twice"},
                {"{\"alpha\": 0.6, " ONE "}", "the plan: alpha is not a number from 1e-09 to 0.5"},
                {"{\"parallel\": 1, " ONE "}", "the plan: parallel is neither true nor false"},
                {"{\"baseline\": \"b\", " ONE "}", "the plan: the baseline 'b' is none of the algorithms"},
                {"{\"price\": 3, " ONE "}", "the plan: price is not an object"},
                {"{\"algorithms\": [{\"name\": \"a\"}]}",
                 "the plan: algorithms[0]: command is not a list of texts, or it is empty"},
                {"{\"algorithms\": [{\"name\": \"a\", \"command\": [\"\"]}]}",
                 "the plan: algorithms[0]: command names no program"},
                {"{\"algorithms\": [{\"command\": [\"a\"]}]}", "the plan: algorithms[0]: it has no name"},
                {"{\"algorithms\": [{\"name\": \"a\\u001bb\", \"command\": [\"a\"]}]}",
                 "the plan: algorithms[0]: its name has control characters"},
                {"{\"minEffect\": 1.5, " ONE "}", "the plan: minEffect is not a number from 0 to 1"},
                {"{\"algorithms\": [{\"name\": \"a\", \"command\": [\"a\"], \"group\": 16}]}",
                 "the plan: algorithms[0]: group is not a whole number from 0 to 15"},
                {"{\"algorithms\": [{\"name\": \"a\", \"command\": [\"a\"], \"env\": [{\"value\": \"x\"}]}]}",
                 "the plan: algorithms[0]: env[0] is not {\"name\", \"value\"}"},
                {"{\"iterations\": 10000, \"pods\": 2, \"warmup\": 1, " ONE "}",
                 "the plan: 1 algorithms at 1 sizes, 10000 times with 1 for warm-up, in 2 pods are 20002 "
                 "runs, at most "
                 "20000 are taken"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;
                struct session_plan plan;

                assert_int_equal(session_plan_parse(&a, str_of(cases[i].text), &plan, &err), -1);
                assert_string_equal(err.text, cases[i].why);
        }
}

static const char *outer(const char *name)
{
        return streq(name, "HOME") ? "/there" : NULL;
}

static void test_names_are_expanded_as_the_kubelet_does(void **state)
{
        static const struct session_env env[] = {
                {"A", "first"}, {"B", "two words"}, {"A", "last"}, {"EMPTY", ""}};
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                {"", ""},
                {"plain", "plain"},
                {"$(A)", "last"},
                {"x$(B)y$(A)", "xtwo wordsylast"},
                {"$(HOME)/bin", "/there/bin"},
                {"$(UNKNOWN)", "$(UNKNOWN)"},
                {"$(EMPTY)", ""},
                {"$$(A)", "$(A)"},
                {"$$$(A)", "$last"},
                {"$$$$", "$$"},
                {"$", "$"},
                {"$A", "$A"},
                {"$(A", "$(A"},
                {"$()", "$()"},
                {"$($(A))", "$($(A))"},
                {"a$", "a$"},
                {"${A}", "${A}"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(expand_text(&a, cases[i].text, env, ARRAY_LEN(env), outer),
                                    cases[i].wanted);
}

static void test_a_run_gets_its_command_and_environment(void **state)
{
        static const struct session_env env[] = {
                {"X", "1"}, {"Y", "$(X)2 $(Z)"}, {"Z", "3"}, {"SONDE_SEED", "mine"}, {"X", "4"}};
        const char *command[] = {"run", "$(Y)", "$(Z)$(X)", NULL};
        struct session_job job = {.command = command,
                                  .env = env,
                                  .n_env = ARRAY_LEN(env),
                                  .expand = true,
                                  .size = 10,
                                  .seed = 77,
                                  .iteration = -1};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char **argv = job_argv(&a, &job);
        const char **list = job_env(&a, &job);

        assert_string_equal(argv[1], "12 $(Z)"); /* what comes later is not known yet */
        assert_string_equal(argv[2], "34");
        assert_null(argv[3]);
        assert_string_equal(list[0], "Y=12 $(Z)");
        assert_string_equal(list[1], "Z=3");
        assert_string_equal(list[2], "X=4");
        assert_string_equal(list[3], "SONDE_INPUT_SIZE=10");
        assert_string_equal(list[4], "SONDE_SEED=77");
        assert_string_equal(list[5], "SONDE_ITERATION=-1");
        assert_null(list[6]);
        job.expand = false;
        assert_string_equal(job_argv(&a, &job)[1], "$(Y)");
}

static void test_a_command_that_becomes_too_long_is_none(void **state)
{
        struct session_env env[1024];
        const char *command[] = {"run", NULL};
        struct session_job job = {.command = command, .env = env, .expand = true};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(env); i++)
                env[i] = (struct session_env){arena_printf(&a, "V%zu", i),
                                              i ? arena_printf(&a, "$(V%zu)$(V%zu)", i - 1, i - 1)
                                                : "0123456789"};
        job.n_env = 13; /* 40 960 bytes */
        assert_non_null(job_argv(&a, &job));
        job.n_env = 20;
        assert_null(job_argv(&a, &job));
        assert_null(job_env(&a, &job));
        /* Each of them fits, all do not. */
        for (size_t i = 13; i < ARRAY_LEN(env); i++)
                env[i].value = "$(V12)";
        job.n_env = ARRAY_LEN(env);
        assert_null(job_env(&a, &job));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_said),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_those_of_one_name_are_told_apart),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_names_are_expanded_as_the_kubelet_does),
        cmocka_unit_test(test_a_run_gets_its_command_and_environment),
        cmocka_unit_test(test_a_command_that_becomes_too_long_is_none),
};
UNIT_MAIN(tests)
