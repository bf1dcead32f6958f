#include "kube/squeeze.h"

#include <zlib.h>

/* No gzip header; a window for a dictionary and a text of usual length, and tables that are quick to set up. */
enum { WINDOW = -14, TABLES = 7, LEVEL = 4, TEXT_MAX = 64 << 10, DICTIONARY_MAX = 12 << 10, WORTH_MIN = 256 };

void squeeze_free(struct squeeze *s)
{
        if (!s)
                return;
        for (size_t i = 0; i < SQUEEZE_DICTIONARIES; i++)
                free((char *)s->dictionaries[i].p);
        buf_done(&s->out);
        free(s);
}

/* Into `out`, if it fits below MAX bytes. */
static bool deflate_with(struct squeeze *s, struct str dictionary, struct str text, size_t max)
{
        z_stream z = {.next_in = (unsigned char *)text.p, .avail_in = (unsigned)text.n};
        int r;

        if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW, TABLES, Z_DEFAULT_STRATEGY) != Z_OK)
                return false;
        buf_clear(&s->out);
        z.next_out = (unsigned char *)buf_reserve(&s->out, max);
        z.avail_out = (unsigned)max;
        r = deflateSetDictionary(&z, (const unsigned char *)dictionary.p, (unsigned)dictionary.n);
        if (r == Z_OK)
                r = deflate(&z, Z_FINISH);
        s->out.n = max - z.avail_out;
        deflateEnd(&z);
        return r == Z_STREAM_END;
}

static void add_dictionary(struct str *dictionary, struct str text)
{
        size_t n = MIN(text.n, (size_t)DICTIONARY_MAX);

        *dictionary = str_n(xmemdup(text.p, n), n);
}

unsigned squeeze_text(struct squeeze *s, struct str text, struct str *ret)
{
        if (text.n < WORTH_MIN || text.n > TEXT_MAX)
                return 0;
        s->out.max = TEXT_MAX;
        for (unsigned i = 0; i < SQUEEZE_DICTIONARIES; i++) {
                bool own = !s->dictionaries[i].p;

                if (own)
                        add_dictionary(&s->dictionaries[i], text);
                if (deflate_with(s, s->dictionaries[i], text, text.n / 2)) {
                        *ret = buf_str(&s->out);
                        return i + 1;
                }
                if (own) { /* not even by what it begins with itself: the next one would be no better */
                        free((char *)TAKE_PTR(s->dictionaries[i].p));
                        return 0;
                }
        }
        return 0;
}

struct str squeeze_expand(struct squeeze *s, struct str squeezed, unsigned dictionary, size_t n)
{
        const struct str d = s->dictionaries[dictionary - 1];
        z_stream z = {.next_in = (unsigned char *)squeezed.p, .avail_in = (unsigned)squeezed.n};
        int r;

        buf_clear(&s->out);
        s->out.max = MAX(s->out.max, n);
        z.next_out = (unsigned char *)buf_reserve(&s->out, n);
        z.avail_out = (unsigned)n;
        r = inflateInit2(&z, WINDOW);
        if (r == Z_OK)
                r = inflateSetDictionary(&z, (const unsigned char *)d.p, (unsigned)d.n);
        if (r == Z_OK)
                r = inflate(&z, Z_FINISH);
        inflateEnd(&z);
        if (r != Z_STREAM_END || z.avail_out) /* it is our own memory that is not what it was */
                abort();
        s->out.n = n;
        return buf_str(&s->out);
}
