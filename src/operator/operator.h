/*
 * operator - the controllers' runtime.
 *
 * For every registered controller it keeps caches of its requests and their children, and a queue of requests to look
 * at. Then, for each of them (several at once, one request never twice):
 *
 *     gather   the request and its children from the caches, parsed into an arena
 *     decide   call plan and settle; if they want look-ups, make them and call again
 *     carry    what differs, one write after the other, none of them unconditional
 *
 * Writes. What must exist and is not seen is created with POST; AlreadyExists means that an answer was lost (the object
 * is ours by its controlling owner's UID: go on) or that a stranger has the name (Stalled, reason NameConflict; it is
 * never touched). What is seen and differs is applied with its uid and resourceVersion; so is the status that a plan gives a
 * child, to its status subresource, once the child is there. Deletes carry the uid. Status is written only when it differs.
 * Each write is asked for at the lease right before it leaves.
 *
 * Look-ups are made one after the other, but for scrapes, which go at the same time. While the server is disturbed they are
 * made again later; what cannot be had is told the controller. A scrape is asked for once, by address and plain HTTP, with
 * nothing of ours in it: whatever goes wrong is the answer.
 *
 * History. A decision's row is committed before its status is written; if that fails, so does the decision (backoff).
 * Priors are answered from the history's memory where they are there.
 *
 * Read your own writes. After a write its resourceVersion is remembered, and the request is not decided again before
 * the cache has reached it, so one create and one status write are exactly that.
 *
 * Failures. A conflict, a lost answer or a busy server: decide again after the queue's backoff. What somebody must mend is
 * told on the request: Stalled=True with one of these reasons, which are the runtime's own and go when it works. The rest of
 * its status stays as it was, and so does Progressing's reason: what was decided has not been carried out, so neither its
 * status, nor its events, nor its row are written.
 *
 *     NameConflict       a stranger has the name                             tried again, at least once a minute
 *     KindNotInstalled   404 on a create: the CRD is not there               the same, and at once when the CRD comes
 *     KindOutdated       the CRD does not have a field that we apply         tried again, at least once a minute
 *     Forbidden          403, with the server's sentence and what to grant   tried again, at least once a minute
 *     Refused, TooLarge  422, 413                                            not tried again until something changes
 *
 * A delete that is forbidden or refused is an event, CleanupForbidden or CleanupRefused, and tried again as the first four.
 *
 * Admission. With a limit on runs a decision is told whether its request may begin, and is made once more where what it said
 * changes that; see admission.h. A request that is stalled, or fails for half a minute, and has no Job that runs gives its slot
 * back, and nothing is made for it before it has another one. Without a limit nothing of that is done.
 *
 * In a namespace that is being deleted nothing is made any more, and nothing is told. Lost lease: nothing is written.
 *
 * Children get, beside what the plan says: the request as controlling owner (a loose one the label sonde.dev/request, its
 * uid, instead: by that it is found and known as ours, and it outlives the request), the label sonde.dev/controller=NAME,
 * which the watches select by, app.kubernetes.io/managed-by=sonde unless the plan says another one, and the annotation
 * sonde.dev/plan, a hash of what was planned, so that a changed plan is applied even where it only leaves something out.
 * A Job's pod template gets the two labels as well.
 *
 * Requests without a status subresource (ConfigMaps) have their status as JSON in the annotation sonde.dev/status.
 */
#pragma once

#include "base/base.h"
#include "decide/decide.h"
#include "kube/kube.h"
#include "net/net.h"
#include "operator/admission.h"
#include "operator/object_metrics.h"

#define OPERATOR_LABEL_CONTROLLER  "sonde.dev/controller"
#define OPERATOR_LABEL_MANAGED_BY  "app.kubernetes.io/managed-by"
#define OPERATOR_LABEL_REQUEST     DECIDE_LABEL_REQUEST
#define OPERATOR_ANNOTATION_PLAN   "sonde.dev/plan"
#define OPERATOR_ANNOTATION_STATUS "sonde.dev/status"

/*
 * For loop_set_pace(), by a program whose loop serves an operator alone (an API server in the same loop would be slowed
 * down by it): with more requests than it has in work at once a decision may wait this long, and costs half as much.
 */
#define OPERATOR_PACE (20 * USEC_PER_MS)

struct operator;

struct operator_config {
        struct loop *loop;
        struct kube *kube;
        const struct controller *const *controllers;
        size_t n_controllers;
        const char *ns;                 /* NULL: all namespaces */
        unsigned concurrency;           /* requests of one controller in work at once; 0: 16 */
        const char *instance;           /* for events: the pod's name; NULL: the host's */
        struct metrics *metrics;        /* may be NULL */
        struct lease *lease;            /* NULL: no election, always the leader */
        struct history *history;        /* NULL: none; nothing is known of any shape, and rows go nowhere */
        struct admission_limits limits; /* of runs under way at once; zero: none */
        /* Asked before every write, after the lease (a test's hook). May be NULL. */
        bool (*may_send)(void *arg);
        void *arg;
};

/* Starts to fill the caches at once; decides nothing before operator_lead(). */
struct operator* operator_new(const struct operator_config *config);
void operator_free(struct operator* o);

/* We are the leader: begin to decide. */
void operator_lead(struct operator* o);
/*
 * Takes no further request into work; DONE when those in work have finished (or at once) and their events are written,
 * which is waited for no longer than 2 s.
 */
void operator_drain(struct operator* o, void (*done)(void *arg), void *arg);

bool operator_synced(const struct operator*
                     o); /* all caches are complete; that of a kind which is not installed is */
/* Nothing in work, nothing ready, nothing waiting for its own write (delayed looks do not count). */
bool operator_idle(const struct operator* o);
/* The first MAX requests that wait to begin in NS (NULL: anywhere), in order, each with its exact place; how many. */
size_t operator_queue(const struct operator* o, const char *ns, struct admission_queued *ret, size_t max,
                      struct arena *a);
struct admission_limits operator_limits(const struct operator* o);
/* The requests of that type, as they are decided from; NULL: no controller has them. It lives as long as the operator. */
struct cache *operator_cache(const struct operator* o, const struct kube_type *type);
/* The series of requests, unless they are part of the metrics already, because this one leads. */
void operator_write_objects(struct operator* o, struct buf *out);
/* False, with WHY, while a cache is not complete or its watch is silent for more than MAX_AGE. */
bool operator_ready(const struct operator* o, usec_t max_age, struct buf *why);

/* ---- health.c: /healthz, /readyz (with ?verbose) and /metrics over HTTP */

struct health;
struct health *health_new(struct loop *loop, const char *listen, struct operator* o, struct metrics *metrics,
                          struct err *err) _must_check_;
void health_free(struct health *h);
uint16_t health_port(const struct health *h);

DEFINE_CLEANUP_PTR(struct operator*, operator_free)
DEFINE_CLEANUP_PTR(struct health *, health_free)
