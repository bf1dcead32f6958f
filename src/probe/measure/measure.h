/*
 * measure.h - one command run once, measured: its whole process tree, at no cost to it.
 *
 * A struct measure is one place to run commands, one after the other; for several at once take several. It is a small
 * process of our own, forked when it is made (early: it is as large as we are then), the keeper. The keeper starts the
 * command as vfork() does, takes the time before and after, and is the subreaper of its tree, so that orphans stay its
 * children: it waits for all of them, adds their usage, and ends those that are left when the command itself has ended.
 * While the command runs the keeper looks at the tree's memory in /proc: from 2 ms on, ever more rarely, and never so
 * often that this takes more than a two-hundredth of one CPU (a five-hundredth while there is one process, a sixtieth
 * while large ones join it). Nobody is traced, stopped or slowed. The keeper leads a session of its own: the command
 * has no controlling terminal, and what is typed there (Ctrl-C, Ctrl-Z) reaches us alone.
 *
 * What is told:
 *   wall      CLOCK_MONOTONIC from right before the start to the end of the command itself
 *   user,sys  of the command, of all it waited for and of all orphans, as wait4() has them
 *   peak_rss  the largest of: ru_maxrss of any process, and the sum over the tree when it was looked at. In the sum
 *             pages that processes share (fork() without exec, the same libraries) count once. ru_maxrss is inherited
 *             across exec: the keeper is small (below 1 MB in sonde-pod). A command that is smaller still is told by what was
 *             seen of it, and has no peak when nothing was seen: it ended too soon
 *   cgroup    of the cgroup we are in ourselves: what rose while the command ran. The peak of memory (page cache
 *             included) only where it could be reset or has risen
 *   counters  of perf_event_open(), of the tree from exec on; hardware ones where the kernel and the machine have them
 *   gpu       of nvidia-smi where PATH has it: the GPUs we see, whoever uses them; after half a second, then every 5 s
 * What is not known is not there: a group has `has`, a number is NAN or below 0. A command that fails, is killed, or
 * does not even start gives a sample as any other.
 *
 * Metrics come from two places: lines `name=value` of the standard output (when asked for) and the file named by
 * SONDE_METRICS_FILE, an object of at most 256 KiB, which wins. A command that knows nothing of that may write metrics.json
 * in its working directory instead; it stays there, and counts for the run in which it came or changed (which its stamp
 * tells: one from right before is set back by 10 ms), but for none that another one ran beside. "region" and "error" of it
 * are read here, "ml" is handed on, and of the others numbers and texts become metrics; what is wrong with the file is a
 * sentence in `note`.
 */
#pragma once

#include "net/loop.h"
#include "json/doc.h"

enum {
        MEASURE_METRICS_FILE_MAX = 256 * 1024,
        MEASURE_METRICS_MAX = 256,        /* how many; the first ones stay */
        MEASURE_TEXT_MAX = 1024,          /* of a message, or of a text among the metrics */
        MEASURE_SAMPLE_MAX = 1024 * 1024, /* of a sample as JSON */
};

/* ---- what was measured */

struct measure_cgroup {
        bool has;
        int version;         /* 1 or 2 */
        int64_t memory_peak; /* bytes; -1: not known for this run */
        double cpu_seconds;  /* NAN: not there */
        int64_t periods;     /* of the CPU limit, and in how many of them it was reached; -1: not there */
        int64_t throttled_periods;
        double throttled_seconds; /* NAN: not there */
};

enum measure_counter {
        COUNTER_CYCLES,
        COUNTER_INSTRUCTIONS,
        COUNTER_CACHE_REFERENCES,
        COUNTER_CACHE_MISSES,
        COUNTER_BRANCHES,
        COUNTER_BRANCH_MISSES,
        COUNTER_TASK_CLOCK, /* nanoseconds on a CPU, and how often moved to another: of the kernel, on every machine */
        COUNTER_MIGRATIONS,
        COUNTER_MAX_,
};
/* "cycles", "cacheMisses", ... as they are in JSON. */
const char *measure_counter_name(enum measure_counter c);

struct measure_counters {
        bool has;                     /* at least one */
        int64_t values[COUNTER_MAX_]; /* scaled where they had to share; -1: not there */
};

struct measure_gpu {
        bool has;
        int64_t gpus, looks; /* how many, and how often they were looked at */
        double utilization;  /* percent, mean over GPUs and looks; NAN: not told */
        int64_t memory_peak; /* bytes in use on all of them; -1: not told */
        double power;        /* watts of all of them, mean; NAN: not told */
};

struct measure_io { /* as /proc/PID/io has them */
        bool has;
        int64_t read_bytes, written_bytes;           /* from and to storage */
        int64_t read_characters, written_characters; /* by read() and write(), of anything */
};

struct measure_region { /* what the command says of the part of it that counts, in seconds; NAN: not said */
        bool has;       /* at least wall */
        double wall, user, sys;
};

struct measure_sample {
        usec_t started;         /* wall clock */
        double wall, user, sys; /* seconds */
        int64_t peak_rss;       /* bytes; -1: see above */
        int64_t minor_faults, major_faults, voluntary_switches, involuntary_switches;
        int processes;           /* the most that were seen at once, at least 1; 0: it did not start */
        int orphans;             /* that we waited for */
        int left_over;           /* processes that had to be ended when the command itself had ended */
        int exit_code;           /* -1: it ended by a signal, or did not start */
        int signal;              /* 0: none */
        bool timed_out, stopped; /* we ended it: the timeout, measure_stop() */
        bool oom; /* the kernel killed something in our cgroup for want of memory while it ran */
        struct measure_io io;
        struct measure_cgroup cgroup;
        struct measure_counters counters;
        struct measure_gpu gpu;
        struct measure_region region;
        struct json *metrics; /* an object of numbers and texts; NULL: none */
        struct json *ml;      /* the member of that name, an object; NULL: none */
        /* Why there is no good sample, NULL: it is one. CamelCase ("ExitCode", "Signal", "TimedOut", "Stopped",
         * "OOMKilled", "NotStarted", or what the command's file says) and a sentence. */
        const char *error_reason, *error_message;
        const char *note; /* what else a person should know; NULL: nothing */
};

/* It ran, ended by itself with 0, and says of no error. */
static inline bool measure_sample_ok(const struct measure_sample *s)
{
        return !s->error_reason;
}
/* What counts of it: the region's where it is told, else the process's. */
double measure_sample_time(const struct measure_sample *s);
double measure_sample_cpu(const struct measure_sample *s); /* user + sys, seconds */

/* With all that it points to, into A. */
struct measure_sample measure_sample_copy(struct arena *a, const struct measure_sample *s);
struct json *measure_sample_json(struct arena *a, const struct measure_sample *s);
/* What measure_sample_json() made, or another who says the same. Strings are the document's. Below 0: one sentence. */
int measure_sample_parse(struct arena *a, const struct json *json, struct measure_sample *ret,
                         struct err *err) _must_check_;

/* ---- metrics, for themselves (fuzzed) */

/* Reads TEXT, what SONDE_METRICS_FILE held, into S: region, error, ml, metrics. Below 0: what is wrong, and S is as it was. */
int measure_metrics_parse(struct arena *a, struct str text, struct measure_sample *s, struct err *err)
        _must_check_;

/* Lines `name=value` in pieces of output. */
struct measure_scan {
        struct buf line; /* what of the current line there is so far */
        bool skip;       /* it is too long to be one */
        VEC(struct measure_found {
                char *name;
                double value;
        })
        found;
};
#define MEASURE_SCAN_INIT             \
        {                             \
                .line = {.max = 512 } \
        }
void measure_scan_feed(struct measure_scan *s, struct str piece);
void measure_scan_end(struct measure_scan *s); /* the last line needs no newline */
void measure_scan_done(struct measure_scan *s);
/* What was found, into S, behind what is there; a name that is there stays as it is. */
void measure_scan_add(struct arena *a, const struct measure_scan *scan, struct measure_sample *s);

/* ---- measuring */

enum measure_output {
        MEASURE_OUTPUT_OURS, /* inherited: what we were given */
        MEASURE_OUTPUT_NULL,
        MEASURE_OUTPUT_SCANNED, /* standard output goes through us and on to ours, and is searched for metrics */
        MEASURE_OUTPUT_SCANNED_NULL, /* the same, and to nobody */
};

struct measure_command {
        char *const *argv;      /* NULL ends; found in PATH as execvp() does, never by way of a shell */
        const char *const *env; /* "NAME=value" in the place of ours, or beside it; NULL ends; may be NULL */
        const char *dir;        /* working directory; NULL: ours */
        const char *input;      /* file that is its standard input; NULL: /dev/null */
        const char *
                metrics_file; /* absolute; removed before the start; becomes SONDE_METRICS_FILE. NULL: none */
        /* Read at its end: another one has run in its directory meanwhile, metrics.json is nobody's. NULL: none has */
        const bool *crowded;
        enum measure_output output; /* standard error: to ours, or to nobody with the two NULLs */
        usec_t timeout;             /* 0: none */
        usec_t grace;   /* between SIGTERM and SIGKILL, and for what is left over; 0: 500 ms and 100 ms */
        unsigned times; /* it may be run in a row, see measure_start(); 0: once */
};

struct measure_options {
        bool counters; /* perf_event_open() where it works. Costs the program a little at each switch and fork */
        bool gpu;      /* nvidia-smi, if PATH has it */
        const char *
                root; /* "" or NULL: the real one; else a directory in the place of / for cgroups and the machine */
};

struct measure;

/* Forks the keeper. OPTIONS may be NULL: nothing of it. */
struct measure *measure_new(struct loop *loop, const struct measure_options *options, struct err *err)
        _must_check_;
/* Kills what runs, without a word. */
void measure_free(struct measure *m);

/*
 * Runs COMMAND (borrowed until this returns); DONE is called once, or for each of a row, from the loop, never from within. The sample is the
 * measure's until the next start: copy what is kept. Below 0: nothing was started and DONE is not called; that is
 * trouble of ours (no process to be had). A command that cannot be run is a sample: NotStarted.
 *
 * With `times` the keeper runs a short command again and again, for up to 50 ms, without us in between: DONE is called for
 * each, and as long as measure_running() is true there, more are to come. How many there are is the keeper's choice: none follows
 * one that is not good, and there is no row for a command whose input, metrics or GPU somebody has to see to.
 */
int measure_start(struct measure *m, const struct measure_command *command,
                  void (*done)(void *arg, const struct measure_sample *sample), void *arg, struct err *err)
        _must_check_;
bool measure_running(const struct measure *m);
/* Ends the whole tree: SIGTERM, then SIGKILL. DONE follows, with `stopped`. Harmless when nothing runs. */
void measure_stop(struct measure *m);

struct measure_usage {
        int64_t memory;     /* bytes: the tree's resident memory, shared pages counted once, as in peak_rss */
        double cpu_seconds; /* user and sys, of all that live and of those they waited for */
        double cpu_percent; /* of one CPU, since the last call for this run, or its start */
        int processes;      /* 0: nothing runs, and all is 0 */
};
/* The tree now, some 30 us for each process; now and then more, to see what they share: a two-hundredth of one CPU at most,
 * a sixtieth while large ones join. Who came since the last such look may not be in the memory yet. */
struct measure_usage measure_usage(struct measure *m);

/*
 * {"node"?: the value of SONDE_NODE_NAME, "cpu": model, "cpus": n, "governor"?, "kernel", "architecture", "memory": bytes, "cgroup": 0|1|2, "cpuLimit"?,
 * "memoryLimit"?, "counters": bool, "virtual"?: bool}. ROOT as above.
 */
struct json *measure_machine(struct arena *a, const char *root);

DEFINE_CLEANUP_PTR(struct measure *, measure_free)
DEFINE_CLEANUP_STRUCT(struct measure_scan, measure_scan_done)
