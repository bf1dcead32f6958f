/*
 * The Job: one pod with one container for each group of algorithms, and the kinds' registration.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/run_internal.h"

const struct kube_type ALGORITHMPROFILING = {"dprofiler.io",       "v1alpha1", "algorithmprofilings",
                                             "AlgorithmProfiling", true,       true};
const struct kube_type ALGORITHMCOMPARISON = {"dprofiler.io",        "v1alpha1", "algorithmcomparisons",
                                              "AlgorithmComparison", true,       true};

#define RUN_DIR     "/sonde/run"
#define LABEL_QUEUE "kueue.x-k8s.io/queue-name"

/* The containers of a pod end when its coordinator has; one that has not by then has never started. */
#define JOB_PATIENCE (60 * USEC_PER_SEC)

struct run_kind algorithm_run_kind(const struct view *v)
{
        static const char *const later[] = {"ttlSecondsAfterFinished", NULL};
        struct arena *a = v->arena;
        const char *name = meta_str(v->request, "name");
        /* A profiling and a comparison may have the same name. */
        const char *of = v->type == &ALGORITHMCOMPARISON ? "-comparison" : "";

        return (struct run_kind){
                .job = arena_printf(a, "dprofiler-%s", name),
                .status_map = name_fit(a, NAME_SUBDOMAIN, "", name, arena_join(a, of, "-run-status", ""),
                                       NULL),
                .data_map = name_fit(a, NAME_SUBDOMAIN, "", name, arena_join(a, of, "-run-results", ""),
                                     NULL),
                .access = name_fit(a, NAME_SUBDOMAIN, "dprofiler-", name, of, NULL),
                .free = later,
        };
}

const char *algorithm_image(const struct view *v, const struct algorithm_entry *e)
{
        const struct algorithm_settings *settings = v->settings;

        if (e->type == ALGORITHM_CUSTOM)
                return e->image;
        return e->type == ALGORITHM_ML ? settings->ml_image : settings->pod_image;
}

/* ---- labels */

static void add_label(struct arena *a, struct json *labels, const char *key, const char *value)
{
        if (!json_at(labels, key))
                json_set(a, labels, key, json_string(a, value));
}

struct json *algorithm_labels(const struct view *v, const struct algorithm_spec *spec)
{
        struct arena *a = v->arena;
        struct json *labels = run_labels(v);
        const char *type = spec->comparison ? "algorithm-comparison"
                                            : arena_printf(a, "%s-algorithm",
                                                           algorithm_type_name(spec->entries[0].type));
        const char *name = spec->comparison ? meta_str(v->request, "name") : spec->entries[0].name;

        add_label(a, labels, "app", "dprofiler");
        add_label(a, labels, "type", type);
        add_label(a, labels, "algorithm", name_fit(a, NAME_LABEL_VALUE, "", name, "", NULL));
        return labels;
}

/* ---- volumes */

/* Two groups may have volumes of one name. */
static const char *volume_name(const struct view *v, const struct algorithm_spec *spec,
                               const struct algorithm_entry *e, const struct json *volume)
{
        const char *name = json_str_or(volume, "name", "");

        if (spec->groups == 1)
                return name;
        return name_fit(v->arena, NAME_LABEL, arena_printf(v->arena, "g%zu-", e->group), name, "", NULL);
}

/* The first algorithm of a group: all of them have the same volumes and resources. */
static const struct algorithm_entry *first_of(const struct algorithm_spec *spec, size_t group)
{
        for (size_t i = 0; i < spec->n; i++)
                if (spec->entries[i].group == group)
                        return &spec->entries[i];
        return NULL;
}

static struct json *volumes(const struct view *v, const struct algorithm_spec *spec)
{
        struct arena *a = v->arena;
        struct json *list = json_array(a);

        for (size_t g = 0; g < spec->groups; g++) {
                const struct algorithm_entry *e = first_of(spec, g);

                json_foreach (volume, e ? e->volumes : NULL)
                        json_append(list,
                                    json_build(a,
                                               "{'name': %s, 'persistentVolumeClaim': %p, 'configMap': %p, "
                                               "'emptyDir': %p}",
                                               volume_name(v, spec, e, volume),
                                               (void *)json_copy(a, json_at(volume, "persistentVolumeClaim")),
                                               (void *)json_copy(a, json_at(volume, "configMap")),
                                               (void *)json_copy(a, json_at(volume, "emptyDir"))));
        }
        return list;
}

static struct json *mounts(const struct view *v, const struct algorithm_spec *spec,
                           const struct algorithm_entry *e)
{
        static const char *const members[] = {"mountPath", "subPath", "readOnly"};
        struct arena *a = v->arena;
        struct json *list = json_array(a);

        json_foreach (volume, e ? e->volumes : NULL) {
                struct json *mount = json_append(
                        list, json_build(a, "{'name': %s}", volume_name(v, spec, e, volume)));

                for (size_t i = 0; i < ARRAY_LEN(members); i++)
                        json_set(a, mount, members[i], json_copy(a, json_at(volume, members[i])));
        }
        return list;
}

/* ---- the containers */

/* A coordinator in which nothing is measured needs next to nothing. It says all of it: a quota may want to know. */
static struct json *resources(const struct view *v, const struct algorithm_entry *e)
{
        if (e)
                return json_copy(v->arena, e->resources);
        return json_build(v->arena,
                          "{'requests': {'cpu': '10m', 'memory': '32Mi'}, 'limits': {'cpu': '1', 'memory': "
                          "'256Mi'}}");
}

static struct json *container(const struct view *v, const struct algorithm_spec *spec, size_t group,
                              const char *name, struct json *command)
{
        const struct algorithm_settings *settings = v->settings;
        const struct algorithm_entry *e = first_of(spec, group);
        struct arena *a = v->arena;
        struct json *c = json_build(
                a, "{'name': %s, 'image': %s, 'command': %p, 'resources': %p, 'volumeMounts': %p}", name,
                e ? algorithm_image(v, e) : settings->pod_image, (void *)command, (void *)resources(v, e),
                (void *)mounts(v, spec, e));
        struct json *env = settings->env ? json_copy(a, settings->env) : json_array(a);

        if (e && e->type == ALGORITHM_ML)
                json_set(a, c, "imagePullPolicy", json_string(a, "IfNotPresent"));
        /* For the result: on another node the same may take another time. */
        json_append(env, json_build(a, "{'name': 'SONDE_NODE_NAME', 'valueFrom': {'fieldRef': {'fieldPath': "
                                       "'spec.nodeName'}}}"));
        json_set(a, c, "env", env);
        return c;
}

#define ALONE "algorithm"
#define GROUP "group-"

bool algorithm_measures(const char *container)
{
        return streq(container, ALONE) || streq(container, ALGORITHM_COORDINATOR) ||
               str_has_prefix(str_of(container), STR(GROUP));
}

static struct json *workload(const struct view *v, const struct algorithm_spec *spec)
{
        struct arena *a = v->arena;
        const char *plan = json_print(a, algorithm_plan_json(v, spec));
        struct json *command = json_build(a, "['" RUN_PROGRAM "', 'probe', '--plan', %s]",
                                          run_escaped(a, plan));

        return container(v, spec, 0, spec->groups > 1 ? ALGORITHM_COORDINATOR : ALONE, command);
}

static struct json *workers(const struct view *v, const struct algorithm_spec *spec)
{
        struct arena *a = v->arena;
        struct json *list = json_array(a);

        for (size_t g = 1; g < spec->groups; g++)
                json_append(list,
                            container(v, spec, g, arena_printf(a, GROUP "%zu", g),
                                      json_build(a, "['" RUN_PROGRAM "', 'probe', '--worker', '%zu']", g)));
        return list;
}

/* ---- the Job */

/*
 * After the end: the container of another group whose image cannot be had keeps the pod for ever, and with it what the pod has
 * asked for.
 */
static void end_job(const struct view *v, struct decision *d, const struct run *run)
{
        const struct object *job = run->names.job ? view_child(v, &KUBE_JOB, run->names.job) : NULL;
        struct str text = json_text(json_at(json_at(v->request, "status"), "completionTime"));
        usec_t ended;

        if (!run->over || !job || run_job_finished(job->json) || !text.p || !time_parse(text, &ended))
                return;
        if (v->now < usec_add(ended, JOB_PATIENCE))
                decide_again_at(d, usec_add(ended, JOB_PATIENCE));
        else
                decide_absent_foreground(d, job);
}

/*
 * Where several pods measure the same, each that follows is wished to the node of the first: what differs between nodes would
 * count as what differs between pods. A wish only: that node may be full, or gone.
 */
static struct json *affinity(const struct view *v, const struct algorithm_spec *spec)
{
        const char *node = json_str(json_at(json_at(v->request, "status"), "pods"), "node");

        if (spec->pods < 2 || !node || !*node)
                return NULL;
        return json_build(
                v->arena,
                "{'nodeAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 100, "
                "'preference': {'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': "
                "'In', 'values': [%s]}]}}]}}",
                node);
}

bool algorithm_plan_run(const struct view *v, struct decision *d, const struct run *run,
                        const struct algorithm_spec *spec, const char **why)
{
        static const char *const files[] = {ALGORITHM_SAMPLES_KEY, NULL};
        const struct algorithm_settings *settings = v->settings;
        bool made = !run->names.job || view_child(v, &KUBE_JOB, run->names.job); /* and never made again */
        bool wrong = !made && algorithm_spec_check(v, spec);                     /* that is told by settle */
        struct run now = *run;
        struct run_job job = {
                .pod_image = settings->pod_image,
                .run_dir = RUN_DIR,
                .container = made || wrong ? NULL : workload(v, spec),
                .more = made || wrong || spec->groups == 1 ? NULL : workers(v, spec),
                .pod = made || wrong ? NULL
                                     : json_build(v->arena, "{'volumes': %p, 'affinity': %p}",
                                                  (void *)volumes(v, spec), (void *)affinity(v, spec)),
                .labels = made || wrong ? NULL : algorithm_labels(v, spec),
                .files = files,
                .ttl_seconds = -1,
        };

        if (spec->queue)
                job.job_labels = json_build(v->arena, "{'" LABEL_QUEUE "': %s}", spec->queue);
        now.changed = run->changed || wrong; /* no Job is made with it */
        end_job(v, d, run);
        return run_plan(v, d, &now, &job, why);
}

/* ---- registration */

/* The last ones are those that a schedule makes. */
#define CHILDREN(request)                                                                               \
        {                                                                                               \
                {.type = &KUBE_JOB, .through = -1, .project = run_project_job},                         \
                        {.type = &KUBE_POD, .through = 0, .project = run_project_pod, .passing = true}, \
                        {.type = &KUBE_CONFIGMAP,                                                       \
                         .through = -1,                                                                 \
                         .project = run_project_map,                                                    \
                         .passing = true},                                                              \
                        {.type = (request), .through = -1, .project = algorithm_project},               \
        }

enum { N_CHILDREN = 4 };

static const struct child_kind profiling_children[N_CHILDREN] = CHILDREN(&ALGORITHMPROFILING),
                               comparison_children[N_CHILDREN] = CHILDREN(&ALGORITHMCOMPARISON);

static struct controller controller(const char *name, const struct kube_type *type,
                                    const struct child_kind *children,
                                    const struct algorithm_settings *settings)
{
        return (struct controller){
                .name = name,
                .type = type,
                .children = children,
                .n_children = N_CHILDREN,
                .settings = settings,
                .plan = algorithm_plan,
                .settle = algorithm_settle,
        };
}

struct controller algorithm_profiling_controller(const struct algorithm_settings *settings)
{
        return controller("algorithmprofiling", &ALGORITHMPROFILING, profiling_children, settings);
}

struct controller algorithm_comparison_controller(const struct algorithm_settings *settings)
{
        return controller("algorithmcomparison", &ALGORITHMCOMPARISON, comparison_children, settings);
}
