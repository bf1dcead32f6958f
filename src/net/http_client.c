#include "net/client_private.h"

enum { AHEAD_MAX = 64 }; /* connections that are made at once, ahead of need */

/* ---- the request as text */

struct writer {
        char *at; /* NULL: only count */
        size_t n;
};

static void put(struct writer *w, struct str s)
{
        if (w->at && s.n) {
                memcpy(w->at, s.p, s.n);
                w->at += s.n;
        }
        w->n += s.n;
}

static void put_header(struct writer *w, struct str name, struct str value)
{
        put(w, name);
        put(w, STR(": "));
        put(w, value);
        put(w, STR("\r\n"));
}

static bool has_body_by_nature(const char *method)
{
        return streq(method, "POST") || streq(method, "PUT") || streq(method, "PATCH");
}

/* Writes REQ to OUT, or counts only (OUT NULL); returns the length. Called twice with the same result. */
static size_t write_request(const struct http_client *c, const struct http_request *req, char *out)
{
        struct writer w = {.at = out};
        char length[32];

        put(&w, str_of(req->method));
        put(&w, STR(" "));
        put(&w, str_of(c->prefix));
        put(&w, str_of(req->target));
        put(&w, STR(" HTTP/1.1\r\n"));
        put(&w, str_of(c->fixed));
        for (size_t i = 0; i < req->headers.n; i++)
                put_header(&w, req->headers.v[i].name, req->headers.v[i].value);
        if (req->body.p || has_body_by_nature(req->method)) {
                int n = snprintf(length, sizeof(length), "%zu", req->body.n);

                put_header(&w, STR("Content-Length"), str_n(length, (size_t)n));
        }
        put(&w, STR("\r\n"));
        put(&w, req->body);
        return w.n;
}

static const char *const our_headers[] = {
        "Host", "User-Agent", "Content-Length", "Connection", "Transfer-Encoding", "Expect", "Upgrade",
};

static int check_header(const struct http_header *h, struct err *err)
{
        if (!http_is_token(h->name))
                return err_set(err, E_INVALID, "request has a malformed header name");
        if (!http_is_value(h->value))
                return err_set(err, E_INVALID, "value of header '%.*s' has control characters",
                               STR_ARG(h->name));
        for (size_t i = 0; i < ARRAY_LEN(our_headers); i++)
                if (str_case_eq(h->name, str_of(our_headers[i])))
                        return err_set(err, E_INVALID, "header '%s' is not the caller's to set",
                                       our_headers[i]);
        return 0;
}

/* Nothing a caller passes can become a second header or a second request. */
static int check_request(const struct http_request *req, struct err *err)
{
        struct str target = str_of(req->target);

        if (!http_is_token(str_of(req->method)))
                return err_set(err, E_INVALID, "request has a malformed method");
        if (!http_is_target(target) || target.n == 0 || target.p[0] != '/')
                return err_set(err, E_INVALID, "request target is not a path of encoded characters");
        for (size_t i = 0; i < req->headers.n; i++)
                if (check_header(&req->headers.v[i], err) < 0)
                        return -1;
        return 0;
}

/* ---- calls */

static void call_free(struct http_call *call)
{
        mem_wipe(call->text, call->n); /* the Authorization header is in it */
        free(call->failed);
        free(call);
}

void call_end(struct http_call *call, const struct http_answer *answer, const struct err *err)
{
        timer_cancel(&call->timer);
        list_remove(&call->node);
        call->over = true;
        call->handlers.on_end(call->arg, answer, err);
        call_free(call);
}

void http_call_cancel(struct http_call *call)
{
        if (!call || call->over)
                return;
        timer_cancel(&call->timer);
        list_remove(&call->node);
        if (call->conn) {
                call->conn->call = NULL;
                client_conn_close(call->conn);
        }
        call_free(call);
}

static void call_timer(struct timer *t)
{
        struct http_call *call = CONTAINER_OF(t, struct http_call, timer);
        struct http_client *c = call->client;
        struct err err = ERR_INIT;
        usec_t silent = usec_sub(loop_now(c->loop), call->last_data);

        if (call->head_seen && (call->paused || silent < call->idle_timeout)) {
                /* data came since the timer was set; it is moved only now, not with every piece */
                timer_after(t, call->paused ? call->idle_timeout : call->idle_timeout - silent);
                return;
        }
        if (call->head_seen)
                err_set(&err, E_TIMEOUT, "stream from %s was silent for %.3g s", c->peer,
                        (double)call->idle_timeout / (double)USEC_PER_SEC);
        else if (!call->sent)
                err_set(&err, E_TIMEOUT, "request to %s timed out before it was sent", c->peer);
        else
                err_set(&err, E_TIMEOUT, "no answer from %s in time", c->peer);
        if (call->conn)
                client_conn_fail(call->conn, &err);
        else
                call_end(call, NULL, &err);
}

static void schedule(struct http_client *c);

struct http_call *http_start(struct http_client *c, const struct http_request *req,
                             const struct http_handlers *handlers, void *arg)
{
        struct err err = ERR_INIT;
        bool bad = check_request(req, &err) < 0;
        size_t n = bad ? 0 : write_request(c, req, NULL);
        struct http_call *call = xmalloc(sizeof(*call) + n);

        *call = (struct http_call){
                .client = c,
                .handlers = *handlers,
                .arg = arg,
                .may_send = req->may_send,
                .may_send_arg = req->may_send_arg,
                .idle_timeout = req->stream ? req->idle_timeout : 0,
                .stream = req->stream,
                .alone = req->stream && !req->pooled,
                .n = n,
                .failed = bad ? xmemdup(&err, sizeof(err)) : NULL,
        };
        if (!bad) {
                call->head_method = streq(req->method, "HEAD");
                write_request(c, req, call->text);
        }
        timer_init(&call->timer, c->loop, call_timer);
        timer_after(&call->timer, req->timeout ? req->timeout : 60 * USEC_PER_SEC);
        list_append(call->alone ? &c->waiting_alone : &c->waiting, &call->node);
        schedule(c);
        return call;
}

void http_call_pause(struct http_call *call, bool pause)
{
        if (call->over || call->paused == pause)
                return;
        call->paused = pause;
        call->last_data = loop_now(call->client->loop);
        if (!call->conn || call->conn->state != CONN_BUSY)
                return;
        if (pause)
                conn_pause(&call->conn->conn, true);
        else
                client_conn_resume(call->conn);
}

bool http_call_was_reused(const struct http_call *call)
{
        return call->reused;
}

bool http_call_was_sent(const struct http_call *call)
{
        return call->sent;
}

uint64_t http_call_sent_at(const struct http_call *call)
{
        return call->sent ? call->sent_at : 0;
}

uint64_t http_call_received_at(const struct http_call *call, bool *ret_stamped)
{
        const struct conn *conn = call->conn ? &call->conn->conn : NULL;
        bool timed = conn && conn->timed;

        if (ret_stamped)
                *ret_stamped = timed && conn->received && conn->stamped;
        return timed ? conn->received : clock_boot_ns(loop_clock(call->client->loop));
}

/* ---- the pool */

static struct http_call *first_call(struct list *list)
{
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that a call that ends leaves the list */
        return list_empty(list) ? NULL : CONTAINER_OF(list->next, struct http_call, node);
}

static struct client_conn *first_conn(struct list *list)
{
        return list_empty(list) ? NULL : CONTAINER_OF(list->next, struct client_conn, node);
}

static bool ends_at_once(struct http_call *call)
{
        if (!call->failed)
                return false;
        call_end(call, NULL, call->failed);
        return true;
}

static void begin_call(struct http_client *c, struct http_call *call)
{
        list_remove(&call->node);
        list_append(&c->calls, &call->node);
}

/* Gives waiting calls a connection, as far as there are any. */
static void pump(struct defer *d)
{
        struct http_client *c = CONTAINER_OF(d, struct http_client, pump);
        struct http_call *call;
        struct client_conn *cc;

        while (!c->dead && (call = first_call(&c->waiting_alone))) {
                if (ends_at_once(call))
                        continue;
                begin_call(c, call);
                client_conn_open(c, call);
        }
        while (!c->dead && (call = first_call(&c->waiting))) {
                if (ends_at_once(call))
                        continue;
                cc = first_conn(&c->idle);
                if (!cc && c->n_connections >= c->max_connections)
                        return;
                begin_call(c, call);
                if (cc) {
                        c->n_idle--;
                        cc->state = CONN_BUSY;
                        list_remove(&cc->node);
                        list_append(&c->busy, &cc->node);
                        client_conn_carry(cc, call);
                } else {
                        client_conn_open(c, call);
                }
        }
}

static void schedule(struct http_client *c)
{
        defer_run(c->loop, &c->pump, pump);
}

void client_conn_put_back(struct client_conn *cc)
{
        struct http_client *c = cc->client;
        bool alone = list_empty(&c->idle);

        if (cc->generation != c->generation) {
                client_conn_close(cc);
                return;
        }
        cc->state = CONN_IDLE;
        c->n_idle++;
        cc->idle_since = loop_now(c->loop);
        list_remove(&cc->node);
        list_prepend(&c->idle, &cc->node);
        /* One that is used now and then, and alone, never wakes anybody. */
        if (alone || !timer_pending(&c->idle_timer))
                timer_after(&c->idle_timer, c->idle_timeout);
        if (!list_empty(&c->waiting))
                schedule(c);
}

void client_connect_ahead(struct http_client *c)
{
        /* Some at a time: a server's queue of connections is short, and what it drops comes again a second later. */
        while (!c->dead && c->n_connections < c->wanted && c->n_ahead < AHEAD_MAX)
                client_conn_open(c, NULL);
}

void http_client_connect(struct http_client *c, unsigned n)
{
        c->wanted = MIN(n, c->max_connections);
        client_connect_ahead(c);
}

unsigned http_client_idle(const struct http_client *c)
{
        return c->n_idle;
}

static void close_all(struct list *connections)
{
        struct client_conn *cc;

        while ((cc = first_conn(connections))) {
                cc->call = NULL;
                client_conn_close(cc);
        }
}

/* One timer for all: the one unused longest is last. */
static void close_unused(struct timer *t)
{
        struct http_client *c = CONTAINER_OF(t, struct http_client, idle_timer);

        while (!list_empty(&c->idle)) {
                struct client_conn *last = CONTAINER_OF(c->idle.prev, struct client_conn, node);
                usec_t due = usec_add(last->idle_since, c->idle_timeout);

                if (due > loop_now(c->loop)) {
                        timer_at(t, due);
                        return;
                }
                client_conn_close(last);
        }
}

/* ---- the client */

static int set_proxy(struct http_client *c, const char *text, struct err *err)
{
        struct url url;

        if (url_parse(str_of(text), &url, err) < 0)
                return err_wrap(err, "proxy");
        if (url.tls)
                return err_set(err, E_CONFIG, "proxy: https:// proxies are not supported, use http://");
        c->proxy_host = xstrndup(url.host.p, url.host.n);
        c->proxy_port = url.port;
        if (url.user.n) {
                struct buf line = BUF_INIT(4096), plain = BUF_INIT(2048);
                _cleanup_(arena_done) struct arena a = ARENA_INIT;
                char *user = http_percent_decode(url.user, false, &a);

                if (user)
                        buf_adds(&plain, user);
                buf_adds(&line, "Proxy-Authorization: Basic ");
                buf_add_base64(&line, buf_str(&plain));
                buf_adds(&line, "\r\n");
                c->proxy_auth = buf_take(&line);
                if (user)
                        mem_wipe(user, strlen(user));
                if (plain.p)
                        mem_wipe(plain.p, plain.n);
                buf_done(&plain);
                buf_done(&line);
                if (!user || !c->proxy_auth)
                        return err_set(err, E_CONFIG, "proxy: malformed user or password in the URL");
        }
        return 0;
}

static int set_origin(struct http_client *c, const struct http_client_config *config, struct err *err)
{
        struct url url;
        bool v6, plain_port;

        if (url_parse(str_of(config->url), &url, err) < 0)
                return err_wrap(err, "server");
        if (url.user.n)
                return err_set(err, E_CONFIG, "server: a user in the URL is not supported");
        if (url.tls && !config->tls)
                return err_set(err, E_CONFIG, "server: https:// without TLS settings");
        if (config->user_agent && !http_is_value(str_of(config->user_agent)))
                return err_set(err, E_CONFIG, "the user agent has control characters");
        while (url.path.n && url.path.p[url.path.n - 1] == '/')
                url.path.n--;
        v6 = memchr(url.host.p, ':', url.host.n) != NULL;
        plain_port = url.port == (url.tls ? 443 : 80);
        c->host = xstrndup(url.host.p, url.host.n);
        c->port = url.port;
        c->prefix = xstrndup(url.path.p, url.path.n);
        c->peer = xasprintf(v6 ? "[%s]:%u" : "%s:%u", c->host, c->port);
        c->fixed = xasprintf("Host: %.*s\r\nUser-Agent: %s\r\n",
                             plain_port ? (int)(strrchr(c->peer, ':') - c->peer) : (int)strlen(c->peer),
                             c->peer, config->user_agent ? config->user_agent : "sonde");
        c->tls = url.tls ? tls_ref(config->tls) : NULL;
        return 0;
}

static void free_client(struct defer *d)
{
        struct http_client *c = CONTAINER_OF(d, struct http_client, free_later);

        tls_unref(c->tls);
        free(c->host);
        free(c->prefix);
        free(c->peer);
        free(c->fixed);
        free(c->proxy_host);
        if (c->proxy_auth)
                mem_wipe(c->proxy_auth, strlen(c->proxy_auth));
        free(c->proxy_auth);
        free(c);
}

struct http_client *http_client_new(struct loop *loop, const struct http_client_config *config,
                                    struct err *err)
{
        struct http_client *c = xcalloc(1, sizeof(*c));

        c->loop = loop;
        c->max_connections = config->max_connections ? config->max_connections : 8;
        c->connect_timeout = config->connect_timeout ? config->connect_timeout : 10 * USEC_PER_SEC;
        c->dead_after = config->dead_after ? config->dead_after : 30 * USEC_PER_SEC;
        c->idle_timeout = config->idle_timeout ? config->idle_timeout : 55 * USEC_PER_SEC;
        c->limits = http_limits_or_default(&config->limits);
        c->stamps = config->stamps;
        c->addresses = config->addresses;
        list_init(&c->waiting);
        list_init(&c->waiting_alone);
        list_init(&c->calls);
        list_init(&c->idle);
        list_init(&c->busy);
        timer_init(&c->idle_timer, loop, close_unused);
        c->pump.fn = pump;
        if (set_origin(c, config, err) < 0 || (config->proxy && set_proxy(c, config->proxy, err) < 0)) {
                free_client(&c->free_later);
                return NULL;
        }
        return c;
}

static void forget_calls(struct list *calls)
{
        struct http_call *call;

        while ((call = first_call(calls))) {
                call->conn = NULL;
                http_call_cancel(call);
        }
}

void http_client_free(struct http_client *c)
{
        if (!c || c->dead)
                return;
        c->dead = true;
        close_all(&c->idle);
        close_all(&c->busy);
        forget_calls(&c->waiting);
        forget_calls(&c->waiting_alone);
        forget_calls(&c->calls);
        timer_cancel(&c->idle_timer);
        defer_cancel(&c->pump);
        /* after its connections, and after whoever called from a callback has returned */
        defer_run(c->loop, &c->free_later, free_client);
}

void http_client_set_tls(struct http_client *c, struct tls *tls)
{
        if (!c->tls || c->tls == tls)
                return;
        tls_ref(tls);
        tls_unref(c->tls);
        c->tls = tls;
        c->generation++;
        close_all(&c->idle);
}
