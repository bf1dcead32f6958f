/*
 * Runs and samples as lines between the containers of a pod.
 *
 *   worker       {"hello": {"group": 1}}
 *   coordinator  {"run": {"id", "command": [...], "env": [{"name", "value"}], "expand", "size", "seed", "iteration", "timeout"}}
 *   worker       {"usage": {"memory", "cpuPercent", "processes"}}      while something runs, every second
 *   worker       {"sample": {"id", "sample": {...}}}
 *
 * The worker ends with the connection. Who speaks otherwise, or does not listen, is cut off.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe/session/internal.h"

enum { READ_SIZE = 64 * 1024, BACKLOG = 32, JOB_WORDS_MAX = 4096 };

/* ---- the connection */

void wire_init(struct wire *w, struct loop *loop, void (*on_line)(struct wire *w, struct str line),
               void (*on_end)(struct wire *w))
{
        *w = (struct wire){
                .loop = loop,
                .fd = -1,
                .in = BUF_INIT(WIRE_LINE_MAX),
                .out = BUF_INIT(WIRE_UNSENT_MAX),
                .on_line = on_line,
                .on_end = on_end,
        };
}

void wire_close(struct wire *w)
{
        defer_cancel(&w->closing);
        io_remove(&w->io);
        fd_close(TAKE_FD(w->fd));
        buf_done(&w->in);
        buf_done(&w->out);
}

static void end_wire(struct defer *d)
{
        struct wire *w = CONTAINER_OF(d, struct wire, closing);

        wire_close(w);
        w->on_end(w);
}

/* At the end of the turn: whoever is just using it must not find it gone. */
static void break_wire(struct wire *w)
{
        if (w->fd >= 0 && !w->closing.pending)
                defer_run(w->loop, &w->closing, end_wire);
}

static void flush(struct wire *w)
{
        while (w->out.n > 0) {
                ssize_t n = send(w->fd, w->out.p, w->out.n, MSG_NOSIGNAL);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN) {
                        break_wire(w);
                        return;
                }
                if (n < 0)
                        break;
                buf_consume(&w->out, (size_t)n);
        }
        io_set(&w->io, w->out.n > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* Lines that are whole; what is left stays. */
static void take_lines(struct wire *w)
{
        size_t at = 0;

        while (w->fd >= 0 && !w->closing.pending) {
                const char *end = memchr(w->in.p + at, '\n', w->in.n - at);
                struct str line;

                if (!end)
                        break;
                line = str_n(w->in.p + at, (size_t)(end - w->in.p) - at);
                at += line.n + 1;
                w->on_line(w, line);
        }
        if (w->fd >= 0)
                buf_consume(&w->in, at);
}

static void on_io(struct io *io, uint32_t events)
{
        struct wire *w = CONTAINER_OF(io, struct wire, io);
        ssize_t n;
        char *room;

        if (events & EPOLLOUT)
                flush(w);
        if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || w->closing.pending)
                return;
        room = buf_reserve(&w->in, READ_SIZE);
        n = room ? recv(w->fd, room, READ_SIZE, 0) : 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                break_wire(w);
                return;
        }
        w->in.n += (size_t)n;
        take_lines(w);
}

int wire_attach(struct wire *w, int fd, struct err *err)
{
        w->fd = fd;
        if (fd_set_nonblock(fd) < 0 || io_add(w->loop, &w->io, fd, EPOLLIN, on_io) < 0) {
                err_errno(err, E_IO, errno, "cannot wait for a worker's connection");
                wire_close(w);
                return -1;
        }
        return 0;
}

void wire_send(struct wire *w, const struct json *line)
{
        if (w->fd < 0 || w->closing.pending)
                return;
        json_write(line, JSON_COMPACT, &w->out);
        buf_addc(&w->out, '\n');
        if (w->out.overflow) {
                break_wire(w);
                return;
        }
        flush(w);
}

/* ---- the socket */

/* The address by way of the directory, since a socket's may have 107 bytes only. *DIR stays open until it is used. */
static int address_of(const char *ctl, int *ret_dir, struct sockaddr_un *ret, struct err *err)
{
        *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
        *ret_dir = open(ctl, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (*ret_dir < 0)
                return err_errno(err, E_IO, errno, "cannot open %s", ctl);
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", *ret_dir, SESSION_SOCKET);
        return 0;
}

int wire_listen(const char *ctl, struct err *err)
{
        _cleanup_(fd_close) int fd = -1, dir = -1;
        struct sockaddr_un address;

        if (address_of(ctl, &dir, &address, err) < 0)
                return -1;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot make a socket");
        /* What an earlier coordinator left. */
        if (unlinkat(dir, SESSION_SOCKET, 0) < 0 && errno != ENOENT)
                return err_errno(err, E_IO, errno, "cannot remove %s/%s", ctl, SESSION_SOCKET);
        /* The containers of a pod may have different users. */
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            fchmodat(dir, SESSION_SOCKET, 0666, 0) < 0 || listen(fd, BACKLOG) < 0)
                return err_errno(err, E_IO, errno, "cannot listen on %s/%s", ctl, SESSION_SOCKET);
        return TAKE_FD(fd);
}

int wire_connect(const char *ctl, struct err *err)
{
        _cleanup_(fd_close) int fd = -1, dir = -1;
        struct sockaddr_un address;

        if (address_of(ctl, &dir, &address, err) < 0)
                return -1;
        /* Without waiting: one that does not accept is asked again, and signals are heard. */
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_errno(err, E_IO, errno, "cannot make a socket");
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return err_errno(err, E_CONNECT, errno, "cannot connect to %s/%s", ctl, SESSION_SOCKET);
        return TAKE_FD(fd);
}

/* ---- messages */

struct json *wire_hello(struct arena *a, unsigned group)
{
        return json_build(a, "{'hello': {'group': %u}}", group);
}

struct json *wire_run(struct arena *a, const struct session_job *job)
{
        struct json *command = json_array(a), *env = json_array(a);

        for (const char **word = job->command; *word; word++)
                json_append(command, json_string(a, *word));
        for (size_t i = 0; i < job->n_env; i++)
                json_append(env,
                            json_build(a, "{'name': %s, 'value': %s}", job->env[i].name, job->env[i].value));
        return json_build(
                a,
                "{'run': {'id': %u, 'command': %p, 'env': %p, 'expand': %p, 'size': %lld, 'seed': %llu, "
                "'iteration': %d, 'timeout': %llu}}",
                job->id, command, env, json_truth(a, job->expand), (long long)job->size,
                (unsigned long long)job->seed, job->iteration, (unsigned long long)job->timeout);
}

struct json *wire_sample(struct arena *a, unsigned id, const struct measure_sample *sample)
{
        return json_build(a, "{'sample': {'id': %u, 'sample': %p}}", id, measure_sample_json(a, sample));
}

struct json *wire_usage(struct arena *a, const struct measure_usage *usage)
{
        return json_build(a, "{'usage': {'memory': %lld, 'cpuPercent': %p, 'processes': %d}}",
                          (long long)usage->memory, json_double(a, usage->cpu_percent), usage->processes);
}

static int parse_env(struct arena *a, const struct json *list, struct session_job *job)
{
        struct session_env *env = arena_new_array(a, struct session_env, json_len(list) + 1);

        json_foreach (variable, list) {
                struct session_env *e = &env[job->n_env++];

                e->name = json_str(variable, "name");
                e->value = json_str(variable, "value");
                if (!e->name || !e->value)
                        return -1;
        }
        job->env = env;
        return 0;
}

static int parse_job(struct arena *a, const struct json *j, struct session_job *ret)
{
        const struct json *command = json_at(j, "command");
        int64_t id = json_int(j, "id", -1), iteration = json_int(j, "iteration", 0);
        uint64_t timeout;
        size_t n = 0;

        *ret = (struct session_job){.expand = json_bool(j, "expand", false), .size = json_int(j, "size", 0)};
        if (!json_is(command, JSON_ARRAY) || !json_len(command) || json_len(command) > JOB_WORDS_MAX ||
            id < 0 || id > INT32_MAX || iteration < INT32_MIN || iteration > INT32_MAX ||
            !json_to_u64(json_at(j, "seed"), &ret->seed) || !json_to_u64(json_at(j, "timeout"), &timeout))
                return -1;
        ret->command = arena_new_array(a, const char *, json_len(command) + 1);
        json_foreach (word, command) {
                ret->command[n] = json_cstr(word);
                if (!ret->command[n++])
                        return -1;
        }
        ret->id = (unsigned)id;
        ret->iteration = (int)iteration;
        ret->timeout = timeout;
        return parse_env(a, json_at(j, "env"), ret);
}

static int parse_usage(const struct json *j, struct measure_usage *ret)
{
        const struct json *percent = json_at(j, "cpuPercent");
        int64_t processes = json_int(j, "processes", 0);

        *ret = (struct measure_usage){.memory = json_int(j, "memory", -1),
                                      .processes = (int)MIN(processes, INT32_MAX)};
        if (percent && (!json_is(percent, JSON_NUMBER) || !json_to_double(percent, &ret->cpu_percent)))
                return -1;
        return ret->memory >= 0 && processes >= 0 ? 0 : -1;
}

static int parse_sample(struct arena *a, const struct json *j, struct wire_message *m, struct err *err)
{
        int64_t id = json_int(j, "id", -1);

        if (id < 0 || id > INT32_MAX)
                return err_set(err, E_PROTOCOL, "a sample has no id");
        m->id = (unsigned)id;
        return measure_sample_parse(a, json_at(j, "sample"), &m->sample, err);
}

int wire_parse(struct arena *a, struct str line, struct wire_message *ret, struct err *err)
{
        const struct json_limits limits = {.bytes = WIRE_LINE_MAX, .depth = 64};
        const struct json *root = json_parse(a, line, &limits, err), *j;
        int64_t group;

        if (!root)
                return -1;
        if ((j = json_at(root, "hello"))) {
                ret->kind = WIRE_HELLO;
                group = json_int(j, "group", -1);
                ret->group = (unsigned)group;
                return group > 0 && group < SESSION_GROUPS_MAX
                               ? 0
                               : err_set(err, E_PROTOCOL, "a hello has no group");
        }
        if ((j = json_at(root, "run"))) {
                ret->kind = WIRE_RUN;
                return parse_job(a, j, &ret->job) < 0 ? err_set(err, E_PROTOCOL, "a run is not as it must be")
                                                      : 0;
        }
        if ((j = json_at(root, "usage"))) {
                ret->kind = WIRE_USAGE;
                return parse_usage(j, &ret->usage) < 0
                               ? err_set(err, E_PROTOCOL, "a usage is not as it must be")
                               : 0;
        }
        ret->kind = WIRE_SAMPLE;
        return parse_sample(a, json_at(root, "sample"), ret, err);
}
