/*
 * Numbers are kept as their text. Whoever wants a value gets it exactly or not at all; two texts are compared as
 * decimals, without a floating point in between.
 */
#include "json/internal.h"

#include <math.h>

enum { EXPONENT_DIGITS = 17 }; /* beyond these an exponent has no use but to be kept */

/* A number as digits times a power of ten: no zeros at either end of the digits, except that 0 has none at all. */
struct decimal {
        struct str whole, fraction; /* the digits, still in two pieces; leading and trailing zeros cut off */
        int64_t exponent;           /* of the last digit */
        bool negative;
        bool huge; /* the exponent does not fit */
};

static size_t digits(const char *p, size_t n)
{
        size_t i = 0;

        while (i < n && p[i] >= '0' && p[i] <= '9')
                i++;
        return i;
}

static void cut_leading_zeros(struct str *s)
{
        while (s->n && s->p[0] == '0') {
                s->p++;
                s->n--;
        }
}

static size_t cut_trailing_zeros(struct str *s)
{
        size_t n = s->n;

        while (s->n && s->p[s->n - 1] == '0')
                s->n--;
        return n - s->n;
}

/* TEXT follows the "e". */
static void read_exponent(struct decimal *d, struct str text)
{
        bool negative = text.n && text.p[0] == '-';
        uint64_t v = 0;

        if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
                text = str_n(text.p + 1, text.n - 1);
        cut_leading_zeros(&text);
        if (text.n > EXPONENT_DIGITS)
                d->huge = true;
        else if (text.n)
                str_to_u64(text, &v);
        d->exponent = negative ? -(int64_t)v : (int64_t)v;
}

static struct decimal decimal_of(struct str s)
{
        struct decimal d = {.negative = s.n && s.p[0] == '-'};
        size_t i = d.negative;

        d.whole = str_n(s.p + i, digits(s.p + i, s.n - i));
        i += d.whole.n;
        d.fraction = str_n(s.p + i, 0);
        if (i < s.n && s.p[i] == '.') {
                i++;
                d.fraction = str_n(s.p + i, digits(s.p + i, s.n - i));
                i += d.fraction.n;
        }
        if (i < s.n)
                read_exponent(&d, str_n(s.p + i + 1, s.n - i - 1));
        cut_trailing_zeros(&d.fraction);
        d.exponent -= (int64_t)d.fraction.n;
        cut_leading_zeros(&d.whole);
        if (d.fraction.n == 0)
                d.exponent += (int64_t)cut_trailing_zeros(&d.whole);
        if (d.whole.n == 0)
                cut_leading_zeros(&d.fraction);
        if (d.whole.n == 0 && d.fraction.n == 0)
                d = (struct decimal){.whole = d.whole, .fraction = d.fraction};
        return d;
}

static char digit_at(const struct decimal *d, size_t i)
{
        return i < d->whole.n ? d->whole.p[i] : d->fraction.p[i - d->whole.n];
}

bool json_number_equal(struct str x, struct str y)
{
        struct decimal a, b;
        size_t n;

        if (str_eq(x, y))
                return true;
        a = decimal_of(x);
        b = decimal_of(y);
        n = a.whole.n + a.fraction.n;
        /* Exponents of 18 digits and more are never computed with: such numbers are equal as texts only. */
        if (a.huge || b.huge || a.negative != b.negative || a.exponent != b.exponent ||
            n != b.whole.n + b.fraction.n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (digit_at(&a, i) != digit_at(&b, i))
                        return false;
        return true;
}

/* The magnitude as an integer. */
static bool decimal_to_u64(const struct decimal *d, uint64_t *ret)
{
        size_t n = d->whole.n + d->fraction.n;
        uint64_t v = 0;

        if (n == 0) {
                *ret = 0;
                return true;
        }
        if (d->huge || d->exponent < 0 || d->exponent > 19 || n > 20)
                return false;
        for (size_t i = 0; i < n + (size_t)d->exponent; i++) {
                uint64_t digit = i < n ? (uint64_t)(digit_at(d, i) - '0') : 0;

                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, digit, &v))
                        return false;
        }
        *ret = v;
        return true;
}

bool json_to_u64(const struct json *number, uint64_t *ret)
{
        struct decimal d;
        uint64_t v;

        if (!json_is(number, JSON_NUMBER))
                return false;
        d = decimal_of(str_n(number->text, number->len));
        if (d.negative || !decimal_to_u64(&d, &v))
                return false;
        *ret = v;
        return true;
}

bool json_to_i64(const struct json *number, int64_t *ret)
{
        struct decimal d;
        uint64_t v;

        if (!json_is(number, JSON_NUMBER))
                return false;
        d = decimal_of(str_n(number->text, number->len));
        if (!decimal_to_u64(&d, &v) || v > (uint64_t)INT64_MAX + d.negative)
                return false;
        *ret = d.negative ? (int64_t)(0 - v) : (int64_t)v;
        return true;
}

bool json_to_double(const struct json *number, double *ret)
{
        _cleanup_(free_ptr) char *large = NULL;
        char small[64];
        const char *text = small;
        double v;

        if (!json_is(number, JSON_NUMBER))
                return false;
        /* strtod() wants an end it can see. */
        if (number->len < sizeof(small)) {
                memcpy(small, number->text, number->len);
                small[number->len] = '\0';
        } else {
                text = large = xstrndup(number->text, number->len);
        }
        v = strtod(text, NULL);
        if (!isfinite(v))
                return false;
        *ret = v;
        return true;
}

static struct json *number(struct arena *a, const char *text, size_t n)
{
        struct json *j = json_node(a, JSON_NUMBER);

        j->text = arena_strndup(a, text, n);
        j->len = (uint32_t)n;
        return j;
}

static struct json *integer(struct arena *a, uint64_t magnitude, bool negative)
{
        char text[24], *end = text + sizeof(text), *at = end;

        do
                *--at = (char)('0' + magnitude % 10);
        while (magnitude /= 10);
        if (negative)
                *--at = '-';
        return number(a, at, (size_t)(end - at));
}

struct json *json_u64(struct arena *a, uint64_t value)
{
        return integer(a, value, false);
}

struct json *json_i64(struct arena *a, int64_t value)
{
        return integer(a, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

/* "1e+05" becomes "1e5". */
static size_t shorten_exponent(char *text)
{
        char *e = strchr(text, 'e'), *from;

        if (!e)
                return strlen(text);
        from = ++e;
        if (*from == '-')
                e++;
        from++;
        while (*from == '0' && from[1])
                from++;
        memmove(e, from, strlen(from) + 1);
        return strlen(text);
}

struct json *json_double(struct arena *a, double value)
{
        char text[40];
        int precision;

        if (!isfinite(value))
                return NULL;
        /* Any decimal of 15 digits survives a normal double, so a shorter one shows up at 15 with its zeros cut off;
         * next to zero doubles hold less. */
        precision = isnormal(value) ? 15 : 1;
        do
                snprintf(text, sizeof(text), "%.*g", precision, value);
        while (strtod(text, NULL) != value && ++precision <= 17);
        return number(a, text, shorten_exponent(text));
}
