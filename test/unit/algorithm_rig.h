/*
 * algorithm_rig.h - an AlgorithmProfiling or AlgorithmComparison, the server's answers about it, and what is decided.
 *
 * Every status that is decided is one that the CRD's schema takes.
 */
#pragma once

#include "unit/kind_rig.h"

#include "kinds/algorithm/internal.h"

static const struct algorithm_settings SETTINGS = {.pod_image = "sonde-pod", .ml_image = "sonde-ml"};

static inline void request_of(struct rig *r, const struct kube_type *type, const char *spec,
                              const char *status)
{
        kind_request(r, type, &SETTINGS, spec, status);
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

static const struct flow_kind ALGORITHM_FLOW = {
        .plan = algorithm_plan,
        .settle = algorithm_settle,
        .container = "algorithm",
        .output = "result.json",
        .crds = {{&ALGORITHMPROFILING, "deploy/crds/algorithmprofilings.yaml",
                  "{\"algorithmName\": \"x\", \"inputSize\": 1}"},
                 {&ALGORITHMCOMPARISON, "deploy/crds/algorithmcomparisons.yaml",
                  "{\"algorithms\": [], \"inputSize\": 1}"}},
};

static inline int algorithm_setup(void **state)
{
        return flow_setup(state, &ALGORITHM_FLOW);
}
