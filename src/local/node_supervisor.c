/*
 * The supervisor of one pod: init containers in order, containers together, restarts, termination.
 *
 * It is the subreaper of everything it started. A container has ended when its first process has, and when what that
 * left behind was killed and is gone. After every change the state is written; at the end it is final and the process
 * goes. SIGTERM ends the pod within the grace period that stop.json names (or else the plan).
 */
#include "local/node_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_SIZE = 65536, MESSAGE_MAX = 4096, MESSAGE_LOG_MAX = 2048, MESSAGE_LINES = 80, SWEEPS_MAX = 500 };

static const usec_t SWEEP_EVERY = 10 * USEC_PER_MS;
static const usec_t STABLE_AFTER = 600 * USEC_PER_SEC; /* a container that ran so long starts afresh */
static const usec_t RETRY_EVERY = 10 * USEC_PER_SEC;

struct stream {
        struct container *c;
        struct io io;
        int fd;
        const char *name;
        struct buf line;
};

enum phase { IDLE, STARTING, RUNNING, SWEEPING /* its first process has ended */, BACKOFF, ENDED };

struct container {
        struct supervisor *s;
        const struct json *plan;
        const char *name;
        bool init;
        enum phase phase;
        unsigned restarts, failures; /* failures: starts that count for the delay */
        pid_t pid;
        struct proc_id id;
        bool own_root; /* it has a mount namespace */
        int status;    /* waitpid()'s */
        bool started_ever, killed_by_us;
        char *start_error;
        usec_t started, finished; /* wall */
        struct io ready;
        int ready_fd;
        struct buf ready_text;
        struct stream out, errs;
        struct node_log log;
        struct doc cgroup, last; /* last: the terminated state before the current one */
        struct doc ended;        /* terminated state of this run */
        struct timer timer;      /* sweep, backoff */
        unsigned sweeps;
};

struct supervisor {
        struct loop *loop;
        const char *dir;
        struct doc plan;
        struct container *containers;
        size_t n;
        const char *policy;
        bool stopping, final;
        const char *reason, *message; /* of the pod */
        usec_t started;               /* wall */
        struct timer grace, deadline;
        struct proc_id self;
        const char *boot;
        struct log log;
        struct clock clock;
};

static void advance(struct supervisor *s);

static usec_t wall(const struct supervisor *s)
{
        return loop_wall(s->loop);
}

static struct json *time_node(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return when ? json_string(a, time_format(when, text)) : NULL;
}

/* ---- the state */

static struct json *waiting(const struct container *c, struct arena *a)
{
        const struct json *error = json_at(c->plan, "error");

        if (error && c->phase == BACKOFF)
                return json_build(a, "{'waiting': {'reason': %s, 'message': %s}}", json_str(error, "reason"),
                                  json_str(error, "message"));
        if (c->phase == BACKOFF)
                return json_build(a,
                                  "{'waiting': {'reason': 'CrashLoopBackOff', 'message': 'back-off %llus "
                                  "restarting failed container=%s pod=%s_%s(%s)'}}",
                                  (unsigned long long)(restart_delay(c->failures) / USEC_PER_SEC), c->name,
                                  json_str(c->s->plan.root, "name"), json_str(c->s->plan.root, "namespace"),
                                  json_str(c->s->plan.root, "uid"));
        return NULL; /* which word it is depends on the others: see node_status.c */
}

static struct json *state_of(const struct container *c, struct arena *a)
{
        if (c->phase == RUNNING || c->phase == SWEEPING)
                return json_build(a, "{'running': {'startedAt': %p}}", (void *)time_node(a, c->started));
        if (c->phase == ENDED && c->ended.root)
                return json_copy(a, c->ended.root);
        return waiting(c, a);
}

static struct json *container_state(const struct container *c, struct arena *a)
{
        return json_build(a,
                          "{'name': %s, 'init': %p, 'restarts': %u, 'pid': %d, 'start': %llu, "
                          "'cgroup': %p, 'id': %p, 'state': %p, 'last': %p}",
                          c->name, (void *)json_truth(a, c->init), c->restarts, (int)c->id.pid,
                          (unsigned long long)c->id.start,
                          (void *)(c->cgroup.root ? json_copy(a, c->cgroup.root) : NULL),
                          (void *)(c->started_ever
                                           ? json_string(a, arena_printf(a, "sonde://%s/%s/%u",
                                                                         json_str(c->s->plan.root, "uid"),
                                                                         c->name, c->restarts))
                                           : NULL),
                          (void *)state_of(c, a), (void *)(c->last.root ? json_copy(a, c->last.root) : NULL));
}

static void save(struct supervisor *s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *containers = json_array(&a);
        struct err err = ERR_INIT;

        for (size_t i = 0; i < s->n; i++)
                json_append(containers, container_state(&s->containers[i], &a));
        if (node_files_save(s->dir, "state.json",
                            json_build(&a,
                                       "{'pid': %d, 'start': %llu, 'boot': %s, 'startTime': %p, 'final': %p, "
                                       "'reason': %p, 'message': %p, 'containers': %p}",
                                       (int)s->self.pid, (unsigned long long)s->self.start, s->boot,
                                       (void *)time_node(&a, s->started), (void *)json_truth(&a, s->final),
                                       (void *)json_string(&a, s->reason),
                                       (void *)json_string(&a, s->message), (void *)containers),
                            &err) < 0)
                LOG_ERROR(&s->log, "Cannot write the state", F_ERR(&err));
}

/* ---- output */

static void emit(struct stream *st, struct str line, bool partial)
{
        node_log_line(&st->c->log, wall(st->c->s), st->name, line, partial);
}

static void cut_lines(struct stream *st)
{
        size_t done = 0;

        for (;;) {
                char *from = st->line.p + done, *end = memchr(from, '\n', st->line.n - done);
                size_t n = end ? (size_t)(end - from) : st->line.n - done;

                if (n > NODE_LOG_LINE)
                        n = NODE_LOG_LINE, end = NULL;
                if (!end && n < NODE_LOG_LINE)
                        break;
                emit(st, str_n(from, n), !end);
                done += n + (end ? 1 : 0);
        }
        buf_consume(&st->line, done);
        node_log_flush(&st->c->log);
}

static void close_stream(struct stream *st)
{
        if (st->fd < 0)
                return;
        if (st->line.n)
                emit(st, buf_str(&st->line), false);
        node_log_flush(&st->c->log);
        buf_clear(&st->line);
        io_remove(&st->io);
        fd_close(TAKE_FD(st->fd));
}

/* Reads what is there; false: the end. */
static bool read_stream(struct stream *st)
{
        char *to = buf_reserve(&st->line, READ_SIZE);
        ssize_t n = to ? read(st->fd, to, READ_SIZE) : 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0) {
                close_stream(st);
                return false;
        }
        st->line.n += (size_t)n;
        cut_lines(st);
        return true;
}

static void on_output(struct io *io, uint32_t events)
{
        (void)read_stream(CONTAINER_OF(io, struct stream, io));
}

static void open_stream(struct container *c, struct stream *st, const char *name, int fd)
{
        st->c = c;
        st->name = name;
        st->fd = fd;
        st->line.max = READ_SIZE + 2 * NODE_LOG_LINE;
        io_add(c->s->loop, &st->io, fd, EPOLLIN, on_output);
}

static void drain(struct container *c)
{
        struct stream *streams[] = {&c->out, &c->errs};

        for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
                while (streams[i]->fd >= 0 && read_stream(streams[i]))
                        ;
                close_stream(streams[i]);
        }
}

/* ---- the end of a container */

static char *message_file(struct container *c, struct arena *a)
{
        return arena_printf(a, "%s/messages/%s-%u", c->s->dir, c->name, c->restarts);
}

/* The last 80 lines and 2 KiB of the log. */
static struct str log_tail(struct str tail)
{
        size_t from = tail.n > MESSAGE_LOG_MAX ? tail.n - MESSAGE_LOG_MAX : 0, lines = 0;

        for (size_t i = tail.n; i > from; i--)
                if (tail.p[i - 1] == '\n' && i < tail.n && ++lines == MESSAGE_LINES)
                        return str_n(tail.p + i, tail.n - i);
        while (from && from < tail.n && ((unsigned char)tail.p[from] & 0xC0) == 0x80)
                from++;
        return str_n(tail.p + from, tail.n - from);
}

static struct json *termination_message(struct container *c, bool failed, struct arena *a)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(READ_SIZE);
        struct str tail;

        if (c->start_error)
                return json_string(a, c->start_error);
        (void)!file_read(message_file(c, a), &text, NULL);
        if (text.n)
                return json_stringn(a, str_n(text.p, utf8_cut(text.p, text.n, MESSAGE_MAX)));
        if (!failed || !streq(json_str(c->plan, "messagePolicy"), "FallbackToLogsOnError") || !c->log.tail.n)
                return NULL;
        tail = log_tail(buf_str(&c->log.tail));
        return json_stringn(a, tail);
}

static int exit_code(const struct container *c)
{
        if (c->start_error)
                return 128;
        return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

static void keep_ended(struct container *c)
{
        int code = exit_code(c);
        bool oom = code != 0 && c->cgroup.root && cgroup_saw_oom(c->cgroup.root);
        struct arena *a = &c->ended.arena;
        const char *reason = c->start_error ? "StartError" : oom ? "OOMKilled" : code ? "Error" : "Completed";

        arena_reset(a, 0);
        c->ended.root = json_build(a,
                                   "{'terminated': {'exitCode': %d, 'reason': %s, 'message': %p, "
                                   "'startedAt': %p, 'finishedAt': %p, "
                                   "'containerID': 'sonde://%s/%s/%u'}}",
                                   code, reason, (void *)termination_message(c, code != 0, a),
                                   (void *)time_node(a, c->started), (void *)time_node(a, c->finished),
                                   json_str(c->s->plan.root, "uid"), c->name, c->restarts);
}

static void close_ready(struct container *c)
{
        if (c->ready_fd < 0)
                return;
        io_remove(&c->ready);
        fd_close(TAKE_FD(c->ready_fd));
}

static void finish(struct container *c)
{
        close_ready(c);
        drain(c);
        keep_ended(c);
        node_log_done(&c->log);
        if (c->cgroup.root)
                cgroup_remove(c->cgroup.root);
        doc_done(&c->cgroup);
        c->cgroup = (struct doc)DOC_INIT;
        c->own_root = false;
        c->id = (struct proc_id){0};
        c->phase = ENDED;
        advance(c->s);
}

static size_t kill_members(struct container *c, int signo)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        char *mark = proc_mark(&a, json_str_or(c->s->plan.root, "uid", ""), c->name, c->restarts);

        if (c->cgroup.root && signo == SIGKILL)
                cgroup_kill(c->cgroup.root);
        return proc_kill_members(mark, c->own_root ? 0 : c->pid, signo);
}

static void sweep(struct container *c)
{
        if (kill_members(c, SIGKILL) == 0 || ++c->sweeps > SWEEPS_MAX)
                finish(c);
        else
                timer_after(&c->timer, SWEEP_EVERY);
}

static void on_first_exit(struct container *c, int status)
{
        c->status = status;
        c->finished = wall(c->s);
        c->phase = SWEEPING;
        c->sweeps = 0;
        /* It may have ended before its start was heard of. */
        while (c->ready_fd >= 0) {
                char text[ERR_TEXT_MAX];
                ssize_t n = read(c->ready_fd, text, sizeof(text));

                if (n <= 0)
                        break;
                buf_add(&c->ready_text, text, (size_t)n);
        }
        if (c->ready_text.n && !c->start_error)
                c->start_error = xstrdup(buf_cstr(&c->ready_text));
        close_ready(c); /* what it has to say yet would take an end for a start */
        sweep(c);
}

static void on_child(void *arg, int signo)
{
        struct supervisor *s = arg;
        int status;
        pid_t pid;

        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                for (size_t i = 0; i < s->n; i++)
                        if (s->containers[i].pid == pid &&
                            (s->containers[i].phase == STARTING || s->containers[i].phase == RUNNING))
                                on_first_exit(&s->containers[i], status);
}

/* ---- the start of a container */

static void on_running(struct container *c)
{
        close_ready(c);
        if (!c->start_error) {
                c->phase = RUNNING;
                c->own_root = proc_mount_ns(c->pid) != proc_mount_ns(getpid());
                save(c->s);
        }
}

static void on_ready(struct io *io, uint32_t events)
{
        struct container *c = CONTAINER_OF(io, struct container, ready);
        char text[ERR_TEXT_MAX];
        ssize_t n = read(io->fd, text, sizeof(text));

        if (n > 0)
                buf_add(&c->ready_text, text, (size_t)n);
        else if (n == 0 || errno != EAGAIN) {
                if (c->ready_text.n)
                        c->start_error = xstrdup(buf_cstr(&c->ready_text));
                on_running(c);
        }
}

static void limit(struct container *c)
{
        struct cgroup_limits l = {json_int(c->plan, "memory", 0), json_int(c->plan, "cpu", 0)};
        _cleanup_(buf_done) struct buf own = BUF_INIT(READ_SIZE);
        struct err err = ERR_INIT;
        char *name;

        if ((!l.memory && !l.cpu_milli) || file_read("/proc/self/cgroup", &own, &err) < 0)
                return;
        name = arena_printf(&c->cgroup.arena, "%s-%s", json_str(c->s->plan.root, "uid"), c->name);
        c->cgroup.root = cgroup_make(CGROUP_ROOT, buf_str(&own), name, &l, &c->cgroup.arena, &err);
        if (!c->cgroup.root)
                LOG_WARN(&c->s->log, "Running without its limits", F_STR("container", c->name), F_ERR(&err));
}

static int open_files(struct container *c, struct arena *a, struct err *err)
{
        char *dir = arena_printf(a, "%s/log/%s", c->s->dir, c->name), *message = message_file(c, a);
        int fd;

        if (dir_make(dir, 0755, err) < 0 ||
            node_log_open(&c->log, arena_printf(a, "%s/%u.log", dir, c->restarts), 0, err) < 0)
                return -1;
        fd = open(message, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (fd < 0 || fchmod(fd, 0666) < 0)
                return err_errno(err, E_IO, errno, "cannot make %s", message);
        fd_close(fd);
        return 0;
}

static void reset(struct container *c)
{
        free(c->start_error);
        c->start_error = NULL;
        buf_clear(&c->ready_text);
        c->status = 0;
        c->started = wall(c->s);
}

static void start(struct container *c)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct spawn_request r = {c->s->dir, c->s->plan.root, c->plan, message_file(c, &a), NULL};
        struct spawned spawned;
        struct err err = ERR_INIT;

        if (json_at(c->plan, "error")) { /* a kubelet waits too: whoever made the pod must change it */
                c->phase = BACKOFF;
                timer_after(&c->timer, RETRY_EVERY);
                save(c->s);
                return;
        }
        reset(c);
        limit(c);
        r.cgroup = c->cgroup.root;
        c->out.fd = c->errs.fd = c->ready_fd = -1;
        c->phase = STARTING;
        c->started_ever = true;
        if (open_files(c, &a, &err) < 0 || spawn_container(&r, &spawned, &err) < 0) {
                c->start_error = xstrdup(err.text);
                c->finished = wall(c->s);
                finish(c);
                return;
        }
        c->pid = spawned.pid;
        (void)!proc_identify(c->pid, &c->id);
        open_stream(c, &c->out, "stdout", spawned.out);
        open_stream(c, &c->errs, "stderr", spawned.errs);
        c->ready_fd = spawned.ready;
        io_add(c->s->loop, &c->ready, spawned.ready, EPOLLIN, on_ready);
}

static void restart(struct container *c)
{
        if (c->ended.root) {
                doc_done(&c->last);
                c->last = c->ended;
                c->ended = (struct doc)DOC_INIT;
                c->restarts++;
        }
        start(c);
}

/* Now, or after the delay that its failures earned. */
static void restart_later(struct container *c)
{
        usec_t since = usec_sub(c->finished, c->started), delay;

        if (since > STABLE_AFTER)
                c->failures = 0;
        delay = restart_delay(++c->failures);
        if (!delay) {
                restart(c);
                return;
        }
        doc_done(&c->last);
        c->last = c->ended;
        c->ended = (struct doc)DOC_INIT;
        c->restarts++;
        c->phase = BACKOFF;
        timer_after(&c->timer, delay);
        save(c->s);
}

static void on_timer(struct timer *t)
{
        struct container *c = CONTAINER_OF(t, struct container, timer);

        if (c->phase == SWEEPING)
                sweep(c);
        else if (c->phase == BACKOFF && !c->s->stopping)
                start(c);
}

/* ---- the pod */

static bool succeeded(const struct container *c)
{
        return c->phase == ENDED && json_int(json_at(c->ended.root, "terminated"), "exitCode", 1) == 0;
}

/* Whether the pod's policy starts C again after it ended. */
static bool again(const struct container *c)
{
        if (c->s->stopping || streq(c->s->policy, "Never"))
                return false;
        return !succeeded(c) || (!c->init && streq(c->s->policy, "Always"));
}

static void end(struct supervisor *s)
{
        s->final = true;
        save(s);
        loop_stop(s->loop, 0);
}

/* What is to run now. Containers that have not begun when the pod ends never do. */
static void advance(struct supervisor *s)
{
        bool inits_done = true, all_ended = true, lost = false;

        for (size_t i = 0; i < s->n && !s->final; i++) {
                struct container *c = &s->containers[i];

                if (!c->init && !inits_done)
                        break;
                if (c->phase == IDLE && !s->stopping && !lost)
                        start(c);
                else if (c->phase == ENDED && again(c))
                        restart_later(c);
                if (c->phase != ENDED && !(c->phase == IDLE && (s->stopping || lost)) &&
                    !(c->phase == BACKOFF && s->stopping))
                        all_ended = false;
                if (c->init && !succeeded(c)) {
                        inits_done = false;
                        if (c->phase != ENDED || again(c) || s->stopping)
                                break;
                        lost = true; /* an init container failed for good */
                        break;
                }
        }
        if (s->final)
                return;
        if (all_ended && (inits_done || lost || s->stopping))
                end(s);
        else
                save(s);
}

static bool any_live(const struct supervisor *s)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->containers[i].phase == STARTING || s->containers[i].phase == RUNNING ||
                    s->containers[i].phase == SWEEPING)
                        return true;
        return false;
}

static void on_grace(struct timer *t)
{
        struct supervisor *s = CONTAINER_OF(t, struct supervisor, grace);

        for (size_t i = 0; i < s->n; i++) {
                struct container *c = &s->containers[i];

                if (c->phase == STARTING || c->phase == RUNNING) {
                        kill(c->pid, SIGKILL);
                        (void)kill_members(c, SIGKILL);
                }
        }
}

static void stop(struct supervisor *s, int64_t grace)
{
        s->stopping = true;
        for (size_t i = 0; i < s->n; i++)
                if (s->containers[i].phase == STARTING || s->containers[i].phase == RUNNING)
                        kill(s->containers[i].pid, SIGTERM);
        timer_after(&s->grace, (usec_t)MAX(grace, (int64_t)0) * USEC_PER_SEC);
        if (any_live(s))
                save(s);
        else
                advance(s);
}

static void on_terminate(void *arg, int signo)
{
        struct supervisor *s = arg;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct json *said = node_files_read(s->dir, "stop.json", &a, NULL);
        int64_t grace = json_int(said, "grace", json_int(s->plan.root, "grace", 30));

        if (!s->final)
                stop(s, grace);
}

static void on_deadline(struct timer *t)
{
        struct supervisor *s = CONTAINER_OF(t, struct supervisor, deadline);

        if (s->stopping || s->final)
                return;
        s->reason = "DeadlineExceeded";
        s->message = "Pod was active on the node longer than the specified deadline";
        stop(s, json_int(s->plan.root, "grace", 30));
}

/* ---- beginning and end */

/* The one that makes this file is the one that runs the pod. */
static int claim(const char *dir, struct err *err)
{
        _cleanup_(free_ptr) char *path = xasprintf("%s/claim", dir);
        _cleanup_(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0)
                return err_errno(err, E_EXISTS, errno, "%s", path);
        return fsync(fd) < 0 ? err_errno(err, E_IO, errno, "%s", path) : 0;
}

static int load(struct supervisor *s, struct err *err)
{
        size_t i = 0;

        s->plan.root = node_files_read(s->dir, "plan.json", &s->plan.arena, err);
        if (!s->plan.root || claim(s->dir, err) < 0)
                return -1;
        s->policy = json_str_or(s->plan.root, "restartPolicy", "Always");
        s->n = json_len(json_at(s->plan.root, "containers"));
        s->containers = arena_new_array(&s->plan.arena, struct container, s->n);
        json_foreach (c, json_at(s->plan.root, "containers")) {
                s->containers[i] = (struct container){.s = s,
                                                      .plan = c,
                                                      .name = json_str_or(c, "name", ""),
                                                      .init = json_bool(c, "init", false),
                                                      .ready_fd = -1,
                                                      .ready_text = BUF_INIT(ERR_TEXT_MAX * 2),
                                                      .out.fd = -1,
                                                      .errs.fd = -1,
                                                      .log.fd = -1};
                timer_init(&s->containers[i++].timer, s->loop, on_timer);
        }
        return 0;
}

static int begin(struct supervisor *s, struct err *err)
{
        int64_t deadline;

        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                return err_errno(err, E_IO, errno, "cannot become a subreaper");
        if (loop_on_signal(s->loop, SIGCHLD, on_child, s) < 0 ||
            loop_on_signal(s->loop, SIGTERM, on_terminate, s) < 0)
                return err_set(err, E_INTERNAL, "cannot handle signals");
        (void)signal(SIGPIPE, SIG_IGN);
        timer_init(&s->grace, s->loop, on_grace);
        timer_init(&s->deadline, s->loop, on_deadline);
        if (load(s, err) < 0)
                return -1;
        s->boot = proc_boot_id(&s->plan.arena);
        (void)!proc_identify(getpid(), &s->self);
        s->started = wall(s);
        deadline = json_int(s->plan.root, "deadline", 0);
        if (deadline > 0)
                timer_after(&s->deadline, (usec_t)deadline * USEC_PER_SEC);
        save(s);
        advance(s);
        return 0;
}

static void done(struct supervisor *s)
{
        timer_cancel(&s->grace);
        timer_cancel(&s->deadline);
        for (size_t i = 0; i < s->n; i++) {
                struct container *c = &s->containers[i];

                timer_cancel(&c->timer);
                close_stream(&c->out);
                close_stream(&c->errs);
                buf_done(&c->out.line);
                buf_done(&c->errs.line);
                buf_done(&c->ready_text);
                node_log_done(&c->log);
                free(c->start_error);
                doc_done(&c->cgroup);
                doc_done(&c->last);
                doc_done(&c->ended);
        }
        doc_done(&s->plan);
}

int node_pod_main(const char *pod_dir)
{
        struct supervisor s = {.dir = pod_dir, .plan = DOC_INIT, .clock = CLOCK_REAL};
        struct err err = ERR_INIT;
        int code;

        log_init(&s.log, STDERR_FILENO, LOG_LEVEL_INFO, LOG_FORMAT_LOGFMT, &s.clock);
        s.loop = loop_new(NULL, &s.log, &err);
        if (!s.loop || begin(&s, &err) < 0) {
                LOG_ERROR(&s.log, "Cannot supervise the pod", F_ERR(&err));
                code = 1;
        } else {
                code = s.final ? 0 : loop_run(s.loop);
        }
        done(&s);
        loop_free(s.loop);
        return code;
}
