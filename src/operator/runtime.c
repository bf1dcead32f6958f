#include "operator/runtime.h"

#include "kinds/kinds.h"

#include <unistd.h>

enum { CONCURRENCY_DEFAULT = 16, KEY_MAX = 63 + 1 + 253 + 1 };
#define PUMP_TIME    (10 * USEC_PER_MS) /* then others get their turn: the lease, a scrape, the next list */
#define DRAIN_EVENTS (2 * USEC_PER_SEC) /* for the last events to be written */
#define DRAIN_ASK    (20 * USEC_PER_MS)
#define AWAIT_ASK    USEC_PER_SEC
#define AWAIT_GRANT  (60 * USEC_PER_SEC) /* right after its start a server forbids what it allows later */

/* ---- items */

struct item *runtime_item(struct runtime *rt, struct str key)
{
        struct item *item = map_get(&rt->items, key);

        if (item)
                return item;
        item = xcalloc(1, sizeof(*item) + key.n + 1);
        memcpy(item->key, key.p, key.n);
        map_put(&rt->items, str_of(item->key), item);
        return item;
}

static void item_free(struct item *item)
{
        expectations_clear(item);
        settled_clear(item);
        free(item->ending);
        free(item);
}

void item_end(struct item *item, const char *uid)
{
        free(item->ending);
        item->ending = xstrdup(uid);
}

bool item_ends(const struct item *item, const char *uid)
{
        return item->ending && streq(item->ending, uid);
}

void runtime_forget_item(struct runtime *rt, struct str key)
{
        struct item *item = map_remove(&rt->items, key);

        if (item)
                item_free(item);
}

/* ---- from a change to the request it concerns */

/* STR_NULL: it is longer than any that a server takes. */
static struct str request_key(const struct cache_entry *request, char key[KEY_MAX])
{
        size_t ns = strlen(request->ns), name = strlen(request->name);

        if (ns + 1 + name > KEY_MAX)
                return STR_NULL;
        memcpy(key, request->ns, ns);
        key[ns] = '/';
        memcpy(key + ns + 1, request->name, name);
        return str_n(key, ns + 1 + name);
}

static void add_request(struct runtime *rt, const struct cache_entry *request, bool initial)
{
        char text[KEY_MAX];
        struct str key = request_key(request, text);

        if (key.p)
                queue_add(rt->queue, key, initial ? QUEUE_LOW : QUEUE_NORMAL);
}

/* Climbs from an owner's uid to the request, through other children if need be. */
static const struct cache_entry *owner_request(const struct runtime *rt, const struct source *s,
                                               const char *owner)
{
        for (size_t depth = 0; owner[0] && depth < rt->n_sources; depth++) {
                const struct cache_entry *e;

                if (s->through < 0)
                        return cache_get_uid(rt->sources[0].cache, owner);
                s = &rt->sources[1 + s->through];
                e = cache_get_uid(s->cache, owner);
                if (!e)
                        return NULL;
                owner = e->owner;
        }
        return NULL;
}

static void on_child(void *arg, enum cache_change change, const struct cache_entry *before,
                     const struct cache_entry *after, bool initial)
{
        struct source *s = arg;
        const struct cache_entry *was = before ? owner_request(s->rt, s, before->owner) : NULL;
        const struct cache_entry *is = after ? owner_request(s->rt, s, after->owner) : NULL;

        if (is)
                add_request(s->rt, is, initial);
        if (was && was != is)
                add_request(s->rt, was, initial);
}

static void on_request(void *arg, enum cache_change change, const struct cache_entry *before,
                       const struct cache_entry *after, bool initial)
{
        struct source *s = arg;

        add_request(s->rt, after ? after : before, initial);
}

bool operator_leads(const struct operator* o)
{
        return o->leading && (!o->cfg.lease || lease_held(o->cfg.lease));
}

/* ---- the pump: takes requests into work while there is room */

static bool is_passing(const struct source *s)
{
        return s->kind && s->kind->passing;
}

static bool all_synced(const struct runtime *rt)
{
        for (size_t i = 0; i < rt->n_sources; i++)
                if (!reflector_synced(rt->sources[i].reflector))
                        return false;
        return true;
}

unsigned runtime_limit(const struct runtime *rt)
{
        return rt->op->cfg.concurrency ? rt->op->cfg.concurrency : CONCURRENCY_DEFAULT;
}

static void pump_runtime(struct runtime *rt)
{
        unsigned limit = runtime_limit(rt);
        const struct clock *clock = loop_clock(rt->op->cfg.loop);
        usec_t until = usec_add(clock_boot(clock), PUMP_TIME);

        if (!all_synced(rt))
                return;
        while (rt->running < limit) {
                struct str key;

                if (clock_boot(clock) >= until) {
                        runtime_pump_soon(rt->op);
                        return;
                }
                key = queue_take(rt->queue);
                if (!key.p)
                        return;
                rt->running++;
                reconcile_start(rt, key);
        }
}

/* ---- who may begin */

struct admission_id runtime_id(const struct task *t)
{
        return (struct admission_id){.of = t->rt,
                                     .kind = t->rt->label,
                                     .key = str_of(t->item->key),
                                     .uid = meta_str(t->view.request, "uid")};
}

static void decide_again(void *of, struct str key)
{
        queue_add(((struct runtime *)of)->queue, key, QUEUE_NORMAL);
}

/* A kind that the cluster does not have, or does not show: nothing of this controller's is decided, and nobody waits for it. */
static bool is_missing(const struct runtime *rt)
{
        bool long_since = usec_sub(loop_now(rt->op->cfg.loop), rt->op->led_at) >= AWAIT_GRANT;

        for (size_t i = 0; i < rt->n_sources; i++) {
                const struct err *err = reflector_error(rt->sources[i].reflector);

                if (!reflector_synced(rt->sources[i].reflector) && err &&
                    (err->code == E_NOT_FOUND || (err->code == E_FORBIDDEN && long_since)))
                        return true;
        }
        return false;
}

static void await_requests(struct runtime *rt)
{
        const struct cache_entry *e;
        char text[KEY_MAX];
        size_t i = 0;

        while ((e = cache_next(rt->sources[0].cache, &i))) {
                const struct admission_id id = {
                        .of = rt, .kind = rt->label, .key = request_key(e, text), .uid = e->uid};

                if (id.key.p)
                        admissions_await(rt->op->admissions, &id);
        }
}

/* Who holds a slot is known when all that were there have been decided. Of a kind that cannot be listed nobody tells us. */
static void await_all(struct operator* o)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (!all_synced(&o->runtimes[i]) && !is_missing(&o->runtimes[i])) {
                        timer_after(&o->await, AWAIT_ASK);
                        return;
                }
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (all_synced(&o->runtimes[i]))
                        await_requests(&o->runtimes[i]);
        o->awaits_all = true;
        admissions_all_known(o->admissions);
}

static bool any_running(const struct operator* o)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (o->runtimes[i].running)
                        return true;
        return false;
}

static bool events_wait(const struct operator* o)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (events_pending(o->runtimes[i].events))
                        return true;
        return false;
}

static void finish_drain(struct operator* o)
{
        void (*drained)(void *arg) = o->drained;
        usec_t now = loop_now(o->cfg.loop);

        if (any_running(o))
                return;
        if (!o->drain_until)
                o->drain_until = usec_add(now, DRAIN_EVENTS);
        if (drained && events_wait(o) && now < o->drain_until) {
                timer_after(&o->drain, DRAIN_ASK);
                return;
        }
        o->drained = NULL;
        if (drained)
                drained(o->drained_arg);
}

/* There is no room for what is ready. */
static bool has_backlog(const struct runtime *rt)
{
        return rt->running >= runtime_limit(rt) && queue_ready(rt->queue);
}

static void pump(struct defer *d)
{
        struct operator* o = CONTAINER_OF(d, struct operator, pump);
        bool backlog = false;

        loop_set_backlog(o->cfg.loop, false);
        if (o->draining) {
                finish_drain(o);
                return;
        }
        if (!operator_leads(o))
                return;
        if (o->admissions && !o->awaits_all)
                await_all(o);
        for (size_t i = 0; i < o->cfg.n_controllers; i++) {
                pump_runtime(&o->runtimes[i]);
                backlog |= has_backlog(&o->runtimes[i]);
        }
        loop_set_backlog(o->cfg.loop, backlog);
}

/* At the end of this turn of the loop: by then a batch of changes is in the caches as a whole. */
void runtime_pump_soon(struct operator* o)
{
        if (!o->freeing)
                defer_run(o->cfg.loop, &o->pump, pump);
}

static void on_drain_timer(struct timer *t)
{
        runtime_pump_soon(CONTAINER_OF(t, struct operator, drain));
}

static void on_await_timer(struct timer *t)
{
        runtime_pump_soon(CONTAINER_OF(t, struct operator, await));
}

static void on_queue_ready(void *arg)
{
        runtime_pump_soon(((struct runtime *)arg)->op);
}

static void add_all(struct runtime *rt)
{
        const struct cache_entry *e;
        size_t i = 0;

        while ((e = cache_next(rt->sources[0].cache, &i)))
                add_request(rt, e, true);
}

/*
 * What does not stay is listed when the rest is there: it is together in memory then, and leaves no holes when it goes.
 */
static void begin_passing(struct runtime *rt)
{
        for (size_t i = 0; i < rt->n_sources; i++)
                if (!is_passing(&rt->sources[i]) && !reflector_synced(rt->sources[i].reflector))
                        return;
        for (size_t i = 0; i < rt->n_sources; i++)
                if (is_passing(&rt->sources[i]))
                        reflector_begin(rt->sources[i].reflector);
}

static void on_synced(void *arg, bool first)
{
        struct source *s = arg;
        struct item *item;

        /* Whatever was written before this list is in it, or is gone. */
        map_foreach (i, &s->rt->items, item)
                if (item->expectations)
                        queue_add(s->rt->queue, str_of(item->key), QUEUE_NORMAL);
        if (s->absent && !reflector_absent(s->reflector)) /* what waits for the kind need not wait longer */
                add_all(s->rt);
        s->absent = reflector_absent(s->reflector);
        begin_passing(s->rt);
        runtime_pump_soon(s->rt->op);
}

void runtime_finished(struct task *t, enum queue_outcome outcome, enum reconcile_result result)
{
        struct runtime *rt = t->rt;
        struct item *item = t->item;
        usec_t took = usec_sub(clock_boot(loop_clock(rt->op->cfg.loop)), t->began);

        runtime_metrics_finished(rt, outcome, result, took);
        rt->running--;
        item->task = NULL;
        queue_done(rt->queue, str_of(item->key), outcome);
        task_free(t);
        if (!item->expectations && !item->settled && !item->ending)
                runtime_forget_item(rt, str_of(item->key));
        runtime_pump_soon(rt->op);
}

struct source *runtime_source(struct runtime *rt, const struct kube_type *type)
{
        for (size_t i = 1; i < rt->n_sources; i++)
                if (rt->sources[i].type == type)
                        return &rt->sources[i];
        return NULL;
}

bool runtime_may_send(void *arg)
{
        const struct operator_config *cfg = &((struct runtime *)arg)->op->cfg;

        return (!cfg->lease || lease_held(cfg->lease)) && (!cfg->may_send || cfg->may_send(cfg->arg));
}

/* ---- life */

/* KIND is that of children, NULL for the requests. */
static void start_source(struct runtime *rt, const struct child_kind *kind, const char *selector)
{
        struct source *s = &rt->sources[rt->n_sources];
        struct reflector_config rc = {
                .kube = rt->op->cfg.kube,
                .ns = rt->op->ns,
                .label_selector = selector,
                .optional = kind && kind->optional,
                .held = kind && kind->passing,
                .metrics = rt->op->cfg.metrics,
                .on_synced = on_synced,
                .arg = s,
        };
        struct cache_config cc = {
                .type = kind ? kind->type : rt->c->type,
                .project = kind ? kind->project : rt->c->project,
                .owner_label = kind && kind->loose ? OPERATOR_LABEL_REQUEST : NULL,
                .metrics = rt->op->cfg.metrics,
        };

        cc.ended = cc.type == &KUBE_JOB ? retire_job_ended : kinds_ended(cc.type);
        *s = (struct source){.rt = rt, .type = cc.type, .kind = kind, .cache = cache_new(&cc)};
        s->through = kind ? kind->through : -1;
        cache_listen(s->cache, rt->n_sources ? on_child : on_request, s);
        runtime_metrics_source(s);
        rt->n_sources++;
        rc.cache = s->cache;
        s->reflector = reflector_new(&rc);
}

static const char *label_of(const struct controller *c)
{
        for (size_t i = 0; kinds_at(i); i++)
                if (kinds_at(i)->type == c->type)
                        return kinds_at(i)->label;
        return c->name;
}

static void start_runtime(struct operator* o, struct runtime *rt, const struct controller *c)
{
        struct queue_config qc = {
                .name = c->name, .metrics = o->cfg.metrics, .on_ready = on_queue_ready, .arg = rt};
        struct events_config ec = {
                .kube = o->cfg.kube,
                .instance = o->instance,
                .metrics = o->cfg.metrics,
                .may_send = runtime_may_send,
                .may_send_arg = rt,
        };
        _cleanup_(free_ptr) char *reporter = xasprintf("sonde.dev/%s", c->name);
        _cleanup_(free_ptr) char *selector = xasprintf(OPERATOR_LABEL_CONTROLLER "=%s", c->name);

        *rt = (struct runtime){.op = o, .c = c, .label = label_of(c)};
        ec.controller = reporter;
        rt->manager = xasprintf("sonde-%s", c->name);
        rt->queue = queue_new(o->cfg.loop, &qc);
        rt->events = events_new(&ec);
        runtime_metrics_init(rt);
        start_source(rt, NULL, c->selector);
        for (size_t i = 0; i < c->n_children && i < CHILD_KINDS_MAX; i++)
                start_source(rt, &c->children[i], selector);
}

static char *host_name(void)
{
        char name[128] = "";

        if (gethostname(name, sizeof(name) - 1) < 0)
                return xstrdup("sonde");
        return xstrdup(name);
}

struct operator* operator_new(const struct operator_config *config)
{
        struct operator* o = xcalloc(1, sizeof(*o));

        o->cfg = *config;
        o->made_at = loop_now(config->loop);
        o->ns = xstrdup(config->ns);
        o->instance = config->instance ? xstrdup(config->instance) : host_name();
        o->runtimes = xcalloc(config->n_controllers, sizeof(*o->runtimes));
        timer_init(&o->drain, config->loop, on_drain_timer);
        timer_init(&o->await, config->loop, on_await_timer);
        if (config->limits.runs || config->limits.runs_per_namespace)
                o->admissions = admissions_new(&(struct admissions_config){
                        .limits = config->limits, .again = decide_again, .metrics = config->metrics});
        operator_metrics_init(o);
        for (size_t i = 0; i < config->n_controllers; i++)
                start_runtime(o, &o->runtimes[i], config->controllers[i]);
        return o;
}

static void stop_runtime(struct runtime *rt)
{
        struct item *item;

        for (size_t i = 0; i < rt->n_sources; i++)
                reflector_free(rt->sources[i].reflector);
        map_foreach (i, &rt->items, item) {
                task_free(item->task);
                item_free(item);
        }
        map_done(&rt->items);
        arena_pool_done(&rt->arenas);
        for (size_t i = 0; i < rt->n_sources; i++)
                cache_free(rt->sources[i].cache);
        events_free(rt->events);
        free(rt->manager);
        queue_free(rt->queue);
}

void operator_free(struct operator* o)
{
        if (!o)
                return;
        o->freeing = true;
        operator_metrics_done(o);
        defer_cancel(&o->pump);
        timer_cancel(&o->drain);
        timer_cancel(&o->await);
        loop_set_backlog(o->cfg.loop, false);
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                stop_runtime(&o->runtimes[i]);
        object_metrics_free(o->objects);
        admissions_free(o->admissions);
        free(o->runtimes);
        free(o->ns);
        free(o->instance);
        free(o);
}

void operator_lead(struct operator* o)
{
        if (o->admissions) {
                admissions_reset(o->admissions);
                o->awaits_all = false;
                o->led_at = loop_now(o->cfg.loop);
                for (size_t i = 0; i < o->cfg.n_controllers; i++)
                        add_all(&o->runtimes[i]);
        }
        o->leading = true;
        runtime_pump_soon(o);
}

void operator_drain(struct operator* o, void (*done)(void *arg), void *arg)
{
        o->draining = true;
        o->drained = done;
        o->drained_arg = arg;
        runtime_pump_soon(o);
}

bool operator_synced(const struct operator* o)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (!all_synced(&o->runtimes[i]))
                        return false;
        return true;
}

bool operator_idle(const struct operator* o)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++) {
                const struct runtime *rt = &o->runtimes[i];
                struct item *item;

                if (rt->running || queue_ready(rt->queue) || events_pending(rt->events))
                        return false;
                map_foreach (k, &rt->items, item)
                        if (item->expectations)
                                return false;
        }
        return operator_synced(o);
}

size_t operator_queue(const struct operator* o, const char *ns, struct admission_queued *ret, size_t max,
                      struct arena *a)
{
        return o->admissions ? admissions_queue(o->admissions, ns, ret, max, a) : 0;
}

struct admission_limits operator_limits(const struct operator* o)
{
        return o->cfg.limits;
}

struct cache *operator_cache(const struct operator* o, const struct kube_type *type)
{
        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                if (o->runtimes[i].c->type == type)
                        return o->runtimes[i].sources[0].cache;
        return NULL;
}

static bool source_ready(const struct source *s, usec_t max_age, struct buf *why)
{
        bool absent = reflector_absent(s->reflector);
        const struct err *err = absent ? NULL : reflector_error(s->reflector);
        usec_t age = reflector_age(s->reflector);
        bool ok = reflector_synced(s->reflector) && age <= max_age;

        buf_printf(why, "[%c]cache %s/%s: %zu objects, heard %llu s ago%s%s%s\n", ok ? '+' : '-',
                   s->rt->c->name, s->type->plural, cache_count(s->cache),
                   (unsigned long long)(age / USEC_PER_SEC), absent ? ", not installed" : "", err ? ", " : "",
                   err ? err->text : "");
        return ok;
}

bool operator_ready(const struct operator* o, usec_t max_age, struct buf *why)
{
        bool ok = true;

        for (size_t i = 0; i < o->cfg.n_controllers; i++)
                for (size_t k = 0; k < o->runtimes[i].n_sources; k++)
                        ok = source_ready(&o->runtimes[i].sources[k], max_age, why) && ok;
        return ok;
}
