/*
 * The table of built-in types, read once at the start. Lines are read in order; a definition that is used before its
 * line is made empty and filled in later.
 */
#include "local/shape_private.h"

struct prefix {
        struct str key, text;
};

struct reader {
        struct shapes *s;
        struct arena *a;
        struct map named; /* long name to struct shape */
        size_t n_defined; /* of those, how many have had their line */
        VEC(struct prefix) prefixes;
        VEC(struct shape_field) fields; /* of the definition being read */
        struct shape *current;          /* definition whose fields are being read, or NULL */
        unsigned line;
        struct err *err;
};

static int bad(struct reader *r, const char *what, struct str text)
{
        return err_set(r->err, E_INVALID, "table of types, line %u: %s '%.*s'", r->line, what, STR_ARG(text));
}

static const char *keep(struct reader *r, struct str text)
{
        return arena_strndup(r->a, text.p, text.n);
}

/* The definition of a short name; empty when its line is still to come. */
static struct shape *definition(struct reader *r, struct str name)
{
        struct str rest = name, key = str_split(&rest, '.');
        struct shape *shape;
        const char *full;

        vec_foreach (prefix, &r->prefixes) {
                if (!str_eq(prefix->key, key))
                        continue;
                full = arena_printf(r->a, "%.*s%.*s", STR_ARG(prefix->text), STR_ARG(rest));
                shape = map_get(&r->named, str_of(full));
                if (shape)
                        return shape;
                shape = arena_new(r->a, struct shape);
                shape->name = full;
                map_put(&r->named, str_of(full), shape);
                *vec_push(&r->s->sorted) = shape;
                return shape;
        }
        return NULL;
}

static const struct {
        struct str name;
        enum shape_kind kind;
} SCALARS[] = {
        {{"any", 3}, SHAPE_ANY},      {{"string", 6}, SHAPE_STRING},
        {{"int", 3}, SHAPE_INTEGER},  {{"number", 6}, SHAPE_NUMBER},
        {{"bool", 4}, SHAPE_BOOLEAN}, {{"intorstring", 11}, SHAPE_INT_OR_STRING},
};

static int read_scalar(struct reader *r, struct str type, struct shape *shape)
{
        struct str format = type, name = str_split(&format, '/');

        for (size_t i = 0; i < ARRAY_LEN(SCALARS); i++)
                if (str_eq(name, SCALARS[i].name)) {
                        shape->kind = SCALARS[i].kind;
                        shape->format = format.n ? keep(r, format) : NULL;
                        return 0;
                }
        return bad(r, "unknown type", type);
}

static struct shape *read_type(struct reader *r, struct str type);

/* Fills in SHAPE with a type that is no reference. */
static int read_inline(struct reader *r, struct str type, struct shape *shape)
{
        bool is_list = str_has_prefix(type, STR("[]"));

        if (!is_list && !str_has_prefix(type, STR("{}")))
                return read_scalar(r, type, shape);
        shape->kind = is_list ? SHAPE_LIST : SHAPE_MAP;
        shape->elem = read_type(r, str_n(type.p + 2, type.n - 2));
        return shape->elem ? 0 : -1;
}

static struct shape *read_type(struct reader *r, struct str type)
{
        struct shape *shape;

        if (type.n && type.p[0] == '@') {
                shape = definition(r, str_n(type.p + 1, type.n - 1));
                if (!shape)
                        (void)bad(r, "unknown prefix", type);
                return shape;
        }
        shape = arena_new(r->a, struct shape);
        return read_inline(r, type, shape) < 0 ? NULL : shape;
}

static const char *const *read_keys(struct reader *r, struct str text)
{
        size_t n = 1, i = 0;
        const char **keys;

        for (size_t at = 0; at < text.n; at++)
                n += text.p[at] == ',';
        keys = arena_new_array(r->a, const char *, n + 1);
        while (text.n)
                keys[i++] = keep(r, str_split(&text, ','));
        return keys;
}

static int read_list(struct reader *r, struct str kind, struct shape *shape)
{
        struct str keys = kind, name = str_split(&keys, ':');

        if (shape->kind != SHAPE_LIST)
                return bad(r, "no list", kind);
        shape->list_told = true;
        shape->list = LIST_ATOMIC;
        if (str_eq(name, STR("set"))) {
                shape->list = LIST_SET;
        } else if (str_eq(name, STR("map"))) {
                shape->list = LIST_MAP;
                shape->keys = read_keys(r, keys);
        } else if (!str_eq(name, STR("atomic"))) {
                return bad(r, "unknown list", kind);
        }
        return 0;
}

/* FIELD is NULL in the line of a definition. */
static int read_option(struct reader *r, struct str option, struct shape *shape, struct shape_field *field)
{
        struct str value = option, name = str_split(&value, '=');

        if (field && str_eq(name, STR("merge"))) {
                field->strategy |= PATCH_MERGE;
                field->merge_key = value.n ? keep(r, value) : NULL;
        } else if (field && str_eq(name, STR("retain"))) {
                field->strategy |= PATCH_RETAIN_KEYS;
        } else if (field && shape->name) {
                return bad(r, "option of a definition in the line of a field", option);
        } else if (str_eq(name, STR("list"))) {
                return read_list(r, value, shape);
        } else if (str_eq(name, STR("atomic"))) {
                shape->atomic = true;
        } else if (str_eq(name, STR("gvk"))) {
                shape->gvk = keep(r, value);
        } else {
                return bad(r, "unknown option", option);
        }
        return 0;
}

static int read_options(struct reader *r, struct str rest, struct shape *shape, struct shape_field *field)
{
        while (rest.n) {
                if (rest.p[0] == '"') {
                        if (rest.n < 2 || rest.p[rest.n - 1] != '"')
                                return bad(r, "unfinished description", rest);
                        *(field ? &field->description
                                : &shape->description) = keep(r, str_n(rest.p + 1, rest.n - 2));
                        return 0;
                }
                if (read_option(r, str_split(&rest, ' '), shape, field) < 0)
                        return -1;
        }
        return 0;
}

/* The table has required fields in the order in which messages name them. */
static const char *const *required_fields(struct reader *r)
{
        const char **names = arena_new_array(r->a, const char *, r->fields.n + 1);
        size_t n = 0;

        vec_foreach (field, &r->fields) {
                if (field->required)
                        names[n++] = field->name;
        }
        return names;
}

static void finish_definition(struct reader *r)
{
        if (r->current && r->fields.n) {
                struct shape_field *fields = arena_memdup(r->a, r->fields.v,
                                                          r->fields.n * sizeof(*r->fields.v));

                r->current->required = required_fields(r);
                shape_sort_fields(fields, r->fields.n);
                r->current->fields = fields;
                r->current->n_fields = r->fields.n;
        }
        r->fields.n = 0;
        r->current = NULL;
}

static bool is_option(struct str word)
{
        return word.n == 0 || word.p[0] == '"' || str_eq(word, STR("atomic")) || memchr(word.p, '=', word.n);
}

static int read_definition(struct reader *r, struct str line)
{
        struct str rest = line, name = str_split(&rest, ' '), after = rest, type = str_split(&after, ' ');
        struct shape *shape = definition(r, name);

        finish_definition(r);
        if (!shape)
                return bad(r, "unknown prefix", name);
        r->n_defined++;
        if (is_option(type)) {
                shape->kind = SHAPE_OBJECT;
                r->current = shape;
        } else {
                if (read_inline(r, type, shape) < 0)
                        return -1;
                rest = after;
        }
        return read_options(r, rest, shape, NULL);
}

/* What server-side apply makes of a list that says only how it is patched. */
static void conclude_list(struct reader *r, const struct shape_field *field, struct shape *shape)
{
        const char **keys;

        if (shape->kind != SHAPE_LIST || shape->list_told || !(field->strategy & PATCH_MERGE))
                return;
        shape->list = LIST_SET;
        if (!field->merge_key)
                return;
        keys = arena_new_array(r->a, const char *, 2);
        keys[0] = field->merge_key;
        shape->list = LIST_MAP;
        shape->keys = keys;
}

static int read_field(struct reader *r, struct str line)
{
        struct str rest = line, name = str_split(&rest, ' '), type = str_split(&rest, ' ');
        struct shape_field *field;
        struct shape *shape;

        if (!r->current || name.n == 0)
                return bad(r, "a field without a definition", line);
        field = vec_push(&r->fields);
        if (name.p[name.n - 1] == '!') {
                field->required = true;
                name.n--;
        }
        field->name = keep(r, name);
        shape = read_type(r, type);
        if (!shape)
                return -1;
        field->shape = shape;
        if (read_options(r, rest, shape, field) < 0)
                return -1;
        conclude_list(r, field, shape);
        return 0;
}

static int read_prefix(struct reader *r, struct str line)
{
        struct str text = line, key = str_split(&text, ' ');
        struct prefix *prefix = vec_push(&r->prefixes);

        *prefix = (struct prefix){key, text};
        return 0;
}

static int read_line(struct reader *r, struct str line)
{
        if (line.n == 0 || line.p[0] == '#')
                return 0;
        if (line.p[0] == '~')
                return read_prefix(r, str_n(line.p + 1, line.n - 1));
        if (line.p[0] == ':')
                return read_definition(r, str_n(line.p + 1, line.n - 1));
        return read_field(r, line);
}

static int by_name(const void *x, const void *y)
{
        return strcmp((*(struct shape *const *)x)->name, (*(struct shape *const *)y)->name);
}

int shapes_read_table(struct shapes *s, struct str table, struct err *err)
{
        struct reader r = {.s = s, .a = &s->arena, .err = err};
        int rc = 0;

        while (rc == 0 && table.n) {
                r.line++;
                rc = read_line(&r, str_split(&table, '\n'));
        }
        finish_definition(&r);
        if (rc == 0 && r.n_defined != s->sorted.n)
                rc = err_set(err, E_INVALID, "table of types: %zu types are used and %zu defined",
                             s->sorted.n, r.n_defined);
        if (s->sorted.n)
                qsort(s->sorted.v, s->sorted.n, sizeof(*s->sorted.v), by_name);
        map_done(&r.named);
        vec_done(&r.prefixes);
        vec_done(&r.fields);
        return rc;
}
