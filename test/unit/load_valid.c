/* Whether the client was the bottleneck: each limit, from both sides, by figures made here. */
#include "unit/unit.h"

#include "probe/load/load_private.h"

/* Latency 100 ms, first token after 40 ms; the client used half of a core. */
static struct load_report report(void)
{
        return (struct load_report){
                .cpu = 0.5,
                .summary = {
                        .metrics =
                                {[LOAD_LATENCY] = {.n = 10, .avg = 100}, [LOAD_TTFT] = {.n = 10, .avg = 40}},
                        .n_streams = 100}};
}

static void assert_valid(struct load_report r, double late_p99)
{
        load_check_client(&r, late_p99);
        if (r.invalid)
                fail_msg("%s", r.invalid);
}

static void assert_invalid(struct load_report r, double late_p99, const char *why)
{
        load_check_client(&r, late_p99);
        assert_non_null(r.invalid);
        assert_string_equal(r.invalid, why);
        arena_done(&r.arena);
}

static void test_a_client_that_kept_up_is_valid(void **state)
{
        assert_valid(report(), 0);
}

static void test_requests_that_went_out_late_are_invalid(void **state)
{
        assert_valid(report(), 5); /* 5 % of the latency */
        assert_invalid(
                report(), 5.5,
                "the client was the bottleneck: requests went out up to 5.5 ms late (p99), 6 % of the mean "
                "latency; use a lower rate, more workers or a machine with less to do");
}

static void test_lateness_below_a_millisecond_is_valid_whatever_the_latency(void **state)
{
        struct load_report r = report();

        r.summary.metrics[LOAD_LATENCY].avg = 0.5;
        assert_valid(r, 1);
        assert_invalid(
                r, 1.1,
                "the client was the bottleneck: requests went out up to 1.1 ms late (p99), 220 % of the mean "
                "latency; use a lower rate, more workers or a machine with less to do");
}

static void test_lateness_counts_where_no_request_succeeded(void **state)
{
        struct load_report r = report();

        r.summary.metrics[LOAD_LATENCY] = r.summary.metrics[LOAD_TTFT] = (struct stats_summary){0};
        assert_valid(r, 0.9);
        assert_invalid(
                r, 7,
                "the client was the bottleneck: requests went out up to 7.0 ms late (p99), 0 % of the mean "
                "latency; use a lower rate, more workers or a machine with less to do");
}

static void test_a_worker_that_was_always_busy_is_invalid(void **state)
{
        struct load_report r = report();

        r.cpu = 0.9;
        assert_valid(r, 0);
        r.cpu = 0.96;
        assert_invalid(r, 0,
                       "the client was the bottleneck: a worker was busy for 96 % of the time; use more "
                       "workers or a "
                       "machine with more cores");
}

static void test_first_chunks_that_were_read_too_late_are_invalid(void **state)
{
        struct load_report r = report();

        r.summary.n_shared_first = r.summary.n_late_first = 20;
        r.summary.late_first_late = 10; /* 20 % of the streams, 10 ms each: 2 ms of the mean of 40 ms */
        assert_valid(r, 0);
        r.summary.late_first_late = 10.5;
        assert_invalid(
                r, 0,
                "the client was the bottleneck: it read 20 % of the first chunks together with later ones, "
                "about 10.5 ms after they came; use more workers or a machine with less to do");
        r.summary.n_late_first = 5; /* too few, however late */
        r.summary.late_first_late = 1000;
        assert_valid(r, 0);
        r.summary.n_late_first = 100; /* all, by too little */
        r.summary.late_first_late = 1;
        r.summary.metrics[LOAD_TTFT].avg = 2;
        assert_valid(r, 0);
}

/* They came at once: that is the server's doing. */
static void test_first_chunks_that_came_together_are_valid(void **state)
{
        struct load_report r = report();

        r.summary.n_shared_first = 100;
        r.summary.late_first_late = 50;
        assert_valid(r, 0);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_that_kept_up_is_valid),
        cmocka_unit_test(test_requests_that_went_out_late_are_invalid),
        cmocka_unit_test(test_lateness_below_a_millisecond_is_valid_whatever_the_latency),
        cmocka_unit_test(test_lateness_counts_where_no_request_succeeded),
        cmocka_unit_test(test_a_worker_that_was_always_busy_is_invalid),
        cmocka_unit_test(test_first_chunks_that_were_read_too_late_are_invalid),
        cmocka_unit_test(test_first_chunks_that_came_together_are_valid),
};

UNIT_MAIN(tests)
