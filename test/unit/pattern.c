#include "unit/unit.h"

#include "json/pattern.h"

/* What matches what is in test/data/schema/patterns.json, as an API server answered; here is the rest. */

static void test_what_cannot_be_is_refused(void **state)
{
        static const struct {
                const char *pattern, *error;
        } refused[] = {
                {"a**", "invalid nested repetition operator at character 4 of pattern `a**`"},
                {"*", "missing argument to repetition operator at character 1 of pattern `*`"},
                {"(?i)*", "missing argument to repetition operator at character 6 of pattern `(?i)*`"},
                {"(a", "missing closing ) at character 3 of pattern `(a`"},
                {"a)", "unexpected ) at character 2 of pattern `a)`"},
                {"[a", "missing closing ] at character 3 of pattern `[a`"},
                {"[]", "missing closing ] at character 3 of pattern `[]`"},
                {"[z-a]", "invalid character class range at character 5 of pattern `[z-a]`"},
                {"[[:foo:]]", "invalid character class range at character 2 of pattern `[[:foo:]]`"},
                {"\\", "trailing backslash at character 1 of pattern `\\`"},
                {"\\1", "invalid or unsupported escape sequence at character 1 of pattern `\\1`"},
                {"\\pL", "invalid or unsupported escape sequence at character 1 of pattern `\\pL`"},
                {"\\x{110000}", "invalid escape sequence at character 9 of pattern `\\x{110000}`"},
                {"(?=a)", "invalid or unsupported group at character 3 of pattern `(?=a)`"},
                {"(?<n>a)", "invalid or unsupported group at character 3 of pattern `(?<n>a)`"},
                {"a{1001}", "invalid repeat count at character 8 of pattern `a{1001}`"},
                {"a{2,1}", "invalid repeat count at character 7 of pattern `a{2,1}`"},
                {"((a{100}){100}){100}",
                 "invalid repeat count at character 15 of pattern `((a{100}){100}){100}`"},
                {"(?i)\xC3\xA9", "folding the case of letters beyond ASCII is not supported at "
                                 "character 7 of pattern "
                                 "`(?i)\xC3\xA9`"},
                {"a\xff", "pattern is not UTF-8"},
        };

        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;

                assert_null(pattern_new(&a, str_of(refused[i].pattern), &err));
                assert_string_equal(err.text, refused[i].error);
                assert_int_equal(err.code, E_INVALID);
        }
}

static bool matches(struct arena *a, const char *pattern, struct str text)
{
        struct pattern *p = pattern_new(a, str_of(pattern), NULL);

        assert_non_null(p);
        return pattern_match(p, text);
}

static void test_no_text_makes_a_pattern_slow(void **state)
{
        static const char *const evil[] = {"(a*)*$", "^(a|aa)+$", "(a+a+)+b", "(a?){1000}a{30}$",
                                           "(.*)(.*)(.*)=$"};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(20000);

        for (int i = 0; i < 5000; i++)
                buf_addc(&text, 'a');
        assert_true(matches(&a, evil[0], buf_str(&text)));
        buf_addc(&text, 'c');
        for (size_t i = 1; i < ARRAY_LEN(evil); i++)
                assert_false(matches(&a, evil[i], buf_str(&text)));
}

static void test_size_is_bounded(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf long_one = BUF_INIT(20000), large = BUF_INIT(20000),
                                       deep = BUF_INIT(20000);
        struct err err = ERR_INIT;

        for (int i = 0; i < 5000; i++)
                buf_addc(&long_one, 'a');
        assert_null(pattern_new(&a, buf_str(&long_one), &err));
        assert_int_equal(err.code, E_TOO_LARGE);
        for (int i = 0; i < 50; i++)
                buf_adds(&large, "a{0,1000}");
        assert_null(pattern_new(&a, buf_str(&large), &err));
        assert_int_equal(err.code, E_TOO_LARGE);
        for (int i = 0; i < 1000; i++)
                buf_addc(&deep, '(');
        assert_null(pattern_new(&a, buf_str(&deep), &err));
        assert_int_equal(err.code, E_INVALID);
}

static void test_texts_of_any_bytes(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_true(matches(&a, "^a.b$", str_n("a\0b", 3)));
        assert_true(matches(&a, "^a.b$",
                            STR("a\xff"
                                "b")));
        assert_true(matches(&a, "^.$", STR("\xF0\x9F\x98\x80")));
        assert_true(matches(&a, "(?i)^\\w$", STR("\xE2\x84\xAA")));
        assert_false(matches(&a, "(?i)^\\W$", STR("\xE2\x84\xAA")));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_no_text_makes_a_pattern_slow),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_texts_of_any_bytes),
};

UNIT_MAIN(tests)
