/* The samples of one algorithm: order statistics, intervals, outliers, trends, against values known by other means. */
#include "unit/unit.h"

#include <math.h>

#include "stats/internal.h"
#include "stats/stats.h"

static void assert_near(double a, double b, double within)
{
        if (!(fabs(a - b) <= within))
                fail_msg("%.10g is not %.10g", a, b);
}

static struct stats_description described(const double *values, size_t n)
{
        struct stats_description d;

        assert_true(stats_describe(values, n, &d));
        return d;
}

/* The n numbers 1 ... n, in an order without a trend to speak of. */
static struct stats_description of_first(size_t n)
{
        double v[64];

        for (size_t i = 0; i < n; i++)
                v[i] = (double)(i % 2 ? n - i / 2 : i / 2 + 1);
        return described(v, n);
}

static void test_ten_numbers(void **state)
{
        struct stats_description d = of_first(10);

        assert_int_equal(d.n, 10);
        assert_near(d.median, 5.5, 0);
        assert_near(d.mean, 5.5, 1e-12);
        assert_near(d.sd, 3.0276503540974917, 1e-12);
        assert_near(d.cv, 0.5504818825631803, 1e-12);
        assert_near(d.mad, 2.5, 1e-12);
        assert_near(d.min, 1, 0);
        assert_near(d.max, 10, 0);
        assert_near(d.p5, 1.45, 1e-12);
        assert_near(d.p95, 9.55, 1e-12);
}

static void test_the_median_lies_between_two_order_statistics(void **state)
{
        static const struct {
                size_t n;
                double low, high, level;
        } known[] = {
                {6, 1, 6, 0.96875},         {7, 1, 7, 0.984375},        {8, 1, 8, 0.9921875},
                {9, 2, 8, 0.9609375},       {10, 2, 9, 0.978515625},    {20, 6, 15, 0.9586105347},
                {30, 10, 21, 0.9572260547}, {50, 18, 33, 0.9671608624},
        };

        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                struct stats_interval ci = of_first(known[i].n).median_ci;

                assert_int_equal(ci.method, STATS_ORDER);
                assert_near(ci.low, known[i].low, 0);
                assert_near(ci.high, known[i].high, 0);
                assert_near(ci.level, known[i].level, 1e-9);
        }
        assert_string_equal(stats_interval_methods[STATS_ORDER], "order statistics");
}

static void test_few_samples_have_a_rough_interval_or_none(void **state)
{
        struct stats_interval ci = of_first(5).median_ci;

        assert_int_equal(ci.method, STATS_ROUGH);
        assert_near(ci.low, 1, 0);
        assert_near(ci.high, 5, 0);
        assert_true(isnan(ci.level));
        assert_int_equal(of_first(3).median_ci.method, STATS_ROUGH);
        for (size_t n = 1; n < 3; n++) {
                ci = of_first(n).median_ci;
                assert_int_equal(ci.method, STATS_TOO_FEW);
                assert_true(isnan(ci.low) && isnan(ci.high) && isnan(ci.level));
        }
        assert_string_equal(stats_interval_methods[STATS_TOO_FEW], "n too small");
}

static void test_one_sample_has_no_spread(void **state)
{
        double v = 3;
        struct stats_description d = described(&v, 1);

        assert_near(d.median, 3, 0);
        assert_true(isnan(d.sd) && isnan(d.cv) && isnan(d.trend) && isnan(d.first_ratio));
        assert_false(d.slow_first);
}

/* Quartiles of type 7 are 3.25 and 7.75: fences at -3.5 and 14.5, and at -10.25 and 21.25. */
static void test_outliers_are_counted_and_kept(void **state)
{
        double v[] = {5, 2, 3, 4, 6, 7, 8, 9, 1, 14.4}, w[] = {5, 2, 3, 4, 6, 7, 8, 9, 1, 14.6};
        double x[] = {5, 2, 3, 4, 6, 7, 8, 9, 1, 21.3}, flat[] = {1, 1, 1, 1, 1, 1.5};
        struct stats_description d = described(v, 10);

        assert_int_equal(d.outliers.mild + d.outliers.severe + d.outliers.mad, 0);
        d = described(w, 10);
        assert_int_equal(d.outliers.mild, 1);
        assert_int_equal(d.outliers.severe, 0);
        d = described(x, 10);
        assert_int_equal(d.outliers.mild, 0);
        assert_int_equal(d.outliers.severe, 1);
        assert_int_equal(d.outliers.mad, 0);
        assert_near(d.max, 21.3, 0);
        x[9] = 5.5 + 14.826 * 2.5 + 0.01;
        assert_int_equal(described(x, 10).outliers.mad, 1);
        x[9] = 5.5 + 14.826 * 2.5 - 0.01;
        assert_int_equal(described(x, 10).outliers.mad, 0);
        assert_int_equal(described(flat, 6).outliers.mad, 1);
}

static void test_a_slow_first_run_is_told(void **state)
{
        double cold[] = {3, 1.01, 0.99, 1.02, 0.98, 1}, warm[] = {1.03, 1.01, 0.99, 1.02, 0.98, 1};
        double flat[] = {1.000001, 1, 1, 1, 1};
        struct stats_description d = described(cold, 6);

        assert_true(d.slow_first);
        assert_near(d.first_ratio, 3, 1e-9);
        assert_false(described(warm, 6).slow_first);
        assert_false(described(flat, 5).slow_first);
}

/* Hours of television and IQ, the example of many textbooks: rho = -29/165, p = 0.627. */
static void test_spearman_of_a_textbook(void **state)
{
        double iq[] = {106, 100, 86, 101, 99, 103, 97, 113, 112, 110};
        double tv[] = {7, 27, 2, 50, 28, 29, 20, 12, 6, 17}, rho, p;

        stats_spearman(iq, tv, 10, &rho, &p);
        assert_near(rho, -29.0 / 165, 1e-12);
        assert_near(p, 0.627188, 1e-6);
}

static void test_a_trend_is_exact_for_few(void **state)
{
        double up[] = {1, 2, 3, 4, 5}, tied[] = {1, 1, 2, 2, 3}, flat[] = {2, 2, 2, 2};
        struct stats_description d = described(up, 5);

        assert_near(d.trend, 1, 1e-12);
        assert_near(d.trend_p, 2.0 / 120, 1e-12);
        d = described(tied, 5);
        assert_true(d.trend > 0.9 && d.trend_p > 2.0 / 120 && d.trend_p < 0.1);
        d = described(flat, 4);
        assert_true(isnan(d.trend) && isnan(d.trend_p));
        d = described(up, 3);
        assert_true(isnan(d.trend));
}

static void test_student_and_normal(void **state)
{
        assert_near(dist_t_limit(0.05, 1), 12.7062047364, 1e-8);
        assert_near(dist_t_limit(0.05, 10), 2.2281388520, 1e-8);
        assert_near(dist_t_two_sided(2.0, 30), 0.0546, 1e-4);
        assert_near(dist_normal_quantile(0.975), 1.9599639845, 1e-8);
        assert_near(dist_normal_quantile(0.2), -0.8416212336, 1e-8);
}

static void test_what_is_no_number_is_refused(void **state)
{
        double bad[] = {1, NAN, 3}, huge[] = {1, 1e300}, rho, p;
        struct stats_description d;

        assert_false(stats_describe(bad, 3, &d));
        assert_false(stats_describe(huge, 2, &d));
        assert_false(stats_describe(NULL, 0, &d));
        assert_true(isnan(stats_median(NULL, 0)));
        stats_spearman(bad, bad, 3, &rho, &p);
        assert_true(isnan(rho) && isnan(p));
}

static void test_selection_finds_what_sorting_does(void **state)
{
        struct rng r;

        stats_seed(&r, "select", 0);
        for (size_t round = 0; round < 300; round++) {
                double v[40], sorted[40], found;
                size_t n = 1 + rng_below(&r, 40), k = rng_below(&r, n);

                for (size_t i = 0; i < n; i++)
                        sorted[i] = v[i] = (double)rng_below(&r, 1 + round % 50);
                stats_sort(sorted, n);
                found = stats_select(v, n, k);
                assert_near(found, sorted[k], 0);
                for (size_t i = 0; i < n; i++)
                        assert_true(i < k ? v[i] <= found : v[i] >= found);
        }
}

static void test_a_histogram(void **state)
{
        double v[] = {0, 1, 2, 2.4, 2.6, 9, 10, NAN, 50, -3};
        size_t counts[4];

        stats_histogram(v, 10, 0, 10, counts, 4);
        assert_int_equal(counts[0], 6);
        assert_int_equal(counts[1], 1);
        assert_int_equal(counts[2], 0);
        assert_int_equal(counts[3], 3);
        stats_histogram(v, 7, 5, 5, counts, 4);
        assert_int_equal(counts[0], 7);
        assert_int_equal(stats_histogram_bins(v, 7, 20), 3);
        assert_int_equal(stats_histogram_bins(v, 1, 20), 1);
        assert_int_equal(stats_histogram_bins(v + 2, 1, 20), 1);
}

static void test_the_same_seed_gives_the_same_sequence(void **state)
{
        struct rng a, b;
        size_t order[6];
        bool seen[6] = {0};

        stats_seed(&a, "0b1f", 7);
        stats_seed(&b, "0b1f", 7);
        assert_true(rng_next(&a) == rng_next(&b));
        assert_true(stats_seed_of("0b1f", 7) != stats_seed_of("0b1f", 8));
        assert_true(stats_seed_of("0b1f", 7) != stats_seed_of("0b1e", 7));
        assert_true(stats_seed_of(NULL, 7) == stats_seed_of("", 7));
        assert_true(stats_seed_of("a", 0) == 0xAF63DC4C8601EC8C);
        stats_shuffle(&a, order, 6);
        for (size_t i = 0; i < 6; i++)
                seen[order[i]] = true;
        for (size_t i = 0; i < 6; i++)
                assert_true(seen[i]);
}

static void test_a_shuffle_is_fair(void **state)
{
        size_t counts[3][3] = {{0}}, order[3];
        struct rng r;

        stats_seed(&r, "fair", 0);
        for (size_t i = 0; i < 6000; i++) {
                stats_shuffle(&r, order, 3);
                for (size_t k = 0; k < 3; k++)
                        counts[k][order[k]]++;
        }
        for (size_t i = 0; i < 9; i++)
                assert_true(counts[i / 3][i % 3] > 1850 && counts[i / 3][i % 3] < 2150);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ten_numbers),
        cmocka_unit_test(test_the_median_lies_between_two_order_statistics),
        cmocka_unit_test(test_few_samples_have_a_rough_interval_or_none),
        cmocka_unit_test(test_one_sample_has_no_spread),
        cmocka_unit_test(test_outliers_are_counted_and_kept),
        cmocka_unit_test(test_a_slow_first_run_is_told),
        cmocka_unit_test(test_spearman_of_a_textbook),
        cmocka_unit_test(test_a_trend_is_exact_for_few),
        cmocka_unit_test(test_student_and_normal),
        cmocka_unit_test(test_what_is_no_number_is_refused),
        cmocka_unit_test(test_selection_finds_what_sorting_does),
        cmocka_unit_test(test_a_histogram),
        cmocka_unit_test(test_the_same_seed_gives_the_same_sequence),
        cmocka_unit_test(test_a_shuffle_is_fair),
};
UNIT_MAIN(tests)
