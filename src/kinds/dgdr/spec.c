/*
 * The spec with its defaults, and all that is wrong with it.
 *
 * What can be known to fail is refused before anything runs, all of it at once: a run that ends after an hour because of a
 * name that is too long was wrong from the start. What cannot be known (a look-up that is not allowed) passes.
 */
#include "kinds/dgdr/spec_internal.h"
#include "run/fence.h"

#define DEFAULT_KEY "disagg.yaml"

/* Upstream's profiler refuses a deployment whose name and longest component have more together. */
enum { NAMES_MAX = 45 };

/* ---- reading */

static const struct json *object_or_null(const struct json *j)
{
        return json_is(j, JSON_OBJECT) ? j : NULL;
}

static const char *text_or_null(const struct json *object, const char *key)
{
        const char *text = json_str(object, key);

        return text && *text ? text : NULL;
}

static void read_profiling(const struct json *p, struct dgdr_spec *ret)
{
        const struct json *ref = json_at(p, "configMapRef"), *command = json_at(p, "command"),
                          *tolerations = json_at(p, "tolerations");

        ret->config = object_or_null(json_at(p, "config"));
        ret->image = text_or_null(p, "profilerImage");
        ret->command = json_is(command, JSON_ARRAY) && json_len(command) ? command : NULL;
        ret->target = text_or_null(json_at(ret->config, "sonde"), "target");
        ret->target = ret->target ? ret->target : DGDR_TARGET_DGD;
        ret->api_access = json_bool(p, "apiAccess", false) ||
                          (!ret->image && streq(ret->target, DGDR_TARGET_DGD));
        ret->base_map = text_or_null(ref, "name");
        if (ret->base_map)
                ret->base_key = text_or_null(ref, "key") ? json_str(ref, "key") : DEFAULT_KEY;
        ret->pvc = text_or_null(p, "outputPVC");
        ret->resources = object_or_null(json_at(p, "resources"));
        ret->tolerations = json_is(tolerations, JSON_ARRAY) ? tolerations : NULL;
        ret->node_selector = object_or_null(json_at(p, "nodeSelector"));
}

void dgdr_spec_read(const struct view *v, struct dgdr_spec *ret)
{
        const struct json *spec = json_at(v->request, "spec"),
                          *overrides = json_at(spec, "deploymentOverrides");

        *ret = (struct dgdr_spec){
                .model = text_or_null(spec, "model"),
                .backend = text_or_null(spec, "backend"),
                .use_mocker = json_bool(spec, "useMocker", false),
                .gpu_discovery = json_bool(spec, "enableGpuDiscovery", false),
                .auto_apply = json_bool(spec, "autoApply", false),
                .deployment = text_or_null(overrides, "name"),
                .deployment_ns = text_or_null(overrides, "namespace"),
                .labels = object_or_null(json_at(overrides, "labels")),
                .annotations = object_or_null(json_at(overrides, "annotations")),
                .workers_image = text_or_null(overrides, "workersImage"),
        };
        if (!ret->deployment)
                ret->deployment = arena_printf(v->arena, "%s-dgd", meta_str(v->request, "name"));
        read_profiling(json_at(spec, "profilingConfig"), ret);
}

/* ---- checking what stands in the request */

static void check_model(struct wrongs *w, const struct dgdr_spec *spec)
{
        static const char *const backends[] = {"vllm", "sglang", "trtllm"};

        if (!spec->model)
                wrong(w, "spec.model", "is missing, name the model to profile, for example Qwen/Qwen3-0.6B");
        for (size_t i = 0; i < ARRAY_LEN(backends); i++)
                if (streq(spec->backend, backends[i]))
                        return;
        wrong(w, "spec.backend", "must be vllm, sglang or trtllm%s%s", spec->backend ? ", not " : "",
              spec->backend ? shown(w->arena, spec->backend) : "");
}

static void check_image(struct wrongs *w, const char *path, const char *image)
{
        if (strpbrk(image, " \t\r\n"))
                wrong(w, path, "%s has a blank in it, an image's name has none", shown(w->arena, image));
}

static void check_profiler(struct wrongs *w, const struct view *v, const struct dgdr_spec *spec)
{
        const struct json *command = json_path(v->request, "spec.profilingConfig.command");

        if (spec->image)
                check_image(w, "spec.profilingConfig.profilerImage", spec->image);
        else if (spec->command)
                wrong(w, "spec.profilingConfig.profilerImage",
                      "is missing, name the image that has the command, or leave both out for Sonde's own "
                      "profiler");
        if (!spec->image && spec->gpu_discovery)
                wrong(w, "spec.enableGpuDiscovery",
                      "is true, but Sonde's own profiler discovers no GPUs, say in config.hardware how many "
                      "there are");
        if (command && !json_is(command, JSON_ARRAY))
                wrong(w, "spec.profilingConfig.command", "must be a list, for example [python3, profile.py]");
        json_foreach (word, spec->command)
                if (!json_cstr(word)) {
                        wrong(w, "spec.profilingConfig.command", "must be a list of texts, not %s",
                              shown_json(w->arena, word));
                        break;
                }
        if (spec->command && streq(json_cstr(json_first(spec->command)), ""))
                wrong(w, "spec.profilingConfig.command", "begins with an empty text, name a program there");
}

static void check_overrides(struct wrongs *w, const struct view *v, const struct dgdr_spec *spec)
{
        const char *ns = meta_str(v->request, "namespace");

        if (spec->deployment_ns && !streq(spec->deployment_ns, ns))
                wrong(w, "spec.deploymentOverrides.namespace",
                      "is %s, but a deployment is only made in the request's own namespace %s, leave it out",
                      shown(w->arena, spec->deployment_ns), shown(w->arena, ns));
        spec_check_labels(w, "spec.deploymentOverrides.labels", spec->labels);
        check_annotations(w, "spec.deploymentOverrides.annotations", spec->annotations);
        if (spec->workers_image)
                check_image(w, "spec.deploymentOverrides.workersImage", spec->workers_image);
}

/* ---- the deployment's name */

/* The longest name among the components of the deployment that the profiler starts from; NULL: not known. */
static const char *longest_component(const struct json *dgd)
{
        const char *longest = NULL;

        json_foreach (service, json_path(dgd, "spec.services"))
                if (!longest || strlen(service->key) > strlen(longest))
                        longest = service->key;
        json_foreach (component, json_path(dgd, "spec.components")) {
                const char *name = json_str(component, "name");

                if (name && (!longest || strlen(name) > strlen(longest)))
                        longest = name;
        }
        return longest;
}

/*
 * TEXT is of the base ConfigMap; it may be anything, and only a profiler can say whether it is of use. Every deployment has
 * a Frontend, and the profiler adds a Planner.
 */
static const char *component_of_base(struct arena *a, struct str text)
{
        struct json **docs = NULL;
        const char *longest = NULL;
        struct err err = ERR_INIT;
        size_t n = 0;

        if (!text.p || yaml_parse_all(a, text, NULL, &docs, &n, &err) < 0)
                return "Frontend";
        for (size_t i = 0; i < n && !longest; i++)
                if (streq(json_str(docs[i], "kind"), "DynamoGraphDeployment"))
                        longest = longest_component(docs[i]);
        if (!longest)
                return "Frontend";
        return strlen(longest) < strlen("Planner") ? "Planner" : longest;
}

static void check_deployment_name(struct wrongs *w, const struct view *v, const struct dgdr_spec *spec,
                                  struct str base)
{
        bool given = text_or_null(json_path(v->request, "spec.deploymentOverrides"), "name");
        const char *path = given ? "spec.deploymentOverrides.name" : "metadata.name";
        const char *component = component_of_base(w->arena, base);
        size_t n = strlen(spec->deployment), m = strlen(component);

        if (!name_valid(NAME_LABEL, str_of(spec->deployment)))
                wrong(w, path,
                      "%s is no name for a deployment: lower case letters, digits and '-', at most 63%s",
                      shown(w->arena, spec->deployment), given ? "" : ", set spec.deploymentOverrides.name");
        else if (n + m > NAMES_MAX)
                wrong(w, path,
                      "the deployment %s (%zu characters) and its component %s (%zu) have more than %d "
                      "together, "
                      "%s of at most %zu",
                      shown(w->arena, spec->deployment), n, shown(w->arena, component), m, (int)NAMES_MAX,
                      given ? "take a name" : "set spec.deploymentOverrides.name to one",
                      m < NAMES_MAX ? NAMES_MAX - m : 0);
}

/* ---- what the request names */

/* Whether there is an object of that name: its answer; a NULL *RET and true: a name that cannot be, which is told. */
static bool look_up(const struct view *v, struct decision *d, struct wrongs *w, const char *path,
                    const struct kube_type *type, const char *name, const struct answer **ret)
{
        *ret = NULL;
        if (!name_valid(NAME_SUBDOMAIN, str_of(name))) {
                wrong(w, path, "%s is no name of a %s", shown(w->arena, name), type->kind);
                return true;
        }
        *ret = decide_want(d, v, &(struct want){.kind = WANT_OBJECT, .type = type, .name = name});
        if (*ret && !(*ret)->json && !(*ret)->error)
                wrong(w, path, "there is no %s %s in namespace %s, create it or correct the name", type->kind,
                      shown(w->arena, name), shown(w->arena, meta_str(v->request, "namespace")));
        return *ret;
}

/* The base deployment's text in *BASE, as far as it is known. */
static bool check_base(const struct view *v, struct decision *d, struct wrongs *w,
                       const struct dgdr_spec *spec, struct str *base)
{
        const struct json *ref = json_path(v->request, "spec.profilingConfig.configMapRef");
        const struct answer *answer;

        if (!spec->base_map) {
                if (ref)
                        wrong(w, "spec.profilingConfig.configMapRef.name", "is missing, name the ConfigMap");
                return true;
        }
        if (!run_key_valid(str_of(spec->base_key))) {
                wrong(w, "spec.profilingConfig.configMapRef.key", "%s is no key of a ConfigMap",
                      shown(w->arena, spec->base_key));
                return true;
        }
        if (!look_up(v, d, w, "spec.profilingConfig.configMapRef.name", &KUBE_CONFIGMAP, spec->base_map,
                     &answer))
                return false;
        if (!answer || !answer->json)
                return true;
        *base = json_text(json_at(json_at(answer->json, "data"), spec->base_key));
        if (!base->p && !json_at(json_at(answer->json, "binaryData"), spec->base_key))
                wrong(w, "spec.profilingConfig.configMapRef.key",
                      "ConfigMap %s has no key %s, add it or name another", shown(w->arena, spec->base_map),
                      shown(w->arena, spec->base_key));
        return true;
}

static bool check_volume(const struct view *v, struct decision *d, struct wrongs *w,
                         const struct dgdr_spec *spec)
{
        const struct answer *answer;

        return !spec->pvc ||
               look_up(v, d, w, "spec.profilingConfig.outputPVC", &KUBE_PVC, spec->pvc, &answer);
}

bool dgdr_spec_check(const struct view *v, struct decision *d, const struct dgdr_spec *spec, bool look,
                     const char **why)
{
        struct wrongs w = WRONGS_INIT(v->arena);
        struct str base = STR_NULL;
        bool known;

        check_model(&w, spec);
        check_config(&w, spec);
        check_profiler(&w, v, spec);
        /* Both are asked for at once. */
        known = !look || check_base(v, d, &w, spec, &base);
        known = (!look || check_volume(v, d, &w, spec)) && known;
        check_pod(&w, spec);
        check_overrides(&w, v, spec);
        check_deployment_name(&w, v, spec, base);
        check_controls(&w, v);
        *why = wrongs_told(&w);
        if (!known)
                *why = NULL;
        return known;
}
