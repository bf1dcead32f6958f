#include "stats/summary.h"

#include <math.h>

const unsigned stats_percents[STATS_PERCENTS_] = {1, 5, 10, 25, 50, 75, 90, 95, 99};

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double stats_percentile(const double *sorted, size_t n, double percent)
{
        double at = (double)(n - 1) * percent / 100;
        size_t low = (size_t)at;

        if (low + 1 >= n)
                return sorted[n - 1];
        return sorted[low] + (sorted[low + 1] - sorted[low]) * (at - (double)low);
}

bool stats_summarize(double *values, size_t n, struct stats_summary *ret)
{
        double squares = 0;

        *ret = (struct stats_summary){.n = n};
        if (!n)
                return false;
        qsort(values, n, sizeof(*values), by_value);
        for (size_t i = 0; i < n; i++)
                ret->sum += values[i];
        ret->avg = ret->sum / (double)n;
        for (size_t i = 0; i < n; i++)
                squares += (values[i] - ret->avg) * (values[i] - ret->avg);
        ret->std = sqrt(squares / (double)n);
        ret->min = values[0];
        ret->max = values[n - 1];
        for (int i = 0; i < STATS_PERCENTS_; i++)
                ret->p[i] = stats_percentile(values, n, stats_percents[i]);
        return true;
}
