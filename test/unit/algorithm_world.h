/*
 * algorithm_world.h - a request with a server that does what is decided, and people, kubelets and a probe that do what a test
 * says. The caches show at once what the server has.
 */
#pragma once

#include "unit/algorithm_rig.h"

#include "kinds/run_internal.h"

struct world {
        struct rig rig; /* first: it is the state of the tests */
        struct schema *schemas[2];
        VEC(struct event) events;
        struct series series; /* what the history says of every one */
        const struct history_row *row;
        size_t rows;   /* that were recorded */
        unsigned made; /* objects; for their uids */
        bool changed;  /* by the decision at hand */
        bool gone;     /* the request is */
};

static inline struct schema *schema_at(const char *path)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct schema *s = NULL;

        if (doc_read_yaml(&doc, path, 1 << 20, &err) == 0)
                s = schema_new(
                        json_path(json_first(json_path(doc.root, "spec.versions")), "schema.openAPIV3Schema"),
                        &err);
        if (!s)
                fail_msg("%s", err.text);
        return s;
}

static inline int world_setup(void **state)
{
        struct world *w = xcalloc(1, sizeof(*w));

        w->rig.view.arena = &w->rig.arena;
        w->rig.view.now = NOON;
        w->schemas[0] = schema_at("deploy/crds/algorithmprofilings.yaml");
        w->schemas[1] = schema_at("deploy/crds/algorithmcomparisons.yaml");
        *state = w;
        return 0;
}

static inline int world_teardown(void **state)
{
        struct world *w = *state;

        schema_free(w->schemas[0]);
        schema_free(w->schemas[1]);
        vec_done(&w->events);
        return teardown(state);
}

static inline const struct json *status_now(struct world *w)
{
        return json_at(w->rig.view.request, "status");
}

static inline void assert_phase(struct world *w, const char *phase)
{
        const char *is = json_str(status_now(w), "phase");

        if (!streq(is, phase))
                fail_msg("phase %s, not %s: %s", is ? is : "(none)", phase,
                         json_print(&w->rig.arena, status_now(w)));
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
                 json_build(a, "[{'uid': %s, 'kind': 'X', 'controller': %p}]", owner,
                            (void *)json_truth(a, true)));
        *vec_push(&w->rig.children) = (struct object){type, json, meta_str(json, "name"),
                                                      meta_str(json, "uid")};
        refresh(w);
}

static inline void remove_object(struct world *w, const char *uid)
{
        size_t n = 0;

        w->gone = w->gone || streq(uid, "uid-r");
        for (size_t i = 0; i < w->rig.children.n; i++) {
                const struct object *o = &w->rig.children.v[i];

                if (!streq(o->uid, uid) && !streq(meta_controller_uid(o->json), uid))
                        w->rig.children.v[n++] = *o;
        }
        w->rig.children.n = n;
        refresh(w);
}

/* ---- deciding */

static inline const struct json *pods_of(struct world *w, const char *job)
{
        struct arena *a = &w->rig.arena;
        struct json *items = json_array(a);

        vec_foreach (o, &w->rig.children)
                if (o->type == &KUBE_POD && streq(meta_controller_uid(o->json), job))
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
                        a->json = object_json(w, want->type, want->name);
                else if (want->kind == WANT_SERIES)
                        a->series = &w->series;
                else if (want->kind != WANT_PRIORS)
                        a->json = pods_of(w, want->uid);
        }
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static inline void assert_fits(struct world *w, const struct json *status)
{
        bool compares = w->rig.view.type == &ALGORITHMCOMPARISON;
        const struct schema *s = w->schemas[compares];
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(4096);
        struct schema_report report = {0};
        struct json *object = json_build(&a, "{'spec': {'%s': %p, 'inputSize': 1}, 'status': %p}",
                                         compares ? "algorithms" : "algorithmName",
                                         (void *)(compares ? json_array(&a) : json_string(&a, "x")),
                                         (void *)json_copy(&a, status));

        if (!schema_validate(s, object, &a, &report))
                fail_msg("%s %s: %s", report.causes[0].field, report.causes[0].message,
                         json_print(&a, status));
        schema_prune(s, object, &dropped);
        if (dropped.n)
                fail_msg("not in the schema: %s", buf_cstr(&dropped));
}

static inline void carry_out(struct world *w)
{
        struct rig *r = &w->rig;
        struct json *request = (struct json *)r->view.request;

        vec_foreach (gone, &r->d.absent)
                remove_object(w, gone->object->uid);
        w->changed = r->d.absent.n;
        vec_foreach (e, &r->d.exist)
                if (!there(w, e->type, meta_str(e->json, "name"))) {
                        add_object(w, e->type, json_copy(&r->arena, e->json), "uid-r");
                        w->changed = true;
                }
        if (r->d.status && !json_equal(r->d.status, json_at(request, "status"))) {
                assert_fits(w, r->d.status);
                json_set(&r->arena, request, "status", json_copy(&r->arena, r->d.status));
                w->changed = true;
                w->row = r->d.row ? r->d.row : w->row;
                w->rows += r->d.row != NULL;
        }
        vec_foreach (e, &r->d.events)
                *vec_push(&w->events) = *e;
}

/* One decision, with all look-ups, carried out. True: it changed something. */
static inline bool turn(struct world *w)
{
        struct rig *r = &w->rig;

        r->answers.n = r->view.n_answers = 0;
        for (unsigned rounds = 0;; rounds++) {
                decision_done(&r->d);
                algorithm_plan(&r->view, &r->d);
                algorithm_settle(&r->view, &r->d);
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

        for (unsigned i = 0; !w->gone && turn(w); i++)
                assert_true(i < 30);
        n = w->events.n;
        if (w->gone)
                return;
        assert_false(turn(w));
        assert_int_equal(w->events.n, n);
}

static inline size_t count_events(struct world *w, const char *reason)
{
        size_t n = 0;

        vec_foreach (e, &w->events)
                n += streq(e->reason, reason);
        return n;
}

/* ---- kubelets */

static inline void job_says(struct world *w, const char *job, const char *status)
{
        json_set(&w->rig.arena, object_json(w, &KUBE_JOB, job), "status", parse(&w->rig, status));
}

static inline const char *pod_name(struct world *w, const char *job)
{
        return arena_join(&w->rig.arena, job, "-p", "");
}

/* A pod named as its Job and "-p", with this status; made if it is not there. */
static inline void pod_says(struct world *w, const char *job, const char *status)
{
        struct arena *a = &w->rig.arena;

        if (!there(w, &KUBE_POD, pod_name(w, job)))
                add_object(w, &KUBE_POD,
                           json_build(a,
                                      "{'metadata': {'name': %s}, 'spec': {'nodeName': 'n1', 'containers': "
                                      "[{'name': 'algorithm', 'image': 'sonde-pod'}]}}",
                                      pod_name(w, job)),
                           there(w, &KUBE_JOB, job)->uid);
        json_set(a, object_json(w, &KUBE_POD, pod_name(w, job)), "status", parse(&w->rig, status));
}

#define RUNS                                                                                        \
        "{'phase': 'Running', 'startTime': '2026-11-15T12:00:00Z', 'containerStatuses': [{'name': " \
        "'algorithm', "                                                                             \
        "'state': {'running': {'startedAt': '2026-11-15T12:00:00Z'}}}]}"
#define ENDS(phase, code)                                                                             \
        "{'phase': '" phase "', 'containerStatuses': [{'name': 'algorithm', 'state': {'terminated': " \
        "{'exitCode': " code                                                                          \
        ", 'startedAt': '2026-11-15T11:00:00Z', 'finishedAt': '2026-11-15T11:01:00Z'}}}]}"

/* ---- the probe */

static inline const char *map_of(struct world *w, const char *what)
{
        bool compares = w->rig.view.type == &ALGORITHMCOMPARISON;

        return arena_printf(&w->rig.arena, "r%s-run-%s", compares ? "-comparison" : "", what);
}

static inline void relay_says(struct world *w, const char *job, unsigned attempt, const char *state,
                              const char *status, const char *exit)
{
        struct arena *a = &w->rig.arena;
        struct json *data = json_build(
                a, "{'attempt': '%u', 'podUID': %s, 'sequence': '1', 'state': %s, 'status.json': %s}",
                attempt, there(w, &KUBE_POD, pod_name(w, job))->uid, state,
                json_print(a, parse(&w->rig, status)));

        if (exit)
                json_set(a, data, "exit.json", json_string(a, json_print(a, parse(&w->rig, exit))));
        json_set(a, object_json(w, &KUBE_CONFIGMAP, map_of(w, "status")), "data", data);
}

static inline void probe_runs(struct world *w, const char *job, unsigned attempt, const char *status)
{
        pod_says(w, job, RUNS);
        relay_says(w, job, attempt, "Running", status, NULL);
}

/* What a run leaves, as text; NULL: nothing. */
static inline void leave(struct world *w, const char *job, const char *key, const char *text)
{
        struct arena *a = &w->rig.arena;
        struct json *data = json_at(object_json(w, &KUBE_CONFIGMAP, map_of(w, "results")), "data");

        json_set(a, data, "podUID", json_string(a, there(w, &KUBE_POD, pod_name(w, job))->uid));
        json_remove(data, key);
        json_set(a, data, key, json_string(a, text));
}

static inline void probe_succeeds(struct world *w, const char *job, unsigned attempt, const char *result)
{
        pod_says(w, job, ENDS("Succeeded", "0"));
        relay_says(w, job, attempt, "Succeeded", "{'phase': 'Complete', 'message': 'm'}", "{'code': 0}");
        job_says(w, job, "{" JOB_COMPLETE "}");
        leave(w, job, "result.json", result ? json_print(&w->rig.arena, parse(&w->rig, result)) : NULL);
        leave(w, job, "samples.json", "{\"columns\":[]}");
}

static inline void probe_fails(struct world *w, const char *job, unsigned attempt, const char *status)
{
        pod_says(w, job, ENDS("Failed", "1"));
        relay_says(w, job, attempt, "Failed", status, "{'code': 1}");
        job_says(w, job, "{" JOB_FAILED("BackoffLimitExceeded") "}");
}
