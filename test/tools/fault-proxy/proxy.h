/*
 * proxy.h - what the parts of the fault proxy share.
 *
 *   main.c      options, files, start and end
 *   relay.c     one request on its way to the API server, its answer on its way back
 *   lines.c     what happens to the body of an answer
 *   fault.c     which fault a request gets: script or seed
 *   upstream.c  connections to the API server, by user agent and kind of credentials
 *   stale.c     earlier answers
 *   report.c    the log for oracles, counts, /__faults
 */
#pragma once

#include "fault.h"
#include "kube/config.h"
#include "net/net.h"

enum { BODY_MAX = 64 << 20, STATUS_MAX = 600 };

struct stale;
struct upstream;

struct proxy {
        struct loop *loop;
        struct http_server *server;
        struct upstream *upstream;
        struct stale *stale;
        struct list relays;

        bool enabled;          /* faults are injected */
        struct script *script; /* or NULL */
        bool seeded;
        uint64_t seed;
        unsigned intensity;

        uint64_t requests, forwarded, errors; /* errors: of the API server's side */
        uint64_t counts[FAULT_KINDS_];
        uint64_t answers[STATUS_MAX]; /* of the faults "answer", by code */
        int log_fd;                   /* -1: none */
};

/* ---- relay.c */
void relay_start(struct proxy *p, struct http_exchange *ex);
void relay_free_all(struct proxy *p);

/* ---- upstream.c: the pools, made when they are first needed */
struct upstream *upstream_new(struct loop *loop, const struct kube_config *config, struct err *err)
        _must_check_;
void upstream_free(struct upstream *u);
/* AUTHORIZED: the client brought its own credentials, ours are not shown. NULL: it cannot be made. */
struct http_client *upstream_client(struct upstream *u, struct str user_agent, bool authorized,
                                    struct err *err);
/* The Authorization header for requests without one; NULL: none (a certificate does it). */
const char *upstream_authorization(const struct upstream *u);

/* ---- stale.c: bodies of answers at resourceVersion=0, bounded in number, size and age */
struct stale *stale_new(void);
void stale_free(struct stale *s);
/* Remembers an answer, unless one that is not too old is there. */
void stale_keep(struct stale *s, usec_t now, struct str target, struct str content_type, struct str body);
bool stale_find(struct stale *s, usec_t now, struct str target, struct str *ret_content_type,
                struct str *ret_body);

/* ---- report.c */
struct report {
        const char *event; /* "fault", "write", "error" */
        uint64_t number;
        const char *method, *target, *agent;
        const char *class;
        int status; /* 0: none, or not known */
        const char *fault;
        const char *detail; /* or NULL */
};
void report_write(struct proxy *p, const struct report *r);
/* Answers /__faults/...; false: not one of those. */
bool control(struct proxy *p, struct http_exchange *ex);
