/*
 * The pictures: both sweeps with their targets and the choice, what a request costs, and the curves between the points.
 */
#include <math.h>

#include "probe/sla/output_internal.h"
#include "probe/sla/svg.h"

enum { CURVE_STEPS = 120, MODEL_SHOWN = 60 };

/* "model on vllm, 3 000 tokens in, 500 out"; a long name is cut. */
static const char *note_of(struct arena *a, const struct sla_results *r)
{
        const struct sla_config *c = r->config;
        size_t n = strlen(c->model), cut = utf8_cut(c->model, n, MODEL_SHOWN);

        return arena_printf(a, "%.*s%s on %s, %s tokens in, %s out", (int)cut, c->model,
                            cut < n ? "\xe2\x80\xa6" : "", c->backend, sla_figure(a, (double)c->isl),
                            sla_figure(a, (double)c->osl));
}

static struct svg_plot plot_of(struct arena *a, const struct sla_results *r, const char *title,
                               const char *x_label, const char *y_label)
{
        return (struct svg_plot){.title = title,
                                 .note = note_of(a, r),
                                 .x_label = x_label,
                                 .y_label = y_label,
                                 .simulated = r->simulated};
}

static struct svg_target at_most(struct arena *a, double value)
{
        return (struct svg_target){SVG_AT_MOST, value, arena_printf(a, "target %s ms", sla_figure(a, value))};
}

/* ---- sweeps */

/* Those rows of one name, which KEY gives; LABELS: their mappings beside the marks. */
static struct svg_series series_of(struct arena *a, const struct sla_row *rows, size_t n, const char *name,
                                   const char *(*key)(const struct sla_row *), bool labels)
{
        double *x = arena_new_array(a, double, n), *y = arena_new_array(a, double, n);
        const char **texts = arena_new_array(a, const char *, n);
        struct svg_series s = {.name = name, .x = x, .y = y, .marks = true, .labels = labels ? texts : NULL};

        for (size_t i = 0; i < n; i++) {
                if (!streq(key(&rows[i]), name))
                        continue;
                x[s.n] = rows[i].latency;
                y[s.n] = rows[i].throughput;
                texts[s.n++] = rows[i].candidate.label;
        }
        return s;
}

static const char *mapping_name(const struct sla_row *row)
{
        return sim_mappings[row->candidate.mapping];
}

static const char *label_name(const struct sla_row *row)
{
        return row->candidate.label;
}

/* A series a name, in the order in which the names come. */
static size_t all_series(struct arena *a, const struct sla_row *rows, size_t n,
                         const char *(*key)(const struct sla_row *), bool labels, struct svg_series *out)
{
        size_t n_out = 0;

        for (size_t i = 0; i < n && n_out < SLA_CANDIDATES_MAX; i++) {
                bool seen = false;

                for (size_t k = 0; k < n_out; k++)
                        seen = seen || streq(out[k].name, key(&rows[i]));
                if (seen)
                        continue;
                out[n_out] = series_of(a, rows, n, key(&rows[i]), key, labels);
                out[n_out].line = !labels;
                out[n_out].tone = (unsigned)n_out;
                n_out++;
        }
        return n_out;
}

static void choose(struct svg_plot *p, const struct sla_row *row, const char *text)
{
        p->has_chosen = true;
        p->chosen_x = row->latency;
        p->chosen_y = row->throughput;
        p->chosen = text;
}

static bool draw_prefill(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Prefill: time to first token and throughput of each mapping",
                                    "Time to first token (ms)", "Prefill throughput (tokens/s/GPU)");
        struct svg_series series[SLA_CANDIDATES_MAX];
        const struct sla_row *row = sla_chosen_row(r, SLA_PREFILL);

        if (r->n_prefill == 0)
                return false;
        p.series = series;
        p.n = all_series(a, r->prefill, r->n_prefill, mapping_name, true, series);
        p.legend = "Mapping";
        p.x_target = at_most(a, r->config->ttft);
        p.log_x = true;
        if (row)
                choose(&p, row, arena_printf(a, "chosen: %s", row->candidate.label));
        svg_draw(&p, out);
        return true;
}

static bool draw_decode(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Decode: time between tokens and throughput, by concurrency",
                                    "Inter-token latency (ms)", "Decode throughput (tokens/s/GPU)");
        struct svg_series series[SLA_CANDIDATES_MAX];
        const struct sla_row *row = sla_chosen_row(r, SLA_DECODE);

        if (r->n_decode == 0)
                return false;
        p.series = series;
        p.n = all_series(a, r->decode, r->n_decode, label_name, false, series);
        p.legend = "Mapping";
        p.x_target = at_most(a, r->config->itl);
        p.log_x = true;
        if (row)
                choose(&p, row,
                       arena_printf(a, "chosen: %s, %llu at once", row->candidate.label,
                                    (unsigned long long)row->concurrency));
        svg_draw(&p, out);
        return true;
}

/* ---- cost */

struct front {
        double *x, *y;
        size_t n;
};

/* The rows that no other beats. */
static struct front front_of(struct arena *a, const struct sla_row *rows, size_t n)
{
        double *x = arena_new_array(a, double, n), *y = arena_new_array(a, double, n);
        size_t *order = arena_new_array(a, size_t, n);
        struct front f = {.x = arena_new_array(a, double, n), .y = arena_new_array(a, double, n)};

        for (size_t i = 0; i < n; i++) {
                x[i] = rows[i].latency;
                y[i] = rows[i].throughput;
        }
        f.n = sla_pareto(x, y, n, order);
        for (size_t i = 0; i < f.n; i++) {
                f.x[i] = x[order[i]];
                f.y[i] = y[order[i]];
        }
        return f;
}

/* One prefill's costs with every decode. */
static struct svg_series cost_series(struct arena *a, const struct sla_results *r, double ttft,
                                     double throughput, const struct front *decode)
{
        double *x = arena_new_array(a, double, decode->n), *y = arena_new_array(a, double, decode->n);

        for (size_t i = 0; i < decode->n; i++) {
                x[i] = 1000 / decode->x[i];
                y[i] = sla_cost((double)r->config->isl, throughput, (double)r->config->osl, decode->y[i]);
        }
        return (struct svg_series){.name = arena_printf(a, "%s ms", sla_figure(a, ttft)),
                                   .x = x,
                                   .y = y,
                                   .n = decode->n,
                                   .line = true,
                                   .marks = true};
}

static bool draw_cost(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "What 1000 requests cost under different targets",
                                    "Speed for each user (tokens/s)", "Cost of 1000 requests ($)");
        const struct sla_row *row = sla_chosen_row(r, SLA_DECODE);
        struct svg_series series[SLA_CANDIDATES_MAX];
        struct front prefill, decode;

        if (r->n_prefill == 0 || r->n_decode == 0)
                return false;
        prefill = front_of(a, r->prefill, r->n_prefill);
        decode = front_of(a, r->decode, r->n_decode);
        for (size_t i = 0; i < prefill.n && i < SLA_CANDIDATES_MAX; i++) {
                series[i] = cost_series(a, r, prefill.x[i], prefill.y[i], &decode);
                series[i].tone = (unsigned)i;
                p.n = i + 1;
        }
        p.series = series;
        p.legend = "Time to first token";
        p.log_y = true;
        p.note = arena_printf(a, "%s; $%.2f for a GPU and hour", p.note, SLA_GPU_COST);
        p.x_target = (struct svg_target){
                SVG_AT_LEAST, 1000 / r->config->itl,
                arena_printf(a, "target %s tokens/s", sla_figure(a, 1000 / r->config->itl))};
        if (row && sla_chosen_cost(r) >= 0) {
                p.has_chosen = true;
                p.chosen_x = 1000 / row->latency;
                p.chosen_y = sla_chosen_cost(r);
                p.chosen = arena_printf(a, "chosen: $%s", sla_figure(a, p.chosen_y));
        }
        svg_draw(&p, out);
        return true;
}

/* ---- curves of prefill */

/* The line through the points as the planner reads it. */
static struct svg_series spline_series(struct arena *a, const double *x, const double *y, size_t n,
                                       const char *name)
{
        double *cx = arena_new_array(a, double, CURVE_STEPS), *cy = arena_new_array(a, double, CURVE_STEPS);
        struct svg_series s = {.name = name, .x = cx, .y = cy, .line = true};
        struct sla_spline spline;

        if (n < 2 || sla_spline_init(a, x, y, n, &spline, NULL) < 0)
                return s;
        for (s.n = 0; s.n < CURVE_STEPS; s.n++) {
                cx[s.n] = x[0] + (x[n - 1] - x[0]) * (double)s.n / (CURVE_STEPS - 1);
                cy[s.n] = sla_spline_at(&spline, cx[s.n]);
        }
        return s;
}

/* Least squares of q[0] + q[1] t + q[2] t^2. False: the points do not say. */
static bool fit_quadratic(const double *t, const double *y, size_t n, double q[3])
{
        double m[3][4] = {{0}};

        for (size_t i = 0; i < n; i++) {
                double power[3] = {1, t[i], t[i] * t[i]};

                for (int row = 0; row < 3; row++) {
                        for (int col = 0; col < 3; col++)
                                m[row][col] += power[row] * power[col];
                        m[row][3] += power[row] * y[i];
                }
        }
        for (int k = 0; k < 3; k++) { /* positive definite: no need to look for a pivot */
                if (fabs(m[k][k]) < 1e-12)
                        return false;
                for (int row = 0; row < 3; row++) {
                        double f = m[row][k] / m[k][k];

                        for (int col = k; row != k && col < 4; col++)
                                m[row][col] -= f * m[k][col];
                }
        }
        for (int k = 0; k < 3; k++)
                q[k] = m[k][3] / m[k][k];
        return true;
}

/* Upstream's fit, for comparison; nobody computes with it. Lengths are scaled to 0 ... 1 for the arithmetic. */
static struct svg_series quadratic_series(struct arena *a, const double *x, const double *y, size_t n)
{
        double *cx = arena_new_array(a, double, CURVE_STEPS), *cy = arena_new_array(a, double, CURVE_STEPS);
        double *t = arena_new_array(a, double, n), q[3];
        struct svg_series s = {.x = cx, .y = cy, .line = true, .dashed = true, .tone = 1};

        for (size_t i = 0; i < n; i++)
                t[i] = x[i] / x[n - 1];
        if (n < SLA_CURVE_MIN || !fit_quadratic(t, y, n, q))
                return s;
        s.name = "Quadratic fit";
        for (s.n = 0; s.n < CURVE_STEPS; s.n++) {
                double at = t[0] + (1 - t[0]) * (double)s.n / (CURVE_STEPS - 1);

                cx[s.n] = at * x[n - 1];
                cy[s.n] = q[0] + q[1] * at + q[2] * at * at;
        }
        return s;
}

static struct svg_series measured(const struct sla_results *r, const double *y)
{
        return (struct svg_series){.name = "Measured",
                                   .x = r->prefill_isl,
                                   .y = y,
                                   .n = r->n_curve,
                                   .marks = true,
                                   .hollow = r->prefill_estimated};
}

/* A line of the legend; without a name where nothing was estimated. */
static struct svg_series estimated(bool any)
{
        static const bool yes = true;

        return (struct svg_series){.name = any ? "Estimated" : NULL, .marks = any, .hollow = &yes};
}

static bool curve_is_estimated(const struct sla_results *r)
{
        for (size_t i = 0; r->prefill_estimated && i < r->n_curve; i++)
                if (r->prefill_estimated[i])
                        return true;
        return false;
}

static const char *with_mapping(struct arena *a, const struct sla_results *r, enum sla_role role)
{
        const struct sla_row *row = sla_chosen_row(r, role);

        return row ? arena_printf(a, "%s, %s", note_of(a, r), row->candidate.label) : note_of(a, r);
}

static bool draw_ttft_curve(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Time to first token by length of the input",
                                    "Input sequence length (tokens)", "Time to first token (ms)");
        struct svg_series series[4];

        if (r->n_curve == 0)
                return false;
        series[0] = spline_series(a, r->prefill_isl, r->prefill_ttft, r->n_curve, "Planner's curve");
        series[1] = quadratic_series(a, r->prefill_isl, r->prefill_ttft, r->n_curve);
        series[2] = measured(r, r->prefill_ttft);
        series[3] = estimated(curve_is_estimated(r));
        p.series = series;
        p.n = ARRAY_LEN(series);
        p.note = with_mapping(a, r, SLA_PREFILL);
        p.y_target = at_most(a, r->config->ttft);
        svg_draw(&p, out);
        return true;
}

static bool draw_throughput_curve(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Prefill throughput by length of the input",
                                    "Input sequence length (tokens)", "Prefill throughput (tokens/s/GPU)");
        struct svg_series series[3];

        if (r->n_curve == 0)
                return false;
        series[0] = spline_series(a, r->prefill_isl, r->prefill_throughput, r->n_curve, "Planner's curve");
        series[1] = measured(r, r->prefill_throughput);
        series[2] = estimated(curve_is_estimated(r));
        p.series = series;
        p.n = ARRAY_LEN(series);
        p.note = with_mapping(a, r, SLA_PREFILL);
        svg_draw(&p, out);
        return true;
}

/* ---- curves of decode: a line a context length */

static const struct sla_sample *in_order(struct arena *a, const struct sla_results *r)
{
        struct sla_sample *s = arena_memdup(a, r->surface, r->n_surface * sizeof(*s));

        qsort(s, r->n_surface, sizeof(*s), sla_sample_cmp);
        return s;
}

static bool draw_surface(struct arena *a, const struct sla_results *r, struct svg_plot *p, bool itl,
                         struct buf *out)
{
        struct svg_series *series;
        double *x, *y;
        bool *hollow, any = false;
        const struct sla_sample *s;

        if (r->n_surface == 0)
                return false;
        series = arena_new_array(a, struct svg_series, SLA_GRID_MAX + 1);
        x = arena_new_array(a, double, r->n_surface);
        y = arena_new_array(a, double, r->n_surface);
        hollow = arena_new_array(a, bool, r->n_surface);
        s = in_order(a, r);
        for (size_t i = 0; i < r->n_surface; i++) {
                struct svg_series *row;

                x[i] = 100 * s[i].kv_usage;
                y[i] = itl ? s[i].itl : s[i].throughput;
                hollow[i] = s[i].estimated;
                any = any || hollow[i];
                if (i == 0 || s[i].context != s[i - 1].context) {
                        if (p->n == SLA_GRID_MAX)
                                break;
                        series[p->n] = (struct svg_series){.name = sla_figure(a, s[i].context),
                                                           .x = x + i,
                                                           .y = y + i,
                                                           .line = true,
                                                           .marks = true,
                                                           .hollow = hollow + i,
                                                           .tone = (unsigned)p->n};
                        p->n++;
                }
                row = &series[p->n - 1];
                row->n++;
        }
        p->series = series;
        p->ordered = true;
        p->n_tones = (unsigned)p->n;
        series[p->n++] = estimated(any);
        p->legend = "Context length (tokens)";
        p->note = with_mapping(a, r, SLA_DECODE);
        svg_draw(p, out);
        return true;
}

static bool draw_itl_surface(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Inter-token latency by use of the KV cache and context length",
                                    "KV cache in use (%)", "Inter-token latency (ms)");

        p.y_target = at_most(a, r->config->itl);
        return draw_surface(a, r, &p, true, out);
}

static bool draw_throughput_surface(struct arena *a, const struct sla_results *r, struct buf *out)
{
        struct svg_plot p = plot_of(a, r, "Decode throughput by use of the KV cache and context length",
                                    "KV cache in use (%)", "Decode throughput (tokens/s/GPU)");

        return draw_surface(a, r, &p, false, out);
}

const struct sla_picture sla_pictures[SLA_PICTURES] = {
        {"prefill_performance.svg", draw_prefill},
        {"decode_performance.svg", draw_decode},
        {"cost_sla.svg", draw_cost},
        {"prefill_ttft_interpolation.svg", draw_ttft_curve},
        {"prefill_throughput_interpolation.svg", draw_throughput_curve},
        {"decode_itl_interpolation.svg", draw_itl_surface},
        {"decode_throughput_interpolation.svg", draw_throughput_surface},
};
