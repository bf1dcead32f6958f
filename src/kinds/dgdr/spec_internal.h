/*
 * spec_internal.h - collecting what is wrong with a spec.
 */
#pragma once

#include "kinds/dgdr/internal.h"

enum { DGDR_WHY_MAX = 1000 };

/* Sentences "path: what is wrong, what instead", without "; " in them. The first ones that fit are kept, the rest counted. */
struct wrongs {
        struct arena *arena;
        struct buf text; /* of at most DGDR_WHY_MAX bytes */
        size_t n, left_out;
};

void wrong(struct wrongs *w, const char *path, const char *fmt, ...) _printf_(3, 4);
/* A value of somebody's, in quotes: cut, and without control characters. */
const char *shown(struct arena *a, const char *text);
const char *shown_json(struct arena *a, const struct json *value);

/* ---- spec_config.c: the profiler's own configuration */

void check_config(struct wrongs *w, const struct dgdr_spec *spec);

/* ---- spec_pod.c: what becomes part of the pod, and labels */

bool is_qualified_name(const char *key); /* of a label */
void check_pod(struct wrongs *w, const struct dgdr_spec *spec);
void spec_check_labels(struct wrongs *w, const char *path, const struct json *labels);
void check_annotations(struct wrongs *w, const char *path, const struct json *annotations);
