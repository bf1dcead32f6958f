/*
 * change.h - has a series of runs become slower?
 *
 * Called once for each new run with the last points of its series, oldest first; each is one run's median. Nothing is
 * kept between calls: the same points give the same answer.
 *
 * The series is cut where its level changes, by rank tests; points far off their neighbours are left out, and runs that
 * resemble the one before them (a machine that is slow for a while) make a cut need more. Then the pieces are walked in
 * order. The level that counts is the last good one: a piece above it by min_change or more is bad, one that is near it
 * again is good, a better one (of at least as many runs as a baseline) is the new level to hold. It is degraded now
 * when the last piece is bad and the interval of the ratio, of all since the first bad run to the good level, is above
 * min_change. So a degradation lasts until the time comes back (or the last good runs have left the window), an
 * improvement never alarms, and a slow drift does once it surely has come to min_change.
 */
#pragma once

#include "base/base.h"

enum {
        STATS_CHANGE_POINTS = 200,  /* more are not looked at: the last count */
        STATS_CHANGE_BASELINE = 10, /* runs before the first that can be bad */
        STATS_CHANGE_LEAST = 4      /* runs that make a level */
};

struct stats_change {
        bool degraded;        /* now */
        size_t first_bad;     /* index into VALUES of the first run at a bad level, */
        size_t good_from;     /* and of the first at the level before */
        double before, after; /* medians: of the last good level, of all since the first bad run */
        double ratio;         /* after over before, and its 95 % interval */
        double low, high;
};

/* MIN_CHANGE is a fraction, 0: 0.02. False, with nothing in RET but that all is well: a value is not positive
 * (describe.h). Too few points are "not degraded". */
bool stats_change(const double *values, size_t n, double min_change, struct stats_change *ret) _must_check_;
