/*
 * The coordinator's end of the workers' connections: one a group.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "probe/session/internal.h"

enum {
        STRANGERS_MAX = 32, /* connections whose group is not known yet */
        SILENT_LOOKS = 6,   /* of ours, not of the clock's: both of us may have been asleep */
};

struct guest {
        struct hub *hub;
        struct wire wire;
        unsigned group; /* 0: it has not said */
        bool taken;
        unsigned runs;   /* under way: it speaks every second as long as there are */
        unsigned silent; /* looks at it since it last spoke */
        struct measure_usage usage;
};

struct hub {
        struct loop *loop;
        const struct hub_events *events;
        void *arg;
        const struct log *log;
        struct io listener;
        int fd;
        struct timer look;
        usec_t silence;
        unsigned groups;
        bool came[SESSION_GROUPS_MAX];
        struct guest guests[SESSION_GROUPS_MAX + STRANGERS_MAX];
};

static struct guest *guest_of(const struct hub *h, unsigned group)
{
        for (size_t i = 0; i < ARRAY_LEN(h->guests); i++)
                if (h->guests[i].taken && h->guests[i].group == group)
                        return (struct guest *)&h->guests[i];
        return NULL;
}

static void on_end(struct wire *w)
{
        struct guest *g = CONTAINER_OF(w, struct guest, wire);
        unsigned group = g->group;

        g->taken = false;
        g->group = 0;
        if (group)
                g->hub->events->on_gone(g->hub->arg, group);
}

/* Nobody that it knows: it may go. */
static void turn_away(struct guest *g, const char *why)
{
        LOG_WARN(g->hub->log, "A worker's connection was closed", F_UINT("group", g->group),
                 F_STR("why", why));
        wire_close(&g->wire);
        on_end(&g->wire);
}

/* One that is frozen would be waited for in vain. */
static void on_look(struct timer *t)
{
        struct hub *h = CONTAINER_OF(t, struct hub, look);

        for (size_t i = 0; i < ARRAY_LEN(h->guests); i++) {
                struct guest *g = &h->guests[i];

                if (g->taken && g->runs && ++g->silent > SILENT_LOOKS)
                        turn_away(g, "it runs something, and has been silent for too long");
        }
        timer_after(t, h->silence / SILENT_LOOKS);
}

static void greet(struct guest *g, unsigned group)
{
        struct hub *h = g->hub;

        if (g->group || group >= h->groups || guest_of(h, group)) {
                turn_away(g, "its group is not in the plan, or has a worker already");
                return;
        }
        g->group = group;
        g->usage = (struct measure_usage){0};
        h->came[group] = true;
        h->events->on_come(h->arg, group);
}

static void on_line(struct wire *w, struct str line)
{
        struct guest *g = CONTAINER_OF(w, struct guest, wire);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct wire_message m = {0};
        struct err err = ERR_INIT;

        g->silent = 0;
        if (wire_parse(&a, line, &m, &err) < 0)
                turn_away(g, err.text);
        else if (m.kind == WIRE_HELLO)
                greet(g, m.group);
        else if (!g->group || m.kind == WIRE_RUN)
                turn_away(g, "it speaks out of turn");
        else if (m.kind == WIRE_USAGE)
                g->usage = m.usage;
        else {
                g->usage = (struct measure_usage){0};
                g->runs -= g->runs > 0;
                g->hub->events->on_sample(g->hub->arg, g->group, m.id, &m.sample);
        }
}

static void on_connection(struct io *io, uint32_t events _unused_)
{
        struct hub *h = CONTAINER_OF(io, struct hub, listener);
        int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
        struct guest *g = h->guests;
        struct err err = ERR_INIT;

        if (fd < 0)
                return;
        while (g < h->guests + ARRAY_LEN(h->guests) && g->taken)
                g++;
        if (g == h->guests + ARRAY_LEN(h->guests)) {
                /* There are more places than groups: one has not said who it is, and makes room. */
                g = guest_of(h, 0);
                turn_away(g, "it has not said who it is, and others wait");
        }
        wire_init(&g->wire, h->loop, on_line, on_end);
        g->hub = h;
        g->group = g->runs = g->silent = 0;
        g->taken = wire_attach(&g->wire, fd, &err) == 0;
        if (!g->taken)
                LOG_WARN(h->log, "A worker's connection was closed", F_ERR(&err));
}

struct hub *hub_new(struct loop *loop, const char *ctl, unsigned groups, usec_t silence,
                    const struct hub_events *events, void *arg, const struct log *log, struct err *err)
{
        _cleanup_(hub_free) struct hub *h = xcalloc(1, sizeof(*h));

        *h = (struct hub){.loop = loop,
                          .events = events,
                          .arg = arg,
                          .log = log,
                          .fd = -1,
                          .silence = MAX(silence, (usec_t)SILENT_LOOKS),
                          .groups = groups};
        timer_init(&h->look, loop, on_look);
        if (groups < 2)
                return TAKE_PTR(h);
        h->fd = wire_listen(ctl, err);
        if (h->fd < 0)
                return NULL;
        if (io_add(loop, &h->listener, h->fd, EPOLLIN, on_connection) < 0) {
                err_errno(err, E_IO, errno, "cannot wait for workers");
                return NULL;
        }
        timer_after(&h->look, h->silence / SILENT_LOOKS);
        return TAKE_PTR(h);
}

void hub_free(struct hub *h)
{
        if (!h)
                return;
        for (size_t i = 0; i < ARRAY_LEN(h->guests); i++)
                if (h->guests[i].taken)
                        wire_close(&h->guests[i].wire);
        timer_cancel(&h->look);
        io_remove(&h->listener);
        fd_close(h->fd);
        free(h);
}

bool hub_has(const struct hub *h, unsigned group)
{
        return guest_of(h, group) != NULL;
}

bool hub_complete(const struct hub *h)
{
        for (unsigned g = 1; g < h->groups; g++)
                if (!h->came[g])
                        return false;
        return true;
}

void hub_start(struct hub *h, unsigned group, const struct session_job *job)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct guest *g = guest_of(h, group);

        if (!g)
                return;
        g->runs++;
        g->silent = 0;
        wire_send(&g->wire, wire_run(&a, job));
}

struct measure_usage hub_usage(const struct hub *h)
{
        struct measure_usage sum = {0};

        for (size_t i = 0; i < ARRAY_LEN(h->guests); i++)
                if (h->guests[i].taken) {
                        sum.memory += h->guests[i].usage.memory;
                        sum.cpu_percent += h->guests[i].usage.cpu_percent;
                        sum.processes += h->guests[i].usage.processes;
                }
        return sum;
}
