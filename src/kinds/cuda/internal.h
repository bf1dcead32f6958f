/*
 * internal.h - what the files about a CUDAExperiment share.
 *
 *   spec.c, spec_pod.c    the spec with its defaults, and all that is wrong with it
 *   plan.c                the profiling Job; registration
 *   profile.c             the WorkloadProfile: which one fits, and what the profiler's summary makes of it
 *   execution.c           the execution Job, and where it may run
 *   execution_seen.c      what has become of it
 *   settle.c              the phase, and what follows from it
 *   conditions.c          how the status tells it
 *   gpus.c, placement.c   placement.h
 */
#pragma once

#include "kinds/cuda/cuda.h"
#include "kinds/cuda/placement.h"
#include "kinds/run_control.h"
#include "probe/probe.h"

extern const struct kube_type CUDA_PODGROUP; /* Volcano's; a cluster may have none */

#define CUDA_GPU_RESOURCE   "nvidia.com/gpu"
#define CUDA_LABEL_WORKLOAD "gpu.scheduler.io/workload" /* of a WorkloadProfile of ours: its hash */
#define CUDA_SUMMARY_KEY    NCU_SUMMARY_FILE
#define CUDA_PROGRAM_DEFAULT \
        "/cuda-samples/vectorAdd" /* what is staged without a command, as upstream does */

#define CUDA_ANNOTATION_SPEC "sonde.dev/spec-hash" /* of the execution Job: what it was made from */

/* ---- spec.c */

struct cuda_spec {
        const char *image;
        const struct json *command, *arguments; /* lists of texts; may be NULL */
        const char *runtime_class;
        int64_t replicas, gpus;
        bool profiling;
        const struct json *env, *volumes, *resources; /* may be NULL */
        /* profiling */
        const char *set, *kernel_name /* NULL: all */;
        int64_t launch_count, launch_skip;
        usec_t timeout; /* 0: none */
        bool reuse, sys_admin;
        const struct json *files; /* more that the program needs of its image; NULL: none */
        /* placement */
        enum place_mode mode;
        const char *queue; /* NULL: the scheduler's default */
        struct place_least least;
};

void cuda_spec_read(const struct view *v, struct cuda_spec *ret);
/*
 * All that is wrong with it, in one sentence in *WHY ("spec.x: …; spec.y: …"), and the reason: CommandEmpty, or Invalid for all
 * else. NULL: nothing.
 */
const char *cuda_spec_check(const struct view *v, const struct cuda_spec *spec, const char **why);
/* Of what a profile depends on. */
const char *cuda_workload_hash(const struct view *v, const struct cuda_spec *spec);
/* Of what the execution Job is made from: all but what may be changed at any time. */
const char *cuda_spec_hash(const struct view *v, const struct cuda_spec *spec);
/* run_read(), with what a server fills in counting as there, and the timeout of profiling as the run's. */
void cuda_run_read(const struct view *v, const struct cuda_spec *spec, const struct run_kind *kind,
                   struct run *ret);

/* ---- plan.c */

struct run_kind cuda_run_kind(const struct view *v);
bool cuda_plan_run(const struct view *v, struct decision *d, const struct run *run,
                   const struct cuda_spec *spec, const char **why);
struct json *cuda_labels(const struct view *v); /* upstream's three, of Jobs and pods */
/* The volumes of the spec for a pod, and the mounts for a container. */
struct json *cuda_volumes(const struct view *v, const struct cuda_spec *spec);
struct json *cuda_mounts(const struct view *v, const struct cuda_spec *spec);
/* Those of the spec, with the GPUs. */
struct json *cuda_resources(const struct view *v, const struct cuda_spec *spec);

/* ---- profile.c */

struct cuda_profile {
        const char *name;
        bool users;                /* not made by Sonde */
        bool reused;               /* another experiment's */
        const char *bound;         /* status.boundType; NULL: it has none, which only a user's may have */
        const struct json *status; /* may be NULL */
};

const char *cuda_profile_name(const struct view *v); /* of the experiment's own, or a user's in its place */
/* The one that fits; *RET has name NULL: there is none. False: look-ups are under way. */
bool cuda_profile_find(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                       struct cuda_profile *ret);
/*
 * What the finished run left in its data ConfigMap, in *RET as a status of a WorkloadProfile. NULL: *REASON and *MESSAGE, as
 * upstream has them: ProfileSummaryMissing, InvalidProfileSummary. False: look-ups are under way.
 */
bool cuda_profile_read(const struct view *v, struct decision *d, const struct run_kind *kind,
                       struct json **ret, const char **reason, const char **message);
/* Plans the experiment's own WorkloadProfile with this status. */
void cuda_profile_plan(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                       struct json *status);

/* ---- execution.c */

struct cuda_placement {
        struct json *affinity; /* NULL: none */
        struct json *hint;     /* NULL: none */
        const char *reason;    /* one sentence; NULL: nothing to say */
};

/* Looks at the nodes, and at what their exporters tell, for BOUND (NULL: not profiled). False: look-ups are under way. */
bool cuda_place(const struct view *v, struct decision *d, const struct cuda_spec *spec, const char *bound,
                struct cuda_placement *ret);
/* Plans the Job NAME, which is made once, and what its queue needs. */
void cuda_execution_plan(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                         const struct run_controls *controls, const char *name,
                         const struct cuda_placement *place);
/* `<n>-execution`, to be written to status before it is made; with a hash where a stranger has that name. NULL: look-ups. */
const char *cuda_execution_name(const struct view *v, struct decision *d);
/* Takes the Job away unless it has finished, with its pods, and what its queue needed. */
void cuda_execution_remove(const struct view *v, struct decision *d, const char *name);

/* ---- execution_seen.c */

enum cuda_execution {
        EXECUTION_NONE, /* not made yet */
        EXECUTION_GONE, /* it was there */
        EXECUTION_WAITING,
        EXECUTION_RUNNING,
        EXECUTION_SUCCEEDED,
        EXECUTION_FAILED,
};

struct cuda_execution_seen {
        enum cuda_execution state;
        const char *reason, *sentence; /* of a wait or a failure; NULL: nothing to say */
        struct json *status;           /* status.execution; NULL: nothing is known of it any more */
};

/* Of the Job NAME; MADE: it was seen before. False: look-ups are under way. */
bool cuda_execution_see(const struct view *v, struct decision *d, const char *name, bool made,
                        struct cuda_execution_seen *ret);

/* ---- conditions.c */

/* What a decision is made from, and the status that it makes. */
struct cuda_turn {
        const struct view *v;
        struct decision *d;
        struct cuda_spec spec;
        struct run_kind kind;
        struct run run;
        struct json *status;
};

const char *cuda_phase_before(const struct view *v);
/* With an event when it is another one. */
void cuda_set_phase(struct cuda_turn *t, const char *phase);
/* One of upstream's conditions is true. */
void cuda_tell(struct cuda_turn *t, const char *type, const char *reason, const char *message);
/* It is not, or not any more. */
void cuda_take_back(struct cuda_turn *t, const char *type);
/* Phase Failed: REASON and SENTENCE for Ready and Stalled, the others for upstream's condition Failed. */
void cuda_fail(struct cuda_turn *t, const char *reason, const char *sentence, const char *upstream_reason,
               const char *upstream_message);
/* Upstream's conditions, Ready and Stalled of a run that goes on. */
void cuda_tell_run(struct cuda_turn *t, const struct run_seen *seen);
/* Progressing, Ready and Stalled while it goes on. REASON NULL: nothing is in the way. */
void cuda_tell_going_on(struct cuda_turn *t, const char *reason, const char *sentence);
void cuda_tell_succeeded(struct cuda_turn *t);
/* status.progress after the run: its phase is that of the experiment, and nothing moves any more. */
void cuda_tell_progress(struct cuda_turn *t);

/* ---- settle.c */

void cuda_plan(const struct view *v, struct decision *d);
void cuda_settle(const struct view *v, struct decision *d);
