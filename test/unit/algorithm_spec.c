/*
 * The spec of an AlgorithmProfiling and an AlgorithmComparison: defaults, and all that is refused.
 */
#include "unit/algorithm_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define Q          "'algorithmName': 'quick_sort', 'inputSize': 10, "
#define C          "'algorithmName': 'c', 'algorithmType': 'custom', 'inputSize': 10, "
#define M          "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, "
#define VOLUME(v)  C "'customConfig': {'image': 'i', 'command': ['c'], 'volumes': [" v "]}"

static const char *checked(struct rig *r, const struct kube_type *type, const char *spec)
{
        struct algorithm_spec s;

        request_of(r, type, spec, NULL);
        s = spec_of(r);
        return algorithm_spec_check(&r->view, &s);
}

static void assert_good(struct rig *r, const struct kube_type *type, const char *spec)
{
        const char *why = checked(r, type, spec);

        if (why)
                fail_msg("%s: %s", spec, why);
}

static void assert_refused(struct rig *r, const struct kube_type *type, const char *spec, const char *words)
{
        assert_says(checked(r, type, spec), words);
}

/* ---- defaults */

static void defaults_of_a_profiling(void **state)
{
        struct rig *r = *state;
        struct algorithm_spec s;

        profiling(r, Q "'iterations': 1");
        s = spec_of(r);
        assert_false(s.comparison);
        assert_int_equal(s.n, 1);
        assert_int_equal(s.entries[0].type, ALGORITHM_SORTING);
        assert_string_equal(s.entries[0].sorting, "quick_sort");
        assert_int_equal(s.iterations, 1);
        assert_int_equal(s.warmup, 0); /* of one run none is thrown away before it */
        assert_int_equal(s.pods, 1);
        assert_int_equal(s.seed, 1);
        assert_int_equal(s.n_sizes, 1);
        assert_int_equal(s.sizes[0], 10);
        assert_int_equal(s.ttl_seconds, -1);
        assert_int_equal(s.groups, 1);
        assert_true(s.accuracy_tolerance < 0);
        assert_float_equal(s.min_effect, 0.02, 1e-12);
        profiling(r, Q "'iterations': 5");
        assert_int_equal(spec_of(r).warmup, 1);
        profiling(r, Q "'iterations': 5, 'warmup': 0");
        assert_int_equal(spec_of(r).warmup, 0);
}

static void the_task_decides_the_size_of_the_data(void **state)
{
        static const struct {
                const char *ml;
                const char *task;
                int64_t rows, features, select;
        } cases[] = {
                {"", "feature_selection", 10000, 100, 20},
                {"'task': 'hyperparameter_tuning'", "hyperparameter_tuning", 5000, 50, 0},
                {"'task': 'distributed_training', 'nFeatures': 150", "distributed_training", 100000, 150, 0},
                {"'datasetSize': 7, 'nSelect': 3", "feature_selection", 7, 100, 3},
                {"'nFeatures': 5, 'nSelect': 20", "feature_selection", 10000, 5, 5},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct algorithm_spec s;

                profiling(r, arena_printf(&r->arena, M "'mlConfig': {%s}", cases[i].ml));
                s = spec_of(r);
                assert_string_equal(s.entries[0].framework, "sklearn");
                assert_string_equal(s.entries[0].task, cases[i].task);
                assert_int_equal(s.entries[0].dataset_size, cases[i].rows);
                assert_int_equal(s.entries[0].n_features, cases[i].features);
                assert_int_equal(s.entries[0].n_select, cases[i].select);
        }
        profiling(r, M "'parameters': {'n_select': 5}, 'mlConfig': {'nSelect': 20}");
        assert_int_equal(spec_of(r).entries[0].n_select, 0);
        profiling(r, M "'inputSizes': [20, 30]"); /* then the data grows with the input */
        assert_int_equal(spec_of(r).entries[0].dataset_size, 0);
}

static void an_entry_without_a_task_is_trained_and_scored(void **state)
{
        struct rig *r = *state;
        struct algorithm_spec s;

        comparison(r, "'inputSize': 100, 'algorithms': [{'name': 'a', 'type': 'ml', 'framework': 'dask', "
                      "'parameters': "
                      "{'algorithm': 'random_forest'}}, {'name': 'b', 'type': 'ml', 'mlConfig': {'task': "
                      "'hyperparameter_tuning', 'datasetSize': 9}}]");
        s = spec_of(r);
        assert_int_equal(s.n, 2);
        assert_string_equal(s.entries[0].framework, "dask");
        assert_null(s.entries[0].task);
        assert_int_equal(s.entries[0].dataset_size, 0);
        assert_string_equal(s.entries[1].task, "hyperparameter_tuning");
        assert_int_equal(s.entries[1].dataset_size, 9);
}

static void all_sizes_are_measured_once(void **state)
{
        struct rig *r = *state;
        struct algorithm_spec s;

        profiling(r, Q "'inputSizes': [1000, 10, 100, 1000]");
        s = spec_of(r);
        assert_int_equal(s.n_sizes, 3);
        assert_int_equal(s.sizes[0], 10);
        assert_int_equal(s.sizes[2], 1000);
        assert_int_equal(s.input_size, 10);
}

/* ---- groups */

#define TWO(x, y) "'inputSize': 10, 'algorithms': [" x ", " y "]"

static void what_shares_a_container_is_a_group(void **state)
{
        static const struct {
                const char *spec;
                size_t groups, first, second;
        } cases[] = {
                {TWO("{'name': 'quick_sort'}", "{'name': 'merge_sort'}"), 1, 0, 0},
                {TWO("{'name': 'a', 'type': 'ml'}", "{'name': 'b', 'type': 'ml', 'framework': 'dask'}"), 1, 0,
                 0},
                {TWO("{'name': 'quick_sort'}", "{'name': 'b', 'type': 'ml'}"), 2, 0, 1},
                {TWO("{'name': 'a', 'type': 'ml'}",
                     "{'name': 'b', 'type': 'custom', 'customConfig': {'image': 'i'}}"),
                 3, 1, 2},
                {TWO("{'name': 'a', 'type': 'ml'}",
                     "{'name': 'b', 'type': 'ml', 'resources': {'limits': {'cpu': '1'}}}"),
                 3, 1, 2},
                {TWO("{'name': 'a', 'type': 'custom', 'customConfig': {'image': 'i'}}",
                     "{'name': 'b', 'type': 'custom', 'customConfig': {'image': 'i', 'command': ['x']}}"),
                 1, 0, 0},
                {TWO("{'name': 'a', 'type': 'custom', 'customConfig': {'image': 'i'}}",
                     "{'name': 'b', 'type': 'custom', 'customConfig': {'image': 'i', 'volumes': [{'name': "
                     "'v'}]}}"),
                 3, 1, 2},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct algorithm_spec s;

                comparison(r, cases[i].spec);
                s = spec_of(r);
                assert_int_equal(s.groups, cases[i].groups);
                assert_int_equal(s.entries[0].group, cases[i].first);
                assert_int_equal(s.entries[1].group, cases[i].second);
        }
}

/* ---- what passes */

static void what_may_be_said_passes(void **state)
{
        static const char *const profilings[] = {
                "'algorithmName': 'bubble_sort', 'inputSize': 1",
                Q
                "'parameters': {'pivot_strategy': 'median'}, 'timeout': '1h30m', 'priority': 0, 'warmup': 0",
                "'algorithmName': 'mine', 'inputSize': 1, 'parameters': {'algorithm': 'quick_sort'}",
                M "'mlConfig': {'framework': 'ray', 'task': 'distributed_training', 'algorithm': 'svm'}",
                C "'customConfig': {'image': 'i', 'command': ['c', ''], 'args': ['', '--x'], 'env': "
                  "[{'name': 'A'}, "
                  "{'name': 'B', 'value': '$(A)'}]}, 'parameters': {'any': [1]}",
                VOLUME("{'name': 'p', 'mountPath': '/shared', 'subPath': 'a/b', 'readOnly': true, "
                       "'persistentVolumeClaim': {'claimName': 'c'}}, {'name': 'q', 'mountPath': '/q', "
                       "'configMap': "
                       "{'name': 'm'}}, {'name': 'e', 'mountPath': '/e', 'emptyDir': {}}"),
                Q "'price': {'perCpuHour': 0.04, 'currency': 'EUR'}, 'queueName': 'q.1', 'runTimeout': "
                  "'90s', 'seed': 0",
        };
        static const char *const comparisons[] = {
                TWO("{'name': 'quick_sort'}",
                    "{'name': 'q2', 'parameters': {'algorithm': 'quick_sort'}}") ", 'baseline': 'q2', "
                                                                                 "'minEffect': 0, "
                                                                                 "'accuracyTolerance': 0.01, "
                                                                                 "'parallel': true",
                "'inputSize': 1, 'algorithms': [{'name': 'quick_sort'}]",
                TWO("{'name': 'a', 'type': 'ml', 'framework': 'dask', 'mlConfig': {'framework': 'dask'}}",
                    "{'name': 'b', 'type': 'custom', 'customConfig': {'image': 'i', 'command': ['c']}}"),
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(profilings); i++)
                assert_good(r, &ALGORITHMPROFILING, profilings[i]);
        for (size_t i = 0; i < ARRAY_LEN(comparisons); i++)
                assert_good(r, &ALGORITHMCOMPARISON, comparisons[i]);
}

/* ---- what does not */

static void what_is_wrong_with_an_algorithm(void **state)
{
        static const struct {
                const char *spec, *says;
        } cases[] = {
                {"'algorithmName': 'bogo_sort', 'inputSize': 1",
                 "spec.algorithmName: there is no sorting algorithm "
                 "'bogo_sort'"},
                {"'algorithmName': 'x', 'inputSize': 1, 'parameters': {'algorithm': 'no'}",
                 "spec.parameters.algorithm: there is no sorting algorithm 'no'"},
                {Q "'parameters': {'pivot': 'x'}", "spec.parameters: "},
                {Q "'parameters': {'pivot_strategy': 'x'}", "spec.parameters: "},
                {Q "'parameters': []", "spec.parameters: must be an object"},
                {"'inputSize': 1", "spec.algorithmName: is missing"},
                {"'algorithmName': 'a\\u0001', 'algorithmType': 'ml', 'inputSize': 1", "control character"},
                {"'algorithmName': 'a', 'algorithmType': 'gpu', 'inputSize': 1",
                 "spec.algorithmType: must be sorting, ml or custom, not 'gpu'"},
                {Q "'mlConfig': {}", "spec.mlConfig: has a meaning with algorithmType ml only"},
                {M "'customConfig': {}", "spec.customConfig: has a meaning with algorithmType custom only"},
                {M "'mlConfig': {'framework': 'caffe'}", "spec.mlConfig: "},
                {M "'mlConfig': {'task': 'dance'}", "dance"},
                {M "'mlConfig': {'algorithm': 'oracle'}", "oracle"},
                {M "'parameters': {'algorithm': 'oracle'}", "oracle"},
                {M "'mlConfig': {'datasetSize': 0}", "spec.mlConfig.datasetSize: must be a whole number"},
                {M "'mlConfig': {'datasetSize': 500}, 'inputSizes': [20, 30]",
                 "spec.mlConfig.datasetSize: makes the data the same at every size"},
                {Q "'resources': {'limits': {'cpu': 'much'}}",
                 "spec.resources.limits.cpu: 'much' is no amount"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(r, &ALGORITHMPROFILING, cases[i].spec, cases[i].says);
}

static void what_is_wrong_with_a_custom_one(void **state)
{
        static const struct {
                const char *spec, *says;
        } cases[] = {
                {C "'customConfig': {'image': 'i'}",
                 "spec.customConfig.command: is missing: the image's entrypoint "
                 "cannot be seen; set customConfig.command"},
                {C "'iterations': 1", "spec.customConfig.image: is missing"},
                {C "'customConfig': {'image': 'a b', 'command': ['c']}", "has a blank in it"},
                {C "'customConfig': {'image': 'i', 'command': ['']}", "begins with an empty text"},
                {C "'customConfig': {'image': 'i', 'command': [1]}", "must be a list of texts"},
                {C "'customConfig': {'image': 'i', 'command': ['c'], 'args': 'x'}",
                 "spec.customConfig.args: must be a"},
                {C "'customConfig': {'image': 'i', 'command': ['c'], 'env': [{'name': '1'}]}",
                 "spec.customConfig.env[0].name: '1' is no name of a variable"},
                {C "'customConfig': {'image': 'i', 'command': ['c'], 'env': [{'name': 'SONDE_SEED'}]}",
                 "'SONDE_SEED' is Sonde's own"},
                {C "'customConfig': {'image': 'i', 'command': ['c'], 'env': [{'name': 'A', 'value': 1}]}",
                 "env[0].value: must be a text"},
                {C "'customConfig': {'image': 'i', 'command': ['c'], 'env': [{'name': 'A', 'valueFrom': "
                   "{'secretKeyRef': {'name': 's', 'key': 'k'}}}]}",
                 "env[0].valueFrom: is not allowed, say its value"},
                {VOLUME("{'name': 'v', 'mountPath': '/v'}"),
                 "volumes[0]: must have exactly one of persistentVolumeClaim, configMap and emptyDir"},
                {VOLUME("{'name': 'v', 'mountPath': '/v', 'emptyDir': {}, 'configMap': {'name': 'c'}}"),
                 "exactly one"},
                {VOLUME("{'name': 'v', 'mountPath': '/v', 'hostPath': {'path': '/'}}"),
                 "volumes[0].hostPath: is not allowed, use persistentVolumeClaim, configMap or emptyDir"},
                {VOLUME("{'name': 'v', 'mountPath': '/v', 'emptyDir': {}, 'secret': {'secretName': 's'}}"),
                 "volumes[0].secret: is not allowed"},
                {VOLUME("{'mountPath': '/v', 'emptyDir': {}}"), "volumes[0].name: is missing"},
                {VOLUME("{'name': 'v', 'emptyDir': {}}"), "volumes[0].mountPath: is missing"},
                {VOLUME("{'name': 'run', 'mountPath': '/v', 'emptyDir': {}}"), "'run' is taken"},
                {VOLUME("{'name': 'V', 'mountPath': '/v', 'emptyDir': {}}"), "'V' is no name of a volume"},
                {VOLUME("{'name': 'v', 'mountPath': '/sonde/x', 'emptyDir': {}}"),
                 "a directory of Sonde's own"},
                {VOLUME("{'name': 'v', 'mountPath': '/a/../b', 'emptyDir': {}}"), "without '.' and '..'"},
                {VOLUME("{'name': 'v', 'mountPath': '/v', 'subPath': '../x', 'emptyDir': {}}"),
                 "must be a path within the volume"},
                {VOLUME("{'name': 'v', 'mountPath': '/v', 'emptyDir': {}}, {'name': 'w', 'mountPath': '/v', "
                        "'emptyDir': "
                        "{}}"),
                 "volumes[1].mountPath: '/v' is there twice"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(r, &ALGORITHMPROFILING, cases[i].spec, cases[i].says);
}

static void what_is_wrong_with_the_rest(void **state)
{
        static const struct {
                const char *spec, *says;
        } cases[] = {
                {"'algorithmName': 'quick_sort'", "spec.inputSize: is missing"},
                {"'algorithmName': 'quick_sort', 'inputSize': 0",
                 "spec.inputSize: must be a whole number from 1"},
                {Q "'inputSizes': [0]", "spec.inputSizes[0]: must be"},
                {Q "'inputSizes': 5", "spec.inputSizes: must be a list"},
                {Q "'iterations': 0", "spec.iterations: must be"},
                {Q "'warmup': -1", "spec.warmup: must be"},
                {Q "'pods': 21", "spec.pods: must be"},
                {Q "'seed': -1", "spec.seed: must be"},
                {Q "'priority': 11", "spec.priority: "},
                {Q "'timeout': 'soon'", "spec.timeout: 'soon' is no time"},
                {Q "'timeout': '90'", "spec.timeout: "},
                {Q "'runTimeout': '0s'", "spec.runTimeout: '0s' is no time"},
                {Q "'runTimeout': '169h'", "spec.runTimeout: '169h' is no time above 0 and up to 7 days"},
                {Q "'resources': {'requests': {'memory': '1001T'}}",
                 "spec.resources.requests.memory: '1001T' is more than 1e+15"},
                {Q "'resources': {'limits': {'cpu': '2P'}}", "spec.resources.limits.cpu: '2P' is more than"},
                {Q "'price': {'perRun': 1e16}", "spec.price.perRun: must be a number from 0 to 1e+15"},
                {Q "'ttlSecondsAfterFinished': -1", "spec.ttlSecondsAfterFinished: must be"},
                {Q "'queueName': 'A b'", "spec.queueName: 'A b' is no name of a queue"},
                {Q "'price': {'perRun': -1}", "spec.price.perRun: must be"},
                {Q "'retries': 11", "spec.retries: "},
                {Q "'iterations': 10000, 'pods': 20", "spec.iterations: makes 200020 runs in all"},
        };
        static const struct {
                const char *spec, *says;
        } comparisons[] = {
                {"'inputSize': 1", "spec.algorithms: is empty"},
                {TWO("{'name': 'quick_sort'}", "{'name': 'quick_sort'}"),
                 "spec.algorithms[1].name: 'quick_sort' is there twice"},
                {TWO("{'name': 'quick_sort'}", "{'name': 'merge_sort'}") ", 'baseline': 'x'",
                 "spec.baseline: 'x' is none of the algorithms"},
                {TWO("{'name': 'quick_sort'}", "{'name': 'b', 'type': 'custom'}"),
                 "spec.algorithms[1].customConfig.command: is missing"},
                {TWO("{'name': 'quick_sort', 'framework': 'dask'}", "{'name': 'merge_sort'}"),
                 "spec.algorithms[0].framework: has a meaning with type ml only"},
                {TWO("{'name': 'a', 'type': 'ml', 'framework': 'dask', 'mlConfig': {'framework': 'ray'}}",
                     "{'name': 'merge_sort'}"),
                 "spec.algorithms[0].mlConfig.framework: is 'ray' and framework 'dask'"},
                {TWO("{'name': 'quick_sort'}", "{'name': 'merge_sort'}") ", 'minEffect': 2",
                 "spec.minEffect: must be a number from 0 to 1"},
                {TWO("{'name': 'quick_sort'}",
                     "{'name': 'merge_sort'}") ", 'resources': {'requests': {'cpu': -1}}",
                 "spec.resources.requests.cpu: '-1' is below 0"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_refused(r, &ALGORITHMPROFILING, cases[i].spec, cases[i].says);
        for (size_t i = 0; i < ARRAY_LEN(comparisons); i++)
                assert_refused(r, &ALGORITHMCOMPARISON, comparisons[i].spec, comparisons[i].says);
}

static void all_of_it_is_told_at_once(void **state)
{
        struct rig *r = *state;
        const char *why = checked(r, &ALGORITHMPROFILING,
                                  "'algorithmName': 'no', 'iterations': 0, 'timeout': 'x', 'seed': 'y'");

        assert_says(why, "spec.algorithmName: ");
        assert_says(why, "; spec.inputSize: ");
        assert_says(why, "; spec.iterations: ");
        assert_says(why, "; spec.timeout: ");
        assert_says(why, "; spec.seed: ");
}

static void what_does_not_fit_into_an_argument_is_refused(void **state)
{
        struct rig *r = *state;
        char *text = arena_alloc(&r->arena, 70001);

        memset(text, 'x', 70000);
        text[70000] = '\0';
        assert_refused(
                r, &ALGORITHMPROFILING,
                arena_printf(&r->arena, C "'customConfig': {'image': 'i', 'command': ['c', '%s']}", text),
                "must fit into 64 KiB");
}

static const struct CMUnitTest tests[] = {
        TEST(defaults_of_a_profiling),
        TEST(the_task_decides_the_size_of_the_data),
        TEST(an_entry_without_a_task_is_trained_and_scored),
        TEST(all_sizes_are_measured_once),
        TEST(what_shares_a_container_is_a_group),
        TEST(what_may_be_said_passes),
        TEST(what_is_wrong_with_an_algorithm),
        TEST(what_is_wrong_with_a_custom_one),
        TEST(what_is_wrong_with_the_rest),
        TEST(all_of_it_is_told_at_once),
        TEST(what_does_not_fit_into_an_argument_is_refused),
};

UNIT_MAIN(tests)
