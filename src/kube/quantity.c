#include "kube/quantity.h"

enum { FRACTION_DIGITS = 9, NUMBER_TEXT = 48 };

static const quantity_nano BILLION = 1000000000;
static const quantity_nano LARGEST = (quantity_nano)INT64_MAX * 1000000000;

static const struct suffix {
        const char *text;
        int power; /* of 10 or of 2 */
        enum quantity_format format;
} SUFFIXES[] = {
        {"n", -9, QUANTITY_DECIMAL}, {"u", -6, QUANTITY_DECIMAL}, {"m", -3, QUANTITY_DECIMAL},
        {"", 0, QUANTITY_DECIMAL},   {"k", 3, QUANTITY_DECIMAL},  {"M", 6, QUANTITY_DECIMAL},
        {"G", 9, QUANTITY_DECIMAL},  {"T", 12, QUANTITY_DECIMAL}, {"P", 15, QUANTITY_DECIMAL},
        {"E", 18, QUANTITY_DECIMAL}, {"Ki", 10, QUANTITY_BINARY}, {"Mi", 20, QUANTITY_BINARY},
        {"Gi", 30, QUANTITY_BINARY}, {"Ti", 40, QUANTITY_BINARY}, {"Pi", 50, QUANTITY_BINARY},
        {"Ei", 60, QUANTITY_BINARY},
};

/* ---- reading */

static bool exponent(struct str s, struct suffix *ret)
{
        int64_t e;

        if (s.n && s.p[0] == '+')
                s = str_n(s.p + 1, s.n - 1);
        if (!str_to_i64(s, &e) || e < INT32_MIN || e > INT32_MAX)
                return false;
        *ret = (struct suffix){.power = (int)MAX(MIN(e, (int64_t)40), (int64_t)-40),
                               .format = QUANTITY_EXPONENT};
        return true;
}

static bool find_suffix(struct str s, struct suffix *ret)
{
        for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
                if (str_eq(s, str_of(SUFFIXES[i].text))) {
                        *ret = SUFFIXES[i];
                        return true;
                }
        return s.n > 1 && (s.p[0] == 'e' || s.p[0] == 'E') && exponent(str_n(s.p + 1, s.n - 1), ret);
}

/* Digits with at most one point; VALUE times 10^-DIGITS. Digits that no amount can have are dropped, upwards. */
static bool digits(struct str s, quantity_nano *value, int *after_point)
{
        bool point = false, any = false, rounded = false;

        *value = 0;
        *after_point = 0;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '.' && !point) {
                        point = true;
                        continue;
                }
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                any = true;
                if (*value > LARGEST) {
                        rounded |= point && s.p[i] != '0';
                        *after_point -= !point;
                        continue;
                }
                *value = *value * 10 + (s.p[i] - '0');
                *after_point += point;
        }
        *value += rounded;
        return any;
}

static quantity_nano scaled(quantity_nano value, const struct suffix *suffix, int after_point)
{
        int power = FRACTION_DIGITS - after_point + (suffix->format == QUANTITY_BINARY ? 0 : suffix->power);
        bool rounded = false;

        if (suffix->format == QUANTITY_BINARY)
                for (int i = 0; i < suffix->power && value <= LARGEST * 1024; i++)
                        value *= 2;
        for (; power > 0 && value <= LARGEST; power--)
                value *= 10;
        for (; power < 0 && value > 0; power++) {
                rounded |= value % 10 != 0;
                value /= 10;
        }
        return MIN(value + rounded, LARGEST);
}

bool quantity_parse(struct str s, struct quantity *ret)
{
        bool negative = s.n && s.p[0] == '-';
        struct suffix suffix;
        quantity_nano value;
        size_t n = 0;
        int after_point;

        if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
                s = str_n(s.p + 1, s.n - 1);
        while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
                n++;
        if (!find_suffix(str_n(s.p + n, s.n - n), &suffix) || !digits(str_n(s.p, n), &value, &after_point))
                return false;
        value = scaled(value, &suffix, after_point);
        *ret = (struct quantity){.nano = negative ? -value : value, .format = suffix.format};
        return true;
}

bool quantity_milli(struct str s, int64_t *ret)
{
        const quantity_nano million = 1000000;
        struct quantity q;
        quantity_nano milli;

        if (!quantity_parse(s, &q))
                return false;
        milli = q.nano < 0 ? -q.nano : q.nano;
        milli = MIN((milli + million - 1) / million, (quantity_nano)INT64_MAX);
        *ret = q.nano < 0 ? -(int64_t)milli : (int64_t)milli;
        return true;
}

bool quantity_of(const struct json *value, struct quantity *ret)
{
        if (json_is(value, JSON_NUMBER))
                return quantity_parse(str_n(value->text, value->len), ret);
        return json_is(value, JSON_STRING) && quantity_parse(str_trim(json_text(value)), ret);
}

/* ---- writing */

static const char *print(quantity_nano value, const char *suffix, struct arena *a)
{
        char text[NUMBER_TEXT], *p = text + sizeof(text);
        bool negative = value < 0;

        *--p = '\0';
        if (negative)
                value = -value;
        do {
                *--p = (char)('0' + (int)(value % 10));
                value /= 10;
        } while (value > 0);
        if (negative)
                *--p = '-';
        return arena_join(a, p, suffix, "");
}

static const char *suffix_for(enum quantity_format format, int power)
{
        for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
                if (SUFFIXES[i].power == power && (SUFFIXES[i].format == format || power == 0))
                        return SUFFIXES[i].text;
        return "";
}

static const char *print_binary(quantity_nano nano, struct arena *a)
{
        quantity_nano whole = nano / BILLION + (nano % BILLION > 0);
        int power = 0;

        while (power < 60 && whole % 1024 == 0) {
                whole /= 1024;
                power += 10;
        }
        return print(whole, suffix_for(QUANTITY_BINARY, power), a);
}

const char *quantity_print(const struct quantity *q, struct arena *a)
{
        quantity_nano value = q->nano;
        int power = -FRACTION_DIGITS;

        if (value == 0)
                return "0";
        if (q->format == QUANTITY_BINARY && (value <= -1024 * BILLION || value >= 1024 * BILLION))
                return print_binary(value, a);
        while (power < 18 && value % 1000 == 0) {
                value /= 1000;
                power += 3;
        }
        if (q->format == QUANTITY_EXPONENT)
                return print(value, power ? arena_printf(a, "e%d", power) : "", a);
        return print(value, suffix_for(QUANTITY_DECIMAL, power), a);
}

/* ---- sums */

struct quantity quantity_add(struct quantity x, struct quantity y)
{
        return (struct quantity){.nano = x.nano + y.nano, .format = x.nano == 0 ? y.format : x.format};
}

struct quantity quantity_sub(struct quantity x, struct quantity y)
{
        return (struct quantity){.nano = x.nano - y.nano, .format = x.nano == 0 ? y.format : x.format};
}
