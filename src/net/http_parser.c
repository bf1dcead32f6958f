#include "net/http_private.h"

/*
 * Before llhttp sees a head it goes through a scanner of our own, which knows nothing but line ends: every line ends
 * in CR LF, none begins with a blank, none holds a NUL, and the whole stays within its limit. What two parsers agree
 * upon cannot be smuggled past one of them.
 */
enum scan { SCAN_START, SCAN_LINE, SCAN_CR, SCAN_BEGIN, SCAN_LAST_CR, SCAN_DONE };

/* The first byte from AT that is more than the text of a line. */
static const char *skip_text(const char *at, const char *end)
{
        static const char special[] = {'\r', '\n', '\0'};

        for (size_t i = 0; i < sizeof(special); i++) {
                const char *found = memchr(at, special[i], (size_t)(end - at));

                end = found ? found : end;
        }
        return end;
}

static const char *scan_head(struct http_parser *p, struct str data)
{
        const char *at = data.p, *end = data.p + data.n;

        for (; at < end && p->scan != SCAN_DONE; at++) {
                char c;

                if (p->scan == SCAN_LINE)
                        at = skip_text(at, end);
                if (at == end)
                        break;
                c = *at;
                if (c == '\0')
                        return "a NUL byte in the head";
                switch ((enum scan)p->scan) {
                case SCAN_START: /* empty lines before a request are tolerated (RFC 9112, 2.2) */
                        if (c != '\r' && c != '\n')
                                p->scan = SCAN_LINE;
                        break;
                case SCAN_LINE:
                        if (c == '\n')
                                return "a line feed without carriage return";
                        if (c == '\r')
                                p->scan = SCAN_CR;
                        break;
                case SCAN_CR:
                        if (c != '\n')
                                return "a carriage return without line feed";
                        p->scan = SCAN_BEGIN;
                        break;
                case SCAN_BEGIN:
                        if (c == ' ' || c == '\t')
                                return "a folded header";
                        if (c == '\n')
                                return "a line feed without carriage return";
                        p->scan = c == '\r' ? SCAN_LAST_CR : SCAN_LINE;
                        break;
                case SCAN_LAST_CR:
                        if (c != '\n')
                                return "a carriage return without line feed";
                        p->scan = SCAN_DONE;
                        break;
                case SCAN_DONE:
                        break;
                }
        }
        p->taken += (size_t)(at - data.p);
        return NULL;
}

void http_head_done(struct http_head *h)
{
        /* It may hold a bearer token. */
        if (h->text.p)
                mem_wipe(h->text.p, h->text.n);
        buf_done(&h->text);
        free(h->v);
        *h = (struct http_head){.text.max = h->text.max};
}

/* ---- llhttp's callbacks */

static struct http_parser *parser_of(llhttp_t *ll)
{
        return CONTAINER_OF(ll, struct http_parser, ll);
}

static int add_text(struct http_parser *p, const char *at, size_t n)
{
        /* The scanner has bounded the head; this cannot overflow before it does. */
        buf_add(&p->head.text, at, n);
        return 0;
}

static int on_url(llhttp_t *ll, const char *at, size_t n)
{
        struct http_parser *p = parser_of(ll);

        p->head.target += n;
        return add_text(p, at, n);
}

static int on_field(llhttp_t *ll, const char *at, size_t n)
{
        struct http_parser *p = parser_of(ll);
        struct http_head *h = &p->head;

        if (p->head_seen)
                return 0; /* trailers are not used */
        if (h->n == 0 || p->in_value) {
                if (h->n == p->limits->headers) {
                        err_set(p->err, E_TOO_LARGE, "more than %zu headers", p->limits->headers);
                        return -1;
                }
                if (h->n == h->cap)
                        vec_grow_raw((void **)&h->v, h->n, &h->cap, sizeof(*h->v));
                h->v[h->n++] = (struct http_header){.name = {(const char *)(uintptr_t)h->text.n, 0}};
                p->in_value = false;
        }
        h->v[h->n - 1].name.n += n;
        return add_text(p, at, n);
}

static int on_value(llhttp_t *ll, const char *at, size_t n)
{
        struct http_parser *p = parser_of(ll);
        struct http_head *h = &p->head;

        if (p->head_seen)
                return 0;
        if (!p->in_value) {
                h->v[h->n - 1].value = str_n((const char *)(uintptr_t)h->text.n, 0);
                p->in_value = true;
        }
        h->v[h->n - 1].value.n += n;
        return add_text(p, at, n);
}

/* Turns offsets into pointers, now that the text will not move any more. */
static void settle_head(struct http_head *h)
{
        for (size_t i = 0; i < h->n; i++) {
                struct http_header *v = &h->v[i];

                v->name.p = h->text.p + (uintptr_t)v->name.p;
                v->value = str_trim(str_n(h->text.p + (uintptr_t)v->value.p, v->value.n));
        }
}

/* What llhttp lets pass. */
static const char *check_head(const struct http_parser *p)
{
        const struct http_head *h = &p->head;
        size_t codings = 0, lengths = 0;

        if (p->ll.http_major != 1 || p->ll.http_minor > 1)
                return "a version other than HTTP/1.0 and HTTP/1.1";
        if (p->ops->response && (p->ll.status_code < 100 || p->ll.status_code > 599))
                return "a status outside 100 to 599";
        for (size_t i = 0; i < h->n; i++) {
                if (h->v[i].name.n == 0)
                        return "a header without a name";
                if (str_case_eq(h->v[i].name, STR("content-length")))
                        lengths++;
                if (!str_case_eq(h->v[i].name, STR("transfer-encoding")))
                        continue;
                codings++;
                if (!str_case_eq(h->v[i].value, STR("chunked")))
                        return "a transfer coding other than chunked";
        }
        if (codings && p->ll.http_minor == 0)
                return "a transfer coding in HTTP/1.0";
        if (codings + lengths > 1)
                return "more than one header that gives the length of the body";
        return NULL;
}

static int act_on(enum http_verdict verdict)
{
        return verdict == GO_ON ? 0 : verdict == PAUSE ? HPE_PAUSED : HPE_USER;
}

static bool is_interim(const struct http_parser *p)
{
        return p->ops->response && p->ll.status_code < 200;
}

static int on_headers_complete(llhttp_t *ll)
{
        struct http_parser *p = parser_of(ll);
        enum http_verdict verdict;
        const char *bad;

        settle_head(&p->head);
        p->head_seen = true;
        bad = check_head(p);
        if (!bad && p->ops->response && ll->status_code == 101)
                bad = "a switch to another protocol";
        if (bad) {
                err_set(p->err, E_PROTOCOL, "%s", bad);
                return HPE_USER;
        }
        ll->upgrade = 0; /* offers to speak something else are ignored */
        if (is_interim(p)) {
                ll->flags |= F_SKIPBODY;
                return 0;
        }
        verdict = p->ops->on_head(p);
        if (p->no_body || (p->ops->response && (ll->status_code == 204 || ll->status_code == 304)))
                ll->flags |= F_SKIPBODY;
        p->taken = 0;
        return act_on(verdict);
}

static int on_body(llhttp_t *ll, const char *at, size_t n)
{
        struct http_parser *p = parser_of(ll);

        p->body_came = true;
        return act_on(p->ops->on_body(p, str_n(at, n)));
}

static int on_message_complete(llhttp_t *ll)
{
        struct http_parser *p = parser_of(ll);

        p->complete = true;
        p->keep_alive = llhttp_should_keep_alive(ll);
        return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
        .on_url = on_url,
        .on_header_field = on_field,
        .on_header_value = on_value,
        .on_headers_complete = on_headers_complete,
        .on_body = on_body,
        .on_message_complete = on_message_complete,
};

/* ---- feeding */

void http_parser_init(struct http_parser *p, const struct http_parser_ops *ops,
                      const struct http_limits *limits)
{
        *p = (struct http_parser){.ops = ops, .limits = limits, .head.text.max = limits->head};
        http_parser_reset(p);
}

void http_parser_done(struct http_parser *p)
{
        http_head_done(&p->head);
}

/* Ready for another head; TAKEN stays, so that interim answers share one limit. */
static void next_head(struct http_parser *p)
{
        llhttp_init(&p->ll, p->ops->response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
        buf_clear(&p->head.text);
        p->head.n = p->head.target = 0;
        p->scan = p->ops->response ? SCAN_LINE : SCAN_START;
        p->in_value = p->head_seen = p->complete = p->paused = p->keep_alive = false;
}

void http_parser_reset(struct http_parser *p)
{
        next_head(p);
        p->taken = 0;
        p->no_body = false;
}

static enum http_parse refuse(struct http_parser *p, enum err_code code, const char *why)
{
        err_set(p->err, code, "%s", why);
        return PARSE_BAD;
}

/* After the head: bytes that bring no body are chunk sizes, extensions and trailers. */
static bool too_much_framing(struct http_parser *p, size_t n)
{
        p->taken = p->body_came ? 0 : p->taken + n;
        return p->taken > p->limits->head;
}

static enum http_parse judge(struct http_parser *p, enum llhttp_errno e)
{
        switch (e) {
        case HPE_OK:
                return PARSE_MORE;
        case HPE_PAUSED:
                p->paused = true;
                return p->complete ? PARSE_DONE : PARSE_PAUSED;
        case HPE_USER:
        case HPE_CB_HEADERS_COMPLETE:
                return p->err->code == E_OK ? PARSE_STOPPED : PARSE_BAD;
        default:
                return refuse(p, E_PROTOCOL,
                              p->ll.reason && *p->ll.reason ? p->ll.reason : llhttp_errno_name(e));
        }
}

enum http_parse http_parser_feed(struct http_parser *p, struct str data, size_t *ret_used, struct err *err)
{
        const char *start = data.p;
        enum http_parse r;

        p->err = err;
        err->code = E_OK;
        do {
                bool in_head = p->scan != SCAN_DONE;
                enum llhttp_errno e;
                const char *bad;

                if (in_head && (bad = scan_head(p, data)))
                        return refuse(p, E_PROTOCOL, bad);
                if (in_head && p->taken > p->limits->head) {
                        err_set(err, E_TOO_LARGE, "a head of more than %zu bytes", p->limits->head);
                        return PARSE_BAD;
                }
                if (p->paused)
                        llhttp_resume(&p->ll);
                p->paused = p->body_came = false;
                e = llhttp_execute(&p->ll, data.p, data.n);
                r = judge(p, e);
                if (r == PARSE_BAD)
                        return r;
                if (e != HPE_OK) {
                        const char *at = llhttp_get_error_pos(&p->ll);

                        data = str_n(at, (size_t)(data.p + data.n - at));
                } else {
                        if (!in_head && too_much_framing(p, data.n))
                                return refuse(p, E_TOO_LARGE, "endless chunk extensions or trailers");
                        data = str_n(data.p + data.n, 0);
                }
                if (r == PARSE_DONE && is_interim(p)) {
                        next_head(p);
                        r = PARSE_MORE;
                }
        } while (r == PARSE_MORE && data.n);
        *ret_used = (size_t)(data.p - start);
        return r;
}

enum http_parse http_parser_eof(struct http_parser *p, struct err *err)
{
        p->err = err;
        err->code = E_OK;
        if (!p->head_seen || p->paused)
                return PARSE_MORE;
        return llhttp_finish(&p->ll) == HPE_PAUSED && p->complete ? PARSE_DONE : PARSE_MORE;
}
