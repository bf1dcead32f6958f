#include "local/api_internal.h"
#include "local/check.h"

enum op { OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS, OP_GREATER, OP_LESS };

struct requirement { /* on one label */
        struct str key;
        enum op op;
        struct str *values;
        size_t n;
};

struct term { /* on one field */
        const char *path, *value;
        bool differs; /* != */
};

struct selector {
        struct requirement *labels;
        struct term *fields;
        size_t n_labels, n_fields;
};

bool selector_empty(const struct selector *s)
{
        return !s || (s->n_labels == 0 && s->n_fields == 0);
}

const char *selector_namespace(const struct selector *s)
{
        for (size_t i = 0; s && i < s->n_fields; i++)
                if (!s->fields[i].differs && streq(s->fields[i].path, "metadata.namespace"))
                        return s->fields[i].value;
        return NULL;
}

/* ---- labels: a lexer and a parser */

struct lexer {
        struct str rest;
        struct str token; /* the last one; empty at the end */
};

static bool is_operator(char ch)
{
        return strchr("=!(),<>", ch) && ch;
}

static struct str next_token(struct lexer *l)
{
        size_t n = 0;

        while (l->rest.n > 0 && strchr(" \t\r\n", l->rest.p[0]))
                l->rest = str_n(l->rest.p + 1, l->rest.n - 1);
        if (l->rest.n >= 2 && (memcmp(l->rest.p, "==", 2) == 0 || memcmp(l->rest.p, "!=", 2) == 0))
                n = 2;
        else if (l->rest.n > 0 && is_operator(l->rest.p[0]))
                n = 1;
        else
                while (n < l->rest.n && !is_operator(l->rest.p[n]) && !strchr(" \t\r\n", l->rest.p[n]))
                        n++;
        l->token = str_n(l->rest.p, n);
        l->rest = str_n(l->rest.p + n, l->rest.n - n);
        return l->token;
}

static struct str peek_token(const struct lexer *l)
{
        struct lexer copy = *l;

        return next_token(&copy);
}

static bool token_is(struct str token, const char *text)
{
        return str_eq(token, str_of(text));
}

static bool is_word(struct str token)
{
        return token.n > 0 && !is_operator(token.p[0]);
}

static int unexpected(struct call *c, struct str found, const char *expected)
{
        return fail_bad_request(c, "unable to parse requirement: found '%.*s', expected: %s", STR_ARG(found),
                                expected);
}

static struct str copied(struct call *c, struct str s)
{
        return str_n(arena_strndup(c->a, s.p ? s.p : "", s.n), s.n);
}

static void add_value(struct call *c, struct requirement *r, struct str value)
{
        struct str *grown = arena_new_array(c->a, struct str, r->n + 1);

        if (r->n)
                memcpy(grown, r->values, r->n * sizeof(*grown));
        grown[r->n++] = copied(c, value);
        r->values = grown;
}

/* ( a, b ) */
static int parse_set(struct call *c, struct lexer *l, struct requirement *r)
{
        if (!token_is(next_token(l), "("))
                return fail_bad_request(c, "unable to parse requirement: found '%.*s' expected: '('",
                                        STR_ARG(l->token));
        for (;;) {
                struct str t = peek_token(l);

                if (is_word(t))
                        add_value(c, r, next_token(l));
                else if (token_is(t, ",") || token_is(t, ")"))
                        add_value(c, r, STR(""));
                else
                        return unexpected(c, t, "',', ')' or identifier");
                t = next_token(l);
                if (token_is(t, ")"))
                        return 0;
                if (!token_is(t, ","))
                        return unexpected(c, t, "',' or ')'");
        }
}

static const struct {
        const char *text;
        enum op op;
        bool is_set;
} operators[] = {
        {"=", OP_IN, false},   {"==", OP_IN, false}, {"!=", OP_NOT_IN, false},   {">", OP_GREATER, false},
        {"<", OP_LESS, false}, {"in", OP_IN, true},  {"notin", OP_NOT_IN, true},
};

static int parse_operator(struct call *c, struct lexer *l, struct requirement *r)
{
        struct str t = next_token(l);

        for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
                if (!token_is(t, operators[i].text))
                        continue;
                r->op = operators[i].op;
                if (operators[i].is_set)
                        return parse_set(c, l, r);
                add_value(c, r, is_word(peek_token(l)) ? next_token(l) : STR(""));
                return 0;
        }
        return unexpected(c, t, "'=', '!=', '==', 'in', notin'");
}

static int check_requirement(struct call *c, const struct requirement *r)
{
        const char *wrong = check_qualified(r->key, 0);
        int64_t number;

        if (wrong)
                return fail_bad_request(c, "unable to parse requirement: invalid label key \"%.*s\": %s",
                                        STR_ARG(r->key), wrong);
        for (size_t i = 0; i < r->n; i++) {
                wrong = check_label_value(r->values[i], 0);
                if (wrong)
                        return fail_bad_request(
                                c,
                                "unable to parse requirement: invalid label value: \"%.*s\": at key: "
                                "\"%.*s\": %s",
                                STR_ARG(r->values[i]), STR_ARG(r->key), wrong);
                if ((r->op == OP_GREATER || r->op == OP_LESS) && !str_to_i64(r->values[i], &number))
                        return fail_bad_request(
                                c, "unable to parse requirement: for 'Gt', 'Lt' operators, the value must "
                                   "be an integer");
        }
        return 0;
}

static int parse_requirement(struct call *c, struct lexer *l, struct requirement *r)
{
        struct str t = next_token(l);

        if (token_is(t, "!")) {
                r->op = OP_NOT_EXISTS;
                t = next_token(l);
        } else {
                r->op = OP_EXISTS;
        }
        if (!is_word(t))
                return fail_bad_request(c, "found '%.*s', expected: !, identifier, or 'end of string'",
                                        STR_ARG(t));
        r->key = copied(c, t);
        t = peek_token(l);
        if (t.n > 0 && !token_is(t, ",")) {
                if (r->op == OP_NOT_EXISTS)
                        return unexpected(c, t, "',' or 'end of string'");
                if (parse_operator(c, l, r) < 0)
                        return -1;
        }
        return check_requirement(c, r);
}

static int parse_labels(struct call *c, const char *text, struct selector *s)
{
        struct lexer l = {.rest = str_of(text)};
        size_t max = 1;

        for (const char *p = text; *p; p++)
                max += *p == ',';
        s->labels = arena_new_array(c->a, struct requirement, max);
        while (peek_token(&l).n > 0) {
                if (parse_requirement(c, &l, &s->labels[s->n_labels++]) < 0)
                        return -1;
                if (next_token(&l).n == 0)
                        break;
                if (!token_is(l.token, ","))
                        return fail_bad_request(c, "found '%.*s', expected: ',' or 'end of string'",
                                                STR_ARG(l.token));
                if (peek_token(&l).n == 0)
                        return fail_bad_request(c, "found '', expected: identifier after ','");
        }
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

static bool compare_number(const struct requirement *r, struct str have)
{
        int64_t x, y;

        if (!str_to_i64(have, &x) || !str_to_i64(r->values[0], &y))
                return false;
        return r->op == OP_GREATER ? x > y : x < y;
}

static bool requirement_met(const struct requirement *r, const struct json *labels)
{
        const struct json *label = json_get(labels, r->key);
        bool in = false;

        if (!label)
                return r->op == OP_NOT_IN || r->op == OP_NOT_EXISTS;
        if (r->op == OP_GREATER || r->op == OP_LESS)
                return compare_number(r, json_text(label));
        for (size_t i = 0; i < r->n && !in; i++)
                in = str_eq(json_text(label), r->values[i]);
        return r->op == OP_EXISTS || (r->op == OP_IN && in) || (r->op == OP_NOT_IN && !in);
}

static bool labels_match(const struct selector *s, const struct object *o, struct arena *a)
{
        const struct json *labels = o->labels.n ? json_parse(a, o->labels, NULL, NULL) : NULL;

        for (size_t i = 0; i < s->n_labels; i++)
                if (!requirement_met(&s->labels[i], labels))
                        return false;
        return true;
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
        return (s->n_labels == 0 || labels_match(s, o, &a)) &&
               (s->n_fields == 0 || fields_match(s, type, o, &a));
}
