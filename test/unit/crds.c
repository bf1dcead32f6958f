/*
 * The CRDs of deploy/crds, without a server: what people read in them, what they let pass and what they refuse.
 */
#include "unit/unit.h"

#include "json/json.h"

#define DGDR_CRD    "deploy/crds/dynamographdeploymentrequests.yaml"
#define CUDA_CRD    "deploy/crds/cudaexperiments.yaml"
#define PROFILE_CRD "deploy/crds/workloadprofiles.yaml"
#define AP_CRD      "deploy/crds/algorithmprofilings.yaml"
#define AC_CRD      "deploy/crds/algorithmcomparisons.yaml"

static const char *const CRDS[] = {DGDR_CRD, CUDA_CRD, PROFILE_CRD, AP_CRD, AC_CRD};

static struct json *load(struct doc *doc, const char *path)
{
        struct err err = ERR_INIT;

        if (doc_read_yaml(doc, path, 1 << 20, &err) < 0)
                fail_msg("%s: %s", path, err.text);
        return doc->root;
}

static struct json *version_of(const struct json *crd)
{
        struct json *versions = json_path(crd, "spec.versions");

        assert_int_equal(json_len(versions), 1);
        return json_first(versions);
}

static const struct json *schema_of(const struct json *crd)
{
        return json_path(version_of(crd), "schema.openAPIV3Schema");
}

static struct schema *compile(const char *path)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct err err = ERR_INIT;
        struct schema *s = schema_new(schema_of(load(&doc, path)), &err);

        if (!s)
                fail_msg("%s: %s", path, err.text);
        return s;
}

/* ---- every field */

typedef const char *(*fault_fn)(const struct json *schema);

static size_t faults_below(const struct json *schema, const char *path, fault_fn fault);

static size_t faults_of(const struct json *schema, const char *path, fault_fn fault)
{
        const char *what = fault(schema);

        if (what)
                print_error("%s: %s\n", path, what);
        return (what ? 1 : 0) + faults_below(schema, path, fault);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the CRD, which is ours */
static size_t faults_below(const struct json *schema, const char *path, fault_fn fault)
{
        const struct json *items = json_at(schema, "items"),
                          *values = json_at(schema, "additionalProperties");
        size_t n = 0;
        char below[512];

        json_foreach (field, json_at(schema, "properties")) {
                snprintf(below, sizeof(below), "%s.%s", path, field->key);
                if (!streq(below, ".metadata")) /* servers allow nothing there but a type */
                        n += faults_of(field, below, fault);
        }
        snprintf(below, sizeof(below), "%s[]", path);
        if (items)
                n += faults_of(items, below, fault);
        if (json_is(values, JSON_OBJECT))
                n += faults_of(values, below, fault);
        return n;
}

static void check_all(fault_fn fault)
{
        for (size_t i = 0; i < ARRAY_LEN(CRDS); i++) {
                _cleanup_(doc_done) struct doc doc = DOC_INIT;

                assert_int_equal(faults_below(schema_of(load(&doc, CRDS[i])), "", fault), 0);
        }
}

/* The strings of a list of strings are told by the list. */
static const char *description_fault(const struct json *schema)
{
        const char *text = json_str(schema, "description");

        if (!text)
                return streq(json_str(schema, "type"), "string") && json_at(schema, "maxLength") &&
                                       json_len(schema) == 2
                               ? NULL
                               : "has no description";
        if (strlen(text) < 8 || text[strlen(text) - 1] != '.')
                return "its description is no sentence";
        return NULL;
}

static void every_field_has_a_description(void **state)
{
        (void)state;
        check_all(description_fault);
}

static const char *bound_fault(const struct json *schema)
{
        const char *type = json_str_or(schema, "type", "");

        if (streq(type, "string") && !json_at(schema, "maxLength") && !json_at(schema, "enum") &&
            !json_at(schema, "format"))
                return "a string of any length";
        if (streq(type, "array") && !json_at(schema, "maxItems"))
                return "a list of any length";
        if (json_at(schema, "additionalProperties") && !json_at(schema, "maxProperties"))
                return "a map of any size";
        return NULL;
}

static void apart_from_documents_everything_is_bounded(void **state)
{
        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(CRDS); i++) {
                _cleanup_(doc_done) struct doc doc = DOC_INIT;
                struct json *schema = (struct json *)schema_of(load(&doc, CRDS[i]));

                json_remove(json_at(schema, "properties"), "apiVersion");
                json_remove(json_at(schema, "properties"), "kind");
                assert_int_equal(faults_below(schema, "", bound_fault), 0);
        }
}

/* ---- names */

static void assert_named(const char *path, const char *group, const char *plural, const char *kind,
                         const char *short_name)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *crd = load(&doc, path), *v = version_of(crd);
        char name[128];

        snprintf(name, sizeof(name), "%s.%s", plural, group);
        assert_string_equal(json_cstr(json_path(crd, "metadata.name")), name);
        assert_string_equal(json_cstr(json_path(crd, "spec.group")), group);
        assert_string_equal(json_cstr(json_path(crd, "spec.scope")), "Namespaced");
        assert_string_equal(json_cstr(json_path(crd, "spec.names.kind")), kind);
        assert_string_equal(json_cstr(json_path(crd, "spec.names.plural")), plural);
        assert_string_equal(json_cstr(json_path(crd, "spec.names.shortNames[0]")), short_name);
        assert_string_equal(json_cstr(json_path(crd, "spec.names.categories[0]")), "sonde");
        assert_string_equal(json_str(v, "name"), "v1alpha1");
        assert_true(json_bool(v, "served", false) && json_bool(v, "storage", false));
        assert_non_null(json_path(v, "subresources.status"));
}

static void the_kinds_are_named_as_upstream_s(void **state)
{
        (void)state;
        assert_named(DGDR_CRD, "nvidia.com", "dynamographdeploymentrequests", "DynamoGraphDeploymentRequest",
                     "dgdr");
        assert_named(CUDA_CRD, "gpu.scheduler.io", "cudaexperiments", "CUDAExperiment", "cudaexp");
        assert_named(PROFILE_CRD, "gpu.scheduler.io", "workloadprofiles", "WorkloadProfile", "wprof");
        assert_named(AP_CRD, "dprofiler.io", "algorithmprofilings", "AlgorithmProfiling", "ap");
        assert_named(AC_CRD, "dprofiler.io", "algorithmcomparisons", "AlgorithmComparison", "ac");
}

struct column {
        const char *name, *path;
        int priority;
};

static void assert_columns(const char *path, const struct column *want, size_t n)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *columns = json_at(version_of(load(&doc, path)), "additionalPrinterColumns");

        assert_int_equal(json_len(columns), n);
        for (size_t i = 0; i < n; i++) {
                const struct json *column = json_index(columns, i);

                assert_string_equal(json_str(column, "name"), want[i].name);
                assert_string_equal(json_str(column, "jsonPath"), want[i].path);
                assert_int_equal(json_int(column, "priority", 0), want[i].priority);
        }
}

static void dgdr_s_columns_are_the_designs_and_ours(void **state)
{
        static const struct column want[] = {
                {"Model", ".spec.model", 0},
                {"Backend", ".spec.backend", 0},
                {"State", ".status.state", 0},
                {"Phase", ".status.profilingProgress.phase", 0},
                {"%", ".status.profilingProgress.overallPercentage", 0},
                {"ETA", ".status.progress.eta", 0},
                {"Progress", ".status.profilingProgress.message", 1},
                {"DGD-State", ".status.deployment.state", 0},
                {"Age", ".metadata.creationTimestamp", 0},
        };

        (void)state;
        assert_columns(DGDR_CRD, want, ARRAY_LEN(want));
}

static void the_columns_of_experiments_and_profiles(void **state)
{
        static const struct column experiments[] = {
                {"Phase", ".status.phase", 0},
                {"Bound", ".status.boundType", 0},
                {"%", ".status.progress.percent", 0},
                {"Age", ".metadata.creationTimestamp", 0},
        };
        static const struct column profiles[] = {
                {"Bound", ".status.boundType", 0},
                {"Source", ".spec.sourceCudaExperiment", 0},
                {"Age", ".metadata.creationTimestamp", 0},
        };

        (void)state;
        assert_columns(CUDA_CRD, experiments, ARRAY_LEN(experiments));
        assert_columns(PROFILE_CRD, profiles, ARRAY_LEN(profiles));
}

/* Upstream's, then ours. */
static void the_columns_of_profilings_and_comparisons(void **state)
{
        static const struct column profilings[] = {
                {"Algorithm", ".spec.algorithmName", 0},
                {"Type", ".spec.algorithmType", 0},
                {"Size", ".spec.inputSize", 0},
                {"Status", ".status.phase", 0},
                {"Age", ".metadata.creationTimestamp", 0},
                {"Progress", ".status.progress.percent", 0},
                {"ETA", ".status.progress.eta", 0},
                {"Time", ".status.results.executionTime", 1},
                {"Memory", ".status.results.memoryUsage", 1},
                {"Queue", ".status.queue.position", 1},
                {"Message", ".status.progress.message", 1},
                {"Next", ".status.nextScheduleTime", 1},
        };
        static const struct column comparisons[] = {
                {"Algorithms", ".spec.algorithms[*].name", 0},
                {"Size", ".spec.inputSize", 0},
                {"Status", ".status.phase", 0},
                {"Age", ".metadata.creationTimestamp", 0},
                {"Progress", ".status.progress.percent", 0},
                {"ETA", ".status.progress.eta", 0},
                {"Result", ".status.comparison.summary", 1},
                {"Queue", ".status.queue.position", 1},
                {"Message", ".status.progress.message", 1},
                {"Next", ".status.nextScheduleTime", 1},
        };

        (void)state;
        assert_columns(AP_CRD, profilings, ARRAY_LEN(profilings));
        assert_columns(AC_CRD, comparisons, ARRAY_LEN(comparisons));
}

/* Nothing in it is required: what is not known is not written. */
static void dgdr_s_progress_is_the_designs(void **state)
{
        static const struct {
                const char *name, *type, *format;
        } want[] = {
                {"phase", "string", NULL},
                {"phaseNumber", "integer", "int32"},
                {"totalPhases", "integer", "int32"},
                {"message", "string", NULL},
                {"currentStep", "integer", "int64"},
                {"totalSteps", "integer", "int64"},
                {"percentage", "number", "double"},
                {"subPhase", "string", NULL},
                {"startedAt", "string", "date-time"},
                {"lastUpdated", "string", "date-time"},
                {"gpuConfig", "object", NULL},
                {"gpuConfig.properties.currentGpus", "integer", "int64"},
                {"gpuConfig.properties.parallelMapping", "string", NULL},
        };
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *status = json_path(schema_of(load(&doc, DGDR_CRD)),
                                              "properties.status.properties");
        const struct json *progress = json_at(status, "profilingProgress");

        (void)state;
        assert_string_equal(json_str(progress, "type"), "object");
        assert_null(json_at(progress, "required"));
        assert_null(json_path(progress, "properties.gpuConfig.required"));
        for (size_t i = 0; i < ARRAY_LEN(want); i++) {
                const struct json *field = json_path(json_at(progress, "properties"), want[i].name);

                if (!streq(json_str(field, "type"), want[i].type) ||
                    (want[i].format && !streq(json_str(field, "format"), want[i].format)))
                        fail_msg("%s is no %s", want[i].name, want[i].type);
        }
        assert_int_equal(json_len(json_at(json_path(progress, "properties.phase"), "enum")), 9);
        assert_true(json_equal(json_at(json_path(progress, "properties.phase"), "enum"),
                               json_at(json_at(status, "profilingPhase"), "enum")));
}

struct field {
        const char *path, *type, *format; /* path below properties of spec or status */
        const char *preset;               /* its default, as JSON; NULL: none */
        int64_t least;                    /* minimum or minLength; below 0: none */
};

static void assert_field(const struct json *schema, const struct field *want)
{
        const struct json *field = json_path(schema, want->path), *preset = json_at(field, "default");
        const char *least = streq(want->type, "string") ? "minLength" : "minimum";
        _cleanup_(buf_done) struct buf text = BUF_INIT(256);

        if (!streq(json_str(field, "type"), want->type))
                fail_msg("%s is no %s", want->path, want->type);
        if (want->format ? !streq(json_str(field, "format"), want->format) : !!json_at(field, "format"))
                fail_msg("%s: not the format %s", want->path, want->format);
        if (preset)
                json_write(preset, JSON_COMPACT, &text);
        if (want->preset ? !streq(buf_cstr(&text), want->preset) : !!preset)
                fail_msg("%s: not the default %s", want->path, want->preset);
        if (json_int(field, least, -1) != want->least)
                fail_msg("%s: not the minimum %d", want->path, (int)want->least);
}

static void what_upstream_has_of_an_experiment_and_a_profile(void **state)
{
        static const struct field experiment[] = {
                {"spec.properties.image", "string", NULL, NULL, 1},
                {"spec.properties.command", "array", NULL, NULL, -1},
                {"spec.properties.command.items", "string", NULL, NULL, -1},
                {"spec.properties.arguments", "array", NULL, NULL, -1},
                {"spec.properties.arguments.items", "string", NULL, NULL, -1},
                {"spec.properties.runtimeClassName", "string", NULL, "\"nvidia\"", 1},
                {"spec.properties.replicas", "integer", "int32", "1", 1},
                {"spec.properties.gpuRequired", "integer", "int32", "1", 1},
                {"spec.properties.numberOfGPUs", "integer", "int32", NULL, -1},
                {"spec.properties.profilingEnabled", "boolean", NULL, "false", -1},
                {"spec.properties.minimumComputeCapability", "string", NULL, NULL, -1},
                {"spec.properties.minimumMemory", "string", NULL, NULL, -1},
                {"spec.properties.maxLatency", "string", NULL, NULL, -1},
                {"spec.properties.networkBandwidthRequirement", "string", NULL, NULL, -1},
                {"spec.properties.priority", "string", NULL, NULL, -1},
                {"spec.properties.numberOfNodes", "integer", "int32", NULL, -1},
                {"spec.properties.distributed", "boolean", NULL, NULL, -1},
                {"status.properties.conditions", "array", NULL, NULL, -1},
                {"status.properties.executionJobName", "string", NULL, NULL, -1},
        };
        static const struct field profile[] = {
                {"spec.properties.workloadImage", "string", NULL, NULL, -1},
                {"spec.properties.command", "array", NULL, NULL, -1},
                {"spec.properties.arguments", "array", NULL, NULL, -1},
                {"spec.properties.sourceCudaExperiment", "string", NULL, NULL, -1},
                {"status.properties.boundType", "string", NULL, NULL, -1},
                {"status.properties.metrics", "object", NULL, NULL, -1},
                {"status.properties.metrics.additionalProperties", "string", NULL, NULL, -1},
                {"status.properties.nsightReportPath", "string", NULL, NULL, -1},
                {"status.properties.conditions", "array", NULL, NULL, -1},
        };
        _cleanup_(doc_done) struct doc cuda = DOC_INIT, wprof = DOC_INIT;
        const struct json *a = schema_of(load(&cuda, CUDA_CRD)), *b = schema_of(load(&wprof, PROFILE_CRD));

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(experiment); i++)
                assert_field(json_at(a, "properties"), &experiment[i]);
        for (size_t i = 0; i < ARRAY_LEN(profile); i++)
                assert_field(json_at(b, "properties"), &profile[i]);
        assert_string_equal(json_cstr(json_path(a, "required[0]")), "spec");
        assert_string_equal(json_cstr(json_path(b, "required[0]")), "spec");
        assert_int_equal(json_len(json_path(a, "properties.spec.required")), 1);
        assert_null(json_path(b, "properties.spec.required"));
}

static void what_upstream_has_of_a_profiling_and_a_comparison(void **state)
{
        static const struct field profiling[] = {
                {"spec.properties.algorithmName", "string", NULL, NULL, -1},
                {"spec.properties.algorithmType", "string", NULL, "\"sorting\"", -1},
                {"spec.properties.inputSize", "integer", "int64", NULL, 1},
                {"spec.properties.iterations", "integer", "int32", "1", 1},
                {"spec.properties.parameters", "object", NULL, NULL, -1},
                {"spec.properties.priority", "integer", "int32", "5", 0},
                {"spec.properties.timeout", "string", NULL, "\"1h\"", -1},
                {"spec.properties.mlConfig.properties.framework", "string", NULL, NULL, -1},
                {"spec.properties.mlConfig.properties.datasetSize", "integer", "int64", NULL, 1},
                {"spec.properties.mlConfig.properties.nSelect", "integer", "int64", "20", 1},
                {"spec.properties.customConfig.properties.image", "string", NULL, NULL, -1},
                {"spec.properties.customConfig.properties.command", "array", NULL, NULL, -1},
                {"status.properties.jobId", "string", NULL, NULL, -1},
                {"status.properties.startTime", "string", "date-time", NULL, -1},
                {"status.properties.completionTime", "string", "date-time", NULL, -1},
                {"status.properties.results.properties.executionTime", "number", "double", NULL, -1},
                {"status.properties.results.properties.metrics", "object", NULL, NULL, -1},
                {"status.properties.results.properties.mlResults.properties.bestParams", "object", NULL, NULL,
                 -1},
        };
        static const struct field comparison[] = {
                {"spec.properties.algorithms", "array", NULL, NULL, -1},
                {"spec.properties.algorithms.items.properties.name", "string", NULL, NULL, -1},
                {"spec.properties.algorithms.items.properties.type", "string", NULL, "\"sorting\"", -1},
                {"spec.properties.algorithms.items.properties.parameters", "object", NULL, NULL, -1},
                {"spec.properties.algorithms.items.properties.framework", "string", NULL, NULL, -1},
                {"spec.properties.timeout", "string", NULL, "\"2h\"", -1},
                {"spec.properties.parallel", "boolean", NULL, "false", -1},
                {"status.properties.comparisonId", "string", NULL, NULL, -1},
                {"status.properties.results", "array", NULL, NULL, -1},
                {"status.properties.results.items.properties.accuracy", "number", "double", NULL, -1},
        };
        _cleanup_(doc_done) struct doc ap = DOC_INIT, ac = DOC_INIT;
        const struct json *a = schema_of(load(&ap, AP_CRD)), *b = schema_of(load(&ac, AC_CRD));

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(profiling); i++)
                assert_field(json_at(a, "properties"), &profiling[i]);
        for (size_t i = 0; i < ARRAY_LEN(comparison); i++)
                assert_field(json_at(b, "properties"), &comparison[i]);
        assert_int_equal(json_len(json_path(a, "properties.spec.required")), 2);
        assert_int_equal(json_len(json_path(b, "properties.spec.required")), 2);
}

/* One shape of progress and run for all kinds. */
static void progress_and_run_are_the_same_for_all(void **state)
{
        static const char *const members[] = {"progress", "run"};
        _cleanup_(doc_done) struct doc dgdr = DOC_INIT, cuda = DOC_INIT;
        const char *below = "properties.status.properties";
        const struct json *a = json_path(schema_of(load(&dgdr, DGDR_CRD)), below),
                          *b = json_path(schema_of(load(&cuda, CUDA_CRD)), below);

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                assert_true(json_equal(json_at(json_at(a, members[i]), "properties"),
                                       json_at(json_at(b, members[i]), "properties")));
}

/* Taken away as a whole: of an object whose members are owned one by one a server may leave a null, which it then refuses. */
static void a_place_in_the_queue_is_one_thing(void **state)
{
        static const char *const crds[] = {DGDR_CRD, CUDA_CRD, AP_CRD, AC_CRD};

        (void)state;
        for (size_t k = 0; k < ARRAY_LEN(crds); k++) {
                _cleanup_(doc_done) struct doc doc = DOC_INIT;
                const struct json *queue = json_path(schema_of(load(&doc, crds[k])),
                                                     "properties.status.properties.queue");

                assert_string_equal(json_str_or(queue, "x-kubernetes-map-type", ""), "atomic");
        }
}

/* Those of profilings and comparisons have more in it. */
static void progress_and_run_of_algorithms_have_all_of_it(void **state)
{
        static const char *const members[] = {"progress", "run"}, *const crds[] = {AP_CRD, AC_CRD};
        _cleanup_(doc_done) struct doc dgdr = DOC_INIT;
        const char *below = "properties.status.properties";
        const struct json *a = json_path(schema_of(load(&dgdr, DGDR_CRD)), below);

        (void)state;
        for (size_t k = 0; k < ARRAY_LEN(crds); k++) {
                _cleanup_(doc_done) struct doc doc = DOC_INIT;
                const struct json *b = json_path(schema_of(load(&doc, crds[k])), below);

                for (size_t i = 0; i < ARRAY_LEN(members); i++)
                        json_foreach (m, json_at(json_at(a, members[i]), "properties"))
                                if (!json_equal(m, json_at(json_at(json_at(b, members[i]), "properties"),
                                                           m->key)))
                                        fail_msg("%s: %s.%s is another one", crds[k], members[i], m->key);
        }
}

/* ---- what passes, and what does not */

static void assert_fits(const struct schema *s, struct json *object, struct arena *a, const char *what)
{
        _cleanup_(buf_done) struct buf dropped = BUF_INIT(4096);
        struct schema_report report = {0};

        schema_prune(s, object, &dropped);
        if (dropped.n)
                fail_msg("%s: not in the schema: %s", what, buf_cstr(&dropped));
        schema_default(s, object, a);
        if (!schema_validate(s, object, a, &report))
                fail_msg("%s: %s: %s", what, report.causes[0].field, report.causes[0].message);
}

/* Spec and status, whole: as the status subresource takes them, too. */
static void the_seeds_own_requests_fit(void **state)
{
        static const char *const files[] = {
                "examples/seeds/dgdr-full-before.yaml", "examples/seeds/dgdr-full-after.yaml",
                "examples/seeds/dgdr-short-new-status.yaml", "examples/seeds/dgdr-short-sla-online.yaml"};
        _cleanup_(schema_free) struct schema *s = compile(DGDR_CRD);

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                _cleanup_(doc_done) struct doc doc = DOC_INIT;

                assert_fits(s, load(&doc, files[i]), &doc.arena, files[i]);
                assert_int_equal(json_int(json_at(doc.root, "spec"), "retries", -1), 3);
                assert_false(json_bool(json_at(doc.root, "spec"), "autoApply", true));
        }
}

static void assert_file_fits(const char *crd, const char *path)
{
        _cleanup_(schema_free) struct schema *s = compile(crd);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        assert_fits(s, load(&doc, path), &doc.arena, path);
}

static void the_examples_fit(void **state)
{
        (void)state;
        assert_file_fits(DGDR_CRD, "examples/dgdr.yaml");
        assert_file_fits(CUDA_CRD, "examples/cudaexperiment.yaml");
        assert_file_fits(CUDA_CRD, "examples/seeds/kratos-vectoradd.yaml");
        assert_file_fits(PROFILE_CRD, "examples/seeds/kratos-workloadprofile.yaml");
        assert_file_fits(AP_CRD, "examples/algorithmprofiling.yaml");
        assert_file_fits(AC_CRD, "examples/algorithmcomparison.yaml");
        assert_file_fits(AP_CRD, "examples/seeds/dprofiler-production-model-profiling.yaml");
        assert_file_fits(AP_CRD, "examples/seeds/dprofiler-team-a-model-profiling.yaml");
        assert_file_fits(AC_CRD, "examples/seeds/dprofiler-ab-testing-comparison.yaml");
        assert_file_fits(AC_CRD, "examples/seeds/dprofiler-model-training-comparison.yaml");
}

/* Field for field: a person who follows the seed has what it shows. */
static void the_example_of_an_experiment_is_the_seed_s(void **state)
{
        _cleanup_(doc_done) struct doc example = DOC_INIT, seed = DOC_INIT;

        (void)state;
        assert_true(json_equal(load(&example, "examples/cudaexperiment.yaml"),
                               load(&seed, "examples/seeds/kratos-vectoradd.yaml")));
}

/* What `-o jsonpath` prints of profilingProgress. */
static void the_seed_s_progress_fits(void **state)
{
        _cleanup_(schema_free) struct schema *s = compile(DGDR_CRD);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct json *progress = load(&doc, "examples/seeds/dgdr-full-jsonpath.json"), *object;

        (void)state;
        object = json_build(
                &doc.arena,
                "{'spec': {'model': 'm', 'backend': 'vllm'}, 'status': {'profilingProgress': %p}}",
                (void *)progress);
        assert_fits(s, object, &doc.arena, "dgdr-full-jsonpath.json");
}

#define SPEC(more)   "{'spec': {'model': 'm', 'backend': 'vllm'" more "}}"
#define STATUS(more) "{'spec': {'model': 'm', 'backend': 'vllm'}, 'status': {" more "}}"

static struct json *object_of(struct arena *a, const char *text)
{
        char *copy = arena_strdup(a, text);
        struct err err = ERR_INIT;
        struct json *j;

        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        j = json_parse(a, str_of(copy), NULL, &err);
        if (!j)
                fail_msg("%s: %s", text, err.text);
        return j;
}

static void assert_all_fit(const char *crd, const char *const *objects, size_t n)
{
        _cleanup_(schema_free) struct schema *s = compile(crd);

        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;

                assert_fits(s, object_of(&a, objects[i]), &a, objects[i]);
        }
}

struct refused {
        const char *object, *field;
};

static void assert_all_refused(const char *crd, const struct refused *cases, size_t n)
{
        _cleanup_(schema_free) struct schema *s = compile(crd);

        for (size_t i = 0; i < n; i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct schema_report report = {0};
                struct json *object = object_of(&a, cases[i].object);

                schema_default(s, object, &a);
                if (schema_validate(s, object, &a, &report))
                        fail_msg("%s passes", cases[i].object);
                assert_string_equal(report.causes[0].field, cases[i].field);
        }
}

static void what_a_request_may_say_is_kept(void **state)
{
        static const char *const objects[] = {
                SPEC(", 'useMocker': true, 'enableGpuDiscovery': true, 'autoApply': true"),
                SPEC(", 'profilingConfig': {'config': {'sla': {'any': ['thing', 1]}}, 'profilerImage': 'i', "
                     "'command': ['a', 'b'], 'apiAccess': true, 'outputPVC': 'p', 'configMapRef': {'name': "
                     "'c', 'key': 'k'}}"),
                SPEC(", 'profilingConfig': {'resources': {'requests': {'cpu': 4, 'memory': '16Gi'}, "
                     "'limits': "
                     "{'nvidia.com/gpu': '1', 'cpu': '0.5', 'memory': '1e9'}}, 'nodeSelector': {'a/b': 'c'}, "
                     "'tolerations': [{'operator': 'Exists'}, {'key': 'k', 'value': 'v', 'effect': "
                     "'NoExecute', 'tolerationSeconds': 30}]}"),
                SPEC(", 'deploymentOverrides': {'name': 'n', 'namespace': 'ns', 'labels': {'a': 'b'}, "
                     "'annotations': {'c': 'd'}, 'workersImage': 'w'}"),
                SPEC(", 'suspend': true, 'cancel': true, 'timeout': '1h30m', 'retries': 10, "
                     "'priorityClassName': 'p', 'runAsUser': 0"),
                SPEC(", 'timeout': '1.5h'"),
                SPEC(", 'timeout': '90s'"),
                STATUS("'state': ''"),
                STATUS("'state': 'Pending', 'backend': 'vllm', 'observedGeneration': 1, 'profilingResults': "
                       "'configmap/dgdr-output-x', 'generatedDeployment': {'kind': 'any', 'spec': {'x': 1}}, "
                       "'deployment': {'name': 'n', 'namespace': 's', 'state': 'successful', 'created': "
                       "true}"),
                STATUS("'run': {'attempt': 2, 'job': 'profile-x-2', 'retries': 1, 'specHash': 'h', "
                       "'outcome': "
                       "'Failed', 'reason': 'Evicted'}"),
                STATUS("'progress': {'percent': 41.7, 'phase': 'Own', 'phaseNumber': 0, 'totalPhases': 1, "
                       "'step': '5/12', 'currentStep': 5, 'totalSteps': 12, 'subPhase': 's', 'bestSoFar': "
                       "'b', 'message': 'm', "
                       "'attempt': 1, 'gpuConfig': {'currentGpus': 4, 'parallelMapping': 'TP=4'}, "
                       "'startedAt': "
                       "'2026-01-23T14:00:00Z', 'updatedAt': '2026-01-23T14:00:00Z', 'estimatedCompletion': "
                       "{'low': '2026-01-23T14:00:00Z', 'mid': '2026-01-23T14:00:00Z', 'high': "
                       "'2026-01-23T14:00:00Z', 'basis': 'pace'}, 'eta': '14:00', 'job': 'j', 'pod': 'p', "
                       "'podUID': 'u'}"),
                STATUS("'profilingPhase': 'Failed', 'profilingProgress': {'phase': 'Failed', 'phaseNumber': "
                       "9, "
                       "'totalPhases': 7, 'failedPhase': 'DecodeSweep', 'overallPercentage': 12.5, "
                       "'estimatedCompletion': '2026-01-23T14:00:00Z', 'subPhase': 'Cleanup'}"),
        };

        (void)state;
        assert_all_fit(DGDR_CRD, objects, ARRAY_LEN(objects));
}

static void what_a_request_may_not_say_is_refused(void **state)
{
        static const struct refused cases[] = {
                {"{}", "spec"},
                {"{'spec': {'backend': 'vllm'}}", "spec.model"},
                {"{'spec': {'model': '', 'backend': 'vllm'}}", "spec.model"},
                {"{'spec': {'model': 'm', 'backend': 'auto'}}", "spec.backend"},
                {SPEC(", 'retries': 11"), "spec.retries"},
                {SPEC(", 'retries': -1"), "spec.retries"},
                {SPEC(", 'timeout': '90'"), "spec.timeout"},
                {SPEC(", 'timeout': '1d'"), "spec.timeout"},
                {SPEC(", 'timeout': ''"), "spec.timeout"},
                {SPEC(", 'timeout': 'soon'"), "spec.timeout"},
                {SPEC(", 'runAsUser': -1"), "spec.runAsUser"},
                {SPEC(", 'profilingConfig': {'config': 'text'}"), "spec.profilingConfig.config"},
                {SPEC(", 'profilingConfig': {'configMapRef': {}}"), "spec.profilingConfig.configMapRef.name"},
                {SPEC(", 'profilingConfig': {'command': 'sh'}"), "spec.profilingConfig.command"},
                {SPEC(", 'profilingConfig': {'resources': {'limits': {'cpu': 'much'}}}"),
                 "spec.profilingConfig.resources.limits.cpu"},
                {SPEC(", 'profilingConfig': {'tolerations': [{'operator': 'Maybe'}]}"),
                 "spec.profilingConfig.tolerations[0].operator"},
                {STATUS("'state': 'Done'"), "status.state"},
                {STATUS("'profilingPhase': 'Done'"), "status.profilingPhase"},
                {STATUS("'profilingProgress': {'phase': 'Done'}"), "status.profilingProgress.phase"},
                {STATUS("'profilingProgress': {'phaseNumber': 10}"), "status.profilingProgress.phaseNumber"},
                {STATUS("'profilingProgress': {'percentage': 101}"), "status.profilingProgress.percentage"},
                {STATUS("'conditions': [{'type': 'A'}]"), "status.conditions[0].status"},
                {STATUS("'run': {'outcome': 'Maybe'}"), "status.run.outcome"},
        };

        (void)state;
        assert_all_refused(DGDR_CRD, cases, ARRAY_LEN(cases));
}

#define CUDA(more)        "{'spec': {'image': 'i'" more "}}"
#define CUDA_STATUS(more) "{'spec': {'image': 'i'}, 'status': {" more "}}"

static void what_an_experiment_may_say_is_kept(void **state)
{
        static const char *const objects[] = {
                CUDA(", 'command': ['a', 'b'], 'arguments': ['', '-x'], 'runtimeClassName': 'r', 'replicas': "
                     "3, "
                     "'gpuRequired': 2, 'numberOfGPUs': -1, 'profilingEnabled': true"),
                CUDA(", 'minimumComputeCapability': '8.0', 'minimumMemory': '40Gi', 'maxLatency': 'x', "
                     "'networkBandwidthRequirement': 'x', 'priority': 'x', 'numberOfNodes': 2, "
                     "'distributed': true"),
                CUDA(", 'env': [{'name': 'A'}, {'name': 'a.b-c', 'value': ''}, {'name': 'A', 'valueFrom': "
                     "{'configMapKeyRef': {'name': 'c', 'key': 'k', 'optional': true}}}, {'name': 'S', "
                     "'valueFrom': {'secretKeyRef': {'name': 's', 'key': 'k', 'optional': true}}}, {'name': "
                     "'F', 'valueFrom': {'fieldRef': {'apiVersion': 'v1', 'fieldPath': 'metadata.name'}}}, "
                     "{'name': 'R', 'valueFrom': {'resourceFieldRef': {'containerName': 'c', 'resource': "
                     "'limits.cpu', 'divisor': '1m'}}}]"),
                CUDA(", 'volumes': [{'name': 'p', 'mountPath': '/p', 'subPath': 's', 'readOnly': true, "
                     "'persistentVolumeClaim': {'claimName': 'c', 'readOnly': true}}, {'name': 'c', "
                     "'mountPath': '/c', 'configMap': {'name': 'm', 'defaultMode': 256, 'optional': true, "
                     "'items': [{'key': 'k', 'path': 'a/b', 'mode': 420}]}}, {'name': 'e', 'mountPath': "
                     "'/e', 'emptyDir': {}}, {'name': 'f', 'mountPath': '/f', 'emptyDir': {'medium': "
                     "'Memory', 'sizeLimit': '1Gi'}}]"),
                CUDA(", 'resources': {'requests': {'cpu': 4, 'memory': '16Gi'}, 'limits': {'cpu': '0.5'}}"),
                CUDA(", 'profiling': {}, 'placement': {}"),
                CUDA(", 'profiling': {'set': 'full', 'launchCount': 1, 'launchSkip': 5, 'kernelName': "
                     "'regex:^gemm', 'timeout': '1h30m', 'reuse': true, 'permission': 'none', 'files': "
                     "['/data/x']}"),
                CUDA(", 'placement': {'mode': 'volcano', 'queue': 'team-a'}"),
                CUDA(", 'suspend': true, 'cancel': true, 'retries': 10, 'priorityClassName': 'p', "
                     "'runAsUser': 0"),
                CUDA_STATUS("'phase': '', 'observedGeneration': 1, 'profileName': 'x-profile', 'boundType': "
                            "'unknown', 'executionJobName': 'x-execution', 'execution': {'succeeded': 1, "
                            "'failed': 0, 'startTime': '2026-01-23T14:00:00Z', 'completionTime': "
                            "'2026-01-23T14:00:00Z', 'message': 'm', 'specHash': 'h'}"),
                CUDA_STATUS(
                        "'phase': 'Suspended', 'run': {'attempt': 2, 'job': 'x-profiling-2', 'retries': 1, "
                        "'specHash': 'h', 'outcome': 'Failed', 'reason': 'Evicted'}, 'progress': "
                        "{'percent': 41.7, 'step': '5/12'}"),
        };

        (void)state;
        assert_all_fit(CUDA_CRD, objects, ARRAY_LEN(objects));
}

static void what_an_experiment_may_not_say_is_refused(void **state)
{
        static const struct refused cases[] = {
                /* "<nil>" is how servers call the place of a oneOf */
                {"{}", "spec"},
                {"{'spec': {}}", "spec.image"},
                {"{'spec': {'image': ''}}", "spec.image"},
                {CUDA(", 'command': 'sh'"), "spec.command"},
                {CUDA(", 'runtimeClassName': ''"), "spec.runtimeClassName"},
                {CUDA(", 'replicas': 0"), "spec.replicas"},
                {CUDA(", 'gpuRequired': 0"), "spec.gpuRequired"},
                {CUDA(", 'retries': 11"), "spec.retries"},
                {CUDA(", 'runAsUser': -1"), "spec.runAsUser"},
                {CUDA(", 'env': [{'value': 'v'}]"), "spec.env[0].name"},
                {CUDA(", 'env': [{'name': 'a=b'}]"), "spec.env[0].name"},
                {CUDA(", 'volumes': [{'name': 'a', 'mountPath': '/a'}]"), "<nil>"},
                {CUDA(", 'volumes': [{'name': 'a', 'mountPath': '/a', 'emptyDir': {}, 'configMap': {'name': "
                      "'c'}}]"),
                 "<nil>"},
                {CUDA(", 'volumes': [{'name': 'a', 'mountPath': 'a', 'emptyDir': {}}]"),
                 "spec.volumes[0].mountPath"},
                {CUDA(", 'volumes': [{'name': 'a', 'mountPath': '/a', 'emptyDir': {}}, {'name': 'a', "
                      "'mountPath': '/b', 'emptyDir': {}}]"),
                 "spec.volumes[1]"},
                {CUDA(", 'resources': {'limits': {'cpu': 'much'}}"), "spec.resources.limits.cpu"},
                {CUDA(", 'profiling': {'launchCount': 0}"), "spec.profiling.launchCount"},
                {CUDA(", 'profiling': {'launchSkip': -1}"), "spec.profiling.launchSkip"},
                {CUDA(", 'profiling': {'set': '--x'}"), "spec.profiling.set"},
                {CUDA(", 'profiling': {'timeout': 'soon'}"), "spec.profiling.timeout"},
                {CUDA(", 'profiling': {'permission': 'root'}"), "spec.profiling.permission"},
                {CUDA(", 'placement': {'mode': 'best'}"), "spec.placement.mode"},
                {CUDA(", 'placement': {'queue': 'A b'}"), "spec.placement.queue"},
                {CUDA_STATUS("'phase': 'Done'"), "status.phase"},
                {CUDA_STATUS("'boundType': 'io-bound'"), "status.boundType"},
                {CUDA_STATUS("'conditions': [{'type': 'A'}]"), "status.conditions[0].status"},
        };

        (void)state;
        assert_all_refused(CUDA_CRD, cases, ARRAY_LEN(cases));
}

static void what_a_profile_may_say(void **state)
{
        static const char *const objects[] = {
                "{'spec': {}}",
                "{'spec': {'workloadImage': 'i', 'command': ['c'], 'arguments': ['a'], "
                "'sourceCudaExperiment': 'e', 'workloadHash': 'h'}}",
                "{'spec': {}, 'status': {'boundType': 'mixed', 'metrics': {'any': 'thing'}, "
                "'nsightReportPath': 'p', 'profiledAt': '2026-01-23T14:00:00Z', 'replay': true, 'details': "
                "{'any': ['thing', 1]}, 'placement': {'boundType': 'mixed', 'reason': 'r', 'nodes': "
                "[{'name': "
                "'n', 'product': 'p', 'score': 1000, 'breakdown': {'sm': 250, 'bandwidth': 250, 'vram': "
                "250, 'compute': 250}, 'busy': 12.5}], 'unknownProducts': ['x']}, 'conditions': [{'type': "
                "'Ready', 'status': 'True', 'reason': 'r', 'message': 'm', 'lastTransitionTime': "
                "'2026-01-23T14:00:00Z', 'observedGeneration': 1}]}}",
        };
        static const struct refused cases[] = {
                {"{}", "spec"},
                {"{'spec': {'command': 'c'}}", "spec.command"},
                {"{'spec': {}, 'status': {'boundType': 'io-bound'}}", "status.boundType"},
                {"{'spec': {}, 'status': {'metrics': {'a': 1}}}", "status.metrics.a"},
        };

        (void)state;
        assert_all_fit(PROFILE_CRD, objects, ARRAY_LEN(objects));
        assert_all_refused(PROFILE_CRD, cases, ARRAY_LEN(cases));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_description),
        cmocka_unit_test(apart_from_documents_everything_is_bounded),
        cmocka_unit_test(the_kinds_are_named_as_upstream_s),
        cmocka_unit_test(dgdr_s_columns_are_the_designs_and_ours),
        cmocka_unit_test(the_columns_of_experiments_and_profiles),
        cmocka_unit_test(the_columns_of_profilings_and_comparisons),
        cmocka_unit_test(what_upstream_has_of_a_profiling_and_a_comparison),
        cmocka_unit_test(dgdr_s_progress_is_the_designs),
        cmocka_unit_test(what_upstream_has_of_an_experiment_and_a_profile),
        cmocka_unit_test(progress_and_run_are_the_same_for_all),
        cmocka_unit_test(a_place_in_the_queue_is_one_thing),
        cmocka_unit_test(progress_and_run_of_algorithms_have_all_of_it),
        cmocka_unit_test(the_seeds_own_requests_fit),
        cmocka_unit_test(the_examples_fit),
        cmocka_unit_test(the_example_of_an_experiment_is_the_seed_s),
        cmocka_unit_test(the_seed_s_progress_fits),
        cmocka_unit_test(what_a_request_may_say_is_kept),
        cmocka_unit_test(what_a_request_may_not_say_is_refused),
        cmocka_unit_test(what_an_experiment_may_say_is_kept),
        cmocka_unit_test(what_an_experiment_may_not_say_is_refused),
        cmocka_unit_test(what_a_profile_may_say),
};

UNIT_MAIN(tests)
