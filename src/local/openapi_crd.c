/*
 * Definitions of custom resources: what openAPIV3Schema says, without what OpenAPI v2 does not know.
 *
 * A client that reads v2 knows no null and no object that is open and has named fields too; such values lose their
 * type and their fields, so that the client leaves them to the server.
 */
#include "local/openapi_private.h"
#include "local/shape_private.h"

/* Kept as they are, in the order in which the API server writes them. */
static const char *const KEPT[] = {
        "title",      "maximum",       "exclusiveMaximum", "minimum",  "exclusiveMinimum",
        "maxLength",  "minLength",     "pattern",          "maxItems", "minItems",
        "multipleOf", "maxProperties", "minProperties",    "enum",
};
static const char *const EXTENSIONS[] = {
        "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",     "x-kubernetes-list-type",
        "x-kubernetes-map-type",          "x-kubernetes-preserve-unknown-fields",
};

static const char LIST_META[] =
        "Standard list metadata. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

static bool is_false(const struct json *value)
{
        return json_is(value, JSON_BOOL) && !value->truth;
}

static void copy(struct json *out, const struct json *in, const char *const *names, size_t n, struct arena *a)
{
        for (size_t i = 0; i < n; i++) {
                const struct json *value = json_at(in, names[i]);

                if (value && !json_is(value, JSON_NULL) && !is_false(value))
                        json_set(a, out, names[i], json_copy(a, value));
        }
}

static struct json *convert(const struct json *in, struct arena *a);

/* Nobody may be told that a field is required which may be null. */
static void add_required(struct json *out, const struct json *in, struct arena *a)
{
        const struct json *properties = json_at(in, "properties");
        struct json *required = json_array(a);

        json_foreach (name, json_at(in, "required"))
                if (!json_bool(json_get(properties, json_text(name)), "nullable", false))
                        json_append(required, json_copy(a, name));
        if (json_len(required))
                json_set(a, out, "required", required);
}

static void add_properties(struct json *out, const struct json *in, struct arena *a)
{
        struct json *properties;

        if (!json_len(json_at(in, "properties")))
                return;
        properties = json_set(a, out, "properties", json_object(a));
        json_foreach (property, json_at(in, "properties"))
                json_setn(a, properties, str_n(property->key, property->key_len), convert(property, a));
}

static void add_values(struct json *out, const struct json *in, struct arena *a)
{
        const struct json *values = json_at(in, "additionalProperties");
        struct json *schema;

        if (json_is(values, JSON_BOOL)) {
                json_set(a, out, "additionalProperties", json_truth(a, values->truth));
        } else if (json_is(values, JSON_OBJECT)) {
                schema = convert(values, a);
                /* What became of values that may be null is nothing, and the API server writes that so. */
                json_set(a, out, "additionalProperties", json_len(schema) ? schema : json_truth(a, false));
        }
}

static struct json *object_meta(struct arena *a, const char *description)
{
        return json_build(a,
                          "{'description': %p,"
                          " '$ref': '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'}",
                          (void *)json_string(a, description));
}

/* An object inside another has apiVersion and kind, and must have them. */
static void add_embedded(struct json *out, struct arena *a)
{
        static const char *const names[] = {"kind", "apiVersion"};
        struct json *properties = json_at(out, "properties"), *required = json_at(out, "required");

        if (!properties)
                properties = json_set(a, out, "properties", json_object(a));
        if (!required)
                required = json_set(a, out, "required", json_array(a));
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                bool is_there = false;

                json_foreach (name, required)
                        is_there = is_there || streq(json_cstr(name), names[i]);
                if (!is_there)
                        json_append(required, json_string(a, names[i]));
                json_set(a, properties, names[i],
                         json_build(a, "{'description': %s, 'type': 'string'}",
                                    shape_common_description(names[i], true)));
        }
        json_set(a, properties, "metadata", object_meta(a, shape_common_description("metadata", true)));
}

static struct json *convert(const struct json *in, struct arena *a)
{
        bool is_open = json_bool(in, "x-kubernetes-preserve-unknown-fields", false);
        bool is_plain = !is_open && !json_bool(in, "nullable", false);
        struct json *out = json_object(a);

        if (json_str(in, "description") && *json_str(in, "description"))
                json_set(a, out, "description", json_string(a, json_str(in, "description")));
        if (is_plain)
                json_set(a, out, "type", json_string(a, json_str(in, "type")));
        json_set(a, out, "format", json_string(a, json_str(in, "format")));
        copy(out, in, KEPT, ARRAY_LEN(KEPT), a);
        add_required(out, in, a);
        if (is_plain && json_is(json_at(in, "items"), JSON_OBJECT))
                json_set(a, out, "items", convert(json_at(in, "items"), a));
        if (is_plain)
                add_properties(out, in, a);
        add_values(out, in, a);
        if (json_bool(in, "x-kubernetes-embedded-resource", false) && !is_open)
                add_embedded(out, a);
        copy(out, in, EXTENSIONS, ARRAY_LEN(EXTENSIONS), a);
        return out;
}

static void add_gvk(struct json *out, const struct api_type *t, const char *kind, struct arena *a)
{
        struct json *kinds = json_array(a);

        json_append(kinds, openapi_gvk(t->kube.group, t->kube.version, kind, a));
        json_set(a, out, "x-kubernetes-group-version-kind", kinds);
}

static void add_common(struct json *out, struct arena *a)
{
        static const char *const names[] = {"apiVersion", "kind"};
        struct json *properties = json_at(out, "properties");

        if (!properties)
                properties = json_set(a, out, "properties", json_object(a));
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                json_set(a, properties, names[i],
                         json_build(a, "{'description': %s, 'type': 'string'}",
                                    shape_common_description(names[i], false)));
        json_set(a, properties, "metadata", object_meta(a, shape_common_description("metadata", false)));
}

struct json *openapi_custom(const struct api_type *t, struct arena *a)
{
        const struct json *schema = t->shape ? t->shape->schema : NULL;
        struct json *out;

        /* A client would take a definition with some fields for one that has no others. */
        if (!schema || t->preserve || t->shape->preserve) {
                out = json_build(a, "{'type': 'object'}");
        } else {
                out = convert(schema, a);
                add_common(out, a);
        }
        add_gvk(out, t, t->kube.kind, a);
        return out;
}

struct json *openapi_custom_list(const struct api_type *t, struct arena *a)
{
        struct json *out = json_build(
                a,
                "{'description': '%s is a list of %s', 'required': ['items'], 'properties': {'items':"
                " {'type': 'array', 'description': 'List of %s. More info: "
                "https://git.k8s.io/community/contributors/"
                "devel/sig-architecture/api-conventions.md', 'items': {'$ref': '#/definitions/%s'}}}}",
                t->list_kind, t->kube.kind, t->kube.plural, openapi_name(t, t->kube.kind, a));

        add_common(out, a);
        json_set(a, json_at(out, "properties"), "metadata",
                 json_build(a,
                            "{'description': %s,"
                            " '$ref': '#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta'}",
                            LIST_META));
        add_gvk(out, t, t->list_kind, a);
        return out;
}
