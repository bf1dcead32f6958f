/* Between the points. The expected values are scipy's (CubicSpline, not-a-knot). */
#include "unit/sla_rig.h"

static void assert_spline(const double *x, const double *y, size_t n, const double (*at)[2], size_t n_at)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_spline s;

        assert_int_equal(sla_spline_init(&a, x, y, n, &s, &err), 0);
        for (size_t i = 0; i < n_at; i++)
                assert_near(sla_spline_at(&s, at[i][0]), at[i][1]);
        for (size_t i = 0; i < n; i++)
                assert_near(sla_spline_at(&s, x[i]), y[i]);
        assert_near(sla_spline_at(&s, x[0] - 1000), y[0]);
        assert_near(sla_spline_at(&s, x[n - 1] + 1000), y[n - 1]);
        assert_near(sla_spline_at(&s, NAN), y[0]);
}

static void test_splines_are_scipy_s(void **state)
{
        static const double x1[] = {100, 573, 1046, 1519, 1992}, y1[] = {12.5, 31.0, 55.25, 80.0, 121.5},
                            at1[][2] = {{150, 13.866705273445202},
                                        {336.5, 20.367187499999996},
                                        {800, 42.57447274369247},
                                        {1300, 67.7694198225717},
                                        {1777.7, 99.24090829279776}};
        static const double x2[] = {1, 2, 4, 8}, y2[] = {3, 1, 4, 1},
                            at2[][2] = {{1.5, 1.5706845238095237},
                                        {3, 1.7738095238095237},
                                        {5.5, 7.171875},
                                        {7.9, 1.7280178571428557}};
        static const double x3[] = {0, 1, 3}, y3[] = {2, 5, 1},
                            at3[][2] = {{0.5, 3.916666666666667}, {2, 4.666666666666666}, {2.5, 3.25}};
        static const double x4[] = {0, 2}, y4[] = {1, 5}, at4[][2] = {{0.5, 2}, {1.5, 4}};
        static const double x5[] = {0.01, 0.2, 0.41, 0.6, 0.81, 0.99}, y5[] = {4.1, 5.0, 6.2, 7.9, 9.6, 12.0},
                            at5[][2] = {{0.05, 4.315892913512644},
                                        {0.3, 5.483878493400133},
                                        {0.5, 6.986794054723736},
                                        {0.7, 8.688320634593802},
                                        {0.9, 10.594817796246073}};
        static const double x6[] = {100, 2621, 5142, 7663, 10184, 12705, 15226, 17747},
                            y6[] = {14.2, 310, 655, 1020, 1444, 1900, 2402, 2950},
                            at6[][2] = {{1000, 110.81856470766346},
                                        {4000, 496.0112163058719},
                                        {9000, 1238.7868438239034},
                                        {16000, 2565.737963260042}};
        static const double x7[] = {7}, y7[] = {3}, at7[][2] = {{6, 3}, {8, 3}};

        assert_spline(x1, y1, ARRAY_LEN(x1), at1, ARRAY_LEN(at1));
        assert_spline(x2, y2, ARRAY_LEN(x2), at2, ARRAY_LEN(at2));
        assert_spline(x3, y3, ARRAY_LEN(x3), at3, ARRAY_LEN(at3));
        assert_spline(x4, y4, ARRAY_LEN(x4), at4, ARRAY_LEN(at4));
        assert_spline(x5, y5, ARRAY_LEN(x5), at5, ARRAY_LEN(at5));
        assert_spline(x6, y6, ARRAY_LEN(x6), at6, ARRAY_LEN(at6));
        assert_spline(x7, y7, ARRAY_LEN(x7), at7, ARRAY_LEN(at7));
}

/* Four points have one cubic through them, and not-a-knot finds it whatever their distances. */
static void test_a_cubic_comes_back(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_spline s;
        struct rng rng;

        rng_seed(&rng, 11);
        for (unsigned round = 0; round < 500; round++) {
                double x[9] = {0}, y[9] = {0}, at = any_between(&rng, 0.5, 1);
                size_t n = (size_t)rng_below(&rng, 6) + 4;

                for (size_t i = 0; i < n; i++) {
                        at += any_between(&rng, 0.01, 1);
                        x[i] = at;
                        y[i] = 5 + at * (2 + at * (0.5 + 0.3 * at));
                }
                assert_int_equal(sla_spline_init(&a, x, y, n, &s, &err), 0);
                for (int i = 0; i <= 100; i++) {
                        double v = x[0] + (x[n - 1] - x[0]) * i / 100,
                               expected = 5 + v * (2 + v * (0.5 + 0.3 * v));

                        assert_true(fabs(sla_spline_at(&s, v) - expected) < 1e-9 * expected);
                }
        }
}

static void test_no_curve_swings_below_nothing(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_spline s;
        struct rng rng;

        rng_seed(&rng, 12);
        for (unsigned round = 0; round < 2000; round++) {
                double x[8] = {0}, y[8] = {0}, at = 0;
                size_t n = (size_t)rng_below(&rng, 8) + 1;

                for (size_t i = 0; i < n; i++) {
                        at += any_between(&rng, 0.001, 1);
                        x[i] = at;
                        y[i] = rng_below(&rng, 2) ? any_between(&rng, 1e-3, 1e3) : 0;
                }
                assert_int_equal(sla_spline_init(&a, x, y, n, &s, &err), 0);
                for (int i = 0; i <= 500; i++)
                        assert_true(sla_spline_at(&s, x[0] + (x[n - 1] - x[0]) * i / 500) > -1e-9);
        }
}

static void test_points_that_are_no_curve(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_spline s;

        assert_int_equal(sla_spline_init(&a, NULL, NULL, 0, &s, &err), -1);
        assert_string_equal(err.text, "a curve needs at least one point");
        assert_int_equal(sla_spline_init(&a, (double[]){1, 1}, (double[]){1, 1}, 2, &s, &err), -1);
        assert_string_equal(err.text, "point 1 of the curve is not right of the one before it");
        assert_int_equal(sla_spline_init(&a, (double[]){1, NAN}, (double[]){1, 1}, 2, &s, &err), -1);
        assert_string_equal(err.text, "point 1 of the curve is no number");
}

/* ---- the surface */

enum { KV = 100000, ROWS = 6, POINTS = 6 };

/* A step of an engine: so much, so much a request, and so much a token in the KV cache. */
static double true_itl(double usage, double context)
{
        return 4 + 0.05 * usage * KV / context + 2e-5 * usage * KV;
}

static double true_throughput(double usage, double context)
{
        return 1000 * usage * KV / context / true_itl(usage, context);
}

static struct sla_surface *measured(struct arena *a)
{
        struct sla_sample v[ROWS * POINTS];
        struct err err = ERR_INIT;
        struct sla_surface *s;
        size_t n = 0;

        /* From the longest, and from the fullest: in any order. */
        for (int row = ROWS - 1; row >= 0; row--)
                for (int i = POINTS; i > 0; i--) {
                        double context = 350 + 1282.0 * row, usage = 0.95 * i / POINTS;

                        v[n++] = (struct sla_sample){.kv_usage = usage,
                                                     .context = context,
                                                     .itl = true_itl(usage, context),
                                                     .throughput = true_throughput(usage, context)};
                }
        s = sla_surface_new(a, v, n, &err);
        assert_non_null(s);
        return s;
}

static void test_the_surface_of_an_engine(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_surface *s = measured(&a);

        /* At the points and between them it is the engine's, for all that goes with the number of requests. */
        for (int i = 0; i <= 79; i++)
                for (int j = 0; j <= 83; j++) {
                        double usage = 0.95 / POINTS + 0.01 * i, context = 350 + 77.0 * j;

                        assert_near(sla_surface_itl(s, usage, context), true_itl(usage, context));
                        assert_near(sla_surface_throughput(s, usage, context),
                                    true_throughput(usage, context));
                }
        /* Outside it is as at the nearest. */
        assert_near(sla_surface_itl(s, 1, 350), true_itl(0.95, 350));
        assert_near(sla_surface_itl(s, 0, 350), true_itl(0.95 / POINTS, 350));
        assert_near(sla_surface_itl(s, 0.5, 10), sla_surface_itl(s, 0.5, 350));
        assert_near(sla_surface_itl(s, 0.5, 1e9), sla_surface_itl(s, 0.5, 350 + 1282 * (ROWS - 1)));
}

static void test_the_best_that_meets_a_target(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_surface *s = measured(&a);
        double usage, best;

        /* On a row: 4 + usage * (100000 / 350 * 0.05 + 2) = 10. */
        best = sla_surface_best(s, 10, 350, &usage);
        assert_true(fabs(usage - 6 / (5000 / 350.0 + 2)) <= 0.001);
        assert_near(best, sla_surface_throughput(s, usage, 350));
        assert_true(sla_surface_itl(s, usage, 350) <= 10);
        /* All of them meet it; none does. */
        assert_near(sla_surface_best(s, 1e9, 350, &usage), true_throughput(0.95, 350));
        assert_near(usage, 0.95);
        assert_near(sla_surface_best(s, 1, 350, &usage), true_throughput(0.95 / POINTS, 350));
        assert_near(usage, 0.95 / POINTS);
        assert_near(sla_surface_best(s, 1, 350, NULL), true_throughput(0.95 / POINTS, 350));
}

static void test_a_stricter_target_never_gives_more(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct sla_surface *s = measured(&a);

        for (int context = 100; context < 9000; context += 333) {
                double before = 0;

                for (int half = 10; half < 60; half++) {
                        double best = sla_surface_best(s, half / 2.0, context, NULL);

                        assert_true(best >= before);
                        before = best;
                }
        }
}

static void test_throughput_that_falls(void **state)
{
        const struct sla_sample samples[] = {{.kv_usage = 0.2, .context = 500, .itl = 5, .throughput = 60},
                                             {.kv_usage = 0.5, .context = 500, .itl = 6, .throughput = 100},
                                             {.kv_usage = 0.9, .context = 500, .itl = 9, .throughput = 80}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_surface *s = sla_surface_new(&a, samples, 3, &err);
        double usage, best = sla_surface_best(s, 10, 500, &usage);

        assert_true(best >= 100 - 1e-9);
        assert_true(usage < 0.9);
        assert_near(best, sla_surface_throughput(s, usage, 500));
        for (int i = 0; i <= 100; i++)
                assert_true(sla_surface_throughput(s, i / 100.0, 500) <= best + 0.01);
}

static void test_few_samples(void **state)
{
        const struct sla_sample one = {.kv_usage = 0.3, .context = 500, .itl = 7, .throughput = 70};
        const struct sla_sample twice[] = {{.kv_usage = 0.5, .context = 500, .itl = 6, .throughput = 60},
                                           {.kv_usage = 0.5, .context = 500, .itl = 8, .throughput = 80},
                                           {.kv_usage = 1, .context = 500, .itl = 9, .throughput = 100}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct sla_surface *s = sla_surface_new(&a, &one, 1, &err);

        assert_near(sla_surface_itl(s, 0.9, 9000), 7);
        assert_near(sla_surface_best(s, 7, 9000, NULL), 70);
        /* What was measured twice counts as its mean. */
        s = sla_surface_new(&a, twice, 3, &err);
        assert_near(sla_surface_itl(s, 0.5, 500), 7);
        assert_near(sla_surface_throughput(s, 0.5, 500), 70);
        assert_near(sla_surface_throughput(s, 0.75, 500), (70.0 * 7 + 100 * 9) / 2 / 8);
}

static void test_samples_that_are_no_surface(void **state)
{
        static const struct sla_sample bad[] = {
                {.kv_usage = -0.1, .context = 1, .itl = 1, .throughput = 1},
                {.kv_usage = 0.1, .context = 0, .itl = 1, .throughput = 1},
                {.kv_usage = 0.1, .context = 1, .itl = NAN, .throughput = 1},
                {.kv_usage = 0.1, .context = 1, .itl = 0, .throughput = 1},
                {.kv_usage = 0.1, .context = 1, .itl = 1, .throughput = INFINITY}};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        assert_null(sla_surface_new(&a, NULL, 0, &err));
        assert_string_equal(err.text, "a surface needs at least one sample");
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_null(sla_surface_new(&a, &bad[i], 1, &err));
                assert_string_equal(err.text,
                                    "sample 0 of the surface needs a context and an ITL above 0, a KV usage "
                                    "and a throughput of 0 or more");
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splines_are_scipy_s),
        cmocka_unit_test(test_a_cubic_comes_back),
        cmocka_unit_test(test_no_curve_swings_below_nothing),
        cmocka_unit_test(test_points_that_are_no_curve),
        cmocka_unit_test(test_the_surface_of_an_engine),
        cmocka_unit_test(test_the_best_that_meets_a_target),
        cmocka_unit_test(test_a_stricter_target_never_gives_more),
        cmocka_unit_test(test_throughput_that_falls),
        cmocka_unit_test(test_few_samples),
        cmocka_unit_test(test_samples_that_are_no_surface),
};
UNIT_MAIN(tests)
