/*
 * One container's process, from fork to exec. The supervisor has one thread, so the child may do anything.
 */
#include "local/node_private.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUPS_MAX = 64, PASSWD_LINE = 4096 };

static int take_user(const struct json *container, struct err *err)
{
        int64_t uid = json_int(container, "uid", -1), gid = json_int(container, "gid", -1);
        gid_t groups[GROUPS_MAX];
        size_t n = 0;

        if (geteuid() != 0)
                return 0; /* who may not change users is the user */
        json_foreach (g, json_at(container, "groups")) {
                int64_t id;

                if (json_to_i64(g, &id) && n < GROUPS_MAX)
                        groups[n++] = (gid_t)id;
        }
        if (gid < 0 && uid > 0)
                gid = 0; /* as a runtime has it when the image's passwd does not know the user */
        if ((n || uid > 0) && setgroups(n, groups) < 0)
                return err_errno(err, E_IO, errno, "cannot set groups");
        if (gid >= 0 && setresgid((gid_t)gid, (gid_t)gid, (gid_t)gid) < 0)
                return err_errno(err, E_IO, errno, "cannot become group %lld", (long long)gid);
        if (uid >= 0 && setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) < 0)
                return err_errno(err, E_IO, errno, "cannot become user %lld", (long long)uid);
        return 0;
}

/* From /etc/passwd alone: whatever else knows users could take its time. */
static const char *home_of(uid_t uid, struct arena *a)
{
        FILE *file = fopen("/etc/passwd", "re");
        char *line = arena_alloc(a, PASSWD_LINE);
        struct passwd entry, *found;
        const char *home = uid == 0 ? "/root" : "/";

        while (file && fgetpwent_r(file, &entry, line, PASSWD_LINE, &found) == 0)
                if (found->pw_uid == uid) {
                        home = arena_strdup(a, found->pw_dir);
                        break;
                }
        if (file)
                fclose(file);
        return home;
}

static char **strings(const struct json *list, const char *extra, struct arena *a)
{
        char **v = arena_new_array(a, char *, json_len(list) + 2);
        size_t n = 0;

        json_foreach (s, list)
                v[n++] = arena_strdup(a, json_cstr(s) ? json_cstr(s) : "");
        if (extra)
                v[n++] = arena_strdup(a, extra);
        return v;
}

static const char *lookup(char *const *env, const char *name)
{
        size_t n = strlen(name);

        for (; *env; env++)
                if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
                        return *env + n + 1;
        return NULL;
}

/* As a runtime does: in the container's own PATH, and never by way of a shell. */
static int run_program(char **argv, char **env, struct arena *a, struct err *err)
{
        const char *path = lookup(env, "PATH");
        struct str rest = str_of(path ? path : "");
        bool denied = false;

        if (strchr(argv[0], '/')) {
                execve(argv[0], argv, env);
                return err_errno(err, E_IO, errno, "exec: \"%s\"", argv[0]);
        }
        while (rest.p) {
                struct str dir = str_split(&rest, ':');

                execve(arena_printf(a, "%.*s/%s", STR_ARG(dir), argv[0]), argv, env);
                denied |= errno == EACCES;
        }
        return err_set(err, E_IO, "exec: \"%s\": %s", argv[0],
                       denied ? "permission denied" : "executable file not found in $PATH");
}

/* Returns only when it failed. */
static int become(const struct spawn_request *r, struct arena *a, struct err *err)
{
        const struct json *c = r->container;
        const char *cwd = json_str_or(c, "cwd", "/");
        char **argv = strings(json_at(c, "argv"), NULL, a), **env;

        if (r->cgroup && cgroup_enter(r->cgroup) < 0)
                return err_errno(err, E_IO, errno, "cannot enter the container's cgroup");
        if (root_enter(r->pod_dir, r->plan, c, r->message_file, err) < 0) {
                if (err->code != E_FORBIDDEN || pod_has_mounts(r->plan))
                        return -1;
                err_clear(err); /* nothing of it is needed */
        }
        if (take_user(c, err) < 0)
                return -1;
        if (chdir(cwd) < 0)
                return err_errno(err, E_IO, errno, "workingDir %s", cwd);
        env = strings(json_at(c, "env"), NULL, a);
        if (!lookup(env, "HOME"))
                env = strings(json_at(c, "env"), arena_printf(a, "HOME=%s", home_of(geteuid(), a)), a);
        /* Last: a change of user takes it away. A supervisor that is killed takes its containers along. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return err_errno(err, E_IO, errno, "prctl");
        return run_program(argv, env, a, err);
}

static _noreturn_ void child(const struct spawn_request *r, pid_t parent, int in, int out, int errs,
                             int ready)
{
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;

        (void)setsid();
        signals_reset();
        umask(0022);
        if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(errs, STDERR_FILENO) < 0)
                err_errno(&err, E_IO, errno, "cannot set up output");
        else if (getppid() == parent)
                (void)become(r, &a, &err);
        (void)!fd_write_all(ready, str_of(err.text), NULL);
        _exit(128);
}

int spawn_container(const struct spawn_request *r, struct spawned *ret, struct err *err)
{
        int out[2] = {-1, -1}, errs[2] = {-1, -1}, ready[2] = {-1, -1};
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        pid_t pid = -1, self = getpid();

        if (null >= 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(errs, O_CLOEXEC) == 0 &&
            pipe2(ready, O_CLOEXEC) == 0)
                pid = fork();
        if (pid == 0)
                child(r, self, null, out[1], errs[1], ready[1]);
        if (pid < 0)
                err_errno(err, E_IO, errno, "cannot start a container");
        fd_close(null);
        fd_close(out[1]);
        fd_close(errs[1]);
        fd_close(ready[1]);
        if (pid < 0) {
                fd_close(out[0]);
                fd_close(errs[0]);
                fd_close(ready[0]);
                return -1;
        }
        fd_set_nonblock(out[0]);
        fd_set_nonblock(errs[0]);
        fd_set_nonblock(ready[0]);
        *ret = (struct spawned){pid, out[0], errs[0], ready[0]};
        return 0;
}
