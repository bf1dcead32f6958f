/*
 * cuda_world.h - CUDAExperiments, to be explored.
 */
#pragma once

#include "model/world.h"

enum { SPEC_NO_PROFILING = SPEC_OWN, SPEC_REUSE = SPEC_OWN << 1, SPEC_DISTRIBUTED = SPEC_OWN << 2 };

extern const struct subject cuda_subject;
