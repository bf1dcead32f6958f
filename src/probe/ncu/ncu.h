/*
 * ncu.h - a CUDA program under Nsight Compute: stage it, collect, read what was collected, say what bounds it.
 *
 *   in the workload's image    ncu_stage_workload()   the program, its shared libraries and files into a shared volume
 *   in the tool's image        ncu_collect()          ncu around the staged program, live progress; import; summary
 *   anywhere, without a GPU    ncu_reader, ncu_sum    any CSV or text that ncu or its window ever wrote, into numbers
 *
 * The tool's own output is the interface, and it changes with every version: columns are found by name, values are read
 * with their unit, what is not known is passed over. Nothing is guessed: a metric that is not there is absent, never 0,
 * and a number that can be read in two ways is refused with the place.
 */
#pragma once

#include "base/base.h"
#include "run/run.h"
#include "json/json.h"

/* ---- metrics.c: names and units */

enum ncu_metric {
        NCU_SM,        /* % of peak, as all throughputs: sm__throughput.avg.pct_of_peak_sustained_elapsed */
        NCU_MEM,       /* gpu__compute_memory_throughput…: what the Speed-of-Light rule calls memory */
        NCU_DRAM,      /* gpu__dram_throughput… or dram__throughput… */
        NCU_L2,        /* lts__throughput… or lts__t_sectors… */
        NCU_L1,        /* l1tex__throughput.avg.pct_of_peak_sustained_active */
        NCU_OCCUPANCY, /* %: sm__warps_active.avg.pct_of_peak_sustained_active */
        NCU_OCCUPANCY_MAX, /* %: sm__maximum_warps_per_active_cycle_pct */
        NCU_STALL,         /* %: smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct */
        NCU_WAVES,         /* launch__waves_per_multiprocessor */
        NCU_DURATION,      /* ns: gpu__time_duration.sum */
        NCU_DRAM_READ,     /* bytes, also as Blackwell names them */
        NCU_DRAM_WRITE,
        NCU_PASSES, /* profiler__replayer_passes */
        NCU_METRICS,
};

/*
 * The metric of that full name (raw page) or label (details page, any version, or the window's export), or NCU_METRICS.
 * The same meaning may come under several names in one launch: the first of the list above, as RANK says (0 is best),
 * wins over the others whatever their order in the file.
 */
enum ncu_metric ncu_metric_of(struct str name, unsigned *ret_rank);
/* The key under which a summary has it ("smThroughput"); NULL: it is not a member of metrics. */
const char *ncu_metric_key(enum ncu_metric m);

/*
 * A value as ncu prints it, in the metric's own unit (%, ns, bytes, or none): "4,963.19", "61.84", "1.2e3". UNIT is as in
 * the file ("us", "Gbyte", "%", ""). NCU_ABSENT: "n/a", "no data", "nan", "inf", ""; and a time or bytes whose unit is not said,
 * which is never guessed. NCU_AMBIGUOUS: the separators can be read in two ways and neither unit nor range decide. NCU_BAD:
 * no number, or a unit that does not fit the metric. A reader of a whole file decides more: its other numbers show what it has
 * for a decimal point.
 */
enum ncu_value { NCU_OK, NCU_ABSENT, NCU_AMBIGUOUS, NCU_BAD };

enum ncu_value ncu_value_read(enum ncu_metric m, struct str text, struct str unit, double *ret);

/* ---- reader.c, csv.c, text.c: any layout, launch by launch */

enum {
        NCU_NAME_MAX =
                512, /* of a kernel; a longer one is cut and ends in "…#hash", so that it stays itself */
        NCU_RECORD_MAX = 4 << 20,       /* one record of CSV */
        NCU_COLUMNS_MAX = 65536,        /* of a record */
        NCU_LAUNCHES_ACROSS_MAX = 4096, /* columns of the window's export */
};

enum ncu_layout { NCU_LAYOUT_NONE, NCU_LAYOUT_WIDE, NCU_LAYOUT_LONG, NCU_LAYOUT_TRANSPOSED, NCU_LAYOUT_TEXT };

struct ncu_launch {
        char kernel[NCU_NAME_MAX + 1];
        uint32_t has; /* bit (1 << metric) */
        double value[NCU_METRICS];
        char device[128]; /* "" : not said */
        char cc[16];      /* "8.6"; "": not said */
};

struct ncu_reader;

/*
 * What is in the text before, between and after the records (the program's own output, ==PROF== lines, a traceback) is
 * passed over. LAUNCH is called once for each launch, in the order of the file, and sees it until it returns.
 */
struct ncu_reader *ncu_reader_new(void (*launch)(void *arg, const struct ncu_launch *launch), void *arg);
void ncu_reader_free(struct ncu_reader *r);
/* Any piece of the text; memory is bounded whatever comes. Below 0: the text cannot be used; ERR says where and why. */
int ncu_reader_feed(struct ncu_reader *r, struct str piece, struct err *err) _must_check_;
/* The end of the text. Below 0: there was no launch in it, and ERR says what was looked for. */
int ncu_reader_end(struct ncu_reader *r, struct err *err) _must_check_;
enum ncu_layout ncu_reader_layout(const struct ncu_reader *r);
const char *ncu_layout_name(enum ncu_layout layout); /* "wide", "long", "transposed", "text" */

/* ---- sum.c: launches together */

enum { NCU_KERNELS_MAX = 1024 }; /* more of them are counted together, as "(others)" */

struct ncu_sum;

struct ncu_sum *ncu_sum_new(void);
void ncu_sum_free(struct ncu_sum *s);
/*
 * Percentages weigh by duration; durations, bytes and passes add up; waves are the longest launch's. When a launch has no
 * duration all of them weigh the same, and the sum is `unweighted`. A launch without a metric does not count for it.
 */
void ncu_sum_add(struct ncu_sum *s, const struct ncu_launch *launch);
uint64_t ncu_sum_launches(const struct ncu_sum *s);

/* ---- rule.c: what bounds it */

enum ncu_rule { NCU_RULE_SOL, NCU_RULE_UPSTREAM };

struct ncu_bound {
        const char *type; /* compute-bound, memory-bound, mixed, unknown: KRATOS' four */
        const char *
                bottleneck; /* compute, memory, balanced, saturated-compute, saturated-memory, latency, small-grid; NULL: not
                                   known */
};

/*
 * NCU_RULE_SOL is NVIDIA's own Speed-of-Light rule (balanced 10, latency 60, no-bound 80, waves 1). NCU_RULE_UPSTREAM is
 * KRATOS': sm >= 70; max(dram, l2) >= 70 or stall >= 30; no bottleneck is told.
 */
struct ncu_bound ncu_classify(enum ncu_rule rule, uint32_t has, const double value[NCU_METRICS]);

/* ---- summary.c: what is told */

struct ncu_context {
        enum ncu_rule rule;
        enum ncu_layout layout;      /* NONE: not told */
        bool partial;                /* the collecting run failed half-way */
        bool replay;                 /* not measured: a recording */
        const char *const *warnings; /* NULL ends; may be NULL */
        const char *tool;            /* ncu's version; NULL: not known */
};

/*
 * {boundType, metrics: {smThroughput: 12.56, …}, launches: 13, kernels: 2, durationNs: 71968, unweighted, bottleneck,
 *  dominantKernel, passes, byKernel: [{kernel, launches, durationNs, share, boundType, bottleneck, metrics, min, max}, … at most 16],
 *  device, computeCapability, rule, layout, partial, replay, tool, warnings}; what is not known is left out.
 */
struct json *ncu_summary(struct arena *a, const struct ncu_sum *s, const struct ncu_context *c);
/*
 * summary.json as KRATOS has it: {boundType, metrics}, metrics being strings of at most six decimals without trailing zeros,
 * in the order of their names; and in metrics, beside upstream's five: memThroughput, l1Throughput, theoreticalOccupancy,
 * wavesPerSM, dramReadBytes, dramWriteBytes, durationNs, dominantKernel, bottleneck, launches, passes, warnings (their
 * count), and where it is so unweighted, partial, replay: "true". The rest of SUMMARY is the member `details`, without metrics.
 */
struct json *ncu_summary_kratos(struct arena *a, const struct json *summary);

/* ---- console.c: what ncu says while it collects */

enum ncu_failure {
        NCU_FAILURE_NONE,
        NCU_FAILURE_NO_TOOL,    /* ToolNotFound: ncu cannot be started */
        NCU_FAILURE_NO_GPU,     /* NoGPU */
        NCU_FAILURE_PERMISSION, /* CounterPermission: ERR_NVGPUCTRPERM */
        NCU_FAILURE_IN_USE,     /* CountersInUse: DCGM, or another profiler */
        NCU_FAILURE_DRIVER,     /* DriverMismatch: LibraryNotLoaded, a stub libcuda */
        NCU_FAILURE_MIG_CLOCKS, /* MIGClockControl */
        NCU_FAILURE_NOTHING,    /* NothingProfiled */
        NCU_FAILURE_PROGRAM,    /* ProgramFailed: with the program's own status */
        NCU_FAILURE_NOT_LOADED, /* ProgramNotLoaded: a library or a version of libc is missing beside the tool */
        NCU_FAILURE_NO_NUMBERS, /* NoNumbers: launches, but none of the metrics that decide is a number */
        NCU_FAILURE_OTHER,      /* ToolFailed */
        NCU_FAILURES,
};

const char *ncu_failure_reason(
        enum ncu_failure f); /* "CounterPermission"; what a condition may have as its reason */
/* One sentence: cause, evidence (DETAIL, may be NULL), next step; at most 500 bytes. */
const char *ncu_failure_sentence(struct arena *a, enum ncu_failure f, const char *detail);

enum { NCU_WARNINGS_MAX = 16 };

/* All that was said so far. The most telling failure stays: a permission comes before "nothing profiled" after it. */
struct ncu_console {
        bool connected, disconnected;
        uint64_t launches; /* finished */
        uint64_t of;       /* as newer tools say it ("3/20"); 0: not said */
        unsigned percent;  /* of the launch under way */
        unsigned passes;   /* of the last one that finished */
        char kernel[128];  /* the one under way, or the last */
        enum ncu_failure failure;
        char detail[256];  /* the line that said so, without its mark */
        int program_code;  /* as ncu tells it; -1: not told */
        bool replay;       /* a line ==REPLAY== says that a recording is played */
        char report[4096]; /* ==PROF== Report: PATH; "" : not said */
        size_t n_warnings;
        char warnings[NCU_WARNINGS_MAX][256]; /* each once */
        /* Of the reader alone. */
        struct buf line; /* begun and not ended */
        bool running;    /* a launch is under way */
        bool begun;      /* by this line */
        bool passes_due; /* it has ended, and how many passes it took comes later */
        bool listing;    /* what could have been profiled */
        unsigned rank;   /* of the failure */
};

void ncu_console_init(struct ncu_console *c);
void ncu_console_done(struct ncu_console *c);
/*
 * Any piece of the output, also of a program that prints between ncu's lines: "0%....50%....100% - 8 passes" comes in pieces.
 * True: something changed that progress tells.
 */
bool ncu_console_feed(struct ncu_console *c, struct str piece);

/* ---- collect.c: the whole of it */

enum { NCU_LAUNCHES_DEFAULT = 20 };     /* the first kernel is often one that only fills memory */
#define NCU_SUMMARY_FILE "summary.json" /* in the run directory, beside result.json */

struct ncu_collect {
        const char *ncu;       /* program; NULL: $SONDE_NCU, else "ncu" */
        const char *set;       /* NULL: "basic" */
        uint64_t launch_count; /* 0: NCU_LAUNCHES_DEFAULT */
        uint64_t launch_skip;
        const char *kernel;        /* --kernel-name; NULL: all */
        const char *clock_control; /* NULL: "none": durations as in production; and MIG allows nothing else */
        const char *cache_control; /* NULL: "all" */
        enum ncu_rule rule;
        char *const *program; /* argv */
        const char *
                libraries; /* LD_LIBRARY_PATH, before what ours has (see ncu_workload_command()); NULL: ours alone */
        const char *
                dir; /* the run directory: summary.json, result.json, artifacts/NAME.ncu-rep, artifacts/NAME.csv, and the status
                                 file */
        const char *name; /* of the report; NULL: "report" */
        const struct clock *clock;
        const struct log *log;
};

/*
 * Collects (ncu's and the program's output go to standard output and are read on the way), imports with LC_ALL=C, sums up.
 * Phases Collecting (steps: launches) and Importing. A run that failed half-way and has launches with numbers is a success that
 * says `partial`. Returns the exit status: 0; 1 after a failure, which is told in the status file with its reason; 130 when
 * it was told to end (SIGTERM, SIGINT), after the whole tree of processes is gone.
 */
int ncu_collect(const struct ncu_collect *c);

/* ---- workload.c, elf.c: the program and what it needs, out of the image that has it */

struct ncu_workload {
        const char *program;      /* command[0]: a path, or a name to be found in PATH */
        const char *const *files; /* more files and directories, absolute; NULL ends; may be NULL */
        const char *to;           /* "/shared" */
};

/*
 *   TO/workload        the program, 0755
 *   TO/lib/            the shared libraries it needs, and what those need, by soname: found as the loader does (RPATH, RUNPATH,
 *                      $ORIGIN, LD_LIBRARY_PATH, ld.so.cache, the default directories), for the program's own machine
 *   TO/libc/           of those, what belongs to the C library, with the loader: used only where the tool's image has no such
 *                      loader (musl in a glibc image, and the other way)
 *   TO/root/PATH       FILES, under their own paths, links as links
 *   TO/workload.json   {program, script, interpreter, needed: […], driver: […], missing: […]}: a library that is not found is told,
 *                      not an error; the driver's (libcuda, libnvidia-*) are not copied: they come from the node
 *
 * A script (#!) is staged with its interpreter as one of the FILES. Below 0: ERR; WHY is the reason as a condition has
 * it: CommandEmpty, CommandNotFound, CommandNotExecutable, FileNotFound, StageFailed.
 */
int ncu_stage_workload(const struct ncu_workload *w, const char **ret_why, struct err *err) _must_check_;
/* How a staged program is started in this image: argv in the arena, with LD_LIBRARY_PATH in *RET_LIBRARIES (may be NULL). */
char **ncu_workload_command(struct arena *a, const char *shared, char *const *args,
                            const char **ret_libraries);
/*
 * Lets the staged FILES be found under their own paths: a link for each where this image has nothing. What cannot be linked
 * (a read-only root) is said on LOG; returns how many those are.
 */
size_t ncu_workload_link(const char *shared, const struct log *log);

DEFINE_CLEANUP_PTR(struct ncu_reader *, ncu_reader_free)
DEFINE_CLEANUP_PTR(struct ncu_sum *, ncu_sum_free)
DEFINE_CLEANUP_STRUCT(struct ncu_console, ncu_console_done)
