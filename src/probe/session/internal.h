/*
 * internal.h - what the files about a session share.
 *
 *   plan.c         the plan: reading it, and all that is wrong with it
 *   blocks.c       the order of the runs, their seeds
 *   expand.c       $(NAME), and a run's command and environment
 *   samples.c      what came out of every run, and of the metrics
 *   columns.c      the same as a table: samples.json, and of the checkpoint
 *   checkpoint.c   what need not be measured again
 *   crew.c         runs in this container
 *   wire.c         runs and samples as lines between containers
 *   hub.c          the coordinator's end of the workers' connections
 *   worker.c       a worker
 *   report.c       the status file
 *   coordinator.c  a session from begin to end
 *   analyse.c      what the samples say: summaries, comparison
 *   warn.c         what a reader should know before believing it
 *   advise.c       cost, efficiency, recommendations
 *   result.c, result_parts.c  result.json
 */
#pragma once

#include <math.h>

#include "probe/session/session.h"
#include "run/run.h"
#include "stats/stats.h"

/* ---- blocks.c */

/* A block by its number: SONDE_ITERATION, below 0 for warm-up. */
static inline int block_iteration(const struct session_plan *plan, unsigned block)
{
        return block < plan->warmup ? -1 - (int)block : (int)(block - plan->warmup);
}
static inline unsigned plan_blocks(const struct session_plan *plan)
{
        return plan->warmup + plan->iterations;
}
static inline size_t plan_entries(const struct session_plan *plan)
{
        return plan->n * plan->n_sizes;
}
static inline const struct session_algorithm *entry_algorithm(const struct session_plan *plan, size_t entry)
{
        return &plan->algorithms[entry / plan->n_sizes];
}
static inline int64_t entry_size(const struct session_plan *plan, size_t entry)
{
        return plan->sizes[entry % plan->n_sizes];
}
/* The order of a block's entries. */
void block_order(const struct session_plan *plan, unsigned pod, unsigned block, size_t *order);
/* SONDE_SEED of a block: below 2^31, so that every library takes it. The same in every pod. */
uint64_t block_seed(const struct session_plan *plan, unsigned block);

/* ---- expand.c */

/* One run of a command, as it is sent to a container. */
struct session_job {
        unsigned id;
        const char **command; /* NULL ends */
        const struct session_env *env;
        size_t n_env;
        bool expand; /* $(NAME) */
        int64_t size;
        uint64_t seed;
        int iteration;
        usec_t timeout;
};

/* The kubelet's $(NAME): from ENV (NAME=value, the last one wins), then from OUTER; "$$" is "$", what is not known stays. NULL: it is longer
 * than a word of a program may be. */
const char *expand_text(struct arena *a, const char *text, const struct session_env *env, size_t n_env,
                        const char *(*outer)(const char *name));
/* The argv and the environment (what is beside ours) of a job; NULL: too long. */
char **job_argv(struct arena *a, const struct session_job *job);
const char **job_env(struct arena *a, const struct session_job *job);

/* ---- samples.c */

/* What is kept of every run, and what only of few; what is not known is NAN. */
enum column {
        COLUMN_STARTED, /* seconds since 1970 */
        COLUMN_TIME,    /* what counts: the region's, or the wall of the process */
        COLUMN_WALL,    /* of the process */
        COLUMN_CPU,     /* user and system of the process */
        COLUMN_PERCENT, /* of one CPU, over what counts */
        COLUMN_MEMORY,  /* peak */
        COLUMN_ACCURACY,
        COLUMN_THROTTLED, /* periods */
        COLUMN_CORE_,     /* those before it are always kept */
        COLUMN_USER = COLUMN_CORE_,
        COLUMN_SYS,
        COLUMN_REGION_USER,
        COLUMN_REGION_SYS,
        COLUMN_MINOR_FAULTS,
        COLUMN_MAJOR_FAULTS,
        COLUMN_VOLUNTARY,
        COLUMN_INVOLUNTARY,
        COLUMN_READ,
        COLUMN_WRITTEN,
        COLUMN_PROCESSES,
        COLUMN_CGROUP_MEMORY,
        COLUMN_CGROUP_CPU,
        COLUMN_THROTTLED_SECONDS,
        COLUMN_GPU_UTILIZATION,
        COLUMN_GPU_MEMORY,
        COLUMN_GPU_POWER,
        COLUMN_COUNTERS, /* COUNTER_MAX_ of them */
        COLUMN_MAX_ = COLUMN_COUNTERS + COUNTER_MAX_,
};

struct session_row {
        uint16_t entry, reason; /* reason: 0 it is valid, else one more than its place among the reasons */
        uint32_t pod, block;
        double *v; /* `columns` of them */
};

/* Why runs of an entry failed: each way once. */
struct session_reason {
        size_t entry;
        const char *label; /* "exit 3" */
        const char *reason, *message;
};

struct session_metric {
        size_t entry;
        const char *name;
        size_t n;
        double sum; /* of the valid runs after warm-up */
        char *text; /* the last; NULL: it is a number */
};

enum {
        SESSION_REASONS_MAX = 512,
        SESSION_METRICS_MAX = 1024,
        SESSION_METRIC_NAME_MAX = 128,
        SESSION_ML_MAX = 24 * 1024
};

struct session_samples {
        const struct session_plan *plan;
        struct arena arena;
        size_t columns; /* COLUMN_CORE_ or COLUMN_MAX_ */
        VEC(struct session_row) rows;
        VEC(struct session_reason) reasons;
        VEC(struct session_metric) metrics;
        size_t entries;
        struct json **ml;            /* of each entry's last valid run; NULL: none */
        struct arena *ml_arena;      /* one each */
        VEC(struct json *) machines; /* on which it was measured, in order */
        VEC(const char *) notes;     /* what a run had to say beside its sample, each once */
        unsigned pods_done;
        unsigned continued; /* how often a pod was gone on with after it had measured something */
};

void samples_init(struct session_samples *s, const struct session_plan *plan);
void samples_done(struct session_samples *s);
/* One more run has ended. */
void samples_add(struct session_samples *s, size_t entry, unsigned pod, unsigned block,
                 const struct measure_sample *sample);
bool samples_has(const struct session_samples *s, size_t entry, unsigned pod, unsigned block);
/* The last three of POD have failed. */
bool samples_gave_up(const struct session_samples *s, size_t entry, unsigned pod);
static inline bool row_counts(const struct session_plan *plan, const struct session_row *row)
{
        return row->block >= plan->warmup;
}
/* A place for a reason (one more than its index), and for a metric; 0 and NULL: there are too many. */
uint16_t samples_reason(struct session_samples *s, size_t entry, const char *label, const char *reason,
                        const char *message);
struct session_metric *samples_metric(struct session_samples *s, size_t entry, struct str name);
void samples_set_text(struct session_samples *s, struct session_metric *m, const char *text);
void samples_set_ml(struct session_samples *s, size_t entry, const struct json *ml);
void samples_machine(struct session_samples *s, const struct json *machine);
void samples_note(struct session_samples *s, const char *note);
/* ML with its lists cut until it has at most MAX bytes ("cut": true says so); NULL: it cannot be. */
struct json *ml_cut(struct arena *a, const struct json *ml, size_t max);

DEFINE_CLEANUP_STRUCT(struct session_samples, samples_done)

/* ---- columns.c */

const char *column_name(enum column c);
/* Rounded as it is written, so that what was read back is what was measured. */
double column_round(enum column c, double value);
/* {"columns": [...], "rows": [[...]...]} with what there is; columns that nobody has are left out. */
void columns_write(const struct session_samples *s, bool names, size_t rows, struct buf *out);
/* Into S, which is empty. */
int columns_read(struct session_samples *s, const struct json *columns, const struct json *rows,
                 struct err *err) _must_check_;
/* samples.json: as many rows as fit; "dropped" says how many do not. */
int samples_file_write(const struct session_samples *s, const char *dir, struct err *err) _must_check_;

/* ---- checkpoint.c */

int session_checkpoint_write(const struct session_samples *s, const char *dir, struct err *err) _must_check_;
/* 0: read, or there is none. Below 0: it is of no use, and S is empty. */
int session_checkpoint_read(struct session_samples *s, const char *dir, struct err *err) _must_check_;
void session_checkpoint_text(const struct session_samples *s, struct buf *out);
int session_checkpoint_parse(struct session_samples *s, struct str text, struct err *err) _must_check_;

/* ---- crew.c */

struct crew;
/* SAMPLE is valid until this returns. */
typedef void crew_done_fn(void *arg, unsigned id, const struct measure_sample *sample);

/* CTL (borrowed): for the metrics files. */
struct crew *crew_new(struct loop *loop, const struct session_measure *measure, const char *ctl,
                      unsigned group, crew_done_fn *done, void *arg);
void crew_free(struct crew *c); /* ends what runs */
/* Beside all that runs already. DONE follows from the loop, whatever happens. */
void crew_start(struct crew *c, const struct session_job *job);
void crew_stop(struct crew *c); /* all that runs; DONE follows for each */
bool crew_busy(const struct crew *c);
struct measure_usage crew_usage(struct crew *c);
/* A sample that is none: it could not be run. Texts are borrowed. */
struct measure_sample sample_of_failure(const char *reason, const char *message);

DEFINE_CLEANUP_PTR(struct crew *, crew_free)

/* ---- wire.c */

enum { WIRE_LINE_MAX = 2 * 1024 * 1024, WIRE_UNSENT_MAX = 4 * 1024 * 1024 };

/* One connection with lines of JSON. Embedded in its owner. */
struct wire {
        struct loop *loop;
        struct io io;
        int fd; /* -1: closed */
        struct buf in, out;
        struct defer closing;
        /* A line has come. It may close the wire. */
        void (*on_line)(struct wire *w, struct str line);
        /* The other end is gone, or spoke nonsense. The wire is closed. Not called from within wire_send(). */
        void (*on_end)(struct wire *w);
};

void wire_init(struct wire *w, struct loop *loop, void (*on_line)(struct wire *w, struct str line),
               void (*on_end)(struct wire *w));
/* Takes FD. */
int wire_attach(struct wire *w, int fd, struct err *err) _must_check_;
void wire_close(struct wire *w); /* without a word; harmless when closed */
void wire_send(struct wire *w, const struct json *line);

/* CTL/probe.sock, however long the path is: by way of the directory's descriptor. */
int wire_listen(const char *ctl, struct err *err) _must_check_;
int wire_connect(const char *ctl, struct err *err) _must_check_;

enum wire_kind { WIRE_HELLO, WIRE_RUN, WIRE_SAMPLE, WIRE_USAGE };
struct wire_message {
        enum wire_kind kind;
        unsigned group; /* of a hello */
        struct session_job job;
        unsigned id; /* of a sample */
        struct measure_sample sample;
        struct measure_usage usage;
};
struct json *wire_hello(struct arena *a, unsigned group);
struct json *wire_run(struct arena *a, const struct session_job *job);
struct json *wire_sample(struct arena *a, unsigned id, const struct measure_sample *sample);
struct json *wire_usage(struct arena *a, const struct measure_usage *usage);
int wire_parse(struct arena *a, struct str line, struct wire_message *ret, struct err *err) _must_check_;

/* ---- hub.c */

struct hub;
struct hub_events {
        void (*on_come)(void *arg, unsigned group);
        void (*on_gone)(void *arg, unsigned group);
        void (*on_sample)(void *arg, unsigned group, unsigned id, const struct measure_sample *sample);
};
/* For groups 1 ... GROUPS-1. A worker that runs something and says nothing for SILENCE is gone. */
struct hub *hub_new(struct loop *loop, const char *ctl, unsigned groups, usec_t silence,
                    const struct hub_events *events, void *arg, const struct log *log, struct err *err)
        _must_check_;
void hub_free(struct hub *h);
bool hub_has(const struct hub *h, unsigned group);
bool hub_complete(const struct hub *h); /* all have come at least once */
void hub_start(struct hub *h, unsigned group, const struct session_job *job); /* which is there */
struct measure_usage hub_usage(const struct hub *h);

DEFINE_CLEANUP_PTR(struct hub *, hub_free)

/* ---- report.c */

struct session_reporter {
        struct run_reporter reporter;
        struct run_plan plan;
        struct loop *loop;
        struct timer timer;
        struct run_report now; /* what is to be told, or was told last */
        char message[RUN_MESSAGE_MAX];
        usec_t told;               /* when */
        struct measure_usage last; /* of the last run that ended */
        struct measure_usage (*usage)(void *arg);
        void *arg;
};

void session_reporter_init(struct session_reporter *r, const struct session_plan *plan, struct loop *loop,
                           const char *dir, const struct log *log, struct measure_usage (*usage)(void *arg),
                           void *arg);
/* At once when the phase is new, else not more often than four times a second; again every 10 s. */
void session_report(struct session_reporter *r, const char *phase, int64_t step, int64_t of, const char *fmt,
                    ...) _printf_(5, 6);
void session_report_sample(struct session_reporter *r, const struct measure_sample *sample);
void session_reporter_stop(struct session_reporter *r);

/* ---- analyse.c, advise.c */

/* One algorithm at one size. */
struct analysis_entry {
        size_t entry, n, invalid;
        bool gave_up;
        const struct session_reason *error; /* the first; NULL: none failed */
        /* Of each valid run; memory and percent may have fewer than n. */
        struct stats_sample *time_s, *memory_s, *percent_s, *cost_s;
        size_t n_memory, n_percent, n_cost;
        double *time; /* of each unit: a run or, with several pods, a pod, whose value is the median of its runs */
        size_t n_time;
        /* Of the units, and medians below too. */
        struct stats_description time_d, memory_d, percent_d, accuracy_d; /* n of them 0: nothing */
        double accuracy, wall, cpu; /* medians; NAN: none. cpu: seconds */
        double cost;                /* of one run, median; NAN: none */
        const char *cost_basis;
        double efficiency_cpu, efficiency_memory;  /* used over requested; NAN: not known */
        size_t out_of_memory;                      /* runs that ended so */
        double throttled;                          /* periods, of all runs */
        double gpu_percent, gpu_memory, gpu_power; /* medians, of all GPUs that were seen; NAN: none was */
};

struct analysis_size {
        struct stats_comparison time, memory, cost; /* cost only if there is a price */
};

struct analysis {
        const struct session_samples *samples;
        const struct session_plan *plan;
        struct analysis_entry *entries;
        struct analysis_size *sizes; /* NULL: one algorithm, nothing is compared */
        struct json *scaling;        /* NULL: one size */
        VEC(const char *) warnings;
        struct arena *arena;
};

void analyse(struct arena *a, const struct session_samples *s, struct analysis *ret);
void analysis_done(struct analysis *an);
DEFINE_CLEANUP_STRUCT(struct analysis, analysis_done)
void warn(struct analysis *an);
/* Cost and efficiency of an entry, from its median wall, cpu and memory. */
void advise_entry(const struct session_plan *plan, struct analysis_entry *e);
double run_cost(const struct session_plan *plan, size_t entry, double wall, double cpu, double memory);
/* [{"kind", "text", "evidence"}]; only what is supported. */
struct json *advise(struct arena *a, const struct analysis *an);

/* ---- result.c, result_parts.c */

/* How much of it: each level leaves more out than the one before. */
enum result_level {
        RESULT_ALL,
        RESULT_SHORT_MODELS,
        RESULT_NO_MEMORY_PAIRS, /* and no statistics of CPU use */
        RESULT_FEW_METRICS,     /* and no statistics of memory, shorter models */
        RESULT_NO_MODELS,       /* nor metrics; pairs with the baseline alone, without their sentences */
        RESULT_NO_PAIRS,        /* nor recommendations; of the time its interval alone */
        RESULT_NAMES,           /* of each entry its name and its numbers */
        RESULT_SHORT_NAMES,     /* its begin; of an error the reason alone; few warnings */
        RESULT_LEVELS_
};
struct json *result_entry(struct arena *a, const struct analysis *an, size_t entry, enum result_level level);
struct json *result_comparison(struct arena *a, const struct analysis *an, enum result_level level);
struct json *result_scaling(struct arena *a, const struct analysis *an);
/* With so many digits as mean something; NULL: it is not known. */
struct json *result_number(struct arena *a, double value);

/* The whole result, at most SESSION_RESULT_MAX bytes as text. */
struct json *session_result(struct arena *a, const struct session_samples *s);
/* Whether any run counted; and if none did, why: the first error (both may be NULL). */
bool session_succeeded(const struct session_samples *s, const char **reason, const char **message);
