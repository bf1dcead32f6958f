/*
 * internal.h - inside the web layer.
 *
 *   server.c     listening; who may ask at all: Host, Origin, token
 *   call.c       one request: from its endpoint to its answer
 *   fields.c     parameters and bodies, checked by tables
 *   endpoints.c  the table of all paths; openapi.c: the same as OpenAPI 3.1
 *   access.c     callers, and what they may see of the caches
 *   feed.c       the caches of all kinds, and runs as rows
 *   stream.c     server-sent events
 *   runs.c       the list of runs; detail.c: one run, its events, log and data, and what a person does with it
 *   history.c    finished runs; versus.c: side by side; queue.c: what waits
 *   session.c    the page's cookie; health.c: what needs no token
 *   dprofiler.h  the paths of dProfiler
 */
#pragma once

#include "kinds/kinds.h"
#include "web/web.h"

enum { BODY_MAX = 1 << 20, TOKEN_MAX = 16 << 10, PARAMS_MAX = 4, COOKIE_NAME_MAX = 24 };

struct call;
struct caller;
struct feed;

/* ---- fields.c */

enum field_type {
        FIELD_STRING,
        FIELD_INTEGER,
        FIELD_BOOLEAN,
        FIELD_OBJECT,
        FIELD_STRINGS, /* of a query: the parameter may be repeated */
        FIELD_OBJECTS,
};

struct field {
        const char *name; /* NULL ends a table */
        enum field_type type;
        bool required, nullable;
        int64_t least, most;   /* of integers, and of how many are in a list; most 0: no end; both 0: any */
        const char *otherwise; /* as JSON; NULL: it is left out */
        const char *const *words; /* those that are allowed; NULL ends; NULL: any */
        bool label;               /* of a string: empty, or a name as namespaces have */
        const char *help;
};

/* The members that TABLE (may be NULL) names, checked, with defaults. What is wrong is added to WRONG, a list as FastAPI has it. */
struct json *fields_of_body(const struct field *table, struct str text, struct json *wrong, struct arena *a);
struct json *fields_of_query(const struct field *table, struct str query, struct json *wrong,
                             struct arena *a);
/* One more complaint: about member NAME of WHERE ("body", "query"). */
void fields_complain(struct json *wrong, struct arena *a, const char *where, const char *name,
                     const char *type, const char *msg);

/* ---- endpoints.c */

struct endpoint {
        const char *method;
        const char *path;                 /* "/api/v1/runs/{resource}/{namespace}/{name}" */
        void (*serve)(struct call *call); /* answers now or later */
        const char *summary;              /* for people */
        const char *answer;               /* what comes back, as openapi.c calls it */
        const struct field *query, *body; /* NULL: none */
        int status;                       /* of success; 0: 200 */
        bool open;                        /* needs no token */
        bool plain;                       /* nor TLS, where that is spoken: probes and scrapers go without */
};

extern const struct endpoint ENDPOINTS[]; /* ended by one without a method */

/*
 * The endpoint of METHOD and PATH, with the parameters in it decoded, in the arena. NULL: *RET_ALLOW is what is allowed there
 * ("GET, POST"), or NULL where there is nothing.
 */
const struct endpoint *endpoint_find(struct str method, struct str path, const char *params[PARAMS_MAX],
                                     const char **ret_allow, struct arena *a);

/* openapi.c */
struct json *openapi_document(struct arena *a, const char *cookie);

/* ---- server.c */

struct web {
        struct web_config cfg;
        char *ns;
        struct loop *loop;
        struct kube_config bare;
        struct kube *kube; /* without credentials: only ever with a caller's token */
        struct http_server *server;
        struct tls *tls;
        struct timer reload; /* of the certificate */
        char *cert_file, *key_file;
        bool loopback;
        VEC(char *) hosts;
        struct feed *feed;
        struct map callers; /* by the hash of their token */
        struct timer sweep;
        struct list calls;
        struct list streams;
        struct timer heartbeat;
        struct http_text *metrics_text; /* the last that was told, NULL: none */
        usec_t metrics_at;
};

/* Whether the text of a Host header names us. */
bool server_host_ok(const struct web *w, struct str host);
/* The token of "Bearer X" or of the cookie; STR_NULL: there is none, or it cannot be one. */
struct str server_token(const struct http_headers *headers);
bool server_token_valid(struct str token);
/* The cookie's, where the request's Host is asked: with the port, if it has one. OUT is returned. */
const char *server_cookie_name(const struct http_headers *headers, char out[COOKIE_NAME_MAX]);

/* ---- certificate.c */
/* w->tls, or NULL where there is none to be. */
int certificate_begin(struct web *w, struct err *err) _must_check_;
void certificate_end(struct web *w);

/* ---- call.c */

struct call {
        struct list node;
        struct web *web;
        struct http_exchange *ex; /* NULL: the peer has gone; answers go nowhere */
        struct arena arena;
        const struct endpoint *endpoint;
        const char *params[PARAMS_MAX];
        struct json *query, *body; /* as their tables have them */
        struct caller *caller;     /* NULL at those that need none */
        void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err);
        void (*piece)(struct call *c, struct str piece);
        struct kube_call *pieces; /* that comes in pieces; NULL: none is under way */
        struct buf text;          /* what was kept of them; the endpoint sets its limit */
        void *state;              /* the endpoint's, in the arena */
        struct timer timer;
        struct defer over; /* it is answered, and goes */
};

void call_begin(struct web *w, struct http_exchange *ex, const struct endpoint *endpoint,
                const char *const params[PARAMS_MAX], struct arena *a, struct str token);
void call_free(struct call *c);

/* The answers; the call is over then. */
void call_reply(struct call *c, int status, const struct json *body);
void call_reply_text(struct call *c, int status, const char *content_type, struct str text);
void call_reply_shared(struct call *c, const char *content_type, struct http_text *text);
/* {"detail": TEXT} */
void call_fail(struct call *c, int status, const char *fmt, ...) _printf_(3, 4);
/* 422, with one complaint about a member. */
void call_fail_field(struct call *c, const char *where, const char *name, const char *msg);
/* What the API server has said to the caller, in its words. */
void call_fail_kube(struct call *c, const struct kube_answer *answer, const struct err *err);

/* Sends it as the caller; NEXT with what came of it. */
void call_kube(struct call *c, const struct kube_request *request,
               void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err));
/* The same for an answer that may be long: PIECE with each part of it, then NEXT. Once only, and not repeated. */
void call_kube_pieces(struct call *c, const struct kube_request *request,
                      void (*piece)(struct call *c, struct str piece),
                      void (*next)(struct call *c, const struct kube_answer *answer, const struct err *err));
/* The object in an answer, in the call's arena; NULL: it is none, and that is answered. */
struct json *call_object(struct call *c, const struct kube_answer *answer);
/* The {resource} of the path; NULL: there is no such kind, and that is answered. */
const struct kind *call_kind(struct call *c);

/* ---- access.c */

/* Something that waits until it is known what a caller may see. */
struct ask {
        struct web *web;
        struct caller *caller;
        unsigned kinds; /* bits */
        const char *ns; /* NULL: all */
        /* Which namespaces are asked for, by ask_want(), where not all may be listed; NULL: those of the caches. */
        void (*each)(struct ask *ask);
        unsigned waits; /* reviews that are to come */
        unsigned rounds;
        bool asking;
        int status; /* 0: all is known; else the HTTP status of what went wrong */
        char detail[256];
        void (*done)(struct ask *ask);
};

struct caller *caller_get(struct web *w, struct str token); /* one more holder */
struct caller *caller_ref(struct caller *c);
void caller_unref(struct caller *c);
const char *caller_token(const struct caller *c);
struct list *caller_streams(struct caller *c);
struct map *caller_late(struct caller *c); /* what stream.c waits to tell it */
void callers_done(struct web *w);

/* Asks what is not known; ASK is the caller's to keep until DONE, which may come at once. */
void caller_ask(struct ask *ask);
/* In `each`: this kind in this namespace is wanted to be known. */
void ask_want(struct ask *ask, size_t kind, const char *ns);
/* By what was told in the last 10 s: in DONE all that was asked for is. */
bool caller_sees(const struct caller *c, size_t kind, const char *ns); /* ns NULL: all */
/* Above 0: yes. 0: no. Below 0: it is not known any more, ask. */
int caller_may(struct caller *c, size_t kind, const char *ns);
/* Checks that the token is one at all. DONE with status 0 or 401, ...; kinds and ns of ASK are not looked at. */
void caller_check(struct ask *ask);

/* ---- feed.c */

struct row {
        char *rv;
        enum summary_life life;
        usec_t created;
        size_t n;
        char text[]; /* the run as JSON */
};

/* Which runs somebody wants to see. */
struct run_filter {
        const struct kind *kind; /* NULL: all */
        const char *ns;          /* NULL: all */
        int life;                /* below 0: all */
        struct label_selector labels;
};

struct feed *feed_new(struct web *w);
void feed_free(struct feed *f);
/* The cache of the I-th kind. */
struct cache *feed_cache(const struct feed *f, size_t kind);
size_t feed_index(const struct kind *kind);
bool feed_ready(const struct feed *f, struct buf *why);
/* Borrowed until the object changes. */
const struct row *feed_row(struct feed *f, size_t kind, const struct cache_entry *e);
/* Kind, namespace; then life and labels, for which the object may have to be looked into. */
bool feed_concerns(const struct run_filter *filter, size_t kind, const char *ns);
bool feed_passes(struct feed *f, const struct run_filter *filter, size_t kind, const struct cache_entry *e);
/* [run, ...] of what passes and CALLER sees, the newest first. */
void feed_list(struct feed *f, const struct run_filter *filter, const struct caller *caller, struct buf *out);

/* What metrics_write() has not written of the requests. */
void feed_write_objects(struct feed *f, struct buf *out);

/* ---- stream.c: a run has changed, or is gone */
void stream_changed(struct web *w, size_t kind, const char *ns, const char *name);
void stream_gone(struct web *w, size_t kind, const char *ns, const char *name, const char *uid);
void streams_init(struct web *w);
void streams_done(struct web *w);

/* ---- runs.c */

/* Reads the query's filter, asks what the caller may see of that, and goes on with NEXT; what is wrong is answered. */
void runs_ask(struct call *c, void (*next)(struct call *c, const struct run_filter *filter));

/* ---- what the table names */
void serve_health(struct call *c);
void serve_ready(struct call *c);
void serve_metrics(struct call *c);
void serve_openapi(struct call *c);
void serve_session_begin(struct call *c);
void serve_session_end(struct call *c);
void serve_session(struct call *c);
void serve_runs(struct call *c);
void serve_runs_stream(struct call *c);
void serve_run(struct call *c);
void serve_run_events(struct call *c);
void serve_run_log(struct call *c);
void serve_run_data(struct call *c);
void serve_run_steer(struct call *c);
void serve_run_again(struct call *c);
void serve_history(struct call *c);
void serve_trend(struct call *c);
void serve_queue(struct call *c);
void serve_job_create(struct call *c);
void serve_jobs(struct call *c);
void serve_job(struct call *c);
void serve_job_results(struct call *c);
void serve_job_delete(struct call *c);
void serve_ml_selection(struct call *c);
void serve_ml_tuning(struct call *c);
void serve_ml_training(struct call *c);
void serve_ml_frameworks_compared(struct call *c);
void serve_ml_frameworks(struct call *c);
void serve_ml_supported(struct call *c);
void serve_ml_cleanup(struct call *c);
void serve_ml_summary(struct call *c);
void serve_compare_create(struct call *c);
void serve_algorithms(struct call *c);
void serve_workers(struct call *c);
void serve_worker(struct call *c);
void serve_uses(struct call *c);
void serve_compare(struct call *c);
