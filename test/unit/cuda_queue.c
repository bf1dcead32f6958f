/*
 * A CUDAExperiment where runs are limited: profiling waits for its turn, the execution is the scheduler's matter.
 */
#include "unit/cuda_world.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define PLAIN      "'image': 'i', 'command': ['/a'], 'placement': {'mode': 'none'}"
#define PROFILED   PLAIN ", 'profilingEnabled': true"

static const struct admission second = {.position = 2, .reason = "1 of 1 runs are under way (cuda/a)"},
                              let_in = {.admitted = true};

static void profiling_waits_for_its_turn(void **state)
{
        struct world *w = *state;

        w->rig.view.admission = &second;
        experiment(&w->rig, PROFILED, NULL);
        come_to_rest(w);
        assert_phase(&w->rig, "Pending");
        assert_condition(status_now(&w->rig), "Progressing", "True", "Queued");
        assert_json(&w->rig, json_at(status_now(&w->rig), "queue"),
                    "{'position': '2', 'reason': '1 of 1 runs are under way (cuda/a)'}");
        assert_null(there(w, &KUBE_JOB, "r-profiling"));
        w->rig.view.admission = &let_in;
        come_to_rest(w);
        assert_phase(&w->rig, "Profiling");
        assert_null(json_at(status_now(&w->rig), "queue"));
        assert_non_null(there(w, &KUBE_JOB, "r-profiling"));
        assert_int_equal(w->rig.d.admission.stand, ADMISSION_HOLDS);
}

static void what_cannot_be_run_leaves_the_queue(void **state)
{
        struct world *w = *state;

        w->rig.view.admission = &second;
        experiment(&w->rig, PROFILED, NULL);
        come_to_rest(w);
        edit(&w->rig, "command", "['']");
        come_to_rest(w);
        assert_phase(&w->rig, "Failed");
        assert_null(json_at(status_now(&w->rig), "queue"));
        assert_int_equal(w->rig.d.admission.stand, ADMISSION_NONE);
}

static void an_execution_asks_nobody(void **state)
{
        struct world *w = *state;

        w->rig.view.admission = &second;
        experiment(&w->rig, PLAIN, NULL);
        come_to_rest(w);
        assert_phase(&w->rig, "Executing");
        assert_int_equal(w->rig.d.admission.stand, ADMISSION_NONE);
}

static const struct CMUnitTest tests[] = {
        TEST(profiling_waits_for_its_turn),
        TEST(what_cannot_be_run_leaves_the_queue),
        TEST(an_execution_asks_nobody),
};

UNIT_MAIN(tests)
