/*
 * What came out of every run.
 */
#include "probe/session/internal.h"

enum {
        GIVE_UP_AFTER = 3,
        NOTES_MAX = 32,
        MACHINES_MAX = 16,
        METRIC_TEXT_MAX = 256,
        REASON_TEXT_MAX = 64,
        ML_ALL_MAX = 128 * 1024
};

void samples_init(struct session_samples *s, const struct session_plan *plan)
{
        size_t runs = plan_entries(plan) * plan_blocks(plan) * plan->pods;

        *s = (struct session_samples){
                .plan = plan,
                .entries = plan_entries(plan),
                .columns = runs > SESSION_DETAILED_MAX ? (size_t)COLUMN_CORE_ : (size_t)COLUMN_MAX_,
                .ml = xcalloc(plan_entries(plan), sizeof(*s->ml)),
                .ml_arena = xcalloc(plan_entries(plan), sizeof(*s->ml_arena)),
        };
}

void samples_done(struct session_samples *s)
{
        for (size_t i = 0; i < s->entries; i++)
                arena_done(&s->ml_arena[i]);
        free(s->ml);
        free(s->ml_arena);
        vec_done(&s->rows);
        vec_done(&s->reasons);
        vec_done(&s->metrics);
        vec_done(&s->machines);
        vec_done(&s->notes);
        arena_done(&s->arena);
        *s = (struct session_samples){.plan = NULL};
}

/* ---- values */

static double or_nan(int64_t value)
{
        return value < 0 ? NAN : (double)value;
}

/* Of one CPU, over what counts: the region's own where it tells both. */
static double percent_of(const struct measure_sample *m)
{
        const struct measure_region *g = &m->region;
        bool own = g->has && !isnan(g->user) && !isnan(g->sys);
        double cpu = own ? g->user + g->sys : m->user + m->sys, wall = own ? g->wall : m->wall;

        return wall > 0 ? 100 * cpu / wall : NAN;
}

static double accuracy_of(const struct measure_sample *m)
{
        const struct json *j = json_at(m->ml, "accuracy");
        double value;

        if (!json_is(j, JSON_NUMBER))
                j = json_at(m->metrics, "accuracy");
        return json_is(j, JSON_NUMBER) && json_to_double(j, &value) ? value : NAN;
}

static void take_details(const struct measure_sample *m, double *v)
{
        v[COLUMN_USER] = m->user;
        v[COLUMN_SYS] = m->sys;
        v[COLUMN_REGION_USER] = m->region.has ? m->region.user : NAN;
        v[COLUMN_REGION_SYS] = m->region.has ? m->region.sys : NAN;
        v[COLUMN_MINOR_FAULTS] = or_nan(m->minor_faults);
        v[COLUMN_MAJOR_FAULTS] = or_nan(m->major_faults);
        v[COLUMN_VOLUNTARY] = or_nan(m->voluntary_switches);
        v[COLUMN_INVOLUNTARY] = or_nan(m->involuntary_switches);
        v[COLUMN_READ] = m->io.has ? or_nan(m->io.read_bytes) : NAN;
        v[COLUMN_WRITTEN] = m->io.has ? or_nan(m->io.written_bytes) : NAN;
        v[COLUMN_PROCESSES] = m->processes > 0 ? (double)m->processes : NAN;
        v[COLUMN_CGROUP_MEMORY] = m->cgroup.has ? or_nan(m->cgroup.memory_peak) : NAN;
        v[COLUMN_CGROUP_CPU] = m->cgroup.has ? m->cgroup.cpu_seconds : NAN;
        v[COLUMN_THROTTLED_SECONDS] = m->cgroup.has ? m->cgroup.throttled_seconds : NAN;
        v[COLUMN_GPU_UTILIZATION] = m->gpu.has ? m->gpu.utilization : NAN;
        v[COLUMN_GPU_MEMORY] = m->gpu.has ? or_nan(m->gpu.memory_peak) : NAN;
        v[COLUMN_GPU_POWER] = m->gpu.has ? m->gpu.power : NAN;
        for (int i = 0; i < COUNTER_MAX_; i++)
                v[COLUMN_COUNTERS + i] = m->counters.has ? or_nan(m->counters.values[i]) : NAN;
}

static void take_values(struct session_samples *s, const struct measure_sample *m, double *v)
{
        double all[COLUMN_MAX_];

        all[COLUMN_STARTED] = m->started ? (double)m->started / (double)USEC_PER_SEC : NAN;
        all[COLUMN_TIME] = m->processes > 0 ? measure_sample_time(m) : NAN;
        all[COLUMN_WALL] = m->processes > 0 ? m->wall : NAN;
        all[COLUMN_CPU] = m->processes > 0 ? m->user + m->sys : NAN;
        all[COLUMN_PERCENT] = m->processes > 0 ? percent_of(m) : NAN;
        all[COLUMN_MEMORY] = m->peak_rss > 0 ? (double)m->peak_rss : NAN;
        all[COLUMN_ACCURACY] = accuracy_of(m);
        all[COLUMN_THROTTLED] = m->cgroup.has ? or_nan(m->cgroup.throttled_periods) : NAN;
        take_details(m, all);
        for (size_t i = 0; i < s->columns; i++)
                v[i] = column_round((enum column)i, all[i]);
}

/* ---- failures */

static const char *cut_text(const char *text, char out[REASON_TEXT_MAX + 1])
{
        snprintf(out, REASON_TEXT_MAX + 1, "%.*s", (int)utf8_cut(text, strlen(text), REASON_TEXT_MAX), text);
        return out;
}

uint16_t samples_reason(struct session_samples *s, size_t entry, const char *label, const char *reason,
                        const char *message)
{
        struct session_reason *r;
        char cut_label[REASON_TEXT_MAX + 1], cut_reason[REASON_TEXT_MAX + 1];

        /* What is kept is what is looked for: one that was cut is found again. */
        label = cut_text(label, cut_label);
        reason = cut_text(reason, cut_reason);
        for (size_t i = 0; i < s->reasons.n; i++)
                if (s->reasons.v[i].entry == entry && streq(s->reasons.v[i].label, label) &&
                    streq(s->reasons.v[i].reason, reason))
                        return (uint16_t)(i + 1);
        if (s->reasons.n >= SESSION_REASONS_MAX)
                return 0;
        r = vec_push(&s->reasons);
        *r = (struct session_reason){
                .entry = entry,
                .label = arena_strdup(&s->arena, label),
                .reason = arena_strdup(&s->arena, reason),
                .message = arena_strndup(&s->arena, message,
                                         utf8_cut(message, strlen(message), RUN_ERROR_MAX)),
        };
        return (uint16_t)s->reasons.n;
}

/* "exit 3", "signal 9", "out of memory", "timed out", or what the command itself calls it. */
static const char *failure_label(const struct measure_sample *m, char out[64])
{
        if (m->oom)
                return "out of memory";
        if (m->timed_out)
                return "timed out";
        if (m->signal > 0)
                snprintf(out, 64, "signal %d", m->signal);
        else if (m->exit_code > 0 && streq(m->error_reason, "ExitCode"))
                snprintf(out, 64, "exit %d", m->exit_code);
        else
                return m->error_reason;
        return out;
}

static uint16_t reason_of(struct session_samples *s, size_t entry, const struct measure_sample *m)
{
        double time = measure_sample_time(m);
        char text[64];
        uint16_t reason;

        /* What the command tells of its region may be any number. */
        if (measure_sample_ok(m) && stats_usable(&time, 1))
                return 0;
        if (measure_sample_ok(m))
                return samples_reason(s, entry, "not measured", "NotMeasured", "it could not be measured");
        reason = samples_reason(s, entry, failure_label(m, text), m->error_reason,
                                m->error_message ? m->error_message : m->error_reason);
        if (reason)
                return reason;
        /* Too many ways to fail: this one is counted among the entry's others, or with whatever is there. */
        for (size_t i = 0; i < s->reasons.n; i++)
                if (s->reasons.v[i].entry == entry)
                        return (uint16_t)(i + 1);
        return 1;
}

/* ---- metrics */

struct session_metric *samples_metric(struct session_samples *s, size_t entry, struct str name)
{
        struct session_metric *m;

        if (!name.n || name.n > SESSION_METRIC_NAME_MAX || memchr(name.p, 0, name.n))
                return NULL;
        vec_foreach (known, &s->metrics)
                if (known->entry == entry && str_eq(str_of(known->name), name))
                        return known;
        if (s->metrics.n >= SESSION_METRICS_MAX)
                return NULL;
        m = vec_push(&s->metrics);
        m->entry = entry;
        m->name = arena_strndup(&s->arena, name.p, name.n);
        return m;
}

/* In the place of the one before: texts that are new with every run need no more room than one. */
void samples_set_text(struct session_samples *s, struct session_metric *m, const char *text)
{
        if (!m->text)
                m->text = arena_alloc(&s->arena, METRIC_TEXT_MAX + 1);
        snprintf(m->text, METRIC_TEXT_MAX + 1, "%.*s", (int)utf8_cut(text, strlen(text), METRIC_TEXT_MAX),
                 text);
}

static void take_metrics(struct session_samples *s, size_t entry, const struct json *metrics)
{
        json_foreach (value, metrics) {
                struct session_metric *m;
                const char *text = json_cstr(value);
                double number;

                if (!text && (!json_is(value, JSON_NUMBER) || !json_to_double(value, &number)))
                        continue;
                m = samples_metric(s, entry, str_n(value->key, value->key_len));
                if (!m)
                        continue;
                if (!text) {
                        m->n++;
                        m->sum += number;
                } else
                        samples_set_text(s, m, text);
        }
}

/* Lists and maps below J have at most KEEP members; true: something went. */
static bool cut_lists(struct json *j, size_t keep)
{
        bool cut = false;

        if (!json_is(j, JSON_ARRAY) && !json_is(j, JSON_OBJECT))
                return false;
        while (json_len(j) > keep) {
                (void)json_take(j, j->last);
                cut = true;
        }
        json_foreach (child, j)
                cut |= cut_lists(child, keep);
        return cut;
}

static size_t printed_size(const struct json *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MEASURE_SAMPLE_MAX);

        json_write(j, JSON_COMPACT, &text);
        return text.overflow ? SIZE_MAX : text.n;
}

struct json *ml_cut(struct arena *a, const struct json *ml, size_t max)
{
        for (size_t keep = 1024; keep >= 4; keep /= 2) {
                struct json *copy = json_copy(a, ml);
                bool cut = false;

                json_foreach (part, copy)
                        cut |= cut_lists(part, keep);
                if (cut)
                        json_set(a, copy, "cut", json_truth(a, true));
                if (printed_size(copy) <= max)
                        return copy;
        }
        return NULL;
}

void samples_set_ml(struct session_samples *s, size_t entry, const struct json *ml)
{
        size_t max = MIN((size_t)SESSION_ML_MAX, (size_t)ML_ALL_MAX / plan_entries(s->plan));
        _cleanup_(arena_done) struct arena trials = ARENA_INIT;
        const struct json *cut = ml ? ml_cut(&trials, ml, max) : NULL;

        arena_reset(&s->ml_arena[entry], 0);
        s->ml[entry] = cut ? json_copy(&s->ml_arena[entry], cut) : NULL;
}

/* ---- runs */

void samples_note(struct session_samples *s, const char *note)
{
        size_t n = utf8_cut(note, strlen(note), RUN_ERROR_MAX);

        vec_foreach (known, &s->notes)
                if (str_eq(str_of(*known), str_n(note, n)))
                        return;
        if (s->notes.n < NOTES_MAX)
                *vec_push(&s->notes) = arena_strndup(&s->arena, note, n);
}

void samples_machine(struct session_samples *s, const struct json *machine)
{
        if (!machine || (s->machines.n && json_equal(s->machines.v[s->machines.n - 1], machine)))
                return;
        if (s->machines.n < MACHINES_MAX)
                *vec_push(&s->machines) = json_copy(&s->arena, machine);
}

void samples_add(struct session_samples *s, size_t entry, unsigned pod, unsigned block,
                 const struct measure_sample *sample)
{
        struct session_row *row = vec_push(&s->rows);

        *row = (struct session_row){
                .entry = (uint16_t)entry,
                .pod = pod,
                .block = block,
                .v = arena_alloc(&s->arena, s->columns * sizeof(double)),
        };
        take_values(s, sample, row->v);
        row->reason = reason_of(s, entry, sample);
        if (sample->note) {
                _cleanup_(free_ptr) char *note = xasprintf("%s: %s", entry_algorithm(s->plan, entry)->label,
                                                           sample->note);

                samples_note(s, note);
        }
        if (row->reason || !row_counts(s->plan, row))
                return;
        take_metrics(s, entry, sample->metrics);
        if (sample->ml)
                samples_set_ml(s, entry, sample->ml);
}

bool samples_has(const struct session_samples *s, size_t entry, unsigned pod, unsigned block)
{
        /* What is looked for is of the present block: at the end. */
        for (size_t i = s->rows.n; i-- > 0;) {
                const struct session_row *row = &s->rows.v[i];

                if (row->pod != pod || row->block < block)
                        break;
                if (row->entry == entry && row->block == block)
                        return true;
        }
        return false;
}

bool samples_gave_up(const struct session_samples *s, size_t entry, unsigned pod)
{
        unsigned failed = 0;

        for (size_t i = s->rows.n; i-- > 0 && s->rows.v[i].pod >= pod;) {
                if (s->rows.v[i].entry != entry || s->rows.v[i].pod != pod)
                        continue;
                if (!s->rows.v[i].reason)
                        return false;
                if (++failed == GIVE_UP_AFTER)
                        return true;
        }
        return false;
}
