#include "local/api_internal.h"
#include "local/check.h"

struct term { /* on one field */
        const char *path, *value;
        bool differs; /* != */
};

struct selector {
        struct label_selector labels;
        struct term *fields;
        size_t n_fields;
};

bool selector_empty(const struct selector *s)
{
        return !s || (s->labels.n == 0 && s->n_fields == 0);
}

const char *selector_namespace(const struct selector *s)
{
        for (size_t i = 0; s && i < s->n_fields; i++)
                if (!s->fields[i].differs && streq(s->fields[i].path, "metadata.namespace"))
                        return s->fields[i].value;
        return NULL;
}

/* ---- labels */

static int check_requirement(const struct label_requirement *r, struct err *err)
{
        const char *wrong = check_qualified(r->key, 0);
        int64_t number;

        if (wrong)
                return err_set(err, E_INVALID, "unable to parse requirement: invalid label key \"%.*s\": %s",
                               STR_ARG(r->key), wrong);
        for (size_t i = 0; i < r->n; i++) {
                wrong = check_label_value(r->values[i], 0);
                if (wrong)
                        return err_set(err, E_INVALID,
                                       "unable to parse requirement: invalid label value: \"%.*s\": at key: "
                                       "\"%.*s\": %s",
                                       STR_ARG(r->values[i]), STR_ARG(r->key), wrong);
                if ((r->op == LABEL_GREATER || r->op == LABEL_LESS) && !str_to_i64(r->values[i], &number))
                        return err_set(
                                err, E_INVALID,
                                "unable to parse requirement: for 'Gt', 'Lt' operators, the value must "
                                "be an integer");
        }
        return 0;
}

static int parse_labels(struct call *c, const char *text, struct selector *s)
{
        struct err err = ERR_INIT;

        if (label_selector_parse(text, check_requirement, &s->labels, c->a, &err) < 0)
                return fail_bad_request(c, "%s", err.text);
        return 0;
}

/* ---- fields: a=b,c!=d with \ before , = and \ */

static int known_field(struct call *c, const char *path)
{
        const struct api_type *t = c->type;

        if (streq(path, "metadata.name") ||
            (streq(path, "metadata.namespace") && (t->kube.namespaced || t->crd)))
                return 0;
        if (t->strategy && t->strategy->field) {
                if (t->strategy->field(NULL, path, c->a))
                        return 0;
                return fail_bad_request(c, "field label not supported: %s", path);
        }
        if (t->crd)
                return fail_bad_request(c, "field label not supported: %s", path);
        return fail_bad_request(
                c, "\"%s\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                path);
}

static const char *unescaped(struct call *c, struct str s)
{
        char *out = arena_strndup(c->a, s.p, s.n), *to = out;

        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '\\' && i + 1 < s.n)
                        i++;
                *to++ = s.p[i];
        }
        *to = 0;
        return out;
}

/* Up to the next ',' that is not escaped. */
static struct str next_term(struct str *rest)
{
        size_t n = 0;
        struct str term;

        while (n < rest->n && rest->p[n] != ',')
                n += rest->p[n] == '\\' && n + 1 < rest->n ? 2 : 1;
        term = str_n(rest->p, n);
        n = MIN(n + 1, rest->n);
        *rest = str_n(rest->p + n, rest->n - n);
        return term;
}

static int parse_term(struct call *c, const char *text, struct str term, struct term *t)
{
        const char *equals = memchr(term.p, '=', term.n);
        size_t key, value;

        if (!equals)
                return fail_bad_request(c, "invalid selector: '%s'; can't understand '%.*s'", text,
                                        STR_ARG(term));
        key = (size_t)(equals - term.p);
        value = key + 1;
        if (key > 0 && term.p[key - 1] == '!') {
                t->differs = true;
                key--;
        } else if (value < term.n && term.p[value] == '=') {
                value++;
        }
        t->path = arena_strndup(c->a, term.p, key);
        t->value = unescaped(c, str_n(term.p + value, term.n - value));
        return known_field(c, t->path);
}

static int parse_fields(struct call *c, const char *text, struct selector *s)
{
        struct str rest = str_of(text);
        size_t max = 1;

        for (const char *p = text; *p; p++)
                max += *p == ',';
        s->fields = arena_new_array(c->a, struct term, max);
        while (rest.n > 0) {
                struct str term = next_term(&rest);

                if (term.n > 0 && parse_term(c, text, term, &s->fields[s->n_fields++]) < 0)
                        return -1;
        }
        return 0;
}

int selector_parse(struct call *c, const char *labels, const char *fields, struct selector **ret)
{
        struct selector *s = arena_new(c->a, struct selector);

        *ret = s;
        if (labels && parse_labels(c, labels, s) < 0)
                return -1;
        return fields ? parse_fields(c, fields, s) : 0;
}

/* ---- matching */

static bool labels_match(const struct selector *s, const struct object *o, struct arena *a)
{
        struct str text = object_find_labels(o->text);
        const struct json *labels = text.n ? json_parse(a, text, NULL, NULL) : NULL;

        return label_selector_matches(&s->labels, labels);
}

static const char *field_value(const struct api_type *type, const struct object *o, const char *path,
                               const struct json **parsed, struct arena *a)
{
        if (streq(path, "metadata.name"))
                return o->name;
        if (streq(path, "metadata.namespace"))
                return o->ns;
        if (!*parsed)
                *parsed = object_parse(o, a);
        return type->strategy->field(*parsed, path, a);
}

static bool fields_match(const struct selector *s, const struct api_type *type, const struct object *o,
                         struct arena *a)
{
        const struct json *parsed = NULL;

        for (size_t i = 0; i < s->n_fields; i++) {
                const struct term *t = &s->fields[i];

                if (streq(field_value(type, o, t->path, &parsed, a), t->value) == t->differs)
                        return false;
        }
        return true;
}

bool selector_matches(const struct selector *s, const struct api_type *type, const struct object *o)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (!s)
                return true;
        return (s->labels.n == 0 || labels_match(s, o, &a)) &&
               (s->n_fields == 0 || fields_match(s, type, o, &a));
}
