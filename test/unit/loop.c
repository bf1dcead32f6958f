#include "unit/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/loop.h"

/* A loop on a test's clock, and a record of what happened in which order. */
struct rig {
        struct clock clock;
        struct loop *loop;
        char seen[64];
};

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->clock = (struct clock){.manual = true, .boot = 1000, .wall = 5000};
        r->loop = loop_new(&r->clock, NULL, NULL);
        assert_non_null(r->loop);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        loop_free(r->loop);
        free(r);
        return 0;
}

static void note(struct rig *r, char c)
{
        size_t n = strlen(r->seen);

        if (n + 1 < sizeof(r->seen))
                r->seen[n] = c;
}

struct named_timer {
        struct timer timer;
        struct rig *rig;
        char name;
        usec_t again; /* set again after this, 3 times */
        int times;
};

static void timer_notes(struct timer *t)
{
        struct named_timer *n = CONTAINER_OF(t, struct named_timer, timer);

        note(n->rig, n->name);
        if (++n->times < 3 && n->again != USEC_MAX)
                timer_after(t, n->again);
}

static void named_timer(struct named_timer *n, struct rig *r, char name, usec_t after, usec_t again)
{
        *n = (struct named_timer){.rig = r, .name = name, .again = again};
        timer_init(&n->timer, r->loop, timer_notes);
        timer_after(&n->timer, after);
}

static void test_timers_run_in_order_and_the_clock_follows(void **state)
{
        struct rig *r = *state;
        struct named_timer a, b, c;

        named_timer(&a, r, 'a', 3000000, USEC_MAX);
        named_timer(&b, r, 'b', 1000000, USEC_MAX);
        named_timer(&c, r, 'c', 1000000, USEC_MAX);
        assert_true(timer_pending(&a.timer));
        assert_true(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "bc");
        assert_int_equal(loop_now(r->loop), 1001000);
        assert_int_equal(loop_wall(r->loop), 1005000);
        assert_false(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "bca");
        assert_false(timer_pending(&a.timer));
}

static void test_a_cancelled_or_moved_timer(void **state)
{
        struct rig *r = *state;
        struct named_timer a, b;

        named_timer(&a, r, 'a', 10, USEC_MAX);
        named_timer(&b, r, 'b', 20, USEC_MAX);
        timer_cancel(&a.timer);
        timer_cancel(&a.timer);
        timer_at(&b.timer, 2000);
        assert_int_equal(loop_run(r->loop), 0);
        assert_string_equal(r->seen, "b");
        assert_int_equal(loop_now(r->loop), 2000);
}

static void test_a_timer_set_to_now_waits_for_the_next_turn(void **state)
{
        struct rig *r = *state;
        struct named_timer a, b;

        named_timer(&a, r, 'a', 0, 0);
        named_timer(&b, r, 'b', 0, USEC_MAX);
        assert_true(loop_turn(r->loop, false));
        assert_string_equal(r->seen, "ab");
        loop_run(r->loop);
        assert_string_equal(r->seen, "abaa");
}

static void test_without_waiting_the_clock_stands_still(void **state)
{
        struct rig *r = *state;
        struct named_timer a;

        named_timer(&a, r, 'a', 1, USEC_MAX);
        assert_true(loop_turn(r->loop, false));
        assert_string_equal(r->seen, "");
        timer_cancel(&a.timer);
}

struct pipe_end {
        struct io io;
        struct rig *rig;
        struct pipe_end *victim, **survivor; /* the first is removed and freed in the callback */
};

static void pipe_notes(struct io *io, uint32_t events)
{
        struct pipe_end *p = CONTAINER_OF(io, struct pipe_end, io);
        char c;

        assert_int_equal(read(io->fd, &c, 1), 1);
        note(p->rig, c);
        if (p->victim) {
                io_remove(&p->victim->io);
                free(p->victim);
                p->victim = NULL;
                *p->survivor = p;
        }
}

static void test_removing_an_io_that_is_in_the_same_batch(void **state)
{
        struct rig *r = *state;
        struct pipe_end *p[2] = {xcalloc(1, sizeof(*p[0])), xcalloc(1, sizeof(*p[1]))}, *survivor = NULL;
        int fds[2][2];

        for (int i = 0; i < 2; i++) {
                assert_int_equal(pipe2(fds[i], O_CLOEXEC), 0);
                p[i]->rig = r;
                p[i]->survivor = &survivor;
                assert_int_equal(io_add(r->loop, &p[i]->io, fds[i][0], EPOLLIN, pipe_notes), 0);
                assert_int_equal(write(fds[i][1], "xy", 2), 2);
        }
        p[0]->victim = p[1];
        p[1]->victim = p[0];
        /* both are readable: whichever comes first frees the other, whose event is struck out */
        assert_true(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "x");
        assert_true(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "xy");
        io_remove(&survivor->io);
        free(survivor);
        assert_false(loop_turn(r->loop, false));
        for (int i = 0; i < 2; i++) {
                fd_close(fds[i][0]);
                fd_close(fds[i][1]);
        }
}

struct named_defer {
        struct defer defer;
        struct rig *rig;
        char name;
        int again;
};

static void defer_notes(struct defer *d)
{
        struct named_defer *n = CONTAINER_OF(d, struct named_defer, defer);

        note(n->rig, n->name);
        if (n->again-- > 0)
                defer_run(n->rig->loop, d, defer_notes);
}

static void test_deferred_calls_come_last_and_once(void **state)
{
        struct rig *r = *state;
        struct named_defer d = {.rig = r, .name = 'd'}, e = {.rig = r, .name = 'e'},
                           f = {.rig = r, .name = 'f'};
        struct named_timer t;

        named_timer(&t, r, 't', 0, USEC_MAX);
        d.again = 1;
        defer_run(r->loop, &d.defer, defer_notes);
        defer_run(r->loop, &e.defer, defer_notes);
        defer_run(r->loop, &d.defer, defer_notes);
        defer_run(r->loop, &f.defer, defer_notes);
        defer_cancel(&e.defer);
        assert_true(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "tdf");
        assert_false(loop_turn(r->loop, true));
        assert_string_equal(r->seen, "tdfd");
}

static void test_loop_free_runs_what_is_deferred(void **state)
{
        struct rig *r = *state;
        struct named_defer d = {.rig = r, .name = 'd'};

        defer_run(r->loop, &d.defer, defer_notes);
        loop_free(TAKE_PTR(r->loop));
        assert_string_equal(r->seen, "d");
}

static void stop_on_signal(void *arg, int signo)
{
        struct rig *r = arg;

        note(r, 's');
        loop_stop(r->loop, signo);
}

static void test_a_signal_stops_the_loop(void **state)
{
        struct rig *r = *state;

        assert_int_equal(loop_on_signal(r->loop, SIGUSR1, stop_on_signal, r), 0);
        assert_int_equal(loop_on_signal(r->loop, SIGUSR2, stop_on_signal, r), 0);
        assert_int_equal(loop_on_signal(r->loop, 0, stop_on_signal, r), -1);
        raise(SIGUSR2);
        assert_int_equal(loop_run(r->loop), SIGUSR2);
        assert_string_equal(r->seen, "s");
}

static void child_notes(void *arg, int status)
{
        struct rig *r = arg;

        note(r, WIFEXITED(status) ? (char)('0' + WEXITSTATUS(status)) : '?');
}

static pid_t spawn_exit(const char *script)
{
        char *argv[] = {xstrdup("sh"), xstrdup("-c"), xstrdup(script), NULL};
        pid_t pid = -1;

        assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, NULL), 0);
        for (int i = 0; argv[i]; i++)
                free(argv[i]);
        return pid;
}

static void test_children_are_waited_for(void **state)
{
        struct rig *r = *state;
        struct child *forgotten;
        struct err err = ERR_INIT;
        pid_t pid;

        assert_non_null(child_watch(r->loop, spawn_exit("exit 7"), child_notes, r, &err));
        pid = spawn_exit("exit 3");
        forgotten = child_watch(r->loop, pid, child_notes, r, &err);
        assert_non_null(forgotten);
        child_forget(forgotten);
        assert_int_equal(loop_run(r->loop), 0);
        assert_string_equal(r->seen, "7");
        assert_null(child_watch(r->loop, -1, child_notes, r, &err));
        assert_string_equal(err.text, "cannot watch process -1: Invalid argument");
}

struct sum {
        struct work work;
        struct rig *rig;
        int *canceled;
        int n, result;
};

static void sum_run(struct work *work)
{
        struct sum *s = CONTAINER_OF(work, struct sum, work);

        for (int i = 1; i <= s->n; i++)
                s->result += i;
}

static void sum_done(struct work *work)
{
        struct sum *s = CONTAINER_OF(work, struct sum, work);

        if (work->canceled)
                __atomic_add_fetch(s->canceled, 1, __ATOMIC_RELEASE);
        else
                note(s->rig, s->result == s->n * (s->n + 1) / 2 ? 'w' : '?');
        free(s);
}

static void offload_sum(struct rig *r, int n, int *canceled)
{
        struct sum *s = xcalloc(1, sizeof(*s));

        s->work = (struct work){.run = sum_run, .done = sum_done};
        s->rig = r;
        s->n = n;
        s->canceled = canceled;
        loop_offload(r->loop, &s->work);
}

static void test_work_comes_back_to_the_loop(void **state)
{
        struct rig *r = *state;
        struct named_timer t;

        named_timer(&t, r, 't', 1, USEC_MAX);
        for (int i = 0; i < 5; i++)
                offload_sum(r, i, NULL);
        /* even a manual clock waits for the worker before it moves on */
        assert_int_equal(loop_run(r->loop), 0);
        assert_string_equal(r->seen, "wwwwwt");
}

static void test_work_left_over_is_handed_back_as_cancelled(void **state)
{
        struct rig *r = *state;
        int canceled = 0;

        for (int i = 0; i < 20; i++)
                offload_sum(r, i, &canceled);
        loop_free(TAKE_PTR(r->loop));
        /* one may be under way still, on the thread that was left behind */
        while (__atomic_load_n(&canceled, __ATOMIC_ACQUIRE) < 20)
                sched_yield();
        assert_string_equal(r->seen, "");
}

static void test_the_real_clock(void **state)
{
        struct rig *r = *state;
        struct named_timer a, b;

        loop_free(r->loop);
        r->loop = loop_new(NULL, NULL, NULL);
        assert_non_null(r->loop);
        named_timer(&b, r, 'b', 2000, USEC_MAX);
        named_timer(&a, r, 'a', 1000, USEC_MAX);
        assert_int_equal(loop_run(r->loop), 0);
        assert_string_equal(r->seen, "ab");
        assert_true(rng_next(loop_rng(r->loop)) != rng_next(loop_rng(r->loop)));
}

enum { TURNS = 50 };

/* Gives a loop with a pace one small thing after the other, at most TURNS times; returns after how many it waited until there is more. */
static unsigned turns_until_a_rest(struct rig *r, bool backlog)
{
        struct pipe_end p = {.rig = r};
        usec_t began, rest = 0;
        unsigned turns = 0;
        int fds[2];

        loop_free(r->loop);
        r->loop = loop_new(NULL, NULL, NULL);
        assert_non_null(r->loop);
        loop_set_pace(r->loop, 200 * USEC_PER_MS);
        loop_set_backlog(r->loop, backlog);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(io_add(r->loop, &p.io, fds[0], EPOLLIN, pipe_notes), 0);
        for (; rest < 150 * USEC_PER_MS && turns < TURNS; turns++) {
                assert_int_equal(write(fds[1], "x", 1), 1);
                began = loop_now(r->loop);
                assert_true(loop_turn(r->loop, true));
                rest = loop_now(r->loop) - began;
        }
        io_remove(&p.io);
        fd_close(fds[0]);
        fd_close(fds[1]);
        return turns;
}

/* Somebody may wait for each of them. What we are held up ourselves looks like a rest, but it is not there every time. */
static void test_a_busy_loop_without_a_backlog_does_not_rest(void **state)
{
        unsigned turns = 0;

        for (int i = 0; i < 20 && turns <= 8; i++)
                turns = turns_until_a_rest(*state, false);
        assert_true(turns > 8);
}

/* At once, unless so many turns took unusually long one after the other. */
static void test_a_loop_with_a_backlog_keeps_its_pace(void **state)
{
        assert_true(turns_until_a_rest(*state, true) <= 8);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(test_timers_run_in_order_and_the_clock_follows),
        T(test_a_cancelled_or_moved_timer),
        T(test_a_timer_set_to_now_waits_for_the_next_turn),
        T(test_without_waiting_the_clock_stands_still),
        T(test_removing_an_io_that_is_in_the_same_batch),
        T(test_deferred_calls_come_last_and_once),
        T(test_loop_free_runs_what_is_deferred),
        T(test_a_signal_stops_the_loop),
        T(test_children_are_waited_for),
        T(test_work_comes_back_to_the_loop),
        T(test_work_left_over_is_handed_back_as_cancelled),
        T(test_the_real_clock),
        T(test_a_busy_loop_without_a_backlog_does_not_rest),
        T(test_a_loop_with_a_backlog_keeps_its_pace),
};

UNIT_MAIN(tests)
