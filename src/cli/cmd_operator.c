#include "cli/cli.h"
#include "cli/operators.h"
#include "cli/web_options.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define LEASE_NAME "sonde-operator"
/* A pod has 30 s to end; what has not been answered by then is decided again by the next one. */
#define DRAIN_MAX (20 * USEC_PER_SEC)
/* Memory is given back once what the start needed has been done, and from time to time. */
#define TRIM_FIRST (5 * USEC_PER_SEC)
#define TRIM_EVERY (60 * USEC_PER_SEC)

struct app {
        struct kube_config_sources sources;
        struct operators_config run;
        struct option_list env;
        struct web_options api;
        const char *lease_ns, *health_address, *metrics_address, *log_format, *log_level;
        bool leader_elect;

        struct clock clock;
        struct log log;
        struct loop *loop;
        struct kube_config config;
        struct kube *kube, *lease_kube;
        struct lease *lease;
        struct operators *operators; /* NULL: only the API is served */
        struct history *history;     /* of that */
        struct web *web;
        struct health *health, *metrics_server;
        struct timer patience, trim;
        int code;
        bool draining, drained;
};

/* ---- memory */

/* Busy or not: it takes milliseconds, and what stands by, with all keys waiting, or never rests, has most to give. */
static void on_trim(struct timer *t)
{
        mem_trim();
        timer_after(t, TRIM_EVERY);
}

/* ---- the end */

static void on_released(void *arg)
{
        struct app *app = arg;

        loop_stop(app->loop, app->code);
}

/* Or what was waited for has lasted too long: the first of the two counts. */
static void on_drained(void *arg)
{
        struct app *app = arg;

        timer_cancel(&app->patience);
        if (app->drained)
                return;
        app->drained = true;
        if (app->lease)
                lease_release(app->lease, on_released, app);
        else
                loop_stop(app->loop, app->code);
}

static void on_patience_over(struct timer *t)
{
        struct app *app = CONTAINER_OF(t, struct app, patience);

        LOG_WARN(&app->log, "Ending although requests are still in work");
        on_drained(app);
}

/* What was begun is finished, the lease given back; a second signal ends at once. */
static void on_signal(void *arg, int signo)
{
        struct app *app = arg;

        app->code = signo == SIGINT ? EXIT_INTERRUPTED : 0;
        if (app->draining) {
                loop_stop(app->loop, app->code);
                return;
        }
        app->draining = true;
        LOG_INFO(&app->log, "Ending after what is in work", F_INT("signal", signo));
        if (!app->operators) {
                loop_stop(app->loop, app->code);
                return;
        }
        timer_after(&app->patience, DRAIN_MAX);
        operator_drain(operators_operator(app->operators), on_drained, app);
}

/* ---- leading */

static void on_acquired(void *arg)
{
        struct app *app = arg;

        LOG_INFO(&app->log, "Became the leader");
        operator_lead(operators_operator(app->operators));
}

/* Whoever has lost it starts afresh: nothing in memory counts any more. */
static void on_lost(void *arg)
{
        struct app *app = arg;

        LOG_ERROR(&app->log, "Lost the lease; ending", F_STR("leader", lease_leader(app->lease)));
        loop_stop(app->loop, 1);
}

static void on_new_leader(void *arg, const char *identity)
{
        LOG_INFO(&((struct app *)arg)->log, "Saw a leader", F_STR("identity", identity));
}

static int start_lease(struct app *app, struct err *err)
{
        char host[128] = "sonde";
        _cleanup_(free_ptr) char *identity = NULL;
        struct lease_config config = {
                .ns = app->lease_ns ? app->lease_ns : app->config.ns,
                .name = LEASE_NAME,
                .metrics = app->run.metrics,
                .on_acquired = on_acquired,
                .on_lost = on_lost,
                .on_new_leader = on_new_leader,
                .arg = app,
        };

        if (gethostname(host, sizeof(host) - 1) < 0)
                host[0] = '\0';
        identity = xasprintf("%s_%016llx", host, (unsigned long long)rng_next(loop_rng(app->loop)));
        config.identity = identity;
        config.kube = app->lease_kube = kube_new(app->loop, &app->config, NULL, err);
        if (!app->lease_kube)
                return -1;
        app->lease = app->run.lease = lease_new(&config, err);
        return app->lease ? 0 : -1;
}

/* ---- the start */

static bool is_off(const char *address)
{
        return !*address || streq(address, "0");
}

/* Metrics are beside the probes, unless they have an address of their own. */
static int start_servers(struct app *app, struct err *err)
{
        struct operator* op = app->operators ? operators_operator(app->operators) : NULL;
        struct metrics *metrics = app->run.metrics;

        if (!is_off(app->health_address)) {
                app->health = health_new(app->loop, app->health_address, op,
                                         app->metrics_address ? NULL : metrics, err);
                if (!app->health)
                        return err_wrap(err, "--health-probe-bind-address");
        }
        if (app->metrics_address && !is_off(app->metrics_address)) {
                app->metrics_server = health_new(app->loop, app->metrics_address, op, metrics, err);
                if (!app->metrics_server)
                        return err_wrap(err, "--metrics-bind-address");
        }
        return 0;
}

static int start_api(struct app *app, struct err *err)
{
        struct web_config config = {
                .loop = app->loop,
                .server = &app->config,
                .kube = app->kube,
                .op = app->operators ? operators_operator(app->operators) : NULL,
                .history = app->operators ? operators_history(app->operators) : app->history,
                .metrics = app->run.metrics,
                .ns = app->run.ns,
                .listen = app->api.listen,
                .cert_file = app->api.cert,
                .key_file = app->api.key,
                .plain = app->api.plain,
                .hosts = app->api.hosts.v,
                .n_hosts = app->api.hosts.n,
        };

        if (!app->api.listen)
                return 0;
        app->web = web_new(&config, err);
        if (!app->web)
                return err_wrap(err, "--listen");
        LOG_INFO(&app->log, "Serving the API and the page", F_STR("address", app->api.listen),
                 F_UINT("port", web_port(app->web)), F_BOOL("tls", web_has_tls(app->web)));
        return 0;
}

/* The controllers, or what is looked at without them. */
static int start_work(struct app *app, struct err *err)
{
        if (!app->api.api_only) {
                app->operators = operators_new(&app->run, err);
                return app->operators ? 0 : -1;
        }
        if (app->run.history.place) {
                app->run.history.reading = true;
                app->run.history.patient = true; /* an operator may have to make it first */
                app->history = history_open(app->loop, &app->run.history, &app->log, err);
                return app->history ? 0 : -1;
        }
        return 0;
}

static int start(struct app *app, struct err *err)
{
        struct kube_options options = {.metrics = app->run.metrics, .max_connections = app->run.concurrency};

        kube_config_from_env(&app->sources);
        if (kube_config_load(&app->sources, &app->config, err) < 0)
                return -1;
        app->loop = app->run.loop = loop_new(NULL, &app->log, err);
        if (!app->loop)
                return -1;
        timer_init(&app->patience, app->loop, on_patience_over);
        timer_init(&app->trim, app->loop, on_trim);
        timer_after(&app->trim, TRIM_FIRST);
        app->kube = app->run.kube = kube_new(app->loop, &app->config, &options, err);
        if (!app->kube || (app->leader_elect && start_lease(app, err) < 0))
                return -1;
        if (start_work(app, err) < 0 || start_servers(app, err) < 0 || start_api(app, err) < 0)
                return -1;
        loop_on_signal(app->loop, SIGTERM, on_signal, app);
        loop_on_signal(app->loop, SIGINT, on_signal, app);
        if (!app->api.listen) /* whoever asks the API waits for each turn */
                loop_set_pace(app->loop, OPERATOR_PACE);
        LOG_INFO(&app->log, "Started", F_STR("version", SONDE_VERSION), F_STR("server", app->config.source),
                 F_STR("watches", app->run.ns ? app->run.ns : "all namespaces"),
                 F_UINT("port", app->health ? health_port(app->health) : 0));
        if (!app->lease && app->operators)
                operator_lead(operators_operator(app->operators));
        return 0;
}

static void done(struct app *app)
{
        web_free(app->web);
        health_free(app->health);
        health_free(app->metrics_server);
        operators_free(app->operators);
        history_free(app->history);
        lease_free(app->lease);
        kube_free(app->lease_kube);
        kube_free(app->kube);
        kube_config_done(&app->config);
        if (app->loop) {
                timer_cancel(&app->patience);
                timer_cancel(&app->trim);
                loop_free(app->loop);
        }
}

static int run(struct app *app)
{
        _cleanup_(metrics_free) struct metrics *metrics = metrics_new();
        struct err err = ERR_INIT;
        int code = 1;

        (void)signal(SIGPIPE, SIG_IGN); /* whoever read the log has gone: the work goes on */
        fd_allow(WEB_DESCRIPTORS);
        metrics_add_process(metrics);
        app->run.metrics = metrics;
        if (start(app, &err) < 0)
                cli_error("operator: %s", err.text);
        else
                code = loop_run(app->loop);
        done(app);
        return code;
}

/* ---- the command line */

static int check(struct app *app)
{
        const char *from_env = getenv("WATCH_NAMESPACE");
        enum log_level level;
        enum log_format format;
        struct err err = ERR_INIT;

        if (!log_level_parse(str_of(app->log_level), &level)) {
                cli_error("--log-level: '%s' is none of error, warn, info, debug", app->log_level);
                return EXIT_USAGE;
        }
        if (!log_format_parse(str_of(app->log_format), &format)) {
                cli_error("--log-format: '%s' is neither json nor logfmt", app->log_format);
                return EXIT_USAGE;
        }
        for (size_t i = 0; i < app->env.n; i++)
                if (operators_check_env(app->env.v[i], &err) < 0) {
                        cli_error("--profiler-env: %s", err.text);
                        return EXIT_USAGE;
                }
        if (app->lease_ns && !app->leader_elect) {
                cli_error("--leader-elect-namespace needs --leader-elect");
                return EXIT_USAGE;
        }
        if (app->api.api_only && (!app->api.listen || app->leader_elect)) {
                cli_error("--api-only needs --listen, and carries out nothing that --leader-elect is for");
                return EXIT_USAGE;
        }
        if (!app->api.listen && (app->api.cert || app->api.key || app->api.plain || app->api.hosts.n)) {
                cli_error("--tls-cert, --tls-key, --plain-http and --allowed-host need --listen");
                return EXIT_USAGE;
        }
        if (!app->run.ns && from_env && *from_env)
                app->run.ns = from_env;
        if (app->run.ns && !name_valid(NAME_LABEL, str_of(app->run.ns))) {
                cli_error("--namespace: '%s' is no namespace; one can be watched, or all", app->run.ns);
                return EXIT_USAGE;
        }
        app->run.env = app->env.v;
        app->run.n_env = app->env.n;
        log_init(&app->log, STDERR_FILENO, level, format, &app->clock);
        return -1;
}

static const struct usage usage = {
        "operator [OPTION]...",
        "Carries out requests (AlgorithmProfilings and others) in a cluster: in a pod with its service "
        "account,\n"
        "elsewhere with the kubeconfig. The cluster needs their definitions first: 'sonde manifests' prints "
        "them.\n"
        "SIGTERM ends it after what is in work, with exit status 0; without the lease it ends with 1.\n\n"
        "Examples:\n"
        "  sonde operator --kubeconfig ~/.kube/config --namespace team-a --history runs.db\n"
        "  sonde operator --leader-elect --pod-image registry.example.com/sonde-pod:0.1.0\n"
        "  sonde operator --api-only --listen :8000 --tls-cert tls.crt --tls-key tls.key\n",
};

int cmd_operator(int argc, char **argv)
{
        struct app app = {.clock = CLOCK_REAL,
                          .run = {.pod_image = "sonde-pod", .log = &app.log, .history = {HISTORY_KEPT}},
                          .health_address = ":8081",
                          .log_format = "json",
                          .log_level = "info"};
        const struct option_def options[] = {
                {"kubeconfig", 0, "FILE",
                 "kubeconfig to use (default: $KUBECONFIG, the pod's account, ~/.kube)", OPT_STR,
                 &app.sources.kubeconfig},
                {"context", 0, "NAME", "context of the kubeconfig (default: its current one)", OPT_STR,
                 &app.sources.context},
                {"namespace", 'n', "NS", "watch only this namespace (default: $WATCH_NAMESPACE, or all)",
                 OPT_STR, &app.run.ns},
                {"pod-image", 0, "IMAGE", "the image that holds /sonde-pod (default: sonde-pod)", OPT_STR,
                 &app.run.pod_image},
                {"ml-image", 0, "IMAGE",
                 "the image that holds Python and the frameworks of ml algorithms (default: sonde-ml:latest)",
                 OPT_STR, &app.run.ml_image},
                {"no-nodes", 0, NULL, "list no nodes, as it may not: none is preferred for a CUDAExperiment",
                 OPT_FLAG, &app.run.no_nodes},
                {"profiler-env", 0, "NAME=VALUE", "environment for every profiler; may be repeated", OPT_LIST,
                 &app.env},
                {"concurrency", 0, "N", "requests of one kind in work at once (default: 16)", OPT_UINT,
                 &app.run.concurrency},
                {"max-concurrent-runs", 0, "N", "runs under way at once; the others wait (default: no limit)",
                 OPT_UINT, &app.run.limits.runs},
                {"max-concurrent-runs-per-namespace", 0, "N", "the same, of each namespace", OPT_UINT,
                 &app.run.limits.runs_per_namespace},
                {"leader-elect", 0, NULL, "one of several is active: the one that has the Lease " LEASE_NAME,
                 OPT_FLAG, &app.leader_elect},
                {"leader-elect-namespace", 0, "NS", "of the Lease (default: the pod's or the context's)",
                 OPT_STR, &app.lease_ns},
                {"health-probe-bind-address", 0, "ADDR",
                 "/healthz, /readyz and /metrics over HTTP (default: :8081; 0: none)", OPT_STR,
                 &app.health_address},
                {"metrics-bind-address", 0, "ADDR",
                 "/metrics there instead of beside the probes (0: nowhere)", OPT_STR, &app.metrics_address},
                WEB_OPTIONS(&app.api),
                HISTORY_OPTIONS(&app.run.history,
                                "keep finished runs in this SQLite file or at postgres://USER@HOST/DATABASE"),
                {"log-format", 0, "FORMAT", "json or logfmt (default: json)", OPT_STR, &app.log_format},
                {"log-level", 0, "LEVEL", "error, warn, info or debug (default: info)", OPT_STR,
                 &app.log_level},
                {0}};
        int code = options_parse_only(options, &usage, argc, argv);

        if (code < 0)
                code = check(&app);
        if (code < 0)
                code = run(&app);
        vec_done(&app.env);
        vec_done(&app.api.hosts);
        return code;
}
