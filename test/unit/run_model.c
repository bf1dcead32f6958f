/*
 * A run's controller in a world of chance: the Job's controller, the kubelet, the relay, people and the operator's own death
 * act in any order, and each watch shows what it shows when it likes. What must stay true is checked at every decision.
 *
 * SONDE_MODEL_SEED=N runs one world and tells its story.
 */
#include "unit/unit.h"

#include "kinds/testrun.h"

enum { QUICK_WORLDS = 100, WORLDS = 400, SOAK_WORLDS = 100 * WORLDS, STEPS = 150, PODS = 12, CALM = 5000 };
#define SEC  USEC_PER_SEC
#define NOON ((usec_t)1794744000 * SEC)

/* What watches show, each in its own time. */
enum source { REQUESTS, JOBS, PODS_OF_IT, MAPS, SOURCES };

enum stage { WORK_PENDING, WORK_RUNNING, WORK_ENDED };

struct pod {
        char name[16], uid[16];
        usec_t created, asked, started, finished;
        bool gone, interrupted;
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
        bool access[3];
        bool job, job_complete, job_failed;
        unsigned jobs_made, backoff_limit, failed;
        bool job_deleted_by_somebody;
        usec_t job_ended;
        struct pod pods[PODS];
        size_t n_pods;

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
                "'ns', 'name': 'r', 'uid': 'uid-r', 'generation': 1}, 'spec': {'image': 'i', 'command': "
                "['x'], 'backoffLimit': %u}, 'status': %p}",
                w->backoff_limit, (void *)(w->status ? json_parse(a, str_of(w->status), NULL, NULL) : NULL));
}

static struct json *job_json(struct world *w, struct arena *a)
{
        const char *type = w->job_complete ? "Complete" : w->job_failed ? "Failed" : NULL;
        struct json *end = type ? json_build(a,
                                             "[{'type': %s, 'status': 'True', 'message': 'm', "
                                             "'lastTransitionTime': %s}]",
                                             type, text_of(w, w->job_ended))
                                : NULL;

        return json_build(a,
                          "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNER(
                                  "uid-r") "}, 'spec': {'backoffLimit': %u}, 'status': {'conditions': %p}}",
                          (void *)yes(a), w->backoff_limit, (void *)end);
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
        bool well = p->code == 0 && p->relay_code == 0;
        const char *phase = p->over                   ? (well ? "Succeeded" : "Failed")
                            : p->work == WORK_PENDING ? "Pending"
                                                      : "Running";
        struct json *j = json_build(
                a,
                "{'metadata': {'name': %s, 'uid': %s, 'creationTimestamp': %s, " OWNER(
                        "uid-job") "}, 'spec': "
                                   "{'nodeName': 'n', 'containers': [{'name': 'workload'}, {'name': "
                                   "'relay'}]}, 'status': {'phase': "
                                   "%s, 'containerStatuses': [%p, %p]}}",
                p->name, p->uid, text_of(w, p->created), (void *)yes(a), phase,
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
        if (source == JOBS && w->job)
                json_append(list, job_json(w, a));
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
        struct object children[PODS + 4];
        VEC(struct answer) answers;
        struct controller controller;
};

static void add_children(struct call *c, enum source source, const struct kube_type *type)
{
        struct json *list = json_parse(&c->arena, str_of(c->w->seen[source]), NULL, NULL);

        json_foreach (j, list) {
                if (source == MAPS)
                        run_project_map(j, &c->arena); /* as the cache does */
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
        if (c->view.n_children) /* pods are found through their Job */
                add_children(c, PODS_OF_IT, &KUBE_POD);
        add_children(c, MAPS, &KUBE_CONFIGMAP);
}

static const struct json *look_up(struct call *c, const struct want *want)
{
        static const struct kube_type *const access[] = {&KUBE_SERVICEACCOUNT, &KUBE_ROLE, &KUBE_ROLEBINDING};
        struct world *w = c->w;

        if (want->kind == WANT_PODS)
                return json_build(
                        &c->arena, "{'items': %p}",
                        (void *)json_parse(&c->arena, str_of(list_json(w, PODS_OF_IT)), NULL, NULL));
        if (want->type == &KUBE_JOB)
                return w->job ? job_json(w, &c->arena) : NULL;
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

static void create(struct world *w, const struct must_exist *e)
{
        const char *name = meta_str(e->json, "name");

        if (e->type == &KUBE_CONFIGMAP) {
                bool *there = &w->map[streq(name, "r-run-results")];

                if (!*there && there == &w->map[0])
                        w->fence = (struct run_fence){.attempt = 1};
                *there = true;
                w->awaits[MAPS] = true;
        } else if (e->type == &KUBE_JOB) {
                for (size_t i = 0; i < 3; i++)
                        assert_true(w->access[i]); /* before the pod can start */
                assert_true(w->map[0] && w->map[1]);
                assert_non_null(w->status); /* has its name */
                if (!w->job) {
                        w->jobs_made++;
                        tell(w, "the Job is made", "");
                }
                assert_int_equal(w->jobs_made, 1);
                w->job = true;
                w->awaits[JOBS] = true;
        } else {
                w->access[e->type == &KUBE_SERVICEACCOUNT ? 0 : e->type == &KUBE_ROLE ? 1 : 2] = true;
        }
}

static void kill_pods(struct world *w)
{
        for (size_t i = 0; i < w->n_pods; i++)
                w->pods[i].gone = true;
}

static void remove_object(struct world *w, const struct object *o)
{
        if (o->type == &KUBE_JOB) {
                tell(w, "the Job is halted", "");
                assert_non_null(w->final); /* only after the end */
                w->job = false;
                kill_pods(w);
                w->awaits[JOBS] = true;
        } else if (o->type == &KUBE_CONFIGMAP) {
                fail_msg("nobody asked for that");
        } else {
                w->access[o->type == &KUBE_SERVICEACCOUNT ? 0 : o->type == &KUBE_ROLE ? 1 : 2] = false;
        }
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

/* What the status says at the end is what happened. */
static void check_end(struct world *w, const struct json *status, const struct decision *d)
{
        const struct pod *p = pod_of(w, json_str(json_at(status, "progress"), "podUID"));
        bool succeeded = streq(json_str(status, "phase"), "Succeeded");
        const char *reason = json_str(status, "reason"), *of;

        assert_non_null(d->row);
        assert_string_equal(d->row->outcome, succeeded ? "Succeeded" : "Failed");
        for (size_t i = 0; i < 3; i++)
                assert_false(w->access[i]);
        if (!succeeded) {
                assert_true(!w->job_complete || w->job_deleted_by_somebody);
                assert_non_null(reason);
                assert_non_null(json_str(status, "message"));
                /* Whoever deletes a Job, or a pod without a record, takes away what it could say. */
                assert_true(w->job_deleted_by_somebody ||
                            (!streq(reason, "JobDeleted") && (!p || p->code != 0 || p->interrupted ||
                                                              p->asked || (p->gone && !p->recorded))));
                return;
        }
        if (!p && w->job_complete && !w->pods[w->n_pods - 1].recorded)
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

static void write_status(struct world *w, const struct decision *d, const struct json *request)
{
        const struct json *status = d->status, *before = json_at(request, "status");
        const char *phase = json_str(status, "phase");
        const struct json *was = json_at(before, "progress"), *is = json_at(status, "progress");

        if (!status || json_equal(status, before))
                return;
        assert_null(w->final); /* nothing follows the end */
        if (json_at(was, "startedAt"))
                assert_string_equal(json_str(was, "startedAt"), json_str(is, "startedAt"));
        assert_true(json_int(was, "attempt", 0) <= json_int(is, "attempt", 0));
        w->status = json_print(&w->arena, status);
        w->awaits[REQUESTS] = true;
        tell(w, "status", w->status);
        if (streq(phase, "Succeeded") || streq(phase, "Failed")) {
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
                        remove_object(w, d->absent.v[i].object);
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
        for (size_t i = w->n_pods; i--;)
                if (!w->pods[i].gone && !w->pods[i].over)
                        return &w->pods[i];
        return NULL;
}

static void job_controller(struct world *w)
{
        struct pod *last = w->n_pods ? &w->pods[w->n_pods - 1] : NULL, *p;

        if (!w->job || w->job_complete || w->job_failed)
                return;
        w->failed = 0;
        w->job_ended = w->now; /* unless it goes on */
        for (size_t i = 0; i < w->n_pods; i++)
                w->failed += w->pods[i].over && !w->pods[i].gone &&
                             (w->pods[i].code || w->pods[i].relay_code);
        if (last && !last->gone && last->over && !last->code && !last->relay_code) {
                w->job_complete = true;
        } else if (w->failed > w->backoff_limit || w->n_pods == PODS) {
                w->job_failed = !active_pod(w);
        } else if (!active_pod(w)) {
                p = &w->pods[w->n_pods];
                *p = (struct pod){.created = w->now};
                snprintf(p->name, sizeof(p->name), "r-run-%zu", w->n_pods);
                snprintf(p->uid, sizeof(p->uid), "uid-%zu", w->n_pods);
                w->n_pods++;
                tell(w, "pod", p->name);
        }
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
        } else if (p->work == WORK_PENDING) {
                p->work = WORK_RUNNING;
                p->relay_up = true;
                p->started = w->now;
        } else if (p->work == WORK_RUNNING && chance(w, 30)) {
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
        if (!p->attempt)
                p->attempt = w->fence.pod[0] && !streq(w->fence.pod, p->uid) ? w->fence.attempt + 1
                                                                             : w->fence.attempt;
        next = (struct run_fence){.attempt = p->attempt, .sequence = p->sequence + 1, .state = RUN_RUNNING};
        snprintf(next.pod, sizeof(next.pod), "%s", p->uid);
        if (p->work == WORK_ENDED && !p->result_sent &&
            p->sequence) { /* not before it has claimed its turn */
                p->result_sent = true;
                w->result = arena_printf(&w->arena, "{\"of\": \"%s\"}", p->name);
                return;
        }
        if (p->work == WORK_ENDED && p->result_sent)
                next.state = p->code ? RUN_FAILED : RUN_SUCCEEDED;
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
                older = older || !w->pods[i].gone;
        if (!older || !last->over || last->gone || (!w->job_complete && !w->job_failed))
                return false;
        last->gone = true;
        tell(w, last->name, "is swept away");
        return true;
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
        } else if (w->job && w->status && strstr(w->status, "\"job\":") && chance(w, 5)) {
                w->job = false;
                w->job_deleted_by_somebody = true;
                kill_pods(w);
                tell(w, "the Job is deleted", "");
        }
}

/* ---- a world */

static void one_step(struct world *w, bool calm)
{
        w->step++;
        w->now += rng_below(&w->rng, 3 * SEC);
        switch (rng_below(&w->rng, calm ? 9 : 11)) {
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
        default:
                operate(w, !calm);
                break;
        }
}

static void world_run(struct world *w, uint64_t seed, bool loud)
{
        *w = (struct world){.now = NOON, .loud = loud};
        rng_seed(&w->rng, seed);
        w->backoff_limit = (unsigned)rng_below(&w->rng, 3);
        for (unsigned i = 0; i < STEPS; i++)
                one_step(w, false);
        for (unsigned i = 0; i < CALM && !w->final; i++)
                one_step(w, true);
        if (!w->final && w->again_at) { /* a relay that never came to its end */
                w->now = w->again_at;
                for (unsigned i = 0; i < CALM && !w->final; i++)
                        one_step(w, true);
        }
        if (!w->final)
                fail_msg("it never ends: %s", w->status);
        for (unsigned i = 0; i < 50; i++) /* and stays as it is */
                one_step(w, true);
        for (enum source s = 0; s < SOURCES; s++)
                deliver(w, s);
        operate(w, false);
        assert_true(w->jobs_made == 1);
}

static void whatever_happens(void **state)
{
        const char *one = getenv("SONDE_MODEL_SEED");
        unsigned worlds = unit_extent(QUICK_WORLDS, WORLDS, SOAK_WORLDS);
        size_t decisions = 0;
        unsigned succeeded = 0;

        for (uint64_t seed = 1; seed <= worlds; seed++) {
                struct world w;
                uint64_t number = seed;

                if (one && !str_to_u64(str_of(one), &number))
                        fail_msg("SONDE_MODEL_SEED is no number");
                *(uint64_t *)*state = number;
                world_run(&w, number, one);
                decisions += w.decisions;
                succeeded += strstr(w.final, "\"phase\":\"Succeeded\"") != NULL;
                arena_done(&w.arena);
                if (one)
                        break;
        }
        printf("# %zu decisions in %u worlds, %u of them succeeded\n", decisions, worlds, succeeded);
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
