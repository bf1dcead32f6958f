#include "unit/unit.h"

#include "json/doc.h"
#include "json/schema.h"

/* Parses TEXT, in which ' stands for ". */
static struct json *parsed(struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        struct json *j;
        char *copy = arena_strdup(a, text);

        for (char *c = copy; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        j = json_parse(a, str_of(copy), NULL, &err);
        if (!j)
                fail_msg("%s: %s", text, err.text);
        return j;
}

static struct schema *compiled(struct arena *a, const char *spec)
{
        struct err err = ERR_INIT;
        struct schema *s = schema_new(parsed(a, spec), &err);

        if (!s)
                fail_msg("%s: %s", spec, err.text);
        return s;
}

/* ---- what a real API server answered, recorded by test/cluster/schema-wording.py */

/* "FIELD REASON MESSAGE" without the indexes of elements, which servers before 1.24 leave out of most paths. */
static const char *cause_line(struct arena *a, const char *field, const char *reason, const char *message)
{
        char *line = arena_printf(a, "%s %s %s", field, reason, message), *to = line;

        for (const char *from = line; *from; from++) {
                size_t digits = from[0] == '[' ? strspn(from + 1, "0123456789") : 0;

                if (digits && from[digits + 1] == ']')
                        from += digits + 1;
                else
                        *to++ = *from;
        }
        *to = '\0';
        return line;
}

static bool has_line(const char *const *lines, size_t n, const char *line)
{
        for (size_t i = 0; i < n; i++)
                if (streq(lines[i], line))
                        return true;
        return false;
}

static void assert_has(const char *const *lines, size_t n, const char *line, const char *what,
                       const char *value)
{
        if (!has_line(lines, n, line))
                fail_msg("%s %s: %s", what, value, line);
}

static void assert_same_causes(struct arena *a, const struct schema_report *report,
                               const struct json *expected, const char *value)
{
        const char **ours = arena_new_array(a, const char *, report->n);
        const char **theirs = arena_new_array(a, const char *, json_len(expected));
        size_t n = 0;

        for (size_t i = 0; i < report->n; i++)
                ours[i] = cause_line(a, report->causes[i].field, schema_cause_reason(report->causes[i].type),
                                     report->causes[i].message);
        json_foreach (cause, expected)
                theirs[n++] = cause_line(a, json_str(cause, "field"), json_str(cause, "reason"),
                                         json_str(cause, "message"));
        for (size_t i = 0; i < n; i++)
                assert_has(ours, report->n, theirs[i], "only the server says of", value);
        for (size_t i = 0; i < report->n; i++)
                assert_has(theirs, n, ours[i], "the server does not say of", value);
}

static void replay_case(const struct schema *s, const struct json *recorded)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *value = json_copy(&a, json_at(recorded, "value"));
        const char *text = json_print(&a, value);
        const struct json *stored = json_at(recorded, "stored");
        struct schema_report report = {0};
        bool valid;

        schema_default(s, value, &a);
        schema_prune(s, value, NULL);
        valid = schema_validate(s, value, &a, &report);
        assert_int_equal(valid, report.n == 0);
        assert_int_equal(valid, schema_validate(s, value, NULL, NULL));
        assert_same_causes(&a, &report, json_at(recorded, "causes"), text);
        if (valid && !json_equal(value, stored))
                fail_msg("%s became %s, not %s", text, json_print(&a, value), json_print(&a, stored));
}

static void replay(const char *path)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        _cleanup_(schema_free) struct schema *s = NULL;
        struct err err = ERR_INIT;

        if (file_read(path, &text, &err) < 0 || doc_parse(&doc, buf_str(&text), NULL, &err) < 0 ||
            !(s = schema_new(json_at(doc.root, "schema"), &err)))
                fail_msg("%s: %s", path, err.text);
        assert_true(json_len(json_at(doc.root, "cases")) > 0);
        json_foreach (recorded, json_at(doc.root, "cases"))
                replay_case(s, recorded);
}

static void test_answers_are_those_of_an_api_server(void **state)
{
        static const char *const names[] = {"containers", "formats", "junctors", "lists",   "numbers",
                                            "patterns",   "root",    "shape",    "strings", "types"};
        char path[64];

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                snprintf(path, sizeof(path), "test/data/schema/%s.json", names[i]);
                replay(path);
        }
}

/* ---- what no 1.20 server would say */

struct expectation {
        const char *value;
        const char *causes; /* "field: message", one a line */
};

static const char *causes_of(struct arena *a, const struct schema *s, const char *value)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct schema_report report = {0};

        schema_validate(s, parsed(a, value), a, &report);
        for (size_t i = 0; i < report.n; i++)
                buf_printf(&text, "%s%s: %s", i ? "\n" : "", report.causes[i].field,
                           report.causes[i].message);
        return arena_strdup(a, buf_cstr(&text));
}

static void check_causes(const char *spec, const struct expectation *expected, size_t n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = compiled(&a, spec);

        for (size_t i = 0; i < n; i++)
                assert_string_equal(causes_of(&a, s, expected[i].value), expected[i].causes);
}
#define CHECK_CAUSES(spec, expected) check_causes(spec, expected, ARRAY_LEN(expected))

static void test_paths_name_the_element(void **state)
{
        static const struct expectation expected[] = {
                {"{'a':[{'n':1},{},{'n':'x','s':['a','a']}]}",
                 "a[1].n: Required value\n"
                 "a[2].n: Invalid value: \"string\": a[2].n in body must be of type integer: "
                 "\"string\"\n"
                 "a[2].s[1]: Duplicate value: \"a\""},
                {"{'m':{'k.l':[1,2,'x']}}", "m.k.l[2]: Invalid value: \"string\": m.k.l[2] in body "
                                            "must be of type integer: \"string\""},
        };
        CHECK_CAUSES("{'type':'object','properties':{'a':{'type':'array','items':{'type':'object','required':"
                     "['n'],"
                     "'properties':{'n':{'type':'integer'},'s':{'type':'array','x-kubernetes-list-type':'set'"
                     ","
                     "'items':{'type':'string'}}}}},'m':{'type':'object','additionalProperties':{'type':'"
                     "array',"
                     "'items':{'type':'integer'}}}}}",
                     expected);
}

static void test_where_the_server_is_wrong(void **state)
{
        static const struct expectation expected[] = {
                {"{'s':''}", ""},
                {"{'i':1}", "i: Invalid value: 1: i in body should be greater than or equal to 1.5"},
                {"{'i':3}", "i: Invalid value: 3: i in body should be less than or equal to 2.5"},
                {"{'e':2.5}", "e: Unsupported value: 2.5: supported values: \"1.5\", \"2\""},
                {"{'m':1}", ""},
                {"{'d':['x']}", "d: Invalid value: \"array\": d in body must be of type string: \"array\""},
                {"{'n':5.000000001}",
                 "n: Invalid value: \"number\": n in body must be of type integer: \"number\""},
        };
        CHECK_CAUSES("{'type':'object','properties':{'s':{'type':'string'},'i':{'type':'integer','minimum':1."
                     "5,"
                     "'maximum':2.5},'e':{'type':'number','enum':[1.5,2]},'m':{'type':'number','multipleOf':"
                     "0.1},"
                     "'d':{'type':'string','format':'date'},'n':{'type':'integer'}}}",
                     expected);
}

static void test_unique_items(void **state)
{
        static const struct expectation expected[] = {
                {"{'u':[1,2,{'a':1,'b':2},[]]}", ""},
                {"{'u':[{'a':1,'b':2},3,{'b':2,'a':1},3]}",
                 "u: Invalid value: \"\": u in body shouldn't contain duplicates"},
        };
        CHECK_CAUSES("{'type':'object','properties':{'u':{'type':'array','uniqueItems':true,"
                     "'items':{'x-kubernetes-preserve-unknown-fields':true}}}}",
                     expected);
}

static void test_embedded_resources_must_be_resources(void **state)
{
        static const struct expectation expected[] = {
                {"{'r':{'apiVersion':5,'kind':true,'metadata':'x'}}",
                 "r.apiVersion: Invalid value: 5: must be a string\n"
                 "r.kind: Invalid value: true: must be a string\n"
                 "r.metadata: Invalid value: \"x\": must be an object"},
        };
        CHECK_CAUSES("{'type':'object','properties':{'r':{'type':'object','x-kubernetes-embedded-resource':"
                     "true,"
                     "'x-kubernetes-preserve-unknown-fields':true}}}",
                     expected);
}

static void test_causes_point_at_the_node(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = compiled(
                &a, "{'type':'object','required':['b'],'properties':{'a':{'type':'integer'},"
                    "'b':{'type':'integer'}}}");
        struct json *value = parsed(&a, "{'a':'x'}");
        struct schema_report report;

        assert_false(schema_validate(s, value, &a, &report));
        assert_int_equal(report.n, 2);
        assert_ptr_equal(report.causes[0].at, json_at(value, "a"));
        assert_ptr_equal(report.causes[1].at, value);
        assert_int_equal(report.causes[1].type, CAUSE_REQUIRED);
}

static void test_at_most_64_causes(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = compiled(
                &a, "{'type':'object','properties':{'a':{'type':'array','items':"
                    "{'type':'integer','anyOf':[{'minimum':5},{'maximum':2}]}}}}");
        struct json *value = json_object(&a), *list = json_set(&a, value, "a", json_array(&a));
        struct schema_report report;

        for (int i = 0; i < 1000; i++)
                json_append(list, json_string(&a, "x"));
        assert_false(schema_validate(s, value, &a, &report));
        assert_int_equal(report.n, 64);
        assert_string_equal(report.causes[63].field, "a[63]");
}

static void test_large_sets_are_not_quadratic(void **state)
{
        const unsigned n = unit_extent(80000, 200000, 200000);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = compiled(
                &a, "{'type':'object','properties':{'a':{'type':'array','x-kubernetes-list-type':"
                    "'set','uniqueItems':true,'items':{'type':'integer'}}}}");
        struct json *value = json_object(&a), *list = json_set(&a, value, "a", json_array(&a));

        for (unsigned i = 0; i < n; i++)
                json_append(list, json_i64(&a, i));
        assert_true(schema_validate(s, value, &a, NULL));
        json_append(list, json_i64(&a, 77777));
        assert_false(schema_validate(s, value, &a, NULL));
}

/* ---- shape */

static void test_pruning_names_what_went(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(1000);
        _cleanup_(schema_free) struct schema *s = compiled(&a,
                                                           "{'type':'object','properties':{'l':{'type':'"
                                                           "array','items':{'type':'object','properties':"
                                                           "{'a':{'type':'integer'}}}},'p':{'type':'object','"
                                                           "x-kubernetes-preserve-unknown-fields':true,"
                                                           "'properties':{'q':{'type':'object'}}}}}");
        struct json *value = parsed(&a, "{'apiVersion':'v1','kind':'K','metadata':{'x':1},'x.y':1,"
                                        "'l':[{'a':1},{'a':2,'b':3}],'p':{'r':{'s':1},'q':{'t':1}}}");

        schema_prune(s, value, &dropped);
        assert_string_equal(buf_cstr(&dropped), "[\"x.y\"]\nl[1].b\np.q.t\n");
        assert_string_equal(json_print(&a, value),
                            "{\"apiVersion\":\"v1\",\"kind\":\"K\",\"metadata\":{\"x\":1},"
                            "\"l\":[{\"a\":1},{\"a\":2}],\"p\":{\"r\":{\"s\":1},\"q\":{}}}");
}

static void test_defaults_are_copies(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(schema_free) struct schema *s = compiled(
                &a, "{'type':'object','properties':{'d':{'type':'object','default':{'e':1},"
                    "'properties':{'e':{'type':'integer'}}}}}");
        struct json *one = json_object(&a), *two = json_object(&a);

        schema_default(s, one, &a);
        json_set(&a, json_at(one, "d"), "e", json_i64(&a, 7));
        schema_default(s, two, &a);
        assert_int_equal(json_int(json_at(two, "d"), "e", 0), 1);
}

/* ---- what is refused */

static const struct {
        const char *spec, *error;
} refused[] = {
        {"[]", "openAPIV3Schema: must be an object"},
        {"{}", "openAPIV3Schema.type: Required value: must not be empty at the root"},
        {"{'type':'string'}", "openAPIV3Schema.type: must be object at the root"},
        {"{'type':'object','additionalProperties':true}",
         "openAPIV3Schema.additionalProperties: Forbidden: must not be used at the root"},
        {"{'type':'object','properties':{'a':{}}}",
         "openAPIV3Schema.properties[a].type: Required value: must not be empty for "
         "specified object fields"},
        {"{'type':'object','properties':{'a':{'type':'array'}}}",
         "openAPIV3Schema.properties[a].items: Required value: must be specified"},
        {"{'type':'object','properties':{'a':{'type':'array','items':{}}}}",
         "openAPIV3Schema.properties[a].items.type: Required value: must not be empty for "
         "specified array "
         "items"},
        {"{'type':'object','properties':{'a':{'type':'text'}}}",
         "openAPIV3Schema.properties[a].type: must be array, boolean, integer, number, "
         "object or string"},
        {"{'type':'object','properties':{'a':{'type':'integer','allOf':[{'type':'integer'}]}}"
         "}",
         "openAPIV3Schema.properties[a].allOf[0].type: Forbidden: must be empty to be "
         "structural"},
        {"{'type':'object','properties':{'a':{'type':'integer','not':{'nullable':true}}}}",
         "openAPIV3Schema.properties[a].not.nullable: Forbidden: must be false to be "
         "structural"},
        {"{'type':'object','anyOf':[{'properties':{'b':{'minimum':1}}}]}",
         "openAPIV3Schema.properties[b]: Required value: because it is defined in allOf, "
         "anyOf, oneOf or not"},
        {"{'type':'object','properties':{'a':{'type':'string','pattern':'('}}}",
         "openAPIV3Schema.properties[a].pattern: missing closing ) at character 2 of pattern "
         "`(`"},
        {"{'type':'object','properties':{'a':{'type':'string','pattern':'((a{1000}){1000})'}}"
         "}",
         "openAPIV3Schema.properties[a].pattern: invalid repeat count at character 17 of "
         "pattern "
         "`((a{1000}){1000})`"},
        {"{'type':'object','properties':{'a':{'type':'string','format':'isbn'}}}",
         "openAPIV3Schema.properties[a].format: this format is not supported"},
        {"{'type':'object','properties':{'a':{'$ref':'#/x'}}}",
         "openAPIV3Schema.properties[a].$ref: Forbidden: not supported"},
        {"{'type':'object','properties':{'a':{'type':'integer','default':'x'}}}",
         "openAPIV3Schema.properties[a].default: Invalid value: \"string\":  in body must be "
         "of type integer: "
         "\"string\""},
        {"{'type':'object','properties':{'a':{'type':'object','default':{'b':1}}}}",
         "openAPIV3Schema.properties[a].default: must not have unknown fields"},
        {"{'type':'object','properties':{'a':{'type':'object','properties':{'b':{'type':'"
         "string'}},"
         "'additionalProperties':{'type':'string'}}}}",
         "openAPIV3Schema.properties[a].additionalProperties: Forbidden: "
         "additionalProperties and properties "
         "are mutual exclusive"},
        {"{'type':'object','properties':{'a':{'type':'array','x-kubernetes-list-type':'map',"
         "'x-kubernetes-list-map-keys':['n'],'items':{'type':'object','properties':{'n':{'"
         "type':'string'}}}}}}",
         "openAPIV3Schema.properties[a].x-kubernetes-list-map-keys: each of these properties "
         "must have a "
         "default or be required"},
        {"{'type':'object','properties':{'metadata':{'type':'object','properties':{'labels':{"
         "'type':'object'}}"
         "}}}",
         "openAPIV3Schema.properties.metadata: Forbidden: must not specify anything other "
         "than name and "
         "generateName, but metadata is implicitly specified"},
        {"{'type':'object','properties':{'a':{'type':'integer','multipleOf':0}}}",
         "openAPIV3Schema.properties[a].multipleOf: must be greater than 0"},
        {"{'type':'object','properties':{'a':{'type':'string','maxLength':-1}}}",
         "openAPIV3Schema.properties[a].maxLength: must be a whole number of at least 0"},
};

static void test_what_is_not_structural_is_refused(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;

                assert_null(schema_new(parsed(&a, refused[i].spec), &err));
                assert_string_equal(err.text, refused[i].error);
                assert_int_equal(err.code, E_INVALID);
        }
}

static void test_depth_of_a_schema_is_bounded(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct json *spec = json_build(&a, "{'type': 'string'}");

        for (int i = 0; i < 200; i++)
                spec = json_build(&a, "{'type': 'array', 'items': %p}", spec);
        assert_null(schema_new(json_build(&a, "{'type': 'object', 'properties': {'a': %p}}", spec), &err));
        assert_int_equal(err.code, E_TOO_LARGE);
        assert_null(schema_new(NULL, &err));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_are_those_of_an_api_server),
        cmocka_unit_test(test_paths_name_the_element),
        cmocka_unit_test(test_where_the_server_is_wrong),
        cmocka_unit_test(test_unique_items),
        cmocka_unit_test(test_embedded_resources_must_be_resources),
        cmocka_unit_test(test_causes_point_at_the_node),
        cmocka_unit_test(test_at_most_64_causes),
        cmocka_unit_test(test_large_sets_are_not_quadratic),
        cmocka_unit_test(test_pruning_names_what_went),
        cmocka_unit_test(test_defaults_are_copies),
        cmocka_unit_test(test_what_is_not_structural_is_refused),
        cmocka_unit_test(test_depth_of_a_schema_is_bounded),
};

UNIT_MAIN(tests)
