#include "local/strategy_internal.h"

#include <arpa/inet.h>

static const struct {
        const char *store;
        const struct strategy *strategy;
        struct columns (*columns)(void);
} TYPES[] = {
        {"pods", &STRATEGY_POD, pod_columns},
        {"jobs.batch", &STRATEGY_JOB, job_columns},
        {"configmaps", &STRATEGY_CONFIGMAP, configmap_columns},
        {"secrets", &STRATEGY_SECRET, secret_columns},
        {"namespaces", &STRATEGY_NAMESPACE, namespace_columns},
        {"serviceaccounts", &STRATEGY_ACCOUNT, account_columns},
        {"persistentvolumeclaims", &STRATEGY_CLAIM, claim_columns},
        {"resourcequotas", &STRATEGY_QUOTA, quota_columns},
        {"services", &STRATEGY_SERVICE, service_columns},
        {"nodes", &STRATEGY_NODE, node_columns},
        {"events", &STRATEGY_EVENT, event_columns},
        {"leases.coordination.k8s.io", &STRATEGY_LEASE, lease_columns},
        {"roles.rbac.authorization.k8s.io", &STRATEGY_ROLE, NULL},
        {"clusterroles.rbac.authorization.k8s.io", &STRATEGY_ROLE, NULL},
        {"rolebindings.rbac.authorization.k8s.io", &STRATEGY_BINDING, binding_columns},
        {"clusterrolebindings.rbac.authorization.k8s.io", &STRATEGY_BINDING, binding_columns},
        {"customresourcedefinitions.apiextensions.k8s.io", &STRATEGY_CRD, NULL},
};

const struct strategy *strategy_of(const char *store)
{
        static const struct strategy none;

        for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
                if (streq(TYPES[i].store, store))
                        return TYPES[i].strategy;
        return &none;
}

void strategy_columns(const char *store, const struct table_column **columns, size_t *n)
{
        *columns = NULL;
        *n = 0;
        for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
                if (streq(TYPES[i].store, store) && TYPES[i].columns) {
                        struct columns c = TYPES[i].columns();

                        *columns = c.list;
                        *n = c.n;
                }
}

/* ---- defaults */

static bool unsaid(const struct json *object, const char *key)
{
        const struct json *v = json_at(object, key);

        return !v || v->type == JSON_NULL || (v->type == JSON_STRING && v->len == 0);
}

void default_str(struct arena *a, struct json *object, const char *key, const char *value)
{
        if (unsaid(object, key))
                json_set(a, object, key, json_string(a, value));
}

void default_int(struct arena *a, struct json *object, const char *key, int64_t value)
{
        if (unsaid(object, key))
                json_set(a, object, key, json_i64(a, value));
}

void default_bool(struct arena *a, struct json *object, const char *key, bool value)
{
        if (unsaid(object, key))
                json_set(a, object, key, json_truth(a, value));
}

struct json *child_object(struct arena *a, struct json *object, const char *key)
{
        struct json *v = json_at(object, key);

        return json_is(v, JSON_OBJECT) ? v : json_set(a, object, key, json_object(a));
}

static int by_key(const void *x, const void *y)
{
        return strcmp((*(const struct json *const *)x)->key, (*(const struct json *const *)y)->key);
}

const struct json **sorted_members(const struct json *object, struct arena *a)
{
        const struct json **list = arena_new_array(a, const struct json *, json_len(object) + 1);
        size_t n = 0;

        json_foreach (m, object)
                list[n++] = m;
        if (n)
                qsort(list, n, sizeof(*list), by_key);
        return list;
}

/* ---- causes */

const char *go_strings(struct causes *c, const struct json *list)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        buf_adds(&b, "[]string{");
        json_foreach (s, list)
                buf_printf(&b, "%s\"%s\"", s == json_first(list) ? "" : ", ",
                           json_cstr(s) ? json_cstr(s) : "");
        buf_addc(&b, '}');
        return b.overflow ? "[]string{}" : arena_strdup(c->a, buf_cstr(&b));
}

const char *path_key(struct causes *c, const char *path, const char *key)
{
        return *path ? arena_join(c->a, path, ".", key) : key;
}

const char *path_index(struct causes *c, const char *path, size_t i)
{
        return arena_printf(c->a, "%s[%zu]", path, i);
}

const char *path_map(struct causes *c, const char *path, const char *key)
{
        return arena_printf(c->a, "%s[%s]", path, key);
}

/* As it prints one that was written with a point. */
const char *go_quantity(struct causes *c, const struct quantity *q)
{
        quantity_nano value = q->nano;
        int scale = -9;

        for (; value != 0 && value % 10 == 0; value /= 10)
                scale++;
        return arena_printf(c->a,
                            "resource.Quantity{i:resource.int64Amount{value:%lld, scale:%d}, "
                            "d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:\"\", Format:\"DecimalSI\"}",
                            (long long)value, scale);
}

const char *go_map(struct causes *c, const struct json *labels)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);
        const struct json **list = sorted_members(labels, c->a);

        if (!*list)
                return "map[string]string(nil)";
        buf_adds(&b, "map[string]string{");
        for (size_t i = 0; list[i]; i++)
                buf_printf(&b, "%s\"%s\":\"%s\"", i ? ", " : "", list[i]->key,
                           json_cstr(list[i]) ? json_cstr(list[i]) : "");
        buf_addc(&b, '}');
        return b.overflow ? "" : arena_strdup(c->a, buf_cstr(&b));
}

void bad_required(struct causes *c, const char *path, const char *detail)
{
        causes_add(c, "FieldValueRequired", path, "Required value%s%s", *detail ? ": " : "", detail);
}

void bad_raw(struct causes *c, const char *path, const char *value, const char *detail)
{
        causes_add(c, "FieldValueInvalid", path, "Invalid value: %s%s%s", value, *detail ? ": " : "", detail);
}

/* As Go quotes it, which for what is printable is as JSON does. */
static const char *quoted(struct causes *c, const char *value)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 16);

        json_write_string(str_of(value), &b);
        return b.overflow ? "\"\"" : arena_strndup(c->a, b.p, b.n);
}

void bad_str(struct causes *c, const char *path, const char *value, const char *detail)
{
        bad_raw(c, path, quoted(c, value), detail);
}

void bad_int(struct causes *c, const char *path, int64_t value, const char *detail)
{
        bad_raw(c, path, arena_printf(c->a, "%lld", (long long)value), detail);
}

void bad_forbidden(struct causes *c, const char *path, const char *detail)
{
        causes_add(c, "FieldValueForbidden", path, "Forbidden%s%s", *detail ? ": " : "", detail);
}

void bad_duplicate(struct causes *c, const char *path, const char *value)
{
        causes_add(c, "FieldValueDuplicate", path, "Duplicate value: %s", quoted(c, value));
}

void bad_not_found(struct causes *c, const char *path, const char *value)
{
        causes_add(c, "FieldValueNotFound", path, "Not found: %s", quoted(c, value));
}

void bad_enum(struct causes *c, const char *path, const char *value, const char *const *known)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(4096);

        for (const char *const *k = known; *k; k++)
                buf_printf(&b, "%s\"%s\"", k == known ? "" : ", ", *k);
        causes_add(c, "FieldValueNotSupported", path, "Unsupported value: %s: supported values: %s",
                   quoted(c, value), buf_cstr(&b));
}

bool str_in(const char *const *list, const char *word)
{
        for (; *list; list++)
                if (streq(*list, word))
                        return true;
        return false;
}

void check_enum(struct causes *c, const char *path, const char *value, const char *const *known)
{
        if (!value || !*value)
                bad_required(c, path, "");
        else if (!str_in(known, value))
                bad_enum(c, path, value, known);
}

void check_not_negative(struct causes *c, const char *path, const struct json *object, const char *key)
{
        int64_t value = json_int(object, key, 0);

        if (value < 0)
                bad_int(c, path_key(c, path, key), value, "must be greater than or equal to 0");
}

void check_port(struct causes *c, const char *path, int64_t port)
{
        if (port < 1 || port > 65535)
                bad_int(c, path, port, "must be between 1 and 65535, inclusive");
}

const char *check_port_name(struct str s, size_t nth)
{
        bool chars = true, letter = false, twice = false;
        size_t found = 0;

        for (size_t i = 0; i < s.n; i++) {
                bool small = s.p[i] >= 'a' && s.p[i] <= 'z';

                chars &= small || (s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == '-';
                letter |= small;
                twice |= i > 0 && s.p[i] == '-' && s.p[i - 1] == '-';
        }
        if (s.n > 15 && found++ == nth)
                return "must be no more than 15 characters";
        if ((!chars || s.n == 0) && found++ == nth)
                return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
        if (!letter && found++ == nth)
                return "must contain at least one letter or number (a-z, 0-9)";
        if (twice && found++ == nth)
                return "must not contain consecutive hyphens";
        if (s.n > 0 && (s.p[0] == '-' || s.p[s.n - 1] == '-') && found++ == nth)
                return "must not begin or end with a hyphen";
        return NULL;
}

bool check_set_operator(struct causes *c, const char *values, const char *op, size_t n)
{
        bool set = streq(op, "In") || streq(op, "NotIn"),
             exists = streq(op, "Exists") || streq(op, "DoesNotExist");

        if (set && n == 0)
                bad_required(c, values, "must be specified when `operator` is 'In' or 'NotIn'");
        if (exists && n > 0)
                bad_forbidden(c, values,
                              "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        return set || exists;
}

static void check_requirement(struct causes *c, const char *path, const struct json *r)
{
        const char *op = json_str_or(r, "operator", ""), *values = path_key(c, path, "values");

        if (!check_set_operator(c, values, op, json_len(json_at(r, "values"))))
                bad_str(c, path_key(c, path, "operator"), op, "not a valid selector operator");
        check_value(c, path_key(c, path, "key"), json_str_or(r, "key", ""), check_qualified);
}

void check_label_selector(struct causes *c, const char *path, const struct json *selector)
{
        const char *list = path_key(c, path, "matchExpressions");
        size_t i = 0;

        check_labels(c, path_key(c, path, "matchLabels"), json_at(selector, "matchLabels"));
        json_foreach (r, json_at(selector, "matchExpressions"))
                check_requirement(c, path_index(c, list, i++), r);
}

bool is_ip(const char *text)
{
        unsigned char address[16];

        return inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

bool same(const struct json *x, const struct json *y)
{
        return (!x && !y) || (x && y && json_equal(x, y));
}
