/*
 * run_control.h - what every request says about its run, with one meaning for all kinds, and the attempts that follow.
 *
 *   spec.suspend            false    true: the Job is deleted; the data ConfigMap, with the checkpoint, stays. Resuming is a
 *                                    new attempt.
 *   spec.cancel             false    true: the run ends as a failure, reason Cancelled. That is not taken back.
 *   spec.timeout            none     "1h30m": how long one attempt may hold its node, counted from when its pod has one
 *                                    (time in a queue does not count). Then it fails, reason DeadlineExceeded.
 *   spec.retries            3        how many attempts may follow a failure of the infrastructure: eviction, preemption,
 *                                    node loss, a deleted pod. A workload's own failure is not tried again. 0 to 10.
 *   spec.priority           5        0 to 10: who begins first where runs are limited, see operator/admission.h
 *   spec.priorityClassName  none     of the pods
 *   spec.runAsUser          1000     of the pods
 *
 * They may be changed while a run is in flight; the last two count from the next attempt on. Any other change of the spec
 * makes a new attempt as long as no pod of the attempt has run; afterwards it is refused: Warning event SpecChangeRejected and
 * condition SpecAccepted=False, both once for each generation, observedGeneration as it was, and the run goes on with
 * what it was begun with. An attempt that is made later (after an eviction, a suspension) is made from the spec as it is
 * then; a checkpoint of another spec is not used.
 *
 * Where the operator limits runs, none is begun, resumed or begun anew before it is admitted; attempts that follow by
 * themselves keep its slot. Until then status.queue is {position, reason}, and Progressing has the reason Queued. What a
 * ResourceQuota is against is told there as well, without a position.
 *
 * status.run is which attempt is under way:
 *
 *     {attempt: 2, job: "profile-x-2", retries: 1, specHash: "…", outcome: "Succeeded" | "Failed", reason: "…"}
 *
 * A reason (Retrying, Edited, NextPod) without an outcome: this attempt is over, and the next one is begun as soon as nothing of it is
 * left; Cancelled and DeadlineExceeded: its Job is taken away and the outcome follows. The next one gets its number only
 * then, above all that a pod has claimed: before Kubernetes 1.26 a Job makes another pod for one that was deleted. An attempt is one Job's one pod, on all servers. A success that is recorded meanwhile stays one.
 *
 * Everything that begins or ends an attempt is first written there (a new attempt; Suspended=True; the outcome) and then
 * carried out, so that a crash between any two writes is harmless: the Job of another attempt than this is deleted
 * in the foreground, and this attempt's Job is not created before that one is finished or gone with its pods.
 */
#pragma once

#include "kinds/run_seen.h"

enum { RUN_RETRIES_DEFAULT = 3, RUN_RETRIES_MAX = 10 };

struct run_controls {
        bool suspend, cancel;
        usec_t timeout; /* 0: none */
        int64_t retries, priority;
        const char *priority_class; /* NULL: none */
        int64_t run_as_user;        /* below 0: the default */
};

/* What a kind says about its run. */
struct run_kind {
        const char *job; /* the wanted name of the first Job */
        const char *status_map, *data_map, *access;
        /* Members of the spec ("x", "x.y") that may be changed at any time beside those above; NULL ends; may be NULL. */
        const char *const *free;
};

/* A request's run, as its spec and status say. */
struct run {
        const struct run_kind *kind;
        struct run_controls controls;
        struct run_names names; /* of the attempt under way; job is NULL before the first one */
        int64_t retries;        /* attempts that failures of the infrastructure have cost */
        const char *spec_hash;  /* of the spec as it is now, without what may be changed at any time */
        bool changed;           /* the attempt was begun with another spec */
        /* Set by the kind: why the spec as it is now cannot be run; a change to it is refused at any time. */
        const char *invalid;
        /*
         * Set by the kind: nothing has followed from the outcome yet, so that a changed spec is no mistake: it begins
         * another attempt, reason Edited. Not after spec.cancel.
         */
        bool renew;
        /*
         * Set by the kind, where one attempt is not all: the attempt has succeeded; whether another one is to follow, in *RET.
         * It is no retry, and begins with what this one left. False: look-ups are under way. NULL: one is all.
         */
        bool (*again)(const struct view *v, struct decision *d, struct run_seen *seen, bool *ret);
        bool suspended; /* the status says so */
        bool over;      /* it has an outcome */
};

void run_read(const struct view *v, const struct run_kind *kind, struct run *ret);
/* Of the spec without the controls and FREE (as in struct run_kind): what an attempt is begun with, and its checkpoint is good
 * for. */
const char *run_spec_hash(const struct view *v, const char *const *free);
/* "1h30m", above 0 and up to a year, with a unit as the schemas have it. False: it is none. */
bool run_timeout_of(struct str text, usec_t *ret);
/* All that is wrong with the controls, as sentences ("spec.timeout: …"), in RET; how many. */
size_t run_controls_check(const struct view *v, const char **ret, size_t max);

/*
 * Plans the objects of the attempt under way; nothing before there is one. JOB is the kind's (names, spec_hash, priority
 * class and user are filled in here). The Job has the label sonde.dev/attempt; the request's Jobs without it are not the run's.
 * After the outcome it only takes away Jobs that would go on. False: as run_job_plan().
 */
bool run_plan(const struct view *v, struct decision *d, const struct run *run, struct run_job *job,
              const char **why);
/* No attempt is under way, and nothing of the last one runs any more: what it has left belongs to nobody. */
bool run_at_rest(const struct view *v, struct decision *d, const struct run *run);
/*
 * What has become of the run, in *RET, and of its attempts, in STATUS: status.run, observedGeneration, the conditions Suspended
 * and SpecAccepted, status.queue. A new attempt is life WAITING with reason Retrying, Resumed, Edited or NextPod, or NONE for
 * the first one; NONE with reason Queued is one that is not admitted yet; life SUSPENDED is after spec.suspend. With an outcome, ServiceAccount, Role and RoleBinding are taken away (and d->exist is
 * empty); called once more after it, it tells life, reason and sentence. False: look-ups are under way; leave the status as
 * it is.
 */
bool run_settle(const struct view *v, struct decision *d, const struct run *run, struct run_seen *ret,
                struct json *status);
/*
 * The kind wants no run any more, and nothing of it runs (run_at_rest(), or no Job was made): it ends as a failure for REASON, or
 * as the success that was recorded meanwhile, told in *RET and status.run alone. False: look-ups are under way.
 */
bool run_abandon(const struct view *v, struct decision *d, const struct run *run, const char *reason,
                 struct run_seen *ret, struct json *status);
/*
 * Part of run_settle(), and to be called by itself where a request lives on after its run: observedGeneration follows, or the
 * change of a spec that was run already is refused.
 */
void run_settle_spec(const struct view *v, struct decision *d, const struct run *run, struct json *status);
