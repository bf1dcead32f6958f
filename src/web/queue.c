/*
 * What waits to begin, in order, and what stands in its way.
 */
#include "web/internal.h"

enum { QUEUE_MAX = 1000, QUOTAS_MAX = 500 };

static const struct kube_type QUOTA = {"", "v1", "resourcequotas", "ResourceQuota", true, true};

struct waiting {
        struct json *items;
        const char *ns;
};

/* ---- places that the operator knows exactly */

static struct json *time_json(struct arena *a, usec_t when)
{
        char text[TIME_TEXT_MAX];

        return when ? json_string(a, time_format(when, text)) : NULL;
}

static struct json *queued_json(const struct admission_queued *q, const struct kind *kind, struct arena *a)
{
        char since[TIME_TEXT_MAX];
        struct json *one = json_build(a,
                                      "{'resource': %s, 'namespace': %s, 'name': %s, 'position': %zu, "
                                      "'priority': %lld, 'since': %s, 'reason': %s}",
                                      kind->label, q->ns, q->name, q->position, (long long)q->priority,
                                      time_format(q->since, since), q->reason);

        json_set(a, one, "expectedStart", time_json(a, q->starts));
        return one;
}

static void add_queued(struct call *c, struct waiting *w, struct map *known)
{
        struct admission_queued *list = arena_new_array(&c->arena, struct admission_queued, QUEUE_MAX);
        size_t n = c->web->cfg.op ? operator_queue(c->web->cfg.op, w->ns, list, QUEUE_MAX, &c->arena) : 0;

        for (size_t i = 0; i < n; i++) {
                const struct kind *kind = kinds_named(str_of(list[i].kind));
                const char *key;

                if (!kind || !caller_sees(c->caller, feed_index(kind), list[i].ns))
                        continue;
                key = arena_printf(&c->arena, "%s/%s/%s", kind->label, list[i].ns, list[i].name);
                map_put(known, str_of(key), (void *)key);
                json_append(w->items, queued_json(&list[i], kind, &c->arena));
        }
}

/* ---- the others: what their status says, which is also what there is without the operator */

static void add_told(struct call *c, struct waiting *w, size_t kind, const struct cache_entry *e)
{
        struct arena *a = &c->arena;
        const struct json *object = cache_parse(feed_cache(c->web->feed, kind), e, a);
        const struct json *queue = json_at(json_at(object, "status"), "queue");
        struct summary s;
        char text[TIME_TEXT_MAX];
        struct json *one;
        uint64_t position;

        if (!queue || json_len(w->items) >= QUEUE_MAX)
                return;
        summarize(kinds_at(kind), object, a, &s);
        one = json_build(a,
                         "{'resource': %s, 'namespace': %s, 'name': %s, 'position': %p, 'priority': %lld, "
                         "'since': %s, 'reason': %s}",
                         kinds_at(kind)->label, s.ns, s.name,
                         (void *)(s.queue && str_to_u64(str_of(s.queue), &position) ? json_u64(a, position)
                                                                                    : json_null(a)),
                         (long long)(s.priority >= 0 ? s.priority : ADMISSION_PRIORITY_DEFAULT),
                         s.created ? time_format(s.created, text) : NULL, s.sentence);
        json_set(a, one, "expectedStart", time_json(a, s.starts));
        json_append(w->items, one);
}

static void add_others(struct call *c, struct waiting *w, const struct map *known)
{
        for (size_t i = 0; kinds_at(i); i++) {
                const struct cache_entry *e;
                size_t at = 0;

                while ((e = cache_next(feed_cache(c->web->feed, i), &at))) {
                        _cleanup_(free_ptr) char *key = xasprintf("%s/%s/%s", kinds_at(i)->label, e->ns,
                                                                  e->name);

                        if ((!w->ns || streq(w->ns, e->ns)) && !map_get(known, str_of(key)) &&
                            caller_sees(c->caller, i, e->ns) &&
                            feed_row(c->web->feed, i, e)->life == SUMMARY_PENDING)
                                add_told(c, w, i, e);
                }
        }
}

/* ---- limits and quotas */

static struct json *limit_json(unsigned limit, struct arena *a)
{
        return limit ? json_u64(a, limit) : json_null(a);
}

/* NULL: the operator, which has them, is another process. */
static struct json *limits_json(const struct web *w, struct arena *a)
{
        struct admission_limits limits;

        if (!w->cfg.op)
                return NULL;
        limits = operator_limits(w->cfg.op);
        return json_build(a, "{'maxConcurrentRuns': %p, 'maxConcurrentRunsPerNamespace': %p}",
                          (void *)limit_json(limits.runs, a),
                          (void *)limit_json(limits.runs_per_namespace, a));
}

/* NULL: they may not be seen. */
static struct json *quotas_json(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        struct arena *a = &c->arena;
        struct json *list = err ? NULL : json_parse(a, answer->body, NULL, NULL), *quotas = json_array(a);

        if (!json_is(json_at(list, "items"), JSON_ARRAY))
                return NULL;
        json_foreach (q, json_at(list, "items")) {
                const struct json *status = json_at(q, "status");

                json_append(quotas, json_build(a, "{'namespace': %s, 'name': %s, 'hard': %p, 'used': %p}",
                                               meta_str(q, "namespace"), meta_str(q, "name"),
                                               (void *)json_copy(a, json_at(status, "hard")),
                                               (void *)json_copy(a, json_at(status, "used"))));
        }
        return quotas;
}

static void on_quotas(struct call *c, const struct kube_answer *answer, const struct err *err)
{
        const struct waiting *w = c->state;

        call_reply(c, 200,
                   json_build(&c->arena, "{'items': %p, 'limits': %p, 'quotas': %p}", (void *)w->items,
                              (void *)limits_json(c->web, &c->arena), (void *)quotas_json(c, answer, err)));
}

static void tell(struct call *c, const struct run_filter *filter)
{
        _cleanup_(map_done) struct map known = MAP_INIT;
        struct waiting *w = arena_new(&c->arena, struct waiting);
        struct kube_request r = {.verb = KUBE_LIST, .type = &QUOTA, .ns = filter->ns, .limit = QUOTAS_MAX};

        w->ns = filter->ns;
        w->items = json_array(&c->arena);
        add_queued(c, w, &known);
        add_others(c, w, &known);
        c->state = w;
        call_kube(c, &r, on_quotas);
}

void serve_queue(struct call *c)
{
        runs_ask(c, tell);
}
