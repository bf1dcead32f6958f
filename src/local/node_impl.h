/*
 * node_impl.h - the node and its pods, shared by node.c, node_run.c, node_report.c and node_register.c.
 */
#pragma once

#include "local/node_private.h"

enum step {
        POD_NEW,      /* nothing was done for it */
        POD_FETCHING, /* what it refers to is on its way */
        POD_WAITING,  /* something is missing: again later */
        POD_RUNNING,  /* its supervisor runs */
        POD_ENDED,    /* its state is final, or it was refused */
};

struct node_pod {
        struct node *n;
        char *uid, *ns, *name, *dir;
        enum step step;
        bool gone;        /* not in the API any more */
        int64_t stopping; /* grace that the supervisor was told; -1: not told */

        /* fetching */
        struct arena fetched;
        struct pod_source *sources;
        size_t n_sources, at;
        struct kube_call *fetch;
        bool refresh; /* tokens of a pod that runs */
        struct timer retry, rotate;
        unsigned tries;
        char *waiting_reason, *waiting_message, *waiting_container;
        char *failed_reason, *failed_message;

        /* the supervisor */
        struct proc_id supervisor;
        struct io pidfd;
        int watch; /* of its directory; -1: none */
        struct doc state;

        /* reporting */
        struct kube_call *report;
        uint64_t sent; /* hash of the last status that arrived */
        uint64_t sending;
        bool dirty, deleting;
        bool reported_before; /* terminal already when it was first seen, and nothing here knows more */
        struct timer report_again;
};

struct node {
        struct node_config config; /* strings are ours */
        struct loop *loop;
        char *service_host, *service_port;
        struct cache *pods;
        struct reflector *reflector;
        struct events *events;
        struct map by_uid;
        struct io inotify;
        struct defer scheduling;
        struct map binding;   /* uid -> the call */
        struct list suspects; /* directories whose pod may be gone */
        int64_t cpu_milli, memory;

        struct cache *nodes; /* the one Node: somebody may cordon it, taint it or delete it */
        struct reflector *node_reflector;
        struct doc node; /* the Node, as the server has it */
        struct kube_call *node_call, *lease_call;
        struct timer node_timer, lease_timer;
        bool lease_made;

        bool stopping, mounts_forbidden;
        char *mounts_message;
        void (*stopped)(void *arg);
        void *stopped_arg;
};

#define HOST_IP "127.0.0.1"

/* ---- node_register.c */
void node_register(struct node *n);
void node_register_done(struct node *n);
void node_measure(struct node *n); /* CPUs, memory */

/* ---- node_run.c */
struct node_pod *node_pod_new(struct node *n, const struct cache_entry *e);
void node_pod_free(struct node_pod *p);
/* Does what the pod object and the supervisor's state ask for now. */
void node_pod_look(struct node_pod *p);
void node_pod_state_changed(struct node_pod *p);
bool node_pod_live(const struct node_pod *p); /* its supervisor runs */
void node_pod_stop(struct node_pod *p, int64_t grace);
/* What is left of a pod that the API does not know: ended and removed. */
void node_pod_orphan(struct node *n, const char *uid);
/* Fetches what the pod refers to and starts it. */
void node_pod_fetch(struct node_pod *p, const struct json *pod);
void node_pod_fetched(struct node_pod *p);
void node_pod_missing(struct node_pod *p, const char *reason, const char *message, const char *container);

/* ---- node_report.c */
void node_pod_report(struct node_pod *p);
void node_pod_event(struct node_pod *p, bool warning, const char *reason, const char *note);
/* Events of the changes between two states. */
void node_pod_tell(struct node_pod *p, const struct json *before, const struct json *after);

/* ---- node_bind.c */
void node_schedule_soon(struct node *n);
void node_bind_seen(struct node *n,
                    const char *uid); /* the cache shows where the pod is, or that it is gone */
void node_bind_done(struct node *n);

/* ---- node.c */
void node_check_stopped(struct node *n);
