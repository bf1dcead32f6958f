#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What the child says of itself before exec has closed the pipe. */
struct report {
        bool prepared; /* only exec itself failed */
        int why;
};

/* All that the child needs, made before the fork: between fork and exec there may be threads that are not there. */
struct plan {
        const struct spawn *s;
        char **places, **env;
        pid_t parent;
        int report_fd;
};

static const char *search_path(void)
{
        const char *path = getenv("PATH");

        return path && *path ? path : PATH_DEFAULT;
}

char **spawn_places(struct arena *a, const char *name)
{
        struct str rest = str_of(search_path());
        size_t n = 0, max = 2;
        char **places;

        for (const char *p = rest.p; *p; p++)
                max += *p == ':';
        places = arena_new_array(a, char *, max);
        if (strchr(name, '/'))
                places[n++] = arena_strdup(a, name);
        else
                while (rest.p && name[0]) {
                        struct str dir = str_split(&rest, ':');

                        places[n++] = arena_printf(a, "%.*s%s%s", STR_ARG(dir), dir.n ? "/" : "", name);
                }
        return places;
}

/* ---- environment */

static bool same_name(const char *x, const char *y)
{
        size_t n = strcspn(x, "=");

        return strncmp(x, y, n) == 0 && y[n] == '=';
}

char **spawn_environment(struct arena *a, const char *const *more)
{
        size_t n = 0, max = 1;
        char **env;

        for (char **e = environ; e && *e; e++)
                max++;
        for (const char *const *m = more; m && *m; m++)
                max++;
        env = arena_new_array(a, char *, max);
        for (char **e = environ; e && *e; e++) {
                const char *const *m = more;

                while (m && *m && !same_name(*m, *e))
                        m++;
                if (!m || !*m)
                        env[n++] = *e;
        }
        for (const char *const *m = more; m && *m; m++)
                env[n++] = arena_strdup(a, *m);
        return env;
}

/* ---- in the child */

void signals_reset(void)
{
        static const unsigned long by_default[4]; /* a kernel's struct sigaction */
        sigset_t none;

        /* Also the two that the C library keeps for itself and signal() does not touch: they may be ignored, too. */
        for (int i = 1; i < NSIG; i++)
                if (signal(i, SIG_DFL) == SIG_ERR)
                        (void)syscall(SYS_rt_sigaction, i, by_default, NULL, sizeof(uint64_t));
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
}

/* FD becomes each its number; none of the three may be in the way of another. */
static bool place_descriptors(const struct spawn *s)
{
        int fds[] = {s->in_fd, s->out_fd, s->err_fd};

        for (int i = 0; i < 3; i++)
                if (fds[i] != i && fds[i] < 3 && (fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3)) < 0)
                        return false;
        for (int i = 0; i < 3; i++)
                if (fds[i] == i ? fcntl(i, F_SETFD, 0) < 0 && errno != EBADF : dup2(fds[i], i) < 0)
                        return false;
        return true;
}

/* Returns only when it failed: errno. */
static int run_program(const struct plan *p)
{
        int why = ENOENT;

        for (char **place = p->places; *place; place++) {
                execve(*place, p->s->argv, p->env);
                if (errno != ENOENT && errno != ENOTDIR)
                        why = errno; /* it is there, but cannot be run: that says more */
                else if (why == ENOENT)
                        why = errno;
        }
        return why;
}

static _noreturn_ void child(const struct plan *p)
{
        struct report report = {0};

        if (p->s->own_group)
                (void)setpgid(0, 0);
        if (!place_descriptors(p->s) || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                report.why = errno;
        else if (getppid() == p->parent) { /* else we died before the request was made */
                signals_reset();
                report.prepared = true;
                report.why = run_program(p);
        }
        (void)!write(p->report_fd, &report, sizeof(report));
        _exit(STATUS_NOT_FOUND);
}

/* ---- in the parent */

static bool is_there(char *const *places)
{
        while (*places && access(*places, F_OK) < 0)
                places++;
        return *places;
}

int spawn_explain(const char *name, char *const *places, int why, int *ret_status, struct err *err)
{
        *ret_status = why == ENOENT || why == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
        if (why == ENOENT && is_there(places))
                return err_set(err, E_CONFIG,
                               "'%s' is there, but the interpreter or loader that it names is not", name);
        if (why == ENOENT && !strchr(name, '/'))
                return err_set(err, E_CONFIG, "'%s' is not found in PATH (%s)", name, search_path());
        if (why == ENOENT || why == ENOTDIR)
                return err_set(err, E_CONFIG, "'%s' is not found", name);
        if (why == EACCES)
                return err_set(err, E_CONFIG, "'%s' is not executable for user %u", name,
                               (unsigned)geteuid());
        if (why == ENOEXEC)
                return err_set(err, E_CONFIG,
                               "'%s' is not a program for this machine; a script begins with #!", name);
        return err_errno(err, E_CONFIG, why, "'%s'", name);
}

/* False: exec has closed the pipe. */
static bool read_report(int fd, struct report *ret)
{
        ssize_t n;

        do
                n = read(fd, ret, sizeof(*ret));
        while (n < 0 && errno == EINTR);
        return n == sizeof(*ret) && ret->why;
}

int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_status, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct plan plan = {.s = s, .parent = getpid()};
        struct report report = {0};
        int fds[2], status = STATUS_NOT_EXECUTABLE, why;
        bool failed;
        pid_t pid;

        plan.places = spawn_places(&a, s->argv[0]);
        plan.env = spawn_environment(&a, s->env);
        if (!ret_status)
                ret_status = &status;
        *ret_status = STATUS_NOT_EXECUTABLE;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        plan.report_fd = fds[1];
        pid = fork();
        if (pid == 0)
                child(&plan);
        why = errno;
        fd_close(fds[1]);
        failed = pid > 0 && read_report(fds[0], &report);
        fd_close(fds[0]);
        if (pid < 0)
                return err_errno(err, E_IO, why, "cannot make a process");
        if (failed) {
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
                if (!report.prepared)
                        return err_errno(err, E_IO, report.why, "cannot prepare a process for '%s'",
                                         s->argv[0]);
                return spawn_explain(s->argv[0], plan.places, report.why, ret_status, err);
        }
        *ret_pid = pid;
        return 0;
}
