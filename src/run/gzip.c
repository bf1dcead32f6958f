/*
 * gzip in memory, over zlib.
 */
#include <zlib.h>

#include "run/gzip.h"

enum { CHUNK = 16 * 1024, GZIP_WINDOW = 15 + 16 };

/* Runs STEP (deflate or inflate) until it has nothing more to give; Z is set up, all of its input is there. */
static int pump(z_stream *z, int (*step)(z_stream *, int), int flush, struct buf *out, struct err *err)
{
        int r;

        do {
                char *to = buf_reserve(out, MIN((size_t)CHUNK, out->max - out->n));

                if (!to || out->n == out->max)
                        return err_set(err, E_TOO_LARGE, "more than %zu bytes", out->max);
                z->next_out = (unsigned char *)to;
                z->avail_out = (unsigned)MIN((size_t)CHUNK, out->max - out->n);
                r = step(z, flush);
                out->n = (size_t)((char *)z->next_out - out->p);
        } while (r == Z_OK);
        return r == Z_STREAM_END ? 0 : err_set(err, E_INVALID, "not gzip, or not all of it");
}

int gzip_add(struct buf *out, struct str data, struct err *err)
{
        z_stream z = {.next_in = (unsigned char *)data.p, .avail_in = (unsigned)data.n};
        int r;

        if (data.n > UINT32_MAX)
                return err_set(err, E_TOO_LARGE, "more than 4 GiB");
        if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
                return err_set(err, E_INTERNAL, "zlib refuses to start");
        r = pump(&z, deflate, Z_FINISH, out, err);
        deflateEnd(&z);
        return r;
}

int gunzip_add(struct buf *out, struct str data, struct err *err)
{
        z_stream z = {.next_in = (unsigned char *)data.p, .avail_in = (unsigned)data.n};
        int r;

        if (data.n > UINT32_MAX)
                return err_set(err, E_TOO_LARGE, "more than 4 GiB");
        if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
                return err_set(err, E_INTERNAL, "zlib refuses to start");
        r = pump(&z, inflate, Z_NO_FLUSH, out, err);
        inflateEnd(&z);
        return r;
}
