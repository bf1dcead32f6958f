#include "unit/operator_rig.h"

/* Look-ups of many objects, page by page. */

#define NODES "/api/v1/nodes"
#define PODS  "/api/v1/pods"

struct lister {
        struct want want;
        bool answered;
        char *error;         /* of the answer; NULL: none */
        size_t n;            /* objects in it */
        char *first, *whole; /* name of the first; the answer, when it has at most one */
};

static void plan_nothing(const struct view *v, struct decision *d)
{
}

static void settle_by_listing(const struct view *v, struct decision *d)
{
        struct lister *l = (struct lister *)v->settings;
        const struct answer *answer = decide_want(d, v, &l->want);

        if (!answer)
                return;
        l->answered = true;
        l->error = xstrdup(answer->error);
        assert_int_equal(answer->error == NULL, json_is(json_at(answer->json, "items"), JSON_ARRAY));
        l->n = json_len(json_at(answer->json, "items"));
        l->first = xstrdup(meta_str(json_index(json_at(answer->json, "items"), 0), "name"));
        if (answer->json && l->n <= 1)
                l->whole = xstrdup(json_print(v->arena, answer->json));
}

static void begin_list(struct rig *r, struct lister *l)
{
        r->controller.settings = l;
        r->controller.plan = plan_nothing;
        r->controller.settle = settle_by_listing;
        begin(r);
}

static void lister_done(struct lister *l)
{
        free(l->error);
        free(l->first);
        free(l->whole);
}
DEFINE_CLEANUP_STRUCT(struct lister, lister_done)

/* A page of N objects, the first one called o-FROM. */
static void answer_page(struct request *q, unsigned from, unsigned n, const char *next)
{
        _cleanup_(buf_done) struct buf body = BUF_INIT(8 << 20);

        buf_adds(&body, "{\"kind\":\"List\",\"items\":[");
        for (unsigned i = 0; i < n; i++)
                buf_printf(&body, "%s{\"metadata\":{\"name\":\"o-%u\"}}", i ? "," : "", from + i);
        buf_printf(&body, "],\"metadata\":{\"continue\":\"%s\"}}", next ? next : "");
        api_answer(q, 200, buf_cstr(&body));
}

static void it_asks_where_it_is_told_to(void **state)
{
        static const struct {
                struct want want;
                const char *path, *selector;
        } cases[] = {
                {{.kind = WANT_LIST, .type = &KUBE_POD, .name = "app=x"},
                 "/api/v1/namespaces/ns/pods",
                 "app=x"},
                {{.kind = WANT_LIST, .type = &KUBE_POD, .name = ""}, "/api/v1/namespaces/ns/pods", NULL},
                {{.kind = WANT_ALL, .type = &KUBE_POD, .name = "a in (b, c)"}, PODS, "a in (b, c)"},
                {{.kind = WANT_LIST, .type = &KUBE_NODE}, NODES, NULL},
                {{.kind = WANT_ALL, .type = &KUBE_NODE, .name = "gpu"}, NODES, "gpu"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                _cleanup_(lister_done) struct lister l = {.want = cases[i].want};
                struct request *q;

                begin_list(r, &l);
                q = api_find(&r->api, "GET", cases[i].path);
                if (cases[i].selector)
                        assert_string_equal(api_param(q, "labelSelector"), cases[i].selector);
                else
                        assert_null(api_param(q, "labelSelector"));
                answer_page(q, 0, 2, NULL);
                net_until(&r->api.net, l.answered);
                assert_int_equal(l.n, 2);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

static void pages_become_one_list(void **state)
{
        struct rig *r = *state;
        _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_ALL, .type = &KUBE_NODE}};
        struct request *q;

        begin_list(r, &l);
        q = api_find(&r->api, "GET", NODES);
        assert_non_null(api_param(q, "limit"));
        assert_null(api_param(q, "continue"));
        answer_page(q, 0, 200, "more/1=");
        q = api_find(&r->api, "GET", NODES);
        assert_string_equal(api_param(q, "continue"), "more/1=");
        answer_page(q, 200, 200, "more/2=");
        q = api_find(&r->api, "GET", NODES);
        assert_string_equal(api_param(q, "continue"), "more/2=");
        answer_page(q, 400, 7, NULL);
        net_until(&r->api.net, l.answered);
        assert_int_equal(l.n, 407);
        assert_string_equal(l.first, "o-0");
}

/* Of an object all is kept but its managedFields; an empty list may be null. */
static void what_is_in_the_answer(void **state)
{
        static const char *const pages[][2] = {
                {"{\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{"
                 "\"managedFields\":[{\"manager\":\"x\"}],\"name\":\"n\"},\"status\":{\"a\":[1,{}]}}]}",
                 "{\"items\":[{\"metadata\":{\"name\":\"n\"},\"status\":{\"a\":[1,{}]}}]}"},
                {"{\"items\":null}", "{\"items\":[]}"},
                {"{}", "{\"items\":[]}"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
                _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_LIST, .type = &KUBE_NODE}};

                begin_list(r, &l);
                api_answer(api_find(&r->api, "GET", NODES), 200, pages[i][0]);
                net_until(&r->api.net, l.answered);
                assert_string_equal(l.whole, pages[i][1]);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

static void keep_the_name(struct json *object, struct arena *a)
{
        json_set(a, object, "metadata", json_build(a, "{'name': %s}", meta_str(object, "name")));
        json_remove(object, "status");
}

/* Of thousands of objects no more is in memory than is looked at. */
static void what_nobody_looks_at_is_not_kept(void **state)
{
        struct rig *r = *state;
        _cleanup_(lister_done) struct lister l = {
                .want = {.kind = WANT_ALL, .type = &KUBE_NODE, .project = keep_the_name}};

        begin_list(r, &l);
        api_answer(api_find(&r->api, "GET", NODES), 200,
                   "{\"items\":[{\"metadata\":{\"labels\":{\"a\":\"b\"},\"name\":\"n\"},\"status\":{"
                   "\"images\":[1]}}]}");
        net_until(&r->api.net, l.answered);
        assert_string_equal(l.whole, "{\"items\":[{\"metadata\":{\"name\":\"n\"}}]}");
}

static void there_may_be_5000_and_no_more(void **state)
{
        struct rig *r = *state;

        for (unsigned more = 0; more < 2; more++) {
                _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_ALL, .type = &KUBE_NODE}};

                begin_list(r, &l);
                for (unsigned i = 0; i < 5; i++)
                        answer_page(api_find(&r->api, "GET", NODES), 1000 * i, 1000,
                                    i < 4 || more ? "more" : NULL);
                if (more)
                        answer_page(api_find(&r->api, "GET", NODES), 5000, 1, NULL);
                net_until(&r->api.net, l.answered);
                assert_int_equal(l.n, more ? 0 : 5000);
                if (more)
                        assert_string_equal(l.error, "more than 5000 nodes");
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* Told as the answer, on whichever page it is. */
static void what_cannot_be_had_is_said(void **state)
{
        static const struct {
                int status;
                const char *body;
        } answers[] = {
                {404, "404 page not found"},
                {403, "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"nodes is forbidden\","
                      "\"reason\":\"Forbidden\",\"code\":403}"},
                {200, "<html>welcome to the proxy</html>"},
                {200, "{\"items\":[{\"metadata\":{}},{\"metadata\"]}"},
                {200, "{\"items\":[{\"metadata\":{}}"},
                {200, "{\"items\":[],\"metadata\":{\"continue\":\"for ever\"}}"},
                {200, "[]"},
                {200, ""},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < 2 * ARRAY_LEN(answers); i++) {
                _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_ALL, .type = &KUBE_NODE}};

                begin_list(r, &l);
                if (i % 2)
                        answer_page(api_find(&r->api, "GET", NODES), 0, 3, "more");
                api_answer(api_find(&r->api, "GET", NODES), answers[i / 2].status, answers[i / 2].body);
                net_until(&r->api.net, l.answered);
                assert_non_null(l.error);
                operator_free(TAKE_PTR(r->op));
                turns(r);
                api_free_requests(&r->api.waiting);
        }
}

/* A list whose snapshot is gone in the middle, or a server that is disturbed: begun again later. */
static void it_is_begun_again(void **state)
{
        struct rig *r = *state;
        _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_ALL, .type = &KUBE_NODE}};
        struct request *q;

        begin_list(r, &l);
        answer_page(api_find(&r->api, "GET", NODES), 0, 3, "more");
        api_refuse(api_find(&r->api, "GET", NODES), 410, "Expired", NULL);
        turns(r);
        assert_false(l.answered);
        pass(r, SEC);
        q = api_find(&r->api, "GET", NODES);
        assert_null(api_param(q, "continue"));
        answer_page(q, 0, 4, NULL);
        net_until(&r->api.net, l.answered);
        assert_int_equal(l.n, 4);
}

static void freed_between_pages(void **state)
{
        struct rig *r = *state;
        _cleanup_(lister_done) struct lister l = {.want = {.kind = WANT_ALL, .type = &KUBE_NODE}};

        begin_list(r, &l);
        answer_page(api_find(&r->api, "GET", NODES), 0, 3, "more");
        api_find(&r->api, "GET", NODES);
        operator_free(TAKE_PTR(r->op));
        turns(r);
        assert_false(l.answered);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(it_asks_where_it_is_told_to), TEST(pages_become_one_list),
        TEST(what_is_in_the_answer),       TEST(there_may_be_5000_and_no_more),
        TEST(what_cannot_be_had_is_said),  TEST(it_is_begun_again),
        TEST(freed_between_pages),         TEST(what_nobody_looks_at_is_not_kept),
};
UNIT_MAIN(tests)
