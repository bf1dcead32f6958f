/*
 * api_internal.h - what the files of the API server share; see api.h for who does what.
 */
#pragma once

#include "local/api.h"
#include "local/fields.h"
#include "local/strategic.h"

enum {
        API_OBJECT_MAX = 1536 << 10, /* of a stored object, as etcd has it */
};

struct crd;

struct api {
        struct loop *loop;
        struct store *store;
        const struct log *log;
        char *token, *pods_dir, *address;
        struct types *builtin;
        VEC(struct api_type *) types; /* served: built-in ones first */
        VEC(struct crd *) crds;
        struct map topics; /* type's name in the store -> struct topic: who watches it */
        struct store_listener listener;
        usec_t bookmark_every;
        struct arena_pool arenas;
        struct list requests;           /* under way */
        struct list logs;               /* that are followed */
        struct buf openapi, openapi_pb; /* kept until the types change; empty: not made yet */
};

/* ---- api.c */
void api_types_changed(struct api *api);

/* ---- status.c: all return -1, with the answer set */
int fail(struct call *c, int code, const char *reason, struct json *details, const char *fmt, ...)
        _printf_(5, 6);
int fail_bad_request(struct call *c, const char *fmt, ...) _printf_(2, 3);
int fail_not_found(struct call *c);
int fail_exists(struct call *c, const char *name);
int fail_modified(struct call *c);
int fail_conflict(struct call *c, const char *fmt, ...) _printf_(2, 3);
int fail_forbidden(struct call *c, const char *name, struct json *causes, const char *fmt, ...)
        _printf_(4, 5);
int fail_unknown(struct call *c); /* 404 without a name */
int fail_method(struct call *c);
/* "KIND "NAME" is invalid: ..."; NAME may be "". */
int fail_invalid(struct call *c, const char *group, const char *kind, const char *name,
                 const struct causes *causes);
/* The same of one option of a request: "ListOptions.meta.k8s.io "" is invalid: FIELD: ...". */
int fail_option(struct call *c, const char *kind, const char *reason, const char *field, const char *message);
int fail_invalid_object(struct call *c, const struct json *object, const struct causes *causes);
struct json *status_success(struct call *c, const struct json *object);

/* ---- meta.c */
struct json *object_meta(struct arena *a, struct json *object); /* metadata, made when it is missing */
/* Names, uid, times and generation of a new object; E.g. generateName becomes a name. */
int meta_create(struct call *c, struct json *object);
/* What an update may not change is taken from OLD. */
void meta_update(struct call *c, const struct json *old, struct json *object);
void meta_validate(struct call *c, const struct json *old, const struct json *object, struct causes *causes);
/* Brings metadata into Kubernetes' order without what is unknown or empty. */
void meta_tidy(struct json *object, struct arena *a);
struct json *time_now(struct call *c);

/* ---- normalize.c: as a server that keeps typed objects would write it again: no unknown fields, no nulls, nothing
 * empty that Kubernetes leaves out. */
void normalize_builtin(const struct shape *shape, struct json *object, struct arena *a);

/* ---- decode.c: what of an object does not fit its type, in the decoder's words; NULL: nothing. */
const char *decode_problem(const struct shape *shape, const struct json *object, struct arena *a);

/* ---- select.c */
struct selector; /* labels and fields; lives in the arena it was made in */
int selector_parse(struct call *c, const char *labels, const char *fields, struct selector **ret);
bool selector_empty(const struct selector *s); /* NULL: yes */
bool selector_matches(const struct selector *s, const struct api_type *type, const struct object *o);
/* metadata.namespace that every match must have; NULL. */
const char *selector_namespace(const struct selector *s);

/* ---- table.c */
enum format { AS_OBJECT, AS_TABLE, AS_METADATA };
struct view { /* how the client wants to see objects */
        enum format as;
        const char *version;        /* of meta.k8s.io: "v1", "v1beta1" */
        const char *include_object; /* of tables: "None", "Metadata", "Object" */
        bool pretty;
        bool wants_list; /* of AS_METADATA */
};
/* The object as its client sees it: another version, a Table with one row, only the metadata. HEADERS: with column
 * definitions. */
struct json *view_object(struct call *c, const struct view *v, struct json *object, bool headers);
/* A list under way: begin, add items, end; the text is in OUT. */
struct list_writer {
        struct call *c;
        const struct view *view;
        struct buf *out;
        size_t n;
        size_t head; /* where the items begin: the metadata goes in front of them at the end */
};
void list_begin(struct list_writer *w);
void list_add(struct list_writer *w, const struct object *o);
/* CONTINUE_TOKEN may be NULL; REMAINING below 0: not known. */
void list_end(struct list_writer *w, uint64_t rev, const char *continue_token, int64_t remaining);
struct json *object_parse(const struct object *o, struct arena *a);
/* The first value that a JSONPath of kubectl (".status.conditions[?(@.type=='Ready')].status") finds; NULL. */
const struct json *jsonpath_find(const struct json *root, const char *path);
const struct table_column *table_name_column(void), *table_age_column(void);
const char *human_duration(usec_t d, struct arena *a); /* "5s", "3m20s", "2h", as kubectl prints ages */

/* ---- verbs.c, delete.c */
struct json *call_newest(struct call *c); /* the object parsed, as it is stored; NULL: not there */
void do_delete(struct call *c);
void do_delete_collection(struct call *c, struct selector *selector);
/* Stages OBJECT as it is; nothing is checked. */
int call_replace(struct call *c, struct json *object);
/* The object has lost its last finalizer or grace period: removes it. Returns its last state. */
struct json *call_remove(struct call *c, const struct json *old);

/* ---- request.c: one request until its answer */
struct request {
        struct list node; /* of api->requests */
        struct api *api;
        struct http_exchange *ex; /* NULL: the peer has gone */
        struct arena a;
        struct call c;
        struct view view;
        bool old_watch; /* GET .../watch/... */
        bool no_sub;    /* the status of a custom resource that has none */
};
void request_answer(struct request *r); /* c.code and c.answer, when they are durable */
void request_reply(struct request *r, const char *type,
                   struct str body);                            /* c.code, now; the request is gone then */
void request_reply_text(struct request *r, struct buf *json);   /* the same with a JSON text */
const char *request_param(struct request *r, const char *name); /* NULL: not there */
void request_free(struct request *r);

/* ---- list.c, watch.c */
struct list_options {
        const char *resource_version, *match, *continue_token;
        uint64_t limit;
        struct selector *selector;
        bool bookmarks;
        const char *send_initial_events; /* as asked for: where it is said, also "false", other rules hold */
        bool initial_events;
        uint64_t timeout; /* seconds; 0: not said */
};
int list_options_read(struct request *r, struct list_options *o);
void do_list(struct request *r);
void do_watch(struct request *r);
int fail_too_new(struct call *c, uint64_t rev);                 /* 504: no such revision yet */
int parse_rev(struct call *c, const char *text, uint64_t *ret); /* of resourceVersion */
void watches_change(struct api *api, const struct change *ch);
void watches_free(struct api *api);

/* ---- crd.c */
struct crd *crd_ref(struct crd *crd); /* NULL is harmless, here and below */
void crd_unref(struct crd *crd);
void crds_load(struct api *api);
void crds_resume(struct api *api); /* what an engine that was killed left undone about names */
void crd_changed(struct api *api, const struct change *ch);
void crds_free(struct api *api);
/* Prunes and defaults a custom resource. */
void custom_decode(struct call *c, struct json *object);
void custom_validate(struct call *c, const struct json *object, struct causes *causes);

/* ---- quota.c, admit.c, review.c, log.c */
/* 403 when a ResourceQuota of the namespace would be exceeded by OBJECT in place of OLD. */
int quota_admit(struct call *c, const struct json *old, const struct json *object);
/* 403 when a new pod names an account or a class that is not there. */
int admit_pod(struct call *c, const struct json *pod);
void quota_changed(struct api *api, const struct change *ch);
void do_review(struct call *c);
void do_subresource(struct call *c); /* POST pods/NAME/binding, serviceaccounts/NAME/token */
void do_log(struct request *r);
void logs_free(struct api *api);
