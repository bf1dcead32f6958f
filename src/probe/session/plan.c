/*
 * The plan of a session: reading it, and all that is wrong with it.
 */
#include "probe/session/internal.h"

enum {
        WORDS_MAX = 1024,
        ENV_MAX = 1024,
        DEPTH_MAX = 12,
        NODES_MAX = 40000,
        BLOCKS_MAX = 10000,
        PODS_MAX = 100
};

struct reading {
        struct arena *arena;
        struct session_plan *plan;
        struct err *err;
};

static const struct json *member(const struct json *object, const char *key)
{
        const struct json *j = json_at(object, key);

        return json_is(j, JSON_NULL) ? NULL : j;
}

/* A whole number from LOW to HIGH; OTHERWISE when it is not said. */
static int take_count(const struct reading *r, const struct json *object, const char *key, int64_t low,
                      int64_t high, int64_t otherwise, int64_t *ret)
{
        const struct json *j = member(object, key);

        *ret = otherwise;
        if (j && (!json_to_i64(j, ret) || *ret < low || *ret > high))
                return err_set(r->err, E_INVALID, "%s is not a whole number from %lld to %lld", key,
                               (long long)low, (long long)high);
        return 0;
}

/* A number from LOW to HIGH, both included. */
static int take_number(const struct reading *r, const struct json *object, const char *key, double low,
                       double high, double otherwise, double *ret)
{
        const struct json *j = member(object, key);

        *ret = otherwise;
        if (j && (!json_is(j, JSON_NUMBER) || !json_to_double(j, ret) || *ret < low || *ret > high))
                return err_set(r->err, E_INVALID, "%s is not a number from %g to %g", key, low, high);
        return 0;
}

static int take_text(const struct reading *r, const struct json *object, const char *key, size_t max,
                     const char *otherwise, const char **ret)
{
        const struct json *j = member(object, key);

        *ret = j ? json_cstr(j) : otherwise;
        if (j && !*ret)
                return err_set(r->err, E_INVALID, "%s is not a text", key);
        if (*ret && strlen(*ret) > max)
                return err_set(r->err, E_INVALID, "%s is longer than %zu bytes", key, max);
        return 0;
}

static int take_bool(const struct reading *r, const struct json *object, const char *key, bool *ret)
{
        const struct json *j = member(object, key);

        if (j && !json_is(j, JSON_BOOL))
                return err_set(r->err, E_INVALID, "%s is neither true nor false", key);
        *ret = j && j->truth;
        return 0;
}

static int read_requests(const struct reading *r, const struct json *j, struct session_requests *ret)
{
        if (j && !json_is(j, JSON_OBJECT))
                return err_set(r->err, E_INVALID, "requests is not an object");
        return take_number(r, j, "cpu", 0, SESSION_NUMBER_MAX, NAN, &ret->cpu) < 0 ||
                               take_number(r, j, "memory", 0, SESSION_NUMBER_MAX, NAN, &ret->memory) < 0
                       ? -1
                       : 0;
}

static int read_price(const struct reading *r, const struct json *j)
{
        struct session_price *p = &r->plan->price;

        if (!j)
                return 0;
        if (!json_is(j, JSON_OBJECT))
                return err_set(r->err, E_INVALID, "price is not an object");
        if (take_number(r, j, "perCpuHour", 0, SESSION_NUMBER_MAX, NAN, &p->per_cpu_hour) < 0 ||
            take_number(r, j, "perGiBHour", 0, SESSION_NUMBER_MAX, NAN, &p->per_gib_hour) < 0 ||
            take_number(r, j, "perRun", 0, SESSION_NUMBER_MAX, NAN, &p->per_run) < 0 ||
            take_text(r, j, "currency", 16, "", &p->currency) < 0)
                return -1;
        r->plan->priced = !isnan(p->per_cpu_hour) || !isnan(p->per_gib_hour) || !isnan(p->per_run);
        return 0;
}

static int read_sizes(const struct reading *r, const struct json *j)
{
        size_t n = json_len(j);
        int64_t *sizes = arena_new_array(r->arena, int64_t, MAX(n, (size_t)1));
        size_t i = 0;

        if (j && !json_is(j, JSON_ARRAY))
                return err_set(r->err, E_INVALID, "sizes is not a list");
        if (n > SESSION_SIZES_MAX)
                return err_set(r->err, E_INVALID, "there are %zu sizes, at most %d are taken", n,
                               SESSION_SIZES_MAX);
        json_foreach (size, j) {
                if (!json_to_i64(size, &sizes[i]) || sizes[i] < 1 || sizes[i] > INT64_C(1) << 53)
                        return err_set(r->err, E_INVALID, "sizes[%zu] is not a whole number above 0", i);
                for (size_t k = 0; k < i; k++)
                        if (sizes[k] == sizes[i])
                                return err_set(r->err, E_INVALID, "the size %lld is there twice",
                                               (long long)sizes[i]);
                i++;
        }
        r->plan->sizes = sizes;
        r->plan->n_sizes = MAX(n, (size_t)1);
        return 0;
}

static int read_command(const struct reading *r, const struct json *j, struct session_algorithm *al)
{
        size_t n = 0;

        if (!json_is(j, JSON_ARRAY) || json_len(j) == 0)
                return err_set(r->err, E_INVALID, "command is not a list of texts, or it is empty");
        if (json_len(j) > WORDS_MAX)
                return err_set(r->err, E_INVALID, "command has more than %d words", WORDS_MAX);
        al->command = arena_new_array(r->arena, const char *, json_len(j) + 1);
        json_foreach (word, j) {
                al->command[n] = json_cstr(word);
                if (!al->command[n++])
                        return err_set(r->err, E_INVALID, "command[%zu] is not a text", n - 1);
        }
        return al->command[0][0] ? 0 : err_set(r->err, E_INVALID, "command names no program");
}

static int read_env(const struct reading *r, const struct json *j, struct session_algorithm *al)
{
        if (j && !json_is(j, JSON_ARRAY))
                return err_set(r->err, E_INVALID, "env is not a list");
        if (json_len(j) > ENV_MAX)
                return err_set(r->err, E_INVALID, "env has more than %d variables", ENV_MAX);
        al->env = arena_new_array(r->arena, struct session_env, json_len(j) + 1);
        json_foreach (variable, j) {
                struct session_env *e = &al->env[al->n_env++];

                e->name = json_str(variable, "name");
                e->value = json_at(variable, "value") ? json_str(variable, "value") : "";
                if (!e->name || !e->name[0] || strchr(e->name, '=') || !e->value)
                        return err_set(r->err, E_INVALID, "env[%zu] is not {\"name\", \"value\"}",
                                       al->n_env - 1);
        }
        return 0;
}

/* A name is shown in tables, messages and logs. */
static bool is_printable(const char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text < ' ' || *text == 0x7f)
                        return false;
        return true;
}

static int read_algorithm(const struct reading *r, const struct json *j, struct session_algorithm *al)
{
        const struct json *requests = member(j, "requests");
        int64_t group;

        if (!json_is(j, JSON_OBJECT))
                return err_set(r->err, E_INVALID, "it is not an object");
        if (take_text(r, j, "name", SESSION_NAME_MAX, NULL, &al->name) < 0 ||
            take_text(r, j, "type", 63, "custom", &al->type) < 0 ||
            take_text(r, j, "framework", 63, NULL, &al->framework) < 0 ||
            take_text(r, j, "image", 4096, NULL, &al->image) < 0 ||
            take_count(r, j, "group", 0, SESSION_GROUPS_MAX - 1, 0, &group) < 0 ||
            read_command(r, member(j, "command"), al) < 0 || read_env(r, member(j, "env"), al) < 0 ||
            read_requests(r, requests, &al->requests) < 0)
                return -1;
        al->own_requests = requests != NULL;
        if (!al->name || !al->name[0])
                return err_set(r->err, E_INVALID, "it has no name");
        if (!is_printable(al->name))
                return err_set(r->err, E_INVALID, "its name has control characters");
        al->group = (unsigned)group;
        r->plan->groups = MAX(r->plan->groups, al->group + 1);
        return 0;
}

static bool same_framework(const struct session_algorithm *x, const struct session_algorithm *y)
{
        return streq(x->framework, y->framework);
}

/* Two may have one name and differ in what runs. */
static void label(const struct reading *r, size_t i)
{
        struct session_plan *p = r->plan;
        struct session_algorithm *al = &p->algorithms[i];
        size_t same = 0, as_well = 0;

        for (size_t k = 0; k < p->n; k++)
                if (streq(p->algorithms[k].name, al->name)) {
                        same++;
                        as_well += same_framework(&p->algorithms[k], al);
                }
        if (same == 1)
                al->label = al->name;
        else if (as_well == 1 && al->framework)
                al->label = arena_printf(r->arena, "%s (%s)", al->name, al->framework);
        else
                al->label = arena_printf(r->arena, "%s #%zu", al->name, i + 1);
}

static int read_algorithms(const struct reading *r, const struct json *j)
{
        struct session_plan *p = r->plan;

        if (!json_is(j, JSON_ARRAY) || json_len(j) == 0)
                return err_set(r->err, E_INVALID, "algorithms is not a list, or it is empty");
        if (json_len(j) > SESSION_ALGORITHMS_MAX)
                return err_set(r->err, E_INVALID, "there are %zu algorithms, at most %d are taken",
                               json_len(j), SESSION_ALGORITHMS_MAX);
        p->algorithms = arena_new_array(r->arena, struct session_algorithm, json_len(j));
        json_foreach (al, j) {
                if (read_algorithm(r, al, &p->algorithms[p->n]) < 0)
                        return err_wrap(r->err, "algorithms[%zu]", p->n);
                p->n++;
        }
        for (size_t i = 0; i < p->n; i++)
                label(r, i);
        return 0;
}

static int read_baseline(const struct reading *r, const struct json *root)
{
        struct session_plan *p = r->plan;
        const char *name;

        if (take_text(r, root, "baseline", SESSION_NAME_MAX, NULL, &name) < 0)
                return -1;
        p->has_baseline = name != NULL;
        while (name && p->baseline < p->n && !streq(p->algorithms[p->baseline].name, name) &&
               !streq(p->algorithms[p->baseline].label, name))
                p->baseline++;
        return p->baseline < p->n
                       ? 0
                       : err_set(r->err, E_INVALID, "the baseline '%.100s' is none of the algorithms", name);
}

static int read_numbers(const struct reading *r, const struct json *root)
{
        struct session_plan *p = r->plan;
        const struct json *seed = member(root, "seed");
        int64_t iterations, warmup, pods;
        double timeout;

        if (seed && !json_to_u64(seed, &p->seed)) {
                int64_t below;

                if (!json_to_i64(seed, &below))
                        return err_set(r->err, E_INVALID, "seed is not a whole number");
                p->seed = (uint64_t)below;
        }
        if (take_count(r, root, "iterations", 1, BLOCKS_MAX, 1, &iterations) < 0 ||
            take_count(r, root, "warmup", 0, BLOCKS_MAX, 1, &warmup) < 0 ||
            take_count(r, root, "pods", 1, PODS_MAX, 1, &pods) < 0 ||
            take_number(r, root, "minEffect", 0, 1, 0.02, &p->min_effect) < 0 ||
            take_number(r, root, "alpha", 1e-9, 0.5, 0.05, &p->alpha) < 0 ||
            take_number(r, root, "accuracyTolerance", 0, SESSION_NUMBER_MAX, NAN, &p->accuracy_tolerance) <
                    0 ||
            take_number(r, root, "runTimeout", 0, (double)SESSION_TIMEOUT_MAX / (double)USEC_PER_SEC, 0,
                        &timeout) < 0)
                return -1;
        p->iterations = (unsigned)iterations;
        p->warmup = (unsigned)warmup;
        p->pods = (unsigned)pods;
        p->run_timeout = (usec_t)ceil(timeout * (double)USEC_PER_SEC);
        return 0;
}

static int check_extent(const struct reading *r)
{
        const struct session_plan *p = r->plan;
        size_t entries = plan_entries(p), runs = entries * plan_blocks(p) * p->pods;

        if (entries > SESSION_ENTRIES_MAX)
                return err_set(r->err, E_TOO_LARGE,
                               "%zu algorithms at %zu sizes are %zu, at most %d are taken", p->n, p->n_sizes,
                               entries, SESSION_ENTRIES_MAX);
        if (runs > SESSION_RUNS_MAX)
                return err_set(r->err, E_TOO_LARGE,
                               "%zu algorithms at %zu sizes, %u times with %u for warm-up, in %u pods are "
                               "%zu runs, at "
                               "most %d are taken",
                               p->n, p->n_sizes, p->iterations, p->warmup, p->pods, runs, SESSION_RUNS_MAX);
        return 0;
}

static int read_plan(const struct reading *r, const struct json *root)
{
        struct session_requests shared;
        struct session_plan *p = r->plan;

        if (!json_is(root, JSON_OBJECT))
                return err_set(r->err, E_INVALID, "it is not an object");
        if (read_numbers(r, root) < 0 || take_text(r, root, "uid", SESSION_NAME_MAX, "", &p->uid) < 0 ||
            take_bool(r, root, "parallel", &p->parallel) < 0 || read_sizes(r, member(root, "sizes")) < 0 ||
            read_price(r, member(root, "price")) < 0 ||
            read_requests(r, member(root, "requests"), &shared) < 0 ||
            read_algorithms(r, member(root, "algorithms")) < 0 || read_baseline(r, root) < 0)
                return -1;
        for (size_t i = 0; i < p->n; i++)
                if (!p->algorithms[i].own_requests)
                        p->algorithms[i].requests = shared;
        return check_extent(r);
}

int session_plan_parse(struct arena *a, struct str text, struct session_plan *ret, struct err *err)
{
        const struct json_limits limits = {.bytes = SESSION_PLAN_MAX, .depth = DEPTH_MAX, .nodes = NODES_MAX};
        struct session_plan plan = {.uid = ""};
        const struct json *root = json_parse(a, text, &limits, err);
        struct reading r = {.arena = a, .plan = &plan, .err = err};

        if (!root || read_plan(&r, root) < 0)
                return err_wrap(err, "the plan");
        plan.hash = json_hash(root);
        *ret = plan;
        return 0;
}
