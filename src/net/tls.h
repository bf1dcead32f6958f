/*
 * tls.h - contexts and verification; TLS 1.2 and later, verification always on.
 *
 * Certificates and keys come from memory, never through a temporary file. A client verifies the chain and the name
 * (or the address) it was told; the errors say which of the two failed, and for what name. A server with a CA asks for
 * client certificates but does not demand them; one that does not verify ends the handshake. `insecure` exists for
 * --insecure-skip-tls-verify; whoever sets it has warned the person already.
 */
#pragma once

#include "base/base.h"

struct tls; /* a context: reference-counted, shared by connections */

struct tls_config {
        struct str ca; /* PEM bundle; empty: the system's (clients), no client certificates (servers) */
        struct str cert, key;    /* PEM; both or none */
        const char *server_name; /* to verify, in place of the host connected to */
        bool server;
        bool insecure; /* clients: accept any certificate */
};

struct tls *tls_new(const struct tls_config *config, struct err *err) _must_check_;
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls);

/* SHA-256 in lower-case hex; here because OpenSSL is. */
enum { SHA256_HEX_MAX = 65 };
void sha256_hex(struct str data, char out[SHA256_HEX_MAX]);
/* Of all that FD still has to give, and how many bytes that were; -1: it could not be read. */
int sha256_fd_hex(int fd, uint64_t *ret_size, char out[SHA256_HEX_MAX]) _must_check_;

DEFINE_CLEANUP_PTR(struct tls *, tls_unref)
