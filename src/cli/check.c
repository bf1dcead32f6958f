#include "cli/check.h"

#include "cli/crds.h"
#include "cli/show.h"
#include "kinds/kinds.h"

enum { DROPPED_MAX = 256 << 10, TYPOS_MAX = 3 };

/* A version of one of our kinds. */
struct definition {
        const struct kind *kind;
        const struct json *shape; /* openAPIV3Schema */
        struct schema *schema;
};

struct check {
        struct resources crds;
        VEC(struct definition) list;
};

/* ---- the definitions */

static void add(struct check *c, const struct json *crd)
{
        const struct json *spec = json_at(crd, "spec");

        json_foreach (version, json_at(spec, "versions")) {
                const struct json *shape = json_path(version, "schema.openAPIV3Schema");
                const char *api = arena_printf(&c->crds.arena, "%s/%s", json_str_or(spec, "group", ""),
                                               json_str_or(version, "name", ""));
                const struct kind *kind = kinds_find(api, json_str(json_at(spec, "names"), "kind"));
                struct err err = ERR_INIT;
                struct schema *schema = kind && shape ? schema_new(shape, &err) : NULL;

                if (schema)
                        *vec_push(&c->list) = (struct definition){kind, shape, schema};
        }
}

struct check *check_new(void)
{
        struct check *c = xcalloc(1, sizeof(*c));

        resources_read_text(&c->crds, "(definitions)", str_of(CRDS));
        for (size_t i = 0; i < c->crds.list.n; i++)
                add(c, c->crds.list.v[i].object);
        return c;
}

void check_free(struct check *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->list.n; i++)
                schema_free(c->list.v[i].schema);
        vec_done(&c->list);
        resources_done(&c->crds);
        free(c);
}

static const struct definition *definition_of(const struct check *c, const struct kind *kind)
{
        for (size_t i = 0; i < c->list.n; i++)
                if (c->list.v[i].kind == kind)
                        return &c->list.v[i];
        return NULL;
}

/* ---- members that the kind does not have */

/* The next part of a dotted path: a name, or an element of a list; false: the end. */
static bool next_part(struct str *path, struct str *ret_name, bool *ret_element)
{
        size_t n = 0;

        if (path->n && path->p[0] == '.')
                *path = str_n(path->p + 1, path->n - 1);
        if (!path->n)
                return false;
        *ret_element = path->p[0] == '[' && path->n > 1 && path->p[1] != '"';
        if (path->p[0] == '[') {
                const char *end = memchr(path->p, ']', path->n);
                size_t quote = *ret_element ? 0 : 1;

                n = end ? (size_t)(end - path->p) + 1 : path->n;
                *ret_name = n > 2 + 2 * quote ? str_n(path->p + 1 + quote, n - 2 - 2 * quote) : STR_NULL;
        } else {
                while (n < path->n && path->p[n] != '.' && path->p[n] != '[')
                        n++;
                *ret_name = str_n(path->p, n);
        }
        *path = str_n(path->p + n, path->n - n);
        return true;
}

/* What the definition says of PATH's parent, and the last name in PATH. */
static const struct json *shape_above(const struct json *shape, struct str path, struct str *ret_last)
{
        const struct json *above = NULL;
        bool element;

        while (next_part(&path, ret_last, &element)) {
                const struct json *member = json_get(json_at(shape, "properties"), *ret_last);

                above = shape;
                shape = element  ? json_at(shape, "items")
                        : member ? member
                                 : json_at(shape, "additionalProperties");
        }
        return above;
}

/* The member of SHAPE that WORD was probably meant to be, or NULL. */
static const char *nearest(const struct json *shape, const char *word)
{
        const char *best = NULL;
        size_t least = TYPOS_MAX + 1;

        json_foreach (member, json_at(shape, "properties")) {
                size_t n = text_typos(word, member->key);

                if (str_case_eq(str_of(word), str_of(member->key)))
                        n = 0;
                if (n < least && 2 * n < strlen(member->key)) {
                        least = n;
                        best = member->key;
                }
        }
        return best;
}

static void complain_unknown(struct check *c, struct resources *r, const struct resource *one,
                             const struct definition *d, struct str path)
{
        const char *text = arena_strndup(&r->arena, path.p, path.n);
        const struct json *at = json_path(one->object, text);
        struct str last = STR_NULL;
        const struct json *shape = shape_above(d->shape, path, &last);
        const char *meant = nearest(shape, arena_strndup(&r->arena, last.p ? last.p : "", last.n));

        if (meant)
                resources_complain(r, one->file, at, "%s: unknown field; did you mean '%s'?", text, meant);
        else
                resources_complain(r, one->file, at, "%s: unknown field, which %s does not have", text,
                                   d->kind->type->kind);
}

static void check_unknown(struct check *c, struct resources *r, const struct resource *one,
                          const struct definition *d, struct json *copy)
{
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(DROPPED_MAX);
        struct str rest;

        schema_prune(d->schema, copy, &dropped);
        rest = buf_str(&dropped);
        while (rest.n) {
                struct str path = str_split(&rest, '\n');

                if (path.n)
                        complain_unknown(c, r, one, d, path);
        }
}

/* ---- values that it does not take */

/* The API server's `Unsupported value: "x": supported values: "a", "b"` as `"x" is not one of a, b`. */
static const char *say_choice(struct arena *a, const char *message)
{
        static const char lead[] = "Unsupported value: ", middle[] = ": supported values: ";
        const char *at = strstr(message, middle);
        char *list, *to;

        if (!at || !str_has_prefix(str_of(message), str_of(lead)))
                return message;
        to = list = arena_strdup(a, at + strlen(middle));
        for (const char *p = list; *p; p++)
                if (*p != '"')
                        *to++ = *p;
        *to = '\0';
        return arena_printf(a, "%.*s is not one of %s", (int)(at - message - (ptrdiff_t)strlen(lead)),
                            message + strlen(lead), list);
}

/* `Invalid value: "string": spec.x in body must be of type integer: "string"`: what stands behind the name says it all. */
static const char *say_shortly(struct arena *a, const struct schema_cause *cause)
{
        const char *body = strstr(cause->message, " in body "), *is = body ? strrchr(body, ':') : NULL;

        if (cause->type == CAUSE_UNSUPPORTED)
                return say_choice(a, cause->message);
        body = body ? body + strlen(" in body ") : cause->message;
        if (is && str_has_prefix(str_of(body), STR("must be of type ")) &&
            str_has_prefix(str_of(is), STR(": \"")))
                return arena_printf(a, "%.*s, not %.*s", (int)(is - body), body, (int)strlen(is) - 4, is + 3);
        return body;
}

static void check_values(struct resources *r, const struct resource *one, const struct definition *d,
                         struct json *copy)
{
        struct schema_report report = {0};

        schema_default(d->schema, copy, &r->arena);
        if (schema_validate(d->schema, copy, &r->arena, &report))
                return;
        for (size_t i = 0; i < report.n; i++)
                resources_complain(r, one->file, report.causes[i].at, "%s: %s", report.causes[i].field,
                                   say_shortly(&r->arena, &report.causes[i]));
}

/* ---- all */

/* One of our groups with a kind or a version that it does not have: nobody would serve that. */
static void check_stranger(struct resources *r, const struct resource *one)
{
        struct str version = str_of(json_str_or(one->object, "apiVersion", "")),
                   group = str_split(&version, '/');
        const char *name = json_str_or(one->object, "kind", "");

        for (size_t i = 0; kinds_at(i); i++) {
                const struct kube_type *t = kinds_at(i)->type;

                if (!str_eq(group, str_of(t->group)))
                        continue;
                if (streq(t->kind, name)) {
                        resources_complain(r, one->file, json_at(one->object, "apiVersion"),
                                           "apiVersion: %s has no version '%.*s'; it is %s/%s", t->kind,
                                           STR_ARG(version), t->group, t->version);
                        return;
                }
                if (text_typos(name, t->kind) <= TYPOS_MAX) {
                        resources_complain(r, one->file, json_at(one->object, "kind"),
                                           "kind: there is no '%s' in %s; did you mean '%s'?", name, t->group,
                                           t->kind);
                        return;
                }
        }
}

size_t check_all(struct check *c, struct resources *r)
{
        size_t ours = 0;

        for (size_t i = 0; i < r->list.n; i++) {
                const struct resource *one = &r->list.v[i];
                const struct kind *kind = kinds_find(json_str(one->object, "apiVersion"),
                                                     json_str(one->object, "kind"));
                const struct definition *d = kind ? definition_of(c, kind) : NULL;
                struct json *copy;

                if (!d) {
                        check_stranger(r, one);
                        continue;
                }
                ours++;
                copy = json_copy(&r->arena, one->object);
                check_unknown(c, r, one, d, copy);
                check_values(r, one, d, copy);
        }
        return ours;
}
