/*
 * session.h - many commands, each run many times, in blocks: the engine of every algorithm run.
 *
 * A plan (JSON, made by the operator or by the command line) says what is measured:
 *
 *   {"seed": n, "uid": text that seeds the resampling, "iterations": k (1), "warmup": w (1), "sizes": [n...] (none: without),
 *    "parallel": bool, "pods": k (1), "baseline": name of an algorithm (the first), "minEffect": x (0.02), "alpha": x (0.05),
 *    "runTimeout": seconds (0: none), "accuracyTolerance": x, "price": {"perCpuHour", "perGiBHour", "perRun", "currency"},
 *    "requests": {"cpu": cores, "memory": bytes},
 *    "algorithms": [{"name", "type", "framework", "command": [...], "env": [{"name", "value"}], "group": 0.., "image",
 *                    "requests": {...}}]}
 *
 * An entry is an algorithm at a size. A block runs every entry once, in a shuffle that seed, pod and block decide; w blocks
 * of warm-up come first, are recorded, and count for nothing. With `parallel` a block's runs are under way together, and the
 * result says that it is contended. An entry that fails three times in a row is not run any more; what failed is data.
 *
 * Each run has SONDE_INPUT_SIZE, SONDE_SEED (the same for all of a block), SONDE_ITERATION (from 0; warm-up -1, -2, ...) and
 * SONDE_METRICS_FILE in its environment. $(NAME) in command and env of a `custom` entry is what the kubelet would make of it,
 * in the container where it runs.
 *
 * Group 0 runs in this process. Every other group is a container of the same pod with `probe --worker GROUP`, which connects
 * to CTL/probe.sock and runs what it is told (wire.h). One that has not come within 10 minutes, goes away, or runs
 * something and says nothing for a minute makes its own entries fail.
 *
 * Of every run all that was measured is kept while the plan has at most 4 000; with more only what the result is made from.
 * In the run directory: the status file (phases Preparing, WarmUp, Measuring, Analysing; steps are runs; `usage` of the tree
 * now), checkpoint.json (every run so far: what is there is not run again, in whichever pod), and at the end samples.json and
 * result.json. With `pods` above 1 each pod measures all blocks and leaves {"morePods": how many are left} as its result; the
 * last one writes the whole. The checkpoint goes when the whole result is written.
 *
 * result.json, at most 60 KiB (detail is left out until it fits, and "left" says what):
 *
 *   {"version": 1, "unit": "process in one pod" | "pod", "contended", "pods", "machine", "warnings": [text],
 *    "algorithms": [{"name", "label", "type", "framework", "size", "n", "invalid", "invalidReasons": {"exit 3": 2}, "executionTime" (s),
 *        "memoryUsage" (MB = 10^6 bytes), "cpuUsage" (percent of one core), "iterations", "accuracy", "metrics", "mlResults",
 *        "statistics": {"time", "memory", "cpu"}, "throughput" (size/s), "cost", "costBasis", "currency",
 *        "efficiency": {"cpu", "memory"}, "gpu": {"utilizationPercent", "memoryMb", "powerWatts"}, "error": {"reason", "message"}}],
 *    "comparison": {"baseline", "alpha", "minEffect", "noiseFloor", "pairs": [...], "fastest", "pareto", "summary"},
 *    "scaling": [...], "recommendations": [{"kind", "text", "evidence"}]}
 *
 * "n" and "invalid" of an algorithm count runs. What "unit" says is what repeats: with several pods a pod, whose value is the
 * median of its runs. Medians, "statistics" (with an "n" of their own), "scaling" and pairs ("nA", "nB") are of the units.
 * What is not known is left out, never 0.
 */
#pragma once

#include "probe/measure/measure.h"
#include "stats/stats.h"

enum {
        SESSION_PLAN_MAX = 128 * 1024, /* bytes of its text: one argument of a program */
        SESSION_ALGORITHMS_MAX = 64,
        SESSION_SIZES_MAX = 32,
        SESSION_ENTRIES_MAX = 128, /* algorithms times sizes */
        SESSION_GROUPS_MAX = 16,
        SESSION_NAME_MAX = 253,
        SESSION_RUNS_MAX =
                20000, /* of all entries, blocks and pods, warm-up too: what a checkpoint can keep */
        SESSION_DETAILED_MAX = 4000,
        SESSION_RESULT_MAX = 60 * 1024,
};

#define SESSION_NUMBER_MAX  1e15 /* of requests and prices: microseconds of it still count */
#define SESSION_TIMEOUT_MAX (7 * 24 * 3600 * USEC_PER_SEC) /* of a run */

#define SESSION_SOCKET       "probe.sock"
#define SESSION_SAMPLES_FILE "samples.json"
/* The phases of its status reports. */
#define SESSION_PREPARING "Preparing"
#define SESSION_WARMUP    "WarmUp"
#define SESSION_MEASURING "Measuring"
#define SESSION_ANALYSING "Analysing"

/* What a container has asked for; NAN: not said. */
struct session_requests {
        double cpu;    /* cores */
        double memory; /* bytes */
};

struct session_price {
        double per_cpu_hour, per_gib_hour, per_run; /* NAN: not said */
        const char *currency;                       /* "" when not said */
};

struct session_env {
        const char *name, *value;
};

struct session_algorithm {
        const char *name, *type;
        const char *label;     /* the name, or, where several have it, with what tells them apart */
        const char *framework; /* NULL: none */
        const char *image;     /* of its container, for messages; NULL: not said */
        const char **command;  /* NULL ends; at least one */
        struct session_env *env;
        size_t n_env;
        unsigned group;
        struct session_requests requests; /* its own, else the plan's */
        bool own_requests;
};

struct session_plan {
        uint64_t seed;
        const char *uid;
        unsigned iterations, warmup, pods;
        const int64_t *sizes; /* 0: the commands have no size (then it is the only one) */
        size_t n_sizes;       /* at least 1 */
        bool parallel;
        size_t baseline;   /* of algorithms */
        bool has_baseline; /* the plan names it */
        double min_effect, alpha;
        usec_t run_timeout;        /* 0: none */
        double accuracy_tolerance; /* NAN: not said */
        bool priced;
        struct session_price price;
        struct session_algorithm *algorithms;
        size_t n;
        unsigned groups; /* the highest of them and one */
        uint64_t hash;   /* of the text: a checkpoint of another plan is of no use */
};

/* Reads a plan; what is wrong with it is one sentence that says where. */
int session_plan_parse(struct arena *a, struct str text, struct session_plan *ret, struct err *err)
        _must_check_;

/* How a command is run once: measure.h, or what a test has in its place. A place runs one command at a time. */
struct session_measure {
        void *(*make)(void *ctx, struct loop *loop, struct err *err);
        int (*start)(void *place, const struct measure_command *command,
                     void (*done)(void *arg, const struct measure_sample *sample), void *arg,
                     struct err *err);
        void (*stop)(void *place);
        struct measure_usage (*usage)(void *place);
        void (*free)(void *place);
        void *ctx;
};
extern const struct session_measure SESSION_MEASURE;

struct session_config {
        const char *plan; /* its text */
        const char *dir;  /* the run directory */
        const char *ctl;  /* where the socket and the metrics files are */
        const struct log *log;
        usec_t worker_wait; /* for a worker to come, or a coordinator (0: 10 minutes); the minute is no longer */
        const struct session_measure *measure; /* NULL: SESSION_MEASURE */
        struct clock *clock;                   /* NULL: the real one */
};

/*
 * The coordinator: measures all that is left of the plan, writes what came out, and returns the exit status: 0 at least one
 * entry has a valid sample; 1 none has, or it could not be written; 2 the plan is refused; 130, 143 told to end.
 */
int session_run(const struct session_config *c);
/* A worker of GROUP (from 1): runs what it is told until the connection ends. 0; 1 nobody was there; 143 told to end. */
int session_worker(const struct session_config *c, unsigned group);

/* What a pair, and the description of samples, are in result.json; of the latter everything divided by UNIT. */
struct json *session_pair_json(struct arena *a, const struct stats_pair *p, enum stats_measure measure,
                               const char *name_a, const char *name_b);
struct json *session_description_json(struct arena *a, const struct stats_description *d, double unit);
