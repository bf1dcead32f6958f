/*
 * Counters of perf_event_open(): opened by the keeper on itself, where they never count: they begin at exec, and the child
 * that runs it inherits them. What its tree counted is added to ours as each of them ends. They serve for one start:
 * between fork and exec the kernel may exchange the parent's with the child's, and then ours have begun.
 */
#include "probe/measure/internal.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
        const char *name;
        uint32_t type;
        uint64_t config;
} KINDS[COUNTER_MAX_] = {
        [COUNTER_CYCLES] = {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
        [COUNTER_INSTRUCTIONS] = {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
        [COUNTER_CACHE_REFERENCES] = {"cacheReferences", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
        [COUNTER_CACHE_MISSES] = {"cacheMisses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
        [COUNTER_BRANCHES] = {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
        [COUNTER_BRANCH_MISSES] = {"branchMisses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
        [COUNTER_TASK_CLOCK] = {"taskClock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
        [COUNTER_MIGRATIONS] = {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
};

const char *measure_counter_name(enum measure_counter c)
{
        return (unsigned)c < COUNTER_MAX_ ? KINDS[c].name : NULL;
}

/* ENOENT: the machine has none. EACCES, EPERM: not for us; the kernel's part is left out first. */
static int open_one(enum measure_counter c)
{
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = KINDS[c].type,
                .config = KINDS[c].config,
                .disabled = 1,
                .enable_on_exec = 1,
                .inherit = 1,
                .exclude_hv = 1,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        };
        long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

        if (fd < 0) {
                attr.exclude_kernel = 1;
                fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        }
        return (int)fd;
}

void counters_open(struct counters *c, bool wanted)
{
        for (int i = 0; i < COUNTER_MAX_; i++)
                c->fds[i] = wanted ? open_one((enum measure_counter)i) : -1;
}

void counters_close(struct counters *c)
{
        for (int i = 0; i < COUNTER_MAX_; i++)
                fd_close(TAKE_FD(c->fds[i]));
}

void counters_read(const struct counters *c, struct measure_counters *ret)
{
        struct {
                uint64_t value, enabled, running;
        } got;

        ret->has = false;
        for (int i = 0; i < COUNTER_MAX_; i++) {
                ret->values[i] = -1;
                if (c->fds[i] < 0 || read(c->fds[i], &got, sizeof(got)) != sizeof(got))
                        continue;
                if (got.enabled && !got.running) /* others had the registers all the time */
                        continue;
                /* More of them than the machine has registers take turns. */
                if (got.running < got.enabled)
                        got.value = (uint64_t)((double)got.value / (double)got.running * (double)got.enabled);
                ret->values[i] = (int64_t)got.value;
                ret->has = true;
        }
}
