/*
 * The scheduler of one node: pods without a node are bound in the order of their creation, when they fit.
 */
#include "local/node_impl.h"

enum { PODS_MAX = 110, WAITING_MAX = 10000 };

struct bind_call {
        struct node *n;
        char *uid;
        struct kube_call *call;
};

struct waiting_pod {
        const struct json *pod;
        const char *uid, *created;
        int64_t priority;
};

static void bind_call_free(struct bind_call *b)
{
        map_remove(&b->n->binding, str_of(b->uid));
        free(b->uid);
        free(b);
}

static void record(struct node *n, const struct json *pod, bool warning, const char *reason, const char *note)
{
        struct event e = {warning ? EVENT_WARNING : EVENT_NORMAL, reason, NULL, note};

        events_record(n->events, pod, &e);
}

static void on_bound(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct bind_call *b = arg;
        struct node *n = b->n;

        if (err && err->code != E_NOT_FOUND && err->code != E_CONFLICT)
                LOG_WARN(n->config.log, "Cannot bind a pod", F_STR("uid", b->uid), F_ERR(err));
        b->call = NULL;
        /* What was bound stays counted until the cache shows its node: see on_pod() in node.c. */
        if (err)
                bind_call_free(b);
}

static void on_unschedulable(void *arg, const struct kube_answer *answer, const struct err *err)
{
        bind_call_free(arg);
}

static struct bind_call *new_call(struct node *n, const char *uid)
{
        struct bind_call *b = xcalloc(1, sizeof(*b));

        b->n = n;
        b->uid = xstrdup(uid);
        map_put(&n->binding, str_of(b->uid), b);
        return b;
}

static void bind(struct node *n, const struct waiting_pod *w, struct arena *a)
{
        const char *ns = meta_str(w->pod, "namespace"), *name = meta_str(w->pod, "name");
        struct json *body = json_build(
                a,
                "{'apiVersion': 'v1', 'kind': 'Binding', 'metadata': {'name': %s, 'namespace': "
                "%s, 'uid': %s}, 'target': {'apiVersion': 'v1', 'kind': 'Node', 'name': %s}}",
                name, ns, w->uid, n->config.name);
        struct kube_request r = {.verb = KUBE_CREATE,
                                 .type = &KUBE_POD,
                                 .ns = ns,
                                 .name = name,
                                 .subresource = "binding",
                                 .body = str_of(json_print(a, body))};
        struct bind_call *b = new_call(n, w->uid);

        b->call = kube_send(n->config.client, &r, on_bound, b);
        record(n, w->pod, false, "Scheduled",
               arena_printf(a, "Successfully assigned %s/%s to %s", ns, name, n->config.name));
}

static bool told_already(const struct json *pod, const char *message)
{
        json_foreach (c, json_at(json_at(pod, "status"), "conditions"))
                if (streq(json_str(c, "type"), "PodScheduled") && streq(json_str(c, "message"), message))
                        return true;
        return false;
}

static void tell_unschedulable(struct node *n, const struct waiting_pod *w, const char *message,
                               struct arena *a)
{
        char now[TIME_TEXT_MAX];
        struct json *patch;
        struct kube_request r = {.verb = KUBE_PATCH_MERGE,
                                 .type = &KUBE_POD,
                                 .ns = meta_str(w->pod, "namespace"),
                                 .name = meta_str(w->pod, "name"),
                                 .subresource = "status",
                                 .field_manager = "sonde-node"};
        struct bind_call *b;

        if (told_already(w->pod, message))
                return;
        patch = json_build(
                a,
                "{'metadata': {'uid': %s}, 'status': {'phase': 'Pending', 'conditions': [{'type': "
                "'PodScheduled', 'status': 'False', 'lastProbeTime': null, 'lastTransitionTime': %s, "
                "'reason': 'Unschedulable', 'message': %s}]}}",
                w->uid, time_format(loop_wall(n->loop), now), message);
        r.body = str_of(json_print(a, patch));
        b = new_call(n, w->uid);
        b->call = kube_send(n->config.client, &r, on_unschedulable, b);
        record(n, w->pod, true, "FailedScheduling", message);
}

static bool terminal(const struct json *pod)
{
        const char *phase = json_str_or(json_at(pod, "status"), "phase", "");

        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

/* A pod that names another scheduler waits for that one. */
static bool ours_to_bind(const struct json *pod)
{
        const struct json *spec = json_at(pod, "spec");

        return !*json_str_or(spec, "nodeName", "") &&
               !json_at(json_at(pod, "metadata"), "deletionTimestamp") &&
               streq(json_str_or(spec, "schedulerName", "default-scheduler"), "default-scheduler");
}

static int by_turn(const void *x, const void *y)
{
        const struct waiting_pod *a = x, *b = y;
        int order;

        if (a->priority != b->priority)
                return a->priority > b->priority ? -1 : 1;
        order = strcmp(a->created, b->created);
        return order ? order : strcmp(a->uid, b->uid);
}

/* Takes the room of every pod that is here and returns those that wait. */
static struct waiting_pod *gather(struct node *n, struct node_room *room, struct arena *a, size_t *ret_n)
{
        struct waiting_pod *list = arena_new_array(a, struct waiting_pod,
                                                   MIN(cache_count(n->pods), (size_t)WAITING_MAX) + 1);
        const struct cache_entry *e;
        size_t i = 0;

        *ret_n = 0;
        while ((e = cache_next(n->pods, &i))) {
                const struct json *pod = cache_parse(n->pods, e, a), *spec = json_at(pod, "spec");
                const char *node = json_str_or(spec, "nodeName", "");
                const struct bind_call *b = map_get(&n->binding, str_of(e->uid));

                if (terminal(pod))
                        continue;
                if (streq(node, n->config.name) || b)
                        room_take(room, pod);
                else if (ours_to_bind(pod) && *ret_n < WAITING_MAX)
                        list[(*ret_n)++] = (struct waiting_pod){
                                pod, e->uid, json_str_or(json_at(pod, "metadata"), "creationTimestamp", ""),
                                json_int(spec, "priority", 0)};
        }
        if (*ret_n)
                qsort(list, *ret_n, sizeof(*list), by_turn);
        return list;
}

static void schedule(struct defer *d)
{
        struct node *n = CONTAINER_OF(d, struct node, scheduling);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct node_room room = {n->cpu_milli, n->memory > INT64_MAX / 1000 ? INT64_MAX : n->memory * 1000,
                                 PODS_MAX, n->config.gpus * 1000};
        struct waiting_pod *list;
        size_t count;

        if (n->stopping || !n->node.root || !reflector_synced(n->reflector))
                return;
        list = gather(n, &room, &a, &count);
        for (size_t i = 0; i < count; i++) {
                const char *why = schedule_check(n->node.root, list[i].pod, &room, &a);

                if (why) {
                        tell_unschedulable(n, &list[i], why, &a);
                } else {
                        room_take(&room, list[i].pod);
                        bind(n, &list[i], &a);
                }
        }
}

void node_schedule_soon(struct node *n)
{
        if (!n->config.no_scheduler && !n->scheduling.pending)
                defer_run(n->loop, &n->scheduling, schedule);
}

void node_bind_seen(struct node *n, const char *uid)
{
        struct bind_call *b = map_get(&n->binding, str_of(uid));

        if (!b)
                return;
        if (b->call)
                kube_cancel(b->call);
        bind_call_free(b);
}

void node_bind_done(struct node *n)
{
        struct bind_call *b;
        size_t i = 0;

        while (map_next(&n->binding, &i, (void **)&b)) {
                if (b->call)
                        kube_cancel(b->call);
                bind_call_free(b);
                i = 0;
        }
        map_done(&n->binding);
        defer_cancel(&n->scheduling);
}
