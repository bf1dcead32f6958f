/*
 * decide - types: what a controller sees and what it returns.
 *
 * A controller is two pure functions over what is known now:
 *
 *     plan     which objects must exist (and which must not)
 *     settle   what the request's status is, given what is there
 *
 * Both get the same view and add to the same decision. They use nothing but the view: no clock, no randomness, no
 * network, no memory of earlier calls. Names are derived. So deciding twice gives the same answer, a crash between any
 * two writes is harmless, and a test can drive a controller through every order of events in memory.
 *
 * When the view is not enough, a decision may `want` a bounded number of look-ups; the controller is then called again
 * with the answers, before anything of the first call is carried out.
 *
 * How it is carried out is src/operator's matter: what must exist and is not seen is created; what is seen and differs
 * is applied with its uid and version; what must not exist is deleted with its uid; then the status is written, if it
 * differs; then events are recorded. The next call comes when the cache has seen all that was written.
 */
#pragma once

#include "base/base.h"
#include "history/history.h"
#include "kube/kube.h"
#include "json/json.h"

/* ---- what a controller sees: read-only, valid for the call */

struct object {
        const struct kube_type *type;
        const struct json *json; /* whole, with apiVersion and kind, without managedFields */
        const char *name, *uid;
};

enum want_kind {
        WANT_OBJECT, /* one object that is not watched; in the request's namespace */
        WANT_EVENTS, /* the events about one object (by uid) */
        WANT_LOG,    /* the last lines of one container of a pod */
        WANT_PODS,   /* the pods of a Job (by its uid), as the server has them now */
        WANT_PRIORS, /* what the history knows of a shape, which is the name; never fails, and costs nothing twice */
        WANT_SERIES, /* the same of a series, which is the name */
        WANT_LIST, /* objects with a label selector, which is the name; of a namespaced kind in the request's namespace;
                        at most 5000, and an error when there are more */
        WANT_ALL, /* the same, wherever the operator watches: in all namespaces, or in its one */
        WANT_SCRAPE, /* the text at an address, which is the name: "http://10.0.0.7:9400/metrics", none of a link; at most
                        1 MiB within 3 s */
};

struct want {
        enum want_kind kind;
        const struct kube_type *type; /* of the object */
        const char *name, *uid, *container;
        /* WANT_LIST, WANT_ALL: leaves of each object what is looked at, as thousands are in memory at once; may be NULL */
        void (*project)(struct json *object, struct arena *a);
};

struct answer {
        struct want want;
        const struct json *
                json; /* WANT_OBJECT: the object, NULL: there is none. WANT_EVENTS, _PODS, _LIST, _ALL: a list */
        struct str text;             /* WANT_LOG, WANT_SCRAPE */
        const struct priors *priors; /* WANT_PRIORS; NULL: nothing is known */
        const struct series *series; /* WANT_SERIES; NULL: nothing is known */
        const char *error;           /* why it could not be had, and will not soon; NULL: it could */
};

/* Whether a request may begin, where the operator limits how many do. */
struct admission {
        bool admitted;
        size_t position;    /* its place in the queue, from 1; 0: not known yet */
        const char *reason; /* what it waits for, one sentence */
        usec_t starts;      /* wall time when it will probably begin; 0: not known */
};

/* How a place is told: "1" to "10", then "10+", "100+", "1000+". */
const char *admission_position(size_t position);

struct view {
        const struct json *request;
        const struct kube_type *type; /* of the request */
        const struct object
                *children; /* owned, directly or through another child; by type as declared, then name */
        size_t n_children;
        const struct answer *answers; /* to what was wanted */
        size_t n_answers;
        usec_t now;           /* wall time */
        const void *settings; /* the operator's, see the controller's registration */
        struct arena *arena;  /* for what is returned */
        /* What decide_want() asks first: an answer that is known already, or NULL. NULL: nothing is. */
        const struct answer *(*recall)(void *arg, const struct want *want);
        void *recall_arg;
        const struct admission *admission; /* NULL: there is no limit, and whoever wants to may begin */
};

/* The condition of that type as the request's status has it, or NULL. */
const struct json *view_condition(const struct view *v, const char *type);
const struct object *view_child(const struct view *v, const struct kube_type *type,
                                const char *name); /* or NULL */

/* ---- what it returns */

enum exist_how {
        EXIST_APPLY, /* keep what is given here as it is given */
        EXIST_ONCE,  /* create it; never touch it afterwards (Jobs) */
};

struct must_exist {
        const struct kube_type *type;
        struct json *json; /* metadata.name is set; owner and labels are added by the runtime */
        enum exist_how how;
        struct json
                *status; /* kept as given in its status subresource, once it is there; NULL: none of ours */
};

struct must_not_exist {
        const struct object *object;
        const char *propagation; /* NULL: "Background" */
};

/* What a request has to do with the limits. See operator/admission.h. */
enum admission_stand {
        ADMISSION_NONE,  /* nothing: it is over, suspended or refused, or there is nothing to run */
        ADMISSION_WAITS, /* it wants to begin; it begins nothing before view.admission says admitted */
        ADMISSION_HOLDS, /* an attempt is under way, or begins with this decision */
};

enum { ADMISSION_PRIORITY_DEFAULT = 5, ADMISSION_PRIORITY_MAX = 10 };
/* A request waits in the place of one that was made so much earlier, for each step of priority. */
#define ADMISSION_PRIORITY_STEP (10 * 60 * USEC_PER_SEC)
/* In the reason of one whose place is that in its namespace: the exact place of one behind the tenth is found by it. */
#define ADMISSION_OF_NAMESPACE "runs of a namespace may be under way at once"

struct admission_wish {
        enum admission_stand stand;
        int64_t priority; /* 0 to 10 */
        usec_t since;     /* wall time */
        /* Of one that holds a slot: wall time when it probably ends (0: not known), and when that was seen. */
        usec_t ends, now;
};

enum { WANTS_MAX = 8 };

struct decision {
        VEC(struct must_exist) exist;
        VEC(struct must_not_exist) absent;
        struct json *status;           /* NULL: as it is */
        const struct history_row *row; /* committed to the history before the status is written; NULL: none */
        VEC(struct event) events;
        usec_t again_at; /* wall time; 0: only when something changes */
        struct admission_wish admission;
        struct want wants[WANTS_MAX];
        size_t n_wants;
        /*
         * The run is over, and nothing of it is left to do: its `passing` children need not be remembered. Whatever changes
         * brings what has changed back, and the next decision makes do without the others.
         */
        bool rests;
};

void decision_done(struct decision *d);

void decide_exist(struct decision *d, const struct kube_type *type, struct json *json, enum exist_how how);
/*
 * The same of a kind with a status subresource, which nobody but us writes. A status that is another one at each decision (what
 * was just scraped) is written each time, and each write brings the next decision at once, also while something behind it fails.
 */
void decide_exist_with_status(struct decision *d, const struct kube_type *type, struct json *json,
                              enum exist_how how, struct json *status);
void decide_absent(struct decision *d, const struct object *object);
/* The same, and it is there until all that it owns is gone: a Job, until its pods are. */
void decide_absent_foreground(struct decision *d, const struct object *object);
/* The earliest of all that were asked for. */
void decide_again_at(struct decision *d, usec_t when);
/* The answer to a look-up, or NULL after asking for it: return then, and be called again. */
const struct answer *decide_want(struct decision *d, const struct view *v, const struct want *want);
void decide_event(struct decision *d, const struct view *v, enum event_type type, const char *reason,
                  const char *fmt, ...) _printf_(5, 6);

/*
 * Sets condition TYPE in STATUS (an object with a list "conditions", made if missing), in the place of one of that type,
 * keeping lastTransitionTime from the request's present status unless the condition's status changes. STATUS is the
 * caller's own (a copy, if it begins with what is there). VALUE is "True", "False" or "Unknown".
 */
void decide_condition(const struct view *v, struct json *status, const char *type, const char *value,
                      const char *reason, const char *message);

/* ---- registration */

#define DECIDE_LABEL_REQUEST "sonde.dev/request" /* of a child that is loose: the request's uid */

struct child_kind {
        const struct kube_type *type;
        /* Index of the child kind that owns these (pods through Jobs); -1: the request does. */
        int through;
        void (*project)(struct json *object, struct arena *a); /* see cache.h; may be NULL */
        /*
         * It outlives the request: instead of an owner it has DECIDE_LABEL_REQUEST, by which it is
         * found and known as ours.
         */
        bool loose;
        bool optional; /* the cluster may not have this kind: then there are none, and making one tells KindNotInstalled */
        bool passing; /* not looked at any more once a decision `rests` */
};

struct controller {
        const char *name;             /* field manager, label, metrics: "dgdr" */
        const struct kube_type *type; /* of the request */
        const char *selector;         /* label selector of requests, or NULL */
        const struct child_kind *children;
        size_t n_children;
        const void *settings;
        void (*plan)(const struct view *view, struct decision *decision);
        void (*settle)(const struct view *view, struct decision *decision);
        void (*project)(struct json *request, struct arena *a); /* of the request's cache; may be NULL */
};

DEFINE_CLEANUP_STRUCT(struct decision, decision_done)
