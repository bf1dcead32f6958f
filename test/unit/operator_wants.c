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

static const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(look_ups, setup, teardown)};

UNIT_MAIN(tests)
