#include "unit/unit.h"

#include "cli/cli.h"

struct given {
        const char *name;
        bool quiet;
        struct option_list command, args;
};

/* What WORDS (ends with NULL) give; the exit status, or -1, and how many arguments are left in RET_ARGC. */
static int parse(struct given *g, int *ret_argc, const char *const *words)
{
        static const struct usage usage = {"x", NULL};
        const struct option_def options[] = {{"name", 'n', "NAME", "", OPT_STR, &g->name},
                                             {"quiet", 0, NULL, "", OPT_FLAG, &g->quiet},
                                             {"command", 0, "WORD...", "", OPT_GREEDY, &g->command},
                                             {"args", 0, "WORD...", "", OPT_GREEDY, &g->args},
                                             {0}};
        char name[] = "x", *argv[32] = {name};
        int argc = 1;

        *g = (struct given){0};
        while (words[argc - 1]) {
                argv[argc] = (char *)(uintptr_t)words[argc - 1];
                argc++;
        }
        *ret_argc = argc;
        return options_parse(options, &usage, ret_argc, argv);
}

static void done(struct given *g)
{
        vec_done(&g->command);
        vec_done(&g->args);
}

/* LIST as one text, each word in brackets. */
static void assert_words(const struct option_list *list, const char *expected)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 10);

        for (size_t i = 0; i < list->n; i++)
                buf_printf(&text, "[%s]", list->v[i]);
        assert_string_equal(text.n ? buf_cstr(&text) : "", expected);
}

#define PARSE(g, argc, ...) parse(g, argc, (const char *const[]){__VA_ARGS__, NULL})

static void test_a_greedy_list_ends_at_the_next_option(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--command", "python", "train.py", "--args", "--config", "/c.yaml",
                               "-v", "-", "--data-path=/d", "--name", "n", "--quiet"),
                         -1);
        assert_words(&g.command, "[python][train.py]");
        assert_words(&g.args, "[--config][/c.yaml][-v][-][--data-path=/d]");
        assert_string_equal(g.name, "n");
        assert_true(g.quiet);
        assert_int_equal(argc, 1);
        done(&g);
}

static void test_an_option_ends_it_in_each_of_its_forms(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--args", "a", "--name=n"), -1);
        assert_words(&g.args, "[a]");
        assert_string_equal(g.name, "n");
        done(&g);
        assert_int_equal(PARSE(&g, &argc, "--args", "a", "-nm"), -1);
        assert_words(&g.args, "[a]");
        assert_string_equal(g.name, "m");
        done(&g);
}

static void test_a_word_that_is_an_option_is_given_with_an_equals_sign(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--args=--name", "--args=x", "--args", "y", "--args=--"), -1);
        assert_words(&g.args, "[--name][x][y][--]");
        assert_null(g.name);
        done(&g);
}

static void test_all_behind_two_dashes_belongs_to_the_list(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--name", "n", "--args", "a", "--", "--name", "x", "--", "-h"), -1);
        assert_words(&g.args, "[a][--name][x][--][-h]");
        assert_string_equal(g.name, "n");
        assert_int_equal(argc, 1);
        done(&g);
        assert_int_equal(PARSE(&g, &argc, "--args", "--", "--quiet"), -1);
        assert_words(&g.args, "[--quiet]");
        assert_false(g.quiet);
        done(&g);
}

static void test_a_list_may_be_empty_and_two_dashes_elsewhere_end_the_options(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--args", "--name", "n"), -1);
        assert_words(&g.args, "");
        assert_string_equal(g.name, "n");
        done(&g);
        assert_int_equal(PARSE(&g, &argc, "--name", "n", "--", "--quiet"), -1);
        assert_int_equal(argc, 2);
        assert_false(g.quiet);
        done(&g);
}

static void test_help_inside_a_list_is_a_word_of_it(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--args", "--help", "-h"), -1);
        assert_words(&g.args, "[--help][-h]");
        done(&g);
}

static void test_what_is_no_option_elsewhere_is_an_error(void **state)
{
        struct given g;
        int argc;

        assert_int_equal(PARSE(&g, &argc, "--frob", "--args", "a"), EXIT_USAGE);
        done(&g);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_greedy_list_ends_at_the_next_option),
        cmocka_unit_test(test_an_option_ends_it_in_each_of_its_forms),
        cmocka_unit_test(test_a_word_that_is_an_option_is_given_with_an_equals_sign),
        cmocka_unit_test(test_all_behind_two_dashes_belongs_to_the_list),
        cmocka_unit_test(test_a_list_may_be_empty_and_two_dashes_elsewhere_end_the_options),
        cmocka_unit_test(test_help_inside_a_list_is_a_word_of_it),
        cmocka_unit_test(test_what_is_no_option_elsewhere_is_an_error),
};

UNIT_MAIN(tests)
