/*
 * Requests a CPU-second of HTTP client and server over loopback, plain and TLS, each in a process of its own, beside
 * the bare system calls that cannot be avoided; and what a thousand idle streams take. Usage: bench-http [requests]
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/net.h"
#include "unit/certs.h"

enum { BODY = 300, STREAMS = 1000 };

static _noreturn_ void die(const char *what)
{
        fprintf(stderr, "bench-http: %s\n", what);
        exit(1);
}

/* ---- the server, in a child */

static void on_request(void *arg, struct http_exchange *ex)
{
        static char body[BODY];

        if (str_eq(http_path(ex), STR("/stream"))) {
                http_stream_start(ex, 200, NULL, NULL, NULL);
                http_stream_write(ex, STR("{}\n"));
                return;
        }
        memset(body, 'x', sizeof(body));
        http_reply(ex, 200, "application/json", str_n(body, sizeof(body)));
}

static _noreturn_ void serve(struct tls *tls, int port_pipe)
{
        struct err err = ERR_INIT;
        struct loop *loop = loop_new(NULL, NULL, &err);
        struct http_server *s = loop ? http_server_new(loop,
                                                       &(struct http_server_config){.listen = "127.0.0.1:0",
                                                                                    .tls = tls,
                                                                                    .max_connections = 4096,
                                                                                    .on_request = on_request},
                                                       &err)
                                     : NULL;
        uint16_t port;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!s)
                die(err.text);
        port = http_server_port(s);
        if (write(port_pipe, &port, sizeof(port)) != sizeof(port))
                die("cannot tell the port");
        loop_run(loop);
        exit(0);
}

static pid_t start_server(struct tls *tls, uint16_t *ret_port)
{
        int fds[2];
        pid_t pid;

        if (pipe(fds) < 0 || (pid = fork()) < 0)
                die("cannot fork");
        if (pid == 0)
                serve(tls, fds[1]);
        if (read(fds[0], ret_port, sizeof(*ret_port)) != sizeof(*ret_port))
                die("the server did not start");
        close(fds[0]);
        close(fds[1]);
        return pid;
}

/* ---- measuring */

static double cpu_of(pid_t pid)
{
        clockid_t id;
        struct timespec t;

        if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) < 0)
                die("cannot read the CPU time");
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double wall(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long private_kb(pid_t pid)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(65536);
        struct str rest;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
        if (file_read(path, &text, NULL) < 0)
                die("cannot read smaps_rollup");
        rest = buf_str(&text);
        while (rest.n) {
                struct str value = str_split(&rest, '\n'), name = str_split(&value, ':');
                uint64_t kb;

                value = str_trim(value);
                if (str_eq(name, STR("Private_Dirty")) && str_to_u64(str_split(&value, ' '), &kb))
                        return (long)kb;
        }
        die("smaps_rollup says nothing about Private_Dirty");
}

struct run {
        struct loop *loop;
        struct http_client *client;
        int to_start, running, failed;
};

static void next(struct run *r);

static void on_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct run *r = arg;

        if (err || a->status != 200 || a->body.n != BODY)
                r->failed++;
        r->running--;
        next(r);
        if (!r->running)
                loop_stop(r->loop, 0);
}

static void next(struct run *r)
{
        static const struct http_handlers handlers = {.on_end = on_end};
        static const struct http_header headers[] = {
                {{"Accept", 6}, {"application/json", 16}},
                {{"Authorization", 13}, {"Bearer 0123456789012345678901234567890123456789", 47}},
        };

        if (r->to_start == 0)
                return;
        r->to_start--;
        r->running++;
        http_start(r->client,
                   &(struct http_request){.method = "GET", .target = "/api/v1/x", .headers = {headers, 2}},
                   &handlers, r);
}

static void bench_requests(const char *name, struct run *r, pid_t server, int requests, int in_parallel)
{
        double client = cpu_of(getpid()), peer = cpu_of(server), start = wall();

        r->to_start = requests;
        for (int i = 0; i < in_parallel; i++)
                next(r);
        loop_run(r->loop);
        client = cpu_of(getpid()) - client;
        peer = cpu_of(server) - peer;
        printf("%-6s %2d in parallel: client %5.2f us, server %5.2f us of CPU a request (%.0f, %.0f a "
               "CPU-second); "
               "%.0f requests a second; %d failed\n",
               name, in_parallel, client * 1e6 / requests, peer * 1e6 / requests, requests / client,
               requests / peer, requests / (wall() - start), r->failed);
}

static void next_stream(struct run *r);

/* The first event of one stream opens the next. */
static void on_data(void *arg, struct str chunk)
{
        struct run *r = arg;

        if (--r->running == 0 && r->to_start == 0)
                loop_stop(r->loop, 0);
        next_stream(r);
}

static void stream_ended(void *arg, const struct http_answer *a, const struct err *err)
{
        die(err ? err->text : "a stream ended");
}

static void next_stream(struct run *r)
{
        static const struct http_handlers handlers = {.on_data = on_data, .on_end = stream_ended};

        if (r->to_start == 0)
                return;
        r->to_start--;
        r->running++;
        http_start(r->client, &(struct http_request){.method = "GET", .target = "/stream", .stream = true},
                   &handlers, r);
}

static void bench_streams(const char *name, struct run *r, pid_t server)
{
        long client = private_kb(getpid()), peer = private_kb(server);

        r->to_start = STREAMS;
        for (int i = 0; i < 8; i++)
                next_stream(r);
        loop_run(r->loop);
        client = private_kb(getpid()) - client;
        peer = private_kb(server) - peer;
        printf("%-6s %d idle streams: client +%ld kB, server +%ld kB of private memory (%.2f, %.2f kB "
               "each)\n",
               name, STREAMS, client, peer, (double)client / STREAMS, (double)peer / STREAMS);
}

/* ---- what it is measured against: the same bytes back and forth with nothing but epoll, recv and send */

static void echo(int fd, int times, size_t bytes, bool first)
{
        static char scratch[65536];
        int epoll_fd = epoll_create1(0);
        struct epoll_event ev = {.events = EPOLLIN}, got[64];

        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
        for (int i = 0; i < times; i++) {
                if (first && send(fd, scratch, bytes, MSG_NOSIGNAL) < 0)
                        die("cannot send");
                epoll_wait(epoll_fd, got, 64, -1);
                if (recv(fd, scratch, sizeof(scratch), 0) <= 0)
                        die("the peer has gone");
                if (!first && send(fd, scratch, bytes, MSG_NOSIGNAL) < 0)
                        die("cannot send");
        }
        close(epoll_fd);
}

static void bench_bare(int requests)
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        socklen_t n = sizeof(sa);
        double client, peer;
        pid_t pid;

        if (bind(listener, (struct sockaddr *)&sa, n) < 0 || listen(listener, 1) < 0 ||
            getsockname(listener, (struct sockaddr *)&sa, &n) < 0 ||
            connect(fd, (struct sockaddr *)&sa, n) < 0)
                die("cannot connect to myself");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        pid = fork();
        if (pid == 0) {
                int peer_fd = accept(listener, NULL, NULL);

                setsockopt(peer_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                echo(peer_fd, INT32_MAX, 430, false);
                exit(0);
        }
        client = cpu_of(getpid());
        peer = cpu_of(pid);
        echo(fd, requests, 200, true);
        printf("%-6s  1 in parallel: client %5.2f us, server %5.2f us of CPU a request\n", "bare",
               (cpu_of(getpid()) - client) * 1e6 / requests, (cpu_of(pid) - peer) * 1e6 / requests);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        close(fd);
        close(listener);
}

static void bench(const char *name, struct tls *server_tls, struct tls *client_tls, int requests)
{
        struct err err = ERR_INIT;
        struct run r = {.loop = loop_new(NULL, NULL, &err)};
        uint16_t port;
        pid_t server = start_server(server_tls, &port);
        char url[64];

        snprintf(url, sizeof(url), "%s://127.0.0.1:%u", client_tls ? "https" : "http", port);
        r.client = http_client_new(r.loop, &(struct http_client_config){.url = url, .tls = client_tls}, &err);
        if (!r.client)
                die(err.text);
        bench_requests(name, &r, server, requests, 1);
        bench_requests(name, &r, server, requests, 8);
        bench_streams(name, &r, server);
        http_client_free(r.client);
        loop_free(r.loop);
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
}

int main(int argc, char **argv)
{
        struct cert c = cert_make((struct cert_request){.cn = "bench", .san = "IP:127.0.0.1"});
        struct tls *server = tls_new(
                &(struct tls_config){.server = true, .cert = str_of(c.cert), .key = str_of(c.key)}, NULL);
        struct tls *client = tls_new(&(struct tls_config){.ca = str_of(c.cert)}, NULL);
        struct rlimit files = {8192, 8192};
        uint64_t requests = 20000;

        setrlimit(RLIMIT_NOFILE, &files);
        if (argc > 1 && (!str_to_u64(str_of(argv[1]), &requests) || requests == 0 || requests > 10000000))
                die("the number of requests must be 1 to 10000000");
        if (!server || !client)
                die("cannot set up TLS");
        bench_bare((int)requests);
        bench("plain", NULL, NULL, (int)requests);
        bench("tls", server, client, (int)requests);
        tls_unref(server);
        tls_unref(client);
        cert_done(&c);
        return 0;
}
