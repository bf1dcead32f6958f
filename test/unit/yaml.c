#include "unit/dir.h"

#include "json/doc.h"
#include "json/yaml.h"

/* TEXT as compact JSON, or its error, in the arena. */
static const char *converted(struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        struct json *j = yaml_parse(a, str_of(text), NULL, &err);

        return j ? json_print(a, j) : arena_strdup(a, err.text);
}

struct example {
        const char *yaml, *json;
};

static void check_examples(const struct example *examples, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;

                assert_string_equal(converted(&a, examples[i].yaml), examples[i].json);
        }
}
#define CHECK_EXAMPLES(examples) check_examples(examples, ARRAY_LEN(examples))

/* What kubectl 1.20 makes of `a: TEXT`, seen with `kubectl label --local -f - l=v -o json`. Numbers are compared by
 * value (kubectl writes 1e3 as 1000); what is over 2^63 kubectl rounds, and we keep. */
static const struct example scalars[] = {
        {"y", "true"},
        {"Y", "true"},
        {"yes", "true"},
        {"Yes", "true"},
        {"YES", "true"},
        {"yEs", "\"yEs\""},
        {"n", "false"},
        {"N", "false"},
        {"no", "false"},
        {"No", "false"},
        {"NO", "false"},
        {"nO", "\"nO\""},
        {"true", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"tRUE", "\"tRUE\""},
        {"false", "false"},
        {"False", "false"},
        {"FALSE", "false"},
        {"on", "true"},
        {"On", "true"},
        {"ON", "true"},
        {"off", "false"},
        {"Off", "false"},
        {"OFF", "false"},
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"", "null"},
        {"nil", "\"nil\""},
        {"none", "\"none\""},
        {"''", "\"\""},
        {"\"\"", "\"\""},
        {"0", "0"},
        {"-0", "0"},
        {"+0", "0"},
        {"7", "7"},
        {"+7", "7"},
        {"-7", "-7"},
        {"--7", "\"--7\""},
        {"0x1F", "31"},
        {"0X1f", "31"},
        {"-0x1F", "-31"},
        {"0x", "\"0x\""},
        {"0xg", "\"0xg\""},
        {"017", "15"},
        {"0o17", "15"},
        {"0O17", "15"},
        {"-017", "-15"},
        {"0o8", "\"0o8\""},
        {"08", "8"},
        {"0019", "19"},
        {"00", "0"},
        {"08.5", "8.5"},
        {"0b101", "5"},
        {"0B101", "5"},
        {"-0b101", "-5"},
        {"0b-101", "-5"},
        {"0b2", "\"0b2\""},
        {"1_000", "1000"},
        {"1__0", "10"},
        {"1_", "1"},
        {"_1", "\"_1\""},
        {"0x_1F", "31"},
        {"1_0.5", "10.5"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9223372036854775808"},
        {"18446744073709551615", "18446744073709551615"},
        {"0xFFFFFFFFFFFFFFFF", "18446744073709551615"},
        {"+0xFFFFFFFFFFFFFFFF", "\"+0xFFFFFFFFFFFFFFFF\""},
        {"0x10000000000000000", "\"0x10000000000000000\""},
        {".5", "0.5"},
        {"+.5", "0.5"},
        {"-.5", "-0.5"},
        {"1.", "1"},
        {"1.0", "1.0"},
        {"-0.0", "-0.0"},
        {"1e3", "1e3"},
        {"1E+3", "1E+3"},
        {"1.5e-3", "1.5e-3"},
        {".5e1", "0.5e1"},
        {".5_5", "0.55"},
        {"._5", "\"._5\""},
        {".5_", "\".5_\""},
        {"1e", "\"1e\""},
        {"e3", "\"e3\""},
        {".", "\".\""},
        {"1.2.3", "\"1.2.3\""},
        {"1e400", "\"1e400\""},
        {"1e-400", "1e-400"},
        {"0x1p4", "\"0x1p4\""},
        {"12:30:45", "\"12:30:45\""},
        {"190:20:30.15", "\"190:20:30.15\""},
        {"2001-01-01", "\"2001-01-01\""},
        {"2001-12-14t21:59:43.10-05:00", "\"2001-12-14t21:59:43.10-05:00\""},
        {"2001-12-14 21:59:43.10 -5", "\"2001-12-14 21:59:43.10 -5\""},
        {"100m", "\"100m\""},
        {"1Gi", "\"1Gi\""},
        {"1,000", "\"1,000\""},
        {"-", "[null]"},
        {"+", "\"+\""},
        {"'yes'", "\"yes\""},
        {"\"0x1F\"", "\"0x1F\""},
        {"|-\n  1", "\"1\""},
        {">-\n  true", "\"true\""},
        {"1\n  2", "\"1 2\""},
        {"=", "\"=\""},
        {"<<", "\"<<\""},
        {"!!str 5", "\"5\""},
        {"!!str yes", "\"yes\""},
        {"!!str", "\"\""},
        {"!!int \"5\"", "5"},
        {"!!int '0x10'", "16"},
        {"!!float 5", "5"},
        {"!!bool yes", "true"},
        {"!!bool 'off'", "false"},
        {"!!null ''", "null"},
        {"!!null ~", "null"},
        {"!!binary aGVsbG8=", "\"hello\""},
        {"!!binary ''", "\"\""},
        {"! 5", "\"5\""},
        {"!!binary /w==", "\"\xEF\xBF\xBD\""},
        {"\"\\x41\\u00e9\\0\"", "\"A\xC3\xA9\\u0000\""},
};

static void test_plain_scalars_are_what_kubectl_makes_of_them(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(scalars); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                const char *text = arena_printf(&a, "a:%s%s", streq(scalars[i].yaml, "-") ? "\n" : " ",
                                                scalars[i].yaml);

                assert_string_equal(converted(&a, text), arena_printf(&a, "{\"a\":%s}", scalars[i].json));
        }
}

static void test_numbers_keep_all_their_digits(void **state)
{
        static const struct example examples[] = {
                {"18446744073709551616", "18446744073709551616"},
                {"-9223372036854775809", "-9223372036854775809"},
                {"123456789012345678901234567890", "123456789012345678901234567890"},
                {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
        };
        CHECK_EXAMPLES(examples);
}

/* Also seen with kubectl, but for the refusals. */
static void test_keys_become_strings(void **state)
{
        static const struct example examples[] = {
                {"true: 1", "{\"true\":1}"},
                {"no: 1", "{\"false\":1}"},
                {"1: 1", "{\"1\":1}"},
                {"0x1F: 1", "{\"31\":1}"},
                {"1.50: 1", "{\"1.5\":1}"},
                {"1e3: 1", "{\"1000\":1}"},
                {"1234567.0: 1", "{\"1.234567e+06\":1}"},
                {"0.00001: 1", "{\"1e-05\":1}"},
                {"0.1: 1", "{\"0.1\":1}"},
                {".inf: 1", "{\".inf\":1}"},
                {"'1': 1", "{\"1\":1}"},
                {"2001-01-01: 1", "{\"2001-01-01\":1}"},
                {"? a\n: b", "{\"a\":\"b\"}"},
                {"&k a: *k", "{\"a\":\"a\"}"},
                {"x: &k 017\n*k : 1", "{\"x\":15,\"15\":1}"},
                {"~: 1", "1:1: a key must be a string"},
                {"? [a]\n: 1", "1:3: a key must be a string"},
                {"18446744073709551615: 1", "1:1: a key must be a string"},
        };
        CHECK_EXAMPLES(examples);
}

static void test_merge_keys(void **state)
{
        static const struct example examples[] = {
                {"a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}",
                 "{\"a\":{\"x\":1,\"z\":2},\"b\":{\"x\":1,\"z\":3}}"},
                /* kubectl lets what stands further down win */
                {"a: &a {x: 1}\nb: {x: 2, <<: *a}", "{\"a\":{\"x\":1},\"b\":{\"x\":1}}"},
                {"<<: [{x: 1}, {x: 2, q: 2}]\nz: 3", "{\"x\":1,\"q\":2,\"z\":3}"},
                {"<<: {<<: {x: 1}, z: 2}", "{\"x\":1,\"z\":2}"},
                {"<<: {x: 1}\n<<: {x: 2}", "{\"x\":2}"},
                {"!!merge <<: {x: 1}", "{\"x\":1}"},
                {"'<<': {x: 1}", "{\"<<\":{\"x\":1}}"},
                {"<<: 5", "1:5: map merge requires map or sequence of maps as the value"},
                {"<<: [5]", "1:5: map merge requires map or sequence of maps as the value"},
                {"a: &a [{x: 1}]\n<<: *a", "2:5: map merge requires map or sequence of maps as the value"},
                {"x: 1\n<<: {x: 2}\nx: 3", "3:1: key \"x\" is there twice"},
        };
        CHECK_EXAMPLES(examples);
}

static void test_aliases(void **state)
{
        static const struct example examples[] = {
                {"a: &a [1, {b: c}]\nd: *a", "{\"a\":[1,{\"b\":\"c\"}],\"d\":[1,{\"b\":\"c\"}]}"},
                {"[&a x, &a z, *a]", "[\"x\",\"z\",\"z\"]"},
                {"a: *b", "1:4: unknown anchor 'b'"},
                {"&a [*a]", "1:5: the value of anchor 'a' contains itself"},
                {"a: &a {b: *a}", "1:11: the value of anchor 'a' contains itself"},
        };
        CHECK_EXAMPLES(examples);
}

static void test_refusals_say_where(void **state)
{
        static const struct example examples[] = {
                {"", "1:1: there is no document"},
                {"# nothing\n---\n", "1:1: there is no document"},
                {"a: 1\n---\nb: 2\n", "3:1: one document is expected and this is another"},
                {"a: b: c", "1:5: mapping values are not allowed in this context"},
                {"a: 1\nb\n", "3:1: could not find expected ':'"},
                {"a: [1\nb: 2", "2:2: did not find expected ',' or ']'"},
                {"a:\n\tb: 1", "2:1: found character that cannot start any token"},
                {"a: \xff", "1:4: invalid leading UTF-8 octet"},
                {"a: 1\nb: 2\na: 3", "3:1: key \"a\" is there twice"},
                {"1: a\n'1': b", "2:1: key \"1\" is there twice"},
                {"a: .inf", "1:4: .inf cannot be said in JSON"},
                {"a: .NaN", "1:4: .nan cannot be said in JSON"},
                {"a: !!float -.inf", "1:4: -.inf cannot be said in JSON"},
                {"a: !!int abc", "1:4: cannot read `abc` as a !!int"},
                {"a: !!bool 1", "1:4: cannot read `1` as a !!bool"},
                {"a: !!null x", "1:4: cannot read `x` as a !!null"},
                {"a: !!binary '*'", "1:4: !!binary value contains invalid base64 data"},
                {"a: !!timestamp 2001-01-01", "1:4: tag !!timestamp is not supported"},
                {"a: !foo bar", "1:4: tag !foo is not supported"},
                {"a: !foo [bar]", "1:4: tag !foo is not supported"},
                {"a: !!set {bar}", "1:4: tag tag:yaml.org,2002:set is not supported"},
        };
        CHECK_EXAMPLES(examples);
}

static void test_every_node_knows_its_line_and_column(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *j = yaml_parse(&a, STR("# c\na: 1\nb:\n  - x\n  - {\xC3\xA9: y}\n"), NULL, NULL);
        struct json *list = json_at(j, "b"), *inner;

        assert_non_null(j);
        assert_int_equal(j->line, 2);
        assert_int_equal(j->column, 1);
        assert_int_equal(json_at(j, "a")->line, 2);
        assert_int_equal(json_at(j, "a")->column, 4);
        assert_int_equal(list->line, 4);
        assert_int_equal(list->column, 3);
        inner = json_at(json_index(list, 1), "\xC3\xA9");
        assert_int_equal(inner->line, 5);
        assert_int_equal(inner->column, 9);
}

static void test_many_documents(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json **docs;
        size_t n;

        assert_int_equal(yaml_parse_all(&a, STR("---\n---\na: &x 1\n...\n---\n# none\n---\n~\n---\n- b\n"),
                                        NULL, &docs, &n, NULL),
                         0);
        assert_int_equal(n, 3);
        assert_string_equal(json_print(&a, docs[0]), "{\"a\":1}");
        assert_string_equal(json_print(&a, docs[1]), "null");
        assert_string_equal(json_print(&a, docs[2]), "[\"b\"]");
        assert_int_equal(yaml_parse_all(&a, STR(""), NULL, &docs, &n, NULL), 0);
        assert_int_equal(n, 0);
        /* an anchor ends with its document */
        assert_int_equal(yaml_parse_all(&a, STR("a: &x 1\n---\nb: *x\n"), NULL, &docs, &n, NULL), -1);
}

static void test_json_that_is_not_yaml(void **state)
{
        static const struct example examples[] = {
                {"{\n\t\"a\":\t[1, 1.0]\n}\n", "{\"a\":[1,1.0]}"},
                {"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"\xF0\x9F\x98\x80\"}"},
                {"{\n\t\"a\": 1,,\n}", "2:9: did not find expected node content"},
                {"{\"a\": 1, \"a\": 2}", "1:10: key \"a\" is there twice"},
        };
        CHECK_EXAMPLES(examples);
}

/* "PART" N times over. */
static struct str repeated(struct buf *b, const char *part, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_adds(b, part);
        return buf_str(b);
}

static void assert_refused(struct str text, const struct json_limits *limits, enum err_code code,
                           const char *message)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        assert_null(yaml_parse(&a, text, limits, &err));
        assert_string_equal(err.text, message);
        assert_int_equal(err.code, code);
}

static void test_depth_is_bounded(void **state)
{
        static const struct example examples[] = {
                {"[", "1:101: nested deeper than 100"},
                {"- ", "1:201: nested deeper than 100"},
                {"{a: ", "1:401: nested deeper than 100"},
                {"[\n", "101:1: nested deeper than 100"},
        };

        for (size_t i = 0; i < ARRAY_LEN(examples); i++) {
                _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

                assert_refused(repeated(&b, examples[i].yaml, 20000), NULL, E_TOO_LARGE, examples[i].json);
        }
        for (int deep = 0; deep < 2; deep++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

                repeated(&b, "[", deep ? 101 : 100);
                repeated(&b, "]", deep ? 101 : 100);
                assert_int_equal(yaml_parse(&a, buf_str(&b), NULL, NULL) == NULL, deep);
        }
}

static void test_aliases_cannot_deepen(void **state)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        buf_adds(&b, "a: &a ");
        repeated(&b, "[", 60);
        repeated(&b, "]", 60);
        buf_adds(&b, "\nb: ");
        repeated(&b, "[", 60);
        buf_adds(&b, "*a");
        repeated(&b, "]", 60);
        assert_refused(buf_str(&b), NULL, E_TOO_LARGE, "2:64: nested deeper than 100");
}

static void test_a_billion_laughs_are_refused(void **state)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20), big = BUF_INIT(1 << 20);

        buf_adds(&b, "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for (int i = 1; i < 10; i++)
                buf_printf(&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1,
                           i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        assert_refused(buf_str(&b), NULL, E_TOO_LARGE, "5:38: the aliases expand to too much");

        buf_adds(&big, "a: &a \"");
        repeated(&big, "x", 1000000);
        buf_adds(&big, "\"\nb: [");
        repeated(&big, "*a,", 1000);
        buf_adds(&big, "]\n");
        assert_refused(buf_str(&big), NULL, E_TOO_LARGE, "2:29: the aliases expand to too much");
}

static void test_budgets(void **state)
{
        struct json_limits limits = {.bytes = 20, .depth = 2, .nodes = 5};
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        assert_refused(STR("a: 123456789012345678901"), &limits, E_TOO_LARGE,
                       "text of 24 bytes is larger than 20");
        assert_refused(STR("[1, 2, 3, 4, 5]"), &limits, E_TOO_LARGE, "1:14: more than 5 values");
        assert_refused(STR("[[[]]]"), &limits, E_TOO_LARGE, "1:3: nested deeper than 2");
        assert_refused(repeated(&b, "%TAG !a! b\n", 1000), NULL, E_TOO_LARGE,
                       "65:1: more than 64 %TAG directives");
}

static void test_large_mappings_are_not_quadratic(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf b = BUF_INIT(8 << 20);
        const unsigned n = unit_extent(50000, 200000, 200000);
        struct json *j;

        for (unsigned i = 0; i < n; i++)
                buf_printf(&b, "k%u: %u\n", i, i);
        j = yaml_parse(&a, buf_str(&b), NULL, NULL);
        assert_int_equal(json_len(j), n);
}

static void test_reading_a_file(void **state)
{
        char dir[UNIT_DIR_LEN], path[UNIT_DIR_LEN + 8];
        _cleanup_(doc_done) struct doc doc = DOC_INIT, other = DOC_INIT;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        unit_dir(dir);
        snprintf(path, sizeof(path), "%s/f.yaml", dir);
        assert_int_equal(file_replace(path, STR("a: 1\nb: {,"), 0600, NULL), 0);
        assert_int_equal(doc_read_yaml(&doc, path, 1000, &err), -1);
        assert_string_equal(err.text, arena_printf(&a, "%s: 2:5: did not find expected node content", path));
        assert_int_equal(file_replace(path, STR("a: 1\nb: {}\n"), 0600, NULL), 0);
        assert_int_equal(doc_read_yaml(&doc, path, 1000, &err), 0);
        assert_int_equal(json_int(doc.root, "a", 0), 1);
        assert_int_equal(doc_read_yaml(&other, path, 5, &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);
        unlink(path);
        assert_int_equal(doc_read_yaml(&other, path, 1000, &err), -1);
        assert_int_equal(err.code, E_NOT_FOUND);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_scalars_are_what_kubectl_makes_of_them),
        cmocka_unit_test(test_numbers_keep_all_their_digits),
        cmocka_unit_test(test_keys_become_strings),
        cmocka_unit_test(test_merge_keys),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_refusals_say_where),
        cmocka_unit_test(test_every_node_knows_its_line_and_column),
        cmocka_unit_test(test_many_documents),
        cmocka_unit_test(test_json_that_is_not_yaml),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_aliases_cannot_deepen),
        cmocka_unit_test(test_a_billion_laughs_are_refused),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_large_mappings_are_not_quadratic),
        cmocka_unit_test(test_reading_a_file),
};

UNIT_MAIN(tests)
