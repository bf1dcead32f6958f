#include "web/internal.h"

enum { TEXT_MAX = 64 << 10 };
#define READY_MAX_AGE (5 * 60 * USEC_PER_SEC)

static bool is_ready(const struct web *w, struct buf *why)
{
        bool ok = feed_ready(w->feed, why);

        return (!w->cfg.op || operator_ready(w->cfg.op, READY_MAX_AGE, why)) && ok;
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
                              ok ? "healthy" : "unhealthy",
                              (void *)json_truth(&c->arena, c->web->cfg.history != NULL), SONDE_VERSION));
}

void serve_ready(struct call *c)
{
        _cleanup_(buf_done) struct buf why = BUF_INIT(TEXT_MAX);

        if (is_ready(c->web, &why))
                call_reply(c, 200, json_build(&c->arena, "{'status': 'ready'}"));
        else
                call_fail(c, 503, "not ready: %s", buf_cstr(&why) ? buf_cstr(&why) : "");
}

void serve_metrics(struct call *c)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(METRICS_TEXT_MAX);

        if (!c->web->cfg.metrics) {
                call_fail(c, 404, "no metrics are kept here");
                return;
        }
        metrics_write(c->web->cfg.metrics, &text);
        call_reply_text(c, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&text));
}
