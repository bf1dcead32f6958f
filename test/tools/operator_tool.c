#include "tools/operator_tool.h"

#include <signal.h>

static void say(const char *what)
{
        printf("%s\n", what);
        fflush(stdout);
}

/* Between the lease's yes and the first byte: where a stopped or killed process does the most harm. */
static bool before_send(void *arg)
{
        struct operator_tool *app = arg;

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
        struct operator_tool *app = arg;

        say("leading");
        operator_lead(app->op);
}

static void on_lost(void *arg)
{
        struct operator_tool *app = arg;

        say("lost");
        loop_stop(app->loop, 3);
}

static void on_idle_check(struct timer *t)
{
        struct operator_tool *app = CONTAINER_OF(t, struct operator_tool, idle);
        bool idle = operator_idle(app->op);
        usec_t busy;

        if (!app->said_synced && operator_synced(app->op)) {
                app->said_synced = true;
                say("synced");
        }
        /* Also when it was busy only between two looks. */
        if (idle && (!app->said_idle || app->writes != app->said_writes)) {
                app->said_writes = app->writes;
                printf("idle after %u writes\n", app->writes), fflush(stdout);
        }
        if (idle || app->said_idle)
                app->busy_since = loop_now(app->loop);
        app->said_idle = idle;
        if (idle && app->exit_when_idle)
                loop_stop(app->loop, 0);
        /* Rarely, where it is busy for long: to be looked at is no part of its work. */
        busy = usec_sub(loop_now(app->loop), app->busy_since);
        timer_after(t, MIN(MAX(busy / 20, 20 * USEC_PER_MS), 500 * USEC_PER_MS));
}

static void on_released(void *arg)
{
        loop_stop(((struct operator_tool *)arg)->loop, 0);
}

static void on_drained(void *arg)
{
        struct operator_tool *app = arg;

        if (app->lease)
                lease_release(app->lease, on_released, app);
        else
                loop_stop(app->loop, 0);
}

static void on_signal(void *arg, int signo)
{
        operator_drain(((struct operator_tool *)arg)->op, on_drained, arg);
}

static int start(struct operator_tool *app, const struct controller *controller, struct metrics *metrics,
                 struct err *err)
{
        const struct kube_config *config = &app->tool.config;
        const struct controller *controllers[] = {controller};
        _cleanup_(free_ptr) char *agent = xasprintf("sonde/%s %s/%s", SONDE_VERSION, controller->name,
                                                    app->identity);
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
                .limits = app->limits,
                .metrics = metrics,
                .may_send = before_send,
                .arg = app,
        };

        oc.kube = app->kube = kube_new(app->loop, config, &options, err);
        if (!app->kube)
                return -1;
        if (app->history_file) {
                oc.history = app->history = history_open(
                        app->loop, &(struct history_config){.place = app->history_file}, &app->tool.log, err);
                if (!app->history)
                        return -1;
        }
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

int operator_tool_run(struct operator_tool *app, const struct controller *controller)
{
        _cleanup_(metrics_free) struct metrics *metrics = metrics_new();
        _cleanup_(loop_free) struct loop *loop = NULL;
        struct health *health = NULL;
        struct err err = ERR_INIT;
        int code = 1;

        metrics_add_process(metrics);
        app->loop = loop = loop_new(NULL, &app->tool.log, &err);
        if (!loop || start(app, controller, metrics, &err) < 0)
                goto out;
        if (app->health) {
                health = health_new(loop, app->health, app->op, metrics, &err);
                if (!health)
                        goto out;
        }
        loop_on_signal(loop, SIGTERM, on_signal, app);
        loop_on_signal(loop, SIGINT, on_signal, app);
        app->busy_since = loop_now(loop);
        timer_init(&app->idle, loop, on_idle_check);
        timer_after(&app->idle, 0);
        code = loop_run(loop);
out:
        if (err.code)
                cli_error("%s", err.text);
        health_free(health);
        operator_free(app->op);
        history_free(app->history);
        lease_free(app->lease);
        kube_free(app->lease_kube);
        kube_free(app->kube);
        return code;
}
