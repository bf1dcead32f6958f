#include "net/loop_private.h"

#include <errno.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * One turn: wait, dispatch the batch that epoll returned, run timers that are due, run what was deferred.
 *
 * The batch is part of the loop, so that io_remove() can strike out events that were reported but not yet
 * delivered; whoever removes its io may free it at once. Timers live in a heap and one timerfd on CLOCK_BOOTTIME
 * (epoll's own timeout stands still while the machine sleeps). The timerfd is armed only when the first timer is
 * earlier than what it is armed for: a timer that is set and cancelled for every request costs no system call, at
 * the price of one idle turn when the stale time comes.
 *
 * Under load most of a turn's cost is in waking up for one small thing. A loop with a pace therefore sleeps until its
 * next beat while its owner has a backlog; without one somebody may wait for each event, and it is as quick as any.
 */

enum {
        BATCH = 64,
        SIGNALS = 65,
        FEW = 4,     /* descriptors: a rest that brings less was too short */
        STRETCH = 2, /* how often it may be doubled */
};
#define WORTH_WAKING ((usec_t)500)

struct signal_handler {
        void (*fn)(void *arg, int signo);
        void *arg;
};

struct loop {
        struct clock *clock, real_clock;
        const struct log *log;
        struct rng rng;
        int epoll_fd;
        usec_t now;
        usec_t pace; /* 0: none */
        bool backlog;
        unsigned stretch; /* how often a rest is doubled */
        bool stopped;
        int code;
        size_t n_io; /* of others */
        struct heap timers;
        struct io timer_io;
        usec_t armed; /* what the timerfd waits for; USEC_MAX: nothing */
        struct list deferred;
        struct io signal_io;
        sigset_t signal_set;
        size_t n_signals;
        struct signal_handler *signals; /* by number */
        struct list children;
        size_t n_children; /* that somebody waits for */
        struct worker *worker;
        char *scratch;
        int n_batch, at_batch;
        struct epoll_event batch[BATCH];
};

struct child {
        struct list node;
        struct io io;
        struct loop *loop;
        pid_t pid;
        bool gone; /* its callback runs or has run */
        void (*fn)(void *arg, int status);
        void *arg;
};

/* ---- life */

static void timer_fd_ready(struct io *io, uint32_t events);

struct loop *loop_new(struct clock *clock, const struct log *log, struct err *err)
{
        _cleanup_(loop_free) struct loop *loop = xcalloc(1, sizeof(*loop));
        int fd;

        list_init(&loop->deferred);
        list_init(&loop->children);
        loop->real_clock = (struct clock)CLOCK_REAL;
        loop->clock = clock ? clock : &loop->real_clock;
        loop->log = log;
        loop->now = clock_boot(loop->clock);
        loop->armed = USEC_MAX;
        rng_seed_random(&loop->rng);
        sigemptyset(&loop->signal_set);
        loop->timer_io.fd = loop->signal_io.fd = -1;
        loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (loop->epoll_fd < 0) {
                err_errno(err, E_IO, errno, "cannot create an epoll descriptor");
                return NULL;
        }
        fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        /* Told once for each time it goes off, so that it need not be read. */
        if (fd < 0 || io_add_internal(loop, &loop->timer_io, fd, EPOLLIN | EPOLLET, timer_fd_ready) < 0) {
                err_errno(err, E_IO, errno, "cannot create a timer descriptor");
                fd_close(fd);
                return NULL;
        }
        return TAKE_PTR(loop);
}

static void run_deferred(struct loop *loop);

void loop_free(struct loop *loop)
{
        if (!loop)
                return;
        worker_free(loop->worker);
        /* What was to be freed at the end of the turn is freed now, also what that defers in its turn. */
        while (!list_empty(&loop->deferred))
                run_deferred(loop);
        list_foreach_safe (node, &loop->children) {
                struct child *c = CONTAINER_OF(node, struct child, node);

                waitpid(c->pid, NULL, WNOHANG);
                fd_close(c->io.fd);
                free(c);
        }
        heap_done(&loop->timers);
        fd_close(loop->timer_io.fd);
        fd_close(loop->signal_io.fd);
        fd_close(loop->epoll_fd);
        free(loop->signals);
        free(loop->scratch);
        free(loop);
}

void loop_set_pace(struct loop *loop, usec_t pace)
{
        loop->pace = pace;
}

void loop_set_backlog(struct loop *loop, bool backlog)
{
        loop->backlog = backlog;
}

char *loop_scratch(struct loop *loop)
{
        if (!loop->scratch)
                loop->scratch = xmalloc(LOOP_SCRATCH_SIZE);
        return loop->scratch;
}

usec_t loop_now(const struct loop *loop)
{
        return loop->now;
}

usec_t loop_wall(const struct loop *loop)
{
        return clock_wall(loop->clock);
}

struct clock *loop_clock(struct loop *loop)
{
        return loop->clock;
}

const struct log *loop_log(const struct loop *loop)
{
        return loop->log;
}

struct rng *loop_rng(struct loop *loop)
{
        return &loop->rng;
}

/* ---- descriptors */

int io_add_internal(struct loop *loop, struct io *io, int fd, uint32_t events,
                    void (*fn)(struct io *io, uint32_t events))
{
        struct epoll_event ev = {.events = events, .data.ptr = io};

        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
                return -1;
        *io = (struct io){.loop = loop, .fd = fd, .events = events, .fn = fn};
        return 0;
}

int io_add(struct loop *loop, struct io *io, int fd, uint32_t events,
           void (*fn)(struct io *io, uint32_t events))
{
        if (io_add_internal(loop, io, fd, events, fn) < 0)
                return -1;
        loop->n_io++;
        return 0;
}

void io_set(struct io *io, uint32_t events)
{
        struct epoll_event ev = {.events = events, .data.ptr = io};

        if (!io->loop || io->events == events)
                return;
        io->events = events;
        epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &ev);
}

static void io_remove_internal(struct io *io)
{
        struct loop *loop = io->loop;

        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
        for (int i = loop->at_batch; i < loop->n_batch; i++)
                if (loop->batch[i].data.ptr == io)
                        loop->batch[i].data.ptr = NULL;
        io->loop = NULL;
}

void io_remove(struct io *io)
{
        if (!io->loop)
                return;
        io->loop->n_io--;
        io_remove_internal(io);
}

/* ---- timers */

void timer_init(struct timer *t, struct loop *loop, void (*fn)(struct timer *timer))
{
        *t = (struct timer){.loop = loop, .fn = fn};
}

void timer_at(struct timer *t, usec_t when)
{
        heap_put(&t->loop->timers, &t->node, when);
}

void timer_after(struct timer *t, usec_t delay)
{
        timer_at(t, usec_add(t->loop->now, delay));
}

void timer_cancel(struct timer *t)
{
        if (t->node.at)
                heap_remove(&t->loop->timers, &t->node);
}

bool timer_pending(const struct timer *t)
{
        return t->node.at != 0;
}

static void timer_fd_ready(struct io *io, uint32_t events)
{
        CONTAINER_OF(io, struct loop, timer_io)->armed = USEC_MAX;
}

static void arm_timer_fd(struct loop *loop)
{
        const struct heap_node *first = heap_first(&loop->timers);
        struct itimerspec spec = {0};

        if (!first || first->order >= loop->armed)
                return;
        /* 0 would disarm it; such a time has passed anyway */
        spec.it_value.tv_sec = (time_t)(first->order / USEC_PER_SEC);
        spec.it_value.tv_nsec = (long)(first->order % USEC_PER_SEC) * 1000 + 1;
        timerfd_settime(loop->timer_io.fd, TFD_TIMER_ABSTIME, &spec, NULL);
        loop->armed = first->order;
}

/* Runs what is due. A timer that a callback sets to now or earlier has to wait for the next turn. */
static void run_timers(struct loop *loop)
{
        uint64_t newer = loop->timers.sequence;
        struct heap_node *first;

        while ((first = heap_first(&loop->timers)) && first->order <= loop->now && first->sequence < newer) {
                struct timer *t = CONTAINER_OF(first, struct timer, node);

                heap_remove(&loop->timers, first);
                t->fn(t);
        }
}

/* ---- the end of the turn */

void defer_run(struct loop *loop, struct defer *d, void (*fn)(struct defer *defer))
{
        d->fn = fn;
        if (d->pending)
                return;
        d->pending = true;
        list_append(&loop->deferred, &d->node);
}

void defer_cancel(struct defer *d)
{
        if (!d->pending)
                return;
        d->pending = false;
        list_remove(&d->node);
}

/* Only what is on the list now: a callback that defers itself again must not keep the turn from ending. */
static void run_deferred(struct loop *loop)
{
        struct list now, *node;

        if (list_empty(&loop->deferred))
                return;
        list_append(&loop->deferred, &now); /* a new head in the ring; then the old one leaves it */
        list_remove(&loop->deferred);
        while ((node = list_pop(&now))) {
                struct defer *d = CONTAINER_OF(node, struct defer, node);

                d->pending = false;
                d->fn(d);
        }
}

/* ---- turning */

static bool anything_left(const struct loop *loop)
{
        return loop->n_io || loop->timers.n || !list_empty(&loop->deferred) || loop->n_signals ||
               loop->n_children || (loop->worker && worker_outstanding(loop->worker));
}

static void wait_for_events(struct loop *loop, int timeout_ms)
{
        loop->at_batch = 0;
        loop->n_batch = epoll_wait(loop->epoll_fd, loop->batch, BATCH, timeout_ms);
        if (loop->n_batch < 0)
                loop->n_batch = 0; /* EINTR: a stopped and continued process */
        loop->now = clock_boot(loop->clock);
}

/* Not after a turn that was worth waking up for: what is left then waits no longer. */
static bool rest(const struct loop *loop, usec_t worked)
{
        struct timespec left = {.tv_nsec = (long)(usec_sub(loop->pace << loop->stretch, worked) * 1000)};

        if (!loop->backlog || worked >= MIN(loop->pace, WORTH_WAKING))
                return false;
        nanosleep(&left, NULL);
        return true;
}

/* After a rest: the slower events come, the longer the next one. */
static void stretch(struct loop *loop)
{
        if (loop->n_batch < FEW)
                loop->stretch = MIN(loop->stretch + 1, (unsigned)STRETCH);
        else if (loop->n_batch > 2 * FEW && loop->stretch)
                loop->stretch--;
}

static void wait_at_pace(struct loop *loop)
{
        bool rested = rest(loop, usec_sub(clock_boot(loop->clock), loop->now));

        wait_for_events(loop, -1);
        if (rested)
                stretch(loop);
}

static void dispatch(struct loop *loop)
{
        while (loop->at_batch < loop->n_batch) {
                struct epoll_event ev = loop->batch[loop->at_batch++];
                struct io *io = ev.data.ptr;

                if (io)
                        io->fn(io, ev.events);
        }
        loop->at_batch = loop->n_batch = 0;
}

static bool timer_due(const struct loop *loop)
{
        const struct heap_node *first = heap_first(&loop->timers);

        return first && first->order <= loop->now;
}

/* A test's clock: never sleep for time, only for what another thread or process is doing. False: nothing will come. */
static bool wait_manual(struct loop *loop, bool may_wait)
{
        const struct heap_node *first = heap_first(&loop->timers);
        struct clock *clock = loop->clock;

        wait_for_events(loop, 0);
        if (loop->n_batch || !list_empty(&loop->deferred) || timer_due(loop) || !may_wait)
                return true;
        if (loop->worker && worker_outstanding(loop->worker)) {
                wait_for_events(loop, -1);
                return true;
        }
        if (first) {
                clock->wall = usec_add(clock->wall, first->order - clock->boot);
                clock->boot = loop->now = first->order;
                return true;
        }
        if (loop->n_children) {
                wait_for_events(loop, -1);
                return true;
        }
        return false;
}

bool loop_turn(struct loop *loop, bool may_wait)
{
        bool coming = true;

        if (loop->stopped)
                return false;
        if (loop->clock->manual) {
                coming = wait_manual(loop, may_wait);
        } else {
                bool now = !may_wait || !list_empty(&loop->deferred) || !anything_left(loop);

                arm_timer_fd(loop);
                if (now)
                        wait_for_events(loop, 0);
                else
                        wait_at_pace(loop);
        }
        dispatch(loop);
        run_timers(loop);
        run_deferred(loop);
        return coming && !loop->stopped && anything_left(loop);
}

int loop_run(struct loop *loop)
{
        int code;

        while (loop_turn(loop, true))
                continue;
        code = loop->stopped ? loop->code : 0;
        loop->stopped = false;
        return code;
}

void loop_stop(struct loop *loop, int code)
{
        loop->stopped = true;
        loop->code = code;
}

/* ---- signals */

static void signal_fd_ready(struct io *io, uint32_t events)
{
        struct loop *loop = CONTAINER_OF(io, struct loop, signal_io);
        struct signalfd_siginfo info;

        while (read(io->fd, &info, sizeof(info)) == sizeof(info)) {
                int signo = (int)info.ssi_signo;

                if (signo < SIGNALS && loop->signals[signo].fn)
                        loop->signals[signo].fn(loop->signals[signo].arg, signo);
        }
}

int loop_on_signal(struct loop *loop, int signo, void (*fn)(void *arg, int signo), void *arg)
{
        int fd;

        if (signo <= 0 || signo >= SIGNALS) {
                errno = EINVAL;
                return -1;
        }
        if (!loop->signals)
                loop->signals = xcalloc(SIGNALS, sizeof(*loop->signals));
        sigaddset(&loop->signal_set, signo);
        if (pthread_sigmask(SIG_BLOCK, &loop->signal_set, NULL) != 0)
                return -1;
        fd = signalfd(loop->signal_io.fd, &loop->signal_set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0)
                return -1;
        if (loop->signal_io.fd < 0 &&
            io_add_internal(loop, &loop->signal_io, fd, EPOLLIN, signal_fd_ready) < 0) {
                fd_close(fd);
                return -1;
        }
        loop->n_signals += !loop->signals[signo].fn && fn;
        loop->n_signals -= loop->signals[signo].fn && !fn;
        loop->signals[signo] = (struct signal_handler){.fn = fn, .arg = arg};
        return 0;
}

/* ---- children */

static void child_free(struct child *c)
{
        int fd = c->io.fd;

        if (c->fn)
                c->loop->n_children--;
        list_remove(&c->node);
        io_remove_internal(&c->io);
        fd_close(fd);
        free(c);
}

static void child_exited(struct io *io, uint32_t events)
{
        struct child *c = CONTAINER_OF(io, struct child, io);
        int status = 0;
        pid_t pid;

        do
                pid = waitpid(c->pid, &status, WNOHANG);
        while (pid < 0 && errno == EINTR);
        if (pid == 0)
                return;
        c->gone = true;
        if (c->fn)
                c->fn(c->arg, status);
        child_free(c);
}

struct child *child_watch(struct loop *loop, pid_t pid, void (*fn)(void *arg, int status), void *arg,
                          struct err *err)
{
        struct child *c;
        int fd = pidfd_open(pid, 0);

        if (fd < 0) {
                err_errno(err, E_IO, errno, "cannot watch process %d", (int)pid);
                return NULL;
        }
        c = xcalloc(1, sizeof(*c));
        c->loop = loop;
        c->pid = pid;
        c->fn = fn;
        c->arg = arg;
        list_init(&c->node);
        if (io_add_internal(loop, &c->io, fd, EPOLLIN, child_exited) < 0) {
                err_errno(err, E_IO, errno, "cannot watch process %d", (int)pid);
                fd_close(fd);
                free(c);
                return NULL;
        }
        list_append(&loop->children, &c->node);
        if (fn)
                loop->n_children++;
        return c;
}

void child_forget(struct child *c)
{
        if (!c || c->gone || !c->fn)
                return;
        c->fn = NULL;
        c->loop->n_children--;
}

/* ---- blocking work */

void loop_offload(struct loop *loop, struct work *work)
{
        if (!loop->worker)
                loop->worker = worker_new(loop);
        worker_submit(loop->worker, work);
}
