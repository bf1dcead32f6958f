#include "unit/unit.h"

#include <malloc.h>

#include "kube/queue.h"

/* A queue on a clock that stands still unless the test (or an idle loop) moves it. */
struct fixture {
        struct clock clock;
        struct loop *loop;
        struct metrics *metrics;
        struct queue *q;
        int woken;
};

static void on_ready(void *arg)
{
        struct fixture *f = arg;

        f->woken++;
}

static int set_up(void **state)
{
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->clock = (struct clock){.manual = true, .boot = 1000 * USEC_PER_SEC, .wall = 1000 * USEC_PER_SEC};
        f->loop = loop_new(&f->clock, NULL, NULL);
        f->metrics = metrics_new();
        f->q = queue_new(f->loop, &(struct queue_config){"test", f->metrics, on_ready, f});
        rng_seed(loop_rng(f->loop), 1);
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;

        queue_free(f->q);
        metrics_free(f->metrics);
        loop_free(f->loop);
        free(f);
        return 0;
}

static void advance(struct fixture *f, usec_t by)
{
        f->clock.boot += by;
        f->clock.wall += by;
        loop_turn(f->loop, false);
}

static void assert_next(struct fixture *f, const char *key)
{
        struct str taken = queue_take(f->q);

        assert_non_null(taken.p);
        assert_str(taken, key);
}

static void assert_none(struct fixture *f)
{
        assert_null(queue_take(f->q).p);
}

static void fail_once(struct fixture *f, const char *key)
{
        assert_next(f, key);
        queue_done(f->q, str_of(key), QUEUE_RETRY);
}

static void assert_metric(struct fixture *f, const char *line)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);
        _cleanup_(free_ptr) char *want = xasprintf("\n%s\n", line);

        metrics_write(f->metrics, &out);
        if (!strstr(buf_cstr(&out), want))
                fail_msg("no line '%s' in:\n%s", line, buf_cstr(&out));
}

/* ---- client-go's cases */

static void test_keys_come_in_the_order_of_adding(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("ns/a"), QUEUE_NORMAL);
        queue_add(f->q, STR("ns/b"), QUEUE_NORMAL);
        queue_add(f->q, STR("ns/c"), QUEUE_NORMAL);
        assert_int_equal(queue_ready(f->q), 3);
        assert_int_equal(f->woken, 3);
        assert_next(f, "ns/a");
        assert_next(f, "ns/b");
        assert_next(f, "ns/c");
        assert_none(f);
        assert_int_equal(queue_running(f->q), 3);
}

static void test_duplicates_collapse(void **state)
{
        struct fixture *f = *state;

        for (int i = 0; i < 100; i++)
                queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_int_equal(queue_ready(f->q), 1);
        assert_int_equal(f->woken, 1);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_none(f);
        assert_int_equal(queue_running(f->q), 0);
}

static void test_adding_a_running_key_makes_it_ready_when_done(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_none(f); /* never two at once */
        assert_int_equal(f->woken, 1);
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_int_equal(f->woken, 2);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_none(f);
}

static void test_a_key_that_is_done_twice_or_unknown_is_harmless(void **state)
{
        struct fixture *f = *state;

        queue_done(f->q, STR("never"), QUEUE_RETRY);
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_done(f->q, STR("a"), QUEUE_OK); /* not taken: stays */
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        queue_done(f->q, STR("a"), QUEUE_RETRY);
        assert_int_equal(queue_ready(f->q) + queue_waiting(f->q) + queue_running(f->q), 0);
}

/* ---- priorities */

static void test_higher_priorities_come_first(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("low1"), QUEUE_LOW);
        queue_add(f->q, STR("normal1"), QUEUE_NORMAL);
        queue_add(f->q, STR("high1"), QUEUE_HIGH);
        queue_add(f->q, STR("low2"), QUEUE_LOW);
        queue_add(f->q, STR("high2"), QUEUE_HIGH);
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"-100\"} 2");
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"0\"} 1");
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"100\"} 2");
        assert_next(f, "high1");
        assert_next(f, "high2");
        assert_next(f, "normal1");
        assert_next(f, "low1");
        assert_next(f, "low2");
}

static void test_adding_again_keeps_the_higher_priority_and_the_place(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_LOW);
        queue_add(f->q, STR("b"), QUEUE_NORMAL);
        queue_add(f->q, STR("a"), QUEUE_NORMAL); /* rises, and was ready before b */
        queue_add(f->q, STR("b"), QUEUE_LOW);    /* does not sink */
        queue_add(f->q, STR("c"), QUEUE_LOW);
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"0\"} 2");
        assert_next(f, "a");
        assert_next(f, "b");
        assert_next(f, "c");
}

static void test_a_change_overtakes_the_backlog_of_a_restart(void **state)
{
        struct fixture *f = *state;
        char key[32];

        for (int i = 0; i < 1000; i++) {
                int n = snprintf(key, sizeof(key), "ns/%d", i);

                queue_add(f->q, str_n(key, (size_t)n), QUEUE_LOW);
        }
        queue_add(f->q, STR("ns/700"), QUEUE_NORMAL);
        assert_next(f, "ns/700");
        assert_next(f, "ns/0");
}

static void test_a_running_key_takes_the_priority_of_its_next_add(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_LOW);
        assert_next(f, "a");
        queue_add(f->q, STR("b"), QUEUE_NORMAL);
        queue_add(f->q, STR("a"), QUEUE_LOW);
        queue_add(f->q, STR("a"), QUEUE_HIGH);
        queue_add(f->q, STR("a"), QUEUE_LOW);
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_next(f, "a");
        assert_next(f, "b");
}

static void test_a_retry_keeps_its_priority(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_HIGH);
        fail_once(f, "a");
        queue_add(f->q, STR("b"), QUEUE_NORMAL);
        advance(f, 10 * USEC_PER_MS);
        assert_next(f, "a");
}

/* ---- time */

static void test_a_delayed_key_waits(void **state)
{
        struct fixture *f = *state;

        queue_add_after(f->q, STR("a"), 5 * USEC_PER_SEC);
        assert_int_equal(queue_waiting(f->q), 1);
        assert_none(f);
        advance(f, 5 * USEC_PER_SEC - 1);
        assert_none(f);
        assert_int_equal(f->woken, 0);
        advance(f, 1);
        assert_int_equal(f->woken, 1);
        assert_int_equal(queue_waiting(f->q), 0);
        assert_next(f, "a");
}

static void test_delayed_keys_come_in_the_order_of_their_times(void **state)
{
        struct fixture *f = *state;

        queue_add_after(f->q, STR("c"), 3 * USEC_PER_SEC);
        queue_add_after(f->q, STR("a"), 1 * USEC_PER_SEC);
        queue_add_after(f->q, STR("b"), 2 * USEC_PER_SEC);
        advance(f, 10 * USEC_PER_SEC);
        assert_next(f, "a");
        assert_next(f, "b");
        assert_next(f, "c");
}

static void test_the_loop_wakes_for_the_first_delayed_key(void **state)
{
        struct fixture *f = *state;
        usec_t start = f->clock.boot;

        queue_add_after(f->q, STR("b"), 7 * USEC_PER_SEC);
        queue_add_after(f->q, STR("a"), 3 * USEC_PER_SEC);
        loop_turn(f->loop, true);
        assert_int_equal(f->clock.boot - start, 3 * USEC_PER_SEC);
        assert_next(f, "a");
        queue_forget(f->q, STR("b"));
        loop_turn(f->loop, true); /* nothing to wait for any more */
        assert_int_equal(f->clock.boot - start, 3 * USEC_PER_SEC);
}

static void test_the_earlier_of_two_times_wins(void **state)
{
        struct fixture *f = *state;

        queue_add_after(f->q, STR("a"), 10 * USEC_PER_SEC);
        queue_add_after(f->q, STR("a"), 2 * USEC_PER_SEC);
        queue_add_after(f->q, STR("a"), 20 * USEC_PER_SEC);
        assert_int_equal(queue_waiting(f->q), 1);
        advance(f, 2 * USEC_PER_SEC);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        advance(f, 60 * USEC_PER_SEC);
        assert_none(f); /* once, not three times */
}

static void test_an_add_ends_the_wait(void **state)
{
        struct fixture *f = *state;

        queue_add_after(f->q, STR("a"), 10 * USEC_PER_SEC);
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_int_equal(queue_waiting(f->q), 0);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        advance(f, 60 * USEC_PER_SEC);
        assert_none(f);
}

static void test_a_delay_on_a_ready_key_does_not_hold_it(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_add_after(f->q, STR("a"), 10 * USEC_PER_SEC);
        assert_next(f, "a");
        assert_int_equal(queue_waiting(f->q), 0);
}

static void test_a_delay_on_a_running_key_starts_after_it(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add_after(f->q, STR("a"), 10 * USEC_PER_SEC);
        queue_add_after(f->q, STR("a"), 5 * USEC_PER_SEC);
        advance(f, 1 * USEC_PER_SEC);
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_int_equal(queue_waiting(f->q), 1);
        advance(f, 4 * USEC_PER_SEC); /* counted from the call */
        assert_next(f, "a");
        /* passed while it ran: ready at once */
        queue_add_after(f->q, STR("a"), 1 * USEC_PER_SEC);
        advance(f, 2 * USEC_PER_SEC);
        assert_none(f);
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_next(f, "a");
}

static void test_no_delay_is_an_add(void **state)
{
        struct fixture *f = *state;

        queue_add_after(f->q, STR("a"), 0);
        assert_next(f, "a");
        queue_add_after(f->q, STR("a"), 0);
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        queue_add_after(f->q, STR("far"), USEC_MAX); /* does not wrap */
        assert_none(f);
}

/* ---- failures */

static usec_t backoff_of(struct fixture *f, const char *key)
{
        usec_t start = f->clock.boot;

        fail_once(f, key);
        loop_turn(f->loop, true);
        return f->clock.boot - start;
}

static void test_backoff_doubles_from_5_ms_to_1000_s(void **state)
{
        struct fixture *f = *state;
        usec_t base = 5 * USEC_PER_MS, jittered = 0;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        for (unsigned n = 0; n < 40; n++) {
                usec_t delay = backoff_of(f, "a");

                assert_true(delay >= base);
                assert_true(delay <= base + base / 10);
                jittered += delay != base;
                assert_int_equal(queue_failures(f->q, STR("a")), n + 1);
                base = MIN(base * 2, 1000 * USEC_PER_SEC);
        }
        assert_true(jittered > 30);
        assert_int_equal(base, 1000 * USEC_PER_SEC);
}

static void test_success_forgets_failures(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        for (int i = 0; i < 10; i++)
                backoff_of(f, "a");
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_int_equal(queue_failures(f->q, STR("a")), 0);
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_true(backoff_of(f, "a") < 6 * USEC_PER_MS);
}

static void test_an_add_during_backoff_is_served_now_and_the_failures_stay(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        for (int i = 0; i < 8; i++)
                backoff_of(f, "a");
        fail_once(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_int_equal(queue_failures(f->q, STR("a")), 9);
        assert_true(backoff_of(f, "a") >= 5 * USEC_PER_MS << 9);
}

static void test_a_dirty_key_that_failed_is_ready_at_once(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_done(f->q, STR("a"), QUEUE_RETRY);
        assert_next(f, "a");
        assert_int_equal(queue_failures(f->q, STR("a")), 1);
        queue_done(f->q, STR("a"), QUEUE_OK);
        advance(f, 3600 * USEC_PER_SEC);
        assert_none(f);
}

static void test_a_retry_and_a_delay_take_the_earlier(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add_after(f->q, STR("a"), 1 * USEC_PER_MS);
        queue_done(f->q, STR("a"), QUEUE_RETRY);
        advance(f, 1 * USEC_PER_MS);
        assert_next(f, "a");
}

static void test_giving_up_does_not_retry_unless_dirty(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_done(f->q, STR("a"), QUEUE_GIVE_UP);
        advance(f, 3600 * USEC_PER_SEC);
        assert_none(f);

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_done(f->q, STR("a"), QUEUE_GIVE_UP);
        assert_next(f, "a");
        assert_int_equal(queue_failures(f->q, STR("a")), 1);
}

static void test_forget(void **state)
{
        struct fixture *f = *state;

        queue_forget(f->q, STR("unknown"));
        queue_add_after(f->q, STR("waiting"), USEC_PER_SEC);
        queue_forget(f->q, STR("waiting"));
        assert_int_equal(queue_waiting(f->q), 0);

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        fail_once(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_forget(f->q, STR("a")); /* ready: stays, without its failures */
        assert_int_equal(queue_failures(f->q, STR("a")), 0);
        assert_next(f, "a");
        queue_add_after(f->q, STR("a"), USEC_PER_SEC);
        queue_forget(f->q, STR("a")); /* running: not again */
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_int_equal(queue_waiting(f->q), 0);

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        assert_next(f, "a");
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_forget(f->q, STR("a")); /* running and dirty: somebody wants it now */
        queue_done(f->q, STR("a"), QUEUE_OK);
        assert_next(f, "a");
}

static void test_a_poison_key_does_not_delay_others(void **state)
{
        struct fixture *f = *state;
        unsigned poison = 0, good = 0;
        usec_t end = f->clock.boot + 60 * USEC_PER_SEC;

        queue_add(f->q, STR("poison"), QUEUE_HIGH);
        while (f->clock.boot < end) {
                struct str key;

                queue_add(f->q, STR("good"), QUEUE_NORMAL);
                while ((key = queue_take(f->q)).p) {
                        bool bad = str_eq(key, STR("poison"));

                        poison += bad;
                        good += !bad;
                        queue_done(f->q, key, bad ? QUEUE_RETRY : QUEUE_OK);
                }
                advance(f, 10 * USEC_PER_MS);
        }
        assert_int_equal(good, 6000); /* every time, at once */
        assert_in_range(poison, 10, 15);
}

static void test_a_key_that_is_always_dirty_takes_turns_with_others(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("busy"), QUEUE_NORMAL);
        for (int i = 0; i < 5; i++) {
                assert_next(f, "busy");
                queue_add(f->q, STR("busy"), QUEUE_NORMAL);
                queue_add(f->q, STR("b"), QUEUE_NORMAL);
                queue_add(f->q, STR("c"), QUEUE_NORMAL);
                queue_done(f->q, STR("busy"), QUEUE_OK);
                assert_next(f, "b");
                queue_done(f->q, STR("b"), QUEUE_OK);
                assert_next(f, "c");
                queue_done(f->q, STR("c"), QUEUE_OK);
        }
}

static void test_keys_are_compared_whole(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("ns/a"), QUEUE_NORMAL);
        queue_add(f->q, STR("ns/ab"), QUEUE_NORMAL);
        queue_add(f->q, STR("ns/"), QUEUE_NORMAL);
        queue_add(f->q, STR(""), QUEUE_NORMAL);
        assert_int_equal(queue_ready(f->q), 4);
}

/* ---- metrics */

static void test_metrics_have_the_names_dashboards_expect(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_add(f->q, STR("b"), QUEUE_NORMAL);
        advance(f, 2 * USEC_PER_SEC);
        assert_next(f, "a");
        advance(f, 3 * USEC_PER_SEC);
        assert_next(f, "b");
        advance(f, 1 * USEC_PER_SEC);
        assert_metric(f, "workqueue_unfinished_work_seconds{name=\"test\",controller=\"test\"} 5");
        assert_metric(f, "workqueue_longest_running_processor_seconds{name=\"test\",controller=\"test\"} 4");
        queue_done(f->q, STR("a"), QUEUE_RETRY);
        queue_done(f->q, STR("b"), QUEUE_OK);
        assert_metric(f, "workqueue_adds_total{name=\"test\",controller=\"test\"} 2");
        assert_metric(f, "workqueue_retries_total{name=\"test\",controller=\"test\"} 1");
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"0\"} 0");
        assert_metric(f, "workqueue_queue_duration_seconds_sum{name=\"test\",controller=\"test\"} 7");
        assert_metric(f, "workqueue_queue_duration_seconds_bucket{name=\"test\",controller=\"test\",le=\"1\"}"
                         " 0");
        assert_metric(f, "workqueue_queue_duration_seconds_bucket{name=\"test\",controller=\"test\",le="
                         "\"10\"} 2");
        assert_metric(f, "workqueue_queue_duration_seconds_bucket{name=\"test\",controller=\"test\",le=\"1e-"
                         "08\"} 0");
        assert_metric(f, "workqueue_queue_duration_seconds_bucket{name=\"test\",controller=\"test\",le="
                         "\"1000\"} 2");
        assert_metric(f, "workqueue_work_duration_seconds_sum{name=\"test\",controller=\"test\"} 5");
        assert_metric(f, "workqueue_work_duration_seconds_count{name=\"test\",controller=\"test\"} 2");
        assert_metric(f, "workqueue_unfinished_work_seconds{name=\"test\",controller=\"test\"} 0");
}

static void test_a_queue_that_has_gone_leaves_the_metrics_usable(void **state)
{
        struct fixture *f = *state;

        queue_add(f->q, STR("a"), QUEUE_NORMAL);
        queue_free(f->q);
        f->q = NULL;
        assert_metric(f, "workqueue_depth{name=\"test\",controller=\"test\",priority=\"0\"} 0");
}

static void test_a_queue_without_metrics_and_callback_works(void **state)
{
        struct fixture *f = *state;
        struct queue *q = queue_new(f->loop, &(struct queue_config){.name = "plain"});

        queue_add(q, STR("a"), QUEUE_NORMAL);
        assert_str(queue_take(q), "a");
        queue_done(q, STR("a"), QUEUE_RETRY);
        queue_add_after(q, STR("b"), USEC_PER_SEC);
        queue_free(q);
}

/* ---- size */

/* Under a sanitizer the allocator does not say. */
static size_t allocated(void)
{
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

static void test_100_000_keys(void **state)
{
        struct fixture *f = *state;
        enum { KEYS = 100000 };
        char key[64];
        size_t taken = 0, before = allocated(), bytes;
        clock_t start = clock();
        struct str k;

        for (int i = 0; i < KEYS; i++) {
                int n = snprintf(key, sizeof(key), "namespace-%d/request-%06d", i % 100, i);

                queue_add(f->q, str_n(key, (size_t)n), (enum queue_priority)(i % QUEUE_PRIORITIES_));
                queue_add_after(f->q, str_n(key, (size_t)n), (usec_t)i);
        }
        bytes = allocated() - before;
        while ((k = queue_take(f->q)).p)
                queue_done(f->q, k, taken++ % 2 ? QUEUE_OK : QUEUE_RETRY);
        assert_int_equal(taken, KEYS);
        assert_int_equal(queue_waiting(f->q), KEYS / 2);
        advance(f, USEC_PER_SEC);
        while ((k = queue_take(f->q)).p)
                queue_done(f->q, k, QUEUE_OK), taken++;
        assert_int_equal(taken, KEYS + KEYS / 2);
        print_message("# %d keys: %zu bytes a key, %.0f ms of CPU for %zu rounds\n", KEYS, bytes / KEYS,
                      (double)(clock() - start) * 1000 / CLOCKS_PER_SEC, taken);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
        TEST(test_keys_come_in_the_order_of_adding),
        TEST(test_duplicates_collapse),
        TEST(test_adding_a_running_key_makes_it_ready_when_done),
        TEST(test_a_key_that_is_done_twice_or_unknown_is_harmless),
        TEST(test_higher_priorities_come_first),
        TEST(test_adding_again_keeps_the_higher_priority_and_the_place),
        TEST(test_a_change_overtakes_the_backlog_of_a_restart),
        TEST(test_a_running_key_takes_the_priority_of_its_next_add),
        TEST(test_a_retry_keeps_its_priority),
        TEST(test_a_delayed_key_waits),
        TEST(test_delayed_keys_come_in_the_order_of_their_times),
        TEST(test_the_loop_wakes_for_the_first_delayed_key),
        TEST(test_the_earlier_of_two_times_wins),
        TEST(test_an_add_ends_the_wait),
        TEST(test_a_delay_on_a_ready_key_does_not_hold_it),
        TEST(test_a_delay_on_a_running_key_starts_after_it),
        TEST(test_no_delay_is_an_add),
        TEST(test_backoff_doubles_from_5_ms_to_1000_s),
        TEST(test_success_forgets_failures),
        TEST(test_an_add_during_backoff_is_served_now_and_the_failures_stay),
        TEST(test_a_dirty_key_that_failed_is_ready_at_once),
        TEST(test_a_retry_and_a_delay_take_the_earlier),
        TEST(test_giving_up_does_not_retry_unless_dirty),
        TEST(test_forget),
        TEST(test_a_poison_key_does_not_delay_others),
        TEST(test_a_key_that_is_always_dirty_takes_turns_with_others),
        TEST(test_keys_are_compared_whole),
        TEST(test_metrics_have_the_names_dashboards_expect),
        TEST(test_a_queue_that_has_gone_leaves_the_metrics_usable),
        TEST(test_a_queue_without_metrics_and_callback_works),
        TEST(test_100_000_keys),
};

UNIT_MAIN(tests)
