/*
 * conn.h - one non-blocking byte connection, plain or TLS, for client and server.
 *
 * A conn is embedded in its owner. It reads into the loop's scratch buffer and keeps bytes only while the kernel does
 * not take them, so an idle one has no buffers. Callbacks come from the loop; each may close the conn, but the memory
 * of the owner must stay until the end of the turn (defer_run).
 */
#pragma once

#include "net/loop_private.h"
#include "net/tls_private.h"

struct conn;

struct conn_ops {
        /* The TLS handshake is done, or needless (or_plain). ERR: it failed. Not called where TLS was not begun. */
        void (*on_open)(struct conn *c, const struct err *err);
        void (*on_data)(struct conn *c, struct str data);
        /* The peer will send no more. ERR: not in an orderly way. */
        void (*on_end)(struct conn *c, const struct err *err);
        /* Some bytes left (conn_unsent() says how many still wait), or sending became impossible. May be NULL. */
        void (*on_sent)(struct conn *c);
        /* While paused: the peer will send no more (WHOLLY: nor receive). May be NULL: it is then read after the pause. */
        void (*on_gone)(struct conn *c, bool wholly);
};

struct conn {
        struct loop *loop;
        const struct conn_ops *ops;
        struct io io;
        struct defer kick; /* reads what TLS holds back after a pause */
        struct tls_session *tls;
        struct buf out;
        size_t out_at;
        int fd; /* -1: closed */
        bool handshaking, paused, broken, ended, tls_read_wants_write;
        bool stuck;    /* the kernel did not take all that was sent: EPOLLOUT says when to go on */
        bool want_hup; /* EPOLLRDHUP */
        bool or_plain; /* servers: a peer that begins with anything but a handshake is served without TLS */
        bool timed;    /* see conn_time() */
        bool stamping; /* the kernel was asked for its stamps */
        bool stamped;  /* `received` is one of them */
        uint64_t received; /* when the bytes at hand came, of clock_boot_ns(); 0: none yet, or not timed */
};

void conn_init(struct conn *c, struct loop *loop, const struct conn_ops *ops);
/* Takes FD, which is connected. */
int conn_attach(struct conn *c, int fd, struct err *err) _must_check_;
/* Begins the handshake; TLS is taken. on_open says how it went. */
void conn_start_tls(struct conn *c, struct tls_session *tls);
/*
 * From now on `received` says when the bytes of the last read came: by the kernel's own stamp if it has one and STAMPS,
 * else right after the read. For TCP that is the stamp of the last segment of what was read; bytes that came before it
 * and were read with it share it.
 */
void conn_time(struct conn *c, bool stamps);
/* Closes at once. Harmless when closed. */
void conn_close(struct conn *c);

/* Sends now what the kernel takes and keeps the rest. Returns how many bytes left now. */
size_t conn_send(struct conn *c, struct str data);
void conn_flush(struct conn *c);
size_t conn_unsent(const struct conn *c);
/* No more on_data and on_end until it is lifted. */
void conn_pause(struct conn *c, bool pause);
/* While paused: what is left to send is sent although the peer will send no more. */
void conn_ignore_half_close(struct conn *c);
/* Says that nothing will follow. What the peer still sends is read. */
void conn_shut(struct conn *c);

/* TCP_NODELAY, keepalive and user timeout, so that a dead peer is noticed within DEAD_AFTER. */
void socket_tune(int fd, usec_t dead_after);
