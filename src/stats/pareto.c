#include "stats/pareto.h"

#include <math.h>

static bool beats(struct stats_point a, struct stats_point b, bool more_y)
{
        double better = more_y ? a.y - b.y : b.y - a.y;

        return a.x <= b.x && better >= 0 && (a.x < b.x || better > 0);
}

size_t stats_pareto(const struct stats_point *points, size_t n, bool more_y, bool *ret_front)
{
        size_t found = 0;

        for (size_t i = 0; i < n; i++) {
                ret_front[i] = isfinite(points[i].x) && isfinite(points[i].y);
                for (size_t j = 0; j < n && ret_front[i]; j++)
                        if (isfinite(points[j].x) && isfinite(points[j].y) &&
                            beats(points[j], points[i], more_y))
                                ret_front[i] = false;
                found += ret_front[i];
        }
        return found;
}
