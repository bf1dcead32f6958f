#include "probe/sla/npz.h"

#include <zlib.h>

enum {
        ZIP_LOCAL = 0x04034b50,
        ZIP_CENTRAL = 0x02014b50,
        ZIP_END = 0x06054b50,
        ZIP_VERSION = 20,
        ZIP_1980 = 0x0021, /* the first day that it can say */
        ZIP_UNIX_0644 = 0x81a4,
        NPY_ALIGN = 64,
};

static void add_le(struct buf *out, uint64_t value, size_t bytes)
{
        for (size_t i = 0; i < bytes; i++)
                buf_addc(out, (char)(value >> (8 * i) & 0xff));
}

/* ---- one array */

static void add_npy(struct buf *out, const struct npz_array *array)
{
        size_t prefix = 10; /* magic, version, length of the head */
        char head[128];
        int n = snprintf(head, sizeof(head), "{'descr': '%s', 'fortran_order': False, 'shape': (%zu,), }",
                         array->whole ? "<i8" : "<f8", array->n);
        size_t padded = (prefix + (size_t)n + 1 + NPY_ALIGN - 1) / NPY_ALIGN * NPY_ALIGN - prefix;

        buf_add(out, "\x93NUMPY\x01\x00", 8);
        add_le(out, padded, 2);
        buf_add(out, head, (size_t)n);
        for (size_t i = (size_t)n; i + 1 < padded; i++)
                buf_addc(out, ' ');
        buf_addc(out, '\n');
        for (size_t i = 0; i < array->n; i++) {
                uint64_t bits;

                if (array->whole)
                        bits = (uint64_t)array->whole[i];
                else
                        memcpy(&bits, &array->reals[i], sizeof(bits));
                add_le(out, bits, 8);
        }
}

/* ---- the archive */

struct entry {
        char name[64];
        uint32_t crc, size, offset;
};

/* What the head before a file and its line in the directory have in common. */
static void add_facts(struct buf *out, const struct entry *e)
{
        add_le(out, ZIP_VERSION, 2);
        add_le(out, 0, 2); /* flags */
        add_le(out, 0, 2); /* stored */
        add_le(out, 0, 2); /* midnight */
        add_le(out, ZIP_1980, 2);
        add_le(out, e->crc, 4);
        add_le(out, e->size, 4);
        add_le(out, e->size, 4);
        add_le(out, strlen(e->name), 2);
        add_le(out, 0, 2); /* extra field */
}

static void add_entry(struct buf *out, const struct npz_array *array, struct entry *ret)
{
        _cleanup_(buf_done) struct buf npy = BUF_INIT(out->max);

        add_npy(&npy, array);
        if (npy.overflow) {
                out->overflow = true;
                return;
        }
        *ret = (struct entry){.crc = (uint32_t)crc32(0, (const unsigned char *)npy.p, (uInt)npy.n),
                              .size = (uint32_t)npy.n,
                              .offset = (uint32_t)out->n};
        snprintf(ret->name, sizeof(ret->name), "%s.npy", array->name);
        add_le(out, ZIP_LOCAL, 4);
        add_facts(out, ret);
        buf_adds(out, ret->name);
        buf_addstr(out, buf_str(&npy));
}

static void add_directory_line(struct buf *out, const struct entry *e)
{
        add_le(out, ZIP_CENTRAL, 4);
        add_le(out, 3 << 8 | ZIP_VERSION, 2); /* made on Unix */
        add_facts(out, e);
        add_le(out, 0, 2); /* comment */
        add_le(out, 0, 2); /* disk */
        add_le(out, 0, 2); /* internal attributes */
        add_le(out, (uint64_t)ZIP_UNIX_0644 << 16, 4);
        add_le(out, e->offset, 4);
        buf_adds(out, e->name);
}

void npz_write(const struct npz_array *arrays, size_t n, struct buf *out)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct entry *entries = arena_new_array(&a, struct entry, n + 1);
        size_t start;

        for (size_t i = 0; i < n; i++)
                add_entry(out, &arrays[i], &entries[i]);
        start = out->n;
        for (size_t i = 0; i < n; i++)
                add_directory_line(out, &entries[i]);
        add_le(out, ZIP_END, 4);
        add_le(out, 0, 4); /* disks */
        add_le(out, n, 2);
        add_le(out, n, 2);
        add_le(out, out->n - 12 - start, 4);
        add_le(out, start, 4);
        add_le(out, 0, 2); /* comment */
}
