#include "probe/load/load_private.h"

enum {
        ANSWER_MAX = 4 * 1024 * 1024, /* bytes of one answer's text */
        ANSWER_CHUNKS_MAX = 1 << 20,
        REFUSAL_MAX = 4096,
        ERRORS_MAX = 256, /* different texts; the others are told by their kind */
        ERROR_MAX = 4096,
        KEEP_BYTES = 64 * 1024, /* of a call that waits for its next use */
        KEEP_CHUNKS = 8192,
};
#define TEXTS_MAX ((size_t)256 << 20)
#define DONE_WAIT (2 * USEC_PER_SEC) /* for the end of an answer whose last event was there */

/* One request under way. Reused, with its memory. */
struct load_call {
        struct list node;
        struct load_worker *w;
        struct http_call *http;
        struct timer timeout;
        struct load_record r;
        uint64_t ready;    /* when the client was free to send it; 0: a closed loop's */
        uint64_t received; /* when the bytes at hand came */
        uint64_t lag;      /* ns: of their read behind that; until the first chunk */
        struct sse sse;
        struct buf text; /* what the answer said; of a refusal: its body */
        VEC(uint64_t) chunks;
        const char *kind; /* of the error that a handler of events returns */
        bool refused, done, finished, has_usage, read_seen, again;
        bool estimate; /* there was no room for its text: its chunks are its tokens */
        size_t held;   /* bytes of `text` that count as the worker's */
        uint64_t tokens;
};

static uint64_t now_ns(struct load_worker *w)
{
        return clock_boot_ns(&w->clock);
}

/* Only this worker's thread writes N. */
static void bump(_Atomic uint64_t *n)
{
        atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* ---- texts of errors, each kept once */

static const char *keep_text(struct load_worker *w, struct map *map, const char *text)
{
        char *kept = map_get(map, str_of(text));

        if (kept)
                return kept;
        kept = arena_strdup(&w->store, text);
        map_put(map, str_of(kept), kept);
        return kept;
}

/* A server may repeat what it was sent, keys among it. Of too many different texts the kind must do. */
static const char *keep_error(struct load_worker *w, const char *text, const char *kind)
{
        _cleanup_(buf_done) struct buf shown = BUF_INIT(ERROR_MAX);

        load_hide(w->plan->secrets, w->plan->n_secrets, str_of(text), &shown);
        if (w->errors.n >= ERRORS_MAX && !map_get(&w->errors, buf_str(&shown)))
                return kind;
        buf_addc(&shown, '\0');
        return shown.overflow ? kind : keep_text(w, &w->errors, shown.p);
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
        if (call->estimate || call->text.overflow) { /* as good as any guess */
                r->osl = (uint32_t)MIN(r->n_chunks, (size_t)UINT32_MAX);
                return;
        }
        *vec_push(&w->uncounted) = (struct load_uncounted){
                .record = record, .at = w->texts.n, .n = call->text.n};
        buf_addstr(&w->texts, buf_str(&call->text));
}

static void keep_record(struct load_call *call)
{
        struct load_worker *w = call->w;
        struct load_record *r = vec_push(&w->records);

        *r = call->r;
        if (call->ready && !r->warmup && r->start)
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

        w->chunks_under_way -= call->chunks.n;
        w->text_under_way -= call->held;
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
        if (w->full || w->kept + w->chunks_under_way < w->chunks_max)
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
                call->r.error_kind = keep_text(w, &w->kinds, kind);
                call->r.error = keep_error(w, text, call->r.error_kind);
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
        load_worker_go_on(w, full(w));
}

/* Start and end of what is not answered; the call's are known while there is a call. */
static void stamp(struct load_call *call, uint64_t end)
{
        uint64_t sent = http_call_sent_at(call->http);

        if (sent || call->r.canceled) /* what was cancelled and never sent did not start */
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

/* All was said; the server keeps the end of its HTTP answer to itself. The connection is not used again. */
static void finish_done(struct load_call *call)
{
        stamp(call, call->received);
        http_call_cancel(call->http);
        if (call->chunks.n)
                end_call(call, NULL, NULL);
        else
                end_call(call, "EmptyAnswer", "the answer had no content");
}

void load_calls_cancel(struct list *calls)
{
        list_foreach_safe (node, calls) {
                struct load_call *call = CONTAINER_OF(node, struct load_call, node);

                if (call->done) {
                        finish_done(call);
                        continue;
                }
                call->r.canceled = true;
                fail(call, NULL, NULL);
        }
}

static void timed_out(struct timer *t)
{
        struct load_call *call = CONTAINER_OF(t, struct load_call, timeout);
        char text[100];

        if (call->done) {
                finish_done(call);
                return;
        }
        snprintf(text, sizeof(text), "no end of the answer within %.6g s",
                 (double)call->w->plan->timeout / (double)USEC_PER_SEC);
        fail(call, "Timeout", text);
}

/* ---- what comes */

/* Text that cannot be kept is not counted in the run, where it would be the client that is measured. */
static void take_content(struct load_call *call, struct str content)
{
        struct load_worker *w = call->w;
        size_t before = call->text.n;

        if (!call->chunks.n)
                call->r.read_lag = call->lag;
        *vec_push(&call->chunks) = call->received;
        w->chunks_under_way++;
        bump(&w->chunks);
        call->estimate = call->estimate || w->texts.n + w->text_under_way + content.n > TEXTS_MAX;
        if (call->estimate)
                return;
        buf_addstr(&call->text, content);
        call->held += call->text.n - before;
        w->text_under_way += call->text.n - before;
}

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
                if (full(w)) {
                        call->kind = "TooLarge";
                        return err_set(err, E_TOO_LARGE,
                                       "the times of chunks fill the memory that is meant for them");
                }
                take_content(call, e.content);
        }
        if (e.has_usage) {
                call->has_usage = true;
                call->tokens = e.completion_tokens;
        }
        call->finished = call->finished || e.finish;
        call->done = e.done;
        if (e.done)
                timer_after(&call->timeout, DONE_WAIT);
        return 0;
}

static void note_engine(struct load_worker *w, const struct http_answer *answer)
{
        w->simulated = w->simulated || http_header(&answer->headers, LLM_SIMULATED).p;
}

static void on_head(void *arg, const struct http_answer *answer)
{
        struct load_call *call = arg;
        struct str type = http_header(&answer->headers, "Content-Type");

        note_engine(call->w, answer);
        call->r.ack = http_call_received_at(call->http, NULL);
        call->r.status = answer->status;
        call->refused = answer->status != 200;
        if (!call->refused && type.p && !str_has_prefix(type, STR("text/event-stream")))
                fail(call, "NotStreamed", "the answer is not a stream of events; use --no-streaming");
}

/* How far a read lies behind the arrival of what it reads, before that is parsed: until the first chunk. */
static void note_read(struct load_call *call, bool stamped)
{
        struct load_worker *w = call->w;
        uint64_t now = stamped ? now_ns(w) : 0;

        call->lag = !stamped ? LOAD_LAG_UNKNOWN : now > call->received ? now - call->received : 0;
        if (call->read_seen || !stamped || w->phase->warmup)
                return;
        call->read_seen = true;
        w->stamped = true;
        *vec_push(&w->stamp_errors) = (double)call->lag / 1e3;
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
        if (!call->chunks.n)
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
        take_content(call, e.content);
        call->has_usage = e.has_usage;
        call->tokens = e.completion_tokens;
        end_call(call, NULL, NULL);
}

static const struct http_handlers handlers;

static void post(struct load_call *call)
{
        const struct load_plan *p = call->w->plan;
        const struct http_request request = {
                .method = "POST",
                .target = p->target,
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

/* A server that does not answer would be hammered by those that follow at once. It may close what it has kept, though. */
static bool is_pause_due(const struct load_call *call, const struct err *err)
{
        return err->code != E_TIMEOUT && !(err->code == E_LOST && http_call_was_reused(call->http));
}

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct load_call *call = arg;
        struct load_worker *w = call->w;

        if (post_again(call, answer, err))
                return;
        if (answer) {
                note_engine(w, answer);
                call->received = http_call_received_at(call->http, NULL);
                call->r.status = answer->status;
                w->pause_for = 0;
        } else if (err && is_pause_due(call, err)) {
                load_worker_pause(w);
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

/* ---- life */

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
        call->received = call->tokens = call->held = 0;
        call->refused = call->done = call->finished = call->has_usage = call->read_seen = call->again = false;
        call->estimate = false;
        list_init(&call->node);
        list_append(&w->calls, &call->node);
        return call;
}

void load_call_send(struct load_worker *w, uint64_t number, uint64_t due, uint64_t ready)
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

void load_calls_free(struct list *calls)
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
