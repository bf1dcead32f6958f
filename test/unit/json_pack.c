#include "unit/unit.h"

#include "json/json.h"

/* Packs and unpacks TEXT; returns what comes out, written compactly, and the number of bytes between. */
static const char *through(struct json_names *names, const char *text, struct arena *a, size_t *ret_bytes)
{
        _cleanup_(buf_done) struct buf once = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
        _cleanup_(free_ptr) char *exact = NULL;
        struct json *j = json_parse(a, str_of(text), NULL, NULL), *out;

        assert_non_null(j);
        json_pack(names, j, &once);
        json_pack(names, j, &again);
        assert_true(str_eq(buf_str(&once), buf_str(&again)));
        exact = xmemdup(once.p, once.n); /* so that looking beyond the end is seen */
        out = json_unpack(names, str_n(exact, once.n), a);
        assert_true(json_equal(j, out));
        *ret_bytes = once.n;
        return json_print(a, out);
}

static void test_every_value_comes_back_as_it_was(void **state)
{
        static const char *const texts[] = {
                "null",
                "true",
                "false",
                "\"\"",
                "{}",
                "[]",
                "-0.10e+400",
                "9007199254740993",
                "\"a\\u0000b\"",
                "\"\\\"\\\\\xc3\xa9\"",
                "[null,[true,[false,[1.0,[\"x\",{}]]]],{\"a\":[]}]",
                "{\"\":1,\"a\":{\"\":{\"a\":2}},\"n\\u0000\":3,\"b\":\"x\"}",
        };
        _cleanup_(json_names_free) struct json_names *names = json_names_new();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        size_t n;

        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                assert_string_equal(through(names, texts[i], &a, &n), texts[i]);
}

static void test_a_nul_in_a_string_is_still_known(void **state)
{
        _cleanup_(json_names_free) struct json_names *names = json_names_new();
        _cleanup_(buf_done) struct buf packed = BUF_INIT(100);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j;

        json_pack(names, json_parse(&a, STR("\"a\\u0000b\""), NULL, NULL), &packed);
        j = json_unpack(names, buf_str(&packed), &a);
        assert_null(json_cstr(j));
        assert_int_equal(json_text(j).n, 3);
}

/* At each side of where the length takes more bytes. */
static void test_all_lengths(void **state)
{
        static const int lengths[] = {28, 29, 30, 31, 32, 255, 256, 65535, 65536, 100000};
        _cleanup_(json_names_free) struct json_names *names = json_names_new();

        for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const char *string = arena_printf(&a, "\"%0*d\"", lengths[i], 0);
                const char *number = arena_printf(&a, "1%0*d", lengths[i] - 1, 0);
                size_t n;

                assert_string_equal(through(names, string, &a, &n), string);
                assert_string_equal(through(names, number, &a, &n), number);
        }
}

static void test_names_are_kept_once(void **state)
{
        static const char text[] =
                "{\"creationTimestamp\":1,\"ownerReferences\":[{\"blockOwnerDeletion\":true}]}";
        _cleanup_(json_names_free) struct json_names *names = json_names_new();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        size_t n;

        assert_string_equal(through(names, text, &a, &n), text);
        assert_int_equal(n, 9); /* 3 containers, 3 names, the number's two bytes, a word */
}

/* More names than may be kept, and ones too long for it, in one document and in many. */
static void test_ever_new_names_are_written_out(void **state)
{
        _cleanup_(json_names_free) struct json_names *names = json_names_new();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        size_t n, again;

        for (int i = 0; i < 5000; i++)
                buf_printf(&text, "%s\"name-%d\":%d", i ? "," : "{", i, i);
        buf_printf(&text, ",\"%0300d\":1}", 7);
        assert_string_equal(through(names, buf_cstr(&text), &a, &n), buf_cstr(&text));
        assert_string_equal(through(names, buf_cstr(&text), &a, &again), buf_cstr(&text));
        assert_int_equal(n, again);
        assert_string_equal(through(names, "{\"new\":1,\"name-3\":2}", &a, &n), "{\"new\":1,\"name-3\":2}");
        assert_int_equal(n, 1 + 5 + 2 + 1 + 2);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_comes_back_as_it_was),
        cmocka_unit_test(test_a_nul_in_a_string_is_still_known),
        cmocka_unit_test(test_all_lengths),
        cmocka_unit_test(test_names_are_kept_once),
        cmocka_unit_test(test_ever_new_names_are_written_out),
};

UNIT_MAIN(tests)
