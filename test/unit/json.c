#include "unit/parse.h"

#include <math.h>

static void assert_print(struct arena *a, const struct json *j, const char *text)
{
        assert_string_equal(json_print(a, j), text);
}

/* ---- parse */

static void test_numbers_survive_byte_for_byte(void **state)
{
        static const char *const numbers[] = {
                "9007199254740993",
                "18446744073709551615",
                "1.0",
                "1e400",
                "0.1",
                "-0",
                "-0.0",
                "1E+2",
                "1e-0",
                "123456789012345678901234567890",
                "0.1000",
                "0",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
                assert_print(&a, parse(&a, numbers[i]), numbers[i]);
                assert_print(&a, parse(&a, arena_printf(&a, "{\"n\":[%s]}", numbers[i])),
                             arena_printf(&a, "{\"n\":[%s]}", numbers[i]));
        }
}

static void test_order_and_unknown_members_stay(void **state)
{
        static const char text[] =
                "{\"z\":1,\"a\":{\"q\":[],\"b\":{}},\"m\":[1,\"x\",null,true,false,{\"k\":\"v\"}]}";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_print(&a, parse(&a, text), text);
        assert_print(&a, parse(&a, " { \"a\" :\r\n [ 1 ,\t2 ] } "), "{\"a\":[1,2]}");
}

static void test_strings_are_decoded(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j;

        assert_str(json_text(parse(&a, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"")), "\"\\/\b\f\n\r\t");
        assert_str(json_text(parse(&a, "\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00 tail that is longer\"")),
                   "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 tail that is longer");
        assert_str(json_text(parse(&a, "\"h\xC3\xA9llo w\xC3\xB6rld, rather long\"")),
                   "h\xC3\xA9llo w\xC3\xB6rld, rather long");
        assert_str(json_text(parse(&a, "\"\"")), "");

        j = parse(&a, "{\"s\":\"a\\u0000b\",\"k\\u0000\":1}");
        assert_null(json_str(j, "s"));
        assert_int_equal(json_text(json_at(j, "s")).n, 3);
        assert_memory_equal(json_text(json_at(j, "s")).p, "a\0b", 4);
        assert_null(json_at(j, "k"));
        assert_non_null(json_get(j, str_n("k\0", 2)));
        assert_print(&a, j, "{\"s\":\"a\\u0000b\",\"k\\u0000\":1}");
}

static void test_errors_name_line_and_column(void **state)
{
        static const struct {
                const char *text, *error;
        } cases[] = {
                {"{\"a\": 1,\n \"b\": [\n  1, \"x\\n\\n\" }", "invalid JSON at 3:14: expected ',' or ']'"},
                {"{\"a\": 1 \"b\"}", "invalid JSON at 1:9: expected ',' or '}'"},
                {"{\"a\" 1}", "invalid JSON at 1:6: expected ':'"},
                {"{a: 1}", "invalid JSON at 1:2: expected a member name"},
                {"{\"a\":1,}", "invalid JSON at 1:8: expected a member name"},
                {"[1,]", "invalid JSON at 1:4: expected a value"},
                {"", "invalid JSON at 1:1: expected a value, found the end"},
                {"[1", "invalid JSON at 1:3: expected ',' or ']', found the end"},
                {"\"abc", "invalid JSON at 1:5: expected '\"', found the end"},
                {"\"a\tb\"", "invalid JSON at 1:3: control character in a string"},
                {"\"\\x\"", "invalid JSON at 1:3: expected one of \"\\/bfnrtu after a backslash"},
                {"\"\\u12g4\"", "invalid JSON at 1:2: expected four hexadecimal digits after \\u"},
                {"\"\\ud800\"", "invalid JSON at 1:8: expected a low surrogate after a high one"},
                {"\"\\udc00\"", "invalid JSON at 1:2: low surrogate without a high one before it"},
                {"[\"\xFF\"]", "invalid JSON at 1:2: the string is not valid UTF-8"},
                {"\xEF\xBB\xBF{}", "invalid JSON at 1:1: expected a value"},
                {"01", "invalid JSON at 1:2: a number has no leading zeros"},
                {"-", "invalid JSON at 1:2: expected a digit, found the end"},
                {"1.", "invalid JSON at 1:3: expected a digit, found the end"},
                {"nul", "invalid JSON at 1:1: expected a value"},
                {"1 2", "invalid JSON at 1:3: expected the end"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_null(json_parse(&a, str_of(cases[i].text), NULL, &err));
                assert_string_equal(err.text, cases[i].error);
                assert_int_equal(err.code, E_INVALID);
        }
}

static void test_a_raw_nul_is_no_end(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_null(json_parse(&a, str_n("1\0", 2), NULL, NULL));
        assert_null(json_parse(&a, str_n("[1\0]", 4), NULL, NULL));
        assert_null(json_parse(&a, str_n("\"a\0b\"", 5), NULL, NULL));
}

static void test_limits(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        char deep[260];

        memset(deep, '[', 129);
        memset(deep + 129, ']', 129);
        assert_null(json_parse(&a, str_n(deep, 258), NULL, &err));
        assert_int_equal(err.code, E_TOO_LARGE);
        assert_string_equal(err.text, "JSON is too large at 1:129: nested too deeply");
        assert_non_null(json_parse(&a, str_n(deep + 1, 256), NULL, &err));

        assert_null(json_parse(&a, STR("[1,2,3]"), &(struct json_limits){.nodes = 3}, &err));
        assert_string_equal(err.text, "JSON is too large at 1:6: too many values");
        assert_non_null(json_parse(&a, STR("[1,2,3]"), &(struct json_limits){.nodes = 4}, &err));

        assert_null(json_parse(&a, STR("[1,2,3]"), &(struct json_limits){.bytes = 6}, &err));
        assert_string_equal(err.text, "JSON of 7 bytes is over the limit of 6");
}

static void test_a_member_is_left_out(void **state)
{
        static const char *const names[] = {"m", "f", NULL};
        static const struct json_limits limits = {.depth = 4, .leave_out = names};
        static const struct {
                const char *text, *kept; /* NULL: refused */
        } cases[] = {
                {"{\"m\":{\"f\":[1,-2.5e3,{\"x\":\"\\u00e9\",\"f\":null},true,false,{},[]],\"g\":1}}",
                 "{\"m\":{\"g\":1}}"},
                {"{\"m\":{\"e\":0,\"f\":{\"m\":{\"f\":1}},\"g\":1}}", "{\"m\":{\"e\":0,\"g\":1}}"},
                {"{\"m\":{\"e\":0 , \"f\" : \"x\" },\"n\":1}", "{\"m\":{\"e\":0},\"n\":1}"},
                {"{\"m\":{\"f\":1,\"f\":2,\"\":3},\"m\":{\"f\":4}}", "{\"m\":{}}"},
                {"{\"m\":{ \"f\" : 1 } }", "{\"m\":{}}"},
                /* Only there: not higher, not deeper, not in an array. */
                {"{\"f\":1,\"m\":[{\"f\":2}]}", "{\"f\":1,\"m\":[{\"f\":2}]}"},
                {"{\"m\":{\"m\":{\"f\":3}},\"n\":{\"f\":4}}", "{\"m\":{\"m\":{\"f\":3}},\"n\":{\"f\":4}}"},
                {"[{\"m\":{\"f\":5}}]", "[{\"m\":{\"f\":5}}]"},
                /* The same rules. */
                {"{\"m\":{\"f\":[1,]}}", NULL},
                {"{\"m\":{\"f\":{\"a\" 1}}}", NULL},
                {"{\"m\":{\"f\":{\"a\":1,}}}", NULL},
                {"{\"m\":{\"f\":{1:2}}}", NULL},
                {"{\"m\":{\"f\":[1}}}", NULL},
                {"{\"m\":{\"f\":{\"a\":1]}}", NULL},
                {"{\"m\":{\"f\":01}}", NULL},
                {"{\"m\":{\"f\":nul}}", NULL},
                {"{\"m\":{\"f\":\"\\x\"}}", NULL},
                {"{\"m\":{\"f\":}}", NULL},
                {"{\"m\":{\"f\":1,}}", NULL},
                {"{\"m\":{\"f\":1 \"g\":2}}", NULL},
                {"{\"m\":{\"f\":1", NULL},
                {"{\"m\":{\"f\":[[[1]]]}}", NULL},
                {"{\"m\":{\"f\":[[1]]}}", "{\"m\":{}}"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;
                struct json *j = json_parse(&a, str_of(cases[i].text), &limits, &err);

                if (cases[i].kept)
                        assert_string_equal(json_print(&a, j), cases[i].kept);
                else if (j)
                        fail_msg("%s is accepted", cases[i].text);
        }
}

static void test_nothing_is_read_behind_a_member(void **state)
{
        static const char *const names[] = {"m", "v", NULL}, *const left_out[] = {"m", "f", NULL};
        static const struct json_limits limits = {.leave_out = left_out, .stop_after = names};
        static const struct {
                const char *text, *kept; /* NULL: refused */
        } cases[] = {
                {"{\"k\":1,\"m\":{\"f\":2,\"n\":3,\"v\":\"4\",\"x\":5},\"y\":6}",
                 "{\"k\":1,\"m\":{\"n\":3,\"v\":\"4\"}}"},
                {"{\"m\":{\"v\":4", "{\"m\":{\"v\":4}}"},
                {"{\"m\":{\"v\":{\"v\":[1,{\"m\":{\"v\":2}}]}}}",
                 "{\"m\":{\"v\":{\"v\":[1,{\"m\":{\"v\":2}}]}}}"},
                {"{\"m\":{\"v\":{}}} and more", "{\"m\":{\"v\":{}}}"},
                {"{\"m\":{\"n\":1,\"n\":2,\"v\":3,\"v\":4},\"m\":5}", "{\"m\":{\"n\":2,\"v\":3}}"},
                /* Only there. */
                {"{\"v\":1,\"m\":[{\"v\":2}],\"n\":{\"v\":3}}",
                 "{\"v\":1,\"m\":[{\"v\":2}],\"n\":{\"v\":3}}"},
                {"[{\"m\":{\"v\":5}}]", "[{\"m\":{\"v\":5}}]"},
                /* Up to there by the same rules. */
                {"{\"k\":01,\"m\":{\"v\":1}}", NULL},
                {"{\"m\":{\"f\":[1,],\"v\":1}}", NULL},
                {"{\"m\":{\"v\":\"4", NULL},
                {"{\"m\":{\"v\":[1,2", NULL},
                {"{\"m\":{\"v\"", NULL},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;
                struct json *j = json_parse(&a, str_of(cases[i].text), &limits, &err);

                if (cases[i].kept)
                        assert_string_equal(json_print(&a, j), cases[i].kept);
                else if (j)
                        fail_msg("%s is accepted", cases[i].text);
        }
}

static void test_of_two_members_the_last_wins_in_the_first_place(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct json *j;

        assert_print(&a, parse(&a, "{\"a\":1,\"b\":2,\"a\":{\"x\":[3]}}"), "{\"a\":{\"x\":[3]},\"b\":2}");
        assert_print(&a, parse(&a, "{\"a\":1,\"a\":2,\"a\":true}"), "{\"a\":true}");
        assert_print(&a, parse(&a, "{\"\":1,\"\":\"\\u0000\"}"), "{\"\":\"\\u0000\"}");
        assert_print(&a, parse(&a, "{\"a\":[1,2],\"a\":[]}"), "{\"a\":[]}");

        /* Many names take another way to the same. */
        buf_addc(&text, '{');
        for (int i = 0; i < 20000; i++)
                buf_printf(&text, "%s\"k%d\":%d", i ? "," : "", i % 10000, i);
        buf_addc(&text, '}');
        j = parse(&a, buf_cstr(&text));
        assert_int_equal(json_len(j), 10000);
        assert_string_equal(json_first(j)->key, "k0");
        assert_int_equal(json_int(j, "k0", -1), 10000);
        assert_string_equal(j->last->key, "k9999");
        assert_int_equal(json_int(j, "k9999", -1), 19999);
}

static void test_parse_insitu_uses_the_bytes_given(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char text[] = "{\"name\":\"x\",\"n\":12}";
        struct json *j = json_parse_insitu(&a, text, sizeof(text) - 1, NULL, NULL);

        assert_string_equal(json_str(j, "name"), "x");
        assert_true(json_str(j, "name") > text && json_str(j, "name") < text + sizeof(text));
        assert_int_equal(json_int(j, "n", 0), 12);
}

/* ---- read */

static void test_readers_take_null(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(
                &a, "{\"s\":\"x\",\"t\":true,\"n\":5,\"l\":[{\"name\":\"a\"},{\"name\":\"b\",\"v\":2}]}");

        assert_null(json_str(json_at(json_at(NULL, "metadata"), "labels"), "app"));
        assert_null(json_at(j, "missing"));
        assert_string_equal(json_str_or(j, "missing", "else"), "else");
        assert_string_equal(json_str_or(j, "s", "else"), "x");
        assert_true(json_bool(j, "t", false));
        assert_true(json_bool(j, "s", true));
        assert_int_equal(json_int(j, "s", 7), 7);
        assert_null(json_text(json_at(j, "n")).p);
        assert_int_equal(json_len(json_at(j, "l")), 2);
        assert_int_equal(json_len(json_at(j, "s")), 0);
        assert_int_equal(json_int(json_find_named(json_at(j, "l"), "b"), "v", 0), 2);
        assert_null(json_find_named(json_at(j, "l"), "c"));
        assert_null(json_index(json_at(j, "l"), 2));
        assert_string_equal(json_str(json_index(json_at(j, "l"), 1), "name"), "b");
        assert_string_equal(json_type_name(JSON_OBJECT), "object");
        json_foreach (child, NULL)
                fail();
}

static void test_integers_are_exact(void **state)
{
        static const struct {
                const char *text;
                bool fits;
                int64_t value;
        } cases[] = {
                {"0", true, 0},
                {"-0", true, 0},
                {"-0.0e5", true, 0},
                {"1.0", true, 1},
                {"1e2", true, 100},
                {"1.50e1", true, 15},
                {"1500e-2", true, 15},
                {"1.5", false, 0},
                {"1e-1", false, 0},
                {"9223372036854775807", true, INT64_MAX},
                {"9223372036854775808", false, 0},
                {"-9223372036854775808", true, INT64_MIN},
                {"-9223372036854775809", false, 0},
                {"9007199254740993", true, 9007199254740993},
                {"922337203685477580.7e1", true, INT64_MAX},
                {"1e19", false, 0},
                {"1e400", false, 0},
                {"0e99999999999999999999999", true, 0},
                {"1e99999999999999999999999", false, 0},
                {"0.00000000000000000001e20", true, 1},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        uint64_t u;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                int64_t v = 0;

                if (json_to_i64(parse(&a, cases[i].text), &v) != cases[i].fits || v != cases[i].value)
                        fail_msg("%s gives %lld", cases[i].text, (long long)v);
        }
        assert_true(json_to_u64(parse(&a, "18446744073709551615"), &u));
        assert_true(u == UINT64_MAX);
        assert_false(json_to_u64(parse(&a, "18446744073709551616"), &u));
        assert_false(json_to_u64(parse(&a, "-1"), &u));
        assert_false(json_to_i64(parse(&a, "\"1\""), &(int64_t){0}));
}

static void test_doubles(void **state)
{
        static const struct {
                double value;
                const char *text;
        } cases[] = {
                {0.1, "0.1"},
                {1, "1"},
                {-2.5, "-2.5"},
                {1e22, "1e22"},
                {1e-7, "1e-7"},
                {5e-324, "5e-324"},
                {1.7976931348623157e308, "1.7976931348623157e308"},
                {0.30000000000000004, "0.30000000000000004"},
                {123456.789, "123456.789"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        double v;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_print(&a, json_double(&a, cases[i].value), cases[i].text);
                assert_true(json_to_double(parse(&a, cases[i].text), &v));
                assert_true(v == cases[i].value);
        }
        assert_null(json_double(&a, INFINITY));
        assert_null(json_double(&a, NAN));
        assert_false(json_to_double(parse(&a, "1e400"), &v));
        assert_true(json_to_double(parse(&a, "1e-400"), &v));
        assert_true(json_to_double(
                parse(&a, "3.14159265358979323846264338327950288419716939937510582097494459230781640628"),
                &v));
        assert_true(v == 3.141592653589793);
}

/* ---- change */

static void test_members_are_set_replaced_and_removed(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, "{\"a\":1,\"b\":2,\"c\":3}"), *gone;

        json_set(&a, j, "b", json_string(&a, "two"));
        json_set(&a, j, "d", json_truth(&a, true));
        json_set(&a, j, "e", NULL);
        json_set(&a, j, "e", json_string(&a, NULL));
        assert_print(&a, j, "{\"a\":1,\"b\":\"two\",\"c\":3,\"d\":true}");
        json_set(&a, j, "d", json_null(&a));
        gone = json_remove(j, "a");
        assert_print(&a, gone, "1");
        assert_null(gone->key);
        assert_null(json_remove(j, "a"));
        assert_print(&a, j, "{\"b\":\"two\",\"c\":3,\"d\":null}");
        json_set(&a, j, "z", gone);
        json_remove(j, "z");
        json_remove(j, "c");
        json_remove(j, "b");
        json_set(&a, j, "d", json_i64(&a, INT64_MIN));
        assert_print(&a, j, "{\"d\":-9223372036854775808}");
        json_remove(j, "d");
        assert_print(&a, j, "{}");
        assert_int_equal(json_len(j), 0);
}

static void test_arrays_grow_and_shrink(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = json_array(&a);

        json_append(j, json_u64(&a, UINT64_MAX));
        json_append(j, NULL);
        json_append(j, json_object(&a));
        json_append(j, json_array(&a));
        assert_print(&a, j, "[18446744073709551615,{},[]]");
        json_take(j, json_index(j, 1));
        json_take(j, json_index(j, 1));
        assert_print(&a, j, "[18446744073709551615]");
        json_append(j, json_i64(&a, -1));
        assert_print(&a, j, "[18446744073709551615,-1]");
        assert_null(json_take(json_array(&a), NULL));
}

static void test_invalid_utf8_is_mended(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = json_object(&a);

        assert_str(json_text(json_string(&a, "a\xFF\xC3\xA9\xE2\x82")),
                   "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD");
        json_set(&a, j, "k\xFF", json_null(&a));
        assert_print(&a, j, "{\"k\xEF\xBF\xBD\":null}");
        assert_int_equal(json_stringn(&a, str_n("a\0b", 3))->has_nul, 1);
}

static void test_a_copy_stands_alone(void **state)
{
        static const char text[] = "{\"a\":[1,{\"b\":\"c\"}],\"d\":null,\"e\":false}";
        struct arena first = ARENA_INIT;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = json_copy(&a, parse(&first, text));

        arena_done(&first);
        assert_print(&a, j, text);
        assert_print(&a, json_copy(&a, json_at(j, "a")), "[1,{\"b\":\"c\"}]");
        assert_null(json_copy(&a, json_at(j, "a"))->key);
        assert_null(json_copy(&a, NULL));
}

static void test_build(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *labels = parse(&a, "{\"app\":\"x\"}");

        assert_print(&a,
                     json_build(&a,
                                "{'metadata': {'name': '%s-status', 'labels': %p}, 'spec': {'backoffLimit': "
                                "%d}}",
                                "job", labels, 4),
                     "{\"metadata\":{\"name\":\"job-status\",\"labels\":{\"app\":\"x\"}},\"spec\":{"
                     "\"backoffLimit\":4}}");
        assert_print(&a,
                     json_build(&a, "[%d, %ld, %lld, %u, %lu, %llu, %zu, %s, %.*s, %s, true, null, 1.50]", -1,
                                -2L, -3LL, 4u, 5ul, 6ull, (size_t)7, "eight", 2, "nine",
                                json_str(labels, "none")),
                     "[-1,-2,-3,4,5,6,7,\"eight\",\"ni\",null,true,null,1.50]");
        assert_print(&a,
                     json_build(&a, "{'gone': %p, '%s/%d': {}, \"it's\": '100%% \\'q\\'', 'l': [%p, %d]}",
                                (void *)NULL, "example.com", 7, (void *)NULL, 1),
                     "{\"example.com/7\":{},\"it's\":\"100% 'q'\",\"l\":[1]}");
        assert_print(&a, json_build(&a, "''"), "\"\"");
        assert_print(&a, json_build(&a, "%s", "a\"b\n"), "\"a\\\"b\\n\"");
        assert_null(json_build(&a, "%p", (void *)NULL));
}

/* ---- compare and write */

static void test_equality(void **state)
{
        static const struct {
                const char *x, *y;
                bool equal;
        } cases[] = {
                {"1.0", "1e0", true},
                {"100", "1e2", true},
                {"0", "-0.00e7", true},
                {"1.10", "1.1", true},
                {"0.001", "1e-3", true},
                {"9007199254740993", "9007199254740992", false},
                {"1", "-1", false},
                {"1", "\"1\"", false},
                {"1e400", "10e399", true},
                {"1e400", "1e401", false},
                {"1e99999999999999999999", "1e99999999999999999999", true},
                {"1e99999999999999999999", "2", false},
                {"12.5", "125e-1", true},
                {"120", "12", false},
                {"{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}", true},
                {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
                {"{\"a\":1,\"c\":1}", "{\"a\":1,\"b\":1}", false},
                {"[1,2]", "[2,1]", false},
                {"[]", "{}", false},
                {"null", "false", false},
                {"\"a\\u0000b\"", "\"a\\u0000c\"", false},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *x = parse(&a, cases[i].x), *y = parse(&a, cases[i].y);

                if (json_equal(x, y) != cases[i].equal || json_equal(y, x) != cases[i].equal)
                        fail_msg("%s and %s", cases[i].x, cases[i].y);
                assert_true(json_equal(x, x));
        }
        assert_true(json_equal(NULL, NULL));
        assert_false(json_equal(NULL, json_null(&a)));
}

static void test_large_objects_are_equal_in_any_order(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *x = json_object(&a), *y = json_object(&a);

        for (int i = 0; i < 500; i++) {
                json_set(&a, x, arena_printf(&a, "k%d", i), json_i64(&a, i));
                json_set(&a, y, arena_printf(&a, "k%d", 499 - i), json_i64(&a, 499 - i));
        }
        assert_true(json_equal(x, y));
        json_set(&a, y, "k250", json_i64(&a, 0));
        assert_false(json_equal(x, y));
}

static void test_pretty(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(1000);

        json_write(parse(&a, "{\"a\":[1,{}],\"b\":{\"c\":\"\\u001f\\u007f\"},\"d\":[]}"), JSON_PRETTY, &out);
        assert_string_equal(buf_cstr(&out),
                            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": \"\\u001f\x7F\"\n"
                            "  },\n  \"d\": []\n}");
}

static void test_writing_stops_at_the_limit_of_the_buffer(void **state)
{
        static const char text[] = "{\"a\":[1,true,null,{\"bcdefghij\":\"x\\ny \\\"zzzzzzzzzzzz\"}]}";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, text);

        for (size_t max = 0; max <= strlen(text); max++) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(max);

                json_write(j, JSON_COMPACT, &out);
                assert_int_equal(out.overflow, max < strlen(text));
                assert_true(out.n <= max);
                if (!out.overflow)
                        assert_str(buf_str(&out), text);
        }
}

static void test_strings_of_every_length_are_written(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t n = 0; n < 40; n++)
                for (size_t bad = 0; bad <= n; bad++) {
                        char *s = arena_strndup(&a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP", n);
                        struct json *j;

                        if (bad < n)
                                s[bad] = (char)"\"\\\n\x01"[bad % 4];
                        j = json_string(&a, s);
                        assert_str(json_text(parse(&a, json_print(&a, j))), s);
                }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_survive_byte_for_byte),
        cmocka_unit_test(test_order_and_unknown_members_stay),
        cmocka_unit_test(test_strings_are_decoded),
        cmocka_unit_test(test_errors_name_line_and_column),
        cmocka_unit_test(test_a_raw_nul_is_no_end),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_member_is_left_out),
        cmocka_unit_test(test_nothing_is_read_behind_a_member),
        cmocka_unit_test(test_of_two_members_the_last_wins_in_the_first_place),
        cmocka_unit_test(test_parse_insitu_uses_the_bytes_given),
        cmocka_unit_test(test_readers_take_null),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_members_are_set_replaced_and_removed),
        cmocka_unit_test(test_arrays_grow_and_shrink),
        cmocka_unit_test(test_invalid_utf8_is_mended),
        cmocka_unit_test(test_a_copy_stands_alone),
        cmocka_unit_test(test_build),
        cmocka_unit_test(test_equality),
        cmocka_unit_test(test_large_objects_are_equal_in_any_order),
        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_writing_stops_at_the_limit_of_the_buffer),
        cmocka_unit_test(test_strings_of_every_length_are_written),
};

UNIT_MAIN(tests)
