/*
 * http_server_rig.h - an HTTP server, and clients that a test plays by hand.
 */
#pragma once

#include "unit/net_rig.h"

#include <sys/stat.h>
#include <sys/un.h>

#include "unit/certs.h"

struct rig {
        struct net_rig net;
        struct http_server *server;
        int fd; /* the client */
        struct buf got;
        /* what handlers saw */
        int requests, plain, closed, abandoned;
        struct http_exchange *ex; /* the last one, if it is still to be answered */
        struct buf seen;          /* "METHOD path?query [body]\n" */
        char subject[128];
        enum { ECHO, LATER, STREAM, FREE_SERVER } mode;
};

static inline void on_close(void *arg)
{
        struct rig *r = arg;

        r->closed++;
        r->ex = NULL;
}

static inline void on_abandon(void *arg)
{
        struct rig *r = arg;

        r->abandoned++;
        r->ex = NULL;
}

static inline void on_request(void *arg, struct http_exchange *ex)
{
        struct rig *r = arg;
        struct str subject = http_client_subject(ex);

        r->requests++;
        r->plain += http_is_plain(ex);
        buf_printf(&r->seen, "%.*s %.*s?%.*s [%.*s]\n", STR_ARG(http_method(ex)), STR_ARG(http_path(ex)),
                   STR_ARG(http_query(ex)), STR_ARG(http_body(ex)));
        snprintf(r->subject, sizeof(r->subject), "%.*s", STR_ARG(subject));
        switch (r->mode) {
        case ECHO:
                http_reply(ex, 200, "text/plain", http_path(ex));
                break;
        case LATER:
                r->ex = ex;
                break;
        case STREAM:
                r->ex = ex;
                http_stream_start(ex, 200, NULL, on_close, r);
                break;
        case FREE_SERVER:
                http_server_free(TAKE_PTR(r->server));
                break;
        }
}

static inline void new_server(struct rig *r, struct http_server_config config)
{
        struct err err = ERR_INIT;

        if (!config.listen)
                config.listen = "127.0.0.1:0";
        config.on_request = on_request;
        config.arg = r;
        http_server_free(r->server);
        r->server = http_server_new(r->net.loop, &config, &err);
        assert_string_equal(err.text, "");
        assert_non_null(r->server);
}

static inline int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        net_rig_init(&r->net);
        r->net.clock.wall = (usec_t)784111777 * USEC_PER_SEC;
        r->fd = -1;
        r->got = (struct buf)BUF_INIT(SIZE_MAX);
        r->seen = (struct buf)BUF_INIT(SIZE_MAX);
        new_server(r, (struct http_server_config){0});
        *state = r;
        return 0;
}

static inline int teardown(void **state)
{
        struct rig *r = *state;

        http_server_free(r->server);
        net_rig_done(&r->net);
        fd_close(r->fd);
        buf_done(&r->got);
        buf_done(&r->seen);
        free(r);
        return 0;
}

static inline void say(struct rig *r, const char *text)
{
        if (r->fd < 0)
                r->fd = net_connect(http_server_port(r->server));
        net_say(r->fd, text);
}

static inline void hang_up(struct rig *r)
{
        fd_close(TAKE_FD(r->fd));
        buf_clear(&r->got);
}

static inline void until_heard(struct rig *r, const char *text)
{
        net_until(&r->net, net_heard(r->fd, &r->got, text));
}

/* Everything up to the end of the connection. */
static const char *hear_all(struct rig *r)
{
        net_until(&r->net, !net_hear(r->fd, &r->got));
        return buf_cstr(&r->got);
}

static inline void turns(struct rig *r)
{
        for (int i = 0; i < 10; i++)
                net_turn(&r->net);
}

#define HEAD "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
