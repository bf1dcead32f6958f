/*
 * Reads a file that somebody else's program writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/status.h"

static const char *kind_of(mode_t mode)
{
        static const struct {
                mode_t type;
                const char *name;
        } kinds[] = {
                {S_IFDIR, "a directory"}, {S_IFLNK, "a symbolic link"}, {S_IFIFO, "a FIFO"},
                {S_IFSOCK, "a socket"},   {S_IFCHR, "a device"},        {S_IFBLK, "a device"},
        };

        for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
                if ((mode & S_IFMT) == kinds[i].type)
                        return kinds[i].name;
        return "something else";
}

static int check(const struct stat *st, const char *name, size_t max, struct err *err)
{
        if (!S_ISREG(st->st_mode))
                return err_set(err, E_INVALID, "%s is %s, not a regular file", name, kind_of(st->st_mode));
        if ((uint64_t)st->st_size > max)
                return err_set(err, E_TOO_LARGE, "%s is larger than %zu bytes", name, max);
        return 0;
}

int run_file_read(int dir_fd, const char *name, size_t max, struct buf *out, struct err *err)
{
        _cleanup_(fd_close) int fd = -1;
        struct stat st;

        buf_clear(out);
        /* A FIFO or a device is not even opened: opening alone can wake somebody or set something off. */
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                if (errno == ENOENT)
                        return 1;
                return err_errno(err, E_IO, errno, "cannot look at %s", name);
        }
        if (check(&st, name, max, err) < 0)
                return -1;
        fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0) {
                if (errno == ENOENT)
                        return 1;
                return err_errno(err, E_IO, errno, "cannot open %s", name);
        }
        /* It may be another one by now. */
        if (fstat(fd, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s", name);
        if (check(&st, name, max, err) < 0)
                return -1;
        out->max = max;
        return fd_read_all(fd, name, out, err);
}
