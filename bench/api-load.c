/*
 * Load for one Kubernetes API server, from one loop: bench/engine.py runs it beside both servers that it compares.
 *
 *   api-load KUBECONFIG create NAMESPACE PREFIX COUNT WRITERS   ConfigMaps of 1 kB as served, WRITERS at a time
 *   api-load KUBECONFIG get NAMESPACE PREFIX COUNT TIMES        one of PREFIX-0 ... after the other, on one connection
 *   api-load KUBECONFIG list NAMESPACE COUNT TIMES              all of them at once; COUNT must come
 *   api-load KUBECONFIG watch NAMESPACE PREFIX WATCHERS TIMES   from sending a write until all watchers have its event
 *
 * Prints one line: how many in how many seconds, median, 99th percentile and longest in microseconds, and the share of
 * one CPU that this program took itself: near 1 it was the bottleneck, not the server.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "kube/config.h"
#include "net/net.h"

enum { DATA = 490, TARGET_MAX = 512, LIST_MAX = 256 << 20, PEM_MAX = 1 << 20, NUMBER_MAX = 1000000 };

static _noreturn_ void die(const char *what)
{
        fprintf(stderr, "api-load: %s\n", what);
        exit(1);
}

struct load {
        struct loop *loop;
        struct http_client *client;
        struct http_header headers[3];
        struct clock clock;
        const char *ns, *prefix;
        uint64_t count, times, in_parallel; /* objects there, things to do, how many at once */
        uint64_t begun, done, heard, listening;
        usec_t sent; /* the write that the watchers wait for */
        bool answered;
        VEC(usec_t) took;
};

/* ---- the client */

/* TEXT, or what is in the file NAME. */
static struct str pem(const char *text, const char *name, struct buf *room)
{
        struct err err = ERR_INIT;

        if (text || !name)
                return str_of(text);
        if (file_read(name, room, &err) < 0)
                die(err.text);
        return buf_str(room);
}

static struct tls *tls_of(const struct kube_config *config)
{
        _cleanup_(buf_done) struct buf ca = BUF_INIT(PEM_MAX);
        _cleanup_(buf_done) struct buf cert = BUF_INIT(PEM_MAX);
        _cleanup_(buf_done) struct buf key = BUF_INIT(PEM_MAX);
        struct err err = ERR_INIT;
        struct tls *tls = tls_new(&(struct tls_config){.ca = pem(config->ca, config->ca_file, &ca),
                                                       .cert = pem(config->cert, config->cert_file, &cert),
                                                       .key = pem(config->key, config->key_file, &key)},
                                  &err);

        if (!tls)
                die(err.text);
        return tls;
}

static void connect_to(struct load *l, const struct kube_config *config, const char *authorization)
{
        _cleanup_(tls_unref) struct tls *tls = tls_of(config);
        struct err err = ERR_INIT;

        l->loop = loop_new(NULL, NULL, &err);
        if (!l->loop)
                die(err.text);
        l->client = http_client_new(l->loop,
                                    &(struct http_client_config){.url = config->server,
                                                                 .tls = tls,
                                                                 .user_agent = "api-load",
                                                                 .max_connections = (unsigned)l->in_parallel,
                                                                 .limits = {.body = LIST_MAX}},
                                    &err);
        if (!l->client)
                die(err.text);
        l->headers[0] = (struct http_header){STR("Accept"), STR("application/json")};
        l->headers[1] = (struct http_header){STR("Content-Type"), STR("application/json")};
        l->headers[2] = (struct http_header){STR("Authorization"), str_of(authorization)};
}

static struct http_headers headers_of(const struct load *l)
{
        return (struct http_headers){l->headers, l->headers[2].value.n ? 3 : 2};
}

/* ---- what is the same for all */

struct call {
        struct load *load;
        usec_t sent;
};

typedef void start_fn(struct load *l, struct call *calls);

static void check(const struct http_answer *a, const struct err *err, int wanted)
{
        if (err)
                die(err->text);
        if (a->status != wanted) {
                fprintf(stderr, "api-load: answer %d: %.*s\n", a->status, (int)MIN(a->body.n, 500U),
                        a->body.p);
                exit(1);
        }
}

static void took(struct load *l, usec_t since)
{
        *vec_push(&l->took) = clock_boot(&l->clock) - since;
        if (++l->done == l->times)
                loop_stop(l->loop, 0);
}

static char *collection(const struct load *l, char target[TARGET_MAX], const char *rest)
{
        snprintf(target, TARGET_MAX, "/api/v1/namespaces/%s/configmaps%s", l->ns, rest);
        return target;
}

static void post(struct load *l, uint64_t number, const struct http_handlers *handlers, void *arg)
{
        char target[TARGET_MAX], data[DATA + 1], body[DATA + TARGET_MAX];
        int n;

        memset(data, 'x', DATA);
        data[DATA] = 0;
        n = snprintf(
                body, sizeof(body),
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s-%llu\",\"labels\":"
                "{\"app.kubernetes.io/"
                "part-of\":\"bench\"}},\"data\":{\"number\":\"%llu\",\"filler\":\"%s\"}}",
                l->prefix, (unsigned long long)number, (unsigned long long)number, data);
        http_start(l->client,
                   &(struct http_request){.method = "POST",
                                          .target = collection(l, target, ""),
                                          .headers = headers_of(l),
                                          .body = str_n(body, (size_t)n)},
                   handlers, arg);
}

/* ---- create */

static void next_create(struct call *c);

static void created(void *arg, const struct http_answer *a, const struct err *err)
{
        struct call *c = arg;

        check(a, err, 201);
        took(c->load, c->sent);
        next_create(c);
}

static void next_create(struct call *c)
{
        static const struct http_handlers handlers = {.on_end = created};
        struct load *l = c->load;

        if (l->begun == l->times)
                return;
        c->sent = clock_boot(&l->clock);
        post(l, l->begun++, &handlers, c);
}

static void start_creates(struct load *l, struct call *calls)
{
        for (uint64_t i = 0; i < l->in_parallel; i++)
                next_create(&calls[i]);
}

/* ---- get and list */

static void next_read(struct call *c);

static void got(void *arg, const struct http_answer *a, const struct err *err)
{
        struct call *c = arg;

        check(a, err, 200);
        took(c->load, c->sent);
        if (c->load->done < c->load->times)
                next_read(c);
}

static void listed(void *arg, const struct http_answer *a, const struct err *err)
{
        static const struct str mark = STR("\"filler\":\"xxx");
        struct call *c = arg;
        uint64_t items = 0;
        usec_t now = clock_boot(&c->load->clock);

        check(a, err, 200);
        for (const char *p = a->body.p, *end = p + a->body.n;
             (p = memmem(p, (size_t)(end - p), mark.p, mark.n)); p++)
                items++;
        if (items != c->load->count)
                die("the list is not of that many objects");
        c->sent += clock_boot(&c->load->clock) - now; /* counting them is not the server's time */
        took(c->load, c->sent);
        if (c->load->done < c->load->times)
                next_read(c);
}

static void next_read(struct call *c)
{
        static const struct http_handlers handlers[] = {{.on_end = listed}, {.on_end = got}};
        struct load *l = c->load;
        char target[TARGET_MAX], name[TARGET_MAX / 2] = "";

        /* A stride of a prime, so that neighbours in the store are not neighbours in time. */
        if (l->prefix)
                snprintf(name, sizeof(name), "/%s-%llu", l->prefix,
                         (unsigned long long)(l->begun++ * 7919 % (l->count ? l->count : 1)));
        c->sent = clock_boot(&l->clock);
        http_start(l->client,
                   &(struct http_request){
                           .method = "GET", .target = collection(l, target, name), .headers = headers_of(l)},
                   &handlers[l->prefix != NULL], c);
}

static void start_reads(struct load *l, struct call *calls)
{
        next_read(&calls[0]);
}

/* ---- watch */

static void next_write(struct load *l);

/* A round is over with the write's answer and the last watcher's event, whichever is later. */
static void maybe_next_write(struct load *l)
{
        if (l->answered && l->heard == l->count && l->done < l->times)
                next_write(l);
}

static void written(void *arg, const struct http_answer *a, const struct err *err)
{
        struct load *l = arg;

        check(a, err, 201);
        l->answered = true;
        maybe_next_write(l);
}

static void next_write(struct load *l)
{
        static const struct http_handlers handlers = {.on_end = written};

        l->heard = 0;
        l->answered = false;
        l->sent = clock_boot(&l->clock);
        post(l, l->begun++, &handlers, l);
}

static void event_came(void *arg, struct str chunk)
{
        struct load *l = arg;

        for (size_t i = 0; i < chunk.n; i++) { /* an event is a line */
                if (chunk.p[i] != '\n')
                        continue;
                if (++l->heard == l->count)
                        took(l, l->sent);
        }
        maybe_next_write(l);
}

static void watching(void *arg, const struct http_answer *a)
{
        struct load *l = arg;

        check(a, NULL, 200);
        if (++l->listening == l->count)
                next_write(l);
}

static void watch_ended(void *arg, const struct http_answer *a, const struct err *err)
{
        (void)arg;
        (void)a;
        die(err ? err->text : "a watch ended");
}

static void start_watches(struct load *l, struct call *calls)
{
        static const struct http_handlers handlers = {
                .on_head = watching, .on_data = event_came, .on_end = watch_ended};
        char target[TARGET_MAX];

        (void)calls;
        for (uint64_t i = 0; i < l->count; i++)
                http_start(l->client,
                           &(struct http_request){
                                   .method = "GET",
                                   .target = collection(l, target, "?watch=true&resourceVersion=0"),
                                   .headers = headers_of(l),
                                   .stream = true},
                           &handlers, l);
}

/* ---- the front */

static int by_size(const void *a, const void *b)
{
        const usec_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

static double cpu_seconds(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(struct load *l, start_fn *start)
{
        _cleanup_(free_ptr) struct call *calls = xcalloc(l->in_parallel, sizeof(*calls));
        double cpu = cpu_seconds(), seconds;
        usec_t began = clock_boot(&l->clock);

        for (uint64_t i = 0; i < l->in_parallel; i++)
                calls[i].load = l;
        start(l, calls);
        loop_run(l->loop);
        seconds = (double)(clock_boot(&l->clock) - began) / 1e6;
        qsort(l->took.v, l->took.n, sizeof(*l->took.v), by_size);
        printf("{\"count\": %zu, \"seconds\": %.6f, \"median\": %llu, \"p99\": %llu, \"max\": %llu, \"cpu\": "
               "%.3f}\n",
               l->took.n, seconds, (unsigned long long)l->took.v[l->took.n / 2],
               (unsigned long long)l->took.v[l->took.n * 99 / 100],
               (unsigned long long)l->took.v[l->took.n - 1], (cpu_seconds() - cpu) / seconds);
        http_client_free(l->client);
}

static uint64_t number(const char *text)
{
        uint64_t n;

        if (!text || !str_to_u64(str_of(text), &n) || n == 0 || n > NUMBER_MAX)
                die("a number from 1 to 1000000 is needed");
        return n;
}

static start_fn *parse(struct load *l, int argc, char **argv)
{
        const char *mode = argc > 3 ? argv[2] : "";

        l->in_parallel = 1;
        l->ns = argc > 3 ? argv[3] : NULL;
        if (streq(mode, "list") && argc == 6) {
                l->count = number(argv[4]);
                l->times = number(argv[5]);
                return start_reads;
        }
        if (argc != 7)
                die("usage: api-load KUBECONFIG create|get|list|watch NAMESPACE ...; see the head of its "
                    "source");
        l->prefix = argv[4];
        if (streq(mode, "create")) {
                l->times = number(argv[5]);
                l->in_parallel = number(argv[6]);
                return start_creates;
        }
        l->count = number(argv[5]);
        l->times = number(argv[6]);
        if (streq(mode, "get"))
                return start_reads;
        if (!streq(mode, "watch"))
                die("unknown mode; there are create, get, list, watch");
        return start_watches;
}

int main(int argc, char **argv)
{
        struct rlimit files = {8192, 8192};
        struct load l = {.clock = CLOCK_REAL};
        void (*start)(struct load * l, struct call * calls) = parse(&l, argc, argv);
        _cleanup_(kube_config_done) struct kube_config config = {0};
        _cleanup_(free_ptr) char *authorization = NULL;
        struct err err = ERR_INIT;

        setrlimit(RLIMIT_NOFILE, &files);
        if (kube_config_load(&(struct kube_config_sources){.kubeconfig = argv[1]}, &config, &err) < 0)
                die(err.text);
        if (config.token)
                authorization = xasprintf("Bearer %s", config.token);
        connect_to(&l, &config, authorization);
        run(&l, start);
        loop_free(l.loop);
        vec_done(&l.took);
        return 0;
}
