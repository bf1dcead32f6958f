/*
 * The cgroup we are in ourselves, of version 1 or 2: what rose while a command ran.
 *
 * No cgroup is made for the command: in a pod nobody may, where one may it would change how the command is scheduled and
 * what its page cache is charged to, and its peak of memory holds that cache, too.
 */
#include "probe/measure/internal.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

enum { TEXT_MAX = 64 * 1024, STAT_MAX = 1024 };

/* ---- where it is */

static bool listed(struct str list, const char *controller)
{
        do
                if (str_eq(str_split(&list, ','), str_of(controller)))
                        return true;
        while (list.p);
        return false;
}

/* The path of CONTROLLER ("": version 2) in the text of /proc/self/cgroup. */
static bool own_path(struct str text, const char *controller, struct str *ret)
{
        while (text.p) {
                struct str line = str_split(&text, '\n');

                (void)str_split(&line, ':');
                if (line.p && listed(str_split(&line, ':'), controller) && line.p) {
                        *ret = line;
                        return true;
                }
        }
        return false;
}

/*
 * Opens a file of our cgroup; -1: it is not there. Under the path of /proc/self/cgroup, or, in a container without a
 * namespace for it, at the top of what is mounted (src/run/oom.c tells why).
 */
static int open_file(const char *root, struct str own, const char *controller, const char *file, int flags)
{
        _cleanup_(free_ptr) char *below = NULL, *top = NULL;
        const char *slash = *controller ? "/" : "";
        struct str path;
        int fd;

        if (!own_path(own, controller, &path) || !path.p || memmem(path.p, path.n, "/..", 3))
                return -1;
        below = xasprintf("%s/sys/fs/cgroup%s%s%.*s/%s", root, slash, controller, STR_ARG(path), file);
        fd = open(below, flags | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        top = xasprintf("%s/sys/fs/cgroup%s%s/%s", root, slash, controller, file);
        return open(top, flags | O_CLOEXEC);
}

static int open_own(const char *root, struct str own, const char *controller, const char *file)
{
        return open_file(root, own, controller, file, O_RDONLY);
}

/* Its peak can be begun anew for this descriptor alone, since Linux 6.12: nobody else sees it. */
static bool begin_peak(int fd)
{
        return fd >= 0 && write(fd, "reset\n", 6) == 6;
}

static void open_v2(struct cgroup *c, const char *root, struct str own)
{
        c->cpu_stat = open_own(root, own, "", "cpu.stat");
        c->oom = open_own(root, own, "", "memory.events");
        c->peak = open_file(root, own, "", "memory.peak", O_RDWR);
        c->fresh = begin_peak(c->peak);
        if (c->peak < 0)
                c->peak = open_own(root, own, "", "memory.peak");
        c->version = c->cpu_stat >= 0 || c->peak >= 0 ? 2 : 0;
}

void cgroup_open(struct cgroup *c, const char *root)
{
        _cleanup_(free_ptr) char *file = xasprintf("%s/proc/self/cgroup", root);
        _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
        struct str own;

        *c = (struct cgroup){.cpu_usage = -1, .cpu_stat = -1, .peak = -1, .oom = -1};
        if (file_read(file, &text, NULL) < 0)
                return;
        own = buf_str(&text);
        c->peak = open_own(root, own, "memory", "memory.max_usage_in_bytes");
        c->cpu_usage = open_own(root, own, "cpuacct", "cpuacct.usage");
        if (c->peak < 0 && c->cpu_usage < 0) {
                open_v2(c, root, own);
                return;
        }
        c->version = 1;
        c->cpu_stat = open_own(root, own, "cpu", "cpu.stat");
        c->oom = open_own(root, own, "memory", "memory.oom_control");
}

void cgroup_done(struct cgroup *c)
{
        fd_close(c->cpu_usage);
        fd_close(c->cpu_stat);
        fd_close(c->peak);
        fd_close(c->oom);
}

/* ---- what it says */

/* The file as it is now; empty: it is not there. */
static struct str text_of(int fd, char *room, size_t size)
{
        ssize_t n = fd < 0 ? -1 : pread(fd, room, size, 0);

        return n > 0 ? str_n(room, (size_t)n) : STR_NULL;
}

static int64_t number_of(int fd)
{
        char room[64];
        int64_t n;

        return str_to_i64(str_trim(text_of(fd, room, sizeof(room))), &n) ? n : -1;
}

/* The number after WORD in lines of "word number". */
static int64_t word_of(struct str text, const char *word)
{
        int64_t n;

        while (text.p) {
                struct str line = str_split(&text, '\n');

                if (str_eq(str_split(&line, ' '), str_of(word)) && line.p && str_to_i64(str_trim(line), &n))
                        return n;
        }
        return -1;
}

static int64_t thousandth(int64_t n)
{
        return n < 0 ? n : n / 1000;
}

void cgroup_read(const struct cgroup *c, bool begin, struct cgroup_reading *ret)
{
        char room[STAT_MAX];
        struct str stat;

        if (begin && c->fresh)
                (void)begin_peak(c->peak);
        ret->oom = word_of(text_of(c->oom, room, sizeof(room)), "oom_kill");
        ret->peak = number_of(c->peak);
        stat = text_of(c->cpu_stat, room, sizeof(room));
        ret->periods = word_of(stat, "nr_periods");
        ret->throttled = word_of(stat, "nr_throttled");
        ret->throttled_us = c->version == 1 ? thousandth(word_of(stat, "throttled_time"))
                                            : word_of(stat, "throttled_usec");
        ret->cpu_us = c->version == 1 ? thousandth(number_of(c->cpu_usage)) : word_of(stat, "usage_usec");
}

static int64_t rise(int64_t before, int64_t after)
{
        return before >= 0 && after >= before ? after - before : -1;
}

static double seconds(int64_t usec)
{
        return usec < 0 ? NAN : (double)usec / 1e6;
}

void cgroup_between(const struct cgroup *c, const struct cgroup_reading *before,
                    const struct cgroup_reading *after, struct measure_cgroup *ret)
{
        ret->has = c->version > 0;
        ret->version = c->version;
        ret->cpu_seconds = seconds(rise(before->cpu_us, after->cpu_us));
        ret->periods = rise(before->periods, after->periods);
        ret->throttled_periods = rise(before->throttled, after->throttled);
        ret->throttled_seconds = seconds(rise(before->throttled_us, after->throttled_us));
        ret->memory_peak = c->fresh || after->peak > before->peak ? after->peak : -1;
}

/* ---- its limits, for the machine */

/* What no limit looks like in version 1: all of the address space. */
static const int64_t NO_LIMIT = INT64_MAX / 2;

static int64_t limit_of(const char *root, struct str own, const char *controller, const char *file)
{
        _cleanup_(fd_close) int fd = open_own(root, own, controller, file);

        return number_of(fd);
}

/* "150000 100000" or "max 100000". */
static void cpu_limit_v2(const char *root, struct str own, int64_t *ret_quota, int64_t *ret_period)
{
        _cleanup_(fd_close) int fd = open_own(root, own, "", "cpu.max");
        char room[64];
        struct str text = str_trim(text_of(fd, room, sizeof(room)));

        if (!str_to_i64(str_split(&text, ' '), ret_quota) || !str_to_i64(text, ret_period))
                *ret_quota = -1;
}

void cgroup_limits(struct arena *a, const char *root, struct json *machine)
{
        _cleanup_(free_ptr) char *file = xasprintf("%s/proc/self/cgroup", root);
        _cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
        int64_t quota, period = -1, memory;

        if (file_read(file, &text, NULL) < 0)
                return;
        quota = limit_of(root, buf_str(&text), "cpu", "cpu.cfs_quota_us");
        period = limit_of(root, buf_str(&text), "cpu", "cpu.cfs_period_us");
        memory = limit_of(root, buf_str(&text), "memory", "memory.limit_in_bytes");
        if (period < 0)
                cpu_limit_v2(root, buf_str(&text), &quota, &period);
        if (memory < 0)
                memory = limit_of(root, buf_str(&text), "", "memory.max");
        if (quota > 0 && period > 0)
                json_set(a, machine, "cpuLimit", json_double(a, (double)quota / (double)period));
        if (memory > 0 && memory < NO_LIMIT)
                json_set(a, machine, "memoryLimit", json_i64(a, memory));
}
