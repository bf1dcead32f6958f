#include "unit/unit.h"

#include "local/openapi_private.h"
#include "local/strategy.h"

/* ---- the built-in types and one custom resource in two versions */

enum { TYPES_MAX = 64 };

struct world {
        struct arena a;
        struct types *builtin;
        struct shapes *shapes[2];
        struct api_type custom[2];
        struct api_type *list[TYPES_MAX];
        struct served served;
};

#define CRONTAB                                                                                        \
        "{'type': 'object', 'description': 'Runs things.', 'properties': {"                            \
        " 'metadata': {'type': 'object'},"                                                             \
        " 'spec': {'type': 'object', 'required': ['image', 'maybe'], 'properties': {"                  \
        "  'image': {'type': 'string', 'description': 'Which one.', 'maxLength': 30, 'default': 'x'}," \
        "  'maybe': {'type': 'string', 'nullable': true},"                                             \
        "  'ratio': {'type': 'number', 'minimum': 0.5},"                                               \
        "  'mode': {'type': 'string', 'enum': ['a', 'b']},"                                            \
        "  'port': {'x-kubernetes-int-or-string': true, 'anyOf': [{'type': 'integer'}]},"              \
        "  'free': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': true,"                   \
        "           'properties': {'a': {'type': 'string'}}},"                                         \
        "  'labels': {'type': 'object', 'additionalProperties': {'type': 'string'}},"                  \
        "  'pod': {'type': 'object', 'x-kubernetes-embedded-resource': true},"                         \
        "  'ports': {'type': 'array', 'x-kubernetes-list-type': 'map',"                                \
        "            'x-kubernetes-list-map-keys': ['port'],"                                          \
        "            'items': {'type': 'object', 'properties': {'port': {'type': 'integer'}}}}}}}}"

static void add_custom(struct world *w, size_t i, const char *version, const struct json *schema)
{
        static const char *const shorts[] = {"ct", NULL}, *const subs[] = {"status", "scale", NULL};
        struct api_type *t = &w->custom[i];

        w->shapes[i] = shapes_of_crd(types_shapes(w->builtin), schema);
        *t = (struct api_type){
                .kube = {"stable.example.com", version, "crontabs", "CronTab", .namespaced = true},
                .store = "crontabs.stable.example.com",
                .singular = "crontab",
                .list_kind = "CronTabList",
                .short_names = shorts,
                .subresources = schema ? subs : NULL,
                .verbs = VERB_ALL,
                .storage_hash = types_storage_hash("stable.example.com", "v1", "CronTab", &w->a),
                .shape = shapes_root(w->shapes[i]),
                .crd = (struct crd *)(void *)w, /* never looked into here */
        };
        w->list[w->served.n++] = t;
}

static struct world *world_new(void)
{
        struct world *w = xcalloc(1, sizeof(*w));

        w->builtin = types_builtin();
        assert_true(types_count(w->builtin) + 2 <= TYPES_MAX);
        for (size_t i = 0; i < types_count(w->builtin); i++)
                w->list[w->served.n++] = types_get(w->builtin, i);
        add_custom(w, 0, "v1beta1", NULL);
        add_custom(w, 1, "v1", json_build(&w->a, CRONTAB));
        w->served.types = w->list;
        w->served.builtin = types_shapes(w->builtin);
        w->served.address = "127.0.0.1:6443";
        return w;
}

static void world_free(struct world *w)
{
        shapes_free(w->shapes[0]);
        shapes_free(w->shapes[1]);
        types_free(w->builtin);
        arena_done(&w->a);
        free(w);
}
DEFINE_CLEANUP_PTR(struct world *, world_free)

static void assert_json(struct arena *a, const struct json *value, const char *text)
{
        assert_non_null(value);
        assert_string_equal(json_print(a, value), text);
}

/* ---- discovery */

static void test_groups_are_listed_as_by_the_api_server(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *groups = json_at(discovery_groups(&w->served, &w->a), "groups");
        static const char *const names[] = {
                "events.k8s.io",
                "authorization.k8s.io",
                "batch",
                "rbac.authorization.k8s.io",
                "apiextensions.k8s.io",
                "coordination.k8s.io",
                "stable.example.com",
        };

        (void)state;
        assert_int_equal(json_len(groups), ARRAY_LEN(names));
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                assert_string_equal(json_str(json_index(groups, i), "name"), names[i]);
        assert_json(&w->a, discovery_api(&w->served, &w->a),
                    "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":"
                    "[{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"127.0.0.1:6443\"}]}");
}

static void test_the_stable_version_is_preferred(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();

        (void)state;
        assert_json(
                &w->a, discovery_group(&w->served, "stable.example.com", &w->a),
                "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"stable.example.com\",\"versions\":"
                "[{\"groupVersion\":\"stable.example.com/v1\",\"version\":\"v1\"},"
                "{\"groupVersion\":\"stable.example.com/v1beta1\",\"version\":\"v1beta1\"}],"
                "\"preferredVersion\":{\"groupVersion\":\"stable.example.com/v1\",\"version\":\"v1\"}}");
        assert_null(discovery_group(&w->served, "apps", &w->a));
        assert_null(discovery_group(&w->served, "", &w->a));
}

static void test_versions_are_ordered_as_kubernetes_orders_them(void **state)
{
        static const char *const order[] = {"v10",      "v2",      "v1",        "v11beta2",
                                            "v10beta3", "v3beta1", "v12alpha1", "v11alpha2",
                                            "foo1",     "foo10",   "v1alpha"};
        _cleanup_(world_free) struct world *w = world_new();
        struct api_type types[ARRAY_LEN(order)], *list[ARRAY_LEN(order)];
        struct served served = {list, ARRAY_LEN(order), NULL, ""};
        struct json *versions;

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(order); i++) {
                types[i] = w->custom[1];
                types[i].kube.version = order[(i * 7 + 3) % ARRAY_LEN(order)];
                list[i] = &types[i];
        }
        versions = json_at(discovery_group(&served, "stable.example.com", &w->a), "versions");
        assert_int_equal(json_len(versions), ARRAY_LEN(order));
        for (size_t i = 0; i < ARRAY_LEN(order); i++)
                assert_string_equal(json_str(json_index(versions, i), "version"), order[i]);
}

static void test_resources_of_a_group(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();

        (void)state;
        assert_json(
                &w->a, discovery_resources(&w->served, "batch", "v1", &w->a),
                "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"batch/v1\","
                "\"resources\":[{\"name\":\"jobs\",\"singularName\":\"\",\"namespaced\":true,\"kind\":"
                "\"Job\","
                "\"verbs\":[\"create\",\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"update\","
                "\"watch\"],\"categories\":[\"all\"],\"storageVersionHash\":\"mudhfqk/qZY=\"},"
                "{\"name\":\"jobs/status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Job\","
                "\"verbs\":[\"get\",\"patch\",\"update\"]}]}");
        assert_json(
                &w->a, discovery_resources(&w->served, "stable.example.com", "v1beta1", &w->a),
                "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\","
                "\"groupVersion\":\"stable.example.com/v1beta1\","
                "\"resources\":[{\"name\":\"crontabs\",\"singularName\":\"crontab\",\"namespaced\":true,"
                "\"kind\":\"CronTab\",\"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\","
                "\"create\",\"update\",\"watch\"],\"shortNames\":[\"ct\"],"
                "\"storageVersionHash\":\"EdX2FP+L0js=\"}]}");
        assert_null(discovery_resources(&w->served, "batch", "v2", &w->a));
}

static void test_subresources_tell_their_kind(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *core = discovery_resources(&w->served, "", "v1", &w->a),
                    *list = json_at(core, "resources");

        (void)state;
        assert_null(json_at(core, "apiVersion")); /* as the API server has it */
        assert_json(
                &w->a, json_find_named(list, "pods/binding"),
                "{\"name\":\"pods/binding\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Binding\","
                "\"verbs\":[\"create\"]}");
        assert_json(&w->a, json_find_named(list, "serviceaccounts/token"),
                    "{\"name\":\"serviceaccounts/token\",\"singularName\":\"\",\"namespaced\":true,"
                    "\"group\":\"authentication.k8s.io\",\"version\":\"v1\",\"kind\":\"TokenRequest\","
                    "\"verbs\":[\"create\"]}");
        assert_null(json_find_named(list, "endpoints"));
}

/* ---- the document */

static struct json *document(struct world *w)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(8 << 20);
        struct err err = ERR_INIT;
        struct json *j;

        openapi_json(&w->served, &text);
        assert_false(text.overflow);
        j = json_parse(&w->a, buf_str(&text), NULL, &err);
        assert_non_null(j);
        return j;
}

static void test_built_in_definitions(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *all = json_at(document(w), "definitions"), *box, *job;

        (void)state;
        box = json_at(json_at(all, "io.k8s.api.core.v1.Container"), "properties");
        assert_json(
                &w->a, json_at(box, "ports"),
                "{\"type\":\"array\",\"items\":{\"$ref\":\"#/definitions/io.k8s.api.core.v1.ContainerPort\"},"
                "\"x-kubernetes-list-map-keys\":[\"containerPort\",\"protocol\"],"
                "\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-patch-merge-key\":\"containerPort\","
                "\"x-kubernetes-patch-strategy\":\"merge\"}");
        assert_json(&w->a, json_at(box, "stdin"), "{\"type\":\"boolean\"}");
        assert_json(&w->a, json_at(all, "io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
                    "{\"type\":\"string\",\"format\":\"int-or-string\"}");
        job = json_at(all, "io.k8s.api.batch.v1.Job");
        assert_json(&w->a, json_at(job, "x-kubernetes-group-version-kind"),
                    "[{\"group\":\"batch\",\"kind\":\"Job\",\"version\":\"v1\"}]");
        assert_json(&w->a, json_at(json_at(all, "io.k8s.api.core.v1.PodCondition"), "required"),
                    "[\"type\",\"status\"]"); /* in the order of kubectl's messages */
        assert_int_equal(json_len(json_at(json_at(all, "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"),
                                          "x-kubernetes-group-version-kind")),
                         9); /* one for every version that is served */
}

/* Every reference leads somewhere. */
static void check_references(const struct json *value, const struct json *definitions)
{
        static const char prefix[] = "#/definitions/";
        const char *ref = json_is(value, JSON_OBJECT) ? json_str(value, "$ref") : NULL;

        if (ref) {
                assert_memory_equal(ref, prefix, strlen(prefix));
                if (!json_at(definitions, ref + strlen(prefix)))
                        fail_msg("%s is missing", ref);
        }
        json_foreach (child, value)
                check_references(child, definitions);
}

static void test_every_reference_leads_somewhere(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *all = document(w);

        (void)state;
        check_references(all, json_at(all, "definitions"));
}

static void test_a_custom_resource_is_brought_down_to_v2(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *all = json_at(document(w), "definitions");
        struct json *tab = json_at(all, "com.example.stable.v1.CronTab"), *spec;

        (void)state;
        assert_string_equal(json_str(tab, "description"), "Runs things.");
        assert_string_equal(json_str(json_at(json_at(tab, "properties"), "metadata"), "$ref"),
                            "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        spec = json_at(json_at(tab, "properties"), "spec");
        assert_json(&w->a, json_at(spec, "required"), "[\"image\"]"); /* not what may be null */
        spec = json_at(spec, "properties");
        assert_json(&w->a, json_at(spec, "image"),
                    "{\"description\":\"Which one.\",\"type\":\"string\",\"maxLength\":30}");
        assert_json(&w->a, json_at(spec, "maybe"), "{}");
        assert_json(&w->a, json_at(spec, "port"), "{\"x-kubernetes-int-or-string\":true}");
        assert_json(&w->a, json_at(spec, "free"), "{\"x-kubernetes-preserve-unknown-fields\":true}");
        assert_json(&w->a, json_at(spec, "labels"),
                    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}");
        assert_json(&w->a, json_at(json_at(spec, "pod"), "required"), "[\"kind\",\"apiVersion\"]");
        assert_json(
                &w->a, json_at(all, "com.example.stable.v1beta1.CronTab"),
                "{\"type\":\"object\",\"x-kubernetes-group-version-kind\":[{\"group\":\"stable.example.com\","
                "\"kind\":\"CronTab\",\"version\":\"v1beta1\"}]}");
        assert_non_null(json_at(all, "com.example.stable.v1.CronTabList"));
}

static bool has_dry_run(const struct json *operation)
{
        return json_find_named(json_at(operation, "parameters"), "dryRun") != NULL;
}

static void test_patches_tell_of_dry_run(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        struct json *paths = json_at(document(w), "paths"), *patch;

        (void)state;
        patch = json_at(json_at(paths, "/apis/batch/v1/namespaces/{namespace}/jobs/{name}"), "patch");
        assert_true(has_dry_run(patch));
        assert_string_equal(json_str(patch, "operationId"), "patchBatchV1NamespacedJob");
        assert_string_equal(json_str(patch, "x-kubernetes-action"), "patch");
        assert_json(&w->a, json_at(patch, "x-kubernetes-group-version-kind"),
                    "{\"group\":\"batch\",\"kind\":\"Job\",\"version\":\"v1\"}");
        patch = json_at(json_at(paths, "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}"),
                        "patch");
        assert_true(has_dry_run(patch));
        assert_non_null(json_at(paths, "/api/v1/namespaces/{name}/finalize"));
        assert_null(json_at(json_at(paths, "/api/v1/namespaces"), "delete")); /* no deletecollection */
        assert_null(json_at(paths, "/apis/authorization.k8s.io/v1/subjectaccessreviews/{name}"));
}

/* ---- protobuf */

static void assert_encoded(const char *json, const char *bytes, size_t n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        struct err err = ERR_INIT;
        struct json *j = json_parse(&a, str_of(json), NULL, &err);

        assert_non_null(j);
        openapi_encode(j, &out);
        assert_int_equal(out.n, n);
        assert_memory_equal(out.p, bytes, n);
}

#define BYTES(s) (s), sizeof(s) - 1

static void test_messages_have_the_bytes_of_gnostic(void **state)
{
        (void)state;
        assert_encoded("{\"swagger\": \"2.0\", \"info\": {\"title\": \"a\", \"version\": \"b\"}}",
                       BYTES("\x0a\x03"
                             "2.0"
                             "\x12\x06\x0a\x01"
                             "a"
                             "\x12\x01"
                             "b"));
        /* Document.definitions(9).additional_properties(1){name(1), value(2){type(22){value(1)}}} */
        assert_encoded("{\"definitions\": {\"D\": {\"type\": \"string\"}}}",
                       BYTES("\x4a\x12\x0a\x10\x0a\x01"
                             "D"
                             "\x12\x0b\xb2\x01\x08\x0a\x06string"));
        /* Schema.minimum(9) is a double, maxLength(11) a varint, false and 0 are left out. */
        assert_encoded("{\"definitions\": {\"D\": {\"minimum\": 1, \"maxLength\": 300, \"minLength\": 0,"
                       " \"uniqueItems\": false}}}",
                       BYTES("\x4a\x13\x0a\x11\x0a\x01"
                             "D"
                             "\x12\x0c\x49\0\0\0\0\0\0\xf0\x3f\x58\xac\x02"));
        /* Schema.vendor_extension(31){name(1), value(2){yaml(2)}} */
        assert_encoded("{\"definitions\": {\"D\": {\"x-a\": [1]}}}",
                       BYTES("\x4a\x17\x0a\x15\x0a\x01"
                             "D"
                             "\x12\x10\xfa\x01\x0d\x0a\x03x-a\x12\x06\x12\x04[1]\n"));
        /* A boolean in place of a schema is written even when it is false. */
        assert_encoded("{\"definitions\": {\"D\": {\"additionalProperties\": false}}}",
                       BYTES("\x4a\x0c\x0a\x0a\x0a\x01"
                             "D"
                             "\x12\x05\xaa\x01\x02\x10\x00"));
}

static void test_a_parameter_is_wrapped_by_its_place(void **state)
{
        (void)state;
        /* Document.paths(8).path(2){name, PathItem{patch(8){parameters(8){parameter(1){non_body(2){query(3)}}}}}} */
        assert_encoded(
                "{\"paths\": {\"/\": {\"patch\": {\"parameters\": [{\"in\": \"query\", \"name\": \"d\","
                " \"type\": \"string\"}]}}}}",
                BYTES("\x42\x23\x12\x21\x0a\x01/\x12\x1c\x42\x1a\x42\x18\x0a\x16\x12\x14\x1a\x12\x12\x05"
                      "query\x22\x01"
                      "d\x32\x06string"));
}

struct wire {
        const unsigned char *p, *end;
};

static uint64_t take_varint(struct wire *w)
{
        uint64_t value = 0;

        for (unsigned shift = 0;; shift += 7) {
                assert_true(w->p < w->end && shift < 64);
                value |= (uint64_t)(*w->p & 0x7f) << shift;
                if (!(*w->p++ & 0x80))
                        return value;
        }
}

/* The members of a message, counted by number; false at its end. */
static bool take_bytes(struct wire *w, unsigned *ret_number, struct wire *ret)
{
        uint64_t tag, n;

        if (w->p == w->end)
                return false;
        tag = take_varint(w);
        assert_int_equal(tag & 7, 2); /* all of those that are looked at here are messages and strings */
        n = take_varint(w);
        assert_true(n <= (uint64_t)(w->end - w->p));
        *ret_number = (unsigned)(tag >> 3);
        *ret = (struct wire){w->p, w->p + n};
        w->p += n;
        return true;
}

static void test_all_definitions_and_paths_are_in_the_protobuf(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();
        _cleanup_(buf_done) struct buf out = BUF_INIT(8 << 20);
        struct json *all = document(w);
        struct wire top, part, entry;
        size_t n_paths = 0, n_definitions = 0;
        unsigned number, inner;

        (void)state;
        openapi_protobuf(&w->served, &out);
        assert_false(out.overflow);
        top = (struct wire){(const unsigned char *)out.p, (const unsigned char *)out.p + out.n};
        while (take_bytes(&top, &number, &part))
                while ((number == 8 || number == 9) && take_bytes(&part, &inner, &entry))
                        *(number == 8 ? &n_paths : &n_definitions) += 1;
        assert_int_equal(n_paths, json_len(json_at(all, "paths")));
        assert_int_equal(n_definitions, json_len(json_at(all, "definitions")));
}

static void test_a_document_over_the_limit_is_not_half_written(void **state)
{
        _cleanup_(world_free) struct world *w = world_new();

        (void)state;
        for (size_t max = 0; max < 100000; max = max * 3 + 7) {
                _cleanup_(buf_done) struct buf out = BUF_INIT(max);

                openapi_protobuf(&w->served, &out);
                assert_true(out.overflow);
                assert_true(out.n <= max);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_are_listed_as_by_the_api_server),
        cmocka_unit_test(test_the_stable_version_is_preferred),
        cmocka_unit_test(test_versions_are_ordered_as_kubernetes_orders_them),
        cmocka_unit_test(test_resources_of_a_group),
        cmocka_unit_test(test_subresources_tell_their_kind),
        cmocka_unit_test(test_built_in_definitions),
        cmocka_unit_test(test_every_reference_leads_somewhere),
        cmocka_unit_test(test_a_custom_resource_is_brought_down_to_v2),
        cmocka_unit_test(test_patches_tell_of_dry_run),
        cmocka_unit_test(test_messages_have_the_bytes_of_gnostic),
        cmocka_unit_test(test_a_parameter_is_wrapped_by_its_place),
        cmocka_unit_test(test_all_definitions_and_paths_are_in_the_protobuf),
        cmocka_unit_test(test_a_document_over_the_limit_is_not_half_written),
};

UNIT_MAIN(tests)
