/*
 * example-operator - the example controller as a program, with hooks that fail it at chosen points.
 *
 * One line on standard output for each thing a test waits for: "synced", "leading", "idle", "lost", "write N".
 */
#include <signal.h>

#include "operator/operator.h"
#include "tools/example/example.h"
#include "tools/tool.h"

struct app {
        struct tool tool;
        const char *ns, *lease_name, *identity, *health;
        unsigned kill_at, stop_at, connections;
        usec_t lease_duration;
        bool samples, exit_when_idle;

        struct loop *loop;
        struct kube *kube, *lease_kube;
        struct lease *lease;
        struct operator* op;
        struct timer idle;
        unsigned writes, said_writes;
        bool said_synced, said_idle;
};

static void say(const char *what)
{
        printf("%s\n", what);
        fflush(stdout);
}

/* Between the lease's yes and the first byte: where a stopped or killed process does the most harm. */
static bool before_send(void *arg)
{
        struct app *app = arg;

        app->writes++;
        if (app->writes == app->kill_at)
                raise(SIGKILL);
        if (app->writes == app->stop_at) {
                say("stopping");
                raise(SIGSTOP);
        }
        return true;
}

static void on_acquired(void *arg)
{
        struct app *app = arg;

        say("leading");
        operator_lead(app->op);
}

static void on_lost(void *arg)
{
        struct app *app = arg;

        say("lost");
        loop_stop(app->loop, 3);
}

static void on_idle_check(struct timer *t)
{
        struct app *app = CONTAINER_OF(t, struct app, idle);
        bool idle = operator_idle(app->op);

        if (!app->said_synced && operator_synced(app->op)) {
                app->said_synced = true;
                say("synced");
        }
        /* Also when it was busy only between two looks. */
        if (idle && (!app->said_idle || app->writes != app->said_writes)) {
                app->said_writes = app->writes;
                printf("idle after %u writes\n", app->writes), fflush(stdout);
        }
        app->said_idle = idle;
        if (idle && app->exit_when_idle)
                loop_stop(app->loop, 0);
        timer_after(t, 20 * USEC_PER_MS);
}

static void on_released(void *arg)
{
        loop_stop(((struct app *)arg)->loop, 0);
}

static void on_drained(void *arg)
{
        struct app *app = arg;

        if (app->lease)
                lease_release(app->lease, on_released, app);
        else
                loop_stop(app->loop, 0);
}

static void on_signal(void *arg, int signo)
{
        operator_drain(((struct app *)arg)->op, on_drained, arg);
}

static int start(struct app *app, struct metrics *metrics, struct err *err)
{
        const struct kube_config *config = &app->tool.config;
        const struct controller *controllers[] = {app->samples ? &EXAMPLE_SAMPLES : &EXAMPLE_CONFIGMAPS};
        _cleanup_(free_ptr) char *agent = xasprintf("sonde/%s example/%s", SONDE_VERSION, app->identity);
        struct kube_options options = {
                .user_agent = agent, .metrics = metrics, .max_connections = app->connections};
        struct lease_config lease = {
                .ns = app->ns ? app->ns : config->ns,
                .name = app->lease_name,
                .identity = app->identity,
                .duration = app->lease_duration,
                .renew_deadline = app->lease_duration / 3 * 2,
                .retry_period = app->lease_duration / 6,
                .on_acquired = on_acquired,
                .on_lost = on_lost,
                .arg = app,
        };
        struct operator_config oc = {
                .loop = app->loop,
                .controllers = controllers,
                .n_controllers = ARRAY_LEN(controllers),
                .ns = app->ns,
                .concurrency = app->connections,
                .metrics = metrics,
                .may_send = before_send,
                .arg = app,
        };

        oc.kube = app->kube = kube_new(app->loop, config, &options, err);
        if (!app->kube)
                return -1;
        if (app->lease_name) {
                lease.kube = app->lease_kube = kube_new(app->loop, config, NULL, err);
                oc.lease = app->lease = app->lease_kube ? lease_new(&lease, err) : NULL;
                if (!app->lease)
                        return -1;
        }
        loop_set_pace(app->loop, OPERATOR_PACE);
        app->op = operator_new(&oc);
        if (!app->lease)
                operator_lead(app->op);
        return 0;
}

static int run(struct app *app)
{
        _cleanup_(metrics_free) struct metrics *metrics = metrics_new();
        _cleanup_(loop_free) struct loop *loop = NULL;
        struct health *health = NULL;
        struct err err = ERR_INIT;
        int code = 1;

        metrics_add_process(metrics);
        app->loop = loop = loop_new(NULL, &app->tool.log, &err);
        if (!loop || start(app, metrics, &err) < 0)
                goto out;
        if (app->health) {
                health = health_new(loop, app->health, app->op, metrics, &err);
                if (!health)
                        goto out;
        }
        loop_on_signal(loop, SIGTERM, on_signal, app);
        loop_on_signal(loop, SIGINT, on_signal, app);
        timer_init(&app->idle, loop, on_idle_check);
        timer_after(&app->idle, 0);
        code = loop_run(loop);
out:
        if (err.code)
                cli_error("%s", err.text);
        health_free(health);
        operator_free(app->op);
        lease_free(app->lease);
        kube_free(app->lease_kube);
        kube_free(app->kube);
        return code;
}

int main(int argc, char **argv)
{
        static struct app app = {
                .lease_duration = 15 * USEC_PER_SEC, .connections = 16, .identity = "example"};
        static const struct option_def options[] = {
                TOOL_OPTIONS(&app.tool),
                {"namespace", 'n', "NS", "only this namespace", OPT_STR, &app.ns},
                {"samples", 0, NULL, "requests are Samples, not ConfigMaps", OPT_FLAG, &app.samples},
                {"connections", 0, "N", "connections and requests in work at once", OPT_UINT,
                 &app.connections},
                {"lease", 0, "NAME", "compete for this Lease", OPT_STR, &app.lease_name},
                {"identity", 0, "NAME", "our name in the Lease", OPT_STR, &app.identity},
                {"lease-duration", 0, "TIME", "how long the Lease lasts", OPT_DURATION, &app.lease_duration},
                {"health", 0, "ADDRESS", "serve health and metrics there", OPT_STR, &app.health},
                {"exit-when-idle", 0, NULL, "end when there is nothing left to do", OPT_FLAG,
                 &app.exit_when_idle},
                {"kill-at", 0, "N", "SIGKILL ourselves before the Nth write leaves", OPT_UINT, &app.kill_at},
                {"stop-at", 0, "N", "SIGSTOP ourselves before the Nth write leaves", OPT_UINT, &app.stop_at},
                {0},
        };
        int code = tool_init(&app.tool, options, argc, argv);

        if (code >= 0)
                return code;
        code = run(&app);
        tool_done(&app.tool);
        return code;
}
