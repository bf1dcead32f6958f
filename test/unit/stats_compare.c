/* Several algorithms compared: verdicts, intervals, reasons, and how often equal ones are called different. */
#include "unit/unit.h"

#include <math.h>

#include "stats/stats.h"
#include "tools/simulate/simulate.h"

enum { SIDES = 3, MOST = 40 };

struct world {
        struct arena arena;
        struct stats_sample samples[SIDES][MOST];
        struct stats_side sides[SIDES];
        struct stats_compare c;
        struct stats_comparison k;
};

static int make_world(void **state)
{
        static const char *const names[SIDES] = {"quick_sort", "merge_sort", "bubble_sort"};
        struct world *w = xcalloc(1, sizeof(*w));

        for (size_t i = 0; i < SIDES; i++)
                w->sides[i] = (struct stats_side){
                        .name = names[i], .samples = w->samples[i], .accuracy = NAN};
        w->c = (struct stats_compare){.sides = w->sides, .n_sides = 2, .baseline = 1, .seed = "uid"};
        *state = w;
        return 0;
}

static int free_world(void **state)
{
        arena_done(&((struct world *)*state)->arena);
        free(*state);
        return 0;
}

/* N runs of SIDE at LEVEL, with noise that is the same for equal SALT. */
static void runs(struct world *w, size_t side, size_t n, double level, double noise, uint64_t salt)
{
        struct rng r;

        stats_seed(&r, "runs", salt);
        for (size_t i = 0; i < n; i++)
                w->samples[side][i] = (struct stats_sample){level * exp(noise * stats_normal(&r)), 0,
                                                            (uint32_t)i};
        w->sides[side].n = n;
}

static const struct stats_pair *compared(struct world *w)
{
        stats_compare(&w->arena, &w->c, &w->k);
        assert_non_null(w->k.summary);
        for (size_t i = 0; i < w->k.n; i++)
                assert_non_null(w->k.pairs[i].why);
        return w->k.pairs;
}

static void test_a_clear_difference(void **state)
{
        struct world *w = *state;
        const struct stats_pair *p;

        runs(w, 0, 10, 1, 0.02, 1);
        runs(w, 1, 10, 1.5, 0.02, 2);
        p = compared(w);
        assert_int_equal(w->k.n, 1);
        assert_int_equal(p->verdict, STATS_LESS);
        assert_true(p->low > 0.62 && p->low < p->ratio && p->ratio < p->high && p->high < 0.72);
        assert_true(p->effect == -1 && p->shift < -0.45 && p->shift > -0.55);
        assert_true(p->p < 0.0001 && p->p == p->p_adjusted && p->needed == 0);
        assert_true(w->k.best == 0 && w->k.best_is_clear && !w->k.by_pod);
        assert_true(w->k.noise_floor > 0.001 && w->k.noise_floor < 0.05);
        assert_true(str_has_prefix(str_of(w->k.summary),
                                   STR("quick_sort is the fastest: the median of merge_sort")));
        w->c.baseline = 0;
        assert_int_equal(compared(w)->verdict, STATS_MORE);
        assert_true(w->k.best == 0 && w->k.best_is_clear);
}

static void test_memory_has_its_own_words(void **state)
{
        assert_string_equal(stats_verdict_word(STATS_LESS, STATS_TIME), "faster");
        assert_string_equal(stats_verdict_word(STATS_MORE, STATS_TIME), "slower");
        assert_string_equal(stats_verdict_word(STATS_SAME, STATS_TIME), "no detectable difference");
        assert_string_equal(stats_verdict_word(STATS_INCONCLUSIVE, STATS_MEMORY), "inconclusive");
        assert_string_equal(stats_verdict_word(STATS_NOT_COMPARABLE, STATS_TIME), "not comparable");
        assert_string_equal(stats_verdict_word(STATS_LESS, STATS_MEMORY), "smaller");
        assert_string_equal(stats_verdict_word(STATS_MORE, STATS_MEMORY), "larger");
}

static void test_the_same_samples_give_the_same_bytes(void **state)
{
        struct world *w = *state;
        struct stats_pair p;
        double low;

        runs(w, 0, 12, 1, 0.1, 1);
        runs(w, 1, 12, 1, 0.1, 2);
        p = *compared(w);
        assert_true(p.low == compared(w)->low && p.high == w->k.pairs->high && p.floor == w->k.pairs->floor);
        assert_string_equal(p.why, w->k.pairs->why);
        low = p.low;
        w->c.separate = true;
        assert_true(compared(w)->low != low);
}

static void test_few_runs_are_inconclusive(void **state)
{
        struct world *w = *state;

        for (size_t n = 1; n <= 3; n++) {
                runs(w, 0, n, 1, 0.0001, 1);
                runs(w, 1, n, 2, 0.0001, 2);
                assert_int_equal(compared(w)->verdict, STATS_INCONCLUSIVE);
                assert_int_equal(w->k.pairs->needed, 4);
                assert_true(fabs(w->k.pairs->ratio - 0.5) < 0.01);
                assert_true(isnan(w->k.pairs->low) == (n == 1) && isnan(w->k.pairs->high) == (n == 1));
                assert_false(w->k.best_is_clear);
                if (n == 1) /* how far they scatter is not known, so nothing is promised */
                        assert_string_equal(w->k.pairs->why, "1 and 1 runs are too few for any verdict; at "
                                                             "least 4 runs of each are needed");
        }
        assert_string_equal(w->k.pairs->why,
                            "3 and 3 runs are too few for any verdict; about 4 runs of each would decide it");
        runs(w, 0, 4, 1, 0.0001, 1);
        runs(w, 1, 4, 2, 0.0001, 2);
        assert_int_equal(compared(w)->verdict, STATS_LESS);
}

/* With three algorithms a pair's p counts three times: 4 runs cannot be enough. */
static void test_more_pairs_need_more_runs(void **state)
{
        struct world *w = *state;

        w->c.n_sides = 3;
        for (size_t n = 4; n <= 5; n++) {
                for (size_t i = 0; i < 3; i++)
                        runs(w, i, n, (double)(i + 1), 0.001, i);
                compared(w);
                assert_int_equal(w->k.n, 3);
                for (size_t i = 0; i < 3; i++)
                        assert_int_equal(w->k.pairs[i].verdict == STATS_INCONCLUSIVE, n == 4);
                assert_int_equal(w->k.pairs[0].needed, n == 4 ? 5 : 0);
        }
        assert_true(w->k.best_is_clear);
        /* merge_sort is the baseline; the best one meets the third, too. */
        assert_int_equal(w->k.pairs[2].a, 0);
        assert_int_equal(w->k.pairs[2].b, 2);
}

static void test_identical_samples(void **state)
{
        struct world *w = *state;

        runs(w, 0, 10, 7, 0, 1);
        runs(w, 1, 10, 7, 0, 1);
        assert_int_equal(compared(w)->verdict, STATS_SAME);
        assert_true(w->k.pairs->ratio == 1 && w->k.pairs->low == 1 && w->k.pairs->high == 1);
        assert_true(w->k.pairs->p == 1 && w->k.pairs->effect == 0 && w->k.pairs->floor == 0);
        assert_false(w->k.best_is_clear);
        /* Memory often never changes: what is constant and different is different. */
        w->c.measure = STATS_MEMORY;
        runs(w, 0, 10, 7.5, 0, 1);
        assert_int_equal(compared(w)->verdict, STATS_MORE);
        assert_string_equal(
                w->k.summary,
                "merge_sort is the smallest: the median of quick_sort, the next, is 7.14 % higher");
}

static void test_a_small_difference_does_not_count(void **state)
{
        struct world *w = *state;

        runs(w, 0, 30, 1.01, 0.001, 1);
        runs(w, 1, 30, 1, 0.001, 2);
        assert_int_equal(compared(w)->verdict, STATS_SAME);
        assert_true(w->k.pairs->p_adjusted < 0.001 && w->k.pairs->low > 1);
        assert_non_null(strstr(w->k.pairs->why, "less than the 2 % that count"));
        w->c.min_effect = 0.005;
        assert_int_equal(compared(w)->verdict, STATS_MORE);
}

static void test_noise_that_hides_is_inconclusive(void **state)
{
        struct world *w = *state;

        runs(w, 0, 8, 1.1, 0.3, 1);
        runs(w, 1, 8, 1, 0.3, 2);
        assert_int_equal(compared(w)->verdict, STATS_INCONCLUSIVE);
        assert_true(w->k.pairs->needed > 8);
        assert_non_null(strstr(w->k.pairs->why, "runs of each would decide it"));
}

/* As noisy as it may be: a fiftieth is as far away as fifty times as much. */
static void test_noise_counts_the_same_both_ways(void **state)
{
        struct world *w = *state;

        runs(w, 0, 20, 0.02, 2, 1);
        runs(w, 1, 20, 1, 2, 2);
        assert_int_equal(compared(w)->verdict, STATS_LESS);
        assert_true(w->k.pairs->floor > 1 - w->k.pairs->ratio);
        w->c.baseline = 0;
        assert_int_equal(compared(w)->verdict, STATS_MORE);
}

static void test_what_cannot_be_compared_says_why(void **state)
{
        struct world *w = *state;

        runs(w, 0, 10, 1, 0.01, 1);
        assert_int_equal(compared(w)->verdict, STATS_NOT_COMPARABLE);
        assert_string_equal(w->k.pairs->why, "merge_sort has no valid runs");
        assert_true(isnan(w->k.pairs->ratio) && isnan(w->k.pairs->p) && w->k.best == 0 &&
                    !w->k.best_is_clear);
        runs(w, 1, 10, 2, 0.01, 2);
        w->sides[1].unfit = "it ran beside others";
        assert_int_equal(compared(w)->verdict, STATS_NOT_COMPARABLE);
        assert_string_equal(w->k.pairs->why, "merge_sort cannot be compared: it ran beside others");
        assert_true(fabs(w->k.pairs->ratio - 0.5) < 0.1 && isnan(w->k.pairs->p_adjusted));
        w->sides[1].unfit = NULL;
        w->sides[0].accuracy = 0.8;
        w->sides[1].accuracy = 0.95;
        w->c.accuracy_tolerance = 0.05;
        assert_int_equal(compared(w)->verdict, STATS_NOT_COMPARABLE);
        assert_string_equal(w->k.pairs->why, "their accuracies, 0.8 and 0.95, differ by more than 0.05");
        assert_false(w->k.best_is_clear);
        w->c.accuracy_tolerance = 0.2;
        assert_int_equal(compared(w)->verdict, STATS_LESS);
        w->samples[0][3].value = NAN;
        assert_string_equal(compared(w)->why, "quick_sort has values that are not above 0");
        w->samples[0][3].value = 0;
        assert_int_equal(compared(w)->verdict, STATS_NOT_COMPARABLE);
}

/* Nothing is said of a tolerance: what is more than chance is a trade-off. */
static void test_a_faster_one_that_is_less_accurate_is_no_winner(void **state)
{
        struct world *w = *state;

        runs(w, 0, 10, 1, 0.01, 1);
        runs(w, 1, 10, 2, 0.01, 2);
        w->sides[0].accuracy = w->sides[1].accuracy = 0.9;
        assert_int_equal(compared(w)->verdict, STATS_LESS);
        assert_true(w->k.best_is_clear && w->k.more_accurate == SIZE_MAX);
        w->sides[0].accuracy = 0.85;
        assert_int_equal(compared(w)->verdict, STATS_LESS);
        assert_true(w->k.best == 0 && !w->k.best_is_clear && w->k.more_accurate == 1);
        assert_string_equal(w->k.summary,
                            "quick_sort is faster, but less accurate than merge_sort (0.85 against 0.9): no "
                            "single winner; best in time and accuracy: quick_sort, merge_sort");
        /* The faster one is the better one in everything. */
        w->sides[0].accuracy = 0.95;
        compared(w);
        assert_true(w->k.best_is_clear && w->k.more_accurate == SIZE_MAX);
        /* Who has none is compared by what it has. */
        w->sides[0].accuracy = NAN;
        compared(w);
        assert_true(w->k.best_is_clear);
}

static void test_accuracies_that_chance_may_have_parted_are_equal(void **state)
{
        struct world *w = *state;

        runs(w, 0, 10, 1, 0.01, 1);
        runs(w, 1, 10, 2, 0.01, 2);
        w->sides[0].accuracy = 0.90;
        w->sides[0].accuracy_ci = (struct stats_interval){0.80, 0.93, 0.98, STATS_ORDER};
        w->sides[1].accuracy = 0.94;
        w->sides[1].accuracy_ci = (struct stats_interval){0.90, 0.99, 0.98, STATS_ORDER};
        compared(w);
        assert_true(w->k.best_is_clear); /* 0.04 is less than 0.05, of 0.03 and 0.04 */
        w->sides[1].accuracy_ci.low = 0.92;
        compared(w);
        assert_true(!w->k.best_is_clear && w->k.more_accurate == 1);
        w->c.accuracy_tolerance = 0.05;
        compared(w);
        assert_true(w->k.best_is_clear);
}

/* Beyond the tolerance nothing is said of the times but the medians. */
static void test_a_tolerance_that_is_passed_is_a_trade_off(void **state)
{
        struct world *w = *state;

        w->c.n_sides = 3;
        runs(w, 0, 10, 1, 0.01, 1);
        runs(w, 1, 10, 2, 0.01, 2);
        runs(w, 2, 10, 3, 0.01, 3);
        w->sides[0].accuracy = 0.8;
        w->sides[1].accuracy = 0.95;
        w->sides[2].accuracy = 0.9;
        w->c.accuracy_tolerance = 0.01;
        assert_int_equal(compared(w)->verdict, STATS_NOT_COMPARABLE);
        assert_string_equal(w->k.summary,
                            "quick_sort has the lowest median, but is less accurate than merge_sort (0.8 "
                            "against 0.95): no single winner; best in time and accuracy: quick_sort, "
                            "merge_sort");
}

static void test_one_failed_does_not_discard_the_others(void **state)
{
        struct world *w = *state;

        w->c.n_sides = 3;
        w->c.baseline = 2;
        runs(w, 0, 10, 1, 0.01, 1);
        runs(w, 1, 10, 2, 0.01, 2);
        compared(w);
        assert_int_equal(w->k.n, 3);
        assert_int_equal(w->k.pairs[0].verdict, STATS_NOT_COMPARABLE);
        assert_int_equal(w->k.pairs[1].verdict, STATS_NOT_COMPARABLE);
        assert_int_equal(w->k.pairs[2].verdict, STATS_LESS);
        assert_true(w->k.pairs[2].p == w->k.pairs[2].p_adjusted && w->k.best_is_clear);
}

static void test_nothing_at_all(void **state)
{
        struct world *w = *state;

        w->c.n_sides = 0;
        compared(w);
        assert_int_equal(w->k.n, 0);
        assert_true(w->k.best == SIZE_MAX);
        w->c.n_sides = 2;
        w->c.baseline = 99;
        compared(w);
        assert_int_equal(w->k.n, 1);
}

/* A machine that gets slower block by block is the same for both: drawn by blocks, the interval stays narrow. */
static void test_blocks_are_drawn_whole(void **state)
{
        struct world *w = *state;
        double wide;

        runs(w, 0, 20, 1.3, 0.001, 1);
        runs(w, 1, 20, 1, 0.001, 2);
        for (size_t i = 0; i < 20; i++)
                for (size_t s = 0; s < 2; s++)
                        w->samples[s][i].value *= 1 + 0.05 * (double)(i * 7 % 20);
        compared(w);
        assert_true(w->k.pairs->low > 1.28 && w->k.pairs->high < 1.32);
        w->c.separate = true;
        compared(w);
        wide = w->k.pairs->high - w->k.pairs->low;
        assert_true(wide > 0.2);
}

/* A block in which one failed has one side only, and may be all that is drawn. */
static void test_blocks_may_have_holes(void **state)
{
        struct world *w = *state;

        runs(w, 0, 6, 1, 0.01, 1);
        runs(w, 1, 6, 2, 0.01, 2);
        for (size_t i = 0; i < 6; i++)
                w->samples[1][i].block = (uint32_t)(i * 17);
        compared(w);
        assert_true(w->k.pairs->low > 0.45 && w->k.pairs->high < 0.55);
        assert_int_equal(w->k.pairs->verdict, STATS_LESS);
}

/* Many runs in few pods are few repetitions. */
static void test_the_pod_is_the_unit(void **state)
{
        struct world *w = *state;

        for (uint32_t pods = 2; pods <= 4; pods++) {
                runs(w, 0, 40, 1, 0.01, 1);
                runs(w, 1, 40, 1.5, 0.01, 2);
                for (uint32_t i = 0; i < 40; i++)
                        w->samples[0][i].pod = w->samples[1][i].pod = i % pods;
                compared(w);
                assert_true(w->k.by_pod);
                assert_int_equal(w->k.pods, pods);
                assert_int_equal(w->k.pairs->n_a, pods);
                assert_int_equal(w->k.pairs->verdict, pods < 4 ? STATS_INCONCLUSIVE : STATS_LESS);
                assert_int_equal(w->k.pairs->needed, pods < 4 ? 4 : 0);
        }
}

static void test_how_many_are_needed(void **state)
{
        assert_int_equal(stats_needed(2, 0, 0.05, 1), 4);
        assert_int_equal(stats_needed(2, NAN, 0.05, 10), 6);
        assert_int_equal(stats_needed(1.1, 0.05, 0.05, 1), 7);
        assert_int_equal(stats_needed(1.02, 0.05, 0.05, 1), 158);
        assert_true(stats_needed(1.02, 0.05, 0.05, 10) > 158);
        assert_int_equal(stats_needed(1, 0.05, 0.05, 1), STATS_NEEDED_MAX);
        assert_int_equal(stats_needed(1.5, 0.05, 0, 1), STATS_NEEDED_MAX);
}

/* The bench has ten thousand. */
static void test_equal_ones_are_not_called_different(void **state)
{
        size_t n = unit_extent(30, 100, 3000), wrong = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena arena = ARENA_INIT;
                struct simulate_plan plan = simulate_equal(i);
                struct stats_comparison k;

                simulate_compare(&plan, i, &arena, &k);
                wrong += simulate_is_false(&k);
        }
        assert_true((double)wrong <= 0.05 * (double)n);
}

#define in_world(f) cmocka_unit_test_setup_teardown(f, make_world, free_world)
static const struct CMUnitTest tests[] = {
        in_world(test_a_clear_difference),
        in_world(test_memory_has_its_own_words),
        in_world(test_the_same_samples_give_the_same_bytes),
        in_world(test_few_runs_are_inconclusive),
        in_world(test_more_pairs_need_more_runs),
        in_world(test_identical_samples),
        in_world(test_a_small_difference_does_not_count),
        in_world(test_noise_that_hides_is_inconclusive),
        in_world(test_noise_counts_the_same_both_ways),
        in_world(test_what_cannot_be_compared_says_why),
        in_world(test_a_faster_one_that_is_less_accurate_is_no_winner),
        in_world(test_accuracies_that_chance_may_have_parted_are_equal),
        in_world(test_a_tolerance_that_is_passed_is_a_trade_off),
        in_world(test_one_failed_does_not_discard_the_others),
        in_world(test_nothing_at_all),
        in_world(test_blocks_are_drawn_whole),
        in_world(test_blocks_may_have_holes),
        in_world(test_the_pod_is_the_unit),
        cmocka_unit_test(test_how_many_are_needed),
        cmocka_unit_test(test_equal_ones_are_not_called_different),
};
UNIT_MAIN(tests)
