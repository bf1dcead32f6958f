/*
 * up.h - what `sonde up -f` does beside the engine: applies resources, follows the requests and Jobs among them.
 *
 *   up_apply.c    resources to the API, in order, by server-side apply
 *   up_follow.c   Jobs and their pods: one line a change
 *   up_log.c      the output of one container, line by line
 *   up_requests.c requests of our kinds: one line a change
 *
 * Both are clients of the API like any other, over HTTP, and know nothing of the engine. What happens is told on
 * standard output in lines that begin with "job/NAME" (NAMESPACE/job/NAME outside of default); "job/NAME | " stands
 * before a line that the job wrote.
 */
#pragma once

#include "cli/resources.h"
#include "kube/kube.h"

/* ---- up_follow.c */

struct up_follow;

struct up_outcome {
        size_t completed, failed;
};

/* DONE comes once, from the loop, when all requests and Jobs have ended and all that Jobs wrote has been told. */
struct up_follow *up_follow_new(struct kube *kube, void (*done)(void *arg, struct up_outcome outcome),
                                void *arg);
void up_follow_free(struct up_follow *f);
/* A Job or a request of ours as the server answered it: OBJECT is copied from. Anything else is not followed. */
void up_follow_add(struct up_follow *f, const struct json *object);
/* Begins; nothing may be added any more. */
void up_follow_start(struct up_follow *f);
size_t up_follow_running(const struct up_follow *f); /* Jobs and requests that have not ended */
/* Everything ends: DONE comes from the loop when the last words of all pods have been told, at most 2 s later. The DONE
 * of up_follow_new() does not come any more. */
void up_follow_drain(struct up_follow *f, void (*done)(void *arg), void *arg);

/* ---- up_apply.c */

struct up_apply {
        struct kube *kube;
        const char *ns;               /* of what names none */
        struct up_follow *follow;     /* NULL: nothing is followed */
        const bool *stop;             /* becomes true from the loop: give up */
        const struct resources *crds; /* definitions that were applied before; may be NULL */
        bool dry_run;                 /* the server checks, and keeps nothing */
        bool quiet;                   /* say only what is wrong */
        size_t refused;               /* so many were not applied */
};

/* Runs the loop meanwhile. Problems are told with file, line and column, and the next resource is gone on with. */
void up_apply(struct up_apply *u, struct resources *r);
/* "job/NAME" or "NAMESPACE/job/NAME", in the arena. */
const char *up_label(struct arena *a, const char *kind, const char *ns, const char *name);

/*
 * ---- up_requests.c: a request ends with Ready=True or Stalled=True about the generation that was applied, or when that is not
 * taken any more (SpecAccepted=False, or a final state from before). What the operator tries again by itself counts after 10 s.
 */

struct up_requests;

/* ENDED comes from the loop whenever one has ended. */
struct up_requests *up_requests_new(struct kube *kube, void (*ended)(void *arg), void *arg);
void up_requests_free(struct up_requests *r);
bool up_requests_add(struct up_requests *r, const struct json *object); /* false: of no kind of ours */
void up_requests_start(struct up_requests *r);
size_t up_requests_running(const struct up_requests *r);
struct up_outcome up_requests_outcome(const struct up_requests *r);

/* ---- up_log.c */

struct up_log;

/* Follows the output of a container until its end (PREVIOUS: tells that of the one before its last restart); PREFIX is
 * copied. DONE comes once, from the loop; ERR NULL: all was told. LINES is how many there were. */
struct up_log *up_log_new(struct kube *kube, const char *ns, const char *pod, const char *container,
                          bool previous, const char *prefix,
                          void (*done)(void *arg, size_t lines, const struct err *err), void *arg);
void up_log_free(struct up_log *l); /* no callback */

DEFINE_CLEANUP_PTR(struct up_follow *, up_follow_free)
