/* The HTTP server against clients that a test plays by hand, and against our own client. */
#include "unit/http_server_rig.h"

static void test_a_request_and_its_answer(void **state)
{
        struct rig *r = *state;

        say(r, "GET /a/b?x=1&y HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/a/b");
        assert_string_equal(buf_cstr(&r->got),
                            HEAD "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\n/a/b");
        assert_string_equal(buf_cstr(&r->seen), "GET /a/b?x=1&y []\n");
        buf_clear(&r->got);
        say(r, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/again");
        assert_int_equal(r->requests, 2);
}

static void test_requests_that_come_at_once_are_answered_in_order(void **state)
{
        struct rig *r = *state;

        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
               "GET /3 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /4 HTTP/1.1\r\nHost: h\r\n\r\n");
        hear_all(r);
        assert_string_equal(buf_cstr(&r->seen), "GET /1? []\nPOST /2? [abc]\nGET /3? []\n");
        assert_string_equal(buf_cstr(&r->got), HEAD
                            "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n/1" HEAD
                            "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n/2" HEAD
                            "Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 2\r\n\r\n/3");
}

static void test_early_requests_wait_for_a_late_answer(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->requests == 1);
        net_say(r->fd, "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
        turns(r);
        assert_int_equal(r->requests, 1);
        for (int i = 2; i <= 3; i++) {
                http_reply(TAKE_PTR(r->ex), 204, NULL, STR_NULL);
                net_until(&r->net, r->requests == i);
        }
        assert_string_equal(buf_cstr(&r->seen), "GET /1? []\nGET /2? []\nGET /3? []\n");
}

static void test_a_request_byte_by_byte(void **state)
{
        struct rig *r = *state;
        const char *text = "POST /x?q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
                           "chunked\r\n\r\n2;e\r\nab\r\n1\r\nc\r\n0\r\nT: u\r\n\r\n";

        for (size_t i = 0; text[i]; i++) {
                say(r, (char[]){text[i], '\0'});
                net_turn(&r->net);
        }
        until_heard(r, "/x");
        assert_string_equal(buf_cstr(&r->seen), "POST /x?q [abc]\n");
}

static void test_expect_100_continue(void **state)
{
        struct rig *r = *state;

        say(r, "PUT /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        until_heard(r, "HTTP/1.1 100 Continue\r\n\r\n");
        assert_int_equal(r->requests, 0);
        say(r, "ok");
        until_heard(r, "/x");
        assert_string_equal(buf_cstr(&r->seen), "PUT /x? [ok]\n");
}

static void test_head_and_no_content(void **state)
{
        struct rig *r = *state;

        say(r, "HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "\r\n\r\n");
        turns(r);
        net_hear(r->fd, &r->got);
        assert_string_equal(buf_cstr(&r->got), HEAD "Content-Type: text/plain\r\nContent-Length: 4\r\n\r\n");
        buf_clear(&r->got);
        r->mode = LATER;
        say(r, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_reply(TAKE_PTR(r->ex), 204, NULL, STR_NULL);
        until_heard(r, "\r\n\r\n");
        assert_string_equal(buf_cstr(&r->got),
                            "HTTP/1.1 204 No Content\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n");
}

static void test_http_1_0(void **state)
{
        struct rig *r = *state;

        say(r, "GET /x HTTP/1.0\r\n\r\n");
        assert_string_equal(hear_all(r), HEAD
                            "Content-Type: text/plain\r\nConnection: close\r\nContent-Length: 2\r\n\r\n/x");
        hang_up(r);
        say(r, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        until_heard(r, "/x");
        assert_non_null(strstr(buf_cstr(&r->got), "Connection: keep-alive\r\n"));
        hang_up(r);
        r->mode = STREAM;
        say(r, "GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        net_until(&r->net, r->ex);
        http_stream_write(r->ex, STR("to the end"));
        http_stream_end(TAKE_PTR(r->ex));
        assert_string_equal(hear_all(r), HEAD "Connection: close\r\n\r\nto the end");
}

static void test_headers_of_answers_cannot_be_forged(void **state)
{
        struct rig *r = *state;
        struct http_header h[] = {
                {STR("X-A"), STR("good")}, {STR("X-B"), STR("a\r\nX-C: d")}, {STR("X D"), STR("e")}};

        r->mode = LATER;
        say(r, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_reply_headers(TAKE_PTR(r->ex), 200, &(struct http_headers){h, 3}, STR("x"));
        until_heard(r, "\r\n\r\nx");
        assert_string_equal(buf_cstr(&r->got), HEAD "X-A: good\r\nContent-Length: 1\r\n\r\nx");
}

/* ---- requests that are refused */

static void test_bad_requests(void **state)
{
        static const char *const bad[] = {
                "nonsense\r\n\r\n",
                "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
                "GET /\r\nHost: h\r\n\r\n",
                "GET / HTTP/1.1\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                "GET / HTTP/1.1\nHost: a\n\n",
                "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
                "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
                "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
                "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nTransfer-Encoding: "
                "chunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: "
                "2\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
                "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\nab",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                say(r, bad[i]);
                hear_all(r);
                if (strncmp(buf_cstr(&r->got), "HTTP/1.1 400 Bad Request\r\n", 26) != 0)
                        fail_msg("%s -> %s", bad[i], buf_cstr(&r->got));
                hang_up(r);
        }
        assert_int_equal(r->requests, 0);
}

static void test_a_second_bad_request_does_not_hurt_the_first(void **state)
{
        struct rig *r = *state;

        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nnonsense\r\n\r\n");
        hear_all(r);
        assert_non_null(strstr(buf_cstr(&r->got), "\r\n\r\n/1HTTP/1.1 400 Bad Request\r\n"));
        assert_int_equal(r->requests, 1);
}

static void test_limits(void **state)
{
        struct rig *r = *state;
        char long_line[400];

        new_server(r, (struct http_server_config){.limits = {.head = 300, .headers = 3, .body = 10}});
        memset(long_line, 'x', sizeof(long_line) - 1);
        long_line[sizeof(long_line) - 1] = '\0';
        memcpy(long_line, "GET /", 5);
        say(r, long_line);
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 431 ", 13);
        hang_up(r);
        say(r, "GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n");
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 431 ", 13);
        hang_up(r);
        say(r, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n");
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 413 ", 13);
        hang_up(r);
        say(r, "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
               "chunked\r\n\r\n6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n");
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 413 ", 13);
        hang_up(r);
        say(r, "POST /ok HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n1234567890");
        until_heard(r, "/ok");
        assert_int_equal(r->requests, 1);
}

/* The refused body is still under way when the answer is sent: the client must see the answer, not a reset. */
static void test_a_refusal_reaches_a_client_that_still_sends(void **state)
{
        struct rig *r = *state;
        char junk[4096] = {0};
        ssize_t n = 0;

        new_server(r, (struct http_server_config){.limits = {.body = 10}});
        say(r, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n");
        for (int i = 0; i < 200 && n >= 0; i++) {
                n = send(r->fd, junk, sizeof(junk), MSG_NOSIGNAL);
                net_turn(&r->net);
        }
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 413 ", 13);
}

static void test_slow_and_idle_clients(void **state)
{
        struct rig *r = *state;

        say(r, "GET / HTTP/1.1\r\nHo");
        turns(r);
        for (int i = 0; i < 9; i++) {
                net_pass(&r->net, USEC_PER_SEC);
                say(r, i ? "o" : "st: h");
                turns(r);
        }
        assert_true(net_hear(r->fd, &r->got));
        net_pass(&r->net, 2 * USEC_PER_SEC);
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 408 ", 13);
        hang_up(r);
        /* one that says nothing */
        r->fd = net_connect(http_server_port(r->server));
        turns(r);
        net_pass(&r->net, 119 * USEC_PER_SEC);
        assert_true(net_hear(r->fd, &r->got));
        net_pass(&r->net, 2 * USEC_PER_SEC);
        assert_string_equal(hear_all(r), "");
        hang_up(r);
        /* one that has asked before */
        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/x");
        net_pass(&r->net, 119 * USEC_PER_SEC);
        assert_true(net_hear(r->fd, &r->got));
        net_pass(&r->net, 2 * USEC_PER_SEC);
        hear_all(r);
}

static void test_a_handler_may_take_its_time(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        net_pass(&r->net, 3600 * USEC_PER_SEC);
        http_reply(TAKE_PTR(r->ex), 200, NULL, STR("late"));
        until_heard(r, "late");
}

static void test_too_many_connections(void **state)
{
        struct rig *r = *state;
        int first;

        new_server(r, (struct http_server_config){.max_connections = 1});
        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/1");
        first = TAKE_FD(r->fd);
        buf_clear(&r->got);
        say(r, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
        hear_all(r);
        assert_memory_equal(r->got.p, "HTTP/1.1 503 ", 13);
        assert_int_equal(r->requests, 1);
        hang_up(r);
        fd_close(first);
        turns(r);
        say(r, "GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/3");
}

/* ---- peers that go */

static void test_an_abandoned_request(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_on_abandon(r->ex, on_abandon, r);
        hang_up(r);
        net_until(&r->net, r->abandoned == 1);
        assert_null(r->ex);
        turns(r);
        assert_int_equal(r->abandoned, 1);
}

static void test_an_answer_to_nobody(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        for (int i = 0; i < 3; i++) {
                say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
                net_until(&r->net, r->ex);
                hang_up(r);
                turns(r);
                if (i == 0) {
                        http_reply(TAKE_PTR(r->ex), 200, NULL, STR("lost"));
                } else if (i == 1) {
                        http_stream_start(r->ex, 200, NULL, NULL, NULL);
                        http_stream_write(r->ex, STR("lost"));
                        http_stream_end(TAKE_PTR(r->ex));
                } else {
                        http_stream_start(r->ex, 200, NULL, on_close, r);
                        http_stream_write(r->ex, STR("lost"));
                        assert_int_equal(r->closed, 0);
                        net_until(&r->net, r->closed == 1);
                }
                turns(r);
        }
}

static void test_an_answered_request_is_not_abandoned(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_on_abandon(r->ex, on_abandon, r);
        http_reply(TAKE_PTR(r->ex), 200, NULL, STR("here"));
        until_heard(r, "here");
        hang_up(r);
        turns(r);
        assert_int_equal(r->abandoned, 0);
}

static void test_a_client_that_only_listens_any_more(void **state)
{
        struct rig *r = *state;

        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        shutdown(r->fd, SHUT_WR);
        hear_all(r);
        assert_non_null(strstr(buf_cstr(&r->got), "\r\n\r\n/x"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
        T(test_a_request_and_its_answer),
        T(test_requests_that_come_at_once_are_answered_in_order),
        T(test_early_requests_wait_for_a_late_answer),
        T(test_a_request_byte_by_byte),
        T(test_expect_100_continue),
        T(test_head_and_no_content),
        T(test_http_1_0),
        T(test_headers_of_answers_cannot_be_forged),
        T(test_bad_requests),
        T(test_a_second_bad_request_does_not_hurt_the_first),
        T(test_limits),
        T(test_a_refusal_reaches_a_client_that_still_sends),
        T(test_slow_and_idle_clients),
        T(test_a_handler_may_take_its_time),
        T(test_too_many_connections),
        T(test_an_abandoned_request),
        T(test_an_answer_to_nobody),
        T(test_an_answered_request_is_not_abandoned),
        T(test_a_client_that_only_listens_any_more),
};

UNIT_MAIN(tests)
