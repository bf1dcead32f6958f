#include "net/conn.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* A peer that sends without end must not starve the others. */
enum { READS_A_TURN = 4, TLS_RECORD = 16384, TLS_HANDSHAKE = 0x16 };

static void conn_ready(struct io *io, uint32_t events);

void conn_init(struct conn *c, struct loop *loop, const struct conn_ops *ops)
{
        *c = (struct conn){.loop = loop, .ops = ops, .fd = -1, .out = BUF_INIT(SIZE_MAX)};
}

int conn_attach(struct conn *c, int fd, struct err *err)
{
        uint32_t events = EPOLLIN | (c->want_hup ? (uint32_t)EPOLLRDHUP : 0);

        if (io_add(c->loop, &c->io, fd, events, conn_ready) < 0) {
                err_errno(err, E_CONNECT, errno, "cannot watch a socket");
                fd_close(fd);
                return -1;
        }
        c->fd = fd;
        return 0;
}

void conn_close(struct conn *c)
{
        if (c->fd < 0)
                return;
        if (c->tls && !c->broken)
                tls_goodbye(c->tls);
        tls_session_free(TAKE_PTR(c->tls));
        defer_cancel(&c->kick);
        io_remove(&c->io);
        fd_close(TAKE_FD(c->fd));
        if (c->out.p)
                mem_wipe(c->out.p, c->out.n);
        buf_done(&c->out);
        c->out_at = 0;
}

size_t conn_unsent(const struct conn *c)
{
        return c->out.n - c->out_at;
}

/* What epoll should tell. EPOLLIN is not dropped by a pause but by the first event that comes in spite of it. */
static void set_interest(struct conn *c, bool read)
{
        uint32_t events = read ? (uint32_t)EPOLLIN : 0;

        if (c->want_hup && !c->ended)
                events |= EPOLLRDHUP;
        if (c->stuck || c->tls_read_wants_write)
                events |= EPOLLOUT;
        io_set(&c->io, events);
}

static bool reading(const struct conn *c)
{
        return c->io.events & EPOLLIN;
}

/* ---- sending */

static long raw_send(struct conn *c, const char *p, size_t n)
{
        ssize_t put;

        if (c->tls)
                return tls_write(c->tls, p, n, NULL);
        put = send(c->fd, p, n, MSG_NOSIGNAL);
        if (put >= 0)
                return put;
        return errno == EAGAIN || errno == EINTR ? TLS_AGAIN : TLS_FAILED;
}

static void break_off(struct conn *c)
{
        c->broken = true;
        c->stuck = false;
        buf_done(&c->out);
        c->out_at = 0;
}

/* Sends P; returns what the kernel took. After a failure nothing is sent any more, but reading goes on: the peer may
 * have answered before it closed. */
static size_t send_some(struct conn *c, struct str data)
{
        size_t sent = 0;

        while (sent < data.n) {
                long put = raw_send(c, data.p + sent, data.n - sent);

                if (put == TLS_AGAIN)
                        break;
                if (put <= 0) {
                        break_off(c);
                        break;
                }
                sent += (size_t)put;
                if (!c->tls && sent < data.n)
                        break; /* the socket's buffer is full */
        }
        return sent;
}

size_t conn_send(struct conn *c, struct str data)
{
        size_t sent = 0;

        if (c->fd < 0 || c->broken)
                return 0;
        if (!c->handshaking && conn_unsent(c) == 0)
                sent = send_some(c, data);
        if (!c->broken && sent < data.n) {
                buf_addstr(&c->out, str_n(data.p + sent, data.n - sent));
                c->stuck = !c->handshaking;
                set_interest(c, reading(c));
        }
        return sent;
}

void conn_flush(struct conn *c)
{
        if (c->fd < 0 || c->handshaking || conn_unsent(c) == 0)
                return;
        c->out_at += send_some(c, str_n(c->out.p + c->out_at, conn_unsent(c)));
        if (c->broken || conn_unsent(c) == 0) {
                buf_done(&c->out);
                c->out_at = 0;
        } else if (c->out_at > c->out.n / 2) {
                buf_consume(&c->out, c->out_at);
                c->out_at = 0;
        }
        c->stuck = conn_unsent(c) > 0;
        set_interest(c, reading(c));
}

/* ---- receiving */

void conn_time(struct conn *c, bool stamps)
{
        int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

        c->timed = true;
        /* The kernel knows nothing of a test's clock. */
        c->stamping = stamps && !loop_clock(c->loop)->manual &&
                      setsockopt(c->fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) == 0;
}

/* The kernel's stamp among what came with the bytes, in nanoseconds of the wall clock; 0: none. */
static uint64_t stamp_of(struct msghdr *msg)
{
        struct scm_timestamping stamps;

        for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
                if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_TIMESTAMPING ||
                    h->cmsg_len < CMSG_LEN(sizeof(stamps)))
                        continue;
                memcpy(&stamps, CMSG_DATA(h), sizeof(stamps));
                return (uint64_t)stamps.ts[0].tv_sec * 1000000000 + (uint64_t)stamps.ts[0].tv_nsec;
        }
        return 0;
}

static ssize_t recv_stamped(struct conn *c, char *p, size_t n)
{
        char control[CMSG_SPACE(sizeof(struct scm_timestamping))] __attribute__((aligned(8)));
        struct iovec into = {.iov_base = p, .iov_len = n};
        struct msghdr msg = {
                .msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
        ssize_t got = recvmsg(c->fd, &msg, 0);
        uint64_t stamp = got > 0 ? stamp_of(&msg) : 0;

        c->stamped = stamp != 0;
        if (stamp)
                c->received = clock_boot_ns_of(loop_clock(c->loop), stamp);
        return got;
}

static long raw_recv(struct conn *c, char *p, size_t n, struct err *err)
{
        ssize_t got;

        if (c->tls) {
                long r = tls_read(c->tls, p, n, err);

                c->tls_read_wants_write = r == TLS_AGAIN && tls_wants_write(c->tls);
                return r;
        }
        got = c->stamping ? recv_stamped(c, p, n) : recv(c->fd, p, n, 0);
        if (got >= 0)
                return got;
        if (errno == EAGAIN || errno == EINTR)
                return TLS_AGAIN;
        err_errno(err, E_LOST, errno, "connection broke");
        return TLS_FAILED;
}

static void read_some(struct conn *c)
{
        char *scratch = loop_scratch(c->loop);

        for (int i = 0; i < READS_A_TURN; i++) {
                struct err err;
                long n = raw_recv(c, scratch, LOOP_SCRATCH_SIZE, &err);

                if (n == TLS_AGAIN) {
                        set_interest(c, true);
                        return;
                }
                if (n <= 0) {
                        c->ended = true;
                        set_interest(c, false);
                        c->ops->on_end(c, n < 0 ? &err : NULL);
                        return;
                }
                if (c->timed && !c->stamped)
                        c->received = clock_boot_ns(loop_clock(c->loop));
                c->ops->on_data(c, str_n(scratch, (size_t)n));
                if (c->fd < 0 || c->paused || c->handshaking)
                        return;
                /* A short read has emptied the socket: epoll says when there is more. */
                if (c->tls ? n < TLS_RECORD && !tls_has_pending(c->tls) : n < LOOP_SCRATCH_SIZE)
                        return;
        }
        if (c->tls)
                conn_pause(c, false); /* TLS may hold bytes back that epoll knows nothing of */
}

static void kicked(struct defer *d)
{
        struct conn *c = CONTAINER_OF(d, struct conn, kick);

        if (c->fd >= 0 && !c->paused && !c->ended && !c->handshaking)
                read_some(c);
}

void conn_pause(struct conn *c, bool pause)
{
        c->paused = pause;
        if (pause || c->fd < 0 || c->ended)
                return;
        if (!c->io.loop && io_add(c->loop, &c->io, c->fd, 0, conn_ready) < 0)
                return;
        set_interest(c, true);
        if (c->tls && !c->handshaking && tls_has_pending(c->tls))
                defer_run(c->loop, &c->kick, kicked);
}

void conn_ignore_half_close(struct conn *c)
{
        c->want_hup = false;
        set_interest(c, false);
}

void conn_shut(struct conn *c)
{
        if (c->fd < 0)
                return;
        if (c->tls && !c->broken && !c->handshaking)
                tls_goodbye(c->tls);
        shutdown(c->fd, SHUT_WR);
}

/* ---- events */

/* True: no byte has come that would tell, or it did, and is no TLS. Only the first byte of all tells. */
static bool needs_no_handshake(struct conn *c)
{
        unsigned char first;
        ssize_t n = recv(c->fd, &first, 1, MSG_PEEK);

        if (n < 0 && errno == EAGAIN) {
                io_set(&c->io, EPOLLIN);
                return true;
        }
        c->or_plain = false;
        if (n != 1 || first == TLS_HANDSHAKE)
                return false;
        tls_session_free(TAKE_PTR(c->tls));
        c->handshaking = false;
        set_interest(c, true);
        c->ops->on_open(c, NULL);
        return true;
}

static void handshake(struct conn *c)
{
        struct err err = ERR_INIT;
        int r;

        if (c->or_plain && needs_no_handshake(c))
                return;
        r = tls_handshake(c->tls, &err);
        if (r == TLS_AGAIN) {
                io_set(&c->io, EPOLLIN | (tls_wants_write(c->tls) ? (uint32_t)EPOLLOUT : 0));
                return;
        }
        c->handshaking = false;
        if (r != 1) {
                c->broken = true;
                c->ops->on_open(c, &err);
                return;
        }
        c->stuck = conn_unsent(c) > 0;
        set_interest(c, true);
        c->ops->on_open(c, NULL);
        /* The first request may have come in the same packet as the end of the handshake. */
        if (c->fd >= 0 && !c->paused && tls_has_pending(c->tls))
                defer_run(c->loop, &c->kick, kicked);
}

void conn_start_tls(struct conn *c, struct tls_session *tls)
{
        c->tls = tls;
        c->handshaking = true;
        io_set(&c->io, EPOLLIN | EPOLLOUT);
}

/* Bytes or the end came although nobody wants to read now. */
static void disturbed(struct conn *c, uint32_t events)
{
        bool gone = events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);

        if (gone && c->ops->on_gone) {
                c->ops->on_gone(c, events & (EPOLLHUP | EPOLLERR));
                return;
        }
        if (events & (EPOLLHUP | EPOLLERR))
                io_remove(&c->io); /* cannot be switched off: would come again at once */
        else
                set_interest(c, false);
}

static void conn_ready(struct io *io, uint32_t events)
{
        struct conn *c = CONTAINER_OF(io, struct conn, io);

        if (c->handshaking) {
                handshake(c);
                return;
        }
        if (events & EPOLLOUT) {
                bool waited = conn_unsent(c) > 0;

                conn_flush(c);
                if (waited && c->ops->on_sent)
                        c->ops->on_sent(c);
                if (c->fd < 0)
                        return;
                if (c->tls_read_wants_write)
                        events |= EPOLLIN;
        }
        if (!(events & ~(uint32_t)EPOLLOUT))
                return;
        if (c->ended) {
                /* Half closed, with something left to send: a hang-up now is the end of that too. */
                if (events & (EPOLLHUP | EPOLLERR)) {
                        break_off(c);
                        io_remove(&c->io);
                        if (c->ops->on_sent)
                                c->ops->on_sent(c);
                }
        } else if (c->paused) {
                disturbed(c, events);
        } else {
                read_some(c);
        }
}

void socket_tune(int fd, usec_t dead_after)
{
        int one = 1, seconds = (int)MIN(MAX(dead_after / USEC_PER_SEC, (usec_t)3), (usec_t)3600);
        int idle = seconds / 2 > 0 ? seconds / 2 : 1, interval = seconds / 6 > 0 ? seconds / 6 : 1, count = 3;
        unsigned timeout_ms = (unsigned)seconds * 1000;

        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
}
