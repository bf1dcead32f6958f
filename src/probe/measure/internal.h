/*
 * internal.h - the parts of measuring a command: the keeper and what it does, the tree, counters, cgroups, GPUs.
 */
#pragma once

#include <sys/types.h>

#include "probe/measure/measure.h"

/* ---- family.c: the processes below one, by /proc */

enum { FAMILY_MAX = 4096 }; /* processes that are looked at */
enum { NS_PER_USEC = 1000 };
#define NO_PARENT SIZE_MAX

struct family_usage {
        int64_t size, rss, shared; /* bytes; shared: of files and shared memory */
        double cpu_seconds;        /* with the children it waited for */
};

struct family {
        VEC(pid_t) pids; /* those of the last look; the root itself is not among them; 0: it is not counted */
        VEC(struct relative {
                size_t parent; /* its place in pids; NO_PARENT: the root */
                struct family_usage usage;
        })
        relatives;              /* the same ones */
        size_t below;           /* whose children are added */
        bool no_children_files; /* this kernel has none: all of /proc is read instead */
        /* The last close look: who was there, and what of their memory was counted more than once. */
        VEC(pid_t) known;
        int64_t twice;
        uint64_t close_next, close_soon; /* ns: when another may be, the second: if there are newcomers */
        uint64_t close_cost;             /* ns, of this look; 0: it was none */
};
void family_done(struct family *f);
void family_forget(struct family *f); /* who was there: another command begins */
void family_list(struct family *f, pid_t root);
/* SIGNO to all of it, found anew. ROOT leads a session, so that SIGKILL may go to their process groups. */
void family_signal(struct family *f, pid_t root, int signo);

/* What of /proc/PID/stat and /proc/PID/statm is wanted; false: it is gone. */
bool family_memory(pid_t pid, struct family_usage *ret);
bool family_cpu(pid_t pid, struct family_usage *ret);
/*
 * The memory of all that family_list() found, in bytes. One that still has its parent's memory, as between vfork() and exec,
 * has none of its own. Pages that they share count once, which only a close look can
 * tell; in between what the last one found is taken off, and who came later does not count, so that it is never too
 * much. KNOWN is the peak so far: what cannot be above it is not worth a close look; 0: what they have
 * now is wanted. NOW is of a clock that is never set back, ns.
 */
int64_t family_peak(struct family *f, int64_t known, uint64_t now);
enum { PROC_TEXT_MAX = 4096 }; /* enough for a process's status */
/* A figure of lines "Name:   123 kB"; below 0: it is not there. */
int64_t proc_number(const char *text, const char *name);
/* The file whole, as far as it fits, with a NUL; below 0: not to be read. */
ssize_t proc_read(const char *path, char *to, size_t size);
ssize_t proc_read_all(const char *path, char *to, size_t size); /* one that is longer than a page */

/* ---- counters.c */

struct counters {
        int fds[COUNTER_MAX_]; /* -1: not there */
};
/* For the next child of this process, which never runs exec itself, and all that comes of it. Not WANTED: none. */
void counters_open(struct counters *c, bool wanted);
void counters_close(struct counters *c);
/* What those have counted that have ended. */
void counters_read(const struct counters *c, struct measure_counters *ret);

/* ---- keeper.c: the process that starts the command and is told of its end. See measure.h */

enum keeper_what { KEEPER_START = 1, KEEPER_STOP };

/* Over a socket; a start is followed by SIZE bytes of strings, and brings the three descriptors. */
struct keeper_request {
        uint32_t what, size;
        uint32_t n_places, n_argv, n_env;         /* after the directory, which is "" for ours */
        uint32_t times;                           /* it may be run in a row */
        uint64_t timeout, grace, left_over_grace; /* usec; timeout 0: none */
};

/* One for each run, those of a row at once. */
struct keeper_reply {
        bool last; /* of its row */
        bool started, timed_out, stopped, stuck, oom;
        int why;       /* errno, when it was not started */
        bool prepared; /* it was exec itself that failed */
        int status;    /* waitpid()'s */
        int processes, orphans, left_over;
        usec_t started_at; /* wall clock */
        uint64_t wall_ns;
        uint64_t user_us, sys_us;
        int64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
        int64_t peak_rss; /* -1: not known */
        struct measure_io io;
        struct measure_cgroup cgroup;
        struct measure_counters counters;
};

/* Never returns; ends when FD does. ROOT is that of the cgroup's files. */
_noreturn_ void keeper_main(int fd, bool counters, const char *root);

/* ---- cgroup.c: the one we are in */

struct cgroup {
        int version;                        /* 0: none to be read */
        int cpu_usage, cpu_stat, peak, oom; /* open files; -1: not there */
        bool fresh;                         /* the peak begins anew with each command */
};

struct cgroup_reading {
        int64_t cpu_us, periods, throttled, throttled_us, peak, oom; /* -1: not there */
};

void cgroup_open(struct cgroup *c, const char *root);
void cgroup_done(struct cgroup *c);
/* BEGIN: the peak begins here where that can be had. */
void cgroup_read(const struct cgroup *c, bool begin, struct cgroup_reading *ret);
void cgroup_between(const struct cgroup *c, const struct cgroup_reading *before,
                    const struct cgroup_reading *after, struct measure_cgroup *ret);
/* "cpuLimit" (cores) and "memoryLimit" (bytes) into MACHINE, where there are any. */
void cgroup_limits(struct arena *a, const char *root, struct json *machine);

/* ---- gpu.c: nvidia-smi, now and then */

struct gpu {
        struct loop *loop;
        char *tool; /* NULL: there is none */
        struct timer timer;
        struct child *child;
        pid_t pid;
        struct io out;
        struct buf text;
        double utilization_sum, power_sum;
        int64_t utilization_n, power_n;
        struct measure_gpu seen;
};

void gpu_init(struct gpu *g, struct loop *loop, bool wanted);
void gpu_begin(struct gpu *g);
void gpu_end(struct gpu *g, struct measure_gpu *ret);
void gpu_done(struct gpu *g);
/* One answer: lines of "utilization, memory in MiB, watts". */
void gpu_add(struct gpu *g, struct str text);

/* ---- pass.c: standard output through us, searched on its way */

struct pass {
        struct loop *loop;
        struct io in;
        int in_fd, out_fd;  /* out_fd -1: to nobody */
        struct timer again; /* our own output takes nothing: tried again then */
        struct buf pending;
        size_t written;
        struct measure_scan *scan;
};

/* IN_FD becomes its own. */
int pass_init(struct pass *p, struct loop *loop, int in_fd, int out_fd, struct measure_scan *scan,
              struct err *err) _must_check_;
/* What is in the pipe now is read and passed on; then it is closed. */
void pass_end(struct pass *p);

/* ---- sample.c */

void measure_sample_init(struct measure_sample *s); /* nothing is known */
