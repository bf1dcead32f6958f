/*
 * What a command says of itself, and samples as JSON.
 */
#include "unit/unit.h"

#include <math.h>

#include "probe/measure/internal.h"

static struct measure_sample parse(struct arena *a, const char *text)
{
        struct measure_sample s;
        struct err err = ERR_INIT;

        measure_sample_init(&s);
        if (measure_metrics_parse(a, str_of(text), &s, &err) < 0)
                fail_msg("%s: %s", text, err.text);
        return s;
}

static void refused(const char *text, const char *words)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s;
        struct err err = ERR_INIT;

        measure_sample_init(&s);
        assert_int_equal(measure_metrics_parse(&a, str_of(text), &s, &err), -1);
        if (!strstr(err.text, words))
                fail_msg("%s: %s", text, err.text);
        assert_true(!s.metrics && !s.region.has && !s.ml);
}

static void test_numbers_and_texts_become_metrics(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s = parse(
                &a, "{\"rows\": 5, \"kind\": \"warm\", \"list\": [1], \"no\": null, \"yes\": true,"
                    " \"big\": 1e400, \"ml\": {\"accuracy\": 0.9}}");

        assert_int_equal(json_len(s.metrics), 2);
        assert_int_equal(json_int(s.metrics, "rows", 0), 5);
        assert_string_equal(json_str(s.metrics, "kind"), "warm");
        assert_non_null(json_at(s.ml, "accuracy"));
        assert_true(!s.region.has && !s.error_reason);
}

static void test_the_region_counts_where_it_is_told(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s = parse(&a, "{\"region\": {\"wall\": 1.5, \"user\": 1.25}}");

        s.wall = 2;
        s.user = s.sys = 1;
        assert_true(measure_sample_time(&s) == 1.5 && measure_sample_cpu(&s) == 1.25);
        s = parse(&a, "{\"region\": {\"user\": 3}}");
        s.wall = 2;
        assert_true(measure_sample_time(&s) == 2 && measure_sample_cpu(&s) == 3);
        assert_true(!parse(&a, "{\"region\": {}}").region.has);
}

static void test_an_error_needs_a_reason_that_is_one(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        assert_string_equal(parse(&a, "{\"error\": {\"reason\": \"NoData\"}}").error_reason, "NoData");
        assert_string_equal(
                parse(&a, "{\"error\": {\"reason\": \"no data\", \"message\": \"m\"}}").error_reason,
                "WorkloadError");
        assert_null(parse(&a, "{\"error\": \"text\"}").error_reason);
        assert_null(parse(&a, "{\"error\": {\"reason\": 5}}").error_reason);
}

static void test_what_is_wrong_is_said(void **state)
{
        _cleanup_(buf_done) struct buf big = BUF_INIT(MEASURE_METRICS_FILE_MAX + 100);

        refused("", "");
        refused("[1]", "not an object");
        refused("{\"region\": 5}", "region is a number");
        refused("{\"region\": {\"wall\": -1}}", "region.wall is not a number of seconds");
        refused("{\"region\": {\"wall\": \"1\"}}", "region.wall");
        refused("{\"ml\": []}", "ml is not an object");
        buf_adds(&big, "{\"x\": \"");
        while (big.n < MEASURE_METRICS_FILE_MAX)
                buf_addc(&big, 'y');
        buf_adds(&big, "\"}");
        refused(buf_cstr(&big), "");
}

static void test_at_most_so_many_metrics(void **state)
{
        _cleanup_(measure_scan_done) struct measure_scan scan = MEASURE_SCAN_INIT;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s;
        char line[64];

        measure_sample_init(&s);
        for (int i = 0; i < 1000; i++) {
                snprintf(line, sizeof(line), "name%d=%d\n", i, i);
                measure_scan_feed(&scan, str_of(line));
        }
        measure_scan_add(&a, &scan, &s);
        assert_int_equal(json_len(s.metrics), MEASURE_METRICS_MAX);
        assert_int_equal(json_int(s.metrics, "name0", -1), 0);
}

static void test_lines_are_found_in_any_pieces(void **state)
{
        const char *text =
                "start\n a.b-c_1 = 1.50 \r\nn=1\nn=2\n=3\n1x=4\nhex=0x10\ninf=inf\nempty=\nlast=-7";

        for (size_t piece = 1; piece <= strlen(text); piece++) {
                _cleanup_(measure_scan_done) struct measure_scan scan = MEASURE_SCAN_INIT;
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct measure_sample s;

                measure_sample_init(&s);
                for (size_t at = 0; at < strlen(text); at += piece)
                        measure_scan_feed(&scan, str_n(text + at, MIN(piece, strlen(text) - at)));
                measure_scan_end(&scan);
                measure_scan_add(&a, &scan, &s);
                assert_string_equal(json_print(&a, s.metrics), "{\"a.b-c_1\":1.5,\"n\":2,\"last\":-7}");
        }
}

static void test_a_line_that_is_too_long_is_none(void **state)
{
        _cleanup_(measure_scan_done) struct measure_scan scan = MEASURE_SCAN_INIT;

        for (int i = 0; i < 600; i++)
                measure_scan_feed(&scan, STR("x"));
        measure_scan_feed(&scan, STR("=1\nok=1\n"));
        assert_int_equal(scan.found.n, 1);
        assert_string_equal(scan.found.v[0].name, "ok");
}

static void test_the_file_wins(void **state)
{
        _cleanup_(measure_scan_done) struct measure_scan scan = MEASURE_SCAN_INIT;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s = parse(&a, "{\"n\": 1}");

        measure_scan_feed(&scan, STR("n=2\nm=3\n"));
        measure_scan_add(&a, &scan, &s);
        assert_string_equal(json_print(&a, s.metrics), "{\"n\":1,\"m\":3}");
}

/* ---- samples */

static struct measure_sample full(struct arena *a)
{
        struct measure_sample s;

        measure_sample_init(&s);
        s.started = (usec_t)1769220522 * USEC_PER_SEC + 5;
        s.wall = 0.4126;
        s.user = 1.58;
        s.sys = 0.042;
        s.peak_rss = 222298112;
        s.minor_faults = 3;
        s.major_faults = 0;
        s.voluntary_switches = 1;
        s.involuntary_switches = 2;
        s.processes = 4;
        s.orphans = 1;
        s.exit_code = 0;
        s.io = (struct measure_io){true, 1, 2, 3, 4};
        s.cgroup = (struct measure_cgroup){true, 2, -1, 1.5, 10, 3, 0.25};
        s.counters.has = true;
        s.counters.values[COUNTER_INSTRUCTIONS] = 1000;
        s.gpu = (struct measure_gpu){true, 2, 3, 55.5, 1 << 20, NAN};
        s.region = (struct measure_region){true, 0.4, NAN, NAN};
        s.metrics = json_build(a, "{'rows': 5, 'kind': 'warm'}");
        s.ml = json_build(a, "{'accuracy': 0}");
        s.note = "1 process left over, and ended";
        return s;
}

static void test_a_sample_goes_out_and_in(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s = full(&a), again;
        struct json *out = measure_sample_json(&a, &s);
        struct err err = ERR_INIT;

        if (measure_sample_parse(&a, out, &again, &err) < 0)
                fail_msg("%s", err.text);
        assert_string_equal(json_print(&a, out), json_print(&a, measure_sample_json(&a, &again)));
        assert_true(again.cgroup.memory_peak == -1 && isnan(again.gpu.power) && isnan(again.region.user));
        assert_int_equal(again.started, s.started);
        assert_int_equal(again.counters.values[COUNTER_INSTRUCTIONS], 1000);
        assert_int_equal(again.counters.values[COUNTER_CYCLES], -1);
        assert_null(json_at(json_at(out, "cgroup"), "memoryPeak"));
        assert_null(json_at(json_at(out, "gpu"), "power"));
}

static void test_a_failed_sample_needs_no_times(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct measure_sample s, again;

        measure_sample_init(&s);
        s.error_reason = "NotStarted";
        s.error_message = "'x' is not found";
        assert_int_equal(measure_sample_parse(&a, measure_sample_json(&a, &s), &again, NULL), 0);
        assert_true(!measure_sample_ok(&again) && isnan(again.wall) && again.exit_code == -1);
        assert_string_equal(again.error_message, "'x' is not found");
}

static void test_garbage_is_refused_with_a_sentence(void **state)
{
        static const struct {
                const char *text, *words;
        } cases[] = {
                {"[]", "not an object"},
                {"{}", "has no wall"},
                {"{'wall': 1, 'user': 1, 'sys': 1}", "no exit status 0"},
                {"{'wall': -1}", "wall of a sample is not a number of at least 0"},
                {"{'wall': 'x'}", "wall of a sample"},
                {"{'peakRss': 1.5}", "peakRss of a sample is not a whole number"},
                {"{'processes': 3000000000}", "processes"},
                {"{'timedOut': 1}", "true or false"},
                {"{'io': []}", "io of a sample is not an object"},
                {"{'cgroup': {'version': -2}}", "cgroup.version"},
                {"{'counters': {'cycles': 'x'}}", "counters.cycles"},
                {"{'exitCode': 256}", "exitCode"},
                {"{'exitCode': 'x'}", "exitCode"},
                {"{'signal': -1}", "signal"},
                {"{'startedAt': 'soon'}", "startedAt"},
                {"{'metrics': {'x': []}}", "metrics.x of a sample is not a number or a short text"},
                {"{'ml': 1}", "ml of a sample is not an object"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;
                struct measure_sample s;
                char *text = arena_strdup(&a, cases[i].text);

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                assert_int_equal(measure_sample_parse(&a, json_parse(&a, str_of(text), NULL, &err), &s, &err),
                                 -1);
                if (!strstr(err.text, cases[i].words))
                        fail_msg("%s: %s", cases[i].text, err.text);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_and_texts_become_metrics),
        cmocka_unit_test(test_the_region_counts_where_it_is_told),
        cmocka_unit_test(test_an_error_needs_a_reason_that_is_one),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_at_most_so_many_metrics),
        cmocka_unit_test(test_lines_are_found_in_any_pieces),
        cmocka_unit_test(test_a_line_that_is_too_long_is_none),
        cmocka_unit_test(test_the_file_wins),
        cmocka_unit_test(test_a_sample_goes_out_and_in),
        cmocka_unit_test(test_a_failed_sample_needs_no_times),
        cmocka_unit_test(test_garbage_is_refused_with_a_sentence),
};

UNIT_MAIN(tests)
