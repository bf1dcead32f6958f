#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "probe/load/load_private.h"

enum { PROGRESS_MS = 100 };
#define BEGIN_AHEAD ((uint64_t)2 * 1000 * 1000) /* ns: until all workers know */
#define SHARE_AFTER 0.1                         /* s: in less time the share of the CPU says nothing */

struct run {
        const struct load_config *c;
        struct load_plan plan;
        struct load_worker *workers[LOAD_WORKERS_MAX];
        unsigned n;
        struct clock clock;
        bool stopped;
};

/* ---- is anybody there? */

struct greeting {
        struct loop *loop;
        struct err *err;
        struct io stop;
        int result; /* 1: well; 0: told to stop */
};

static bool never(void *arg)
{
        return false;
}

static void greeted(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct greeting *g = arg;

        /* Held back at the last moment: all before it went well. */
        if (!err || err->code == E_CANCELED)
                g->result = 1;
        else if (g->err)
                *g->err = *err;
        loop_stop(g->loop, 0);
}

/* A wish to stop is still there when the workers are told what to do. */
static void not_greeted(struct io *io, uint32_t events)
{
        struct greeting *g = CONTAINER_OF(io, struct greeting, stop);

        g->result = 0;
        loop_stop(g->loop, 0);
}

/* Makes one connection, TLS and all, and sends nothing. */
static int greet(const struct load_config *c, struct err *err)
{
        static const struct http_handlers handlers = {.on_end = greeted};
        const struct http_client_config config = {.url = c->url, .tls = c->tls};
        const struct http_request request = {.method = "GET", .target = "/", .may_send = never};
        _cleanup_(loop_free) struct loop *loop = loop_new(NULL, c->log, err);
        struct greeting g = {.loop = loop, .err = err, .result = -1};
        struct http_client *client;

        if (!loop)
                return -1;
        client = http_client_new(loop, &config, err);
        if (!client)
                return -1;
        if (c->stop_fd >= 0)
                (void)!io_add(loop, &g.stop, c->stop_fd, EPOLLIN, not_greeted);
        http_start(client, &request, &handlers, &g);
        loop_run(loop);
        io_remove(&g.stop);
        http_client_free(client);
        return g.result;
}

/* Once for all connections: look-ups take their time, and a worker would make one after the other. Where it fails, each
 * connection tries for itself. */
static void look_up(struct load_plan *p)
{
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
        _cleanup_(free_ptr) char *host = NULL;
        struct url url;

        if (url_parse(str_of(p->c->url), &url, NULL) < 0)
                return;
        host = xstrndup(url.host.p, url.host.n);
        if (getaddrinfo(host, NULL, &hints, &p->addresses) != 0)
                p->addresses = NULL;
}

/* ---- workers */

static int start_workers(struct run *run, struct err *err)
{
        sigset_t all, before;
        int r = 0;

        run->plan.told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (run->plan.told < 0)
                return err_errno(err, E_IO, errno, "cannot create an event descriptor");
        for (unsigned i = 0; i < run->plan.workers; i++) {
                run->workers[i] = load_worker_new(&run->plan, i, err);
                if (!run->workers[i])
                        return -1;
                run->n++;
        }
        /* Signals are for the thread of the caller. */
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        for (unsigned i = 0; i < run->n && r == 0; i++)
                r = load_worker_start(run->workers[i], err);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

static void run_done(struct run *run)
{
        for (unsigned i = 0; i < run->n; i++)
                if (run->workers[i]->running)
                        load_worker_tell(run->workers[i], LOAD_QUIT);
        for (unsigned i = 0; i < run->n; i++)
                load_worker_join(run->workers[i]);
        for (unsigned i = 0; i < run->n; i++)
                load_worker_free(run->workers[i]);
        load_plan_done(&run->plan);
}
DEFINE_CLEANUP_STRUCT(struct run, run_done)

static void tell_progress(const struct run *run, const struct load_phase *p)
{
        usec_t now = clock_boot(&run->clock);
        struct load_progress progress = {
                .warmup = p->warmup,
                .total = p->due || !p->duration || run->c->requests ? p->n : 0,
                .elapsed = usec_sub(now, p->began / 1000),
                .planned = p->duration,
        };

        if (!run->c->on_progress)
                return;
        for (unsigned i = 0; i < run->n; i++) {
                progress.sent += atomic_load(&run->workers[i]->sent);
                progress.done += atomic_load(&run->workers[i]->done);
                progress.failed += atomic_load(&run->workers[i]->failed);
                progress.chunks += atomic_load(&run->workers[i]->chunks);
        }
        progress.under_way = progress.sent > progress.done ? progress.sent - progress.done : 0;
        run->c->on_progress(run->c->arg, &progress);
}

static bool all_finished(const struct run *run, enum load_order order)
{
        for (unsigned i = 0; i < run->n; i++)
                if (atomic_load(&run->workers[i]->finished) != order)
                        return false;
        return true;
}

static void stop(struct run *run)
{
        run->stopped = true;
        atomic_store(&run->plan.stop, true);
        for (unsigned i = 0; i < run->n; i++)
                load_worker_wake(run->workers[i]);
}

/* Has all workers do ORDER and waits until they have. P NULL: nothing to tell of meanwhile. */
static void carry_out(struct run *run, enum load_order order, struct load_phase *p)
{
        if (p)
                p->began = clock_boot_ns(&run->clock) + BEGIN_AHEAD;
        for (unsigned i = 0; i < run->n; i++)
                load_worker_tell(run->workers[i], order);
        while (!all_finished(run, order)) {
                struct pollfd fds[] = {{.fd = run->plan.told, .events = POLLIN},
                                       {.fd = run->stopped ? -1 : run->c->stop_fd, .events = POLLIN}};
                int n = poll(fds, ARRAY_LEN(fds), PROGRESS_MS);
                uint64_t times;

                if (n > 0 && fds[0].revents)
                        (void)!read(run->plan.told, &times, sizeof(times));
                if (n > 0 && fds[1].revents)
                        stop(run);
                if (n == 0 && p)
                        tell_progress(run, p);
        }
        if (p)
                tell_progress(run, p);
}

/* ---- the report */

static int by_phase_and_number(const void *x, const void *y)
{
        const struct load_record *a = x, *b = y;

        if (a->warmup != b->warmup)
                return a->warmup ? -1 : 1;
        return a->number < b->number ? -1 : a->number > b->number;
}

/* Those of the warm-up first; returns how many. */
static size_t merge_records(struct run *run, struct load_report *r)
{
        size_t warmup = 0;

        for (unsigned i = 0; i < run->n; i++)
                r->n += run->workers[i]->records.n;
        r->records = arena_alloc(&r->arena, r->n * sizeof(*r->records) + 1);
        r->stores = arena_new_array(&r->arena, struct arena, run->n + 1);
        r->n = 0;
        for (unsigned i = 0; i < run->n; i++) {
                struct load_worker *w = run->workers[i];

                vec_foreach (record, &w->records) {
                        warmup += record->warmup;
                        r->records[r->n++] = *record;
                }
                vec_done(&w->records);
                r->stores[r->n_stores++] = w->store;
                w->store = (struct arena)ARENA_INIT;
        }
        qsort(r->records, r->n, sizeof(*r->records), by_phase_and_number);
        return warmup;
}

/* The bodies stay where they are: the plan's memory becomes the report's. */
static void take_inputs(struct load_plan *p, struct load_report *r)
{
        struct str *inputs = arena_new_array(&r->arena, struct str, p->n_bodies);

        for (size_t i = 0; i < p->n_bodies; i++)
                inputs[i] = p->bodies[i].text;
        r->inputs = inputs;
        r->n_inputs = p->n_bodies;
        r->stores[r->n_stores++] = p->arena;
        p->arena = (struct arena)ARENA_INIT;
}

static void merge_client(struct run *run, struct load_report *r, struct stats_summary *waits)
{
        VEC(double) late = {0}, errors = {0};

        for (unsigned i = 0; i < run->n; i++) {
                struct load_worker *w = run->workers[i];

                vec_foreach (us, &w->waits)
                        *vec_push(&late) = *us;
                vec_foreach (us, &w->stamp_errors)
                        *vec_push(&errors) = *us;
                r->cpu_seconds += w->cpu;
                if (w->wall >= SHARE_AFTER)
                        r->cpu = MAX(r->cpu, w->cpu / w->wall);
                r->kernel_stamps = r->kernel_stamps || w->stamped;
                r->unsent += w->unsent;
                r->simulated = r->simulated || w->simulated;
                if (w->full)
                        r->ended_early = "the times of chunks filled the memory that is meant for them";
        }
        (void)!stats_summarize(late.v, late.n, waits);
        (void)!stats_summarize(errors.v, errors.n, &r->stamp_error);
        vec_done(&late);
        vec_done(&errors);
}

static void make_report(struct run *run, struct load_report *r)
{
        const struct load_config *c = run->c;
        struct stats_summary waits = {0};
        size_t warmup = merge_records(run, r);

        take_inputs(&run->plan, r);
        r->stopped = run->stopped;
        r->tokenizer = arena_strdup(&r->arena, tokens_name(run->plan.tokens));
        (void)load_summarize(r->records, warmup, c->slos, c->n_slos, &r->warmup);
        r->has_numbers = load_summarize(r->records + warmup, r->n - warmup, c->slos, c->n_slos, &r->summary);
        for (size_t i = warmup; i < r->n; i++)
                r->chunks += r->records[i].n_chunks;
        merge_client(run, r, &waits);
        if (!c->requests && r->n - warmup >= LOAD_REQUESTS_MAX)
                r->ended_early = arena_printf(&r->arena, "%d requests are the most of one run",
                                              LOAD_REQUESTS_MAX);
        load_check_client(r, waits.n ? waits.p[STATS_P99] / 1e3 : 0);
}

int load_run(const struct load_config *c, struct load_report *ret, struct err *err)
{
        _cleanup_(run_done) struct run run = {.c = c, .clock = CLOCK_REAL, .plan = {.told = -1}};
        int hello;

        *ret = (struct load_report){.wall_began = clock_wall(&run.clock)};
        ret->clock_began = clock_boot_ns_of(&run.clock, ret->wall_began * 1000);
        if (load_plan_make(&run.plan, c, err) < 0)
                return -1;
        hello = greet(c, err);
        if (hello < 0)
                return -1;
        if (hello > 0)
                look_up(&run.plan);
        if (start_workers(&run, err) < 0)
                return -1;
        carry_out(&run, LOAD_CONNECT, NULL);
        if (c->warmup_requests && !run.stopped)
                carry_out(&run, LOAD_WARM_UP, &run.plan.warmup);
        if (!run.stopped)
                carry_out(&run, LOAD_MEASURE, &run.plan.measured);
        make_report(&run, ret);
        return 0;
}

void load_report_done(struct load_report *r)
{
        for (size_t i = 0; i < r->n_stores; i++)
                arena_done(&r->stores[i]);
        arena_done(&r->arena);
        *r = (struct load_report){.records = NULL};
}
