/* Which row wins. */
#include "unit/sla_rig.h"

static struct sla_row row(double latency, double throughput)
{
        return (struct sla_row){.latency = latency, .throughput = throughput};
}

static void test_the_most_throughput_that_meets_the_target(void **state)
{
        const struct sla_row rows[] = {row(300, 900), row(200, 700), row(120, 400), row(90, 500)};
        struct sla_choice c;

        assert_true(sla_pick(rows, ARRAY_LEN(rows), 250, &c));
        assert_true(c.feasible);
        assert_int_equal(c.index, 1);
        assert_near(c.best, 90);
}

static void test_the_target_is_inclusive(void **state)
{
        const struct sla_row rows[] = {row(100.5, 900), row(100, 700)};
        struct sla_choice c;

        assert_true(sla_pick(rows, 2, 100.5, &c));
        assert_int_equal(c.index, 0);
        assert_true(sla_pick(rows, 2, 100, &c));
        assert_true(c.feasible);
        assert_int_equal(c.index, 1);
}

static void test_of_equals_the_first_wins(void **state)
{
        const struct sla_row rows[] = {row(90, 400), row(80, 500), row(70, 500)};
        struct sla_choice c;

        assert_true(sla_pick(rows, 3, 100, &c));
        assert_int_equal(c.index, 1);
        assert_true(sla_pick((const struct sla_row[]){row(90, 1), row(90, 2)}, 2, 10, &c));
        assert_int_equal(c.index, 0);
}

static void test_nothing_meets_the_target(void **state)
{
        const struct sla_row rows[] = {row(300, 900), row(120, 400), row(200, 700)};
        struct sla_choice c;

        assert_true(sla_pick(rows, 3, 100, &c));
        assert_false(c.feasible);
        assert_int_equal(c.index, 1);
        assert_near(c.best, 120);
}

static void test_rows_without_numbers_are_not_there(void **state)
{
        const struct sla_row rows[] = {row(NAN, 900), row(50, NAN), row(60, 10)};
        struct sla_choice c;

        assert_true(sla_pick(rows, 3, 100, &c));
        assert_int_equal(c.index, 2);
        assert_near(c.best, 60);
        assert_false(sla_pick(rows, 2, 100, &c));
        assert_false(sla_pick(NULL, 0, 100, &c));
}

static void test_any_choice_meets_the_target_when_a_row_does(void **state)
{
        struct sla_row rows[20] = {0};
        struct sla_choice c;
        struct rng rng;

        rng_seed(&rng, 8);
        for (unsigned round = 0; round < 20000; round++) {
                size_t n = (size_t)rng_below(&rng, ARRAY_LEN(rows)) + 1;
                double target = (double)rng_below(&rng, 12), least = INFINITY, most = -INFINITY;

                for (size_t i = 0; i < n; i++) {
                        rows[i] = row((double)rng_below(&rng, 10) + 1, (double)rng_below(&rng, 10));
                        least = fmin(least, rows[i].latency);
                        if (rows[i].latency <= target)
                                most = fmax(most, rows[i].throughput);
                }
                assert_true(sla_pick(rows, n, target, &c));
                assert_true(c.best == least && c.feasible == (least <= target) && c.index < n);
                if (!c.feasible) {
                        assert_true(rows[c.index].latency == least);
                        continue;
                }
                assert_true(rows[c.index].latency <= target && rows[c.index].throughput == most);
                for (size_t i = 0; i < c.index; i++)
                        assert_true(rows[i].latency > target || rows[i].throughput < most);
        }
}

static void test_formulas(void **state)
{
        struct sla_candidate tp, dep;

        sla_candidate_init(&tp, SIM_TP, 4);
        sla_candidate_init(&dep, SIM_DEP, 8);
        assert_near(sla_burst_ttft(812.5, 9.25), 175.375);
        assert_near(sla_prefill_throughput(3000, 87.5, &tp), 8571.42857142857);
        assert_near(sla_prefill_throughput(3000, 120.25, &dep), 24948.024948024948);
        assert_near(sla_prefill_throughput(3000, 0, &tp), 0);
        assert_near(sla_cost(3000, 8571.428571428571, 500, 1234.5), 0.6291852301876604);
        assert_near(sla_cost(4000, 20000, 1000, 150), 5.722222222222222);
}

static void test_rows_that_no_other_beats(void **state)
{
        const double x[] = {5, 1, 3, 3, NAN, 2, 4, 1}, y[] = {50, 10, 30, 35, 99, 5, 35, 10};
        size_t kept[ARRAY_LEN(x)];

        assert_int_equal(sla_pareto(x, y, ARRAY_LEN(x), kept), 3);
        assert_int_equal(kept[0], 1);
        assert_int_equal(kept[1], 3);
        assert_int_equal(kept[2], 0);
        assert_int_equal(sla_pareto(x, y, 0, kept), 0);
}

static void test_any_front_leaves_out_only_what_is_beaten(void **state)
{
        double x[30], y[30];
        size_t kept[30];
        struct rng rng;

        rng_seed(&rng, 9);
        for (unsigned round = 0; round < 5000; round++) {
                size_t n = (size_t)rng_below(&rng, 30) + 1, front;

                for (size_t i = 0; i < n; i++) {
                        x[i] = (double)rng_below(&rng, 12);
                        y[i] = (double)rng_below(&rng, 12);
                }
                front = sla_pareto(x, y, n, kept);
                assert_in_range(front, 1, n);
                for (size_t i = 1; i < front; i++)
                        assert_true(x[kept[i]] > x[kept[i - 1]] && y[kept[i]] > y[kept[i - 1]]);
                for (size_t i = 0; i < n; i++) {
                        bool covered = false;

                        for (size_t j = 0; j < front; j++)
                                covered = covered || (x[kept[j]] <= x[i] && y[kept[j]] >= y[i]);
                        assert_true(covered);
                }
        }
}

static struct sla_row sized(unsigned gpus, double latency, double throughput)
{
        struct sla_row r = row(latency, throughput);

        sla_candidate_init(&r.candidate, SIM_TP, gpus);
        return r;
}

static void test_the_best_pair_that_fits(void **state)
{
        const struct sla_row prefill[] = {sized(1, 100, 9000), sized(2, 55, 8000), sized(4, 30, 9500)},
                             decode[] = {sized(1, 12, 500), sized(2, 8, 400), sized(4, 5, 600)};
        struct sla_pick_in in = {.prefill = prefill,
                                 .n_prefill = 3,
                                 .decode = decode,
                                 .n_decode = 3,
                                 .ttft = 60,
                                 .itl = 10,
                                 .isl = 3000,
                                 .osl = 500};
        static const struct {
                unsigned gpus;
                size_t prefill, decode;
                bool feasible[2];
        } cases[] = {
                {8, 2, 2, {true, true}},                             /* the best of each */
                {6, 1, 2, {true, true}},                             /* decode counts for more of the cost */
                {4, 1, 1, {true, true}},   {3, 1, 0, {true, false}}, /* 12 of 10 is nearer than 100 of 60 */
                {2, 0, 0, {false, false}},
        };
        struct sla_choice p, d;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                in.gpus = cases[i].gpus;
                assert_true(sla_pick_within(&in, &p, &d));
                assert_int_equal(p.index, cases[i].prefill);
                assert_int_equal(d.index, cases[i].decode);
                assert_int_equal(p.feasible, cases[i].feasible[0]);
                assert_int_equal(d.feasible, cases[i].feasible[1]);
        }
        in.gpus = 1;
        assert_false(sla_pick_within(&in, &p, &d));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_most_throughput_that_meets_the_target),
        cmocka_unit_test(test_the_target_is_inclusive),
        cmocka_unit_test(test_of_equals_the_first_wins),
        cmocka_unit_test(test_nothing_meets_the_target),
        cmocka_unit_test(test_the_best_pair_that_fits),
        cmocka_unit_test(test_rows_without_numbers_are_not_there),
        cmocka_unit_test(test_any_choice_meets_the_target_when_a_row_does),
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_rows_that_no_other_beats),
        cmocka_unit_test(test_any_front_leaves_out_only_what_is_beaten),
};
UNIT_MAIN(tests)
