/*
 * From the document of a schema to struct schema_node, refusing what is not structural: the rules and their wording
 * are those of apiextensions.k8s.io/v1.
 */
#include "json/schema_internal.h"

#include <errno.h>

enum { SCHEMA_DEPTH_MAX = 128 };

enum level { LEVEL_ROOT, LEVEL_ITEM, LEVEL_FIELD };

struct compiler {
        struct arena *arena;
        struct err *err;
        unsigned depth;
};

/* What a schema is to the one around it. */
struct context {
        enum level level;
        bool nested;    /* under allOf, anyOf, oneOf or not: may only restrict */
        bool type_pair; /* one of the two of anyOf: [{type: integer}, {type: string}] */
};

typedef int keyword_fn(struct compiler *c, struct schema_node *n, const struct json *value,
                       const struct spot *at, struct context in);

static struct schema_node *compile(struct compiler *c, const struct json *spec, const struct spot *at,
                                   struct context in);

static int refuse(struct compiler *c, const struct spot *at, const char *what)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(8192);

        spot_write(at, SPOT_FIELD, &path);
        return err_set(c->err, E_INVALID, "openAPIV3Schema%s%.*s: %s", path.n ? "." : "", (int)path.n,
                       path.n ? path.p : "", what);
}

static int refuse_child(struct compiler *c, const struct spot *at, const char *child, const char *what)
{
        struct spot spot = {.up = at, .kind = SPOT_CHILD, .name = str_of(child)};

        return refuse(c, &spot, what);
}

/* ---- small keywords */

static const struct {
        const char *name;
        unsigned bit;
} type_names[] = {
        {"integer", TYPE_INTEGER}, {"string", TYPE_STRING}, {"number", TYPE_NUMBER},
        {"boolean", TYPE_BOOLEAN}, {"array", TYPE_ARRAY},   {"object", TYPE_OBJECT},
};

const char *schema_type_names(unsigned types)
{
        if (types == (TYPE_INTEGER | TYPE_STRING))
                return "integer,string";
        for (size_t i = 0; i < ARRAY_LEN(type_names); i++)
                if (types == type_names[i].bit)
                        return type_names[i].name;
        return "";
}

static int keyword_type(struct compiler *c, struct schema_node *n, const struct json *value,
                        const struct spot *at, struct context in)
{
        for (size_t i = 0; i < ARRAY_LEN(type_names); i++)
                if (streq(json_cstr(value), type_names[i].name)) {
                        n->types = type_names[i].bit;
                        return 0;
                }
        return refuse(c, at, "must be array, boolean, integer, number, object or string");
}

static int keyword_format(struct compiler *c, struct schema_node *n, const struct json *value,
                          const struct spot *at, struct context in)
{
        n->format_name = json_cstr(value);
        if (!n->format_name)
                return refuse(c, at, "must be a string");
        if (schema_format_unsupported(n->format_name))
                return refuse(c, at, "this format is not supported");
        n->format = schema_format_find(n->format_name);
        return 0;
}

static int keyword_enum(struct compiler *c, struct schema_node *n, const struct json *value,
                        const struct spot *at, struct context in)
{
        if (!json_is(value, JSON_ARRAY))
                return refuse(c, at, "must be an array");
        n->values = json_len(value) ? value : NULL;
        return 0;
}

static int keyword_default(struct compiler *c, struct schema_node *n, const struct json *value,
                           const struct spot *at, struct context in)
{
        n->fallback = json_is(value, JSON_NULL) ? NULL : value;
        return 0;
}

static int keyword_pattern(struct compiler *c, struct schema_node *n, const struct json *value,
                           const struct spot *at, struct context in)
{
        struct err err = ERR_INIT;

        n->pattern_text = json_cstr(value);
        if (!n->pattern_text)
                return refuse(c, at, "must be a string");
        if (!n->pattern_text[0])
                return 0;
        n->pattern = pattern_new(c->arena, json_text(value), &err);
        return n->pattern ? 0 : refuse(c, at, err.text);
}

static int compile_names(struct compiler *c, const struct json *value, struct schema_names *ret,
                         const struct spot *at)
{
        if (!json_is(value, JSON_ARRAY))
                return refuse(c, at, "must be an array of strings");
        ret->v = arena_new_array(c->arena, const char *, json_len(value));
        json_foreach (name, value) {
                if (!json_cstr(name))
                        return refuse(c, at, "must be an array of strings");
                ret->v[ret->n++] = json_cstr(name);
        }
        return 0;
}

static int keyword_required(struct compiler *c, struct schema_node *n, const struct json *value,
                            const struct spot *at, struct context in)
{
        return compile_names(c, value, &n->required, at);
}

static int keyword_list_map_keys(struct compiler *c, struct schema_node *n, const struct json *value,
                                 const struct spot *at, struct context in)
{
        return compile_names(c, value, &n->list_keys, at);
}

static int keyword_list_type(struct compiler *c, struct schema_node *n, const struct json *value,
                             const struct spot *at, struct context in)
{
        static const char *const names[] = {[LIST_ATOMIC] = "atomic", [LIST_SET] = "set", [LIST_MAP] = "map"};

        if (n->types != TYPE_ARRAY)
                return refuse(c, at, "type must be array if x-kubernetes-list-type is specified");
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (streq(json_cstr(value), names[i])) {
                        n->list_type = (enum list_type)i;
                        return 0;
                }
        return refuse(c, at, "must be atomic, map or set");
}

/* ---- keywords with schemas inside */

static int by_name(const void *a, const void *b)
{
        const struct schema_property *x = a, *y = b;

        return str_cmp(x->name, y->name);
}

static int keyword_properties(struct compiler *c, struct schema_node *n, const struct json *value,
                              const struct spot *at, struct context in)
{
        if (!json_is(value, JSON_OBJECT))
                return refuse(c, at, "must be an object");
        n->properties = arena_new_array(c->arena, struct schema_property, json_len(value));
        json_foreach (member, value) {
                struct schema_property *p = &n->properties[n->n_properties];
                struct spot spot = {.up = at, .kind = SPOT_KEY, .name = str_n(member->key, member->key_len)};

                if (in.nested && str_eq(spot.name, STR("metadata")))
                        return refuse(c, &spot, "Forbidden: must not be specified in a nested context");
                p->name = spot.name;
                p->node = compile(c, member, &spot, (struct context){LEVEL_FIELD, .nested = in.nested});
                if (!p->node)
                        return -1;
                n->n_properties++;
        }
        if (n->n_properties)
                qsort(n->properties, n->n_properties, sizeof(*n->properties), by_name);
        return 0;
}

static int keyword_additional(struct compiler *c, struct schema_node *n, const struct json *value,
                              const struct spot *at, struct context in)
{
        if (in.level == LEVEL_ROOT)
                return refuse(c, at, "Forbidden: must not be used at the root");
        if (json_is(value, JSON_BOOL) && !value->truth)
                return refuse(c, at, "Forbidden: must not be false");
        if (json_is(value, JSON_BOOL)) {
                n->additional_any = true;
                return 0;
        }
        n->additional = compile(c, value, at, (struct context){LEVEL_FIELD});
        return n->additional ? 0 : -1;
}

static int keyword_items(struct compiler *c, struct schema_node *n, const struct json *value,
                         const struct spot *at, struct context in)
{
        n->items = compile(c, value, at, (struct context){LEVEL_ITEM, .nested = in.nested});
        return n->items ? 0 : -1;
}

static int keyword_not(struct compiler *c, struct schema_node *n, const struct json *value,
                       const struct spot *at, struct context in)
{
        n->not = compile(c, value, at, (struct context){in.level, .nested = true});
        return n->not ? 0 : -1;
}

static bool only_type(const struct json *spec, const char *type)
{
        return json_len(spec) == 1 && streq(json_str(spec, "type"), type);
}

/* The way to say int-or-string in plain OpenAPI: the one place under anyOf where types may stand. */
static bool is_type_pair(const struct json *any_of)
{
        return json_len(any_of) == 2 && only_type(json_index(any_of, 0), "integer") &&
               only_type(json_index(any_of, 1), "string");
}

static int compile_list(struct compiler *c, const struct json *value, struct schema_nodes *ret,
                        const struct spot *at, struct context in)
{
        struct spot spot = {.up = at, .kind = SPOT_INDEX};

        if (!json_is(value, JSON_ARRAY))
                return refuse(c, at, "must be an array");
        ret->v = arena_new_array(c->arena, struct schema_node *, json_len(value));
        json_foreach (spec, value) {
                spot.index = ret->n;
                ret->v[ret->n] = compile(c, spec, &spot, in);
                if (!ret->v[ret->n])
                        return -1;
                ret->n++;
        }
        return 0;
}

static int keyword_all_of(struct compiler *c, struct schema_node *n, const struct json *value,
                          const struct spot *at, struct context in)
{
        return compile_list(c, value, &n->all_of, at, (struct context){in.level, .nested = true});
}

static int keyword_any_of(struct compiler *c, struct schema_node *n, const struct json *value,
                          const struct spot *at, struct context in)
{
        /* at the schema itself, or in the first of its allOf */
        bool first_of_all = in.nested && at->up->kind == SPOT_INDEX && at->up->index == 0 &&
                            str_eq(at->up->up->name, STR("allOf"));
        bool pair = (!in.nested || first_of_all) && is_type_pair(value);

        return compile_list(c, value, &n->any_of, at,
                            (struct context){in.level, .nested = true, .type_pair = pair});
}

static int keyword_one_of(struct compiler *c, struct schema_node *n, const struct json *value,
                          const struct spot *at, struct context in)
{
        return compile_list(c, value, &n->one_of, at, (struct context){in.level, .nested = true});
}

/* ---- the tables */

static const struct {
        const char *name;
        keyword_fn *fn;
        const char *nested; /* why it must not stand in a nested schema; NULL: it may */
} keywords[] = {
        {"type", keyword_type, "Forbidden: must be empty to be structural"},
        {"format", keyword_format, NULL},
        {"enum", keyword_enum, NULL},
        {"pattern", keyword_pattern, NULL},
        {"required", keyword_required, NULL},
        {"properties", keyword_properties, NULL},
        {"additionalProperties", keyword_additional, "Forbidden: must be undefined to be structural"},
        {"items", keyword_items, NULL},
        {"allOf", keyword_all_of, NULL},
        {"anyOf", keyword_any_of, NULL},
        {"oneOf", keyword_one_of, NULL},
        {"not", keyword_not, NULL},
        {"default", keyword_default, "Forbidden: must be undefined to be structural"},
        {"x-kubernetes-list-type", keyword_list_type, "Forbidden: must be undefined to be structural"},
        {"x-kubernetes-list-map-keys", keyword_list_map_keys, "Forbidden: must be empty to be structural"},
        {"title", NULL, "Forbidden: must be empty to be structural"},
        {"description", NULL, "Forbidden: must be empty to be structural"},
        {"x-kubernetes-map-type", NULL, "Forbidden: must be undefined to be structural"},
};

static const struct {
        const char *name;
        size_t offset;
        bool nested; /* may stand in a nested schema */
} flags[] = {
        {"nullable", offsetof(struct schema_node, nullable), false},
        {"uniqueItems", offsetof(struct schema_node, unique_items), true},
        {"exclusiveMinimum", offsetof(struct schema_node, minimum.exclusive), true},
        {"exclusiveMaximum", offsetof(struct schema_node, maximum.exclusive), true},
        {"x-kubernetes-int-or-string", offsetof(struct schema_node, int_or_string), false},
        {"x-kubernetes-preserve-unknown-fields", offsetof(struct schema_node, preserve), false},
        {"x-kubernetes-embedded-resource", offsetof(struct schema_node, embedded), false},
};

static const struct {
        const char *name;
        size_t offset;
} counts[] = {
        {"minLength", offsetof(struct schema_node, min_length)},
        {"maxLength", offsetof(struct schema_node, max_length)},
        {"minItems", offsetof(struct schema_node, min_items)},
        {"maxItems", offsetof(struct schema_node, max_items)},
        {"minProperties", offsetof(struct schema_node, min_properties)},
        {"maxProperties", offsetof(struct schema_node, max_properties)},
};

static const struct {
        const char *name;
        size_t offset;
} bounds[] = {
        {"minimum", offsetof(struct schema_node, minimum)},
        {"maximum", offsetof(struct schema_node, maximum)},
        {"multipleOf", offsetof(struct schema_node, multiple_of)},
};

/* What the API server forbids, and what we could only ignore. Any other unknown word means nothing to both. */
static const char *const forbidden[] = {
        "$ref",
        "$schema",
        "id",
        "definitions",
        "dependencies",
        "patternProperties",
        "additionalItems",
        "x-kubernetes-validations",
};

static int compile_keywords(struct compiler *c, struct schema_node *n, const struct json *spec,
                            const struct spot *at, struct context in)
{
        for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
                const struct json *value = json_at(spec, keywords[i].name);
                struct spot spot = {.up = at, .kind = SPOT_CHILD, .name = str_of(keywords[i].name)};

                if (!value)
                        continue;
                if (in.nested && keywords[i].nested && !(in.type_pair && keywords[i].fn == keyword_type))
                        return refuse(c, &spot, keywords[i].nested);
                if (keywords[i].fn && keywords[i].fn(c, n, value, &spot, in) < 0)
                        return -1;
        }
        for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
                if (json_at(spec, forbidden[i]))
                        return refuse_child(c, at, forbidden[i], "Forbidden: not supported");
        return 0;
}

static int compile_flags(struct compiler *c, struct schema_node *n, const struct json *spec,
                         const struct spot *at, struct context in)
{
        for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
                const struct json *value = json_at(spec, flags[i].name);

                if (!value)
                        continue;
                if (!json_is(value, JSON_BOOL))
                        return refuse_child(c, at, flags[i].name, "must be true or false");
                if (value->truth && in.nested && !flags[i].nested)
                        return refuse_child(c, at, flags[i].name,
                                            "Forbidden: must be false to be structural");
                *(bool *)((char *)n + flags[i].offset) = value->truth;
        }
        return 0;
}

static int compile_numbers(struct compiler *c, struct schema_node *n, const struct json *spec,
                           const struct spot *at)
{
        for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
                const struct json *value = json_at(spec, counts[i].name);
                int64_t *to = (int64_t *)(void *)((char *)n + counts[i].offset);

                *to = -1;
                if (value && (!json_is(value, JSON_NUMBER) || !json_to_i64(value, to) || *to < 0))
                        return refuse_child(c, at, counts[i].name, "must be a whole number of at least 0");
        }
        for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
                const struct json *value = json_at(spec, bounds[i].name);
                struct schema_bound *to = (struct schema_bound *)(void *)((char *)n + bounds[i].offset);

                if (value && (!json_is(value, JSON_NUMBER) || !json_to_double(value, &to->value)))
                        return refuse_child(c, at, bounds[i].name, "must be a number");
                to->set = value != NULL;
        }
        if (n->multiple_of.set && n->multiple_of.value <= 0)
                return refuse_child(c, at, "multipleOf", "must be greater than 0");
        return 0;
}

/* ---- what makes a schema structural */

static int check_type(struct compiler *c, const struct schema_node *n, const struct spot *at,
                      enum level level)
{
        static const char *const missing[] = {
                [LEVEL_ROOT] = "Required value: must not be empty at the root",
                [LEVEL_ITEM] = "Required value: must not be empty for specified array items",
                [LEVEL_FIELD] = "Required value: must not be empty for specified object fields",
        };

        if (n->embedded && n->types != TYPE_OBJECT)
                return refuse_child(c, at, "type",
                                    "must be object if x-kubernetes-embedded-resource is true");
        if (!n->types && !n->int_or_string && !n->preserve)
                return refuse_child(c, at, "type", missing[level]);
        if (level == LEVEL_ROOT && n->types && n->types != TYPE_OBJECT)
                return refuse_child(c, at, "type", "must be object at the root");
        if (n->types == TYPE_ARRAY && !n->items)
                return refuse_child(c, at, "items", "Required value: must be specified");
        return 0;
}

static int check_extensions(struct compiler *c, const struct schema_node *n, const struct spot *at)
{
        bool additional = n->additional || n->additional_any;

        if (n->int_or_string && n->preserve)
                return refuse_child(c, at, "x-kubernetes-preserve-unknown-fields",
                                    "must be false if x-kubernetes-int-or-string is true");
        if (n->int_or_string && n->embedded)
                return refuse_child(c, at, "x-kubernetes-embedded-resource",
                                    "must be false if x-kubernetes-int-or-string is true");
        if (n->embedded && additional)
                return refuse_child(c, at, "additionalProperties",
                                    "Forbidden: must not be used if x-kubernetes-embedded-resource is set");
        if (n->additional && n->n_properties)
                return refuse_child(c, at, "additionalProperties",
                                    "Forbidden: additionalProperties and properties are mutual exclusive");
        if (n->embedded && !n->preserve && !n->n_properties)
                return refuse_child(c, at, "properties",
                                    "Required value: must not be empty if x-kubernetes-embedded-resource is "
                                    "true without x-kubernetes-preserve-unknown-fields");
        return 0;
}

static bool is_required(const struct schema_node *n, const char *name)
{
        for (size_t i = 0; i < n->required.n; i++)
                if (streq(n->required.v[i], name))
                        return true;
        return false;
}

static int check_list_map(struct compiler *c, const struct schema_node *n, const struct spot *at)
{
        const char *keys = "x-kubernetes-list-map-keys";

        if (n->list_type != LIST_MAP)
                return n->list_keys.n ? refuse_child(c, at, "x-kubernetes-list-type",
                                                     "must be map if x-kubernetes-list-map-keys is non-empty")
                                      : 0;
        if (n->list_keys.n == 0)
                return refuse_child(c, at, keys,
                                    "Required value: must not be empty if x-kubernetes-list-type is map");
        if (n->items->types != TYPE_OBJECT)
                return refuse_child(c, at, "items",
                                    "type must be object if parent array's x-kubernetes-list-type is map");
        for (size_t i = 0; i < n->list_keys.n; i++) {
                const struct schema_node *key = schema_property(n->items, str_of(n->list_keys.v[i]));

                if (!key)
                        return refuse_child(c, at, keys, "entries must all be names of item properties");
                if (key->types == TYPE_ARRAY || key->types == TYPE_OBJECT)
                        return refuse_child(c, at, keys,
                                            "must be of a scalar type if parent array's "
                                            "x-kubernetes-list-type is map");
                if (!key->fallback && !is_required(n->items, n->list_keys.v[i]))
                        return refuse_child(c, at, keys,
                                            "each of these properties must have a default or be required");
        }
        return 0;
}

static int check_metadata(struct compiler *c, const struct schema_node *n, const struct spot *at,
                          enum level level)
{
        static const struct {
                const char *name;
                unsigned type;
                const char *what;
        } fields[] = {
                {"apiVersion", TYPE_STRING, "type must be string"},
                {"kind", TYPE_STRING, "type must be string"},
                {"metadata", TYPE_OBJECT, "type must be object"},
        };
        const struct schema_node *metadata = schema_property(n, STR("metadata"));
        struct spot properties = {.up = at, .kind = SPOT_CHILD, .name = STR("properties")};

        if (level != LEVEL_ROOT && !n->embedded)
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                const struct schema_node *field = schema_property(n, str_of(fields[i].name));

                if (field && field->types != fields[i].type)
                        return refuse_child(c, &properties, fields[i].name, fields[i].what);
        }
        for (size_t i = 0; level == LEVEL_ROOT && metadata && i < metadata->n_properties; i++)
                if (!str_eq(metadata->properties[i].name, STR("name")) &&
                    !str_eq(metadata->properties[i].name, STR("generateName")))
                        return refuse_child(c, &properties, "metadata",
                                            "Forbidden: must not specify anything other than name and "
                                            "generateName, "
                                            "but metadata is implicitly specified");
        return 0;
}

/* A default must be valid by itself and must not have members that pruning would take. */
static int check_default(struct compiler *c, const struct schema_node *n, const struct spot *at)
{
        _cleanup_(arena_done) struct arena scratch = ARENA_INIT;
        struct schema_report report = {0};
        struct json *copy;
        struct spot spot = {.up = at, .kind = SPOT_CHILD, .name = STR("default")};

        if (!n->fallback)
                return 0;
        copy = json_copy(&scratch, n->fallback);
        schema_prune_node(n, copy, n->embedded, NULL);
        if (!json_equal(copy, n->fallback))
                return refuse(c, &spot, "must not have unknown fields");
        if (!schema_check(n, n->fallback, &scratch, &report))
                return refuse(c, &spot, report.n ? report.causes[0].message : "is not valid");
        return 0;
}

/* ---- completeness: what a nested schema restricts must be declared outside */

static int check_declared(struct compiler *c, const struct schema_node *v, const struct schema_node *s,
                          const struct spot *at);

static int check_nested_lists(struct compiler *c, const struct schema_node *v, const struct schema_node *s,
                              const struct spot *at)
{
        const struct schema_nodes *lists[] = {&v->all_of, &v->any_of, &v->one_of};

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                for (size_t k = 0; k < lists[i]->n; k++)
                        if (check_declared(c, lists[i]->v[k], s, at) < 0)
                                return -1;
        return v->not ? check_declared(c, v->not, s, at) : 0;
}

static int check_declared(struct compiler *c, const struct schema_node *v, const struct schema_node *s,
                          const struct spot *at)
{
        struct spot items = {.up = at, .kind = SPOT_CHILD, .name = STR("items")};
        struct spot properties = {.up = at, .kind = SPOT_CHILD, .name = STR("properties")};
        const char *missing = "Required value: because it is defined in allOf, anyOf, oneOf or not";

        if (v->items && !s->items)
                return refuse(c, &items, missing);
        if (v->items && check_declared(c, v->items, s->items, &items) < 0)
                return -1;
        for (size_t i = 0; i < v->n_properties; i++) {
                struct spot key = {.up = &properties, .kind = SPOT_KEY, .name = v->properties[i].name};
                const struct schema_node *p = schema_property(s, key.name);

                if (!p)
                        return refuse(c, &key, missing);
                if (check_declared(c, v->properties[i].node, p, &key) < 0)
                        return -1;
        }
        return check_nested_lists(c, v, s, at);
}

static int check_structural(struct compiler *c, const struct schema_node *n, const struct spot *at,
                            enum level level)
{
        if (check_type(c, n, at, level) < 0 || check_extensions(c, n, at) < 0 ||
            check_list_map(c, n, at) < 0 || check_metadata(c, n, at, level) < 0 ||
            check_default(c, n, at) < 0)
                return -1;
        return check_nested_lists(c, n, n, at);
}

/* ---- putting it together */

static struct schema_node *compile(struct compiler *c, const struct json *spec, const struct spot *at,
                                   struct context in)
{
        struct schema_node *n = arena_new(c->arena, struct schema_node);

        if (!json_is(spec, JSON_OBJECT)) {
                refuse(c, at, "must be an object");
                return NULL;
        }
        if (c->depth >= SCHEMA_DEPTH_MAX) {
                err_set(c->err, E_TOO_LARGE, "the schema is nested deeper than %d", SCHEMA_DEPTH_MAX);
                return NULL;
        }
        c->depth++;
        if (compile_keywords(c, n, spec, at, in) < 0 || compile_flags(c, n, spec, at, in) < 0 ||
            compile_numbers(c, n, spec, at) < 0)
                return NULL;
        if (n->int_or_string)
                n->types = TYPE_INTEGER | TYPE_STRING;
        if (!in.nested && check_structural(c, n, at, in.level) < 0)
                return NULL;
        c->depth--;
        return n;
}

struct schema *schema_new(const struct json *spec, struct err *err)
{
        struct schema *s = xcalloc(1, sizeof(*s));
        struct compiler c = {.arena = &s->arena, .err = err};
        struct spot root = {0};

        s->root = compile(&c, spec ? json_copy(&s->arena, spec) : NULL, &root, (struct context){LEVEL_ROOT});
        if (!s->root) {
                schema_free(s);
                return NULL;
        }
        return s;
}

void schema_free(struct schema *s)
{
        if (!s)
                return;
        arena_done(&s->arena);
        free(s);
}

const struct schema_node *schema_property(const struct schema_node *s, struct str name)
{
        struct schema_property key = {.name = name}, *found;

        if (!s || !s->n_properties)
                return NULL;
        found = bsearch(&key, s->properties, s->n_properties, sizeof(key), by_name);
        return found ? found->node : NULL;
}

const struct schema_node *schema_member(const struct schema_node *s, struct str name)
{
        const struct schema_node *property = schema_property(s, name);

        return property || !s ? property : s->additional;
}

const char *schema_meta_field(struct str name)
{
        static const char *const fields[] = {"apiVersion", "kind", "metadata"};

        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                if (str_eq(name, str_of(fields[i])))
                        return fields[i];
        return NULL;
}
