/* The HTTP client against a server that a test plays by hand: proper, slow, confused and hostile. */
#include "unit/net_rig.h"

struct rig {
        struct net_rig net;
        struct http_client *client;
        struct http_call *call;
        int fd;         /* the connection being played */
        struct buf got; /* what came on it */
        /* what the client reported */
        int ends, heads, status;
        bool answered, reused, sent;
        struct err err;
        struct buf body;
        char header[64];
        int pause_after; /* on_data pauses when this many pieces have come; 0: never */
        int pieces;
        enum { NOTHING, CANCEL_IN_HEAD, CANCEL_IN_DATA, FREE_IN_DATA, FREE_IN_END, START_IN_END } trick;
};

static const struct http_handlers handlers;

static void start(struct rig *r, struct http_request req)
{
        if (!req.method)
                req.method = "GET";
        if (!req.target)
                req.target = "/x";
        r->call = http_start(r->client, &req, &handlers, r);
}

static void free_client(struct rig *r)
{
        http_client_free(TAKE_PTR(r->client));
        r->call = NULL;
}

static void note_answer(struct rig *r, const struct http_answer *a)
{
        struct str h = http_header(&a->headers, "x-test");

        r->answered = true;
        r->status = a->status;
        snprintf(r->header, sizeof(r->header), "%.*s", STR_ARG(h));
}

static void on_head(void *arg, const struct http_answer *a)
{
        struct rig *r = arg;

        r->heads++;
        note_answer(r, a);
        if (r->trick == CANCEL_IN_HEAD)
                http_call_cancel(TAKE_PTR(r->call));
}

static void on_data(void *arg, struct str chunk)
{
        struct rig *r = arg;

        buf_addstr(&r->body, chunk);
        if (++r->pieces == r->pause_after)
                http_call_pause(r->call, true);
        if (r->trick == CANCEL_IN_DATA)
                http_call_cancel(TAKE_PTR(r->call));
        if (r->trick == FREE_IN_DATA)
                free_client(r);
}

static void on_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct rig *r = arg;

        r->ends++;
        if (r->call) {
                r->reused = http_call_was_reused(r->call);
                r->sent = http_call_was_sent(r->call);
                http_call_cancel(TAKE_PTR(r->call)); /* harmless here */
        }
        r->answered = a != NULL;
        err_clear(&r->err);
        if (err)
                r->err = *err;
        if (a) {
                note_answer(r, a);
                buf_addstr(&r->body, a->body);
        }
        if (r->trick == FREE_IN_END)
                free_client(r);
        if (r->trick == START_IN_END) {
                r->trick = NOTHING;
                start(r, (struct http_request){0});
        }
}

static const struct http_handlers handlers = {.on_head = on_head, .on_data = on_data, .on_end = on_end};

static void new_client(struct rig *r, struct http_client_config config)
{
        struct err err = ERR_INIT;

        if (!config.url)
                config.url = r->net.url;
        http_client_free(r->client);
        r->client = http_client_new(r->net.loop, &config, &err);
        assert_string_equal(err.text, "");
        assert_non_null(r->client);
}

static int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        net_rig_init(&r->net);
        r->fd = -1;
        r->got = (struct buf)BUF_INIT(SIZE_MAX);
        r->body = (struct buf)BUF_INIT(SIZE_MAX);
        new_client(r, (struct http_client_config){0});
        *state = r;
        return 0;
}

static int teardown(void **state)
{
        struct rig *r = *state;

        http_client_free(r->client);
        net_rig_done(&r->net);
        fd_close(r->fd);
        buf_done(&r->got);
        buf_done(&r->body);
        free(r);
        return 0;
}

/* Plays the server up to a complete request head on a new connection. */
static void hear_request(struct rig *r)
{
        fd_close(TAKE_FD(r->fd));
        r->fd = net_accept(&r->net);
        buf_clear(&r->got);
        net_until(&r->net, net_heard(r->fd, &r->got, "\r\n\r\n"));
}

static void hear_another(struct rig *r)
{
        buf_clear(&r->got);
        net_until(&r->net, net_heard(r->fd, &r->got, "\r\n\r\n"));
}

static void forget_result(struct rig *r)
{
        r->ends = r->heads = r->status = r->pieces = 0;
        r->answered = false;
        buf_clear(&r->body);
}

static void until_end(struct rig *r)
{
        net_until(&r->net, r->ends > 0);
}

/* One call, answered by TEXT and, if CLOSE, the end of the connection. */
static void answer_with(struct rig *r, struct http_request req, const char *text, bool close)
{
        forget_result(r);
        start(r, req);
        hear_request(r);
        net_say(r->fd, text);
        if (close)
                fd_close(TAKE_FD(r->fd));
        until_end(r);
}

static void assert_ok(struct rig *r, int status, const char *body)
{
        assert_string_equal(r->err.text, "");
        assert_int_equal(r->ends, 1);
        assert_int_equal(r->status, status);
        assert_str(buf_str(&r->body), body);
}

/* ERROR has %s for the peer's address, or none. */
static void assert_error(struct rig *r, enum err_code code, const char *before, const char *after)
{
        char text[256];

        snprintf(text, sizeof(text), "%s127.0.0.1:%u%s", before, r->net.port, after);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, code);
        assert_int_equal(r->ends, 1);
}

/* ---- proper answers */

static void test_a_get_and_its_answer(void **state)
{
        struct rig *r = *state;
        char expected[256];

        new_client(r, (struct http_client_config){.user_agent = "sonde/1"});
        answer_with(r, (struct http_request){.target = "/api?x=1"},
                    "HTTP/1.1 200 OK\r\nX-Test: one \r\nX-Test: two\r\nContent-Length: 5\r\n\r\nhello",
                    false);
        assert_ok(r, 200, "hello");
        assert_string_equal(r->header, "one");
        assert_false(r->reused);
        assert_true(r->sent);
        snprintf(expected, sizeof(expected),
                 "GET /api?x=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: sonde/1\r\n\r\n", r->net.port);
        assert_string_equal(buf_cstr(&r->got), expected);
}

static void test_a_post_with_headers_and_body_behind_a_path(void **state)
{
        struct rig *r = *state;
        struct http_header h[] = {{STR("Authorization"), STR("Bearer t")}, {STR("Accept"), STR("*/*")}};
        char url[96], expected[256];

        snprintf(url, sizeof(url), "%s/k8s/clusters/", r->net.url);
        new_client(r, (struct http_client_config){.url = url});
        answer_with(r,
                    (struct http_request){
                                    .method = "POST", .target = "/api", .headers = {h, 2}, .body = STR("{}")},
                    "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", false);
        assert_ok(r, 201, "");
        snprintf(expected, sizeof(expected),
                 "POST /k8s/clusters/api HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: sonde\r\n"
                 "Authorization: Bearer t\r\nAccept: */*\r\nContent-Length: 2\r\n\r\n{}",
                 r->net.port);
        assert_string_equal(buf_cstr(&r->got), expected);
}

static void test_connections_are_kept_and_used_again(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        assert_ok(r, 200, "a");
        for (int i = 0; i < 3; i++) {
                forget_result(r);
                start(r, (struct http_request){0});
                hear_another(r);
                net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n");
                until_end(r);
                assert_ok(r, 200, "b");
                assert_true(r->reused);
        }
        assert_true(net_no_connection(&r->net));
}

static void test_a_connection_unused_for_long_is_closed(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        net_pass(&r->net, 54 * USEC_PER_SEC);
        assert_true(net_hear(r->fd, &r->got));
        net_pass(&r->net, 2 * USEC_PER_SEC);
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_calls_wait_for_a_connection_in_order(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct http_client_config){.max_connections = 1});
        start(r, (struct http_request){.target = "/1"});
        start(r, (struct http_request){.target = "/2"});
        r->call = NULL;
        hear_request(r);
        assert_memory_equal(r->got.p, "GET /1 ", 7);
        assert_true(net_no_connection(&r->net));
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        hear_another(r);
        assert_memory_equal(r->got.p, "GET /2 ", 7);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
        net_until(&r->net, r->ends == 2);
        assert_str(buf_str(&r->body), "ab");
}

static void test_a_waiting_call_gets_a_new_connection_when_one_breaks(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct http_client_config){.max_connections = 1});
        start(r, (struct http_request){.target = "/1"});
        start(r, (struct http_request){.target = "/2"});
        r->call = NULL;
        hear_request(r);
        fd_close(TAKE_FD(r->fd));
        hear_request(r);
        assert_memory_equal(r->got.p, "GET /2 ", 7);
        assert_int_equal(r->ends, 1);
        assert_int_equal(r->err.code, E_LOST);
}

static void test_connection_close_is_respected(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", false);
        assert_ok(r, 200, "a");
        net_until(&r->net, !net_hear(r->fd, &r->got));
        answer_with(r, (struct http_request){0}, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nb", false);
        assert_ok(r, 200, "b");
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_answers_without_a_body(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){.method = "HEAD"},
                    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false);
        assert_ok(r, 200, "");
        forget_result(r);
        start(r, (struct http_request){0});
        hear_another(r);
        net_say(r->fd, "HTTP/1.1 204 No Content\r\n\r\n");
        until_end(r);
        assert_ok(r, 204, "");
        forget_result(r);
        start(r, (struct http_request){0});
        hear_another(r);
        net_say(r->fd, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        until_end(r);
        assert_ok(r, 304, "");
        assert_true(r->reused);
        forget_result(r);
        start(r, (struct http_request){.method = "HEAD"});
        hear_another(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        until_end(r);
        assert_ok(r, 200, "");
        assert_true(net_no_connection(&r->net));
}

static void test_a_body_that_ends_with_the_connection(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\n\r\nall of it", true);
        assert_ok(r, 200, "all of it");
}

static void test_interim_answers_are_skipped(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX-Test: early\r\n\r\n"
                    "HTTP/1.1 200 OK\r\nX-Test: late\r\nContent-Length: 2\r\n\r\nok",
                    false);
        assert_ok(r, 200, "ok");
        assert_string_equal(r->header, "late");
}

static void test_chunks_with_extensions_and_trailers(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nX-Test: head\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3;a=b\r\none\r\n0A\r\n two three\r\n0\r\nX-Test: trailer\r\nX-Other: y\r\n\r\n",
                    false);
        assert_ok(r, 200, "one two three");
        assert_string_equal(r->header, "head");
        forget_result(r);
        start(r, (struct http_request){0});
        hear_another(r);
}

static void test_an_answer_that_comes_byte_by_byte(void **state)
{
        struct rig *r = *state;
        const char *text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nX-Test:  a b  "
                           "\r\nTransfer-Encoding: chunked"
                           "\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: u\r\n\r\n";

        start(r, (struct http_request){0});
        hear_request(r);
        for (size_t i = 0; text[i]; i++) {
                net_say(r->fd, (char[]){text[i], '\0'});
                net_turn(&r->net);
                net_turn(&r->net);
        }
        until_end(r);
        assert_ok(r, 200, "abcde");
        assert_string_equal(r->header, "a b");
}

static void test_an_answer_before_the_request_was_sent(void **state)
{
        struct rig *r = *state;
        size_t n = 8 * 1024 * 1024;
        char *big = xcalloc(1, n);

        start(r, (struct http_request){.method = "POST", .body = {big, n}});
        free(big);
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nfull");
        until_end(r);
        assert_ok(r, 413, "full");
        /* the connection is of no use any more */
        net_until(&r->net, !net_hear(r->fd, &r->got));
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        assert_false(r->reused);
}

static void test_an_answer_followed_by_a_reset_while_sending(void **state)
{
        struct rig *r = *state;
        size_t n = 8 * 1024 * 1024;
        char *big = xcalloc(1, n);

        start(r, (struct http_request){.method = "POST", .body = {big, n}});
        free(big);
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
        shutdown(r->fd, SHUT_WR);
        until_end(r);
        assert_ok(r, 400, "no");
}

static void test_a_large_body_arrives_whole(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);
        size_t n = 3 * 1024 * 1024, sent = 0;

        buf_printf(&text, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", n);
        for (size_t i = 0; i < n; i++)
                buf_addc(&text, (char)('a' + i % 23));
        start(r, (struct http_request){0});
        hear_request(r);
        while (r->ends == 0) {
                ssize_t put = send(r->fd, text.p + sent, text.n - sent, MSG_NOSIGNAL);

                sent += put > 0 ? (size_t)put : 0;
                net_turn(&r->net);
        }
        assert_int_equal(r->body.n, n);
        assert_memory_equal(r->body.p, text.p + text.n - n, n);
}

/* ---- answers that are refused */

static void test_garbage_and_bad_framing_are_refused(void **state)
{
        static const struct {
                const char *text, *why;
        } cases[] = {
                        {"garbage\r\n\r\n", "Expected HTTP/"},
                        {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                         "a version other than HTTP/1.0 and HTTP/1.1"},
                        {"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", "a status outside 100 to 599"},
                        {"HTTP/1.1 1000 High\r\nContent-Length: 0\r\n\r\n", "Response overflow"},
                        {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
                         "a switch to another protocol"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
                         "Duplicate Content-Length"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc",
                         "Invalid character in Content-Length"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc",
                         "Invalid character in Content-Length"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc",
                         "Content-Length overflow"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: "
                         "chunked\r\n\r\n0\r\n\r\n",
                         "Content-Length can't be present with Transfer-Encoding"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
                         "2\r\n\r\n0\r\n\r\n",
                         "Content-Length can't be present with Transfer-Encoding"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc",
                         "a transfer coding other than chunked"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
                         "a transfer coding other than chunked"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
                         "chunked\r\n\r\n0\r\n\r\n",
                         "more than one header that gives the length of the body"},
                        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                         "a transfer coding in HTTP/1.0"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                         "Invalid character in chunk size"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
                         "Chunk size overflow"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
                         "Invalid character in chunk size"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nab",
                         "Invalid character in chunk size"},
                        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                         "Expected CRLF after chunk"},
                        {"HTTP/1.1 200 OK\r\nX-Test: a\r\n b\r\n\r\n", "a folded header"},
                        {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "a line feed without carriage return"},
                        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", "a line feed without carriage return"},
                        {"HTTP/1.1 200 OK\r\nX-Test: a\rb\r\n\r\n", "a carriage return without line feed"},
                        {"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "Invalid header field char"},
                        {"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n", "a header without a name"},
                        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "Invalid header token"},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                char after[256];

                answer_with(r, (struct http_request){0}, cases[i].text, false);
                snprintf(after, sizeof(after), " is not proper HTTP/1.1: %s", cases[i].why);
                assert_error(r, E_PROTOCOL, "answer of ", after);
                /* and the connection is closed */
                net_until(&r->net, !net_hear(r->fd, &r->got));
        }
}

static void test_a_nul_byte_in_the_head(void **state)
{
        struct rig *r = *state;
        static const char text[] = "HTTP/1.1 200 OK\r\nX-Test: a\0b\r\nContent-Length: 0\r\n\r\n";

        start(r, (struct http_request){0});
        hear_request(r);
        assert_int_equal(send(r->fd, text, sizeof(text) - 1, 0), sizeof(text) - 1);
        until_end(r);
        assert_error(r, E_PROTOCOL, "answer of ", " is not proper HTTP/1.1: a NUL byte in the head");
}

static void test_limits_of_head_headers_and_body(void **state)
{
        struct rig *r = *state;
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);

        new_client(r, (struct http_client_config){.limits = {.head = 200, .headers = 3, .body = 10}});
        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\nContent-Length: 0\r\n\r\n", false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has more than 3 headers");
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has a body of 11 bytes, the limit is 10");
        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n6\r\n123456\r\n5\r\n12345\r\n0\r\n\r\n",
                    false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has a body of more than 10 bytes");
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\n\r\n12345678901", false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has a body of more than 10 bytes");
        buf_adds(&text, "HTTP/1.1 200 OK\r\nA: ");
        for (int i = 0; i < 200; i++)
                buf_addc(&text, 'x');
        answer_with(r, (struct http_request){0}, buf_cstr(&text), false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has a head of more than 200 bytes");
        /* interim answers do not begin anew */
        buf_clear(&text);
        for (int i = 0; i < 10; i++)
                buf_adds(&text, "HTTP/1.1 100 Continue\r\n\r\n");
        answer_with(r, (struct http_request){0}, buf_cstr(&text), false);
        assert_error(r, E_TOO_LARGE, "answer of ", " has a head of more than 200 bytes");
        buf_clear(&text);
        buf_adds(&text, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n1234567890");
        answer_with(r, (struct http_request){0}, buf_cstr(&text), false);
        assert_ok(r, 200, "1234567890");
}

static void test_endless_trailers_are_cut(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct http_client_config){.limits = {.head = 100}});
        start(r, (struct http_request){.stream = true});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        net_until(&r->net, r->heads == 1);
        for (int i = 0; i < 30 && !r->ends; i++) {
                net_say(r->fd, i ? "X: y\r\n" : "0\r\n");
                net_turn(&r->net);
                net_turn(&r->net);
        }
        until_end(r);
        assert_error(r, E_TOO_LARGE, "answer of ", " has endless chunk extensions or trailers");
}

static void test_bytes_after_the_answer_cost_the_connection(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: "
                    "1\r\n\r\nb",
                    false);
        assert_ok(r, 200, "a");
        net_until(&r->net, !net_hear(r->fd, &r->got));
        /* the same, later */
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
        net_until(&r->net, !net_hear(r->fd, &r->got));
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc", false);
        assert_ok(r, 200, "c");
        assert_false(r->reused);
}

/* ---- connections that end too early */

static void test_early_ends(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "", true);
        assert_error(r, E_LOST, "connection to ", " was closed before an answer came");
        assert_false(r->answered);
        assert_true(r->sent);
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nConte", true);
        assert_error(r, E_LOST, "connection to ", " was closed within the head of the answer");
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", true);
        assert_error(r, E_LOST, "connection to ", " was closed within the body of the answer");
        assert_int_equal(r->status, 200);
        answer_with(r, (struct http_request){0},
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", true);
        assert_error(r, E_LOST, "connection to ", " was closed within the body of the answer");
        answer_with(r, (struct http_request){0}, "HTTP/1.1 100 Continue\r\n\r\n", true);
        assert_error(r, E_LOST, "connection to ", " was closed within the head of the answer");
}

static void test_a_reset(void **state)
{
        struct rig *r = *state;
        struct linger now = {.l_onoff = 1};

        start(r, (struct http_request){0});
        hear_request(r);
        setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        fd_close(TAKE_FD(r->fd));
        until_end(r);
        assert_error(r, E_LOST, "connection to ", " broke before an answer came");
}

static void test_a_kept_connection_closed_before_the_answer_says_so(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        forget_result(r);
        start(r, (struct http_request){0});
        hear_another(r);
        fd_close(TAKE_FD(r->fd));
        until_end(r);
        assert_error(r, E_LOST, "connection to ", " was closed before an answer came");
        assert_true(r->reused);
}

static void test_a_kept_connection_that_was_closed_is_not_used(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", true);
        for (int i = 0; i < 5; i++)
                net_turn(&r->net);
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb", false);
        assert_ok(r, 200, "b");
        assert_false(r->reused);
}

static void test_nobody_listens(void **state)
{
        struct rig *r = *state;
        char text[128];

        fd_close(TAKE_FD(r->net.listen_fd));
        start(r, (struct http_request){0});
        assert_int_equal(r->ends, 0); /* never at once */
        until_end(r);
        snprintf(text, sizeof(text), "cannot connect to 127.0.0.1 port %u: Connection refused", r->net.port);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, E_CONNECT);
        assert_false(r->sent);
}

static void test_names_are_looked_up(void **state)
{
        struct rig *r = *state;
        char url[64];

        snprintf(url, sizeof(url), "http://localhost:%u", r->net.port);
        new_client(r, (struct http_client_config){.url = url});
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        assert_ok(r, 200, "a");
        new_client(r, (struct http_client_config){.url = "http://nonexistent.invalid"});
        forget_result(r);
        start(r, (struct http_request){0});
        until_end(r);
        assert_int_equal(r->err.code, E_CONNECT);
        assert_memory_equal(r->err.text, "cannot resolve 'nonexistent.invalid': ", 38);
}

static void test_a_client_freed_during_a_look_up(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct http_client_config){.url = "http://nonexistent.invalid"});
        start(r, (struct http_request){0});
        net_turn(&r->net);
        free_client(r);
        net_turn(&r->net);
        assert_int_equal(r->ends, 0);
}

/* ---- time */

static void test_silence_is_a_timeout(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){0});
        hear_request(r);
        net_pass(&r->net, 59 * USEC_PER_SEC);
        assert_int_equal(r->ends, 0);
        net_pass(&r->net, 2 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "no answer from ", " in time");
        assert_true(r->sent);
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_a_trickle_does_not_stop_the_clock(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){.timeout = 5 * USEC_PER_SEC});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
        for (int i = 0; i < 5; i++) {
                net_say(r->fd, "x");
                net_pass(&r->net, USEC_PER_SEC);
        }
        assert_error(r, E_TIMEOUT, "no answer from ", " in time");
}

static void test_a_call_that_waits_too_long_was_not_sent(void **state)
{
        struct rig *r = *state;

        new_client(r, (struct http_client_config){.max_connections = 1});
        start(r, (struct http_request){.timeout = 100 * USEC_PER_SEC});
        hear_request(r);
        start(r, (struct http_request){.timeout = USEC_PER_SEC});
        net_turn(&r->net);
        net_pass(&r->net, 2 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "request to ", " timed out before it was sent");
        assert_false(r->sent);
}

static void test_a_handshake_that_never_ends(void **state)
{
        struct rig *r = *state;
        _cleanup_(tls_unref) struct tls *tls = tls_new(&(struct tls_config){.insecure = true}, NULL);
        char url[64];

        snprintf(url, sizeof(url), "https://127.0.0.1:%u", r->net.port);
        new_client(r,
                   (struct http_client_config){.url = url, .tls = tls, .connect_timeout = 3 * USEC_PER_SEC});
        start(r, (struct http_request){0});
        r->fd = net_accept(&r->net);
        net_until(&r->net, (net_hear(r->fd, &r->got), r->got.n > 0));
        net_pass(&r->net, 4 * USEC_PER_SEC);
        assert_error(r, E_CONNECT, "cannot connect to ", ": no end of the TLS handshake within 3 s");
        assert_false(r->sent);
}

/* ---- streams */

static void test_a_stream_hands_on_what_comes(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){.stream = true});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nX-Test: s\r\nTransfer-Encoding: chunked\r\n\r\n");
        net_until(&r->net, r->heads == 1);
        assert_int_equal(r->status, 200);
        assert_string_equal(r->header, "s");
        net_say(r->fd, "4\r\none\n\r\n");
        net_until(&r->net, r->body.n == 4);
        net_pass(&r->net, 3600 * USEC_PER_SEC);
        assert_int_equal(r->ends, 0);
        net_say(r->fd, "4\r\ntwo\n\r\n0\r\n\r\n");
        until_end(r);
        assert_ok(r, 200, "one\ntwo\n");
        /* its connection is its own */
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_streams_do_not_count_as_connections(void **state)
{
        struct rig *r = *state;
        int streams[3];

        new_client(r, (struct http_client_config){.max_connections = 1});
        for (int i = 0; i < 3; i++) {
                start(r, (struct http_request){.stream = true});
                streams[i] = net_accept(&r->net);
        }
        start(r, (struct http_request){0});
        hear_request(r);
        for (int i = 0; i < 3; i++)
                fd_close(streams[i]);
}

static void test_a_stream_that_falls_silent(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){.stream = true, .idle_timeout = 10 * USEC_PER_SEC});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        net_until(&r->net, r->heads == 1);
        net_pass(&r->net, 6 * USEC_PER_SEC);
        net_say(r->fd, "1\r\na\r\n");
        net_until(&r->net, r->body.n == 1);
        net_pass(&r->net, 6 * USEC_PER_SEC);
        assert_int_equal(r->ends, 0);
        net_pass(&r->net, 5 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "stream from ", " was silent for 10 s");
        assert_int_equal(r->status, 200);
}

static void test_a_stream_whose_head_does_not_come(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){.stream = true, .timeout = 5 * USEC_PER_SEC});
        hear_request(r);
        net_pass(&r->net, 6 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "no answer from ", " in time");
}

static void test_a_stream_that_breaks(void **state)
{
        struct rig *r = *state;

        answer_with(r, (struct http_request){.stream = true},
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true);
        assert_error(r, E_LOST, "connection to ", " was closed within the body of the answer");
        assert_str(buf_str(&r->body), "a");
        assert_true(r->answered);
}

static void test_pause_and_resume(void **state)
{
        struct rig *r = *state;

        r->pause_after = 1;
        start(r, (struct http_request){.stream = true, .idle_timeout = 10 * USEC_PER_SEC});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n");
        net_until(&r->net, r->body.n == 1);
        net_say(r->fd, "1\r\nc\r\n0\r\n\r\n");
        fd_close(TAKE_FD(r->fd));
        for (int i = 0; i < 10; i++)
                net_turn(&r->net);
        /* a pause is not the peer's silence */
        net_pass(&r->net, 60 * USEC_PER_SEC);
        assert_str(buf_str(&r->body), "a");
        assert_int_equal(r->ends, 0);
        r->pause_after = 2;
        http_call_pause(r->call, false);
        http_call_pause(r->call, true);
        net_turn(&r->net);
        assert_str(buf_str(&r->body), "a");
        http_call_pause(r->call, false);
        net_until(&r->net, r->body.n == 2);
        for (int i = 0; i < 10; i++)
                net_turn(&r->net);
        assert_str(buf_str(&r->body), "ab");
        http_call_pause(r->call, false);
        until_end(r);
        assert_ok(r, 200, "abc");
}

static void test_a_pause_at_the_very_end_of_a_body(void **state)
{
        struct rig *r = *state;

        r->pause_after = 1;
        start(r, (struct http_request){.stream = true});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        net_until(&r->net, r->body.n == 1);
        assert_int_equal(r->ends, 0);
        http_call_pause(r->call, false);
        until_end(r);
        assert_ok(r, 200, "a");
}

static void test_a_paused_stream_whose_peer_resets(void **state)
{
        struct rig *r = *state;
        struct linger now = {.l_onoff = 1};

        r->pause_after = 1;
        start(r, (struct http_request){.stream = true});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        net_until(&r->net, r->body.n == 1);
        setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        fd_close(TAKE_FD(r->fd));
        for (int i = 0; i < 10; i++)
                net_turn(&r->net);
        http_call_pause(r->call, false);
        until_end(r);
        assert_error(r, E_LOST, "connection to ", " broke within the body of the answer");
}

/* ---- what callbacks may do */

static void test_cancelling_a_call(void **state)
{
        struct rig *r = *state;

        start(r, (struct http_request){0});
        http_call_cancel(TAKE_PTR(r->call)); /* before anything happened */
        net_turn(&r->net);
        start(r, (struct http_request){0});
        hear_request(r);
        http_call_cancel(TAKE_PTR(r->call));
        net_until(&r->net, !net_hear(r->fd, &r->got));
        assert_int_equal(r->ends, 0);
}

static void play_stream(struct rig *r)
{
        start(r, (struct http_request){.stream = true});
        hear_request(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_cancelling_inside_callbacks(void **state)
{
        struct rig *r = *state;

        r->trick = CANCEL_IN_HEAD;
        play_stream(r);
        assert_int_equal(r->heads, 1);
        assert_int_equal(r->body.n, 0);
        r->trick = CANCEL_IN_DATA;
        play_stream(r);
        assert_str(buf_str(&r->body), "a");
        assert_int_equal(r->ends, 0);
}

static void test_freeing_the_client_inside_on_data(void **state)
{
        struct rig *r = *state;

        int other;

        start(r, (struct http_request){0}); /* one more, which ends without a word */
        r->trick = FREE_IN_DATA;
        other = net_accept(&r->net);
        play_stream(r);
        assert_str(buf_str(&r->body), "a");
        assert_int_equal(r->ends, 0);
        net_until(&r->net, !net_hear(other, &r->got));
        fd_close(other);
}

static void test_freeing_the_client_inside_on_end(void **state)
{
        struct rig *r = *state;

        r->trick = FREE_IN_END;
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        assert_ok(r, 200, "a");
        net_until(&r->net, !net_hear(r->fd, &r->got));
}

static void test_starting_a_call_inside_on_end_uses_the_same_connection(void **state)
{
        struct rig *r = *state;

        r->trick = START_IN_END;
        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        hear_another(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
        net_until(&r->net, r->ends == 2);
        assert_true(r->reused);
        assert_str(buf_str(&r->body), "ab");
}

static void test_requests_that_would_smuggle_are_refused(void **state)
{
        struct rig *r = *state;
        struct http_header evil[] = {{STR("X"), STR("a\r\nY: b")}}, name[] = {{STR("X Y"), STR("a")}},
                           length[] = {{STR("content-length"), STR("3")}};
        const struct {
                struct http_request req;
                const char *why;
        } cases[] = {
                        {{.headers = {evil, 1}}, "value of header 'X' has control characters"},
                        {{.headers = {name, 1}}, "request has a malformed header name"},
                        {{.headers = {length, 1}}, "header 'Content-Length' is not the caller's to set"},
                        {{.target = "/a b"}, "request target is not a path of encoded characters"},
                        {{.target = "/a\r\nX: y"}, "request target is not a path of encoded characters"},
                        {{.target = "x"}, "request target is not a path of encoded characters"},
                        {{.method = "GET /"}, "request has a malformed method"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                forget_result(r);
                start(r, cases[i].req);
                assert_int_equal(r->ends, 0);
                until_end(r);
                assert_int_equal(r->err.code, E_INVALID);
                assert_string_equal(r->err.text, cases[i].why);
        }
        assert_true(net_no_connection(&r->net));
}

/* ---- proxies */

static void proxied_client(struct rig *r, const char *user)
{
        char proxy[96];

        snprintf(proxy, sizeof(proxy), "http://%s127.0.0.1:%u", user, r->net.port);
        new_client(r, (struct http_client_config){.url = "http://api.example:6443", .proxy = proxy});
        forget_result(r);
        start(r, (struct http_request){0});
        hear_request(r);
}

static void test_through_a_proxy(void **state)
{
        struct rig *r = *state;

        proxied_client(r, "me:p%40ss@");
        assert_string_equal(buf_cstr(&r->got),
                            "CONNECT api.example:6443 HTTP/1.1\r\nHost: api.example:6443\r\n"
                            "Proxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n");
        net_say(r->fd, "HTTP/1.1 200 Connection ");
        net_turn(&r->net);
        net_say(r->fd, "established\r\nX: y\r\n\r\n");
        hear_another(r);
        assert_string_equal(buf_cstr(&r->got),
                            "GET /x HTTP/1.1\r\nHost: api.example:6443\r\nUser-Agent: sonde\r\n\r\n");
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
        until_end(r);
        assert_ok(r, 200, "a");
}

static void test_proxies_that_fail(void **state)
{
        struct rig *r = *state;

        proxied_client(r, "");
        net_say(r->fd, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        until_end(r);
        assert_string_equal(r->err.text, "proxy 127.0.0.1 refused the connection to api.example:6443: "
                                         "407 Proxy Authentication Required");
        assert_int_equal(r->err.code, E_CONNECT);
        proxied_client(r, "");
        fd_close(TAKE_FD(r->fd));
        until_end(r);
        assert_string_equal(r->err.text, "proxy 127.0.0.1 closed the connection");
        proxied_client(r, "");
        net_say(r->fd, "SSH-2.0-x\r\n\r\n");
        until_end(r);
        assert_string_equal(r->err.text, "proxy 127.0.0.1 does not speak HTTP/1.1");
}

/* ---- URLs */

static void test_urls(void **state)
{
        static const struct {
                const char *text, *host, *path, *user;
                int port;
                bool tls;
        } good[] = {
                        {"http://a", "a", "", "", 80, false},
                        {"HTTPS://a.b-c:6443/", "a.b-c", "/", "", 6443, true},
                        {"https://[::1]:1/x/y?z#f", "::1", "/x/y", "", 1, true},
                        {"https://[fe80::1]", "fe80::1", "", "", 443, true},
                        {"http://u:p@h:3128", "h", "", "u:p", 3128, false},
                        {"http://h?x=/y", "h", "", "", 80, false},
        };
        static const char *const bad[] = {
                        "",
                        "h:80",
                        "ftp://h",
                        "http://",
                        "http://:80",
                        "http://h:",
                        "http://h:0",
                        "http://h:x",
                        "http://h:65536",
                        "http://[::1",
                        "http://[::1]x",
                        "http://[h]",
                        "http://a b",
                        "http://h:-1",
        };
        struct url u;
        struct err err = ERR_INIT;

        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                assert_int_equal(url_parse(str_of(good[i].text), &u, &err), 0);
                assert_str(u.host, good[i].host);
                assert_str(u.path, good[i].path);
                assert_str(u.user, good[i].user);
                assert_int_equal(u.port, good[i].port);
                assert_int_equal(u.tls, good[i].tls);
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                assert_int_equal(url_parse(str_of(bad[i]), &u, &err), -1);
                assert_int_equal(err.code, E_CONFIG);
        }
}

static void test_bad_settings_of_a_client(void **state)
{
        struct rig *r = *state;
        static const struct {
                struct http_client_config config;
                const char *why;
        } cases[] = {
                        {{.url = "nonsense"}, "server: URL must start with http:// or https://"},
                        {{.url = "https://h"}, "server: https:// without TLS settings"},
                        {{.url = "http://u@h"}, "server: a user in the URL is not supported"},
                        {{.url = "http://h", .proxy = "https://p"},
                         "proxy: https:// proxies are not supported, use http://"},
                        {{.url = "http://h", .proxy = "p"}, "proxy: URL must start with http:// or https://"},
                        {{.url = "http://h", .user_agent = "a\nb"}, "the user agent has control characters"},
        };

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                struct err err = ERR_INIT;

                assert_null(http_client_new(r->net.loop, &cases[i].config, &err));
                assert_string_equal(err.text, cases[i].why);
                assert_int_equal(err.code, E_CONFIG);
        }
}

static void test_status_texts(void **state)
{
        assert_string_equal(http_status_text(200), "OK");
        assert_string_equal(http_status_text(431), "Request Header Fields Too Large");
        assert_string_equal(http_status_text(299), "Unknown");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
                T(test_a_get_and_its_answer),
                T(test_a_post_with_headers_and_body_behind_a_path),
                T(test_connections_are_kept_and_used_again),
                T(test_a_connection_unused_for_long_is_closed),
                T(test_calls_wait_for_a_connection_in_order),
                T(test_a_waiting_call_gets_a_new_connection_when_one_breaks),
                T(test_connection_close_is_respected),
                T(test_answers_without_a_body),
                T(test_a_body_that_ends_with_the_connection),
                T(test_interim_answers_are_skipped),
                T(test_chunks_with_extensions_and_trailers),
                T(test_an_answer_that_comes_byte_by_byte),
                T(test_an_answer_before_the_request_was_sent),
                T(test_an_answer_followed_by_a_reset_while_sending),
                T(test_a_large_body_arrives_whole),
                T(test_garbage_and_bad_framing_are_refused),
                T(test_a_nul_byte_in_the_head),
                T(test_limits_of_head_headers_and_body),
                T(test_endless_trailers_are_cut),
                T(test_bytes_after_the_answer_cost_the_connection),
                T(test_early_ends),
                T(test_a_reset),
                T(test_a_kept_connection_closed_before_the_answer_says_so),
                T(test_a_kept_connection_that_was_closed_is_not_used),
                T(test_nobody_listens),
                T(test_names_are_looked_up),
                T(test_a_client_freed_during_a_look_up),
                T(test_silence_is_a_timeout),
                T(test_a_trickle_does_not_stop_the_clock),
                T(test_a_call_that_waits_too_long_was_not_sent),
                T(test_a_handshake_that_never_ends),
                T(test_a_stream_hands_on_what_comes),
                T(test_streams_do_not_count_as_connections),
                T(test_a_stream_that_falls_silent),
                T(test_a_stream_whose_head_does_not_come),
                T(test_a_stream_that_breaks),
                T(test_pause_and_resume),
                T(test_a_pause_at_the_very_end_of_a_body),
                T(test_a_paused_stream_whose_peer_resets),
                T(test_cancelling_a_call),
                T(test_cancelling_inside_callbacks),
                T(test_freeing_the_client_inside_on_data),
                T(test_freeing_the_client_inside_on_end),
                T(test_starting_a_call_inside_on_end_uses_the_same_connection),
                T(test_requests_that_would_smuggle_are_refused),
                T(test_through_a_proxy),
                T(test_proxies_that_fail),
                T(test_urls),
                T(test_bad_settings_of_a_client),
                T(test_status_texts),
};

UNIT_MAIN(tests)
