/*
 * A relay lives from the request to the end of its answer. The exchange is the server's again as soon as the answer is
 * complete or aborted; the relay goes in the same moment, and its call with it.
 */
#include "lines.h"
#include "proxy.h"

enum { PIECE = 64 * 1024, HEADERS_MAX = 128 };

static const usec_t CUT_AFTER = 10 * USEC_PER_MS;

struct relay {
        struct proxy *proxy;
        struct list node;
        struct http_exchange *ex;
        struct http_call *call; /* NULL: not yet forwarded, or answered */
        struct fault fault;
        struct request request;
        struct arena arena; /* all strings below */
        const char *method, *target, *agent;
        struct timer timer;
        struct timer life; /* a stream's */

        bool closing;       /* only the end is still to come */
        bool stream;        /* the answer is passed on as it comes */
        bool started;       /* the client has the headers of the answer */
        bool ended, failed; /* the server has said all; or broke off */
        int status;
        struct http_headers headers;
        struct str body; /* whole answers that were delayed */
        struct lines *lines;
};

static void relay_free(struct relay *r)
{
        if (r->call)
                http_call_cancel(r->call);
        timer_cancel(&r->timer);
        timer_cancel(&r->life);
        list_remove(&r->node);
        lines_free(r->lines);
        arena_done(&r->arena);
        free(r);
}

void relay_free_all(struct proxy *p)
{
        list_foreach_safe (node, &p->relays)
                relay_free(CONTAINER_OF(node, struct relay, node));
}

static void report(struct relay *r, const char *event, const char *detail)
{
        report_write(r->proxy, &(struct report){
                                       .event = event,
                                       .number = r->request.number,
                                       .method = r->method,
                                       .target = r->target,
                                       .agent = r->agent,
                                       .class = class_name(r->request.class),
                                       .status = r->status,
                                       .fault = fault_name(r->fault.kind),
                                       .detail = detail,
                               });
}

static void took_effect(void *arg)
{
        struct relay *r = arg;

        r->proxy->counts[r->fault.kind]++;
        if (r->fault.kind == FAULT_ANSWER)
                r->proxy->answers[r->fault.code]++;
        report(r, "fault", NULL);
}

static void end_abort(struct relay *r)
{
        http_stream_abort(r->ex);
        relay_free(r);
}

static void on_abort_timer(struct timer *t)
{
        end_abort(CONTAINER_OF(t, struct relay, timer));
}

/* The same after what was written so far has left: an abort is a reset at once. */
static void end_cut(struct relay *r)
{
        if (r->call)
                http_call_cancel(TAKE_PTR(r->call));
        timer_cancel(&r->life);
        r->closing = true;
        timer_init(&r->timer, r->proxy->loop, on_abort_timer);
        timer_after(&r->timer, CUT_AFTER);
}

/* The client has gone. What was forwarded may still be carried out. */
static void on_gone(void *arg)
{
        struct relay *r = arg;

        if (r->call && r->request.class == CLASS_WRITE)
                report(r, "write", "the client has gone before the answer");
        relay_free(r);
}

/* ---- headers */

/* Belong to one connection, or are made anew by whoever sends. */
static const char *const hop_headers[] = {
        "connection", "keep-alive",        "proxy-connection", "te",
        "trailer",    "transfer-encoding", "upgrade",          "content-length",
        "host",       "user-agent",        "expect",           "accept-encoding",
        "date",
};

static bool is_hop(struct str name)
{
        for (size_t i = 0; i < ARRAY_LEN(hop_headers); i++)
                if (str_case_eq(name, str_of(hop_headers[i])))
                        return true;
        return false;
}

static struct str copy(struct relay *r, struct str s)
{
        return str_n(arena_strndup(&r->arena, s.p, s.n), s.n);
}

/* The name in one letter case. */
static struct str vary_name(struct relay *r, struct str name)
{
        char *p = arena_strndup(&r->arena, name.p, name.n);

        for (size_t i = 0; i < name.n; i++) {
                bool lower = p[i] >= 'a' && p[i] <= 'z', upper = p[i] >= 'A' && p[i] <= 'Z';

                if (r->fault.seed % 2 ? lower : upper)
                        p[i] = (char)(p[i] ^ 0x20);
        }
        return str_n(p, name.n);
}

/* What of FROM is passed on, with room for two more. */
static struct http_header *pass_headers(struct relay *r, const struct http_headers *from, size_t *ret_n)
{
        struct http_header *to = arena_new_array(&r->arena, struct http_header,
                                                 MIN(from->n, (size_t)HEADERS_MAX) + 2);

        *ret_n = 0;
        for (size_t i = 0; i < from->n && *ret_n < HEADERS_MAX; i++)
                if (!is_hop(from->v[i].name))
                        to[(*ret_n)++] = (struct http_header){copy(r, from->v[i].name),
                                                              copy(r, from->v[i].value)};
        return to;
}

static void keep_head(struct relay *r, const struct http_answer *answer)
{
        size_t n;
        struct http_header *v = pass_headers(r, &answer->headers, &n);

        if (r->fault.kind == FAULT_VARY) {
                for (size_t i = 0; i < n; i++)
                        v[i].name = vary_name(r, v[i].name);
                v[n++] = (struct http_header){STR("x-UNKNOWN_header"), STR("a, \"b;c\"; d=\t(e)")};
        }
        r->status = answer->status;
        r->headers = (struct http_headers){v, n};
}

/* ---- answers that are streams */

static void stream_apply(struct relay *r, enum lines_state state);

static void on_line_write(void *arg, struct str chunk)
{
        struct relay *r = arg;

        http_stream_write(r->ex, chunk);
}

static void on_line_wake(void *arg)
{
        struct relay *r = arg;

        if (!r->closing)
                stream_apply(r, lines_run(r->lines));
}

static const struct lines_ops line_ops = {
        .write = on_line_write, .on_wake = on_line_wake, .on_effect = took_effect};

static void stream_finish(struct relay *r)
{
        if (r->failed) {
                end_cut(r);
                return;
        }
        http_stream_end(r->ex);
        relay_free(r);
}

static void stream_apply(struct relay *r, enum lines_state state)
{
        if (state == LINES_GO_ON && r->ended)
                state = r->failed ? LINES_ABORT : lines_finish(r->lines);
        switch (state) {
        case LINES_GO_ON:
        case LINES_WAIT:
                if (r->call)
                        http_call_pause(r->call, state == LINES_WAIT);
                break;
        case LINES_ABORT:
                end_cut(r);
                break;
        case LINES_END:
                r->failed = false;
                stream_finish(r);
                break;
        }
}

static void on_life_end(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, life);

        if (!r->proxy->enabled)
                return;
        r->fault.kind = FAULT_CUT;
        took_effect(r);
        end_cut(r);
}

static void stream_open(struct relay *r)
{
        r->started = true;
        if (r->fault.life)
                timer_after(&r->life, r->fault.life);
        http_stream_start(r->ex, r->status, &r->headers, on_gone, r);
        if (r->fault.kind == FAULT_VARY)
                took_effect(r);
        if (lines_wanted(&r->fault)) {
                r->lines = lines_new(r->proxy->loop, &r->fault, &line_ops, r);
                stream_apply(r, lines_run(r->lines));
        } else if (r->ended) {
                stream_finish(r);
        } else if (r->call) {
                http_call_pause(r->call, false);
        }
}

static void on_open_timer(struct timer *t)
{
        stream_open(CONTAINER_OF(t, struct relay, timer));
}

static void on_head(void *arg, const struct http_answer *answer)
{
        struct relay *r = arg;

        keep_head(r, answer);
        if (r->fault.kind == FAULT_LOSE) {
                took_effect(r);
                end_abort(r);
        } else if (r->fault.kind == FAULT_DELAY_ANSWER) {
                took_effect(r);
                http_call_pause(r->call, true);
                timer_init(&r->timer, r->proxy->loop, on_open_timer);
                timer_after(&r->timer, r->fault.wait);
        } else {
                stream_open(r);
        }
}

static void on_data(void *arg, struct str chunk)
{
        struct relay *r = arg;

        if (r->lines)
                stream_apply(r, lines_feed(r->lines, chunk));
        else
                http_stream_write(r->ex, chunk);
}

/* ---- answers that are whole */

static void whole_through_lines(struct relay *r, struct str body)
{
        enum lines_state state;

        http_stream_start(r->ex, r->status, &r->headers, on_gone, r);
        r->lines = lines_new(r->proxy->loop, &r->fault, &line_ops, r);
        state = lines_run(r->lines);
        while (state == LINES_GO_ON && body.n) {
                size_t n = MIN(body.n, (size_t)PIECE);

                state = lines_feed(r->lines, str_n(body.p, n));
                body = str_n(body.p + n, body.n - n);
        }
        r->ended = true;
        stream_apply(r, state);
}

static void whole_reply(struct relay *r, struct str body)
{
        if (r->fault.kind == FAULT_CUT || r->fault.kind == FAULT_BYTES) {
                whole_through_lines(r, body);
                return;
        }
        if (r->fault.kind == FAULT_VARY) {
                took_effect(r);
                http_stream_start(r->ex, r->status, &r->headers, on_gone, r);
                for (size_t at = 0; at < body.n; at += 1000)
                        http_stream_write(r->ex, str_n(body.p + at, MIN(body.n - at, (size_t)1000)));
                http_stream_end(r->ex);
        } else {
                http_reply_headers(r->ex, r->status, &r->headers, body);
        }
        relay_free(r);
}

static void on_reply_timer(struct timer *t)
{
        struct relay *r = CONTAINER_OF(t, struct relay, timer);

        whole_reply(r, r->body);
}

static bool may_be_stale(const struct relay *r)
{
        return (r->request.class == CLASS_LIST || r->request.class == CLASS_GET) &&
               str_eq(query_value(r->request.query, "resourceVersion"), STR("0"));
}

static void whole_answer(struct relay *r, const struct http_answer *answer)
{
        keep_head(r, answer);
        if (r->request.class == CLASS_WRITE)
                report(r, "write", NULL);
        if (answer->status == 200 && may_be_stale(r))
                stale_keep(r->proxy->stale, loop_now(r->proxy->loop), str_of(r->target),
                           http_header(&answer->headers, "Content-Type"), answer->body);
        if (r->fault.kind == FAULT_LOSE) {
                took_effect(r);
                end_abort(r);
        } else if (r->fault.kind == FAULT_DELAY_ANSWER) {
                took_effect(r);
                r->body = copy(r, answer->body);
                timer_init(&r->timer, r->proxy->loop, on_reply_timer);
                timer_after(&r->timer, r->fault.wait);
        } else {
                whole_reply(r, answer->body);
        }
}

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct relay *r = arg;

        r->call = NULL;
        r->ended = true;
        r->failed = err != NULL;
        if (err) {
                r->proxy->errors++;
                report(r, r->request.class == CLASS_WRITE ? "write" : "error", err->text);
        }
        if (!r->stream && answer && !err)
                whole_answer(r, answer);
        else if (!r->stream || (!r->started && !timer_pending(&r->timer)))
                end_abort(r); /* no answer: as if the server had closed */
        else if (r->lines)
                stream_apply(r, lines_run(r->lines));
        else if (r->started)
                stream_finish(r);
}

/* ---- requests */

static bool follows(const struct relay *r)
{
        struct str follow = query_value(r->request.query, "follow");

        return r->request.class == CLASS_WATCH || (follow.p && !str_eq(follow, STR("false")));
}

static void forward(struct relay *r)
{
        static const struct http_handlers handlers = {
                .on_head = on_head, .on_data = on_data, .on_end = on_end};
        struct proxy *p = r->proxy;
        const char *ours = upstream_authorization(p->upstream);
        bool authorized = http_header(http_request_headers(r->ex), "Authorization").p;
        struct err err = ERR_INIT;
        struct http_request request = {.method = r->method,
                                       .target = r->target,
                                       .body = http_body(r->ex),
                                       .timeout = 120 * USEC_PER_SEC};
        struct http_header *headers = pass_headers(r, http_request_headers(r->ex), &request.headers.n);
        struct http_client *client = upstream_client(p->upstream, str_of(r->agent), authorized, &err);

        if (!client) {
                report(r, "error", err.text);
                end_abort(r);
                return;
        }
        if (!authorized && ours)
                headers[request.headers.n++] = (struct http_header){STR("Authorization"), str_of(ours)};
        request.headers.v = headers;
        if (request.body.n == 0)
                request.body = STR_NULL;
        r->stream = request.stream = follows(r);
        p->forwarded++;
        r->call = http_start(client, &request, &handlers, r);
}

static void on_forward_timer(struct timer *t)
{
        forward(CONTAINER_OF(t, struct relay, timer));
}

static void answer_status(struct relay *r)
{
        static const char *const types[BODY_KINDS_] = {"application/json", "text/html", NULL,
                                                       "application/json"};
        struct http_header headers[2];
        struct http_headers list = {headers, 0};
        _cleanup_(buf_done) struct buf body = BUF_INIT(4096);

        r->status = r->fault.code;
        fault_status_body(&r->fault, &body);
        if (types[r->fault.body])
                headers[list.n++] = (struct http_header){STR("Content-Type"), str_of(types[r->fault.body])};
        if (r->fault.retry_after >= 0)
                headers[list.n++] = (struct http_header){
                        STR("Retry-After"), str_of(arena_printf(&r->arena, "%d", r->fault.retry_after))};
        took_effect(r);
        http_reply_headers(r->ex, r->status, &list, buf_str(&body));
        relay_free(r);
}

static bool answer_stale(struct relay *r)
{
        struct http_header header = {.name = STR("Content-Type")};
        struct str body;

        if (!may_be_stale(r) ||
            !stale_find(r->proxy->stale, loop_now(r->proxy->loop), str_of(r->target), &header.value, &body))
                return false;
        r->status = 200;
        took_effect(r);
        http_reply_headers(r->ex, 200, &(struct http_headers){&header, 1}, body);
        relay_free(r);
        return true;
}

/* HTTP 200 and at once the ERROR line, without asking the server. */
static void answer_expired(struct relay *r)
{
        static const struct http_header header = {{"Content-Type", 12}, {"application/json", 16}};

        r->status = 200;
        r->headers = (struct http_headers){&header, 1};
        stream_open(r);
}

static void begin(struct relay *r)
{
        bool watch = r->request.class == CLASS_WATCH;

        switch (r->fault.kind) {
        case FAULT_DROP:
                took_effect(r);
                end_abort(r);
                return;
        case FAULT_ANSWER:
                answer_status(r);
                return;
        case FAULT_STALE:
                if (answer_stale(r))
                        return;
                break;
        case FAULT_SILENT:
                if (watch && r->fault.lines)
                        break;
                took_effect(r);
                timer_init(&r->timer, r->proxy->loop, on_abort_timer);
                if (r->fault.wait)
                        timer_after(&r->timer, r->fault.wait);
                return;
        case FAULT_EXPIRED:
                if (watch && r->fault.lines == 0) {
                        answer_expired(r);
                        return;
                }
                break;
        case FAULT_DELAY:
                took_effect(r);
                timer_init(&r->timer, r->proxy->loop, on_forward_timer);
                timer_after(&r->timer, r->fault.wait);
                return;
        default:
                break;
        }
        forward(r);
}

static struct fault decide(struct proxy *p, const struct request *request)
{
        struct fault f = {.kind = FAULT_NONE};

        if (p->enabled && p->script)
                f = script_decide(p->script, request);
        else if (p->enabled && p->seeded)
                f = seed_decide(p->seed, p->intensity, request);
        return f;
}

static struct relay *relay_new(struct proxy *p, struct http_exchange *ex)
{
        struct relay *r = xcalloc(1, sizeof(*r));
        struct str path = http_path(ex), query = http_query(ex), method = http_method(ex);
        struct str agent = http_header(http_request_headers(ex), "User-Agent");

        r->proxy = p;
        r->ex = ex;
        list_init(&r->node);
        list_append(&p->relays, &r->node);
        timer_init(&r->timer, p->loop, on_forward_timer);
        timer_init(&r->life, p->loop, on_life_end);
        r->method = arena_strndup(&r->arena, method.p, method.n);
        r->target = arena_printf(&r->arena, "%.*s%s%.*s", STR_ARG(path), query.n ? "?" : "", STR_ARG(query));
        r->agent = arena_strndup(&r->arena, agent.p ? agent.p : "", agent.n);
        r->request = (struct request){
                .number = ++p->requests,
                .method = str_of(r->method),
                .path = copy(r, path),
                .query = copy(r, query),
                .class = classify(method, path, query),
        };
        r->fault = decide(p, &r->request);
        return r;
}

void relay_start(struct proxy *p, struct http_exchange *ex)
{
        struct relay *r;

        if (http_header(http_request_headers(ex), "Upgrade").p) {
                http_reply(ex, 501, "text/plain", STR("the fault proxy forwards no upgrades\n"));
                return;
        }
        r = relay_new(p, ex);
        http_on_abandon(ex, on_gone, r);
        begin(r);
}
