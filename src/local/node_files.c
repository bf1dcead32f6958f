/*
 * A pod's directory: volumes, the plan, the state.
 */
#include "local/node_private.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR_EMPTY = 0777, DIR_FILES = 0755, SETGID = 02000 };

char *node_pod_dir(struct arena *a, const char *dir, const char *uid)
{
        return arena_printf(a, "%s/pods/%s", dir, uid);
}

char *node_volume_dir(struct arena *a, const char *pod_dir, const char *name)
{
        return arena_printf(a, "%s/volumes/%s", pod_dir, name);
}

/* ---- JSON */

struct json *node_files_read(const char *pod_dir, const char *name, struct arena *a, struct err *err)
{
        static const struct json_limits limits = {.bytes = NODE_TEXT_MAX};
        _cleanup_(buf_done) struct buf text = BUF_INIT(NODE_TEXT_MAX);
        char *path = arena_printf(a, "%s/%s", pod_dir, name);
        struct json *j;

        if (file_read(path, &text, err) < 0)
                return NULL;
        j = json_parse(a, buf_str(&text), &limits, err);
        if (!j)
                err_wrap(err, "%s", path);
        return j;
}

int node_files_save(const char *pod_dir, const char *name, const struct json *j, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", pod_dir, name);
        _cleanup_(buf_done) struct buf text = BUF_INIT(NODE_TEXT_MAX);

        json_write(j, JSON_COMPACT, &text);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "%s is larger than %d bytes", path, NODE_TEXT_MAX);
        return file_replace(path, buf_str(&text), 0600, err);
}

/* ---- volumes */

/* umask or not. A group may read what is its own, as with a kubelet. */
static int set_access(int fd, const char *path, mode_t mode, int64_t fs_group, bool is_dir, struct err *err)
{
        if (fs_group >= 0 && geteuid() == 0) {
                if (fchown(fd, (uid_t)-1, (gid_t)fs_group) < 0)
                        return err_errno(err, E_IO, errno, "cannot give %s to group %lld", path,
                                         (long long)fs_group);
                mode |= is_dir ? SETGID | 0550 : 0440;
        }
        if (fchmod(fd, mode) < 0)
                return err_errno(err, E_IO, errno, "cannot set the mode of %s", path);
        return 0;
}

static int make_dir(const char *path, mode_t mode, int64_t fs_group, struct err *err)
{
        _cleanup_(fd_close) int fd = -1;

        if (dir_make(path, 0755, err) < 0)
                return -1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        return set_access(fd, path, mode, fs_group, true, err);
}

/* Not synced: after a power loss the pod is lost, and so is its volume. */
static int put_file(const char *path, struct str data, mode_t mode, int64_t fs_group, struct err *err)
{
        _cleanup_(free_ptr) char *tmp = xasprintf("%s..tmp", path);
        _cleanup_(fd_close) int fd = -1;

        unlink(tmp);
        fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create %s", tmp);
        if (fd_write_all(fd, data, err) < 0)
                return err_wrap(err, "%s", tmp);
        if (set_access(fd, tmp, mode, fs_group, false, err) < 0)
                return -1;
        if (rename(tmp, path) < 0)
                return err_errno(err, E_IO, errno, "cannot rename %s", tmp);
        return 0;
}

static int write_file(const char *dir, const struct json *file, int64_t fs_group, struct err *err)
{
        _cleanup_(buf_done) struct buf data = BUF_INIT(NODE_TEXT_MAX);
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, json_str_or(file, "path", "x"));
        char *slash = strrchr(path, '/');

        if (!buf_add_unbase64(&data, json_text(json_at(file, "data"))))
                return err_set(err, E_INTERNAL, "the plan of %s is damaged", path);
        *slash = '\0';
        if (make_dir(path, DIR_FILES, fs_group, err) < 0)
                return -1;
        *slash = '/';
        return put_file(path, buf_str(&data), (mode_t)json_int(file, "mode", 0644) & 0777, fs_group, err);
}

/* As hostPath's types say; "" checks nothing. */
static int check_host(const struct json *volume, struct err *err)
{
        const char *path = json_str_or(volume, "source", "/"), *type = json_str_or(volume, "type", "");
        struct stat st;
        bool there = stat(path, &st) == 0;

        if (!there && streq(type, "DirectoryOrCreate"))
                return dir_make(path, 0755, err);
        if (!there && streq(type, "FileOrCreate"))
                return put_file(path, STR(""), 0644, -1, err);
        if (!*type)
                return 0;
        if (!there || (strstr(type, "Directory") && !S_ISDIR(st.st_mode)) ||
            (str_has_prefix(str_of(type), STR("File")) && !S_ISREG(st.st_mode)) ||
            (streq(type, "Socket") && !S_ISSOCK(st.st_mode)) ||
            (streq(type, "CharDevice") && !S_ISCHR(st.st_mode)) ||
            (streq(type, "BlockDevice") && !S_ISBLK(st.st_mode)))
                return err_set(err, E_REFUSED, "hostPath type check failed: %s is not a %s", path, type);
        return 0;
}

int node_files_volume(const char *pod_dir, const struct json *volume, int64_t fs_group, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *name = json_str_or(volume, "name", ""), *kind = json_str_or(volume, "kind", "");
        char *dir = node_volume_dir(&a, pod_dir, name);

        if (streq(kind, "host")) {
                if (check_host(volume, err) < 0)
                        return err_wrap(err, "MountVolume.SetUp failed for volume \"%s\" ", name);
                return 0;
        }
        if (make_dir(dir, streq(kind, "empty") ? DIR_EMPTY : DIR_FILES, fs_group, err) < 0)
                return -1;
        json_foreach (f, json_at(volume, "files"))
                if (write_file(dir, f, fs_group, err) < 0)
                        return -1;
        return 0;
}

int node_files_prepare(const char *pod_dir, struct json *plan, struct arena *a, struct err *err)
{
        static const char *const DIRS[] = {"root", "volumes", "log", "messages"};
        int64_t fs_group = json_int(plan, "fsGroup", -1);

        for (size_t i = 0; i < ARRAY_LEN(DIRS); i++)
                if (dir_make(arena_printf(a, "%s/%s", pod_dir, DIRS[i]), 0755, err) < 0)
                        return -1;
        json_foreach (v, json_at(plan, "volumes")) {
                if (node_files_volume(pod_dir, v, fs_group, err) < 0)
                        return -1;
                json_remove(v, "files"); /* they are where they belong */
        }
        return node_files_save(pod_dir, "plan.json", plan, err);
}

/* ---- the end */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
        (void)!remove(path); /* what cannot be removed is found again at the next start */
        return 0;
}

void node_files_remove(const char *pod_dir)
{
        enum { OPEN_MAX_DIRS = 16 };

        (void)!nftw(pod_dir, remove_one, OPEN_MAX_DIRS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
