/*
 * Shapes of custom resources, from openAPIV3Schema. The schema has been found structural before; whatever is strange
 * in it becomes "anything".
 */
#include "local/shape_private.h"

struct maker {
        const struct shapes *builtin;
        struct arena *a;
        bool *deduced; /* Kubernetes 1.20 drops all it knows for server-side apply where there is an int-or-string */
};

#define CONVENTIONS "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

/* What the API server says of these three in every custom resource, and in an object inside another. */
static const struct {
        const char *name, *description, *embedded;
} COMMON[] = {
        {"apiVersion",
         "APIVersion defines the versioned schema of this representation of an object. Servers should "
         "convert "
         "recognized schemas to the latest internal value, and may reject unrecognized values. More "
         "info: " CONVENTIONS "#resources",
         "apiVersion defines the versioned schema of this representation of an object. More "
         "info: " CONVENTIONS "#resources"},
        {"kind",
         "Kind is a string value representing the REST resource this object represents. Servers may infer "
         "this "
         "from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More "
         "info: " CONVENTIONS "#types-kinds",
         "kind is a string value representing the type of this object. In CamelCase. More info: " CONVENTIONS
         "#types-kinds"},
        {"metadata", "Standard object's metadata. More info: " CONVENTIONS "#metadata",
         "Standard object's metadata. More info: " CONVENTIONS "#metadata"},
};

const char *shape_common_description(const char *name, bool embedded)
{
        for (size_t i = 0; i < ARRAY_LEN(COMMON); i++)
                if (streq(COMMON[i].name, name))
                        return embedded ? COMMON[i].embedded : COMMON[i].description;
        return NULL;
}

static const struct shape STRING = {.kind = SHAPE_STRING};

static const struct shape *common_shape(const struct maker *m, size_t i)
{
        const struct shape *meta;

        if (!streq(COMMON[i].name, "metadata"))
                return &STRING;
        meta = shapes_find(m->builtin, "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        return meta ? meta : &SHAPE_ANYTHING;
}

static bool is_common(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(COMMON); i++)
                if (streq(COMMON[i].name, name))
                        return true;
        return false;
}

static bool contains(const struct json *list, const char *text)
{
        json_foreach (item, list)
                if (streq(json_cstr(item), text))
                        return true;
        return false;
}

static struct shape *make(const struct maker *m, const struct json *schema, bool is_root);

/* Fields from PROPERTIES; with COMMON ones in place of what it says of them where the object has them. */
static void add_fields(const struct maker *m, const struct json *schema, bool with_common, struct shape *s)
{
        const struct json *properties = json_at(schema, "properties"),
                          *required = json_at(schema, "required");
        struct shape_field *fields = arena_new_array(m->a, struct shape_field,
                                                     json_len(properties) + ARRAY_LEN(COMMON));
        size_t n = 0;

        for (size_t i = 0; with_common && i < ARRAY_LEN(COMMON); i++)
                fields[n++] = (struct shape_field){
                        .name = COMMON[i].name,
                        .shape = common_shape(m, i),
                        .description = s->embedded ? COMMON[i].embedded : COMMON[i].description,
                        .required = contains(required, COMMON[i].name) ||
                                    (s->embedded && !streq(COMMON[i].name, "metadata")),
                };
        json_foreach (property, properties) {
                if (strlen(property->key) != property->key_len || (with_common && is_common(property->key)))
                        continue;
                fields[n++] = (struct shape_field){
                        .name = property->key,
                        .shape = make(m, property, false),
                        .description = json_str(property, "description"),
                        .required = contains(required, property->key),
                };
        }
        shape_sort_fields(fields, n);
        s->fields = fields;
        s->n_fields = n;
}

static void make_object(const struct maker *m, const struct json *schema, bool is_root, struct shape *s)
{
        const struct json *values = json_at(schema, "additionalProperties");

        s->preserve = json_bool(schema, "x-kubernetes-preserve-unknown-fields", false);
        s->embedded = json_bool(schema, "x-kubernetes-embedded-resource", false);
        s->atomic = streq(json_str(schema, "x-kubernetes-map-type"), "atomic");
        if (is_root || s->embedded || json_len(json_at(schema, "properties"))) {
                s->kind = SHAPE_OBJECT;
                add_fields(m, schema, is_root || s->embedded, s);
        } else if (s->preserve) {
                s->kind = SHAPE_ANY;
        } else {
                s->kind = SHAPE_MAP;
                s->elem = json_is(values, JSON_OBJECT) ? make(m, values, false) : &SHAPE_ANYTHING;
        }
}

static void make_list(const struct maker *m, const struct json *schema, struct shape *s)
{
        const char *kind = json_str(schema, "x-kubernetes-list-type");
        const struct json *keys = json_at(schema, "x-kubernetes-list-map-keys");
        const char **list;
        size_t n = 0;

        s->kind = SHAPE_LIST;
        s->elem = make(m, json_at(schema, "items"), false);
        s->list_told = kind != NULL;
        if (streq(kind, "set")) {
                s->list = LIST_SET;
        } else if (streq(kind, "map") && json_len(keys)) {
                list = arena_new_array(m->a, const char *, json_len(keys) + 1);
                json_foreach (key, keys)
                        if (json_cstr(key))
                                list[n++] = json_cstr(key);
                s->list = LIST_MAP;
                s->keys = list;
        }
}

static const struct {
        const char *type;
        enum shape_kind kind;
} SCALARS[] = {
        {"string", SHAPE_STRING},
        {"integer", SHAPE_INTEGER},
        {"number", SHAPE_NUMBER},
        {"boolean", SHAPE_BOOLEAN},
};

static struct shape *make(const struct maker *m, const struct json *schema, bool is_root)
{
        const char *type = json_str(schema, "type");
        struct shape *s;

        s = arena_new(m->a, struct shape);
        s->kind = SHAPE_ANY;
        s->schema = schema;
        s->description = json_str(schema, "description");
        s->format = json_str(schema, "format");
        s->nullable = json_bool(schema, "nullable", false);
        if (is_root || streq(type, "object")) {
                make_object(m, schema, is_root, s);
        } else if (streq(type, "array")) {
                make_list(m, schema, s);
        } else if (json_bool(schema, "x-kubernetes-int-or-string", false)) {
                s->kind = SHAPE_INT_OR_STRING;
                *m->deduced = true;
        } else {
                for (size_t i = 0; i < ARRAY_LEN(SCALARS); i++)
                        if (streq(type, SCALARS[i].type))
                                s->kind = SCALARS[i].kind;
        }
        return s;
}

/* Without a schema: a kind that may have any fields beside the common ones. */
static struct shape *make_open(const struct maker *m)
{
        struct shape *s = arena_new(m->a, struct shape);

        s->kind = SHAPE_OBJECT;
        s->preserve = true;
        add_fields(m, NULL, true, s);
        return s;
}

struct shapes *shapes_of_crd(const struct shapes *builtin, const struct json *spec)
{
        struct shapes *s = xcalloc(1, sizeof(*s));
        bool deduced = false;
        struct maker m = {builtin, &s->arena, &deduced};
        struct shape *root = json_is(spec, JSON_OBJECT) ? make(&m, json_copy(&s->arena, spec), true)
                                                        : make_open(&m);

        root->deduced = deduced;
        s->root = root;
        return s;
}
