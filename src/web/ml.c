/*
 * dProfiler's ml paths: AlgorithmProfilings with a model. Upstream answers when the work is done; so does this, for as long as
 * ?wait= says, and with the status "running" and the job's id when it takes longer.
 */
#include <math.h>

#include "probe/probe.h"
#include "web/dprofiler.h"

static const struct kind *profilings(void)
{
        return kinds_named(str_of(ALGORITHMPROFILING.plural));
}

static const struct kind *comparisons(void)
{
        return kinds_named(str_of(ALGORITHMCOMPARISON.plural));
}

/* ---- one model */

static const struct json *results_of(const struct json *object)
{
        return json_at(json_at(object, "status"), "results");
}

static void set_error(struct arena *a, struct json *of, const struct summary *s)
{
        if (s->life == SUMMARY_FAILED || s->life == SUMMARY_CANCELLED)
                json_set(a, of, "error_message", json_string(a, s->sentence));
}

/* What is not known (yet) is null. */
static struct json *ml_answer(struct call *c, const struct json *object, const struct summary *s)
{
        struct arena *a = &c->arena;
        const struct json *results = results_of(object), *spec = json_at(object, "spec");
        struct json *answer = json_build(
                a,
                "{'job_id': '%s.%s', 'algorithm_name': %s, 'framework': %s, 'execution_time': %p, "
                "'memory_usage': %p, 'cpu_usage': %p, 'status': %s}",
                s->ns, s->name, json_str_or(spec, "algorithmName", ""),
                json_str_or(json_at(spec, "mlConfig"), "framework", "sklearn"),
                (void *)job_or_null(a, json_at(results, "executionTime")),
                (void *)job_or_null(a, json_at(results, "memoryUsage")),
                (void *)job_or_null(a, json_at(results, "cpuUsage")), job_status(s));

        set_error(a, answer, s);
        return answer;
}

static struct json *selected_count(struct arena *a, const struct json *ml)
{
        const struct json *selected = json_at(ml, "selectedFeatures");

        return selected ? json_u64(a, json_len(selected)) : json_null(a);
}

static void tell_selection(struct call *c, const struct json *object, const struct summary *s)
{
        struct json *answer = ml_answer(c, object, s);

        json_set(&c->arena, answer, "selected_features_count",
                 selected_count(&c->arena, json_at(results_of(object), "mlResults")));
        call_reply(c, 200, answer);
}

static void tell_training(struct call *c, const struct json *object, const struct summary *s)
{
        const struct json *ml = json_at(results_of(object), "mlResults");
        struct json *answer = ml_answer(c, object, s);

        json_set(&c->arena, answer, "accuracy", job_or_null(&c->arena, json_at(ml, "accuracy")));
        call_reply(c, 200, answer);
}

static void tell_tuning(struct call *c, const struct json *object, const struct summary *s)
{
        const struct json *ml = json_at(results_of(object), "mlResults");
        struct json *answer = ml_answer(c, object, s);

        json_set(&c->arena, answer, "accuracy", job_or_null(&c->arena, json_at(ml, "accuracy")));
        json_set(&c->arena, answer, "best_params", job_or_null(&c->arena, json_at(ml, "bestParams")));
        call_reply(c, 200, answer);
}

static void create_model(struct call *c, const char *task, const char *word,
                         void (*tell)(struct call *c, const struct json *object, const struct summary *s))
{
        struct arena *a = &c->arena;
        const struct json *b = c->body;
        const char *first = json_str_or(b, word, ""), *method = json_str(b, "method");
        const char *name = arena_printf(a, "%s_%s", first, task);
        struct json *parameters = method ? json_build(a, "{'method': %s}", method) : NULL;

        job_create(c, profilings(),
                   json_build(a,
                              "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmProfiling', "
                              "'metadata': {'generateName': %s, 'labels': {'app': 'dprofiler'}}, 'spec': "
                              "{'algorithmName': %s, 'algorithmType': 'ml', 'inputSize': %p, 'iterations': "
                              "%p, 'parameters': %p, 'mlConfig': {'framework': %p, 'task': %s, 'algorithm': "
                              "%p, 'datasetSize': %p, 'nFeatures': %p, 'nSelect': %p}}}",
                              job_prefix(a, name), name, (void *)json_copy(a, json_at(b, "dataset_size")),
                              (void *)json_copy(a, json_at(b, "iterations")), (void *)parameters,
                              (void *)json_copy(a, json_at(b, "framework")), task,
                              (void *)json_copy(a, json_at(b, "algorithm")),
                              (void *)json_copy(a, json_at(b, "dataset_size")),
                              (void *)json_copy(a, json_at(b, "n_features")),
                              (void *)json_copy(a, json_at(b, "n_select"))),
                   true, tell);
}

void serve_ml_selection(struct call *c)
{
        create_model(c, "feature_selection", "method", tell_selection);
}

void serve_ml_tuning(struct call *c)
{
        create_model(c, "hyperparameter_tuning", "algorithm", tell_tuning);
}

void serve_ml_training(struct call *c)
{
        create_model(c, "distributed_training", "algorithm", tell_training);
}

/* ---- frameworks against each other */

static struct json *result_row(struct arena *a, const struct json *r)
{
        const struct json *ml = json_at(r, "mlResults");
        struct json *row = json_build(
                a,
                "{'framework': %p, 'algorithm_name': %s, 'execution_time': %p, 'memory_usage': %p, "
                "'cpu_usage': %p, 'accuracy': %p, 'selected_features_count': %p, 'best_params': %p}",
                (void *)job_or_null(a, json_at(r, "framework")), json_str_or(r, "algorithmName", ""),
                (void *)job_or_null(a, json_at(r, "executionTime")),
                (void *)job_or_null(a, json_at(r, "memoryUsage")),
                (void *)job_or_null(a, json_at(r, "cpuUsage")),
                (void *)job_or_null(a, json_at(r, "accuracy")), (void *)selected_count(a, ml),
                (void *)job_or_null(a, json_at(ml, "bestParams")));

        json_set(a, row, "error_message", json_string(a, json_str(json_at(r, "error"), "message")));
        return row;
}

static void tell_frameworks(struct call *c, const struct json *object, const struct summary *s)
{
        struct arena *a = &c->arena;
        struct json *rows = json_array(a), *answer;

        json_foreach (r, results_of(object))
                json_append(rows, result_row(a, r));
        answer = json_build(a,
                            "{'job_id': '%s.%s', 'comparison_id': '%s.%s', 'algorithm': %s, 'dataset_size': "
                            "%p, 'n_features': %p, 'results': %p, 'status': %s}",
                            s->ns, s->name, s->ns, s->name, json_str(c->body, "algorithm"),
                            (void *)json_copy(a, json_at(c->body, "dataset_size")),
                            (void *)json_copy(a, json_at(c->body, "n_features")), (void *)rows,
                            job_status(s));
        set_error(a, answer, s);
        call_reply(c, 200, answer);
}

static bool has_task(const struct json *framework, const char *task)
{
        json_foreach (one, json_at(framework, "tasks"))
                if (streq(json_cstr(one), task))
                        return true;
        return false;
}

static const struct json *ml_table(struct arena *a)
{
        return json_parse(a, str_of(ML_TABLE), NULL, NULL);
}

void serve_ml_frameworks_compared(struct call *c)
{
        struct arena *a = &c->arena;
        const char *task = json_str(c->body, "algorithm");
        const struct json *all = json_at(ml_table(a), "frameworks");
        struct json *algorithms = json_array(a);

        json_foreach (f, all)
                if (has_task(f, task))
                        json_append(algorithms,
                                    json_build(a,
                                               "{'name': '%s_%s', 'type': 'ml', 'framework': %s, 'mlConfig': "
                                               "{'framework': %s, 'task': %s, 'nFeatures': %p}}",
                                               f->key, task, f->key, f->key, task,
                                               (void *)json_copy(a, json_at(c->body, "n_features"))));
        job_create(c, comparisons(),
                   json_build(a,
                              "{'apiVersion': 'dprofiler.io/v1alpha1', 'kind': 'AlgorithmComparison', "
                              "'metadata': {'generateName': %s, 'labels': {'app': 'dprofiler'}}, 'spec': "
                              "{'algorithms': %p, 'inputSize': %p}}",
                              job_prefix(a, task), (void *)algorithms,
                              (void *)json_copy(a, json_at(c->body, "dataset_size"))),
                   true, tell_frameworks);
}

/* ---- what there is */

void serve_ml_frameworks(struct call *c)
{
        struct arena *a = &c->arena;
        const struct json *known = json_at(ml_table(a), "frameworks");
        struct json *names = json_array(a), *all = json_object(a);

        json_foreach (f, known) {
                json_append(names, json_string(a, f->key));
                json_set(a, all, f->key, json_truth(a, true));
        }
        call_reply(c, 200,
                   json_build(a, "{'available_frameworks': %p, 'all_frameworks': %p}", (void *)names,
                              (void *)all));
}

/* The frameworks that have TASK and, with NAME, that algorithm. */
static struct json *having(struct arena *a, const struct json *table, const char *task, const char *name)
{
        struct json *list = json_array(a);

        json_foreach (f, json_at(table, "frameworks"))
                if (has_task(f, task) && (!name || json_at(json_at(f, "algorithms"), name)))
                        json_append(list, json_string(a, f->key));
        return list;
}

static struct json *by_algorithm(struct arena *a, const struct json *table, const char *task)
{
        struct json *out = json_object(a);

        json_foreach (name, json_at(table, "algorithms")) {
                struct json *frameworks = having(a, table, task, json_cstr(name));

                if (json_first(frameworks))
                        json_set(a, out, json_cstr(name), frameworks);
        }
        return out;
}

void serve_ml_supported(struct call *c)
{
        static const char *const methods[] = {"filter", "wrapper", "embedded"};
        struct arena *a = &c->arena;
        const struct json *table = ml_table(a);
        struct json *selection = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                json_set(a, selection, methods[i], having(a, table, "feature_selection", NULL));
        call_reply(c, 200,
                   json_build(a,
                              "{'feature_selection': %p, 'hyperparameter_tuning': %p, "
                              "'distributed_training': %p}",
                              (void *)selection, (void *)by_algorithm(a, table, "hyperparameter_tuning"),
                              (void *)by_algorithm(a, table, "distributed_training")));
}

void serve_ml_cleanup(struct call *c)
{
        call_reply(c, 200,
                   json_build(&c->arena, "{'message': 'nothing is kept between runs; there is nothing to "
                                         "clean up'}"));
}

/* ---- what came out so far, of runs that the caller may see */

enum { MEANS = 4 };

static const struct {
        const char *member, *word;
} means[MEANS] = {
        {"executionTime", "avg_execution_time"},
        {"memoryUsage", "avg_memory_usage"},
        {"cpuUsage", "avg_cpu_usage"},
        {"accuracy", "avg_accuracy"},
};

struct group {
        const char *key;
        double sum[MEANS];
        size_t n[MEANS];
};

static struct group *group_of(struct arena *a, struct map *groups, const char *framework, const char *name)
{
        const char *key = arena_printf(a, "%s_%s", framework, name);
        struct group *g = map_get(groups, str_of(key));

        if (!g) {
                g = arena_new(a, struct group);
                g->key = key;
                map_put(groups, str_of(key), g);
        }
        return g;
}

static void add_run(struct group *g, const struct json *results)
{
        for (size_t i = 0; i < MEANS; i++) {
                const struct json *of = i == MEANS - 1 ? json_at(results, "mlResults") : results;
                double value;

                if (json_to_double(json_at(of, means[i].member), &value)) {
                        g->sum[i] += value;
                        g->n[i]++;
                }
        }
}

static void add_name(struct arena *a, struct json *list, const char *name)
{
        json_foreach (one, list)
                if (streq(json_cstr(one), name))
                        return;
        json_append(list, json_string(a, name));
}

static struct json *group_json(struct arena *a, const struct group *g)
{
        struct json *out = json_object(a);

        for (size_t i = 0; i < MEANS; i++)
                json_set(a, out, means[i].word,
                         g->n[i] ? json_double(a, g->sum[i] / (double)g->n[i]) : json_null(a));
        return out;
}

static void tell_summary(struct call *c, const struct run_filter *filter)
{
        struct arena *a = &c->arena;
        size_t kind = feed_index(profilings()), at = 0, runs = 0;
        struct cache *cache = feed_cache(c->web->feed, kind);
        struct json *frameworks = json_array(a), *names = json_array(a), *out = json_object(a);
        _cleanup_(map_done) struct map groups = MAP_INIT;
        const struct cache_entry *e;
        struct group *g;

        while ((e = cache_next(cache, &at))) {
                const struct json *object, *spec;
                const char *framework, *name;

                if (!feed_concerns(filter, kind, e->ns) || !caller_sees(c->caller, kind, e->ns))
                        continue;
                object = cache_parse(cache, e, a);
                spec = json_at(object, "spec");
                if (!streq(json_str(spec, "algorithmType"), "ml") || !results_of(object))
                        continue;
                framework = json_str_or(json_at(spec, "mlConfig"), "framework", "sklearn");
                name = json_str_or(spec, "algorithmName", "");
                add_name(a, frameworks, framework);
                add_name(a, names, name);
                add_run(group_of(a, &groups, framework, name), results_of(object));
                runs++;
        }
        map_foreach (i, &groups, g)
                json_set(a, out, g->key, group_json(a, g));
        if (!runs)
                call_reply(c, 200, json_build(a, "{'message': 'No ML profiling results available'}"));
        else
                call_reply(c, 200,
                           json_build(a,
                                      "{'total_runs': %zu, 'frameworks_used': %p, 'algorithms_profiled': %p, "
                                      "'performance_summary': %p}",
                                      runs, (void *)frameworks, (void *)names, (void *)out));
}

void serve_ml_summary(struct call *c)
{
        json_set(&c->arena, c->query, "kind", json_string(&c->arena, ALGORITHMPROFILING.plural));
        runs_ask(c, tell_summary);
}
