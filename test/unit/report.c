/* Reports written in every format, and what trackers of experiments are told of the same run. */
#include "unit/unit.h"

#include <math.h>

#include "cli/results.h"
#include "unit/markup.h"

/* A name that every format has to write with care. */
#define TRICKY "a,\"b\"|<c>&d"

struct scene {
        struct arena a;
        struct run_docs docs;
        struct report report;
        struct buf out;
};

static int setup(void **state)
{
        struct scene *s = xcalloc(1, sizeof(*s));

        s->out = (struct buf)BUF_INIT(1 << 20);
        s->docs.kind = kinds_named(STR("ap"));
        s->docs.object = json_build(
                &s->a,
                "{'metadata': {'name': 'sorts', 'namespace': 'ns', 'uid': 'u-1', 'labels': {'team': 'x'}}, "
                "'spec': "
                "{'algorithmName': %s, 'inputSize': 1000, 'parameters': {'seed': 7}, 'suspend': null}, "
                "'status': {"
                "'phase': 'Completed', 'progress': {'startedAt': '2026-11-16T14:00:10Z'}, 'results': "
                "{'executionTime': 0.0412, 'memoryUsage': 212.5}, "
                "'statistics': "
                "{'machine': {'cpu': 'EPYC'}, 'warnings': ['few <runs>']}, 'conditions': "
                "[{'type': 'Ready', "
                "'status': 'True', 'reason': 'Succeeded', 'message': 'done', 'lastTransitionTime': "
                "'2026-11-16T14:01:10Z'}]}}",
                TRICKY);
        s->docs.samples = json_build(&s->a,
                                     "{'columns': ['algorithm', 'size', 'iteration', 'failure', 'time'], "
                                     "'rows': [[%s, 1000, 0, null, 0.041], "
                                     "[%s, 1000, 1, null, 0.0414]], 'dropped': 0}",
                                     TRICKY, TRICKY);
        *state = s;
        return 0;
}

static int teardown(void **state)
{
        struct scene *s = *state;

        report_done(&s->report);
        buf_done(&s->out);
        arena_done(&s->a);
        free(s);
        return 0;
}

static const char *written(struct scene *s, bool samples,
                           void (*write)(const struct report *r, struct arena *a, struct buf *out))
{
        report_done(&s->report);
        report_make(&s->docs, report_kind(s->docs.kind), samples, &s->a, &s->report);
        buf_clear(&s->out);
        write(&s->report, &s->a, &s->out);
        assert_false(s->out.overflow);
        return buf_cstr(&s->out);
}

static void json_has_numbers_as_they_are(void **state)
{
        struct scene *s = *state;
        const char *text = written(s, true, report_write_json);
        const struct json *doc = json_parse(&s->a, str_of(text), NULL, NULL), *row;
        double time;

        assert_string_equal(json_str(json_at(doc, "run"), "uid"), "u-1");
        row = json_first(json_at(doc, "results"));
        assert_true(json_to_double(json_at(row, "time"), &time));
        assert_true(fabs(time - 0.0412) < 1e-12);
        assert_int_equal(json_len(json_at(doc, "samples")), 2);
        assert_string_equal(json_str(json_first(json_at(doc, "samples")), "algorithm"), TRICKY);
        assert_null(json_at(doc, "scaling")); /* what is not known is left out */
}

static void csv_is_quoted_where_it_has_to_be(void **state)
{
        struct scene *s = *state;

        assert_string_equal(written(s, true, report_write_csv), "algorithm,size,iteration,time\n"
                                                                "\"a,\"\"b\"\"|<c>&d\",1000,0,0.041\n"
                                                                "\"a,\"\"b\"\"|<c>&d\",1000,1,0.0414\n");
}

static void markdown_keeps_its_columns(void **state)
{
        struct scene *s = *state;
        struct str text = str_of(written(s, true, report_write_markdown));

        assert_true(str_has_prefix(text, STR("# ")));
        while (text.n) {
                struct str line = str_split(&text, '\n');
                size_t bars = 0;

                for (size_t i = 0; i < line.n; i++)
                        bars += line.p[i] == '|' && (i == 0 || line.p[i - 1] != '\\');
                if (memmem(line.p, line.n, "0.0414", 6) || memmem(line.p, line.n, "41.4 ms", 7))
                        assert_int_equal(bars, 5);
        }
}

static void html_is_well_formed_whatever_the_names(void **state)
{
        struct scene *s = *state;
        const char *text = written(s, true, report_write_html);

        assert_in_range(assert_markup(text), 20, 10000);
        assert_non_null(strstr(text, "a,&quot;b&quot;|&lt;c&gt;&amp;d"));
        assert_null(strstr(text, "<c>"));
        assert_null(strstr(text, "://"));
}

static void what_was_simulated_says_so_in_every_format(void **state)
{
        static void (*const writers[])(const struct report *r, struct arena *a, struct buf *out) = {
                report_write_json, report_write_markdown, report_write_html};
        struct scene *s = *state;

        s->docs.result = json_build(&s->a, "{'simulated': true}");
        for (size_t i = 0; i < ARRAY_LEN(writers); i++)
                assert_non_null(strstr(written(s, false, writers[i]), "simulated"));
}

static void a_row_of_the_history_is_a_report_too(void **state)
{
        struct scene *s = *state;
        const struct run_docs docs = {
                .result = json_build(
                        &s->a,
                        "{'uid': 'u-2', 'outcome': 'Succeeded', 'seconds': 60, 'measures': [{'series': '', "
                        "'algorithm': 'q', 'inputSize': 1000, 'n': 9, 'seconds': 0.041, 'low': 0.04, "
                        "'high': 0.043}], 'phases': [{'name': 'Measuring', 'seconds': 58.5, 'steps': 9, "
                        "'totalSteps': 9}]}")};

        report_make(&docs, &REPORT_HISTORY, false, &s->a, &s->report);
        assert_int_equal(s->report.facts.n, 3);
        assert_int_equal(s->report.tables.n, 2);
        report_write_csv(&s->report, &s->a, &s->out);
        assert_string_equal(buf_cstr(&s->out),
                            "algorithm,size,time,timeLow,timeHigh,runs\nq,1000,0.041,0.04,0.043,9\n");
}

/* ---- for trackers */

static const char *value_of(const struct results_text *v, size_t n, const char *key)
{
        for (size_t i = 0; i < n; i++)
                if (streq(v[i].key, key))
                        return v[i].value;
        return NULL;
}

static void a_log_is_flat_and_whole(void **state)
{
        struct scene *s = *state;
        _cleanup_(results_log_done) struct results_log log = {0};
        double time = NAN;

        results_log_make(&s->docs, &s->a, &log);
        assert_string_equal(log.name, "ap/sorts");
        assert_false(log.failed);
        assert_int_equal(log.ended - log.started, 60 * USEC_PER_SEC);
        assert_string_equal(value_of(log.params.v, log.params.n, "algorithmName"), TRICKY);
        assert_string_equal(value_of(log.params.v, log.params.n, "parameters.seed"), "7");
        assert_null(value_of(log.params.v, log.params.n, "suspend")); /* null is nothing that was said */
        assert_string_equal(value_of(log.tags.v, log.tags.n, "kind"), "AlgorithmProfiling");
        assert_string_equal(value_of(log.tags.v, log.tags.n, "machine"), "EPYC");
        assert_null(value_of(log.tags.v, log.tags.n, "origin"));
        vec_foreach (m, &log.metrics) {
                assert_true(isfinite(m->value));
                if (strstr(m->key, "executionTime") && !strstr(m->key, "_"))
                        time = m->value;
        }
        assert_true(fabs(time - 0.0412) < 1e-12);
        assert_int_equal(log.artifacts.n, 3); /* results.json, results.html, samples.csv */
}

static void a_log_has_bounds(void **state)
{
        struct scene *s = *state;
        _cleanup_(results_log_done) struct results_log log = {0};
        struct json *spec = json_object(&s->a), *deep = spec;
        char *longest = arena_strndup(&s->a, "", 0);

        for (int i = 0; i < 20; i++)
                deep = json_set(&s->a, deep, "d", json_object(&s->a));
        for (int i = 0; i < 300; i++)
                json_set(&s->a, spec, arena_printf(&s->a, "k%d", i), json_u64(&s->a, 1));
        for (int i = 0; i < 100; i++)
                longest = arena_join(&s->a, longest, "0123456789", "");
        json_set(&s->a, spec, "k0", json_string(&s->a, longest));
        s->docs.object = json_build(
                &s->a,
                "{'metadata': {'name': 'x'}, 'spec': %p, 'status': {'phase': 'Failed', 'conditions': "
                "[{'type': 'Stalled', 'status': 'True', 'reason': 'WorkloadFailed', 'message': 'm'}]}}",
                (void *)spec);
        s->docs.samples = NULL;
        results_log_make(&s->docs, &s->a, &log);
        assert_true(log.failed);
        assert_int_equal(log.params.n, RESULTS_PARAMS_MAX);
        assert_int_equal(strlen(value_of(log.params.v, log.params.n, "k0")), RESULTS_VALUE_MAX);
        assert_int_equal(log.artifacts.n, 2);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
static const struct CMUnitTest tests[] = {
        T(json_has_numbers_as_they_are),
        T(csv_is_quoted_where_it_has_to_be),
        T(markdown_keeps_its_columns),
        T(html_is_well_formed_whatever_the_names),
        T(what_was_simulated_says_so_in_every_format),
        T(a_row_of_the_history_is_a_report_too),
        T(a_log_is_flat_and_whole),
        T(a_log_has_bounds),
};

UNIT_MAIN(tests)
