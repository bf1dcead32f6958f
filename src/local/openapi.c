/*
 * The OpenAPI v2 document, made from shapes.
 */
#include "local/openapi_private.h"

const char *openapi_name(const struct api_type *t, const char *kind, struct arena *a)
{
        struct str group = str_of(t->kube.group);
        const char *name = "";

        if (!t->crd && t->shape->name) {
                size_t n = strlen(t->shape->name), end = strlen(t->kube.kind);

                return arena_printf(a, "%.*s%s", (int)(n - MIN(n, end)), t->shape->name, kind);
        }
        while (group.n) {
                struct str part = str_split(&group, '.');

                name = arena_printf(a, "%.*s%s%s", STR_ARG(part), name[0] ? "." : "", name);
        }
        return arena_printf(a, "%s.%s.%s", name, t->kube.version, kind);
}

struct json *openapi_gvk(const char *group, const char *version, const char *kind, struct arena *a)
{
        return json_build(a, "{'group': %s, 'kind': %s, 'version': %s}", group, kind, version);
}

/* ---- definitions of built-in types */

static const struct {
        const char *type, *format;
} SCALARS[] = {
        [SHAPE_STRING] = {"string", NULL},
        [SHAPE_INTEGER] = {"integer", NULL},
        [SHAPE_NUMBER] = {"number", NULL},
        [SHAPE_BOOLEAN] = {"boolean", NULL},
        [SHAPE_INT_OR_STRING] = {"string", "int-or-string"},
        [SHAPE_OBJECT] = {"object", NULL},
        [SHAPE_MAP] = {"object", NULL},
        [SHAPE_LIST] = {"array", NULL},
};

static struct json *body(const struct shape *s, const char *description, struct arena *a);

/* How a schema refers to S: by name, or by telling what it is. */
static struct json *use(const struct shape *s, const char *description, struct arena *a)
{
        if (!s->name)
                return body(s, description, a);
        return json_build(a, "{'description': %p, '$ref': '#/definitions/%s'}",
                          (void *)json_string(a, description), s->name);
}

static void add_list_kind(const struct shape *s, struct json *out, struct arena *a)
{
        static const char *const names[] = {[LIST_ATOMIC] = "atomic", [LIST_SET] = "set", [LIST_MAP] = "map"};
        struct json *keys;

        if (s->kind != SHAPE_LIST || !s->list_told)
                return;
        if (s->list == LIST_MAP) {
                keys = json_set(a, out, "x-kubernetes-list-map-keys", json_array(a));
                for (const char *const *key = s->keys; *key; key++)
                        json_append(keys, json_string(a, *key));
        }
        json_set(a, out, "x-kubernetes-list-type", json_string(a, names[s->list]));
}

static struct json *field_schema(const struct shape_field *f, struct arena *a)
{
        static const char *const strategies[] = {
                [PATCH_MERGE] = "merge",
                [PATCH_RETAIN_KEYS] = "retainKeys",
                [PATCH_MERGE | PATCH_RETAIN_KEYS] = "merge,retainKeys",
        };
        struct json *out = use(f->shape, f->description, a);

        json_set(a, out, "x-kubernetes-patch-merge-key", json_string(a, f->merge_key));
        json_set(a, out, "x-kubernetes-patch-strategy", json_string(a, strategies[f->strategy]));
        return out;
}

static void add_fields(const struct shape *s, struct json *out, struct arena *a)
{
        struct json *properties, *required = json_array(a);

        if (!s->n_fields)
                return;
        for (const char *const *name = s->required; name && *name; name++)
                json_append(required, json_string(a, *name));
        if (json_len(required))
                json_set(a, out, "required", required);
        properties = json_set(a, out, "properties", json_object(a));
        for (size_t i = 0; i < s->n_fields; i++)
                json_set(a, properties, s->fields[i].name, field_schema(&s->fields[i], a));
}

/* What S is, whatever its name. */
static struct json *body(const struct shape *s, const char *description, struct arena *a)
{
        struct json *out = json_object(a);

        json_set(a, out, "description", json_string(a, description ? description : s->description));
        if (s->kind == SHAPE_ANY)
                return out;
        json_set(a, out, "type", json_string(a, SCALARS[s->kind].type));
        json_set(a, out, "format", json_string(a, s->format ? s->format : SCALARS[s->kind].format));
        if (s->kind == SHAPE_OBJECT)
                add_fields(s, out, a);
        else if (s->kind == SHAPE_LIST)
                json_set(a, out, "items", use(s->elem, NULL, a));
        else if (s->kind == SHAPE_MAP && (s->elem->kind != SHAPE_ANY || s->elem->name))
                json_set(a, out, "additionalProperties", use(s->elem, NULL, a));
        add_list_kind(s, out, a);
        if (s->atomic)
                json_set(a, out, "x-kubernetes-map-type", json_string(a, "atomic"));
        return out;
}

/* KIND in every version of every group that is served. */
static void add_everywhere(const struct served *s, const char *kind, struct json *out, struct arena *a)
{
        for (size_t i = 0; i < s->n; i++) {
                const struct kube_type *t = &s->types[i]->kube;
                bool again = false;

                for (size_t j = 0; j < i && !again; j++)
                        again = streq(s->types[j]->kube.group, t->group) &&
                                streq(s->types[j]->kube.version, t->version);
                if (!again)
                        json_append(out, openapi_gvk(t->group, t->version, kind, a));
        }
}

static struct json *definition(const struct served *s, const struct shape *shape, struct arena *a)
{
        struct json *out = body(shape, NULL, a), *kinds;
        struct str rest = str_of(shape->gvk), group = str_split(&rest, '/'), version = str_split(&rest, '/');

        if (!shape->gvk)
                return out;
        kinds = json_set(a, out, "x-kubernetes-group-version-kind", json_array(a));
        if (str_eq(group, STR("*")))
                add_everywhere(s, rest.p, kinds, a);
        else
                json_append(kinds, openapi_gvk(arena_strndup(a, group.p, group.n),
                                               arena_strndup(a, version.p, version.n), rest.p, a));
        return out;
}

static struct json *definitions(const struct served *s, struct arena *a)
{
        struct json *out = json_object(a);

        for (size_t i = 0; i < shapes_count(s->builtin); i++) {
                const struct shape *shape = shapes_get(s->builtin, i);

                json_set(a, out, shape->name, definition(s, shape, a));
        }
        for (size_t i = 0; i < s->n; i++) {
                const struct api_type *t = s->types[i];

                if (!t->crd)
                        continue;
                json_set(a, out, openapi_name(t, t->kube.kind, a), openapi_custom(t, a));
                json_set(a, out, openapi_name(t, t->list_kind, a), openapi_custom_list(t, a));
        }
        return out;
}

/* ---- the document */

static struct json *document(const struct served *s, struct arena *a)
{
        return json_build(a,
                          "{'swagger': '2.0', 'info': {'title': 'Kubernetes', 'version': 'v1.20.2'},"
                          " 'paths': %p, 'definitions': %p, 'securityDefinitions': {'BearerToken':"
                          " {'type': 'apiKey', 'name': 'authorization', 'in': 'header'}},"
                          " 'security': [{'BearerToken': []}]}",
                          (void *)openapi_paths(s, a), (void *)definitions(s, a));
}

void openapi_json(const struct served *s, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        json_write(document(s, &a), JSON_COMPACT, out);
}

void openapi_protobuf(const struct served *s, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        openapi_encode(document(s, &a), out);
}
