#include "net/client_private.h"

enum { PROXY_HEAD_MAX = 16 * 1024, KEEP_BODY = 64 * 1024, RESERVE_BODY = 1024 * 1024 };

static const struct conn_ops call_ops, proxy_ops;
static const struct http_parser_ops parser_ops;

/* ---- life */

static void free_now(struct defer *d)
{
        struct client_conn *cc = CONTAINER_OF(d, struct client_conn, free_later);

        http_parser_done(&cc->parser);
        buf_done(&cc->body);
        buf_done(&cc->rest);
        free(cc);
}

void client_conn_close(struct client_conn *cc)
{
        if (cc->state == CONN_DEAD)
                return;
        cc->client->n_idle -= cc->state == CONN_IDLE;
        cc->state = CONN_DEAD;
        dial_cancel(TAKE_PTR(cc->dial));
        timer_cancel(&cc->deadline);
        defer_cancel(&cc->resume);
        conn_close(&cc->conn);
        list_remove(&cc->node);
        if (cc->ahead) {
                cc->client->n_ahead--;
                cc->client->wanted = 0; /* what cannot be made now is not tried again and again */
        }
        if (!cc->alone) {
                cc->client->n_connections--;
                if (!cc->client->dead && !list_empty(&cc->client->waiting))
                        defer_run(cc->client->loop, &cc->client->pump, cc->client->pump.fn);
        }
        defer_run(cc->client->loop, &cc->free_later, free_now);
}

/* The answer as far as it is there; for on_head and on_end. */
static const struct http_answer *answer_of(struct client_conn *cc, struct http_answer *answer)
{
        if (!cc->parser.head_seen)
                return NULL;
        *answer = (struct http_answer){
                .status = cc->parser.ll.status_code,
                .headers = http_parser_headers(&cc->parser),
                .body = buf_str(&cc->body),
        };
        return answer;
}

void client_conn_fail(struct client_conn *cc, const struct err *err)
{
        struct http_call *call = TAKE_PTR(cc->call);
        struct http_answer answer;

        client_conn_close(cc);
        if (call)
                call_end(call, answer_of(cc, &answer), err);
}

static _printf_(3, 4) void fail_with(struct client_conn *cc, enum err_code code, const char *fmt, ...)
{
        struct err err = ERR_INIT;
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        err_set(&err, code, "%s", text);
        client_conn_fail(cc, &err);
}

/* ---- making the connection */

static void deadline_passed(struct timer *t)
{
        struct client_conn *cc = CONTAINER_OF(t, struct client_conn, deadline);
        static const char *const stages[] = {
                [CONN_DIALING] = "no connection",
                [CONN_PROXY] = "no answer of the proxy",
                [CONN_HANDSHAKE] = "no end of the TLS handshake",
        };

        fail_with(cc, E_CONNECT, "cannot connect to %s: %s within %.3g s", cc->client->peer,
                  stages[cc->state], (double)cc->client->connect_timeout / (double)USEC_PER_SEC);
}

static void ready(struct client_conn *cc)
{
        timer_cancel(&cc->deadline);
        cc->conn.ops = &call_ops;
        if (cc->ahead) {
                cc->ahead = false;
                cc->client->n_ahead--;
                client_conn_put_back(cc);
                client_connect_ahead(cc->client);
        } else {
                client_conn_carry(cc, cc->call);
        }
}

static void connected(struct client_conn *cc)
{
        struct http_client *c = cc->client;
        struct tls_session *tls;
        struct err err = ERR_INIT;

        if (!c->tls) {
                ready(cc);
                return;
        }
        cc->state = CONN_HANDSHAKE;
        cc->generation = c->generation;
        cc->conn.ops = &call_ops;
        tls = tls_session_new(c->tls, cc->conn.fd, c->host, c->peer, &err);
        if (!tls)
                client_conn_fail(cc, &err);
        else
                conn_start_tls(&cc->conn, tls);
}

static void dialed(void *arg, int fd, const struct err *dial_err)
{
        struct client_conn *cc = arg;
        struct http_client *c = cc->client;
        struct err err = ERR_INIT;

        cc->dial = NULL;
        if (fd < 0) {
                err = *dial_err;
                if (c->proxy_host)
                        err_wrap(&err, "proxy");
                client_conn_fail(cc, &err);
                return;
        }
        if (conn_attach(&cc->conn, fd, &err) < 0) {
                client_conn_fail(cc, &err);
                return;
        }
        if (c->stamps)
                conn_time(&cc->conn, !c->tls);
        if (c->proxy_host) {
                struct buf head = BUF_INIT(PROXY_HEAD_MAX);

                cc->state = CONN_PROXY;
                cc->conn.ops = &proxy_ops;
                buf_printf(&head, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", c->peer, c->peer,
                           c->proxy_auth ? c->proxy_auth : "");
                conn_send(&cc->conn, buf_str(&head));
                mem_wipe(head.p, head.n);
                buf_done(&head);
                return;
        }
        connected(cc);
}

void client_conn_open(struct http_client *c, struct http_call *call)
{
        struct client_conn *cc = xcalloc(1, sizeof(*cc));
        const char *host = c->proxy_host ? c->proxy_host : c->host;
        uint16_t port = c->proxy_host ? c->proxy_port : c->port;

        conn_init(&cc->conn, c->loop, &call_ops);
        list_append(&c->busy, &cc->node);
        cc->client = c;
        cc->call = call;
        cc->alone = call && call->alone;
        cc->ahead = !call;
        cc->generation = c->generation;
        cc->state = CONN_DIALING;
        cc->body = (struct buf)BUF_INIT(c->limits.body);
        cc->rest = (struct buf)BUF_INIT(SIZE_MAX);
        http_parser_init(&cc->parser, &parser_ops, &c->limits);
        timer_init(&cc->deadline, c->loop, deadline_passed);
        timer_after(&cc->deadline, c->connect_timeout);
        c->n_connections += !cc->alone;
        c->n_ahead += cc->ahead;
        if (call)
                call->conn = cc;
        if (c->addresses)
                cc->dial = dial_start_list(c->loop, host, c->addresses, port, c->dead_after, dialed, cc);
        else
                cc->dial = dial_start(c->loop, host, port, c->dead_after, dialed, cc);
}

static void opened(struct conn *conn, const struct err *err)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);

        if (err)
                client_conn_fail(cc, err);
        else
                ready(cc);
}

/* ---- the proxy's answer to CONNECT */

static void proxy_data(struct conn *conn, struct str data)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);
        const char *proxy = cc->client->proxy_host, *end;
        struct str head;

        buf_addstr(&cc->rest, data);
        head = buf_str(&cc->rest);
        end = memmem(head.p, head.n, "\r\n\r\n", 4);
        if (!end && head.n > PROXY_HEAD_MAX) {
                fail_with(cc, E_CONNECT, "proxy %s sent a head of more than %d bytes", proxy, PROXY_HEAD_MAX);
                return;
        }
        if (!end)
                return;
        if (head.n < 12 || !str_has_prefix(head, STR("HTTP/1.")) || head.p[8] != ' ') {
                fail_with(cc, E_CONNECT, "proxy %s does not speak HTTP/1.1", proxy);
                return;
        }
        if (head.p[9] != '2') {
                size_t n = (size_t)((const char *)memchr(head.p, '\r', head.n) - head.p) - 9;

                for (size_t i = 0; i < n; i++)
                        if ((unsigned char)head.p[9 + i] < 0x20 || (unsigned char)head.p[9 + i] > 0x7E)
                                cc->rest.p[9 + i] = '?';
                fail_with(cc, E_CONNECT, "proxy %s refused the connection to %s: %.*s", proxy,
                          cc->client->peer, (int)MIN(n, (size_t)100), head.p + 9);
                return;
        }
        if (end + 4 != head.p + head.n) {
                fail_with(cc, E_CONNECT, "proxy %s sent more than an answer", proxy);
                return;
        }
        buf_done(&cc->rest);
        connected(cc);
}

static void proxy_end(struct conn *conn, const struct err *err)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);

        fail_with(cc, E_CONNECT, "proxy %s closed the connection", cc->client->proxy_host);
}

static const struct conn_ops proxy_ops = {.on_data = proxy_data, .on_end = proxy_end};

/* ---- the call */

/* The last moment: true if CALL must not be sent any more, and is over. Its connection is as good as before. */
static bool held_back(struct client_conn *cc, struct http_call *call)
{
        struct err err = ERR_INIT;

        if (!call->may_send || call->may_send(call->may_send_arg))
                return false;
        err_set(&err, E_CANCELED, "not sent, because it may not be sent any more");
        cc->call = NULL;
        if (cc->alone)
                client_conn_close(cc);
        else
                client_conn_put_back(cc);
        call_end(call, NULL, &err);
        return true;
}

void client_conn_carry(struct client_conn *cc, struct http_call *call)
{
        struct str text = str_n(call->text, call->n);

        if (held_back(cc, call))
                return;
        cc->state = CONN_BUSY;
        cc->call = call;
        call->conn = cc;
        call->reused = cc->used;
        cc->used = true;
        http_parser_reset(&cc->parser);
        buf_clear(&cc->body);
        cc->parser.no_body = call->head_method;
        if (call->paused)
                conn_pause(&cc->conn, true);
        cc->conn.received = 0;
        call->sent_at = clock_boot_ns(loop_clock(cc->client->loop));
        call->sent = conn_send(&cc->conn, text) > 0;
}

static void some_sent(struct conn *conn)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);

        if (cc->call && !conn->broken)
                cc->call->sent = true;
}

static enum http_verdict verdict(const struct client_conn *cc)
{
        if (cc->state == CONN_DEAD)
                return STOP;
        return cc->call->paused ? PAUSE : GO_ON;
}

static enum http_verdict head_came(struct http_parser *p)
{
        struct client_conn *cc = CONTAINER_OF(p, struct client_conn, parser);
        struct http_call *call = cc->call;
        const struct http_limits *limits = &cc->client->limits;
        struct http_answer answer;

        if (!call->stream) {
                uint64_t length = p->ll.flags & F_CONTENT_LENGTH && !p->no_body ? p->ll.content_length : 0;

                if (length > limits->body) {
                        err_set(p->err, E_TOO_LARGE, "a body of %llu bytes, the limit is %zu",
                                (unsigned long long)length, limits->body);
                        return STOP;
                }
                if (length)
                        buf_reserve(&cc->body, MIN((size_t)length, (size_t)RESERVE_BODY));
                return GO_ON;
        }
        call->head_seen = true;
        call->last_data = loop_now(cc->client->loop);
        if (call->idle_timeout)
                timer_after(&call->timer, call->idle_timeout);
        else
                timer_cancel(&call->timer);
        if (call->handlers.on_head)
                call->handlers.on_head(call->arg, answer_of(cc, &answer));
        return verdict(cc);
}

static enum http_verdict body_came(struct http_parser *p, struct str data)
{
        struct client_conn *cc = CONTAINER_OF(p, struct client_conn, parser);
        struct http_call *call = cc->call;

        if (!call->stream) {
                buf_addstr(&cc->body, data);
                if (!cc->body.overflow)
                        return GO_ON;
                err_set(p->err, E_TOO_LARGE, "a body of more than %zu bytes", cc->client->limits.body);
                return STOP;
        }
        call->last_data = loop_now(cc->client->loop);
        if (call->handlers.on_data)
                call->handlers.on_data(call->arg, data);
        return verdict(cc);
}

static const struct http_parser_ops parser_ops = {
        .response = true, .on_head = head_came, .on_body = body_came};

/* The whole answer is there. CLEAN: nothing came after it. */
static void complete(struct client_conn *cc, bool clean)
{
        struct http_call *call = TAKE_PTR(cc->call);
        struct http_answer answer;
        bool keep = clean && cc->parser.keep_alive && conn_unsent(&cc->conn) == 0 && !cc->conn.broken &&
                    !cc->conn.ended && !cc->alone;

        call_end(call, answer_of(cc, &answer), NULL);
        if (cc->state == CONN_DEAD)
                return;
        if (cc->body.cap > KEEP_BODY)
                buf_done(&cc->body);
        if (keep)
                client_conn_put_back(cc);
        else
                client_conn_close(cc);
}

/* An answer that makes no sense may come from a server that speaks TLS: a record of type alert, version 3. */
static bool looks_like_tls(const struct client_conn *cc, struct str data)
{
        return !cc->conn.tls && !cc->parser.head_seen && data.n >= 2 &&
               (data.p[0] == 0x15 || data.p[0] == 0x16) && data.p[1] == 0x03;
}

static void feed(struct client_conn *cc, struct str data)
{
        struct err err = ERR_INIT;
        size_t used = 0;

        switch (http_parser_feed(&cc->parser, data, &used, &err)) {
        case PARSE_MORE:
        case PARSE_STOPPED:
                return;
        case PARSE_PAUSED:
                conn_pause(&cc->conn, true);
                buf_add(&cc->rest, data.p + used, data.n - used);
                return;
        case PARSE_DONE:
                complete(cc, used == data.n);
                return;
        case PARSE_BAD:
                if (looks_like_tls(cc, data))
                        fail_with(cc, E_PROTOCOL, "%s speaks TLS; use https://", cc->client->peer);
                else if (err.code == E_TOO_LARGE)
                        fail_with(cc, E_TOO_LARGE, "answer of %s has %s", cc->client->peer, err.text);
                else
                        fail_with(cc, E_PROTOCOL, "answer of %s is not proper HTTP/1.1: %s", cc->client->peer,
                                  err.text);
        }
}

static void data_came(struct conn *conn, struct str data)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);

        if (cc->call)
                feed(cc, data);
        else
                client_conn_close(cc); /* bytes nobody asked for */
}

static void resumed(struct defer *d)
{
        struct client_conn *cc = CONTAINER_OF(d, struct client_conn, resume);
        struct buf rest = cc->rest;

        if (!cc->call || cc->call->paused)
                return;
        cc->rest = (struct buf)BUF_INIT(SIZE_MAX);
        conn_pause(&cc->conn, false);
        if (cc->parser.paused)
                feed(cc, rest.n ? buf_str(&rest) : STR(""));
        buf_done(&rest);
}

void client_conn_resume(struct client_conn *cc)
{
        defer_run(cc->client->loop, &cc->resume, resumed);
}

/* The peer ended the connection before the end of the answer. */
static void lost(struct client_conn *cc, const struct err *conn_err)
{
        const char *peer = cc->client->peer;
        const char *how = cc->conn.broken || (conn_err && conn_err->code == E_LOST) ? "broke" : "was closed";

        if (conn_err && conn_err->code == E_TLS && !cc->parser.head_seen && !cc->call->reused) {
                client_conn_fail(cc, conn_err);
                return;
        }
        if (!cc->parser.head_seen && cc->parser.taken == 0)
                fail_with(cc, E_LOST, "connection to %s %s before an answer came", peer, how);
        else if (!cc->parser.head_seen)
                fail_with(cc, E_LOST, "connection to %s %s within the head of the answer", peer, how);
        else
                fail_with(cc, E_LOST, "connection to %s %s within the body of the answer", peer, how);
}

static void ended(struct conn *conn, const struct err *conn_err)
{
        struct client_conn *cc = CONTAINER_OF(conn, struct client_conn, conn);
        struct err err = ERR_INIT;

        if (!cc->call)
                client_conn_close(cc);
        /* Only an orderly end is the end of a body that has no other. A reset that a send has met looks like one. */
        else if (!conn_err && !conn->broken && http_parser_eof(&cc->parser, &err) == PARSE_DONE)
                complete(cc, false);
        else
                lost(cc, conn_err);
}

static const struct conn_ops call_ops = {
        .on_open = opened,
        .on_data = data_came,
        .on_end = ended,
        .on_sent = some_sent,
};
