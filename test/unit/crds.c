/*
 * The CRDs of deploy/crds, without a server: what people read in them, what they let pass and what they refuse.
 */
#include "unit/unit.h"

#include "json/json.h"

static const char *const CRDS[] = {"deploy/crds/dynamographdeploymentrequests.yaml"};

#define DGDR_CRD "deploy/crds/dynamographdeploymentrequests.yaml"

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
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct json *schema;

        (void)state;
        schema = (struct json *)schema_of(load(&doc, DGDR_CRD));
        json_remove(json_at(schema, "properties"), "apiVersion");
        json_remove(json_at(schema, "properties"), "kind");
        assert_int_equal(faults_below(schema, "", bound_fault), 0);
}

/* ---- names */

static void dgdr_is_named_as_upstream_s(void **state)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *crd = load(&doc, DGDR_CRD), *v = version_of(crd);

        (void)state;
        assert_string_equal(json_cstr(json_path(crd, "metadata.name")),
                            "dynamographdeploymentrequests.nvidia.com");
        assert_string_equal(json_cstr(json_path(crd, "spec.group")), "nvidia.com");
        assert_string_equal(json_cstr(json_path(crd, "spec.scope")), "Namespaced");
        assert_string_equal(json_cstr(json_path(crd, "spec.names.kind")), "DynamoGraphDeploymentRequest");
        assert_string_equal(json_cstr(json_path(crd, "spec.names.singular")), "dynamographdeploymentrequest");
        assert_string_equal(json_cstr(json_path(crd, "spec.names.shortNames[0]")), "dgdr");
        assert_string_equal(json_cstr(json_path(crd, "spec.names.categories[0]")), "sonde");
        assert_string_equal(json_str(v, "name"), "v1alpha1");
        assert_true(json_bool(v, "served", false) && json_bool(v, "storage", false));
        assert_non_null(json_path(v, "subresources.status"));
}

static void dgdr_s_columns_are_the_designs_and_ours(void **state)
{
        static const struct {
                const char *name, *path;
                int priority;
        } want[] = {
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
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        const struct json *columns = json_at(version_of(load(&doc, DGDR_CRD)), "additionalPrinterColumns");

        (void)state;
        assert_int_equal(json_len(columns), ARRAY_LEN(want));
        for (size_t i = 0; i < ARRAY_LEN(want); i++) {
                const struct json *column = json_index(columns, i);

                assert_string_equal(json_str(column, "name"), want[i].name);
                assert_string_equal(json_str(column, "jsonPath"), want[i].path);
                assert_int_equal(json_int(column, "priority", 0), want[i].priority);
        }
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

static void the_example_fits(void **state)
{
        _cleanup_(schema_free) struct schema *s = compile(DGDR_CRD);
        _cleanup_(doc_done) struct doc doc = DOC_INIT;

        (void)state;
        assert_fits(s, load(&doc, "examples/dgdr.yaml"), &doc.arena, "examples/dgdr.yaml");
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
                       "'step': '5/12', 'currentStep': 5, 'totalSteps': 12, 'subPhase': 's', 'message': 'm', "
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
        _cleanup_(schema_free) struct schema *s = compile(DGDR_CRD);

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;

                assert_fits(s, object_of(&a, objects[i]), &a, objects[i]);
        }
}

static void what_a_request_may_not_say_is_refused(void **state)
{
        static const struct {
                const char *object, *field;
        } cases[] = {
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
        _cleanup_(schema_free) struct schema *s = compile(DGDR_CRD);

        (void)state;
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct schema_report report = {0};
                struct json *object = object_of(&a, cases[i].object);

                schema_default(s, object, &a);
                if (schema_validate(s, object, &a, &report))
                        fail_msg("%s passes", cases[i].object);
                assert_string_equal(report.causes[0].field, cases[i].field);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_description),
        cmocka_unit_test(apart_from_documents_everything_is_bounded),
        cmocka_unit_test(dgdr_is_named_as_upstream_s),
        cmocka_unit_test(dgdr_s_columns_are_the_designs_and_ours),
        cmocka_unit_test(dgdr_s_progress_is_the_designs),
        cmocka_unit_test(the_seeds_own_requests_fit),
        cmocka_unit_test(the_example_fits),
        cmocka_unit_test(the_seed_s_progress_fits),
        cmocka_unit_test(what_a_request_may_say_is_kept),
        cmocka_unit_test(what_a_request_may_not_say_is_refused),
};

UNIT_MAIN(tests)
