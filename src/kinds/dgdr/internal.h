/*
 * internal.h - what the files about a DynamoGraphDeploymentRequest share.
 *
 *   spec.c      the spec with its defaults, and all that is wrong with it
 *   plan.c      the profiler's Job; registration
 *   output.c    what the profiler made: the deployment among other documents
 *   settle.c    the state, and what follows from it
 *   progress.c  profilingPhase, profilingProgress and the designs' conditions
 */
#pragma once

#include "kinds/dgdr/dgdr.h"
#include "kinds/run_control.h"

/* ---- spec.c */

#define DGDR_TARGET_DGD "dgd"

struct dgdr_spec {
        const char *model, *backend;
        bool use_mocker, gpu_discovery, auto_apply;
        const struct json *config;       /* profilingConfig.config */
        const char *image;               /* profilingConfig.profilerImage; NULL: Sonde's own profiler */
        const struct json *command;      /* profilingConfig.command; NULL: upstream's */
        const char *target;              /* of Sonde's own profiler: config.sonde.target, "dgd" by default */
        bool api_access;                 /* the profiler deploys by itself: apiAccess, or target dgd */
        const char *base_map, *base_key; /* profilingConfig.configMapRef; NULL: none */
        const char *pvc;                 /* profilingConfig.outputPVC; NULL: none */
        const struct json *resources, *tolerations, *node_selector;
        /* deploymentOverrides */
        const char *deployment;    /* its name: <n>-dgd by default */
        const char *deployment_ns; /* NULL: not said */
        const struct json *labels, *annotations;
        const char *workers_image;
};

void dgdr_spec_read(const struct view *v, struct dgdr_spec *ret);
/*
 * All that can be known to be wrong before anything runs, in one sentence in *WHY ("spec.x: …; spec.y: …"), NULL: nothing. False:
 * look-ups are under way (of the ConfigMap and the volume that the spec names, with LOOK).
 */
bool dgdr_spec_check(const struct view *v, struct decision *d, const struct dgdr_spec *spec, bool look,
                     const char **why);

/* ---- output.c */

enum { DGDR_EXTRAS_MAX = 8, DGDR_REFUSED_MAX = 16 };

struct dgdr_output {
        /*
         * With the overrides, in the request's namespace, in the version that the profiler wrote; of the document only spec,
         * labels and annotations, at most 256 KiB in all.
         */
        struct json *dgd;
        /* ConfigMaps, in the order of the documents: name, data, binaryData, labels and annotations only. */
        struct json *extras[DGDR_EXTRAS_MAX];
        size_t n_extras;
        const char *refused[DGDR_REFUSED_MAX]; /* one sentence each: a document that is not used, and why */
        size_t n_refused;
};

/*
 * The key of the data ConfigMap that holds what the profiler made: the first there is of config_with_planner.yaml (with useMocker
 * mocker_config_with_planner.yaml) and final_config.yaml; its text, also from the gzipped form, of at most 4 MiB. NULL text:
 * there is none, and ERR says why. DATA_MAP may be NULL.
 */
struct str dgdr_output_text(const struct view *v, const struct dgdr_spec *spec, const struct json *data_map,
                            const char **ret_key, struct err *err);
/*
 * Reads the documents. Not trusted: what is neither the one DGD nor a ConfigMap is refused, and so is a ConfigMap of another
 * namespace, without a valid name or data, of a name of the run's own or one that is there already, and a ninth. -1: there is
 * no usable DGD, or the text cannot be read.
 */
int dgdr_output_read(const struct view *v, const struct dgdr_spec *spec, struct str text,
                     struct dgdr_output *ret, struct err *err) _must_check_;

/* ---- plan.c */

struct run_kind dgdr_run_kind(const struct view *v);
bool dgdr_plan_run(const struct view *v, struct decision *d, const struct run *run,
                   const struct dgdr_spec *spec, const char **why);

/* ---- settle.c */

void dgdr_plan(const struct view *v, struct decision *d);
void dgdr_settle(const struct view *v, struct decision *d);
void dgdr_project_dgd(struct json *dgd, struct arena *a); /* leaves its state */

/* ---- progress.c */

/* A state whose phase is none of the nine is not used: the schema would refuse it. Before run_progress(). */
void dgdr_take_known_phase(const struct view *v, struct run_seen *seen);
/* profilingPhase, profilingProgress, and the conditions Profiling and ProfilingPhase, of a run that was seen. */
void dgdr_tell_progress(const struct view *v, const struct run_seen *seen, struct json *status);
