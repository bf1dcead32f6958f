/*
 * manage.h - what a controller manager does: owners, namespaces, Jobs, their time to live.
 *
 * Jobs are decided by a pure function, as Kubernetes 1.20's Job controller would; manage.c calls it after every change
 * of a Job or one of its pods and when a decision asked for it, and carries out the difference through the API's own
 * verbs. Owners: an object whose owners are all gone is deleted (background), an owner deleted in the foreground waits
 * for the dependents that block it, orphaned dependents lose the reference. A namespace that is deleted takes its
 * content along and goes when it is empty.
 */
#pragma once

#include "local/api.h"

struct job_decision {
        struct json **create; /* pods to create, complete but for metadata.name (generateName is set) */
        size_t n_create;
        const char **remove; /* names of pods to delete */
        size_t n_remove;
        struct json *status; /* the Job's new status; NULL: as it is */
        usec_t again;        /* wall time at which time alone changes something; 0: never */
        const char *event_reason, *event_message; /* one event; NULL: none */
        bool warning;
};

/*
 * PODS are those that the Job controls (terminating ones too). NOW is wall time. How often they have failed in a row
 * (for backoffLimit, and for the delay before the next: none, 10 s, doubled, to 6 min) is counted from the pods that
 * are there. Pods that are created and deleted get events of their own by whoever does it: Normal SuccessfulCreate
 * "Created pod: NAME", Normal SuccessfulDelete "Deleted pod: NAME", both from job-controller.
 */
struct job_decision job_decide(const struct json *job, const struct json *const *pods, size_t n, usec_t now,
                               struct arena *a);

struct manager;
/* Watches the store and uses the API; both outlive it. */
struct manager *manager_new(struct loop *loop, struct api *api, struct store *store, const struct log *log);
void manager_free(struct manager *m);

DEFINE_CLEANUP_PTR(struct manager *, manager_free)
