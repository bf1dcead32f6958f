/*
 * What the history is told of a run, and what it says about it: whether an algorithm has become slower.
 */
#include "kinds/algorithm/internal.h"
#include "kinds/run_internal.h"

#include <math.h>

#include "stats/change.h"

enum {
        SERIES_ASKED_MAX = 32, /* of one request */
        CPU_MAX = 200,         /* bytes of its model's name: whoever writes the result may say anything */
};

#define MB 1e6

static double number_at(const struct json *of, const char *key)
{
        double number;

        return json_to_double(json_at(of, key), &number) ? number : NAN;
}

/* ---- the row */

static const struct algorithm_entry *entry_named(const struct algorithm_spec *spec, const char *name)
{
        for (size_t i = 0; name && i < spec->n; i++)
                if (streq(spec->entries[i].name, name))
                        return &spec->entries[i];
        return NULL;
}

/* What it may use of CPU and memory, however that is written: a container that was given less is slower by itself. */
static struct json *amounts_of(const struct algorithm_turn *t, const struct json *resources)
{
        static const char *const kinds[] = {"requests", "limits"}, *const names[] = {"cpu", "memory"};
        struct arena *a = t->v->arena;
        struct json *amounts = json_build(a, "['resources']");

        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                for (size_t k = 0; k < ARRAY_LEN(names); k++) {
                        const struct json *value = json_at(json_at(resources, kinds[i]), names[k]);
                        double amount;

                        json_append(amounts, value && amount_of(value, &amount) ? json_double(a, amount)
                                                                                : json_null(a));
                }
        return amounts;
}

/*
 * What is done under that name, in few letters: what was told to do something else has not become slower. The image is not
 * in it: what a new one changes is looked for. "": the name says it all.
 */
static const char *variant_of(const struct algorithm_turn *t, const struct algorithm_entry *e)
{
        const struct json *const told[] = {e->parameters, e->command, e->args, e->env};
        struct arena *a = t->v->arena;
        struct json *what = json_array(a);

        for (size_t i = 0; i < ARRAY_LEN(told); i++)
                if (json_len(told[i]))
                        json_append(what, json_copy(a, told[i]));
        if (e->type == ALGORITHM_ML)
                json_append(what, json_build(a, "[%s, %s, %lld, %lld, %lld]", e->task ? e->task : "",
                                             e->model ? e->model : "", (long long)e->dataset_size,
                                             (long long)e->n_features, (long long)e->n_select));
        if (json_len(e->resources))
                json_append(what, amounts_of(t, e->resources));
        if (t->spec.parallel && t->spec.n > 1)
                json_append(what, json_string(a, "contended"));
        return json_len(what) ? arena_printf(a, "/%s", name_hash(a, str_of(json_print(a, what)))) : "";
}

static const char *cpu_of(const struct algorithm_turn *t, const struct json *result)
{
        const char *cpu = json_str_or(json_at(result, "machine"), "cpu", "");

        return arena_strndup(t->v->arena, cpu, utf8_cut(cpu, strlen(cpu), CPU_MAX));
}

/* The same algorithm at the same size on the same kind of machine. NULL: of another than was asked for. */
static const char *series_of(const struct algorithm_turn *t, const struct json *result,
                             const struct json *measured)
{
        const struct algorithm_entry *e = entry_named(&t->spec, json_str(measured, "name"));

        return e ? arena_printf(t->v->arena, "%s/%s/%s/%s/%lld/%s%s", meta_str(t->v->request, "namespace"),
                                e->name, algorithm_type_name(e->type), e->framework ? e->framework : "",
                                (long long)json_int(measured, "size", 0), cpu_of(t, result), variant_of(t, e))
                 : NULL;
}

static bool has_time(const struct json *measured)
{
        double time = number_at(measured, "executionTime");

        return isfinite(time) && time > 0 && json_int(measured, "n", 0) > 0;
}

static void read_measure(const struct algorithm_turn *t, const struct json *result,
                         const struct json *measured, struct history_measure *ret)
{
        const struct json *time = json_at(json_at(measured, "statistics"), "time");

        *ret = (struct history_measure){
                .series = series_of(t, result, measured),
                .algorithm = json_str_or(measured, "name", ""),
                .size = json_int(measured, "size", 0),
                .n = (size_t)json_int(measured, "n", 0),
                .time = number_at(measured, "executionTime"),
                .low = number_at(time, "ciLow"),
                .high = number_at(time, "ciHigh"),
                .memory = number_at(measured, "memoryUsage") * MB,
                .cpu = number_at(measured, "cpuUsage") / 100,
                .cost = number_at(measured, "cost"),
        };
}

/*
 * Pods that follow each other by plan are attempts to whoever makes them; to the history, which takes what was done again for
 * less than a whole run, they are one, unless one of them was.
 */
static uint64_t attempt_of(const struct algorithm_turn *t, uint64_t attempt)
{
        int64_t pods = json_int(json_at(t->status, "pods"), "done", 0);

        return t->spec.pods > 1 && attempt == (uint64_t)pods ? 1 : attempt;
}

/*
 * What was measured in, as people write it: one that only tells the others when it is their turn is not among them. Of another
 * spec than the run was begun with nothing can be said about that.
 */
static const char *images_of(const struct algorithm_turn *t, const struct json *pod)
{
        struct arena *a = t->v->arena;
        bool idle = !t->run.changed, known;
        const char *all = NULL;
        VEC(const char *) images = {0};

        for (size_t i = 0; i < t->spec.n; i++)
                idle = idle && t->spec.entries[i].group;
        json_foreach (c, json_at(json_at(pod, "spec"), "containers")) {
                const char *name = json_str_or(c, "name", ""), *image = run_pod_image(a, pod, name);

                known = !image || !algorithm_measures(name) || (idle && streq(name, ALGORITHM_COORDINATOR));
                vec_foreach (other, &images)
                        known = known || streq(*other, image);
                if (known)
                        continue;
                *vec_push(&images) = image;
                all = all ? arena_join(a, all, ", ", image) : image;
        }
        vec_done(&images);
        return all;
}

const struct history_row *algorithm_row(struct algorithm_turn *t, const struct run_seen *seen,
                                        const char *shape, const struct algorithm_result *result)
{
        struct arena *a = t->v->arena;
        const struct json *list = json_at(result->json, "algorithms"),
                          *machine = json_at(result->json, "machine");
        struct history_measure *measures = arena_new_array(a, struct history_measure, json_len(list) + 1);
        struct history_row *row = arena_new(a, struct history_row);
        size_t n = 0;

        json_foreach (measured, list)
                if (has_time(measured) && entry_named(&t->spec, json_str(measured, "name")))
                        read_measure(t, result->json, measured, &measures[n++]);
        *row = *run_row(t->v, seen, shape);
        row->attempt = attempt_of(t, row->attempt);
        row->image = seen->pod ? images_of(t, seen->pod->json) : NULL;
        row->machine = json_is(machine, JSON_OBJECT) ? json_print(a, machine) : NULL;
        row->samples = result->samples.p ? arena_strndup(a, result->samples.p, result->samples.n) : NULL;
        row->measures = measures;
        row->n_measures = n;
        return row;
}

/* ---- the trend */

/* The values of the series without this run's own, which may be there already, and this one at the end. */
static size_t values_of(const struct algorithm_turn *t, const struct series *series, double now,
                        double *values, const struct series_point **points)
{
        const char *uid = meta_str(t->v->request, "uid");
        size_t n = 0;

        for (size_t i = 0; series && i < series->n; i++)
                if (!streq(series->points[i].uid, uid) && n < SERIES_MAX) {
                        points[n] = &series->points[i];
                        values[n++] = series->points[i].value;
                }
        points[n] = NULL;
        values[n++] = now;
        return n;
}

static const char *sentence_of(const struct algorithm_turn *t, const struct json *measured,
                               const struct stats_change *c, const char *first)
{
        return run_sentence(
                t->v,
                "%s at size %lld takes %.3g s, and took %.3g s before: %+.1f %% (95 %%: %+.1f to %+.1f); "
                "the first such run is %s",
                json_str_or(measured, "name", ""), (long long)json_int(measured, "size", 0), c->after,
                c->before, (c->ratio - 1) * 100, (c->low - 1) * 100, (c->high - 1) * 100, first);
}

struct trend {
        struct json *list;
        const char *sentence; /* of the first that is slower; NULL: none is */
        const char *turned;   /* the same, of the first that is so since this run */
        bool known;           /* there were runs enough of one */
};

/* What one algorithm's series says. */
static void tell_series(struct algorithm_turn *t, const struct json *measured, const struct series *series,
                        struct trend *trend)
{
        struct arena *a = t->v->arena;
        double *values = arena_new_array(a, double, SERIES_MAX + 1);
        const struct series_point **points = arena_new_array(a, const struct series_point *, SERIES_MAX + 1);
        size_t n = values_of(t, series, number_at(measured, "executionTime"), values, points);
        const struct series_point *first;
        struct stats_change now, before;
        const char *name;
        struct json *one;

        if (!stats_change(values, n, 0, &now))
                return;
        one = json_append(trend->list, json_build(a, "{'algorithm': %s, 'inputSize': %lld, 'runs': %zu}",
                                                  json_str_or(measured, "name", ""),
                                                  (long long)json_int(measured, "size", 0), n));
        if (n > STATS_CHANGE_BASELINE) {
                trend->known = true;
                json_set(a, one, "degraded", json_truth(a, now.degraded));
        }
        if (!now.degraded)
                return;
        first = points[now.first_bad];
        name = first ? first->name : meta_str(t->v->request, "name");
        json_set(a, one, "before", json_double(a, now.before));
        json_set(a, one, "after", json_double(a, now.after));
        json_set(a, one, "ratio", json_double(a, now.ratio));
        json_set(a, one, "ciLow", json_double(a, now.low));
        json_set(a, one, "ciHigh", json_double(a, now.high));
        json_set(a, one, "firstBadRun", json_string(a, name));
        json_set(a, one, "since", run_time_json(a, first ? first->finished : t->v->now));
        if (!trend->sentence)
                trend->sentence = sentence_of(t, measured, &now, name);
        if (!trend->turned && (n < 2 || !stats_change(values, n - 1, 0, &before) || !before.degraded))
                trend->turned = sentence_of(t, measured, &now, name);
}

static void tell_trend(struct algorithm_turn *t, const struct trend *trend)
{
        struct arena *a = t->v->arena;

        if (json_len(trend->list))
                json_set(a, t->status, "trend", trend->list);
        if (trend->sentence)
                decide_condition(t->v, t->status, "PerformanceDegraded", "True", "Slower", trend->sentence);
        else if (trend->known)
                decide_condition(t->v, t->status, "PerformanceDegraded", "False", "Steady",
                                 "the history shows no change for the worse");
        if (trend->turned)
                decide_event(t->d, t->v, EVENT_WARNING, "PerformanceDegraded", "%s", trend->turned);
}

bool algorithm_trend(struct algorithm_turn *t, const struct algorithm_result *result)
{
        struct trend trend = {.list = json_array(t->v->arena)};
        bool all = true;
        size_t n = 0;

        json_foreach (measured, json_at(result->json, "algorithms")) {
                const char *series = has_time(measured) ? series_of(t, result->json, measured) : NULL;
                const struct want want = {.kind = WANT_SERIES, .name = series};
                const struct answer *answer;

                if (!series || n++ >= SERIES_ASKED_MAX)
                        continue;
                answer = decide_want(t->d, t->v, &want);
                all = all && answer;
                if (answer)
                        tell_series(t, measured, answer->series, &trend);
        }
        if (all)
                tell_trend(t, &trend);
        return all;
}
