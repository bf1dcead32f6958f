/* Names, units and numbers of Nsight Compute. */
#include "unit/unit.h"

#include "probe/ncu/ncu.h"

/* ---- names */

static void test_full_names_are_matched_as_a_whole(void **state)
{
        unsigned rank = 99;

        assert_int_equal(ncu_metric_of(STR("sm__throughput.avg.pct_of_peak_sustained_elapsed"), &rank),
                         NCU_SM);
        assert_int_equal(rank, 0);
        assert_int_equal(ncu_metric_of(STR("sm__warps_active.avg.pct_of_peak_sustained_active"), &rank),
                         NCU_OCCUPANCY);
        assert_int_equal(ncu_metric_of(STR("sm__warps_active.max.pct_of_peak_sustained_active"), &rank),
                         NCU_METRICS);
        assert_int_equal(ncu_metric_of(STR("sm__throughput.avg.pct_of_peak_sustained_elapse"), &rank),
                         NCU_METRICS);
        assert_int_equal(ncu_metric_of(STR("l1tex__throughput.avg.pct_of_peak_sustained_elapsed"), &rank),
                         NCU_METRICS);
        assert_int_equal(
                ncu_metric_of(STR("breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed"), &rank),
                NCU_METRICS);
        assert_int_equal(ncu_metric_of(STR("gpu__time_duration.sum"), &rank), NCU_DURATION);
        assert_int_equal(ncu_metric_of(STR("gpu__time_duration.max"), &rank), NCU_METRICS);
        assert_int_equal(ncu_metric_of(STR(""), &rank), NCU_METRICS);
        assert_int_equal(ncu_metric_of(STR("Kernel Name"), &rank), NCU_METRICS);
}

static void test_of_one_meaning_the_first_name_is_the_best(void **state)
{
        static const struct {
                struct str better, worse;
                enum ncu_metric m;
        } pairs[] = {
                {STR("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
                 STR("dram__throughput.avg.pct_of_peak_sustained_elapsed"), NCU_DRAM},
                {STR("lts__throughput.avg.pct_of_peak_sustained_elapsed"),
                 STR("lts__t_sectors.avg.pct_of_peak_sustained_elapsed"), NCU_L2},
                {STR("dram__bytes_read.sum"), STR("dram__bytes_op_read.sum"), NCU_DRAM_READ},
                {STR("dram__bytes_write.sum"), STR("dram__bytes_op_write.sum"), NCU_DRAM_WRITE},
        };

        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
                unsigned better, worse;

                assert_int_equal(ncu_metric_of(pairs[i].better, &better), pairs[i].m);
                assert_int_equal(ncu_metric_of(pairs[i].worse, &worse), pairs[i].m);
                assert_true(better == 0 && worse > better);
        }
}

static void test_labels_of_all_versions(void **state)
{
        static const struct {
                struct str label;
                enum ncu_metric m;
        } labels[] = {
                {STR("Compute (SM) Throughput"), NCU_SM},
                {STR("SM [%]"), NCU_SM},
                {STR("SM Throughput"), NCU_SM},
                {STR("Memory Throughput"), NCU_MEM},
                {STR("Memory [%]"), NCU_MEM},
                {STR("DRAM Throughput"), NCU_DRAM},
                {STR("SOL FB"), NCU_DRAM},
                {STR("SOL DRAM"), NCU_DRAM},
                {STR("L2 Cache Throughput"), NCU_L2},
                {STR("SOL L2"), NCU_L2},
                {STR("SOL L2 Cache"), NCU_L2},
                {STR("L1/TEX Cache Throughput"), NCU_L1},
                {STR("SOL TEX"), NCU_L1},
                {STR("SOL L1/TEX Cache"), NCU_L1},
                {STR("Achieved Occupancy"), NCU_OCCUPANCY},
                {STR("Theoretical Occupancy"), NCU_OCCUPANCY_MAX},
                {STR("Duration"), NCU_DURATION},
                {STR("Waves Per SM"), NCU_WAVES},
                {STR("Memory Stall %"), NCU_STALL},
                {STR("Duration (gpu__time_duration.sum)"), NCU_DURATION},
                {STR("Duration gpu__time_duration.sum"), NCU_DURATION},
                {STR("Duration (gpu__time_duration.max)"), NCU_METRICS},
                {STR("Elapsed Cycles"), NCU_METRICS},
                {STR("duration"), NCU_METRICS},
        };

        for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
                unsigned rank;

                assert_int_equal(ncu_metric_of(labels[i].label, &rank), labels[i].m);
        }
}

static void test_keys_are_upstream_s(void **state)
{
        assert_string_equal(ncu_metric_key(NCU_SM), "smThroughput");
        assert_string_equal(ncu_metric_key(NCU_DRAM), "dramThroughput");
        assert_string_equal(ncu_metric_key(NCU_L2), "l2Throughput");
        assert_string_equal(ncu_metric_key(NCU_OCCUPANCY), "achievedOccupancy");
        assert_string_equal(ncu_metric_key(NCU_STALL), "memoryStallPct");
        assert_null(ncu_metric_key(NCU_DURATION));
        assert_null(ncu_metric_key(NCU_PASSES));
}

/* ---- values */

struct value {
        enum ncu_metric m;
        const char *text, *unit;
        enum ncu_value how;
        double value;
};

static void check(const struct value *v, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                double got = -77;
                enum ncu_value how = ncu_value_read(v[i].m, str_of(v[i].text), str_of(v[i].unit), &got);

                if (how != v[i].how ||
                    (how == NCU_OK && (got - v[i].value > 1e-6 || v[i].value - got > 1e-6)) ||
                    (how != NCU_OK && got != -77))
                        fail_msg("'%s' '%s': %d, %g", v[i].text, v[i].unit, how, got);
        }
}

static void test_numbers_as_ncu_prints_them(void **state)
{
        static const struct value values[] = {
                {NCU_SM, "61.84", "%", NCU_OK, 61.84},
                {NCU_SM, "0", "%", NCU_OK, 0},
                {NCU_SM, "-0.00", "%", NCU_OK, 0},
                {NCU_SM, " 120.83 ", "%", NCU_OK, 120.83},
                {NCU_SM, "100.000000", "%", NCU_OK, 100},
                {NCU_SM, "1.2e1", "%", NCU_OK, 12},
                {NCU_SM, "1.234E+1", "%", NCU_OK, 12.34},
                {NCU_DURATION, "4,963,609,951.19", "ns", NCU_OK, 4963609951.19},
                {NCU_DURATION, "21,058,944", "ns", NCU_OK, 21058944},
                {NCU_DURATION, "4,800", "ns", NCU_OK, 4800},
                {NCU_DURATION, "3200", "nsecond", NCU_OK, 3200},
                {NCU_DRAM_READ, "134,221,568", "byte", NCU_OK, 134221568},
                {NCU_PASSES, "8", "pass", NCU_OK, 8},
                {NCU_PASSES, "1,008", "pass", NCU_OK, 1008},
                {NCU_WAVES, "6.40", "", NCU_OK, 6.4},
                {NCU_WAVES, "1,213.63", "", NCU_OK, 1213.63},
                {NCU_DURATION, "882 {65}", "ns", NCU_OK, 882},
                {NCU_DURATION, "6,665 (33; 33; 33)", "ns", NCU_OK, 6665},
        };

        check(values, ARRAY_LEN(values));
}

static void test_units_are_converted(void **state)
{
        static const struct value values[] = {
                {NCU_DURATION, "741.86", "us", NCU_OK, 741860},
                {NCU_DURATION, "741.86", "usecond", NCU_OK, 741860},
                {NCU_DURATION, "2.20", "ms", NCU_OK, 2.2e6},
                {NCU_DURATION, "1.52", "msecond", NCU_OK, 1.52e6},
                {NCU_DURATION, "1.5", "s", NCU_OK, 1.5e9},
                {NCU_DURATION, "1.5", "second", NCU_OK, 1.5e9},
                {NCU_DRAM_WRITE, "43.63", "Mbyte", NCU_OK, 43.63e6},
                {NCU_DRAM_WRITE, "1.07", "Gbyte", NCU_OK, 1.07e9},
                {NCU_DRAM_WRITE, "12.50", "Kbyte", NCU_OK, 12500},
                {NCU_SM, "61.84", "", NCU_OK, 61.84},
                {NCU_PASSES, "8", "", NCU_OK, 8},
                {NCU_DURATION, "4800", "", NCU_ABSENT, 0}, /* never taken for ns */
                {NCU_DRAM_READ, "4800", "", NCU_ABSENT, 0},
                {NCU_DURATION, "4800", "cycle", NCU_BAD, 0},
                {NCU_MEM, "196,456,177,859.63", "byte/s", NCU_BAD, 0},
                {NCU_DRAM_READ, "1", "byte/second", NCU_BAD, 0},
                {NCU_WAVES, "1", "%", NCU_BAD, 0},
        };

        check(values, ARRAY_LEN(values));
}

static void test_what_is_not_there_is_absent_and_never_0(void **state)
{
        static const char *const words[] = {"",    "  ",   "n/a", "N/A",  "(!) n/a",  "no data",  "nan",
                                            "NaN", "-nan", "inf", "-inf", "nan(ind)", "-nan(ind)"};

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                check(&(struct value){NCU_SM, words[i], "%", NCU_ABSENT, 0}, 1);
}

static void test_what_is_no_number_is_bad(void **state)
{
        static const char *const words[] = {
                "x",          "1.2.3", "1,23,4", "1,2345,678", "12 34",       ".5",   "5.",   "1e",
                "1e+",        "1-2",   "--1",    "1.5x",       "0x10",        "1,,2", "1.,2", "1e400",
                "1e99999999", "+",     "-",      "0,123,456",  "1,234,567,8", "12;3"};

        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                check(&(struct value){NCU_SM, words[i], "%", NCU_BAD, 0}, 1);
        check(&(struct value){NCU_DURATION, "-5", "ns", NCU_BAD, 0}, 1);
        check(&(struct value){NCU_SM, "-5", "%", NCU_BAD, 0}, 1);
        check(&(struct value){NCU_SM, "1e300", "%", NCU_BAD, 0}, 1); /* weighed, it would be no number */
        check(&(struct value){NCU_DURATION, "123456789012345678901234567890123456789012345", "ns", NCU_BAD,
                              0},
              1);
}

/* As a tool under another locale prints. */
static void test_the_last_of_two_separators_is_the_point(void **state)
{
        static const struct value values[] = {
                {NCU_DURATION, "4.963.609.951,19", "ns", NCU_OK, 4963609951.19},
                {NCU_DURATION, "4.963.609", "ns", NCU_OK, 4963609},
                {NCU_SM, "65,77", "%", NCU_OK, 65.77},
                {NCU_DURATION, "741,8", "us", NCU_OK, 741800},
                {NCU_DURATION, "4 963 609,5", "ns", NCU_OK, 4963609.5},
                {NCU_DURATION,
                 "4\xC2\xA0"
                 "963",
                 "us", NCU_OK, 4963000},
                {NCU_DURATION,
                 "4\xE2\x80\xAF"
                 "963,5",
                 "us", NCU_OK, 4963500},
                {NCU_DURATION, "4'963.5", "us", NCU_OK, 4963500},
        };

        check(values, ARRAY_LEN(values));
}

static void test_three_digits_are_decided_by_the_unit_or_refused(void **state)
{
        static const struct value values[] = {
                {NCU_DURATION, "117.344", "ns", NCU_OK, 117344},
                {NCU_DURATION, "117,344", "ns", NCU_OK, 117344},
                {NCU_DRAM_READ, "1.024", "byte", NCU_OK, 1024},
                {NCU_SM, "12.345", "%", NCU_OK, 12.345},
                {NCU_SM, "12,345", "%", NCU_OK, 12.345},
                {NCU_WAVES, "0.125", "", NCU_OK, 0.125}, /* no thousands begin with 0 */
                {NCU_DURATION, "1234.567", "us", NCU_OK, 1234567},
                {NCU_DURATION, "1.234", "us", NCU_AMBIGUOUS, 0},
                {NCU_DURATION, "1,234", "ms", NCU_AMBIGUOUS, 0},
                {NCU_DRAM_READ, "1.024", "Mbyte", NCU_AMBIGUOUS, 0},
                {NCU_WAVES, "2,048", "", NCU_AMBIGUOUS, 0},
                {NCU_WAVES, "2.667", "", NCU_AMBIGUOUS, 0},
                {NCU_WAVES, "2.667e0", "", NCU_OK, 2.667},
        };

        check(values, ARRAY_LEN(values));
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_names_are_matched_as_a_whole),
        cmocka_unit_test(test_of_one_meaning_the_first_name_is_the_best),
        cmocka_unit_test(test_labels_of_all_versions),
        cmocka_unit_test(test_keys_are_upstream_s),
        cmocka_unit_test(test_numbers_as_ncu_prints_them),
        cmocka_unit_test(test_units_are_converted),
        cmocka_unit_test(test_what_is_not_there_is_absent_and_never_0),
        cmocka_unit_test(test_what_is_no_number_is_bad),
        cmocka_unit_test(test_the_last_of_two_separators_is_the_point),
        cmocka_unit_test(test_three_digits_are_decided_by_the_unit_or_refused),
};
UNIT_MAIN(tests)
