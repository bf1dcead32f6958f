#include "local/strategy_internal.h"

enum { NAMESERVERS_MAX = 3, SEARCHES_MAX = 6 };

static void check_group(struct causes *c, const char *path, int64_t id)
{
        if (id < 0 || id > INT32_MAX)
                bad_int(c, path, id, "must be between 0 and 2147483647, inclusive");
}

static void check_security(struct causes *c, const char *path, const struct json *spec)
{
        static const char *const ids[] = {"fsGroup", "runAsUser", "runAsGroup"};
        static const char *const policies[] = {"Always", "OnRootMismatch", NULL};
        const struct json *security = json_at(spec, "securityContext");
        const char *policy = json_str(security, "fsGroupChangePolicy");
        size_t i = 0;

        for (size_t k = 0; k < ARRAY_LEN(ids); k++)
                check_group(c, path_key(c, path, ids[k]), json_int(security, ids[k], 0));
        json_foreach (g, json_at(security, "supplementalGroups")) {
                int64_t id = 0;

                (void)json_to_i64(g, &id);
                check_group(c, path_index(c, path_key(c, path, "supplementalGroups"), i++), id);
        }
        if (json_bool(spec, "shareProcessNamespace", false) && json_bool(spec, "hostPID", false))
                bad_raw(c, path_key(c, path, "shareProcessNamespace"), "true",
                        "ShareProcessNamespace and HostPID cannot both be enabled");
        if (policy && !str_in(policies, policy))
                bad_enum(c, path_key(c, path, "fsGroupChangePolicy"), policy, policies);
}

static void check_host_network(struct causes *c, const char *path, const struct json *spec)
{
        size_t i = 0;

        if (!json_bool(spec, "hostNetwork", false))
                return;
        json_foreach (ctr, json_at(spec, "containers")) {
                const char *ports = path_key(c, path_index(c, path, i++), "ports");
                size_t k = 0;

                json_foreach (p, json_at(ctr, "ports")) {
                        const char *here = path_index(c, ports, k++);

                        if (json_int(p, "hostPort", 0) != json_int(p, "containerPort", 0))
                                bad_int(c, path_key(c, here, "containerPort"),
                                        json_int(p, "containerPort", 0),
                                        "must match `hostPort` when `hostNetwork` is true");
                }
        }
}

static void check_dns(struct causes *c, const char *path, const struct json *spec)
{
        const struct json *config = json_at(spec, "dnsConfig"), *servers = json_at(config, "nameservers");
        const struct json *searches = json_at(config, "searches");
        const char *list = path_key(c, path, "nameservers");
        bool none = streq(json_str(spec, "dnsPolicy"), "None");
        size_t i = 0;

        if (none && !config)
                bad_required(c, path, "must provide `dnsConfig` when `dnsPolicy` is None");
        else if (none && json_len(servers) == 0)
                bad_required(c, list, "must provide at least one DNS nameserver when `dnsPolicy` is None");
        if (json_len(servers) > NAMESERVERS_MAX)
                bad_raw(c, list, go_strings(c, servers), "must not have more than 3 nameservers");
        json_foreach (s, servers) {
                const char *here = path_index(c, list, i++), *address = json_cstr(s) ? json_cstr(s) : "";

                if (!is_ip(address))
                        bad_str(c, here, address, "must be valid IP address");
        }
        list = path_key(c, path, "searches");
        if (json_len(searches) > SEARCHES_MAX)
                bad_raw(c, list, go_strings(c, searches), "must not have more than 6 search paths");
        i = 0;
        json_foreach (s, searches)
                check_value(c, path_index(c, list, i++), json_cstr(s) ? json_cstr(s) : "", check_subdomain);
}

static void check_aliases(struct causes *c, const char *path, const struct json *aliases)
{
        json_foreach (alias, aliases) {
                if (!is_ip(json_str_or(alias, "ip", "")))
                        bad_str(c, path_key(c, path, "ip"), json_str_or(alias, "ip", ""),
                                "must be valid IP address");
                json_foreach (h, json_at(alias, "hostnames"))
                        check_value(c, path_key(c, path, "hostnames"), json_cstr(h) ? json_cstr(h) : "",
                                    check_subdomain);
        }
}

/* Members that are names of some kind. */
static const struct {
        const char *key;
        check_fn check;
} NAMES[] = {
        {"serviceAccountName", check_subdomain},
        {"nodeName", check_subdomain},
        {"hostname", check_label},
        {"subdomain", check_label},
        {"priorityClassName", check_subdomain},
        {"runtimeClassName", check_subdomain},
};

static void check_names(struct causes *c, const char *path, const struct json *spec, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++) {
                const char *value = json_str_or(spec, NAMES[i].key, "");

                if (*value)
                        check_value(c, path_key(c, path, NAMES[i].key), value, NAMES[i].check);
        }
}

static void check_deadline(struct causes *c, const char *path, const struct json *spec)
{
        int64_t seconds = json_int(spec, "activeDeadlineSeconds", 1);

        if (seconds < 1 || seconds > INT32_MAX)
                bad_int(c, path_key(c, path, "activeDeadlineSeconds"), seconds,
                        "must be between 1 and 2147483647, inclusive");
}

void podspec_validate(struct causes *c, const char *path, const struct json *spec)
{
        static const char *const restarts[] = {"Always", "OnFailure", "Never", NULL};
        static const char *const dns[] = {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None", NULL};
        static const char *const preemption[] = {"PreemptLowerPriority", "Never", NULL};
        const struct json *volumes = volumes_validate(c, path_key(c, path, "volumes"),
                                                      json_at(spec, "volumes"));
        const char *policy = json_str(spec, "preemptionPolicy");

        containers_validate(c, path_key(c, path, "containers"), json_at(spec, "containers"), volumes, false);
        init_containers_validate(c, path_key(c, path, "initContainers"), spec, volumes);
        check_enum(c, path_key(c, path, "restartPolicy"), json_str(spec, "restartPolicy"), restarts);
        check_enum(c, path_key(c, path, "dnsPolicy"), json_str(spec, "dnsPolicy"), dns);
        check_labels(c, path_key(c, path, "nodeSelector"), json_at(spec, "nodeSelector"));
        check_host_network(c, path_key(c, path, "containers"), spec);
        check_security(c, path_key(c, path, "securityContext"), spec);
        affinity_validate(c, path_key(c, path, "affinity"), json_at(spec, "affinity"));
        check_dns(c, path_key(c, path, "dnsConfig"), spec);
        spread_validate(c, path_key(c, path, "topologySpreadConstraints"),
                        json_at(spec, "topologySpreadConstraints"));
        check_names(c, path, spec, 0, 2);
        check_deadline(c, path, spec);
        check_names(c, path, spec, 2, 4);
        tolerations_validate(c, path_key(c, path, "tolerations"), json_at(spec, "tolerations"));
        check_aliases(c, path_key(c, path, "hostAliases"), json_at(spec, "hostAliases"));
        check_names(c, path, spec, 4, 6);
        if (policy && !str_in(preemption, policy))
                bad_enum(c, path_key(c, path, "preemptionPolicy"), policy, preemption);
}

void template_validate(struct causes *c, const char *path, const struct json *template)
{
        const struct json *meta = json_at(template, "metadata");

        check_labels(c, path_key(c, path, "labels"), json_at(meta, "labels"));
        json_foreach (a, json_at(meta, "annotations")) {
                char *lower = arena_strdup(c->a, a->key);

                for (char *p = lower; *p; p++)
                        if (*p >= 'A' && *p <= 'Z')
                                *p = (char)(*p - 'A' + 'a');
                if (check_qualified(str_of(lower), 0))
                        check_value(c, path_key(c, path, "annotations"), a->key, check_qualified);
        }
        podspec_validate(c, path_key(c, path, "spec"), json_at(template, "spec"));
        if (json_len(json_path(template, "spec.ephemeralContainers")) > 0)
                bad_forbidden(c, path_key(c, path_key(c, path, "spec"), "ephemeralContainers"),
                              "ephemeral containers not allowed in pod template");
}
