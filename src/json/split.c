/*
 * Only quotes, backslashes and brackets are looked at inside a value: it ends where the nesting comes back to where
 * it began. What surrounds the values is a handful of states, one byte at a time.
 */
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "json/internal.h"
#include "json/split.h"

enum state {
        BETWEEN, /* values: before the next one; items: before the object */
        VALUE,   /* in a value that is handed on */
        /* Items only: in the object, outside its items. All of it is kept. */
        MEMBER, /* before a name, or the end of the object */
        NAME,
        COLON,
        MEMBER_VALUE, /* before the value */
        KEPT,         /* in the value */
        /* Items only: in the array. */
        ITEM,       /* before the first, or the end */
        AFTER_ITEM, /* before a comma, or the end */
        NEXT_ITEM,  /* after a comma */
        DONE,       /* blanks only */
        FAILED,
};

/* What a value is known to be by its first byte. */
enum shape { SCALAR, STRING, NESTED };

struct json_split {
        enum json_split_mode mode;
        size_t max;
        json_split_fn fn;
        void *arg;

        enum state state;
        enum shape shape;
        unsigned depth;         /* brackets open in this value */
        bool in_string, escape; /* escape: the byte before was a backslash that counts */
        size_t name_at;         /* where in `kept` the last name began */
        struct buf part;        /* a value whose end has not come yet */
        struct buf kept;        /* the object without its items */
};

struct json_split *json_split_new(enum json_split_mode mode, size_t max, json_split_fn fn, void *arg)
{
        struct json_split *s = xcalloc(1, sizeof(*s));

        *s = (struct json_split){.mode = mode, .max = max, .fn = fn, .arg = arg};
        s->part.max = max;
        s->kept.max = max;
        return s;
}

void json_split_free(struct json_split *s)
{
        if (!s)
                return;
        buf_done(&s->part);
        buf_done(&s->kept);
        free(s);
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* Where a scalar ends. Brackets and quotes do not belong to one, but whoever parses it shall see the mistake. */
static bool ends_scalar(const struct json_split *s, char c)
{
        if (is_blank(c))
                return true;
        if (s->mode == SPLIT_VALUES)
                return c == '{' || c == '[' || c == '"';
        return c == ',' || c == ']' || c == '}';
}

static const char *skip_string(struct json_split *s, const char *at, const char *end)
{
        if (s->escape && at < end) {
                s->escape = false;
                at++;
        }
        while (at < end) {
                if (end - at >= 8) {
                        uint64_t stop = string_stops(load8(at));

                        if (!stop) {
                                at += 8;
                                continue;
                        }
                        at += __builtin_ctzll(stop) >> 3;
                }
                if (*at == '"') {
                        s->in_string = false;
                        return at + 1;
                }
                if (*at == '\\') {
                        s->escape = end - at == 1;
                        at += !s->escape;
                }
                at++;
        }
        return at;
}

enum { BLOCK = 64 };

#ifdef __SSE2__
struct block {
        uint64_t quotes, slashes, opening, closing; /* one bit a byte */
};

static inline uint64_t is_at(__m128i w, char c, int shift)
{
        return (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(w, _mm_set1_epi8(c))) << shift;
}

static struct block read_block(const char *at)
{
        struct block b = {0};

        for (int i = 0; i < BLOCK; i += 16) {
                __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
                __m128i brackets = _mm_or_si128(w, _mm_set1_epi8(0x20)); /* [ and ] become { and } */

                b.quotes |= is_at(w, '"', i);
                b.slashes |= is_at(w, '\\', i);
                b.opening |= is_at(brackets, '{', i);
                b.closing |= is_at(brackets, '}', i);
        }
        return b;
}

/* Goes on over whole blocks in which the value cannot end. Escapes are not for it. */
static const char *skip_blocks(struct json_split *s, const char *at, const char *end)
{
        for (; end - at >= BLOCK && !s->escape; at += BLOCK) {
                struct block b = read_block(at);
                uint64_t inside = b.quotes; /* a string: bytes with an odd number of quotes up to them */
                unsigned closed;

                for (int shift = 1; shift < BLOCK; shift *= 2)
                        inside ^= inside << shift;
                if (s->in_string)
                        inside = ~inside;
                closed = (unsigned)__builtin_popcountll(b.closing & ~inside);
                if (b.slashes || closed >= s->depth)
                        break;
                s->depth += (unsigned)__builtin_popcountll(b.opening & ~inside) - closed;
                s->in_string = inside >> (BLOCK - 1);
        }
        return at;
}
#else
static const char *skip_blocks(struct json_split *s, const char *at, const char *end)
{
        return at;
}
#endif

/* Goes on in the value begun with begin_value(). Returns true where it ends; otherwise *AT has come to END. */
static bool skip_bytes(struct json_split *s, const char **at, const char *end)
{
        static const int8_t step[256] = {['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1, ['"'] = 2};

        while (*at < end) {
                int8_t what;

                if (s->in_string) {
                        *at = skip_string(s, *at, end);
                        if (s->shape == STRING && !s->in_string)
                                return true;
                        continue;
                }
                what = step[(unsigned char)*(*at)++];
                if (what == 0)
                        continue;
                if (what == 2) {
                        s->in_string = true;
                        continue;
                }
                s->depth += (unsigned)what;
                if (s->depth == 0)
                        return true;
        }
        return false;
}

/* Returns where the value ends, or NULL when it goes beyond END. */
static const char *skip_nested(struct json_split *s, const char *at, const char *end)
{
        while (at < end) {
                at = skip_blocks(s, at, end);
                if (skip_bytes(s, &at, end - at > BLOCK ? at + BLOCK : end))
                        return at;
        }
        return NULL;
}

static const char *skip_value(struct json_split *s, const char *at, const char *end)
{
        if (s->shape != SCALAR)
                return skip_nested(s, at, end);
        while (at < end && !ends_scalar(s, *at))
                at++;
        return at < end ? at : NULL;
}

/* C is the first byte of a value. */
static void begin_value(struct json_split *s, char c, enum state state)
{
        s->state = state;
        s->shape = c == '"' ? STRING : c == '{' || c == '[' ? NESTED : SCALAR;
        s->in_string = s->shape == STRING;
        s->depth = s->shape == NESTED;
        s->escape = false;
}

static int too_large(const struct json_split *s, struct err *err)
{
        return err_set(err, E_TOO_LARGE, "a JSON value in the stream is over the limit of %zu bytes", s->max);
}

static int hand_on(struct json_split *s, struct str value, struct err *err)
{
        if (value.n > s->max)
                return too_large(s, err);
        s->state = s->mode == SPLIT_VALUES ? BETWEEN : AFTER_ITEM;
        return s->fn(s->arg, value, err);
}

/*
 * The piece [AT, END) of a value that began at AT or earlier (s->part has what was before). BEHIND is where its first
 * byte, already judged, has been passed.
 */
static int feed_value(struct json_split *s, const char **at, const char *behind, const char *end,
                      struct err *err)
{
        const char *start = *at, *stop = skip_value(s, behind, end);
        int r;

        *at = stop ? stop : end;
        if (stop && s->part.n == 0)
                return hand_on(s, str_n(start, (size_t)(stop - start)), err);
        buf_add(&s->part, start, (size_t)(*at - start));
        if (s->part.overflow)
                return too_large(s, err);
        if (!stop)
                return 0;
        r = hand_on(s, buf_str(&s->part), err);
        buf_clear(&s->part);
        return r;
}

static int keep(struct json_split *s, const char *from, const char *to, struct err *err)
{
        buf_add(&s->kept, from, (size_t)(to - from));
        if (s->kept.overflow)
                return err_set(err, E_TOO_LARGE,
                               "a JSON list without its items is over the limit of %zu bytes", s->max);
        return 0;
}

static int unexpected(char c, const char *where, struct err *err)
{
        return err_set(err, E_INVALID, "unexpected byte 0x%02x %s", (unsigned char)c, where);
}

/* Names and values of the object that holds the items: kept as they are. */
static int feed_kept(struct json_split *s, const char **at, const char *end, struct err *err)
{
        const char *start = *at, *stop = skip_value(s, start, end);

        *at = stop ? stop : end;
        if (stop)
                s->state = s->state == NAME ? COLON : MEMBER;
        return keep(s, start, *at, err);
}

static bool name_is_items(const struct json_split *s)
{
        return str_has_prefix(str_n(s->kept.p + s->name_at, s->kept.n - s->name_at), STR("\"items\""));
}

/* The byte at *AT, which is not blank, between the parts of the object. */
static int feed_object(struct json_split *s, const char **at, struct err *err)
{
        char c = **at;
        int r = keep(s, *at, *at + 1, err);

        if (r < 0)
                return r;
        ++*at;
        switch (s->state) {
        case BETWEEN:
                s->state = MEMBER;
                return c == '{' ? 0 : unexpected(c, "instead of a JSON list", err);
        case MEMBER:
                if (c == '"') {
                        s->name_at = s->kept.n - 1;
                        begin_value(s, c, NAME);
                } else if (c == '}') {
                        s->state = DONE;
                } else if (c != ',') {
                        return unexpected(c, "before a member of a JSON list", err);
                }
                return 0;
        case COLON:
                s->state = MEMBER_VALUE;
                return c == ':' ? 0 : unexpected(c, "after a member name of a JSON list", err);
        default:
                if (c == '[' && name_is_items(s))
                        s->state = ITEM;
                else if (c == ',' || c == '}' || c == ']')
                        return unexpected(c, "instead of a value in a JSON list", err);
                else
                        begin_value(s, c, KEPT);
                return 0;
        }
}

/* The same between the items. */
static int feed_items(struct json_split *s, const char **at, const char *end, struct err *err)
{
        char c = **at;

        if (c == ']' && s->state != NEXT_ITEM) {
                s->state = MEMBER;
                ++*at;
                return keep(s, *at - 1, *at, err);
        }
        if (s->state == AFTER_ITEM) {
                s->state = NEXT_ITEM;
                ++*at;
                return c == ',' ? 0 : unexpected(c, "after an item of a JSON list", err);
        }
        if (c == ',' || c == ']' || c == '}')
                return unexpected(c, "instead of an item of a JSON list", err);
        begin_value(s, c, VALUE);
        return feed_value(s, at, *at + 1, end, err);
}

/* One step: a byte or more of [*AT, END), or another state. */
static int feed_step(struct json_split *s, const char **at, const char *end, struct err *err)
{
        if (s->state == VALUE)
                return feed_value(s, at, *at, end, err);
        if (s->state == NAME || s->state == KEPT)
                return feed_kept(s, at, end, err);
        if (is_blank(**at)) {
                ++*at;
                return 0;
        }
        if (s->state == DONE)
                return unexpected(**at, "after a JSON list", err);
        if (s->mode == SPLIT_VALUES) {
                begin_value(s, **at, VALUE);
                return feed_value(s, at, *at + 1, end, err);
        }
        if (s->state >= ITEM)
                return feed_items(s, at, end, err);
        return feed_object(s, at, err);
}

int json_split_feed(struct json_split *s, struct str chunk, struct err *err)
{
        const char *at = chunk.p, *end = chunk.n ? chunk.p + chunk.n : chunk.p;

        if (s->state == FAILED)
                return err_set(err, E_INVALID, "the stream of JSON values has failed before");
        while (at < end)
                if (feed_step(s, &at, end, err) < 0) {
                        s->state = FAILED;
                        return -1;
                }
        return 0;
}

int json_split_end(struct json_split *s, struct str *ret, struct err *err)
{
        if (s->state == FAILED)
                return err_set(err, E_INVALID, "the stream of JSON values has failed before");
        /* A scalar has no end of its own. */
        if (s->mode == SPLIT_VALUES && s->state == VALUE && s->shape == SCALAR) {
                int r = hand_on(s, buf_str(&s->part), err);

                buf_clear(&s->part);
                return r;
        }
        if (s->state != (s->mode == SPLIT_VALUES ? BETWEEN : DONE))
                return err_set(err, E_LOST, "the stream of JSON values ended in the middle of one");
        if (ret)
                *ret = buf_str(&s->kept);
        return 0;
}
