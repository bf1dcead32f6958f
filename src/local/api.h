/*
 * api.h - the API server: requests, verbs, lists, watches, tables, deletion.
 *
 * A request becomes a struct call (request.c): a verb on a resource, with its options. A verb works on the newest
 * version of an object, stages what it writes, and leaves a status code and a body; it knows nothing of HTTP, so that
 * the manager uses the same verbs as clients do. The answer is sent when what it tells is durable.
 *
 *   api.c       what is served; who hears of changes
 *   request.c   HTTP to struct call: paths, query, authentication, content types, body
 *   verbs.c     get, create, update, patch; delete.c deletes; list.c lists and pages; watch.c streams
 *   decode.c    what does not fit a built-in type; normalize.c: how one is written again
 *   meta.c      metadata: checked, defaulted, generated names; check.c: formats of names and labels
 *   select.c    label and field selectors
 *   table.c     rows for kubectl, PartialObjectMetadata; jsonpath.c: columns of custom resources
 *   status.c    metav1.Status, with the API server's wording
 *   crd.c       CustomResourceDefinitions: conditions, schemas, types made from them
 *   quota.c     ResourceQuotas: admission and status; admit.c: what else a new pod must have
 *   review.c    SelfSubjectAccessReview and friends: the one user may do everything; bindings and tokens
 *   log.c       pods/log, from the node's files
 *
 * What is particular to one built-in resource is in strategy_*.c (strategy_internal.h says which).
 */
#pragma once

#include "local/openapi.h"
#include "local/store.h"
#include "local/types.h"
#include "net/net.h"

enum { API_BODY_MAX = 3 << 20 }; /* of a request, as Kubernetes has it */

struct api;

struct api_config {
        struct loop *loop;
        struct store *store;   /* borrowed */
        const char *token;     /* bearer token of the one user */
        const char *pods_dir;  /* the node's DIR/pods, for logs; may be NULL */
        const char *address;   /* what discovery tells */
        const struct log *log; /* may be NULL */
        usec_t bookmark_every; /* 0: 60 s */
};

struct api *api_new(const struct api_config *config, struct err *err) _must_check_;
void api_free(struct api *api);
void api_request(void *api, struct http_exchange *ex); /* for http_server_config.on_request */

enum verb {
        DO_GET,
        DO_LIST,
        DO_WATCH,
        DO_CREATE,
        DO_UPDATE,
        DO_PATCH,
        DO_DELETE,
        DO_DELETE_COLLECTION,
};

enum patch_type { PATCH_JSON, PATCH_JSON_MERGE, PATCH_STRATEGIC, PATCH_APPLY };

struct call {
        struct api *api;
        struct arena *a;
        struct api_type *type;
        enum verb verb;
        const char *ns;   /* "" for cluster-scoped types and lists over all namespaces */
        const char *name; /* NULL: the collection */
        const char *sub;  /* "": the object itself */
        struct json *body;
        enum patch_type patch;
        /* options */
        bool dry_run, force;
        const char *manager;         /* field manager */
        const char *propagation;     /* NULL: the type's default */
        const char *if_uid, *if_rev; /* preconditions of a delete */
        int64_t grace;               /* -1: the object's own */
        /* the answer */
        int code;
        struct json *answer; /* an object or a Status */
};

/* Carries out a verb on one object; fills in code and answer. */
void api_do(struct call *c);
/* The served type; NULL. VERSION may be NULL. */
struct api_type *api_find_plural(struct api *api, const char *group, const char *version, const char *plural);
size_t api_type_count(const struct api *api); /* served now */
struct api_type *api_type_at(const struct api *api, size_t i);
void api_delete_all(struct call *c); /* every object of the type, in c->ns or (NULL) everywhere */
bool object_deleting(const struct json *object);
bool has_finalizer(const struct json *object, const char *name);
/* One event about OBJECT, as a controller records it. */
void api_event(struct api *api, const struct json *object, const char *component, bool warning,
               const char *reason, const char *message);

DEFINE_CLEANUP_PTR(struct api *, api_free)
