#include "cli/up.h"

enum { LINE_MAX_BYTES = 64 << 10 };

struct up_log {
        struct kube_call *call;
        char *prefix;
        struct buf line; /* begun, without its end yet */
        size_t lines;
        void (*done)(void *arg, size_t lines, const struct err *err);
        void *arg;
};

static void tell(struct up_log *l, struct str text)
{
        printf("%s | %.*s\n", l->prefix, STR_ARG(text));
        l->lines++;
}

static void tell_rest(struct up_log *l)
{
        if (l->line.n)
                tell(l, buf_str(&l->line));
        buf_clear(&l->line);
}

static void on_data(void *arg, struct str chunk)
{
        struct up_log *l = arg;

        while (chunk.n) {
                const char *end = memchr(chunk.p, '\n', chunk.n);
                size_t n = end ? (size_t)(end - chunk.p) : chunk.n, room = LINE_MAX_BYTES - l->line.n;

                if (n > room) { /* a very long line is told in pieces */
                        buf_add(&l->line, chunk.p, room);
                        tell_rest(l);
                        chunk = str_n(chunk.p + room, chunk.n - room);
                        continue;
                }
                buf_add(&l->line, chunk.p, n);
                if (!end)
                        break;
                tell(l, buf_str(&l->line));
                buf_clear(&l->line);
                chunk = str_n(end + 1, chunk.n - n - 1);
        }
        fflush(stdout);
}

static void on_done(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct up_log *l = arg;

        l->call = NULL;
        tell_rest(l);
        fflush(stdout);
        l->done(l->arg, l->lines, err);
}

struct up_log *up_log_new(struct kube *kube, const char *ns, const char *pod, const char *container,
                          bool previous, const char *prefix,
                          void (*done)(void *arg, size_t lines, const struct err *err), void *arg)
{
        _cleanup_(buf_done) struct buf path = BUF_INIT(4096);
        struct up_log *l = xcalloc(1, sizeof(*l));
        struct kube_request r = {.verb = KUBE_GET};

        kube_path(&path, &KUBE_POD, ns, pod, "log");
        buf_adds(&path, previous ? "?previous=true&container=" : "?follow=true&container=");
        buf_add_urlencoded(&path, str_of(container));
        r.path = buf_cstr(&path);
        l->prefix = xstrdup(prefix);
        l->line = (struct buf)BUF_INIT(LINE_MAX_BYTES);
        l->done = done;
        l->arg = arg;
        l->call = kube_stream(kube, &r, on_data, on_done, l);
        return l;
}

void up_log_free(struct up_log *l)
{
        if (!l)
                return;
        if (l->call)
                kube_cancel(l->call);
        buf_done(&l->line);
        free(l->prefix);
        free(l);
}
