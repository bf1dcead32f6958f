#include "kube/select.h"

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

struct parser {
        struct arena *a;
        int (*check)(const struct label_requirement *r, struct err *err);
        struct err *err;
};

static int unexpected(struct parser *p, struct str found, const char *expected)
{
        return err_set(p->err, E_INVALID, "unable to parse requirement: found '%.*s', expected: %s",
                       STR_ARG(found), expected);
}

static struct str copied(struct parser *p, struct str s)
{
        return str_n(arena_strndup(p->a, s.p ? s.p : "", s.n), s.n);
}

static void add_value(struct parser *p, struct label_requirement *r, struct str value)
{
        struct str *grown = arena_new_array(p->a, struct str, r->n + 1);

        if (r->n)
                memcpy(grown, r->values, r->n * sizeof(*grown));
        grown[r->n++] = copied(p, value);
        r->values = grown;
}

/* ( a, b ) */
static int parse_set(struct parser *p, struct lexer *l, struct label_requirement *r)
{
        if (!token_is(next_token(l), "("))
                return err_set(p->err, E_INVALID, "unable to parse requirement: found '%.*s' expected: '('",
                               STR_ARG(l->token));
        for (;;) {
                struct str t = peek_token(l);

                if (is_word(t))
                        add_value(p, r, next_token(l));
                else if (token_is(t, ",") || token_is(t, ")"))
                        add_value(p, r, STR(""));
                else
                        return unexpected(p, t, "',', ')' or identifier");
                t = next_token(l);
                if (token_is(t, ")"))
                        return 0;
                if (!token_is(t, ","))
                        return unexpected(p, t, "',' or ')'");
        }
}

static const struct {
        const char *text;
        enum label_op op;
        bool is_set;
} operators[] = {
        {"=", LABEL_IN, false},        {"==", LABEL_IN, false},  {"!=", LABEL_NOT_IN, false},
        {">", LABEL_GREATER, false},   {"<", LABEL_LESS, false}, {"in", LABEL_IN, true},
        {"notin", LABEL_NOT_IN, true},
};

static int parse_operator(struct parser *p, struct lexer *l, struct label_requirement *r)
{
        struct str t = next_token(l);

        for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
                if (!token_is(t, operators[i].text))
                        continue;
                r->op = operators[i].op;
                if (operators[i].is_set)
                        return parse_set(p, l, r);
                add_value(p, r, is_word(peek_token(l)) ? next_token(l) : STR(""));
                return 0;
        }
        return unexpected(p, t, "'=', '!=', '==', 'in', notin'");
}

static int parse_requirement(struct parser *p, struct lexer *l, struct label_requirement *r)
{
        struct str t = next_token(l);

        if (token_is(t, "!")) {
                r->op = LABEL_NOT_EXISTS;
                t = next_token(l);
        } else {
                r->op = LABEL_EXISTS;
        }
        if (!is_word(t))
                return err_set(p->err, E_INVALID, "found '%.*s', expected: !, identifier, or 'end of string'",
                               STR_ARG(t));
        r->key = copied(p, t);
        t = peek_token(l);
        if (t.n > 0 && !token_is(t, ",")) {
                if (r->op == LABEL_NOT_EXISTS)
                        return unexpected(p, t, "',' or 'end of string'");
                if (parse_operator(p, l, r) < 0)
                        return -1;
        }
        return p->check ? p->check(r, p->err) : 0;
}

int label_selector_parse(const char *text, int (*check)(const struct label_requirement *r, struct err *err),
                         struct label_selector *ret, struct arena *a, struct err *err)
{
        struct parser p = {.a = a, .check = check, .err = err};
        struct lexer l = {.rest = str_of(text)};
        size_t max = 1;

        for (const char *at = text; *at; at++)
                max += *at == ',';
        *ret = (struct label_selector){.v = arena_new_array(a, struct label_requirement, max)};
        while (peek_token(&l).n > 0) {
                if (parse_requirement(&p, &l, &ret->v[ret->n++]) < 0)
                        return -1;
                if (next_token(&l).n == 0)
                        break;
                if (!token_is(l.token, ","))
                        return err_set(err, E_INVALID, "found '%.*s', expected: ',' or 'end of string'",
                                       STR_ARG(l.token));
                if (peek_token(&l).n == 0)
                        return err_set(err, E_INVALID, "found '', expected: identifier after ','");
        }
        return 0;
}

/* ---- matching */

static bool compare_number(const struct label_requirement *r, struct str have)
{
        int64_t x, y;

        if (!str_to_i64(have, &x) || !str_to_i64(r->values[0], &y))
                return false;
        return r->op == LABEL_GREATER ? x > y : x < y;
}

static bool requirement_met(const struct label_requirement *r, const struct json *labels)
{
        const struct json *label = json_get(labels, r->key);
        bool in = false;

        if (!label)
                return r->op == LABEL_NOT_IN || r->op == LABEL_NOT_EXISTS;
        if (r->op == LABEL_GREATER || r->op == LABEL_LESS)
                return compare_number(r, json_text(label));
        for (size_t i = 0; i < r->n && !in; i++)
                in = str_eq(json_text(label), r->values[i]);
        return r->op == LABEL_EXISTS || (r->op == LABEL_IN && in) || (r->op == LABEL_NOT_IN && !in);
}

bool label_selector_matches(const struct label_selector *s, const struct json *labels)
{
        for (size_t i = 0; i < s->n; i++)
                if (!requirement_met(&s->v[i], labels))
                        return false;
        return true;
}
