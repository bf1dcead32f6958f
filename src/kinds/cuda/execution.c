/*
 * The execution Job: the workload as the spec has it, nothing added but where it may run.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

#define GPU_LABEL      "nvidia.com/gpu.product"
#define EXPORTER_LABEL "app=nvidia-dcgm-exporter"
enum { EXPORTER_PORT = 9400 };

/* ---- where */

static bool is_ready(const struct json *pod)
{
        return streq(json_str(json_at(pod, "status"), "phase"), "Running") && run_condition(pod, "Ready");
}

static int64_t metrics_port(const struct json *pod)
{
        json_foreach (container, json_at(json_at(pod, "spec"), "containers")) {
                const struct json *port = json_find_named(json_at(container, "ports"), "metrics");
                int64_t number = json_int(port, "containerPort", 0);

                if (number > 0 && number <= UINT16_MAX)
                        return number;
        }
        return EXPORTER_PORT;
}

/* The pod that tells how busy the node's GPUs are. NULL: none does, or two namespaces claim to, and one of them lies. */
static const struct json *exporter_of(const struct json *pods, const char *node)
{
        const struct json *found = NULL;

        json_foreach (pod, json_at(pods, "items")) {
                const char *ip = json_str(json_at(pod, "status"), "podIP");

                if (!ip || !*ip || !is_ready(pod) || !streq(json_str(json_at(pod, "spec"), "nodeName"), node))
                        continue;
                if (found && !streq(meta_str(found, "namespace"), meta_str(pod, "namespace")))
                        return NULL;
                found = pod;
        }
        return found;
}

static const char *exporter_address(const struct view *v, const struct json *pods, const char *node)
{
        const struct json *pod = exporter_of(pods, node);
        const char *ip = json_str(json_at(pod, "status"), "podIP");
        bool v6 = ip && strchr(ip, ':');

        return pod ? arena_printf(v->arena, "http://%s%s%s:%lld/metrics", v6 ? "[" : "", ip, v6 ? "]" : "",
                                  (long long)metrics_port(pod))
                   : NULL;
}

/* Whatever is in the way of it only means that nothing is known. False: look-ups are under way. */
static bool look_how_busy(const struct view *v, struct decision *d, struct place_node *nodes, size_t n)
{
        const struct want exporters = {.kind = WANT_ALL,
                                       .type = &KUBE_POD,
                                       .name = EXPORTER_LABEL,
                                       .project = place_project_exporter};
        const struct answer *pods = decide_want(d, v, &exporters);
        bool all = pods;

        for (size_t i = 0; pods && i < MIN(n, (size_t)PLACE_SCRAPES_MAX); i++) {
                const struct want want = {.kind = WANT_SCRAPE,
                                          .name = exporter_address(v, pods->json, nodes[i].name)};
                const struct answer *told = want.name ? decide_want(d, v, &want) : NULL;

                all = all && (told || !want.name);
                if (told && !told->error)
                        place_busy(&nodes[i], place_busy_of(told->text));
        }
        if (all)
                place_sort(nodes, n);
        return all;
}

static const char *reason_of(const struct view *v, const struct answer *list, const struct place_node *nodes,
                             size_t n, const char *bound)
{
        if (list->error)
                return run_sentence(v, "the nodes cannot be read, so none is preferred: %s", list->error);
        if (!json_len(json_at(list->json, "items")))
                return "no node says what GPU it has (label " GPU_LABEL
                       "), so none is preferred; is GPU feature "
                       "discovery installed?";
        return place_reason(v->arena, nodes, n, bound);
}

bool cuda_place(const struct view *v, struct decision *d, const struct cuda_spec *spec, const char *bound,
                struct cuda_placement *ret)
{
        const struct want want = {
                .kind = WANT_LIST, .type = &KUBE_NODE, .name = GPU_LABEL, .project = place_project_node};
        const struct cuda_settings *settings = v->settings;
        struct place_node *nodes = NULL;
        const struct answer *list = NULL;
        size_t n = 0, max;

        *ret = (struct cuda_placement){0};
        bound = bound ? bound : "unknown";
        if (spec->mode != PLACE_NONE && settings->no_nodes)
                ret->reason = "the operator may not list nodes (--no-nodes), so none is preferred";
        else if (spec->mode != PLACE_NONE) {
                list = decide_want(d, v, &want);
                if (!list)
                        return false;
                max = MIN(json_len(json_at(list->json, "items")), (size_t)PLACE_NODES_MAX);
                nodes = arena_alloc(v->arena, (max + 1) * sizeof(*nodes));
                n = place_nodes(v->arena, list->json, bound, &spec->least, nodes, max);
        }
        if (n && !look_how_busy(v, d, nodes, n))
                return false;
        ret->affinity = place_affinity(v->arena, nodes, n, &spec->least);
        if (n)
                ret->hint = place_hint(v->arena, nodes, n, bound);
        if (list)
                ret->reason = reason_of(v, list, nodes, n, bound);
        return true;
}

/* ---- the Job */

static struct json *pod_annotations(const struct view *v, const struct cuda_spec *spec, const char *group)
{
        struct arena *a = v->arena;

        if (spec->mode != PLACE_VOLCANO)
                return NULL;
        return json_build(a, "{'scheduling.k8s.io/group-name': %s, 'scheduling.volcano.sh/queue-name': %p}",
                          group, (void *)json_string(a, spec->queue));
}

static struct json *pod_spec(const struct view *v, const struct cuda_spec *spec,
                             const struct run_controls *controls, const struct cuda_placement *place)
{
        struct arena *a = v->arena;
        struct json *container = json_build(
                a,
                "{'name': 'execution', 'image': %s, 'command': %p, 'args': %p, 'env': %p, 'resources': %p, "
                "'volumeMounts': %p}",
                spec->image, (void *)json_copy(v->arena, spec->command),
                (void *)json_copy(v->arena, spec->arguments), (void *)json_copy(v->arena, spec->env),
                (void *)cuda_resources(v, spec), (void *)(spec->volumes ? cuda_mounts(v, spec) : NULL));

        return json_build(a,
                          "{'restartPolicy': 'Never', 'runtimeClassName': %s, 'schedulerName': %p, "
                          "'priorityClassName': "
                          "%p, 'affinity': %p, 'volumes': %p, 'containers': [%p]}",
                          spec->runtime_class,
                          (void *)json_string(a, spec->mode == PLACE_VOLCANO ? "volcano" : NULL),
                          (void *)json_string(a, controls->priority_class), (void *)place->affinity,
                          (void *)(spec->volumes ? cuda_volumes(v, spec) : NULL), (void *)container);
}

static void plan_group(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                       const struct run_controls *controls, const char *name)
{
        struct arena *a = v->arena;
        const char *gpus = arena_printf(a, "%lld", (long long)spec->replicas * (long long)spec->gpus);

        decide_exist(
                d, &CUDA_PODGROUP,
                json_build(a,
                           "{'metadata': {'name': %s, 'labels': %p}, 'spec': {'minMember': %lld, 'queue': "
                           "%p, 'priorityClassName': %p, 'minResources': {'" CUDA_GPU_RESOURCE "': %s}}}",
                           name, (void *)cuda_labels(v), (long long)spec->replicas,
                           (void *)json_string(a, spec->queue),
                           (void *)json_string(a, controls->priority_class), gpus),
                EXIST_ONCE);
}

void cuda_execution_plan(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                         const struct run_controls *controls, const char *name,
                         const struct cuda_placement *place)
{
        struct arena *a = v->arena;
        struct json *labels = cuda_labels(v);

        if (spec->mode == PLACE_KUEUE)
                json_set(a, labels, "kueue.x-k8s.io/queue-name", json_string(a, spec->queue));
        if (spec->mode == PLACE_VOLCANO)
                plan_group(v, d, spec, controls, name);
        decide_exist(d, &KUBE_JOB,
                     json_build(a,
                                "{'metadata': {'name': %s, 'labels': %p, 'annotations': "
                                "{'" CUDA_ANNOTATION_SPEC "': %s}}, 'spec': {'parallelism': %lld, "
                                "'completions': %lld, 'backoffLimit': 0, 'template': {'metadata': {'labels': "
                                "%p, 'annotations': %p}, 'spec': %p}}}",
                                name, (void *)labels, cuda_spec_hash(v, spec), (long long)spec->replicas,
                                (long long)spec->replicas, (void *)cuda_labels(v),
                                (void *)pod_annotations(v, spec, name),
                                (void *)pod_spec(v, spec, controls, place)),
                     EXIST_ONCE);
}

const char *cuda_execution_name(const struct view *v, struct decision *d)
{
        struct arena *a = v->arena;
        const char *wanted = meta_str(v->request, "name"), *uid = meta_str(v->request, "uid");
        const char *name = name_fit(a, NAME_JOB, "", wanted, "-execution", NULL);
        enum run_look look;
        const struct object *there = run_look_up(v, d, &KUBE_JOB, name, &look);

        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (look != LOOK_DONE)
                return NULL;
        if (!there || run_is_ours(v, there->json))
                return name;
        return name_fit(a, NAME_JOB, "", wanted,
                        arena_printf(a, "-execution-%.8s", name_hash(a, str_of(uid))), NULL);
}

void cuda_execution_remove(const struct view *v, struct decision *d, const char *name)
{
        const struct object *job = view_child(v, &KUBE_JOB, name),
                            *group = view_child(v, &CUDA_PODGROUP, name);
        const struct object *now;
        enum run_look look;

        if (job && run_job_finished(job->json))
                return;
        if (job) { /* an end that the cache has not shown yet must not be lost: it would be executed again */
                now = run_look_up(v, d, &KUBE_JOB, name, &look);
                if (look == LOOK_FAILED)
                        decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
                if (look != LOOK_DONE || (now && run_job_finished(now->json)))
                        return;
                decide_absent_foreground(d, job);
        }
        if (group)
                decide_absent(d, group);
}
