#include "unit/unit.h"

#include "local/shape_private.h"
#include "local/strategy.h"

#define CORE "io.k8s.api.core.v1."
#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

static const struct shape_field *field(const struct shape *s, const char *name)
{
        const struct shape_field *f = shape_find(s, str_of(name));

        assert_non_null(f);
        return f;
}

static void test_built_in_types_have_fields(void **state)
{
        _cleanup_(shapes_free) struct shapes *s = shapes_builtin();
        const struct shape *job = shapes_find(s, "io.k8s.api.batch.v1.Job"), *spec;

        (void)state;
        assert_non_null(job);
        assert_int_equal(job->kind, SHAPE_OBJECT);
        assert_string_equal(job->gvk, "batch/v1/Job");
        spec = field(job, "spec")->shape;
        assert_string_equal(spec->name, "io.k8s.api.batch.v1.JobSpec");
        assert_int_equal(field(spec, "backoffLimit")->shape->kind, SHAPE_INTEGER);
        assert_string_equal(field(spec, "backoffLimit")->shape->format, "int32");
        assert_true(field(spec, "template")->required);
        assert_false(field(spec, "backoffLimit")->required);
        assert_true(field(spec, "selector")->shape->atomic);
        assert_null(shape_find(spec, STR("backoff")));
        assert_null(shape_find(spec, STR("backoffLimits")));
        assert_null(shapes_find(s, "io.k8s.api.batch.v1.Cron"));
}

static void test_members_of_anything_are_anything(void **state)
{
        _cleanup_(shapes_free) struct shapes *s = shapes_builtin();
        const struct shape *map = shapes_find(s, CORE "ConfigMap");

        (void)state;
        assert_ptr_equal(shape_member(map, STR("nothing")), &SHAPE_ANYTHING);
        assert_ptr_equal(shape_member(&SHAPE_ANYTHING, STR("x")), &SHAPE_ANYTHING);
        map = shape_member(map, STR("data"));
        assert_int_equal(map->kind, SHAPE_MAP);
        assert_int_equal(shape_member(map, STR("any key"))->kind, SHAPE_STRING);
}

static void test_lists_say_how_they_are_merged(void **state)
{
        _cleanup_(shapes_free) struct shapes *s = shapes_builtin();
        const struct shape *pod = shapes_find(s, CORE "PodSpec"), *box = shapes_find(s, CORE "Container");
        const struct shape_field *f = field(pod, "volumes");

        (void)state;
        assert_int_equal(f->strategy, PATCH_MERGE | PATCH_RETAIN_KEYS);
        assert_string_equal(f->merge_key, "name");
        assert_int_equal(f->shape->list, LIST_MAP); /* concluded, as server-side apply does */
        assert_string_equal(f->shape->keys[0], "name");
        assert_null(f->shape->keys[1]);
        assert_false(f->shape->list_told);

        f = field(box, "ports");
        assert_string_equal(f->merge_key, "containerPort");
        assert_int_equal(f->shape->list, LIST_MAP);
        assert_string_equal(f->shape->keys[0], "containerPort");
        assert_string_equal(f->shape->keys[1], "protocol");
        assert_null(f->shape->keys[2]);
        assert_true(f->shape->list_told);

        f = field(shapes_find(s, META "ObjectMeta"), "finalizers");
        assert_int_equal(f->strategy, PATCH_MERGE);
        assert_null(f->merge_key);
        assert_int_equal(f->shape->list, LIST_SET);

        f = field(box, "args");
        assert_int_equal(f->strategy, 0);
        assert_int_equal(f->shape->list, LIST_ATOMIC);
}

static void test_schemas_of_crds_are_recursive(void **state)
{
        _cleanup_(shapes_free) struct shapes *s = shapes_builtin();
        const struct shape *props = shapes_find(
                s, "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");

        (void)state;
        assert_int_equal(field(props, "$ref")->shape->kind, SHAPE_STRING);
        assert_ptr_equal(field(props, "not")->shape, props);
        assert_ptr_equal(field(props, "properties")->shape->elem, props);
        assert_int_equal(field(props, "default")->shape->kind, SHAPE_ANY);
}

static void test_every_definition_is_sorted_and_found(void **state)
{
        _cleanup_(shapes_free) struct shapes *s = shapes_builtin();

        (void)state;
        assert_true(shapes_count(s) > 200);
        for (size_t i = 0; i < shapes_count(s); i++) {
                const struct shape *shape = shapes_get(s, i);

                assert_ptr_equal(shapes_find(s, shape->name), shape);
                for (size_t j = 0; j < shape->n_fields; j++)
                        assert_ptr_equal(shape_find(shape, str_of(shape->fields[j].name)), &shape->fields[j]);
        }
}

static void test_mistakes_in_a_table_are_found(void **state)
{
        static const struct {
                const char *table, *error;
        } bad[] = {
                {":x.A string\n", "line 1: unknown prefix 'x.A'"},
                {"~x y.\n:x.A strange\n", "line 2: unknown type 'strange'"},
                {"~x y.\n:x.A\nf @z.B\n", "line 3: unknown prefix '@z.B'"},
                {"~x y.\n:x.A\nf @x.B\n", "2 types are used and 1 defined"},
                {"~x y.\n:x.A\nf []string list=odd\n", "line 3: unknown list 'odd'"},
                {"~x y.\n:x.A\nf string list=set\n", "line 3: no list 'set'"},
                {"~x y.\n:x.A\nf @x.A atomic\n", "line 3: option of a definition in the line of a field"},
                {"~x y.\n:x.A string odd=1\n", "line 2: unknown option 'odd=1'"},
                {"~x y.\nf string\n", "line 2: a field without a definition 'f string'"},
                {"~x y.\n:x.A \"\n", "line 2: unfinished description"},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct shapes *s = xcalloc(1, sizeof(*s));
                struct err err = ERR_INIT;

                assert_int_equal(shapes_read_table(s, str_of(bad[i].table), &err), -1);
                if (!strstr(err.text, bad[i].error))
                        fail_msg("'%s' is not in '%s'", bad[i].error, err.text);
                shapes_free(s);
        }
}

/* ---- custom resources */

#define CRONTAB                                                                                       \
        "{'type': 'object', 'description': 'Runs things.', 'required': ['spec'], 'properties': {"     \
        " 'metadata': {'type': 'object'},"                                                            \
        " 'spec': {'type': 'object', 'required': ['image'], 'properties': {"                          \
        "  'image': {'type': 'string', 'description': 'Which one.'},"                                 \
        "  'replicas': {'type': 'integer', 'format': 'int32', 'nullable': true},"                     \
        "  'port': {'x-kubernetes-int-or-string': true},"                                             \
        "  'free': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': true},"                 \
        "  'half': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': true,"                  \
        "           'properties': {'a': {'type': 'number'}}},"                                        \
        "  'labels': {'type': 'object', 'additionalProperties': {'type': 'string'}},"                 \
        "  'whole': {'type': 'object', 'x-kubernetes-map-type': 'atomic',"                            \
        "            'properties': {'a': {'type': 'boolean'}}},"                                      \
        "  'pod': {'type': 'object', 'x-kubernetes-embedded-resource': true},"                        \
        "  'ports': {'type': 'array', 'x-kubernetes-list-type': 'map',"                               \
        "            'x-kubernetes-list-map-keys': ['port', 'proto'],"                                \
        "            'items': {'type': 'object', 'properties': {'port': {'type': 'integer'}}}},"      \
        "  'names': {'type': 'array', 'x-kubernetes-list-type': 'set', 'items': {'type': 'string'}}," \
        "  'plain': {'type': 'array', 'items': {'type': 'string'}}}}}}"

static struct shapes *custom(const struct shapes *builtin, struct arena *a)
{
        return shapes_of_crd(builtin, json_build(a, CRONTAB));
}

static void test_a_custom_resource_has_common_fields(void **state)
{
        _cleanup_(shapes_free) struct shapes *builtin = shapes_builtin();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(shapes_free) struct shapes *s = custom(builtin, &a);
        const struct shape *root = shapes_root(s), *spec = field(root, "spec")->shape;

        (void)state;
        assert_string_equal(root->description, "Runs things.");
        assert_ptr_equal(field(root, "metadata")->shape, shapes_find(builtin, META "ObjectMeta"));
        assert_int_equal(field(root, "kind")->shape->kind, SHAPE_STRING);
        assert_true(field(root, "spec")->required);
        assert_true(field(spec, "image")->required);
        assert_string_equal(field(spec, "image")->description, "Which one.");
        assert_int_equal(field(spec, "replicas")->shape->kind, SHAPE_INTEGER);
        assert_true(field(spec, "replicas")->shape->nullable);
        assert_int_equal(field(spec, "port")->shape->kind, SHAPE_INT_OR_STRING);
        assert_int_equal(field(spec, "free")->shape->kind, SHAPE_ANY);
        assert_true(field(spec, "half")->shape->preserve);
        assert_int_equal(shape_member(field(spec, "half")->shape, STR("a"))->kind, SHAPE_NUMBER);
        assert_int_equal(field(spec, "labels")->shape->kind, SHAPE_MAP);
        assert_int_equal(field(spec, "labels")->shape->elem->kind, SHAPE_STRING);
        assert_true(field(spec, "whole")->shape->atomic);
        assert_true(field(field(spec, "pod")->shape, "kind")->required);
}

static void test_lists_of_a_custom_resource(void **state)
{
        _cleanup_(shapes_free) struct shapes *builtin = shapes_builtin();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(shapes_free) struct shapes *s = custom(builtin, &a);
        const struct shape *spec = field(shapes_root(s), "spec")->shape, *list;

        (void)state;
        list = field(spec, "ports")->shape;
        assert_int_equal(list->list, LIST_MAP);
        assert_string_equal(list->keys[0], "port");
        assert_string_equal(list->keys[1], "proto");
        assert_null(list->keys[2]);
        assert_int_equal(list->elem->kind, SHAPE_OBJECT);
        assert_int_equal(field(spec, "names")->shape->list, LIST_SET);
        assert_int_equal(field(spec, "plain")->shape->list, LIST_ATOMIC);
        assert_false(field(spec, "plain")->shape->list_told);
}

static void test_without_a_schema_anything_goes(void **state)
{
        _cleanup_(shapes_free) struct shapes *builtin = shapes_builtin();
        _cleanup_(shapes_free) struct shapes *s = shapes_of_crd(builtin, NULL);
        const struct shape *root = shapes_root(s);

        (void)state;
        assert_true(root->preserve);
        assert_int_equal(shape_member(root, STR("spec"))->kind, SHAPE_ANY);
        assert_int_equal(shape_member(root, STR("metadata"))->kind, SHAPE_OBJECT);
}

static void test_every_type_of_the_table_is_complete(void **state)
{
        _cleanup_(types_free) struct types *t = types_builtin();
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        (void)state;
        for (size_t i = 0; i < types_count(t); i++) {
                const struct api_type *type = types_get(t, i);

                assert_non_null(type->shape);
                assert_non_null(type->strategy);
                assert_non_null(type->store);
                assert_string_equal(type->shape->gvk, arena_printf(&a, "%s/%s/%s", type->kube.group,
                                                                   type->kube.version, type->kube.kind));
        }
        assert_string_equal(types_storage_hash("batch", "v1", "Job", &a), "mudhfqk/qZY=");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_built_in_types_have_fields),
        cmocka_unit_test(test_members_of_anything_are_anything),
        cmocka_unit_test(test_lists_say_how_they_are_merged),
        cmocka_unit_test(test_schemas_of_crds_are_recursive),
        cmocka_unit_test(test_every_definition_is_sorted_and_found),
        cmocka_unit_test(test_mistakes_in_a_table_are_found),
        cmocka_unit_test(test_a_custom_resource_has_common_fields),
        cmocka_unit_test(test_lists_of_a_custom_resource),
        cmocka_unit_test(test_without_a_schema_anything_goes),
        cmocka_unit_test(test_every_type_of_the_table_is_complete),
};

UNIT_MAIN(tests)
