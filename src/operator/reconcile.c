#include "operator/runtime.h"

enum { ROUNDS_MAX = 8 }; /* of look-ups for one decision */
#define OWN_WRITE_RECHECK (2 * USEC_PER_SEC)

void task_free(struct task *t)
{
        if (!t)
                return;
        kube_cancel(t->call);
        scrape_cancel(t);
        if (t->rt->op->cfg.history)
                history_cancel(t->rt->op->cfg.history, t);
        decision_done(&t->decision);
        vec_done(&t->answers);
        arena_pool_give(&t->rt->arenas, &t->arena);
        free(t);
}

/* ---- gather */

struct gathered {
        VEC(struct object) objects;
        struct task *t;
};

static void gather_owned(struct gathered *g, struct source *s, const char *owner_uid)
{
        struct arena *a = &g->t->arena;

        for (const struct cache_entry *e = cache_first_owned(s->cache, owner_uid); e;
             e = cache_next_owned(s->cache, e)) {
                struct object *o;

                /* A child lives beside its request; owner references do not cross namespaces. */
                if (!streq(e->ns, g->t->ns))
                        continue;
                o = vec_push(&g->objects);
                *o = (struct object){
                        .type = s->type,
                        .json = cache_parse(s->cache, e, a),
                        .name = arena_strdup(a, e->name),
                        .uid = arena_strdup(a, e->uid),
                };
        }
}

static int by_name(const void *x, const void *y)
{
        return strcmp(((const struct object *)x)->name, ((const struct object *)y)->name);
}

/* The children of all kinds, in the order of the controller's table and then by name. */
static void gather_children(struct task *t, const char *request_uid)
{
        struct runtime *rt = t->rt;
        struct gathered g = {.t = t};
        size_t begin[CHILD_KINDS_MAX + 2];

        for (size_t i = 1; i < rt->n_sources; i++) {
                struct source *s = &rt->sources[i];

                begin[i] = g.objects.n;
                if (s->through < 0) {
                        gather_owned(&g, s, request_uid);
                } else {
                        size_t from = begin[1 + s->through], to = begin[2 + s->through];

                        for (size_t k = from; k < to; k++)
                                gather_owned(&g, s, g.objects.v[k].uid); /* NOLINT(clang-analyzer-core.*) */
                }
                begin[i + 1] = g.objects.n;
                if (g.objects.n > begin[i] + 1)
                        qsort(g.objects.v + begin[i], g.objects.n - begin[i], sizeof(*g.objects.v), by_name);
        }
        if (g.objects.n)
                t->view.children = arena_memdup(&t->arena, g.objects.v, g.objects.n * sizeof(*g.objects.v));
        t->view.n_children = g.objects.n;
        vec_done(&g.objects);
}

/* Where there is no status subresource, the status is read back from where carry.c keeps it. */
static void restore_status(struct task *t, struct json *request)
{
        const char *text = json_str(json_at(json_at(request, "metadata"), "annotations"),
                                    OPERATOR_ANNOTATION_STATUS);
        struct json *status = text ? json_parse(&t->arena, str_of(text), NULL, NULL) : NULL;

        json_remove(request, "status");
        json_set(&t->arena, request, "status", status);
}

static void gather(struct task *t, const struct cache_entry *entry)
{
        struct json *request = cache_parse(t->rt->sources[0].cache, entry, &t->arena);

        if (!t->rt->c->type->has_status)
                restore_status(t, request);
        t->view.request = request;
        t->view.type = t->rt->c->type;
        t->view.settings = t->rt->c->settings;
        t->view.arena = &t->arena;
        gather_children(t, entry->uid);
}

/* ---- decide */

/* What was decided without the answers is not carried out, nor is the request forgotten. */
static void give_up_asking(struct task *t)
{
        LOG_ERROR(loop_log(t->rt->op->cfg.loop), "A controller wants more look-ups than it may have",
                  F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns), F_STR("name", t->name));
        runtime_finished(t, QUEUE_RETRY, RESULT_ERROR);
}

/* What the history knows costs the server nothing and does not count. */
static bool wants_only_priors(const struct decision *d)
{
        for (size_t i = 0; i < d->n_wants; i++)
                if (d->wants[i].kind != WANT_PRIORS)
                        return false;
        return true;
}

void reconcile_decide(struct task *t)
{
        const struct controller *c = t->rt->c;

        decision_done(&t->decision);
        t->view.answers = t->answers.v;
        t->view.n_answers = t->answers.n;
        t->view.recall = lookup_recall;
        t->view.recall_arg = t;
        c->plan(&t->view, &t->decision);
        c->settle(&t->view, &t->decision);
        if (t->decision.n_wants == 0)
                carry_out(t);
        else if (wants_only_priors(&t->decision) || t->rounds++ < ROUNDS_MAX)
                lookup_start(t);
        else
                give_up_asking(t);
}

static struct task *task_new(struct runtime *rt, struct str key)
{
        struct task *t = xcalloc(1, sizeof(*t));
        struct str rest = key, ns = str_split(&rest, '/');

        t->rt = rt;
        t->item = runtime_item(rt, key);
        t->item->task = t;
        t->arena = arena_pool_take(&rt->arenas);
        t->ns = arena_strndup(&t->arena, ns.p, ns.n);
        t->name = arena_strndup(&t->arena, rest.p, rest.n);
        t->began = clock_boot(loop_clock(rt->op->cfg.loop));
        if (rt->active)
                metric_set(rt->active, rt->running);
        return t;
}

void reconcile_start(struct runtime *rt, struct str key)
{
        struct task *t = task_new(rt, key);
        const struct cache_entry *entry = cache_get(rt->sources[0].cache, t->ns, t->name);

        if (!entry) {
                /* Gone: what it owned goes with it, by its owner references. */
                expectations_clear(t->item);
                settled_clear(t->item);
                free(TAKE_PTR(t->item->ending));
                queue_forget(rt->queue, str_of(t->item->key));
                runtime_finished(t, QUEUE_OK, RESULT_SUCCESS);
                return;
        }
        if (!expectations_met(t->item)) {
                /* The event of our own write brings the key back; this is for writes that no watch of ours shows. */
                queue_add_after(rt->queue, str_of(t->item->key), OWN_WRITE_RECHECK);
                runtime_finished(t, QUEUE_OK, RESULT_REQUEUE_AFTER);
                return;
        }
        gather(t, entry);
        if (meta_str(t->view.request, "deletionTimestamp")) {
                runtime_finished(t, QUEUE_OK, RESULT_SUCCESS);
                return;
        }
        t->view.now = loop_wall(rt->op->cfg.loop);
        reconcile_decide(t);
}
