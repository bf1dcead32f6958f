#include "cli/up.h"

#include "cli/people.h"

enum { LINE_MAX_TEXT = 600 };
/* What the operator tries again by itself has failed when it has lasted this long. */
#define RETRIED_LASTS (10 * USEC_PER_SEC)

enum end { NOT_ENDED, COMPLETED, FAILED };

struct request {
        const struct kind *kind;
        char *uid, *label;
        char *told;               /* the last line, without the expected end */
        usec_t began, stalled_at; /* stalled, but tried again: since then; 0: it is not */
        int64_t generation;       /* as it was applied */
        enum end end;
};

/* The requests of one kind. */
struct watch {
        struct up_requests *all;
        const struct kind *kind;
        struct cache *cache;
        struct reflector *reflector;
};

struct up_requests {
        struct kube *kube;
        VEC(struct request) list;
        VEC(struct watch *) watches;
        struct up_outcome outcome;
        struct timer patience; /* for what is stalled and tried again */
        void (*ended)(void *arg);
        void *arg;
};

static struct request *by_uid(struct up_requests *r, const char *uid)
{
        for (size_t i = 0; i < r->list.n; i++)
                if (streq(r->list.v[i].uid, uid))
                        return &r->list.v[i];
        return NULL;
}

/* ---- one line a change */

static void tell(struct request *q, const struct json *object)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_MAX_TEXT);
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct summary s;

        summarize(q->kind, object, &a, &s);
        people_line(&line, q->label, &s);
        if (streq(buf_cstr(&line), q->told) || streq(buf_cstr(&line), q->label))
                return;
        free(q->told);
        q->told = xstrdup(buf_cstr(&line));
        people_line_eta(&line, &s);
        printf("%s\n", buf_cstr(&line));
}

/* ---- the end */

static bool is_observed(const struct request *q, const struct json *object)
{
        return json_int(json_at(object, "status"), "observedGeneration", 0) >= q->generation;
}

/* The condition if it is True, and about the spec as it was applied or as somebody changed it since. */
static const struct json *is_true(const struct request *q, const struct json *object, const char *type)
{
        const struct json *c = summary_condition(object, type, "True");

        return c && (is_observed(q, object) || json_int(c, "observedGeneration", 0) >= q->generation) ? c
                                                                                                      : NULL;
}

static bool is_retried(const struct json *stalled)
{
        return summary_is_retried(json_str(stalled, "reason"));
}

static bool is_final(const struct request *q, const struct json *object)
{
        const char *state = json_str(json_at(object, "status"), q->kind->state);

        for (const char *const *s = q->kind->final_states; s && *s; s++)
                if (streq(state, *s))
                        return true;
        return false;
}

static void tell_end(struct up_requests *r, struct request *q, enum end end, const char *reason,
                     const char *message)
{
        double took = (double)usec_sub(loop_now(kube_loop(r->kube)), q->began) / (double)USEC_PER_SEC;

        q->end = end;
        printf("%s %s %.*f s: %s%s%s\n", q->label, end == COMPLETED ? "completed in" : "failed after",
               took < 1, took, reason, message && *message ? ": " : "", message ? message : "");
        fflush(stdout);
        r->outcome.completed += end == COMPLETED;
        r->outcome.failed += end == FAILED;
        r->ended(r->arg);
}

/* It had ended with another spec than was applied now, and does nothing about that: true, and it is told. */
static bool is_not_taken(struct up_requests *r, struct request *q, const struct json *object)
{
        const struct json *refused = summary_condition(object, "SpecAccepted", "False");
        const struct json *stalled = summary_condition(object, "Stalled", "True");
        bool over = summary_condition(object, "Ready", "True") || (stalled && !is_retried(stalled));

        if (over && json_int(refused, "observedGeneration", -1) == q->generation) {
                tell_end(r, q, FAILED, json_str_or(refused, "reason", "SpecChangeRejected"),
                         json_str(refused, "message"));
                return true;
        }
        if (is_final(q, object) && !is_observed(q, object) && !is_true(q, object, "Stalled")) {
                tell_end(r, q, FAILED, "SpecChangeRejected",
                         "it had ended before its spec was changed; to run it again, delete it first");
                return true;
        }
        return false;
}

/* True: it may pass by itself, and is looked at again. */
static bool may_pass(struct up_requests *r, struct request *q, const struct json *stalled)
{
        usec_t now = loop_now(kube_loop(r->kube));

        if (!is_retried(stalled)) {
                q->stalled_at = 0;
                return false;
        }
        if (!q->stalled_at)
                q->stalled_at = now;
        if (now - q->stalled_at >= RETRIED_LASTS)
                return false;
        if (!timer_pending(&r->patience))
                timer_at(&r->patience, usec_add(q->stalled_at, RETRIED_LASTS));
        return true;
}

static void look_at(struct up_requests *r, struct request *q, const struct json *object)
{
        const struct json *ready = is_true(q, object, "Ready"), *stalled = is_true(q, object, "Stalled");
        const struct json *end = stalled ? stalled : ready;

        tell(q, object);
        fflush(stdout);
        if (is_not_taken(r, q, object) || may_pass(r, q, stalled))
                return;
        if (end)
                tell_end(r, q, stalled ? FAILED : COMPLETED, json_str_or(end, "reason", "Unknown"),
                         json_str(end, "message"));
}

static void on_change(void *arg, enum cache_change change, const struct cache_entry *before,
                      const struct cache_entry *after, bool initial)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct watch *w = arg;
        struct request *q = by_uid(w->all, after ? after->uid : before->uid);

        if (!q || q->end != NOT_ENDED)
                return;
        if (after)
                look_at(w->all, q, cache_parse(w->cache, after, &a));
        else
                tell_end(w->all, q, FAILED, "Deleted", "somebody deleted it");
}

static void look_again(struct watch *w, struct request *q)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct cache_entry *entry = cache_get_uid(w->cache, q->uid);

        if (entry)
                look_at(w->all, q, cache_parse(w->cache, entry, &a));
}

static void on_patience_over(struct timer *t)
{
        struct up_requests *r = CONTAINER_OF(t, struct up_requests, patience);

        for (size_t i = 0; i < r->list.n; i++)
                for (size_t k = 0; k < r->watches.n; k++) {
                        struct request *q = &r->list.v[i];

                        if (q->stalled_at && q->end == NOT_ENDED && r->watches.v[k]->kind == q->kind)
                                look_again(r->watches.v[k], q);
                }
}

/* One that was deleted before the first list is in none. */
static void on_synced(void *arg, bool first)
{
        struct watch *w = arg;

        for (size_t i = 0; i < w->all->list.n; i++) {
                struct request *q = &w->all->list.v[i];

                if (q->kind == w->kind && q->end == NOT_ENDED && !cache_get_uid(w->cache, q->uid))
                        tell_end(w->all, q, FAILED, "Deleted", "somebody deleted it");
        }
}

/* ---- all */

struct up_requests *up_requests_new(struct kube *kube, void (*ended)(void *arg), void *arg)
{
        struct up_requests *r = xcalloc(1, sizeof(*r));

        r->kube = kube;
        r->ended = ended;
        r->arg = arg;
        timer_init(&r->patience, kube_loop(kube), on_patience_over);
        return r;
}

bool up_requests_add(struct up_requests *r, const struct json *object)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct kind *kind = kinds_find(json_str(object, "apiVersion"), json_str(object, "kind"));
        const char *uid = meta_str(object, "uid");
        const struct json *stalled;
        struct request *q;

        if (!kind || kind->result || !uid)
                return false;
        if (by_uid(r, uid))
                return true;
        q = vec_push(&r->list);
        *q = (struct request){
                .kind = kind,
                .uid = xstrdup(uid),
                .label = xstrdup(
                        up_label(&a, kind->label, meta_str(object, "namespace"), meta_str(object, "name"))),
                .began = loop_now(kube_loop(r->kube)),
                .generation = json_int(json_at(object, "metadata"), "generation", 0),
        };
        stalled = is_true(q, object, "Stalled");
        if (is_true(q, object, "Ready") || (stalled && !is_retried(stalled)))
                printf("%s ended in an earlier run: to run it again, delete it first\n", q->label);
        return true;
}

static bool is_watched(const struct up_requests *r, const struct kind *kind)
{
        for (size_t i = 0; i < r->watches.n; i++)
                if (r->watches.v[i]->kind == kind)
                        return true;
        return false;
}

void up_requests_start(struct up_requests *r)
{
        for (size_t i = 0; i < r->list.n; i++) {
                const struct kind *kind = r->list.v[i].kind;
                struct reflector_config rc = {.kube = r->kube, .on_synced = on_synced};
                struct watch *w;

                if (is_watched(r, kind))
                        continue;
                w = *vec_push(&r->watches) = xcalloc(1, sizeof(*w));
                *w = (struct watch){.all = r,
                                    .kind = kind,
                                    .cache = cache_new(&(struct cache_config){.type = kind->type})};
                cache_listen(w->cache, on_change, w);
                rc.cache = w->cache;
                rc.arg = w;
                w->reflector = reflector_new(&rc);
        }
}

size_t up_requests_running(const struct up_requests *r)
{
        size_t n = 0;

        for (size_t i = 0; i < r->list.n; i++)
                n += r->list.v[i].end == NOT_ENDED;
        return n;
}

struct up_outcome up_requests_outcome(const struct up_requests *r)
{
        return r->outcome;
}

void up_requests_free(struct up_requests *r)
{
        if (!r)
                return;
        timer_cancel(&r->patience);
        for (size_t i = 0; i < r->watches.n; i++) {
                reflector_free(r->watches.v[i]->reflector);
                cache_free(r->watches.v[i]->cache);
                free(r->watches.v[i]);
        }
        vec_done(&r->watches);
        for (size_t i = 0; i < r->list.n; i++) {
                free(r->list.v[i].uid);
                free(r->list.v[i].label);
                free(r->list.v[i].told);
        }
        vec_done(&r->list);
        free(r);
}
