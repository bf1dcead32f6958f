#include "operator/runtime.h"

/* ---- named and bucketed as controller-runtime's; dProfiler's names are the same series */

static const char *const controller_label[] = {"controller", NULL};
static const char *const result_labels[] = {"controller", "result", NULL};
static const double seconds_buckets[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3,  0.35,
                                         0.4,   0.45, 0.5,   0.6,  0.7, 0.8,  0.9, 1,    1.25, 1.5,
                                         1.75,  2,    2.5,   3,    3.5, 4,    4.5, 5,    6,    7,
                                         8,     9,    10,    15,   20,  25,   30,  40,   50,   60};
static const struct metric_family results_family = {
        "controller_runtime_reconcile_total", "Total number of reconciliations per controller.",
        METRIC_COUNTER, result_labels, .alias = "dprofiler_reconcile_total"};
static const struct metric_family errors_family = {
        "controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller.",
        METRIC_COUNTER, controller_label, .alias = "dprofiler_reconcile_errors_total"};
static const struct metric_family terminal_family = {
        "controller_runtime_terminal_reconcile_errors_total",
        "Total number of terminal reconciliation errors per controller.", METRIC_COUNTER, controller_label};
/* Rules made for controllers in Go may ask for these two. A decision here has no panic, and no time limit: they stay 0. */
static const struct metric_family panics_family = {"controller_runtime_reconcile_panics_total",
                                                   "Total number of reconciliation panics per controller.",
                                                   METRIC_COUNTER, controller_label};
static const struct metric_family timeouts_family = {
        "controller_runtime_reconcile_timeouts_total",
        "Total number of reconciliation timeouts per controller.", METRIC_COUNTER, controller_label};
static const struct metric_family seconds_family = {"controller_runtime_reconcile_time_seconds",
                                                    "Length of time per reconciliation per controller.",
                                                    METRIC_HISTOGRAM,
                                                    controller_label,
                                                    seconds_buckets,
                                                    ARRAY_LEN(seconds_buckets),
                                                    "dprofiler_reconcile_duration_seconds"};
static const struct metric_family active_family = {"controller_runtime_active_workers",
                                                   "Number of currently used workers per controller.",
                                                   METRIC_GAUGE, controller_label};
static const struct metric_family max_family = {"controller_runtime_max_concurrent_reconciles",
                                                "Maximum number of concurrent reconciles per controller.",
                                                METRIC_GAUGE, controller_label};

static const char *const age_labels[] = {"controller", "group", "resource", "role", NULL};
static const struct metric_family age_family = {
        "sonde_watch_age_seconds",
        "Time since anything was heard of these objects; a watch that works is heard at least every minute "
        "or "
        "two.",
        METRIC_GAUGE,
        age_labels,
};

static bool exports_objects(void *arg)
{
        return operator_leads(arg);
}

static void collect(void *arg)
{
        struct operator* o = arg;

        for (size_t i = 0; i < o->cfg.n_controllers; i++) {
                struct runtime *rt = &o->runtimes[i];

                metric_set(rt->active, rt->running);
                for (size_t k = 0; k < rt->n_sources; k++)
                        metric_set(rt->sources[k].age,
                                   (double)reflector_age(rt->sources[k].reflector) / (double)USEC_PER_SEC);
        }
}

void operator_metrics_init(struct operator* o)
{
        struct object_metrics_config config = {.clock = loop_clock(o->cfg.loop),
                                               .metrics = o->cfg.metrics,
                                               .exports = exports_objects,
                                               .arg = o};

        if (!o->cfg.metrics)
                return;
        o->objects = object_metrics_new(&config);
        metrics_on_collect(o->cfg.metrics, collect, o);
}

void operator_write_objects(struct operator* o, struct buf *out)
{
        if (o->objects && !operator_leads(o))
                object_metrics_write(o->objects, out);
}

void operator_metrics_done(struct operator* o)
{
        if (o->cfg.metrics)
                metrics_off_collect(o->cfg.metrics, collect, o);
}

void runtime_metrics_init(struct runtime *rt)
{
        static const char *const results[] = {"success", "error", "requeue", "requeue_after"};
        struct metrics *m = rt->op->cfg.metrics;
        const char *name[] = {rt->c->name};

        if (!m)
                return;
        for (size_t i = 0; i < ARRAY_LEN(results); i++)
                rt->results[i] = metrics_get(m, &results_family, (const char *[]){rt->c->name, results[i]});
        rt->errors = metrics_get(m, &errors_family, name);
        rt->terminal_errors = metrics_get(m, &terminal_family, name);
        (void)metrics_get(m, &panics_family, name);
        (void)metrics_get(m, &timeouts_family, name);
        rt->seconds = metrics_get(m, &seconds_family, name);
        rt->active = metrics_get(m, &active_family, name);
        metric_set(metrics_get(m, &max_family, name), runtime_limit(rt));
}

void runtime_metrics_source(struct source *s)
{
        struct operator* o = s->rt->op;

        if (!o->cfg.metrics)
                return;
        s->age = metrics_get(o->cfg.metrics, &age_family,
                             (const char *[]){s->rt->c->name, s->type->group, s->type->plural,
                                              s->kind ? "child" : "request"});
        if (!s->kind)
                object_metrics_add(o->objects, s->cache);
}

void runtime_metrics_finished(struct runtime *rt, enum queue_outcome outcome, enum reconcile_result result,
                              usec_t took)
{
        if (!rt->seconds)
                return;
        metric_add(rt->results[result], 1);
        metric_observe(rt->seconds, (double)took / (double)USEC_PER_SEC);
        if (outcome == QUEUE_GIVE_UP)
                metric_add(rt->terminal_errors, 1);
        if (result == RESULT_ERROR)
                metric_add(rt->errors, 1);
}
