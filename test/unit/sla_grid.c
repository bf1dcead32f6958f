/* Where to measure. The expected lists are those of upstream's formulas in Python. */
#include "unit/sla_rig.h"

static void assert_list(const uint64_t *v, size_t n, const uint64_t *expected, size_t n_expected)
{
        assert_int_equal(n, n_expected);
        for (size_t i = 0; i < n_expected; i++)
                assert_int_equal(v[i], expected[i]);
}

static void test_concurrencies(void **state)
{
        static const struct {
                unsigned attn_dp;
                uint64_t most;
                unsigned granularity;
                size_t n;
                uint64_t expected[10];
        } cases[] = {
                {1, 333, 6, 6, {1, 67, 133, 200, 266, 333}},
                {1, 2000, 6, 6, {1, 400, 800, 1200, 1600, 2000}},
                {1, 5, 6, 5, {1, 2, 3, 4, 5}},
                {1, 6, 6, 6, {1, 2, 3, 4, 5, 6}},
                {1, 7, 6, 6, {1, 2, 3, 4, 5, 7}},
                {1, 0, 6, 0, {0}},
                {8, 333, 6, 6, {8, 72, 136, 200, 264, 328}},
                {8, 7, 6, 0, {0}},
                {8, 8, 6, 1, {8}},
                {8, 50, 6, 6, {8, 16, 24, 32, 40, 48}},
                {4, 100000, 6, 6, {4, 400, 800, 1200, 1600, 2000}},
                {4, UINT64_MAX, 6, 6, {4, 400, 800, 1200, 1600, 2000}},
                {2, 77, 10, 10, {2, 10, 18, 26, 34, 42, 50, 58, 66, 76}},
                {16, 2000, 7, 7, {16, 336, 672, 1008, 1328, 1664, 2000}},
                {1, 100, 2, 2, {1, 100}},
                /* Upstream divides by 0 here. */
                {1, 100, 1, 1, {1}},
                {4, 100, 0, 0, {0}},
                {0, 3, 6, 3, {1, 2, 3}},
        };
        uint64_t grid[SLA_GRID_MAX] = {0};

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                size_t n = sla_request_grid(cases[i].attn_dp, cases[i].most, cases[i].granularity, grid);

                assert_list(grid, n, cases[i].expected, cases[i].n);
        }
}

static void test_a_fine_grid_is_truncated_as_python_does(void **state)
{
        static const uint64_t expected[] = {1,    41,   82,   123,  164,  204,  245,  286,  327,  367,
                                            408,  449,  490,  531,  571,  612,  653,  694,  734,  775,
                                            816,  857,  898,  938,  979,  1020, 1061, 1101, 1142, 1183,
                                            1224, 1265, 1305, 1346, 1387, 1428, 1468, 1509, 1550, 1591,
                                            1632, 1672, 1713, 1754, 1795, 1835, 1876, 1917, 1958, 1999};
        uint64_t grid[SLA_GRID_MAX] = {0};

        assert_list(grid, sla_request_grid(1, 1999, 50, grid), expected, ARRAY_LEN(expected));
}

static void test_any_grid_grows_within_its_bounds(void **state)
{
        const unsigned rounds = unit_extent(2000, 20000, 1000000);
        uint64_t grid[SLA_GRID_MAX] = {0};
        struct rng rng;

        rng_seed(&rng, 6);
        for (unsigned round = 0; round < rounds; round++) {
                unsigned dp = (unsigned)rng_below(&rng, 64) + 1, granularity = (unsigned)rng_below(&rng, 300);
                uint64_t most = rng_below(&rng, round % 2 ? 5000 : 100);
                size_t n = sla_request_grid(dp, most, granularity, grid);

                assert_true(n <= granularity && n <= SLA_GRID_MAX);
                assert_int_equal(n == 0, most < dp || granularity == 0 || dp > SLA_CONCURRENCY_MAX);
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(grid[i] % dp, 0);
                        assert_true(grid[i] <= most && grid[i] <= SLA_CONCURRENCY_MAX);
                        assert_true(i == 0 ? grid[i] == dp : grid[i] > grid[i - 1]);
                }
        }
}

static void test_input_lengths_of_prefill(void **state)
{
        static const uint64_t usual[] = {100,  573,  1046, 1519, 1992, 2465, 2938, 3411, 3884,
                                         4357, 4830, 5303, 5776, 6249, 6722, 7195, 7668};
        static const uint64_t divisible[] = {100, 200,  300,  400,  500,  600,  700,  800,
                                             900, 1000, 1100, 1200, 1300, 1400, 1500, 1600};
        static const uint64_t tiny[] = {100, 101, 102, 103, 104, 105, 106, 107};
        struct err err = ERR_INIT;
        uint64_t grid[SLA_GRID_MAX] = {0};
        size_t n;

        assert_int_equal(sla_prefill_isls(8192, 16, grid, &n, &err), 0);
        assert_list(grid, n, usual, ARRAY_LEN(usual));
        assert_int_equal(sla_prefill_isls(2212, 16, grid, &n, &err), 0);
        assert_list(grid, n, divisible, ARRAY_LEN(divisible));
        assert_int_equal(sla_prefill_isls(620, 16, grid, &n, &err), 0);
        assert_list(grid, n, tiny, ARRAY_LEN(tiny));
        assert_int_equal(sla_prefill_isls(612, 16, grid, &n, &err), -1);
        assert_string_equal(err.text, "max_context_length 100 is too small to profile prefill");
        assert_int_equal(n, 0);
        assert_int_equal(sla_prefill_isls(0, 16, grid, &n, &err), -1);
        assert_string_equal(err.text, "max_context_length -512 is too small to profile prefill");
}

static void test_input_lengths_of_decode(void **state)
{
        static const uint64_t usual[] = {100, 1382, 2664, 3946, 5228, 6510},
                              small[] = {100, 200, 300, 400, 500}, one[] = {100};
        struct err err = ERR_INIT;
        uint64_t grid[SLA_GRID_MAX] = {0};
        size_t n;

        assert_int_equal(sla_decode_isls(8192, 6, grid, &n, &err), 0);
        assert_list(grid, n, usual, ARRAY_LEN(usual));
        assert_int_equal(sla_decode_isls(1100, 6, grid, &n, &err), 0);
        assert_list(grid, n, small, ARRAY_LEN(small));
        assert_int_equal(sla_decode_isls(603, 6, grid, &n, &err), 0);
        assert_list(grid, n, one, ARRAY_LEN(one));
        assert_int_equal(sla_decode_isls(600, 6, grid, &n, &err), -1);
        assert_string_equal(err.text, "max_context_length 100 is too small to profile decode");
}

static void test_any_input_lengths_grow_within_the_context(void **state)
{
        struct err err = ERR_INIT;
        uint64_t grid[SLA_GRID_MAX] = {0};
        struct rng rng;
        size_t n;

        rng_seed(&rng, 7);
        for (unsigned round = 0; round < 20000; round++) {
                unsigned granularity = (unsigned)rng_below(&rng, 64) + 1;
                uint64_t context = (uint64_t)any_between(&rng, 613, 1e7);

                assert_int_equal(sla_prefill_isls(context, granularity, grid, &n, &err), 0);
                assert_true(n >= 1 && n <= 2 * granularity);
                for (size_t i = 0; i < n; i++)
                        assert_true(grid[i] < context - 512 &&
                                    (i == 0 ? grid[i] == 100 : grid[i] > grid[i - 1]));
                assert_int_equal(sla_decode_isls(context, granularity, grid, &n, &err), 0);
                assert_true(n >= 1 && n <= 2 * granularity);
                for (size_t i = 0; i < n; i++)
                        assert_true(grid[i] < context - 500 &&
                                    (i == 0 ? grid[i] == 100 : grid[i] > grid[i - 1]));
        }
        assert_int_equal(sla_prefill_isls(UINT64_MAX, 0, grid, &n, &err), 0);
        assert_int_equal(n, 1);
}

static void test_the_kv_size_that_logs_say(void **state)
{
        static const struct {
                const char *backend, *log;
                unsigned attn_dp;
                uint64_t expected;
        } cases[] = {
                {"vllm",
                 "INFO 10-01 kv_cache_utils.py:829] Maximum concurrency for 4096 tokens per request: "
                 "24.41x\n",
                 1, 99983},
                {"vllm", "first\nMaximum concurrency for 40,960 tokens per request: 3.45x", 8, 1130496},
                /* Each rank says it; one is enough. */
                {"vllm",
                 "Maximum concurrency for 2048 tokens per request: 60.04x\n"
                 "Maximum concurrency for 2048 tokens per request: 1.00x\n",
                 1, 122961},
                {"vllm", "Maximum concurrency for 131072 tokens per request: 1.17x", 1, 153354},
                {"vllm", "Maximum concurrency for  tokens per request: 1x", 1, 0},
                {"vllm", "Maximum concurrency for 4096 tokens per request: x", 1, 0},
                {"vllm", "Maximum concurrency for 4096 tokens", 1, 0},
                {"vllm", "KV Cache is allocated. #tokens: 1000", 1, 0},
                {"vllm", "", 1, 0},
                {"sglang", "[TP0] KV Cache is allocated. #tokens: 1234567, K size: 8.24 GB", 1, 1234567},
                {"sglang", "x\nKV Cache is allocated. #tokens: 500\nKV Cache is allocated. #tokens: 900", 4,
                 2000},
                {"sglang", "#tokens:", 4, 0},
                {"trtllm",
                 "[MemUsageChange] Allocated 1.10 GiB for max tokens in paged KV cache (8256).\n"
                 "noise\n"
                 "[MemUsageChange] Allocated 68.69 GiB for max tokens in paged KV cache (643136).\n",
                 1, 643136},
                {"trtllm", "paged KV cache (12", 1, 0},
                {"trtllm", "nothing", 1, 0},
                {"other", "KV Cache is allocated. #tokens: 1000", 1, 0},
                {NULL, "KV Cache is allocated. #tokens: 1000", 1, 0},
                /* Bounded, whatever it says. */
                {"sglang", "#tokens: 99999999999999999999999", 1, 0},
                {"sglang", "#tokens: 999999999999999", 2, 2000000000},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++)
                assert_int_equal(sla_kv_from_log(cases[i].backend, str_of(cases[i].log), cases[i].attn_dp),
                                 cases[i].expected);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrencies),
        cmocka_unit_test(test_a_fine_grid_is_truncated_as_python_does),
        cmocka_unit_test(test_any_grid_grows_within_its_bounds),
        cmocka_unit_test(test_input_lengths_of_prefill),
        cmocka_unit_test(test_input_lengths_of_decode),
        cmocka_unit_test(test_any_input_lengths_grow_within_the_context),
        cmocka_unit_test(test_the_kv_size_that_logs_say),
};
UNIT_MAIN(tests)
