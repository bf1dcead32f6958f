#include "unit/reflector_rig.h"

/* ---- lists */

static void list_then_watch(void **state)
{
        struct rig *r = *state;
        struct request *q;
        uint64_t seconds;

        begin(r, false);
        assert_int_equal(reflector_error(r->reflector)->code, E_BUSY);
        q = hear(r, false);
        assert_param(q, "resourceVersion", "0");
        assert_param(q, "limit", "500");
        answer_list(q, "10", "a,b", "more");
        q = hear(r, false);
        assert_param(q, "resourceVersion", NULL);
        assert_param(q, "continue", "more");
        assert_false(reflector_synced(r->reflector));
        assert_string_equal(version(r), "");
        answer_list(q, "10", "c", NULL);
        q = hear(r, true);
        assert_param(q, "resourceVersion", "10");
        assert_param(q, "allowWatchBookmarks", "true");
        assert_param(q, "sendInitialEvents", NULL);
        assert_true(str_to_u64(str_of(api_param(q, "timeoutSeconds")), &seconds));
        assert_in_range(seconds, 300, 600);
        assert_true(reflector_synced(r->reflector) && r->first && r->synced == 1);
        assert_null(reflector_error(r->reflector));
        assert_string_equal(cached(r), "a,b,c");
}

static void one_that_is_held_asks_for_nothing(void **state)
{
        struct rig *r = *state;

        r->reflector = reflector_new(
                &(struct reflector_config){.kube = r->api.kube, .cache = r->cache, .held = true});
        reflector_hurry(r->reflector);
        pass(r, 200 * SEC);
        api_quiet(&r->api);
        assert_false(reflector_synced(r->reflector));
        reflector_begin(r->reflector);
        reflector_begin(r->reflector);
        api_next(&r->api, "GET", PATH);
        api_quiet(&r->api);
}

static void empty_list_of_go(void **state)
{
        struct rig *r = *state;

        begin(r, false);
        api_answer(hear(r, false), 200,
                   "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":null}");
        hear(r, true);
        assert_true(reflector_synced(r->reflector));
}

static void list_expired_is_repeated_once_at_once(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, false);
        answer_list(hear(r, false), "10", "a", "more");
        api_refuse(hear(r, false), 410, "Expired", NULL);
        q = hear(r, false);
        assert_param(q, "continue", NULL);
        assert_param(q, "resourceVersion", NULL); /* a consistent read */
        answer_list(q, "11", "a", "again");
        api_refuse(hear(r, false), 410, "Expired", NULL);
        api_quiet(&r->api);
        pass(r, SEC);
        answer_list(hear(r, false), "12", "b", NULL);
        hear(r, true);
        assert_string_equal(cached(r), "b");
}

static void list_too_large_becomes_consistent(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        api_say(&r->api, q, EXPIRED);
        q = hear(r, false);
        assert_param(q, "resourceVersion", "10"); /* not older than what was seen */
        assert_param(q, "limit", NULL);
        api_answer(q, 504,
                   "{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":\"Too large "
                   "resource "
                   "version: 10, current: "
                   "3\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}],"
                   "\"retryAfterSeconds\":1}}");
        api_quiet(&r->api);
        pass(r, 2 * SEC);
        q = hear(r, false);
        assert_param(q, "resourceVersion", NULL);
        answer_list(q, "3", "c", NULL);
        assert_param(hear(r, true), "resourceVersion", "3");
        assert_string_equal(cached(r), "c");
        assert_int_equal(reflector_epoch(r->reflector), 1);
}

static void broken_page_is_asked_for_again(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, false);
        answer_list(hear(r, false), "10", "a", "more");
        q = hear(r, false);
        api_stream(&r->api, q);
        api_say(&r->api, q,
                "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[");
        api_cut(q);
        api_quiet(&r->api);
        pass(r, SEC);
        q = hear(r, false);
        assert_param(q, "continue", "more");
        answer_list(q, "10", "b", NULL);
        hear(r, true);
        assert_string_equal(cached(r), "a,b");
}

/* A 404 between two pages empties the cache: what was on the pages before must come again. */
static void not_found_between_pages(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        api_say(&r->api, q, EXPIRED);
        api_refuse(hear(r, false), 410, "Expired", NULL);
        pass(r, SEC);
        answer_list(hear(r, false), "20", "a", "more");
        api_answer(hear(r, false), 404, "404 page not found");
        pass(r, SEC);
        q = hear(r, false);
        assert_string_equal(cached(r), "");
        assert_param(q, "continue", NULL);
        answer_list(q, "20", "a,b", NULL);
        hear(r, true);
        assert_string_equal(cached(r), "a,b");
}

static void relist_removes_what_vanished(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        api_say(&r->api, q, EXPIRED);
        answer_list(hear(r, false), "20", "b,c", NULL);
        hear(r, true);
        assert_string_equal(cached(r), "b,c");
        assert_true(r->synced == 2 && !r->first);
        assert_int_equal(reflector_epoch(r->reflector), 0);
}

static void not_a_list(void **state)
{
        static const char *const bodies[] = {
                "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"1\"},\"rows\":[]}",
                "{\"kind\":\"Status\",\"status\":\"Success\"}",
                "<html>it works</html>",
                "{\"kind\":\"ConfigMapList\",\"metadata\":{},\"items\":[]}",
                "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[3]}",
                "",
        };
        struct rig *r = *state;

        begin(r, false);
        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                api_answer(hear(r, false), 200, bodies[i]);
                api_quiet(&r->api);
                assert_non_null(reflector_error(r->reflector));
                pass(r, 45 * SEC);
        }
        answer_list(hear(r, false), "10", "a", NULL);
        hear(r, true);
        assert_null(reflector_error(r->reflector));
}

/* ---- the resource is not there */

static void crd_installed_later(void **state)
{
        struct rig *r = *state;

        begin(r, true);
        api_answer(hear(r, true), 404, "404 page not found");
        for (int i = 0; i < 3; i++) {
                api_quiet(&r->api);
                assert_int_equal(reflector_error(r->reflector)->code, E_NOT_FOUND);
                pass(r, 45 * SEC);
                if (i < 2)
                        api_answer(api_next(&r->api, "GET", PATH), 404, "404 page not found");
        }
        answer_list(hear(r, false), "10", "a", NULL);
        hear(r, true);
        assert_true(reflector_synced(r->reflector));
}

static void crd_removed(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, true);
        q = hear(r, true);
        api_stream(&r->api, q);
        say_object(r, q, "ADDED", "a", "5");
        say_bookmark(r, q, "10", true);
        assert_string_equal(cached(r), "a");
        pass(r, 20 * SEC);
        api_end(q);
        api_answer(hear(r, true), 404, "404 page not found");
        pass(r, SEC);
        api_answer(api_next(&r->api, "GET", PATH), 404, "404 page not found");
        pass(r, SEC);
        api_next(&r->api, "GET", PATH);
        assert_string_equal(cached(r), "");
}

/* ---- watch list */

static void watch_list_is_one_stream(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, true);
        q = hear(r, true);
        assert_param(q, "sendInitialEvents", "true");
        assert_param(q, "resourceVersionMatch", "NotOlderThan");
        assert_param(q, "resourceVersion", NULL);
        api_stream(&r->api, q);
        say_object(r, q, "ADDED", "a", "7");
        say_object(r, q, "ADDED", "b", "5");
        assert_false(reflector_synced(r->reflector));
        assert_string_equal(version(r), ""); /* not before the end of the initial events */
        say_bookmark(r, q, "10", true);
        assert_true(reflector_synced(r->reflector) && r->synced == 1);
        assert_string_equal(version(r), "10");
        assert_null(reflector_error(r->reflector));
        pass(r, 90 * SEC); /* an idle resource: a bookmark a minute is all there need be */
        api_quiet(&r->api);
        assert_false(q->gone);
        say_object(r, q, "DELETED", "a", "11");
        assert_string_equal(version(r), "11");
        assert_string_equal(cached(r), "b");
}

static void watch_list_refused(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, true);
        api_refuse(hear(r, true), 422, "Invalid", NULL);
        q = hear(r, false);
        assert_param(q, "resourceVersion", "0");
        answer_list(q, "10", "a", NULL);
        q = hear(r, true);
        api_stream(&r->api, q);
        api_say(&r->api, q, EXPIRED);
        hear(r, false); /* not tried again */
}

/* Objects came, but their end never does. */
static void watch_list_without_end(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, true);
        q = hear(r, true);
        api_stream(&r->api, q);
        say_object(r, q, "ADDED", "a", "7");
        pass(r, 31 * SEC);
        answer_list(hear(r, false), "10", "b", NULL);
        hear(r, true);
        assert_string_equal(cached(r), "b");
}

/* The same of a resource that changes all the time: a server that does not know what it was asked for. */
static void watch_list_of_endless_events(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin(r, true);
        q = hear(r, true);
        api_stream(&r->api, q);
        for (int i = 0; i < 100 && !q->gone; i++) {
                say_object(r, q, "MODIFIED", "a", "7");
                pass(r, 10 * SEC);
        }
        assert_true(q->gone);
        answer_list(hear(r, false), "10", "b", NULL);
        hear(r, true);
        assert_true(reflector_synced(r->reflector));
}

/* Whatever is wrong with the streaming way: the plain one is tried before it. */
static void watch_list_broken(void **state)
{
        struct rig *r = *state;
        struct request *q, *probe;

        begin(r, true);
        q = hear(r, true);
        api_stream(&r->api, q);
        say_object(r, q, "ADDED", "a", "7");
        api_cut(q);
        api_quiet(&r->api);
        pass(r, SEC);
        answer_list(hear(r, false), "10", "b", NULL);
        q = hear_probed(r, &probe);
        assert_string_equal(cached(r), "b");
        answer_list(probe, "11", "", NULL);
        api_stream(&r->api, q);
        say_bookmark(r, q, "12", false);
        api_say(&r->api, q, EXPIRED);
        q = hear(r, true); /* when all is well the streaming way is taken again */
        assert_param(q, "sendInitialEvents", "true");
        assert_param(q, "resourceVersion", "12");
}

/* ---- watches */

static void busy_server_without_relist(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        pass(r, 20 * SEC);
        api_end(q);
        for (int i = 0; i < 4; i++) {
                q = hear(r, true);
                assert_param(q, "resourceVersion", "10");
                api_refuse(q, i == 1 ? 503 : 429, "TooManyRequests", i < 2 ? "60" : NULL);
                api_quiet(&r->api);
                if (i < 2) {
                        pass(r, 59 * SEC);
                        api_quiet(&r->api);
                }
                pass(r, 2 * SEC);
        }
        hear(r, true);
}

static void internal_errors(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;
        int watches;

        api_say(&r->api, q,
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"reason\":"
                "\"InternalError\"}}\n");
        for (watches = 0; watches < 10; watches++) {
                api_quiet(&r->api); /* never at once */
                pass(r, 45 * SEC);
                q = api_next(&r->api, "GET", PATH);
                if (!api_param(q, "watch") && !api_param(q, "limit"))
                        break;
                probe = api_next(&r->api, "GET", PATH);
                if (api_param(probe, "watch")) {
                        struct request *watch = probe;

                        probe = q;
                        q = watch;
                }
                answer_list(probe, "10", "", NULL);
                api_refuse(q, 500, "InternalError", NULL);
        }
        assert_in_range(watches, 2, 9); /* the event that the server cannot send: a list goes past it */
        answer_list(q, "20", "a", NULL);
        assert_param(hear_probed(r, &probe), "resourceVersion", "20");
}

/* A version that the server does not take any more, whatever the reason. */
static void watch_refused(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        pass(r, 20 * SEC);
        api_end(q);
        api_refuse(hear(r, true), 400, "BadRequest", NULL);
        api_quiet(&r->api);
        pass(r, SEC);
        answer_list(hear(r, false), "20", "b", NULL);
        assert_param(hear(r, true), "resourceVersion", "20");
        assert_string_equal(cached(r), "b");
}

static void expired_again_and_again(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);
        unsigned before;

        api_say(&r->api, q, EXPIRED);
        answer_list(hear(r, false), "20", "a", NULL);
        before = r->api.heard;
        for (int i = 0; i < 10; i++) { /* events before the end do not make a list at once all right */
                q = hear(r, true);
                api_stream(&r->api, q);
                say_bookmark(r, q, "21", false);
                api_say(&r->api, q, EXPIRED);
                api_quiet(&r->api);
                pass(r, 45 * SEC);
                answer_list(hear(r, false), "20", "a", NULL);
        }
        assert_int_equal(r->api.heard, before + 20);
}

static void watch_ends_as_agreed(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        say_bookmark(r, q, "15", false);
        pass(r, 60 * SEC);
        api_end(q);
        q = hear(r, true); /* at once, where it was */
        assert_param(q, "resourceVersion", "15");
        api_stream(&r->api, q);
        api_end(q);
        api_quiet(&r->api); /* but one that ended at once has failed */
        assert_int_equal(reflector_error(r->reflector)->code, E_LOST);
        pass(r, SEC);
        q = hear_probed(r, &probe);
        assert_param(q, "resourceVersion", "15");
}

static void other_kinds_refused(void **state)
{
        static const char *const events[] = {
                "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Table\",\"metadata\":{"
                "\"resourceVersion\":\"11\","
                "\"name\":\"t\",\"uid\":\"u\"},\"rows\":[]}}\n",
                "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Secret\",\"metadata\":{"
                "\"resourceVersion\":\"11\","
                "\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\"}}}\n",
                "{\"type\":\"ADDED\",\"object\":{\"kind\":\"ConfigMap\"}}\n",
                "{\"type\":\"ADDED\"}\n",
                "{\"type\":\"ERROR\"}\n",
                "{\"type\":\"SURPRISE\",\"object\":{}}\n",
                "{}\n",
                "3\n",
        };
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        for (size_t i = 0; i < ARRAY_LEN(events); i++) {
                api_say(&r->api, q, events[i]);
                assert_non_null(reflector_error(r->reflector));
                assert_string_equal(version(r), "10");
                assert_string_equal(cached(r), "a,b");
                api_quiet(&r->api);
                pass(r, 45 * SEC);
                answer_list(hear(r, false), "10", "a,b", NULL);
                q = hear_probed(r, &probe);
                answer_list(probe, "10", "", NULL);
                api_stream(&r->api, q);
        }
}

static void one_byte_a_chunk(void **state)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct rig *r = *state;
        struct request *q = watching(r);
        struct json *object;
        const char *text =
                "\r\n{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":{"
                "\"name\":\"a\","
                "\"namespace\":\"ns\",\"uid\":\"uid-a\",\"resourceVersion\":\"11\"},\"data\":{\"x\":"
                "\"\\\"}{\\\\\xc3\xa9\"}}}\r\n";

        for (const char *p = text; *p; p++)
                api_say(&r->api, q, (char[]){*p, '\0'});
        assert_string_equal(version(r), "11");
        object = cache_parse(r->cache, cache_get(r->cache, "ns", "a"), &a);
        assert_string_equal(json_str(json_at(object, "data"), "x"), "\"}{\\\xc3\xa9");
        say_object(r, q, "DELETED", "b", "12");
        assert_string_equal(cached(r), "a");
}

static void cut_in_the_middle_of_a_line(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        api_say(&r->api, q,
                "{\"type\":\"DELETED\",\"object\":{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"");
        api_cut(q);
        api_quiet(&r->api);
        pass(r, SEC);
        assert_param(hear_probed(r, &probe), "resourceVersion", "10");
        assert_string_equal(cached(r), "a,b");
}

static void never_goes_back(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        say_object(r, q, "ADDED", "c", "12");
        say_object(r, q, "DELETED", "c", "12");
        say_object(r, q, "DELETED", "a", "9");
        say_bookmark(r, q, "11", false);
        assert_string_equal(version(r), "12");
        assert_string_equal(cached(r), "a,b,c");
        say_object(r, q, "MODIFIED", "c", "100"); /* longer is newer */
        assert_string_equal(version(r), "100");
        assert_int_equal(r->versions, 3);
}

/* One object that is beyond our limits does not keep all others from being seen. */
static void object_beyond_limits(void **state)
{
        struct rig *r = *state;
        struct request *q;
        _cleanup_(buf_done) struct buf deep = BUF_INIT(1 << 20);

        for (int i = 0; i < 200; i++)
                buf_adds(&deep, "[");
        for (int i = 0; i < 200; i++)
                buf_adds(&deep, "]");
        begin(r, false);
        q = hear(r, false);
        api_answer(q, 200,
                   arena_printf(&q->arena,
                                "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"10\"},"
                                "\"items\":["
                                "{\"metadata\":{\"name\":\"x\",\"namespace\":\"ns\",\"uid\":\"u\","
                                "\"resourceVersion\":\"3\"},\"spec\":%s},"
                                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"uid-a\","
                                "\"resourceVersion\":\"4\"}}]}",
                                buf_cstr(&deep)));
        q = hear(r, true);
        assert_string_equal(cached(r), "a");
        api_stream(&r->api, q);
        api_say(&r->api, q,
                arena_printf(&q->arena,
                             EVENT "{\"name\":\"y\",\"namespace\":\"ns\",\"uid\":\"v\",\"resourceVersion\":"
                                   "\"11\"},\"spec\":%s}}\n",
                             "ADDED", buf_cstr(&deep)));
        say_object(r, q, "ADDED", "b", "12");
        assert_false(q->gone);
        assert_string_equal(cached(r), "a,b");
        assert_string_equal(version(r), "12");
}

/* ---- the watchdog */

static void silence_asks_again(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        pass(r, 99 * SEC);
        api_quiet(&r->api);
        pass(r, SEC);
        net_until(&r->api.net, q->gone);
        q = hear_probed(r, &probe);
        assert_param(q, "resourceVersion", "10");
        api_stream(&r->api, q);
        answer_list(probe, "4000", "", NULL); /* others' changes: nothing we should have heard of */
        api_quiet(&r->api);
        assert_true(reflector_age(r->reflector) < SEC); /* a server without bookmarks is still there */
        assert_null(reflector_error(r->reflector));
        assert_int_equal(reflector_epoch(r->reflector), 0);
}

static void history_went_back(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        pass(r, 100 * SEC);
        q = hear_probed(r, &probe);
        api_stream(&r->api, q); /* and silent for ever, as a server is on a version that it has not reached */
        answer_list(probe, "4", "", NULL);
        q = hear(r, false);
        assert_param(q, "resourceVersion", NULL);
        assert_int_equal(reflector_epoch(r->reflector), 1);
        answer_list(q, "4", "z", NULL);
        assert_param(hear(r, true), "resourceVersion", "4");
        assert_string_equal(cached(r), "z");
        assert_int_equal(reflector_epoch(r->reflector), 1);
        api_quiet(&r->api);
}

/* A server that takes requests and says nothing is not one that is up to date. */
static void the_error_stays_until_something_is_heard(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r), *probe;

        api_cut(q);
        pass(r, SEC);
        hear_probed(r, &probe);
        pass(r, 20 * SEC);
        assert_int_equal(reflector_error(r->reflector)->code, E_LOST);
        answer_list(probe, "10", "", NULL);
        pass(r, SEC);
        assert_null(reflector_error(r->reflector));
}

static void age_is_the_servers_silence(void **state)
{
        struct rig *r = *state;
        struct request *q = watching(r);

        pass(r, 50 * SEC);
        say_bookmark(r, q, "11", false);
        assert_true(reflector_age(r->reflector) == 0);
        http_server_free(TAKE_PTR(r->api.server));
        for (int i = 0; i < 40; i++)
                pass(r, 15 * SEC);
        assert_true(reflector_age(r->reflector) >= 500 * SEC); /* trying is not hearing */
        assert_non_null(reflector_error(r->reflector));
}

/* ---- the end, at any moment */

static void freed_in_every_phase(void **state)
{
        struct rig *r = *state;
        struct request *q, *probe;

        for (int i = 0; i < 6; i++) {
                begin(r, i == 0);
                if (i == 0)
                        api_stream(&r->api, hear(r, true));
                if (i == 2) {
                        q = hear(r, false);
                        api_stream(&r->api, q);
                        api_say(&r->api, q, "{\"items\":[{");
                }
                if (i == 3)
                        api_refuse(hear(r, false), 500, "InternalError", NULL);
                if (i >= 4) {
                        answer_list(hear(r, false), "10", "a", NULL);
                        api_stream(&r->api, hear(r, true));
                }
                if (i == 5) {
                        pass(r, 100 * SEC);
                        hear_probed(r, &probe);
                }
                reflector_free(TAKE_PTR(r->reflector));
                for (int k = 0; k < 10; k++)
                        net_turn(&r->api.net);
                while (!list_empty(&r->api.waiting))
                        api_next(&r->api, "GET", PATH);
                pass(r, 200 * SEC);
                api_quiet(&r->api);
        }
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(list_then_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_held_asks_for_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(empty_list_of_go, setup, teardown),
        cmocka_unit_test_setup_teardown(list_expired_is_repeated_once_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(list_too_large_becomes_consistent, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_page_is_asked_for_again, setup, teardown),
        cmocka_unit_test_setup_teardown(not_found_between_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(relist_removes_what_vanished, setup, teardown),
        cmocka_unit_test_setup_teardown(not_a_list, setup, teardown),
        cmocka_unit_test_setup_teardown(crd_installed_later, setup, teardown),
        cmocka_unit_test_setup_teardown(crd_removed, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_list_is_one_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_list_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_list_without_end, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_list_of_endless_events, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_list_broken, setup, teardown),
        cmocka_unit_test_setup_teardown(busy_server_without_relist, setup, teardown),
        cmocka_unit_test_setup_teardown(internal_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(expired_again_and_again, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_ends_as_agreed, setup, teardown),
        cmocka_unit_test_setup_teardown(other_kinds_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(one_byte_a_chunk, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_in_the_middle_of_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(never_goes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(object_beyond_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_asks_again, setup, teardown),
        cmocka_unit_test_setup_teardown(history_went_back, setup, teardown),
        cmocka_unit_test_setup_teardown(the_error_stays_until_something_is_heard, setup, teardown),
        cmocka_unit_test_setup_teardown(age_is_the_servers_silence, setup, teardown),
        cmocka_unit_test_setup_teardown(freed_in_every_phase, setup, teardown),
};
UNIT_MAIN(tests)
