/* The HTTP server against clients that a test plays by hand, and against our own client. */
#include "unit/net_rig.h"

#include <sys/stat.h>
#include <sys/un.h>

#include "unit/certs.h"

struct rig {
        struct net_rig net;
        struct http_server *server;
        int fd; /* the client */
        struct buf got;
        /* what handlers saw */
        int requests, closed, abandoned;
        struct http_exchange *ex; /* the last one, if it is still to be answered */
        struct buf seen;          /* "METHOD path?query [body]\n" */
        char subject[128];
        enum { ECHO, LATER, STREAM, FREE_SERVER } mode;
};

static void on_close(void *arg)
{
        struct rig *r = arg;

        r->closed++;
        r->ex = NULL;
}

static void on_abandon(void *arg)
{
        struct rig *r = arg;

        r->abandoned++;
        r->ex = NULL;
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct rig *r = arg;
        struct str subject = http_client_subject(ex);

        r->requests++;
        buf_printf(&r->seen, "%.*s %.*s?%.*s [%.*s]\n", STR_ARG(http_method(ex)), STR_ARG(http_path(ex)),
                   STR_ARG(http_query(ex)), STR_ARG(http_body(ex)));
        snprintf(r->subject, sizeof(r->subject), "%.*s", STR_ARG(subject));
        switch (r->mode) {
        case ECHO:
                http_reply(ex, 200, "text/plain", http_path(ex));
                break;
        case LATER:
                r->ex = ex;
                break;
        case STREAM:
                r->ex = ex;
                http_stream_start(ex, 200, NULL, on_close, r);
                break;
        case FREE_SERVER:
                http_server_free(TAKE_PTR(r->server));
                break;
        }
}

static void new_server(struct rig *r, struct http_server_config config)
{
        struct err err = ERR_INIT;

        if (!config.listen)
                config.listen = "127.0.0.1:0";
        config.on_request = on_request;
        config.arg = r;
        http_server_free(r->server);
        r->server = http_server_new(r->net.loop, &config, &err);
        assert_string_equal(err.text, "");
        assert_non_null(r->server);
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        net_rig_init(&r->net);
        r->net.clock.wall = (usec_t)784111777 * USEC_PER_SEC;
        r->fd = -1;
        r->got = (struct buf)BUF_INIT(SIZE_MAX);
        r->seen = (struct buf)BUF_INIT(SIZE_MAX);
        new_server(r, (struct http_server_config){0});
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        http_server_free(r->server);
        net_rig_done(&r->net);
        fd_close(r->fd);
        buf_done(&r->got);
        buf_done(&r->seen);
        free(r);
        return 0;
}

static void say(struct rig *r, const char *text)
{
        if (r->fd < 0)
                r->fd = net_connect(http_server_port(r->server));
        net_say(r->fd, text);
}

static void hang_up(struct rig *r)
{
        fd_close(TAKE_FD(r->fd));
        buf_clear(&r->got);
}

static void until_heard(struct rig *r, const char *text)
{
        net_until(&r->net, net_heard(r->fd, &r->got, text));
}

/* Everything up to the end of the connection. */
static const char *hear_all(struct rig *r)
{
        net_until(&r->net, !net_hear(r->fd, &r->got));
        return buf_cstr(&r->got);
}

static void turns(struct rig *r)
{
        for (int i = 0; i < 10; i++)
                net_turn(&r->net);
}

#define HEAD "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

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

/* ---- streams */

static void test_a_stream_of_many_chunks(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf expected = BUF_INIT(SIZE_MAX);

        r->mode = STREAM;
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "\r\n\r\n");
        buf_adds(&expected, HEAD "Transfer-Encoding: chunked\r\n\r\n");
        for (int i = 0; i < 1000; i++) {
                http_stream_write(r->ex, STR("hello, this is it\n"));
                http_stream_write(r->ex, STR_NULL);
                buf_adds(&expected, "12\r\nhello, this is it\n\r\n");
                if (i % 100 == 0)
                        net_turn(&r->net);
        }
        r->mode = ECHO;
        http_stream_end(TAKE_PTR(r->ex));
        buf_adds(&expected, "0\r\n\r\n");
        until_heard(r, "\r\n0\r\n\r\n");
        assert_string_equal(buf_cstr(&r->got), buf_cstr(&expected));
        /* and the connection goes on */
        say(r, "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/next");
        assert_int_equal(r->closed, 0);
}

static void test_a_stream_whose_reader_goes(void **state)
{
        struct rig *r = *state;

        r->mode = STREAM;
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "\r\n\r\n");
        hang_up(r);
        net_until(&r->net, r->closed == 1);
        turns(r);
        assert_int_equal(r->closed, 1);
}

static void test_a_stream_that_is_not_drained_is_cut(void **state)
{
        struct rig *r = *state;
        static char block[64 * 1024];
        int written = 0;

        new_server(r, (struct http_server_config){.backlog = 128 * 1024});
        r->mode = STREAM;
        memset(block, 'x', sizeof(block));
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        while (!r->closed) {
                http_stream_write(r->ex, str_n(block, sizeof(block)));
                written++;
                assert_true(written < 1000); /* the kernel's buffers, then ours, are full */
                net_turn(&r->net);
        }
        net_until(&r->net, !net_hear(r->fd, &r->got));
        assert_true(r->got.n < (size_t)written * sizeof(block));
}

static void test_one_large_write_is_not_a_slow_reader(void **state)
{
        struct rig *r = *state;
        size_t n = 3 * 1024 * 1024;
        char *big = xcalloc(1, n);

        new_server(r, (struct http_server_config){.backlog = 1024 * 1024});
        r->mode = STREAM;
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_stream_write(r->ex, str_n(big, n));
        free(big);
        http_stream_end(TAKE_PTR(r->ex));
        until_heard(r, "\r\n0\r\n\r\n");
        assert_int_equal(r->closed, 0);
}

static void test_a_reader_that_is_stuck_times_out(void **state)
{
        struct rig *r = *state;
        size_t n = 16 * 1024 * 1024;
        char *big = xcalloc(1, n);

        r->mode = LATER;
        say(r, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_reply(TAKE_PTR(r->ex), 200, NULL, str_n(big, n));
        free(big);
        turns(r);
        net_pass(&r->net, 121 * USEC_PER_SEC);
        net_until(&r->net, !net_hear(r->fd, &r->got));
        assert_true(r->got.n < n);
}

static void test_a_stream_cut_in_the_middle(void **state)
{
        struct rig *r = *state;

        r->mode = STREAM;
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "\r\n\r\n");
        http_stream_write(r->ex, STR("abc"));
        turns(r);
        until_heard(r, "abc\r\n");
        http_stream_abort(TAKE_PTR(r->ex));
        hear_all(r);
        assert_null(memmem(r->got.p, r->got.n, "\r\n0\r\n", 5));
        assert_int_equal(r->closed, 0);
}

/* ---- the server's own life */

static void test_draining(void **state)
{
        struct rig *r = *state;
        int idle;

        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/1");
        idle = TAKE_FD(r->fd);
        buf_clear(&r->got);
        r->mode = LATER;
        say(r, "GET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_server_drain(r->server);
        net_until(&r->net, !net_hear(idle, &r->got));
        fd_close(idle);
        http_reply(TAKE_PTR(r->ex), 200, NULL, STR("last"));
        hear_all(r);
        assert_string_equal(buf_cstr(&r->got), HEAD "Connection: close\r\nContent-Length: 4\r\n\r\nlast");
        hang_up(r);
        turns(r);
        loop_turn(r->net.loop, true); /* nothing but lingering timers is left */
}

static void test_freeing_the_server_inside_a_handler(void **state)
{
        struct rig *r = *state;

        r->mode = FREE_SERVER;
        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
        hear_all(r);
        assert_int_equal(r->requests, 1);
}

static void test_freeing_the_server_with_open_exchanges(void **state)
{
        struct rig *r = *state;

        r->mode = STREAM;
        say(r, "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "\r\n\r\n");
        http_server_free(TAKE_PTR(r->server));
        hear_all(r);
        assert_int_equal(r->closed, 0);
}

static void test_a_unix_socket(void **state)
{
        struct rig *r = *state;
        char dir[] = "/tmp/sonde-unit-XXXXXX";
        char where[64];
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        struct err err = ERR_INIT;
        struct stat st;

        assert_non_null(mkdtemp(dir));
        snprintf(where, sizeof(where), "unix:%s/s", dir);
        new_server(r, (struct http_server_config){.listen = where});
        assert_null(http_server_new(r->net.loop, &(struct http_server_config){.listen = where}, &err));
        assert_non_null(strstr(err.text, ": another process does"));
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", dir);
        r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(r->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(fd_set_nonblock(r->fd), 0);
        say(r, "GET /unix HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/unix");
        http_server_free(TAKE_PTR(r->server));
        assert_int_equal(stat(sa.sun_path, &st), -1);
        /* one left behind by a process that died is replaced */
        fd_close(r->fd);
        r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(r->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        fd_close(TAKE_FD(r->fd));
        new_server(r, (struct http_server_config){.listen = where});
        http_server_free(TAKE_PTR(r->server));
        assert_int_equal(rmdir(dir), 0);
}

static void test_where_to_listen(void **state)
{
        struct rig *r = *state;
        static const char *const good[] = {":0", "localhost:0", "127.0.0.1:0"};
        static const char *const bad[] = {"",       "127.0.0.1",       "127.0.0.1:x", "example.org:80",
                                          "::1:80", "127.0.0.1:65536", "unix:"};
        struct err err = ERR_INIT;
        char taken[64];

        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                new_server(r, (struct http_server_config){.listen = good[i]});
                assert_int_not_equal(http_server_port(r->server), 0);
                say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
                until_heard(r, "/x");
                hang_up(r);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_null(http_server_new(r->net.loop, &(struct http_server_config){.listen = bad[i]},
                                            &err));
                assert_int_equal(err.code, E_CONFIG);
        }
        snprintf(taken, sizeof(taken), "127.0.0.1:%u", http_server_port(r->server));
        assert_null(http_server_new(r->net.loop, &(struct http_server_config){.listen = taken}, &err));
        assert_int_equal(err.code, E_IO);
        assert_non_null(strstr(err.text, ": Address already in use"));
}

static void test_targets_and_parameters(void **state)
{
        struct rig *r = *state;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        r->mode = LATER;
        say(r, "GET http://h:1/a%2Fb?x=a+b%21&y&z=%ff&n=%00&x=2&l%61bel=a%3Db,c HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        assert_str(http_path(r->ex), "/a%2Fb");
        assert_string_equal(url_decode(STR("a%2Fb+c"), &a), "a/b+c");
        assert_null(url_decode(STR("a%2"), &a));
        assert_null(url_decode(STR("a%zz"), &a));
        assert_null(url_decode(STR("a%00"), &a));
        assert_string_equal(http_query_param(r->ex, "x", &a), "a b!");
        assert_string_equal(http_query_param(r->ex, "y", &a), "");
        assert_string_equal(http_query_param(r->ex, "label", &a), "a=b,c");
        assert_null(http_query_param(r->ex, "z", &a));
        assert_null(http_query_param(r->ex, "n", &a));
        assert_null(http_query_param(r->ex, "q", &a));
        assert_str(http_header(http_request_headers(r->ex), "HOST"), "h");
        assert_ptr_equal(http_loop(r->ex), r->net.loop);
        assert_null(http_client_subject(r->ex).p);
}

/* ---- with TLS, and with our own client */

struct caller {
        int ends, status;
        struct err err;
        struct buf body;
};

static void call_data(void *arg, struct str chunk)
{
        buf_addstr(&((struct caller *)arg)->body, chunk);
}

static void call_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct caller *c = arg;

        c->ends++;
        c->status = a ? a->status : 0;
        if (a)
                buf_addstr(&c->body, a->body);
        if (err)
                c->err = *err;
}

static const struct http_handlers call_handlers = {.on_data = call_data, .on_end = call_end};

static struct http_client *tls_client(struct rig *r, struct tls_config config)
{
        struct err err = ERR_INIT;
        _cleanup_(tls_unref) struct tls *tls = tls_new(&config, &err);
        struct http_client *c;
        char url[64];

        assert_non_null(tls);
        snprintf(url, sizeof(url), "https://127.0.0.1:%u", http_server_port(r->server));
        c = http_client_new(r->net.loop, &(struct http_client_config){.url = url, .tls = tls}, &err);
        assert_non_null(c);
        return c;
}

static void test_tls_with_and_without_client_certificate(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert ca = cert_make((struct cert_request){.cn = "CA", .ca = true});
        _cleanup_(cert_done) struct cert server = cert_make(
                        (struct cert_request){.san = "IP:127.0.0.1", .issuer = &ca});
        _cleanup_(cert_done) struct cert me = cert_make(
                        (struct cert_request){.cn = "jane", .o = "admins", .issuer = &ca});
        _cleanup_(tls_unref) struct tls *tls = tls_new(&(struct tls_config){.server = true,
                                                                            .cert = str_of(server.cert),
                                                                            .key = str_of(server.key),
                                                                            .ca = str_of(ca.cert)},
                                                       NULL);
        struct http_client *anonymous, *known;
        struct caller call = {.body = BUF_INIT(SIZE_MAX)};
        char body[20000];

        assert_non_null(tls);
        memset(body, 'b', sizeof(body));
        new_server(r, (struct http_server_config){.tls = tls});
        anonymous = tls_client(r, (struct tls_config){.ca = str_of(ca.cert)});
        known = tls_client(r, (struct tls_config){.ca = str_of(ca.cert),
                                                  .cert = str_of(me.cert),
                                                  .key = str_of(me.key)});
        for (int i = 1; i <= 3; i++) {
                http_start(anonymous,
                           &(struct http_request){
                                           .method = "POST", .target = "/a", .body = {body, sizeof(body)}},
                           &call_handlers, &call);
                net_until(&r->net, call.ends == 2 * i - 1);
                assert_string_equal(call.err.text, "");
                assert_string_equal(r->subject, "");
                http_start(known, &(struct http_request){.method = "GET", .target = "/b"}, &call_handlers,
                           &call);
                net_until(&r->net, call.ends == 2 * i);
                assert_string_equal(r->subject, "jane\nadmins");
        }
        assert_str(buf_str(&call.body), "/a/b/a/b/a/b");
        http_client_free(anonymous);
        http_client_free(known);
        buf_done(&call.body);
}

static void test_plain_http_on_a_tls_port(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make((struct cert_request){.cn = "self"});
        _cleanup_(tls_unref) struct tls *tls = tls_new(
                        &(struct tls_config){.server = true, .cert = str_of(c.cert), .key = str_of(c.key)},
                        NULL);

        new_server(r, (struct http_server_config){.tls = tls});
        say(r, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "use https://");
        assert_memory_equal(r->got.p, "HTTP/1.0 400 ", 13);
        hang_up(r);
        /* and one that says nothing is not kept for long */
        r->fd = net_connect(http_server_port(r->server));
        turns(r);
        net_pass(&r->net, 11 * USEC_PER_SEC);
        hear_all(r);
}

static void test_a_stream_to_our_own_client(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                        (struct cert_request){.cn = "self", .san = "IP:127.0.0.1"});
        _cleanup_(tls_unref) struct tls *tls = tls_new(
                        &(struct tls_config){.server = true, .cert = str_of(c.cert), .key = str_of(c.key)},
                        NULL);
        struct http_client *client;
        struct caller call = {.body = BUF_INIT(SIZE_MAX)};
        char line[128];

        new_server(r, (struct http_server_config){.tls = tls});
        client = tls_client(r, (struct tls_config){.ca = str_of(c.cert)});
        r->mode = STREAM;
        http_start(client, &(struct http_request){.method = "GET", .target = "/w", .stream = true},
                   &call_handlers, &call);
        net_until(&r->net, r->ex);
        for (int i = 0; i < 5000; i++) {
                snprintf(line, sizeof(line),
                         "{\"event\": %d, \"padding\": \"....................................\"}\n", i);
                http_stream_write(r->ex, str_of(line));
                if (i % 7 == 0)
                        net_turn(&r->net);
        }
        http_stream_end(TAKE_PTR(r->ex));
        net_until(&r->net, call.ends == 1);
        assert_string_equal(call.err.text, "");
        assert_true(str_has_suffix(buf_str(&call.body), str_of(line)));
        /* cut in the middle it is lost, not complete */
        http_start(client, &(struct http_request){.method = "GET", .target = "/w", .stream = true},
                   &call_handlers, &call);
        net_until(&r->net, r->ex);
        http_stream_write(r->ex, STR("x"));
        turns(r);
        http_stream_abort(TAKE_PTR(r->ex));
        net_until(&r->net, call.ends == 2);
        assert_int_equal(call.err.code, E_LOST);
        http_client_free(client);
        buf_done(&call.body);
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
                T(test_a_stream_of_many_chunks),
                T(test_a_stream_whose_reader_goes),
                T(test_a_stream_that_is_not_drained_is_cut),
                T(test_one_large_write_is_not_a_slow_reader),
                T(test_a_reader_that_is_stuck_times_out),
                T(test_a_stream_cut_in_the_middle),
                T(test_draining),
                T(test_freeing_the_server_inside_a_handler),
                T(test_freeing_the_server_with_open_exchanges),
                T(test_a_unix_socket),
                T(test_where_to_listen),
                T(test_targets_and_parameters),
                T(test_tls_with_and_without_client_certificate),
                T(test_plain_http_on_a_tls_port),
                T(test_a_stream_to_our_own_client),
};

UNIT_MAIN(tests)
