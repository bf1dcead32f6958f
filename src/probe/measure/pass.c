/*
 * A command's standard output through us to our own, searched for metrics on its way. The pipe is as large as pipes
 * get, so that the command does not wait for us; it waits when our own output takes nothing, as it would without us.
 */
#include "probe/measure/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

enum { PIECE = 64 * 1024, PIECES_A_TURN = 16, PIPE_SIZE = 1 << 20 };

static const usec_t AGAIN = 5 * USEC_PER_MS;

/* A pipe that can be written to has room for PIPE_BUF bytes. False: not all is written. */
static bool flush(struct pass *p, bool wait)
{
        struct pollfd ask = {.fd = p->out_fd, .events = POLLOUT};

        while (p->out_fd >= 0 && p->written < p->pending.n) {
                ssize_t n;

                if (poll(&ask, 1, wait ? -1 : 0) == 0)
                        return false;
                n = write(p->out_fd, p->pending.p + p->written,
                          MIN(p->pending.n - p->written, (size_t)PIPE_BUF));
                if (n < 0 && errno == EAGAIN && !wait)
                        return false;
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        break; /* lost, as it would be for the command */
                p->written += (size_t)MAX(n, (ssize_t)0);
        }
        buf_clear(&p->pending);
        p->written = 0;
        return true;
}

/* One piece. False: there is none now, or it was the last. */
static bool take(struct pass *p)
{
        char *to = buf_reserve(&p->pending, PIECE);
        ssize_t n = to ? read(p->in_fd, to, PIECE) : -1;

        if (n <= 0) {
                if (n == 0)
                        io_remove(&p->in);
                return false;
        }
        measure_scan_feed(p->scan, str_n(to, (size_t)n));
        p->pending.n += (size_t)n;
        return true;
}

static void readable(struct io *io, uint32_t events)
{
        struct pass *p = CONTAINER_OF(io, struct pass, in);

        for (int i = 0; i < PIECES_A_TURN && take(p); i++)
                if (!flush(p, false)) {
                        io_remove(&p->in);
                        timer_after(&p->again, AGAIN);
                        return;
                }
}

static void try_again(struct timer *t)
{
        struct pass *p = CONTAINER_OF(t, struct pass, again);

        if (!flush(p, false))
                timer_after(t, AGAIN);
        else if (io_add(p->loop, &p->in, p->in_fd, EPOLLIN, readable) < 0)
                p->out_fd = -1; /* pass_end() reads it */
}

int pass_init(struct pass *p, struct loop *loop, int in_fd, int out_fd, struct measure_scan *scan,
              struct err *err)
{
        *p = (struct pass){.loop = loop, .in_fd = in_fd, .out_fd = out_fd, .scan = scan};
        p->pending = (struct buf)BUF_INIT(2 * PIECE);
        timer_init(&p->again, loop, try_again);
        (void)fcntl(in_fd, F_SETPIPE_SZ, PIPE_SIZE);
        if (fd_set_nonblock(in_fd) < 0 || io_add(loop, &p->in, in_fd, EPOLLIN, readable) < 0)
                return err_errno(err, E_IO, errno, "cannot follow the output");
        return 0;
}

void pass_end(struct pass *p)
{
        if (!p->loop)
                return;
        timer_cancel(&p->again);
        do
                (void)flush(p, true);
        while (take(p));
        io_remove(&p->in);
        fd_close(p->in_fd);
        buf_done(&p->pending);
        p->loop = NULL;
}
