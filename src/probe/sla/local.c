#include "probe/sla/local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        OUTPUT_MAX = 1 << 20,
        TAIL_MAX = 2048,
        LAST_WORDS_MAX = 200,
        LOOK_MS = 25, /* how often it is asked whether it serves, at first; later up to a second */
        LOOK_MAX_MS = 1000,
        TERM_MS = 5000,
        DYING_MS = 500, /* from a connection's end to its process' */
        TIMEOUT_SEC = 1800,
};

int local_port(uint16_t *ret, struct err *err)
{
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(at);
        _cleanup_(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
            getsockname(fd, (struct sockaddr *)&at, &len) < 0)
                return err_errno(err, E_IO, errno, "cannot find a free port");
        *ret = ntohs(at.sin_port);
        return 0;
}

/* ---- start */

static int open_log(const char *file, struct err *err)
{
        int fd = file ? open(file, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)
                      : memfd_create("server", MFD_CLOEXEC);

        return fd >= 0 ? fd : err_errno(err, E_IO, errno, "cannot keep a server's output in %s", file);
}

int local_start(char *const *argv, const char *log_file, struct local *ret, struct err *err)
{
        _cleanup_(fd_close) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct spawn spawn = {.argv = argv, .in_fd = null, .own_group = true};

        *ret = (struct local){.pidfd = -1, .log_fd = -1};
        if (null < 0)
                return err_errno(err, E_IO, errno, "cannot open /dev/null");
        ret->log_fd = open_log(log_file, err);
        if (ret->log_fd < 0)
                return -1;
        spawn.out_fd = spawn.err_fd = ret->log_fd;
        if (spawn_start(&spawn, &ret->pid, NULL, err) < 0)
                return -1;
        ret->pidfd = (int)syscall(SYS_pidfd_open, ret->pid, 0);
        return ret->pidfd >= 0 ? 0 : err_errno(err, E_IO, errno, "cannot watch '%s'", argv[0]);
}

/* ---- its output and its end */

void local_output(const struct local *l, struct buf *out)
{
        char *to = l->log_fd >= 0 ? buf_reserve(out, OUTPUT_MAX) : NULL;
        ssize_t n = to ? pread(l->log_fd, to, OUTPUT_MAX, 0) : 0;

        out->n += n > 0 ? (size_t)n : 0;
}

static const char *last_words(const struct local *l, struct arena *a)
{
        char tail[TAIL_MAX];
        struct stat st;
        off_t from;
        ssize_t n;
        struct str text, line;

        if (l->log_fd < 0 || fstat(l->log_fd, &st) < 0)
                return "";
        from = st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
        n = pread(l->log_fd, tail, sizeof(tail), from);
        text = str_trim(str_n(tail, n > 0 ? (size_t)n : 0));
        for (line = str_split(&text, '\n'); text.p; line = str_split(&text, '\n'))
                ;
        line.n = utf8_cut(line.p, line.n, LAST_WORDS_MAX);
        return utf8_valid(line.p, line.n) ? arena_strndup(a, line.p, line.n) : "";
}

static bool reap(struct local *l, int flags)
{
        pid_t done;

        if (l->reaped || l->pid <= 0)
                return true;
        do
                done = waitpid(l->pid, &l->status, flags);
        while (done < 0 && errno == EINTR);
        l->reaped = done == l->pid || (done < 0 && errno == ECHILD);
        return l->reaped;
}

const char *local_end(struct local *l, struct arena *a)
{
        const char *words;

        if (l->pid <= 0 || !reap(l, WNOHANG))
                return NULL;
        words = last_words(l, a);
        if (WIFSIGNALED(l->status))
                return arena_printf(a, "the server was ended by %s%s%s", strsignal(WTERMSIG(l->status)),
                                    words[0] ? ": " : "", words);
        return arena_printf(a, "the server exited with status %d%s%s", WEXITSTATUS(l->status),
                            words[0] ? ": " : "", words);
}

static bool wait_end(struct local *l, int ms)
{
        struct pollfd p = {.fd = l->pidfd, .events = POLLIN};

        if (l->pidfd >= 0)
                while (poll(&p, 1, ms) < 0 && errno == EINTR)
                        ;
        return reap(l, l->pidfd >= 0 ? WNOHANG : 0);
}

const char *local_last_words(struct local *l, struct arena *a)
{
        (void)wait_end(l, DYING_MS);
        return local_end(l, a);
}

void local_take_down(struct local *l)
{
        if (l->pid > 0 && !l->reaped) {
                /* First: after SIGTERM it would continue what a leak check at the end has stopped. */
                (void)kill(l->pid, SIGCONT);
                (void)kill(-l->pid, SIGTERM);
                if (!wait_end(l, TERM_MS)) {
                        (void)kill(l->pid, SIGKILL);
                        (void)wait_end(l, -1);
                }
        }
        /* What it has started and left behind. */
        if (l->pid > 0)
                (void)kill(-l->pid, SIGKILL);
        fd_close(l->pidfd);
        fd_close(l->log_fd);
        free(l->url);
        *l = (struct local){.pidfd = -1, .log_fd = -1};
}

/* ---- until it serves */

struct waiting {
        struct http_client *client;
        struct io stop, ended;
        struct timer look, deadline;
        const char *target;
        unsigned pause;
        bool up, stopped, gone, late;
        char why[128];
};

static void on_stop(struct io *io, uint32_t events _unused_)
{
        CONTAINER_OF(io, struct waiting, stop)->stopped = true;
        io_remove(io);
}

static void on_ended(struct io *io, uint32_t events _unused_)
{
        CONTAINER_OF(io, struct waiting, ended)->gone = true;
        io_remove(io);
}

static void on_deadline(struct timer *timer)
{
        CONTAINER_OF(timer, struct waiting, deadline)->late = true;
}

static void on_answer(void *arg, const struct http_answer *answer, const struct err *err)
{
        struct waiting *w = arg;

        w->up = !err && answer && answer->status == 200;
        if (w->up)
                return;
        if (answer && !err)
                snprintf(w->why, sizeof(w->why), "%s answered %d", w->target, answer->status);
        else
                snprintf(w->why, sizeof(w->why), "%.100s", err ? err->text : "no answer");
        /* A server without /health has its list of models. */
        if (answer && !err && answer->status == 404)
                w->target = streq(w->target, "/health") ? "/v1/models" : "/health";
        timer_after(&w->look, w->pause * USEC_PER_MS);
        w->pause = MIN(w->pause * 5 / 4 + 1, (unsigned)LOOK_MAX_MS);
}

static void on_look(struct timer *timer)
{
        struct waiting *w = CONTAINER_OF(timer, struct waiting, look);
        static const struct http_handlers handlers = {.on_end = on_answer};
        const struct http_request request = {
                .method = "GET", .target = w->target, .timeout = 5 * USEC_PER_SEC};

        (void)http_start(w->client, &request, &handlers, w);
}

static int settle(const struct waiting *w, const char *url, struct local *l, usec_t limit, struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *end;

        if (w->up)
                return 0;
        if (w->stopped)
                return err_set(err, E_CANCELED, "told to stop");
        end = l ? local_end(l, &a) : NULL;
        if (end)
                return err_set(err, E_SERVER, "%s", end);
        return err_set(err, E_TIMEOUT, "%s does not serve after %llu s%s%s", url,
                       (unsigned long long)(limit / USEC_PER_SEC), w->why[0] ? ": " : "", w->why);
}

int local_wait_url(const char *url, struct local *l, const struct sla_target_config *c, struct err *err)
{
        usec_t limit = c->config && c->config->deploy_timeout ? c->config->deploy_timeout
                                                              : TIMEOUT_SEC * USEC_PER_SEC;
        const struct http_client_config client = {.url = url, .connect_timeout = 5 * USEC_PER_SEC};
        struct waiting w = {.target = "/health", .pause = LOOK_MS};
        _cleanup_(tls_unref) struct tls *tls = NULL;
        struct http_client_config https = client;

        if (str_has_prefix(str_of(url), STR("https:"))) {
                https.tls = tls = tls_new(&(struct tls_config){0}, err);
                if (!tls)
                        return -1;
        }
        w.client = http_client_new(c->loop, &https, err);
        if (!w.client)
                return -1;
        timer_init(&w.look, c->loop, on_look);
        timer_init(&w.deadline, c->loop, on_deadline);
        timer_after(&w.look, 0);
        timer_after(&w.deadline, limit);
        if (c->stop_fd >= 0 && io_add(c->loop, &w.stop, c->stop_fd, EPOLLIN, on_stop) < 0)
                w.stopped = true;
        if (l && l->pidfd >= 0 && io_add(c->loop, &w.ended, l->pidfd, EPOLLIN, on_ended) < 0)
                w.gone = true;
        while (!w.up && !w.stopped && !w.gone && !w.late)
                if (!loop_turn(c->loop, true))
                        break;
        timer_cancel(&w.look);
        timer_cancel(&w.deadline);
        io_remove(&w.stop);
        io_remove(&w.ended);
        http_client_free(w.client);
        (void)loop_turn(c->loop, false); /* what was left to free */
        return settle(&w, url, l, limit, err);
}

int local_wait(struct local *l, uint16_t port, const struct sla_target_config *c, struct err *err)
{
        l->port = port;
        l->url = xasprintf("http://127.0.0.1:%u", port);
        return local_wait_url(l->url, l, c, err);
}
