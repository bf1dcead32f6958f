/*
 * The API server's messages show values and paths as Go prints them; this is that printing.
 */
#include "json/schema_internal.h"

#include <math.h>

#include "json/pattern_internal.h"

/* ---- places */

static void spot_write_one(const struct spot *s, enum spot_style style, struct buf *out)
{
        if (s->kind == SPOT_INDEX)
                buf_printf(out, "[%zu]", s->index);
        else if (s->kind == SPOT_KEY && style == SPOT_FIELD)
                buf_printf(out, "[%.*s]", STR_ARG(s->name));
        else
                buf_printf(out, "%s%.*s", s->up && s->up->up ? "." : "", STR_ARG(s->name));
}

void spot_write(const struct spot *s, enum spot_style style, struct buf *out)
{
        if (!s || !s->up)
                return;
        spot_write(s->up, style, out);
        spot_write_one(s, style, out);
}

const char *spot_print(struct arena *a, const struct spot *s, enum spot_style style)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 << 10);

        spot_write(s, style, &b);
        return arena_strndup(a, b.n ? b.p : "", b.n);
}

/* ---- strings: strconv.Quote */

/* What Go takes for unprintable beyond ASCII, as far as it is likely to be met. */
static bool unprintable(uint32_t c)
{
        static const struct range ranges[] = {
                {0x80, 0xA0},     {0xAD, 0xAD},     {0x378, 0x379},     {0x600, 0x605},      {0x61C, 0x61C},
                {0x6DD, 0x6DD},   {0x70F, 0x70F},   {0x1680, 0x1680},   {0x180E, 0x180E},    {0x2000, 0x200F},
                {0x2028, 0x202F}, {0x205F, 0x206F}, {0x3000, 0x3000},   {0xD800, 0xF8FF},    {0xFEFF, 0xFEFF},
                {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE00FF}, {0xE01F0, 0x10FFFF},
        };

        for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
                if (c >= ranges[i].low && c <= ranges[i].high)
                        return true;
        return false;
}

static void quote_one(uint32_t c, const char *bytes, size_t n, struct buf *out)
{
        static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
        const char *known = c && c < 0x80 ? strchr(from, (int)c) : NULL;

        if (known)
                buf_printf(out, "\\%c", to[known - from]);
        else if (c < ' ' || c == 0x7F)
                buf_printf(out, "\\x%02x", c);
        else if (c < 0x80 || !unprintable(c))
                buf_add(out, bytes, n);
        else
                buf_printf(out, c > 0xFFFF ? "\\U%08x" : "\\u%04x", c);
}

void go_quote(struct str s, struct buf *out)
{
        buf_addc(out, '"');
        for (size_t at = 0; at < s.n;) {
                size_t start = at;
                uint32_t c = utf8_next(s, &at);

                quote_one(c, s.p + start, at - start, out);
        }
        buf_addc(out, '"');
}

/* ---- numbers */

void go_float(double x, struct buf *out)
{
        char text[32];
        int precision, exponent;

        if (!isfinite(x)) {
                buf_adds(out, isnan(x) ? "NaN" : x < 0 ? "-Inf" : "+Inf");
                return;
        }
        for (precision = 0; precision < 17; precision++) {
                snprintf(text, sizeof(text), "%.*e", precision, x);
                if (strtod(text, NULL) == x)
                        break;
        }
        exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
        if (exponent < -4 || exponent >= 6)
                buf_adds(out, text);
        else
                buf_printf(out, "%.*f", MAX(precision - exponent, 0), x);
}

struct go_number go_number(const struct json *number)
{
        struct go_number n = {0};

        n.whole = str_to_i64(str_n(number->text, number->len), &n.i);
        if (n.whole)
                n.d = (double)n.i;
        else if (!json_to_double(number, &n.d))
                n.d = number->len && number->text[0] == '-' ? -HUGE_VAL : HUGE_VAL;
        return n;
}

static void write_number(const struct json *j, struct buf *out)
{
        struct go_number n = go_number(j);

        if (n.whole)
                buf_printf(out, "%lld", (long long)n.i);
        else
                go_float(n.d, out);
}

/* ---- values: %#v */

static int by_key(const void *a, const void *b)
{
        const struct json *x = *(struct json *const *)a, *y = *(struct json *const *)b;

        return str_cmp(str_n(x->key, x->key_len), str_n(y->key, y->key_len));
}

/* Calls FN for the members in the order of their names. */
static void each_sorted(const struct json *object,
                        void (*fn)(const struct json *member, bool first, struct buf *out), struct buf *out)
{
        VEC(struct json *) members = {0};

        json_foreach (member, object)
                *vec_push(&members) = member;
        if (members.n)
                qsort(members.v, members.n, sizeof(*members.v), by_key);
        for (size_t i = 0; i < members.n && !out->overflow; i++)
                fn(members.v[i], i == 0, out);
        vec_done(&members);
}

static void go_syntax(const struct json *j, struct buf *out);

static void go_member(const struct json *member, bool first, struct buf *out)
{
        buf_adds(out, first ? "" : ", ");
        go_quote(str_n(member->key, member->key_len), out);
        buf_addc(out, ':');
        go_syntax(member, out);
}

static void go_array(const struct json *j, struct buf *out)
{
        const char *separator = "";

        buf_adds(out, "[]interface {}{");
        json_foreach (child, j) {
                if (out->overflow)
                        return;
                buf_adds(out, separator);
                go_syntax(child, out);
                separator = ", ";
        }
        buf_addc(out, '}');
}

static void go_syntax(const struct json *j, struct buf *out)
{
        switch (j->type) {
        case JSON_NULL:
                buf_adds(out, "interface {}(nil)");
                break;
        case JSON_BOOL:
                buf_adds(out, j->truth ? "true" : "false");
                break;
        case JSON_NUMBER:
                write_number(j, out);
                break;
        case JSON_STRING:
                go_quote(json_text(j), out);
                break;
        case JSON_ARRAY:
                go_array(j, out);
                break;
        default:
                buf_adds(out, "map[string]interface {}{");
                each_sorted(j, go_member, out);
                buf_addc(out, '}');
        }
}

void go_value(const struct json *j, struct buf *out)
{
        if (j->type == JSON_NULL)
                buf_adds(out, "\"null\"");
        else
                go_syntax(j, out);
}

/* ---- one text for each value */

static void canonical_member(const struct json *member, bool first, struct buf *out)
{
        json_write_string(str_n(member->key, member->key_len), out);
        buf_addc(out, ':');
        go_canonical(member, out);
        buf_addc(out, ',');
}

void go_canonical(const struct json *j, struct buf *out)
{
        switch (j->type) {
        case JSON_NUMBER:
                write_number(j, out);
                /* to the API server 1 and 1.0 are two */
                buf_adds(out, go_number(j).whole ? "" : "f");
                break;
        case JSON_ARRAY:
                buf_addc(out, '[');
                json_foreach (child, j) {
                        go_canonical(child, out);
                        buf_addc(out, ',');
                }
                buf_addc(out, ']');
                break;
        case JSON_OBJECT:
                buf_addc(out, '{');
                each_sorted(j, canonical_member, out);
                buf_addc(out, '}');
                break;
        default:
                json_write(j, JSON_COMPACT, out);
        }
}
