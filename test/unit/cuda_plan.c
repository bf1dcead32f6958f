/*
 * The profiling Job of a CUDAExperiment.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define RUN        "'observedGeneration': 1, 'run': {'attempt': 1, 'job': 'r-profiling', 'retries': 0}"
#define SEED                                                                                             \
        "'image': 'cuda-sample', 'command': ['/cuda-samples/vectorAdd'], 'runtimeClassName': 'nvidia', " \
        "'gpuRequired': 1, 'replicas': 1, 'profilingEnabled': true"

/* The Job for an experiment with this spec whose first attempt is to be made; NULL: none. */
static const struct json *job_for(struct rig *r, const char *spec)
{
        experiment(r, spec, RUN);
        decision_done(&r->d);
        cuda_plan(&r->view, &r->d);
        return planned(r, &KUBE_JOB, "r-profiling");
}

static const struct json *pod_of(const struct json *job)
{
        return json_path(job, "spec.template.spec");
}

static const struct json *runner_of(const struct json *job)
{
        return json_find_named(json_at(pod_of(job), "containers"), "profiling-runner");
}

static const struct json *stager_of(const struct json *job)
{
        return json_find_named(json_at(pod_of(job), "initContainers"), "stage-workload");
}

static void objects_are_named_as_upstreams(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, SEED);

        assert_json(
                r, json_path(job, "spec.template.metadata.labels"),
                "{'app.kubernetes.io/name': 'kratos', 'app.kubernetes.io/managed-by': 'kratos-controller', "
                "'gpu.scheduler.io/experiment': 'r'}");
        assert_string_equal(json_str(json_path(job, "metadata.labels"), "gpu.scheduler.io/experiment"), "r");
        assert_non_null(planned(r, &KUBE_CONFIGMAP, "r-profile-status"));
        assert_non_null(planned(r, &KUBE_CONFIGMAP, "r-profile-summary"));
        assert_non_null(planned(r, &KUBE_ROLE, "r-profiling"));
        assert_int_equal(json_int(json_at(job, "spec"), "backoffLimit", -1), 0);
        assert_null(json_path(job, "spec.parallelism"));
        assert_string_equal(json_str(pod_of(job), "runtimeClassName"), "nvidia");
        assert_null(json_at(pod_of(job), "affinity"));
}

static void long_names_fit(void **state)
{
        struct rig *r = *state;
        struct run_kind kind;
        char name[251];

        memset(name, 'n', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        experiment(r, SEED, NULL);
        json_set(&r->arena, json_at(r->view.request, "metadata"), "name", json_string(&r->arena, name));
        kind = cuda_run_kind(&r->view);
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(kind.status_map)));
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(kind.data_map)));
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(kind.access)));
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(cuda_profile_name(&r->view))));
        assert_true(name_valid(NAME_LABEL_VALUE,
                               json_text(json_at(cuda_labels(&r->view), "gpu.scheduler.io/experiment"))));
}

static void the_workload_is_staged_out_of_its_own_image(void **state)
{
        struct rig *r = *state;
        const struct json *stager = stager_of(job_for(r, SEED));

        assert_string_equal(json_str(stager, "image"), "cuda-sample");
        assert_json(
                r, json_at(stager, "command"),
                "['/sonde/sonde-pod', 'stage-workload', '--to', '/shared', '--', '/cuda-samples/vectorAdd']");
        assert_json(r, json_at(stager, "volumeMounts"),
                    "[{'name': 'workload', 'mountPath': '/shared'}, {'name': 'sonde', 'mountPath': '/sonde', "
                    "'readOnly': true}]");
        assert_json(r, json_at(stager, "securityContext"), "{'runAsUser': 0}");
        assert_json(r, json_find_named(json_at(pod_of(job_for(r, SEED)), "volumes"), "workload"),
                    "{'name': 'workload', 'emptyDir': {}}");
}

static void without_a_command_upstreams_sample_is_staged(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i', 'profilingEnabled': true");

        assert_string_equal(json_cstr(json_index(json_at(stager_of(job), "command"), 5)),
                            "/cuda-samples/vectorAdd");
        assert_int_equal(json_len(json_at(runner_of(job), "command")), 16);
}

static void the_runner_gets_all_arguments(void **state)
{
        struct rig *r = *state;
        const struct json *runner;

        runner = runner_of(job_for(
                r,
                "'image': 'i', 'command': ['/app', '-n', '$(N)'], 'arguments': ['--size', '$x'], "
                "'profilingEnabled': true, 'profiling': {'set': 'full', 'launchCount': 3, 'launchSkip': 4, "
                "'kernelName': 'regex:^a$'}"));
        assert_string_equal(json_str(runner, "image"), "runner");
        assert_string_equal(json_str(runner, "imagePullPolicy"), "IfNotPresent");
        assert_json(r, json_at(runner, "command"),
                    "['/sonde/sonde-pod', 'run', '--', '/sonde/sonde-pod', 'ncu', '--dir', '/sonde/run', "
                    "'--set', 'full', '--launch-count', '3', '--launch-skip', '4', '--kernel-name', "
                    "'regex:^a$$', '--name', 'r', '--shared', '/shared', '--', '-n', '$(N)']");
        assert_json(r, json_at(runner, "args"), "['--size', '$x']");
}

static void the_runner_knows_the_experiment(void **state)
{
        struct rig *r = *state;
        struct cuda_settings settings = SETTINGS;
        const struct json *env;

        settings.env = parse(r, "[{'name': 'HTTP_PROXY', 'value': 'p'}]");
        experiment(r, "'image': 'i', 'env': [{'name': 'A', 'value': 'b'}], 'profilingEnabled': true", RUN);
        r->view.settings = &settings;
        cuda_plan(&r->view, &r->d);
        env = json_at(runner_of(planned(r, &KUBE_JOB, "r-profiling")), "env");
        assert_string_equal(json_str(json_find_named(env, "KRATOS_EXPERIMENT_NAME"), "value"), "r");
        assert_string_equal(json_str(json_find_named(env, "KRATOS_EXPERIMENT_NAMESPACE"), "value"), "ns");
        assert_string_equal(json_str(json_find_named(env, "KRATOS_PROFILE_SUMMARY_CONFIGMAP"), "value"),
                            "r-profile-summary");
        assert_string_equal(json_str(json_find_named(env, "KRATOS_PROFILE_SUMMARY_KEY"), "value"),
                            "summary.json");
        assert_string_equal(json_str(json_find_named(env, "A"), "value"), "b");
        assert_string_equal(json_str(json_find_named(env, "HTTP_PROXY"), "value"), "p");
        env = json_at(stager_of(planned(r, &KUBE_JOB, "r-profiling")), "env");
        assert_json(r, env, "[{'name': 'A', 'value': 'b'}]");
}

static void permission_decides_the_capability(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, SEED);

        assert_json(r, json_at(runner_of(job), "securityContext"),
                    "{'runAsUser': 0, 'capabilities': {'add': ['SYS_ADMIN']}}");
        job = job_for(r, SEED ", 'profiling': {'permission': 'none'}");
        assert_json(r, json_at(runner_of(job), "securityContext"),
                    "{'runAsNonRoot': true, 'seccompProfile': {'type': 'RuntimeDefault'}, "
                    "'allowPrivilegeEscalation': false, 'capabilities': {'drop': ['ALL']}}");
        assert_json(r, json_path(stager_of(job), "securityContext.capabilities"), "{'drop': ['ALL']}");
}

static void gpus_and_resources_are_the_runners(void **state)
{
        struct rig *r = *state;

        assert_json(r, json_at(runner_of(job_for(r, SEED ", 'numberOfGPUs': 2")), "resources"),
                    "{'limits': {'nvidia.com/gpu': '2'}}");
        assert_json(r,
                    json_at(runner_of(job_for(r, SEED ", 'resources': {'requests': {'cpu': 4}, 'limits': "
                                                      "{'memory': '32Gi'}}")),
                            "resources"),
                    "{'requests': {'cpu': 4}, 'limits': {'memory': '32Gi', 'nvidia.com/gpu': '1'}}");
}

static void volumes_and_files_are_where_the_program_looks(void **state)
{
        struct rig *r = *state;
        const struct json *job, *mounts;

        job = job_for(r,
                      SEED ", 'volumes': [{'name': 'd', 'mountPath': '/d', 'subPath': 's', 'readOnly': true, "
                           "'persistentVolumeClaim': {'claimName': 'c'}}], 'profiling': {'files': "
                           "['/opt/$x/data']}");
        assert_json(r, json_find_named(json_at(pod_of(job), "volumes"), "d"),
                    "{'name': 'd', 'persistentVolumeClaim': {'claimName': 'c'}}");
        assert_json(r, json_first(json_at(stager_of(job), "volumeMounts")),
                    "{'name': 'd', 'mountPath': '/d', 'subPath': 's', 'readOnly': true}");
        assert_string_equal(json_cstr(json_index(json_at(stager_of(job), "command"), 4)), "--file");
        assert_string_equal(json_cstr(json_index(json_at(stager_of(job), "command"), 5)), "/opt/$$x/data");
        mounts = json_at(runner_of(job), "volumeMounts");
        assert_json(r, json_index(mounts, 0),
                    "{'name': 'd', 'mountPath': '/d', 'subPath': 's', 'readOnly': true}");
        assert_json(r, json_index(mounts, 1), "{'name': 'workload', 'mountPath': '/shared'}");
        assert_json(r, json_index(mounts, 2),
                    "{'name': 'workload', 'mountPath': '/opt/$x/data', 'subPath': 'root/opt/$x/data'}");
}

static void what_the_program_needs_of_a_node_counts_here_too(void **state)
{
        struct rig *r = *state;
        const struct json *affinity = json_at(pod_of(job_for(r, SEED ", 'minimumComputeCapability': '8.0'")),
                                              "affinity");

        assert_non_null(json_path(affinity, "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"));
        assert_null(json_path(affinity, "nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"));
}

static void a_spec_that_is_wrong_makes_no_job(void **state)
{
        static const char *const specs[] = {"'profilingEnabled': true", SEED ", 'profiling': {'files': [7]}",
                                            SEED ", 'volumes': [{'mountPath': 3}]"};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                assert_null(job_for(r, specs[i]));
                assert_int_equal(r->d.exist.n, 0);
        }
}

static void the_program_is_profiled_once_whatever_is_replicated(void **state)
{
        struct rig *r = *state;
        const struct json *job = job_for(r, "'image': 'i', 'replicas': 8, 'profilingEnabled': true");

        assert_null(json_path(job, "spec.parallelism"));
        assert_null(json_path(job, "spec.completions"));
}

static const struct CMUnitTest tests[] = {
        TEST(objects_are_named_as_upstreams),
        TEST(long_names_fit),
        TEST(the_workload_is_staged_out_of_its_own_image),
        TEST(without_a_command_upstreams_sample_is_staged),
        TEST(the_runner_gets_all_arguments),
        TEST(the_runner_knows_the_experiment),
        TEST(permission_decides_the_capability),
        TEST(gpus_and_resources_are_the_runners),
        TEST(volumes_and_files_are_where_the_program_looks),
        TEST(what_the_program_needs_of_a_node_counts_here_too),
        TEST(a_spec_that_is_wrong_makes_no_job),
        TEST(the_program_is_profiled_once_whatever_is_replicated),
};

UNIT_MAIN(tests)
