/*
 * ConfigSelection and PlannerGeneration: what is chosen, how many of each, and the files.
 */
#include "probe/sla/output_internal.h"
#include "probe/sla/run_internal.h"

enum { BASE_MAX = 1 << 20, INTERVAL_SEC = 180 };

/* ---- the candidates' own deployments */

/* The deployment to start from: the file that the configuration names, or the backend's default. */
static struct json *base_deployment(struct profiling *w, struct err *err)
{
        const struct sla_config *c = w->config;
        _cleanup_(buf_done) struct buf text = BUF_INIT(BASE_MAX);
        struct json **docs;
        size_t n;

        if (!c->base_config)
                return sla_base_deployment(&w->arena, c->backend, c->model);
        if (file_read(c->base_config, &text, err) < 0 ||
            yaml_parse_all(&w->arena, buf_str(&text), NULL, &docs, &n, err) < 0) {
                err_wrap(err, "the base deployment %s", c->base_config);
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                if (streq(json_str(docs[i], "kind"), "DynamoGraphDeployment"))
                        return docs[i];
        err_set(err, E_CONFIG, "the base deployment %s has no DynamoGraphDeployment", c->base_config);
        return NULL;
}

static int write_config(struct profiling *w, const struct json *base, enum sla_role role,
                        const struct sla_candidate *c, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(BASE_MAX);
        const char *name = profiling_candidate_dir(&a, role, c);
        const char *dir = arena_printf(&a, "%s/%s", w->run->dir, name);
        struct json *deployment = sla_candidate_deployment(&a, base, w->config->backend, c, role, name);

        sla_deployment_prepare(&a, deployment, w->config);
        yaml_write(deployment, &text);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "the configuration of %s has more than %d bytes", name,
                               BASE_MAX);
        if (dir_make(dir, 0755, err) < 0)
                return -1;
        return file_replace(arena_join(&a, dir, "/", "config.yaml"), buf_str(&text), 0644, err);
}

int profiling_write_configs(struct profiling *w, struct err *err)
{
        const struct json *base;

        if (sla_config_check(w->config, err) < 0)
                return -1;
        base = base_deployment(w, err);
        if (!base || sla_base_check(base, w->config->backend, err) < 0)
                return -1;
        if (!w->run->dir)
                return 0;
        for (size_t i = 0; i < w->n_candidates; i++)
                if (write_config(w, base, SLA_PREFILL, &w->candidates[i], err) < 0 ||
                    write_config(w, base, SLA_DECODE, &w->candidates[i], err) < 0)
                        return err_wrap(err, "cannot write the candidates' configurations");
        return 0;
}

/* ---- selection */

/* What a role's rows are about, for words. */
struct side {
        const char *what, *metric;
        double target;
        const struct sla_row *rows;
        size_t n;
};

static void note_infeasible(struct profiling *w, const struct side *s, const struct sla_choice *choice)
{
        const struct sla_candidate *c = &s->rows[choice->index].candidate;
        struct sla_choice any;
        bool better = sla_pick(s->rows, s->n, s->target, &any) && any.best < choice->best;

        if (!choice->feasible)
                profiling_note(
                        w,
                        "no %s configuration%s meets the %s target of %g ms: the best is %.4g ms, with "
                        "%s on %u GPUs",
                        s->what, better ? " that fits into the budget" : "", s->metric, s->target,
                        choice->best, c->label, c->gpus);
}

/* GPUs for the fewest engines of each that the planner may have. */
static uint64_t gpus_needed(const struct profiling *w, const struct sla_candidate *prefill,
                            const struct sla_candidate *decode)
{
        return (uint64_t)MAX(w->config->min_endpoint, 1u) * ((uint64_t)prefill->gpus + decode->gpus);
}

/* The best of each; where they do not fit into the budget together, the best that do. */
static int choose(struct profiling *w, struct err *err)
{
        const struct sla_config *c = w->config;
        struct sla_results *r = &w->results;
        const struct sla_candidate *prefill, *decode;

        if (!sla_pick(w->prefill.v, w->prefill.n, c->ttft, &r->chosen_prefill) ||
            !sla_pick(w->decode.v, w->decode.n, c->itl, &r->chosen_decode))
                return err_set(err, E_INTERNAL, "nothing to select from");
        prefill = &w->prefill.v[r->chosen_prefill.index].candidate;
        decode = &w->decode.v[r->chosen_decode.index].candidate;
        if (!c->budget_said || gpus_needed(w, prefill, decode) <= c->budget)
                return 0;
        if (!sla_pick_within(&(struct sla_pick_in){.prefill = w->prefill.v,
                                                   .n_prefill = w->prefill.n,
                                                   .decode = w->decode.v,
                                                   .n_decode = w->decode.n,
                                                   .ttft = c->ttft,
                                                   .itl = c->itl,
                                                   .isl = (double)c->isl,
                                                   .osl = (double)c->osl,
                                                   .gpus = c->budget / MAX(c->min_endpoint, 1u)},
                             &r->chosen_prefill, &r->chosen_decode))
                return err_set(
                        err, E_CONFIG,
                        "a budget of %u GPUs is too small for what could be measured: %u of each of the "
                        "best, %s for prefill and %s for decode, need %llu; raise planner.maxGpuBudget, "
                        "nothing will be measured again",
                        c->budget, MAX(c->min_endpoint, 1u), prefill->label, decode->label,
                        (unsigned long long)gpus_needed(w, prefill, decode));
        profiling_note(w,
                       "%s for prefill with %s for decode would be best, but need %llu GPUs, and the budget "
                       "has %u: the best that fit were taken",
                       prefill->label, decode->label, (unsigned long long)gpus_needed(w, prefill, decode),
                       c->budget);
        return 0;
}

int profiling_select(struct profiling *w, struct err *err)
{
        struct sla_results *r = &w->results;
        const struct sla_row *prefill, *decode;

        profiling_phase(w, "ConfigSelection", 0, "Analyzing results and selecting optimal configurations");
        profiling_tell(w, NULL, 0, NULL);
        if (choose(w, err) < 0)
                return -1;
        prefill = &w->prefill.v[r->chosen_prefill.index];
        decode = &w->decode.v[r->chosen_decode.index];
        note_infeasible(w, &(struct side){"prefill", "TTFT", w->config->ttft, w->prefill.v, w->prefill.n},
                        &r->chosen_prefill);
        note_infeasible(w, &(struct side){"decode", "ITL", w->config->itl, w->decode.v, w->decode.n},
                        &r->chosen_decode);
        LOG_INFO(w->run->services.log, "Selected", F_STR("prefill", prefill->candidate.label),
                 F_STR("decode", decode->candidate.label), F_UINT("concurrency", decode->concurrency));
        if (checkpoint_choose(w->checkpoint, prefill->candidate.label, decode->candidate.label, err) < 0) {
                w->broken = true;
                return err_wrap(err, "cannot keep what was chosen");
        }
        return 0;
}

/* Nothing is measured, so there are no rows: sla_chosen_candidate() is the smallest. */
int profiling_select_dry(struct profiling *w, struct err *err)
{
        (void)err;
        profiling_phase(w, "ConfigSelection", 0, "Analyzing results and selecting optimal configurations");
        profiling_tell(w, NULL, 0, NULL);
        profiling_note(w, "dry run: nothing was deployed or measured, %s is the smallest, not the best",
                       w->candidates[0].label);
        return 0;
}

/* ---- how many of each */

static int throughputs(struct profiling *w, const struct sla_demand *d, double *prefill, double *decode,
                       struct err *err)
{
        const struct sla_results *r = &w->results;
        struct sla_spline spline;
        struct sla_surface *surface;

        if (!sla_is_profiled(r))
                return err_set(err, E_NOT_FOUND, "there are no curves");
        if (sla_spline_init(&w->arena, r->prefill_isl, r->prefill_throughput, r->n_curve, &spline, err) < 0)
                return -1;
        surface = sla_surface_new(&w->arena, r->surface, r->n_surface, err);
        if (!surface)
                return -1;
        *prefill = sla_spline_at(&spline, d->isl);
        *decode = sla_demand_throughput(d, surface);
        return 0;
}

static void plan_replicas(struct profiling *w)
{
        const struct sla_config *c = w->config;
        struct sla_results *r = &w->results;
        double interval = c->interval > 0 ? c->interval : INTERVAL_SEC;
        struct sla_demand d = {
                .requests = c->request_rate * interval,
                .interval = interval,
                .isl = (double)c->isl,
                .osl = (double)c->osl,
                .itl = c->itl,
                .prefill_gpus = w->prefill.v[r->chosen_prefill.index].candidate.gpus,
                .decode_gpus = w->decode.v[r->chosen_decode.index].candidate.gpus,
                .budget = c->budget,
                .min_endpoint = MAX(c->min_endpoint, 1u),
        };
        uint64_t least = gpus_needed(w, &w->prefill.v[r->chosen_prefill.index].candidate,
                                     &w->decode.v[r->chosen_decode.index].candidate);
        double prefill = 0, decode = 0;
        struct err err = ERR_INIT;

        if (!c->budget_said && least > d.budget) {
                d.budget = r->grown_budget = (unsigned)MIN(least, (uint64_t)SLA_GPUS_MAX * 2);
                profiling_note(w, "planner.maxGpuBudget was not said: it is %u, what the fewest engines need",
                               d.budget);
        }

        if (throughputs(w, &d, &prefill, &decode, &err) < 0 ||
            sla_replicas(&d, prefill, decode, &r->replicas, &err) < 0) {
                profiling_note(w, "no replica counts: %s", err.text);
                return;
        }
        r->has_replicas = true;
        if (r->replicas.capped)
                profiling_note(w, "a budget of %u GPUs does not carry %g requests a second", d.budget,
                               c->request_rate);
}

int profiling_generate(struct profiling *w, struct err *err)
{
        struct sla_results *r = &w->results;
        const struct json *base = base_deployment(w, err);

        if (!base)
                return -1;
        profiling_phase(w, "PlannerGeneration", 0, "Running SLA planner and generating deployment config");
        profiling_tell(w, NULL, 0, NULL);
        if (!w->config->dry_run)
                plan_replicas(w);
        r->config = w->config;
        r->target = w->run->target->ops->name;
        r->request = w->run->request;
        r->simulated = w->run->target->ops->simulated;
        r->prefill = w->prefill.v;
        r->n_prefill = w->prefill.n;
        r->decode = w->decode.v;
        r->n_decode = w->decode.n;
        r->points_measured = w->checkpoint ? checkpoint_points(w->checkpoint) : 0;
        if (w->config->adaptive && !w->config->dry_run)
                profiling_note(w,
                               "adaptive search: %llu points measured and %llu saved, %llu deployments and "
                               "%llu saved",
                               (unsigned long long)r->points_measured, (unsigned long long)r->points_saved,
                               (unsigned long long)r->deployments, (unsigned long long)r->deployments_saved);
        r->notes = w->notes.v;
        r->n_notes = w->notes.n;
        return w->run->dir ? sla_write(r, base, w->run->dir, err) : 0;
}
