#include "unit/operator_rig.h"

/*
 * Children that outlive their request, and of a kind that the cluster may not have. The ConfigMaps of the rig are of this
 * sort here.
 */

static int setup_loose(void **state)
{
        struct rig *r;

        setup(state);
        r = *state;
        r->kinds[0].loose = true;
        r->mind.child = true;
        return 0;
}

static int setup_optional(void **state)
{
        struct rig *r;

        setup_loose(state);
        r = *state;
        r->kinds[0].optional = true;
        return 0;
}

/* A ConfigMap of the request with UID, with more labels. */
static char *labelled(struct arena *a, const char *uid, const char *value)
{
        return arena_printf(a,
                            "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":"
                            "\"ns\",\"name\":\"s\",\"uid\":\"uid-map-s\",\"resourceVersion\":\"50\","
                            "\"labels\":{\"sonde.dev/controller\":\"test\",\"sonde.dev/request\":\"%s\"}},"
                            "\"data\":{\"v\":\"%s\"}}",
                            uid, value);
}

/* ---- loose */

static void it_has_a_label_instead_of_an_owner(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *map;

        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        assert_null(strstr(q->body, "ownerReferences"));
        assert_non_null(strstr(q->body, "\"sonde.dev/request\":\"uid-s\""));
        map = map_of(&q->arena, q->body, "s", 101);
        api_answer(q, 201, map);
        say(r, r->maps_watch, "ADDED", map);
        pass(r, 3 * SEC);
        assert_true(operator_idle(r->op));
        assert_true(list_empty(&r->api.waiting)); /* it is seen as ours */
}

/* A change of it brings the request back, which is decided with it in view. */
static void it_is_found_by_its_label(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.gone = true;
        r->mind.child = false;
        begin_with(r, sample(&a, "s", 10, NULL), "");
        turns(r);
        assert_int_equal(r->mind.decisions, 1);
        say(r, r->maps_watch, "ADDED", map_of(&a, labelled(&a, "uid-other", "1"), "s", 150));
        assert_int_equal(r->mind.decisions, 1); /* another request's */
        say(r, r->maps_watch, "MODIFIED", map_of(&a, labelled(&a, "uid-s", "1"), "s", 160));
        q = api_find(&r->api, "DELETE", MAPS_NS "/s");
        assert_non_null(strstr(q->body, "uid-map-s"));
}

static void what_exists_is_ours_by_the_label_alone(void **state)
{
        struct rig *r = *state;
        struct request *q;

        for (int ours = 0; ours < 2; ours++) {
                begin(r);
                q = api_find(&r->api, "POST", MAPS_NS);
                api_refuse(q, 409, "AlreadyExists", NULL);
                q = api_find(&r->api, "GET", MAPS_NS "/s");
                api_answer(q, 200, labelled(&q->arena, ours ? "uid-s" : "uid-other", "1"));
                if (ours) {
                        turns(r);
                        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
                } else {
                        q = api_find(&r->api, "PATCH", IN_NS "/s/status");
                        assert_non_null(strstr(q->body, "\"NameConflict\""));
                }
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* ---- optional */

/* As begin(), on a cluster without the kind. */
static void begin_without(struct rig *r, bool child)
{
        struct operator_config config = {.loop = r->api.net.loop,
                                         .kube = r->api.kube,
                                         .controllers = r->controllers,
                                         .n_controllers = 1,
                                         .instance = "test"};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->mind.child = child;
        r->op = operator_new(&config);
        operator_lead(r->op);
        api_refuse(api_find(&r->api, "GET", SAMPLES), 422, "Invalid", NULL);
        assert_false(operator_synced(r->op));
        api_answer(api_find(&r->api, "GET", MAPS), 404, "404 page not found");
        list_of(api_find(&r->api, "GET", SAMPLES), "Sample", sample(&a, "s", 10, NULL));
        r->watch = api_find(&r->api, "GET", SAMPLES);
        api_stream(&r->api, r->watch);
}

static bool is_ready(struct rig *r, const char *says)
{
        _cleanup_(buf_done) struct buf why = BUF_INIT(4096);
        bool ok = operator_ready(r->op, 100 * SEC, &why);

        assert_non_null(strstr(buf_cstr(&why), says));
        return ok;
}

static void a_kind_that_is_not_there_holds_up_nothing(void **state)
{
        struct rig *r = *state;

        begin_without(r, false);
        turns(r);
        assert_true(operator_synced(r->op));
        assert_int_equal(r->mind.decisions, 1);
        assert_true(is_ready(r, "[+]cache test/configmaps: 0 objects, heard 0 s ago, not installed"));
        for (int i = 0; i < 20; i++) { /* looked for again, ever less often */
                unsigned heard = r->api.heard;

                pass(r, 50 * SEC);
                assert_true(r->api.heard - heard < 20);
                while (api_waiting(&r->api, "GET", MAPS))
                        api_answer(api_find(&r->api, "GET", MAPS), 404, "404 page not found");
                turns(r);
        }
}

/* A kind that must be there is waited for, as ever. */
static void a_required_kind_is_waited_for(void **state)
{
        struct rig *r = *state;

        r->kinds[0].optional = false;
        begin_without(r, false);
        turns(r);
        assert_false(operator_synced(r->op) || is_ready(r, "[-]cache test/configmaps"));
        assert_int_equal(r->mind.decisions, 0);
}

static void told(struct rig *r, const char *says, unsigned version, bool with_event)
{
        struct request *q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        char *status = json_print(&q->arena,
                                  json_at(json_parse(&q->arena, str_of(q->body), NULL, NULL), "status"));

        assert_non_null(strstr(q->body, says));
        api_answer(q, 200, sample(&q->arena, "s", version, status));
        if (with_event)
                api_answer(api_find(&r->api, "POST", "/apis/events.k8s.io/v1/namespaces/ns/events"), 201,
                           "{}");
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", version, status));
}

/* F11: told while it is not there; made at once when it comes; gone again, and once more. */
static void a_kind_comes_and_goes(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *map;

        begin_without(r, true);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 404, "404 page not found");
        told(r, "the cluster has no ConfigMap (v1); install its CRD", 102, true);
        for (int i = 0; i < 20; i++) {
                static const char *const lines[][2] = {{"POST", MAPS_NS}, {"GET", MAPS}};

                for (size_t k = 0; k < ARRAY_LEN(lines); k++)
                        if (api_waiting(&r->api, lines[k][0], lines[k][1]))
                                api_answer(api_find(&r->api, lines[k][0], lines[k][1]), 404, "not found");
                pass(r, SEC);
        }
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status")); /* said once */

        while (!api_waiting(&r->api, "GET", MAPS)) {
                if (api_waiting(&r->api, "POST", MAPS_NS))
                        api_answer(api_find(&r->api, "POST", MAPS_NS), 404, "not found");
                pass(r, SEC);
        }
        q = api_find(&r->api, "GET", MAPS);
        list_of(q, "ConfigMap", ""); /* it was installed */
        r->maps_watch = api_find(&r->api, "GET", MAPS);
        api_stream(&r->api, r->maps_watch);
        q = api_find(&r->api, "POST", MAPS_NS); /* without waiting for the backoff */
        map = map_of(&q->arena, q->body, "s", 110);
        api_answer(q, 201, map);
        told(r, "\"Resolved\"", 112, false);
        say(r, r->maps_watch, "ADDED", map);
        pass(r, 3 * SEC);
        assert_true(operator_idle(r->op));

        api_cut(r->maps_watch); /* it was removed, and its objects with it */
        pass(r, SEC);
        while ((q = api_waiting(&r->api, "GET", MAPS))) {
                api_answer(api_find(&r->api, "GET", MAPS), 404, "404 page not found");
                pass(r, SEC);
        }
        assert_true(operator_synced(r->op));
        api_answer(api_find(&r->api, "POST", MAPS_NS), 404, "404 page not found");
        told(r, "\"KindNotInstalled\"", 120, false);
}

/* Made before our watch has found the kind: looked for at once, not after the backoff. */
static void a_write_that_works_hurries_the_watch(void **state)
{
        struct rig *r = *state;
        struct request *q;

        begin_without(r, true);
        pass(r, 20 * SEC);
        while (api_waiting(&r->api, "GET", MAPS)) {
                api_answer(api_find(&r->api, "GET", MAPS), 404, "404 page not found");
                turns(r);
        }
        q = api_find(&r->api, "POST", MAPS_NS);
        api_answer(q, 201, map_of(&q->arena, q->body, "s", 110));
        api_find(&r->api, "GET", MAPS); /* the clock stands still */
}

#define TEST(name, how) cmocka_unit_test_setup_teardown(name, setup_##how, teardown)

static const struct CMUnitTest tests[] = {
        TEST(it_has_a_label_instead_of_an_owner, loose),
        TEST(it_is_found_by_its_label, loose),
        TEST(what_exists_is_ours_by_the_label_alone, loose),
        TEST(a_kind_that_is_not_there_holds_up_nothing, optional),
        TEST(a_required_kind_is_waited_for, optional),
        TEST(a_kind_comes_and_goes, optional),
        TEST(a_write_that_works_hurries_the_watch, optional),
};
UNIT_MAIN(tests)
