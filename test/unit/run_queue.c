/*
 * A run where runs are limited: what it asks for, what it tells, and when it gives its slot back.
 */
#include "unit/run_turn.h"

#define WAITS_FOR "2 of 2 runs are under way (ap/a, ac/b)"

static const struct admission not_known = {0}, let_in = {.admitted = true},
                              third = {.position = 3, .reason = WAITS_FOR, .starts = 1794841920500000},
                              far = {.position = 345, .reason = "others are before it"};

static void created(struct rig *r, const char *when)
{
        json_set(&r->arena, json_at(r->view.request, "metadata"), "creationTimestamp",
                 json_string(&r->arena, when));
}

static void assert_wish(const struct rig *r, enum admission_stand stand)
{
        assert_int_equal(r->d.admission.stand, stand);
}

/* Leaves its status as it is, asks for nothing but to begin. */
static void assert_says_nothing_yet(struct rig *r)
{
        struct run run;

        decision_done(&r->d);
        run_read(&r->view, &KIND, &run);
        assert_false(run_settle(&r->view, &r->d, &run, &r->seen, json_object(&r->arena)));
        assert_int_equal(r->d.n_wants + r->d.events.n + r->d.exist.n, 0);
        assert_wish(r, ADMISSION_WAITS);
}

/* ---- the first attempt */

static void it_asks_and_waits(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{'priority': 7}", NULL);
        created(r, "2026-11-15T11:59:00Z");
        r->view.admission = &not_known;
        assert_says_nothing_yet(r);
        assert_int_equal(r->d.admission.priority, 7);
        assert_int_equal(r->d.admission.since, NOON - 60 * USEC_PER_SEC);
        r->view.admission = &third;
        status = plan_and_settle(r, RUN_LIFE_NONE, "Queued");
        assert_wish(r, ADMISSION_WAITS);
        assert_null(json_at(status, "run"));
        assert_json(r, json_at(status, "queue"),
                    "{'position': '3', 'reason': '" WAITS_FOR "', 'expectedStart': '2026-11-16T15:12:00Z'}");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
        is_written(r, status);
        assert_condition(status, "Progressing", "True", "Queued");
        assert_string_equal(json_str(condition(status, "Progressing"), "message"),
                            "the run waits for its turn: " WAITS_FOR);
        assert_null(json_at(status, "progress"));
        r->view.admission = &far;
        status = plan_and_settle(r, RUN_LIFE_NONE, "Queued");
        assert_json(r, json_at(status, "queue"), "{'position': '100+', 'reason': 'others are before it'}");
}

static void it_begins_when_it_is_let_in(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{'priority': 7}", "{'observedGeneration': 1, 'queue': {'position': '1', 'reason': 'x'}}");
        created(r, "2026-11-15T11:59:00Z");
        server_has_no(r, &KUBE_JOB, "r-run");
        r->view.admission = &let_in;
        status = plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_run(r, status, 1, "r-run", 0);
        assert_null(json_at(status, "queue"));
        assert_wish(r, ADMISSION_HOLDS);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_non_null(planned(r, &KUBE_JOB, "r-run"));
        assert_wish(r, ADMISSION_HOLDS);
        assert_int_equal(r->d.admission.priority, 7); /* should it have to take its turn once more */
        assert_int_equal(r->d.admission.since, NOON - 60 * USEC_PER_SEC);
}

/* The slot is not lost while the server is slow. */
static void it_keeps_asking_while_its_name_is_looked_up(void **state)
{
        struct rig *r = *state;
        struct run run;

        given(r, "{}", NULL);
        r->view.admission = &let_in;
        run_read(&r->view, &KIND, &run);
        assert_false(run_settle(&r->view, &r->d, &run, &r->seen, json_object(&r->arena)));
        assert_true(wanted(r, &KUBE_JOB, "r-run"));
        assert_wish(r, ADMISSION_WAITS);
        decision_done(&r->d);
        answer(r, &KUBE_JOB, "r-run", NULL, "the server is busy");
        assert_false(run_settle(&r->view, &r->d, &run, &r->seen, json_object(&r->arena)));
        assert_int_equal(r->d.n_wants, 0);
        assert_wish(r, ADMISSION_WAITS);
}

static void without_a_limit_nothing_is_told(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{}", NULL);
        server_has_no(r, &KUBE_JOB, "r-run");
        status = plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_run(r, status, 1, "r-run", 0);
        assert_null(json_at(status, "queue"));
}

static void people_may_stop_what_waits(void **state)
{
        struct rig *r = *state;
        struct json *status;

        r->view.admission = &third;
        given(r, "{'suspend': true}", "{'queue': {'position': '3', 'reason': 'x'}}");
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_null(json_at(status, "queue"));
        assert_wish(r, ADMISSION_NONE);
        given(r, "{'cancel': true}", "{'queue': {'position': '3', 'reason': 'x'}}");
        status = plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled");
        assert_null(json_at(status, "queue"));
        assert_wish(r, ADMISSION_NONE);
}

/* ---- its priority */

static void a_priority_is_no_part_of_what_is_run(void **state)
{
        struct rig *r = *state;
        struct json *status;

        assert_string_equal(hash_of(r, "{'image': 'a', 'priority': 9}"), hash_of(r, "{'image': 'a'}"));
        under_way(r, "{'image': 'a'}", ATTEMPT1, "");
        job(r, JOB("", "'active': 1"));
        pod(r, RUNS);
        status_map(r, FENCE("1", "uid-p", "1", "Running"), NULL, NULL);
        edit(r, "{'image': 'a', 'priority': 9}", 2);
        status = plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
        assert_false(told(r, "SpecChangeRejected"));
}

static void one_that_is_none(void **state)
{
        struct rig *r = *state;
        const char *why;
        struct run run;

        given(r, "{'priority': 11}", NULL);
        assert_int_equal(run_controls_check(&r->view, &why, 1), 1);
        assert_string_equal(why, "spec.priority: is no whole number from 0 to 10");
        run_read(&r->view, &KIND, &run);
        assert_int_equal(run.controls.priority, 5);
        given(r, "{'priority': 0}", NULL);
        assert_int_equal(run_controls_check(&r->view, &why, 1), 0);
        run_read(&r->view, &KIND, &run);
        assert_int_equal(run.controls.priority, 0);
}

/* ---- the slot */

static void another_attempt_keeps_it(void **state)
{
        struct rig *r = *state;

        r->view.admission = &third; /* whatever the queue says */
        under_way(r, "{}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1, 'podUID': 'uid-p'}");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        status_map(r, FENCE("1", "uid-p", "9", "Running"), NULL, NULL);
        nothing_in_the_way(r);
        assert_run(r, plan_and_settle(r, RUN_LIFE_WAITING, "Retrying"), 2, "r-run-2", 1);
        assert_wish(r, ADMISSION_HOLDS);
}

static void an_end_gives_it_back(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, JOB("", JOB_COMPLETE));
        pod(r, POD("'phase': 'Succeeded', " STATES(ENDED("0", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'Done'}", "{'code': 0}");
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_wish(r, ADMISSION_NONE);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_wish(r, ADMISSION_NONE);
}

/* It is held until the pod has ended, or should long have. */
static void a_suspended_run_gives_it_back_with_its_pod(void **state)
{
        struct rig *r = *state;

        r->view.admission = &let_in;
        under_way(r, "{'suspend': true}", ATTEMPT1, ", 'conditions': [" SUSPENDED "]");
        job(r, JOB("", "'active': 1"));
        pod(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        server_agrees(r);
        server_has(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_wish(r, ADMISSION_HOLDS);
        assert_in_range(r->d.again_at, NOON, NOON + 330 * USEC_PER_SEC);
        r->view.now = NOON + 400 * USEC_PER_SEC;
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_wish(r, ADMISSION_NONE);
        r->view.now = NOON;
        r->view.admission = NULL;
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_wish(r, ADMISSION_NONE); /* nobody counts */
        r->view.admission = &let_in;
        no_children(r);
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_wish(r, ADMISSION_NONE);
}

static void resuming_takes_its_turn(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1,
                  ", 'progress': {'job': 'r-run', 'attempt': 1, 'percent': 40}, 'conditions': [" SUSPENDED
                  "]");
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        nothing_in_the_way(r);
        r->view.admission = &not_known;
        assert_says_nothing_yet(r);
        r->view.admission = &third;
        status = plan_and_settle(r, RUN_LIFE_NONE, "Queued");
        assert_run(r, status, 1, "r-run", 0); /* nothing is begun */
        assert_condition(status, "Suspended", "True", "Suspended");
        assert_string_equal(json_str(json_at(status, "queue"), "position"), "3");
        is_written(r, status);
        assert_condition(status, "Progressing", "True", "Queued");
        assert_int_equal(json_int(json_at(status, "progress"), "percent", 0), 40);
        plan_and_settle(r, RUN_LIFE_NONE, "Queued");
        assert_int_equal(r->d.exist.n, 0);
        assert_wish(r, ADMISSION_WAITS);
        r->view.admission = &let_in;
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Resumed");
        assert_run(r, status, 2, "r-run-2", 0);
        assert_condition(status, "Suspended", "False", "Resumed");
        assert_null(json_at(status, "queue"));
        assert_wish(r, ADMISSION_HOLDS);
}

static void beginning_anew_takes_its_turn(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1 ", 'outcome': 'Failed', 'reason': 'NoGPU'", "");
        edit(r, "{'image': 'b'}", 2);
        nothing_in_the_way(r);
        r->view.admission = &third;
        status = settle_as(r, NULL, true, RUN_LIFE_NONE, "Queued");
        assert_outcome(status, "Failed", "NoGPU");
        assert_string_equal(json_str(json_at(status, "queue"), "position"), "3");
        assert_wish(r, ADMISSION_WAITS);
        r->view.admission = &let_in;
        status = settle_as(r, NULL, true, RUN_LIFE_WAITING, "Edited");
        assert_run(r, status, 2, "r-run-2", 0);
        assert_wish(r, ADMISSION_HOLDS);
}

/* ---- quotas */

static struct json *refused(struct rig *r, const char *note)
{
        struct json *events = parse(r, "{'items': [{'reason': 'FailedCreate'}]}");

        json_set(&r->arena, json_first(json_at(events, "items")), "note", json_string(&r->arena, note));
        r->answers.n = 0;
        *vec_push(&r->answers) = (struct answer){
                .want = {.kind = WANT_EVENTS, .type = &KUBE_JOB, .name = "r-run", .uid = "uid-job"},
                .json = events};
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
        return plan_and_settle(r, RUN_LIFE_WAITING, "PodNotCreated");
}

static void a_quota_is_explained(void **state)
{
        static const char forbidden[] = "Error creating: pods \"r-run-x2k9q\" is forbidden: ";
        struct rig *r = *state;
        const char *says;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', 'creationTimestamp': "
               "'2026-11-15T11:00:00Z', " OWNED "}, 'spec': {}, 'status': {}}");
        says = json_str(json_at(refused(r, arena_join(&r->arena, forbidden,
                                                      "exceeded quota: compute, requested: cpu=2,pods=1, "
                                                      "used: cpu=3,pods=4, limited: cpu=4,pods=4",
                                                      "")),
                                "queue"),
                        "reason");
        assert_string_equal(says,
                            "the Job r-run cannot make its pod: it asks for cpu=2,pods=1, and ResourceQuota "
                            "compute allows cpu=4,pods=4, of which cpu=3,pods=4 is used; wait until others "
                            "have ended, ask for less, or raise the quota");
        assert_string_equal(says, r->seen.sentence);
        says = json_str(
                json_at(refused(r,
                                arena_join(&r->arena, forbidden,
                                           "failed quota: compute: must specify limits.cpu for: main", "")),
                        "queue"),
                "reason");
        assert_says(says, "ResourceQuota compute takes none that does not say how much it needs: limits.cpu");
        assert_non_null(
                json_at(refused(r, arena_join(&r->arena, forbidden, "exceeded quota: odd", "")), "queue"));
        assert_null(
                json_at(refused(r, arena_join(&r->arena, forbidden, "violates PodSecurity", "")), "queue"));
        assert_wish(r, ADMISSION_HOLDS);
}

/* Not even while its Job has yet to go. */
static void what_is_cancelled_waits_for_no_quota(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', 'creationTimestamp': "
               "'2026-11-15T11:00:00Z', " OWNED "}, 'spec': {}, 'status': {}}");
        refused(r, "Error creating: pods \"r-run-x2k9q\" is forbidden: exceeded quota: odd");
        edit(r, "{'cancel': true}", 2);
        answer(r, &KUBE_CONFIGMAP, KIND.status_map, NULL, NULL);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Cancelled");
        assert_null(json_at(status, "queue"));
        assert_wish(r, ADMISSION_HOLDS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(it_asks_and_waits),
        TEST(it_begins_when_it_is_let_in),
        TEST(it_keeps_asking_while_its_name_is_looked_up),
        TEST(without_a_limit_nothing_is_told),
        TEST(people_may_stop_what_waits),
        TEST(a_priority_is_no_part_of_what_is_run),
        TEST(one_that_is_none),
        TEST(another_attempt_keeps_it),
        TEST(an_end_gives_it_back),
        TEST(a_suspended_run_gives_it_back_with_its_pod),
        TEST(resuming_takes_its_turn),
        TEST(beginning_anew_takes_its_turn),
        TEST(a_quota_is_explained),
        TEST(what_is_cancelled_waits_for_no_quota),
};

UNIT_MAIN(tests)
