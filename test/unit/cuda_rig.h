/*
 * cuda_rig.h - an experiment, the server's answers about it, and what is decided.
 *
 * Every status that is decided is one that the CRD's schema takes.
 */
#pragma once

#include "unit/kind_rig.h"

#include "kinds/cuda/internal.h"

static const struct cuda_settings SETTINGS = {.pod_image = "sonde-pod", .runner_image = "runner"};

/* An experiment named r; SPEC and STATUS are members, STATUS may be NULL. */
static inline void experiment(struct rig *r, const char *spec, const char *status)
{
        kind_request(r, &CUDAEXPERIMENT, &SETTINGS, spec, status);
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

static const struct flow_kind CUDA_FLOW = {
        .plan = cuda_plan,
        .settle = cuda_settle,
        .container = "profiling-runner",
        .output = CUDA_SUMMARY_KEY,
        .crds = {{&CUDAEXPERIMENT, "deploy/crds/cudaexperiments.yaml", "{\"image\": \"i\"}"}},
};

static inline int experiment_setup(void **state)
{
        return flow_setup(state, &CUDA_FLOW);
}

/* One decision; its status, which becomes the experiment's. NULL: none. */
static inline const struct json *decided(struct rig *r)
{
        _cleanup_(schema_free) struct schema *s = schema_of(&CUDA_FLOW.crds[0]);

        decision_done(&r->d);
        cuda_plan(&r->view, &r->d);
        cuda_settle(&r->view, &r->d);
        if (r->d.n_wants || !r->d.status)
                return NULL;
        assert_fits(s, &CUDA_FLOW.crds[0], r->d.status);
        json_set(&r->arena, (struct json *)r->view.request, "status", json_copy(&r->arena, r->d.status));
        return json_at(r->view.request, "status");
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
