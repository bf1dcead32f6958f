/* Series: how time grows with size, and whether it has become worse from run to run. */
#include "unit/unit.h"

#include <math.h>

#include "stats/stats.h"
#include "tools/simulate/simulate.h"

enum { MOST = 400, SAMPLES = 8 };

struct sweep {
        double values[6][SAMPLES];
        struct stats_size sizes[6];
};

static double square(double n)
{
        return 1e-9 * n * n;
}

static double linear_log(double n)
{
        return 1e-9 * n * log(n);
}

/* N sizes from 1 000 on, each four times the one before. */
static void sweep(struct sweep *s, size_t n, double (*time)(double n), double noise, uint64_t salt)
{
        struct rng r;

        stats_seed(&r, "sweep", salt);
        for (size_t i = 0; i < n; i++) {
                double size = 1000 * pow(4, (double)i);

                for (size_t k = 0; k < SAMPLES; k++)
                        s->values[i][k] = time(size) * exp(noise * stats_normal(&r));
                s->sizes[i] = (struct stats_size){size, s->values[i], SAMPLES};
        }
}

static void test_exponents(void **state)
{
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct stats_scaling s;
        struct sweep w;

        sweep(&w, 5, square, 0.03, 1);
        assert_true(stats_scaling(&arena, w.sizes, 5, "uid", &s));
        assert_true(s.low < 2 && s.high > 2 && s.high - s.low < 0.1 && !s.rough);
        assert_string_equal(s.verdict, "about n\302\262");
        sweep(&w, 5, linear_log, 0.01, 1);
        assert_true(stats_scaling(&arena, w.sizes, 5, "uid", &s));
        assert_true(s.exponent > 1.08 && s.exponent < 1.13 && s.low < s.exponent && s.high > s.exponent);
        assert_string_equal(s.verdict, "about n log n");
}

static void test_noise_leaves_several_growths(void **state)
{
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        struct stats_scaling s;
        struct sweep w;

        sweep(&w, 4, linear_log, 0.2, 2);
        assert_true(stats_scaling(&arena, w.sizes, 4, "uid", &s));
        assert_non_null(strstr(s.verdict, "n or n log n"));
        sweep(&w, 2, square, 0.01, 3);
        assert_true(stats_scaling(&arena, w.sizes, 2, "uid", &s));
        assert_true(s.rough && s.sizes == 2 && fabs(s.exponent - 2) < 0.05);
        for (size_t i = 0; i < 2; i++)
                w.sizes[i].n = 1;
        assert_true(stats_scaling(&arena, w.sizes, 2, "uid", &s));
        assert_true(isnan(s.low) && isnan(s.high) && fabs(s.exponent - 2) < 0.05);
        assert_true(str_has_prefix(str_of(s.verdict), STR("about n^")));
}

static void test_the_interval_holds_the_truth(void **state)
{
        size_t n = unit_extent(20, 100, 1000), held = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena arena = ARENA_INIT;
                struct stats_scaling s;
                struct sweep w;

                sweep(&w, 5, square, 0.1, i);
                assert_true(stats_scaling(&arena, w.sizes, 5, "uid", &s));
                held += s.low <= 2 && s.high >= 2;
        }
        assert_true((double)held >= 0.9 * (double)n);
}

static void test_sizes_that_tell_nothing(void **state)
{
        _cleanup_(arena_done) struct arena arena = ARENA_INIT;
        double v[] = {1, 2, 3}, bad[] = {1, -1};
        struct stats_size same[] = {{10, v, 3}, {10, v, 2}}, none[] = {{10, v, 3}, {20, NULL, 0}};
        struct stats_size wrong[] = {{10, v, 3}, {20, bad, 2}}, zero[] = {{0, v, 3}, {20, v, 2}};
        struct stats_size small[] = {{1, v, 1}, {2, v + 1, 1}};
        struct stats_scaling s;

        assert_false(stats_scaling(&arena, same, 2, NULL, &s));
        assert_false(stats_scaling(&arena, none, 2, NULL, &s));
        assert_false(stats_scaling(&arena, wrong, 2, NULL, &s));
        assert_false(stats_scaling(&arena, zero, 2, NULL, &s));
        assert_false(stats_scaling(&arena, NULL, 0, NULL, &s));
        assert_true(isnan(s.exponent));
        assert_true(stats_scaling(&arena, small, 2, NULL, &s));
        assert_true(fabs(s.exponent - 1) < 1e-9);
}

/* N more points at LEVEL. */
static void go_on(double *v, size_t *n, size_t more, double level, double noise)
{
        struct rng r;

        stats_seed(&r, "series", *n);
        for (size_t i = 0; i < more; i++)
                v[(*n)++] = level * exp(noise * stats_normal(&r));
}

static struct stats_change changed(const double *v, size_t n)
{
        struct stats_change c;

        assert_true(stats_change(v, n, 0, &c));
        return c;
}

static void test_a_change_is_told_with_its_place(void **state)
{
        double v[MOST];
        size_t n = 0;
        struct stats_change c;

        go_on(v, &n, 30, 2, 0.01);
        assert_false(changed(v, n).degraded);
        go_on(v, &n, 10, 2.2, 0.01);
        c = changed(v, n);
        assert_true(c.degraded);
        assert_int_equal(c.first_bad, 30);
        assert_int_equal(c.good_from, 0);
        assert_true(fabs(c.before - 2) < 0.02 && fabs(c.after - 2.2) < 0.02);
        assert_true(c.low < 1.1 && c.high > 1.1 && c.low > 1.08 && c.high < 1.12);
}

static void test_it_clears_when_time_comes_back(void **state)
{
        double v[MOST];
        size_t n = 0;

        go_on(v, &n, 30, 2, 0.02);
        go_on(v, &n, 40, 2.4, 0.02);
        assert_true(changed(v, n).degraded);
        assert_int_equal(changed(v, n).first_bad, 30);
        go_on(v, &n, 8, 2, 0.02);
        assert_false(changed(v, n).degraded);
        go_on(v, &n, 7, 2, 0.02);
        go_on(v, &n, 8, 2.4, 0.02);
        assert_true(changed(v, n).degraded);
        assert_int_equal(changed(v, n).first_bad, 85);
}

/* It stays one degradation while the level moves, and never clears for a moment. */
static void test_a_bad_level_may_move(void **state)
{
        double v[MOST];
        size_t n = 0;

        go_on(v, &n, 30, 2, 0.02);
        go_on(v, &n, 20, 2.3, 0.02);
        for (size_t i = 0; i < 40; i++) {
                go_on(v, &n, 1, i < 20 ? 2.6 : 2.2, 0.02);
                assert_true(changed(v, n).degraded);
                assert_int_equal(changed(v, n).first_bad, 30);
        }
}

static void test_what_is_better_never_alarms(void **state)
{
        double v[MOST];
        size_t n = 0;

        go_on(v, &n, 30, 2, 0.02);
        for (size_t i = 0; i < 20; i++) {
                go_on(v, &n, 1, 1.6, 0.02);
                assert_false(changed(v, n).degraded);
        }
        /* What was gained can be lost. */
        go_on(v, &n, 10, 2, 0.02);
        assert_true(changed(v, n).degraded);
        assert_int_equal(changed(v, n).first_bad, 50);
        assert_int_equal(changed(v, n).good_from, 30);
}

static void test_single_outliers_are_nothing(void **state)
{
        double v[MOST];
        size_t n = 0;

        for (size_t i = 0; i < 20; i++) {
                go_on(v, &n, 6, 2, 0.02);
                v[n++] = 9;
                assert_false(changed(v, n).degraded);
        }
        v[n++] = 9;
        assert_false(changed(v, n).degraded);
}

static void test_no_baseline_no_alarm(void **state)
{
        double v[MOST];
        size_t n = 0;

        for (size_t i = 0; i < 13; i++) {
                go_on(v, &n, 1, i < 7 ? 1 : 3, 0.001);
                assert_false(changed(v, n).degraded);
        }
        assert_false(changed(NULL, 0).degraded);
}

static void test_drift_counts_once_it_is_a_change(void **state)
{
        double v[MOST], w[MOST];
        size_t n;

        for (n = 0; n < 150; n++) {
                v[n] = 1 + 0.02 * (double)n / 150;
                w[n] = 1 + 0.2 * (double)n / 150;
                assert_false(changed(v, n + 1).degraded);
        }
        assert_true(changed(w, n).degraded);
}

static void test_only_the_last_points_count(void **state)
{
        double v[MOST];
        size_t n = 0;

        go_on(v, &n, 100, 1, 0.01);
        go_on(v, &n, 100, 2, 0.01);
        assert_true(changed(v, n).degraded);
        go_on(v, &n, 50, 2, 0.01);
        assert_int_equal(changed(v, n).first_bad, 100);
        go_on(v, &n, 60, 2, 0.01);
        assert_false(changed(v, n).degraded);
}

static void test_equal_points_and_none(void **state)
{
        double v[MOST];
        struct stats_change c;

        for (size_t i = 0; i < 60; i++)
                v[i] = i < 40 ? 5 : 6;
        assert_false(changed(v, 40).degraded);
        assert_true(changed(v, 50).degraded);
        assert_int_equal(changed(v, 50).first_bad, 40);
        v[3] = NAN;
        assert_false(stats_change(v, 50, 0, &c));
        assert_false(c.degraded);
        v[3] = 0;
        assert_false(stats_change(v, 50, 0, &c));
}

/* Whether a level that is 10 % worse after 30 runs is seen within WITHIN. */
static bool is_found(uint64_t seed, double noise, size_t within)
{
        double v[64];
        struct rng r;

        stats_seed(&r, "found", seed);
        for (size_t n = 0; n < 30 + within; n++) {
                v[n] = simulate_point(&r, n < 30 ? 1 : 1.1, noise);
                if (n >= 30 && changed(v, n + 1).degraded)
                        return true;
        }
        return false;
}

/* The bench has ten thousand. */
static void test_ten_percent_are_found(void **state)
{
        size_t n = unit_extent(100, 300, 3000), at_3 = 0, at_5 = 0;

        for (size_t i = 0; i < n; i++) {
                at_3 += is_found(i, 0.03, 8);
                at_5 += is_found(i, 0.05, 12);
        }
        assert_true((double)at_3 >= 0.95 * (double)n);
        assert_true((double)at_5 >= 0.85 * (double)n);
}

static void test_stable_series_are_left_alone(void **state)
{
        size_t n = unit_extent(20, 60, 600), alarms = 0;

        for (size_t i = 0; i < n; i++) {
                bool was = false;
                double v[100];
                struct rng r;

                stats_seed(&r, "stable", i);
                for (size_t k = 0; k < 100; k++) {
                        bool is;

                        v[k] = simulate_point(&r, 1, 0.03);
                        is = changed(v, k + 1).degraded;
                        alarms += is && !was;
                        was = is;
                }
        }
        assert_true((double)alarms <= 0.001 * 100 * (double)n);
}

static void test_the_first_bad_run_of_an_exact_step_is_the_first(void **state)
{
        for (size_t at = 15; at < 40; at++) {
                double values[50];
                struct stats_change c;

                for (size_t i = 0; i < 50; i++)
                        values[i] = i < at ? 1.0 : 1.2;
                assert_true(stats_change(values, 50, 0, &c));
                assert_true(c.degraded);
                assert_int_equal(c.first_bad, at);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_bad_run_of_an_exact_step_is_the_first),
        cmocka_unit_test(test_exponents),
        cmocka_unit_test(test_noise_leaves_several_growths),
        cmocka_unit_test(test_the_interval_holds_the_truth),
        cmocka_unit_test(test_sizes_that_tell_nothing),
        cmocka_unit_test(test_a_change_is_told_with_its_place),
        cmocka_unit_test(test_it_clears_when_time_comes_back),
        cmocka_unit_test(test_a_bad_level_may_move),
        cmocka_unit_test(test_what_is_better_never_alarms),
        cmocka_unit_test(test_single_outliers_are_nothing),
        cmocka_unit_test(test_no_baseline_no_alarm),
        cmocka_unit_test(test_drift_counts_once_it_is_a_change),
        cmocka_unit_test(test_only_the_last_points_count),
        cmocka_unit_test(test_equal_points_and_none),
        cmocka_unit_test(test_ten_percent_are_found),
        cmocka_unit_test(test_stable_series_are_left_alone),
};
UNIT_MAIN(tests)
