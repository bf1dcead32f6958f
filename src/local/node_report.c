/*
 * What the API is told of a pod: its status, its events, and that it is gone.
 */
#include "local/node_impl.h"

static const usec_t TRY_AGAIN = 1 * USEC_PER_SEC;

void node_pod_event(struct node_pod *p, bool warning, const char *reason, const char *note)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *about = json_build(
                &a,
                "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'namespace': %s, 'name': "
                "%s, 'uid': %s}}",
                p->ns, p->name, p->uid);
        struct event e = {warning ? EVENT_WARNING : EVENT_NORMAL, reason, NULL, note};

        events_record(p->n->events, about, &e);
}

/* ---- changes */

static void tell_container(struct node_pod *p, const struct json *before, const struct json *after)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *was = json_at(before, "state"), *is = json_at(after, "state");
        const char *name = json_str_or(after, "name", "");
        const char *waits = json_str(json_at(is, "waiting"), "reason");

        if (json_at(after, "id") && !streq(json_str(before, "id"), json_str(after, "id")) &&
            !json_at(is, "waiting")) {
                node_pod_event(p, false, "Created", arena_printf(&a, "Created container %s", name));
                if (!streq(json_str(json_at(is, "terminated"), "reason"), "StartError"))
                        node_pod_event(p, false, "Started", arena_printf(&a, "Started container %s", name));
                else
                        node_pod_event(p, true, "Failed",
                                       arena_printf(&a, "Error: %s",
                                                    json_str_or(json_at(is, "terminated"), "message", "")));
        }
        if (waits && !streq(waits, json_str(json_at(was, "waiting"), "reason"))) {
                if (streq(waits, "CrashLoopBackOff"))
                        node_pod_event(p, true, "BackOff", "Back-off restarting failed container");
                else
                        node_pod_event(p, true, "Failed",
                                       arena_printf(&a, "Error: %s",
                                                    json_str_or(json_at(is, "waiting"), "message", "")));
        }
}

void node_pod_tell(struct node_pod *p, const struct json *before, const struct json *after)
{
        json_foreach (c, json_at(after, "containers"))
                tell_container(p, json_find_named(json_at(before, "containers"), json_str_or(c, "name", "")),
                               c);
}

/* ---- deletion */

static void on_deleted(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node_pod *p = arg;

        p->report = NULL;
        p->deleting = false;
        /* A conflict: it is another pod by now, and the cache will say so. */
        if (err && err->code != E_NOT_FOUND && err->code != E_CONFLICT) {
                LOG_WARN(p->n->config.log, "Cannot delete the pod", F_STR("pod", p->name), F_ERR(err));
                timer_after(&p->report_again, TRY_AGAIN);
        }
}

static void delete_pod(struct node_pod *p)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *options = json_build(
                &a,
                "{'apiVersion': 'v1', 'kind': 'DeleteOptions', 'gracePeriodSeconds': 0, "
                "'preconditions': {'uid': %s}}",
                p->uid);
        struct kube_request r = {.verb = KUBE_DELETE,
                                 .type = &KUBE_POD,
                                 .ns = p->ns,
                                 .name = p->name,
                                 .body = str_of(json_print(&a, options))};

        p->deleting = true;
        p->report = kube_send(p->n->config.client, &r, on_deleted, p);
}

/* ---- the status */

/* Whether the server has all of WANTED already. */
static bool has_all(const struct json *status, const struct json *wanted)
{
        json_foreach (m, wanted)
                if (!json_equal(json_at(status, m->key), m))
                        return false;
        return true;
}

static void on_reported(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct node_pod *p = arg;

        p->report = NULL;
        if (!err) {
                p->sent = p->sending;
        } else if (err->code == E_NOT_FOUND || err->code == E_CONFLICT) {
                p->sent = p->sending; /* the cache will say what became of it */
        } else {
                LOG_WARN(p->n->config.log, "Cannot report the pod", F_STR("pod", p->name), F_ERR(err));
                timer_after(&p->report_again, TRY_AGAIN);
                return;
        }
        if (p->dirty || p->step == POD_ENDED)
                node_pod_report(p);
        node_check_stopped(p->n);
}

static void send_status(struct node_pod *p, struct json *status, struct arena *a)
{
        struct json *patch = json_build(a, "{'metadata': {'uid': %s}, 'status': %p}", p->uid, (void *)status);
        struct kube_request r = {.verb = KUBE_PATCH_MERGE,
                                 .type = &KUBE_POD,
                                 .ns = p->ns,
                                 .name = p->name,
                                 .subresource = "status",
                                 .body = str_of(json_print(a, patch)),
                                 .field_manager = "sonde-node"};

        p->report = kube_send(p->n->config.client, &r, on_reported, p);
}

void node_pod_report(struct node_pod *p)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *e = cache_get_uid(p->n->pods, p->uid);
        const struct json *pod = e ? cache_parse(p->n->pods, e, &a) : NULL;
        struct pod_status_input in = {.pod = pod,
                                      .state = p->state.root,
                                      .host_ip = HOST_IP,
                                      .waiting_reason = p->waiting_reason,
                                      .waiting_message = p->waiting_message,
                                      .waiting_container = p->waiting_container,
                                      .failed_reason = p->failed_reason,
                                      .failed_message = p->failed_message,
                                      .now = loop_wall(p->n->loop)};
        struct json *status;
        uint64_t hash;

        if (!pod)
                return;
        if (p->report) {
                p->dirty = true;
                return;
        }
        p->dirty = false;
        status = pod_status(&in, &a);
        hash = json_hash(status);
        if (!p->reported_before && hash != p->sent &&
            !(p->sent == 0 && has_all(json_at(pod, "status"), status))) {
                p->sending = hash;
                send_status(p, status, &a);
                return;
        }
        p->sent = hash;
        if (p->step == POD_ENDED && json_at(json_at(pod, "metadata"), "deletionTimestamp"))
                delete_pod(p);
}
