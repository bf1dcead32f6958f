#include "operator/runtime.h"

enum {
        ROUNDS_MAX = 8,   /* of look-ups for one decision */
        LOOKUP_TRIES = 4, /* in a row, beside the client's own and with the queue's backoff between them */
        LOG_TAIL_LINES = 50,
        LOG_TAIL_BYTES = 16 * 1024,
};
#define OWN_WRITE_RECHECK (2 * USEC_PER_SEC)

static void decide(struct task *t);

void task_free(struct task *t)
{
        if (!t)
                return;
        kube_cancel(t->call);
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

/* ---- look-ups */

static void look_up_next(struct task *t);

/* The server knows the kind, and has no such object. A 404 that names no kind says that the kind is not served. */
static bool is_absent(struct arena *a, const struct kube_answer *got, const struct err *err)
{
        struct kube_status said;

        if (err->code != E_NOT_FOUND)
                return false;
        kube_status_error(a, got->status, got->body, KUBE_GET, &said, NULL);
        return said.kind[0];
}

static void take_answer(struct answer *answer, struct arena *a, const struct kube_answer *got,
                        const struct err *err)
{
        struct err parse = ERR_INIT;

        if (err && answer->want.kind == WANT_OBJECT && is_absent(a, got, err))
                return;
        if (err) {
                answer->error = arena_strdup(a, err->text);
                return;
        }
        if (answer->want.kind == WANT_LOG) {
                answer->text = str_n(arena_strndup(a, got->body.p, got->body.n), got->body.n);
                return;
        }
        answer->json = json_parse(a, got->body, NULL, &parse);
        if (!answer->json)
                answer->error = arena_strdup(a, parse.text);
}

/*
 * A server that is disturbed is no answer: what was asked for decides, and a guess in its place may leave things behind.
 * Not for ever, so that a kind that cannot be read does not hold up all else; nor for logs, which the node has.
 */
static bool ask_again(struct task *t, const struct want *want, const struct err *err)
{
        switch (err->code) {
        case E_CONNECT:
        case E_LOST:
        case E_TIMEOUT:
        case E_TLS:
        case E_PROTOCOL:
        case E_AUTH:
        case E_EXPIRED:
        case E_BUSY:
        case E_SERVER:
                return want->kind != WANT_LOG &&
                       queue_failures(t->rt->queue, str_of(t->item->key)) < LOOKUP_TRIES;
        default:
                return false;
        }
}

static void on_lookup(void *arg, const struct kube_answer *got, const struct err *err)
{
        struct task *t = arg;
        struct answer *answer;

        t->call = NULL;
        if (err && ask_again(t, &t->decision.wants[t->lookup], err)) {
                LOG_WARN(loop_log(t->rt->op->cfg.loop), "A look-up failed; deciding again later",
                         F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns),
                         F_STR("name", t->name), F_ERR(err));
                carry_later(t, got ? got->retry_after : 0);
                return;
        }
        answer = vec_push(&t->answers);
        answer->want = t->decision.wants[t->lookup++];
        take_answer(answer, &t->arena, got, err);
        look_up_next(t);
}

static void send_lookup(struct task *t, const struct want *want)
{
        struct kube_request r = {.verb = KUBE_GET, .type = want->type, .ns = t->ns, .name = want->name};
        _cleanup_(buf_done) struct buf path = BUF_INIT(4096);

        if (want->kind == WANT_EVENTS) {
                r.verb = KUBE_LIST;
                r.type = &KUBE_EVENT;
                r.name = NULL;
                r.field_selector = arena_printf(&t->arena, "regarding.uid=%s", want->uid);
                r.limit = 100;
        } else if (want->kind == WANT_PODS) {
                r.verb = KUBE_LIST;
                r.type = &KUBE_POD;
                r.name = NULL;
                r.label_selector = arena_printf(&t->arena, "controller-uid=%s", want->uid);
                r.limit = 100;
        } else if (want->kind == WANT_LOG) {
                kube_path(&path, &KUBE_POD, t->ns, want->name, "log");
                buf_printf(&path, "?tailLines=%d&limitBytes=%d&container=", LOG_TAIL_LINES, LOG_TAIL_BYTES);
                buf_add_urlencoded(&path, str_of(want->container));
                r.path = buf_cstr(&path);
                r.type = NULL;
        }
        t->call = kube_send(t->rt->op->cfg.kube, &r, on_lookup, t);
}

/* ---- priors: from the history, mostly at once */

static void on_priors(void *arg)
{
        struct task *t = arg;

        t->priors_asked--;
        if (!t->awaits_priors || t->priors_asked)
                return;
        t->awaits_priors = false;
        look_up_next(t);
}

/* NULL: they are under way, on_priors() comes. */
static const struct answer *ask_history(struct task *t, const struct want *want)
{
        struct history *history = t->rt->op->cfg.history;
        struct answer *answer = arena_new(&t->arena, struct answer);
        const struct priors *priors = NULL;

        answer->want = *want;
        if (!history)
                return answer;
        if (history_priors(history, want->name, on_priors, t, &priors) == 0) {
                t->priors_asked++;
                return NULL;
        }
        if (priors && priors->n)
                answer->priors = arena_memdup(&t->arena, priors, sizeof(*priors));
        return answer;
}

/* Who wants what is in memory anyway need not be called twice for it. */
static const struct answer *recall(void *arg, const struct want *want)
{
        return want->kind == WANT_PRIORS ? ask_history(arg, want) : NULL;
}

static bool look_up_priors(struct task *t, const struct want *want)
{
        const struct answer *answer = t->priors_asked ? NULL : ask_history(t, want);

        t->awaits_priors = !answer;
        if (!answer)
                return false;
        *vec_push(&t->answers) = *answer;
        t->lookup++;
        return true;
}

static void look_up_next(struct task *t)
{
        while (t->lookup < t->decision.n_wants) {
                const struct want *want = &t->decision.wants[t->lookup];

                if (want->kind != WANT_PRIORS) {
                        send_lookup(t, want);
                        return;
                }
                if (!look_up_priors(t, want))
                        return;
        }
        decide(t);
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

static void decide(struct task *t)
{
        const struct controller *c = t->rt->c;

        decision_done(&t->decision);
        t->lookup = 0;
        t->view.answers = t->answers.v;
        t->view.n_answers = t->answers.n;
        t->view.recall = recall;
        t->view.recall_arg = t;
        c->plan(&t->view, &t->decision);
        c->settle(&t->view, &t->decision);
        if (t->decision.n_wants == 0)
                carry_out(t);
        else if (wants_only_priors(&t->decision) || t->rounds++ < ROUNDS_MAX)
                look_up_next(t);
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
        decide(t);
}
