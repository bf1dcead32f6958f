#include "unit/run_rig.h"

/* ---- the objects, in the forms in which they come */

#define JOB(spec, status)                                                                              \
        "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}, 'spec': {'backoffLimit': 0" spec \
        "}, 'status': {" status "}}"
#define JOB_FAILED(reason)                                                       \
        "'conditions': [{'type': 'Failed', 'status': 'True', 'reason': '" reason \
        "', 'message': 'it failed', 'lastTransitionTime': '2026-11-15T11:30:00Z'}]"
#define JOB_COMPLETE "'conditions': [{'type': 'Complete', 'status': 'True'}]"

#define POD_META(name, created)                                                                  \
        "'metadata': {'name': '" name "', 'uid': 'uid-" name "', 'creationTimestamp': '" created \
        "', 'annotations': {'kubectl.kubernetes.io/default-container': 'main'}, " BY_JOB "}"
#define POD_SPEC                                                                                         \
        "'spec': {'nodeName': 'n1', 'containers': [{'name': 'main', 'resources': {'limits': {'memory': " \
        "'64Mi'}}}, {'name': 'relay'}]}"
#define POD(status) "{" POD_META("p", "2026-11-15T11:00:00Z") ", " POD_SPEC ", 'status': {" status "}}"
#define DYING(status)                                                                                        \
        "{'metadata': {'name': 'p', 'uid': 'uid-p', 'creationTimestamp': '2026-11-15T11:00:00Z', "           \
        "'deletionTimestamp': '2026-11-15T12:00:30Z', 'deletionGracePeriodSeconds': 30, 'annotations': "     \
        "{'kubectl.kubernetes.io/default-container': 'main'}, " BY_JOB "}, " POD_SPEC ", 'status': {" status \
        "}}"
#define STATES(main, relay)                                                                               \
        "'containerStatuses': [{'name': 'main', 'state': {" main "}}, {'name': 'relay', 'state': {" relay \
        "}}]"
#define RUNNING "'running': {'startedAt': '2026-11-15T11:00:05Z'}"
#define ENDED(code, more)                                                                          \
        "'terminated': {'exitCode': " code ", 'startedAt': '2026-11-15T11:00:05Z', 'finishedAt': " \
        "'2026-11-15T11:20:00Z'" more "}"

#define FENCE(attempt, pod, seq, state) \
        "'attempt': '" attempt "', 'podUID': '" pod "', 'sequence': '" seq "', 'state': '" state "'"
#define MAP(data) "{'metadata': {'name': 'r-status', 'uid': 'uid-map', " OWNED "}, 'data': {" data "}}"

/* Documents within the ConfigMap are strings. */
static void status_map(struct rig *r, const char *fence, const char *status, const char *exit)
{
        struct json *map = parse(r, arena_printf(&r->arena, MAP("%s"), fence)), *data = json_at(map, "data");

        if (status)
                json_set(&r->arena, data, "status.json",
                         json_string(&r->arena,
                                     *status == '{' ? json_print(&r->arena, parse(r, status)) : status));
        if (exit)
                json_set(&r->arena, data, "exit.json",
                         json_string(&r->arena, json_print(&r->arena, parse(r, exit))));
        child_json(r, &KUBE_CONFIGMAP, map);
}

static void job(struct rig *r, const char *text)
{
        child(r, &KUBE_JOB, text);
}

static void pod(struct rig *r, const char *text)
{
        child(r, &KUBE_POD, text);
}

/* The server has what the cache has. */
static void server_agrees(struct rig *r)
{
        const struct object *map = view_child(&r->view, &KUBE_CONFIGMAP, "r-status");

        answer(r, &KUBE_CONFIGMAP, "r-status", map ? json_print(&r->arena, map->json) : NULL, NULL);
        answer(r, &KUBE_CONFIGMAP, "r-data", NULL, NULL);
}

/* The pods of the Job: one, or none. */
static void server_has(struct rig *r, const char *text)
{
        struct json *items = json_array(&r->arena);

        json_append(items, text ? parse(r, text) : NULL);
        *vec_push(&r->answers) = (struct answer){
                .want = {.kind = WANT_PODS, .uid = "uid-job"},
                .json = json_build(&r->arena, "{'items': %p}", (void *)items)};
        r->view.answers = r->answers.v;
        r->view.n_answers = r->answers.n;
}

static void see(struct rig *r, enum run_life life, const char *reason)
{
        assert_true(run_see(&r->view, &r->d, &r->names, &r->seen));
        if (r->seen.life != life || !streq(r->seen.reason, reason))
                fail_msg("life %d, reason %s: %s", r->seen.life, r->seen.reason, r->seen.sentence);
        if (r->seen.sentence) {
                assert_in_range(strlen(r->seen.sentence), 10, 500);
                assert_true(utf8_valid(r->seen.sentence, strlen(r->seen.sentence)));
        }
}

static void assert_says(const char *text, const char *words)
{
        if (!text || !strstr(text, words))
                fail_msg("'%s' does not say '%s'", text ? text : "(nothing)", words);
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

/* What lies in a volume that was used before. */
static void status_of_an_earlier_use(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "1", "Running"),
                   "{'phase': 'Complete', 'timestamp': '2026-11-14T10:00:00Z'}", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_false(r->seen.has_status);
        assert_string_equal(r->seen.problem_reason, "Outdated");
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
        assert_true(wanted(r, &KUBE_CONFIGMAP, "r-status") && wanted(r, &KUBE_CONFIGMAP, "r-data"));
        answer(r, &KUBE_CONFIGMAP, "r-status",
               MAP(FENCE("1", "uid-p", "9", "Succeeded") ", 'status.json': '{\\u0022phase\\u0022: "
                                                         "\\u0022Complete\\u0022}'"),
               NULL);
        answer(r, &KUBE_CONFIGMAP, "r-data",
               "{'metadata': {'name': 'r-data', 'uid': 'd', " OWNED "}, 'data': {'result.json': '{}'}}",
               NULL);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        assert_null(r->seen.problem);
        assert_string_equal(r->seen.status.phase, "Complete");
        assert_json(r, run_result(&r->view, &r->seen), "{}");
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

static void could_not_be_started(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "1", "Failed"), NULL, "{'error': 'no such file or directory'}");
        see(r, RUN_LIFE_FAILED, "WorkloadNotStarted");
        assert_says(r->seen.sentence, "no such file or directory");
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
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), NULL,
                   "{'code': 0, 'finishedAt': '2026-11-15T11:30:02Z'}");
        server_has(r, NULL);
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

static void the_cache_has_no_job_yet(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        answer(r, &KUBE_JOB, "r-run", "{'metadata': {'name': 'r-run', 'uid': 'uid-job', " OWNED "}}", NULL);
        assert_false(run_see(&r->view, &r->d, &r->names, &r->seen));
        assert_int_equal(r->d.n_wants, 0);
        assert_true(r->d.again_at > NOON);
}

/* ---- one pod after another */

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

/* Between the two: deleted in mid-run, and the Job has not made another yet. */
static void deleted_in_mid_run(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}",
                   "{'code': 0, 'told': true}");
        see(r, RUN_LIFE_WAITING, "Retrying"); /* told to end, it ended with 0: that is no success */
        assert_says(r->seen.sentence, "the pod was deleted");
}

/* Deleted when it had ended by itself: that is one. */
static void deleted_after_its_end(void **state)
{
        struct rig *r = *state;

        job(r, JOB("", ""));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}", "{'code': 0}");
        see(r, RUN_LIFE_SUCCEEDED, NULL);
}

static void deleted_with_its_job(void **state)
{
        struct rig *r = *state;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1}}");
        answer(r, &KUBE_JOB, "r-run", NULL, NULL);
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), "{'phase': 'DecodeSweep'}",
                   "{'code': 0, 'told': true}");
        see(r, RUN_LIFE_FAILED, "Interrupted");
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

/* ---- what the status says of it */

static struct json *progress(struct rig *r, const struct priors *priors)
{
        struct json *status = json_at(r->view.request, "status");

        status = status ? json_copy(&r->arena, status) : json_object(&r->arena);
        run_progress(&r->view, &r->d, &r->seen, priors, status);
        run_ready(&r->view, &r->d, &r->seen, status);
        return status;
}

static const char FULL[] =
        "{'phase': 'DecodeSweep', 'phaseNumber': 3, 'totalPhases': 7, 'message': 'Profiling', 'timestamp': "
        "'2026-11-15T11:50:00Z', 'startedAt': '2026-11-15T11:10:00Z', 'progress': {'currentStep': 5, "
        "'totalSteps': 12, 'subPhase': 'Deploying'}, 'gpuConfig': {'currentGpus': 4, 'parallelMapping': "
        "'TP=2'}}";

/* Puts the track of a run that has reported FULL at 11:50 into the ConfigMap that was added last. */
static void with_track(struct rig *r, usec_t when)
{
        struct json *data = json_at((struct json *)r->children.v[r->children.n - 1].json, "data");
        struct run_status s;
        struct track *t = arena_new(&r->arena, struct track);
        struct err err = ERR_INIT;

        assert_int_equal(run_status_parse(&r->arena, json_text(json_at(data, "status.json")), NOON, &s, &err),
                         0);
        track_event(t, &s, when);
        json_set(&r->arena, data, "track.json",
                 json_string(&r->arena, json_print(&r->arena, track_json(&r->arena, t))));
}

static void the_shape_of_progress(void **state)
{
        struct rig *r = *state;
        struct json *status, *p;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'startedAt': '2026-11-15T09:00:00Z'}}");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(r->seen.has_track);
        status = progress(r, NULL);
        p = json_at(status, "progress");
        assert_true(json_at(p, "percent") && json_at(p, "estimatedCompletion"));
        json_remove(p, "percent");
        json_remove(p, "estimatedCompletion");
        assert_json(
                r, p,
                "{'phase': 'DecodeSweep', 'phaseNumber': 3, 'totalPhases': 7, 'step': '5/12', 'currentStep': "
                "5, 'totalSteps': 12, 'subPhase': 'Deploying', 'message': 'Profiling', 'attempt': 1, "
                "'gpuConfig': {'currentGpus': 4, 'parallelMapping': 'TP=2'}, 'startedAt': "
                "'2026-11-15T09:00:00Z', 'updatedAt': '2026-11-15T11:50:00Z', 'job': 'r-run', 'pod': 'p', "
                "'podUID': 'uid-p'}");
        assert_condition(status, "Progressing", "True", "Running");
        assert_condition(status, "Reporting", "True", "Reported");
        assert_condition(status, "Ready", "False", "InProgress");
        assert_condition(status, "Stalled", "False", "InProgress");
        assert_true(r->d.again_at > NOON); /* when it counts as not moving */
}

/* Nothing in it changes with time alone, and the status is its own fixed point. */
static void the_same_again(void **state)
{
        struct rig *r = *state;
        struct json *first, *second;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        first = progress(r, NULL);
        request(r, json_print(&r->arena, first));
        r->view.now += 7 * USEC_PER_SEC;
        see(r, RUN_LIFE_RUNNING, NULL);
        second = progress(r, NULL);
        assert_true(json_equal(first, second));
        assert_int_equal(r->d.events.n, 0);
}

static void not_moving(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), FULL, NULL);
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_RUNNING, NULL);
        progress(r, NULL);
        r->view.now = r->d.again_at;
        r->d.again_at = 0;
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        assert_condition(status, "Progressing", "False", "NotMoving");
        assert_condition(status, "Stalled", "False", "InProgress"); /* is for failures */
        assert_int_equal(r->d.again_at, 0);
}

/* One event when it turns; the last good state stays. */
static void told_once(void **state)
{
        struct rig *r = *state;
        struct json *status;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'phase': 'PrefillSweep', 'percent': 12.5, "
                   "'updatedAt': '2026-11-15T11:40:00Z'}, 'conditions': [{'type': 'Reporting', 'status': "
                   "'True'}]}");
        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "4", "Running"), "[]", NULL);
        see(r, RUN_LIFE_RUNNING, NULL);
        status = progress(r, NULL);
        assert_condition(status, "Reporting", "False", "Malformed");
        assert_int_equal(r->d.events.n, 1);
        assert_int_equal(r->d.events.v[0].type, EVENT_WARNING);
        assert_string_equal(json_str(json_at(status, "progress"), "phase"), "PrefillSweep");
        assert_string_equal(json_print(&r->arena, json_at(json_at(status, "progress"), "percent")), "12.5");
        request(r, json_print(&r->arena, status));
        see(r, RUN_LIFE_RUNNING, NULL);
        assert_true(json_equal(progress(r, NULL), status));
        assert_int_equal(r->d.events.n, 1);
}

/* The second attempt begins anew, but the run began when it began. */
static void started_at_survives(void **state)
{
        struct rig *r = *state;
        const struct json *p;

        request(r, "{'progress': {'job': 'r-run', 'attempt': 1, 'phase': 'DecodeSweep', 'percent': 60, "
                   "'startedAt': '2026-11-15T09:00:00Z', 'pod': 'p'}}");
        job(r, JOB("", ""));
        pod(r, "{" POD_META("q", "2026-11-15T11:59:00Z") ", " POD_SPEC
                                                         ", 'status': {'phase': 'Running', " STATES(
                                                                 RUNNING, RUNNING) "}}");
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), "{'phase': 'DecodeSweep'}", "{'signal': 15}");
        see(r, RUN_LIFE_RUNNING, NULL);
        p = json_at(progress(r, NULL), "progress");
        assert_json(r, p,
                    "{'attempt': 2, 'startedAt': '2026-11-15T09:00:00Z', 'job': 'r-run', 'pod': 'q', "
                    "'podUID': 'uid-q'}");
}

static void the_end_of_progress(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Succeeded"), FULL, "{'code': 0}"); /* never said Complete */
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        status = progress(r, NULL);
        assert_int_equal(json_int(json_at(status, "progress"), "percent", 0), 100);
        assert_null(json_at(json_at(status, "progress"), "estimatedCompletion"));
        assert_condition(status, "Ready", "True", "Succeeded");
        assert_condition(status, "Progressing", "False", "Succeeded");
        assert_int_equal(r->d.again_at, 0);
        assert_int_equal(r->d.events.n, 1);
}

static void a_failure_in_all_conditions(void **state)
{
        struct rig *r = *state;
        struct json *status;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("1", "uid-p", "9", "Failed"), NULL, "{'code': 3}");
        see(r, RUN_LIFE_FAILED, "WorkloadFailed");
        status = progress(r, NULL);
        assert_condition(status, "Ready", "False", "WorkloadFailed");
        assert_condition(status, "Stalled", "True", "WorkloadFailed");
        assert_condition(status, "Progressing", "False", "WorkloadFailed");
        assert_int_equal(r->d.events.n, 1);
}

/* ---- what came out */

static void results(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf packed = BUF_INIT(1000), text = BUF_INIT(1000);
        struct err err = ERR_INIT;

        assert_null(run_result(&r->view, &r->seen));
        child(r, &KUBE_CONFIGMAP,
              "{'metadata': {'name': 'r-data', 'uid': 'd'}, 'data': {'result.json': '{\\u0022a\\u0022: "
              "1}'}}");
        r->seen.data_map = &r->children.v[0];
        assert_json(r, run_result(&r->view, &r->seen), "{'a': 1}");

        assert_int_equal(gzip_add(&packed, STR("{\"b\": 2}"), &err), 0);
        buf_add_base64(&text, buf_str(&packed));
        child(r, &KUBE_CONFIGMAP,
              arena_printf(&r->arena,
                           "{'metadata': {'name': 'r-data', 'uid': 'd'}, 'binaryData': {'result.json.gz': "
                           "'%s'}}",
                           buf_cstr(&text)));
        r->seen.data_map = &r->children.v[1];
        assert_json(r, run_result(&r->view, &r->seen), "{'b': 2}");

        child(r, &KUBE_CONFIGMAP,
              "{'metadata': {'name': 'r-data', 'uid': 'd'}, 'data': {'result.json': '{'}}");
        r->seen.data_map = &r->children.v[2];
        assert_null(run_result(&r->view, &r->seen));
}

static void the_row(void **state)
{
        struct rig *r = *state;
        const struct history_row *row;

        job(r, JOB("", ""));
        pod(r, POD("'phase': 'Running', " STATES(RUNNING, RUNNING)));
        status_map(r, FENCE("2", "uid-p", "9", "Succeeded"), FULL,
                   "{'code': 0, 'startedAt': '2026-11-15T11:01:00Z', 'finishedAt': '2026-11-15T11:55:00Z'}");
        with_track(r, NOON - 600 * USEC_PER_SEC);
        see(r, RUN_LIFE_SUCCEEDED, NULL);
        row = run_row(&r->view, &r->seen, "shape");
        assert_string_equal(row->uid, "uid-r");
        assert_string_equal(row->kind, "TestRun");
        assert_string_equal(row->ns, "ns");
        assert_string_equal(row->name, "r");
        assert_string_equal(row->shape, "shape");
        assert_string_equal(row->outcome, "Succeeded");
        assert_int_equal(row->attempt, 2);
        assert_int_equal(row->started, NOON - 59 * 60 * USEC_PER_SEC);
        assert_int_equal(row->finished, NOON - 5 * 60 * USEC_PER_SEC);
        assert_non_null(row->track);
}

static void priors(void **state)
{
        struct rig *r = *state;
        const struct priors known = {.n = 1}, *p = &known;

        assert_true(run_priors(&r->view, &r->d, NULL, &p));
        assert_null(p);
        assert_false(run_priors(&r->view, &r->d, "s", &p));
        assert_int_equal(r->d.wants[0].kind, WANT_PRIORS);
        *vec_push(&r->answers) = (struct answer){.want = r->d.wants[0], .priors = &known};
        r->view.answers = r->answers.v;
        r->view.n_answers = 1;
        assert_true(run_priors(&r->view, &r->d, "s", &p));
        assert_ptr_equal(p, &known);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(no_job),
        T(job_without_pod),
        T(unschedulable),
        T(images_and_configurations),
        T(being_prepared_is_nothing_special),
        T(stage_fails),
        T(running_without_status),
        T(running_with_status),
        T(the_relay_is_faster_than_the_kubelet),
        T(only_the_end_ends),
        T(malformed_status),
        T(malformed_fence),
        T(what_the_relay_refuses),
        T(a_strangers_map),
        T(status_of_an_earlier_use),
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
        T(reported_failure_with_exit_0),
        T(out_of_memory),
        T(could_not_be_started),
        T(evicted),
        T(deadline),
        T(success_before_the_deadline),
        T(ended_by_the_deadline),
        T(job_deleted),
        T(job_deleted_after_the_end),
        T(the_cache_has_no_job_yet),
        T(retries),
        T(the_second_pod),
        T(the_second_pod_has_taken_over),
        T(deleted_in_mid_run),
        T(deleted_after_its_end),
        T(deleted_with_its_job),
        T(interrupted_without_a_record),
        T(being_deleted),
        T(the_shape_of_progress),
        T(the_same_again),
        T(not_moving),
        T(told_once),
        T(started_at_survives),
        T(the_end_of_progress),
        T(a_failure_in_all_conditions),
        T(results),
        T(the_row),
        T(priors),
};

UNIT_MAIN(tests)
