/*
 * DynamoGraphDeployments: the one to start from, one candidate's to be measured, and the one that comes out.
 *
 * Nothing in the base is believed: it may be a person's own. What is not there where it is needed is an error of
 * sla_base_check(), and everything that is not ours to change stays as it is.
 */
#include "probe/sla/deployment.h"

#include "probe/sla/output_internal.h"

#define REGISTRY    "nvcr.io/nvidia/ai-dynamo/"
#define VERSION     "0.9.0"
#define RESULTS_DIR "/workspace/profiling_results"

/* ---- the base */

static struct json *words_of(struct arena *a, const char *line)
{
        struct json *list = json_array(a);
        struct str rest = str_of(line);

        while (rest.p) {
                struct str word = str_split(&rest, ' ');

                if (word.n)
                        json_append(list, json_stringn(a, word));
        }
        return list;
}

static struct json *base_args(struct arena *a, const struct sla_backend *b, const char *model,
                              enum sla_role role)
{
        struct json *list = json_array(a), *more = words_of(a, b->base_args[role]), *word;

        json_append(list, json_string(a, b->model[0]));
        json_append(list, json_string(a, model));
        if (!streq(b->name, "vllm")) { /* which serves the model under its own name */
                json_append(list, json_string(a, b->served[0]));
                json_append(list, json_string(a, model));
        }
        while ((word = json_first(more)))
                json_append(list, json_take(more, word));
        return list;
}

static struct json *base_worker(struct arena *a, const struct sla_backend *b, const char *model,
                                enum sla_role role)
{
        return json_build(a,
                          "{'envFromSecret': 'hf-token-secret', 'componentType': 'worker', "
                          "'subComponentType': %s, 'replicas': 1, 'resources': {'limits': {'gpu': '1'}}, "
                          "'extraPodSpec': {'mainContainer': {'image': '" REGISTRY "%s:" VERSION
                          "', 'workingDir': %s, 'command': ['python3', '-m', %s], 'args': %p}}}",
                          role == SLA_PREFILL ? "prefill" : "decode", b->image, b->directory, b->module,
                          (void *)base_args(a, b, model, role));
}

struct json *sla_base_deployment(struct arena *a, const char *backend, const char *model)
{
        const struct sla_backend *b = sla_backend_find(backend);

        if (!b)
                return NULL;
        return json_build(a,
                          "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', "
                          "'metadata': {'name': '%s-disagg'}, 'spec': {'services': {"
                          "'Frontend': {'componentType': 'frontend', 'replicas': 1, "
                          "'extraPodSpec': {'mainContainer': {'image': '" REGISTRY "%s:" VERSION "'}}}, "
                          "'%s': %p, '%s': %p}}}",
                          b->name, b->image, b->workers[SLA_DECODE],
                          (void *)base_worker(a, b, model, SLA_DECODE), b->workers[SLA_PREFILL],
                          (void *)base_worker(a, b, model, SLA_PREFILL));
}

/* ---- parts of one */

/* The member, made if there is none or it is null; NULL: there is something else. */
static struct json *member(struct arena *a, struct json *object, const char *key, enum json_type type)
{
        struct json *m = json_at(object, key);

        if (!json_is(object, JSON_OBJECT) || (m && !json_is(m, type) && !json_is(m, JSON_NULL)))
                return NULL;
        if (json_is(m, type))
                return m;
        return json_set(a, object, key, type == JSON_ARRAY ? json_array(a) : json_object(a));
}

static struct json *services_of(const struct json *dgd)
{
        return json_at(json_at(dgd, "spec"), "services");
}

/* By what it says of itself, else by its name. */
static struct json *find_worker(const struct json *dgd, const struct sla_backend *b, enum sla_role role)
{
        struct json *named;

        json_foreach (service, services_of(dgd))
                if (streq(json_str(service, "subComponentType"), role == SLA_PREFILL ? "prefill" : "decode"))
                        return service;
        named = json_at(services_of(dgd), b->workers[role]);
        return json_is(named, JSON_OBJECT) ? named : NULL;
}

static struct json *container_of_service(const struct json *service)
{
        return json_at(json_at(service, "extraPodSpec"), "mainContainer");
}

static struct json *find_frontend(const struct json *dgd)
{
        json_foreach (service, services_of(dgd))
                if (streq(json_str(service, "componentType"), "frontend"))
                        return service;
        return json_at(services_of(dgd), "Frontend");
}

static bool is_planner(const struct json *service)
{
        return streq(json_str(service, "componentType"), "planner") || streq(service->key, "Planner");
}

/* A person's own, whatever its name. */
static void remove_planners(struct json *dgd)
{
        struct json *planner;

        do {
                planner = NULL;
                json_foreach (service, services_of(dgd))
                        planner = is_planner(service) ? service : planner;
                if (planner)
                        json_take(services_of(dgd), planner);
        } while (planner);
}

/* ---- what is needed of the base */

static const char *const ROLES[] = {"prefill", "decode"};

/* OBJECT.KEY is an object, or not there: it can be made. */
static bool can_be_object(const struct json *object, const char *key)
{
        const struct json *m = json_at(object, key);

        return !m || json_is(m, JSON_OBJECT) || json_is(m, JSON_NULL);
}

static int check_worker(const struct json *base, const struct sla_backend *b, enum sla_role role,
                        struct err *err)
{
        const struct json *worker = find_worker(base, b, role), *resources = json_at(worker, "resources");
        struct err why = ERR_INIT;

        if (!worker)
                return err_set(
                        err, E_CONFIG,
                        "the base deployment has no service with subComponentType %s, nor one named %s",
                        ROLES[role], b->workers[role]);
        json_foreach (other, services_of(base))
                if (other != worker && streq(json_str(other, "subComponentType"), ROLES[role]))
                        return err_set(err, E_CONFIG,
                                       "services %s and %s of the base deployment are both of "
                                       "subComponentType %s: which is meant?",
                                       worker->key, other->key, ROLES[role]);
        if (!json_is(container_of_service(worker), JSON_OBJECT))
                return err_set(err, E_CONFIG,
                               "service %s of the base deployment has no extraPodSpec.mainContainer",
                               worker->key);
        if (!can_be_object(worker, "resources") || !can_be_object(resources, "limits") ||
            !can_be_object(resources, "requests"))
                return err_set(
                        err, E_CONFIG,
                        "service %s of the base deployment: resources and its limits and requests must "
                        "be objects",
                        worker->key);
        if (sla_args_check(container_of_service(worker), &why) < 0)
                return err_set(err, E_CONFIG, "service %s of the base deployment: %s", worker->key, why.text);
        return 0;
}

/* Its image is the planner's, too. */
static int check_frontend(const struct json *base, struct err *err)
{
        const struct json *frontend = find_frontend(base);
        const char *image = json_str(container_of_service(frontend), "image");

        if (!frontend)
                return err_set(
                        err, E_CONFIG,
                        "the base deployment has no service with componentType frontend, nor one named "
                        "Frontend");
        if (!image || !*image)
                return err_set(err, E_CONFIG,
                               "service %s of the base deployment has no extraPodSpec.mainContainer.image",
                               frontend->key);
        return 0;
}

int sla_base_check(const struct json *base, const char *backend, struct err *err)
{
        const struct sla_backend *b = sla_backend_find(backend);

        if (!b)
                return err_set(err, E_CONFIG, "backend '%s' is not known, use vllm, sglang or trtllm",
                               backend ? backend : "");
        if (!json_is(base, JSON_OBJECT) || !streq(json_str(base, "kind"), "DynamoGraphDeployment"))
                return err_set(err, E_CONFIG, "the base deployment is no DynamoGraphDeployment");
        if (!json_is(services_of(base), JSON_OBJECT))
                return err_set(err, E_CONFIG,
                               "the base deployment has no spec.services, write it as nvidia.com/v1alpha1 "
                               "has it");
        if (!can_be_object(base, "metadata") || !can_be_object(json_at(base, "metadata"), "annotations"))
                return err_set(err, E_CONFIG,
                               "metadata of the base deployment and its annotations must be objects");
        for (enum sla_role role = SLA_PREFILL; role <= SLA_DECODE; role++)
                if (check_worker(base, b, role, err) < 0)
                        return -1;
        return check_frontend(base, err);
}

/* ---- changes */

static void set_gpus(struct arena *a, struct json *worker, unsigned gpus)
{
        static const char *const parts[] = {"limits", "requests"};
        struct json *resources = member(a, worker, "resources", JSON_OBJECT);

        for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
                struct json *part = member(a, resources, parts[i], JSON_OBJECT);

                if (part)
                        json_set(a, part, "gpu", json_string(a, arena_printf(a, "%u", gpus)));
        }
}

static void set_mapping(struct arena *a, const struct sla_backend *b, struct json *worker,
                        const struct sla_candidate *c)
{
        _cleanup_(sla_args_done) struct sla_args args;
        struct json *container = container_of_service(worker);

        sla_args_load(a, container, &args);
        b->map(&args, c);
        sla_args_store(&args, container);
        set_gpus(a, worker, c->gpus);
        json_remove(worker, "multinode"); /* sla_deployment_prepare() knows how many a node has */
}

static void aggregate(struct arena *a, const struct sla_backend *b, struct json *worker,
                      const struct sla_candidate *c, enum sla_role role)
{
        _cleanup_(sla_args_done) struct sla_args args;
        struct json *container = container_of_service(worker);
        unsigned ranks = MAX(c->attn_dp, 1u);

        sla_args_load(a, container, &args);
        b->aggregate(&args, c, role);
        if (role == SLA_PREFILL)
                b->limit(&args, ranks, ranks, (uint64_t)SLA_PREFILL_TOKENS_MAX * ranks);
        sla_args_store(&args, container);
}

/* Frontends, and the one worker under the name of the decoding one. */
static struct json *candidate_services(struct arena *a, const struct json *base, const struct sla_backend *b,
                                       enum sla_role role)
{
        const struct json *worker = find_worker(base, b, role), *decode = find_worker(base, b, SLA_DECODE);
        struct json *services = json_object(a);

        json_foreach (service, services_of(base)) {
                if (service == decode)
                        json_set(a, services, decode->key, json_copy(a, worker));
                else if (service != find_worker(base, b, SLA_PREFILL) && !is_planner(service))
                        json_set(a, services, service->key, json_copy(a, service));
        }
        return services;
}

struct json *sla_candidate_deployment(struct arena *a, const struct json *base, const char *backend,
                                      const struct sla_candidate *c, enum sla_role role, const char *name)
{
        const struct sla_backend *b = sla_backend_find(backend);
        struct json *dgd, *worker;

        if (sla_base_check(base, backend, NULL) < 0)
                return NULL;
        dgd = json_copy(a, base);
        json_set(a, member(a, dgd, "metadata", JSON_OBJECT), "name", json_string(a, name));
        json_set(a, json_at(dgd, "spec"), "services", candidate_services(a, base, b, role));
        worker = json_at(services_of(dgd), find_worker(base, b, SLA_DECODE)->key);
        json_set(a, worker, "subComponentType", json_string(a, "decode"));
        json_set(a, worker, "replicas", json_u64(a, 1));
        set_mapping(a, b, worker, c);
        aggregate(a, b, worker, c, role);
        return dgd;
}

/* ---- what the configuration says of every deployment */

static void set_image(struct arena *a, struct json *dgd, const char *image)
{
        json_foreach (service, services_of(dgd)) {
                struct json *container = container_of_service(service);

                if (json_is(container, JSON_OBJECT))
                        json_set(a, container, "image", json_string(a, image));
        }
}

static void mount_cache(struct arena *a, struct json *service, const char *claim, const char *at)
{
        struct json *mounts = member(a, service, "volumeMounts", JSON_ARRAY);

        if (mounts && !json_find_named(mounts, claim))
                json_append(mounts, json_build(a, "{'name': %s, 'mountPoint': %s}", claim, at));
}

/* The model from a volume, under its own name. */
static void use_cache(struct arena *a, struct json *dgd, const struct sla_config *c)
{
        const char *claim = c->cache_claim, *at = c->cache_mount;
        const struct sla_backend *b = sla_backend_find(c->backend);
        struct json *claims;

        if (!claim)
                return;
        claims = member(a, json_at(dgd, "spec"), "pvcs", JSON_ARRAY);
        if (claims && !json_find_named(claims, claim))
                json_append(claims,
                            json_build(a, "{'name': %s, 'create': %p}", claim, (void *)json_truth(a, false)));
        json_foreach (service, services_of(dgd)) {
                _cleanup_(sla_args_done) struct sla_args args = {0};
                struct json *container = container_of_service(service);

                if (is_planner(service) || !json_is(container, JSON_OBJECT))
                        continue;
                mount_cache(a, service, claim, at);
                sla_args_load(a, container, &args);
                if (!c->cache_path || !sla_args_has(&args, b->model))
                        continue;
                sla_args_set(&args, b->model, arena_printf(a, "%s/%s", at, c->cache_path));
                sla_args_set(&args, b->served, c->model);
                sla_args_store(&args, container);
        }
}

/* More GPUs than a node has are those of several, of each as many: together they are no more than they were. */
static void spread(struct arena *a, struct json *service, unsigned per_node)
{
        struct json *limits = json_at(json_at(service, "resources"), "limits");
        uint64_t gpus, nodes;

        if (!per_node || !json_str(limits, "gpu") || !str_to_u64(str_of(json_str(limits, "gpu")), &gpus) ||
            gpus <= per_node || gpus > SLA_GPUS_MAX || json_at(service, "multinode"))
                return;
        nodes = (gpus + per_node - 1) / per_node;
        while (gpus % nodes)
                nodes++;
        set_gpus(a, service, (unsigned)(gpus / nodes));
        json_set(a, service, "multinode", json_build(a, "{'nodeCount': %llu}", (unsigned long long)nodes));
}

void sla_deployment_prepare(struct arena *a, struct json *dgd, const struct sla_config *c)
{
        if (c->image)
                set_image(a, dgd, c->image);
        use_cache(a, dgd, c);
        json_foreach (service, services_of(dgd))
                spread(a, service, c->gpus_per_node);
}

/* ---- what comes out */

void sla_mark_simulated(struct arena *a, const struct sla_results *r, struct json *object)
{
        struct json *annotations;

        if (!r->simulated)
                return;
        annotations = member(a, member(a, object, "metadata", JSON_OBJECT), "annotations", JSON_OBJECT);
        if (annotations)
                json_set(a, annotations, "simulated", json_string(a, "true"));
}

struct json *sla_chosen_deployment(struct arena *a, const struct sla_results *r, const struct json *base)
{
        const struct sla_backend *b = sla_backend_find(r->config->backend);
        struct json *dgd = json_copy(a, base);

        for (enum sla_role role = SLA_PREFILL; role <= SLA_DECODE; role++) {
                struct json *worker = find_worker(dgd, b, role);
                struct sla_candidate c = sla_chosen_candidate(r, role);

                unsigned replicas = !r->has_replicas      ? MAX(r->config->min_endpoint, 1u)
                                    : role == SLA_PREFILL ? r->replicas.prefill
                                                          : r->replicas.decode;

                set_mapping(a, b, worker, &c);
                json_set(a, worker, "replicas", json_u64(a, replicas));
        }
        remove_planners(dgd);
        sla_deployment_prepare(a, dgd, r->config);
        sla_mark_simulated(a, r, dgd);
        return dgd;
}

/* ---- the planner */

/* plannerMinEndpoint and planner_min_endpoint are both min-endpoint. */
static const char *planner_flag(struct arena *a, struct str key)
{
        char *out = arena_alloc(a, 2 * key.n + 1), *p = out;

        for (size_t i = 0; i < key.n; i++) {
                char c = key.p[i];

                if (c >= 'A' && c <= 'Z') {
                        *p++ = '-';
                        c = (char)(c - 'A' + 'a');
                }
                *p++ = c == '_' ? '-' : c;
        }
        *p = '\0';
        return str_has_prefix(str_of(out), STR("planner-")) ? out + strlen("planner-") : out;
}

/* Those that the profiler knows better. */
static bool is_ours(const char *flag)
{
        static const char *const ours[] = {"namespace",
                                           "prefill-engine-num-gpu",
                                           "profile-results-dir",
                                           "decode-engine-num-gpu",
                                           "backend",
                                           "ttft",
                                           "itl",
                                           "request-rate"}; /* of our demand; a planner sees its own */

        for (size_t i = 0; i < ARRAY_LEN(ours); i++)
                if (streq(flag, ours[i]))
                        return true;
        return false;
}

static void add_planner_flag(struct arena *a, struct json *args, const struct json *value)
{
        const char *flag = planner_flag(a, str_n(value->key, value->key_len));

        if (is_ours(flag))
                return;
        if (json_is(value, JSON_STRING) && json_cstr(value))
                json_append(args, json_build(a, "'--%s=%s'", flag, json_cstr(value)));
        else if (json_is(value, JSON_NUMBER))
                json_append(args, json_build(a, "'--%s=%s'", flag, json_print(a, value)));
        else if (json_is(value, JSON_BOOL) && value->truth)
                json_append(args, json_build(a, "'--%s'", flag));
}

static struct json *planner_args(struct arena *a, const struct sla_results *r, const char *backend,
                                 const char *map)
{
        const struct sla_config *c = r->config;
        struct json *args = json_array(a);

        json_append(args, json_build(a, "'--backend=%s'", backend));
        json_append(args, json_build(a, "'--itl=%s'", json_print(a, json_double(a, c->itl))));
        json_append(args, json_build(a, "'--ttft=%s'", json_print(a, json_double(a, c->ttft))));
        json_foreach (value, json_is(c->planner, JSON_OBJECT) ? c->planner : NULL)
                add_planner_flag(a, args, value);
        if (r->grown_budget)
                json_append(args, json_build(a, "'--max-gpu-budget=%u'", r->grown_budget));
        json_append(args, json_build(a, "'--prefill-engine-num-gpu=%u'",
                                     sla_chosen_candidate(r, SLA_PREFILL).gpus));
        json_append(args,
                    json_build(a, "'--decode-engine-num-gpu=%u'", sla_chosen_candidate(r, SLA_DECODE).gpus));
        if (map)
                json_append(args, json_build(a, "'--profile-results-dir=" RESULTS_DIR "'"));
        return args;
}

static void mount_profile(struct arena *a, struct json *service, const char *map)
{
        struct json *pod = member(a, service, "extraPodSpec", JSON_OBJECT);
        struct json *container = member(a, pod, "mainContainer", JSON_OBJECT);
        struct json *volumes = member(a, pod, "volumes", JSON_ARRAY);
        struct json *mounts = member(a, container, "volumeMounts", JSON_ARRAY);

        json_append(volumes,
                    json_build(a, "{'name': 'planner-profile-data', 'configMap': {'name': %s}}", map));
        json_append(mounts, json_build(a,
                                       "{'name': 'planner-profile-data', 'mountPath': '" RESULTS_DIR
                                       "', 'readOnly': %p}",
                                       (void *)json_truth(a, true)));
}

static void add_planner(struct arena *a, const struct sla_results *r, struct json *dgd, const char *backend,
                        const char *map)
{
        const struct json *frontend = find_frontend(dgd), *ns = json_at(frontend, "dynamoNamespace");
        const char *image = json_str(container_of_service(frontend), "image");
        struct json *planner = json_build(
                a,
                "{'dynamoNamespace': %p, 'componentType': 'planner', 'replicas': 1, "
                "'extraPodSpec': {'mainContainer': {'image': %p, "
                "'workingDir': '/workspace/components/src/dynamo/planner', "
                "'command': ['python3', '-m', 'planner_sla'], 'args': %p}}}",
                (void *)(ns ? json_copy(a, ns) : NULL), (void *)json_string(a, image),
                (void *)planner_args(a, r, backend, map));

        if (map)
                mount_profile(a, planner, map);
        json_set(a, services_of(dgd), "Planner", planner);
}

struct json *sla_planned_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                    const char *map)
{
        struct json *dgd = sla_chosen_deployment(a, r, base);

        add_planner(a, r, dgd, r->config->backend, map);
        return dgd;
}

/* ---- the same without GPUs */

static struct json *mocker_worker(struct arena *a, const struct sla_results *r, const char *image,
                                  enum sla_role role, const char *map)
{
        const char *model = r->config->model;
        unsigned replicas = !r->has_replicas      ? MAX(r->config->min_endpoint, 1u)
                            : role == SLA_PREFILL ? r->replicas.prefill
                                                  : r->replicas.decode;
        struct json *args = json_build(
                a, "['--model-path', %s, '--model-name', %s, '--speedup-ratio', '1.0']", model, model);
        struct json *worker;

        if (map) {
                json_append(args, json_string(a, "--planner-profile-data"));
                json_append(args, json_string(a, RESULTS_DIR));
        }
        json_append(args, json_string(a, role == SLA_PREFILL ? "--is-prefill-worker" : "--is-decode-worker"));
        worker = json_build(a,
                            "{'envFromSecret': 'hf-token-secret', 'componentType': 'worker', "
                            "'subComponentType': %s, 'replicas': %u, 'extraPodSpec': {'mainContainer': "
                            "{'image': %p, 'workingDir': '/workspace', "
                            "'command': ['python3', '-m', 'dynamo.mocker'], 'args': %p}}}",
                            role == SLA_PREFILL ? "prefill" : "decode", replicas,
                            (void *)json_string(a, image), (void *)args);
        if (map)
                mount_profile(a, worker, map);
        return worker;
}

struct json *sla_mocker_deployment(struct arena *a, const struct sla_results *r, const struct json *base,
                                   const char *map)
{
        struct json *like = json_copy(a, base), *dgd;
        const char *image;

        sla_deployment_prepare(a, like, r->config);
        image = json_str(container_of_service(find_frontend(like)), "image");
        dgd = json_build(a,
                         "{'apiVersion': 'nvidia.com/v1alpha1', 'kind': 'DynamoGraphDeployment', "
                         "'metadata': {'name': 'mocker-disagg'}, 'spec': {'services': {"
                         "'Frontend': {'componentType': 'frontend', 'replicas': 1, "
                         "'extraPodSpec': {'mainContainer': {'image': %p}}}, "
                         "'prefill': %p, 'decode': %p}}}",
                         (void *)json_string(a, image), (void *)mocker_worker(a, r, image, SLA_PREFILL, map),
                         (void *)mocker_worker(a, r, image, SLA_DECODE, map));
        add_planner(a, r, dgd, "mocker", map);
        sla_mark_simulated(a, r, dgd);
        return dgd;
}
