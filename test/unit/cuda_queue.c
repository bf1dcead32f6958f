/*
 * A CUDAExperiment where runs are limited: profiling waits for its turn, the execution is the scheduler's matter.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, experiment_setup, flow_teardown)
#define PLAIN      "'image': 'i', 'command': ['/a'], 'placement': {'mode': 'none'}"
#define PROFILED   PLAIN ", 'profilingEnabled': true"

static const struct admission second = {.position = 2, .reason = "1 of 1 runs are under way (cuda/a)"},
                              let_in = {.admitted = true};

static void profiling_waits_for_its_turn(void **state)
{
        struct flow *f = *state;

        f->rig.view.admission = &second;
        experiment(&f->rig, PROFILED, NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_condition(status_now(&f->rig), "Progressing", "True", "Queued");
        assert_json(&f->rig, json_at(status_now(&f->rig), "queue"),
                    "{'position': '2', 'reason': '1 of 1 runs are under way (cuda/a)'}");
        assert_null(there(f, &KUBE_JOB, "r-profiling"));
        f->rig.view.admission = &let_in;
        come_to_rest(f);
        assert_phase(&f->rig, "Profiling");
        assert_null(json_at(status_now(&f->rig), "queue"));
        assert_non_null(there(f, &KUBE_JOB, "r-profiling"));
        assert_int_equal(f->rig.d.admission.stand, ADMISSION_HOLDS);
}

static void what_cannot_be_run_leaves_the_queue(void **state)
{
        struct flow *f = *state;

        f->rig.view.admission = &second;
        experiment(&f->rig, PROFILED, NULL);
        come_to_rest(f);
        edit(&f->rig, "command", "['']");
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_null(json_at(status_now(&f->rig), "queue"));
        assert_int_equal(f->rig.d.admission.stand, ADMISSION_NONE);
}

static void an_execution_asks_nobody(void **state)
{
        struct flow *f = *state;

        f->rig.view.admission = &second;
        experiment(&f->rig, PLAIN, NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Executing");
        assert_int_equal(f->rig.d.admission.stand, ADMISSION_NONE);
}

static const struct CMUnitTest tests[] = {
        TEST(profiling_waits_for_its_turn),
        TEST(what_cannot_be_run_leaves_the_queue),
        TEST(an_execution_asks_nobody),
};

UNIT_MAIN(tests)
