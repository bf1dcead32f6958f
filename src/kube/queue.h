/*
 * queue.h - keys waiting to be reconciled.
 *
 * A key is waiting (delayed), ready or running, never two at once: adding a running key marks it dirty, and it becomes
 * ready again when it is done. Adding a key that is there already keeps the higher priority and the earlier time.
 * Within a priority keys come in the order in which they became ready; keys of an initial list have the low one, so
 * that a person's change overtakes the backlog of a restart. Failures are retried after 5 ms * 2^n (at most 1000 s, plus up
 * to 10 % jitter); a key that keeps failing never delays another. Not thread-safe: it belongs to one loop.
 */
#pragma once

#include "kube/type.h"
#include "net/net.h"

struct queue;

enum queue_priority { QUEUE_LOW, QUEUE_NORMAL, QUEUE_HIGH, QUEUE_PRIORITIES_ };
enum queue_outcome {
        QUEUE_OK,     /* forget failures */
        QUEUE_RETRY,  /* failed: again after the backoff */
        QUEUE_GIVE_UP /* failed for good: not added again, unless it was added meanwhile */
};

struct queue_config {
        const char *name;        /* of the controller, for the metrics */
        struct metrics *metrics; /* workqueue_*; may be NULL */
        /* Something became ready. Called from the loop, or from queue_add(); must not call back at once. May be NULL. */
        void (*on_ready)(void *arg);
        void *arg;
};

struct queue *queue_new(struct loop *loop, const struct queue_config *config);
void queue_free(struct queue *q);

/* KEY is copied; for Kubernetes objects "namespace/name". */
void queue_add(struct queue *q, struct str key, enum queue_priority priority);
void queue_add_after(struct queue *q, struct str key, usec_t delay);
/* The next ready key, now running; STR_NULL: nothing ready. Borrowed until queue_done(). */
struct str queue_take(struct queue *q);
void queue_done(struct queue *q, struct str key, enum queue_outcome outcome);
/* A waiting key is dropped; one that is ready or running loses its failures and what was to come later. */
void queue_forget(struct queue *q, struct str key);

size_t queue_ready(const struct queue *q);
size_t queue_waiting(const struct queue *q); /* delayed */
size_t queue_running(const struct queue *q);
unsigned queue_failures(const struct queue *q, struct str key);

DEFINE_CLEANUP_PTR(struct queue *, queue_free)
