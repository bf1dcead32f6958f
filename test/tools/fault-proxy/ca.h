/*
 * ca.h - a certificate authority of one day and two certificates, made in memory.
 */
#pragma once

#include "base/base.h"

struct ca {
        char *ca, *cert, *key;          /* PEM */
        char *client_cert, *client_key; /* nobody asks for them, but kubectl wants to have some credentials */
};

/* A server certificate for localhost, 127.0.0.1, ::1 and HOST (an address or a name). */
int ca_make(const char *host, struct ca *ret, struct err *err) _must_check_;
void ca_done(struct ca *ca);

DEFINE_CLEANUP_STRUCT(struct ca, ca_done)
