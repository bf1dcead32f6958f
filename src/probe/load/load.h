/*
 * load.h - the LLM load generator: requests to an OpenAI-compatible server, timed at the socket.
 *
 * load_run() sends what the config says and returns when all is answered, when the time is up, or when it is told to stop.
 * It uses one loop a worker, each with a pool of kept-alive connections of its own; workers share nothing, and their
 * records are put together at the end. Request bodies are made before the first is sent. In the run nothing is computed
 * that can be computed later: an event is stamped, checked for content and counted.
 *
 *   closed loop   `concurrency` requests are under way; the next goes out when one has ended
 *   open loop     by `pattern` and `rate`; a request that is due goes out whatever became of the others (with
 *                 `concurrency`: at most that many under way; those that had to wait are late, and those that
 *                 had to wait until the end are `unsent`. Schedule and cap are dealt out to the workers before:
 *                 one's free place is not another's)
 *   replay        by the times of a trace
 *
 * Times: `start` is taken right before the request's first byte is given to the kernel, on a connection that is
 * established; a chunk's is the kernel's own stamp of its arrival (SO_TIMESTAMPING), or with TLS, or where the kernel
 * has none, the moment of the read, before anything is parsed.
 *
 * The client's own part: lateness (start - due), the CPU that each worker used, the stamps' error (read - kernel's
 * stamp), and first reads with more than one chunk in them. A run is invalid when the client was the bottleneck:
 *   - p99 of the lateness that is its own (that is: start - the later of due and a free place under the cap) above
 *     LOAD_LATE_SHARE of the mean request latency, and above LOAD_LATE_MIN
 *   - a worker busy for more than LOAD_CPU_SHARE of the time
 *   - it read more than LOAD_SHARED_SHARE of the streams' first chunks late and together with others, they must have come
 *     more than LOAD_LATE_MIN earlier, and that moves the mean time to first token by more than LOAD_LATE_SHARE of it
 * Then `invalid` has a sentence, every output says so, and the exit status is 3. The warm-up has no part in that.
 *
 * Faults: a request that fails ends with its own error (HTTP status and the server's sentence, a connection that broke,
 * a malformed stream, a timeout), costs that request only, and its connection is not used again.
 */
#pragma once

#include "net/net.h"
#include "probe/load/arrivals.h"
#include "probe/load/llm.h"
#include "probe/load/metrics.h"
#include "probe/load/tokens.h"

enum { LOAD_CONCURRENCY_MAX = 100000, LOAD_REQUESTS_MAX = 10000000, LOAD_WORKERS_MAX = 32 };
enum { LOAD_ISL_DEFAULT = 550, LOAD_PROMPTS_DEFAULT = 100 };
#define LOAD_LATE_MIN     (1000 * 1000) /* ns */
#define LOAD_LATE_SHARE   0.05
#define LOAD_CPU_SHARE    0.90
#define LOAD_SHARED_SHARE 0.05

struct load_progress;

struct load_config {
        const char *url;
        struct tls *tls; /* for https */
        enum llm_endpoint endpoint;
        const char *path; /* in place of the endpoint's; NULL: that, without /v1 where the URL ends in it */
        bool whole;       /* not streaming */
        const char *model;
        const struct http_header *headers; /* an API key among them; never logged nor exported */
        size_t n_headers;
        const struct json *extra; /* merged into every body: ignore_eos, min_tokens, ... */

        uint32_t concurrency; /* 0: no cap (open loop), else 1 */
        double rate;          /* 0: closed loop */
        enum arrival_pattern pattern;
        double smoothness;
        uint64_t requests;      /* 0: by time alone */
        usec_t duration, grace; /* 0: by number alone; grace: for what is under way at the end */
        uint32_t
                warmup_requests; /* before, at the same concurrency, not counted; it ends after `duration`, too */
        usec_t request_timeout;   /* 0: 6 h, as AIPerf */
        uint32_t workers;         /* 0: one a core, and not more than one for 64 under way */
        uint32_t isl, isl_stddev; /* 0: 550 */
        uint32_t osl, osl_stddev; /* 0: not said to the server */
        uint32_t prompts;         /* distinct ones; 0: 100 */
        uint64_t seed;
        const char *tokenizer; /* a file; NULL: builtin */
        const char *trace;     /* a file of JSON lines; NULL: synthetic prompts */
        const struct load_slo *slos;
        size_t n_slos;
        bool simulated; /* the server is a simulated engine, and what is exported must say so */

        int stop_fd; /* readable: stop now, keep what there is; -1: none */
        /* Called about ten times a second from the caller's thread. May be NULL. */
        void (*on_progress)(void *arg, const struct load_progress *progress);
        void *arg;
        const struct log *log;
};

struct load_progress {
        bool warmup;
        uint64_t sent, done, failed, under_way;
        uint64_t total;          /* 0: by time */
        usec_t elapsed, planned; /* planned 0: by number */
        uint64_t chunks;
};

struct load_report {
        struct arena arena; /* of all that follows */
        struct load_record *records;
        size_t n;
        const struct str *inputs; /* the distinct bodies, as they were sent; record.input counts them */
        size_t n_inputs;
        struct load_summary summary, warmup;
        bool has_numbers, stopped;
        const char *ended_early; /* a limit of ours was reached; NULL: it was not */
        uint64_t unsent;         /* open loop with a cap: due, and never sent */
        bool simulated;          /* the server said that it is a simulated engine */
        const char *invalid;     /* why the client's part makes the numbers worthless; NULL: it does not */
        const char *tokenizer;
        usec_t wall_began; /* of the clock's zero in `records` */
        uint64_t clock_began;
        double cpu;         /* of the busiest worker: share of the time */
        double cpu_seconds; /* of all */
        bool kernel_stamps;
        struct stats_summary stamp_error; /* us: read - kernel's stamp of first chunks; n 0: none */
        uint64_t chunks;
        struct arena *stores; /* private: times of chunks and bodies, where the run kept them */
        size_t n_stores;
};

/* Below 0: it could not begin (a config that makes no sense, no such file, nobody listens). Else what happened is in RET. */
int load_run(const struct load_config *c, struct load_report *ret, struct err *err) _must_check_;
void load_report_done(struct load_report *r);
DEFINE_CLEANUP_STRUCT(struct load_report, load_report_done)

/* ---- export.c: the files that AIPerf writes, in DIR (made): profile_export_aiperf.json, .csv, profile_export.jsonl, inputs.json */
int load_export(const struct load_config *c, const struct load_report *r, const char *dir, struct err *err)
        _must_check_;
/* The content of profile_export_aiperf.json, which -o json prints, too. */
struct json *load_summary_json(struct arena *a, const struct load_config *c, const struct load_report *r);
/* A table for people. */
void load_print(const struct load_config *c, const struct load_report *r, struct buf *out);
