#include "probe/load/export_internal.h"

/* ---- the summary */

static void set_statistics(struct arena *a, struct json *to, const struct stats_summary *s)
{
        json_set(a, to, "avg", json_double(a, s->avg));
        for (int i = 0; i < STATS_PERCENTS_; i++)
                json_set(a, to, arena_printf(a, "p%u", stats_percents[i]), json_double(a, s->p[i]));
        json_set(a, to, "min", json_double(a, s->min));
        json_set(a, to, "max", json_double(a, s->max));
        json_set(a, to, "std", json_double(a, s->std));
        json_set(a, to, "count", json_u64(a, s->n));
        json_set(a, to, "sum", json_double(a, s->sum));
}

static void set_metrics(struct arena *a, struct json *to, const struct load_config *c,
                        const struct load_summary *s)
{
        struct load_single singles[LOAD_SINGLES_MAX];
        size_t n = load_singles(c, s, singles);

        for (int i = 0; i < LOAD_METRICS_; i++) {
                struct json *metric;

                if (!s->metrics[i].n)
                        continue;
                metric = json_build(a, "{'unit': %s}", load_metrics[i].unit);
                set_statistics(a, metric, &s->metrics[i]);
                json_set(a, to, load_metrics[i].tag, metric);
        }
        for (size_t i = 0; i < n; i++)
                json_set(a, to, singles[i].tag,
                         json_build(a, "{'unit': %s, 'avg': %p}", singles[i].unit,
                                    json_double(a, singles[i].value)));
}

static struct json *count_or_none(struct arena *a, uint64_t n)
{
        return n ? json_u64(a, n) : NULL;
}

static struct json *rate_or_none(struct arena *a, double value)
{
        return value > 0 ? json_double(a, value) : NULL;
}

static struct json *endpoint_json(struct arena *a, const struct load_config *c)
{
        return json_build(a, "{'model_names': [%p], 'type': %s, 'streaming': %p, 'url': %s}",
                          json_string(a, c->model), c->endpoint == LLM_CHAT ? "chat" : "completions",
                          json_truth(a, !c->whole), load_url_shown(a, c->url));
}

static struct json *prompt_json(struct arena *a, const struct load_config *c)
{
        struct json *in = c->trace ? NULL
                                   : json_build(a, "{'mean': %u, 'stddev': %u}",
                                                c->isl ? c->isl : (uint32_t)LOAD_ISL_DEFAULT, c->isl_stddev);
        struct json *out = c->osl ? json_build(a, "{'mean': %u, 'stddev': %u}", c->osl, c->osl_stddev) : NULL;

        return json_build(a, "{'input_tokens': %p, 'output_tokens': %p}", in, out);
}

/* Of headers not one: a key may be among them. */
static struct json *config_json(struct arena *a, const struct load_config *c)
{
        bool open = c->rate > 0;
        const char *slash = c->trace ? strrchr(c->trace, '/') : NULL;
        struct json *input, *load;

        input = json_build(
                a, "{'random_seed': %p, 'prompt': %p, 'conversation': {'num': %p}, 'extra': %p, 'file': %p}",
                json_u64(a, c->seed), prompt_json(a, c),
                c->trace ? NULL : json_u64(a, c->prompts ? c->prompts : LOAD_PROMPTS_DEFAULT),
                c->extra ? json_copy(a, c->extra) : NULL, json_string(a, slash ? slash + 1 : c->trace));
        load = json_build(
                a,
                "{'concurrency': %p, 'request_rate': %p, 'request_rate_mode': %p, 'request_count': %p,"
                "'benchmark_duration': %p, 'warmup_request_count': %p}",
                count_or_none(a, !c->concurrency && !open && !c->trace ? 1 : c->concurrency),
                rate_or_none(a, c->rate), open ? json_string(a, arrival_patterns[c->pattern]) : NULL,
                count_or_none(a, c->requests), rate_or_none(a, (double)c->duration / USEC_PER_SEC),
                count_or_none(a, c->warmup_requests));
        return json_build(a, "{'endpoint': %p, 'input': %p, 'loadgen': %p}", endpoint_json(a, c), input,
                          load);
}

static struct json *errors_json(struct arena *a, const struct load_report *r)
{
        struct json *list = json_array(a);
        struct load_errors *groups;
        size_t n;

        groups = load_error_groups(a, r, true, &n);
        for (size_t i = 0; i < n; i++)
                json_append(
                        list,
                        json_build(a,
                                   "{'error_details': {'code': %p, 'type': %s, 'message': %s}, 'count': %p}",
                                   groups[i].code ? json_i64(a, groups[i].code) : NULL, groups[i].type,
                                   groups[i].message, json_u64(a, groups[i].count)));
        return list;
}

static struct json *statistics_or_none(struct arena *a, const struct stats_summary *s)
{
        struct json *j = s->n ? json_object(a) : NULL;

        if (j)
                set_statistics(a, j, s);
        return j;
}

/* What AIPerf does not say: the client's own part, and how the numbers came about. */
static struct json *ours_json(struct arena *a, const struct load_config *c, const struct load_report *r)
{
        return json_build(
                a,
                "{'version': %s, 'invalid': %s, 'simulated': %p, 'tokenizer': %s, 'osl_exact': %p,"
                "'lateness_us': %p, 'client_cpu': %p, 'client_cpu_seconds': %p, 'kernel_stamps': %p,"
                "'stamp_error_us': %p, 'chunks': %p, 'cancelled_request_count': %p,"
                "'unsent_request_count': %p, 'requests_without_icl': %p, 'shared_first_reads': %p,"
                "'late_first_reads': %p,"
                "'ended_early': %s}",
                SONDE_VERSION, r->invalid, load_simulated(c, r) ? json_truth(a, true) : NULL, r->tokenizer,
                json_truth(a, r->summary.osl_exact), statistics_or_none(a, &r->summary.lateness),
                json_double(a, r->cpu), json_double(a, r->cpu_seconds), json_truth(a, r->kernel_stamps),
                statistics_or_none(a, &r->stamp_error), json_u64(a, r->chunks),
                json_u64(a, r->summary.n_canceled), json_u64(a, r->unsent),
                json_u64(a, r->summary.n_without_gaps), json_double(a, load_shared_share(&r->summary)),
                json_double(a, load_late_share(&r->summary)), r->ended_early);
}

/* With an offset, which every reader of ISO 8601 knows; Python's before 3.11 does not know 'Z'. */
static struct json *time_json(struct arena *a, uint64_t ns)
{
        char text[TIME_TEXT_MAX];
        struct str s = str_of(time_format_micro(ns / 1000, text));

        return json_string(a, arena_printf(a, "%.*s+00:00", (int)(s.n ? s.n - 1 : 0), text));
}

static void set_times(struct arena *a, struct json *to, const struct load_report *r)
{
        uint64_t first = UINT64_MAX, last = 0;

        for (size_t i = 0; i < r->n; i++) {
                const struct load_record *one = &r->records[i];

                if (one->warmup || !one->start)
                        continue;
                first = MIN(first, one->start);
                last = MAX(last, MAX(one->start, one->end));
        }
        if (!last)
                first = last = r->clock_began;
        json_set(a, to, "start_time", time_json(a, load_wall_ns(r, first)));
        json_set(a, to, "end_time", time_json(a, load_wall_ns(r, last)));
}

struct json *load_summary_json(struct arena *a, const struct load_config *c, const struct load_report *r)
{
        struct json *root = json_object(a), *warmup = json_object(a);

        set_metrics(a, root, c, &r->summary);
        set_metrics(a, warmup, c, &r->warmup);
        json_set(a, root, "warmup_metrics", json_len(warmup) ? warmup : NULL);
        json_set(a, root, "input_config", config_json(a, c));
        json_set(a, root, "was_cancelled", json_truth(a, r->stopped));
        json_set(a, root, "error_summary", errors_json(a, r));
        set_times(a, root, r);
        json_set(a, root, "sonde", ours_json(a, c, r));
        return root;
}

/* ---- the files */

static int write_summary(const struct load_config *c, const struct load_report *r, const char *path,
                         struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf out = BUF_INIT(64 << 20);

        json_write(load_summary_json(&a, c, r), JSON_PRETTY, &out);
        buf_addc(&out, '\n');
        if (out.overflow)
                return err_set(err, E_TOO_LARGE, "%s would be too large", path);
        return file_replace(path, buf_str(&out), 0644, err);
}

static int write_csv(const struct load_config *c, const struct load_report *r, const char *path,
                     struct err *err)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(1 << 20);

        load_csv(c, r, &out);
        return file_replace(path, buf_str(&out), 0644, err);
}

static int write_records(const struct load_config *c, const struct load_report *r, const char *path,
                         struct err *err)
{
        return load_export_records(r, path, err);
}

static int write_inputs(const struct load_config *c, const struct load_report *r, const char *path,
                        struct err *err)
{
        return load_export_inputs(r, path, err);
}

/* The summary last: whoever sees it sees all of them. */
static const struct {
        const char *name;
        int (*write)(const struct load_config *c, const struct load_report *r, const char *path,
                     struct err *err);
} files[] = {
        {"inputs.json", write_inputs},
        {"profile_export.jsonl", write_records},
        {"profile_export_aiperf.csv", write_csv},
        {"profile_export_aiperf.json", write_summary},
};

int load_export(const struct load_config *c, const struct load_report *r, const char *dir, struct err *err)
{
        if (dir_make(dir, 0755, err) < 0)
                return -1;
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                _cleanup_(free_ptr) char *path = xasprintf("%s/%s", dir, files[i].name);

                if (files[i].write(c, r, path, err) < 0)
                        return -1;
        }
        return 0;
}
