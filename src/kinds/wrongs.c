/*
 * What is wrong with a spec: how that is told, and what many kinds' specs have.
 */
#include "kinds/wrongs.h"

enum { CONTROLS_WRONG_MAX = 8, SHOWN_MAX = 60, EXPONENT_MAX = 300 };

/* ---- telling */

const char *shown(struct arena *a, const char *text)
{
        size_t n = strlen(text), cut = utf8_cut(text, n, SHOWN_MAX);
        char *copy = arena_strndup(a, text, cut);

        for (char *p = copy; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7F)
                        *p = ' ';
        return arena_printf(a, "'%s%s'", copy, cut < n ? "..." : "");
}

const char *shown_json(struct arena *a, const struct json *value)
{
        if (!value)
                return "missing";
        if (json_cstr(value))
                return shown(a, json_cstr(value));
        if (json_is(value, JSON_OBJECT) || json_is(value, JSON_ARRAY))
                return arena_printf(a, "an %s", json_type_name(value->type));
        return shown(a, json_print(a, value));
}

void wrong(struct wrongs *w, const char *path, const char *fmt, ...)
{
        const char *what;
        va_list ap;

        va_start(ap, fmt);
        what = arena_vprintf(w->arena, fmt, ap);
        va_end(ap);
        /* 32: for what is said about those that are left out */
        if (w->n == WRONGS_MAX || w->left_out ||
            w->text.n + strlen(path) + strlen(what) + 4 > WRONGS_TEXT_MAX - 32) {
                w->left_out++;
                return;
        }
        buf_printf(&w->text, "%s%s: %s", w->n++ ? "; " : "", path, what);
}

const char *wrongs_told(struct wrongs *w)
{
        const char *text;

        if (w->left_out)
                buf_printf(&w->text, "%sand %zu more", w->n ? "; " : "", w->left_out);
        text = w->text.n ? arena_strndup(w->arena, w->text.p, w->text.n) : NULL;
        buf_done(&w->text);
        return text;
}

const char *wrong_entry(struct wrongs *w, const char *path, const char *key)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);

        buf_adds(&b, path);
        json_path_add_key(&b, str_n(key, utf8_cut(key, strlen(key), 80)));
        return arena_strndup(w->arena, b.p, b.n);
}

/* ---- what many have */

void check_controls(struct wrongs *w, const struct view *v)
{
        const char *sentences[CONTROLS_WRONG_MAX];
        size_t n = run_controls_check(v, sentences, ARRAY_LEN(sentences));

        for (size_t i = 0; i < MIN(n, ARRAY_LEN(sentences)); i++) {
                struct str rest = str_of(sentences[i]), path = str_split(&rest, ':');

                wrong(w, arena_strndup(w->arena, path.p, path.n), "%.*s", STR_ARG(str_trim(rest)));
        }
}

/* An optional prefix, which is a domain, and a name. */
bool is_qualified_name(const char *key)
{
        struct str name = str_of(key), prefix = STR_NULL;
        const char *slash = strchr(key, '/');

        if (slash) {
                prefix = str_n(key, (size_t)(slash - key));
                name = str_of(slash + 1);
                if (!name_valid(NAME_SUBDOMAIN, prefix))
                        return false;
        }
        return name.n && name_valid(NAME_LABEL_VALUE, name);
}

/* ---- parts of a container */

const char *mount_path_fault(const char *path, bool shared)
{
        struct str rest = str_of(path);
        bool first = true;

        if (!path || *path != '/')
                return "must be an absolute path";
        if (strchr(path, ':'))
                return "has a ':' in it, which no mount may have";
        while (rest.p) {
                struct str part = str_split(&rest, '/');

                if (!part.n)
                        continue;
                if (str_eq(part, STR(".")) || str_eq(part, STR("..")))
                        return "must be without '.' and '..'";
                if (first && (str_eq(part, STR("sonde")) || (shared && str_eq(part, STR("shared")))))
                        return shared ? "is in a directory of Sonde's own (/sonde, /shared), take another"
                                      : "is in a directory of Sonde's own (/sonde), take another";
                first = false;
        }
        return first ? "must not be the root of all" : NULL;
}

bool path_goes_up(const char *path)
{
        struct str rest = str_of(path);

        while (rest.p)
                if (str_eq(str_split(&rest, '/'), STR("..")))
                        return true;
        return false;
}

/* ---- resources */

/* The unit after a number, as a factor; 0: none. */
static double suffix_factor(struct str suffix)
{
        static const struct {
                const char *suffix;
                double factor;
        } factors[] = {{"", 1},        {"n", 1e-9},    {"u", 1e-6},    {"m", 1e-3},
                       {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                       {"P", 1e15},    {"E", 1e18},    {"Ki", 0x1p10}, {"Mi", 0x1p20},
                       {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}};
        int64_t exponent;
        double factor = 1;

        for (size_t i = 0; i < ARRAY_LEN(factors); i++)
                if (str_eq(suffix, str_of(factors[i].suffix)))
                        return factors[i].factor;
        if (suffix.n < 2 || (suffix.p[0] != 'e' && suffix.p[0] != 'E'))
                return 0;
        suffix = str_n(suffix.p + 1, suffix.n - 1);
        if (suffix.p[0] == '+')
                suffix = str_n(suffix.p + 1, suffix.n - 1);
        if (!str_to_i64(suffix, &exponent) || exponent < -EXPONENT_MAX || exponent > EXPONENT_MAX)
                return 0;
        for (int64_t i = 0; i < (exponent < 0 ? -exponent : exponent); i++)
                factor = exponent < 0 ? factor / 10 : factor * 10;
        return factor;
}

bool amount_of(const struct json *value, double *ret)
{
        struct str s = json_is(value, JSON_NUMBER) ? str_n(value->text, value->len) : json_text(value);
        double number = 0, place = 1, factor;
        bool negative = false, digits = false, point = false;
        size_t i = 0;

        if (s.n && (s.p[0] == '+' || s.p[0] == '-'))
                negative = s.p[i++] == '-';
        for (; i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] == '.' && !point)); i++) {
                if (s.p[i] == '.') {
                        point = true;
                        continue;
                }
                digits = true;
                number = number * 10 + (s.p[i] - '0');
                place *= point ? 10 : 1;
        }
        factor = digits ? suffix_factor(str_n(s.p + i, s.n - i)) : 0;
        *ret = (negative ? -1 : 1) * number / place * factor;
        return factor > 0;
}

static bool is_resource_name(const char *name)
{
        static const char *const plain[] = {"cpu", "memory", "ephemeral-storage"};

        for (size_t i = 0; i < ARRAY_LEN(plain); i++)
                if (streq(name, plain[i]))
                        return true;
        if (str_has_prefix(str_of(name), STR("hugepages-")))
                return true;
        return strchr(name, '/') && is_qualified_name(name);
}

static void check_amounts(struct wrongs *w, const char *path, const struct json *amounts)
{
        if (amounts && !json_is(amounts, JSON_OBJECT)) {
                wrong(w, path, "must be an object, not %s", shown_json(w->arena, amounts));
                return;
        }
        json_foreach (value, amounts) {
                double amount;

                if (!is_resource_name(value->key))
                        wrong(w, wrong_entry(w, path, value->key),
                              "is no resource: cpu, memory, ephemeral-storage, or one with a domain such as "
                              "nvidia.com/gpu");
                if (!amount_of(value, &amount))
                        wrong(w, wrong_entry(w, path, value->key),
                              "%s is no amount, write for example 500m or 16Gi", shown_json(w->arena, value));
                else if (amount < 0)
                        wrong(w, wrong_entry(w, path, value->key), "%s is below 0",
                              shown_json(w->arena, value));
        }
}

void check_resources(struct wrongs *w, const char *path, const struct json *resources)
{
        const struct json *requests = json_at(resources, "requests"), *limits = json_at(resources, "limits");
        const char *asked_path = arena_join(w->arena, path, ".", "requests");

        check_amounts(w, asked_path, requests);
        check_amounts(w, arena_join(w->arena, path, ".", "limits"), limits);
        json_foreach (request, json_is(requests, JSON_OBJECT) ? requests : NULL) {
                const struct json *limit = json_at(limits, request->key);
                double asked, most;

                if (limit && amount_of(request, &asked) && amount_of(limit, &most) &&
                    asked > most * (1 + 1e-9))
                        wrong(w, wrong_entry(w, asked_path, request->key),
                              "%s is more than the limit, which is %s", shown_json(w->arena, request),
                              shown_json(w->arena, limit));
        }
}
