/* What the times of a request mean: the worked values of the definitions, and what all requests mean together. */
#include "unit/unit.h"

#include "probe/load/metrics.h"

#define TIMES(...) \
        .chunks = (const uint64_t[]){__VA_ARGS__}, .n_chunks = ARRAY_LEN(((const uint64_t[]){__VA_ARGS__}))
#define RECORD(start_, ...) (&(struct load_record){.start = (start_), .due = (start_), ##__VA_ARGS__})

static void assert_near(double a, double b)
{
        if (!(a - b < 1e-9 && b - a < 1e-9))
                fail_msg("%.12g is not %.12g", a, b);
}

static void assert_value(const struct load_record *r, enum load_metric metric, double expected)
{
        double value = -1;

        assert_true(load_value(r, metric, &value));
        assert_near(value, expected);
}

static void assert_none(const struct load_record *r, enum load_metric metric)
{
        double value;

        assert_false(load_value(r, metric, &value));
}

static void test_time_to_first_token(void **state)
{
        assert_value(RECORD(100, TIMES(110)), LOAD_TTFT, 10);
        assert_value(RECORD(100, TIMES(105, 115)), LOAD_TTFT, 5);
        assert_none(RECORD(100, TIMES(90)), LOAD_TTFT);
        assert_none(RECORD(100), LOAD_TTFT);
}

static void test_time_to_second_token(void **state)
{
        assert_value(RECORD(100, TIMES(110, 120)), LOAD_TTST, 10);
        assert_value(RECORD(100, TIMES(105, 110, 130)), LOAD_TTST, 5);
        assert_none(RECORD(100, TIMES(110)), LOAD_TTST);
        assert_none(RECORD(100, TIMES(120, 110)), LOAD_TTST);
}

static void test_request_latency(void **state)
{
        assert_value(RECORD(100, TIMES(150)), LOAD_LATENCY, 50);
        assert_value(RECORD(10, TIMES(15, 25, 35)), LOAD_LATENCY, 25);
        assert_none(RECORD(100), LOAD_LATENCY);
        assert_none(RECORD(100, TIMES(90)), LOAD_LATENCY);
}

static void test_inter_token_latency_counts_tokens_not_chunks(void **state)
{
        assert_value(RECORD(100, TIMES(120, 200), .osl = 6), LOAD_ITL, 16);
        assert_value(RECORD(1000, TIMES(1040, 1080, 1120), .osl = 9), LOAD_ITL, 10);
        assert_none(RECORD(100, TIMES(120), .osl = 1), LOAD_ITL);
        assert_none(RECORD(100, TIMES(120), .osl = 0), LOAD_ITL);
        assert_none(RECORD(100, .osl = 5), LOAD_ITL);
        assert_none(RECORD(100, TIMES(130, 120), .osl = 5), LOAD_ITL);
}

static void test_inter_chunk_latency_is_a_list(void **state)
{
        double gaps[3], value;

        assert_true(load_gaps(RECORD(100, TIMES(110, 120, 135)), gaps));
        assert_near(gaps[0], 10);
        assert_near(gaps[1], 15);
        assert_false(load_gaps(RECORD(100, TIMES(110, 110, 135)), gaps));
        assert_false(load_gaps(RECORD(100, TIMES(110, 120, 115)), gaps));
        assert_false(load_gaps(RECORD(100, TIMES(110)), gaps));
        assert_false(load_gaps(RECORD(100), gaps));
        assert_false(load_value(RECORD(100, TIMES(110, 120)), LOAD_ICL, &value));
}

static void test_tokens_a_second_of_one_user(void **state)
{
        assert_value(RECORD(0, TIMES(50000000, 250000000), .osl = 3), LOAD_PER_USER, 10);
        assert_none(RECORD(0, TIMES(50000000), .osl = 3), LOAD_PER_USER);
        assert_none(RECORD(0, TIMES(50000000, 60000000), .osl = 1), LOAD_PER_USER);
}

static void test_prefill_throughput(void **state)
{
        assert_value(RECORD(0, TIMES(500000000), .isl = 1000), LOAD_PREFILL, 2000);
        assert_none(RECORD(7, TIMES(7), .isl = 1000), LOAD_PREFILL);
}

static void test_a_failed_request_has_no_values(void **state)
{
        const struct load_record *failed = RECORD(100, TIMES(110, 120), .osl = 3, .error = "connection lost");
        const struct load_record *canceled = RECORD(100, TIMES(110, 120), .osl = 3, .canceled = true);
        struct load_slo slo = {LOAD_TTFT, 1e9};
        double gaps[1];

        for (int i = 0; i < LOAD_METRICS_; i++) {
                assert_none(failed, (enum load_metric)i);
                assert_none(canceled, (enum load_metric)i);
        }
        assert_false(load_gaps(failed, gaps));
        assert_false(load_good(failed, &slo, 1));
        assert_false(load_good(canceled, &slo, 1));
}

static struct load_record of_latency(uint64_t ms, uint64_t *at)
{
        *at = 1000 + ms * 1000000;
        return (struct load_record){.start = 1000, .due = 1000, .end = *at, .chunks = at, .n_chunks = 1};
}

static void test_the_limit_of_a_service_level_is_good(void **state)
{
        uint64_t at[3];
        struct load_record r[] = {of_latency(100, &at[0]), of_latency(300, &at[1]), of_latency(250, &at[2])};
        struct load_slo slo = {LOAD_LATENCY, 250};
        struct load_summary s;

        assert_true(load_summarize(r, 3, &slo, 1, &s));
        assert_int_equal(s.n_good, 2);
        assert_true(load_summarize(r, 3, NULL, 0, &s));
        assert_int_equal(s.n_good, 0);
        assert_near(s.goodput, 0);
}

static void test_chunks_of_one_read_are_told(void **state)
{
        const struct load_slo slo = {LOAD_ICL, 10};
        const uint64_t ms = 1000000;
        const struct load_record r[] = {
                *RECORD(0, TIMES(40 * ms, 45 * ms, 50 * ms, 55 * ms, 60 * ms)),
                *RECORD(0, TIMES(40 * ms, 45 * ms, 45 * ms, 50 * ms, 55 * ms)), /* not the first */
                *RECORD(0, TIMES(50 * ms, 50 * ms, 50 * ms, 55 * ms, 60 * ms)), /* two, of 5 ms each */
                *RECORD(0, TIMES(60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms)), /* all */
                *RECORD(0, TIMES(60 * ms, 60 * ms)),                            /* too few to say */
                *RECORD(0, TIMES(60 * ms)),
        };
        struct load_summary s;

        assert_true(load_summarize(r, ARRAY_LEN(r), &slo, 1, &s));
        assert_int_equal(s.n_without_gaps, 4);
        assert_int_equal(s.metrics[LOAD_ICL].n, 4);
        assert_int_equal(s.n_good, 5); /* equal times keep any limit; a single chunk has no gap */
        assert_int_equal(s.n_streams, 4);
        assert_int_equal(s.n_shared_first, 2);
        assert_near(load_shared_share(&s), 0.5);
        assert_int_equal(s.n_late_first, 0); /* read when they came: they came so */
        assert_false(load_good(RECORD(0, TIMES(50 * ms, 40 * ms)), &slo, 1));
}

static void test_first_chunks_that_were_read_late_are_told(void **state)
{
        const uint64_t ms = 1000000;
        const struct load_record r[] = {
                *RECORD(0, TIMES(50 * ms, 50 * ms, 50 * ms, 55 * ms, 60 * ms), .read_lag = 2 * ms),
                *RECORD(0, TIMES(60 * ms, 60 * ms, 60 * ms, 60 * ms, 60 * ms), .read_lag = 2 * ms),
                *RECORD(0, TIMES(50 * ms, 50 * ms, 55 * ms, 60 * ms, 65 * ms), .read_lag = LOAD_LAG_UNKNOWN),
                *RECORD(0, TIMES(50 * ms, 50 * ms, 55 * ms, 60 * ms, 65 * ms), .read_lag = ms / 20),
                *RECORD(0, TIMES(50 * ms, 55 * ms, 60 * ms, 65 * ms, 70 * ms), .read_lag = 2 * ms),
        };
        struct load_summary s;

        assert_true(load_summarize(r, ARRAY_LEN(r), NULL, 0, &s));
        assert_int_equal(s.n_shared_first, 4);
        assert_int_equal(s.n_late_first, 3);
        assert_near(load_late_share(&s), 0.6);
        assert_near(s.late_first_late, (2 * 5 + 60 + 5) / 3.0);
}

static void test_levels_of_rates_are_lower_limits_and_all_must_hold(void **state)
{
        const struct load_record *r = RECORD(0, TIMES(50000000, 250000000), .osl = 3);
        struct load_slo both[] = {{LOAD_PER_USER, 10}, {LOAD_TTFT, 50}};

        assert_true(load_good(r, both, 2));
        both[0].limit = 10.1;
        assert_false(load_good(r, both, 2));
        both[0].limit = 9;
        both[1].limit = 49.9;
        assert_false(load_good(r, both, 2));
        assert_false(load_good(r, &(struct load_slo){LOAD_PREFILL, 1}, 1));
        assert_true(load_good(r, &(struct load_slo){LOAD_ICL, 200}, 1));
        assert_false(load_good(r, &(struct load_slo){LOAD_ICL, 199.9}, 1));
        /* What the request has no value of does not hold. */
        assert_false(load_good(RECORD(0, TIMES(5)), &(struct load_slo){LOAD_TTST, 100}, 1));
}

static void test_duration_is_from_the_first_start_to_the_last_end(void **state)
{
        struct load_record r[] = {
                {.start = 10, .end = 15}, {.start = 20, .end = 25}, {.start = 30, .end = 40}};
        struct load_summary s;

        assert_true(load_summarize(r, 3, NULL, 0, &s));
        assert_true(s.has_duration);
        assert_near(s.duration * 1e9, 30);

        /* No time went by: there is no rate. */
        r[0].end = r[0].start;
        assert_true(load_summarize(r, 1, NULL, 0, &s));
        assert_false(s.has_duration);
        assert_near(s.request_throughput, 0);
}

/* N requests of OSL tokens each that take SECONDS together. */
static struct load_summary of_many(size_t n, uint32_t osl, double seconds, size_t good)
{
        _cleanup_(free_ptr) struct load_record *r = xcalloc(n, sizeof(*r));
        _cleanup_(free_ptr) uint64_t *at = xcalloc(n, sizeof(*at));
        struct load_slo slo = {LOAD_TTFT, 1};
        struct load_summary s;

        for (size_t i = 0; i < n; i++) {
                at[i] = i < good ? 1000 : 2000000;
                r[i] = (struct load_record){
                        .end = (uint64_t)(seconds * 1e9), .osl = osl, .chunks = &at[i], .n_chunks = 1};
        }
        assert_true(load_summarize(r, n, &slo, 1, &s));
        return s;
}

static void test_throughputs(void **state)
{
        assert_near(of_many(100, 1, 5, 0).request_throughput, 20);
        assert_near(of_many(100, 10, 2, 0).output_throughput, 500);
        assert_near(of_many(75, 10, 1.5, 0).output_throughput, 500);
        assert_near(of_many(20, 1, 1, 15).goodput, 15);
}

static void test_statistics_are_in_the_unit_of_the_metric(void **state)
{
        struct load_record r[5];
        uint64_t at[5];
        struct load_summary s;
        const struct stats_summary *m = &s.metrics[LOAD_LATENCY];

        for (unsigned i = 0; i < 5; i++)
                r[i] = of_latency(5 - i, &at[i]);
        assert_true(load_summarize(r, 5, NULL, 0, &s));
        assert_int_equal(m->n, 5);
        assert_near(m->min, 1);
        assert_near(m->max, 5);
        assert_near(m->avg, 3);
        assert_near(m->p[STATS_P50], 3);
        assert_int_equal(s.metrics[LOAD_TTST].n, 0);
}

static void test_gaps_of_all_requests_are_pooled_and_itl_is_not(void **state)
{
        uint64_t many[] = {1000000, 2000000, 3000000, 4000000}, few[] = {1000000, 6000000};
        struct load_record r[] = {{.chunks = many, .n_chunks = 4, .osl = 4, .end = 4000000},
                                  {.chunks = few, .n_chunks = 2, .osl = 2, .end = 6000000}};
        struct load_summary s;

        assert_true(load_summarize(r, 2, NULL, 0, &s));
        assert_int_equal(s.metrics[LOAD_ICL].n, 4);
        assert_near(s.metrics[LOAD_ICL].avg, 2);
        assert_int_equal(s.metrics[LOAD_ITL].n, 2);
        assert_near(s.metrics[LOAD_ITL].avg, 3);
}

static void test_failures_count_as_errors_and_in_nothing_else(void **state)
{
        uint64_t at[] = {20}, late[] = {900};
        struct load_record r[] = {
                {.start = 10, .end = 30, .chunks = at, .n_chunks = 1, .isl = 7, .osl = 3, .osl_exact = true},
                {.start = 1,
                 .end = 1000,
                 .chunks = late,
                 .n_chunks = 1,
                 .isl = 9,
                 .osl = 9,
                 .error = "HTTP 500"},
                {.start = 2, .end = 2000, .canceled = true},
        };
        struct load_summary s;

        assert_true(load_summarize(r, 3, NULL, 0, &s));
        assert_int_equal(s.n_requests, 1);
        assert_int_equal(s.n_errors, 1);
        assert_int_equal(s.n_canceled, 1);
        assert_near(s.duration * 1e9, 20);
        assert_near(s.total_isl, 7);
        assert_near(s.total_osl, 3);
        assert_true(s.osl_exact);
        assert_int_equal(s.metrics[LOAD_TTFT].n, 1);

        assert_false(load_summarize(r + 1, 2, NULL, 0, &s));
        assert_int_equal(s.n_errors, 1);
        assert_false(s.has_duration);
        assert_false(s.osl_exact);
        assert_false(load_summarize(NULL, 0, NULL, 0, &s));
}

static void test_lateness_is_of_those_with_a_schedule(void **state)
{
        struct load_record open[] = {{.due = 1000, .start = 3000, .end = 9000},
                                     {.due = 5000, .start = 9000, .end = 9000, .error = "Timeout"},
                                     {.due = 6000, .error = "never sent"}};
        struct load_record closed[] = {{.due = 1000, .start = 1000, .end = 9000}};
        struct load_summary s;

        assert_true(load_summarize(open, 3, NULL, 0, &s));
        assert_int_equal(s.lateness.n, 2);
        assert_near(s.lateness.avg, 3);
        assert_near(s.lateness.max, 4);
        assert_true(load_summarize(closed, 1, NULL, 0, &s));
        assert_int_equal(s.lateness.n, 0);
}

static void test_an_estimate_makes_the_whole_an_estimate(void **state)
{
        struct load_record r[] = {{.end = 5, .osl_exact = true}, {.end = 5, .osl_exact = false}};
        struct load_summary s;

        assert_true(load_summarize(r, 2, NULL, 0, &s));
        assert_false(s.osl_exact);
        assert_true(load_summarize(r, 1, NULL, 0, &s));
        assert_true(s.osl_exact);
}

static void test_tags(void **state)
{
        enum load_metric m;

        assert_true(load_metric_of(STR("inter_token_latency"), &m));
        assert_int_equal(m, LOAD_ITL);
        assert_false(load_metric_of(STR("inter_token"), &m));
        for (int i = 0; i < LOAD_METRICS_; i++)
                assert_true(load_metrics[i].tag && load_metrics[i].header && load_metrics[i].unit);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_to_first_token),
        cmocka_unit_test(test_time_to_second_token),
        cmocka_unit_test(test_request_latency),
        cmocka_unit_test(test_inter_token_latency_counts_tokens_not_chunks),
        cmocka_unit_test(test_inter_chunk_latency_is_a_list),
        cmocka_unit_test(test_tokens_a_second_of_one_user),
        cmocka_unit_test(test_prefill_throughput),
        cmocka_unit_test(test_a_failed_request_has_no_values),
        cmocka_unit_test(test_the_limit_of_a_service_level_is_good),
        cmocka_unit_test(test_chunks_of_one_read_are_told),
        cmocka_unit_test(test_first_chunks_that_were_read_late_are_told),
        cmocka_unit_test(test_levels_of_rates_are_lower_limits_and_all_must_hold),
        cmocka_unit_test(test_duration_is_from_the_first_start_to_the_last_end),
        cmocka_unit_test(test_throughputs),
        cmocka_unit_test(test_statistics_are_in_the_unit_of_the_metric),
        cmocka_unit_test(test_gaps_of_all_requests_are_pooled_and_itl_is_not),
        cmocka_unit_test(test_failures_count_as_errors_and_in_nothing_else),
        cmocka_unit_test(test_lateness_is_of_those_with_a_schedule),
        cmocka_unit_test(test_an_estimate_makes_the_whole_an_estimate),
        cmocka_unit_test(test_tags),
};
UNIT_MAIN(tests)
