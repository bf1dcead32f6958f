/*
 * metrics.h - what one request's times mean, and what all of them mean together.
 *
 * The definitions are AIPerf's. A record has the times at which its chunks with content came, taken at the socket; all
 * else is computed from records after the run, by pure functions. Times are nanoseconds of one clock.
 *
 * A request that failed counts as an error and in nothing else. A metric that a record cannot have (no second chunk, a
 * single token, times that go back) is left out of that metric's statistics, never 0.
 */
#pragma once

#include "stats/stats.h"

#define LOAD_LAG_UNKNOWN UINT64_MAX

struct load_record {
        uint32_t number;       /* in the order of the schedule */
        uint32_t worker;       /* which loop sent it */
        uint32_t input;        /* which of the report's inputs it sent */
        bool warmup, canceled; /* canceled: the end of the run came first */
        bool whole;            /* not streamed: its one chunk is no first token */
        uint64_t due, start, ack,
                end; /* due: its time in the schedule (open loop; else = start); ack: head of the answer */
        const uint64_t *chunks; /* when each chunk with content came */
        size_t n_chunks;
        uint64_t
                read_lag; /* ns: how long after its time the first was read; LOAD_LAG_UNKNOWN: no kernel's stamp */
        uint32_t isl, osl; /* tokens */
        bool osl_exact;    /* the server's usage or an exact count; else an estimate */
        int status;        /* of HTTP; 0: no answer */
        const char *error; /* NULL: it succeeded */
        const char
                *error_kind; /* a short name for the summary: "HTTP 429", "ConnectionLost", "Timeout", ... */
};

/* The metrics of records, by AIPerf's tags and in its order, in its units (ms, tokens, tokens/sec/user). */
enum load_metric {
        LOAD_TTFT,
        LOAD_TTST,
        LOAD_LATENCY,
        LOAD_ITL,
        LOAD_ICL, /* a list a request: load_gaps() */
        LOAD_PER_USER,
        LOAD_OSL,
        LOAD_ISL,
        LOAD_PREFILL,
        LOAD_METRICS_,
};
struct load_metric_name {
        const char *tag, *header, *unit;
};
extern const struct load_metric_name load_metrics[LOAD_METRICS_];
bool load_metric_of(struct str tag, enum load_metric *ret);

bool load_succeeded(const struct load_record *r);

/* The value in nanoseconds (times), tokens or tokens/s; false: this record has none. Not for LOAD_ICL. */
bool load_value(const struct load_record *r, enum load_metric metric, double *ret);
/* Gaps between chunks into OUT (n_chunks - 1 of them); false: fewer than two, or times that do not grow. */
bool load_gaps(const struct load_record *r, double *out);
/* What load_value() or load_gaps() gave, in the metric's unit. */
double load_in_unit(enum load_metric metric, double value);

/* A service level: `time_to_first_token:250` of --goodput. Times must not be above it (LOAD_ICL: none of its gaps), rates
 * and lengths not below. No levels: nothing is good. */
struct load_slo {
        enum load_metric metric;
        double limit; /* in the metric's unit; inclusive */
};
bool load_good(const struct load_record *r, const struct load_slo *slos, size_t n);

/* ---- all of them */

enum { LOAD_FEW_CHUNKS = 4 };

struct load_summary {
        struct stats_summary metrics[LOAD_METRICS_]; /* n == 0: no values */
        size_t n_requests, n_errors, n_canceled, n_good;
        bool has_duration;
        double duration;           /* s: last end - first start */
        double request_throughput; /* a second */
        double output_throughput;  /* tokens a second */
        double goodput;            /* a second */
        double total_isl, total_osl;
        bool osl_exact;
        struct stats_summary lateness; /* us: start - due, of open loops */
        /* A client that stamps reads sees chunks of one read at one time. */
        size_t n_without_gaps; /* two chunks or more, and no LOAD_ICL: some came in one read */
        size_t n_streams;      /* of more than LOAD_FEW_CHUNKS chunks */
        size_t n_shared_first; /* of these: the first chunk was not the only one of its read */
        size_t n_late_first;   /* of these: because the client read late, and not because they came at once */
        double late_first_late; /* ms: mean of how much earlier those first chunks must have come */
};

/* Of the streams: those whose first read had more than one chunk in it. */
double load_shared_share(const struct load_summary *s);
/* Of the streams: those of them that are the client's doing. */
double load_late_share(const struct load_summary *s);
/* RECORDS of one phase (warm-up or not). False: not one request succeeded, so there are no numbers but the errors. */
bool load_summarize(const struct load_record *records, size_t n, const struct load_slo *slos, size_t n_slos,
                    struct load_summary *ret);
