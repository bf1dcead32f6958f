/*
 * The spec of a CUDAExperiment: defaults, all that is refused, and what a profile depends on.
 */
#include "unit/cuda_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define I          "'image': 'i', "

/* The reason, with the sentence in *WHY; NULL: nothing is wrong. */
static const char *checked(struct rig *r, const char *spec, const char **why)
{
        struct cuda_spec s;

        experiment(r, spec, NULL);
        s = spec_of(r);
        return cuda_spec_check(&r->view, &s, why);
}

static void assert_good(struct rig *r, const char *spec)
{
        const char *why;

        if (checked(r, spec, &why))
                fail_msg("%s: %s", spec, why);
}

static void defaults_are_upstreams(void **state)
{
        struct rig *r = *state;
        struct cuda_spec s;

        experiment(r, "'image': 'i'", NULL);
        s = spec_of(r);
        assert_string_equal(s.image, "i");
        assert_null(s.command);
        assert_string_equal(s.runtime_class, "nvidia");
        assert_int_equal(s.replicas, 1);
        assert_int_equal(s.gpus, 1);
        assert_false(s.profiling);
        assert_string_equal(s.set, "basic");
        assert_null(s.kernel_name);
        assert_int_equal(s.launch_count, 20);
        assert_int_equal(s.launch_skip, 0);
        assert_int_equal(s.timeout, 0);
        assert_false(s.reuse);
        assert_true(s.sys_admin);
        assert_int_equal(s.mode, PLACE_AFFINITY);
        assert_int_equal(s.least.compute, 0);
        assert_int_equal(s.least.memory, 0);
}

static void number_of_gpus_counts_from_one_on(void **state)
{
        static const struct {
                const char *spec;
                int64_t gpus;
        } cases[] = {{"'gpuRequired': 2", 2},
                     {"'gpuRequired': 2, 'numberOfGPUs': 4", 4},
                     {"'gpuRequired': 2, 'numberOfGPUs': 0", 2},
                     {"'numberOfGPUs': -1", 1}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                experiment(r, cases[i].spec, NULL);
                assert_int_equal(spec_of(r).gpus, cases[i].gpus);
                assert_int_equal(spec_of(r).least.gpus, cases[i].gpus);
        }
}

static void minimums_are_read(void **state)
{
        static const struct {
                const char *compute, *memory;
                int capability;
                int64_t mebibytes;
        } cases[] = {{"8.0", "40Gi", 80, 40960},
                     {"8", "1", 80, 1},
                     {"12.1", "1G", 121, 954},
                     {"9.0", "80000Mi", 90, 80000},
                     {"", "", 0, 0}};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                assert_good(r, arena_printf(&r->arena,
                                            I "'minimumComputeCapability': '%s', 'minimumMemory': '%s'",
                                            cases[i].compute, cases[i].memory));
                assert_int_equal(spec_of(r).least.compute, cases[i].capability);
                assert_int_equal(spec_of(r).least.memory, cases[i].mebibytes);
        }
}

static void what_may_be_said_passes(void **state)
{
        static const char *const specs[] = {
                "'image': 'i'",
                I "'command': ['/a', ''], 'arguments': ['', '-x'], 'replicas': 3, 'numberOfNodes': 1, "
                  "'distributed': false, 'maxLatency': '', 'priorityClassName': 'high'",
                I "'env': [{'name': 'A'}, {'name': 'a.b-c', 'value': ''}, {'name': 'S', 'valueFrom': "
                  "{'secretKeyRef': {'name': 's', 'key': 'k'}}}]",
                I "'volumes': [{'name': 'p', 'mountPath': '/p', 'subPath': 'a/b', 'readOnly': true, "
                  "'persistentVolumeClaim': {'claimName': 'c'}}, {'name': 'c', 'mountPath': '/sondes', "
                  "'configMap': {'name': 'm'}}, {'name': 'e', 'mountPath': '/e', 'emptyDir': {}}]",
                I "'resources': {'requests': {'cpu': 4, 'memory': '16Gi'}, 'limits': {'memory': '32Gi'}}",
                I "'profilingEnabled': true, 'profiling': {'set': 'full', 'launchCount': 1000, 'launchSkip': "
                  "5, "
                  "'kernelName': 'regex:^gemm', 'timeout': '1h30m', 'reuse': true, 'permission': 'none', "
                  "'files': ['/data/x', '/etc/y']}, 'runAsUser': 1001",
                I "'profilingEnabled': true, 'runAsUser': 0",
                I "'placement': {'mode': 'volcano'}",
                I "'placement': {'mode': 'volcano', 'queue': 'team-a'}",
                I "'placement': {'mode': 'kueue', 'queue': 'team-a'}",
                I "'placement': {'mode': 'none'}",
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++)
                assert_good(r, specs[i]);
}

struct refused {
        const char *spec, *words;
};

static void assert_refused(struct rig *r, const struct refused *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const char *why = NULL, *reason = checked(r, cases[i].spec, &why);

                if (!reason)
                        fail_msg("%s passes", cases[i].spec);
                assert_string_equal(reason, "Invalid");
                assert_says(why, cases[i].words);
        }
}

#define VOLUME(more) I "'volumes': [{'name': 'a', 'mountPath': '/a', 'emptyDir': {}}, {" more "}]"

static void what_cannot_be_run_is_refused(void **state)
{
        static const struct refused cases[] = {
                {"'command': ['/a']", "spec.image: is missing"},
                {"'image': ''", "spec.image: is missing"},
                {"'image': 'a b'", "spec.image: 'a b' has a blank"},
                {I "'command': 'sh'", "spec.command: must be a list of texts"},
                {I "'arguments': [1]", "spec.arguments: must be a list of texts, not '1'"},
                {I "'replicas': 0", "spec.replicas: must be a whole number from 1"},
                {I "'gpuRequired': 1.5", "spec.gpuRequired: must be a whole number"},
                {I "'runtimeClassName': 'A B'", "spec.runtimeClassName: 'A B' is no name"},
                {I "'minimumComputeCapability': '8.61'", "spec.minimumComputeCapability: '8.61'"},
                {I "'minimumComputeCapability': 'sm_80'", "spec.minimumComputeCapability: 'sm_80'"},
                {I "'minimumMemory': '40GB'", "spec.minimumMemory: '40GB' is no amount"},
                {I "'minimumMemory': '0'", "spec.minimumMemory: '0' is no amount"},
                {I "'profiling': {'set': '--all'}", "spec.profiling.set: '--all'"},
                {I "'profiling': {'kernelName': '-x'}", "spec.profiling.kernelName: '-x' begins with '-'"},
                {I "'profiling': {'launchCount': 0}",
                 "spec.profiling.launchCount: must be a whole number from 1 to 1000"},
                {I "'profiling': {'launchCount': 1001}", "spec.profiling.launchCount"},
                {I "'profiling': {'launchSkip': -1}", "spec.profiling.launchSkip"},
                {I "'profiling': {'timeout': '30'}", "spec.profiling.timeout: '30' is no time"},
                {I "'profiling': {'permission': 'root'}",
                 "spec.profiling.permission: must be sysAdmin or none"},
                {I "'profilingEnabled': true, 'runAsUser': 1000",
                 "spec.runAsUser: with spec.profiling.permission sysAdmin"},
                {I "'placement': {'mode': 'best'}",
                 "spec.placement.mode: must be none, affinity, volcano or kueue"},
                {I "'placement': {'mode': 'kueue'}", "spec.placement.queue: is missing"},
                {I "'placement': {'queue': 'q'}", "spec.placement.queue: has a meaning with"},
                {I "'placement': {'mode': 'volcano', 'queue': 'A b'}",
                 "spec.placement.queue: 'A b' is no name"},
                {I "'retries': 11", "spec.retries"},
        };

        assert_refused(*state, cases, ARRAY_LEN(cases));
}

static void what_no_pod_takes_is_refused(void **state)
{
        static const struct refused cases[] = {
                {I "'env': [{'value': 'v'}]", "spec.env[0].name: missing is no name"},
                {I "'env': [{'name': '1a'}]", "spec.env[0].name: '1a' is no name"},
                {I "'env': [{'name': 'SONDE_RUN_DIR'}]", "spec.env[0].name: 'SONDE_RUN_DIR' is Sonde's own"},
                {I "'env': [{'name': 'A', 'value': 1}]", "spec.env[0].value: must be a text"},
                {I "'env': [{'name': 'A', 'valueFrom': {}}]", "spec.env[0].valueFrom: must have exactly one"},
                {I "'env': [{'name': 'A', 'value': 'x', 'valueFrom': {'fieldRef': {}}}]",
                 "spec.env[0]: has both"},
                {VOLUME("'name': 'b', 'mountPath': '/b'"), "spec.volumes[1]: must have exactly one"},
                {VOLUME("'name': 'b', 'mountPath': '/b', 'emptyDir': {}, 'configMap': {}"), "exactly one"},
                {VOLUME("'name': 'b', 'mountPath': '/b', 'hostPath': {'path': '/'}"), "exactly one"},
                {VOLUME("'name': 'a', 'mountPath': '/b', 'emptyDir': {}"),
                 "spec.volumes[1].name: 'a' is taken"},
                {VOLUME("'name': 'run', 'mountPath': '/b', 'emptyDir': {}"),
                 "spec.volumes[1].name: 'run' is taken"},
                {VOLUME("'name': 'B', 'mountPath': '/b', 'emptyDir': {}"),
                 "spec.volumes[1].name: 'B' is no name"},
                {VOLUME("'name': 'b', 'mountPath': 'b', 'emptyDir': {}"),
                 "mountPath: 'b' must be an absolute path"},
                {VOLUME("'name': 'b', 'mountPath': '/', 'emptyDir': {}"), "'/' must not be the root"},
                {VOLUME("'name': 'b', 'mountPath': '/a', 'emptyDir': {}"), "'/a' is there twice"},
                {VOLUME("'name': 'b', 'mountPath': '/b:c', 'emptyDir': {}"), "has a ':' in it"},
                {VOLUME("'name': 'b', 'mountPath': '//sonde/run', 'emptyDir': {}"),
                 "a directory of Sonde's own"},
                {VOLUME("'name': 'b', 'mountPath': '/shared', 'emptyDir': {}"), "a directory of Sonde's own"},
                {VOLUME("'name': 'b', 'mountPath': '/x/../sonde', 'emptyDir': {}"), "without '.' and '..'"},
                {VOLUME("'name': 'b', 'mountPath': '/b', 'subPath': '../x', 'emptyDir': {}"),
                 "subPath: '../x' must be"},
                {I "'resources': {'limits': {'nvidia.com/gpu': 2}}",
                 "spec.resources.limits: nvidia.com/gpu is said by"},
                {I "'resources': {'requests': {'nvidia.com/gpu': 2}}",
                 "spec.resources.requests: nvidia.com/gpu"},
                {I "'resources': {'limits': {'memory': 'much'}}",
                 "spec.resources.limits.memory: 'much' is no amount"},
                {I "'profiling': {'files': ['x']}", "spec.profiling.files[0]: 'x' must be an absolute path"},
                {I "'profiling': {'files': [7]}", "spec.profiling.files[0]: '7' must be an absolute path"},
                {I "'profiling': {'files': ['/x', '/x']}", "spec.profiling.files[1]: '/x' is there twice"},
                {VOLUME("'name': 'b', 'mountPath': '/b', 'emptyDir': {}") ", 'profiling': {'files': ['/b']}",
                 "'/b' is the mountPath of a volume"},
        };

        assert_refused(*state, cases, ARRAY_LEN(cases));
}

static void what_nobody_can_do_yet_is_refused(void **state)
{
        static const struct refused cases[] = {
                {I "'maxLatency': '10ms'", "spec.maxLatency: is not supported yet"},
                {I "'networkBandwidthRequirement': '10G'",
                 "spec.networkBandwidthRequirement: is not supported"},
                {I "'priority': 'high'", "spec.priority: is not supported yet, use spec.priorityClassName"},
                {I "'numberOfNodes': 2", "spec.numberOfNodes: more than 1 is not supported"},
                {I "'distributed': true", "spec.distributed: is not supported"},
        };

        assert_refused(*state, cases, ARRAY_LEN(cases));
}

static void an_empty_command_has_its_own_reason(void **state)
{
        struct rig *r = *state;
        const char *why;

        assert_string_equal(checked(r, I "'command': ['', '/a']", &why), "CommandEmpty");
        assert_says(why, "spec.command: begins with an empty text");
}

static void all_is_told_at_once(void **state)
{
        struct rig *r = *state;
        const char *why;

        assert_non_null(checked(r, "'distributed': true, 'replicas': -1", &why));
        assert_says(why, "spec.image: is missing");
        assert_says(why, "; spec.replicas: ");
        assert_says(why, "; spec.distributed: ");
}

/* ---- hashes */

static const char *workload_hash(struct rig *r, const char *spec)
{
        struct cuda_spec s;

        experiment(r, spec, NULL);
        s = spec_of(r);
        return cuda_workload_hash(&r->view, &s);
}

#define WORKLOAD "'image': 'i', 'command': ['/a', 'x'], 'env': [{'name': 'A', 'value': 'b'}]"

static void a_profile_depends_on_the_workload(void **state)
{
        static const char *const others[] = {
                "'image': 'j', 'command': ['/a', 'x'], 'env': [{'name': 'A', 'value': 'b'}]",
                "'image': 'i', 'command': ['/a'], 'env': [{'name': 'A', 'value': 'b'}]",
                "'image': 'i', 'command': ['/a', 'x']",
                WORKLOAD ", 'arguments': ['y']",
                WORKLOAD ", 'profiling': {'set': 'full'}",
                WORKLOAD ", 'profiling': {'launchCount': 2}",
                WORKLOAD ", 'profiling': {'launchSkip': 2}",
                WORKLOAD ", 'profiling': {'kernelName': 'k'}",
                WORKLOAD ", 'profiling': {'files': ['/x']}",
        };
        struct rig *r = *state;
        const char *hash = workload_hash(r, WORKLOAD);

        assert_true(name_valid(NAME_LABEL_VALUE, str_of(hash)));
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                if (streq(workload_hash(r, others[i]), hash))
                        fail_msg("%s has the same hash", others[i]);
}

static void a_profile_does_not_depend_on_the_rest(void **state)
{
        static const char *const same[] = {
                "'env': [{'value': 'b', 'name': 'A'}], 'command': ['/a', 'x'], 'image': 'i', 'arguments': []",
                WORKLOAD ", 'replicas': 3, 'gpuRequired': 2, 'placement': {'mode': 'none'}, 'suspend': true",
                WORKLOAD ", 'profiling': {'set': 'basic', 'launchCount': 20, 'timeout': '1h', 'reuse': true, "
                         "'permission': 'none'}",
        };
        struct rig *r = *state;
        const char *hash = workload_hash(r, WORKLOAD);

        for (size_t i = 0; i < ARRAY_LEN(same); i++)
                assert_string_equal(workload_hash(r, same[i]), hash);
}

static const char *run_hash(struct rig *r, const char *spec)
{
        struct cuda_spec s;
        struct run_kind kind;
        struct run run;

        experiment(r, spec, NULL);
        s = spec_of(r);
        kind = cuda_run_kind(&r->view);
        cuda_run_read(&r->view, &s, &kind, &run);
        return run.spec_hash;
}

/* A server that fills in what goes with a member that was added has not changed anything. */
static void what_is_filled_in_is_no_change(void **state)
{
        struct rig *r = *state;
        const char *hash = run_hash(r, "'image': 'i'");

        assert_string_equal(run_hash(r, I "'profiling': {'timeout': '1h', 'set': 'basic', 'launchCount': 20, "
                                          "'launchSkip': 0, 'reuse': true, 'permission': 'sysAdmin'}"),
                            hash);
        assert_string_equal(run_hash(r, I "'replicas': 3, 'placement': {'mode': 'none'}, 'cancel': true"),
                            hash);
        assert_string_not_equal(run_hash(r, I "'profiling': {'permission': 'none'}"), hash);
        assert_string_not_equal(run_hash(r, I "'profilingEnabled': true"), hash);
}

static void what_is_executed_depends_on_all_but_the_controls(void **state)
{
        struct rig *r = *state;
        const char *hash;
        struct cuda_spec s;

        experiment(r, "'image': 'i'", NULL);
        s = spec_of(r);
        hash = cuda_spec_hash(&r->view, &s);
        experiment(r, I "'suspend': true, 'profiling': {'timeout': '1h'}", NULL);
        s = spec_of(r);
        assert_string_equal(cuda_spec_hash(&r->view, &s), hash);
        experiment(r, I "'replicas': 2", NULL);
        s = spec_of(r);
        assert_string_not_equal(cuda_spec_hash(&r->view, &s), hash);
}

static const struct CMUnitTest tests[] = {
        TEST(defaults_are_upstreams),
        TEST(number_of_gpus_counts_from_one_on),
        TEST(minimums_are_read),
        TEST(what_may_be_said_passes),
        TEST(what_cannot_be_run_is_refused),
        TEST(what_no_pod_takes_is_refused),
        TEST(what_nobody_can_do_yet_is_refused),
        TEST(an_empty_command_has_its_own_reason),
        TEST(all_is_told_at_once),
        TEST(a_profile_depends_on_the_workload),
        TEST(a_profile_does_not_depend_on_the_rest),
        TEST(what_is_filled_in_is_no_change),
        TEST(what_is_executed_depends_on_all_but_the_controls),
};

UNIT_MAIN(tests)
