#include "unit/unit.h"

#include "local/fields_internal.h"
#include "json/json.h"

/* ---- what a real API server did, recorded by test/local/fields-oracle.py */

/* Recorded times are 2020-01-01T00:00:00Z plus one second a step. */
static const usec_t RECORDED = 1577836800 * USEC_PER_SEC;

struct recording {
        struct doc doc;
        struct shapes *builtin, *own;
        const char *path;
        struct managed m;
        struct schema *schema; /* custom resources */
};

static bool drop_null(struct json *value)
{
        struct json *next;

        for (struct json *child = json_first(value); child; child = next) {
                next = json_next(value, child);
                if (drop_null(child))
                        json_take(value, child);
        }
        return value->type == JSON_NULL;
}

static void assert_same_managed(const struct recording *r, const struct json *step, const struct json *got)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *expected = json_at(json_at(json_at(step, "object"), "metadata"), "managedFields"),
                          *mine = json_at(json_at(got, "metadata"), "managedFields");
        const char *x = expected ? json_print(&a, expected) : "none",
                   *y = mine ? json_print(&a, mine) : "none";

        if (!streq(x, y))
                fail_msg("%s, %s: expected\n%s\nbut managed fields are\n%s", r->path, json_str(step, "name"),
                         x, y);
}

static void assert_same_content(const struct recording *r, const struct json *step, const struct json *got)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *mine = json_copy(&a, got), *theirs = json_copy(&a, json_at(step, "object"));

        json_remove(json_at(mine, "metadata"), "managedFields");
        json_remove(json_at(theirs, "metadata"), "managedFields");
        for (size_t i = 0; i < 4; i++) {
                static const char *const DECIDED[] = {"uid", "creationTimestamp", "generation", "namespace"};

                json_remove(json_at(mine, "metadata"), DECIDED[i]);
                json_remove(json_at(theirs, "metadata"), DECIDED[i]);
        }
        if (r->schema)
                schema_default(r->schema, mine, &a);
        if (r->schema)
                schema_prune(r->schema, mine, NULL);
        drop_null(mine);
        drop_null(theirs);
        if (!json_equal(mine, theirs))
                fail_msg("%s, %s: expected\n%s\nbut the object is\n%s", r->path, json_str(step, "name"),
                         json_print(&a, theirs), json_print(&a, mine));
}

static void replay_apply(struct recording *r, const struct json *step)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct managed_conflicts conflicts;
        struct err err = ERR_INIT;
        const char *message = json_str(step, "message"), *mine;
        struct json *got = managed_apply(&r->m, json_at(step, "live"), json_at(step, "body"), &a, &conflicts,
                                         &err);

        mine = err.code == E_OWNED ? managed_message(&conflicts, &a) : err.text;
        if (!got && !message)
                fail_msg("%s, %s: %s", r->path, json_str(step, "name"), mine);
        if (got && message)
                fail_msg("%s, %s: no error, but the server said %s", r->path, json_str(step, "name"),
                         message);
        if (message) {
                assert_string_equal(mine, message);
                assert_int_equal(err.code == E_OWNED     ? 409
                                 : err.code == E_INVALID ? 400
                                                         : 500,
                                 json_int(step, "code", 0));
                return;
        }
        assert_same_managed(r, step, got);
        if (json_bool(step, "whole", false))
                assert_same_content(r, step, got);
}

static void replay_step(struct recording *r, const struct json *step, size_t i)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *object;

        r->m.manager = json_str(step, "manager");
        r->m.now = RECORDED + i * USEC_PER_SEC;
        r->m.force = json_bool(step, "force", false);
        r->m.sub = json_bool(step, "sub", false);
        if (streq(json_str(step, "do"), "apply")) {
                replay_apply(r, step);
                return;
        }
        object = json_copy(&a, json_at(step, "seen"));
        managed_update(&r->m, json_at(step, "live"), object, &a);
        assert_same_managed(r, step, object);
}

static void replay(const char *path)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20);
        struct recording r = {.path = path};
        struct err err = ERR_INIT;
        size_t i = 0;

        if (file_read(path, &text, &err) < 0 || doc_parse(&r.doc, buf_str(&text), NULL, &err) < 0)
                fail_msg("%s: %s", path, err.text);
        r.builtin = shapes_builtin();
        r.own = shapes_of_crd(r.builtin, json_at(r.doc.root, "schema"));
        r.m.shape = json_at(r.doc.root, "schema") ? shapes_root(r.own)
                                                  : shapes_find(r.builtin, json_str(r.doc.root, "type"));
        assert_non_null(r.m.shape);
        if (json_at(r.doc.root, "schema") && !(r.schema = schema_new(json_at(r.doc.root, "schema"), &err)))
                fail_msg("%s: %s", path, err.text);
        r.m.api_version = json_str(r.doc.root, "apiVersion");
        r.m.kind = json_str(r.doc.root, "kind");
        assert_true(json_len(json_at(r.doc.root, "steps")) > 0);
        json_foreach (step, json_at(r.doc.root, "steps")) {
                if (step->type == JSON_OBJECT) /* else: refused for other reasons */
                        replay_step(&r, step, i);
                i++;
        }
        schema_free(r.schema);
        shapes_free(r.own);
        shapes_free(r.builtin);
        doc_done(&r.doc);
}

static void test_managed_fields_are_those_of_an_api_server(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 16);
        struct err err = ERR_INIT;
        char path[96];
        struct str rest, name;

        if (file_read("test/data/fields/LIST", &text, &err) < 0)
                fail_msg("%s", err.text);
        rest = buf_str(&text);
        while (rest.n) {
                name = str_split(&rest, '\n');
                if (!name.n)
                        continue;
                snprintf(path, sizeof(path), "test/data/fields/%.*s.json", STR_ARG(name));
                replay(path);
        }
}

/* ---- sets */

static fields_set set_of(struct arena *a, const char *text)
{
        struct err err = ERR_INIT;
        char *copy = arena_strdup(a, text);
        struct json *v1;
        fields_set set = NULL;

        for (char *c = copy; *c; c++)
                *c = *c == '\'' ? '"' : *c;
        v1 = json_parse(a, str_of(copy), NULL, &err);
        if (!v1 || fields_read(a, v1, &set, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return set;
}

static void assert_set(struct arena *a, fields_set set, const char *expected)
{
        assert_string_equal(json_print(a, fields_write(a, set, false)),
                            json_print(a, fields_write(a, set_of(a, expected), false)));
}

static void test_sets_are_joined_and_parted_element_by_element(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        fields_set x = set_of(&a, "{'f:a':{'.':{},'f:b':{},'f:c':{}},'f:d':{}}"),
                   y = set_of(&a, "{'f:a':{'f:b':{},'f:e':{}},'f:f':{}}"), parent = set_of(&a, "{'f:a':{}}");

        assert_set(&a, fields_union(&a, x, y),
                   "{'f:a':{'.':{},'f:b':{},'f:c':{},'f:e':{}},'f:d':{},'f:f':{}}");
        assert_set(&a, fields_intersection(&a, x, y), "{'f:a':{'f:b':{}}}");
        assert_set(&a, fields_difference(&a, x, y, false), "{'f:a':{'.':{},'f:c':{}},'f:d':{}}");
        assert_set(&a, fields_difference(&a, x, parent, false), "{'f:a':{'f:b':{},'f:c':{}},'f:d':{}}");
        assert_set(&a, fields_difference(&a, x, parent, true), "{'f:d':{}}");
        assert_null(fields_difference(&a, x, x, false));
        assert_true(fields_equal(fields_union(&a, x, y), fields_union(&a, y, x)));
        assert_false(fields_equal(x, y));
}

static void test_elements_are_sorted_by_kind_and_value(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        fields_set set = set_of(
                &a, "{'v:10':{},'v:9':{},'k:{\\'p\\':443}':{},'k:{\\'p\\':80}':{},'f:z':{},'v:true':{},"
                    "'v:\\'x\\'':{},'x:unknown':{},'i:3':{}}");

        assert_string_equal(
                json_print(&a, fields_write(&a, set, false)),
                "{\"f:z\":{},\"k:{\\\"p\\\":80}\":{},\"k:{\\\"p\\\":443}\":{},\"v:9\":{},\"v:10\":{},"
                "\"v:\\\"x\\\"\":{},\"v:true\":{},\"i:3\":{}}");
        assert_string_equal(json_print(&a, fields_write(&a, set, true)),
                            "{\"f:z\":{},\"i:3\":{},\"k:{\\\"p\\\":443}\":{},\"k:{\\\"p\\\":80}\":{},"
                            "\"v:\\\"x\\\"\":{},\"v:10\":{},\"v:9\":{},\"v:true\":{}}");
}

static void test_malformed_fields_are_refused(void **state)
{
        static const char *const TEXTS[] = {"{'f':{}}",   "{'fx':{}}",  "{'k:':{}}", "{'k:5':{}}",
                                            "{'v:{':{}}", "{'i:x':{}}", "{'f:a':5}"};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
                char *copy = arena_strdup(&a, TEXTS[i]);
                fields_set set;

                for (char *c = copy; *c; c++)
                        *c = *c == '\'' ? '"' : *c;
                assert_int_equal(fields_read(&a, json_parse(&a, str_of(copy), NULL, NULL), &set, NULL), -1);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets_are_joined_and_parted_element_by_element),
        cmocka_unit_test(test_elements_are_sorted_by_kind_and_value),
        cmocka_unit_test(test_malformed_fields_are_refused),
        cmocka_unit_test(test_managed_fields_are_those_of_an_api_server),
};
UNIT_MAIN(tests)
