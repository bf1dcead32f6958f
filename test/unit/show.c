/* Text for people: times in words, widths, tables, near misses. */
#include "unit/unit.h"

#include <math.h>

#include "cli/show.h"

#define SECONDS(n) ((usec_t)(n)*USEC_PER_SEC)
#define MINUTES(n) SECONDS(60 * (n))
#define HOURS(n)   MINUTES(60 * (n))

static void test_ages(void **state)
{
        static const struct {
                usec_t age;
                const char *age_text, *duration_text;
        } cases[] = {
                {0, "0s", "0s"},
                {400 * USEC_PER_MS, "0s", "0.4s"},
                {SECONDS(42), "42s", "42s"},
                {SECONDS(59) + 999999, "59s", "59s"},
                {MINUTES(1), "1m", "1m"},
                {SECONDS(680), "11m", "11m20s"},
                {MINUTES(38), "38m", "38m"},
                {HOURS(1) + MINUTES(3), "1h03m", "1h03m"},
                {HOURS(3), "3h", "3h"},
                {HOURS(12) + MINUTES(30), "12h", "12h30m"},
                {HOURS(47), "47h", "47h"},
                {HOURS(52), "2d", "2d04h"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_string_equal(show_age(&a, cases[i].age), cases[i].age_text);
                assert_string_equal(show_duration(&a, cases[i].age), cases[i].duration_text);
        }
}

/* Ranges as ux has them: the unit once where both ends have the same one. */
static void test_etas(void **state)
{
        static const struct {
                usec_t low, mid, high;
                const char *text;
        } cases[] = {
                {MINUTES(18), MINUTES(22), MINUTES(31), "22m (18-31m)"},
                {SECONDS(14), SECONDS(18), SECONDS(25), "18s (14-25s)"},
                {MINUTES(55), MINUTES(70), MINUTES(91), "1h10m (55m-1h31m)"},
                {SECONDS(50), MINUTES(2), MINUTES(3), "2m (50s-3m)"},
                {MINUTES(5), MINUTES(5), MINUTES(5), "5m"},
                {0, 0, 0, "-"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        usec_t now = HOURS(1000);

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                usec_t mid = cases[i].mid ? now + cases[i].mid : 0;

                assert_string_equal(show_eta(&a, now, now + cases[i].low, mid, now + cases[i].high),
                                    cases[i].text);
        }
        assert_string_equal(show_eta(&a, now, 0, now + MINUTES(4), 0), "4m");
        assert_string_equal(show_eta(&a, now, now - 2, now - 1, now + MINUTES(3)), "soon (<3m)");
        assert_string_equal(show_eta(&a, now, now - 3, now - 2, now - 1), "overdue");
        assert_string_equal(show_eta(&a, now, now - SECONDS(5), now + SECONDS(4), now + SECONDS(9)),
                            "4s (0-9s)");
}

/* The end is 100, and nothing before it. */
static void test_percents(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(show_percent(&a, 0), "0");
        assert_string_equal(show_percent(&a, 41.2), "41");
        assert_string_equal(show_percent(&a, 99.6), "99");
        assert_string_equal(show_percent(&a, 100), "100");
        assert_string_equal(show_percent(&a, NAN), "-");
}

static void test_widths(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_int_equal(text_width(str_of("")), 0);
        assert_int_equal(text_width(str_of("abc")), 3);
        assert_int_equal(text_width(str_of("▸ é ±")), 5);
        assert_int_equal(text_width(str_of("e\xcc\x81")), 1); /* an accent of its own */
        assert_int_equal(text_width(str_of("漢字")), 4);
        assert_int_equal(text_width(str_of("\xff\xfe")), 2); /* no UTF-8: a column a byte */
        assert_int_equal(text_width(str_of("\xe2\x82")), 2);

        assert_string_equal(text_fit(&a, "abcdef", 6), "abcdef");
        assert_string_equal(text_fit(&a, "abcdef", 4), "abc…");
        assert_string_equal(text_fit(&a, "漢字漢字", 5), "漢字…");
        assert_string_equal(text_fit(&a, "漢字漢字", 4), "漢…");
        assert_string_equal(text_fit(&a, "ab", 1), "…");
        assert_string_equal(text_fit(&a, "ab", 0), "");
}

/* Nothing from a cluster moves the cursor, changes the colour or begins a line. */
static void test_cleaning(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(text_clean(&a, "plain ± ü"), "plain ± ü");
        assert_string_equal(text_clean(&a, "a\nb\tc"), "a b c");
        assert_string_equal(text_clean(&a, "\033[31mred\x7f\r"), "?[31mred??");
        assert_string_equal(text_clean(&a, "x\xc2\x9b"
                                           "31m"),
                            "x??31m");
        assert_string_equal(text_clean(&a, "bad \xff\xfe utf"), "bad ?? utf");
}

static void test_typos(void **state)
{
        assert_int_equal(text_typos("inputSize", "inputSize"), 0);
        assert_int_equal(text_typos("inputsize", "inputSize"), 1);
        assert_int_equal(text_typos("limit", "limits"), 1);
        assert_int_equal(text_typos("", "abc"), 3);
        assert_int_equal(text_typos("ab", "ba"), 2);
        assert_true(text_typos("a", "123456789012345678901234567890123456789012345678901234567890") ==
                    SIZE_MAX);
}

/* What table_print() writes for a screen of that width (0: no terminal). */
static char *printed(const struct table *t, unsigned width, bool colours, bool cut)
{
        char *text = NULL;
        size_t n = 0;
        FILE *to = open_memstream(&text, &n);
        struct screen s = {.to = to, .terminal = width > 0, .colours = colours, .width = width};

        assert_non_null(to);
        table_print(t, &s, cut);
        fclose(to);
        return text;
}

static void test_tables(void **state)
{
        static const struct table_column columns[] = {{"NAME"}, {"%", .right = true}, {"REASON"}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(table_done) struct table t;
        _cleanup_(free_ptr) char *whole = NULL, *narrow = NULL, *coloured = NULL;

        table_init(&t, &a, columns, ARRAY_LEN(columns));
        table_add(&t, TONE_PLAIN, "été");
        table_add(&t, TONE_PLAIN, "100");
        table_add(&t, TONE_PLAIN, NULL);
        table_add(&t, TONE_BAD, "longer");
        table_add(&t, TONE_PLAIN, "7");
        table_add(&t, TONE_PLAIN, "it failed for a long reason");
        assert_int_equal(table_rows(&t), 2);

        whole = printed(&t, 0, false, true);
        assert_string_equal(whole, "NAME      %  REASON\n"
                                   "été     100\n"
                                   "longer    7  it failed for a long reason\n");
        narrow = printed(&t, 30, false, true);
        assert_string_equal(narrow, "NAME      %  REASON\n"
                                    "été     100\n"
                                    "longer    7  it failed for a …\n");
        coloured = printed(&t, 0, true, false);
        assert_non_null(strstr(coloured, "\033[31mlonger\033[0m    7  it failed"));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ages),     cmocka_unit_test(test_etas),     cmocka_unit_test(test_widths),
        cmocka_unit_test(test_percents), cmocka_unit_test(test_cleaning), cmocka_unit_test(test_typos),
        cmocka_unit_test(test_tables),
};

UNIT_MAIN(tests)
