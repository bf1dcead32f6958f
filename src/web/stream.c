#include "web/internal.h"

/*
 * A stream begins with all that its caller may see, and goes on with every change of that. A change is written once as text and
 * goes to the streams of every caller who may see it; where that is not known any more, the change waits for the review that asks
 * (one for each caller, kind and namespace), and what is told then is the state of then.
 */
#define HEARTBEAT (15 * USEC_PER_SEC)

enum { TEXT_MAX = 64 << 20 };

struct stream {
        struct list node;      /* of the web's streams */
        struct list of_caller; /* of its caller's */
        struct web *web;
        struct http_exchange *ex;
        struct caller *caller;
        struct run_filter filter;
        struct arena arena; /* of the filter */
};

/* A change that waits until it is known whether its caller may see it; or a caller that waits to be known still. */
struct late {
        struct ask ask;
        size_t kind;
        char *ns, *name, *gone;
        char key[]; /* "KIND/NS/NAME", or "token" */
};

/* ---- life */

static void stream_free(struct stream *s)
{
        list_remove(&s->node);
        list_remove(&s->of_caller);
        caller_unref(s->caller);
        arena_done(&s->arena);
        free(s);
}

static void on_close(void *arg)
{
        stream_free(arg);
}

static struct late *late_new(struct caller *c, const char *key)
{
        size_t size = strlen(key) + 1;
        struct late *l = xcalloc(1, sizeof(*l) + size);

        memcpy(l->key, key, size);
        map_put(caller_late(c), str_of(l->key), l);
        return l;
}

static void late_free(struct late *l)
{
        map_remove(caller_late(l->ask.caller), str_of(l->key));
        free(l->ns);
        free(l->name);
        free(l->gone);
        free(l);
}

void streams_done(struct web *w)
{
        struct caller *c;

        timer_cancel(&w->heartbeat);
        while (!list_empty(&w->streams))
                /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not see that one that is freed leaves the list */
                stream_free(CONTAINER_OF(w->streams.next, struct stream, node));
        map_foreach (i, &w->callers, c) {
                struct late *l;
                size_t at = 0;

                while (map_next(caller_late(c), &at, (void **)&l)) {
                        late_free(l);
                        at = 0;
                }
        }
}

/* ---- telling */

struct news {
        struct web *web;
        size_t kind;
        const char *ns, *name;
        const char *gone;                /* its uid; NULL: it is there */
        const struct cache_entry *entry; /* of one that is there */
        struct buf run, end;             /* its texts, once somebody wants them */
};

static struct str run_text(struct news *n)
{
        const struct row *row;

        if (!n->run.n) {
                row = feed_row(n->web->feed, n->kind, n->entry);
                buf_adds(&n->run, "event: run\ndata: ");
                buf_add(&n->run, row->text, row->n);
                buf_adds(&n->run, "\n\n");
        }
        return buf_str(&n->run);
}

static struct str end_text(struct news *n)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        if (!n->end.n) {
                buf_adds(&n->end, "event: gone\ndata: ");
                json_write(json_build(&a, "{'uid': %s, 'resource': %s, 'namespace': %s, 'name': %s}",
                                      n->gone ? n->gone : n->entry->uid, kinds_at(n->kind)->label, n->ns,
                                      n->name),
                           JSON_COMPACT, &n->end);
                buf_adds(&n->end, "\n\n");
        }
        return buf_str(&n->end);
}

static void tell(struct caller *c, struct news *n)
{
        list_foreach_safe (node, caller_streams(c)) {
                struct stream *s = CONTAINER_OF(node, struct stream, of_caller);

                if (!feed_concerns(&s->filter, n->kind, n->ns))
                        continue;
                if (!n->gone && feed_passes(n->web->feed, &s->filter, n->kind, n->entry))
                        http_stream_write(s->ex, run_text(n));
                else
                        http_stream_write(s->ex, end_text(n));
        }
}

/* ---- what is not known any more */

static void end_streams(struct caller *c)
{
        while (!list_empty(caller_streams(c))) {
                struct stream *s = CONTAINER_OF(caller_streams(c)->next, struct stream, of_caller);

                http_stream_end(s->ex);
                stream_free(s);
        }
}

static void on_known(struct ask *ask)
{
        struct late *l = CONTAINER_OF(ask, struct late, ask);
        struct caller *c = ask->caller;
        struct news n = {.web = ask->web,
                         .kind = l->kind,
                         .ns = l->ns,
                         .name = l->name,
                         .run = BUF_INIT(TEXT_MAX),
                         .end = BUF_INIT(TEXT_MAX)};

        if (ask->status == 401) {
                end_streams(c); /* it asks again, and is told why */
        } else if (!ask->status && caller_sees(c, l->kind, l->ns)) {
                n.gone = l->gone;
                n.entry = cache_get(feed_cache(ask->web->feed, l->kind), l->ns, l->name);
                if (n.gone)
                        tell(c, &n);
                n.gone = NULL;
                buf_clear(&n.end);
                if (n.entry)
                        tell(c, &n);
        }
        buf_done(&n.run);
        buf_done(&n.end);
        late_free(l);
        caller_unref(c);
}

static void want_own(struct ask *ask)
{
        const struct late *l = CONTAINER_OF(ask, struct late, ask);

        ask_want(ask, l->kind, l->ns);
}

static void wait_for(struct caller *c, const struct news *n)
{
        _cleanup_(free_ptr) char *key = xasprintf("%zu/%s/%s", n->kind, n->ns, n->name);
        struct late *l = map_get(caller_late(c), str_of(key));

        if (l) { /* the last state wins */
                if (n->gone && !l->gone)
                        l->gone = xstrdup(n->gone);
                return;
        }
        l = late_new(c, key);
        l->kind = n->kind;
        l->ns = xstrdup(n->ns);
        l->name = xstrdup(n->name);
        l->gone = xstrdup(n->gone);
        l->ask = (struct ask){.web = n->web,
                              .caller = caller_ref(c),
                              .kinds = 1u << n->kind,
                              .each = want_own,
                              .done = on_known};
        caller_ask(&l->ask);
}

static bool concerns_any(struct caller *c, size_t kind, const char *ns)
{
        list_foreach (node, caller_streams(c))
                if (feed_concerns(&CONTAINER_OF(node, struct stream, of_caller)->filter, kind, ns))
                        return true;
        return false;
}

static void spread(struct news *n)
{
        struct caller *c;
        VEC(struct caller *) unsure = {0};

        map_foreach (i, &n->web->callers, c) {
                int may;

                if (!concerns_any(c, n->kind, n->ns))
                        continue;
                may = caller_may(c, n->kind, n->ns);
                if (may > 0)
                        tell(c, n);
                else if (may < 0)
                        *vec_push(&unsure) = c;
        }
        vec_foreach (one, &unsure)
                wait_for(*one, n);
        vec_done(&unsure);
        buf_done(&n->run);
        buf_done(&n->end);
}

void stream_changed(struct web *w, size_t kind, const char *ns, const char *name)
{
        struct news n = {.web = w,
                         .kind = kind,
                         .ns = ns,
                         .name = name,
                         .entry = cache_get(feed_cache(w->feed, kind), ns, name),
                         .run = BUF_INIT(TEXT_MAX),
                         .end = BUF_INIT(TEXT_MAX)};

        spread(&n);
}

void stream_gone(struct web *w, size_t kind, const char *ns, const char *name, const char *uid)
{
        struct news n = {.web = w,
                         .kind = kind,
                         .ns = ns,
                         .name = name,
                         .gone = uid,
                         .run = BUF_INIT(TEXT_MAX),
                         .end = BUF_INIT(TEXT_MAX)};

        spread(&n);
}

/* ---- the heartbeat, at which tokens are looked at again, as there may be no change for long */

static void on_checked(struct ask *ask)
{
        struct late *l = CONTAINER_OF(ask, struct late, ask);
        struct caller *c = ask->caller;

        if (ask->status == 401)
                end_streams(c);
        late_free(l);
        caller_unref(c);
}

static void check_token(struct caller *c, struct web *w)
{
        struct late *l;

        if (list_empty(caller_streams(c)) || map_get(caller_late(c), STR("token")))
                return;
        l = late_new(c, "token");
        l->ask = (struct ask){.web = w, .caller = caller_ref(c), .done = on_checked};
        caller_check(&l->ask);
}

static void on_heartbeat(struct timer *t)
{
        struct web *w = CONTAINER_OF(t, struct web, heartbeat);
        struct caller *c;

        list_foreach_safe (node, &w->streams)
                http_stream_write(CONTAINER_OF(node, struct stream, node)->ex, STR(":\n\n"));
        map_foreach (i, &w->callers, c)
                check_token(c, w);
        if (!list_empty(&w->streams))
                timer_after(&w->heartbeat, HEARTBEAT);
}

void streams_init(struct web *w)
{
        list_init(&w->streams);
        timer_init(&w->heartbeat, w->loop, on_heartbeat);
}

/* ---- the beginning */

static void begin(struct call *c, const struct run_filter *filter)
{
        static const struct http_header headers[] = {
                {STR("Content-Type"), STR("text/event-stream; charset=utf-8")},
                {STR("Cache-Control"), STR("no-store")},
                {STR("X-Accel-Buffering"), STR("no")},
                {STR("X-Content-Type-Options"), STR("nosniff")},
        };
        _cleanup_(buf_done) struct buf sync = BUF_INIT(TEXT_MAX);
        struct stream *s = xcalloc(1, sizeof(*s));
        struct web *w = c->web;

        s->web = w;
        s->ex = c->ex;
        s->caller = caller_ref(c->caller);
        s->filter = *filter;
        s->arena = c->arena;
        c->arena = (struct arena)ARENA_INIT;
        list_init(&s->node);
        list_init(&s->of_caller);
        list_append(&w->streams, &s->node);
        list_append(caller_streams(s->caller), &s->of_caller);
        if (!timer_pending(&w->heartbeat))
                timer_after(&w->heartbeat, HEARTBEAT);
        buf_adds(&sync, "retry: 2000\nevent: sync\ndata: {\"items\":");
        feed_list(w->feed, &s->filter, s->caller, &sync);
        buf_adds(&sync, "}\n\n");
        call_free(c);
        http_stream_start(s->ex, 200, &(struct http_headers){headers, ARRAY_LEN(headers)}, on_close, s);
        http_stream_write(s->ex, buf_str(&sync));
}

void serve_runs_stream(struct call *c)
{
        runs_ask(c, begin);
}
