/*
 * client.h - requests with typed errors, retries where they are safe, rate limit.
 *
 * One struct kube is one pool of connections to one API server. Errors come with a code that says what to do (see
 * err.h) and the server's own message. Repeated by itself, with jittered backoff from 100 ms to 10 s and at most 10
 * times within the request's timeout:
 *   - anything that was certainly not carried out: no connection, 429 or 503 with Retry-After (which is respected),
 *     401 once after the credentials were renewed;
 *   - reads (get, list) also after a lost connection or a 5xx.
 * A write whose outcome is unknown (also a 504) comes back as E_LOST or E_TIMEOUT: its caller reads and decides again.
 * The timeout counts from kube_send(), also while a call waits for the limit or for credentials.
 * 500 "request is too large", 413 and 422 are permanent (E_TOO_LARGE, E_REFUSED).
 */
#pragma once

#include "kube/auth.h"
#include "kube/type.h"

struct kube;
struct kube_call;

struct kube_options {
        const char *user_agent;   /* NULL: sonde/VERSION */
        unsigned max_connections; /* 0: 8 */
        unsigned qps, burst;      /* 0: no limit. Waiting is first come, first served */
        struct metrics *metrics;  /* rest_client_*; may be NULL */
};

/* CONFIG is borrowed and outlives it. */
struct kube *kube_new(struct loop *loop, const struct kube_config *config, const struct kube_options *options,
                      struct err *err) _must_check_;
void kube_free(struct kube *k); /* calls that are under way end without a callback */
struct loop *kube_loop(struct kube *k);

enum kube_verb {
        KUBE_GET,
        KUBE_LIST,
        KUBE_WATCH,
        KUBE_CREATE,
        KUBE_UPDATE,
        KUBE_PATCH_JSON,
        KUBE_PATCH_MERGE,
        KUBE_PATCH_STRATEGIC,
        KUBE_APPLY, /* server-side */
        KUBE_DELETE,
        KUBE_DELETE_COLLECTION,
};

struct kube_request {
        enum kube_verb verb;
        const struct kube_type *type;
        const char *ns, *name, *subresource;
        const char *path; /* instead of the four above: discovery, logs; encoded */
        struct str body;  /* of writes; of deletes: DeleteOptions, see kube_delete_options() */

        const char *field_manager; /* writes */
        bool force;                /* apply: take over fields of other managers */
        bool dry_run;
        bool metadata_only; /* the answer need not hold more (a server may send all the same) */

        const char *label_selector, *field_selector;
        unsigned limit;
        const char *continue_token;
        const char *resource_version, *resource_version_match;
        bool bookmarks, send_initial_events; /* watch */
        unsigned timeout_seconds;            /* watch: the server's end of it */

        /* Sent as this bearer token's owner, whatever the client's own credentials are; a client certificate would still be
         * there, so such a client is made without one (kube_config_bare()). Wiped afterwards. */
        const char *token;

        usec_t timeout;      /* 0: 60 s (longer than any webhook's 30 s); streams: until the headers */
        usec_t idle_timeout; /* streams */
        /* Not sent, and E_CANCELED, when it says no: asked right before the request leaves, every time. */
        bool (*may_send)(void *arg);
        void *may_send_arg;
};

struct kube_answer {
        int status;         /* 0: none */
        struct str body;    /* whole; borrowed for the callback. Streams: empty */
        usec_t retry_after; /* 0: not said */
};

typedef void (*kube_done)(void *arg, const struct kube_answer *answer, const struct err *err);

/* DONE comes once, from the loop, ERR NULL on success; the call is gone then. REQUEST is copied. */
struct kube_call *kube_send(struct kube *k, const struct kube_request *request, kube_done done, void *arg);
/* The same for a list or a watch that is read as it comes. ON_DATA only gets bodies of 200. No retries. */
struct kube_call *kube_stream(struct kube *k, const struct kube_request *request,
                              void (*on_data)(void *arg, struct str chunk), kube_done done, void *arg);
void kube_cancel(struct kube_call *call); /* no callback */

/* Runs the loop until the call is done: for the command line. The body is in the arena. */
int kube_do(struct kube *k, const struct kube_request *request, struct arena *a, struct str *ret_body,
            struct err *err) _must_check_;

/* DeleteOptions as JSON. UID and RESOURCE_VERSION are preconditions (NULL: none); PROPAGATION "Background", … */
char *kube_delete_options(struct arena *a, const char *uid, const char *resource_version,
                          const char *propagation);

/* What the server said about a failure, whatever it was: a Status, text, HTML or nothing. */
struct kube_status {
        int code;
        const char *reason;  /* "AlreadyExists"; "" when not said */
        const char *message; /* "" when not said */
        const char *cause;   /* reason of the first cause; "" if none */
        const char *kind;    /* of what it is about, as the server calls it: "jobs"; "" when not said */
        usec_t retry_after;
        bool has_causes;
};
/* Fills in RET from an HTTP status and a body (strings in the arena), and ERR with a code and a sentence. VERB tells
 * a failed JSON Patch test from an invalid object. Always returns -1. */
int kube_status_error(struct arena *a, int http_status, struct str body, enum kube_verb verb,
                      struct kube_status *ret, struct err *err);
/* A create failed because its namespace is gone or being deleted: nothing can be made there, and nothing need be said. */
bool kube_namespace_ends(struct arena *a, const struct kube_answer *answer, const struct err *err);
const char *kube_verb_name(enum kube_verb verb); /* "get" */

DEFINE_CLEANUP_PTR(struct kube *, kube_free)
