/*
 * Requests that are made again and again.
 */
#include "unit/algorithm_rig.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, zones_setup, zones_teardown)
#define SPEC(more) \
        "'algorithmName': 'quick_sort', 'inputSize': 10, 'schedule': {'cron': '30 2 * * *'" more "}"

static usec_t at(const char *text)
{
        usec_t t;

        assert_true(time_parse(str_of(text), &t));
        return t;
}

static int zones_setup(void **state)
{
        struct algorithm_settings *settings;
        struct rig *r;

        setup(state);
        r = *state;
        settings = arena_new(&r->arena, struct algorithm_settings);
        *settings = SETTINGS;
        settings->zones = zones_new(NULL);
        r->view.settings = settings;
        return 0;
}

static int zones_teardown(void **state)
{
        struct rig *r = *state;
        const struct algorithm_settings *settings = r->view.settings;

        zones_free(settings->zones);
        return teardown(state);
}

static void template(struct rig *r, const char *spec)
{
        const void *settings = r->view.settings;

        profiling(r, spec);
        r->view.settings = settings;
        json_set(&r->arena, json_at(r->view.request, "metadata"), "creationTimestamp",
                 json_string(&r->arena, "2026-11-10T00:00:00Z"));
        json_set(&r->arena, json_at(r->view.request, "metadata"), "labels", parse(r, "{'team': 'a'}"));
}

/* What is decided at that time; the status stays for the next one. */
static void decide_at(struct rig *r, const char *when)
{
        decision_done(&r->d);
        r->view.now = at(when);
        algorithm_plan(&r->view, &r->d);
        algorithm_settle(&r->view, &r->d);
        assert_non_null(r->d.status);
        json_set(&r->arena, (struct json *)r->view.request, "status", json_copy(&r->arena, r->d.status));
}

static const char *told(struct rig *r, const char *key)
{
        return json_str_or(json_at(r->view.request, "status"), key, "");
}

static const struct json *made(struct rig *r)
{
        return r->d.exist.n ? r->d.exist.v[0].json : NULL;
}

static void one_made(struct rig *r, const char *name, const char *created, const char *phase)
{
        child(r, &ALGORITHMPROFILING,
              arena_printf(&r->arena,
                           "{'metadata': {'name': '%s', 'uid': 'u-%s', 'creationTimestamp': '%s'}, "
                           "'status': {'phase': '%s', 'completionTime': '%s'}}",
                           name, name, created, phase, created));
}

static void what_is_due_is_made_once(void **state)
{
        struct rig *r = *state;
        const struct json *one;

        template(r, SPEC(", 'timeZone': 'Europe/Berlin'"));
        decide_at(r, "2026-11-10T00:00:01Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-10T01:30:00Z");
        assert_int_equal(r->d.again_at, at("2026-11-10T01:30:00Z"));
        assert_string_equal(told(r, "phase"), "Pending");

        decide_at(r, "2026-11-10T01:30:00Z");
        one = made(r);
        assert_non_null(one);
        assert_string_equal(meta_str(one, "name"), "r-29904570");
        assert_null(json_at(json_at(one, "spec"), "schedule"));
        assert_int_equal(json_int(json_at(one, "spec"), "inputSize", 0), 10);
        assert_json(r, json_at(json_at(one, "metadata"), "labels"), "{'team': 'a'}");
        assert_int_equal(r->d.exist.v[0].how, EXIST_ONCE);
        assert_string_equal(told(r, "lastScheduleTime"), "2026-11-10T01:30:00Z");

        decide_at(r, "2026-11-10T01:30:30Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-11T01:30:00Z");
}

static void of_many_that_were_missed_the_last_is_made(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T00:00:01Z");
        decide_at(r, "2026-11-16T12:00:00Z");
        assert_int_equal(r->d.exist.n, 1);
        assert_string_equal(told(r, "lastScheduleTime"), "2026-11-16T02:30:00Z");
        decide_at(r, "2026-11-16T12:00:01Z");
        assert_null(made(r));
}

static void a_clock_that_goes_back_makes_nothing_twice(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T02:30:00Z");
        assert_non_null(made(r));
        decide_at(r, "2026-11-10T02:10:00Z");
        assert_null(made(r));
        decide_at(r, "2026-11-10T02:30:00Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-11T02:30:00Z");
}

static void a_clock_that_was_years_ahead_is_forgotten(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2041-11-10T02:30:00Z");
        decide_at(r, "2026-11-10T03:00:00Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-11T02:30:00Z");
        decide_at(r, "2026-11-11T02:30:00Z");
        assert_string_equal(told(r, "lastScheduleTime"), "2026-11-11T02:30:00Z");
}

static void what_was_due_while_it_was_suspended_is_not_made(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T00:00:01Z");
        edit(r, "suspend", "true");
        decide_at(r, "2026-11-10T00:00:02Z");
        assert_string_equal(told(r, "nextScheduleTime"), "");
        assert_int_equal(r->d.again_at, 0);
        edit(r, "suspend", "false");
        decide_at(r, "2026-11-12T12:00:00Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-13T02:30:00Z");
}

static void another_schedule_counts_from_then_on(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T02:30:00Z");
        edit(r, "schedule", "{'cron': '0 9 * * *'}");
        decide_at(r, "2026-11-10T12:00:00Z");
        assert_null(made(r));
        assert_string_equal(told(r, "nextScheduleTime"), "2026-11-11T09:00:00Z");
}

static void one_that_runs_stands_in_the_way(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T00:00:01Z");
        one_made(r, "r-1", "2026-11-09T02:30:00Z", "Running");
        decide_at(r, "2026-11-10T02:30:00Z");
        assert_null(made(r));
        assert_string_equal(r->d.events.v[0].reason, "ScheduleSkipped");
        assert_string_equal(told(r, "lastScheduleTime"), "2026-11-10T02:30:00Z");
        assert_string_equal(told(r, "phase"), "Running");

        edit(r, "schedule", "{'cron': '30 2 * * *', 'concurrencyPolicy': 'Allow'}");
        decide_at(r, "2026-11-11T02:30:00Z");
        assert_true(made(r) && r->d.absent.n == 0);

        edit(r, "schedule", "{'cron': '30 2 * * *', 'concurrencyPolicy': 'Replace'}");
        decide_at(r, "2026-11-12T02:30:00Z");
        assert_true(made(r) && r->d.absent.n == 1);
        assert_string_equal(r->d.absent.v[0].object->name, "r-1");
}

static void what_is_there_after_an_interruption_counts(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(""));
        decide_at(r, "2026-11-10T00:00:01Z");
        one_made(r, "r-29904630", "2026-11-10T02:30:00Z", "Pending"); /* made, and then we were killed */
        decide_at(r, "2026-11-10T02:31:00Z");
        assert_string_equal(meta_str(made(r), "name"), "r-29904630");
        assert_string_equal(told(r, "lastScheduleTime"), "2026-11-10T02:30:00Z");
}

static void old_ones_go(void **state)
{
        struct rig *r = *state;

        template(r, SPEC(", 'historyLimit': 1"));
        one_made(r, "r-1", "2026-11-07T02:30:00Z", "Completed");
        one_made(r, "r-2", "2026-11-08T02:30:00Z", "Failed");
        one_made(r, "r-3", "2026-11-06T02:30:00Z", "Running");
        decide_at(r, "2026-11-10T00:00:01Z");
        assert_int_equal(r->d.absent.n, 1);
        assert_string_equal(r->d.absent.v[0].object->name, "r-1");
        assert_json(r, json_at(r->d.status, "active"), "[{'name': 'r-3', 'uid': 'u-r-3'}]");
        assert_json(r, json_at(r->d.status, "lastRun"),
                    "{'name': 'r-2', 'phase': 'Failed', 'completionTime': '2026-11-08T02:30:00Z'}");
}

static void a_schedule_that_is_none_is_refused(void **state)
{
        struct rig *r = *state;

        template(r, "'algorithmName': 'quick_sort', 'inputSize': 10, 'schedule': {'cron': '99 * * * *', "
                    "'timeZone': 'Mars/Base'}");
        decide_at(r, "2026-11-10T00:00:01Z");
        assert_string_equal(told(r, "phase"), "Failed");
        assert_non_null(
                strstr(json_print(&r->arena, r->d.status), "spec.schedule.cron: minute: '99' is out of its"));
        assert_non_null(
                strstr(json_print(&r->arena, r->d.status), "spec.schedule.timeZone: there is no time zone"));
}

static void one_that_is_never_due_is_refused(void **state)
{
        struct rig *r = *state;

        template(r, "'algorithmName': 'quick_sort', 'inputSize': 10, 'schedule': {'cron': '0 0 31 2 *'}");
        decide_at(r, "2026-11-10T00:00:01Z");
        assert_string_equal(told(r, "phase"), "Failed");
        assert_non_null(strstr(json_print(&r->arena, r->d.status), "is never due, say a day that there is"));
}

static const struct CMUnitTest tests[] = {
        TEST(what_is_due_is_made_once),
        TEST(of_many_that_were_missed_the_last_is_made),
        TEST(a_clock_that_goes_back_makes_nothing_twice),
        TEST(a_clock_that_was_years_ahead_is_forgotten),
        TEST(what_was_due_while_it_was_suspended_is_not_made),
        TEST(another_schedule_counts_from_then_on),
        TEST(one_that_runs_stands_in_the_way),
        TEST(what_is_there_after_an_interruption_counts),
        TEST(old_ones_go),
        TEST(a_schedule_that_is_none_is_refused),
        TEST(one_that_is_never_due_is_refused),
};

UNIT_MAIN(tests)
