/*
 * spec_internal.h - what the files about the spec share.
 */
#pragma once

#include "kinds/algorithm/internal.h"
#include "kinds/wrongs.h"

void check_whole(struct wrongs *w, const struct json *of, const char *path, const char *key, int64_t min,
                 int64_t max);
/* Resources as of a container, of which the probe is told: spec_entry.c. */
void check_room(struct wrongs *w, const char *path, const struct json *resources);
/* The algorithm of that number: spec_entry.c. */
void check_entry(struct wrongs *w, const struct algorithm_spec *spec, size_t i);
/* What becomes part of a container: spec_pod.c. */
void check_custom(struct wrongs *w, const struct algorithm_entry *e);
