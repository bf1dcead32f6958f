#include "local/node_private.h"

struct suffix {
        struct str text;
        int64_t milli; /* of one */
};

#define KI ((int64_t)1024)

static const struct suffix SUFFIXES[] = {
        {{"n", 1}, -1000000},
        {{"u", 1}, -1000},
        {{"m", 1}, 1},
        {{"", 0}, 1000},
        {{"k", 1}, 1000000},
        {{"M", 1}, 1000000000},
        {{"G", 1}, 1000000000000},
        {{"T", 1}, 1000000000000000},
        {{"P", 1}, 1000000000000000000},
        {{"E", 1}, INT64_MAX},
        {{"Ki", 2}, 1000 * KI},
        {{"Mi", 2}, 1000 * KI *KI},
        {{"Gi", 2}, 1000 * KI *KI *KI},
        {{"Ti", 2}, 1000 * KI *KI *KI *KI},
        {{"Pi", 2}, 1000 * KI *KI *KI *KI *KI},
        {{"Ei", 2}, INT64_MAX},
};

typedef __int128 wide;

enum { FRACTION_DIGITS = 9 };

/* Digits with a fraction as a whole number of billionths. */
static bool decimal(struct str s, wide *ret)
{
        int fraction = -1;
        bool any = false;

        *ret = 0;
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '.' && fraction < 0) {
                        fraction = 0;
                        continue;
                }
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
                any = true;
                if (fraction == FRACTION_DIGITS)
                        continue;
                if (fraction >= 0)
                        fraction++;
                if (*ret < (wide)INT64_MAX * INT32_MAX)
                        *ret = *ret * 10 + (s.p[i] - '0');
        }
        for (int i = fraction < 0 ? 0 : fraction; i < FRACTION_DIGITS; i++)
                *ret *= 10;
        return any;
}

static bool exponent(struct str s, int64_t *ret_milli)
{
        int64_t e;

        if (s.n && s.p[0] == '+')
                s = str_n(s.p + 1, s.n - 1);
        if (!str_to_i64(s, &e) || e < -9 || e > 30)
                return false;
        *ret_milli = e < -3 ? -1 : 1;
        for (int64_t i = -3; i < e && e >= -3; i++)
                *ret_milli = *ret_milli > INT64_MAX / 10 ? INT64_MAX : *ret_milli * 10;
        for (int64_t i = e; i < -3; i++)
                *ret_milli *= 10;
        return true;
}

static bool scale(struct str suffix, int64_t *ret_milli)
{
        if (suffix.n > 1 && (suffix.p[0] == 'e' || suffix.p[0] == 'E') && suffix.p[1] != 'i')
                return exponent(str_n(suffix.p + 1, suffix.n - 1), ret_milli);
        for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
                if (str_eq(suffix, SUFFIXES[i].text)) {
                        *ret_milli = SUFFIXES[i].milli;
                        return true;
                }
        return false;
}

bool quantity_milli(struct str s, int64_t *ret)
{
        const wide billion = 1000000000;
        bool negative = s.n && s.p[0] == '-';
        int64_t milli;
        size_t n = 0;
        wide value;

        if (s.n && (s.p[0] == '-' || s.p[0] == '+'))
                s = str_n(s.p + 1, s.n - 1);
        while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || s.p[n] == '.'))
                n++;
        if (!decimal(str_n(s.p, n), &value) || !scale(str_n(s.p + n, s.n - n), &milli))
                return false;
        if (milli > 0 && value > (wide)INT64_MAX * billion / milli)
                value = (wide)INT64_MAX;
        else if (milli > 0)
                value = (value * milli + billion - 1) / billion;
        else
                value = (value + billion * -milli - 1) / (billion * -milli);
        if (value > INT64_MAX)
                value = INT64_MAX;
        *ret = negative ? -(int64_t)value : (int64_t)value;
        return true;
}

static int64_t amount(const struct json *resources, const char *resource)
{
        const struct json *j = json_at(resources, resource);
        struct str text = json_is(j, JSON_NUMBER) ? str_n(j->text, j->len) : json_text(j);
        int64_t milli = 0;

        return text.p && quantity_milli(text, &milli) ? milli : 0;
}

/* A request that is not there is the limit, as the API server's defaults have it. */
static int64_t container_request(const struct json *container, const char *resource)
{
        const struct json *resources = json_at(container, "resources");
        const struct json *requests = json_at(resources, "requests");

        return amount(json_at(requests, resource) ? requests : json_at(resources, "limits"), resource);
}

static int64_t plus(int64_t a, int64_t b)
{
        return a > INT64_MAX - b ? INT64_MAX : a + b;
}

int64_t pod_request_milli(const struct json *pod, const char *resource)
{
        const struct json *spec = json_at(pod, "spec");
        int64_t sum = 0, most = 0;

        json_foreach (c, json_at(spec, "containers"))
                sum = plus(sum, container_request(c, resource));
        json_foreach (c, json_at(spec, "initContainers"))
                most = MAX(most, container_request(c, resource));
        return plus(MAX(sum, most), amount(json_at(spec, "overhead"), resource));
}
