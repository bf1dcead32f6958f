#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_CHUNK = 1 << 20 };

void fd_close(int fd)
{
        int saved = errno;

        if (fd >= 0)
                close(fd);
        errno = saved;
}

void fd_allow(unsigned n)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n)
                return;
        limit.rlim_cur = MIN((rlim_t)n, limit.rlim_max);
        (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int fd_set_nonblock(int fd)
{
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int fd_write_all(int fd, struct str data, struct err *err)
{
        while (data.n) {
                ssize_t n = write(fd, data.p, data.n);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_errno(err, E_IO, errno, "write");
                data.p += n;
                data.n -= (size_t)n;
        }
        return 0;
}

int fd_read_all(int fd, const char *name, struct buf *out, struct err *err)
{
        buf_clear(out);
        for (;;) {
                size_t room = MIN(out->max - out->n, (size_t)65536);
                char extra, *to = room ? buf_reserve(out, room) : &extra;
                ssize_t n = read(fd, to, room ? room : 1);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_errno(err, E_IO, errno, "cannot read %s", name);
                if (n == 0)
                        return 0;
                if (!room)
                        return err_set(err, E_TOO_LARGE, "%s is larger than %zu bytes", name, out->max);
                out->n += (size_t)n;
        }
}

int file_read(const char *path, struct buf *out, struct err *err)
{
        _cleanup_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);

        buf_clear(out);
        if (fd < 0)
                return err_errno(err, errno == ENOENT ? E_NOT_FOUND : E_IO, errno, "cannot open %s", path);
        return fd_read_all(fd, path, out, err);
}

static int sync_parent(const char *path, struct err *err)
{
        const char *slash = strrchr(path, '/');
        _cleanup_(free_ptr) char *dir = slash ? xstrndup(path, MAX((size_t)(slash - path), (size_t)1))
                                              : xstrdup(".");
        _cleanup_(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync %s", dir);
        return 0;
}

static int write_synced(const char *path, struct str data, unsigned mode, struct err *err)
{
        _cleanup_(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);

        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", path);
        if (fd_write_all(fd, data, err) < 0)
                return err_wrap(err, "%s", path);
        if (fsync(fd) < 0)
                return err_errno(err, E_IO, errno, "cannot sync %s", path);
        return 0;
}

int file_replace(const char *path, struct str data, unsigned mode, struct err *err)
{
        _cleanup_(free_ptr) char *tmp = xasprintf("%s.%d.tmp", path, (int)getpid());

        if (write_synced(tmp, data, mode, err) < 0) {
                unlink(tmp);
                return -1;
        }
        if (rename(tmp, path) < 0) {
                err_errno(err, E_IO, errno, "cannot rename %s to %s", tmp, path);
                unlink(tmp);
                return -1;
        }
        return sync_parent(path, err);
}

/* A sparse file may be larger than where it goes: its holes stay holes. */
static void skip_hole(int from, int to)
{
        off_t here = lseek(from, 0, SEEK_CUR), data = lseek(from, here, SEEK_DATA);

        if (data < 0 && errno == ENXIO) /* nothing but a hole is left */
                data = lseek(from, 0, SEEK_END);
        if (data > here)
                (void)lseek(to, data - here, SEEK_CUR);
}

static int copy_all(int from, int to, struct err *err)
{
        ssize_t n;

        do {
                skip_hole(from, to);
                n = sendfile(to, from, NULL, COPY_CHUNK);
        } while (n > 0 || (n < 0 && errno == EINTR));
        if (n < 0 || ftruncate(to, lseek(to, 0, SEEK_CUR)) < 0)
                return err_errno(err, E_IO, errno, "cannot copy");
        return 0;
}

static int copy_to(int from, const char *path, unsigned mode, struct err *err)
{
        _cleanup_(fd_close) int to = -1;

        (void)unlink(path);
        to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (to < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", path);
        if (copy_all(from, to, err) < 0)
                return err_wrap(err, "%s", path);
        if (fchmod(to, mode) < 0)
                return err_errno(err, E_IO, errno, "cannot give %s its mode", path);
        return 0;
}

int file_copy(int from, const char *path, unsigned mode, struct err *err)
{
        _cleanup_(free_ptr) char *tmp = xasprintf("%s.%d.tmp", path, (int)getpid());
        int ok = copy_to(from, tmp, mode, err);

        if (ok == 0 && rename(tmp, path) < 0)
                ok = err_errno(err, E_IO, errno, "cannot rename %s to %s", tmp, path);
        if (ok < 0)
                (void)unlink(tmp);
        return ok;
}

int64_t file_counter(const char *path, const char *word)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(64 * 1024);
        struct str rest;
        int64_t n;

        if (file_read(path, &text, NULL) < 0)
                return -1;
        for (rest = buf_str(&text); rest.p;) {
                struct str line = str_split(&rest, '\n');

                if (str_eq(str_split(&line, ' '), str_of(word)) && str_to_i64(str_trim(line), &n) && n >= 0)
                        return n;
        }
        return -1;
}

int dir_make(const char *path, unsigned mode, struct err *err)
{
        _cleanup_(free_ptr) char *copy = xstrdup(path);

        for (char *p = copy + 1;; p++) {
                char c = *p;

                if (c != '/' && c != '\0')
                        continue;
                *p = '\0';
                if (mkdir(copy, mode) < 0 && errno != EEXIST)
                        return err_errno(err, E_IO, errno, "cannot make directory %s", copy);
                *p = c;
                if (c == '\0')
                        return 0;
        }
}
