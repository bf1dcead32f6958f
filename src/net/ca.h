/*
 * ca.h - a certificate authority and two certificates, made in memory; the authority's key is forgotten at once.
 */
#pragma once

#include "base/base.h"

struct ca {
        char *ca, *cert, *key;          /* PEM */
        char *client_cert, *client_key; /* nobody asks for them, but kubectl wants to have some credentials */
};

/* A server certificate NAME for localhost, 127.0.0.1, ::1 and HOST (an address or a name), signed by "NAME CA". */
int ca_make(const char *name, const char *host, unsigned days, struct ca *ret, struct err *err) _must_check_;
void ca_done(struct ca *ca);

DEFINE_CLEANUP_STRUCT(struct ca, ca_done)
