/*
 * Server-sent events: however a stream is cut into chunks, the same events come out of it, and they are those that a
 * simple reading of the whole text by the standard's words gives.
 *
 * The first byte chooses the cutting, the rest is the stream.
 */
#include "probe/load/sse.h"
#include "fuzz/fuzz.h"

/* All events of a stream, each with its length before it, and how it ended. */
struct outcome {
        struct buf events;
        bool unfinished;
};

static int collect(void *arg, struct str data, struct err *err)
{
        struct buf *events = arg;

        buf_printf(events, "%zu:", data.n);
        buf_addstr(events, data);
        return 0;
}

/* Cuts STREAM into chunks of 1 to STEP bytes, by a simple generator. STEP 0: one chunk. */
static void run(struct outcome *o, struct sse *s, struct str stream, uint32_t step)
{
        uint32_t random = step;
        struct err err = ERR_INIT;

        *o = (struct outcome){.events = BUF_INIT(SIZE_MAX)};
        while (stream.n) {
                /* Memory of its own, so that a look beyond the chunk is seen. */
                size_t n = step ? MIN(stream.n, (size_t)(1 + (random >> 16) % step)) : stream.n;
                _cleanup_(free_ptr) char *chunk = xmemdup(stream.p, n);

                random = random * 1664525u + 1013904223u;
                REQUIRE(sse_feed(s, str_n(chunk, n), collect, &o->events, &err) == 0);
                stream = str_n(stream.p + n, stream.n - n);
        }
        o->unfinished = sse_end(s, &err) < 0;
        sse_reset(s);
}

/* The standard, line by line: 9.2.6 of HTML. */
static void read_whole(struct outcome *o, struct str stream)
{
        _cleanup_(buf_done) struct buf data = BUF_INIT(SIZE_MAX);
        size_t at = 0;

        *o = (struct outcome){.events = BUF_INIT(SIZE_MAX)};
        if (str_has_prefix(stream, STR("\xEF\xBB\xBF")))
                at = 3;
        while (at < stream.n) {
                size_t end = at;
                struct str line, field;

                while (end < stream.n && stream.p[end] != '\r' && stream.p[end] != '\n')
                        end++;
                line = str_n(stream.p + at, end - at);
                if (end == stream.n) {
                        o->unfinished = line.n && line.p[0] != ':';
                        break;
                }
                at = end + (stream.p[end] == '\r' && end + 1 < stream.n && stream.p[end + 1] == '\n' ? 2 : 1);
                if (line.n == 0) {
                        if (data.n)
                                collect(&o->events, str_n(data.p, data.n - 1), NULL);
                        buf_clear(&data);
                        continue;
                }
                field = str_split(&line, ':');
                if (!str_eq(field, STR("data")))
                        continue;
                if (line.n && line.p[0] == ' ')
                        line = str_n(line.p + 1, line.n - 1);
                buf_addstr(&data, line);
                buf_addc(&data, '\n');
        }
        o->unfinished = o->unfinished || data.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(sse_done) struct sse s;
        struct outcome expected, got;
        struct str stream;

        sse_init(&s);
        if (size == 0)
                return 0;
        stream = str_n((const char *)data + 1, size - 1);
        read_whole(&expected, stream);
        for (unsigned step = 0; step < 3; step++) {
                run(&got, &s, stream, step < 2 ? step : 2u + data[0]);
                REQUIRE(str_eq(buf_str(&got.events), buf_str(&expected.events)));
                /* half a byte order mark, or a comment behind it, is no event under way to the standard alone */
                REQUIRE(got.unfinished == expected.unfinished || str_has_prefix(stream, STR("\xEF\xBB\xBF")));
                buf_done(&got.events);
        }
        buf_done(&expected.events);
        return 0;
}
