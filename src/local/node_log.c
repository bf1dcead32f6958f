/*
 * Output of a container to a file, in the CRI's format: "2026-11-15T21:43:48.123456000Z stdout F text".
 */
#include "local/node_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_LIMIT ((uint64_t)10 << 20)

static int open_file(struct node_log *l, struct err *err)
{
        struct stat st;

        l->fd = open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (l->fd < 0 || fstat(l->fd, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot open log %s", l->path);
        l->size = (uint64_t)st.st_size;
        return 0;
}

int node_log_open(struct node_log *l, const char *path, uint64_t limit, struct err *err)
{
        *l = (struct node_log){.path = xstrdup(path),
                               .fd = -1,
                               .limit = limit ? limit : DEFAULT_LIMIT,
                               .pending = BUF_INIT(16 * NODE_LOG_LINE),
                               .tail = BUF_INIT(3 * NODE_LOG_TAIL + NODE_LOG_LINE)};
        return open_file(l, err);
}

void node_log_done(struct node_log *l)
{
        node_log_flush(l);
        fd_close(l->fd);
        free(l->path);
        buf_done(&l->pending);
        buf_done(&l->tail);
        *l = (struct node_log){.fd = -1};
}

/* N.log becomes N.log.1, that .2, and so on; the oldest goes. */
static void rotate(struct node_log *l)
{
        for (int i = NODE_LOG_KEEP; i > 0; i--) {
                _cleanup_(free_ptr) char *from = i > 1 ? xasprintf("%s.%d", l->path, i - 1)
                                                       : xstrdup(l->path);
                _cleanup_(free_ptr) char *to = xasprintf("%s.%d", l->path, i);

                (void)!rename(from, to);
        }
        fd_close(TAKE_FD(l->fd));
        (void)!open_file(l, NULL);
}

static void keep_tail(struct node_log *l, struct str line, bool partial)
{
        buf_addstr(&l->tail, line);
        if (!partial)
                buf_addc(&l->tail, '\n');
        if (l->tail.n > 2 * NODE_LOG_TAIL)
                buf_consume(&l->tail, l->tail.n - NODE_LOG_TAIL);
}

/* A full disk must not stop the workload: what cannot be written is lost. */
void node_log_flush(struct node_log *l)
{
        if (l->pending.n && l->fd >= 0 && fd_write_all(l->fd, buf_str(&l->pending), NULL) == 0)
                l->size += l->pending.n;
        buf_clear(&l->pending);
}

void node_log_line(struct node_log *l, usec_t wall, const char *stream, struct str line, bool partial)
{
        enum { HEAD = 64 };
        char when[TIME_TEXT_MAX];
        size_t room = line.n + HEAD;

        keep_tail(l, line, partial);
        if (l->pending.n + room > l->pending.max)
                node_log_flush(l);
        if (l->size + l->pending.n + room > l->limit && l->size + l->pending.n > 0) {
                node_log_flush(l);
                rotate(l);
        }
        time_format_micro(wall, when);
        buf_add(&l->pending, when, strcspn(when, "Z"));
        buf_adds(&l->pending, "000Z ");
        buf_adds(&l->pending, stream);
        buf_adds(&l->pending, partial ? " P " : " F ");
        buf_addstr(&l->pending, line);
        buf_addc(&l->pending, '\n');
}
