/* What a perfect client must measure of a simulated engine, against values computed by hand. */
#include "unit/unit.h"

#include "probe/sim/sim.h"

#define MS 1e6

/* Prefill 10 ms and 1 ms a token, a step 5 ms and 1 ms a request. */
static struct sim_model model(void)
{
        return (struct sim_model){
                .name = "m",
                .gpus = 1,
                .prefill_base = 10 * MS,
                .prefill_token = MS,
                .step_base = 5 * MS,
                .step_request = MS,
                .kv_per_gpu = 100000,
                .seed = 1,
        };
}

static struct load_summary truth(const struct sim_model *m, struct sim_load load)
{
        struct load_summary s;
        struct err err = ERR_INIT;

        if (sim_truth(m, &load, &s, &err) < 0)
                fail_msg("%s", err.text);
        return s;
}

static void assert_near(double a, double b)
{
        if (a - b > 1e-6 || b - a > 1e-6)
                fail_msg("%.9g is not %.9g", a, b);
}

static void test_one_client(void **state)
{
        struct sim_model m = model();
        struct load_summary s = truth(
                &m, (struct sim_load){.concurrency = 1, .requests = 10, .isl = 40, .osl = 11});

        assert_int_equal(s.n_requests, 10);
        assert_int_equal(s.n_errors, 0);
        assert_near(s.metrics[LOAD_TTFT].avg, 50);
        assert_near(s.metrics[LOAD_TTFT].max, 50);
        assert_near(s.metrics[LOAD_ITL].avg, 6);
        assert_near(s.metrics[LOAD_LATENCY].avg, 110);
        assert_near(s.metrics[LOAD_OSL].avg, 11);
        assert_near(s.duration, 1.1);
        assert_near(s.output_throughput, 100);
}

static void test_clients_that_begin_together_wait_for_each_others_prefill(void **state)
{
        struct sim_model m = model();
        struct load_summary s = truth(
                &m, (struct sim_load){.concurrency = 4, .requests = 8, .isl = 10, .osl = 3});

        /* 20, 40, 60, 80 ms; then steps of 5 + 4 for all; twice the same */
        assert_near(s.metrics[LOAD_TTFT].avg, 50);
        assert_near(s.metrics[LOAD_TTFT].max, 80);
        assert_near(s.metrics[LOAD_ITL].max, (80 + 18 - 20) / 2.0);
        assert_near(s.metrics[LOAD_ITL].min, 9);
        assert_near(s.duration, 2 * 0.098);
}

static void test_who_asks_again_waits_for_the_step_that_has_begun(void **state)
{
        struct sim_model m = model();
        struct load_summary s;

        /* Room for one: the second waits, so from then on they take turns. */
        m.max_batch = 1;
        s = truth(&m, (struct sim_load){.concurrency = 2, .requests = 4, .isl = 10, .osl = 2});
        /* a: 20, 26; b: begins at 26: 46, 52; a again, from 26: begins at 52: 72, 78; b again, from 52: 98 */
        assert_near(s.metrics[LOAD_TTFT].min, 20);
        assert_near(s.metrics[LOAD_TTFT].sum, 20 + 46 + 46 + 46);
        assert_near(s.duration, 0.104);
}

static void test_a_warm_up_is_not_counted_but_fills_the_cache(void **state)
{
        struct sim_model m = model();
        struct sim_load load = {.concurrency = 1, .requests = 2, .isl = 40, .osl = 2, .prompts = 2};

        m.prefix_cache = true;
        assert_near(truth(&m, load).metrics[LOAD_TTFT].avg, 50);
        load.warmup = 1; /* prompt 1; then prompt 2 is new and prompt 1 is not */
        assert_near(truth(&m, load).metrics[LOAD_TTFT].avg, 30);
        assert_int_equal(truth(&m, load).n_requests, 2);
        load.warmup = 2;
        assert_near(truth(&m, load).metrics[LOAD_TTFT].avg, 10);
}

static void test_the_same_load_again_has_its_prompts_cached(void **state)
{
        struct sim_model m = model();
        struct sim_load load = {
                .concurrency = 2, .requests = 6, .isl = 40, .osl = 2, .prompts = 6, .again = true};

        m.prefix_cache = true;
        assert_near(truth(&m, load).metrics[LOAD_TTFT].max, 20);
        m.prefix_cache = false;
        assert_near(truth(&m, load).metrics[LOAD_TTFT].max, 100);
}

static void test_jitter_is_left_out(void **state)
{
        struct sim_model m = model();
        struct sim_load load = {.concurrency = 3, .requests = 7, .isl = 40, .osl = 5};
        double even = truth(&m, load).metrics[LOAD_LATENCY].avg;

        m.jitter = 0.5;
        assert_near(truth(&m, load).metrics[LOAD_LATENCY].avg, even);
}

static void test_dep_ranks_work_side_by_side(void **state)
{
        struct sim_model m = model();
        struct load_summary s;

        m.gpus = 4;
        m.mapping = SIM_DEP;
        s = truth(&m, (struct sim_load){.concurrency = 8, .requests = 16, .isl = 10, .osl = 2});
        assert_near(s.metrics[LOAD_TTFT].min, 20);
        assert_near(s.metrics[LOAD_TTFT].max, 40);
        /* each rank: two prefills, one step of 5 + 2, twice */
        assert_near(s.duration, 2 * 0.047);
}

static void test_what_cannot_be_is_an_error(void **state)
{
        struct sim_model m = model();
        struct load_summary s;
        struct err err = ERR_INIT;

        assert_int_equal(sim_truth(&m, &(struct sim_load){.requests = 1}, &s, &err), -1);
        assert_int_equal(err.code, E_CONFIG);
        assert_int_equal(sim_truth(&m, &(struct sim_load){.requests = 1, .isl = 100000, .osl = 1}, &s, &err),
                         -1);
        assert_int_equal(err.code, E_TOO_LARGE);
        assert_int_equal(sim_truth(&m, &(struct sim_load){.requests = 1u << 31, .osl = 1000}, &s, &err), -1);
        assert_int_equal(err.code, E_TOO_LARGE);
        assert_int_equal(sim_truth(&m, &(struct sim_load){.requests = 10000001, .osl = 1}, &s, &err), -1);
        assert_string_equal(err.text, "a load of more than 10000000 requests");
        m.weights_kv = 100000;
        assert_int_equal(sim_truth(&m, &(struct sim_load){.requests = 1, .osl = 1}, &s, &err), -1);
        assert_string_equal(err.text, "m does not fit into the memory of 1 GPUs as TP");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_client),
        cmocka_unit_test(test_clients_that_begin_together_wait_for_each_others_prefill),
        cmocka_unit_test(test_who_asks_again_waits_for_the_step_that_has_begun),
        cmocka_unit_test(test_a_warm_up_is_not_counted_but_fills_the_cache),
        cmocka_unit_test(test_the_same_load_again_has_its_prompts_cached),
        cmocka_unit_test(test_jitter_is_left_out),
        cmocka_unit_test(test_dep_ranks_work_side_by_side),
        cmocka_unit_test(test_what_cannot_be_is_an_error),
};

UNIT_MAIN(tests)
