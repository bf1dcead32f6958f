/* How many engines carry a demand. The expected numbers are those of upstream's formulas in Python, where it stays in budget. */
#include "unit/sla_rig.h"

static struct sla_demand demand(double requests, unsigned prefill_gpus, unsigned decode_gpus, unsigned budget)
{
        return (struct sla_demand){
                .requests = requests,
                .interval = 180,
                .isl = 3000,
                .osl = 500,
                .prefill_gpus = prefill_gpus,
                .decode_gpus = decode_gpus,
                .budget = budget,
                .min_endpoint = 1,
        };
}

static void test_replicas(void **state)
{
        static const struct {
                double requests, isl, osl, correction;
                unsigned prefill_gpus, decode_gpus, budget, least;
                double prefill_throughput, decode_throughput;
                unsigned prefill, decode;
                bool capped;
        } cases[] = {
                {1800, 3000, 150, 1, 1, 1, 64, 1, 8000, 500, 4, 3, false},
                {1800, 3000, 150, 0.5, 1, 1, 64, 1, 8000, 500, 2, 3, false},
                /* A slow prefill does not raise it. */
                {1800, 3000, 150, 2, 1, 1, 64, 1, 8000, 500, 4, 3, false},
                {36000, 3000, 500, 1, 4, 2, 512, 1, 2100, 800, 72, 63, false},
                {0, 3000, 500, 1, 4, 2, 512, 2, 2100, 800, 2, 2, false},
                {3600, 3000, 500, 1, 1, 1, 8, 1, 9000, 1500, 4, 4, true},
                {3600, 3000, 500, 1, 2, 2, 16, 1, 3000, 700, 4, 4, true},
                {3600, 4000, 400, 1, 4, 4, 32, 1, 2000, 250, 4, 4, true},
                /* Upstream: 20 and 2, which leaves 4 GPUs without an engine, and prefill is short of them. */
                {100000, 3000, 500, 1, 1, 8, 40, 2, 9000, 1500, 24, 2, true},
                /* 5 and 2 of 1 and 3 GPUs, 11 together: 5 / 11 * 8 is 4, which leaves 1 for decode and a GPU over. */
                {180, 5000, 6000, 1, 1, 3, 8, 1, 1000, 1000, 5, 1, true},
                {3000, 3000, 500, 1, 2, 1, 5, 1, 9000, 1500, 1, 3, true},
                /* Halves go to the even number: 5 and 5 within 5, 3 and 3 within 3. */
                {180, 5000, 5000, 1, 1, 1, 5, 1, 1000, 1000, 2, 3, true},
                {180, 3000, 3000, 1, 1, 1, 3, 1, 1000, 1000, 2, 1, true},
                {NAN, 3000, 500, 1, 1, 1, 8, 1, 9000, 1500, 1, 1, false},
                {1e300, 3000, 500, 1, 1, 1, 8, 1, 9000, 1500, 4, 4, true},
        };
        struct err err = ERR_INIT;
        struct sla_replicas r;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const struct sla_demand d = {
                        .requests = cases[i].requests,
                        .interval = 180,
                        .isl = cases[i].isl,
                        .osl = cases[i].osl,
                        .prefill_corr = cases[i].correction,
                        .prefill_gpus = cases[i].prefill_gpus,
                        .decode_gpus = cases[i].decode_gpus,
                        .budget = cases[i].budget,
                        .min_endpoint = cases[i].least,
                };

                assert_int_equal(
                        sla_replicas(&d, cases[i].prefill_throughput, cases[i].decode_throughput, &r, &err),
                        0);
                assert_int_equal(r.prefill, cases[i].prefill);
                assert_int_equal(r.decode, cases[i].decode);
                assert_int_equal(r.capped, cases[i].capped);
                assert_int_equal(r.gpus, r.prefill * d.prefill_gpus + r.decode * d.decode_gpus);
        }
}

static void test_rounding_never_goes_over_the_budget(void **state)
{
        /* 3 and 3 are asked for, 15 GPUs; 8 * 3 / 15 is 1.6: upstream takes 2 for prefill, 1 for decode, 9 GPUs. */
        struct sla_demand d = demand(180, 4, 1, 8);
        struct err err = ERR_INIT;
        struct sla_replicas r;

        d.osl = 3000;
        assert_int_equal(sla_replicas(&d, 250, 1000, &r, &err), 0);
        assert_int_equal(r.prefill, 1);
        /* Upstream gives decode all that is left, 4; 3 is what was asked for. */
        assert_int_equal(r.decode, 3);
        assert_int_equal(r.gpus, 7);
        assert_true(r.capped);
}

static void test_what_cannot_be_planned(void **state)
{
        struct sla_demand d = demand(1, 2, 2, 3);
        struct err err = ERR_INIT;
        struct sla_replicas r;

        assert_int_equal(sla_replicas(&d, 9000, 1500, &r, &err), -1);
        assert_string_equal(err.text,
                            "1 engine of 2 GPUs for prefill and 1 of 2 for decode need 4 GPUs, and the "
                            "budget has 3");
        d.budget = 15;
        d.min_endpoint = 4;
        assert_int_equal(sla_replicas(&d, 9000, 1500, &r, &err), -1);
        assert_string_equal(err.text,
                            "4 engines of 2 GPUs for prefill and 4 of 2 for decode need 16 GPUs, and "
                            "the budget has 15");
        d = demand(1, 1, 1, 8);
        assert_int_equal(sla_replicas(&d, 9000, 0, &r, &err), -1);
        assert_string_equal(err.text, "the throughput of decode is not above 0: nothing carries a demand");
        assert_int_equal(sla_replicas(&d, NAN, 5, &r, &err), -1);
        assert_string_equal(err.text, "the throughput of prefill is not above 0: nothing carries a demand");
        d.interval = 0;
        assert_int_equal(sla_replicas(&d, 9000, 5, &r, &err), -1);
        d = demand(1, 0, 1, 8);
        assert_int_equal(sla_replicas(&d, 9000, 5, &r, &err), -1);
}

static void test_any_demand_stays_within_its_budget(void **state)
{
        const unsigned rounds = unit_extent(2000, 50000, 2000000);
        struct rng rng;

        rng_seed(&rng, 10);
        for (unsigned round = 0; round < rounds; round++) {
                struct sla_demand d = demand(any_between(&rng, 1, 1e7), 1U << rng_below(&rng, 6),
                                             1U << rng_below(&rng, 6), (unsigned)rng_below(&rng, 512));
                struct err err = ERR_INIT;
                struct sla_replicas r, more;
                double prefill = any_between(&rng, 10, 1e5), decode = any_between(&rng, 10, 1e5);
                int code;

                d.min_endpoint = (unsigned)rng_below(&rng, 4) + 1;
                code = sla_replicas(&d, prefill, decode, &r, &err);
                assert_int_equal(code<0, d.min_endpoint *(d.prefill_gpus + d.decode_gpus)> d.budget);
                if (code < 0)
                        continue;
                assert_true(r.gpus <= d.budget && r.prefill >= d.min_endpoint && r.decode >= d.min_endpoint);
                d.budget *= 2;
                assert_int_equal(sla_replicas(&d, prefill, decode, &more, &err), 0);
                assert_true(more.gpus <= d.budget);
                if (!r.capped)
                        assert_true(more.prefill == r.prefill && more.decode == r.decode && !more.capped);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_rounding_never_goes_over_the_budget),
        cmocka_unit_test(test_what_cannot_be_planned),
        cmocka_unit_test(test_any_demand_stays_within_its_budget),
};
UNIT_MAIN(tests)
