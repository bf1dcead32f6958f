/*
 * cuda_rig.h - an experiment, the server's answers about it, and what is decided.
 *
 * Every status that is decided is one that the CRD's schema takes.
 */
#pragma once

#include "unit/run_objects.h"

#include "kinds/cuda/internal.h"

static const struct cuda_settings SETTINGS = {.pod_image = "sonde-pod", .runner_image = "runner"};

/* An experiment named r; SPEC and STATUS are members, STATUS may be NULL. */
static inline void experiment(struct rig *r, const char *spec, const char *status)
{
        r->view.type = &CUDAEXPERIMENT;
        r->view.settings = &SETTINGS;
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

/* Somebody changes a member of the spec; VALUE NULL: takes it away. */
static inline void edit(struct rig *r, const char *member, const char *value)
{
        struct json *meta = json_at(r->view.request, "metadata");

        json_remove(spec_json(r), member);
        json_set(&r->arena, spec_json(r), member, value ? parse(r, value) : NULL);
        json_set(&r->arena, meta, "generation", json_i64(&r->arena, json_int(meta, "generation", 0) + 1));
}

static inline struct cuda_spec spec_of(struct rig *r)
{
        struct cuda_spec spec;

        cuda_spec_read(&r->view, &spec);
        return spec;
}

/* What the server says to a look-up of any kind. */
static inline struct answer *told(struct rig *r, enum want_kind kind, const struct kube_type *type,
                                  const char *name, const char *text)
{
        struct answer *a = vec_push(&r->answers);

        a->want = (struct want){.kind = kind, .type = type, .name = name};
        a->json = text ? parse(r, text) : NULL;
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
        return a;
}

static inline bool wants(const struct rig *r, enum want_kind kind, const char *name)
{
        for (size_t i = 0; i < r->d.n_wants; i++)
                if (r->d.wants[i].kind == kind && (!name || streq(r->d.wants[i].name, name)))
                        return true;
        return false;
}

/* ---- deciding */

static inline struct schema *experiment_schema(void)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct schema *s = NULL;

        if (doc_read_yaml(&doc, "deploy/crds/cudaexperiments.yaml", 1 << 20, &err) == 0)
                s = schema_new(
                        json_path(json_first(json_path(doc.root, "spec.versions")), "schema.openAPIV3Schema"),
                        &err);
        if (!s)
                fail_msg("%s", err.text);
        return s;
}

static inline void assert_fits(const struct schema *s, const struct json *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct schema_report report = {0};
        struct json *object = json_build(&a, "{'spec': {'image': 'i'}, 'status': %p}",
                                         (void *)json_copy(&a, status));

        if (!schema_validate(s, object, &a, &report))
                fail_msg("%s %s: %s", report.causes[0].field, report.causes[0].message,
                         json_print(&a, status));
        schema_prune(s, object, NULL);
        if (!json_equal(json_at(object, "status"), status))
                fail_msg("the schema does not know all of %s", json_print(&a, status));
}

/* One decision; its status, which becomes the experiment's. NULL: none. */
static inline const struct json *decided(struct rig *r)
{
        _cleanup_(schema_free) struct schema *s = experiment_schema();

        decision_done(&r->d);
        cuda_plan(&r->view, &r->d);
        cuda_settle(&r->view, &r->d);
        if (r->d.n_wants || !r->d.status)
                return NULL;
        assert_fits(s, r->d.status);
        json_set(&r->arena, (struct json *)r->view.request, "status", json_copy(&r->arena, r->d.status));
        return json_at(r->view.request, "status");
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

static inline bool has_event(const struct rig *r, const char *reason)
{
        vec_foreach (e, &r->d.events)
                if (streq(e->reason, reason))
                        return true;
        return false;
}

static inline bool is_removed(const struct rig *r, const char *name)
{
        vec_foreach (gone, &r->d.absent)
                if (streq(gone->object->name, name))
                        return true;
        return false;
}

static inline const char *message_of(const struct json *status, const char *type)
{
        return json_str(condition(status, type), "message");
}

/* Forgets what the server said. */
static inline void server_forgets(struct rig *r)
{
        r->answers.n = r->view.n_answers = 0;
}

static inline void children_go(struct rig *r)
{
        r->children.n = r->view.n_children = 0;
}
