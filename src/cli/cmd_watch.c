#include "cli/live.h"
#include "cli/people.h"
#include "cli/phases.h"
#include "cli/trouble.h"

#include <math.h>
#include <unistd.h>

enum { LINE_MAX_TEXT = 600, FRAME_MAX = 256 * 1024, EVENTS_MAX = 16, EXIT_TERMINATED = 143 };

/* Changes that come together are drawn together; clocks move every second. */
#define DRAW_AFTER (30 * USEC_PER_MS)
#define DRAW_EVERY USEC_PER_SEC

static const struct usage usage = {
        "watch [KIND/NAME | NAME | KIND]... [OPTION]...",
        "Shows runs while they go on: the tree of their phases with how long each took, what is being done,\n"
        "how far it is and when it will end, redrawn in place. Without a name the table of `get`, live.\n"
        "q or ctrl-C leaves, and the runs go on. It ends by itself when all runs that were named have "
        "ended:\n"
        "exit status 0 when all have succeeded, 1 when one has not, 130 after ctrl-C.\n\n"
        "Where standard output is no terminal it is one line a change.\n\n"
        "Examples:\n"
        "  sonde watch dgdr/llama-70b\n"
        "  sonde watch ac/sorts ap/matmul | tee progress.log\n"
        "  sonde watch -A\n",
};

struct watch;

/* Objects of one type that are watched. */
struct source {
        struct watch *all;
        struct people_cluster *cluster;
        const struct kind *kind; /* of a request; NULL: something beside it */
        struct cache *cache;
        struct reflector *reflector;
        struct watched *of; /* of a run that was named; NULL: of all */
};

/* A run that was named. */
struct watched {
        struct people_run run;
        struct source object, map, events;
        struct arena map_arena; /* the status ConfigMap goes with the run: what it last said is kept */
        struct json *map_seen;
        struct arena object_arena;
        struct json *object_seen; /* as it was last */
        char *told;               /* the last line */
        bool over, deleted;
        enum summary_life life;
};

/* What was last said of a run of the table. */
struct teller {
        char *uid, *label, *told;
};

struct watch {
        struct people p;
        struct people_names names;
        VEC(struct watched *) list;         /* empty: the table */
        VEC(struct people_cluster *) shown; /* in the table */
        VEC(struct source *) sources;
        struct map tellers; /* by uid */
        struct screen screen;
        struct live *live; /* NULL: it is no terminal */
        struct timer soon, clock;
        struct trouble trouble;
        int code;
        bool left;
};

/* ---- drawing */

static int by_time(const void *x, const void *y)
{
        const struct phases_event *a = x, *b = y;

        return (a->when > b->when) - (a->when < b->when);
}

static usec_t time_of(const struct json *event)
{
        const char *const paths[] = {"series.lastObservedTime", "deprecatedLastTimestamp", "eventTime",
                                     "metadata.creationTimestamp"};
        usec_t when;

        for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
                struct str text = json_text(json_path(event, paths[i]));

                if (text.p && time_parse(text, &when))
                        return when;
        }
        return 0;
}

/* All that are known, oldest first. */
static size_t events_of(const struct watched *o, struct arena *a, struct phases_event **ret)
{
        struct phases_event *all = arena_new_array(a, struct phases_event, cache_count(o->events.cache) + 1);
        const struct cache_entry *e;
        size_t n = 0, i = 0;

        while ((e = cache_next(o->events.cache, &i))) {
                const struct json *event = cache_parse(o->events.cache, e, a);

                all[n++] = (struct phases_event){
                        .when = time_of(event),
                        .warning = streq(json_str(event, "type"), "Warning"),
                        .reason = json_str_or(event, "reason", ""),
                        .message = json_str_or(event, "note", ""),
                };
        }
        qsort(all, n, sizeof(*all), by_time);
        *ret = all;
        return n;
}

static void draw_trees(struct watch *w, struct arena *a, struct buf *frame)
{
        for (size_t i = 0; i < w->list.n; i++) {
                struct watched *o = w->list.v[i];
                struct phases t = {.kind = o->run.kind,
                                   .object = o->object_seen ? o->object_seen : o->run.object,
                                   .label = o->run.label,
                                   .status_map = o->map_seen,
                                   .now = loop_wall(w->p.loop),
                                   .screen = w->screen};
                struct phases_event *events;

                t.n_events = events_of(o, a, &events);
                t.events = events;
                if (i)
                        buf_addc(frame, '\n');
                phases_draw(&t, a, frame);
                if (o->deleted)
                        buf_adds(frame, " it was deleted\n");
        }
}

static int by_place(const void *x, const void *y)
{
        const struct people_run *a = x, *b = y;
        int order = strcmp(a->cluster->name, b->cluster->name);

        if (!order && a->kind != b->kind)
                order = a->kind < b->kind ? -1 : 1; /* their table's order */
        if (!order)
                order = strcmp(a->summary.ns, b->summary.ns);
        return order ? order : strcmp(a->summary.name, b->summary.name);
}

static bool all_are_known(const struct watch *w)
{
        for (size_t i = 0; i < w->sources.n; i++)
                if (!reflector_synced(w->sources.v[i]->reflector))
                        return false;
        return true;
}

/* VIEW is as W's, with an arena of its own. */
static void draw_table(struct watch *w, struct people *view, struct buf *frame)
{
        struct people_runs runs = {0};
        const struct cache_entry *e;
        struct screen screen = w->screen;
        char *text = NULL;
        size_t n = 0;

        for (size_t i = 0; i < w->sources.n; i++) {
                struct source *s = w->sources.v[i];
                size_t at = 0;

                while ((e = cache_next(s->cache, &at)))
                        people_take(view, s->cluster, s->kind, cache_parse(s->cache, e, &view->arena),
                                    vec_push(&runs));
        }
        if (runs.n)
                qsort(runs.v, runs.n, sizeof(*runs.v), by_place);
        screen.to = open_memstream(&text, &n);
        if (screen.to && runs.n)
                people_table(view, &runs, false, &screen);
        else if (screen.to)
                fprintf(screen.to, "%s; q leaves\n",
                        all_are_known(w) ? "there are no runs yet" : "asking for the runs");
        if (screen.to && fclose(screen.to) == 0)
                buf_add(frame, text, n);
        free(text);
        vec_done(&runs);
}

static void draw(struct watch *w)
{
        _cleanup_(buf_done) struct buf frame = BUF_INIT(FRAME_MAX);
        struct people view = w->p; /* the same clusters and options, at this moment */

        if (!w->live)
                return;
        view.arena = (struct arena)ARENA_INIT;
        view.now = loop_wall(w->p.loop);
        w->screen.width = live_columns(w->live);
        if (w->list.n)
                draw_trees(w, &view.arena, &frame);
        else
                draw_table(w, &view, &frame);
        trouble_draw(&w->trouble, &view.arena, &w->screen, &frame);
        live_draw(w->live, buf_str(&frame));
        arena_done(&view.arena);
}

static void on_soon(struct timer *t)
{
        draw(CONTAINER_OF(t, struct watch, soon));
}

static void on_clock(struct timer *t)
{
        struct watch *w = CONTAINER_OF(t, struct watch, clock);

        draw(w);
        timer_after(&w->clock, DRAW_EVERY);
}

static void draw_soon(struct watch *w)
{
        if (w->live && !timer_pending(&w->soon))
                timer_after(&w->soon, DRAW_AFTER);
}

/* ---- one line a change */

/* *TOLD is the last line about it. */
static void tell(char **told, const char *label, const struct summary *s)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_MAX_TEXT);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        people_line(&line, label, s);
        if (!buf_cstr(&line) || streq(buf_cstr(&line), *told))
                return;
        free(*told);
        *told = xstrdup(buf_cstr(&line));
        people_line_eta(&line, s);
        if (buf_cstr(&line))
                printf("%s\n", text_clean(&a, buf_cstr(&line)));
        fflush(stdout);
}

static struct teller *teller_of(struct watch *w, const char *uid, const char *label)
{
        struct teller *t = map_get(&w->tellers, str_of(uid));

        if (t)
                return t;
        t = xcalloc(1, sizeof(*t));
        t->uid = xstrdup(uid);
        t->label = xstrdup(label);
        map_put(&w->tellers, str_of(t->uid), t);
        return t;
}

static void teller_free(struct teller *t)
{
        free(t->uid);
        free(t->label);
        free(t->told);
        free(t);
}

/* ---- the end */

static void end_if_all(struct watch *w)
{
        for (size_t i = 0; i < w->list.n; i++)
                if (!w->list.v[i]->over)
                        return;
        draw(w);
        loop_stop(w->p.loop, w->code);
}

static void end(struct watch *w, struct watched *o, const struct summary *s)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;

        o->over = true;
        o->life = s ? s->life : SUMMARY_FAILED;
        if (o->deleted || s->life != SUMMARY_SUCCEEDED)
                w->code = 1;
        if (!w->live) {
                const char *why = o->deleted ? "" : text_clean(&a, people_reason(&a, s));

                printf("%s %s%s%s\n", o->run.label, o->deleted ? "was deleted" : summary_life_name(s->life),
                       *why ? ": " : "", why);
                fflush(stdout);
        }
        end_if_all(w);
}

/* ---- what happens */

static void look_at_run(struct watch *w, struct watched *o, const struct cache_entry *e)
{
        struct summary s;

        arena_reset(&o->object_arena, SIZE_MAX);
        o->object_seen = cache_parse(o->object.cache, e, &o->object_arena);
        summarize(o->run.kind, o->object_seen, &o->object_arena, &s);
        if (!w->live)
                tell(&o->told, o->run.label, &s);
        if (summary_over(&s) && !o->over)
                end(w, o, &s);
}

static void is_gone(struct watch *w, struct watched *o)
{
        if (o->over)
                return;
        o->deleted = true;
        end(w, o, NULL);
}

static void look_at_any(struct source *s, const struct cache_entry *e)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary sum;
        struct teller *t;

        if (s->all->live)
                return;
        summarize(s->kind, cache_parse(s->cache, e, &a), &a, &sum);
        t = teller_of(s->all, e->uid,
                      arena_printf(&a, "%s%s%s/%s", s->cluster->ns ? "" : sum.ns, s->cluster->ns ? "" : "/",
                                   s->kind->label, sum.name));
        tell(&t->told, t->label, &sum);
}

/* One of the table that was told of is gone. */
static void forget_any(struct source *s, const struct cache_entry *e)
{
        struct teller *t = map_remove(&s->all->tellers, str_of(e->uid));

        if (!t)
                return;
        printf("%s was deleted\n", t->label);
        fflush(stdout);
        teller_free(t);
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        struct source *s = arg;
        struct watched *o = s->of;

        if (!o && before && (!after || !streq(before->uid, after->uid)))
                forget_any(s, before);
        if (!o && after)
                look_at_any(s, after);
        else if (o && s == &o->object) {
                /* Another one of that name is not the one that was named. */
                if (after && streq(after->uid, o->run.summary.uid))
                        look_at_run(s->all, o, after);
                else
                        is_gone(s->all, o);
        } else if (o && s == &o->map && after) {
                arena_reset(&o->map_arena, SIZE_MAX);
                o->map_seen = cache_parse(s->cache, after, &o->map_arena);
        }
        draw_soon(s->all);
}

static void on_synced(void *arg, bool first)
{
        struct source *s = arg;

        if (s->of && s == &s->of->object && !cache_get_uid(s->cache, s->of->run.summary.uid))
                is_gone(s->all, s->of);
        draw_soon(s->all);
}

static void on_key(void *arg, char key)
{
        struct watch *w = arg;

        if (key != 'q' && key != 'Q')
                return;
        w->left = true;
        loop_stop(w->p.loop, 0);
}

static void on_signal(void *arg, int signo)
{
        struct watch *w = arg;

        w->left = true;
        loop_stop(w->p.loop, signo == SIGTERM ? EXIT_TERMINATED : EXIT_INTERRUPTED);
}

static void on_resize(void *arg)
{
        draw(arg);
}

static void on_trouble(void *arg)
{
        draw_soon(arg);
}

static void on_hopeless(void *arg)
{
        struct watch *w = arg;

        loop_stop(w->p.loop, 1);
}

/* ---- all */

static void begin(struct source *s, struct watch *w, struct people_cluster *c, const struct kube_type *type,
                  const char *ns, const char *fields)
{
        struct reflector_config rc = {.kube = c->kube,
                                      .ns = ns,
                                      .label_selector = s->of ? NULL : w->p.selector,
                                      .field_selector = fields,
                                      .optional = true,
                                      .on_synced = on_synced,
                                      .arg = s};

        s->all = w;
        s->cluster = c;
        rc.cache = s->cache = cache_new(&(struct cache_config){.type = type});
        cache_listen(s->cache, on_change, s);
        s->reflector = reflector_new(&rc);
}

/* The run, what it reports, and what is told of it. */
static void begin_run(struct watch *w, struct watched *o)
{
        struct people_run *r = &o->run;
        struct arena *a = &w->p.arena;
        struct run_kind names;

        o->object.of = o->map.of = o->events.of = o;
        begin(&o->events, w, r->cluster, &KUBE_EVENT, r->summary.ns,
              arena_printf(a, "regarding.uid=%s", r->summary.uid));
        if (kinds_run(r->kind, r->object, a, &names))
                begin(&o->map, w, r->cluster, &KUBE_CONFIGMAP, r->summary.ns,
                      arena_printf(a, "metadata.name=%s", names.status_map));
        begin(&o->object, w, r->cluster, r->kind->type, r->summary.ns,
              arena_printf(a, "metadata.name=%s", r->summary.name));
        trouble_watch(&w->trouble, r->cluster, o->object.reflector);
}

static int find_runs(struct watch *w)
{
        for (size_t i = 0; i < w->names.n; i++) {
                struct watched *o;

                if (!w->names.v[i].name) /* a kind: its table */
                        continue;
                o = *vec_push(&w->list) = xcalloc(1, sizeof(*o));
                if (people_find(&w->p, people_cluster(&w->p), &w->names.v[i], &o->run) < 0)
                        return -1;
        }
        return 0;
}

static void begin_cluster(struct watch *w, struct people_cluster *c)
{
        for (size_t k = 0; kinds_at(k); k++) {
                struct source *s;

                if (w->names.n && w->names.v[0].kind != kinds_at(k))
                        continue;
                s = *vec_push(&w->sources) = xcalloc(1, sizeof(*s));
                s->kind = kinds_at(k);
                begin(s, w, c, kinds_at(k)->type, c->ns, NULL);
                trouble_watch(&w->trouble, c, s->reflector);
        }
}

/* Whether C answers, takes the selector and has our kinds: if not, that is said, as `get` says it. */
static bool can_list(const struct watch *w, struct people_cluster *c)
{
        struct people view = w->p; /* what is listed is watched later, and not kept */
        struct people_runs runs = {0};
        int r;

        view.arena = (struct arena)ARENA_INIT;
        r = people_list(&view, c, &w->names, &runs);
        vec_done(&runs);
        arena_done(&view.arena);
        return r == 0;
}

/* Of several clusters, one that does not answer does not hide the others. Below 0: none can be shown. */
static int find_clusters(struct watch *w)
{
        for (size_t i = 0; i < w->p.clusters.n; i++)
                if (can_list(w, w->p.clusters.v[i]))
                        *vec_push(&w->shown) = w->p.clusters.v[i];
        return w->shown.n ? 0 : -1;
}

static void begin_screen(struct watch *w)
{
        const char *term = getenv("TERM");

        w->screen = screen_of(stdout);
        if (!w->screen.terminal || !term || streq(term, "dumb"))
                return;
        w->live = live_new(&(struct live_config){.loop = w->p.loop,
                                                 .in = STDIN_FILENO,
                                                 .out = STDOUT_FILENO,
                                                 .on_key = on_key,
                                                 .on_resize = on_resize,
                                                 .arg = w});
        timer_after(&w->clock, DRAW_EVERY);
}

/* What a person may do next. */
static void say_next(const struct watch *w)
{
        if (w->left && !w->list.n)
                printf("the runs go on\n");
        for (size_t i = 0; i < w->list.n; i++) {
                const struct watched *o = w->list.v[i];
                const char *label = o->run.label;

                if (!o->over)
                        printf("%s goes on; '%s wait %s' waits for its end\n", label, cli_name(), label);
                else if (!o->deleted)
                        printf("next: %s %s %s\n", cli_name(),
                               o->life == SUMMARY_SUCCEEDED ? "results" : "explain", label);
        }
}

static int run(struct watch *w)
{
        bool told;
        int code;

        if (w->names.n && w->p.clusters.n > 1 && w->names.v[0].name) {
                cli_error("a run that is named is in one cluster: one --context is wanted");
                return EXIT_USAGE;
        }
        if (find_runs(w) < 0 || (!w->list.n && find_clusters(w) < 0))
                return 1;
        timer_init(&w->soon, w->p.loop, on_soon);
        timer_init(&w->clock, w->p.loop, on_clock);
        (void)loop_on_signal(w->p.loop, SIGINT, on_signal, w);
        (void)loop_on_signal(w->p.loop, SIGTERM, on_signal, w);
        begin_screen(w);
        w->trouble = (struct trouble){
                .drawn = w->live != NULL, .on_change = on_trouble, .on_hopeless = on_hopeless, .arg = w};
        trouble_begin(&w->trouble, w->p.loop);
        for (size_t i = 0; i < w->list.n; i++)
                begin_run(w, w->list.v[i]);
        for (size_t i = 0; i < w->shown.n; i++)
                begin_cluster(w, w->shown.v[i]);
        code = loop_run(w->p.loop);
        timer_cancel(&w->soon);
        timer_cancel(&w->clock);
        told = w->live != NULL;
        live_free(TAKE_PTR(w->live));
        if (told || w->left)
                say_next(w);
        trouble_done(&w->trouble);
        return people_finish(code);
}

static void source_done(struct source *s)
{
        if (s->reflector)
                reflector_free(s->reflector);
        if (s->cache)
                cache_free(s->cache);
}

static void done(struct watch *w)
{
        struct teller *t;

        for (size_t i = 0; i < w->list.n; i++) {
                struct watched *o = w->list.v[i];

                source_done(&o->object);
                source_done(&o->map);
                source_done(&o->events);
                arena_done(&o->map_arena);
                arena_done(&o->object_arena);
                free(o->told);
                free(o);
        }
        for (size_t i = 0; i < w->sources.n; i++) {
                source_done(w->sources.v[i]);
                free(w->sources.v[i]);
        }
        map_foreach (i, &w->tellers, t)
                teller_free(t);
        map_done(&w->tellers);
        vec_done(&w->shown);
        vec_done(&w->sources);
        vec_done(&w->list);
        vec_done(&w->names);
        people_done(&w->p);
}

int cmd_watch(int argc, char **argv)
{
        struct watch w = {.p = PEOPLE_INIT};
        const struct option_def options[] = {
                PEOPLE_SELECT_OPTIONS(&w.p),
                PEOPLE_CLUSTERS_OPTIONS(&w.p),
                {0},
        };
        int code = options_parse(options, &usage, &argc, argv);

        if (code < 0 && people_read_names(argc, argv, false, &w.names) < 0)
                code = EXIT_USAGE;
        if (code < 0)
                code = people_open(&w.p, PEOPLE_SEVERAL) < 0 ? 1 : run(&w);
        done(&w);
        return code;
}
