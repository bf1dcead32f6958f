#include "stats/internal.h"

#include <math.h>

double dist_normal_above(double z)
{
        return erfc(z / M_SQRT2) / 2;
}

/* Where a falling function of x >= 0 comes down to P. */
static double solve(double (*f)(double x, double arg), double arg, double p)
{
        double low = 0, high = 1;

        while (f(high, arg) > p && high < 1e12)
                high *= 2;
        for (int i = 0; i < 100; i++) {
                double mid = (low + high) / 2;

                if (f(mid, arg) > p)
                        low = mid;
                else
                        high = mid;
        }
        return (low + high) / 2;
}

static double normal_above(double z, double unused _unused_)
{
        return dist_normal_above(z);
}

double dist_normal_quantile(double p)
{
        return p < 0.5 ? -solve(normal_above, 0, p) : solve(normal_above, 0, 1 - p);
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
        enum { TERMS = 400 };
        double tiny = 1e-300, c = 1, d = 1 - (a + b) * x / (a + 1), h;

        d = 1 / (fabs(d) < tiny ? tiny : d);
        h = d;
        for (int m = 1; m <= TERMS; m++) {
                double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
                double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
                double step;

                d = 1 + even * d;
                c = 1 + even / c;
                d = 1 / (fabs(d) < tiny ? tiny : d);
                c = fabs(c) < tiny ? tiny : c;
                h *= d * c;
                d = 1 + odd * d;
                c = 1 + odd / c;
                d = 1 / (fabs(d) < tiny ? tiny : d);
                c = fabs(c) < tiny ? tiny : c;
                step = d * c;
                h *= step;
                if (fabs(step - 1) < 1e-15)
                        break;
        }
        return h;
}

static double incomplete_beta(double a, double b, double x)
{
        double front;

        if (x <= 0 || x >= 1)
                return x <= 0 ? 0 : 1;
        front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
        if (x < (a + 1) / (a + b + 2))
                return front * beta_fraction(a, b, x) / a;
        return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double dist_t_two_sided(double t, double df)
{
        return isinf(t) ? 0 : incomplete_beta(df / 2, 0.5, df / (df + t * t));
}

double dist_t_limit(double p, double df)
{
        return solve(dist_t_two_sided, df, p);
}
