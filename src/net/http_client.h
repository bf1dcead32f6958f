/*
 * http_client.h - a pool of connections to one origin.
 *
 * HTTP/1.1 with keep-alive: each connection carries one call at a time; calls wait in order for a free one or a new
 * one, up to max_connections. Streams (watches) have their own connections, outside that number, unless they are pooled. Every socket has
 * TCP_NODELAY, keepalive and TCP_USER_TIMEOUT, so a peer that vanished is noticed within `dead_after`. Redirects are
 * not followed: they come back as they are.
 *
 * Errors tell what may have happened: E_INVALID (the request itself is malformed), E_CONNECT and E_TLS: nothing was
 * sent, or nothing that was read. E_LOST, E_TIMEOUT, E_PROTOCOL, E_TOO_LARGE: the request may have taken effect
 * (E_TIMEOUT: unless !http_call_was_sent()). A kept-alive connection that the server closed before any byte of an answer is
 * E_LOST too, with http_call_was_reused(); only the caller knows whether a repetition is safe.
 */
#pragma once

#include "net/http.h"
#include "net/loop.h"
#include "net/tls.h"

struct addrinfo; /* of netdb.h, whose macros have names of anybody's */
struct http_client;
struct http_call;

struct http_client_config {
        const char *url;   /* origin: scheme, host, port; a path is put in front of every request's */
        const char *proxy; /* http://[user:password@]host:port for CONNECT, or NULL */
        struct tls *tls;   /* for https; borrowed a reference */
        const char *user_agent;
        unsigned max_connections;  /* 0: 8 */
        usec_t connect_timeout;    /* name, TCP, TLS; 0: 10 s */
        usec_t dead_after;         /* unacknowledged data or keepalives; 0: 30 s */
        usec_t idle_timeout;       /* keep an unused connection this long; 0: 55 s */
        struct http_limits limits; /* zeros: the defaults */
        bool stamps;               /* ask the kernel when bytes came; see http_call_received_at() */
        /* Of the host (with a proxy: of the proxy's), so that no connection needs a look-up; borrowed for the client's
         * life. NULL: looked up for every connection. */
        const struct addrinfo *addresses;
};

struct http_client *http_client_new(struct loop *loop, const struct http_client_config *config,
                                    struct err *err) _must_check_;
/* Open calls end without a callback. Safe inside callbacks. */
void http_client_free(struct http_client *c);
/* From now on use TLS (certificates were rotated); connections in use go on, idle ones are closed. */
void http_client_set_tls(struct http_client *c, struct tls *tls);

struct http_request {
        const char *method;
        const char *target; /* path and query, encoded */
        /* beside Host, User-Agent, Content-Length, Connection, Transfer-Encoding, Expect, Upgrade: not a caller's */
        struct http_headers headers;
        struct str body; /* p == NULL: none */
        bool stream;     /* own connection; no limit on the body; on_data gets it as it comes */
        bool pooled; /* of a stream: it waits for one of the pool's connections and gives it back at its end */
        usec_t timeout;      /* until the end (streams: until the headers of the answer); 0: 60 s */
        usec_t idle_timeout; /* streams: longest silence; 0: none */
        /* Asked right before the first byte leaves; false: E_CANCELED and nothing was sent. May be NULL. */
        bool (*may_send)(void *arg);
        void *may_send_arg;
};

struct http_answer {
        int status;
        struct http_headers headers; /* valid for the call of the callback */
        struct str body;             /* whole, for calls that are not streams */
};

struct http_handlers {
        /* Streams: the headers are there. May be NULL. */
        void (*on_head)(void *arg, const struct http_answer *answer);
        /* Streams: part of the body. A consumer that cannot take more calls http_call_pause(). */
        void (*on_data)(void *arg, struct str chunk);
        /*
         * Once, at the end. ERR NULL: complete. ANSWER NULL: no answer came; with ERR: what came before it broke.
         * The call is gone afterwards.
         */
        void (*on_end)(void *arg, const struct http_answer *answer, const struct err *err);
};

/* Copies what it needs of REQUEST. Never fails at once: all errors come through on_end. */
struct http_call *http_start(struct http_client *c, const struct http_request *request,
                             const struct http_handlers *handlers, void *arg);
/* Ends the call without a callback (its connection is closed). Safe inside its own callbacks; in on_end it does nothing. */
void http_call_cancel(struct http_call *call);
void http_call_pause(struct http_call *call, bool pause); /* streams; a pause does not count as silence */
bool http_call_was_reused(const struct http_call *call);  /* valid in on_end too */
bool http_call_was_sent(const struct http_call *call);    /* any byte of the request left */

/*
 * For those who measure; nanoseconds of clock_boot_ns(). Sent: right before the first byte was given to the kernel, on a
 * connection that was there; 0: not yet. Received (in on_head, on_data and on_end): when the bytes at hand came, by the
 * kernel's own stamp where it has one (`stamps`, no TLS), else when they were read (without `stamps`: now); RET_STAMPED
 * (may be NULL) says which. A stamp is that of the last segment of what was read at once: pieces of a body that came
 * together share it. 0: nothing came yet.
 */
uint64_t http_call_sent_at(const struct http_call *call);
uint64_t http_call_received_at(const struct http_call *call, bool *ret_stamped);
/* Makes connections until N are there or under way, within max_connections, so that no call has to wait for one. Those that
 * cannot be made are not told: the call that needs one will. */
void http_client_connect(struct http_client *c, unsigned n);
unsigned http_client_idle(const struct http_client *c); /* connections that wait for a call */

DEFINE_CLEANUP_PTR(struct http_client *, http_client_free)
