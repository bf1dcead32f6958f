/*
 * run_internal.h - what the files about a run share.
 *
 *   run_job.c       what must exist
 *   run_pod.c       what the kubelet says about a pod
 *   run_seen.c      what everything together says about the run
 *   run_progress.c  how the request's status tells it
 *   run_data.c      what it left
 *   run_row.c       what the history is told of it
 *   run_controls.c  what the request says of it
 *   run_control.c   one attempt after another
 *   run_lingers.c   what is left of its Jobs
 *   run_queue.c     before the first
 */
#pragma once

#include "kinds/run_control.h"

#define RUN_LOOK_AGAIN (5 * USEC_PER_SEC)

/* ---- run_job.c */

enum run_look { LOOK_UNDER_WAY, LOOK_FAILED, LOOK_DONE };

/* The kubelet expands $(VAR) in commands, arguments and values of the environment; "$$" is a plain "$". */
const char *run_escaped(struct arena *a, const char *text);
/* One object as the server has it, or NULL. */
const struct object *run_look_up(const struct view *v, struct decision *d, const struct kube_type *type,
                                 const char *name, enum run_look *ret_look);
bool run_is_ours(const struct view *v, const struct json *object); /* by its controlling owner's uid */
bool run_job_finished(const struct json *job);
bool run_job_goes_on(const struct json *job); /* may make another pod */
bool run_job_retries(const struct json *job); /* by itself, when a pod fails */

/* ---- run_pod.c */

struct run_pod {
        const struct object *object; /* NULL: there is none */
        const char *of;     /* uid of the pod that is meant, which need not be there any more; NULL: any */
        const char *not_of; /* uid of an earlier pod, whose record is not of this one; NULL: none is known */
        const char *node;   /* "" before it has one */
        usec_t created;
        usec_t asked_to_end; /* when its deletion was asked for, to the second; 0: it was not */
        usec_t grace;        /* that it then has */
        bool over;           /* phase Succeeded or Failed: nothing of it runs any more */
        const char *phase, *reason, *message;
        const char *disruption, *disruption_message; /* why the cluster ends it; NULL: it does not */
        const char *workload;                        /* the container's name */
        bool started, ended;                         /* the workload */
        usec_t started_at, finished_at;
        int64_t exit_code;
        const char *end_reason;  /* the kubelet's: OOMKilled, Error, … */
        const char *end_message; /* the termination message, where `run` writes how it ended */
        const char *memory;      /* limits.memory of the workload, or NULL */
        bool relay_ended;
        int64_t relay_code;
        const char *relay_reason;
        const char *stage; /* the init container that failed; NULL: none has */
        bool stage_failed;
        int64_t stage_code;
        const char *stage_message;
        const char *wait_reason,
                *wait_message; /* of the first container that waits for something; NULL: none */
};

/* The newest pod of a Job, or NULL. */
const struct object *run_newest_pod(const struct view *v, const struct object *job);
/* The same, as the server has it. */
const struct object *run_look_up_pod(const struct view *v, struct decision *d, const struct object *job,
                                     enum run_look *ret_look);
void run_pod_read(const struct object *object, struct run_pod *ret); /* OBJECT may be NULL */
/* Why the workload has not started, where that is known: a reason, and the sentence. */
const char *run_pod_waits(const struct view *v, const struct run_pod *p, const char **ret_sentence);
/*
 * Why a Job has no pod: quota and admission may refuse it, and only the Job's events say so. They are looked at when it has had
 * time enough, and then every 30 s. False: the look-up is under way.
 */
bool run_pod_refused(const struct view *v, struct decision *d, const struct object *job,
                     const char **ret_reason, const char **ret_sentence, bool *ret_over_quota);
/* The node could not start the workload's container: nothing of it ever ran, and nobody in the pod knows that it has ended. */
bool run_pod_never_started(const struct run_pod *p);
/*
 * The image of a CONTAINER (NULL: the workload's) with its digest, where the kubelet tells it: "app:1@sha256:…", or, of one
 * that has come from no registry, "app:1 (sha256:…)". NULL: the pod does not say.
 */
const char *run_pod_image(struct arena *a, const struct json *pod, const char *container);

/* ---- run_seen.c */

/* A pod should have ended this long after its grace period; one of a dead node stays. */
#define RUN_ENDING_PATIENCE (60 * USEC_PER_SEC)
/* Until then it may still run: a kubelet may notice a deletion only after a minute and a half. */
#define RUN_GONE_PATIENCE (5 * 60 * USEC_PER_SEC)

/* A sentence in the arena, cut at 500 bytes. */
const char *run_sentence(const struct view *v, const char *fmt, ...) _printf_(2, 3);
/* What somebody else said, on one line and short enough to leave room for the rest of the sentence. */
const char *run_quote(const struct view *v, struct str text);
/* The condition of an object when it is True, or NULL. */
const struct json *run_condition(const struct json *object, const char *type);

/* ---- run_lingers.c */

/*
 * Something of it may still run. A Job that is deleted goes when its pods have, so it lingers as long as it is there; but one
 * with a pod that should long be gone is as good as gone: that pod's node is dead.
 */
bool run_lingers(const struct view *v, struct decision *d, const struct object *job);
/* The same of any Job of the run but KEEP, which may be NULL. */
bool run_any_lingers(const struct view *v, struct decision *d, const struct run *run, const char *keep);
void run_remove_unfinished(const struct view *v, struct decision *d, const struct run *run, const char *keep);
/* Pods of a suspended run have yet to end, as far as the cache knows; one that should long be gone does not count. */
bool run_any_pod_ends(const struct view *v, struct decision *d, const struct run *run);

/* ---- run_queue.c */

struct admission_wish run_wish(const struct view *v, const struct run *run, enum admission_stand stand);
/* The run is to begin: whether it may. */
bool run_admitted(const struct view *v, struct decision *d, const struct run *run);
/* It may not: tells where it is in the queue. False: that is not known yet; leave the status as it is. */
bool run_queued(const struct view *v, const struct run *run, struct run_seen *ret, struct json *status);
void run_tell_quota(const struct view *v, const struct run_seen *seen, struct json *status);

/* ---- run_progress.c */

struct json *run_time_json(struct arena *a, usec_t when); /* NULL for 0 */
/* What was said of the GPUs, as a status takes it: the server refuses all of one with a count below 0. NULL: nothing. */
struct json *run_gpu_config(struct arena *a, const struct run_status *st);
