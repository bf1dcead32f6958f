/*
 * fault-proxy - stands between a client and a Kubernetes API server and makes things go wrong.
 *
 * It ends TLS on the listening side with a certificate of its own, speaks HTTP/1.1 both ways, and authenticates to the
 * API server as the kubeconfig says, unless the client sends an Authorization header: then that one is forwarded and
 * nothing of ours is shown. So whoever reaches the port may do what the kubeconfig may: it listens on loopback, for
 * tests. Upgrades (exec, port-forward) are not forwarded. fault.h says what can go wrong, and how scripts look.
 *
 *     POST /__faults/off, /__faults/on    no more faults, or again; what has begun goes on
 *     POST /__faults/script               replaces the script (the body), switches faults on
 *     GET  /__faults/stats                {"enabled", "requests", "forwarded", "faults": {"delay": 3, "answer": 1, "answer-410": 1, ...}, "total"}
 *
 * The log has one JSON line for every write that was forwarded (event "write", status 0: outcome unknown), every fault
 * when it takes effect ("fault") and every failure of the API server's side ("error").
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "proxy.h"

struct options {
        const char *listen, *upstream, *script, *kubeconfig_out, *port_file, *log;
        uint64_t seed, intensity, until;
        bool seeded;
};

static const char usage[] =
        "usage: fault-proxy --upstream KUBECONFIG [OPTION]...\n"
        "  --listen ADDRESS:PORT   where to listen (127.0.0.1:0: any free port)\n"
        "  --kubeconfig-out FILE   write a kubeconfig for clients of the proxy\n"
        "  --port-file FILE        write the port\n"
        "  --log FILE              append JSON lines: forwarded writes and faults\n"
        "  --script FILE           faults by rules:  match METHOD GLOB [nth=N|every=N|always] -> "
        "FAULT [ARG]...\n"
        "  --seed N                faults by a seed\n"
        "  --intensity PERCENT     how many requests get one (20)\n"
        "  --until SECONDS         no more faults after this time\n"
        "METHOD: GET POST PUT PATCH DELETE LIST WATCH WRITE *. GLOB: of path and query, * is "
        "anything.\n"
        "FAULT: delay delay-answer drop lose cut answer expired stall silent duplicate replay stale "
        "bytes merge\n"
        "  crlf vary; arguments CODE ms= bytes= lines= retry-after= reason= body=status|html|empty|too-large "
        "seed=\n"
        "Control: POST /__faults/off, /__faults/on, /__faults/script, GET /__faults/stats.\n";

enum option_id {
        OPT_HELP = 1,
        OPT_LISTEN,
        OPT_UPSTREAM,
        OPT_SCRIPT,
        OPT_SEED,
        OPT_INTENSITY,
        OPT_UNTIL,
        OPT_KUBECONFIG,
        OPT_PORT_FILE,
        OPT_LOG
};

static const struct option long_options[] = {
        {"help", no_argument, NULL, OPT_HELP},
        {"listen", required_argument, NULL, OPT_LISTEN},
        {"upstream", required_argument, NULL, OPT_UPSTREAM},
        {"script", required_argument, NULL, OPT_SCRIPT},
        {"seed", required_argument, NULL, OPT_SEED},
        {"intensity", required_argument, NULL, OPT_INTENSITY},
        {"until", required_argument, NULL, OPT_UNTIL},
        {"kubeconfig-out", required_argument, NULL, OPT_KUBECONFIG},
        {"port-file", required_argument, NULL, OPT_PORT_FILE},
        {"log", required_argument, NULL, OPT_LOG},
        {0},
};

static bool set_option(struct options *o, int id, const char *value)
{
        switch (id) {
        case OPT_LISTEN:
                o->listen = value;
                return true;
        case OPT_UPSTREAM:
                o->upstream = value;
                return true;
        case OPT_SCRIPT:
                o->script = value;
                return true;
        case OPT_KUBECONFIG:
                o->kubeconfig_out = value;
                return true;
        case OPT_PORT_FILE:
                o->port_file = value;
                return true;
        case OPT_LOG:
                o->log = value;
                return true;
        case OPT_SEED:
                o->seeded = true;
                return str_to_u64(str_of(value), &o->seed);
        case OPT_INTENSITY:
                return str_to_u64(str_of(value), &o->intensity) && o->intensity <= 100;
        case OPT_UNTIL:
                return str_to_u64(str_of(value), &o->until) && o->until < 1000000;
        default:
                return false;
        }
}

/* 0: go on; above: exit with that code less one. */
static int parse_options(int argc, char **argv, struct options *o)
{
        int id;

        *o = (struct options){.listen = "127.0.0.1:0", .intensity = 20};
        while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
                if (id == OPT_HELP) {
                        fputs(usage, stdout);
                        return 1;
                }
                if (!set_option(o, id, optarg)) {
                        fputs(usage, stderr);
                        return 3;
                }
        }
        if (!o->upstream || optind < argc || (o->seeded && o->script)) {
                fputs(usage, stderr);
                return 3;
        }
        return 0;
}

static struct script *read_script(const char *path, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(1 << 20);
        struct script *s = NULL;

        if (file_read(path, &text, err) == 0)
                s = script_parse(buf_str(&text), err);
        if (!s)
                err_wrap(err, "script %s", path);
        return s;
}

/* The host of "host:port" or "[host]:port"; empty: all addresses. */
static char *listen_host(const char *listen)
{
        const char *colon = strrchr(listen, ':');
        size_t n = colon ? (size_t)(colon - listen) : 0;

        if (n >= 2 && listen[0] == '[')
                return xstrndup(listen + 1, n - 2);
        return n ? xstrndup(listen, n) : xstrdup("127.0.0.1");
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct proxy *p = arg;

        if (!control(p, ex))
                relay_start(p, ex);
}

static int write_kubeconfig(const char *path, const char *host, uint16_t port, const struct ca *ca,
                            struct err *err)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(65536);
        bool v6 = strchr(host, ':');

        buf_printf(&b,
                   "apiVersion: v1\nkind: Config\ncurrent-context: proxy\nclusters:\n- name: proxy\n  "
                   "cluster:\n"
                   "    server: https://%s%s%s:%u\n    certificate-authority-data: ",
                   v6 ? "[" : "", host, v6 ? "]" : "", port);
        buf_add_base64(&b, str_of(ca->ca));
        buf_adds(&b, "\nusers:\n- name: proxy\n  user:\n    client-certificate-data: ");
        buf_add_base64(&b, str_of(ca->client_cert));
        buf_adds(&b, "\n    client-key-data: ");
        buf_add_base64(&b, str_of(ca->client_key));
        buf_adds(&b, "\ncontexts:\n- name: proxy\n  context: {cluster: proxy, user: proxy}\n");
        return file_replace(path, buf_str(&b), 0600, err);
}

/* Listens and writes the files that say where. */
static int start(struct proxy *p, const struct options *o, struct err *err)
{
        _cleanup_(free_ptr) char *host = listen_host(o->listen);
        _cleanup_(ca_done) struct ca ca = {0};
        _cleanup_(tls_unref) struct tls *tls = NULL;
        struct http_server_config config = {
                .listen = o->listen,
                .limits = {.body = BODY_MAX},
                .backlog = BODY_MAX,
                .on_request = on_request,
                .arg = p,
        };
        char port[16];

        if (ca_make("fault-proxy", host, 1, &ca, err) < 0)
                return -1;
        tls = tls_new(&(struct tls_config){.server = true, .cert = str_of(ca.cert), .key = str_of(ca.key)},
                      err);
        config.tls = tls;
        p->server = tls ? http_server_new(p->loop, &config, err) : NULL;
        if (!p->server)
                return -1;
        if (o->kubeconfig_out &&
            write_kubeconfig(o->kubeconfig_out, host, http_server_port(p->server), &ca, err) < 0)
                return -1;
        snprintf(port, sizeof(port), "%u\n", http_server_port(p->server));
        if (o->port_file && file_replace(o->port_file, str_of(port), 0644, err) < 0)
                return -1;
        printf("listening on %s:%u\n", host, http_server_port(p->server));
        return fflush(stdout);
}

static int configure(struct proxy *p, const struct options *o, struct err *err)
{
        _cleanup_(kube_config_done) struct kube_config config = {0};
        struct kube_config_sources sources = {.kubeconfig = o->upstream};

        p->seeded = o->seeded;
        p->seed = o->seed;
        p->intensity = (unsigned)o->intensity;
        p->enabled = true;
        if (o->script && !(p->script = read_script(o->script, err)))
                return -1;
        if (o->log) {
                p->log_fd = open(o->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
                if (p->log_fd < 0)
                        return err_errno(err, E_IO, errno, "cannot open %s", o->log);
        }
        if (kube_config_load(&sources, &config, err) < 0)
                return -1;
        p->upstream = upstream_new(p->loop, &config, err);
        return p->upstream ? 0 : -1;
}

static void on_signal(void *arg, int signo)
{
        loop_stop(arg, 0);
}

struct until {
        struct timer timer;
        struct proxy *proxy;
};

static void on_until(struct timer *t)
{
        CONTAINER_OF(t, struct until, timer)->proxy->enabled = false;
}

static int run(struct proxy *p, const struct options *o, struct err *err)
{
        struct until until = {.proxy = p};

        if (configure(p, o, err) < 0 || start(p, o, err) < 0)
                return -1;
        if (loop_on_signal(p->loop, SIGTERM, on_signal, p->loop) < 0 ||
            loop_on_signal(p->loop, SIGINT, on_signal, p->loop) < 0)
                return err_set(err, E_INTERNAL, "cannot handle signals");
        timer_init(&until.timer, p->loop, on_until);
        if (o->until)
                timer_after(&until.timer, o->until * USEC_PER_SEC);
        loop_run(p->loop);
        timer_cancel(&until.timer);
        return 0;
}

int main(int argc, char **argv)
{
        struct clock clock = CLOCK_REAL;
        struct log log;
        struct err err = ERR_INIT;
        struct options options;
        struct proxy p = {.log_fd = -1};
        int r = parse_options(argc, argv, &options);

        if (r)
                return r - 1;
        signal(SIGPIPE, SIG_IGN);
        log_init(&log, STDERR_FILENO, LOG_LEVEL_WARN, LOG_FORMAT_LOGFMT, &clock);
        list_init(&p.relays);
        p.stale = stale_new();
        p.loop = loop_new(&clock, &log, &err);
        r = p.loop ? run(&p, &options, &err) : -1;
        if (r < 0)
                fprintf(stderr, "fault-proxy: %s\n", err.text);

        relay_free_all(&p);
        http_server_free(p.server);
        upstream_free(p.upstream);
        loop_free(p.loop);
        stale_free(p.stale);
        script_free(p.script);
        fd_close(p.log_fd);
        return r < 0;
}
