/* Mean, spread and order statistics, against values that numpy gives. */
#include "unit/unit.h"

#include "stats/stats.h"

static void assert_near(double a, double b)
{
        assert_true(a - b < 1e-9 && b - a < 1e-9);
}

static void test_one_to_five(void **state)
{
        double v[] = {5, 3, 1, 4, 2};
        struct stats_summary s;

        assert_true(stats_summarize(v, 5, &s));
        assert_int_equal(s.n, 5);
        assert_near(s.sum, 15);
        assert_near(s.avg, 3);
        assert_near(s.min, 1);
        assert_near(s.max, 5);
        assert_near(s.p[STATS_P50], 3);
        assert_near(s.std, 1.4142135623730951);
        assert_near(s.p[STATS_P1], 1.04);
        assert_near(s.p[STATS_P90], 4.6);
        assert_near(s.p[STATS_P99], 4.96);
}

static void test_a_single_value_is_every_percentile(void **state)
{
        double v[] = {7};
        struct stats_summary s;

        assert_true(stats_summarize(v, 1, &s));
        for (int i = 0; i < STATS_PERCENTS_; i++)
                assert_near(s.p[i], 7);
        assert_near(s.std, 0);
}

static void test_nothing_has_no_summary(void **state)
{
        struct stats_summary s;

        assert_false(stats_summarize(NULL, 0, &s));
        assert_int_equal(s.n, 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_to_five),
        cmocka_unit_test(test_a_single_value_is_every_percentile),
        cmocka_unit_test(test_nothing_has_no_summary),
};
UNIT_MAIN(tests)
