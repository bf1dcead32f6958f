#include "net/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/conn.h"

enum { ADDRESSES_MAX = 8 };
#define NEXT_AFTER (250 * USEC_PER_MS)

struct address {
        struct sockaddr_storage sa;
        socklen_t n;
};

struct attempt {
        struct io io;
        struct dial *dial;
        int fd; /* -1: over */
};

struct lookup;

struct dial {
        struct loop *loop;
        dial_fn *fn;
        void *arg;
        char *host;
        uint16_t port;
        usec_t dead_after;
        struct lookup *lookup; /* under way */
        struct timer next;
        struct defer begin; /* nothing calls back while the caller is on the stack */
        struct address addresses[ADDRESSES_MAX];
        struct attempt attempts[ADDRESSES_MAX];
        unsigned n, started, failed;
        int errnum; /* of the first failure */
};

struct lookup {
        struct work work;
        struct dial *dial; /* the loop's; NULL: cancelled */
        char *host;
        int result;
        struct addrinfo *list;
};

static void dial_free(struct dial *d)
{
        timer_cancel(&d->next);
        defer_cancel(&d->begin);
        for (unsigned i = 0; i < d->started; i++) {
                io_remove(&d->attempts[i].io);
                fd_close(d->attempts[i].fd);
        }
        free(d->host);
        free(d);
}

static void finish(struct dial *d, int fd, const struct err *err)
{
        dial_fn *fn = d->fn;
        void *arg = d->arg;

        dial_free(d);
        fn(arg, fd, err);
}

static void start_next(struct dial *d);

static void fail_attempt(struct dial *d, struct attempt *a, int errnum)
{
        struct err err = ERR_INIT;

        io_remove(&a->io);
        fd_close(TAKE_FD(a->fd));
        if (!d->errnum)
                d->errnum = errnum;
        if (++d->failed < d->n) {
                if (d->started < d->n)
                        timer_after(&d->next, 0);
                return;
        }
        err_errno(&err, E_CONNECT, d->errnum, "cannot connect to %s port %u", d->host, d->port);
        finish(d, -1, &err);
}

/* A connection to a local port nobody listens on can connect to itself, when the kernel picks that very port. */
static bool connected_to_itself(int fd)
{
        struct sockaddr_storage here = {0}, there = {0};
        socklen_t n = sizeof(here), m = sizeof(there);

        return getsockname(fd, (struct sockaddr *)&here, &n) == 0 &&
               getpeername(fd, (struct sockaddr *)&there, &m) == 0 && n == m && memcmp(&here, &there, n) == 0;
}

static void attempt_ready(struct io *io, uint32_t events)
{
        struct attempt *a = CONTAINER_OF(io, struct attempt, io);
        struct dial *d = a->dial;
        int errnum = 0, fd = a->fd;
        socklen_t n = sizeof(errnum);

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
                errnum = errno;
        if (!errnum && connected_to_itself(fd))
                errnum = ECONNREFUSED;
        if (errnum) {
                fail_attempt(d, a, errnum);
                return;
        }
        io_remove(&a->io);
        a->fd = -1;
        finish(d, fd, NULL);
}

static void start_attempt(struct dial *d, struct attempt *a, const struct address *to)
{
        a->dial = d;
        a->fd = socket(to->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
        if (a->fd < 0) {
                fail_attempt(d, a, errno);
                return;
        }
        socket_tune(a->fd, d->dead_after);
        if (connect(a->fd, (const struct sockaddr *)&to->sa, to->n) < 0 && errno != EINPROGRESS) {
                fail_attempt(d, a, errno);
                return;
        }
        if (io_add(d->loop, &a->io, a->fd, EPOLLOUT, attempt_ready) < 0)
                fail_attempt(d, a, errno);
}

static void start_next(struct dial *d)
{
        unsigned i = d->started;

        if (i == d->n)
                return;
        d->started++;
        if (d->started < d->n)
                timer_after(&d->next, NEXT_AFTER);
        start_attempt(d, &d->attempts[i], &d->addresses[i]);
}

static void next_due(struct timer *t)
{
        start_next(CONTAINER_OF(t, struct dial, next));
}

/* ---- addresses */

static bool literal_address(const char *host, uint16_t port, struct address *ret)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *)&ret->sa;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&ret->sa;

        if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
                v4->sin_family = AF_INET;
                v4->sin_port = htons(port);
                ret->n = sizeof(*v4);
                return true;
        }
        if (inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons(port);
                ret->n = sizeof(*v6);
                return true;
        }
        return false;
}

/* Takes the addresses of LIST, the families in turn, beginning with the one the resolver likes best. */
static void take_addresses(struct dial *d, const struct addrinfo *list)
{
        int first = list ? list->ai_family : AF_INET;
        const struct addrinfo *a = list, *b = list;

        for (bool turn = true; d->n < ADDRESSES_MAX && (a || b); turn = !turn) {
                const struct addrinfo **it = turn ? &a : &b;

                while (*it && ((*it)->ai_family == first) != turn)
                        *it = (*it)->ai_next;
                if (!*it)
                        continue;
                if ((*it)->ai_addrlen <= sizeof(d->addresses[0].sa)) {
                        struct address *to = &d->addresses[d->n++];

                        memcpy(&to->sa, (*it)->ai_addr, (*it)->ai_addrlen);
                        to->n = (*it)->ai_addrlen;
                        if ((*it)->ai_family == AF_INET6)
                                ((struct sockaddr_in6 *)&to->sa)->sin6_port = htons(d->port);
                        else
                                ((struct sockaddr_in *)&to->sa)->sin_port = htons(d->port);
                }
                *it = (*it)->ai_next;
        }
}

static void lookup_run(struct work *work)
{
        struct lookup *l = CONTAINER_OF(work, struct lookup, work);
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};

        l->result = getaddrinfo(l->host, NULL, &hints, &l->list);
}

static void lookup_done(struct work *work)
{
        struct lookup *l = CONTAINER_OF(work, struct lookup, work);
        struct dial *d = work->canceled ? NULL : l->dial;
        struct err err = ERR_INIT;
        int result = l->result;

        if (d) {
                d->lookup = NULL;
                if (result == 0)
                        take_addresses(d, l->list);
        }
        if (l->list)
                freeaddrinfo(l->list);
        free(l->host);
        free(l);
        if (!d)
                return;
        if (d->n) {
                start_next(d);
                return;
        }
        err_set(&err, E_CONNECT, "cannot resolve '%s': %s", d->host,
                result ? gai_strerror(result) : "no address");
        finish(d, -1, &err);
}

static void begin(struct defer *defer)
{
        start_next(CONTAINER_OF(defer, struct dial, begin));
}

static struct dial *dial_new(struct loop *loop, const char *host, uint16_t port, usec_t dead_after,
                             dial_fn *fn, void *arg)
{
        struct dial *d = xcalloc(1, sizeof(*d));

        *d = (struct dial){.loop = loop, .fn = fn, .arg = arg, .port = port, .dead_after = dead_after};
        d->host = xstrdup(host);
        timer_init(&d->next, loop, next_due);
        return d;
}

struct dial *dial_start(struct loop *loop, const char *host, uint16_t port, usec_t dead_after, dial_fn *fn,
                        void *arg)
{
        struct dial *d = dial_new(loop, host, port, dead_after, fn, arg);

        if (literal_address(host, port, &d->addresses[0])) {
                d->n = 1;
                defer_run(loop, &d->begin, begin);
                return d;
        }
        d->lookup = xcalloc(1, sizeof(*d->lookup));
        d->lookup->work = (struct work){.run = lookup_run, .done = lookup_done};
        d->lookup->dial = d;
        d->lookup->host = xstrdup(host);
        loop_offload(loop, &d->lookup->work);
        return d;
}

struct dial *dial_start_list(struct loop *loop, const char *host, const struct addrinfo *list, uint16_t port,
                             usec_t dead_after, dial_fn *fn, void *arg)
{
        struct dial *d = dial_new(loop, host, port, dead_after, fn, arg);

        take_addresses(d, list);
        defer_run(loop, &d->begin, begin);
        return d;
}

void dial_cancel(struct dial *d)
{
        if (!d)
                return;
        if (d->lookup)
                d->lookup->dial = NULL;
        dial_free(d);
}
