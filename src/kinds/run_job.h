/*
 * run_job.h - what every kind's plan shares: the objects of a run.
 *
 *   two ConfigMaps          status (fence.h) and data; created once, then the relay's
 *   ServiceAccount, Role,   may get and patch those two ConfigMaps by name; created before the Job, gone after the run.
 *   RoleBinding             They are not watched: they are planned only while the Job is not there yet
 *   Job                     stage (init) | the workload, first container, under `run` | relay
 *
 * The pod: the workload comes first and is named in kubectl.kubernetes.io/default-container and default-logs-container, so
 * that `kubectl logs job/NAME` prints it. An emptyDir is mounted at /sonde in all three; the run directory is the volume
 * "run" when the pod's volumes have one, else an emptyDir. The token (projected, 1 h) is mounted in the relay alone;
 * automountServiceAccountToken is false. stage and relay are "restricted" and have requests and limits. All share uid, gid
 * and fsGroup 1000 unless run_as_user says otherwise. `$(` in what Sonde adds is escaped.
 */
#pragma once

#include "decide/decide.h"

struct run_job {
        const char *name; /* of the Job; from status once it is there */
        const char *status_map, *data_map;
        const char *access;    /* name of ServiceAccount, Role and RoleBinding */
        uint64_t attempt;      /* the Job's: 1, or more for a Job after a failed one */
        const char *spec_hash; /* a checkpoint of another spec is not used; NULL: no checkpoint */
        const char *pod_image; /* holds /sonde-pod */
        const char *run_dir;   /* "/data" or "/sonde/run" */
        /* The workload: name, image, command (required: `run` starts it), args, env, resources, volumeMounts. */
        struct json *container;
        struct json *pod; /* more of the pod's spec (volumes, nodeSelector, tolerations, …); NULL: nothing */
        struct json *labels; /* more for Job and pod; NULL: none */
        int64_t backoff_limit, deadline_seconds /* 0: none */, ttl_seconds /* below 0: none */,
                grace_seconds /* 0: 30 */;
        int64_t run_as_user; /* below 0: 1000 */
};

/* Adds what must exist, in the order of creation. False: the container has no command; WHY is one sentence. */
bool run_job_plan(const struct view *v, struct decision *d, const struct run_job *job, const char **why);
/*
 * The run has ended: takes ServiceAccount, Role and RoleBinding away. False: look-ups are under way, be called again. Call
 * it in the decision that makes the status terminal, and not any more afterwards.
 */
bool run_job_dismiss(const struct view *v, struct decision *d, const char *access);
/* The Job's name for a first attempt: the seed's name if nothing of that name is seen, else with the uid's hash. */
const char *run_job_name(const struct view *v, const char *wanted, uint64_t attempt);
