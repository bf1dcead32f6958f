#include "cli/trouble.h"

/* A connection that breaks off and is had again within that time is nothing to tell. */
#define LOOK_EVERY USEC_PER_SEC

enum { LOOKS_IN_TROUBLE = 2 };

/* What is the same however often it is asked. */
static bool is_hopeless(const struct reflector *r, enum err_code code)
{
        return code == E_AUTH || code == E_FORBIDDEN || code == E_REFUSED ||
               (code == E_NOT_FOUND && !reflector_synced(r));
}

/* Why C cannot be watched: what does not pass first; NULL: it can. */
static const struct err *error_of(const struct trouble *t, const struct people_cluster *c, bool *ret_hopeless)
{
        const struct err *found = NULL;

        *ret_hopeless = false;
        vec_foreach (w, &t->watches) {
                const struct err *err = w->cluster == c ? reflector_error(w->reflector) : NULL;

                if (!err || *ret_hopeless)
                        continue;
                *ret_hopeless = is_hopeless(w->reflector, err->code);
                /* A kind that went took its objects along, and that was told. */
                if (err->code != E_NOT_FOUND || *ret_hopeless)
                        found = err;
        }
        return found;
}

static const char *lost(const struct trouble_cluster *c, struct arena *a)
{
        return arena_printf(a, "the cluster at %s does not answer (%s); it is asked again until it does",
                            c->cluster->config.server, text_clean(a, people_why(a, &c->err)));
}

static void say(const struct trouble *t, const struct trouble_cluster *c)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const char *lead = t->what ? t->what : "", *colon = t->what ? ": " : "";

        if (t->on_change)
                t->on_change(t->arg);
        if (t->drawn)
                return;
        if (c->said)
                cli_error("%s%s%s", lead, colon, lost(c, &a));
        else
                cli_error("%s%sthe cluster at %s answers again", lead, colon, c->cluster->config.server);
}

static void look(struct trouble *t, struct trouble_cluster *c)
{
        bool hopeless, said = c->said;
        const struct err *err = error_of(t, c->cluster, &hopeless);

        c->looks = err ? c->looks + 1 : 0;
        if (err)
                c->err = *err;
        if (hopeless && c->looks >= LOOKS_IN_TROUBLE) {
                t->hopeless = c;
                return;
        }
        c->said = c->looks >= LOOKS_IN_TROUBLE || (said && err);
        if (c->said != said)
                say(t, c);
}

static void on_look(struct timer *timer)
{
        struct trouble *t = CONTAINER_OF(timer, struct trouble, timer);

        vec_foreach (c, &t->clusters)
                if (!t->hopeless)
                        look(t, c);
        if (t->hopeless)
                t->on_hopeless(t->arg);
        else
                timer_after(&t->timer, LOOK_EVERY);
}

void trouble_begin(struct trouble *t, struct loop *loop)
{
        timer_init(&t->timer, loop, on_look);
        timer_after(&t->timer, LOOK_EVERY);
}

void trouble_watch(struct trouble *t, const struct people_cluster *c, const struct reflector *r)
{
        *vec_push(&t->watches) = (struct trouble_watch){.cluster = c, .reflector = r};
        vec_foreach (known, &t->clusters)
                if (known->cluster == c)
                        return;
        *vec_push(&t->clusters) = (struct trouble_cluster){.cluster = c};
}

void trouble_draw(const struct trouble *t, struct arena *a, const struct screen *s, struct buf *frame)
{
        vec_foreach (c, &t->clusters)
                if (c->said)
                        buf_printf(frame, "%s%s%s\n", screen_tone(s, TONE_WARN), lost(c, a), screen_plain(s));
}

void trouble_done(struct trouble *t)
{
        if (t->timer.loop)
                timer_cancel(&t->timer);
        if (t->hopeless)
                people_complain(t->hopeless->cluster, t->what, &t->hopeless->err);
        t->hopeless = NULL;
        vec_done(&t->watches);
        vec_done(&t->clusters);
}
