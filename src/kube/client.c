#include "kube/kube.h"

/*
 * A call goes through: rate limit -> credentials -> HTTP -> (wait, again) -> done. It is in exactly one of these
 * states, and its one timer belongs to the state.
 */
enum {
        RETRIES_MAX = 10,
        CONNECT_RETRIES_MAX = 2, /* a person waits for "connection refused" */
        ERROR_BODY_MAX = 64 * 1024,
        COUNTERS_MAX = 16,
};
#define BACKOFF_FIRST   (100 * USEC_PER_MS)
#define BACKOFF_MAX     (10 * USEC_PER_SEC)
#define TIMEOUT_DEFAULT (60 * USEC_PER_SEC)

struct counter {
        const char *method;
        int status;
        struct metric *metric;
};

struct kube {
        struct loop *loop;
        struct kube_auth *auth;
        struct http_client *http; /* NULL until the first credentials are there */
        char *server, *proxy, *user_agent, *host;
        uint64_t tls_generation;
        unsigned max_connections;
        double qps, burst, tokens;
        usec_t tokens_at;
        struct metrics *metrics;
        struct counter counters[COUNTERS_MAX]; /* the series in use, so that they need not be looked up */
        struct arena_pool arenas;              /* of calls */
        struct list calls;                     /* all but */
        struct list ending;                    /* those whose callback runs */
        struct list limited;                   /* waiting for a token, in order */
        struct timer limiter;
};

struct kube_call {
        struct kube *kube;
        struct list node, limited;
        struct kube_request req;
        struct arena arena; /* what was copied of the request */
        const char *target;
        unsigned attempts;
        bool renewed, waiting_auth;
        usec_t deadline;
        struct http_call *http;
        struct timer timer;
        void (*on_data)(void *arg, struct str chunk);
        bool streaming; /* the answer is a 200: data goes to the caller */
        int status;
        usec_t retry_after;
        struct buf error_body; /* streams: the body of a refusal */
        struct err pending;    /* an error to be told from the loop */
        kube_done done;
        void *arg;
};

static void call_start(struct kube_call *c);

/* ---- request line and headers */

struct verb {
        const char *method, *content_type;
        bool read;
};

static const struct verb verbs[] = {
        [KUBE_GET] = {"GET", NULL, true},
        [KUBE_LIST] = {"GET", NULL, true},
        [KUBE_WATCH] = {"GET", NULL, true},
        [KUBE_CREATE] = {"POST", "application/json", false},
        [KUBE_UPDATE] = {"PUT", "application/json", false},
        [KUBE_PATCH_JSON] = {"PATCH", "application/json-patch+json", false},
        [KUBE_PATCH_MERGE] = {"PATCH", "application/merge-patch+json", false},
        [KUBE_PATCH_STRATEGIC] = {"PATCH", "application/strategic-merge-patch+json", false},
        [KUBE_APPLY] = {"PATCH", "application/apply-patch+yaml", false},
        [KUBE_DELETE] = {"DELETE", "application/json", false},
        [KUBE_DELETE_COLLECTION] = {"DELETE", "application/json", false},
};

static void add_param(struct buf *b, const char *name, const char *value)
{
        if (!value)
                return;
        buf_addc(b, memchr(b->p, '?', b->n) ? '&' : '?');
        buf_adds(b, name);
        buf_addc(b, '=');
        buf_add_urlencoded(b, str_of(value));
}

static void add_number(struct buf *b, const char *name, unsigned value)
{
        char text[16];

        if (!value)
                return;
        snprintf(text, sizeof(text), "%u", value);
        add_param(b, name, text);
}

static const char *build_target(const struct kube_request *r, struct arena *a)
{
        _cleanup_(buf_done) struct buf b = BUF_INIT(64 * 1024);

        if (r->path)
                buf_adds(&b, r->path);
        else
                kube_path(&b, r->type, r->ns, r->name, r->subresource);
        add_param(&b, "watch", r->verb == KUBE_WATCH ? "1" : NULL);
        add_param(&b, "labelSelector", r->label_selector);
        add_param(&b, "fieldSelector", r->field_selector);
        add_number(&b, "limit", r->limit);
        add_param(&b, "continue", r->continue_token);
        add_param(&b, "resourceVersion", r->resource_version);
        add_param(&b, "resourceVersionMatch", r->resource_version_match);
        add_param(&b, "allowWatchBookmarks", r->bookmarks ? "true" : NULL);
        add_param(&b, "sendInitialEvents", r->send_initial_events ? "true" : NULL);
        add_number(&b, "timeoutSeconds", r->timeout_seconds);
        add_param(&b, "fieldManager", r->field_manager);
        add_param(&b, "force", r->force ? "true" : NULL);
        add_param(&b, "dryRun", r->dry_run ? "All" : NULL);
        return b.overflow ? NULL : arena_strndup(a, b.p, b.n);
}

/* ---- ends */

static const char *const requests_labels[] = {"code", "method", "host", NULL};
static const struct metric_family requests_family = {
        "rest_client_requests_total",
        "Number of HTTP requests, partitioned by status code, method, and host.",
        METRIC_COUNTER,
        requests_labels,
        NULL,
        0,
};

static void count(struct kube_call *c, int status)
{
        struct kube *k = c->kube;
        const char *method = verbs[c->req.verb].method;
        struct counter *n = k->counters, *end = n + COUNTERS_MAX - 1;
        char code[16] = "<error>";

        if (!k->metrics)
                return;
        while (n < end && n->metric && (n->method != method || n->status != status))
                n++;
        if (!n->metric || n->method != method || n->status != status) {
                if (status)
                        snprintf(code, sizeof(code), "%d", status);
                *n = (struct counter){
                        method, status,
                        metrics_get(k->metrics, &requests_family, (const char *[]){code, method, k->host})};
        }
        metric_add(n->metric, 1);
}

static void stop_waiting(struct kube_call *c)
{
        list_remove(&c->limited);
        if (c->waiting_auth)
                kube_auth_cancel(c->kube->auth, c);
        c->waiting_auth = false;
}

static void call_free(struct kube_call *c)
{
        list_remove(&c->node);
        timer_cancel(&c->timer);
        stop_waiting(c);
        if (c->http)
                http_call_cancel(c->http);
        buf_done(&c->error_body);
        if (c->kube)
                arena_pool_give(&c->kube->arenas, &c->arena);
        else
                arena_done(&c->arena);
        free(c);
}

static void call_done(struct kube_call *c, const struct kube_answer *answer, struct err *err)
{
        struct kube_answer none = {0};
        kube_done done = c->done;
        void *arg = c->arg;

        if (err)
                err_wrap(err, "%s %.*s", kube_verb_name(c->req.verb),
                         (int)strcspn(c->target ? c->target : "", "?"), c->target ? c->target : "");
        /* The answer may live in the call, so that goes only after the callback, which may have freed the client. */
        list_remove(&c->node);
        list_append(&c->kube->ending, &c->node);
        done(arg, answer ? answer : &none, err);
        call_free(c);
}

static void on_pending_error(struct timer *t)
{
        struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);

        call_done(c, NULL, &c->pending);
}

/* Errors found at once are told from the loop like all others. */
static void fail_later(struct kube_call *c)
{
        timer_init(&c->timer, c->kube->loop, on_pending_error);
        timer_after(&c->timer, 0);
}

static void on_late(struct timer *t)
{
        struct kube_call *c = CONTAINER_OF(t, struct kube_call, timer);

        stop_waiting(c);
        err_set(&c->pending, E_TIMEOUT, "timed out before it was sent");
        call_done(c, NULL, &c->pending);
}

/* For a token of the limit, or for credentials: not beyond its own time. */
static void wait_until_late(struct kube_call *c)
{
        timer_init(&c->timer, c->kube->loop, on_late);
        timer_at(&c->timer, c->deadline);
}

/* ---- again */

static void on_retry(struct timer *t)
{
        call_start(CONTAINER_OF(t, struct kube_call, timer));
}

static bool may_repeat(const struct kube_call *c, const struct err *err, usec_t retry_after)
{
        bool read = verbs[c->req.verb].read;

        if (c->on_data || c->attempts > RETRIES_MAX)
                return false;
        switch (err->code) {
        case E_CONNECT:
                return c->attempts <= CONNECT_RETRIES_MAX;
        case E_LOST:
        case E_TIMEOUT:
        case E_PROTOCOL:
        case E_SERVER:
                return read;
        case E_BUSY:
                return read || retry_after;
        default:
                return false;
        }
}

static bool repeat(struct kube_call *c, const struct err *err, usec_t retry_after)
{
        usec_t now = loop_now(c->kube->loop), wait;

        if (!may_repeat(c, err, retry_after))
                return false;
        wait = MIN(BACKOFF_FIRST << MIN(c->attempts - 1, 7u), BACKOFF_MAX);
        wait = MAX(rng_jitter(loop_rng(c->kube->loop), wait, 50), retry_after);
        if (usec_add(now, wait) >= c->deadline)
                return false;
        LOG_DEBUG(loop_log(c->kube->loop), "Repeating a request", F_STR("request", c->target), F_ERR(err),
                  F_USEC("after", wait));
        timer_init(&c->timer, c->kube->loop, on_retry);
        timer_after(&c->timer, wait);
        return true;
}

static bool renew(struct kube_call *c)
{
        if (!kube_auth_refused(c->kube->auth) || c->renewed || c->on_data)
                return false;
        c->renewed = true;
        timer_init(&c->timer, c->kube->loop, on_retry);
        timer_after(&c->timer, 0);
        return true;
}

/* ---- HTTP's callbacks */

static usec_t header_retry_after(const struct http_answer *answer)
{
        uint64_t seconds;

        if (!str_to_u64(http_header(&answer->headers, "Retry-After"), &seconds))
                return 0;
        return MIN(seconds, (uint64_t)3600) * USEC_PER_SEC;
}

static void refused(struct kube_call *c, int status, struct str body)
{
        struct kube_answer answer = {.status = status, .body = body, .retry_after = c->retry_after};
        struct kube_status why;
        struct err err = ERR_INIT;

        kube_status_error(&c->arena, status, body, c->req.verb, &why, &err);
        answer.retry_after = MAX(answer.retry_after, why.retry_after);
        if (err.code == E_AUTH && renew(c))
                return;
        if (repeat(c, &err, answer.retry_after))
                return;
        call_done(c, &answer, &err);
}

static void on_end(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct kube_call *c = arg;
        struct kube_answer ok = {0};
        struct err e;

        c->http = NULL;
        c->attempts++;
        count(c, err ? 0 : answer->status);
        if (err) {
                e = *err;
                if (!repeat(c, &e, 0))
                        call_done(c, NULL, &e);
                return;
        }
        if (!c->on_data) {
                c->status = answer->status;
                c->retry_after = header_retry_after(answer);
        }
        if (c->status < 200 || c->status > 299) {
                refused(c, c->status, c->on_data ? buf_str(&c->error_body) : answer->body);
                return;
        }
        ok.status = c->status;
        ok.body = c->on_data ? STR_NULL : answer->body;
        call_done(c, &ok, NULL);
}

static void on_head(void *arg, const struct http_answer *answer)
{
        struct kube_call *c = arg;

        c->status = answer->status;
        c->retry_after = header_retry_after(answer);
        c->streaming = answer->status == 200;
}

static void on_data(void *arg, struct str chunk)
{
        struct kube_call *c = arg;

        if (c->streaming)
                c->on_data(c->arg, chunk);
        else
                buf_add(&c->error_body, chunk.p, chunk.n);
}

/* ---- on its way */

static int ensure_http(struct kube *k, const struct kube_credentials *cred, struct err *err)
{
        struct http_client_config config = {
                .url = k->server,
                .proxy = k->proxy,
                .tls = cred->tls,
                .user_agent = k->user_agent,
                .max_connections = k->max_connections,
        };

        if (!k->http) {
                k->http = http_client_new(k->loop, &config, err);
                k->tls_generation = cred->tls_generation;
        } else if (k->tls_generation != cred->tls_generation) {
                http_client_set_tls(k->http, cred->tls);
                k->tls_generation = cred->tls_generation;
        }
        return k->http ? 0 : -1;
}

#define EVERYTHING    STR("application/json")
#define METADATA_ONLY STR("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json")
#define METADATA_LIST STR("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")

static struct str accept_of(const struct kube_request *r)
{
        if (!r->metadata_only)
                return EVERYTHING;
        return r->verb == KUBE_LIST ? METADATA_LIST : METADATA_ONLY;
}

static void send_http(struct kube_call *c, const struct kube_credentials *cred)
{
        static const struct http_handlers handlers = {
                .on_head = on_head, .on_data = on_data, .on_end = on_end};
        const struct verb *v = &verbs[c->req.verb];
        struct http_header headers[3];
        struct http_request r = {
                .method = v->method,
                .target = c->target,
                .headers = {headers, 0},
                .body = c->req.body,
                .stream = c->on_data != NULL,
                .timeout = usec_sub(c->deadline, loop_now(c->kube->loop)),
                .idle_timeout = c->req.idle_timeout,
                .may_send = c->req.may_send,
                .may_send_arg = c->req.may_send_arg,
        };

        headers[r.headers.n++] = (struct http_header){STR("Accept"), accept_of(&c->req)};
        if (cred->authorization)
                headers[r.headers.n++] = (struct http_header){STR("Authorization"),
                                                              str_of(cred->authorization)};
        if (c->req.body.p)
                headers[r.headers.n++] = (struct http_header){STR("Content-Type"), str_of(v->content_type)};
        c->http = http_start(c->kube->http, &r, &handlers, c);
}

static void on_auth_ready(void *arg)
{
        struct kube_call *c = arg;

        c->waiting_auth = false;
        call_start(c);
}

static void call_start(struct kube_call *c)
{
        struct kube_credentials cred = {0};
        int r;

        timer_cancel(&c->timer);
        if (loop_now(c->kube->loop) >= c->deadline) { /* in this very turn */
                wait_until_late(c);
                return;
        }
        r = kube_auth_get(c->kube->auth, &cred, on_auth_ready, c, &c->pending);
        c->waiting_auth = r == 0;
        if (r == 0) {
                wait_until_late(c);
                return;
        }
        if (r < 0 || ensure_http(c->kube, &cred, &c->pending) < 0) {
                fail_later(c);
                return;
        }
        send_http(c, &cred);
}

/* ---- rate limit: a token bucket; whoever finds it empty waits in line */

static void refill(struct kube *k)
{
        usec_t now = loop_now(k->loop);

        k->tokens = MIN(k->burst, k->tokens + k->qps * (double)usec_sub(now, k->tokens_at) / 1e6);
        k->tokens_at = now;
}

static void serve_limited(struct timer *t)
{
        struct kube *k = CONTAINER_OF(t, struct kube, limiter);
        struct list *node;

        refill(k);
        while (k->tokens >= 1 && (node = list_pop(&k->limited))) {
                k->tokens -= 1;
                call_start(CONTAINER_OF(node, struct kube_call, limited));
        }
        if (!list_empty(&k->limited))
                timer_after(&k->limiter, (usec_t)((1 - k->tokens) / k->qps * 1e6) + 1);
}

static void admit(struct kube_call *c)
{
        struct kube *k = c->kube;

        if (k->qps <= 0 || c->on_data) {
                call_start(c);
                return;
        }
        list_append(&k->limited, &c->limited);
        wait_until_late(c);
        if (!timer_pending(&k->limiter))
                serve_limited(&k->limiter);
}

/* ---- public */

static void copy_request(struct kube_call *c, const struct kube_request *r)
{
        c->req = *r;
        if (r->body.p)
                c->req.body.p = arena_strndup(&c->arena, r->body.p, r->body.n);
        c->target = build_target(r, &c->arena);
        /* The rest was used up by the target; nothing may look at borrowed strings later. */
        c->req.ns = c->req.name = c->req.subresource = c->req.path = c->req.field_manager = NULL;
        c->req.label_selector = c->req.field_selector = c->req.continue_token = NULL;
        c->req.resource_version = c->req.resource_version_match = NULL;
}

/* A name that is missing would make the path that of the whole collection: a delete of one would be a delete of all. */
static bool names_its_object(const struct kube_request *r)
{
        bool collection = r->verb == KUBE_LIST || r->verb == KUBE_WATCH || r->verb == KUBE_CREATE ||
                          r->verb == KUBE_DELETE_COLLECTION;

        if (r->path)
                return true;
        if (r->type->namespaced &&
            (!collection || r->verb == KUBE_CREATE || r->verb == KUBE_DELETE_COLLECTION) &&
            !(r->ns && r->ns[0]))
                return false;
        return collection || (r->name && r->name[0]);
}

static struct kube_call *call_new(struct kube *k, const struct kube_request *r,
                                  void (*data)(void *arg, struct str chunk), kube_done done, void *arg)
{
        struct kube_call *c = xcalloc(1, sizeof(*c));

        c->kube = k;
        list_init(&c->limited);
        list_init(&c->node);
        list_append(&k->calls, &c->node);
        timer_init(&c->timer, k->loop, on_retry);
        c->arena = arena_pool_take(&k->arenas);
        c->error_body = (struct buf)BUF_INIT(ERROR_BODY_MAX);
        c->on_data = data;
        c->done = done;
        c->arg = arg;
        copy_request(c, r);
        c->deadline = usec_add(loop_now(k->loop), r->timeout ? r->timeout : TIMEOUT_DEFAULT);
        if (!names_its_object(r)) {
                err_set(&c->pending, E_INTERNAL, "the request lacks a namespace or a name");
                fail_later(c);
        } else if (!c->target) {
                err_set(&c->pending, E_TOO_LARGE, "the request's path is too long");
                fail_later(c);
        } else {
                admit(c);
        }
        return c;
}

struct kube_call *kube_send(struct kube *k, const struct kube_request *request, kube_done done, void *arg)
{
        return call_new(k, request, NULL, done, arg);
}

struct kube_call *kube_stream(struct kube *k, const struct kube_request *request,
                              void (*data)(void *arg, struct str chunk), kube_done done, void *arg)
{
        return call_new(k, request, data, done, arg);
}

void kube_cancel(struct kube_call *call)
{
        if (call)
                call_free(call);
}

struct sync_call {
        bool done;
        int r;
        struct arena *arena;
        struct str body;
        struct err *err;
};

static void on_sync_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct sync_call *s = arg;

        s->done = true;
        if (err) {
                s->r = -1;
                if (s->err)
                        *s->err = *err;
                return;
        }
        s->body = str_n(arena_strndup(s->arena, answer->body.p, answer->body.n), answer->body.n);
}

int kube_do(struct kube *k, const struct kube_request *request, struct arena *a, struct str *ret_body,
            struct err *err)
{
        struct sync_call s = {.arena = a, .err = err};
        struct kube_call *call;

        call = kube_send(k, request, on_sync_done, &s);
        while (!s.done && loop_turn(k->loop, true))
                continue;
        if (!s.done) {
                kube_cancel(call); /* it would tell somebody who has gone */
                return err_set(err, E_CANCELED, "interrupted");
        }
        if (s.r == 0 && ret_body)
                *ret_body = s.body;
        return s.r;
}

char *kube_delete_options(struct arena *a, const char *uid, const char *resource_version,
                          const char *propagation)
{
        struct json *pre = NULL;

        if (uid || resource_version)
                pre = json_build(a, "{'uid': %p, 'resourceVersion': %p}", (void *)json_string(a, uid),
                                 (void *)json_string(a, resource_version));
        return json_print(a,
                          json_build(a,
                                     "{'apiVersion': 'v1', 'kind': 'DeleteOptions', 'propagationPolicy': %p, "
                                     "'preconditions': %p}",
                                     (void *)json_string(a, propagation), (void *)pre));
}

struct kube *kube_new(struct loop *loop, const struct kube_config *config, const struct kube_options *options,
                      struct err *err)
{
        static const struct kube_options defaults = {0};
        struct url url;
        struct kube *k;

        if (!options)
                options = &defaults;
        if (url_parse(str_of(config->server), &url, err) < 0) {
                err_wrap(err, "%s", config->source);
                return NULL;
        }
        if (config->insecure)
                LOG_WARN(loop_log(loop),
                         "TLS VERIFICATION IS OFF: anybody on the way can read and change what is sent",
                         F_STR("server", config->server), F_STR("from", config->source));
        k = xcalloc(1, sizeof(*k));
        k->loop = loop;
        k->auth = kube_auth_new(loop, config);
        k->server = xstrdup(config->server);
        k->proxy = xstrdup(config->proxy);
        k->host = xasprintf("%.*s:%u", STR_ARG(url.host), url.port);
        k->user_agent = xstrdup(options->user_agent ? options->user_agent : "sonde/" SONDE_VERSION);
        k->max_connections = options->max_connections;
        k->qps = options->qps;
        k->tokens = k->burst = MAX(options->burst, MAX(options->qps, 1u));
        k->tokens_at = loop_now(loop);
        k->metrics = options->metrics;
        list_init(&k->calls);
        list_init(&k->ending);
        list_init(&k->limited);
        timer_init(&k->limiter, loop, serve_limited);
        return k;
}

void kube_free(struct kube *k)
{
        struct list *node;

        if (!k)
                return;
        while ((node = list_pop(&k->calls)))
                call_free(CONTAINER_OF(node, struct kube_call, node));
        while ((node = list_pop(&k->ending)))
                CONTAINER_OF(node, struct kube_call, node)->kube = NULL;
        timer_cancel(&k->limiter);
        http_client_free(k->http);
        kube_auth_free(k->auth);
        arena_pool_done(&k->arenas);
        free(k->server);
        free(k->proxy);
        free(k->host);
        free(k->user_agent);
        free(k);
}

struct loop *kube_loop(struct kube *k)
{
        return k->loop;
}
