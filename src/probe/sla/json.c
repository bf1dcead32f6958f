/*
 * `sla plan` and `sla pick`: the profiler's arithmetic on given data, JSON in, JSON out.
 *
 * plan takes
 *   config    the profiler's configuration (config.c); without this member the whole input is one
 *   shape     the model's shape, in place of config.modelShape
 *   kvTokens  the KV size of all ranks: a number for every mapping, or one a label, {"TP=4": 400000}
 * and gives
 *   context, gpus{min, max, perNode}
 *   candidates    each with label, mapping, gpus, attnDp; with kvTokens also kvTokens, maxConcurrency, concurrencies (those of
 *                 DecodeSweep) and interpolation, a list of {isl, concurrencies} (those of DecodeInterpolation if it is chosen)
 *   prefillIsls, decodeIsls
 *   steps         of each phase, as the runner reports them: decode with the grid's maximum
 *   deployments   that a run makes
 *   points        that a run measures: the most there can be; with kvTokens those there are, with the candidate that has most
 *                 (the most there can be of labels that kvTokens has not)
 *
 * pick takes, all of it optional,
 *   targets        {ttft, itl}, ms; each is needed with the rows of its kind
 *   isl, osl       of a request
 *   prefill        rows {label or gpus with mapping, ttft, throughput}; throughput is worked out from isl where it is missing
 *   decode         rows {label or gpus with mapping, itl, throughput, concurrency, kvTokens}
 *                  (num_gpus, thpt_per_gpu and kv_cache_size are understood, too)
 *   prefillCurve   {prefill_isl, prefill_ttft, prefill_thpt_per_gpu}: lists, as in the raw_data.json of a run
 *   decodeSurface  {x_kv_usage, y_context_length, z_itl, z_thpt_per_gpu}: lists, as there
 *   at             a list of {isl}, {kvUsage, context} or {itl, context}: where to interpolate
 *   demand         {requests and interval, or requestRate; isl, osl; itl; prefillCorrection, decodeCorrection; prefillGpus,
 *                  decodeGpus; maxGpuBudget, minEndpoint}; what it does not say comes from the choices, the targets and
 *                  above (interval 180, budget 8, minimum 1)
 *   simulated      true, also in a curve: what comes out says the same
 * and gives what it can
 *   prefill, decode  index, label, feasible (false: no row meets the target), best (the best latency there is), ttft or itl,
 *                    throughput, concurrency
 *   pareto           {prefill, decode}: indices of the rows that no other beats in latency and throughput
 *   cost             $ for 1000 requests of the two choices
 *   at               each entry with its values: ttft and throughput; itl and throughput; the best throughput, the kvUsage it
 *                    is at, and feasible
 *   replicas         {prefill, decode, gpus, capped, prefillThroughput, decodeThroughput}
 */
#include "probe/sla/sla.h"

enum {
        ROWS_MAX = 4096,
        AT_MAX = 256,
};

/* ---- reading */

/* OBJECT.KEY, a number of 0 or more (above 0 with POSITIVE); OTHERWISE if it is not there. PATH is for messages. */
struct want {
        const char *path, *key, *other; /* other: upstream's name of it; may be NULL */
        bool positive, needed;
};

static int number(const struct json *object, const struct want *w, double otherwise, double *ret,
                  struct err *err)
{
        const struct json *value = json_at(object, w->key);

        if (!value && w->other)
                value = json_at(object, w->other);
        *ret = otherwise;
        if (!value)
                return !w->needed ? 0 : err_set(err, E_INVALID, "%s needs %s, a number", w->path, w->key);
        if (!json_to_double(value, ret) || *ret < 0 || (w->positive && *ret <= 0))
                return err_set(err, E_INVALID, "%s: %s must be a number %s", w->path, w->key,
                               w->positive ? "above 0" : "of 0 or more");
        return 0;
}

/* The same for what is counted. */
static int count(const struct json *object, const struct want *w, uint64_t otherwise, uint64_t max,
                 uint64_t *ret, struct err *err)
{
        const struct json *value = json_at(object, w->key);
        double checked;

        if (!value && w->other)
                value = json_at(object, w->other);
        if (number(object, w, (double)otherwise, &checked, err) < 0)
                return -1;
        *ret = otherwise;
        if (value && (!json_to_u64(value, ret) || *ret > max))
                return err_set(err, E_INVALID, "%s: %s must be a whole number of at most %llu", w->path,
                               w->key, (unsigned long long)max);
        return 0;
}

static int list(const struct json *in, const char *path, const char *key, size_t max, const struct json **ret,
                struct err *err)
{
        *ret = json_at(in, key);
        if (*ret && !json_is(*ret, JSON_ARRAY))
                return err_set(err, E_INVALID, "%s: %s must be a list", path, key);
        if (json_len(*ret) > max)
                return err_set(err, E_TOO_LARGE, "%s: %s has more than %zu entries", path, key, max);
        return 0;
}

static struct json *numbers(struct arena *a, const uint64_t *v, size_t n)
{
        struct json *array = json_array(a);

        for (size_t i = 0; i < n; i++)
                json_append(array, json_u64(a, v[i]));
        return array;
}

/* ---- plan */

struct plan {
        struct arena *arena;
        struct sla_config config;
        struct sla_candidate candidates[SLA_CANDIDATES_MAX];
        size_t n_candidates;
        uint64_t prefill_isls[SLA_GRID_MAX], decode_isls[SLA_GRID_MAX];
        size_t n_prefill, n_decode;
        const struct json *kv;
        uint64_t sweep_points, surface_points; /* of decode */
};

static int plan_config(struct plan *p, const struct json *in, struct err *err)
{
        const struct json *shape = json_at(in, "shape"), *config = json_at(in, "config");

        config = config ? config : in;
        if (shape && json_is(config, JSON_OBJECT)) {
                struct json *with = json_copy(p->arena, config);

                json_remove(with, "model_shape");
                json_set(p->arena, with, "modelShape", json_copy(p->arena, shape));
                config = with;
        }
        if (sla_config_parse(p->arena, config, &p->config, err) < 0)
                return -1;
        p->kv = json_at(in, "kvTokens");
        if (p->kv && !json_is(p->kv, JSON_NUMBER) && !json_is(p->kv, JSON_OBJECT))
                return err_set(err, E_INVALID, "kvTokens must be a number, or an object with one a label");
        return 0;
}

static int plan_grids(struct plan *p, struct err *err)
{
        const struct sla_config *c = &p->config;

        p->n_candidates = sla_candidates(&c->shape, c->min_gpus, c->max_gpus, p->candidates);
        if (sla_prefill_isls(c->context, c->prefill_granularity, p->prefill_isls, &p->n_prefill, err) < 0)
                return -1;
        return sla_decode_isls(c->context, c->decode_granularity, p->decode_isls, &p->n_decode, err);
}

/* A size of something that is no candidate is a slip of the pen. */
static int check_labels(const struct plan *p, struct err *err)
{
        json_foreach (kv, json_is(p->kv, JSON_OBJECT) ? p->kv : NULL) {
                bool known = false;

                for (size_t i = 0; i < p->n_candidates; i++)
                        known = known || streq(kv->key, p->candidates[i].label);
                if (!known)
                        return err_set(err, E_INVALID, "kvTokens: %.32s is no candidate, the first is %s",
                                       kv->key, p->candidates[0].label);
        }
        return 0;
}

/* The points of DecodeInterpolation, if this is the candidate. */
static struct json *interpolation(struct plan *p, const struct sla_candidate *c, uint64_t kv)
{
        struct json *array = json_array(p->arena);
        uint64_t grid[SLA_GRID_MAX], points = 0;
        size_t n;

        for (size_t i = 0; i < p->n_decode; i++) {
                n = sla_request_grid(c->attn_dp, kv / (p->decode_isls[i] + p->config.decode_osl),
                                     p->config.decode_granularity, grid);
                if (!n)
                        break;
                points += n;
                json_append(array, json_build(p->arena, "{'isl': %llu, 'concurrencies': %p}",
                                              (unsigned long long)p->decode_isls[i],
                                              (void *)numbers(p->arena, grid, n)));
        }
        p->surface_points = MAX(p->surface_points, points);
        return array;
}

static int plan_candidate(struct plan *p, const struct sla_candidate *c, struct json *out, struct err *err)
{
        struct arena *a = p->arena;
        const struct json *said = json_is(p->kv, JSON_OBJECT) ? json_at(p->kv, c->label) : p->kv;
        struct json *o = json_build(a, "{'label': %s, 'mapping': %s, 'gpus': %u, 'attnDp': %u}", c->label,
                                    sim_mappings[c->mapping], c->gpus, c->attn_dp);
        uint64_t grid[SLA_GRID_MAX], kv, most;
        size_t n;

        json_append(out, o);
        if (!said) {
                p->sweep_points += p->config.decode_granularity;
                p->surface_points = p->n_decode * (uint64_t)p->config.decode_granularity; /* none has more */
                return 0;
        }
        if (!json_to_u64(said, &kv))
                return err_set(err, E_INVALID, "kvTokens of %s must be a whole number of 0 or more",
                               c->label);
        most = kv / (p->config.isl + p->config.osl);
        n = sla_request_grid(c->attn_dp, most, p->config.decode_granularity, grid);
        p->sweep_points += n;
        json_set(a, o, "kvTokens", json_u64(a, kv));
        json_set(a, o, "maxConcurrency", json_u64(a, most));
        json_set(a, o, "concurrencies", numbers(a, grid, n));
        json_set(a, o, "interpolation", interpolation(p, c, kv));
        return 0;
}

static struct json *plan_steps(const struct plan *p)
{
        size_t granularity = p->config.decode_granularity;

        return json_build(
                p->arena,
                "{'Initializing': 1, 'PrefillSweep': %zu, 'DecodeSweep': %zu, 'ConfigSelection': 1, "
                "'PrefillInterpolation': %zu, 'DecodeInterpolation': %zu, 'PlannerGeneration': 1}",
                p->n_candidates, p->n_candidates * granularity, p->n_prefill, p->n_decode * granularity);
}

struct json *sla_plan_json(struct arena *a, const struct json *in, struct err *err)
{
        struct plan *p = arena_new(a, struct plan);
        struct json *candidates = json_array(a);
        const struct sla_config *c = &p->config;

        p->arena = a;
        if (plan_config(p, in, err) < 0 || plan_grids(p, err) < 0 || check_labels(p, err) < 0)
                return NULL;
        for (size_t i = 0; i < p->n_candidates; i++)
                if (plan_candidate(p, &p->candidates[i], candidates, err) < 0)
                        return NULL;
        return json_build(
                a,
                "{'context': %llu, 'gpus': {'min': %u, 'max': %u, 'perNode': %u}, 'candidates': %p, "
                "'prefillIsls': %p, 'decodeIsls': %p, 'steps': %p, 'deployments': %zu, 'points': %zu}",
                (unsigned long long)c->context, c->min_gpus, c->max_gpus, c->gpus_per_node,
                (void *)candidates, (void *)numbers(a, p->prefill_isls, p->n_prefill),
                (void *)numbers(a, p->decode_isls, p->n_decode), (void *)plan_steps(p),
                2 * p->n_candidates + 2,
                p->n_candidates + (size_t)p->sweep_points + p->n_prefill + (size_t)p->surface_points);
}

/* ---- pick: what is given */

struct side {
        const char *name, *latency; /* "prefill", "ttft" */
        struct sla_row *rows;
        size_t n;
        double target; /* 0: not said */
        struct sla_choice choice;
        bool chosen;
};

struct pick {
        struct arena *arena;
        struct side prefill, decode;
        double isl, osl; /* 0: not said */
        bool has_curve;
        struct sla_spline ttft, throughput; /* over ISL */
        struct sla_surface *surface;
        struct json *out;
};

static int read_candidate(const struct json *row, const char *path, struct sla_candidate *ret,
                          struct err *err)
{
        const struct want gpus_wanted = {path, "gpus", "num_gpus", .positive = true};
        const struct json *label = json_at(row, "label");
        const char *mapping = json_str_or(row, "mapping", "TP");
        uint64_t gpus;

        if (label) {
                if (!json_is(label, JSON_STRING) || !sla_candidate_parse(json_text(label), ret))
                        return err_set(err, E_INVALID, "%s: label must be a mapping such as TP=4", path);
                return 0;
        }
        if (count(row, &gpus_wanted, 0, SLA_GPUS_MAX, &gpus, err) < 0)
                return -1;
        for (int i = 0; gpus && i < SIM_MAPPINGS_; i++)
                if (streq(mapping, sim_mappings[i])) {
                        sla_candidate_init(ret, (enum sim_mapping)i, (unsigned)gpus);
                        return 0;
                }
        return err_set(err, E_INVALID,
                       "%s needs a label such as TP=4, or gpus and a mapping of TP, TEP or DEP", path);
}

static int read_row(const struct pick *p, const struct side *s, const struct json *in, const char *path,
                    struct sla_row *ret, struct err *err)
{
        bool is_prefill = s == &p->prefill, derived = is_prefill && p->isl > 0;
        const struct want latency = {path, s->latency, .positive = true, .needed = true};
        const struct want throughput = {path, "throughput", "thpt_per_gpu", .needed = !derived};
        const struct want concurrency = {.path = path, .key = "concurrency"},
                          kv = {.path = path, .key = "kvTokens", .other = "kv_cache_size"};

        if (read_candidate(in, path, &ret->candidate, err) < 0 ||
            number(in, &latency, 0, &ret->latency, err) < 0)
                return -1;
        if (number(in, &throughput,
                   derived ? sla_prefill_throughput(p->isl, ret->latency, &ret->candidate) : 0,
                   &ret->throughput, err) < 0)
                return -1;
        if (count(in, &concurrency, 0, INT64_MAX, &ret->concurrency, err) < 0)
                return -1;
        return count(in, &kv, 0, INT64_MAX, &ret->kv_tokens, err);
}

static int read_side(struct pick *p, struct side *s, const struct json *in, struct err *err)
{
        const struct json *targets = json_at(in, "targets"), *rows;
        const struct want target = {"targets", s->latency, .positive = true};

        if (number(targets, &target, 0, &s->target, err) < 0 ||
            list(in, "pick", s->name, ROWS_MAX, &rows, err) < 0)
                return -1;
        s->rows = arena_new_array(p->arena, struct sla_row, json_len(rows));
        json_foreach (row, rows) {
                const char *path = arena_printf(p->arena, "%s[%zu]", s->name, s->n);

                if (read_row(p, s, row, path, &s->rows[s->n++], err) < 0)
                        return -1;
        }
        if (s->n && s->target <= 0)
                return err_set(err, E_INVALID, "targets needs %s, a number of milliseconds", s->latency);
        return 0;
}

/* OBJECT's list KEY of numbers, N of them; N of 0 takes what there is. */
static int column(struct pick *p, const struct json *object, const char *path, const char *key, size_t *n,
                  double **ret, struct err *err)
{
        const struct json *array;
        size_t i = 0;

        if (list(object, path, key, ROWS_MAX, &array, err) < 0)
                return -1;
        if (!json_len(array))
                return err_set(err, E_INVALID, "%s needs %s, a list of numbers", path, key);
        if (*n && json_len(array) != *n)
                return err_set(err, E_INVALID, "%s: %s has %zu numbers, and the list before it %zu", path,
                               key, json_len(array), *n);
        *n = json_len(array);
        *ret = arena_new_array(p->arena, double, *n);
        json_foreach (value, array)
                if (!json_to_double(value, &(*ret)[i++]))
                        return err_set(err, E_INVALID, "%s: %s[%zu] is no number", path, key, i - 1);
        return 0;
}

static int read_curve(struct pick *p, const struct json *curve, struct err *err)
{
        static const char path[] = "prefillCurve";
        double *isl, *ttft, *throughput;
        size_t n = 0;

        if (!curve)
                return 0;
        if (column(p, curve, path, "prefill_isl", &n, &isl, err) < 0 ||
            column(p, curve, path, "prefill_ttft", &n, &ttft, err) < 0 ||
            column(p, curve, path, "prefill_thpt_per_gpu", &n, &throughput, err) < 0)
                return -1;
        if (sla_spline_init(p->arena, isl, ttft, n, &p->ttft, err) < 0 ||
            sla_spline_init(p->arena, isl, throughput, n, &p->throughput, err) < 0)
                return err_wrap(err, "%s", path);
        p->has_curve = true;
        return 0;
}

static int read_surface(struct pick *p, const struct json *surface, struct err *err)
{
        static const char path[] = "decodeSurface";
        double *usage, *context, *itl, *throughput;
        struct sla_sample *samples;
        size_t n = 0;

        if (!surface)
                return 0;
        if (column(p, surface, path, "x_kv_usage", &n, &usage, err) < 0 ||
            column(p, surface, path, "y_context_length", &n, &context, err) < 0 ||
            column(p, surface, path, "z_itl", &n, &itl, err) < 0 ||
            column(p, surface, path, "z_thpt_per_gpu", &n, &throughput, err) < 0)
                return -1;
        samples = arena_new_array(p->arena, struct sla_sample, n);
        for (size_t i = 0; i < n; i++)
                samples[i] = (struct sla_sample){.kv_usage = usage[i],
                                                 .context = context[i],
                                                 .itl = itl[i],
                                                 .throughput = throughput[i]};
        p->surface = sla_surface_new(p->arena, samples, n, err);
        return p->surface ? 0 : err_wrap(err, "%s", path);
}

static int read_pick(struct pick *p, const struct json *in, struct err *err)
{
        const struct want isl = {"pick", "isl", .positive = true}, osl = {"pick", "osl", .positive = true};

        if (!json_is(in, JSON_OBJECT))
                return err_set(err, E_INVALID, "pick needs an object, not %s",
                               in ? json_type_name((enum json_type)in->type) : "nothing");
        if (number(in, &isl, 0, &p->isl, err) < 0 || number(in, &osl, 0, &p->osl, err) < 0 ||
            read_side(p, &p->prefill, in, err) < 0 || read_side(p, &p->decode, in, err) < 0 ||
            read_curve(p, json_at(in, "prefillCurve"), err) < 0)
                return -1;
        return read_surface(p, json_at(in, "decodeSurface"), err);
}

/* ---- pick: what comes of it */

static void choose(struct pick *p, struct side *s)
{
        struct arena *a = p->arena;
        const struct sla_row *row;
        struct json *o;

        s->chosen = sla_pick(s->rows, s->n, s->target, &s->choice);
        if (!s->chosen)
                return;
        row = &s->rows[s->choice.index];
        o = json_set(a, p->out, s->name, json_object(a));
        json_set(a, o, "index", json_u64(a, s->choice.index));
        json_set(a, o, "label", json_string(a, row->candidate.label));
        json_set(a, o, "feasible", json_truth(a, s->choice.feasible));
        json_set(a, o, "best", json_double(a, s->choice.best));
        json_set(a, o, s->latency, json_double(a, row->latency));
        json_set(a, o, "throughput", json_double(a, row->throughput));
        if (s == &p->decode)
                json_set(a, o, "concurrency", json_u64(a, row->concurrency));
}

static struct json *pareto(const struct pick *p, const struct side *s)
{
        double *x = arena_new_array(p->arena, double, s->n), *y = arena_new_array(p->arena, double, s->n);
        size_t *kept = arena_new_array(p->arena, size_t, s->n), n;
        struct json *array = json_array(p->arena);

        for (size_t i = 0; i < s->n; i++) {
                x[i] = s->rows[i].latency;
                y[i] = s->rows[i].throughput;
        }
        n = sla_pareto(x, y, s->n, kept);
        for (size_t i = 0; i < n; i++)
                json_append(array, json_u64(p->arena, kept[i]));
        return s->n ? array : NULL;
}

static const struct sla_row *chosen_row(const struct side *s)
{
        return s->chosen ? &s->rows[s->choice.index] : NULL;
}

static void choose_both(struct pick *p)
{
        struct arena *a = p->arena;
        struct json *prefill_front, *decode_front;

        choose(p, &p->prefill);
        choose(p, &p->decode);
        prefill_front = pareto(p, &p->prefill);
        decode_front = pareto(p, &p->decode);
        if (prefill_front || decode_front)
                json_set(a, p->out, "pareto",
                         json_build(a, "{'prefill': %p, 'decode': %p}", (void *)prefill_front,
                                    (void *)decode_front));
        if (p->prefill.chosen && p->decode.chosen && p->isl > 0 && p->osl > 0)
                json_set(a, p->out, "cost",
                         json_double(a, sla_cost(p->isl, chosen_row(&p->prefill)->throughput, p->osl,
                                                 chosen_row(&p->decode)->throughput)));
}

/* One entry of `at`. */
static struct json *look_up(const struct pick *p, const struct json *at, const char *path, struct err *err)
{
        struct arena *a = p->arena;
        const struct want isl_wanted = {.path = path, .key = "isl"},
                          itl_wanted = {.path = path, .key = "itl"},
                          usage_wanted = {.path = path, .key = "kvUsage"},
                          context_wanted = {path, "context", .positive = true, .needed = true};
        double isl, itl, usage, context;
        bool by_isl = json_at(at, "isl"), by_usage = json_at(at, "kvUsage"), by_itl = json_at(at, "itl");
        struct json *o = json_object(a);

        if (by_isl + by_usage + by_itl != 1)
                return err_set(err, E_INVALID, "%s needs one of isl, kvUsage and itl", path), NULL;
        if (by_isl ? !p->has_curve : !p->surface)
                return err_set(err, E_INVALID, "%s needs %s", path,
                               by_isl ? "prefillCurve" : "decodeSurface"),
                       NULL;
        if (number(at, &isl_wanted, 0, &isl, err) < 0 || number(at, &usage_wanted, 0, &usage, err) < 0 ||
            number(at, &itl_wanted, 0, &itl, err) < 0 ||
            (!by_isl && number(at, &context_wanted, 0, &context, err) < 0))
                return NULL;
        if (by_isl) {
                json_set(a, o, "isl", json_double(a, isl));
                json_set(a, o, "ttft", json_double(a, sla_spline_at(&p->ttft, isl)));
                json_set(a, o, "throughput", json_double(a, sla_spline_at(&p->throughput, isl)));
                return o;
        }
        json_set(a, o, "context", json_double(a, context));
        if (by_itl) {
                double best = sla_surface_best(p->surface, itl, context, &usage);

                json_set(a, o, "feasible", json_truth(a, sla_surface_itl(p->surface, usage, context) <= itl));
                json_set(a, o, "throughput", json_double(a, best));
        } else {
                itl = sla_surface_itl(p->surface, usage, context);
                json_set(a, o, "throughput",
                         json_double(a, sla_surface_throughput(p->surface, usage, context)));
        }
        json_set(a, o, "kvUsage", json_double(a, usage));
        json_set(a, o, "itl", json_double(a, itl));
        return o;
}

static int look_up_all(struct pick *p, const struct json *in, struct err *err)
{
        const struct json *at;
        struct json *found = json_array(p->arena);

        if (list(in, "pick", "at", AT_MAX, &at, err) < 0)
                return -1;
        json_foreach (entry, at) {
                struct json *o = look_up(p, entry, arena_printf(p->arena, "at[%zu]", json_len(found)), err);

                if (!o)
                        return -1;
                json_append(found, o);
        }
        if (at)
                json_set(p->arena, p->out, "at", found);
        return 0;
}

/* ---- replicas */

static int read_demand(const struct pick *p, const struct json *in, struct sla_demand *d, struct err *err)
{
        static const char path[] = "demand";
        const struct sla_row *prefill = chosen_row(&p->prefill), *decode = chosen_row(&p->decode);
        double rate = 0;
        const struct {
                struct want want;
                double otherwise, *ret;
        } numbers_wanted[] = {
                {{.path = path, .key = "requestRate"}, 0, &rate},
                {{path, "interval", .positive = true}, 180, &d->interval},
                {{path, "requests", .needed = !json_at(in, "requestRate")}, 0, &d->requests},
                {{path, "isl", .positive = true, .needed = p->isl <= 0}, p->isl, &d->isl},
                {{path, "osl", .positive = true, .needed = p->osl <= 0}, p->osl, &d->osl},
                {{path, "itl", .positive = true, .needed = p->surface && p->decode.target <= 0},
                 p->decode.target,
                 &d->itl},
                {{.path = path, .key = "prefillCorrection"}, 1, &d->prefill_corr},
                {{.path = path, .key = "decodeCorrection"}, 1, &d->decode_corr},
        };
        const struct {
                struct want want;
                unsigned otherwise, *ret;
        } counts_wanted[] = {
                {{path, "prefillGpus", .positive = true, .needed = !prefill},
                 prefill ? prefill->candidate.gpus : 0,
                 &d->prefill_gpus},
                {{path, "decodeGpus", .positive = true, .needed = !decode},
                 decode ? decode->candidate.gpus : 0,
                 &d->decode_gpus},
                {{path, "maxGpuBudget", .positive = true}, 8, &d->budget},
                {{path, "minEndpoint", .positive = true}, 1, &d->min_endpoint},
        };

        for (size_t i = 0; i < ARRAY_LEN(numbers_wanted); i++)
                if (number(in, &numbers_wanted[i].want, numbers_wanted[i].otherwise, numbers_wanted[i].ret,
                           err) < 0)
                        return -1;
        for (size_t i = 0; i < ARRAY_LEN(counts_wanted); i++) {
                uint64_t value;

                if (count(in, &counts_wanted[i].want, counts_wanted[i].otherwise, SLA_GPUS_MAX, &value, err) <
                    0)
                        return -1;
                *counts_wanted[i].ret = (unsigned)value;
        }
        if (json_at(in, "requestRate"))
                d->requests = rate * d->interval;
        return 0;
}

/* What an engine of each kind does of this demand: by the curves where they are, else as the choice was measured. */
static int throughputs(const struct pick *p, const struct sla_demand *d, double *prefill, double *decode,
                       struct err *err)
{
        if (!p->has_curve && !p->prefill.chosen)
                return err_set(err, E_INVALID, "demand needs prefillCurve or rows of prefill");
        if (!p->surface && !p->decode.chosen)
                return err_set(err, E_INVALID, "demand needs decodeSurface or rows of decode");
        *prefill = p->has_curve ? sla_spline_at(&p->throughput, d->isl) : chosen_row(&p->prefill)->throughput;
        *decode = p->surface ? sla_demand_throughput(d, p->surface) : chosen_row(&p->decode)->throughput;
        return 0;
}

static int plan_replicas(struct pick *p, const struct json *in, struct err *err)
{
        const struct json *demand = json_at(in, "demand");
        struct arena *a = p->arena;
        struct sla_demand d = {0};
        struct sla_replicas r;
        double prefill, decode;
        struct json *o;

        if (!demand)
                return 0;
        if (read_demand(p, demand, &d, err) < 0 || throughputs(p, &d, &prefill, &decode, err) < 0)
                return -1;
        if (sla_replicas(&d, prefill, decode, &r, err) < 0)
                return err_wrap(err, "demand");
        o = json_build(a, "{'prefill': %u, 'decode': %u, 'gpus': %u, 'capped': %p}", r.prefill, r.decode,
                       r.gpus, (void *)json_truth(a, r.capped));
        json_set(a, o, "prefillThroughput", json_double(a, prefill));
        json_set(a, o, "decodeThroughput", json_double(a, decode));
        json_set(a, p->out, "replicas", o);
        return 0;
}

/* The whole input, or a run's curves in it. */
static bool is_simulated(const struct json *in)
{
        const struct json *parts[] = {in, json_at(in, "prefillCurve"), json_at(in, "decodeSurface")};

        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                if (json_bool(parts[i], "simulated", false))
                        return true;
        return false;
}

struct json *sla_pick_json(struct arena *a, const struct json *in, struct err *err)
{
        struct pick p = {
                .arena = a,
                .prefill = {.name = "prefill", .latency = "ttft"},
                .decode = {.name = "decode", .latency = "itl"},
                .out = json_object(a),
        };

        if (read_pick(&p, in, err) < 0)
                return NULL;
        choose_both(&p);
        if (look_up_all(&p, in, err) < 0 || plan_replicas(&p, in, err) < 0)
                return NULL;
        if (json_len(p.out) && is_simulated(in))
                json_set(a, p.out, "simulated", json_truth(a, true));
        if (!json_len(p.out))
                return err_set(err, E_INVALID,
                               "pick needs rows of prefill or decode, places (at), or a demand"),
                       NULL;
        return p.out;
}
