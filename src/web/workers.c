/*
 * dProfiler's workers: the nodes, as the caller may see them, and what is known of their use. What is not known is null.
 */
#include <math.h>

#include "web/dprofiler.h"

enum { NODES_MAX = 1000, PODS_MAX = 5000 };

static const struct kube_type USE = {"metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", false, false};

/* NAN: it is not said. */
static double amount(const struct json *of, const char *name)
{
        struct quantity q;

        return quantity_of(json_at(of, name), &q) ? (double)q.nano / 1e9 : NAN;
}

static struct json *number(struct arena *a, double value)
{
        struct json *n = json_double(a, value);

        return n ? n : json_null(a);
}

/* ---- nodes */

static const struct json *ready_of(const struct json *node)
{
        json_foreach (c, json_at(json_at(node, "status"), "conditions"))
                if (streq(json_str(c, "type"), "Ready"))
                        return c;
        return NULL;
}

/* Ready, ready and closed to new pods, or not ready. */
static const char *state_of(const struct json *node)
{
        if (!streq(json_str(ready_of(node), "status"), "True"))
                return "offline";
        return json_bool(json_at(node, "spec"), "unschedulable", false) ? "inactive" : "active";
}

static const char *address_of(const struct json *node, const char *type)
{
        json_foreach (address, json_at(json_at(node, "status"), "addresses"))
                if (streq(json_str(address, "type"), type))
                        return json_str(address, "address");
        return NULL;
}

static struct json *worker_json(const struct json *node, struct arena *a)
{
        const struct json *capacity = json_at(json_at(node, "status"), "capacity");
        const char *name = json_str_or(json_at(node, "metadata"), "name", "");
        const char *host = address_of(node, "Hostname"), *ip = address_of(node, "InternalIP");
        double cpus = amount(capacity, "cpu"), memory = amount(capacity, "memory");
        const struct json *info = json_at(json_at(node, "status"), "nodeInfo");

        return json_build(a,
                          "{'id': %lld, 'worker_id': %s, 'hostname': %s, 'ip_address': %p, 'cpu_count': %p, "
                          "'memory_total': %p, 'status': %s, 'last_heartbeat': %p, 'created_at': %p, "
                          "'worker_metadata': {'capacity': %p, 'architecture': %p, 'kubelet_version': %p}}",
                          (long long)job_number(json_str_or(json_at(node, "metadata"), "uid", name)), name,
                          host ? host : name, (void *)job_or_null(a, json_string(a, ip)),
                          (void *)(isfinite(cpus) ? json_i64(a, (int64_t)cpus) : json_null(a)),
                          (void *)number(a, memory / (1 << 30)), state_of(node),
                          (void *)job_or_null(a, json_at(ready_of(node), "lastHeartbeatTime")),
                          (void *)job_or_null(a, json_at(json_at(node, "metadata"), "creationTimestamp")),
                          (void *)job_or_null(a, capacity),
                          (void *)job_or_null(a, json_at(info, "architecture")),
                          (void *)job_or_null(a, json_at(info, "kubeletVersion")));
}

static void tell_workers(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct json *list = json_array(&c->arena), *nodes;

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        nodes = call_object(c, answer);
        if (!nodes)
                return;
        json_foreach (node, json_at(nodes, "items"))
                json_append(list, worker_json(node, &c->arena));
        call_reply(c, 200, list);
}

void serve_workers(struct call *c)
{
        struct kube_request r = {.verb = KUBE_LIST, .type = &KUBE_NODE, .limit = NODES_MAX};

        call_kube(c, &r, tell_workers);
}

static void tell_worker(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct json *node;

        if (err && err->code == E_NOT_FOUND) {
                call_fail(c, 404, "Worker not found");
        } else if (err) {
                call_fail_kube(c, answer, err);
        } else {
                node = call_object(c, answer);
                if (node)
                        call_reply(c, 200, worker_json(node, &c->arena));
        }
}

void serve_worker(struct call *c)
{
        struct kube_request r = {.verb = KUBE_GET, .type = &KUBE_NODE, .name = c->params[0]};

        call_kube(c, &r, tell_worker);
}

/* ---- their use: what metrics.k8s.io says, where it is there, and how many of our pods run */

struct uses {
        const struct json *nodes, *use;
};

/* Of both as a share of what the node has, in per cent. */
static double share(const struct json *use, const struct json *node, const char *name)
{
        return 100 * amount(json_at(use, "usage"), name) /
               amount(json_at(json_at(node, "status"), "capacity"), name);
}

static struct json *active_on(struct arena *a, const struct json *pods, const char *node)
{
        uint64_t n = 0;

        if (!pods)
                return json_null(a);
        json_foreach (pod, json_at(pods, "items"))
                n += streq(json_str(json_at(pod, "spec"), "nodeName"), node) &&
                     streq(json_str(json_at(pod, "status"), "phase"), "Running");
        return json_u64(a, n);
}

static struct json *use_json(struct call *c, const struct json *node, const struct json *use,
                             const struct json *pods)
{
        struct arena *a = &c->arena;
        const char *name = json_str_or(json_at(node, "metadata"), "name", "");
        const struct json *timestamp = json_at(use, "timestamp");

        return json_build(
                a,
                "{'id': %lld, 'worker_id': %s, 'timestamp': %p, 'cpu_usage': %p, 'memory_usage': %p, "
                "'disk_usage': null, 'network_in': null, 'network_out': null, 'active_jobs': %p}",
                (long long)job_number(json_str_or(json_at(node, "metadata"), "uid", name)), name,
                (void *)(timestamp ? json_copy(a, timestamp) : job_time(a, loop_wall(c->web->loop))),
                (void *)number(a, share(use, node, "cpu")), (void *)number(a, share(use, node, "memory")),
                (void *)active_on(a, pods, name));
}

static const struct json *named(const struct json *list, const char *name)
{
        json_foreach (one, json_at(list, "items"))
                if (streq(json_str(json_at(one, "metadata"), "name"), name))
                        return one;
        return NULL;
}

static void tell_uses(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        const struct uses *u = c->state;
        const struct json *pods = err ? NULL : json_parse(&c->arena, answer->body, NULL, NULL);
        const char *only = json_str(c->query, "worker_id");
        int64_t limit = json_int(c->query, "limit", 100);
        struct json *list = json_array(&c->arena);

        json_foreach (node, json_at(u->nodes, "items")) {
                const char *name = json_str_or(json_at(node, "metadata"), "name", "");

                if ((!only || streq(only, name)) && (int64_t)json_len(list) < limit)
                        json_append(list, use_json(c, node, named(u->use, name), pods));
        }
        call_reply(c, 200, list);
}

static void on_uses(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = &KUBE_POD,
                                 .ns = c->web->ns,
                                 .label_selector = OPERATOR_LABEL_CONTROLLER,
                                 .limit = PODS_MAX};
        struct uses *u = c->state;

        u->use = err ? NULL : json_parse(&c->arena, answer->body, NULL, NULL);
        call_kube(c, &r, tell_uses);
}

static void on_nodes(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct kube_request r = {.verb = KUBE_LIST, .type = &USE, .limit = NODES_MAX};
        struct uses *u = arena_new(&c->arena, struct uses);

        if (err) {
                call_fail_kube(c, answer, err);
                return;
        }
        u->nodes = call_object(c, answer);
        if (!u->nodes)
                return;
        c->state = u;
        call_kube(c, &r, on_uses);
}

void serve_uses(struct call *c)
{
        struct kube_request r = {.verb = KUBE_LIST, .type = &KUBE_NODE, .limit = NODES_MAX};

        call_kube(c, &r, on_nodes);
}
