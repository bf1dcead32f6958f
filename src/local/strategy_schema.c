/*
 * Schemas of CustomResourceDefinitions: what OpenAPI features may be used, and whether they are structural, so that
 * unknown fields can be dropped and defaults be set.
 */
#include "local/strategy_internal.h"

#include "json/pattern.h"

enum level { ROOT, ITEM, FIELD };

/* ---- what may be used */

static const char *const TYPES[] = {"array", "boolean", "integer", "number", "object", "string", NULL};

static const struct {
        const char *key, *message;
} UNSUPPORTED[] = {
        {"id", "id is not supported"},
        {"additionalItems", "additionalItems is not supported"},
        {"patternProperties", "patternProperties is not supported"},
        {"definitions", "definitions is not supported"},
        {"dependencies", "dependencies is not supported"},
        {"$ref", "$ref is not supported"},
};

struct place {
        bool inside_meta;
        const char *no_defaults; /* why; NULL: they may be set */
};

/* What the validator says of the member "v" is said of the default itself: it has no name. */
static const char *without_name(struct causes *c, const char *message)
{
        const char *at = strstr(message, ": v in body");

        return at ? arena_printf(c->a, "%.*s:  in body%s", (int)(at - message), message,
                                 at + strlen(": v in body"))
                  : message;
}

/* A default must fit its own schema, and be whole after what is unknown was dropped. */
static void check_default(struct causes *c, const char *path, const struct json *s)
{
        struct json *bare = json_copy(c->a, s);
        const struct json *root = json_build(c->a, "{'type': 'object', 'properties': {'v': %p}}", bare);
        _cleanup_(schema_free) struct schema *schema = NULL;
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(1 << 16);
        const char *at = path_key(c, path, "default");
        struct schema_report report = {0};
        struct json *value = json_build(c->a, "{'v': %p}", json_copy(c->a, json_at(s, "default")));

        json_remove(bare, "default"); /* a schema with a default that does not fit is none */
        schema = schema_new(root, NULL);
        if (!schema) /* what is wrong with it is told elsewhere */
                return;
        schema_prune(schema, value, &dropped);
        if (dropped.n > 0)
                bad_raw(c, at,
                        arena_printf(c->a, "map[string]interface {}%s",
                                     json_print(c->a, json_at(s, "default"))),
                        "must not have unknown fields");
        else if (!schema_validate(schema, value, c->a, &report))
                for (size_t i = 0; i < report.n; i++)
                        causes_add(c, schema_cause_reason(report.causes[i].type), at, "%s",
                                   without_name(c, report.causes[i].message));
}

static void check_features(struct causes *c, const char *path, const struct json *s,
                           const struct place *where)
{
        const char *type = json_str_or(s, "type", "");

        if (*type && !str_in(TYPES, type))
                bad_enum(c, path_key(c, path, "type"), type, TYPES);
        if (json_at(s, "default") && where->no_defaults)
                bad_forbidden(c, path_key(c, path, "default"),
                              arena_join(c->a, "must not be set ", where->no_defaults, ""));
        else if (json_at(s, "default"))
                check_default(c, path, s);
        for (size_t i = 0; i < ARRAY_LEN(UNSUPPORTED); i++)
                if (json_at(s, UNSUPPORTED[i].key))
                        bad_forbidden(c, path_key(c, path, UNSUPPORTED[i].key), UNSUPPORTED[i].message);
        if (streq(type, "null"))
                bad_forbidden(c, path_key(c, path, "type"),
                              "type cannot be set to null, use nullable as an alternative");
        if (json_is(json_at(s, "items"), JSON_ARRAY))
                bad_forbidden(c, path_key(c, path, "items"),
                              "items must be a schema object and not an array");
        if (where->inside_meta && json_bool(s, "x-kubernetes-embedded-resource", false))
                bad_forbidden(c, path_key(c, path, "x-kubernetes-embedded-resource"),
                              "must not be used inside of resource meta");
        if (json_bool(s, "uniqueItems", false))
                bad_forbidden(
                        c, path_key(c, path, "uniqueItems"),
                        "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
}

static void check_type_is(struct causes *c, const char *path, const struct json *s, const char *want,
                          const char *why)
{
        const char *type = json_str_or(s, "type", ""), *at = path_key(c, path, "type");
        const char *message = arena_printf(c->a, "must be %s if %s is specified", want, why);

        if (!*type)
                bad_required(c, at, message);
        else if (!streq(type, want))
                bad_str(c, at, type, message);
}

static bool in_array(const struct json *array, const char *word)
{
        json_foreach (w, array)
                if (streq(json_cstr(w), word))
                        return true;
        return false;
}

/* The keys by which items of a list are told apart. */
static void check_map_keys(struct causes *c, const char *path, const struct json *s, const struct json *items)
{
        const struct json *keys = json_at(s, "x-kubernetes-list-map-keys");
        const char *at = path_key(c, path, "x-kubernetes-list-map-keys");
        struct json *seen = json_object(c->a);

        json_foreach (k, keys) {
                const char *key = json_cstr(k) ? json_cstr(k) : "";
                const struct json *property = json_at(json_at(items, "properties"), key);
                const char *here = path_map(c, path_key(c, path_key(c, path, "items"), "properties"), key);
                const char *type = json_str_or(property, "type", "");

                if (!property)
                        bad_raw(c, at, go_strings(c, keys), "entries must all be names of item properties");
                else if (streq(type, "array") || streq(type, "object"))
                        bad_str(c, path_key(c, here, "type"), "object",
                                "must be a scalar type if parent array's x-kubernetes-list-type is map");
                if (json_at(seen, key))
                        bad_raw(c, at, go_strings(c, keys), "must not contain duplicate entries");
                json_set(c->a, seen, key, json_truth(c->a, true));
        }
        json_foreach (k, keys) {
                const char *key = json_cstr(k) ? json_cstr(k) : "";
                const struct json *property = json_at(json_at(items, "properties"), key);
                const char *here = path_map(c, path_key(c, path_key(c, path, "items"), "properties"), key);

                if (property && !in_array(json_at(items, "required"), key) && !json_at(property, "default"))
                        bad_required(c, path_key(c, here, "default"),
                                     "this property is in x-kubernetes-list-map-keys, so it must have a "
                                     "default or be a "
                                     "required property");
                if (json_bool(property, "nullable", false))
                        bad_forbidden(
                                c, path_key(c, here, "nullable"),
                                "this property is in x-kubernetes-list-map-keys, so it cannot be nullable");
        }
}

static void check_map_list(struct causes *c, const char *path, const struct json *s)
{
        const struct json *items = json_at(s, "items");
        const char *at = path_key(c, path, "items");

        if (json_len(json_at(s, "x-kubernetes-list-map-keys")) == 0)
                bad_required(c, path_key(c, path, "x-kubernetes-list-map-keys"),
                             "must not be empty if x-kubernetes-list-type is map");
        if (!items)
                bad_required(c, at, "must have a schema if x-kubernetes-list-type is map");
        else if (!streq(json_str(items, "type"), "object"))
                bad_str(c, path_key(c, at, "type"), json_str_or(items, "type", ""),
                        "must be object if parent array's x-kubernetes-list-type is map");
        else
                check_map_keys(c, path, s, items);
}

static void check_list_type(struct causes *c, const char *path, const struct json *s)
{
        static const char *const known[] = {"atomic", "set", "map", NULL};
        const char *type = json_str(s, "x-kubernetes-list-type"),
                   *at = path_key(c, path, "x-kubernetes-list-type");
        const struct json *items = json_at(s, "items");

        if (type && !streq(json_str(s, "type"), "array"))
                check_type_is(c, path, s, "array", "x-kubernetes-list-type");
        else if (streq(type, "set") && streq(json_str(items, "type"), "object") &&
                 !streq(json_str(items, "x-kubernetes-map-type"), "atomic"))
                bad_str(c, path_key(c, path_key(c, path, "items"), "x-kubernetes-map-type"), "null",
                        "must be atomic as item of a list with x-kubernetes-list-type=set");
        if (type && !str_in(known, type))
                bad_enum(c, at, type, known);
        if (json_len(json_at(s, "x-kubernetes-list-map-keys")) > 0) {
                if (!type)
                        bad_required(c, at, "must be map if x-kubernetes-list-map-keys is non-empty");
                else if (!streq(type, "map"))
                        bad_str(c, at, type, "must be map if x-kubernetes-list-map-keys is non-empty");
        }
        if (streq(type, "map"))
                check_map_list(c, path, s);
        if ((streq(type, "map") || streq(type, "set")) && json_bool(items, "nullable", false))
                bad_forbidden(
                        c, path_key(c, path_key(c, path, "items"), "nullable"),
                        arena_join(c->a, "cannot be nullable when x-kubernetes-list-type is ", type, ""));
}

static void check_schema(struct causes *c, const char *path, const struct json *s, bool root,
                         const struct place *where);

static void check_properties(struct causes *c, const char *path, const struct json *s, bool root,
                             const struct place *where)
{
        static const char *const meta[] = {"metadata", "kind", "apiVersion", NULL};
        bool resource = root || json_bool(s, "x-kubernetes-embedded-resource", false);

        json_foreach (p, json_at(s, "properties")) {
                struct place inside = *where;

                if (resource && str_in(meta, p->key)) {
                        inside.inside_meta = true;
                        if (root)
                                inside.no_defaults = arena_join(c->a, "in top-level ", p->key, "");
                }
                check_schema(c, path_map(c, path_key(c, path, "properties"), p->key), p, false, &inside);
        }
}

static void check_junctors(struct causes *c, const char *path, const struct json *s,
                           const struct place *where)
{
        static const char *const lists[] = {"allOf", "oneOf", "anyOf"};

        check_schema(c, path_key(c, path, "not"), json_at(s, "not"), false, where);
        for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
                size_t i = 0;

                json_foreach (one, json_at(s, lists[k]))
                        check_schema(c, path_index(c, path_key(c, path, lists[k]), i++), one, false, where);
        }
}

static void check_schema(struct causes *c, const char *path, const struct json *s, bool root,
                         const struct place *where)
{
        static const char *const maps[] = {"atomic", "granular", NULL};
        const struct json *additional = json_at(s, "additionalProperties");
        const struct json *preserve = json_at(s, "x-kubernetes-preserve-unknown-fields");
        const char *map = json_str(s, "x-kubernetes-map-type");
        struct place inside = *where;

        if (!json_is(s, JSON_OBJECT))
                return;
        check_features(c, path, s, where);
        if (additional && json_len(json_at(s, "properties")) > 0 &&
            !(json_is(additional, JSON_BOOL) && additional->truth))
                bad_forbidden(c, path_key(c, path, "additionalProperties"),
                              "additionalProperties and properties are mutual exclusive");
        if (where->inside_meta)
                inside.no_defaults = "inside additionalProperties applying to object metadata";
        check_schema(c, path_key(c, path, "additionalProperties"), additional, false, &inside);
        check_properties(c, path, s, root, where);
        check_junctors(c, path, s, where);
        check_schema(c, path_key(c, path, "items"), json_at(s, "items"), false, where);
        if (json_is(preserve, JSON_BOOL) && !preserve->truth)
                bad_raw(c, path_key(c, path, "x-kubernetes-preserve-unknown-fields"), "false",
                        "must be true or undefined");
        if (map && !streq(json_str(s, "type"), "object"))
                check_type_is(c, path, s, "object", "x-kubernetes-map-type");
        if (map && !str_in(maps, map))
                bad_enum(c, path_key(c, path, "x-kubernetes-map-type"), map, maps);
        check_list_type(c, path, s);
}

/* ---- whether it is structural */

static const struct {
        const char *key, *message;
} NOT_NESTED[] = {
        {"type", "must be empty to be structural"},
        {"additionalProperties", "must be undefined to be structural"},
        {"default", "must be undefined to be structural"},
        {"title", "must be empty to be structural"},
        {"description", "must be empty to be structural"},
        {"nullable", "must be false to be structural"},
        {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
        {"x-kubernetes-embedded-resource", "must be false to be structural"},
        {"x-kubernetes-int-or-string", "must be false to be structural"},
        {"x-kubernetes-list-map-keys", "must be empty to be structural"},
        {"x-kubernetes-list-type", "must be undefined to be structural"},
        {"x-kubernetes-map-type", "must be undefined to be structural"},
};

/* anyOf: [{type: integer}, {type: string}] is how int-or-string is written. */
static bool int_or_string(const struct json *any)
{
        const struct json *x = json_index(any, 0), *y = json_index(any, 1);

        return json_len(any) == 2 && json_len(x) == 1 && json_len(y) == 1 &&
               streq(json_str(x, "type"), "integer") && streq(json_str(y, "type"), "string");
}

/* Our own words for it end in where it is; the server's in what it is. */
static const char *wrong_pattern(struct causes *c, const char *pattern, const char *why)
{
        const char *end = strstr(why, " at character ");

        return arena_printf(c->a,
                            "must be a valid regular expression, but isn't: error parsing regexp: %.*s: `%s`",
                            (int)(end ? (size_t)(end - why) : strlen(why)), why, pattern);
}

static void check_nested(struct causes *c, const char *path, const struct json *s, bool skip_any);

static void check_values(struct causes *c, const char *path, const struct json *s, bool skip_any,
                         bool skip_first)
{
        const char *pattern = json_str(s, "pattern");
        struct err err = ERR_INIT;
        size_t i = 0;

        if (!skip_any)
                json_foreach (one, json_at(s, "anyOf"))
                        check_nested(c, path_index(c, path_key(c, path, "anyOf"), i++), one, false);
        i = 0;
        json_foreach (one, json_at(s, "allOf")) {
                check_nested(c, path_index(c, path_key(c, path, "allOf"), i), one, skip_first && i == 0);
                i++;
        }
        i = 0;
        json_foreach (one, json_at(s, "oneOf"))
                check_nested(c, path_index(c, path_key(c, path, "oneOf"), i++), one, false);
        check_nested(c, path_key(c, path, "not"), json_at(s, "not"), false);
        if (pattern && *pattern) {
                if (!pattern_new(c->a, str_of(pattern), &err))
                        bad_str(c, path_key(c, path, "pattern"), pattern,
                                wrong_pattern(c, pattern, err.text));
        }
}

static void check_nested(struct causes *c, const char *path, const struct json *s, bool skip_any)
{
        if (!json_is(s, JSON_OBJECT))
                return;
        check_values(c, path, s, skip_any, false);
        check_nested(c, path_key(c, path, "items"), json_at(s, "items"), false);
        json_foreach (p, json_at(s, "properties"))
                check_nested(c, path_map(c, path_key(c, path, "properties"), p->key), p, false);
        for (size_t i = 0; i < ARRAY_LEN(NOT_NESTED); i++)
                if (json_at(s, NOT_NESTED[i].key))
                        bad_forbidden(c, path_key(c, path, NOT_NESTED[i].key), NOT_NESTED[i].message);
        if (json_at(json_at(s, "properties"), "metadata"))
                bad_forbidden(c, path_map(c, path_key(c, path, "properties"), "metadata"),
                              "must not be specified in a nested context");
}

static void check_missing_type(struct causes *c, const char *path, const struct json *s, enum level level)
{
        static const char *const messages[] = {"must not be empty at the root",
                                               "must not be empty for specified array items",
                                               "must not be empty for specified object fields"};
        const char *type = json_str_or(s, "type", ""), *at = path_key(c, path, "type");

        if (json_at(s, "$ref"))
                return; /* refused as such */
        if (json_bool(s, "x-kubernetes-embedded-resource", false) && !streq(type, "object")) {
                if (*type)
                        bad_str(c, at, type, "must be object if x-kubernetes-embedded-resource is true");
                else
                        bad_required(c, at, "must be object if x-kubernetes-embedded-resource is true");
        } else if (!*type && !json_bool(s, "x-kubernetes-int-or-string", false) &&
                   !json_bool(s, "x-kubernetes-preserve-unknown-fields", false)) {
                bad_required(c, at, messages[level]);
        }
        if (level == ROOT && *type && !streq(type, "object"))
                bad_str(c, at, type, "must be object at the root");
}

/* Of metadata a schema may restrict the name only. */
static bool only_names(const struct json *metadata)
{
        json_foreach (m, metadata) {
                if (streq(m->key, "type") || streq(m->key, "default"))
                        continue;
                if (!streq(m->key, "properties"))
                        return false;
                json_foreach (p, m)
                        if (!streq(p->key, "name") && !streq(p->key, "generateName"))
                                return false;
        }
        return true;
}

static void check_metadata(struct causes *c, const char *path, const struct json *s, enum level level)
{
        static const char *const fields[][2] = {
                {"kind", "string"}, {"apiVersion", "string"}, {"metadata", "object"}};
        const struct json *properties = json_at(s, "properties");

        if (level != ROOT && !json_bool(s, "x-kubernetes-embedded-resource", false))
                return;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                const struct json *p = json_at(properties, fields[i][0]);
                const char *here = path_map(c, path_key(c, path, "properties"), fields[i][0]);

                if (p && !streq(json_str(p, "type"), fields[i][1]))
                        bad_str(c, path_key(c, here, "type"), json_str_or(p, "type", ""),
                                arena_join(c->a, "must be ", fields[i][1], ""));
        }
        if (level == ROOT && json_at(properties, "metadata") && !only_names(json_at(properties, "metadata")))
                bad_forbidden(c, path_map(c, path_key(c, path, "properties"), "metadata"),
                              "must not specify anything other than name and generateName, but metadata is "
                              "implicitly "
                              "specified");
}

static void check_structure(struct causes *c, const char *path, const struct json *s, enum level level)
{
        const struct json *items = json_at(s, "items"), *additional = json_at(s, "additionalProperties");
        bool embedded = json_bool(s, "x-kubernetes-embedded-resource", false);
        bool preserve = json_bool(s, "x-kubernetes-preserve-unknown-fields", false);

        if (streq(json_str(s, "type"), "array") && !items)
                bad_required(c, path_key(c, path, "items"), "must be specified");
        if (items)
                check_structure(c, path_key(c, path, "items"), items, ITEM);
        json_foreach (p, json_at(s, "properties"))
                check_structure(c, path_map(c, path_key(c, path, "properties"), p->key), p, FIELD);
        if (additional && level == ROOT)
                bad_forbidden(c, path_key(c, path, "additionalProperties"), "must not be used at the root");
        if (json_is(additional, JSON_OBJECT))
                check_structure(c, path_key(c, path, "additionalProperties"), additional, FIELD);
        if (json_bool(s, "x-kubernetes-int-or-string", false) && preserve)
                bad_raw(c, path_key(c, path, "x-kubernetes-preserve-unknown-fields"), "true",
                        "must be false if x-kubernetes-int-or-string is true");
        check_values(c, path, s, int_or_string(json_at(s, "anyOf")),
                     int_or_string(json_at(json_index(json_at(s, "allOf"), 0), "anyOf")));
        check_missing_type(c, path, s, level);
        if (embedded && additional)
                bad_forbidden(c, path_key(c, path, "additionalProperties"),
                              "must not be used if x-kubernetes-embedded-resource is set");
        check_metadata(c, path, s, level);
        if (embedded && !preserve && json_len(json_at(s, "properties")) == 0)
                bad_required(c, path_key(c, path, "properties"),
                             "must not be empty if x-kubernetes-embedded-resource is true without "
                             "x-kubernetes-preserve-unknown-fields");
}

/* ---- all of it */

static const char *text_of(struct causes *c, const struct cause *cause)
{
        return arena_join(c->a, cause->field, ": ", cause->message);
}

/* The server sorts what is not structural, and only that. */
static void sort_from(struct causes *c, size_t from)
{
        for (size_t i = from + 1; i < c->n; i++)
                for (size_t k = i;
                     k > from && strcmp(text_of(c, &c->list[k]), text_of(c, &c->list[k - 1])) < 0; k--) {
                        struct cause swap = c->list[k];

                        c->list[k] = c->list[k - 1];
                        c->list[k - 1] = swap;
                }
}

void crd_schema_validate(struct causes *c, const char *path, const struct json *schema)
{
        struct place anywhere = {0};
        size_t before;

        if (json_bool(schema, "nullable", false))
                bad_forbidden(c, arena_join(c->a, path, ".nullable", ""),
                              "nullable cannot be true at the root");
        check_schema(c, path, schema, true, &anywhere);
        before = c->n;
        check_structure(c, path, schema, ROOT);
        sort_from(c, before);
}
