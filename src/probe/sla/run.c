/*
 * The seven phases, one after the other.
 */
#include "probe/sla/run_internal.h"

#include <poll.h>

/* What a deployment, a prefill point and a decode point cost beside each other, in seconds: of a real engine, which loads its
 * model, and of a simulation. Weights of the plan; what they really take is learned on the way. */
struct cost {
        double deployment, prefill, decode;
};
static const struct cost cost_real = {300, 15, 60}, cost_simulated = {1, 0.2, 1};

/* ---- telling */

void profiling_note(struct profiling *w, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        *vec_push(&w->notes) = arena_vprintf(&w->arena, fmt, ap);
        va_end(ap);
        LOG_INFO(w->run->services.log, "Note", F_STR("note", w->notes.v[w->notes.n - 1]));
}

void profiling_phase(struct profiling *w, const char *phase, int64_t total, const char *fmt, ...)
{
        va_list ap;

        w->phase = phase;
        w->total = total;
        w->step = 0;
        w->has_best = false;
        va_start(ap, fmt);
        w->message = arena_vprintf(&w->arena, fmt, ap);
        va_end(ap);
        LOG_INFO(w->run->services.log, "Phase", F_STR("phase", phase), F_STR("message", w->message));
}

void profiling_consider(struct profiling *w, const struct sla_row *row, double target_ms)
{
        const struct sla_row rows[] = {w->has_best ? w->best : *row, *row};
        struct sla_choice choice;

        if (!sla_pick(rows, ARRAY_LEN(rows), target_ms, &choice))
                return;
        w->has_best = true;
        w->best = rows[choice.index];
        w->target = target_ms;
}

/* "TP=4  ITL 11.8 ms  1912 tok/s/GPU". NULL: nothing was measured yet. */
static const char *best_text(const struct profiling *w, char *out, size_t size)
{
        const struct sla_row *b = &w->best;

        if (!w->has_best)
                return NULL;
        snprintf(out, size, "%s  %s %.1f ms  %.0f tok/s/GPU%s", b->candidate.label,
                 streq(w->phase, "PrefillSweep") ? "TTFT" : "ITL", b->latency, b->throughput,
                 b->latency > w->target ? " (misses the target)" : "");
        return out;
}

void profiling_tell(struct profiling *w, const struct sla_candidate *c, int64_t step, const char *sub_phase)
{
        char best[RUN_BEST_MAX];
        struct run_report report = {
                .phase = w->phase,
                .message = w->message,
                .has_progress = w->total > 0,
                .current_step = w->step = MIN(MAX(w->step, step), w->total),
                .total_steps = w->total,
                .sub_phase = sub_phase,
                .gpus = c ? (int64_t)c->gpus : -1,
                .mapping = c ? c->label : NULL,
                .best = best_text(w, best, sizeof(best)),
        };

        if (w->run->reporter)
                (void)run_report(w->run->reporter, &report);
}

bool profiling_stopped(const struct profiling *w)
{
        struct pollfd p = {.fd = w->run->services.stop_fd, .events = POLLIN};

        return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

const char *profiling_candidate_dir(struct arena *a, enum sla_role role, const struct sla_candidate *c)
{
        char *dir = arena_printf(a, "%s_%ugpus_%s", role == SLA_PREFILL ? "prefill" : "decode", c->gpus,
                                 c->label);
        char *to = dir;

        /* "TP=4" is tagged "tp4" */
        for (const char *from = dir; *from; from++)
                if (*from != '=')
                        *to++ = *from >= 'A' && *from <= 'Z' ? (char)(*from - 'A' + 'a') : *from;
        *to = '\0';
        return dir;
}

/* ---- the plan */

static void plan_phase(struct profiling *w, const char *name, size_t steps, double weight)
{
        struct run_phase *p = &w->plan.phases[w->plan.n++];

        snprintf(p->name, sizeof(p->name), "%s", name);
        p->steps = (uint32_t)MIN(steps, (size_t)RUN_STEPS_MAX);
        p->weight = MIN(MAX(weight, 0.1), (double)RUN_WEIGHT_MAX);
}

/* With --search adaptive there will be fewer points; how many is not known, and the steps that are left out count as done. */
static void make_plan(struct profiling *w)
{
        const struct cost *k = w->run->target->ops->simulated ? &cost_simulated : &cost_real;
        size_t n = w->n_candidates, grid = w->config->decode_granularity;
        size_t surface = w->n_decode_isls * grid;
        double deployment = w->run->target->ops->fixed ? 0 : k->deployment;

        w->plan = (struct run_plan){.weighted = true};
        plan_phase(w, "Initializing", 0, 1);
        plan_phase(w, "PrefillSweep", n, (double)n * (deployment + k->prefill));
        plan_phase(w, "DecodeSweep", n * grid, (double)n * (deployment + (double)grid * k->decode));
        plan_phase(w, "ConfigSelection", 0, 1);
        plan_phase(w, "PrefillInterpolation", w->n_prefill_isls,
                   deployment + (double)w->n_prefill_isls * k->prefill);
        plan_phase(w, "DecodeInterpolation", surface, deployment + (double)surface * k->decode);
        plan_phase(w, "PlannerGeneration", 0, 1);
}

/* ---- the beginning */

/* What a checkpoint must be of, so that its points are this run's. */
static const char *identity(struct profiling *w)
{
        const struct sla_config *c = w->config;

        return arena_printf(&w->arena, "%s|%s|%s|%s|%llu|%llu|%llu|%d", w->run->target->ops->name,
                            w->run->what ? w->run->what : "", c->model ? c->model : "",
                            c->backend ? c->backend : "", (unsigned long long)c->isl,
                            (unsigned long long)c->osl, (unsigned long long)c->decode_osl, w->run->truth);
}

static int check_size(const struct profiling *w, struct err *err)
{
        const struct sla_config *c = w->config;
        size_t points = w->n_candidates * (1 + (size_t)c->decode_granularity) + w->n_prefill_isls +
                        w->n_decode_isls * (size_t)c->decode_granularity;

        return points <= SLA_POINTS_MAX
                       ? 0
                       : err_set(err, E_CONFIG,
                                 "this would be %zu points to measure, and %d is the most; choose smaller "
                                 "granularities in sweep, or fewer GPUs",
                                 points, SLA_POINTS_MAX);
}

static int initialize(struct profiling *w, struct err *err)
{
        const struct sla_config *c = w->config;
        const struct sla_target_ops *ops = w->run->target->ops;

        profiling_phase(w, "Initializing", 0, "Loading configuration and validating inputs");
        profiling_tell(w, NULL, 0, NULL);
        w->n_candidates = sla_candidates(&c->shape, c->min_gpus, c->max_gpus, w->candidates);
        if (w->n_candidates == 0)
                return err_set(err, E_CONFIG,
                               "no mapping of the model fits %u to %u GPUs; change minNumGpusPerEngine or "
                               "maxNumGpusPerEngine",
                               c->min_gpus, c->max_gpus);
        if (ops->fixed)
                w->n_candidates = 1;
        if (sla_prefill_isls(c->context, c->prefill_granularity, w->prefill_isls, &w->n_prefill_isls, err) <
                    0 ||
            sla_decode_isls(c->context, c->decode_granularity, w->decode_isls, &w->n_decode_isls, err) < 0 ||
            check_size(w, err) < 0)
                return -1;
        if (w->run->dir)
                checkpoint_tidy(w->run->dir, 1);
        make_plan(w);
        if (w->run->reporter)
                w->run->reporter->plan = &w->plan;
        profiling_tell(w, NULL, 0, NULL);
        if (profiling_write_configs(w, err) < 0)
                return -1;
        if (c->dry_run)
                return 0;
        w->checkpoint = checkpoint_open(w->run->dir, identity(w), w->run->services.log);
        return ops->clean ? ops->clean(w->run->target, err) : 0;
}

/* ---- all of it */

static int go(struct profiling *w, struct err *err)
{
        int (*const phases[])(struct profiling *, struct err *) = {
                profiling_prefill_sweep, profiling_decode_sweep,   profiling_select,
                profiling_prefill_curve, profiling_decode_surface, profiling_generate,
        };

        if (initialize(w, err) < 0)
                return -1;
        if (w->config->dry_run)
                return profiling_select_dry(w, err) < 0 ? -1 : profiling_generate(w, err);
        for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
                if (profiling_stopped(w))
                        return err_set(err, E_CANCELED, "told to stop");
                if (phases[i](w, err) < 0)
                        return -1;
        }
        return 0;
}

/* "Profiling completed successfully", and what a person should know at once. */
static void tell_complete(struct profiling *w)
{
        const struct sla_results *r = &w->results;
        _cleanup_(buf_done) struct buf text = BUF_INIT(RUN_MESSAGE_MAX);

        buf_adds(&text, w->config->dry_run ? "Dry run completed: nothing was deployed"
                                           : "Profiling completed successfully");
        if (!w->config->dry_run && !(r->chosen_prefill.feasible && r->chosen_decode.feasible))
                buf_adds(&text, ", but the targets cannot be met");
        for (size_t i = 0; i < w->notes.n && text.n + strlen(w->notes.v[i]) + 4 < RUN_MESSAGE_MAX; i++)
                buf_printf(&text, "%s%s", i ? "; " : ": ", w->notes.v[i]);
        LOG_INFO(w->run->services.log, "Completed", F_UINT("points", r->points_measured),
                 F_UINT("deployments", r->deployments), F_UINT("pointsSaved", r->points_saved),
                 F_UINT("deploymentsSaved", r->deployments_saved));
        if (w->run->reporter)
                (void)run_report_complete(w->run->reporter, buf_cstr(&text));
}

static void profiling_done(struct profiling *w)
{
        vec_done(&w->prefill);
        vec_done(&w->decode);
        vec_done(&w->notes);
        checkpoint_free(w->checkpoint);
        arena_done(&w->arena);
        if (w->run->reporter && w->run->reporter->plan == &w->plan)
                w->run->reporter->plan = NULL;
        free(w);
}

int sla_run(const struct sla_run *r, struct err *err)
{
        struct profiling *w = xcalloc(1, sizeof(*w));
        struct err why = ERR_INIT;
        int ok;

        w->run = r;
        w->config = r->config;
        ok = go(w, &why);
        if (ok == 0)
                tell_complete(w);
        else if (w->broken || why.code != E_CANCELED) {
                if (w->broken)
                        why.code = E_IO;
                if (r->reporter)
                        (void)run_report_failed(r->reporter, NULL, why.text);
        }
        profiling_done(w);
        if (ok < 0 && err)
                *err = why;
        return ok;
}
