/*
 * The profiling Job, and the kind's registration.
 *
 * The workload's image needs nothing of ours and no shell: the staged sonde-pod takes the program, its libraries and files out
 * of it into a volume, and the tool's image runs them from there.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

const struct kube_type CUDAEXPERIMENT = {"gpu.scheduler.io", "v1alpha1", "cudaexperiments",
                                         "CUDAExperiment",   true,       true};
const struct kube_type WORKLOADPROFILE = {"gpu.scheduler.io", "v1alpha1", "workloadprofiles",
                                          "WorkloadProfile",  true,       true};
const struct kube_type CUDA_PODGROUP = {
        "scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true, true};

#define RUN_DIR         "/sonde/run"
#define SHARED_DIR      "/shared"
#define WORKLOAD_VOLUME "workload"

struct run_kind cuda_run_kind(const struct view *v)
{
        /* They concern what follows, not what is measured. */
        static const char *const later[] = {"replicas", "placement", "profiling.timeout", "profiling.reuse",
                                            NULL};
        struct arena *a = v->arena;
        const char *name = meta_str(v->request, "name");

        return (struct run_kind){
                .job = arena_printf(a, "%s-profiling", name),
                .status_map = name_fit(a, NAME_SUBDOMAIN, "", name, "-profile-status", NULL),
                .data_map = name_fit(a, NAME_SUBDOMAIN, "", name, "-profile-summary", NULL),
                .access = name_fit(a, NAME_SUBDOMAIN, "", name, "-profiling", NULL),
                .free = later,
        };
}

/* ---- what both Jobs have */

struct json *cuda_labels(const struct view *v)
{
        return json_build(v->arena,
                          "{'app.kubernetes.io/name': 'kratos', 'app.kubernetes.io/managed-by': "
                          "'kratos-controller', 'gpu.scheduler.io/experiment': %s}",
                          name_fit(v->arena, NAME_LABEL_VALUE, "", meta_str(v->request, "name"), "", NULL));
}

struct json *cuda_volumes(const struct view *v, const struct cuda_spec *spec)
{
        struct json *list = json_array(v->arena);

        json_foreach (volume, spec->volumes)
                json_append(list,
                            json_build(v->arena,
                                       "{'name': %s, 'persistentVolumeClaim': %p, 'configMap': %p, "
                                       "'emptyDir': %p}",
                                       json_str(volume, "name"),
                                       (void *)json_copy(v->arena, json_at(volume, "persistentVolumeClaim")),
                                       (void *)json_copy(v->arena, json_at(volume, "configMap")),
                                       (void *)json_copy(v->arena, json_at(volume, "emptyDir"))));
        return list;
}

struct json *cuda_mounts(const struct view *v, const struct cuda_spec *spec)
{
        static const char *const members[] = {"name", "mountPath", "subPath", "readOnly"};
        struct json *list = json_array(v->arena);

        json_foreach (volume, spec->volumes) {
                struct json *mount = json_append(list, json_object(v->arena));

                for (size_t i = 0; i < ARRAY_LEN(members); i++)
                        json_set(v->arena, mount, members[i],
                                 json_copy(v->arena, json_at(volume, members[i])));
        }
        return list;
}

struct json *cuda_resources(const struct view *v, const struct cuda_spec *spec)
{
        struct arena *a = v->arena;
        struct json *all = spec->resources ? json_copy(a, spec->resources) : json_object(a);
        struct json *limits = json_at(all, "limits");

        if (!json_is(limits, JSON_OBJECT))
                limits = json_set(a, all, "limits", json_object(a));
        json_set(a, limits, CUDA_GPU_RESOURCE,
                 json_string(a, arena_printf(a, "%lld", (long long)spec->gpus)));
        return all;
}

/* ---- the containers */

static void add_word(struct arena *a, struct json *command, const char *word)
{
        json_append(command, json_string(a, word));
}

static void add_option(struct arena *a, struct json *command, const char *name, const char *value)
{
        add_word(a, command, name);
        add_word(a, command, run_escaped(a, value));
}

static void add_number(struct arena *a, struct json *command, const char *name, int64_t value)
{
        add_option(a, command, name, arena_printf(a, "%lld", (long long)value));
}

/* Root has what root has: with a capability that is of use to nobody else the workload's files are read as root, too. */
static struct json *security(const struct view *v, const struct cuda_spec *spec, const char *capability)
{
        struct arena *a = v->arena;
        struct json *context;

        if (!spec->sys_admin)
                return NULL;
        context = json_build(a, "{'runAsUser': 0}");
        if (capability)
                json_set(a, context, "capabilities", json_build(a, "{'add': [%s]}", capability));
        return context;
}

static struct json *mounts_with_workload(const struct view *v, const struct cuda_spec *spec)
{
        struct json *mounts = cuda_mounts(v, spec);

        json_append(mounts,
                    json_build(v->arena, "{'name': '" WORKLOAD_VOLUME "', 'mountPath': '" SHARED_DIR "'}"));
        return mounts;
}

static struct json *stage_workload(const struct view *v, const struct cuda_spec *spec)
{
        struct arena *a = v->arena;
        const struct json *program = json_first(spec->command);
        struct json *command = json_build(a,
                                          "['" RUN_PROGRAM "', 'stage-workload', '--to', '" SHARED_DIR "']");

        json_foreach (file, spec->files)
                add_option(a, command, "--file", json_cstr(file));
        add_word(a, command, "--");
        json_append(command, program ? json_copy(a, program) : json_string(a, CUDA_PROGRAM_DEFAULT));
        return json_build(a,
                          "{'name': 'stage-workload', 'image': %s, 'command': %p, 'env': %p, 'volumeMounts': "
                          "%p, 'securityContext': %p}",
                          spec->image, (void *)command, (void *)json_copy(v->arena, spec->env),
                          (void *)mounts_with_workload(v, spec), (void *)security(v, spec, NULL));
}

static struct json *runner_command(const struct view *v, const struct cuda_spec *spec)
{
        struct arena *a = v->arena;
        struct json *command = json_build(a, "['" RUN_PROGRAM "', 'ncu', '--dir', '" RUN_DIR "']");
        bool first = true;

        add_option(a, command, "--set", spec->set);
        add_number(a, command, "--launch-count", spec->launch_count);
        if (spec->launch_skip)
                add_number(a, command, "--launch-skip", spec->launch_skip);
        if (spec->kernel_name)
                add_option(a, command, "--kernel-name", spec->kernel_name);
        add_option(a, command, "--name", meta_str(v->request, "name"));
        add_option(a, command, "--shared", SHARED_DIR);
        add_word(a, command, "--");
        json_foreach (word, spec->command) {
                if (!first)
                        json_append(command, json_copy(a, word));
                first = false;
        }
        return command;
}

static struct json *runner_env(const struct view *v, const struct cuda_spec *spec, const char *summary)
{
        const struct cuda_settings *settings = v->settings;
        struct arena *a = v->arena;
        struct json *env = json_build(
                a,
                "[{'name': 'KRATOS_EXPERIMENT_NAME', 'value': %s}, {'name': 'KRATOS_EXPERIMENT_NAMESPACE', "
                "'value': %s}, {'name': 'KRATOS_PROFILE_SUMMARY_CONFIGMAP', 'value': %s}, "
                "{'name': 'KRATOS_PROFILE_SUMMARY_KEY', 'value': '" CUDA_SUMMARY_KEY "'}]",
                meta_str(v->request, "name"), meta_str(v->request, "namespace"), summary);

        json_foreach (e, spec->env)
                json_append(env, json_copy(a, e));
        json_foreach (e, settings->env)
                json_append(env, json_copy(a, e));
        return env;
}

/* The files are where the program looks for them, as in its own image. */
static struct json *runner_mounts(const struct view *v, const struct cuda_spec *spec)
{
        struct json *mounts = mounts_with_workload(v, spec);

        json_foreach (file, spec->files) {
                const char *path = json_cstr(file);

                json_append(mounts, json_build(v->arena,
                                               "{'name': '" WORKLOAD_VOLUME "', 'mountPath': %s, 'subPath': "
                                               "'root/%s'}",
                                               path, path + strspn(path, "/")));
        }
        return mounts;
}

static struct json *runner(const struct view *v, const struct cuda_spec *spec, const char *summary)
{
        const struct cuda_settings *settings = v->settings;

        return json_build(v->arena,
                          "{'name': 'profiling-runner', 'image': %s, 'imagePullPolicy': 'IfNotPresent', "
                          "'command': %p, 'args': %p, 'env': %p, 'resources': %p, 'volumeMounts': %p, "
                          "'securityContext': %p}",
                          settings->runner_image, (void *)runner_command(v, spec),
                          (void *)json_copy(v->arena, spec->arguments), (void *)runner_env(v, spec, summary),
                          (void *)cuda_resources(v, spec), (void *)runner_mounts(v, spec),
                          (void *)security(v, spec, "SYS_ADMIN"));
}

/* ---- the Job */

static struct json *pod(const struct view *v, const struct cuda_spec *spec)
{
        struct json *volumes = cuda_volumes(v, spec);

        json_append(volumes, json_build(v->arena, "{'name': '" WORKLOAD_VOLUME "', 'emptyDir': {}}"));
        return json_build(v->arena, "{'volumes': %p, 'runtimeClassName': %s, 'affinity': %p}",
                          (void *)volumes, spec->runtime_class,
                          (void *)place_affinity(v->arena, NULL, 0, &spec->least));
}

bool cuda_plan_run(const struct view *v, struct decision *d, const struct run *run,
                   const struct cuda_spec *spec, const char **why)
{
        static const char *const files[] = {CUDA_SUMMARY_KEY, NULL};
        const struct cuda_settings *settings = v->settings;
        bool made = !run->names.job || view_child(v, &KUBE_JOB, run->names.job); /* and never made again */
        bool wrong = !made && cuda_spec_check(v, spec, why);                     /* that is told by settle */
        struct run now = *run;
        struct run_job job = {
                .pod_image = settings->pod_image,
                .run_dir = RUN_DIR,
                .container = made || wrong ? NULL : runner(v, spec, run->kind->data_map),
                .init = made || wrong ? NULL : json_build(v->arena, "[%p]", (void *)stage_workload(v, spec)),
                .pod = made || wrong ? NULL : pod(v, spec),
                .labels = cuda_labels(v),
                .files = files,
                .ttl_seconds = -1,
        };

        now.changed = run->changed || wrong; /* no Job is made with it */
        return run_plan(v, d, &now, &job, why);
}

/* ---- registration */

static void project_podgroup(struct json *group, struct arena *a)
{
        (void)a;
        json_remove(group, "spec");
        json_remove(group, "status");
}

static const struct child_kind children[] = {
        {.type = &KUBE_JOB, .through = -1, .project = run_project_job},
        {.type = &KUBE_POD, .through = 0, .project = run_project_pod, .passing = true},
        {.type = &KUBE_CONFIGMAP, .through = -1, .project = run_project_map, .passing = true},
        {.type = &WORKLOADPROFILE, .through = -1},
        {.type = &CUDA_PODGROUP, .through = -1, .project = project_podgroup, .optional = true},
};

struct controller cuda_controller(const struct cuda_settings *settings)
{
        return (struct controller){
                .name = "cuda",
                .type = &CUDAEXPERIMENT,
                .children = children,
                .n_children = ARRAY_LEN(children),
                .settings = settings,
                .plan = cuda_plan,
                .settle = cuda_settle,
        };
}
