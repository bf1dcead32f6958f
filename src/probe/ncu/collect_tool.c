/*
 * One child at a time, with poll(): a signalfd, its pipe, our standard output. While our own output takes nothing, nothing is
 * read, so the program waits in its write() as it would without us.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/ncu/collect.h"

enum { PIECE = 64 << 10, SWEEPS_MAX = 100 };

#define KILL_AFTER  (10 * USEC_PER_SEC)
#define FLUSH_AFTER (2 * USEC_PER_SEC) /* once told to end, so long for a reader that does not read */

struct running {
        struct tool_watch *w;
        const struct tool_job *job;
        pid_t pid; /* 0: gone */
        int status, fd;
        usec_t started, kill_at, give_up_at; /* 0: not yet */
        bool late, broken;                   /* broken: nobody reads our output any more */
        struct buf pending;                  /* read, and not yet written to our output */
        size_t written;
};

/* ---- children that are left */

static bool parent_of(const char *pid, pid_t *ret)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(4096);
        char path[64];
        const char *end;
        struct str rest;
        int64_t parent;

        snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
        if (file_read(path, &text, NULL) < 0 || !(end = memrchr(text.p ? text.p : "", ')', text.n)))
                return false;
        rest = str_n(end + 1, text.n - (size_t)(end + 1 - text.p)); /* " S 1234 …" */
        (void)str_split(&rest, ' ');
        (void)str_split(&rest, ' ');
        if (!str_to_i64(str_split(&rest, ' '), &parent))
                return false;
        *ret = (pid_t)parent;
        return true;
}

/* Calls FN for each of our children; how many there are. */
static size_t each_child(struct tool_watch *w, void (*fn)(struct tool_watch *w, pid_t pid))
{
        DIR *proc = opendir("/proc");
        struct dirent *e;
        size_t n = 0;

        while (proc && (e = readdir(proc))) {
                int64_t pid;
                pid_t parent;

                if (!str_to_i64(str_of(e->d_name), &pid) || !parent_of(e->d_name, &parent) ||
                    parent != getpid())
                        continue;
                fn(w, (pid_t)pid);
                n++;
        }
        if (proc)
                closedir(proc);
        return n;
}

static void remember(struct tool_watch *w, pid_t pid)
{
        *vec_push(&w->children_before) = pid;
}

static void end_stray(struct tool_watch *w, pid_t pid)
{
        vec_foreach (before, &w->children_before)
                if (*before == pid)
                        return;
        (void)kill(pid, SIGKILL);
}

static void reap(struct running *r)
{
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                if (pid == r->pid) {
                        r->status = status;
                        r->pid = 0;
                }
}

/* What has left its group is ours by now: we are the subreaper. What those leave behind comes in the next sweep. */
static void sweep(struct running *r, pid_t group)
{
        (void)kill(-group, SIGKILL);
        for (int i = 0; i < SWEEPS_MAX; i++) {
                const struct timespec pause = {.tv_nsec = 10 * 1000000L};

                reap(r);
                if (each_child(r->w, end_stray) <= r->w->children_before.n)
                        return;
                nanosleep(&pause, NULL);
        }
}

/* ---- signals */

int tool_watch_init(struct tool_watch *w, const struct clock *clock, struct err *err)
{
        sigset_t set;
        int subreaper = 0;

        *w = (struct tool_watch){.clock = clock};
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        sigaddset(&set, SIGHUP);
        (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would leave nobody to wait for */
        (void)signal(SIGPIPE, SIG_IGN);
        sigprocmask(SIG_BLOCK, &set, &w->mask_before);
        (void)prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
        w->subreaper_before = subreaper;
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        (void)each_child(w, remember);
        w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return w->signal_fd < 0 ? err_errno(err, E_IO, errno, "cannot take signals") : 0;
}

void tool_watch_done(struct tool_watch *w)
{
        fd_close(w->signal_fd);
        vec_done(&w->children_before);
        (void)prctl(PR_SET_CHILD_SUBREAPER, w->subreaper_before);
        sigprocmask(SIG_SETMASK, &w->mask_before, NULL);
}

static void end_it(struct running *r, int signo)
{
        usec_t now = clock_boot(r->w->clock);

        if (r->pid)
                (void)kill(-r->pid, signo);
        if (!r->kill_at)
                r->kill_at = now + KILL_AFTER;
        if (!r->give_up_at)
                r->give_up_at = now + FLUSH_AFTER;
}

static void take_signals(struct running *r)
{
        struct signalfd_siginfo info;

        while (read(r->w->signal_fd, &info, sizeof(info)) == sizeof(info))
                if (info.ssi_signo != SIGCHLD) {
                        r->w->told = (int)info.ssi_signo;
                        end_it(r, r->w->told);
                }
        reap(r);
}

/* ---- output */

static bool flushed(const struct running *r)
{
        return r->broken || r->written == r->pending.n;
}

/* A pipe that can be written to has room for PIPE_BUF bytes, all of them. */
static void write_some(struct running *r)
{
        ssize_t n = write(STDOUT_FILENO, r->pending.p + r->written,
                          MIN(r->pending.n - r->written, (size_t)PIPE_BUF));

        if (n > 0)
                r->written += (size_t)n;
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
                r->broken = true;
        if (flushed(r)) {
                buf_clear(&r->pending);
                r->written = 0;
        }
}

/* Reads once, at most MAX bytes. False: that was the end, or nothing is there. */
static bool read_some(struct running *r, size_t max)
{
        char *to = buf_reserve(&r->pending, MIN(max, (size_t)PIECE));
        ssize_t n;

        if (!to)
                return false;
        n = read(r->fd, to, MIN(max, (size_t)PIECE));
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                fd_close(TAKE_FD(r->fd));
                return false;
        }
        r->job->output(r->job->arg, str_n(to, (size_t)n));
        if (r->job->forward && !r->broken)
                r->pending.n += (size_t)n;
        return true;
}

/* What is in the pipe now, and nothing that somebody writes later. */
static void drain(struct running *r)
{
        int left = 0;

        if (r->fd >= 0 && ioctl(r->fd, FIONREAD, &left) < 0)
                left = 0;
        r->pending.max += (size_t)MAX(left, 0);
        while (left > 0 && r->fd >= 0) {
                size_t n = MIN((size_t)left, (size_t)PIECE);

                if (!read_some(r, n))
                        break;
                left -= (int)n;
        }
        fd_close(TAKE_FD(r->fd));
}

/* ---- the run */

static int until(usec_t now, usec_t when, int timeout)
{
        usec_t ms = when > now ? (when - now) / USEC_PER_MS + 1 : 0;

        return timeout < 0 || ms < (usec_t)timeout ? (int)MIN(ms, (usec_t)60000) : timeout;
}

/* Waits for whatever comes first, and does it. */
static void turn(struct running *r, usec_t wake)
{
        bool full = !flushed(r);
        struct pollfd fds[] = {{.fd = r->w->signal_fd, .events = POLLIN},
                               {.fd = full ? -1 : r->fd, .events = POLLIN},
                               {.fd = full ? STDOUT_FILENO : -1, .events = POLLOUT}};
        usec_t now = clock_boot(r->w->clock);
        const usec_t moments[] = {wake, r->kill_at, r->give_up_at,
                                  r->job->limit && !r->late ? r->started + r->job->limit : 0};
        int timeout = -1;

        for (size_t i = 0; i < ARRAY_LEN(moments); i++)
                if (moments[i])
                        timeout = until(now, moments[i], timeout);
        if (poll(fds, ARRAY_LEN(fds), timeout) < 0 && errno != EINTR)
                r->broken = true;
        take_signals(r);
        if (fds[1].revents)
                (void)read_some(r, PIECE);
        if (fds[2].revents)
                write_some(r);
        now = clock_boot(r->w->clock);
        if (r->job->limit && !r->late && now >= r->started + r->job->limit) {
                r->late = true;
                end_it(r, SIGTERM);
        }
        if (r->kill_at && now >= r->kill_at) {
                r->kill_at = 0;
                if (r->pid)
                        (void)kill(-r->pid, SIGKILL);
        }
        if (r->give_up_at && now >= r->give_up_at) {
                r->give_up_at = 0;
                r->broken = true;
        }
}

static int start(struct running *r, struct err *err)
{
        _cleanup_(fd_close) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct spawn spawn = {.argv = r->job->argv,
                              .env = r->job->env,
                              .in_fd = null,
                              .err_fd = STDERR_FILENO,
                              .own_group = true};
        int fds[2], ok;

        if (null < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        spawn.out_fd = fds[1];
        if (r->job->forward)
                spawn.err_fd = fds[1];
        ok = spawn_start(&spawn, &r->pid, NULL, err);
        fd_close(fds[1]);
        r->fd = fds[0];
        (void)fd_set_nonblock(r->fd);
        return ok;
}

int tool_run(struct tool_watch *w, const struct tool_job *job, int *ret_status, struct err *err)
{
        struct running r = {.w = w,
                            .job = job,
                            .fd = -1,
                            .pending = BUF_INIT(2 * PIECE),
                            .started = clock_boot(w->clock)};
        usec_t wake = 0;
        pid_t group;

        if (start(&r, err) < 0) {
                fd_close(r.fd);
                return -1;
        }
        group = r.pid;
        while (r.pid) {
                turn(&r, wake);
                wake = job->wake ? job->wake(job->arg) : 0;
        }
        drain(&r);
        sweep(&r, group);
        if (w->told)
                end_it(&r, 0);
        while (!flushed(&r))
                turn(&r, 0);
        buf_done(&r.pending);
        *ret_status = r.status;
        return 0;
}
