/*
 * http_private.h - what HTTP client and server share behind http.h: one parser of messages.
 *
 * The parser is llhttp plus what llhttp lets pass: folded headers, bare line feeds in the start line, empty names,
 * versions other than 1.0 and 1.1, transfer codings other than exactly one "chunked", and endless chunk extensions
 * or trailers. It collects the head (start line's target, headers) and hands the body on; interim answers (1xx) are
 * swallowed here.
 */
#pragma once

#include <llhttp.h>

#include "net/http.h"

struct http_limits http_limits_or_default(const struct http_limits *given);

bool http_is_token(struct str s);  /* method or header name */
bool http_is_value(struct str s);  /* header value: no control characters */
bool http_is_target(struct str s); /* no blanks, nothing outside ASCII */
char *http_percent_decode(struct str s, bool plus_is_blank,
                          struct arena *a); /* NULL: malformed or with a NUL */

struct http_head {
        struct buf text;       /* the target, then names and values */
        struct http_header *v; /* while parsing the pointers are offsets into text */
        size_t n, cap;
        size_t target; /* length */
};

void http_head_done(struct http_head *h);

enum http_parse {
        PARSE_MORE,    /* all bytes used, the message goes on */
        PARSE_DONE,    /* the message is complete */
        PARSE_PAUSED,  /* a callback asked to; feed the rest later */
        PARSE_STOPPED, /* a callback asked to */
        PARSE_BAD,     /* *err says why: E_PROTOCOL, or E_TOO_LARGE for what is over a limit */
};

enum http_verdict { GO_ON, PAUSE, STOP };

struct http_parser;

struct http_parser_ops {
        bool response;
        /* The head is complete. May set p->no_body. On STOP the callback has set *p->err or does not care. */
        enum http_verdict (*on_head)(struct http_parser *p);
        enum http_verdict (*on_body)(struct http_parser *p, struct str data);
};

struct http_parser {
        llhttp_t ll;
        const struct http_parser_ops *ops;
        const struct http_limits *limits;
        struct http_head head;
        struct err *err; /* while feeding */
        size_t taken;    /* bytes of the head; after it, bytes since the last of the body */
        uint8_t scan;
        bool in_value, head_seen, no_body, body_came, complete, paused, keep_alive;
};

/* LIMITS and OPS are borrowed. */
void http_parser_init(struct http_parser *p, const struct http_parser_ops *ops,
                      const struct http_limits *limits);
void http_parser_done(struct http_parser *p);
void http_parser_reset(struct http_parser *p); /* for the next message; keeps the head's memory */

enum http_parse http_parser_feed(struct http_parser *p, struct str data, size_t *ret_used, struct err *err);
/* The peer will send no more. PARSE_DONE: that was the end of the body. */
enum http_parse http_parser_eof(struct http_parser *p, struct err *err);

static inline struct http_headers http_parser_headers(const struct http_parser *p)
{
        return (struct http_headers){.v = p->head.v, .n = p->head.n};
}
