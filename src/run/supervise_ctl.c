/*
 * The control directory as `run` uses it, and the termination message.
 *
 * Files appear whole (a temporary file, renamed). Nothing is synced: they are for the pod's other containers, and none of
 * them outlives the machine; a sync behind a workload that has just written gigabytes could outlast the grace period.
 *
 * The room for exit.json is taken at the start: a full disk is one of the ways in which a workload ends.
 */
#include "run/supervise_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0664 };

/* Writes TEXT as NAME. With RET_FD the file stays open, locked from before it could be seen. */
static int put(int dir_fd, const char *name, struct str text, int *ret_fd, struct err *err)
{
        _cleanup_(free_ptr) char *tmp = xasprintf(".%s.%d.tmp", name, (int)getpid());
        _cleanup_(fd_close) int fd = -1;

        (void)unlinkat(dir_fd, tmp, 0);
        fd = openat(dir_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", name);
        if (fd_write_all(fd, text, err) < 0) {
                (void)unlinkat(dir_fd, tmp, 0);
                return err_wrap(err, "%s", name);
        }
        if ((ret_fd && flock(fd, LOCK_EX | LOCK_NB) < 0) || renameat(dir_fd, tmp, dir_fd, name) < 0) {
                err_errno(err, E_IO, errno, "cannot make %s", name);
                (void)unlinkat(dir_fd, tmp, 0);
                return -1;
        }
        if (ret_fd)
                *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Whether another `run` that lives has written the file: it holds a lock on it. Shared, so as not to be taken for one. */
static bool taken(int dir_fd)
{
        _cleanup_(fd_close) int fd = openat(dir_fd, RUN_STARTED_FILE,
                                            O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

        return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static void open_alive(struct ctl *c, const struct log *log)
{
        struct stat st;

        c->alive_fd = openat(c->dir_fd, RUN_ALIVE_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (c->alive_fd >= 0 && fstat(c->alive_fd, &st) == 0 && S_ISFIFO(st.st_mode))
                return;
        LOG_WARN(log, "No FIFO in the control directory, the relay will not see when this ends",
                 F_STR("dir", c->path), F_STR("error", c->alive_fd < 0 ? strerror(errno) : "not a FIFO"));
        fd_close(TAKE_FD(c->alive_fd));
}

static void write_started(struct ctl *c, usec_t now, const struct log *log)
{
        char text[128], time[TIME_TEXT_MAX];
        struct err err = ERR_INIT;

        snprintf(text, sizeof(text), "{\"pid\":%d,\"startedAt\":\"%s\"}\n", (int)getpid(),
                 time_format_micro(now, time));
        if (put(c->dir_fd, RUN_STARTED_FILE, str_of(text), &c->started_fd, &err) < 0)
                LOG_WARN(log, "Cannot say in the control directory that this has started",
                         F_STR("dir", c->path), F_ERR(&err));
}

static void drop_room(struct ctl *c)
{
        if (c->exit_fd >= 0)
                (void)unlinkat(c->dir_fd, c->exit_tmp, 0);
        fd_close(TAKE_FD(c->exit_fd));
        free(TAKE_PTR(c->exit_tmp));
}

/* Where there is none, the end tries without. */
static void take_room(struct ctl *c)
{
        c->exit_tmp = xasprintf(".%s.%d.room", RUN_EXIT_FILE, (int)getpid());
        (void)unlinkat(c->dir_fd, c->exit_tmp, 0);
        c->exit_fd = openat(c->dir_fd, c->exit_tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                            FILE_MODE);
        if (c->exit_fd < 0 || posix_fallocate(c->exit_fd, 0, RUN_EXIT_FILE_MAX) != 0)
                drop_room(c);
}

void ctl_open(struct ctl *c, const char *path, usec_t now, const struct log *log)
{
        *c = (struct ctl){
                .dir_fd = -1, .alive_fd = -1, .started_fd = -1, .exit_fd = -1, .path = xstrdup(path)};
        c->dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (c->dir_fd < 0) {
                LOG_WARN(log, "No control directory: the command runs, but nobody is told how it ends",
                         F_STR("dir", path), F_STR("error", strerror(errno)));
                return;
        }
        if (taken(c->dir_fd)) {
                LOG_WARN(log, "Another run uses the control directory: it is left alone", F_STR("dir", path));
                fd_close(TAKE_FD(c->dir_fd));
                return;
        }
        /* Of a container that was restarted: before anything says that there is a new one. */
        (void)unlinkat(c->dir_fd, RUN_EXIT_FILE, 0);
        take_room(c);
        open_alive(c, log);
        write_started(c, now, log);
}

/* Into the room that was taken; it is seen when it is whole. */
static bool use_room(struct ctl *c, struct str text)
{
        if (c->exit_fd < 0 || text.n > RUN_EXIT_FILE_MAX || fd_write_all(c->exit_fd, text, NULL) < 0 ||
            ftruncate(c->exit_fd, (off_t)text.n) < 0 ||
            renameat(c->dir_fd, c->exit_tmp, c->dir_fd, RUN_EXIT_FILE) < 0)
                return false;
        fd_close(TAKE_FD(c->exit_fd));
        return true;
}

void ctl_write_exit(struct ctl *c, struct str text, const struct log *log)
{
        struct err err = ERR_INIT;

        if (use_room(c, text))
                return;
        drop_room(c);
        if (c->dir_fd >= 0 && put(c->dir_fd, RUN_EXIT_FILE, text, NULL, &err) < 0)
                LOG_WARN(log, "Cannot write how the command ended", F_STR("dir", c->path), F_ERR(&err));
}

void ctl_close(struct ctl *c)
{
        drop_room(c);
        fd_close(TAKE_FD(c->alive_fd));
        fd_close(TAKE_FD(c->started_fd));
        fd_close(TAKE_FD(c->dir_fd));
        free(TAKE_PTR(c->path));
}

/* ---- the termination message */

static bool message_state(const char *path, uint64_t *ret_size, uint64_t *ret_changed)
{
        struct stat st;

        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        *ret_size = (uint64_t)st.st_size;
        *ret_changed = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
        return true;
}

void message_open(struct message *m, const char *path)
{
        *m = (struct message){.path = path};
        if (path && !message_state(path, &m->size, &m->changed))
                m->size = m->changed = 0; /* it may be made yet, by us */
}

void message_write(const struct message *m, struct str text, const struct log *log)
{
        _cleanup_(fd_close) int fd = -1;
        uint64_t size, changed;
        struct err err = ERR_INIT;

        if (!m->path)
                return;
        if (message_state(m->path, &size, &changed) && size && (size != m->size || changed != m->changed))
                return; /* the workload's own words */
        /* In place: a container has this one file mounted, not its directory. */
        fd = open(m->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, FILE_MODE);
        if (fd < 0)
                err_errno(&err, E_IO, errno, "cannot open it");
        if (fd < 0 || fd_write_all(fd, text, &err) < 0)
                LOG_WARN(log, "Cannot write the termination message", F_STR("file", m->path), F_ERR(&err));
}
