#include "unit/run_objects.h"

/* What is left of Job and pod says the same. */
static void what_is_kept_says_the_same(void **state)
{
        struct rig *r = *state;
        struct json *j = parse(r, JOB(", 'activeDeadlineSeconds': 600, 'template': {'spec': {}}",
                                      JOB_FAILED("BackoffLimitExceeded"))),
                    *p = parse(r, POD("'phase': 'Failed', " STATES(ENDED("137", ", 'reason': 'OOMKilled'"),
                                                                   ENDED("0", ""))));

        json_set(&r->arena, json_at(p, "spec"), "volumes", parse(r, "[{'name': 'x'}]"));
        run_project_job(j, &r->arena);
        run_project_pod(p, &r->arena);
        assert_json(r, json_at(j, "spec"), "{'backoffLimit': 0, 'activeDeadlineSeconds': 600}");
        assert_json(r, json_at(p, "spec"),
                    "{'nodeName': 'n1', 'containers': [{'name': 'main', 'image': 'workload:1', "
                    "'resources': {'limits': {'memory': '64Mi'}}}, {'name': 'relay'}]}");
        child_json(r, &KUBE_JOB, j);
        child_json(r, &KUBE_POD, p);
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "OutOfMemory");
        assert_says(r->seen.sentence, "64Mi");
}

/* A megabyte of results is not held for every run that there was. */
static void what_is_kept_of_a_map(void **state)
{
        struct rig *r = *state;
        struct json *status = parse(
                r, MAP(FENCE("1", "uid-p", "4",
                             "Running") ", 'status.json': 's', 'track.json': 't', 'exit.json': 'e', "
                                        "'problem': 'p', 'heartbeat': 'h'"));
        struct json *data = parse(r, "{'metadata': {'name': 'r-data'}, 'data': {'result.json': '{}', "
                                     "'specHash': 'x'}, 'binaryData': {'checkpoint.json.gz': 'AAAA'}}");
        struct json *empty = parse(r, "{'metadata': {'name': 'r-data'}}");

        run_project_map(status, &r->arena);
        assert_json(r, json_at(status, "data"),
                    "{" FENCE("1", "uid-p", "4",
                              "Running") ", 'status.json': 's', 'track.json': 't', 'exit.json': 'e', "
                                         "'problem': 'p'}");
        run_project_map(data, &r->arena);
        assert_json(r, data, "{'metadata': {'name': 'r-data'}, 'data': {}}");
        run_project_map(empty, &r->arena);
        assert_json(r, json_at(empty, "data"), "{}");
}

/* ---- before it runs */

static void no_job(void **state)
{
        struct rig *r = *state;

        see(r, RUN_LIFE_NONE, NULL);
}

static void job_without_pod(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        status_map(r, FENCE("1", "", "0", "Pending"), NULL, NULL);
        see(r, RUN_LIFE_WAITING, NULL);
        assert_int_equal(r->seen.attempt, 1);
        assert_null(r->seen.problem);
}

static void unschedulable(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r,
            POD("'phase': 'Pending', 'conditions': [{'type': 'PodScheduled', 'status': 'False', 'reason': "
                "'Unschedulable', 'message': '0/3 nodes are available: 3 Insufficient nvidia.com/gpu.'}]"));
        see(r, RUN_LIFE_WAITING, "Unschedulable");
        assert_says(r->seen.sentence, "3 Insufficient nvidia.com/gpu");
}

static void images_and_configurations(void **state)
{
        static const struct {
                const char *theirs, *ours;
        } cases[] = {{"ErrImagePull", "ImagePullFailed"},
                     {"ImagePullBackOff", "ImagePullFailed"},
                     {"CreateContainerConfigError", "ContainerConfigError"},
                     {"SomethingNew", "ContainerWaiting"}};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", ""));
                pod(r,
                    arena_printf(&r->arena,
                                 POD("'phase': 'Pending', " STATES("'waiting': {'reason': '%s', 'message': "
                                                                   "'it\\nis so'}",
                                                                   "'waiting': {'reason': "
                                                                   "'PodInitializing'}")),
                                 cases[i].theirs));
                see(r, RUN_LIFE_WAITING, cases[i].ours);
                assert_says(r->seen.sentence, "it is so");
                teardown(&s);
        }
}

static void being_prepared_is_nothing_special(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r,
            POD("'phase': 'Pending', 'initContainerStatuses': [{'name': 'stage', 'state': {'waiting': "
                "{'reason': 'ContainerCreating'}}}], " STATES("'waiting': {'reason': 'PodInitializing'}",
                                                              "'waiting': {'reason': 'PodInitializing'}")));
        see(r, RUN_LIFE_WAITING, NULL);
        assert_null(r->seen.sentence);
        assert_null(r->seen.problem); /* nor is a ConfigMap that is not seen yet */
}

static void stage_fails(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', 'initContainerStatuses': [{'name': 'stage', 'state': {'terminated': "
                   "{'exitCode': 1, 'message': 'no space left'}}}]"));
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "StageFailed");
        assert_says(r->seen.sentence, "no space left");
        assert_says(r->seen.sentence, "kubectl logs p -c stage");
}

/* What a kind has run before the workload may say it in a word. */
static void what_prepares_the_workload_fails(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', 'initContainerStatuses': [{'name': 'stage', 'state': {'terminated': "
                   "{'exitCode': 0}}}, {'name': 'stage-workload', 'state': {'terminated': {'exitCode': 1, "
                   "'message': 'CommandNotFound: /x is not in the image'}}}]"));
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "CommandNotFound");
        assert_string_equal(r->seen.sentence, "/x is not in the image; see kubectl logs p -c stage-workload");
}

/* A pod that goes is no fault of what prepares it; one that was full before is. */
static void stage_is_told_to_end(void **state)
{
        static const struct {
                const char *code, *reason;
        } cases[] = {{"143", "Interrupted"}, {"137", "Interrupted"}, {"1", "StageFailed"}};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", ""));
                pod(r, arena_printf(&r->arena,
                                    "{'metadata': {'name': 'p', 'uid': 'uid-p', 'deletionTimestamp': "
                                    "'2026-11-15T12:00:00Z', 'creationTimestamp': "
                                    "'2026-11-15T11:59:00Z', " BY_JOB
                                    "}, 'status': {'phase': 'Failed', 'initContainerStatuses': [{'name': "
                                    "'stage', 'state': {'terminated': {'exitCode': %s}}}]}}",
                                    cases[i].code));
                server_agrees(r);
                see(r, RUN_LIFE_FAILED, cases[i].reason);
                assert_int_equal(r->seen.infrastructure, i < 2);
                teardown(&s);
        }
}

/* ---- while it runs */

static void running_without_status(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "", "0", "Pending"), NULL, NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_false(r->seen.has_status);
        assert_null(r->seen.problem);
}

static void running_with_status(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "{'phase': 'PrefillSweep', 'message': 'm'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_status);
        assert_string_equal(r->seen.status.phase, "PrefillSweep");
        assert_int_equal(r->seen.fence.sequence, 4);
}

static void the_relay_is_faster_than_the_kubelet(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Pending'"));
        status_map(r, FENCE("1", "uid-p", "1", "Running"), "{'phase': 'PrefillSweep'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
}

/* A profiler that says Complete and goes on has not ended. */
static void only_the_end_ends(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "{'phase': 'Complete'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
}

static void malformed_status(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "not json", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_false(r->seen.has_status);
        assert_string_equal(r->seen.problem_reason, "Malformed");
}

static void malformed_fence(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("one", "uid-p", "4", "Succeeded"), "{'phase': 'Complete'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(r->seen.fence.attempt, 0);
        assert_says(r->seen.problem, "r-status");
}

static void what_the_relay_refuses(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running") ", 'problem': 'line 1: no object'",
                   "{'phase': 'DecodeSweep'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_status); /* the last good state */
        assert_string_equal(r->seen.problem_reason, "Refused");
        assert_says(r->seen.problem, "line 1: no object");
}

/* On one line, and without what would colour a terminal. */
static void what_the_relay_refuses_is_quoted(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r,
                   FENCE("1", "uid-p", "4",
                         "Running") ", 'problem': 'a\\u001b[1mb\\nc\\u007fd\\u009b1me\\u0080\\u00a0f\\u00e9'",
                   NULL, NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_string_equal(r->seen.problem, "a [1mb c d 1me \u00a0f\u00e9");
}

/* Somebody else's ConfigMap of that name is no child, and is not believed when it is looked up either. */
static void a_strangers_map(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, POD("'phase': 'Succeeded', " STATES(ENDED("3", ""), ENDED("0", ""))));
        answer(r, &KUBE_CONFIGMAP, "r-status",
               "{'metadata': {'name': 'r-status', 'uid': 'x', " OTHERS
               "}, 'data': {" FENCE("1", "uid-p", "4", "Succeeded") "}}",
               NULL);
        answer(r, &KUBE_CONFIGMAP, "r-data", NULL, NULL);
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        assert_int_equal(r->seen.fence.attempt, 0);
}

/* What a volume had before is the stage's matter; a profiler's own clock may be wrong by any time. */
static void status_of_another_time(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "1", "Running"),
                   "{'phase': 'DecodeSweep', 'timestamp': '2026-01-23T14:30:00Z'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_status);
        assert_null(r->seen.problem);
}

/* ---- success */

static void recorded_success(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'Complete'}",
                   "{'code': 0, 'finishedAt': '2026-11-15T11:21:00Z'}");
        see(r, RUN_LIFE_SUCCEEDED, NULL); /* the kubelet is slower */
        assert_null(r->seen.problem);
        assert_int_equal(r->seen.finished, NOON - 39 * 60 * USEC_PER_SEC);
}

/* The relay has still to record what came out. */
static void ended_but_not_recorded_yet(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        r->view.now = NOON - 39 * 60 * USEC_PER_SEC; /* a minute after the end */
        pod(r, POD("'phase': 'Running', " STATES(ENDED("0", ""), RUNNING)));
        status_map(r, FENCE("1", "uid-p", "8", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_int_equal(r->d.n_wants, 0);
        assert_true(r->d.again_at > r->view.now);
        r->view.now = r->d.again_at; /* and never will */
        server_agrees(r);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_string_equal(r->seen.problem_reason, "RelayLost");
}

/* Pods and ConfigMaps come by different watches. */
static void the_cache_is_behind(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, POD("'phase': 'Succeeded', " STATES(ENDED("0", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "8", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
        assert_true(wanted(r, &KUBE_CONFIGMAP, "r-status"));
        answer(r, &KUBE_CONFIGMAP, "r-status",
               MAP(FENCE("1", "uid-p", "9", "Succeeded") ", 'status.json': '{\\u0022phase\\u0022: "
                                                         "\\u0022Complete\\u0022}'"),
               NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_null(r->seen.problem);
        assert_string_equal(r->seen.status.phase, "Complete");
}

static void relay_killed(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("0", ""), ENDED("137", ", 'reason': 'OOMKilled'"))));
        status_map(r, FENCE("1", "uid-p", "8", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        server_agrees(r);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_string_equal(r->seen.problem_reason, "RelayLost");
        assert_says(r->seen.problem, "OOMKilled");
        assert_says(r->seen.problem, "result.json");
}

/* What `run` left in the termination message is all there is. */
static void relay_cut_from_the_server(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(
                       ENDED("0", ", 'message': '{\\u0022code\\u0022: 0, \\u0022finishedAt\\u0022: "
                                  "\\u00222026-11-15T11:19:59.5Z\\u0022}'"),
                       ENDED("1", ", 'reason': 'Error'"))));
        server_agrees(r);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_true(r->seen.has_exit);
        assert_int_equal(r->seen.finished % USEC_PER_SEC, USEC_PER_SEC / 2);
}

/* The Job counts a killed relay as a failure; the cache has not seen yet how the pod ended, or that there is one. */
static void the_cache_has_an_old_pod_or_none(void **state)
{
        (void)state;
        for (int old = 0; old < 2; old++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
                if (old)
                        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
                assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
                assert_int_equal(r->d.wants[0].kind, WANT_PODS);
                assert_string_equal(r->d.wants[0].uid, "uid-job");
                server_has(r, POD("'phase': 'Failed', " STATES(ENDED("0", ""), ENDED("137", ""))));
                server_agrees(r);
                see(r, RUN_LIFE_SUCCEEDED, NULL);
                teardown(&s);
        }
}

static void pods_that_are_gone(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        server_has(r, NULL);
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "JobFailed");
        assert_says(r->seen.sentence, "it failed");
}

static void job_complete_and_pod_gone(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        server_agrees(r);
        server_has(r, NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_string_equal(r->seen.problem_reason, "RelayLost");
}

/* ---- failure */

static void exit_status(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL,
                   "{'code': 3, 'tail': 'a\\nb: no such file\\n'}");
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        assert_says(r->seen.sentence, "exited with status 3");
        assert_says(r->seen.sentence, "b: no such file;");
        assert_says(r->seen.sentence, "kubectl logs job/r-run");
}

static void exit_status_from_the_kubelet_alone(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("3", ", 'reason': 'Error'"), ENDED("1", ""))));
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        assert_says(r->seen.sentence, "exited with status 3");
}

static void reported_failure_with_its_reason(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"),
                   "{'phase': 'Failed', 'error': 'no GPU answers; plug one in', 'reason': 'NoGPU'}",
                   "{'code': 1}");
        see(r, RUN_LIFE_FAILED, "NoGPU");
        assert_string_equal(r->seen.sentence, "no GPU answers; plug one in");
}

static void reported_failure_with_exit_0(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, POD("'phase': 'Succeeded', " STATES(ENDED("0", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), "{'phase': 'Failed', 'error': 'no GPU answers'}",
                   "{'code': 0}");
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        assert_says(r->seen.sentence, "no GPU answers");
}

static void out_of_memory(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("137", ", 'reason': 'OOMKilled'"), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'lost': true}");
        see(r, RUN_LIFE_FAILED, "OutOfMemory");
        assert_says(r->seen.sentence, "64Mi");
        assert_says(r->seen.sentence, "resources.limits.memory");
}

/* A full disk: `run` could not write how it ended, but the kubelet saw it. */
static void an_end_that_the_relay_lost_is_the_kubelet_s(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_COMPLETE));
        pod(r, POD("'phase': 'Succeeded', " STATES(ENDED("0", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'lost': true}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

static void could_not_be_started(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "1", "Failed"), NULL, "{'error': 'no such file or directory'}");
        see(r, RUN_LIFE_FAILED, "WorkloadNotStarted");
        assert_says(r->seen.sentence, "no such file or directory");
}

/* The relay runs, and waits for a workload of which nobody will tell it. */
static void the_node_could_not_start_it(void **state)
{
        static const char *const reasons[] = {"StartError", "ContainerCannotRun"};

        for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", ""));
                pod(r, arena_printf(&r->arena, POD("'phase': 'Running', %s"),
                                    arena_printf(&r->arena,
                                                 STATES(ENDED("128", ", 'reason': '%s', 'message': "
                                                                     "'nvidia-container-cli: no driver'"),
                                                        RUNNING),
                                                 reasons[i])));
                r->view.now = NOON - 40 * 60 * USEC_PER_SEC; /* at once */
                server_agrees(r);
                see(r, RUN_LIFE_FAILED, "WorkloadNotStarted");
                assert_says(r->seen.sentence, "nvidia-container-cli: no driver; check its command");
                assert_false(r->seen.infrastructure);
                teardown(&s);
        }
}

static void evicted(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
        pod(r, POD("'phase': 'Failed', 'reason': 'Evicted', 'message': 'The node was low on resource: "
                   "memory.'"));
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "Evicted");
        assert_says(r->seen.sentence, "low on resource: memory");
        assert_says(r->seen.sentence, "n1");
}

/* What may not stand as a reason is a part of the sentence. */
static void evicted_for_a_strange_reason(void **state)
{
        static const char *const reasons[] = {
                "no CamelCase", "9Lives", "a\\u0007b",
                "AaaaaaaaaaaaaaaaAaaaaaaaaaaaaaaaAaaaaaaaaaaaaaaaAaaaaaaaaaaaaaaaA"};

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
                pod(r, arena_printf(&r->arena, POD("'phase': 'Failed', 'reason': '%s'"), reasons[i]));
                server_agrees(r);
                see(r, RUN_LIFE_FAILED, "PodFailed");
                assert_says(r->seen.sentence, i == 2 ? "a b" : reasons[i]);
                teardown(&s);
        }
}

static void deadline(void **state)
{
        struct rig *r = *state;

        request(r, "{'conditions': [{'type': 'Progressing', 'status': 'False', 'reason': 'ImagePullFailed', "
                   "'message': 'the image cannot be pulled'}]}");
        job(r, JOB(", 'activeDeadlineSeconds': 600", JOB_FAILED("DeadlineExceeded")));
        server_agrees(r);
        server_has(r, NULL);
        see(r, RUN_LIFE_FAILED, "DeadlineExceeded");
        assert_says(r->seen.sentence, "600 s");
        assert_says(r->seen.sentence, "the image cannot be pulled");
}

/* What ended before the deadline has ended well; what was ended by it has not. */
static void success_before_the_deadline(void **state)
{
        struct rig *r = *state;

        job(r, JOB(", 'activeDeadlineSeconds': 600", JOB_FAILED("DeadlineExceeded")));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("0", ""), ENDED("143", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), NULL,
                   "{'code': 0, 'finishedAt': '2026-11-15T11:29:59Z'}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

static void ended_by_the_deadline(void **state)
{
        struct rig *r = *state;

        job(r, JOB(", 'activeDeadlineSeconds': 600", JOB_FAILED("DeadlineExceeded")));
        status_map(
                r, FENCE("1", "uid-p", "9", "Succeeded"), NULL,
                "{'code': 0, 'told': true, 'finishedAt': '2026-11-15T11:29:58Z'}"); /* by the node's clock */
        server_has(r, NULL);
        see(r, RUN_LIFE_FAILED, "DeadlineExceeded");
}

/* The node's clock is ahead of the Job controller's. */
static void not_ended_by_the_deadline(void **state)
{
        struct rig *r = *state;

        job(r, JOB(", 'activeDeadlineSeconds': 600", JOB_FAILED("DeadlineExceeded")));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), NULL,
                   "{'code': 0, 'finishedAt': '2026-11-15T11:30:02Z'}");
        server_has(r, NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

/* Since Kubernetes 1.31: FailureTarget at the deadline, Failed when the pods have ended. */
#define TARGET                                                                                  \
        "{'type': 'FailureTarget', 'status': 'True', 'reason': 'DeadlineExceeded', 'message': " \
        "'it failed', 'lastTransitionTime': '2026-11-15T11:15:00Z'}"

static void the_deadline_is_when_the_job_gave_up(void **state)
{
        struct rig *r = *state;

        job(r, JOB(", 'activeDeadlineSeconds': 600",
                   "'conditions': [" TARGET
                   ", {'type': 'Failed', 'status': 'True', 'reason': 'DeadlineExceeded', "
                   "'lastTransitionTime': '2026-11-15T11:30:00Z'}]"));
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("0", ""), ENDED("0", "")))); /* at 11:20 */
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "DeadlineExceeded");
}

static void a_job_that_gives_up_does_not_try_again(void **state)
{
        struct rig *r = *state;

        job(r, "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED
               "}, 'spec': {'backoffLimit': 2}, 'status': {'conditions': [" TARGET "]}}");
        pod(r, POD("'phase': 'Failed', " STATES(ENDED("143", ""), ENDED("0", ""))));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'signal': 15, 'told': true}");
        see(r, RUN_LIFE_FAILED, "DeadlineExceeded");
}

static void job_deleted(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen)); /* not on the cache's word alone */
        assert_true(wanted(r, &KUBE_JOB, "r-run"));
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        server_agrees(r);
        see(r, RUN_LIFE_FAILED, "JobDeleted");
        assert_true(r->seen.has_status);
}

static void job_deleted_after_the_end(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'Complete'}", "{'code': 0}");
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

/* Not here yet; or somebody took the label away by which it is watched. */
static void a_job_that_is_not_watched(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        answer(r, &KUBE_JOB, "r-run", "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}}", NULL);
        status_map(r, FENCE("1", "uid-p", "9", "Running"), "{'phase': 'DecodeSweep'}", NULL);
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
        assert_int_equal(r->d.wants[0].kind, WANT_PODS);
        server_has(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_status && r->seen.pod);
        assert_int_equal(r->d.again_at, NOON + 5 * USEC_PER_SEC); /* nothing else shows what becomes of it */
}

/* ---- whose fault it was */

static void whose_fault(void **state)
{
        static const struct {
                const char *pod, *exit, *reason;
                bool infrastructure;
        } cases[] = {
                {"'phase': 'Failed', 'reason': 'Evicted'", NULL, "Evicted", true},
                {"'phase': 'Failed', 'reason': 'Preempting'", NULL, "Preempting", true},
                {"'phase': 'Failed', 'reason': 'NodeLost'", NULL, "NodeLost", true},
                {"'phase': 'Failed', 'reason': 'Terminated'", NULL, "Terminated", true},
                {"'phase': 'Failed', 'reason': 'Evicted'", "{'code': 0, 'told': true}", "Evicted", true},
                {"'phase': 'Failed', 'reason': 'Evicted'", "{'code': 3}", "WorkloadFailed", false},
                {"'phase': 'Failed', 'reason': 'DeadlineExceeded'", NULL, "DeadlineExceeded", false},
                {"'phase': 'Failed', " STATES(ENDED("137", ", 'reason': 'OOMKilled'"), ENDED("0", "")), NULL,
                 "OutOfMemory", false},
                {"'phase': 'Failed', " STATES(ENDED("3", ""), ENDED("0", "")), NULL, "WorkloadFailed", false},
                {"'phase': 'Failed', " STATES(ENDED("143", ""), ENDED("0", "")),
                 "{'signal': 15, 'told': true}", "Interrupted", true},
                {"'phase': 'Failed', " STATES(ENDED("1", ""), ENDED("0", "")), "{'error': 'no such file'}",
                 "WorkloadNotStarted", false},
                {"'phase': 'Failed', 'initContainerStatuses': [{'name': 'stage', 'state': {'terminated': "
                 "{'exitCode': 1}}}]",
                 NULL, "StageFailed", false},
                {"'phase': 'Failed', 'conditions': [{'type': 'DisruptionTarget', 'status': 'True', 'reason': "
                 "'PreemptionByScheduler', 'message': 'a pod of priority 9 takes its place'}], " STATES(
                         ENDED("143", ""), ENDED("143", "")),
                 NULL, "PreemptionByScheduler", true},
                {"'phase': 'Failed', 'conditions': [{'type': 'DisruptionTarget', 'status': 'True', 'reason': "
                 "'PreemptionByScheduler'}], " STATES(ENDED("3", ""), ENDED("143", "")),
                 "{'code': 3}", "WorkloadFailed", false},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                void *s;
                struct rig *r;

                setup(&s);
                r = s;
                job(r, JOB("", JOB_FAILED("BackoffLimitExceeded")));
                pod(r, arena_printf(&r->arena, POD("%s"), cases[i].pod));
                if (cases[i].exit)
                        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, cases[i].exit);
                server_agrees(r);
                see(r, RUN_LIFE_FAILED, cases[i].reason);
                if (r->seen.infrastructure != cases[i].infrastructure)
                        fail_msg("case %zu", i);
                teardown(&s);
        }
}

/* ---- a Job that cannot make its pod */

#define YOUNG_JOB(status)                                                        \
        "{'metadata': {'name': 'r-run', 'uid': 'uid-job', 'creationTimestamp': " \
        "'2026-11-15T12:00:00Z', " OWNED "}, 'spec': {'backoffLimit': 0}, 'status': {" status "}}"

static void events_of_job(struct rig *r, const char *items)
{
        *vec_push(&r->answers) = (struct answer){
                .want = {.kind = WANT_EVENTS, .type = &KUBE_JOB, .name = "r-run", .uid = "uid-job"},
                .json = parse(r, items)};
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static void a_pod_that_is_refused(void **state)
{
        struct rig *r = *state;

        job(r, YOUNG_JOB(""));
        see(r, RUN_LIFE_WAITING, NULL);
        assert_int_equal(r->d.again_at, NOON + 5 * USEC_PER_SEC);
        r->view.now = r->d.again_at;
        r->d.again_at = 0;
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
        assert_int_equal(r->d.wants[0].kind, WANT_EVENTS);
        events_of_job(r,
                      "{'items': [{'reason': 'FailedCreate', 'note': 'Error creating: pods \\u0022r-run-abcde"
                      "\\u0022 is forbidden: exceeded quota: b', 'deprecatedLastTimestamp': "
                      "'2026-11-15T12:00:02Z'}, {'reason': 'FailedCreate', 'note': 'an older one', "
                      "'deprecatedLastTimestamp': '2026-11-15T12:00:01Z'}, {'reason': 'Other', 'note': 'x', "
                      "'eventTime': '2026-11-15T12:00:03Z'}]}");
        see(r, RUN_LIFE_WAITING, "PodNotCreated");
        assert_says(r->seen.sentence,
                    "pods \"r-run\" is forbidden: exceeded quota: b;"); /* the same every time */
        assert_int_equal(r->d.again_at, NOON + 35 * USEC_PER_SEC);
}

/* The server cuts what it adds five characters to. */
static void a_pod_of_a_long_name(void **state)
{
        static const char job_name[] = "a123456789b123456789c123456789d123456789e123456789f123456789";
        struct rig *r = *state;
        struct json *j = parse(r, YOUNG_JOB("")), *note = parse(r, "{'items': [{'reason': 'FailedCreate'}]}");
        const struct want want = {WANT_EVENTS, &KUBE_JOB, job_name, "uid-job", NULL};

        json_set(&r->arena, json_at(j, "metadata"), "name", json_string(&r->arena, job_name));
        child_json(r, &KUBE_JOB, j);
        r->names.job = job_name;
        json_set(&r->arena, json_first(json_at(note, "items")), "note",
                 json_string(&r->arena,
                             arena_printf(&r->arena, "pods \"%.58sxk2z9\" is forbidden", job_name)));
        *vec_push(&r->answers) = (struct answer){.want = want, .json = note};
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
        r->view.now = NOON + 60 * USEC_PER_SEC;
        see(r, RUN_LIFE_WAITING, "PodNotCreated");
        assert_says(r->seen.sentence, "f1234567\" is forbidden");
}

static void a_pod_that_the_cache_has_not(void **state)
{
        struct rig *r = *state;

        r->view.now = NOON + 60 * USEC_PER_SEC;
        job(r, YOUNG_JOB("'active': 1"));
        see(r, RUN_LIFE_WAITING, NULL);
        assert_int_equal(r->d.n_wants, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(what_is_kept_says_the_same),
        T(what_is_kept_of_a_map),
        T(no_job),
        T(job_without_pod),
        T(unschedulable),
        T(images_and_configurations),
        T(being_prepared_is_nothing_special),
        T(stage_fails),
        T(what_prepares_the_workload_fails),
        T(stage_is_told_to_end),
        T(running_without_status),
        T(running_with_status),
        T(the_relay_is_faster_than_the_kubelet),
        T(only_the_end_ends),
        T(malformed_status),
        T(malformed_fence),
        T(what_the_relay_refuses),
        T(what_the_relay_refuses_is_quoted),
        T(a_strangers_map),
        T(status_of_another_time),
        T(recorded_success),
        T(ended_but_not_recorded_yet),
        T(the_cache_is_behind),
        T(relay_killed),
        T(relay_cut_from_the_server),
        T(the_cache_has_an_old_pod_or_none),
        T(pods_that_are_gone),
        T(job_complete_and_pod_gone),
        T(exit_status),
        T(exit_status_from_the_kubelet_alone),
        T(reported_failure_with_its_reason),
        T(reported_failure_with_exit_0),
        T(out_of_memory),
        T(an_end_that_the_relay_lost_is_the_kubelet_s),
        T(could_not_be_started),
        cmocka_unit_test(the_node_could_not_start_it),
        T(evicted),
        T(evicted_for_a_strange_reason),
        T(deadline),
        T(success_before_the_deadline),
        T(ended_by_the_deadline),
        T(not_ended_by_the_deadline),
        T(the_deadline_is_when_the_job_gave_up),
        T(a_job_that_gives_up_does_not_try_again),
        T(job_deleted),
        T(job_deleted_after_the_end),
        T(a_job_that_is_not_watched),
        T(whose_fault),
        T(a_pod_that_is_refused),
        T(a_pod_of_a_long_name),
        T(a_pod_that_the_cache_has_not),
};

UNIT_MAIN(tests)
