/*
 * What remains of a run's events: phases, steps, whatever the writer's habits and the clock.
 */
#include "unit/track_rig.h"

static const struct track_phase *phase(const struct track *t, const char *name)
{
        const struct track_phase *p = track_find(t, name);

        if (!p)
                fail_msg("there is no phase %s", name);
        return p;
}

static void a_step_lasts_until_the_next_one_is_said_or_its_phase_ends(void **state)
{
        struct track t = {.n = 0};
        const struct track_phase *p;

        say(&t, 0, "Load", -1, 0);
        say(&t, 10, "Measure", 1, 3);
        say(&t, 12, "Measure", 2, 3);
        say(&t, 15, "Measure", 3, 3);
        say(&t, 19, "Complete", -1, 0);
        p = phase(&t, "Measure");
        assert_true(p->began == T0 + 10 * USEC_PER_SEC && p->ended == T0 + 19 * USEC_PER_SEC);
        assert_int_equal(p->done, 3);
        assert_true(p->sum == 9 && p->longest == 4);
        assert_int_equal(p->n_blocks, 3);
        assert_true(p->blocks[1].steps == 1 && p->blocks[1].seconds == 3);
        assert_true(track_phase_seconds(phase(&t, "Load"), 0) == 10);
        assert_true(t.ended == p->ended && t.complete);
        assert_null(track_present(&t));
}

static void the_same_status_again_is_no_news(void **state)
{
        struct track t = {.n = 0};
        struct run_status status = {.phase = "Load", .message = "one", .timestamp = 1, .sequence = 1};

        assert_true(track_event(&t, &status, T0));
        status.timestamp = 2;
        status.sequence = 2;
        assert_false(track_event(&t, &status, T0 + USEC_PER_SEC));
        assert_true(t.moved == T0);
        status.message = "two";
        assert_true(track_event(&t, &status, T0 + 2 * USEC_PER_SEC));
        assert_true(t.moved == T0 + 2 * USEC_PER_SEC);
        status.sub_phase = "deploying";
        assert_true(track_event(&t, &status, T0 + 3 * USEC_PER_SEC));
        assert_int_equal(t.n, 1);
}

static void nothing_follows_the_end(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Load", -1, 0);
        assert_true(say(&t, 5, "Failed", -1, 0) && t.ended && !t.complete);
        assert_false(say(&t, 9, "Load", -1, 0));
        assert_false(say(&t, 9, "Complete", -1, 0) || t.complete);
        assert_true(t.moved == T0 + 5 * USEC_PER_SEC);
}

static void a_leap_is_as_many_steps(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 1, 20);
        say(&t, 6, "Sweep", 4, 20);
        assert_int_equal(phase(&t, "Sweep")->done, 3);
        assert_true(phase(&t, "Sweep")->longest == 2);
        assert_true(phase(&t, "Sweep")->blocks[0].steps == 3 && phase(&t, "Sweep")->blocks[0].seconds == 6);
        say(&t, 7, "Sweep", 1000000000, 1000000000);
        assert_int_equal(phase(&t, "Sweep")->done, 999999999);
}

static void steps_before_the_first_that_was_seen_are_not_this_run_s(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 7, 12);
        say(&t, 4, "Sweep", 8, 12);
        assert_int_equal(phase(&t, "Sweep")->done, 1);
        assert_float_equal(phase(&t, "Sweep")->share, 7.0 / 12, 1e-6);
}

static void going_back_is_an_event_and_takes_nothing_back(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 1, 4);
        say(&t, 2, "Sweep", 3, 4);
        assert_true(say(&t, 5, "Sweep", 1, 4));
        assert_int_equal(phase(&t, "Sweep")->done, 3);
        assert_true(phase(&t, "Sweep")->share == 0.5);
        say(&t, 6, "Refine", -1, 0);
        assert_true(say(&t, 8, "Sweep", 1, 4)); /* back in a phase that had ended */
        assert_int_equal(t.n, 2);
        assert_ptr_equal(track_present(&t), phase(&t, "Sweep"));
        assert_true(track_phase_seconds(phase(&t, "Sweep"), T0 + 11 * USEC_PER_SEC) == 6 + 3);
        assert_true(track_phase_seconds(phase(&t, "Refine"), T0 + 11 * USEC_PER_SEC) == 2);
}

static void times_never_go_back(void **state)
{
        struct track t = {.n = 0};

        say(&t, 100, "Sweep", 1, 4);
        say(&t, 110, "Sweep", 2, 4);
        assert_true(say(&t, 50, "Sweep", 3, 4) && t.moved == T0 + 110 * USEC_PER_SEC);
        say(&t, 115, "Sweep", 4, 4);
        assert_true(phase(&t, "Sweep")->sum == 15);
}

static void a_writer_that_says_ends_is_known_by_its_step_0(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 0, 3);
        say(&t, 4, "Sweep", 1, 3);
        assert_false(t.says_ends); /* those 4 s may have been a start */
        say(&t, 8, "Sweep", 2, 3);
        assert_true(t.says_ends);
        say(&t, 12, "Sweep", 3, 3);
        say(&t, 12.001, "Refine", 0, 2);
        assert_int_equal(phase(&t, "Sweep")->done, 3);
        assert_true(phase(&t, "Sweep")->sum == 12);
        assert_true(phase(&t, "Sweep")->share == 1);
        say(&t, 15, "Refine", 1, 2);
        assert_int_equal(phase(&t, "Refine")->done, 1);
        assert_true(phase(&t, "Refine")->share == 0.5);
}

static void a_step_0_that_is_over_at_once_is_a_start(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 0, 3);
        say(&t, 0.1, "Sweep", 1, 3);
        say(&t, 5.1, "Sweep", 2, 3);
        assert_false(t.says_ends);
        assert_int_equal(phase(&t, "Sweep")->done, 1);
        assert_true(phase(&t, "Sweep")->sum == 5);
}

static void a_writer_that_says_ends_is_known_by_a_last_step_that_takes_no_time(void **state)
{
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", -1, 0);
        for (int i = 1; i <= 5; i++)
                say(&t, 10 * i, "Sweep", i, 5);
        say(&t, 50.02, "Refine", -1, 0);
        assert_true(t.says_ends);
        assert_int_equal(phase(&t, "Sweep")->done, 4); /* the first was not known to be one */
        say(&t, 60.02, "Refine", 1, 4);
        assert_int_equal(phase(&t, "Refine")->done, 1);
        assert_true(phase(&t, "Refine")->sum == 10);
}

static void many_steps_are_kept_in_few_blocks(void **state)
{
        struct track t = {.n = 0};
        const struct track_phase *p;
        uint32_t steps = 0;
        double seconds = 0;

        for (int i = 1; i <= 1001; i++)
                say(&t, 2 * i, "Sweep", i, 5000);
        p = phase(&t, "Sweep");
        for (uint32_t i = 0; i < p->n_blocks; i++) {
                steps += p->blocks[i].steps;
                seconds += (double)p->blocks[i].seconds;
        }
        assert_int_equal(steps, 1000);
        assert_true(seconds == 2000);
        assert_in_range(p->n_blocks, TRACK_BLOCKS_MAX / 2, TRACK_BLOCKS_MAX);
}

static void of_too_many_phases_the_oldest_go(void **state)
{
        struct track t = {.n = 0};
        char name[16];

        for (int i = 0; i < 100; i++) {
                snprintf(name, sizeof(name), "Phase%d", i);
                assert_true(say(&t, i, name, -1, 0));
                assert_string_equal(track_present(&t)->name, name);
        }
        assert_int_equal(t.n, RUN_PHASES_MAX);
        assert_string_equal(t.phases[0].name, "Phase68");
}

static void a_plan_s_steps_stand_in_for_a_total(void **state)
{
        struct run_plan plan = {.n = 1, .phases = {{.name = "Sweep", .steps = 8, .weight = 1}}};
        struct run_status status = {
                .phase = "Sweep", .message = "", .has_progress = true, .current_step = 5, .plan = &plan};
        struct track t = {.n = 0};

        track_event(&t, &status, T0);
        assert_int_equal(t.phases[0].total, 8);
        assert_true(t.phases[0].share == 0.5);
}

/* ---- JSON */

static struct track full_track(uint32_t phases)
{
        struct track t = {.n = 0};
        double at = 0;

        for (uint32_t i = 0; i < phases; i++) {
                char name[32];

                snprintf(name, sizeof(name), "%s", i < RUN_PLAN_DGDR.n ? RUN_PLAN_DGDR.phases[i].name : "");
                if (i >= RUN_PLAN_DGDR.n)
                        snprintf(name, sizeof(name), "AnotherPhaseOfIt%u", i);
                for (int step = 1; step <= 16; step++) {
                        say(&t, at, name, step, 16);
                        at += 100 + 7.123 * step;
                }
        }
        return t;
}

static void a_track_of_nine_phases_with_sixteen_steps_fits_in_3_kib(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct track t = full_track(9);
        const char *text = json_print(&a, track_json(&a, &t));

        assert_int_equal(t.n, 9);
        assert_int_equal(t.phases[0].n_blocks, 16);
        print_message("# %zu bytes\n", strlen(text));
        assert_true(strlen(text) <= 3072);
        t = full_track(32);
        text = json_print(&a, track_json(&a, &t));
        print_message("# %zu bytes for 32 phases\n", strlen(text));
        assert_true(strlen(text) <= 8192);
}

static void a_track_comes_back_as_it_went(void **state)
{
        for (uint32_t n = 0; n <= 9; n++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct track t = full_track(n), back;
                struct err err = ERR_INIT;
                struct json *j = track_json(&a, &t);

                if (track_parse(j, &back, &err) < 0)
                        fail_msg("%s", err.text);
                assert_string_equal(json_print(&a, track_json(&a, &back)), json_print(&a, j));
                assert_true(t.moved == back.moved && t.started == back.started && t.said == back.said);
                assert_int_equal(back.n, n);
                for (uint32_t i = 0; i < n; i++)
                        assert_true(t.phases[i].ended == back.phases[i].ended &&
                                    t.phases[i].done == back.phases[i].done);
        }
}

static void it_goes_on_after_coming_back(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct track t = {.n = 0};

        say(&t, 0, "Sweep", 1, 4);
        say(&t, 3.5, "Sweep", 2, 4);
        assert_int_equal(track_parse(track_json(&a, &t), &t, NULL), 0);
        assert_false(say(&t, 5, "Sweep", 2, 4));
        say(&t, 6, "Sweep", 3, 4);
        assert_int_equal(phase(&t, "Sweep")->done, 2);
        assert_true(phase(&t, "Sweep")->sum == 6);
}

static void what_is_malformed_is_refused(void **state)
{
        static const char *const bad[] = {
                "[]",
                "null",
                "{}",
                "{\"phases\": {}}",
                "{\"phases\": [{}]}",
                "{\"started\": 5, \"phases\": []}",
                "{\"started\": -5, \"moved\": 1, \"phases\": []}",
                "{\"started\": 1e300, \"moved\": 1, \"phases\": []}",
                "{\"started\": 5, \"moved\": 1.5, \"phases\": []}",
                "{\"started\": 5, \"moved\": 1, \"percent\": 101, \"phases\": []}",
                "{\"started\": 5, \"moved\": 1, \"complete\": 1, \"phases\": []}",
                "{\"started\": 5, \"moved\": 1, \"ended\": 2, \"phases\": []}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [1]}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [{\"name\": \"A\"}]}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [{\"name\": \"\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [{\"name\": \"Complete\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [{\"name\": \"A\\u0001\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 1, \"phases\": [{\"name\": \"A\", \"began\": 2}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 5, \"ended\": 4}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 5, \"stepBegan\": "
                "4}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0}, {\"name\": "
                "\"B\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"ended\": 1}, "
                "{\"name\": \"A\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 9, \"ended\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"done\": "
                "1000000001}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"sum\": -1}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"sum\": "
                "1e10}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"share\": "
                "1.1}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"blocks\": "
                "[1]}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"done\": 9, "
                "\"blocks\": "
                "[[0, 1]]}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"done\": 9, "
                "\"blocks\": "
                "[\"1\"]}]}",
                "{\"started\": 5, \"moved\": 9, \"phases\": [{\"name\": \"A\", \"began\": 0, \"done\": 99, "
                "\"blocks\": "
                "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]}",
        };

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct json *j = json_parse(&a, str_of(bad[i]), NULL, NULL);
                struct err err = ERR_INIT;
                struct track t;

                assert_non_null(j);
                if (track_parse(j, &t, &err) == 0)
                        fail_msg("taken: %s", bad[i]);
                assert_int_equal(err.code, E_INVALID);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_lasts_until_the_next_one_is_said_or_its_phase_ends),
        cmocka_unit_test(the_same_status_again_is_no_news),
        cmocka_unit_test(nothing_follows_the_end),
        cmocka_unit_test(a_leap_is_as_many_steps),
        cmocka_unit_test(steps_before_the_first_that_was_seen_are_not_this_run_s),
        cmocka_unit_test(going_back_is_an_event_and_takes_nothing_back),
        cmocka_unit_test(times_never_go_back),
        cmocka_unit_test(a_writer_that_says_ends_is_known_by_its_step_0),
        cmocka_unit_test(a_step_0_that_is_over_at_once_is_a_start),
        cmocka_unit_test(a_writer_that_says_ends_is_known_by_a_last_step_that_takes_no_time),
        cmocka_unit_test(many_steps_are_kept_in_few_blocks),
        cmocka_unit_test(of_too_many_phases_the_oldest_go),
        cmocka_unit_test(a_plan_s_steps_stand_in_for_a_total),
        cmocka_unit_test(a_track_of_nine_phases_with_sixteen_steps_fits_in_3_kib),
        cmocka_unit_test(a_track_comes_back_as_it_went),
        cmocka_unit_test(it_goes_on_after_coming_back),
        cmocka_unit_test(what_is_malformed_is_refused),
};

UNIT_MAIN(tests)
