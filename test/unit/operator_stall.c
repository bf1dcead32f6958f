#include "unit/operator_rig.h"

/* What stands in the way of a request is told on it, tried again, and taken back when it works. */

static const char forbidden[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"configmaps is "
                                "forbidden: User \\\"sonde\\\" cannot create resource \\\"configmaps\\\" in "
                                "API group \\\"\\\" in the namespace \\\"ns\\\"\",\"reason\":\"Forbidden\","
                                "\"details\":{\"kind\":\"configmaps\"},\"code\":403}";
static const char quota[] =
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"configmaps is forbidden: "
        "exceeded quota: q, requested: 1, used: 1, limited: 1\",\"reason\":\"Forbidden\","
        "\"code\":403}";
static const char terminating[] =
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"configmaps is forbidden: unable to create "
        "new "
        "content in namespace ns because it is being terminated\",\"reason\":\"Forbidden\",\"details\":{"
        "\"causes\":[{\"reason\":\"NamespaceTerminating\"}]},\"code\":403}";
static const char no_namespace[] =
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"namespaces \\\"ns\\\" not found\","
        "\"reason\":\"NotFound\",\"details\":{\"name\":\"ns\",\"kind\":\"namespaces\"},\"code\":404}";

/* The status that was written, which the watch brings back as well. */
static char *written(struct rig *r, unsigned version)
{
        struct request *q = api_find(&r->api, "PATCH", IN_NS "/s/status");
        char *status = json_print(&q->arena,
                                  json_at(json_parse(&q->arena, str_of(q->body), NULL, NULL), "status"));

        api_answer(q, 200, sample(&q->arena, "s", version, status));
        turns(r);
        say(r, r->watch, "MODIFIED", sample(&q->arena, "s", version, status));
        return status;
}

/* A silent watch is begun anew. */
static void keep_watches(struct rig *r)
{
        static const char bookmark[] = "{\"kind\":\"Any\",\"metadata\":{\"resourceVersion\":\"105\"}}";

        say(r, r->watch, "BOOKMARK", bookmark);
        say(r, r->maps_watch, "BOOKMARK", bookmark);
}

/* F10 */
static void a_missing_grant_is_told_until_it_is_given(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *status, *map;
        unsigned tries = 0;

        r->mind.child = true;
        begin(r);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        status = written(r, 102);
        assert_non_null(strstr(status, "\"type\":\"Stalled\",\"status\":\"True\""));
        assert_non_null(strstr(status, "cannot create resource"));
        assert_non_null(strstr(status, "the verb 'create' on 'configmaps' of API group ''"));
        api_answer(api_find(&r->api, "POST", EVENTS), 201, "{}");
        for (unsigned i = 0; i < 300; i++) {
                pass(r, SEC);
                if (i % 50 == 0)
                        keep_watches(r);
                if (api_waiting(&r->api, "POST", MAPS_NS)) {
                        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
                        tries++;
                }
        }
        assert_in_range(tries, 5, 30); /* at least once a minute, with backoff before */
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
        assert_null(api_waiting(&r->api, "POST", EVENTS)); /* said once */

        keep_watches(r);
        pass(r, 61 * SEC);
        q = api_find(&r->api, "POST", MAPS_NS);
        map = map_of(&q->arena, q->body, "s", 110);
        api_answer(q, 201, map);
        status = written(r, 111);
        assert_non_null(strstr(status, "\"type\":\"Stalled\",\"status\":\"False\""));
        assert_non_null(strstr(status, "\"type\":\"Progressing\",\"status\":\"True\""));
        say(r, r->maps_watch, "ADDED", map);
        pass(r, 3 * SEC);
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
        assert_true(operator_idle(r->op));
}

/* What settle says itself is not touched when it works again. */
static void settle_has_the_last_word(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *status;

        r->mind.child = true;
        r->mind.status = "{'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'Forbidden'}]}";
        begin(r);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        assert_non_null(strstr(written(r, 102), "\"type\":\"Stalled\",\"status\":\"True\""));
        q = api_find(&r->api, "POST", MAPS_NS);
        api_answer(q, 201, map_of(&q->arena, q->body, "s", 110));
        status = written(r, 111);
        assert_null(strstr(status, "Stalled"));
        assert_non_null(strstr(status, "\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Forbidden\""));
}

/* The status that is there, with one thing more: its conditions are carried over. */
static void settle_on(const struct view *v, struct decision *d)
{
        const struct json *status = json_at(v->request, "status");

        d->status = status ? json_copy(v->arena, status) : json_object(v->arena);
        json_set(v->arena, d->status, "seen", json_i64(v->arena, (int64_t)v->n_children));
        decide_event(d, v, EVENT_NORMAL, "Settled", "as if all were well");
}

static void a_stall_that_settle_carries_over_is_taken_back(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *status;

        r->mind.child = true;
        r->controller.settle = settle_on;
        begin(r);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        status = written(r, 102);
        assert_non_null(strstr(status, "\"type\":\"Stalled\",\"status\":\"True\""));
        q = api_find(&r->api, "POST", MAPS_NS);
        api_answer(q, 201, map_of(&q->arena, q->body, "s", 110));
        status = written(r, 111);
        assert_non_null(strstr(status, "\"type\":\"Stalled\",\"status\":\"False\""));
        assert_non_null(strstr(status, "\"type\":\"Ready\",\"status\":\"Unknown\""));
        assert_non_null(strstr(status, "\"type\":\"Progressing\",\"status\":\"True\""));
        assert_null(strstr(status, "Forbidden"));
}

/* Nothing of a decision that was not carried out is told: not its status, nor its events. */
static void what_was_not_carried_out_is_not_told(void **state)
{
        struct rig *r = *state;
        struct request *q;
        char *status;

        r->mind.child = true;
        r->controller.settle = settle_on;
        begin(r);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        status = written(r, 102);
        assert_null(strstr(status, "seen"));
        q = api_find(&r->api, "POST", EVENTS);
        assert_non_null(strstr(q->body, "\"Forbidden\""));
        api_answer(q, 201, "{}");
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        pass(r, 10 * USEC_PER_MS);
        assert_null(api_waiting(&r->api, "POST", EVENTS));
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status"));
}

/* A kind may read there what it was about. */
static void progressing_keeps_its_reason(void **state)
{
        static const char before[] =
                "{\"conditions\":[{\"type\":\"Progressing\",\"status\":\"True\",\"reason\":\"Retrying\","
                "\"message\":\"attempt 1 failed\"}]}";
        static const char *const values[] = {"False", "True"};
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;

        r->mind.child = true;
        begin_with(r, sample(&a, "s", 10, before), "");
        for (unsigned i = 0; i < 2; i++) {
                struct json *progressing;

                q = api_find(&r->api, "POST", MAPS_NS);
                if (i)
                        api_answer(q, 201, map_of(&a, q->body, "s", 110));
                else
                        api_answer(q, 403, forbidden);
                progressing = json_path(json_parse(&a, str_of(written(r, 102 + 10 * i)), NULL, NULL),
                                        "conditions[0]");
                assert_string_equal(json_str(progressing, "status"), values[i]);
                assert_string_equal(json_str(progressing, "reason"), "Retrying");
                assert_string_equal(json_str(progressing, "message"), "attempt 1 failed");
        }
}

/* Where not even that can be written, it is tried once a minute at least; and said once when it can. */
static void a_stall_that_cannot_be_told_is_told_later(void **state)
{
        struct rig *r = *state;
        unsigned tries = 0;

        r->mind.child = true;
        begin(r);
        for (unsigned i = 0; i < 300; i++) {
                if (i % 50 == 0)
                        keep_watches(r);
                if (api_waiting(&r->api, "POST", MAPS_NS))
                        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
                turns(r);
                if (api_waiting(&r->api, "PATCH", IN_NS "/s/status")) {
                        api_answer(api_find(&r->api, "PATCH", IN_NS "/s/status"), 403, forbidden);
                        tries++;
                }
                pass(r, SEC);
        }
        assert_in_range(tries, 5, 30);
        assert_null(api_waiting(&r->api, "POST", EVENTS));
        keep_watches(r);
        for (unsigned i = 0; i < 61 && !api_waiting(&r->api, "POST", MAPS_NS); i++)
                pass(r, SEC);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, forbidden);
        written(r, 110);
        assert_non_null(strstr(api_find(&r->api, "POST", EVENTS)->body, "\"Forbidden\""));
}

/* A 403 that no grant would change. */
static void a_quota_s_own_words_are_enough(void **state)
{
        struct rig *r = *state;
        char *status;

        r->mind.child = true;
        begin(r);
        api_answer(api_find(&r->api, "POST", MAPS_NS), 403, quota);
        status = written(r, 102);
        assert_non_null(strstr(status, "exceeded quota"));
        assert_null(strstr(status, "grant"));
}

/* A status that may not be written is nothing that a status could tell. */
static void a_forbidden_status_is_tried_again(void **state)
{
        struct rig *r = *state;

        r->mind.status = "{'done': true}";
        begin(r);
        for (int i = 0; i < 5; i++) {
                api_answer(api_find(&r->api, "PATCH", IN_NS "/s/status"), 403, forbidden);
                pass(r, SEC);
        }
        assert_null(api_waiting(&r->api, "POST", EVENTS));
}

/* F12: nothing is made, tried or told; a new request of the name, in a new namespace, is another one. */
static void a_namespace_that_goes_is_left_in_peace(void **state)
{
        const char *const answers[] = {terminating, no_namespace};
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
                r->mind.child = r->mind.account = true;
                begin(r);
                api_answer(api_find(&r->api, "POST", MAPS_NS), i ? 404 : 403, answers[i]);
                turns(r);
                for (unsigned v = 150; v < 160; v++)
                        say(r, r->watch, "MODIFIED", sample(&a, "s", v, NULL));
                pass(r, 20 * SEC);
                assert_true(list_empty(&r->api.waiting));
                assert_true(operator_idle(r->op));
                say(r, r->watch, "DELETED", sample(&a, "s", 170, NULL));
                say(r, r->watch, "ADDED", sample(&a, "s", 180, NULL));
                api_find(&r->api, "POST", MAPS_NS);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* The CRD is an older one, or upstream's: what it has is enough to tell that, until it is replaced. */
static void an_outdated_kind_is_told_until_it_is_replaced(void **state)
{
        static const char undeclared[] = "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"failed "
                                         "to create typed patch object (ns/s; "
                                         "example.sonde.dev/v1, Kind=Sample): .status.new: field not "
                                         "declared in schema\",\"code\":500}";
        struct rig *r = *state;
        unsigned tries = 0;
        char *status;

        r->mind.status = "{'new': 1}";
        begin(r);
        api_answer(api_find(&r->api, "PATCH", IN_NS "/s/status"), 500, undeclared);
        status = written(r, 102);
        assert_non_null(strstr(status, "\"type\":\"Stalled\",\"status\":\"True\""));
        assert_non_null(strstr(status, "\"reason\":\"KindOutdated\""));
        assert_non_null(strstr(status, "Sample (example.sonde.dev/v1) is not that of this operator"));
        assert_null(strstr(status, "\"new\""));
        api_answer(api_find(&r->api, "POST", EVENTS), 201, "{}");
        for (unsigned i = 0; i < 120; i++) {
                pass(r, SEC);
                if (i % 50 == 0)
                        keep_watches(r);
                if (!api_waiting(&r->api, "PATCH", IN_NS "/s/status"))
                        continue;
                api_answer(api_find(&r->api, "PATCH", IN_NS "/s/status"), 500, undeclared);
                turns(r);
                assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status")); /* it is told */
                tries++;
        }
        assert_in_range(tries, 2, 30);
        keep_watches(r);
        pass(r, 61 * SEC);
        assert_non_null(strstr(written(r, 110), "\"new\":1"));
        pass(r, SEC);
        assert_true(operator_idle(r->op));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(a_missing_grant_is_told_until_it_is_given),
        TEST(settle_has_the_last_word),
        TEST(a_stall_that_settle_carries_over_is_taken_back),
        TEST(what_was_not_carried_out_is_not_told),
        TEST(progressing_keeps_its_reason),
        TEST(a_stall_that_cannot_be_told_is_told_later),
        TEST(a_quota_s_own_words_are_enough),
        TEST(a_forbidden_status_is_tried_again),
        TEST(a_namespace_that_goes_is_left_in_peace),
        TEST(an_outdated_kind_is_told_until_it_is_replaced),
};
UNIT_MAIN(tests)
