/*
 * What need not be measured, and what is kept of what was.
 */
#include "unit/unit.h"

#include <unistd.h>

#include "probe/sla/run_internal.h"

static struct sla_row row(unsigned gpus, double latency, double throughput)
{
        return (struct sla_row){
                .candidate = {.gpus = gpus, .mapping = SIM_TP}, .latency = latency, .throughput = throughput};
}

static void a_size_is_left_out_when_throughput_falls_below_what_is_known(void **state)
{
        const struct sla_candidate four = {.gpus = 4, .mapping = SIM_TP},
                                   dep = {.gpus = 4, .mapping = SIM_DEP};
        const struct sla_row fell[] = {row(1, 50, 100), row(2, 30, 80)};
        const struct sla_row rose[] = {row(1, 50, 80), row(2, 30, 100)};
        const struct sla_row infeasible[] = {row(1, 150, 100), row(2, 130, 80)};

        (void)state;
        assert_true(adaptive_hopeless(fell, 2, fell, 2, 60, &four));
        assert_false(adaptive_hopeless(rose, 2, rose, 2, 60, &four));
        assert_false(adaptive_hopeless(fell, 1, fell, 1, 60, &four));
        assert_false(adaptive_hopeless(fell, 2, fell, 2, 60, &dep));
        /* Nothing meets the target yet: a larger size may be the first. */
        assert_false(adaptive_hopeless(infeasible, 2, infeasible, 2, 60, &four));
        /* The smaller misses the target, the larger meets it with less: still larger ones have less than that. */
        assert_true(adaptive_hopeless(fell, 2, fell, 2, 40, &four));
}

/* Searches a grid where exactly the first FEASIBLE meet the target; returns how many points it took. */
static size_t search(size_t n, size_t feasible, double best, size_t *ret_largest)
{
        struct adaptive_search s;
        size_t i, points = 0;

        *ret_largest = SIZE_MAX;
        adaptive_search_init(&s, n, 10, best);
        while (adaptive_search_next(&s, &i)) {
                assert_true(i < n);
                adaptive_search_add(&s, i < feasible ? 10 : 10.1, (double)(i + 1) * 100);
                if (i < feasible && (*ret_largest == SIZE_MAX || i > *ret_largest))
                        *ret_largest = i;
                assert_true(++points <= n);
        }
        return points;
}

static void the_largest_that_meets_the_target_is_found(void **state)
{
        size_t largest;

        (void)state;
        for (size_t n = 0; n <= 40; n++)
                for (size_t feasible = 0; feasible <= n; feasible++) {
                        size_t points = search(n, feasible, -1, &largest);

                        assert_int_equal(largest, feasible ? feasible - 1 : SIZE_MAX);
                        if (n == 6)
                                assert_in_range(points, 1, 4);
                }
        assert_int_equal(search(6, 6, -1, &largest), 1);
}

static void a_candidate_that_cannot_beat_the_best_is_left(void **state)
{
        size_t largest;

        (void)state;
        assert_int_equal(search(6, 3, 600, &largest), 1); /* its highest point has 600: no better */
        assert_true(search(6, 3, 599, &largest) > 1);
        assert_int_equal(search(6, 6, 700, &largest), 1);
        assert_int_equal(largest, 5);
}

static size_t refine(size_t n, double (*f)(double), bool whole, struct adaptive_curve *curve, struct arena *a)
{
        double x[64];
        size_t i, points = 0;

        for (i = 0; i < n; i++)
                x[i] = 100 + 200.0 * (double)i;
        adaptive_curve_init(curve, a, x, n, whole);
        while (adaptive_curve_next(curve, &i)) {
                const double y[ADAPTIVE_QUANTITIES] = {f(x[i])};

                adaptive_curve_add(curve, y);
                assert_true(++points <= n);
        }
        for (i = 0; i < n; i++) {
                assert_int_not_equal(curve->state[i], ADAPTIVE_OPEN);
                assert_true(adaptive_close(curve->y[i][0], f(x[i])));
        }
        return points;
}

static double line(double x)
{
        return 5 + 0.02 * x;
}

static double parabola(double x)
{
        return 5 + 0.02 * x + 1e-5 * x * x;
}

static double step(double x)
{
        return x < 1800 ? 10 : 20;
}

static void straight_parts_of_a_curve_are_not_measured(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct adaptive_curve curve;

        (void)state;
        assert_int_equal(refine(17, line, false, &curve, &a), 3);
        assert_int_equal(refine(17, parabola, false, &curve, &a), 5);
        assert_in_range(refine(17, step, false, &curve, &a), 5, 12);
        assert_int_equal(refine(17, line, true, &curve, &a), 17);
        for (size_t n = 0; n < 8; n++)
                assert_int_equal(refine(n, line, false, &curve, &a), MIN(n, (size_t)3));
}

static void a_lost_point_leaves_the_others(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        struct adaptive_curve curve;
        double y[ADAPTIVE_QUANTITIES];
        size_t i, asked = 0;

        (void)state;
        adaptive_curve_init(&curve, &a, x, ARRAY_LEN(x), false);
        while (adaptive_curve_next(&curve, &i)) {
                assert_true(++asked <= ARRAY_LEN(x));
                y[0] = y[1] = x[i];
                if (i == 4)
                        adaptive_curve_lose(&curve);
                else
                        adaptive_curve_add(&curve, y);
        }
        assert_int_equal(curve.state[4], ADAPTIVE_LOST);
        assert_true(adaptive_curve_at(&curve, 5, y));
        assert_true(adaptive_close(y[0], 5));
        /* beyond what was measured, too */
        assert_true(adaptive_curve_at(&curve, 20, y));
        assert_true(adaptive_close(y[1], 20));
        assert_true(adaptive_curve_at(&curve, -3, y));
        assert_true(adaptive_close(y[0], -3));
}

/* ---- the checkpoint */

static char *temporary(void)
{
        char *dir = xstrdup("/tmp/sonde-sla-XXXXXX");

        assert_non_null(mkdtemp(dir));
        return dir;
}

static void forget(char *dir)
{
        char *file = xasprintf("%s/%s", dir, RUN_CHECKPOINT_FILE);

        unlink(file);
        rmdir(dir);
        free(file);
        free(dir);
}

static void what_was_measured_is_there_in_the_next_life(void **state)
{
        const struct checkpoint_key key = {"DecodeSweep", "TP=2", 3000, 24},
                                    out = {"PrefillSweep", "TP=4", 0, 0},
                                    other = {"DecodeSweep", "TP=2", 3000, 25};
        const struct sla_point point = {.ttft_avg = 0.1 + 0.2,
                                        .ttft_max = -1,
                                        .itl_avg = 1.0 / 3,
                                        .output_throughput = 1e5 / 7,
                                        .seconds = 2.5,
                                        .requests = 24,
                                        .errors = 1};
        const struct sla_point *read;
        char *dir = temporary();
        struct checkpoint *c;

        (void)state;
        c = checkpoint_open(dir, "this", NULL);
        assert_null(checkpoint_point(c, &key));
        assert_int_equal(checkpoint_add_point(c, &key, &point, NULL), 0);
        assert_int_equal(checkpoint_add_kv(c, "TP=2", 123456789, NULL), 0);
        assert_int_equal(checkpoint_add_failure(c, &out, "it \"crashed\"", NULL), 0);
        assert_int_equal(checkpoint_choose(c, "TP=2", "TP=2", NULL), 0);
        checkpoint_free(c);

        c = checkpoint_open(dir, "this", NULL);
        read = checkpoint_point(c, &key);
        assert_non_null(read);
        assert_true(read->ttft_avg == point.ttft_avg && read->ttft_max == -1 &&
                    read->itl_avg == point.itl_avg && read->output_throughput == point.output_throughput &&
                    read->seconds == 2.5);
        assert_int_equal(read->requests, 24);
        assert_int_equal(read->errors, 1);
        assert_null(checkpoint_point(c, &other));
        assert_int_equal(checkpoint_kv(c, "TP=2"), 123456789);
        assert_int_equal(checkpoint_kv(c, "TP=4"), 0);
        assert_string_equal(checkpoint_failure(c, &out), "it \"crashed\"");
        assert_true(checkpoint_tried(c, "DecodeSweep", "TP=2") &&
                    checkpoint_tried(c, "PrefillSweep", "TP=4"));
        assert_false(checkpoint_tried(c, "DecodeSweep", "TP=4") ||
                     checkpoint_tried(c, "DecodeSweep", "TP=24"));
        assert_int_equal(checkpoint_points(c), 1);
        checkpoint_free(c);

        /* of another run: not used */
        c = checkpoint_open(dir, "that", NULL);
        assert_int_equal(checkpoint_points(c), 0);
        assert_int_equal(checkpoint_kv(c, "TP=2"), 0);
        checkpoint_free(c);
        forget(dir);
}

static void a_checkpoint_that_is_not_ours_is_not_used(void **state)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "{\"version\": 2}",
                "{\"version\": 1, \"of\": \"x\"}",
                "{\"version\": 1, \"of\": \"%s\"}",
                "{\"version\": 1, \"of\": \"%s\", \"kvTokens\": {\"TP=1\": -1}, \"failed\": {}, \"points\": "
                "{}}",
                "{\"version\": 1, \"of\": \"%s\", \"kvTokens\": {}, \"failed\": {\"a\": 1}, \"points\": {}}",
                "{\"version\": 1, \"of\": \"%s\", \"kvTokens\": {}, \"failed\": {}, \"points\": {\"a\": [1, "
                "2]}}",
                "{\"version\": 1, \"of\": \"%s\", \"kvTokens\": {}, \"failed\": {}, \"points\": {\"a\": "
                "[1,2,3,4,5,6,\"7\"]}}",
                "{\"version\": 1, \"of\": \"%s\", \"kvTokens\": {}, \"failed\": {}, \"points\": {\"a\": "
                "[1,2,3,4,1e999,6,7]}}",
        };
        char of[SHA256_HEX_MAX];
        char *dir = temporary(), *file = xasprintf("%s/%s", dir, RUN_CHECKPOINT_FILE);

        (void)state;
        sha256_hex(STR("this"), of);
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                const char *at = strstr(texts[i], "%s");
                char *text = at ? xasprintf("%.*s%s%s", (int)(at - texts[i]), texts[i], of, at + 2)
                                : xstrdup(texts[i]);
                struct checkpoint *c;

                assert_int_equal(file_replace(file, str_of(text), 0644, NULL), 0);
                c = checkpoint_open(dir, "this", NULL);
                assert_int_equal(checkpoint_points(c), 0);
                assert_int_equal(checkpoint_kv(c, "TP=1"), 0);
                checkpoint_free(c);
                free(text);
        }
        free(file);
        forget(dir);
}

static void a_full_checkpoint_fits(void **state)
{
        _cleanup_(checkpoint_free) struct checkpoint *c = checkpoint_open(NULL, "this", NULL);
        _cleanup_(buf_done) struct buf text = BUF_INIT(SLA_CHECKPOINT_MAX);
        const struct sla_point point = {.ttft_avg = 1234.0 / 3,
                                        .ttft_max = 12345.678901234567,
                                        .itl_avg = 100.0 / 3,
                                        .output_throughput = 1e6 / 3,
                                        .seconds = 1e4 / 3,
                                        .requests = 2000,
                                        .errors = 99};

        (void)state;
        for (uint64_t i = 1; i < SLA_POINTS_MAX; i++) {
                const struct checkpoint_key key = {"DecodeInterpolation", "TEP=128", 100000 + i, 2000};

                assert_int_equal(checkpoint_add_point(c, &key, &point, NULL), 0);
        }
        checkpoint_write(c, &text);
        assert_false(text.overflow);
        assert_true(text.n < 700000);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_is_left_out_when_throughput_falls_below_what_is_known),
        cmocka_unit_test(the_largest_that_meets_the_target_is_found),
        cmocka_unit_test(a_candidate_that_cannot_beat_the_best_is_left),
        cmocka_unit_test(straight_parts_of_a_curve_are_not_measured),
        cmocka_unit_test(a_lost_point_leaves_the_others),
        cmocka_unit_test(what_was_measured_is_there_in_the_next_life),
        cmocka_unit_test(a_checkpoint_that_is_not_ours_is_not_used),
        cmocka_unit_test(a_full_checkpoint_fits),
};

UNIT_MAIN(tests)
