/*
 * Limits of a container, by cgroups of version 1 (one directory a controller) or 2 (one directory).
 */
#include "local/node_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CGROUP_TEXT_MAX = 1 << 20, CPU_PERIOD = 100000 };

#define NODE_LEAF "/sonde-node"

#define REMEDY                                                                                          \
        "to let the node limit memory and CPU, run it as root, or with: systemd-run --user --scope -p " \
        "Delegate=yes sonde up"

static bool there(const char *dir, const char *file)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, file);

        return access(path, F_OK) == 0;
}

static int put(const char *dir, const char *file, const char *value, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, file);
        _cleanup_(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, value, strlen(value)) < 0)
                return err_errno(err, E_FORBIDDEN, errno, "cannot write %s", path);
        return 0;
}

static int put_number(const char *dir, const char *file, int64_t value, struct err *err)
{
        char text[32];

        snprintf(text, sizeof(text), "%lld", (long long)value);
        return put(dir, file, text, err);
}

static bool get(const char *dir, const char *file, struct buf *out)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, file);

        return file_read(path, out, NULL) == 0;
}

/* Whether CONTROLLER is among the comma-separated LIST. */
static bool listed(struct str list, const char *controller)
{
        while (list.p)
                if (str_eq(str_split(&list, ','), str_of(controller)))
                        return true;
        return false;
}

/* The path of CONTROLLER ("" for version 2) in the text of /proc/self/cgroup. */
static bool own_path(struct str own, const char *controller, struct str *ret)
{
        while (own.p) {
                struct str line = str_split(&own, '\n');

                (void)str_split(&line, ':');
                if (listed(str_split(&line, ':'), controller) && line.p) {
                        *ret = line;
                        return true;
                }
        }
        return false;
}

static bool is_v2(const char *root)
{
        return there(root, "cgroup.controllers");
}

/* ---- making */

static char *make_group(const char *root, struct str path, const char *name, struct arena *a, struct err *err)
{
        char *dir = arena_printf(a, "%s%.*s%ssonde-%s", root, STR_ARG(path),
                                 str_has_suffix(path, STR("/")) ? "" : "/", name);

        if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
                err_set(err, E_FORBIDDEN, "cannot make cgroup %s (%s); %s", dir, strerror(errno), REMEDY);
                return NULL;
        }
        return dir;
}

static char *make_v1(const char *root, struct str own, const char *controller, const char *name,
                     struct arena *a, struct err *err)
{
        struct str path;

        if (!own_path(own, controller, &path)) {
                err_set(err, E_FORBIDDEN, "this machine has no cgroup controller '%s'; %s", controller,
                        REMEDY);
                return NULL;
        }
        return make_group(arena_printf(a, "%s/%s", root, controller), path, name, a, err);
}

static int limit_v1(const char *root, struct str own, const char *name, const struct cgroup_limits *l,
                    struct json *dirs, struct arena *a, struct err *err)
{
        char *dir;

        if (l->memory > 0) {
                dir = make_v1(root, own, "memory", name, a, err);
                if (!dir)
                        return -1;
                json_append(dirs, json_string(a, dir));
                if (put_number(dir, "memory.limit_in_bytes", l->memory, err) < 0)
                        return -1;
                (void)!put_number(dir, "memory.memsw.limit_in_bytes", l->memory, NULL);
        }
        if (l->cpu_milli > 0) {
                dir = make_v1(root, own, "cpu", name, a, err);
                if (!dir)
                        return -1;
                json_append(dirs, json_string(a, dir));
                if (put_number(dir, "cpu.cfs_period_us", CPU_PERIOD, err) < 0 ||
                    put_number(dir, "cpu.cfs_quota_us",
                               MAX(l->cpu_milli * (CPU_PERIOD / 1000), (int64_t)1000), err) < 0)
                        return -1;
        }
        return 0;
}

static int limit_v2(const char *root, struct str own, const char *name, const struct cgroup_limits *l,
                    struct json *dirs, struct arena *a, struct err *err)
{
        struct str path = STR("/");
        char *dir, *parent;

        (void)own_path(own, "", &path);
        if (str_has_suffix(path, STR(NODE_LEAF)))
                path.n -= strlen(NODE_LEAF);
        parent = arena_printf(a, "%s%.*s", root, STR_ARG(path));
        if (put(parent, "cgroup.subtree_control", "+memory +cpu", err) < 0)
                return err_set(err, E_FORBIDDEN, "cannot use the cgroup controllers of %s; %s", parent,
                               REMEDY);
        dir = make_group(root, path, name, a, err);
        if (!dir)
                return -1;
        json_append(dirs, json_string(a, dir));
        if (l->memory > 0) {
                if (put_number(dir, "memory.max", l->memory, err) < 0)
                        return -1;
                (void)!put(dir, "memory.swap.max", "0", NULL);
        }
        if (l->cpu_milli > 0 &&
            put(dir, "cpu.max",
                arena_printf(a, "%lld %d", (long long)MAX(l->cpu_milli * (CPU_PERIOD / 1000), (int64_t)1000),
                             CPU_PERIOD),
                err) < 0)
                return -1;
        return 0;
}

struct json *cgroup_make(const char *root, struct str own, const char *name, const struct cgroup_limits *l,
                         struct arena *a, struct err *err)
{
        struct json *dirs = json_array(a);
        int r = is_v2(root) ? limit_v2(root, own, name, l, dirs, a, err)
                            : limit_v1(root, own, name, l, dirs, a, err);

        if (r == 0)
                return dirs;
        cgroup_remove(dirs);
        return NULL;
}

void cgroup_prepare(const char *root, struct str own)
{
        _cleanup_(buf_done) struct buf procs = BUF_INIT(CGROUP_TEXT_MAX);
        _cleanup_(free_ptr) char *dir = NULL, *leaf = NULL;
        struct str path;
        int64_t pid;

        if (!is_v2(root) || !own_path(own, "", &path) || str_eq(path, STR("/")))
                return;
        dir = xasprintf("%s%.*s", root, STR_ARG(path));
        leaf = xasprintf("%s%s", dir, NODE_LEAF);
        if (!get(dir, "cgroup.procs", &procs) || !str_to_i64(str_trim(buf_str(&procs)), &pid) ||
            pid != getpid())
                return;
        if (mkdir(leaf, 0755) == 0 || errno == EEXIST)
                (void)!put(leaf, "cgroup.procs", "0", NULL);
}

/* ---- using */

int cgroup_enter(const struct json *dirs)
{
        json_foreach (d, dirs)
                if (json_cstr(d) && put(json_cstr(d), "cgroup.procs", "0", NULL) < 0)
                        return -1;
        return 0;
}

static bool counts_oom(const char *dir, const char *file)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, file);

        return file_counter(path, "oom_kill") > 0;
}

bool cgroup_saw_oom(const struct json *dirs)
{
        json_foreach (d, dirs)
                if (json_cstr(d) && (counts_oom(json_cstr(d), "memory.oom_control") ||
                                     counts_oom(json_cstr(d), "memory.events")))
                        return true;
        return false;
}

static void kill_listed(const char *dir)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(CGROUP_TEXT_MAX);
        struct str rest;
        int64_t pid;

        if (!get(dir, "cgroup.procs", &text))
                return;
        for (rest = buf_str(&text); rest.p;)
                if (str_to_i64(str_split(&rest, '\n'), &pid) && pid > 1 && pid != getpid())
                        kill((pid_t)pid, SIGKILL);
}

void cgroup_kill(const struct json *dirs)
{
        json_foreach (d, dirs)
                if (json_cstr(d) && put(json_cstr(d), "cgroup.kill", "1", NULL) < 0)
                        kill_listed(json_cstr(d));
}

void cgroup_remove(const struct json *dirs)
{
        json_foreach (d, dirs)
                if (json_cstr(d))
                        (void)!rmdir(json_cstr(d));
}
