#include "local/strategy_internal.h"

#define RBAC_GROUP "rbac.authorization.k8s.io"

static void check_rule(struct causes *c, const char *path, const struct json *rule, bool namespaced)
{
        const struct json *urls = json_at(rule, "nonResourceURLs");
        const char *at = path_key(c, path, "nonResourceURLs");

        if (json_len(json_at(rule, "verbs")) == 0)
                bad_required(c, path_key(c, path, "verbs"), "verbs must contain at least one value");
        if (json_len(urls) > 0) {
                if (namespaced)
                        bad_raw(c, at, go_strings(c, urls),
                                "namespaced rules cannot apply to non-resource URLs");
                if (json_len(json_at(rule, "apiGroups")) + json_len(json_at(rule, "resources")) +
                            json_len(json_at(rule, "resourceNames")) >
                    0)
                        bad_raw(c, at, go_strings(c, urls),
                                "rules cannot apply to both regular resources and non-resource URLs");
                return;
        }
        if (json_len(json_at(rule, "apiGroups")) == 0)
                bad_required(c, path_key(c, path, "apiGroups"),
                             "resource rules must supply at least one api group");
        if (json_len(json_at(rule, "resources")) == 0)
                bad_required(c, path_key(c, path, "resources"),
                             "resource rules must supply at least one resource");
}

static void role_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                          const struct json *role, struct causes *c)
{
        static const char list[] = "aggregationRule.clusterRoleSelectors";
        const struct json *aggregation = json_at(role, "aggregationRule");
        const struct json *selectors = json_at(aggregation, "clusterRoleSelectors");
        size_t i = 0;

        json_foreach (rule, json_at(role, "rules"))
                check_rule(c, path_index(c, "rules", i++), rule, ctx->type->kube.namespaced);
        if (aggregation && json_len(selectors) == 0)
                bad_required(c, list,
                             "at least one clusterRoleSelector required if aggregationRule is non-nil");
        i = 0;
        json_foreach (s, selectors)
                check_label_selector(c, path_index(c, list, i++), s);
}

/* No rules are null once they are stored, however that was said. */
static void role_prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                         struct json *role)
{
        if (json_len(json_at(role, "rules")) == 0)
                json_set(c->a, role, "rules", json_null(c->a));
}

const struct strategy STRATEGY_ROLE = {.prepare = role_prepare, .validate = role_validate};

/* ---- bindings */

static void binding_defaults(const struct strategy_context *c, struct json *binding)
{
        default_str(c->a, child_object(c->a, binding, "roleRef"), "apiGroup", RBAC_GROUP);
        json_foreach (s, json_at(binding, "subjects"))
                if (streq(json_str(s, "kind"), "User") || streq(json_str(s, "kind"), "Group"))
                        default_str(c->a, s, "apiGroup", RBAC_GROUP);
}

static void check_subject(struct causes *c, const char *path, const struct json *s, bool namespaced)
{
        static const char *const none[] = {"", NULL}, *const group[] = {RBAC_GROUP, NULL};
        static const char *const kinds[] = {"ServiceAccount", "User", "Group", NULL};
        const char *kind = json_str_or(s, "kind", ""), *name = json_str_or(s, "name", "");
        const char *api_group = json_str_or(s, "apiGroup", "");

        if (!*name)
                bad_required(c, path_key(c, path, "name"), "");
        if (!str_in(kinds, kind)) {
                bad_enum(c, path_key(c, path, "kind"), kind, kinds);
        } else if (!streq(kind, "ServiceAccount")) {
                if (!streq(api_group, RBAC_GROUP))
                        bad_enum(c, path_key(c, path, "apiGroup"), api_group, group);
        } else {
                if (*name)
                        check_value(c, path_key(c, path, "name"), name, check_subdomain);
                if (*api_group)
                        bad_enum(c, path_key(c, path, "apiGroup"), api_group, none);
                if (!namespaced && !*json_str_or(s, "namespace", ""))
                        bad_required(c, path_key(c, path, "namespace"), "");
        }
}

static void binding_validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                             const struct json *binding, struct causes *c)
{
        static const char *const group[] = {RBAC_GROUP, NULL};
        static const char *const both[] = {"Role", "ClusterRole", NULL}, *const cluster[] = {"ClusterRole",
                                                                                             NULL};
        const struct json *role = json_at(binding, "roleRef");
        bool namespaced = ctx->type->kube.namespaced;
        const char *name = json_str_or(role, "name", ""), *kind = json_str_or(role, "kind", "");
        size_t i = 0;

        if (!streq(json_str(role, "apiGroup"), RBAC_GROUP))
                bad_enum(c, "roleRef.apiGroup", json_str_or(role, "apiGroup", ""), group);
        if (!str_in(namespaced ? both : cluster, kind))
                bad_enum(c, "roleRef.kind", kind, namespaced ? both : cluster);
        if (!*name)
                bad_required(c, "roleRef.name", "");
        else
                check_value(c, "roleRef.name", name, check_path_segment);
        json_foreach (s, json_at(binding, "subjects"))
                check_subject(c, path_index(c, "subjects", i++), s, namespaced);
        if (old && !same(json_at(old, "roleRef"), role))
                bad_raw(c, "roleRef",
                        arena_printf(c->a, "rbac.RoleRef{APIGroup:\"%s\", Kind:\"%s\", Name:\"%s\"}",
                                     json_str_or(role, "apiGroup", ""), kind, name),
                        "cannot change roleRef");
}

const struct strategy STRATEGY_BINDING = {
        .defaults = binding_defaults,
        .validate = binding_validate,
        .row = binding_row,
};
