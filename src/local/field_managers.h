/*
 * field_managers.h - the entries of metadata.managedFields: who owns which fields, since when.
 */
#pragma once

#include "local/fields_internal.h"

struct field_manager {
        const char
                *id; /* name, operation and, but for appliers, version: as JSON, as Kubernetes sorts by it */
        const char *name, *operation, *api_version;
        bool applied;
        bool has_time;
        usec_t time;
        fields_set set;
};

struct field_managers {
        struct field_manager *v; /* in the arena */
        size_t n, cap;
};

/* Reads managedFields (NULL: none). -1: an entry is malformed. */
int managers_read(struct arena *a, const struct json *list, struct field_managers *ret, struct err *err)
        _must_check_;
/* managedFields as the server sorts them; NULL: none. SORTED: as custom resources have it. */
struct json *managers_write(struct arena *a, const struct field_managers *m, bool sorted);

struct field_manager *managers_find(const struct field_managers *m, const char *id);
/* The entry of that manager, made without fields and without time when there is none. */
struct field_manager *managers_add(struct arena *a, struct field_managers *m, const char *name, bool applied,
                                   const char *api_version);
void managers_remove(struct field_managers *m, struct field_manager *which);
struct field_managers managers_copy(struct arena *a, const struct field_managers *m);
bool managers_equal(const struct field_managers *x, const struct field_managers *y);
/* Merges the oldest entries of ordinary writes into "ancient-changes" until there are at most ten. */
void managers_cap(struct arena *a, struct field_managers *m);
/* `"kubectl" using v1`, or `"kubectl"` for an applier. */
const char *manager_print(struct arena *a, const struct field_manager *m);
