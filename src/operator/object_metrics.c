#include "kinds/kinds.h"
#include "operator/operator.h"

#include <math.h>

enum { LABELS_MAX = 2048, ARENA_KEEP = 64 << 10 };

struct row {
        struct list link; /* of object_metrics.rows */
        struct source_rows *of;
        bool stale; /* changed since it was summed up */
        bool stuck;
        enum summary_life life;
        enum summary_trend trend;
        usec_t started, ended, eta;
        double percent, memory_mb, cpu_percent, seconds;
        char key[]; /* NAMESPACE/NAME */
};

/* A row that has series of its own in what is being written. */
struct written {
        const struct row *row;
        size_t at, n; /* its labels in object_metrics.texts */
};

/* Of one cache. */
struct source_rows {
        struct object_metrics *all;
        const struct kind *kind;
        struct cache *cache;
        struct map rows; /* by key */
};

struct object_metrics {
        struct object_metrics_config cfg;
        VEC(struct source_rows *) sources;
        struct list rows; /* the one that changed last first */
        size_t n;
        struct arena arena; /* of one object at a time */
        struct buf labels;  /* scratch */
        struct buf texts;   /* labels of what is written, one after the other */
        VEC(struct written) written;
};

/* ---- the series */

static double seconds_between(usec_t from, usec_t until)
{
        return (double)usec_sub(until, from) / (double)USEC_PER_SEC;
}

static double duration_of(const struct row *r, usec_t now)
{
        if (!r->started || r->life == SUMMARY_SCHEDULED)
                return NAN;
        if (r->life >= SUMMARY_SUCCEEDED)
                return r->ended ? seconds_between(r->started, r->ended) : NAN;
        return seconds_between(r->started, now);
}

static double memory_of(const struct row *r, usec_t now)
{
        return r->memory_mb;
}

static double cpu_of(const struct row *r, usec_t now)
{
        return r->cpu_percent;
}

static double execution_of(const struct row *r, usec_t now)
{
        return r->seconds;
}

static double degraded_of(const struct row *r, usec_t now)
{
        return r->trend == SUMMARY_TREND_UNKNOWN ? NAN : r->trend == SUMMARY_DEGRADED;
}

static double percent_of(const struct row *r, usec_t now)
{
        return r->percent;
}

/* What is late is due now. */
static double eta_of(const struct row *r, usec_t now)
{
        return r->eta ? seconds_between(now, r->eta) : NAN;
}

static double stuck_of(const struct row *r, usec_t now)
{
        return r->life == SUMMARY_RUNNING ? r->stuck : NAN;
}

static const char *const object_labels[] = {"namespace", "name", "job_name", "kind", NULL};
static const char *const status_labels[] = {"namespace", "name", "job_name", "kind", "status", NULL};

static const struct metric_family status_family = {
        "dprofiler_job_status",
        "1 for the status that the request has, 0 for the others.",
        METRIC_GAUGE,
        status_labels,
};

static const struct {
        struct metric_family family;
        double (*value)(const struct row *r, usec_t now); /* NAN: not known, then there is none */
} families[] = {
        {{"dprofiler_job_duration_seconds", "Time since the run began, or from there to its end.",
          METRIC_GAUGE, object_labels},
         duration_of},
        {{"dprofiler_memory_usage_mb",
          "Memory in MB (10^6 bytes): what the run uses now, and after it the median of the peaks that were "
          "measured.",
          METRIC_GAUGE, object_labels},
         memory_of},
        {{"dprofiler_cpu_usage_percent",
          "CPU in per cent of one core: what the run uses now, and after it the mean that was measured.",
          METRIC_GAUGE, object_labels},
         cpu_of},
        {{"dprofiler_execution_time_seconds", "Median time of what was measured.", METRIC_GAUGE,
          object_labels},
         execution_of},
        {{"dprofiler_performance_degraded",
          "1: the history shows that what is measured has become slower; 0: it shows that it has not.",
          METRIC_GAUGE, object_labels},
         degraded_of},
        {{"sonde_run_progress_percent", "How much of the run is done.", METRIC_GAUGE, object_labels},
         percent_of},
        {{"sonde_run_eta_seconds", "Time until the run is expected to end.", METRIC_GAUGE, object_labels},
         eta_of},
        {{"sonde_run_not_moving", "1: the run has not moved for far longer than its steps take.",
          METRIC_GAUGE, object_labels},
         stuck_of},
};

static const struct metric_family left_out_family = {
        "sonde_object_series_left_out",
        "Requests without series of their own, because there are too many; those that changed last have "
        "them.",
        METRIC_GAUGE,
};

/* The words of dProfiler's phases, and one that it does not have; a template is no job. */
static const struct {
        enum summary_life life;
        const char *name;
} statuses[] = {
        {SUMMARY_PENDING, "pending"},     {SUMMARY_RUNNING, "running"}, {SUMMARY_SUSPENDED, "suspended"},
        {SUMMARY_SUCCEEDED, "completed"}, {SUMMARY_FAILED, "failed"},   {SUMMARY_CANCELLED, "cancelled"},
};

/* ---- rows */

static void sum_up(struct row *r, struct object_metrics *o)
{
        const struct source_rows *of = r->of;
        struct str name = str_of(r->key), ns = str_split(&name, '/');
        const char *ns_text = arena_strndup(&o->arena, ns.p, ns.n);
        const struct cache_entry *e = cache_get(of->cache, ns_text, name.p);
        struct summary s;

        r->stale = false;
        summarize(of->kind, e ? cache_parse(of->cache, e, &o->arena) : NULL, &o->arena, &s);
        r->life = s.life;
        r->stuck = s.stuck;
        r->trend = s.trend;
        r->started = s.started;
        r->ended = s.ended;
        r->eta = s.eta_mid;
        r->percent = s.percent;
        r->memory_mb = s.memory_mb;
        r->cpu_percent = s.cpu_percent;
        r->seconds = s.seconds;
        arena_reset(&o->arena, ARENA_KEEP);
}

static void row_free(struct row *r)
{
        list_remove(&r->link);
        r->of->all->n--;
        free(r);
}

static void touch(struct source_rows *of, struct str key)
{
        struct row *r = map_get(&of->rows, key);

        if (!r) {
                r = xcalloc(1, sizeof(*r) + key.n + 1);
                memcpy(r->key, key.p, key.n);
                r->of = of;
                list_init(&r->link);
                map_put(&of->rows, str_of(r->key), r);
                of->all->n++;
        }
        r->stale = true;
        list_remove(&r->link);
        list_prepend(&of->all->rows, &r->link);
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        struct source_rows *of = arg;
        const struct cache_entry *e = after ? after : before;
        _cleanup_(free_ptr) char *key = xasprintf("%s/%s", e->ns, e->name);
        struct row *gone = after ? NULL : map_remove(&of->rows, str_of(key));

        if (after)
                touch(of, str_of(key));
        else if (gone)
                row_free(gone);
}

/* ---- written */

static struct str labels_of(const struct object_metrics *o, const struct written *w)
{
        return str_n(o->texts.p + w->at, w->n);
}

static void write_status(struct object_metrics *o, struct buf *out)
{
        metrics_write_head(out, &status_family);
        vec_foreach (w, &o->written) {
                const struct row *r = w->row;
                struct str labels = labels_of(o, w);

                if (r->life == SUMMARY_SCHEDULED)
                        continue;
                for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
                        buf_clear(&o->labels);
                        buf_add(&o->labels, labels.p, labels.n);
                        metrics_add_label(&o->labels, "status", statuses[i].name);
                        metrics_write_sample(out, &status_family, buf_str(&o->labels),
                                             r->life == statuses[i].life);
                }
        }
}

static void write_family(struct object_metrics *o, size_t family, struct buf *out)
{
        const struct metric_family *f = &families[family].family;
        usec_t now = clock_wall(o->cfg.clock);

        metrics_write_head(out, f);
        vec_foreach (w, &o->written) {
                double value = families[family].value(w->row, now);

                if (!isnan(value))
                        metrics_write_sample(out, f, labels_of(o, w), value);
        }
}

/* All families have the same labels of a row: made once, and kept only while they are written. */
static void add_written(struct object_metrics *o, const struct row *r)
{
        struct str name = str_of(r->key), ns = str_split(&name, '/');
        const char *values[] = {arena_strndup(&o->arena, ns.p, ns.n), name.p, name.p,
                                r->of->kind->type->kind};

        buf_clear(&o->labels);
        for (size_t i = 0; i < ARRAY_LEN(values); i++)
                metrics_add_label(&o->labels, object_labels[i], values[i]);
        *vec_push(&o->written) = (struct written){.row = r, .at = o->texts.n, .n = o->labels.n};
        buf_add(&o->texts, o->labels.p, o->labels.n);
        arena_reset(&o->arena, ARENA_KEEP);
}

void object_metrics_write(struct object_metrics *o, struct buf *out)
{
        list_foreach (node, &o->rows) {
                struct row *r = CONTAINER_OF(node, struct row, link);

                if (o->written.n >= o->cfg.max)
                        break;
                if (r->stale)
                        sum_up(r, o);
                add_written(o, r);
        }
        write_status(o, out);
        for (size_t i = 0; i < ARRAY_LEN(families); i++)
                write_family(o, i, out);
        metrics_write_head(out, &left_out_family);
        metrics_write_sample(out, &left_out_family, STR_NULL, (double)(o->n - o->written.n));
        vec_done(&o->written);
        buf_done(&o->texts);
}

static void on_write(void *arg, struct buf *out)
{
        struct object_metrics *o = arg;

        if (o->cfg.exports(o->cfg.arg))
                object_metrics_write(o, out);
}

/* ---- life */

struct object_metrics *object_metrics_new(const struct object_metrics_config *config)
{
        struct object_metrics *o = xcalloc(1, sizeof(*o));

        o->cfg = *config;
        if (!o->cfg.max)
                o->cfg.max = OBJECT_METRICS_MAX;
        list_init(&o->rows);
        o->labels = (struct buf)BUF_INIT(LABELS_MAX);
        o->texts = (struct buf)BUF_INIT(LABELS_MAX * o->cfg.max);
        if (o->cfg.metrics)
                metrics_on_write(o->cfg.metrics, on_write, o);
        return o;
}

void object_metrics_free(struct object_metrics *o)
{
        if (!o)
                return;
        if (o->cfg.metrics)
                metrics_off_write(o->cfg.metrics, on_write, o);
        vec_foreach (of, &o->sources) {
                struct row *r;

                map_foreach (i, &(*of)->rows, r)
                        row_free(r);
                map_done(&(*of)->rows);
                free(*of);
        }
        vec_done(&o->sources);
        buf_done(&o->labels);
        arena_done(&o->arena);
        free(o);
}

void object_metrics_add(struct object_metrics *o, struct cache *cache)
{
        const struct kube_type *type = cache_type(cache);

        for (size_t i = 0; kinds_at(i); i++) {
                struct source_rows *of;

                if (kinds_at(i)->type != type || kinds_at(i)->result)
                        continue;
                of = xcalloc(1, sizeof(*of));
                *of = (struct source_rows){.all = o, .kind = kinds_at(i), .cache = cache};
                *vec_push(&o->sources) = of;
                cache_listen(cache, on_change, of);
        }
}
