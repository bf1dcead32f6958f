/*
 * load-server - the server of bench/load.py: short streams of events, each with the time of its own first byte.
 *
 *     load-server FIRST_US GAP_US CHUNKS TIMES [AT_ONCE]
 *
 * Prints its port. Answers every POST after FIRST_US with CHUNKS events GAP_US apart (0: as fast as the socket takes
 * them), AT_ONCE (1) in a write(), then [DONE]. A request is known by its max_tokens. Of the write() that has its first
 * event three times are kept (ns of the wall clock): before it, after it, and the kernel's stamp of the moment the packet
 * was given to the device (0: none). With SIGTERM all go to the file TIMES as lines "max_tokens before after device".
 *
 * The stamp is the nearest that a sender knows to the arrival: the loopback device hands a packet to the receiver within
 * the function that stamps it, so no byte was at the client's socket earlier, and none much later. Before the write() is
 * earlier by the server's own way through TCP and IP; the stamp at the packet scheduler (TX_SCHED) too, if by less; the
 * one of the acknowledgment (TX_ACK) waits until the client's kernel sends one, some milliseconds.
 *
 * One thread, one epoll, no allocation in a stream: what is measured is the client.
 */
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"

enum { IN_MAX = 64 * 1024, OUT_MAX = 64 * 1024, EVENTS = 256, KEYS = 4 * 1024 * 1024 };

static const char HEAD[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char EVENT[] =
        "data: "
        "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\","
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";
static const char LAST[] = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
static const char END[] = "data: [DONE]\n\n";

struct peer {
        struct heap_node node; /* the time of its next event */
        int fd;
        size_t n_in, out_at, n_out;
        uint64_t key;
        unsigned left; /* events */
        uint32_t events;
        bool answering, first; /* first: the next write() has the first event */
        char in[IN_MAX];
        char out[OUT_MAX];
};

/* A write() with a first event. */
struct moment {
        uint64_t before, after, device;
};

struct server {
        int epoll_fd, timer_fd;
        struct heap due;
        uint64_t first_ns, gap_ns;
        unsigned chunks, at_once;
        bool stamps;          /* the kernel makes them */
        struct moment *times; /* by key */
        struct clock clock;
};

static uint64_t wall_ns(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_REALTIME, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void drop(struct server *s, struct peer *p)
{
        heap_remove(&s->due, &p->node);
        close(p->fd);
        free(p);
}

static void add(struct peer *p, const char *text, size_t n)
{
        if (p->n_out + n <= OUT_MAX) {
                memcpy(p->out + p->n_out, text, n);
                p->n_out += n;
        }
}

static void add_chunk(struct peer *p, const char *text)
{
        char size[16];
        size_t n = strlen(text);

        add(p, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", n));
        add(p, text, n);
        add(p, "\r\n", 2);
}

/* Sends what there is; the kernel stamps its packet, and tells through the error queue. */
static ssize_t send_stamped(struct peer *p)
{
        uint32_t flags = SOF_TIMESTAMPING_TX_SOFTWARE;
        char control[CMSG_SPACE(sizeof(flags))] __attribute__((aligned(8))) = {0};
        struct iovec out = {.iov_base = p->out + p->out_at, .iov_len = p->n_out - p->out_at};
        struct msghdr msg = {
                .msg_iov = &out, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SO_TIMESTAMPING;
        h->cmsg_len = CMSG_LEN(sizeof(flags));
        memcpy(CMSG_DATA(h), &flags, sizeof(flags));
        return sendmsg(p->fd, &msg, MSG_NOSIGNAL);
}

/* One stamp is under way at a time: the next request acknowledges all of the answer before. False: there is none. */
static bool take_stamp(struct server *s, const struct peer *p)
{
        char control[256] __attribute__((aligned(8)));
        struct msghdr msg = {.msg_control = control, .msg_controllen = sizeof(control)};
        struct timespec at;

        if (recvmsg(p->fd, &msg, MSG_ERRQUEUE) < 0)
                return false;
        for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h)) {
                if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_TIMESTAMPING)
                        continue;
                memcpy(&at, CMSG_DATA(h), sizeof(at));
                if (p->key < KEYS && !s->times[p->key].device)
                        s->times[p->key].device = (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
        }
        return true;
}

/* False: it has gone. */
static bool flush(struct server *s, struct peer *p)
{
        struct epoll_event ev = {.data.ptr = p, .events = EPOLLIN};

        while (p->out_at < p->n_out) {
                bool first = p->first && p->key < KEYS;
                uint64_t before = first ? wall_ns() : 0;
                ssize_t n = first && s->stamps
                                    ? send_stamped(p)
                                    : send(p->fd, p->out + p->out_at, p->n_out - p->out_at, MSG_NOSIGNAL);

                p->first = false;
                if (first)
                        s->times[p->key] = (struct moment){.before = before, .after = wall_ns()};
                if (n < 0 && errno == EAGAIN) {
                        ev.events |= EPOLLOUT;
                        break;
                }
                if (n <= 0)
                        return false;
                p->out_at += (size_t)n;
        }
        if (p->out_at == p->n_out)
                p->out_at = p->n_out = 0;
        if (p->answering && !s->gap_ns)
                ev.events |= EPOLLOUT;
        if (ev.events != p->events)
                epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev);
        p->events = ev.events;
        return true;
}

static void end_answer(struct peer *p)
{
        add_chunk(p, LAST);
        add_chunk(p, END);
        add(p, "0\r\n\r\n", 5);
        p->answering = false;
}

/* The next event of P; without gaps as many as fit. False: it has gone. */
static bool go_on(struct server *s, struct peer *p)
{
        if (p->left == s->chunks) {
                add(p, HEAD, sizeof(HEAD) - 1);
                p->first = true;
        }
        for (unsigned i = 0; p->left && i < s->at_once && p->n_out + 1024 < OUT_MAX; i++) {
                add_chunk(p, EVENT);
                p->left--;
        }
        if (!p->left && p->n_out + 1024 < OUT_MAX)
                end_answer(p);
        else if (s->gap_ns)
                heap_put(&s->due, &p->node, p->node.order + s->gap_ns);
        return flush(s, p);
}

/* A whole request is in P: its max_tokens is its name. */
static void begin(struct server *s, struct peer *p, uint64_t now)
{
        const char *at = memmem(p->in, p->n_in, "\"max_tokens\":", 13);

        p->key = at ? strtoull(at + 13, NULL, 10) : 0;
        p->left = s->chunks;
        p->answering = true;
        p->n_in = 0;
        heap_put(&s->due, &p->node, now + s->first_ns);
}

static bool take(struct server *s, struct peer *p, uint64_t now)
{
        ssize_t n = recv(p->fd, p->in + p->n_in, IN_MAX - 1 - p->n_in, 0);
        const char *end, *length;

        if (n < 0 && errno == EAGAIN)
                return true;
        if (n <= 0)
                return false;
        p->n_in += (size_t)n;
        p->in[p->n_in] = '\0';
        end = strstr(p->in, "\r\n\r\n");
        length = end ? strcasestr(p->in, "content-length:") : NULL;
        if (length && p->n_in >= (size_t)(end + 4 - p->in) + strtoull(length + 15, NULL, 10))
                begin(s, p, now);
        return p->n_in < IN_MAX - 1;
}

/* Nobody sends a second request before the answer's end: what is readable then is the end of the connection. */
static bool ready(struct server *s, struct peer *p, uint32_t events, uint64_t now)
{
        if (events & EPOLLERR && !take_stamp(s, p))
                return false;
        if (events == EPOLLERR)
                return true;
        if (!p->answering && !p->n_out)
                return take(s, p, now);
        if (!(events & EPOLLOUT))
                return false;
        return p->answering && !s->gap_ns ? go_on(s, p) : flush(s, p);
}

static void accept_all(struct server *s, int listener)
{
        int fd, one = 1;
        int stamps = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY; /* which: send_stamped() says */

        while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
                struct peer *p = xmalloc(sizeof(*p));
                struct epoll_event ev = {.data.ptr = p, .events = EPOLLIN};

                p->node = (struct heap_node){0};
                p->fd = fd;
                p->n_in = p->out_at = p->n_out = 0;
                p->answering = p->first = false;
                p->events = EPOLLIN;
                s->stamps = setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)) == 0;
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
        }
}

static void run_due(struct server *s)
{
        struct heap_node *first;
        uint64_t now = clock_boot_ns(&s->clock);
        struct itimerspec spec = {0};

        while ((first = heap_first(&s->due)) && first->order <= now) {
                struct peer *p = CONTAINER_OF(first, struct peer, node);

                heap_remove(&s->due, first);
                if (!go_on(s, p))
                        drop(s, p);
        }
        if (first) {
                spec.it_value.tv_sec = (time_t)(first->order / 1000000000);
                spec.it_value.tv_nsec = (long)(first->order % 1000000000);
        }
        timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void write_times(const struct server *s, const char *path)
{
        FILE *f = fopen(path, "w");

        for (size_t i = 0; f && i < KEYS; i++)
                if (s->times[i].before)
                        fprintf(f, "%zu %llu %llu %llu\n", i, (unsigned long long)s->times[i].before,
                                (unsigned long long)s->times[i].after,
                                (unsigned long long)s->times[i].device);
        if (f)
                fclose(f);
}

static int listen_any(void)
{
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(at);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) < 0 || listen(fd, 4096) < 0 ||
            getsockname(fd, (struct sockaddr *)&at, &n) < 0)
                return -1;
        printf("%u\n", ntohs(at.sin_port));
        fflush(stdout);
        return fd;
}

static void add_fd(struct server *s, int fd, void *mark)
{
        struct epoll_event ev = {.data.ptr = mark, .events = EPOLLIN};

        epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static void serve(struct server *s, int listener, int signals)
{
        int marks[3] = {listener, signals, s->timer_fd};
        struct epoll_event events[EVENTS];

        for (int i = 0; i < 3; i++)
                add_fd(s, marks[i], &marks[i]);
        for (;;) {
                int n = epoll_wait(s->epoll_fd, events, EVENTS, -1);
                uint64_t now = clock_boot_ns(&s->clock), expirations;

                for (int i = 0; i < n; i++) {
                        struct peer *p = events[i].data.ptr;

                        if (events[i].data.ptr == &marks[0])
                                accept_all(s, listener);
                        else if (events[i].data.ptr == &marks[1])
                                return;
                        else if (events[i].data.ptr == &marks[2])
                                (void)!read(s->timer_fd, &expirations, sizeof(expirations));
                        else if (!ready(s, p, events[i].events, now))
                                drop(s, p);
                }
                run_due(s);
        }
}

int main(int argc, char **argv)
{
        struct server s = {.due = HEAP_INIT, .clock = CLOCK_REAL};
        sigset_t set;
        int listener;

        if (argc != 5 && argc != 6) {
                fprintf(stderr, "Usage: load-server FIRST_US GAP_US CHUNKS TIMES [AT_ONCE]\n");
                return 2;
        }
        s.first_ns = strtoull(argv[1], NULL, 10) * 1000;
        s.gap_ns = strtoull(argv[2], NULL, 10) * 1000;
        s.chunks = (unsigned)strtoul(argv[3], NULL, 10);
        s.at_once = argc > 5 ? (unsigned)strtoul(argv[5], NULL, 10) : 1;
        s.times = xcalloc(KEYS, sizeof(*s.times));
        s.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        s.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigprocmask(SIG_BLOCK, &set, NULL);
        listener = listen_any();
        if (listener < 0) {
                perror("load-server");
                return 1;
        }
        serve(&s, listener, signalfd(-1, &set, SFD_CLOEXEC));
        write_times(&s, argv[4]);
        return 0;
}
