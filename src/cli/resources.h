/*
 * resources.h - resource files as kubectl reads them, and what is wrong with them.
 *
 * A file holds YAML documents or JSON; "-" is standard input, and the items of a `kind: List` are resources of their
 * own. Problems are told on standard error as "FILE:LINE:COLUMN: what" when they are found.
 */
#pragma once

#include "json/json.h"

struct resource {
        const char *file;
        struct json *object;
};

struct resources {
        struct arena arena; /* holds all of them */
        VEC(struct resource) list;
        size_t files, wrong;
};

#define RESOURCES_INIT               \
        {                            \
                .arena = ARENA_INIT, \
        }

void resources_done(struct resources *r);
/* Reads and checks what every resource must have, whatever its kind. */
void resources_read(struct resources *r, const char *path);
/* The same of a text that is at hand; FILE is for messages and outlives R. */
void resources_read_text(struct resources *r, const char *file, struct str text);
/* "FILE:LINE:COLUMN: TEXT", AT being a node of FILE (NULL: none in particular), and counts it. */
void resources_complain(struct resources *r, const char *file, const struct json *at, const char *fmt, ...)
        _printf_(4, 5);

DEFINE_CLEANUP_STRUCT(struct resources, resources_done)
