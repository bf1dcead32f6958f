/*
 * str.h - counted strings, bounded buffers, UTF-8, exact number parsing.
 *
 * struct str borrows: it never owns its bytes and is passed by value. struct buf owns a growing array with an
 * obligatory maximum; going over it sets `overflow`, drops the addition, and every later addition too, so that a
 * writer checks once at the end.
 */
#pragma once

#include <string.h>

#include "base/err.h"
#include "base/mem.h"

struct str {
        const char *p;
        size_t n;
};

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_NULL     ((struct str){NULL, 0})
#define STR_ARG(s)   (int)MIN((s).n, (size_t)INT32_MAX), ((s).p ? (s).p : "") /* for "%.*s" */

static inline struct str str_of(const char *s)
{
        return (struct str){s, s ? strlen(s) : 0};
}

static inline struct str str_n(const char *s, size_t n)
{
        return (struct str){s, n};
}

static inline bool str_eq(struct str a, struct str b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool streq(const char *a, const char *b)
{
        return a == b || (a && b && strcmp(a, b) == 0);
}

int str_cmp(struct str a, struct str b);      /* bytes, then length */
bool str_case_eq(struct str a, struct str b); /* ASCII */
bool str_has_prefix(struct str s, struct str prefix);
bool str_has_suffix(struct str s, struct str suffix);
struct str str_trim(struct str s); /* ASCII blanks at both ends */
/* Cuts S at the first SEP: returns what is before it and leaves the rest (STR_NULL when there was no SEP). */
struct str str_split(struct str *s, char sep);

/* Whole string, decimal, no blanks, no leading '+'; false when it does not fit. */
bool str_to_i64(struct str s, int64_t *ret);
bool str_to_u64(struct str s, uint64_t *ret);
/* As Go has them ("250ms", "1.5h", "1h30m"), with days and weeks ("7d"), or "10" (seconds): whole microseconds. */
bool str_to_duration(struct str s, uint64_t *ret_usec);

/* The longest prefix of at most MAX bytes that ends between two characters. */
size_t utf8_cut(const char *s, size_t n, size_t max);
bool utf8_valid(const char *s, size_t n);
/* Writes CODEPOINT (not a surrogate, at most 0x10FFFF) to OUT, which has 4 bytes; returns how many. */
size_t utf8_encode(uint32_t codepoint, char *out);

struct buf {
        char *p;
        size_t n, cap;
        size_t max; /* of n */
        bool overflow;
};

#define BUF_INIT(limit)        \
        {                      \
                .max = (limit) \
        }

void buf_done(struct buf *b);
void buf_clear(struct buf *b);                 /* keeps the memory and the limit */
char *buf_reserve(struct buf *b, size_t more); /* room for MORE bytes at the end, NULL: over the limit */
void buf_add(struct buf *b, const void *p, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);
void buf_consume(struct buf *b, size_t n); /* drops the first N bytes */
/* The content as a C string (NUL not counted), or NULL after an overflow. */
const char *buf_cstr(struct buf *b);
char *buf_take(struct buf *b); /* the same, owned by the caller; the buffer is empty again */

static inline void buf_addc(struct buf *b, char c)
{
        if (b->n < b->cap && !b->overflow)
                b->p[b->n++] = c;
        else
                buf_add(b, &c, 1);
}

static inline void buf_adds(struct buf *b, const char *s)
{
        buf_add(b, s, strlen(s));
}

static inline void buf_addstr(struct buf *b, struct str s)
{
        buf_add(b, s.p, s.n);
}

static inline struct str buf_str(const struct buf *b)
{
        return (struct str){b->p, b->n};
}

/* Adds S as base64 or percent-encoded (RFC 3986 unreserved characters stay). */
void buf_add_base64(struct buf *b, struct str s);
void buf_add_urlencoded(struct buf *b, struct str s);
/* A field of a CSV file (RFC 4180), in quotes where it needs them. */
void buf_add_csv(struct buf *b, const char *text);
/* Decodes base64 (blanks allowed, padding required); false when it is malformed. */
bool buf_add_unbase64(struct buf *b, struct str s) _must_check_;

DEFINE_CLEANUP_STRUCT(struct buf, buf_done)
