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

static void decide(struct task *t)
{
        const struct controller *c = t->rt->c;

        decision_done(&t->decision);
        t->view.answers = t->answers.v;
        t->view.n_answers = t->answers.n;
        t->view.recall = lookup_recall;
        t->view.recall_arg = t;
        c->plan(&t->view, &t->decision);
        c->settle(&t->view, &t->decision);
}

static bool is_same_place(const struct admission *a, const struct admission *b)
{
        return a->admitted == b->admitted && a->position == b->position && a->starts == b->starts &&
               streq(a->reason, b->reason);
}

bool task_runs(const struct task *t)
{
        for (size_t i = 0; i < t->view.n_children; i++)
                if (t->view.children[i].type == &KUBE_JOB && !retire_job_ended(t->view.children[i].json))
                        return true;
        return false;
}

/* What has begun and not got on gave its slot back: it goes on only in its turn, or all do when that is mended. */
static struct admission_wish wish_of(const struct task *t, const struct admission_id *id)
{
        struct admission_wish wish = t->decision.admission;
        const struct json *status = t->decision.status ? t->decision.status
                                                       : json_at(t->view.request, "status");
        struct str ends = json_text(json_path(status, "progress.estimatedCompletion.mid"));

        wish.now = t->view.now;
        if (!ends.p || !time_parse(ends, &wish.ends))
                wish.ends = 0;
        if (wish.stand == ADMISSION_HOLDS && !task_runs(t) &&
            (stall_stands(t) || admissions_yielded(t->rt->op->admissions, id)))
                wish.stand = ADMISSION_WAITS;
        return wish;
}

/* What the request wants is told. True: that has changed where it stands, and it is decided once more. */
static bool stands_elsewhere(struct task *t)
{
        struct admissions *admissions = t->rt->op->admissions;
        const struct admission_id id = runtime_id(t);
        const struct decision *d = &t->decision;
        const struct admission_wish wish = wish_of(t, &id);
        struct admission before = t->admission;

        t->held_back = false;
        /* A slot is given back when that is written, see finish(). */
        if (wish.stand == ADMISSION_NONE || (d->n_wants && wish.stand == ADMISSION_WAITS)) {
                admissions_heard(admissions, &id);
                return false;
        }
        admissions_tell(admissions, &id, &wish);
        if (wish.stand == ADMISSION_HOLDS)
                return false;
        t->admission = admissions_place(admissions, &id, &t->arena);
        t->held_back = d->admission.stand == ADMISSION_HOLDS && d->exist.n && !t->admission.admitted;
        return d->admission.stand == ADMISSION_WAITS && !is_same_place(&t->admission, &before);
}

/* Where there is a limit. */
static void decide_with_place(struct task *t)
{
        const struct admission_id id = runtime_id(t);

        t->admission = admissions_place(t->rt->op->admissions, &id, &t->arena);
        t->view.admission = &t->admission;
        decide(t);
        if (!stands_elsewhere(t))
                return;
        decide(t);
        stands_elsewhere(t);
}

void reconcile_decide(struct task *t)
{
        if (t->rt->op->admissions)
                decide_with_place(t);
        else
                decide(t);
        if (t->decision.n_wants == 0 && t->held_back)
                carry_nothing(t);
        else if (t->decision.n_wants == 0)
                carry_out(t);
        else if (lookup_only_history(&t->decision) || t->rounds++ < ROUNDS_MAX)
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
        return t;
}

/* It is gone, or going: that may take as long as somebody's finalizer likes, but its slot is free when its Job has ended. */
static void leave_queue(const struct task *t)
{
        const struct admission_id id = runtime_id(t);

        if (task_runs(t))
                admissions_withdraw(t->rt->op->admissions, &id);
        else
                admissions_forget(t->rt->op->admissions, &id);
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
                if (rt->op->admissions)
                        leave_queue(t);
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
                if (rt->op->admissions)
                        leave_queue(t);
                runtime_finished(t, QUEUE_OK, RESULT_SUCCESS);
                return;
        }
        t->view.now = loop_wall(rt->op->cfg.loop);
        reconcile_decide(t);
}
