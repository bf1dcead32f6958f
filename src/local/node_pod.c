/*
 * From a pod object to a plan: what its supervisor does, without the API.
 */
#include "local/node_pod.h"

#define DEFAULT_MESSAGE_PATH "/dev/termination-log"

/* ---- what a pod refers to */

struct collected {
        struct pod_source *v;
        size_t n, cap;
        struct arena *a;
};

static bool same_source(const struct pod_source *x, const struct pod_source *y)
{
        return x->kind == y->kind && streq(x->name, y->name) && streq(x->audience, y->audience) &&
               x->expires == y->expires;
}

static void collect(void *arg, const struct pod_source *s)
{
        struct collected *c = arg;

        for (size_t i = 0; i < c->n; i++)
                if (same_source(&c->v[i], s)) {
                        c->v[i].wanted |= s->wanted;
                        return;
                }
        if (c->n == c->cap) {
                struct pod_source *more = arena_new_array(c->a, struct pod_source, c->cap ? c->cap * 2 : 8);

                if (c->n)
                        memcpy(more, c->v, c->n * sizeof(*more));
                c->v = more;
                c->cap = c->cap ? c->cap * 2 : 8;
        }
        c->v[c->n] = *s;
        c->v[c->n++].object = NULL;
}

static void collect_ref(struct collected *c, enum pod_source_kind kind, const struct json *ref)
{
        if (ref)
                collect(c, &(struct pod_source){.kind = kind,
                                                .name = json_str_or(ref, "name", ""),
                                                .wanted = !json_bool(ref, "optional", false)});
}

static void container_sources(struct collected *c, const struct json *container)
{
        json_foreach (from, json_at(container, "envFrom")) {
                collect_ref(c, SOURCE_CONFIGMAP, json_at(from, "configMapRef"));
                collect_ref(c, SOURCE_SECRET, json_at(from, "secretRef"));
        }
        json_foreach (var, json_at(container, "env")) {
                const struct json *from = json_at(var, "valueFrom");

                collect_ref(c, SOURCE_CONFIGMAP, json_at(from, "configMapKeyRef"));
                collect_ref(c, SOURCE_SECRET, json_at(from, "secretKeyRef"));
        }
}

static const char *const LISTS[] = {"initContainers", "containers"};

struct pod_source *pod_sources(const struct json *pod, struct arena *a, size_t *ret_n)
{
        const struct json *spec = json_at(pod, "spec");
        struct collected c = {.a = a};

        for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
                json_foreach (container, json_at(spec, LISTS[i]))
                        container_sources(&c, container);
        json_foreach (v, json_at(spec, "volumes"))
                volume_sources(pod, v, collect, &c);
        *ret_n = c.n;
        return c.v;
}

/* ---- one container */

static struct json *expand_list(const struct json *list, const struct json *env, struct json *onto,
                                struct arena *a)
{
        json_foreach (word, list)
                json_append(onto, json_string(a, pod_expand(json_cstr(word) ? json_cstr(word) : "", env, a)));
        return onto;
}

static bool is_pod_image(const struct pod_context *c, const struct json *container)
{
        return c->pod_image && streq(json_str(container, "image"), c->pod_image);
}

/* NULL: there is nothing to run. */
static struct json *argv_of(const struct pod_context *c, const struct json *container, const struct json *env)
{
        struct json *argv = json_array(c->a);

        expand_list(json_at(container, "command"), env, argv, c->a);
        if (!json_len(argv) && is_pod_image(c, container))
                json_append(argv, json_string(c->a, "/sonde-pod"));
        if (!json_len(argv))
                return NULL;
        return expand_list(json_at(container, "args"), env, argv, c->a);
}

static struct json *mounts_of(const struct pod_context *c, const struct json *container,
                              const struct json *env)
{
        struct json *mounts = json_array(c->a);

        json_foreach (m, json_at(container, "volumeMounts")) {
                const char *sub = json_str(m, "subPath"), *expr = json_str(m, "subPathExpr");

                if (expr)
                        sub = pod_expand(expr, env, c->a);
                json_append(mounts,
                            json_build(c->a, "{'volume': %s, 'path': %s, 'subPath': %s, 'readOnly': %p}",
                                       json_str_or(m, "name", ""), json_str_or(m, "mountPath", "/"),
                                       sub ? sub : "",
                                       (void *)json_truth(c->a, json_bool(m, "readOnly", false))));
        }
        return mounts;
}

/* A field of the container's security context, or else of the pod's. */
static int64_t security(const struct pod_context *c, const struct json *container, const char *field)
{
        const struct json *pod = json_at(json_at(c->pod, "spec"), "securityContext");

        return json_int(json_at(container, "securityContext"), field, json_int(pod, field, -1));
}

static struct json *groups_of(const struct pod_context *c)
{
        const struct json *pod = json_at(json_at(c->pod, "spec"), "securityContext");
        struct json *groups = json_array(c->a);
        int64_t fs = json_int(pod, "fsGroup", -1);

        json_foreach (g, json_at(pod, "supplementalGroups"))
                json_append(groups, json_copy(c->a, g));
        if (fs >= 0)
                json_append(groups, json_i64(c->a, fs));
        return groups;
}

static int64_t limit_milli(const struct json *container, const char *resource)
{
        struct str text = json_text(json_at(json_at(json_at(container, "resources"), "limits"), resource));
        int64_t milli = 0;

        return text.p && quantity_milli(text, &milli) ? milli : 0;
}

static void fail_container(struct json *plan, const char *reason, const char *message, struct arena *a)
{
        json_set(a, plan, "error", json_build(a, "{'reason': %s, 'message': %s}", reason, message));
}

static struct json *container_plan(const struct pod_context *c, const struct json *container, bool init)
{
        struct err err = ERR_INIT;
        struct json *env = env_of(c, container, &err), *argv = env ? argv_of(c, container, env) : NULL;
        const char *name = json_str_or(container, "name", "");
        struct json *plan = json_build(
                c->a,
                "{'name': %s, 'init': %p, 'image': %s, 'argv': %p, 'env': %p, 'cwd': %s, 'mounts': %p, "
                "'uid': %lld, 'gid': %lld, 'groups': %p, 'memory': %lld, 'cpu': %lld, 'messagePath': %s, "
                "'messagePolicy': %s, 'podImage': %p}",
                name, (void *)json_truth(c->a, init), json_str_or(container, "image", ""), (void *)argv,
                (void *)env, env ? pod_expand(json_str_or(container, "workingDir", "/"), env, c->a) : "/",
                (void *)mounts_of(c, container, env), (long long)security(c, container, "runAsUser"),
                (long long)security(c, container, "runAsGroup"), (void *)groups_of(c),
                (long long)((limit_milli(container, "memory") + 999) / 1000),
                (long long)limit_milli(container, "cpu"),
                json_str_or(container, "terminationMessagePath", DEFAULT_MESSAGE_PATH),
                json_str_or(container, "terminationMessagePolicy", "File"),
                (void *)json_truth(c->a, is_pod_image(c, container)));

        if (!env)
                fail_container(plan, "CreateContainerConfigError", err.text, c->a);
        else if (!argv)
                fail_container(
                        plan, "CreateContainerError",
                        arena_printf(c->a,
                                     "container \"%s\" has no command, and this node runs commands from "
                                     "this machine's files, not from the image %s: set command",
                                     name, json_str_or(container, "image", "")),
                        c->a);
        return plan;
}

/* ---- the whole */

struct json *pod_plan(const struct pod_context *c, struct err *err)
{
        const struct json *spec = json_at(c->pod, "spec");
        struct json *containers = json_array(c->a), *volumes = json_array(c->a);

        json_foreach (v, json_at(spec, "volumes")) {
                struct json *planned = volume_plan(c, v, err);

                if (!planned)
                        return NULL;
                json_append(volumes, planned);
        }
        for (size_t i = 0; i < ARRAY_LEN(LISTS); i++)
                json_foreach (container, json_at(spec, LISTS[i]))
                        json_append(containers, container_plan(c, container, i == 0));
        return json_build(
                c->a,
                "{'uid': %s, 'namespace': %s, 'name': %s, 'restartPolicy': %s, 'grace': %lld, "
                "'deadline': %lld, 'fsGroup': %lld, 'podProgram': %s, 'volumes': %p, 'containers': %p}",
                meta_str(c->pod, "uid"), meta_str(c->pod, "namespace"), meta_str(c->pod, "name"),
                json_str_or(spec, "restartPolicy", "Always"),
                (long long)json_int(spec, "terminationGracePeriodSeconds", 30),
                (long long)json_int(spec, "activeDeadlineSeconds", 0),
                (long long)json_int(json_at(spec, "securityContext"), "fsGroup", -1),
                c->pod_program ? c->pod_program : "", (void *)volumes, (void *)containers);
}

bool pod_has_mounts(const struct json *plan)
{
        json_foreach (c, json_at(plan, "containers"))
                if (json_len(json_at(c, "mounts")) || json_bool(c, "podImage", false))
                        return true;
        return false;
}

const char *pod_passed_over(const struct json *pod, struct arena *a)
{
        static const char *const of_pod[] = {
                "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
                "topologySpreadConstraints"};
        static const char *const of_container[] = {"livenessProbe", "readinessProbe", "startupProbe",
                                                   "lifecycle"};
        const struct json *spec = json_at(pod, "spec");
        const char *list = NULL;

        for (size_t i = 0; i < ARRAY_LEN(of_pod); i++)
                if (json_len(json_path(spec, of_pod[i])))
                        list = arena_printf(a, "%s%sspec.%s", list ? list : "", list ? ", " : "", of_pod[i]);
        json_foreach (c, json_at(spec, "containers"))
                for (size_t i = 0; i < ARRAY_LEN(of_container); i++)
                        if (json_at(c, of_container[i]))
                                list = arena_printf(a, "%s%sspec.containers{%s}.%s", list ? list : "",
                                                    list ? ", " : "", json_str_or(c, "name", ""),
                                                    of_container[i]);
        return list ? arena_printf(a,
                                   "this node runs no probes and no hooks and has no other nodes to choose "
                                   "from; passed over: %s",
                                   list)
                    : NULL;
}
