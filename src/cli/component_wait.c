#include "cli/component.h"
#include "cli/trouble.h"

#include <signal.h>

enum { LINE_BYTES_MAX = 600, STILL_WAITING = -1 };

struct wait {
        struct people *people;
        struct people_run run; /* as it was at first */
        const char *kind, *name;
        usec_t timeout;
        struct cache *cache;
        struct reflector *reflector;
        struct timer over;
        struct trouble trouble;
        char *told; /* the last line */
        int code;
};

static void end(struct wait *w, int code)
{
        if (w->code == STILL_WAITING)
                w->code = code;
        loop_stop(w->people->loop, 0);
}

/* ---- lines */

static void tell(struct wait *w, const struct summary *s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_BYTES_MAX);

        people_line(&line, w->run.label, s);
        if (streq(buf_cstr(&line), w->run.label)) /* no operator has seen it yet */
                buf_printf(&line, "  %s", s->phase);
        if (!buf_cstr(&line) || streq(buf_cstr(&line), w->told))
                return;
        free(w->told);
        w->told = xstrdup(buf_cstr(&line));
        people_line_eta(&line, s);
        if (buf_cstr(&line))
                fprintf(stderr, "%s\n", text_clean(&a, buf_cstr(&line)));
}

/* ---- its end */

static void look_at(struct wait *w, const struct json *object, struct arena *a)
{
        struct summary s;

        summarize(w->run.kind, object, a, &s);
        if (!summary_over(&s)) {
                tell(w, &s);
                return;
        }
        printf("%s %s completed with status: %s\n", w->kind, w->name, s.state);
        fflush(stdout);
        if (s.life != SUMMARY_SUCCEEDED)
                cli_error("%s %s %s: %s%s%s", w->kind, w->name,
                          s.life == SUMMARY_CANCELLED ? "was cancelled" : "failed",
                          s.reason ? s.reason : "no reason is known", s.sentence ? ": " : "",
                          s.sentence ? text_clean(a, s.sentence) : "");
        end(w, s.life == SUMMARY_SUCCEEDED ? 0 : 1);
}

/* Another one of that name is not the one that is waited for. */
static void gone(struct wait *w)
{
        cli_error("%s %s was deleted before it had ended", w->kind, w->name);
        end(w, 1);
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct wait *w = arg;

        if (w->code != STILL_WAITING)
                return;
        if (after && streq(after->uid, w->run.summary.uid))
                look_at(w, cache_parse(w->cache, after, &a), &a);
        else
                gone(w);
}

/* One that went between the question whether it is there and the first list is in none. */
static void on_synced(void *arg, bool first)
{
        struct wait *w = arg;

        if (w->code == STILL_WAITING && !cache_get_uid(w->cache, w->run.summary.uid))
                gone(w);
}

static void on_over(struct timer *t)
{
        struct wait *w = CONTAINER_OF(t, struct wait, over);

        cli_error("%s %s has not ended within %llu s; it goes on (last seen: %s)", w->kind, w->name,
                  (unsigned long long)(w->timeout / USEC_PER_SEC), w->told ? w->told : "nothing");
        end(w, COMPONENT_TIMED_OUT);
}

static void on_hopeless(void *arg)
{
        end(arg, 1);
}

static void on_signal(void *arg, int signo)
{
        end(arg, EXIT_INTERRUPTED);
}

/* ---- all of it */

int component_get(struct people *p, const struct kind *kind, const char *name, struct people_run *ret)
{
        const struct people_name named = {.kind = kind, .name = name};

        return people_find(p, people_cluster(p), &named, ret);
}

static void start(struct wait *w, const char *selector)
{
        struct loop *loop = w->people->loop;

        w->cache = cache_new(&(struct cache_config){.type = w->run.kind->type});
        cache_listen(w->cache, on_change, w);
        w->reflector = reflector_new(&(struct reflector_config){.kube = people_cluster(w->people)->kube,
                                                                .cache = w->cache,
                                                                .ns = w->run.summary.ns,
                                                                .field_selector = selector,
                                                                .on_synced = on_synced,
                                                                .arg = w});
        timer_init(&w->over, loop, on_over);
        timer_after(&w->over, w->timeout);
        trouble_begin(&w->trouble, loop);
        trouble_watch(&w->trouble, people_cluster(w->people), w->reflector);
        loop_on_signal(loop, SIGINT, on_signal, w);
        loop_on_signal(loop, SIGTERM, on_signal, w);
}

static void stop(struct wait *w)
{
        timer_cancel(&w->over);
        trouble_done(&w->trouble);
        loop_on_signal(w->people->loop, SIGINT, NULL, NULL);
        loop_on_signal(w->people->loop, SIGTERM, NULL, NULL);
        reflector_free(w->reflector);
        cache_free(w->cache);
        free(w->told);
}

int component_wait(struct people *p, const struct kind *kind, const char *name, usec_t timeout)
{
        struct wait w = {.people = p,
                         .kind = kind->type->kind,
                         .name = name,
                         .timeout = timeout,
                         .code = STILL_WAITING};

        w.trouble = (struct trouble){.what = "waiting", .on_hopeless = on_hopeless, .arg = &w};
        if (component_get(p, kind, name, &w.run) < 0)
                return 1;
        start(&w, arena_printf(&p->arena, "metadata.name=%s", name));
        loop_run(p->loop);
        stop(&w);
        return w.code;
}
