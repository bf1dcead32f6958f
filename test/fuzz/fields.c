/*
 * A live object, an applied configuration, a changed object and a strategic patch, one a line: fieldsV1 comes back as it
 * was read, an apply that was accepted is repeated without effect, and nothing depends on how strange the objects are.
 */
#include "fuzz/fuzz.h"
#include "local/fields_internal.h"
#include "local/strategic.h"
#include "json/json.h"

static const char SCHEMA[] =
        "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
        "\"n\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"},"
        "\"set\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"}},"
        "\"map\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
        "\"b\",\"a\"],"
        "\"items\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"},"
        "\"b\":{\"type\":\"integer\",\"default\":1},\"v\":{\"type\":\"string\"}}}},"
        "\"atomic\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
        "\"whole\":{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\",\"additionalProperties\":{"
        "\"type\":\"string\"}},"
        "\"strings\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
        "\"half\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"k\":{"
        "\"type\":"
        "\"string\"}}},\"any\":{\"x-kubernetes-preserve-unknown-fields\":true}}}}}";

static const struct json_limits LIMITS = {.bytes = 1 << 16, .depth = 32, .nodes = 4096};

static struct json *next_line(struct str *rest, struct arena *a)
{
        struct str line = str_split(rest, '\n');
        struct json *value = line.n ? json_parse(a, line, &LIMITS, NULL) : NULL;

        return json_is(value, JSON_OBJECT) ? value : NULL;
}

static void check_fields(const struct json *entries, struct arena *a)
{
        json_foreach (entry, entries) {
                fields_set set, again;

                if (fields_read(a, json_at(entry, "fieldsV1"), &set, NULL) < 0)
                        continue;
                REQUIRE(fields_read(a, fields_write(a, set, true), &again, NULL) == 0);
                REQUIRE(fields_equal(set, again));
                REQUIRE(fields_equal(fields_union(a, set, again), set));
                REQUIRE(fields_equal(fields_intersection(a, set, again), set));
                REQUIRE(!fields_difference(a, set, again, false));
        }
}

static void check_apply(const struct managed *m, const struct json *live, const struct json *config,
                        struct arena *a)
{
        struct managed_conflicts conflicts;
        struct err err = ERR_INIT;
        struct json *object = managed_apply(m, live, config, a, &conflicts, &err), *again;

        REQUIRE(object || err.code != E_OK);
        REQUIRE((err.code == E_OWNED) == (conflicts.n > 0));
        REQUIRE(managed_message(&conflicts, a));
        if (!object || typed_check(a, type_of_root(m->shape), object))
                return;
        again = managed_apply(m, object, config, a, &conflicts, &err);
        REQUIRE(again || err.code != E_OK);
}

static void check_writes(const struct managed *m, const struct json *live, const struct json *object,
                         struct arena *a)
{
        struct json *created = json_copy(a, object), *updated = json_copy(a, object);

        managed_update(m, NULL, created, a);
        managed_update(m, live, updated, a);
        managed_update(m, created, updated, a);
        check_fields(json_at(json_at(created, "metadata"), "managedFields"), a);
        check_fields(json_at(json_at(updated, "metadata"), "managedFields"), a);
}

static void check_all(const struct managed *m, struct str lines, struct arena *a)
{
        const struct json *live = next_line(&lines, a), *config = next_line(&lines, a),
                          *object = next_line(&lines, a), *patch = next_line(&lines, a);
        struct managed forced = *m;

        forced.force = true;
        check_fields(json_at(json_at(live, "metadata"), "managedFields"), a);
        if (config) {
                check_apply(m, live, config, a);
                check_apply(&forced, live, config, a);
        }
        if (object)
                check_writes(m, live, object, a);
        if (live && patch && m->shape->name)
                (void)!strategic_merge(m->shape, json_copy(a, live), patch, a, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct shapes *builtin, *own;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct str lines = str_n((const char *)data, size);
        struct managed m = {.api_version = "v1", .manager = "kubectl", .now = 1};

        if (!builtin) {
                builtin = shapes_builtin();
                own = shapes_of_crd(builtin, json_parse(&a, str_of(SCHEMA), NULL, NULL));
        }
        m.shape = shapes_root(own);
        m.kind = "T";
        check_all(&m, lines, &a);
        m.shape = shapes_find(builtin, "io.k8s.api.core.v1.Pod");
        m.kind = NULL;
        check_all(&m, lines, &a);
        return 0;
}
