/*
 * What is seen of a run whose Job has more than one pod, or of whose pod somebody disposed.
 */
#include "unit/run_objects.h"

static void retries(void **state)
{
        struct rig *r = *state;

        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 2}}");
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("3", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        see(r, RUN_LIFE_WAITING, "Retrying");
        assert_says(r->seen.sentence, "attempt 1 failed: the workload exited with status 3");
}

/* The state of the pod before is not this one's, and does not shut it out. */
static void the_second_pod(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        pod(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                         ", 'status': {'phase': 'Running', " STATES(
                                                                 RUNNING, RUNNING) "}}");
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), "{'phase': 'DecodeSweep'}", "{'signal': 15}");
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_string_equal(r->seen.pod->name, "q");
        assert_int_equal(r->seen.attempt, 2);
        assert_false(r->seen.has_status || r->seen.has_exit);
}

static void the_second_pod_has_taken_over(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                         ", 'status': {'phase': 'Running', " STATES(
                                                                 RUNNING, RUNNING) "}}");
        status_map(r, FENCE("2", "uid-q", "1", "Running"), "{'phase': 'Initializing'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(r->seen.attempt, 2);
        assert_true(r->seen.has_status);
}

/* Told to end, it ended with 0: that is no success. A Job that may not fail has made its last pod, as far as we care. */
static void deleted_in_mid_run(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}",
                   "{'code': 0, 'told': true}");
        see(r, RUN_LIFE_FAILED, "Interrupted");
        assert_says(r->seen.sentence, "the pod was deleted");
        assert_true(r->seen.infrastructure);
}

/* Between the two: deleted in mid-run, and the Job has not made another yet. */
static void deleted_in_mid_run_of_a_job_that_tries_again(void **state)
{
        struct rig *r = *state;

        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 2}}");
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}",
                   "{'code': 0, 'told': true}");
        see(r, RUN_LIFE_WAITING, "Retrying");
        assert_says(r->seen.sentence, "the pod was deleted");
        assert_false(r->seen.infrastructure);
}

/* Deleted when it had ended by itself: that is one. */
static void deleted_after_its_end(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}", "{'code': 0}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

/* One that still recorded that it was told to end. */
static void deleted_with_its_job(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}",
                   "{'code': 0, 'told': true}");
        see(r, RUN_LIFE_FAILED, "JobDeleted");
}

/* The kubelet alone knows how it ended. */
static void interrupted_without_a_record(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r,
            "{'metadata': {'name': 'p', 'uid': 'uid-p', 'creationTimestamp': '2026-11-15T11:00:00Z', "
            "'deletionTimestamp': '2026-11-15T11:20:20Z', 'deletionGracePeriodSeconds': 30, " BY_JOB
            "}, " POD_SPEC ", 'status': {'phase': 'Succeeded', " STATES(ENDED("0", ""), ENDED("0", "")) "}}");
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "Interrupted");
}

static void being_deleted(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, DYING("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->d.again_at > NOON);
}

/* ---- a node that is lost: the pod is asked to end at 12:00:00, has 30 s, and stays */

#define HANGS DYING("'phase': 'Running', " STATES(RUNNING, RUNNING))

static void hangs(struct rig *r, const char *job_status, const char *text)
{
        r->view.now = NOON + 90 * USEC_PER_SEC;
        job(r, arena_printf(&r->arena, JOB("", "%s"), job_status));
        pod(r, text);
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        server_agrees(r);
}

static void a_node_that_is_lost(void **state)
{
        struct rig *r = *state;

        hangs(r, "", HANGS); /* and the Job says nothing of it */
        r->view.now--;
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(r->d.again_at, NOON + 90 * USEC_PER_SEC);
        r->view.now++;
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen)); /* not on the cache's word */
        assert_int_equal(r->d.wants[0].kind, WANT_PODS);
        server_has(r, HANGS);
        see(r, RUN_LIFE_FAILED, "NodeLost");
        assert_says(r->seen.sentence, "node n1 does not answer");
        assert_true(r->seen.infrastructure);
}

/* Since Kubernetes 1.31 it is never Failed. */
static void a_job_of_a_lost_node(void **state)
{
        struct rig *r = *state;

        hangs(r, "'conditions': [{'type': 'FailureTarget', 'status': 'True', 'reason': 'PodFailurePolicy'}]",
              HANGS);
        server_has(r, HANGS);
        see(r, RUN_LIFE_FAILED, "NodeLost");
        assert_true(r->seen.infrastructure);
}

/* The deadline is what ended it, whatever became of its node. */
static void a_deadline_on_a_lost_node(void **state)
{
        struct rig *r = *state;

        hangs(r, "'conditions': [{'type': 'FailureTarget', 'status': 'True', 'reason': 'DeadlineExceeded'}]",
              HANGS);
        server_has(r, HANGS);
        see(r, RUN_LIFE_FAILED, "DeadlineExceeded");
        assert_false(r->seen.infrastructure);
}

static void a_taint_on_a_lost_node(void **state)
{
        static const char text[] = DYING(
                "'phase': 'Running', 'conditions': [{'type': 'DisruptionTarget', 'status': 'True', 'reason': "
                "'DeletionByTaintManager', 'message': 'Taint manager: deleting due to NoExecute "
                "taint'}], " STATES(RUNNING, RUNNING));
        struct rig *r = *state;

        hangs(r, "", text);
        server_has(r, text);
        see(r, RUN_LIFE_FAILED, "DeletionByTaintManager");
        assert_true(r->seen.infrastructure);
}

/* The Job has just given up, and its pod is about to be told. */
static void a_pod_that_is_not_told_yet(void **state)
{
        static const char text[] = POD("'phase': 'Running', " STATES(RUNNING, RUNNING));
        struct rig *r = *state;

        hangs(r, "'conditions': [{'type': 'FailureTarget', 'status': 'True', 'reason': 'DeadlineExceeded'}]",
              text);
        server_has(r, text);
        see(r, RUN_LIFE_RUNNING, NULL);
}

/* What the server knows better: it has ended in time. */
static void a_pod_that_ended_in_time(void **state)
{
        struct rig *r = *state;

        hangs(r, "", HANGS);
        server_has(r, DYING("'phase': 'Failed', " STATES(ENDED("143", ""), ENDED("0", ""))));
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
}

/* ---- a complete Job, and a pod that failed before the one that did not */

#define FAILED_POD POD("'phase': 'Failed', " STATES(ENDED("3", ""), ENDED("0", "")))

static void the_pod_that_succeeded_is_gone(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, FAILED_POD);
        server_has(r, FAILED_POD);
        status_map(r, FENCE("2", "uid-q", "9", "Succeeded"), "{'phase': 'Complete'}", "{'code': 0}");
        server_agrees(r);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_int_equal(r->seen.attempt, 2);
        assert_null(r->seen.pod);
        assert_null(r->seen.problem);
        assert_true(r->seen.has_exit);
}

/* Neither the pods' watch nor the ConfigMaps' has shown the second one. */
static void the_pod_that_succeeded_was_not_seen_yet(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, FAILED_POD);
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
        server_has(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                                ", 'status': {'phase': 'Succeeded', " STATES(
                                                                        ENDED("0", ""), ENDED("0", "")) "}}");
        answer(r, &KUBE_CONFIGMAP, "r-status", MAP(FENCE("2", "uid-q", "9", "Succeeded")), NULL);
        answer(r, &KUBE_CONFIGMAP, "r-data", NULL, NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_int_equal(r->seen.attempt, 2);
        assert_string_equal(r->seen.pod->name, "q");
}

/* It recorded nothing: what the one before it did is not its own, whether that one is still there or not. */
static void the_pod_that_succeeded_left_nothing(void **state)
{
        (void)state;
        for (int there = 0; there < 2; there++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", JOB_COMPLETE));
                server_has(r, there ? FAILED_POD : NULL);
                status_map(r, FENCE("1", "uid-p", "9", "Failed"), "{'phase': 'DecodeSweep'}", "{'code': 3}");
                server_agrees(r);
                see(r, RUN_LIFE_SUCCEEDED, NULL);
                assert_string_equal(r->seen.problem_reason, "RelayLost");
                assert_false(r->seen.has_status || r->seen.has_exit);
                assert_int_equal(r->seen.attempt, 2);
                teardown(&s);
        }
}

/* A pod that is over is not about to claim anything. */
static void an_older_pod_is_no_further_attempt(void **state)
{
        struct rig *r = *state;

        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 2}}");
        pod(r, FAILED_POD);
        status_map(r, FENCE("2", "uid-q", "9", "Failed"), NULL, "{'code': 3}");
        server_agrees(r);
        see(r, RUN_LIFE_WAITING, "Retrying");
        assert_int_equal(r->seen.attempt, 2);
}

/* The Job was faster than the operator: it counts a killed relay as a failure. */
static void a_success_counts_when_another_pod_came(void **state)
{
        struct rig *r = *state;

        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 2}}");
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("0", ""), ENDED("137", ""))));
        pod(r, "{'metadata': {'name': 'r-run-q', 'uid': 'uid-q', 'creationTimestamp': "
               "'2026-11-15T11:40:00Z', 'ownerReferences': [{'uid': 'uid-job', 'controller': true}]}, "
               "'status': {'phase': 'Running'}}");
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        server_agrees(r);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_string_equal(r->seen.pod->uid, "uid-p");
        assert_string_equal(r->seen.problem_reason, "RelayLost");
}

/* Deleted when it had recorded its success, and a server of old has the Job make another pod. */
static void a_recorded_success_counts_when_another_pod_came(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                         ", 'status': {'phase': 'Running', " STATES(
                                                                 RUNNING, RUNNING) "}}");
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}", "{'code': 0}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_null(r->seen.pod);
        assert_true(r->seen.has_exit);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(retries),
        T(the_second_pod),
        T(the_second_pod_has_taken_over),
        T(deleted_in_mid_run),
        T(deleted_in_mid_run_of_a_job_that_tries_again),
        T(deleted_after_its_end),
        T(deleted_with_its_job),
        T(interrupted_without_a_record),
        T(being_deleted),
        T(a_node_that_is_lost),
        T(a_job_of_a_lost_node),
        T(a_deadline_on_a_lost_node),
        T(a_taint_on_a_lost_node),
        T(a_pod_that_is_not_told_yet),
        T(a_pod_that_ended_in_time),
        T(the_pod_that_succeeded_is_gone),
        T(the_pod_that_succeeded_was_not_seen_yet),
        T(the_pod_that_succeeded_left_nothing),
        T(an_older_pod_is_no_further_attempt),
        T(a_success_counts_when_another_pod_came),
        T(a_recorded_success_counts_when_another_pod_came),
};

UNIT_MAIN(tests)
