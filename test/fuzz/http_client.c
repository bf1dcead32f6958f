/*
 * Any bytes as the answer to a request: the call ends exactly once, whatever came. The first byte says what kind of
 * call it is, the second how the bytes are cut into pieces.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz/http_parse.h"
#include "net/net.h"

enum { STREAM = 1, HEAD = 2, PAUSE_NOW_AND_THEN = 4, CANCEL = 8, RESET = 16, KEEP_OPEN = 32 };

struct rig {
        struct clock clock;
        struct loop *loop;
        struct http_client *client;
        struct http_call *call;
        int listen_fd, ends;
        char url[64];
        uint8_t flags;
};

static void on_data(void *arg, struct str chunk)
{
        struct rig *r = arg;

        if (r->flags & PAUSE_NOW_AND_THEN)
                http_call_pause(r->call, true);
        else if (r->flags & CANCEL)
                http_call_cancel(TAKE_PTR(r->call));
}

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct rig *r = arg;

        r->ends++;
        r->call = NULL;
        if (!err && (!answer || answer->status < 200 || answer->status > 599))
                abort();
        if (err && (err->code == E_OK || !err->text[0] || !utf8_valid(err->text, strlen(err->text))))
                abort();
}

static void set_up(struct rig *r)
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(sa);

        r->clock = (struct clock){.manual = true, .boot = 1, .wall = 1};
        r->loop = loop_new(&r->clock, NULL, NULL);
        r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (!r->loop || bind(r->listen_fd, (struct sockaddr *)&sa, n) < 0 || listen(r->listen_fd, 16) < 0 ||
            getsockname(r->listen_fd, (struct sockaddr *)&sa, &n) < 0)
                abort();
        snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u", ntohs(sa.sin_port));
}

static void turn(struct rig *r)
{
        if (r->call && r->flags & PAUSE_NOW_AND_THEN)
                http_call_pause(r->call, false);
        loop_turn(r->loop, false);
        loop_turn(r->loop, false);
}

static int accept_one(struct rig *r)
{
        int fd = -1;

        for (int i = 0; i < 100000 && fd < 0; i++) {
                loop_turn(r->loop, false);
                fd = accept4(r->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        }
        if (fd < 0)
                abort();
        return fd;
}

static void send_pieces(struct rig *r, int fd, struct str data, unsigned seed)
{
        struct rng rng;
        char junk[4096];

        rng_seed(&rng, seed);
        while (data.n && r->call) {
                size_t n = MIN(1 + rng_below(&rng, seed & 1 ? 64 : 4096), data.n);
                ssize_t put = send(fd, data.p, n, MSG_NOSIGNAL);

                if (put < 0)
                        return;
                data = str_n(data.p + put, data.n - (size_t)put);
                turn(r);
                while (recv(fd, junk, sizeof(junk), 0) > 0)
                        continue;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct http_handlers handlers = {.on_data = on_data, .on_end = on_end};
        static struct rig r; /* loop and listener serve all runs, the client one */
        struct linger now = {.l_onoff = 1};
        struct str answer;
        bool canceled;
        int fd;

        if (size < 2)
                return 0;
        answer = str_n((const char *)data + 2, size - 2);
        parse_both_ways(&record_answers, answer, data[1]);
        if (!r.loop)
                set_up(&r);
        r.flags = data[0];
        r.ends = 0;
        r.client = http_client_new(
                r.loop,
                &(struct http_client_config){.url = r.url,
                                             .limits = {.head = 2000, .headers = 20, .body = 100000}},
                NULL);
        if (!r.client)
                abort();
        r.call = http_start(r.client,
                            &(struct http_request){.method = r.flags & HEAD ? "HEAD" : "GET",
                                                   .target = "/",
                                                   .stream = r.flags & STREAM,
                                                   .idle_timeout = 10 * USEC_PER_SEC},
                            &handlers, &r);
        fd = accept_one(&r);
        send_pieces(&r, fd, answer, data[1]);
        if (!(r.flags & KEEP_OPEN))
                shutdown(fd, SHUT_WR);
        /* closed with a reset, so that thousands of runs leave no port in TIME_WAIT */
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        if (r.flags & RESET)
                fd_close(TAKE_FD(fd));
        for (int i = 0; i < 20 && r.call; i++)
                turn(&r);
        for (int i = 0; i < 40 && r.call; i++) {
                r.clock.boot += 61 * USEC_PER_SEC;
                turn(&r);
        }
        canceled = r.flags & CANCEL && r.flags & STREAM && !r.call && r.ends == 0;
        if (!canceled && r.ends != 1)
                abort();
        http_client_free(r.client);
        loop_turn(r.loop, false);
        fd_close(fd);
        return 0;
}
