#include "local/manage_internal.h"

#define CONTROLLER "kube-controller-manager"

enum { RETRY_CREATE = 10 }; /* seconds, after a refusal */

static void look_again(struct item *it, usec_t wall);
static struct item_job *job_of(struct item *it);

/* Until the pod is durable, and so known as a dependent, the Job is not decided again: it would make another one. */
static bool create_pod(struct item *job, const struct json *object, struct json *pod, struct arena *a)
{
        struct call c = {.api = job->m->api,
                         .a = a,
                         .type = api_find_plural(job->m->api, "", "v1", "pods"),
                         .verb = DO_CREATE,
                         .ns = job->version->ns,
                         .sub = "",
                         .manager = CONTROLLER,
                         .grace = -1,
                         .body = pod};

        api_do(&c);
        if (c.code == 201) {
                (void)str_to_u64(str_of(meta_str(c.answer, "resourceVersion")), &job_of(job)->waits_for);
                api_event(job->m->api, object, "job-controller", false, "SuccessfulCreate",
                          arena_printf(a, "Created pod: %s", meta_str(c.answer, "name")));
                return true;
        }
        api_event(job->m->api, object, "job-controller", true, "FailedCreate",
                  arena_printf(a, "Error creating: %s", json_str_or(c.answer, "message", "")));
        look_again(job, loop_wall(job->m->loop) + RETRY_CREATE * USEC_PER_SEC);
        return false;
}

static void remove_pod(const struct item *job, const struct json *object, const char *name, struct arena *a)
{
        struct call c = {.api = job->m->api,
                         .a = a,
                         .type = api_find_plural(job->m->api, "", "v1", "pods"),
                         .verb = DO_DELETE,
                         .ns = job->version->ns,
                         .name = name,
                         .sub = "",
                         .manager = CONTROLLER,
                         .grace = -1,
                         .propagation = "Background"};

        api_do(&c);
        if (c.code == 200)
                api_event(job->m->api, object, "job-controller", false, "SuccessfulDelete",
                          arena_printf(a, "Deleted pod: %s", name));
}

static void write_status(const struct item *job, const struct json *object, struct json *status,
                         struct arena *a)
{
        struct call c = item_call(job, CONTROLLER, a);

        if (json_equal(status, json_at(object, "status")))
                return;
        c.verb = DO_UPDATE;
        c.sub = "status";
        c.body = json_copy(a, object);
        json_set(a, c.body, "status", status);
        api_do(&c);
}

static struct json **pods_of(const struct item *job, size_t *n, struct arena *a)
{
        const struct item_kin *kin = item_kin(job);
        struct json **pods = arena_new_array(a, struct json *, kin->dependents.n + 1);

        *n = 0;
        vec_foreach (d, &kin->dependents) {
                struct json *pod = (*d)->version && (*d)->version->type == job->m->pods ? item_object(*d, a)
                                                                                        : NULL;

                if (pod && streq(meta_controller_uid(pod), job->uid))
                        pods[(*n)++] = pod;
        }
        return pods;
}

static void on_again(struct timer *t)
{
        item_touch(CONTAINER_OF(t, struct item_job, again)->item);
}

static struct item_job *job_of(struct item *it)
{
        if (!it->job) {
                it->job = xcalloc(1, sizeof(*it->job));
                it->job->item = it;
                timer_init(&it->job->again, it->m->loop, on_again);
        }
        return it->job;
}

static void look_again(struct item *it, usec_t wall)
{
        timer_after(&job_of(it)->again, usec_sub(wall, loop_wall(it->m->loop)));
}

/* When the Job ended; 0: it has not. */
static usec_t finished_at(const struct json *job)
{
        usec_t at = 0;

        json_foreach (c, json_path(job, "status.conditions"))
                if (streq(json_str(c, "status"), "True") &&
                    (streq(json_str(c, "type"), "Complete") || streq(json_str(c, "type"), "Failed")))
                        (void)time_parse(str_of(json_str_or(c, "lastTransitionTime", "")), &at);
        return at;
}

static void time_to_live(struct item *it, const struct json *job, struct arena *a)
{
        int64_t ttl = json_int(json_at(job, "spec"), "ttlSecondsAfterFinished", -1);
        usec_t at = finished_at(job);
        struct call c;

        if (ttl < 0 || !at)
                return;
        at += (usec_t)ttl * USEC_PER_SEC;
        if (at > loop_wall(it->m->loop)) {
                look_again(it, at);
                return;
        }
        c = item_call(it, CONTROLLER, a);
        c.verb = DO_DELETE;
        c.if_uid = it->uid;
        c.propagation = "Foreground";
        api_do(&c);
}

void job_changed(struct item *it, const struct json *job, struct arena *a)
{
        struct job_decision d;
        struct json **pods;
        bool refused = false;
        size_t n;

        if (it->job && store_rev(it->m->store) < it->job->waits_for)
                return; /* the pod's own change brings us here again */
        pods = pods_of(it, &n, a);
        d = job_decide(job, (const struct json *const *)pods, n, loop_wall(it->m->loop), a);
        for (size_t i = 0; i < d.n_remove; i++)
                remove_pod(it, job, d.remove[i], a);
        for (size_t i = 0; i < d.n_create; i++)
                refused |= !create_pod(it, job, d.create[i], a);
        if (d.event_reason)
                api_event(it->m->api, job, "job-controller", d.warning, d.event_reason, d.event_message);
        if (d.status && !refused) /* what it tells would not be true; the next look tells what is */
                write_status(it, job, d.status, a);
        if (d.again && !refused)
                look_again(it, d.again);
        time_to_live(it, job, a);
}
