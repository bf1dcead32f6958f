/*
 * client_private.h - the two halves of the HTTP client: http_client.c keeps calls and the pool, client_conn.c one
 * connection from the look-up of the name to the end of the answer.
 *
 *   a call is    waiting -> on a connection -> over (freed after on_end)
 *   a connection dialing -> proxy -> handshake -> busy <-> idle -> dead (freed at the end of the turn)
 *
 * A connection is made for one call and carries it from the beginning, or is made ahead of need; when the answer is
 * complete and nothing is odd it goes to the pool. Everything odd closes it.
 */
#pragma once

#include "net/conn.h"
#include "net/dial.h"
#include "net/http_client.h"
#include "net/http_private.h"

struct http_client {
        struct loop *loop;
        struct tls *tls;
        unsigned generation; /* of the TLS context */
        char *host, *prefix; /* prefix: of every target */
        char *peer;          /* "host:port", for messages */
        char *fixed;         /* the headers that are the same in every request */
        uint16_t port;
        char *proxy_host, *proxy_auth; /* auth: a whole header line */
        uint16_t proxy_port;
        const struct addrinfo *addresses;        /* of the one to connect to; NULL: looked up */
        unsigned max_connections, n_connections; /* of the pool */
        unsigned n_idle;
        unsigned wanted, n_ahead; /* connections to be made ahead of need; being made */
        usec_t connect_timeout, dead_after, idle_timeout;
        struct http_limits limits;
        struct list waiting, waiting_alone; /* calls */
        struct list calls;                  /* on a connection */
        struct list idle;                   /* connections, the last used first */
        struct list busy;                   /* all other connections */
        struct timer idle_timer;
        struct defer pump, free_later;
        bool stamps, dead;
};

struct http_call {
        struct list node;
        struct http_client *client;
        struct client_conn *conn; /* NULL: waiting */
        struct http_handlers handlers;
        void *arg;
        bool (*may_send)(void *arg);
        void *may_send_arg;
        struct timer timer;
        struct err *failed; /* refused before it began */
        usec_t idle_timeout, last_data;
        uint64_t sent_at;
        bool alone; /* has a connection of its own, outside the pool */
        bool stream, head_method, paused, reused, sent, head_seen, over;
        size_t n;
        char text[]; /* the request */
};

enum client_conn_state { CONN_DIALING, CONN_PROXY, CONN_HANDSHAKE, CONN_BUSY, CONN_IDLE, CONN_DEAD };

struct client_conn {
        struct conn conn;
        struct list node;
        struct http_client *client;
        struct http_call *call;
        enum client_conn_state state;
        unsigned generation;
        bool alone; /* of one call alone, outside the pool */
        bool ahead; /* being made before there is a call for it */
        bool used, tls_failed;
        struct dial *dial;
        struct timer deadline; /* of the connection's making */
        struct http_parser parser;
        struct buf body;
        struct buf rest; /* of the answer, while paused; of the proxy's answer */
        usec_t idle_since;
        struct defer resume, free_later;
};

/* ---- client_conn.c */
/* CALL NULL: for the pool. */
void client_conn_open(struct http_client *c, struct http_call *call);
void client_conn_carry(struct client_conn *cc, struct http_call *call);
void client_conn_close(struct client_conn *cc); /* without a word to its call */
/* Closes CC and tells its call why. */
void client_conn_fail(struct client_conn *cc, const struct err *err);
void client_conn_resume(struct client_conn *cc);

/* ---- http_client.c */
/* Ends CALL: takes it off its lists, calls on_end, frees it. The connection is the caller's business. */
void call_end(struct http_call *call, const struct http_answer *answer, const struct err *err);
/* CC may carry another call. Closes it if it was made with another TLS context than new ones are. */
void client_conn_put_back(struct client_conn *cc);
/* Makes connections ahead of need, a few at a time. */
void client_connect_ahead(struct http_client *c);
