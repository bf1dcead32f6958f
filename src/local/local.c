#include "local/local.h"

#include "kube/kube.h"
#include "local/manage.h"
#include "local/node.h"

#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CERT_DAYS = 3650, TOKEN_BYTES = 24, FILE_MAX = 64 << 10, NODE_NAME_MAX = 64 };

struct local {
        struct loop *loop;
        const struct log *log;
        char *dir, *kubeconfig;
        char *ca, *token; /* token: a secret */
        struct store *store;
        struct api *api;
        struct manager *manager;
        struct http_server *server;
        struct kube_config config; /* the node's own way to the API */
        struct kube *client;
        struct node *node;
        void (*stopped)(void *arg);
        void *stopped_arg;
        void (*on_failure)(void *arg, const struct err *err);
        void *failure_arg;
};

/* ---- files of the directory */

static char *path_in(const struct local *l, const char *name)
{
        return xasprintf("%s/%s", l->dir, name);
}

/* The content of a file, or NULL when it is not there. */
static char *read_text(const struct local *l, const char *name)
{
        _cleanup_(free_ptr) char *path = path_in(l, name);
        _cleanup_(buf_done) struct buf b = BUF_INIT(FILE_MAX);

        return access(path, R_OK) == 0 && file_read(path, &b, NULL) == 0 ? buf_take(&b) : NULL;
}

static int write_text(const struct local *l, const char *name, const char *text, struct err *err)
{
        _cleanup_(free_ptr) char *path = path_in(l, name);

        return file_replace(path, str_of(text), 0600, err);
}

static char *new_token(void)
{
        static const char hex[] = "0123456789abcdef";
        uint8_t b[TOKEN_BYTES];
        char *token = xmalloc(2 * TOKEN_BYTES + 1);

        if (getrandom(b, sizeof(b), 0) != (ssize_t)sizeof(b))
                abort();
        for (size_t i = 0; i < sizeof(b); i++) {
                token[2 * i] = hex[b[i] >> 4];
                token[2 * i + 1] = hex[b[i] & 15];
        }
        token[2 * TOKEN_BYTES] = 0;
        return token;
}

static int load_token(struct local *l, struct err *err)
{
        l->token = read_text(l, "token");
        if (l->token && *l->token)
                return 0;
        free(l->token);
        l->token = new_token();
        return write_text(l, "token", l->token, err);
}

/* The host of "HOST:PORT"; "127.0.0.1" for none. */
static char *host_of(const char *listen)
{
        const char *colon = strrchr(listen, ':');

        if (!colon || colon == listen)
                return xstrdup("127.0.0.1");
        if (listen[0] == '[')
                return xstrndup(listen + 1, (size_t)(colon - listen) - 2);
        return xstrndup(listen, (size_t)(colon - listen));
}

static int make_certificate(struct local *l, const char *host, struct err *err)
{
        _cleanup_(ca_done) struct ca ca = {0};

        if (ca_make("sonde", host, CERT_DAYS, &ca, err) < 0 || write_text(l, "server.key", ca.key, err) < 0 ||
            write_text(l, "server.crt", ca.cert, err) < 0 || write_text(l, "server.host", host, err) < 0)
                return -1;
        return write_text(l, "ca.crt", ca.ca, err);
}

/* The server's TLS, with the certificate of the last start if it is for the same host. */
static struct tls *load_tls(struct local *l, const char *host, struct err *err)
{
        _cleanup_(free_ptr) char *was = read_text(l, "server.host"), *cert = NULL, *key = NULL;
        struct tls *tls;

        l->ca = read_text(l, "ca.crt");
        if (!l->ca || !streq(was, host)) {
                free(l->ca);
                if (make_certificate(l, host, err) < 0)
                        return NULL;
                l->ca = read_text(l, "ca.crt");
        }
        cert = read_text(l, "server.crt");
        key = read_text(l, "server.key");
        if (!l->ca || !cert || !key) {
                err_set(err, E_IO, "cannot read the certificate in %s", l->dir);
                return NULL;
        }
        tls = tls_new(&(struct tls_config){.server = true, .cert = str_of(cert), .key = str_of(key)}, err);
        mem_wipe(key, strlen(key));
        return tls;
}

static int write_kubeconfig(struct local *l, const char *host, uint16_t port, struct err *err)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(FILE_MAX), ca = BUF_INIT(FILE_MAX);
        bool v6 = strchr(host, ':');

        buf_add_base64(&ca, str_of(l->ca));
        buf_printf(&b,
                   "apiVersion: v1\nkind: Config\nclusters:\n- name: sonde\n  cluster:\n    server: "
                   "https://%s%s%s:%u\n"
                   "    certificate-authority-data: %.*s\nusers:\n- name: sonde\n  user:\n    token: "
                   "%s\ncontexts:\n"
                   "- name: sonde\n  context: {cluster: sonde, user: sonde, namespace: "
                   "default}\ncurrent-context: sonde\n",
                   v6 ? "[" : "", host, v6 ? "]" : "", port, STR_ARG(buf_str(&ca)), l->token);
        if (!buf_cstr(&b))
                return err_set(err, E_TOO_LARGE, "the kubeconfig is too large");
        if (file_replace(l->kubeconfig, buf_str(&b), 0600, err) < 0)
                return -1;
        return kube_config_parse(buf_str(&b), l->dir, NULL, &l->config, err);
}

/* ---- parts */

static void on_store_failure(void *arg, const struct err *err)
{
        struct local *l = arg;

        if (l->on_failure)
                l->on_failure(l->failure_arg, err);
}

static int open_store(struct local *l, const struct local_config *config, struct err *err)
{
        _cleanup_(free_ptr) char *path = path_in(l, "objects.db");
        struct store_config sc = {.path = path,
                                  .durable = config->durable,
                                  .on_failure = on_store_failure,
                                  .arg = l,
                                  .history = config->history};

        l->store = store_open(l->loop, &sc, err);
        return l->store ? 0 : -1;
}

static int open_api(struct local *l, const char *address, struct err *err)
{
        _cleanup_(free_ptr) char *pods = path_in(l, "pods");
        struct api_config ac = {.loop = l->loop,
                                .store = l->store,
                                .token = l->token,
                                .pods_dir = pods,
                                .address = address,
                                .log = l->log};

        l->api = api_new(&ac, err);
        if (!l->api)
                return -1;
        l->manager = manager_new(l->loop, l->api, l->store, l->log);
        return 0;
}

static void on_durable(void *arg)
{
        *(bool *)arg = true;
}

/* What every cluster has (its namespaces) must be there for the first request. */
static int settle(struct local *l, struct err *err)
{
        bool durable = false;

        store_after(l->store, on_durable, &durable);
        while (!durable && loop_turn(l->loop, true))
                continue;
        return durable ? 0 : err_set(err, E_IO, "cannot write to %s", l->dir);
}

/* A free port is looked for once and kept, so that a kubeconfig somebody copied stays right. */
static int open_server(struct local *l, const char *listen, struct tls *tls, struct err *err)
{
        struct http_server_config sc = {
                .listen = listen,
                .tls = tls,
                .limits = {.body = 2 * API_BODY_MAX}, /* what is a little too large gets a proper answer */
                .max_connections = 4096,
                .backlog = (size_t)64 << 20,
                .on_request = api_request,
                .arg = l->api};
        _cleanup_(free_ptr) char *port = read_text(l, "port"), *last = NULL;
        char text[16];

        if (str_has_suffix(str_of(listen), STR(":0")) && port) {
                last = xasprintf("%.*s:%s", (int)(strlen(listen) - 2), listen, port);
                sc.listen = last;
                l->server = http_server_new(l->loop, &sc, NULL);
                sc.listen = listen;
        }
        if (!l->server)
                l->server = http_server_new(l->loop, &sc, err);
        if (!l->server)
                return -1;
        snprintf(text, sizeof(text), "%u", http_server_port(l->server));
        return streq(text, port) ? 0 : write_text(l, "port", text, err);
}

/* sonde-pod in the folder of the running program. */
static char *program_beside(void)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;

        self[MAX(n, 0)] = '\0';
        slash = strrchr(self, '/');
        return slash ? xasprintf("%.*s/sonde-pod", (int)(slash - self), self) : NULL;
}

static int open_node(struct local *l, const struct local_config *config, struct err *err)
{
        _cleanup_(free_ptr) char *beside = program_beside();
        char name[NODE_NAME_MAX] = "localhost";
        struct node_config nc = {.name = name,
                                 .dir = l->dir,
                                 .pod_image = config->pod_image,
                                 .pod_program = config->pod_program ? config->pod_program : beside,
                                 .log = l->log,
                                 .gpus = config->gpus,
                                 .cpus = config->cpus,
                                 .server = l->config.server,
                                 .ca = l->ca};

        if (gethostname(name, sizeof(name) - 1) < 0 || !name_valid(NAME_SUBDOMAIN, str_of(name)))
                snprintf(name, sizeof(name), "localhost");
        l->client = kube_new(l->loop, &l->config, &(struct kube_options){.user_agent = "kubelet/sonde"}, err);
        if (!l->client)
                return -1;
        nc.client = l->client;
        l->node = node_new(l->loop, &nc, err);
        return l->node ? 0 : -1;
}

static int start(struct local *l, const struct local_config *config, struct err *err)
{
        const char *listen = config->listen ? config->listen : "127.0.0.1:0";
        _cleanup_(free_ptr) char *host = host_of(listen);
        _cleanup_(tls_unref) struct tls *tls = NULL;

        if (dir_make(l->dir, 0700, err) < 0 || open_store(l, config, err) < 0 || load_token(l, err) < 0)
                return -1;
        tls = load_tls(l, host, err);
        if (!tls || open_api(l, listen, err) < 0 || settle(l, err) < 0 ||
            open_server(l, listen, tls, err) < 0 ||
            write_kubeconfig(l, host, http_server_port(l->server), err) < 0)
                return -1;
        return config->no_node ? 0 : open_node(l, config, err);
}

struct local *local_new(struct loop *loop, const struct local_config *config, struct err *err)
{
        struct local *l = xcalloc(1, sizeof(*l));

        l->loop = loop;
        l->log = config->log;
        l->dir = xstrdup(config->dir);
        l->kubeconfig = path_in(l, "kubeconfig");
        l->on_failure = config->on_failure;
        l->failure_arg = config->arg;
        if (start(l, config, err) < 0) {
                local_free(l);
                return NULL;
        }
        return l;
}

static void on_node_stopped(void *arg)
{
        struct local *l = arg;

        l->stopped(l->stopped_arg);
}

void local_stop(struct local *l, void (*done)(void *arg), void *arg)
{
        l->stopped = done;
        l->stopped_arg = arg;
        if (l->node)
                node_stop(l->node, on_node_stopped, l);
        else
                done(arg);
}

void local_hurry(struct local *l)
{
        if (l->node)
                node_hurry(l->node);
}

void local_free(struct local *l)
{
        if (l->node)
                node_free(l->node);
        if (l->client)
                kube_free(l->client);
        kube_config_done(&l->config);
        if (l->server)
                http_server_free(l->server);
        if (l->manager)
                manager_free(l->manager);
        if (l->api)
                api_free(l->api);
        if (l->store)
                store_close(l->store);
        if (l->token)
                mem_wipe(l->token, strlen(l->token));
        free(l->token);
        free(l->ca);
        free(l->dir);
        free(l->kubeconfig);
        free(l);
}

const char *local_kubeconfig(const struct local *l)
{
        return l->kubeconfig;
}
