#include "probe/sim/engine.h"

#include <assert.h>
#include <math.h>

#include "probe/sim/prefix.h"

/*
 * Each rank is idle, in the prefill of one prompt, or in a step of all that run; when that ends it decides what to begin
 * next from what is there at that moment, and its end goes into a heap. Whatever the clock that drives it does, time inside
 * goes from end to end, so a late call changes nothing.
 */

struct rank {
        struct heap_node node; /* its order: when what it does ends; on no heap: idle */
        struct list waiting, running;
        unsigned n_waiting, n_running;
        bool in_prefill;
        struct sim_request *prefill; /* NULL: it has left meanwhile */
        uint64_t prompt;             /* of the prefill */
        uint64_t kv_held;            /* reserved by those in prefill and running */
        uint64_t kv_tokens;          /* in use by those that run */
        struct rng jitter;
};

struct sim_engine {
        const struct sim_model *model;
        sim_token_fn fn;
        void *arg;
        struct heap busy;
        nsec_t now;
        unsigned n_ranks;
        uint64_t rank_kv;
        struct prefix_cache prefixes;
        const struct sim_request *leaving;
        bool in_callback;
        struct rank ranks[];
};

static struct sim_request *request_of(struct list *node)
{
        return CONTAINER_OF(node, struct sim_request, node);
}

static uint64_t need_of(const struct sim_request *r)
{
        return (uint64_t)r->isl + r->osl;
}

struct sim_engine *sim_engine_new(const struct sim_model *m, sim_token_fn fn, void *arg)
{
        unsigned n = sim_ranks(m);
        struct sim_engine *e = xcalloc(1, sizeof(*e) + n * sizeof(e->ranks[0]));

        e->model = m;
        e->fn = fn;
        e->arg = arg;
        e->n_ranks = n;
        e->rank_kv = sim_rank_kv(m);
        for (unsigned i = 0; i < n; i++) {
                list_init(&e->ranks[i].waiting);
                list_init(&e->ranks[i].running);
                rng_seed(&e->ranks[i].jitter, m->seed + i);
        }
        return e;
}

void sim_engine_free(struct sim_engine *e)
{
        if (!e)
                return;
        heap_done(&e->busy);
        prefix_done(&e->prefixes);
        free(e);
}

void sim_engine_learn(struct sim_engine *e, uint64_t prompt)
{
        if (e->model->prefix_cache)
                prefix_add(&e->prefixes, prompt);
}

/* ---- what a rank does next */

static nsec_t jittered(struct rank *k, const struct sim_model *m, nsec_t time)
{
        double u;

        if (m->jitter <= 0)
                return time;
        u = (double)(rng_next(&k->jitter) >> 11) * 0x1p-52 - 1;
        return (nsec_t)llround((double)time * (1 + m->jitter * u));
}

static struct sim_request *next_prompt(const struct sim_engine *e, const struct rank *k)
{
        struct sim_request *r;

        if (list_empty(&k->waiting) || (e->model->max_batch && k->n_running >= e->model->max_batch))
                return NULL;
        r = request_of(k->waiting.next);
        return k->kv_held + need_of(r) <= e->rank_kv ? r : NULL;
}

static void begin(struct sim_engine *e, struct rank *k, nsec_t at)
{
        struct sim_request *r = next_prompt(e, k);
        nsec_t takes;

        if (r) {
                list_remove(&r->node);
                k->n_waiting--;
                k->kv_held += need_of(r);
                k->in_prefill = true;
                k->prefill = r;
                k->prompt = r->prompt;
                r->state = SIM_PREFILL;
                takes = sim_prefill_time(e->model, r->isl, prefix_has(&e->prefixes, r->prompt));
        } else if (k->n_running) {
                takes = sim_step_time(e->model, k->n_running, k->kv_tokens);
        } else {
                return;
        }
        heap_put(&e->busy, &k->node, at + jittered(k, e->model, takes));
}

/* ---- what comes of it */

/* R's next token. After its last one R may be gone. */
static void give(struct sim_engine *e, struct rank *k, struct sim_request *r, nsec_t at)
{
        bool muted = r == e->leaving;

        r->made++;
        if (r->made == r->osl) {
                if (r->state == SIM_RUNS) {
                        list_remove(&r->node);
                        k->n_running--;
                        k->kv_tokens -= need_of(r) - 1;
                }
                k->kv_held -= need_of(r);
                r->state = SIM_AWAY;
        } else if (r->state == SIM_RUNS) {
                k->kv_tokens++;
        } else {
                r->state = SIM_RUNS;
                list_append(&k->running, &r->node);
                k->n_running++;
                k->kv_tokens += (uint64_t)r->isl + 1;
        }
        if (muted)
                return;
        e->in_callback = true;
        e->fn(e->arg, r, r->made, at);
        e->in_callback = false;
}

static void finish(struct sim_engine *e, struct rank *k, nsec_t at)
{
        if (k->in_prefill) {
                struct sim_request *r = TAKE_PTR(k->prefill);

                k->in_prefill = false;
                sim_engine_learn(e, k->prompt);
                if (r)
                        give(e, k, r, at);
                return;
        }
        list_foreach_safe (node, &k->running)
                give(e, k, request_of(node), at);
}

void sim_advance(struct sim_engine *e, nsec_t now)
{
        struct heap_node *first;

        assert(!e->in_callback);
        while ((first = heap_first(&e->busy)) && first->order <= now) {
                struct rank *k = CONTAINER_OF(first, struct rank, node);

                e->now = first->order;
                heap_remove(&e->busy, first);
                finish(e, k, e->now);
                begin(e, k, e->now);
        }
        e->now = MAX(e->now, now);
}

nsec_t sim_next(const struct sim_engine *e)
{
        const struct heap_node *first = heap_first(&e->busy);

        return first ? first->order : UINT64_MAX;
}

/* ---- coming and going */

static unsigned load_of(const struct rank *k)
{
        return k->n_waiting + k->n_running + (k->prefill != NULL);
}

static unsigned emptiest(const struct sim_engine *e)
{
        unsigned best = 0;

        for (unsigned i = 1; i < e->n_ranks; i++)
                if (load_of(&e->ranks[i]) < load_of(&e->ranks[best]))
                        best = i;
        return best;
}

int sim_arrive(struct sim_engine *e, struct sim_request *r, nsec_t now, struct err *err)
{
        struct rank *k;

        sim_advance(e, now);
        r->state = SIM_AWAY;
        if (r->osl == 0)
                return err_set(err, E_INVALID, "a request must ask for at least one token");
        if (need_of(r) > e->rank_kv)
                return err_set(err, E_TOO_LARGE,
                               "%u tokens of prompt and %u to make need more than the KV cache's %llu",
                               r->isl, r->osl, (unsigned long long)e->rank_kv);
        r->rank = emptiest(e);
        r->made = 0;
        r->state = SIM_WAITS;
        k = &e->ranks[r->rank];
        list_append(&k->waiting, &r->node);
        k->n_waiting++;
        if (!k->node.at)
                begin(e, k, e->now);
        return 0;
}

void sim_leave(struct sim_engine *e, struct sim_request *r, nsec_t now)
{
        struct rank *k = &e->ranks[r->rank];

        e->leaving = r;
        sim_advance(e, now);
        e->leaving = NULL;
        switch (r->state) {
        case SIM_WAITS:
                list_remove(&r->node);
                k->n_waiting--;
                break;
        case SIM_PREFILL:
                k->prefill = NULL;
                k->kv_held -= need_of(r);
                break;
        case SIM_RUNS:
                list_remove(&r->node);
                k->n_running--;
                k->kv_held -= need_of(r);
                k->kv_tokens -= (uint64_t)r->isl + r->made;
                break;
        case SIM_AWAY:
                break;
        }
        r->state = SIM_AWAY;
}

unsigned sim_running(const struct sim_engine *e)
{
        unsigned n = 0;

        for (unsigned i = 0; i < e->n_ranks; i++)
                n += e->ranks[i].n_running;
        return n;
}

unsigned sim_waiting(const struct sim_engine *e)
{
        unsigned n = 0;

        for (unsigned i = 0; i < e->n_ranks; i++)
                n += e->ranks[i].n_waiting + (e->ranks[i].prefill != NULL);
        return n;
}
