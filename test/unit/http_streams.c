/* The HTTP client: streams on the pool's connections, connections made ahead of need, and when bytes came and went. */
#include <netdb.h>

#include "unit/certs.h"
#include "unit/http_rig.h"

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static const struct http_request pooled = {.stream = true, .pooled = true};

/* ---- the connection of a stream */

static void test_a_complete_stream_leaves_its_connection_to_the_next(void **state)
{
        struct rig *r = *state;

        answer_with(r, pooled, CHUNKED "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", false);
        assert_ok(r, 200, "abc");
        assert_int_equal(r->heads, 1);
        assert_false(r->reused);
        assert_int_equal(http_client_idle(r->client), 1);
        answer_again(r, pooled, CHUNKED "1\r\nd\r\n0\r\n\r\n");
        assert_ok(r, 200, "d");
        assert_true(r->reused);
        answer_again(r, pooled, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nefg");
        assert_ok(r, 200, "efg");
        assert_true(r->reused);
        /* whatever the next call is */
        answer_again(r, (struct http_request){0}, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nh");
        assert_ok(r, 200, "h");
        answer_again(r, pooled, CHUNKED "1\r\ni\r\n0\r\n\r\n");
        assert_ok(r, 200, "i");
        assert_true(net_no_connection(&r->net));
        assert_int_equal(http_client_idle(r->client), 1);
}

static void test_a_refusal_is_an_answer_like_any(void **state)
{
        struct rig *r = *state;

        answer_with(r, pooled, "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\n\r\nlater", false);
        assert_ok(r, 429, "later");
        answer_again(r, pooled, CHUNKED "0\r\n\r\n");
        assert_ok(r, 200, "");
        assert_true(r->reused);
}

static void test_an_odd_end_costs_the_connection(void **state)
{
        static const struct {
                const char *answer;
                bool close;
                enum err_code code;
        } cases[] = {
                {CHUNKED "1\r\na\r\n", true, E_LOST},
                {CHUNKED "1\r\na\r\nx", false, E_PROTOCOL},
                {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na", true, E_LOST},
                {"HTTP/1.1 200 OK\r\n\r\na", true, E_OK}, /* its end is the connection's */
                {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na", false, E_OK},
                {CHUNKED "1\r\na\r\n0\r\n\r\nmore", false, E_OK},
        };
        struct rig *r = *state;

        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                answer_with(r, pooled, cases[i].answer, cases[i].close);
                assert_int_equal(r->err.code, cases[i].code);
                assert_int_equal(r->ends, 1);
                assert_str(buf_str(&r->body), "a");
                assert_int_equal(http_client_idle(r->client), 0);
                if (r->fd >= 0)
                        net_until(&r->net, !net_hear(r->fd, &r->got));
        }
}

static void test_silence_before_and_within_the_answer(void **state)
{
        struct rig *r = *state;
        struct http_request req = pooled;

        req.timeout = 5 * USEC_PER_SEC;
        req.idle_timeout = 10 * USEC_PER_SEC;
        start(r, req);
        hear_request(r);
        net_pass(&r->net, 6 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "no answer from ", " in time");
        forget_result(r);
        start(r, req);
        hear_request(r);
        net_say(r->fd, CHUNKED);
        net_until(&r->net, r->heads == 1);
        net_pass(&r->net, 9 * USEC_PER_SEC);
        net_say(r->fd, "1\r\na\r\n");
        net_until(&r->net, r->body.n == 1);
        net_pass(&r->net, 9 * USEC_PER_SEC);
        assert_int_equal(r->ends, 0);
        net_pass(&r->net, 2 * USEC_PER_SEC);
        assert_error(r, E_TIMEOUT, "stream from ", " was silent for 10 s");
        assert_int_equal(http_client_idle(r->client), 0);
        /* one that follows on a kept connection knows nothing of the first's limit */
        answer_with(r, req, CHUNKED "0\r\n\r\n", false);
        answer_again(r, pooled, CHUNKED "0\r\n\r\n");
        net_pass(&r->net, 20 * USEC_PER_SEC);
        assert_int_equal(http_client_idle(r->client), 1);
}

static void test_a_kept_connection_that_the_server_closes(void **state)
{
        struct rig *r = *state;

        answer_with(r, pooled, CHUNKED "0\r\n\r\n", true);
        net_until(&r->net, http_client_idle(r->client) == 0);
        answer_with(r, pooled, CHUNKED "0\r\n\r\n", false);
        assert_false(r->reused);
        forget_result(r);
        start(r, pooled);
        hear_another(r);
        fd_close(TAKE_FD(r->fd));
        until_end(r);
        assert_error(r, E_LOST, "connection to ", " was closed before an answer came");
        assert_true(r->reused);
}

/* ---- the limit */

struct many {
        struct rig *rig;
        struct http_call *call;
        int ends;
        struct buf body;
};

static void many_data(void *arg, struct str chunk)
{
        buf_addstr(&((struct many *)arg)->body, chunk);
}

static void many_end(void *arg, const struct http_answer *a, const struct err *err)
{
        ((struct many *)arg)->ends++;
}

static const struct http_handlers many_handlers = {.on_data = many_data, .on_end = many_end};

static void start_many(struct rig *r, struct many *m, size_t n, const char *const *targets)
{
        for (size_t i = 0; i < n; i++) {
                struct http_request req = pooled;

                req.method = "GET";
                req.target = targets[i];
                m[i] = (struct many){.rig = r, .body = BUF_INIT(SIZE_MAX)};
                m[i].call = http_start(r->client, &req, &many_handlers, &m[i]);
        }
}

static void done_many(struct many *m, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_done(&m[i].body);
}

static void test_streams_wait_in_order_for_a_connection(void **state)
{
        static const char *const targets[] = {"/0", "/1", "/2", "/3"};
        struct rig *r = *state;
        struct many m[4];
        int other;

        new_client(r, (struct http_client_config){.max_connections = 2});
        start_many(r, m, 4, targets);
        hear_request(r);
        assert_true(net_heard(r->fd, &r->got, "GET /0 "));
        other = net_accept(&r->net);
        assert_true(net_no_connection(&r->net));
        net_say(r->fd, CHUNKED "1\r\na\r\n0\r\n\r\n");
        hear_another(r);
        assert_true(net_heard(r->fd, &r->got, "GET /2 "));
        assert_int_equal(m[0].ends, 1);
        assert_int_equal(m[1].ends, 0);
        net_say(r->fd, CHUNKED "1\r\nc\r\n0\r\n\r\n");
        hear_another(r);
        assert_true(net_heard(r->fd, &r->got, "GET /3 "));
        /* a place comes free, too, when a connection breaks */
        buf_done(&m[0].body);
        start_many(r, m, 1, targets);
        fd_close(other);
        net_until(&r->net, m[1].ends == 1);
        other = net_accept(&r->net);
        assert_int_equal(m[3].ends, 0);
        net_say(r->fd, CHUNKED "0\r\n\r\n");
        net_until(&r->net, m[3].ends == 1);
        assert_str(buf_str(&m[2].body), "c");
        fd_close(other);
        net_until(&r->net, m[0].ends == 1);
        done_many(m, 4);
}

static void test_other_streams_stay_outside_the_limit(void **state)
{
        struct rig *r = *state;
        int alone;

        new_client(r, (struct http_client_config){.max_connections = 1});
        start(r, (struct http_request){.stream = true});
        alone = net_accept(&r->net);
        answer_with(r, pooled, CHUNKED "0\r\n\r\n", false);
        assert_int_equal(http_client_idle(r->client), 1);
        assert_ok(r, 200, "");
        fd_close(alone);
}

/* ---- cancelling and pausing */

static void test_cancelling_costs_the_connection_and_frees_its_place(void **state)
{
        static const char *const targets[] = {"/0", "/1"};
        struct rig *r = *state;
        struct many m[2];

        new_client(r, (struct http_client_config){.max_connections = 1});
        start_many(r, m, 2, targets);
        hear_request(r);
        net_say(r->fd, CHUNKED "1\r\na\r\n");
        net_until(&r->net, m[0].body.n == 1);
        http_call_cancel(m[0].call);
        net_until(&r->net, !net_hear(r->fd, &r->got));
        hear_request(r);
        assert_true(net_heard(r->fd, &r->got, "GET /1 "));
        net_say(r->fd, CHUNKED "1\r\nb\r\n0\r\n\r\n");
        net_until(&r->net, m[1].ends == 1);
        assert_int_equal(m[0].ends, 0);
        assert_int_equal(http_client_idle(r->client), 1);
        done_many(m, 2);
}

static void test_cancelling_inside_callbacks(void **state)
{
        struct rig *r = *state;

        for (r->trick = CANCEL_IN_HEAD; r->trick <= CANCEL_IN_DATA; r->trick++) {
                start(r, pooled);
                hear_request(r);
                net_say(r->fd, CHUNKED "1\r\na\r\n0\r\n\r\n");
                net_until(&r->net, !net_hear(r->fd, &r->got));
                assert_int_equal(http_client_idle(r->client), 0);
        }
        assert_int_equal(r->ends, 0);
        assert_str(buf_str(&r->body), "a");
}

static void test_the_next_stream_begins_at_the_end_of_the_last(void **state)
{
        struct rig *r = *state;

        r->trick = START_IN_END;
        answer_with(r, pooled, CHUNKED "1\r\na\r\n0\r\n\r\n", false);
        hear_another(r);
        net_say(r->fd, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
        net_until(&r->net, r->ends == 2);
        assert_true(r->reused);
}

static void test_a_pause_holds_the_connection(void **state)
{
        struct rig *r = *state;

        r->pause_after = 1;
        start(r, pooled);
        hear_request(r);
        net_say(r->fd, CHUNKED "1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
        net_until(&r->net, r->body.n == 1);
        net_pass(&r->net, 60 * USEC_PER_SEC);
        assert_str(buf_str(&r->body), "a");
        assert_int_equal(http_client_idle(r->client), 0);
        http_call_pause(r->call, false);
        until_end(r);
        assert_ok(r, 200, "ab");
        r->pause_after = 0;
        answer_again(r, pooled, CHUNKED "1\r\nc\r\n0\r\n\r\n");
        assert_ok(r, 200, "c");
        assert_true(r->reused);
}

/* ---- ahead of need */

static void accept_some(struct rig *r, int *fds, size_t n)
{
        for (size_t i = 0; i < n; i++)
                fds[i] = net_accept(&r->net);
}

static void test_connections_are_made_ahead_of_need(void **state)
{
        struct rig *r = *state;
        int fds[3];

        new_client(r, (struct http_client_config){.max_connections = 3});
        http_client_connect(r->client, 2);
        accept_some(r, fds, 2);
        net_until(&r->net, http_client_idle(r->client) == 2);
        http_client_connect(r->client, 2);
        assert_true(net_no_connection(&r->net));
        http_client_connect(r->client, 100);
        accept_some(r, &fds[2], 1);
        net_until(&r->net, http_client_idle(r->client) == 3);
        assert_true(net_no_connection(&r->net));
        /* a call finds one; it is the first on it */
        start(r, pooled);
        net_until(&r->net, http_client_idle(r->client) == 2);
        assert_true(net_no_connection(&r->net));
        assert_int_not_equal(http_call_sent_at(r->call), 0);
        assert_false(http_call_was_reused(r->call));
        for (int i = 0; i < 3; i++)
                fd_close(fds[i]);
        until_end(r);
        net_until(&r->net, http_client_idle(r->client) == 0);
}

static void test_addresses_at_hand_are_not_looked_up(void **state)
{
        struct rig *r = *state;
        struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const struct addrinfo at = {
                .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&here, .ai_addrlen = sizeof(here)};
        char url[64];
        int fd;

        /* a name that nobody can resolve; its port counts */
        snprintf(url, sizeof(url), "http://nowhere.invalid%s", strrchr(r->net.url, ':'));
        new_client(r, (struct http_client_config){.url = url, .addresses = &at});
        http_client_connect(r->client, 1);
        accept_some(r, &fd, 1);
        net_until(&r->net, http_client_idle(r->client) == 1);
        fd_close(fd);
}

static void test_calls_take_connections_that_are_under_way(void **state)
{
        static const char *const targets[] = {"/0", "/1"};
        struct rig *r = *state;
        struct many m[2];
        int fds[2];

        new_client(r, (struct http_client_config){.max_connections = 2});
        http_client_connect(r->client, 2);
        start_many(r, m, 2, targets);
        accept_some(r, fds, 2);
        for (int i = 0; i < 2; i++) {
                buf_clear(&r->got);
                net_until(&r->net, net_heard(fds[i], &r->got, "\r\n\r\n"));
        }
        assert_true(net_no_connection(&r->net));
        for (int i = 0; i < 2; i++)
                fd_close(fds[i]);
        net_until(&r->net, m[0].ends && m[1].ends);
}

static void test_more_than_are_made_at_once(void **state)
{
        enum { N = 150 };
        struct rig *r = *state;
        int fds[N];

        new_client(r, (struct http_client_config){.max_connections = N});
        http_client_connect(r->client, N);
        accept_some(r, fds, N);
        net_until(&r->net, http_client_idle(r->client) == N);
        for (int i = 0; i < N; i++)
                fd_close(fds[i]);
        net_until(&r->net, http_client_idle(r->client) == 0);
        assert_true(net_no_connection(&r->net));
}

static void test_who_cannot_connect_tells_the_call(void **state)
{
        struct rig *r = *state;

        fd_close(TAKE_FD(r->net.listen_fd));
        http_client_connect(r->client, 3);
        for (int i = 0; i < 20; i++)
                net_turn(&r->net);
        assert_int_equal(http_client_idle(r->client), 0);
        http_client_connect(r->client, 3);
        start(r, pooled);
        until_end(r);
        assert_int_equal(r->err.code, E_CONNECT);
        assert_false(r->sent);
}

static void test_freeing_the_client_while_connections_are_made(void **state)
{
        struct rig *r = *state;

        http_client_connect(r->client, 3);
        free_client(r);
        net_turn(&r->net);
        new_client(r, (struct http_client_config){0});
        http_client_connect(r->client, 3);
        net_turn(&r->net);
        free_client(r);
        net_turn(&r->net);
}

/* ---- time */

struct timed {
        struct http_call *call;
        uint64_t received;
        bool stamped, ended;
        int pieces;
};

static void timed_data(void *arg, struct str chunk)
{
        struct timed *t = arg;

        t->received = http_call_received_at(t->call, &t->stamped);
        t->pieces++;
}

static void timed_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct timed *t = arg;

        assert_int_equal(http_call_received_at(t->call, NULL), t->received);
        t->ended = true;
}

static const struct http_handlers timed_handlers = {.on_data = timed_data, .on_end = timed_end};

static void start_timed(struct rig *r, struct timed *t)
{
        struct http_request req = pooled;

        req.method = "GET";
        req.target = "/";
        *t = (struct timed){0};
        t->call = http_start(r->client, &req, &timed_handlers, t);
}

static bool kernel_has_stamps(int fd)
{
        int flags = 0;

        return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0;
}

/* The kernel's stamp comes from another clock, and what is between the two is known to a microsecond or so. */
enum { SLACK = 1000 * 1000 };

static void check_between(uint64_t from, uint64_t at, uint64_t to)
{
        assert_true(at >= from - SLACK);
        assert_true(at <= to + SLACK);
}

static void test_stamps_lie_between_sending_and_reading(void **state)
{
        struct rig *r = *state;
        uint64_t before, said, sent;
        struct timed t;
        bool stamps;

        r->net.clock.manual = false;
        net_turn(&r->net);
        new_client(r, (struct http_client_config){.stamps = true});
        before = clock_boot_ns(&r->net.clock);
        start_timed(r, &t);
        assert_int_equal(http_call_sent_at(t.call), 0);
        hear_request(r);
        stamps = kernel_has_stamps(r->fd);
        sent = http_call_sent_at(t.call);
        assert_true(sent >= before && sent <= clock_boot_ns(&r->net.clock));
        assert_int_equal(http_call_received_at(t.call, NULL), 0);
        net_say(r->fd, CHUNKED);
        /* the kernel begins to stamp a little after it was told to */
        do {
                int pieces = t.pieces;

                said = clock_boot_ns(&r->net.clock);
                net_say(r->fd, "1\r\na\r\n");
                net_until(&r->net, t.pieces > pieces);
                check_between(said, t.received, clock_boot_ns(&r->net.clock));
        } while (stamps && !t.stamped && t.pieces < 100000);
        assert_int_equal(t.stamped, stamps);
        net_say(r->fd, "1\r\na\r\n0\r\n\r\n");
        net_until(&r->net, t.ended);
        /* nothing of it is left for the next */
        start_timed(r, &t);
        hear_another(r);
        assert_int_equal(http_call_received_at(t.call, NULL), 0);
        http_call_cancel(t.call);
}

static void test_a_stamp_outlives_a_pause(void **state)
{
        struct rig *r = *state;
        struct timed t;
        uint64_t first;

        new_client(r, (struct http_client_config){.stamps = true});
        start_timed(r, &t);
        hear_request(r);
        http_call_pause(t.call, true);
        net_say(r->fd, CHUNKED "1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
        net_pass(&r->net, USEC_PER_SEC);
        assert_int_equal(t.pieces, 0);
        http_call_pause(t.call, false);
        net_until(&r->net, t.pieces == 1 || t.ended);
        first = t.received;
        /* read now, with the test's clock: the kernel's stamps are of another */
        assert_int_equal(first, clock_boot_ns(&r->net.clock));
        assert_false(t.stamped);
        net_until(&r->net, t.ended);
        assert_int_equal(t.received, first);
}

static void test_without_stamps_it_is_now(void **state)
{
        struct rig *r = *state;
        struct timed t;

        start_timed(r, &t);
        hear_request(r);
        assert_int_equal(http_call_sent_at(t.call), clock_boot_ns(&r->net.clock));
        net_say(r->fd, CHUNKED "1\r\na\r\n0\r\n\r\n");
        net_until(&r->net, t.ended);
        assert_int_equal(t.received, clock_boot_ns(&r->net.clock));
        assert_false(t.stamped);
}

/* ---- TLS: made ahead, kept, renewed; and timed by the reads */

static void stream_two(void *arg, struct http_exchange *ex)
{
        http_stream_start(ex, 200, NULL, NULL, NULL);
        http_stream_write(ex, STR("a"));
        http_stream_write(ex, STR("b"));
        http_stream_end(ex);
}

static void play_timed(struct rig *r, struct timed *t)
{
        uint64_t before = clock_boot_ns(&r->net.clock);

        start_timed(r, t);
        net_until(&r->net, t->ended);
        assert_true(t->pieces >= 1);
        assert_false(t->stamped);
        assert_true(t->received >= before && t->received <= clock_boot_ns(&r->net.clock));
}

static void test_streams_over_tls(void **state)
{
        struct rig *r = *state;
        _cleanup_(cert_done) struct cert ca = cert_make((struct cert_request){.cn = "CA", .ca = true});
        _cleanup_(cert_done) struct cert leaf = cert_make(
                (struct cert_request){.san = "IP:127.0.0.1", .issuer = &ca});
        _cleanup_(tls_unref) struct tls *there = tls_new(
                &(struct tls_config){.server = true, .cert = str_of(leaf.cert), .key = str_of(leaf.key)},
                NULL);
        _cleanup_(tls_unref) struct tls *here = tls_new(&(struct tls_config){.ca = str_of(ca.cert)}, NULL);
        _cleanup_(tls_unref) struct tls *renewed = tls_new(&(struct tls_config){.ca = str_of(ca.cert)}, NULL);
        struct http_server *server;
        struct err err = ERR_INIT;
        struct timed t;
        char url[64];

        r->net.clock.manual = false;
        net_turn(&r->net);
        server = http_server_new(
                r->net.loop,
                &(struct http_server_config){.listen = "127.0.0.1:0", .tls = there, .on_request = stream_two},
                &err);
        assert_non_null(server);
        snprintf(url, sizeof(url), "https://127.0.0.1:%u", http_server_port(server));
        new_client(r, (struct http_client_config){.url = url, .tls = here, .stamps = true});
        http_client_connect(r->client, 2);
        net_until(&r->net, http_client_idle(r->client) == 2);
        play_timed(r, &t);
        play_timed(r, &t);
        assert_int_equal(http_client_idle(r->client), 2);
        /* what is made with certificates that are not used any more is not kept */
        http_client_connect(r->client, 4);
        http_client_set_tls(r->client, renewed);
        assert_int_equal(http_client_idle(r->client), 0);
        play_timed(r, &t);
        http_client_free(TAKE_PTR(r->client));
        http_server_free(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
        TEST(test_a_complete_stream_leaves_its_connection_to_the_next),
        TEST(test_a_refusal_is_an_answer_like_any),
        TEST(test_an_odd_end_costs_the_connection),
        TEST(test_silence_before_and_within_the_answer),
        TEST(test_a_kept_connection_that_the_server_closes),
        TEST(test_streams_wait_in_order_for_a_connection),
        TEST(test_other_streams_stay_outside_the_limit),
        TEST(test_cancelling_costs_the_connection_and_frees_its_place),
        TEST(test_cancelling_inside_callbacks),
        TEST(test_the_next_stream_begins_at_the_end_of_the_last),
        TEST(test_a_pause_holds_the_connection),
        TEST(test_addresses_at_hand_are_not_looked_up),
        TEST(test_connections_are_made_ahead_of_need),
        TEST(test_calls_take_connections_that_are_under_way),
        TEST(test_more_than_are_made_at_once),
        TEST(test_who_cannot_connect_tells_the_call),
        TEST(test_freeing_the_client_while_connections_are_made),
        TEST(test_stamps_lie_between_sending_and_reading),
        TEST(test_a_stamp_outlives_a_pause),
        TEST(test_without_stamps_it_is_now),
        TEST(test_streams_over_tls),
};

UNIT_MAIN(tests)
