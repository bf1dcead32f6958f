/*
 * dial.h - a TCP connection to a name: look-up on the worker, then one address after the other.
 *
 * Addresses of both families take turns; the next one is tried when one fails or after 250 ms (RFC 8305), and the
 * first that answers wins. Addresses given as such are not looked up. The time limit is the caller's.
 */
#pragma once

#include <netdb.h>

#include "net/loop.h"

struct dial;

/* FD: connected, non-blocking, now the caller's; -1: ERR says why (E_CONNECT). The dial is gone afterwards. */
typedef void dial_fn(void *arg, int fd, const struct err *err);

struct dial *dial_start(struct loop *loop, const char *host, uint16_t port, usec_t dead_after, dial_fn *fn,
                        void *arg);
/* The same with the addresses at hand; LIST is copied. */
struct dial *dial_start_list(struct loop *loop, const char *host, const struct addrinfo *list, uint16_t port,
                             usec_t dead_after, dial_fn *fn, void *arg);
void dial_cancel(struct dial *d); /* no callback; NULL is allowed */
