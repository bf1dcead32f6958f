/*
 * What the probe left, as the status tells it.
 *
 * The file is not trusted: the workload can write to the same directory. Every member is copied by its type, texts are cut, and
 * numbers that no server takes are left out: a status that is refused would tell nothing at all.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/run_internal.h"

#include <math.h>

enum { TEXT_MAX = 1024, WORD_MAX = 253, DEPTH_MAX = 8, RESULT_MAX = 64 * 1024 };
enum { LIST_MAX = 64, PAIRS_MAX = 8192, TRIALS_MAX = 10000 }; /* as the schemas have them */

static const struct json_limits RESULT_LIMITS = {.bytes = RESULT_MAX, .depth = 16, .nodes = 20000};

/* ---- reading */

static const char *samples_key(const struct json *map)
{
        if (json_at(json_at(map, "data"), ALGORITHM_SAMPLES_KEY))
                return ALGORITHM_SAMPLES_KEY;
        return json_at(json_at(map, "binaryData"), ALGORITHM_SAMPLES_KEY ".gz") ? ALGORITHM_SAMPLES_KEY ".gz"
                                                                                : NULL;
}

bool algorithm_result_read(struct algorithm_turn *t, struct algorithm_result *ret)
{
        struct err err = ERR_INIT;
        const struct json *map;
        struct str text;

        *ret = (struct algorithm_result){0};
        if (!run_data(t->v, t->d, t->kind.data_map, t->status, &map))
                return false;
        text = run_data_text(t->v, map, RUN_KEY_RESULT, &err);
        if (text.p)
                ret->json = json_parse(t->v->arena, text, &RESULT_LIMITS, &err);
        if (ret->json && (!json_is(json_at(ret->json, "algorithms"), JSON_ARRAY) ||
                          json_len(json_at(ret->json, "algorithms")) > SESSION_ENTRIES_MAX)) {
                ret->json = NULL;
                err_set(&err, E_INVALID, "it has no list of the algorithms");
        }
        if (!ret->json) {
                ret->why = run_sentence(
                        t->v,
                        "the probe ended well, but what it measured cannot be read from " RUN_KEY_RESULT
                        " in configmap/%s: %s; change the spec to measure again",
                        t->kind.data_map, err.text);
                return true;
        }
        ret->samples_key = samples_key(map);
        if (ret->samples_key)
                ret->samples = run_data_text(t->v, map, ALGORITHM_SAMPLES_KEY, &err);
        return true;
}

/* ---- copying */

/* NULL: no server takes it. Members that are null are left out. NOLINTNEXTLINE(misc-no-recursion): as deep as DEPTH_MAX */
static struct json *clean(struct arena *a, const struct json *value, unsigned depth)
{
        struct json *copy;
        double number;

        if (!value || depth > DEPTH_MAX || json_is(value, JSON_NULL))
                return NULL;
        if (json_is(value, JSON_STRING))
                return json_stringn(a, str_n(value->text, utf8_cut(value->text, value->len, TEXT_MAX)));
        if (json_is(value, JSON_NUMBER))
                return json_to_double(value, &number) && isfinite(number) ? json_copy(a, value) : NULL;
        if (json_is(value, JSON_BOOL))
                return json_copy(a, value);
        copy = json_is(value, JSON_ARRAY) ? json_array(a) : json_object(a);
        json_foreach (child, value) {
                struct json *kept = clean(a, child, depth + 1);

                if (json_is(value, JSON_ARRAY))
                        json_append(copy, kept);
                else if (child->key_len && child->key_len <= WORD_MAX)
                        json_setn(a, copy, str_n(child->key, child->key_len), kept);
        }
        return copy;
}

enum member_type { NUMBER, COUNT, WORD, SENTENCE, TRUTH, OBJECT };

struct member {
        const char *key;
        enum member_type type;
        const char *as; /* NULL: the same */
};

static struct json *converted(struct arena *a, const struct json *value, enum member_type type)
{
        int64_t count;

        switch (type) {
        case NUMBER:
                return json_is(value, JSON_NUMBER) ? clean(a, value, 0) : NULL;
        case COUNT:
                return json_to_i64(value, &count) && count >= 0 ? json_i64(a, count) : NULL;
        case WORD:
                return json_is(value, JSON_STRING)
                               ? json_stringn(a,
                                              str_n(value->text, utf8_cut(value->text, value->len, WORD_MAX)))
                               : NULL;
        case SENTENCE:
                return json_is(value, JSON_STRING) ? clean(a, value, 0) : NULL;
        case TRUTH:
                return json_is(value, JSON_BOOL) ? clean(a, value, 0) : NULL;
        case OBJECT:
                break;
        }
        return json_is(value, JSON_OBJECT) ? clean(a, value, 0) : NULL;
}

static void copy_members(struct arena *a, struct json *to, const struct json *from,
                         const struct member *members, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct member *m = &members[i];

                json_set(a, to, m->as ? m->as : m->key, converted(a, json_at(from, m->key), m->type));
        }
}

#define COPY(a, to, from, members) copy_members((a), (to), (from), (members), ARRAY_LEN(members))

/* The first MAX objects of a list, with these members alone. NULL: there is none. */
static struct json *copy_list(struct arena *a, const struct json *list, size_t max,
                              const struct member *members, size_t n)
{
        struct json *copy = json_array(a);

        json_foreach (element, json_is(list, JSON_ARRAY) ? list : NULL)
                if (json_is(element, JSON_OBJECT) && json_len(copy) < max)
                        copy_members(a, json_append(copy, json_object(a)), element, members, n);
        return json_len(copy) ? copy : NULL;
}

/* A list of texts, of which at most MAX are kept. */
static struct json *texts_of(struct arena *a, const struct json *list, enum member_type type, size_t max)
{
        struct json *copy = json_array(a);

        json_foreach (text, json_is(list, JSON_ARRAY) ? list : NULL)
                if (json_is(text, JSON_STRING) && json_len(copy) < max)
                        json_append(copy, converted(a, text, type));
        return json_len(copy) ? copy : NULL;
}

/* ---- results */

static struct json *error_of(struct arena *a, const struct json *entry)
{
        static const struct member members[] = {{"message", SENTENCE, NULL}};
        const struct json *error = json_at(entry, "error");
        const char *reason = json_str(error, "reason");
        struct json *copy;

        if (!json_is(error, JSON_OBJECT))
                return NULL;
        copy = json_object(a);
        json_set(a, copy, "reason",
                 json_string(a, reason && run_reason_valid(str_of(reason)) ? reason : "RunFailed"));
        COPY(a, copy, error, members);
        return copy;
}

static struct json *ml_results(struct arena *a, const struct json *entry)
{
        static const struct member members[] = {{"accuracy", NUMBER, NULL},
                                                {"bestParams", OBJECT, NULL},
                                                {"framework", WORD, NULL},
                                                {"trainingLoss", NUMBER, NULL},
                                                {"lossFunction", WORD, NULL},
                                                {"featureImportancesTotal", COUNT, NULL},
                                                {"selectedFeaturesTotal", COUNT, NULL},
                                                {"cut", TRUTH, NULL},
                                                {"featureImportances", OBJECT, NULL},
                                                {"task", WORD, NULL},
                                                {"algorithm", WORD, NULL},
                                                {"parameters", OBJECT, NULL}};
        const struct json *from = json_at(entry, "mlResults");
        struct json *copy, *trials;

        if (!json_is(from, JSON_OBJECT))
                return NULL;
        copy = json_object(a);
        COPY(a, copy, from, members);
        json_set(a, copy, "selectedFeatures",
                 texts_of(a, json_at(from, "selectedFeatures"), WORD, TRIALS_MAX));
        trials = json_array(a);
        json_foreach (trial, json_at(from, "trials"))
                if (json_len(trials) < TRIALS_MAX)
                        json_append(trials, converted(a, trial, OBJECT));
        if (json_len(trials))
                json_set(a, copy, "trials", trials);
        return copy;
}

static void copy_figures(struct arena *a, struct json *to, const struct json *entry)
{
        static const struct member members[] = {{"executionTime", NUMBER, NULL},
                                                {"memoryUsage", NUMBER, NULL},
                                                {"cpuUsage", NUMBER, NULL},
                                                {"n", COUNT, NULL}};
        static const struct member interval[] = {{"ciLow", NUMBER, NULL}, {"ciHigh", NUMBER, NULL}};

        COPY(a, to, entry, members);
        COPY(a, to, json_at(json_at(entry, "statistics"), "time"), interval);
        json_set(a, to, "error", error_of(a, entry));
}

static void copy_more(struct arena *a, struct json *to, const struct json *entry)
{
        static const struct member members[] = {
                {"iterations", COUNT, NULL},  {"invalid", COUNT, NULL},     {"metrics", OBJECT, NULL},
                {"throughput", NUMBER, NULL}, {"cost", NUMBER, NULL},       {"costBasis", WORD, NULL},
                {"currency", WORD, NULL},     {"efficiency", OBJECT, NULL}, {"gpu", OBJECT, NULL}};
        double rows, seconds;

        COPY(a, to, entry, members);
        /* Of a model it is the data that is worked through, which need not be of the input's size. */
        if (streq(json_str(entry, "type"), "ml") &&
            json_to_double(json_at(json_at(entry, "metrics"), "datasetSize"), &rows) &&
            json_to_double(json_at(entry, "executionTime"), &seconds) && seconds > 0)
                json_set(a, to, "throughput", json_double(a, rows / seconds));
        json_set(a, to, "mlResults", ml_results(a, entry));
}

static bool is_of_size(const struct json *entry, int64_t size)
{
        return json_int(entry, "size", -1) == size;
}

static struct json *profiling_results(struct algorithm_turn *t, const struct json *entries)
{
        struct arena *a = t->v->arena;
        struct json *results = json_object(a), *sizes = json_array(a);

        json_foreach (entry, entries) {
                struct json *one;

                if (is_of_size(entry, t->spec.input_size)) {
                        copy_figures(a, results, entry);
                        copy_more(a, results, entry);
                }
                one = json_append(
                        sizes, json_build(a, "{'inputSize': %lld}", (long long)json_int(entry, "size", 0)));
                copy_figures(a, one, entry);
        }
        if (json_len(sizes) > 1)
                json_set(a, results, "sizes", sizes);
        return results;
}

/* Of ENTRY against the baseline, at its size. */
static const struct json *pair_of(const struct json *comparison, const struct json *entry)
{
        const char *baseline = json_str(comparison, "baseline"), *name = json_str(entry, "name");
        int64_t size = json_int(entry, "size", -1);

        json_foreach (pair, json_at(comparison, "pairs"))
                if (streq(json_str(pair, "of"), "time") && streq(json_str(pair, "a"), name) &&
                    streq(json_str(pair, "b"), baseline) && is_of_size(pair, size))
                        return pair;
        return NULL;
}

static struct json *comparison_results(struct algorithm_turn *t, const struct json *result)
{
        static const struct member members[] = {{"name", WORD, "algorithmName"},
                                                {"size", COUNT, "inputSize"},
                                                {"accuracy", NUMBER, NULL},
                                                {"framework", WORD, NULL}};
        static const struct member against[] = {{"ratio", NUMBER, NULL},
                                                {"pAdjusted", NUMBER, "pValue"},
                                                {"effectSize", NUMBER, NULL},
                                                {"verdict", WORD, NULL}};
        struct arena *a = t->v->arena;
        struct json *results = json_array(a);

        json_foreach (entry, json_at(result, "algorithms")) {
                struct json *one = json_append(results, json_object(a));

                COPY(a, one, entry, members);
                copy_figures(a, one, entry);
                copy_more(a, one, entry);
                COPY(a, one, pair_of(json_at(result, "comparison"), entry), against);
        }
        return results;
}

/* ---- the rest */

static struct json *statistics_of(struct arena *a, const struct json *result)
{
        static const struct member whole[] = {{"unit", WORD, NULL},
                                              {"contended", TRUTH, NULL},
                                              {"pods", COUNT, NULL},
                                              {"machine", OBJECT, NULL}};
        static const struct member each[] = {{"name", WORD, "algorithmName"},
                                             {"size", COUNT, "inputSize"},
                                             {"n", COUNT, NULL},
                                             {"invalid", COUNT, NULL},
                                             {"invalidReasons", OBJECT, NULL}};
        static const struct member figures[] = {
                {"time", OBJECT, NULL}, {"memory", OBJECT, NULL}, {"cpu", OBJECT, NULL}};
        struct json *statistics = json_object(a), *list = json_array(a);

        COPY(a, statistics, result, whole);
        json_set(a, statistics, "warnings", texts_of(a, json_at(result, "warnings"), SENTENCE, 100));
        json_set(a, statistics, "left", texts_of(a, json_at(result, "left"), SENTENCE, 100));
        json_foreach (entry, json_at(result, "algorithms")) {
                struct json *one = json_append(list, json_object(a));

                COPY(a, one, entry, each);
                COPY(a, one, json_at(entry, "statistics"), figures);
        }
        json_set(a, statistics, "algorithms", list);
        return statistics;
}

static struct json *comparison_of(struct arena *a, const struct json *result)
{
        static const struct member whole[] = {{"baseline", WORD, NULL},    {"alpha", NUMBER, NULL},
                                              {"minEffect", NUMBER, NULL}, {"noiseFloor", NUMBER, NULL},
                                              {"summary", SENTENCE, NULL}, {"fastest", OBJECT, NULL}};
        static const struct member pair[] = {
                {"of", WORD, NULL},           {"a", WORD, NULL},       {"b", WORD, NULL},
                {"size", COUNT, NULL},        {"ratio", NUMBER, NULL}, {"ciLow", NUMBER, NULL},
                {"ciHigh", NUMBER, NULL},     {"p", NUMBER, NULL},     {"pAdjusted", NUMBER, NULL},
                {"effectSize", NUMBER, NULL}, {"effect", WORD, NULL},  {"shift", NUMBER, NULL},
                {"verdict", WORD, NULL},      {"why", SENTENCE, NULL}, {"needed", COUNT, NULL}};
        static const struct member of_size[] = {{"size", COUNT, NULL}};
        static const char *const axes[] = {"accuracy", "memory", "cost"};
        const struct json *from = json_at(result, "comparison");
        struct json *comparison, *pareto;

        if (!json_is(from, JSON_OBJECT))
                return NULL;
        comparison = json_object(a);
        COPY(a, comparison, from, whole);
        json_set(a, comparison, "pairs",
                 copy_list(a, json_at(from, "pairs"), PAIRS_MAX, pair, ARRAY_LEN(pair)));
        pareto = json_object(a);
        for (size_t i = 0; i < ARRAY_LEN(axes); i++)
                json_set(
                        a, pareto, axes[i],
                        texts_of(a, json_at(json_at(from, "pareto"), axes[i]), WORD, SESSION_ALGORITHMS_MAX));
        if (json_len(pareto)) {
                COPY(a, pareto, json_at(from, "pareto"), of_size);
                json_set(a, comparison, "pareto", pareto);
        }
        return comparison;
}

static const char *const members_of_results[] = {"results", "statistics",      "comparison", "scaling",
                                                 "trend",   "recommendations", "samplesRef"};

void algorithm_forget_results(struct algorithm_turn *t)
{
        for (size_t i = 0; i < ARRAY_LEN(members_of_results); i++)
                json_remove(t->status, members_of_results[i]);
}

static const char *time_text(struct arena *a, double seconds)
{
        if (seconds >= 1) /* no 1.23e+03 */
                return arena_printf(a, seconds >= 100 ? "%.0f s" : "%.3g s", seconds);
        return seconds >= 1e-3 ? arena_printf(a, "%.3g ms", seconds * 1e3)
                               : arena_printf(a, "%.3g us", seconds * 1e6);
}

const char *algorithm_outcome(const struct algorithm_turn *t)
{
        const struct json *results = json_at(t->status, "results");
        struct arena *a = t->v->arena;
        int64_t n = json_int(results, "n", 0);
        double median, low, high;
        const char *figure;

        if (t->spec.comparison)
                return json_str(json_at(t->status, "comparison"), "summary");
        if (!json_to_double(json_at(results, "executionTime"), &median))
                return NULL;
        figure = time_text(a, median);
        if (json_to_double(json_at(results, "ciLow"), &low) &&
            json_to_double(json_at(results, "ciHigh"), &high))
                figure = arena_printf(a, "%s (%s to %s)", figure, time_text(a, low), time_text(a, high));
        if (n == 1)
                return arena_printf(a, "%s, in one run", figure);
        if (t->spec.pods > 1)
                return arena_printf(a, "%s, the median of %lld runs in %lld pods", figure, (long long)n,
                                    (long long)t->spec.pods);
        return arena_printf(a, "%s, the median of %lld runs", figure, (long long)n);
}

void algorithm_tell_results(struct algorithm_turn *t, const struct algorithm_result *result)
{
        static const struct member scaling[] = {{"algorithm", WORD, NULL}, {"exponent", NUMBER, NULL},
                                                {"ciLow", NUMBER, NULL},   {"ciHigh", NUMBER, NULL},
                                                {"sizes", COUNT, NULL},    {"rough", TRUTH, NULL},
                                                {"verdict", WORD, NULL}};
        static const struct member recommendation[] = {
                {"kind", WORD, NULL}, {"text", SENTENCE, NULL}, {"evidence", SENTENCE, NULL}};
        const struct json *from = result->json;
        struct arena *a = t->v->arena;

        algorithm_forget_results(t);
        json_set(a, t->status, "results",
                 t->spec.comparison ? comparison_results(t, from)
                                    : profiling_results(t, json_at(from, "algorithms")));
        json_set(a, t->status, "statistics", statistics_of(a, from));
        if (t->spec.comparison)
                json_set(a, t->status, "comparison", comparison_of(a, from));
        json_set(a, t->status, "scaling",
                 copy_list(a, json_at(from, "scaling"), LIST_MAX, scaling, ARRAY_LEN(scaling)));
        json_set(a, t->status, "recommendations",
                 copy_list(a, json_at(from, "recommendations"), LIST_MAX, recommendation,
                           ARRAY_LEN(recommendation)));
        if (result->samples_key)
                json_set(
                        a, t->status, "samplesRef",
                        json_build(a, "{'configMap': %s, 'key': %s}", t->kind.data_map, result->samples_key));
}

/* ---- progress */

/* Rounded: what differs by less is not worth a write. */
static struct json *rounded(struct arena *a, const struct json *of, const char *key, double step)
{
        double number;

        if (!json_to_double(json_at(of, key), &number) || !(number >= 0) || number > 1e15)
                return NULL;
        return json_double(a, round(number / step) * step);
}

static struct json *usage_of(struct arena *a, const struct run_seen *seen)
{
        const struct json *usage = seen->has_status ? json_at(seen->status.others, "usage") : NULL;
        struct json *copy = json_object(a);

        json_set(a, copy, "memoryMb", rounded(a, usage, "memoryMb", 1));
        json_set(a, copy, "cpuPercent", rounded(a, usage, "cpuPercent", 1));
        return json_len(copy) ? copy : NULL;
}

/* Of the blocks that count, in this pod; below 0: not known. */
static int64_t blocks_done(const struct algorithm_turn *t, const struct run_seen *seen)
{
        const struct run_status *st = &seen->status;
        double share;

        if (!seen->has_status)
                return -1;
        if (streq(st->phase, SESSION_ANALYSING))
                return t->spec.iterations;
        if (!streq(st->phase, SESSION_MEASURING) || !st->has_progress || st->total_steps < 1)
                return 0;
        share = (double)MAX(st->current_step - 1, (int64_t)0) / (double)st->total_steps;
        return (int64_t)(share * (double)t->spec.iterations);
}

void algorithm_tell_progress(struct algorithm_turn *t, const struct run_seen *seen)
{
        struct arena *a = t->v->arena;
        struct json *progress = json_at(t->status, "progress");
        int64_t before = json_int(json_at(t->status, "pods"), "done", 0), done = blocks_done(t, seen);
        int64_t total = t->spec.iterations * t->spec.pods;

        if (!json_is(progress, JSON_OBJECT) || t->run.changed)
                return;
        json_set(a, progress, "totalIterations", json_i64(a, total));
        if (seen->life == RUN_LIFE_SUCCEEDED)
                json_set(a, progress, "completedIterations", json_i64(a, total));
        else if (done >= 0)
                json_set(a, progress, "completedIterations",
                         json_i64(a, MIN(before * t->spec.iterations + done, total)));
        if (!run_over(seen))
                json_set(a, progress, "usage", usage_of(a, seen));
}
