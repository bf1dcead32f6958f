/*
 * One point of one server: with the load generator, or from a simulation's own model in no time.
 */
#include "probe/sla/run_internal.h"

#define EXPORT_FILE "profile_export_aiperf.json"
enum { EXPORT_MAX = 1 << 20 };

/* ---- the load generator */

static int to_u32(uint64_t value, const char *what, uint32_t *ret, struct err *err)
{
        if (value > UINT32_MAX)
                return err_set(err, E_CONFIG, "a %s of %llu is too much", what, (unsigned long long)value);
        *ret = (uint32_t)value;
        return 0;
}

static int load_of(const struct sla_target_config *c, const struct sla_server *s, const struct sla_shot *shot,
                   struct arena *a, struct load_config *ret, struct err *err)
{
        *ret = (struct load_config){
                .url = s->url,
                .endpoint = LLM_CHAT,
                .model = c->config->model,
                .extra = json_build(a, "{'ignore_eos': %p, 'min_tokens': %llu}", json_truth(a, true),
                                    (unsigned long long)shot->osl),
                .requests = shot->requests,
                .request_timeout = c->request_timeout ? c->request_timeout
                                                      : SLA_REQUEST_TIMEOUT_SEC * USEC_PER_SEC,
                .seed = shot->seed,
                .stop_fd = c->stop_fd,
        };
        return to_u32(shot->concurrency, "concurrency", &ret->concurrency, err) < 0 ||
                               to_u32(shot->warmup, "warm-up", &ret->warmup_requests, err) < 0 ||
                               to_u32(shot->isl, "input length", &ret->isl, err) < 0 ||
                               to_u32(shot->osl, "output length", &ret->osl, err) < 0 ||
                               to_u32(shot->requests + shot->warmup, "number of prompts", &ret->prompts,
                                      err) < 0
                       ? -1
                       : 0;
}

/* Why not one request succeeded: the first one's error. */
static int all_failed(const struct load_report *r, struct err *err)
{
        for (size_t i = 0; i < r->n; i++)
                if (r->records[i].error)
                        return err_set(err, E_SERVER, "all %zu requests failed: %s", r->summary.n_errors,
                                       r->records[i].error);
        return err_set(err, E_SERVER, "no request was answered");
}

/* One run; 0: it has numbers. */
static int run_once(const struct load_config *load, struct load_report *r, struct err *err)
{
        if (load_run(load, r, err) < 0)
                return -1;
        if (r->stopped)
                return err_set(err, E_CANCELED, "told to stop");
        return r->has_numbers ? 0 : all_failed(r, err);
}

static int fill_cache(const struct load_config *load, struct err *err)
{
        _cleanup_(load_report_done) struct load_report r = {0};

        return run_once(load, &r, err) < 0 ? err_wrap(err, "filling the prefix cache") : 0;
}

static double mean(const struct stats_summary *s)
{
        return s->n ? s->avg : -1;
}

static void read_summary(const struct load_summary *s, struct sla_point *ret)
{
        ret->ttft_avg = mean(&s->metrics[LOAD_TTFT]);
        ret->ttft_max = s->metrics[LOAD_TTFT].n ? s->metrics[LOAD_TTFT].max : -1;
        ret->itl_avg = mean(&s->metrics[LOAD_ITL]);
        ret->output_throughput = s->has_duration ? s->output_throughput : 0;
        ret->seconds = s->has_duration ? s->duration : 0;
        ret->requests = s->n_requests;
        ret->errors = s->n_errors;
}

/* What upstream keeps of a point. */
static int keep(const struct load_config *load, const struct load_report *r, const char *dir, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(EXPORT_MAX);

        json_write(load_summary_json(&a, load, r), JSON_PRETTY, &text);
        buf_addc(&text, '\n');
        return dir_make(dir, 0755, err) < 0 || file_replace(arena_join(&a, dir, "/", EXPORT_FILE),
                                                            buf_str(&text), 0644, err) < 0
                       ? -1
                       : 0;
}

int sla_measure(const struct sla_target_config *c, const struct sla_server *s, const struct sla_shot *shot,
                const char *dir, struct sla_point *ret, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(load_report_done) struct load_report r = {0};
        _cleanup_(tls_unref) struct tls *tls = NULL;
        struct err ignored = ERR_INIT;
        struct load_config load;

        if (load_of(c, s, shot, &a, &load, err) < 0)
                return -1;
        if (str_has_prefix(str_of(s->url), STR("https:"))) {
                load.tls = tls = tls_new(&(struct tls_config){0}, err);
                if (!tls)
                        return -1;
        }
        if ((shot->twice && fill_cache(&load, err) < 0) || run_once(&load, &r, err) < 0)
                return -1;
        read_summary(&r.summary, ret);
        /* The report goes, so its sentence is kept by its meaning. */
        ret->invalid = r.invalid ? "it could not send or read as fast as it had to" : NULL;
        if (r.invalid)
                LOG_WARN(c->log, "The load generator was the bottleneck", F_STR("why", r.invalid),
                         F_UINT("isl", shot->isl), F_UINT("concurrency", shot->concurrency));
        if (dir && keep(&load, &r, dir, &ignored) < 0)
                LOG_WARN(c->log, "Cannot keep the summary of a point", F_STR("dir", dir), F_ERR(&ignored));
        return 0;
}

/* ---- the model */

int sla_measure_truth(const struct sla_server *s, const struct sla_shot *shot, struct sla_point *ret,
                      struct err *err)
{
        struct sim_load load = {.requests = shot->requests, .again = shot->twice};
        struct load_summary summary;

        if (!s->model)
                return err_set(err, E_CONFIG, "only a simulation can tell its truth");
        if (to_u32(shot->concurrency, "concurrency", &load.concurrency, err) < 0 ||
            to_u32(shot->warmup, "warm-up", &load.warmup, err) < 0 ||
            to_u32(shot->isl, "input length", &load.isl, err) < 0 ||
            to_u32(shot->osl, "output length", &load.osl, err) < 0 ||
            to_u32(shot->requests + shot->warmup, "number of prompts", &load.prompts, err) < 0 ||
            sim_truth(s->model, &load, &summary, err) < 0)
                return -1;
        *ret = (struct sla_point){0};
        read_summary(&summary, ret);
        return 0;
}
