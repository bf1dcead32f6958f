/*
 * mem.h - allocation that cannot fail, cleanup attributes, arenas.
 *
 * An arena hands out memory that is freed all at once: one per decision, per parsed event, per request.
 * arena_reset() keeps the blocks for the next round, so a warmed-up arena allocates nothing (parsing into one
 * is three times as fast as into fresh memory). Arena memory is aligned to 8 bytes and is not zeroed unless
 * asked for.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define _cleanup_(f)   __attribute__((cleanup(f##_p)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _must_check_   __attribute__((warn_unused_result))
#define _noreturn_     __attribute__((noreturn))
#define _pure_         __attribute__((pure))
#define _unused_       __attribute__((unused))

/* Defines f_p(), which _cleanup_(f) calls with the address of the variable. */
#define DEFINE_CLEANUP_PTR(type, f)       \
        static inline void f##_p(type *p) \
        {                                 \
                if (*p)                   \
                        f(*p);            \
        }
#define DEFINE_CLEANUP_STRUCT(type, f)    \
        static inline void f##_p(type *p) \
        {                                 \
                f(p);                     \
        }

#define TAKE_PTR(p)                            \
        ({                                     \
                __typeof__(p) *take_ = &(p);   \
                __typeof__(p) taken_ = *take_; \
                *take_ = NULL;                 \
                taken_;                        \
        })

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
/* Each use has names of its own, so that they can be nested. */
#define PICK_(a, op, b, n)                                                                          \
        ({                                                                                          \
                __auto_type PASTE_(pick_a_, n) = (a);                                               \
                __auto_type PASTE_(pick_b_, n) = (b);                                               \
                PASTE_(pick_a_, n) op PASTE_(pick_b_, n) ? PASTE_(pick_a_, n) : PASTE_(pick_b_, n); \
        })
#define PASTE_(x, y)                    PASTE_2_(x, y)
#define PASTE_2_(x, y)                  x##y
#define MIN(a, b)                       PICK_(a, <, b, __COUNTER__)
#define MAX(a, b)                       PICK_(a, >, b, __COUNTER__)
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *p, size_t size);
void *xmemdup(const void *p, size_t size);
char *xstrdup(const char *s); /* NULL gives NULL */
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) _printf_(1, 2);

/* Frees *P and makes it NULL; for _cleanup_(free_ptr) on any pointer. */
static inline void free_ptr_p(void *p)
{
        free(*(void **)p);
}

/*
 * Gives back to the system what is free, and code and constants that were needed once, at the start for example: those come
 * back from the page cache when they are needed again. For a process that is idle for long.
 */
void mem_trim(void);

/* Overwrites secrets in a way the compiler may not remove. */
void mem_wipe(void *p, size_t size);

struct arena_block;
struct arena {
        struct arena_block *block; /* the one being filled */
        char *at, *end;
        size_t used; /* by callers, since the last reset */
};

#define ARENA_INIT \
        {          \
                0  \
        }

void arena_done(struct arena *a);
void arena_wipe(struct arena *a); /* the same for one that held secrets */
/* Forgets all that was handed out. Keeps at most KEEP bytes of blocks for reuse (SIZE_MAX: all). */
void arena_reset(struct arena *a, size_t keep);

void *arena_alloc_slow(struct arena *a, size_t size);

static inline void *arena_alloc(struct arena *a, size_t size)
{
        size_t n = (size + 7) & ~(size_t)7;

        if (n >= size && n <= (size_t)(a->end - a->at)) {
                char *p = a->at;

                a->at += n;
                a->used += n;
                return p;
        }
        return arena_alloc_slow(a, size);
}

void *arena_zalloc(struct arena *a, size_t size);
void *arena_memdup(struct arena *a, const void *p, size_t size);
char *arena_strdup(struct arena *a, const char *s);            /* NULL gives NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n); /* always NUL-terminated */
char *arena_join(struct arena *a, const char *x, const char *y,
                 const char *z); /* x, y and z, one after the other */
char *arena_printf(struct arena *a, const char *fmt, ...) _printf_(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) _printf_(2, 0);

/* Arenas that go from hand to hand while they are warm: at most 16 wait, with at most 64 KiB each. */
enum { ARENA_POOL_MAX = 16 };
struct arena_pool {
        struct arena spare[ARENA_POOL_MAX];
        size_t n;
};

struct arena arena_pool_take(struct arena_pool *pool);
void arena_pool_give(struct arena_pool *pool, struct arena *a); /* what was in it is gone */
void arena_pool_done(struct arena_pool *pool);

#define arena_new(a, type)          ((type *)arena_zalloc((a), sizeof(type)))
#define arena_new_array(a, type, n) ((type *)arena_zalloc((a), (size_t)(n) * sizeof(type)))

DEFINE_CLEANUP_STRUCT(struct arena, arena_done)
DEFINE_CLEANUP_STRUCT(struct arena, arena_wipe)
