/*
 * What becomes part of the profiler's pod (resources, tolerations, node selector), and labels and annotations: what the API
 * server would refuse in the Job, where nobody would look for it.
 */
#include "kinds/dgdr/spec_internal.h"

#define POD_PATH "spec.profilingConfig"

enum { ANNOTATIONS_MAX = 256 * 1024, EXPONENT_MAX = 300 };

static const char *entry(struct wrongs *w, const char *path, const char *key)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);

        buf_adds(&b, path);
        json_path_add_key(&b, str_n(key, utf8_cut(key, strlen(key), 80)));
        return arena_strndup(w->arena, b.p, b.n);
}

/* ---- names of labels: an optional prefix, which is a domain, and a name */

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

void spec_check_labels(struct wrongs *w, const char *path, const struct json *labels)
{
        json_foreach (label, labels) {
                if (!is_qualified_name(label->key))
                        wrong(w, entry(w, path, label->key),
                              "is no name of a label: letters, digits, '-', '_' and '.', at most 63, after "
                              "an "
                              "optional domain and '/'");
                if (!json_cstr(label) || !name_valid(NAME_LABEL_VALUE, str_of(json_cstr(label))))
                        wrong(w, entry(w, path, label->key),
                              "%s is no value of a label: letters, digits, '-', '_' and '.', at most 63",
                              shown_json(w->arena, label));
        }
}

/* The domain of an annotation may be in upper case. */
static const char *lower(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);

        for (char *p = copy; *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char)(*p - 'A' + 'a');
        return copy;
}

void check_annotations(struct wrongs *w, const char *path, const struct json *annotations)
{
        size_t total = 0;

        json_foreach (annotation, annotations) {
                if (!is_qualified_name(lower(w->arena, annotation->key)))
                        wrong(w, entry(w, path, annotation->key),
                              "is no name of an annotation: letters, digits, '-', '_' and '.', at most 63, "
                              "after "
                              "an optional domain and '/'");
                if (!json_is(annotation, JSON_STRING))
                        wrong(w, entry(w, path, annotation->key), "must be a text, not %s",
                              shown_json(w->arena, annotation));
                total += annotation->key_len + json_text(annotation).n;
        }
        if (total > ANNOTATIONS_MAX)
                wrong(w, path, "have %zu bytes, an object takes %d", total, (int)ANNOTATIONS_MAX);
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

/*
 * An amount as Kubernetes writes it: 500m, 1Gi, 1e3. Rounded: good enough to compare two of them when they are not almost
 * the same. False: it is none.
 */
static bool amount_of(const struct json *value, double *ret)
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
                        wrong(w, entry(w, path, value->key),
                              "is no resource: cpu, memory, ephemeral-storage, or one with a domain such as "
                              "nvidia.com/gpu");
                if (!amount_of(value, &amount))
                        wrong(w, entry(w, path, value->key),
                              "%s is no amount, write for example 500m or 16Gi", shown_json(w->arena, value));
                else if (amount < 0)
                        wrong(w, entry(w, path, value->key), "%s is below 0", shown_json(w->arena, value));
        }
}

static void check_resources(struct wrongs *w, const struct json *resources)
{
        const struct json *requests = json_at(resources, "requests"), *limits = json_at(resources, "limits");

        check_amounts(w, POD_PATH ".resources.requests", requests);
        check_amounts(w, POD_PATH ".resources.limits", limits);
        json_foreach (request, json_is(requests, JSON_OBJECT) ? requests : NULL) {
                const struct json *limit = json_at(limits, request->key);
                double asked, most;

                if (limit && amount_of(request, &asked) && amount_of(limit, &most) &&
                    asked > most * (1 + 1e-9))
                        wrong(w, entry(w, POD_PATH ".resources.requests", request->key),
                              "%s is more than the limit, which is %s", shown_json(w->arena, request),
                              shown_json(w->arena, limit));
        }
}

/* ---- tolerations */

static bool is_one_of(const char *text, const char *const *list)
{
        for (; *list; list++)
                if (streq(text, *list))
                        return true;
        return false;
}

static const char *toleration_fault(struct wrongs *w, const struct json *t)
{
        static const char *const operators[] = {"", "Equal", "Exists", NULL};
        static const char *const effects[] = {"", "NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        const char *op = json_str_or(t, "operator", ""), *key = json_str_or(t, "key", "");
        const char *value = json_str_or(t, "value", ""), *effect = json_str_or(t, "effect", "");

        if (!is_one_of(op, operators))
                return arena_printf(w->arena, "operator must be Exists or Equal, not %s",
                                    shown(w->arena, op));
        if (!is_one_of(effect, effects))
                return arena_printf(w->arena,
                                    "effect must be NoSchedule, PreferNoSchedule or NoExecute, not %s",
                                    shown(w->arena, effect));
        if (*key && !is_qualified_name(key))
                return arena_printf(w->arena, "key %s is no name of a taint", shown(w->arena, key));
        if (!*key && !streq(op, "Exists"))
                return "a toleration without a key needs operator Exists";
        if (*value && streq(op, "Exists"))
                return "operator Exists takes no value, leave it out or use Equal";
        if (!name_valid(NAME_LABEL_VALUE, str_of(value)))
                return arena_printf(w->arena, "value %s is no value of a taint", shown(w->arena, value));
        if (json_at(t, "tolerationSeconds") && !streq(effect, "NoExecute"))
                return "tolerationSeconds goes with effect NoExecute only";
        return NULL;
}

static void check_tolerations(struct wrongs *w, const struct json *tolerations)
{
        size_t i = 0;

        json_foreach (toleration, tolerations) {
                const char *fault = toleration_fault(w, toleration);

                if (fault)
                        wrong(w, arena_printf(w->arena, POD_PATH ".tolerations[%zu]", i), "%s", fault);
                i++;
        }
}

void check_pod(struct wrongs *w, const struct dgdr_spec *spec)
{
        check_resources(w, spec->resources);
        check_tolerations(w, spec->tolerations);
        spec_check_labels(w, POD_PATH ".nodeSelector", spec->node_selector);
}
