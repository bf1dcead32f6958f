/* The HTTP client: time, streams, what callbacks may do, proxies, settings. */
#include "unit/http_rig.h"

#include "net/dial.h"

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

/* ---- the last moment before a request leaves */

static bool may_not(void *arg)
{
        ++*(int *)arg;
        return false;
}

static void test_a_request_that_may_not_be_sent_any_more(void **state)
{
        struct rig *r = *state;
        int asked = 0;
        struct http_request req = {.may_send = may_not, .may_send_arg = &asked};

        answer_with(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
        forget_result(r);
        start(r, req);
        assert_int_equal(asked, 0);
        until_end(r);
        assert_int_equal(asked, 1);
        assert_int_equal(r->err.code, E_CANCELED);
        assert_false(r->sent);
        assert_true(net_hear(r->fd, &r->got)); /* the connection stays */
        forget_result(r);
        start(r, (struct http_request){.target = "/next"});
        hear_another(r);
        assert_memory_equal(r->got.p, "GET /next ", 10);
        /* with a connection of its own */
        start(r, req);
        http_call_cancel(TAKE_PTR(r->call));
        req.stream = true;
        start(r, req);
        net_until(&r->net, asked == 2);
        until_end(r);
        assert_int_equal(r->err.code, E_CANCELED);
}

static void test_a_reset_while_a_large_request_is_sent(void **state)
{
        struct rig *r = *state;
        size_t n = 16 * 1024 * 1024;
        char *big = xcalloc(1, n);
        struct linger now = {.l_onoff = 1};

        start(r, (struct http_request){.method = "POST", .body = {big, n}});
        free(big);
        hear_request(r);
        setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        fd_close(TAKE_FD(r->fd));
        until_end(r);
        assert_error(r, E_LOST, "connection to ", " broke before an answer came");
        assert_true(r->sent);
}

/* ---- names with more than one address */

struct dialed {
        int ends, fd;
        struct err err;
};

static void on_dialed(void *arg, int fd, const struct err *err)
{
        struct dialed *d = arg;

        d->ends++;
        d->fd = fd;
        if (err)
                d->err = *err;
}

/* Dials PORT at each of ADDRESSES (127.0.0.x) until one answers. */
static struct dial *dial_these(struct rig *r, const char *const *addresses, size_t n, uint16_t port,
                               struct dialed *ret)
{
        struct sockaddr_in sa[4] = {0};
        struct addrinfo list[4] = {0};

        *ret = (struct dialed){.fd = -1};
        for (size_t i = 0; i < n; i++) {
                sa[i].sin_family = AF_INET;
                assert_int_equal(inet_pton(AF_INET, addresses[i], &sa[i].sin_addr), 1);
                list[i] = (struct addrinfo){.ai_family = AF_INET,
                                            .ai_addr = (struct sockaddr *)&sa[i],
                                            .ai_addrlen = sizeof(sa[i]),
                                            .ai_next = i + 1 < n ? &list[i + 1] : NULL};
        }
        return dial_start_list(r->net.loop, "name", list, port, 30 * USEC_PER_SEC, on_dialed, ret);
}

static void test_the_next_address_is_tried_when_one_refuses(void **state)
{
        struct rig *r = *state;
        struct dialed d;
        char text[128];

        dial_these(r, (const char *[]){"127.0.0.2", "127.0.0.3", "127.0.0.1"}, 3, r->net.port, &d);
        net_until(&r->net, d.ends == 1);
        assert_true(d.fd >= 0);
        fd_close(d.fd);
        dial_these(r, (const char *[]){"127.0.0.2", "127.0.0.3"}, 2, r->net.port, &d);
        net_until(&r->net, d.ends == 1);
        snprintf(text, sizeof(text), "cannot connect to name port %u: Connection refused", r->net.port);
        assert_string_equal(d.err.text, text);
        assert_int_equal(d.err.code, E_CONNECT);
}

static void test_the_next_address_is_tried_when_one_is_silent(void **state)
{
        struct rig *r = *state;
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(r->net.port)};
        int deaf = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), waiting[4];
        struct dialed d;
        struct dial *dial;

        /* a listener whose queue is full lets new connections wait for ever */
        inet_pton(AF_INET, "127.0.0.2", &sa.sin_addr);
        assert_int_equal(bind(deaf, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(listen(deaf, 0), 0);
        for (size_t i = 0; i < ARRAY_LEN(waiting); i++) {
                waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                (void)connect(waiting[i], (struct sockaddr *)&sa, sizeof(sa));
        }
        dial = dial_these(r, (const char *[]){"127.0.0.2", "127.0.0.1"}, 2, r->net.port, &d);
        for (int i = 0; i < 20; i++)
                net_turn(&r->net);
        assert_int_equal(d.ends, 0);
        net_pass(&r->net, 250 * USEC_PER_MS);
        net_until(&r->net, d.ends == 1);
        assert_true(d.fd >= 0);
        fd_close(d.fd);
        dial = dial_these(r, (const char *[]){"127.0.0.2", "127.0.0.1"}, 2, r->net.port, &d);
        net_turn(&r->net);
        dial_cancel(dial);
        net_pass(&r->net, 250 * USEC_PER_MS);
        assert_int_equal(d.ends, 0);
        for (size_t i = 0; i < ARRAY_LEN(waiting); i++)
                fd_close(waiting[i]);
        fd_close(deaf);
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
                "",           "h:80",        "ftp://h",        "http://",     "http://:80",    "http://h:",
                "http://h:0", "http://h:x",  "http://h:65536", "http://[::1", "http://[::1]x", "http://[h]",
                "http://a b", "http://h:-1",
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
        T(test_a_request_that_may_not_be_sent_any_more),
        T(test_a_reset_while_a_large_request_is_sent),
        T(test_the_next_address_is_tried_when_one_refuses),
        T(test_the_next_address_is_tried_when_one_is_silent),
        T(test_through_a_proxy),
        T(test_proxies_that_fail),
        T(test_urls),
        T(test_bad_settings_of_a_client),
        T(test_status_texts),
};

UNIT_MAIN(tests)
