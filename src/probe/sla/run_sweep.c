/*
 * PrefillSweep and DecodeSweep: each candidate, measured or told why not.
 */
#include "probe/sla/run_internal.h"

static const char *role_name(enum sla_role role)
{
        return role == SLA_PREFILL ? "prefill" : "decode";
}

/* A candidate, or its rest, is lost. Below 0: the whole run is to stop. */
static int lost(struct profiling *w, const struct stage *s, size_t rows, const struct err *why)
{
        if (why->code == E_CANCELED)
                return -1;
        if (!w->first_reason)
                w->first_reason = arena_printf(&w->arena, "%s: %s", s->c->label, why->text);
        if (rows)
                profiling_note(w, "%s: %s is measured only as far as %zu points: %s", role_name(s->role),
                               s->c->label, rows, why->text);
        else
                profiling_note(w, "%s: %s was skipped: %s", role_name(s->role), s->c->label, why->text);
        return 0;
}

static void count_deployment(struct profiling *w, const struct stage *s)
{
        if (checkpoint_tried(w->checkpoint, s->phase, s->c->label))
                w->results.deployments++;
}

/* ---- prefill: one point a candidate */

static int prefill_one(struct profiling *w, struct stage *s, int64_t step, struct err *err)
{
        struct sla_shot shot = stage_prefill_shot(s->c, w->config->isl);
        struct sla_point point;
        struct sla_row row = {.candidate = *s->c, .concurrency = shot.concurrency};

        if (stage_point(s, &shot, step, "Benchmarking", &point, err) < 0)
                return -1;
        row.latency = stage_ttft(s->c, &point);
        if (row.latency <= 0)
                return err_set(err, E_SERVER, "its burst of %llu requests gives no time to first token",
                               (unsigned long long)shot.requests);
        row.throughput = sla_prefill_throughput((double)w->config->isl, row.latency, s->c);
        *vec_push(&w->prefill) = row;
        profiling_consider(w, &row, w->config->ttft);
        return 0;
}

int profiling_prefill_sweep(struct profiling *w, struct err *err)
{
        profiling_phase(w, "PrefillSweep", (int64_t)w->n_candidates,
                        "Profiling prefill across %zu GPU configurations", w->n_candidates);
        profiling_tell(w, NULL, 0, NULL);
        for (size_t i = 0; i < w->n_candidates; i++) {
                const struct sla_candidate *c = &w->candidates[i];
                int64_t step = (int64_t)i + 1;
                struct stage s = {.w = w, .phase = "PrefillSweep", .role = SLA_PREFILL, .c = c, .step = step};
                int ok;

                w->message = arena_printf(&w->arena, "Profiling prefill with %u GPUs (%s)", c->gpus,
                                          c->label);
                if (w->config->adaptive && adaptive_hopeless(w->prefill.v, w->prefill.n, w->prefill.v,
                                                             w->prefill.n, w->config->ttft, c)) {
                        w->results.deployments_saved++;
                        w->results.points_saved++;
                        continue;
                }
                ok = prefill_one(w, &s, step, err);
                stage_end(&s, step);
                count_deployment(w, &s);
                if (ok < 0 && lost(w, &s, 0, err) < 0)
                        return -1;
        }
        if (w->prefill.n == 0)
                return err_set(err, E_SERVER, "Profiler failed: no prefill results produced: %s",
                               w->first_reason ? w->first_reason : "there was no candidate");
        return 0;
}

/* ---- decode: a grid of concurrencies a candidate */

struct decode {
        struct profiling *w;
        struct stage *stage;
        uint64_t kv, grid[SLA_GRID_MAX];
        size_t n;
        int64_t base; /* steps before this candidate's */
        struct sla_row rows[SLA_GRID_MAX];
        bool measured[SLA_GRID_MAX];
        size_t n_measured;
};

static int decode_point(struct decode *d, size_t i, struct err *err)
{
        const struct sla_config *config = d->w->config;
        struct sla_shot shot = stage_decode_shot(d->stage->c, config->isl, config->osl, d->grid[i]);
        struct sla_point point;
        char sub_phase[64];

        snprintf(sub_phase, sizeof(sub_phase), "Benchmarking batch size %llu",
                 (unsigned long long)d->grid[i]);
        if (stage_point(d->stage, &shot, d->base + (int64_t)d->n_measured + 1, sub_phase, &point, err) < 0)
                return -1;
        d->rows[i] = (struct sla_row){
                .candidate = *d->stage->c,
                .latency = point.itl_avg,
                .throughput = point.output_throughput / d->stage->c->gpus,
                .concurrency = d->grid[i],
                .kv_tokens = d->kv,
        };
        d->measured[i] = true;
        d->n_measured++;
        profiling_consider(d->w, &d->rows[i], config->itl);
        return 0;
}

static int decode_all(struct decode *d, struct err *err)
{
        for (size_t i = 0; i < d->n; i++)
                if (decode_point(d, i, err) < 0)
                        return -1;
        return 0;
}

static double best_so_far(const struct profiling *w)
{
        return w->has_best && w->best.latency <= w->config->itl ? w->best.throughput : -1;
}

static int decode_search(struct decode *d, struct err *err)
{
        struct adaptive_search search;
        size_t i;

        adaptive_search_init(&search, d->n, d->w->config->itl, best_so_far(d->w));
        while (adaptive_search_next(&search, &i)) {
                if (decode_point(d, i, err) < 0)
                        return -1;
                adaptive_search_add(&search, d->rows[i].latency, d->rows[i].throughput);
        }
        d->w->results.points_saved += d->n - d->n_measured;
        return 0;
}

/* RET_TOP: the row of its highest concurrency, if that was measured. */
static int decode_one(struct decode *d, struct err *err)
{
        const struct sla_config *config = d->w->config;
        int ok;

        if (stage_kv(d->stage, &d->kv, err) < 0)
                return -1;
        d->n = sla_request_grid(d->stage->c->attn_dp, d->kv / (config->isl + config->osl),
                                config->decode_granularity, d->grid);
        if (d->n == 0)
                return err_set(err, E_REFUSED,
                               "its KV cache of %llu tokens does not hold a request of %llu + %llu",
                               (unsigned long long)d->kv, (unsigned long long)config->isl,
                               (unsigned long long)config->osl);
        ok = config->adaptive ? decode_search(d, err) : decode_all(d, err);
        /* Rows by growing concurrency, whatever order they were measured in. */
        for (size_t i = 0; i < d->n; i++)
                if (d->measured[i])
                        *vec_push(&d->w->decode) = d->rows[i];
        return ok;
}

static int decode_candidate(struct profiling *w, size_t i, struct sla_row *tops, size_t *n_tops,
                            struct err *err)
{
        const struct sla_candidate *c = &w->candidates[i];
        int64_t grid = (int64_t)w->config->decode_granularity, base = (int64_t)i * grid;
        struct stage s = {.w = w, .phase = "DecodeSweep", .role = SLA_DECODE, .c = c, .step = base + 1};
        struct decode *d;
        int ok;

        w->message = arena_printf(&w->arena, "Profiling decode with %u GPUs, %s", c->gpus, c->label);
        if (w->config->adaptive &&
            adaptive_hopeless(w->decode.v, w->decode.n, tops, *n_tops, w->config->itl, c)) {
                w->results.deployments_saved++;
                w->results.points_saved += w->config->decode_granularity;
                return 0;
        }
        d = arena_new(&w->arena, struct decode);
        *d = (struct decode){.w = w, .stage = &s, .base = base};
        ok = decode_one(d, err);
        stage_end(&s, base + grid);
        count_deployment(w, &s);
        if (d->n > 0 && d->measured[d->n - 1])
                tops[(*n_tops)++] = d->rows[d->n - 1];
        return ok < 0 ? lost(w, &s, d->n_measured, err) : 0;
}

int profiling_decode_sweep(struct profiling *w, struct err *err)
{
        struct sla_row *tops = arena_new_array(&w->arena, struct sla_row, w->n_candidates);
        size_t n_tops = 0;

        profiling_phase(w, "DecodeSweep", (int64_t)(w->n_candidates * w->config->decode_granularity),
                        "Profiling decode across %zu GPU configurations", w->n_candidates);
        profiling_tell(w, NULL, 0, NULL);
        w->first_reason = NULL;
        for (size_t i = 0; i < w->n_candidates; i++)
                if (decode_candidate(w, i, tops, &n_tops, err) < 0)
                        return -1;
        if (w->decode.n == 0)
                return err_set(err, E_SERVER, "Profiler failed: no decode results produced: %s",
                               w->first_reason ? w->first_reason : "there was no candidate");
        return 0;
}
