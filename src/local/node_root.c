/*
 * A container's root: this machine's own directories, and the pod's volumes at their mount paths.
 *
 * The root is a tmpfs into which every entry of / is bound. Where a mount path does not exist, the deepest directory
 * that does becomes a mirror: a tmpfs with each of its entries bound in, so that the missing directories can be made in
 * it and nothing is made on the machine. In a mirror, and in / itself, what exists is the machine's own; what a
 * container creates beside it is its own and goes with it. All of this is in a mount namespace of the container's own.
 */
#include "local/node_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

enum origin {
        HOST,   /* a directory of this machine, bound */
        MIRROR, /* ours: directories may be made in it */
        VOLUME, /* of this pod: directories are made in its source */
};

struct place {
        const char *path;   /* in the new root; "" is the root */
        const char *source; /* what is there, seen from outside */
        enum origin origin;
};

struct root {
        struct arena a;
        const char *base; /* where the new root is, seen from outside */
        VEC(struct place) places;
};

static const char REMEDY[] =
        "this machine does not let the node make mount namespaces, which pods with volumes need; run it as "
        "root, or "
        "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000 "
        "kernel.apparmor_restrict_unprivileged_userns=0";
/* In a container, most likely: no setting of the machine's helps. */
static const char REMEDY_OF_ROOT[] = "this machine does not let the node make mount namespaces, which pods "
                                     "with volumes need, although it is root; "
                                     "give it CAP_SYS_ADMIN and let it mount (docker run --privileged), or "
                                     "run it outside of the container";

static int forbidden(struct err *err)
{
        return err_set(err, E_FORBIDDEN, "%s", geteuid() == 0 ? REMEDY_OF_ROOT : REMEDY);
}

static char *outside(struct root *r, const char *path)
{
        return arena_printf(&r->a, "%s%s", r->base, path);
}

static void add_place(struct root *r, const char *path, const char *source, enum origin origin)
{
        *vec_push(&r->places) = (struct place){path, source, origin};
}

/* The last place (later ones cover earlier ones) that PATH is in. */
static const struct place *place_of(const struct root *r, const char *path)
{
        const struct place *best = NULL;

        vec_foreach (p, &r->places) {
                size_t n = strlen(p->path);

                if (strncmp(path, p->path, n) == 0 && (path[n] == '/' || path[n] == '\0') &&
                    (!best || n >= strlen(best->path)))
                        best = p;
        }
        return best;
}

/* ---- binding */

/* FROM onto TO, which is made when it is not there: a directory, or an empty file for anything else. */
static int bind_at(const char *from, const char *to, struct err *err)
{
        struct stat st;

        if (stat(from, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot mount %s", from);
        if (S_ISDIR(st.st_mode)) {
                if (mkdir(to, 0755) < 0 && errno != EEXIST)
                        return err_errno(err, E_IO, errno, "cannot make %s", to);
        } else {
                int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);

                if (fd < 0 && access(to, F_OK) < 0)
                        return err_errno(err, E_IO, errno, "cannot make %s", to);
                fd_close(fd);
        }
        if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
                return err_errno(err, E_IO, errno, "cannot mount %s at %s", from, to);
        return 0;
}

static int make_read_only(const char *to, struct err *err)
{
        struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

        if (syscall(SYS_mount_setattr, AT_FDCWD, to, AT_RECURSIVE, &attr, sizeof(attr)) == 0)
                return 0;
        if (mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0)
                return 0;
        return err_errno(err, E_IO, errno, "cannot make %s read-only", to);
}

/* Binds the entry NAME of the directory FROM at TO. What cannot be bound is left out: it is not ours to complain of. */
static void mirror_entry(struct root *r, const char *from, const char *to, const char *in, const char *name)
{
        char *source = arena_printf(&r->a, "%s/%s", streq(from, "/") ? "" : from, name);
        char *target = arena_printf(&r->a, "%s/%s", to, name), *link;
        struct stat st;
        ssize_t n;

        if (lstat(source, &st) < 0)
                return;
        if (S_ISLNK(st.st_mode)) {
                link = arena_alloc(&r->a, PATH_MAX);
                n = readlink(source, link, PATH_MAX - 1);
                if (n > 0) {
                        link[n] = '\0';
                        (void)!symlink(link, target);
                }
                return;
        }
        if (bind_at(source, target, NULL) == 0 && S_ISDIR(st.st_mode))
                add_place(r, arena_printf(&r->a, "%s/%s", in, name), source, HOST);
}

/* Fills the tmpfs at TO (IN the new root: IN) with the entries of FROM. */
static int mirror_fill(struct root *r, const char *from, const char *to, const char *in, struct err *err)
{
        DIR *dir = opendir(from);
        struct dirent *entry;

        if (!dir)
                return err_errno(err, E_IO, errno, "cannot read %s", from);
        while ((entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        mirror_entry(r, from, to, in, entry->d_name);
        closedir(dir);
        return 0;
}

/* Makes the directory IN, which is FROM of this machine, a mirror of itself. */
static int mirror(struct root *r, const char *from, const char *in, struct err *err)
{
        char *to = outside(r, in);
        struct stat st;

        if (stat(from, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot look at %s", from);
        if (mount("sonde", to, "tmpfs", MS_NOSUID, arena_printf(&r->a, "mode=%o", st.st_mode & 07777)) < 0)
                return err_errno(err, E_IO, errno, "cannot mount a tmpfs at %s", in);
        (void)!chown(to, st.st_uid, st.st_gid);
        add_place(r, in, from, MIRROR);
        return mirror_fill(r, from, to, in, err);
}

/* ---- mount paths */

/* The name of what is after PATH's place, from outside: where a volume's missing directory is really made. */
static char *at_source(struct root *r, const struct place *p, const char *path)
{
        const char *rest = path + strlen(p->path);

        return arena_printf(&r->a, "%s%s", streq(p->source, "/") && *rest ? "" : p->source, rest);
}

/* Makes directory (or file) NAME in DIR of the new root, where it is missing. */
static int make_missing(struct root *r, const char *dir, const char *name, bool is_dir, struct err *err)
{
        const struct place *p = place_of(r, dir);
        char *path;
        int fd;

        if (p->origin == HOST) {
                if (mirror(r, at_source(r, p, dir), dir, err) < 0)
                        return -1;
                p = place_of(r, dir);
        }
        path = arena_printf(&r->a, "%s/%s", p->origin == VOLUME ? at_source(r, p, dir) : outside(r, dir),
                            name);
        if (is_dir)
                return mkdir(path, 0755) < 0 && errno != EEXIST
                               ? err_errno(err, E_IO, errno, "cannot make %s", path)
                               : 0;
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot make %s", path);
        fd_close(fd);
        return 0;
}

/* What a symbolic link at PATH of the new root says, in front of REST; NULL: it is none. */
static char *follow(struct root *r, const char *path, struct str rest)
{
        char target[PATH_MAX];
        ssize_t n = readlink(outside(r, path), target, sizeof(target));

        if (n <= 0)
                return NULL;
        return arena_printf(&r->a, "%.*s/%.*s", (int)n, target, STR_ARG(rest));
}

/*
 * Finds PATH in the new root, through its symbolic links, and makes what is missing (the last part as a file unless
 * IS_DIR). NULL: it cannot be.
 */
static const char *walk(struct root *r, const char *path, bool is_dir, struct err *err)
{
        const char *at = "";
        struct str rest = str_of(path);
        unsigned links = 0;

        while (rest.p) {
                struct str part = str_split(&rest, '/');
                const char *next;
                struct stat st;
                char *link;

                if (!part.n || str_eq(part, STR(".")))
                        continue;
                if (str_eq(part, STR(".."))) {
                        const char *slash = strrchr(at, '/');

                        at = slash ? arena_strndup(&r->a, at, (size_t)(slash - at)) : "";
                        continue;
                }
                next = arena_printf(&r->a, "%s/%.*s", at, STR_ARG(part));
                if (lstat(outside(r, next), &st) < 0) {
                        if (make_missing(r, at, arena_strndup(&r->a, part.p, part.n), is_dir || rest.n, err) <
                            0)
                                return NULL;
                } else if (S_ISLNK(st.st_mode)) {
                        link = ++links <= LINKS_MAX ? follow(r, next, rest) : NULL;
                        if (!link) {
                                err_set(err, E_IO, "too many symbolic links in %s", path);
                                return NULL;
                        }
                        if (link[0] == '/')
                                at = "";
                        rest = str_of(link);
                        continue;
                }
                at = next;
        }
        return at;
}

static int mount_at(struct root *r, const char *source, const char *path, bool read_only, enum origin origin,
                    struct err *err)
{
        struct stat st;
        const char *at, *to;

        if (stat(source, &st) < 0)
                return err_errno(err, E_IO, errno, "cannot mount %s at %s", source, path);
        at = walk(r, path, S_ISDIR(st.st_mode), err);
        if (!at)
                return err_wrap(err, "mount path %s", path);
        if (!*at)
                return err_set(err, E_REFUSED, "a volume cannot be mounted at /");
        to = outside(r, at);
        if (bind_at(source, to, err) < 0)
                return -1;
        add_place(r, at, source, origin);
        return read_only ? make_read_only(to, err) : 0;
}

/* ---- volumes */

/* PATH below TOP, as a process sees it whose root TOP is: symbolic links that a container left do not lead out of it. */
static int open_below(int top, const char *path)
{
        struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                               .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

        return (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
}

/* Makes the directories of SUB that are missing, one by one: mkdir() with more than a name would follow links. */
static int make_below(struct root *r, int top, const char *sub)
{
        const char *at = ".";
        struct str rest = str_of(sub);

        while (rest.p) {
                struct str part = str_split(&rest, '/');
                _cleanup_(fd_close) int dir = part.n ? open_below(top, at) : -1;

                if (!part.n)
                        continue;
                if (dir < 0 ||
                    (mkdirat(dir, arena_strndup(&r->a, part.p, part.n), 0755) < 0 && errno != EEXIST))
                        return -1;
                at = arena_printf(&r->a, "%s/%.*s", at, STR_ARG(part));
        }
        return open_below(top, at);
}

/* SUB inside DIR, made when missing. As a path through /proc. */
static const char *sub_path(struct root *r, const char *dir, const char *sub, struct err *err)
{
        _cleanup_(fd_close) int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int fd;

        if (top < 0) {
                err_errno(err, E_IO, errno, "cannot open %s", dir);
                return NULL;
        }
        fd = open_below(top, sub);
        if (fd < 0 && errno == ENOENT)
                fd = make_below(r, top, sub);
        if (fd < 0) {
                err_errno(err, E_IO, errno, "subPath %s of volume %s", sub, dir);
                return NULL;
        }
        return arena_printf(&r->a, "/proc/self/fd/%d", fd); /* closed by exec */
}

static int mount_volume(struct root *r, const char *pod_dir, const struct json *plan, const struct json *m,
                        struct err *err)
{
        const char *name = json_str_or(m, "volume", ""), *sub = json_str_or(m, "subPath", "");
        const struct json *volume = json_find_named(json_at(plan, "volumes"), name);
        const char *kind = json_str_or(volume, "kind", "");
        bool host = streq(kind, "host");
        const char *source = host ? json_str_or(volume, "source", "/")
                                  : node_volume_dir(&r->a, pod_dir, name);

        if (!volume)
                return err_set(err, E_INVALID, "no volume '%s'", name);
        if (*sub)
                source = sub_path(r, source, sub, err);
        if (!source)
                return -1;
        return mount_at(r, source, json_str_or(m, "path", "/"),
                        json_bool(m, "readOnly", false) || streq(kind, "files"), host ? HOST : VOLUME, err);
}

static size_t depth(const struct json *m)
{
        size_t n = 0;

        for (const char *p = json_str_or(m, "path", ""); *p; p++)
                n += *p == '/' && p[1] != '/' && p[1];
        return n;
}

/* Those nearer to the root first, so that a mount inside another is not covered by it. */
static int mount_volumes(struct root *r, const char *pod_dir, const struct json *plan,
                         const struct json *container, struct err *err)
{
        const struct json *mounts = json_at(container, "mounts");
        size_t left = json_len(mounts);

        for (size_t d = 0; left; d++)
                json_foreach (m, mounts)
                        if (depth(m) == d) {
                                left--;
                                if (mount_volume(r, pod_dir, plan, m, err) < 0)
                                        return -1;
                        }
        return 0;
}

/* ---- namespaces */

static int put_self(const char *file, const char *text)
{
        _cleanup_(fd_close) int fd = open(file, O_WRONLY | O_CLOEXEC);

        return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* A user of this machine is the same user inside. */
static int new_namespaces(struct err *err)
{
        uid_t uid = geteuid();
        gid_t gid = getegid();
        char map[64];

        if (uid == 0)
                return unshare(CLONE_NEWNS) < 0 ? forbidden(err) : 0;
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return forbidden(err);
        snprintf(map, sizeof(map), "%u %u 1", uid, uid);
        if (put_self("/proc/self/setgroups", "deny") < 0 || put_self("/proc/self/uid_map", map) < 0)
                return forbidden(err);
        snprintf(map, sizeof(map), "%u %u 1", gid, gid);
        if (put_self("/proc/self/gid_map", map) < 0)
                return forbidden(err);
        return 0;
}

static int change_root(const char *base, struct err *err)
{
        if (chdir(base) < 0)
                return err_errno(err, E_IO, errno, "cannot enter %s", base);
        if (syscall(SYS_pivot_root, ".", ".") == 0) {
                if (umount2(".", MNT_DETACH) < 0)
                        return err_errno(err, E_IO, errno, "cannot leave the old root");
        } else if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0) {
                /* pivot_root() does not work from an initramfs. */
                return err_errno(err, E_IO, errno, "cannot change the root to %s", base);
        }
        return chdir("/") < 0 ? err_errno(err, E_IO, errno, "cannot enter the new root") : 0;
}

static int begin(struct root *r, struct err *err)
{
        if (new_namespaces(err) < 0)
                return -1;
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
            mount("sonde", r->base, "tmpfs", MS_NOSUID, "mode=755") < 0)
                return forbidden(err);
        /* Or else the directory that holds the new root would be bound into it with all that is there already. */
        if (mount(NULL, r->base, NULL, MS_UNBINDABLE, NULL) < 0)
                return err_errno(err, E_IO, errno, "cannot set up %s", r->base);
        add_place(r, "", "/", MIRROR);
        return mirror_fill(r, "/", r->base, "", err);
}

static int assemble(struct root *r, const char *pod_dir, const struct json *plan,
                    const struct json *container, const char *message_file, struct err *err)
{
        const char *message_path = json_str_or(container, "messagePath", "/dev/termination-log");

        if (begin(r, err) < 0 || mount_volumes(r, pod_dir, plan, container, err) < 0)
                return -1;
        if (json_bool(container, "podImage", false) &&
            mount_at(r, json_str_or(plan, "podProgram", ""), "/sonde-pod", true, HOST, err) < 0)
                return -1;
        if (mount_at(r, message_file, message_path, false, VOLUME, err) < 0)
                return -1;
        return change_root(r->base, err);
}

int root_enter(const char *pod_dir, const struct json *plan, const struct json *container,
               const char *message_file, struct err *err)
{
        struct root r = {.a = ARENA_INIT};
        int result;

        r.base = arena_printf(&r.a, "%s/root", pod_dir);
        result = assemble(&r, pod_dir, plan, container, message_file, err);
        vec_done(&r.places);
        arena_done(&r.a);
        return result;
}

int root_try(struct err *err)
{
        int status = 0;
        pid_t pid = fork();

        if (pid < 0)
                return err_errno(err, E_IO, errno, "cannot start a process");
        if (pid == 0)
                _exit(new_namespaces(NULL) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
                                      mount("sonde", "/tmp", "tmpfs", 0, NULL) == 0
                              ? 0
                              : 1);
        if (waitpid(pid, &status, 0) < 0 || status != 0)
                return forbidden(err);
        return 0;
}
