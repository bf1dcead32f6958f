#include "unit/parse.h"

#include "json/path.h"

/* RFC 6901, section 5. */
static void test_pointers_of_the_rfc(void **state)
{
        static const char document[] =
                "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,"
                "\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8}";
        static const struct {
                const char *pointer, *value;
        } cases[] = {
                {"", document},        {"/foo", "[\"bar\",\"baz\"]"},
                {"/foo/0", "\"bar\""}, {"/", "0"},
                {"/a~1b", "1"},        {"/c%d", "2"},
                {"/e^f", "3"},         {"/g|h", "4"},
                {"/i\\j", "5"},        {"/k\"l", "6"},
                {"/ ", "7"},           {"/m~0n", "8"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, document);

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(json_print(&a, json_pointer(j, cases[i].pointer)), cases[i].value);
}

static void test_pointers_to_nothing(void **state)
{
        static const char *const pointers[] = {"/foo/2",   "/foo/-", "/foo/01",  "/foo/+1",
                                               "/foo/bar", "/x",     "/foo/0/1", "foo",
                                               "/m~2n",    "/m~",    "//",       "/foo/18446744073709551616"};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, "{\"foo\":[\"bar\",\"baz\"],\"m~n\":8}");

        for (size_t i = 0; i < ARRAY_LEN(pointers); i++)
                assert_null(json_pointer(j, pointers[i]));
        assert_string_equal(json_cstr(json_pointer(parse(&a, "{\"~1\":\"x\"}"), "/~01")), "x");
}

static void test_dotted_paths(void **state)
{
        static const char document[] = "{\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}]},"
                                       "\"labels\":{\"app.kubernetes.io/name\":\"x\",\"q\\\"]\":1}}";
        static const struct {
                const char *path, *value;
        } cases[] = {
                {"spec.containers[0].name", "\"a\""},
                {"spec.containers[1]", "{\"name\":\"b\"}"},
                {"labels[\"app.kubernetes.io/name\"]", "\"x\""},
                {"[\"spec\"][\"containers\"][1].name", "\"b\""},
                {"labels[\"q\\\"]\"]", "1"},
        };
        static const char *const nothing[] = {
                "spec.containers[2]",
                "spec.containers[-1]",
                "spec.containers[x]",
                "spec.containers[0",
                "spec..x",
                "spec.",
                ".spec",
                "labels[\"app",
                "spec.name",
                "spec[0]",
                "labels[\"app\"",
                "spec.containers.0",
                "[]",
                "labels[\"\\x\"]",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, document);

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(json_print(&a, json_path(j, cases[i].path)), cases[i].value);
        for (size_t i = 0; i < ARRAY_LEN(nothing); i++)
                assert_null(json_path(j, nothing[i]));
        assert_ptr_equal(json_path(j, ""), j);
        assert_ptr_equal(json_path(json_at(json_at(j, "spec"), "containers"), "[0].name"),
                         json_path(j, "spec.containers[0].name"));
}

static void test_setting_makes_what_is_missing(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = parse(&a, "{\"list\":[1,{\"x\":2}],\"n\":3}");

        assert_non_null(json_path_set(&a, j, "status.phase", json_string(&a, "Running")));
        assert_non_null(json_path_set(&a, j, "status[\"a.b\"].c", json_truth(&a, true)));
        assert_non_null(json_path_set(&a, j, "list[1].x", json_i64(&a, 4)));
        assert_non_null(json_path_set(&a, j, "list[0]", json_null(&a)));
        assert_non_null(json_path_set(&a, j, "list[2]", json_i64(&a, 5)));
        assert_string_equal(json_print(&a, j), "{\"list\":[null,{\"x\":4},5],\"n\":3,"
                                               "\"status\":{\"phase\":\"Running\",\"a.b\":{\"c\":true}}}");
        assert_null(json_path_set(&a, j, "n.x", json_null(&a)));
        assert_null(json_path_set(&a, j, "list.x", json_null(&a)));
        assert_null(json_path_set(&a, j, "list[4]", json_null(&a)));
        assert_null(json_path_set(&a, j, "other.x.", json_null(&a)));
        assert_null(json_path_set(&a, j, "", json_null(&a)));
        assert_null(json_at(j, "other"));
}

static void test_paths_are_put_together(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf path = BUF_INIT(200);
        struct json *j = parse(&a, "{\"spec\":[{\"a.b/c\":{\"d-e_1\":{\"\":\"x\"}}}]}");

        json_path_add_key(&path, STR("spec"));
        json_path_add_index(&path, 0);
        json_path_add_key(&path, STR("a.b/c"));
        json_path_add_key(&path, STR("d-e_1"));
        json_path_add_key(&path, STR(""));
        assert_string_equal(buf_cstr(&path), "spec[0][\"a.b/c\"].d-e_1[\"\"]");
        assert_string_equal(json_cstr(json_path(j, buf_cstr(&path))), "x");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pointers_of_the_rfc),    cmocka_unit_test(test_pointers_to_nothing),
        cmocka_unit_test(test_dotted_paths),           cmocka_unit_test(test_setting_makes_what_is_missing),
        cmocka_unit_test(test_paths_are_put_together),
};

UNIT_MAIN(tests)
