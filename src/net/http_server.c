#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/server_private.h"

enum { ACCEPTS_A_TURN = 64, REFUSALS_MAX = 64, PEER_MAX = 80 };

/* ---- listening */

static int open_unix(struct http_server *s, const char *path, struct err *err)
{
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        _cleanup_(fd_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        struct stat st;

        if (strlen(path) == 0 || strlen(path) >= sizeof(sa.sun_path))
                return err_set(err, E_CONFIG, "path of the socket must have 1 to %zu bytes",
                               sizeof(sa.sun_path) - 1);
        memcpy(sa.sun_path, path, strlen(path));
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot create a socket");
        /* A socket file that nobody answers on was left by a process that is gone. */
        if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
                if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno != ECONNREFUSED)
                        return err_set(err, E_IO, "cannot listen on %s: another process does", path);
                unlink(path);
        }
        if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                return err_errno(err, E_IO, errno, "cannot listen on %s", path);
        s->unix_path = xstrdup(path);
        if (listen(fd, SOMAXCONN) < 0)
                return err_errno(err, E_IO, errno, "cannot listen on %s", path);
        return TAKE_FD(fd);
}

/* "host:port" with a numeric host, "localhost" or nothing (all addresses). Returns the length of RET, 0: malformed. */
static socklen_t parse_listen(const char *text, struct sockaddr_storage *ret)
{
        const char *colon = strrchr(text, ':');
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
        struct str host = str_n(text, colon ? (size_t)(colon - text) : 0);
        char name[INET6_ADDRSTRLEN];
        uint64_t port;

        if (!colon || !str_to_u64(str_of(colon + 1), &port) || port > UINT16_MAX || host.n >= sizeof(name))
                return 0;
        if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
                host = str_n(host.p + 1, host.n - 2);
        else if (memchr(host.p, ':', host.n))
                return 0;
        snprintf(name, sizeof(name), "%.*s",
                 STR_ARG(str_eq(host, STR("localhost")) ? STR("127.0.0.1") : host));
        *ret = (struct sockaddr_storage){0};
        if (inet_pton(AF_INET, name, &v4->sin_addr) == 1) {
                v4->sin_family = AF_INET;
                v4->sin_port = htons((uint16_t)port);
                return sizeof(*v4);
        }
        if (host.n && inet_pton(AF_INET6, name, &v6->sin6_addr) != 1)
                return 0;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return sizeof(*v6);
}

static int bind_tcp(const struct sockaddr_storage *sa, socklen_t n)
{
        int fd = socket(sa->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
        int one = 1, zero = 0;

        if (fd < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (sa->ss_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
        if (bind(fd, (const struct sockaddr *)sa, n) == 0 && listen(fd, SOMAXCONN) == 0)
                return fd;
        fd_close(fd);
        return -1;
}

static int open_tcp(struct http_server *s, const char *where, struct err *err)
{
        struct sockaddr_storage sa;
        socklen_t n = parse_listen(where, &sa);
        int fd;

        if (!n)
                return err_set(err, E_CONFIG, "cannot listen on '%s': not address:port, :port or unix:path",
                               where);
        fd = bind_tcp(&sa, n);
        if (fd < 0 && where[0] == ':' && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
                /* all addresses, on a machine without IPv6 */
                uint16_t port = ((struct sockaddr_in6 *)&sa)->sin6_port;

                sa = (struct sockaddr_storage){0};
                *(struct sockaddr_in *)&sa = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
                n = sizeof(struct sockaddr_in);
                fd = bind_tcp(&sa, n);
        }
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot listen on %s", where);
        n = sizeof(sa);
        if (getsockname(fd, (struct sockaddr *)&sa, &n) == 0)
                s->port = ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                                         : ((struct sockaddr_in *)&sa)->sin_port);
        return fd;
}

static int open_listener(struct http_server *s, const char *where, struct err *err)
{
        if (!where)
                return err_set(err, E_CONFIG, "a server needs an address to listen on");
        if (str_has_prefix(str_of(where), STR("unix:")))
                return open_unix(s, where + 5, err);
        return open_tcp(s, where, err);
}

/* ---- accepting */

static void peer_text(const struct sockaddr_storage *sa, char out[PEER_MAX])
{
        char host[INET6_ADDRSTRLEN] = "";

        if (sa->ss_family == AF_INET) {
                const struct sockaddr_in *v4 = (const struct sockaddr_in *)sa;

                inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
                snprintf(out, PEER_MAX, "client %s:%u", host, ntohs(v4->sin_port));
        } else if (sa->ss_family == AF_INET6) {
                const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;

                inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
                snprintf(out, PEER_MAX, "client [%s]:%u", host, ntohs(v6->sin6_port));
        } else {
                snprintf(out, PEER_MAX, "client");
        }
}

static void accept_again(struct timer *t)
{
        io_set(&CONTAINER_OF(t, struct http_server, accept_again)->listen_io, EPOLLIN);
}

static void accept_failed(struct http_server *s, int errnum)
{
        if (errnum == EAGAIN || errnum == EINTR || errnum == ECONNABORTED)
                return;
        /* Out of descriptors or memory: the listener stays readable, so look away for a moment. */
        LOG_WARN(loop_log(s->loop), "Cannot accept a connection", F_STR("error", strerrordesc_np(errnum)));
        io_set(&s->listen_io, 0);
        timer_after(&s->accept_again, 100 * USEC_PER_MS);
}

static void listener_ready(struct io *io, uint32_t events)
{
        struct http_server *s = CONTAINER_OF(io, struct http_server, listen_io);

        for (int i = 0; i < ACCEPTS_A_TURN; i++) {
                struct sockaddr_storage sa = {0};
                socklen_t n = sizeof(sa);
                char peer[PEER_MAX];
                int fd = accept4(io->fd, (struct sockaddr *)&sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (fd < 0) {
                        accept_failed(s, errno);
                        return;
                }
                if (s->n_connections < s->max_connections) {
                        peer_text(&sa, peer);
                        server_conn_new(s, fd, peer);
                } else if (s->n_connections < s->max_connections + REFUSALS_MAX) {
                        server_conn_refuse(s, fd);
                } else {
                        fd_close(fd);
                }
        }
}

/* ---- the server */

static void free_server(struct defer *d)
{
        struct http_server *s = CONTAINER_OF(d, struct http_server, free_later);

        tls_unref(s->tls);
        http_head_done(&s->spare);
        free(s->unix_path);
        free(s);
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
                                    struct err *err)
{
        struct http_server *s = xcalloc(1, sizeof(*s));

        s->loop = loop;
        s->tls = tls_ref(config->tls);
        s->or_plain = config->or_plain;
        s->limits = http_limits_or_default(&config->limits);
        s->spare.text.max = s->limits.head;
        s->max_connections = config->max_connections ? config->max_connections : 1024;
        s->header_timeout = config->header_timeout ? config->header_timeout : 10 * USEC_PER_SEC;
        s->idle_timeout = config->idle_timeout ? config->idle_timeout : 120 * USEC_PER_SEC;
        s->backlog = config->backlog ? config->backlog : 4 * 1024 * 1024;
        s->on_request = config->on_request;
        s->arg = config->arg;
        list_init(&s->connections);
        timer_init(&s->accept_again, loop, accept_again);
        s->listen_fd = open_listener(s, config->listen, err);
        if (s->listen_fd < 0) {
                http_server_free(s);
                return NULL;
        }
        if (io_add(loop, &s->listen_io, s->listen_fd, EPOLLIN, listener_ready) < 0) {
                err_errno(err, E_IO, errno, "cannot watch the listening socket");
                http_server_free(s);
                return NULL;
        }
        return s;
}

static void stop_listening(struct http_server *s)
{
        timer_cancel(&s->accept_again);
        io_remove(&s->listen_io);
        if (s->listen_fd >= 0 && s->unix_path)
                unlink(s->unix_path);
        fd_close(TAKE_FD(s->listen_fd));
}

void http_server_free(struct http_server *s)
{
        if (!s || s->dead)
                return;
        s->dead = true;
        stop_listening(s);
        while (!list_empty(&s->connections))
                server_conn_close(CONTAINER_OF(s->connections.next, struct server_conn, node));
        defer_run(s->loop, &s->free_later, free_server);
}

void http_server_drain(struct http_server *s)
{
        s->draining = true;
        stop_listening(s);
        list_foreach_safe (node, &s->connections) {
                struct server_conn *sc = CONTAINER_OF(node, struct server_conn, node);

                if (server_conn_is_idle(sc))
                        server_conn_close(sc);
        }
}

uint16_t http_server_port(const struct http_server *s)
{
        return s->port;
}

void http_server_set_tls(struct http_server *s, struct tls *tls)
{
        if (!s->tls || s->tls == tls)
                return;
        tls_ref(tls);
        tls_unref(s->tls);
        s->tls = tls;
}
