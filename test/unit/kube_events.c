#include "unit/fake_api.h"
#include "unit/unit.h"

#define EVENTS "/apis/events.k8s.io/v1/namespaces/work/events"
#define SEC    USEC_PER_SEC

struct rig {
        struct clock clock;
        struct loop *loop;
        struct kube *api;
        struct metrics *metrics;
        struct events *events;
        struct arena arena;
        struct buf log;
        bool may_not_send;
};

static bool may_send(void *arg)
{
        struct rig *r = arg;

        return !r->may_not_send;
}

static void start_recorder(struct rig *r)
{
        events_free(r->events);
        r->events = events_new(&(struct events_config){.kube = r->api,
                                                       .controller = "sonde.dev/dgdr",
                                                       .instance = "host-1",
                                                       .metrics = r->metrics,
                                                       .may_send = may_send,
                                                       .may_send_arg = r});
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        r->loop = fake_loop(&r->clock);
        r->api = fake_new(r->loop);
        r->metrics = metrics_new();
        r->log = (struct buf)BUF_INIT(4 << 20);
        start_recorder(r);
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        events_free(r->events);
        fake_free(r->api);
        metrics_free(r->metrics);
        loop_free(r->loop);
        arena_done(&r->arena);
        buf_done(&r->log);
        free(r);
        return 0;
}

static struct json *job(struct rig *r, const char *name)
{
        return json_build(&r->arena,
                          "{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'namespace': 'work', "
                          "'name': %s, "
                          "'uid': 'uid-of-%s', 'resourceVersion': '7'}}",
                          name, name);
}

static void record(struct rig *r, const char *object, const char *note)
{
        events_record(r->events, job(r, object), &(struct event){.reason = "Started", .note = note});
}

/* The one event there is. */
static struct json *only_event(struct rig *r)
{
        struct object *o = NULL;
        size_t i = 0;

        assert_int_equal(r->api->objects.n, 1);
        assert_true(map_next(&r->api->objects, &i, (void **)&o));
        return object_json(r->api, o->path, &r->arena);
}

static void delete_events(struct rig *r)
{
        struct object *o;
        size_t i;

        while (i = 0, map_next(&r->api->objects, &i, (void **)&o))
                object_delete(r->api, o->path);
}

static double counted(struct rig *r, const char *result)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        const char *line = arena_printf(&r->arena, "sonde_events_total{result=\"%s\"} ", result);
        const char *found;

        metrics_write(r->metrics, &text);
        found = strstr(buf_cstr(&text), line);
        assert_non_null(found);
        return strtod(found + strlen(line), NULL);
}

static void test_an_event_says_all_that_the_api_wants(void **state)
{
        struct rig *r = *state;
        struct json *e;

        events_record(
                r->events, job(r, "a"),
                &(struct event){
                        .type = EVENT_WARNING, .reason = "Failed", .action = "Run", .note = "it \"fell\""});
        assert_int_equal(events_pending(r->events), 1);
        pass(r->loop, SEC);
        assert_int_equal(events_pending(r->events), 0);
        assert_string_equal(fake_log(r->api, &r->log), "POST " EVENTS "\n");
        e = only_event(r);
        assert_string_equal(json_str(e, "apiVersion"), "events.k8s.io/v1");
        assert_string_equal(json_str(e, "type"), "Warning");
        assert_string_equal(json_str(e, "reason"), "Failed");
        assert_string_equal(json_str(e, "action"), "Run");
        assert_string_equal(json_str(e, "note"), "it \"fell\"");
        assert_string_equal(json_str(e, "eventTime"), "2026-11-15T21:43:48.123456Z");
        assert_string_equal(json_str(e, "reportingController"), "sonde.dev/dgdr");
        assert_string_equal(json_str(e, "reportingInstance"), "host-1");
        assert_string_equal(
                json_print(&r->arena, json_at(e, "regarding")),
                "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"namespace\":\"work\",\"name\":\"a\","
                "\"uid\":\"uid-of-a\",\"resourceVersion\":\"7\"}");
        assert_true(name_valid(NAME_SUBDOMAIN, str_of(meta_str(e, "name"))));
        assert_true(strncmp(meta_str(e, "name"), "a.", 2) == 0);
        assert_null(json_at(e, "series"));
        assert_true(counted(r, "created") == 1);
}

static void test_without_an_action_it_is_the_reason(void **state)
{
        struct rig *r = *state;

        record(r, "a", NULL);
        pass(r->loop, SEC);
        assert_string_equal(json_str(only_event(r), "action"), "Started");
        assert_string_equal(json_str(only_event(r), "type"), "Normal");
        assert_string_equal(json_str(only_event(r), "note"), "");
}

static void test_a_cluster_scoped_object_has_its_events_in_kube_system(void **state)
{
        struct rig *r = *state;

        events_record(r->events,
                      json_build(&r->arena, "{'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': 'n', "
                                            "'uid': 'u'}}"),
                      &(struct event){.reason = "Seen"});
        pass(r->loop, SEC);
        assert_string_equal(meta_str(only_event(r), "namespace"), "kube-system");
        assert_null(json_path(only_event(r), "regarding.namespace"));
}

static void test_long_and_broken_texts_are_made_to_fit(void **state)
{
        struct rig *r = *state;
        char note[4000], name[254];

        memset(note, '\xff', sizeof(note)); /* each becomes three bytes */
        note[sizeof(note) - 1] = 0;
        memset(name, 'n', sizeof(name));
        name[sizeof(name) - 1] = 0;
        record(r, name, note);
        pass(r->loop, SEC);
        assert_int_equal(strlen(json_str(only_event(r), "note")), 1023); /* 341 whole characters */
        assert_true(strlen(meta_str(only_event(r), "name")) <= 253);
}

static void test_repetitions_become_a_series_written_every_30_s(void **state)
{
        struct rig *r = *state;

        record(r, "a", "again");
        pass(r->loop, SEC);
        fake_log(r->api, &r->log);
        for (int i = 0; i < 100; i++) {
                record(r, "a", "again");
                pass(r->loop, SEC);
        }
        /* at 30, 60 and 90 s */
        assert_int_equal(r->api->requests, 1 + 3);
        assert_null(strstr(fake_log(r->api, &r->log), "POST"));
        pass(r->loop, 60 * SEC);
        assert_int_equal(json_int(json_at(only_event(r), "series"), "count", 0), 101);
        assert_string_equal(json_str(json_at(only_event(r), "series"), "lastObservedTime"),
                            "2026-11-15T21:45:28.123456Z");
        assert_string_equal(json_str(only_event(r), "eventTime"), "2026-11-15T21:43:48.123456Z");
        assert_int_equal(events_pending(r->events), 0);
        assert_true(counted(r, "series") == 100);
}

static void test_after_a_restart_the_series_goes_on(void **state)
{
        struct rig *r = *state;

        record(r, "a", "again");
        pass(r->loop, SEC);
        record(r, "a", "again");
        pass(r->loop, 60 * SEC);
        assert_int_equal(json_int(json_at(only_event(r), "series"), "count", 0), 2);
        start_recorder(r);
        fake_log(r->api, &r->log);
        record(r, "a", "again");
        pass(r->loop, SEC);
        assert_int_equal(json_int(json_at(only_event(r), "series"), "count", 0), 3);
        assert_true(strncmp(fake_log(r->api, &r->log), "POST ", 5) == 0);
}

static void test_what_says_something_else_is_another_event(void **state)
{
        struct rig *r = *state;

        record(r, "a", "one");
        record(r, "a", "two");
        record(r, "b", "one");
        events_record(r->events, job(r, "a"), &(struct event){.reason = "Ended", .note = "one"});
        events_record(r->events, job(r, "a"),
                      &(struct event){.reason = "Started", .action = "X", .note = "one"});
        events_record(r->events, job(r, "a"), &(struct event){EVENT_WARNING, "Started", NULL, "one"});
        pass(r->loop, SEC);
        assert_int_equal(r->api->objects.n, 6);
}

static void test_a_conflict_is_read_and_added_to(void **state)
{
        struct rig *r = *state;
        struct object *o;
        size_t i = 0;

        record(r, "a", "x");
        pass(r->loop, SEC);
        assert_true(map_next(&r->api->objects, &i, (void **)&o));
        object_patch(r->api, o->path,
                     "{'series': {'count': 10, 'lastObservedTime': '2026-11-15T21:44:00.000000Z'}}");
        record(r, "a", "x");
        record(r, "a", "x");
        pass(r->loop, 60 * SEC);
        assert_int_equal(json_int(json_at(only_event(r), "series"), "count", 0), 12);
}

static void test_an_expired_event_is_made_again(void **state)
{
        struct rig *r = *state;

        record(r, "a", "x");
        pass(r->loop, SEC);
        delete_events(r);
        pass(r->loop, 3600 * SEC);
        record(r, "a", "x");
        pass(r->loop, SEC);
        assert_string_equal(json_str(only_event(r), "eventTime"), "2026-11-15T22:43:49.123456Z");
        assert_null(json_at(only_event(r), "series"));
}

static void test_a_post_whose_answer_was_lost_is_not_counted_twice(void **state)
{
        struct rig *r = *state;

        fake_plan(r->api, (struct step){.fate = FATE_LOST_AFTER});
        record(r, "a", "x");
        pass(r->loop, 60 * SEC);
        assert_null(json_at(only_event(r), "series"));
        assert_int_equal(events_pending(r->events), 0);
        assert_int_equal(r->api->requests, 3); /* POST lost, POST exists, GET */
}

static void test_a_patch_whose_answer_was_lost_is_not_counted_twice(void **state)
{
        struct rig *r = *state;

        record(r, "a", "x");
        pass(r->loop, SEC);
        fake_plan(r->api, (struct step){.fate = FATE_LOST_AFTER});
        record(r, "a", "x");
        record(r, "a", "x");
        pass(r->loop, 35 * SEC);
        record(r, "a", "x");
        pass(r->loop, 120 * SEC);
        assert_int_equal(json_int(json_at(only_event(r), "series"), "count", 0), 4);
        assert_int_equal(events_pending(r->events), 0);
}

static void test_a_failure_is_forgotten_after_three_tries(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.fate = FATE_ERROR, .code = E_SERVER};
        record(r, "a", "x");
        pass(r->loop, 300 * SEC);
        assert_int_equal(r->api->requests, 3);
        assert_int_equal(events_pending(r->events), 0);
        assert_true(counted(r, "failed") == 1);
        r->api->otherwise = (struct step){.fate = FATE_OK};
        record(r, "a", "x");
        pass(r->loop, SEC);
        assert_int_equal(r->api->objects.n, 1);
}

static void test_a_refusal_is_not_tried_again(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.fate = FATE_ERROR, .code = E_FORBIDDEN};
        record(r, "a", "x");
        pass(r->loop, 300 * SEC);
        assert_int_equal(r->api->requests, 1);
        assert_int_equal(events_pending(r->events), 0);
}

static void test_nothing_is_written_without_the_lease(void **state)
{
        struct rig *r = *state;

        r->may_not_send = true;
        record(r, "a", "x");
        pass(r->loop, 300 * SEC);
        assert_int_equal(r->api->requests, 0);
        assert_int_equal(events_pending(r->events), 0);
}

static void test_an_object_has_25_events_and_then_one_in_5_minutes(void **state)
{
        struct rig *r = *state;

        for (int i = 0; i < 100; i++)
                record(r, "a", arena_printf(&r->arena, "note %d", i));
        record(r, "b", "not affected");
        pass(r->loop, SEC);
        assert_int_equal(r->api->objects.n, 26);
        assert_true(counted(r, "dropped") == 75);
        pass(r->loop, 300 * SEC);
        for (int i = 0; i < 10; i++)
                record(r, "a", arena_printf(&r->arena, "later %d", i));
        pass(r->loop, SEC);
        assert_int_equal(r->api->objects.n, 27);
}

static void test_a_slow_api_holds_up_nothing_and_memory_is_bounded(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.fate = FATE_HANG};
        for (int i = 0; i < 6000; i++)
                record(r, arena_printf(&r->arena, "o%d", i), "x");
        assert_int_equal(events_pending(r->events), 1000);
        assert_int_equal(r->api->open, 4);
        assert_true(counted(r, "dropped") == 5000);
        r->api->otherwise = (struct step){.fate = FATE_OK};
        pass(r->loop, 600 * SEC);
        assert_int_equal(events_pending(r->events), 0);
        assert_int_equal(r->api->objects.n, 1000);
}

static void test_the_oldest_keys_are_forgotten(void **state)
{
        struct rig *r = *state;

        for (int i = 0; i < 5000; i++) {
                record(r, arena_printf(&r->arena, "o%d", i), "x");
                pass(r->loop, 10 * USEC_PER_MS);
                arena_reset(&r->arena, SIZE_MAX);
        }
        assert_int_equal(r->api->objects.n, 5000);
        fake_log(r->api, &r->log);
        record(r, "o4999", "x"); /* known: waits for its 30 s */
        pass(r->loop, SEC);
        assert_string_equal(fake_log(r->api, &r->log), "");
        record(r, "o1", "x"); /* not known any more */
        pass(r->loop, SEC);
        assert_true(strncmp(fake_log(r->api, &r->log), "POST ", 5) == 0);
}

static void test_an_event_without_a_reason_is_a_bug_and_not_sent(void **state)
{
        struct rig *r = *state;

        events_record(r->events, job(r, "a"), &(struct event){.reason = "", .note = "x"});
        pass(r->loop, SEC);
        assert_int_equal(r->api->requests, 0);
}

static void test_freeing_takes_back_what_is_under_way(void **state)
{
        struct rig *r = *state;

        r->api->otherwise = (struct step){.fate = FATE_HANG};
        for (int i = 0; i < 10; i++)
                record(r, "a", arena_printf(&r->arena, "note %d", i));
        events_free(TAKE_PTR(r->events));
        assert_int_equal(r->api->open, 0);
        pass(r->loop, 60 * SEC);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(test_an_event_says_all_that_the_api_wants),
        T(test_without_an_action_it_is_the_reason),
        T(test_a_cluster_scoped_object_has_its_events_in_kube_system),
        T(test_long_and_broken_texts_are_made_to_fit),
        T(test_repetitions_become_a_series_written_every_30_s),
        T(test_after_a_restart_the_series_goes_on),
        T(test_what_says_something_else_is_another_event),
        T(test_a_conflict_is_read_and_added_to),
        T(test_an_expired_event_is_made_again),
        T(test_a_post_whose_answer_was_lost_is_not_counted_twice),
        T(test_a_patch_whose_answer_was_lost_is_not_counted_twice),
        T(test_a_failure_is_forgotten_after_three_tries),
        T(test_a_refusal_is_not_tried_again),
        T(test_nothing_is_written_without_the_lease),
        T(test_an_object_has_25_events_and_then_one_in_5_minutes),
        T(test_a_slow_api_holds_up_nothing_and_memory_is_bounded),
        T(test_the_oldest_keys_are_forgotten),
        T(test_an_event_without_a_reason_is_a_bug_and_not_sent),
        T(test_freeing_takes_back_what_is_under_way),
};

UNIT_MAIN(tests)
