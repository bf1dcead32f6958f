#include "operator/operator.h"

#define READY_MAX_AGE  (5 * 60 * USEC_PER_SEC)
#define READY_TEXT_MAX 65536

struct health {
        struct http_server *server;
        struct operator* op;
        struct metrics *metrics;
};

static void serve_ready(struct health *h, struct http_exchange *ex)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(READY_TEXT_MAX);
        bool ok = !h->op || operator_ready(h->op, READY_MAX_AGE, &text);
        bool verbose = str_has_prefix(http_query(ex), STR("verbose"));

        if (ok && !verbose)
                buf_clear(&text);
        buf_adds(&text, ok ? "ok" : "not ready\n");
        http_reply(ex, ok ? 200 : 503, "text/plain; charset=utf-8", buf_str(&text));
}

/* The text is megabytes where there are thousands of requests: it is kept for one answer only. */
static void serve_metrics(struct health *h, struct http_exchange *ex)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(METRICS_TEXT_MAX);

        metrics_write(h->metrics, &text);
        http_reply(ex, 200, "text/plain; version=0.0.4; charset=utf-8", buf_str(&text));
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct health *h = arg;
        struct str path = http_path(ex);

        if (!str_eq(http_method(ex), STR("GET"))) {
                http_reply(ex, 405, "text/plain", STR("only GET\n"));
        } else if (str_eq(path, STR("/healthz"))) {
                http_reply(ex, 200, "text/plain", STR("ok"));
        } else if (str_eq(path, STR("/readyz"))) {
                serve_ready(h, ex);
        } else if (str_eq(path, STR("/metrics")) && h->metrics) {
                serve_metrics(h, ex);
        } else {
                http_reply(ex, 404, "text/plain", STR("/healthz, /readyz and /metrics are here\n"));
        }
}

struct health *health_new(struct loop *loop, const char *listen, struct operator* o, struct metrics *metrics,
                          struct err *err)
{
        struct health *h = xcalloc(1, sizeof(*h));
        struct http_server_config config = {
                .listen = listen,
                .max_connections = 64,
                .on_request = on_request,
                .arg = h,
        };

        h->op = o;
        h->metrics = metrics;
        h->server = http_server_new(loop, &config, err);
        if (!h->server) {
                health_free(h);
                return NULL;
        }
        return h;
}

void health_free(struct health *h)
{
        if (!h)
                return;
        http_server_free(h->server);
        free(h);
}

uint16_t health_port(const struct health *h)
{
        return http_server_port(h->server);
}
