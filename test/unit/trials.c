/*
 * Commands side by side: names, failures and what is printed of them. Times are compared by samples made here.
 */
#include "unit/unit.h"

#include <math.h>

#include "probe/trials/internal.h"

enum { TEXT_MAX = 1 << 20 };

/* Not constants: an argv is never one. */
static char yes[] = "true", no[] = "false", nowhere[] = "no-such-program-here";
static char bar[] = "a|b", quoted[] = "say \"x\", y", lines[] = "two\nlines", no_text[] = "\xff";
static char *const YES[] = {yes, NULL}, *const NO[] = {no, NULL}, *const NOWHERE[] = {nowhere, NULL};
static char *const ODD[] = {yes, bar, quoted, lines, no_text, NULL};

static void run(struct trials *t, struct trials_config *c)
{
        struct err err = ERR_INIT;

        if (trials_run(t, c, &err) < 0)
                fail_msg("%s", err.text);
}

static struct json *told_as_json(struct arena *a, const struct trials *t)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);
        struct json *j;

        trials_json(t, &out);
        j = json_parse(a, buf_str(&out), NULL, NULL);
        assert_non_null(j);
        return j;
}

static bool says(void (*tell)(const struct trials *t, struct buf *out), const struct trials *t,
                 const char *what)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(TEXT_MAX);

        tell(t, &out);
        buf_addc(&out, 0);
        return !out.overflow && strstr(out.p, what);
}

static void test_each_has_its_own_name(void **state)
{
        char *const *commands[] = {YES, YES, NO, YES};
        struct trials_config c = {.commands = commands, .n = 4, .runs = 1};
        _cleanup_(trials_done) struct trials t = {0};

        run(&t, &c);
        assert_string_equal(t.sides[0].name, "true");
        assert_string_equal(t.sides[1].name, "true (2)");
        assert_string_equal(t.sides[2].name, "false");
        assert_string_equal(t.sides[3].name, "true (3)");
        assert_true(trials_any_failed(&t) && t.sides[2].valid == 0 && t.sides[3].valid == 1);
}

static void test_one_run_decides_nothing(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *const *commands[] = {YES, YES};
        struct trials_config c = {.commands = commands, .n = 2, .runs = 1, .warmup = 1};
        _cleanup_(trials_done) struct trials t = {0};
        const struct json *j, *pair;

        run(&t, &c);
        j = told_as_json(&a, &t);
        pair = json_first(json_at(json_at(j, "comparison"), "pairs"));
        assert_string_equal(json_str(pair, "verdict"), "inconclusive");
        assert_true(json_int(pair, "needed", 0) > 1);
        assert_true(says(trials_text, &t, "inconclusive") &&
                    says(trials_text, &t, ": at least 4 runs are needed"));
        assert_true(says(trials_text, &t, "1 interleaved run each after 1 warm-up"));
}

enum { BLOCKS = 8 };

/* Two sides with the same times but for a factor of the second's. */
static void conclude(struct trials *t, const struct trials_config *c, double factor)
{
        static const double times[BLOCKS] = {0.1003, 0.1001, 0.1009, 0.1004, 0.1000, 0.1006, 0.1002, 0.1005};
        static const char *const names[] = {"first", "second"};

        *t = (struct trials){.config = c};
        t->sides = arena_new_array(&t->arena, struct trials_side, 2);
        for (size_t i = 0; i < 2; i++) {
                t->sides[i] = (struct trials_side){.name = names[i], .valid = BLOCKS};
                for (unsigned block = 0; block < BLOCKS; block++)
                        *vec_push(&t->sides[i].runs) = (struct trials_run){
                                block,
                                {.wall = times[(block + 3 * i) % BLOCKS] * (i ? factor : 1),
                                 .user = 0.01,
                                 .sys = 0.01,
                                 .peak_rss = 1 << 20,
                                 .processes = 1}};
        }
        trials_conclude(t);
}

static void test_samples_decide_the_verdict(void **state)
{
        static const struct {
                double factor;
                const char *verdict;
        } cases[] = {{1.5, "slower"}, {0.5, "faster"}, {1, "no detectable difference"}};
        char *const *commands[] = {YES, YES};
        const struct trials_config c = {.commands = commands, .n = 2, .runs = BLOCKS, .warmup = 1};

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                _cleanup_(trials_done) struct trials t = {0};
                const struct json *pair;

                conclude(&t, &c, cases[i].factor);
                pair = json_first(json_at(json_at(told_as_json(&a, &t), "comparison"), "pairs"));
                assert_string_equal(json_str(pair, "verdict"), cases[i].verdict);
                assert_true(says(trials_text, &t, cases[i].verdict));
                assert_true(says(trials_text, &t, "8 interleaved runs each after 1 warm-up"));
        }
}

static void test_failures_are_kept_and_given_up(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *const *commands[] = {NO};
        struct trials_config c = {.commands = commands, .n = 1, .runs = 10};
        _cleanup_(trials_done) struct trials t = {0}, forgiven = {0};
        const struct json *result;

        run(&t, &c);
        assert_int_equal(t.sides[0].runs.n, 3);
        result = json_first(json_at(told_as_json(&a, &t), "results"));
        assert_int_equal(json_int(result, "invalid", -1), 3);
        assert_true(!json_at(result, "median") && json_len(json_at(result, "exit_codes")) == 3);
        assert_true(says(trials_text, &t, "failed") && says(trials_text, &t, "it was not run again"));
        c.ignore_failure = true;
        run(&forgiven, &c);
        assert_int_equal(forgiven.sides[0].valid, 10);
        assert_false(trials_any_failed(&forgiven));
}

static void test_any_name_fits_into_any_form(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *const *commands[] = {ODD};
        struct trials_config c = {.commands = commands, .n = 1, .runs = 2};
        _cleanup_(trials_done) struct trials t = {0};

        run(&t, &c);
        assert_int_equal(json_len(json_at(told_as_json(&a, &t), "results")), 1);
        assert_true(says(trials_csv, &t, "\n\"true a|b say \"\"x\"\", y two lines "));
        assert_true(says(trials_markdown, &t, "| true a\\|b say \"x\", y two lines "));
}

/* As it is when Ctrl-C came before the first was over. */
static void test_what_was_not_run_has_not_failed(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *const *commands[] = {YES, NO};
        struct trials_config c = {.commands = commands, .n = 2, .runs = 0};
        _cleanup_(trials_done) struct trials t = {0};

        run(&t, &c);
        t.interrupted = true;
        assert_true(says(trials_text, &t, "no run") && !says(trials_text, &t, "failed"));
        assert_true(says(trials_csv, &t, "true,,"));
        assert_true(json_bool(told_as_json(&a, &t), "interrupted", false));
        assert_false(trials_any_failed(&t));
}

static void test_what_cannot_be_run_ends_it(void **state)
{
        char *const *commands[] = {YES, NOWHERE};
        struct trials_config c = {.commands = commands, .n = 2, .runs = 3};
        _cleanup_(trials_done) struct trials t = {0}, unprepared = {0};
        struct err err = ERR_INIT;

        assert_int_equal(trials_run(&t, &c, &err), -1);
        assert_non_null(strstr(err.text, "is not found in PATH"));
        c.n = 1;
        c.prepare = NO;
        assert_int_equal(trials_run(&unprepared, &c, &err), -1);
        assert_non_null(strstr(err.text, "--prepare failed: exit status 1"));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_has_its_own_name),
        cmocka_unit_test(test_one_run_decides_nothing),
        cmocka_unit_test(test_samples_decide_the_verdict),
        cmocka_unit_test(test_failures_are_kept_and_given_up),
        cmocka_unit_test(test_any_name_fits_into_any_form),
        cmocka_unit_test(test_what_was_not_run_has_not_failed),
        cmocka_unit_test(test_what_cannot_be_run_ends_it),
};

UNIT_MAIN(tests)
