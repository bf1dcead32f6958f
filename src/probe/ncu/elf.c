/*
 * As much of an ELF file as the loader reads to find libraries: little endian, 32 and 64 bits. It is read in pieces, not
 * mapped: libraries of CUDA have gigabytes, and a file that shrinks meanwhile must not kill us.
 */
#include "probe/ncu/elf.h"

#include <elf.h>
#include <unistd.h>

enum {
        SEGMENTS_MAX = 512,
        DYNAMIC_MAX = 1 << 20,
};

struct segment {
        uint32_t type;
        uint64_t offset, address, size; /* in the file */
};

struct reading {
        struct arena *a;
        int fd;
        struct elf *elf;
        size_t n_segments;
        struct segment *segments;
        uint64_t strings, strings_size; /* offset in the file */
};

static uint64_t le(const unsigned char *p, size_t n)
{
        uint64_t v = 0;

        for (size_t i = n; i > 0; i--)
                v = v << 8 | p[i - 1];
        return v;
}

/* As many of N bytes at OFFSET as there are. */
static size_t read_some(int fd, uint64_t offset, char *to, size_t n)
{
        size_t done = 0;

        while (done < n && offset <= INT64_MAX - n) {
                ssize_t got = pread(fd, to + done, n - done, (off_t)(offset + done));

                if (got <= 0)
                        break;
                done += (size_t)got;
        }
        return done;
}

static bool read_at(int fd, uint64_t offset, void *to, size_t n)
{
        return read_some(fd, offset, to, n) == n;
}

/* ---- head and segments */

/* 0: it is an ELF file that we can read. 1: it is none. */
static int read_ident(int fd, unsigned char *head, struct elf *ret, struct err *err)
{
        if (!read_at(fd, 0, head, EI_NIDENT) || memcmp(head, ELFMAG, SELFMAG) != 0)
                return 1;
        if (head[EI_CLASS] != ELFCLASS32 && head[EI_CLASS] != ELFCLASS64)
                return err_set(err, E_INVALID, "it is an ELF file of class %d", head[EI_CLASS]);
        if (head[EI_DATA] != ELFDATA2LSB)
                return err_set(err, E_INVALID, "it is an ELF file for a big-endian machine");
        ret->bits = head[EI_CLASS] == ELFCLASS64 ? 64 : 32;
        if (!read_at(fd, 0, head, ret->bits == 64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
                return err_set(err, E_INVALID, "it is an ELF file that is cut short");
        ret->machine = (uint16_t)le(head + 18, 2);
        return 0;
}

static int read_segments(struct reading *r, const unsigned char *head, struct err *err)
{
        bool wide = r->elf->bits == 64;
        uint64_t offset = wide ? le(head + 32, 8) : le(head + 28, 4);
        size_t size = (size_t)le(head + (wide ? 54 : 42), 2), n = (size_t)le(head + (wide ? 56 : 44), 2);
        unsigned char *table;

        if (n > SEGMENTS_MAX || size != (wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
                return err_set(err, E_INVALID, "it has %zu segments of %zu bytes", n, size);
        if (n == 0)
                return 0;
        table = arena_alloc(r->a, n * size);
        if (!read_at(r->fd, offset, table, n * size))
                return err_set(err, E_INVALID, "its table of segments is cut short");
        r->segments = arena_new_array(r->a, struct segment, n);
        r->n_segments = n;
        for (size_t i = 0; i < n; i++) {
                const unsigned char *p = table + i * size;

                r->segments[i] = (struct segment){
                        .type = (uint32_t)le(p, 4),
                        .offset = wide ? le(p + 8, 8) : le(p + 4, 4),
                        .address = wide ? le(p + 16, 8) : le(p + 8, 4),
                        .size = wide ? le(p + 32, 8) : le(p + 16, 4),
                };
        }
        return 0;
}

static const struct segment *find_segment(const struct reading *r, uint32_t type)
{
        for (size_t i = 0; i < r->n_segments; i++)
                if (r->segments[i].type == type)
                        return &r->segments[i];
        return NULL;
}

static int read_interpreter(struct reading *r, struct err *err)
{
        const struct segment *s = find_segment(r, PT_INTERP);
        char *text;

        if (!s)
                return 0;
        if (s->size < 2 || s->size > ELF_PATH_MAX)
                return err_set(err, E_INVALID, "the name of its interpreter has %llu bytes",
                               (unsigned long long)s->size);
        text = arena_zalloc(r->a, (size_t)s->size + 1);
        if (!read_at(r->fd, s->offset, text, (size_t)s->size))
                return err_set(err, E_INVALID, "the name of its interpreter is cut short");
        r->elf->interpreter = text;
        return 0;
}

/* ---- the dynamic section */

/* The string at OFFSET of the string table; NULL: it is not all in there. */
static const char *read_string(const struct reading *r, uint64_t offset)
{
        char text[ELF_PATH_MAX];
        size_t n;

        if (offset >= r->strings_size)
                return NULL;
        n = (size_t)MIN(r->strings_size - offset, (uint64_t)sizeof(text));
        n = read_some(r->fd, r->strings + offset, text, n);
        return n && memchr(text, '\0', n) ? arena_strdup(r->a, text) : NULL;
}

/* Where in the file that is which is at ADDRESS in memory. */
static bool in_file(const struct reading *r, uint64_t address, uint64_t *ret)
{
        for (size_t i = 0; i < r->n_segments; i++) {
                const struct segment *s = &r->segments[i];

                if (s->type == PT_LOAD && address >= s->address && address - s->address < s->size) {
                        *ret = s->offset + (address - s->address);
                        return *ret >= s->offset;
                }
        }
        return false;
}

struct entries {
        const unsigned char *p;
        size_t n, half; /* each entry is two numbers of HALF bytes */
};

static uint64_t tag_of(const struct entries *e, size_t i)
{
        return le(e->p + 2 * e->half * i, e->half);
}

static uint64_t value_of(const struct entries *e, size_t i)
{
        return le(e->p + 2 * e->half * i + e->half, e->half);
}

static int read_strings(struct reading *r, const struct entries *e, struct err *err)
{
        uint64_t address = 0;
        bool there = false;

        for (size_t i = 0; i < e->n; i++)
                if (tag_of(e, i) == DT_STRTAB) {
                        address = value_of(e, i);
                        there = true;
                } else if (tag_of(e, i) == DT_STRSZ)
                        r->strings_size = value_of(e, i);
        if (!there || !in_file(r, address, &r->strings) || r->strings_size > INT64_MAX - r->strings)
                return err_set(err, E_INVALID, "its table of names is not in the file");
        return 0;
}

static int take_entry(struct reading *r, uint64_t tag, uint64_t value, struct err *err)
{
        const char **to = tag == DT_RPATH ? &r->elf->rpath : tag == DT_RUNPATH ? &r->elf->runpath : NULL;

        if (tag == DT_NEEDED)
                to = &r->elf->needed[r->elf->n_needed++];
        if (!to)
                return 0;
        *to = read_string(r, value);
        return *to ? 0
                   : err_set(err, E_INVALID, "the name of a library or a path is not in its table of names");
}

static int read_dynamic(struct reading *r, struct err *err)
{
        const struct segment *s = find_segment(r, PT_DYNAMIC);
        struct entries e = {.half = r->elf->bits == 64 ? 8 : 4};
        unsigned char *table;
        size_t n = 0;

        if (!s || s->size == 0)
                return 0;
        if (s->size > DYNAMIC_MAX)
                return err_set(err, E_TOO_LARGE, "its dynamic section has %llu bytes",
                               (unsigned long long)s->size);
        table = arena_alloc(r->a, (size_t)s->size);
        if (!read_at(r->fd, s->offset, table, (size_t)s->size))
                return err_set(err, E_INVALID, "its dynamic section is cut short");
        e.p = table;
        while ((e.n + 1) * 2 * e.half <= s->size && tag_of(&e, e.n) != DT_NULL)
                n += tag_of(&e, e.n++) == DT_NEEDED;
        if (n > ELF_NEEDED_MAX)
                return err_set(err, E_TOO_LARGE, "it needs %zu libraries", n);
        if (e.n == 0)
                return 0;
        if (read_strings(r, &e, err) < 0)
                return -1;
        r->elf->needed = arena_new_array(r->a, const char *, n + 1);
        for (size_t i = 0; i < e.n; i++)
                if (take_entry(r, tag_of(&e, i), value_of(&e, i), err) < 0)
                        return -1;
        return 0;
}

int elf_read(struct arena *a, int fd, struct elf *ret, struct err *err)
{
        unsigned char head[sizeof(Elf64_Ehdr)] = {0};
        struct reading r = {.a = a, .fd = fd, .elf = ret};
        int is;

        *ret = (struct elf){0};
        is = read_ident(fd, head, ret, err);
        if (is != 0)
                return is;
        if (read_segments(&r, head, err) < 0 || read_interpreter(&r, err) < 0)
                return -1;
        return read_dynamic(&r, err);
}

bool elf_fits(int fd, const struct elf *as)
{
        unsigned char head[sizeof(Elf64_Ehdr)];
        struct elf elf = {0};

        return read_ident(fd, head, &elf, NULL) == 0 && elf.bits == as->bits && elf.machine == as->machine;
}
