#include "net/server_private.h"

#include <sys/socket.h>

#define LINGER_TIME  (2 * USEC_PER_SEC)
#define SERVER_PEERS (60 * USEC_PER_SEC) /* a peer that does not acknowledge for so long is dead */
enum { LINGER_BYTES = 1024 * 1024, UNSENT_MAX = 256 * 1024, PIECE = 64 * 1024 };

static const struct conn_ops conn_ops;
static const struct http_parser_ops parser_ops;
static void step(struct defer *d);

/* ---- life */

static void free_now(struct defer *d)
{
        struct server_conn *sc = CONTAINER_OF(d, struct server_conn, free_later);

        http_parser_done(&sc->parser);
        buf_done(&sc->ex.body);
        buf_done(&sc->rest);
        http_text_unref(sc->shared);
        free(sc->subject);
        free(sc);
}

void server_conn_close(struct server_conn *sc)
{
        if (sc->dead)
                return;
        sc->dead = true;
        conn_close(&sc->conn);
        timer_cancel(&sc->timer);
        defer_cancel(&sc->step);
        list_remove(&sc->node);
        sc->server->n_connections--;
        defer_run(sc->server->loop, &sc->free_later, free_now);
}

bool server_conn_is_idle(const struct server_conn *sc)
{
        return sc->ex.state == EX_READING && sc->parser.taken == 0 && !sc->parser.head_seen && !sc->lingering;
}

/* The peer has gone for good. The handler that owes an answer is told, or left to find out by answering. */
static void peer_gone(struct server_conn *sc)
{
        void (*fn)(void *arg) = sc->ex.on_gone;
        void *arg = sc->ex.gone_arg;
        bool owed = sc->ex.state == EX_OPEN || sc->ex.state == EX_STREAM;

        if (owed && !fn) {
                conn_close(&sc->conn);
                timer_cancel(&sc->timer);
                return;
        }
        server_conn_close(sc);
        if (owed)
                fn(arg);
}

/* ---- time: one timer a connection, which is moved only when it has to come earlier */

static void set_deadline(struct server_conn *sc, usec_t after)
{
        sc->deadline = usec_add(loop_now(sc->server->loop), after);
        if (!timer_pending(&sc->timer) || sc->timer.node.order > sc->deadline)
                timer_at(&sc->timer, sc->deadline);
}

static void refuse(struct server_conn *sc, int status, const char *why);

static void timer_fired(struct timer *t)
{
        struct server_conn *sc = CONTAINER_OF(t, struct server_conn, timer);

        if (!sc->deadline)
                return;
        if (sc->deadline > loop_now(sc->server->loop)) {
                timer_at(t, sc->deadline);
                return;
        }
        sc->deadline = 0;
        if (sc->lingering || sc->conn.handshaking || server_conn_is_idle(sc))
                server_conn_close(sc);
        else if (sc->ex.state == EX_READING)
                refuse(sc, 408, "the request did not come in time");
        else
                peer_gone(sc); /* it does not take what we send */
}

/* ---- the end of a connection */

/* Closing with unread bytes in the socket would reset it, and the peer might never see the answer: say that nothing
 * follows, and read on for a while. */
static void linger(struct server_conn *sc)
{
        sc->lingering = true;
        conn_shut(&sc->conn);
        set_deadline(sc, LINGER_TIME);
        conn_pause(&sc->conn, false);
}

static void refuse(struct server_conn *sc, int status, const char *why)
{
        sc->ex.keep_alive = false;
        sc->ex.http10 = false;
        sc->ex.no_body = false;
        sc->ex.state = EX_DONE;
        conn_pause(&sc->conn, true);
        exchange_answer(sc, status, &(struct http_headers){0}, "text/plain", str_of(why));
        server_conn_step(sc);
}

/* ---- requests */

static struct str path_of(struct str target)
{
        static const char *const schemes[] = {"http://", "https://"};

        for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
                size_t n = strlen(schemes[i]);
                const char *slash;

                if (!str_case_eq(str_n(target.p, MIN(target.n, n)), str_of(schemes[i])))
                        continue;
                slash = memchr(target.p + n, '/', target.n - n);
                return slash ? str_n(slash, (size_t)(target.p + target.n - slash)) : STR("/");
        }
        return target;
}

static int check_head(const struct http_parser *p, struct err *err)
{
        struct http_headers headers = http_parser_headers(p);
        struct str path = path_of(str_n(p->head.text.p, p->head.target));
        size_t hosts = 0;

        for (size_t i = 0; i < headers.n; i++)
                hosts += str_case_eq(headers.v[i].name, STR("host"));
        if (hosts > 1 || (hosts == 0 && p->ll.http_minor == 1))
                return err_set(err, E_PROTOCOL, "a request needs exactly one Host header");
        if (p->ll.method == HTTP_CONNECT)
                return err_set(err, E_PROTOCOL, "CONNECT is not supported");
        if (path.n == 0 || (path.p[0] != '/' && !str_eq(path, STR("*"))))
                return err_set(err, E_PROTOCOL, "the target must be a path");
        if (p->ll.flags & F_CONTENT_LENGTH && p->ll.content_length > p->limits->body)
                return err_set(err, E_TOO_LARGE, "a body of more than %zu bytes", p->limits->body);
        return 0;
}

static enum http_verdict head_came(struct http_parser *p)
{
        struct server_conn *sc = CONTAINER_OF(p, struct server_conn, parser);
        struct http_headers headers = http_parser_headers(p);

        if (check_head(p, p->err) < 0)
                return STOP;
        if (p->ll.http_minor == 1 && str_case_eq(http_header(&headers, "Expect"), STR("100-continue")))
                conn_send(&sc->conn, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        return GO_ON;
}

static enum http_verdict body_came(struct http_parser *p, struct str data)
{
        struct server_conn *sc = CONTAINER_OF(p, struct server_conn, parser);

        buf_addstr(&sc->ex.body, data);
        if (!sc->ex.body.overflow)
                return GO_ON;
        err_set(p->err, E_TOO_LARGE, "a body of more than %zu bytes", p->limits->body);
        return STOP;
}

static const struct http_parser_ops parser_ops = {.on_head = head_came, .on_body = body_came};

static void hand_over(struct server_conn *sc)
{
        struct http_exchange *ex = &sc->ex;
        struct str target = path_of(str_n(sc->parser.head.text.p, sc->parser.head.target));

        sc->deadline = 0;
        ex->state = EX_OPEN;
        ex->method = str_of(llhttp_method_name(sc->parser.ll.method));
        ex->path = str_split(&target, '?');
        ex->query = target.p ? target : STR("");
        ex->headers = http_parser_headers(&sc->parser);
        ex->http10 = sc->parser.ll.http_minor == 0;
        ex->no_body = sc->parser.ll.method == HTTP_HEAD;
        ex->keep_alive = sc->parser.keep_alive;
        sc->server->on_request(sc->server->arg, ex);
}

/* Parses DATA up to the end of one request; returns how much of it was used. */
static size_t feed(struct server_conn *sc, struct str data)
{
        struct err err = ERR_INIT;
        size_t used = 0;

        switch (http_parser_feed(&sc->parser, data, &used, &err)) {
        case PARSE_DONE:
                conn_pause(&sc->conn, true);
                hand_over(sc);
                return used;
        case PARSE_BAD:
                if (err.code != E_TOO_LARGE)
                        refuse(sc, 400, err.text);
                else
                        refuse(sc, sc->parser.head_seen ? 413 : 431, err.text);
                return data.n;
        default:
                /* from the first byte on, whatever trickles in */
                if (!sc->begun)
                        set_deadline(sc, sc->server->header_timeout);
                sc->begun = true;
                return data.n;
        }
}

static void data_came(struct conn *conn, struct str data)
{
        struct server_conn *sc = CONTAINER_OF(conn, struct server_conn, conn);
        size_t used;

        if (sc->lingering) {
                sc->lingered += data.n;
                if (sc->lingered > LINGER_BYTES)
                        server_conn_close(sc);
                return;
        }
        if (!sc->parser.head.text.p) {
                sc->parser.head = sc->server->spare;
                sc->server->spare = (struct http_head){.text.max = sc->server->limits.head};
        }
        used = feed(sc, data);
        if (!sc->dead && used < data.n)
                buf_add(&sc->rest, data.p + used, data.n - used);
}

/* ---- between requests */

static void release_head(struct server_conn *sc)
{
        struct http_server *s = sc->server;
        struct http_head *h = &sc->parser.head;

        if (s->spare.text.p || h->text.cap > 8192) {
                http_head_done(h);
                return;
        }
        if (h->text.p)
                mem_wipe(h->text.p, h->text.n);
        buf_clear(&h->text);
        h->n = h->target = 0;
        s->spare = *h;
        *h = (struct http_head){.text.max = s->limits.head};
}

/* The answer is queued: on to the next request. */
static void recycle(struct server_conn *sc)
{
        buf_done(&sc->ex.body);
        sc->ex = (struct http_exchange){.state = EX_READING, .body = BUF_INIT(sc->server->limits.body)};
        sc->begun = false;
        http_parser_reset(&sc->parser);
        if (sc->rest_at < sc->rest.n) {
                sc->rest_at += feed(sc, str_n(sc->rest.p + sc->rest_at, sc->rest.n - sc->rest_at));
                return;
        }
        buf_done(&sc->rest);
        sc->rest_at = 0;
        release_head(sc);
        set_deadline(sc, sc->server->idle_timeout);
        conn_pause(&sc->conn, false);
}

/* Takes requests that came early as long as their answers are taken, too. */
static void advance(struct server_conn *sc)
{
        while (!sc->dead && !sc->shared && sc->ex.state == EX_DONE && sc->ex.keep_alive &&
               !sc->server->draining && conn_unsent(&sc->conn) < UNSENT_MAX)
                recycle(sc);
}

/* Sends what waits, and of a shared text as much as is taken, a piece at a time. */
static void send_more(struct server_conn *sc)
{
        conn_flush(&sc->conn);
        while (sc->shared && !conn_unsent(&sc->conn) && !sc->conn.broken) {
                struct str all = buf_str(&sc->shared->text);
                size_t n = MIN(all.n - sc->shared_at, (size_t)PIECE);

                buf_add(&sc->conn.out, all.p + sc->shared_at, n);
                sc->shared_at += n;
                if (sc->shared_at == all.n)
                        http_text_unref(TAKE_PTR(sc->shared));
                conn_flush(&sc->conn);
        }
}

static void settle(struct server_conn *sc)
{
        bool last = !sc->ex.keep_alive || sc->server->draining;

        if (sc->conn.broken) {
                peer_gone(sc);
        } else if (sc->ex.state == EX_READING) {
                return; /* it has a deadline already */
        } else if (conn_unsent(&sc->conn)) {
                set_deadline(sc, sc->server->idle_timeout);
        } else if (sc->ex.state != EX_DONE) {
                sc->deadline = 0;
        } else if (!last) {
                server_conn_step(sc); /* all is sent: on with requests that had to wait for that */
        } else if (!sc->lingering) {
                linger(sc);
        }
}

/* In the middle of an answer: with a reset, which nobody takes for its end. */
static void cut_off(struct server_conn *sc)
{
        struct linger now = {.l_onoff = 1};

        if (sc->conn.fd >= 0)
                setsockopt(sc->conn.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        sc->conn.broken = true; /* no good-bye of TLS either */
        peer_gone(sc);
}

static void step(struct defer *d)
{
        struct server_conn *sc = CONTAINER_OF(d, struct server_conn, step);

        if (sc->cut) {
                cut_off(sc);
                return;
        }
        if (sc->conn.fd < 0) {
                /* the peer had gone before the answer came */
                if (sc->ex.state == EX_DONE)
                        server_conn_close(sc);
                return;
        }
        advance(sc);
        if (sc->dead)
                return;
        send_more(sc);
        settle(sc);
}

void server_conn_step(struct server_conn *sc)
{
        defer_run(sc->server->loop, &sc->step, step);
}

/* ---- events of the connection */

static void opened(struct conn *conn, const struct err *err)
{
        struct server_conn *sc = CONTAINER_OF(conn, struct server_conn, conn);
        static const char plain[] =
                "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
                "this port speaks TLS: use https://\n";

        if (!err) {
                set_deadline(sc, sc->server->idle_timeout);
                return;
        }
        LOG_DEBUG(loop_log(sc->server->loop), "TLS handshake failed", F_ERR(err));
        if (tls_got_plain_http(conn->tls))
                send(conn->fd, plain, sizeof(plain) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        server_conn_close(sc);
}

static void ended(struct conn *conn, const struct err *err)
{
        struct server_conn *sc = CONTAINER_OF(conn, struct server_conn, conn);

        server_conn_close(sc); /* it only reads between and within requests */
}

static void some_sent(struct conn *conn)
{
        server_conn_step(CONTAINER_OF(conn, struct server_conn, conn));
}

static void gone(struct conn *conn, bool wholly)
{
        struct server_conn *sc = CONTAINER_OF(conn, struct server_conn, conn);

        if (sc->ex.state == EX_DONE && !wholly)
                conn_ignore_half_close(conn); /* it still listens to the answer */
        else
                peer_gone(sc);
}

static const struct conn_ops conn_ops = {
        .on_open = opened,
        .on_data = data_came,
        .on_end = ended,
        .on_sent = some_sent,
        .on_gone = gone,
};

/* ---- accepting */

static struct server_conn *take(struct http_server *s, int fd)
{
        struct server_conn *sc = xcalloc(1, sizeof(*sc));
        struct err err;

        sc->server = s;
        list_append(&s->connections, &sc->node);
        s->n_connections++;
        timer_init(&sc->timer, s->loop, timer_fired);
        sc->ex = (struct http_exchange){.state = EX_READING, .body = BUF_INIT(s->limits.body)};
        sc->rest = (struct buf)BUF_INIT(SIZE_MAX);
        http_parser_init(&sc->parser, &parser_ops, &s->limits);
        conn_init(&sc->conn, s->loop, &conn_ops);
        sc->conn.want_hup = true;
        if (!s->unix_path)
                socket_tune(fd, SERVER_PEERS);
        if (conn_attach(&sc->conn, fd, &err) < 0) {
                server_conn_close(sc);
                return NULL;
        }
        return sc;
}

void server_conn_new(struct http_server *s, int fd, const char *peer)
{
        struct server_conn *sc = take(s, fd);
        struct tls_session *tls;
        struct err err = ERR_INIT;

        if (!sc)
                return;
        if (!s->tls) {
                set_deadline(sc, s->idle_timeout);
                return;
        }
        tls = tls_session_new(s->tls, fd, NULL, peer, &err);
        if (!tls) {
                LOG_WARN(loop_log(s->loop), "Cannot begin TLS", F_ERR(&err));
                server_conn_close(sc);
                return;
        }
        sc->conn.or_plain = s->or_plain;
        conn_start_tls(&sc->conn, tls);
        set_deadline(sc, s->header_timeout);
}

void server_conn_refuse(struct http_server *s, int fd)
{
        struct server_conn *sc = take(s, fd);

        if (!sc)
                return;
        if (s->tls)
                server_conn_close(sc); /* a handshake is what could not be afforded */
        else
                refuse(sc, 503, "too many connections");
}
