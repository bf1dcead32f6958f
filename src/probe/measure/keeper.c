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
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NS_PER_USEC = 1000, STREAMS = 3, STRINGS_MAX = 8 << 20, MAPS_MAX = 512 << 10, CODE_MAX = 64 };
/* Shrinking takes as long as a small command's start: its first runs are worth that, and of the others a few. */
enum { SEEN_MAX = 64, SHRINK_FIRST = 16, SHRINK_EVERY = 64 };

static const uint64_t NEVER = UINT64_MAX;
/* The first look at the tree, and the shortest time between two. */
static const uint64_t LOOK_FIRST = 2000000;
static const uint64_t LOOK_MOST_RARELY = 1000000000;
/* Looks take at most one part in so many of a CPU: less while there is one process, whose peak the kernel knows. */
static const uint64_t LOOK_SHARE_ONE = 500, LOOK_SHARE = 200;
static const uint64_t LOOK_GROWTH = 16; /* the next comes after a part of the time so far */
static const uint64_t WAKE_UP = 5000;   /* ns, what a look costs besides */
static const uint64_t KILL_AGAIN = 10000000, KILL_GIVE_UP = 10000000000;
/* The kernel counts pages in batches: two readings of one size may differ by so much. */
static const int64_t RSS_SLACK = 128 << 10;

enum phase { RUNNING, TERMINATING, LEFT_OVER, KILLING };

struct keeper {
        int fd, signal_fd;
        bool counters;
        struct family family;
        struct seen { /* a command, by its hash */
                uint64_t hash;
                int64_t peak; /* ru_maxrss, when it ran last; 0: it has not */
                unsigned runs;
        } seen[SEEN_MAX];
        struct code {
                unsigned long from, to;
        } code[CODE_MAX];
        size_t n_code;
};

/* One command, from its start to the end of all that came of it. */
struct run {
        struct keeper *k;
        struct keeper_request q;
        struct seen *before;
        const char *dir;
        char **places, **argv, **env;
        int fds[STREAMS];
        pid_t self, pid; /* pid 0: it has ended */
        enum phase phase;
        bool nobody; /* our socket has ended */
        uint64_t began, deadline, next_look, kill_since;
        int64_t floor, seen, largest; /* bytes: inherited; in looks; ru_maxrss */
        int no_start;                 /* errno of what failed before exec or in it */
        bool prepared;
        struct keeper_reply reply;
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
                prepared = prepared && dup2(r->fds[i], i) >= 0;
        prepared = prepared && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && (!*r->dir || chdir(r->dir) == 0);
        if (!prepared)
                why = errno;
        sigprocmask(SIG_SETMASK, &none, NULL);
        for (char **place = r->places; prepared && *place; place++) {
                execve(*place, r->argv, r->env);
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
                child(r);
        return pid;
}

/* ---- what it uses */

static void add_io(struct run *r, pid_t pid)
{
        char path[64], text[PROC_TEXT_MAX];
        struct measure_io *io = &r->reply.io;
        const struct {
                const char *name;
                int64_t *to;
        } figures[] = {
                {"read_bytes", &io->read_bytes},
                {"write_bytes", &io->written_bytes},
                {"rchar", &io->read_characters},
                {"wchar", &io->written_characters},
        };

        snprintf(path, sizeof(path), "/proc/%d/io", pid);
        if (proc_read(path, text, sizeof(text)) <= 0)
                return;
        io->has = true;
        for (size_t i = 0; i < ARRAY_LEN(figures); i++)
                *figures[i].to += MAX(proc_number(text, figures[i].name), (int64_t)0);
}

static uint64_t usec_of(struct timeval tv)
{
        return (uint64_t)tv.tv_sec * USEC_PER_SEC + (uint64_t)tv.tv_usec;
}

static void add_usage(struct run *r, const struct rusage *u, bool main)
{
        struct keeper_reply *t = &r->reply;
        int64_t maxrss = (int64_t)u->ru_maxrss * 1024;

        t->user_us += usec_of(u->ru_utime);
        t->sys_us += usec_of(u->ru_stime);
        t->minor_faults += u->ru_minflt;
        t->major_faults += u->ru_majflt;
        t->voluntary_switches += u->ru_nvcsw;
        t->involuntary_switches += u->ru_nivcsw;
        if (main)
                r->before->peak = maxrss;
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
        r->reply.processes = MAX(r->reply.processes, (int)f->pids.n);
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
        r->reply.status = status;
        r->reply.wall_ns = now - r->began;
        if (r->phase == RUNNING) {
                r->phase = LEFT_OVER;
                r->deadline = now + r->q.left_over_grace * NS_PER_USEC;
        }
}

/* Takes all that have ended. False: none of them is left. */
static bool reap(struct run *r, uint64_t now)
{
        for (;;) {
                siginfo_t info = {0};
                struct rusage usage;
                int status;

                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                        return errno == EINTR;
                if (!info.si_pid)
                        return true;
                add_io(r, info.si_pid);
                if (wait4(info.si_pid, &status, 0, &usage) < 0)
                        continue;
                add_usage(r, &usage, info.si_pid == r->pid);
                if (info.si_pid == r->pid)
                        ended(r, status, now);
                else if (r->phase != KILLING)
                        r->reply.orphans++;
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
        r->deadline = now + r->q.grace * NS_PER_USEC;
        family_signal(&r->k->family, r->self, SIGTERM);
}

/* False: they cannot be killed. */
static bool at_deadline(struct run *r, uint64_t now)
{
        switch (r->phase) {
        case RUNNING:
                r->reply.timed_out = true;
                terminate(r, now);
                return true;
        case LEFT_OVER:
                family_list(&r->k->family, r->self);
                r->reply.left_over = (int)r->k->family.pids.n;
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
                r->nobody = true;
                begin_kill(r, now);
        } else {
                r->reply.stopped |= r->pid && !r->reply.timed_out;
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

                fds[1].fd = r->nobody ? -1 : r->k->fd;
                if (ppoll(fds, ARRAY_LEN(fds), until == NEVER ? NULL : &ts, NULL) < 0)
                        fds[0].revents = fds[1].revents = 0;
                now = now_ns();
                if (fds[0].revents && read(r->k->signal_fd, &info, sizeof(info)) == sizeof(info))
                        left = reap(r, now);
                if (left && fds[1].revents)
                        heard(r, now);
                if (left && now >= r->deadline && !at_deadline(r, now)) {
                        r->reply.stuck = true;
                        return;
                }
                if (left && r->pid && now >= r->next_look)
                        look(r, now);
        }
}

/*
 * A command begins with our own peak, and the last one was hardly larger: lets go of all code but that of a start, which
 * one that finds nothing to run brings back.
 */
static void shrink(struct run *r)
{
        char *nowhere = NULL, **places = r->places;
        struct signalfd_siginfo info;
        int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
        pid_t pid;

        for (size_t i = 0; i < r->k->n_code; i++)
                (void)madvise((void *)r->k->code[i].from, r->k->code[i].to - r->k->code[i].from,
                              MADV_DONTNEED);
        if (fd >= 0)
                (void)!write(fd, "5", 1); /* our peak is what we have now */
        fd_close(fd);
        r->places = &nowhere;
        pid = start(r);
        while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        (void)!read(r->k->signal_fd, &info, sizeof(info));
        r->places = places;
        r->no_start = 0;
}

static int64_t own_peak(void)
{
        struct rusage own;

        return getrusage(RUSAGE_SELF, &own) == 0 ? (int64_t)own.ru_maxrss * 1024 : 0;
}

/* Only what a command smaller than we are began with is in the way. */
static bool is_shrink_worth(struct run *r)
{
        unsigned runs = r->before->runs++;

        return own_peak() + RSS_SLACK >= r->before->peak && (runs < SHRINK_FIRST || runs % SHRINK_EVERY == 0);
}

/* TEXT is all that tells it from others; two that share a place here only have less luck. */
static struct seen *seen_before(struct keeper *k, struct str text)
{
        uint64_t hash = str_hash(text);
        struct seen *s = &k->seen[hash % SEEN_MAX];

        if (s->hash != hash)
                *s = (struct seen){.hash = hash};
        return s;
}

static usec_t wall_now(void)
{
        struct clock clock = CLOCK_REAL;

        return clock_wall(&clock);
}

static void run(struct run *r)
{
        struct counters counters;

        r->k->family.known.n = 0;
        r->k->family.close_next = 0;
        if (is_shrink_worth(r))
                shrink(r);
        counters_open(&counters, r->k->counters);
        r->reply.started_at = wall_now();
        r->pid = start(r);
        if (r->pid < 0 || r->no_start) {
                r->reply.why = r->pid < 0 ? errno : r->no_start;
                r->reply.prepared = r->prepared;
                while (r->pid > 0 && waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
                        continue;
                counters_close(&counters);
                return;
        }
        r->reply.started = true;
        r->reply.processes = 1;
        r->deadline = r->q.timeout ? r->began + r->q.timeout * NS_PER_USEC : NEVER;
        r->next_look = r->began + LOOK_FIRST;
        r->floor = own_peak();
        follow(r);
        counters_read(&counters, &r->reply.counters);
        counters_close(&counters);
        r->reply.peak_rss = MAX(r->seen, r->largest) > 0 ? MAX(r->seen, r->largest) : -1;
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

/* The start of a request, with the descriptors that come with it. */
static bool receive(int fd, struct run *r)
{
        union {
                struct cmsghdr align;
                char room[CMSG_SPACE(sizeof(int) * STREAMS)];
        } control;
        struct iovec part = {&r->q, sizeof(r->q)};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof(control.room)};
        const struct cmsghdr *c;

        if (recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC) != sizeof(r->q))
                return false;
        c = CMSG_FIRSTHDR(&message);
        if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(r->fds)))
                memcpy(r->fds, CMSG_DATA(c), sizeof(r->fds));
        return true;
}

/* False: nobody asks any more. */
static bool serve(struct keeper *k)
{
        _cleanup_(free_ptr) char *text = NULL;
        struct run r = {.k = k, .self = getpid(), .fds = {-1, -1, -1}, .largest = -1, .seen = -1};
        char *at;
        bool more;

        r.reply.peak_rss = -1;
        if (!receive(k->fd, &r) || r.q.size > STRINGS_MAX)
                return false;
        if (r.q.what != KEEPER_START)
                return true; /* a stop that came too late */
        text = at = xmalloc((size_t)r.q.size + 1);
        if (!read_exactly(k->fd, text, r.q.size))
                return false;
        text[r.q.size] = 0;
        r.dir = at;
        at += strlen(at) + 1;
        r.places = take_strings(&at, text + r.q.size, r.q.n_places);
        r.argv = take_strings(&at, text + r.q.size, r.q.n_argv);
        r.before = seen_before(k, str_n(text, (size_t)(at - text)));
        r.env = take_strings(&at, text + r.q.size, r.q.n_env);
        if (!r.places || !r.argv || !r.env)
                _exit(1);
        run(&r);
        free(r.places);
        free(r.argv);
        free(r.env);
        for (int i = 0; i < STREAMS; i++)
                fd_close(r.fds[i]);
        more = !r.nobody && send(k->fd, &r.reply, sizeof(r.reply), MSG_NOSIGNAL) == sizeof(r.reply);
        return more && !r.reply.stuck;
}

/* ---- life */

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

/* What of us is read from its file again when it is let go: code and constants, none of which was ever written to. */
static void find_code(struct keeper *k)
{
        _cleanup_(free_ptr) char *text = xmalloc(MAPS_MAX);
        ssize_t n = proc_read_all("/proc/self/smaps", text, MAPS_MAX);
        struct code at = {0};
        bool wanted = false;

        for (char *line = n > 0 ? text : NULL; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (line[strcspn(line, ":-\n")] == '-') /* of a mapping; what is known of it follows */
                        wanted = is_code(line, &at);
                else if (wanted && strncmp(line, "Anonymous:", 10) == 0 && strtol(line + 10, NULL, 10) == 0 &&
                         k->n_code < CODE_MAX)
                        k->code[k->n_code++] = at;
        }
}

/* Of all that we had open, only FD stays. It becomes 3. */
static int keep_only(int fd)
{
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; i < STREAMS; i++)
                (void)dup2(nothing, i);
        if (fd != STREAMS && dup3(fd, STREAMS, O_CLOEXEC) < 0)
                _exit(1);
        (void)close_range(STREAMS + 1, ~0U, 0);
        return STREAMS;
}

void keeper_main(int fd, bool counters)
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
        find_code(&k);
        while (k.signal_fd >= 0 && serve(&k))
                continue;
        _exit(0);
}
