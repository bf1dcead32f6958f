/*
 * dgd_internal.h - what the files about target `dgd` share.
 *
 *   target_dgd.c  temporary deployments: made, waited for, taken away
 *   dgd_api.c     waiting for the loop, watching, asking, deleting
 *   dgd_pods.c    what their pods say: why one will never be ready, and how large a KV cache is
 */
#pragma once

#include "kube/kube.h"
#include "probe/sla/sla.h"

#define DGD_POD_LABEL     "nvidia.com/dynamo-graph-deployment-name"
#define DGD_LABEL_REQUEST "sonde.dev/request" /* the request's uid */
#define DGD_NOTE_URL      "sonde.dev/url"     /* where its frontend is, if not at its Service */

struct dgd_target {
        struct sla_target target;
        struct sla_target_config c; /* stop_fd is the target's own */
        struct kube *kube;
        struct arena arena;
        const char *owner_name, *owner_uid, *ns;
        const struct json *base; /* the deployment that candidates are made from */
        bool stopped;            /* told to stop */
        bool granted;            /* a request has been answered: what is forbidden later is so on purpose */
};

/* ---- dgd_api.c */

#define DGD_CALL_TIMEOUT   (20 * USEC_PER_SEC)
#define DGD_RBAC_LAG       (10 * USEC_PER_SEC) /* a Role that was just made is not known everywhere at once */
#define DGD_BACKOFF        (100 * USEC_PER_MS)
#define DGD_REMOVE_TIMEOUT (300 * USEC_PER_SEC)

extern const struct kube_type DGD_TYPE;

usec_t dgd_now(const struct dgd_target *t);
/* Turns the loop until *DONE (may be NULL) or WHEN, or, with MAY_STOP, until the profiler is told to stop. */
void dgd_wait(struct dgd_target *t, const bool *done, usec_t when, bool may_stop);
/* For *BACKOFF, which is doubled. */
void dgd_rest(struct dgd_target *t, usec_t *backoff, bool may_stop);
int dgd_say_stopped(struct err *err);

/* A watch of what is there. */
struct dgd_eye {
        struct cache *cache;
        struct reflector *reflector;
        bool *changed; /* set by whatever changes */
};
void dgd_eye_open(struct dgd_eye *e, struct dgd_target *t, const struct kube_type *type, const char *labels,
                  const char *fields, bool *changed);
void dgd_eye_open_one(struct dgd_eye *e, struct dgd_target *t, const char *name, bool *changed);
void dgd_eye_done(struct dgd_eye *e);
DEFINE_CLEANUP_STRUCT(struct dgd_eye, dgd_eye_done)

/* One request about deployments, not cut short by a stop; a list is of this request's temporary ones. */
int dgd_ask(struct dgd_target *t, enum kube_verb verb, const char *name, struct str body, struct arena *a,
            struct json **ret, struct err *err) _must_check_;
/* Whether another try may help: the request did not arrive, or nobody knows whether it did. */
bool dgd_may_pass(const struct dgd_target *t, const struct err *err, usec_t elapsed);
bool dgd_is_ours(const struct dgd_target *t, const struct json *dgd);
/* The server has no deployment NAME with UID any more. Below 0: it cannot be asked. */
int dgd_is_gone(struct dgd_target *t, const char *name, const char *uid, struct err *err);
/* Deletes the deployment NAME with UID, and no other, and waits until it is gone. Not cut short by a stop. */
int dgd_remove(struct dgd_target *t, const char *name, const char *uid, struct err *err) _must_check_;

/* ---- dgd_pods.c */

/* Why POD will never be ready, one sentence; NULL: it may be. In the arena. Asks for the last words of a crashed one. */
const char *dgd_pod_fault(struct dgd_target *t, struct arena *a, const struct json *pod);
/* What has become of the pods of a deployment that served: which one died, and its last words; NULL: none. */
const char *dgd_pods_why(struct dgd_target *t, struct arena *a, const char *name);
/* What POD waits for, for a time that is up; NULL: for nothing that it says. */
const char *dgd_pod_waits(struct arena *a, const struct json *pod);
/* The KV size that the workers among PODS say in their logs, for all ranks of C, 0: they do not. Keeps the logs below DIR (may be NULL). */
uint64_t dgd_kv_tokens(struct dgd_target *t, const struct cache *pods, const struct sla_candidate *c,
                       const char *dir);
