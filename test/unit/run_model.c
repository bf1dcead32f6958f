/*
 * A run's controller in a world of chance: the Job's controller, the kubelet, the relay, people and the operator's own death
 * act in any order, and each watch shows what it shows when it likes. People suspend, resume, cancel and edit, nodes evict, and
 * time runs out. What must stay true is checked at every write.
 *
 * SONDE_MODEL_SEED=N runs one world and tells its story.
 */
#include "unit/unit.h"

#include "kinds/testrun.h"

enum {
        QUICK_WORLDS = 100,
        WORLDS = 400,
        SOAK_WORLDS = 100 * WORLDS,
        STEPS = 400,
        PODS = 16,
        HELD = 30 * 3,
        CALM = 5000
};
enum { JOBS_MAX = 24 };
#define SEC  USEC_PER_SEC
#define NOON ((usec_t)1794744000 * SEC)

/* What watches show, each in its own time. */
enum source { REQUESTS, JOBS, PODS_OF_IT, MAPS, SOURCES };

enum stage { WORK_PENDING, WORK_RUNNING, WORK_ENDED };

struct job {
        char name[16], uid[16];
        uint64_t attempt;
        bool there, deleting, complete, failed;
        usec_t ended;
};

struct pod {
        char name[16], uid[16];
        size_t job;
        usec_t created, asked, started, finished;
        bool gone, interrupted, evicted;
        enum stage work;
        int code;
        bool relay_up, relay_ended, over;
        int relay_code;
        uint64_t attempt, sequence; /* that its relay claimed; 0: not yet */
        bool result_sent, recorded;
};

struct world {
        struct rng rng;
        struct arena arena; /* of the server's texts */
        bool loud;
        usec_t now;
        unsigned step;

        /* the server */
        const char *status; /* of the request; NULL: none yet */
        bool map[2];        /* status, data */
        struct run_fence fence;
        const char *state_json, *exit_json, *result;
        uint64_t result_attempt;
        bool access[3];
        struct job jobs[JOBS_MAX]; /* all that were ever made */
        size_t n_jobs;
        unsigned backoff_limit;
        bool counts_deleted; /* since Kubernetes 1.26 a pod that was deleted has failed */
        bool job_deleted_by_somebody;
        struct pod pods[PODS];
        size_t n_pods;

        /* the request, as people wrote it */
        bool suspend, cancel;
        unsigned image, timeout, retries;
        int64_t generation;
        unsigned image_begun; /* that the attempt under way was begun with */

        /* the operator */
        const char *seen[SOURCES]; /* what its caches hold: lists as JSON; NULL: not listed yet */
        bool awaits[SOURCES];      /* has written something that this one must show first */
        usec_t again_at;
        unsigned decisions, rows;
        const char *final; /* the terminal status */
};

static void tell(struct world *w, const char *what, const char *more)
{
        if (w->loud)
                printf("# %u: %s %s\n", w->step, what, more);
}

static bool chance(struct world *w, unsigned percent)
{
        return rng_below(&w->rng, 100) < percent;
}

static const char *text_of(struct world *w, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return arena_strdup(&w->arena, time_format(when, text));
}

/* ---- what the server would say */

#define OWNER(uid) "'ownerReferences': [{'uid': '" uid "', 'controller': %p}]"

static struct json *yes(struct arena *a)
{
        return json_truth(a, true);
}

static struct json *request_json(struct world *w, struct arena *a)
{
        return json_build(
                a,
                "{'apiVersion': 'test.sonde.dev/v1alpha1', 'kind': 'TestRun', 'metadata': {'namespace': "
                "'ns', 'name': 'r', 'uid': 'uid-r', 'generation': %lld}, 'spec': {'image': 'i%u', 'command': "
                "['x'], 'backoffLimit': %u, 'suspend': %p, 'cancel': %p, 'retries': %u, 'timeout': %p}, "
                "'status': %p}",
                (long long)w->generation, w->image, w->backoff_limit, (void *)json_truth(a, w->suspend),
                (void *)json_truth(a, w->cancel), w->retries,
                (void *)(w->timeout ? json_string(a, arena_printf(a, "%us", w->timeout)) : NULL),
                (void *)(w->status ? json_parse(a, str_of(w->status), NULL, NULL) : NULL));
}

static struct json *job_json(struct world *w, struct arena *a, const struct job *job)
{
        const char *type = job->complete ? "Complete" : job->failed ? "Failed" : NULL;
        struct json *end = type ? json_build(a,
                                             "[{'type': %s, 'status': 'True', 'message': 'm', "
                                             "'lastTransitionTime': %s}]",
                                             type, text_of(w, job->ended))
                                : NULL;

        return json_build(a,
                          "{'metadata': {'name': %s, 'uid': %s, 'deletionTimestamp': %p, 'labels': "
                          "{'sonde.dev/attempt': '%llu'}, " OWNER(
                                  "uid-r") "}, 'spec': {'backoffLimit': %u}, 'status': {'conditions': %p}}",
                          job->name, job->uid,
                          (void *)(job->deleting ? json_string(a, text_of(w, w->now)) : NULL),
                          (unsigned long long)job->attempt, (void *)yes(a), w->backoff_limit, (void *)end);
}

static struct json *state_of(struct world *w, struct arena *a, const char *name, bool running, bool ended,
                             int code, const struct pod *p)
{
        struct json *state;

        if (ended)
                state = json_build(a, "{'terminated': {'exitCode': %d, 'startedAt': %s, 'finishedAt': %s}}",
                                   code, text_of(w, p->started), text_of(w, p->finished));
        else if (running)
                state = json_build(a, "{'running': {'startedAt': %s}}", text_of(w, p->started));
        else
                state = json_build(a, "{'waiting': {'reason': 'PodInitializing'}}");
        return json_build(a, "{'name': %s, 'state': %p}", name, (void *)state);
}

static struct json *pod_json(struct world *w, struct arena *a, const struct pod *p)
{
        bool well = p->code == 0 && p->relay_code == 0 && !p->evicted;
        const char *phase = p->over                   ? (well ? "Succeeded" : "Failed")
                            : p->work == WORK_PENDING ? "Pending"
                                                      : "Running";
        struct json *j = json_build(
                a,
                "{'metadata': {'name': %s, 'uid': %s, 'creationTimestamp': %s, 'ownerReferences': [{'uid': "
                "%s, "
                "'controller': %p}]}, 'spec': {'nodeName': 'n', 'containers': [{'name': 'workload'}, "
                "{'name': "
                "'relay'}]}, 'status': {'phase': %s, 'reason': %p, 'startTime': %p, 'containerStatuses': "
                "[%p, "
                "%p]}}",
                p->name, p->uid, text_of(w, p->created), w->jobs[p->job].uid, (void *)yes(a), phase,
                (void *)(p->evicted ? json_string(a, "Evicted") : NULL),
                (void *)(p->started ? json_string(a, text_of(w, p->started)) : NULL),
                (void *)state_of(w, a, "workload", p->work == WORK_RUNNING, p->work == WORK_ENDED, p->code,
                                 p),
                (void *)state_of(w, a, "relay", p->relay_up, p->relay_ended, p->relay_code, p));

        if (p->asked) {
                json_set(a, json_at(j, "metadata"), "deletionTimestamp",
                         json_string(a, text_of(w, p->asked + 30 * SEC)));
                json_set(a, json_at(j, "metadata"), "deletionGracePeriodSeconds", json_i64(a, 30));
        }
        return j;
}

static struct json *status_map_json(struct world *w, struct arena *a)
{
        struct json *j = json_build(
                a,
                "{'metadata': {'name': 'r-run-status', 'uid': 'uid-sm', " OWNER(
                        "uid-r") "}, 'data': {'attempt': "
                                 "'%llu', 'podUID': %s, 'sequence': '%llu', 'state': %s}}",
                (void *)yes(a), (unsigned long long)w->fence.attempt, w->fence.pod,
                (unsigned long long)w->fence.sequence, run_state_name(w->fence.state));

        json_set(a, json_at(j, "data"), "status.json", json_string(a, w->state_json));
        json_set(a, json_at(j, "data"), "exit.json", json_string(a, w->exit_json));
        return j;
}

static struct json *data_map_json(struct world *w, struct arena *a)
{
        struct json *j = json_build(a,
                                    "{'metadata': {'name': 'r-run-results', 'uid': 'uid-dm', " OWNER(
                                            "uid-r") "}, 'data': {'specHash': ''}}",
                                    (void *)yes(a));

        json_set(a, json_at(j, "data"), "result.json", json_string(a, w->result));
        return j;
}

static const char *list_json(struct world *w, enum source source)
{
        struct arena *a = &w->arena;
        struct json *list = json_array(a);

        if (source == REQUESTS)
                json_append(list, request_json(w, a));
        for (size_t i = 0; source == JOBS && i < w->n_jobs; i++)
                if (w->jobs[i].there)
                        json_append(list, job_json(w, a, &w->jobs[i]));
        for (size_t i = 0; source == PODS_OF_IT && i < w->n_pods; i++)
                if (!w->pods[i].gone)
                        json_append(list, pod_json(w, a, &w->pods[i]));
        if (source == MAPS && w->map[0])
                json_append(list, status_map_json(w, a));
        if (source == MAPS && w->map[1])
                json_append(list, data_map_json(w, a));
        return json_print(a, list);
}

/* ---- the operator */

struct call {
        struct world *w;
        struct arena arena;
        struct view view;
        struct object children[PODS + JOBS_MAX + 2];
        VEC(struct answer) answers;
        struct controller controller;
};

static bool has_uid(const struct call *c, const char *uid)
{
        for (size_t i = 0; i < c->view.n_children; i++)
                if (streq(c->children[i].uid, uid))
                        return true;
        return false;
}

static void add_children(struct call *c, enum source source, const struct kube_type *type)
{
        struct json *list = json_parse(&c->arena, str_of(c->w->seen[source]), NULL, NULL);

        json_foreach (j, list) {
                if (source == MAPS)
                        run_project_map(j, &c->arena); /* as the cache does */
                if (source == PODS_OF_IT && !has_uid(c, meta_controller_uid(j)))
                        continue; /* pods are found through their Job */
                c->children[c->view.n_children++] = (struct object){type, j, meta_str(j, "name"),
                                                                    meta_str(j, "uid")};
        }
}

static void gather(struct call *c)
{
        c->view.arena = &c->arena;
        c->view.now = c->w->now;
        c->view.type = c->controller.type;
        c->view.settings = c->controller.settings;
        c->view.children = c->children;
        c->view.request = json_first(json_parse(&c->arena, str_of(c->w->seen[REQUESTS]), NULL, NULL));
        add_children(c, JOBS, &KUBE_JOB);
        add_children(c, PODS_OF_IT, &KUBE_POD);
        add_children(c, MAPS, &KUBE_CONFIGMAP);
}

static struct job *job_named(struct world *w, const char *name)
{
        for (size_t i = 0; i < w->n_jobs; i++)
                if (streq(w->jobs[i].name, name))
                        return &w->jobs[i];
        return NULL;
}

static struct json *pods_of(struct call *c, const char *job)
{
        struct world *w = c->w;
        struct json *list = json_array(&c->arena);

        for (size_t i = 0; i < w->n_pods; i++)
                if (!w->pods[i].gone && streq(w->jobs[w->pods[i].job].uid, job))
                        json_append(list, pod_json(w, &c->arena, &w->pods[i]));
        return list;
}

static const struct json *look_up(struct call *c, const struct want *want)
{
        static const struct kube_type *const access[] = {&KUBE_SERVICEACCOUNT, &KUBE_ROLE, &KUBE_ROLEBINDING};
        struct world *w = c->w;

        if (want->kind == WANT_PODS)
                return json_build(&c->arena, "{'items': %p}", (void *)pods_of(c, want->uid));
        if (want->type == &KUBE_JOB)
                return job_named(w, want->name) && job_named(w, want->name)->there
                               ? job_json(w, &c->arena, job_named(w, want->name))
                               : NULL;
        if (want->type == &KUBE_CONFIGMAP && streq(want->name, "r-run-status"))
                return w->map[0] ? status_map_json(w, &c->arena) : NULL;
        if (want->type == &KUBE_CONFIGMAP)
                return w->map[1] ? data_map_json(w, &c->arena) : NULL;
        for (size_t i = 0; i < ARRAY_LEN(access); i++)
                if (want->type == access[i] && w->access[i])
                        return json_build(
                                &c->arena,
                                "{'metadata': {'name': 'r-run', 'uid': 'a%zu', " OWNER("uid-r") "}}", i,
                                (void *)yes(&c->arena));
        return NULL;
}

static void decide_once(struct call *c, struct decision *d)
{
        c->view.answers = c->answers.v;
        c->view.n_answers = c->answers.n;
        c->controller.plan(&c->view, d);
        c->controller.settle(&c->view, d);
}

static void assert_same(const struct decision *x, const struct decision *y)
{
        assert_int_equal(x->exist.n, y->exist.n);
        for (size_t i = 0; i < x->exist.n; i++)
                assert_true(json_equal(x->exist.v[i].json, y->exist.v[i].json));
        assert_int_equal(x->absent.n, y->absent.n);
        assert_int_equal(x->events.n, y->events.n);
        assert_int_equal(x->n_wants, y->n_wants);
        assert_int_equal(x->again_at, y->again_at);
        assert_true(!x->status == !y->status && (!x->status || json_equal(x->status, y->status)));
        assert_true(!x->row == !y->row);
}

static void decide_twice(struct call *c, struct decision *d)
{
        for (unsigned round = 0; round < 5; round++) {
                _cleanup_(decision_done) struct decision again = {0};

                decision_done(d);
                decide_once(c, d);
                decide_once(c, &again);
                assert_same(d, &again);
                if (!d->n_wants)
                        return;
                for (size_t i = 0; i < d->n_wants; i++)
                        *vec_push(&c->answers) = (struct answer){.want = d->wants[i],
                                                                 .json = look_up(c, &d->wants[i])};
        }
        fail_msg("wants more and more");
}

/* ---- what the operator writes */

static bool is_overdue(const struct world *w, const struct pod *p)
{
        return p->asked && w->now >= p->asked + HELD * SEC;
}

/* Never two at once, and none twice. */
static void create_job(struct world *w, const struct must_exist *e)
{
        const char *name = meta_str(e->json, "name"),
                   *image = json_str(
                           json_first(json_at(json_at(json_at(json_at(e->json, "spec"), "template"), "spec"),
                                              "containers")),
                           "image");
        struct json *status = json_parse(&w->arena, str_of(w->status), NULL, NULL);
        struct job *job = job_named(w, name);

        for (size_t i = 0; i < 3; i++)
                assert_true(w->access[i]); /* before the pod can start */
        assert_true(w->map[0] && w->map[1]);
        assert_string_equal(json_str(json_at(status, "run"), "job"), name); /* written first */
        w->awaits[JOBS] = true;
        if (job && job->there)
                return; /* AlreadyExists */
        assert_null(job);
        assert_string_equal(image, arena_printf(&w->arena, "i%u", w->image_begun));
        for (size_t i = 0; i < w->n_jobs; i++)
                assert_true(!w->jobs[i].there || w->jobs[i].complete || w->jobs[i].failed ||
                            w->jobs[i].deleting);
        for (size_t i = 0; i < w->n_pods; i++)
                assert_true(w->pods[i].gone || w->pods[i].over || is_overdue(w, &w->pods[i]));
        assert_true(w->n_jobs < JOBS_MAX);
        job = &w->jobs[w->n_jobs];
        *job = (struct job){.there = true,
                            .attempt = (uint64_t)json_int(json_at(status, "run"), "attempt", 0)};
        snprintf(job->name, sizeof(job->name), "%s", name);
        snprintf(job->uid, sizeof(job->uid), "uid-job-%zu", w->n_jobs);
        w->n_jobs++;
        tell(w, "the Job is made", name);
}

static void create(struct world *w, const struct must_exist *e)
{
        const char *name = meta_str(e->json, "name");

        if (e->type == &KUBE_CONFIGMAP) {
                bool *there = &w->map[streq(name, "r-run-results")];

                if (!*there && there == &w->map[0]) {
                        struct err err = ERR_INIT;

                        assert_int_equal(run_fence_read(json_at(e->json, "data"), &w->fence, &err), 0);
                }
                *there = true;
                w->awaits[MAPS] = true;
        } else if (e->type == &KUBE_JOB) {
                create_job(w, e);
        } else {
                w->access[e->type == &KUBE_SERVICEACCOUNT ? 0 : e->type == &KUBE_ROLE ? 1 : 2] = true;
        }
}

static void kill_pods(struct world *w, const struct job *job)
{
        for (size_t i = 0; i < w->n_pods; i++)
                if (&w->jobs[w->pods[i].job] == job)
                        w->pods[i].gone = true;
}

/* What is removed is what the status says is over. */
static void remove_job(struct world *w, const struct must_not_exist *gone)
{
        struct job *job = job_named(w, gone->object->name);
        struct json *status = json_parse(&w->arena, str_of(w->status), NULL, NULL);
        const struct json *run = json_at(status, "run");

        assert_true(w->final || !streq(json_str(run, "job"), job->name) || json_str(run, "reason") ||
                    strstr(w->status, "\"Suspended\",\"status\":\"True\""));
        w->awaits[JOBS] = true;
        if (!job->there || job->deleting)
                return;
        tell(w, "the Job is removed", job->name);
        if (streq(gone->propagation, "Foreground")) {
                job->deleting = true;
        } else {
                assert_non_null(w->final);
                job->there = false;
                kill_pods(w, job);
        }
}

static void remove_object(struct world *w, const struct must_not_exist *gone)
{
        const struct object *o = gone->object;

        if (o->type == &KUBE_JOB)
                remove_job(w, gone);
        else if (o->type == &KUBE_CONFIGMAP)
                fail_msg("nobody asked for that");
        else
                w->access[o->type == &KUBE_SERVICEACCOUNT ? 0 : o->type == &KUBE_ROLE ? 1 : 2] = false;
}

static const struct pod *pod_of(const struct world *w, const char *uid)
{
        for (size_t i = 0; i < w->n_pods; i++)
                if (streq(w->pods[i].uid, uid))
                        return &w->pods[i];
        return NULL;
}

static bool came_later(const struct world *w, const char *name, const struct pod *p)
{
        while (++p < w->pods + w->n_pods)
                if (streq(p->name, name))
                        return p->result_sent;
        return false;
}

/* The fence, as MAPS (a list) or the server has it, holds a success that nobody asked for an end of. */
static bool success_in(struct world *w, const char *maps)
{
        struct json *list = json_parse(&w->arena, str_of(maps), NULL, NULL);
        const struct json *data = json_at(json_first(list), "data");
        const struct pod *p = pod_of(w, json_str(data, "podUID"));

        return p && streq(json_str(data, "state"), "Succeeded") && !p->interrupted && p->code == 0;
}

static bool any_asked(const struct world *w, size_t job)
{
        for (size_t i = 0; i < w->n_pods; i++)
                if (w->pods[i].job == job && w->pods[i].asked)
                        return true;
        return false;
}

static void check_failure(struct world *w, const struct json *status, const struct pod *p)
{
        const char *reason = json_str(status, "reason");
        struct job *job = job_named(w, json_str(json_at(status, "run"), "job"));
        bool stopped = streq(reason, "Cancelled") || streq(reason, "DeadlineExceeded");

        assert_non_null(reason);
        assert_non_null(json_str(status, "message"));
        assert_true(!streq(reason, "Cancelled") || w->cancel);
        assert_true(!streq(reason, "DeadlineExceeded") || w->timeout);
        /* What is recorded is never dropped; for what people and clocks stop, as far as the cache has shown it. */
        assert_false(success_in(w, stopped ? w->seen[MAPS] : list_json(w, MAPS)) &&
                     !w->job_deleted_by_somebody);
        if (stopped)
                return;
        assert_true(!job->complete || w->job_deleted_by_somebody);
        /* Whoever deletes a Job, or a pod without a record, takes away what it could say. */
        assert_true(w->job_deleted_by_somebody ||
                    (!streq(reason, "JobDeleted") && (!p || p->code != 0 || p->interrupted || p->evicted ||
                                                      (p->gone && !p->recorded) || any_asked(w, p->job))));
}

/* What the status says at the end is what happened. */
static void check_end(struct world *w, const struct json *status, const struct decision *d)
{
        const struct pod *p = pod_of(w, json_str(json_at(status, "progress"), "podUID"));
        bool succeeded = streq(json_str(status, "phase"), "Succeeded");
        struct job *job = job_named(w, json_str(json_at(status, "run"), "job"));
        const char *of;

        assert_non_null(d->row);
        assert_string_equal(d->row->outcome, succeeded ? "Succeeded" : "Failed");
        assert_string_equal(json_str(json_at(status, "run"), "outcome"), d->row->outcome);
        for (size_t i = 0; i < 3; i++)
                assert_false(w->access[i]);
        if (!succeeded) {
                check_failure(w, status, p);
                return;
        }
        assert_non_null(job);
        if (!p && job->complete && !w->pods[w->n_pods - 1].recorded)
                return; /* it came and went between two looks and left nothing */
        assert_non_null(p);
        assert_int_equal(p->work, WORK_ENDED);
        assert_false(p->code || p->interrupted);
        of = json_str(json_at(status, "result"), "of");
        if (p->recorded) /* what was recorded is never lost, unless to a pod that the Job made after it */
                assert_true(streq(of, p->name) || (p->gone && came_later(w, of, p)));
        else
                assert_true(!of || p->result_sent || !streq(of, p->name));
}

/* Attempts follow each other, none is lost, and what they cost is counted. */
static void check_attempt(struct world *w, const struct json *was, const struct json *is,
                          const struct json *request)
{
        int64_t before = json_int(was, "attempt", 0), now = json_int(is, "attempt", 0);
        unsigned image = 0;

        assert_true(json_int(is, "retries", 0) >= json_int(was, "retries", 0));
        assert_true(json_int(is, "retries", 0) <= (int64_t)w->retries);
        assert_true(now >= before);
        if (now == before) {
                assert_true(streq(json_str(was, "job"), json_str(is, "job")));
                assert_true(streq(json_str(was, "specHash"), json_str(is, "specHash")));
                return;
        }
        assert_true(before || now == 1);
        assert_false(before && success_in(w, list_json(w, MAPS)));
        assert_null(job_named(w, json_str(is, "job")));
        assert_int_equal(sscanf(json_str(json_at(request, "spec"), "image"), "i%u", &image), 1);
        w->image_begun = image;
}

static void write_status(struct world *w, const struct decision *d, const struct json *request)
{
        const struct json *status = d->status, *before = json_at(request, "status");
        const char *phase = json_str(status, "phase");
        const struct json *was = json_at(before, "progress"), *is = json_at(status, "progress");

        if (!status || json_equal(status, before))
                return;
        if (w->final) { /* nothing follows the end but what is said about the spec */
                assert_string_equal(json_str(before, "phase"), phase);
                assert_true(json_equal(json_at(before, "run"), json_at(status, "run")));
                assert_true(json_equal(was, is));
        }
        if (json_at(was, "startedAt"))
                assert_string_equal(json_str(was, "startedAt"), json_str(is, "startedAt"));
        assert_true(json_int(was, "attempt", 0) <= json_int(is, "attempt", 0));
        check_attempt(w, json_at(before, "run"), json_at(status, "run"), request);
        w->status = json_print(&w->arena, status);
        w->awaits[REQUESTS] = true;
        tell(w, "status", w->status);
        if (!w->final && (streq(phase, "Succeeded") || streq(phase, "Failed"))) {
                check_end(w, status, d);
                w->final = w->status;
        }
}

/* The decision is carried out as far as it comes. */
static void carry_out(struct world *w, struct call *c, const struct decision *d, unsigned writes)
{
        for (size_t i = 0; i < d->absent.n; i++)
                if (writes-- == 0)
                        return;
                else
                        remove_object(w, &d->absent.v[i]);
        for (size_t i = 0; i < d->exist.n; i++) {
                const struct must_exist *e = &d->exist.v[i];

                if (view_child(&c->view, e->type, meta_str(e->json, "name")))
                        continue;
                if (writes-- == 0)
                        return;
                create(w, e);
        }
        if (writes == 0)
                return;
        write_status(w, d, c->view.request);
        w->again_at = d->again_at;
}

static void crash(struct world *w)
{
        tell(w, "the operator dies", "");
        memset(w->seen, 0, sizeof(w->seen));
        memset(w->awaits, 0, sizeof(w->awaits));
        w->again_at = 0;
}

static void operate(struct world *w, bool may_crash)
{
        _cleanup_(decision_done) struct decision d = {0};
        static const struct testrun_settings settings = {.pod_image = "pod"};
        struct call c = {.w = w, .controller = testrun_controller(&settings)};
        bool dies = may_crash && chance(w, 5);

        for (size_t i = 0; i < SOURCES; i++)
                if (!w->seen[i] || w->awaits[i])
                        return;
        w->decisions++;
        gather(&c);
        decide_twice(&c, &d);
        carry_out(w, &c, &d, dies ? (unsigned)rng_below(&w->rng, 8) : UINT32_MAX);
        if (dies)
                crash(w);
        vec_done(&c.answers);
        arena_done(&c.arena);
}

static void deliver(struct world *w, enum source source)
{
        w->seen[source] = list_json(w, source);
        w->awaits[source] = false;
}

/* ---- the others */

static struct pod *active_pod(struct world *w)
{
        struct pod *active[PODS];
        size_t n = 0;

        for (size_t i = 0; i < w->n_pods; i++)
                if (!w->pods[i].gone && !w->pods[i].over)
                        active[n++] = &w->pods[i];
        return n ? active[rng_below(&w->rng, n)] : NULL;
}

static void make_pod(struct world *w, size_t job)
{
        struct pod *p = &w->pods[w->n_pods];

        *p = (struct pod){.created = w->now, .job = job};
        snprintf(p->name, sizeof(p->name), "r-run-%zu", w->n_pods);
        snprintf(p->uid, sizeof(p->uid), "uid-%zu", w->n_pods);
        w->n_pods++;
        tell(w, "pod", p->name);
}

static void control_job(struct world *w, size_t at)
{
        struct job *job = &w->jobs[at];
        struct pod *last = NULL;
        unsigned failed = 0, active = 0;

        if (!job->there || job->complete || job->failed || job->deleting)
                return;
        job->ended = w->now; /* unless it goes on */
        for (size_t i = 0; i < w->n_pods; i++) {
                struct pod *p = &w->pods[i];
                bool ended = p->over && (!p->gone || (p->asked && w->counts_deleted));

                if (p->job != at)
                        continue;
                last = p;
                active += !p->gone && !p->over && (w->counts_deleted || !p->asked);
                failed += ended && (p->code || p->relay_code || p->evicted || p->interrupted);
        }
        if (last && !last->gone && last->over && !last->code && !last->relay_code && !last->evicted)
                job->complete = true;
        else if (failed > w->backoff_limit || w->n_pods == PODS)
                job->failed = !active;
        else if (!active)
                make_pod(w, at);
}

/* Foreground: the Job goes when its pods have. */
static void collect_garbage(struct world *w)
{
        for (size_t j = 0; j < w->n_jobs; j++) {
                bool any = false;

                if (!w->jobs[j].there || !w->jobs[j].deleting)
                        continue;
                for (size_t i = 0; i < w->n_pods; i++) {
                        struct pod *p = &w->pods[i];

                        if (p->job != j || p->gone)
                                continue;
                        p->asked = p->asked ? p->asked : w->now;
                        p->gone = p->over;
                        any = any || !p->gone;
                }
                w->jobs[j].there = any;
        }
}

static void job_controller(struct world *w)
{
        for (size_t i = 0; i < w->n_jobs; i++)
                control_job(w, i);
        collect_garbage(w);
}

static void kubelet(struct world *w)
{
        struct pod *p = active_pod(w);

        if (!p)
                return;
        if (p->asked && p->work != WORK_ENDED) {
                p->work = WORK_ENDED;
                p->interrupted = true;
                p->code = chance(w, 50) ? 0 : 143; /* some end politely */
                p->started = p->started ? p->started : w->now;
                p->finished = w->now + SEC;
                if (!p->relay_up)
                        p->over = p->gone = true; /* it never started */
        } else if (p->work == WORK_PENDING) {
                p->work = WORK_RUNNING;
                p->relay_up = true;
                p->started = w->now;
        } else if (p->work == WORK_RUNNING && chance(w, 15)) {
                p->work = WORK_ENDED;
                p->code = chance(w, 60) ? 0 : 3;
                p->finished = w->now;
                tell(w, p->name, p->code ? "fails" : "succeeds");
        } else if (p->work == WORK_ENDED && (p->relay_ended || !p->relay_up)) {
                p->over = true;
                if (p->asked)
                        p->gone = true;
        }
}

/* As relay.h and fence.h have it. */
static void relay(struct world *w)
{
        struct pod *p = active_pod(w);
        struct run_fence next;

        if (!p || !p->relay_up || p->relay_ended || !w->map[0])
                return;
        if (!w->access[0]) { /* 403 for long enough */
                p->relay_ended = true;
                p->relay_code = 1;
                return;
        }
        if (!streq(w->fence.pod, p->uid) && w->fence.state == RUN_SUCCEEDED &&
            w->jobs[p->job].attempt <= w->fence.attempt) {
                p->relay_ended = true; /* another pod has done the work */
                return;
        }
        if (!p->attempt)
                p->attempt = MAX(w->jobs[p->job].attempt,
                                 w->fence.pod[0] && !streq(w->fence.pod, p->uid) ? w->fence.attempt + 1 : 0);
        next = (struct run_fence){.attempt = p->attempt, .sequence = p->sequence + 1, .state = RUN_RUNNING};
        snprintf(next.pod, sizeof(next.pod), "%s", p->uid);
        if (p->work == WORK_ENDED && !p->result_sent &&
            p->sequence) { /* not before it has claimed its turn */
                p->result_sent = true;
                if (p->attempt >= w->result_attempt) { /* else a newer one has taken over the data */
                        w->result = arena_printf(&w->arena, "{\"of\": \"%s\"}", p->name);
                        w->result_attempt = p->attempt;
                }
                return;
        }
        if (p->work == WORK_ENDED && p->result_sent)
                next.state = p->code || p->interrupted ? RUN_FAILED : RUN_SUCCEEDED;
        if (!run_fence_follows(&w->fence, &next)) {
                p->relay_ended = true;
                return;
        }
        w->fence = next;
        p->sequence++;
        w->state_json = arena_printf(&w->arena, "{\"phase\": \"Work\", \"message\": \"%s %u\"}", p->name,
                                     (unsigned)p->sequence);
        w->exit_json = NULL;
        if (run_state_terminal(next.state)) {
                w->exit_json = arena_printf(&w->arena, "{\"code\": %d, \"finishedAt\": \"%s\", \"told\": %s}",
                                            p->code, text_of(w, p->finished),
                                            p->interrupted ? "true" : "false");
                p->recorded = true;
                p->relay_ended = true;
                tell(w, p->name, "is recorded");
        }
}

/* The last one, which the Job has counted, while one before it stays. */
static bool sweep_last_pod(struct world *w)
{
        struct pod *last = w->n_pods ? &w->pods[w->n_pods - 1] : NULL;
        bool older = false;

        for (size_t i = 0; i + 1 < w->n_pods; i++)
                older = older || (!w->pods[i].gone && w->pods[i].job == last->job);
        if (!older || !last->over || last->gone ||
            (!w->jobs[last->job].complete && !w->jobs[last->job].failed))
                return false;
        last->gone = true;
        tell(w, last->name, "is swept away");
        return true;
}

/* Its containers are killed with it: nobody records anything. */
static void evict(struct world *w, struct pod *p)
{
        if (p->work != WORK_ENDED) {
                p->interrupted = true;
                p->code = 137;
                p->started = p->started ? p->started : w->now;
                p->finished = w->now;
                p->work = WORK_ENDED;
        }
        if (!p->relay_ended) {
                p->relay_ended = true;
                p->relay_code = 137;
        }
        p->over = p->evicted = true;
        p->gone = p->asked;
        tell(w, p->name, "is evicted");
}

static void delete_some_job(struct world *w)
{
        struct job *job = w->n_jobs ? &w->jobs[w->n_jobs - 1] : NULL;

        if (!job || !job->there ||
            !strstr(w->status, arena_printf(&w->arena, "\"job\":\"%s\",\"pod", job->name)))
                return;
        job->there = false;
        w->job_deleted_by_somebody = true;
        kill_pods(w, job);
        tell(w, "the Job is deleted", job->name);
}

static void misfortune(struct world *w)
{
        struct pod *p = active_pod(w);

        if (chance(w, 50) && sweep_last_pod(w))
                return;
        if (p && p->relay_up && !p->relay_ended && chance(w, 30)) {
                p->relay_ended = true;
                p->relay_code = 137;
                tell(w, p->name, "loses its relay");
        } else if (p && !p->asked && chance(w, 30)) {
                p->asked = w->now;
                tell(w, p->name, "is deleted");
        } else if (p && chance(w, 30)) {
                evict(w, p);
        } else if (chance(w, 3)) {
                delete_some_job(w);
        }
}

/* What people do to the request while it is under way, and after. */
static void people(struct world *w)
{
        switch (rng_below(&w->rng, 10)) {
        case 0:
                w->cancel = w->cancel || chance(w, 4);
                break;
        case 1:
        case 2:
        case 3:
                w->suspend = !w->suspend;
                break;
        case 4:
        case 5:
        case 6:
                w->image = (unsigned)rng_below(&w->rng, 3);
                break;
        default:
                return;
        }
        w->generation++;
        tell(w, "people change", w->suspend ? "it (suspended)" : "it");
}

/* ---- a world */

static void one_step(struct world *w, bool calm)
{
        w->step++;
        w->now += rng_below(&w->rng, 3 * SEC);
        switch (rng_below(&w->rng, calm ? 9 : 12)) {
        case 0:
                job_controller(w);
                break;
        case 1:
                kubelet(w);
                break;
        case 2:
        case 3:
                relay(w);
                break;
        case 4:
        case 5:
        case 6:
                deliver(w, (enum source)rng_below(&w->rng, SOURCES));
                break;
        case 9:
                misfortune(w);
                break;
        case 10:
                if (chance(w, 10))
                        crash(w);
                break;
        case 11:
                if (chance(w, 30))
                        people(w);
                break;
        default:
                operate(w, !calm);
                break;
        }
}

static void check_rest(struct world *w)
{
        struct json *status = json_parse(&w->arena, str_of(w->status), NULL, NULL);
        const struct json *accepted = NULL;
        bool same = json_int(status, "observedGeneration", 0) == w->generation;

        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "SpecAccepted"))
                        accepted = c;
        assert_true(same || streq(json_str(accepted, "status"), "False"));
        assert_true(!w->n_jobs || same == (w->image == w->image_begun));
        for (size_t i = 0; i < w->n_jobs; i++)
                assert_true(!w->jobs[i].there || w->jobs[i].deleting || w->jobs[i].complete ||
                            w->jobs[i].failed || &w->jobs[i] == &w->jobs[w->n_jobs - 1]);
}

static void calm_down(struct world *w)
{
        if (w->suspend)
                w->generation++;
        w->suspend = false;
        for (unsigned i = 0; i < CALM && !w->final; i++)
                one_step(w, true);
}

static void world_run(struct world *w, uint64_t seed, bool loud)
{
        *w = (struct world){.now = NOON, .loud = loud, .generation = 1};
        rng_seed(&w->rng, seed);
        w->backoff_limit = chance(w, 60) ? 0 : (unsigned)rng_below(&w->rng, 3);
        w->counts_deleted = chance(w, 50);
        w->retries = (unsigned)rng_below(&w->rng, 5);
        w->timeout = chance(w, 30) ? 10 + (unsigned)rng_below(&w->rng, 100) : 0;
        w->suspend = chance(w, 10);
        for (unsigned i = 0; i < STEPS; i++)
                one_step(w, false);
        calm_down(w);
        if (!w->final && w->again_at) { /* a relay that never came to its end */
                w->now = w->again_at;
                calm_down(w);
        }
        if (!w->final)
                fail_msg("it never ends: %s", w->status);
        for (unsigned i = 0; i < 50; i++) /* and stays as it is */
                one_step(w, true);
        for (unsigned i = 0; i < 3; i++) {
                for (enum source s = 0; s < SOURCES; s++)
                        deliver(w, s);
                operate(w, false);
        }
        check_rest(w);
}

static void whatever_happens(void **state)
{
        const char *one = getenv("SONDE_MODEL_SEED");
        unsigned worlds = unit_extent(QUICK_WORLDS, WORLDS, SOAK_WORLDS);
        size_t decisions = 0, attempts = 0;
        unsigned succeeded = 0;

        for (uint64_t seed = 1; seed <= worlds; seed++) {
                struct world w;
                uint64_t number = seed;

                if (one && !str_to_u64(str_of(one), &number))
                        fail_msg("SONDE_MODEL_SEED is no number");
                *(uint64_t *)*state = number;
                world_run(&w, number, one);
                decisions += w.decisions;
                attempts += w.n_jobs;
                succeeded += strstr(w.final, "\"phase\":\"Succeeded\"") != NULL;
                arena_done(&w.arena);
                if (one)
                        break;
        }
        printf("# %zu decisions on %zu attempts in %u worlds, %u of them succeeded\n", decisions, attempts,
               worlds, succeeded);
}

static int setup(void **state)
{
        *state = xcalloc(1, sizeof(uint64_t));
        return 0;
}

/* After a failure that is the world to look at. */
static int teardown(void **state)
{
        printf("# the last world's seed: %llu\n", (unsigned long long)*(uint64_t *)*state);
        free(*state);
        return 0;
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(whatever_happens, setup, teardown),
};

UNIT_MAIN(tests)
