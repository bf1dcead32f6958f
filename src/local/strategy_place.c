#include "local/strategy_internal.h"

/* ---- tolerations */

static const char *wrong_label_value(struct causes *c, const char *value)
{
        const char *wrong, *all = NULL;

        for (size_t nth = 0; (wrong = check_label_value(str_of(value), nth)); nth++)
                all = all ? arena_join(c->a, all, ";", wrong) : wrong;
        return all;
}

static const char *go_toleration(struct causes *c, const struct json *t)
{
        return arena_printf(c->a,
                            "core.Toleration{Key:\"%s\", Operator:\"%s\", Value:\"%s\", Effect:\"%s\", "
                            "TolerationSeconds:(*int64)(nil)}",
                            json_str_or(t, "key", ""), json_str_or(t, "operator", ""),
                            json_str_or(t, "value", ""), json_str_or(t, "effect", ""));
}

static void check_toleration(struct causes *c, const char *path, const struct json *t)
{
        static const char *const operators[] = {"Equal", "Exists", NULL};
        static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute", NULL};
        const char *key = json_str_or(t, "key", ""), *op = json_str_or(t, "operator", "");
        const char *effect = json_str_or(t, "effect", ""), *value = json_str_or(t, "value", "");
        const char *at = path_key(c, path, "operator");

        if (*key)
                check_value(c, path_key(c, path, "key"), key, check_qualified);
        if (!*key && !streq(op, "Exists"))
                bad_str(c, at, op,
                        "operator must be Exists when `key` is empty, which means \"match all values and all "
                        "keys\"");
        if (json_at(t, "tolerationSeconds") && !streq(effect, "NoExecute"))
                bad_str(c, path_key(c, path, "effect"), effect,
                        "effect must be 'NoExecute' when `tolerationSeconds` is set");
        if (!*op || streq(op, "Equal")) {
                if (wrong_label_value(c, value))
                        bad_str(c, at, value, wrong_label_value(c, value));
        } else if (streq(op, "Exists")) {
                if (*value)
                        bad_raw(c, at, go_toleration(c, t),
                                "value must be empty when `operator` is 'Exists'");
        } else {
                bad_enum(c, at, op, operators);
        }
        if (*effect && !str_in(effects, effect))
                bad_enum(c, path_key(c, path, "effect"), effect, effects);
}

void tolerations_validate(struct causes *c, const char *path, const struct json *tolerations)
{
        size_t i = 0;

        json_foreach (t, tolerations)
                check_toleration(c, path_index(c, path, i++), t);
}

/* ---- affinity */

static void check_requirement(struct causes *c, const char *path, const struct json *r)
{
        const char *op = json_str_or(r, "operator", ""), *values = path_key(c, path, "values");
        size_t n = json_len(json_at(r, "values"));

        if (streq(op, "Gt") || streq(op, "Lt")) {
                if (n != 1)
                        bad_required(c, values,
                                     "must be specified single value when `operator` is 'Lt' or 'Gt'");
        } else if (!check_set_operator(c, values, op, n)) {
                bad_str(c, path_key(c, path, "operator"), op, "not a valid selector operator");
        }
        check_value(c, path_key(c, path, "key"), json_str_or(r, "key", ""), check_qualified);
}

static void check_field_requirement(struct causes *c, const char *path, const struct json *r)
{
        const char *op = json_str_or(r, "operator", ""), *key = json_str_or(r, "key", "");
        const char *values = path_key(c, path, "values");
        size_t i = 0;

        if (!streq(op, "In") && !streq(op, "NotIn"))
                bad_str(c, path_key(c, path, "operator"), op, "not a valid selector operator");
        else if (json_len(json_at(r, "values")) != 1)
                bad_required(
                        c, values,
                        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
        if (!streq(key, "metadata.name")) {
                bad_str(c, path_key(c, path, "key"), key, "not a valid field selector key");
                return;
        }
        json_foreach (v, json_at(r, "values"))
                check_value(c, path_index(c, values, i++), json_cstr(v) ? json_cstr(v) : "", check_subdomain);
}

static void check_node_term(struct causes *c, const char *path, const struct json *term)
{
        size_t i = 0, k = 0;

        json_foreach (r, json_at(term, "matchExpressions"))
                check_requirement(c, path_index(c, path_key(c, path, "matchExpressions"), i++), r);
        json_foreach (r, json_at(term, "matchFields"))
                check_field_requirement(c, path_index(c, path_key(c, path, "matchFields"), k++), r);
}

static void check_weight(struct causes *c, const char *path, const struct json *term)
{
        int64_t weight = json_int(term, "weight", 0);

        if (weight <= 0 || weight > 100)
                bad_int(c, path_key(c, path, "weight"), weight, "must be in the range 1-100");
}

static const char REQUIRED[] = "requiredDuringSchedulingIgnoredDuringExecution";
static const char PREFERRED[] = "preferredDuringSchedulingIgnoredDuringExecution";

static void check_node_affinity(struct causes *c, const char *path, const struct json *affinity)
{
        const struct json *required = json_at(affinity, REQUIRED),
                          *terms = json_at(required, "nodeSelectorTerms");
        const char *list = path_key(c, path_key(c, path, REQUIRED), "nodeSelectorTerms");
        size_t i = 0;

        if (required && json_len(terms) == 0)
                bad_required(c, list, "must have at least one node selector term");
        json_foreach (t, terms)
                check_node_term(c, path_index(c, list, i++), t);
        i = 0;
        json_foreach (t, json_at(affinity, PREFERRED)) {
                const char *here = path_index(c, path_key(c, path, PREFERRED), i++);

                check_weight(c, here, t);
                check_node_term(c, path_key(c, here, "preference"), json_at(t, "preference"));
        }
}

static void check_pod_term(struct causes *c, const char *path, const struct json *term)
{
        const char *key = json_str_or(term, "topologyKey", "");

        check_label_selector(c, path_key(c, path, "matchExpressions"), json_at(term, "labelSelector"));
        json_foreach (ns, json_at(term, "namespaces"))
                check_value(c, path_key(c, path, "namespace"), json_cstr(ns) ? json_cstr(ns) : "",
                            check_label);
        if (!*key)
                bad_required(c, path_key(c, path, "topologyKey"), "can not be empty");
        check_value(c, path_key(c, path, "topologyKey"), key, check_qualified);
}

static void check_pod_affinity(struct causes *c, const char *path, const struct json *affinity)
{
        size_t i = 0;

        json_foreach (t, json_at(affinity, REQUIRED))
                check_pod_term(c, path_index(c, path_key(c, path, REQUIRED), i++), t);
        i = 0;
        json_foreach (t, json_at(affinity, PREFERRED)) {
                const char *here = path_index(c, path_key(c, path, PREFERRED), i++);

                check_weight(c, here, t);
                check_pod_term(c, path_key(c, here, "podAffinityTerm"), json_at(t, "podAffinityTerm"));
        }
}

void affinity_validate(struct causes *c, const char *path, const struct json *affinity)
{
        static const char *const pods[] = {"podAffinity", "podAntiAffinity"};

        if (json_at(affinity, "nodeAffinity"))
                check_node_affinity(c, path_key(c, path, "nodeAffinity"), json_at(affinity, "nodeAffinity"));
        for (size_t i = 0; i < ARRAY_LEN(pods); i++)
                if (json_at(affinity, pods[i]))
                        check_pod_affinity(c, path_key(c, path, pods[i]), json_at(affinity, pods[i]));
}

/* ---- spreading */

static bool repeated(const struct json *list, const struct json *one)
{
        bool after = false;

        json_foreach (o, list) {
                if (after && streq(json_str(o, "topologyKey"), json_str(one, "topologyKey")) &&
                    streq(json_str(o, "whenUnsatisfiable"), json_str(one, "whenUnsatisfiable")))
                        return true;
                after |= o == one;
        }
        return false;
}

void spread_validate(struct causes *c, const char *path, const struct json *constraints)
{
        static const char *const actions[] = {"DoNotSchedule", "ScheduleAnyway", NULL};
        size_t i = 0;

        json_foreach (s, constraints) {
                const char *here = path_index(c, path, i++),
                           *action = json_str_or(s, "whenUnsatisfiable", "");
                const char *key = json_str_or(s, "topologyKey", "");

                if (json_int(s, "maxSkew", 0) <= 0)
                        bad_int(c, path_key(c, here, "maxSkew"), json_int(s, "maxSkew", 0),
                                "must be greater than zero");
                if (!*key)
                        bad_required(c, path_key(c, here, "topologyKey"), "can not be empty");
                if (!str_in(actions, action))
                        bad_enum(c, path_key(c, here, "whenUnsatisfiable"), action, actions);
                if (repeated(constraints, s))
                        bad_duplicate(c, path_key(c, here, "{topologyKey, whenUnsatisfiable}"),
                                      arena_printf(c->a, "{%s, %s}", key, action));
        }
}
