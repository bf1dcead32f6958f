/*
 * The end of what a workload said.
 */
#include "run/supervise_private.h"

/* One byte more than is asked for: it says whether what follows begins a line. */
enum { KEEP = RUN_TAIL_MAX + 1 };

void tail_add(struct tail *t, struct str data)
{
        if (data.n > KEEP)
                data = str_n(data.p + (data.n - KEEP), KEEP);
        if (t->n + data.n > sizeof(t->bytes)) {
                memmove(t->bytes, t->bytes + (t->n - KEEP), KEEP);
                t->n = KEEP;
        }
        if (data.n)
                memcpy(t->bytes + t->n, data.p, data.n);
        t->n += data.n;
}

/* S from its first new line on, or at least from its first whole character. */
static struct str from_line(struct str s)
{
        const char *newline = memchr(s.p, '\n', s.n);

        if (newline && newline + 1 < s.p + s.n)
                return str_n(newline + 1, s.n - (size_t)(newline + 1 - s.p));
        for (int i = 0; i < 3 && s.n && ((unsigned char)s.p[0] & 0xC0) == 0x80; i++)
                s = str_n(s.p + 1, s.n - 1);
        return s;
}

/* The last MAX bytes of S, from a line's begin where there is one. */
static struct str last_part(struct str s, size_t max)
{
        struct str part;

        if (s.n <= max)
                return s;
        part = str_n(s.p + (s.n - max), max);
        return max && part.p[-1] == '\n' ? part : from_line(part);
}

struct str tail_text(struct arena *a, const struct tail *t)
{
        struct str part = last_part(str_n(t->bytes, t->n), RUN_TAIL_MAX);

        /* What is not UTF-8 becomes U+FFFD, which may be longer than it was. */
        return last_part(json_text(json_stringn(a, part)), RUN_TAIL_MAX);
}

/* The most that a byte takes in JSON. */
static size_t escaped(char c)
{
        if (c == '\n' || c == '"' || c == '\\')
                return 2;
        return (unsigned char)c < ' ' || c == 0x7f ? 6 : 1;
}

struct str exit_short_text(struct arena *a, const struct run_exit *e, size_t max)
{
        static const struct str around = STR(",\"tail\":\"\"");
        struct run_exit part = *e;
        struct str text;
        size_t n = 0, room;

        part.tail = STR_NULL;
        text = str_of(json_print(a, run_exit_json(a, &part)));
        if (text.n + around.n >= max)
                return text;
        room = max - text.n - around.n;
        while (n < e->tail.n && escaped(e->tail.p[e->tail.n - n - 1]) <= room)
                room -= escaped(e->tail.p[e->tail.n - ++n]);
        part.tail = last_part(e->tail, n);
        return str_of(json_print(a, run_exit_json(a, &part)));
}
