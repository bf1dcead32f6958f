/*
 * loop.h - one thread, one epoll: descriptors, timers, signals, children, blocking work handed to a worker.
 *
 * io, timer, defer and work are embedded in their owner's struct and initialised by it. Removing one guarantees that
 * its callback is not called any more, even if its event was already reported. With a manual clock (tests) the loop
 * never sleeps: when nothing is ready it moves the clock to the next timer.
 */
#pragma once

#include <signal.h>
#include <sys/epoll.h>
#include <sys/types.h>

#include "base/base.h"

struct loop;

/* CLOCK (borrowed; NULL: the real one) and LOG (borrowed; may be NULL) outlive the loop. */
struct loop *loop_new(struct clock *clock, const struct log *log, struct err *err) _must_check_;
/* After everything that uses it. Runs what is deferred; does not wait for the worker (see loop_offload()). */
void loop_free(struct loop *loop);
int loop_run(struct loop *loop);                  /* until loop_stop(); returns its code */
bool loop_turn(struct loop *loop, bool may_wait); /* one round; false: stopped, or nothing left to wait for */
void loop_stop(struct loop *loop, int code);
/* With a backlog: one turn every PACE (below 250 ms; 0: none) takes small events together. */
void loop_set_pace(struct loop *loop, usec_t pace);
/*
 * More waits than is under way: nobody waits for one event alone, and the pace is kept however slowly they come. Where
 * a turn has few of them, up to four times the pace passes until the next. Without a backlog a loop is as quick as any.
 */
void loop_set_backlog(struct loop *loop, bool backlog);

usec_t loop_now(const struct loop *loop);  /* CLOCK_BOOTTIME when this turn began */
usec_t loop_wall(const struct loop *loop); /* wall time, now */
struct clock *loop_clock(struct loop *loop);
const struct log *loop_log(const struct loop *loop);
struct rng *loop_rng(struct loop *loop); /* for jitter */

/* ---- descriptors */
struct io {
        struct loop *loop; /* NULL: not added */
        int fd;
        uint32_t events;
        void (*fn)(struct io *io, uint32_t events);
};
int io_add(struct loop *loop, struct io *io, int fd, uint32_t events,
           void (*fn)(struct io *io, uint32_t events));
void io_set(struct io *io,
            uint32_t events);  /* EPOLLIN, EPOLLOUT, EPOLLRDHUP; no system call when unchanged */
void io_remove(struct io *io); /* does not close; harmless when not added */

/* ---- timers */
struct timer {
        struct heap_node node;
        struct loop *loop;
        void (*fn)(struct timer *timer);
};
void timer_init(struct timer *t, struct loop *loop, void (*fn)(struct timer *timer));
void timer_at(struct timer *t, usec_t when); /* on loop_now()'s scale; sets or moves */
void timer_after(struct timer *t, usec_t delay);
void timer_cancel(struct timer *t);
bool timer_pending(const struct timer *t);

/* ---- the end of this turn: FN once, after all events of the batch. Where things are freed. */
struct defer {
        struct list node;
        bool pending;
        void (*fn)(struct defer *defer);
};
void defer_run(struct loop *loop, struct defer *d, void (*fn)(struct defer *defer));
void defer_cancel(struct defer *d);

/*
 * ---- signals: blocked for the process and read through a signalfd. One handler a signal; FN NULL: none any more.
 * Children inherit the mask: signals_reset() there. SIGPIPE is left alone: this layer sends with MSG_NOSIGNAL.
 */
int loop_on_signal(struct loop *loop, int signo, void (*fn)(void *arg, int signo), void *arg);

/* ---- children, by pidfd. STATUS is waitpid()'s. */
struct child;
struct child *child_watch(struct loop *loop, pid_t pid, void (*fn)(void *arg, int status), void *arg,
                          struct err *err) _must_check_;
void child_forget(struct child *c); /* no callback; the child is still reaped */

/*
 * ---- blocking work: RUN on the worker thread (shares nothing but *work and must not look at `canceled`), then DONE
 * in the loop. loop_free() marks what is left as canceled and calls DONE, without RUN if that had not begun; if RUN is
 * under way, DONE follows it on the worker's thread.
 */
struct work {
        struct list node;
        void (*run)(struct work *work);
        void (*done)(struct work *work);
        bool canceled; /* owner has gone: DONE is called all the same, to free */
};
void loop_offload(struct loop *loop, struct work *work);

DEFINE_CLEANUP_PTR(struct loop *, loop_free)
