/* When requests are due: means, spreads, exactness, and the same times for the same seed. */
#include "unit/unit.h"

#include <math.h>

#include "probe/load/arrivals.h"

enum { DRAWS = 200000 };

static void test_constant_does_not_drift(void **state)
{
        static const double rates[] = {1, 3, 7, 100, 1000, 12345.678};

        for (size_t k = 0; k < ARRAY_LEN(rates); k++) {
                uint64_t last = 0, steps = 10000000 / ARRAY_LEN(rates);
                struct arrivals a;

                arrivals_init(&a, ARRIVE_CONSTANT, rates[k], 0, 1);
                assert_int_equal(arrivals_next(&a), 0);
                for (uint64_t i = 1; i <= steps; i++)
                        last = arrivals_next(&a);
                /* Of whole rates the time is known in integers. */
                if (rates[k] == floor(rates[k])) {
                        uint64_t whole = (uint64_t)rates[k];

                        assert_int_equal(last, (steps * 1000000000 + whole / 2) / whole);
                }
                assert_true(fabs((double)last - (double)steps * 1e9 / rates[k]) <= 1);
        }
}

static void test_ten_million_at_a_thousand_a_second(void **state)
{
        struct arrivals a;

        arrivals_init(&a, ARRIVE_CONSTANT, 1000, 0, 1);
        for (uint64_t i = 0; i < 10000000; i++)
                if (arrivals_next(&a) != i * 1000000)
                        fail_msg("request %llu is off", (unsigned long long)i);
}

/* Mean and variance of the gaps, in means. */
static void moments(enum arrival_pattern pattern, double smoothness, uint64_t seed, double *mean,
                    double *variance)
{
        const double rate = 50;
        double sum = 0, squares = 0;
        uint64_t before = 0;
        struct arrivals a;

        arrivals_init(&a, pattern, rate, smoothness, seed);
        for (int i = 0; i < DRAWS; i++) {
                uint64_t at = arrivals_next(&a);
                double gap = (double)(at - before) / 1e9 * rate;

                assert_true(at >= before);
                before = at;
                sum += gap;
                squares += gap * gap;
        }
        *mean = sum / DRAWS;
        *variance = squares / DRAWS - *mean * *mean;
}

/* A gamma of shape K and mean 1 has the variance 1/K; its own sample variance spreads by (2 + 6/K) / K^2 / n. */
static void assert_gamma(enum arrival_pattern pattern, double smoothness, double k)
{
        for (uint64_t seed = 1; seed <= 3; seed++) {
                double mean, variance;

                moments(pattern, smoothness, seed, &mean, &variance);
                if (fabs(mean - 1) > 5 * sqrt(1 / k / DRAWS))
                        fail_msg("shape %g: mean %g", k, mean);
                if (fabs(variance - 1 / k) > 5 * sqrt((2 + 6 / k) / k / k / DRAWS))
                        fail_msg("shape %g: variance %g", k, variance);
        }
}

static void test_poisson_has_exponential_gaps(void **state)
{
        assert_gamma(ARRIVE_POISSON, 0, 1);
}

static void test_gamma_has_the_shape_it_is_told(void **state)
{
        static const double shapes[] = {0.1, 0.5, 1, 2, 10, 250};

        for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
                assert_gamma(ARRIVE_GAMMA, shapes[i], shapes[i]);
        assert_gamma(ARRIVE_GAMMA, 0, 1);
}

static void test_the_same_seed_gives_the_same_times(void **state)
{
        static const enum arrival_pattern patterns[] = {ARRIVE_POISSON, ARRIVE_GAMMA};

        for (size_t k = 0; k < ARRAY_LEN(patterns); k++) {
                struct arrivals a, b, other;
                bool differs = false;

                arrivals_init(&a, patterns[k], 10, 0.7, 42);
                arrivals_init(&b, patterns[k], 10, 0.7, 42);
                arrivals_init(&other, patterns[k], 10, 0.7, 43);
                for (int i = 0; i < 1000; i++) {
                        uint64_t at = arrivals_next(&a);

                        assert_int_equal(at, arrivals_next(&b));
                        differs = differs || at != arrivals_next(&other);
                }
                assert_true(differs);
        }
}

static void test_a_burst_is_all_at_once(void **state)
{
        struct arrivals a;

        arrivals_init(&a, ARRIVE_BURST, 0, 0, 1);
        for (int i = 0; i < 10; i++)
                assert_int_equal(arrivals_next(&a), 0);
}

static void test_no_rate_is_never(void **state)
{
        struct arrivals a;

        arrivals_init(&a, ARRIVE_CONSTANT, 0, 0, 1);
        assert_int_equal(arrivals_next(&a), 0);
        assert_true(arrivals_next(&a) == UINT64_MAX);
        arrivals_init(&a, ARRIVE_POISSON, 0, 0, 1);
        assert_true(arrivals_next(&a) == UINT64_MAX);
}

static void test_names(void **state)
{
        enum arrival_pattern p = ARRIVE_GAMMA;
        struct err err = ERR_INIT;

        assert_int_equal(arrival_pattern_of("constant", &p, &err), 0);
        assert_int_equal(p, ARRIVE_CONSTANT);
        assert_int_equal(arrival_pattern_of("concurrency_burst", &p, &err), 0);
        assert_int_equal(p, ARRIVE_BURST);
        assert_true(arrival_pattern_of("uniform", &p, &err) < 0);
        assert_int_equal(err.code, E_CONFIG);
        assert_non_null(strstr(err.text, "'uniform'"));
        assert_true(arrival_pattern_of(NULL, &p, NULL) < 0);
        assert_int_equal(p, ARRIVE_BURST);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant_does_not_drift),
        cmocka_unit_test(test_ten_million_at_a_thousand_a_second),
        cmocka_unit_test(test_poisson_has_exponential_gaps),
        cmocka_unit_test(test_gamma_has_the_shape_it_is_told),
        cmocka_unit_test(test_the_same_seed_gives_the_same_times),
        cmocka_unit_test(test_a_burst_is_all_at_once),
        cmocka_unit_test(test_no_rate_is_never),
        cmocka_unit_test(test_names),
};
UNIT_MAIN(tests)
