#include "web/internal.h"

/* ---- parameters and bodies */

static const char *const lives[] = {"pending",   "running", "suspended", "scheduled",
                                    "succeeded", "failed",  "cancelled", NULL};
static const char *const job_states[] = {"pending", "running", "completed", "failed", NULL};
static const char *const frameworks[] = {"sklearn", "dask", "spark", "ray", "xgboost", "pytorch", NULL};
static const char *const methods[] = {"filter", "wrapper", "embedded", NULL};
static const char *const models[] = {"random_forest", "logistic_regression", "svm", "neural_network", NULL};
static const char *const tasks[] = {"feature_selection", "hyperparameter_tuning", "distributed_training",
                                    NULL};

#define NAMESPACE                                                                               \
        {                                                                                       \
                "namespace", FIELD_STRING,                                                      \
                        .label = true,                                                          \
                        .help = "of this namespace; without it, of all that the caller may see" \
        }
#define INTO                                                                                     \
        {                                                                                        \
                "namespace", FIELD_STRING,                                                       \
                        .label = true,                                                           \
                        .help = "where it is made; without it, the API's own namespace: default" \
        }
#define WAIT                                                                                           \
        {                                                                                              \
                "wait", FIELD_INTEGER, .least = 0, .most = 600, .otherwise = "30",                     \
                                       .help = "seconds to wait for its end; then the answer has the " \
                                               "status that it is in by then"                          \
        }
#define SIZES(rows, columns)                                                                      \
        {                                                                                         \
                "dataset_size",     FIELD_INTEGER,       .least = 1,                              \
                .most = 1000000000, .otherwise = (rows), .help = "rows"},                         \
        {                                                                                         \
                "n_features", FIELD_INTEGER, .least = 1, .most = 1000000, .otherwise = (columns), \
                                             .help = "columns"                                    \
        }
#define ITERATIONS                                                                        \
        {                                                                                 \
                "iterations", FIELD_INTEGER, .least = 1, .most = 10000, .otherwise = "1", \
                                             .help = "how often it is measured"           \
        }

static const struct field runs_query[] = {
        NAMESPACE,
        {"kind", FIELD_STRING, .help = "dgdr, cudaexp, ap, ac, wprof, or a kind's other names"},
        {"labelSelector", FIELD_STRING, .help = "as the Kubernetes API has it: team=a,stage in (dev, test)"},
        {"life", FIELD_STRING, .words = lives, .help = "how they stand"},
        {0},
};
static const struct field log_query[] = {
        {"container", FIELD_STRING, .help = "instead of the workload's: stage, relay"},
        {"tailLines", FIELD_INTEGER, .least = 1, .most = 10000, .otherwise = "500",
         .help = "the last lines alone"},
        {0},
};
static const struct field history_query[] = {
        NAMESPACE,
        {"kind", FIELD_STRING, .help = "runs of this kind"},
        {"name", FIELD_STRING, .help = "runs of the requests of this name"},
        {"uid", FIELD_STRING, .help = "the run of the request with this uid, with its samples"},
        {"series", FIELD_STRING, .help = "runs that measured this series, and that alone of them"},
        {"limit", FIELD_INTEGER, .least = 1, .most = 1000, .otherwise = "100", .help = "at most so many"},
        {0},
};
static const struct field versus_query[] = {
        {"run", FIELD_STRINGS, .required = true, .least = VERSUS_MIN, .most = VERSUS_MAX,
         .help = "KIND/NAMESPACE/NAME, with #ALGORITHM and @SIZE where it has several; once for each run"},
        {0},
};
static const struct field trend_query[] = {
        {"series", FIELD_STRING, .required = true, .help = "as the measures of the history name it"},
        {0},
};
static const struct field namespace_query[] = {NAMESPACE, {0}};
static const struct field into_query[] = {INTO, {0}};
static const struct field wait_query[] = {INTO, WAIT, {0}};
static const struct field session_body[] = {
        {"token", FIELD_STRING, .required = true, .help = "a bearer token of the API server"},
        {0},
};
static const struct field jobs_query[] = {
        NAMESPACE,
        {"page", FIELD_INTEGER, .least = 1, .most = 1000000, .otherwise = "1", .help = "which page"},
        {"per_page", FIELD_INTEGER, .least = 1, .most = 100, .otherwise = "10", .help = "jobs a page"},
        {"status", FIELD_STRING, .words = job_states, .help = "jobs in this state"},
        {"algorithm_name", FIELD_STRING, .help = "jobs of this algorithm"},
        {0},
};
static const struct field job_body[] = {
        {"algorithm_name", FIELD_STRING, .required = true, .help = "one of /api/v1/algorithms"},
        {"input_size", FIELD_INTEGER, .required = true, .least = 1, .most = 1000000000,
         .help = "how many numbers are sorted"},
        {"parameters", FIELD_OBJECT, .nullable = true, .help = "what the algorithm is told"},
        {"priority", FIELD_INTEGER, .least = 0, .most = 10, .help = "0 to 10; without it 5"},
        ITERATIONS,
        {0},
};
static const struct field uses_query[] = {
        {"worker_id", FIELD_STRING, .help = "this worker alone"},
        {"limit", FIELD_INTEGER, .least = 1, .most = 1000, .otherwise = "100", .help = "at most so many"},
        {0},
};
static const struct field compare_body[] = {
        {"algorithms", FIELD_STRINGS, .required = true, .least = 1, .most = 64,
         .help = "of /api/v1/algorithms, at least one"},
        {"input_size", FIELD_INTEGER, .required = true, .least = 1, .most = 1000000000,
         .help = "how many numbers are sorted"},
        {"parameters_list", FIELD_OBJECTS, .nullable = true, .help = "what each of them is told, in order"},
        {"iterations", FIELD_INTEGER, .least = 1, .most = 100, .otherwise = "1",
         .help = "how often each is measured"},
        {0},
};
static const struct field selection_body[] = {
        {"method", FIELD_STRING, .otherwise = "\"filter\"", .words = methods,
         .help = "how features are chosen"},
        {"framework", FIELD_STRING, .otherwise = "\"sklearn\"", .words = frameworks, .help = "of the model"},
        SIZES("10000", "100"),
        {"n_select", FIELD_INTEGER, .least = 1, .most = 1000000, .otherwise = "20",
         .help = "how many features are kept"},
        ITERATIONS,
        {0},
};
static const struct field tuning_body[] = {
        {"algorithm", FIELD_STRING, .otherwise = "\"random_forest\"", .words = models, .help = "the model"},
        {"framework", FIELD_STRING, .otherwise = "\"sklearn\"", .words = frameworks, .help = "of the model"},
        SIZES("5000", "50"),
        ITERATIONS,
        {0},
};
static const struct field training_body[] = {
        {"algorithm", FIELD_STRING, .otherwise = "\"random_forest\"", .words = models, .help = "the model"},
        {"framework", FIELD_STRING, .otherwise = "\"dask\"", .words = frameworks, .help = "of the model"},
        SIZES("100000", "100"),
        ITERATIONS,
        {0},
};
static const struct field frameworks_body[] = {
        {"algorithm", FIELD_STRING, .otherwise = "\"feature_selection\"", .words = tasks, .help = "the task"},
        SIZES("10000", "100"),
        {0},
};

/* ---- the paths. Of two that fit one the first counts. */

#define RUN "/api/v1/runs/{resource}/{namespace}/{name}"

const struct endpoint ENDPOINTS[] = {
        {"GET", "/health", serve_health, "Whether it works; always 200", "Health", .open = true,
         .plain = true},
        {"GET", "/ready", serve_ready, "Whether all is known; 503 until then", "Ready", .open = true,
         .plain = true},
        {"GET", "/metrics", serve_metrics, "Prometheus metrics", "text/plain", .open = true, .plain = true},
        {"GET", "/api/v1/openapi.json", serve_openapi, "This description", "object", .open = true},

        {"GET", "/api/v1/session", serve_session, "Whether the token or the cookie is good", "Session",
         .open = true},
        {"POST", "/api/v1/session", serve_session_begin, "Exchanges a token for a cookie", NULL,
         .body = session_body, .status = 204, .open = true},
        {"DELETE", "/api/v1/session", serve_session_end, "Takes the cookie back", NULL, .status = 204,
         .open = true},

        {"GET", "/api/v1/runs", serve_runs, "Runs of every kind", "RunList", .query = runs_query},
        {"GET", "/api/v1/runs/stream", serve_runs_stream, "Server-sent events: sync, then run and gone",
         "text/event-stream", .query = runs_query},
        {"GET", RUN, serve_run, "One run and its object", "RunDetail"},
        {"GET", RUN "/events", serve_run_events, "Events about a run, the newest first", "EventList"},
        {"GET", RUN "/log", serve_run_log, "What its workload has written", "text/plain", .query = log_query},
        {"GET", RUN "/data", serve_run_data, "What it has measured and left", "RunData"},
        {"POST", RUN "/cancel", serve_run_steer, "Ends a run for good", "Run"},
        {"POST", RUN "/suspend", serve_run_steer, "Stops a run; what was measured is kept", "Run"},
        {"POST", RUN "/resume", serve_run_steer, "Lets a suspended run go on", "Run"},
        {"POST", RUN "/rerun", serve_run_again, "Makes the same request once more", "Run", .status = 201},

        {"GET", "/api/v1/history", serve_history, "Finished runs, the newest first", "HistoryList",
         .query = history_query},
        {"GET", "/api/v1/history/trend", serve_trend, "One series, run after run, and where it has changed",
         "Trend", .query = trend_query},
        {"GET", "/api/v1/queue", serve_queue, "What waits to begin, in order", "Queue",
         .query = namespace_query},

        {"POST", "/api/v1/jobs", serve_job_create, "Measures an algorithm", "Job", .query = into_query,
         .body = job_body},
        {"GET", "/api/v1/jobs", serve_jobs, "Jobs, the newest first", "JobList", .query = jobs_query},
        {"GET", "/api/v1/jobs/{job_id}", serve_job, "One job", "Job", .query = into_query},
        {"GET", "/api/v1/jobs/{job_id}/results", serve_job_results, "What a job has measured", "Result[]",
         .query = into_query},
        {"DELETE", "/api/v1/jobs/{job_id}", serve_job_delete, "Deletes a job, and ends it if it runs",
         "Message", .query = into_query},
        {"GET", "/api/v1/workers", serve_workers, "The nodes", "Worker[]"},
        {"GET", "/api/v1/workers/{worker_id}", serve_worker, "One node", "Worker"},
        {"GET", "/api/v1/metrics", serve_uses, "How the nodes are used, as far as that is known",
         "WorkerUse[]", .query = uses_query},
        {"GET", "/api/v1/compare", serve_compare, "Finished runs side by side", "Versus",
         .query = versus_query},
        {"POST", "/api/v1/compare", serve_compare_create, "Compares algorithms", "ComparisonCreated",
         .query = into_query, .body = compare_body},
        {"GET", "/api/v1/algorithms", serve_algorithms, "The built-in algorithms", "Algorithm[]"},
        {"POST", "/api/v1/ml/feature-selection", serve_ml_selection, "Selects features", "Selection",
         .query = wait_query, .body = selection_body},
        {"POST", "/api/v1/ml/hyperparameter-tuning", serve_ml_tuning, "Tunes a model", "Tuning",
         .query = wait_query, .body = tuning_body},
        {"POST", "/api/v1/ml/distributed-training", serve_ml_training, "Trains a model in parts", "Training",
         .query = wait_query, .body = training_body},
        {"POST", "/api/v1/ml/compare-frameworks", serve_ml_frameworks_compared,
         "Compares the frameworks at one task", "FrameworksCompared", .query = wait_query,
         .body = frameworks_body},
        {"GET", "/api/v1/ml/summary", serve_ml_summary, "What models have taken so far", "MlSummary",
         .query = namespace_query},
        {"GET", "/api/v1/ml/frameworks/available", serve_ml_frameworks, "Frameworks that have an adapter",
         "Frameworks"},
        {"GET", "/api/v1/ml/algorithms/supported", serve_ml_supported, "Which framework has what", "object"},
        {"POST", "/api/v1/ml/cleanup", serve_ml_cleanup, "Nothing is left to clean up", "Message"},
        {0},
};

/* ---- finding one */

/* Whether PATH is as TEMPLATE says, with what stands for {x} in PARAMS. */
static bool fits(const char *template, struct str path, const char *params[PARAMS_MAX], struct arena *a)
{
        struct str want = str_of(template);
        size_t n = 0;

        while (want.p && path.p) {
                struct str w = str_split(&want, '/'), p = str_split(&path, '/');

                if (w.n && w.p[0] == '{') {
                        char *text = p.n && n < PARAMS_MAX ? url_decode(p, a) : NULL;

                        if (!text || !utf8_valid(text, strlen(text)))
                                return false;
                        params[n++] = text;
                } else if (!str_eq(w, p)) {
                        return false;
                }
        }
        return !want.p && !path.p;
}

const struct endpoint *endpoint_find(struct str method, struct str path, const char *params[PARAMS_MAX],
                                     const char **ret_allow, struct arena *a)
{
        bool head = str_eq(method, STR("HEAD"));

        *ret_allow = NULL;
        for (const struct endpoint *e = ENDPOINTS; e->method; e++) {
                if (!fits(e->path, path, params, a))
                        continue;
                if (str_eq(method, str_of(e->method)) || (head && streq(e->method, "GET")))
                        return e;
                *ret_allow = *ret_allow ? arena_printf(a, "%s, %s", *ret_allow, e->method) : e->method;
        }
        return NULL;
}
