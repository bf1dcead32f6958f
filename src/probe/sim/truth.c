#include "probe/load/load.h"
#include "probe/sim/engine.h"

/*
 * A closed loop in virtual time. A client that has got its last token sends its next request a moment later: the engine has
 * begun what it does next by then, so that the request waits for that; of those that end at once, the first to end is the
 * first to ask again.
 */

#define TOKENS_MAX ((uint64_t)64 << 20)

struct client {
        struct sim_request request;
        struct load_record *record;
};

struct truth {
        const struct sim_load *load;
        struct sim_engine *engine;
        struct client *clients;
        struct load_record *records; /* of the phase */
        uint64_t *chunks;            /* of all of them */
        struct client **ended;       /* at the moment of the engine's last step */
        uint32_t n_ended;
        uint64_t sent; /* in both phases: the prompts go on in turn */
        nsec_t now;
};

static uint32_t prompts_of(const struct sim_load *load)
{
        return load->prompts ? load->prompts : LOAD_PROMPTS_DEFAULT;
}

static uint32_t concurrency_of(const struct sim_load *load)
{
        return load->concurrency ? load->concurrency : 1;
}

static void token_came(void *arg, struct sim_request *r, uint32_t token, nsec_t at)
{
        struct truth *t = arg;
        struct client *c = CONTAINER_OF(r, struct client, request);

        ((uint64_t *)(uintptr_t)c->record->chunks)[token - 1] = at;
        if (token == 1)
                c->record->ack = at;
        if (token < r->osl)
                return;
        c->record->end = at;
        t->ended[t->n_ended++] = c;
}

static int send_request(struct truth *t, struct client *c, uint64_t number, struct err *err)
{
        const struct sim_load *load = t->load;

        c->record = &t->records[number];
        *c->record = (struct load_record){
                .number = (uint32_t)number,
                .due = t->now,
                .start = t->now,
                .chunks = t->chunks + number * load->osl,
                .n_chunks = load->osl,
                .isl = load->isl,
                .osl = load->osl,
                .osl_exact = true,
                .status = 200,
        };
        c->request = (struct sim_request){
                .prompt = t->sent++ % prompts_of(load) + 1, .isl = load->isl, .osl = load->osl};
        return sim_arrive(t->engine, &c->request, t->now, err);
}

/* N requests, from the first to the last one's end. */
static int run_phase(struct truth *t, uint64_t n, struct err *err)
{
        uint64_t begun = 0, done = 0;

        for (; begun < MIN((uint64_t)concurrency_of(t->load), n); begun++)
                if (send_request(t, &t->clients[begun], begun, err) < 0)
                        return -1;
        while (done < n) {
                t->now = sim_next(t->engine);
                t->n_ended = 0;
                sim_advance(t->engine, t->now);
                done += t->n_ended;
                for (uint32_t i = 0; i < t->n_ended && begun < n; i++)
                        if (send_request(t, t->ended[i], begun++, err) < 0)
                                return -1;
        }
        return 0;
}

static int check(const struct sim_model *m, const struct sim_load *load, struct err *err)
{
        if (!load->requests || !load->osl)
                return err_set(err, E_CONFIG, "a load needs at least one request of at least one token");
        if (sim_rank_kv(m) == 0)
                return err_set(err, E_CONFIG, "%s does not fit into the memory of %u GPUs as %s", m->name,
                               m->gpus, sim_mappings[m->mapping]);
        if (load->requests > LOAD_REQUESTS_MAX || load->warmup > LOAD_REQUESTS_MAX)
                return err_set(err, E_TOO_LARGE, "a load of more than %d requests", LOAD_REQUESTS_MAX);
        if (MAX(load->requests, (uint64_t)load->warmup) > TOKENS_MAX / load->osl ||
            load->concurrency > TOKENS_MAX / sizeof(struct client))
                return err_set(err, E_TOO_LARGE, "a load of more than %llu tokens",
                               (unsigned long long)TOKENS_MAX);
        return 0;
}

/* An earlier run of the same load ended with the cache's last prompts in it. */
static void learn_prompts(struct truth *t)
{
        uint64_t all = t->load->warmup + t->load->requests;

        for (uint64_t i = 0; i < MIN(all, (uint64_t)prompts_of(t->load)); i++)
                sim_engine_learn(t->engine, i + 1);
}

int sim_truth(const struct sim_model *m, const struct sim_load *load, struct load_summary *ret,
              struct err *err)
{
        struct sim_model even = *m;
        struct truth t = {.load = load};
        _cleanup_(sim_engine_free) struct sim_engine *engine = NULL;
        _cleanup_(free_ptr) struct client *clients = NULL;
        _cleanup_(free_ptr) struct client **ended = NULL;
        _cleanup_(free_ptr) struct load_record *records = NULL;
        _cleanup_(free_ptr) uint64_t *chunks = NULL;
        uint64_t most = MAX(load->requests, (uint64_t)load->warmup);

        if (check(m, load, err) < 0)
                return -1;
        even.jitter = 0;
        t.engine = engine = sim_engine_new(&even, token_came, &t);
        t.clients = clients = xcalloc(concurrency_of(load), sizeof(*clients));
        t.ended = ended = xcalloc(concurrency_of(load), sizeof(struct client *));
        t.records = records = xcalloc(most, sizeof(*records));
        t.chunks = chunks = xmalloc(most * load->osl * sizeof(*chunks));
        if (load->again)
                learn_prompts(&t);
        if (run_phase(&t, load->warmup, err) < 0 || run_phase(&t, load->requests, err) < 0)
                return -1;
        if (!load_summarize(records, load->requests, NULL, 0, ret))
                return err_set(err, E_INTERNAL, "no request of the simulation succeeded");
        return 0;
}
