#include <errno.h>
#include <math.h>
#include <netdb.h>
#include <sys/resource.h>
#include <unistd.h>

#include "probe/load/load_private.h"
#include "stats/random.h"

enum {
        PROMPT_MAX = 64 * 1024 * 1024, /* bytes */
        UNDER_WAY_A_WORKER = 64,
        RATE_A_WORKER = 2000,
        CONNECTIONS_UNCAPPED = 20000,
        DESCRIPTORS = 64, /* beside the connections */
        DESCRIPTORS_A_WORKER = 8,
        SECRET_LEAST = 4, /* bytes */
};
#define TIMEOUT_DEFAULT (6 * 3600 * USEC_PER_SEC)
static const double RATE_MAX = 1e6;

/* ---- what makes no sense */

static int check_lengths(const struct load_config *c, struct err *err)
{
        const struct {
                const char *name;
                uint32_t value;
        } lengths[] = {{"input tokens", c->isl},
                       {"deviation of input tokens", c->isl_stddev},
                       {"output tokens", c->osl},
                       {"deviation of output tokens", c->osl_stddev}};

        for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
                if (lengths[i].value > LOAD_TOKENS_MAX)
                        return err_set(err, E_CONFIG, "%u %s are more than %u", lengths[i].value,
                                       lengths[i].name, LOAD_TOKENS_MAX);
        if (c->osl_stddev && !c->osl)
                return err_set(err, E_CONFIG, "a deviation of output tokens needs their mean");
        return 0;
}

static int check(const struct load_config *c, struct err *err)
{
        struct url url;

        if (url_parse(str_of(c->url), &url, err) < 0)
                return -1;
        if (url.tls && !c->tls)
                return err_set(err, E_CONFIG, "%s needs TLS settings", c->url);
        if (!c->model || !c->model[0])
                return err_set(err, E_CONFIG, "no model is named");
        if (c->concurrency > LOAD_CONCURRENCY_MAX)
                return err_set(err, E_CONFIG, "a concurrency of %u is more than %u", c->concurrency,
                               LOAD_CONCURRENCY_MAX);
        if (c->requests > LOAD_REQUESTS_MAX || c->warmup_requests > LOAD_REQUESTS_MAX)
                return err_set(err, E_CONFIG, "more than %u requests", LOAD_REQUESTS_MAX);
        if (c->workers > LOAD_WORKERS_MAX)
                return err_set(err, E_CONFIG, "%u workers are more than %u", c->workers, LOAD_WORKERS_MAX);
        if (!(c->rate >= 0) || c->rate > RATE_MAX)
                return err_set(err, E_CONFIG, "the request rate must be from 0 to %.0f a second", RATE_MAX);
        if (!c->requests && c->rate * ((double)c->duration / (double)USEC_PER_SEC) > LOAD_REQUESTS_MAX)
                return err_set(err, E_CONFIG, "%g requests a second for %g s are more than %d", c->rate,
                               (double)c->duration / (double)USEC_PER_SEC, LOAD_REQUESTS_MAX);
        if (!c->requests && !c->duration && !c->trace)
                return err_set(err, E_CONFIG, "neither a number of requests nor a duration is given");
        return check_lengths(c, err);
}

/* ---- bodies */

int load_plan_add(struct load_plan *p, struct str prompt, const struct json *messages, uint32_t isl,
                  uint32_t osl, struct err *err)
{
        const struct load_config *c = p->c;
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf text = BUF_INIT(PROMPT_MAX);
        struct llm_request r = {
                .model = c->model,
                .prompt = prompt,
                .max_tokens = osl,
                .stream = !c->whole,
                .include_usage = true,
                .extra = c->extra,
        };

        if (messages) {
                struct json *extra = c->extra ? json_copy(&a, c->extra) : json_object(&a);

                json_set(&a, extra, "messages", json_copy(&a, messages));
                r.extra = extra;
        }
        llm_request_write(&a, c->endpoint, &r, &text);
        if (text.overflow)
                return err_set(err, E_TOO_LARGE, "a request of more than %d MiB", PROMPT_MAX >> 20);
        p->bytes += text.n;
        if (p->bytes > LOAD_BODIES_MAX)
                return err_set(err, E_TOO_LARGE,
                               "the requests of all prompts together have more than %zu MiB",
                               LOAD_BODIES_MAX >> 20);
        p->bodies[p->n_bodies++] = (struct load_body){
                .text = str_n(arena_memdup(&p->arena, text.p, text.n), text.n), .isl = isl};
        return 0;
}

static uint32_t sample_length(struct rng *rng, uint32_t mean, uint32_t stddev)
{
        double v;

        if (!stddev)
                return mean;
        v = mean + stddev * stats_normal(rng);
        return (uint32_t)lround(fmin(fmax(v, 1), LOAD_TOKENS_MAX));
}

static int make_synthetic(struct load_plan *p, struct err *err)
{
        const struct load_config *c = p->c;
        uint64_t n = c->prompts ? c->prompts : LOAD_PROMPTS_DEFAULT;
        struct rng rng;

        if (c->requests)
                n = MIN(n, c->requests + c->warmup_requests);
        p->bodies = arena_new_array(&p->arena, struct load_body, n);
        rng_seed(&rng, c->seed);
        for (uint64_t i = 0; i < n; i++) {
                _cleanup_(buf_done) struct buf prompt = BUF_INIT(PROMPT_MAX);
                uint32_t isl = sample_length(&rng, c->isl ? c->isl : LOAD_ISL_DEFAULT, c->isl_stddev);
                uint32_t osl = sample_length(&rng, c->osl, c->osl_stddev);

                tokens_prompt(p->tokens, &rng, isl, &prompt);
                if (prompt.overflow)
                        return err_set(err, E_TOO_LARGE, "a prompt of %u tokens has more than %d MiB", isl,
                                       PROMPT_MAX >> 20);
                if (load_plan_add(p, buf_str(&prompt), NULL, isl, osl, err) < 0)
                        return -1;
        }
        return 0;
}

/* ---- schedules */

/* Of at most N requests within DURATION (0: any time). Sets how many those are. */
static const uint64_t *make_schedule(struct load_plan *p, uint64_t seed, usec_t duration, uint64_t *n)
{
        const struct load_config *c = p->c;
        VEC(uint64_t) due = {0};
        struct arrivals a;
        uint64_t *kept;

        arrivals_init(&a, c->pattern, c->rate, c->smoothness, seed);
        while (due.n < *n) {
                uint64_t at = arrivals_next(&a);

                if (duration && at >= duration * 1000)
                        break;
                *vec_push(&due) = at;
        }
        *n = due.n;
        kept = arena_alloc(&p->arena, due.n * sizeof(*kept) + 1);
        if (due.n)
                memcpy(kept, due.v, due.n * sizeof(*kept));
        vec_done(&due);
        return kept;
}

/* A trace is replayed in its own time, once; those whose time is after the end are left out. */
static void replay(struct load_plan *p)
{
        usec_t duration = p->c->duration;
        uint64_t n = MIN(p->measured.n, (uint64_t)p->n_bodies);

        while (duration && n && p->trace_due[n - 1] >= duration * 1000)
                n--;
        p->measured.n = n;
        p->measured.due = p->trace_due;
}

static void make_phases(struct load_plan *p)
{
        const struct load_config *c = p->c;
        uint64_t all = c->requests ? c->requests : c->trace && !c->duration ? p->n_bodies : LOAD_REQUESTS_MAX;

        p->warmup.warmup = true;
        p->warmup.n = c->warmup_requests;
        p->warmup.duration = c->duration; /* a server that hangs must not keep the run from its end */
        p->measured.n = all;
        p->measured.duration = c->duration;
        /* A trace begins with its first line whatever came before; else the prompts go on in turn. */
        p->measured.first_body = c->trace ? 0 : c->warmup_requests;
        if (c->rate > 0) {
                p->warmup.due = make_schedule(p, c->seed + 1, 0, &p->warmup.n);
                p->measured.due = make_schedule(p, c->seed, c->duration, &p->measured.n);
        } else if (p->trace_due) {
                replay(p);
        }
}

/* ---- workers and connections */

static uint32_t default_workers(const struct load_plan *p)
{
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        uint32_t most = cores < 1 ? 1 : (uint32_t)MIN(cores, (long)LOAD_WORKERS_MAX), wanted;

        if (p->concurrency)
                wanted = (p->concurrency + UNDER_WAY_A_WORKER - 1) / UNDER_WAY_A_WORKER;
        else
                wanted = 1 + (uint32_t)(p->c->rate / RATE_A_WORKER);
        return MIN(wanted, most);
}

static int make_room(struct load_plan *p, struct err *err)
{
        uint64_t others = DESCRIPTORS + (uint64_t)p->workers * DESCRIPTORS_A_WORKER, have;
        uint64_t connections = p->concurrency ? p->concurrency : CONNECTIONS_UNCAPPED;
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return err_errno(err, E_IO, errno, "cannot ask for the limit on open files");
        if (limit.rlim_cur < connections + others && limit.rlim_cur < limit.rlim_max) {
                limit.rlim_cur = MIN((uint64_t)limit.rlim_max, connections + others);
                if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                        return err_errno(err, E_IO, errno, "cannot raise the limit on open files");
        }
        have = limit.rlim_cur;
        if (have < others + 1 || (p->concurrency && have < connections + others))
                return err_set(
                        err, E_CONFIG,
                        "a concurrency of %u needs %llu open files and %llu are allowed; raise 'ulimit -n'",
                        p->concurrency, (unsigned long long)(connections + others), (unsigned long long)have);
        connections = MIN(connections, have - others);
        p->connections = (unsigned)MAX((connections + p->workers - 1) / p->workers, (uint64_t)1);
        return 0;
}

static void set_headers(struct load_plan *p)
{
        const struct load_config *c = p->c;

        p->headers = arena_new_array(&p->arena, struct http_header, c->n_headers + 2);
        p->headers[p->n_headers++] = (struct http_header){STR("Content-Type"), STR("application/json")};
        p->headers[p->n_headers++] = (struct http_header){STR("Accept"), c->whole ? STR("application/json")
                                                                                  : STR("text/event-stream")};
        for (size_t i = 0; i < c->n_headers; i++)
                p->headers[p->n_headers++] = c->headers[i];
}

/* Every value; of "Bearer KEY" and the like what follows, too. Of very short ones there is no secret to keep. */
static void set_secrets(struct load_plan *p)
{
        const struct load_config *c = p->c;

        p->secrets = arena_new_array(&p->arena, struct str, 2 * c->n_headers + 1);
        for (size_t i = 0; i < c->n_headers; i++) {
                struct str key = c->headers[i].value, scheme;

                if (key.n >= SECRET_LEAST)
                        p->secrets[p->n_secrets++] = key;
                scheme = str_split(&key, ' ');
                key = key.p ? str_trim(key) : STR_NULL;
                if (scheme.n && key.n >= SECRET_LEAST)
                        p->secrets[p->n_secrets++] = key;
        }
}

/* How much of TEXT is SECRET, or its beginning at the end of a text that was cut. */
static size_t secret_at(struct str text, struct str secret)
{
        size_t n = MIN(text.n, secret.n);

        return n >= SECRET_LEAST && memcmp(text.p, secret.p, n) == 0 ? n : 0;
}

void load_hide(const struct str *secrets, size_t n, struct str text, struct buf *out)
{
        while (text.n) {
                size_t hidden = 0;

                for (size_t i = 0; i < n; i++)
                        hidden = MAX(hidden, secret_at(text, secrets[i]));
                if (hidden)
                        buf_adds(out, "***");
                else
                        buf_addc(out, text.p[0]);
                hidden = MAX(hidden, (size_t)1);
                text = str_n(text.p + hidden, text.n - hidden);
        }
}

/* Many write the server's URL with the version in it. */
static void set_target(struct load_plan *p)
{
        const struct load_config *c = p->c;
        struct str version = STR("/v1"), path;
        struct url url;

        p->target = c->path ? c->path : llm_paths[c->endpoint];
        if (c->path || url_parse(str_of(c->url), &url, NULL) < 0)
                return;
        path = url.path;
        while (path.n && path.p[path.n - 1] == '/')
                path.n--;
        if (str_has_suffix(path, version))
                p->target += version.n;
}

int load_plan_make(struct load_plan *p, const struct load_config *c, struct err *err)
{
        *p = (struct load_plan){.c = c, .told = -1};
        if (check(c, err) < 0)
                return -1;
        p->tokens = tokens_load(c->tokenizer, err);
        if (!p->tokens || (c->trace ? load_trace_read(p, c->trace, err) : make_synthetic(p, err)) < 0)
                return -1;
        make_phases(p);
        p->concurrency = c->concurrency || p->measured.due ? c->concurrency : 1;
        p->workers = c->workers ? c->workers : default_workers(p);
        if (p->concurrency)
                p->workers = MIN(p->workers, p->concurrency);
        p->timeout = c->request_timeout ? c->request_timeout : TIMEOUT_DEFAULT;
        set_headers(p);
        set_secrets(p);
        set_target(p);
        return make_room(p, err);
}

void load_plan_done(struct load_plan *p)
{
        tokens_free(p->tokens);
        if (p->addresses)
                freeaddrinfo(p->addresses);
        fd_close(p->told);
        arena_done(&p->arena);
}
