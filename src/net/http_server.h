/*
 * http_server.h - listening, requests, answers and endless streams.
 *
 * A request is handed over when it is complete (its body is bounded). It is answered now or later, whole or as a
 * chunked stream; a stream that its reader does not drain is cut when `backlog` bytes wait behind its first piece (which
 * may be as large as it has to be). A text that many ask for is kept once (http_reply_shared). Slow, idle and too many
 * clients are bounded: header_timeout, idle_timeout, max_connections (the next one is answered 503 and closed; with TLS
 * just closed). A peer that ends its side of the connection while a handler still owes it an answer has gone.
 *
 * Answers without a handler: 400 (malformed, or two ways to tell the length), 408, 413, 431, 503. Names and values of
 * headers that could forge other headers are left out of an answer. All of it may be called inside callbacks.
 */
#pragma once

#include "net/http.h"
#include "net/loop.h"
#include "net/tls.h"

struct http_server;
struct http_exchange; /* one request and its answer */
struct http_text;     /* an answer's body that others have, too */

struct http_server_config {
        const char *
                listen; /* "127.0.0.1:8081", "[::]:8443", ":8080" (all), "unix:/path", port 0: any free one */
        struct tls *tls; /* NULL: plain */
        bool or_plain;   /* with TLS: those who do without are served too; http_is_plain() tells them apart */
        struct http_limits limits;
        unsigned max_connections; /* 0: 1024 */
        usec_t header_timeout;    /* from the first byte to a complete request; 0: 10 s */
        usec_t idle_timeout;      /* between requests; 0: 120 s */
        size_t backlog;           /* of one stream; 0: 4 MiB */
        void (*on_request)(void *arg, struct http_exchange *ex);
        void *arg;
};

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    struct err *err) _must_check_;
/* Stops listening and closes every connection; on_close of open exchanges is not called. */
void http_server_free(struct http_server *s);
/* Stops listening; open exchanges may end, connections close after them. */
void http_server_drain(struct http_server *s);
uint16_t http_server_port(const struct http_server *s);
/* Uses TLS for new connections (the certificate was rotated). */
void http_server_set_tls(struct http_server *s, struct tls *tls);

/* ---- the request; all borrowed from the exchange */
struct str http_method(const struct http_exchange *ex);
struct str http_path(const struct http_exchange *ex);  /* as sent, still encoded, without the query */
struct str http_query(const struct http_exchange *ex); /* after '?', may be empty */
const struct http_headers *http_request_headers(const struct http_exchange *ex);
struct str http_body(const struct http_exchange *ex);
struct loop *http_loop(const struct http_exchange *ex);
/* Not through TLS: whatever it tells, others may have read. */
bool http_is_plain(const struct http_exchange *ex);
/* CN and O's of a verified client certificate, "CN\nO\nO", or STR_NULL. */
struct str http_client_subject(const struct http_exchange *ex);

/* Decoded value of a query parameter, in the arena; NULL: not there (or not valid UTF-8). */
const char *http_query_param(const struct http_exchange *ex, const char *name, struct arena *a);
/* The next parameter of a query, decoded, in the arena; a value that is not valid UTF-8 is NULL. False: there is none. */
bool http_query_next(struct str *query, struct arena *a, const char **ret_name, const char **ret_value);
/* Decodes %XX of one path segment; NULL: malformed or with a NUL. */
char *url_decode(struct str s, struct arena *a);

/* ---- the answer; one of the two ways, and then the exchange is the server's again */
void http_reply(struct http_exchange *ex, int status, const char *content_type, struct str body);
void http_reply_headers(struct http_exchange *ex, int status, const struct http_headers *headers,
                        struct str body);
/* A text for many answers: each sends from it as its peer takes it, and holds it until then. TEXT is taken. */
struct http_text *http_text_new(struct buf *text);
struct http_text *http_text_ref(struct http_text *t);
void http_text_unref(struct http_text *t);
void http_reply_shared(struct http_exchange *ex, int status, const struct http_headers *headers,
                       struct http_text *text);

/* A chunked answer. ON_CLOSE (once) says that the peer has gone or was cut; after http_stream_end() it is not called. */
void http_stream_start(struct http_exchange *ex, int status, const struct http_headers *headers,
                       void (*on_close)(void *arg), void *arg);
void http_stream_write(struct http_exchange *ex, struct str data); /* sent at the end of the loop turn */
/* Sends now what was written, as far as the kernel takes it. */
void http_stream_flush(struct http_exchange *ex);
void http_stream_end(struct http_exchange *ex);
void http_stream_abort(struct http_exchange *ex); /* closes in the middle */
/* For answers that take long: called once when the peer has gone before the answer; the exchange is then gone. */
void http_on_abandon(struct http_exchange *ex, void (*fn)(void *arg), void *arg);

DEFINE_CLEANUP_PTR(struct http_server *, http_server_free)
