#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "probe/load/load_private.h"

enum {
        ANSWER_MAX = 4 * 1024 * 1024, /* bytes of one answer's text */
        ANSWER_CHUNKS_MAX = 1 << 20,
        REFUSAL_MAX = 4096,
        ERRORS_MAX = 256,       /* different texts; the others are told by their kind */
        KEEP_BYTES = 64 * 1024, /* of a call that waits for its next use */
        KEEP_CHUNKS = 8192,
        CONNECT_AT_ONCE = 64, /* no more than a server's backlog */
        CONNECT_UNCAPPED = 64,
        CONNECT_AHEAD = 16,
};
#define TEXTS_MAX       ((size_t)256 << 20)
#define CONNECT_TIME    (5 * USEC_PER_SEC)
#define CONNECT_STEP    USEC_PER_MS
#define PAUSE_FIRST     (10 * USEC_PER_MS)
#define PAUSE_LAST      USEC_PER_SEC
#define CLIENT_IDLE_MAX (24 * 3600 * USEC_PER_SEC)

/* One request under way. Reused, with its memory. */
struct load_call {
        struct list node;
        struct load_worker *w;
        struct http_call *http;
        struct timer timeout;
        struct load_record r;
        uint64_t ready;    /* when the client was free to send it; 0: a closed loop's */
        uint64_t received; /* when the bytes at hand came */
        struct sse sse;
        struct buf text; /* what the answer said; of a refusal: its body */
        VEC(uint64_t) chunks;
        const char *kind; /* of the error that a handler of events returns */
        bool refused, done, finished, has_usage, read_seen, again;
        uint64_t tokens;
};

static void fill(struct load_worker *w);

static uint64_t now_ns(struct load_worker *w)
{
        return clock_boot_ns(&w->clock);
}

/* Only this worker's thread writes N. */
static void bump(_Atomic uint64_t *n)
{
        atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

static double thread_cpu(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- texts of errors, each kept once */

static const char *keep_text(struct load_worker *w, const char *text, const char *otherwise)
{
        char *kept = map_get(&w->errors, str_of(text));

        if (kept)
                return kept;
        if (w->errors.n >= ERRORS_MAX)
                return otherwise;
        kept = arena_strdup(&w->store, text);
        map_put(&w->errors, str_of(kept), kept);
        return kept;
}

static const char *kind_of(enum err_code code)
{
        switch (code) {
        case E_CONNECT:
                return "ConnectionFailed";
        case E_LOST:
                return "ConnectionLost";
        case E_TIMEOUT:
                return "Timeout";
        case E_TLS:
                return "TLSError";
        case E_PROTOCOL:
                return "ProtocolError";
        case E_TOO_LARGE:
                return "TooLarge";
        default:
                return "ClientError";
        }
}

/* ---- the end of a phase */

/* What could wait until nothing is measured any more. */
static void count_texts(struct load_worker *w)
{
        vec_foreach (u, &w->uncounted) {
                struct load_record *r = &w->records.v[u->record];

                r->osl = (uint32_t)MIN(
                        tokens_count(w->plan->tokens, str_n(w->texts.p + u->at, u->n), &r->osl_exact),
                        (uint64_t)UINT32_MAX);
        }
        w->uncounted.n = 0;
        buf_done(&w->texts);
        buf_clear(&w->texts);
}

static void finish_order(struct load_worker *w)
{
        uint64_t one = 1;

        atomic_store(&w->finished, w->doing);
        w->doing = LOAD_NOTHING;
        (void)!write(w->plan->told, &one, sizeof(one));
}

static void phase_over(struct load_worker *w)
{
        if (!w->phase->warmup) {
                uint64_t now = now_ns(w);

                w->cpu = thread_cpu() - w->cpu_began;
                w->wall = now > w->phase->began ? (double)(now - w->phase->began) / 1e9 : 0;
        }
        timer_cancel(&w->begin);
        timer_cancel(&w->due);
        timer_cancel(&w->end);
        timer_cancel(&w->cut);
        timer_cancel(&w->pause);
        w->phase = NULL;
        count_texts(w);
        finish_order(w);
}

static void close_phase(struct load_worker *w)
{
        w->closed = true;
        timer_cancel(&w->due);
        if (w->under_way == 0)
                phase_over(w);
}

/* ---- records */

/* The tokens of an answer: as the server counted them, else counted after the phase. */
static void set_tokens(struct load_call *call, size_t record)
{
        struct load_worker *w = call->w;
        struct load_record *r = &w->records.v[record];

        if (call->has_usage) {
                r->osl = (uint32_t)MIN(call->tokens, (uint64_t)UINT32_MAX);
                r->osl_exact = true;
                return;
        }
        if (call->text.overflow) { /* as good as any guess */
                r->osl = (uint32_t)MIN(r->n_chunks, (size_t)UINT32_MAX);
                return;
        }
        if (w->texts.n + call->text.n > TEXTS_MAX)
                count_texts(w);
        *vec_push(&w->uncounted) = (struct load_uncounted){
                .record = record, .at = w->texts.n, .n = call->text.n};
        buf_addstr(&w->texts, buf_str(&call->text));
}

static void keep_record(struct load_call *call)
{
        struct load_worker *w = call->w;
        struct load_record *r = vec_push(&w->records);

        *r = call->r;
        if (call->ready)
                *vec_push(&w->waits) = r->start > call->ready ? (double)(r->start - call->ready) / 1e3 : 0;
        if (r->error || r->canceled)
                return;
        r->n_chunks = call->chunks.n;
        r->chunks = arena_memdup(&w->store, call->chunks.v, call->chunks.n * sizeof(uint64_t));
        w->kept += r->n_chunks;
        set_tokens(call, w->records.n - 1);
}

static void put_back(struct load_call *call)
{
        struct load_worker *w = call->w;

        if (call->text.cap > KEEP_BYTES)
                buf_done(&call->text);
        if (call->chunks.cap > KEEP_CHUNKS)
                vec_done(&call->chunks);
        list_remove(&call->node);
        list_prepend(&w->spare, &call->node);
        w->under_way--;
        w->freed = now_ns(w);
}

static bool full(struct load_worker *w)
{
        if (w->full || w->kept < LOAD_CHUNKS_MAX / w->plan->workers)
                return w->full;
        LOG_WARN(w->plan->c->log, "The times of chunks fill the memory that is meant for them: ending",
                 F_UINT("chunks", w->kept));
        w->full = true;
        return true;
}

/* CALL is over: KIND NULL: well. Its HTTP call has ended or was cancelled. */
static void end_call(struct load_call *call, const char *kind, const char *text)
{
        struct load_worker *w = call->w;

        call->http = NULL;
        timer_cancel(&call->timeout);
        if (kind) {
                call->r.error_kind = keep_text(w, kind, "Error");
                call->r.error = keep_text(w, text, call->r.error_kind);
        }
        if (!call->ready)
                call->r.due = call->r.start;
        if (!call->r.canceled) {
                bump(&w->done);
                if (kind)
                        bump(&w->failed);
        }
        keep_record(call);
        put_back(call);
        if (full(w))
                w->closed = true;
        if (w->phase && w->closed && w->under_way == 0)
                phase_over(w);
        else
                fill(w);
}

/* Start and end of what is not answered; the call's are known while there is a call. */
static void stamp(struct load_call *call, uint64_t end)
{
        uint64_t sent = http_call_sent_at(call->http);

        if (sent)
                call->r.start = sent;
        call->r.end = end;
}

/* Ends the call in the middle: its connection is not used again. */
static void fail(struct load_call *call, const char *kind, const char *text)
{
        stamp(call, now_ns(call->w));
        http_call_cancel(call->http);
        end_call(call, kind, text);
}

static void timed_out(struct timer *t)
{
        struct load_call *call = CONTAINER_OF(t, struct load_call, timeout);
        char text[100];

        snprintf(text, sizeof(text), "no end of the answer within %.6g s",
                 (double)call->w->plan->timeout / (double)USEC_PER_SEC);
        fail(call, "Timeout", text);
}

/* ---- what comes */

static int take_event(void *arg, struct str data, struct err *err)
{
        struct load_call *call = arg;
        struct load_worker *w = call->w;
        struct llm_event e;

        if (call->done)
                return 0;
        arena_reset(&w->scratch, KEEP_BYTES);
        call->kind = "MalformedStream";
        if (llm_event_parse(&w->scratch, w->plan->c->endpoint, data, &e, err) < 0)
                return -1;
        if (e.error) {
                call->kind = "ServerError";
                return err_set(err, E_SERVER, "the stream ended with an error: %s", e.error);
        }
        if (e.content.n) {
                if (call->chunks.n >= ANSWER_CHUNKS_MAX) {
                        call->kind = "TooLarge";
                        return err_set(err, E_TOO_LARGE, "the answer has more than %d chunks",
                                       ANSWER_CHUNKS_MAX);
                }
                *vec_push(&call->chunks) = call->received;
                buf_addstr(&call->text, e.content);
                bump(&w->chunks);
        }
        if (e.has_usage) {
                call->has_usage = true;
                call->tokens = e.completion_tokens;
        }
        call->finished = call->finished || e.finish;
        call->done = e.done;
        return 0;
}

static void on_head(void *arg, const struct http_answer *answer)
{
        struct load_call *call = arg;
        struct str type = http_header(&answer->headers, "Content-Type");

        call->r.ack = http_call_received_at(call->http, NULL);
        call->r.status = answer->status;
        call->refused = answer->status != 200;
        if (!call->refused && type.p && !str_has_prefix(type, STR("text/event-stream")))
                fail(call, "NotStreamed", "the answer is not a stream of events; use --no-streaming");
}

/* How far a read lies behind the arrival of what it reads: of first chunks, before they are parsed. */
static void note_read(struct load_call *call, bool stamped)
{
        struct load_worker *w = call->w;
        uint64_t now;

        call->read_seen = true;
        if (!stamped || w->phase->warmup)
                return;
        now = now_ns(w);
        w->stamped = true;
        *vec_push(&w->stamp_errors) = now > call->received ? (double)(now - call->received) / 1e3 : 0;
}

static void on_data(void *arg, struct str chunk)
{
        struct load_call *call = arg;
        struct err err = ERR_INIT;
        bool stamped;

        call->received = http_call_received_at(call->http, &stamped);
        if (call->refused) {
                buf_add(&call->text, chunk.p,
                        MIN(chunk.n, REFUSAL_MAX - MIN(call->text.n, (size_t)REFUSAL_MAX)));
                return;
        }
        if (!call->read_seen)
                note_read(call, stamped);
        call->kind = "TooLarge";
        if (sse_feed(&call->sse, chunk, take_event, call, &err) < 0)
                fail(call, call->kind, err.text);
}

/* ---- how it ended */

static void end_refused(struct load_call *call, struct str body)
{
        struct load_worker *w = call->w;
        char kind[32], text[400];
        const char *sentence;

        arena_reset(&w->scratch, KEEP_BYTES);
        sentence = llm_error_text(&w->scratch, body);
        snprintf(kind, sizeof(kind), "HTTP %d", call->r.status);
        snprintf(text, sizeof(text), "HTTP %d %s%s%s", call->r.status, http_status_text(call->r.status),
                 sentence[0] ? ": " : "", sentence);
        end_call(call, kind, text);
}

static void end_stream(struct load_call *call)
{
        struct err err = ERR_INIT;

        if (!call->done && sse_end(&call->sse, &err) < 0)
                end_call(call, "StreamCut", err.text);
        else if (!call->done && !call->finished)
                end_call(call, "StreamCut", "the stream ended without [DONE]");
        else if (call->chunks.n == 0)
                end_call(call, "EmptyAnswer", "the answer had no content");
        else
                end_call(call, NULL, NULL);
}

static void end_whole(struct load_call *call, const struct http_answer *answer)
{
        struct load_worker *w = call->w;
        struct err err = ERR_INIT;
        struct llm_event e;

        call->r.ack = call->received;
        call->r.whole = true;
        arena_reset(&w->scratch, KEEP_BYTES);
        if (llm_event_parse(&w->scratch, w->plan->c->endpoint, answer->body, &e, &err) < 0) {
                end_call(call, "MalformedAnswer", err.text);
                return;
        }
        if (e.error) {
                end_call(call, "ServerError", e.error);
                return;
        }
        if (!e.content.n) {
                end_call(call, "EmptyAnswer", "the answer had no content");
                return;
        }
        *vec_push(&call->chunks) = call->received;
        buf_addstr(&call->text, e.content);
        bump(&w->chunks);
        call->has_usage = e.has_usage;
        call->tokens = e.completion_tokens;
        end_call(call, NULL, NULL);
}

/* After what failed without an answer the next must not follow at once: a server that is gone would be hammered. */
static void pause_sending(struct load_worker *w)
{
        if (w->phase->due || w->paused)
                return;
        w->paused = true;
        w->pause_for = MIN(MAX(w->pause_for * 2, PAUSE_FIRST), PAUSE_LAST);
        timer_after(&w->pause, w->pause_for);
}

static void resume_sending(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, pause);

        w->paused = false;
        fill(w);
}

static const struct http_handlers handlers;

static void post(struct load_call *call)
{
        const struct load_plan *p = call->w->plan;
        const struct http_request request = {
                .method = "POST",
                .target = llm_paths[p->c->endpoint],
                .headers = {p->headers, p->n_headers},
                .body = p->bodies[call->r.input].text,
                .stream = !p->c->whole,
                .pooled = true,
                .timeout = p->timeout,
        };

        call->http = http_start(call->w->client, &request, &handlers, call);
}

/* A connection that the server closed while it was idle: nobody has read the request, and it goes out once more. */
static bool post_again(struct load_call *call, const struct http_answer *answer, const struct err *err)
{
        if (answer || !err || err->code != E_LOST || call->again || !http_call_was_reused(call->http) ||
            http_call_received_at(call->http, NULL) != 0)
                return false;
        call->again = true;
        post(call);
        return true;
}

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct load_call *call = arg;
        struct load_worker *w = call->w;

        if (post_again(call, answer, err))
                return;
        if (answer) {
                call->received = http_call_received_at(call->http, NULL);
                call->r.status = answer->status;
                w->pause_for = 0;
        } else if (err && err->code == E_CONNECT) {
                pause_sending(w);
        }
        stamp(call, answer && !err ? call->received : now_ns(w));
        if (answer && answer->status != 200)
                end_refused(call, w->plan->c->whole ? answer->body : buf_str(&call->text));
        else if (err)
                end_call(call, kind_of(err->code), err->text);
        else if (w->plan->c->whole)
                end_whole(call, answer);
        else
                end_stream(call);
}

static const struct http_handlers handlers = {.on_head = on_head, .on_data = on_data, .on_end = on_end};

/* ---- what goes */

static struct load_call *take_call(struct load_worker *w)
{
        struct list *node = list_pop(&w->spare);
        struct load_call *call;

        if (node) {
                call = CONTAINER_OF(node, struct load_call, node);
                sse_reset(&call->sse);
                buf_clear(&call->text);
        } else {
                call = xcalloc(1, sizeof(*call));
                call->w = w;
                timer_init(&call->timeout, w->loop, timed_out);
                sse_init(&call->sse);
                call->text = (struct buf)BUF_INIT(ANSWER_MAX);
        }
        call->chunks.n = 0;
        call->received = call->tokens = 0;
        call->refused = call->done = call->finished = call->has_usage = call->read_seen = call->again = false;
        list_init(&call->node);
        list_append(&w->calls, &call->node);
        return call;
}

/* Request NUMBER of the phase; DUE and READY are 0 in a closed loop. */
static void send_request(struct load_worker *w, uint64_t number, uint64_t due, uint64_t ready)
{
        struct load_plan *p = w->plan;
        uint32_t input = (uint32_t)((w->phase->first_body + number) % p->n_bodies);
        struct load_call *call = take_call(w);

        call->ready = ready;
        call->r = (struct load_record){
                .number = (uint32_t)number,
                .worker = w->number,
                .input = input,
                .warmup = w->phase->warmup,
                .due = due,
                .start = now_ns(w),
                .isl = p->bodies[input].isl,
        };
        post(call);
        timer_after(&call->timeout, p->timeout);
        w->under_way++;
        bump(&w->sent);
}

static void fill_closed(struct load_worker *w)
{
        uint32_t most = MAX(w->share, 1U);

        while (!w->closed && !w->paused && w->under_way < most) {
                uint64_t number = atomic_fetch_add(&w->phase->next, 1);

                if (number >= w->phase->n)
                        close_phase(w);
                else
                        send_request(w, number, 0, 0);
                if (!w->phase)
                        return;
        }
}

static void fill_open(struct load_worker *w)
{
        struct load_phase *p = w->phase;
        uint32_t most = w->share ? w->share : LOAD_CONCURRENCY_MAX / w->plan->workers;
        uint64_t now = now_ns(w);

        while (!w->closed && w->at < p->n) {
                uint64_t due = p->began + p->due[w->at];

                if (due > now) {
                        w->capped = false;
                        timer_at(&w->due, (due + 999) / 1000);
                        break;
                }
                if (w->under_way >= most) {
                        w->capped = true;
                        return;
                }
                send_request(w, w->at, due, w->capped ? MAX(due, w->freed) : due);
                w->at += w->plan->workers;
        }
        http_client_connect(w->client,
                            (unsigned)MIN(w->under_way + CONNECT_AHEAD, (size_t)w->plan->connections));
        if (!w->closed && w->at >= p->n)
                close_phase(w);
}

static void fill(struct load_worker *w)
{
        if (!w->phase || timer_pending(&w->begin))
                return;
        if (w->phase->due)
                fill_open(w);
        else
                fill_closed(w);
}

static void on_due(struct timer *t)
{
        fill_open(CONTAINER_OF(t, struct load_worker, due));
}

/* ---- phases */

static void on_begin(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, begin);

        w->cpu_began = thread_cpu();
        fill(w);
}

static void cancel_all(struct load_worker *w)
{
        w->closed = true;
        list_foreach_safe (node, &w->calls) {
                struct load_call *call = CONTAINER_OF(node, struct load_call, node);

                call->r.canceled = true;
                fail(call, NULL, NULL);
        }
        if (w->phase && w->under_way == 0)
                phase_over(w);
}

static void on_cut(struct timer *t)
{
        cancel_all(CONTAINER_OF(t, struct load_worker, cut));
}

static void on_time_up(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, end);

        timer_after(&w->cut, w->plan->c->grace);
        close_phase(w);
}

static void begin_phase(struct load_worker *w, struct load_phase *p)
{
        usec_t began = (p->began + 999) / 1000;

        w->phase = p;
        w->at = w->number;
        w->closed = w->capped = w->paused = false;
        w->pause_for = 0;
        atomic_store(&w->sent, 0);
        atomic_store(&w->done, 0);
        atomic_store(&w->failed, 0);
        atomic_store(&w->chunks, 0);
        if (p->duration)
                timer_at(&w->end, usec_add(began, p->duration));
        timer_at(&w->begin, began);
}

/* ---- connections ahead of the first request */

static void connect_more(struct timer *t)
{
        struct load_worker *w = CONTAINER_OF(t, struct load_worker, connecting);
        unsigned have = http_client_idle(w->client);
        unsigned wanted = MIN(w->share ? w->share : CONNECT_UNCAPPED, w->plan->connections);

        if (have >= wanted || loop_now(w->loop) >= w->connect_until || atomic_load(&w->plan->stop)) {
                finish_order(w);
                return;
        }
        http_client_connect(w->client, MIN(wanted, have + CONNECT_AT_ONCE));
        timer_after(t, CONNECT_STEP);
}

static void on_wake(struct io *io, uint32_t events _unused_)
{
        struct load_worker *w = CONTAINER_OF(io, struct load_worker, wake);
        enum load_order order = atomic_load(&w->order);
        uint64_t n;

        (void)!read(io->fd, &n, sizeof(n));
        if (order != LOAD_NOTHING) {
                atomic_store(&w->order, LOAD_NOTHING);
                w->doing = order;
        }
        switch (order) {
        case LOAD_NOTHING:
                break;
        case LOAD_CONNECT:
                w->connect_until = usec_add(loop_now(w->loop), CONNECT_TIME);
                timer_at(&w->connecting, loop_now(w->loop));
                break;
        case LOAD_WARM_UP:
                begin_phase(w, &w->plan->warmup);
                break;
        case LOAD_MEASURE:
                begin_phase(w, &w->plan->measured);
                break;
        case LOAD_QUIT:
                loop_stop(w->loop, 0);
                return;
        }
        if (w->phase && atomic_load(&w->plan->stop))
                cancel_all(w);
}

/* ---- life */

struct load_worker *load_worker_new(struct load_plan *p, unsigned number, struct err *err)
{
        _cleanup_(load_worker_free) struct load_worker *w = xcalloc(1, sizeof(*w));
        const struct http_client_config config = {
                .url = p->c->url,
                .tls = p->c->tls,
                .user_agent = "sonde-load/" SONDE_VERSION,
                .max_connections = p->connections,
                .idle_timeout = CLIENT_IDLE_MAX,
                .stamps = true,
        };

        w->plan = p;
        w->number = number;
        w->share = p->concurrency / p->workers + (number < p->concurrency % p->workers);
        w->clock = (struct clock)CLOCK_REAL;
        w->texts = (struct buf)BUF_INIT(2 * TEXTS_MAX);
        list_init(&w->calls);
        list_init(&w->spare);
        w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (w->wake_fd < 0) {
                err_errno(err, E_IO, errno, "cannot create an event descriptor");
                return NULL;
        }
        w->loop = loop_new(&w->clock, p->c->log, err);
        if (!w->loop)
                return NULL;
        w->client = http_client_new(w->loop, &config, err);
        if (!w->client)
                return NULL;
        if (io_add(w->loop, &w->wake, w->wake_fd, EPOLLIN, on_wake) < 0) {
                err_errno(err, E_IO, errno, "cannot wait for an event descriptor");
                return NULL;
        }
        timer_init(&w->begin, w->loop, on_begin);
        timer_init(&w->due, w->loop, on_due);
        timer_init(&w->end, w->loop, on_time_up);
        timer_init(&w->cut, w->loop, on_cut);
        timer_init(&w->pause, w->loop, resume_sending);
        timer_init(&w->connecting, w->loop, connect_more);
        return TAKE_PTR(w);
}

static void *work(void *arg)
{
        struct load_worker *w = arg;

        loop_run(w->loop);
        return NULL;
}

int load_worker_start(struct load_worker *w, struct err *err)
{
        int e = pthread_create(&w->thread, NULL, work, w);

        if (e)
                return err_errno(err, E_IO, e, "cannot start a thread");
        w->running = true;
        pthread_setname_np(w->thread, "load");
        return 0;
}

void load_worker_wake(struct load_worker *w)
{
        uint64_t one = 1;

        (void)!write(w->wake_fd, &one, sizeof(one));
}

void load_worker_tell(struct load_worker *w, enum load_order order)
{
        atomic_store(&w->order, order);
        load_worker_wake(w);
}

void load_worker_join(struct load_worker *w)
{
        if (!w->running)
                return;
        pthread_join(w->thread, NULL);
        w->running = false;
}

static void free_calls(struct list *calls)
{
        struct list *node;

        while ((node = list_pop(calls))) {
                struct load_call *call = CONTAINER_OF(node, struct load_call, node);

                timer_cancel(&call->timeout);
                sse_done(&call->sse);
                buf_done(&call->text);
                vec_done(&call->chunks);
                free(call);
        }
}

void load_worker_free(struct load_worker *w)
{
        if (!w)
                return;
        http_client_free(w->client);
        free_calls(&w->calls);
        free_calls(&w->spare);
        io_remove(&w->wake);
        loop_free(w->loop);
        fd_close(w->wake_fd);
        arena_done(&w->store);
        arena_done(&w->scratch);
        map_done(&w->errors);
        vec_done(&w->records);
        vec_done(&w->uncounted);
        vec_done(&w->waits);
        vec_done(&w->stamp_errors);
        buf_done(&w->texts);
        free(w);
}
