/*
 * run_job.h - what every kind's plan shares: the objects of a run.
 *
 *   two ConfigMaps          status (fence.h) and data; created before the Job, then the relay's; created again when
 *                           somebody deletes one while the Job is there
 *   ServiceAccount, Role,   may get and patch those two ConfigMaps by name; created before the Job, gone after the run.
 *   RoleBinding             They are not watched: they are planned only while the Job is not there yet
 *   Job                     stage (init) | more of the kind's (init) | the workload, first container, under `run` | more of
 *                           the kind's | relay
 *
 * The pod: the workload comes first and is named in kubectl.kubernetes.io/default-container and default-logs-container, so
 * that `kubectl logs job/NAME` prints it. An emptyDir is mounted at /sonde in all three; the run directory is the volume
 * "run" when the pod's volumes have one, else an emptyDir. The token (projected, 1 h) is mounted in the relay, and in the
 * workload if the kind says workload_token; automountServiceAccountToken is false. All are "restricted", the workload where the request does not say otherwise and it is
 * not root. stage and relay have requests and limits: 10m and 16Mi asked
 * for, at most 500m (a lower quota would delay a state by a whole period of the kernel's) and 64Mi. All share uid 1000
 * unless run_as_user says otherwise (stage and relay stay with 1000 beside a workload that is root), and gid and fsGroup
 * 1000. `$` in what Sonde adds is escaped; in what the request says, the kubelet expands $(VAR) as always.
 */
#pragma once

#include "decide/decide.h"

#define RUN_RELAY_CONTAINER "relay"
#define RUN_STAGE_CONTAINER "stage"
#define RUN_PROGRAM         "/sonde/sonde-pod"  /* as it is staged, in any image */
#define RUN_LABEL_ATTEMPT   "sonde.dev/attempt" /* of a run's Jobs: which one it is */

struct run_names {
        const char *job; /* from status once it is there */
        const char *status_map, *data_map;
        const char *access; /* of ServiceAccount, Role and RoleBinding */
        uint64_t
                attempt; /* of the Job's first pod: 1; for a Job after a failed one, one more than was seen */
};

struct run_job {
        struct run_names names;
        const char *spec_hash; /* a checkpoint of another spec is not used; NULL: no checkpoint */
        const char *pod_image; /* holds /sonde-pod */
        const char *run_dir;   /* "/data" or "/sonde/run" */
        /* The workload: name, image, command (required: `run` starts it), args, env, resources, volumeMounts. */
        struct json *container;
        struct json *
                init; /* more init containers, a list: they run after stage, with /sonde mounted; NULL: none */
        /* More containers beside the workload, a list: restricted like it, with /sonde mounted, and not judged; NULL: none. */
        struct json *more;
        struct json *pod; /* more of the pod's spec (volumes, nodeSelector, tolerations, …); NULL: nothing */
        struct json *labels;     /* more for Job and pod; NULL: none */
        struct json *job_labels; /* more for the Job alone; NULL: none */
        /* Files of the run directory that go to the data ConfigMap under their own names at the end; NULL ends; NULL: none. */
        const char *const *files;
        struct json *rules;  /* more of the Role's rules; NULL: none */
        bool workload_token; /* the workload gets the token as well */
        int64_t backoff_limit, deadline_seconds /* 0: none */, ttl_seconds /* below 0: none */,
                grace_seconds /* 0: 30; at most a week */;
        int64_t run_as_user; /* below 0: 1000 */
};

/*
 * Adds what must exist, in the order of creation; once the Job is there only the ConfigMaps; nothing when it was there
 * (run_job_was_there()), or while that is looked up. False: the container has no command; WHY is one sentence. `container` and `pod` become part of
 * the plan.
 */
bool run_job_plan(const struct view *v, struct decision *d, const struct run_job *job, const char **why);
/* The request's status (see run_progress()) or the status ConfigMap says that there was such a Job: it is made once. */
bool run_job_was_there(const struct view *v, const struct run_names *names);
/*
 * The run has ended: takes ServiceAccount, Role and RoleBinding away. False: look-ups are under way, be called again. Call
 * it in the decision that makes the status terminal, and not any more afterwards.
 */
bool run_job_dismiss(const struct view *v, struct decision *d, const struct run_names *names);
/*
 * In every decision after the end: a Job that would run once more (the workload has succeeded, but the relay was killed, and
 * the Job counts that as a failure) is taken away with its pods. So is one whose pod would never end: the workload was never
 * started, and its relay waits for it.
 */
void run_job_halt(const struct view *v, struct decision *d, const struct run_names *names);
/*
 * The Job's name, to be written to status before the Job is created: WANTED if no Job of that name is there, else with 8
 * characters of the uid's hash; with "-<attempt>" for later attempts. NULL: a look-up is under way, be called again.
 */
const char *run_job_name(const struct view *v, struct decision *d, const char *wanted, uint64_t attempt);
