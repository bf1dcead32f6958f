#include "web/internal.h"

enum { TEXT_MAX = 64 << 10 };
#define READY_MAX_AGE (5 * 60 * USEC_PER_SEC)

static bool is_ready(const struct web *w, struct buf *why)
{
        bool ok = feed_ready(w->feed, why);

        return (!w->cfg.op || operator_ready(w->cfg.op, READY_MAX_AGE, why)) && ok;
}

/* The history: how its last use went; null before the first. */
static struct json *is_connected(const struct web *w, struct arena *a)
{
        int works = w->cfg.history ? history_works(w->cfg.history) : 0;

        return works < 0 ? json_null(a) : json_truth(a, works);
}

/* dProfiler's shape. There is no pool of connections to tell of: what is not known is null. */
void serve_health(struct call *c)
{
        _cleanup_(buf_done) struct buf why = BUF_INIT(TEXT_MAX);
        bool ok = is_ready(c->web, &why);

        call_reply(c, 200,
                   json_build(&c->arena,
                              "{'status': %s, 'database': {'connected': %p, 'connection_info': {'url': null, "
                              "'pool_size': null, 'checked_in': null, 'checked_out': null, 'overflow': "
                              "null}}, 'version': %s}",
                              ok ? "healthy" : "unhealthy", (void *)is_connected(c->web, &c->arena),
                              SONDE_VERSION));
}

void serve_ready(struct call *c)
{
        _cleanup_(buf_done) struct buf why = BUF_INIT(TEXT_MAX);

        if (is_ready(c->web, &why))
                call_reply(c, 200, json_build(&c->arena, "{'status': 'ready'}"));
        else
                call_fail(c, 503, "not ready: %s", buf_cstr(&why) ? buf_cstr(&why) : "");
}

/* Whoever asks within a second is told the same: it may be megabytes, and needs no token. */
static struct http_text *metrics_text(struct web *w)
{
        struct buf text = BUF_INIT(METRICS_TEXT_MAX);

        if (w->metrics_text && usec_sub(loop_now(w->loop), w->metrics_at) < USEC_PER_SEC)
                return w->metrics_text;
        metrics_write(w->cfg.metrics, &text);
        feed_write_objects(w->feed, &text); /* a Service stands before us: whoever answers tells the same */
        http_text_unref(w->metrics_text);
        w->metrics_text = http_text_new(&text);
        w->metrics_at = loop_now(w->loop);
        return w->metrics_text;
}

void serve_metrics(struct call *c)
{
        if (!c->web->cfg.metrics)
                call_fail(c, 404, "no metrics are kept here");
        else
                call_reply_shared(c, "text/plain; version=0.0.4; charset=utf-8", metrics_text(c->web));
}
