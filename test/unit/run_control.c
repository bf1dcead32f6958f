#include "unit/run_turn.h"

/* ---- the first attempt */

static void its_name_is_written_first(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{'image': 'a'}", NULL);
        generation(r, 4);
        server_has_no(r, &KUBE_JOB, "r-run");
        status = plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_int_equal(r->d.exist.n, 0);
        assert_run(r, status, 1, "r-run", 0);
        assert_string_equal(json_str(json_at(status, "run"), "specHash"), hash_of(r, "{'image': 'a'}"));
        assert_int_equal(json_int(status, "observedGeneration", 0), 4);
        assert_null(json_at(status, "conditions"));
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_non_null(planned(r, &KUBE_JOB, "r-run")); /* then it is made */
}

static void a_name_that_is_taken(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{}", NULL);
        answer(r, &KUBE_JOB, "r-run", "{'metadata': {'name': 'r-run', 'uid': 'x', " OTHERS "}}", NULL);
        status = plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_int_equal(strlen(json_str(json_at(status, "run"), "job")), strlen("r-run-12345678"));
}

static void what_the_job_is_given(void **state)
{
        struct rig *r = *state;
        const struct json *job, *pod;

        under_way(r, "{'priorityClassName': 'high', 'runAsUser': 7, 'image': 'a'}", ATTEMPT1, "");
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        job = planned(r, &KUBE_JOB, "r-run");
        pod = json_at(json_at(json_at(job, "spec"), "template"), "spec");
        assert_string_equal(json_str(pod, "priorityClassName"), "high");
        assert_int_equal(json_int(json_at(pod, "securityContext"), "runAsUser", 0), 7);
        assert_json(r, json_at(json_at(job, "metadata"), "labels"), "{'sonde.dev/attempt': '1'}");
        assert_non_null(strstr(json_print(&r->arena, pod), hash_of(r, "{'image': 'a'}")));
        assert_int_equal(json_int(json_at(job, "spec"), "backoffLimit", -1), 0);
        assert_null(json_at(json_at(job, "spec"), "activeDeadlineSeconds"));
}

static void suspended_from_the_start(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{'suspend': true}", NULL);
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_null(json_at(status, "run"));
        assert_condition(status, "Suspended", "True", "Suspended");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1);
        is_written(r, status);
        assert_condition(status, "Progressing", "False", "Suspended");
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_int_equal(r->d.exist.n, 0);
        json_set(&r->arena, json_at(r->view.request, "spec"), "suspend", json_truth(&r->arena, false));
        server_has_no(r, &KUBE_JOB, "r-run");
        status = plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_run(r, status, 1, "r-run", 0);
        assert_condition(status, "Suspended", "False", "Resumed");
}

static void cancelled_from_the_start(void **state)
{
        struct rig *r = *state;
        struct json *status;

        given(r, "{'suspend': true, 'cancel': true}", NULL);
        status = plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled");
        assert_outcome(status, "Failed", "Cancelled");
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled"); /* which stays */
        assert_int_equal(r->d.exist.n, 0);
}

/* ---- failures of the infrastructure */

static void an_eviction_is_another_attempt(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1,
                  ", 'progress': {'job': 'r-run', 'attempt': 1, 'startedAt': "
                  "'2026-11-15T11:00:05Z', 'percent': 40, 'podUID': 'uid-p'}");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_says(r->seen.sentence, "attempt 1 failed: the pod was ended by node n1: Evicted");
        assert_run(r, status, 2, "r-run-2", 1);
        assert_int_equal(r->d.exist.n + r->d.absent.n, 0); /* status before action */
        assert_true(told(r, "Retrying"));
        is_written(r, status);
        assert_condition(status, "Progressing", "True", "Retrying");
        assert_json(r, json_at(status, "progress"), "{'attempt': 2, 'startedAt': '2026-11-15T11:00:05Z'}");
        plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_says(r->seen.sentence, "attempt 1 failed: ");
        assert_non_null(planned(r, &KUBE_JOB, "r-run-2"));
        assert_false(told(r, "Retrying")); /* once */
}

static void an_eviction_that_is_not_all_yet(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1, 'podUID': 'uid-p'}");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'signal': 15, 'told': true}");
        server_has_no(r, &KUBE_JOB, "r-run-2");
        recorded_meanwhile(r);
        assert_waits(r);
}

static void retries_come_to_an_end(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'retries': 0}", ATTEMPT1, "");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_FAILED, "Evicted");
        assert_outcome(status, "Failed", "Evicted");
        under_way(r, "{'retries': 2}", "'attempt': 1, 'job': 'r-run', 'retries': 2", "");
        plan_and_settle(r, RUN_LIFE_FAILED, "Evicted");
        assert_says(r->seen.sentence,
                    "attempt 1 failed, and spec.retries allows no other: the pod was ended");
        under_way(r, "{'retries': 3}", "'attempt': 1, 'job': 'r-run', 'retries': 2",
                  ""); /* raised in flight */
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_run(r, status, 2, "r-run-2", 3);
}

static void a_workload_s_own_failure_is_the_end(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'cancel': true}", ATTEMPT1, ""); /* also when it would have been cancelled */
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("3", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        nothing_in_the_way(r);
        assert_outcome(plan_and_settle(r, RUN_LIFE_FAILED, "WorkloadFailed"), "Failed", "WorkloadFailed");
}

/* It failed by itself and said so; that its pod is evicted as well, before it is gone, changes nothing. */
static void evicted_after_its_own_failure(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        nothing_in_the_way(r);
        plan_and_settle(r, RUN_LIFE_FAILED, "WorkloadFailed");
}

static void a_job_that_somebody_deleted_is_the_end(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        nothing_in_the_way(r);
        assert_outcome(plan_and_settle(r, RUN_LIFE_FAILED, "JobDeleted"), "Failed", "JobDeleted");
}

/* Before Kubernetes 1.26 a Job makes another pod for one that was deleted. */
#define SECOND_POD                                                                                          \
        "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC ", 'status': {'phase': 'Running', " STATES( \
                RUNNING, RUNNING) "}}"

static void a_second_pod_is_no_attempt(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1, 'podUID': 'uid-p'}");
        job(r, JOB("", ""));
        pod(r, SECOND_POD);
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'signal': 15, 'told': true}");
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_run(r, status, 1, "r-run", 1); /* not numbered before it is known what the second one claims */
        assert_string_equal(json_str(json_at(status, "run"), "reason"), "Retrying");
        assert_int_equal(r->d.absent.n, 0);
        is_written(r, status);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_says(r->seen.sentence, "attempt 1 failed: the pod was deleted");
        assert_true(removes(r, "r-run"));
        assert_int_equal(r->d.exist.n, 0);
        assert_run(r, status, 1, "r-run", 1);
        no_children(r); /* gone with its pods, and the second one had claimed its turn */
        server_has_no(r, &KUBE_JOB, "r-run");
        status_map(r, FENCE("2", "uid-q", "3", "Running"), NULL, NULL);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_run(r, status, 3, "r-run-3", 1);
        assert_null(json_at(json_at(status, "run"), "reason"));
        assert_says(r->seen.sentence, "attempt 1 failed: the pod was deleted");
}

static void a_second_pod_that_succeeds_counts(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1 ", 'reason': 'Retrying'", ", 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        status_map(r, FENCE("2", "uid-q", "3", "Succeeded"), NULL, "{'code': 0}");
        nothing_in_the_way(r);
        assert_outcome(plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL), "Succeeded", NULL);
}

/* The Job stays as long as its pod does, and that one's node is dead. */
static void a_dead_node_holds_up_nothing(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1 ", 'reason': 'Retrying'", ", 'progress': {'job': 'r-run', 'attempt': 1}");
        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', 'deletionTimestamp': "
               "'2026-11-15T12:00:00Z', " OWNED "}, 'spec': {'backoffLimit': 0}}");
        pod(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING))); /* since 12:00:00, with 30 s */
        nothing_in_the_way(r);
        plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        server_has(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING))); /* not on the cache's word */
        r->view.now = NOON + 90 * USEC_PER_SEC; /* it should have ended, but who knows */
        plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_int_equal(r->d.again_at, NOON + 330 * USEC_PER_SEC);
        r->view.now = r->d.again_at;
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_run(r, status, 2, "r-run-2", 0);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_WAITING, "Retrying");
        assert_non_null(planned(r, &KUBE_JOB, "r-run-2"));
}

/* ---- the Jobs of other attempts */

#define OTHER_JOB(status)                                                                               \
        "{'metadata': {'name': 'r-run-9', 'uid': 'uid-9', 'labels': {'sonde.dev/attempt': '9'}, " OWNED \
        "}, 'spec': {'backoffLimit': 0}, 'status': {" status "}}"

static void another_attempt_s_job_goes_first(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, OTHER_JOB(""));
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_true(removes(r, "r-run-9"));
        assert_int_equal(r->d.exist.n, 0);
        no_children(r);
        job(r, OTHER_JOB(JOB_FAILED("x")));
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_int_equal(r->d.absent.n, 0);
        assert_non_null(planned(r, &KUBE_JOB, "r-run"));
}

/* What a kind makes of a run's result may be a Job as well. */
static void a_job_that_is_no_attempt_s(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1, "");
        job(r, "{'metadata': {'name': 'follow-up', 'uid': 'uid-f', " OWNED "}}");
        plan_and_settle(r, RUN_LIFE_NONE, NULL);
        assert_int_equal(r->d.absent.n, 0);
        assert_non_null(planned(r, &KUBE_JOB, "r-run"));
}

/* ---- suspension */

static void suspended_and_resumed(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'suspend': true}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        job(r, JOB("", ""));
        pod(r, RUNS);
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_condition(status, "Suspended", "True", "Suspended");
        assert_int_equal(r->d.absent.n, 0); /* status before action */
        assert_true(told(r, "Suspended"));
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_true(removes(r, "r-run"));
        assert_int_equal(r->d.exist.n, 0);
        json_remove(json_at(r->view.request, "spec"), "suspend"); /* too soon */
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_says(r->seen.sentence, "as soon as");
        assert_condition(status, "Suspended", "True", "Suspended");
        assert_true(removes(r, "r-run"));
        no_children(r);
        server_has_no(r, &KUBE_JOB, "r-run");
        status_map(r, FENCE("1", "uid-p", "5", "Failed"), "{'phase': 'DecodeSweep'}",
                   "{'signal': 15, 'told': true}");
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Resumed");
        assert_run(r, status, 2, "r-run-2", 0);
        assert_condition(status, "Suspended", "False", "Resumed");
        assert_true(told(r, "Resumed"));
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_WAITING, "Resumed");
        assert_non_null(planned(r, &KUBE_JOB, "r-run-2"));
}

static void resumed_with_another_spec(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'image': 'a'}", ATTEMPT1,
                  ", 'conditions': [" SUSPENDED "], 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        nothing_in_the_way(r);
        json_set(&r->arena, (struct json *)r->view.request, "spec",
                 parse(r, "{'image': 'b', 'suspend': true}"));
        generation(r, 2);
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_int_equal(json_int(status, "observedGeneration", 0), 1); /* not yet */
        assert_int_equal(r->d.events.n, 0);
        json_remove(json_at(r->view.request, "spec"), "suspend");
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Resumed");
        assert_string_equal(json_str(json_at(status, "run"), "specHash"), hash_of(r, "{'image': 'b'}"));
        assert_int_equal(json_int(status, "observedGeneration", 0), 2);
}

/* What would go on if it could says so, and not that it is to be told to. */
static void resumed_with_a_spec_that_cannot_be_run(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1,
                  ", 'conditions': [" SUSPENDED "], 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        nothing_in_the_way(r);
        generation(r, 2);
        status = settle_with(r, "spec.model: is missing", RUN_LIFE_SUSPENDED, "Suspended");
        assert_condition(status, "SpecAccepted", "False", "Invalid");
        assert_says(r->seen.sentence, "cannot be run: spec.model");
        assert_string_equal(json_str(condition(status, "Suspended"), "message"), r->seen.sentence);
        assert_true(told(r, "SpecChangeRejected"));
        under_way(r, "{}", ATTEMPT1 ", 'reason': 'Retrying'", "");
        status = settle_with(r, "spec.model: is missing", RUN_LIFE_WAITING, "Invalid");
        assert_condition(status, "SpecAccepted", "False", "Invalid");
        assert_says(r->seen.sentence, "cannot be run: spec.model");
        is_written(r, status);
        assert_run(r, plan_and_settle(r, RUN_LIFE_WAITING, "Retrying"), 2, "r-run-2", 0);
}

/* Somebody took the label away by which the Job is watched. */
static void suspended_without_being_watched(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1,
                  ", 'conditions': [" SUSPENDED "], 'progress': {'job': 'r-run', 'attempt': 1}");
        answer(r, &KUBE_JOB, "r-run", JOB("", ""), NULL);
        server_has(r, RUNS);
        nothing_in_the_way(r);
        plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_true(removes(r, "r-run"));
        assert_says(r->seen.sentence, "as soon as");
}

/* Done before it was told to end. */
static void a_success_in_suspension(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'suspend': true}", ATTEMPT1,
                  ", 'conditions': [" SUSPENDED "], 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        status_map(r, FENCE("1", "uid-p", "5", "Succeeded"), "{'phase': 'Complete'}", "{'code': 0}");
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_outcome(status, "Succeeded", NULL);
        assert_condition(status, "Suspended", "False", "Resumed");
}

/* Evicted and suspended at once. */
static void suspended_instead_of_tried_again(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'suspend': true}", ATTEMPT1, "");
        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, EVICTED);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_run(r, status, 1, "r-run", 0);
        under_way(r, "{'suspend': true}", ATTEMPT1 ", 'reason': 'Retrying'", "");
        status = plan_and_settle(r, RUN_LIFE_SUSPENDED, "Suspended");
        assert_null(json_at(json_at(status, "run"), "reason"));
}

/* ---- cancelling */

static void cancelled_in_mid_run(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'cancel': true}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        job(r, JOB("", ""));
        pod(r, RUNS);
        answer(r, &KUBE_ROLE, "r-access", "{'metadata': {'name': 'r-access', 'uid': 'u', " OWNED "}}", NULL);
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_WAITING, "Cancelled");
        assert_says(r->seen.sentence, "create another request");
        assert_run(r, status, 1, "r-run", 0);
        assert_int_equal(r->d.absent.n + r->d.exist.n, 0); /* whoever takes it back in time finds all there */
        is_written(r, status);
        json_set(&r->arena, json_at(r->view.request, "spec"), "cancel", json_truth(&r->arena, false));
        status = plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled"); /* not taken back */
        assert_outcome(status, "Failed", "Cancelled");
        assert_true(removes(r, "r-run"));
        assert_int_equal(r->d.absent.n, 2); /* and the Role */
        assert_int_equal(r->d.exist.n, 0);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled");
        assert_int_equal(r->d.absent.n, 1);
}

/* Neither by people nor by the clock. */
static void a_success_that_the_cache_does_not_show(void **state)
{
        static const char *const specs[] = {"{'cancel': true}", "{'timeout': '1m'}"};
        struct rig *r = *state;

        recorded_meanwhile(r);
        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                under_way(r, specs[i], ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
                no_children(r);
                job(r, JOB("", ""));
                pod(r, RUNS);
                status_map(r, FENCE("1", "uid-p", "4", "Running"), NULL, NULL);
                assert_waits(r);
        }
}

/* The workload has ended, and its relay has still to record how. */
static void too_late_to_be_cancelled(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'cancel': true}", ATTEMPT1, "");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(ENDED("0", ""), RUNNING)));
        r->view.now = NOON - 39 * 60 * USEC_PER_SEC;
        plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
}

static void cancelled_in_suspension(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'suspend': true, 'cancel': true}", ATTEMPT1,
                  ", 'conditions': [" SUSPENDED "], 'progress': {'job': 'r-run', 'attempt': 1}");
        server_has_no(r, &KUBE_JOB, "r-run");
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_FAILED, "Cancelled");
        assert_outcome(status, "Failed", "Cancelled");
        assert_condition(status, "Suspended", "False", "Resumed");
}

static void a_success_is_not_cancelled(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'cancel': true}", ATTEMPT1, "");
        job(r, JOB("", ""));
        pod(r, RUNS);
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'Complete'}", "{'code': 0}");
        nothing_in_the_way(r);
        assert_outcome(plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL), "Succeeded", NULL);
}

/* ---- the timeout */

static void longer_than_it_may(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{'timeout': '30m'}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        job(r, JOB("", ""));
        pod(r, RUNS); /* since 11:00:01 */
        nothing_in_the_way(r);
        r->view.now = NOON - 1800 * USEC_PER_SEC;
        plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(r->d.again_at, NOON - 1799 * USEC_PER_SEC);
        r->view.now = r->d.again_at;
        status = plan_and_settle(r, RUN_LIFE_WAITING, "DeadlineExceeded");
        assert_run(r, status, 1, "r-run", 0);
        assert_int_equal(r->d.absent.n, 0);
        is_written(r, status);
        json_set(&r->arena, json_at(r->view.request, "spec"), "timeout", json_string(&r->arena, "2h"));
        status = plan_and_settle(r, RUN_LIFE_FAILED, "DeadlineExceeded");
        assert_says(r->seen.sentence, "(30m)");
        assert_outcome(status, "Failed", "DeadlineExceeded");
        assert_true(removes(r, "r-run"));
}

/* Time in a queue does not count, and neither does what its relay needs when the workload is done. */
static void what_does_not_count(void **state)
{
        struct rig *r = *state;

        under_way(r, "{'timeout': '1m'}", ATTEMPT1, "");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Pending'"));
        plan_and_settle(r, RUN_LIFE_WAITING, NULL);
        no_children(r);
        job(r, JOB("", ""));
        pod(r,
            POD("'phase': 'Running', 'startTime': '2026-11-15T11:00:01Z', " STATES(ENDED("0", ""), RUNNING)));
        r->view.now = NOON - 39 * 60 * USEC_PER_SEC;
        plan_and_settle(r, RUN_LIFE_RUNNING, NULL);
}

/* ---- the end */

static void the_outcome(void **state)
{
        struct rig *r = *state;
        struct json *status;

        under_way(r, "{}", ATTEMPT1, ", 'progress': {'job': 'r-run', 'attempt': 1}");
        job(r, JOB("", ""));
        pod(r, RUNS);
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'Complete'}", "{'code': 0}");
        assert_false(run_settle(&r->view, &r->d, &(struct run){.kind = &KIND, .names = r->names}, &r->seen,
                                json_object(&r->arena))); /* what it may is looked up first */
        nothing_in_the_way(r);
        status = plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_outcome(status, "Succeeded", NULL);
        is_written(r, status);
        plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_int_equal(r->d.exist.n + r->d.absent.n, 0);
}

/* The Job would run once more, or another attempt's is still there. */
static void after_the_end_nothing_goes_on(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1 ", 'outcome': 'Succeeded'",
                  ", 'progress': {'job': 'r-run', 'attempt': 1, 'podUID': 'uid-p'}");
        job(r, JOB("", ""));
        pod(r, SECOND_POD);
        job(r, OTHER_JOB(""));
        plan_and_settle(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_int_equal(r->d.absent.n, 2);
        assert_true(removes(r, "r-run-9"));
}

/* A Job has failed, and its pod is told to end, and has not: that is remembered. */
static void it_rests_when_its_pods_are_over(void **state)
{
        struct rig *r = *state;

        under_way(r, "{}", ATTEMPT1 ", 'outcome': 'Failed'", "");
        job(r, JOB("", JOB_FAILED("DeadlineExceeded")));
        pod(r, EVICTED);
        plan_and_settle(r, RUN_LIFE_FAILED, NULL);
        assert_true(r->d.rests);
        pod(r, RUNS);
        plan_and_settle(r, RUN_LIFE_FAILED, NULL);
        assert_false(r->d.rests);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(its_name_is_written_first),
        T(a_name_that_is_taken),
        T(what_the_job_is_given),
        T(suspended_from_the_start),
        T(cancelled_from_the_start),
        T(an_eviction_is_another_attempt),
        T(an_eviction_that_is_not_all_yet),
        T(retries_come_to_an_end),
        T(a_workload_s_own_failure_is_the_end),
        T(evicted_after_its_own_failure),
        T(a_job_that_somebody_deleted_is_the_end),
        T(a_second_pod_is_no_attempt),
        T(a_second_pod_that_succeeds_counts),
        T(a_dead_node_holds_up_nothing),
        T(another_attempt_s_job_goes_first),
        T(a_job_that_is_no_attempt_s),
        T(suspended_and_resumed),
        T(resumed_with_another_spec),
        T(resumed_with_a_spec_that_cannot_be_run),
        T(suspended_without_being_watched),
        T(a_success_in_suspension),
        T(suspended_instead_of_tried_again),
        T(cancelled_in_mid_run),
        T(a_success_that_the_cache_does_not_show),
        T(too_late_to_be_cancelled),
        T(cancelled_in_suspension),
        T(a_success_is_not_cancelled),
        T(longer_than_it_may),
        T(what_does_not_count),
        T(the_outcome),
        T(after_the_end_nothing_goes_on),
        T(it_rests_when_its_pods_are_over),
};

UNIT_MAIN(tests)
