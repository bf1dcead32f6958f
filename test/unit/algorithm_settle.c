/*
 * An AlgorithmProfiling or AlgorithmComparison from its creation to its end: phases, results, and what people do on the way.
 */
#include "unit/algorithm_rig.h"

#include <math.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, algorithm_setup, flow_teardown)
#define Q          "'algorithmName': 'quick_sort', 'inputSize': 10"
#define JOB_1      "dprofiler-r"
#define JOB_2      "dprofiler-r-2"

#define TIME(median) \
        "'statistics': {'time': {'median': " median ", 'ciLow': 0.9, 'ciHigh': 1.1}, 'cpu': {'mean': 1}}"
#define ENTRY(name, size, time)                                                                              \
        "{'name': '" name "', 'type': 'sorting', 'size': " size ", 'n': 5, 'invalid': 1, 'invalidReasons': " \
        "{'exit 3': 1}, 'executionTime': " time ", 'memoryUsage': 2, 'cpuUsage': 99.5, 'iterations': 5, "    \
        "'metrics': {'swaps': 7, 'bad': 1e400, 'none': null}, 'throughput': 10, 'cost': 0.5, " TIME(         \
                time) "}"
#define RESULT(entries)                                                                                   \
        "{'version': 1, 'unit': 'process in one pod', 'contended': false, 'pods': 1, 'machine': {'cpu': " \
        "'Fast 1', "                                                                                      \
        "'cpus': 2}, 'warnings': ['w', 5], 'algorithms': [" entries "]"
#define GOOD RESULT(ENTRY("quick_sort", "10", "1.5")) "}"

static void begin(struct flow *f, const struct kube_type *type, const char *spec)
{
        request_of(&f->rig, type, spec, NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_non_null(there(f, &KUBE_JOB, JOB_1));
}

static void runs(struct flow *f, const char *job, unsigned attempt)
{
        profiler_runs(f, job, attempt, "{'phase': 'Measuring', 'message': 'm'}");
        come_to_rest(f);
        assert_phase(&f->rig, "Running");
}

static void completes(struct flow *f, const struct kube_type *type, const char *spec, const char *result)
{
        begin(f, type, spec);
        runs(f, JOB_1, 1);
        profiler_succeeds(f, JOB_1, 1, result);
        come_to_rest(f);
}

static void fails(struct flow *f, const char *spec)
{
        begin(f, &ALGORITHMPROFILING, spec);
        profiler_fails(
                f, JOB_1, 1,
                "{'phase': 'Failed', 'message': 'm', 'reason': 'FrameworkUnavailable', 'error': 'ray is "
                "not there'}");
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
}

/* ---- the flow */

static void a_profiling_from_begin_to_end(void **state)
{
        struct flow *f = *state;
        const struct json *s;

        completes(f, &ALGORITHMPROFILING, Q ", 'iterations': 5", GOOD);
        s = status_now(&f->rig);
        assert_phase(&f->rig, "Completed");
        assert_string_equal(json_str(s, "jobId"), JOB_1);
        assert_string_equal(json_str(s, "startTime"), "2026-11-15T12:00:00Z");
        assert_string_equal(json_str(s, "completionTime"), "2026-11-15T11:01:00Z");
        assert_condition(s, "Ready", "True", "Succeeded");
        assert_condition(s, "Stalled", "False", "Succeeded");
        assert_condition(s, "Progressing", "False", "Succeeded");
        assert_json(&f->rig, json_at(s, "results"),
                    "{'executionTime': 1.5, 'memoryUsage': 2, 'cpuUsage': 99.5, 'n': 5, 'ciLow': 0.9, "
                    "'ciHigh': 1.1, "
                    "'iterations': 5, 'invalid': 1, 'metrics': {'swaps': 7}, 'throughput': 10, 'cost': 0.5}");
        assert_json(&f->rig, json_at(s, "samplesRef"),
                    "{'configMap': 'r-run-results', 'key': 'samples.json'}");
        assert_json(&f->rig, json_at(s, "statistics"),
                    "{'unit': 'process in one pod', 'contended': false, 'pods': 1, 'machine': {'cpu': 'Fast "
                    "1', 'cpus': "
                    "2}, 'warnings': ['w'], 'algorithms': [{'algorithmName': 'quick_sort', 'inputSize': 10, "
                    "'n': 5, "
                    "'invalid': 1, 'invalidReasons': {'exit 3': 1}, 'time': {'median': 1.5, 'ciLow': 0.9, "
                    "'ciHigh': "
                    "1.1}, 'cpu': {'mean': 1}}]}");
        assert_int_equal(json_int(json_at(s, "progress"), "completedIterations", -1), 5);
        assert_int_equal(json_int(json_at(s, "progress"), "totalIterations", -1), 5);
        assert_null(there(f, &KUBE_CONFIGMAP, "r-run-status")); /* all that it told has been taken over */
        assert_non_null(there(f, &KUBE_CONFIGMAP, "r-run-results"));
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(count_events(f, (const char *[]){"Accepted", "Running", "Succeeded"}[i]), 1);
}

static void the_history_is_told(void **state)
{
        struct flow *f = *state;
        const struct history_measure *m;

        completes(f, &ALGORITHMPROFILING, Q, GOOD);
        assert_int_equal(f->rows, 1);
        assert_string_equal(f->row->kind, "AlgorithmProfiling");
        assert_string_equal(f->row->outcome, "Succeeded");
        assert_string_equal(f->row->samples, "{\"columns\":[]}");
        assert_says(f->row->machine, "Fast 1");
        assert_string_equal(f->row->image, "sonde-pod");
        assert_int_equal(f->row->n_measures, 1);
        m = &f->row->measures[0];
        assert_string_equal(m->series, "ns/quick_sort/sorting//10/Fast 1");
        assert_float_equal(m->time, 1.5, 1e-9);
        assert_float_equal(m->low, 0.9, 1e-9);
        assert_float_equal(m->memory, 2e6, 1e-3);
        assert_float_equal(m->cpu, 0.995, 1e-9);
        assert_float_equal(m->cost, 0.5, 1e-9);
}

static const char *series_with(struct flow *f, const char *spec)
{
        void *other = NULL;
        const char *series;

        algorithm_setup(&other);
        completes(other, &ALGORITHMPROFILING, spec, GOOD);
        series = arena_strdup(&f->rig.arena, ((struct flow *)other)->row->measures[0].series);
        flow_teardown(&other);
        return series;
}

/* What was told to do something else is no slower run of the same. */
static void what_is_done_is_in_the_series(void **state)
{
        static const char *const specs[] = {Q,
                                            Q ", 'parameters': {'pivot_strategy': 'first'}",
                                            Q ", 'parameters': {'pivot_strategy': 'last'}",
                                            Q ", 'iterations': 5",
                                            Q ", 'resources': {'limits': {'cpu': '2'}}",
                                            Q ", 'resources': {'limits': {'cpu': '1'}}",
                                            Q ", 'resources': {'requests': {'cpu': '1'}}",
                                            Q ", 'resources': {'limits': {'memory': '1Gi'}}",
                                            Q ", 'resources': {'limits': {'cpu': '1000m'}}"};
        const char *series[ARRAY_LEN(specs)];
        struct flow *f = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++)
                series[i] = series_with(f, specs[i]);
        assert_string_equal(series[0], series[3]);
        assert_string_not_equal(series[0], series[1]);
        assert_string_not_equal(series[1], series[2]);
        assert_true(str_has_prefix(str_of(series[1]), str_of(series[0])));
        for (size_t i = 4; i < 8; i++) /* a container that has less is slower by itself */
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(series[i], series[k]);
        assert_string_equal(series[5], series[8]);
}

#define CUSTOM(env)                                                                                   \
        "'algorithmName': 'quick_sort', 'algorithmType': 'custom', 'inputSize': 10, 'customConfig': " \
        "{'image': "                                                                                  \
        "'i', 'command': ['c']" env "}"

static void the_environment_is_in_the_series(void **state)
{
        struct flow *f = *state;
        const char *none = series_with(f, CUSTOM("")),
                   *one = series_with(f, CUSTOM(", 'env': [{'name': 'THREADS', 'value': '1'}]")),
                   *two = series_with(f, CUSTOM(", 'env': [{'name': 'THREADS', 'value': '2'}]"));

        assert_string_not_equal(none, one);
        assert_string_not_equal(one, two);
        assert_null(strstr(two, "THREADS")); /* the history keeps none of it */
}

/* The workload may write the result, too: what it says of the machine must not make a name that nothing can hold. */
static void a_machine_with_a_long_name_is_cut(void **state)
{
        struct flow *f = *state;
        char name[10241];

        for (size_t i = 0; i < sizeof(name) - 1; i++)
                name[i] = "\xc3\xa4"[i & 1];
        name[sizeof(name) - 1] = '\0';
        completes(f, &ALGORITHMPROFILING, Q,
                  arena_printf(&f->rig.arena, "{'version': 1, 'machine': {'cpu': 'x%s'}, 'algorithms': [%s]}",
                               name, ENTRY("quick_sort", "10", "1.5")));
        assert_phase(&f->rig, "Completed");
        assert_int_equal(strlen(f->row->measures[0].series), strlen("ns/quick_sort/sorting//10/") + 199);
        assert_true(utf8_valid(f->row->measures[0].series, strlen(f->row->measures[0].series)));
}

static void a_sweep_tells_every_size(void **state)
{
        struct flow *f = *state;
        const struct json *s, *sizes;

        completes(f, &ALGORITHMPROFILING, Q ", 'inputSizes': [20]",
                  RESULT(ENTRY("quick_sort", "10", "1") ", " ENTRY(
                          "quick_sort", "20", "2")) ", 'scaling': [{'algorithm': 'quick_sort', 'exponent': "
                                                    "1.1, 'ciLow': 1, 'ciHigh': 1.2, 'sizes': 2, "
                                                    "'verdict': 'linear'}]}");
        s = status_now(&f->rig);
        sizes = json_path(s, "results.sizes");
        assert_json(&f->rig, json_path(s, "results.executionTime"), "1");
        assert_int_equal(json_len(sizes), 2);
        assert_int_equal(json_int(json_index(sizes, 1), "inputSize", 0), 20);
        assert_json(&f->rig, json_at(json_index(sizes, 1), "executionTime"), "2");
        assert_json(&f->rig, json_path(s, "scaling[0].exponent"), "1.1");
        assert_int_equal(f->row->n_measures, 2);
}

/* The pod of a comparison with several images, as its kubelet has it at the end. */
static const char *images(struct flow *f, const char *spec)
{
        struct json *pod;

        begin(f, &ALGORITHMCOMPARISON, spec);
        runs(f, JOB_1, 1);
        profiler_succeeds(f, JOB_1, 1, RESULT(ENTRY("quick_sort", "10", "1.5")) "}");
        pod = object_json(f, &KUBE_POD, pod_name(f, JOB_1));
        json_set(&f->rig.arena, pod, "spec",
                 parse(&f->rig,
                       "{'nodeName': 'n1', 'containers': [{'name': 'coordinator', 'image': 'sonde-pod'}, "
                       "{'name': 'group-1', 'image': 'ml:1'}, {'name': 'group-2', 'image': 'i:10'}, "
                       "{'name': 'group-3', 'image': 'i:1'}, {'name': 'group-4', 'image': 'ml:1'}, "
                       "{'name': 'mesh', 'image': 'mesh'}, {'name': 'relay', 'image': 'sonde-pod'}]}"));
        json_set(&f->rig.arena, pod, "metadata", json_copy(&f->rig.arena, json_at(pod, "metadata")));
        json_set(&f->rig.arena, json_at(pod, "metadata"), "annotations",
                 parse(&f->rig, "{'kubectl.kubernetes.io/default-container': 'coordinator'}"));
        json_set(&f->rig.arena, json_at(pod, "status"), "containerStatuses",
                 parse(&f->rig,
                       "[{'name': 'coordinator', 'imageID': 'sha256:0', 'state': {'terminated': {'exitCode': "
                       "0, "
                       "'finishedAt': '2026-11-15T11:01:00Z'}}}, {'name': 'group-1', 'imageID': "
                       "'docker-pullable://r.io/ml@sha256:1'}, {'name': 'group-2', 'imageID': ''}, {'name': "
                       "'group-4', 'imageID': 'r.io/ml@sha256:1'}]"));
        come_to_rest(f);
        assert_phase(&f->rig, "Completed");
        return f->row->image;
}

#define ML     "{'name': 'm', 'type': 'ml', 'framework': 'sklearn'}"
#define ITS(n) "{'name': '" n "', 'type': 'custom', 'customConfig': {'image': '" n "', 'command': ['c']}}"

static void the_images_that_were_measured_are_told(void **state)
{
        assert_string_equal(images(*state, "'inputSize': 10, 'algorithms': [" ML ", " ITS("quick_sort") "]"),
                            "ml:1@sha256:1, i:10, i:1");
}

static void the_coordinator_is_one_of_them_where_it_measures(void **state)
{
        assert_string_equal(images(*state, "'inputSize': 10, 'algorithms': [{'name': 'quick_sort'}, " ML "]"),
                            "sonde-pod (sha256:0), ml:1@sha256:1, i:10, i:1");
}

#define TWO                                                                                                 \
        "'inputSize': 10, 'algorithms': [{'name': 'quick_sort'}, {'name': 'm', 'type': 'ml', 'framework': " \
        "'spark'}]"

static void a_comparison_with_one_that_failed(void **state)
{
        struct flow *f = *state;
        const struct json *s, *failed;

        completes(
                f, &ALGORITHMCOMPARISON, TWO,
                RESULT(ENTRY("quick_sort", "10",
                             "1.5") ", {'name': 'm', 'type': 'ml', 'framework': 'spark', 'size': 10, "
                                    "'n': 0, 'invalid': 3, 'error': {'reason': 'FrameworkUnavailable', "
                                    "'message': 'pyspark is not in "
                                    "the image'}}") ", 'comparison': {'baseline': 'quick_sort', 'alpha': "
                                                    "0.05, 'pairs': [{'of': 'time', 'a': 'm', 'b': "
                                                    "'quick_sort', 'size': 10, 'ratio': 2, 'pAdjusted': 0.5, "
                                                    "'effectSize': 0.1, 'verdict': 'inconclusive', "
                                                    "'needed': 12}, {'of': 'memory', 'a': 'm', 'b': "
                                                    "'quick_sort', 'size': 10, 'ratio': 9}], 'summary': 's', "
                                                    "'pareto': {'memory': ['quick_sort', 5], 'size': 10}}, "
                                                    "'recommendations': [{'kind': 'fastest', 'text': 't', "
                                                    "'evidence': 'e', 'more': 1}]}");
        s = status_now(&f->rig);
        assert_phase(&f->rig, "Completed");
        assert_string_equal(json_str(s, "comparisonId"), JOB_1);
        assert_string_equal(json_cstr(json_path(s, "results[0].algorithmName")), "quick_sort");
        failed = json_path(s, "results[1]");
        assert_json(&f->rig, json_at(failed, "error"),
                    "{'reason': 'FrameworkUnavailable', 'message': 'pyspark is not in the image'}");
        assert_null(json_at(failed, "executionTime"));
        assert_string_equal(json_str(failed, "framework"), "spark");
        assert_string_equal(json_str(failed, "verdict"), "inconclusive");
        assert_json(&f->rig, json_at(failed, "ratio"), "2");
        assert_json(&f->rig, json_at(failed, "pValue"), "0.5");
        assert_int_equal(json_int(json_path(s, "comparison.pairs[0]"), "needed", 0), 12);
        assert_json(&f->rig, json_path(s, "comparison.pareto"), "{'memory': ['quick_sort'], 'size': 10}");
        assert_json(&f->rig, json_path(s, "recommendations[0]"),
                    "{'kind': 'fastest', 'text': 't', 'evidence': 'e'}");
        assert_int_equal(f->row->n_measures, 1);
}

static void what_a_framework_said(void **state)
{
        struct flow *f = *state;

        completes(f, &ALGORITHMPROFILING,
                  "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, 'mlConfig': {'framework': "
                  "'dask'}",
                  RESULT("{'name': 'm', 'type': 'ml', 'framework': 'dask', 'size': 10, 'n': 1, "
                         "'executionTime': 1, "
                         "'mlResults': {'accuracy': 0.9, 'framework': 'dask', 'selectedFeatures': ['f1'], "
                         "'bestParams': "
                         "{'a': 1}, 'featureImportances': {'f1': 0.5}, 'trials': [{'params': {'a': 1}, "
                         "'score': 0.9, "
                         "'seconds': 1}], 'trainingLoss': 'low', 'lossFunction': 'log', 'parameters': {'n': "
                         "3}, "
                         "'featureImportancesTotal': 900, 'selectedFeaturesTotal': 300, 'cut': true}, 'gpu': "
                         "{'utilizationPercent': 60}}") ", 'left': ['pairs', 5]}");
        assert_phase(&f->rig, "Completed");
        assert_json(
                &f->rig, json_path(status_now(&f->rig), "results.mlResults"),
                "{'accuracy': 0.9, 'framework': 'dask', 'selectedFeatures': ['f1'], 'bestParams': {'a': 1}, "
                "'featureImportances': {'f1': 0.5}, 'trials': [{'params': {'a': 1}, 'score': 0.9, 'seconds': "
                "1}], "
                "'lossFunction': 'log', 'parameters': {'n': 3}, 'featureImportancesTotal': 900, "
                "'selectedFeaturesTotal': 300, 'cut': true}");
        assert_json(&f->rig, json_path(status_now(&f->rig), "results.gpu"), "{'utilizationPercent': 60}");
        assert_json(&f->rig, json_path(status_now(&f->rig), "statistics.left"), "['pairs']");
}

/* ---- while it runs */

static void progress_is_live(void **state)
{
        struct flow *f = *state;
        const struct json *progress;

        begin(f, &ALGORITHMPROFILING, Q ", 'iterations': 10");
        profiler_runs(f, JOB_1, 1,
                      "{'phase': 'Measuring', 'message': 'block 4/10: quick_sort, size 10', 'progress': "
                      "{'currentStep': 4, "
                      "'totalSteps': 10}, 'usage': {'memoryMb': 12.345, 'cpuPercent': 99.6}}");
        come_to_rest(f);
        progress = json_at(status_now(&f->rig), "progress");
        assert_int_equal(json_int(progress, "completedIterations", -1), 3);
        assert_int_equal(json_int(progress, "totalIterations", -1), 10);
        assert_json(&f->rig, json_at(progress, "usage"), "{'memoryMb': 12, 'cpuPercent': 100}");
        assert_string_equal(json_str(progress, "message"), "block 4/10: quick_sort, size 10");
}

/* ---- how it ends otherwise */

static void the_probe_s_reason_is_told(void **state)
{
        struct flow *f = *state;
        const struct json *s;

        fails(f, "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, 'mlConfig': {'framework': "
                 "'ray'}");
        s = status_now(&f->rig);
        assert_condition(s, "Stalled", "True", "FrameworkUnavailable");
        assert_condition(s, "Ready", "False", "FrameworkUnavailable");
        assert_says(json_str(condition(s, "Ready"), "message"), "ray is not there");
        assert_non_null(json_str(s, "completionTime"));
        assert_int_equal(count_events(f, "FrameworkUnavailable"), 1);
        assert_string_equal(f->row->outcome, "Failed");
}

static void a_failed_one_begins_anew_when_it_is_changed(void **state)
{
        struct flow *f = *state;

        fails(f, "'algorithmName': 'm', 'algorithmType': 'ml', 'inputSize': 10, 'mlConfig': {'framework': "
                 "'ray'}");
        come_to_rest(f); /* and does not by itself */
        assert_phase(&f->rig, "Failed");
        edit(&f->rig, "mlConfig", "{'framework': 'sklearn'}");
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_non_null(there(f, &KUBE_JOB, JOB_2));
        assert_null(json_at(status_now(&f->rig), "completionTime"));
        assert_condition(status_now(&f->rig), "Stalled", "False", "InProgress");
        runs(f, JOB_2, 2);
        profiler_succeeds(f, JOB_2, 2,
                          RESULT("{'name': 'm', 'type': 'ml', 'size': 10, 'n': 1, 'executionTime': 1}") "}");
        come_to_rest(f);
        assert_phase(&f->rig, "Completed");
        assert_string_equal(json_str(status_now(&f->rig), "jobId"), JOB_2);
        assert_int_equal(f->rows, 2);
}

static void a_completed_one_refuses_a_change(void **state)
{
        struct flow *f = *state;

        completes(f, &ALGORITHMPROFILING, Q, GOOD);
        edit(&f->rig, "inputSize", "20");
        come_to_rest(f);
        assert_phase(&f->rig, "Completed");
        assert_condition(status_now(&f->rig), "SpecAccepted", "False", "SpecChangeRejected");
        assert_int_equal(count_events(f, "SpecChangeRejected"), 1);
        assert_null(there(f, &KUBE_JOB, JOB_2));
        edit(&f->rig, "priority", "9"); /* that may be */
        edit(&f->rig, "inputSize", "10");
        come_to_rest(f);
        assert_condition(status_now(&f->rig), "SpecAccepted", "True", "Accepted");
}

static void a_spec_that_cannot_be_run_is_refused_and_mended(void **state)
{
        struct flow *f = *state;

        request_of(&f->rig, &ALGORITHMPROFILING, "'algorithmName': 'no_sort', 'inputSize': 10", NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Stalled", "True", "Invalid");
        assert_int_equal(count_events(f, "Invalid"), 1);
        assert_int_equal(f->rig.children.n, 0);
        edit(&f->rig, "algorithmName", "'quick_sort'");
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_null(json_at(status_now(&f->rig), "completionTime"));
        assert_non_null(there(f, &KUBE_JOB, JOB_1));
}

static void cancelled(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q);
        runs(f, JOB_1, 1);
        edit(&f->rig, "cancel", "true");
        come_to_rest(f);
        assert_phase(&f->rig, "Cancelled");
        assert_condition(status_now(&f->rig), "Stalled", "True", "Cancelled");
        assert_null(there(f, &KUBE_JOB, JOB_1));
        edit(&f->rig, "cancel", "false");
        edit(&f->rig, "inputSize", "20");
        come_to_rest(f);
        assert_phase(&f->rig, "Cancelled"); /* for good */
}

static void cancelled_before_it_began(void **state)
{
        struct flow *f = *state;

        request_of(&f->rig, &ALGORITHMPROFILING, Q ", 'cancel': true", NULL);
        come_to_rest(f);
        assert_phase(&f->rig, "Cancelled");
        assert_int_equal(f->rig.children.n, 0);
}

static void the_timeout_ends_it(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q ", 'timeout': '1h'");
        runs(f, JOB_1, 1);
        f->rig.view.now = NOON + 3601 * USEC_PER_SEC;
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Stalled", "True", "DeadlineExceeded");
        assert_null(there(f, &KUBE_JOB, JOB_1));
}

static void suspended_and_resumed(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q);
        runs(f, JOB_1, 1);
        edit(&f->rig, "suspend", "true");
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_condition(status_now(&f->rig), "Suspended", "True", "Suspended");
        assert_null(there(f, &KUBE_JOB, JOB_1));
        edit(&f->rig, "suspend", "false");
        come_to_rest(f);
        assert_non_null(there(f, &KUBE_JOB, JOB_2));
}

static void without_a_result_it_has_failed(void **state)
{
        static const char *const results[] = {NULL, "[]", "{'version': 1}", "{'algorithms': 5}"};
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q);
        for (size_t i = 0; i < ARRAY_LEN(results); i++) {
                struct json *request = (struct json *)f->rig.view.request;
                struct json *before = json_copy(&f->rig.arena, json_at(request, "status"));

                profiler_succeeds(f, JOB_1, 1, results[i]);
                come_to_rest(f);
                assert_phase(&f->rig, "Failed");
                assert_condition(status_now(&f->rig), "Stalled", "True", "ResultMissing");
                json_set(&f->rig.arena, request, "status", before);
                come_to_rest(f);
        }
}

/* ---- one pod after another */

static void pods_follow_each_other(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q ", 'pods': 2, 'iterations': 4");
        runs(f, JOB_1, 1);
        profiler_succeeds(f, JOB_1, 1, "{'morePods': 1}");
        come_to_rest(f);
        assert_phase(&f->rig, "Running");
        assert_non_null(there(f, &KUBE_JOB, JOB_2));
        assert_json(&f->rig, json_at(status_now(&f->rig), "pods"),
                    "{'done': 1, 'total': 2, 'attempt': 1, 'node': 'n1'}");
        assert_json(&f->rig,
                    json_path(object_json(f, &KUBE_JOB, JOB_2),
                              "spec.template.spec.affinity.nodeAffinity."
                              "preferredDuringSchedulingIgnoredDuringExecution[0].preference"),
                    "{'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', 'values': "
                    "['n1']}]}");
        assert_null(json_path(object_json(f, &KUBE_JOB, JOB_1), "spec.template.spec.affinity"));
        assert_int_equal(count_events(f, "NextPod"), 1);
        assert_int_equal(json_int(json_at(status_now(&f->rig), "run"), "retries", -1), 0);
        profiler_runs(
                f, JOB_2, 2,
                "{'phase': 'Measuring', 'message': 'm', 'progress': {'currentStep': 3, 'totalSteps': 4}}");
        come_to_rest(f);
        assert_int_equal(json_int(json_at(status_now(&f->rig), "progress"), "completedIterations", -1), 6);
        profiler_succeeds(f, JOB_2, 2, GOOD);
        come_to_rest(f);
        assert_phase(&f->rig, "Completed");
        assert_json(&f->rig, json_at(status_now(&f->rig), "pods"),
                    "{'done': 2, 'total': 2, 'attempt': 2, 'node': 'n1'}");
        assert_says(json_str(condition(status_now(&f->rig), "Ready"), "message"),
                    "the median of 5 runs in 2 pods");
        assert_int_equal(f->rows, 1);
        assert_int_equal(f->row->attempt, 1); /* nothing was done again: the next one learns from it */
}

/* What went on from a checkpoint is no measure for the next run. */
static void a_pod_that_was_made_again_is_another_attempt(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q ", 'pods': 2");
        runs(f, JOB_1, 1);
        edit(&f->rig, "suspend", "true");
        come_to_rest(f);
        edit(&f->rig, "suspend", "false");
        come_to_rest(f);
        profiler_succeeds(f, JOB_2, 2, "{'morePods': 1}");
        come_to_rest(f);
        profiler_succeeds(f, "dprofiler-r-3", 3, GOOD);
        come_to_rest(f);
        assert_phase(&f->rig, "Completed");
        assert_int_equal(f->row->attempt, 3);
}

/* What the workload writes there itself does not keep the cluster busy for ever. */
static void pods_come_to_an_end(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q ", 'pods': 3");
        profiler_succeeds(f, JOB_1, 1, "{'morePods': 2}");
        come_to_rest(f);
        assert_non_null(there(f, &KUBE_JOB, JOB_2));
        profiler_succeeds(f, JOB_2, 2, "{'morePods': 2}");
        come_to_rest(f);
        assert_phase(&f->rig, "Failed");
        assert_condition(status_now(&f->rig), "Stalled", "True", "ResultMissing");
        assert_null(there(f, &KUBE_JOB, "dprofiler-r-3"));
}

static void the_next_pod_can_be_cancelled(void **state)
{
        struct flow *f = *state;

        begin(f, &ALGORITHMPROFILING, Q ", 'pods': 2");
        edit(&f->rig, "suspend", "true");
        profiler_succeeds(f, JOB_1, 1, "{'morePods': 1}");
        come_to_rest(f);
        assert_phase(&f->rig, "Pending");
        assert_null(there(f, &KUBE_JOB, JOB_2));
        edit(&f->rig, "cancel", "true");
        come_to_rest(f);
        assert_phase(&f->rig, "Cancelled");
}

/* ---- after the end */

static void it_goes_when_its_time_has_come(void **state)
{
        struct flow *f = *state;

        completes(f, &ALGORITHMPROFILING, Q ", 'ttlSecondsAfterFinished': 7200", GOOD);
        assert_false(f->gone);
        assert_true(f->rig.d.again_at > NOON);
        f->rig.view.now = NOON + 2 * 3600 * USEC_PER_SEC;
        turn(f);
        assert_true(f->gone);
}

static void a_job_with_a_container_that_never_came_is_taken_away(void **state)
{
        struct flow *f = *state;

        completes(f, &ALGORITHMCOMPARISON, TWO, RESULT(ENTRY("quick_sort", "10", "1")) "}");
        job_says(f, JOB_1, "{'active': 1}");
        come_to_rest(f);
        assert_null(there(f, &KUBE_JOB, JOB_1)); /* its end was an hour ago */
        assert_phase(&f->rig, "Completed");
}

/* ---- the trend */

static struct series_point points[40];

static void history_of(struct flow *f, size_t n, size_t good)
{
        for (size_t i = 0; i < n; i++)
                points[i] = (struct series_point){.uid = "u",
                                                  .name = arena_printf(&f->rig.arena, "run-%zu", i),
                                                  .finished = NOON - (n - i) * 3600 * USEC_PER_SEC,
                                                  .value = (i < good ? 1.0 : 1.5) + 0.001 * (double)(i % 3),
                                                  .low = NAN,
                                                  .high = NAN};
        f->series = (struct series){points, n};
}

static void a_change_for_the_worse_is_told(void **state)
{
        struct flow *f = *state;
        const struct json *one;

        history_of(f, 40, 31);
        completes(f, &ALGORITHMPROFILING, Q, GOOD);
        assert_condition(status_now(&f->rig), "PerformanceDegraded", "True", "Slower");
        assert_says(json_str(condition(status_now(&f->rig), "PerformanceDegraded"), "message"),
                    "the first such run is run-31");
        one = json_path(status_now(&f->rig), "trend[0]");
        assert_true(json_bool(one, "degraded", false));
        assert_string_equal(json_str(one, "firstBadRun"), "run-31");
        assert_int_equal(json_int(one, "runs", 0), 41);
        assert_int_equal(count_events(f, "PerformanceDegraded"), 0); /* it was so before this run */
}

static void when_it_turns_there_is_an_event(void **state)
{
        struct flow *f = *state;
        size_t n = 31, events = 0;

        for (; n < 40 && !events; n++) {
                void *other = NULL;

                algorithm_setup(&other);
                history_of(other, n, 30);
                completes(other, &ALGORITHMPROFILING, Q, GOOD);
                events = count_events(other, "PerformanceDegraded");
                flow_teardown(&other);
        }
        assert_int_equal(events, 1);
        assert_in_range(n, 32, 39);
        (void)f;
}

static void a_steady_one_is_said_to_be(void **state)
{
        struct flow *f = *state;

        history_of(f, 30, 0);
        completes(f, &ALGORITHMPROFILING, Q, GOOD);
        assert_condition(status_now(&f->rig), "PerformanceDegraded", "False", "Steady");
        assert_int_equal(count_events(f, "PerformanceDegraded"), 0);
}

static void of_what_never_was_nothing_is_said(void **state)
{
        struct flow *f = *state;

        completes(f, &ALGORITHMPROFILING, Q, GOOD);
        assert_null(condition(status_now(&f->rig), "PerformanceDegraded"));
        assert_int_equal(json_int(json_path(status_now(&f->rig), "trend[0]"), "runs", 0), 1);
        assert_null(json_path(status_now(&f->rig), "trend[0].degraded"));
}

static const struct CMUnitTest tests[] = {
        TEST(a_profiling_from_begin_to_end),
        TEST(the_history_is_told),
        TEST(what_is_done_is_in_the_series),
        TEST(the_environment_is_in_the_series),
        TEST(a_machine_with_a_long_name_is_cut),
        TEST(the_images_that_were_measured_are_told),
        TEST(the_coordinator_is_one_of_them_where_it_measures),
        TEST(a_sweep_tells_every_size),
        TEST(a_comparison_with_one_that_failed),
        TEST(what_a_framework_said),
        TEST(progress_is_live),
        TEST(the_probe_s_reason_is_told),
        TEST(a_failed_one_begins_anew_when_it_is_changed),
        TEST(a_completed_one_refuses_a_change),
        TEST(a_spec_that_cannot_be_run_is_refused_and_mended),
        TEST(cancelled),
        TEST(cancelled_before_it_began),
        TEST(the_timeout_ends_it),
        TEST(suspended_and_resumed),
        TEST(without_a_result_it_has_failed),
        TEST(pods_follow_each_other),
        TEST(a_pod_that_was_made_again_is_another_attempt),
        TEST(pods_come_to_an_end),
        TEST(the_next_pod_can_be_cancelled),
        TEST(it_goes_when_its_time_has_come),
        TEST(a_job_with_a_container_that_never_came_is_taken_away),
        TEST(a_change_for_the_worse_is_told),
        TEST(when_it_turns_there_is_an_event),
        TEST(a_steady_one_is_said_to_be),
        TEST(of_what_never_was_nothing_is_said),
};

UNIT_MAIN(tests)
