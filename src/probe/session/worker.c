/*
 * A worker: runs what the coordinator sends, in a container of its own, and ends with the connection.
 */
#include <signal.h>

#include "probe/session/internal.h"

enum { EXIT_REFUSED = 2 };

static const usec_t wait_default = 10 * 60 * USEC_PER_SEC, try_again = 100 * USEC_PER_MS,
                    usage_every = USEC_PER_SEC;

struct worker {
        const struct session_config *config;
        const struct session_measure *measure;
        struct loop *loop;
        unsigned group;
        struct wire wire;
        struct crew *crew;
        struct timer connect, usage;
        usec_t give_up;
        int status;
};

static void stop_loop(struct worker *w, int status)
{
        w->status = status;
        loop_stop(w->loop, status);
}

static void on_done(void *arg, unsigned id, const struct measure_sample *sample)
{
        struct worker *w = arg;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        wire_send(&w->wire, wire_sample(&a, id, sample));
        if (!crew_busy(w->crew))
                timer_cancel(&w->usage);
}

static void start(struct worker *w, const struct session_job *job)
{
        crew_start(w->crew, job);
        if (!timer_pending(&w->usage))
                timer_after(&w->usage, usage_every);
}

static void on_line(struct wire *wire, struct str line)
{
        struct worker *w = CONTAINER_OF(wire, struct worker, wire);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct wire_message m = {0};
        struct err err = ERR_INIT;

        if (wire_parse(&a, line, &m, &err) == 0 && m.kind == WIRE_RUN) {
                start(w, &m.job);
                return;
        }
        LOG_ERROR(w->config->log, "The coordinator speaks otherwise than it should", F_ERR(&err));
        stop_loop(w, 1);
}

/* The session is over, however; what still runs ends with us. */
static void on_end(struct wire *wire)
{
        stop_loop(CONTAINER_OF(wire, struct worker, wire), 0);
}

static void on_usage(struct timer *t)
{
        struct worker *w = CONTAINER_OF(t, struct worker, usage);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_usage usage = crew_usage(w->crew);

        wire_send(&w->wire, wire_usage(&a, &usage));
        timer_after(t, usage_every);
}

static void on_connect(struct timer *t)
{
        struct worker *w = CONTAINER_OF(t, struct worker, connect);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        int fd = wire_connect(w->config->ctl, &err);

        if (fd >= 0 && wire_attach(&w->wire, fd, &err) == 0) {
                wire_send(&w->wire, wire_hello(&a, w->group));
                return;
        }
        if (loop_now(w->loop) >= w->give_up) {
                LOG_ERROR(w->config->log, "No coordinator came", F_ERR(&err));
                stop_loop(w, 1);
                return;
        }
        timer_after(t, try_again);
}

static void on_signal(void *arg, int signo)
{
        stop_loop(arg, 128 + signo);
}

int session_worker(const struct session_config *c, unsigned group)
{
        struct clock real = CLOCK_REAL;
        struct err err = ERR_INIT;
        struct worker w = {
                .config = c,
                .measure = c->measure ? c->measure : &SESSION_MEASURE,
                .group = group,
        };

        if (group < 1 || group >= SESSION_GROUPS_MAX) {
                LOG_ERROR(c->log, "A worker's group is a number from 1", F_UINT("group", group));
                return EXIT_REFUSED;
        }
        w.loop = loop_new(c->clock ? c->clock : &real, c->log, &err);
        if (!w.loop) {
                LOG_ERROR(c->log, "Cannot start", F_ERR(&err));
                return 1;
        }
        w.crew = crew_new(w.loop, w.measure, c->ctl, group, on_done, &w);
        wire_init(&w.wire, w.loop, on_line, on_end);
        timer_init(&w.connect, w.loop, on_connect);
        timer_init(&w.usage, w.loop, on_usage);
        w.give_up = usec_add(loop_now(w.loop), c->worker_wait ? c->worker_wait : wait_default);
        if (loop_on_signal(w.loop, SIGTERM, on_signal, &w) < 0 ||
            loop_on_signal(w.loop, SIGINT, on_signal, &w) < 0)
                LOG_WARN(c->log, "Cannot wait for signals");
        timer_at(&w.connect, 0);
        (void)loop_run(w.loop);
        crew_free(w.crew);
        timer_cancel(&w.connect);
        timer_cancel(&w.usage);
        wire_close(&w.wire);
        loop_free(w.loop);
        return w.status;
}
