/*
 * A directory that somebody has used before: its content goes aside. Its files may belong to another user, its directories
 * may lie thousands deep, its names may be links to anywhere.
 */
#include "run/stage_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/pod.h"

/* What is being moved collects here, so that an interrupted move is told from an old one that is complete. */
#define COLLECTING RUN_PREVIOUS_DIR ".new"

enum { DIR_MODE = 0775, NAMES_MAX = 1000000 };

static int open_dir(int dir_fd, const char *name)
{
        return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void dir_close(DIR *dir)
{
        closedir(dir);
}

DEFINE_CLEANUP_PTR(DIR *, dir_close)

/* The entries of FD, which stays the caller's; NULL: errno. */
static DIR *list(int fd)
{
        int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = own < 0 ? NULL : fdopendir(own);

        if (!dir)
                fd_close(own);
        return dir;
}

static bool is_dots(const char *name)
{
        return streq(name, ".") || streq(name, "..");
}

static bool is_dir(int dir_fd, const char *name)
{
        struct stat st;

        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* "…; it belongs to user 2000 and we are user 1000" where that may be why. */
static int refuse(int dir_fd, const char *name, const char *where, const char *what, struct err *err)
{
        int why = errno;
        struct stat st;

        if ((why == EACCES || why == EPERM) && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(err, E_IO,
                               "cannot %s %s/%s: %s: it belongs to user %u and this is user %u; empty the "
                               "volume, or run as its user or with its group",
                               what, where, name, strerror(why), (unsigned)st.st_uid, (unsigned)geteuid());
        return err_errno(err, E_IO, why, "cannot %s %s/%s", what, where, name);
}

/* ---- removing: a directory inside another is first moved up, so that depth costs neither stack nor descriptors */

/* Makes a directory of ours accessible again; somebody else's stays as it is. */
static void open_up(int dir_fd, const char *name)
{
        _cleanup_(fd_close) int fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char path[64];

        if (fd < 0)
                return;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        (void)!chmod(path, 0700);
}

static int unlink_one(int dir_fd, const char *name)
{
        if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        return errno == EISDIR ? unlinkat(dir_fd, name, AT_REMOVEDIR) : -1;
}

/* Moves FROM_FD/NAME to a name in TOP_FD that is free. *COUNTER only grows. */
static int move_up(int from_fd, const char *name, int top_fd, unsigned *counter)
{
        char to[32];

        do {
                snprintf(to, sizeof(to), ".%u", (*counter)++);
                if (renameat(from_fd, name, top_fd, to) == 0)
                        return 0;
        } while ((errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) && *counter < NAMES_MAX);
        return -1;
}

/* Removes TOP_FD/NAME; directories in it end up in TOP_FD. */
static int remove_level(int top_fd, const char *name, const char *where, unsigned *counter, struct err *err)
{
        _cleanup_(fd_close) int fd = -1;
        _cleanup_(dir_close) DIR *dir = NULL;
        struct dirent *entry;

        if (unlink_one(top_fd, name) == 0)
                return 0;
        if (is_dir(top_fd, name)) {
                open_up(top_fd, name);
                fd = open_dir(top_fd, name);
        }
        dir = fd < 0 ? NULL : list(fd);
        if (!dir)
                return refuse(top_fd, name, where, "remove", err);
        while ((entry = readdir(dir))) {
                if (is_dots(entry->d_name) || unlink_one(fd, entry->d_name) == 0)
                        continue;
                if (!is_dir(fd, entry->d_name))
                        return refuse(fd, entry->d_name, where, "remove", err);
                open_up(fd, entry->d_name);
                if (move_up(fd, entry->d_name, top_fd, counter) < 0)
                        return refuse(fd, entry->d_name, where, "remove", err);
        }
        if (unlinkat(top_fd, name, AT_REMOVEDIR) < 0)
                return refuse(top_fd, name, where, "remove", err);
        return 0;
}

int volume_remove(int dir_fd, const char *name, const char *where, struct err *err)
{
        _cleanup_(fd_close) int top_fd = -1;
        unsigned counter = 0;
        size_t left;

        if (unlink_one(dir_fd, name) == 0)
                return 0;
        if (is_dir(dir_fd, name)) {
                open_up(dir_fd, name);
                top_fd = open_dir(dir_fd, name);
        }
        if (top_fd < 0)
                return refuse(dir_fd, name, where, "remove", err);
        do {
                _cleanup_(dir_close) DIR *dir = list(top_fd);
                struct dirent *entry;

                if (!dir)
                        return refuse(dir_fd, name, where, "remove", err);
                left = 0;
                while ((entry = readdir(dir)))
                        if (!is_dots(entry->d_name)) {
                                left++;
                                if (remove_level(top_fd, entry->d_name, where, &counter, err) < 0)
                                        return -1;
                        }
        } while (left);
        if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0)
                return refuse(dir_fd, name, where, "remove", err);
        return 0;
}

/* ---- setting aside */

/* Not of an earlier use: the file system's own, another volume, and where the rest goes. */
static bool stays(int dir_fd, dev_t dev, const char *name)
{
        struct stat st;

        if (is_dots(name) || streq(name, RUN_PREVIOUS_DIR) || streq(name, COLLECTING) ||
            streq(name, "lost+found"))
                return true;
        return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev != dev;
}

/* Makes the directory that collects, or uses the one of an interrupted move; anything else of that name goes. */
static int open_collecting(int dir_fd, const char *where, struct err *err)
{
        int fd = open_dir(dir_fd, COLLECTING);

        if (fd >= 0)
                return fd;
        if (errno != ENOENT && volume_remove(dir_fd, COLLECTING, where, err) < 0)
                return -1;
        if (mkdirat(dir_fd, COLLECTING, DIR_MODE) < 0 || (fd = open_dir(dir_fd, COLLECTING)) < 0)
                return err_errno(err, E_IO, errno, "cannot make %s/%s", where, COLLECTING);
        return fd;
}

/* Moves FROM_FD/NAME to TO_FD, in place of what an interrupted move may have left there. */
static int move_one(int from_fd, const char *name, int to_fd, const char *where, struct err *err)
{
        if (renameat(from_fd, name, to_fd, name) == 0)
                return 0;
        if (errno == ENOTEMPTY || errno == EEXIST || errno == EISDIR || errno == ENOTDIR) {
                if (volume_remove(to_fd, name, where, err) < 0)
                        return -1;
                if (renameat(from_fd, name, to_fd, name) == 0)
                        return 0;
        }
        if (errno == EBUSY) /* something is mounted there */
                return 1;
        return refuse(from_fd, name, where, "move aside", err);
}

/* Below 0: error. Otherwise how many were moved; none: what is left stays. */
static int move_all(int dir_fd, dev_t dev, int *to_fd, const char *where, struct err *err)
{
        _cleanup_(dir_close) DIR *dir = list(dir_fd);
        struct dirent *entry;
        int moved = 0, r;

        if (!dir)
                return err_errno(err, E_IO, errno, "cannot list %s", where);
        while ((entry = readdir(dir))) {
                if (stays(dir_fd, dev, entry->d_name))
                        continue;
                if (*to_fd < 0 && (*to_fd = open_collecting(dir_fd, where, err)) < 0)
                        return -1;
                r = move_one(dir_fd, entry->d_name, *to_fd, where, err);
                if (r < 0)
                        return -1;
                moved += r == 0;
        }
        return moved;
}

int volume_set_aside(int dir_fd, const char *where, struct err *err)
{
        _cleanup_(fd_close) int to_fd = open_dir(dir_fd, COLLECTING);
        struct stat st;
        int moved;

        if (fstat(dir_fd, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s", where);
        /* Empty since it was made: no reason to let go of what an earlier use has left. */
        (void)unlinkat(dir_fd, RUN_ARTIFACTS_DIR, AT_REMOVEDIR);
        do
                moved = move_all(dir_fd, st.st_dev, &to_fd, where, err);
        while (moved > 0);
        if (moved < 0 || to_fd < 0)
                return moved;
        if (volume_remove(dir_fd, RUN_PREVIOUS_DIR, where, err) < 0)
                return -1;
        if (renameat(dir_fd, COLLECTING, dir_fd, RUN_PREVIOUS_DIR) < 0)
                return refuse(dir_fd, COLLECTING, where, "rename", err);
        return 0;
}
