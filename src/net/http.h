/*
 * http.h - what HTTP client and server share: limits and headers.
 *
 * Parsing is llhttp's, strict: both Content-Length and Transfer-Encoding, conflicting lengths, bare CR, folded
 * headers, blanks before a colon and malformed chunk sizes are errors. So are NUL bytes, and headers over a limit.
 */
#pragma once

#include "base/base.h"

struct http_header {
        struct str name, value;
};

struct http_headers {
        const struct http_header *v;
        size_t n;
};

/* The first value of that name (ASCII case ignored), or STR_NULL. */
struct str http_header(const struct http_headers *headers, const char *name);

struct http_limits {
        size_t head;    /* bytes of the start line and all headers */
        size_t headers; /* how many */
        size_t body;    /* of a request (server) or of an answer that is not streamed (client) */
};

extern const struct http_limits HTTP_LIMITS_DEFAULT; /* 64 KiB, 100, 16 MiB */

const char *http_status_text(int status);

/* http://host:port/path, https://[::1]:6443. RET points into TEXT. */
struct url {
        bool tls;
        struct str host; /* without brackets */
        uint16_t port;   /* the scheme's if not given */
        struct str path; /* from the first '/', without '?' and what follows; may be empty */
        struct str user; /* "user:password" of a proxy URL, or empty */
};
int url_parse(struct str text, struct url *ret, struct err *err) _must_check_;
