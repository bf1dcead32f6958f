/*
 * The environment of a container, and what the downward API says; as the kubelet makes them.
 */
#include "local/node_pod.h"

/* ---- an environment is an array of "NAME=value" */

static struct str env_name(const struct json *entry)
{
        struct str text = json_text(entry);

        return str_split(&text, '=');
}

static const char *env_get(const struct json *env, struct str name)
{
        json_foreach (e, env)
                if (str_eq(env_name(e), name))
                        return json_cstr(e) ? json_cstr(e) + name.n + 1 : NULL;
        return NULL;
}

static void env_set(struct json *env, const char *name, const char *value, struct arena *a)
{
        char *text = arena_join(a, name, "=", value);

        json_foreach (e, env)
                if (str_eq(env_name(e), str_of(name))) {
                        e->text = text;
                        e->len = (uint32_t)strlen(text);
                        return;
                }
        json_append(env, json_string(a, text));
}

const char *pod_expand(const char *text, const struct json *env, struct arena *a)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(NODE_TEXT_MAX);
        const char *close, *value;

        for (const char *p = text; *p; p++) {
                if (*p != '$') {
                        buf_addc(&out, *p);
                } else if (p[1] == '$') {
                        buf_addc(&out, *p++);
                } else if (p[1] == '(' && (close = strchr(p, ')'))) {
                        value = env_get(env, str_n(p + 2, (size_t)(close - p - 2)));
                        if (value)
                                buf_adds(&out, value);
                        else
                                buf_add(&out, p, (size_t)(close - p) + 1);
                        p = close;
                } else {
                        buf_addc(&out, *p);
                }
        }
        return out.overflow ? text : arena_strndup(a, out.p ? out.p : "", out.n);
}

/* ---- the downward API */

/* metadata.labels['x'], metadata.annotations['x'] */
static const char *subscript(const struct json *pod, const char *path, const char *map, struct arena *a)
{
        char *head = arena_printf(a, "metadata.%s['", map);
        struct str rest = str_of(path);
        struct json *value;

        if (!str_has_prefix(rest, str_of(head)) || !str_has_suffix(rest, STR("']")))
                return NULL;
        rest = str_n(rest.p + strlen(head), rest.n - strlen(head) - 2);
        value = json_get(json_at(json_at(pod, "metadata"), map), rest);
        return json_cstr(value) ? json_cstr(value) : "";
}

/* name="value" lines, sorted by name, as a downward API file has them */
static const char *whole_map(const struct json *map, struct arena *a)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(NODE_TEXT_MAX);
        const struct json *last = NULL;
        size_t n = json_len(map);

        for (size_t i = 0; i < n; i++) {
                const struct json *next = NULL;

                json_foreach (m, map)
                        if ((!last || strcmp(m->key, last->key) > 0) &&
                            (!next || strcmp(m->key, next->key) < 0))
                                next = m;
                if (!next)
                        break;
                buf_printf(&out, "%s%s=", i ? "\n" : "", next->key);
                json_write_string(json_text(next), &out);
                last = next;
        }
        return arena_strndup(a, out.p ? out.p : "", out.n);
}

const char *downward_field(const struct pod_context *c, const struct json *ref)
{
        const char *path = json_str_or(ref, "fieldPath", ""), *text;
        const struct json *spec = json_at(c->pod, "spec"), *meta = json_at(c->pod, "metadata");

        if (streq(path, "metadata.name") || streq(path, "metadata.namespace") || streq(path, "metadata.uid"))
                return json_str_or(meta, path + strlen("metadata."), "");
        if (streq(path, "metadata.labels") || streq(path, "metadata.annotations"))
                return whole_map(json_at(meta, path + strlen("metadata.")), c->a);
        if (streq(path, "spec.nodeName"))
                return json_str_or(spec, "nodeName", c->node);
        if (streq(path, "spec.serviceAccountName"))
                return json_str_or(spec, "serviceAccountName", "default");
        if (streq(path, "status.hostIP") || streq(path, "status.podIP") || streq(path, "status.podIPs"))
                return c->host_ip;
        text = subscript(c->pod, path, "labels", c->a);
        return text ? text : subscript(c->pod, path, "annotations", c->a);
}

static const struct json *find_container(const struct json *pod, const char *name)
{
        const struct json *spec = json_at(pod, "spec");
        const struct json *found = json_find_named(json_at(spec, "containers"), name);

        return found ? found : json_find_named(json_at(spec, "initContainers"), name);
}

const char *downward_resource(const struct pod_context *c, const struct json *ref, const char *container)
{
        const char *resource = json_str_or(ref, "resource", "");
        const struct json *of = find_container(c->pod, json_str_or(ref, "containerName", container));
        struct str name = str_of(resource), group = str_split(&name, '.');
        const struct json *resources = json_at(of, "resources");
        struct str text = json_text(json_get(json_get(resources, group), name));
        int64_t value = 0, divisor = 1000;
        bool is_cpu = str_eq(name, STR("cpu"));

        if (!name.p || (!str_eq(group, STR("limits")) && !str_eq(group, STR("requests"))))
                return NULL;
        if (text.p)
                (void)!quantity_milli(text, &value);
        else if (str_eq(group, STR("limits")) && is_cpu)
                value = c->cpu_milli;
        else if (str_eq(group, STR("limits")) && str_eq(name, STR("memory")))
                value = c->memory > INT64_MAX / 1000 ? INT64_MAX : c->memory * 1000;
        text = json_text(json_at(ref, "divisor"));
        if (text.p && (!quantity_milli(text, &divisor) || divisor <= 0))
                divisor = 1000;
        value = value / divisor + (value % divisor != 0 ? 1 : 0);
        return arena_printf(c->a, "%lld", (long long)value);
}

/* ---- values from elsewhere */

static const struct pod_source *source_of(const struct pod_context *c, enum pod_source_kind kind,
                                          const char *name)
{
        for (size_t i = 0; i < c->n_sources; i++)
                if (c->sources[i].kind == kind && streq(c->sources[i].name, name))
                        return &c->sources[i];
        return NULL;
}

struct json *source_object(const struct pod_context *c, enum pod_source_kind kind, const char *name)
{
        const struct pod_source *s = source_of(c, kind, name);

        return s ? s->object : NULL;
}

bool source_value(const struct pod_context *c, enum pod_source_kind kind, const struct json *object,
                  const char *key, struct str *ret)
{
        const struct json *value = json_at(json_at(object, "data"), key);
        _cleanup_(buf_done) struct buf raw = BUF_INIT(NODE_TEXT_MAX);

        if (kind == SOURCE_CONFIGMAP && value) {
                *ret = json_text(value);
                return ret->p != NULL;
        }
        if (kind == SOURCE_CONFIGMAP)
                value = json_at(json_at(object, "binaryData"), key);
        if (!json_is(value, JSON_STRING) || !buf_add_unbase64(&raw, json_text(value)))
                return false;
        *ret = str_n(arena_strndup(c->a, raw.p ? raw.p : "", raw.n), raw.n);
        return true;
}

static int config_error(struct err *err, const char *reason_kind, const char *name)
{
        return err_set(err, E_NOT_FOUND, "%s \"%s\" not found", reason_kind, name);
}

static const char *const KIND_WORDS[] = {
        [SOURCE_CONFIGMAP] = "configmap", [SOURCE_SECRET] = "secret", [SOURCE_TOKEN] = "token"};

/* configMapKeyRef, secretKeyRef. 1: set, 0: optional and not there. */
static int key_ref(const struct pod_context *c, enum pod_source_kind kind, const struct json *ref,
                   const char **ret, struct err *err)
{
        const char *name = json_str_or(ref, "name", ""), *key = json_str_or(ref, "key", "");
        const char *ns = meta_str(c->pod, "namespace");
        const struct json *object = source_object(c, kind, name);
        bool optional = json_bool(ref, "optional", false);
        struct str value;

        if (!object)
                return optional ? 0 : config_error(err, KIND_WORDS[kind], name);
        if (!source_value(c, kind, object, key, &value)) {
                if (optional)
                        return 0;
                return err_set(err, E_NOT_FOUND, "couldn't find key %s in %s %s/%s", key,
                               kind == SOURCE_SECRET ? "Secret" : "ConfigMap", ns ? ns : "", name);
        }
        *ret = arena_strndup(c->a, value.p, strnlen(value.p, value.n));
        return 1;
}

static int one_value(const struct pod_context *c, const struct json *container, const struct json *var,
                     const struct json *env, const char **ret, struct err *err)
{
        const struct json *from = json_at(var, "valueFrom"), *ref;

        *ret = "";
        if (!from) {
                *ret = pod_expand(json_str_or(var, "value", ""), env, c->a);
                return 1;
        }
        if ((ref = json_at(from, "fieldRef"))) {
                *ret = downward_field(c, ref);
                return *ret ? 1
                            : err_set(err, E_INVALID, "unsupported fieldPath: %s",
                                      json_str_or(ref, "fieldPath", ""));
        }
        if ((ref = json_at(from, "resourceFieldRef"))) {
                *ret = downward_resource(c, ref, json_str_or(container, "name", ""));
                return *ret ? 1
                            : err_set(err, E_INVALID, "unsupported container resource : %s",
                                      json_str_or(ref, "resource", ""));
        }
        if ((ref = json_at(from, "configMapKeyRef")))
                return key_ref(c, SOURCE_CONFIGMAP, ref, ret, err);
        if ((ref = json_at(from, "secretKeyRef")))
                return key_ref(c, SOURCE_SECRET, ref, ret, err);
        return 1;
}

/* What the API server takes as the name of a variable, and a kubelet leaves out of envFrom when it is none. */
static bool env_name_valid(struct str s)
{
        if (!s.n || (s.p[0] >= '0' && s.p[0] <= '9') || str_eq(s, STR(".")) || str_has_prefix(s, STR("..")))
                return false;
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.'))
                        return false;
        }
        return true;
}

static int env_from(const struct pod_context *c, const struct json *from, struct json *env, struct err *err)
{
        const struct json *ref = json_at(from, "configMapRef");
        enum pod_source_kind kind = ref ? SOURCE_CONFIGMAP : SOURCE_SECRET;
        const struct json *object;
        const char *name;

        ref = ref ? ref : json_at(from, "secretRef");
        name = json_str_or(ref, "name", "");
        object = source_object(c, kind, name);
        if (!object)
                return json_bool(ref, "optional", false) ? 0 : config_error(err, KIND_WORDS[kind], name);
        json_foreach (member, json_at(object, "data")) {
                char *full = arena_join(c->a, json_str_or(from, "prefix", ""), member->key, "");
                struct str value;

                if (env_name_valid(str_of(full)) && source_value(c, kind, object, member->key, &value))
                        env_set(env, full, arena_strndup(c->a, value.p, strnlen(value.p, value.n)), c->a);
        }
        return 0;
}

struct json *env_of(const struct pod_context *c, const struct json *container, struct err *err)
{
        struct json *env = json_array(c->a);
        const struct json *spec = json_at(c->pod, "spec");

        env_set(env, "PATH", NODE_PATH, c->a);
        env_set(env, "HOSTNAME",
                json_str_or(spec, "hostname", json_str_or(json_at(c->pod, "metadata"), "name", "")), c->a);
        if (c->service_host) {
                env_set(env, "KUBERNETES_SERVICE_HOST", c->service_host, c->a);
                env_set(env, "KUBERNETES_SERVICE_PORT", c->service_port, c->a);
                env_set(env, "KUBERNETES_SERVICE_PORT_HTTPS", c->service_port, c->a);
        }
        json_foreach (from, json_at(container, "envFrom"))
                if (env_from(c, from, env, err) < 0)
                        return NULL;
        json_foreach (var, json_at(container, "env")) {
                const char *value;
                int r = one_value(c, container, var, env, &value, err);

                if (r < 0)
                        return NULL;
                if (r > 0)
                        env_set(env, json_str_or(var, "name", ""), value, c->a);
        }
        return env;
}
