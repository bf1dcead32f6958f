/* What /metrics tells of the requests themselves. */
#include "unit/unit.h"

#include "kinds/kinds.h"
#include "operator/operator.h"

#define NOW 1751328000 /* 2025-07-01T00:00:00Z */

struct scene {
        struct clock clock;
        struct metrics *metrics;
        struct cache *profilings, *requests;
        struct object_metrics *objects;
        struct buf text;
        bool leads;
};

static bool leads(void *arg)
{
        return ((struct scene *)arg)->leads;
}

static void open_scene(struct scene *s, size_t max)
{
        struct object_metrics_config config = {.clock = &s->clock, .max = max, .exports = leads, .arg = s};

        *s = (struct scene){.clock = {.manual = true, .wall = NOW * USEC_PER_SEC}, .leads = true};
        s->metrics = config.metrics = metrics_new();
        s->text = (struct buf)BUF_INIT(METRICS_TEXT_MAX);
        s->profilings = cache_new(&(struct cache_config){.type = &ALGORITHMPROFILING});
        s->requests = cache_new(&(struct cache_config){.type = &DGDR});
        s->objects = object_metrics_new(&config);
        object_metrics_add(s->objects, s->profilings);
        object_metrics_add(s->objects, s->requests);
}

static void close_scene(struct scene *s)
{
        cache_free(s->profilings);
        cache_free(s->requests);
        object_metrics_free(s->objects);
        metrics_free(s->metrics);
        buf_done(&s->text);
}

DEFINE_CLEANUP_STRUCT(struct scene, close_scene)

/* STATUS is JSON with ' for ". */
static void put(struct cache *c, const char *name, const char *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        static unsigned version = 1;
        char *text = arena_printf(&a,
                                  "{'metadata': {'namespace': 'ns', 'name': '%s', 'uid': 'u-%s', "
                                  "'resourceVersion': '%u'}, 'spec': {}, 'status': %s}",
                                  name, name, version++, status);
        struct json *object;

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        object = json_parse(&a, str_of(text), NULL, NULL);
        assert_non_null(object);
        assert_int_equal(cache_put(c, object, &a, false, NULL), 0);
}

static const char *scrape(struct scene *s)
{
        buf_clear(&s->text);
        metrics_write(s->metrics, &s->text);
        return buf_cstr(&s->text);
}

static void assert_line(struct scene *s, const char *line)
{
        const char *at = strstr(s->text.p, line);

        if (!at || (at != s->text.p && at[-1] != '\n') || at[strlen(line)] != '\n')
                fail_msg("'%s' is not in:\n%s", line, s->text.p);
}

static void assert_absent(struct scene *s, const char *what)
{
        if (strstr(s->text.p, what))
                fail_msg("'%s' is in:\n%s", what, s->text.p);
}

#define RUNNING                                                                                 \
        "{'phase': 'Running', 'run': {'attempt': 1}, 'progress': {'percent': 40, 'startedAt': " \
        "'2025-06-30T23:59:00Z', 'usage': {'memoryMb': 8123, 'cpuPercent': 97}, "               \
        "'estimatedCompletion': {'mid': '2025-07-01T00:01:30Z'}}}"
#define COMPLETED                                                                                  \
        "{'phase': 'Completed', 'run': {'attempt': 1}, 'progress': {'percent': 99, 'startedAt': "  \
        "'2025-06-30T23:59:00Z'}, 'results': {'executionTime': 0.25, 'memoryUsage': 70, "          \
        "'cpuUsage': 99.5}, 'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'Done', " \
        "'lastTransitionTime': '2025-06-30T23:59:30Z'}]}"
#define FAILED                                                                                \
        "{'phase': 'Failed', 'conditions': [{'type': 'Stalled', 'status': 'True', 'reason': " \
        "'Invalid'}, {'type': 'PerformanceDegraded', 'status': 'True'}]}"
#define OF(name) "{namespace=\"ns\",name=\"" name "\",job_name=\"" name "\",kind=\"AlgorithmProfiling\""

static void a_run_is_told_while_it_runs(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 0);
        put(s.profilings, "a", RUNNING);
        scrape(&s);
        assert_line(&s, "# TYPE dprofiler_job_status gauge");
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"running\"} 1");
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"failed\"} 0");
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"completed\"} 0");
        assert_line(&s, "dprofiler_memory_usage_mb" OF("a") "} 8123");
        assert_line(&s, "dprofiler_cpu_usage_percent" OF("a") "} 97");
        assert_line(&s, "dprofiler_job_duration_seconds" OF("a") "} 60");
        assert_line(&s, "sonde_run_progress_percent" OF("a") "} 40");
        assert_line(&s, "sonde_run_eta_seconds" OF("a") "} 90");
        assert_line(&s, "sonde_run_not_moving" OF("a") "} 0");
        assert_absent(&s, "dprofiler_execution_time_seconds{");
        assert_absent(&s, "dprofiler_performance_degraded{");
        s.clock.wall += 100 * USEC_PER_SEC; /* time alone moves these, and what is late is due now */
        scrape(&s);
        assert_line(&s, "dprofiler_job_duration_seconds" OF("a") "} 160");
        assert_line(&s, "sonde_run_eta_seconds" OF("a") "} 0");
}

static void then_what_came_out(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 0);
        put(s.profilings, "a", RUNNING);
        scrape(&s);
        put(s.profilings, "a", COMPLETED);
        put(s.profilings, "b", FAILED);
        scrape(&s);
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"running\"} 0");
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"completed\"} 1");
        assert_line(&s, "dprofiler_memory_usage_mb" OF("a") "} 70");
        assert_line(&s, "dprofiler_cpu_usage_percent" OF("a") "} 99.5");
        assert_line(&s, "dprofiler_execution_time_seconds" OF("a") "} 0.25");
        assert_line(&s, "dprofiler_job_duration_seconds" OF("a") "} 30");
        assert_line(&s, "sonde_run_progress_percent" OF("a") "} 100");
        assert_line(&s, "dprofiler_job_status" OF("b") ",status=\"failed\"} 1");
        assert_line(&s, "dprofiler_performance_degraded" OF("b") "} 1");
        assert_absent(&s, "dprofiler_memory_usage_mb" OF("b"));
        assert_absent(&s, "sonde_run_eta_seconds{");
        assert_absent(&s, "sonde_run_not_moving{");
}

static void series_go_with_their_object(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 0);
        put(s.profilings, "a", RUNNING);
        put(s.profilings, "b", RUNNING);
        assert_non_null(strstr(scrape(&s), OF("a")));
        cache_remove(s.profilings, "ns", "a");
        assert_null(strstr(scrape(&s), OF("a")));
        assert_non_null(strstr(s.text.p, OF("b")));
        put(s.profilings, "a", FAILED);
        scrape(&s);
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"failed\"} 1");
        cache_begin_replace(s.profilings); /* a new list, without them */
        cache_end_replace(s.profilings);
        assert_null(strstr(scrape(&s), "namespace="));
        assert_line(&s, "sonde_object_series_left_out 0");
}

static void two_kinds_may_have_one_name(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 0);
        put(s.profilings, "a", RUNNING);
        put(s.requests, "a", "{'state': 'Failed', 'conditions': [{'type': 'Stalled', 'status': 'True'}]}");
        scrape(&s);
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"running\"} 1");
        assert_line(&s, "dprofiler_job_status{namespace=\"ns\",name=\"a\",job_name=\"a\",kind="
                        "\"DynamoGraphDeploymentRequest\",status=\"failed\"} 1");
}

static void only_the_leader_tells_any(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 0);
        put(s.profilings, "a", RUNNING);
        s.leads = false;
        assert_string_equal(scrape(&s), "");
        s.leads = true;
        assert_non_null(strstr(scrape(&s), OF("a")));
}

static void those_that_changed_last_are_told_of_too_many(void **state)
{
        _cleanup_(close_scene) struct scene s;

        open_scene(&s, 2);
        put(s.profilings, "a", RUNNING);
        put(s.profilings, "b", RUNNING);
        put(s.profilings, "c", RUNNING);
        scrape(&s);
        assert_line(&s, "sonde_object_series_left_out 1");
        assert_absent(&s, OF("a"));
        put(s.profilings, "a", COMPLETED);
        scrape(&s);
        assert_absent(&s, OF("b"));
        assert_line(&s, "dprofiler_job_status" OF("a") ",status=\"completed\"} 1");
        cache_remove(s.profilings, "ns", "c");
        scrape(&s);
        assert_line(&s, "dprofiler_job_status" OF("b") ",status=\"running\"} 1");
        assert_line(&s, "sonde_object_series_left_out 0");
}

/* What was not measured is not there, and a schedule is no job. */
static void nothing_is_made_up(void **state)
{
        _cleanup_(close_scene) struct scene s;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *template = json_build(
                &a, "{'metadata': {'namespace': 'ns', 'name': 't', 'uid': 't', 'resourceVersion': '1'}, "
                    "'spec': {'schedule': {'cron': '@daily'}}, 'status': {'conditions': "
                    "[{'type': 'PerformanceDegraded', 'status': 'False'}]}}");

        open_scene(&s, 0);
        put(s.profilings, "new", "{}");
        assert_int_equal(cache_put(s.profilings, template, &a, false, NULL), 0);
        scrape(&s);
        assert_line(&s, "dprofiler_job_status" OF("new") ",status=\"pending\"} 1");
        assert_absent(&s, "dprofiler_job_status" OF("t"));
        assert_line(&s, "dprofiler_performance_degraded" OF("t") "} 0");
        assert_absent(&s, "dprofiler_memory_usage_mb{");
        assert_absent(&s, "dprofiler_job_duration_seconds{");
        assert_absent(&s, "sonde_run_progress_percent{");
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_told_while_it_runs),
        cmocka_unit_test(then_what_came_out),
        cmocka_unit_test(series_go_with_their_object),
        cmocka_unit_test(two_kinds_may_have_one_name),
        cmocka_unit_test(only_the_leader_tells_any),
        cmocka_unit_test(those_that_changed_last_are_told_of_too_many),
        cmocka_unit_test(nothing_is_made_up),
};

UNIT_MAIN(tests)
