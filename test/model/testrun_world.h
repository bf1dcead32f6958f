/*
 * testrun_world.h - TestRuns, to be explored: a run and nothing more.
 */
#pragma once

#include "model/world.h"

enum {
        SPEC_TIMEOUT = SPEC_OWN,
        SPEC_NO_RETRIES = SPEC_OWN << 1,
        SPEC_BACKOFF = SPEC_OWN << 2,
        SPEC_BACKOFF_2 = SPEC_OWN << 3
};

extern const struct subject testrun_subject;
