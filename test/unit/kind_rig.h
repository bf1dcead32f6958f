/*
 * kind_rig.h - a request of a kind, the objects that its decisions leave behind, and what pods and profiler report.
 *
 * Decisions are executed at once and in full, the caches show it at once, and nothing else happens than what a test says: that
 * is enough to read a status off. Orders of events, faults and crashes are explored in test/model.
 */
#pragma once

#include "unit/run_objects.h"

#include "kinds/run_internal.h"

/* ---- the request */

/* One named r; SPEC and STATUS are members, STATUS may be NULL. */
static inline void kind_request(struct rig *r, const struct kube_type *type, const void *settings,
                                const char *spec, const char *status)
{
        r->view.type = type;
        r->view.settings = settings;
        r->view.request = parse(r,
                                arena_printf(&r->arena,
                                             "{'metadata': {'namespace': 'ns', 'name': 'r', 'uid': 'uid-r', "
                                             "'generation': 1}, 'spec': {%s}, 'status': {%s}}",
                                             spec, status ? status : ""));
}

static inline struct json *spec_json(const struct rig *r)
{
        return json_at(r->view.request, "spec");
}

/* Changes a member of the spec; VALUE NULL: removes it. */
static inline void edit(struct rig *r, const char *member, const char *value)
{
        struct json *meta = json_at(r->view.request, "metadata");

        json_remove(spec_json(r), member);
        json_set(&r->arena, spec_json(r), member, value ? parse(r, value) : NULL);
        json_set(&r->arena, meta, "generation", json_i64(&r->arena, json_int(meta, "generation", 0) + 1));
}

static inline const struct json *status_now(const struct rig *r)
{
        return json_at(r->view.request, "status");
}

static inline void assert_phase(struct rig *r, const char *phase)
{
        const char *is = json_str(status_now(r), "phase");

        if (!streq(is, phase))
                fail_msg("phase %s, not %s: %s", is ? is : "(none)", phase,
                         json_print(&r->arena, status_now(r)));
}

/* ---- its schema */

/* A type with its CRD, and a spec that the CRD takes. */
struct kind_crd {
        const struct kube_type *type;
        const char *file, *spec;
};

static inline struct schema *schema_of(const struct kind_crd *crd)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct schema *s = NULL;

        if (doc_read_yaml(&doc, crd->file, 1 << 20, &err) == 0)
                s = schema_new(
                        json_path(json_first(json_path(doc.root, "spec.versions")), "schema.openAPIV3Schema"),
                        &err);
        if (!s)
                fail_msg("%s", err.text);
        return s;
}

/* The server takes the status, and keeps all of it. */
static inline void assert_fits(const struct schema *s, const struct kind_crd *crd, const struct json *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(4096);
        struct schema_report report = {0};
        struct json *object = json_object(&a);

        json_set(&a, object, "spec", json_parse(&a, str_of(crd->spec), NULL, NULL));
        json_set(&a, object, "status", json_copy(&a, status));
        if (!schema_validate(s, object, &a, &report))
                fail_msg("%s %s: %s", report.causes[0].field, report.causes[0].message,
                         json_print(&a, status));
        schema_prune(s, object, &dropped);
        if (dropped.n)
                fail_msg("not in the schema: %s", buf_cstr(&dropped));
}

/* ---- decisions that are executed */

enum { KIND_CRDS = 2 };

struct flow_kind {
        void (*plan)(const struct view *v, struct decision *d);
        void (*settle)(const struct view *v, struct decision *d);
        const char *container, *output;  /* of the run's pods; the key of what they leave */
        struct kind_crd crds[KIND_CRDS]; /* without a type: none */
};

struct flow {
        struct rig rig; /* first: it is the state of the tests */
        const struct flow_kind *kind;
        struct schema *schemas[KIND_CRDS];
        VEC(struct object) others; /* of other owners: only look-ups find them */
        VEC(struct event) events;
        struct series series; /* what the history has of each one */
        const struct history_row *row;
        size_t rows;      /* that were recorded */
        unsigned made;    /* objects; for their uids */
        bool both_active; /* a Job of the run and another one were active together */
        bool changed;     /* by the last decision */
        bool gone;        /* the request was deleted */
};

static inline int flow_setup(void **state, const struct flow_kind *kind)
{
        struct flow *f = xcalloc(1, sizeof(*f));

        f->rig.view.arena = &f->rig.arena;
        f->rig.view.now = NOON;
        f->kind = kind;
        for (size_t i = 0; i < KIND_CRDS && kind->crds[i].type; i++)
                f->schemas[i] = schema_of(&kind->crds[i]);
        *state = f;
        return 0;
}

static inline int flow_teardown(void **state)
{
        struct flow *f = *state;

        for (size_t i = 0; i < KIND_CRDS; i++)
                schema_free(f->schemas[i]);
        vec_done(&f->others);
        vec_done(&f->events);
        return teardown(state);
}

static inline struct object *there(struct flow *f, const struct kube_type *type, const char *name)
{
        vec_foreach (o, &f->rig.children)
                if (o->type == type && streq(o->name, name))
                        return o;
        return NULL;
}

static inline struct json *object_json(struct flow *f, const struct kube_type *type, const char *name)
{
        struct object *o = there(f, type, name);

        return o ? (struct json *)o->json : NULL;
}

static inline const char *uid_of(struct flow *f, const struct kube_type *type, const char *name)
{
        struct object *o = there(f, type, name);

        return o ? o->uid : NULL;
}

static inline void add_object(struct flow *f, const struct kube_type *type, struct json *json,
                              const char *owner)
{
        struct arena *a = &f->rig.arena;
        struct json *meta = json_at(json, "metadata");

        json_set(a, meta, "uid", json_string(a, arena_printf(a, "uid-%u", ++f->made)));
        json_set(a, meta, "creationTimestamp", json_string(a, "2026-11-15T12:00:00Z"));
        json_set(a, meta, "ownerReferences",
                 json_build(a, "[{'uid': %s, 'kind': %s, 'controller': %p}]", owner, f->rig.view.type->kind,
                            (void *)json_truth(a, true)));
        child_json(&f->rig, type, json);
}

/* With all that it owns. */
static inline void remove_object(struct flow *f, const char *uid)
{
        struct rig *r = &f->rig;
        size_t n = 0;

        f->gone = f->gone || streq(uid, "uid-r");
        for (size_t i = 0; i < r->children.n; i++) {
                const struct object *o = &r->children.v[i];

                if (!streq(o->uid, uid) && !streq(meta_controller_uid(o->json), uid))
                        r->children.v[n++] = *o;
        }
        r->children.n = r->view.n_children = n;
}

static inline const struct json *looked_up(struct flow *f, const struct want *want)
{
        const struct json *own = object_json(f, want->type, want->name);

        vec_foreach (o, &f->others)
                if (!own && o->type == want->type && streq(o->name, want->name))
                        own = o->json;
        return own;
}

static inline const struct json *listed(struct flow *f, const struct want *want)
{
        struct arena *a = &f->rig.arena;
        struct json *items = json_array(a);

        vec_foreach (o, &f->rig.children)
                if (want->kind == WANT_PODS && o->type == &KUBE_POD &&
                    streq(meta_controller_uid(o->json), want->uid))
                        json_append(items, json_copy(a, o->json));
        vec_foreach (o, &f->others)
                if (want->kind == WANT_LIST && o->type == want->type)
                        json_append(items, json_copy(a, o->json));
        return json_build(a, "{'items': %p}", (void *)items);
}

static inline void answer_all(struct flow *f)
{
        struct rig *r = &f->rig;

        for (size_t i = 0; i < r->d.n_wants; i++) {
                const struct want *want = &r->d.wants[i];
                struct answer *a = vec_push(&r->answers);

                *a = (struct answer){.want = *want};
                if (want->kind == WANT_OBJECT)
                        a->json = looked_up(f, want);
                else if (want->kind == WANT_SERIES)
                        a->series = &f->series;
                else if (want->kind != WANT_PRIORS)
                        a->json = listed(f, want);
        }
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static inline void keep(struct flow *f, struct json *object, const char *member, const struct json *as)
{
        struct json *copy = as ? json_copy(&f->rig.arena, as) : NULL;

        if (!copy || json_equal(json_at(object, member), copy))
                return;
        json_set(&f->rig.arena, object, member, copy);
        f->changed = true;
}

static inline void execute_one(struct flow *f, const struct must_exist *e)
{
        struct json *is = object_json(f, e->type, meta_str(e->json, "name"));

        if (!is) { /* its status follows when it is seen */
                add_object(f, e->type, json_copy(&f->rig.arena, e->json), "uid-r");
                f->changed = true;
                return;
        }
        if (e->how == EXIST_APPLY)
                keep(f, is, "spec", json_at(e->json, "spec"));
        keep(f, is, "status", e->status);
}

static inline bool is_active(struct flow *f, bool of_run)
{
        vec_foreach (o, &f->rig.children)
                if (o->type == &KUBE_JOB && !run_job_finished(o->json) &&
                    of_run == !!json_at(json_at(json_at(o->json, "metadata"), "labels"), RUN_LABEL_ATTEMPT))
                        return true;
        return false;
}

static inline void write_status(struct flow *f)
{
        struct rig *r = &f->rig;
        bool had = f->changed;
        size_t i = 0;

        if (!r->d.status)
                return;
        while (i + 1 < KIND_CRDS && f->kind->crds[i].type != r->view.type)
                i++;
        assert_fits(f->schemas[i], &f->kind->crds[i], r->d.status);
        f->changed = false;
        keep(f, (struct json *)r->view.request, "status", r->d.status);
        if (f->changed && r->d.row) {
                f->row = r->d.row;
                f->rows++;
        }
        f->changed = f->changed || had;
}

static inline void execute(struct flow *f)
{
        struct rig *r = &f->rig;

        vec_foreach (gone, &r->d.absent)
                remove_object(f, gone->object->uid);
        f->changed = r->d.absent.n;
        vec_foreach (e, &r->d.exist)
                execute_one(f, e);
        f->both_active = f->both_active || (is_active(f, true) && is_active(f, false));
        write_status(f);
        vec_foreach (e, &r->d.events)
                *vec_push(&f->events) = *e;
}

/* One decision, with all look-ups, executed. True: it changed something. */
static inline bool turn(struct flow *f)
{
        struct rig *r = &f->rig;

        r->answers.n = r->view.n_answers = 0;
        for (unsigned rounds = 0;; rounds++) {
                decision_done(&r->d);
                f->kind->plan(&r->view, &r->d);
                f->kind->settle(&r->view, &r->d);
                if (!r->d.n_wants)
                        break;
                assert_true(rounds < 9);
                answer_all(f);
        }
        execute(f);
        return f->changed;
}

/* Until nothing changes any more; another decision must not record an event. */
static inline void come_to_rest(struct flow *f)
{
        size_t n;

        for (unsigned i = 0; !f->gone && turn(f); i++)
                assert_true(i < 30);
        assert_false(f->both_active);
        if (f->gone)
                return;
        n = f->events.n;
        assert_false(turn(f));
        assert_int_equal(f->events.n, n);
}

static inline size_t count_events(struct flow *f, const char *reason)
{
        size_t n = 0;

        vec_foreach (e, &f->events)
                n += streq(e->reason, reason);
        return n;
}

/* ---- Jobs and pods */

#define CONTAINER_RUNS(container)                                                                   \
        "{'phase': 'Running', 'startTime': '2026-11-15T12:00:00Z', 'containerStatuses': [{'name': " \
        "'" container "', 'state': {'running': {'startedAt': '2026-11-15T12:00:00Z'}}}]}"
#define CONTAINER_ENDS(container, phase, code)                                                      \
        "{'phase': '" phase "', 'containerStatuses': [{'name': '" container "', 'state': "          \
        "{'terminated': {'exitCode': " code ", 'startedAt': '2026-11-15T11:00:00Z', 'finishedAt': " \
        "'2026-11-15T11:01:00Z'}}}]}"

static inline void job_says(struct flow *f, const char *job, const char *status)
{
        json_set(&f->rig.arena, object_json(f, &KUBE_JOB, job), "status", parse(&f->rig, status));
}

static inline const char *pod_name(struct flow *f, const char *job)
{
        return arena_join(&f->rig.arena, job, "-p", "");
}

/* A pod named as its Job and "-p", with this status and the container named in it; made if it is not there. */
static inline void pod_says(struct flow *f, const char *job, const char *status)
{
        struct arena *a = &f->rig.arena;
        struct json *is = parse(&f->rig, status);
        const char *container = json_str(json_first(json_at(is, "containerStatuses")), "name");

        if (!there(f, &KUBE_POD, pod_name(f, job)))
                add_object(f, &KUBE_POD,
                           json_build(a,
                                      "{'metadata': {'name': %s}, 'spec': {'nodeName': 'n1', 'containers': "
                                      "[{'name': %s, 'image': 'sonde-pod'}]}}",
                                      pod_name(f, job), container ? container : f->kind->container),
                           uid_of(f, &KUBE_JOB, job));
        json_set(a, object_json(f, &KUBE_POD, pod_name(f, job)), "status", is);
}

/* ---- the relay and the profiler */

/* The run's ConfigMap of which the name has this end. */
static inline struct json *map_data(struct flow *f, const char *end)
{
        vec_foreach (o, &f->rig.children)
                if (o->type == &KUBE_CONFIGMAP && str_has_suffix(str_of(o->name), str_of(end)))
                        return (struct json *)o->json;
        return NULL;
}

static inline void relay_says(struct flow *f, const char *job, unsigned attempt, const char *state,
                              const char *status, const char *exit)
{
        struct arena *a = &f->rig.arena;
        struct json *data = json_build(
                a, "{'attempt': '%u', 'podUID': %s, 'sequence': '1', 'state': %s, 'status.json': %s}",
                attempt, uid_of(f, &KUBE_POD, pod_name(f, job)), state,
                json_print(a, parse(&f->rig, status)));

        if (exit)
                json_set(a, data, "exit.json", json_string(a, json_print(a, parse(&f->rig, exit))));
        json_set(a, map_data(f, "-status"), "data", data);
}

static inline void profiler_runs(struct flow *f, const char *job, unsigned attempt, const char *status)
{
        pod_says(f, job, arena_printf(&f->rig.arena, CONTAINER_RUNS("%s"), f->kind->container));
        relay_says(f, job, attempt, "Running", status, NULL);
}

/* OUTPUT: a document; NULL: it leaves none. */
static inline void profiler_succeeds(struct flow *f, const char *job, unsigned attempt, const char *output)
{
        struct arena *a = &f->rig.arena;
        struct json *map = map_data(f, "-summary"), *data;

        pod_says(f, job, arena_printf(a, CONTAINER_ENDS("%s", "Succeeded", "0"), f->kind->container));
        relay_says(f, job, attempt, "Succeeded", "{'phase': 'Complete', 'message': 'm'}", "{'code': 0}");
        job_says(f, job, "{" JOB_COMPLETE "}");
        data = json_at(map ? map : map_data(f, "-results"), "data");
        json_set(a, data, "podUID", json_string(a, uid_of(f, &KUBE_POD, pod_name(f, job))));
        json_set(a, data, "samples.json", json_string(a, "{\"columns\":[]}"));
        json_remove(data, f->kind->output);
        if (output)
                json_set(a, data, f->kind->output, json_string(a, json_print(a, parse(&f->rig, output))));
}

static inline void profiler_fails(struct flow *f, const char *job, unsigned attempt, const char *status)
{
        pod_says(f, job,
                 arena_printf(&f->rig.arena, CONTAINER_ENDS("%s", "Failed", "1"), f->kind->container));
        relay_says(f, job, attempt, "Failed", status, "{'code': 1}");
        job_says(f, job, "{" JOB_FAILED("BackoffLimitExceeded") "}");
}
