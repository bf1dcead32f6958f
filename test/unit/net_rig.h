/*
 * net_rig.h - a loop on a test's clock, and a peer on a raw socket that a test drives by hand.
 *
 * Time moves only when a test says so; the network is real (loopback). Whoever waits for something turns the loop
 * without sleeping until it is there.
 */
#pragma once

#include "unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/net.h"

struct net_rig {
        struct clock clock;
        struct loop *loop;
        int listen_fd;
        uint16_t port;
        char url[64];
};

static inline void net_turn(struct net_rig *r)
{
        loop_turn(r->loop, false);
}

static inline void net_pass(struct net_rig *r, usec_t time)
{
        r->clock.boot += time;
        r->clock.wall += time;
        for (int i = 0; i < 5; i++)
                net_turn(r);
}

/* Turns the loop until COND; fails the test after two minutes of real time. */
#define net_until(rig, cond)                                       \
        do {                                                       \
                time_t start_ = time(NULL);                        \
                while (!(cond)) {                                  \
                        net_turn(rig);                             \
                        if (time(NULL) - start_ > 120)             \
                                fail_msg("never came: %s", #cond); \
                }                                                  \
        } while (0)

static inline int net_listen(uint16_t *ret_port)
{
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof(sa);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&sa, n), 0);
        assert_int_equal(listen(fd, 64), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &n), 0);
        *ret_port = ntohs(sa.sin_port);
        return fd;
}

static inline void net_rig_init(struct net_rig *r)
{
        *r = (struct net_rig){.clock = {.manual = true, .boot = 1000000, .wall = 1000000}};
        r->loop = loop_new(&r->clock, NULL, NULL);
        assert_non_null(r->loop);
        r->listen_fd = net_listen(&r->port);
        snprintf(r->url, sizeof(r->url), "http://127.0.0.1:%u", r->port);
}

static inline void net_rig_done(struct net_rig *r)
{
        loop_free(r->loop);
        fd_close(r->listen_fd);
}

/* The next connection to the raw listener; non-blocking. */
static inline int net_accept(struct net_rig *r)
{
        int fd = -1;

        net_until(r, (fd = accept4(r->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
        return fd;
}

static inline bool net_no_connection(struct net_rig *r)
{
        for (int i = 0; i < 10; i++)
                net_turn(r);
        return accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC) < 0 && errno == EAGAIN;
}

static inline int net_connect(uint16_t port)
{
        struct sockaddr_in sa = {
                .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        assert_int_equal(fd_set_nonblock(fd), 0);
        return fd;
}

static inline void net_say(int fd, const char *text)
{
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What came on FD up to now is added to B. False: the peer has closed. */
static inline bool net_hear(int fd, struct buf *b)
{
        char piece[4096];
        ssize_t n;

        while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
                buf_add(b, piece, (size_t)n);
        return n < 0 && errno == EAGAIN;
}

static inline bool net_heard(int fd, struct buf *b, const char *text)
{
        net_hear(fd, b);
        return b->n && memmem(b->p, b->n, text, strlen(text));
}
