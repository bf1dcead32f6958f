#include "unit/operator_rig.h"

/*
 * The status of a child, which is the plan's as well. The children of the rig have one here: ConfigMaps of a server where they
 * do.
 */
static const struct kube_type MAP = {"", "v1", "configmaps", "ConfigMap", true, true};

struct keeper {
        enum exist_how how;
        const char *value;  /* data.v */
        const char *status; /* status.bound */
        bool another;       /* ConfigMap of name t behind it, without a status */
        usec_t again;
        unsigned decisions;
};

static void plan_with_status(const struct view *v, struct decision *d)
{
        struct keeper *k = (struct keeper *)v->settings;

        k->decisions++;
        decide_exist_with_status(
                d, &MAP, json_build(v->arena, "{'metadata': {'name': 's'}, 'data': {'v': %s}}", k->value),
                k->how, json_build(v->arena, "{'bound': %s, 'list': [1, 2]}", k->status));
        if (k->another)
                decide_exist(d, &MAP,
                             json_build(v->arena, "{'metadata': {'name': 't'}, 'data': {'v': %s}}", k->value),
                             EXIST_APPLY);
        if (k->again)
                decide_again_at(d, k->again);
}

static void settle_nothing(const struct view *v, struct decision *d)
{
}

static struct keeper keep(struct rig *r)
{
        r->kinds[0].type = &MAP;
        r->controller.plan = plan_with_status;
        r->controller.settle = settle_nothing;
        return (struct keeper){.how = EXIST_APPLY, .value = "1", .status = "compute"};
}

/* MAP, another time. */
static char *later(struct arena *a, const char *map, unsigned version, const char *value, const char *status)
{
        struct json *j = json_parse(a, str_of(map), NULL, NULL);

        json_set(a, json_at(j, "metadata"), "resourceVersion",
                 json_string(a, arena_printf(a, "%u", version)));
        json_set(a, json_at(j, "data"), "v", json_string(a, value));
        json_remove(j, "status");
        if (status)
                json_set(a, j, "status", json_parse(a, str_of(status), NULL, NULL));
        return json_print(a, j);
}

#define KEPT "{\"bound\":\"compute\",\"list\":[1,2]}"

/* Begins, and lets the child be made; it is at version 101, and seen. */
static char *made(struct rig *r, struct arena *a)
{
        struct request *q;
        char *map;

        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        assert_null(strstr(q->body, "\"status\""));
        map = map_of(a, q->body, "s", 101);
        api_answer(q, 201, map);
        turns(r);
        assert_null(api_waiting(&r->api, "PATCH", MAPS_NS "/s/status")); /* not before it is seen */
        say(r, r->maps_watch, "ADDED", map);
        return map;
}

static struct request *status_patch(struct rig *r, const char *version)
{
        struct request *q = api_find(&r->api, "PATCH", MAPS_NS "/s/status");
        struct json *body = json_parse(&q->arena, str_of(q->body), NULL, NULL);

        assert_string_equal(meta_str(body, "uid"), "uid-map-s");
        assert_string_equal(meta_str(body, "resourceVersion"), version);
        assert_string_equal(meta_str(body, "namespace"), "ns");
        assert_string_equal(api_param(q, "fieldManager"), "sonde-test");
        assert_string_equal(api_param(q, "force"), "true");
        assert_null(json_at(body, "data"));
        return q;
}

static void assert_quiet(struct rig *r)
{
        pass(r, 10 * SEC);
        assert_true(list_empty(&r->api.waiting));
        assert_true(operator_idle(r->op));
}

static void it_follows_when_the_child_is_seen(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        char *map;

        r->controller.settings = &k;
        map = made(r, &a);
        q = status_patch(r, "101");
        assert_non_null(strstr(q->body, "\"status\":" KEPT));
        api_answer(q, 200, later(&a, map, 102, "1", KEPT));
        turns(r);
        assert_int_equal(k.decisions, 2);
        assert_false(operator_idle(r->op)); /* it has not seen that yet */
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 102, "1", KEPT));
        assert_quiet(r);
        assert_int_equal(k.decisions, 3);
}

/* Whatever others have added to it. */
static void what_is_there_is_not_written(void **state)
{
        static const char more[] = "{\"theirs\":true,\"list\":[1,2],\"bound\":\"compute\"}";
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        char *map;

        r->controller.settings = &k;
        map = made(r, &a);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", more));
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 102, "1", more));
        assert_quiet(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 120, "1", more));
        assert_quiet(r);
        k.status = "memory";
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 121, "1", more));
        q = status_patch(r, "121");
        assert_non_null(strstr(q->body, "\"bound\":\"memory\""));
}

static void what_is_made_once_has_its_status_kept(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *map;

        r->controller.settings = &k;
        k.how = EXIST_ONCE;
        map = made(r, &a);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", KEPT));
        turns(r);
        k.value = "2";
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 120, "somebody's", "{\"bound\":\"theirs\"}"));
        api_answer(status_patch(r, "120"), 200, later(&a, map, 121, "somebody's", KEPT));
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 121, "somebody's", KEPT));
        assert_quiet(r);
}

/* The object first, then its status at the version that this has given it; nobody need see it in between. */
static void both_are_kept(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        char *map;

        r->controller.settings = &k;
        map = made(r, &a);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", KEPT));
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 120, "somebody's", "{}"));
        q = api_find(&r->api, "PATCH", MAPS_NS "/s");
        assert_null(strstr(q->body, "\"status\""));
        api_answer(q, 200, later(&a, map, 121, "1", "{}"));
        api_answer(status_patch(r, "121"), 200, later(&a, map, 122, "1", KEPT));
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 121, "1", "{}"));
        assert_false(operator_idle(r->op));
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 122, "1", KEPT));
        assert_quiet(r);
}

/* The server writes both differently from what was applied: each is written once a version, and no more. */
static void what_cannot_be_had_is_not_fought_over(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *map, *odd;

        r->controller.settings = &k;
        map = made(r, &a);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", KEPT));
        turns(r);
        k.again = 1; /* looked at again and again */
        odd = later(&a, map, 120, "other", "{\"bound\":\"Compute\"}");
        say(r, r->maps_watch, "MODIFIED", odd);
        api_answer(api_find(&r->api, "PATCH", MAPS_NS "/s"), 200, odd);
        api_answer(status_patch(r, "120"), 200, odd);
        pass(r, 10 * SEC);
        assert_true(k.decisions > 10);
        assert_true(list_empty(&r->api.waiting));
        k.status = "memory"; /* but another one is written */
        pass(r, SEC);
        status_patch(r, "120");
}

/* A schema that does not have a member drops it from what is stored, which has another version all the same. */
static void what_is_dropped_is_not_written_for_ever(void **state)
{
        static const char less[] = "{\"bound\":\"compute\"}";
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *map;

        r->controller.settings = &k;
        k.again = 1; /* looked at again and again */
        map = made(r, &a);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", less));
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 102, "1", less));
        pass(r, 10 * SEC);
        assert_true(k.decisions > 10);
        assert_true(list_empty(&r->api.waiting));
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 120, "1", less)); /* somebody's label: once more */
        api_answer(status_patch(r, "120"), 200, later(&a, map, 120, "1", less));
        pass(r, 10 * SEC);
        assert_true(list_empty(&r->api.waiting));
}

static void the_next_child_is_another_one(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        char *map, *next;

        r->controller.settings = &k;
        k.another = true;
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        map = map_of(&a, q->body, "s", 101);
        api_answer(q, 201, map);
        q = api_find(&r->api, "POST", MAPS_NS);
        next = map_of(&a, q->body, "t", 102);
        api_answer(q, 201, next);
        turns(r);
        say(r, r->maps_watch, "ADDED", map);
        say(r, r->maps_watch, "ADDED", later(&a, next, 110, "somebody's", NULL));
        api_answer(status_patch(r, "101"), 200, later(&a, map, 120, "1", KEPT));
        q = api_find(&r->api, "PATCH", MAPS_NS "/t");
        assert_null(strstr(q->body, "\"status\""));
}

static void a_conflict_is_decided_again(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *map;

        r->controller.settings = &k;
        map = made(r, &a);
        api_refuse(status_patch(r, "101"), 409, "Conflict", NULL);
        turns(r);
        say(r, r->maps_watch, "MODIFIED", later(&a, map, 110, "1", NULL));
        pass(r, SEC);
        status_patch(r, "110");
        assert_null(api_waiting(&r->api, "PATCH", IN_NS "/s/status")); /* and nothing is told */
}

static void a_refusal_is_told(void **state)
{
        static const char forbidden[] =
                "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"configmaps \\\"s\\\" is "
                "forbidden: "
                "User \\\"sonde\\\" cannot patch resource \\\"configmaps/status\\\" in API group \\\"\\\" in "
                "the namespace \\\"ns\\\"\",\"reason\":\"Forbidden\",\"code\":403}";
        static const char undeclared[] =
                "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"failed to create typed patch "
                "object "
                "(ns/s; /v1, Kind=ConfigMap): .status.bound: field not declared in schema\",\"code\":500}";
        static const char *const says[] = {"\"reason\":\"Refused\"",
                                           "the verb 'patch' on 'configmaps/status' of API group ''",
                                           "\"reason\":\"KindOutdated\""};
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->controller.settings = &k;
        for (int i = 0; i < 3; i++) {
                made(r, &a);
                if (i == 2)
                        api_answer(status_patch(r, "101"), 500, undeclared);
                else if (i)
                        api_answer(status_patch(r, "101"), 403, forbidden);
                else
                        api_refuse(status_patch(r, "101"), 422, "Invalid", NULL);
                assert_non_null(strstr(api_find(&r->api, "PATCH", IN_NS "/s/status")->body, says[i]));
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* The answer to the create was lost: what is there is known as ours. */
static void a_child_of_a_lost_answer_has_it_kept(void **state)
{
        struct rig *r = *state;
        struct keeper k = keep(r);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        char *map;

        r->controller.settings = &k;
        begin(r);
        q = api_find(&r->api, "POST", MAPS_NS);
        map = map_of(&a, q->body, "s", 101);
        api_refuse(q, 409, "AlreadyExists", NULL);
        api_answer(api_find(&r->api, "GET", MAPS_NS "/s"), 200, map);
        api_answer(status_patch(r, "101"), 200, later(&a, map, 102, "1", KEPT));
        turns(r);
        say(r, r->maps_watch, "ADDED", later(&a, map, 102, "1", KEPT));
        assert_quiet(r);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(it_follows_when_the_child_is_seen),     TEST(what_is_there_is_not_written),
        TEST(what_is_made_once_has_its_status_kept), TEST(both_are_kept),
        TEST(what_cannot_be_had_is_not_fought_over), TEST(the_next_child_is_another_one),
        TEST(a_conflict_is_decided_again),           TEST(a_refusal_is_told),
        TEST(a_child_of_a_lost_answer_has_it_kept),  TEST(what_is_dropped_is_not_written_for_ever),
};
UNIT_MAIN(tests)
