/*
 * shape_private.h - what owns shapes, for those who make them.
 */
#pragma once

#include "local/shape.h"

struct shapes {
        struct arena arena;         /* all shapes and what they point to */
        VEC(struct shape *) sorted; /* definitions, by name */
        const struct shape *root;   /* of a custom resource */
};

/* Reads a table as scripts/api-types writes it (see its first lines) into S. The table is ours, but E_INVALID names
 * the line of a mistake in it. */
int shapes_read_table(struct shapes *s, struct str table, struct err *err) _must_check_;

/* Sorts the fields of an object by their names, as shape_find() needs them. */
void shape_sort_fields(struct shape_field *fields, size_t n);

/* What the API server says of apiVersion, kind and metadata of a custom resource, or of an object inside one. */
const char *shape_common_description(const char *name, bool embedded);

/* The table that is built in; made from types/core.types. */
extern const char SHAPE_TABLE[];
