#include "cli/results_mlflow.h"

#include <signal.h>

#define EXPERIMENT_DEFAULT "sonde"
#define TAG_LEAD           "sonde."

/* What of a sample is a metric, and by what its number is divided. */
static const struct {
        const char *column, *key;
        double unit;
} sampled[] = {
        {"time", "executionTime", 1},
        {"memory", "memoryUsage", 1e6},
        {"cpuPercent", "cpuUsage", 1},
        {"accuracy", "accuracy", 1},
};

/* ---- samples */

/* The runs of one algorithm at one size so far. */
struct sample_series {
        const char *algorithm;
        int64_t size, n;
};

struct all_series {
        struct sample_series *v;
        size_t n, cap;
};

static const struct json *cell(const struct json *columns, const struct json *row, const char *name)
{
        size_t i = 0;

        json_foreach (column, columns) {
                if (streq(json_cstr(column), name))
                        return json_index(row, i);
                i++;
        }
        return NULL;
}

static struct sample_series *series_of(struct all_series *all, const char *algorithm, int64_t size)
{
        struct sample_series *new;

        vec_foreach (s, all)
                if (s->size == size && streq(s->algorithm, algorithm))
                        return s;
        new = vec_push(all);
        *new = (struct sample_series){.algorithm = algorithm, .size = size};
        return new;
}

static bool has_several_sizes(const struct all_series *all, const char *algorithm)
{
        size_t n = 0;

        vec_foreach (s, all)
                n += streq(s->algorithm, algorithm);
        return n > 1;
}

/* Runs before the first that counts (they have numbers below 0), and those that failed, are no measurement. */
static bool is_measurement(const struct json *columns, const struct json *row)
{
        const struct json *failure = cell(columns, row, "failure");
        int64_t iteration;

        return (!failure || json_is(failure, JSON_NULL)) &&
               json_to_i64(cell(columns, row, "iteration"), &iteration) && iteration >= 0;
}

static struct sample_series *series_of_row(struct all_series *all, const struct json *columns,
                                           const struct json *row)
{
        const char *algorithm = json_cstr(cell(columns, row, "algorithm"));
        int64_t size = 0;

        json_to_i64(cell(columns, row, "size"), &size);
        return series_of(all, algorithm ? algorithm : "", size);
}

static void add_row(struct mlflow_run *run, const struct all_series *all, struct sample_series *s,
                    const struct json *columns, const struct json *row, struct arena *a)
{
        double started = 0, value;

        s->n++;
        json_to_double(cell(columns, row, "started"), &started);
        for (size_t i = 0; i < ARRAY_LEN(sampled); i++) {
                if (!json_to_double(cell(columns, row, sampled[i].column), &value))
                        continue;
                *vec_push(&run->metrics) = (struct mlflow_metric){
                        .key = has_several_sizes(all, s->algorithm)
                                       ? arena_printf(a, "samples/%s/%lld/%s", s->algorithm,
                                                      (long long)s->size, sampled[i].key)
                                       : arena_printf(a, "samples/%s/%s", s->algorithm, sampled[i].key),
                        .value = value / sampled[i].unit,
                        .at = started > 0 ? (usec_t)(started * (double)USEC_PER_SEC) : run->ended,
                        .step = s->n,
                };
        }
}

static void add_samples(struct mlflow_run *run, const struct json *samples, struct arena *a)
{
        const struct json *columns = json_at(samples, "columns"), *rows = json_at(samples, "rows");
        struct all_series all = {0};

        json_foreach (row, rows)
                series_of_row(&all, columns, row);
        json_foreach (row, rows)
                if (is_measurement(columns, row))
                        add_row(run, &all, series_of_row(&all, columns, row), columns, row, a);
        vec_done(&all);
}

/* ---- the run */

static enum mlflow_status status_of(const struct summary *s)
{
        return s->life == SUMMARY_SUCCEEDED   ? MLFLOW_FINISHED
               : s->life == SUMMARY_CANCELLED ? MLFLOW_KILLED
                                              : MLFLOW_FAILED;
}

static void add_tags(struct mlflow_run *run, const struct results_log *log, const struct summary *s,
                     struct arena *a)
{
        *vec_push(&run->tags) = (struct mlflow_pair){"mlflow.source.name", "sonde"};
        *vec_push(&run->tags) = (struct mlflow_pair){"mlflow.source.type", "JOB"};
        if (s->sentence)
                *vec_push(&run->tags) = (struct mlflow_pair){"mlflow.note.content", s->sentence};
        vec_foreach (t, &log->tags)
                *vec_push(&run->tags) = (struct mlflow_pair){arena_join(a, TAG_LEAD, t->key, ""), t->value};
}

static void make_run(const struct results_log *log, const struct summary *s, const struct run_docs *docs,
                     const char *name, struct arena *a, struct mlflow_run *ret)
{
        *ret = (struct mlflow_run){.name = name ? name : log->name,
                                   .status = status_of(s),
                                   .started = log->started,
                                   .ended = log->ended};
        vec_foreach (t, &log->params)
                *vec_push(&ret->params) = (struct mlflow_pair){t->key, t->value};
        vec_foreach (m, &log->metrics)
                *vec_push(&ret->metrics) = (struct mlflow_metric){
                        .key = m->key, .value = m->value, .at = log->ended};
        vec_foreach (f, &log->artifacts)
                *vec_push(&ret->artifacts) = (struct mlflow_artifact){f->name, f->content};
        add_tags(ret, log, s, a);
        add_samples(ret, docs->samples, a);
}

/* ---- what is said */

static void tell(const struct mlflow_run *run, const struct mlflow_logged *logged, const char *experiment,
                 const char *url, struct arena *a)
{
        _cleanup_(buf_done) struct buf names = BUF_INIT(1 << 10);

        printf("Logged as run %s of MLflow's experiment %s: %zu params, %zu metrics, %zu artifacts\n",
               text_clean(a, logged->run_id), experiment, logged->params, logged->metrics, logged->artifacts);
        printf("%s/#/experiments/%s/runs/%s\n", url, text_clean(a, logged->experiment_id),
               text_clean(a, logged->run_id));
        if (!logged->artifact_uri || !run->artifacts.n)
                return;
        vec_foreach (f, &run->artifacts)
                buf_printf(&names, "%s%s", names.n ? ", " : "", f->path);
        cli_error("not uploaded: %s; MLflow keeps artifacts at %s, where only its own client can put them "
                  "(mlflow "
                  "server --serve-artifacts takes them itself)",
                  names.overflow ? "the artifacts" : buf_cstr(&names), text_clean(a, logged->artifact_uri));
}

static void on_signal(void *arg, int signo)
{
        *(bool *)arg = true;
}

bool results_mlflow_check(const struct results_mlflow *m)
{
        const char *alone = m->run_name            ? "--run-name"
                            : m->target.experiment ? "--experiment"
                            : m->target.token_file ? "--token-file"
                                                   : NULL;

        if (m->target.url || !alone)
                return true;
        cli_error("%s is for MLflow; --to-mlflow URL is missing", alone);
        return false;
}

int results_mlflow_log(struct people *p, const struct people_run *run, const struct run_docs *docs,
                       const struct results_mlflow *m)
{
        _cleanup_(results_log_done) struct results_log log = {0};
        _cleanup_(mlflow_run_done) struct mlflow_run as = {0};
        struct mlflow_target target = m->target;
        struct mlflow_logged logged;
        struct err err = ERR_INIT;
        bool stop = false;
        int r;

        if (!summary_over(&run->summary)) {
                cli_error("%s has not ended: only a finished run is logged; '%s wait %s' waits for it",
                          run->label, cli_name(), run->label);
                return 1;
        }
        if (!target.experiment)
                target.experiment = EXPERIMENT_DEFAULT;
        results_log_make(docs, &p->arena, &log);
        make_run(&log, &run->summary, docs, m->run_name, &p->arena, &as);
        loop_on_signal(p->loop, SIGINT, on_signal, &stop);
        loop_on_signal(p->loop, SIGTERM, on_signal, &stop);
        r = mlflow_log(p->loop, &target, &as, &stop, &p->arena, &logged, &err);
        loop_on_signal(p->loop, SIGINT, NULL, NULL);
        loop_on_signal(p->loop, SIGTERM, NULL, NULL);
        if (r < 0) {
                cli_error("%s", text_clean(&p->arena, err.text));
                return stop ? EXIT_INTERRUPTED : 1;
        }
        tell(&as, &logged, target.experiment, target.url, &p->arena);
        return people_finish(0);
}
