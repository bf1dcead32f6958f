/*
 * run_internal.h - the runner's insides.
 *
 *   checkpoint.c   what was measured, on disk
 *   stage.c        one deployment of one candidate in one phase, brought up when a point of it is wanted that is not known
 *   run.c          the phases; run_sweep.c the two sweeps, run_curves.c the two interpolations, run_finish.c the rest
 *   adaptive.c     which points need not be measured; pure
 */
#pragma once

#include "probe/sla/sla.h"

enum {
        SLA_POINTS_MAX = 4000,           /* of a run: what a checkpoint has room for */
        SLA_CHECKPOINT_MAX = 880 * 1024, /* bytes */
        SLA_REASON_MAX = 300,            /* bytes of why a candidate failed */
        SLA_ERRORS_PERCENT = 5,          /* of its requests may fail, and a point still counts */
        SLA_TRIES = 3,                   /* of a point while the client was the bottleneck */
        SLA_REQUEST_TIMEOUT_SEC = 1800,
};

/* ---- checkpoint.c */

struct checkpoint;
struct checkpoint_key {
        const char *phase, *label;
        uint64_t isl, concurrency; /* both 0: the candidate as a whole, for failures */
};

/* Reads what is in DIR (NULL: nothing is kept). One that belongs to something else than WHAT, or cannot be read, is said on
 * LOG and not used. */
struct checkpoint *checkpoint_open(const char *dir, const char *what, const struct log *log);
void checkpoint_free(struct checkpoint *c);
/* Removes what a killed life of the run had not finished writing, in DIR and DEPTH levels below. */
void checkpoint_tidy(const char *dir, unsigned depth);
const struct sla_point *checkpoint_point(const struct checkpoint *c, const struct checkpoint_key *key);
const char *checkpoint_failure(const struct checkpoint *c, const struct checkpoint_key *key);
uint64_t checkpoint_kv(const struct checkpoint *c, const char *label); /* 0: not known */
bool checkpoint_tried(const struct checkpoint *c, const char *phase, const char *label);
size_t checkpoint_points(const struct checkpoint *c);
/* Each is on disk when it returns 0. */
int checkpoint_add_point(struct checkpoint *c, const struct checkpoint_key *key, const struct sla_point *p,
                         struct err *err) _must_check_;
int checkpoint_add_failure(struct checkpoint *c, const struct checkpoint_key *key, const char *reason,
                           struct err *err) _must_check_;
int checkpoint_add_kv(struct checkpoint *c, const char *label, uint64_t kv, struct err *err) _must_check_;
int checkpoint_choose(struct checkpoint *c, const char *prefill, const char *decode, struct err *err)
        _must_check_;
void checkpoint_write(const struct checkpoint *c, struct buf *out); /* the file's text */
DEFINE_CLEANUP_PTR(struct checkpoint *, checkpoint_free)

/* ---- run.c: one run */

struct profiling {
        const struct sla_run *run;
        const struct sla_config *config;
        struct arena arena; /* of the results */
        struct checkpoint *checkpoint;
        struct run_plan plan;
        struct sla_candidate candidates[SLA_CANDIDATES_MAX];
        size_t n_candidates;
        uint64_t prefill_isls[SLA_GRID_MAX], decode_isls[SLA_GRID_MAX];
        size_t n_prefill_isls, n_decode_isls;
        struct sla_results results;
        VEC(struct sla_row) prefill, decode;
        VEC(const char *) notes;
        const char *first_reason; /* of the first candidate that failed */
        bool broken;              /* what is measured cannot be kept: the run ends as failed */
        /* where the run is */
        const char *phase, *message;
        int64_t step, total;
        bool has_best;
        struct sla_row best; /* of this phase's so far */
        double target;       /* ms, that it was judged by */
};

void profiling_note(struct profiling *w, const char *fmt, ...) _printf_(2, 3);
/* Phase, message and steps from now on; the step never goes back within a phase. C may be NULL. */
void profiling_phase(struct profiling *w, const char *phase, int64_t total, const char *fmt, ...)
        _printf_(4, 5);
/* A row of the sweep under way has been measured: it may be the best so far, by the same rule that picks one at the end. */
void profiling_consider(struct profiling *w, const struct sla_row *row, double target_ms);
void profiling_tell(struct profiling *w, const struct sla_candidate *c, int64_t step, const char *sub_phase);
bool profiling_stopped(const struct profiling *w);
/* "prefill_4gpus_tp4" */
const char *profiling_candidate_dir(struct arena *a, enum sla_role role, const struct sla_candidate *c);

int profiling_prefill_sweep(struct profiling *w, struct err *err) _must_check_;
int profiling_decode_sweep(struct profiling *w, struct err *err) _must_check_;
int profiling_prefill_curve(struct profiling *w, struct err *err) _must_check_;
int profiling_decode_surface(struct profiling *w, struct err *err) _must_check_;
int profiling_select(struct profiling *w, struct err *err) _must_check_;
int profiling_select_dry(struct profiling *w, struct err *err) _must_check_;
int profiling_write_configs(struct profiling *w, struct err *err) _must_check_;
int profiling_generate(struct profiling *w, struct err *err) _must_check_;

/* ---- stage.c */

struct stage {
        struct profiling *w;
        const char *phase;
        enum sla_role role;
        const struct sla_candidate *c;
        unsigned restarts; /* how many more times it may be brought up after a failure */
        int64_t step;      /* what is told while it comes up */
        /* private: */
        bool up;
        struct sla_server server;
};

/*
 * All of these are 0, or below 0: E_CANCELED stops the run, anything else costs this point or candidate and is in the
 * checkpoint already.
 */
/* The KV cache's size, above 0; brings the server up if it is not known. */
int stage_kv(struct stage *s, uint64_t *ret, struct err *err) _must_check_;
/* SHOT's numbers, from the checkpoint or from the server. SUB_PHASE is told at STEP when it is measured. */
int stage_point(struct stage *s, const struct sla_shot *shot, int64_t step, const char *sub_phase,
                struct sla_point *ret, struct err *err) _must_check_;
/* Takes the server down if it is up; tells Cleanup at STEP. */
void stage_end(struct stage *s, int64_t step);

/* The shots that upstream's profiler fires. */
struct sla_shot stage_prefill_shot(const struct sla_candidate *c, uint64_t isl);
struct sla_shot stage_decode_shot(const struct sla_candidate *c, uint64_t isl, uint64_t osl,
                                  uint64_t concurrency);
/* TTFT of a prefill point: of one request, or of a burst. Below 0: it has none. */
double stage_ttft(const struct sla_candidate *c, const struct sla_point *p);

/* ---- adaptive.c: exact as long as ITL and throughput of one candidate grow with concurrency, and throughput per GPU, once
 * it falls from one size of a mapping to the next, goes on falling */

#define ADAPTIVE_TOLERANCE 0.02

/* Whether C cannot win any more: ROWS are those so far, TARGET of their latency. TOPS: rows at each candidate's highest
 * concurrency (prefill: the same as ROWS). */
bool adaptive_hopeless(const struct sla_row *rows, size_t n, const struct sla_row *tops, size_t n_tops,
                       double target, const struct sla_candidate *c);

/* The largest concurrency of a grid that meets the target: top first, then by halves. */
struct adaptive_search {
        size_t n, low, high; /* low: how many are known to meet it; high: the first that is known not to */
        double target,
                best; /* best: throughput of the best row so far that meets the target; below 0: none */
        bool begun, done;
        size_t at;
};
void adaptive_search_init(struct adaptive_search *s, size_t n, double target, double best);
bool adaptive_search_next(struct adaptive_search *s, size_t *ret); /* false: nothing more is needed */
void adaptive_search_add(struct adaptive_search *s, double latency, double throughput);

/* A curve of N points, Y of two quantities each (the second may be all 0): ends and middles, until a
 * straight line predicts a middle, or a parabola those of its halves; what lies between is estimated by it. */
enum { ADAPTIVE_QUANTITIES = 2 };
struct adaptive_curve {
        size_t n;
        double *x, (*y)[ADAPTIVE_QUANTITIES];
        enum adaptive_state { ADAPTIVE_OPEN, ADAPTIVE_MEASURED, ADAPTIVE_ESTIMATED, ADAPTIVE_LOST } * state;
        struct adaptive_span {
                size_t from, to;
        } * spans; /* yet to be looked at */
        size_t n_spans, at;
        bool whole; /* measure everything */
};
void adaptive_curve_init(struct adaptive_curve *c, struct arena *a, const double *x, size_t n, bool whole);
bool adaptive_curve_next(struct adaptive_curve *c, size_t *ret);
void adaptive_curve_add(struct adaptive_curve *c, const double y[ADAPTIVE_QUANTITIES]);
void adaptive_curve_lose(struct adaptive_curve *c); /* the point that was asked for could not be measured */
/* Y at X by straight lines through what was measured, beyond its ends, too; false: fewer than two are. */
bool adaptive_curve_at(const struct adaptive_curve *c, double x, double y[ADAPTIVE_QUANTITIES]);
bool adaptive_close(double predicted, double measured);
