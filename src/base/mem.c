#include "base/base.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
        OOM_EXIT = 71,
        BLOCK_MIN = 4096,
        BLOCK_MAX = 1 << 20,
        POOL_KEEP = 64 * 1024,
};

static _noreturn_ void out_of_memory(void)
{
        static const char msg[] = "sonde: out of memory\n";

        if (write(STDERR_FILENO, msg, sizeof(msg) - 1) < 0)
                _exit(OOM_EXIT);
        _exit(OOM_EXIT);
}

void *xmalloc(size_t size)
{
        void *p = malloc(size ? size : 1);

        if (!p)
                out_of_memory();
        return p;
}

void *xcalloc(size_t count, size_t size)
{
        void *p = calloc(count ? count : 1, size ? size : 1);

        if (!p)
                out_of_memory();
        return p;
}

void *xrealloc(void *p, size_t size)
{
        void *q = realloc(p, size ? size : 1);

        if (!q)
                out_of_memory();
        return q;
}

void *xmemdup(const void *p, size_t size)
{
        void *q = xmalloc(size);

        if (size)
                memcpy(q, p, size);
        return q;
}

char *xstrdup(const char *s)
{
        return s ? xmemdup(s, strlen(s) + 1) : NULL;
}

char *xstrndup(const char *s, size_t n)
{
        char *q = xmalloc(n + 1);

        if (n)
                memcpy(q, s, n);
        q[n] = '\0';
        return q;
}

char *xasprintf(const char *fmt, ...)
{
        va_list ap;
        char *s;
        int n;

        va_start(ap, fmt);
        n = vasprintf(&s, fmt, ap);
        va_end(ap);
        if (n < 0)
                out_of_memory();
        return s;
}

void mem_wipe(void *p, size_t size)
{
        if (p)
                explicit_bzero(p, size);
}

/* What nobody can have written is in its file. */
static int let_go(struct dl_phdr_info *object, size_t size, void *arg)
{
        size_t page = (size_t)sysconf(_SC_PAGESIZE);

        for (size_t i = 0; i < object->dlpi_phnum; i++) {
                const ElfW(Phdr) *part = &object->dlpi_phdr[i];
                uintptr_t from = (uintptr_t)(object->dlpi_addr + part->p_vaddr), to = from + part->p_memsz;
                void *start;

                if (part->p_type != PT_LOAD || (part->p_flags & PF_W))
                        continue;
                from -= from % page;
                start = (void *)from; /* NOLINT(performance-no-int-to-ptr) */
                if (madvise(start, to - from, MADV_DONTNEED) < 0)
                        return 0; /* it stays, then */
        }
        return 0;
}

void mem_trim(void)
{
        malloc_trim(0);
        dl_iterate_phdr(let_go, NULL);
}

struct arena_block {
        struct arena_block *prev;
        size_t size; /* of data */
        char data[] __attribute__((aligned(8)));
};

static void use_block(struct arena *a, struct arena_block *b)
{
        a->block = b;
        a->at = b->data;
        a->end = b->data + b->size;
}

void *arena_alloc_slow(struct arena *a, size_t size)
{
        size_t n = (size + 7) & ~(size_t)7, want;
        struct arena_block *b;
        char *p;

        if (n < size || n > SIZE_MAX / 2)
                out_of_memory();
        /* Each block doubles the one before, so that a big document needs few of them. */
        want = a->block ? MIN(a->block->size * 2, (size_t)BLOCK_MAX) : BLOCK_MIN - sizeof(*b);
        want = MAX(want, n);
        b = xmalloc(sizeof(*b) + want);
        b->size = want;
        b->prev = a->block;
        use_block(a, b);
        p = a->at;
        a->at += n;
        a->used += n;
        return p;
}

void arena_done(struct arena *a)
{
        struct arena_block *b = a->block, *prev;

        for (; b; b = prev) {
                prev = b->prev;
                free(b);
        }
        *a = (struct arena)ARENA_INIT;
}

void arena_wipe(struct arena *a)
{
        for (struct arena_block *b = a->block; b; b = b->prev)
                mem_wipe(b->data, b->size);
        arena_done(a);
}

void arena_reset(struct arena *a, size_t keep)
{
        struct arena_block *best = NULL, *b, *prev;

        /* Keep the largest block that fits the budget: the next round of the same kind then needs only it. */
        for (b = a->block; b; b = prev) {
                prev = b->prev;
                if (b->size <= keep && (!best || b->size > best->size)) {
                        free(best);
                        best = b;
                } else {
                        free(b);
                }
        }
        *a = (struct arena)ARENA_INIT;
        if (best) {
                best->prev = NULL;
                use_block(a, best);
        }
}

void *arena_zalloc(struct arena *a, size_t size)
{
        void *p = arena_alloc(a, size);

        memset(p, 0, size);
        return p;
}

void *arena_memdup(struct arena *a, const void *p, size_t size)
{
        void *q = arena_alloc(a, size);

        if (size)
                memcpy(q, p, size);
        return q;
}

char *arena_strdup(struct arena *a, const char *s)
{
        return s ? arena_memdup(a, s, strlen(s) + 1) : NULL;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
        char *q = arena_alloc(a, n + 1);

        if (n)
                memcpy(q, s, n);
        q[n] = '\0';
        return q;
}

char *arena_join(struct arena *a, const char *x, const char *y, const char *z)
{
        size_t nx = strlen(x), ny = strlen(y), nz = strlen(z);
        char *s = arena_alloc(a, nx + ny + nz + 1);

        memcpy(s, x, nx);
        memcpy(s + nx, y, ny);
        memcpy(s + nx + ny, z, nz + 1);
        return s;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
        va_list again;
        char *s;
        int n;

        va_copy(again, ap);
        n = vsnprintf(NULL, 0, fmt, ap);
        if (n < 0)
                out_of_memory();
        s = arena_alloc(a, (size_t)n + 1);
        vsnprintf(s, (size_t)n + 1, fmt, again);
        va_end(again);
        return s;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
        va_list ap;
        char *s;

        va_start(ap, fmt);
        s = arena_vprintf(a, fmt, ap);
        va_end(ap);
        return s;
}

struct arena arena_pool_take(struct arena_pool *pool)
{
        return pool->n ? pool->spare[--pool->n] : (struct arena)ARENA_INIT;
}

void arena_pool_give(struct arena_pool *pool, struct arena *a)
{
        arena_reset(a, POOL_KEEP);
        if (pool->n < ARENA_POOL_MAX)
                pool->spare[pool->n++] = *a;
        else
                arena_done(a);
        *a = (struct arena)ARENA_INIT;
}

void arena_pool_done(struct arena_pool *pool)
{
        while (pool->n)
                arena_done(&pool->spare[--pool->n]);
}
