/*
 * Experiments to which anything happens, in any order, by chance: people edit, suspend, cancel and delete; pods come, run, fail
 * and are evicted; the operator dies between two writes. Whatever happens, profiling and execution are never active together,
 * an execution that has succeeded is not made again, and when all is left alone it comes to an end.
 */
#include "unit/cuda_world.h"

enum { STEPS = 60 };

struct walk {
        struct world *w;
        struct rng rng;
        unsigned step;
        bool executed; /* an execution Job has succeeded */
};

static bool chance(struct walk *k, unsigned of)
{
        return rng_below(&k->rng, of) == 0;
}

/* ---- what is there */

static struct json *labels_of(const struct object *o)
{
        return json_at(json_at(o->json, "metadata"), "labels");
}

static bool is_profiling(const struct object *job)
{
        return json_str(labels_of(job), RUN_LABEL_ATTEMPT);
}

static unsigned attempt_of(const struct object *job)
{
        uint64_t n = 1;

        assert_true(str_to_u64(str_of(json_str_or(labels_of(job), RUN_LABEL_ATTEMPT, "1")), &n));
        return (unsigned)n;
}

static bool is_going(const struct object *job)
{
        return !meta_str(job->json, "deletionTimestamp");
}

static struct object *pod_of(struct walk *k, const struct object *job)
{
        vec_foreach (o, &k->w->rig.children)
                if (o->type == &KUBE_POD && streq(meta_controller_uid(o->json), job->uid))
                        return o;
        return NULL;
}

static bool pod_is_over(const struct object *pod)
{
        const char *phase = json_str_or(json_at(pod->json, "status"), "phase", "");

        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

static bool pod_runs(const struct object *pod)
{
        return pod && streq(json_str(json_at(pod->json, "status"), "phase"), "Running");
}

/* Something of it runs, or may begin to. */
static bool is_active_job(struct walk *k, const struct object *job)
{
        const struct object *pod = pod_of(k, job);

        return (pod && !pod_is_over(pod)) || (!run_job_finished(job->json) && is_going(job));
}

/* One of the Jobs, by chance; NULL: there is none. A copy: children move. */
static const struct object *any_job(struct walk *k)
{
        struct object jobs[8];
        size_t n = 0;

        vec_foreach (o, &k->w->rig.children)
                if (o->type == &KUBE_JOB && n < ARRAY_LEN(jobs))
                        jobs[n++] = *o;
        return n ? arena_memdup(&k->w->rig.arena, &jobs[rng_below(&k->rng, n)], sizeof(*jobs)) : NULL;
}

/* ---- what must be true */

static void check(struct walk *k)
{
        bool profiling = false, execution = false;

        vec_foreach (o, &k->w->rig.children) {
                if (o->type != &KUBE_JOB || !is_active_job(k, o))
                        continue;
                profiling = profiling || is_profiling(o);
                execution = execution || !is_profiling(o);
                if (k->executed && !is_profiling(o))
                        fail_msg("step %u: executed twice", k->step);
        }
        if (profiling && execution)
                fail_msg("step %u: both are active", k->step);
}

/* ---- the operator, which may die after any write */

static void remove_slowly(struct walk *k, const struct must_not_exist *gone)
{
        struct json *is = (struct json *)gone->object->json;

        if (streq(gone->propagation, "Foreground") && pod_of(k, gone->object))
                json_set(&k->w->rig.arena, json_at(is, "metadata"), "deletionTimestamp",
                         json_string(&k->w->rig.arena, "2026-11-15T12:00:00Z"));
        else
                remove_object(k->w, gone->object->uid);
}

static void decide(struct walk *k)
{
        struct rig *r = &k->w->rig;

        server_forgets(r);
        for (unsigned rounds = 0;; rounds++) {
                decision_done(&r->d);
                cuda_plan(&r->view, &r->d);
                cuda_settle(&r->view, &r->d);
                if (!r->d.n_wants)
                        return;
                assert_true(rounds < 9);
                answer_all(k->w);
        }
}

/* True: something was written. */
static bool operate(struct walk *k, bool may_die)
{
        struct rig *r = &k->w->rig;
        size_t left = may_die && chance(k, 4) ? rng_below(&k->rng, 6) : SIZE_MAX;

        decide(k);
        k->w->changed = false;
        vec_foreach (gone, &r->d.absent) {
                if (!left--)
                        return true;
                k->w->changed = k->w->changed || is_going(gone->object);
                remove_slowly(k, gone);
        }
        vec_foreach (e, &r->d.exist) {
                if (!left--)
                        return true;
                carry_out_one(k->w, e);
                check(k);
        }
        if (r->d.status && left)
                keep(k->w, (struct json *)r->view.request, "status", r->d.status);
        return k->w->changed;
}

/* ---- kubelets */

static void make_pod(struct walk *k, const struct object *job)
{
        if (is_going(job) && !run_job_finished(job->json) && !pod_of(k, job))
                pod_says(k->w, job->name, "{'phase': 'Pending'}");
}

static void start(struct walk *k, const struct object *job)
{
        const struct object *pod = pod_of(k, job);

        if (!pod || pod_is_over(pod) || pod_runs(pod) || !is_going(job))
                return;
        if (is_profiling(job) && there(k->w, &KUBE_CONFIGMAP, "r-profile-status"))
                profiler_runs(k->w, job->name, attempt_of(job));
        else
                pod_says(k->w, job->name, is_profiling(job) ? RUNS("profiling-runner") : RUNS("execution"));
}

static void end_well(struct walk *k, const struct object *job)
{
        if (!pod_runs(pod_of(k, job)))
                return;
        if (!is_profiling(job)) {
                pod_says(k->w, job->name, ENDS("execution", "Succeeded", "0"));
                job_says(k->w, job->name, "{'succeeded': 1, " JOB_COMPLETE "}");
                k->executed = k->executed || is_going(job); /* one that goes with its Job may be lost */
        } else if (there(k->w, &KUBE_CONFIGMAP, "r-profile-status") &&
                   there(k->w, &KUBE_CONFIGMAP, "r-profile-summary")) {
                profiler_succeeds(k->w, job->name, attempt_of(job), chance(k, 8) ? NULL : SUMMARY);
                if (chance(k, 2)) { /* that is recorded, and the pod is not gone yet */
                        pod_says(k->w, job->name, RUNS("profiling-runner"));
                        job_says(k->w, job->name, "{'active': 1}");
                }
        } else {
                pod_says(k->w, job->name, ENDS("profiling-runner", "Succeeded", "0"));
                job_says(k->w, job->name, "{" JOB_COMPLETE "}");
        }
}

static void end_badly(struct walk *k, const struct object *job)
{
        if (!pod_runs(pod_of(k, job)))
                return;
        if (!is_profiling(job)) {
                pod_says(k->w, job->name, ENDS("execution", "Failed", "3"));
                job_says(k->w, job->name, "{'failed': 1, " JOB_FAILED("BackoffLimitExceeded") "}");
        } else if (there(k->w, &KUBE_CONFIGMAP, "r-profile-status")) {
                profiler_fails(k->w, job->name, attempt_of(job),
                               "{'phase': 'Failed', 'message': 'm', 'error': 'e', 'reason': 'NoGPU'}");
        }
}

static void evict(struct walk *k, const struct object *job)
{
        const struct object *pod = pod_of(k, job);

        if (!pod || pod_is_over(pod))
                return;
        pod_says(k->w, job->name, "{'phase': 'Failed', 'reason': 'Evicted', 'message': 'low on memory'}");
        job_says(k->w, job->name, "{'failed': 1, " JOB_FAILED("BackoffLimitExceeded") "}");
}

/* What is being deleted goes, its pods first. */
static void collect(struct walk *k)
{
        const struct object *job = any_job(k);

        if (job && !is_going(job))
                remove_object(k->w, job->uid);
}

/* ---- people */

static void toggle(struct rig *r, const char *member)
{
        edit(r, member, json_bool(spec_json(r), member, false) ? "false" : "true");
}

static void do_something_to_the_spec(struct walk *k)
{
        static const char *const images[] = {"'i'", "'j'"}, *const numbers[] = {"1", "2"};
        struct rig *r = &k->w->rig;

        switch (rng_below(&k->rng, 7)) {
        case 0:
                edit(r, "image", images[rng_below(&k->rng, 2)]);
                break;
        case 1:
                edit(r, "replicas", numbers[rng_below(&k->rng, 2)]);
                break;
        case 2:
        case 3:
                toggle(r, "suspend");
                break;
        case 4:
                toggle(r, "profilingEnabled");
                break;
        case 5:
                toggle(r, "distributed"); /* which is refused */
                break;
        default:
                if (chance(k, 6))
                        edit(r, "cancel", "true");
        }
}

static void do_something_to_objects(struct walk *k)
{
        const struct object *job = any_job(k);
        struct json *profile = parse(&k->w->rig, "{'metadata': {'name': 'r-profile', 'uid': 'uid-u'}}");

        switch (rng_below(&k->rng, 4)) {
        case 0:
                if (job && chance(k, 2))
                        remove_object(k->w, job->uid);
                break;
        case 1:
                if (there(k->w, &WORKLOADPROFILE, "r-profile"))
                        remove_object(k->w, uid_of(k->w, &WORKLOADPROFILE, "r-profile"));
                break;
        case 2:
                if (!there(k->w, &WORKLOADPROFILE, "r-profile") && chance(k, 3))
                        *vec_push(&k->w->others) = (struct object){&WORKLOADPROFILE, profile, "r-profile",
                                                                   "uid-u"};
                break;
        default:
                k->w->others.n = 0;
        }
}

static void let_something_happen(struct walk *k)
{
        const struct object *job = any_job(k);
        unsigned what = (unsigned)rng_below(&k->rng, 12);

        if (what < 2)
                do_something_to_the_spec(k);
        else if (what == 2)
                do_something_to_objects(k);
        else if (what == 3)
                k->w->rig.view.now += 20 * 60 * USEC_PER_SEC;
        else if (what == 4)
                collect(k);
        else if (job && what < 7)
                make_pod(k, job);
        else if (job && what < 9)
                start(k, job);
        else if (job && what == 9)
                end_well(k, job);
        else if (job && what == 10)
                end_badly(k, job);
        else if (job && chance(k, 3))
                evict(k, job);
}

/* ---- walks */

/* All kubelets do all they can. True: something changed. */
static bool work(struct walk *k)
{
        bool any = false;

        for (size_t i = 0; i < k->w->rig.children.n; i++) {
                const struct object job = k->w->rig.children.v[i];

                if (job.type != &KUBE_JOB)
                        continue;
                make_pod(k, &job);
                start(k, &job);
                any = any || pod_runs(pod_of(k, &job)) || !is_going(&job);
                end_well(k, &job);
                if (!is_going(&job))
                        remove_object(k->w, job.uid);
        }
        return any;
}

/* Nobody does anything any more, and what is made ends well. */
static void leave_alone(struct walk *k)
{
        struct rig *r = &k->w->rig;
        unsigned quiet = 0;

        edit(r, "suspend", "false");
        edit(r, "distributed", "false");
        for (unsigned i = 0; quiet < 8; i++) {
                if (i > 400)
                        fail_msg("it does not come to an end: %s", json_print(&r->arena, status_now(r)));
                quiet = operate(k, false) || work(k) ? 0 : quiet + 1;
                check(k);
                r->view.now += 60 * USEC_PER_SEC;
        }
}

static void walk(struct world *w, uint64_t seed)
{
        struct walk k = {.w = w};
        struct rig *r = &w->rig;
        const char *phase;

        rng_seed(&k.rng, seed);
        experiment(r,
                   "'image': 'i', 'command': ['/a'], 'placement': {'mode': 'none'}, 'profilingEnabled': true",
                   NULL);
        for (k.step = 0; k.step < STEPS; k.step++) {
                let_something_happen(&k);
                while (chance(&k, 2))
                        operate(&k, true);
                check(&k);
                if (json_at(r->view.request, "status"))
                        assert_fits(w->schema, status_now(r));
        }
        leave_alone(&k);
        phase = json_str(status_now(r), "phase");
        if (!streq(phase, "Succeeded") && !streq(phase, "Failed"))
                fail_msg("it ends as %s", json_print(&r->arena, status_now(r)));
}

static void whatever_happens_it_stays_right(void **state)
{
        unsigned n = unit_extent(30, 150, 5000);

        (void)state;
        for (unsigned i = 0; i < n; i++) {
                void *w;

                world_setup(&w);
                if (getenv("CUDA_WALK"))
                        printf("# seed %u\n", i);
                walk(w, i);
                world_teardown(&w);
        }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_happens_it_stays_right)};

UNIT_MAIN(tests)
