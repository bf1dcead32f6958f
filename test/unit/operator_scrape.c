#include "unit/operator_rig.h"

/* Look-ups of texts at addresses, all of a decision at the same time. */

enum { ADDRESSES = 4 };

struct scraper {
        const char *names[ADDRESSES]; /* up to the first NULL */
        bool lists;                   /* nodes as well */
        unsigned answered;            /* decisions with all answers */
        char *texts[ADDRESSES], *errors[ADDRESSES];
};

static void plan_nothing(const struct view *v, struct decision *d)
{
}

static void settle_by_scraping(const struct view *v, struct decision *d)
{
        static const struct want nodes = {.kind = WANT_LIST, .type = &KUBE_NODE};
        struct scraper *s = (struct scraper *)v->settings;
        const struct answer *answers[ADDRESSES] = {NULL};
        bool all = true;

        for (size_t i = 0; i < ADDRESSES && s->names[i]; i++) {
                answers[i] = decide_want(d, v, &(struct want){.kind = WANT_SCRAPE, .name = s->names[i]});
                all = answers[i] && all;
        }
        if (s->lists)
                all = decide_want(d, v, &nodes) && all;
        if (!all)
                return;
        s->answered++;
        for (size_t i = 0; i < ADDRESSES && answers[i]; i++) {
                s->errors[i] = xstrdup(answers[i]->error);
                if (answers[i]->text.p)
                        s->texts[i] = xstrndup(answers[i]->text.p, answers[i]->text.n);
                assert_true(!answers[i]->error == !!answers[i]->text.p);
        }
}

static void scraper_done(struct scraper *s)
{
        for (size_t i = 0; i < ADDRESSES; i++) {
                free(s->texts[i]);
                free(s->errors[i]);
        }
}
DEFINE_CLEANUP_STRUCT(struct scraper, scraper_done)

static void begin_scrape(struct rig *r, struct scraper *s)
{
        r->controller.settings = s;
        r->controller.plan = plan_nothing;
        r->controller.settle = settle_by_scraping;
        begin(r);
}

static void end(struct rig *r)
{
        operator_free(TAKE_PTR(r->op));
        turns(r);
        api_free_requests(&r->api.waiting);
}

/* At the rig's raw listener. */
static const char *at(struct rig *r, struct arena *a, const char *path)
{
        return arena_join(a, r->api.net.url, path, "");
}

static void hear(struct rig *r, int fd, const char *text)
{
        _cleanup_(buf_done) struct buf heard = BUF_INIT(64 << 10);

        net_until(&r->api.net, net_heard(fd, &heard, text));
        assert_null(memmem(heard.p, heard.n, "Authorization", 13));
}

static void answer(int fd, const char *body)
{
        char text[256];

        snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        net_say(fd, text);
}

/* None waits for another one, nor for what the server is asked meanwhile. */
static void they_go_at_the_same_time(void **state)
{
        struct rig *r = *state;
        _cleanup_(scraper_done) struct scraper s = {.lists = true};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct request *q;
        int fds[3];

        s.names[0] = at(r, &a, "/metrics");
        s.names[1] = at(r, &a, "/metrics/2");
        s.names[2] = at(r, &a, "/");
        begin_scrape(r, &s);
        for (int i = 0; i < 3; i++)
                fds[i] = net_accept(&r->api.net);
        hear(r, fds[0], "GET /metrics HTTP/1.1\r\n");
        hear(r, fds[1], "GET /metrics/2 HTTP/1.1\r\n");
        hear(r, fds[2], "GET / HTTP/1.1\r\n");
        q = api_find(&r->api, "GET", "/api/v1/nodes");
        answer(fds[2], "third");
        answer(fds[0], "first");
        turns(r);
        list_of(q, "Node", "");
        turns(r);
        assert_int_equal(s.answered, 0);
        answer(fds[1], "");
        net_until(&r->api.net, s.answered);
        assert_string_equal(s.texts[0], "first");
        assert_string_equal(s.texts[1], "");
        assert_string_equal(s.texts[2], "third");
        for (int i = 0; i < 3; i++)
                fd_close(fds[i]);
}

/* The others take longer. */
static void the_list_comes_last(void **state)
{
        struct rig *r = *state;
        _cleanup_(scraper_done) struct scraper s = {.lists = true};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        int fd;

        s.names[0] = at(r, &a, "/metrics");
        begin_scrape(r, &s);
        fd = net_accept(&r->api.net);
        answer(fd, "text");
        turns(r);
        assert_int_equal(s.answered, 0);
        list_of(api_find(&r->api, "GET", "/api/v1/nodes"), "Node", "");
        net_until(&r->api.net, s.answered);
        assert_string_equal(s.texts[0], "text");
        assert_null(api_waiting(&r->api, "GET", "/api/v1/nodes")); /* asked for once */
        fd_close(fd);
}

/* Each with a port where somebody would hear it, if it were asked. */
static void no_other_address_is_asked(void **state)
{
        static const char *const bad[][2] = {
                {"127.0.0.1:", "/metrics"},
                {"https://127.0.0.1:", "/metrics"},
                {"ftp://127.0.0.1:", "/metrics"},
                {"http://localhost:", "/metrics"},
                {"http://127.0.0.1:", ""},
                {"http://127.0.0.1:", "?x"},
                {"http://127.0.0.1:", "/metrics?x=1"},
                {"http://127.0.0.1:", "/metrics#x"},
                {"http://127.0.0.1:", "/metrics\r\nX: y"},
                {"http://127.0.0.1:", "/a b"},
                {"http://127.0.0.1:", "0000/metrics"},
                {"http://user:word@127.0.0.1:", "/metrics"},
                {"http://@127.0.0.1:", "/metrics"},
                {"http://0x7f.1:", "/metrics"},
                {"http://2130706433:", "/metrics"},
                {"http://127.1:", "/metrics"},
                {"http://[127.0.0.1]:", "/metrics"},
                {"http://[::ffff:127.0.0.1%lo]:", "/metrics"},
                {"http://::ffff:127.0.0.1:", "/metrics"},
                {"http://000000000000000000000000000000000000000000127.0.0.1:", "/metrics"},
        };
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(scraper_done) struct scraper s = {0};

                s.names[0] = arena_printf(&a, "%s%u%s", bad[i][0], r->api.net.port, bad[i][1]);
                begin_scrape(r, &s);
                net_until(&r->api.net, s.answered);
                assert_non_null(s.errors[0]);
                assert_true(net_no_connection(&r->api.net));
                end(r);
        }
}

static void an_address_has_a_port(void **state)
{
        static const char *const bad[] = {"",
                                          "http://",
                                          "http:///metrics",
                                          "http://127.0.0.1/metrics",
                                          "http://127.0.0.1:/metrics",
                                          "http://127.0.0.1:0/metrics",
                                          "http://[::1]/metrics"};
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(scraper_done) struct scraper s = {.names = {bad[i]}};

                begin_scrape(r, &s);
                net_until(&r->api.net, s.answered);
                assert_null(strstr(s.errors[0], "connect"));
                end(r);
        }
}

/* A cloud's metadata, and what else answers on a link: nobody's pod. */
static void no_address_of_a_link_is_asked(void **state)
{
        static const char *const bad[] = {"169.254.169.254",          "0.0.0.0",   "224.0.0.1",
                                          "255.255.255.255",          "[fe80::1]", "[ff02::1]",
                                          "[::ffff:169.254.169.254]", "[::]",      "[::ffff:a9fe:a9fe]"};
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                _cleanup_(scraper_done) struct scraper s = {0};

                s.names[0] = arena_printf(&a, "http://%s:%u/metrics", bad[i], r->api.net.port);
                begin_scrape(r, &s);
                net_until(&r->api.net, s.answered);
                assert_non_null(strstr(s.errors[0], "address of a pod"));
                assert_true(net_no_connection(&r->api.net));
                end(r);
        }
}

static void version_6_is_an_address(void **state)
{
        struct rig *r = *state;
        _cleanup_(scraper_done) struct scraper s = {.names = {"http://[::1]:1/metrics"}};

        begin_scrape(r, &s);
        net_until(&r->api.net, s.answered);
        assert_non_null(strstr(s.errors[0], "cannot connect to ::1 port 1"));
}

static void three_seconds_are_all_it_gets(void **state)
{
        struct rig *r = *state;
        _cleanup_(scraper_done) struct scraper s = {0};
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        int fds[2];

        s.names[0] = at(r, &a, "/silent");
        s.names[1] = at(r, &a, "/slow");
        begin_scrape(r, &s);
        for (int i = 0; i < 2; i++)
                fds[i] = net_accept(&r->api.net);
        hear(r, fds[1], "GET /slow");
        net_say(fds[1], "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
        for (int i = 0; i < 29; i++) {
                net_pass(&r->api.net, 100 * USEC_PER_MS);
                net_say(fds[1], ".");
        }
        assert_int_equal(s.answered, 0);
        pass(r, 200 * USEC_PER_MS);
        assert_int_equal(s.answered, 1);
        assert_non_null(strstr(s.errors[0], "in time"));
        assert_non_null(strstr(s.errors[1], "in time"));
        assert_true(net_no_connection(&r->api.net)); /* never asked twice */
        for (int i = 0; i < 2; i++)
                fd_close(fds[i]);
}

static void whatever_goes_wrong_is_the_answer(void **state)
{
        static const char *const answers[][2] = {
                {"HTTP/1.1 302 Found\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n", "302 Found"},
                {"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "404 Not Found"},
                {"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n", "503"},
                {"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n", "the limit is 1048576"},
                {"SSH-2.0-OpenSSH_9.2\r\n", "not proper HTTP/1.1"},
        };
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (size_t i = 0; i <= ARRAY_LEN(answers); i++) {
                _cleanup_(scraper_done) struct scraper s = {.names = {at(r, &a, "/metrics")}};
                int fd;

                begin_scrape(r, &s);
                fd = net_accept(&r->api.net);
                hear(r, fd, "GET /metrics");
                if (i < ARRAY_LEN(answers))
                        net_say(fd, answers[i][0]);
                else
                        fd_close(TAKE_FD(fd));
                net_until(&r->api.net, s.answered);
                assert_non_null(strstr(s.errors[0], i < ARRAY_LEN(answers) ? answers[i][1] : "was closed"));
                assert_true(net_no_connection(&r->api.net));
                end(r);
                fd_close(fd);
        }
}

/* The decision is over, or the operator, while they are under way. */
static void they_end_with_the_decision(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (int put_off = 0; put_off < 2; put_off++) {
                _cleanup_(scraper_done) struct scraper s = {.lists = true, .names = {at(r, &a, "/metrics")}};
                _cleanup_(buf_done) struct buf heard = BUF_INIT(64 << 10);
                int fd;

                begin_scrape(r, &s);
                fd = net_accept(&r->api.net);
                if (put_off)
                        api_refuse(api_find(&r->api, "GET", "/api/v1/nodes"), 410, "Expired", NULL);
                else
                        operator_free(TAKE_PTR(r->op));
                net_until(&r->api.net, !net_hear(fd, &heard)); /* it is closed */
                assert_int_equal(s.answered, 0);
                end(r);
                fd_close(fd);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(they_go_at_the_same_time),      TEST(the_list_comes_last),
        TEST(no_other_address_is_asked),     TEST(an_address_has_a_port),
        TEST(no_address_of_a_link_is_asked), TEST(version_6_is_an_address),
        TEST(three_seconds_are_all_it_gets), TEST(whatever_goes_wrong_is_the_answer),
        TEST(they_end_with_the_decision),
};
UNIT_MAIN(tests)
