/*
 * One deployment of one candidate in one phase: it comes up when a point of it is wanted that nobody has measured yet, and a
 * failure of it ends here, as a sentence in the checkpoint.
 */
#include "probe/sla/run_internal.h"

enum { PREFILL_SEED = 100, DECODE_SEEDS = 1000000 };

/* ---- what is fired */

struct sla_shot stage_prefill_shot(const struct sla_candidate *c, uint64_t isl)
{
        uint64_t n = c->attn_dp > 1 ? (uint64_t)c->attn_dp * SLA_BURST : 1;

        return (struct sla_shot){
                .concurrency = n,
                .requests = n,
                .isl = isl,
                .osl = SLA_PREFILL_OSL,
                .warmup = (uint64_t)SLA_WARMUP_A_RANK * MAX(c->attn_dp, 1u),
                .seed = PREFILL_SEED,
        };
}

struct sla_shot stage_decode_shot(const struct sla_candidate *c, uint64_t isl, uint64_t osl,
                                  uint64_t concurrency)
{
        /* A seed of its own for each point, and the same one in every life of the run. */
        uint64_t seed = isl * 2654435761u + concurrency * 40503u + osl * 97u + c->gpus * 31u + c->mapping;

        return (struct sla_shot){
                .concurrency = concurrency,
                .requests = concurrency,
                .isl = isl,
                .osl = osl,
                .seed = seed % DECODE_SEEDS,
                .twice = true,
        };
}

double stage_ttft(const struct sla_candidate *c, const struct sla_point *p)
{
        if (c->attn_dp <= 1)
                return p->ttft_avg;
        if (p->ttft_max < 0 || p->itl_avg < 0)
                return -1;
        return sla_burst_ttft(p->ttft_max, p->itl_avg);
}

/* ---- failures */

static struct checkpoint_key key_of(const struct stage *s, const struct sla_shot *shot)
{
        return (struct checkpoint_key){
                .phase = s->phase,
                .label = s->c->label,
                .isl = shot ? shot->isl : 0,
                .concurrency = shot ? shot->concurrency : 0,
        };
}

static void take_down(struct stage *s)
{
        if (!s->up)
                return;
        s->w->run->target->ops->stop(s->w->run->target, &s->server);
        s->up = false;
}

/* Going on would only measure what is lost again. */
static int broken(struct stage *s, struct err *err)
{
        s->w->broken = true;
        err_wrap(err, "cannot keep what was measured");
        err->code = E_CANCELED;
        return -1;
}

/* Puts what failed into the checkpoint: SHOT, or with NULL the candidate. Returns -1 with ERR as it will read from there. */
static int failed(struct stage *s, const struct sla_shot *shot, struct err *err)
{
        struct checkpoint_key key = key_of(s, shot);
        struct err why = *err;

        if (s->w->broken)
                return -1;
        if (err->code == E_CANCELED || profiling_stopped(s->w))
                return err_set(err, E_CANCELED, "told to stop");
        LOG_WARN(s->w->run->services.log, "Could not be measured", F_STR("phase", s->phase),
                 F_STR("candidate", s->c->label), F_UINT("isl", key.isl),
                 F_UINT("concurrency", key.concurrency), F_ERR(&why));
        if (checkpoint_add_failure(s->w->checkpoint, &key, why.text, err) < 0)
                return broken(s, err);
        return err_set(err, E_REFUSED, "%s", checkpoint_failure(s->w->checkpoint, &key));
}

/* ---- up */

static int learn_kv(struct stage *s, struct err *err)
{
        uint64_t kv = s->server.kv_tokens ? s->server.kv_tokens : s->w->run->services.kv_tokens;

        if (s->role != SLA_DECODE || checkpoint_kv(s->w->checkpoint, s->c->label))
                return 0;
        if (!kv)
                return err_set(err, E_CONFIG,
                               "the server's log does not say the size of its KV cache; give --kv-tokens");
        return checkpoint_add_kv(s->w->checkpoint, s->c->label, kv, err) < 0 ? broken(s, err) : 0;
}

static int bring_up(struct stage *s, struct err *err)
{
        struct sla_target *t = s->w->run->target;

        if (s->up)
                return 0;
        if (profiling_stopped(s->w))
                return err_set(err, E_CANCELED, "told to stop");
        profiling_tell(s->w, s->c, s->step, "Deploying");
        s->server = (struct sla_server){0};
        s->up = true; /* half-started servers are taken down, too */
        if (t->ops->start(t, s->c, s->role, &s->server, err) < 0 || learn_kv(s, err) < 0) {
                take_down(s);
                return -1;
        }
        return 0;
}

/* Why the candidate as a whole is out, from this life or an earlier one; 0: it is not. */
static int is_out(struct stage *s, struct err *err)
{
        struct checkpoint_key key = key_of(s, NULL);
        const char *reason = checkpoint_failure(s->w->checkpoint, &key);

        return reason ? err_set(err, E_REFUSED, "%s", reason) : 0;
}

static int ensure_up(struct stage *s, struct err *err)
{
        while (bring_up(s, err) < 0) {
                if (err->code == E_CANCELED || s->restarts == 0)
                        return failed(s, NULL, err);
                s->restarts--;
        }
        return 0;
}

int stage_kv(struct stage *s, uint64_t *ret, struct err *err)
{
        *ret = checkpoint_kv(s->w->checkpoint, s->c->label);
        if (is_out(s, err) < 0)
                return -1;
        if (*ret)
                return 0;
        if (ensure_up(s, err) < 0)
                return -1;
        *ret = checkpoint_kv(s->w->checkpoint, s->c->label);
        return 0;
}

/* ---- a point */

static int check(const struct sla_point *p, const struct sla_shot *shot, struct err *err)
{
        if (p->invalid)
                return err_set(err, E_BUSY, "the client was the bottleneck: %s", p->invalid);
        if (p->errors * 100 > shot->requests * SLA_ERRORS_PERCENT)
                return err_set(err, E_SERVER, "%llu of %llu requests failed", (unsigned long long)p->errors,
                               (unsigned long long)shot->requests);
        if (p->ttft_avg < 0 || (shot->twice && (p->itl_avg < 0 || p->output_throughput <= 0)))
                return err_set(err, E_SERVER, "the answers have too few tokens to measure by");
        return 0;
}

static const char *artifacts_of(struct arena *a, const struct stage *s, const struct sla_shot *shot)
{
        const char *dir = s->w->run->services.artifacts, *name;

        if (!dir)
                return NULL;
        name = profiling_candidate_dir(a, s->role, s->c);
        if (!shot->twice)
                return arena_printf(a, "%s/%s/aiperf_isl%llu", dir, name, (unsigned long long)shot->isl);
        return arena_printf(a, "%s/%s/aiperf_request%llu_isl%llu_osl%llu_n%llu", dir, name,
                            (unsigned long long)shot->concurrency, (unsigned long long)shot->isl,
                            (unsigned long long)shot->osl, (unsigned long long)shot->concurrency);
}

static int fire(struct stage *s, const struct sla_shot *shot, struct sla_point *ret, struct err *err)
{
        const struct sla_run *run = s->w->run;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        int tries = SLA_TRIES, ok;

        if (run->truth)
                return sla_measure_truth(&s->server, shot, ret, err);
        do
                ok = sla_measure(&run->services, &s->server, shot, artifacts_of(&a, s, shot), ret, err);
        while (ok == 0 && ret->invalid && --tries > 0 && !profiling_stopped(s->w));
        return ok;
}

static void add_why(struct stage *s, struct err *err)
{
        const struct sla_target_ops *ops = s->w->run->target->ops;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *why = ops->why && s->up ? ops->why(s->w->run->target, &s->server, &a) : NULL;

        if (why)
                err_set(err, err->code, "%s", arena_join(&a, why, "; ", err->text));
}

static int measure(struct stage *s, const struct sla_shot *shot, struct sla_point *ret, struct err *err)
{
        struct checkpoint_key key = key_of(s, shot);

        *ret = (struct sla_point){.ttft_avg = -1, .ttft_max = -1, .itl_avg = -1};
        if (fire(s, shot, ret, err) < 0 || check(ret, shot, err) < 0) {
                if (err->code != E_CANCELED)
                        add_why(s, err);
                return -1;
        }
        if (checkpoint_add_point(s->w->checkpoint, &key, ret, err) < 0)
                return broken(s, err);
        LOG_INFO(s->w->run->services.log, "Measured", F_STR("phase", s->phase),
                 F_STR("candidate", s->c->label), F_UINT("isl", shot->isl),
                 F_UINT("concurrency", shot->concurrency), F_UINT("ttftUs", ret->ttft_avg * 1000),
                 F_UINT("itlUs", MAX(ret->itl_avg, 0.0) * 1000));
        return 0;
}

int stage_point(struct stage *s, const struct sla_shot *shot, int64_t step, const char *sub_phase,
                struct sla_point *ret, struct err *err)
{
        struct checkpoint_key key = key_of(s, shot);
        const struct sla_point *known = checkpoint_point(s->w->checkpoint, &key);
        const char *reason = checkpoint_failure(s->w->checkpoint, &key);

        if (known) {
                *ret = *known;
                return 0;
        }
        if (reason)
                return err_set(err, E_REFUSED, "%s", reason);
        if (is_out(s, err) < 0)
                return -1;
        for (;;) {
                if (ensure_up(s, err) < 0)
                        return -1;
                profiling_tell(s->w, s->c, step, sub_phase);
                if (profiling_stopped(s->w))
                        return err_set(err, E_CANCELED, "told to stop");
                if (measure(s, shot, ret, err) == 0)
                        return 0;
                if (err->code == E_CANCELED || err->code == E_BUSY)
                        return failed(s, shot, err);
                take_down(s); /* whatever it is, the next point shall not meet it */
                if (s->restarts == 0)
                        return failed(s, shot, err);
                s->restarts--;
        }
}

void stage_end(struct stage *s, int64_t step)
{
        if (s->up)
                profiling_tell(s->w, s->c, step, "Cleanup");
        take_down(s);
}
