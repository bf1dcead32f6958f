/*
 * What every kind's plan shares: the objects of a run.
 */
#include "kinds/run_job.h"

#include "kinds/run_internal.h"
#include "run/run.h"

enum { UID_DEFAULT = 1000, GRACE_DEFAULT = 30, GRACE_MAX = 7 * 86400, TOKEN_SECONDS = 3600 };

#define SONDE_DIR   "/sonde"
#define DATA_DIR    "/sonde-data"
#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

const char *run_escaped(struct arena *a, const char *text)
{
        char *out = arena_alloc(a, 2 * strlen(text) + 1), *p = out;

        for (; *text; text++) {
                if (*text == '$')
                        *p++ = '$';
                *p++ = *text;
        }
        *p = '\0';
        return out;
}

static struct json *member(struct arena *a, struct json *object, const char *key, struct json *otherwise)
{
        struct json *m = json_at(object, key);

        return m ? m : json_set(a, object, key, otherwise);
}

static void add_env(struct arena *a, struct json *env, const char *name, const char *value)
{
        if (value && !json_find_named(env, name))
                json_append(env, json_build(a, "{'name': %s, 'value': %s}", name, run_escaped(a, value)));
}

static void add_env_field(struct arena *a, struct json *env, const char *name, const char *path)
{
        json_append(env,
                    json_build(a, "{'name': %s, 'valueFrom': {'fieldRef': {'fieldPath': %s}}}", name, path));
}

static void add_mount(struct arena *a, struct json *mounts, const char *name, const char *path,
                      bool read_only)
{
        json_foreach (m, mounts)
                if (streq(json_str(m, "mountPath"), path))
                        return; /* the request has mounted something there itself */
        json_append(mounts, json_build(a, "{'name': %s, 'mountPath': %s, 'readOnly': %p}", name, path,
                                       (void *)(read_only ? json_truth(a, true) : NULL)));
}

/* ---- the containers */

/* What stage and relay have in common. */
static struct json *helper(const struct view *v, const struct run_job *job, const char *name)
{
        struct arena *a = v->arena;
        struct json *c = json_build(a,
                                    "{'name': %s, 'image': %s, 'command': ['/sonde-pod', %s], "
                                    "'resources': {'requests': {'cpu': '10m', 'memory': '16Mi'}, "
                                    "'limits': {'cpu': '500m', 'memory': '64Mi'}}, "
                                    "'securityContext': {'runAsNonRoot': %p, 'allowPrivilegeEscalation': %p, "
                                    "'readOnlyRootFilesystem': %p, 'capabilities': {'drop': ['ALL']}, "
                                    "'seccompProfile': {'type': 'RuntimeDefault'}}, 'volumeMounts': []}",
                                    name, job->pod_image, name, (void *)json_truth(a, true),
                                    (void *)json_truth(a, false), (void *)json_truth(a, true));

        if (job->run_as_user == 0)
                json_set(a, json_at(c, "securityContext"), "runAsUser", json_i64(a, UID_DEFAULT));
        add_mount(a, json_at(c, "volumeMounts"), "sonde", SONDE_DIR, false);
        add_mount(a, json_at(c, "volumeMounts"), "run", job->run_dir, false);
        return c;
}

static void add_option(struct arena *a, struct json *command, const char *name, const char *value)
{
        json_append(command, json_string(a, name));
        json_append(command, json_string(a, run_escaped(a, value)));
}

static struct json *stage_container(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *c = helper(v, job, RUN_STAGE_CONTAINER), *command = json_at(c, "command");

        add_option(a, command, "--dir", job->run_dir);
        if (job->spec_hash) {
                add_option(a, command, "--checkpoint", DATA_DIR);
                add_option(a, command, "--spec-hash", job->spec_hash);
                add_mount(a, json_at(c, "volumeMounts"), "sonde-data", DATA_DIR, true);
        }
        return c;
}

static int64_t grace_of(const struct run_job *job)
{
        return job->grace_seconds > 0 ? MIN(job->grace_seconds, (int64_t)GRACE_MAX) : GRACE_DEFAULT;
}

/* "a,b"; NULL: there are none. */
static const char *names_of_files(struct arena *a, const char *const *files)
{
        const char *all = NULL;

        for (; files && *files; files++)
                all = all ? arena_printf(a, "%s,%s", all, *files) : *files;
        return all;
}

static struct json *relay_container(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *c = helper(v, job, RUN_RELAY_CONTAINER);
        struct json *env = json_set(a, c, "env", json_array(a));

        /* It is done before the kubelet's patience is. */
        add_option(a, json_at(c, "command"), "--grace",
                   arena_printf(a, "%lldms", (long long)grace_of(job) * 1000 * 5 / 6));
        add_env(a, env, "SONDE_RUN_DIR", job->run_dir);
        add_env(a, env, "SONDE_SPEC_HASH", job->spec_hash);
        add_env(a, env, "SONDE_STATUS_MAP", job->names.status_map);
        add_env(a, env, "SONDE_DATA_MAP", job->names.data_map);
        add_env(a, env, "SONDE_ATTEMPT", arena_printf(a, "%llu", (unsigned long long)job->names.attempt));
        add_env(a, env, "SONDE_FILES", names_of_files(a, job->files));
        add_env_field(a, env, "SONDE_NAMESPACE", "metadata.namespace");
        add_env_field(a, env, "SONDE_POD_UID", "metadata.uid");
        add_mount(a, json_at(c, "volumeMounts"), "sonde-token", ACCOUNT_DIR, true);
        return c;
}

/*
 * What a namespace that is "restricted" asks for, where the request does not say otherwise. A workload that is root needs what
 * root has, and one that asks for capabilities or is privileged may not be told to go without more: the server refuses that.
 */
static void restrict_workload(const struct view *v, const struct run_job *job, struct json *container)
{
        struct arena *a = v->arena;
        const struct json *pod = json_at(job->pod, "securityContext");
        struct json *context = json_at(container, "securityContext");
        int64_t user = json_int(context, "runAsUser", job->run_as_user);

        if (user == 0)
                return;
        context = member(a, container, "securityContext", json_object(a));
        if (!json_at(pod, "runAsNonRoot"))
                member(a, context, "runAsNonRoot", json_truth(a, true));
        if (!json_at(pod, "seccompProfile") && !json_bool(context, "privileged", false))
                member(a, context, "seccompProfile", json_build(a, "{'type': 'RuntimeDefault'}"));
        if (json_bool(context, "privileged", false) || json_at(json_at(context, "capabilities"), "add"))
                return;
        member(a, context, "allowPrivilegeEscalation", json_truth(a, false));
        member(a, member(a, context, "capabilities", json_object(a)), "drop", json_build(a, "['ALL']"));
}

/* The request's container, with `run` in front of its command. */
static struct json *workload(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *c = job->container, *command = json_build(a, "['" RUN_PROGRAM "', 'run']");
        struct json *mounts = member(a, c, "volumeMounts", json_array(a));
        const char *message = json_str(c, "terminationMessagePath");

        if (message)
                add_option(a, command, "--termination-log", message);
        json_append(command, json_string(a, "--"));
        json_foreach (word, json_at(c, "command"))
                json_append(command, json_copy(a, word));
        json_set(a, c, "command", command);
        add_env(a, member(a, c, "env", json_array(a)), "SONDE_RUN_DIR", job->run_dir);
        add_mount(a, mounts, "sonde", SONDE_DIR, false);
        add_mount(a, mounts, "run", job->run_dir, false);
        if (job->workload_token)
                add_mount(a, mounts, "sonde-token", ACCOUNT_DIR, true);
        restrict_workload(v, job, c);
        return c;
}

/* ---- the pod */

static struct json *token_volume(struct arena *a)
{
        return json_build(a,
                          "{'name': 'sonde-token', 'projected': {'sources': ["
                          "{'serviceAccountToken': {'path': 'token', 'expirationSeconds': %d}}, "
                          "{'configMap': {'name': 'kube-root-ca.crt', "
                          "'items': [{'key': 'ca.crt', 'path': 'ca.crt'}]}}, "
                          "{'downwardAPI': {'items': [{'path': 'namespace', "
                          "'fieldRef': {'fieldPath': 'metadata.namespace'}}]}}]}}",
                          TOKEN_SECONDS);
}

/* Only what stage reads: a result of a megabyte need not be copied to the node. */
static struct json *data_volume(struct arena *a, const char *map)
{
        return json_build(a,
                          "{'name': 'sonde-data', 'configMap': {'name': %s, 'optional': %p, 'items': ["
                          "{'key': '" RUN_KEY_SPEC_HASH "', 'path': '" RUN_KEY_SPEC_HASH "'}, "
                          "{'key': '" RUN_KEY_CHECKPOINT "', 'path': '" RUN_KEY_CHECKPOINT "'}, "
                          "{'key': '" RUN_KEY_CHECKPOINT ".gz', 'path': '" RUN_KEY_CHECKPOINT ".gz'}]}}",
                          map, (void *)json_truth(a, true));
}

static void add_volumes(const struct view *v, const struct run_job *job, struct json *pod)
{
        struct arena *a = v->arena;
        struct json *volumes = member(a, pod, "volumes", json_array(a));

        if (!json_find_named(volumes, "run"))
                json_append(volumes, json_build(a, "{'name': 'run', 'emptyDir': {}}"));
        json_append(volumes, json_build(a, "{'name': 'sonde', 'emptyDir': {}}"));
        json_append(volumes, token_volume(a));
        if (job->spec_hash)
                json_append(volumes, data_volume(a, job->names.data_map));
}

/* What runs before the workload: in an image of the request's it finds our program where stage has put it. */
static struct json *init_containers(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *list = json_build(a, "[%p]", (void *)stage_container(v, job));

        json_foreach (given, job->init) {
                struct json *c = json_append(list, json_copy(a, given));

                add_mount(a, member(a, c, "volumeMounts", json_array(a)), "sonde", SONDE_DIR, true);
                restrict_workload(v, job, c);
        }
        return list;
}

static struct json *containers(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *list = json_build(a, "[%p]", (void *)workload(v, job));

        json_foreach (given, job->more) {
                struct json *c = json_append(list, json_copy(a, given));

                add_mount(a, member(a, c, "volumeMounts", json_array(a)), "sonde", SONDE_DIR, false);
                restrict_workload(v, job, c);
        }
        json_append(list, relay_container(v, job));
        return list;
}

static struct json *pod_spec(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        struct json *pod = job->pod ? job->pod : json_object(a), *context;
        int64_t user = job->run_as_user < 0 ? UID_DEFAULT : job->run_as_user;

        add_volumes(v, job, pod);
        json_set(a, pod, "restartPolicy", json_string(a, "Never"));
        json_set(a, pod, "serviceAccountName", json_string(a, job->names.access));
        json_set(a, pod, "automountServiceAccountToken", json_truth(a, false));
        json_set(a, pod, "terminationGracePeriodSeconds", json_i64(a, grace_of(job)));
        context = member(a, pod, "securityContext", json_object(a));
        json_set(a, context, "runAsUser", json_i64(a, user));
        member(a, context, "runAsGroup", json_i64(a, UID_DEFAULT));
        member(a, context, "fsGroup", json_i64(a, UID_DEFAULT));
        json_set(a, pod, "initContainers", init_containers(v, job));
        json_set(a, pod, "containers", containers(v, job));
        return pod;
}

/* ---- the objects */

static struct json *labels_of(const struct view *v, const struct run_job *job)
{
        return job->labels ? json_copy(v->arena, job->labels) : NULL;
}

static struct json *job_labels(const struct view *v, const struct run_job *job)
{
        struct json *labels = job->labels ? labels_of(v, job) : json_object(v->arena);

        json_foreach (label, job->job_labels)
                json_set(v->arena, labels, label->key, json_copy(v->arena, label));
        json_set(v->arena, labels, RUN_LABEL_ATTEMPT,
                 json_string(v->arena,
                             arena_printf(v->arena, "%llu", (unsigned long long)job->names.attempt)));
        return labels;
}

static struct json *job_object(const struct view *v, const struct run_job *job)
{
        struct arena *a = v->arena;
        const char *name = json_str(job->container, "name");
        struct json *o = json_build(
                a,
                "{'metadata': {'name': %s, 'labels': %p}, "
                "'spec': {'backoffLimit': %lld, 'template': {'metadata': {'labels': %p, 'annotations': "
                "{'kubectl.kubernetes.io/default-container': %s, "
                "'kubectl.kubernetes.io/default-logs-container': %s}}, 'spec': %p}}}",
                job->names.job, (void *)job_labels(v, job), (long long)job->backoff_limit,
                (void *)labels_of(v, job), name, name, (void *)pod_spec(v, job));
        struct json *spec = json_at(o, "spec");

        if (job->deadline_seconds > 0)
                json_set(a, spec, "activeDeadlineSeconds", json_i64(a, job->deadline_seconds));
        if (job->ttl_seconds >= 0)
                json_set(a, spec, "ttlSecondsAfterFinished", json_i64(a, job->ttl_seconds));
        return o;
}

/*
 * How the status ConfigMap begins. One that was lost belongs to the pod that wrote it: another pod is still the next
 * attempt.
 */
static struct json *first_fence(const struct view *v, const struct run_job *job)
{
        const struct json *progress = json_at(json_at(v->request, "status"), "progress");
        const char *pod = json_str(progress, "podUID");
        bool same = pod && streq(json_str(progress, "job"), job->names.job);
        int64_t attempt = same ? json_int(progress, "attempt", 0) : 0;
        struct json *data = run_fence_data(v->arena,
                                           MAX((uint64_t)MAX(attempt, (int64_t)0), job->names.attempt));

        if (same)
                json_set(v->arena, data, RUN_KEY_POD, json_string(v->arena, pod));
        return data;
}

static void plan_maps(const struct view *v, struct decision *d, const struct run_job *job)
{
        struct arena *a = v->arena;

        decide_exist(d, &KUBE_CONFIGMAP,
                     json_build(a, "{'metadata': {'name': %s}, 'data': %p}", job->names.status_map,
                                (void *)first_fence(v, job)),
                     EXIST_ONCE);
        /* The key that is there from the start saves the relay from asking whether there is a `data` at all. */
        decide_exist(d, &KUBE_CONFIGMAP,
                     json_build(a, "{'metadata': {'name': %s}, 'data': {'" RUN_KEY_SPEC_HASH "': %s}}",
                                job->names.data_map, job->spec_hash ? job->spec_hash : ""),
                     EXIST_ONCE);
}

static struct json *rules_of(const struct view *v, const struct run_job *job)
{
        struct json *rules = json_build(v->arena,
                                        "[{'apiGroups': [''], 'resources': ['configmaps'], 'resourceNames': "
                                        "[%s, %s], 'verbs': ['get', 'patch']}]",
                                        job->names.status_map, job->names.data_map);

        json_foreach (rule, job->rules)
                json_append(rules, json_copy(v->arena, rule));
        return rules;
}

static void plan_access(const struct view *v, struct decision *d, const struct run_job *job)
{
        struct arena *a = v->arena;

        decide_exist(d, &KUBE_SERVICEACCOUNT,
                     json_build(a, "{'metadata': {'name': %s}, 'automountServiceAccountToken': %p}",
                                job->names.access, (void *)json_truth(a, false)),
                     EXIST_APPLY);
        decide_exist(d, &KUBE_ROLE,
                     json_build(a, "{'metadata': {'name': %s}, 'rules': %p}", job->names.access,
                                (void *)rules_of(v, job)),
                     EXIST_APPLY);
        decide_exist(d, &KUBE_ROLEBINDING,
                     json_build(a,
                                "{'metadata': {'name': %s}, 'roleRef': {'apiGroup': "
                                "'rbac.authorization.k8s.io', 'kind': 'Role', 'name': %s}, 'subjects': "
                                "[{'kind': 'ServiceAccount', 'name': %s, 'namespace': %s}]}",
                                job->names.access, job->names.access, job->names.access,
                                meta_str(v->request, "namespace")),
                     EXIST_APPLY);
}

/* A pod of this attempt or a later one has claimed the ConfigMap. */
static bool has_run(const struct object *map, const struct run_names *names)
{
        struct run_fence fence;
        struct err err = ERR_INIT;

        return run_fence_read(json_at(map->json, "data"), &fence, &err) == 0 && fence.pod[0] &&
               fence.attempt >= names->attempt;
}

bool run_job_was_there(const struct view *v, const struct run_names *names)
{
        const struct json *progress = json_at(json_at(v->request, "status"), "progress");
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, names->status_map);

        return streq(json_str(progress, "job"), names->job) || (map && has_run(map, names));
}

/*
 * The ConfigMaps are there and the Job is not: what was begun was not finished, or the Job has been here and is gone. Only
 * the server knows: the cache may not have seen yet what a pod wrote.
 */
static bool never_was_there(const struct view *v, struct decision *d, const struct run_names *names)
{
        const struct object *map;
        enum run_look look;

        if (!view_child(v, &KUBE_CONFIGMAP, names->status_map))
                return true;
        map = run_look_up(v, d, &KUBE_CONFIGMAP, names->status_map, &look);
        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        return look == LOOK_DONE && !(map && has_run(map, names));
}

bool run_job_plan(const struct view *v, struct decision *d, const struct run_job *job, const char **why)
{
        *why = NULL;
        if (view_child(v, &KUBE_JOB, job->names.job)) {
                plan_maps(v, d, job); /* one that somebody deleted is made again */
                return true;
        }
        if (run_job_was_there(v, &job->names) || !never_was_there(v, d, &job->names))
                return true;
        /* A spec that is edited in mid-run does not matter to the run. */
        if (!json_len(json_at(job->container, "command"))) {
                *why = "the container has no command, which Sonde must know to run it; set command to what "
                       "the image's entrypoint is";
                return false;
        }
        plan_maps(v, d, job);
        plan_access(v, d, job);
        decide_exist(d, &KUBE_JOB, job_object(v, job), EXIST_ONCE);
        return true;
}

/* ---- names, and the end */

bool run_is_ours(const struct view *v, const struct json *object)
{
        const char *owner = meta_controller_uid(object);

        return owner && streq(owner, meta_str(v->request, "uid"));
}

const struct object *run_look_up(const struct view *v, struct decision *d, const struct kube_type *type,
                                 const char *name, enum run_look *ret_look)
{
        const struct want want = {.kind = WANT_OBJECT, .type = type, .name = name};
        const struct answer *answer = decide_want(d, v, &want);
        struct object *o;

        *ret_look = !answer ? LOOK_UNDER_WAY : answer->error ? LOOK_FAILED : LOOK_DONE;
        if (!answer || !answer->json)
                return NULL;
        o = arena_new(v->arena, struct object);
        *o = (struct object){.type = type,
                             .json = answer->json,
                             .name = name,
                             .uid = json_str_or(json_at(answer->json, "metadata"), "uid", "")};
        return o;
}

bool run_job_dismiss(const struct view *v, struct decision *d, const struct run_names *names)
{
        static const struct kube_type *const types[] = {&KUBE_ROLEBINDING, &KUBE_ROLE, &KUBE_SERVICEACCOUNT};
        const struct object *found[ARRAY_LEN(types)];
        bool all = true;

        for (size_t i = 0; i < ARRAY_LEN(types); i++) {
                enum run_look look;

                found[i] = run_look_up(v, d, types[i], names->access, &look);
                all = all && look != LOOK_UNDER_WAY;
                if (look == LOOK_FAILED) /* the outcome is worth more; it goes with the request */
                        decide_event(d, v, EVENT_WARNING, "AccessNotRemoved",
                                     "%s %s cannot be read and stays until the request is deleted",
                                     types[i]->kind, names->access);
        }
        if (!all)
                return false;
        d->exist.n =
                0; /* nothing of a run that has ended is made again, and nothing may hold up its outcome */
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (found[i] && run_is_ours(v, found[i]->json))
                        decide_absent(d, found[i]);
        return true;
}

/* What a kind makes of a run's result may be a Job as well. */
static bool is_attempt(const struct json *job)
{
        return json_at(json_at(json_at(job, "metadata"), "labels"), RUN_LABEL_ATTEMPT);
}

const char *run_job_name(const struct view *v, struct decision *d, const char *wanted, uint64_t attempt)
{
        struct arena *a = v->arena;
        const char *suffix = attempt > 1 ? arena_printf(a, "-%llu", (unsigned long long)attempt) : "";
        const char *name = name_fit(a, NAME_JOB, "", wanted, suffix, NULL), *uid;
        const struct object *there;
        enum run_look look;

        there = run_look_up(v, d, &KUBE_JOB, name, &look);
        if (look == LOOK_UNDER_WAY)
                return NULL;
        if (look == LOOK_FAILED) {
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
                return NULL;
        }
        if (!there || (run_is_ours(v, there->json) && is_attempt(there->json)))
                return name;
        uid = meta_str(v->request, "uid");
        return name_fit(a, NAME_JOB, "", wanted,
                        arena_printf(a, "-%.8s%s", name_hash(a, str_of(uid)), suffix), NULL);
}

bool run_job_finished(const struct json *job)
{
        return run_condition(job, "Complete") || run_condition(job, "Failed");
}

/* Since Kubernetes 1.31 FailureTarget comes first, and Failed when all its pods have ended. */
bool run_job_goes_on(const struct json *job)
{
        return !run_job_finished(job) && !run_condition(job, "FailureTarget");
}

bool run_job_retries(const struct json *job)
{
        return json_int(json_at(job, "spec"), "backoffLimit", 0) > 0;
}

void run_job_halt(const struct view *v, struct decision *d, const struct run_names *names)
{
        const struct object *job = view_child(v, &KUBE_JOB, names->job), *pod = run_newest_pod(v, job);
        const struct object *map = view_child(v, &KUBE_CONFIGMAP, names->status_map);
        const char *last = json_str(json_at(json_at(v->request, "status"), "progress"), "podUID");
        struct run_pod p;
        bool other;

        if (!pod || !run_job_goes_on(job->json))
                return;
        if (!last && map) /* a CRD from before there was progress prunes it */
                last = json_str(json_at(map->json, "data"), "podUID");
        run_pod_read(pod, &p);
        other = last ? !streq(pod->uid, last) : !p.over; /* not known: one that has ended is the run's own */
        if (other || run_pod_never_started(&p) ||
            (run_job_retries(job->json) && streq(json_str(json_at(pod->json, "status"), "phase"), "Failed")))
                decide_absent(d, job);
}
