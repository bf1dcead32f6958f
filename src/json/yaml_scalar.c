#include "json/yaml_scalar.h"

#include <errno.h>
#include <math.h>

/* ---- words */

static const struct {
        const char *word;
        struct yaml_value value;
} words[] = {
#define TRUTH(w, t)                                        \
        {                                                  \
                w,                                         \
                {                                          \
                        .kind = YAML_KIND_BOOL, .truth = t \
                }                                          \
        }
#define NOTHING(w)                             \
        {                                      \
                w,                             \
                {                              \
                        .kind = YAML_KIND_NULL \
                }                              \
        }
#define SPECIAL(w, t)                                                           \
        {                                                                       \
                w,                                                              \
                {                                                               \
                        .kind = YAML_KIND_SPECIAL, .text = { t, sizeof(t) - 1 } \
                }                                                               \
        }
        TRUTH("y", true),
        TRUTH("Y", true),
        TRUTH("yes", true),
        TRUTH("Yes", true),
        TRUTH("YES", true),
        TRUTH("true", true),
        TRUTH("True", true),
        TRUTH("TRUE", true),
        TRUTH("on", true),
        TRUTH("On", true),
        TRUTH("ON", true),
        TRUTH("n", false),
        TRUTH("N", false),
        TRUTH("no", false),
        TRUTH("No", false),
        TRUTH("NO", false),
        TRUTH("false", false),
        TRUTH("False", false),
        TRUTH("FALSE", false),
        TRUTH("off", false),
        TRUTH("Off", false),
        TRUTH("OFF", false),
        NOTHING(""),
        NOTHING("~"),
        NOTHING("null"),
        NOTHING("Null"),
        NOTHING("NULL"),
        SPECIAL(".nan", ".nan"),
        SPECIAL(".NaN", ".nan"),
        SPECIAL(".NAN", ".nan"),
        SPECIAL(".inf", ".inf"),
        SPECIAL(".Inf", ".inf"),
        SPECIAL(".INF", ".inf"),
        SPECIAL("+.inf", ".inf"),
        SPECIAL("+.Inf", ".inf"),
        SPECIAL("+.INF", ".inf"),
        SPECIAL("-.inf", "-.inf"),
        SPECIAL("-.Inf", "-.inf"),
        SPECIAL("-.INF", "-.inf"),
};

static bool find_word(struct str text, struct yaml_value *ret)
{
        if (text.n > 5)
                return false;
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (str_eq(text, str_of(words[i].word))) {
                        *ret = words[i].value;
                        return true;
                }
        return false;
}

/* ---- integers: strconv.ParseInt and ParseUint with base 0 */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static unsigned digit_value(char c)
{
        if (is_digit(c))
                return (unsigned)(c - '0');
        c |= 0x20;
        return c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10 : 99;
}

/* Digits only, possibly none. */
static bool magnitude(struct str digits, unsigned base, uint64_t *ret)
{
        uint64_t n = 0;

        for (size_t i = 0; i < digits.n; i++) {
                unsigned d = digit_value(digits.p[i]);

                if (d >= base || __builtin_mul_overflow(n, (uint64_t)base, &n) ||
                    __builtin_add_overflow(n, (uint64_t)d, &n))
                        return false;
        }
        *ret = n;
        return true;
}

/* Takes 0x, 0o, 0b or a leading 0 off S. */
static unsigned take_base(struct str *s)
{
        static const struct {
                char letter;
                unsigned base;
        } prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};

        if (s->p[0] != '0')
                return 10;
        for (size_t i = 0; s->n >= 3 && i < ARRAY_LEN(prefixes); i++)
                if ((s->p[1] | 0x20) == prefixes[i].letter) {
                        *s = str_n(s->p + 2, s->n - 2);
                        return prefixes[i].base;
                }
        *s = str_n(s->p + 1, s->n - 1);
        return 8;
}

static struct str int_text(struct arena *a, bool negative, uint64_t n)
{
        return str_of(arena_printf(a, "%s%llu", negative && n ? "-" : "", (unsigned long long)n));
}

/* A sign lets a number go to 2^63 only: Go tries the signed parser first, the unsigned one takes no sign. */
static bool in_range(char sign, uint64_t n)
{
        return sign == '-' ? n <= (uint64_t)INT64_MAX + 1 : sign != '+' || n <= INT64_MAX;
}

static bool parse_int(struct arena *a, struct str s, struct str *ret)
{
        char sign = s.p[0] == '-' || s.p[0] == '+' ? s.p[0] : '\0';
        unsigned base;
        uint64_t n;

        if (sign)
                s = str_n(s.p + 1, s.n - 1);
        if (s.n == 0)
                return false;
        base = take_base(&s);
        if (!magnitude(s, base, &n) || !in_range(sign, n))
                return false;
        *ret = int_text(a, sign == '-', n);
        return true;
}

/* go-yaml has a parser of its own for 0b, which lets a sign stand behind it. */
static bool parse_signed_binary(struct arena *a, struct str s, struct str *ret)
{
        char sign;
        uint64_t n;

        if (s.n < 4 || !str_has_prefix(s, STR("0b")) || (s.p[2] != '-' && s.p[2] != '+'))
                return false;
        sign = s.p[2];
        if (!magnitude(str_n(s.p + 3, s.n - 3), 2, &n) || !in_range(sign, n))
                return false;
        *ret = int_text(a, sign == '-', n);
        return true;
}

/* ---- floats */

static size_t span_digits(struct str s, size_t from)
{
        size_t i = from;

        while (i < s.n && is_digit(s.p[i]))
                i++;
        return i - from;
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? in its parts. */
struct decimal {
        bool negative;
        struct str whole, fraction, exponent; /* the exponent with its letter */
};

static bool split_decimal(struct str s, struct decimal *ret)
{
        struct decimal d = {.negative = s.p[0] == '-'};
        size_t i = s.p[0] == '-' || s.p[0] == '+';

        d.whole = str_n(s.p + i, span_digits(s, i));
        i += d.whole.n;
        if (i < s.n && s.p[i] == '.') {
                d.fraction = str_n(s.p + i + 1, span_digits(s, i + 1));
                i += 1 + d.fraction.n;
        }
        if (d.whole.n + d.fraction.n == 0)
                return false;
        if (i < s.n && (s.p[i] | 0x20) == 'e') {
                size_t start = i++, digits;

                i += i < s.n && (s.p[i] == '-' || s.p[i] == '+');
                digits = span_digits(s, i);
                if (digits == 0)
                        return false;
                i += digits;
                d.exponent = str_n(s.p + start, i - start);
        }
        *ret = d;
        return i == s.n;
}

/* As JSON writes it; false when it does not fit a double, which leaves kubectl with a string. */
static bool decimal_text(struct arena *a, struct decimal d, struct str *ret)
{
        char *text;

        while (d.whole.n > 1 && d.whole.p[0] == '0')
                d.whole = str_n(d.whole.p + 1, d.whole.n - 1);
        if (d.whole.n == 0)
                d.whole = STR("0");
        text = arena_printf(a, "%s%.*s%s%.*s%.*s", d.negative ? "-" : "", STR_ARG(d.whole),
                            d.fraction.n ? "." : "", STR_ARG(d.fraction), STR_ARG(d.exponent));
        if (!isfinite(strtod(text, NULL)))
                return false;
        *ret = str_of(text);
        return true;
}

static struct str without_underscores(struct arena *a, struct str s)
{
        char *copy;
        size_t n = 0;

        if (!memchr(s.p, '_', s.n))
                return s;
        copy = arena_alloc(a, s.n + 1);
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] != '_')
                        copy[n++] = s.p[i];
        copy[n] = '\0';
        return str_n(copy, n);
}

/* Behind a point Go's own rule holds: an underscore stands between two digits. */
static bool underscores_between_digits(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] == '_' &&
                    (i == 0 || i + 1 == s.n || !is_digit(s.p[i - 1]) || !is_digit(s.p[i + 1])))
                        return false;
        return true;
}

/* ---- putting it together */

static bool resolve_number(struct arena *a, struct str text, struct yaml_value *ret)
{
        struct str plain = without_underscores(a, text);
        struct decimal d;

        if (text.p[0] == '.') {
                ret->kind = YAML_KIND_FLOAT;
                return underscores_between_digits(text) && split_decimal(plain, &d) &&
                       decimal_text(a, d, &ret->text);
        }
        ret->kind = YAML_KIND_INT;
        if (parse_int(a, plain, &ret->text))
                return true;
        ret->kind = YAML_KIND_FLOAT;
        if (split_decimal(plain, &d))
                return decimal_text(a, d, &ret->text);
        ret->kind = YAML_KIND_INT;
        return parse_signed_binary(a, plain, &ret->text);
}

struct yaml_value yaml_resolve(struct arena *a, struct str text)
{
        struct yaml_value value = {.kind = YAML_KIND_NULL};
        char c = text.n ? text.p[0] : '\0';

        if (find_word(text, &value))
                return value;
        if ((is_digit(c) || c == '-' || c == '+' || c == '.') && resolve_number(a, text, &value))
                return value;
        return (struct yaml_value){.kind = YAML_KIND_STR, .text = text};
}

/* Go's FormatFloat(x, 'g', -1, 32): the shortest text that reads back as the same float. */
static struct str float_key(struct arena *a, float f)
{
        char digits[32];
        const char *e;
        int exponent, precision;

        if (isinf(f))
                return f < 0 ? STR("-.inf") : STR(".inf");
        for (precision = 0; precision < 9; precision++) {
                snprintf(digits, sizeof(digits), "%.*e", precision, (double)f);
                if (strtof(digits, NULL) == f)
                        break;
        }
        e = strchr(digits, 'e');
        exponent = (int)strtol(e + 1, NULL, 10);
        if (exponent < -4 || exponent >= 6)
                return str_of(arena_strdup(a, digits));
        return str_of(arena_printf(a, "%.*f", MAX(precision - exponent, 0), (double)f));
}

struct str yaml_key(struct arena *a, const struct yaml_value *value)
{
        uint64_t n;

        switch (value->kind) {
        case YAML_KIND_BOOL:
                return value->truth ? STR("true") : STR("false");
        case YAML_KIND_INT:
                return str_to_u64(value->text, &n) && n > INT64_MAX ? STR_NULL : value->text;
        case YAML_KIND_FLOAT:
                return float_key(a, strtof(value->text.p, NULL));
        case YAML_KIND_SPECIAL:
        case YAML_KIND_STR:
                return value->text;
        case YAML_KIND_NULL:
                break;
        }
        return STR_NULL;
}
