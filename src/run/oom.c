/*
 * How often the kernel killed in our cgroup for want of memory: cgroup version 2, or version 1.
 *
 * The path in /proc/self/cgroup holds below the mount when there is no cgroup namespace and all of the tree is mounted, or
 * when there is one (it is "/" then). A container without a namespace sees its own group alone, as the mount's root, under
 * a path that is not there. So the path is tried first, and the root after it. The root group of a machine counts nothing
 * that could be taken for ours: version 2 has no memory.events there, and version 1 counts each group for itself.
 */
#include "run/supervise_private.h"

enum { TEXT_MAX = 64 * 1024 };

struct cgroup_kind {
        const char *controller; /* in /proc/self/cgroup; "": version 2 */
        const char *mount, *file;
};

/* A machine may have both trees; memory is then in the first. */
static const struct cgroup_kind KINDS[] = {
        {"memory", "/sys/fs/cgroup/memory", "memory.oom_control"},
        {"", "/sys/fs/cgroup", "memory.events"},
};

static bool listed(struct str list, struct str controller)
{
        do
                if (str_eq(str_split(&list, ','), controller))
                        return true;
        while (list.p);
        return false;
}

/* The path of CONTROLLER in the text of /proc/self/cgroup: lines of "number:controllers:path". */
static bool own_path(struct str text, const char *controller, struct str *ret)
{
        while (text.p) {
                struct str line = str_split(&text, '\n');

                (void)str_split(&line, ':');
                if (line.p && listed(str_split(&line, ':'), str_of(controller)) && line.p) {
                        *ret = line;
                        return true;
                }
        }
        return false;
}

static int64_t count(const char *root, const struct cgroup_kind *kind, struct str path)
{
        _cleanup_(free_ptr) char *below = NULL, *top = NULL;
        int64_t n = -1;

        /* "/../..": we are outside of our namespace's root, and what is mounted is not ours */
        if (path.n && memmem(path.p, path.n, "/..", 3))
                return -1;
        below = xasprintf("%s%s%.*s/%s", root, kind->mount, STR_ARG(path), kind->file);
        top = xasprintf("%s%s/%s", root, kind->mount, kind->file);
        n = file_counter(below, "oom_kill");
        return n >= 0 ? n : file_counter(top, "oom_kill");
}

int64_t oom_kills(const char *root)
{
        _cleanup_(free_ptr) char *file = xasprintf("%s/proc/self/cgroup", root);
        _cleanup_(buf_done) struct buf own = BUF_INIT(TEXT_MAX);
        struct str path;

        if (file_read(file, &own, NULL) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(KINDS); i++)
                if (own_path(buf_str(&own), KINDS[i].controller, &path)) {
                        int64_t n = count(root, &KINDS[i], path);

                        if (n >= 0)
                                return n;
                }
        return -1;
}
