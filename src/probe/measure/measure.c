/*
 * Our side of a measurement: asks the keeper, passes output on, and makes a sample of what it says.
 */
#include "probe/measure/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/measure/internal.h"

static const usec_t GRACE = 500 * USEC_PER_MS, LEFT_OVER_GRACE = 100 * USEC_PER_MS;
static const long TICK_NS = 10 * 1000000; /* of the slowest kernel */
/* For the keeper's end: it kills what it keeps before. */
static const int END_MS = 15000;

enum { REQUEST_MAX = 8 << 20, KILLED_INSIDE = 128 + SIGKILL /* as a shell tells of its child */ };

struct measure {
        struct loop *loop;
        bool counters;
        struct io io; /* the keeper's socket; loop NULL: there is no keeper */
        pid_t keeper;
        int nothing; /* /dev/null */
        char *root;  /* of the cgroup's files */
        struct gpu gpu;
        struct defer tell;
        /* of the run */
        bool running;
        void (*done)(void *arg, const struct measure_sample *sample);
        void *arg;
        struct arena arena;
        struct measure_sample sample;
        struct measure_scan scan;
        struct pass pass;
        const char *name, *metrics_file, *metrics_beside; /* the second: metrics.json where it works */
        struct stat beside; /* as it was at the start; no links: it was not there */
        const bool *crowded;
        char **places;
        usec_t began, timeout, usage_at;
        double usage_cpu;
        struct family family;
};

/* ---- the keeper */

static void heard(struct io *io, uint32_t events);

static int start_keeper(struct measure *m, struct err *err)
{
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return err_errno(err, E_IO, errno, "cannot make a socket");
        m->keeper = fork();
        if (m->keeper == 0) {
                fd_close(fds[0]); /* else it is never told that we have gone */
                keeper_main(fds[1], m->counters, m->root);
        }
        fd_close(fds[1]);
        if (m->keeper < 0 || io_add(m->loop, &m->io, fds[0], EPOLLIN, heard) < 0) {
                fd_close(fds[0]);
                return err_errno(err, E_IO, errno, "cannot make a process");
        }
        return 0;
}

/* It ends with its socket. One that cannot kill what it keeps is left alone. */
static void end_keeper(struct measure *m)
{
        struct pollfd ask = {.fd = -1, .events = POLLIN};

        if (!m->io.loop)
                return;
        io_remove(&m->io);
        fd_close(m->io.fd);
        ask.fd = (int)syscall(SYS_pidfd_open, m->keeper, 0);
        if (ask.fd >= 0)
                (void)poll(&ask, 1, END_MS);
        fd_close(ask.fd);
        (void)waitpid(m->keeper, NULL, WNOHANG);
}

struct measure *measure_new(struct loop *loop, const struct measure_options *options, struct err *err)
{
        static const struct measure_options none;
        _cleanup_(measure_free) struct measure *m = xcalloc(1, sizeof(*m));
        const char *root;

        options = options ? options : &none;
        root = options->root ? options->root : "";
        m->loop = loop;
        m->counters = options->counters;
        m->root = xstrdup(root);
        gpu_init(&m->gpu, loop, options->gpu);
        m->nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (m->nothing < 0) {
                (void)err_errno(err, E_IO, errno, "cannot open /dev/null");
                return NULL;
        }
        if (start_keeper(m, err) < 0)
                return NULL;
        return TAKE_PTR(m);
}

static void forget_run(struct measure *m)
{
        pass_end(&m->pass);
        measure_scan_done(&m->scan);
        m->scan = (struct measure_scan)MEASURE_SCAN_INIT;
}

void measure_free(struct measure *m)
{
        if (!m)
                return;
        defer_cancel(&m->tell);
        end_keeper(m);
        forget_run(m);
        measure_scan_done(&m->scan);
        gpu_done(&m->gpu);
        free(m->root);
        fd_close(m->nothing);
        family_done(&m->family);
        arena_done(&m->arena);
        free(m);
}

/* ---- the sample */

static double seconds(uint64_t n, double unit)
{
        return (double)n / unit;
}

static void set_error(struct measure_sample *s, const char *reason, const char *message)
{
        s->error_reason = reason;
        s->error_message = message;
}

/* Why it is not a good one. The command's own word counts when it has ended by itself. */
static void judge(struct measure *m, const char *reason, const char *message)
{
        struct measure_sample *s = &m->sample;
        struct arena *a = &m->arena;

        if (s->stopped)
                set_error(s, "Stopped", "it was stopped before its end");
        else if (s->timed_out)
                set_error(s, "TimedOut",
                          arena_printf(a, "it did not end within %.6g s", seconds(m->timeout, 1e6)));
        else if (s->oom && (s->signal == SIGKILL || s->exit_code == KILLED_INSIDE))
                set_error(s, "OOMKilled",
                          "the kernel killed it for want of memory: raise the memory limit, or have it use "
                          "less");
        else if (s->signal)
                set_error(s, "Signal",
                          arena_printf(a, "it ended by signal %d (%s)", s->signal,
                                       sigdescr_np(s->signal) ? sigdescr_np(s->signal) : "unknown"));
        else if (s->exit_code > 0 && reason)
                set_error(s, reason, message);
        else if (s->exit_code > 0)
                set_error(s, "ExitCode", arena_printf(a, "exit status %d", s->exit_code));
}

/* Whatever the command made of it, a pipe say, is not waited for. */
static int read_regular(const char *path, struct buf *out, struct err *err)
{
        struct stat st;

        if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
                return err_set(err, E_INVALID, "%s is not a regular file", path);
        return file_read(path, out, err);
}

/*
 * metrics.json as it lies there from before. Files are stamped with the time of the kernel's last tick, in which it may have
 * been written, and be written again: then its stamp is set back, so that it changes with whatever this run writes.
 */
static void look_beside(struct measure *m)
{
        struct timespec now, times[2] = {{.tv_nsec = UTIME_OMIT}};
        struct stat *st = &m->beside;

        *st = (struct stat){0};
        if (!m->metrics_file || lstat(m->metrics_beside, st) < 0 || !S_ISREG(st->st_mode))
                return;
        clock_gettime(CLOCK_REALTIME, &now);
        if (difftime(now.tv_sec, st->st_ctim.tv_sec) > 1)
                return;
        times[1] = st->st_mtim;
        times[1].tv_nsec -= TICK_NS;
        if (times[1].tv_nsec < 0) {
                times[1].tv_nsec += 1000000000;
                times[1].tv_sec--;
        }
        if (utimensat(AT_FDCWD, m->metrics_beside, times, AT_SYMLINK_NOFOLLOW) == 0)
                (void)lstat(m->metrics_beside, st);
}

static bool same_time(struct timespec x, struct timespec y)
{
        return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec;
}

static bool written_beside(const struct measure *m)
{
        const struct stat *was = &m->beside;
        struct stat is;

        if (lstat(m->metrics_beside, &is) < 0)
                return false;
        return !was->st_nlink || is.st_dev != was->st_dev || is.st_ino != was->st_ino ||
               is.st_size != was->st_size || !same_time(is.st_mtim, was->st_mtim) ||
               !same_time(is.st_ctim, was->st_ctim);
}

/* The file that this run wrote: the one it was told of, else metrics.json where it worked, if nobody else did. */
static const char *metrics_written(struct measure *m)
{
        struct stat st;

        if (lstat(m->metrics_file, &st) == 0 || !written_beside(m))
                return m->metrics_file;
        if (!m->crowded || !*m->crowded)
                return m->metrics_beside;
        m->sample.note =
                "metrics.json is left out: others ran in its directory meanwhile (SONDE_METRICS_FILE "
                "is a file of each run's own)";
        return m->metrics_file;
}

static void read_metrics_file(struct measure *m)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(MEASURE_METRICS_FILE_MAX);
        const char *path = metrics_written(m);
        struct measure_sample *s = &m->sample;
        struct err err = ERR_INIT;

        if (read_regular(path, &text, &err) < 0) {
                if (err.code != E_NOT_FOUND)
                        s->note = arena_printf(&m->arena, "metrics are left out: %s", err.text);
        } else if (text.n && measure_metrics_parse(&m->arena, buf_str(&text), s, &err) < 0) {
                s->note = arena_printf(&m->arena, "metrics are left out: %s: %s", path, err.text);
        }
        (void)unlink(m->metrics_file);
}

static void read_metrics(struct measure *m, const char **ret_reason, const char **ret_message)
{
        struct measure_sample *s = &m->sample;

        if (m->metrics_file)
                read_metrics_file(m);
        *ret_reason = s->error_reason;
        *ret_message = s->error_message;
        s->error_reason = s->error_message = NULL;
        measure_scan_end(&m->scan);
        measure_scan_add(&m->arena, &m->scan, s);
}

static void fill(struct measure *m, const struct keeper_reply *r)
{
        struct measure_sample *s = &m->sample;

        s->started = r->started_at;
        s->wall = seconds(r->wall_ns, 1e9);
        s->user = seconds(r->user_us, 1e6);
        s->sys = seconds(r->sys_us, 1e6);
        s->peak_rss = r->peak_rss;
        s->minor_faults = r->minor_faults;
        s->major_faults = r->major_faults;
        s->voluntary_switches = r->voluntary_switches;
        s->involuntary_switches = r->involuntary_switches;
        s->processes = r->processes;
        s->orphans = r->orphans;
        s->left_over = r->left_over;
        s->timed_out = r->timed_out;
        s->stopped = r->stopped;
        if (WIFSIGNALED(r->status))
                s->signal = WTERMSIG(r->status);
        else
                s->exit_code = WEXITSTATUS(r->status);
        s->oom = r->oom;
        s->io = r->io;
        s->cgroup = r->cgroup;
        s->counters = r->counters;
        if (r->stuck)
                s->note = "some of its processes cannot be killed";
        else if (r->left_over)
                s->note = arena_printf(&m->arena, "%d process%s left over, and ended", r->left_over,
                                       r->left_over == 1 ? "" : "es");
}

static void not_started(struct measure *m, const struct keeper_reply *r)
{
        struct err err = ERR_INIT;
        int status;

        if (r->prepared)
                (void)spawn_explain(m->name, m->places, r->why, &status, &err);
        else
                (void)err_errno(&err, E_IO, r->why, "cannot prepare a process for '%s'", m->name);
        set_error(&m->sample, "NotStarted", arena_strdup(&m->arena, err.text));
}

static void tell(struct defer *d)
{
        struct measure *m = CONTAINER_OF(d, struct measure, tell);

        m->done(m->arg, &m->sample);
}

static void finish(struct measure *m, const struct keeper_reply *r)
{
        const char *reason, *message;

        measure_sample_init(&m->sample);
        gpu_end(&m->gpu, &m->sample.gpu);
        pass_end(&m->pass);
        if (r->started) {
                fill(m, r);
                read_metrics(m, &reason, &message);
                judge(m, reason, message);
        } else
                not_started(m, r);
        m->running = !r->last;
        /* At the end of the turn: then nobody of ours is on the way who could be freed. */
        defer_run(m->loop, &m->tell, tell);
}

/* The keeper has gone without a word. */
static void lost(struct measure *m)
{
        end_keeper(m);
        if (!m->running)
                return;
        measure_sample_init(&m->sample);
        gpu_end(&m->gpu, &m->sample.gpu);
        pass_end(&m->pass);
        set_error(&m->sample, "Lost", "the process that watched it was killed");
        m->running = false;
        defer_run(m->loop, &m->tell, tell);
}

static void heard(struct io *io, uint32_t events)
{
        struct measure *m = CONTAINER_OF(io, struct measure, io);
        struct keeper_reply r;
        ssize_t n = recv(io->fd, &r, sizeof(r), MSG_WAITALL);

        if (n < 0 && errno == EINTR)
                return;
        if (n != sizeof(r))
                lost(m);
        else if (m->running)
                finish(m, &r);
}

/* ---- the start */

static void add_strings(struct buf *out, char *const *strings, uint32_t *ret_n)
{
        for (*ret_n = 0; *strings; strings++, (*ret_n)++)
                buf_add(out, *strings, strlen(*strings) + 1);
}

/* What lies in up to two PARTS, which are used up; with the three FDS, if any. In one call: the keeper wakes up once. */
static bool send_all(int fd, struct iovec *parts, size_t n_parts, const int *fds)
{
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(sizeof(int) * 3)];
        } control = {0};
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = n_parts};

        if (fds) {
                struct cmsghdr *c;

                message.msg_control = control.room;
                message.msg_controllen = sizeof(control.room);
                c = CMSG_FIRSTHDR(&message);
                *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int) * 3),
                                      .cmsg_level = SOL_SOCKET,
                                      .cmsg_type = SCM_RIGHTS};
                memcpy(CMSG_DATA(c), fds, sizeof(int) * 3);
        }
        while (message.msg_iovlen) {
                ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
                size_t n = (size_t)MAX(sent, (ssize_t)0);

                if (sent < 0 && errno != EINTR)
                        return false;
                for (; message.msg_iovlen && n >= message.msg_iov->iov_len; message.msg_iovlen--)
                        n -= (message.msg_iov++)->iov_len;
                if (message.msg_iovlen) {
                        message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + n;
                        message.msg_iov->iov_len -= n;
                }
                if (sent > 0)
                        message.msg_controllen = 0;
        }
        return true;
}

static bool same_name(const char *x, const char *y)
{
        size_t n = strcspn(x, "=");

        return strncmp(x, y, n) == 0 && (y[n] == '=' || !y[n]);
}

/* Our environment and the command's, where the last of one name counts; the metrics file is last. */
static char **with_metrics_file(struct arena *a, const struct measure_command *c)
{
        size_t n = 0, kept = 0;
        const char **more;

        while (c->env && c->env[n])
                n++;
        more = arena_new_array(a, const char *, n + 2);
        for (size_t i = 0; i < n; i++)
                more[i] = c->env[i];
        if (c->metrics_file)
                more[n++] = arena_printf(a, "SONDE_METRICS_FILE=%s", c->metrics_file);
        for (size_t i = 0; i < n; i++) {
                size_t later = i + 1;

                while (later < n && !same_name(more[i], more[later]))
                        later++;
                if (later == n)
                        more[kept++] = more[i];
        }
        more[kept] = NULL;
        return spawn_environment(a, more);
}

/* Nothing of it has to be seen to between two runs. */
static bool runs_by_itself(const struct measure *m, const struct measure_command *c)
{
        return !c->input && !c->metrics_file && !m->gpu.tool &&
               (c->output == MEASURE_OUTPUT_OURS || c->output == MEASURE_OUTPUT_NULL);
}

static int send_request(struct measure *m, const struct measure_command *c, const int *fds, struct err *err)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(REQUEST_MAX);
        struct keeper_request q = {.what = KEEPER_START, .timeout = c->timeout};

        q.times = runs_by_itself(m, c) ? c->times : 1;
        q.grace = c->grace ? c->grace : GRACE;
        q.left_over_grace = c->grace ? c->grace : LEFT_OVER_GRACE;
        buf_add(&text, c->dir ? c->dir : "", strlen(c->dir ? c->dir : "") + 1);
        add_strings(&text, m->places, &q.n_places);
        add_strings(&text, c->argv, &q.n_argv);
        add_strings(&text, with_metrics_file(&m->arena, c), &q.n_env);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "arguments and environment are larger than %d bytes",
                               REQUEST_MAX);
        q.size = (uint32_t)text.n;
        if (!send_all(m->io.fd, (struct iovec[]){{&q, sizeof(q)}, {text.p, text.n}}, 2, fds))
                return err_errno(err, E_IO, errno, "cannot reach the process that starts '%s'", m->name);
        return 0;
}

/* One of ours; what we do not have ourselves goes to nobody. */
static int our_fd(const struct measure *m, int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? m->nothing : fd;
}

/* What becomes of its output: FDS[1] and FDS[2]. *RET_PIPE: ours to close when it has been sent. */
static int open_output(struct measure *m, const struct measure_command *c, int *fds, int *ret_pipe,
                       struct err *err)
{
        bool to_ours = c->output == MEASURE_OUTPUT_OURS || c->output == MEASURE_OUTPUT_SCANNED;
        int ends[2];

        fds[1] = to_ours ? our_fd(m, STDOUT_FILENO) : m->nothing;
        fds[2] = to_ours ? our_fd(m, STDERR_FILENO) : m->nothing;
        if (c->output == MEASURE_OUTPUT_OURS || c->output == MEASURE_OUTPUT_NULL)
                return 0;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return err_errno(err, E_IO, errno, "cannot make a pipe");
        fds[1] = *ret_pipe = ends[1];
        return pass_init(&m->pass, m->loop, ends[0], to_ours ? STDOUT_FILENO : -1, &m->scan, err);
}

/* Not waited for, if it is a pipe that nobody writes to yet: nothing could end that. */
static int open_input(const char *path, struct err *err)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0) {
                fd_close(fd);
                return err_errno(err, E_IO, errno, "cannot open %s", path);
        }
        return fd;
}

static int start_command(struct measure *m, const struct measure_command *c, struct err *err)
{
        _cleanup_(fd_close) int in = -1, out = -1;
        int fds[3] = {m->nothing};

        if (c->input && (fds[0] = in = open_input(c->input, err)) < 0)
                return -1;
        if (open_output(m, c, fds, &out, err) < 0)
                return -1;
        return send_request(m, c, fds, err);
}

int measure_start(struct measure *m, const struct measure_command *command,
                  void (*done)(void *arg, const struct measure_sample *sample), void *arg, struct err *err)
{
        if (m->running || m->tell.pending)
                return err_set(err, E_INTERNAL, "a command is being measured");
        if (!command->argv || !command->argv[0])
                return err_set(err, E_INVALID, "there is no command");
        forget_run(m);
        arena_reset(&m->arena, SIZE_MAX);
        m->name = arena_strdup(&m->arena, command->argv[0]);
        m->places = spawn_places(&m->arena, m->name);
        m->metrics_file = arena_strdup(&m->arena, command->metrics_file);
        m->metrics_beside = arena_printf(&m->arena, "%s/metrics.json", command->dir ? command->dir : ".");
        m->crowded = command->crowded;
        m->timeout = command->timeout;
        m->done = done;
        m->arg = arg;
        if (m->metrics_file && unlink(m->metrics_file) < 0 && errno != ENOENT)
                return err_errno(err, E_IO, errno, "cannot remove %s", m->metrics_file);
        look_beside(m);
        if ((!m->io.loop && start_keeper(m, err) < 0) || start_command(m, command, err) < 0) {
                forget_run(m);
                return -1;
        }
        m->running = true;
        family_forget(&m->family);
        m->began = m->usage_at = clock_boot(loop_clock(m->loop));
        m->usage_cpu = 0;
        gpu_begin(&m->gpu);
        return 0;
}

bool measure_running(const struct measure *m)
{
        return m->running;
}

void measure_stop(struct measure *m)
{
        struct keeper_request q = {.what = KEEPER_STOP};

        if (m->running)
                (void)send_all(m->io.fd, (struct iovec[]){{&q, sizeof(q)}}, 1, NULL);
}

/* ---- now */

struct measure_usage measure_usage(struct measure *m)
{
        struct measure_usage now = {0};
        usec_t at = clock_boot(loop_clock(m->loop));
        double passed = seconds(usec_sub(at, m->usage_at), 1e6);

        if (!m->running)
                return now;
        family_list(&m->family, m->keeper);
        vec_foreach (pid, &m->family.pids) {
                struct family_usage u;

                if (!family_cpu(*pid, &u))
                        continue;
                now.processes++;
                now.cpu_seconds += u.cpu_seconds;
        }
        now.memory = family_peak(&m->family, 0, at * NS_PER_USEC);
        now.cpu_seconds = MAX(now.cpu_seconds, m->usage_cpu); /* what an orphan had is gone with it */
        now.cpu_percent = passed > 0 ? (now.cpu_seconds - m->usage_cpu) / passed * 100 : 0;
        m->usage_at = at;
        m->usage_cpu = now.cpu_seconds;
        return now;
}
