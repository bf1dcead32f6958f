#include "unit/unit.h"

#include "operator/runtime.h"

static struct json *object(struct arena *a, const char *entries)
{
        char *text = arena_printf(
                a, "{'metadata': {'uid': 'u', 'resourceVersion': '7', 'managedFields': %s}}", entries);

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return json_parse(a, str_of(text), NULL, NULL);
}

/* The patch for an object with ENTRIES, applied to it: what its managers are then, as "manager/operation,...". */
static const char *managers_after(struct arena *a, const char *entries)
{
        struct json *o = object(a, entries), *patch;
        _cleanup_(buf_done) struct buf out = BUF_INIT(4096);
        struct err err = ERR_INIT;

        assert_non_null(o);
        patch = ownership_patch(a, o, "sonde-x");
        if (!patch)
                return NULL;
        assert_int_equal(json_patch(a, &o, patch, &err), 0);
        json_foreach (entry, json_at(json_at(o, "metadata"), "managedFields"))
                buf_printf(&out, "%s%s/%s", out.n ? "," : "", json_str(entry, "manager"),
                           json_str(entry, "operation"));
        return arena_strdup(a, buf_cstr(&out));
}

static void what_we_created_becomes_ours_to_apply(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(managers_after(&a, "[{'manager': 'kubectl', 'operation': 'Update'},"
                                               " {'manager': 'sonde-x', 'operation': 'Update'}]"),
                            "kubectl/Update,sonde-x/Apply");
}

static void two_entries_become_one(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(managers_after(&a, "[{'manager': 'sonde-x', 'operation': 'Apply'},"
                                               " {'manager': 'sonde-x', 'operation': 'Update'},"
                                               " {'manager': 'kubectl', 'operation': 'Apply'}]"),
                            "sonde-x/Apply,kubectl/Apply");
}

static void nothing_to_take_over(void **state)
{
        static const char *const entries[] = {
                "[]",
                "null",
                "[{'manager': 'sonde-x', 'operation': 'Apply'}]",
                "[{'manager': 'sonde-xy', 'operation': 'Update'}]",
                "[{'manager': 'sonde', 'operation': 'Update'}]",
                "[{'manager': 'sonde-x', 'operation': 'Update', 'subresource': 'status'}]",
                "[3, {}, {'manager': 7}]",
        };
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(entries); i++)
                assert_null(managers_after(&a, entries[i]));
}

/* Only the object that was looked at, as it was looked at. */
static void the_patch_is_fenced(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *o = object(&a, "[{'manager': 'sonde-x', 'operation': 'Update'}]");
        struct json *patch = ownership_patch(&a, o, "sonde-x"), *other;

        other = json_copy(&a, o);
        json_set(&a, json_at(other, "metadata"), "uid", json_string(&a, "v"));
        assert_true(json_patch(&a, &other, patch, NULL) < 0);
        other = json_copy(&a, o);
        json_set(&a, json_at(other, "metadata"), "resourceVersion", json_string(&a, "8"));
        assert_true(json_patch(&a, &other, patch, NULL) < 0);
        assert_int_equal(json_patch(&a, &o, patch, NULL), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_we_created_becomes_ours_to_apply),
        cmocka_unit_test(two_entries_become_one),
        cmocka_unit_test(nothing_to_take_over),
        cmocka_unit_test(the_patch_is_fenced),
};
UNIT_MAIN(tests)
