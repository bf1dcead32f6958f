#include "unit/operator_rig.h"

/* What each kind of look-up asks the server for, and what becomes of the answer. */

struct asked {
        struct want want;
        const char *path, *parameter, *value; /* of the request */
        const char *body;
};

static const struct asked cases[] = {
        {{.kind = WANT_OBJECT, .type = &KUBE_CONFIGMAP, .name = "m"}, MAPS_NS "/m", NULL, NULL, "{\"a\":1}"},
        {{.kind = WANT_PODS, .uid = "uid-job"},
         "/api/v1/namespaces/ns/pods",
         "labelSelector",
         "controller-uid=uid-job",
         "{\"items\":[]}"},
        {{.kind = WANT_EVENTS, .uid = "uid-pod"},
         "/apis/events.k8s.io/v1/namespaces/ns/events",
         "fieldSelector",
         "regarding.uid=uid-pod",
         "{\"items\":[]}"},
        {{.kind = WANT_LOG, .name = "p", .container = "main"},
         "/api/v1/namespaces/ns/pods/p/log",
         "container",
         "main",
         "words"},
};

struct curious {
        const struct asked *asked;
        bool answered, refused;
};

static void plan_nothing(const struct view *v, struct decision *d)
{
}

static void settle_by_asking(const struct view *v, struct decision *d)
{
        struct curious *c = (struct curious *)v->settings;
        const struct answer *answer = decide_want(d, v, &c->asked->want);

        if (!answer)
                return;
        c->answered = true;
        c->refused = answer->error != NULL;
        if (c->refused)
                return;
        if (c->asked->want.kind == WANT_LOG)
                assert_str(answer->text, "words");
        else if (!answer->json)
                assert_string_equal(c->asked->body, "null");
        else
                assert_string_equal(json_print(v->arena, answer->json), c->asked->body);
}

static void look_ups(void **state)
{
        struct rig *r = *state;

        for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
                const struct asked *a = &cases[i / 2];
                struct curious c = {.asked = a};
                struct request *q;

                r->controller.settings = &c;
                r->controller.plan = plan_nothing;
                r->controller.settle = settle_by_asking;
                begin(r);
                q = api_find(&r->api, "GET", a->path);
                if (a->parameter)
                        assert_string_equal(api_param(q, a->parameter), a->value);
                if (i % 2)
                        api_refuse(q, 403, "Forbidden", NULL);
                else
                        api_answer(q, 200, a->body);
                while (!c.answered)
                        net_turn(&r->api.net);
                assert_int_equal(c.refused, i % 2);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* A 404 of the object says that there is none; one of the kind says nothing about the object. */
static void a_kind_that_is_not_served_is_no_answer(void **state)
{
        static const char none[] =
                "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"configmaps \\\"m\\\" "
                "not found\",\"reason\":\"NotFound\",\"details\":{\"name\":\"m\",\"kind\":"
                "\"configmaps\"},\"code\":404}";
        static const char no_kind[] =
                "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"the server could "
                "not find the requested resource\",\"reason\":\"NotFound\",\"details\":{},"
                "\"code\":404}";
        static const char *const bodies[] = {none, no_kind, "404 page not found"};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
                struct asked a = cases[0];
                struct curious c = {.asked = &a};

                a.body = "null";
                r->controller.settings = &c;
                r->controller.plan = plan_nothing;
                r->controller.settle = settle_by_asking;
                begin(r);
                api_answer(api_find(&r->api, "GET", a.path), 404, bodies[i]);
                while (!c.answered)
                        net_turn(&r->api.net);
                assert_int_equal(c.refused, i > 0);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* Nothing is decided on a guess while the server is disturbed; but a kind that can never be read holds up nothing. */
static void a_disturbed_server_is_asked_again(void **state)
{
        struct rig *r = *state;
        struct curious c = {.asked = &cases[0]};
        unsigned asked = 0;

        r->controller.settings = &c;
        r->controller.plan = plan_nothing;
        r->controller.settle = settle_by_asking;
        begin(r);
        while (!c.answered) {
                struct request *q = api_find(&r->api, "GET", cases[0].path);

                api_refuse(q, 500, "InternalError", NULL);
                asked++;
                while (!c.answered && !api_waiting(&r->api, "GET", cases[0].path))
                        net_pass(&r->api.net, 100 * USEC_PER_MS);
        }
        assert_true(c.refused);
        assert_in_range(asked, 5, 100);
}

static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_disturbed_server_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kind_that_is_not_served_is_no_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(look_ups, setup, teardown)};

UNIT_MAIN(tests)
