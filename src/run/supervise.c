/*
 * run: the workload's parent.
 *
 * One loop with the two pipes and a signalfd; at rest it does not wake. When the workload has ended, what is in the pipes is
 * read (not what a grandchild writes later), exit.json is written, then our own output gets the rest, and then the FIFO is
 * let go by ending.
 */
#include "run/supervise_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_SIGNAL = 128, STATUS_NO_START = 126, MESSAGE_MAX = 4096 };

/* Once told to end, so long for a reader that does not read: below any grace period. */
static const usec_t FLUSH_TIME = 2 * USEC_PER_SEC;

static const int FORWARDED[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

struct supervisor {
        const struct run_command *c;
        const struct log *log;
        struct clock clock;
        struct loop *loop;
        struct ctl ctl;
        struct message message;
        sigset_t mask_before;
        struct io signals; /* a signalfd */
        pid_t child;       /* 0: not started, or gone */
        bool own_group;
        bool terminated; /* we were told to end */
        int status;      /* ours */
        int64_t oom_before;
        struct timer give_up;
        size_t n_streams;
        struct stream streams[2];
        struct tail tail;
        struct run_exit exit;
};

/* ---- the end */

static void maybe_stop(void *arg)
{
        struct supervisor *s = arg;

        for (size_t i = 0; i < s->n_streams; i++)
                if (s->child || !stream_flushed(&s->streams[i]))
                        return;
        loop_stop(s->loop, 0);
}

static void give_up(struct timer *t)
{
        loop_stop(t->loop, 0);
}

static void record(struct supervisor *s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        s->exit.finished_at = clock_wall(&s->clock);
        s->exit.tail = tail_text(&a, &s->tail);
        ctl_write_exit(&s->ctl, str_of(json_print(&a, run_exit_json(&a, &s->exit))), s->log);
        message_write(&s->message, exit_short_text(&a, &s->exit, MESSAGE_MAX), s->log);
}

static void ended(struct supervisor *s, int status)
{
        int64_t oom_after = oom_kills("");

        s->child = 0;
        if (WIFSIGNALED(status)) {
                s->exit.signal = WTERMSIG(status);
                s->status = STATUS_SIGNAL + s->exit.signal;
        } else
                s->status = s->exit.code = WEXITSTATUS(status);
        s->exit.told = s->terminated;
        s->exit.oom = s->oom_before >= 0 && oom_after > s->oom_before;
        for (size_t i = 0; i < s->n_streams; i++)
                stream_drain(&s->streams[i]);
        record(s);
        if (s->terminated)
                timer_after(&s->give_up, FLUSH_TIME);
        maybe_stop(s);
}

/* ---- signals */

/* The workload, and what was orphaned into us. */
static void reap(struct supervisor *s)
{
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR))
                if (pid > 0 && pid == s->child)
                        ended(s, status);
}

static void forward(struct supervisor *s, const struct signalfd_siginfo *info)
{
        int signo = (int)info->ssi_signo;
        bool to_end = signo == SIGTERM || signo == SIGINT || signo == SIGHUP || signo == SIGQUIT;

        s->terminated |= to_end;
        if (!s->child && to_end) {
                loop_stop(s->loop, 0); /* only output is left, and nobody takes it */
                return;
        }
        /* What a terminal sends, it sends to all of its foreground. */
        if (s->child && (s->own_group || info->ssi_code != SI_KERNEL))
                (void)kill(s->child, signo);
}

static void signalled(struct io *io, uint32_t events)
{
        struct supervisor *s = CONTAINER_OF(io, struct supervisor, signals);
        struct signalfd_siginfo info;

        while (read(io->fd, &info, sizeof(info)) == sizeof(info))
                if (info.ssi_signo == SIGCHLD)
                        reap(s);
                else
                        forward(s, &info);
}

/* From here on no signal is lost: it waits for the loop, and so for the workload. */
static int take_signals(struct supervisor *s, struct err *err)
{
        sigset_t set;
        int fd;

        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        for (size_t i = 0; i < ARRAY_LEN(FORWARDED); i++)
                sigaddset(&set, FORWARDED[i]);
        (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would leave nobody to wait for */
        (void)signal(SIGPIPE, SIG_IGN);
        sigprocmask(SIG_BLOCK, &set, &s->mask_before);
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0 || io_add(s->loop, &s->signals, fd, EPOLLIN, signalled) < 0) {
                fd_close(fd);
                return err_errno(err, E_IO, errno, "cannot take signals");
        }
        return 0;
}

/* ---- the start */

/* In the foreground of a terminal the workload must be there, too: in the same process group. */
static bool in_foreground(void)
{
        for (int fd = 0; fd <= 2; fd++)
                if (tcgetpgrp(fd) == getpgrp())
                        return true;
        return false;
}

/* So that nothing we open becomes somebody's standard output. */
static void fill_standard_descriptors(void)
{
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd <= STDERR_FILENO);
        fd_close(fd);
}

static int add_stream(struct supervisor *s, int out_fd, int *ret_write, struct err *err)
{
        struct stream *t = &s->streams[s->n_streams];
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        s->n_streams++;
        *ret_write = fds[1];
        t->on_flushed = maybe_stop;
        t->arg = s;
        return stream_init(t, s->loop, fds[0], out_fd, &s->tail, err);
}

static int start(struct supervisor *s, struct err *err)
{
        int out_fd = s->c->out_fd < 0 ? STDOUT_FILENO : s->c->out_fd;
        int err_fd = s->c->err_fd < 0 ? STDERR_FILENO : s->c->err_fd;
        _cleanup_(fd_close) int out = -1;
        _cleanup_(fd_close) int errs = -1;
        bool same = output_same(out_fd, err_fd);
        struct spawn spawn = {.argv = s->c->argv, .own_group = s->own_group};

        s->loop = loop_new(&s->clock, s->log, err);
        if (!s->loop || take_signals(s, err) < 0 || add_stream(s, out_fd, &out, err) < 0 ||
            (!same && add_stream(s, err_fd, &errs, err) < 0))
                return -1;
        timer_init(&s->give_up, s->loop, give_up);
        spawn.out_fd = out;
        spawn.err_fd = same ? out : errs;
        return spawn_start(&spawn, &s->child, &s->status, err);
}

static void finish(struct supervisor *s)
{
        for (size_t i = 0; i < s->n_streams; i++)
                stream_done(&s->streams[i]);
        if (s->signals.loop) {
                io_remove(&s->signals);
                fd_close(s->signals.fd);
                sigprocmask(SIG_SETMASK, &s->mask_before, NULL);
        }
        if (s->loop)
                timer_cancel(&s->give_up);
        loop_free(s->loop);
        ctl_close(&s->ctl);
}

int run_supervise(const struct run_command *c, const struct log *log)
{
        _cleanup_(free_ptr) struct supervisor *s = xcalloc(1, sizeof(*s));
        struct err err = ERR_INIT;
        int status;

        fill_standard_descriptors();
        s->c = c;
        s->log = log;
        s->status = STATUS_NO_START;
        s->own_group = !in_foreground();
        s->exit = (struct run_exit){.code = -1, .started_at = clock_wall(&s->clock)};
        if (getpid() != 1)
                (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        ctl_open(&s->ctl, c->ctl, s->exit.started_at, log);
        message_open(&s->message, c->termination_log);
        s->oom_before = oom_kills("");
        if (start(s, &err) < 0) {
                LOG_ERROR(log, "Cannot start the command", F_ERR(&err));
                s->exit.error = err.text;
                record(s);
        } else
                (void)loop_run(s->loop);
        status = s->status;
        finish(s);
        return status;
}
