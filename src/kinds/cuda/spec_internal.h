/*
 * spec_internal.h - the parts of what is checked about an experiment's spec.
 */
#pragma once

#include "kinds/cuda/internal.h"
#include "kinds/wrongs.h"

/* ---- spec_pod.c: what becomes part of the pods */

void check_pod_parts(struct wrongs *w, const struct cuda_spec *spec);
