/*
 * server_private.h - the parts of the HTTP server: http_server.c listens and accepts, server_conn.c reads requests,
 * sends and watches the time, exchange.c is what a handler sees of a request.
 *
 *   a connection is  reading -> handed over -> (answered | streaming) -> reading again, or lingering -> dead
 *
 * There is one exchange a connection at a time; requests that come early wait in `rest`. A connection whose peer has
 * gone while the handler still owes an answer stays, closed, until the handler has given it (unless the handler asked
 * to be told). Memory is freed at the end of the turn.
 */
#pragma once

#include "net/conn.h"
#include "net/http_private.h"
#include "net/http_server.h"

enum { DATE_MAX = 40 };

struct http_server {
        struct loop *loop;
        struct tls *tls;
        struct http_limits limits;
        unsigned max_connections, n_connections;
        usec_t header_timeout, idle_timeout;
        size_t backlog;
        void (*on_request)(void *arg, struct http_exchange *ex);
        void *arg;
        int listen_fd;
        struct io listen_io;
        struct timer accept_again;
        uint16_t port;
        char *unix_path;
        struct list connections;
        struct http_head spare; /* of the last request, for the next */
        usec_t date_second;
        char date[DATE_MAX];
        struct defer free_later;
        bool or_plain, draining, dead;
};

enum exchange_state { EX_READING, EX_OPEN, EX_STREAM, EX_DONE };

struct http_exchange {
        enum exchange_state state;
        bool http10, no_body, keep_alive;
        struct str method, path, query;
        struct http_headers headers;
        struct buf body;
        void (*on_gone)(void *arg); /* on_close of a stream, or http_on_abandon's */
        void *gone_arg;
        bool has_first;      /* of a stream: its first piece was written */
        size_t behind_first; /* bytes of all later ones */
};

struct http_text {
        unsigned refs;
        struct buf text;
};

struct server_conn {
        struct conn conn;
        struct list node;
        struct http_server *server;
        struct http_parser parser;
        struct http_exchange ex;
        struct buf rest; /* requests that came early */
        size_t rest_at;
        struct http_text
                *shared; /* the rest of the answer, from shared_at on; NULL: all of it is in conn.out */
        size_t shared_at;
        struct timer timer;
        usec_t deadline; /* 0: none */
        struct defer step, free_later;
        char *subject;
        size_t lingered;
        bool begun; /* part of a request has come */
        bool lingering, cut, dead;
};

static inline struct server_conn *conn_of(const struct http_exchange *ex)
{
        return (struct server_conn *)(void *)((char *)(uintptr_t)ex - offsetof(struct server_conn, ex));
}

/* ---- server_conn.c */
void server_conn_new(struct http_server *s, int fd, const char *peer);
/* Answers one connection too many. */
void server_conn_refuse(struct http_server *s, int fd);
void server_conn_close(struct server_conn *sc); /* at once and without callbacks */
bool server_conn_is_idle(const struct server_conn *sc);
/* Something was queued, or the exchange moved on: look after it at the end of the turn. */
void server_conn_step(struct server_conn *sc);

/* ---- exchange.c */
/* Queues a whole answer on the connection. */
void exchange_answer(struct server_conn *sc, int status, const struct http_headers *headers,
                     const char *content_type, struct str body);
