#include "cli/up.h"

/* How long the end of a Job waits for what its pods have still to say. */
#define LAST_WORDS (5 * USEC_PER_SEC)
#define LOG_AGAIN  (100 * USEC_PER_MS)
#define DRAIN      (2 * USEC_PER_SEC)

enum { LOG_TRIES = 20, FIRST_SIGNAL = 128 };

/* The output of one container; a restart is another instance. */
struct output {
        struct pod *pod;
        char *container;
        int64_t instance, wanted; /* told, or being told, and to be told; -1: none yet */
        int64_t before;           /* what instance was before */
        struct up_log *log;
        struct timer again;
        unsigned tries;
};

struct pod {
        struct job *job;
        char *uid, *name;
        VEC(struct output *) outputs;
        bool started, ended, failed, told_failed;
        char *why;     /* it failed */
        char *waiting; /* what was last said of its waiting */
};

enum end { NOT_ENDED, COMPLETED, FAILED };

struct job {
        struct up_follow *f;
        char *ns, *name, *uid, *label;
        VEC(struct pod *) pods;
        usec_t began, ended;
        enum end end;
        char *why;           /* it failed: condition's reason and message */
        const char *pod_why; /* borrowed from the last pod that failed */
        int64_t expected;    /* pods that it counts as ended */
        struct timer patience;
        bool told;
};

struct up_follow {
        struct kube *kube;
        VEC(struct job *) jobs;
        struct up_requests *requests;
        struct cache *job_cache, *pod_cache;
        struct reflector *job_reflector, *pod_reflector;
        struct defer finish;
        struct up_outcome outcome;
        bool started, finished;
        void (*done)(void *arg, struct up_outcome outcome);
        void *arg;
        struct timer drain;
        void (*drained)(void *arg); /* NULL: nobody waits for the last words */
        void *drained_arg;
};

static void look_at_end(struct job *j);
static void try_log(struct output *o);

/* ---- what was written */

static bool pod_is_quiet(const struct pod *p)
{
        for (size_t i = 0; i < p->outputs.n; i++) {
                const struct output *o = p->outputs.v[i];

                if (o->log || o->instance < o->wanted)
                        return false;
        }
        return true;
}

static bool all_quiet(const struct up_follow *f)
{
        for (size_t i = 0; i < f->jobs.n; i++)
                for (size_t k = 0; k < f->jobs.v[i]->pods.n; k++)
                        if (!pod_is_quiet(f->jobs.v[i]->pods.v[k]))
                                return false;
        return true;
}

static void check_drained(struct up_follow *f)
{
        if (f->drained && all_quiet(f))
                timer_after(&f->drain, 0);
}

static void tell_failed(struct pod *p)
{
        if (!p->failed || p->told_failed || !pod_is_quiet(p))
                return;
        p->told_failed = true;
        printf("%s pod %s failed: %s\n", p->job->label, p->name, p->why);
}

static void on_log_done(void *arg, size_t lines, const struct err *err)
{
        struct output *o = arg;

        up_log_free(TAKE_PTR(o->log));
        if (err && lines == 0 && o->tries++ < LOG_TRIES) { /* not there yet, or no more */
                o->instance = o->before;
                timer_after(&o->again, LOG_AGAIN);
                return;
        }
        if (err)
                printf("%s (the output of container %s cannot be read: %s)\n", o->pod->job->label,
                       o->container, err->text);
        o->tries = 0;
        try_log(o);
        tell_failed(o->pod);
        look_at_end(o->pod->job);
        fflush(stdout);
        check_drained(o->pod->job->f);
}

static void try_log(struct output *o)
{
        struct job *j = o->pod->job;

        if (o->log || o->instance >= o->wanted)
                return;
        o->before = o->instance;
        o->instance = o->wanted > o->instance + 1 ? o->wanted - 1
                                                  : o->wanted; /* a restart was quicker than we */
        o->log = up_log_new(j->f->kube, j->ns, o->pod->name, o->container, o->instance < o->wanted, j->label,
                            on_log_done, o);
}

static void on_again(struct timer *t)
{
        try_log(CONTAINER_OF(t, struct output, again));
}

static struct output *output_of(struct pod *p, const char *container)
{
        struct output *o;

        for (size_t i = 0; i < p->outputs.n; i++)
                if (streq(p->outputs.v[i]->container, container))
                        return p->outputs.v[i];
        o = *vec_push(&p->outputs) = xcalloc(1, sizeof(*o));
        *o = (struct output){.pod = p, .container = xstrdup(container), .instance = -1, .wanted = -1};
        timer_init(&o->again, kube_loop(p->job->f->kube), on_again);
        return o;
}

/* ---- pods */

static void say_waiting(struct pod *p, const char *reason, const char *message)
{
        char *text = xasprintf("%s%s%s", reason, message && *message ? ": " : "", message ? message : "");

        if (!streq(text, p->waiting))
                printf("%s waiting: %s\n", p->job->label, text);
        free(p->waiting);
        p->waiting = text;
}

static bool is_worth_telling(const char *reason)
{
        return reason && !streq(reason, "ContainerCreating") && !streq(reason, "PodInitializing");
}

/* Code, signal or reason of a container that did not end well. */
static void note_exit(struct pod *p, const char *container, const struct json *terminated)
{
        long long code = json_int(terminated, "exitCode", 0);
        const char *reason = json_str_or(terminated, "reason", "");

        if (code == 0)
                return;
        free(p->why);
        if (streq(reason, "Error") || !*reason)
                p->why = code > FIRST_SIGNAL
                                 ? xasprintf("container %s exited with code %lld (signal %lld)", container,
                                             code, code - FIRST_SIGNAL)
                                 : xasprintf("container %s exited with code %lld", container, code);
        else
                p->why = xasprintf("container %s exited with code %lld (%s)", container, code, reason);
}

static void look_at_container(struct pod *p, const struct json *status)
{
        const struct json *state = json_at(status, "state"), *last = json_at(status, "lastState");
        const struct json *waiting = json_at(state, "waiting"), *terminated = json_at(state, "terminated");
        const char *name = json_str_or(status, "name", "");
        struct output *o;

        if (waiting && is_worth_telling(json_str(waiting, "reason")))
                say_waiting(p, json_str(waiting, "reason"), json_str(waiting, "message"));
        if (terminated)
                note_exit(p, name, terminated);
        if (!json_at(state, "running") && !terminated && !json_at(last, "terminated"))
                return;
        o = output_of(p, name);
        o->wanted = MAX(o->wanted, json_int(status, "restartCount", 0));
}

static void look_at_conditions(struct pod *p, const struct json *status)
{
        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "PodScheduled") && streq(json_str(c, "status"), "False"))
                        say_waiting(p, json_str_or(c, "reason", "Unschedulable"), json_str(c, "message"));
}

static void look_at_phase(struct pod *p, const struct json *status)
{
        const char *phase = json_str_or(status, "phase", ""), *reason = json_str(status, "reason");
        const char *message = json_str(status, "message");

        p->failed = streq(phase, "Failed");
        p->ended = p->failed || streq(phase, "Succeeded");
        if (p->failed && reason && !p->why)
                p->why = xasprintf("%s%s%s", reason, message ? ": " : "", message ? message : "");
        if (p->failed && !p->why)
                p->why = xstrdup("no reason is known");
        if (p->failed)
                p->job->pod_why = p->why;
}

static void look_at_pod(struct pod *p, const struct json *object)
{
        const struct json *status = json_at(object, "status");

        look_at_conditions(p, status);
        json_foreach (c, json_at(status, "initContainerStatuses"))
                look_at_container(p, c);
        json_foreach (c, json_at(status, "containerStatuses"))
                look_at_container(p, c);
        look_at_phase(p, status);
        if (p->outputs.n && !p->started) {
                p->started = true;
                printf("%s running on %s (pod %s)\n", p->job->label,
                       json_str_or(json_at(object, "spec"), "nodeName", "a node"), p->name);
        }
        for (size_t i = 0; i < p->outputs.n; i++)
                if (!timer_pending(&p->outputs.v[i]->again))
                        try_log(p->outputs.v[i]);
        tell_failed(p);
}

static struct job *job_by_uid(const struct up_follow *f, const char *uid)
{
        for (size_t i = 0; i < f->jobs.n; i++)
                if (streq(f->jobs.v[i]->uid, uid))
                        return f->jobs.v[i];
        return NULL;
}

static struct pod *pod_of(struct job *j, const struct cache_entry *e)
{
        struct pod *p;

        for (size_t i = 0; i < j->pods.n; i++)
                if (streq(j->pods.v[i]->uid, e->uid))
                        return j->pods.v[i];
        p = *vec_push(&j->pods) = xcalloc(1, sizeof(*p));
        p->job = j;
        p->uid = xstrdup(e->uid);
        p->name = xstrdup(e->name);
        return p;
}

static void on_pod(void *arg, enum cache_change change, const struct cache_entry *before,
                   const struct cache_entry *after, bool initial)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct up_follow *f = arg;
        const struct cache_entry *e = after ? after : before;
        struct job *j = job_by_uid(f, e->owner);

        if (!j || j->told)
                return;
        if (after)
                look_at_pod(pod_of(j, e), cache_parse(f->pod_cache, e, &a));
        else
                pod_of(j, e)->ended = true;
        look_at_end(j);
        fflush(stdout);
}

/* ---- Jobs */

static const char *seconds(usec_t took, char out[32])
{
        double s = (double)took / (double)USEC_PER_SEC;

        snprintf(out, 32, s < 1 ? "%.1f s" : "%.0f s", s);
        return out;
}

static void on_finish(struct defer *d)
{
        struct up_follow *f = CONTAINER_OF(d, struct up_follow, finish);
        struct up_outcome requests = up_requests_outcome(f->requests);

        f->outcome.completed += requests.completed;
        f->outcome.failed += requests.failed;
        f->done(f->arg, f->outcome);
}

static void check_finished(struct up_follow *f)
{
        if (!f->started || f->finished || f->drained || up_follow_running(f))
                return;
        f->finished = true;
        defer_run(kube_loop(f->kube), &f->finish, on_finish);
}

static void on_request_ended(void *arg)
{
        check_finished(arg);
}

static void tell_end(struct job *j)
{
        char took[32];

        j->told = true;
        timer_cancel(&j->patience);
        for (size_t i = 0; i < j->pods.n; i++) /* whoever is still writing has had his time */
                for (size_t k = 0; k < j->pods.v[i]->outputs.n; k++) {
                        timer_cancel(&j->pods.v[i]->outputs.v[k]->again);
                        up_log_free(TAKE_PTR(j->pods.v[i]->outputs.v[k]->log));
                }
        seconds(usec_sub(j->ended, j->began), took);
        if (j->end == COMPLETED) {
                printf("%s completed in %s\n", j->label, took);
                j->f->outcome.completed++;
        } else {
                printf("%s failed after %s: %s%s%s\n", j->label, took, j->why, j->pod_why ? "; " : "",
                       j->pod_why ? j->pod_why : "");
                j->f->outcome.failed++;
        }
        fflush(stdout);
        check_finished(j->f);
}

static bool has_said_all(const struct job *j)
{
        int64_t ended = 0;

        for (size_t i = 0; i < j->pods.n; i++) {
                if (!pod_is_quiet(j->pods.v[i]))
                        return false;
                ended += j->pods.v[i]->ended;
        }
        return ended >= j->expected;
}

static void on_patience_over(struct timer *t)
{
        tell_end(CONTAINER_OF(t, struct job, patience));
}

/* The end of a Job is told after all that its pods wrote: their changes come by another watch and may be later. */
static void look_at_end(struct job *j)
{
        if (j->end == NOT_ENDED || j->told)
                return;
        if (has_said_all(j))
                tell_end(j);
        else if (!timer_pending(&j->patience))
                timer_after(&j->patience, LAST_WORDS);
}

static void look_at_job(struct job *j, const struct json *object)
{
        const struct json *status = json_at(object, "status");

        if (j->end != NOT_ENDED)
                return;
        json_foreach (c, json_at(status, "conditions")) {
                const char *type = json_str_or(c, "type", "");

                if (!streq(json_str(c, "status"), "True") ||
                    (!streq(type, "Complete") && !streq(type, "Failed")))
                        continue;
                j->end = streq(type, "Complete") ? COMPLETED : FAILED;
                j->why = xasprintf("%s: %s", json_str_or(c, "reason", "Failed"),
                                   json_str_or(c, "message", "no reason is known"));
        }
        if (j->end == NOT_ENDED)
                return;
        j->ended = loop_now(kube_loop(j->f->kube));
        j->expected = json_int(status, "succeeded", 0) + json_int(status, "failed", 0);
        look_at_end(j);
}

static void on_job(void *arg, enum cache_change change, const struct cache_entry *before,
                   const struct cache_entry *after, bool initial)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct up_follow *f = arg;
        struct job *j = job_by_uid(f, after ? after->uid : before->uid);

        if (!j)
                return;
        if (after) {
                look_at_job(j, cache_parse(f->job_cache, after, &a));
        } else if (j->end == NOT_ENDED) {
                j->end = FAILED;
                j->why = xstrdup("somebody deleted it");
                j->ended = loop_now(kube_loop(f->kube));
                look_at_end(j);
        }
}

/* A Job that was deleted before the first list is in none. */
static void on_jobs_synced(void *arg, bool first)
{
        struct up_follow *f = arg;

        for (size_t i = 0; i < f->jobs.n; i++) {
                struct job *j = f->jobs.v[i];

                if (j->end != NOT_ENDED || cache_get_uid(f->job_cache, j->uid))
                        continue;
                j->end = FAILED;
                j->why = xstrdup("somebody deleted it");
                j->ended = loop_now(kube_loop(f->kube));
                look_at_end(j);
        }
}

/* ---- the end of all */

static void on_drained(struct timer *t)
{
        struct up_follow *f = CONTAINER_OF(t, struct up_follow, drain);
        void (*drained)(void *arg) = f->drained;

        f->drained = NULL;
        f->finished = true;
        drained(f->drained_arg);
}

void up_follow_drain(struct up_follow *f, void (*done)(void *arg), void *arg)
{
        f->drained = done;
        f->drained_arg = arg;
        timer_after(&f->drain, DRAIN);
        check_drained(f);
}

/* ---- all */

struct up_follow *up_follow_new(struct kube *kube, void (*done)(void *arg, struct up_outcome outcome),
                                void *arg)
{
        struct up_follow *f = xcalloc(1, sizeof(*f));

        f->kube = kube;
        timer_init(&f->drain, kube_loop(kube), on_drained);
        f->done = done;
        f->arg = arg;
        f->requests = up_requests_new(kube, on_request_ended, f);
        return f;
}

static bool has_ended(const struct json *object)
{
        json_foreach (c, json_at(json_at(object, "status"), "conditions"))
                if (streq(json_str(c, "status"), "True") &&
                    (streq(json_str(c, "type"), "Complete") || streq(json_str(c, "type"), "Failed")))
                        return true;
        return false;
}

static bool is_job(const struct json *object)
{
        return streq(json_str(object, "kind"), "Job") &&
               str_has_prefix(str_of(json_str(object, "apiVersion")), STR("batch/"));
}

void up_follow_add(struct up_follow *f, const struct json *object)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *ns = meta_str(object, "namespace"), *name = meta_str(object, "name");
        const char *label = up_label(&a, "job", ns, name);
        struct job *j;

        if (up_requests_add(f->requests, object) || !is_job(object))
                return;
        if (!meta_str(object, "uid") || job_by_uid(f, meta_str(object, "uid")))
                return;
        if (has_ended(object))
                printf("%s ended in an earlier run: to run it again, delete it first\n", label);
        j = *vec_push(&f->jobs) = xcalloc(1, sizeof(*j));
        j->f = f;
        j->ns = xstrdup(ns);
        j->name = xstrdup(name);
        j->uid = xstrdup(meta_str(object, "uid"));
        j->label = xstrdup(label);
        j->began = loop_now(kube_loop(f->kube));
        timer_init(&j->patience, kube_loop(f->kube), on_patience_over);
}

void up_follow_start(struct up_follow *f)
{
        struct cache_config jobs = {.type = &KUBE_JOB}, pods = {.type = &KUBE_POD};
        struct reflector_config rc = {.kube = f->kube, .arg = f};

        f->started = true;
        up_requests_start(f->requests);
        check_finished(f);
        if (f->jobs.n == 0)
                return;
        f->job_cache = cache_new(&jobs);
        f->pod_cache = cache_new(&pods);
        cache_listen(f->job_cache, on_job, f);
        cache_listen(f->pod_cache, on_pod, f);
        rc.cache = f->pod_cache;
        rc.label_selector = "job-name";
        f->pod_reflector = reflector_new(&rc);
        rc.cache = f->job_cache;
        rc.label_selector = NULL;
        rc.on_synced = on_jobs_synced;
        f->job_reflector = reflector_new(&rc);
}

size_t up_follow_running(const struct up_follow *f)
{
        size_t n = up_requests_running(f->requests);

        for (size_t i = 0; i < f->jobs.n; i++)
                n += !f->jobs.v[i]->told;
        return n;
}

static void pod_free(struct pod *p)
{
        for (size_t i = 0; i < p->outputs.n; i++) {
                struct output *o = p->outputs.v[i];

                timer_cancel(&o->again);
                up_log_free(o->log);
                free(o->container);
                free(o);
        }
        vec_done(&p->outputs);
        free(p->uid);
        free(p->name);
        free(p->why);
        free(p->waiting);
        free(p);
}

static void job_free(struct job *j)
{
        for (size_t i = 0; i < j->pods.n; i++)
                pod_free(j->pods.v[i]);
        vec_done(&j->pods);
        timer_cancel(&j->patience);
        free(j->ns);
        free(j->name);
        free(j->uid);
        free(j->label);
        free(j->why);
        free(j);
}

void up_follow_free(struct up_follow *f)
{
        if (!f)
                return;
        defer_cancel(&f->finish);
        timer_cancel(&f->drain);
        up_requests_free(f->requests);
        if (f->job_reflector)
                reflector_free(f->job_reflector);
        if (f->pod_reflector)
                reflector_free(f->pod_reflector);
        for (size_t i = 0; i < f->jobs.n; i++)
                job_free(f->jobs.v[i]);
        vec_done(&f->jobs);
        if (f->job_cache)
                cache_free(f->job_cache);
        if (f->pod_cache)
                cache_free(f->pod_cache);
        free(f);
}
