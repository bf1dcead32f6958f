#include "json/pattern_internal.h"

enum {
        PATTERN_BYTES_MAX = 4096,
        GROUP_DEPTH_MAX = 100,
        REPEAT_MAX = 1000, /* of one operator, and of all around it multiplied: RE2's own limit */
};

enum { FLAG_FOLD = 1, FLAG_MULTILINE = 2, FLAG_DOT_ALL = 4 };

struct parser {
        struct arena *arena;
        struct str text;
        size_t at;
        unsigned flags, depth;
        bool only_flags; /* the last atom was (?i) or the like: nothing to repeat */
        struct err *err;
};

static struct re *parse_alternatives(struct parser *p);

static void *fail(struct parser *p, const char *what)
{
        err_set(p->err, E_INVALID, "%s at character %zu of pattern `%.*s`", what, p->at + 1,
                STR_ARG(p->text));
        return NULL;
}

static bool done(const struct parser *p)
{
        return p->at >= p->text.n;
}

static char peek(const struct parser *p, size_t ahead)
{
        return p->at + ahead < p->text.n ? p->text.p[p->at + ahead] : '\0';
}

static bool take(struct parser *p, const char *literal)
{
        size_t n = strlen(literal);

        if (p->text.n - p->at < n || memcmp(p->text.p + p->at, literal, n) != 0)
                return false;
        p->at += n;
        return true;
}

uint32_t utf8_next(struct str s, size_t *at)
{
        const unsigned char *p = (const unsigned char *)s.p + *at;
        size_t left = s.n - *at, n;
        uint32_t c;

        n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
        if (n == 0 || n > left || !utf8_valid((const char *)p, n)) {
                *at += 1;
                return 0xFFFD;
        }
        c = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
        for (size_t i = 1; i < n; i++)
                c = c << 6 | (p[i] & 0x3Fu);
        *at += n;
        return c;
}

/* ---- trees */

static struct re *new_re(struct parser *p, enum re_kind kind)
{
        struct re *re = arena_new(p->arena, struct re);

        re->kind = kind;
        return re;
}

static struct re *join(struct parser *p, enum re_kind kind, struct re *left, struct re *right)
{
        struct re *re;

        if (!left || !right)
                return left ? left : right;
        re = new_re(p, kind);
        re->left = left;
        re->right = right;
        return re;
}

/* ---- sets of characters */

typedef VEC(struct range) range_vec;

static void add_range(range_vec *set, uint32_t low, uint32_t high)
{
        *vec_push(set) = (struct range){low, high};
}

static int compare_ranges(const void *a, const void *b)
{
        const struct range *x = a, *y = b;

        return x->low < y->low ? -1 : x->low > y->low;
}

/* Sorts, joins what touches. */
static void settle(range_vec *set)
{
        size_t n = 0;

        if (set->n == 0)
                return;
        qsort(set->v, set->n, sizeof(*set->v), compare_ranges);
        for (size_t i = 1; i < set->n; i++) {
                if (set->v[i].low <= set->v[n].high + 1)
                        set->v[n].high = MAX(set->v[n].high, set->v[i].high);
                else
                        set->v[++n] = set->v[i];
        }
        set->n = n + 1;
}

static void negate(range_vec *set)
{
        range_vec out = {0};
        uint32_t from = 0;

        settle(set);
        for (size_t i = 0; i < set->n; i++) {
                if (set->v[i].low > from)
                        add_range(&out, from, set->v[i].low - 1);
                from = set->v[i].high + 1;
        }
        if (from <= CODEPOINT_MAX)
                add_range(&out, from, CODEPOINT_MAX);
        vec_done(set);
        *set = out;
}

/* Adds LOW to HIGH and, where case does not matter, what differs from them in case alone: ASCII letters, and the two
 * signs that fold to one (U+212A and U+017F). */
static bool add_folded(struct parser *p, range_vec *set, uint32_t low, uint32_t high)
{
        add_range(set, low, high);
        if (!(p->flags & FLAG_FOLD))
                return true;
        if (high >= 0x80)
                return fail(p, "folding the case of letters beyond ASCII is not supported");
        for (uint32_t c = low; c <= high; c++) {
                uint32_t lower = c | 0x20;

                if (lower < 'a' || lower > 'z')
                        continue;
                add_range(set, c ^ 0x20, c ^ 0x20);
                if (lower == 'k')
                        add_range(set, 0x212A, 0x212A);
                if (lower == 's')
                        add_range(set, 0x17F, 0x17F);
        }
        return true;
}

/* Makes SET a node; SET is emptied. */
static struct re *set_node(struct parser *p, range_vec *set, bool negated)
{
        struct re *re = new_re(p, RE_SET);

        if (negated)
                negate(set);
        settle(set);
        re->set.n = set->n;
        re->set.v = set->n ? arena_memdup(p->arena, set->v, set->n * sizeof(*set->v)) : NULL;
        vec_done(set);
        return re;
}

static struct re *character_node(struct parser *p, uint32_t c)
{
        range_vec set = {0};

        if (!add_folded(p, &set, c, c)) {
                vec_done(&set);
                return NULL;
        }
        return set_node(p, &set, false);
}

struct named_set {
        const char *name;
        struct range v[4];
        size_t n;
};

static const struct named_set perl_sets[] = {
        {"d", {{'0', '9'}}, 1},
        {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}, 3},
};

static const struct named_set posix_sets[] = {
        {"[:alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}, 3},
        {"[:alpha:]", {{'A', 'Z'}, {'a', 'z'}}, 2},
        {"[:ascii:]", {{0, 0x7F}}, 1},
        {"[:blank:]", {{'\t', '\t'}, {' ', ' '}}, 2},
        {"[:cntrl:]", {{0, 0x1F}, {0x7F, 0x7F}}, 2},
        {"[:digit:]", {{'0', '9'}}, 1},
        {"[:graph:]", {{'!', '~'}}, 1},
        {"[:lower:]", {{'a', 'z'}}, 1},
        {"[:print:]", {{' ', '~'}}, 1},
        {"[:punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}, 4},
        {"[:space:]", {{'\t', '\r'}, {' ', ' '}}, 2},
        {"[:upper:]", {{'A', 'Z'}}, 1},
        {"[:word:]", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
        {"[:xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}, 3},
};

static void add_named(struct parser *p, range_vec *set, const struct named_set *named, bool negated)
{
        range_vec own = {0};

        for (size_t i = 0; i < named->n; i++)
                (void)add_folded(p, &own, named->v[i].low, named->v[i].high);
        if (negated)
                negate(&own);
        vec_foreach (r, &own)
                add_range(set, r->low, r->high);
        vec_done(&own);
}

/* \d, \W and the like at a backslash; false when it is something else. */
static bool take_perl_set(struct parser *p, range_vec *set)
{
        for (size_t i = 0; i < ARRAY_LEN(perl_sets); i++) {
                char lower = perl_sets[i].name[0];

                if (peek(p, 1) != lower && peek(p, 1) != (lower ^ 0x20))
                        continue;
                add_named(p, set, &perl_sets[i], peek(p, 1) != lower);
                p->at += 2;
                return true;
        }
        return false;
}

static bool take_posix_set(struct parser *p, range_vec *set)
{
        for (size_t i = 0; i < ARRAY_LEN(posix_sets); i++)
                if (take(p, posix_sets[i].name)) {
                        add_named(p, set, &posix_sets[i], false);
                        return true;
                }
        return false;
}

/* ---- escapes */

static int hex_value(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 0x20;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What follows \x: two digits, or any number in braces. */
static bool take_hex(struct parser *p, uint32_t *ret)
{
        bool braces = take(p, "{");
        uint32_t c = 0;
        int digits = 0;

        for (; hex_value(peek(p, 0)) >= 0 && (braces || digits < 2); digits++, p->at++) {
                c = c << 4 | (uint32_t)hex_value(peek(p, 0));
                if (c > CODEPOINT_MAX)
                        return false;
        }
        *ret = c;
        return braces ? digits > 0 && take(p, "}") : digits == 2;
}

/* One escaped character, at the backslash. */
static bool take_escape(struct parser *p, uint32_t *ret)
{
        static const char from[] = "aftnrv", to[] = "\a\f\t\n\r\v";
        char c = peek(p, 1);
        const char *known = c ? strchr(from, c) : NULL;

        if (p->at + 1 >= p->text.n)
                return fail(p, "trailing backslash");
        if (known) {
                *ret = (uint32_t)to[known - from];
        } else if (c == 'x') {
                p->at += 2;
                return take_hex(p, ret) || fail(p, "invalid escape sequence");
        } else if ((unsigned char)c < 0x80 && hex_value(c) < 0 && ((c | 0x20) < 'a' || (c | 0x20) > 'z')) {
                *ret = (uint32_t)c;
        } else {
                return fail(p, "invalid or unsupported escape sequence");
        }
        p->at += 2;
        return true;
}

/* ---- classes: [...] */

static bool take_class_character(struct parser *p, uint32_t *ret)
{
        if (done(p))
                return fail(p, "missing closing ]");
        if (peek(p, 0) == '\\')
                return take_escape(p, ret);
        *ret = utf8_next(p->text, &p->at);
        return true;
}

static bool take_class_range(struct parser *p, range_vec *set)
{
        uint32_t low, high;

        if (!take_class_character(p, &low))
                return false;
        high = low;
        if (peek(p, 0) == '-' && p->at + 1 < p->text.n && peek(p, 1) != ']') {
                p->at++;
                if (!take_class_character(p, &high))
                        return false;
                if (high < low)
                        return fail(p, "invalid character class range");
        }
        return add_folded(p, set, low, high);
}

static struct re *parse_class(struct parser *p)
{
        range_vec set = {0};
        bool negated, first = true;

        p->at++;
        negated = take(p, "^");
        for (; first || peek(p, 0) != ']' || done(p); first = false) {
                bool ok;

                if (peek(p, 0) == '[' && peek(p, 1) == ':')
                        ok = take_posix_set(p, &set) || fail(p, "invalid character class range");
                else
                        ok = (peek(p, 0) == '\\' && take_perl_set(p, &set)) || take_class_range(p, &set);
                if (!ok) {
                        vec_done(&set);
                        return NULL;
                }
        }
        p->at++;
        return set_node(p, &set, negated);
}

/* ---- groups */

static bool take_flags(struct parser *p)
{
        static const struct {
                char letter;
                unsigned flag;
        } known[] = {{'i', FLAG_FOLD}, {'m', FLAG_MULTILINE}, {'s', FLAG_DOT_ALL}, {'U', 0}};
        bool on = true, any = false;

        for (;; p->at++) {
                size_t i = 0;

                if (peek(p, 0) == '-' && on) {
                        on = false;
                        any = false;
                        continue;
                }
                while (i < ARRAY_LEN(known) && known[i].letter != peek(p, 0))
                        i++;
                if (i == ARRAY_LEN(known))
                        return any;
                p->flags = on ? p->flags | known[i].flag : p->flags & ~known[i].flag;
                any = true;
        }
}

static bool take_name(struct parser *p)
{
        size_t n = 0;

        while (hex_value(peek(p, n)) >= 0 || peek(p, n) == '_' ||
               ((peek(p, n) | 0x20) >= 'a' && (peek(p, n) | 0x20) <= 'z'))
                n++;
        p->at += n;
        return n > 0 && take(p, ">");
}

static struct re *parse_group(struct parser *p)
{
        unsigned flags = p->flags;
        struct re *inner;

        p->at++;
        if (take(p, "?P<")) {
                if (!take_name(p))
                        return fail(p, "invalid named capture");
        } else if (take(p, "?") && !take(p, ":")) {
                if (!take_flags(p))
                        return fail(p, "invalid or unsupported group");
                if (take(p, ")")) { /* holds to the end of the group around it */
                        p->only_flags = true;
                        return new_re(p, RE_EMPTY);
                }
                if (!take(p, ":"))
                        return fail(p, "invalid or unsupported group");
        }
        if (++p->depth > GROUP_DEPTH_MAX)
                return fail(p, "groups nested too deep");
        inner = parse_alternatives(p);
        p->only_flags = false;
        p->depth--;
        if (inner && !take(p, ")"))
                return fail(p, "missing closing )");
        p->flags = flags;
        return inner;
}

/* ---- atoms and operators */

static struct re *parse_escape_atom(struct parser *p)
{
        static const struct {
                char letter;
                enum re_kind kind;
        } borders[] = {
                {'A', RE_TEXT_START}, {'z', RE_TEXT_END}, {'b', RE_WORD_BORDER}, {'B', RE_NO_WORD_BORDER}};
        range_vec set = {0};
        uint32_t c;

        for (size_t i = 0; i < ARRAY_LEN(borders); i++)
                if (peek(p, 1) == borders[i].letter) {
                        p->at += 2;
                        return new_re(p, borders[i].kind);
                }
        if (take_perl_set(p, &set))
                return set_node(p, &set, false);
        return take_escape(p, &c) ? character_node(p, c) : NULL;
}

static struct re *parse_dot(struct parser *p)
{
        range_vec set = {0};

        p->at++;
        if (!(p->flags & FLAG_DOT_ALL))
                add_range(&set, '\n', '\n');
        negate(&set);
        return set_node(p, &set, false);
}

static struct re *parse_atom(struct parser *p)
{
        switch (peek(p, 0)) {
        case '(':
                return parse_group(p);
        case '[':
                return parse_class(p);
        case '\\':
                return parse_escape_atom(p);
        case '.':
                return parse_dot(p);
        case '^':
                p->at++;
                return new_re(p, p->flags & FLAG_MULTILINE ? RE_LINE_START : RE_TEXT_START);
        case '$':
                p->at++;
                return new_re(p, p->flags & FLAG_MULTILINE ? RE_LINE_END : RE_TEXT_END);
        case '*':
        case '+':
        case '?':
                return fail(p, "missing argument to repetition operator");
        default:
                return character_node(p, utf8_next(p->text, &p->at));
        }
}

static bool take_count(struct parser *p, size_t *at, int *ret)
{
        size_t start = *at;
        int n = 0;

        for (; peek(p, *at) >= '0' && peek(p, *at) <= '9'; ++*at)
                n = MIN(n * 10 + (peek(p, *at) - '0'), REPEAT_MAX + 1);
        *ret = n;
        return *at > start && (peek(p, start) != '0' || *at == start + 1);
}

/* {n}, {n,}, {n,m}; anything else in braces is text. */
static bool take_braces(struct parser *p, int *min, int *max)
{
        size_t at = 1;

        if (!take_count(p, &at, min))
                return false;
        *max = *min;
        if (peek(p, at) == ',') {
                at++;
                if (peek(p, at) == '}')
                        *max = REPEAT_NO_END;
                else if (!take_count(p, &at, max))
                        return false;
        }
        if (peek(p, at) != '}')
                return false;
        p->at += at + 1;
        return true;
}

/* False: no operator follows. */
static bool take_operator(struct parser *p, int *min, int *max)
{
        *min = 0;
        *max = REPEAT_NO_END;
        switch (peek(p, 0)) {
        case '{':
                return take_braces(p, min, max);
        case '?':
                *max = 1;
                break;
        case '+':
                *min = 1;
                break;
        case '*':
                break;
        default:
                return false;
        }
        p->at++;
        return true;
}

/* How often the innermost part of RE is repeated by counted operators. */
static long repeat_product(const struct re *re)
{
        long inner;

        if (!re)
                return 1;
        inner = MAX(repeat_product(re->left), repeat_product(re->right));
        return re->kind == RE_REPEAT && MAX(re->min, re->max) > 1 ? inner * MAX(re->min, re->max) : inner;
}

static struct re *parse_repeated(struct parser *p)
{
        struct re *atom, *re;
        int min, max;

        p->only_flags = false;
        atom = parse_atom(p);
        if (!atom)
                return NULL;
        if (!take_operator(p, &min, &max))
                return atom;
        if (p->only_flags)
                return fail(p, "missing argument to repetition operator");
        if (min > REPEAT_MAX || max > REPEAT_MAX || (max != REPEAT_NO_END && max < min))
                return fail(p, "invalid repeat count");
        re = new_re(p, RE_REPEAT);
        re->left = atom;
        re->min = min;
        re->max = max;
        take(p, "?"); /* lazy or not, it matches the same texts */
        if (repeat_product(re) > REPEAT_MAX)
                return fail(p, "invalid repeat count");
        if (take_operator(p, &min, &max))
                return fail(p, "invalid nested repetition operator");
        return re;
}

static struct re *parse_sequence(struct parser *p)
{
        struct re *re = NULL;

        while (!done(p) && peek(p, 0) != '|' && peek(p, 0) != ')') {
                struct re *next = parse_repeated(p);

                if (!next)
                        return NULL;
                re = join(p, RE_CAT, re, next);
        }
        return re ? re : new_re(p, RE_EMPTY);
}

static struct re *parse_alternatives(struct parser *p)
{
        struct re *re = parse_sequence(p);

        while (re && take(p, "|")) {
                struct re *next = parse_sequence(p);

                re = next ? join(p, RE_ALT, re, next) : NULL;
        }
        return re;
}

struct re *re_parse(struct arena *a, struct str text, struct err *err)
{
        struct parser p = {.arena = a, .text = text, .err = err};
        struct re *re;

        if (text.n > PATTERN_BYTES_MAX) {
                err_set(err, E_TOO_LARGE, "pattern of %zu bytes is longer than %d", text.n,
                        PATTERN_BYTES_MAX);
                return NULL;
        }
        if (!utf8_valid(text.p, text.n)) {
                err_set(err, E_INVALID, "pattern is not UTF-8");
                return NULL;
        }
        re = parse_alternatives(&p);
        if (re && !done(&p))
                return fail(&p, "unexpected )");
        return re;
}
