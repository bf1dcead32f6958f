/*
 * What the samples say: a summary of every entry, and the comparison at every size.
 */
#include "probe/session/internal.h"

/* The values that repeat, in order: of each run or, with several pods, the median of each pod. */
static double *units_of(struct arena *a, const struct session_plan *p, const struct stats_sample *samples,
                        size_t n, size_t *ret_n)
{
        const struct stats_sample *units = p->pods > 1 ? stats_pod_medians(a, samples, n, &n) : samples;
        double *values = arena_new_array(a, double, n + 1);

        for (size_t i = 0; i < n; i++)
                values[i] = units[i].value;
        *ret_n = n;
        return values;
}

/* What of its valid runs is known. */
static double *units_of_column(struct arena *a, const struct session_samples *s, size_t entry, enum column c,
                               size_t *ret_n)
{
        struct stats_sample *samples = arena_new_array(a, struct stats_sample, s->rows.n + 1);
        size_t n = 0;

        vec_foreach (row, &s->rows)
                if (c < s->columns /* else not kept */ && row->entry == entry && !row->reason &&
                    row_counts(s->plan, row) && !isnan(row->v[c]))
                        samples[n++] = (struct stats_sample){row->v[c], row->pod, row->block};
        return units_of(a, s->plan, samples, n, ret_n);
}

static double median_of_column(struct arena *a, const struct session_samples *s, size_t entry, enum column c)
{
        size_t n;
        double *values = units_of_column(a, s, entry, c, &n);

        return stats_median(values, n);
}

static size_t count_rows(const struct session_samples *s, size_t entry)
{
        size_t n = 0;

        vec_foreach (row, &s->rows)
                n += row->entry == entry;
        return n;
}

static void take_failure(const struct session_samples *s, const struct session_row *row,
                         struct analysis_entry *e)
{
        const struct session_reason *r = &s->reasons.v[row->reason - 1];

        if (!e->error)
                e->error = r;
        e->invalid += row_counts(s->plan, row);
        e->out_of_memory += streq(r->label, "out of memory");
}

static void take_valid(const struct session_samples *s, const struct session_row *row,
                       struct analysis_entry *e)
{
        const double *v = row->v;
        double cost = s->plan->priced
                              ? run_cost(s->plan, row->entry, v[COLUMN_WALL], v[COLUMN_CPU], v[COLUMN_MEMORY])
                              : NAN;

        e->time_s[e->n++] = (struct stats_sample){v[COLUMN_TIME], row->pod, row->block};
        if (!isnan(v[COLUMN_MEMORY]))
                e->memory_s[e->n_memory++] = (struct stats_sample){v[COLUMN_MEMORY], row->pod, row->block};
        if (!isnan(v[COLUMN_PERCENT]))
                e->percent_s[e->n_percent++] = (struct stats_sample){v[COLUMN_PERCENT], row->pod, row->block};
        if (!isnan(v[COLUMN_THROTTLED]))
                e->throttled += v[COLUMN_THROTTLED];
        if (cost > 0)
                e->cost_s[e->n_cost++] = (struct stats_sample){cost, row->pod, row->block};
}

static void describe(const double *values, size_t n, struct stats_description *ret)
{
        if (!stats_describe(values, n, ret))
                *ret = (struct stats_description){.n = 0};
}

static void describe_samples(struct arena *a, const struct session_plan *p,
                             const struct stats_sample *samples, size_t n, struct stats_description *ret)
{
        double *units = units_of(a, p, samples, n, &n);

        describe(units, n, ret);
}

static void analyse_entry(struct arena *a, const struct session_samples *s, size_t entry,
                          struct analysis_entry *e)
{
        size_t most = count_rows(s, entry) + 1, n_accuracy;
        double *accuracy = units_of_column(a, s, entry, COLUMN_ACCURACY, &n_accuracy);

        *e = (struct analysis_entry){
                .entry = entry,
                .time_s = arena_new_array(a, struct stats_sample, most),
                .memory_s = arena_new_array(a, struct stats_sample, most),
                .percent_s = arena_new_array(a, struct stats_sample, most),
                .cost_s = arena_new_array(a, struct stats_sample, most),
        };
        vec_foreach (row, &s->rows) {
                if (row->entry != entry)
                        continue;
                if (row->reason)
                        take_failure(s, row, e);
                else if (row_counts(s->plan, row))
                        take_valid(s, row, e);
        }
        for (unsigned pod = 0; pod < s->plan->pods; pod++)
                e->gave_up |= samples_gave_up(s, entry, pod);
        e->time = units_of(a, s->plan, e->time_s, e->n, &e->n_time);
        describe(e->time, e->n_time, &e->time_d);
        describe_samples(a, s->plan, e->memory_s, e->n_memory, &e->memory_d);
        describe_samples(a, s->plan, e->percent_s, e->n_percent, &e->percent_d);
        describe(accuracy, n_accuracy, &e->accuracy_d);
        e->accuracy = e->accuracy_d.n ? e->accuracy_d.median : NAN;
        e->wall = median_of_column(a, s, entry, COLUMN_WALL);
        e->cpu = median_of_column(a, s, entry, COLUMN_CPU);
        e->gpu_percent = median_of_column(a, s, entry, COLUMN_GPU_UTILIZATION);
        e->gpu_memory = median_of_column(a, s, entry, COLUMN_GPU_MEMORY);
        e->gpu_power = median_of_column(a, s, entry, COLUMN_GPU_POWER);
        advise_entry(s->plan, e);
}

/* ---- comparison */

enum axis { AXIS_TIME, AXIS_MEMORY, AXIS_COST };

/* Those of its runs that went well say nothing of one that does not work. */
static const char *why_unfit(const struct session_plan *p, const struct analysis_entry *e, enum axis axis)
{
        if (e->gave_up)
                return "it failed three times in a row";
        return p->parallel && axis != AXIS_MEMORY ? "it ran beside the others" : NULL;
}

/* To stats 0 and what is not below 1 is "not said"; to a plan 0 is "all counts", 1 "what is twice as much". */
static double share_of(double said)
{
        return MIN(MAX(said, 1e-9), 1 - 1e-9);
}

static void compare(struct analysis *an, size_t size, enum axis axis, struct stats_comparison *ret)
{
        const struct session_plan *p = an->plan;
        struct stats_side *sides = arena_new_array(an->arena, struct stats_side, p->n);

        for (size_t i = 0; i < p->n; i++) {
                const struct analysis_entry *e = &an->entries[i * p->n_sizes + size];

                sides[i] = (struct stats_side){
                        .name = p->algorithms[i].label,
                        .samples = axis == AXIS_TIME     ? e->time_s
                                   : axis == AXIS_MEMORY ? e->memory_s
                                                         : e->cost_s,
                        .n = axis == AXIS_TIME     ? e->n
                             : axis == AXIS_MEMORY ? e->n_memory
                                                   : e->n_cost,
                        .unfit = why_unfit(p, e, axis),
                        .accuracy = e->accuracy,
                        .accuracy_ci = e->accuracy_d.median_ci,
                };
        }
        stats_compare(an->arena,
                      &(struct stats_compare){
                              .measure = axis == AXIS_MEMORY ? STATS_MEMORY : STATS_TIME,
                              .sides = sides,
                              .n_sides = p->n,
                              .baseline = p->baseline,
                              .alpha = p->alpha,
                              .min_effect = share_of(p->min_effect),
                              .accuracy_tolerance = isnan(p->accuracy_tolerance)
                                                            ? NAN
                                                            : MAX(p->accuracy_tolerance, 1e-9),
                              .by_pod = p->pods > 1,
                              .seed = p->uid,
                      },
                      ret);
}

void analyse(struct arena *a, const struct session_samples *s, struct analysis *ret)
{
        const struct session_plan *p = s->plan;

        *ret = (struct analysis){
                .samples = s,
                .plan = p,
                .entries = arena_new_array(a, struct analysis_entry, plan_entries(p)),
                .arena = a,
        };
        for (size_t i = 0; i < plan_entries(p); i++)
                analyse_entry(a, s, i, &ret->entries[i]);
        if (p->n > 1) {
                ret->sizes = arena_new_array(a, struct analysis_size, p->n_sizes);
                for (size_t i = 0; i < p->n_sizes; i++) {
                        compare(ret, i, AXIS_TIME, &ret->sizes[i].time);
                        compare(ret, i, AXIS_MEMORY, &ret->sizes[i].memory);
                        if (p->priced)
                                compare(ret, i, AXIS_COST, &ret->sizes[i].cost);
                }
        }
        ret->scaling = result_scaling(a, ret);
        warn(ret);
}

void analysis_done(struct analysis *an)
{
        vec_done(&an->warnings);
}
