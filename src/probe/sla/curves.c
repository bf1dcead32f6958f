/*
 * What was measured, between the points.
 *
 * Upstream draws decode as a scattered surface of 100 x 100. Samples lie on rows of equal context, so no triangulation is
 * needed: a spline along each row, and straight lines from row to row, over 1/context. That is the natural measure there:
 * at equal KV usage the number of requests falls with the length of each, and time goes with the number of requests. And not
 * the throughput is drawn so, which bends, but throughput x ITL, the requests under way; both together give it.
 */
#include <math.h>

#include "probe/sla/sla.h"

enum { SCAN_STEPS = 1000 };

/* ---- one curve */

static double slope(const struct sla_spline *s, size_t i)
{
        return (s->y[i + 1] - s->y[i]) / (s->x[i + 1] - s->x[i]);
}

/* Three points: the parabola through them, whose second derivative is the same everywhere. */
static void solve_parabola(struct sla_spline *s)
{
        double second = 2 * (slope(s, 1) - slope(s, 0)) / (s->x[2] - s->x[0]);

        for (size_t i = 0; i < 3; i++)
                s->second[i] = second;
}

/*
 * The second derivatives m[1] ... m[n-2] of
 *      h[i-1] m[i-1] + 2 (h[i-1] + h[i]) m[i] + h[i] m[i+1] = 6 (slope[i] - slope[i-1])
 * with both ends put in: not-a-knot says that the first two pieces are one cubic, m[0] = ((h0 + h1) m[1] - h0 m[2]) / h1,
 * and so the last two. Rows stay diagonally dominant, so elimination needs no pivots.
 */
static void solve_not_a_knot(struct arena *a, struct sla_spline *s)
{
        size_t last = s->n - 1;
        double *m = s->second, *upper = arena_new_array(a, double, s->n);

        for (size_t i = 1; i < last; i++) {
                double h = s->x[i] - s->x[i - 1], next = s->x[i + 1] - s->x[i];
                double lower = h, diagonal = 2 * (h + next), right = 6 * (slope(s, i) - slope(s, i - 1));

                upper[i] = next;
                if (i == 1) {
                        diagonal += h * (h + next) / next;
                        upper[i] -= h * h / next;
                        lower = 0;
                }
                if (i == last - 1) {
                        diagonal += next * (h + next) / h;
                        lower -= next * next / h;
                        upper[i] = 0;
                }
                if (i > 1) {
                        diagonal -= lower * upper[i - 1];
                        right -= lower * m[i - 1];
                }
                upper[i] /= diagonal;
                m[i] = right / diagonal;
        }
        for (size_t i = last - 1; i-- > 1;)
                m[i] -= upper[i] * m[i + 1];
        m[0] = m[1] - (m[2] - m[1]) * (s->x[1] - s->x[0]) / (s->x[2] - s->x[1]);
        m[last] = m[last - 1] + (m[last - 1] - m[last - 2]) * (s->x[last] - s->x[last - 1]) /
                                        (s->x[last - 1] - s->x[last - 2]);
}

int sla_spline_init(struct arena *a, const double *x, const double *y, size_t n, struct sla_spline *ret,
                    struct err *err)
{
        if (n == 0)
                return err_set(err, E_INVALID, "a curve needs at least one point");
        for (size_t i = 0; i < n; i++) {
                if (!isfinite(x[i]) || !isfinite(y[i]))
                        return err_set(err, E_INVALID, "point %zu of the curve is no number", i);
                if (i && x[i] <= x[i - 1])
                        return err_set(err, E_INVALID,
                                       "point %zu of the curve is not right of the one before it", i);
        }
        *ret = (struct sla_spline){
                .n = n,
                .x = arena_memdup(a, x, n * sizeof(*x)),
                .y = arena_memdup(a, y, n * sizeof(*y)),
                .second = arena_new_array(a, double, n),
        };
        if (n == 3)
                solve_parabola(ret);
        else if (n > 3)
                solve_not_a_knot(a, ret);
        return 0;
}

/* The index of the piece that X is in. */
static size_t piece_of(const struct sla_spline *s, double x)
{
        size_t low = 0, high = s->n - 1;

        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (s->x[middle] <= x)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

/* The cubic of piece I at T (0 ... 1) of its width. */
static double cubic(const struct sla_spline *s, size_t i, double t)
{
        double h = s->x[i + 1] - s->x[i], u = 1 - t;

        return u * s->y[i] + t * s->y[i + 1] +
               ((u * u * u - u) * s->second[i] + (t * t * t - t) * s->second[i + 1]) * h * h / 6;
}

/* Whether the cubic of a piece whose ends are not below 0 is so in between, where its derivative is 0. */
static bool dips(const struct sla_spline *s, size_t i)
{
        double h = s->x[i + 1] - s->x[i], k = h * h / 6, m0 = s->second[i], m1 = s->second[i + 1];
        double a = 3 * k * (m1 - m0), b = 6 * k * m0, c = s->y[i + 1] - s->y[i] - k * (2 * m0 + m1);
        double root = b * b - 4 * a * c, t[2] = {-1, -1};

        if (fmin(s->y[i], s->y[i + 1]) < 0)
                return false;
        if (a == 0 && b != 0) {
                t[0] = -c / b;
        } else if (a != 0 && root >= 0) {
                t[0] = (-b + sqrt(root)) / (2 * a);
                t[1] = (-b - sqrt(root)) / (2 * a);
        }
        for (int j = 0; j < 2; j++)
                if (t[j] > 0 && t[j] < 1 && !(cubic(s, i, t[j]) >= 0))
                        return true;
        return false;
}

double sla_spline_at(const struct sla_spline *s, double x)
{
        size_t i;
        double t, y;

        if (s->n == 1 || !(x > s->x[0])) /* NaN, too */
                return s->y[0];
        if (x >= s->x[s->n - 1])
                return s->y[s->n - 1];
        i = piece_of(s, x);
        t = (x - s->x[i]) / (s->x[i + 1] - s->x[i]);
        y = cubic(s, i, t);
        /* No time and no throughput is below 0: a piece that swings so far is a straight line instead. */
        if (!isfinite(y) || dips(s, i))
                return (1 - t) * s->y[i] + t * s->y[i + 1];
        return y;
}

/* ---- the surface */

struct surface_row {
        double context;
        struct sla_spline itl, load; /* over KV usage; load: throughput x ITL */
};

struct sla_surface {
        struct surface_row *rows; /* by context */
        size_t n;
        double most; /* throughput that was measured */
};

int sla_sample_cmp(const void *a, const void *b)
{
        const struct sla_sample *p = a, *q = b;

        if (p->context != q->context)
                return p->context < q->context ? -1 : 1;
        return p->kv_usage < q->kv_usage ? -1 : p->kv_usage > q->kv_usage;
}

static bool sample_valid(const struct sla_sample *s)
{
        return isfinite(s->kv_usage) && s->kv_usage >= 0 && isfinite(s->context) && s->context > 0 &&
               isfinite(s->itl) && s->itl > 0 && isfinite(s->throughput) && s->throughput >= 0 &&
               isfinite(s->itl * s->throughput);
}

/* The N sorted samples of one context; what was measured more than once at one usage is their mean. */
static int row_init(struct arena *a, const struct sla_sample *v, size_t n, struct surface_row *ret,
                    struct err *err)
{
        double *x = arena_new_array(a, double, n), *itl = arena_new_array(a, double, n),
               *load = arena_new_array(a, double, n);
        size_t points = 0, same;

        for (size_t i = 0; i < n; i += same, points++) {
                double throughput = 0;

                x[points] = v[i].kv_usage;
                for (same = 0; i + same < n && v[i + same].kv_usage == v[i].kv_usage; same++) {
                        itl[points] += (v[i + same].itl - itl[points]) / (double)(same + 1);
                        throughput += (v[i + same].throughput - throughput) / (double)(same + 1);
                }
                load[points] = throughput * itl[points];
        }
        ret->context = v[0].context;
        if (sla_spline_init(a, x, itl, points, &ret->itl, err) < 0)
                return -1;
        return sla_spline_init(a, x, load, points, &ret->load, err);
}

struct sla_surface *sla_surface_new(struct arena *a, const struct sla_sample *samples, size_t n,
                                    struct err *err)
{
        struct sla_surface *s = arena_new(a, struct sla_surface);
        struct sla_sample *sorted;
        size_t in_row;

        if (n == 0)
                return err_set(err, E_INVALID, "a surface needs at least one sample"), NULL;
        for (size_t i = 0; i < n; i++) {
                if (!sample_valid(&samples[i]))
                        return err_set(err, E_INVALID,
                                       "sample %zu of the surface needs a context and an ITL above 0, a KV "
                                       "usage "
                                       "and a throughput of 0 or more",
                                       i),
                               NULL;
                s->most = fmax(s->most, samples[i].throughput);
        }
        sorted = arena_memdup(a, samples, n * sizeof(*samples));
        qsort(sorted, n, sizeof(*sorted), sla_sample_cmp);
        s->rows = arena_new_array(a, struct surface_row, n);
        for (size_t i = 0; i < n; i += in_row) {
                for (in_row = 1; i + in_row < n && sorted[i + in_row].context == sorted[i].context; in_row++)
                        ;
                if (row_init(a, &sorted[i], in_row, &s->rows[s->n++], err) < 0)
                        return NULL;
        }
        return s;
}

/* The rows on both sides of CONTEXT (the same one outside), and how far from the first to the second it is. */
static double rows_around(const struct sla_surface *s, double context, const struct surface_row **below,
                          const struct surface_row **above)
{
        size_t i = 0;

        while (i + 1 < s->n && s->rows[i + 1].context <= context)
                i++;
        *below = *above = &s->rows[i];
        if (!(context > s->rows[i].context) || i + 1 == s->n)
                return 0;
        *above = &s->rows[i + 1];
        return (1 / (*below)->context - 1 / context) / (1 / (*below)->context - 1 / (*above)->context);
}

double sla_surface_itl(const struct sla_surface *s, double kv_usage, double context)
{
        const struct surface_row *below, *above;
        double t = rows_around(s, context, &below, &above);

        return (1 - t) * sla_spline_at(&below->itl, kv_usage) + t * sla_spline_at(&above->itl, kv_usage);
}

double sla_surface_throughput(const struct sla_surface *s, double kv_usage, double context)
{
        const struct surface_row *below, *above;
        double t = rows_around(s, context, &below, &above);

        double load = (1 - t) * sla_spline_at(&below->load, kv_usage) +
                      t * sla_spline_at(&above->load, kv_usage);

        /* Between samples an ITL may come near to 0; nothing gets more than was ever seen by that. */
        return fmin(s->most, load / sla_surface_itl(s, kv_usage, context));
}

double sla_surface_best(const struct sla_surface *s, double itl, double context, double *ret_usage)
{
        const struct surface_row *below, *above;
        double least, most, best = -1, at;

        (void)rows_around(s, context, &below, &above);
        /* Beyond the last sample, and below the first, everything is as there. */
        at = least = fmin(below->itl.x[0], above->itl.x[0]);
        most = fmax(below->itl.x[below->itl.n - 1], above->itl.x[above->itl.n - 1]);
        for (int i = 0; i <= SCAN_STEPS; i++) {
                double usage = fmin(fmax((double)i / SCAN_STEPS, least), most), throughput;

                if (!(sla_surface_itl(s, usage, context) <= itl))
                        continue;
                throughput = sla_surface_throughput(s, usage, context);
                if (throughput > best) {
                        best = throughput;
                        at = usage;
                }
        }
        if (ret_usage)
                *ret_usage = at;
        return best >= 0 ? best : sla_surface_throughput(s, at, context);
}
