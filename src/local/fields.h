/*
 * fields.h - sets of fields, managedFields, server-side apply.
 *
 * A set is a trie of path elements: f:NAME (a field), k:{...} (an element of a list by its keys), v:VALUE (an element
 * of a set), i:N. It is read from and written to fieldsV1 as Kubernetes writes it (sorted, "." for the element itself).
 * The rules are those of structured-merge-diff as Kubernetes 1.20 uses it: who changes a value by an ordinary write
 * owns it alone; who applies owns what he applied, shares it with others who say the same, and conflicts with those who
 * say otherwise unless he forces it; what an applier no longer names, and nobody else owns, is removed.
 */
#pragma once

#include "local/shape.h"

struct managed {
        const struct shape *shape; /* of the whole object */
        const char *api_version;
        const char *kind;    /* NULL: what the shape of a built-in type says */
        const char *manager; /* fieldManager, or what the user agent says before '/' */
        usec_t now;          /* wall time */
        bool force;
        bool sub; /* a subresource is written: managedFields that were sent do not count */
        const char *const
                *versions; /* other apiVersions of this type that are served; NULL-terminated, or NULL */
};

struct managed_conflict {
        const char *field;   /* ".spec.replicas", `.spec.containers[name="a"].image` */
        const char *manager; /* `"kubectl" using v1` as the message has it */
};

struct managed_conflicts {
        struct managed_conflict *list;
        size_t n;
};

/*
 * After an ordinary write (create: LIVE is NULL, update, patch): sets metadata.managedFields of OBJECT from what the
 * client sent as managedFields (LIVE's when it sent none; none when it sent [] or [{}]) and from what changed. OBJECT is
 * as Kubernetes sees it at this point: with defaults, before admission and before what the server decides (status kept,
 * generation, names generated). LIVE and OBJECT are complete, as they are served: built-in types with the empty structs
 * that Go writes (`resources: {}`, `creationTimestamp: null`). An object that has what its type does not allow (two
 * ports of one key) loses its managedFields.
 */
void managed_update(const struct managed *m, const struct json *live, struct json *object, struct arena *a);

/*
 * Server-side apply of CONFIG onto LIVE (NULL: it is created): the object as it is to be, before defaults, managedFields
 * included (they are final). Equal to LIVE when nothing changes. What is removed with the last of its items is null:
 * built-in types drop it, and custom resources are refused by their schema, as Kubernetes 1.20 does. NULL: E_OWNED with
 * CONFLICTS filled in; E_INVALID (400 BadRequest); E_INTERNAL (500, without a reason: CONFIG does not fit the type).
 */
struct json *managed_apply(const struct managed *m, const struct json *live, const struct json *config,
                           struct arena *a, struct managed_conflicts *conflicts, struct err *err)
        _must_check_;

/* "Apply failed with 2 conflicts: ..." as the Status message has it. */
const char *managed_message(const struct managed_conflicts *c, struct arena *a);
