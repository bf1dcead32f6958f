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
        const char *manager; /* fieldManager, or what the user agent says before '/' */
        usec_t now;          /* wall time */
        bool force;
};

struct managed_conflict {
        const char *field;   /* ".spec.replicas", `.spec.containers[name="a"].image` */
        const char *manager; /* `"kubectl" using v1` as the message has it */
};

struct managed_conflicts {
        struct managed_conflict *list;
        size_t n;
};

/* After an ordinary write (create: LIVE is NULL, update, patch): sets metadata.managedFields of OBJECT from LIVE's and
 * from what changed. What the client sent as managedFields counts only when it empties them, as Kubernetes has it. */
void managed_update(const struct managed *m, const struct json *live, struct json *object, struct arena *a);

/* Server-side apply of CONFIG onto LIVE (NULL: it is created): the object as it is to be, managedFields included. NULL:
 * E_INVALID (what is wrong with CONFIG) or E_OWNED with CONFLICTS filled in. */
struct json *managed_apply(const struct managed *m, const struct json *live, const struct json *config,
                           struct arena *a, struct managed_conflicts *conflicts, struct err *err)
        _must_check_;

/* "Apply failed with 2 conflicts: ..." as the Status message has it. */
const char *managed_message(const struct managed_conflicts *c, struct arena *a);
