/*
 * The Job of an AlgorithmProfiling and an AlgorithmComparison, and what the probe is told.
 */
#include "unit/algorithm_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define RUN        "'observedGeneration': 1, 'run': {'attempt': 1, 'job': 'dprofiler-r', 'retries': 0}"
#define Q          "'algorithmName': 'quick_sort', 'inputSize': 10"

/* The Job for a request with this spec whose first attempt is to be made; NULL: none. */
static const struct json *planned_job(struct rig *r)
{
        decision_done(&r->d);
        algorithm_plan(&r->view, &r->d);
        return planned(r, &KUBE_JOB, "dprofiler-r");
}

static const struct json *job_for(struct rig *r, const struct kube_type *type, const char *spec)
{
        request_of(r, type, spec, RUN);
        return planned_job(r);
}

static const struct json *pod_of(const struct json *job)
{
        return json_path(job, "spec.template.spec");
}

static const struct json *container_of(const struct json *job, const char *name)
{
        return json_find_named(json_at(pod_of(job), "containers"), name);
}

/* The last word of the workload's command: the plan, with `$` as the kubelet leaves it. */
static const struct json *plan_of(struct rig *r, const struct json *job)
{
        const struct json *command = json_at(json_first(json_at(pod_of(job), "containers")), "command");
        const char *text = json_cstr(json_index(command, json_len(command) - 1));
        char *plain = arena_strdup(&r->arena, text), *p = plain;

        for (const char *q = text; *q; q++) {
                if (q[0] == '$' && q[1] == '$')
                        q++;
                *p++ = *q;
        }
        *p = '\0';
        return json_parse(&r->arena, str_of(plain), NULL, NULL);
}

static void one_group_is_one_container(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, &ALGORITHMPROFILING, Q ", 'resources': {'limits': {'cpu': '2'}}");
        const struct json *c = container_of(job, "algorithm");

        assert_int_equal(json_len(json_at(pod_of(job), "containers")), 2);
        assert_string_equal(json_str(c, "image"), "sonde-pod");
        assert_json(r, json_at(c, "resources"), "{'limits': {'cpu': '2'}}");
        assert_string_equal(json_cstr(json_index(json_at(c, "command"), 0)), "/sonde/sonde-pod");
        assert_string_equal(json_cstr(json_index(json_at(c, "command"), 3)), "/sonde/sonde-pod");
        assert_string_equal(json_cstr(json_index(json_at(c, "command"), 4)), "probe");
        assert_string_equal(json_cstr(json_index(json_at(c, "command"), 5)), "--plan");
        assert_non_null(planned(r, &KUBE_CONFIGMAP, "r-run-status"));
        assert_non_null(planned(r, &KUBE_CONFIGMAP, "r-run-results"));
        assert_int_equal(json_int(json_at(job, "spec"), "backoffLimit", -1), 0);
        assert_says(json_print(&r->arena, container_of(job, "relay")), "samples.json");
}

static void the_plan_of_a_profiling(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, &ALGORITHMPROFILING,
                                         Q ", 'parameters': {'pivot_strategy': 'median'}, 'iterations': 5, "
                                           "'inputSizes': [30, 20], 'seed': 7, "
                                           "'pods': 2, 'runTimeout': '90s', 'price': {'perRun': 1, "
                                           "'currency': 'EUR'}, 'resources': {'requests': "
                                           "{'cpu': '500m'}, 'limits': {'memory': '1Gi'}}");

        assert_json(
                r, plan_of(r, job),
                "{'seed': 7, 'uid': 'uid-r', 'iterations': 5, 'warmup': 1, 'pods': 2, 'sizes': [10, 20, 30], "
                "'parallel': false, 'minEffect': 0.02, 'price': {'perRun': 1, 'currency': 'EUR'}, "
                "'runTimeout': 90, "
                "'algorithms': [{'name': 'quick_sort', 'type': 'sorting', 'command': ['/sonde/sonde-pod', "
                "'algorithm', 'quick_sort', '--parameters', '{\\\"pivot_strategy\\\":\\\"median\\\"}'], "
                "'group': 0, "
                "'image': 'sonde-pod', 'requests': {'cpu': 0.5, 'memory': 1073741824}}]}");
}

static void the_probe_understands_the_plan(void **state)
{
        static const char *const specs[] = {
                Q,
                "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, 'mlConfig': {'framework': "
                "'ray'}",
                "'algorithmName': 'c', 'algorithmType': 'custom', 'inputSize': 10, 'customConfig': {'image': "
                "'i', "
                "'command': ['c', '$(HOME)', '\\\"'], 'env': [{'name': 'A', 'value': '$$'}]}, 'parameters': "
                "{'a': '$'}",
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                struct session_plan plan;
                struct err err = ERR_INIT;
                const char *text;

                text = json_print(&r->arena, plan_of(r, job_for(r, &ALGORITHMPROFILING, specs[i])));
                if (session_plan_parse(&r->arena, str_of(text), &plan, &err) < 0)
                        fail_msg("%s: %s", text, err.text);
                assert_int_equal(plan.n, 1);
                assert_int_equal(plan.groups, 1);
        }
}

static void an_ml_algorithm_runs_in_its_image(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(
                r, &ALGORITHMPROFILING,
                "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, 'mlConfig': "
                "{'framework': 'ray', 'task': 'distributed_training', 'datasetSize': 9, "
                "'nFeatures': 150, 'algorithm': 'svm'}, 'parameters': {'C': 1}");
        const struct json *entry = json_first(json_at(plan_of(r, job), "algorithms"));
        const struct json *command = json_at(entry, "command");

        assert_string_equal(json_str(container_of(job, "algorithm"), "image"), "sonde-ml");
        assert_string_equal(json_str(container_of(job, "algorithm"), "imagePullPolicy"), "IfNotPresent");
        assert_string_equal(json_str(entry, "framework"), "ray");
        assert_string_equal(json_cstr(json_index(command, 1)), "ml");
        assert_json(
                r, json_parse(&r->arena, json_text(json_index(command, 2)), NULL, NULL),
                "{'framework': 'ray', 'task': 'distributed_training', 'algorithm': 'svm', 'datasetSize': 9, "
                "'nFeatures': 150, 'parameters': {'C': 1}}");
}

static void a_custom_one_has_all_that_it_asks_for(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(
                r, &ALGORITHMPROFILING,
                "'algorithmName': 'c', 'algorithmType': 'custom', 'inputSize': 10, 'parameters': {'x': 1}, "
                "'customConfig': {'image': 'i', 'command': ['a', '$(B)'], 'args': ['b'], 'env': [{'name': "
                "'A', 'value': "
                "'1'}], 'volumes': [{'name': 'v', 'mountPath': '/v', 'subPath': 's', 'readOnly': true, "
                "'persistentVolumeClaim': {'claimName': 'c'}}]}");
        const struct json *entry = json_first(json_at(plan_of(r, job), "algorithms"));
        const struct json *c = container_of(job, "algorithm");

        assert_string_equal(json_str(c, "image"), "i");
        assert_json(r, json_at(entry, "command"), "['a', '$(B)', 'b']");
        assert_json(r, json_at(entry, "env"),
                    "[{'name': 'A', 'value': '1'}, {'name': 'SONDE_PARAMETERS', 'value': '{\\\"x\\\":1}'}]");
        assert_json(r, json_first(json_at(c, "volumeMounts")),
                    "{'name': 'v', 'mountPath': '/v', 'subPath': 's', 'readOnly': true}");
        assert_json(r, json_first(json_at(pod_of(job), "volumes")),
                    "{'name': 'v', 'persistentVolumeClaim': {'claimName': 'c'}}");
}

#define THREE                                                                                               \
        "'inputSize': 10, 'algorithms': [{'name': 'quick_sort'}, {'name': 'm', 'type': 'ml', 'framework': " \
        "'dask'}, "                                                                                         \
        "{'name': 'c', 'type': 'custom', 'customConfig': {'image': 'i', 'command': ['x'], 'volumes': "      \
        "[{'name': 'v', "                                                                                   \
        "'mountPath': '/v', 'emptyDir': {}}]}}], 'resources': {'limits': {'cpu': '1'}}"

static void several_groups_are_containers_of_one_pod(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, &ALGORITHMCOMPARISON,
                                         THREE ", 'baseline': 'm', 'parallel': true");
        const struct json *containers = json_at(pod_of(job), "containers"), *plan = plan_of(r, job);
        const struct json *worker = container_of(job, "group-2"), *first = container_of(job, "coordinator");

        assert_int_equal(json_len(containers), 4);
        assert_ptr_equal(json_first(containers), first);
        assert_string_equal(json_str(first, "image"), "sonde-pod");
        assert_string_equal(json_str(container_of(job, "group-1"), "image"), "sonde-ml");
        assert_string_equal(json_str(worker, "image"), "i");
        assert_json(r, json_at(worker, "command"), "['/sonde/sonde-pod', 'probe', '--worker', '2']");
        assert_json(r, json_at(worker, "resources"), "{'limits': {'cpu': '1'}}");
        assert_json(r, json_at(worker, "volumeMounts"),
                    "[{'name': 'g2-v', 'mountPath': '/v'}, {'name': 'sonde', 'mountPath': '/sonde'}]");
        assert_non_null(json_find_named(json_at(pod_of(job), "volumes"), "g2-v"));
        assert_false(json_bool(json_at(worker, "securityContext"), "allowPrivilegeEscalation", true));
        assert_true(json_bool(json_at(worker, "securityContext"), "runAsNonRoot", false));
        json_foreach (c, containers) /* but the relay, which measures nothing */
                if (!streq(json_str(c, "name"), "relay"))
                        assert_json(r, json_find_named(json_at(c, "env"), "SONDE_NODE_NAME"),
                                    "{'name': 'SONDE_NODE_NAME', 'valueFrom': {'fieldRef': {'fieldPath': "
                                    "'spec.nodeName'}}}");
        assert_string_equal(json_str(plan, "baseline"), "m");
        assert_true(json_bool(plan, "parallel", false));
        assert_int_equal(json_int(json_index(json_at(plan, "algorithms"), 2), "group", -1), 2);
        assert_json(r, json_path(job, "spec.template.metadata.annotations"),
                    "{'kubectl.kubernetes.io/default-container': 'coordinator', "
                    "'kubectl.kubernetes.io/default-logs-container': 'coordinator'}");
        assert_non_null(planned(r, &KUBE_CONFIGMAP, "r-comparison-run-results"));
}

static void an_empty_coordinator_asks_for_next_to_nothing(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(
                r, &ALGORITHMCOMPARISON,
                "'inputSize': 10, 'algorithms': [{'name': 'm', 'type': 'ml'}, {'name': 'c', "
                "'type': 'custom', 'customConfig': {'image': 'i', 'command': ['x']}}], "
                "'resources': {'requests': {'cpu': '8'}}");

        assert_string_equal(
                json_str(json_path(container_of(job, "coordinator"), "resources.requests"), "cpu"), "10m");
        assert_string_equal(json_str(json_path(container_of(job, "group-2"), "resources.requests"), "cpu"),
                            "8");
        /* Where a quota counts limits of CPU, a pod that does not say them is refused. */
        assert_json(r, json_path(container_of(job, "coordinator"), "resources.limits"),
                    "{'cpu': '1', 'memory': '256Mi'}");
}

/* What fits one that shares its resources with others need not fit them: the probe must know who shares. */
static void requests_of_all_are_told_as_such(void **state)
{
        struct rig *r = *state;
        const struct json *plan = plan_of(
                r, job_for(r, &ALGORITHMCOMPARISON,
                           "'inputSize': 10, 'algorithms': [{'name': 'quick_sort'}, {'name': 'merge_sort'}, "
                           "{'name': 'heap_sort', 'resources': {'requests': {'cpu': '2'}}}], 'resources': "
                           "{'requests': {'cpu': '1', 'memory': '1Gi'}}"));

        assert_json(r, json_at(plan, "requests"), "{'cpu': 1, 'memory': 1073741824}");
        assert_null(json_path(plan, "algorithms[0].requests"));
        assert_null(json_path(plan, "algorithms[1].requests"));
        assert_json(r, json_path(plan, "algorithms[2].requests"), "{'cpu': 2}");
}

static void labels_go_to_job_and_pods(void **state)
{
        struct rig *r = *state;
        const struct json *job;

        request_of(r, &ALGORITHMPROFILING, Q ", 'queueName': 'q'", RUN);
        json_set(&r->arena, json_at(r->view.request, "metadata"), "labels",
                 parse(r, "{'team': 'a', 'app': 'mine', 'x.kubernetes.io/y': 'z', 'k8s.io/a': 'b', "
                          "'sonde.dev/c': 'd', "
                          "'mykubernetes.io/e': 'f'}"));
        job = planned_job(r);
        assert_json(r, json_path(job, "spec.template.metadata.labels"),
                    "{'team': 'a', 'app': 'mine', 'mykubernetes.io/e': 'f', 'type': 'sorting-algorithm', "
                    "'algorithm': "
                    "'quick_sort'}");
        assert_string_equal(json_str(json_path(job, "metadata.labels"), "team"), "a");
        assert_string_equal(json_str(json_path(job, "metadata.labels"), "kueue.x-k8s.io/queue-name"), "q");
}

static void long_names_fit(void **state)
{
        struct rig *r = *state;
        const struct json *job;
        const char *label;
        char name[201];

        memset(name, 'n', 200);
        name[200] = '\0';
        job = job_for(
                r, &ALGORITHMPROFILING,
                arena_printf(
                        &r->arena,
                        "'algorithmName': '%s x', 'algorithmType': 'custom', 'inputSize': 1, 'customConfig': "
                        "{'image': 'i', 'command': ['c']}",
                        name));
        label = json_str(json_path(job, "metadata.labels"), "algorithm");
        assert_true(name_valid(NAME_LABEL_VALUE, str_of(label)));
        assert_int_equal(strlen(label), 63);
}

static void nothing_is_made_of_a_spec_that_cannot_be_run(void **state)
{
        struct rig *r = *state;

        assert_null(job_for(r, &ALGORITHMPROFILING, "'algorithmName': 'no_sort', 'inputSize': 1"));
        assert_int_equal(r->d.exist.n, 0);
}

static const struct CMUnitTest tests[] = {
        TEST(one_group_is_one_container),
        TEST(the_plan_of_a_profiling),
        TEST(the_probe_understands_the_plan),
        TEST(an_ml_algorithm_runs_in_its_image),
        TEST(a_custom_one_has_all_that_it_asks_for),
        TEST(several_groups_are_containers_of_one_pod),
        TEST(an_empty_coordinator_asks_for_next_to_nothing),
        TEST(requests_of_all_are_told_as_such),
        TEST(labels_go_to_job_and_pods),
        TEST(long_names_fit),
        TEST(nothing_is_made_of_a_spec_that_cannot_be_run),
};

UNIT_MAIN(tests)
