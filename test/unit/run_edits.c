#include "unit/run_turn.h"

static void edited_before_anything_ran(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Pending'"));
        status_map(r, FENCE("1", "", "0", "Pending"), NULL, NULL);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Edited");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
        assert_int_equal(r->d.absent.n, 0);
        is_written(r, status);
        assert_condition(status, "Progressing", "True", "Edited");
        plan_and_settle(r, RUN_LIFE_WAITING, "Edited");
        assert_true(removes(r, "r-run"));
        no_children(r);
        server_has_no(r, &KUBE_JOB, "r-run");
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Edited");
        assert_run(r, status, 2, "r-run-2", 0);
        assert_string_equal(json_str(json_at(status, "run"), "specHash"), hash_of(r, "{'image': 'b'}"));
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
}

/* Its name is written, its Job is not made: with the new spec it is another attempt. */
static void edited_before_the_job(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1, "");
        edit(r, "{'image': 'b'}", 2);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Edited");
        assert_int_equal(r->d.exist.n, 0);
        assert_run(r, status, 2, "r-run-2", 0);
}

/* The pod of the old spec came to a start all the same, and failed: nobody wants to know. */
static void edited_in_time(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'image': 'a'}", ATTEMPT1 ", 'reason': 'Edited'", "");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("3", ""), ENDED("0", ""))));
        nothing_in_the_way(r);
        assert_run(r, plan_and_settle(r, RUN_LIFE_WAITING, "Edited"), 2, "r-run-2", 0);
}

static void edited_in_flight(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", ""));
        pod(r, RUNS);
        status = plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_condition(status, "SpecAccepted", "False", "SpecChangeRejected");
        assert_says(json_str(condition(status, "SpecAccepted"), "message"), "Cannot modify spec in flight: ");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
        assert_true(told(r, "SpecChangeRejected"));
        assert_int_equal(r->d.absent.n, 0);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_false(told(r, "SpecChangeRejected"));
        edit(r, "{'image': 'c'}", 3);
        status = plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_true(told(r, "SpecChangeRejected")); /* once for each generation */
        is_written(r, status);
        edit(r, "{'image': 'a'}", 4);
        status = plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_condition(status, "SpecAccepted", "True", "Accepted");
        assert_int_equal(json_int(status, "observedGeneration", 0), 4);
        assert_int_equal(r->d.events.n, 0);
}

/* A fence that is claimed says that a pod has run, whatever the pods' watch shows. */
static void the_fence_says_that_it_ran(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'image': 'a'}", ATTEMPT1, "");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", ""));
        status_map(r, FENCE("1", "uid-p", "1", "Running"), NULL, NULL);
        assert_condition(plan_and_settle(r, RUN_LIFE_WAITING, NULL), "SpecAccepted", "False",
                         "SpecChangeRejected");
}

static void controls_are_no_change(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1, "");
        edit(r, "{'image': 'a', 'timeout': '5h', 'retries': 1, 'loose': 1, 'priorityClassName': 'x'}", 2);
        job(r, JOB("", ""));
        pod(r, RUNS);
        status = plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
        assert_null(condition(status, "SpecAccepted"));
}

/* Made from the spec as it is then. */
static void a_refused_change_counts_for_the_next_attempt(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1,
                  ", 'conditions': [{'type': 'SpecAccepted', 'status': 'False', 'observedGeneration': 2}]");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_string_equal(json_str(json_at(status, "run"), "specHash"), hash_of(r, "{'image': 'b'}"));
        assert_condition(status, "SpecAccepted", "True", "Accepted");
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
}

static void edited_after_the_end(void **state)
{
        struct rig *r = *state;
        struct json *status = json_object(&r->arena);
        struct run run;

        under_way(r, "{'image': 'a'}", ATTEMPT1 ", 'outcome': 'Succeeded'", "");
        edit(r, "{'image': 'b'}", 2);
        run_read(&r->view, &KIND, &run);
        assert_true(run.over && run.changed);
        run_settle_spec(&r->view, &r->d, &run, status);
        assert_condition(status, "SpecAccepted", "False", "SpecChangeRejected");
        assert_says(json_str(condition(status, "SpecAccepted"), "message"), "after the run");
        assert_null(json_at(status, "observedGeneration"));
}

/* Of a kind for which nothing has followed from the outcome yet. */
static void edited_after_the_end_and_begun_anew(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1 ", 'outcome': 'Failed', 'reason': 'NoGPU'",
                  ", 'progress': {'job': 'r-run', 'attempt': 1}");
        edit(r, "{'image': 'b'}", 2);
        job(r, JOB("", "")); /* the one before has not quite ended */
        settle_as(r, NULL, true, RUN_LIFE_FAILED, "NoGPU");
        no_children(r);
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        server_has_no(r, &KUBE_JOB, "r-run-2");
        status = settle_as(r, NULL, true, RUN_LIFE_WAITING, "Edited");
        assert_run(r, status, 2, "r-run-2", 0);
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
        assert_true(told(r, "Edited"));
}

static void not_begun_anew(void **state)
{
        static const struct {
                const char *spec, *invalid;
                bool renew;
        } cases[] = {{"{'image': 'b'}", NULL, false},
                     {"{'image': 'b'}", "spec.image: is none", true},
                     {"{'image': 'b', 'suspend': true}", NULL, true},
                     {"{'image': 'b', 'cancel': true}", NULL, true},
                     {"{'image': 'a'}", NULL, true}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                under_way(r, "{'image': 'a'}", ATTEMPT1 ", 'outcome': 'Failed', 'reason': 'NoGPU'", "");
                edit(r, cases[i].spec, 2);
                settle_as(r, cases[i].invalid, cases[i].renew, RUN_LIFE_FAILED, "NoGPU");
        }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(edited_before_anything_ran),
        T(edited_before_the_job),
        T(edited_in_time),
        T(edited_in_flight),
        T(the_fence_says_that_it_ran),
        T(controls_are_no_change),
        T(a_refused_change_counts_for_the_next_attempt),
        T(edited_after_the_end),
        T(edited_after_the_end_and_begun_anew),
        T(not_begun_anew),
};

UNIT_MAIN(tests)
