#include "lines.h"

enum {
        LINE_MAX_BYTES = 4 << 20,
        SINGLE_BYTES_MAX = 8192, /* `bytes`: the rest comes in one piece */
        EARLIER_MAX = 8,
        EARLIER_LINE_MAX = 256 * 1024,
};

static const usec_t MERGE_PATIENCE = 300 * USEC_PER_MS;

static const char expired_line[] =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"too old resource version: 1 "
        "(2)\",\"reason\":\"Expired\","
        "\"code\":410}}\n";

struct lines {
        struct fault fault;
        const struct lines_ops *ops;
        void *arg;
        struct timer timer;
        struct buf in;   /* not yet written */
        struct buf held; /* merge: a line that waits for the next */
        uint64_t done;   /* lines written */
        uint64_t cut;    /* bytes written after the lines of a cut */
        uint64_t singles;
        bool effect, waiting, waited, raw;
        VEC(char *) earlier;
};

bool lines_wanted(const struct fault *f)
{
        switch (f->kind) {
        case FAULT_CUT:
        case FAULT_EXPIRED:
        case FAULT_STALL:
        case FAULT_SILENT:
        case FAULT_DUPLICATE:
        case FAULT_REPLAY:
        case FAULT_BYTES:
        case FAULT_MERGE:
        case FAULT_CRLF:
                return true;
        default:
                return false;
        }
}

static void took_effect(struct lines *l)
{
        if (!l->effect)
                l->ops->on_effect(l->arg);
        l->effect = true;
}

static void write_held(struct lines *l)
{
        if (l->held.n)
                l->ops->write(l->arg, buf_str(&l->held));
        buf_clear(&l->held);
        timer_cancel(&l->timer);
}

static void on_timer(struct timer *t)
{
        struct lines *l = CONTAINER_OF(t, struct lines, timer);

        if (l->fault.kind == FAULT_MERGE) {
                write_held(l);
                return;
        }
        l->waiting = false;
        l->waited = true;
        l->ops->on_wake(l->arg);
}

static void write_singly(struct lines *l, struct str s)
{
        size_t n = MIN(s.n, (size_t)(SINGLE_BYTES_MAX - l->singles));

        took_effect(l);
        for (size_t i = 0; i < n; i++)
                l->ops->write(l->arg, str_n(s.p + i, 1));
        l->singles += n;
        if (n < s.n)
                l->ops->write(l->arg, str_n(s.p + n, s.n - n));
}

static void write_merged(struct lines *l, struct str line)
{
        bool second = l->held.n > 0;

        buf_addstr(&l->held, line);
        if (second || l->held.overflow) {
                took_effect(l);
                write_held(l);
        } else {
                timer_after(&l->timer, MERGE_PATIENCE);
        }
}

static void write_crlf(struct lines *l, struct str line)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(LINE_MAX_BYTES + 2);

        took_effect(l);
        buf_add(&out, line.p, line.n - 1);
        buf_adds(&out, "\r\n");
        l->ops->write(l->arg, buf_str(&out));
}

static void write_replay(struct lines *l, struct str line)
{
        l->ops->write(l->arg, line);
        if (l->done + 1 == l->fault.lines && l->earlier.n) {
                took_effect(l);
                l->ops->write(l->arg, str_of(l->earlier.v[l->fault.seed % l->earlier.n]));
        }
        if (l->earlier.n < EARLIER_MAX && line.n <= EARLIER_LINE_MAX && !memchr(line.p, 0, line.n))
                *vec_push(&l->earlier) = xstrndup(line.p, line.n);
}

static void write_line(struct lines *l, struct str line)
{
        switch (l->fault.kind) {
        case FAULT_BYTES:
                write_singly(l, line);
                break;
        case FAULT_MERGE:
                write_merged(l, line);
                break;
        case FAULT_CRLF:
                write_crlf(l, line);
                break;
        case FAULT_REPLAY:
                write_replay(l, line);
                break;
        default:
                l->ops->write(l->arg, line);
                break;
        }
        l->done++;
        if (l->fault.kind == FAULT_DUPLICATE && l->done == l->fault.lines) {
                took_effect(l);
                l->ops->write(l->arg, line);
        }
}

static enum lines_state wait(struct lines *l)
{
        l->waiting = true;
        if (l->fault.wait)
                timer_after(&l->timer, l->fault.wait);
        return LINES_WAIT;
}

/* After `bytes` more bytes the connection goes, in the middle of whatever is there. */
static enum lines_state cut(struct lines *l)
{
        size_t n = MIN(l->in.n, (size_t)(l->fault.bytes - l->cut));

        if (n)
                l->ops->write(l->arg, str_n(l->in.p, n));
        buf_consume(&l->in, n);
        l->cut += n;
        if (l->cut < l->fault.bytes)
                return LINES_GO_ON;
        took_effect(l);
        return LINES_ABORT;
}

/* What the fault does once its number of lines has passed. */
static enum lines_state after_lines(struct lines *l)
{
        switch (l->fault.kind) {
        case FAULT_CUT:
                return cut(l);
        case FAULT_EXPIRED:
                took_effect(l);
                l->ops->write(l->arg, str_of(expired_line));
                return LINES_END;
        case FAULT_STALL:
                if (l->waited)
                        return LINES_GO_ON;
                took_effect(l);
                return wait(l);
        case FAULT_SILENT:
                if (l->waited)
                        return LINES_ABORT;
                took_effect(l);
                return wait(l);
        default:
                return LINES_GO_ON;
        }
}

enum lines_state lines_run(struct lines *l)
{
        const char *end;

        if (l->waiting)
                return LINES_WAIT;
        for (;;) {
                if (l->done >= l->fault.lines) {
                        enum lines_state state = after_lines(l);

                        if (state != LINES_GO_ON || l->fault.kind == FAULT_CUT)
                                return state;
                }
                end = l->in.n ? memchr(l->in.p, '\n', l->in.n) : NULL;
                if (!end)
                        return LINES_GO_ON;
                write_line(l, str_n(l->in.p, (size_t)(end - l->in.p) + 1));
                buf_consume(&l->in, (size_t)(end - l->in.p) + 1);
        }
}

static void write_rest(struct lines *l)
{
        write_held(l);
        if (l->fault.kind == FAULT_BYTES)
                write_singly(l, buf_str(&l->in));
        else if (l->in.n)
                l->ops->write(l->arg, buf_str(&l->in));
        buf_clear(&l->in);
}

enum lines_state lines_feed(struct lines *l, struct str chunk)
{
        if (!l->raw && l->in.n + chunk.n > LINE_MAX_BYTES && !l->waiting) {
                l->raw = true;
                write_rest(l);
        }
        if (l->raw) {
                l->ops->write(l->arg, chunk);
                return LINES_GO_ON;
        }
        buf_addstr(&l->in, chunk);
        return lines_run(l);
}

enum lines_state lines_finish(struct lines *l)
{
        enum lines_state state = lines_run(l);

        if (state != LINES_GO_ON)
                return state;
        write_rest(l);
        if (l->fault.kind != FAULT_CUT)
                return LINES_END;
        took_effect(l); /* shorter than that: the end itself is cut off */
        return LINES_ABORT;
}

struct lines *lines_new(struct loop *loop, const struct fault *f, const struct lines_ops *ops, void *arg)
{
        struct lines *l = xcalloc(1, sizeof(*l));

        l->fault = *f;
        l->ops = ops;
        l->arg = arg;
        l->in = (struct buf)BUF_INIT(2 * LINE_MAX_BYTES);
        l->held = (struct buf)BUF_INIT(2 * LINE_MAX_BYTES);
        timer_init(&l->timer, loop, on_timer);
        return l;
}

void lines_free(struct lines *l)
{
        if (!l)
                return;
        timer_cancel(&l->timer);
        vec_foreach (line, &l->earlier)
                free(*line);
        vec_done(&l->earlier);
        buf_done(&l->in);
        buf_done(&l->held);
        free(l);
}
