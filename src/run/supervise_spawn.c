/*
 * Starting the workload. We have one thread, so the child may do anything between fork and exec.
 */
#include "run/supervise_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_NOT_EXECUTABLE = 126, STATUS_NOT_FOUND = 127 };

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const char *search_path(void)
{
        const char *path = getenv("PATH");

        return path && *path ? path : PATH_DEFAULT;
}

bool spawn_in_foreground(void)
{
        for (int fd = 0; fd <= 2; fd++)
                if (tcgetpgrp(fd) == getpgrp())
                        return true;
        return false;
}

/* The next place of NAME in REST of the search path, to be freed; NULL: there is none. */
static char *next_place(struct str *rest, const char *name)
{
        struct str dir;

        if (!rest->p || !name[0])
                return NULL;
        dir = str_split(rest, ':');
        return xasprintf("%.*s%s%s", STR_ARG(dir), dir.n ? "/" : "", name);
}

/* ---- in the child */

/* As execvp(), but never by way of a shell. Returns only when it failed: errno. */
static int run_program(char *const *argv)
{
        struct str rest = str_of(search_path());
        int why = ENOENT;
        char *file;

        if (strchr(argv[0], '/')) {
                execv(argv[0], argv);
                return errno;
        }
        while ((file = next_place(&rest, argv[0]))) {
                execv(file, argv);
                if (errno != ENOENT && errno != ENOTDIR)
                        why = errno; /* it is there, but cannot be run: that says more */
                free(file);
        }
        return why;
}

static _noreturn_ void child(const struct spawn *s, pid_t parent, int report_fd)
{
        int why = 0;

        if (s->own_group)
                (void)setpgid(0, 0);
        if (dup2(s->out_fd, STDOUT_FILENO) < 0 || dup2(s->err_fd, STDERR_FILENO) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                why = errno;
        else if (getppid() == parent) { /* else we died before the request was made */
                signals_reset();
                why = run_program(s->argv);
        }
        (void)!write(report_fd, &why, sizeof(why));
        _exit(STATUS_NOT_FOUND);
}

/* ---- in the parent */

static bool in_path(const char *name)
{
        struct str rest = str_of(search_path());
        bool found = false;
        char *file;

        while (!found && (file = next_place(&rest, name))) {
                found = access(file, F_OK) == 0;
                free(file);
        }
        return found;
}

static int explain(const char *name, int why, int *ret_status, struct err *err)
{
        bool path = strchr(name, '/') != NULL;

        *ret_status = why == ENOENT || why == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
        if (why == ENOENT && (path ? access(name, F_OK) == 0 : in_path(name)))
                return err_set(err, E_CONFIG,
                               "'%s' is there, but the interpreter or loader that it names is not", name);
        if (why == ENOENT && !path)
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

/* What the child says, or 0 when its exec has closed the pipe. */
static int read_report(int fd)
{
        int why = 0;
        ssize_t n;

        do
                n = read(fd, &why, sizeof(why));
        while (n < 0 && errno == EINTR);
        return n == sizeof(why) ? why : 0;
}

int spawn_start(const struct spawn *s, pid_t *ret_pid, int *ret_status, struct err *err)
{
        int report[2];
        pid_t pid, self = getpid();
        int why;

        *ret_status = STATUS_NOT_EXECUTABLE;
        if (pipe2(report, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        pid = fork();
        if (pid == 0)
                child(s, self, report[1]);
        why = pid < 0 ? errno : 0;
        fd_close(report[1]);
        if (pid > 0)
                why = read_report(report[0]);
        fd_close(report[0]);
        if (pid < 0)
                return err_errno(err, E_IO, why, "cannot make a process");
        if (why) {
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
                return explain(s->argv[0], why, ret_status, err);
        }
        *ret_pid = pid;
        return 0;
}
