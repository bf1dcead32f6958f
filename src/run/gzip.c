/*
 * gzip in memory, over zlib.
 */
#include <zlib.h>

#include "run/gzip.h"

enum { CHUNK = 16 * 1024, GZIP_WINDOW = 15 + 16 };

/*
 * Runs STEP (deflate or inflate) until it has nothing more to give; Z is set up, all of its input is there. A full buffer
 * is given one byte more: what ends there exactly does not need it.
 */
static int pump(z_stream *z, int (*step)(z_stream *, int), int flush, struct buf *out, struct err *err)
{
        char spare;
        int r;

        do {
                size_t room = MIN((size_t)CHUNK, out->max - out->n);
                char *to = room ? buf_reserve(out, room) : &spare;

                if (!to)
                        return err_set(err, E_TOO_LARGE, "more than %zu bytes", out->max);
                z->next_out = (unsigned char *)to;
                z->avail_out = (unsigned)MAX(room, (size_t)1);
                r = step(z, flush);
                if (room)
                        out->n += room - z->avail_out;
                else if (z->avail_out == 0)
                        return err_set(err, E_TOO_LARGE, "more than %zu bytes", out->max);
        } while (r == Z_OK);
        if (r != Z_STREAM_END || z->avail_in)
                return err_set(err, E_INVALID, "not gzip, not all of it, or more than that");
        return 0;
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
