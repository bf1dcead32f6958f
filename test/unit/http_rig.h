/*
 * http_rig.h - an HTTP client, and a server that a test plays by hand.
 */
#pragma once

#include "unit/net_rig.h"

struct rig {
        struct net_rig net;
        struct http_client *client;
        struct http_call *call;
        int fd;         /* the connection being played */
        struct buf got; /* what came on it */
        /* what the client reported */
        int ends, heads, status;
        bool answered, reused, sent;
        struct err err;
        struct buf body;
        char header[64];
        int pause_after; /* on_data pauses when this many pieces have come; 0: never */
        int pieces;
        enum { NOTHING, CANCEL_IN_HEAD, CANCEL_IN_DATA, FREE_IN_DATA, FREE_IN_END, START_IN_END } trick;
};

static const struct http_handlers handlers;

static inline void start(struct rig *r, struct http_request req)
{
        if (!req.method)
                req.method = "GET";
        if (!req.target)
                req.target = "/x";
        r->call = http_start(r->client, &req, &handlers, r);
}

static inline void free_client(struct rig *r)
{
        http_client_free(TAKE_PTR(r->client));
        r->call = NULL;
}

static inline void note_answer(struct rig *r, const struct http_answer *a)
{
        struct str h = http_header(&a->headers, "x-test");

        r->answered = true;
        r->status = a->status;
        snprintf(r->header, sizeof(r->header), "%.*s", STR_ARG(h));
}

static inline void on_head(void *arg, const struct http_answer *a)
{
        struct rig *r = arg;

        r->heads++;
        note_answer(r, a);
        if (r->trick == CANCEL_IN_HEAD)
                http_call_cancel(TAKE_PTR(r->call));
}

static inline void on_data(void *arg, struct str chunk)
{
        struct rig *r = arg;

        buf_addstr(&r->body, chunk);
        if (++r->pieces == r->pause_after)
                http_call_pause(r->call, true);
        if (r->trick == CANCEL_IN_DATA)
                http_call_cancel(TAKE_PTR(r->call));
        if (r->trick == FREE_IN_DATA)
                free_client(r);
}

static inline void on_end(void *arg, const struct http_answer *a, const struct err *err)
{
        struct rig *r = arg;

        r->ends++;
        if (r->call) {
                r->reused = http_call_was_reused(r->call);
                r->sent = http_call_was_sent(r->call);
                http_call_cancel(TAKE_PTR(r->call)); /* harmless here */
        }
        r->answered = a != NULL;
        err_clear(&r->err);
        if (err)
                r->err = *err;
        if (a) {
                note_answer(r, a);
                buf_addstr(&r->body, a->body);
        }
        if (r->trick == FREE_IN_END)
                free_client(r);
        if (r->trick == START_IN_END) {
                r->trick = NOTHING;
                start(r, (struct http_request){0});
        }
}

static const struct http_handlers handlers = {.on_head = on_head, .on_data = on_data, .on_end = on_end};

static inline void new_client(struct rig *r, struct http_client_config config)
{
        struct err err = ERR_INIT;

        if (!config.url)
                config.url = r->net.url;
        http_client_free(r->client);
        r->client = http_client_new(r->net.loop, &config, &err);
        assert_string_equal(err.text, "");
        assert_non_null(r->client);
}

static inline int setup(void **state)
{
        struct rig *r = xcalloc(1, sizeof(*r));

        net_rig_init(&r->net);
        r->fd = -1;
        r->got = (struct buf)BUF_INIT(SIZE_MAX);
        r->body = (struct buf)BUF_INIT(SIZE_MAX);
        new_client(r, (struct http_client_config){0});
        *state = r;
        return 0;
}

static inline int teardown(void **state)
{
        struct rig *r = *state;

        http_client_free(r->client);
        net_rig_done(&r->net);
        fd_close(r->fd);
        buf_done(&r->got);
        buf_done(&r->body);
        free(r);
        return 0;
}

/* Plays the server up to a complete request head on a new connection. */
static inline void hear_request(struct rig *r)
{
        fd_close(TAKE_FD(r->fd));
        r->fd = net_accept(&r->net);
        buf_clear(&r->got);
        net_until(&r->net, net_heard(r->fd, &r->got, "\r\n\r\n"));
}

static inline void hear_another(struct rig *r)
{
        buf_clear(&r->got);
        net_until(&r->net, net_heard(r->fd, &r->got, "\r\n\r\n"));
}

static inline void forget_result(struct rig *r)
{
        r->ends = r->heads = r->status = r->pieces = 0;
        r->answered = false;
        buf_clear(&r->body);
}

static inline void until_end(struct rig *r)
{
        net_until(&r->net, r->ends > 0);
}

/* One call, answered by TEXT and, if CLOSE, the end of the connection. */
static inline void answer_with(struct rig *r, struct http_request req, const char *text, bool close)
{
        forget_result(r);
        start(r, req);
        hear_request(r);
        net_say(r->fd, text);
        if (close)
                fd_close(TAKE_FD(r->fd));
        until_end(r);
}

/* One more call, answered by TEXT on the connection that is there. */
static inline void answer_again(struct rig *r, struct http_request req, const char *text)
{
        forget_result(r);
        start(r, req);
        hear_another(r);
        net_say(r->fd, text);
        until_end(r);
}

static inline void assert_ok(struct rig *r, int status, const char *body)
{
        assert_string_equal(r->err.text, "");
        assert_int_equal(r->ends, 1);
        assert_int_equal(r->status, status);
        assert_str(buf_str(&r->body), body);
}

/* ERROR has %s for the peer's address, or none. */
static inline void assert_error(struct rig *r, enum err_code code, const char *before, const char *after)
{
        char text[ERR_TEXT_MAX];

        snprintf(text, sizeof(text), "%s127.0.0.1:%u%s", before, r->net.port, after);
        assert_string_equal(r->err.text, text);
        assert_int_equal(r->err.code, code);
        assert_int_equal(r->ends, 1);
}
