/*
 * YAML out: what it looks like, and that what was written is read back.
 */
#include "unit/parse.h"

#include <dirent.h>

#include "base/file.h"
#include "json/yaml.h"

/* J as YAML; read again it must be the same value. */
static const char *written(struct arena *a, const struct json *j)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(64 << 20);
        struct err err = ERR_INIT;
        const struct json *again;
        const char *text;

        yaml_write(j, &out);
        text = arena_strdup(a, buf_cstr(&out));
        again = yaml_parse(a, buf_str(&out), NULL, &err);
        if (!again)
                fail_msg("%s\nfrom %s\nas:\n%s", err.text, json_print(a, j), text);
        if (!json_equal(j, again))
                fail_msg("%s\nis read back as %s\nfrom:\n%s", json_print(a, j), json_print(a, again), text);
        return text;
}

static void test_documents_look_as_kubectl_has_them(void **state)
{
        static const struct {
                const char *json, *yaml;
        } cases[] = {
                {"{\"a\": 1, \"b\": [1, 2], \"c\": {\"d\": \"e\"}}", "a: 1\nb:\n- 1\n- 2\nc:\n  d: e\n"},
                {"[]", "[]\n"},
                {"{}", "{}\n"},
                {"null", "null\n"},
                {"\"x\"", "x\n"},
                {"{\"a\": {}, \"b\": [], \"c\": null, \"d\": true}", "a: {}\nb: []\nc: null\nd: true\n"},
                {"[[1, [2]], {\"a\": [3], \"b\": {\"c\": 4}}]",
                 "- - 1\n  - - 2\n- a:\n  - 3\n  b:\n    c: 4\n"},
                {"[{\"a\": {\"b\": 1}, \"c\": 2}, []]", "- a:\n    b: 1\n  c: 2\n- []\n"},
                {"{\"args\": [\"--model\", \"Qwen/Qwen3-0.6B\", \"--port=8000\", \"-c\"]}",
                 "args:\n- --model\n- Qwen/Qwen3-0.6B\n- --port=8000\n- -c\n"},
                {"[-1, 1.5e3, 0]", "- -1\n- 1.5e3\n- 0\n"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_string_equal(written(&a, parse(&a, cases[i].json)), cases[i].yaml);
}

static const struct {
        const char *text, *yaml;
} strings[] = {
        {"", "\"\"\n"},
        {"1", "\"1\"\n"},
        {"1.5", "\"1.5\"\n"},
        {"0x1F", "\"0x1F\"\n"},
        {"1:30", "\"1:30\"\n"},
        {"2001-01-01", "\"2001-01-01\"\n"},
        {"1_000", "\"1_000\"\n"},
        {".inf", "\".inf\"\n"},
        {"-.inf", "\"-.inf\"\n"},
        {"-1", "\"-1\"\n"},
        {"+1", "\"+1\"\n"},
        {"~", "\"~\"\n"},
        {"null", "\"null\"\n"},
        {"NULL", "\"NULL\"\n"},
        {"true", "\"true\"\n"},
        {"y", "\"y\"\n"},
        {"no", "\"no\"\n"},
        {"Off", "\"Off\"\n"},
        {"=", "\"=\"\n"},
        {"<<", "\"<<\"\n"},
        {"-", "\"-\"\n"},
        {"---", "\"---\"\n"},
        {"- a", "\"- a\"\n"},
        {"? a", "\"? a\"\n"},
        {"a: b", "\"a: b\"\n"},
        {"a:", "\"a:\"\n"},
        {"a #b", "\"a #b\"\n"},
        {" a", "\" a\"\n"},
        {"a ", "\"a \"\n"},
        {"#a", "\"#a\"\n"},
        {"&a", "\"&a\"\n"},
        {"*a", "\"*a\"\n"},
        {"!a", "\"!a\"\n"},
        {"{a}", "\"{a}\"\n"},
        {"\"a\"", "'\"a\"'\n"},
        {"{\"it's\": 1}", "'{\"it''s\": 1}'\n"},
        {"a\\b", "a\\b\n"},
        {"0\\b", "'0\\b'\n"},
        {"a:b", "a:b\n"},
        {"a#b", "a#b\n"},
        {"http://x:1/y?z=1&w", "http://x:1/y?z=1&w\n"},
        {"/a/b", "/a/b\n"},
        {"yes please", "yes please\n"},
        {"\t", "\"\\t\"\n"},
        {"a\r\n", "\"a\\r\\n\"\n"},
        {"\n", "\"\\n\"\n"},
        {"\x7f", "\"\\x7F\"\n"},
        {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"\n"},
        {"\xe2\x80\xa8", "\"\\u2028\"\n"},
        {"\xc2\x85", "\"\\x85\"\n"},
        {"\xef\xbb\xbf", "\"\\uFEFF\"\n"},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\"\n"},
};

static void test_strings_are_quoted_where_they_would_be_something_else(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(strings); i++) {
                struct json *object = json_object(&a);

                assert_string_equal(written(&a, json_string(&a, strings[i].text)), strings[i].yaml);
                json_set(&a, object, strings[i].text, json_string(&a, strings[i].text)); /* as a key, too */
                written(&a, object);
        }
}

static void test_several_lines_are_a_literal_block(void **state)
{
        static const struct {
                const char *text, *yaml;
        } cases[] = {
                {"a\nb", "k: |-\n  a\n  b\n"},
                {"a\nb\n", "k: |\n  a\n  b\n"},
                {"a\n\nb\n\n", "k: |+\n  a\n\n  b\n\n"},
                {"a\n\n\n\n", "k: |+\n  a\n\n\n\n"},
                {" a\nb\n", "k: |2\n   a\n  b\n"},
                {"\ta\nb\n", "k: |2\n  \ta\n  b\n"},
                {"\na", "k: |2-\n\n  a\n"},
                {"\n  \n", "k: |2\n\n    \n"},
                {"# a\n--- b\n", "k: |\n  # a\n  --- b\n"},
                {"a \nb  ", "k: |-\n  a \n  b  \n"},
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct json *s = json_string(&a, cases[i].text);
                struct json *object = json_object(&a), *list = json_array(&a);

                json_set(&a, object, "k", json_copy(&a, s));
                assert_string_equal(written(&a, object), cases[i].yaml);
                written(&a, s);
                json_append(list, json_copy(&a, s));
                json_append(list, json_copy(&a, object));
                json_set(&a, object, "list", list);
                json_set(&a, object, "z", json_copy(&a, s));
                written(&a, object);
        }
}

static void test_a_long_key_has_lines_of_its_own(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char key[3001];
        struct json *object = json_object(&a);

        (void)state;
        memset(key, 'k', sizeof(key));
        key[sizeof(key) - 1] = '\0';
        json_set(&a, object, key, parse(&a, "{\"a\": [1, {\"b\": \"x\\ny\"}]}"));
        key[0] = '1';
        json_set(&a, object, key, parse(&a, "[1, 2]"));
        key[0] = '2';
        json_set(&a, object, key, parse(&a, "\"x\\ny\""));
        assert_non_null(strstr(written(&a, object), "\n? \"1kk"));
        written(&a, json_append(json_array(&a), object));
}

static void test_strings_with_a_nul_survive(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object = json_object(&a);

        (void)state;
        json_setn(&a, object, STR("a\0b"), json_stringn(&a, STR("c\0\0d")));
        assert_string_equal(written(&a, object), "\"a\\0b\": \"c\\0\\0d\"\n");
}

static void test_several_documents_are_a_stream(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        const struct json *docs[] = {parse(&a, "{\"a\": \"x\\n\\n\"}"), parse(&a, "[1]"), parse(&a, "\"z\"")};
        struct json **again;
        size_t n;

        (void)state;
        yaml_write_all(docs, ARRAY_LEN(docs), &out);
        assert_string_equal(buf_cstr(&out), "a: |+\n  x\n\n---\n- 1\n---\nz\n");
        assert_int_equal(yaml_parse_all(&a, buf_str(&out), NULL, &again, &n, NULL), 0);
        assert_int_equal(n, ARRAY_LEN(docs));
        for (size_t i = 0; i < n; i++)
                assert_true(json_equal(docs[i], again[i]));
}

static void test_too_much_for_a_buffer_is_no_harm(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(10);

        (void)state;
        yaml_write(parse(&a, "{\"a\": [1, 2, 3, \"four\"], \"b\": \"x\\ny\"}"), &out);
        assert_true(out.overflow);
}

/* ---- what the JSON parser's own cases hold */

/* Numbers that no double holds are strings for YAML. */
static bool is_said_in_yaml(const struct json *j)
{
        double d;

        if (j->type == JSON_NUMBER)
                return json_to_double(j, &d);
        json_foreach (child, j)
                if (!is_said_in_yaml(child))
                        return false;
        return true;
}

static unsigned depth_of(const struct json *j)
{
        unsigned most = 0;

        json_foreach (child, j)
                most = MAX(most, depth_of(child));
        return most + 1;
}

static void test_the_documents_of_the_json_tests_survive(void **state)
{
        static const char path[] = "test/data/json/accept";
        DIR *dir = opendir(path);
        size_t n = 0;

        (void)state;
        assert_non_null(dir);
        for (struct dirent *e; (e = readdir(dir));) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                _cleanup_(buf_done) struct buf text = BUF_INIT(8 << 20);
                const struct json *j;

                if (!str_has_suffix(str_of(e->d_name), STR(".json")) ||
                    file_read(arena_printf(&a, "%s/%s", path, e->d_name), &text, NULL) < 0)
                        continue;
                j = json_parse(&a, buf_str(&text), NULL, NULL);
                if (!j || !is_said_in_yaml(j) || depth_of(j) > 99)
                        continue;
                written(&a, j);
                n++;
        }
        closedir(dir);
        assert_true(n > 0);
}

/* ---- random documents */

static uint64_t below(uint64_t *seed, uint64_t n)
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        return *seed % n;
}

/* Made of what means something in YAML. */
static struct json *random_string(struct arena *a, uint64_t *seed)
{
        static const struct str parts[] = {STR("a"),
                                           STR("b"),
                                           STR(" "),
                                           STR("  "),
                                           STR("\n"),
                                           STR("\n"),
                                           STR("\t"),
                                           STR("-"),
                                           STR("--"),
                                           STR(":"),
                                           STR(": "),
                                           STR("#"),
                                           STR(" #"),
                                           STR("'"),
                                           STR("\""),
                                           STR("\\"),
                                           STR("{"),
                                           STR("}"),
                                           STR("["),
                                           STR("]"),
                                           STR(","),
                                           STR("&"),
                                           STR("*"),
                                           STR("!"),
                                           STR("|"),
                                           STR(">"),
                                           STR("%"),
                                           STR("@"),
                                           STR("`"),
                                           STR("?"),
                                           STR("~"),
                                           STR("no"),
                                           STR("true"),
                                           STR("null"),
                                           STR("1"),
                                           STR("0x"),
                                           STR("."),
                                           STR("_"),
                                           STR("e"),
                                           STR("\r"),
                                           STR("\0"),
                                           STR("\xc3\xbc"),
                                           STR("\xc2\x85"),
                                           STR("\xe2\x80\xa9"),
                                           STR("\xf0\x9f\x98\x80"),
                                           STR("---"),
                                           STR("..."),
                                           STR("\x1b"),
                                           STR("=")};
        _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
        uint64_t n = below(seed, 8);

        for (uint64_t i = 0; i < n; i++)
                buf_addstr(&text, parts[below(seed, ARRAY_LEN(parts))]);
        return json_stringn(a, text.n ? buf_str(&text) : STR(""));
}

static struct json *random_document(struct arena *a, uint64_t *seed, unsigned depth)
{
        uint64_t n = below(seed, 4);
        struct json *j;

        switch (below(seed, depth ? 8 : 5)) {
        case 0:
                return below(seed, 3) ? json_truth(a, below(seed, 2)) : json_null(a);
        case 1:
                return json_double(a, ((double)below(seed, 2000000) - 1e6) / 128);
        case 2:
        case 3:
        case 4:
                return random_string(a, seed);
        case 5:
                j = json_array(a);
                for (uint64_t i = 0; i < n; i++)
                        json_append(j, random_document(a, seed, depth - 1));
                return j;
        default:
                j = json_object(a);
                for (uint64_t i = 0; i < n; i++)
                        json_setn(a, j, json_text(random_string(a, seed)),
                                  random_document(a, seed, depth - 1));
                return j;
        }
}

static void test_random_documents_survive(void **state)
{
        unsigned rounds = unit_extent(2000, 20000, 2000000);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        uint64_t seed = 88172645463325252u;

        (void)state;
        for (unsigned i = 0; i < rounds; i++) {
                written(&a, random_document(&a, &seed, 5));
                arena_reset(&a, SIZE_MAX);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_look_as_kubectl_has_them),
        cmocka_unit_test(test_strings_are_quoted_where_they_would_be_something_else),
        cmocka_unit_test(test_several_lines_are_a_literal_block),
        cmocka_unit_test(test_a_long_key_has_lines_of_its_own),
        cmocka_unit_test(test_strings_with_a_nul_survive),
        cmocka_unit_test(test_several_documents_are_a_stream),
        cmocka_unit_test(test_too_much_for_a_buffer_is_no_harm),
        cmocka_unit_test(test_the_documents_of_the_json_tests_survive),
        cmocka_unit_test(test_random_documents_survive),
};

UNIT_MAIN(tests)
