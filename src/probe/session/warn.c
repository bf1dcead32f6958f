/*
 * What a reader of the result should know before believing it.
 */
#include "probe/session/internal.h"

enum { WARNINGS_MAX = 40, TREND_LEAST = 10 };

static const double short_run = 0.005, trend_alpha = 0.01;

static void add(struct analysis *an, const char *fmt, ...) _printf_(2, 3);
static void add(struct analysis *an, const char *fmt, ...)
{
        va_list ap;

        if (an->warnings.n >= WARNINGS_MAX)
                return;
        va_start(ap, fmt);
        *vec_push(&an->warnings) = arena_vprintf(an->arena, fmt, ap);
        va_end(ap);
}

/* "quick_sort", "quick_sort at size 1000" */
static const char *name_of(const struct analysis *an, size_t entry)
{
        const char *label = entry_algorithm(an->plan, entry)->label;

        return an->plan->n_sizes > 1 ? arena_printf(an->arena, "%s at size %lld", label,
                                                    (long long)entry_size(an->plan, entry))
                                     : label;
}

/* The process itself is what is timed, and it is over at once. */
static bool is_mostly_start(const struct analysis_entry *e)
{
        return e->time_d.median < short_run && e->wall > 0 &&
               fabs(e->wall - e->time_d.median) < e->wall / 100;
}

static void warn_entry(struct analysis *an, const struct analysis_entry *e)
{
        const struct stats_description *d = &e->time_d;
        const char *name = name_of(an, e->entry), *unit = an->plan->pods > 1 ? "pod" : "run";

        if (e->n && e->invalid)
                add(an, "%s: %zu of %zu runs failed and count for nothing", name, e->invalid,
                    e->n + e->invalid);
        if (!e->n)
                return;
        if (e->throttled > 0)
                add(an, "%s: its CPU limit was reached in %.0f periods: the times tell the limit too", name,
                    e->throttled);
        if (d->slow_first)
                add(an, "%s: the first %s took %.2f times as long as the others: more warm-up may be needed",
                    name, unit, d->first_ratio);
        if (d->n >= TREND_LEAST && d->trend_p < trend_alpha / (double)plan_entries(an->plan))
                add(an, "%s: its times %s from %s to %s (rho %.2f): something else changed meanwhile", name,
                    d->trend > 0 ? "rise" : "fall", unit, unit, d->trend);
        if (is_mostly_start(e))
                add(an, "%s: takes %.2f ms, of which the start of a process is a good part", name,
                    d->median * 1e3);
}

/* One that was come back to is the same. */
static size_t count_machines(const struct session_samples *s)
{
        size_t n = 0;

        for (size_t i = 0; i < s->machines.n; i++) {
                bool known = false;

                for (size_t k = 0; k < i && !known; k++)
                        known = json_equal(s->machines.v[k], s->machines.v[i]);
                n += !known;
        }
        return n;
}

void warn(struct analysis *an)
{
        const struct session_samples *s = an->samples;
        const struct session_plan *p = an->plan;
        size_t machines = count_machines(s);

        if (p->parallel && plan_entries(p) > 1)
                add(an,
                    "contended: the runs of a block were under way together, their times are not comparable");
        if (machines > 1)
                add(an, "measured on %zu machines, or settings of one: the later runs may differ for that",
                    machines);
        if (s->continued)
                add(an, "continued %u time%s from a checkpoint%s", s->continued, s->continued == 1 ? "" : "s",
                    p->pods > 1 ? ": runs that count as one pod's are of several" : "");
        for (size_t i = 0; i < plan_entries(p); i++)
                warn_entry(an, &an->entries[i]);
        vec_foreach (note, &s->notes)
                add(an, "%s", *note);
}
