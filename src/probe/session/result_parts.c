/*
 * The parts of result.json: an entry, the comparison, how time grows with size.
 */
#include "probe/session/internal.h"

enum {
        METRICS_FEW = 8,
        MODEL_SHORT = 4096,
        MODEL_SHORTER = 1024,
        DIGITS = 7,
        SUMMARY_MAX = 1024,
        NAME_SHORT = 64
};

static const double megabyte = 1e6;

struct json *result_number(struct arena *a, double value)
{
        char text[40];

        if (!isfinite(value))
                return NULL;
        snprintf(text, sizeof(text), "%.*g", DIGITS, value);
        return json_double(a, strtod(text, NULL));
}

static void set_number(struct arena *a, struct json *object, const char *key, double value)
{
        json_set(a, object, key, result_number(a, value));
}

static void set_text(struct arena *a, struct json *object, const char *key, const char *value)
{
        json_set(a, object, key, json_string(a, value));
}

/* ---- an entry */

static void set_interval(struct arena *a, struct json *j, const struct stats_interval *ci, double unit)
{
        set_number(a, j, "ciLow", ci->low / unit);
        set_number(a, j, "ciHigh", ci->high / unit);
        set_number(a, j, "ciLevel", ci->level);
        set_text(a, j, "ciMethod", stats_interval_methods[ci->method]);
}

static struct json *description(struct arena *a, const struct stats_description *d, double unit,
                                enum result_level level)
{
        struct json *j = json_object(a);

        if (!d->n)
                return NULL;
        json_set(a, j, "n", json_u64(a, d->n));
        set_number(a, j, "median", d->median / unit);
        if (level < RESULT_NO_PAIRS) {
                set_number(a, j, "mean", d->mean / unit);
                set_number(a, j, "sd", d->sd / unit);
                set_number(a, j, "mad", d->mad / unit);
                set_number(a, j, "min", d->min / unit);
                set_number(a, j, "max", d->max / unit);
                set_number(a, j, "p5", d->p5 / unit);
                set_number(a, j, "p95", d->p95 / unit);
        }
        set_interval(a, j, &d->median_ci, unit);
        if (level >= RESULT_NO_PAIRS)
                return j;
        set_number(a, j, "cv", d->cv);
        json_set(a, j, "outliers",
                 json_build(a, "{'mild': %zu, 'severe': %zu, 'mad': %zu}", d->outliers.mild,
                            d->outliers.severe, d->outliers.mad));
        if (d->slow_first)
                set_number(a, j, "firstRun", d->first_ratio);
        set_number(a, j, "trendP", d->trend_p);
        return j;
}

struct json *session_description_json(struct arena *a, const struct stats_description *d, double unit)
{
        return description(a, d, unit, RESULT_ALL);
}

static struct json *statistics(struct arena *a, const struct analysis_entry *e, enum result_level level)
{
        struct json *j = json_object(a);

        json_set(a, j, "time", description(a, &e->time_d, 1, level));
        if (level < RESULT_FEW_METRICS)
                json_set(a, j, "memory", description(a, &e->memory_d, megabyte, level));
        if (level < RESULT_NO_MEMORY_PAIRS)
                json_set(a, j, "cpu", description(a, &e->percent_d, 1, level));
        return json_len(j) ? j : NULL;
}

/* Numbers as the mean over the valid runs; texts as the last run said them. */
static struct json *metrics(struct arena *a, const struct session_samples *s, size_t entry,
                            enum result_level level)
{
        size_t most = level >= RESULT_NO_MODELS     ? 0
                      : level >= RESULT_FEW_METRICS ? METRICS_FEW
                                                    : SESSION_METRICS_MAX;
        struct json *j = json_object(a);

        vec_foreach (m, &s->metrics)
                if (m->entry == entry && json_len(j) < most)
                        json_set(a, j, m->name,
                                 m->n ? result_number(a, m->sum / (double)m->n) : json_string(a, m->text));
        return json_len(j) ? j : NULL;
}

static struct json *models(struct arena *a, const struct session_samples *s, const struct analysis_entry *e,
                           enum result_level level)
{
        const struct json *ml = s->ml[e->entry];
        struct json *j = NULL;

        if (!ml || level >= RESULT_NO_MODELS)
                return NULL;
        if (level == RESULT_ALL)
                j = json_copy(a, ml);
        else
                j = ml_cut(a, ml, level >= RESULT_FEW_METRICS ? MODEL_SHORTER : MODEL_SHORT);
        /* Of all runs, as everything else. */
        if (j && json_at(j, "accuracy"))
                set_number(a, j, "accuracy", e->accuracy);
        return j;
}

static struct json *invalid_reasons(struct arena *a, const struct session_samples *s, size_t entry)
{
        struct json *j = json_object(a);

        vec_foreach (row, &s->rows) {
                const char *label;

                if (row->entry != entry || !row->reason || !row_counts(s->plan, row))
                        continue;
                label = s->reasons.v[row->reason - 1].label;
                json_set(a, j, label, json_i64(a, json_int(j, label, 0) + 1));
        }
        return json_len(j) ? j : NULL;
}

static void set_cost(struct arena *a, struct json *j, const struct session_plan *p,
                     const struct analysis_entry *e)
{
        struct json *efficiency = json_object(a);

        set_number(a, j, "cost", e->cost);
        if (!isnan(e->cost)) {
                set_text(a, j, "costBasis", e->cost_basis);
                if (p->price.currency[0])
                        set_text(a, j, "currency", p->price.currency);
        }
        set_number(a, efficiency, "cpu", e->efficiency_cpu);
        set_number(a, efficiency, "memory", e->efficiency_memory);
        if (json_len(efficiency))
                json_set(a, j, "efficiency", efficiency);
}

static struct json *error_of(struct arena *a, const struct analysis_entry *e, enum result_level level)
{
        size_t max = level >= RESULT_NAMES ? 80 : RUN_ERROR_MAX;
        const char *message;

        /* One that failed now and then is told by how often. */
        if (!e->error || (e->n && !e->gave_up))
                return NULL;
        if (level >= RESULT_SHORT_NAMES)
                return json_build(a, "{'reason': %s}", e->error->reason);
        message = arena_strndup(a, e->error->message,
                                utf8_cut(e->error->message, strlen(e->error->message), max));
        return json_build(a, "{'reason': %s, 'message': %s}", e->error->reason, message);
}

static void set_figures(struct arena *a, struct json *j, const struct session_plan *p,
                        const struct analysis_entry *e)
{
        int64_t size = entry_size(p, e->entry);

        if (!e->n)
                return;
        set_number(a, j, "executionTime", e->time_d.median);
        if (e->memory_d.n)
                set_number(a, j, "memoryUsage", e->memory_d.median / megabyte);
        if (e->percent_d.n)
                set_number(a, j, "cpuUsage", e->percent_d.mean);
        set_number(a, j, "accuracy", e->accuracy);
        if (size > 0 && e->time_d.median > 0)
                set_number(a, j, "throughput", (double)size / e->time_d.median);
}

/* Of the GPUs that the container sees, whoever used them. */
static void set_gpu(struct arena *a, struct json *j, const struct analysis_entry *e)
{
        struct json *gpu = json_object(a);

        set_number(a, gpu, "utilizationPercent", e->gpu_percent);
        set_number(a, gpu, "memoryMb", e->gpu_memory / megabyte);
        set_number(a, gpu, "powerWatts", e->gpu_power);
        if (json_len(gpu))
                json_set(a, j, "gpu", gpu);
}

struct json *result_entry(struct arena *a, const struct analysis *an, size_t entry, enum result_level level)
{
        const struct analysis_entry *e = &an->entries[entry];
        const struct session_algorithm *al = entry_algorithm(an->plan, entry);
        size_t n = utf8_cut(al->name, strlen(al->name),
                            level >= RESULT_SHORT_NAMES ? (size_t)NAME_SHORT : SIZE_MAX);
        struct json *j = json_build(a, "{'name': %.*s}", (int)n, al->name);

        if (level < RESULT_NAMES) {
                if (!streq(al->label, al->name))
                        set_text(a, j, "label", al->label);
                set_text(a, j, "type", al->type);
                set_text(a, j, "framework", al->framework);
        }
        if (entry_size(an->plan, entry) > 0)
                json_set(a, j, "size", json_i64(a, entry_size(an->plan, entry)));
        json_set(a, j, "n", json_u64(a, e->n));
        json_set(a, j, "invalid", json_u64(a, e->invalid));
        json_set(a, j, "iterations", json_u64(a, an->plan->iterations));
        set_figures(a, j, an->plan, e);
        json_set(a, j, "error", error_of(a, e, level));
        if (level >= RESULT_NAMES)
                return j;
        json_set(a, j, "invalidReasons", invalid_reasons(a, an->samples, entry));
        json_set(a, j, "metrics", metrics(a, an->samples, entry, level));
        json_set(a, j, "mlResults", models(a, an->samples, e, level));
        json_set(a, j, "statistics", statistics(a, e, level));
        set_cost(a, j, an->plan, e);
        set_gpu(a, j, e);
        return j;
}

/* ---- comparison */

struct json *session_pair_json(struct arena *a, const struct stats_pair *p, enum stats_measure measure,
                               const char *name_a, const char *name_b)
{
        struct json *j = json_build(a, "{'of': %s, 'a': %s, 'b': %s}",
                                    measure == STATS_TIME ? "time" : "memory", name_a, name_b);

        json_set(a, j, "nA", json_u64(a, p->n_a));
        json_set(a, j, "nB", json_u64(a, p->n_b));
        set_number(a, j, "ratio", p->ratio);
        set_number(a, j, "ciLow", p->low);
        set_number(a, j, "ciHigh", p->high);
        set_number(a, j, "p", p->p);
        set_number(a, j, "pAdjusted", p->p_adjusted);
        set_number(a, j, "effectSize", p->effect);
        if (isfinite(p->effect))
                set_text(a, j, "effect", stats_cliff_word(p->effect));
        set_number(a, j, "shift", p->shift);
        set_text(a, j, "verdict", stats_verdict_word(p->verdict, measure));
        set_text(a, j, "why", p->why);
        if (p->needed)
                json_set(a, j, "needed", json_u64(a, p->needed));
        return j;
}

static struct json *pair(struct arena *a, const struct analysis *an, size_t size, const struct stats_pair *p,
                         enum stats_measure measure, enum result_level level)
{
        const struct session_plan *plan = an->plan;
        struct json *j = session_pair_json(a, p, measure, plan->algorithms[p->a].label,
                                           plan->algorithms[p->b].label);

        if (plan->sizes[size] > 0)
                json_set(a, j, "size", json_i64(a, plan->sizes[size]));
        if (level >= RESULT_NO_MODELS)
                (void)json_remove(j, "why");
        return j;
}

static void add_pairs(struct arena *a, const struct analysis *an, size_t size,
                      const struct stats_comparison *c, enum stats_measure measure, enum result_level level,
                      struct json *list)
{
        for (size_t i = 0; i < c->n; i++)
                if (level < RESULT_NO_MODELS || c->pairs[i].b == an->plan->baseline)
                        json_append(list, pair(a, an, size, &c->pairs[i], measure, level));
}

static struct json *all_pairs(struct arena *a, const struct analysis *an, enum result_level level)
{
        struct json *list = json_array(a);

        for (size_t i = 0; level < RESULT_NO_PAIRS && i < an->plan->n_sizes; i++)
                add_pairs(a, an, i, &an->sizes[i].time, STATS_TIME, level, list);
        for (size_t i = 0; level < RESULT_NO_MEMORY_PAIRS && i < an->plan->n_sizes; i++)
                add_pairs(a, an, i, &an->sizes[i].memory, STATS_MEMORY, level, list);
        return list;
}

/* The size that tells most: the largest. */
static size_t largest_size(const struct session_plan *p)
{
        size_t best = 0;

        for (size_t i = 1; i < p->n_sizes; i++)
                if (p->sizes[i] > p->sizes[best])
                        best = i;
        return best;
}

/* Names on the front of time against what VALUE says of an entry that works; NULL: fewer than two have it. */
static struct json *front(struct arena *a, const struct analysis *an, bool more,
                          double (*value)(const struct analysis_entry *e))
{
        const struct session_plan *p = an->plan;
        size_t size = largest_size(p), known = 0;
        struct stats_point *points = arena_new_array(a, struct stats_point, p->n);
        bool *on = arena_new_array(a, bool, p->n);
        struct json *list = json_array(a);

        for (size_t i = 0; i < p->n; i++) {
                const struct analysis_entry *e = &an->entries[i * p->n_sizes + size];

                bool counts = e->n && !e->gave_up;

                points[i] = (struct stats_point){counts ? e->time_d.median : NAN, counts ? value(e) : NAN};
                known += isfinite(points[i].x) && isfinite(points[i].y);
        }
        if (known < 2)
                return NULL;
        (void)stats_pareto(points, p->n, more, on);
        for (size_t i = 0; i < p->n; i++)
                if (on[i])
                        json_append(list, json_string(a, p->algorithms[i].label));
        return list;
}

static double accuracy_of(const struct analysis_entry *e)
{
        return e->accuracy;
}

static double memory_of(const struct analysis_entry *e)
{
        return e->memory_d.n ? e->memory_d.median : NAN;
}

static double cost_of(const struct analysis_entry *e)
{
        return e->cost;
}

static struct json *pareto(struct arena *a, const struct analysis *an)
{
        struct json *j = json_object(a);

        if (an->plan->parallel) /* no time of one tells anything of another's */
                return NULL;
        json_set(a, j, "accuracy", front(a, an, true, accuracy_of));
        json_set(a, j, "memory", front(a, an, false, memory_of));
        json_set(a, j, "cost", front(a, an, false, cost_of));
        if (json_len(j) && an->plan->n_sizes > 1)
                json_set(a, j, "size", json_i64(a, an->plan->sizes[largest_size(an->plan)]));
        return json_len(j) ? j : NULL;
}

static struct json *fastest(struct arena *a, const struct analysis *an)
{
        const struct session_plan *p = an->plan;
        size_t size = largest_size(p);
        const struct stats_comparison *c = &an->sizes[size].time;
        struct json *j;

        if (c->best == SIZE_MAX || !c->best_is_clear)
                return NULL;
        j = json_build(a, "{'name': %s}", p->algorithms[c->best].label);
        if (p->sizes[size] > 0)
                json_set(a, j, "size", json_i64(a, p->sizes[size]));
        set_number(a, j, "executionTime", an->entries[c->best * p->n_sizes + size].time_d.median);
        return j;
}

static const char *summary(struct arena *a, const struct analysis *an)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 * 1024);
        const struct session_plan *p = an->plan;

        for (size_t i = 0; i < p->n_sizes; i++) {
                const char *s = an->sizes[i].time.summary;

                if (p->n_sizes > 1)
                        buf_printf(&text, "%ssize %lld: ", i ? "; " : "", (long long)p->sizes[i]);
                buf_adds(&text, s ? s : "");
        }
        return arena_strndup(a, text.p ? text.p : "", utf8_cut(text.p ? text.p : "", text.n, SUMMARY_MAX));
}

struct json *result_comparison(struct arena *a, const struct analysis *an, enum result_level level)
{
        const struct session_plan *p = an->plan;
        double floor = NAN;
        struct json *j;

        if (!an->sizes)
                return NULL;
        for (size_t i = 0; i < p->n_sizes; i++)
                if (isfinite(an->sizes[i].time.noise_floor))
                        floor = fmax(floor, an->sizes[i].time.noise_floor);
        j = json_build(a, "{'baseline': %s}", p->algorithms[p->baseline].label);
        set_number(a, j, "alpha", p->alpha);
        set_number(a, j, "minEffect", p->min_effect);
        set_number(a, j, "noiseFloor", floor);
        json_set(a, j, "pairs", all_pairs(a, an, level));
        json_set(a, j, "fastest", fastest(a, an));
        if (level < RESULT_NAMES)
                json_set(a, j, "pareto", pareto(a, an));
        set_text(a, j, "summary", summary(a, an));
        return j;
}

/* ---- scaling */

static struct json *scaling_of(struct arena *a, const struct analysis *an, size_t algorithm)
{
        const struct session_plan *p = an->plan;
        struct stats_size *sizes = arena_new_array(a, struct stats_size, p->n_sizes);
        struct stats_scaling s;
        struct json *j;
        size_t n = 0;

        for (size_t i = 0; i < p->n_sizes; i++) {
                const struct analysis_entry *e = &an->entries[algorithm * p->n_sizes + i];

                if (e->n && e->time_d.min > 0)
                        sizes[n++] = (struct stats_size){(double)p->sizes[i], e->time, e->n_time};
        }
        if (!stats_scaling(a, sizes, n, p->uid, &s))
                return NULL;
        j = json_build(a, "{'algorithm': %s}", p->algorithms[algorithm].label);
        set_number(a, j, "exponent", s.exponent);
        set_number(a, j, "ciLow", s.low);
        set_number(a, j, "ciHigh", s.high);
        json_set(a, j, "sizes", json_u64(a, s.sizes));
        if (s.rough)
                json_set(a, j, "rough", json_truth(a, true));
        set_text(a, j, "verdict", s.verdict);
        return j;
}

struct json *result_scaling(struct arena *a, const struct analysis *an)
{
        struct json *list = json_array(a);

        if (an->plan->n_sizes < 2)
                return NULL;
        for (size_t i = 0; i < an->plan->n; i++)
                json_append(list, scaling_of(a, an, i));
        return json_len(list) ? list : NULL;
}
