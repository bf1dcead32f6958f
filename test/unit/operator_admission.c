/*
 * Requests of an operator that limits runs: those that begin, those that wait, and how many writes and decisions that takes.
 */
#include "unit/operator_rig.h"

#define BEGUN "{\"stand\":\"runs\"}"
#define OVER  "{\"stand\":\"over\"}"
#define STALLED                                                                                     \
        "{\"stand\":\"runs\",\"conditions\":[{\"type\":\"Stalled\",\"status\":\"True\",\"reason\":" \
        "\"Forbidden\","                                                                            \
        "\"message\":\"m\"}]}"

static bool is_stand(const struct view *v, const char *stand)
{
        return streq(json_str(json_at(v->request, "status"), "stand"), stand);
}

/* status.stand is "runs" or "over"; without one it wants to begin, and tells its place until it may. */
static void settle_in_turn(const struct view *v, struct decision *d)
{
        struct mind *m = (struct mind *)v->settings;
        const struct admission *is = v->admission;

        m->decisions++;
        if (is_stand(v, "over"))
                return;
        d->admission.stand = is_stand(v, "runs") ? ADMISSION_HOLDS : ADMISSION_WAITS;
        d->admission.priority = 5;
        d->admission.since = 7;
        if (d->admission.stand == ADMISSION_HOLDS) {
                if (m->child)
                        decide_exist(d, &KUBE_CONFIGMAP,
                                     json_build(v->arena, "{'metadata': {'name': %s}}",
                                                meta_str(v->request, "name")),
                                     EXIST_ONCE);
        } else if (!is || is->admitted) {
                d->admission.stand = ADMISSION_HOLDS;
                d->status = json_build(v->arena, "{'stand': 'runs'}");
        } else if (is->position) {
                d->status = json_build(v->arena, "{'place': %s, 'reason': %s}",
                                       admission_position(is->position), is->reason);
        }
}

static void plan_nothing(const struct view *v, struct decision *d)
{
        (void)v;
        (void)d;
}

static void begin_limited(struct rig *r, unsigned runs, const char *items)
{
        r->limits.runs = runs;
        r->controller.plan = plan_nothing;
        r->controller.settle = settle_in_turn;
        begin_with(r, items, "");
        turns(r);
}

/* The status of NAME is written, and the watch brings it back. */
static void takes(struct rig *r, const char *name, const char *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *path = arena_printf(&a, IN_NS "/%s/status", name);
        struct request *q = api_find(&r->api, "PATCH", path);
        char *text, *object;

        text = json_print(&a, json_at(json_parse(&a, str_of(q->body), NULL, NULL), "status"));
        if (!strstr(text, status))
                fail_msg("%s: %s is not %s", name, text, status);
        object = sample(&a, name, ++r->version, text);
        api_answer(q, 200, object);
        turns(r);
        say(r, r->watch, "MODIFIED", object);
}

static void says(struct rig *r, const char *type, const char *name, const char *status)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        say(r, r->watch, type, sample(&a, name, ++r->version, status));
        turns(r);
}

static void assert_quiet(struct rig *r)
{
        pass(r, 2 * SEC);
        assert_true(list_empty(&r->api.waiting));
        assert_true(operator_idle(r->op));
}

static char *samples(struct arena *a, const char *first, const char *second)
{
        return arena_join(a, sample(a, "a", 10, first), ",", sample(a, "b", 11, second));
}

/* ---- */

static void one_begins_and_the_other_waits(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct admission_queued queue[4];

        begin_limited(r, 1, samples(&a, NULL, NULL));
        takes(r, "b", "{\"place\":\"1\",\"reason\":\"1 of 1 runs are under way (test/a)\"}");
        takes(r, "a", BEGUN);
        assert_quiet(r);
        assert_int_equal(operator_queue(r->op, NULL, queue, 4, &a), 1);
        assert_string_equal(queue[0].name, "b");
        assert_string_equal(queue[0].kind, "test");
        assert_int_equal(queue[0].position, 1);
        assert_int_equal(operator_queue(r->op, "elsewhere", queue, 4, &a), 0);
        says(r, "MODIFIED", "a", OVER);
        takes(r, "b", BEGUN);
        assert_quiet(r);
        assert_int_equal(operator_queue(r->op, NULL, queue, 4, &a), 0);
}

/* Who comes later is told at once, with one write. */
static void one_that_comes_later(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 1, sample(&a, "a", 10, BEGUN));
        r->mind.decisions = 0;
        says(r, "ADDED", "c", NULL);
        takes(r, "c", "{\"place\":\"1\"");
        assert_int_equal(r->mind.decisions, 3); /* it asks, has its place, and sees its own write */
        says(r, "ADDED", "b", NULL);
        takes(r, "b", "{\"place\":\"1\"");
        takes(r, "c", "{\"place\":\"2\"");
        assert_quiet(r);
}

/* A slot is taken with the decision: the write of the first has not even been answered. */
static void never_two_at_once(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 1, samples(&a, NULL, NULL));
        says(r, "ADDED", "c", NULL);
        assert_null(strstr(api_find(&r->api, "PATCH", IN_NS "/b/status")->body, "\"stand\""));
        assert_null(strstr(api_find(&r->api, "PATCH", IN_NS "/c/status")->body, "\"stand\""));
        assert_non_null(strstr(api_find(&r->api, "PATCH", IN_NS "/a/status")->body, "\"stand\""));
}

static void after_a_restart_what_runs_holds_its_slot(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 1, samples(&a, NULL, BEGUN));
        takes(r, "a", "{\"place\":\"1\",\"reason\":\"1 of 1 runs are under way (test/b)\"}");
        assert_quiet(r);
        says(r, "DELETED", "b", BEGUN); /* the request goes, and its slot is free */
        takes(r, "a", BEGUN);
        assert_quiet(r);
}

static char *going(struct arena *a, const char *name, unsigned version)
{
        return arena_printf(a,
                            "{\"apiVersion\":\"example.sonde.dev/v1\",\"kind\":\"Sample\","
                            "\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                            "\"resourceVersion\":\"%u\",\"deletionTimestamp\":"
                            "\"2026-11-15T12:00:00Z\",\"finalizers\":[\"x/y\"]},\"status\":" BEGUN "}",
                            name, name, version);
}

static void what_is_deleted_does_not_begin(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 1, samples(&a, NULL, BEGUN));
        takes(r, "a", "{\"place\":\"1\"");
        r->version = 300;
        say(r, r->watch, "MODIFIED", going(&a, "a", 300));
        assert_int_equal(operator_queue(r->op, NULL, &(struct admission_queued){0}, 1, &a), 0);
        says(r, "ADDED", "c", NULL);
        takes(r, "c", "{\"place\":\"1\"");
        says(r, "MODIFIED", "b", OVER);
        takes(r, "c", BEGUN);
        assert_quiet(r);
}

/* Nothing of it runs, and nobody knows when it will: others begin meanwhile. */
static void what_is_stalled_holds_no_slot(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->mind.child = true;
        begin_limited(r, 1, samples(&a, BEGUN, NULL));
        takes(r, "b", "{\"place\":\"1\"");
        api_answer(api_find(&r->api, "POST", MAPS_NS), 422,
                   "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"no such thing\","
                   "\"reason\":\"Invalid\",\"code\":422}");
        takes(r, "a", "Refused");
        takes(r, "b", BEGUN);
}

/* A missing grant was in the way of many, and is given: they do not all begin at once. */
static void what_was_stalled_goes_on_in_its_turn(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *made;

        r->mind.child = true;
        begin_limited(r, 1, samples(&a, STALLED, STALLED));
        made = api_find(&r->api, "POST", MAPS_NS);
        assert_non_null(strstr(made->body, "\"a\""));
        pass(r, 10 * SEC);
        assert_true(list_empty(&r->api.waiting));
        api_answer(made, 201, map_of(&a, made->body, "a", ++r->version));
        turns(r);
        say(r, r->maps_watch, "ADDED", map_of(&a, made->body, "a", r->version));
        takes(r, "a", "Resolved");
        assert_quiet(r);
        says(r, "MODIFIED", "a", OVER);
        made = api_find(&r->api, "POST", MAPS_NS);
        assert_non_null(strstr(made->body, "\"b\""));
}

/* Nobody is told, since it may pass; but others begin, and it goes on when there is room again. */
static void what_fails_again_and_again_holds_no_slot(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        unsigned failed = 0;

        r->mind.child = true;
        begin_limited(r, 1, samples(&a, BEGUN, NULL));
        takes(r, "b", "{\"place\":\"1\"");
        for (; failed < 20 && !api_waiting(&r->api, "PATCH", IN_NS "/b/status"); failed++) {
                api_refuse(api_find(&r->api, "POST", MAPS_NS), 500, "InternalError", NULL);
                for (int i = 0; i < 90 && list_empty(&r->api.waiting); i++)
                        pass(r, SEC);
        }
        assert_int_equal(failed, 13);
        takes(r, "b", BEGUN);
        api_refuse(api_find(&r->api, "POST", MAPS_NS), 500, "InternalError", NULL); /* b's own */
        r->mind.child = false;
        pass(r, 50 * SEC);
        r->mind.child = true;
        assert_null(api_waiting(&r->api, "POST", MAPS_NS)); /* a waits */
        says(r, "MODIFIED", "b", OVER);
        assert_non_null(strstr(api_find(&r->api, "POST", MAPS_NS)->body, "\"a\""));
}

static char *job_of(struct arena *a, const char *name, unsigned version, const char *status)
{
        return arena_printf(
                a,
                "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"namespace\":\"ns\","
                "\"name\":\"%s\",\"uid\":\"uid-job\",\"resourceVersion\":\"%u\",\"labels\":{"
                "\"sonde.dev/controller\":\"test\"},\"ownerReferences\":[{\"apiVersion\":"
                "\"example.sonde.dev/v1\",\"kind\":\"Sample\",\"name\":\"%s\",\"uid\":\"uid-%s\","
                "\"controller\":true}]},\"status\":%s}",
                name, version, name, name, status);
}

/* Somebody's finalizer keeps a deleted request for days: it holds its slot as long as its Job runs, also after a restart. */
static void what_is_deleted_holds_its_slot_until_its_job_has_ended(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->kinds[0].type = &KUBE_JOB;
        r->limits.runs = 1;
        r->controller.plan = plan_nothing;
        r->controller.settle = settle_in_turn;
        begin_with(r, arena_join(&a, sample(&a, "a", 10, NULL), ",", going(&a, "b", 11)),
                   job_of(&a, "b", 12, "{\"active\":1}"));
        turns(r);
        takes(r, "a", "{\"place\":\"1\",\"reason\":\"1 of 1 runs are under way (test/b)\"}");
        assert_quiet(r);
        say(r, r->maps_watch, "MODIFIED",
            job_of(&a, "b", ++r->version, "{\"conditions\":[{\"type\":\"Complete\",\"status\":\"True\"}]}"));
        takes(r, "a", BEGUN);
        assert_quiet(r);
}

/* ---- kinds that cannot be listed: nothing else happens that would bring the queue to mind again */

static const struct kube_type OTHER = {"example.sonde.dev", "v1", "others", "Other", true, true};

static void begin_with_other(struct rig *r, struct controller *other, const char *items)
{
        *other = (struct controller){.name = "other",
                                     .type = &OTHER,
                                     .settings = &r->mind,
                                     .plan = plan_nothing,
                                     .settle = settle_in_turn};
        r->controllers[1] = other;
        begin_limited(r, 1, items);
        assert_false(api_waiting(&r->api, "PATCH", IN_NS "/a/status"));
}

static void a_kind_that_is_not_installed_is_not_waited_for(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct controller other;

        begin_with_other(r, &other, samples(&a, NULL, NULL));
        api_refuse(api_find(&r->api, "GET", "/apis/example.sonde.dev/v1/others"), 404, "NotFound", NULL);
        pass(r, 2 * SEC);
        takes(r, "b", "{\"place\":\"1\"");
        takes(r, "a", BEGUN);
}

static void a_kind_that_may_not_be_read_is_not_waited_for_long(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct controller other;

        begin_with_other(r, &other, samples(&a, NULL, NULL));
        for (int i = 0; i < 50; i++) {
                struct request *q = api_waiting(&r->api, "GET", "/apis/example.sonde.dev/v1/others");

                assert_null(api_waiting(&r->api, "PATCH", IN_NS "/a/status"));
                if (q)
                        api_refuse(api_find(&r->api, "GET", "/apis/example.sonde.dev/v1/others"), 403,
                                   "Forbidden", NULL);
                pass(r, SEC);
        }
        pass(r, 15 * SEC);
        takes(r, "b", "{\"place\":\"1\"");
        takes(r, "a", BEGUN);
}

static void without_a_limit_nobody_is_asked(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 0, samples(&a, NULL, NULL));
        assert_int_equal(r->mind.decisions, 2);
        takes(r, "a", BEGUN);
        takes(r, "b", BEGUN);
        assert_quiet(r);
        assert_int_equal(r->mind.decisions, 4);
        assert_int_equal(operator_queue(r->op, NULL, NULL, 0, &a), 0);
}

/* Told to lead once more: all are asked anew, and nothing is written that was written before. */
static void leading_again(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        begin_limited(r, 1, samples(&a, BEGUN, NULL));
        takes(r, "b", "{\"place\":\"1\"");
        assert_quiet(r);
        operator_lead(r->op);
        assert_quiet(r);
        says(r, "MODIFIED", "a", OVER);
        takes(r, "b", BEGUN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(one_begins_and_the_other_waits),
        TEST(one_that_comes_later),
        TEST(never_two_at_once),
        TEST(after_a_restart_what_runs_holds_its_slot),
        TEST(what_is_deleted_does_not_begin),
        TEST(what_is_stalled_holds_no_slot),
        TEST(what_was_stalled_goes_on_in_its_turn),
        TEST(what_fails_again_and_again_holds_no_slot),
        TEST(what_is_deleted_holds_its_slot_until_its_job_has_ended),
        TEST(a_kind_that_is_not_installed_is_not_waited_for),
        TEST(a_kind_that_may_not_be_read_is_not_waited_for_long),
        TEST(without_a_limit_nobody_is_asked),
        TEST(leading_again),
};

UNIT_MAIN(tests)
