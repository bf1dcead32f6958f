#include "cli/up.h"

#include "kinds/kinds.h"

enum { LINE_MAX_TEXT = 600 };

enum end { NOT_ENDED, COMPLETED, FAILED };

struct request {
        const struct kind *kind;
        char *uid, *label;
        char *told; /* the last line, without the expected end */
        usec_t began;
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

/* A word of the line, after two spaces. */
static void add_word(struct buf *line, const char *text)
{
        if (text && *text)
                buf_printf(line, "  %s", text);
}

/* A number of some, where both are known. */
static void add_of(struct buf *line, const struct json *progress, const char *lead, const char *number,
                   const char *total)
{
        long long n = json_int(progress, number, 0), of = json_int(progress, total, 0);

        if (n <= of && of > 0)
                buf_printf(line, "%s%lld/%lld", lead, n, of);
}

/* The kind's own words about its progress first, then those that all kinds have. */
static const struct json *told_by(const struct json *status, const char *member)
{
        const struct json *own = json_at(status, "profilingProgress"), *common = json_at(status, "progress");

        return json_at(own, member) ? own : common;
}

/* dgdr/NAME  STATE  PHASE 3/7  41 %  5/12  MESSAGE */
static void describe(struct buf *line, const struct request *q, const struct json *status)
{
        double percent;
        const struct json *phase = told_by(status, "phase"), *step = told_by(status, "totalSteps");

        buf_adds(line, q->label);
        add_word(line, json_str(status, "state"));
        add_word(line, json_str(phase, "phase"));
        if (json_str(phase, "phase"))
                add_of(line, told_by(status, "totalPhases"), " ", "phaseNumber", "totalPhases");
        if (json_to_double(json_at(json_at(status, "progress"), "percent"), &percent))
                buf_printf(line, "  %.0f %%", percent);
        add_of(line, step, "  ", "currentStep", "totalSteps");
        add_word(line, json_str(told_by(status, "message"), "message"));
}

/* Time of day of "2026-07-01T14:03:22Z". */
static void add_eta(struct buf *line, const struct json *status)
{
        const char *mid = json_str(json_at(json_at(status, "progress"), "estimatedCompletion"), "mid");
        const char *time = mid ? strchr(mid, 'T') : NULL;

        if (time)
                buf_printf(line, "  ETA %.8sZ", time + 1);
}

static void tell(struct request *q, const struct json *status)
{
        _cleanup_(buf_done) struct buf line = BUF_INIT(LINE_MAX_TEXT);

        describe(&line, q, status);
        if (streq(buf_cstr(&line), q->told) || streq(buf_cstr(&line), q->label))
                return;
        free(q->told);
        q->told = xstrdup(buf_cstr(&line));
        add_eta(&line, status);
        printf("%s\n", buf_cstr(&line));
}

/* ---- the end */

/* The condition if it is True, and about the spec as it is now. */
static const struct json *condition(const struct json *object, const char *type)
{
        const struct json *status = json_at(object, "status");
        int64_t generation = json_int(json_at(object, "metadata"), "generation", 0);

        json_foreach (c, json_at(status, "conditions"))
                if (streq(json_str(c, "type"), type) && streq(json_str(c, "status"), "True") &&
                    json_int(c, "observedGeneration", json_int(status, "observedGeneration", 0)) ==
                            generation)
                        return c;
        return NULL;
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

static void look_at(struct up_requests *r, struct request *q, const struct json *object)
{
        const struct json *ready = condition(object, "Ready"), *stalled = condition(object, "Stalled");
        const struct json *end = stalled ? stalled : ready;

        tell(q, json_at(object, "status"));
        fflush(stdout);
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
        return r;
}

bool up_requests_add(struct up_requests *r, const struct json *object)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct kind *kind = kinds_find(json_str(object, "apiVersion"), json_str(object, "kind"));
        const char *uid = meta_str(object, "uid");

        if (!kind || !uid)
                return false;
        if (by_uid(r, uid))
                return true;
        *vec_push(&r->list) = (struct request){
                .kind = kind,
                .uid = xstrdup(uid),
                .label = xstrdup(
                        up_label(&a, kind->label, meta_str(object, "namespace"), meta_str(object, "name"))),
                .began = loop_now(kube_loop(r->kube)),
        };
        if (condition(object, "Ready") || condition(object, "Stalled"))
                printf("%s ended in an earlier run: to run it again, delete it first\n",
                       r->list.v[r->list.n - 1].label);
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
