/*
 * GPUs, by nvidia-smi: it takes its time and much of a CPU, so it is asked only during long runs, and rarely.
 */
#include "probe/measure/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024, MIB = 1 << 20 };

static const usec_t FIRST = USEC_PER_SEC / 2, EVERY = 5 * USEC_PER_SEC;

static char *find_tool(const char *name)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        for (char **place = spawn_places(&a, name); *place; place++)
                if (access(*place, X_OK) == 0)
                        return xstrdup(*place);
        return NULL;
}

/* A number of the line; NAN: "[N/A]", "[Not Supported]". */
static double take_number(struct str *line)
{
        struct str field = str_trim(str_split(line, ','));
        char text[32], *end;
        double v;

        if (!field.n || field.n >= sizeof(text))
                return NAN;
        memcpy(text, field.p, field.n);
        text[field.n] = 0;
        v = strtod(text, &end);
        return *end || !isfinite(v) || v < 0 || v > 1e12 ? NAN : v;
}

void gpu_add(struct gpu *g, struct str text)
{
        double memory = 0, power = 0;
        int64_t n = 0, with_memory = 0, with_power = 0;

        while (text.p) {
                struct str line = str_trim(str_split(&text, '\n'));
                double utilization, mib, watts;

                if (!line.n)
                        continue;
                utilization = take_number(&line);
                mib = take_number(&line);
                watts = take_number(&line);
                if (isnan(utilization) && isnan(mib) && isnan(watts))
                        continue; /* "No devices were found" */
                n++;
                g->utilization_sum += isnan(utilization) ? 0 : utilization;
                g->utilization_n += !isnan(utilization);
                memory += isnan(mib) ? 0 : mib;
                with_memory += !isnan(mib);
                power += isnan(watts) ? 0 : watts;
                with_power += !isnan(watts);
        }
        if (!n)
                return;
        g->seen.has = true;
        g->seen.looks++;
        g->seen.gpus = MAX(g->seen.gpus, n);
        if (with_memory)
                g->seen.memory_peak = MAX(g->seen.memory_peak, (int64_t)(memory * MIB));
        g->power_sum += power;
        g->power_n += with_power > 0;
}

static void close_out(struct gpu *g)
{
        if (!g->out.loop)
                return;
        io_remove(&g->out);
        fd_close(g->out.fd);
}

static void readable(struct io *io, uint32_t events)
{
        struct gpu *g = CONTAINER_OF(io, struct gpu, out);
        char *to = buf_reserve(&g->text, 4096);
        ssize_t n = to ? read(io->fd, to, 4096) : 0;

        if (n > 0)
                g->text.n += (size_t)n;
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                close_out(g); /* its end, or more than it can have to say */
}

static void answered(void *arg, int status)
{
        struct gpu *g = arg;

        g->child = NULL;
        while (g->out.loop) {
                size_t before = g->text.n;

                readable(&g->out, EPOLLIN);
                if (g->text.n == before)
                        break;
        }
        close_out(g);
        if (status == 0)
                gpu_add(g, buf_str(&g->text));
        timer_after(&g->timer, EVERY);
}

static void ask(struct timer *t)
{
        struct gpu *g = CONTAINER_OF(t, struct gpu, timer);
        const char *argv[] = {g->tool, "--query-gpu=utilization.gpu,memory.used,power.draw",
                              "--format=csv,noheader,nounits", NULL};
        _cleanup_(fd_close) int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        struct spawn s = {
                .argv = (char *const *)argv, .in_fd = nothing, .err_fd = nothing, .own_group = true};
        _cleanup_(fd_close) int out = -1;
        int fds[2];

        if (nothing < 0 || pipe2(fds, O_CLOEXEC) < 0)
                return;
        s.out_fd = out = fds[1];
        buf_clear(&g->text);
        if (fd_set_nonblock(fds[0]) < 0 || spawn_start(&s, &g->pid, NULL, NULL) < 0) {
                fd_close(fds[0]);
                return;
        }
        g->child = child_watch(g->loop, g->pid, answered, g, NULL);
        if (!g->child || io_add(g->loop, &g->out, fds[0], EPOLLIN, readable) < 0)
                fd_close(fds[0]);
}

void gpu_init(struct gpu *g, struct loop *loop, bool wanted)
{
        *g = (struct gpu){.loop = loop, .tool = wanted ? find_tool("nvidia-smi") : NULL};
        g->text = (struct buf)BUF_INIT(ANSWER_MAX);
        timer_init(&g->timer, loop, ask);
}

void gpu_begin(struct gpu *g)
{
        g->seen = (struct measure_gpu){.memory_peak = -1};
        g->utilization_sum = g->power_sum = 0;
        g->utilization_n = g->power_n = 0;
        if (g->tool)
                timer_after(&g->timer, FIRST);
}

void gpu_end(struct gpu *g, struct measure_gpu *ret)
{
        timer_cancel(&g->timer);
        if (g->child) {
                (void)kill(-g->pid, SIGKILL);
                child_forget(TAKE_PTR(g->child));
        }
        close_out(g);
        g->seen.utilization = g->utilization_n ? g->utilization_sum / (double)g->utilization_n : NAN;
        g->seen.power = g->power_n ? g->power_sum / (double)g->power_n : NAN;
        *ret = g->seen;
}

void gpu_done(struct gpu *g)
{
        struct measure_gpu last;

        if (g->loop)
                gpu_end(g, &last);
        free(g->tool);
        buf_done(&g->text);
}
