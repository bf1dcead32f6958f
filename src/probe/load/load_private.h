/*
 * load_private.h - the parts of the load generator behind load.h.
 *
 *   plan.c    what all workers read and nobody changes in the run: bodies, schedules, limits
 *   trace.c   the same from a file of JSON lines
 *   worker.c  one loop with its connections: sends when it is time to
 *   call.c    one request of a worker: stamps what comes, keeps its record
 *   load.c    checks the config, starts workers, puts their records together
 *   valid.c   decides whether the client was the bottleneck
 *
 * A worker is told what to do by load_worker_tell() and says through `finished` and the plan's `told` descriptor when it
 * has done it: connect, then each phase. Of all that workers could share there are two words: the number of the next
 * request of a closed loop, so that as many are under way at its end as at its beginning, and the wish to stop.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "probe/load/load.h"
#include "probe/load/sse.h"

/* ---- plan.c */

enum { LOAD_TOKENS_MAX = 10 * 1000 * 1000 }; /* of a prompt or an answer */
#define LOAD_BODIES_MAX ((size_t)2 << 30)    /* bytes of all of them */
#define LOAD_CHUNKS_MAX ((uint64_t)1 << 28)  /* kept times of chunks: 2 GiB */

struct load_body {
        struct str text;
        uint32_t isl;
};

struct load_phase {
        bool warmup;
        uint64_t n;            /* requests at most */
        uint64_t first_body;   /* of request 0; the others follow in turn */
        const uint64_t *due;   /* ns from `began`, N of them; NULL: a closed loop */
        uint64_t began;        /* ns of the clock */
        usec_t duration;       /* 0: by number */
        _Atomic uint64_t next; /* of a closed loop */
};

struct load_plan {
        const struct load_config *c;
        struct arena arena;
        struct tokens *tokens;
        struct load_body *bodies;
        size_t n_bodies, bytes;
        uint64_t *trace_due;           /* of bodies; NULL: the trace says no times */
        uint32_t concurrency, workers; /* concurrency 0: no cap */
        unsigned connections;          /* of a worker, at most */
        usec_t timeout;
        const char *target;
        struct http_header *headers; /* the config's and ours */
        size_t n_headers;
        struct str *secrets; /* of the config's headers, each before those that are parts of it */
        size_t n_secrets;
        struct addrinfo *addresses; /* of the server; NULL: looked up for every connection */
        struct load_phase warmup, measured;
        int told; /* an eventfd: a worker has finished something */
        atomic_bool stop;
};

int load_plan_make(struct load_plan *p, const struct load_config *c, struct err *err) _must_check_;
void load_plan_done(struct load_plan *p);
/* Adds a body: PROMPT of ISL tokens, or with MESSAGES (an array) those. OSL 0: not said to the server. */
int load_plan_add(struct load_plan *p, struct str prompt, const struct json *messages, uint32_t isl,
                  uint32_t osl, struct err *err) _must_check_;

DEFINE_CLEANUP_STRUCT(struct load_plan, load_plan_done)
/* TEXT into OUT with "***" in place of SECRETS, and of the beginning of one where the text was cut. */
void load_hide(const struct str *secrets, size_t n, struct str text, struct buf *out);

/* ---- trace.c: fills the plan's bodies and, where the trace has times, trace_due */
int load_trace_read(struct load_plan *p, const char *path, struct err *err) _must_check_;

/* ---- valid.c */

/*
 * Sets `invalid` when the client was the bottleneck, by R's summary and CPU share and by LATE_P99, the 99th percentile
 * in ms of the lateness that is the client's own.
 */
void load_check_client(struct load_report *r, double late_p99);

/* ---- call.c */

struct load_worker;
struct load_call;

/* Request NUMBER of the phase; DUE and READY are 0 in a closed loop. */
void load_call_send(struct load_worker *w, uint64_t number, uint64_t due, uint64_t ready);
void load_calls_cancel(struct list *calls);
void load_calls_free(struct list *calls);

/* ---- worker.c */

/* An answer whose tokens the server did not count: the text is at AT of the worker's texts. */
struct load_uncounted {
        size_t record, at, n;
};

enum load_order { LOAD_NOTHING, LOAD_CONNECT, LOAD_WARM_UP, LOAD_MEASURE, LOAD_QUIT };

struct load_worker {
        struct load_plan *plan;
        unsigned number;
        uint32_t share; /* of the concurrency; 0: no cap */
        pthread_t thread;
        bool running;
        struct clock clock;
        struct loop *loop;
        struct http_client *client;
        int wake_fd;
        struct io wake;
        _Atomic enum load_order order, finished;

        /* of the phase under way */
        enum load_order doing;
        struct load_phase *phase;
        uint64_t at;    /* open loop: the next of the schedule */
        bool closed;    /* nothing more is sent */
        bool capped;    /* some are due and wait for a place under the cap */
        uint64_t freed; /* when the last place became free */
        size_t under_way;
        uint64_t chunks_under_way; /* of all calls */
        size_t text_under_way;     /* bytes that will have to be counted */
        struct timer begin, due, end, cut, pause, connecting;
        usec_t pause_for, connect_until;
        bool paused;
        struct list calls, spare;
        double cpu_began;

        /* what came of it */
        struct arena store;   /* chunk times, errors */
        struct arena scratch; /* of one event */
        struct map errors;    /* texts that are kept */
        struct map kinds;     /* as many as there are: names of ours, and statuses of HTTP */
        VEC(struct load_record) records;
        VEC(struct load_uncounted) uncounted;
        struct buf texts;         /* of the uncounted */
        VEC(double) waits;        /* us: how late by the client's own fault */
        VEC(double) stamp_errors; /* us */
        uint64_t kept;            /* times of chunks */
        uint64_t chunks_max;      /* of those that are kept and those under way */
        uint64_t unsent;          /* due, and never sent for want of a place under the cap */
        double cpu, wall;         /* seconds, of the measured phase */
        bool full, stamped;
        bool simulated;                              /* the server says of itself that it is */
        _Atomic uint64_t sent, done, failed, chunks; /* of the phase; read by the caller's thread */
};

struct load_worker *load_worker_new(struct load_plan *p, unsigned number, struct err *err) _must_check_;
int load_worker_start(struct load_worker *w, struct err *err) _must_check_;
void load_worker_tell(struct load_worker *w, enum load_order order);
/* A call has ended: the next ones go, or the phase is over. ENOUGH: nothing more is to be sent. */
void load_worker_go_on(struct load_worker *w, bool enough);
void load_worker_pause(struct load_worker *w); /* a closed loop's: the next request waits a little */
void load_worker_wake(struct load_worker *w);  /* to see that it must stop */
void load_worker_join(struct load_worker *w);  /* after LOAD_QUIT; harmless when it does not run */
void load_worker_free(struct load_worker *w);
DEFINE_CLEANUP_PTR(struct load_worker *, load_worker_free)
