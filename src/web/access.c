#include "web/internal.h"

/*
 * A caller is a token. What its owner may list is asked for once for each kind and namespace, and remembered for 10 s; whoever
 * wants to know the same meanwhile waits for the same answer. For a caller who may not list a kind everywhere, the
 * namespaces that have something of it are asked for one by one.
 */
#define GRANT_LIVES (10 * USEC_PER_SEC)
#define SWEEP_EVERY (30 * USEC_PER_SEC)

enum { GRANT_KEY_MAX = 2 + 64, KIND_NONE = 'z' - 'a' };

static const struct kube_type REVIEW = {"authorization.k8s.io",    "v1",  "selfsubjectaccessreviews",
                                        "SelfSubjectAccessReview", false, false};

struct grant {
        struct caller *caller;
        bool asking, known, yes;
        usec_t at;  /* when it was told */
        int status; /* of what went wrong; 0: nothing did */
        char *detail;
        VEC(struct ask *) waits;
        char key[]; /* a letter for the kind, '/', the namespace or "" */
};

struct caller {
        struct web *web;
        unsigned holders;
        usec_t used;
        struct map grants;
        struct list streams;
        struct map late; /* of stream.c */
        char *token;
        char hash[SHA256_HEX_MAX];
};

/* ---- grants */

static struct str grant_key(char out[GRANT_KEY_MAX], size_t kind, const char *ns)
{
        int n = snprintf(out, GRANT_KEY_MAX, "%c/%s", (char)('a' + kind), ns ? ns : "");

        return str_n(out, MIN((size_t)n, (size_t)GRANT_KEY_MAX - 1));
}

static struct grant *grant_find(const struct caller *c, size_t kind, const char *ns)
{
        char key[GRANT_KEY_MAX];

        return map_get(&c->grants, grant_key(key, kind, ns));
}

static struct grant *grant_of(struct caller *c, size_t kind, const char *ns)
{
        struct grant *g = grant_find(c, kind, ns);
        char text[GRANT_KEY_MAX];
        struct str key;

        if (g)
                return g;
        key = grant_key(text, kind, ns);
        g = xcalloc(1, sizeof(*g) + key.n + 1);
        memcpy(g->key, key.p, key.n);
        g->caller = c;
        map_put(&c->grants, str_of(g->key), g);
        return g;
}

static void grant_free(struct grant *g)
{
        vec_done(&g->waits);
        free(g->detail);
        free(g);
}

static bool grant_fresh(const struct grant *g)
{
        return g->known && usec_sub(loop_now(g->caller->web->loop), g->at) < GRANT_LIVES;
}

/* ---- reviews */

static void ask_step(struct ask *ask);

static void tell(struct grant *g)
{
        struct ask **waits = g->waits.v;
        size_t n = g->waits.n;

        g->waits.v = NULL;
        g->waits.n = g->waits.cap = 0;
        for (size_t i = 0; i < n; i++) {
                struct ask *ask = waits[i];

                if (g->status && !ask->status) {
                        ask->status = g->status;
                        snprintf(ask->detail, sizeof(ask->detail), "%s", g->detail);
                }
                if (--ask->waits == 0)
                        ask_step(ask);
        }
        free(waits);
}

static void take_answer(struct grant *g, const struct kube_answer *answer, const struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct json *review;

        free(g->detail);
        g->detail = NULL;
        g->status = 0;
        g->yes = false;
        if (!err) {
                review = json_parse(&a, answer->body, NULL, NULL);
                g->yes = json_bool(json_at(review, "status"), "allowed", false);
                g->known = true;
                g->at = loop_now(g->caller->web->loop);
        } else if (err->code == E_FORBIDDEN) { /* who may not even ask may not list either */
                g->known = true;
                g->at = loop_now(g->caller->web->loop);
        } else {
                g->known = false;
                g->status = err->code == E_AUTH ? 401 : err->code == E_TIMEOUT ? 504 : 502;
                g->detail = err->code == E_AUTH ? xstrdup("the token is not valid, or not any more")
                                                : xasprintf("the API server cannot be asked: %s", err->text);
        }
}

static void on_review(void *arg, const struct kube_answer *answer, const struct err *err)
{
        struct grant *g = arg;
        struct caller *c = g->caller;

        g->asking = false;
        take_answer(g, answer, err);
        tell(g);
        caller_unref(c);
}

static void review(struct grant *g, size_t kind, const char *ns)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        const struct kube_type *type = kind == KIND_NONE ? &KUBE_NAMESPACE : kinds_at(kind)->type;
        const char *body = json_print(
                &a, json_build(&a,
                               "{'apiVersion': 'authorization.k8s.io/v1', 'kind': 'SelfSubjectAccessReview', "
                               "'spec': {'resourceAttributes': {'verb': 'list', 'group': %s, 'resource': %s, "
                               "'namespace': %p}}}",
                               type->group, type->plural, (void *)(ns && *ns ? json_string(&a, ns) : NULL)));
        struct kube_request r = {.verb = KUBE_CREATE,
                                 .type = &REVIEW,
                                 .body = str_of(body),
                                 .token = g->caller->token,
                                 .timeout = 20 * USEC_PER_SEC};

        g->asking = true;
        caller_ref(g->caller);
        (void)kube_send(g->caller->web->kube, &r, on_review, g);
}

/* ---- asking */

static void want(struct ask *ask, size_t kind, const char *ns)
{
        struct grant *g = grant_of(ask->caller, kind, ns);

        if (grant_fresh(g))
                return;
        *vec_push(&g->waits) = ask;
        ask->waits++;
        if (!g->asking)
                review(g, kind, ns);
}

static void want_everywhere(struct ask *ask)
{
        for (size_t i = 0; kinds_at(i); i++)
                if (ask->kinds & 1u << i)
                        want(ask, i, ask->ns);
}

void ask_want(struct ask *ask, size_t kind, const char *ns)
{
        const struct grant *all = grant_find(ask->caller, kind, NULL);

        if ((ask->kinds & 1u << kind) && !(all && all->yes))
                want(ask, kind, ns);
}

/* Wherever there is one. */
static void want_cached(struct ask *ask)
{
        for (size_t i = 0; kinds_at(i); i++) {
                struct cache *cache = feed_cache(ask->web->feed, i);
                const struct cache_entry *e;
                struct map seen = MAP_INIT;
                size_t at = 0;

                while ((e = cache_next(cache, &at)))
                        if (!map_put(&seen, str_of(e->ns), (void *)e))
                                ask_want(ask, i, e->ns);
                map_done(&seen);
        }
}

/* The next step once nothing is waited for. */
static void ask_step(struct ask *ask)
{
        if (ask->asking || ask->waits)
                return;
        if (!ask->status && !ask->ns && !ask->by_namespace) {
                ask->by_namespace = ask->asking = true;
                (ask->each ? ask->each : want_cached)(ask);
                ask->asking = false;
                if (ask->waits)
                        return;
        }
        ask->done(ask);
}

void caller_ask(struct ask *ask)
{
        ask->asking = true;
        if (!ask->ns)
                ask->ns = ask->web->ns; /* there is nothing of any other */
        want_everywhere(ask);
        ask->asking = false;
        ask_step(ask);
}

void caller_check(struct ask *ask)
{
        ask->ns = "";
        ask->asking = true;
        want(ask, KIND_NONE, "");
        ask->asking = false;
        ask_step(ask);
}

/* ---- what is known */

bool caller_sees(const struct caller *c, size_t kind, const char *ns)
{
        const struct grant *all = grant_find(c, kind, NULL), *one = grant_find(c, kind, ns);

        return (all && all->known && all->yes) || (one && one->known && one->yes);
}

int caller_may(struct caller *c, size_t kind, const char *ns)
{
        const struct grant *all = grant_find(c, kind, NULL), *one = grant_find(c, kind, ns);

        if ((all && grant_fresh(all) && all->yes) || (one && grant_fresh(one) && one->yes))
                return 1;
        return one && grant_fresh(one) && (c->web->ns || (all && grant_fresh(all))) ? 0 : -1;
}

/* ---- callers */

static void caller_free(struct caller *c)
{
        struct grant *g;

        map_remove(&c->web->callers, str_of(c->hash));
        map_foreach (i, &c->grants, g)
                grant_free(g);
        map_done(&c->grants);
        map_done(&c->late);
        mem_wipe(c->token, strlen(c->token));
        free(c->token);
        free(c);
}

/* What nobody holds is forgotten once its grants are old. */
static void on_sweep(struct timer *t)
{
        struct web *w = CONTAINER_OF(t, struct web, sweep);
        VEC(struct caller *) old = {0};
        struct caller *c;

        map_foreach (i, &w->callers, c)
                if (!c->holders && usec_sub(loop_now(w->loop), c->used) >= GRANT_LIVES)
                        *vec_push(&old) = c;
        vec_foreach (one, &old)
                caller_free(*one);
        vec_done(&old);
        if (w->callers.n)
                timer_after(&w->sweep, SWEEP_EVERY);
}

struct caller *caller_get(struct web *w, struct str token)
{
        char hash[SHA256_HEX_MAX];
        struct caller *c;

        sha256_hex(token, hash);
        c = map_get(&w->callers, str_of(hash));
        if (!c) {
                c = xcalloc(1, sizeof(*c));
                c->web = w;
                c->token = xstrndup(token.p, token.n);
                memcpy(c->hash, hash, sizeof(hash));
                list_init(&c->streams);
                map_put(&w->callers, str_of(c->hash), c);
                if (!timer_pending(&w->sweep)) {
                        timer_init(&w->sweep, w->loop, on_sweep);
                        timer_after(&w->sweep, SWEEP_EVERY);
                }
        }
        return caller_ref(c);
}

struct caller *caller_ref(struct caller *c)
{
        c->holders++;
        return c;
}

void caller_unref(struct caller *c)
{
        if (!c)
                return;
        c->holders--;
        c->used = loop_now(c->web->loop);
}

const char *caller_token(const struct caller *c)
{
        return c->token;
}

struct list *caller_streams(struct caller *c)
{
        return &c->streams;
}

struct map *caller_late(struct caller *c)
{
        return &c->late;
}

void callers_done(struct web *w)
{
        struct caller *c;
        size_t i = 0;

        while (map_next(&w->callers, &i, (void **)&c)) {
                caller_free(c);
                i = 0;
        }
        map_done(&w->callers);
        timer_cancel(&w->sweep);
}
