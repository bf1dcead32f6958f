/*
 * pareto.h - what no other beats in both: time against accuracy, memory or cost.
 */
#pragma once

#include "base/base.h"

struct stats_point {
        double x, y; /* NAN: not known; such a point is not on the front and beats nobody */
};

/* Which points are on the front: less x is better, and less y, or with MORE_Y more. Equal points are on it together.
 * Returns how many are. */
size_t stats_pareto(const struct stats_point *points, size_t n, bool more_y, bool *ret_front);
