#include "web/internal.h"

#include <arpa/inet.h>

#define STREAM_BACKLOG ((size_t)1 << 20)

bool web_is_loopback(const char *listen)
{
        static const char *const hosts[] = {"127.", "localhost:", "[::1]:", "unix:"};

        for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
                if (str_has_prefix(str_of(listen), str_of(hosts[i])))
                        return true;
        return false;
}

/* ---- Host: who is asked for. A name of somebody else's that leads here is how a page elsewhere would reach us. */

/* Without the port, and without brackets. */
static struct str host_name(struct str host)
{
        if (host.n && host.p[0] == '[') {
                const char *end = memchr(host.p, ']', host.n);

                return end ? str_n(host.p + 1, (size_t)(end - host.p - 1)) : STR_NULL;
        }
        return str_split(&host, ':');
}

static bool is_address(struct str name)
{
        char text[INET6_ADDRSTRLEN + 1];
        unsigned char out[16];

        if (name.n >= sizeof(text))
                return false;
        memcpy(text, name.p, name.n);
        text[name.n] = '\0';
        return inet_pton(AF_INET, text, out) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

/* A name that nobody outside a cluster can give away: a Service's. */
static bool is_inside(struct str name)
{
        return !memchr(name.p, '.', name.n) || str_has_suffix(name, STR(".svc")) ||
               str_has_suffix(name, STR(".svc.cluster.local"));
}

static bool is_like(struct str name, const char *pattern)
{
        if (str_has_prefix(str_of(pattern), STR("*.")))
                return name.n > strlen(pattern) - 1 &&
                       str_case_eq(str_n(name.p + name.n - (strlen(pattern) - 1), strlen(pattern) - 1),
                                   str_of(pattern + 1));
        return str_case_eq(name, str_of(pattern));
}

bool server_host_ok(const struct web *w, struct str host)
{
        struct str name = host_name(host);

        if (!name.n)
                return false;
        for (size_t i = 0; i < w->hosts.n; i++)
                if (is_like(name, w->hosts.v[i]))
                        return true;
        if (str_case_eq(name, STR("localhost")) || is_address(name))
                return true;
        return !w->loopback && is_inside(name);
}

/* ---- Origin: who asks, where a browser does */

/* Who listens with TLS is at https; behind a proxy either may be. */
static bool origin_ok(const struct web *w, const struct http_headers *headers, struct str host)
{
        struct str origin = http_header(headers, "Origin"), rest;

        if (!origin.p)
                return true;
        rest = origin;
        if (str_has_prefix(rest, STR("https://")))
                rest = str_n(rest.p + 8, rest.n - 8);
        else if (!w->tls && str_has_prefix(rest, STR("http://")))
                rest = str_n(rest.p + 7, rest.n - 7);
        else
                return false;
        return str_case_eq(rest, host);
}

static bool is_cross_site(const struct http_headers *headers)
{
        return str_eq(http_header(headers, "Sec-Fetch-Site"), STR("cross-site"));
}

/* ---- the token */

bool server_token_valid(struct str token)
{
        if (!token.n || token.n > TOKEN_MAX)
                return false;
        for (size_t i = 0; i < token.n; i++)
                if (token.p[i] <= ' ' || token.p[i] >= 0x7f || strchr("\",;\\", token.p[i]))
                        return false;
        return true;
}

static struct str cookie_of(struct str cookies, struct str name)
{
        while (cookies.n) {
                struct str value = str_split(&cookies, ';'), key = str_trim(str_split(&value, '='));

                if (str_eq(key, name))
                        return str_trim(value);
        }
        return STR_NULL;
}

/* Browsers keep cookies by host and not by port: without it two of us on one machine would sign each other's people out. */
const char *server_cookie_name(const struct http_headers *headers, char out[COOKIE_NAME_MAX])
{
        struct str host = http_header(headers, "Host"), name = host_name(host);
        const char *colon = host.n ? memrchr(host.p, ':', host.n) : NULL;
        uint64_t port = 0;

        /* that of an address in brackets is behind them */
        if (colon && name.p && colon >= name.p + name.n &&
            str_to_u64(str_n(colon + 1, (size_t)(host.p + host.n - colon - 1)), &port) && port <= UINT16_MAX)
                snprintf(out, COOKIE_NAME_MAX, "sonde_token_%u", (unsigned)port);
        else
                snprintf(out, COOKIE_NAME_MAX, "sonde_token");
        return out;
}

struct str server_token(const struct http_headers *headers)
{
        char name[COOKIE_NAME_MAX];
        struct str header = http_header(headers, "Authorization"), token;

        if (header.p) {
                struct str scheme = str_split(&header, ' ');

                token = str_case_eq(scheme, STR("Bearer")) ? str_trim(header) : STR_NULL;
        } else {
                token = cookie_of(http_header(headers, "Cookie"), str_of(server_cookie_name(headers, name)));
        }
        return server_token_valid(token) ? token : STR_NULL;
}

/* ---- requests */

static void refuse(struct http_exchange *ex, int status, struct str body, const char *name, const char *value)
{
        const struct http_header headers[] = {{STR("Content-Type"), STR("application/json")},
                                              {str_of(name), str_of(value)}};

        http_reply_headers(ex, status, &(struct http_headers){headers, name ? 2 : 1}, body);
}

static void serve_other(struct http_exchange *ex, struct str method, const char *allow)
{
        bool reading = str_eq(method, STR("GET")) || str_eq(method, STR("HEAD"));

        if (allow)
                refuse(ex, 405, STR("{\"detail\":\"Method Not Allowed\"}"), "Allow", allow);
        else if (str_has_prefix(http_path(ex), STR("/api/")))
                refuse(ex, 404, STR("{\"detail\":\"Not Found\"}"), NULL, NULL);
        else if (!reading)
                refuse(ex, 405, STR("{\"detail\":\"Method Not Allowed\"}"), "Allow", "GET, HEAD");
        else
                web_asset_serve(ex);
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct web *w = arg;
        const struct http_headers *headers = http_request_headers(ex);
        struct str host = http_header(headers, "Host"), method = http_method(ex), token;
        const char *params[PARAMS_MAX] = {0}, *allow = NULL;
        struct arena a = ARENA_INIT;
        const struct endpoint *e;

        if (!server_host_ok(w, host)) {
                refuse(ex, 421, STR("{\"detail\":\"this Host is not served here; see --allowed-host\"}"),
                       NULL, NULL);
                return;
        }
        e = endpoint_find(method, http_path(ex), params, &allow, &a);
        if (w->tls && http_is_plain(ex) && !(e && e->plain)) {
                refuse(ex, 426, STR("{\"detail\":\"this port speaks TLS; use https\"}"), "Upgrade",
                       "TLS/1.2, HTTP/1.1");
        } else if (!origin_ok(w, headers, host) || (e && !e->open && is_cross_site(headers))) {
                refuse(ex, 403, STR("{\"detail\":\"requests of other sites' pages are refused\"}"), NULL,
                       NULL);
        } else if (!e) {
                serve_other(ex, method, allow);
        } else {
                token = server_token(headers);
                if (token.p || e->open) {
                        call_begin(w, ex, e, params, &a, token);
                        return;
                }
                refuse(ex, 401, STR("{\"detail\":\"Not authenticated\"}"), "WWW-Authenticate", "Bearer");
        }
        arena_done(&a);
}

/* ---- life */

static int listen_on(struct web *w, struct err *err)
{
        struct http_server_config config = {
                .listen = w->cfg.listen,
                .limits = {.body = BODY_MAX, .head = 32 << 10, .headers = 100},
                .max_connections = w->cfg.max_connections ? w->cfg.max_connections : WEB_CONNECTIONS,
                .backlog = STREAM_BACKLOG,
                .on_request = on_request,
                .arg = w,
        };

        if (certificate_begin(w, err) < 0)
                return -1;
        config.tls = w->tls;
        config.or_plain = true; /* see on_request() */
        w->server = http_server_new(w->loop, &config, err);
        return w->server ? 0 : -1;
}

struct web *web_new(const struct web_config *config, struct err *err)
{
        _cleanup_(web_free) struct web *w = xcalloc(1, sizeof(*w));
        const struct kube_options options = {
                .user_agent = "sonde-web/" SONDE_VERSION, .max_connections = 32, .metrics = config->metrics};

        w->cfg = *config;
        w->loop = config->loop;
        w->ns = xstrdup(config->ns);
        w->loopback = web_is_loopback(config->listen);
        list_init(&w->calls);
        streams_init(w);
        for (size_t i = 0; i < config->n_hosts; i++)
                *vec_push(&w->hosts) = xstrdup(config->hosts[i]);
        kube_config_bare(config->server, &w->bare);
        w->kube = kube_new(w->loop, &w->bare, &options, err);
        if (!w->kube)
                return NULL;
        w->feed = feed_new(w);
        if (listen_on(w, err) < 0)
                return NULL;
        return TAKE_PTR(w);
}

void web_free(struct web *w)
{
        struct list *node;

        if (!w)
                return;
        http_server_free(w->server);
        kube_free(w->kube); /* what is under way does not come back */
        streams_done(w);
        while ((node = list_pop(&w->calls)))
                call_free(CONTAINER_OF(node, struct call, node));
        callers_done(w);
        feed_free(w->feed);
        http_text_unref(w->metrics_text);
        kube_config_done(&w->bare);
        certificate_end(w);
        vec_foreach (host, &w->hosts)
                free(*host);
        vec_done(&w->hosts);
        free(w->ns);
        free(w);
}

bool web_has_tls(const struct web *w)
{
        return w->tls != NULL;
}

uint16_t web_port(const struct web *w)
{
        return http_server_port(w->server);
}
