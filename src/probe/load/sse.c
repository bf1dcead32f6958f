#include "probe/load/sse.h"

enum {
        LINE_MAX_BYTES = SSE_EVENT_MAX + 64, /* a field's name and a little more */
        KEEP_BYTES = 16 * 1024,
};

void sse_init(struct sse *s)
{
        *s = (struct sse){.line = BUF_INIT(LINE_MAX_BYTES), .data = BUF_INIT(SSE_EVENT_MAX)};
}

void sse_done(struct sse *s)
{
        buf_done(&s->line);
        buf_done(&s->data);
}

/* Thousands of streams wait for their next: each keeps what an event needs, not what one of them once needed. */
static void clear(struct buf *b)
{
        if (b->cap > KEEP_BYTES)
                buf_done(b);
        buf_clear(b);
}

void sse_reset(struct sse *s)
{
        clear(&s->line);
        clear(&s->data);
        s->any = s->cr = s->bom = false;
}

static int too_large(struct err *err)
{
        return err_set(err, E_TOO_LARGE, "an event of the stream has more than %d bytes", SSE_EVENT_MAX);
}

/* One call of sse_feed(). */
struct feed {
        struct sse *s;
        int (*on_event)(void *arg, struct str data, struct err *err);
        void *arg;
        struct err *err;
        /* The only data line of the event so far, where it came: copied only when it does not stay alone. */
        struct str held;
};

/* The value of LINE if it is a `data` field; p == NULL: it is another, or a comment. */
static inline struct str data_of(struct str line)
{
        if (line.n < 4 || memcmp(line.p, "data", 4) != 0)
                return STR_NULL;
        if (line.n == 4)
                return str_n(line.p + 4, 0);
        if (line.p[4] != ':')
                return STR_NULL;
        line = str_n(line.p + 5, line.n - 5);
        return line.n && line.p[0] == ' ' ? str_n(line.p + 1, line.n - 1) : line;
}

static void keep_held(struct feed *f)
{
        if (f->held.p)
                buf_addstr(&f->s->data, f->held);
        f->held = STR_NULL;
}

static int add_data(struct feed *f, struct str value, bool lasting)
{
        struct sse *s = f->s;

        if (value.n > SSE_EVENT_MAX)
                return too_large(f->err);
        if (!s->any && lasting) {
                f->held = value;
        } else {
                keep_held(f);
                if (s->any)
                        buf_addc(&s->data, '\n');
                buf_addstr(&s->data, value);
                if (s->data.overflow)
                        return too_large(f->err);
        }
        s->any = true;
        return 0;
}

static int give_away(struct feed *f)
{
        struct sse *s = f->s;

        if (!s->any)
                return 0;
        /* ON_EVENT may end the stream and free it: after that nothing here is touched. */
        if (f->on_event(f->arg, f->held.p ? f->held : buf_str(&s->data), f->err) < 0)
                return -1;
        f->held = STR_NULL;
        s->any = false;
        buf_clear(&s->data);
        return 0;
}

/* LASTING: the line stays where it is until the end of the feed. */
static inline int take_line(struct feed *f, struct str line, bool lasting)
{
        struct str value;

        if (!f->s->bom) {
                f->s->bom = true;
                if (str_has_prefix(line, STR("\xEF\xBB\xBF")))
                        line = str_n(line.p + 3, line.n - 3);
        }
        if (line.n == 0)
                return give_away(f);
        if (line.n > LINE_MAX_BYTES)
                return too_large(f->err);
        value = data_of(line);
        return value.p ? add_data(f, value, lasting) : 0;
}

/* The rest of a line that came in pieces is PART. */
static int take_pieces(struct feed *f, struct str part)
{
        struct sse *s = f->s;

        buf_addstr(&s->line, part);
        if (s->line.overflow)
                return too_large(f->err);
        if (take_line(f, buf_str(&s->line), false) < 0)
                return -1;
        buf_clear(&s->line);
        return 0;
}

static int take_bytes(struct feed *f, const char *at, const char *end)
{
        struct sse *s = f->s;
        const char *lf = NULL, *eol; /* the first line feed from AT on (END: none), looked for once */
        int r;

        if (s->cr && *at == '\n')
                at++;
        s->cr = false;
        while (at < end) {
                if (!lf || lf < at) {
                        lf = memchr(at, '\n', (size_t)(end - at));
                        lf = lf ? lf : end;
                }
                eol = memchr(at, '\r', (size_t)(lf - at));
                eol = eol ? eol : lf;
                if (eol == end) {
                        buf_add(&s->line, at, (size_t)(end - at));
                        return s->line.overflow ? too_large(f->err) : 0;
                }
                r = s->line.n ? take_pieces(f, str_n(at, (size_t)(eol - at)))
                              : take_line(f, str_n(at, (size_t)(eol - at)), true);
                if (r < 0)
                        return -1;
                at = eol + 1;
                if (*eol == '\r' && at == end)
                        s->cr = true;
                else if (*eol == '\r' && *at == '\n')
                        at++;
        }
        return 0;
}

int sse_feed(struct sse *s, struct str bytes, int (*on_event)(void *arg, struct str data, struct err *err),
             void *arg, struct err *err)
{
        struct feed f = {.s = s, .on_event = on_event, .arg = arg, .err = err};

        if (bytes.n == 0)
                return 0;
        if (take_bytes(&f, bytes.p, bytes.p + bytes.n) < 0)
                return -1;
        keep_held(&f);
        return 0;
}

int sse_end(const struct sse *s, struct err *err)
{
        /* A comment that was cut off is no event. */
        if (s->any || (s->line.n && s->line.p[0] != ':'))
                return err_set(err, E_PROTOCOL, "the stream ended in the middle of an event");
        return 0;
}
