/*
 * A run's controller in a world of chance: the Job's controller, the kubelet, the relay, people and the operator's own death
 * act in any order, and each watch shows what it shows when it likes. People suspend, resume, cancel and edit, nodes evict, and
 * time runs out; in some worlds it is let in only when others have ended. What must stay true is checked at every write.
 *
 * SONDE_MODEL_SEED=N runs one world and tells its story.
 */
#include "unit/run_world.h"

enum {
        QUICK_WORLDS = 100,
        WORLDS = 400,
        SOAK_WORLDS = 100 * WORLDS,
        STEPS = 400,
        HELD = 30 + 300,
        CALM = 5000
};

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
        assert_int_equal(x->admission.stand, y->admission.stand);
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

        assert_non_null(reason);
        assert_non_null(json_str(status, "message"));
        assert_true(!streq(reason, "Cancelled") || w->cancel);
        assert_true(!streq(reason, "DeadlineExceeded") || w->timeout);
        /* What is recorded is never dropped. */
        assert_false(success_in(w, list_json(w, MAPS)) && !w->job_deleted_by_somebody);
        if (streq(reason, "Cancelled") || streq(reason, "DeadlineExceeded"))
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

/* By its status: then it holds a slot whatever the limits say. */
static bool is_under_way(const struct json *request)
{
        const struct json *status = json_at(request, "status"), *run = json_at(status, "run");

        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), "Suspended") && streq(json_str(c, "status"), "True"))
                        return false;
        return json_str(run, "job") && !json_str(run, "outcome");
}

/* Attempts follow each other, none is lost, and what they cost is counted. */
static void check_attempt(struct world *w, const struct json *was, const struct json *is,
                          const struct json *request)
{
        int64_t before = json_int(was, "attempt", 0), now = json_int(is, "attempt", 0);
        uint64_t image;

        assert_true(json_int(is, "retries", 0) >= json_int(was, "retries", 0));
        assert_true(json_int(is, "retries", 0) <= (int64_t)w->retries);
        assert_true(now >= before);
        if (now == before) {
                assert_true(streq(json_str(was, "job"), json_str(is, "job")));
                assert_true(streq(json_str(was, "specHash"), json_str(is, "specHash")));
                return;
        }
        assert_true(before || now == 1);
        assert_true(!w->limited || w->holds || is_under_way(request)); /* nobody begins before he is let in */
        assert_false(before && success_in(w, list_json(w, MAPS)));
        assert_null(job_named(w, json_str(is, "job")));
        assert_true(str_to_u64(str_of(json_str(json_at(request, "spec"), "image") + 1), &image));
        w->image_begun = (unsigned)image;
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
        assert_true(!json_at(status, "queue") || (w->limited && !w->holds && streq(phase, "Pending")));
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
        w->holds = false;
}

/* What the operator makes of it: see admission.h. */
static void admit(struct world *w, const struct decision *d, const struct json *request)
{
        assert_true(!is_under_way(request) || d->admission.stand == ADMISSION_HOLDS || d->status);
        if (d->admission.stand == ADMISSION_WAITS)
                w->holds = w->holds || chance(w, 30);
        else
                w->holds = d->admission.stand == ADMISSION_HOLDS;
}

static void operate(struct world *w, bool may_crash)
{
        _cleanup_(decision_done) struct decision d = {0};
        static const struct testrun_settings settings = {.pod_image = "pod"};
        struct call c = {.w = w, .controller = testrun_controller(&settings)};
        bool dies = may_crash && chance(w, 5);
        const struct admission place = {
                .admitted = w->holds, .position = chance(w, 80), .reason = "others run"};

        for (size_t i = 0; i < SOURCES; i++)
                if (!w->seen[i] || w->awaits[i])
                        return;
        w->decisions++;
        gather(&c);
        if (w->limited)
                c.view.admission = &place;
        decide_twice(&c, &d);
        carry_out(w, &c, &d, dies ? (unsigned)rng_below(&w->rng, 8) : UINT32_MAX);
        if (w->limited)
                admit(w, &d, c.view.request);
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
        w->limited = chance(w, 40);
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
        assert_false(w->holds);
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
