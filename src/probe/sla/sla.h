/*
 * sla.h - the SLA profiler: which mapping of a model onto GPUs meets its latency targets at the least cost.
 *
 * Two halves. The arithmetic (shape.c, grid.c, pick.c, curves.c, planner.c) is pure: numbers in, numbers out, as upstream's
 * profiler (Dynamo v0.9.0) has it, with its mistakes mended where the comments say so. `sonde-pod sla plan` and `sla pick`
 * show it on given data. The runner (run.c) goes through the seven phases with a target, which brings servers up and takes
 * them down, and a meter, which measures one point of one server:
 *
 *   Initializing          configuration, model shape, candidates, what an earlier attempt left behind is removed
 *   PrefillSweep          each candidate: deploy, TTFT, remove                            a step a candidate
 *   DecodeSweep           each candidate: deploy, read the KV size, ITL at each concurrency of the grid, remove
 *                                                             a step a candidate and concurrency, grid's maximum each
 *   ConfigSelection       the best of each
 *   PrefillInterpolation  the chosen prefill mapping at each ISL                          a step a point
 *   DecodeInterpolation   the chosen decode mapping at each ISL and concurrency           a step a point
 *   PlannerGeneration     replicas, the deployment with a planner, files
 *
 * totalSteps of a phase is fixed when it begins and never grows; points that turn out not to exist (a small KV cache) count as
 * done. A candidate that cannot be measured (crash loop, image, timeout, a failed benchmark) is told and left out; with no
 * row left the run fails and says why. Everything measured goes into the checkpoint at once, keyed by what was measured, and a
 * later attempt measures only what is not there.
 */
#pragma once

#include "probe/load/load.h"
#include "probe/sim/sim.h"
#include "run/run.h"

enum {
        SLA_CONCURRENCY_MAX = 2000,
        SLA_PREFILL_TOKENS_MAX = 32768,
        SLA_WARMUP_A_RANK = 3,
        SLA_PREFILL_OSL = 5,
        SLA_BURST = 4, /* requests a rank in one burst of a DEP prefill */
        SLA_DECODE_OSL = 500,
        SLA_DECODE_GRANULARITY = 6,
        SLA_PREFILL_GRANULARITY = 16,
        SLA_CONTEXT_MARGIN = 512,
        SLA_GRID_MAX = 256,
        SLA_CANDIDATES_MAX = 64,
        SLA_LABEL_MAX = 16,
        SLA_GPUS_MAX = 65536,
};
/* "true": a deployment that is made to measure it, and goes with its candidate. */
#define SLA_LABEL_TEMPORARY "sonde.dev/temporary"
#define SLA_GPU_COST        3.0 /* $ an hour */

/* ---- shape.c: what the model is, and which mappings it allows */

enum sla_role { SLA_PREFILL, SLA_DECODE };

struct sla_shape { /* 0: not known, and its check is skipped */
        const char *architecture;
        bool moe;
        uint64_t kv_heads, experts, intermediate, quant_block, max_context;
        double weight_mib;
};

struct sla_candidate {
        unsigned gpus, attn_dp;
        enum sim_mapping mapping;
        char label[SLA_LABEL_MAX]; /* "TP=4" */
};

/* Reads what there is of a Hugging Face config.json (text_config, too). */
void sla_shape_read(const struct json *config, struct arena *a, struct sla_shape *ret);
/* ceil(weights / 0.9 / VRAM) and its maximum (a node, or for MoE max(8 min, a node)); where one is not known 1, 4, 8. */
void sla_gpu_range(const struct sla_shape *s, double vram_mib, unsigned per_node, unsigned *min,
                   unsigned *max);
/* Powers of two in [MIN, MAX], the mappings of each that SHAPE allows, in upstream's order. Returns how many. */
size_t sla_candidates(const struct sla_shape *s, unsigned min, unsigned max,
                      struct sla_candidate out[SLA_CANDIDATES_MAX]);
void sla_candidate_init(struct sla_candidate *c, enum sim_mapping mapping, unsigned gpus);
/* "TP=4"; false: it is no such label. */
bool sla_candidate_parse(struct str label, struct sla_candidate *ret) _must_check_;

/* ---- grid.c */

/* Concurrencies for ATTN_DP ranks up to MAX_CONCURRENCY (capped at 2000), GRANULARITY of them at most; 0: none fits. */
size_t sla_request_grid(unsigned attn_dp, uint64_t max_concurrency, unsigned granularity,
                        uint64_t out[SLA_GRID_MAX]);
/* Below 0: CONTEXT leaves no room, said as upstream says it. A step of 0 (upstream divides by it) becomes 1. */
int sla_prefill_isls(uint64_t context, unsigned granularity, uint64_t out[SLA_GRID_MAX], size_t *n,
                     struct err *err) _must_check_;
int sla_decode_isls(uint64_t context, unsigned granularity, uint64_t out[SLA_GRID_MAX], size_t *n,
                    struct err *err) _must_check_;
/* The KV size that BACKEND's log says, for all ranks; 0: it does not say. */
uint64_t sla_kv_from_log(const char *backend, struct str log, unsigned attn_dp);

/* ---- pick.c */

struct sla_row {
        struct sla_candidate candidate;
        double latency;                  /* ms: TTFT of prefill, ITL of decode */
        double throughput;               /* tokens/s/GPU */
        uint64_t concurrency, kv_tokens; /* of decode */
};

struct sla_choice {
        size_t index;
        bool feasible; /* false: no row meets the target; INDEX is the one with the best latency */
        double best;   /* the best latency there is */
};

/* TTFT of a DEP burst, from its slowest and the mean ITL: (max - itl * (5 - 1) * (4 - 1)) / 4. */
double sla_burst_ttft(double ttft_max, double itl_avg);
double sla_prefill_throughput(double isl, double ttft_ms, const struct sla_candidate *c);
/* The target is inclusive; of equal throughputs the first row wins. False: no rows. */
bool sla_pick(const struct sla_row *rows, size_t n, double target_ms, struct sla_choice *ret);
/* The same for both at once, of those pairs that have at most GPUS together: as many targets as can be are met, then a request
 * costs least; where a target is missed its latency comes first. False: no pair is so small. */
struct sla_pick_in {
        const struct sla_row *prefill, *decode;
        size_t n_prefill, n_decode;
        double ttft, itl, isl, osl;
        unsigned gpus;
};
bool sla_pick_within(const struct sla_pick_in *in, struct sla_choice *ret_prefill,
                     struct sla_choice *ret_decode) _must_check_;
/* Indices of the rows that no other beats in both (least x, most y), by x; for pictures and cost. Returns how many. */
size_t sla_pareto(const double *x, const double *y, size_t n, size_t *out);
/* $ for 1000 requests. */
double sla_cost(double isl, double prefill_throughput, double osl, double decode_throughput);

/* ---- curves.c: what was measured, between the points */

/* Cubic spline, not-a-knot (2 points: a line, 3: a parabola), X clamped to what was measured. X grows strictly. */
struct sla_spline {
        size_t n;
        const double *x, *y;
        double *second; /* derivatives */
};
int sla_spline_init(struct arena *a, const double *x, const double *y, size_t n, struct sla_spline *ret,
                    struct err *err) _must_check_;
double sla_spline_at(const struct sla_spline *s, double x);

/* Decode: ITL and throughput over KV usage (0 ... 1) and context length; samples lie on rows of equal context. */
struct sla_surface;
struct sla_sample {
        double kv_usage, context, itl, throughput;
        bool estimated; /* between measured ones, by --search adaptive */
};
int sla_sample_cmp(const void *a, const void *b); /* of two samples, by context and KV usage; for qsort() */
struct sla_surface *sla_surface_new(struct arena *a, const struct sla_sample *samples, size_t n,
                                    struct err *err) _must_check_;
double sla_surface_itl(const struct sla_surface *s, double kv_usage, double context);
double sla_surface_throughput(const struct sla_surface *s, double kv_usage, double context);
/* The most throughput at CONTEXT with ITL of at most ITL; if none, that of the least usage. RET_USAGE may be NULL. */
double sla_surface_best(const struct sla_surface *s, double itl, double context, double *ret_usage);

/* ---- planner.c */

struct sla_demand {
        double requests, interval; /* per interval, in seconds */
        double isl, osl;
        double itl;                         /* the target, ms */
        double prefill_corr, decode_corr;   /* 0: 1 */
        unsigned prefill_gpus, decode_gpus; /* of one engine */
        unsigned budget, min_endpoint;      /* GPUs; engines of each */
};
struct sla_replicas {
        unsigned prefill, decode, gpus;
        bool capped; /* the budget does not carry the demand */
};
/* What a GPU decodes of this demand within its ITL, corrected: half of the answers is there on the average. */
double sla_demand_throughput(const struct sla_demand *d, const struct sla_surface *surface);
/* Never over the budget, unlike upstream's; below 0: not even MIN_ENDPOINT of each fits into it. */
int sla_replicas(const struct sla_demand *d, double prefill_throughput, double decode_throughput,
                 struct sla_replicas *ret, struct err *err) _must_check_;

/* ---- config.c: the profiler's configuration, in camelCase or snake_case */

struct sla_config {
        const struct json *raw;
        const char *model, *backend, *ns, *output_dir,
                *base_config; /* base_config: a file, the DGD to start from */
        uint64_t isl, osl;
        double ttft, itl;
        unsigned min_gpus, max_gpus, gpus_per_node; /* resolved */
        unsigned prefill_granularity, decode_granularity;
        uint64_t decode_osl;
        uint64_t context;
        struct sla_shape shape;
        double request_rate;   /* of the planner's demand; 0: one engine of each */
        unsigned budget;       /* GPUs: maxGpuBudget, else totalGpus, else 8 */
        bool budget_said;      /* false: nobody said one, and it grows to what one engine of each needs */
        unsigned min_endpoint; /* engines of each, at least */
        double interval;       /* seconds between two decisions of the planner */
        const struct json *planner;                         /* passed through to the planner's arguments */
        const char *image;                                  /* of every service; NULL: as the base has it */
        const char *cache_claim, *cache_path, *cache_mount; /* the model in a volume; claim NULL: it is not */
        usec_t deploy_timeout;
        bool adaptive, dry_run, use_mocker;
};
const char *sla_snake_case(struct arena *a, const char *camel);
/* SECTION.KEY (camelCase; SECTION NULL: of the whole) in the spelling that is there, whose path is in RET_PATH, which may be
 * NULL. NULL: neither is there, or it is null. */
const struct json *sla_setting(struct arena *a, const struct json *config, const char *section,
                               const char *key, const char **ret_path);
/* Strings are in the arena. Every mistake is told, in one sentence each, joined by "; ". */
int sla_config_parse(struct arena *a, const struct json *config, struct sla_config *ret, struct err *err)
        _must_check_;

/* What a run needs and the arithmetic does not: a model. */
int sla_config_check(const struct sla_config *c, struct err *err) _must_check_;

/* ---- json.c: `sla plan` and `sla pick`: JSON in, JSON out; docs/sla.md has their members */
struct json *sla_plan_json(struct arena *a, const struct json *in, struct err *err);
struct json *sla_pick_json(struct arena *a, const struct json *in, struct err *err);

/* ---- targets: what brings a server up. Calls block, and end early with E_CANCELED when the stop descriptor is readable. */

struct sla_server {
        const char *url;
        uint64_t kv_tokens;            /* of all ranks; 0: not known */
        const struct sim_model *model; /* a simulation's; NULL: a real one */
        void *data;                    /* the target's */
};

struct sla_target;
struct sla_target_ops {
        const char *name;
        bool simulated;
        bool fixed; /* there is one server, and no choice: the first candidate is the only one */
        /* Removes what an earlier life of this run left behind. May be NULL. */
        int (*clean)(struct sla_target *t, struct err *err);
        /* Brings CANDIDATE up for ROLE and waits until it serves. Any error but E_CANCELED costs this candidate only. */
        int (*start)(struct sla_target *t, const struct sla_candidate *c, enum sla_role role,
                     struct sla_server *ret, struct err *err);
        /* Takes it down and waits until it is gone; also half-started ones. Never cut short by a stop. */
        void (*stop)(struct sla_target *t, struct sla_server *s);
        void (*free)(struct sla_target *t);
        /* What became of a server whose measurement failed ("it ended by SIGABRT: last words"), in the arena; NULL: nothing
         * is known. May be NULL. */
        const char *(*why)(struct sla_target *t, const struct sla_server *s, struct arena *a);
};
struct sla_target {
        const struct sla_target_ops *ops;
};

struct sla_target_config {
        const struct sla_config *config;
        struct loop *loop;
        int stop_fd;
        const struct log *log;
        const char *artifacts;  /* where logs of servers go; NULL: nowhere */
        uint64_t kv_tokens;     /* of all ranks, where a server does not tell; 0: not known */
        usec_t request_timeout; /* of one request; 0: half an hour */
};
/* endpoint: one server that is there already; every candidate is the one it has. */
struct sla_target *sla_target_endpoint(const struct sla_target_config *c, const char *url,
                                       uint64_t kv_tokens);
/* process: COMMAND with {gpus} {mapping} {tp} {dp} {port} {role} {model} in its words, no shell; ready when /health or /v1/models answers. */
struct sla_target *sla_target_process(const struct sla_target_config *c, char *const *command,
                                      struct err *err);
/* sim: this program as `sim`, a process a candidate, with MODEL (a text, see sim.h) and the candidate's GPUs and mapping. */
struct sla_target *sla_target_sim(const struct sla_target_config *c, struct str model, struct err *err);
/* The same model without any process, for sla_run.truth. */
struct sla_target *sla_target_truth(const struct sla_target_config *c, struct str model, struct err *err);
/* dgd: temporary DynamoGraphDeployments through the API. dgd.c */
struct sla_target *sla_target_dgd(const struct sla_target_config *c, struct kube *kube,
                                  const char *owner_name, const char *owner_uid, struct err *err);

/* ---- meter: measures one point */

struct sla_shot {
        uint64_t concurrency, requests, isl, osl, warmup;
        uint64_t seed;
        bool twice; /* the first run fills the prefix cache and is not counted */
};
struct sla_point {
        double ttft_avg, ttft_max, itl_avg; /* ms; below 0: none */
        double output_throughput;           /* tokens/s */
        double seconds;                     /* that it took */
        uint64_t requests, errors;
        const char *invalid; /* the client was the bottleneck; NULL: it was not */
};
/* With the load generator; artifacts of the point go to DIR (NULL: nowhere). */
int sla_measure(const struct sla_target_config *c, const struct sla_server *s, const struct sla_shot *shot,
                const char *dir, struct sla_point *ret, struct err *err) _must_check_;
/* The same point in no time, from the model of a simulation: what sla_measure() must find. */
int sla_measure_truth(const struct sla_server *s, const struct sla_shot *shot, struct sla_point *ret,
                      struct err *err) _must_check_;

/* ---- run.c */

struct sla_run {
        const struct sla_config *config;
        struct sla_target *target;
        struct sla_target_config services;
        bool truth;                    /* a simulation, in virtual time */
        struct run_reporter *reporter; /* NULL: nobody is told */
        const char *dir;               /* the run directory */
        const char *request;           /* whose run it is, for names; NULL: nobody's */
        const char *
                what; /* which server, model or command the target has: a checkpoint of another is not used */
};
/* Goes through all phases; 0: done. Below 0: it failed, or was told to stop (E_CANCELED; all is taken down). */
int sla_run(const struct sla_run *r, struct err *err) _must_check_;

/* ---- outputs (output.c, npz.c, svg.c, html.c), from what was measured */

struct sla_results {
        const struct sla_config *config;
        const char *target;
        const char *request; /* whose run it is: part of the ConfigMap's name; NULL: nobody's */
        bool simulated;
        struct sla_row *prefill, *decode;
        size_t n_prefill, n_decode;
        struct sla_choice chosen_prefill, chosen_decode;
        double *prefill_isl, *prefill_ttft, *prefill_throughput; /* n_curve of them */
        size_t n_curve;
        bool *prefill_estimated; /* n_curve, as in sla_sample; NULL: all are measured */
        struct sla_sample *surface;
        size_t n_surface;
        uint64_t max_kv_tokens;
        bool has_replicas;
        struct sla_replicas replicas;
        unsigned grown_budget; /* GPUs that are told to the planner where nobody said a budget; 0: none are */
        const char **notes;    /* what was skipped and why, infeasible targets: one sentence each */
        size_t n_notes;
        uint64_t points_measured, points_saved, deployments,
                deployments_saved; /* saved: by --search adaptive */
};
/* Into DIR: config_with_planner.yaml, disagg_config.yaml, raw_data.json and .npz below selected_*_interpolation/, the pictures, report.html,
 * result.json last. With use_mocker mocker_config_with_planner.yaml, too. BASE: the disaggregated deployment to start from. */
int sla_write(const struct sla_results *r, const struct json *base, const char *dir, struct err *err)
        _must_check_;
/* The default disaggregated deployment of a backend, in the arena; NULL: the backend is not known. */
struct json *sla_base_deployment(struct arena *a, const char *backend, const char *model);
/* Whether BASE (which may be a person's own) has what the two functions below change. */
int sla_base_check(const struct json *base, const char *backend, struct err *err) _must_check_;
/* What the configuration says of every deployment: dgdImage, modelCache, and more GPUs than a node has spread over several. A
 * second time changes nothing. sla_write() does it by itself; for a candidate it is done after sla_candidate_deployment(). */
void sla_deployment_prepare(struct arena *a, struct json *dgd, const struct sla_config *c);
/* BASE turned into one aggregated server of CANDIDATE for ROLE, named NAME. NULL: sla_base_check() says why. */
struct json *sla_candidate_deployment(struct arena *a, const struct json *base, const char *backend,
                                      const struct sla_candidate *c, enum sla_role role, const char *name);
