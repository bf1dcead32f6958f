/*
 * The spec with its defaults, and all that is wrong with it.
 *
 * What can be known to fail is refused before anything runs, all of it at once; so is what nobody can do yet.
 */
#include "kinds/cuda/spec_internal.h"

enum {
        LAUNCHES_MAX = 1000,
        SKIP_MAX = 1000000000,
        COMPUTE_MAX = 99, /* major */
};

static const char *const modes[] = {[PLACE_NONE] = "none",
                                    [PLACE_AFFINITY] = "affinity",
                                    [PLACE_VOLCANO] = "volcano",
                                    [PLACE_KUEUE] = "kueue"};

/* ---- reading */

static const struct json *spec_of(const struct view *v)
{
        return json_at(v->request, "spec");
}

static const char *text_or(const struct json *object, const char *key, const char *otherwise)
{
        const char *text = json_str(object, key);

        return text && *text ? text : otherwise;
}

static const struct json *list_or_null(const struct json *object, const char *key)
{
        const struct json *list = json_at(object, key);

        return json_is(list, JSON_ARRAY) && json_len(list) ? list : NULL;
}

/* "8.6" or "8", as 86 and 80. False: it is none. */
static bool capability_of(struct str text, int *ret)
{
        struct str minor = text, major = str_split(&minor, '.');
        uint64_t x, y = 0;

        if (!str_to_u64(major, &x) || x < 1 || x > COMPUTE_MAX)
                return false;
        if (minor.p && (minor.n != 1 || !str_to_u64(minor, &y)))
                return false;
        *ret = (int)(x * 10 + y);
        return true;
}

/* An amount above 0, in MiB. */
static bool mebibytes_of(const struct json *value, int64_t *ret)
{
        const double mebi = 0x1p20;
        double bytes;

        if (!amount_of(value, &bytes) || bytes <= 0 || bytes > 0x1p60)
                return false;
        *ret = (int64_t)(bytes / mebi);
        *ret += (double)*ret * mebi < bytes;
        return true;
}

static void read_profiling(const struct json *p, struct cuda_spec *ret)
{
        ret->set = text_or(p, "set", "basic");
        ret->kernel_name = text_or(p, "kernelName", NULL);
        ret->launch_count = json_int(p, "launchCount", NCU_LAUNCHES_DEFAULT);
        ret->launch_skip = json_int(p, "launchSkip", 0);
        if (!run_timeout_of(json_text(json_at(p, "timeout")), &ret->timeout))
                ret->timeout = 0;
        ret->reuse = json_bool(p, "reuse", false);
        ret->sys_admin = !streq(json_str(p, "permission"), "none");
        ret->files = list_or_null(p, "files");
}

static void read_placement(const struct json *spec, struct cuda_spec *ret)
{
        const struct json *placement = json_at(spec, "placement");
        const char *mode = json_str(placement, "mode");

        ret->mode = PLACE_AFFINITY;
        for (size_t i = 0; i < ARRAY_LEN(modes); i++)
                if (streq(mode, modes[i]))
                        ret->mode = (enum place_mode)i;
        ret->queue = text_or(placement, "queue", NULL);
        ret->least.gpus = ret->gpus;
        if (!capability_of(json_text(json_at(spec, "minimumComputeCapability")), &ret->least.compute))
                ret->least.compute = 0;
        if (!mebibytes_of(json_at(spec, "minimumMemory"), &ret->least.memory))
                ret->least.memory = 0;
}

void cuda_spec_read(const struct view *v, struct cuda_spec *ret)
{
        const struct json *spec = spec_of(v), *resources = json_at(spec, "resources");
        int64_t gpus = json_int(spec, "numberOfGPUs", 0);

        if (gpus < 1)
                gpus = json_int(spec, "gpuRequired", 1);
        *ret = (struct cuda_spec){
                .image = text_or(spec, "image", NULL),
                .command = list_or_null(spec, "command"),
                .arguments = list_or_null(spec, "arguments"),
                .runtime_class = text_or(spec, "runtimeClassName", "nvidia"),
                .replicas = MAX(json_int(spec, "replicas", 1), (int64_t)1),
                .gpus = MAX(gpus, (int64_t)1),
                .profiling = json_bool(spec, "profilingEnabled", false),
                .env = list_or_null(spec, "env"),
                .volumes = list_or_null(spec, "volumes"),
                .resources = json_is(resources, JSON_OBJECT) && json_len(resources) ? resources : NULL,
        };
        read_profiling(json_at(spec, "profiling"), ret);
        read_placement(spec, ret);
}

/* ---- hashes */

/* What profiling measures. */
static struct json *measured(const struct view *v, const struct cuda_spec *spec)
{
        return json_build(
                v->arena,
                "{'set': %s, 'launchCount': %lld, 'launchSkip': %lld, 'kernelName': %p, 'files': %p}",
                spec->set, (long long)spec->launch_count, (long long)spec->launch_skip,
                (void *)json_string(v->arena, spec->kernel_name), (void *)json_copy(v->arena, spec->files));
}

const char *cuda_workload_hash(const struct view *v, const struct cuda_spec *spec)
{
        struct view of = *v;

        of.request = json_build(
                v->arena,
                "{'spec': {'image': %p, 'command': %p, 'arguments': %p, 'env': %p, 'profiling': %p}}",
                (void *)json_string(v->arena, spec->image), (void *)json_copy(v->arena, spec->command),
                (void *)json_copy(v->arena, spec->arguments), (void *)json_copy(v->arena, spec->env),
                (void *)measured(v, spec));
        return run_spec_hash(&of, NULL);
}

/*
 * The request with all that may be left out of `profiling` and `placement` written out: a server fills in defaults where a member
 * was added to one of them, and that is no change.
 */
static const struct json *written_out(const struct view *v, const struct cuda_spec *spec)
{
        struct arena *a = v->arena;
        struct json *request = json_copy(a, v->request), *of = json_at(request, "spec");
        struct json *profiling = measured(v, spec);

        if (!json_is(of, JSON_OBJECT))
                return request;
        json_set(a, profiling, "reuse", json_truth(a, spec->reuse));
        json_set(a, profiling, "permission", json_string(a, spec->sys_admin ? "sysAdmin" : "none"));
        json_set(a, profiling, "timeout",
                 json_copy(v->arena, json_at(json_at(spec_of(v), "profiling"), "timeout")));
        json_set(a, of, "profiling", profiling);
        json_set(a, of, "placement",
                 json_build(a, "{'mode': %s, 'queue': %p}", modes[spec->mode],
                            (void *)json_string(a, spec->queue)));
        return request;
}

const char *cuda_spec_hash(const struct view *v, const struct cuda_spec *spec)
{
        static const char *const later[] = {"profiling.timeout", NULL};
        struct view of = *v;

        of.request = written_out(v, spec);
        return run_spec_hash(&of, later);
}

void cuda_run_read(const struct view *v, const struct cuda_spec *spec, const struct run_kind *kind,
                   struct run *ret)
{
        struct view of = *v;

        of.request = written_out(v, spec);
        run_read(&of, kind, ret);
        ret->controls.timeout = spec->timeout;
}

/* ---- checking */

static void check_texts(struct wrongs *w, const char *path, const struct json *list)
{
        if (list && !json_is(list, JSON_ARRAY) && !json_is(list, JSON_NULL)) {
                wrong(w, path, "must be a list of texts, not %s", shown_json(w->arena, list));
                return;
        }
        json_foreach (word, list)
                if (!json_cstr(word)) {
                        wrong(w, path, "must be a list of texts, not %s", shown_json(w->arena, word));
                        return;
                }
}

static bool is_empty_command(const struct cuda_spec *spec)
{
        return spec->command && streq(json_cstr(json_first(spec->command)), "");
}

static void check_program(struct wrongs *w, const struct view *v, const struct cuda_spec *spec)
{
        if (!spec->image)
                wrong(w, "spec.image", "is missing, name the image that has the program");
        else if (strpbrk(spec->image, " \t\r\n"))
                wrong(w, "spec.image", "%s has a blank in it, an image's name has none",
                      shown(w->arena, spec->image));
        check_texts(w, "spec.command", json_at(spec_of(v), "command"));
        check_texts(w, "spec.arguments", json_at(spec_of(v), "arguments"));
        if (is_empty_command(spec))
                wrong(w, "spec.command", "begins with an empty text, name a program there");
        if (!name_valid(NAME_SUBDOMAIN, str_of(spec->runtime_class)))
                wrong(w, "spec.runtimeClassName", "%s is no name of a RuntimeClass",
                      shown(w->arena, spec->runtime_class));
}

static void check_whole(struct wrongs *w, const struct json *of, const char *key, const char *path,
                        int64_t min, int64_t max)
{
        const struct json *value = json_at(of, key);
        int64_t number;

        if (!value || json_is(value, JSON_NULL) ||
            (json_to_i64(value, &number) && number >= min && number <= max))
                return;
        wrong(w, path, "must be a whole number from %lld to %lld, not %s", (long long)min, (long long)max,
              shown_json(w->arena, value));
}

/* Upstream has these fields, and nothing comes of them there either. */
static void check_unsupported(struct wrongs *w, const struct json *spec)
{
        static const struct {
                const char *member, *path, *instead;
        } texts[] = {{"maxLatency", "spec.maxLatency", "leave it out"},
                     {"networkBandwidthRequirement", "spec.networkBandwidthRequirement", "leave it out"},
                     {"priority", "spec.priority", "use spec.priorityClassName"}};

        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                const struct json *value = json_at(spec, texts[i].member);

                if (value && !json_is(value, JSON_NULL) && !streq(json_cstr(value), ""))
                        wrong(w, texts[i].path, "is not supported yet, %s", texts[i].instead);
        }
        if (json_int(spec, "numberOfNodes", 0) > 1)
                wrong(w, "spec.numberOfNodes", "more than 1 is not supported yet, use spec.replicas");
        if (json_bool(spec, "distributed", false))
                wrong(w, "spec.distributed", "is not supported yet, use spec.replicas");
}

static void check_minimums(struct wrongs *w, const struct json *spec)
{
        const struct json *compute = json_at(spec, "minimumComputeCapability"),
                          *memory = json_at(spec, "minimumMemory");
        int64_t mebibytes;
        int capability;

        if (compute && !streq(json_cstr(compute), "") && !capability_of(json_text(compute), &capability))
                wrong(w, "spec.minimumComputeCapability",
                      "%s is no compute capability, write for example 8.0", shown_json(w->arena, compute));
        if (memory && !streq(json_cstr(memory), "") && !mebibytes_of(memory, &mebibytes))
                wrong(w, "spec.minimumMemory", "%s is no amount of memory above 0, write for example 40Gi",
                      shown_json(w->arena, memory));
}

static bool is_word(const char *text)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

        return *text && !strchr("_.-", *text) && text[strspn(text, letters)] == '\0';
}

static void check_profiling(struct wrongs *w, const struct view *v, const struct cuda_spec *spec)
{
        const struct json *p = json_at(spec_of(v), "profiling"), *timeout = json_at(p, "timeout");
        const char *permission = json_str(p, "permission");
        usec_t usec;

        if (!is_word(spec->set))
                wrong(w, "spec.profiling.set", "%s is no name of a set of Nsight Compute, such as basic",
                      shown(w->arena, spec->set));
        if (spec->kernel_name && *spec->kernel_name == '-')
                wrong(w, "spec.profiling.kernelName", "%s begins with '-', which no kernel's name does",
                      shown(w->arena, spec->kernel_name));
        check_whole(w, p, "launchCount", "spec.profiling.launchCount", 1, LAUNCHES_MAX);
        check_whole(w, p, "launchSkip", "spec.profiling.launchSkip", 0, SKIP_MAX);
        if (timeout && !json_is(timeout, JSON_NULL) && !run_timeout_of(json_text(timeout), &usec))
                wrong(w, "spec.profiling.timeout",
                      "%s is no time above 0 and up to a year, write it like 90s, 30m or 1h30m",
                      shown_json(w->arena, timeout));
        if (permission && !streq(permission, "sysAdmin") && !streq(permission, "none"))
                wrong(w, "spec.profiling.permission", "must be sysAdmin or none, not %s",
                      shown(w->arena, permission));
        if (spec->profiling && spec->sys_admin && json_int(spec_of(v), "runAsUser", 0) > 0)
                wrong(w, "spec.runAsUser",
                      "with spec.profiling.permission sysAdmin the profiler is root, as a capability is "
                      "of no use to others, leave it out or set permission to none");
}

static void check_placement(struct wrongs *w, const struct view *v, const struct cuda_spec *spec)
{
        const char *mode = json_str(json_at(spec_of(v), "placement"), "mode");
        bool queues = spec->mode == PLACE_VOLCANO || spec->mode == PLACE_KUEUE;

        if (mode && !streq(mode, modes[spec->mode]))
                wrong(w, "spec.placement.mode", "must be none, affinity, volcano or kueue, not %s",
                      shown(w->arena, mode));
        if (spec->mode == PLACE_KUEUE && !spec->queue)
                wrong(w, "spec.placement.queue", "is missing, kueue needs the name of a LocalQueue");
        else if (spec->queue && !queues)
                wrong(w, "spec.placement.queue",
                      "has a meaning with mode volcano or kueue only, leave it out");
        else if (spec->queue && !name_valid(NAME_JOB, str_of(spec->queue)))
                wrong(w, "spec.placement.queue", "%s is no name of a queue", shown(w->arena, spec->queue));
}

const char *cuda_spec_check(const struct view *v, const struct cuda_spec *spec, const char **why)
{
        struct wrongs w = WRONGS_INIT(v->arena);
        const struct json *of = spec_of(v);

        check_program(&w, v, spec);
        check_whole(&w, of, "replicas", "spec.replicas", 1, INT32_MAX);
        check_whole(&w, of, "gpuRequired", "spec.gpuRequired", 1, INT32_MAX);
        check_whole(&w, of, "numberOfGPUs", "spec.numberOfGPUs", INT32_MIN, INT32_MAX);
        check_unsupported(&w, of);
        check_minimums(&w, of);
        check_pod_parts(&w, spec);
        check_profiling(&w, v, spec);
        check_placement(&w, v, spec);
        check_controls(&w, v);
        *why = wrongs_told(&w);
        if (!*why)
                return NULL;
        return is_empty_command(spec) ? "CommandEmpty" : "Invalid";
}
