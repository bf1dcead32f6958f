/*
 * The keeper: the process between us and the command. It is alone with one command at a time, so all that becomes its
 * child is the command's; it is small, so what the command inherits of its ru_maxrss is; it never runs exec itself.
 *
 * No signal reaches it but SIGKILL: it ends with its socket, and kills what it keeps before.
 */
#include "probe/measure/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STREAMS = 3, STRINGS_MAX = 8 << 20, MAPS_MAX = 512 << 10, ROW_MAX = 64 };
/* A fault brings in up to 16 pages around it, but none of another mapping: ours are cut into pieces of so much. */
enum { PIECE = 16 << 10 };

static const uint64_t NEVER = UINT64_MAX;
/* The first look at the tree, and the shortest time between two. */
static const uint64_t LOOK_FIRST = 2000000;
static const uint64_t LOOK_MOST_RARELY = 1000000000;
/* Looks take at most one part in so many of a CPU: less while there is one process, whose peak the kernel knows. */
static const uint64_t LOOK_SHARE_ONE = 500, LOOK_SHARE = 200;
static const uint64_t LOOK_GROWTH = 16; /* the next comes after a part of the time so far */
static const uint64_t WAKE_UP = 5000;   /* ns, what a look costs besides */
/* After a run of at most so long the next request is looked for so long, before the CPU falls asleep over it. */
static const uint64_t SHORT_RUN = 20000000, STAY_AWAKE = 150000;
static const uint64_t ROW_TIME = 50000000; /* a row of runs ends with the first that ends later */
static const uint64_t KILL_AGAIN = 10000000, KILL_GIVE_UP = 10000000000;
/* The kernel counts pages in batches: two readings of one size may differ by so much. */
static const int64_t RSS_SLACK = 128 << 10;

enum phase { RUNNING, TERMINATING, LEFT_OVER, KILLING };

struct keeper {
        int fd, signal_fd;
        bool counters;
        bool in_haste; /* the last run was a short one */
        bool nobody;   /* our socket has ended */
        struct cgroup cgroup;
        struct cgroup_reading last; /* after the last run of the row */
        int io_all, io_own;         /* /proc/self/io, and that of our thread; -1: not there */
        struct measure_io io;       /* of all we ever waited for */
        struct family family;
        struct keeper_reply replies[ROW_MAX]; /* of the runs in a row */
        size_t n_replies;
};

/* What is asked for. */
struct order {
        struct keeper_request q;
        char *text; /* all strings */
        const char *dir;
        char **places, **argv, **env;
        int fds[STREAMS];
};

/* One command, from its start to the end of all that came of it. */
struct run {
        struct keeper *k;
        const struct order *o;
        pid_t self, pid; /* pid 0: it has ended */
        enum phase phase;
        uint64_t began, deadline, next_look, kill_since;
        int64_t floor, seen, largest; /* bytes: inherited; in looks; ru_maxrss */
        int no_start;                 /* errno of what failed before exec or in it */
        bool prepared;
        struct keeper_reply *reply;
};

static uint64_t ns_of(clockid_t clock)
{
        struct timespec ts;

        clock_gettime(clock, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
        return ns_of(CLOCK_MONOTONIC);
}

/* ---- the start */

/* In the command's process, which has our memory until exec: only what went wrong may be written to it. */
static _noreturn_ void child(struct run *r)
{
        bool prepared = true;
        int why = ENOENT;
        sigset_t none;

        sigemptyset(&none);
        (void)setpgid(0, 0);
        for (int i = 0; i < STREAMS; i++)
                prepared = prepared && dup2(r->o->fds[i], i) >= 0;
        prepared = prepared && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
                   (!*r->o->dir || chdir(r->o->dir) == 0);
        if (!prepared)
                why = errno;
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (char **place = r->o->places; prepared && *place; place++) {
                execve(*place, r->o->argv, r->o->env);
                if ((errno != ENOENT && errno != ENOTDIR) || why == ENOENT)
                        why = errno; /* one that is there, but cannot be run, says more */
        }
        r->prepared = prepared;
        r->no_start = why;
        _exit(127);
}

/* vfork(): this process is small, but copying even that takes longer than all the rest of the start. */
static __attribute__((noinline)) pid_t start(struct run *r)
{
        pid_t pid;

        r->began = now_ns();
        pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
        if (pid == 0)
                child(r); /* NOLINT(clang-analyzer-unix.Vfork): it keeps to what is allowed there */
        return pid;
}

/* ---- what it uses */

/* /proc/PID/io as it is now; how long it is. 0: it cannot be read. */
static int64_t read_io(int fd, struct measure_io *ret)
{
        char text[512];
        ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

        if (n <= 0)
                return 0;
        text[n] = 0;
        *ret = (struct measure_io){
                .has = true,
                .read_bytes = proc_number(text, "read_bytes"),
                .written_bytes = proc_number(text, "write_bytes"),
                .read_characters = proc_number(text, "rchar"),
                .written_characters = proc_number(text, "wchar"),
        };
        return n;
}

/*
 * What all that we ever waited for has read and written: what our process has in all, without what its only thread has. The
 * first reading is itself read, by the second.
 */
static struct measure_io io_of_children(const struct keeper *k)
{
        struct measure_io all, own;
        int64_t read = read_io(k->io_all, &all);

        if (!read || !read_io(k->io_own, &own))
                return (struct measure_io){0};
        return (struct measure_io){
                .has = true,
                .read_bytes = all.read_bytes - own.read_bytes,
                .written_bytes = all.written_bytes - own.written_bytes,
                .read_characters = all.read_characters + read - own.read_characters,
                .written_characters = all.written_characters - own.written_characters,
        };
}

/* Since the last time. */
static struct measure_io io_since(struct keeper *k)
{
        struct measure_io before = k->io, now = io_of_children(k);

        k->io = now;
        if (!before.has || !now.has)
                return (struct measure_io){0};
        return (struct measure_io){
                .has = true,
                .read_bytes = now.read_bytes - before.read_bytes,
                .written_bytes = now.written_bytes - before.written_bytes,
                .read_characters = now.read_characters - before.read_characters,
                .written_characters = now.written_characters - before.written_characters,
        };
}

static uint64_t usec_of(struct timeval tv)
{
        return (uint64_t)tv.tv_sec * USEC_PER_SEC + (uint64_t)tv.tv_usec;
}

static void add_usage(struct run *r, const struct rusage *u, bool main)
{
        struct keeper_reply *t = r->reply;
        int64_t maxrss = (int64_t)u->ru_maxrss * 1024;

        t->user_us += usec_of(u->ru_utime);
        t->sys_us += usec_of(u->ru_stime);
        t->minor_faults += u->ru_minflt;
        t->major_faults += u->ru_majflt;
        t->voluntary_switches += u->ru_nvcsw;
        t->involuntary_switches += u->ru_nivcsw;
        if (!main || maxrss > r->floor + RSS_SLACK)
                r->largest = MAX(r->largest, maxrss);
}

/* Its own peak, when it may be below what it inherited. */
static int64_t small_peak(const struct run *r)
{
        char path[64], text[PROC_TEXT_MAX];

        if (!r->pid || r->seen > r->floor + RSS_SLACK)
                return -1;
        snprintf(path, sizeof(path), "/proc/%d/status", r->pid);
        return proc_read(path, text, sizeof(text)) > 0 ? proc_number(text, "VmHWM") * 1024 : -1;
}

static void look(struct run *r, uint64_t now)
{
        struct family *f = &r->k->family;
        uint64_t used = ns_of(CLOCK_THREAD_CPUTIME_ID), cost;

        family_list(f, r->self);
        r->reply->processes = MAX(r->reply->processes, (int)f->pids.n);
        r->seen = MAX(r->seen, family_peak(f, MAX(r->seen, r->largest), now));
        r->seen = MAX(r->seen, small_peak(r));
        cost = ns_of(CLOCK_THREAD_CPUTIME_ID) - used - f->close_cost + WAKE_UP;
        cost *= f->pids.n > 1 ? LOOK_SHARE : LOOK_SHARE_ONE;
        r->next_look = now +
                       MAX(MAX(cost, LOOK_FIRST), MIN((now - r->began) / LOOK_GROWTH, LOOK_MOST_RARELY));
}

/* ---- the end */

static void ended(struct run *r, int status, uint64_t now)
{
        r->pid = 0;
        r->reply->status = status;
        r->reply->wall_ns = now - r->began;
        if (r->phase == RUNNING) {
                r->phase = LEFT_OVER;
                r->deadline = now + r->o->q.left_over_grace * NS_PER_USEC;
        }
}

/* Takes all that have ended. False: none of them is left. */
static bool reap(struct run *r, uint64_t now)
{
        for (;;) {
                struct rusage usage;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG, &usage);

                if (pid <= 0)
                        return pid == 0 || errno == EINTR;
                add_usage(r, &usage, pid == r->pid);
                if (pid == r->pid)
                        ended(r, status, now);
                else if (r->phase != KILLING)
                        r->reply->orphans++;
        }
}

static void begin_kill(struct run *r, uint64_t now)
{
        r->phase = KILLING;
        r->kill_since = r->deadline = now;
}

static void terminate(struct run *r, uint64_t now)
{
        if (r->phase != RUNNING)
                return;
        r->phase = TERMINATING;
        r->deadline = now + r->o->q.grace * NS_PER_USEC;
        family_signal(&r->k->family, r->self, SIGTERM);
}

/* False: they cannot be killed. */
static bool at_deadline(struct run *r, uint64_t now)
{
        switch (r->phase) {
        case RUNNING:
                r->reply->timed_out = true;
                terminate(r, now);
                return true;
        case LEFT_OVER:
                family_list(&r->k->family, r->self);
                r->reply->left_over = (int)r->k->family.pids.n;
                begin_kill(r, now);
                break;
        case TERMINATING:
                begin_kill(r, now);
                break;
        case KILLING:
                break;
        }
        family_signal(&r->k->family, r->self, SIGKILL);
        r->deadline = now + KILL_AGAIN;
        return now - r->kill_since < KILL_GIVE_UP;
}

/* ---- in between */

static bool read_exactly(int fd, void *to, size_t size)
{
        for (size_t n = 0; n < size;) {
                ssize_t got = read(fd, (char *)to + n, size - n);

                if (got == 0 || (got < 0 && errno != EINTR))
                        return false;
                n += (size_t)MAX(got, (ssize_t)0);
        }
        return true;
}

/* While it runs only a stop may come, or the end of who we keep it for. */
static void heard(struct run *r, uint64_t now)
{
        struct keeper_request q;

        if (!read_exactly(r->k->fd, &q, sizeof(q))) {
                r->k->nobody = true;
                begin_kill(r, now);
        } else {
                r->reply->stopped |= r->pid && !r->reply->timed_out;
                terminate(r, now);
        }
}

static void follow(struct run *r)
{
        struct pollfd fds[] = {{.fd = r->k->signal_fd, .events = POLLIN}, {.fd = r->k->fd, .events = POLLIN}};
        struct signalfd_siginfo info;
        bool left = true;

        while (left) {
                uint64_t now = now_ns(), until = MIN(r->deadline, r->pid ? r->next_look : NEVER);
                uint64_t wait = until > now ? until - now : 0;
                struct timespec ts = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};

                fds[1].fd = r->k->nobody ? -1 : r->k->fd;
                if (ppoll(fds, ARRAY_LEN(fds), until == NEVER ? NULL : &ts, NULL) < 0)
                        fds[0].revents = fds[1].revents = 0;
                now = now_ns();
                if (fds[0].revents && read(r->k->signal_fd, &info, sizeof(info)) == sizeof(info))
                        left = reap(r, now);
                if (left && fds[1].revents)
                        heard(r, now);
                if (left && now >= r->deadline && !at_deadline(r, now)) {
                        r->reply->stuck = true;
                        return;
                }
                if (left && r->pid && now >= r->next_look)
                        look(r, now);
        }
}

static int64_t own_peak(void)
{
        struct rusage own;

        return getrusage(RUSAGE_SELF, &own) == 0 ? (int64_t)own.ru_maxrss * 1024 : 0;
}

static usec_t wall_now(void)
{
        struct clock clock = CLOCK_REAL;

        return clock_wall(&clock);
}

static void run_started(struct run *r)
{
        r->reply->started = true;
        r->reply->processes = 1;
        r->deadline = r->o->q.timeout ? r->began + r->o->q.timeout * NS_PER_USEC : NEVER;
        r->next_look = r->began + LOOK_FIRST;
        r->floor = own_peak();
        follow(r);
        r->reply->peak_rss = MAX(r->seen, r->largest) > 0 ? MAX(r->seen, r->largest) : -1;
}

static void not_started(struct run *r, int why)
{
        r->reply->why = why;
        r->reply->prepared = r->prepared;
        while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                continue;
}

static void run(struct keeper *k, const struct order *o, struct keeper_reply *reply)
{
        struct run r = {.k = k, .o = o, .self = getpid(), .largest = -1, .seen = -1, .reply = reply};
        struct cgroup_reading before = k->last;
        struct counters counters;

        family_forget(&k->family);
        *reply = (struct keeper_reply){.peak_rss = -1};
        counters_open(&counters, k->counters);
        if (reply == k->replies || k->cgroup.fresh) /* between two of a row nothing happens */
                cgroup_read(&k->cgroup, true, &before);
        reply->started_at = wall_now();
        r.pid = start(&r);
        if (r.pid < 0 || r.no_start)
                not_started(&r, r.pid < 0 ? errno : r.no_start);
        else
                run_started(&r);
        cgroup_read(&k->cgroup, false, &k->last);
        cgroup_between(&k->cgroup, &before, &k->last, &reply->cgroup);
        reply->oom = before.oom >= 0 && k->last.oom > before.oom;
        reply->io = io_since(k);
        counters_read(&counters, &reply->counters);
        counters_close(&counters);
}

/* Whether LAST may be followed by another of its row, which began at SINCE. */
static bool goes_on(const struct keeper *k, const struct order *o, const struct keeper_reply *last,
                    uint64_t since)
{
        return !k->nobody && k->n_replies < MIN(o->q.times, (uint32_t)ROW_MAX) && last->started &&
               !last->status && !last->timed_out && !last->stopped && !last->left_over &&
               now_ns() - since < ROW_TIME;
}

static struct keeper_reply *run_row(struct keeper *k, const struct order *o)
{
        uint64_t since = now_ns();
        struct keeper_reply *last;

        k->n_replies = 0;
        do {
                last = &k->replies[k->n_replies++];
                run(k, o, last);
        } while (goes_on(k, o, last, since));
        last->last = true;
        return last;
}

/* ---- requests */

/* N strings from *AT on, none beyond END; NULL: they are not there. */
static char **take_strings(char **at, const char *end, uint32_t n)
{
        char **strings = xcalloc((size_t)n + 1, sizeof(*strings));

        for (uint32_t i = 0; i < n; i++) {
                size_t room = *at < end ? (size_t)(end - *at) : 0, length = strnlen(*at, room);

                if (length == room) {
                        free(strings);
                        return NULL;
                }
                strings[i] = *at;
                *at += length + 1;
        }
        return strings;
}

/*
 * The next request mostly follows at once, and a CPU that is asleep takes longer to wake up than a start has to wait for it. The
 * one place here that waits without sleeping: after a run of at most SHORT_RUN, for at most STAY_AWAKE, and once; whoever else
 * wants the CPU gets it.
 */
static void stay_awake(const struct keeper *k)
{
        struct pollfd asked = {.fd = k->fd, .events = POLLIN};
        uint64_t until = now_ns() + STAY_AWAKE;

        while (poll(&asked, 1, 0) == 0 && now_ns() < until)
                sched_yield();
}

/* The start of a request, with the descriptors that come with it. */
static bool receive(int fd, struct order *o)
{
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(sizeof(int) * STREAMS)];
        } control;
        struct iovec part = {&o->q, sizeof(o->q)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof(control.room)};
        const struct cmsghdr *c;

        if (recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof(o->q))
                return false;
        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(o->fds)))
                memcpy(o->fds, CMSG_DATA(c), sizeof(o->fds));
        return true;
}

/* The strings that follow it. */
static bool receive_strings(int fd, struct order *o)
{
        const struct keeper_request *q = &o->q;
        char *at;

        o->text = at = xmalloc((size_t)q->size + 1);
        if (!read_exactly(fd, o->text, q->size))
                return false;
        o->text[q->size] = 0;
        o->dir = at;
        at += strlen(at) + 1;
        o->places = take_strings(&at, o->text + q->size, q->n_places);
        o->argv = take_strings(&at, o->text + q->size, q->n_argv);
        o->env = take_strings(&at, o->text + q->size, q->n_env);
        return o->places && o->argv && o->env;
}

static void order_done(struct order *o)
{
        free(o->text);
        free(o->places);
        free(o->argv);
        free(o->env);
        for (int i = 0; i < STREAMS; i++)
                fd_close(o->fds[i]);
}

static bool reply_all(const struct keeper *k)
{
        ssize_t size = (ssize_t)(k->n_replies * sizeof(*k->replies));

        return send(k->fd, k->replies, (size_t)size, MSG_NOSIGNAL) == size;
}

/* False: nobody asks any more. */
static bool serve(struct keeper *k)
{
        struct order o = {.fds = {-1, -1, -1}};
        const struct keeper_reply *last;
        bool more = false;

        if (k->in_haste)
                stay_awake(k);
        if (!receive(k->fd, &o) || o.q.size > STRINGS_MAX)
                return false;
        if (o.q.what != KEEPER_START)
                return true; /* a stop that came too late */
        if (receive_strings(k->fd, &o)) {
                last = run_row(k, &o);
                more = !k->nobody && reply_all(k) && !last->stuck;
                k->in_haste = last->started && last->wall_ns <= SHORT_RUN;
        }
        order_done(&o);
        return more;
}

/* ---- life */

struct code {
        unsigned long from, to;
};

/* "from-to mode offset device inode path": whether LINE is one, of a file, that is only read. */
static bool is_code(char *line, struct code *ret)
{
        char *at, *mode, *inode = NULL;

        ret->from = strtoul(line, &at, 16);
        if (at == line || *at != '-')
                return false;
        ret->to = strtoul(at + 1, &at, 16);
        mode = *at == ' ' ? at + 1 : at;
        for (at = mode; *at && *at != '\n' && !inode; at++)
                if (*at == ':') /* between the numbers of the device */
                        inode = strchr(at, ' ');
        return inode && strtoul(inode, NULL, 10) &&
               (strncmp(mode, "r-xp", 4) == 0 || strncmp(mode, "r--p", 4) == 0);
}

/*
 * Where to cut, a flag that tells two mappings apart says; that of cores has no other effect. What is let go of is read from
 * its file again.
 */
static void cut(const struct code *c)
{
        for (unsigned long at = c->from; at < c->to; at += 2UL * PIECE)
                (void)madvise((void *)at, MIN((unsigned long)PIECE, c->to - at), MADV_DONTDUMP);
        (void)madvise((void *)c->from, c->to - c->from, MADV_DONTNEED);
}

/*
 * A command begins with our own peak: lets go of all code and constants, which are as they are in their files where none was
 * ever written to, and sees to it that only what is needed of them comes back.
 */
static void shrink(void)
{
        _cleanup_(free_ptr) char *text = xmalloc(MAPS_MAX);
        ssize_t n = proc_read_all("/proc/self/smaps", text, MAPS_MAX);
        struct code at = {0};
        bool wanted = false;

        for (char *line = n > 0 ? text : NULL; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (line[strcspn(line, ":-\n")] == '-') /* of a mapping; what is known of it follows */
                        wanted = is_code(line, &at);
                else if (wanted && strncmp(line, "Anonymous:", 10) == 0 && strtol(line + 10, NULL, 10) == 0)
                        cut(&at);
        }
}

/* It is what we have now. */
static void forget_peak(void)
{
        int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void)!write(fd, "5", 1);
        fd_close(fd);
}

/* Of all that we had open, only FD stays. It becomes 3. */
static int keep_only(int fd)
{
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; i < STREAMS; i++)
                (void)dup2(nothing, i);
        if (fd != STREAMS && dup3(fd, STREAMS, O_CLOEXEC) < 0)
                _exit(1);
        (void)close_range(STREAMS + 1, ~0U, 0); /* before Linux 5.9 they stay, and end with us */
        return STREAMS;
}

void keeper_main(int fd, bool counters, const char *root)
{
        struct keeper k = {.counters = counters};
        sigset_t all;

        /* Our own session: whoever reads the terminal, or sets it, would be stopped outside of its foreground; and all
         * process groups in it are of the command (see family_signal()). */
        (void)setsid();
        (void)prctl(PR_SET_NAME, "sonde-keeper");
        if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
                _exit(1);
        signals_reset();
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        k.fd = keep_only(fd);
        sigemptyset(&all);
        sigaddset(&all, SIGCHLD);
        k.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
        k.io_all = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
        k.io_own = open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC);
        k.io = io_of_children(&k);
        cgroup_open(&k.cgroup, root);
        shrink();
        forget_peak();
        while (k.signal_fd >= 0 && serve(&k))
                continue;
        _exit(0);
}
