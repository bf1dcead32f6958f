#include "unit/parse.h"

#include "json/patch.h"

/* RFC 7386, appendix A, and the example of its section 3. */
static void test_merge_patches_of_the_rfc(void **state)
{
        static const struct {
                const char *original, *patch, *result;
        } cases[] = {
                {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
                {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
                {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
                {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
                {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
                {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
                {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
                {"{\"a\":\"foo\"}", "null", "null"},
                {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
                {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
                {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
                {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
                {"{\"title\":\"Goodbye!\",\"author\":{\"givenName\":\"John\",\"familyName\":\"Doe\"},"
                 "\"tags\":[\"example\",\"sample\"],\"content\":\"This will be unchanged\"}",
                 "{\"title\":\"Hello!\",\"phoneNumber\":\"+01-123-456-7890\",\"author\":{"
                 "\"familyName\":null},"
                 "\"tags\":[\"example\"]}",
                 "{\"title\":\"Hello!\",\"author\":{\"givenName\":\"John\"},\"tags\":[\"example\"],"
                 "\"content\":\"This will be unchanged\",\"phoneNumber\":\"+01-123-456-7890\"}"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *j = json_merge_patch(&a, parse(&a, cases[i].original),
                                                  parse(&a, cases[i].patch));

                assert_string_equal(json_print(&a, j), cases[i].result);
        }
}

static void test_merge_patch_changes_in_place_and_copies(void **state)
{
        struct arena other = ARENA_INIT;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, "{\"a\":{\"b\":1}}"), *inner = json_at(j, "a");

        assert_ptr_equal(json_merge_patch(&a, j, parse(&other, "{\"a\":{\"c\":\"new\"}}")), j);
        arena_done(&other);
        assert_ptr_equal(json_at(j, "a"), inner);
        assert_string_equal(json_print(&a, j), "{\"a\":{\"b\":1,\"c\":\"new\"}}");
        assert_string_equal(json_print(&a, json_merge_patch(&a, NULL, parse(&a, "{\"x\":null}"))), "{}");
}

static void test_merge_diff(void **state)
{
        static const struct {
                const char *from, *to, *patch; /* patch NULL: none */
        } cases[] = {
                {"{\"a\":1}", "{\"a\":1.0}", NULL},
                {"{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"c\":2,\"d\":4}}",
                 "{\"a\":null,\"b\":{\"d\":4}}"},
                {"{\"a\":[1,2]}", "{\"a\":[1]}", "{\"a\":[1]}"},
                {"{}", "{\"a\":{}}", "{\"a\":{}}"},
                {"{\"a\":1}", "{\"a\":{}}", "{\"a\":{}}"},
                {"{}", "{\"a\":null}", NULL},
                {"{\"a\":null}", "{\"a\":null}", NULL},
                {"{\"a\":1}", "{\"a\":null}", "{\"a\":null}"},
                {"{}", "{\"a\":{\"b\":null,\"c\":[null]}}", "{\"a\":{\"c\":[null]}}"},
                {"[1]", "[2]", "[2]"},
                {"1", "{}", "{}"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *d = json_merge_diff(&a, parse(&a, cases[i].from), parse(&a, cases[i].to));

                if (!cases[i].patch)
                        assert_null(d);
                else
                        assert_string_equal(json_print(&a, d), cases[i].patch);
        }
}

/* RFC 6902, appendix A (A.9 and A.15 fail there by `test`, A.12 by a missing target, A.13 by its own form). */
static void test_json_patches_of_the_rfc(void **state)
{
        static const struct {
                const char *name, *document, *patch, *result; /* result NULL: fails with CODE */
                enum err_code code;
        } cases[] = {
                {"A.1", "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
                 "{\"foo\":\"bar\",\"baz\":\"qux\"}", E_OK},
                {"A.2", "{\"foo\":[\"bar\",\"baz\"]}",
                 "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
                 "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", E_OK},
                {"A.3", "{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
                 "{\"foo\":\"bar\"}", E_OK},
                {"A.4", "{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
                 "{\"foo\":[\"bar\",\"baz\"]}", E_OK},
                {"A.5", "{\"baz\":\"qux\",\"foo\":\"bar\"}",
                 "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
                 "{\"baz\":\"boo\",\"foo\":\"bar\"}", E_OK},
                {"A.6", "{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
                 "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
                 "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}", E_OK},
                {"A.7", "{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
                 "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
                 "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}", E_OK},
                {"A.8", "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
                 "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"qux\"},"
                 "{\"op\":\"test\",\"path\":\"/foo/1\",\"value\":2}]",
                 "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}", E_OK},
                {"A.9", "{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]", NULL,
                 E_FENCED},
                {"A.10", "{\"foo\":\"bar\"}",
                 "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
                 "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}", E_OK},
                {"A.11", "{\"foo\":\"bar\"}",
                 "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]",
                 "{\"foo\":\"bar\",\"baz\":\"qux\"}", E_OK},
                {"A.12", "{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]",
                 NULL, E_INVALID},
                {"A.13", "{\"foo\":\"bar\"}",
                 "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"op\":\"remove\"}]", NULL, E_INVALID},
                {"A.14", "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
                 "{\"/\":9,\"~1\":10}", E_OK},
                {"A.15", "{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]",
                 NULL, E_FENCED},
                {"A.16", "{\"foo\":[\"bar\"]}",
                 "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
                 "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}", E_OK},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *j = parse(&a, cases[i].document);
                struct err err = ERR_INIT;
                int r = json_patch(&a, &j, parse(&a, cases[i].patch), &err);

                if ((r < 0) != !cases[i].result || err.code != cases[i].code)
                        fail_msg("%s: %s", cases[i].name, err.text);
                assert_string_equal(json_print(&a, j), cases[i].result ? cases[i].result : cases[i].document);
        }
}

static void test_other_patches(void **state)
{
        static const struct {
                const char *document, *patch, *result;
                enum err_code code;
        } cases[] = {
                {"1", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[2]}]", "[2]", E_OK},
                {"1",
                 "[{\"op\":\"add\",\"path\":\"\",\"value\":{}},{\"op\":\"add\",\"path\":\"/"
                 "a\",\"value\":null}]",
                 "{\"a\":null}", E_OK},
                {"[1,2]",
                 "[{\"op\":\"add\",\"path\":\"/0\",\"value\":0},{\"op\":\"add\",\"path\":\"/"
                 "3\",\"value\":3}]",
                 "[0,1,2,3]", E_OK},
                {"{\"a\":{\"b\":1}}",
                 "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"},"
                 "{\"op\":\"replace\",\"path\":\"/c/b\",\"value\":2}]",
                 "{\"a\":{\"b\":1},\"c\":{\"b\":2}}", E_OK},
                {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}", E_OK},
                {"{\"a\":{}}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a/b\"}]",
                 "{\"a\":{\"b\":{\"a\":{}}}}", E_OK},
                {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL,
                 E_INVALID},
                {"{\"a\":1,\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab/x\"}]",
                 "{\"ab\":{\"x\":1}}", E_OK},
                {"[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":0}]", NULL, E_INVALID},
                {"[1]", "[{\"op\":\"add\",\"path\":\"/01\",\"value\":0}]", NULL, E_INVALID},
                {"[1]", "[{\"op\":\"add\",\"path\":\"/x\",\"value\":0}]", NULL, E_INVALID},
                {"[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":1}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"move\",\"path\":\"/a\"}]", NULL, E_INVALID},
                {"{}", "[{\"op\":\"jump\",\"path\":\"/a\"}]", NULL, E_INVALID},
                {"{}", "[{\"path\":\"/a\"}]", NULL, E_INVALID},
                {"{}", "[1]", NULL, E_INVALID},
                {"{}", "{}", NULL, E_INVALID},
                {"{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", NULL, E_FENCED},
                {"{\"a\":1.0}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]", "{\"a\":1.0}", E_OK},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *j = parse(&a, cases[i].document);
                struct err err = ERR_INIT;
                int r = json_patch(&a, &j, parse(&a, cases[i].patch), &err);

                if ((r < 0) != !cases[i].result || err.code != cases[i].code)
                        fail_msg("%s: %d %s", cases[i].patch, r, err.text);
                assert_string_equal(json_print(&a, j), cases[i].result ? cases[i].result : cases[i].document);
        }
}

static void test_a_failing_patch_leaves_the_document(void **state)
{
        static const char document[] = "{\"metadata\":{\"uid\":\"u1\"},\"spec\":{\"a\":[1,2,3]}}";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, document), *before = j;
        struct err err = ERR_INIT;

        assert_int_equal(
                json_patch(&a, &j,
                           parse(&a, "[{\"op\":\"remove\",\"path\":\"/spec/a/0\"},"
                                     "{\"op\":\"add\",\"path\":\"/spec/b\",\"value\":{}},"
                                     "{\"op\":\"move\",\"from\":\"/spec\",\"path\":\"/metadata/spec\"},"
                                     "{\"op\":\"test\",\"path\":\"/metadata/uid\",\"value\":\"u2\"}]"),
                           &err),
                -1);
        assert_int_equal(err.code, E_FENCED);
        assert_string_equal(
                err.text,
                "JSON patch, operation 3: test '/metadata/uid': the value is not what it should be");
        assert_ptr_equal(j, before);
        assert_string_equal(json_print(&a, j), document);
}

static void test_copies_cannot_grow_without_bounds(void **state)
{
        static const char op[] = "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a\"}";
        static const char wide[] = "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/-\"}";
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct json *j;
        struct err err = ERR_INIT;

        for (int i = 0; i < 200; i++)
                buf_printf(&text, "%s%s", i ? "," : "[", op);
        buf_addc(&text, ']');
        j = parse(&a, "{}");
        assert_int_equal(json_patch(&a, &j, parse(&a, buf_cstr(&text)), &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);

        /* Each appends the whole to itself: the number of values doubles while the depth grows by one. */
        buf_clear(&text);
        for (int i = 0; i < 60; i++)
                buf_printf(&text, "%s%s", i ? "," : "[", wide);
        buf_addc(&text, ']');
        j = parse(&a, "[]");
        assert_int_equal(json_patch(&a, &j, parse(&a, buf_cstr(&text)), &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);

        buf_clear(&text);
        for (int i = 0; i < 10001; i++)
                buf_printf(&text, "%s{\"op\":\"test\",\"path\":\"\",\"value\":1}", i ? "," : "[");
        buf_addc(&text, ']');
        j = parse(&a, "1");
        assert_int_equal(json_patch(&a, &j, parse(&a, buf_cstr(&text)), &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);
}

static void test_diff(void **state)
{
        static const struct {
                const char *from, *to, *patch;
        } cases[] = {
                {"{\"a\":1}", "{\"a\":1e0}", "[]"},
                {"{\"a/b\":1,\"c\":2}", "{\"c\":3,\"~\":{}}",
                 "[{\"op\":\"remove\",\"path\":\"/a~1b\"},{\"op\":\"replace\",\"path\":\"/"
                 "c\",\"value\":3},"
                 "{\"op\":\"add\",\"path\":\"/~0\",\"value\":{}}]"},
                {"[1,2,3,4]", "[1,4]",
                 "[{\"op\":\"remove\",\"path\":\"/2\"},{\"op\":\"remove\",\"path\":\"/1\"}]"},
                {"[1,4]", "[1,2,3,4]",
                 "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2},{\"op\":\"add\",\"path\":\"/"
                 "2\",\"value\":3}]"},
                {"[{\"a\":1},2]", "[{\"a\":2},2]", "[{\"op\":\"replace\",\"path\":\"/0/a\",\"value\":2}]"},
                {"{}", "[]", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(
                        json_print(&a, json_diff(&a, parse(&a, cases[i].from), parse(&a, cases[i].to))),
                        cases[i].patch);
}

/* ---- properties, with random documents from a fixed seed */

static uint32_t draw(uint64_t *seed, uint32_t below)
{
        *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
        return (uint32_t)(*seed >> 33) % below;
}

static struct json *random_scalar(struct arena *a, uint64_t *seed)
{
        static const char *const numbers[] = {"0", "1", "1.0", "10e-1", "-1", "1e400", "9007199254740993"};

        switch (draw(seed, 4)) {
        case 0:
                return json_truth(a, draw(seed, 2));
        case 1:
                return parse(a, numbers[draw(seed, ARRAY_LEN(numbers))]);
        case 2:
                return json_string(a, arena_printf(a, "s%u\n", draw(seed, 3)));
        default:
                return json_null(a);
        }
}

/* Few names, so that two documents meet. NULLS: whether members may be null. */
static struct json *random_value(struct arena *a, uint64_t *seed, int depth, bool nulls)
{
        static const char *const names[] = {"a", "b", "", "a/b", "m~n", "~1", "0", "long name"};
        uint32_t kind = draw(seed, depth ? 5 : 1), n = draw(seed, draw(seed, 40) ? 5 : 60);
        struct json *j;

        if (kind < 2) {
                do
                        j = random_scalar(a, seed);
                while (!nulls && j->type == JSON_NULL);
                return j;
        }
        if (kind == 2) {
                j = json_array(a);
                for (uint32_t i = 0; i < n; i++)
                        json_append(j, random_value(a, seed, depth - 1, true));
                return j;
        }
        j = json_object(a);
        for (uint32_t i = 0; i < n; i++) {
                const char *name = n > 5 ? arena_printf(a, "k%u", i) : names[draw(seed, ARRAY_LEN(names))];

                json_set(a, j, name, random_value(a, seed, depth - 1, nulls));
        }
        return j;
}

static void test_a_diff_leads_from_one_to_the_other(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        uint64_t seed = 7;

        for (int i = 0; i < 5000; i++, arena_reset(&a, SIZE_MAX)) {
                struct json *from = random_value(&a, &seed, 4, true), *to = random_value(&a, &seed, 4, true);
                struct json *patch = json_diff(&a, from, to), *j = from;
                struct err err = ERR_INIT;

                if (json_patch(&a, &j, patch, &err) < 0 || !json_equal(j, to))
                        fail_msg("%d: %s to %s by %s: %s", i, json_print(&a, from), json_print(&a, to),
                                 json_print(&a, patch), err.text);
                assert_int_equal(json_len(json_diff(&a, j, to)), 0);
        }
}

static void test_a_merge_diff_leads_from_one_to_the_other(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        uint64_t seed = 8;

        for (int i = 0; i < 5000; i++, arena_reset(&a, SIZE_MAX)) {
                struct json *from = random_value(&a, &seed, 4, true), *to = random_value(&a, &seed, 4, false);
                struct json *patch = json_merge_diff(&a, from, to), *j = json_copy(&a, from);

                if (patch)
                        j = json_merge_patch(&a, j, patch);
                if (!json_equal(j, to))
                        fail_msg("%d: %s to %s by %s", i, json_print(&a, from), json_print(&a, to),
                                 json_print(&a, patch));
                assert_int_equal(patch == NULL, json_equal(from, to));
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_patches_of_the_rfc),
        cmocka_unit_test(test_merge_patch_changes_in_place_and_copies),
        cmocka_unit_test(test_merge_diff),
        cmocka_unit_test(test_json_patches_of_the_rfc),
        cmocka_unit_test(test_other_patches),
        cmocka_unit_test(test_a_failing_patch_leaves_the_document),
        cmocka_unit_test(test_copies_cannot_grow_without_bounds),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_a_diff_leads_from_one_to_the_other),
        cmocka_unit_test(test_a_merge_diff_leads_from_one_to_the_other),
};

UNIT_MAIN(tests)
