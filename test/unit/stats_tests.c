/* Two samples: the test by ranks against counting all there is, effect sizes and corrections against textbooks. */
#include "unit/unit.h"

#include <math.h>

#include "stats/stats.h"

static void assert_near(double a, double b, double within)
{
        if (!(fabs(a - b) <= within))
                fail_msg("%.10g is not %.10g", a, b);
}

static void test_the_smallest_p_there_is(void **state)
{
        static const double known[] = {1, 1.0 / 3, 0.1, 1.0 / 35, 1.0 / 126, 1.0 / 462};
        double a[6], b[6];

        for (size_t n = 1; n <= 6; n++) {
                struct stats_u u;

                for (size_t i = 0; i < n; i++) {
                        a[i] = (double)i;
                        b[i] = (double)(100 + i);
                }
                u = stats_u_test(a, n, b, n);
                assert_true(u.exact);
                assert_near(u.u, 0, 0);
                assert_near(u.p, known[n - 1], 1e-12);
                assert_near(stats_u_least_p(n, n), known[n - 1], 1e-9);
        }
}

/* U by its definition. */
static double pairs_above(const double *v, const bool *first, size_t n)
{
        double u = 0;

        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < n; k++)
                        if (first[i] && !first[k])
                                u += v[i] > v[k] ? 1 : v[i] < v[k] ? 0 : 0.5;
        return u;
}

/* P of V's first N against the rest, by every way there is to name N of them the first. */
static double brute_p(const double *v, size_t all, size_t n)
{
        double below = 0, above = 0, ways = 0, seen;
        bool first[16] = {0};

        for (size_t i = 0; i < n; i++)
                first[i] = true;
        seen = pairs_above(v, first, all);
        for (unsigned mask = 0; mask < 1U << all; mask++) {
                double u;

                if ((size_t)__builtin_popcount(mask) != n)
                        continue;
                for (size_t i = 0; i < all; i++)
                        first[i] = mask >> i & 1;
                u = pairs_above(v, first, all);
                ways++;
                below += u <= seen + 1e-9;
                above += u >= seen - 1e-9;
        }
        return MIN(1.0, 2 * MIN(below, above) / ways);
}

static void test_ties_are_counted_exactly(void **state)
{
        struct rng r;

        stats_seed(&r, "ties", 0);
        for (size_t round = 0; round < 60; round++) {
                size_t n = 1 + rng_below(&r, 5), m = 1 + rng_below(&r, 5);
                double v[16];

                for (size_t i = 0; i < n + m; i++)
                        v[i] = (double)rng_below(&r, 1 + round % 7);
                assert_near(stats_u_test(v, n, v + n, m).p, brute_p(v, n + m, n), 1e-12);
        }
}

static void test_equal_samples_do_not_differ(void **state)
{
        double a[30], b[30];

        for (size_t i = 0; i < 30; i++)
                a[i] = b[i] = 4;
        assert_near(stats_u_test(a, 10, b, 10).p, 1, 0);
        assert_near(stats_u_test(a, 30, b, 30).p, 1, 0);
        assert_near(stats_cliff(a, 30, b, 30), 0, 0);
        assert_near(stats_shift(a, 30, b, 30), 0, 0);
}

/* The two ways agree where they meet, with ties too. */
static void test_many_are_approximated(void **state)
{
        double a[21], b[21], exact, near;

        for (size_t i = 0; i < 21; i++) {
                size_t twice = i / 2;

                a[i] = (double)twice;
                b[i] = (double)(twice + i % 3) + 2.5;
        }
        b[20] = 7.5; /* in the middle of b: says nothing new */
        exact = stats_u_test(a, 20, b, 20).p;
        assert_true(stats_u_test(a, 20, b, 20).exact);
        assert_false(stats_u_test(a, 20, b, 21).exact);
        near = stats_u_test(a, 20, b, 21).p;
        assert_true(exact > 0.0005 && exact < 0.05 && near > exact / 1.5 && near < exact * 1.5);
}

/* Large samples whose U is known: values in turn give the mean exactly. */
static void test_the_approximation_by_hand(void **state)
{
        double a[40], b[40], z;
        struct stats_u u;

        for (size_t i = 0; i < 40; i++) {
                a[i] = (double)i;
                b[i] = (double)i + 8.5;
        }
        u = stats_u_test(a, 40, b, 40);
        /* a[i] is above b[j] from i = j + 9 on: 31 + 30 + ... + 1 pairs. */
        assert_near(u.u, 496, 0);
        z = (800 - u.u - 0.5) / sqrt(40 * 40 * 81 / 12.0);
        assert_near(u.p, erfc(z / sqrt(2)), 1e-12);
}

static void test_holm(void **state)
{
        double p[] = {0.01, 0.04, 0.03, 0.005}, few[] = {0.01, 0.04}, big[] = {0.6, 0.7};

        stats_holm(p, 4, 4);
        assert_near(p[0], 0.03, 1e-12);
        assert_near(p[1], 0.06, 1e-12);
        assert_near(p[2], 0.06, 1e-12);
        assert_near(p[3], 0.02, 1e-12);
        stats_holm(few, 2, 6);
        assert_near(few[0], 0.06, 1e-12);
        assert_near(few[1], 0.2, 1e-12);
        stats_holm(big, 2, 2);
        assert_near(big[0], 1, 0);
        assert_near(big[1], 1, 0);
        stats_holm(NULL, 0, 0);
}

/* Cliff's own example has 10 and 10; here, small enough to count: 3 of 12 pairs above, 8 below, 1 tie. */
static void test_cliffs_delta(void **state)
{
        double a[] = {1, 2, 6}, b[] = {2, 3, 4, 7};

        assert_near(stats_cliff(a, 3, b, 4), (3.0 - 8) / 12, 1e-12);
        assert_near(stats_cliff(b, 4, a, 3), (8.0 - 3) / 12, 1e-12);
        assert_string_equal(stats_cliff_word(0.146), "negligible");
        assert_string_equal(stats_cliff_word(-0.147), "small");
        assert_string_equal(stats_cliff_word(0.33), "medium");
        assert_string_equal(stats_cliff_word(-0.474), "large");
}

/* Hollander and Wolfe's permeability of membranes: W = 35 of 50, p = 0.2544, shift 0.305. */
static void test_hollander_and_wolfe(void **state)
{
        double x[] = {0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
        double y[] = {1.15, 0.88, 0.90, 0.74, 1.21};
        struct stats_u u = stats_u_test(x, 10, y, 5);

        assert_near(u.u, 35, 0);
        assert_near(u.p, 0.254412, 1e-6);
        assert_near(stats_shift(x, 10, y, 5), 0.305, 1e-12);
}

static void test_the_shift_of_many(void **state)
{
        _cleanup_(free_ptr) double *a = xcalloc(3000, sizeof(*a)), *b = xcalloc(3000, sizeof(*b));

        for (size_t i = 0; i < 3000; i++) {
                a[i] = (double)(i * 7919 % 3000);
                b[i] = (double)(i * 104729 % 3000) - 250;
        }
        assert_near(stats_shift(a, 3000, b, 3000), 250, 2);
}

/* hyperfine: 1.5 times, from means 3 and 2 with deviations 0.3 and 0.1. */
static void test_hyperfines_error_of_a_ratio(void **state)
{
        assert_near(stats_ratio_error(3, 0.3, 2, 0.1), 1.5 * sqrt(0.01 + 0.0025), 1e-12);
}

static void test_nothing_gives_no_number(void **state)
{
        double a[] = {1, 2}, bad[] = {1, INFINITY};

        assert_true(isnan(stats_u_test(a, 2, NULL, 0).p));
        assert_true(isnan(stats_u_test(bad, 2, a, 2).p));
        assert_true(isnan(stats_cliff(NULL, 0, a, 2)));
        assert_true(isnan(stats_shift(a, 2, bad, 2)));
        assert_near(stats_u_least_p(0, 4), 1, 0);
}

static void test_a_front(void **state)
{
        static const struct stats_point points[] = {
                {1, 0.7}, {2, 0.9}, {3, 0.9}, {2, 0.9}, {0.5, NAN}, {4, 0.95}, {5, 0.6}, {NAN, 1},
        };
        static const bool more[] = {true, true, false, true, false, true, false, false};
        static const bool less[] = {true, false, false, false, false, false, true, false};
        bool front[8];

        assert_int_equal(stats_pareto(points, 8, true, front), 4);
        assert_memory_equal(front, more, sizeof(front));
        assert_int_equal(stats_pareto(points, 8, false, front), 2);
        assert_memory_equal(front, less, sizeof(front));
        assert_int_equal(stats_pareto(NULL, 0, false, NULL), 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_smallest_p_there_is),
        cmocka_unit_test(test_ties_are_counted_exactly),
        cmocka_unit_test(test_equal_samples_do_not_differ),
        cmocka_unit_test(test_many_are_approximated),
        cmocka_unit_test(test_the_approximation_by_hand),
        cmocka_unit_test(test_holm),
        cmocka_unit_test(test_cliffs_delta),
        cmocka_unit_test(test_hollander_and_wolfe),
        cmocka_unit_test(test_the_shift_of_many),
        cmocka_unit_test(test_hyperfines_error_of_a_ratio),
        cmocka_unit_test(test_nothing_gives_no_number),
        cmocka_unit_test(test_a_front),
};
UNIT_MAIN(tests)
