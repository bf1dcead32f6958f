/*
 * sim.h - the simulated inference engine: a performance model, the engine that follows it, what it must measure.
 *
 * One state machine (sim_engine) decides at which moment each token of each request comes. The server drives it by the
 * real clock and writes the tokens to sockets; sim_truth() drives it by a clock of its own and tells, at once, what a
 * perfect client must measure. So truth and server cannot drift apart.
 *
 * The model of one engine on n GPUs, a mapping of TP, TEP or DEP (with DEP n ranks work side by side, each as on one GPU
 * but for the mapping's factor, and requests go to the rank with the fewest):
 *
 *   prefill   one prompt at a time, first come, first served, before any decoding:
 *                 base + (tokens * per_token + tokens^2 * per_token2) / speedup
 *             With the prefix cache, a prompt that came before costs `base` alone.
 *   decode    all running requests get one token each step:
 *                 base + (requests * per_request + kv_tokens * per_kv_token) / speedup
 *   speedup   n ^ scaling of the mapping, for prefill and decode apart
 *   KV        kv_tokens_per_gpu * n - weights_kv_tokens (of a rank: of its one GPU). A request holds isl + osl from its prefill
 *             to its end; one that does not fit waits at the head of the queue; one that never can is refused (400).
 *             max_batch bounds how many run.
 *
 * All of it in a small file, YAML or JSON; every member has a default, unknown ones are refused:
 *
 *   model: sim/llama            backend: vllm        gpus: 2        mapping: TP
 *   prefill: {baseMs: 2, perTokenUs: 20, perToken2Ns: 0}
 *   decode:  {baseMs: 4, perRequestUs: 50, perKvTokenNs: 10}
 *   scaling: {TP: {prefill: 0.9, decode: 0.8}, TEP: {...}, DEP: {...}}
 *   kvTokensPerGpu: 100000      weightsKvTokens: 0   maxBatch: 0    prefixCache: true
 *   jitter: 0                   seed: 1              # each time is multiplied by 1 + jitter * (-1 ... 1)
 *   faults: {startDelayMs: 0, failStart: "", crashAfterRequests: 0, hangAfterRequests: 0, errorRate: 0, errorStatus: 500,
 *            cutRate: 0, failLabels: []}  # failLabels [TP=4]: only such a one fails to start, whatever the others do
 *
 * docs/sim.md says what each fault does.
 */
#pragma once

#include "net/net.h"
#include "probe/load/metrics.h"
#include "json/json.h"

typedef uint64_t nsec_t;

enum sim_mapping { SIM_TP, SIM_TEP, SIM_DEP, SIM_MAPPINGS_ };
extern const char *const sim_mappings[SIM_MAPPINGS_]; /* "TP", ... */

struct sim_faults {
        usec_t start_delay;
        const char *fail_start;         /* its last words; NULL: it starts */
        const char *const *fail_labels; /* of those that do not start; see sim_fail_words() */
        size_t n_fail_labels;
        uint64_t crash_after, hang_after;
        double error_rate, cut_rate;
        int error_status;
};

struct sim_model {
        const char *name, *backend;
        unsigned gpus;
        enum sim_mapping mapping;
        double prefill_base, prefill_token, prefill_token2; /* ns */
        double step_base, step_request, step_kv;            /* ns */
        double scaling[SIM_MAPPINGS_][2];                   /* of prefill, of decode */
        uint64_t kv_per_gpu, weights_kv;
        uint32_t max_batch; /* 0: none */
        bool prefix_cache;
        double jitter;
        uint64_t seed;
        struct sim_faults faults;
};

/* Strings are in the arena. SOURCE names the text in messages ("sim.yaml"). */
int sim_model_parse(struct arena *a, struct str text, const char *source, struct sim_model *ret,
                    struct err *err) _must_check_;
/* The same of what is parsed already (and perhaps changed). */
int sim_model_read(struct arena *a, const struct json *doc, const char *source, struct sim_model *ret,
                   struct err *err) _must_check_;
/* All members, as sim_model_read() takes them. */
struct json *sim_model_json(struct arena *a, const struct sim_model *m);
unsigned sim_ranks(const struct sim_model *m);
uint64_t sim_rank_kv(const struct sim_model *m); /* tokens of one rank; 0: the weights alone do not fit */
/* The last words of a model that does not start with its GPUs and mapping; NULL: it starts. */
const char *sim_fail_words(const struct sim_model *m);
nsec_t sim_prefill_time(const struct sim_model *m, uint64_t tokens, bool cached);
nsec_t sim_step_time(const struct sim_model *m, uint64_t requests, uint64_t kv_tokens);

/* ---- engine.c: no clock, no sockets */

struct sim_engine;
struct sim_request {
        uint64_t prompt; /* a hash of it, for the prefix cache */
        uint32_t isl, osl;
        void *arg;
        /* private: */
        struct list node;
        uint32_t made;
        unsigned rank;
        enum { SIM_AWAY, SIM_WAITS, SIM_PREFILL, SIM_RUNS } state;
};

/* TOKEN of R (from 1; the last is r->osl, before which the engine has forgotten R) is there at AT. It must not call the engine. */
typedef void (*sim_token_fn)(void *arg, struct sim_request *r, uint32_t token, nsec_t at);

struct sim_engine *sim_engine_new(const struct sim_model *m, sim_token_fn fn, void *arg);
void sim_engine_free(struct sim_engine *e);
/* R arrives; it is borrowed until its last token or sim_leave(). Times never go back. E_TOO_LARGE: it can never fit. */
int sim_arrive(struct sim_engine *e, struct sim_request *r, nsec_t now, struct err *err) _must_check_;
/* Its client has gone: no more tokens of R, not even what was due before NOW. What has begun takes its time all the same. */
void sim_leave(struct sim_engine *e, struct sim_request *r, nsec_t now);
/* When something happens next; UINT64_MAX: nothing will before the next arrival. */
nsec_t sim_next(const struct sim_engine *e);
/* Does all that is due at or before NOW, in order, each at its own time however late NOW is: no delay adds up. */
void sim_advance(struct sim_engine *e, nsec_t now);
unsigned sim_running(const struct sim_engine *e); /* in decoding, on all ranks */
unsigned sim_waiting(const struct sim_engine *e); /* for their prefill, or in it */

/* ---- truth.c */

struct sim_load {
        uint32_t concurrency, warmup;
        uint64_t requests;
        uint32_t isl, osl;
        uint32_t prompts; /* distinct ones, taken in turn */
        bool again;       /* the same load went before: the prefix cache has its prompts */
};

/* What a perfect client sees of a closed loop of LOAD: its records' summary. Jitter is as if 0. */
int sim_truth(const struct sim_model *m, const struct sim_load *load, struct load_summary *ret,
              struct err *err) _must_check_;

/* ---- server.c */

struct sim_server;
struct sim_server_config {
        struct loop *loop;
        const struct sim_model *model; /* borrowed */
        const char *listen;            /* "127.0.0.1:0" */
        struct tls *tls;
        const struct log *log;
        bool stamp; /* each chunk says when it was written: "sonde_ns", of clock_boot_ns() */
        void (*on_crash)(
                void *arg); /* the model says that it crashes now; NULL: it answers nobody any more */
        void *arg;
};

/*
 * /v1/chat/completions and /v1/completions, streamed or whole; /v1/models, /health. A token is a word; prompts are
 * counted by words. Says on the log what its backend says of its KV cache, in the backend's words: profilers read it there.
 */
struct sim_server *sim_server_new(const struct sim_server_config *c, struct err *err) _must_check_;
void sim_server_free(struct sim_server *s);
uint16_t sim_server_port(const struct sim_server *s);
/* "Maximum concurrency for 4096 tokens per request: 24.41x" and its like, for BACKEND; see sla's reader of it. */
void sim_kv_line(const struct sim_model *m, struct buf *out);

DEFINE_CLEANUP_PTR(struct sim_engine *, sim_engine_free)
DEFINE_CLEANUP_PTR(struct sim_server *, sim_server_free)
