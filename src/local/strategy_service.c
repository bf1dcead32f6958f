#include "local/strategy_internal.h"

enum { AFFINITY_SECONDS = 10800, AFFINITY_MAX = 86400, NODE_PORTS_FROM = 30000, NODE_PORTS = 2768 };

static bool is_type(const struct json *spec, const char *type)
{
        return streq(json_str(spec, "type"), type);
}

static bool is_headless(const struct json *spec)
{
        return streq(json_cstr(json_index(json_at(spec, "clusterIPs"), 0)), "None");
}

static void port_defaults(struct arena *a, struct json *p)
{
        const struct json *target = json_at(p, "targetPort");
        int64_t number = 0;

        default_str(a, p, "protocol", "TCP");
        if (!target || (json_is(target, JSON_STRING) && target->len == 0) ||
            (json_to_i64(target, &number) && number == 0))
                json_set(a, p, "targetPort", json_i64(a, json_int(p, "port", 0)));
}

static void defaults(const struct strategy_context *c, struct json *service)
{
        struct json *spec = child_object(c->a, service, "spec");

        default_str(c->a, spec, "sessionAffinity", "None");
        if (streq(json_str(spec, "sessionAffinity"), "None"))
                json_remove(spec, "sessionAffinityConfig");
        if (streq(json_str(spec, "sessionAffinity"), "ClientIP") &&
            !json_path(spec, "sessionAffinityConfig.clientIP.timeoutSeconds"))
                json_set(c->a, spec, "sessionAffinityConfig",
                         json_build(c->a, "{'clientIP': {'timeoutSeconds': %d}}", AFFINITY_SECONDS));
        default_str(c->a, spec, "type", "ClusterIP");
        json_foreach (p, json_at(spec, "ports"))
                port_defaults(c->a, p);
        if (is_type(spec, "NodePort") || is_type(spec, "LoadBalancer"))
                default_str(c->a, spec, "externalTrafficPolicy", "Cluster");
}

/* Addresses and ports lead nowhere here; what matters is that a Service keeps them, so they come from its uid. */
static uint32_t number_of(const char *uid, size_t salt)
{
        uint32_t h = 2166136261u;

        for (; uid && *uid; uid++)
                h = (h ^ (unsigned char)*uid) * 16777619u;
        return (h ^ (uint32_t)salt) * 16777619u;
}

static void give_address(struct arena *a, struct json *service, const struct json *old)
{
        struct json *spec = json_at(service, "spec");
        const char *ip = json_str_or(spec, "clusterIP", ""),
                   *was = json_str_or(json_at(old, "spec"), "clusterIP", "");
        const char *first = json_cstr(json_index(json_at(spec, "clusterIPs"), 0));

        if (is_type(spec, "ExternalName"))
                return;
        if (!*ip)
                ip = first ? first : was;
        if (!*ip) {
                uint32_t n = number_of(meta_str(service, "uid"), 0) % 0xffffeu + 1;

                ip = arena_printf(a, "10.%u.%u.%u", 96 + (n >> 16), (n >> 8) & 255, n & 255);
        }
        json_set(a, spec, "clusterIP", json_string(a, ip));
        json_set(a, spec, "clusterIPs", json_build(a, "[%s]", ip));
}

static void give_ports(struct arena *a, struct json *service)
{
        struct json *spec = json_at(service, "spec");
        size_t i = 0;

        if (!is_type(spec, "NodePort") && !is_type(spec, "LoadBalancer"))
                return;
        json_foreach (p, json_at(spec, "ports")) {
                i++;
                if (json_int(p, "nodePort", 0) == 0)
                        json_set(a, p, "nodePort",
                                 json_i64(a, NODE_PORTS_FROM +
                                                     number_of(meta_str(service, "uid"), i) % NODE_PORTS));
        }
}

static void prepare(const struct strategy_context *c, const char *sub, const struct json *old,
                    struct json *service)
{
        if (*sub)
                return;
        if (!old)
                json_set(c->a, service, "status", json_build(c->a, "{'loadBalancer': {}}"));
        give_address(c->a, service, old);
        give_ports(c->a, service);
}

/* ---- validation */

static void check_ports(struct causes *c, const struct json *list)
{
        static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
        struct json *names = json_object(c->a);
        size_t i = 0;

        json_foreach (p, list) {
                const char *here = path_index(c, "spec.ports", i++), *name = json_str_or(p, "name", "");
                const struct json *target = json_at(p, "targetPort");
                const char *at = path_key(c, here, "name");
                int64_t number = 0;

                if (!*name && json_len(list) > 1) {
                        bad_required(c, at, "");
                } else if (*name) {
                        check_value(c, at, name, check_label);
                        if (json_at(names, name))
                                bad_duplicate(c, at, name);
                        json_set(c->a, names, name, json_truth(c->a, true));
                }
                check_port(c, path_key(c, here, "port"), json_int(p, "port", 0));
                check_enum(c, path_key(c, here, "protocol"), json_str(p, "protocol"), protocols);
                if (json_is(target, JSON_STRING))
                        check_value(c, path_key(c, here, "targetPort"),
                                    json_cstr(target) ? json_cstr(target) : "", check_port_name);
                else if (json_to_i64(target, &number))
                        check_port(c, path_key(c, here, "targetPort"), number);
        }
}

static void check_type(struct causes *c, const struct json *spec)
{
        const char *name = json_str_or(spec, "externalName", "");
        const char *type = json_str_or(spec, "type", "");

        if (json_len(json_at(spec, "ports")) == 0 && !is_headless(spec) && !is_type(spec, "ExternalName"))
                bad_required(c, "spec.ports", "");
        if (is_headless(spec) && (is_type(spec, "NodePort") || is_type(spec, "LoadBalancer")))
                bad_str(c, "spec.clusterIPs[0]", "None",
                        arena_printf(c->a, "may not be set to 'None' for %s services", type));
        if (!is_type(spec, "ExternalName"))
                return;
        if (json_len(json_at(spec, "clusterIPs")) > 0)
                bad_forbidden(c, "spec.clusterIPs", "may not be set for ExternalName services");
        if (*name)
                check_value(c, "spec.externalName", name, check_subdomain);
        else
                bad_required(c, "spec.externalName", "");
}

static void check_affinity(struct causes *c, const struct json *spec)
{
        static const char *const known[] = {"ClientIP", "None", NULL};
        static const char at[] = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        const struct json *timeout = json_path(spec, "sessionAffinityConfig.clientIP.timeoutSeconds");
        int64_t seconds = 0;

        check_enum(c, "spec.sessionAffinity", json_str(spec, "sessionAffinity"), known);
        if (streq(json_str(spec, "sessionAffinity"), "ClientIP") && json_to_i64(timeout, &seconds) &&
            (seconds <= 0 || seconds > AFFINITY_MAX))
                bad_int(c, at, seconds, "must be greater than 0 and less than 86400");
}

static void check_addresses(struct causes *c, const struct json *list, const char *path)
{
        size_t i = 0;

        json_foreach (ip, list) {
                const char *here = path_index(c, path, i++), *text = json_cstr(ip) ? json_cstr(ip) : "";

                if (!is_ip(text) && !streq(text, "None"))
                        bad_str(c, here, text,
                                "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        }
}

static void check_unique(struct causes *c, const struct json *spec)
{
        struct json *ports = json_object(c->a), *nodes = json_object(c->a);
        size_t i = 0;

        json_foreach (p, json_at(spec, "ports")) {
                const char *here = path_index(c, "spec.ports", i++),
                           *protocol = json_str_or(p, "protocol", "");
                int64_t port = json_int(p, "port", 0), node = json_int(p, "nodePort", 0);
                const char *key = arena_printf(c->a, "%s/%lld", protocol, (long long)port);
                const char *node_key = arena_printf(c->a, "%s/%lld", protocol, (long long)node);

                if (node && is_type(spec, "ClusterIP"))
                        bad_forbidden(c, path_key(c, here, "nodePort"),
                                      "may not be used when `type` is 'ClusterIP'");
                if (node && json_at(nodes, node_key))
                        causes_add(c, "FieldValueDuplicate", path_key(c, here, "nodePort"),
                                   "Duplicate value: %lld", (long long)node);
                json_set(c->a, nodes, node_key, json_truth(c->a, true));
                if (json_at(ports, key))
                        causes_add(c, "FieldValueDuplicate", here,
                                   "Duplicate value: core.ServicePort{Name:\"\", Protocol:\"%s\", "
                                   "AppProtocol:(*string)(nil), "
                                   "Port:%lld, TargetPort:intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}, "
                                   "NodePort:0}",
                                   protocol, (long long)port);
                json_set(c->a, ports, key, json_truth(c->a, true));
        }
}

static void validate(const struct strategy_context *ctx, const char *sub, const struct json *old,
                     const struct json *service, struct causes *c)
{
        static const char *const types[] = {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort", NULL};
        const struct json *spec = json_at(service, "spec"), *was = json_at(old, "spec");
        const char *ip = json_str_or(was, "clusterIP", "");

        if (*sub)
                return;
        if (old && *ip && !is_type(was, "ExternalName") && !is_type(spec, "ExternalName") &&
            !streq(ip, json_str_or(spec, "clusterIP", "")))
                bad_raw(c, "spec.clusterIPs[0]",
                        arena_printf(c->a, "[]string{\"%s\"}", json_str_or(spec, "clusterIP", "")),
                        "may not change once set");
        check_type(c, spec);
        check_ports(c, json_at(spec, "ports"));
        check_labels(c, "spec.selector", json_at(spec, "selector"));
        check_affinity(c, spec);
        if (!is_type(spec, "ExternalName"))
                check_addresses(c, json_at(spec, "clusterIPs"), "spec.clusterIPs");
        check_addresses(c, json_at(spec, "externalIPs"), "spec.externalIPs");
        check_enum(c, "spec.type", json_str(spec, "type"), types);
        check_unique(c, spec);
}

const struct strategy STRATEGY_SERVICE = {
        .defaults = defaults,
        .prepare = prepare,
        .validate = validate,
        .row = service_row,
};
