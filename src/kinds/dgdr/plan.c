/*
 * The profiler's Job, Sonde's own or another one, started as upstream's v0.9.0 starts it, and the kind's registration.
 */
#include "kinds/dgdr/internal.h"
#include "kinds/run_internal.h"

const struct kube_type DGDR = {
        "nvidia.com", "v1alpha1", "dynamographdeploymentrequests", "DynamoGraphDeploymentRequest",
        true,         true};
const struct kube_type DGD = {"nvidia.com", "v1alpha1", "dynamographdeployments", "DynamoGraphDeployment",
                              true,         true};

#define DATA_DIR   "/data"
#define CONFIG_DIR "/config"

struct run_kind dgdr_run_kind(const struct view *v)
{
        /* They concern what becomes of the output, not what is measured. */
        static const char *const later[] = {"autoApply", "deploymentOverrides", "useMocker", NULL};
        const char *name = meta_str(v->request, "name");

        return (struct run_kind){
                .job = arena_printf(v->arena, "profile-%s", name),
                .status_map = name_fit(v->arena, NAME_SUBDOMAIN, "dgdr-status-", name, "", NULL),
                .data_map = name_fit(v->arena, NAME_SUBDOMAIN, "dgdr-output-", name, "", NULL),
                .access = name_fit(v->arena, NAME_SUBDOMAIN, "profile-", name, "", NULL),
                .free = later,
        };
}

/* ---- the container */

static struct json *section(struct arena *a, struct json *config, const char *name)
{
        struct json *s = json_at(config, name);

        return json_is(s, JSON_OBJECT) ? s : json_set(a, config, name, json_object(a));
}

/* The profiler's own configuration, with what the request says elsewhere; both spellings of a key are read there. */
static const char *config_text(const struct view *v, const struct dgdr_spec *spec)
{
        struct arena *a = v->arena;
        struct json *config = spec->config ? json_copy(a, spec->config) : json_object(a), *deployment,
                    *engine;

        if (!spec->image) /* which of the two is used may be changed later */
                json_set(a, config, "use_mocker", json_truth(a, true));
        json_remove(config, "outputDir");
        json_set(a, config, "output_dir", json_string(a, DATA_DIR));
        deployment = section(a, config, "deployment");
        json_set(a, deployment, "namespace", json_string(a, meta_str(v->request, "namespace")));
        json_set(a, deployment, "model", json_string(a, spec->model));
        engine = section(a, config, "engine");
        json_set(a, engine, "backend", json_string(a, spec->backend));
        if (spec->base_map)
                json_set(a, engine, "config",
                         json_string(a, arena_printf(a, CONFIG_DIR "/%s", spec->base_key)));
        return json_print(a, config); /* JSON is YAML */
}

static struct json *arguments(const struct view *v, const struct dgdr_spec *spec)
{
        struct arena *a = v->arena;
        struct json *args = json_build(a, "['--profile-config']");

        json_append(args, json_string(a, run_escaped(a, config_text(v, spec))));
        if (spec->gpu_discovery)
                json_append(args, json_string(a, "--enable-gpu-discovery"));
        return args;
}

static struct json *environment(const struct view *v)
{
        const struct dgdr_settings *settings = v->settings;
        struct arena *a = v->arena;
        struct json *env = json_build(
                a,
                "[{'name': 'HUGGING_FACE_HUB_TOKEN', 'valueFrom': {'secretKeyRef': {'name': "
                "'hf-token-secret', "
                "'key': 'HF_TOKEN', 'optional': %p}}}, {'name': 'DGDR_NAME', 'value': %s}, "
                "{'name': 'DGDR_NAMESPACE', 'value': %s}, {'name': 'DGDR_UID', 'value': %s}]",
                (void *)json_truth(a, true), meta_str(v->request, "name"), meta_str(v->request, "namespace"),
                meta_str(v->request, "uid"));

        json_foreach (e, settings->env)
                json_append(env, json_copy(a, e));
        return env;
}

static struct json *container(const struct view *v, const struct dgdr_spec *spec)
{
        const struct dgdr_settings *settings = v->settings;
        struct arena *a = v->arena;
        struct json *c = json_build(a, "{'name': 'profiler', 'image': %s, 'args': %p, 'env': %p}",
                                    spec->image ? spec->image : settings->pod_image,
                                    (void *)arguments(v, spec), (void *)environment(v));

        if (spec->command) {
                json_set(a, c, "command", json_copy(a, spec->command));
        } else if (!spec->image) {
                json_set(a, c, "command",
                         json_build(a, "['" RUN_PROGRAM "', 'sla', '--target', %s]", spec->target));
        } else {
                json_set(a, c, "command",
                         json_build(a, "['python', '-m', 'benchmarks.profiler.profile_sla']"));
                json_set(a, c, "workingDir", json_string(a, "/workspace"));
        }
        json_set(a, c, "resources", json_copy(v->arena, spec->resources));
        if (spec->base_map)
                json_set(a, c, "volumeMounts",
                         json_build(a,
                                    "[{'name': 'profiling-config', 'mountPath': '" CONFIG_DIR "', "
                                    "'readOnly': %p}]",
                                    (void *)json_truth(a, true)));
        return c;
}

/* ---- the pod */

static struct json *volumes(const struct view *v, const struct dgdr_spec *spec)
{
        struct arena *a = v->arena;
        struct json *list = json_array(a);

        if (spec->pvc)
                json_append(list, json_build(a, "{'name': 'run', 'persistentVolumeClaim': {'claimName': %s}}",
                                             spec->pvc));
        if (spec->base_map)
                json_append(list,
                            json_build(a,
                                       "{'name': 'profiling-config', 'configMap': {'name': %s, 'items': "
                                       "[{'key': %s, 'path': %s}]}}",
                                       spec->base_map, spec->base_key, spec->base_key));
        return list;
}

static struct json *pod(const struct view *v, const struct dgdr_spec *spec)
{
        return json_build(v->arena,
                          "{'volumes': %p, 'tolerations': %p, 'nodeSelector': %p, "
                          "'imagePullSecrets': [{'name': 'nvcr-imagepullsecret'}]}",
                          (void *)volumes(v, spec), (void *)json_copy(v->arena, spec->tolerations),
                          (void *)json_copy(v->arena, spec->node_selector));
}

/* For a profiler that deploys what it measures; in its own namespace only. */
static struct json *rules(const struct view *v)
{
        return json_build(v->arena,
                          "[{'apiGroups': ['nvidia.com'], 'resources': ['dynamographdeployments'], "
                          "'verbs': ['get', 'list', 'watch', 'create', 'delete']}, "
                          "{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['get', 'list', 'watch']}, "
                          "{'apiGroups': [''], 'resources': ['pods/log'], 'verbs': ['get']}]");
}

static struct json *labels(const struct view *v)
{
        const char *name = meta_str(v->request, "name"), *ns = meta_str(v->request, "namespace");
        const char *value = name_fit(v->arena, NAME_LABEL_VALUE, "", name, "", NULL);

        return json_build(v->arena,
                          "{'app': 'dynamo-profiler', 'dgdr': %s, 'dgdr.nvidia.com/name': %s, "
                          "'dgdr.nvidia.com/namespace': %s}",
                          value, value, ns);
}

bool dgdr_plan_run(const struct view *v, struct decision *d, const struct run *run,
                   const struct dgdr_spec *spec, const char **why)
{
        static const char *const files[] = {"config_with_planner.yaml", "mocker_config_with_planner.yaml",
                                            "final_config.yaml", NULL};
        const struct dgdr_settings *settings = v->settings;
        bool made = run->names.job && view_child(v, &KUBE_JOB, run->names.job); /* and never made again */
        struct run_job job = {
                .pod_image = settings->pod_image,
                .run_dir = DATA_DIR,
                .container = made ? NULL : container(v, spec),
                .pod = made ? NULL : pod(v, spec),
                .labels = labels(v),
                .files = files,
                .rules = spec->api_access ? rules(v) : NULL,
                .workload_token = spec->api_access,
                .ttl_seconds = -1,
        };

        return run_plan(v, d, run, &job, why);
}

/* ---- registration */

static const struct child_kind children[] = {
        {.type = &KUBE_JOB, .through = -1, .project = run_project_job},
        {.type = &KUBE_POD, .through = 0, .project = run_project_pod, .passing = true},
        {.type = &KUBE_CONFIGMAP, .through = -1, .project = run_project_map, .passing = true},
        {.type = &DGD, .through = -1, .project = dgdr_project_dgd, .loose = true, .optional = true},
};

struct controller dgdr_controller(const struct dgdr_settings *settings)
{
        return (struct controller){
                .name = "dgdr",
                .type = &DGDR,
                .children = children,
                .n_children = ARRAY_LEN(children),
                .settings = settings,
                .plan = dgdr_plan,
                .settle = dgdr_settle,
        };
}
