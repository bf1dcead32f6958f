/*
 * types.h - the resources that are served: names, verbs, defaults, validation, printed columns.
 *
 * A type is a row of a table for built-in resources and made from a CustomResourceDefinition for the others; the API
 * server treats both alike. What is particular to one built-in resource is in its functions (strategy), which are pure:
 * an object in, an object or causes out.
 */
#pragma once

#include "kube/kube.h"
#include "local/shape.h"

enum { /* verbs, as discovery lists them */
       VERB_CREATE = 1,
       VERB_DELETE = 2,
       VERB_DELETECOLLECTION = 4,
       VERB_GET = 8,
       VERB_LIST = 16,
       VERB_PATCH = 32,
       VERB_UPDATE = 64,
       VERB_WATCH = 128,
       VERB_ALL = 255,
};

/* Everything wrong with an object; messages are the API server's own. */
struct causes {
        struct arena *a;
        struct cause {
                const char *reason;  /* "FieldValueInvalid" */
                const char *field;   /* "spec.template.spec.restartPolicy" */
                const char *message; /* `Unsupported value: "x": supported values: ...` */
        } * list;
        size_t n;
};
void causes_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...) _printf_(4, 5);

struct api_type;

/* What a strategy may know besides the object. */
struct strategy_context {
        const struct api_type *type;
        usec_t now; /* wall time */
        struct arena *a;
};

struct strategy {
        /* Fills in defaults; before admission, on every write (and on reads of objects from elsewhere: none here). */
        void (*defaults)(const struct strategy_context *c, struct json *object);
        /* Drops or sets what the server decides: status of new objects, fields that only the server writes. OLD is
         * NULL for a create. SUB is "" or "status". */
        void (*prepare)(const struct strategy_context *c, const char *sub, const struct json *old,
                        struct json *object);
        /* OLD is NULL for a create. Metadata is checked by the server for all types alike. */
        void (*validate)(const struct strategy_context *c, const char *sub, const struct json *old,
                         const struct json *object, struct causes *causes);
        /* The value of a field selector (beside metadata.name and metadata.namespace): NULL when not selectable. "" when
         * the object has none. OBJECT NULL: only whether the field is selectable matters. */
        const char *(*field)(const struct json *object, const char *path, struct arena *a);
        /* One row of kubectl's table: cells, one for each column. */
        struct json *(*row)(const struct strategy_context *c, const struct json *object);
};

struct table_column {
        const char *name, *type, *format, *description;
        int priority;
        const char *json_path; /* custom resources: ".status.phase" */
};

struct api_type {
        struct kube_type kube; /* group, version, plural, kind, namespaced, has_status */
        const char *store;     /* "pods", "jobs.batch": interned in the store */
        const char *singular;  /* "" for built-ins, as 1.20's discovery says */
        const char *list_kind;
        const char *const *short_names, *const *categories; /* NULL-terminated, or NULL */
        const char *const *subresources;                    /* "status", "log"; NULL-terminated, or NULL */
        const char *storage_hash;                           /* storageVersionHash of discovery; "": none */
        unsigned verbs;
        enum name_kind name;   /* what a name may be */
        bool path_name;        /* instead: anything that fits a path segment (roles and bindings) */
        bool has_generation;   /* metadata.generation counts changes of all but metadata and status */
        bool graceful;         /* deletion takes a grace period (pods) */
        bool create_on_update; /* PUT of a name that is free creates it */
        bool update_needs_rev; /* PUT without resourceVersion is refused */
        bool orphans;          /* deletion leaves dependents alone unless told otherwise */
        bool returns_deleted;  /* DELETE answers with the object instead of a Status */
        const struct shape *shape;
        const struct strategy *strategy;
        /* Another version of what is stored (events.k8s.io over core events): changed in place. NULL: the same. */
        void (*to_stored)(const struct api_type *t, struct json *object, struct arena *a);
        void (*from_stored)(const struct api_type *t, struct json *object, struct arena *a);
        const char *stored_version;        /* apiVersion in the store; NULL: its own */
        const char *const *other_versions; /* further apiVersions that are served; NULL-terminated, or NULL */
        const struct table_column *columns; /* NULL: Name, Created At */
        size_t n_columns;
        /* custom resources */
        struct schema *schema; /* NULL: built-in, or nothing to check */
        bool preserve;         /* preserveUnknownFields at the root */
        struct crd *crd;       /* NULL: built-in */
};

/* The table of built-in resources, made with their shapes. Free with types_free(). */
struct types;
struct types *types_builtin(void);
void types_free(struct types *t);
const struct shapes *types_shapes(const struct types *t);
size_t types_count(const struct types *t);
struct api_type *types_get(struct types *t, size_t i);

/* storageVersionHash of a custom resource: of its stored version. */
const char *types_storage_hash(const char *group, const char *version, const char *kind, struct arena *a);

DEFINE_CLEANUP_PTR(struct types *, types_free)
