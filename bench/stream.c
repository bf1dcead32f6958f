/*
 * What a streamed chunk costs the client that measures and the server that simulates, over loopback, each in a process
 * of its own; what reading an event costs by itself; and how late the loop's timers are.
 * Usage: bench-stream [streams] [rounds a second] [seconds] [chunks a stream and round]
 */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/net.h"
#include "probe/load/llm.h"
#include "probe/load/sse.h"

enum { BAR = 3 }; /* on a busy machine the bare reads find more in each */

static const char EVENT[] =
        "data: {\"id\":\"chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9\",\"object\":\"chat.completion.chunk\","
        "\"created\":1763280000,\"model\":\"Qwen/"
        "Qwen3-32B\",\"choices\":[{\"index\":0,\"delta\":{\"content\":"
        "\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";

static _noreturn_ void die(const char *what)
{
        fprintf(stderr, "bench-stream: %s\n", what);
        exit(1);
}

struct cpu {
        double user, system; /* seconds */
};

static struct cpu cpu_now(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (struct cpu){(double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec / 1e6,
                            (double)u.ru_stime.tv_sec + (double)u.ru_stime.tv_usec / 1e6};
}

static double tell(const char *who, struct cpu began, uint64_t chunks)
{
        struct cpu now = cpu_now();
        double user = (now.user - began.user) / (double)chunks * 1e9,
               system = (now.system - began.system) / (double)chunks * 1e9;

        printf("%-12s a chunk costs %6.0f ns: %5.0f ours, %5.0f the kernel's; %7.0f a second of CPU\n", who,
               user + system, user, system, 1e9 / (user + system));
        fflush(stdout);
        return user + system;
}

static uint64_t now_ns(void)
{
        return clock_boot_ns(&(struct clock)CLOCK_REAL);
}

/* ---- reading alone */

struct reader {
        struct sse sse;
        struct arena arena;
        uint64_t events, contents;
};

static int on_event(void *arg, struct str data, struct err *err)
{
        struct reader *r = arg;
        struct llm_event e;

        arena_reset(&r->arena, SIZE_MAX);
        if (llm_event_parse(&r->arena, LLM_CHAT, data, &e, err) < 0)
                return -1;
        r->events++;
        r->contents += e.content.n > 0;
        return 0;
}

static void bench_reading(void)
{
        enum { ROUNDS = 1000000 };
        struct reader r = {.events = 0};
        struct err err = ERR_INIT;
        struct cpu began = cpu_now();

        sse_init(&r.sse);
        for (int i = 0; i < ROUNDS; i++)
                if (sse_feed(&r.sse, str_n(EVENT, sizeof(EVENT) - 1), on_event, &r, &err) < 0)
                        die(err.text);
        if (r.contents != ROUNDS)
                die("events were lost");
        tell("only reading", began, ROUNDS);
        sse_done(&r.sse);
        arena_done(&r.arena);
}

/* ---- the server, in a child */

struct load {
        unsigned streams, rate, seconds, chunks;
        bool stamps;
};

struct server {
        const struct load *load;
        struct http_exchange **streams;
        size_t n;
        unsigned rounds;
        struct timer tick;
        usec_t period, next;
        struct loop *loop;
        struct cpu cpu_began;
        uint64_t chunks;
};

static void tick(struct timer *t)
{
        struct server *s = CONTAINER_OF(t, struct server, tick);

        if (s->rounds == 0) {
                for (size_t i = 0; i < s->n; i++)
                        http_stream_end(s->streams[i]);
                tell("server", s->cpu_began, s->chunks);
                return;
        }
        s->rounds--;
        for (size_t i = 0; i < s->n; i++)
                for (unsigned j = 0; j < s->load->chunks; j++)
                        http_stream_write(s->streams[i], str_n(EVENT, sizeof(EVENT) - 1));
        s->chunks += s->n * s->load->chunks;
        s->next += s->period;
        timer_at(t, s->next);
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct server *s = arg;

        http_stream_start(ex, 200, NULL, NULL, NULL);
        s->streams[s->n++] = ex;
        if (s->n == s->load->streams) {
                s->cpu_began = cpu_now();
                s->next = loop_now(s->loop) + s->period;
                timer_at(&s->tick, s->next);
        }
}

static _noreturn_ void serve(const struct load *load, int port_pipe)
{
        struct err err = ERR_INIT;
        struct loop *loop = loop_new(NULL, NULL, &err);
        struct server s = {.load = load,
                           .rounds = load->rate * load->seconds,
                           .period = USEC_PER_SEC / load->rate,
                           .loop = loop};
        struct http_server_config config = {.listen = "127.0.0.1:0",
                                            .max_connections = load->streams + 16,
                                            .on_request = on_request,
                                            .arg = &s};
        struct http_server *server = loop ? http_server_new(loop, &config, &err) : NULL;
        uint16_t port;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!server)
                die(err.text);
        s.streams = xcalloc(load->streams, sizeof(*s.streams));
        timer_init(&s.tick, loop, tick);
        port = http_server_port(server);
        if (write(port_pipe, &port, sizeof(port)) != sizeof(port))
                die("cannot tell the port");
        loop_run(loop);
        exit(0);
}

/* ---- the client */

struct client;

struct stream {
        struct client *client;
        struct http_call *call;
        struct sse sse;
};

struct client {
        struct loop *loop;
        struct http_client *http;
        struct reader reader;
        unsigned under_way;
        uint64_t reads, stamped;
        struct cpu cpu_began;
        VEC(double) late; /* read - stamp, us */
};

static void on_head(void *arg, const struct http_answer *a)
{
        struct stream *s = arg;

        if (a->status != 200)
                die("no stream");
        if (s->client->reads == 0)
                s->client->cpu_began = cpu_now();
}

static void on_data(void *arg, struct str chunk)
{
        struct stream *s = arg;
        struct client *c = s->client;
        bool stamped;
        uint64_t at = http_call_received_at(s->call, &stamped);
        struct err err = ERR_INIT;

        if ((c->reads++ & 63) == 0)
                *vec_push(&c->late) = (double)(now_ns() - at) / 1e3;
        c->stamped += stamped;
        if (sse_feed(&s->sse, chunk, on_event, &c->reader, &err) < 0)
                die(err.text);
}

static void on_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct stream *s = arg;

        if (err)
                die(err->text);
        if (--s->client->under_way == 0)
                loop_stop(s->client->loop, 0);
}

static int by_size(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static double percentile(double *v, size_t n, double p)
{
        qsort(v, n, sizeof(*v), by_size);
        return n ? v[(size_t)((double)(n - 1) * p)] : 0;
}

static void start_streams(struct client *c, struct stream *streams, unsigned n)
{
        static const struct http_handlers handlers = {
                .on_head = on_head, .on_data = on_data, .on_end = on_end};
        struct http_request req = {.method = "POST",
                                   .target = "/v1/chat/completions",
                                   .body = STR("{}"),
                                   .stream = true,
                                   .pooled = true};

        http_client_connect(c->http, n);
        while (http_client_idle(c->http) < n)
                loop_turn(c->loop, true);
        c->under_way = n;
        for (unsigned i = 0; i < n; i++) {
                streams[i].client = c;
                sse_init(&streams[i].sse);
                streams[i].call = http_start(c->http, &req, &handlers, &streams[i]);
        }
}

/* ---- one server and one client */

static pid_t start_server(const struct load *load, uint16_t *ret_port)
{
        int fds[2];
        pid_t pid;

        if (pipe(fds) < 0 || (pid = fork()) < 0)
                die("cannot fork");
        if (pid == 0)
                serve(load, fds[1]);
        if (read(fds[0], ret_port, sizeof(*ret_port)) != sizeof(*ret_port))
                die("the server did not start");
        close(fds[0]);
        close(fds[1]);
        return pid;
}

static void stop_server(pid_t pid)
{
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

static double bench_streams(const struct load *load)
{
        struct client c = {.under_way = 0};
        struct stream *streams = xcalloc(load->streams, sizeof(*streams));
        struct err err = ERR_INIT;
        char url[64];
        uint16_t port;
        pid_t pid = start_server(load, &port);
        double cost;

        snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
        c.loop = loop_new(NULL, NULL, &err);
        c.http = c.loop ? http_client_new(c.loop,
                                          &(struct http_client_config){.url = url,
                                                                       .max_connections = load->streams,
                                                                       .stamps = load->stamps},
                                          &err)
                        : NULL;
        if (!c.http)
                die(err.text);
        start_streams(&c, streams, load->streams);
        loop_run(c.loop);
        cost = tell("client", c.cpu_began, c.reader.events);
        printf("             %.1f %% with the kernel's stamp; parsed after it: median %.1f us, p99 %.1f us\n",
               (double)c.stamped * 100 / (double)c.reads, percentile(c.late.v, c.late.n, .5),
               percentile(c.late.v, c.late.n, .99));
        stop_server(pid);
        http_client_free(c.http);
        loop_free(c.loop);
        for (unsigned i = 0; i < load->streams; i++)
                sse_done(&streams[i].sse);
        free(streams);
        vec_done(&c.late);
        arena_done(&c.reader.arena);
        return cost;
}

/* ---- what cannot be avoided: the system calls alone */

static int connect_bare(uint16_t port)
{
        static const char request[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
        struct sockaddr_in to = {
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
            send(fd, request, sizeof(request) - 1, 0) != sizeof(request) - 1)
                die("cannot connect");
        return fd;
}

static double bench_bare(const struct load *load)
{
        static char scratch[65536];
        struct epoll_event events[64];
        uint64_t bytes = 0, wanted = (uint64_t)load->streams * load->rate * load->seconds * load->chunks *
                                     (sizeof(EVENT) - 1);
        uint16_t port;
        pid_t pid = start_server(load, &port);
        int epoll = epoll_create1(0);
        struct cpu began;
        double cost;

        for (unsigned i = 0; i < load->streams; i++) {
                int fd = connect_bare(port);
                struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

                epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
        }
        began = cpu_now();
        while (bytes < wanted) {
                int n = epoll_wait(epoll, events, 64, -1);

                for (int i = 0; i < n; i++) {
                        ssize_t got = recv(events[i].data.fd, scratch, sizeof(scratch), MSG_DONTWAIT);

                        bytes += got > 0 ? (size_t)got : 0;
                }
        }
        cost = tell("bare reads", began, wanted / (sizeof(EVENT) - 1));
        stop_server(pid);
        return cost;
}

/* ---- timers */

struct timing {
        struct timer timer;
        struct loop *loop;
        struct rng rng;
        usec_t due;
        double late[2000];
        size_t n;
};

static void on_timer(struct timer *t)
{
        struct timing *m = CONTAINER_OF(t, struct timing, timer);

        m->late[m->n++] = (double)now_ns() / 1e3 - (double)m->due;
        if (m->n == ARRAY_LEN(m->late)) {
                loop_stop(m->loop, 0);
                return;
        }
        m->due = loop_now(m->loop) + 200 + rng_below(&m->rng, 1000);
        timer_at(t, m->due);
}

static void bench_timers(void)
{
        static struct timing m;
        struct err err = ERR_INIT;

        m.loop = loop_new(NULL, NULL, &err);
        if (!m.loop)
                die(err.text);
        rng_seed(&m.rng, 1);
        timer_init(&m.timer, m.loop, on_timer);
        m.due = loop_now(m.loop) + 1000;
        timer_at(&m.timer, m.due);
        loop_run(m.loop);
        printf("timers       late: median %.1f us, p90 %.1f us, p99 %.1f us\n", percentile(m.late, m.n, .5),
               percentile(m.late, m.n, .9), percentile(m.late, m.n, .99));
        loop_free(m.loop);
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise, unsigned max)
{
        uint64_t v = otherwise;

        if (i < argc && (!str_to_u64(str_of(argv[i]), &v) || v == 0 || v > max))
                die("usage: bench-stream [streams] [rounds a second] [seconds] [chunks a round]");
        return (unsigned)v;
}

int main(int argc, char **argv)
{
        struct load load = {.streams = number(argc, argv, 1, 1000, 100000),
                            .rate = number(argc, argv, 2, 50, 100000),
                            .seconds = number(argc, argv, 3, 4, 3600),
                            .chunks = number(argc, argv, 4, 1, 1000)};

        double bare, ours;

        setvbuf(stdout, NULL, _IOLBF, 0);
        bench_reading();
        bench_timers();
        bare = bench_bare(&load);
        bench_streams(&load);
        load.stamps = true;
        ours = bench_streams(&load);
        /* with several chunks a read the system calls are few, and the bar means nothing */
        if (load.chunks == 1 && ours > BAR * bare) {
                printf("the client takes more than %d times what the system calls alone take\n", BAR);
                return 1;
        }
        return 0;
}
