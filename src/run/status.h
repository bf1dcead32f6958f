/*
 * status.h - the status file: where a profiler is now.
 *
 * The format is the full design's, with additions of ours; the short design's variant is read too. Somebody else's
 * program writes the file, so everything in it is bounded here, once, for relay and operator alike:
 *
 *   file          64 KiB, a regular file (no symlink, FIFO, directory or device), UTF-8 without NUL, 16 levels deep
 *   phase         required; 1 to 63 bytes, no control characters. Any name: a phase that is not in the plan has number 0.
 *                 Without a plan phaseNumber is what the file says, or the nine-phase table
 *   message, subPhase, parallelMapping, bestSoFar, error   cut at 1024, 256, 256, 256 and 500 bytes on a UTF-8 boundary;
 *                 control characters but newline and tab become blanks, so that no text can steer a terminal
 *   numbers       steps, GPUs, phaseNumber, totalPhases: whole, 0 ... 10^9, otherwise refused; sequence 0 ... 2^53.
 *                 currentStep > totalSteps is cut to totalSteps when totalSteps is above 0; percentage is computed, and 0
 *                 when totalSteps is 0
 *   gpuConfig     {currentGpus, parallelMapping}, or a text as in the short design's progress: "1 GPU, TP=1"
 *   times         RFC 3339 or isoformat(); without a zone UTC; a malformed or future one (more than 5 minutes) is as if
 *                 not there
 *   error         of a Failed phase: `error`, else `details` (its error, message or reason, or itself when it is no
 *                 object), else the message without "Profiling failed: "
 *   reason        of a Failed phase: one word that a condition may have as its reason ("CounterPermission"); any other text is as
 *                 if not there
 *   details       kept as it is when it is an object of at most 4 KiB as text, otherwise left out
 *   unknown       members (at most 64) are kept when the whole still fits into RUN_STATUS_TEXT_MAX, otherwise left out; so
 *                 is `details`
 *
 * null is as if not there; a member of another type than it should have is refused.
 * What is refused is refused with one sentence that says where and why; the caller keeps the last good state.
 */
#pragma once

#include "run/phase.h"

#define RUN_STATUS_FILE  "profiling_status.json"
#define RUN_SEQUENCE_MAX ((uint64_t)1 << 53) /* what every reader of JSON holds exactly */

enum {
        RUN_STATUS_FILE_MAX = 64 * 1024,
        RUN_STATUS_TEXT_MAX = 12 * 1024, /* as it goes into the ConfigMap */
        RUN_MESSAGE_MAX = 1024,
        RUN_SUB_PHASE_MAX = 256,
        RUN_MAPPING_MAX = 256,
        RUN_BEST_MAX = 256,
        RUN_ERROR_MAX = 500,
        RUN_DETAILS_MAX = 4096,
};

/* Strings are in the arena of the parse, or the caller's. Numbers below 0: not said. With has_progress both steps are said. */
struct run_status {
        const char *phase;
        int phase_number;    /* in the plan, or as the file says; 0: not known */
        int total_phases;    /* of the plan, or as the file says */
        const char *message; /* "" when not said */
        usec_t timestamp;    /* 0: not said */
        usec_t started_at;   /* 0: not said */
        bool has_progress;
        int64_t current_step, total_steps;
        const char *sub_phase; /* NULL: not said */
        bool has_gpu_config;
        int64_t current_gpus;
        const char *parallel_mapping; /* "" when not said */
        const char *best;  /* bestSoFar: the best of what was measured, for people; NULL: not said */
        uint64_t sequence; /* 0: not said */
        const struct run_plan *plan; /* as declared; NULL: none (see run_status_plan()) */
        double overall;              /* overallPercentage; below 0: not said */
        const char *error;  /* of a Failed phase; NULL: none. From `error`, `details`, or the message */
        const char *reason; /* of a Failed phase; NULL: none */
        const struct json *details; /* NULL: none */
        const struct json *others;  /* an object: members that nobody here knows; NULL: none */
};

/* NOW (wall time) is what "the future" is measured against. */
int run_status_parse(struct arena *a, struct str text, usec_t now, struct run_status *ret, struct err *err)
        _must_check_;
/* The full design's members in its order, then ours, then others: what goes into the file and into the ConfigMap. */
struct json *run_status_json(struct arena *a, const struct run_status *s);
/* The plan that counts: the declared one, or the nine-phase table when the phase is one of those, or one with this phase
 * alone. */
const struct run_plan *run_status_plan(struct arena *a, const struct run_status *s);
/* What may stand as the reason of a condition, which the server checks: 1 to 64 letters and digits, a letter first. */
bool run_reason_valid(struct str text);
/* currentStep / totalSteps * 100 with one decimal, rounded as Python's round() does; 0 when totalSteps is 0. */
double run_percentage(int64_t current_step, int64_t total_steps);

/*
 * Reads DIR_FD/NAME (a regular file of at most MAX bytes) into OUT as it was at one moment: opened without following a
 * link and without blocking. 0: read. 1: there is no such file. Below 0: what is wrong with it.
 */
int run_file_read(int dir_fd, const char *name, size_t max, struct buf *out, struct err *err) _must_check_;

/* ---- writer.c: the C face of the writer */

/*
 * Reports to a directory. Nothing here ever fails into the profiler: what cannot be written (a full disk, a vanished
 * directory) is said once on LOG, and the next report tries again.
 *
 * A report continues what is in the directory: the sequence, one higher (never lower than this reporter's last, whatever
 * became of the file); startedAt and, unless the reporter has one, the plan, as long as what is there has not ended: what
 * comes after Complete or Failed is another run.
 *
 * Two writers at once take turns (flock on the directory, waited for at most 2 s, 50 ms after the first complaint). There
 * is one temporary file, "profiling_status.json.tmp": what a killed writer left goes with the next report.
 */
struct run_reporter {
        const char *dir;
        const struct clock *clock;
        const struct log *log; /* may be NULL */
        bool complained;
        const struct run_plan *plan; /* written with every report; NULL: none of its own */
        uint64_t sequence;           /* of the last report; begin with 0 */
        struct err *why;             /* set when a report could not be written; may be NULL */
};

struct run_report {
        const char *phase, *message;
        bool has_progress;
        int64_t current_step, total_steps;
        const char *sub_phase; /* NULL: none */
        int64_t gpus;          /* below 0: none */
        const char *mapping;   /* NULL: none */
        const char *best;      /* the best of what was measured; NULL: none */
        const char *error;     /* of Failed; NULL: readers take the message's */
        const char *reason;    /* of Failed, see run_reason_valid(); NULL: none */
        bool has_usage;        /* usage: {memoryMb (10^6 bytes), cpuPercent (of one CPU)} of what runs now */
        double memory_mb, cpu_percent;
};

/* Writes the status file atomically (temporary file in the same directory, fsync, rename). False: it could not. */
bool run_report(struct run_reporter *r, const struct run_report *report);
/* Phase Complete, message NULL: "Profiling completed successfully". */
bool run_report_complete(struct run_reporter *r, const char *message);
/* Phase Failed, message "Profiling failed: ERROR", error cut at 500 bytes on a UTF-8 boundary. REASON may be NULL. */
bool run_report_failed(struct run_reporter *r, const char *reason, const char *error);
