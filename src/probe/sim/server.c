#include "probe/sim/sim.h"

#include <sys/resource.h>

#include "probe/sim/answer.h"

/*
 * The engine is driven by one timer, set to the moment of its next event; requests bring it up to date on the way. Tokens go
 * into their streams as they come and leave at the end of the turn, one write a stream.
 *
 * The engine's callback may not call the engine: a stream that is cut waits in `cut` until the engine has returned.
 */

enum {
        CONNECTIONS_MAX = 20000,
        OTHER_DESCRIPTORS = 64,
        OSL_DEFAULT = 128,
        KEEP_ARENA = 1 << 20,
        WORDS_MAX = 1 << 30
};
/*
 * How much before the engine's next event the timer goes off: about what it takes to wake up. The rest is waited for awake,
 * so that tokens are as punctual as they would be in an engine that does nothing else.
 */
#define LEAD           ((usec_t)60)
#define IDLE_TIMEOUT   (600 * USEC_PER_SEC)
#define HEADER_TIMEOUT (60 * USEC_PER_SEC)
#define STREAM_BACKLOG ((size_t)1 << 20)

struct sim_server {
        struct loop *loop;
        const struct sim_model *model;
        const struct log *log;
        bool stamp;
        void (*on_crash)(void *arg);
        void *arg;
        struct http_server *http;
        struct sim_engine *engine;
        struct sim_answers answers;
        struct timer next, started;
        struct rng rng; /* of faults */
        struct arena arena;
        struct list open, cut; /* struct job */
        uint64_t requests;
        bool ready, hung, crashed;
};

/* One request that is being answered. */
struct job {
        struct sim_request request;
        struct list node;
        struct sim_server *server;
        struct http_exchange *ex;
        enum llm_endpoint endpoint;
        uint64_t id;
        uint32_t cut_at; /* the token with which the connection breaks; 0: none */
        bool stream, usage;
};

/* ---- the backend's words */

void sim_kv_line(const struct sim_model *m, struct buf *out)
{
        /* What T is multiplied with, in hundredths: numbers that are exact in binary, so that T times it is exact, too. */
        static const unsigned times[] = {1250, 800, 625, 500, 400, 250, 200, 150, 125, 100};
        unsigned long long kv = sim_rank_kv(m);

        if (streq(m->backend, "sglang")) {
                buf_printf(out, "KV Cache is allocated. #tokens: %llu", kv);
        } else if (streq(m->backend, "trtllm")) {
                buf_printf(out, "[MemUsageChange] Allocated memory for max tokens in paged KV cache (%llu)",
                           kv);
        } else {
                size_t i = 0;

                while (kv * 100 % times[i])
                        i++;
                buf_printf(out, "Maximum concurrency for %llu tokens per request: %u.%02ux",
                           kv * 100 / times[i], times[i] / 100, times[i] % 100);
        }
}

/* ---- the engine's time */

static nsec_t now_ns(const struct sim_server *s)
{
        return clock_boot_ns(loop_clock(s->loop));
}

static void job_free(struct job *j)
{
        list_remove(&j->node);
        free(j);
}

/* After each call of the engine: what was cut leaves it, and the timer goes to what comes next. */
static void settle(struct sim_server *s)
{
        struct list *node;
        nsec_t next;

        while ((node = list_pop(&s->cut))) {
                struct job *j = CONTAINER_OF(node, struct job, node);

                sim_leave(s->engine, &j->request, 0); /* at the moment at which the engine is */
                free(j);
        }
        next = s->hung ? UINT64_MAX : sim_next(s->engine);
        if (next == UINT64_MAX)
                timer_cancel(&s->next);
        else
                timer_at(&s->next,
                         usec_sub(next / 1000 + (next % 1000 != 0), loop_clock(s->loop)->manual ? 0 : LEAD));
}

static void next_due(struct timer *t)
{
        struct sim_server *s = CONTAINER_OF(t, struct sim_server, next);
        nsec_t due = sim_next(s->engine), now = now_ns(s);

        while (now < due && due - now <= 2 * LEAD * 1000)
                now = now_ns(s);
        sim_advance(s->engine, now);
        settle(s);
}

/* ---- tokens */

static enum sim_chunk_kind kind_of(uint32_t token, uint32_t osl)
{
        if (token == 1)
                return osl == 1 ? SIM_CHUNK_ONLY : SIM_CHUNK_FIRST;
        return token == osl ? SIM_CHUNK_LAST : SIM_CHUNK_MORE;
}

static void write_token(struct sim_server *s, struct job *j, uint32_t token)
{
        uint32_t isl = j->request.isl, osl = j->request.osl;
        bool last = token == osl;

        http_stream_write(j->ex, sim_chunk_text(&s->answers, j->endpoint, kind_of(token, osl), j->id,
                                                s->stamp ? now_ns(s) : 0));
        if (last && j->usage)
                http_stream_write(j->ex, sim_usage_text(&s->answers, j->endpoint, j->id, isl, osl));
        if (last)
                http_stream_write(j->ex, STR("data: [DONE]\n\n"));
        if (s->stamp)
                http_stream_flush(j->ex);
        if (last)
                http_stream_end(j->ex);
}

/* Whoever measures must be able to tell. */
static void reply_json(struct http_exchange *ex, int status, struct str text)
{
        static const struct http_header headers[] = {{STR("Content-Type"), STR("application/json")},
                                                     {STR(LLM_SIMULATED), STR("true")}};

        http_reply_headers(ex, status, &(struct http_headers){headers, ARRAY_LEN(headers)}, text);
}

static void token_came(void *arg, struct sim_request *r, uint32_t token, nsec_t at)
{
        struct sim_server *s = arg;
        struct job *j = CONTAINER_OF(r, struct job, request);
        bool last = token == r->osl;

        if (!j->ex)
                return; /* cut within this call of the engine */
        if (token == j->cut_at) {
                http_stream_abort(TAKE_PTR(j->ex));
                list_remove(&j->node);
                list_append(&s->cut, &j->node);
                return;
        }
        if (j->stream)
                write_token(s, j, token);
        else if (last)
                reply_json(j->ex, 200, sim_whole_text(&s->answers, j->endpoint, j->id, r->isl, r->osl));
        if (last)
                job_free(j);
}

static void client_gone(void *arg)
{
        struct job *j = arg;
        struct sim_server *s = j->server;

        sim_leave(s->engine, &j->request, s->hung ? 0 : now_ns(s));
        job_free(j);
        settle(s);
}

/* ---- requests */

static void refuse(struct sim_server *s, struct http_exchange *ex, int status, const char *message)
{
        reply_json(ex, status, sim_error_text(&s->answers, status, message));
}

static uint32_t count_words(struct str text)
{
        uint32_t n = 0;
        bool in_word = false;

        for (size_t i = 0; i < text.n && n < WORDS_MAX; i++) {
                bool blank = text.p[i] == ' ' || (text.p[i] >= '\t' && text.p[i] <= '\r');

                n += !blank && !in_word;
                in_word = !blank;
        }
        return n;
}

static bool chance(struct sim_server *s, double rate)
{
        return rate > 0 && (double)(rng_next(&s->rng) >> 11) * 0x1p-53 < rate;
}

static void crash(struct sim_server *s)
{
        s->crashed = s->hung = true;
        settle(s);
        LOG_ERROR(s->log, "Crashing, as the model says", F_UINT("requests", s->requests - 1));
        http_server_free(TAKE_PTR(s->http));
        if (s->on_crash)
                s->on_crash(s->arg);
}

static void hang(struct sim_server *s)
{
        if (s->hung)
                return;
        s->hung = true;
        settle(s);
        LOG_ERROR(s->log, "Hanging from now on, as the model says", F_UINT("requests", s->requests - 1));
}

static void begin_answer(struct sim_server *s, struct http_exchange *ex, struct job *j)
{
        static const struct http_header headers[] = {
                {STR("Content-Type"), STR("text/event-stream; charset=utf-8")},
                {STR("Cache-Control"), STR("no-cache")},
                {STR(LLM_SIMULATED), STR("true")}};

        list_append(&s->open, &j->node);
        if (j->stream)
                http_stream_start(ex, 200, &(struct http_headers){headers, ARRAY_LEN(headers)}, client_gone,
                                  j);
        else
                http_on_abandon(ex, client_gone, j);
}

static void take(struct sim_server *s, struct http_exchange *ex, enum llm_endpoint endpoint,
                 const struct llm_request *q, nsec_t now)
{
        struct job *j = xmalloc(sizeof(*j));
        struct err err = ERR_INIT;

        *j = (struct job){
                .request = {.prompt = str_hash(q->prompt),
                            .isl = count_words(q->prompt),
                            .osl = q->max_tokens ? q->max_tokens : OSL_DEFAULT},
                .server = s,
                .ex = ex,
                .endpoint = endpoint,
                .id = s->requests,
                .stream = q->stream,
                .usage = q->include_usage,
        };
        if (chance(s, s->model->faults.cut_rate))
                j->cut_at = MAX(j->request.osl / 2, 1u);
        if (!s->hung && sim_arrive(s->engine, &j->request, now, &err) < 0) {
                free(j);
                refuse(s, ex, 400, err.text);
        } else {
                begin_answer(s, ex, j);
        }
        settle(s);
}

static void complete(struct sim_server *s, struct http_exchange *ex, enum llm_endpoint endpoint)
{
        const struct sim_faults *f = &s->model->faults;
        nsec_t now = now_ns(s);
        struct llm_request q;
        struct err err = ERR_INIT;

        if (!s->ready) {
                refuse(s, ex, 503, "the engine is starting");
                return;
        }
        arena_reset(&s->arena, KEEP_ARENA);
        if (llm_request_parse(&s->arena, http_body(ex), endpoint, &q, &err) < 0) {
                refuse(s, ex, 400, err.text);
                return;
        }
        if (q.model && !streq(q.model, s->model->name)) {
                refuse(s, ex, 404,
                       arena_printf(&s->arena, "the model '%.200s' does not exist; this is '%s'", q.model,
                                    s->model->name));
                return;
        }
        s->requests++;
        if (f->crash_after && s->requests > f->crash_after) {
                crash(s);
                return;
        }
        if (f->hang_after && s->requests > f->hang_after)
                hang(s);
        if (!s->hung && chance(s, f->error_rate))
                refuse(s, ex, f->error_status, "an error that the model asked for");
        else
                take(s, ex, endpoint, &q, now);
}

static void chat(struct sim_server *s, struct http_exchange *ex)
{
        complete(s, ex, LLM_CHAT);
}

static void completions(struct sim_server *s, struct http_exchange *ex)
{
        complete(s, ex, LLM_COMPLETIONS);
}

static void models(struct sim_server *s, struct http_exchange *ex)
{
        if (s->ready)
                reply_json(ex, 200, sim_models_text(&s->answers, sim_rank_kv(s->model)));
        else
                refuse(s, ex, 503, "the engine is starting");
}

static void health(struct sim_server *s, struct http_exchange *ex)
{
        if (s->ready)
                http_reply(ex, 200, "text/plain", STR("ok\n"));
        else
                http_reply(ex, 503, "text/plain", STR("starting\n"));
}

static void on_request(void *arg, struct http_exchange *ex)
{
        static const struct {
                const char *method, *path;
                void (*fn)(struct sim_server *s, struct http_exchange *ex);
        } routes[] = {
                {"POST", "/v1/chat/completions", chat},
                {"POST", "/v1/completions", completions},
                {"GET", "/v1/models", models},
                {"GET", "/health", health},
        };
        struct sim_server *s = arg;

        for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
                if (!str_eq(http_path(ex), str_of(routes[i].path)))
                        continue;
                if (str_eq(http_method(ex), str_of(routes[i].method)))
                        routes[i].fn(s, ex);
                else
                        refuse(s, ex, 405, "this path takes another method");
                return;
        }
        refuse(s, ex, 404,
               "no such path; there are /v1/chat/completions, /v1/completions, /v1/models and /health");
}

/* ---- life */

static void on_started(struct timer *t)
{
        struct sim_server *s = CONTAINER_OF(t, struct sim_server, started);
        _cleanup_(buf_done) struct buf line = BUF_INIT(256);

        s->ready = true;
        sim_kv_line(s->model, &line);
        LOG_INFO(s->log, "Simulated engine is ready", F_STR("model", s->model->name),
                 F_STR("backend", s->model->backend), F_UINT("gpus", s->model->gpus),
                 F_STR("mapping", sim_mappings[s->model->mapping]), F_STR("kv", buf_cstr(&line)));
}

/* As many as there are descriptors for, if those are fewer. */
static unsigned max_connections(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > CONNECTIONS_MAX + OTHER_DESCRIPTORS)
                return CONNECTIONS_MAX;
        return limit.rlim_cur > 2 * OTHER_DESCRIPTORS ? (unsigned)limit.rlim_cur - OTHER_DESCRIPTORS
                                                      : OTHER_DESCRIPTORS;
}

struct sim_server *sim_server_new(const struct sim_server_config *c, struct err *err)
{
        struct http_server_config config = {
                .listen = c->listen,
                .tls = c->tls,
                .max_connections = max_connections(),
                .header_timeout = HEADER_TIMEOUT,
                .idle_timeout = IDLE_TIMEOUT,
                .backlog = STREAM_BACKLOG,
                .on_request = on_request,
        };
        struct sim_server *s;

        if (sim_rank_kv(c->model) == 0) {
                err_set(err, E_CONFIG, "%s does not fit into the memory of %u GPUs as %s", c->model->name,
                        c->model->gpus, sim_mappings[c->model->mapping]);
                return NULL;
        }
        s = xcalloc(1, sizeof(*s));
        s->loop = c->loop;
        s->model = c->model;
        s->log = c->log;
        s->stamp = c->stamp;
        s->on_crash = c->on_crash;
        s->arg = c->arg;
        list_init(&s->open);
        list_init(&s->cut);
        rng_seed(&s->rng, c->model->seed);
        timer_init(&s->next, c->loop, next_due);
        timer_init(&s->started, c->loop, on_started);
        s->engine = sim_engine_new(c->model, token_came, s);
        sim_answers_init(&s->answers, c->model->name, loop_wall(c->loop), c->stamp);
        config.arg = s;
        s->http = http_server_new(c->loop, &config, err);
        if (!s->http) {
                sim_server_free(s);
                return NULL;
        }
        if (sim_fail_words(c->model))
                return s; /* it never starts: its owner says so when the time has come */
        if (c->model->faults.start_delay)
                timer_after(&s->started, c->model->faults.start_delay);
        else
                on_started(&s->started);
        return s;
}

void sim_server_free(struct sim_server *s)
{
        struct list *node;

        if (!s)
                return;
        timer_cancel(&s->next);
        timer_cancel(&s->started);
        http_server_free(s->http);
        while ((node = list_pop(&s->open)))
                free(CONTAINER_OF(node, struct job, node));
        sim_engine_free(s->engine);
        sim_answers_done(&s->answers);
        arena_done(&s->arena);
        free(s);
}

uint16_t sim_server_port(const struct sim_server *s)
{
        return s->http ? http_server_port(s->http) : 0;
}
