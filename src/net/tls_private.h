/*
 * tls_private.h - one TLS session on a non-blocking socket, behind tls.h.
 *
 * OpenSSL's own socket BIO writes without MSG_NOSIGNAL. Ignoring SIGPIPE instead would be inherited by every child
 * that is started, so the sessions have a small BIO of their own.
 */
#pragma once

#include "net/tls.h"

struct tls_session;

/* For FD, which stays the caller's. HOST is verified by clients; PEER ("host:port") is what error texts call it. */
struct tls_session *tls_session_new(struct tls *tls, int fd, const char *host, const char *peer,
                                    struct err *err) _must_check_;
void tls_session_free(struct tls_session *s);

enum { TLS_EOF = 0, TLS_AGAIN = -1, TLS_FAILED = -2 }; /* or a number of bytes */

/* 1: done. TLS_AGAIN, or TLS_FAILED with *err (E_TLS; E_CONNECT when the connection broke). */
int tls_handshake(struct tls_session *s, struct err *err);
bool tls_wants_write(const struct tls_session *s); /* after TLS_AGAIN */

/* TLS_EOF: the peer said good-bye. A connection that just ended is TLS_FAILED with E_LOST. */
long tls_read(struct tls_session *s, void *p, size_t n, struct err *err);
long tls_write(struct tls_session *s, const void *p, size_t n, struct err *err);
bool tls_has_pending(const struct tls_session *s); /* bytes that epoll does not know of */
void tls_goodbye(struct tls_session *s);           /* says that nothing will follow */
/* Servers: the peer spoke plain HTTP. */
bool tls_got_plain_http(const struct tls_session *s);
/* Servers: CN and O's of the verified client certificate, "CN\nO\nO"; false: none. */
bool tls_subject(const struct tls_session *s, struct buf *out);

DEFINE_CLEANUP_PTR(struct tls_session *, tls_session_free)
