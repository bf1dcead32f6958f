#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "probe/load/load_private.h"

enum {
        CONNECT_AT_ONCE = 64, /* no more than a server's backlog */
        CONNECT_UNCAPPED = 64,
        CONNECT_AHEAD = 16,
};
#define CONNECT_TIME    (5 * USEC_PER_SEC)
#define CONNECT_STEP    USEC_PER_MS
#define PAUSE_FIRST     (10 * USEC_PER_MS)
#define PAUSE_LAST      USEC_PER_SEC
#define CLIENT_IDLE_MAX (24 * 3600 * USEC_PER_SEC)

static void fill(struct load_worker *w);

static uint64_t now_ns(struct load_worker *w)
{
        return clock_boot_ns(&w->clock);
}

static double thread_cpu(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the end of a phase */

/* What could wait until nothing is measured any more. */
static void count_texts(struct load_worker *w)
{
        vec_foreach (u, &w->uncounted) {
                struct load_record *r = &w->records.v[u->record];

                r->osl = (uint32_t)MIN(
                        tokens_count(w->plan->tokens, str_n(w->texts.p + u->at, u->n), &r->osl_exact),
                        (uint64_t)UINT32_MAX);
        }
        w->uncounted.n = 0;
        buf_done(&w->texts);
}

/* Of an open loop: those of this worker's part that were due and for which there was no place under the cap. */
static uint64_t count_unsent(const struct load_worker *w, uint64_t now)
{
        const struct load_phase *p = w->phase;
        uint64_t n = 0;

        for (uint64_t i = w->at; p->due && i < p->n && p->began + p->due[i] <= now; i += w->plan->workers)
                n++;
        return n;
}

static void finish_order(struct load_worker *w)
{
        uint64_t one = 1;

        atomic_store(&w->finished, w->doing);
        w->doing = LOAD_NOTHING;
        (void)!write(w->plan->told, &one, sizeof(one));
}

static void phase_over(struct load_worker *w)
{
        if (!w->phase->warmup) {
                uint64_t now = now_ns(w);

                w->unsent = count_unsent(w, now);
                w->cpu = thread_cpu() - w->cpu_began;
                w->wall = now > w->phase->began ? (double)(now - w->phase->began) / 1e9 : 0;
        }
        timer_cancel(&w->begin);
        timer_cancel(&w->due);
        timer_cancel(&w->end);
        timer_cancel(&w->cut);
        timer_cancel(&w->pause);
        w->phase = NULL;
        count_texts(w);
        finish_order(w);
}

void load_worker_go_on(struct load_worker *w, bool enough)
{
        w->closed = w->closed || enough;
        if (w->phase && w->closed && w->under_way == 0)
                phase_over(w);
        else
                fill(w);
}

static void close_phase(struct load_worker *w)
{
        w->closed = true;
        timer_cancel(&w->due);
        if (w->under_way == 0)
                phase_over(w);
}

void load_worker_pause(struct load_worker *w)
{
        if (w->phase->due || w->paused)
                return;
        w->paused = true;
        w->pause_for = MIN(MAX(w->pause_for * 2, PAUSE_FIRST), PAUSE_LAST);
        timer_after(&w->pause, w->pause_for);
}

static void resume_sending(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, pause);

        w->paused = false;
        fill(w);
}

/* ---- what goes */

static void fill_closed(struct load_worker *w)
{
        uint32_t most = MAX(w->share, 1U);

        while (!w->closed && !w->paused && w->under_way < most) {
                uint64_t number = atomic_fetch_add(&w->phase->next, 1);

                if (number >= w->phase->n)
                        close_phase(w);
                else
                        load_call_send(w, number, 0, 0);
                if (!w->phase)
                        return;
        }
}

static void fill_open(struct load_worker *w)
{
        struct load_phase *p = w->phase;
        uint32_t most = w->share ? w->share : LOAD_CONCURRENCY_MAX / w->plan->workers;
        uint64_t now = now_ns(w);

        while (!w->closed && w->at < p->n) {
                uint64_t due = p->began + p->due[w->at];

                if (due > now) {
                        w->capped = false;
                        timer_at(&w->due, (due + 999) / 1000);
                        break;
                }
                if (w->under_way >= most) {
                        w->capped = true;
                        return;
                }
                load_call_send(w, w->at, due, w->capped ? MAX(due, w->freed) : due);
                w->at += w->plan->workers;
        }
        http_client_connect(w->client,
                            (unsigned)MIN(w->under_way + CONNECT_AHEAD, (size_t)w->plan->connections));
        if (!w->closed && w->at >= p->n)
                close_phase(w);
}

static void fill(struct load_worker *w)
{
        if (!w->phase || timer_pending(&w->begin))
                return;
        if (w->phase->due)
                fill_open(w);
        else
                fill_closed(w);
}

static void on_due(struct timer *t)
{
        fill_open(CONTAINER_OF(t, struct load_worker, due));
}

/* ---- phases */

static void on_begin(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, begin);

        w->cpu_began = thread_cpu();
        fill(w);
}

static void cancel_all(struct load_worker *w)
{
        w->closed = true;
        load_calls_cancel(&w->calls);
        if (w->phase && w->under_way == 0)
                phase_over(w);
}

static void on_cut(struct timer *t)
{
        cancel_all(CONTAINER_OF(t, struct load_worker, cut));
}

static void on_time_up(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, end);

        timer_after(&w->cut, w->plan->c->grace);
        close_phase(w);
}

static void begin_phase(struct load_worker *w, struct load_phase *p)
{
        usec_t began = (p->began + 999) / 1000;

        w->phase = p;
        w->at = w->number;
        w->closed = w->capped = w->paused = false;
        w->pause_for = 0;
        atomic_store(&w->sent, 0);
        atomic_store(&w->done, 0);
        atomic_store(&w->failed, 0);
        atomic_store(&w->chunks, 0);
        if (p->duration)
                timer_at(&w->end, usec_add(began, p->duration));
        timer_at(&w->begin, began);
}

/* ---- connections ahead of the first request */

static void connect_more(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, connecting);
        unsigned have = http_client_idle(w->client);
        unsigned wanted = MIN(w->share ? w->share : CONNECT_UNCAPPED, w->plan->connections);

        if (have >= wanted || loop_now(w->loop) >= w->connect_until || atomic_load(&w->plan->stop)) {
                finish_order(w);
                return;
        }
        http_client_connect(w->client, MIN(wanted, have + CONNECT_AT_ONCE));
        timer_after(t, CONNECT_STEP);
}

static void on_wake(struct io *io, uint32_t events _unused_)
{
        struct load_worker *w = CONTAINER_OF(io, struct load_worker, wake);
        enum load_order order = atomic_load(&w->order);
        uint64_t n;

        (void)!read(io->fd, &n, sizeof(n));
        if (order != LOAD_NOTHING) {
                atomic_store(&w->order, LOAD_NOTHING);
                w->doing = order;
        }
        switch (order) {
        case LOAD_NOTHING:
                break;
        case LOAD_CONNECT:
                w->connect_until = usec_add(loop_now(w->loop), CONNECT_TIME);
                timer_at(&w->connecting, loop_now(w->loop));
                break;
        case LOAD_WARM_UP:
                begin_phase(w, &w->plan->warmup);
                break;
        case LOAD_MEASURE:
                begin_phase(w, &w->plan->measured);
                break;
        case LOAD_QUIT:
                loop_stop(w->loop, 0);
                return;
        }
        if (w->phase && atomic_load(&w->plan->stop))
                cancel_all(w);
}

/* ---- life */

struct load_worker *load_worker_new(struct load_plan *p, unsigned number, struct err *err)
{
        _cleanup_(load_worker_free) struct load_worker *w = xcalloc(1, sizeof(*w));
        const struct http_client_config config = {
                .url = p->c->url,
                .tls = p->c->tls,
                .user_agent = "sonde-load/" SONDE_VERSION,
                .max_connections = p->connections,
                .idle_timeout = CLIENT_IDLE_MAX,
                .stamps = true,
                .addresses = p->addresses,
        };

        w->plan = p;
        w->number = number;
        w->share = p->concurrency / p->workers + (number < p->concurrency % p->workers);
        w->clock = (struct clock)CLOCK_REAL;
        w->texts = (struct buf)BUF_INIT(SIZE_MAX);
        w->chunks_max = LOAD_CHUNKS_MAX / p->workers;
        list_init(&w->calls);
        list_init(&w->spare);
        w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->wake_fd < 0) {
                err_errno(err, E_IO, errno, "cannot create an event descriptor");
                return NULL;
        }
        w->loop = loop_new(&w->clock, p->c->log, err);
        if (!w->loop)
                return NULL;
        w->client = http_client_new(w->loop, &config, err);
        if (!w->client)
                return NULL;
        if (io_add(w->loop, &w->wake, w->wake_fd, EPOLLIN, on_wake) < 0) {
                err_errno(err, E_IO, errno, "cannot wait for an event descriptor");
                return NULL;
        }
        timer_init(&w->begin, w->loop, on_begin);
        timer_init(&w->due, w->loop, on_due);
        timer_init(&w->end, w->loop, on_time_up);
        timer_init(&w->cut, w->loop, on_cut);
        timer_init(&w->pause, w->loop, resume_sending);
        timer_init(&w->connecting, w->loop, connect_more);
        return TAKE_PTR(w);
}

static void *work(void *arg)
{
        struct load_worker *w = arg;

        loop_run(w->loop);
        return NULL;
}

int load_worker_start(struct load_worker *w, struct err *err)
{
        int e = pthread_create(&w->thread, NULL, work, w);

        if (e)
                return err_errno(err, E_IO, e, "cannot start a thread");
        w->running = true;
        pthread_setname_np(w->thread, "load");
        return 0;
}

void load_worker_wake(struct load_worker *w)
{
        uint64_t one = 1;

        (void)!write(w->wake_fd, &one, sizeof(one));
}

void load_worker_tell(struct load_worker *w, enum load_order order)
{
        atomic_store(&w->order, order);
        load_worker_wake(w);
}

void load_worker_join(struct load_worker *w)
{
        if (!w->running)
                return;
        pthread_join(w->thread, NULL);
        w->running = false;
}

void load_worker_free(struct load_worker *w)
{
        if (!w)
                return;
        http_client_free(w->client);
        load_calls_free(&w->calls);
        load_calls_free(&w->spare);
        io_remove(&w->wake);
        loop_free(w->loop);
        fd_close(w->wake_fd);
        arena_done(&w->store);
        arena_done(&w->scratch);
        map_done(&w->errors);
        map_done(&w->kinds);
        vec_done(&w->records);
        vec_done(&w->uncounted);
        vec_done(&w->waits);
        vec_done(&w->stamp_errors);
        buf_done(&w->texts);
        free(w);
}
