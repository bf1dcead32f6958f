#include "net/server_private.h"

/* ---- the request */

struct str http_method(const struct http_exchange *ex)
{
        return ex->method;
}

struct str http_path(const struct http_exchange *ex)
{
        return ex->path;
}

struct str http_query(const struct http_exchange *ex)
{
        return ex->query;
}

const struct http_headers *http_request_headers(const struct http_exchange *ex)
{
        return &ex->headers;
}

struct str http_body(const struct http_exchange *ex)
{
        return buf_str(&ex->body);
}

struct loop *http_loop(const struct http_exchange *ex)
{
        return conn_of(ex)->server->loop;
}

bool http_is_plain(const struct http_exchange *ex)
{
        return !conn_of(ex)->conn.tls;
}

struct str http_client_subject(const struct http_exchange *ex)
{
        struct server_conn *sc = conn_of(ex);

        if (!sc->subject && sc->conn.tls) {
                _cleanup_(buf_done) struct buf text = BUF_INIT(4096);

                if (tls_subject(sc->conn.tls, &text))
                        sc->subject = buf_take(&text);
        }
        return sc->subject ? str_of(sc->subject) : STR_NULL;
}

bool http_query_next(struct str *query, struct arena *a, const char **ret_name, const char **ret_value)
{
        while (query->n) {
                struct str value = str_split(query, '&'), name = str_split(&value, '=');

                *ret_name = http_percent_decode(name, true, a);
                if (!*ret_name)
                        continue;
                *ret_value = http_percent_decode(value.p ? value : STR(""), true, a);
                if (*ret_value && !utf8_valid(*ret_value, strlen(*ret_value)))
                        *ret_value = NULL;
                return true;
        }
        return false;
}

const char *http_query_param(const struct http_exchange *ex, const char *name, struct arena *a)
{
        struct str rest = ex->query;
        const char *key, *value;

        while (http_query_next(&rest, a, &key, &value))
                if (streq(key, name))
                        return value;
        return NULL;
}

char *url_decode(struct str s, struct arena *a)
{
        return http_percent_decode(s, false, a);
}

/* ---- the head of an answer */

static void add_uint(struct buf *b, uint64_t v)
{
        char digits[20], *at = digits + sizeof(digits);

        do
                *--at = (char)('0' + v % 10);
        while (v /= 10);
        buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

/* "Date: Sun, 06 Nov 1994 08:49:37 GMT" and a line end, made once a second. */
static const char *date_line(struct http_server *s)
{
        static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
        static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        usec_t second = loop_wall(s->loop) / USEC_PER_SEC;
        time_t now = (time_t)second;
        struct tm tm;

        if (second != s->date_second || !s->date[0]) {
                s->date_second = second;
                gmtime_r(&now, &tm);
                snprintf(s->date, sizeof(s->date), "Date: %s, %02u %s %04u %02u:%02u:%02u GMT\r\n",
                         days[tm.tm_wday], (unsigned)tm.tm_mday % 100, months[tm.tm_mon],
                         ((unsigned)tm.tm_year + 1900) % 10000, (unsigned)tm.tm_hour % 100,
                         (unsigned)tm.tm_min % 100, (unsigned)tm.tm_sec % 100);
        }
        return s->date;
}

static void add_header(struct buf *out, struct str name, struct str value)
{
        /* A value with control characters could become a header of its own: it is left out. */
        if (!http_is_token(name) || !http_is_value(value))
                return;
        buf_addstr(out, name);
        buf_add(out, ": ", 2);
        buf_addstr(out, value);
        buf_add(out, "\r\n", 2);
}

static bool has_no_content(int status)
{
        return status == 204 || status == 304 || status < 200;
}

static void add_head(struct server_conn *sc, int status, const struct http_headers *headers,
                     const char *content_type)
{
        struct buf *out = &sc->conn.out;
        struct http_exchange *ex = &sc->ex;

        buf_add(out, "HTTP/1.1 ", 9);
        add_uint(out, (uint64_t)MAX(status, 0));
        buf_addc(out, ' ');
        buf_adds(out, http_status_text(status));
        buf_add(out, "\r\n", 2);
        buf_adds(out, date_line(sc->server));
        if (content_type)
                add_header(out, STR("Content-Type"), str_of(content_type));
        for (size_t i = 0; i < headers->n; i++)
                add_header(out, headers->v[i].name, headers->v[i].value);
        if (!ex->keep_alive || sc->server->draining)
                buf_adds(out, "Connection: close\r\n");
        else if (ex->http10)
                buf_adds(out, "Connection: keep-alive\r\n");
}

void exchange_answer(struct server_conn *sc, int status, const struct http_headers *headers,
                     const char *content_type, struct str body)
{
        struct buf *out = &sc->conn.out;

        if (sc->conn.fd < 0 || sc->conn.broken)
                return;
        buf_reserve(out, body.n + 512);
        add_head(sc, status, headers, content_type);
        if (!has_no_content(status)) {
                buf_adds(out, "Content-Length: ");
                add_uint(out, body.n);
                buf_add(out, "\r\n", 2);
        }
        buf_add(out, "\r\n", 2);
        if (!has_no_content(status) && !sc->ex.no_body)
                buf_addstr(out, body);
}

/* ---- the answer, whole */

static void answer(struct http_exchange *ex, int status, const struct http_headers *headers,
                   const char *content_type, struct str body)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_OPEN)
                return;
        ex->state = EX_DONE;
        ex->on_gone = NULL;
        exchange_answer(sc, status, headers, content_type, body);
        server_conn_step(sc);
}

void http_reply(struct http_exchange *ex, int status, const char *content_type, struct str body)
{
        answer(ex, status, &(struct http_headers){0}, content_type, body);
}

void http_reply_headers(struct http_exchange *ex, int status, const struct http_headers *headers,
                        struct str body)
{
        answer(ex, status, headers, NULL, body);
}

void http_reply_shared(struct http_exchange *ex, int status, const struct http_headers *headers,
                       struct http_text *text)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_OPEN)
                return;
        ex->state = EX_DONE;
        ex->on_gone = NULL;
        if (sc->conn.fd >= 0 && !sc->conn.broken) {
                add_head(sc, status, headers, NULL);
                buf_printf(&sc->conn.out, "Content-Length: %zu\r\n\r\n", text->text.n);
                if (!ex->no_body && text->text.n) {
                        sc->shared = http_text_ref(text);
                        sc->shared_at = 0;
                }
        }
        server_conn_step(sc);
}

struct http_text *http_text_new(struct buf *text)
{
        struct http_text *t = xcalloc(1, sizeof(*t));

        t->refs = 1;
        t->text = *text;
        *text = (struct buf)BUF_INIT(text->max);
        return t;
}

struct http_text *http_text_ref(struct http_text *t)
{
        t->refs++;
        return t;
}

void http_text_unref(struct http_text *t)
{
        if (!t || --t->refs)
                return;
        buf_done(&t->text);
        free(t);
}

void http_on_abandon(struct http_exchange *ex, void (*fn)(void *arg), void *arg)
{
        if (ex->state != EX_OPEN)
                return;
        ex->on_gone = fn;
        ex->gone_arg = arg;
}

/* ---- the answer, as a stream */

void http_stream_start(struct http_exchange *ex, int status, const struct http_headers *headers,
                       void (*on_close)(void *arg), void *arg)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_OPEN)
                return;
        ex->state = EX_STREAM;
        ex->on_gone = on_close;
        ex->gone_arg = arg;
        if (sc->conn.fd < 0 && on_close) {
                sc->cut = true; /* the peer has gone already: say so at the end of the turn */
                server_conn_step(sc);
                return;
        }
        if (ex->http10)
                ex->keep_alive = false; /* the end of the connection is the end of the answer */
        if (has_no_content(status))
                ex->no_body = true;
        if (sc->conn.fd < 0 || sc->conn.broken)
                return;
        buf_reserve(&sc->conn.out, 512);
        add_head(sc, status, headers ? headers : &(struct http_headers){0}, NULL);
        buf_adds(&sc->conn.out,
                 ex->http10 || has_no_content(status) ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
        server_conn_step(sc);
}

/* Adds DATA to what waits, in the form of a chunk. */
static void add_chunk(struct server_conn *sc, struct str data)
{
        static const char digits[] = "0123456789abcdef";
        char size[18], *at = size + sizeof(size);
        struct buf *out = &sc->conn.out;

        if (sc->ex.http10) {
                buf_addstr(out, data);
                return;
        }
        *--at = '\n';
        *--at = '\r';
        for (size_t n = data.n; n; n >>= 4)
                *--at = digits[n & 15];
        buf_reserve(out, data.n + sizeof(size) + 2);
        buf_add(out, at, (size_t)(size + sizeof(size) - at));
        buf_addstr(out, data);
        buf_add(out, "\r\n", 2);
}

/* What its reader has let wait. The first piece does not count, be it as large as it is: it was asked for. */
static size_t backlog_of(const struct server_conn *sc)
{
        return MIN(conn_unsent(&sc->conn), sc->ex.behind_first);
}

void http_stream_write(struct http_exchange *ex, struct str data)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_STREAM || ex->no_body || data.n == 0 || sc->conn.fd < 0 || sc->conn.broken ||
            sc->cut)
                return;
        /* What was written in this turn alone does not make a slow reader. */
        if (backlog_of(sc) + data.n > sc->server->backlog)
                conn_flush(&sc->conn);
        if (backlog_of(sc) && backlog_of(sc) + data.n > sc->server->backlog)
                sc->cut = true;
        else if (!sc->conn.broken)
                add_chunk(sc, data);
        if (ex->has_first)
                ex->behind_first += data.n;
        ex->has_first = true;
        server_conn_step(sc);
}

void http_stream_flush(struct http_exchange *ex)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state == EX_STREAM && !sc->cut)
                conn_flush(&sc->conn);
}

void http_stream_end(struct http_exchange *ex)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_STREAM)
                return;
        if (!ex->http10 && !ex->no_body && sc->conn.fd >= 0 && !sc->conn.broken)
                buf_adds(&sc->conn.out, "0\r\n\r\n");
        ex->state = EX_DONE;
        ex->on_gone = NULL;
        server_conn_step(sc);
}

void http_stream_abort(struct http_exchange *ex)
{
        struct server_conn *sc = conn_of(ex);

        if (ex->state != EX_STREAM && ex->state != EX_OPEN)
                return;
        ex->state = EX_DONE;
        ex->on_gone = NULL;
        sc->cut = true;
        server_conn_step(sc);
}
