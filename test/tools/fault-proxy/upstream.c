#include "proxy.h"

enum { CLIENTS_MAX = 32 };

/*
 * The user agent belongs to a pool of connections; the API server takes the field manager from it, so every client
 * keeps its own. After CLIENTS_MAX of them the rest share one.
 */
struct client {
        char *key;
        struct http_client *http;
};

struct upstream {
        struct loop *loop;
        struct map clients;
        char *server, *proxy, *authorization;
        struct tls *certified, *bare; /* with and without our certificate */
};

static int load(const char *path, char **text, struct err *err)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        if (!path || *text)
                return 0;
        if (file_read(path, &b, err) < 0)
                return -1;
        *text = buf_take(&b);
        return 0;
}

static int make_tls(struct upstream *u, struct kube_config *c, struct err *err)
{
        struct tls_config tls = {.server_name = c->tls_server_name, .insecure = c->insecure};

        if (load(c->ca_file, &c->ca, err) < 0 || load(c->cert_file, &c->cert, err) < 0 ||
            load(c->key_file, &c->key, err) < 0)
                return -1;
        tls.ca = str_of(c->ca);
        u->bare = tls_new(&tls, err);
        tls.cert = str_of(c->cert);
        tls.key = str_of(c->key);
        u->certified = u->bare ? tls_new(&tls, err) : NULL;
        return u->certified ? 0 : -1;
}

static int make_authorization(struct upstream *u, struct kube_config *c, struct err *err)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(1 << 20);

        if (load(c->token_file, &c->token, err) < 0)
                return -1;
        if (c->token) {
                struct str token = str_trim(str_of(c->token));

                buf_printf(&b, "Bearer %.*s", STR_ARG(token));
        } else if (c->username && c->password) {
                struct buf plain = BUF_INIT(4096);

                buf_printf(&plain, "%s:%s", c->username, c->password);
                buf_adds(&b, "Basic ");
                buf_add_base64(&b, buf_str(&plain));
                buf_done(&plain);
        } else {
                return c->exec ? err_set(err, E_CONFIG, "the fault proxy runs no exec plugins") : 0;
        }
        u->authorization = buf_take(&b);
        return 0;
}

struct upstream *upstream_new(struct loop *loop, const struct kube_config *config, struct err *err)
{
        struct upstream *u = xcalloc(1, sizeof(*u));
        struct kube_config c = *config; /* texts that are loaded here are freed here */
        int r;

        u->loop = loop;
        u->server = xstrdup(c.server);
        u->proxy = xstrdup(c.proxy);
        r = make_tls(u, &c, err);
        if (r == 0)
                r = make_authorization(u, &c, err);
        if (c.ca != config->ca)
                free(c.ca);
        if (c.cert != config->cert)
                free(c.cert);
        if (c.key != config->key)
                free(c.key);
        if (c.token != config->token)
                free(c.token);
        if (r < 0) {
                upstream_free(u);
                return NULL;
        }
        return u;
}

void upstream_free(struct upstream *u)
{
        struct client *c;

        if (!u)
                return;
        map_foreach (i, &u->clients, c) {
                http_client_free(c->http);
                free(c->key);
                free(c);
        }
        map_done(&u->clients);
        tls_unref(u->certified);
        tls_unref(u->bare);
        free(u->server);
        free(u->proxy);
        free(u->authorization);
        free(u);
}

struct http_client *upstream_client(struct upstream *u, struct str user_agent, bool authorized,
                                    struct err *err)
{
        _cleanup_(free_ptr) char *key = NULL;
        struct client *c;

        if (u->clients.n >= CLIENTS_MAX || !user_agent.n)
                user_agent = STR("fault-proxy");
        key = xasprintf("%d%.*s", authorized, STR_ARG(user_agent));
        c = map_get(&u->clients, str_of(key));
        if (!c) {
                struct http_client_config config = {
                        .url = u->server,
                        .proxy = u->proxy,
                        .tls = authorized ? u->bare : u->certified,
                        .user_agent = key + 1,
                        .max_connections = 64,
                        .limits = {.body = BODY_MAX},
                };
                struct http_client *http = http_client_new(u->loop, &config, err);

                if (!http)
                        return NULL;
                c = xcalloc(1, sizeof(*c));
                c->http = http;
                c->key = TAKE_PTR(key);
                map_put(&u->clients, str_of(c->key), c);
        }
        return c->http;
}

const char *upstream_authorization(const struct upstream *u)
{
        return u->authorization;
}
