#include "operator/runtime.h"

/*
 * What a decision wants to know and the caches do not: one look-up after the other, but for scrapes, which are under way
 * all the time. Then the decision is made again, with the answers.
 */
enum {
        LOOKUP_TRIES = 4, /* in a row, beside the client's own and with the queue's backoff between them */
        LOG_TAIL_LINES = 50,
        LOG_TAIL_BYTES = 16 * 1024,
        LIST_MAX = 5000,
        LIST_PAGE = 200,                /* objects of 80 KiB fit into an answer */
        LIST_MIB = 256,                 /* in memory, with all else that the decision knows */
        LIST_ITEM_MAX = 8 * 1024 * 1024 /* as for the reflector */
};

static void look_up_next(struct task *t);

/* ---- of the server */

static const struct want *wanted(const struct task *t)
{
        return &t->decision.wants[t->lookup];
}

/* To what is wanted; that is done with. */
static struct answer *add_answer(struct task *t)
{
        struct answer *answer = vec_push(&t->answers);

        answer->want = t->decision.wants[t->lookup++];
        return answer;
}

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

/* True: the task is over, and the request will be decided later. */
static bool put_off(struct task *t, const struct kube_answer *got, const struct err *err)
{
        if (!ask_again(t, wanted(t), err))
                return false;
        LOG_WARN(loop_log(t->rt->op->cfg.loop), "A look-up failed; deciding again later",
                 F_STR("controller", t->rt->c->name), F_STR("namespace", t->ns), F_STR("name", t->name),
                 F_ERR(err));
        carry_later(t, got ? got->retry_after : 0);
        return true;
}

static void on_lookup(void *arg, const struct kube_answer *got, const struct err *err)
{
        struct task *t = arg;

        t->call = NULL;
        if (err && put_off(t, got, err))
                return;
        take_answer(add_answer(t), &t->arena, got, err);
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

/* ---- lists, page by page */

struct page {
        struct task *t;
        struct arena scratch; /* one object after the other, with all that is not kept of it */
};

static int take_item(void *arg, struct str text, struct err *err)
{
        struct page *p = arg;
        struct task *t = p->t;
        const struct want *want = wanted(t);
        const char *what = want->type->plural;
        struct json *object;

        if (json_len(t->listed) == LIST_MAX)
                return err_set(err, E_TOO_LARGE, "more than %d %s", LIST_MAX, what);
        if (t->arena.used >> 20 >= LIST_MIB)
                return err_set(err, E_TOO_LARGE, "more than %d MiB of %s", LIST_MIB, what);
        arena_reset(&p->scratch, SIZE_MAX);
        object = json_parse(&p->scratch, text, &KUBE_OBJECT_LIMITS, err);
        if (!object)
                return -1;
        if (want->project)
                want->project(object, &p->scratch);
        json_append(t->listed, json_copy(&t->arena, object));
        return 0;
}

/* Adds a page to what is listed. RET_NEXT is where it goes on; NULL: that was the last one. */
static int take_page(struct task *t, struct str body, const char **ret_next, struct err *err)
{
        struct page page = {.t = t};
        _cleanup_(json_split_free) struct json_split *split = json_split_new(SPLIT_ITEMS, LIST_ITEM_MAX,
                                                                             take_item, &page);
        size_t before = json_len(t->listed);
        const struct json *list;
        struct str rest;
        int r;

        r = json_split_feed(split, body, err);
        arena_done(&page.scratch);
        if (r < 0 || json_split_end(split, &rest, err) < 0)
                return -1;
        list = json_parse(&t->arena, rest, NULL, err);
        if (!list)
                return -1;
        *ret_next = meta_str(list, "continue");
        if (streq(*ret_next, ""))
                *ret_next = NULL;
        if (*ret_next && json_len(t->listed) == before)
                return err_set(err, E_PROTOCOL, "a page of the list is empty and not the last one");
        return 0;
}

static void send_list(struct task *t, const char *from);

static void on_page(void *arg, const struct kube_answer *got, const struct err *err)
{
        struct task *t = arg;
        struct answer *answer;
        const char *next = NULL;
        struct err wrong = ERR_INIT;

        t->call = NULL;
        if (err && put_off(t, got, err))
                return;
        if (!err && take_page(t, got->body, &next, &wrong) < 0)
                err = &wrong;
        if (!err && next) {
                send_list(t, next);
                return;
        }
        answer = add_answer(t);
        if (err)
                answer->error = arena_strdup(&t->arena, err->text);
        else
                answer->json = json_build(&t->arena, "{'items': %p}", (void *)t->listed);
        look_up_next(t);
}

/* FROM: NULL for the first page. */
static void send_list(struct task *t, const char *from)
{
        const struct want *want = wanted(t);
        struct kube_request r = {.verb = KUBE_LIST,
                                 .type = want->type,
                                 .ns = want->kind == WANT_LIST ? t->ns : t->rt->op->cfg.ns,
                                 .limit = LIST_PAGE,
                                 .continue_token = from};

        if (want->name && want->name[0])
                r.label_selector = want->name;
        if (!from)
                t->listed = json_array(&t->arena);
        t->call = kube_send(t->rt->op->cfg.kube, &r, on_page, t);
}

/* ---- of the history: mostly at once */

static void on_history(void *arg)
{
        struct task *t = arg;

        t->history_asked--;
        if (!t->awaits_history || t->history_asked)
                return;
        t->awaits_history = false;
        look_up_next(t);
}

static bool is_of_history(const struct want *want)
{
        return want->kind == WANT_PRIORS || want->kind == WANT_SERIES;
}

static const struct series *copy_series(struct arena *a, const struct series *s)
{
        struct series *copy = arena_new(a, struct series);
        struct series_point *points = arena_memdup(a, s->points, s->n * sizeof(*points));

        for (size_t i = 0; i < s->n; i++) {
                points[i].uid = arena_strdup(a, points[i].uid);
                points[i].name = arena_strdup(a, points[i].name);
        }
        *copy = (struct series){.points = points, .n = s->n};
        return copy;
}

/* 0: it is under way, on_history() comes. */
static int ask_kind(struct task *t, struct history *history, const struct want *want, struct answer *answer)
{
        const struct priors *priors = NULL;
        const struct series *series = NULL;
        int r = want->kind == WANT_SERIES ? history_series(history, want->name, on_history, t, &series)
                                          : history_priors(history, want->name, on_history, t, &priors);

        if (priors && priors->n)
                answer->priors = arena_memdup(&t->arena, priors, sizeof(*priors));
        if (series && series->n)
                answer->series = copy_series(&t->arena, series);
        return r;
}

/* NULL: it is under way. */
static const struct answer *ask_history(struct task *t, const struct want *want)
{
        struct history *history = t->rt->op->cfg.history;
        struct answer *answer = arena_new(&t->arena, struct answer);

        answer->want = *want;
        if (!history || ask_kind(t, history, want, answer) > 0)
                return answer;
        t->history_asked++;
        return NULL;
}

/* Who wants what is in memory anyway need not be called twice for it. */
const struct answer *lookup_recall(void *arg, const struct want *want)
{
        return is_of_history(want) ? ask_history(arg, want) : NULL;
}

bool lookup_only_history(const struct decision *d)
{
        for (size_t i = 0; i < d->n_wants; i++)
                if (!is_of_history(&d->wants[i]))
                        return false;
        return true;
}

static bool look_up_history(struct task *t)
{
        const struct answer *answer = t->history_asked ? NULL : ask_history(t, wanted(t));

        t->awaits_history = !answer;
        if (answer)
                *add_answer(t) = *answer;
        return answer;
}

/* ---- all of them */

/* True when the answer is there, or will come by itself. */
static bool look_up(struct task *t)
{
        switch (wanted(t)->kind) {
        case WANT_PRIORS:
        case WANT_SERIES:
                return look_up_history(t);
        case WANT_SCRAPE:
                t->lookup++;
                return true;
        case WANT_LIST:
        case WANT_ALL:
                send_list(t, NULL);
                return false;
        default:
                send_lookup(t, wanted(t));
                return false;
        }
}

static void look_up_next(struct task *t)
{
        while (t->lookup < t->decision.n_wants)
                if (!look_up(t))
                        return;
        if (!scrape_pending(t))
                reconcile_decide(t);
}

void lookup_scraped(struct task *t)
{
        if (t->lookup == t->decision.n_wants) /* else the others are not through */
                look_up_next(t);
}

void lookup_start(struct task *t)
{
        t->lookup = 0;
        scrape_start(t);
        look_up_next(t);
}
