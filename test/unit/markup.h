/*
 * markup.h - whether a text is well-formed markup: every element ends, attributes are quoted, & begins an entity.
 */
#pragma once

#include "unit/unit.h"

enum { MARKUP_DEPTH = 64 };

struct markup {
        struct str open[MARKUP_DEPTH];
        size_t depth, elements;
};

static inline bool markup_is_void(struct str name)
{
        return str_eq(name, STR("meta")) || str_eq(name, STR("!doctype"));
}

/* Behind the tag that begins at P, which is <. */
static inline const char *markup_tag(struct markup *m, const char *p)
{
        bool end = p[1] == '/', empty;
        struct str name = {p + 1 + end, strcspn(p + 1 + end, " />\n")};
        const char *close = name.p + name.n;

        for (char quote = '\0'; *close && (quote || *close != '>'); close++) {
                assert_true(*close != '<');
                if (*close == '"')
                        quote = quote ? '\0' : '"';
        }
        assert_int_equal(*close, '>');
        assert_true(name.n > 0);
        empty = close[-1] == '/' || markup_is_void(name);
        if (end) {
                assert_true(m->depth > 0);
                m->depth--;
                if (!str_eq(m->open[m->depth], name))
                        fail_msg("</%.*s> ends <%.*s>", STR_ARG(name), STR_ARG(m->open[m->depth]));
        } else if (!empty) {
                assert_true(m->depth < MARKUP_DEPTH);
                m->open[m->depth++] = name;
        }
        m->elements++;
        return close + 1;
}

/* Returns how many tags there are. */
static inline size_t assert_markup(const char *text)
{
        struct markup m = {.depth = 0};

        for (const char *p = text; *p;) {
                if (*p == '<') {
                        p = markup_tag(&m, p);
                        continue;
                }
                if (*p == '&')
                        assert_true(strcspn(p, ";") < 8);
                assert_true((unsigned char)*p >= 0x20 || *p == '\n');
                p++;
        }
        assert_int_equal(m.depth, 0);
        return m.elements;
}
