#include "local/strategy_internal.h"

static void prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                    struct json *quota)
{
        if (!old)
                json_set(c->a, quota, "status", json_object(c->a));
}

/* Without a domain only these are known. */
static const char *const KNOWN[] = {
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "persistentvolumeclaims",
        "configmaps",
        "services.nodeports",
        "services.loadbalancers",
        NULL,
};
static const char *const COUNTED[] = {
        "pods",       "resourcequotas",         "services",           "replicationcontrollers", "secrets",
        "configmaps", "persistentvolumeclaims", "services.nodeports", "services.loadbalancers", NULL,
};

static void check_amounts(struct causes *c, const char *path, const struct json *amounts)
{
        json_foreach (m, amounts) {
                const char *here = path_map(c, path, m->key);
                struct quantity q;

                check_value(c, here, m->key, check_qualified);
                if (!strchr(m->key, '/') && !str_in(KNOWN, m->key)) {
                        bad_str(c, here, m->key, "must be a standard resource type or fully qualified");
                        bad_str(c, here, m->key, "must be a standard resource for quota");
                }
                if (!quantity_of(m, &q))
                        continue;
                if (q.nano < 0)
                        bad_str(c, here, quantity_print(&q, c->a), "must be greater than or equal to 0");
                if ((str_in(COUNTED, m->key) || (strchr(m->key, '/') && !strstr(m->key, "kubernetes.io/"))) &&
                    q.nano % 1000000000 != 0)
                        bad_raw(c, here, go_quantity(c, &q), "must be an integer");
        }
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *quota, struct causes *c)
{
        if (streq(sub, "status")) {
                check_amounts(c, "status.hard", json_path(quota, "status.hard"));
                check_amounts(c, "status.used", json_path(quota, "status.used"));
                return;
        }
        check_amounts(c, "spec.hard", json_path(quota, "spec.hard"));
        /* What a quota counts by scope is nothing that one machine needs: better refused than ignored. */
        if (json_len(json_path(quota, "spec.scopes")) > 0)
                bad_forbidden(c, "spec.scopes", "scopes are not supported by the embedded engine");
        if (json_path(quota, "spec.scopeSelector"))
                bad_forbidden(c, "spec.scopeSelector", "scopes are not supported by the embedded engine");
}

const struct strategy STRATEGY_QUOTA = {.prepare = prepare, .validate = validate, .row = quota_row};
