/*
 * The execution Job of a CUDAExperiment: what it is, where it may run, and what has become of it.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- what it is */

static const struct json *job_for(struct rig *r, const char *spec)
{
        const struct run_controls controls = {.priority_class = "high"};
        const struct cuda_placement place = {.affinity = parse(r, "{'nodeAffinity': {}}")};
        struct cuda_spec s;

        experiment(r, spec, NULL);
        s = spec_of(r);
        decision_done(&r->d);
        cuda_execution_plan(&r->view, &r->d, &s, &controls, "r-execution", &place);
        return planned(r, &KUBE_JOB, "r-execution");
}

static const struct json *pod_of(const struct json *job)
{
        return json_path(job, "spec.template.spec");
}

static void it_is_the_workload_as_the_spec_has_it(void **state)
{
        struct rig *r = *state;
        const struct json *job;

        job = job_for(r,
                      "'image': 'i', 'command': ['/a', '-x'], 'arguments': ['y'], 'gpuRequired': 2, 'env': "
                      "[{'name': 'A', 'value': 'b'}], 'volumes': [{'name': 'd', 'mountPath': '/d', "
                      "'emptyDir': {}}], 'resources': {'limits': {'memory': '1Gi'}}");
        assert_json(
                r, pod_of(job),
                "{'restartPolicy': 'Never', 'runtimeClassName': 'nvidia', 'priorityClassName': 'high', "
                "'affinity': {'nodeAffinity': {}}, 'volumes': [{'name': 'd', 'emptyDir': {}}], 'containers': "
                "[{'name': 'execution', 'image': 'i', 'command': ['/a', '-x'], 'args': ['y'], 'env': "
                "[{'name': 'A', 'value': 'b'}], 'resources': {'limits': {'memory': '1Gi', "
                "'nvidia.com/gpu': '2'}}, 'volumeMounts': [{'name': 'd', 'mountPath': '/d'}]}]}");
        assert_int_equal(r->d.exist.n, 1);
        assert_int_equal(r->d.exist.v[0].how, EXIST_ONCE);
}

static void replicas_run_at_once_and_none_is_tried_again(void **state)
{
        struct rig *r = *state;
        const struct json *spec = json_at(job_for(r, "'image': 'i', 'replicas': 3"), "spec");

        assert_int_equal(json_int(spec, "parallelism", 0), 3);
        assert_int_equal(json_int(spec, "completions", 0), 3);
        assert_int_equal(json_int(spec, "backoffLimit", -1), 0);
}

static void labels_are_upstreams(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i'");
        static const char three[] = "{'app.kubernetes.io/name': 'kratos', 'app.kubernetes.io/managed-by': "
                                    "'kratos-controller', 'gpu.scheduler.io/experiment': 'r'}";

        assert_json(r, json_path(job, "metadata.labels"), three);
        assert_json(r, json_path(job, "spec.template.metadata.labels"), three);
        assert_null(json_path(job, "spec.template.metadata.annotations"));
}

static void volcano_gets_scheduler_queue_and_group(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i', 'replicas': 2, 'gpuRequired': 4, 'placement': "
                                            "{'mode': 'volcano', 'queue': 'q'}");

        assert_string_equal(json_str(pod_of(job), "schedulerName"), "volcano");
        assert_json(
                r, json_path(job, "spec.template.metadata.annotations"),
                "{'scheduling.k8s.io/group-name': 'r-execution', 'scheduling.volcano.sh/queue-name': 'q'}");
        assert_json(r, json_at(planned(r, &CUDA_PODGROUP, "r-execution"), "spec"),
                    "{'minMember': 2, 'queue': 'q', 'priorityClassName': 'high', 'minResources': "
                    "{'nvidia.com/gpu': '8'}}");
        assert_ptr_equal(r->d.exist.v[0].type, &CUDA_PODGROUP); /* it comes first */
}

static void volcanos_default_queue_needs_no_name(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i', 'placement': {'mode': 'volcano'}");

        assert_json(r, json_path(job, "spec.template.metadata.annotations"),
                    "{'scheduling.k8s.io/group-name': 'r-execution'}");
        assert_null(json_path(planned(r, &CUDA_PODGROUP, "r-execution"), "spec.queue"));
}

static void kueue_gets_its_label(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i', 'placement': {'mode': 'kueue', 'queue': 'q'}");

        assert_string_equal(json_str(json_path(job, "metadata.labels"), "kueue.x-k8s.io/queue-name"), "q");
        assert_null(json_str(pod_of(job), "schedulerName"));
        assert_int_equal(r->d.exist.n, 1);
}

static void a_strangers_name_is_avoided(void **state)
{
        struct rig *r = *state;
        const char *name;

        experiment(r, "'image': 'i'", NULL);
        assert_null(cuda_execution_name(&r->view, &r->d));
        answer(r, &KUBE_JOB, "r-execution", NULL, NULL);
        assert_string_equal(cuda_execution_name(&r->view, &r->d), "r-execution");
        server_forgets(r);
        answer(r, &KUBE_JOB, "r-execution", "{'metadata': {'name': 'r-execution', " OTHERS "}}", NULL);
        name = cuda_execution_name(&r->view, &r->d);
        assert_true(str_has_prefix(str_of(name), STR("r-execution-")));
        server_forgets(r);
        answer(r, &KUBE_JOB, "r-execution", NULL, "no route");
        assert_null(cuda_execution_name(&r->view, &r->d));
        assert_true(r->d.again_at > NOON);
}

/* ---- where it may run */

#define NODE(name, product)                                                                \
        "{'metadata': {'name': '" name "', 'labels': {'nvidia.com/gpu.product': '" product \
        "', 'kubernetes.io/hostname': '" name "'}}, 'status': {'allocatable': {'nvidia.com/gpu': '8'}}}"
#define NODES "{'items': [" NODE("n-t4", "Tesla-T4") ", " NODE("n-h100", "NVIDIA-H100-80GB-HBM3") "]}"
#define EXPORTER(node, ip, phase, ready, ports)                                                          \
        "{'metadata': {'name': 'e-" node "'}, 'spec': {'nodeName': '" node "', 'containers': [{'name': " \
        "'e', 'ports': [" ports "]}]}, 'status': {'phase': '" phase "', 'podIP': '" ip                   \
        "', 'conditions': [{'type': 'Ready', 'status': '" ready "'}]}}"

static bool place(struct rig *r, const char *spec, const char *bound, struct cuda_placement *ret)
{
        struct cuda_spec s;

        experiment(r, spec, NULL);
        s = spec_of(r);
        decision_done(&r->d);
        return cuda_place(&r->view, &r->d, &s, bound, ret);
}

static const struct json *preferred(const struct cuda_placement *p)
{
        return json_path(p->affinity, "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution");
}

static void nodes_are_looked_at_then_their_exporters(void **state)
{
        struct rig *r = *state;
        struct cuda_placement p;
        struct answer *a;

        assert_false(place(r, "'image': 'i'", "compute-bound", &p));
        assert_true(wants(r, WANT_LIST, "nvidia.com/gpu.product"));
        assert_ptr_equal(r->d.wants[0].type, &KUBE_NODE);
        told(r, WANT_LIST, &KUBE_NODE, "nvidia.com/gpu.product", NODES);
        assert_false(place(r, "'image': 'i'", "compute-bound", &p));
        assert_true(wants(r, WANT_ALL, "app=nvidia-dcgm-exporter"));
        told(r, WANT_ALL, &KUBE_POD, "app=nvidia-dcgm-exporter",
             "{'items': [" EXPORTER("n-h100", "10.0.0.7", "Running", "True",
                                    "{'name': 'x', 'containerPort': 1}, {'name': 'metrics', 'containerPort': "
                                    "9401}") ", " EXPORTER("n-t4", "fd00::1", "Running", "True", "") "]}");
        assert_false(place(r, "'image': 'i'", "compute-bound", &p));
        assert_int_equal(r->d.n_wants, 2);
        assert_true(wants(r, WANT_SCRAPE, "http://10.0.0.7:9401/metrics"));
        assert_true(wants(r, WANT_SCRAPE, "http://[fd00::1]:9400/metrics"));
        a = told(r, WANT_SCRAPE, NULL, "http://10.0.0.7:9401/metrics", NULL);
        a->text = STR("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 100\n");
        a = told(r, WANT_SCRAPE, NULL, "http://[fd00::1]:9400/metrics", NULL);
        a->error = "refused";
        assert_true(place(r, "'image': 'i'", "compute-bound", &p));
        assert_true(json_len(preferred(&p)) > 0);
        assert_non_null(p.hint);
        assert_non_null(p.reason);
        assert_non_null(strstr(json_print(&r->arena, p.hint), "\"busy\":100"));
}

static void an_exporter_that_is_not_ready_is_not_asked(void **state)
{
        struct rig *r = *state;
        struct cuda_placement p;

        told(r, WANT_LIST, &KUBE_NODE, "nvidia.com/gpu.product", NODES);
        told(r, WANT_ALL, &KUBE_POD, "app=nvidia-dcgm-exporter",
             "{'items': [" EXPORTER("n-h100", "10.0.0.7", "Running", "False", "") ", " EXPORTER(
                     "n-t4", "10.0.0.8", "Pending", "True", "") ", " EXPORTER("n-t4", "", "Running", "True",
                                                                              "") "]}");
        assert_true(place(r, "'image': 'i'", "memory-bound", &p));
        assert_non_null(preferred(&p));
}

/* Whoever may run a pod with that label could speak for the node. */
static void of_two_namespaces_none_is_believed(void **state)
{
        struct rig *r = *state;
        struct cuda_placement p;

        told(r, WANT_LIST, &KUBE_NODE, "nvidia.com/gpu.product", NODES);
        told(r, WANT_ALL, &KUBE_POD, "app=nvidia-dcgm-exporter",
             "{'items': [{'metadata': {'namespace': 'a'}, 'spec': {'nodeName': 'n-h100'}, 'status': "
             "{'phase': "
             "'Running', 'podIP': '10.0.0.7', 'conditions': [{'type': 'Ready', 'status': 'True'}]}}, "
             "{'metadata': {'namespace': 'b'}, 'spec': {'nodeName': 'n-h100'}, 'status': {'phase': "
             "'Running', 'podIP': '10.0.0.8', 'conditions': [{'type': 'Ready', 'status': 'True'}]}}]}");
        assert_true(place(r, "'image': 'i'", "memory-bound", &p));
        assert_non_null(preferred(&p));
}

static void without_nodes_or_grants_nothing_is_preferred(void **state)
{
        static const char *const errors[] = {NULL, "forbidden"}, *const reasons[] = {"no node says",
                                                                                     "forbidden"};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
                struct cuda_placement p;
                struct answer *a;

                server_forgets(r);
                a = told(r, WANT_LIST, &KUBE_NODE, "nvidia.com/gpu.product",
                         errors[i] ? NULL : "{'items': []}");
                a->error = errors[i];
                assert_true(place(r, "'image': 'i', 'minimumMemory': '40Gi'", NULL, &p));
                assert_null(preferred(&p));
                assert_non_null(p.affinity); /* what is demanded counts all the same */
                assert_null(p.hint);
                assert_says(p.reason, reasons[i]);
        }
}

static void mode_none_asks_nobody(void **state)
{
        struct rig *r = *state;
        struct cuda_placement p;

        assert_true(place(r, "'image': 'i', 'placement': {'mode': 'none'}", "mixed", &p));
        assert_null(p.affinity);
        assert_null(p.reason);
}

static void nodes_that_may_not_be_listed_are_not(void **state)
{
        const struct cuda_settings settings = {
                .pod_image = "sonde-pod", .runner_image = "runner", .no_nodes = true};
        struct rig *r = *state;
        struct cuda_placement p;
        struct cuda_spec s;

        experiment(r, "'image': 'i', 'minimumMemory': '40Gi'", NULL);
        r->view.settings = &settings;
        s = spec_of(r);
        decision_done(&r->d);
        assert_true(cuda_place(&r->view, &r->d, &s, "mixed", &p));
        assert_null(preferred(&p));
        assert_non_null(p.affinity);
        assert_says(p.reason, "--no-nodes");
        r->view.settings = &SETTINGS;
}

/* ---- what has become of it */

#define EXECUTION(status)                                                              \
        "{'metadata': {'name': 'r-execution', 'uid': 'uid-job', 'creationTimestamp': " \
        "'2026-11-15T11:00:00Z', 'annotations': {'sonde.dev/spec-hash': 'h'}, " OWNED  \
        "}, 'status': {" status "}}"
#define A_POD(name, status)                                                                        \
        "{'metadata': {'name': '" name "', 'uid': 'uid-" name "', 'creationTimestamp': "           \
        "'2026-11-15T11:00:01Z', " BY_JOB "}, 'spec': {'nodeName': 'n1', 'containers': [{'name': " \
        "'execution', 'resources': {'limits': {'memory': '1Gi'}}}]}, 'status': {" status "}}"
#define POD_STATE(phase, state) \
        "'phase': '" phase "', 'containerStatuses': [{'name': 'execution', 'state': {" state "}}]"

static struct cuda_execution_seen seen(struct rig *r, bool made, enum cuda_execution wanted_state)
{
        struct cuda_execution_seen s;

        decision_done(&r->d);
        assert_true(cuda_execution_see(&r->view, &r->d, "r-execution", made, &s));
        if (s.state != wanted_state)
                fail_msg("state %d: %s", s.state, s.sentence ? s.sentence : "");
        return s;
}

static void begin(struct rig *r, const char *job, const char *pod_text)
{
        experiment(r, "'image': 'i'", NULL);
        server_forgets(r);
        children_go(r);
        child(r, &KUBE_JOB, job);
        if (pod_text)
                child(r, &KUBE_POD, pod_text);
}

static void one_that_was_not_made_yet_is_none(void **state)
{
        struct rig *r = *state;

        experiment(r, "'image': 'i'", NULL);
        seen(r, false, EXECUTION_NONE);
}

static void one_that_is_gone_is_looked_for(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;

        experiment(r, "'image': 'i'", NULL);
        assert_false(cuda_execution_see(&r->view, &r->d, "r-execution", true, &s));
        assert_true(wanted(r, &KUBE_JOB, "r-execution"));
        answer(r, &KUBE_JOB, "r-execution", NULL, NULL);
        seen(r, true, EXECUTION_GONE);
        server_forgets(r);
        answer(r, &KUBE_JOB, "r-execution", "{'metadata': {'name': 'r-execution', " OTHERS "}}", NULL);
        seen(r, true, EXECUTION_GONE);
}

static void one_out_of_sight_is_polled(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;

        experiment(r, "'image': 'i'", NULL);
        answer(r, &KUBE_JOB, "r-execution", EXECUTION("'active': 1"), NULL);
        assert_false(cuda_execution_see(&r->view, &r->d, "r-execution", true, &s));
        server_has(r, A_POD("p", "'phase': 'Running', 'containerStatuses': [{'name': 'execution', 'state': "
                                 "{'running': {}}}]"));
        seen(r, true, EXECUTION_RUNNING);
        assert_true(r->d.again_at > NOON);
}

static void counts_and_times_are_the_jobs(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;

        begin(r,
              EXECUTION("'succeeded': 2, 'failed': 0, 'startTime': '2026-11-15T11:00:00Z', "
                        "'completionTime': '2026-11-15T11:30:00Z', " JOB_COMPLETE),
              NULL);
        s = seen(r, true, EXECUTION_SUCCEEDED);
        assert_json(r, s.status,
                    "{'succeeded': 2, 'failed': 0, 'startTime': '2026-11-15T11:00:00Z', 'completionTime': "
                    "'2026-11-15T11:30:00Z', 'specHash': 'h'}");
}

static void a_failure_has_the_time_of_its_condition(void **state)
{
        struct rig *r = *state;

        begin(r, EXECUTION("'failed': 1, 'startTime': 'soon', " JOB_FAILED("BackoffLimitExceeded")),
              A_POD("p", POD_STATE("Failed", ENDED("3", ""))));
        assert_json(r, seen(r, true, EXECUTION_FAILED).status,
                    "{'succeeded': 0, 'failed': 1, 'completionTime': '2026-11-15T11:30:00Z', 'message': 'the "
                    "program exited with status 3; see kubectl logs p', 'specHash': 'h'}");
}

static void failures_are_explained_by_the_pod(void **state)
{
        static const struct {
                const char *pod, *reason, *words;
        } cases[] = {
                {A_POD("p", POD_STATE("Failed", ENDED("3", ", 'message': 'no device'"))), "WorkloadFailed",
                 "status 3: no device"},
                {A_POD("p", POD_STATE("Failed", ENDED("137", ", 'reason': 'OOMKilled'"))), "OutOfMemory",
                 "limit 1Gi"},
                {A_POD("p", POD_STATE("Failed", ENDED("128", ", 'reason': 'StartError', 'message': 'exec: "
                                                             "/a: not found'"))),
                 "WorkloadNotStarted", "exec: /a: not found"},
                {A_POD("p", "'phase': 'Failed', 'reason': 'Evicted', 'message': 'low on memory'"), "Evicted",
                 "node n1 ended pod p: Evicted: low on memory"},
                {A_POD("p", "'phase': 'Failed', 'reason': 'Not A Word'"), "PodFailed", "Not A Word"},
                {A_POD("p",
                       "'phase': 'Failed', 'conditions': [{'type': 'DisruptionTarget', 'status': 'True', "
                       "'reason': 'PreemptionByScheduler', 'message': 'made way'}]"),
                 "PreemptionByScheduler", "taken from node n1: made way"},
                {A_POD("p", "'phase': 'Failed'"), "PodFailed", "does not say why"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct cuda_execution_seen s;

                begin(r, EXECUTION(JOB_FAILED("BackoffLimitExceeded")), cases[i].pod);
                s = seen(r, true, EXECUTION_FAILED);
                assert_string_equal(s.reason, cases[i].reason);
                assert_says(s.sentence, cases[i].words);
        }
}

/* Jobs and pods come by different watches. */
static void a_failure_that_no_pod_shows_is_looked_up(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;

        begin(r, EXECUTION(JOB_FAILED("BackoffLimitExceeded")), A_POD("p", POD_STATE("Running", RUNNING)));
        assert_false(cuda_execution_see(&r->view, &r->d, "r-execution", true, &s));
        server_has(r, A_POD("p", "'phase': 'Failed', 'containerStatuses': [{'name': 'execution', 'state': "
                                 "{'terminated': {'exitCode': 9}}}]"));
        s = seen(r, true, EXECUTION_FAILED);
        assert_says(s.sentence, "status 9");
        begin(r, EXECUTION(JOB_FAILED("BackoffLimitExceeded")), NULL);
        server_has(r, NULL);
        s = seen(r, true, EXECUTION_FAILED);
        assert_string_equal(s.reason, "JobFailed");
        assert_says(s.sentence, "it failed");
}

static void waits_are_explained(void **state)
{
        static const struct {
                const char *job, *pod, *reason, *words;
        } cases[] = {
                {EXECUTION(""),
                 A_POD("p", "'phase': 'Pending', 'conditions': [{'type': 'PodScheduled', 'status': 'False', "
                            "'message': '0/4 nodes have nvidia.com/gpu'}]"),
                 "Unschedulable", "0/4 nodes"},
                {EXECUTION(""),
                 A_POD("p", POD_STATE("Pending", "'waiting': {'reason': 'ImagePullBackOff', 'message': 'no "
                                                 "such image'}")),
                 "ImagePullFailed", "no such image"},
                {EXECUTION("'conditions': [{'type': 'Suspended', 'status': 'True'}]"), NULL, "Queued",
                 "queue"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct cuda_execution_seen s;

                begin(r, cases[i].job, cases[i].pod);
                s = seen(r, true, EXECUTION_WAITING);
                assert_string_equal(s.reason, cases[i].reason);
                assert_says(s.sentence, cases[i].words);
                assert_string_equal(json_str(s.status, "message"), s.sentence);
        }
}

static void a_pod_that_is_refused_is_told(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;
        struct answer *a;

        begin(r, EXECUTION(""), NULL);
        assert_false(cuda_execution_see(&r->view, &r->d, "r-execution", true, &s));
        a = told(r, WANT_EVENTS, &KUBE_JOB, "r-execution",
                 "{'items': [{'reason': 'FailedCreate', 'note': 'exceeded quota'}]}");
        a->want.uid = "uid-job";
        s = seen(r, true, EXECUTION_WAITING);
        assert_string_equal(s.reason, "PodNotCreated");
        assert_says(s.sentence, "exceeded quota");
}

static void of_several_pods_one_that_runs_counts(void **state)
{
        struct rig *r = *state;
        struct cuda_execution_seen s;

        begin(r, EXECUTION(""), A_POD("p", POD_STATE("Running", RUNNING)));
        child(r, &KUBE_POD,
              A_POD("q", "'phase': 'Pending', 'conditions': [{'type': 'PodScheduled', 'status': 'False', "
                         "'message': 'no node'}]"));
        s = seen(r, true, EXECUTION_RUNNING);
        assert_says(json_str(s.status, "message"), "no node");
}

/* Its pods end because they are told to. */
static void one_that_is_deleted_has_not_failed(void **state)
{
        static const char failed[] =
                "{'metadata': {'name': 'r-execution', 'uid': 'uid-job', 'deletionTimestamp': "
                "'2026-11-15T11:30:00Z', " OWNED "}, 'status': {'conditions': [{'type': 'Failed', 'status': "
                "'True', 'lastTransitionTime': '%s'}]}}";
        struct rig *r = *state;
        struct cuda_execution_seen s;

        begin(r, arena_printf(&r->arena, failed, "2026-11-15T11:30:00Z"), NULL);
        s = seen(r, true, EXECUTION_WAITING);
        assert_string_equal(s.reason, "Deleting");
        begin(r, arena_printf(&r->arena, failed, "2026-11-15T11:29:59Z"),
              A_POD("p", POD_STATE("Failed", ENDED("3", ""))));
        seen(r, true, EXECUTION_FAILED);
}

static void what_has_finished_is_not_removed(void **state)
{
        struct rig *r = *state;

        begin(r, EXECUTION(""), NULL);
        cuda_execution_remove(&r->view, &r->d, "r-execution");
        assert_true(wanted(r, &KUBE_JOB, "r-execution")); /* the cache may be behind */
        assert_int_equal(r->d.absent.n, 0);
        decision_done(&r->d);
        answer(r, &KUBE_JOB, "r-execution", EXECUTION(JOB_COMPLETE), NULL);
        cuda_execution_remove(&r->view, &r->d, "r-execution");
        assert_int_equal(r->d.absent.n, 0);
        decision_done(&r->d);
        begin(r, EXECUTION(""), NULL);
        answer(r, &KUBE_JOB, "r-execution", EXECUTION(""), NULL);
        child(r, &CUDA_PODGROUP, "{'metadata': {'name': 'r-execution', 'uid': 'uid-group', " OWNED "}}");
        cuda_execution_remove(&r->view, &r->d, "r-execution");
        assert_int_equal(r->d.absent.n, 2);
        assert_string_equal(r->d.absent.v[0].propagation, "Foreground");
        decision_done(&r->d);
        begin(r, EXECUTION(JOB_COMPLETE), NULL);
        cuda_execution_remove(&r->view, &r->d, "r-execution");
        assert_int_equal(r->d.absent.n, 0);
}

static const struct CMUnitTest tests[] = {
        TEST(it_is_the_workload_as_the_spec_has_it),
        TEST(replicas_run_at_once_and_none_is_tried_again),
        TEST(labels_are_upstreams),
        TEST(volcano_gets_scheduler_queue_and_group),
        TEST(volcanos_default_queue_needs_no_name),
        TEST(kueue_gets_its_label),
        TEST(a_strangers_name_is_avoided),
        TEST(nodes_are_looked_at_then_their_exporters),
        TEST(an_exporter_that_is_not_ready_is_not_asked),
        TEST(of_two_namespaces_none_is_believed),
        TEST(without_nodes_or_grants_nothing_is_preferred),
        TEST(mode_none_asks_nobody),
        TEST(nodes_that_may_not_be_listed_are_not),
        TEST(one_that_was_not_made_yet_is_none),
        TEST(one_that_is_gone_is_looked_for),
        TEST(one_out_of_sight_is_polled),
        TEST(counts_and_times_are_the_jobs),
        TEST(a_failure_has_the_time_of_its_condition),
        TEST(failures_are_explained_by_the_pod),
        TEST(a_failure_that_no_pod_shows_is_looked_up),
        TEST(waits_are_explained),
        TEST(a_pod_that_is_refused_is_told),
        TEST(of_several_pods_one_that_runs_counts),
        TEST(one_that_is_deleted_has_not_failed),
        TEST(what_has_finished_is_not_removed),
};

UNIT_MAIN(tests)
