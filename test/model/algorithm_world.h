/*
 * algorithm_world.h - AlgorithmProfilings and AlgorithmComparisons, to be explored.
 *
 * SPEC_UNKNOWN, the edit of their own, names an algorithm that there is none of; it can be taken back.
 */
#pragma once

#include "model/world.h"

enum { SPEC_UNKNOWN = SPEC_OWN, SPEC_TWO_PODS = SPEC_OWN << 1, SPEC_TTL = SPEC_OWN << 2 };

extern const struct subject profiling_subject, comparison_subject;
