#include "web/internal.h"

/*
 * The caches are the operator's where it has them. A row is made when somebody wants it, once for each version of an object; rows
 * are forgotten when nobody has wanted any for a while.
 */
#define ROWS_LIVE (5 * 60 * USEC_PER_SEC)

struct source {
        struct feed *feed;
        size_t index;
        const struct kind *kind;
        struct cache *cache;
        struct reflector *reflector; /* NULL: the cache is the operator's */
        struct map rows;             /* uid -> struct kept */
};

struct kept {
        struct row *row;
        char uid[];
};

/* An object that has changed in this turn of the loop. */
struct change {
        struct list node;
        size_t kind;
        char *before; /* its row before the first change, as streams have it; NULL: they may have none */
        char *gone;   /* uid of one that is not there any more */
        char *ns;
        const char *name;
        char key[]; /* "KIND/NS/NAME" */
};

struct feed {
        struct web *web;
        struct source sources[KINDS_MAX];
        size_t n;
        struct map changes;
        struct list order;
        struct defer flush;
        struct timer forget;
        struct object_metrics *objects; /* NULL: the operator has them */
        usec_t used;
        struct arena arena; /* for one row at a time */
};

/* ---- rows */

static void kept_free(struct kept *k)
{
        free(k->row->rv);
        free(k->row);
        free(k);
}

static void forget_row(struct source *s, const char *uid)
{
        struct kept *k = map_remove(&s->rows, str_of(uid));

        if (k)
                kept_free(k);
}

static void forget_rows(struct source *s)
{
        struct kept *k;

        map_foreach (i, &s->rows, k)
                kept_free(k);
        map_done(&s->rows);
        s->rows = (struct map)MAP_INIT;
}

static struct row *make_row(struct feed *f, const struct source *s, const struct cache_entry *e)
{
        const struct json *object;
        struct summary summary;
        struct row *row;
        char *text;

        arena_reset(&f->arena, 1 << 20);
        object = cache_parse(s->cache, e, &f->arena);
        summarize(s->kind, object, &f->arena, &summary);
        text = json_print(&f->arena, summary_json(&summary, &f->arena));
        row = xcalloc(1, sizeof(*row) + strlen(text) + 1);
        row->n = strlen(text);
        memcpy(row->text, text, row->n);
        row->rv = xstrdup(e->rv);
        row->life = summary.life;
        row->created = summary.created;
        return row;
}

const struct row *feed_row(struct feed *f, size_t kind, const struct cache_entry *e)
{
        struct source *s = &f->sources[kind];
        struct kept *k = map_get(&s->rows, str_of(e->uid));
        size_t n = strlen(e->uid);

        f->used = loop_now(f->web->loop);
        if (!timer_pending(&f->forget))
                timer_after(&f->forget, ROWS_LIVE);
        if (k && streq(k->row->rv, e->rv))
                return k->row;
        if (k) {
                free(k->row->rv);
                free(k->row);
                k->row = make_row(f, s, e);
                return k->row;
        }
        k = xcalloc(1, sizeof(*k) + n + 1);
        memcpy(k->uid, e->uid, n);
        k->row = make_row(f, s, e);
        map_put(&s->rows, str_of(k->uid), k);
        return k->row;
}

static void on_forget(struct timer *t)
{
        struct feed *f = CONTAINER_OF(t, struct feed, forget);

        if (usec_sub(loop_now(f->web->loop), f->used) < ROWS_LIVE) {
                timer_after(&f->forget, ROWS_LIVE);
                return;
        }
        for (size_t i = 0; i < f->n; i++)
                forget_rows(&f->sources[i]);
}

/* ---- filters and lists */

bool feed_concerns(const struct run_filter *filter, size_t kind, const char *ns)
{
        return (!filter->kind || filter->kind == kinds_at(kind)) && (!filter->ns || streq(filter->ns, ns));
}

bool feed_passes(struct feed *f, const struct run_filter *filter, size_t kind, const struct cache_entry *e)
{
        const struct json *object;

        if (filter->life >= 0 && (int)feed_row(f, kind, e)->life != filter->life)
                return false;
        if (!filter->labels.n)
                return true;
        arena_reset(&f->arena, 1 << 20);
        object = cache_parse(f->sources[kind].cache, e, &f->arena);
        return label_selector_matches(&filter->labels, json_at(json_at(object, "metadata"), "labels"));
}

static int by_age(const void *x, const void *y)
{
        const struct row *a = *(const struct row *const *)x, *b = *(const struct row *const *)y;

        if (a->created != b->created)
                return a->created < b->created ? 1 : -1;
        return strcmp(a->text, b->text);
}

void feed_list(struct feed *f, const struct run_filter *filter, const struct caller *caller, struct buf *out)
{
        VEC(const struct row *) rows = {0};

        for (size_t i = 0; i < f->n; i++) {
                const struct cache_entry *e;
                size_t at = 0;

                while ((e = cache_next(f->sources[i].cache, &at)))
                        if (feed_concerns(filter, i, e->ns) && caller_sees(caller, i, e->ns) &&
                            feed_passes(f, filter, i, e))
                                *vec_push(&rows) = feed_row(f, i, e);
        }
        if (rows.n)
                qsort(rows.v, rows.n, sizeof(*rows.v), by_age);
        buf_addc(out, '[');
        for (size_t i = 0; i < rows.n; i++) {
                if (i)
                        buf_addc(out, ',');
                buf_add(out, rows.v[i]->text, rows.v[i]->n);
        }
        buf_addc(out, ']');
        vec_done(&rows);
}

/* ---- changes: all of a turn together, so that what changes twice is told once */

static void change_free(struct feed *f, struct change *c)
{
        map_remove(&f->changes, str_of(c->key));
        list_remove(&c->node);
        free(c->before);
        free(c->gone);
        free(c->ns);
        free(c);
}

/* Most of what changes in an object does not change its row. */
static bool looks_different(struct feed *f, const struct change *c)
{
        const struct cache_entry *e = cache_get(f->sources[c->kind].cache, c->ns, c->name);

        return e && !streq(c->before, feed_row(f, c->kind, e)->text);
}

static void flush(struct defer *d)
{
        struct feed *f = CONTAINER_OF(d, struct feed, flush);

        while (!list_empty(&f->order)) {
                struct change *c = CONTAINER_OF(f->order.next, struct change, node);

                if (c->gone)
                        stream_gone(f->web, c->kind, c->ns, c->name, c->gone);
                if (looks_different(f, c))
                        stream_changed(f->web, c->kind, c->ns, c->name);
                change_free(f, c);
        }
}

/* Taken when the change is heard of: until flush() others look at the object, and the kept row is the new one then. */
static char *row_before(const struct source *s, const struct cache_entry *before)
{
        const struct kept *k = before ? map_get(&s->rows, str_of(before->uid)) : NULL;

        return k && streq(k->row->rv, before->rv) ? xstrdup(k->row->text) : NULL;
}

static struct change *change_of(struct source *s, const struct cache_entry *before,
                                const struct cache_entry *e)
{
        struct feed *f = s->feed;
        size_t ns = strlen(e->ns), name = strlen(e->name), n = 2 + ns + 1 + name + 1;
        struct change *c = xcalloc(1, sizeof(*c) + n), *known;

        c->key[0] = (char)('a' + s->index);
        c->key[1] = '/';
        memcpy(c->key + 2, e->ns, ns);
        c->key[2 + ns] = '/';
        memcpy(c->key + 3 + ns, e->name, name);
        known = map_get(&f->changes, str_of(c->key));
        if (known) {
                free(c);
                return known;
        }
        c->kind = s->index;
        c->before = row_before(s, before);
        c->ns = xstrndup(e->ns, ns);
        c->name = c->key + 3 + ns;
        list_init(&c->node);
        list_append(&f->order, &c->node);
        map_put(&f->changes, str_of(c->key), c);
        return c;
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        struct source *s = arg;
        const struct cache_entry *e = after ? after : before;
        struct feed *f = s->feed;
        struct change *c;

        if (before && (!after || !streq(before->uid, after->uid)))
                forget_row(s, before->uid);
        if (!e || list_empty(&f->web->streams))
                return;
        c = change_of(s, before, e);
        if (before && !c->gone && (!after || !streq(before->uid, after->uid)))
                c->gone = xstrdup(before->uid);
        defer_run(f->web->loop, &f->flush, flush);
}

/* ---- life */

struct cache *feed_cache(const struct feed *f, size_t kind)
{
        return f->sources[kind].cache;
}

size_t feed_index(const struct kind *kind)
{
        size_t i = 0;

        while (kinds_at(i) != kind)
                i++;
        return i;
}

bool feed_ready(const struct feed *f, struct buf *why)
{
        bool ok = true;

        for (size_t i = 0; i < f->n; i++) {
                const struct source *s = &f->sources[i];

                if (!s->reflector || reflector_synced(s->reflector))
                        continue;
                buf_printf(why, "the %s are not listed yet\n", s->kind->type->plural);
                ok = false;
        }
        return ok;
}

void feed_write_objects(struct feed *f, struct buf *out)
{
        if (f->objects)
                object_metrics_write(f->objects, out);
        else
                operator_write_objects(f->web->cfg.op, out);
}

static void start_source(struct feed *f, struct source *s)
{
        const struct web_config *cfg = &f->web->cfg;
        struct cache_config cc = {
                .type = s->kind->type, .ended = kinds_ended(s->kind->type), .metrics = cfg->metrics};
        struct reflector_config rc = {
                .kube = cfg->kube, .ns = f->web->ns, .optional = true, .metrics = cfg->metrics};

        s->cache = cfg->op ? operator_cache(cfg->op, s->kind->type) : NULL;
        if (!s->cache) {
                s->cache = rc.cache = cache_new(&cc);
                if (f->objects)
                        object_metrics_add(f->objects, s->cache);
                s->reflector = reflector_new(&rc);
        }
        cache_listen(s->cache, on_change, s);
}

struct feed *feed_new(struct web *w)
{
        struct feed *f = xcalloc(1, sizeof(*f));

        f->web = w;
        list_init(&f->order);
        timer_init(&f->forget, w->loop, on_forget);
        if (!w->cfg.op)
                f->objects = object_metrics_new(
                        &(struct object_metrics_config){.clock = loop_clock(w->loop)});
        for (size_t i = 0; kinds_at(i); i++, f->n++) {
                f->sources[i] = (struct source){.feed = f, .index = i, .kind = kinds_at(i)};
                start_source(f, &f->sources[i]);
        }
        return f;
}

void feed_free(struct feed *f)
{
        if (!f)
                return;
        defer_cancel(&f->flush);
        timer_cancel(&f->forget);
        while (!list_empty(&f->order))
                change_free(f, CONTAINER_OF(f->order.next, struct change, node));
        map_done(&f->changes);
        for (size_t i = 0; i < f->n; i++) {
                struct source *s = &f->sources[i];

                cache_unlisten(s->cache, on_change, s);
                forget_rows(s);
                reflector_free(s->reflector);
                if (s->reflector)
                        cache_free(s->cache);
        }
        object_metrics_free(f->objects);
        arena_done(&f->arena);
        free(f);
}
