/*
 * Any bytes as requests: the server answers, refuses or waits, and lets go of the connection in the end. The first byte
 * says what handlers do, the second how the bytes are cut into pieces.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz/http_parse.h"
#include "net/net.h"

enum { LATER = 1, STREAM = 2, ABORT = 4, HANG_UP = 8, DRAIN = 16, TELL = 32 };

struct rig {
        struct clock clock;
        struct loop *loop;
        struct http_server *server;
        struct http_exchange *waiting; /* at most one: there is one connection */
        uint8_t flags;
        bool streaming;
};

static struct sockaddr_un address; /* of the server */

static void remove_socket(void)
{
        unlink(address.sun_path);
}

static void choose_address(void)
{
        const char *tmp = getenv("TMPDIR");

        address.sun_family = AF_UNIX;
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/sonde-fuzz-%d", tmp && *tmp ? tmp : "/tmp",
                 (int)getpid());
        atexit(remove_socket);
}

static void gone(void *arg)
{
        struct rig *r = arg;

        r->waiting = NULL;
}

static void on_request(void *arg, struct http_exchange *ex)
{
        struct rig *r = arg;
        struct arena a = ARENA_INIT;

        if (r->waiting)
                abort();
        http_query_param(ex, "x", &a);
        url_decode(http_path(ex), &a);
        if (!http_method(ex).n || !http_path(ex).n || http_body(ex).n > 1000 || http_client_subject(ex).p)
                abort();
        arena_done(&a);
        if (r->flags & LATER) {
                r->waiting = ex;
                if (r->flags & TELL)
                        http_on_abandon(ex, gone, r);
        } else if (r->flags & STREAM) {
                r->waiting = ex;
                r->streaming = true;
                http_stream_start(ex, 200, NULL, r->flags & TELL ? gone : NULL, r);
                http_stream_write(ex, http_body(ex));
        } else {
                http_reply(ex, 200, "text/plain", http_path(ex));
        }
}

/* What a handler owes. */
static void pay(struct rig *r)
{
        struct http_exchange *ex = TAKE_PTR(r->waiting);

        if (!ex)
                return;
        if (!r->streaming)
                http_reply(ex, 200, "text/plain", http_body(ex));
        else if (r->flags & ABORT)
                http_stream_abort(ex);
        else
                http_stream_end(ex);
        r->streaming = false;
}

static void set_up(struct rig *r)
{
        struct http_server_config config = {.limits = {.head = 2000, .headers = 20, .body = 1000},
                                            .backlog = 10000,
                                            .on_request = on_request,
                                            .arg = r};
        char where[sizeof(address.sun_path) + 8];

        if (!address.sun_family)
                choose_address();
        snprintf(where, sizeof(where), "unix:%s", address.sun_path);
        config.listen = where;
        r->clock = (struct clock){.manual = true, .boot = 1, .wall = 1};
        r->loop = loop_new(&r->clock, NULL, NULL);
        r->server = r->loop ? http_server_new(r->loop, &config, NULL) : NULL;
        if (!r->server)
                abort();
}

static int connect_one(void)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            fd_set_nonblock(fd) < 0)
                abort();
        return fd;
}

/* False: the server has closed. */
static bool hear(int fd)
{
        char junk[4096];
        ssize_t n;

        while ((n = recv(fd, junk, sizeof(junk), 0)) > 0)
                continue;
        return n < 0 && errno == EAGAIN;
}

static void turn(struct rig *r)
{
        loop_turn(r->loop, false);
        loop_turn(r->loop, false);
        pay(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct rig r; /* loop and server serve all runs, unless one drains the server */
        struct str text;
        struct rng rng;
        int fd;

        if (size < 2)
                return 0;
        text = str_n((const char *)data + 2, size - 2);
        parse_both_ways(&record_requests, text, data[1]);
        r.flags = data[0];
        rng_seed(&rng, data[1]);
        if (!r.loop)
                set_up(&r);
        fd = connect_one();
        while (text.n) {
                size_t n = MIN(1 + rng_below(&rng, data[1] & 1 ? 64 : 4096), text.n);

                if (send(fd, text.p, n, MSG_NOSIGNAL) < 0)
                        break;
                text = str_n(text.p + n, text.n - n);
                turn(&r);
                hear(fd);
        }
        if (r.flags & DRAIN)
                http_server_drain(r.server);
        if (r.flags & HANG_UP)
                fd_close(TAKE_FD(fd));
        for (int i = 0; i < 40 && (i < 3 || fd >= 0); i++) {
                turn(&r);
                if (fd >= 0 && !hear(fd))
                        fd_close(TAKE_FD(fd));
                r.clock.boot += 61 * USEC_PER_SEC;
        }
        if (fd >= 0)
                abort(); /* an idle connection is closed, sooner or later */
        pay(&r);
        turn(&r);
        if (r.flags & DRAIN) {
                http_server_free(r.server);
                loop_free(TAKE_PTR(r.loop));
        }
        return 0;
}
