/*
 * run_seen.h - what every kind's settle shares: what pod, ConfigMaps and Job say about a run.
 *
 * The outcome comes from the workload container's termination state, exit.json and the status file; the Job's condition
 * alone never decides: a relay that was killed does not turn a success into a failure. What only the kubelet knows
 * (OOMKilled, evicted, image pull, unschedulable) is added from the pod.
 *
 * A malformed status ConfigMap, or a status file that the relay refuses, is a problem, never an error: the last good state
 * stays, condition Reporting=False says it, and one Warning event is recorded when that condition turns.
 */
#pragma once

#include "decide/decide.h"
#include "run/run.h"

enum run_life {
        RUN_LIFE_NONE,    /* no Job yet */
        RUN_LIFE_WAITING, /* no pod, or its workload has not started; `sentence` says why where that is known */
        RUN_LIFE_RUNNING,
        RUN_LIFE_SUCCEEDED,
        RUN_LIFE_FAILED, /* `reason` and `sentence` say why */
};

struct run_seen {
        enum run_life life;
        const char *
                reason; /* CamelCase: "OutOfMemory", "WorkloadFailed", "ImagePullFailed", "Evicted", "DeadlineExceeded", … */
        const char *sentence; /* cause, evidence, next step; at most 500 bytes */
        const struct object *job, *pod /* the newest */, *status_map, *data_map;
        struct run_fence fence; /* attempt 0: there is none */
        bool has_status, has_track, has_exit;
        struct run_status status; /* of this attempt */
        struct track track;
        struct run_exit exit;
        const char *problem; /* why the present state is not the latest; NULL: nothing */
};

void run_see(const struct view *v, const char *job_name, const char *status_map, const char *data_map,
             struct run_seen *ret);
/* result.json, or NULL (in the arena; also from the gzipped form). */
struct json *run_result(const struct view *v, const struct run_seen *seen);

/*
 * status.progress, one shape across kinds:
 *
 *     {percent, phase, phaseNumber, totalPhases, step: "5/12", currentStep, totalSteps, subPhase, message, attempt,
 *      gpuConfig, startedAt, updatedAt, estimatedCompletion: {low, mid, high, basis}}
 *
 * startedAt is the first attempt's, kept from the request's status. Also sets the conditions Progressing (False, NotMoving,
 * when it does not move; the decision is then asked for again at that time) and Reporting. PRIORS may be NULL.
 */
void run_progress(const struct view *v, struct decision *d, const struct run_seen *seen,
                  const struct priors *priors, struct json *status);
/* The row for the history, in the view's arena. */
const struct history_row *run_row(const struct view *v, const struct run_seen *seen, const char *shape);
