/*
 * What came out, in files: the deployment for the operator, raw data for planners and people, pictures, a report.
 *
 * Each file is replaced as a whole, and result.json comes last: whoever sees it finds all the others.
 */
#include <math.h>

#include "probe/sla/npz.h"
#include "probe/sla/output_internal.h"
#include "json/json.h"

enum { FILE_MAX = 64 << 20 };
#define PREFILL_DIR "selected_prefill_interpolation"
#define DECODE_DIR  "selected_decode_interpolation"

/* ---- files */

struct writer {
        struct arena *arena;
        const char *dir;
        struct err *err;
};

static int put(const struct writer *w, const char *name, const struct buf *content)
{
        const char *path = arena_printf(w->arena, "%s/%s", w->dir, name);

        if (content->overflow)
                return err_set(w->err, E_TOO_LARGE, "%s would have more than %d MiB", name, FILE_MAX >> 20);
        return file_replace(path, buf_str(content), 0644, w->err);
}

static int put_json(const struct writer *w, const char *name, const struct json *j)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

        json_write(j, JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        return put(w, name, &text);
}

static int put_yaml(const struct writer *w, const char *name, const struct json *const *docs, size_t n)
{
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

        yaml_write_all(docs, n, &text);
        return put(w, name, &text);
}

static int make_dirs(const struct writer *w)
{
        static const char *const dirs[] = {"", "/" PREFILL_DIR, "/" DECODE_DIR};

        for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
                if (dir_make(arena_printf(w->arena, "%s%s", w->dir, dirs[i]), 0755, w->err) < 0)
                        return -1;
        return 0;
}

/* ---- raw data, under upstream's names */

static struct json *reals(struct arena *a, const double *values, size_t n)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < n; i++)
                json_append(list, isfinite(values[i]) ? json_double(a, values[i]) : json_null(a));
        return list;
}

/* One member of all samples, which is AT bytes behind their beginning. */
static double *column(struct arena *a, const struct sla_results *r, size_t at)
{
        double *out = arena_new_array(a, double, r->n_surface + 1);

        for (size_t i = 0; i < r->n_surface; i++)
                memcpy(&out[i], (const char *)&r->surface[i] + at, sizeof(*out));
        return out;
}

/* Which points are estimates, by their indices; NULL: all were measured. */
static struct json *estimates(struct arena *a, const struct sla_results *r, enum sla_role role)
{
        size_t n = role == SLA_PREFILL ? r->n_curve : r->n_surface;
        struct json *list = json_array(a);

        for (size_t i = 0; i < n; i++)
                if (role == SLA_PREFILL ? r->prefill_estimated && r->prefill_estimated[i]
                                        : r->surface[i].estimated)
                        json_append(list, json_u64(a, i));
        return json_len(list) ? list : NULL;
}

/* The same as 1 and 0 for every point; NULL: all were measured. */
static int64_t *estimate_flags(struct arena *a, const struct sla_results *r, enum sla_role role)
{
        const struct json *indices = estimates(a, r, role);
        int64_t *flags = arena_new_array(a, int64_t, role == SLA_PREFILL ? r->n_curve : r->n_surface);
        uint64_t index;

        json_foreach (at, indices)
                if (json_to_u64(at, &index))
                        flags[index] = 1;
        return indices ? flags : NULL;
}

static struct json *prefill_data(struct arena *a, const struct sla_results *r)
{
        return json_build(
                a,
                "{'prefill_isl': %p, 'prefill_ttft': %p, 'prefill_thpt_per_gpu': %p, 'simulated': %p, "
                "'estimated': %p}",
                (void *)reals(a, r->prefill_isl, r->n_curve), (void *)reals(a, r->prefill_ttft, r->n_curve),
                (void *)reals(a, r->prefill_throughput, r->n_curve),
                (void *)(r->simulated ? json_truth(a, true) : NULL), (void *)estimates(a, r, SLA_PREFILL));
}

static const struct {
        const char *name;
        size_t at;
} COLUMNS[] = {{"x_kv_usage", offsetof(struct sla_sample, kv_usage)},
               {"y_context_length", offsetof(struct sla_sample, context)},
               {"z_itl", offsetof(struct sla_sample, itl)},
               {"z_thpt_per_gpu", offsetof(struct sla_sample, throughput)}};

static struct json *decode_data(struct arena *a, const struct sla_results *r)
{
        struct json *data = json_object(a);

        for (size_t i = 0; i < ARRAY_LEN(COLUMNS); i++)
                json_set(a, data, COLUMNS[i].name, reals(a, column(a, r, COLUMNS[i].at), r->n_surface));
        json_set(a, data, "max_kv_tokens", json_u64(a, r->max_kv_tokens));
        if (r->simulated)
                json_set(a, data, "simulated", json_truth(a, true));
        json_set(a, data, "estimated", estimates(a, r, SLA_DECODE));
        return data;
}

/* SIMULATED, an array of one, and ESTIMATED, one of each point, are there only where it is so: readers take arrays by their
 * names. ARRAYS has room for both behind its N. */
static int put_npz(const struct writer *w, const struct sla_results *r, enum sla_role role, const char *name,
                   struct npz_array *arrays, size_t n)
{
        const int64_t *flags = estimate_flags(w->arena, r, role);
        static const int64_t yes[] = {1};
        _cleanup_(buf_done) struct buf text = BUF_INIT(FILE_MAX);

        if (r->simulated) {
                arrays[n] = (struct npz_array){.name = "simulated", .whole = yes, .n = 1};
                n++;
        }
        if (flags) {
                arrays[n] = (struct npz_array){.name = "estimated",
                                               .whole = flags,
                                               .n = role == SLA_PREFILL ? r->n_curve : r->n_surface};
                n++;
        }
        npz_write(arrays, n, &text);
        return put(w, name, &text);
}

static int put_prefill_data(const struct writer *w, const struct sla_results *r)
{
        int64_t *isl = arena_new_array(w->arena, int64_t, r->n_curve + 1);
        struct npz_array arrays[5] = {
                {.name = "prefill_isl", .whole = isl, .n = r->n_curve},
                {.name = "prefill_ttft", .reals = r->prefill_ttft, .n = r->n_curve},
                {.name = "prefill_thpt_per_gpu", .reals = r->prefill_throughput, .n = r->n_curve}};

        if (r->n_curve == 0)
                return 0;
        for (size_t i = 0; i < r->n_curve; i++)
                isl[i] = llround(r->prefill_isl[i]);
        if (put_json(w, PREFILL_DIR "/raw_data.json", prefill_data(w->arena, r)) < 0)
                return -1;
        return r->n_curve < SLA_CURVE_MIN
                       ? 0
                       : put_npz(w, r, SLA_PREFILL, PREFILL_DIR "/raw_data.npz", arrays, 3);
}

static int put_decode_data(const struct writer *w, const struct sla_results *r)
{
        int64_t max = (int64_t)MIN(r->max_kv_tokens, (uint64_t)INT64_MAX);
        struct npz_array arrays[ARRAY_LEN(COLUMNS) + 3];
        size_t n = 0;

        if (r->n_surface == 0)
                return 0;
        for (; n < ARRAY_LEN(COLUMNS); n++)
                arrays[n] = (struct npz_array){.name = COLUMNS[n].name,
                                               .reals = column(w->arena, r, COLUMNS[n].at),
                                               .n = r->n_surface};
        arrays[n] = (struct npz_array){.name = "max_kv_tokens", .whole = &max, .n = 1};
        if (put_json(w, DECODE_DIR "/raw_data.json", decode_data(w->arena, r)) < 0)
                return -1;
        return put_npz(w, r, SLA_DECODE, DECODE_DIR "/raw_data.npz", arrays, n + 1);
}

/* ---- deployments */

/* The ConfigMap that the planner reads. One request's own: two in one namespace must not share it. */
static struct json *profile_map(struct arena *a, const struct sla_results *r)
{
        const char *name = r->request ? name_fit(a, NAME_SUBDOMAIN, "planner-profile-data-", r->request, "",
                                                 NULL)
                                      : "planner-profile-data";
        struct json *map = json_build(a,
                                      "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': %s}, "
                                      "'data': {'prefill_raw_data.json': %s, 'decode_raw_data.json': %s}}",
                                      name, json_print(a, prefill_data(a, r)),
                                      json_print(a, decode_data(a, r)));

        sla_mark_simulated(a, r, map);
        return map;
}

static int put_deployments(const struct writer *w, const struct sla_results *r, const struct json *base)
{
        struct arena *a = w->arena;
        const struct json *map = sla_is_profiled(r) ? profile_map(a, r) : NULL;
        const char *name = json_str(json_at(map, "metadata"), "name");
        const struct json *plain = sla_chosen_deployment(a, r, base);
        const struct json *docs[2] = {map, sla_planned_deployment(a, r, base, name)};
        size_t skip = map ? 0 : 1;

        if (put_yaml(w, "disagg_config.yaml", &plain, 1) < 0 ||
            put_yaml(w, "config_with_planner.yaml", docs + skip, 2 - skip) < 0)
                return -1;
        if (!r->config->use_mocker)
                return 0;
        docs[1] = sla_mocker_deployment(a, r, base, name);
        return put_yaml(w, "mocker_config_with_planner.yaml", docs + skip, 2 - skip);
}

/* ---- pictures and the report */

static int put_pictures(const struct writer *w, const struct sla_results *r)
{
        for (size_t i = 0; i < SLA_PICTURES; i++) {
                _cleanup_(buf_done) struct buf svg = BUF_INIT(FILE_MAX);

                if (sla_pictures[i].draw(w->arena, r, &svg) && put(w, sla_pictures[i].file, &svg) < 0)
                        return -1;
        }
        return 0;
}

static int put_report(const struct writer *w, const struct sla_results *r)
{
        _cleanup_(buf_done) struct buf html = BUF_INIT(FILE_MAX);

        sla_report(w->arena, r, &html);
        return put(w, "report.html", &html);
}

/* ---- the result */

static void set_real(struct arena *a, struct json *object, const char *key, double value)
{
        if (isfinite(value) && value >= 0)
                json_set(a, object, key, json_double(a, value));
}

static struct json *row_json(struct arena *a, const struct sla_row *row, enum sla_role role)
{
        const struct sla_candidate *c = &row->candidate;
        struct json *j = json_build(a, "{'label': %s, 'gpus': %u, 'mapping': %s, 'attentionDp': %u}",
                                    c->label, c->gpus, sim_mappings[c->mapping], MAX(c->attn_dp, 1u));

        set_real(a, j, role == SLA_PREFILL ? "ttft" : "itl", row->latency);
        set_real(a, j, "throughputPerGpu", row->throughput);
        if (role == SLA_DECODE) {
                json_set(a, j, "concurrency", json_u64(a, row->concurrency));
                if (row->kv_tokens)
                        json_set(a, j, "kvTokens", json_u64(a, row->kv_tokens));
        }
        return j;
}

static struct json *rows_json(struct arena *a, const struct sla_row *rows, size_t n, enum sla_role role)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < n; i++)
                json_append(list, row_json(a, &rows[i], role));
        return list;
}

/* Of what was not measured there is the mapping alone. */
static struct json *choice_json(struct arena *a, const struct sla_results *r, enum sla_role role)
{
        const struct sla_choice *choice = role == SLA_PREFILL ? &r->chosen_prefill : &r->chosen_decode;
        const struct sla_row *row = sla_chosen_row(r, role);
        struct sla_candidate c = sla_chosen_candidate(r, role);
        struct json *j;

        if (!row)
                return json_build(a, "{'label': %s, 'gpus': %u, 'mapping': %s, 'measured': %p}", c.label,
                                  c.gpus, sim_mappings[c.mapping], (void *)json_truth(a, false));
        j = row_json(a, row, role);
        json_set(a, j, "measured", json_truth(a, true));
        json_set(a, j, "target", json_double(a, role == SLA_PREFILL ? r->config->ttft : r->config->itl));
        json_set(a, j, "feasible", json_truth(a, choice->feasible));
        set_real(a, j, "best", choice->best);
        return j;
}

static struct json *notes_json(struct arena *a, const struct sla_results *r)
{
        struct json *list = json_array(a);

        for (size_t i = 0; i < r->n_notes; i++)
                json_append(list, json_string(a, r->notes[i]));
        return list;
}

static struct json *replicas_json(struct arena *a, const struct sla_results *r)
{
        if (!r->has_replicas)
                return NULL;
        return json_build(a, "{'prefill': %u, 'decode': %u, 'gpus': %u, 'capped': %p}", r->replicas.prefill,
                          r->replicas.decode, r->replicas.gpus, (void *)json_truth(a, r->replicas.capped));
}

static struct json *result_json(struct arena *a, const struct sla_results *r)
{
        const struct sla_config *c = r->config;
        bool measured = sla_chosen_row(r, SLA_PREFILL) && sla_chosen_row(r, SLA_DECODE);
        struct json *j = json_build(
                a,
                "{'simulated': %p, 'target': %s, 'model': %s, 'backend': %s, "
                "'sla': {'isl': %llu, 'osl': %llu, 'ttft': %p, 'itl': %p}, 'feasible': %p, "
                "'prefill': %p, 'decode': %p, 'replicas': %p, 'notes': %p, "
                "'points': {'measured': %llu, 'saved': %llu}, "
                "'deployments': {'made': %llu, 'saved': %llu}}",
                (void *)json_truth(a, r->simulated), r->target, c->model, c->backend,
                (unsigned long long)c->isl, (unsigned long long)c->osl, (void *)json_double(a, c->ttft),
                (void *)json_double(a, c->itl),
                (void *)(measured ? json_truth(a, r->chosen_prefill.feasible && r->chosen_decode.feasible)
                                  : NULL),
                (void *)choice_json(a, r, SLA_PREFILL), (void *)choice_json(a, r, SLA_DECODE),
                (void *)replicas_json(a, r), (void *)notes_json(a, r), (unsigned long long)r->points_measured,
                (unsigned long long)r->points_saved, (unsigned long long)r->deployments,
                (unsigned long long)r->deployments_saved);

        set_real(a, j, "costPer1000Requests", sla_chosen_cost(r));
        json_set(a, j, "sweep",
                 json_build(a, "{'prefill': %p, 'decode': %p}",
                            (void *)rows_json(a, r->prefill, r->n_prefill, SLA_PREFILL),
                            (void *)rows_json(a, r->decode, r->n_decode, SLA_DECODE)));
        if (r->n_curve)
                json_set(a, j, "prefillCurve", prefill_data(a, r));
        if (r->n_surface)
                json_set(a, j, "decodeCurve", decode_data(a, r));
        return j;
}

int sla_write(const struct sla_results *r, const struct json *base, const char *dir, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct writer w = {.arena = &a, .dir = dir, .err = err};

        if (sla_base_check(base, r->config->backend, err) < 0 || make_dirs(&w) < 0 ||
            put_prefill_data(&w, r) < 0 || put_decode_data(&w, r) < 0 || put_deployments(&w, r, base) < 0 ||
            put_pictures(&w, r) < 0 || put_report(&w, r) < 0)
                return -1;
        return put_json(&w, "result.json", result_json(&a, r));
}
