/*
 * Percentage, ETA and not moving: what they say of small stories, and how good they are over all recorded runs.
 */
#include "unit/track_rig.h"

#include <glob.h>
#include <math.h>

#include "replay/replay.h"

static struct progress see(const struct track *t, const struct run_plan *plan, const struct priors *priors,
                           double at)
{
        struct progress p;

        track_progress(t, plan, priors, T0 + (usec_t)(at * 1e6), &p);
        return p;
}

static double seconds(usec_t wall)
{
        return ((double)wall - (double)T0) / 1e6;
}

static const struct run_plan PLAN = {
        .n = 3,
        .weighted = true,
        .phases = {{.name = "Load", .weight = 10},
                   {.name = "Measure", .weight = 80},
                   {.name = "Report", .weight = 10}},
};

static void the_percentage_is_weighted_by_the_plan(void **state)
{
        struct track t = {.n = 0};

        assert_true(see(&t, &PLAN, NULL, 0).percent == 0);
        say(&t, 0, "Load", -1, 0);
        assert_true(see(&t, &PLAN, NULL, 0).percent == 0);
        say(&t, 5, "Measure", 1, 4);
        assert_true(see(&t, &PLAN, NULL, 5).percent == 10);
        say(&t, 9, "Measure", 3, 4);
        assert_true(see(&t, &PLAN, NULL, 9).percent == 50);
        say(&t, 12, "Measure", 2, 4); /* back */
        assert_true(see(&t, &PLAN, NULL, 12).percent == 50);
        say(&t, 13, "Measure", 5, 400); /* more steps than were announced */
        assert_true(see(&t, &PLAN, NULL, 13).percent == 50);
        say(&t, 15, "Report", -1, 0);
        assert_true(see(&t, &PLAN, NULL, 15).percent == 90);
        say(&t, 16, "Load", -1, 0); /* a phase back */
        assert_true(see(&t, &PLAN, NULL, 16).percent == 90);
        say(&t, 17, "Complete", -1, 0);
        assert_true(see(&t, &PLAN, NULL, 17).percent == 100);
}

static void only_complete_is_100(void **state)
{
        struct track t = {.n = 0};
        struct run_status said = {.phase = "Report", .message = "all of it", .overall = 100};

        say(&t, 0, "Report", 1000000, 1000000);
        assert_true(see(&t, &PLAN, NULL, 0).percent == 99.9);
        track_event(&t, &said, T0 + USEC_PER_SEC);
        assert_true(see(&t, &PLAN, NULL, 1).percent == 99.9);
}

static void a_failed_run_stays_where_it_was(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Load", -1, 0);
        say(&t, 5, "Measure", 3, 4);
        say(&t, 8, "Failed", -1, 0);
        assert_true(see(&t, &PLAN, NULL, 8).percent == 50);
        assert_false(see(&t, &PLAN, NULL, 8).eta.known);
        assert_true(see(&t, &PLAN, NULL, 1e6).moving);
}

static void phases_without_any_plan_never_go_down(void **state)
{
        struct run_plan a = {.n = 1, .phases = {{.name = "A", .weight = 1}}},
                        b = {.n = 1, .phases = {{.name = "B", .weight = 1}}};
        struct track t = {.n = 0};

        say(&t, 0, "A", 1, 2);
        say(&t, 1, "A", 2, 2);
        assert_true(see(&t, &a, NULL, 1).percent == 50);
        say(&t, 2, "B", 1, 4);
        assert_true(see(&t, &b, NULL, 2).percent == 50);
        say(&t, 3, "B", 4, 4);
        assert_true(see(&t, &b, NULL, 3).percent == 75);
        assert_false(see(&t, &b, NULL, 3).eta.known); /* nobody knows how many more come */
        say(&t, 4, "Failed", -1, 0);
        assert_true(see(&t, &RUN_PLAN_DGDR, NULL, 4).percent == 75);
}

static void what_the_profiler_says_itself_counts(void **state)
{
        struct run_status said = {.phase = "Load", .message = "", .overall = 42.25};
        struct track t = {.n = 0};

        track_event(&t, &said, T0);
        assert_true(see(&t, &PLAN, NULL, 0).percent == 42.2);
}

static void nothing_known_is_no_eta(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Load", -1, 0);
        assert_false(see(&t, &PLAN, NULL, 0).eta.known);
        assert_null(see(&t, &PLAN, NULL, 0).eta.basis);
        say(&t, 10, "Measure", 1, 8); /* now the weights have a unit */
        assert_true(see(&t, &PLAN, NULL, 10).eta.known);
        assert_string_equal(see(&t, &PLAN, NULL, 10).eta.basis, "pace");
}

static void even_steps_end_when_they_must(void **state)
{
        struct run_plan plan = {.n = 1, .phases = {{.name = "Measure", .weight = 1}}};
        struct track t = {.n = 0};
        struct progress p;

        for (int i = 1; i <= 10; i++)
                say(&t, 6 * (i - 1), "Measure", i, 20);
        p = see(&t, &plan, NULL, 54);
        assert_true(p.percent == 45);
        assert_true(fabs(seconds(p.eta.mid) - 120) < 3);
        assert_true(seconds(p.eta.low) > 54 + 40 && seconds(p.eta.high) < 54 + 100);
        assert_true(p.eta.low < T0 + 120 * USEC_PER_SEC && p.eta.high > T0 + 120 * USEC_PER_SEC);
}

static void the_eta_does_not_change_with_time_alone(void **state)
{
        struct track t = {.n = 0};
        struct progress now, later;

        say(&t, 0, "Load", -1, 0);
        say(&t, 10, "Measure", 1, 8);
        now = see(&t, &PLAN, NULL, 10);
        later = see(&t, &PLAN, NULL, 200);
        assert_true(now.eta.low == later.eta.low && now.eta.mid == later.eta.mid &&
                    now.eta.high == later.eta.high);
        assert_true(now.percent == later.percent && now.not_moving_at == later.not_moving_at);
}

static void the_history_of_the_shape_comes_before_typical_durations(void **state)
{
        struct priors priors = {.n = 0};
        struct track t = {.n = 0};
        struct progress p;

        say(&t, 0, "Initializing", -1, 0);
        p = see(&t, &RUN_PLAN_DGDR, NULL, 0);
        assert_string_equal(p.eta.basis, "typical");
        assert_true(seconds(p.eta.mid) > 1800 && seconds(p.eta.mid) < 7200);
        for (uint32_t i = 0; i < RUN_PLAN_DGDR.n; i++)
                for (int run = 0; run < 5; run++)
                        priors_add(&priors, RUN_PLAN_DGDR.phases[i].name, 20 + run, 0, 0);
        p = see(&t, &RUN_PLAN_DGDR, &priors, 0);
        assert_string_equal(p.eta.basis, "history");
        assert_true(fabs(seconds(p.eta.mid) - 7 * 22) < 5);
        say(&t, 22, "PrefillSweep", -1, 0);
        p = see(&t, &RUN_PLAN_DGDR, &priors, 22);
        assert_true(fabs(seconds(p.eta.mid) - 7 * 22) < 5);
        assert_float_equal(p.percent, 14.2, 0.01); /* one of seven */
}

static void this_run_s_own_pace_comes_before_the_history(void **state)
{
        struct run_plan plan = {.n = 1, .phases = {{.name = "Measure", .weight = 1}}};
        struct priors priors = {.n = 0};
        struct track t = {.n = 0};
        struct progress p;

        for (int run = 0; run < 5; run++)
                priors_add(&priors, "Measure", 400, 20, 400); /* 20 s a step */
        say(&t, 0, "Measure", 1, 20);
        p = see(&t, &plan, &priors, 0);
        assert_string_equal(p.eta.basis, "history");
        assert_true(fabs(seconds(p.eta.mid) - 400) < 40);
        for (int i = 2; i <= 10; i++)
                say(&t, 6 * (i - 1), "Measure", i, 20); /* and now 6 s */
        p = see(&t, &plan, &priors, 54);
        assert_string_equal(p.eta.basis, "pace");
        assert_true(seconds(p.eta.mid) < 200);
}

static void a_phase_that_the_history_never_had_is_not_expected(void **state)
{
        struct priors priors = {.n = 0};
        struct track t = {.n = 0};

        priors_add(&priors, "Load", 10, 0, 0);
        priors_add(&priors, "Measure", 100, 0, 0);
        say(&t, 0, "Measure", -1, 0);
        assert_true(fabs(seconds(see(&t, &PLAN, &priors, 0).eta.mid) - 100) < 20);
}

static void a_run_without_news_does_not_move(void **state)
{
        struct priors priors = {.n = 0};
        struct track t = {.n = 0};
        struct progress p;

        say(&t, 0, "Load", -1, 0); /* nothing is known: half an hour */
        p = see(&t, &PLAN, NULL, 1799);
        assert_true(p.moving && p.not_moving_at == T0 + 1800 * USEC_PER_SEC);
        assert_false(see(&t, &PLAN, NULL, 1800).moving);
        priors_add(&priors, "Load", 200, 0, 0); /* three times what it took before */
        assert_true(see(&t, &PLAN, &priors, 599).moving);
        assert_false(see(&t, &PLAN, &priors, 600).moving);
        say(&t, 1000, "Measure", 1, 9);
        say(&t, 1010, "Measure", 2, 9); /* short steps: never less than five minutes */
        assert_true(see(&t, &PLAN, NULL, 1309).moving);
        assert_false(see(&t, &PLAN, NULL, 1310).moving);
        say(&t, 1210, "Measure", 3, 9); /* five times the longest step */
        assert_true(see(&t, &PLAN, NULL, 2209).moving);
        assert_false(see(&t, &PLAN, NULL, 2210).moving);
        say(&t, 2300, "Complete", -1, 0);
        assert_true(see(&t, &PLAN, NULL, 1e6).moving);
        assert_true(see(&t, &PLAN, NULL, 1e6).not_moving_at == 0);
}

static void typical_durations_say_how_long_to_wait_for_a_first_step(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "DecodeSweep", -1, 0);
        assert_true(see(&t, &RUN_PLAN_DGDR, NULL, 3599).moving);
        assert_false(see(&t, &RUN_PLAN_DGDR, NULL, 3600).moving);
        say(&t, 4000, "PlannerGeneration", -1, 0);
        assert_false(see(&t, &RUN_PLAN_DGDR, NULL, 4300).moving);
}

/* ---- all recorded runs */

static void print_line(void *arg, const char *text)
{
        print_message("# %s\n", text);
}

static void check_row(const struct replay_row *row)
{
        const struct replay_result *r = &row->result;

        if (!r->monotone || !r->complete)
                fail_msg("%s: the percentage goes down, or is 100 before the end", row->name);
        if (!r->narrow)
                fail_msg("%s: a range is wider than twice the remaining time", row->name);
        if (!r->ordered)
                fail_msg("%s: low, mid and high are out of order", row->name);
        if (row->history && !(r->first_eta >= 0 && r->first_eta <= 60))
                fail_msg("%s: the first ETA comes after %.1f s", row->name, r->first_eta);
}

static void over_all_recorded_runs_the_range_holds_the_true_end_four_times_of_five(void **state)
{
        static const char *const sets[] = {"tuning", "held-out", "fresh", "second", NULL};
        _cleanup_(replay_table_done) struct replay_table table = {.rows = {.n = 0}};
        struct err err = ERR_INIT;
        glob_t files;
        unsigned runs;

        assert_int_equal(glob("test/data/runs/*.jsonl", 0, NULL, &files), 0);
        if (replay_all((const char *const *)files.gl_pathv, files.gl_pathc, &table, &err) < 0)
                fail_msg("%s", err.text);
        globfree(&files);
        assert_true(table.rows.n >= 30);
        replay_print(&table, print_line, NULL);
        vec_foreach (row, &table.rows)
                check_row(row);
        for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
                double covered = replay_covered(&table, sets[i], &runs);

                if (covered < 0.8)
                        fail_msg("%s: held %.1f %% of the time", sets[i] ? sets[i] : "all", 100 * covered);
                assert_true(runs >= 8);
        }
}

/* A track from somebody's ConfigMap may say anything: what comes of it is in order all the same. */
static void random_stories_never_break_the_rules(void **state)
{
        static const char *const names[] = {"Load", "Measure", "Report", "Other"};
        struct rng rng;

        rng_seed(&rng, 4711);
        for (int run = 0; run < 300; run++) {
                struct track t = {.n = 0};
                double at = 0, percent = 0;

                for (int i = 0; i < 60; i++) {
                        struct progress p;

                        at += (double)rng_below(&rng, 1000000) / (double)(1 + rng_below(&rng, 100000));
                        say(&t, at, names[rng_below(&rng, ARRAY_LEN(names))],
                            (int64_t)rng_below(&rng, 12) - 1, (int64_t)rng_below(&rng, 10));
                        p = see(&t, &PLAN, NULL, at);
                        assert_true(p.percent >= percent && p.percent <= 99.9);
                        percent = p.percent;
                        if (!p.eta.known)
                                continue;
                        assert_true(t.moved <= p.eta.low && p.eta.low <= p.eta.mid &&
                                    p.eta.mid <= p.eta.high);
                        assert_true(p.eta.high - p.eta.low <= 2 * (p.eta.mid - t.moved));
                }
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_percentage_is_weighted_by_the_plan),
        cmocka_unit_test(only_complete_is_100),
        cmocka_unit_test(a_failed_run_stays_where_it_was),
        cmocka_unit_test(phases_without_any_plan_never_go_down),
        cmocka_unit_test(what_the_profiler_says_itself_counts),
        cmocka_unit_test(nothing_known_is_no_eta),
        cmocka_unit_test(even_steps_end_when_they_must),
        cmocka_unit_test(the_eta_does_not_change_with_time_alone),
        cmocka_unit_test(the_history_of_the_shape_comes_before_typical_durations),
        cmocka_unit_test(this_run_s_own_pace_comes_before_the_history),
        cmocka_unit_test(a_phase_that_the_history_never_had_is_not_expected),
        cmocka_unit_test(a_run_without_news_does_not_move),
        cmocka_unit_test(typical_durations_say_how_long_to_wait_for_a_first_step),
        cmocka_unit_test(over_all_recorded_runs_the_range_holds_the_true_end_four_times_of_five),
        cmocka_unit_test(random_stories_never_break_the_rules),
};

UNIT_MAIN(tests)
