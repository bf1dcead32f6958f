/*
 * The spec of a DynamoGraphDeploymentRequest: its defaults, and all that is wrong with it, told at once.
 */
#include "unit/run_rig.h"

#include "kinds/dgdr/internal.h"

#define CONFIG "'config': {'sla': {'isl': 3000}}"
#define IMAGE  "'profilerImage': 'i'"
/* A spec with nothing wrong, and MORE of the spec, of profilingConfig, of its config. */
#define SPEC(more)      "'model': 'm', 'backend': 'vllm', 'profilingConfig': {" CONFIG ", " IMAGE "}" more
#define PROFILING(more) "'model': 'm', 'backend': 'vllm', 'profilingConfig': {" CONFIG ", " IMAGE more "}"
#define SETTINGS(config) \
        "'model': 'm', 'backend': 'vllm', 'profilingConfig': {'config': " config ", " IMAGE "}"

static void named(struct rig *r, const char *name, const char *spec)
{
        r->view.request = parse(r, arena_printf(&r->arena,
                                                "{'metadata': {'namespace': 'ns', 'name': '%s', 'uid': 'u', "
                                                "'generation': 1}, 'spec': {%s}}",
                                                name, spec));
}

/* What is wrong with the request; NULL: nothing. */
static const char *why_of(struct rig *r)
{
        struct dgdr_spec spec;
        const char *why = NULL;

        dgdr_spec_read(&r->view, &spec);
        assert_true(dgdr_spec_check(&r->view, &r->d, &spec, true, &why));
        if (why) {
                assert_in_range(strlen(why), 10, 1000);
                assert_true(utf8_valid(why, strlen(why)));
        }
        return why;
}

static void assert_right(struct rig *r, const char *spec)
{
        const char *why;

        named(r, "r", spec);
        why = why_of(r);
        if (why)
                fail_msg("%s: %s", spec, why);
}

/* Exactly this, and nothing else. */
static void assert_wrong(struct rig *r, const char *spec, const char *want)
{
        const char *why;

        named(r, "r", spec);
        why = why_of(r);
        if (!streq(why, want))
                fail_msg("%s:\n  says  %s\n  wants %s", spec, why ? why : "(nothing)", want);
}

/* ---- reading */

static void a_spec_has_defaults(void **state)
{
        struct rig *r = *state;
        struct dgdr_spec spec;

        named(r, "r", SPEC(""));
        dgdr_spec_read(&r->view, &spec);
        assert_string_equal(spec.model, "m");
        assert_string_equal(spec.backend, "vllm");
        assert_string_equal(spec.image, "i");
        assert_string_equal(spec.deployment, "r-dgd");
        assert_false(spec.use_mocker || spec.gpu_discovery || spec.auto_apply || spec.api_access);
        assert_null(spec.command);
        assert_null(spec.base_map);
        assert_null(spec.base_key);
        assert_null(spec.pvc);
        assert_null(spec.deployment_ns);
        assert_null(spec.resources);
        assert_non_null(spec.config);
}

static void a_spec_says_everything(void **state)
{
        struct rig *r = *state;
        struct dgdr_spec spec;

        named(r, "r",
              PROFILING(
                      ", 'command': ['a'], 'apiAccess': true, 'configMapRef': {'name': 'c'}, 'outputPVC': "
                      "'p', "
                      "'resources': {'limits': {}}, 'tolerations': [], 'nodeSelector': {'a': 'b'}") ", "
                                                                                                    "'useMock"
                                                                                                    "er': "
                                                                                                    "true, "
                                                                                                    "'enableG"
                                                                                                    "puDiscov"
                                                                                                    "ery': "
                                                                                                    "true, "
                                                                                                    "'autoApp"
                                                                                                    "ly': "
                                                                                                    "true, "
                                                                                                    "'deploym"
                                                                                                    "entOverr"
                                                                                                    "ides': "
                                                                                                    "{'name':"
                                                                                                    " 'n', "
                                                                                                    "'namespa"
                                                                                                    "ce': "
                                                                                                    "'ns', "
                                                                                                    "'labels'"
                                                                                                    ": {'l': "
                                                                                                    "'1'}, "
                                                                                                    "'annotat"
                                                                                                    "ions': "
                                                                                                    "{'a': "
                                                                                                    "'2'}, "
                                                                                                    "'workers"
                                                                                                    "Image': "
                                                                                                    "'w'}");
        dgdr_spec_read(&r->view, &spec);
        assert_true(spec.use_mocker && spec.gpu_discovery && spec.auto_apply && spec.api_access);
        assert_json(r, spec.command, "['a']");
        assert_string_equal(spec.base_map, "c");
        assert_string_equal(spec.base_key, "disagg.yaml");
        assert_string_equal(spec.pvc, "p");
        assert_json(r, spec.resources, "{'limits': {}}");
        assert_json(r, spec.tolerations, "[]");
        assert_json(r, spec.node_selector, "{'a': 'b'}");
        assert_string_equal(spec.deployment, "n");
        assert_string_equal(spec.deployment_ns, "ns");
        assert_json(r, spec.labels, "{'l': '1'}");
        assert_json(r, spec.annotations, "{'a': '2'}");
        assert_string_equal(spec.workers_image, "w");
}

/* Sonde's own profiler deploys by itself, and needs to be allowed to, unless it has another target. */
static void without_an_image_the_profiler_is_sonde_s(void **state)
{
        struct rig *r = *state;
        struct dgdr_spec spec;

        named(r, "r", "'model': 'm', 'backend': 'vllm', 'profilingConfig': {" CONFIG "}");
        assert_null(why_of(r));
        dgdr_spec_read(&r->view, &spec);
        assert_null(spec.image);
        assert_string_equal(spec.target, "dgd");
        assert_true(spec.api_access);
        named(r, "r",
              "'model': 'm', 'backend': 'vllm', 'profilingConfig': {'config': {'sonde': {'target': 'sim'}}}");
        assert_null(why_of(r));
        dgdr_spec_read(&r->view, &spec);
        assert_string_equal(spec.target, "sim");
        assert_false(spec.api_access);
        assert_right(r, SETTINGS("{'sonde': {'target': 'moon'}}")); /* of a profiler of one's own */
}

static void an_empty_command_is_upstream_s(void **state)
{
        struct rig *r = *state;
        struct dgdr_spec spec;

        named(r, "r", PROFILING(", 'command': []"));
        dgdr_spec_read(&r->view, &spec);
        assert_null(spec.command);
}

/* ---- what is right */

static void what_is_right_passes(void **state)
{
        static const char *const specs[] = {
                SPEC(""),
                SPEC(", 'suspend': true, 'cancel': false, 'timeout': '1h30m', 'retries': 0, "
                     "'priorityClassName': 'high', 'runAsUser': 0"),
                SPEC(", 'deploymentOverrides': {'name': 'n', 'namespace': 'ns', 'labels': {'a.b/c_d': 'E.1', "
                     "'x': ''}, 'annotations': {'Upper.example/Name': 'any thing at all'}, 'workersImage': "
                     "'w:1'}"),
                PROFILING(", 'command': ['sh', '-c', '']"),
                PROFILING(", 'resources': {'requests': {'cpu': 1, 'memory': '1Gi', 'ephemeral-storage': "
                          "'1e9'}, "
                          "'limits': {'cpu': '1000m', 'memory': '1024Mi', 'nvidia.com/gpu': 2, "
                          "'hugepages-2Mi': "
                          "'4Mi'}}"),
                PROFILING(", 'resources': {'requests': {'cpu': '.5'}, 'limits': {'cpu': '0.5'}}"),
                PROFILING(", 'tolerations': [{'operator': 'Exists'}, {'key': 'nvidia.com/gpu', 'operator': "
                          "'Exists', 'effect': 'NoSchedule'}, {'key': 'a', 'value': 'b', 'effect': "
                          "'NoExecute', "
                          "'tolerationSeconds': 3}]"),
                PROFILING(", 'nodeSelector': {'nvidia.com/gpu.product': 'H100-80GB'}"),
                SETTINGS("{'anything': 'else'}"),
                SETTINGS("{'sla': {'isl': 3000, 'osl': 500, 'ttft': 50, 'itl': 0.5}, 'planner': {'x': [1]}}"),
                SETTINGS("{'hardware': {'minNumGpusPerEngine': 4, 'maxNumGpusPerEngine': 0, "
                         "'numGpusPerNode': 0}}"),
                SETTINGS("{'hardware': {'min_num_gpus_per_engine': 4, 'max_num_gpus_per_engine': 4}}"),
                SETTINGS("{'sweep': {'useAiConfigurator': true, 'aicSystem': 'h200_sxm'}}"),
                SETTINGS("{'sweep': {'use_ai_configurator': true, 'aicSystem': 'h200_sxm'}}"),
                SETTINGS("{'sweep': {'useAiConfigurator': false}}"),
                SETTINGS("{'sweep': {'useAiConfigurator': null, 'prefillInterpolationGranularity': null}}"),
                SETTINGS("{'engine': {'backend': 'vllm'}, 'deployment': {'model': 'm'}}"),
                SETTINGS("{'sweep': {'aicSystem': 'a', 'aic_system': 'a'}}"),
        };

        for (size_t i = 0; i < ARRAY_LEN(specs); i++)
                assert_right(*state, specs[i]);
}

static void the_example_is_right(void **state)
{
        _cleanup_(doc_done) struct doc doc = DOC_INIT;
        struct rig *r = *state;
        struct err err = ERR_INIT;
        const char *why;

        if (doc_read_yaml(&doc, "examples/dgdr.yaml", 1 << 20, &err) < 0)
                fail_msg("%s", err.text);
        json_set(&doc.arena, json_at(doc.root, "metadata"), "namespace", json_string(&doc.arena, "ns"));
        r->view.request = doc.root;
        why = why_of(r);
        if (why)
                fail_msg("%s", why);
}

/* ---- what is wrong */

#define AT "spec.profilingConfig."

static const struct {
        const char *spec, *why;
} MISTAKES[] = {
        {"'backend': 'vllm', 'profilingConfig': {" CONFIG ", " IMAGE "}",
         "spec.model: is missing, name the model to profile, for example Qwen/Qwen3-0.6B"},
        {"'model': 'm', 'backend': 'auto', 'profilingConfig': {" CONFIG ", " IMAGE "}",
         "spec.backend: must be vllm, sglang or trtllm, not 'auto'"},
        {"'model': 'm', 'backend': 'vllm', 'profilingConfig': {" CONFIG ", 'command': ['a']}",
         AT "profilerImage: is missing, name the image that has the command, or leave both out for Sonde's "
            "own profiler"},
        {"'model': 'm', 'backend': 'vllm', 'enableGpuDiscovery': true, 'profilingConfig': {" CONFIG "}",
         "spec.enableGpuDiscovery: is true, but Sonde's own profiler discovers no GPUs, say in "
         "config.hardware "
         "how many there are"},
        {"'model': 'm', 'backend': 'vllm', 'profilingConfig': {'config': {'sonde': {'target': 'moon'}}}",
         AT "config.sonde.target: must be dgd, sim or endpoint, not 'moon'"},
        {"'model': 'm', 'backend': 'vllm', 'profilingConfig': {" CONFIG ", 'profilerImage': 'a b'}",
         AT "profilerImage: 'a b' has a blank in it, an image's name has none"},
        {PROFILING(", 'command': ['', 'x']"), AT "command: begins with an empty text, name a program there"},
        {PROFILING(", 'command': ['x', 1]"), AT "command: must be a list of texts, not '1'"},
        {PROFILING(", 'configMapRef': {'key': 'k'}"), AT "configMapRef.name: is missing, name the ConfigMap"},
        {PROFILING(", 'configMapRef': {'name': 'c', 'key': 'a/b'}"),
         AT "configMapRef.key: 'a/b' is no key of a ConfigMap"},
        {PROFILING(", 'configMapRef': {'name': '../c'}"),
         AT "configMapRef.name: '../c' is no name of a ConfigMap"},
        {PROFILING(", 'outputPVC': 'P'"), AT "outputPVC: 'P' is no name of a PersistentVolumeClaim"},
        {PROFILING(", 'resources': {'requests': {'cpu': 'much'}}"),
         AT "resources.requests.cpu: 'much' is no amount, write for example 500m or 16Gi"},
        {PROFILING(", 'resources': {'limits': {'memory': '1GiB'}}"),
         AT "resources.limits.memory: '1GiB' is no amount, write for example 500m or 16Gi"},
        {PROFILING(", 'resources': {'limits': {'memory': -1}}"),
         AT "resources.limits.memory: '-1' is below 0"},
        {PROFILING(", 'resources': {'limits': {'gpu': 1}}"),
         AT "resources.limits.gpu: is no resource: cpu, memory, ephemeral-storage, or one with a domain "
            "such as nvidia.com/gpu"},
        {PROFILING(", 'resources': {'requests': {'memory': '2Gi'}, 'limits': {'memory': '2G'}}"),
         AT "resources.requests.memory: '2Gi' is more than the limit, which is '2G'"},
        {PROFILING(", 'tolerations': [{'operator': 'Exists'}, {'key': 'a', 'operator': 'Maybe'}]"),
         AT "tolerations[1]: operator must be Exists or Equal, not 'Maybe'"},
        {PROFILING(", 'tolerations': [{'value': 'a'}]"),
         AT "tolerations[0]: a toleration without a key needs operator Exists"},
        {PROFILING(", 'tolerations': [{'key': 'a', 'value': 'b', 'operator': 'Exists'}]"),
         AT "tolerations[0]: operator Exists takes no value, leave it out or use Equal"},
        {PROFILING(", 'tolerations': [{'key': 'a', 'effect': 'Never'}]"),
         AT "tolerations[0]: effect must be NoSchedule, PreferNoSchedule or NoExecute, not 'Never'"},
        {PROFILING(", 'tolerations': [{'key': 'a', 'effect': 'NoSchedule', 'tolerationSeconds': 1}]"),
         AT "tolerations[0]: tolerationSeconds goes with effect NoExecute only"},
        {PROFILING(", 'nodeSelector': {'a': 'b c'}"),
         AT "nodeSelector.a: 'b c' is no value of a label: letters, digits, '-', '_' and '.', at most "
            "63"},
        {SPEC(", 'deploymentOverrides': {'namespace': 'other'}"),
         "spec.deploymentOverrides.namespace: is 'other', but a deployment is only made in the "
         "request's own namespace 'ns', leave it out"},
        {SPEC(", 'deploymentOverrides': {'name': 'Up.per'}"),
         "spec.deploymentOverrides.name: 'Up.per' is no name for a deployment: lower case letters, "
         "digits and '-', at most 63"},
        {SPEC(", 'deploymentOverrides': {'labels': {'a/b/c': 'd'}}"),
         "spec.deploymentOverrides.labels[\"a/b/c\"]: is no name of a label: letters, digits, '-', "
         "'_' "
         "and "
         "'.', at most 63, after an optional domain and '/'"},
        {SPEC(", 'deploymentOverrides': {'annotations': {'-': 'd'}}"),
         "spec.deploymentOverrides.annotations.-: is no name of an annotation: letters, digits, "
         "'-', "
         "'_' and '.', at most 63, after an optional domain and '/'"},
        {SPEC(", 'deploymentOverrides': {'workersImage': ' w'}"),
         "spec.deploymentOverrides.workersImage: ' w' has a blank in it, an image's name has none"},
};

static void each_mistake_is_told(void **state)
{
        for (size_t i = 0; i < ARRAY_LEN(MISTAKES); i++)
                assert_wrong(*state, MISTAKES[i].spec, MISTAKES[i].why);
}

#define IN AT "config."
#define CONFIG_EMPTY                                                                                        \
        AT "config: is missing or empty, say what to reach, for example {sla: {isl: 3000, osl: 500, ttft: " \
           "50, itl: 10}}"

static void each_mistake_in_the_profiler_s_configuration_is_told(void **state)
{
        static const struct {
                const char *config, *why;
        } cases[] = {
                {"{}", CONFIG_EMPTY},
                {"null", CONFIG_EMPTY},
                {"'text'", CONFIG_EMPTY},
                {"[1]", CONFIG_EMPTY},
                {"{'sla': 5}", IN "sla: must be an object, not '5'"},
                {"{'sweep': [1]}", IN "sweep: must be an object, not an array"},
                {"{'sla': {'isl': 0}}", IN "sla.isl: must be a whole number of tokens above 0, not '0'"},
                {"{'sla': {'osl': 1.5}}", IN "sla.osl: must be a whole number of tokens above 0, not '1.5'"},
                {"{'sla': {'ttft': -3}}", IN "sla.ttft: must be a number of milliseconds above 0, not '-3'"},
                {"{'sla': {'itl': '10'}}", IN "sla.itl: must be a number of milliseconds above 0, not '10'"},
                {"{'sla': {'itl': {}}}",
                 IN "sla.itl: must be a number of milliseconds above 0, not an object"},
                {"{'sweep': {'prefillInterpolationGranularity': 0}}",
                 IN "sweep.prefillInterpolationGranularity: must be a whole number above 0, not '0'"},
                {"{'sweep': {'decode_interpolation_granularity': 0.5}}",
                 IN "sweep.decode_interpolation_granularity: must be a whole number above 0, not '0.5'"},
                {"{'hardware': {'numGpusPerNode': -1}}",
                 IN "hardware.numGpusPerNode: must be a whole number of GPUs of 0 or more, not '-1'"},
                {"{'hardware': {'minNumGpusPerEngine': 8, 'max_num_gpus_per_engine': 4}}",
                 IN "hardware.minNumGpusPerEngine: is 8 and more than " IN
                    "hardware.max_num_gpus_per_engine, which is 4"},
                {"{'deployment': {'deploymentTimeout': 0}}",
                 IN "deployment.deploymentTimeout: must be a number of seconds above 0, not '0'"},
                {"{'sweep': {'useAiConfigurator': true}}",
                 IN "sweep.aicSystem: is missing, " IN
                    "sweep.useAiConfigurator needs the system to estimate for, for example h200_sxm"},
                {"{'sweep': {'use_ai_configurator': true, 'aic_system': ''}}",
                 IN "sweep.aic_system: is missing, " IN
                    "sweep.use_ai_configurator needs the system to estimate for, for example h200_sxm"},
                {"{'sweep': {'useAiConfigurator': 'yes'}}",
                 IN "sweep.useAiConfigurator: must be true or false, not 'yes'"},
                {"{'engine': {'backend': 'sglang'}}",
                 IN "engine.backend: is 'sglang', but spec.backend is 'vllm', leave it out"},
                {"{'deployment': {'model': 'other'}}",
                 IN "deployment.model: is 'other', but spec.model is 'm', leave it out"},
                {"{'sweep': {'aicSystem': 'a', 'aic_system': 'b'}}",
                 IN "sweep.aicSystem: differs from " IN
                    "sweep.aic_system, which means the same, keep one of them"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_wrong(
                        r,
                        arena_printf(
                                &r->arena,
                                "'model': 'm', 'backend': 'vllm', 'profilingConfig': {'config': %s, " IMAGE
                                "}",
                                cases[i].config),
                        cases[i].why);
}

static void a_configuration_that_no_command_takes_is_refused(void **state)
{
        struct rig *r = *state;
        char *text = arena_zalloc(&r->arena, 110 * 1024);

        memset(text, 'x', 110 * 1024 - 1);
        assert_wrong(r, arena_printf(&r->arena, SETTINGS("{'planner': {'a': '%s'}}"), text),
                     AT "config: has more than 100 KiB, which no command takes, move parts to a ConfigMap");
}

static void mistakes_are_told_together(void **state)
{
        assert_wrong(
                *state,
                "'model': 'm', 'backend': 'vllm', 'profilingConfig': {'config': {'sla': {'isl': 0, "
                "'ttft': -1}, "
                "'engine': {'backend': 'sglang'}}, 'command': ['a'], 'tolerations': [{'operator': 'X'}]}, "
                "'deploymentOverrides': {'namespace': 'other'}",
                IN "sla.isl: must be a whole number of tokens above 0, not '0'; " IN
                   "sla.ttft: must be a number of milliseconds above 0, not '-1'; " IN
                   "engine.backend: is 'sglang', but spec.backend is 'vllm', leave it out; " AT
                   "profilerImage: is missing, name the image that has the command, or leave both out for "
                   "Sonde's own profiler; " AT "tolerations[0]: operator must be Exists or Equal, not 'X'; "
                   "spec.deploymentOverrides.namespace: is 'other', but a deployment is only made in the "
                   "request's own namespace 'ns', leave it out");
}

static void the_controls_are_told_with_the_rest(void **state)
{
        struct rig *r = *state;
        const char *why;

        named(r, "r",
              SPEC(", 'timeout': 'soon', 'retries': 99, 'deploymentOverrides': {'namespace': 'other'}"));
        why = why_of(r);
        assert_non_null(strstr(why, "spec.deploymentOverrides.namespace: "));
        assert_non_null(strstr(why, "; spec.timeout: "));
        assert_non_null(strstr(why, "; spec.retries: "));
}

static void many_mistakes_are_counted(void **state)
{
        struct rig *r = *state;
        struct json *request;
        const char *why;

        named(r, "r", SPEC(", 'deploymentOverrides': {'labels': {}}"));
        request = (struct json *)r->view.request;
        for (int i = 0; i < 60; i++)
                json_set(&r->arena, json_path(request, "spec.deploymentOverrides.labels"),
                         arena_printf(&r->arena, "l%d", i), json_string(&r->arena, "\xc3\xa4 \n"));
        why = why_of(r);
        assert_non_null(strstr(why, "labels.l0: '\xc3\xa4  ' is no value"));
        assert_non_null(strstr(why, " more"));
        assert_null(strchr(why, '\n'));
}

/* ---- the deployment's name */

static void the_deployment_s_name_leaves_room_for_its_components(void **state)
{
        struct rig *r = *state;

        named(r, "a-name-of-thirty-three-characters", SPEC(""));
        assert_null(why_of(r));
        named(r, "a-name-of-thirty-four-characters-x", SPEC(""));
        assert_string_equal(
                why_of(r),
                "metadata.name: the deployment 'a-name-of-thirty-four-characters-x-dgd' (38 characters) "
                "and its component 'Frontend' (8) have more than 45 together, set "
                "spec.deploymentOverrides.name to one of at most 37");
        named(r, "with.dots", SPEC(""));
        assert_string_equal(why_of(r),
                            "metadata.name: 'with.dots-dgd' is no name for a deployment: lower case letters, "
                            "digits and '-', at most 63, set spec.deploymentOverrides.name");
        named(r, "with.dots", SPEC(", 'deploymentOverrides': {'name': 'n'}"));
        assert_null(why_of(r));
}

#define BASE PROFILING(", 'configMapRef': {'name': 'c', 'key': 'k.yaml'}")

static void components_of_the_base_count(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_CONFIGMAP, "c",
               "{'data': {'k.yaml': 'kind: ConfigMap\\n---\\nkind: DynamoGraphDeployment\\nspec:\\n  "
               "services:\\n    "
               "Frontend: {}\\n    VllmPrefillWorker: {}\\n'}}",
               NULL);
        named(r, "a-name-of-twenty-4-chars", BASE);
        assert_null(why_of(r));
        named(r, "a-name-of-twenty-5-charsx", BASE);
        assert_string_equal(
                why_of(r),
                "metadata.name: the deployment 'a-name-of-twenty-5-charsx-dgd' (29 characters) and its "
                "component 'VllmPrefillWorker' (17) have more than 45 together, set "
                "spec.deploymentOverrides.name to one of at most 28");
}

/* ---- what the request names */

static void what_is_named_is_looked_up_at_once(void **state)
{
        struct rig *r = *state;
        struct dgdr_spec spec;
        const char *why = "x";

        named(r, "r", PROFILING(", 'configMapRef': {'name': 'c'}, 'outputPVC': 'p'"));
        dgdr_spec_read(&r->view, &spec);
        assert_false(dgdr_spec_check(&r->view, &r->d, &spec, true, &why));
        assert_null(why);
        assert_true(wanted(r, &KUBE_CONFIGMAP, "c"));
        assert_true(wanted(r, &KUBE_PVC, "p"));
}

static void what_is_named_must_be_there(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_CONFIGMAP, "c", NULL, NULL);
        answer(r, &KUBE_PVC, "p", NULL, NULL);
        assert_wrong(
                r, PROFILING(", 'configMapRef': {'name': 'c'}, 'outputPVC': 'p'"),
                AT "configMapRef.name: there is no ConfigMap 'c' in namespace 'ns', create it or correct the "
                   "name; " AT
                   "outputPVC: there is no PersistentVolumeClaim 'p' in namespace 'ns', create it or correct "
                   "the name");
}

static void the_configmap_must_have_the_key(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_CONFIGMAP, "c", "{'data': {'other': ''}, 'binaryData': {'packed': 'eA=='}}", NULL);
        assert_wrong(r, PROFILING(", 'configMapRef': {'name': 'c'}"),
                     AT "configMapRef.key: ConfigMap 'c' has no key 'disagg.yaml', add it or name another");
        assert_right(r, PROFILING(", 'configMapRef': {'name': 'c', 'key': 'other'}"));
        assert_right(r, PROFILING(", 'configMapRef': {'name': 'c', 'key': 'packed'}"));
}

static void what_cannot_be_looked_up_passes(void **state)
{
        struct rig *r = *state;

        answer(r, &KUBE_CONFIGMAP, "c", NULL, "403 Forbidden");
        answer(r, &KUBE_PVC, "p", NULL, "403 Forbidden");
        assert_right(r, PROFILING(", 'configMapRef': {'name': 'c'}, 'outputPVC': 'p'"));
}

/* A schema would refuse these; a request may be older than it. */
static void nonsense_does_no_harm(void **state)
{
        static const char *const specs[] = {
                "",
                "'profilingConfig': 1",
                SETTINGS("{'sla': {'isl': 1e999}, 'hardware': {'minNumGpusPerEngine': []}}"),
                "'profilingConfig': {'command': {'a': 1}, 'resources': [], 'tolerations': {'a': 1}}",
                "'profilingConfig': {'command': [[]], 'resources': {'limits': 3, 'requests': {'cpu': []}}}",
                "'profilingConfig': {'tolerations': [1, null, []], 'nodeSelector': {'a': 1}}",
                "'deploymentOverrides': 7",
                "'deploymentOverrides': {'labels': {'': {}}, 'annotations': {'/': []}, 'name': 5}",
                "'model': '\\u0000', 'backend': []",
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
                named(r, "r", specs[i]);
                assert_non_null(why_of(r));
        }
        r->view.request = parse(r, "{'metadata': {'name': 'r'}, 'spec': [1]}");
        assert_non_null(why_of(r));
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_spec_has_defaults),
        TEST(a_spec_says_everything),
        TEST(without_an_image_the_profiler_is_sonde_s),
        TEST(an_empty_command_is_upstream_s),
        TEST(what_is_right_passes),
        TEST(the_example_is_right),
        TEST(each_mistake_is_told),
        TEST(each_mistake_in_the_profiler_s_configuration_is_told),
        TEST(a_configuration_that_no_command_takes_is_refused),
        TEST(mistakes_are_told_together),
        TEST(the_controls_are_told_with_the_rest),
        TEST(many_mistakes_are_counted),
        TEST(the_deployment_s_name_leaves_room_for_its_components),
        TEST(components_of_the_base_count),
        TEST(what_is_named_is_looked_up_at_once),
        TEST(what_is_named_must_be_there),
        TEST(the_configmap_must_have_the_key),
        TEST(what_cannot_be_looked_up_passes),
        TEST(nonsense_does_no_harm),
};

UNIT_MAIN(tests)
