/*
 * The WorkloadProfile: which one fits, and what the profiler's summary makes of it.
 */
#include "kinds/cuda/internal.h"
#include "kinds/run_internal.h"

enum {
        SUMMARY_MAX = 1 << 20,
        DETAILS_MAX = 64 << 10, /* as it is printed: it becomes part of a status */
        METRICS_MAX = 128,
        METRIC_TEXT_MAX = 1024, /* as the schema has it */
        METRIC_NAME_MAX = 128,
};

static const struct json_limits SUMMARY_LIMITS = {.bytes = SUMMARY_MAX, .depth = 16, .nodes = 20000};

const char *cuda_profile_name(const struct view *v)
{
        return name_fit(v->arena, NAME_SUBDOMAIN, "", meta_str(v->request, "name"), "-profile", NULL);
}

static const char *bound_of(const struct json *profile)
{
        static const char *const types[] = {"compute-bound", "memory-bound", "mixed", "unknown"};
        const char *bound = json_str(profile, "boundType");

        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (streq(bound, types[i]))
                        return types[i];
        return NULL;
}

/* ---- which one fits */

static void take(struct cuda_profile *ret, const char *name, const struct json *profile)
{
        ret->name = name;
        ret->status = json_at(profile, "status");
        ret->bound = bound_of(ret->status);
}

/* Of the workload with this hash, and measured of it: spec and status are written one after the other. */
static bool is_good(const struct json *profile, const char *hash)
{
        const struct json *status = json_at(profile, "status");

        return !meta_str(profile, "deletionTimestamp") &&
               streq(json_str(json_at(profile, "spec"), "workloadHash"), hash) &&
               streq(json_str(status, "workloadHash"), hash) && bound_of(status);
}

/* One that belongs to an experiment, of the same name but an earlier one, goes with that. */
static bool is_users(const struct json *profile)
{
        json_foreach (owner, json_at(json_at(profile, "metadata"), "ownerReferences"))
                if (json_bool(owner, "controller", false) &&
                    streq(json_str(owner, "kind"), CUDAEXPERIMENT.kind))
                        return false;
        return !meta_str(profile, "deletionTimestamp");
}

/* The one that has the name of the experiment's own; of a user's only the server knows. */
static bool find_own(const struct view *v, struct decision *d, const char *hash, struct cuda_profile *ret)
{
        const char *name = cuda_profile_name(v);
        const struct object *own = view_child(v, &WORKLOADPROFILE, name);
        enum run_look look = LOOK_DONE;

        if (!own)
                own = run_look_up(v, d, &WORKLOADPROFILE, name, &look);
        if (look == LOOK_FAILED)
                decide_again_at(d, usec_add(v->now, RUN_LOOK_AGAIN));
        if (look != LOOK_DONE)
                return false;
        if (own && run_is_ours(v, own->json) ? is_good(own->json, hash) : own && is_users(own->json)) {
                take(ret, name, own->json);
                ret->users = !run_is_ours(v, own->json);
        }
        return true;
}

/* Another experiment's, the first by name. */
static bool find_other(const struct view *v, struct decision *d, const char *hash, struct cuda_profile *ret)
{
        const struct want want = {.kind = WANT_LIST,
                                  .type = &WORKLOADPROFILE,
                                  .name = arena_printf(v->arena, CUDA_LABEL_WORKLOAD "=%s", hash)};
        const struct answer *answer = decide_want(d, v, &want);

        if (!answer)
                return false;
        if (answer->error) /* it is profiled then, as if there were none */
                decide_event(d, v, EVENT_WARNING, "ReuseUnknown",
                             "the profiles of other experiments cannot be read: %s", answer->error);
        json_foreach (profile, json_at(answer->json, "items")) {
                const char *name = meta_str(profile, "name");

                if (!name || !is_good(profile, hash) || (ret->name && strcmp(name, ret->name) > 0))
                        continue;
                take(ret, name, profile);
                ret->reused = true;
        }
        return true;
}

bool cuda_profile_find(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                       struct cuda_profile *ret)
{
        const char *hash = cuda_workload_hash(v, spec);

        *ret = (struct cuda_profile){0};
        if (!find_own(v, d, hash, ret))
                return false;
        return ret->name || !spec->reuse || find_other(v, d, hash, ret);
}

/* ---- what the profiler left */

/* As upstream has it: texts stay, numbers become texts. NULL: it is neither, or too long. */
static struct json *metric(const struct view *v, const struct json *value)
{
        double number;

        if (json_is(value, JSON_STRING) && value->len <= METRIC_TEXT_MAX && !value->has_nul)
                return json_copy(v->arena, value);
        if (json_is(value, JSON_NUMBER) && json_to_double(value, &number))
                return json_string(v->arena, arena_printf(v->arena, "%g", number));
        return NULL;
}

/* NULL: WHY says what is wrong. */
static struct json *metrics_of(const struct view *v, const struct json *from, const char **why)
{
        struct json *ret = json_object(v->arena);

        if (from && !json_is(from, JSON_OBJECT) && !json_is(from, JSON_NULL))
                *why = "its metrics are no object";
        else if (json_len(from) > METRICS_MAX)
                *why = "it has too many metrics";
        json_foreach (m, *why ? NULL : from) {
                struct json *value = m->key_len && m->key_len <= METRIC_NAME_MAX ? metric(v, m) : NULL;

                if (!value) {
                        *why = run_sentence(v, "its metric '%s' is neither a text nor a number",
                                            run_quote(v, str_n(m->key, MIN(m->key_len, (uint32_t)60))));
                        break;
                }
                json_setn(v->arena, ret, str_n(m->key, m->key_len), value);
        }
        return *why ? NULL : ret;
}

/* The rest of the summary; what a status cannot take is left in the ConfigMap. */
static struct json *details_of(const struct view *v, const struct json *summary)
{
        const struct json *details = json_at(summary, "details");

        if (!json_is(details, JSON_OBJECT) || strlen(json_print(v->arena, details)) > DETAILS_MAX)
                return NULL;
        return json_merge_patch(v->arena, NULL,
                                details); /* without members that are null: they would not be kept */
}

static struct json *status_of(const struct view *v, const struct json *summary, const char **why)
{
        const struct json *progress = json_at(json_at(v->request, "status"), "progress");
        const char *bound = bound_of(summary);
        struct json *metrics;
        bool replay;

        if (!json_is(summary, JSON_OBJECT))
                *why = "it is no object";
        else if (!bound)
                *why = run_sentence(
                        v, "its boundType '%s' is none of compute-bound, memory-bound, mixed, unknown",
                        run_quote(v, json_text(json_at(summary, "boundType"))));
        metrics = *why ? NULL : metrics_of(v, json_at(summary, "metrics"), why);
        if (!metrics)
                return NULL;
        replay = streq(json_str(metrics, "replay"), "true");
        return json_build(
                v->arena, "{'boundType': %s, 'metrics': %p, 'profiledAt': %p, 'replay': %p, 'details': %p}",
                bound, (void *)metrics, (void *)json_string(v->arena, json_str(progress, "updatedAt")),
                (void *)(replay ? json_truth(v->arena, true) : NULL), (void *)details_of(v, summary));
}

bool cuda_profile_read(const struct view *v, struct decision *d, const struct run_kind *kind,
                       struct json **ret, const char **reason, const char **message)
{
        const struct json *map;
        const char *why = NULL;
        struct err err = ERR_INIT;
        struct str text;

        *ret = NULL;
        if (!run_data(v, d, kind->data_map, json_at(v->request, "status"), &map))
                return false;
        text = run_data_text(v, map, CUDA_SUMMARY_KEY, &err);
        if (!text.n && (text.p || err.code == E_NOT_FOUND)) {
                *reason = "ProfileSummaryMissing";
                *message = run_sentence(
                        v,
                        "Profile summary ConfigMap \"%s\" or key \"" CUDA_SUMMARY_KEY
                        "\" is missing: the profiler ended well and left none, or somebody took "
                        "it away",
                        kind->data_map);
                return true;
        }
        if (text.p) {
                const struct json *summary = json_parse(v->arena, text, &SUMMARY_LIMITS, &err);

                *ret = summary ? status_of(v, summary, &why) : NULL;
        }
        *reason = "InvalidProfileSummary";
        if (!*ret)
                *message = run_sentence(
                        v, "Profile summary ConfigMap \"%s\" contains invalid \"" CUDA_SUMMARY_KEY "\": %s",
                        kind->data_map, why ? why : err.text);
        return true;
}

/* ---- what is made of it */

void cuda_profile_plan(const struct view *v, struct decision *d, const struct cuda_spec *spec,
                       struct json *status)
{
        struct arena *a = v->arena;
        const char *hash = cuda_workload_hash(v, spec);
        struct json *labels = cuda_labels(v);

        json_set(a, labels, CUDA_LABEL_WORKLOAD, json_string(a, hash));
        json_set(a, status, "workloadHash", json_string(a, hash));
        decide_exist_with_status(
                d, &WORKLOADPROFILE,
                json_build(
                        a,
                        "{'metadata': {'name': %s, 'labels': %p}, 'spec': {'workloadImage': %s, 'command': "
                        "%p, 'arguments': %p, 'sourceCudaExperiment': %s, 'workloadHash': %s}}",
                        cuda_profile_name(v), (void *)labels, spec->image,
                        (void *)(spec->command ? json_copy(a, spec->command) : NULL),
                        (void *)(spec->arguments ? json_copy(a, spec->arguments) : NULL),
                        meta_str(v->request, "name"), hash),
                EXIST_APPLY, status);
}
