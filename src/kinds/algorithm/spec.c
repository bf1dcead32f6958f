/*
 * The spec with its defaults, and all that is wrong with it.
 *
 * What can be known to fail is refused before anything runs, all of it at once.
 */
#include "kinds/algorithm/spec_internal.h"

enum { SEED_DEFAULT = 1, PODS_MAX = 20, N_SELECT_DEFAULT = 20 };
enum { ITERATIONS_MAX = 10000, WARMUP_MAX = 1000, SIZE_MAX_ = 1000000000 };

#define MIN_EFFECT_DEFAULT 0.02

static const char *const types[] = {
        [ALGORITHM_SORTING] = "sorting", [ALGORITHM_ML] = "ml", [ALGORITHM_CUSTOM] = "custom"};

const char *algorithm_type_name(enum algorithm_type type)
{
        return types[type];
}

/* ---- reading: an algorithm */

static const char *text_or(const struct json *object, const char *key, const char *otherwise)
{
        const char *text = json_str(object, key);

        return text && *text ? text : otherwise;
}

static const struct json *object_or_null(const struct json *of, const char *key)
{
        const struct json *object = json_at(of, key);

        return json_is(object, JSON_OBJECT) && json_len(object) ? object : NULL;
}

static const struct json *list_or_null(const struct json *of, const char *key)
{
        const struct json *list = json_at(of, key);

        return json_is(list, JSON_ARRAY) && json_len(list) ? list : NULL;
}

static enum algorithm_type type_of(const char *text)
{
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
                if (streq(text, types[i]))
                        return (enum algorithm_type)i;
        return ALGORITHM_SORTING;
}

/* As upstream's operator has it; in a comparison, and in a sweep, the input's size is that of the data. */
static int64_t default_rows(const struct algorithm_spec *spec, const char *task)
{
        if (spec->comparison || spec->n_sizes > 1)
                return 0;
        if (streq(task, "hyperparameter_tuning"))
                return 5000;
        return streq(task, "distributed_training") ? 100000 : 10000;
}

static void read_ml(const struct algorithm_spec *spec, struct algorithm_entry *e)
{
        const struct json *ml = json_at(e->json, "mlConfig");
        int64_t rows, features, select = json_int(ml, "nSelect", N_SELECT_DEFAULT);

        e->framework = text_or(ml, "framework", text_or(e->json, "framework", "sklearn"));
        e->task = text_or(ml, "task", spec->comparison ? NULL : "feature_selection");
        e->model = text_or(ml, "algorithm", NULL);
        rows = json_int(ml, "datasetSize", 0);
        features = json_int(ml, "nFeatures", 0);
        e->dataset_size = rows > 0 ? rows : default_rows(spec, e->task);
        e->n_features = features > 0 ? features : streq(e->task, "hyperparameter_tuning") ? 50 : 100;
        if (select == N_SELECT_DEFAULT) /* which the server may have filled in */
                select = MIN(select, e->n_features);
        if (streq(e->task, "feature_selection") && !json_at(e->parameters, "n_select"))
                e->n_select = MAX(select, (int64_t)1);
}

static void read_custom(struct algorithm_entry *e)
{
        const struct json *custom = json_at(e->json, "customConfig");

        e->image = text_or(custom, "image", NULL);
        e->command = list_or_null(custom, "command");
        e->args = list_or_null(custom, "args");
        e->env = list_or_null(custom, "env");
        e->volumes = list_or_null(custom, "volumes");
}

static void read_entry(const struct view *v, const struct algorithm_spec *spec, struct algorithm_entry *e)
{
        const struct json *common = json_at(json_at(v->request, "spec"), "resources");

        e->name = json_str_or(e->json, spec->comparison ? "name" : "algorithmName", "");
        e->type = type_of(json_str(e->json, spec->comparison ? "type" : "algorithmType"));
        e->parameters = object_or_null(e->json, "parameters");
        e->resources = object_or_null(e->json, "resources");
        if (!e->resources && json_is(common, JSON_OBJECT) && json_len(common))
                e->resources = common;
        if (e->type == ALGORITHM_SORTING)
                e->sorting = text_or(e->parameters, "algorithm", e->name);
        else if (e->type == ALGORITHM_ML)
                read_ml(spec, e);
        else
                read_custom(e);
}

static void read_entries(const struct view *v, struct algorithm_spec *spec)
{
        const struct json *of = json_at(v->request, "spec");
        const struct json *list = spec->comparison ? list_or_null(of, "algorithms") : NULL;
        size_t i = 0;

        spec->n = spec->comparison ? MIN(json_len(list), (size_t)SESSION_ALGORITHMS_MAX) : 1;
        spec->entries = arena_new_array(v->arena, struct algorithm_entry, spec->n + 1);
        if (!spec->comparison)
                spec->entries[0] = (struct algorithm_entry){.json = of, .path = "spec"};
        json_foreach (json, list) {
                if (i == spec->n)
                        break;
                spec->entries[i] = (struct algorithm_entry){
                        .json = json, .path = arena_printf(v->arena, "spec.algorithms[%zu]", i)};
                i++;
        }
        for (i = 0; i < spec->n; i++)
                read_entry(v, spec, &spec->entries[i]);
}

/* ---- reading: the rest */

static int by_size(const void *x, const void *y)
{
        const int64_t *a = x, *b = y;

        return (*a > *b) - (*a < *b);
}

static void read_sizes(const struct view *v, struct algorithm_spec *spec)
{
        const struct json *of = json_at(v->request, "spec"), *list = list_or_null(of, "inputSizes");
        int64_t *sizes = arena_new_array(v->arena, int64_t, SESSION_SIZES_MAX + 1);
        size_t n = 0, kept = 0;

        sizes[n++] = spec->input_size = json_int(of, "inputSize", 0);
        json_foreach (size, list)
                if (n <= SESSION_SIZES_MAX && json_to_i64(size, &sizes[n]))
                        n++;
        qsort(sizes, n, sizeof(*sizes), by_size);
        for (size_t i = 0; i < n; i++)
                if (!i || sizes[i] != sizes[i - 1])
                        sizes[kept++] = sizes[i];
        spec->sizes = sizes;
        spec->n_sizes = kept;
}

static double number_or(const struct json *of, const char *key, double otherwise)
{
        double number;

        return json_to_double(json_at(of, key), &number) ? number : otherwise;
}

void algorithm_spec_read(const struct view *v, struct algorithm_spec *ret)
{
        const struct json *of = json_at(v->request, "spec");
        int64_t iterations = MAX(json_int(of, "iterations", 1), (int64_t)1);

        *ret = (struct algorithm_spec){
                .comparison = v->type == &ALGORITHMCOMPARISON,
                .iterations = iterations,
                .warmup = MAX(json_int(of, "warmup", iterations > 1), (int64_t)0),
                .pods = MAX(json_int(of, "pods", 1), (int64_t)1),
                .seed = MAX(json_int(of, "seed", SEED_DEFAULT), (int64_t)0),
                .parallel = json_bool(of, "parallel", false),
                .baseline = text_or(of, "baseline", NULL),
                .min_effect = number_or(of, "minEffect", MIN_EFFECT_DEFAULT),
                .accuracy_tolerance = number_or(of, "accuracyTolerance", -1),
                .ttl_seconds = json_int(of, "ttlSecondsAfterFinished", -1),
                .queue = text_or(of, "queueName", NULL),
                .price = object_or_null(of, "price"),
                .schedule = object_or_null(of, "schedule"),
        };
        if (!run_timeout_of(json_text(json_at(of, "runTimeout")), &ret->run_timeout))
                ret->run_timeout = 0;
        read_sizes(v, ret);
        read_entries(v, ret);
        algorithm_groups(v, ret);
}

/* ---- checking */

void check_whole(struct wrongs *w, const struct json *of, const char *path, const char *key, int64_t min,
                 int64_t max)
{
        const struct json *value = json_at(of, key);
        int64_t number;

        if (!value || json_is(value, JSON_NULL) ||
            (json_to_i64(value, &number) && number >= min && number <= max))
                return;
        wrong(w, arena_join(w->arena, path, ".", key), "must be a whole number from %lld to %lld, not %s",
              (long long)min, (long long)max, shown_json(w->arena, value));
}

static void check_share(struct wrongs *w, const struct json *of, const char *key, double max)
{
        const struct json *value = json_at(of, key);
        double number;

        if (!value || json_is(value, JSON_NULL) ||
            (json_to_double(value, &number) && number >= 0 && number <= max))
                return;
        wrong(w, arena_join(w->arena, "spec.", key, ""), "must be a number from 0 to %g, not %s", max,
              shown_json(w->arena, value));
}

static void check_sizes(struct wrongs *w, const struct json *of)
{
        const struct json *list = json_at(of, "inputSizes");
        size_t i = 0;
        int64_t size;

        if (!json_at(of, "inputSize"))
                wrong(w, "spec.inputSize", "is missing, say how large the input is");
        else
                check_whole(w, of, "spec", "inputSize", 1, SIZE_MAX_);
        if (list && !json_is(list, JSON_ARRAY) && !json_is(list, JSON_NULL))
                wrong(w, "spec.inputSizes", "must be a list of whole numbers, not %s",
                      shown_json(w->arena, list));
        if (json_len(list) > SESSION_SIZES_MAX - 1)
                wrong(w, "spec.inputSizes", "has %zu sizes, and at most %d can be measured", json_len(list),
                      SESSION_SIZES_MAX - 1);
        json_foreach (value, json_is(list, JSON_ARRAY) ? list : NULL) {
                if (!json_to_i64(value, &size) || size < 1 || size > SIZE_MAX_)
                        wrong(w, arena_printf(w->arena, "spec.inputSizes[%zu]", i),
                              "must be a whole number from 1 to %d, not %s", SIZE_MAX_,
                              shown_json(w->arena, value));
                i++;
        }
}

/* What a checkpoint can keep, and a result tell. */
static void check_runs(struct wrongs *w, const struct algorithm_spec *spec)
{
        double entries = (double)spec->n * (double)spec->n_sizes;
        double runs = entries * (double)(spec->iterations + spec->warmup) * (double)spec->pods;

        if (entries > SESSION_ENTRIES_MAX)
                wrong(w, "spec.inputSizes",
                      "%zu algorithms at %zu sizes are more than the %d that there may be", spec->n,
                      spec->n_sizes, SESSION_ENTRIES_MAX);
        if (runs > SESSION_RUNS_MAX)
                wrong(w, "spec.iterations", "makes %.0f runs in all, and at most %d can be kept", runs,
                      SESSION_RUNS_MAX);
        if (spec->groups > SESSION_GROUPS_MAX)
                wrong(w, "spec.algorithms",
                      "need %zu containers with images, volumes or resources of their own, and at most %d "
                      "can be "
                      "in one pod",
                      spec->groups - 1, SESSION_GROUPS_MAX - 1);
}

static void check_price(struct wrongs *w, const struct json *of)
{
        static const char *const prices[] = {"perCpuHour", "perGiBHour", "perRun"};
        const struct json *price = json_at(of, "price");

        for (size_t i = 0; i < ARRAY_LEN(prices); i++) {
                const struct json *value = json_at(price, prices[i]);
                double number;

                if (value && (!json_to_double(value, &number) || number < 0 || number > SESSION_NUMBER_MAX))
                        wrong(w, arena_join(w->arena, "spec.price.", prices[i], ""),
                              "must be a number from 0 to %g, not %s", SESSION_NUMBER_MAX,
                              shown_json(w->arena, value));
        }
}

static void check_rest(struct wrongs *w, const struct json *of, const struct algorithm_spec *spec)
{
        const struct json *timeout = json_at(of, "runTimeout");
        usec_t usec;

        check_whole(w, of, "spec", "iterations", 1, ITERATIONS_MAX);
        check_whole(w, of, "spec", "warmup", 0, WARMUP_MAX);
        check_whole(w, of, "spec", "pods", 1, PODS_MAX);
        check_whole(w, of, "spec", "seed", 0, INT64_MAX);
        check_whole(w, of, "spec", "ttlSecondsAfterFinished", 0, INT32_MAX);
        check_share(w, of, "minEffect", 1);
        check_share(w, of, "accuracyTolerance", 1);
        if (timeout && !json_is(timeout, JSON_NULL) &&
            (!run_timeout_of(json_text(timeout), &usec) || usec > SESSION_TIMEOUT_MAX))
                wrong(w, "spec.runTimeout",
                      "%s is no time above 0 and up to 7 days, write it like 90s, 30m or 1h30m",
                      shown_json(w->arena, timeout));
        if (spec->queue && !name_valid(NAME_JOB, str_of(spec->queue)))
                wrong(w, "spec.queueName", "%s is no name of a queue", shown(w->arena, spec->queue));
        check_price(w, of);
}

static void check_baseline(struct wrongs *w, const struct algorithm_spec *spec)
{
        for (size_t i = 0; spec->baseline && i < spec->n; i++)
                if (streq(spec->entries[i].name, spec->baseline))
                        return;
        if (spec->baseline)
                wrong(w, "spec.baseline", "%s is none of the algorithms", shown(w->arena, spec->baseline));
}

const char *algorithm_spec_check(const struct view *v, const struct algorithm_spec *spec)
{
        struct wrongs w = WRONGS_INIT(v->arena);
        const struct json *of = json_at(v->request, "spec");

        if (spec->comparison && json_len(json_at(of, "algorithms")) > SESSION_ALGORITHMS_MAX)
                wrong(&w, "spec.algorithms", "has more than %d", SESSION_ALGORITHMS_MAX);
        if (!spec->n)
                wrong(&w, "spec.algorithms", "is empty, name at least one");
        for (size_t i = 0; i < spec->n; i++)
                check_entry(&w, spec, i);
        check_sizes(&w, of);
        check_rest(&w, of, spec);
        check_baseline(&w, spec);
        check_runs(&w, spec);
        if (spec->comparison)
                check_room(&w, "spec.resources", json_at(of, "resources"));
        check_controls(&w, v);
        if (spec->schedule)
                algorithm_schedule_check(&w, v, spec->schedule);
        if (!w.n && strlen(json_print(v->arena, algorithm_plan_json(v, spec))) > ALGORITHM_PLAN_MAX)
                wrong(&w, "spec",
                      "its commands, arguments, environments and parameters are too long: they must "
                      "fit into %d KiB",
                      ALGORITHM_PLAN_MAX / 1024);
        return wrongs_told(&w);
}
