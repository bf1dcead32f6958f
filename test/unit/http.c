/* The HTTP client against a server that a test plays by hand: proper, slow, confused and hostile. */
#include "unit/http_rig.h"

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
                answer_again(r, (struct http_request){0},
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n");
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
        answer_again(r, (struct http_request){0}, "HTTP/1.1 204 No Content\r\n\r\n");
        assert_ok(r, 204, "");
        answer_again(r, (struct http_request){0}, "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        assert_ok(r, 304, "");
        assert_true(r->reused);
        answer_again(r, (struct http_request){.method = "HEAD"},
                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
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
        size_t n = (size_t)64 << 20; /* more than the kernel's buffers of both sides take */
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

static const struct {
        const char *text, *why;
} bad_answers[] = {
        {"garbage\r\n\r\n", "Expected HTTP/"},
        {"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "a version other than HTTP/1.0 and HTTP/1.1"},
        {"HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n", "a status outside 100 to 599"},
        {"HTTP/1.1 1000 High\r\nContent-Length: 0\r\n\r\n", "Response overflow"},
        {"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
         "a switch to another protocol"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "Duplicate Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc", "Invalid character in Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", "Invalid character in Content-Length"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc", "Content-Length overflow"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: "
         "chunked\r\n\r\n0\r\n\r\n",
         "Content-Length can't be present with Transfer-Encoding"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: "
         "2\r\n\r\n0\r\n\r\n",
         "Content-Length can't be present with Transfer-Encoding"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", "a transfer coding other than chunked"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
         "a transfer coding other than chunked"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
         "chunked\r\n\r\n0\r\n\r\n",
         "more than one header that gives the length of the body"},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "a transfer coding in HTTP/1.0"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "Invalid character in chunk size"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "Chunk size overflow"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "Invalid character in chunk size"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nab", "Invalid character in chunk size"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "Expected CRLF after chunk"},
        {"HTTP/1.1 200 OK\r\nX-Test: a\r\n b\r\n\r\n", "a folded header"},
        {"HTTP/1.1 200 OK\nContent-Length: 0\n\n", "a line feed without carriage return"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", "a line feed without carriage return"},
        {"HTTP/1.1 200 OK\r\nX-Test: a\rb\r\n\r\n", "a carriage return without line feed"},
        {"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n", "Invalid header field char"},
        {"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 0\r\n\r\n", "a header without a name"},
        {"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "Invalid header token"},
};

static void test_garbage_and_bad_framing_are_refused(void **state)
{
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(bad_answers); i++) {
                char after[256];

                answer_with(r, (struct http_request){0}, bad_answers[i].text, false);
                snprintf(after, sizeof(after), " is not proper HTTP/1.1: %s", bad_answers[i].why);
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
};

UNIT_MAIN(tests)
