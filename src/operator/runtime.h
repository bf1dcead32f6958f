/*
 * runtime.h - inside the operator: one controller's caches, queue and work.
 *
 *   runtime.c    caches, mapping of changes to requests, the pump
 *   reconcile.c  one request: gather, decide
 *   lookup.c     what a decision wants to know: of the server, of the history
 *   scrape.c     the same, of an address in the cluster
 *   carry.c      one decision: the writes, one after the other
 *   child.c      one object that must exist, and its status: create, apply, or nothing
 *   retire.c     what need not be remembered of a request that rests
 *   stall.c      what carrying out has run into, told on the request
 *   ownership.c  which of an object's fields are ours
 *   expect.c     what the cache has yet to see
 *   admission.c  which requests may begin
 *   runtime_metrics.c  what is counted of all this
 *   object_metrics.c   what is told of the requests themselves
 */
#pragma once

#include "operator/operator.h"

enum { CHILD_KINDS_MAX = 12 };

struct source {
        struct runtime *rt;
        const struct kube_type *type;
        struct cache *cache;
        struct reflector *reflector;
        const struct child_kind *kind; /* NULL: the requests */
        int through;                   /* of the kind; the request's own: -1 */
        bool absent;                   /* as last heard of an optional kind */
        struct metric *age;            /* NULL without metrics */
};

/* One controller at work. */
struct runtime {
        struct operator* op;
        const struct controller *c;
        const char *label; /* what people call its kind: "ap" */
        struct queue *queue;
        struct events *events;
        char *manager;                              /* of fields: sonde-NAME */
        struct source sources[1 + CHILD_KINDS_MAX]; /* [0]: the requests */
        size_t n_sources;
        struct map items; /* key -> struct item, for requests with something to remember */
        unsigned running;
        struct arena_pool arenas;                                   /* of tasks */
        struct metric *results[4];                                  /* by enum reconcile_result */
        struct metric *errors, *terminal_errors, *seconds, *active; /* NULL without metrics */
};

struct operator
{
        struct operator_config cfg;
        char *ns, *instance;
        struct runtime *runtimes;
        bool leading, draining, freeing;
        struct defer pump;
        void (*drained)(void *arg);
        void *drained_arg;
        struct timer drain;            /* asks for the events again */
        usec_t drain_until;            /* then they are left; 0: something is in work */
        struct admissions *admissions; /* NULL: there is no limit */
        bool awaits_all;               /* the requests that were there are awaited by them */
        struct timer await;            /* asks whether they can be */
        usec_t led_at;
        usec_t made_at; /* the first decision is told, with how long after this it was */
        bool decided;
        struct object_metrics *objects; /* NULL without metrics */
};

/* Something written that the cache has not shown yet. */
struct expectation {
        struct expectation *next;
        struct source *source;
        uint64_t epoch;
        bool gone; /* a delete: `text` is the uid; otherwise the version */
        char text[];
};

/*
 * An apply whose outcome the server wrote differently (defaults, "1000m" to "1"), or that changed nothing (of a status,
 * in which others have fields too): not to be fought over.
 */
struct settled {
        struct settled *next;
        char *uid; /* of a child's status: "UID/status" */
        char *version, *hash;
};

struct item {
        struct expectation *expectations;
        struct settled *settled;
        struct task *task; /* NULL: not in work */
        char *ending;      /* uid of the request whose namespace is going; NULL: it is not */
        char key[];
};

/* A text that is being asked for. */
struct scrape {
        struct task *task;
        const struct want *want;
        struct http_client *client; /* NULL: none, or it has come */
};

enum reconcile_result { RESULT_SUCCESS, RESULT_ERROR, RESULT_REQUEUE, RESULT_REQUEUE_AFTER };

/* One request in work. Lives from queue_take() to queue_done(). */
struct task {
        struct runtime *rt;
        struct item *item;
        const char *ns, *name;
        struct arena arena;
        struct view view;
        struct decision decision;
        struct admission admission; /* of the view, where there is a limit */
        bool held_back;             /* what it has begun waits for a slot once more */
        VEC(struct answer) answers;
        unsigned rounds;
        usec_t began;
        size_t step;         /* of carry.c */
        size_t lookup;       /* the want at hand; those for scrapes are passed by */
        struct json *listed; /* by it, on the pages so far */
        struct scrape scrapes[WANTS_MAX];
        unsigned history_asked; /* calls of the history that are still to come */
        bool awaits_history;    /* and goes on when they have come */
        bool recorded;          /* the decision's row is in the history */
        struct must_exist *creating;
        struct source *target; /* NULL: a kind that is not watched */
        const char *target_name, *target_uid, *target_hash;
        bool of_status; /* what is kept is its status */
        struct kube_call *call;
        enum kube_verb doing; /* what was sent last */
        const struct kube_type *doing_type;
        const char *doing_part; /* of it: "status"; NULL: the whole */
        const char *stalled_reason, *stalled_message;
        bool cleanup_refused; /* a delete */
};

/* runtime.c */
bool operator_leads(const struct operator* o);
unsigned runtime_limit(const struct runtime *rt); /* of what is in work at once */
void runtime_pump_soon(struct operator* o);
struct admission_id runtime_id(const struct task *t);
void runtime_finished(struct task *t, enum queue_outcome outcome, enum reconcile_result result);
struct source *runtime_source(struct runtime *rt, const struct kube_type *type);
bool runtime_may_send(void *runtime);
struct item *runtime_item(struct runtime *rt, struct str key); /* made when new */
void runtime_forget_item(struct runtime *rt, struct str key);
/* Nothing is made for this request any more. */
void item_end(struct item *item, const char *uid);
bool item_ends(const struct item *item, const char *uid);

/* runtime_metrics.c: nothing is done without metrics */
void operator_metrics_init(struct operator* o); /* before the sources */
void operator_metrics_done(struct operator* o);
void runtime_metrics_init(struct runtime *rt);
void runtime_metrics_source(struct source *s);
void runtime_metrics_finished(struct runtime *rt, enum queue_outcome outcome, enum reconcile_result result,
                              usec_t took);

/* reconcile.c */
void reconcile_start(struct runtime *rt, struct str key);
void reconcile_decide(struct task *t); /* with the answers that are there */
bool task_runs(const struct task *t);  /* a Job of it has not finished */
void task_free(struct task *t);

/* lookup.c: all that the decision wants; then it is made again */
void lookup_start(struct task *t);
void lookup_scraped(struct task *t); /* one more answer is there */
const struct answer *lookup_recall(void *task, const struct want *want);
bool lookup_only_history(const struct decision *d); /* which costs the server nothing and does not count */

/* scrape.c */
void scrape_start(struct task *t); /* all that the decision wants, at the same time */
bool scrape_pending(const struct task *t);
void scrape_cancel(struct task *t);

/* carry.c */
void carry_out(struct task *t);
void carry_next(struct task *t);
void carry_nothing(struct task *t);
/* ANSWER may be NULL: it was not the server. */
void carry_failed(struct task *t, const struct kube_answer *answer, const struct err *err);
/* Ends T, to be decided again: not before the server wants to be asked again, if it said when (above 0). */
void carry_later(struct task *t, usec_t retry_after);
/* Fills in namespace, manager and the leader's check. */
void carry_send(struct task *t, struct kube_request *r, kube_done done);
struct json *carry_parse(struct task *t, const struct kube_answer *answer);
/* apiVersion, kind and metadata to apply with: the uid and version of OF. */
struct json *carry_body(struct task *t, const struct kube_type *type, const struct json *of);
const char *carry_hash(struct task *t, const struct json *what);             /* 16 digits */
const char *carry_version(struct task *t, const struct kube_answer *answer); /* of the object in the answer */

/* child.c: true when a request is under way, which leads to carry_next() */
bool child_ensure(struct task *t, struct must_exist *e);

/* retire.c */
/*
 * After a decision that was carried out, or had nothing to write. Does nothing unless it `rests`, deletes nothing, and the
 * caches have seen all that was written.
 */
void retire(struct task *t);
bool retire_job_ended(const struct json *job);

/* stall.c */
void stall(struct task *t, const char *reason, const char *message);
/* True: it was noted, and what is left is gone on with. False: it may pass by itself. */
bool stall_by(struct task *t, const struct kube_answer *answer, const struct err *err);
bool stall_tries_again(const struct task *t);
/* The present status with the stall's conditions: nothing of what was decided is so. */
struct json *stall_tell(struct task *t);
bool stall_is_told(const struct task *t); /* by the present status */
bool stall_stands(const struct task *t);  /* the present status tells of any */
/* Takes back in STATUS (NULL: the present one) what an earlier stall told and settle has not said anew; NULL: nothing. */
struct json *stall_clear(struct task *t, struct json *status);

/* ownership.c: the JSON Patch that makes what we created ours to apply; NULL: nothing to do */
struct json *ownership_patch(struct arena *a, const struct json *object, const char *manager);

/* expect.c */
void expect_version(struct item *item, struct source *source, const char *version);
void expect_gone(struct item *item, struct source *source, const char *uid);
/* Drops what has come true; true when nothing is left to wait for. */
bool expectations_met(struct item *item);
void expectations_clear(struct item *item);
void settled_remember(struct item *item, const char *uid, const char *version, const char *hash);
void settled_forget(struct item *item, const char *uid);
bool settled_known(const struct item *item, const char *uid, const char *version, const char *hash);
void settled_clear(struct item *item);
