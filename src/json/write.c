/*
 * The writer keeps its place in a register: `at` goes down and comes back up. NULL means that the buffer is full.
 */
#include "json/internal.h"

struct writer {
        struct buf *out;
        char *end; /* of the room there is without asking */
        bool pretty;
};

static __attribute__((noinline)) char *grow(struct writer *w, const char *at, size_t n)
{
        struct buf *out = w->out;

        out->n = (size_t)(at - out->p);
        if (!buf_reserve(out, n))
                return NULL;
        w->end = out->p + out->cap;
        return out->p + out->n;
}

/* Where to put N bytes. */
static inline char *room(struct writer *w, char *at, size_t n)
{
        return __builtin_expect((size_t)(w->end - at) >= n, 1) ? at : grow(w, at, n);
}

static inline char *put(struct writer *w, char *at, char c)
{
        at = room(w, at, 1);
        if (at)
                *at++ = c;
        return at;
}

static inline char *put_bytes(struct writer *w, char *at, const char *p, size_t n)
{
        at = room(w, at, n);
        if (!at)
                return NULL;
        memcpy(at, p, n);
        return at + n;
}

static char *put_escape(struct writer *w, char *at, unsigned char c)
{
        static const char names[256] = {
                ['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
                ['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
        };
        static const char hex[] = "0123456789abcdef";
        char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

        if (!names[c])
                return put_bytes(w, at, text, 6);
        text[1] = names[c];
        return put_bytes(w, at, text, 2);
}

static bool is_plain(char c)
{
        return (unsigned char)c >= 0x20 && c != '"' && c != '\\';
}

/* One word of FROM to TO; true when all of it is plain. */
static inline bool copy_word(char *to, const char *from)
{
        uint64_t w;

        memcpy(&w, from, 8);
        memcpy(to, &w, 8);
        return !string_stops(load8(from));
}

/* Up to 7 bytes. Two halves that overlap stand for all lengths from 4 on. */
static inline bool copy_short(char *to, const char *from, size_t n)
{
        if (n >= 4) {
                uint32_t head, tail;

                memcpy(&head, from, 4);
                memcpy(&tail, from + n - 4, 4);
                memcpy(to, &head, 4);
                memcpy(to + n - 4, &tail, 4);
                return !string_stops(head | (uint64_t)tail << 32);
        }
        for (size_t i = 0; i < n; i++) {
                if (!is_plain(from[i]))
                        return false;
                to[i] = from[i];
        }
        return true;
}

/* Copies N characters; false when one of them must be escaped, and then TO holds nothing of use. */
static inline bool copy_plain(char *to, const char *from, size_t n)
{
        size_t i = 0;

        if (n < 8)
                return copy_short(to, from, n);
        for (; n - i > 8; i += 8)
                if (!copy_word(to + i, from + i))
                        return false;
        /* The last word overlaps the one before. */
        return copy_word(to + n - 8, from + n - 8);
}

/* The opening quote is written. */
static __attribute__((noinline)) char *put_escaped(struct writer *w, char *at, const char *s, size_t n)
{
        size_t from = 0, i = 0;

        for (; i < n && at; i++) {
                if (is_plain(s[i]))
                        continue;
                at = put_bytes(w, at, s + from, i - from);
                at = at ? put_escape(w, at, (unsigned char)s[i]) : NULL;
                from = i + 1;
        }
        at = at ? put_bytes(w, at, s + from, n - from) : NULL;
        return at ? put(w, at, '"') : NULL;
}

static inline char *put_string(struct writer *w, char *at, const char *s, size_t n)
{
        at = room(w, at, n + 2);
        if (!at)
                return NULL;
        *at++ = '"';
        if (__builtin_expect(!copy_plain(at, s, n), 0))
                return put_escaped(w, at, s, n);
        at[n] = '"';
        return at + n + 1;
}

static char *put_line(struct writer *w, char *at, unsigned level)
{
        size_t blanks = (size_t)level * 2;

        at = room(w, at, 1 + blanks);
        if (!at)
                return NULL;
        *at = '\n';
        memset(at + 1, ' ', blanks);
        return at + 1 + blanks;
}

static char *put_node(struct writer *w, char *at, const struct json *j, unsigned level);

/* What stands before a child: the comma, the line, the name. */
static inline char *put_lead(struct writer *w, char *at, const struct json *child, bool member, bool first,
                             unsigned level)
{
        if (!first)
                at = put(w, at, ',');
        if (at && w->pretty)
                at = put_line(w, at, level);
        if (!at || !member)
                return at;
        at = put_string(w, at, child->key, child->key_len);
        at = at ? put(w, at, ':') : NULL;
        return at && w->pretty ? put(w, at, ' ') : at;
}

static char *put_children(struct writer *w, char *at, const struct json *j, unsigned level)
{
        bool object = j->type == JSON_OBJECT, first = true;

        at = put(w, at, object ? '{' : '[');
        json_foreach (child, j) {
                at = at ? put_lead(w, at, child, object, first, level + 1) : NULL;
                if (!at)
                        return NULL;
                if (child->type == JSON_STRING)
                        at = put_string(w, at, child->text, child->len);
                else
                        at = put_node(w, at, child, level + 1);
                first = false;
        }
        if (at && w->pretty && !first)
                at = put_line(w, at, level);
        return at ? put(w, at, object ? '}' : ']') : NULL;
}

static char *put_node(struct writer *w, char *at, const struct json *j, unsigned level)
{
        switch ((enum json_type)j->type) {
        case JSON_NULL:
                return put_bytes(w, at, "null", 4);
        case JSON_BOOL:
                return j->truth ? put_bytes(w, at, "true", 4) : put_bytes(w, at, "false", 5);
        case JSON_NUMBER:
                return put_bytes(w, at, j->text, j->len);
        case JSON_STRING:
                return put_string(w, at, j->text, j->len);
        case JSON_ARRAY:
        case JSON_OBJECT:
                return put_children(w, at, j, level);
        }
        return at;
}

/* Every value has at least one byte, so asking for it is no overflow of its own. */
static char *begin(struct writer *w, struct buf *out)
{
        char *at = buf_reserve(out, 1);

        w->out = out;
        w->end = at ? out->p + out->cap : NULL;
        return at;
}

static void finish(struct writer *w, const char *at)
{
        if (at)
                w->out->n = (size_t)(at - w->out->p);
}

void json_write_string(struct str s, struct buf *out)
{
        struct writer w = {.pretty = false};
        char *at = begin(&w, out);

        finish(&w, at ? put_string(&w, at, s.p, s.n) : NULL);
}

void json_write(const struct json *j, enum json_style style, struct buf *out)
{
        static const struct json null = {.type = JSON_NULL};
        struct writer w = {.pretty = style == JSON_PRETTY};
        char *at = begin(&w, out);

        finish(&w, at ? put_node(&w, at, j ? j : &null, 0) : NULL);
}

char *json_print(struct arena *a, const struct json *j)
{
        _cleanup_(buf_done) struct buf out = BUF_INIT(SIZE_MAX);

        buf_reserve(&out, 2048); /* most objects fit: no growing */
        json_write(j, JSON_COMPACT, &out);
        return arena_strndup(a, out.p, out.n);
}
