/*
 * PrefillInterpolation and DecodeInterpolation: the chosen mappings at many lengths and concurrencies, for the planner.
 *
 * A point that cannot be measured is left out and told; LOST_MAX of them end the phase with what there is.
 */
#include "probe/sla/run_internal.h"

enum { LOST_MAX = 3, CURVE_MIN = 3, RESTARTS = 1 };

/* One interpolation: what is asked of the server, how far it is. */
struct curves {
        struct profiling *w;
        struct stage stage;
        size_t n, asked, measured, lost;
        char reason[SLA_REASON_MAX + 1]; /* of the first that was lost */
};

/* 0: measured. 1: lost. Below 0: stop. */
static int ask(struct curves *c, const struct sla_shot *shot, const char *sub_phase, struct sla_point *ret,
               struct err *err)
{
        c->stage.step = (int64_t)++c->asked;
        if (c->lost >= LOST_MAX)
                return 1;
        if (stage_point(&c->stage, shot, c->stage.step, sub_phase, ret, err) == 0) {
                c->measured++;
                return 0;
        }
        if (err->code == E_CANCELED)
                return -1;
        if (c->lost++ == 0)
                snprintf(c->reason, sizeof(c->reason), "%.*s", SLA_REASON_MAX, err->text);
        return 1;
}

static void curves_end(struct curves *c, const char *what)
{
        struct profiling *w = c->w;

        stage_end(&c->stage, (int64_t)c->n);
        w->results.deployments += checkpoint_tried(w->checkpoint, c->stage.phase, c->stage.c->label);
        if (c->lost > 0)
                profiling_note(w, "%s: %zu of %zu points of %s could not be measured: %s", what,
                               c->n - MIN(c->n, c->measured), c->n, c->stage.c->label, c->reason);
        else if (w->config->adaptive)
                w->results.points_saved += c->n - MIN(c->n, c->measured);
}

static bool usable(struct profiling *w, const struct curves *c, size_t n, const char *what)
{
        if (n >= CURVE_MIN)
                return true;
        profiling_note(w, "%s: %zu points of %s are too few for a curve, there is none for the planner", what,
                       n, c->stage.c->label);
        return false;
}

/* ---- prefill */

static int measure_curve(struct curves *c, struct adaptive_curve *curve, struct err *err)
{
        size_t i;

        while (adaptive_curve_next(curve, &i)) {
                struct sla_shot shot = stage_prefill_shot(c->stage.c, c->w->prefill_isls[i]);
                double y[ADAPTIVE_QUANTITIES] = {0};
                struct sla_point point;
                char sub_phase[64];
                int ok;

                snprintf(sub_phase, sizeof(sub_phase), "Benchmarking ISL %llu", (unsigned long long)shot.isl);
                ok = ask(c, &shot, sub_phase, &point, err);
                if (ok < 0)
                        return -1;
                y[0] = ok == 0 ? stage_ttft(c->stage.c, &point) : -1;
                if (y[0] > 0)
                        adaptive_curve_add(curve, y);
                else
                        adaptive_curve_lose(curve);
        }
        return 0;
}

static void keep_curve(struct profiling *w, const struct curves *c, const struct adaptive_curve *curve)
{
        struct sla_results *r = &w->results;

        r->prefill_isl = arena_new_array(&w->arena, double, curve->n);
        r->prefill_ttft = arena_new_array(&w->arena, double, curve->n);
        r->prefill_throughput = arena_new_array(&w->arena, double, curve->n);
        r->prefill_estimated = w->config->adaptive ? arena_new_array(&w->arena, bool, curve->n) : NULL;
        for (size_t i = 0; i < curve->n; i++) {
                double ttft = curve->y[i][0];

                if (curve->state[i] == ADAPTIVE_LOST || curve->state[i] == ADAPTIVE_OPEN)
                        continue;
                if (r->prefill_estimated)
                        r->prefill_estimated[r->n_curve] = curve->state[i] == ADAPTIVE_ESTIMATED;
                r->prefill_isl[r->n_curve] = curve->x[i];
                r->prefill_ttft[r->n_curve] = ttft;
                r->prefill_throughput[r->n_curve++] = sla_prefill_throughput(curve->x[i], ttft, c->stage.c);
        }
        if (!usable(w, c, r->n_curve, "prefill interpolation"))
                r->n_curve = 0;
}

int profiling_prefill_curve(struct profiling *w, struct err *err)
{
        const struct sla_candidate *chosen = &w->prefill.v[w->results.chosen_prefill.index].candidate;
        struct curves c = {
                .w = w,
                .stage = {.w = w,
                          .phase = "PrefillInterpolation",
                          .role = SLA_PREFILL,
                          .c = chosen,
                          .restarts = RESTARTS,
                          .step = 1},
                .n = w->n_prefill_isls,
        };
        double x[SLA_GRID_MAX];
        struct adaptive_curve curve;
        int ok;

        profiling_phase(w, c.stage.phase, (int64_t)c.n, "Building TTFT curve for %u GPU config",
                        chosen->gpus);
        profiling_tell(w, chosen, 1, NULL);
        for (size_t i = 0; i < c.n; i++)
                x[i] = (double)w->prefill_isls[i];
        adaptive_curve_init(&curve, &w->arena, x, c.n, !w->config->adaptive);
        ok = measure_curve(&c, &curve, err);
        curves_end(&c, "prefill interpolation");
        if (ok < 0)
                return -1;
        keep_curve(w, &c, &curve);
        return 0;
}

/* ---- decode: rows of equal ISL. Of a point ITL, and concurrency / throughput, are straight lines over concurrency, and at
 * equal concurrency over ISL, as long as nothing new happens in between. */

struct surface_row {
        uint64_t isl, grid[SLA_GRID_MAX];
        struct adaptive_curve curve;
};
struct surface {
        struct curves c;
        struct surface_row *rows;
        size_t n;
};

static int measure_point(struct surface *s, struct surface_row *row, size_t i, struct err *err)
{
        struct profiling *w = s->c.w;
        struct sla_shot shot = stage_decode_shot(s->c.stage.c, row->isl, w->config->decode_osl, row->grid[i]);
        struct sla_point point;
        char sub_phase[96];
        int ok;

        snprintf(sub_phase, sizeof(sub_phase), "Benchmarking batch size %llu at ISL %llu",
                 (unsigned long long)shot.concurrency, (unsigned long long)shot.isl);
        ok = ask(&s->c, &shot, sub_phase, &point, err);
        if (ok < 0)
                return -1;
        row->curve.at = i;
        if (ok == 0) {
                double per_gpu = point.output_throughput / s->c.stage.c->gpus;
                const double y[ADAPTIVE_QUANTITIES] = {point.itl_avg, (double)row->grid[i] / per_gpu};

                adaptive_curve_add(&row->curve, y);
        } else
                adaptive_curve_lose(&row->curve);
        return 0;
}

static int measure_row(struct surface *s, struct surface_row *row, struct err *err)
{
        size_t i;

        while (adaptive_curve_next(&row->curve, &i))
                if (measure_point(s, row, i, err) < 0)
                        return -1;
        return 0;
}

/* What the rows FROM and TO say of row AT at its concurrency X. */
static bool predict(const struct surface *s, size_t from, size_t to, size_t at, double x,
                    double y[ADAPTIVE_QUANTITIES])
{
        double before[ADAPTIVE_QUANTITIES], behind[ADAPTIVE_QUANTITIES];
        double share = ((double)s->rows[at].isl - (double)s->rows[from].isl) /
                       ((double)s->rows[to].isl - (double)s->rows[from].isl);

        if (!adaptive_curve_at(&s->rows[from].curve, x, before) ||
            !adaptive_curve_at(&s->rows[to].curve, x, behind))
                return false;
        for (size_t q = 0; q < ADAPTIVE_QUANTITIES; q++)
                y[q] = before[q] + share * (behind[q] - before[q]);
        return true;
}

static void estimate_rows(struct surface *s, size_t from, size_t to)
{
        for (size_t r = from + 1; r < to; r++) {
                struct adaptive_curve *c = &s->rows[r].curve;

                for (size_t i = 0; i < c->n; i++)
                        if (c->state[i] == ADAPTIVE_OPEN)
                                c->state[i] = predict(s, from, to, r, c->x[i], c->y[i]) ? ADAPTIVE_ESTIMATED
                                                                                        : ADAPTIVE_LOST;
        }
}

/* Whether the middle row's highest point is where the rows around it say: 1; 0: it is not; below 0: stop. */
static int row_predicted(struct surface *s, size_t from, size_t to, size_t middle, struct err *err)
{
        struct surface_row *row = &s->rows[middle];
        size_t top = row->curve.n - 1;
        double y[ADAPTIVE_QUANTITIES];

        if (!predict(s, from, to, middle, row->curve.x[top], y))
                return 0;
        if (measure_point(s, row, top, err) < 0)
                return -1;
        return row->curve.state[top] == ADAPTIVE_MEASURED && adaptive_close(y[0], row->curve.y[top][0]) &&
               adaptive_close(y[1], row->curve.y[top][1]);
}

/* Both ends of the span are measured. */
static int measure_between(struct surface *s, size_t from, size_t to, struct err *err)
{
        size_t middle = from + (to - from) / 2;
        int predicted;

        if (to - from < 2)
                return 0;
        predicted = row_predicted(s, from, to, middle, err);
        if (predicted < 0)
                return -1;
        if (predicted) {
                estimate_rows(s, from, to);
                return 0;
        }
        return measure_row(s, &s->rows[middle], err) < 0 || measure_between(s, from, middle, err) < 0 ||
                               measure_between(s, middle, to, err) < 0
                       ? -1
                       : 0;
}

static int measure_surface(struct surface *s, struct err *err)
{
        if (s->c.w->config->adaptive && s->n > 0)
                return measure_row(s, &s->rows[0], err) < 0 || measure_row(s, &s->rows[s->n - 1], err) < 0 ||
                                       measure_between(s, 0, s->n - 1, err) < 0
                               ? -1
                               : 0;
        for (size_t r = 0; r < s->n; r++)
                if (measure_row(s, &s->rows[r], err) < 0)
                        return -1;
        return 0;
}

/* The rows that the KV cache has room for. */
static void lay_out(struct surface *s, uint64_t kv)
{
        struct profiling *w = s->c.w;

        s->rows = arena_new_array(&w->arena, struct surface_row, w->n_decode_isls);
        for (size_t r = 0; r < w->n_decode_isls; r++) {
                struct surface_row *row = &s->rows[s->n];
                double x[SLA_GRID_MAX];
                size_t n;

                row->isl = w->decode_isls[r];
                n = sla_request_grid(s->c.stage.c->attn_dp, kv / (row->isl + w->config->decode_osl),
                                     w->config->decode_granularity, row->grid);
                if (n == 0)
                        break;
                for (size_t i = 0; i < n; i++)
                        x[i] = (double)row->grid[i];
                adaptive_curve_init(&row->curve, &w->arena, x, n, !w->config->adaptive);
                s->n++;
                s->c.n += n;
        }
}

static void keep_surface(struct profiling *w, const struct surface *s, uint64_t kv)
{
        struct sla_results *r = &w->results;

        r->surface = arena_new_array(&w->arena, struct sla_sample, MAX(s->c.n, (size_t)1));
        r->max_kv_tokens = kv;
        for (size_t k = 0; k < s->n; k++) {
                const struct surface_row *row = &s->rows[k];
                double context = (double)row->isl + (double)w->config->decode_osl / 2;

                for (size_t i = 0; i < row->curve.n; i++) {
                        if (row->curve.state[i] != ADAPTIVE_MEASURED &&
                            row->curve.state[i] != ADAPTIVE_ESTIMATED)
                                continue;
                        r->surface[r->n_surface++] = (struct sla_sample){
                                .kv_usage = context * row->curve.x[i] / (double)kv,
                                .context = context,
                                .itl = row->curve.y[i][0],
                                .throughput = row->curve.x[i] / row->curve.y[i][1],
                                .estimated = row->curve.state[i] == ADAPTIVE_ESTIMATED,
                        };
                }
        }
        if (!usable(w, &s->c, r->n_surface, "decode interpolation"))
                r->n_surface = 0;
}

int profiling_decode_surface(struct profiling *w, struct err *err)
{
        const struct sla_row *chosen = &w->decode.v[w->results.chosen_decode.index];
        struct surface s = {.c = {
                                    .w = w,
                                    .stage = {.w = w,
                                              .phase = "DecodeInterpolation",
                                              .role = SLA_DECODE,
                                              .c = &chosen->candidate,
                                              .restarts = RESTARTS,
                                              .step = 1},
                            }};
        int ok;

        lay_out(&s, chosen->kv_tokens);
        profiling_phase(w, s.c.stage.phase, (int64_t)s.c.n, "Building throughput curves for %u GPU config",
                        chosen->candidate.gpus);
        profiling_tell(w, &chosen->candidate, 1, NULL);
        ok = measure_surface(&s, err);
        curves_end(&s.c, "decode interpolation");
        if (ok < 0)
                return -1;
        keep_surface(w, &s, chosen->kv_tokens);
        return 0;
}
