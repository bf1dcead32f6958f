/*
 * Jobs, as Kubernetes 1.20's controller decides them.
 *
 * One thing is kept differently: how often pods failed in a row is counted from the pods that are there, not in the
 * controller's memory, so that a restart neither forgets nor repeats. A delay after a failure holds back the next pod
 * only; that a limit is reached is said at once.
 */
#include "local/manage.h"

static const usec_t FIRST_DELAY = 10 * USEC_PER_SEC, LONGEST_DELAY = 360 * USEC_PER_SEC;
enum { DOUBLINGS_MAX = 10, DEFAULT_BACKOFF_LIMIT = 6, BURST = 500 };

struct census {
        const struct json **active;
        size_t n_active, succeeded, failed;
        unsigned in_a_row;   /* failures since the last success */
        usec_t last_failure; /* wall; 0: none */
};

static const char *phase_of(const struct json *pod)
{
        return json_str_or(json_at(pod, "status"), "phase", "Pending");
}

static usec_t time_of(const struct json *object, const char *member)
{
        usec_t t;

        return time_parse(json_text(json_at(object, member)), &t) ? t : 0;
}

static usec_t finished_at(const struct json *pod)
{
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
        usec_t last = 0;

        for (size_t i = 0; i < ARRAY_LEN(lists); i++)
                json_foreach (c, json_at(json_at(pod, "status"), lists[i]))
                        last = MAX(last, time_of(json_at(json_at(c, "state"), "terminated"), "finishedAt"));
        return last ? last : time_of(json_at(pod, "metadata"), "creationTimestamp");
}

static struct census count(const struct json *const *pods, size_t n, struct arena *a)
{
        struct census c = {.active = arena_new_array(a, const struct json *, n + 1)};
        usec_t success = 0;

        for (size_t i = 0; i < n; i++) {
                const char *phase = phase_of(pods[i]);

                if (streq(phase, "Succeeded")) {
                        c.succeeded++;
                        success = MAX(success, finished_at(pods[i]));
                } else if (streq(phase, "Failed")) {
                        c.failed++;
                        c.last_failure = MAX(c.last_failure, finished_at(pods[i]));
                } else if (!json_at(json_at(pods[i], "metadata"), "deletionTimestamp")) {
                        c.active[c.n_active++] = pods[i];
                }
        }
        for (size_t i = 0; i < n; i++)
                if (streq(phase_of(pods[i]), "Failed") && finished_at(pods[i]) >= success)
                        c.in_a_row++;
        return c;
}

/* ---- has it failed? */

static bool restarted_too_often(const struct json *job, const struct census *c)
{
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
        const struct json *spec = json_at(job, "spec");
        int64_t limit = json_int(spec, "backoffLimit", DEFAULT_BACKOFF_LIMIT), restarts = 0;

        if (!streq(json_str(json_at(json_at(spec, "template"), "spec"), "restartPolicy"), "OnFailure"))
                return false;
        for (size_t i = 0; i < c->n_active; i++)
                for (size_t k = 0; k < ARRAY_LEN(lists); k++)
                        json_foreach (s, json_at(json_at(c->active[i], "status"), lists[k]))
                                restarts += json_int(s, "restartCount", 0);
        return limit == 0 ? restarts > 0 : restarts >= limit;
}

static usec_t deadline_of(const struct json *job, usec_t started)
{
        int64_t seconds = json_int(json_at(job, "spec"), "activeDeadlineSeconds", -1);

        return seconds < 0 || !started ? USEC_MAX : usec_add(started, (usec_t)seconds * USEC_PER_SEC);
}

/* ---- pods */

static struct json *new_pod(const struct json *job, struct arena *a)
{
        const struct json *template = json_at(json_at(job, "spec"), "template"),
                          *from = json_at(template, "metadata");
        const char *name = meta_str(job, "name"), *uid = meta_str(job, "uid");
        struct json *meta = json_object(a), *labels;
        static const char *const copied[] = {"annotations", "finalizers"};

        labels = json_at(from, "labels") ? json_copy(a, json_at(from, "labels")) : json_object(a);
        if (!json_at(labels, "controller-uid"))
                json_set(a, labels, "controller-uid", json_string(a, uid));
        if (!json_at(labels, "job-name"))
                json_set(a, labels, "job-name", json_string(a, name));
        json_set(a, meta, "generateName", json_string(a, arena_join(a, name, "-", "")));
        json_set(a, meta, "namespace", json_string(a, meta_str(job, "namespace")));
        json_set(a, meta, "labels", labels);
        for (size_t i = 0; i < ARRAY_LEN(copied); i++)
                if (json_at(from, copied[i]))
                        json_set(a, meta, copied[i], json_copy(a, json_at(from, copied[i])));
        json_set(a, meta, "ownerReferences",
                 json_build(a, "[%p]", (void *)owner_reference(a, &KUBE_JOB, job)));
        return json_build(a, "{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': %p, 'spec': %p}", (void *)meta,
                          (void *)json_copy(a, json_at(template, "spec")));
}

static bool is_ready(const struct json *pod)
{
        json_foreach (c, json_at(json_at(pod, "status"), "conditions"))
                if (streq(json_str(c, "type"), "Ready"))
                        return streq(json_str(c, "status"), "True");
        return false;
}

static int64_t restarts_of(const struct json *pod)
{
        int64_t most = 0;

        json_foreach (c, json_at(json_at(pod, "status"), "containerStatuses"))
                most = MAX(most, json_int(c, "restartCount", 0));
        return most;
}

/* Which of two active pods is given up first: the one that would lose less. */
static int by_loss(const void *x, const void *y)
{
        const struct json *p[] = {*(const struct json *const *)x, *(const struct json *const *)y};
        int rank[2];
        usec_t made[2];

        for (size_t i = 0; i < 2; i++) {
                const char *node = json_str_or(json_at(p[i], "spec"), "nodeName", "");

                rank[i] = (*node ? 4 : 0) + (streq(phase_of(p[i]), "Running") ? 2 : 0) +
                          (is_ready(p[i]) ? 1 : 0);
                made[i] = time_of(json_at(p[i], "metadata"), "creationTimestamp");
        }
        if (rank[0] != rank[1])
                return rank[0] - rank[1];
        if (restarts_of(p[0]) != restarts_of(p[1]))
                return restarts_of(p[0]) > restarts_of(p[1]) ? -1 : 1;
        if (made[0] != made[1])
                return made[0] > made[1] ? -1 : 1;
        return strcmp(meta_str(p[0], "name"), meta_str(p[1], "name"));
}

static void remove_some(struct job_decision *d, const struct census *c, size_t n, struct arena *a)
{
        qsort(c->active, c->n_active, sizeof(*c->active), by_loss);
        d->remove = arena_new_array(a, const char *, n + 1);
        for (d->n_remove = 0; d->n_remove < n; d->n_remove++)
                d->remove[d->n_remove] = meta_str(c->active[d->n_remove], "name");
}

static size_t wanted(const struct json *spec, const struct census *c, size_t parallelism)
{
        int64_t completions = json_int(spec, "completions", -1), left;

        if (completions < 0) /* a work queue: once one has succeeded, no new ones */
                return c->succeeded ? c->n_active : parallelism;
        left = completions - (int64_t)c->succeeded;
        return left <= 0 ? 0 : MIN((size_t)left, parallelism);
}

static usec_t next_start(const struct census *c)
{
        usec_t delay;

        if (c->in_a_row < 2)
                return 0;
        delay = MIN(FIRST_DELAY << MIN(c->in_a_row - 2, (unsigned)DOUBLINGS_MAX), LONGEST_DELAY);
        return usec_add(c->last_failure, delay);
}

/* Brings the number of active pods where it should be; returns how many there will be. */
static size_t manage(struct job_decision *d, const struct json *job, const struct census *c, usec_t now,
                     struct arena *a)
{
        const struct json *spec = json_at(job, "spec");
        size_t parallelism = (size_t)MAX(json_int(spec, "parallelism", 1), (int64_t)0), want;
        usec_t start = next_start(c);

        if (c->n_active > parallelism) {
                remove_some(d, c, c->n_active - parallelism, a);
                return parallelism;
        }
        want = wanted(spec, c, parallelism);
        if (want <= c->n_active)
                return c->n_active;
        if (start > now) {
                d->again = d->again ? MIN(d->again, start) : start;
                return c->n_active;
        }
        d->n_create = MIN(want - c->n_active, (size_t)BURST); /* the rest follows when these are there */
        d->create = arena_new_array(a, struct json *, d->n_create);
        for (size_t i = 0; i < d->n_create; i++)
                d->create[i] = new_pod(job, a);
        return c->n_active + d->n_create;
}

/* ---- the status */

struct outcome {
        size_t active, succeeded, failed;
        const char *condition, *reason, *message; /* condition NULL: it goes on */
};

static struct json *time_json(usec_t when, struct arena *a)
{
        char text[TIME_TEXT_MAX];

        return json_string(a, time_format(when, text));
}

static void set_count(struct json *status, const char *name, size_t n, struct arena *a)
{
        if (n)
                json_set(a, status, name, json_u64(a, n));
        else
                json_remove(status, name);
}

static struct json *new_status(const struct json *old, const struct outcome *o, usec_t started, usec_t now,
                               struct arena *a)
{
        struct json *status = old ? json_copy(a, old) : json_object(a), *conditions;

        if (json_int(old, "active", 0) == (int64_t)o->active &&
            json_int(old, "failed", 0) == (int64_t)o->failed &&
            json_int(old, "succeeded", 0) == (int64_t)o->succeeded && !o->condition)
                return NULL;
        if (o->condition) {
                conditions = json_at(status, "conditions");
                if (!conditions)
                        conditions = json_set(a, status, "conditions", json_array(a));
                json_append(conditions,
                            json_build(a,
                                       "{'type': %s, 'status': 'True', 'lastProbeTime': %p, "
                                       "'lastTransitionTime': %p, "
                                       "'reason': %p, 'message': %p}",
                                       o->condition, (void *)time_json(now, a), (void *)time_json(now, a),
                                       (void *)json_string(a, o->reason),
                                       (void *)json_string(a, o->message)));
        }
        if (!json_at(status, "startTime"))
                json_set(a, status, "startTime", time_json(started, a));
        if (streq(o->condition, "Complete"))
                json_set(a, status, "completionTime", time_json(now, a));
        set_count(status, "active", o->active, a);
        set_count(status, "succeeded", o->succeeded, a);
        set_count(status, "failed", o->failed, a);
        return status;
}

/* ---- the decision */

static bool is_finished(const struct json *status)
{
        json_foreach (c, json_at(status, "conditions"))
                if ((streq(json_str(c, "type"), "Complete") || streq(json_str(c, "type"), "Failed")) &&
                    streq(json_str(c, "status"), "True"))
                        return true;
        return false;
}

static void fail(struct outcome *o, const char *reason, const char *message)
{
        o->condition = "Failed";
        o->reason = reason;
        o->message = message;
}

static void check_failed(struct outcome *o, const struct json *job, const struct census *c, usec_t deadline,
                         usec_t now)
{
        int64_t limit = json_int(json_at(job, "spec"), "backoffLimit", DEFAULT_BACKOFF_LIMIT);

        if ((int64_t)c->in_a_row > limit || restarted_too_often(job, c))
                fail(o, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        else if (now >= deadline)
                fail(o, "DeadlineExceeded", "Job was active longer than specified deadline");
}

static bool is_complete(const struct json *spec, const struct outcome *o)
{
        int64_t completions = json_int(spec, "completions", -1);

        if (completions < 0)
                return o->succeeded > 0 && o->active == 0;
        return (int64_t)o->succeeded >= completions;
}

struct job_decision job_decide(const struct json *job, const struct json *const *pods, size_t n, usec_t now,
                               struct arena *a)
{
        struct job_decision d = {0};
        const struct json *status = json_at(job, "status");
        struct census c = count(pods, n, a);
        struct outcome o = {c.n_active, c.succeeded, c.failed, NULL, NULL, NULL};
        usec_t started = time_of(status, "startTime"), deadline;

        if (is_finished(status))
                return d;
        started = started ? started : now;
        deadline = deadline_of(job, started);
        check_failed(&o, job, &c, deadline, now);
        if (o.condition) {
                remove_some(&d, &c, c.n_active, a);
                o.failed += o.active;
                o.active = 0;
                d.event_reason = o.reason;
                d.event_message = o.message;
                d.warning = true;
        } else {
                d.again = deadline == USEC_MAX ? 0 : deadline;
                if (!json_at(json_at(job, "metadata"), "deletionTimestamp"))
                        o.active = manage(&d, job, &c, now, a);
                if (is_complete(json_at(job, "spec"), &o)) {
                        o.condition = "Complete";
                        d.event_reason = "Completed";
                        d.event_message = "Job completed";
                        d.again = 0;
                }
        }
        d.status = new_status(status, &o, started, now, a);
        return d;
}
