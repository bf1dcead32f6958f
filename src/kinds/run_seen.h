/*
 * run_seen.h - what every kind's settle shares: what pod, ConfigMaps and Job say about a run.
 *
 * The outcome comes from the workload container's termination state, exit.json and the status file; the Job's condition
 * alone never decides: a relay that was killed does not turn a success into a failure. What only the kubelet knows
 * (OOMKilled, evicted, image pull, unschedulable) is added from the pod.
 *
 * A run has ended when the newest pod's workload has, and its relay has recorded it or cannot any more; a failure only when
 * the Job makes no further pod. What is not recorded in the cache's copy of the ConfigMaps is looked up before it counts as
 * missing: pods and ConfigMaps come by different watches.
 *
 * A malformed status ConfigMap, or a status file that the relay refuses, is a problem, never an error: the last good state
 * stays, condition Reporting=False says it, and one Warning event is recorded when that condition turns.
 */
#pragma once

#include "decide/decide.h"
#include "kinds/run_job.h"
#include "run/run.h"

enum run_life {
        RUN_LIFE_NONE,    /* no Job yet */
        RUN_LIFE_WAITING, /* no pod, or its workload has not started; `sentence` says why where that is known */
        RUN_LIFE_RUNNING,
        RUN_LIFE_SUSPENDED, /* by the request, see run_control.h */
        RUN_LIFE_SUCCEEDED,
        RUN_LIFE_FAILED, /* `reason` and `sentence` say why */
};

struct run_seen {
        enum run_life life;
        /*
         * CamelCase; NULL: nothing special. Waiting: PodNotCreated, Unschedulable, ImagePullFailed, ContainerConfigError,
         * ContainerWaiting, Retrying. Failed: WorkloadFailed, OutOfMemory, WorkloadNotStarted, StageFailed, Evicted, Interrupted,
         * NodeLost, DeadlineExceeded, JobDeleted, JobFailed, or what the kubelet calls it.
         */
        const char *reason;
        const char *sentence; /* cause, evidence, next step; at most 500 bytes; NULL: nothing to say */
        bool over_quota;      /* waiting, because a ResourceQuota refuses the pod */
        bool infrastructure; /* failed, and not by the workload's own doing: evicted, preempted, node lost, pod deleted */
        const struct run_names *names;
        const struct object *job, *pod /* the newest */, *status_map;
        uint64_t attempt;       /* of the newest pod, as far as that is known; from 1 */
        struct run_fence fence; /* attempt 0: there is none */
        bool has_status, has_track, has_exit;
        struct run_status status; /* of this attempt */
        struct track track;
        struct run_exit exit;
        usec_t started, finished; /* of the newest pod's workload; 0: not known */
        const char *problem;      /* why the present state is not the latest; NULL: nothing */
        const char *problem_reason;
};

static inline bool run_over(const struct run_seen *seen)
{
        return seen->life >= RUN_LIFE_SUCCEEDED;
}

/* False: nothing can be said yet (look-ups are under way, or the cache is behind); leave the status as it is. */
bool run_see(const struct view *v, struct decision *d, const struct run_names *names, struct run_seen *ret);
/* For struct child_kind: leave of a Job, a pod and a ConfigMap what is looked at here; a result may be a megabyte. */
void run_project_job(struct json *job, struct arena *a);
void run_project_pod(struct json *pod, struct arena *a);
void run_project_map(struct json *map, struct arena *a);
/*
 * result.json in *RET (in the arena; also from the gzipped form), looked up, as the cache does not hold it. NULL: there is
 * none, or it is no object under 64 KiB, which a status could not take: that is then a problem (ResultNotKept), so call it
 * before run_progress(). False: the look-up is under way, be called again.
 */
bool run_result(const struct view *v, struct decision *d, struct run_seen *seen, struct json **ret);
/*
 * run_data.c: the data ConfigMap, looked up, in *RET. NULL: there is none, or it is what an earlier attempt left than that of
 * STATUS. False: the look-up is under way, be called again.
 */
bool run_data(const struct view *v, struct decision *d, const char *name, const struct json *status,
              const struct json **ret);
/* A file that the run left there, also from the gzipped form, of at most 4 MiB. NULL text: ERR, E_NOT_FOUND if it left none. */
struct str run_data_text(const struct view *v, const struct json *map, const char *key, struct err *err);
/* The same for who has the ConfigMap from elsewhere than a decision's view. */
struct str run_map_text(struct arena *a, const struct json *map, const char *key, struct err *err);

/*
 * status.progress, one shape across kinds:
 *
 *     {percent, phase, phaseNumber, totalPhases, step: "5/12", currentStep, totalSteps, subPhase, message, attempt,
 *      gpuConfig, bestSoFar, startedAt, updatedAt, estimatedCompletion: {low, mid, high, basis}, eta: "15:12Z (15:08-15:21)",
 *      job, pod, podUID}
 *
 * startedAt is the first attempt's, kept from the request's status; `job` is there once the Job was seen; eta is low, mid and
 * high for people, with the date where that is not the day of updatedAt. Also sets the
 * conditions Progressing (False, NotMoving, when it does not move; the decision is then asked for again at that time) and
 * Reporting. PRIORS may be NULL.
 */
void run_progress(const struct view *v, struct decision *d, const struct run_seen *seen,
                  const struct priors *priors, struct json *status);
/*
 * The conditions Ready and Stalled of a kind for which the run is all there is, and the event of its end. Stalled is True
 * for a failure alone.
 */
void run_ready(const struct view *v, struct decision *d, const struct run_seen *seen, struct json *status);
/* The same for a request that cannot be run at all; WHY is one sentence. */
void run_refused(const struct view *v, struct decision *d, struct json *status, const char *why);
/* What the history knows of SHAPE, in *RET (NULL: nothing). False: a look-up is under way, be called again. */
bool run_priors(const struct view *v, struct decision *d, const char *shape, const struct priors **ret);
/* run_row.c: the request's labels, but for those of Kubernetes' own and of Sonde's. */
struct json *run_labels(const struct view *v);
/* The row for the history, in the view's arena. */
const struct history_row *run_row(const struct view *v, const struct run_seen *seen, const char *shape);
