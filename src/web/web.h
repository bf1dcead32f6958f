/*
 * web - the REST API, the live stream and the dashboard.
 *
 * Served by the operator (`sonde operator --listen`), by a Deployment of its own (`--api-only`) or by the embedded engine
 * (`sonde up`), from one place: the same custom resources that kubectl sees. docs/api.md has every path and shape.
 *
 *   /                            the pages (sources in web/, embedded in the binary)
 *   /health /ready /metrics      without a token
 *   /api/v1/session              POST {token}: an HttpOnly, SameSite=Strict cookie for the page; DELETE ends it
 *   /api/v1/runs[/...]           runs of every kind as rows (kinds/summary.h), one run with events, log and data; controls
 *   /api/v1/runs/stream          server-sent events: every change of every run the caller may see
 *   /api/v1/history, queue, compare
 *   /api/v1/jobs, ml, compare, workers, metrics, algorithms      the paths of dProfiler's API, on the same resources
 *   /api/v1/openapi.json         all of it, OpenAPI 3.1
 *
 * One table (endpoints.c) has every path, its parameters and its body: requests are routed and checked by it, and the OpenAPI
 * text is written from it.
 *
 * Who may. The layer has no rights of its own to give away. Every read and write for a caller is made with the caller's own
 * token, by a client that has no credentials (not even a certificate); what is in a cache is served after the API server has
 * said, in a SelfSubjectAccessReview made with that token, that the caller may list that kind in that namespace (remembered
 * for 10 s). No TokenReview, no impersonation.
 *
 * What it refuses: a Host that is not one of its own, an Origin that is not its Host's, a body above 1 MiB, a request without
 * a token outside the first two lines, more connections than it has been given. An address that others can reach has TLS,
 * unless it is told that somebody else does that; beside TLS only the second line is told in plain.
 *
 * What it must not do: keep state that is not in an object or in the history; load anything from another host; say "running"
 * where there is no data; log or echo a token.
 */
#pragma once

#include "history/history.h"
#include "kube/kube.h"
#include "operator/operator.h"
#include "web/assets.h"

struct web;

/* Descriptors that a process needs for all connections, those to the API server and files: see fd_allow(). */
enum { WEB_CONNECTIONS = 4096, WEB_DESCRIPTORS = 2 * WEB_CONNECTIONS };

struct web_config {
        struct loop *loop;
        const struct kube_config *server; /* the API server; nothing of its credentials is used for callers */
        struct kube *kube;                /* our own client, for caches that the operator does not have */
        struct operator* op;              /* NULL: all caches are our own (--api-only); outlives this */
        struct history *history;          /* NULL: none; outlives this */
        struct metrics *metrics;          /* may be NULL */
        const char *ns;                   /* the only namespace that is served; NULL: all */
        const char *listen;               /* as http_server's */
        const char *cert_file,
                *key_file;        /* TLS: PEM, read again every minute; NULL: our own, none on loopback */
        bool plain;               /* without TLS on an address that others can reach: a proxy does it */
        const char *const *hosts; /* names that it is called by beside its addresses; "*.example.com" */
        size_t n_hosts;
        unsigned max_connections; /* 0: WEB_CONNECTIONS */
};

struct web *web_new(const struct web_config *config, struct err *err) _must_check_;
/* Before the operator and the history; streams are cut. */
void web_free(struct web *w);
uint16_t web_port(const struct web *w);
bool web_has_tls(const struct web *w);
/* Whether only this machine can reach an address to listen on. */
bool web_is_loopback(const char *listen);

DEFINE_CLEANUP_PTR(struct web *, web_free)
