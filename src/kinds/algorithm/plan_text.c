/*
 * What the probe is told: everything that is measured is a command, in a group that is a container.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/run_internal.h"
#include "kinds/wrongs.h"

/* ---- groups */

/* What a container is made of. */
static const char *container_key(const struct view *v, const struct algorithm_entry *e)
{
        return json_print(v->arena, json_build(v->arena, "[%s, %p, %p]", algorithm_image(v, e),
                                               (void *)json_copy(v->arena, e->volumes),
                                               (void *)json_copy(v->arena, e->resources)));
}

static bool is_coordinators(const struct algorithm_entry *e)
{
        return e->type == ALGORITHM_SORTING && !json_at(e->json, "resources");
}

void algorithm_groups(const struct view *v, struct algorithm_spec *spec)
{
        const char **keys = arena_new_array(v->arena, const char *, spec->n + 1);
        bool one = true;
        size_t last = 0;

        for (size_t i = 0; i < spec->n; i++) {
                keys[i] = container_key(v, &spec->entries[i]);
                one = one && streq(keys[i], keys[0]);
        }
        for (size_t i = 0; !one && i < spec->n; i++) {
                size_t k = 0;

                if (is_coordinators(&spec->entries[i]))
                        continue;
                while (k < i && (is_coordinators(&spec->entries[k]) || !streq(keys[k], keys[i])))
                        k++;
                spec->entries[i].group = k < i ? spec->entries[k].group : ++last;
        }
        spec->groups = last + 1;
}

/* ---- commands */

static struct json *sorting_command(const struct view *v, const struct algorithm_entry *e)
{
        struct arena *a = v->arena;
        struct json *command = json_build(a, "['" RUN_PROGRAM "', 'algorithm', %s]", e->sorting);
        struct json *parameters = json_copy(a, e->parameters);

        json_remove(parameters, "algorithm");
        if (json_len(parameters)) {
                json_append(command, json_string(a, "--parameters"));
                json_append(command, json_string(a, json_print(a, parameters)));
        }
        return command;
}

static struct json *positive(struct arena *a, int64_t number)
{
        return number > 0 ? json_i64(a, number) : NULL;
}

static struct json *ml_command(const struct view *v, const struct algorithm_entry *e)
{
        struct arena *a = v->arena;
        const struct json *what = json_build(
                a,
                "{'framework': %s, 'task': %p, 'algorithm': %p, 'datasetSize': %p, 'nFeatures': %p, "
                "'nSelect': %p, "
                "'parameters': %p}",
                e->framework, (void *)json_string(a, e->task), (void *)json_string(a, e->model),
                (void *)positive(a, e->dataset_size), (void *)positive(a, e->n_features),
                (void *)positive(a, e->n_select), (void *)json_copy(a, e->parameters));

        return json_build(a, "['" RUN_PROGRAM "', 'ml', %s]", json_print(a, what));
}

static struct json *custom_command(const struct view *v, const struct algorithm_entry *e)
{
        struct json *command = json_array(v->arena);

        json_foreach (word, e->command)
                json_append(command, json_copy(v->arena, word));
        json_foreach (word, e->args)
                json_append(command, json_copy(v->arena, word));
        return command;
}

static struct json *command_of(const struct view *v, const struct algorithm_entry *e)
{
        switch (e->type) {
        case ALGORITHM_SORTING:
                return sorting_command(v, e);
        case ALGORITHM_ML:
                return ml_command(v, e);
        case ALGORITHM_CUSTOM:
                break;
        }
        return custom_command(v, e);
}

/* Parameters are of use to a custom command, too. */
static struct json *env_of(const struct view *v, const struct algorithm_entry *e)
{
        struct arena *a = v->arena;
        struct json *env = json_array(a);

        if (e->type != ALGORITHM_CUSTOM)
                return NULL;
        json_foreach (variable, e->env)
                json_append(env, json_build(a, "{'name': %s, 'value': %s}", json_str_or(variable, "name", ""),
                                            json_str_or(variable, "value", "")));
        if (e->parameters)
                json_append(env, json_build(a, "{'name': 'SONDE_PARAMETERS', 'value': %s}",
                                            run_escaped(a, json_print(a, e->parameters))));
        return json_len(env) ? env : NULL;
}

/* ---- the plan */

/* As the scheduler counts them: what is not requested is the limit. */
static struct json *requests_of(const struct view *v, const struct json *resources)
{
        static const char *const names[] = {"cpu", "memory"};
        struct json *requests = json_object(v->arena);

        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const struct json *value = json_at(json_at(resources, "requests"), names[i]);
                double amount;

                if (!value)
                        value = json_at(json_at(resources, "limits"), names[i]);
                if (value && amount_of(value, &amount) && amount > 0)
                        json_set(v->arena, requests, names[i], json_double(v->arena, amount));
        }
        return requests;
}

static struct json *entry_json(const struct view *v, const struct algorithm_entry *e)
{
        struct arena *a = v->arena;
        /* One without its own shares those of all, and what is said of them: what fits one need not fit the others. */
        bool own = e->resources && e->resources == json_at(e->json, "resources");

        return json_build(a,
                          "{'name': %s, 'type': %s, 'framework': %p, 'command': %p, 'env': %p, 'group': %zu, "
                          "'image': %p, 'requests': %p}",
                          e->name, algorithm_type_name(e->type), (void *)json_string(a, e->framework),
                          (void *)command_of(v, e), (void *)env_of(v, e), e->group,
                          (void *)json_string(a, algorithm_image(v, e)),
                          (void *)(own ? requests_of(v, e->resources) : NULL));
}

struct json *algorithm_plan_json(const struct view *v, const struct algorithm_spec *spec)
{
        struct arena *a = v->arena;
        struct json *entries = json_array(a), *sizes = json_array(a), *plan;
        const struct json *shared = json_at(json_at(v->request, "spec"), "resources");

        for (size_t i = 0; i < spec->n; i++)
                json_append(entries, entry_json(v, &spec->entries[i]));
        for (size_t i = 0; i < spec->n_sizes; i++)
                json_append(sizes, json_i64(a, spec->sizes[i]));
        plan = json_build(
                a,
                "{'seed': %lld, 'uid': %s, 'iterations': %lld, 'warmup': %lld, 'pods': %lld, 'sizes': "
                "%p, 'parallel': %p, 'baseline': %p, 'minEffect': %p, 'price': %p, 'algorithms': %p}",
                (long long)spec->seed, meta_str(v->request, "uid"), (long long)spec->iterations,
                (long long)spec->warmup, (long long)spec->pods, (void *)sizes,
                (void *)json_truth(a, spec->parallel), (void *)json_string(a, spec->baseline),
                (void *)json_double(a, spec->min_effect), (void *)json_copy(a, spec->price), (void *)entries);
        if (spec->comparison && json_len(shared))
                json_set(a, plan, "requests", requests_of(v, shared));
        if (spec->accuracy_tolerance >= 0)
                json_set(a, plan, "accuracyTolerance", json_double(a, spec->accuracy_tolerance));
        if (spec->run_timeout)
                json_set(a, plan, "runTimeout",
                         json_double(a, (double)spec->run_timeout / (double)USEC_PER_SEC));
        return plan;
}
