#include "unit/unit.h"

#include "json/split.h"

/* Collects the pieces, each followed by a bar. */
static int collect(void *arg, struct str value, struct err *err)
{
        buf_addstr(arg, value);
        buf_addc(arg, '|');
        return 0;
}

/* Feeds TEXT in chunks of SIZE. */
static int split(enum json_split_mode mode, struct str text, size_t size, size_t max, struct buf *pieces,
                 struct buf *rest, struct err *err)
{
        _cleanup_(json_split_free) struct json_split *s = json_split_new(mode, max, collect, pieces);
        struct str kept;

        for (size_t i = 0; i < text.n; i += size) {
                /* A copy of its own, so that looking beyond the chunk is seen. */
                size_t n = MIN(size, text.n - i);
                _cleanup_(free_ptr) char *chunk = xmemdup(text.p + i, n);

                if (json_split_feed(s, str_n(chunk, n), err) < 0)
                        return -1;
        }
        if (json_split_end(s, &kept, err) < 0)
                return -1;
        buf_addstr(rest, kept);
        return 0;
}

static void check(enum json_split_mode mode, const char *text, const char *pieces, const char *rest)
{
        for (size_t size = 1; size <= strlen(text) + 1; size++) {
                _cleanup_(buf_done) struct buf got = BUF_INIT(10000), kept = BUF_INIT(10000);
                struct err err = ERR_INIT;

                if (split(mode, str_of(text), size, 1000, &got, &kept, &err) < 0)
                        fail_msg("%s in chunks of %zu: %s", text, size, err.text);
                assert_str(buf_str(&got), pieces);
                assert_str(buf_str(&kept), rest);
        }
}

static void check_error(enum json_split_mode mode, const char *text, size_t max, enum err_code code,
                        const char *why)
{
        for (size_t size = 1; size <= strlen(text) + 1; size++) {
                _cleanup_(buf_done) struct buf got = BUF_INIT(10000), kept = BUF_INIT(10000);
                struct err err = ERR_INIT;

                if (split(mode, str_of(text), size, max, &got, &kept, &err) == 0)
                        fail_msg("%s in chunks of %zu is accepted", text, size);
                assert_int_equal(err.code, code);
                assert_string_equal(err.text, why);
        }
}

static void test_a_watch_is_cut_into_events(void **state)
{
        check(SPLIT_VALUES, "{\"a\":1}\n{\"b\":\"}{][\\\"\\\\\"}\r\n\n {\"c\":[{},[]]}\n",
              "{\"a\":1}|{\"b\":\"}{][\\\"\\\\\"}|{\"c\":[{},[]]}|", "");
        check(SPLIT_VALUES, "", "", "");
        check(SPLIT_VALUES, " \n\r\n\t", "", "");
        check(SPLIT_VALUES, "{}{}[]\"x\"\"y z\"", "{}|{}|[]|\"x\"|\"y z\"|", "");
        check(SPLIT_VALUES, "1 -2.5e3\ntrue null", "1|-2.5e3|true|null|", "");
        check(SPLIT_VALUES, "{\"long\":\"0123456789abcdef0123456789\\\\\\\"}\",\"x\":\"\\u0022\"}",
              "{\"long\":\"0123456789abcdef0123456789\\\\\\\"}\",\"x\":\"\\u0022\"}|", "");
        /* Nobody but the parser says what is wrong with these. */
        check(SPLIT_VALUES, "} {]", "}|{]|", "");
}

/* Long enough for the steps of many bytes, with everything that they must see, also where one ends. */
static void test_long_values(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(100000), want = BUF_INIT(100000);

        for (size_t pad = 0; pad < 70; pad++) {
                size_t start = text.n;

                buf_adds(&text, "{\"pad\":\"");
                for (size_t i = 0; i < pad; i++)
                        buf_addc(&text, "}]{[x,:"[i % 7]);
                buf_adds(&text, pad % 3 == 0 ? "\\\"}" : "");
                buf_adds(&text, "\",\"deep\":[[[{\"a\":{}},\"]]]]\",[1,[2,[3]]]]],{\"b\":[");
                buf_adds(&text, "\"0123456789012345678901234567890123456789\",{\"{\":\"}\"},[],[{}]]}]}");
                buf_add(&want, text.p + start, text.n - start);
                buf_addc(&want, '|');
        }
        for (size_t size = 1; size <= text.n; size += size < 300 ? 1 : 997) {
                _cleanup_(buf_done) struct buf got = BUF_INIT(100000), kept = BUF_INIT(100000);
                struct err err = ERR_INIT;

                assert_int_equal(split(SPLIT_VALUES, buf_str(&text), size, 1000, &got, &kept, &err), 0);
                assert_str(buf_str(&got), buf_cstr(&want));
        }
}

static void test_a_list_is_cut_into_items(void **state)
{
        check(SPLIT_ITEMS,
              "{\"kind\":\"PodList\",\"metadata\":{\"items\":[7]},\"items\":[{\"a\":[1,2]},{\"b\":\"]\"}]}\n",
              "{\"a\":[1,2]}|{\"b\":\"]\"}|",
              "{\"kind\":\"PodList\",\"metadata\":{\"items\":[7]},\"items\":[]}");
        check(SPLIT_ITEMS,
              " { \"items\" : [ 1 , \"x\" ,[ ], null ] , \"kind\" : \"L\" , \"n\" : 5 , \"s\":\"\\\"\" } ",
              "1|\"x\"|[ ]|null|", "{\"items\":[],\"kind\":\"L\",\"n\":5,\"s\":\"\\\"\"}");
        check(SPLIT_ITEMS, "{\"items\":[]}", "", "{\"items\":[]}");
        check(SPLIT_ITEMS, "{\"items\":null,\"x\":1}", "", "{\"items\":null,\"x\":1}");
        check(SPLIT_ITEMS, "{\"kind\":\"Status\",\"code\":410}", "", "{\"kind\":\"Status\",\"code\":410}");
        check(SPLIT_ITEMS, "{}", "", "{}");
        check(SPLIT_ITEMS, "{\"itemsx\":[1],\"x\":\"items\"}", "", "{\"itemsx\":[1],\"x\":\"items\"}");
}

static void test_errors(void **state)
{
        static const char lost[] = "the stream of JSON values ended in the middle of one";

        check_error(SPLIT_VALUES, "{\"a\":1}\n{\"b\"", 1000, E_LOST, lost);
        check_error(SPLIT_VALUES, "\"abc\\\"", 1000, E_LOST, lost);
        check_error(SPLIT_ITEMS, "{\"items\":[1,2", 1000, E_LOST, lost);
        check_error(SPLIT_ITEMS, "{\"items\":[1,2]", 1000, E_LOST, lost);
        check_error(SPLIT_ITEMS, "", 1000, E_LOST, lost);
        check_error(SPLIT_ITEMS, "[1]", 1000, E_INVALID, "unexpected byte 0x5b instead of a JSON list");
        check_error(SPLIT_ITEMS, "{} x", 1000, E_INVALID, "unexpected byte 0x78 after a JSON list");
        check_error(SPLIT_ITEMS, "{\"items\":[1,]}", 1000, E_INVALID,
                    "unexpected byte 0x5d instead of an item of a JSON list");
        check_error(SPLIT_ITEMS, "{\"items\":[,1]}", 1000, E_INVALID,
                    "unexpected byte 0x2c instead of an item of a JSON list");
        check_error(SPLIT_ITEMS, "{\"items\":[1 2]}", 1000, E_INVALID,
                    "unexpected byte 0x32 after an item of a JSON list");
        check_error(SPLIT_ITEMS, "{\"items\" []}", 1000, E_INVALID,
                    "unexpected byte 0x5b after a member name of a JSON list");
        check_error(SPLIT_ITEMS, "{\"x\":,}", 1000, E_INVALID,
                    "unexpected byte 0x2c instead of a value in a JSON list");
        check_error(SPLIT_ITEMS, "{x:1}", 1000, E_INVALID,
                    "unexpected byte 0x78 before a member of a JSON list");
        check_error(SPLIT_VALUES, "{\"a\":\"0123456789\"}", 10, E_TOO_LARGE,
                    "a JSON value in the stream is over the limit of 10 bytes");
        check_error(SPLIT_ITEMS, "{\"items\":[{\"a\":\"0123456789\"}]}", 16, E_TOO_LARGE,
                    "a JSON value in the stream is over the limit of 16 bytes");
        check_error(SPLIT_ITEMS, "{\"a\":\"0123456789\"}", 10, E_TOO_LARGE,
                    "a JSON list without its items is over the limit of 10 bytes");
}

static int refuse(void *arg, struct str value, struct err *err)
{
        ++*(int *)arg;
        return err_set(err, E_CANCELED, "enough");
}

static void test_a_refusal_stops_it(void **state)
{
        int calls = 0;
        _cleanup_(json_split_free) struct json_split *s = json_split_new(SPLIT_VALUES, 100, refuse, &calls);
        struct err err = ERR_INIT;

        assert_int_equal(json_split_feed(s, STR("{}{}"), &err), -1);
        assert_int_equal(err.code, E_CANCELED);
        assert_int_equal(json_split_feed(s, STR("{}"), &err), -1);
        assert_int_equal(json_split_end(s, NULL, &err), -1);
        assert_int_equal(calls, 1);
}

static int inside(void *arg, struct str value, struct err *err)
{
        const struct str *chunk = arg;

        assert_true(value.p >= chunk->p && value.p + value.n <= chunk->p + chunk->n);
        return 0;
}

static void test_whole_values_are_not_copied(void **state)
{
        struct str chunk = STR("{\"a\":1}\n{\"b\":2}\n");
        _cleanup_(json_split_free) struct json_split *s = json_split_new(SPLIT_VALUES, 100, inside, &chunk);

        assert_int_equal(json_split_feed(s, chunk, NULL), 0);
        assert_int_equal(json_split_end(s, NULL, NULL), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_watch_is_cut_into_events), cmocka_unit_test(test_long_values),
        cmocka_unit_test(test_a_list_is_cut_into_items),   cmocka_unit_test(test_errors),
        cmocka_unit_test(test_a_refusal_stops_it),         cmocka_unit_test(test_whole_values_are_not_copied),
};

UNIT_MAIN(tests)
