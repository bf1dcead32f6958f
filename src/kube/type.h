/*
 * type.h - resource types, their paths, resource versions.
 */
#pragma once

#include "json/json.h"

struct kube_type {
        const char *group; /* "" for core */
        const char *version;
        const char *plural;
        const char *kind;
        bool namespaced;
        bool has_status; /* has the status subresource */
};

extern const struct kube_type KUBE_CONFIGMAP, KUBE_EVENT /* events.k8s.io/v1 */, KUBE_JOB, KUBE_LEASE,
        KUBE_NAMESPACE, KUBE_NODE, KUBE_POD, KUBE_PVC, KUBE_ROLE, KUBE_ROLEBINDING, KUBE_SERVICEACCOUNT;

/* For json_parse(): an object, or the event of a watch with one in it, without metadata.managedFields. */
extern const struct json_limits KUBE_OBJECT_LIMITS, KUBE_WATCHED_LIMITS;
/* The same for who wants no more of an object than its metadata.resourceVersion: what follows that is not read. */
extern const struct json_limits KUBE_VERSION_LIMITS;

/* "batch/v1" or "v1". */
const char *kube_api_version(const struct kube_type *type, struct arena *a);
/* /apis/batch/v1/namespaces/NS/jobs/NAME/SUB; NS, NAME and SUB may be NULL. Every segment is encoded. */
void kube_path(struct buf *out, const struct kube_type *type, const char *ns, const char *name,
               const char *sub);

/*
 * Resource versions are decimal strings of any length, comparable within one type: longer is newer, of equal length
 * the greater one is. Below, equal or above 0. An empty one is older than any other; one that is no decimal string
 * compares as text, so that nothing is ever lost to it.
 */
int rv_cmp(struct str a, struct str b);

/* metadata.NAME of an object, or NULL. */
const char *meta_str(const struct json *object, const char *name);
/* The uid of the controller among metadata.ownerReferences, or NULL. */
const char *meta_controller_uid(const struct json *object);
