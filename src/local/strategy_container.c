#include "local/strategy_internal.h"

/* ---- what variables and files may be made from */

static const char *const ENV_FIELDS[] = {"metadata.name", "metadata.namespace",      "metadata.uid",
                                         "spec.nodeName", "spec.serviceAccountName", "status.hostIP",
                                         "status.podIP",  "status.podIPs",           NULL};
static const char *const FILE_FIELDS[] = {"metadata.annotations", "metadata.labels", "metadata.name",
                                          "metadata.namespace",   "metadata.uid",    NULL};
static const char *const RESOURCES[] = {"limits.cpu",
                                        "limits.ephemeral-storage",
                                        "limits.memory",
                                        "requests.cpu",
                                        "requests.ephemeral-storage",
                                        "requests.memory",
                                        NULL};

/* "metadata.labels['a']": the path before the key; KEY is NULL without one. */
static const char *cut_subscript(struct causes *c, const char *path, const char **key)
{
        const char *open = strstr(path, "['"), *close = open ? strrchr(open, '\'') : NULL;

        *key = NULL;
        if (!open || close <= open + 1 || !streq(close, "']"))
                return path;
        *key = arena_strndup(c->a, open + 2, (size_t)(close - open - 2));
        return arena_strndup(c->a, path, (size_t)(open - path));
}

static bool convertible(const char *path)
{
        static const char *const others[] = {"metadata.annotations", "metadata.labels", "spec.host",
                                             "spec.restartPolicy",   "status.phase",    NULL};

        return str_in(ENV_FIELDS, path) || str_in(others, path);
}

void field_ref_validate(struct causes *c, const char *path, const struct json *ref, bool of_volume)
{
        const char *field = json_str_or(ref, "fieldPath", ""), *key, *base;
        const char *here = path_key(c, path, "fieldPath");

        if (!*json_str_or(ref, "apiVersion", "")) {
                bad_required(c, path_key(c, path, "apiVersion"), "");
                return;
        }
        if (!*field) {
                bad_required(c, here, "");
                return;
        }
        base = cut_subscript(c, field, &key);
        if (!streq(json_str(ref, "apiVersion"), "v1")) {
                bad_str(c, here, field,
                        arena_printf(c->a, "error converting fieldPath: unsupported pod version: %s",
                                     json_str(ref, "apiVersion")));
        } else if (key && streq(base, "metadata.labels")) {
                check_value(c, path, key, check_qualified);
        } else if (key && streq(base, "metadata.annotations")) {
                check_value(c, path, key, check_qualified);
        } else if (key || !convertible(field)) {
                bad_str(c, here, field,
                        arena_printf(c->a, "error converting fieldPath: field label %s: %s",
                                     key ? "does not support subscript" : "not supported", field));
        } else if (!str_in(of_volume ? FILE_FIELDS : ENV_FIELDS, field)) {
                bad_enum(c, here, field, of_volume ? FILE_FIELDS : ENV_FIELDS);
        }
}

static void check_divisor(struct causes *c, const char *path, const char *resource,
                          const struct json *divisor)
{
        static const char *const cpu[] = {"1m", "1", NULL};
        static const char *const bytes[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P",  "1E",
                                            "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei", NULL};
        static const char list[] =
                "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are "
                "supported with the %s resource";
        const char *value = json_cstr(divisor), *here = path_key(c, path, "divisor");
        const char *dot = strchr(resource, '.');

        if (!value || streq(value, "0") || !dot)
                return;
        if (streq(dot, ".cpu") && !str_in(cpu, value))
                bad_str(c, here, resource,
                        "only divisor's values 1m and 1 are supported with the cpu resource");
        if (streq(dot, ".memory") && !str_in(bytes, value))
                bad_str(c, here, resource, arena_printf(c->a, list, "memory"));
        if (streq(dot, ".ephemeral-storage") && !str_in(bytes, value))
                bad_str(c, here, resource, arena_printf(c->a, list, "local ephemeral storage"));
}

void resource_ref_validate(struct causes *c, const char *path, const struct json *ref, bool of_volume)
{
        const char *resource = json_str_or(ref, "resource", "");

        if (of_volume && !*json_str_or(ref, "containerName", ""))
                bad_required(c, path_key(c, path, "containerName"), "");
        else if (!*resource)
                bad_required(c, path_key(c, path, "resource"), "");
        else if (!str_in(RESOURCES, resource))
                bad_enum(c, path_key(c, path, "resource"), resource, RESOURCES);
        check_divisor(c, path, resource, json_at(ref, "divisor"));
}

static void check_key_ref(struct causes *c, const char *path, const struct json *ref)
{
        const char *key = json_str_or(ref, "key", "");

        check_value(c, path_key(c, path, "name"), json_str_or(ref, "name", ""), check_subdomain);
        if (!*key)
                bad_required(c, path_key(c, path, "key"), "");
        else
                check_value(c, path_key(c, path, "key"), key, check_config_key);
}

static void check_value_from(struct causes *c, const char *path, const struct json *var)
{
        const struct json *from = json_at(var, "valueFrom");
        size_t n = json_len(from);

        if (!from)
                return;
        if (json_at(from, "fieldRef"))
                field_ref_validate(c, path_key(c, path, "fieldRef"), json_at(from, "fieldRef"), false);
        if (json_at(from, "resourceFieldRef"))
                resource_ref_validate(c, path_key(c, path, "resourceFieldRef"),
                                      json_at(from, "resourceFieldRef"), false);
        if (json_at(from, "configMapKeyRef"))
                check_key_ref(c, path_key(c, path, "configMapKeyRef"), json_at(from, "configMapKeyRef"));
        if (json_at(from, "secretKeyRef"))
                check_key_ref(c, path_key(c, path, "secretKeyRef"), json_at(from, "secretKeyRef"));
        if (n == 0)
                bad_str(c, path, "",
                        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
                        "`secretKeyRef`");
        else if (*json_str_or(var, "value", ""))
                bad_str(c, path, "", "may not be specified when `value` is not empty");
        else if (n > 1)
                bad_str(c, path, "", "may not have more than one field specified at a time");
}

static void check_env(struct causes *c, const char *path, const struct json *env)
{
        size_t i = 0;

        json_foreach (e, env) {
                const char *here = path_index(c, path, i++), *name = json_str_or(e, "name", "");

                if (!*name)
                        bad_required(c, path_key(c, here, "name"), "");
                else
                        check_value(c, path_key(c, here, "name"), name, check_env_name);
                check_value_from(c, path_key(c, here, "valueFrom"), e);
        }
}

static void check_env_from(struct causes *c, const char *path, const struct json *list)
{
        static const char *const refs[] = {"configMapRef", "secretRef"};
        size_t i = 0;

        json_foreach (e, list) {
                const char *here = path_index(c, path, i++), *prefix = json_str_or(e, "prefix", "");
                size_t n = 0;

                if (*prefix)
                        check_value(c, path_key(c, here, "prefix"), prefix, check_env_name);
                for (size_t k = 0; k < ARRAY_LEN(refs); k++) {
                        const struct json *ref = json_at(e, refs[k]);
                        const char *name = json_str_or(ref, "name", "");
                        const char *at = path_key(c, path_key(c, here, refs[k]), "name");

                        n += ref != NULL;
                        if (ref && !*name)
                                bad_required(c, at, "");
                        else if (ref)
                                check_value(c, at, name, check_subdomain);
                }
                if (n == 0)
                        bad_str(c, path, "", "must specify one of: `configMapRef` or `secretRef`");
                else if (n > 1)
                        bad_str(c, path, "", "may not have more than one field specified at a time");
        }
}

/* ---- ports, probes, handlers */

static void check_ports(struct causes *c, const char *path, const struct json *ports)
{
        static const char *const protocols[] = {"SCTP", "TCP", "UDP", NULL};
        struct json *names = json_object(c->a);
        size_t i = 0;

        json_foreach (p, ports) {
                const char *here = path_index(c, path, i++), *name = json_str_or(p, "name", "");
                const char *at = path_key(c, here, "name");
                int64_t host = json_int(p, "hostPort", 0), port = json_int(p, "containerPort", 0);

                if (*name && check_port_name(str_of(name), 0))
                        check_value(c, at, name, check_port_name);
                else if (*name && json_at(names, name))
                        bad_duplicate(c, at, name);
                else if (*name)
                        json_set(c->a, names, name, json_truth(c->a, true));
                if (port == 0)
                        bad_required(c, path_key(c, here, "containerPort"), "");
                else
                        check_port(c, path_key(c, here, "containerPort"), port);
                if (host)
                        check_port(c, path_key(c, here, "hostPort"), host);
                check_enum(c, path_key(c, here, "protocol"), json_str(p, "protocol"), protocols);
        }
}

static void check_port_ref(struct causes *c, const char *path, const struct json *port)
{
        int64_t number = 0;

        if (json_is(port, JSON_STRING)) {
                check_value(c, path, json_cstr(port) ? json_cstr(port) : "", check_port_name);
                return;
        }
        (void)json_to_i64(port, &number);
        check_port(c, path, number);
}

static void check_http(struct causes *c, const char *path, const struct json *get)
{
        static const char *const schemes[] = {"HTTP", "HTTPS", NULL};
        const char *scheme = json_str_or(get, "scheme", "");

        if (!*json_str_or(get, "path", ""))
                bad_required(c, path_key(c, path, "path"), "");
        check_port_ref(c, path_key(c, path, "port"), json_at(get, "port"));
        if (!str_in(schemes, scheme))
                bad_enum(c, path_key(c, path, "scheme"), scheme, schemes);
}

static void check_handler(struct causes *c, const char *path, const struct json *h)
{
        static const char *const kinds[] = {"exec", "httpGet", "tcpSocket"};
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                const char *here = path_key(c, path, kinds[i]);
                const struct json *what = json_at(h, kinds[i]);

                if (!what)
                        continue;
                if (n++ > 0)
                        bad_forbidden(c, here, "may not specify more than 1 handler type");
                else if (i == 0 && json_len(json_at(what, "command")) == 0)
                        bad_required(c, path_key(c, here, "command"), "");
                else if (i == 1)
                        check_http(c, here, what);
                else if (i == 2)
                        check_port_ref(c, path_key(c, here, "port"), json_at(what, "port"));
        }
        if (n == 0)
                bad_required(c, path, "must specify a handler type");
}

static void check_probe(struct causes *c, const char *path, const struct json *container, const char *key)
{
        static const char *const counts[] = {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                             "successThreshold", "failureThreshold"};
        const struct json *probe = json_at(container, key);
        const char *here = path_key(c, path, key);

        if (!probe)
                return;
        check_handler(c, here, probe);
        for (size_t i = 0; i < ARRAY_LEN(counts); i++)
                check_not_negative(c, here, probe, counts[i]);
        if (!streq(key, "readinessProbe") && json_int(probe, "successThreshold", 1) != 1)
                bad_int(c, path_key(c, here, "successThreshold"), json_int(probe, "successThreshold", 1),
                        "must be 1");
}

static void check_lifecycle(struct causes *c, const char *path, const struct json *lifecycle)
{
        if (json_at(lifecycle, "postStart"))
                check_handler(c, path_key(c, path, "postStart"), json_at(lifecycle, "postStart"));
        if (json_at(lifecycle, "preStop"))
                check_handler(c, path_key(c, path, "preStop"), json_at(lifecycle, "preStop"));
}

/* ---- mounts */

static const struct json *device_at(const struct json *devices, const char *key, const char *value)
{
        json_foreach (d, devices)
                if (streq(json_str(d, key), value))
                        return d;
        return NULL;
}

static void check_propagation(struct causes *c, const char *path, const struct json *container,
                              const char *mode)
{
        static const char *const modes[] = {"Bidirectional", "HostToContainer", "None", NULL};

        if (!str_in(modes, mode))
                bad_enum(c, path, mode, modes);
        if (streq(mode, "Bidirectional") &&
            !json_bool(json_at(container, "securityContext"), "privileged", false))
                bad_forbidden(c, path,
                              "Bidirectional mount propagation is available only to privileged containers");
}

static void check_sub_paths(struct causes *c, const char *path, const char *here, const struct json *m)
{
        const char *sub = json_str_or(m, "subPath", ""), *expr = json_str_or(m, "subPathExpr", "");

        if (*sub)
                check_relative_path(c, path_key(c, path, "subPath"), sub, false);
        if (!*expr)
                return;
        if (*sub)
                bad_str(c, path_key(c, here, "subPathExpr"), expr,
                        "subPathExpr and subPath are mutually exclusive");
        check_relative_path(c, path_key(c, path, "subPathExpr"), expr, false);
}

static void check_mounts(struct causes *c, const char *path, const struct json *container,
                         const struct json *volumes)
{
        const struct json *devices = json_at(container, "volumeDevices");
        struct json *paths = json_object(c->a);
        size_t i = 0;

        json_foreach (m, json_at(container, "volumeMounts")) {
                const char *here = path_index(c, path, i++), *name = json_str_or(m, "name", "");
                const char *where = json_str_or(m, "mountPath", ""), *at_name = path_key(c, here, "name");
                const char *at_path = path_key(c, here, "mountPath");

                if (!*name)
                        bad_required(c, at_name, "");
                if (!json_at(volumes, name))
                        bad_not_found(c, at_name, name);
                if (!*where)
                        bad_required(c, at_path, "");
                if (json_at(paths, where))
                        bad_str(c, at_path, where, "must be unique");
                json_set(c->a, paths, where, json_truth(c->a, true));
                if (device_at(devices, "name", name))
                        bad_str(c, at_name, name, "must not already exist in volumeDevices");
                if (device_at(devices, "devicePath", where))
                        bad_str(c, at_path, where, "must not already exist as a path in volumeDevices");
                check_sub_paths(c, path, here, m);
                if (json_str(m, "mountPropagation"))
                        check_propagation(c, path_key(c, path, "mountPropagation"), container,
                                          json_str(m, "mountPropagation"));
        }
}

/* ---- resources */

static bool standard_resource(const char *name)
{
        static const char *const known[] = {"cpu", "memory", "ephemeral-storage", NULL};

        return str_in(known, name) || strncmp(name, "hugepages-", 10) == 0;
}

/* "nvidia.com/gpu": of a domain that is not Kubernetes' own. */
static bool extended_resource(const char *name)
{
        return strchr(name, '/') && !strstr(name, "kubernetes.io/") && strncmp(name, "requests.", 9) != 0;
}

static void check_amount(struct causes *c, const char *path, const struct json *amount)
{
        const char *name = amount->key;
        struct quantity q = {0};

        check_value(c, path, name, check_qualified);
        if (!strchr(name, '/') && !standard_resource(name)) {
                bad_str(c, path, name, "must be a standard resource type or fully qualified");
                bad_str(c, path, name, "must be a standard resource for containers");
        } else if (extended_resource(name) && check_qualified(str_of(name), 0)) {
                bad_str(c, path, name, "doesn't follow extended resource name standard");
        }
        if (!quantity_of(amount, &q))
                return;
        if (q.nano < 0)
                bad_str(c, path, quantity_print(&q, c->a), "must be greater than or equal to 0");
        if (extended_resource(name) && q.nano % 1000000000 != 0)
                bad_raw(c, path, go_quantity(c, &q), "must be an integer");
}

static void check_request(struct causes *c, const char *path, const struct json *limits,
                          const struct json *request)
{
        bool overcommit = standard_resource(request->key) && strncmp(request->key, "hugepages-", 10) != 0;
        const char *requests = path_key(c, path, "requests");
        struct quantity q = {0}, l = {0};
        const struct json *limit = json_at(limits, request->key);

        if (strchr(request->key, '/') && !extended_resource(request->key))
                overcommit = true;
        if (!quantity_of(request, &q))
                return;
        if (!limit) {
                if (!overcommit)
                        bad_required(c, path_key(c, path, "limits"),
                                     "Limit must be set for non overcommitable resources");
                return;
        }
        if (!quantity_of(limit, &l))
                return;
        if (!overcommit && quantity_cmp(&q, &l) != 0)
                bad_str(c, requests, quantity_print(&q, c->a),
                        arena_printf(c->a, "must be equal to %s limit", request->key));
        else if (quantity_cmp(&q, &l) > 0)
                bad_str(c, requests, quantity_print(&q, c->a),
                        arena_printf(c->a, "must be less than or equal to %s limit", request->key));
}

static void resources_validate(struct causes *c, const char *path, const struct json *resources)
{
        const struct json *limits = json_at(resources, "limits"), *requests = json_at(resources, "requests");

        json_foreach (l, limits)
                check_amount(c, path_map(c, path_key(c, path, "limits"), l->key), l);
        json_foreach (r, requests) {
                check_amount(c, path_map(c, path_key(c, path, "requests"), r->key), r);
                check_request(c, path, limits, r);
        }
}

static void check_security(struct causes *c, const char *path, const struct json *security)
{
        static const char *const ids[] = {"runAsUser", "runAsGroup"};
        bool escalation = json_bool(security, "allowPrivilegeEscalation", true);

        for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
                int64_t id = json_int(security, ids[i], 0);

                if (id < 0 || id > INT32_MAX)
                        bad_int(c, path_key(c, path, ids[i]), id,
                                "must be between 0 and 2147483647, inclusive");
        }
        if (!escalation && json_bool(security, "privileged", false))
                bad_raw(c, path, json_print(c->a, security),
                        "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

/* ---- containers */

static void check_container(struct causes *c, const char *path, const struct json *ctr,
                            const struct json *volumes)
{
        static const char *const pull[] = {"Always", "IfNotPresent", "Never", NULL};
        const char *policy = json_str_or(ctr, "terminationMessagePolicy", "");

        if (!*json_str_or(ctr, "image", ""))
                bad_required(c, path_key(c, path, "image"), "");
        check_lifecycle(c, path_key(c, path, "lifecycle"), json_at(ctr, "lifecycle"));
        check_probe(c, path, ctr, "livenessProbe");
        check_probe(c, path, ctr, "startupProbe");
        if (!streq(policy, "File") && !streq(policy, "FallbackToLogsOnError"))
                bad_str(c, path_key(c, path, "terminationMessagePolicy"), policy,
                        "must be 'File' or 'FallbackToLogsOnError'");
        check_probe(c, path, ctr, "readinessProbe");
        check_ports(c, path_key(c, path, "ports"), json_at(ctr, "ports"));
        check_env(c, path_key(c, path, "env"), json_at(ctr, "env"));
        check_env_from(c, path_key(c, path, "envFrom"), json_at(ctr, "envFrom"));
        check_mounts(c, path_key(c, path, "volumeMounts"), ctr, volumes);
        check_enum(c, path_key(c, path, "imagePullPolicy"), json_str(ctr, "imagePullPolicy"), pull);
        resources_validate(c, path_key(c, path, "resources"), json_at(ctr, "resources"));
        if (json_at(ctr, "securityContext"))
                check_security(c, path_key(c, path, "securityContext"), json_at(ctr, "securityContext"));
}

/* One port of the machine is given out once. */
static void check_host_ports(struct causes *c, const char *path, const struct json *list, bool is_init)
{
        struct json *seen = json_object(c->a);
        size_t i = 0;

        json_foreach (ctr, list) {
                const char *ports = path_key(c, path_index(c, path, is_init ? 0 : i), "ports");
                size_t k = 0;

                i++;
                if (is_init) /* they run one after the other */
                        seen = json_object(c->a);
                json_foreach (p, json_at(ctr, "ports")) {
                        int64_t port = json_int(p, "hostPort", 0);
                        const char *key = arena_printf(c->a, "%s/%s/%lld", json_str_or(p, "protocol", ""),
                                                       json_str_or(p, "hostIP", ""), (long long)port);

                        if (port && json_at(seen, key))
                                bad_duplicate(c, path_key(c, path_index(c, ports, k), "hostPort"), key);
                        json_set(c->a, seen, key, json_truth(c->a, true));
                        k++;
                }
        }
}

void containers_validate(struct causes *c, const char *path, const struct json *list,
                         const struct json *volumes, bool is_init)
{
        struct json *names = json_object(c->a);
        size_t i = 0;

        if (json_len(list) == 0) {
                bad_required(c, path, "");
                return;
        }
        json_foreach (ctr, list) {
                const char *here = path_index(c, path, i++), *name = json_str_or(ctr, "name", "");
                const char *at = path_key(c, here, "name");

                if (!*name)
                        bad_required(c, at, "");
                else
                        check_value(c, at, name, check_label);
                if (json_at(names, name))
                        bad_duplicate(c, at, name);
                json_set(c->a, names, name, json_truth(c->a, true));
                check_container(c, here, ctr, volumes);
        }
        check_host_ports(c, path, list, is_init);
}

void init_containers_validate(struct causes *c, const char *path, const struct json *spec,
                              const struct json *volumes)
{
        static const char *const never[] = {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"};
        const struct json *list = json_at(spec, "initContainers");
        struct json *names = json_object(c->a);
        size_t i = 0;

        json_foreach (ctr, json_at(spec, "containers"))
                json_set(c->a, names, json_str_or(ctr, "name", ""), json_truth(c->a, true));

        if (json_len(list) > 0)
                containers_validate(c, path, list, volumes, true);
        json_foreach (ctr, list) {
                const char *here = path_index(c, path, i++), *name = json_str_or(ctr, "name", "");

                if (json_at(names, name))
                        bad_duplicate(c, path_key(c, here, "name"), name);
                if (*name)
                        json_set(c->a, names, name, json_truth(c->a, true));
                for (size_t k = 0; k < ARRAY_LEN(never); k++)
                        if (json_at(ctr, never[k]))
                                bad_raw(c, path_key(c, here, never[k]),
                                        json_print(c->a, json_at(ctr, never[k])),
                                        "must not be set for init containers");
        }
}
