/*
 * A workload's output: from its pipe to our own, unchanged and at once.
 */
#include "run/supervise_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        READ_SIZE = 64 * 1024, /* what a pipe holds */
        READS_A_TURN = 8,      /* so that one stream does not keep the other waiting */
};

/* ---- our own output */

/* A descriptor of our own for the pipe FD: O_NONBLOCK belongs to whoever shares a description. -1: not to be had. */
static int reopen(int fd)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

static void output_init(struct stream *t, int fd)
{
        struct stat st;
        int own;

        t->out_fd = fd;
        t->kind = OUTPUT_PLAIN;
        if (fstat(fd, &st) < 0)
                return;
        if (S_ISSOCK(st.st_mode))
                t->kind = OUTPUT_SOCKET;
        else if (S_ISFIFO(st.st_mode) && (own = reopen(fd)) >= 0) {
                t->kind = OUTPUT_NONBLOCK;
                t->out_fd = own;
                t->out_owned = true;
        } else if (S_ISFIFO(st.st_mode) || isatty(fd))
                t->kind = OUTPUT_CAREFUL;
}

/* A pipe that can be written to has room for PIPE_BUF bytes, all of them. */
static ssize_t write_careful(int fd, const char *p, size_t n)
{
        struct pollfd ask = {.fd = fd, .events = POLLOUT};

        if (poll(&ask, 1, 0) <= 0) {
                errno = EAGAIN;
                return -1;
        }
        return write(fd, p, MIN(n, (size_t)PIPE_BUF));
}

static ssize_t output_write(const struct stream *t, const char *p, size_t n)
{
        switch (t->kind) {
        case OUTPUT_SOCKET:
                return send(t->out_fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        case OUTPUT_CAREFUL:
                return write_careful(t->out_fd, p, n);
        case OUTPUT_PLAIN:
        case OUTPUT_NONBLOCK:
                break;
        }
        return write(t->out_fd, p, n);
}

bool output_same(int out_fd, int err_fd)
{
        struct stat x, y;

        return fstat(out_fd, &x) == 0 && fstat(err_fd, &y) == 0 && x.st_dev == y.st_dev &&
               x.st_ino == y.st_ino;
}

/* ---- between the two */

static void readable(struct io *io, uint32_t events);
static void writable(struct io *io, uint32_t events);

static void close_in(struct stream *t)
{
        io_remove(&t->in);
        fd_close(TAKE_FD(t->in_fd));
}

bool stream_flushed(const struct stream *t)
{
        return t->written == t->pending.n;
}

/* Writes what is pending. False: the reader is slow; writable() goes on. */
static bool flush(struct stream *t)
{
        while (!stream_flushed(t) && !t->broken) {
                ssize_t n = output_write(t, t->pending.p + t->written, t->pending.n - t->written);

                if (n >= 0)
                        t->written += (size_t)n;
                else if (errno == EAGAIN || errno == EWOULDBLOCK)
                        return false;
                else if (errno == EPIPE || errno == ECONNRESET || errno == EBADF)
                        t->broken = true;
                else if (errno != EINTR)
                        break; /* a full disk: this part is lost, as it would be for the workload */
        }
        buf_clear(&t->pending);
        t->written = 0;
        return true;
}

static void drop(struct stream *t)
{
        t->broken = true;
        (void)flush(t);
}

static void wait_for_room(struct stream *t)
{
        if (!t->out.loop && io_add(t->loop, &t->out, t->out_fd, EPOLLOUT, writable) < 0)
                drop(t);
        else
                io_remove(&t->in); /* not merely silenced: epoll reports a hang-up all the same */
}

/* Reads once, at most N bytes. 1: something came. 0: nothing now. Below 0: that was the end. */
static int read_some(struct stream *t, size_t n)
{
        char *to = buf_reserve(&t->pending, n);
        ssize_t got = to ? read(t->in_fd, to, n) : -1;

        if (got < 0)
                return to && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        if (got == 0)
                return -1;
        tail_add(t->tail, str_n(to, (size_t)got));
        t->pending.n += (size_t)got;
        return 1;
}

static void readable(struct io *io, uint32_t events)
{
        struct stream *t = CONTAINER_OF(io, struct stream, in);

        for (int i = 0; i < READS_A_TURN; i++) {
                int r = read_some(t, READ_SIZE);
                bool all = t->pending.n < READ_SIZE; /* a reader that gets less has emptied the pipe */

                if (r < 0)
                        close_in(t);
                if (r <= 0)
                        return;
                if (!flush(t))
                        wait_for_room(t);
                if (all || t->out.loop)
                        return;
        }
}

static void writable(struct io *io, uint32_t events)
{
        struct stream *t = CONTAINER_OF(io, struct stream, out);

        if (!flush(t))
                return;
        io_remove(&t->out);
        if (t->in_fd >= 0 && io_add(t->loop, &t->in, t->in_fd, EPOLLIN, readable) < 0)
                close_in(t);
        t->on_flushed(t->arg);
}

void stream_drain(struct stream *t)
{
        int left = 0;

        if (t->in_fd >= 0 && ioctl(t->in_fd, FIONREAD, &left) < 0)
                left = 0;
        t->pending.max = MAX(t->pending.max, t->pending.n + (size_t)left);
        while (left > 0) {
                size_t before = t->pending.n;

                if (read_some(t, (size_t)left) <= 0)
                        break;
                left -= (int)(t->pending.n - before);
        }
        close_in(t);
        if (!flush(t))
                wait_for_room(t);
}

int stream_init(struct stream *t, struct loop *loop, int in_fd, int out_fd, struct tail *tail,
                struct err *err)
{
        t->loop = loop;
        t->tail = tail;
        t->in_fd = in_fd;
        t->pending = (struct buf)BUF_INIT(READ_SIZE);
        output_init(t, out_fd);
        if (fd_set_nonblock(in_fd) < 0 || io_add(loop, &t->in, in_fd, EPOLLIN, readable) < 0)
                return err_errno(err, E_IO, errno, "cannot follow the output");
        return 0;
}

void stream_done(struct stream *t)
{
        io_remove(&t->in);
        io_remove(&t->out);
        fd_close(t->in_fd);
        if (t->out_owned)
                fd_close(t->out_fd);
        buf_done(&t->pending);
}
