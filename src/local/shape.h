/*
 * shape.h - what fields a type has, and how its lists and maps are merged.
 *
 * One description for built-in types (read once from a table of text, see types/) and for custom resources (made from
 * their openAPIV3Schema). Patches, managedFields, OpenAPI and `kubectl explain` all walk shapes. Read-only once made.
 */
#pragma once

#include "json/json.h"

enum shape_kind {
        SHAPE_ANY, /* anything goes: raw extensions, preserve-unknown-fields without more */
        SHAPE_STRING,
        SHAPE_INTEGER,
        SHAPE_NUMBER,
        SHAPE_BOOLEAN,
        SHAPE_INT_OR_STRING,
        SHAPE_OBJECT, /* named fields */
        SHAPE_MAP,    /* any keys, values of one shape */
        SHAPE_LIST,
};

enum shape_list { LIST_ATOMIC, LIST_SET, LIST_MAP };

/* Strategic merge, of a field. */
enum { PATCH_MERGE = 1, PATCH_RETAIN_KEYS = 2 };

struct shape;

struct shape_field {
        const char *name;
        const struct shape *shape;
        const char *description; /* may be NULL */
        const char *merge_key; /* strategic merge of lists of objects; NULL: lists of scalars, or replaced */
        unsigned strategy;     /* PATCH_* */
        bool required;
};

struct shape {
        enum shape_kind kind;
        const char *name;                 /* definition: "io.k8s.api.core.v1.PodSpec"; NULL: inline */
        const char *format;               /* "int32", "date-time", "byte"; may be NULL */
        const char *description;          /* may be NULL */
        const char *gvk;                  /* definition of a kind: "batch/v1/Job", "/v1/Pod"; may be NULL */
        const struct shape_field *fields; /* SHAPE_OBJECT, sorted by name */
        size_t n_fields;
        const char *const *required; /* names of fields, as the type lists them; NULL-terminated, or NULL */
        const struct shape *elem;    /* SHAPE_MAP, SHAPE_LIST; never NULL there */
        enum shape_list list;        /* SHAPE_LIST, for server-side apply */
        const char *const *keys;     /* LIST_MAP; NULL-terminated */
        bool list_told; /* the kind of list is told by the type, not concluded from the patch strategy */
        bool atomic;    /* object or map that is owned as a whole */
        bool preserve;  /* SHAPE_OBJECT: unknown fields are kept, of any shape */
        bool embedded;  /* has apiVersion, kind and metadata of its own */
        bool nullable;  /* custom resources */
        bool deduced; /* root of a custom resource: server-side apply knows no types of it, only what it sees */
        const struct json
                *schema; /* custom resources: what it was made from, for what OpenAPI tells besides */
};

/* The field, NULL when there is none. */
const struct shape_field *shape_find(const struct shape *object, struct str name);
/* The shape of a member: of a field, of a map's values, SHAPE_ANY for what is unknown. Never NULL. */
const struct shape *shape_member(const struct shape *s, struct str name);
extern const struct shape SHAPE_ANYTHING;

/* ---- where they come from */
struct shapes; /* owns shapes */
/* All built-in definitions. */
struct shapes *shapes_builtin(void);
/* The shape of a custom resource: SPEC is openAPIV3Schema (NULL: anything), with metadata as all objects have it. SPEC
 * is copied; BUILTIN must outlive it. */
struct shapes *shapes_of_crd(const struct shapes *builtin, const struct json *spec);
const struct shape *shapes_root(const struct shapes *s); /* of shapes_of_crd() */
const struct shape *shapes_find(const struct shapes *s, const char *name);
/* All definitions, in the order of their names. */
size_t shapes_count(const struct shapes *s);
const struct shape *shapes_get(const struct shapes *s, size_t i);
void shapes_free(struct shapes *s);

DEFINE_CLEANUP_PTR(struct shapes *, shapes_free)
