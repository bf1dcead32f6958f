/*
 * ca.h - certificates made in memory: signed by an authority whose key is forgotten at once, or by themselves.
 */
#pragma once

#include "base/base.h"

enum { FINGERPRINT_MAX = 3 * 32 };

struct ca {
        char *ca, *cert, *key;          /* PEM; ca NULL: the certificate is its own */
        char *client_cert, *client_key; /* nobody asks for them, but kubectl wants to have some credentials */
        char fingerprint[FINGERPRINT_MAX]; /* SHA-256 of cert, "AB:CD:...", as browsers and openssl show it */
};

/* A server certificate NAME for localhost, 127.0.0.1, ::1 and HOST (an address or a name), signed by "NAME CA". */
int ca_make(const char *name, const char *host, unsigned days, struct ca *ret, struct err *err) _must_check_;
/* One that signs itself, for localhost, 127.0.0.1, ::1 and HOSTS (addresses, names, "*.DOMAIN"). */
int ca_make_own(const char *name, const char *const *hosts, size_t n_hosts, unsigned days, struct ca *ret,
                struct err *err) _must_check_;
void ca_done(struct ca *ca);

DEFINE_CLEANUP_STRUCT(struct ca, ca_done)
