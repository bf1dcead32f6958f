/* Launches together, what bounds them, and what is told about it. */
#include "unit/unit.h"

#include "probe/ncu/ncu.h"

#define BIT(m) (1u << (m))

/* ---- the rules */

static void assert_bound(struct ncu_bound got, const char *type, const char *bottleneck)
{
        assert_string_equal(got.type, type);
        if (bottleneck)
                assert_string_equal(got.bottleneck, bottleneck);
        else
                assert_null(got.bottleneck);
}

static struct ncu_bound sol(double sm, double mem)
{
        double value[NCU_METRICS] = {[NCU_SM] = sm, [NCU_MEM] = mem};

        return ncu_classify(NCU_RULE_SOL, BIT(NCU_SM) | BIT(NCU_MEM), value);
}

static void test_speed_of_light_has_a_side(void **state)
{
        assert_bound(sol(75, 40), "compute-bound", "compute");
        assert_bound(sol(40, 75), "memory-bound", "memory");
        assert_bound(sol(60, 50), "compute-bound", "compute");
        assert_bound(sol(50, 60), "memory-bound", "memory");
        assert_bound(sol(60, 50.01), "mixed", "balanced");
        assert_bound(sol(69.9, 60), "mixed", "balanced");
        assert_bound(sol(60, 60), "mixed", "balanced");
        assert_bound(sol(79.99, 0), "compute-bound", "compute");
        assert_bound(sol(70.1, 60.1), "compute-bound", "compute"); /* in binary these are not 10 apart */
        assert_bound(sol(60.1, 70.1), "memory-bound", "memory");
        assert_bound(sol(59.99999999999999, 0), "compute-bound", "compute"); /* a mean of 60s */
}

static void test_speed_of_light_is_saturated_from_80(void **state)
{
        assert_bound(sol(80, 0), "compute-bound", "saturated-compute");
        assert_bound(sol(80, 79.9), "compute-bound", "saturated-compute");
        assert_bound(sol(0, 80), "memory-bound", "saturated-memory");
        assert_bound(sol(90, 85), "mixed", "saturated-compute");
        assert_bound(sol(85, 90), "mixed", "saturated-memory");
        assert_bound(sol(80, 80), "mixed", "saturated-memory");
}

static void test_below_60_it_is_latency_or_a_small_grid(void **state)
{
        double value[NCU_METRICS] = {[NCU_SM] = 59.99, [NCU_MEM] = 59.99, [NCU_WAVES] = 0.99};
        uint32_t has = BIT(NCU_SM) | BIT(NCU_MEM);

        assert_bound(ncu_classify(NCU_RULE_SOL, has, value), "unknown", "latency");
        assert_bound(ncu_classify(NCU_RULE_SOL, has | BIT(NCU_WAVES), value), "unknown", "small-grid");
        value[NCU_WAVES] = 1;
        assert_bound(ncu_classify(NCU_RULE_SOL, has | BIT(NCU_WAVES), value), "unknown", "latency");
}

static void test_without_both_sides_nothing_is_said(void **state)
{
        double value[NCU_METRICS] = {[NCU_SM] = 99, [NCU_MEM] = 99};

        assert_bound(ncu_classify(NCU_RULE_SOL, BIT(NCU_SM), value), "unknown", NULL);
        assert_bound(ncu_classify(NCU_RULE_SOL, BIT(NCU_MEM), value), "unknown", NULL);
        assert_bound(ncu_classify(NCU_RULE_SOL, 0, value), "unknown", NULL);
        assert_bound(ncu_classify(NCU_RULE_UPSTREAM, 0, value), "unknown", NULL);
}

static const char *upstream(uint32_t has, double sm, double dram, double l2, double stall)
{
        double value[NCU_METRICS] = {[NCU_SM] = sm, [NCU_DRAM] = dram, [NCU_L2] = l2, [NCU_STALL] = stall};
        struct ncu_bound bound = ncu_classify(NCU_RULE_UPSTREAM, has, value);

        assert_null(bound.bottleneck);
        return bound.type;
}

static void test_upstream_s_rule(void **state)
{
        uint32_t all = BIT(NCU_SM) | BIT(NCU_DRAM) | BIT(NCU_L2) | BIT(NCU_STALL);

        assert_string_equal(upstream(all, 70, 69.99, 69.99, 29.99), "compute-bound");
        assert_string_equal(upstream(all, 69.99, 70, 0, 0), "memory-bound");
        assert_string_equal(upstream(all, 69.99, 0, 70, 0), "memory-bound");
        assert_string_equal(upstream(all, 69.99, 0, 0, 30), "memory-bound");
        assert_string_equal(upstream(all, 70, 0, 0, 30), "mixed");
        assert_string_equal(upstream(all, 69.99, 69.99, 69.99, 29.99), "unknown");
        assert_string_equal(upstream(BIT(NCU_SM), 88.9, 99, 99, 99), "compute-bound");
        assert_string_equal(upstream(BIT(NCU_DRAM), 99, 85.59, 0, 0), "memory-bound");
}

/* The four of which the numbers are published. */
static void test_known_kernels(void **state)
{
        uint32_t all = BIT(NCU_SM) | BIT(NCU_DRAM) | BIT(NCU_L2);
        double gemm[NCU_METRICS] = {[NCU_SM] = 88.9};

        assert_bound(sol(1.30, 61.84), "memory-bound", "memory");
        assert_string_equal(upstream(all, 1.30, 61.84, 8.38, 0), "unknown");
        assert_bound(sol(27.81, 85.59), "memory-bound", "saturated-memory");
        assert_string_equal(upstream(all, 27.81, 85.59, 79.26, 0), "memory-bound");
        assert_bound(sol(0, 0.9), "unknown", "latency");
        assert_string_equal(upstream(BIT(NCU_SM), 88.9, 0, 0, 0), "compute-bound");
        assert_bound(ncu_classify(NCU_RULE_SOL, BIT(NCU_SM), gemm), "unknown", NULL);
}

/* ---- sums */

struct fixture {
        struct arena a;
        struct ncu_sum *sum;
        struct ncu_context c;
        struct json *summary;
};

static int set_up(void **state)
{
        struct fixture *f = xcalloc(1, sizeof(*f));

        f->sum = ncu_sum_new();
        *state = f;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;

        ncu_sum_free(f->sum);
        arena_done(&f->a);
        free(f);
        return 0;
}

/* A value below 0 is not there. */
static void add(struct fixture *f, const char *kernel, double ns, double sm, double mem, double waves)
{
        struct ncu_launch l = {.has = 0};
        const double values[] = {ns, sm, mem, waves};
        const enum ncu_metric metrics[] = {NCU_DURATION, NCU_SM, NCU_MEM, NCU_WAVES};

        snprintf(l.kernel, sizeof(l.kernel), "%s", kernel);
        for (size_t i = 0; i < ARRAY_LEN(values); i++)
                if (values[i] >= 0) {
                        l.has |= BIT(metrics[i]);
                        l.value[metrics[i]] = values[i];
                }
        ncu_sum_add(f->sum, &l);
}

static void add_one(struct fixture *f, enum ncu_metric m, double value)
{
        struct ncu_launch l = {.kernel = "k", .has = BIT(m)};

        l.value[m] = value;
        ncu_sum_add(f->sum, &l);
}

/* The summary as text, between two of its members. */
static void assert_summary(struct fixture *f, const char *text)
{
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_string_equal(json_print(&f->a, f->summary), text);
}

static void test_percentages_weigh_by_duration(void **state)
{
        struct fixture *f = *state;

        add(f, "a", 3000, 90, 10, 5);
        add(f, "b", 1000, 10, 50, 0.5);
        assert_summary(
                f, "{\"boundType\":\"compute-bound\",\"metrics\":{\"smThroughput\":70,\"memThroughput\":20,"
                   "\"wavesPerSM\":5},\"launches\":2,\"kernels\":2,\"durationNs\":4000,\"bottleneck\":"
                   "\"compute\","
                   "\"dominantKernel\":\"a\",\"byKernel\":["
                   "{\"kernel\":\"a\",\"launches\":1,\"durationNs\":3000,\"share\":0.75,\"boundType\":"
                   "\"compute-bound\",\"bottleneck\":\"saturated-compute\",\"metrics\":{\"smThroughput\":90,"
                   "\"memThroughput\":10,\"wavesPerSM\":5}},"
                   "{\"kernel\":\"b\",\"launches\":1,\"durationNs\":1000,\"share\":0.25,\"boundType\":"
                   "\"unknown\","
                   "\"bottleneck\":\"small-grid\",\"metrics\":{\"smThroughput\":10,\"memThroughput\":50,"
                   "\"wavesPerSM\":0.5}}],\"rule\":\"sol\"}");
}

static void test_a_kernel_s_launches_have_a_range(void **state)
{
        struct fixture *f = *state;
        const struct json *kernel;

        add(f, "a", 3000, 90, 10, 5);
        add(f, "a", 1000, 10, -1, 7);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        kernel = json_first(json_at(f->summary, "byKernel"));
        assert_string_equal(json_print(&f->a, json_at(kernel, "min")),
                            "{\"smThroughput\":10,\"memThroughput\":10,\"wavesPerSM\":5}");
        assert_string_equal(json_print(&f->a, json_at(kernel, "max")),
                            "{\"smThroughput\":90,\"memThroughput\":10,\"wavesPerSM\":7}");
        assert_null(json_at(f->summary, "warnings"));
}

static void test_tiny_launches_are_warned_of(void **state)
{
        struct fixture *f = *state;

        add(f, "a", 900, 90, 10, 5);
        add(f, "a", 1000, 90, 10, 5);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_int_equal(json_len(json_at(f->summary, "warnings")), 1);
        add(f, "a", 1100, 90, 10, 5);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_null(json_at(f->summary, "warnings")); /* 1 us each */
}

static void test_without_a_duration_all_weigh_the_same(void **state)
{
        struct fixture *f = *state;
        const struct json *first;

        add(f, "b", 3000, 90, -1, -1);
        add(f, "a", -1, 10, -1, -1);
        add(f, "a", 1000, 20, -1, -1);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_true(json_bool(f->summary, "unweighted", false));
        assert_int_equal(json_int(json_at(f->summary, "metrics"), "smThroughput", 0), 40);
        first = json_first(json_at(f->summary, "byKernel"));
        assert_string_equal(json_str(first, "kernel"), "a"); /* two of three launches */
        assert_string_equal(json_print(&f->a, json_at(first, "share")), "0.666667");
        assert_string_equal(json_str(f->summary, "dominantKernel"), "a");
}

static void test_a_launch_without_a_metric_does_not_count_for_it(void **state)
{
        struct fixture *f = *state;

        add(f, "a", 1000, 90, -1, -1);
        add(f, "a", 9000, -1, 30, -1);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_int_equal(json_int(json_at(f->summary, "metrics"), "smThroughput", 0), 90);
        assert_int_equal(json_int(json_at(f->summary, "metrics"), "memThroughput", 0), 30);
        assert_int_equal(json_int(f->summary, "durationNs", 0), 10000);
        assert_null(json_at(f->summary, "unweighted"));
        assert_null(json_at(json_at(f->summary, "metrics"), "wavesPerSM"));
}

static void test_bytes_and_passes_add_up(void **state)
{
        struct fixture *f = *state;
        const struct json *metrics;

        add_one(f, NCU_PASSES, 8);
        add_one(f, NCU_PASSES, 9);
        add_one(f, NCU_DRAM_READ, 3e9);
        add_one(f, NCU_DRAM_READ, 4e9 + 1);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        metrics = json_at(f->summary, "metrics");
        assert_int_equal(json_int(f->summary, "passes", 0), 17);
        assert_int_equal(json_int(metrics, "dramReadBytes", 0), 7000000001);
        assert_null(json_at(f->summary, "durationNs"));
        assert_null(json_at(metrics, "passes"));
}

static void test_durations_of_0_weigh_the_same(void **state)
{
        struct fixture *f = *state;

        add(f, "a", 0, 10, -1, 2);
        add(f, "a", 0, 20, -1, 3);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_int_equal(json_int(json_at(f->summary, "metrics"), "smThroughput", 0), 15);
        assert_int_equal(json_int(json_at(f->summary, "metrics"), "wavesPerSM", 0), 2);
}

static void test_kernels_are_bounded_and_none_is_lost(void **state)
{
        struct fixture *f = *state;
        char name[16];

        for (int i = 0; i < NCU_KERNELS_MAX + 500; i++) {
                snprintf(name, sizeof(name), "k%d", i);
                add(f, name, 1, 50, -1, -1);
        }
        add(f, "k7", 1, 50, -1, -1);
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_int_equal(ncu_sum_launches(f->sum), NCU_KERNELS_MAX + 501);
        assert_int_equal(json_int(f->summary, "kernels", 0), NCU_KERNELS_MAX + 1);
        assert_string_equal(json_cstr(json_index(json_at(f->summary, "warnings"), 1)),
                            "there are more than 1024 kernels: the rest counts as one of them");
        assert_int_equal(json_int(f->summary, "durationNs", 0), NCU_KERNELS_MAX + 501);
        assert_string_equal(json_str(f->summary, "dominantKernel"), "k7");
        assert_int_equal(json_len(json_at(f->summary, "byKernel")), 16);
        assert_string_equal(json_str(json_index(json_at(f->summary, "byKernel"), 1), "kernel"), "k7");
}

static void test_several_devices_are_none(void **state)
{
        struct fixture *f = *state;
        struct ncu_launch l = {.kernel = "k", .device = "NVIDIA H100 80GB HBM3", .cc = "9.0"};

        ncu_sum_add(f->sum, &l);
        ncu_sum_add(f->sum, &(struct ncu_launch){.kernel = "k"});
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_string_equal(json_str(f->summary, "device"), "NVIDIA H100 80GB HBM3");
        assert_string_equal(json_str(f->summary, "computeCapability"), "9.0");
        ncu_sum_add(f->sum, &(struct ncu_launch){.kernel = "k", .device = "Tesla T4", .cc = "7.5"});
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        assert_null(json_at(f->summary, "device"));
        assert_null(json_at(f->summary, "computeCapability"));
}

static void test_nothing_at_all_is_told_too(void **state)
{
        assert_summary(
                *state,
                "{\"boundType\":\"unknown\",\"metrics\":{},\"launches\":0,\"kernels\":0,\"byKernel\":[],"
                "\"rule\":\"sol\"}");
}

/* ---- as KRATOS has it */

/* The seed's own example: what a real run of the basic set gave. */
static void test_the_seed_s_example(void **state)
{
        struct fixture *f = *state;
        struct ncu_launch l = {.kernel = "vectorAdd(float const*, float const*, float*, int)",
                               .has = BIT(NCU_SM) | BIT(NCU_L2) | BIT(NCU_OCCUPANCY),
                               .value = {[NCU_SM] = 12.56, [NCU_L2] = 30.22, [NCU_OCCUPANCY] = 78.21}};

        ncu_sum_add(f->sum, &l);
        for (int rule = NCU_RULE_SOL; rule <= NCU_RULE_UPSTREAM; rule++) {
                struct json *kratos;

                f->c.rule = (enum ncu_rule)rule;
                kratos = ncu_summary_kratos(&f->a, ncu_summary(&f->a, f->sum, &f->c));
                assert_string_equal(json_str(kratos, "boundType"), "unknown");
                assert_string_equal(
                        json_print(&f->a, json_at(kratos, "metrics")),
                        "{\"achievedOccupancy\":\"78.21\",\"dominantKernel\":\"vectorAdd(float const*, float "
                        "const*, float*, int)\",\"l2Throughput\":\"30.22\",\"launches\":\"1\","
                        "\"smThroughput\":\"12.56\",\"unweighted\":\"true\"}");
        }
}

static void test_kratos_has_strings_in_order_and_the_rest_beside(void **state)
{
        struct fixture *f = *state;
        static const char *const warnings[] = {"Running with unmodified GPU clocks", "another", NULL};
        struct ncu_launch l = {.kernel = "k",
                               .has = BIT(NCU_SM) | BIT(NCU_MEM) | BIT(NCU_DURATION) | BIT(NCU_PASSES) |
                                      BIT(NCU_STALL) | BIT(NCU_WAVES),
                               .value = {[NCU_SM] = 85,
                                         [NCU_MEM] = 1.0 / 3,
                                         [NCU_DURATION] = 4800,
                                         [NCU_PASSES] = 8,
                                         [NCU_WAVES] = 1e-9}};
        struct json *kratos;

        ncu_sum_add(f->sum, &l);
        f->c = (struct ncu_context){.layout = NCU_LAYOUT_WIDE,
                                    .partial = true,
                                    .replay = true,
                                    .warnings = warnings,
                                    .tool = "2025.3.1.0"};
        f->summary = ncu_summary(&f->a, f->sum, &f->c);
        kratos = ncu_summary_kratos(&f->a, f->summary);
        assert_string_equal(
                json_print(&f->a, json_at(kratos, "metrics")),
                "{\"bottleneck\":\"saturated-compute\",\"dominantKernel\":\"k\",\"durationNs\":\"4800\","
                "\"launches\":\"1\","
                "\"memThroughput\":\"0.333333\",\"memoryStallPct\":\"0\",\"partial\":\"true\",\"passes\":"
                "\"8\","
                "\"replay\":\"true\",\"smThroughput\":\"85\",\"warnings\":\"2\",\"wavesPerSM\":\"0\"}");
        assert_string_equal(json_str(kratos, "boundType"), "compute-bound");
        assert_null(json_at(json_at(kratos, "details"), "metrics"));
        assert_null(json_at(json_at(kratos, "details"), "boundType"));
        assert_string_equal(json_str(json_at(kratos, "details"), "tool"), "2025.3.1.0");
        assert_string_equal(json_str(json_at(kratos, "details"), "layout"), "wide");
        assert_int_equal(json_len(json_at(json_at(kratos, "details"), "warnings")), 2);
        assert_int_equal(json_len(json_at(json_at(kratos, "details"), "byKernel")), 1);
        assert_non_null(json_at(f->summary, "metrics")); /* it is as it was */
}

#define WITH_SUM(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speed_of_light_has_a_side),
        cmocka_unit_test(test_speed_of_light_is_saturated_from_80),
        cmocka_unit_test(test_below_60_it_is_latency_or_a_small_grid),
        cmocka_unit_test(test_without_both_sides_nothing_is_said),
        cmocka_unit_test(test_upstream_s_rule),
        cmocka_unit_test(test_known_kernels),
        WITH_SUM(test_percentages_weigh_by_duration),
        WITH_SUM(test_a_kernel_s_launches_have_a_range),
        WITH_SUM(test_tiny_launches_are_warned_of),
        WITH_SUM(test_without_a_duration_all_weigh_the_same),
        WITH_SUM(test_a_launch_without_a_metric_does_not_count_for_it),
        WITH_SUM(test_bytes_and_passes_add_up),
        WITH_SUM(test_durations_of_0_weigh_the_same),
        WITH_SUM(test_kernels_are_bounded_and_none_is_lost),
        WITH_SUM(test_several_devices_are_none),
        WITH_SUM(test_nothing_at_all_is_told_too),
        WITH_SUM(test_the_seed_s_example),
        WITH_SUM(test_kratos_has_strings_in_order_and_the_rest_beside),
};
UNIT_MAIN(tests)
