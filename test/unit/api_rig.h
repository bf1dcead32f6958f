/*
 * api_rig.h - a real client, and an API server that a test plays by hand: each request waits until it is answered.
 *
 * Time moves only when a test says so; the network is real (loopback).
 */
#pragma once

#include "unit/net_rig.h"

#include "kube/kube.h"

struct request {
        struct list node;
        struct http_exchange *ex; /* NULL: answered, or the client has gone */
        bool gone;                /* the client has gone, before or in the middle of the answer */
        char *line;               /* "GET /path?query" */
        struct str path;          /* in it */
        char *body, *authorization;
        struct arena arena;
};

struct api {
        struct net_rig net;
        struct http_server *server;
        struct kube_config config;
        struct kube *kube;
        struct list waiting, taken; /* requests */
        unsigned heard;             /* requests, ever */
};

static inline void request_gone(void *arg)
{
        struct request *q = arg;

        q->gone = true;
        q->ex = NULL;
}

static inline void api_hear(void *arg, struct http_exchange *ex)
{
        struct api *api = arg;
        struct request *q = xcalloc(1, sizeof(*q));
        struct str token = http_header(http_request_headers(ex), "Authorization"), query = http_query(ex);

        q->ex = ex;
        q->line = xasprintf("%.*s %.*s%s%.*s", STR_ARG(http_method(ex)), STR_ARG(http_path(ex)),
                            query.n ? "?" : "", STR_ARG(query));
        q->path = str_n(q->line + http_method(ex).n + 1, http_path(ex).n);
        q->body = xstrndup(http_body(ex).p, http_body(ex).n);
        q->authorization = token.p ? xstrndup(token.p, token.n) : NULL;
        http_on_abandon(ex, request_gone, q);
        list_append(&api->waiting, &q->node);
        api->heard++;
}

static inline void api_init(struct api *api, const struct kube_options *options)
{
        struct err err = ERR_INIT;

        net_rig_init(&api->net);
        rng_seed(loop_rng(api->net.loop), 7);
        list_init(&api->waiting);
        list_init(&api->taken);
        api->server = http_server_new(
                api->net.loop,
                &(struct http_server_config){.listen = "127.0.0.1:0", .on_request = api_hear, .arg = api},
                &err);
        assert_non_null(api->server);
        api->config.server = xasprintf("http://127.0.0.1:%u", http_server_port(api->server));
        api->config.source = xstrdup("the test");
        api->kube = kube_new(api->net.loop, &api->config, options, &err);
        assert_non_null(api->kube);
}

static inline void api_free_requests(struct list *requests)
{
        list_foreach_safe (node, requests) {
                struct request *q = CONTAINER_OF(node, struct request, node);

                list_remove(&q->node);
                free(q->line);
                free(q->body);
                free(q->authorization);
                arena_done(&q->arena);
                free(q);
        }
}

static inline void api_done(struct api *api)
{
        kube_free(api->kube);
        http_server_free(api->server);
        net_rig_done(&api->net);
        api_free_requests(&api->waiting);
        api_free_requests(&api->taken);
        kube_config_done(&api->config);
}

/* The next request, which must be METHOD of PATH (without the query). */
static inline struct request *api_next(struct api *api, const char *method, const char *path)
{
        struct request *q;
        char text[512];

        net_until(&api->net, !list_empty(&api->waiting));
        q = CONTAINER_OF(list_pop(&api->waiting), struct request, node);
        list_append(&api->taken, &q->node);
        snprintf(text, sizeof(text), "%.*s%.*s", (int)(q->path.p - q->line), q->line, STR_ARG(q->path));
        assert_string_equal(text, arena_printf(&q->arena, "%s %s", method, path));
        return q;
}

static inline struct request *api_waiting(struct api *api, const char *method, const char *path)
{
        list_foreach (node, &api->waiting) {
                struct request *q = CONTAINER_OF(node, struct request, node);

                if (str_has_prefix(str_of(q->line), str_of(method)) && str_eq(q->path, str_of(path)))
                        return q;
        }
        return NULL;
}

/* The first request that is METHOD of PATH, whatever else there is. */
static inline struct request *api_find(struct api *api, const char *method, const char *path)
{
        struct request *q = NULL;

        net_until(&api->net, (q = api_waiting(api, method, path)));
        list_remove(&q->node);
        list_append(&api->taken, &q->node);
        return q;
}

/* Nothing more was asked, and nothing is about to be. */
static inline void api_quiet(struct api *api)
{
        for (int i = 0; i < 20; i++)
                net_turn(&api->net);
        assert_true(list_empty(&api->waiting));
}

/* A parameter of the query; NULL: not there. */
static inline const char *api_param(struct request *q, const char *name)
{
        assert_non_null(q->ex);
        return http_query_param(q->ex, name, &q->arena);
}

static inline void api_answer(struct request *q, int status, const char *body)
{
        assert_non_null(q->ex);
        http_reply(TAKE_PTR(q->ex), status, body[0] == '{' ? "application/json" : "text/plain", str_of(body));
}

static inline void api_refuse(struct request *q, int status, const char *reason, const char *retry_after)
{
        struct http_header headers[] = {{STR("Content-Type"), STR("application/json")},
                                        {STR("Retry-After"), str_of(retry_after)}};
        char *body = arena_printf(&q->arena,
                                  "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                                  "\"message\":\"told so\",\"reason\":\"%s\",\"code\":%d}",
                                  reason, status);

        assert_non_null(q->ex);
        http_reply_headers(TAKE_PTR(q->ex), status, &(struct http_headers){headers, retry_after ? 2 : 1},
                           str_of(body));
}

/* The head of a stream, and time for it to arrive. */
static inline void api_stream(struct api *api, struct request *q)
{
        assert_non_null(q->ex);
        http_stream_start(q->ex, 200, NULL, request_gone, q);
        for (int i = 0; i < 10; i++)
                net_turn(&api->net);
}

static inline void api_say(struct api *api, struct request *q, const char *text)
{
        assert_non_null(q->ex);
        http_stream_write(q->ex, str_of(text));
        for (int i = 0; i < 5; i++)
                net_turn(&api->net);
}

static inline void api_end(struct request *q)
{
        http_stream_end(TAKE_PTR(q->ex));
}

/* Closes the connection in the middle. */
static inline void api_cut(struct request *q)
{
        http_stream_abort(TAKE_PTR(q->ex));
}
