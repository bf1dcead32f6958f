/* The HTTP server: streams, its own life, TLS, and our own client. */
#include "unit/dir.h"
#include "unit/http_server_rig.h"

#include <malloc.h>

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

static void test_the_backlog_begins_behind_the_first_piece(void **state)
{
        struct rig *r = *state;
        static char block[64 * 1024];
        size_t n = 16 * 1024 * 1024, written = 0;
        char *big = xcalloc(1, n);

        new_server(r, (struct http_server_config){.backlog = 256 * 1024});
        r->mode = STREAM;
        say(r, "GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, r->ex);
        http_stream_write(r->ex, str_n(big, n));
        free(big);
        turns(r); /* most of it waits */
        for (int i = 0; i < 3; i++) {
                http_stream_write(r->ex, str_n(block, sizeof(block)));
                turns(r);
        }
        assert_int_equal(r->closed, 0);
        while (!r->closed && written++ < 100) {
                http_stream_write(r->ex, str_n(block, sizeof(block)));
                turns(r);
        }
        assert_int_equal(written, 2); /* three waited already: the fourth is the last that may */
}

static void test_a_shared_text_is_sent_to_many(void **state)
{
        struct rig *r = *state;
        size_t n = 16 * 1024 * 1024;
        struct buf big = BUF_INIT(SIZE_MAX);
        struct http_text *text;
        struct mallinfo2 before, after;
        int fds[8];

        buf_reserve(&big, n);
        while (big.n < n)
                buf_adds(&big, "0123456789abcde\n");
        text = http_text_new(&big);
        r->mode = LATER;
        before = mallinfo2();
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) { /* nobody reads */
                say(r, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
                net_until(&r->net, r->ex);
                http_reply_shared(TAKE_PTR(r->ex), 200, &(struct http_headers){0}, text);
                turns(r);
                fds[i] = TAKE_FD(r->fd);
        }
        after = mallinfo2();
        assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + n / 4);
        http_text_unref(text); /* who still sends it has it */
        r->fd = fds[0];
        net_say(r->fd, "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        net_until(&r->net, net_hear(r->fd, &r->got) && r->ex);
        http_reply(TAKE_PTR(r->ex), 200, NULL, STR("the next"));
        until_heard(r, "the next");
        assert_true(r->got.n > n && strstr(buf_cstr(&r->got), "Content-Length: 16777216\r\n\r\n0123"));
        assert_non_null(strstr(buf_cstr(&r->got) + n, "abcde\nHTTP/1.1 200"));
        for (size_t i = 1; i < ARRAY_LEN(fds); i++)
                fd_close(fds[i]);
        turns(r);
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

/* ---- answers that the kernel does not take at once */

enum { BIG = 24 * 1024 * 1024 };

static void answer_big(struct rig *r)
{
        char *big = xmalloc(BIG);

        for (size_t i = 0; i < BIG; i++)
                big[i] = (char)('a' + i % 23);
        net_until(&r->net, r->ex);
        http_reply(TAKE_PTR(r->ex), 200, NULL, str_n(big, BIG));
        free(big);
}

static void assert_big(struct buf *b)
{
        const char *at = memmem(b->p, b->n, "\r\n\r\n", 4);

        assert_non_null(at);
        assert_int_equal((size_t)(b->p + b->n - at) - 4, BIG);
        for (size_t i = 0; i < BIG; i++)
                if (at[4 + i] != (char)('a' + i % 23))
                        fail_msg("byte %zu differs", i);
}

static void test_a_large_answer_and_then_another(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /big HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        answer_big(r);
        turns(r);
        assert_int_equal(r->requests, 1); /* the next one waits until this answer is taken */
        r->mode = ECHO;
        net_until(&r->net, (net_hear(r->fd, &r->got), r->requests == 2));
        until_heard(r, "\r\n\r\n/next");
}

static void test_a_large_answer_to_a_client_that_only_listens(void **state)
{
        struct rig *r = *state;

        r->mode = LATER;
        say(r, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        answer_big(r);
        turns(r);
        shutdown(r->fd, SHUT_WR);
        turns(r);
        hear_all(r);
        assert_big(&r->got);
}

static void test_a_reset_while_a_large_answer_is_sent(void **state)
{
        struct rig *r = *state;
        struct linger now = {.l_onoff = 1};

        new_server(r, (struct http_server_config){.max_connections = 1});
        r->mode = LATER;
        say(r, "GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
        answer_big(r);
        turns(r);
        setsockopt(r->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        hang_up(r);
        turns(r);
        /* its place is free again */
        r->mode = ECHO;
        say(r, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/x");
        assert_memory_equal(r->got.p, "HTTP/1.1 200 ", 13);
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
        char dir[UNIT_DIR_LEN], where[UNIT_DIR_LEN + 8];
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        struct err err = ERR_INIT;
        struct stat st;

        unit_dir(dir);
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
                assert_null(
                        http_server_new(r->net.loop, &(struct http_server_config){.listen = bad[i]}, &err));
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

static struct tls *server_tls(const struct cert *c)
{
        struct tls *tls = tls_new(
                &(struct tls_config){.server = true, .cert = str_of(c->cert), .key = str_of(c->key)}, NULL);

        assert_non_null(tls);
        return tls;
}

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
        known = tls_client(r, (struct tls_config){
                                      .ca = str_of(ca.cert), .cert = str_of(me.cert), .key = str_of(me.key)});
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

static void test_a_large_answer_and_a_large_request_through_tls(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "self", .san = "IP:127.0.0.1"});
        _cleanup_(tls_unref) struct tls *tls = server_tls(&c);
        struct http_client *client;
        struct caller call = {.body = BUF_INIT(SIZE_MAX)};
        char *big = xcalloc(1, BIG);

        new_server(r, (struct http_server_config){.tls = tls, .limits = {.body = BIG}});
        client = tls_client(r, (struct tls_config){.ca = str_of(c.cert)});
        r->mode = LATER;
        http_start(
                client,
                &(struct http_request){.method = "POST", .target = "/w", .stream = true, .body = {big, BIG}},
                &call_handlers, &call);
        free(big);
        net_until(&r->net, r->ex);
        assert_int_equal(http_body(r->ex).n, BIG);
        answer_big(r);
        net_until(&r->net, call.ends == 1);
        assert_string_equal(call.err.text, "");
        assert_int_equal(call.body.n, BIG);
        assert_int_equal(call.body.p[BIG - 1], 'a' + (BIG - 1) % 23);
        http_client_free(client);
        buf_done(&call.body);
}

static void test_a_rotated_certificate_is_used_for_new_connections(void **state)
{
        static const struct http_request get = {.method = "GET", .target = "/r"};
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert old = cert_make((struct cert_request){.san = "IP:127.0.0.1"}),
                                         new = cert_make((struct cert_request){.san = "IP:127.0.0.1"});
        _cleanup_(tls_unref) struct tls *first = server_tls(&old), *second = server_tls(&new);
        struct caller call = {.body = BUF_INIT(SIZE_MAX)};
        struct http_client *before, *after;

        new_server(r, (struct http_server_config){.tls = first});
        before = tls_client(r, (struct tls_config){.ca = str_of(old.cert)});
        after = tls_client(r, (struct tls_config){.ca = str_of(new.cert)});
        http_start(before, &get, &call_handlers, &call);
        net_until(&r->net, call.ends == 1);
        assert_string_equal(call.err.text, "");
        http_server_set_tls(r->server, second);
        http_start(after, &get, &call_handlers, &call);
        net_until(&r->net, call.ends == 2);
        assert_string_equal(call.err.text, "");
        http_start(before, &get, &call_handlers, &call); /* on the connection that it has */
        net_until(&r->net, call.ends == 3);
        assert_string_equal(call.err.text, "");
        assert_str(buf_str(&call.body), "/r/r/r");
        http_client_free(before);
        http_client_free(after);
        buf_done(&call.body);
}

static void test_plain_http_on_a_tls_port(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make((struct cert_request){.cn = "self"});
        _cleanup_(tls_unref) struct tls *tls = server_tls(&c);

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

static void test_plain_http_beside_tls(void **state)
{
        struct rig *r = *state;
        _cleanup_(ca_done) struct ca own = {0};
        _cleanup_(tls_unref) struct tls *tls = NULL;
        const char *const names[] = {"sonde-api", "*.example.com", "10.0.0.7"};
        const char *const known[] = {NULL, "x.example.com", "10.0.0.7"};
        struct http_client *client;
        struct caller call = {.body = BUF_INIT(SIZE_MAX)};

        assert_int_equal(ca_make_own("sonde", names, ARRAY_LEN(names), 2, &own, NULL), 0);
        assert_int_equal(strlen(own.fingerprint), FINGERPRINT_MAX - 1);
        tls = tls_new(&(struct tls_config){.server = true, .cert = str_of(own.cert), .key = str_of(own.key)},
                      NULL);
        new_server(r, (struct http_server_config){.tls = tls, .or_plain = true});
        /* the first byte tells, however late it comes */
        r->fd = net_connect(http_server_port(r->server));
        turns(r);
        say(r, "G");
        turns(r);
        say(r, "ET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n");
        until_heard(r, "/b");
        assert_int_equal(r->plain, 2);
        for (size_t i = 0; i < ARRAY_LEN(known); i++) {
                client = tls_client(r, (struct tls_config){.ca = str_of(own.cert), .server_name = known[i]});
                http_start(client, &(struct http_request){.method = "GET", .target = "/c"}, &call_handlers,
                           &call);
                net_until(&r->net, call.ends == (int)i + 1);
                assert_string_equal(call.err.text, "");
                http_client_free(client);
        }
        assert_str(buf_str(&call.body), "/c/c/c");
        assert_int_equal(r->requests, 5);
        assert_int_equal(r->plain, 2);
        buf_done(&call.body);
        hang_up(r);
        /* one that says nothing, or goes without a word, is not kept */
        r->fd = net_connect(http_server_port(r->server));
        turns(r);
        net_pass(&r->net, 11 * USEC_PER_SEC);
        hear_all(r);
}

static void test_a_certificate_for_no_name(void **state)
{
        struct ca own;
        struct err err = ERR_INIT;
        const char *const names[] = {"good", "bad,IP:10.0.0.1"};

        assert_int_equal(ca_make_own("sonde", names, 2, 2, &own, &err), -1);
        assert_string_equal(err.text, "'bad,IP:10.0.0.1' is no name of a host that a certificate can have");
}

static void test_a_stream_to_our_own_client(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert c = cert_make(
                (struct cert_request){.cn = "self", .san = "IP:127.0.0.1"});
        _cleanup_(tls_unref) struct tls *tls = server_tls(&c);
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
        T(test_a_stream_of_many_chunks),
        T(test_a_stream_whose_reader_goes),
        T(test_a_stream_that_is_not_drained_is_cut),
        T(test_one_large_write_is_not_a_slow_reader),
        T(test_the_backlog_begins_behind_the_first_piece),
        T(test_a_shared_text_is_sent_to_many),
        T(test_a_reader_that_is_stuck_times_out),
        T(test_a_stream_cut_in_the_middle),
        T(test_a_large_answer_and_then_another),
        T(test_a_large_answer_to_a_client_that_only_listens),
        T(test_a_reset_while_a_large_answer_is_sent),
        T(test_draining),
        T(test_freeing_the_server_inside_a_handler),
        T(test_freeing_the_server_with_open_exchanges),
        T(test_a_unix_socket),
        T(test_where_to_listen),
        T(test_targets_and_parameters),
        T(test_tls_with_and_without_client_certificate),
        T(test_a_large_answer_and_a_large_request_through_tls),
        T(test_a_rotated_certificate_is_used_for_new_connections),
        T(test_plain_http_on_a_tls_port),
        T(test_plain_http_beside_tls),
        T(test_a_certificate_for_no_name),
        T(test_a_stream_to_our_own_client),
};

UNIT_MAIN(tests)
