/*
 * algorithm_rig.h - an AlgorithmProfiling or AlgorithmComparison, the server's answers about it, and what is decided.
 *
 * Every status that is decided is one that the CRD's schema takes.
 */
#pragma once

#include "unit/run_objects.h"

#include "kinds/algorithm/internal.h"

static const struct algorithm_settings SETTINGS = {.pod_image = "sonde-pod", .ml_image = "sonde-ml"};

/* One named r; SPEC and STATUS are members, STATUS may be NULL. */
static inline void request_of(struct rig *r, const struct kube_type *type, const char *spec,
                              const char *status)
{
        r->view.type = type;
        r->view.settings = &SETTINGS;
        r->view.request = parse(r,
                                arena_printf(&r->arena,
                                             "{'metadata': {'namespace': 'ns', 'name': 'r', 'uid': 'uid-r', "
                                             "'generation': 1}, 'spec': {%s}, 'status': {%s}}",
                                             spec, status ? status : ""));
}

static inline void profiling(struct rig *r, const char *spec)
{
        request_of(r, &ALGORITHMPROFILING, spec, NULL);
}

static inline void comparison(struct rig *r, const char *spec)
{
        request_of(r, &ALGORITHMCOMPARISON, spec, NULL);
}

static inline struct algorithm_spec spec_of(struct rig *r)
{
        struct algorithm_spec spec;

        algorithm_spec_read(&r->view, &spec);
        return spec;
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
