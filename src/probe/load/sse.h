/*
 * sse.h - server-sent events, cut out of a stream of bytes.
 *
 * Bytes come as the network cuts them: in single ones, with half a character or half a line at the end, with several
 * events at once. An event is given away when its blank line is there, as the text of its `data` lines joined by
 * newlines; comments, `event`, `id` and `retry` are passed over. Lines end with LF, CRLF or CR. The text is valid for
 * the call only and is not checked for UTF-8: that is the reader of the JSON in it.
 */
#pragma once

#include "base/base.h"

enum { SSE_EVENT_MAX = 1 << 20 };

struct sse {
        struct buf line; /* begun, when it came in pieces */
        struct buf data; /* of the event under way */
        bool any, cr, bom;
};

void sse_init(struct sse *s);
void sse_done(struct sse *s);
void sse_reset(struct sse *s); /* for the next stream; keeps its memory */
/* ON_EVENT below 0 ends it; so does an event of more than SSE_EVENT_MAX bytes. */
int sse_feed(struct sse *s, struct str bytes, int (*on_event)(void *arg, struct str data, struct err *err),
             void *arg, struct err *err) _must_check_;
/* The stream is over: an event that was not ended is an error, as the standard discards it. */
int sse_end(const struct sse *s, struct err *err) _must_check_;

DEFINE_CLEANUP_STRUCT(struct sse, sse_done)
