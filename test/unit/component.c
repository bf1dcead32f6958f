#include "unit/unit.h"

#include "cli/component.h"

static struct component_spec spec(const char *type)
{
        return (struct component_spec){.name = "n",
                                       .ns = "default",
                                       .algorithm_name = "a",
                                       .algorithm_type = type,
                                       .timeout = "1h",
                                       .input_size = 50000,
                                       .iterations = 1,
                                       .priority = 5};
}

/* A document, with ' for ". */
#define DOC(text) json_build(&a, text)

static void assert_same(struct arena *a, const struct json *found, const struct json *expected)
{
        if (!found || !json_equal(found, expected))
                fail_msg("%s\nis not\n%s", found ? json_print(a, found) : "nothing", json_print(a, expected));
}

static const struct json *spec_of(const struct json *object)
{
        return json_at(object, "spec");
}

static void test_the_seed_s_profiling(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct component_spec s = spec("ml");
        struct err err = ERR_INIT;

        s.framework = "dask";
        s.task = "feature_selection";
        s.dataset_size = 50000;
        s.n_features = 200;
        s.n_select = 50;
        assert_same(
                &a, component_profiling(&s, &a, &err),
                DOC("{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmProfiling', 'metadata': {"
                    "'name': 'n', 'namespace': 'default', 'labels': {'app': 'dprofiler', 'type': 'ml', "
                    "'kubeflow-component': 'true'}}, 'spec': {'algorithmName': 'a', 'algorithmType': 'ml', "
                    "'inputSize': 50000, 'iterations': 1, 'priority': 5, 'timeout': '1h', 'mlConfig': "
                    "{'framework': 'dask', 'task': 'feature_selection', 'datasetSize': 50000, 'nFeatures': "
                    "200, 'nSelect': 50}}}"));
}

static void test_what_is_not_set_is_left_out(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct component_spec s = spec("ml");
        struct err err = ERR_INIT;

        s.framework = s.task = s.timeout = "";
        assert_same(&a, spec_of(component_profiling(&s, &a, &err)),
                    DOC("{'algorithmName': 'a', 'algorithmType': 'ml', 'inputSize': 50000, 'iterations': 1, "
                        "'priority': 5, 'mlConfig': {}}"));
        s = spec("sorting");
        assert_same(
                &a, spec_of(component_profiling(&s, &a, &err)),
                DOC("{'algorithmName': 'a', 'algorithmType': 'sorting', 'inputSize': 50000, 'iterations': 1, "
                    "'priority': 5, 'timeout': '1h'}"));
}

static void test_a_command_is_given_by_words_or_as_json(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct component_spec s = spec("custom");
        struct err err = ERR_INIT;
        const struct json *expected = DOC(
                "{'image': 'i', 'command': ['python', 'x.py'], 'args': ['--name', 'y']}");

        s.image = "i";
        *vec_push(&s.command) = "python";
        *vec_push(&s.command) = "x.py";
        *vec_push(&s.args) = "--name";
        *vec_push(&s.args) = "y";
        s.command_json = "[]";
        assert_same(&a, json_at(spec_of(component_profiling(&s, &a, &err)), "customConfig"), expected);
        s.args_json = "[\"y\"]";
        assert_null(component_profiling(&s, &a, &err));
        assert_int_equal(err.code, E_CONFIG);
        vec_done(&s.command);
        vec_done(&s.args);
        s.command_json = "[\"python\", \"x.py\"]";
        s.args_json = "[\"--name\", \"y\"]";
        assert_same(&a, json_at(spec_of(component_profiling(&s, &a, &err)), "customConfig"), expected);
}

static void test_what_is_missing_or_does_not_fit_is_said(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct component_spec s = spec("custom"), t = spec("sorting");
        struct err err = ERR_INIT;

        assert_null(component_profiling(&s, &a, &err));
        assert_string_equal(err.text, "--algorithm-type custom needs --image and --command");
        s.image = "i";
        s.command_json = "{}";
        assert_null(component_profiling(&s, &a, &err));
        assert_string_equal(err.text, "--command-json: it is object, and a JSON array is wanted");
        s.command_json = "[1]";
        assert_null(component_profiling(&s, &a, &err));
        assert_string_equal(err.text, "--command-json: all of it must be strings");
        t.input_size = 0;
        assert_null(component_profiling(&t, &a, &err));
        assert_string_equal(err.text, "--action profile needs --input-size");
        assert_null(component_comparison(&t, &a, &err));
        assert_string_equal(err.text, "--action compare needs --algorithms-file");
        t.algorithms = "[]";
        t.input_size = 1;
        assert_null(component_comparison(&t, &a, &err));
        t.algorithms = NULL;
        t.algorithms_file = "/does/not/exist";
        assert_null(component_comparison(&t, &a, &err));
        assert_int_not_equal(err.code, E_CONFIG);
}

static void test_a_comparison(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct component_spec s = spec("sorting");
        struct err err = ERR_INIT;

        s.algorithms = "[{\"name\": \"quick_sort\"}, {\"name\": \"m\", \"type\": \"ml\"}]";
        assert_same(&a, spec_of(component_comparison(&s, &a, &err)),
                    DOC("{'algorithms': [{'name': 'quick_sort'}, {'name': 'm', 'type': 'ml'}], 'inputSize': "
                        "50000, "
                        "'iterations': 1, 'priority': 5, 'timeout': '1h', 'parallel': true}"));
}

static void test_an_option_of_another_type_is_named(void **state)
{
        struct component_spec s = spec("sorting");

        assert_null(component_unused(&s));
        s.n_select = 20;
        assert_string_equal(component_unused(&s), "--n-select");
        s.algorithm_type = "ml";
        assert_null(component_unused(&s));
        s.image = "i";
        assert_string_equal(component_unused(&s), "--image");
}

static void test_metrics_are_the_numbers_by_name(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *one = DOC(
                "{'executionTime': 1.5, 'n': 3, 'costBasis': 'x', 'sizes': [{'n': 1}], 'metrics': {'loss': "
                "0.25, 'who': 'x'}, 'mlResults': {'accuracy': 0.9, 'featureImportances': {'f1': 0.5}}}");
        const struct json *several = DOC(
                "[{'algorithmName': 'a', 'inputSize': 10, 'executionTime': 1}, {'algorithmName': 'b', "
                "'inputSize': 10, 'executionTime': 2}, {'algorithmName': 'b', 'inputSize': 20, "
                "'executionTime': 3}]");

        assert_same(&a, component_metrics(one, &a),
                    DOC("{'executionTime': 1.5, 'n': 3, 'metrics.loss': 0.25, 'mlResults.accuracy': 0.9}"));
        assert_same(&a, component_metrics(several, &a),
                    DOC("{'a.inputSize': 10, 'a.executionTime': 1, 'b.10.inputSize': 10, "
                        "'b.10.executionTime': 2, "
                        "'b.20.inputSize': 20, 'b.20.executionTime': 3}"));
        assert_same(&a, component_metrics(NULL, &a), DOC("{}"));
}

static void test_the_launcher_is_told_the_metrics(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *input = DOC(
                "{'outputs': {'outputFile': '/o/output.json', 'artifacts': {'results': {'artifacts': "
                "[{'name': 'r', 'type': {'schemaTitle': 'system.Artifact'}, 'uri': 's3://b/r'}]}, "
                "'metrics': {'artifacts': [{'name': 'm', 'type': {'schemaTitle': 'system.Metrics'}, "
                "'uri': 's3://b/m'}]}}}}");
        const char *path;

        assert_same(&a, component_executor_output(input, DOC("{'n': 3}"), &a, &path),
                    DOC("{'artifacts': {'metrics': {'artifacts': [{'name': 'm', 'uri': 's3://b/m', "
                        "'metadata': {'n': "
                        "3}}]}}}"));
        assert_string_equal(path, "/o/output.json");
        assert_null(component_executor_output(DOC("{'outputs': {'outputFile': '/o'}}"), NULL, &a, &path));
        assert_null(component_executor_output(DOC("{}"), NULL, &a, &path));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_seed_s_profiling),
        cmocka_unit_test(test_what_is_not_set_is_left_out),
        cmocka_unit_test(test_a_command_is_given_by_words_or_as_json),
        cmocka_unit_test(test_what_is_missing_or_does_not_fit_is_said),
        cmocka_unit_test(test_a_comparison),
        cmocka_unit_test(test_an_option_of_another_type_is_named),
        cmocka_unit_test(test_metrics_are_the_numbers_by_name),
        cmocka_unit_test(test_the_launcher_is_told_the_metrics),
};

UNIT_MAIN(tests)
