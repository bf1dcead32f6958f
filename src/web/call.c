#include "web/internal.h"

#define KUBE_TIMEOUT (30 * USEC_PER_SEC)

static const char JSON_TYPE[] = "application/json";

static void on_abandon(void *arg)
{
        struct call *c = arg;

        c->ex = NULL;
        if (c->pieces) { /* nobody wants the rest, however long it is */
                kube_cancel(TAKE_PTR(c->pieces));
                call_free(c);
        }
}

/* SHARED NULL: TEXT is the body. */
static void answer(struct call *c, int status, const char *content_type, struct str text,
                   struct http_text *shared)
{
        const struct http_header headers[] = {
                {STR("Content-Type"), str_of(content_type)},
                {STR("Cache-Control"), STR("no-store")},
                {STR("X-Content-Type-Options"), STR("nosniff")},
                {STR("WWW-Authenticate"), STR("Bearer")},
        };

        const struct http_headers all = {headers, ARRAY_LEN(headers) - (status != 401)};

        if (c->ex && shared)
                http_reply_shared(c->ex, status, &all, shared);
        else if (c->ex)
                http_reply_headers(c->ex, status, &all, text);
        call_free(c);
}

void call_reply_text(struct call *c, int status, const char *content_type, struct str text)
{
        answer(c, status, content_type, text, NULL);
}

void call_reply_shared(struct call *c, const char *content_type, struct http_text *text)
{
        answer(c, 200, content_type, STR_NULL, text);
}

void call_reply(struct call *c, int status, const struct json *body)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(SIZE_MAX);

        json_write(body, JSON_COMPACT, &text);
        answer(c, status, JSON_TYPE, buf_str(&text), NULL);
}

void call_fail(struct call *c, int status, const char *fmt, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, fmt);
        text = arena_vprintf(&c->arena, fmt, ap);
        va_end(ap);
        call_reply(c, status, json_build(&c->arena, "{'detail': %s}", text));
}

void call_fail_field(struct call *c, const char *where, const char *name, const char *msg)
{
        struct json *wrong = json_array(&c->arena);

        fields_complain(wrong, &c->arena, where, name, "value_error", msg);
        call_reply(c, 422, json_build(&c->arena, "{'detail': %p}", (void *)wrong));
}

/* ---- with the API server */

void call_fail_kube(struct call *c, const struct kube_answer *from, const struct err *err)
{
        struct kube_status status;

        if (!from || from->status < 400) {
                call_fail(c, err->code == E_TIMEOUT ? 504 : 502, "the API server cannot be asked: %s",
                          err->text);
                return;
        }
        kube_status_error(&c->arena, from->status, from->body, KUBE_GET, &status, NULL);
        call_fail(c, from->status >= 500 ? 502 : from->status, "%s",
                  *status.message ? status.message : http_status_text(from->status));
}

static void on_kube(void *arg, const struct kube_answer *from, const struct err *err)
{
        struct call *c = arg;

        c->pieces = NULL;
        if (c->ex)
                c->next(c, from, err);
        else
                call_free(c);
}

static void on_piece(void *arg, struct str piece)
{
        struct call *c = arg;

        c->piece(c, piece);
}

void call_kube(struct call *c, const struct kube_request *request,
               void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err))
{
        struct kube_request r = *request;

        r.token = caller_token(c->caller);
        r.timeout = r.timeout ? r.timeout : KUBE_TIMEOUT;
        c->next = next;
        (void)kube_send(c->web->kube, &r, on_kube, c);
}

void call_kube_pieces(struct call *c, const struct kube_request *request,
                      void (*piece)(struct call *c, struct str piece),
                      void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err))
{
        struct kube_request r = *request;

        r.token = caller_token(c->caller);
        r.timeout = r.idle_timeout = KUBE_TIMEOUT;
        c->piece = piece;
        c->next = next;
        c->pieces = kube_stream(c->web->kube, &r, on_piece, on_kube, c);
}

struct json *call_object(struct call *c, const struct kube_answer *from)
{
        struct err err = ERR_INIT;
        struct json *object = json_parse(&c->arena, from->body, &KUBE_OBJECT_LIMITS, &err);

        if (!json_is(object, JSON_OBJECT)) {
                call_fail(c, 502, "the API server's answer cannot be read: %s",
                          object ? "it is no object" : err.text);
                return NULL;
        }
        return object;
}

const struct kind *call_kind(struct call *c)
{
        const struct kind *kind = kinds_named(str_of(c->params[0]));

        if (!kind)
                call_fail(c, 404, "there is no kind of run called '%s'", c->params[0]);
        return kind;
}

/* ---- life */

static void destroy(struct defer *d)
{
        struct call *c = CONTAINER_OF(d, struct call, over);

        arena_wipe(&c->arena); /* a body may have held a token */
        buf_done(&c->text);
        free(c);
}

/* At the end of the turn: whoever has answered in the middle of something may still look at what is in the arena. */
void call_free(struct call *c)
{
        if (c->web->cfg.history)
                history_cancel(c->web->cfg.history, c);
        list_remove(&c->node);
        timer_cancel(&c->timer);
        caller_unref(c->caller);
        defer_run(c->web->loop, &c->over, destroy);
}

static void on_timer(struct timer *t)
{
        struct call *c = CONTAINER_OF(t, struct call, timer);

        if (c->ex)
                c->next(c, NULL, NULL);
        else
                call_free(c);
}

void call_begin(struct web *w, struct http_exchange *ex, const struct endpoint *endpoint,
                const char *const params[PARAMS_MAX], struct arena *a, struct str token)
{
        struct call *c = xcalloc(1, sizeof(*c));
        struct json *wrong;

        *c = (struct call){.web = w, .ex = ex, .arena = *a, .endpoint = endpoint};
        list_init(&c->node);
        list_append(&w->calls, &c->node);
        timer_init(&c->timer, w->loop, on_timer);
        memcpy(c->params, params, sizeof(c->params));
        if (token.p)
                c->caller = caller_get(w, token);
        http_on_abandon(ex, on_abandon, c);
        wrong = json_array(&c->arena);
        c->query = fields_of_query(endpoint->query, http_query(ex), wrong, &c->arena);
        c->body = fields_of_body(endpoint->body, http_body(ex), wrong, &c->arena);
        if (json_first(wrong))
                call_reply(c, 422, json_build(&c->arena, "{'detail': %p}", (void *)wrong));
        else
                endpoint->serve(c);
}
