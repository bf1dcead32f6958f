/*
 * The processes below one, and their memory, by /proc. No lock of theirs is taken but for a close look at shared pages,
 * which gives way to them.
 */
#include "probe/measure/internal.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
        DIRENTS = 4096,
        STAT_TEXT = 1024,
        CHILDREN_PIECE = 1024,
        ONLY_THREAD = 3, /* links of a task directory with one thread: itself, "." and ".." */
};

/* Below this other processes' own memory is not worth a close look. */
static const int64_t CLOSE_LOOK = 1 << 20;
/* Close looks take at most one part in so many of a CPU: they go through all pages. More, while much is of newcomers. */
static const uint64_t CLOSE_SHARE = 200, CLOSE_SHARE_NEWS = 64;
enum { NEWS = 8 }; /* one part in so many is much */

static uint64_t cpu_ns(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

ssize_t proc_read(const char *path, char *to, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);

        fd_close(fd);
        to[MAX(n, (ssize_t)0)] = 0;
        return n;
}

ssize_t proc_read_all(const char *path, char *to, size_t size)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        ssize_t got = -1;

        while (fd >= 0 && n < size - 1 && (got = read(fd, to + n, size - 1 - n)) > 0)
                n += (size_t)got;
        fd_close(fd);
        to[n] = 0;
        return fd < 0 ? -1 : (ssize_t)n;
}

void family_done(struct family *f)
{
        vec_done(&f->pids);
        vec_done(&f->relatives);
        vec_done(&f->known);
}

void family_forget(struct family *f)
{
        f->known.n = 0;
        f->twice = 0;
        f->close_next = f->close_soon = 0;
}

static void add(struct family *f, pid_t pid)
{
        if (pid <= 0 || f->pids.n >= FAMILY_MAX)
                return;
        *vec_push(&f->pids) = pid;
        *vec_push(&f->relatives) = (struct relative){.parent = f->below};
}

/* ---- who is there */

/* The numbers in the file of one thread's children. False: there is no such file. */
static bool add_children(struct family *f, pid_t pid, pid_t tid)
{
        char path[64], piece[CHILDREN_PIECE];
        pid_t number = 0;
        ssize_t n;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while ((n = read(fd, piece, sizeof(piece))) > 0)
                for (ssize_t i = 0; i < n; i++)
                        if (piece[i] >= '0' && piece[i] <= '9') {
                                number = number * 10 + (piece[i] - '0');
                        } else {
                                add(f, number);
                                number = 0;
                        }
        add(f, number);
        fd_close(fd);
        return true;
}

struct dirent64_raw {
        uint64_t ino;
        int64_t off;
        unsigned short size;
        unsigned char type;
        char name[];
};

/* Calls FN with each number in the directory PATH. By the system call: opendir() takes memory, and ours is counted. */
static void each_number(const char *path, void (*fn)(void *arg, pid_t number), void *arg)
{
        char room[DIRENTS] __attribute__((aligned(8)));
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        long n;

        while (fd >= 0 && (n = syscall(SYS_getdents64, fd, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        const struct dirent64_raw *e = (const void *)(room + at);
                        int64_t number;

                        if (str_to_i64(str_of(e->name), &number) && number > 0 && number < INT32_MAX)
                                fn(arg, (pid_t)number);
                        at += e->size;
                }
        fd_close(fd);
}

struct of_process {
        struct family *family;
        pid_t pid; /* whose threads, or whose children */
};

static void add_thread(void *arg, pid_t tid)
{
        const struct of_process *p = arg;

        (void)add_children(p->family, p->pid, tid);
}

/* What follows the name in /proc/PID/stat: a name may hold blanks and brackets. */
static const char *stat_fields(pid_t pid, char *text, size_t size)
{
        char path[64];
        const char *end;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        if (proc_read(path, text, size) <= 0 || !(end = strrchr(text, ')')) || !end[1])
                return NULL;
        return end + 2; /* the state, field 3 */
}

static void add_if_child(void *arg, pid_t pid)
{
        const struct of_process *p = arg;
        char text[STAT_TEXT];
        const char *fields = stat_fields(pid, text, sizeof(text));

        if (fields && fields[0] && fields[1] && strtol(fields + 2, NULL, 10) == p->pid)
                add(p->family, pid);
}

static void add_below(struct family *f, pid_t pid)
{
        struct of_process p = {f, pid};
        struct stat st;
        char path[64];

        if (f->no_children_files) {
                each_number("/proc", add_if_child, &p);
                return;
        }
        snprintf(path, sizeof(path), "/proc/%d/task", pid);
        if (stat(path, &st) < 0)
                return;
        if (st.st_nlink == ONLY_THREAD)
                (void)add_children(f, pid, pid);
        else
                each_number(path, add_thread, &p);
}

static bool has_children_files(void)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
        return access(path, R_OK) == 0;
}

void family_list(struct family *f, pid_t root)
{
        if (!f->pids.cap)
                f->no_children_files = !has_children_files();
        f->pids.n = f->relatives.n = 0;
        f->below = NO_PARENT;
        add_below(f, root);
        for (size_t i = 0; i < f->pids.n; i++) {
                f->below = i;
                add_below(f, f->pids.v[i]);
        }
}

void family_signal(struct family *f, pid_t root, int signo)
{
        pid_t own = getpgid(root), group;

        family_list(f, root);
        vec_foreach (pid, &f->pids) {
                /* All of a group at once: one by one, those that go on forking are always ahead. */
                if (signo == SIGKILL && (group = getpgid(*pid)) > 1 && group != own)
                        (void)kill(-group, signo);
                (void)kill(*pid, signo);
                (void)kill(*pid, SIGCONT); /* one that is stopped hears nothing else */
        }
}

/* ---- what they use */

bool family_memory(pid_t pid, struct family_usage *ret)
{
        char path[64], text[256], *end;
        int64_t pages[3]; /* size, resident, of it shared */

        snprintf(path, sizeof(path), "/proc/%d/statm", pid);
        if (proc_read(path, text, sizeof(text)) <= 0)
                return false;
        end = text;
        for (int i = 0; i < 3; i++)
                pages[i] = strtoll(end, &end, 10);
        ret->size = pages[0] * sysconf(_SC_PAGESIZE);
        ret->rss = pages[1] * sysconf(_SC_PAGESIZE);
        ret->shared = pages[2] * sysconf(_SC_PAGESIZE);
        return true;
}

bool family_cpu(pid_t pid, struct family_usage *ret)
{
        enum { FIELD_UTIME = 14, FIELD_CSTIME = 17, FIELD_RSS = 24, FIRST = 3 };
        char text[STAT_TEXT];
        const char *at = stat_fields(pid, text, sizeof(text));
        int64_t ticks = 0, rss = -1;

        for (int i = FIRST; at && i <= FIELD_RSS; i++) {
                if (i >= FIELD_UTIME && i <= FIELD_CSTIME)
                        ticks += strtoll(at, NULL, 10);
                if (i == FIELD_RSS)
                        rss = strtoll(at, NULL, 10);
                at = strchr(at, ' ');
                at = at ? at + 1 : NULL;
        }
        if (rss < 0)
                return false;
        ret->rss = rss * sysconf(_SC_PAGESIZE);
        ret->cpu_seconds = (double)ticks / (double)sysconf(_SC_CLK_TCK);
        return true;
}

int64_t proc_number(const char *text, const char *name)
{
        size_t n = strlen(name);

        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, name, n) == 0 && line[n] == ':')
                        return strtoll(line + n + 1, NULL, 10);
        }
        return -1;
}

/* What is its own, with its share of what it shares with others. */
static int64_t proportional(pid_t pid, int64_t otherwise)
{
        char path[64], text[PROC_TEXT_MAX];
        int64_t own;

        snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
        if (proc_read(path, text, sizeof(text)) <= 0 || (own = proc_number(text, "Pss_Anon")) < 0)
                return otherwise;
        return (own + MAX(proc_number(text, "Pss_Shmem"), (int64_t)0)) * 1024;
}

/* The sum over those that were there at the last close look, and over all. */
struct sums {
        int64_t own, own_known, most_own; /* anonymous memory */
        int64_t shared, largest;          /* the most of one */
};

static int by_number(const void *x, const void *y)
{
        pid_t a = *(const pid_t *)x, b = *(const pid_t *)y;

        return (a > b) - (a < b);
}

/*
 * Whether the I-th has the very memory of its parent: kcmp() tells, where it is allowed. Elsewhere a parent that has called vfork()
 * is known by its state; it is as large as its child then, which a thread of it may change a little meanwhile.
 */
static bool has_parents_memory(const struct family *f, size_t i)
{
        const struct relative *child = &f->relatives.v[i], *parent;
        char text[STAT_TEXT];
        const char *fields;
        long same;

        if (child->parent == NO_PARENT)
                return false;
        parent = &f->relatives.v[child->parent];
        if (child->usage.size != parent->usage.size ||
            llabs(child->usage.rss - parent->usage.rss) > parent->usage.rss / NEWS)
                return false;
        same = syscall(SYS_kcmp, f->pids.v[i], f->pids.v[child->parent], KCMP_VM, 0, 0);
        if (same >= 0)
                return same == 0;
        fields = stat_fields(f->pids.v[child->parent], text, sizeof(text));
        return fields && fields[0] == 'D';
}

static struct sums sum_up(struct family *f)
{
        struct sums s = {0};

        for (size_t i = 0; i < f->pids.n; i++) {
                struct family_usage u = {0};
                pid_t *pid = &f->pids.v[i];

                if (!family_memory(*pid, &u))
                        continue;
                f->relatives.v[i].usage = u;
                if (has_parents_memory(f, i)) {
                        *pid = 0;
                        continue;
                }
                s.own += u.rss - u.shared;
                s.most_own = MAX(s.most_own, u.rss - u.shared);
                s.shared = MAX(s.shared, u.shared);
                s.largest = MAX(s.largest, u.rss);
                if (f->known.n && bsearch(pid, f->known.v, f->known.n, sizeof(*pid), by_number))
                        s.own_known += u.rss - u.shared;
        }
        return s;
}

/* Whether much has gone since sum_up() said S. */
static bool has_shrunk(const struct family *f, const struct sums *s)
{
        int64_t gone = 0;

        for (size_t i = 0; i < f->pids.n; i++) {
                const struct family_usage *was = &f->relatives.v[i].usage;
                struct family_usage is = {0};

                if (!f->pids.v[i])
                        continue;
                (void)family_memory(f->pids.v[i], &is);
                gone += MAX(was->rss - was->shared - (is.rss - is.shared), (int64_t)0);
        }
        return gone > s->own / NEWS;
}

/*
 * When one ends meanwhile, its share becomes the others', and is counted with it and with those who are looked at after it: where
 * that may be much, this look says nothing, and all are new to the next one.
 */
static void look_closely(struct family *f, const struct sums *s)
{
        uint64_t began = cpu_ns();
        int64_t exact = 0;

        f->known.n = 0;
        vec_foreach (pid, &f->pids) {
                struct family_usage u;

                exact += family_memory(*pid, &u) ? proportional(*pid, u.rss - u.shared) : 0;
                *vec_push(&f->known) = *pid;
        }
        qsort(f->known.v, f->known.n, sizeof(pid_t), by_number);
        f->twice = MAX(s->own - exact, (int64_t)0);
        if (has_shrunk(f, s))
                f->known.n = 0;
        f->close_cost = cpu_ns() - began;
}

int64_t family_peak(struct family *f, int64_t known, uint64_t now)
{
        struct sums s = sum_up(f);
        bool grown;

        f->close_cost = 0;
        if (s.own + s.shared <= known)
                return s.largest;
        if (s.own - s.most_own < CLOSE_LOOK)
                return s.own + s.shared;
        grown = s.own - s.own_known > s.own / NEWS; /* of those who were not there at the last close look */
        if (now >= (grown ? f->close_soon : f->close_next)) {
                look_closely(f, &s);
                f->close_next = now + f->close_cost * CLOSE_SHARE;
                f->close_soon = now + f->close_cost * CLOSE_SHARE_NEWS;
                s.own_known = f->known.n ? s.own : 0;
        }
        return MAX(s.largest, s.own_known - f->twice + s.shared);
}
