/*
 * spec_internal.h - the parts of what is checked about a spec.
 */
#pragma once

#include "kinds/dgdr/internal.h"
#include "kinds/wrongs.h"

/* ---- spec_config.c: the profiler's own configuration */

void check_config(struct wrongs *w, const struct dgdr_spec *spec);

/* ---- spec_pod.c: what becomes part of the pod, and labels */

void check_pod(struct wrongs *w, const struct dgdr_spec *spec);
void spec_check_labels(struct wrongs *w, const char *path, const struct json *labels);
void check_annotations(struct wrongs *w, const char *path, const struct json *annotations);
