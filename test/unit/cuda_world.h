/*
 * cuda_world.h - an experiment with a server that does what is decided, and people, kubelets and a profiler that do what a
 * test says.
 *
 * The caches show at once what the server has. What is not the experiment's own (a user's WorkloadProfile) is found by
 * look-ups alone.
 */
#pragma once

#include "unit/cuda_rig.h"

#include "kinds/run_internal.h"

struct world {
        struct rig rig; /* first: it is the state of the tests */
        struct schema *schema;
        VEC(struct object) others;
        VEC(const char *) events; /* reasons, all that were recorded */
        unsigned made;            /* objects; for their uids */
        bool both_active;         /* a profiling and an execution Job were, at a time */
        bool changed;             /* by the decision at hand */
};

static inline int world_setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        w->rig.view.arena = &w->rig.arena;
        w->rig.view.now = NOON;
        w->schema = experiment_schema();
        *state = w;
        return 0;
}

static inline int world_teardown(void **state)
{
        struct world *w = *state;

        schema_free(w->schema);
        vec_done(&w->others);
        vec_done(&w->events);
        return teardown(state);
}

/* ---- objects */

static inline struct object *there(struct world *w, const struct kube_type *type, const char *name)
{
        vec_foreach (o, &w->rig.children)
                if (o->type == type && streq(o->name, name))
                        return o;
        return NULL;
}

static inline struct json *object_json(struct world *w, const struct kube_type *type, const char *name)
{
        struct object *o = there(w, type, name);

        return o ? (struct json *)o->json : NULL;
}

static inline const char *uid_of(struct world *w, const struct kube_type *type, const char *name)
{
        struct object *o = there(w, type, name);

        return o ? o->uid : NULL;
}

static inline void refresh(struct world *w)
{
        w->rig.view.children = w->rig.children.v;
        w->rig.view.n_children = w->rig.children.n;
}

static inline void add_object(struct world *w, const struct kube_type *type, struct json *json,
                              const char *owner)
{
        struct arena *a = &w->rig.arena;
        struct json *meta = json_at(json, "metadata");

        json_set(a, meta, "uid", json_string(a, arena_printf(a, "uid-%u", ++w->made)));
        json_set(a, meta, "creationTimestamp", json_string(a, "2026-11-15T12:00:00Z"));
        json_set(a, meta, "ownerReferences",
                 json_build(a, "[{'uid': %s, 'kind': 'CUDAExperiment', 'controller': %p}]", owner,
                            (void *)json_truth(a, true)));
        *vec_push(&w->rig.children) = (struct object){type, json, meta_str(json, "name"),
                                                      meta_str(json, "uid")};
        refresh(w);
}

static inline void remove_object(struct world *w, const char *uid)
{
        size_t n = 0;

        for (size_t i = 0; i < w->rig.children.n; i++) {
                const struct object *o = &w->rig.children.v[i];

                if (!streq(o->uid, uid) && !streq(meta_controller_uid(o->json), uid))
                        w->rig.children.v[n++] = *o;
        }
        w->rig.children.n = n;
        refresh(w);
}

/* ---- look-ups */

static inline const struct json *looked_up(struct world *w, const struct want *want)
{
        const struct json *own = object_json(w, want->type, want->name);

        vec_foreach (o, &w->others)
                if (!own && o->type == want->type && streq(o->name, want->name))
                        own = o->json;
        return own;
}

static inline const struct json *listed(struct world *w, const struct want *want)
{
        struct arena *a = &w->rig.arena;
        struct json *items = json_array(a);

        vec_foreach (o, &w->rig.children)
                if (want->kind == WANT_PODS && o->type == &KUBE_POD &&
                    streq(meta_controller_uid(o->json), want->uid))
                        json_append(items, json_copy(a, o->json));
        vec_foreach (o, &w->others)
                if (want->kind == WANT_LIST && o->type == want->type)
                        json_append(items, json_copy(a, o->json));
        return json_build(a, "{'items': %p}", (void *)items);
}

static inline void answer_all(struct world *w)
{
        struct rig *r = &w->rig;

        for (size_t i = 0; i < r->d.n_wants; i++) {
                const struct want *want = &r->d.wants[i];
                struct answer *a = vec_push(&r->answers);

                *a = (struct answer){.want = *want};
                if (want->kind == WANT_OBJECT)
                        a->json = looked_up(w, want);
                else if (want->kind != WANT_PRIORS)
                        a->json = listed(w, want);
        }
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

/* ---- carrying out */

static inline void keep(struct world *w, struct json *object, const char *member, const struct json *as)
{
        struct json *copy = as ? json_copy(&w->rig.arena, as) : NULL;

        if (!copy || json_equal(json_at(object, member), copy))
                return;
        json_set(&w->rig.arena, object, member, copy);
        w->changed = true;
}

static inline void carry_out_one(struct world *w, const struct must_exist *e)
{
        struct json *is = object_json(w, e->type, meta_str(e->json, "name"));

        if (!is) { /* its status follows when it is seen */
                add_object(w, e->type, json_copy(&w->rig.arena, e->json), "uid-r");
                w->changed = true;
                return;
        }
        if (e->how == EXIST_APPLY)
                keep(w, is, "spec", json_at(e->json, "spec"));
        keep(w, is, "status", e->status);
}

static inline bool is_active(struct world *w, const char *prefix)
{
        vec_foreach (o, &w->rig.children)
                if (o->type == &KUBE_JOB && str_has_prefix(str_of(o->name), str_of(prefix)) &&
                    !run_condition(o->json, "Complete") && !run_condition(o->json, "Failed"))
                        return true;
        return false;
}

static inline void carry_out(struct world *w)
{
        struct rig *r = &w->rig;

        vec_foreach (gone, &r->d.absent)
                remove_object(w, gone->object->uid);
        w->changed = r->d.absent.n;
        vec_foreach (e, &r->d.exist)
                carry_out_one(w, e);
        w->both_active = w->both_active || (is_active(w, "r-profiling") && is_active(w, "r-execution"));
        if (r->d.status)
                assert_fits(w->schema, r->d.status);
        keep(w, (struct json *)r->view.request, "status", r->d.status);
        vec_foreach (e, &r->d.events)
                *vec_push(&w->events) = e->reason;
}

/* One decision, with all look-ups, carried out. True: it changed something. */
static inline bool turn(struct world *w)
{
        struct rig *r = &w->rig;

        server_forgets(r);
        for (unsigned rounds = 0;; rounds++) {
                decision_done(&r->d);
                cuda_plan(&r->view, &r->d);
                cuda_settle(&r->view, &r->d);
                if (!r->d.n_wants)
                        break;
                assert_true(rounds < 9);
                answer_all(w);
        }
        carry_out(w);
        return w->changed;
}

/* Until nothing changes any more; once more must not record anything. */
static inline void come_to_rest(struct world *w)
{
        size_t n;

        for (unsigned i = 0; turn(w); i++)
                assert_true(i < 30);
        n = w->events.n;
        assert_false(turn(w));
        assert_int_equal(w->events.n, n);
        assert_false(w->both_active);
}

static inline size_t count_events(struct world *w, const char *reason)
{
        size_t n = 0;

        vec_foreach (e, &w->events)
                n += streq(*e, reason);
        return n;
}

/* ---- kubelets */

static inline void job_says(struct world *w, const char *job, const char *status)
{
        json_set(&w->rig.arena, object_json(w, &KUBE_JOB, job), "status", parse(&w->rig, status));
}

/* A pod named as its Job and "-p", with this status; made if it is not there. */
static inline void pod_says(struct world *w, const char *job, const char *status)
{
        struct arena *a = &w->rig.arena;
        const char *name = arena_join(a, job, "-p", "");

        if (!there(w, &KUBE_POD, name))
                add_object(w, &KUBE_POD,
                           json_build(a,
                                      "{'metadata': {'name': %s}, 'spec': {'nodeName': 'n1', 'containers': "
                                      "[{'name': %s}]}}",
                                      name, strstr(job, "-profiling") ? "profiling-runner" : "execution"),
                           uid_of(w, &KUBE_JOB, job));
        json_set(a, object_json(w, &KUBE_POD, name), "status", parse(&w->rig, status));
}

#define RUNS(container)                                                                              \
        "{'phase': 'Running', 'containerStatuses': [{'name': '" container "', 'state': {'running': " \
        "{'startedAt': '2026-11-15T12:00:00Z'}}}]}"
#define ENDS(container, phase, code)                                                                \
        "{'phase': '" phase "', 'containerStatuses': [{'name': '" container "', 'state': "          \
        "{'terminated': {'exitCode': " code ", 'startedAt': '2026-11-15T12:00:00Z', 'finishedAt': " \
        "'2026-11-15T12:01:00Z'}}}]}"

/* ---- the profiler */

static inline void relay_says(struct world *w, const char *job, unsigned attempt, const char *state,
                              const char *status, const char *exit)
{
        struct arena *a = &w->rig.arena;
        struct json *data = json_build(
                a, "{'attempt': '%u', 'podUID': %s, 'sequence': '1', 'state': %s, 'status.json': %s}",
                attempt, uid_of(w, &KUBE_POD, arena_join(a, job, "-p", "")), state,
                json_print(a, parse(&w->rig, status)));

        if (exit)
                json_set(a, data, "exit.json", json_string(a, json_print(a, parse(&w->rig, exit))));
        json_set(a, object_json(w, &KUBE_CONFIGMAP, "r-profile-status"), "data", data);
}

static inline void profiler_runs(struct world *w, const char *job, unsigned attempt)
{
        pod_says(w, job, RUNS("profiling-runner"));
        relay_says(w, job, attempt, "Running", "{'phase': 'Collecting', 'message': 'm'}", NULL);
}

#define SUMMARY "{'boundType': 'memory-bound', 'metrics': {'smThroughput': '12.56'}}"

static inline void profiler_succeeds(struct world *w, const char *job, unsigned attempt, const char *summary)
{
        struct arena *a = &w->rig.arena;
        const char *pod = arena_join(a, job, "-p", "");
        struct json *data = json_at(object_json(w, &KUBE_CONFIGMAP, "r-profile-summary"), "data");

        pod_says(w, job, ENDS("profiling-runner", "Succeeded", "0"));
        relay_says(w, job, attempt, "Succeeded", "{'phase': 'Complete', 'message': 'm'}", "{'code': 0}");
        job_says(w, job, "{" JOB_COMPLETE "}");
        json_set(a, data, "podUID", json_string(a, uid_of(w, &KUBE_POD, pod)));
        if (summary)
                json_set(a, data, "summary.json", json_string(a, json_print(a, parse(&w->rig, summary))));
}

static inline void profiler_fails(struct world *w, const char *job, unsigned attempt, const char *status)
{
        pod_says(w, job, ENDS("profiling-runner", "Failed", "1"));
        relay_says(w, job, attempt, "Failed", status, "{'code': 1}");
        job_says(w, job, "{" JOB_FAILED("BackoffLimitExceeded") "}");
}
