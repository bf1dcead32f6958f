#include "web/internal.h"

/*
 * A caller is a token. What its owner may list is asked for once for each kind and namespace, and remembered for 10 s; whoever
 * wants to know the same meanwhile waits for the same answer. For a caller who may not list a kind everywhere, the
 * namespaces that have something of it are asked for one by one. That a token is not valid is remembered as long.
 */
#define GRANT_LIVES (10 * USEC_PER_SEC)
#define SWEEP_EVERY (30 * USEC_PER_SEC)

enum { GRANT_KEY_MAX = 2 + 64, KIND_NONE = 'z' - 'a', CALLERS_MAX = 4096, ROUNDS_MAX = 8 };

static const char NOT_VALID[] = "the token is not valid, or not any more";

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
        usec_t refused_until; /* it is no token as far as is known */
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

static void fail(struct ask *ask, int status, const char *detail)
{
        if (ask->status)
                return;
        ask->status = status;
        snprintf(ask->detail, sizeof(ask->detail), "%s", detail);
}

static void tell(struct grant *g)
{
        struct ask **waits = g->waits.v;
        size_t n = g->waits.n;

        g->waits.v = NULL;
        g->waits.n = g->waits.cap = 0;
        for (size_t i = 0; i < n; i++) {
                struct ask *ask = waits[i];

                if (g->status)
                        fail(ask, g->status, g->detail);
                if (--ask->waits == 0)
                        ask_step(ask);
        }
        free(waits);
}

static void take_answer(struct grant *g, const struct kube_answer *answer, const struct err *err)
{
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct caller *c = g->caller;
        const struct json *review;

        free(g->detail);
        g->detail = NULL;
        g->status = 0;
        g->yes = false;
        g->at = loop_now(c->web->loop);
        g->known = !err || err->code == E_FORBIDDEN; /* who may not even ask may not list either */
        if (!err) {
                review = json_parse(&a, answer->body, NULL, NULL);
                g->yes = json_bool(json_at(review, "status"), "allowed", false);
        } else if (err->code == E_AUTH) {
                c->refused_until = usec_add(g->at, GRANT_LIVES);
                g->status = 401;
                g->detail = xstrdup(NOT_VALID);
        } else if (!g->known) {
                g->status = err->code == E_TIMEOUT ? 504 : 502;
                g->detail = xasprintf("the API server cannot be asked: %s", err->text);
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
        struct caller *c = ask->caller;
        struct grant *g;

        if (loop_now(c->web->loop) < c->refused_until) {
                fail(ask, 401, NOT_VALID);
                return;
        }
        g = grant_of(c, kind, ns);
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
        if (ask->kinds & 1u << KIND_NONE)
                want(ask, KIND_NONE, "");
}

static bool allowed(const struct caller *c, size_t kind, const char *ns)
{
        const struct grant *g = grant_find(c, kind, ns);

        return g && grant_fresh(g) && g->yes;
}

void ask_want(struct ask *ask, size_t kind, const char *ns)
{
        if ((ask->kinds & 1u << kind) && !allowed(ask->caller, kind, NULL))
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

/*
 * The next step once nothing is waited for: all that is wanted is looked at again, as some of it may have grown old meanwhile,
 * so that in the end all of it counts at once.
 */
static void ask_step(struct ask *ask)
{
        if (ask->asking || ask->waits)
                return;
        if (!ask->status && ask->rounds++ == ROUNDS_MAX)
                fail(ask, 504, "the API server takes too long to say what you may see");
        if (!ask->status) {
                ask->asking = true;
                want_everywhere(ask);
                if (!ask->waits && !ask->status && !ask->ns)
                        (ask->each ? ask->each : want_cached)(ask);
                ask->asking = false;
                if (ask->waits)
                        return;
        }
        ask->done(ask);
}

void caller_ask(struct ask *ask)
{
        if (!ask->ns)
                ask->ns = ask->web->ns; /* there is nothing of any other */
        ask->rounds = 0;
        ask_step(ask);
}

void caller_check(struct ask *ask)
{
        ask->ns = "";
        ask->kinds = 1u << KIND_NONE;
        caller_ask(ask);
}

/* ---- what is known */

bool caller_sees(const struct caller *c, size_t kind, const char *ns)
{
        return allowed(c, kind, NULL) || allowed(c, kind, ns);
}

int caller_may(struct caller *c, size_t kind, const char *ns)
{
        const struct grant *all = grant_find(c, kind, NULL), *one = grant_find(c, kind, ns);

        if (caller_sees(c, kind, ns))
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

/* Those whom nobody holds for so long. */
static void forget_idle(struct web *w, usec_t age)
{
        VEC(struct caller *) old = {0};
        struct caller *c;

        map_foreach (i, &w->callers, c)
                if (!c->holders && usec_sub(loop_now(w->loop), c->used) >= age)
                        *vec_push(&old) = c;
        vec_foreach (one, &old)
                caller_free(*one);
        vec_done(&old);
}

/* Whoever holds the caller: what is old does not count, and is asked for again. */
static void forget_grants(struct caller *c)
{
        VEC(struct grant *) old = {0};
        struct grant *g;

        map_foreach (i, &c->grants, g)
                if (!g->asking && !grant_fresh(g))
                        *vec_push(&old) = g;
        vec_foreach (one, &old) {
                map_remove(&c->grants, str_of((*one)->key));
                grant_free(*one);
        }
        vec_done(&old);
}

/* Their grants are old by then. */
static void on_sweep(struct timer *t)
{
        struct web *w = CONTAINER_OF(t, struct web, sweep);
        struct caller *c;

        forget_idle(w, GRANT_LIVES);
        map_foreach (i, &w->callers, c)
                forget_grants(c);
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
                if (w->callers.n >= CALLERS_MAX) /* somebody tries tokens */
                        forget_idle(w, 0);
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
