#include "unit/unit.h"

#include "local/strategic.h"
#include "json/json.h"

/* ---- what a real API server did, recorded by test/local/strategic-oracle.py */

/* The server writes what is empty or null in its own ways. */
static bool drop_empty(struct json *value)
{
        struct json *next;

        for (struct json *child = json_first(value); child; child = next) {
                next = json_next(value, child);
                if (drop_empty(child))
                        json_take(value, child);
        }
        return value->type == JSON_NULL || (value->type >= JSON_ARRAY && value->len == 0);
}

static void replay_case(const struct shapes *shapes, const struct json *recorded)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *target = json_copy(&a, json_at(recorded, "before")), *after;
        struct err err = ERR_INIT;
        const char *message = json_str(recorded, "message"), *name = json_str(recorded, "name");
        struct json *got = strategic_merge(shapes_find(shapes, json_str(recorded, "type")), target,
                                           json_at(recorded, "patch"), &a, &err);

        if (json_bool(recorded, "later", false)) {
                assert_non_null(got); /* the result of the patch was refused, not the patch */
                return;
        }
        if (message) {
                if (got)
                        fail_msg("%s: no error, but the server said %s", name, message);
                /* The text of an error has its limit. */
                assert_memory_equal(err.text, message, MIN(strlen(message) + 1, (size_t)ERR_TEXT_MAX - 1));
                assert_int_equal(err.code == E_INVALID   ? 400
                                 : err.code == E_REFUSED ? 422
                                                         : 500,
                                 json_int(recorded, "code", 0));
                return;
        }
        if (!json_at(recorded, "after"))
                return; /* the server panicked */
        if (!got)
                fail_msg("%s: %s", name, err.text);
        after = json_copy(&a, json_at(recorded, "after"));
        drop_empty(after);
        drop_empty(got);
        if (!json_equal(got, after))
                fail_msg("%s: expected\n%s\nbut got\n%s", name, json_print(&a, after), json_print(&a, got));
}

static void test_patches_do_what_they_do_on_an_api_server(void **state)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4 << 20);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        _cleanup_(shapes_free) struct shapes *shapes = shapes_builtin();
        struct err err = ERR_INIT;

        if (file_read("test/data/strategic/cases.json", &text, &err) < 0 ||
            doc_parse(&doc, buf_str(&text), NULL, &err) < 0)
                fail_msg("%s", err.text);
        assert_true(json_len(json_at(doc.root, "cases")) > 0);
        json_foreach (recorded, json_at(doc.root, "cases"))
                replay_case(shapes, recorded);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patches_do_what_they_do_on_an_api_server),
};
UNIT_MAIN(tests)
